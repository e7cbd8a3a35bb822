//! Where a request comes from.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::access::User;

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Peer {
    /// From there, and whose it is.
    Address(SocketAddr, User),
    /// By the Unix socket, from a user who may.
    Socket,
}

impl Peer {
    /// Returns the address that it counts as: users of this host are at loopback.
    pub(super) fn ip(self) -> IpAddr {
        match self {
            Self::Address(peer, _) => peer.ip(),
            Self::Socket => Ipv4Addr::LOCALHOST.into(),
        }
    }
}
