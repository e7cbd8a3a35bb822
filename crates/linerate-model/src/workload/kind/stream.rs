//! Payload in one direction as fast as the path takes it.

use crate::manner::{DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN, Manner, Transport};
use crate::response::name;
use crate::unit::Bytes;
use crate::workload::{
    About, Case, Direction, MESSAGE_BYTES_MAX, Part, STREAM_MESSAGE_BYTES_DEFAULT, Traffic,
    WorkloadError, within, within_case,
};

pub(super) const ABOUT: About = About {
    title: "stream",
    counted: "transfer",
    transports: Transport::ALL,
    responses: &[
        name::THROUGHPUT,
        name::MESSAGES,
        name::PAYLOAD_PER_SEGMENT,
        name::STALL_MAX,
        name::CPU_PER_GBIT,
        name::DATAGRAMS_RECEIVED_RATE,
    ],
    headline: name::THROUGHPUT,
    carries_payload: true,
    is_placed: false,
    traffic: Traffic::Stream {
        direction: Direction::ToServer,
        message_bytes: STREAM_MESSAGE_BYTES_DEFAULT,
    },
};

pub(super) fn check(message_bytes: Bytes, manner: &Manner) -> Result<(), WorkloadError> {
    within("message_bytes", message_bytes.0, 1, MESSAGE_BYTES_MAX.0)?;
    if manner.transport != Transport::Udp {
        return Ok(());
    }
    let (least, most) = (DATAGRAM_BYTES_MIN, DATAGRAM_BYTES_MAX);
    within_case("message_bytes", Case::Udp, message_bytes.0, least, most)?;
    manner.check_datagrams(least)
}

/// Returns the pair that flow number `at` belongs to: both directions of a pair go to one client.
pub(super) fn flow(direction: Direction, at: u32) -> (u32, Part) {
    match direction {
        Direction::ToServer => (at, Part::Sender),
        Direction::FromServer => (at, Part::Receiver),
        Direction::Both if at.is_multiple_of(2) => (at / 2, Part::Sender),
        Direction::Both => (at / 2, Part::Receiver),
    }
}
