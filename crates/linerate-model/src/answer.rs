//! The answer of a run: what a reader knows after one page, and the last lines of a terminal say.

use serde::Serialize;

use crate::finding::Estimate;
use crate::limiter::Limiter;

/// What a run says, shortest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// The result in one sentence, without its full stop; empty where nothing was run.
    pub verdict: String,
    /// Headline numbers, [`TILES_MAX`] at the most and only those that were measured.
    pub tiles: Vec<Tile>,
    /// What limits each workload, one bar each, [`BARS_MAX`] at the most.
    pub bars: Vec<LimitBar>,
    /// How many more there would be: the report's tables have them.
    pub bars_left_out: usize,
}

/// Most headline numbers: four stand side by side.
pub const TILES_MAX: usize = 4;

/// Most bars: more do not fit one page beside findings and actions.
pub const BARS_MAX: usize = 8;

/// A headline number.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tile {
    /// What it is: "Throughput".
    pub what: String,
    /// How much.
    pub value: Estimate,
    /// What it was measured with, or how much that is of what there could be; may be empty.
    pub note: String,
}

/// A workload against what bounds it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitBar {
    /// The experiment's title; empty where there is only one.
    pub experiment: String,
    /// The workload in words: "10 connections from 5 clients".
    pub workload: String,
    /// Cells of the experiment that the same limits; this one is shown.
    pub cells: u32,
    /// What was reached.
    pub value: Estimate,
    /// What cannot be exceeded, if that is known.
    pub ceiling: Option<Ceiling>,
    /// What limits it, if that is known.
    pub limiter: Option<Limiter>,
}

/// What a number cannot exceed, in the number's unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// How much.
    pub value: f64,
    /// What sets it.
    pub what: Ceilings,
}

/// What sets a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ceilings {
    /// What the wire carries in frames of the measured size.
    Wire,
    /// What the path's shortest round trip allows.
    RoundTrip,
    /// What the path was found to carry.
    Path,
}

impl LimitBar {
    /// Returns the part of its ceiling that `value` is.
    pub fn share(&self, value: f64) -> Option<f64> {
        let ceiling = self.ceiling.as_ref()?;
        (ceiling.value > 0.0).then(|| (value / ceiling.value).clamp(0.0, 1.0))
    }

    /// Tells whether the host could reach more: our own generator is what limits.
    pub fn is_lower_bound(&self) -> bool {
        self.limiter == Some(Limiter::Generator)
    }
}
