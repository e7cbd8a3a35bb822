//! What traffic costs, and what a target asks for.
//!
//! The CPU time of a trial is packets, bytes, calls, wake-ups, packets that were held back and new connections, each times its
//! price, and what the host does always. Prices are fitted to all trials of a run whose hosts are as they are (`fit`); every fifth cell is kept out
//! and tells the error. Where hosts share a machine the cost is that of both ends and of what connects them; else it is the
//! server's, and sending and receiving have prices of their own. So have streams and exchanges.

/// Changes and loads that a model was not fitted to.
mod ahead;
/// Prices with their intervals.
mod fit;
/// Kinds of work, and whose cost it is.
mod kind;
/// Prices of kinds of work, and what they say of other work.
mod model;
/// What each further CPU or flow is worth.
pub(crate) mod scaling;
/// What a target asks for, and what there is of it.
mod target;
/// What trials did and what it cost.
mod work;

use linerate_model::run::Recording;
use serde::Serialize;

use crate::dataset::Dataset;
use crate::proof;
pub use ahead::{Above, Gain};
pub use kind::{Kind, Side};
pub use model::{HeldOut, Model, Price};
pub(crate) use target::supplies;
pub use target::{Answer, Supply, Target};
pub use work::Work;
pub(crate) use work::is_plain;

/// This document, and the number of its shape.
pub const CAPACITY_SCHEMA: (&str, u32) = ("linerate.capacity", 1);

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
    /// What models that were fitted up to half of what such streams reach say of the loads above it.
    pub above_half: Vec<Above>,
    /// What models predict of changes that they were not fitted to.
    pub gains: Vec<Gain>,
    /// Why there is no model of a side, where there is none.
    pub missing: Vec<String>,
    /// What the target asks for, where one was given and a model has it.
    pub answer: Option<Answer>,
}

/// Returns what `recording` says of capacity, and what `target` asks for.
pub fn capacity(recording: &Recording, target: Option<&Target>) -> Capacity {
    let recording = &*proof::measured(recording);
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

/// Returns what models that were fitted up to half of what such streams reach say of the loads above it.
pub(crate) fn above_half(dataset: &Dataset<'_>) -> Vec<Above> {
    let cells = work::plain_cells(dataset);
    let sides = sides(dataset).iter();
    let of_side = |side: &Side| ahead::above_half(&cells, *side);
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
        &[Side::Streams, Side::Exchanges]
    } else {
        &[Side::Receives, Side::Sends, Side::Answers]
    }
}
