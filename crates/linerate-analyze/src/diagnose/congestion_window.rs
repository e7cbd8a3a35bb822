//! The congestion window, after loss without a queue or by the algorithm's choice.
//!
//! That it limits is found in [`super::stream`]: only where the round trip is near its shortest, since
//! behind a queue a larger congestion window makes the queue longer and nothing faster.

use linerate_model::finding::{EvidenceList, Limiter};
use linerate_model::unit::Unit;

use super::limiter::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::words;

pub(super) fn tell(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let cwnd = cell.estimate(name::CWND)?;
    let lost =
        cell.mean(name::RETRANSMITTED).unwrap_or(0.0) - cell.mean(name::SPURIOUS).unwrap_or(0.0);
    let share = cell
        .estimate(name::RETRANSMITTED_SHARE)
        .filter(|_| lost >= 1.0);
    let (reason, explanation) = match share {
        Some(share) => (
            format!(
                ", which loss keeps small: {} of all segments were sent again while no queue was seen",
                words::percent(share.value)
            ),
            "The sender may have no more in flight than its congestion window, which shrinks on loss. The \
             round trip stayed near its shortest, so that no queue of this flow overflowed: frames are \
             damaged, or dropped by something that does not queue. Look at error counters along the way; \
             bbr hardly slows down for such loss.",
        ),
        None => (
            String::new(),
            "The sender may have no more in flight than its congestion window, and the round trip stayed \
             near its shortest: there was room on the path. Nothing was lost, so the window was still \
             growing from its start, or is clamped (ip route … cwnd).",
        ),
    };
    let more = [
        cell.evidence("share of segments sent again", name::RETRANSMITTED_SHARE),
        cell.evidence("segments sent again", name::RETRANSMITTED),
        cell.evidence("of them, those that had arrived (D-SACK)", name::SPURIOUS),
        cell.evidence("congestion window", name::CWND),
        cell.evidence("smoothed round trip", name::TCP_RTT),
        cell.evidence("shortest round trip", name::TCP_MIN_RTT),
    ];
    Some(Verdict {
        limiter: Limiter::CongestionWindow,
        claim: format!(
            "The congestion window limits throughput to {}: {} segments on average{reason}.",
            words::estimate(&throughput),
            words::number(Unit::Count, cwnd.value),
        ),
        explanation: explanation.to_owned(),
        effect: share.unwrap_or(cwnd),
        evidence: EvidenceList::new(
            cell.evidence("throughput", name::THROUGHPUT)?,
            more.into_iter().flatten().collect(),
        ),
        weight: share.map_or(0.0, |share| 1.0 + share.value),
    })
}
