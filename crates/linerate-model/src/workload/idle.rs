//! Connections that carry nothing.

use super::{About, Traffic, WorkloadError};
use crate::manner::{Manner, Transport};
use crate::response::name;

pub(super) const ABOUT: About = About {
    title: "idle",
    counted: "transfer",
    transports: &[Transport::Tcp, Transport::Mptcp, Transport::Unix],
    responses: &[],
    headline: name::CONNECTIONS_HELD,
    carries_payload: false,
    is_placed: false,
    traffic: Traffic::Idle,
};

/// Refuses what has no connections.
pub(super) fn check(manner: &Manner) -> Result<(), WorkloadError> {
    match manner.transport {
        Transport::Udp => Err(WorkloadError::Contradiction {
            keys: &["kind", "transport"],
            why: "the transport is UDP, but must be TCP: UDP has no connections to make or keep",
        }),
        _ => Ok(()),
    }
}
