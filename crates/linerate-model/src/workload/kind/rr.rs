//! A request, then a response, then the next request on the same flow.

use crate::manner::{DATAGRAM_BYTES_MAX, Manner, NAMES_OF_A_BYTE, Sizes, Transport};
use crate::response::name;
use crate::step;
use crate::unit::Bytes;
use crate::workload::{
    About, Case, MESSAGE_BYTES_MAX, REQUEST_WRITES_MAX, Traffic, WorkloadError, within, within_case,
};

/// Responses of traffic of requests.
pub(super) const RESPONSES: &[&str] = &[
    name::TRANSACTIONS,
    name::RTT_P50,
    name::RTT_P99,
    name::RTT_MEAN,
    name::ONE_WAY,
    name::ACKS_PER_TRANSACTION,
];

pub(super) const ABOUT: About = About {
    title: "request/response",
    counted: "transactions",
    transports: Transport::ALL,
    responses: RESPONSES,
    headline: name::TRANSACTIONS,
    carries_payload: true,
    is_placed: false,
    traffic: Traffic::Rr {
        request_bytes: Bytes(1),
        response_bytes: Bytes(1),
        request_writes: 1,
    },
};

pub(super) fn check(
    (request, response): (Bytes, Bytes),
    request_writes: u32,
    manner: &Manner,
) -> Result<(), WorkloadError> {
    let (most, writes) = (MESSAGE_BYTES_MAX.0, request_writes.into());
    within("request_bytes", request.0, 1, most)?;
    within("response_bytes", response.0, 1, most)?;
    // Sizes that differ take the place of the request's own; that they exclude a split is said later.
    let size = manner.sizes.as_ref().map_or(request.0, |_| most);
    within("request_writes", writes, 1, size.min(REQUEST_WRITES_MAX))?;
    if let Some(steps) = &manner.steps {
        step::check(steps, (request, response))?;
    }
    if manner.transport != Transport::Udp {
        return Ok(());
    }
    let most = DATAGRAM_BYTES_MAX;
    within_case("request_bytes", Case::Udp, request.0, 1, most)?;
    within_case("response_bytes", Case::Udp, response.0, 1, most)?;
    within_case("request_writes", Case::Udp, writes, 1, 1)?;
    let sizes = manner.sizes.as_ref();
    if sizes.map_or(request.min(response), Sizes::smallest).0 < 2 {
        let (case, most) = (Case::UdpOfOneByte, NAMES_OF_A_BYTE.into());
        within_case("in_flight", case, manner.in_flight.into(), 1, most)?;
    }
    manner.check_datagrams(1)
}
