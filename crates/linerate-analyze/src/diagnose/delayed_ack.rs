//! Delayed acknowledgements of small transactions.
//!
//! For each pair of request/response cells that differ in delayed ACK only, with requests in one
//! write: the transaction rates are compared with the pooled noise. The pair with the largest ratio
//! is shown. Where no pair differs, that is an absence: delayed ACK then only saves packets.

use linerate_model::experiment::{Experiment, Factor, Level};
use linerate_model::finding::{Estimate, EvidenceList, Finding, FindingKind};
use linerate_model::workload::Traffic;

use crate::compare::noise::differs;
use crate::compare::ratio::ratio;
use crate::dataset::{CellOutcomes, Dataset, groups};
use crate::reduce::name;
use crate::words;

/// Two cells that differ in delayed ACK only, their rates, and rate on / rate off.
struct Pair<'d, 'a> {
    on: &'d CellOutcomes<'a>,
    off: &'d CellOutcomes<'a>,
    rates: (Estimate, Estimate),
    ratio: Estimate,
    levels: String,
}

pub(super) fn findings(dataset: &Dataset<'_>) -> Vec<Finding> {
    let experiments = &dataset.recording.document.plan.experiments;
    experiments
        .iter()
        .filter_map(|experiment| finding(dataset, experiment))
        .collect()
}

fn pairs<'d, 'a>(dataset: &'d Dataset<'a>, experiment: &Experiment) -> Vec<Pair<'d, 'a>> {
    let mut cells = dataset.cells_of(&experiment.name);
    cells.retain(|cell| {
        matches!(
            cell.workload.traffic,
            Traffic::Rr {
                request_writes: 1,
                ..
            }
        )
    });
    groups(&cells, Factor::DelayedAck)
        .into_iter()
        .filter_map(|group| {
            let with = |on| {
                let level = Level::Switch(on);
                let mut cells = group.cells.iter();
                cells
                    .find(|cell| cell.level(Factor::DelayedAck) == Some(&level))
                    .copied()
            };
            let (on, off) = (with(true)?, with(false)?);
            let rates = (
                on.estimate(name::TRANSACTIONS)?,
                off.estimate(name::TRANSACTIONS)?,
            );
            let ratio = ratio(&rates.1, &rates.0)?;
            Some(Pair {
                on,
                off,
                rates,
                ratio,
                levels: group.words,
            })
        })
        .collect()
}

fn finding(dataset: &Dataset<'_>, experiment: &Experiment) -> Option<Finding> {
    let cells = dataset.cells_of(&experiment.name);
    // Split requests have their own finding, in which delayed ACK is one half of the cause.
    if cells
        .iter()
        .any(|cell| cell.level(Factor::RequestWrites).is_some())
    {
        return None;
    }
    let noise = Dataset::noise(&cells, name::TRANSACTIONS);
    let pairs = pairs(dataset, experiment);
    let differing = |pair: &&Pair<'_, '_>| differs(&pair.rates.1, &pair.rates.0, noise);
    let count = pairs.iter().filter(differing).count();
    let distance = |pair: &Pair<'_, '_>| pair.ratio.value.max(f64::MIN_POSITIVE).ln().abs();
    let shown = pairs
        .iter()
        .filter(|pair| count == 0 || differing(pair))
        .max_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let with = match shown.levels.is_empty() {
        true => String::new(),
        false => format!(" with {}", shown.levels),
    };
    let (on, off) = (
        words::estimate(&shown.rates.0),
        words::estimate(&shown.rates.1),
    );
    let (kind, suffix, claim) = match count {
        0 => (
            FindingKind::Absence,
            "absence/delayed-ack",
            format!(
                "Delayed ACK makes no difference to the rate: at the most {on} on and {off} off{with}."
            ),
        ),
        _ => (
            FindingKind::Effect,
            "effect/delayed-ack",
            format!("Delayed ACK changes the rate{with}: {on} on and {off} off."),
        ),
    };
    Some(Finding {
        id: format!("{}/{suffix}", experiment.name),
        chapter: experiment.chapter,
        kind,
        claim,
        explanation: format!(
            "{count} of {} payloads differ by more than chance explains. {}",
            pairs.len(),
            acks(shown)
        ),
        effect: shown.ratio,
        evidence: evidence(shown)?,
    })
}

fn acks(pair: &Pair<'_, '_>) -> String {
    let per = |cell: &CellOutcomes<'_>| cell.estimate(name::ACKS_PER_TRANSACTION);
    match per(pair.on).zip(per(pair.off)) {
        Some((on, off)) => format!(
            "A transaction needs {} ACKs of its own with delayed ACK on, where they ride on the \
             reply, and {} with it off.",
            words::number(on.unit, on.value),
            words::number(off.unit, off.value),
        ),
        None => "With delayed ACK on, the acknowledgement rides on the reply.".to_owned(),
    }
}

fn evidence(pair: &Pair<'_, '_>) -> Option<EvidenceList> {
    let more = [
        pair.off
            .evidence("rate with delayed ACK off", name::TRANSACTIONS),
        pair.on.evidence(
            "ACKs per transaction with delayed ACK on",
            name::ACKS_PER_TRANSACTION,
        ),
        pair.off.evidence(
            "ACKs per transaction with delayed ACK off",
            name::ACKS_PER_TRANSACTION,
        ),
    ];
    Some(EvidenceList::new(
        pair.on
            .evidence("rate with delayed ACK on", name::TRANSACTIONS)?,
        more.into_iter().flatten().collect(),
    ))
}
