//! A new connection for each request and its response.

use super::rr;
use crate::manner::Transport;
use crate::response::name;
use crate::unit::Bytes;
use crate::workload::{About, MESSAGE_BYTES_MAX, Traffic, WorkloadError, within};

pub(super) const ABOUT: About = About {
    title: "connect/request/response",
    counted: "connections",
    transports: &[Transport::Tcp],
    responses: rr::RESPONSES,
    headline: name::CONNECTIONS,
    carries_payload: true,
    is_placed: true,
    traffic: Traffic::Crr {
        request_bytes: Bytes(1),
        response_bytes: Bytes(1),
    },
};

/// Both sizes are 0, without exchange, or neither.
pub(super) fn check(request: Bytes, response: Bytes) -> Result<(), WorkloadError> {
    let most = MESSAGE_BYTES_MAX.0;
    within("request_bytes", request.0, response.0.min(1), most)?;
    within("response_bytes", response.0, request.0.min(1), most)
}
