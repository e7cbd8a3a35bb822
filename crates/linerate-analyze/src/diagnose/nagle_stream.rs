//! Nagle's algorithm on streams of small messages.
//!
//! For each pair of stream cells that differ in Nagle only:
//! 1. Effect: throughput differs by more than chance explains (pooled noise, at least 2 %); the
//!    pair with the largest ratio is shown. When no pair differs, that is an absence.
//! 2. Effect: the longest stall with Nagle and delayed ACK on is at least 30 ms longer than with
//!    Nagle off, the length of the delayed-ACK timer.

use linerate_model::experiment::{Experiment, Factor, Level};
use linerate_model::finding::{Estimate, EvidenceList, Finding, FindingKind};

use super::nagle_delayed_ack::STALL_NS_MIN;
use crate::compare::noise::differs;
use crate::compare::ratio::ratio;
use crate::dataset::{CellOutcomes, Dataset, groups};
use crate::reduce::name;
use crate::words;

/// Two cells that differ in Nagle only.
struct Pair<'d, 'a> {
    on: &'d CellOutcomes<'a>,
    off: &'d CellOutcomes<'a>,
    levels: String,
}

pub(super) fn findings(dataset: &Dataset<'_>) -> Vec<Finding> {
    let experiments = &dataset.recording.document.plan.experiments;
    experiments
        .iter()
        .flat_map(|experiment| {
            let pairs = pairs(dataset, experiment);
            let throughput = throughput(dataset, experiment, &pairs);
            throughput.into_iter().chain(stall(experiment, &pairs))
        })
        .collect()
}

fn pairs<'d, 'a>(dataset: &'d Dataset<'a>, experiment: &Experiment) -> Vec<Pair<'d, 'a>> {
    let mut cells = dataset.cells_of(&experiment.name);
    cells.retain(|cell| !cell.is_rr() && !cell.valid.is_empty());
    groups(&cells, Factor::Nagle)
        .into_iter()
        .filter_map(|group| {
            let with = |on| {
                let level = Level::Switch(on);
                group
                    .cells
                    .iter()
                    .find(|cell| cell.level(Factor::Nagle) == Some(&level))
                    .copied()
            };
            Some(Pair {
                on: with(true)?,
                off: with(false)?,
                levels: group.words.clone(),
            })
        })
        .collect()
}

fn throughput(
    dataset: &Dataset<'_>,
    experiment: &Experiment,
    pairs: &[Pair<'_, '_>],
) -> Option<Finding> {
    let noise = Dataset::noise(&dataset.cells_of(&experiment.name), name::THROUGHPUT);
    let known: Vec<(&Pair<'_, '_>, Estimate, Estimate, Estimate)> = pairs
        .iter()
        .filter_map(|pair| {
            let (on, off) = (
                pair.on.estimate(name::THROUGHPUT)?,
                pair.off.estimate(name::THROUGHPUT)?,
            );
            Some((pair, on, off, ratio(&on, &off)?))
        })
        .collect();
    let distance = |ratio: &Estimate| ratio.value.max(f64::MIN_POSITIVE).ln().abs();
    let differing = known
        .iter()
        .filter(|(_, on, off, _)| differs(on, off, noise))
        .count();
    let (pair, on, off, ratio) = known
        .iter()
        .filter(|(_, on, off, _)| differing == 0 || differs(on, off, noise))
        .max_by(|a, b| distance(&a.3).total_cmp(&distance(&b.3)))?;
    let with = match pair.levels.is_empty() {
        true => String::new(),
        false => format!(" with {}", pair.levels),
    };
    let evidence = EvidenceList::new(
        pair.on
            .evidence("throughput with Nagle on", name::THROUGHPUT)?,
        [
            pair.off
                .evidence("throughput with Nagle off", name::THROUGHPUT),
            pair.on.evidence(
                "payload per segment with Nagle on",
                name::PAYLOAD_PER_SEGMENT,
            ),
            pair.off.evidence(
                "payload per segment with Nagle off",
                name::PAYLOAD_PER_SEGMENT,
            ),
        ]
        .into_iter()
        .flatten()
        .collect(),
    );
    let (kind, suffix, claim) = if differing > 0 {
        let claim = format!(
            "Turning Nagle off changes the stream{with} from {} to {}, a factor of {}.",
            words::estimate(on),
            words::estimate(off),
            words::estimate(ratio),
        );
        (FindingKind::Effect, "effect/nagle", claim)
    } else {
        let claim = format!(
            "Nagle makes no difference to these streams: at the most {} with it and {} without{with}.",
            words::estimate(on),
            words::estimate(off),
        );
        (FindingKind::Absence, "absence/nagle", claim)
    };
    Some(Finding {
        id: format!("{}/{suffix}", experiment.name),
        chapter: experiment.chapter,
        kind,
        claim,
        explanation: format!(
            "{differing} of {} pairs of cells that differ in Nagle only differ by more than chance \
             explains; the pair with the largest ratio is shown. Nagle's algorithm packs small \
             messages into fuller segments, which costs fewer packets, but it may wait for an \
             acknowledgement.",
            known.len(),
        ),
        effect: *ratio,
        evidence,
    })
}

fn stall(experiment: &Experiment, pairs: &[Pair<'_, '_>]) -> Option<Finding> {
    let stalled = |pair: &&Pair<'_, '_>| {
        let delayed = pair.on.workload.options.delayed_ack != Some(false);
        let (on, off) = (
            pair.on.mean(name::STALL_MAX)?,
            pair.off.mean(name::STALL_MAX)?,
        );
        (delayed && on - off >= STALL_NS_MIN).then_some(on)
    };
    let known = pairs
        .iter()
        .filter_map(|pair| Some((pair, stalled(&pair)?)));
    let (pair, _) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (on, off) = (
        pair.on.estimate(name::STALL_MAX)?,
        pair.off.estimate(name::STALL_MAX)?,
    );
    let with = match pair.levels.is_empty() {
        true => String::new(),
        false => format!(" with {}", pair.levels),
    };
    Some(Finding {
        id: format!("{}/effect/stall", experiment.name),
        chapter: experiment.chapter,
        kind: FindingKind::Effect,
        claim: format!(
            "With Nagle on, the stream{with} pauses for up to {}; with Nagle off for up to {}.",
            words::estimate(&on),
            words::estimate(&off),
        ),
        explanation:
            "The sender holds a small segment until the one before is acknowledged, and the \
                      receiver delays that acknowledgement by its timer of about 40 ms."
                .to_owned(),
        effect: on,
        evidence: EvidenceList::new(
            pair.on
                .evidence("longest stall with Nagle on", name::STALL_MAX)?,
            [
                pair.off
                    .evidence("longest stall with Nagle off", name::STALL_MAX),
                pair.on.evidence(
                    "ACKs sent by the delayed-ACK timer per second",
                    name::DELAYED_ACKS,
                ),
            ]
            .into_iter()
            .flatten()
            .collect(),
        ),
    })
}
