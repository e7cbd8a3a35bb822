//! What follows from the facts of a cell, patterns among them.

use std::collections::BTreeSet;

use linerate_model::limiter::Limiter;
use linerate_model::run::Recording;

use super::rules::{patterns_of_cell, patterns_of_trial};
use crate::causes::CAUSES;
use crate::dataset::{CellOutcomes, Dataset};
use crate::evidence::{self, FACTS, Reading, Source, View};
use crate::infer::{Evidence, Inference, LEAD_MIN, Weights, candidates};

/// Hands the view of each valid trial of `cell` to `act`.
fn for_each_view(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>, act: impl FnMut(&View<'_>)) {
    let of_cell = patterns_of_cell(dataset, cell);
    let patterns =
        |outcome: &_, setup: &_| patterns_of_trial(&of_cell, outcome, setup, &cell.workload);
    evidence::for_each_view(dataset, cell, patterns, act);
}

fn evidence(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Vec<Evidence> {
    let mut trials = Vec::new();
    for_each_view(dataset, cell, |view| trials.push(Evidence::of(view)));
    trials
}

/// Returns the responses that some facts of a cell are read from.
pub(super) fn responses<'f>(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    facts: impl Iterator<Item = &'f usize> + Clone,
) -> BTreeSet<String> {
    let mut responses = BTreeSet::new();
    for_each_view(dataset, cell, |view| {
        for fact in facts.clone() {
            responses.extend(FACTS[*fact].responses(view));
        }
    });
    responses
}

/// Returns what follows from the facts of a cell, as far as they are read of its trials that may be averaged.
pub(super) fn of_cell(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Inference {
    Inference::of(&evidence(dataset, cell), Weights::fitted())
}

/// Returns the same where it is known to be one of some limiters, and what `moot` facts are read from is not there.
pub(crate) fn of_cell_among(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    limiters: &[Limiter],
    moot: &[Source],
) -> Inference {
    let mut trials = evidence(dataset, cell);
    let readings = trials
        .iter_mut()
        .flat_map(|trial| trial.readings.iter_mut().zip(FACTS));
    for (reading, _) in readings.filter(|(_, fact)| moot.contains(&fact.source)) {
        *reading = Reading::Moot;
    }
    let mut may_be = candidates(&trials);
    let is_one = |cause: &usize| {
        CAUSES[*cause]
            .limiter
            .is_some_and(|limiter| limiters.contains(&limiter))
    };
    may_be.retain(is_one);
    Inference::among(may_be, &trials, Weights::fitted(), LEAD_MIN)
}

/// Returns the facts of the trials of each cell of a recording.
pub fn evidence_of(recording: &Recording) -> Vec<Vec<Evidence>> {
    let dataset = Dataset::new(recording);
    let cells = dataset.cells.iter().map(|cell| {
        let failed = cell.of_invalid();
        let cell = failed.as_ref().unwrap_or(cell);
        evidence(&dataset, cell)
    });
    cells.collect()
}
