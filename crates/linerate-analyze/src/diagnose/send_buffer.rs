//! The sender's buffer.
//!
//! Rule: the sender's own clock (tcpi_sndbuf_limited) says that for at least half of the time all
//! that the buffer holds was on its way, while the application had more to send. The buffer is
//! needed twice: for what is unacknowledged and for what waits to be sent.

use linerate_model::finding::{EvidenceList, Limiter};

use super::limiter::Verdict;
use super::receiver_window::WAITING_SHARE_MIN;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::words;

pub(super) fn verdict(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let waiting = cell.estimate(name::SNDBUF_LIMITED)?;
    if waiting.value < WAITING_SHARE_MIN || cell.is_rr() {
        return None;
    }
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let buffer = match cell.workload.options.socket_buffer {
        Some(buffer) => format!(" of {buffer}"),
        None => String::new(),
    };
    let more = [
        cell.evidence(
            "share of the time held by the send buffer",
            name::SNDBUF_LIMITED,
        ),
        cell.evidence("smoothed round trip", name::TCP_RTT),
    ];
    Some(Verdict {
        limiter: Limiter::SendBuffer,
        claim: format!(
            "The send buffer{buffer} limits throughput to {}: the sender waited for room in it {} of \
             the time.",
            words::estimate(&throughput),
            words::percent(waiting.value),
        ),
        explanation:
            "Data stays in the send buffer until it is acknowledged, so the buffer bounds \
                      what is in flight as the receiver's window does. A larger one (SO_SNDBUF or \
                      tcp_wmem) raises throughput."
                .to_owned(),
        effect: waiting,
        evidence: EvidenceList::new(
            cell.evidence("throughput", name::THROUGHPUT)?,
            more.into_iter().flatten().collect(),
        ),
        weight: waiting.value,
    })
}
