//! The receiver's window.
//!
//! Rule: 1. the sender's own clock (tcpi_rwnd_limited) says that the peer's window held it for at
//! least half of the time, and 2. throughput is within 15 % of
//!
//!   connections × window / round trip      (bit/s, window in bits, round trip in seconds)
//!
//! with the window that the receiver advertised (tcpi_snd_wnd; the socket buffer asked for when
//! that was not read) and the smoothed round trip. Both are asked for, since a full link or a slow
//! reader also make the window run out.

use linerate_model::finding::{Evidence, EvidenceList, Limiter};
use linerate_model::unit::{Bytes, Nanos, Unit};
use linerate_model::wire::window_limit;

use super::limiter::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::study::point;
use crate::words;

/// Share of the time from which on waiting counts as what limits: more than anything else can.
pub(super) const WAITING_SHARE_MIN: f64 = 0.5;
/// Largest relative difference of measured and predicted throughput. The smoothed round trip and
/// the window are sampled every 100 ms, and delayed ACKs leave a window idle for a moment.
const PREDICTION_SHARE_MAX: f64 = 0.15;

pub(super) fn verdict(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let waiting = cell.estimate(name::RWND_LIMITED)?;
    if waiting.value < WAITING_SHARE_MIN {
        return None;
    }
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let rtt = cell
        .estimate(name::TCP_RTT)
        .filter(|rtt| rtt.value >= 1.0)?;
    let window = window_bytes(cell)?;
    let flows = f64::from(cell.workload.connections);
    let one = window_limit(
        Bytes(window.round() as u64),
        Nanos(rtt.value.round() as u64),
    );
    let predicted = flows * one.0;
    // Trial by trial, since the windows of trials may differ.
    let share = cell.derived(Unit::Ratio, |outcome| {
        let asked = cell
            .workload
            .options
            .socket_buffer
            .map(|buffer| buffer.0 as f64);
        let window = outcome.value(name::SEND_WINDOW).or(asked)?;
        let allowed = flows * 8e9 * window / outcome.value(name::TCP_RTT)?;
        Some(outcome.value(name::THROUGHPUT)? / allowed)
    })?;
    if !share.value.is_finite() || (share.value - 1.0).abs() > PREDICTION_SHARE_MAX {
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
