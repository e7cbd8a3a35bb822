//! What holds a stream over TCP, by evidence that tells causes apart, as shares of the time.
//!
//! Congestion window ÷ round trip, window ÷ round trip and what is in flight ÷ round trip equal the
//! throughput whatever the bottleneck is (Little's law), so none of them is used. Each trial is
//! judged by itself; of these patterns the first that is seen explains the others:
//!
//! 1. *reader*: the sender waits for the window, and more than half of the receiver's buffer is
//!    payload that the program there has not read; or the window is closed for most of the time;
//! 2. *receiver's window*: it is full, the round trip is near its shortest, and window ÷ **shortest**
//!    round trip is within a quarter of the rate. Behind a full queue the window is full as well, but
//!    allows more than the rate once the queue is taken away. On paths below half a millisecond the
//!    shortest round trip is luck of the scheduler: there it takes a small buffer that was set, and the
//!    kernel's clock;
//! 3. *send buffer*: the kernel's clock (tcpi_sndbuf_limited) without a queue; or, since that clock
//!    misses a writer whose data went out before it blocked, by arithmetic: always busy, nothing
//!    unsent, and what is in flight is what the buffer holds and well below both windows;
//! 4. *drops inside a host* that no queue on the way explains;
//! 5. *path*: data waits in a queue, or the rate, or all that passes a shared device, is as steady as a line's; the reader is not behind, no end pauses. All windows and buffers
//!    hold rate × smoothed round trip, and so allow at least smoothed ÷ shortest of the rate;
//! 6. *application*: of one flow nothing is outstanding for 30 % of the time and nothing unsent, and what is sent is
//!    delivered at more than 1.3 times the mean rate;
//! 7. *congestion window after loss* without a queue: segments are lost (what D-SACK says had arrived is
//!    not), the window allows less than twice the rate at the shortest round trip, and the rate is not far
//!    below what such loss allows (Mathis, Semke, Mahdavi and Ott, CCR 27(3), 1997);
//! 8. *pacing* by a congestion control that paces, without a queue: with one it tracks a bottleneck;
//! 9. *congestion window* without loss: full, the round trip near its shortest.
//!
//! The kernel's clocks share the time out: idle, waiting for the window, waiting for the send buffer,
//! and the rest. The time at a closed window belongs to 1, that at another to 1, 2 or 5, that at
//! the buffer to 3 or 5, the rest to what fits the trial, idle time to 6; what nothing fits is unknown. A pattern is seen
//! where it has the largest share, and no more than a fifth is unknown.

use std::collections::BTreeSet;

use linerate_model::finding::{Estimate, Evidence};
use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;
use linerate_model::unit::Unit;

use super::rule::{Judge, Rule};
use super::slow_reader::waits_for_nothing;
use super::trial::{Setup, TrialView};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Outcome, Values, name};
use crate::words;

/// Unknown share of the time up to which there is a verdict.
const UNKNOWN_SHARE_MAX: f64 = 0.2;
/// Share from which on a limiter is worth a word beside the first.
const BESIDE_SHARE_MIN: f64 = 0.1;

/// The time by limiter; what is missing to 1 is unknown.
fn shares(trial: &TrialView<'_>, cause: Option<Limiter>) -> Vec<(Limiter, f64)> {
    let closed = trial.amount(name::WINDOW_CLOSED).least();
    let of_closed = Some(Limiter::SlowReader).filter(|_| waits_for_nothing(trial) == Some(true));
    if trial.rate().is_none() {
        let whole = of_closed.filter(|_| closed > 0.0);
        return whole.map(|limiter| (limiter, closed)).into_iter().collect();
    }
    let at_window = (trial.amount(name::RWND_LIMITED).least() - closed).max(0.0);
    let at_buffer = trial.amount(name::SNDBUF_LIMITED).least();
    let at_buffer = at_buffer.min(1.0 - closed - at_window);
    let held = closed + at_window + at_buffer;
    // What is left of a clock that was not read is nobody's.
    let busy = trial.held().known().and(trial.busy().known());
    let rest = busy.map_or(0.0, |busy| (busy - held).max(0.0));
    let idle = busy.map_or(0.0, |_| 1.0 - held - rest);
    let of_window = match cause {
        Some(Limiter::SlowReader | Limiter::ReceiverWindow | Limiter::PathRate) => cause,
        _ => None,
    };
    let of_buffer = match cause {
        Some(Limiter::PathRate) => cause,
        _ => Some(Limiter::SendBuffer).filter(|_| !trial.may_be_queued() && !trial.collapses()),
    };
    let of_idle = cause.filter(|cause| *cause == Limiter::Application);
    let parts = [
        (of_closed, closed),
        (of_window, at_window),
        (of_buffer, at_buffer),
        (cause, rest),
        (of_idle, idle),
    ];
    parts
        .into_iter()
        .filter_map(|(limiter, share)| Some((limiter?, share)))
        .filter(|(_, share)| *share > 0.0)
        .collect()
}

