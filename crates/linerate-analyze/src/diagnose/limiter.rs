//! Limiters in order of precedence, and one finding for each of an experiment.
//!
//! Several rules may hold for one cell; the first of [`RULES`] that holds is the limiter, for it is the
//! one whose removal would help:
//!
//! 1. nothing arrives: then there is no number to explain;
//! 2. a full link of known rate, because nothing behind it can raise the number;
//! 3. a rate that was asked for, because then there is nothing to find;
//! 4. retransmission timeouts and Nagle × delayed ACK, because their stalls look like a long round trip;
//! 5. CPUs that our workers did not get, then a worker that is saturated beside free ones, because a
//!    slow receiver fills windows and a slow sender empties them;
//! 6. what holds a stream, by evidence that tells its causes apart ([`stream`]);
//! 7. the round trip, which limits whatever waits for one transaction at a time, by its largest part.

use linerate_model::finding::{Estimate, EvidenceList, Finding, FindingKind, Limiter};

use super::{
    cpu, generator, link_rate, nagle_delayed_ack, nothing_arrives, pacing, round_trip, stream,
    timeouts,
};
use crate::dataset::{CellOutcomes, Dataset};
use crate::words;

/// What a rule says of one cell.
pub(crate) struct Verdict {
    /// The limiter.
    pub(crate) limiter: Limiter,
    /// The claim with its numbers.
    pub(crate) claim: String,
    /// Why, and what it means.
    pub(crate) explanation: String,
    /// How large the effect is.
    pub(crate) effect: Estimate,
    /// What it rests on.
    pub(crate) evidence: EvidenceList,
    /// Of several cells with the same limiter, the one with the greatest weight is shown.
    pub(crate) weight: f64,
}

/// Trials that a finding about CPUs rests on at least, where trials were repeated as often.
const TRIALS_MIN: usize = 3;

type Rule = fn(&Dataset<'_>, &CellOutcomes<'_>) -> Option<Verdict>;

/// The rules in order of precedence.
const RULES: &[Rule] = &[
    nothing_arrives::verdict,
    link_rate::verdict,
    pacing::asked,
    timeouts::verdict,
    nagle_delayed_ack::verdict,
    cpu::quota,
    cpu::others,
    cpu::full,
    cpu::beside_idle,
    generator::verdict,
    stream::verdict,
    round_trip::verdict,
];

/// Returns what limits `cell`, if a rule holds; of a cell without a valid trial, what kept it from one.
pub(crate) fn limiter_of<'c>(
    dataset: &Dataset<'_>,
    cell: &'c CellOutcomes<'_>,
) -> Option<&'c Verdict> {
    let verdict = cell.limiter.get_or_init(|| find(dataset, cell));
    verdict.as_ref()
}

fn find(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let Some(failed) = cell.of_invalid() else {
        return RULES.iter().find_map(|rule| rule(dataset, cell));
    };
    // Of the first rule that holds, as elsewhere: what is full is not short of CPUs as well.
    let verdict = RULES.iter().find_map(|rule| rule(dataset, &failed));
    let mut verdict = verdict.filter(|verdict| explains_failure(verdict.limiter))?;
    verdict.explanation += " No trial of it is valid, so that this is why, and no number to go by.";
    Some(verdict)
}

/// Whether a limiter can be why a trial is invalid. Others only say what its number, which does not
/// count, would have been limited by.
fn explains_failure(limiter: Limiter) -> bool {
    match limiter {
        Limiter::HostDrops
        | Limiter::SlowReader
        | Limiter::Cpu
        | Limiter::OtherPrograms
        | Limiter::CpuQuota
        | Limiter::Timeouts
        | Limiter::Application
        | Limiter::NothingArrives => true,
        Limiter::LinkRate
        | Limiter::PathRate
        | Limiter::ReceiverWindow
        | Limiter::SendBuffer
        | Limiter::CongestionWindow
        | Limiter::Pacing
        | Limiter::Generator
        | Limiter::RoundTrip
        | Limiter::NagleDelayedAck => false,
    }
}

/// Returns a limiter's name for identifiers.
fn limiter_id(limiter: Limiter) -> &'static str {
    match limiter {
        Limiter::LinkRate => "link-rate",
        Limiter::PathRate => "path-rate",
        Limiter::ReceiverWindow => "receiver-window",
        Limiter::SendBuffer => "send-buffer",
        Limiter::CongestionWindow => "congestion-window",
        Limiter::SlowReader => "slow-reader",
        Limiter::HostDrops => "host-drops",
        Limiter::Pacing => "pacing",
        Limiter::Generator => "generator",
        Limiter::Cpu => "cpu",
        Limiter::OtherPrograms => "other-programs",
        Limiter::CpuQuota => "cpu-quota",
        Limiter::RoundTrip => "round-trip",
        Limiter::NagleDelayedAck => "nagle-delayed-ack",
        Limiter::Timeouts => "timeouts",
        Limiter::Application => "application",
        Limiter::NothingArrives => "nothing-arrives",
    }
}

