//! Everything that was found, as one JSON document.

use serde::Serialize;

use crate::machine::Machine;
use crate::rounds::{Comparison, Settings};

/// The number of the document's format.
pub const FORMAT: u32 = 1;

/// The document.
#[derive(Debug, Serialize)]
pub struct Document {
    /// [`FORMAT`].
    pub format: u32,
    /// What the machine is.
    pub machine: Machine,
    /// Congestion control of the runs.
    pub congestion: String,
    /// How often and how long.
    pub settings: Settings,
    /// Tools and their versions; none where one is not installed.
    pub tools: Vec<(&'static str, Option<String>)>,
    /// What was compared.
    pub comparisons: Vec<Comparison>,
}
