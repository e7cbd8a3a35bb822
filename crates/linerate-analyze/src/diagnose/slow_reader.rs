//! The program at the receiver leaves data unread, or reads nothing at all.
//!
//! The sender waits for a window that is small because the buffer behind it is full. A larger buffer
//! fills as well. In TCP_INFO of the sender a slow reader looks like a shaped path; only the bytes that
//! it left tell. One that has stopped shows at the sender, too: the window stays closed (RFC 9293, 3.8.6.1),
//! which no path does. One that pauses again and again for less than readings are apart shows by what its window would
//! allow: the window holds the sender all the time, at the shortest round trip, and yet the rate is far below window ÷ round
//! trip, while what is sent between the pauses is delivered as fast as that (1.8 times the mean, of a reader that was
//! stopped half of the time). A path that pauses makes round trips longer.

use linerate_model::limiter::Limiter;
use linerate_model::unit::Unit;

use super::evidence;
use super::path_rate::HELD_ALWAYS_MIN;
use super::receiver_window::OFFERED_QUOTIENT_MIN;
use super::rule::{Judge, Rule};
use super::trial::{
    CEILING_MAX, FILLED_SHARE_MIN, MOST, NEAR_QUOTIENT_MAX, RATIO_NS_MIN, TrialView,
};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Amount, Values, name};
use crate::words;

/// Bytes of buffer below which it is nearly always full on a fast path, however prompt the reader is.
const READER_BUFFER_MIN: f64 = 32_768.0;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::SlowReader,
    needs: "more than half of the receive buffer is payload that was not read",
    importance: 1,
    explains_failure: true,
    judge: Judge::Cause(reader_is_behind, tell),
    evident: None,
    next: |_| {
        let words = "check why the receiver reads slowly: CPU, disk, a single thread";
        Some(words.to_owned())
    },
};

fn reader_is_behind(trial: &TrialView<'_>) -> bool {
    let unread = trial.reaches(name::UNREAD_SHARE, MOST);
    let enough = trial.reaches(name::UNREAD, READER_BUFFER_MIN);
    let is_long = trial
        .setup
        .shortest_ns()
        .is_some_and(|ns| ns >= RATIO_NS_MIN);
    has_stopped_by_itself(trial)
        || (unread && (enough || is_long) && trial.window_is_full())
        || pauses(trial)
}

/// Whether the reader pauses again and again: its window allows more than comes, though it holds the sender all the time.
fn pauses(trial: &TrialView<'_>) -> bool {
    let window = trial.value(name::SEND_WINDOW);
    let offered = trial.value(name::OFFERED_WINDOW).zip(window);
    // That of a proxy is not this reader's.
    let is_own = offered.is_some_and(|(offered, seen)| offered < OFFERED_QUOTIENT_MIN * seen);
    let ceiling = window.and_then(|bytes| trial.ceiling(bytes));
    is_own
        && trial.is_long()
        && trial.is_within(NEAR_QUOTIENT_MAX)
        && trial.reaches(name::RWND_LIMITED, HELD_ALWAYS_MIN)
        && trial.reaches(name::WINDOW_FILLED, FILLED_SHARE_MIN)
        && ceiling.is_some_and(|ceiling| ceiling > CEILING_MAX)
        && trial.losses().stays_below(1.0)
        && trial.pauses()
}

/// Whether the reader stood still for most of the time, and no worker waited for a CPU for as long.
fn has_stopped_by_itself(trial: &TrialView<'_>) -> bool {
    trial.reaches(name::WINDOW_CLOSED, MOST) && waits_for_nothing(trial) == Some(true)
}

/// Whether the window was closed for longer than any worker waited for a CPU.
pub(super) fn waits_for_nothing(trial: &TrialView<'_>) -> Option<bool> {
    let closed = trial.value(name::WINDOW_CLOSED)?;
    Some(closed > trial.value(name::WORKER_WAITED)?)
}

/// For which share of the time the reader stood still at the most: what the sender waited for the window, where nobody knows
/// when that was closed.
pub(super) fn stopped_at_most(values: &impl Values) -> Amount {
    let closed = values.value(name::WINDOW_CLOSED);
    closed.or(values.value(name::RWND_LIMITED)).into()
}

fn tell(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let stopped = cell
        .estimate(name::WINDOW_CLOSED)
        .filter(|closed| closed.value >= MOST);
    let unread = cell.estimate(name::UNREAD_SHARE)?;
    let share = stopped.unwrap_or(unread);
    let (how, explanation) = match stopped {
        None if unread.value < MOST => (
            format!(
                "the receive window held the sender {} of the time and allows more, and what came between pauses was \
                 delivered at {}",
                words::percent(cell.mean(name::RWND_LIMITED)?),
                words::number(Unit::BitsPerSecond, cell.mean(name::DELIVERY_RATE)?),
            ),
            "It reads in bursts: while it does not, the receive buffer fills. It is stopped again and again, or waits \
             for something else: a disk, a timer, a lock, a peer of its own. A larger buffer outlasts longer pauses.",
        ),
        Some(closed) => (
            format!(
                "it read nothing for {} of the time, in which the receive window was closed",
                words::percent(closed.value)
            ),
            "The receive buffer is full, and no data is taken out of it. The program was stopped, or \
             waits for something else: a debugger, a disk, a lock, a peer of its own. A larger buffer would \
             fill as well.",
        ),
        None => (
            format!(
                "{} of each flow wait unread, {} of the receive buffer",
                words::number(Unit::Bytes, cell.mean(name::UNREAD)?),
                words::percent(share.value),
            ),
            "TCP has delivered this payload, but the program has not read it. A larger receive buffer \
             would fill as well; a faster reader helps.",
        ),
    };
    Some(Verdict {
        limiter: Limiter::SlowReader,
        claim: format!(
            "The receiving program limits throughput to {}: {how}.",
            words::estimate(&throughput),
        ),
        explanation: explanation.to_owned(),
        effect: share,
        evidence: cell.proof(&[
            ("throughput", name::THROUGHPUT),
            (
                "share of the time with a closed receive window",
                name::WINDOW_CLOSED,
            ),
            ("unread payload of each flow", name::UNREAD),
            evidence::UNREAD,
            evidence::AT_WINDOW,
            evidence::WORKER_RAN,
        ])?,
        weight: share.value,
    })
}
