//! Connections that carry nothing.

use super::{About, Traffic};
use crate::manner::Transport;
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
