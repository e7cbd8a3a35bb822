//! The receiver's window.
//!
//! Rule: 1. the sender's own clock (tcpi_rwnd_limited) says that the peer's window held it for at
//! least half of the time, or for at least a tenth of it while at least 80 % of the window was in
//! flight on average; and 2. throughput is within 15 % of
//!
//!   connections × window / round trip      (bit/s, window in bits, round trip in seconds)
//!
//! with the window that the receiver advertised (tcpi_snd_wnd; the socket buffer asked for when
//! that was not read) and the smoothed round trip, trial by trial. The second half of 1 is there
//! because the clock runs only while data waits in the send buffer: with buffers of the same size
//! at both ends the sender refills just in time, the window is full and the clock runs for a third
//! of the time only. 2 is asked for since a full link or a slow reader also make the window run
//! out.

use linerate_model::finding::{Evidence, EvidenceList, Limiter};
use linerate_model::unit::{Bytes, Nanos, Unit};
use linerate_model::wire::window_limit;

use super::limiter::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Outcome, name};
use crate::study::point;
use crate::words;

/// Share of the time from which on waiting counts as what limits: more than anything else can.
pub(super) const WAITING_SHARE_MIN: f64 = 0.5;
/// The same where the window is seen to be full: more than a start or a lone loss explains.
const WAITING_SHARE_MIN_FILLED: f64 = 0.1;
/// Share of the window in flight from which on it is full: whole segments leave up to a segment of
/// a small window unused, and each ACK opens it for a moment.
const FILLED_SHARE_MIN: f64 = 0.8;
/// Largest relative difference of measured and predicted throughput. The smoothed round trip and
/// the window are sampled every 100 ms, and delayed ACKs leave a window idle for a moment.
const PREDICTION_SHARE_MAX: f64 = 0.15;

pub(super) fn verdict(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let waiting = cell.estimate(name::RWND_LIMITED)?;
    if !is_held(waiting.value, cell.mean(name::WINDOW_FILLED)) {
        return None;
    }
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let rtt = cell
        .estimate(name::TCP_RTT)
        .filter(|rtt| rtt.value >= 1.0)?;
    let window = window_bytes(cell)?;
    // Trial by trial, since the windows of trials may differ.
    let allowed = |outcome: &Outcome| allowed_bps(cell, outcome);
    let predicted = cell.derived(Unit::BitsPerSecond, allowed)?.value;
    let share = cell.derived(Unit::Ratio, |outcome| {
        Some(outcome.value(name::THROUGHPUT)? / allowed(outcome)?)
    })?;
    if (share.value - 1.0).abs() > PREDICTION_SHARE_MAX {
        return None;
    }
    let times = match cell.workload.connections {
        1 => String::new(),
        flows => format!("{flows} × "),
    };
    let computed = Evidence {
        what: "throughput that window and round trip allow (computed)".to_owned(),
        estimate: point(predicted, Unit::BitsPerSecond),
        trials: cell.trials(),
    };
    let more = [
        Some(computed),
        cell.evidence("window that the receiver advertises", name::SEND_WINDOW),
        cell.evidence("smoothed round trip", name::TCP_RTT),
        cell.evidence("share of the window in flight", name::WINDOW_FILLED),
        cell.evidence(
            "share of the time held by the receiver's window",
            name::RWND_LIMITED,
        ),
    ];
    Some(Verdict {
        limiter: Limiter::ReceiverWindow,
        claim: format!(
            "The receiver's window limits throughput to {}: {times}{} per round trip of {} predict {}, \
             and the sender waited for the window {} of the time.",
            words::estimate(&throughput),
            words::number(Unit::Bytes, window),
            words::number(Unit::Nanoseconds, rtt.value),
            Unit::BitsPerSecond.display(predicted),
            words::percent(waiting.value),
        ),
        explanation:
            "No more than one window can be on its way at a time. A larger receive buffer \
                      (SO_RCVBUF or tcp_rmem) raises throughput in proportion until something else \
                      limits it."
                .to_owned(),
        effect: share,
        evidence: EvidenceList::new(
            cell.evidence("throughput", name::THROUGHPUT)?,
            more.into_iter().flatten().collect(),
        ),
        weight: waiting.value,
    })
}

/// connections × window / round trip of one trial.
fn allowed_bps(cell: &CellOutcomes<'_>, outcome: &Outcome) -> Option<f64> {
    let asked = cell.workload.options.socket_buffer;
    let window = outcome
        .value(name::SEND_WINDOW)
        .or(asked.map(|buffer| buffer.0 as f64))?;
    let rtt = outcome.value(name::TCP_RTT).filter(|rtt| *rtt >= 1.0)?;
    let one = window_limit(Bytes(window.round() as u64), Nanos(rtt.round() as u64));
    let allowed = f64::from(cell.workload.connections) * one.0;
    (allowed > 0.0).then_some(allowed)
}

fn is_held(waiting: f64, filled: Option<f64>) -> bool {
    let filled = filled.is_some_and(|filled| filled >= FILLED_SHARE_MIN);
    waiting >= WAITING_SHARE_MIN || (filled && waiting >= WAITING_SHARE_MIN_FILLED)
}

/// Returns the window that the receiver offers each flow.
pub(crate) fn window_bytes(cell: &CellOutcomes<'_>) -> Option<f64> {
    let asked = || {
        cell.workload
            .options
            .socket_buffer
            .map(|buffer| buffer.0 as f64)
    };
    cell.mean(name::SEND_WINDOW)
        .or_else(asked)
        .filter(|bytes| *bytes >= 1.0)
}
