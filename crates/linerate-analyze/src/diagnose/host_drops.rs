//! Segments are dropped inside a host, while no queue on the way is full.
//!
//! What the sending host's queueing discipline drops is not in TCP's count of segments sent again: it
//! was never counted as sent. What a device or a CPU's backlog drops is.

use linerate_model::finding::{EvidenceList, Limiter};
use linerate_model::unit::Unit;

use super::limiter::Verdict;
use crate::dataset::CellOutcomes;
use crate::reduce::name;
use crate::words;

/// The places, with what helps there.
const PLACES: &[(&str, &str, &str)] = &[
    (
        name::DROPPED_QDISC,
        "by the sending host's queueing discipline",
        "`tc -s qdisc` names it; its limit or its rate is too small.",
    ),
    (
        name::DROPPED_DEVICE,
        "by a device of the hosts",
        "`ip -s link` names it; a longer ring (ethtool -G) takes bursts, more queues or another CPU for \
         its interrupts take load.",
    ),
    (
        name::DROPPED_BACKLOG,
        "from the backlog of a CPU of the receiving host",
        "net.core.netdev_max_backlog takes longer bursts; more CPUs for packets (RPS) take load.",
    ),
];

pub(super) fn tell(cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let counted = PLACES
        .iter()
        .filter_map(|place| Some((place, cell.estimate(place.0)?)));
    let ((response, place, advice), drops) =
        counted.max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let more = [
        cell.evidence("packets dropped there, a trial", response),
        cell.evidence("segments sent again", name::RETRANSMITTED),
        cell.evidence("smoothed round trip", name::TCP_RTT),
        cell.evidence("shortest round trip", name::TCP_MIN_RTT),
    ];
    Some(Verdict {
        limiter: Limiter::HostDrops,
        claim: format!(
            "Drops inside a host limit throughput to {}: {} packets a trial were dropped {place}.",
            words::estimate(&throughput),
            words::number(Unit::Count, drops.value),
        ),
        explanation: format!(
            "No queue on the way was full meanwhile: the round trip stayed near its shortest. {advice}"
        ),
        effect: drops,
        evidence: EvidenceList::new(
            cell.evidence("throughput", name::THROUGHPUT)?,
            more.into_iter().flatten().collect(),
        ),
        weight: drops.value,
    })
}
