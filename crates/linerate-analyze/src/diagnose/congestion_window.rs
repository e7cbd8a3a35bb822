//! The congestion window, after loss or by the algorithm's choice.
//!
//! Rule: either 1. at least one data segment in a thousand was sent again, and the congestion
//! window does not allow more than twice the throughput (where it was read), or 2. data was
//! outstanding for at least 90 % of the time and throughput is within 15 % of
//! connections × congestion window × segment / round trip. The receiver's window and the send
//! buffer must not be what the sender waited for; their rules come first.

use linerate_model::finding::{Estimate, Evidence, EvidenceList, Limiter};
use linerate_model::unit::Unit;

use super::limiter::Verdict;
use super::link_rate::share_of;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::study::point;
use crate::words;

/// Share of segments sent again from which on loss shapes the congestion window: at 0.1 % a
/// loss-based algorithm keeps a mean window of about 1.22/√p = 39 segments (Mathis, Semke, Mahdavi
/// and Ott, CCR 27(3), 1997), below what a gigabit at a millisecond needs.
const RETRANSMITTED_SHARE_MIN: f64 = 0.001;
/// Quotient of predicted and measured throughput from which on the congestion window is roomy: a
/// window that is halved on loss is within a factor of two of what is in use.
const ROOMY_QUOTIENT_MIN: f64 = 2.0;
/// Share of the time with data outstanding from which on the sender had always something to send.
const BUSY_SHARE_MIN: f64 = 0.9;
/// Largest relative difference of measured and predicted throughput.
const PREDICTION_SHARE_MAX: f64 = 0.15;

pub(super) fn verdict(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let predicted = predicted_bps(cell);
    let lost = cell.estimate(name::RETRANSMITTED_SHARE);
    let (reason, effect, weight) = match lost {
        Some(lost)
            if lost.value >= RETRANSMITTED_SHARE_MIN && !is_roomy(&throughput, predicted) =>
        {
            (
                format!(
                    "{} of all segments were sent again",
                    words::percent(lost.value)
                ),
                lost,
                1.0,
            )
        }
        _ => by_choice(cell, &throughput, predicted)?,
    };
    let cwnd = cell.mean(name::CWND);
    let held = cwnd.map_or(String::new(), |cwnd| {
        format!(
            ", with a mean congestion window of {} segments",
            Unit::Count.display(cwnd)
        )
    });
    let computed = predicted.map(|predicted| Evidence {
        what: "throughput that congestion window and round trip allow (computed)".to_owned(),
        estimate: point(predicted, Unit::BitsPerSecond),
        trials: cell.trials(),
    });
    let more = [
        cell.evidence("share of segments sent again", name::RETRANSMITTED_SHARE),
        cell.evidence("segments sent again", name::RETRANSMITTED),
        cell.evidence("congestion window", name::CWND),
        computed,
    ];
    Some(Verdict {
        limiter: Limiter::CongestionWindow,
        claim: format!(
            "The congestion window limits throughput to {}: {reason}{held}.",
            words::estimate(&throughput)
        ),
        explanation: "The sender may have no more in flight than its congestion window, which \
                      shrinks on loss and grows with each acknowledgement. Where segments were sent \
                      again, a queue on the way overflowed or frames were damaged."
            .to_owned(),
        effect,
        evidence: EvidenceList::new(
            cell.evidence("throughput", name::THROUGHPUT)?,
            more.into_iter().flatten().collect(),
        ),
        weight: weight + effect.value,
    })
}

/// The congestion window allows so much more that it cannot be what limits.
pub(super) fn is_roomy(throughput: &Estimate, predicted: Option<f64>) -> bool {
    predicted.is_some_and(|predicted| predicted > ROOMY_QUOTIENT_MIN * throughput.value)
}

fn by_choice(
    cell: &CellOutcomes<'_>,
    throughput: &Estimate,
    predicted: Option<f64>,
) -> Option<(String, Estimate, f64)> {
    let share = share_of(throughput, predicted?);
    let busy = cell.mean(name::BUSY)?;
    let fits = (share.value - 1.0).abs() <= PREDICTION_SHARE_MAX;
    (fits && busy >= BUSY_SHARE_MIN).then(|| {
        let reason = format!(
            "congestion window and round trip predict {}",
            Unit::BitsPerSecond.display(predicted.unwrap_or(0.0))
        );
        (reason, share, 0.0)
    })
}

/// connections × congestion window × segment × 8 / round trip.
pub(super) fn predicted_bps(cell: &CellOutcomes<'_>) -> Option<f64> {
    let segment = cell.mean(name::SEND_MSS)?;
    let rtt = cell.mean(name::TCP_RTT).filter(|rtt| *rtt >= 1.0)?;
    let flows = f64::from(cell.workload.connections);
    let predicted = flows * cell.mean(name::CWND)? * segment * 8e9 / rtt;
    (predicted > 0.0).then_some(predicted)
}
