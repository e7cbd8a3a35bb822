//! Transactions that wait for a retransmission timeout.
//!
//! A segment that is lost with nothing behind it is noticed by a timer only: a loss probe or the
//! retransmission timeout, 200 ms at the least where one segment is out. The median does not show it,
//! the mean and the tail do.
//!
//! Rule for request/response and connect rate: transactions that took as much longer than the fastest
//! tenth make up at least a quarter of the mean round trip, there are at least five, and the timers
//! (TCPTimeouts and TCPLossProbes of the hosts with flows) fired about as often: the 95 % interval of
//! their ratio meets 0.5 to 1.5. Where these were not read, the flows' own retransmissions stand for
//! them. Not of several flows with a queue on their way: they fill it while one of them waits. A counter that rests means another cause, and so do flows of request/response that sent nothing again: the
//! timers are those of other connections.

use linerate_model::finding::EvidenceList;
use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;
use linerate_model::unit::Unit;

use super::path_rate::BLOATED_QUOTIENT_MIN;
use super::rule::{Judge, Rule};
use super::verdict::Verdict;
use crate::compare::poisson;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::words;

/// Part of the mean round trip from which on timeouts are what holds the rate.
const SHARE_MIN: f64 = 0.25;
/// What the smoothed round trip has above the shortest from which on a queue stands on the way of several flows.
const SHARED_QUEUE_NS_MIN: f64 = 1e6;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::Timeouts,
    needs: "transactions 150 ms above the fastest tenth, and the kernel's timers as often",
    importance: 1,
    explains_failure: true,
    judge: Judge::Cell(verdict),
    evident: None,
    next: |_| {
        let words = "find the loss: repeat with `--capture -o DIR`, then read its report";
        Some(words.to_owned())
    },
};

/// Whether a queue may stand on the way of several flows: while one waits for a timer, others fill the path, which drops
/// what is more.
fn may_fill_path(cell: &CellOutcomes<'_>) -> bool {
    let trips = cell
        .mean(name::PATH_RTT)
        .zip(cell.mean(name::PATH_RTT_LOADED));
    let is_queue = |(path, loaded): (f64, f64)| {
        loaded >= BLOATED_QUOTIENT_MIN * path && loaded - path >= SHARED_QUEUE_NS_MIN
    };
    cell.workload.connections > 1 && trips.is_none_or(is_queue)
}

fn verdict(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    if !cell.is_rr() || !cell.workload.manner.transport.is_tcp() {
        return None;
    }
    let share = cell.derived(Unit::Ratio, |outcome| {
        let mean = outcome.value(name::RTT_MEAN).filter(|mean| *mean > 0.0)?;
        Some(outcome.value(name::RTT_SLOW)? / mean)
    })?;
    if share.value < SHARE_MIN || may_fill_path(cell) {
        return None;
    }
    let slow = cell.sum(name::SLOW)?;
    let (fired, what) = match (
        cell.sum(name::TIMERS_FIRED),
        cell.sum(name::RETRANSMITTED_BOTH),
    ) {
        (Some(fired), _) => (fired, "TCP's retransmission and loss-probe timers fired"),
        (None, Some(again)) => (again, "segments were retransmitted"),
        (None, None) => return None,
    };
    // The timers are those of all connections of the hosts. Segments that were sent again are not, but handshakes have none.
    let again = cell.sum(name::RETRANSMITTED_BOTH);
    // TCP_INFO of MPTCP is that of its first path.
    let is_one_path = cell.workload.manner.transport == Transport::Tcp;
    let handshakes = cell.workload.traffic.is_placed();
    let is_of_others =
        !handshakes && is_one_path && again.is_some_and(|again| poisson::rests(again, slow));
    if !poisson::explains(fired, slow) || is_of_others {
        return None;
    }
    let timed = cell.sum(name::TRANSACTIONS_TIMED)?;
    let mean = cell.estimate(name::RTT_MEAN)?;
    let dropped = cell.sum(name::LISTEN_DROPS);
    let are_dropped = dropped.is_some_and(|dropped| poisson::explains(dropped, slow));
    let why = if handshakes && are_dropped {
        " The listener dropped about as many: its queue was full, so clients had to retransmit the SYN."
    } else {
        ""
    };
    let more = [
        cell.evidence(
            "retransmission timeouts and loss probes",
            name::TIMERS_FIRED,
        ),
        cell.evidence(
            "segments retransmitted by both ends",
            name::RETRANSMITTED_BOTH,
        ),
        cell.evidence(
            "transactions slower than the others by that much",
            name::SLOW,
        ),
        cell.evidence("median round trip", name::RTT_P50),
        cell.evidence("99th percentile of the round trip", name::RTT_P99),
        cell.evidence("connections dropped by a full listener", name::LISTEN_DROPS)
            .filter(|_| handshakes),
    ];
    Some(Verdict {
        limiter: Limiter::Timeouts,
        claim: format!(
            "Retransmission timers hold up {} of {}: they took 150 ms or more longer \
             than the fastest, and {what} {}. They make {} of the mean round trip of {}.",
            words::number(Unit::Count, slow),
            words::things(timed, "transaction"),
            words::things(fired, "time"),
            words::percent(share.value),
            words::estimate(&mean),
        ),
        explanation: format!(
            "A lost segment with nothing sent after it is detected only by a timer, of at least 200 ms. \
             Find where segments are lost.{why}"
        ),
        effect: share,
        evidence: EvidenceList::new(
            cell.evidence("mean round trip", name::RTT_MEAN)?,
            more.into_iter().flatten().collect(),
        ),
        weight: share.value,
    })
}
