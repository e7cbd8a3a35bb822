//! The sender's buffer: what is told of it.
//!
//! That it limits is found in [`super::stream`]: by the sender's own clock (tcpi_sndbuf_limited), or by
//! what is in flight. The buffer is needed twice: for what is unacknowledged and for what waits to be sent.

use linerate_model::finding::{EvidenceList, Limiter};
use linerate_model::unit::Unit;

use super::limiter::Verdict;
use super::stream::auto_buffer;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::words;

pub(super) fn tell(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let waiting = cell.estimate(name::SNDBUF_LIMITED)?;
    let buffer = match cell.workload.options.socket_buffer {
        Some(buffer) => format!(" of {buffer}"),
        None => String::new(),
    };
    let flight = cell.mean(name::IN_FLIGHT).map_or(String::new(), |bytes| {
        format!(
            "; {} of each flow were in flight, and {} waited to be sent",
            words::number(Unit::Bytes, bytes),
            words::number(Unit::Bytes, cell.mean(name::UNSENT).unwrap_or(0.0))
        )
    });
    let more = [
        cell.evidence(
            "share of the time held by the send buffer",
            name::SNDBUF_LIMITED,
        ),
        cell.evidence("payload in flight of each flow", name::IN_FLIGHT),
        cell.evidence("payload that waits unsent", name::UNSENT),
        cell.evidence("window that the receiver advertises", name::SEND_WINDOW),
        cell.evidence("smoothed round trip", name::TCP_RTT),
        cell.evidence("shortest round trip", name::TCP_MIN_RTT),
    ];
    let limit = auto_buffer(dataset, "tcp_wmem").map_or(String::new(), |bytes| {
        format!(" ({} here)", words::number(Unit::Bytes, bytes))
    });
    let what = match cell.workload.options.socket_buffer {
        Some(_) => "SO_SNDBUF was set, which ends auto-tuning: leave it out or set a larger one."
            .to_owned(),
        None => format!(
            "It grows by itself up to the third value of net.ipv4.tcp_wmem{limit}, unless the program sets \
             SO_SNDBUF."
        ),
    };
    Some(Verdict {
        limiter: Limiter::SendBuffer,
        claim: format!(
            "The send buffer{buffer} limits throughput to {}: the sender waited for room in it {} of \
             the time{flight}.",
            words::estimate(&throughput),
            words::percent(waiting.value),
        ),
        explanation: format!(
            "Data stays in the send buffer until it is acknowledged, so the buffer bounds what is in \
             flight as the receiver's window does. {what}"
        ),
        effect: waiting,
        evidence: EvidenceList::new(
            cell.evidence("throughput", name::THROUGHPUT)?,
            more.into_iter().flatten().collect(),
        ),
        weight: waiting.value,
    })
}
