//! Connections that carry nothing.

use crate::manner::Transport;
use crate::response::name;
use crate::workload::{About, Traffic};

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
