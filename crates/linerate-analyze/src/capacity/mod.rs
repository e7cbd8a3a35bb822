//! What traffic costs, and what a target asks for.
//!
//! The CPU time of a trial is packets, bytes, calls, wake-ups and new connections, each times its price, and what the host
//! does always. Prices are fitted to all trials of a run whose hosts are as they are (`fit`); every fifth cell is kept out
//! and tells the error. Where hosts share a machine the cost is that of both ends and of what connects them; else it is the
//! server's, and sending and receiving have prices of their own.

/// Changes and loads that a model was not fitted to.
mod ahead;
/// Prices with their intervals.
mod fit;
/// Prices of kinds of work, and what they say of other work.
mod model;
/// What each further CPU or flow is worth.
pub(crate) mod scaling;
/// What a target asks for, and what there is of it.
mod target;
/// What trials did and what it cost.
mod work;

use linerate_model::finding::Estimate;
use linerate_model::run::Recording;
use linerate_model::unit::Unit;
use linerate_model::workload::Direction;
use serde::Serialize;

use crate::dataset::Dataset;
use fit::Fit;
pub(crate) use target::supplies;
pub use work::Work;
pub(crate) use work::is_plain;

/// This document, and the number of its shape.
pub const CAPACITY_SCHEMA: (&str, u32) = ("linerate.capacity", 1);

/// A kind of work that costs time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Packets of the flows, with payload and without.
    Packet,
    /// Payload, in KiB.
    #[serde(rename = "kib")]
    KiB,
    /// Send and receive calls.
    Call,
    /// Times that a worker was put on a CPU.
    WakeUp,
    /// Connections made and closed.
    Connection,
    /// What is there without traffic: CPUs.
    Always,
}

/// The kinds, in the order of the work of a row.
const KINDS: [Kind; 6] = [
    Kind::Packet,
    Kind::KiB,
    Kind::Call,
    Kind::WakeUp,
    Kind::Connection,
    Kind::Always,
];

impl Kind {
    /// Returns what one of it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::KiB => "KiB of payload",
            Self::Call => "call",
            Self::WakeUp => "wake-up of a worker",
            Self::Connection => "connection",
            Self::Always => "always",
        }
    }
}

/// Whose cost it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Both ends, which share a machine.
    BothEnds,
    /// The server's, while it receives.
    Receives,
    /// The server's, while it sends.
    Sends,
}

impl Side {
    /// Returns whose cost it is, in words.
    pub fn title(self) -> &'static str {
        match self {
            Self::BothEnds => "both ends, on one machine",
            Self::Receives => "the server, which receives",
            Self::Sends => "the server, which sends",
        }
    }
}

/// What a run says of capacity.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Capacity {
    /// Always `linerate.capacity`.
    pub schema: &'static str,
    /// The number of `CAPACITY_SCHEMA`.
    pub schema_version: u32,
    /// Version of the program.
    pub linerate_version: String,
    /// The run.
    pub run: String,
    /// What traffic costs, by side.
    pub models: Vec<Model>,
    /// What models that were fitted up to half the link's rate say of the loads above it.
    pub above_half: Vec<Above>,
    /// What models predict of changes that they were not fitted to.
    pub gains: Vec<Gain>,
    /// Why there is no model of a side, where there is none.
    pub missing: Vec<String>,
    /// What the target asks for, where one was given and a model has it.
    pub answer: Option<Answer>,
}

/// What traffic costs a side.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Model {
    /// Whose cost it is.
    pub side: Side,
    /// Trials that it was fitted to.
    pub trials: usize,
    /// Their cells.
    pub cells: usize,
    /// What each kind of work costs.
    pub prices: Vec<Price>,
    /// How far it is off where it was not fitted.
    pub held_out: HeldOut,
    /// Kinds of work that this run does not tell apart.
    pub alike: Vec<Kind>,
    /// The highest payload that it was fitted to, bit/s.
    pub fitted_to_bps: f64,
    /// Prices in user mode, in the kernel and in interrupts, in the order of the kinds.
    #[serde(skip)]
    modes: [Option<Vec<f64>>; 3],
    #[serde(skip)]
    fit: Fit,
    /// Its trials, those that it was not fitted to last.
    pub rows: Vec<Work>,
}

/// What one of a kind of work costs: CPU time in ns; of what is always there, CPUs.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Price {
    /// The kind.
    pub kind: Kind,
    /// All of it.
    pub all: Estimate,
    /// In user mode.
    pub user: Option<f64>,
    /// In the kernel, for our threads.
    pub system: Option<f64>,
    /// In interrupts.
    pub interrupts: Option<f64>,
}

