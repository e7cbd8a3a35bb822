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

impl Document {
    /// Returns in words what its numbers hold for: machine, settings and tools.
    pub fn conditions(&self) -> String {
        let (machine, settings) = (&self.machine, &self.settings);
        let mut text = format!(
            "{}, {} CPUs; Linux {}; congestion control {} (host: {}); huge pages {}; {} rounds of {} s, runs \
             with others above {:.0} % of the machine thrown away.\n",
            machine.cpu,
            machine.cpus,
            machine.kernel,
            self.congestion,
            machine.congestion,
            machine.huge_pages,
            settings.rounds,
            settings.seconds,
            settings.others_share_max * 100.0
        );
        for (name, version) in &self.tools {
            let version = version.as_deref().unwrap_or("not installed");
            text.push_str(&format!("\n* {name}: {version}"));
        }
        text
    }
}
