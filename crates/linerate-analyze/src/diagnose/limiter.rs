//! Limiters in order of precedence, and one finding for each of an experiment.
//!
//! Several rules may hold for one cell: a full link also fills the receiver's window, because its
//! queue makes the round trip longer until the window no longer suffices. The first rule of
//! [`RULES`] that holds is the limiter, for it is the one whose removal would help:
//!
//! 1. a full link, because nothing behind it can raise the number;
//! 2. a rate that was asked for, because then there is nothing to find;
//! 3. Nagle × delayed ACK, because its stalls look like a long round trip;
//! 4. our own worker, because a slow receiver fills windows and a slow sender empties them;
//! 5. the receiver's window and the send buffer, each by the kernel's own account and by
//!    arithmetic;
//! 6. TCP's own pacing, before the congestion window: an algorithm that paces keeps a window that
//!    is no limit, whatever is lost;
//! 7. the congestion window;
//! 8. the round trip, which limits whatever waits for one transaction at a time.

use linerate_model::experiment::Experiment;
use linerate_model::finding::{Estimate, EvidenceList, Finding, FindingKind, Limiter};

use super::{
    congestion_window, generator, link_rate, nagle_delayed_ack, pacing, receiver_window,
    round_trip, send_buffer,
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

type Rule = fn(&Dataset<'_>, &CellOutcomes<'_>) -> Option<Verdict>;

/// The rules in order of precedence.
const RULES: &[Rule] = &[
    link_rate::verdict,
    pacing::asked,
    nagle_delayed_ack::verdict,
    generator::verdict,
    receiver_window::verdict,
    send_buffer::verdict,
    pacing::own,
    congestion_window::verdict,
    round_trip::verdict,
];

/// Returns what limits `cell`, if a rule holds.
pub(crate) fn limiter_of(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    RULES.iter().find_map(|rule| rule(dataset, cell))
}

/// Returns a limiter's name for identifiers.
fn limiter_id(limiter: Limiter) -> &'static str {
    match limiter {
        Limiter::LinkRate => "link-rate",
        Limiter::ReceiverWindow => "receiver-window",
        Limiter::SendBuffer => "send-buffer",
        Limiter::CongestionWindow => "congestion-window",
        Limiter::Generator => "generator",
        Limiter::RoundTrip => "round-trip",
        Limiter::Pacing => "pacing",
        Limiter::NagleDelayedAck => "nagle-delayed-ack",
    }
}

/// Returns a limiter in words.
pub(crate) fn limiter_title(limiter: Limiter) -> &'static str {
    match limiter {
        Limiter::LinkRate => "the link's rate",
        Limiter::ReceiverWindow => "the receiver's window",
        Limiter::SendBuffer => "the send buffer",
        Limiter::CongestionWindow => "the congestion window",
        Limiter::Generator => "our own worker",
        Limiter::RoundTrip => "the round trip",
        Limiter::Pacing => "pacing",
        Limiter::NagleDelayedAck => "Nagle waiting for a delayed ACK",
    }
}

/// Returns one finding for each limiter of each experiment.
pub(super) fn findings(dataset: &Dataset<'_>) -> Vec<Finding> {
    let experiments = &dataset.recording.document.plan.experiments;
    experiments
        .iter()
        .flat_map(|experiment| of_experiment(dataset, experiment))
        .collect()
}

fn of_experiment(dataset: &Dataset<'_>, experiment: &Experiment) -> Vec<Finding> {
    let cells = dataset.cells_of(&experiment.name);
    let mut by_limiter: Vec<(Limiter, Vec<(Verdict, &CellOutcomes<'_>)>)> = Vec::new();
    for cell in &cells {
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
    by_limiter
        .into_iter()
        .filter_map(|(limiter, verdicts)| finding(experiment, limiter, verdicts, cells.len()))
        .collect()
}

fn finding(
    experiment: &Experiment,
    limiter: Limiter,
    verdicts: Vec<(Verdict, &CellOutcomes<'_>)>,
    cells: usize,
) -> Option<Finding> {
    let same = verdicts.len();
    let (shown, shown_cell) = verdicts
        .into_iter()
        .max_by(|a, b| a.0.weight.total_cmp(&b.0.weight))?;
    let mut explanation = shown.explanation;
    if cells > 1 {
        let levels = words::whole_cell(&shown_cell.cell);
        let share = match same == cells {
            true => format!("all {cells} cells"),
            false => format!("{same} of the {cells} cells"),
        };
        explanation += &format!(" It limits {share}; the one shown is: {levels}.");
    }
    Some(Finding {
        id: format!("{}/limiter/{}", experiment.name, limiter_id(limiter)),
        chapter: experiment.chapter,
        kind: FindingKind::Limiter(limiter),
        claim: shown.claim,
        explanation,
        effect: shown.effect,
        evidence: shown.evidence,
    })
}