/// Errors in cells that were not fitted.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HeldOut {
    /// How many there were.
    pub cells: usize,
    /// The median of the relative errors, without sign.
    pub median: Option<f64>,
    /// The largest.
    pub most: Option<f64>,
    /// The share of them whose interval holds what was measured.
    pub held: Option<f64>,
}

/// A rate that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Payload, bit/s.
    pub bps: f64,
    /// Bytes of a message.
    pub message_bytes: u64,
    /// Connections.
    pub flows: u32,
    /// Which way it goes.
    pub direction: Direction,
    /// Share of the CPUs that is to be left.
    pub headroom: f64,
}

/// What a target asks for.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Answer {
    /// Whose cost it is.
    pub side: Side,
    /// CPUs that are busy.
    pub busy: Estimate,
    /// CPUs to have, with the headroom.
    pub cpus: Estimate,
    /// What there is and what is asked of it, what ends first before the others.
    pub supplies: Vec<Supply>,
    /// Where it goes beyond what was measured.
    pub extrapolates: Vec<String>,
}

/// Something that there is so much of.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Supply {
    /// What.
    pub what: String,
    /// What is asked of it.
    pub needs: f64,
    /// What there is.
    pub has: f64,
    /// Its unit, as the documents have it.
    pub unit: Unit,
}

/// A change that makes work less, as a model predicts it that was not fitted to what is changed, and as it was measured.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Gain {
    /// Whose cost it is.
    pub side: Side,
    /// The kind of work that there is less of.
    pub kind: Kind,
    /// The least payload of one of it before, in bytes.
    pub from_bytes: f64,
    /// The most after.
    pub to_bytes: f64,
    /// CPU time of a byte after the change over that before, as predicted: the median of all pairs of cells.
    pub predicted: f64,
    /// The same as measured.
    pub measured: f64,
    /// How far the predictions are off.
    pub errors: HeldOut,
}

/// A load above half the link's rate, and what a model says of it that was fitted to those up to it.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Above {
    /// Whose cost it is.
    pub side: Side,
    /// Its cell, in words.
    pub what: String,
    /// Its payload, over the link's rate.
    pub share: f64,
    /// What the model says.
    pub told: Estimate,
    /// What was measured, CPUs.
    pub measured: f64,
}

/// Returns what `recording` says of capacity, and what `target` asks for.
pub fn capacity(recording: &Recording, target: Option<&Target>) -> Capacity {
    let dataset = Dataset::new(recording);
    let document = &recording.document;
    let (models, missing) = models(&dataset);
    Capacity {
        schema: CAPACITY_SCHEMA.0,
        schema_version: CAPACITY_SCHEMA.1,
        linerate_version: document.version.clone(),
        run: document.run.0.clone(),
        answer: target.and_then(|target| target::answer(&dataset, &models, target)),
        above_half: above_half(&dataset),
        gains: gains(&dataset),
        models,
        missing,
    }
}

/// Returns the model of each side of which there are trials enough, and why there is none of another.
pub(crate) fn models(dataset: &Dataset<'_>) -> (Vec<Model>, Vec<String>) {
    let cells = work::plain_cells(dataset);
    let (mut models, mut missing) = (Vec::new(), Vec::new());
    for side in sides(dataset) {
        match Model::of(&cells, *side) {
            Ok(model) => models.push(model),
            Err(why) => missing.push(format!("{}: {why}", side.title())),
        }
    }
    (models, missing)
}

/// Returns what models that were fitted up to half the link's rate say of the loads above it.
pub(crate) fn above_half(dataset: &Dataset<'_>) -> Vec<Above> {
    let cells = work::plain_cells(dataset);
    let sides = sides(dataset).iter();
    let of_side = |side: &Side| ahead::above_half(dataset, &cells, *side);
    sides.flat_map(of_side).collect()
}

/// Returns what models predict of changes that they were not fitted to.
pub(crate) fn gains(dataset: &Dataset<'_>) -> Vec<Gain> {
    let cells = work::plain_cells(dataset);
    let sides = sides(dataset).iter();
    let of_side = |side: &Side| ahead::gains(dataset, &cells, *side);
    sides.flat_map(of_side).collect()
}

fn sides(dataset: &Dataset<'_>) -> &'static [Side] {
    if dataset.is_one_machine() {
        &[Side::BothEnds]
    } else {
        &[Side::Receives, Side::Sends]
    }
}