/// Whether a limiter that fits a trial, or not, holds most of its time, and little of that is nobody's.
pub(super) fn holds(trial: &TrialView<'_>, fits: bool, limiter: Limiter) -> bool {
    let shares = shares(trial, fits.then_some(limiter));
    let own = share_in(&shares, limiter);
    let known: f64 = shares.iter().map(|(_, share)| share).sum();
    let is_most = shares
        .iter()
        .all(|(other, _)| share_in(&shares, *other) <= own);
    own > 0.0 && is_most && 1.0 - known <= UNKNOWN_SHARE_MAX
}

/// The shares of each valid trial, in their order; absent where the traffic is no stream over TCP.
fn by_trial(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    fits: fn(&TrialView<'_>) -> bool,
    limiter: Limiter,
) -> Option<Vec<Vec<(Limiter, f64)>>> {
    if !cell.workload.traffic.is_stream() || cell.workload.manner.transport != Transport::Tcp {
        return None;
    }
    let setup = &Setup::of(dataset, cell);
    let trials = cell
        .valid
        .iter()
        .map(|outcome| TrialView { outcome, setup });
    let cause = |trial: &TrialView<'_>| fits(trial).then_some(limiter);
    Some(trials.map(|trial| shares(&trial, cause(&trial))).collect())
}

/// What held the streams of `cell`, as shares of the time over all trials, the largest first; what is
/// missing to 1 is unknown.
fn limiters_of(
    cell: &CellOutcomes<'_>,
    trials: &[Vec<(Limiter, f64)>],
) -> Vec<(Limiter, Estimate)> {
    let named: BTreeSet<Limiter> = trials
        .iter()
        .flatten()
        .map(|(limiter, _)| *limiter)
        .collect();
    let share = |limiter: Limiter| {
        let at = |outcome: &Outcome| {
            let of_trial = cell
                .valid
                .iter()
                .position(|valid| valid.trial == outcome.trial)?;
            Some(share_in(&trials[of_trial], limiter))
        };
        let estimate = cell.derived(Unit::Ratio, at)?;
        Some((
            limiter,
            estimate.map(Unit::Ratio, |share| share.clamp(0.0, 1.0)),
        ))
    };
    let mut shares: Vec<(Limiter, Estimate)> = named.into_iter().filter_map(share).collect();
    shares.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    shares
}

fn share_in(trial: &[(Limiter, f64)], limiter: Limiter) -> f64 {
    let of_limiter = trial.iter().filter(|(other, _)| *other == limiter);
    of_limiter.map(|(_, share)| share).sum()
}

/// Returns what is told of a limiter that holds the streams of `cell`, with the shares of the time that others have.
pub(super) fn told(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>, rule: &Rule) -> Option<Verdict> {
    let Judge::Cause(fits, tell) = rule.judge else {
        return None;
    };
    let trials = by_trial(dataset, cell, fits, rule.limiter)?;
    let mut shares = limiters_of(cell, &trials);
    // What is told of comes first, whatever has more of the time.
    shares.sort_by_key(|(limiter, _)| *limiter != rule.limiter);
    Some(beside(tell(dataset, cell)?, cell, &shares))
}

/// Adds the shares of the time to what is told.
fn beside(
    mut verdict: Verdict,
    cell: &CellOutcomes<'_>,
    shares: &[(Limiter, Estimate)],
) -> Verdict {
    let worth = |share: &&(Limiter, Estimate)| share.1.value >= BESIDE_SHARE_MIN;
    let others: Vec<String> = shares
        .iter()
        .skip(1)
        .filter(worth)
        .map(|(limiter, share)| format!("{} {}", limiter.title(), words::percent(share.value)))
        .collect();
    if let (false, Some((_, share))) = (others.is_empty(), shares.first()) {
        verdict.explanation += &format!(
            " It held {} of the time, {}.",
            words::percent(share.value),
            words::list(&others)
        );
    }
    let evidence = shares
        .iter()
        .filter(worth)
        .map(|(limiter, share)| Evidence {
            what: format!("share of the time whose cause is {}", limiter.title()),
            estimate: *share,
            trials: cell.trials(),
        });
    verdict.evidence = verdict.evidence.with(evidence);
    verdict
}
