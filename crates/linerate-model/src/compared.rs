//! Runs side by side, or the levels of one run: `linerate compare`, `--baseline`, `linerate run -C cubic,bbr`.
//!
//! What each pair rests on, and how far its claim goes, is computed by the analysis; this is the document.

use serde::Serialize;

use crate::finding::{Estimate, TrustLevel, Verdict};
use crate::run::HostPart;

/// This document, and the number of its shape.
pub const COMPARED_SCHEMA: (&str, u32) = ("linerate.compare", 1);

/// Sides that were compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// Always `linerate.compare`.
    pub schema: &'static str,
    /// The number of [`COMPARED_SCHEMA`].
    pub schema_version: u32,
    /// Whether the sides took turns in one run, so that a drift of the hosts falls on all alike.
    pub interleaved: bool,
    /// What was compared; of runs the first is what the others are held against.
    pub sides: Vec<Side>,
    /// The pairs, by experiment and cell.
    pub pairs: Vec<Pair>,
    /// Sides and cells that cannot be compared.
    pub not_comparable: Vec<NotComparable>,
    /// What differs of the hosts, the workload and the program, most telling first.
    pub changed: Vec<Changed>,
    /// Pairs that got worse, the whole interval beyond their threshold.
    pub regressions: u32,
}

/// A run, or the level of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side {
    /// As it was named: a path, or a level in words.
    pub name: String,
    /// The run.
    pub run: String,
    /// When that began, UTC, RFC 3339.
    pub started_utc: String,
    /// Version of the program that measured.
    pub version: String,
    /// How far its numbers may be relied on; of one that is not to be used nothing is decided.
    pub trust: TrustLevel,
    /// Why no further.
    pub trust_reasons: Vec<String>,
    /// Why the run is partial, if it is.
    pub partial: Option<String>,
}

/// One number on two sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pair {
    /// The experiment.
    pub experiment: String,
    /// The cell in words; empty where nothing varies in the experiment.
    pub cell: String,
    /// The response by its name, its unit at the end.
    pub response: String,
    /// What it is in words.
    pub title: String,
    /// The side that the ratio is over, an index.
    pub base: usize,
    /// The side that it is of.
    pub of: usize,
    /// The number of the one, with the spread of its own trials.
    pub base_value: Estimate,
    /// The number of the other.
    pub value: Estimate,
    /// The ratio; its interval covers what runs differ by, and those of all pairs hold together at 95 %.
    pub ratio: Estimate,
    /// What it decides.
    pub verdict: Verdict,
    /// The relative difference below which two are the same.
    pub margin: f64,
    /// The relative difference beyond which what is worse is a regression.
    pub threshold: f64,
    /// Whether it is one: all of the interval is worse by more than that.
    pub is_regression: bool,
    /// Whether all of the interval is better by more than that.
    pub is_gain: bool,
    /// Whether larger is better; absent where neither is.
    pub more_is_better: Option<bool>,
    /// Why there is no interval, if there is none.
    pub open_because: Option<String>,
}

impl Pair {
    /// Returns whether the ratio says that the one is better than the other; absent where neither is.
    pub fn is_better(&self) -> Option<bool> {
        self.more_is_better
            .map(|more| more == (self.ratio.value > 1.0))
    }
}

/// What cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotComparable {
    /// The side, an index.
    pub side: usize,
    /// The experiment and the cell in words; empty where it is the whole side.
    pub what: String,
    /// Why: "A measured …, and B …".
    pub why: String,
}

/// Something that differs between a side and the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changed {
    /// The side, an index.
    pub side: usize,
    /// Of which hosts; absent for the workload and the program that measured.
    pub host: Option<HostPart>,
    /// What: `kernel.release`, `sysctl.net.core.rmem_max`, `congestion`.
    pub what: String,
    /// What it was on the first side; absent where that has it not.
    pub from: Option<String>,
    /// What it is on this one.
    pub to: Option<String>,
}