/// Returns a limiter in words.
pub(crate) fn limiter_title(limiter: Limiter) -> &'static str {
    match limiter {
        Limiter::LinkRate => "the link's rate",
        Limiter::PathRate => "the path's rate",
        Limiter::ReceiverWindow => "the receiver's window",
        Limiter::SendBuffer => "the send buffer",
        Limiter::CongestionWindow => "the congestion window",
        Limiter::SlowReader => "the program that reads",
        Limiter::HostDrops => "drops inside a host",
        Limiter::Pacing => "pacing",
        Limiter::Generator => "our own worker",
        Limiter::Cpu => "the CPUs",
        Limiter::OtherPrograms => "other programs on the CPUs",
        Limiter::CpuQuota => "a CPU quota",
        Limiter::RoundTrip => "the round trip",
        Limiter::NagleDelayedAck => "Nagle waiting for a delayed ACK",
        Limiter::Timeouts => "retransmission timeouts",
        Limiter::Application => "the application",
        Limiter::NothingArrives => "a path that carries nothing",
    }
}

/// Returns one finding for each limiter of the host as it is: a cause and the group of cells that it
/// holds down, over all experiments.
pub(super) fn findings(dataset: &Dataset<'_>) -> Vec<Finding> {
    let cells = dataset.cells.iter();
    let cells: Vec<&CellOutcomes<'_>> = cells.filter(|cell| dataset.is_as_it_is(cell)).collect();
    // Where others were repeated, one trial that is left of a cell is no evidence, nor are two in all of
    // who has the CPUs, which changes from trial to trial.
    let are_repeated = cells.iter().any(|cell| cell.valid.len() >= TRIALS_MIN);
    let is_known = |cell: &&CellOutcomes<'_>| !are_repeated || cell.valid.len() != 1;
    let mut by_limiter: Vec<(Limiter, Vec<(&Verdict, &CellOutcomes<'_>)>)> = Vec::new();
    for cell in cells.iter().copied().filter(is_known) {
        let Some(verdict) = limiter_of(dataset, cell) else {
            continue;
        };
        match by_limiter
            .iter_mut()
            .find(|(limiter, _)| *limiter == verdict.limiter)
        {
            Some((_, verdicts)) => verdicts.push((verdict, cell)),
            None => by_limiter.push((verdict.limiter, vec![(verdict, cell)])),
        }
    }
    by_limiter.retain(|(limiter, verdicts)| {
        let trials: usize = verdicts.iter().map(|(_, cell)| cell.valid.len()).sum();
        let changes = matches!(limiter, Limiter::Cpu | Limiter::OtherPrograms);
        // A cell without a valid trial is told by why it has none.
        !are_repeated || !changes || trials == 0 || trials >= TRIALS_MIN
    });
    // What has nothing to mend is told where there is nothing else; chapters have it for every cell.
    let is_plain = |verdicts: &[(&Verdict, &CellOutcomes<'_>)]| {
        let cells = verdicts.iter().map(|(_, cell)| cell);
        let plain = cells.filter(|cell| round_trip::is_plain(cell)).count();
        verdicts[0].0.limiter == Limiter::RoundTrip && 2 * plain > verdicts.len()
    };
    if by_limiter.iter().any(|(_, verdicts)| !is_plain(verdicts)) {
        by_limiter.retain(|(_, verdicts)| !is_plain(verdicts));
    }
    by_limiter
        .into_iter()
        .filter_map(|(limiter, verdicts)| finding(limiter, verdicts, cells.len()))
        .collect()
}

fn finding(
    limiter: Limiter,
    verdicts: Vec<(&Verdict, &CellOutcomes<'_>)>,
    cells: usize,
) -> Option<Finding> {
    let same = verdicts.len();
    let mut titles: Vec<String> = Vec::new();
    for (_, cell) in &verdicts {
        if !titles.contains(&cell.experiment.title) {
            titles.push(cell.experiment.title.clone());
        }
    }
    let (shown, shown_cell) = verdicts
        .into_iter()
        .max_by(|a, b| a.0.weight.total_cmp(&b.0.weight))?;
    let experiment = shown_cell.experiment;
    let mut explanation = shown.explanation.clone();
    if cells > 1 {
        let levels = words::whole_cell(&shown_cell.cell);
        explanation += &format!(
            " It limits {same} of {cells} cells ({}); the one shown is: {levels}.",
            words::list(&titles)
        );
    }
    Some(Finding {
        id: format!("{}/limiter/{}", experiment.name, limiter_id(limiter)),
        chapter: experiment.chapter,
        kind: FindingKind::Limiter(limiter),
        claim: shown.claim.clone(),
        explanation,
        effect: shown.effect,
        evidence: shown.evidence.clone(),
    })
}
