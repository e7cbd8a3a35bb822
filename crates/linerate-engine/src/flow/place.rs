//! Places of connections: where they go to, or what they are known by where they come in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use crate::flow::calls::{Calls, HelloBytes};
use crate::flow::error::ConnectError;
use crate::flow::{Flow, FlowConfig, Shared, options};
use crate::sys::socket;

/// What an end of a place knows beside its options.
#[derive(Debug)]
pub(crate) enum PlaceEnd {
    /// The client's end makes the connections.
    Calls {
        /// Where they go to.
        peer: SocketAddr,
        /// Where they come from, if that was chosen.
        bind: Option<SocketAddr>,
        /// What each says first; nothing to a server of another program.
        hello: Box<[u8]>,
    },
    /// The server's end answers them.
    Answers {
        /// Where they come in.
        calls: Arc<Calls>,
        /// What each says first.
        hello: HelloBytes,
    },
}

impl PlaceEnd {
    /// Returns where connections go to and what they say first, if they are made here.
    pub(crate) fn calling(&self) -> Option<(SocketAddr, Box<[u8]>)> {
        match self {
            PlaceEnd::Calls { peer, hello, .. } => Some((*peer, hello.clone())),
            PlaceEnd::Answers { .. } => None,
        }
    }
}

/// Makes the server's end of a place, which answers the connections of `calls` that begin with `hello`
/// while it runs.
pub(super) fn await_calls(
    config: FlowConfig,
    hello: HelloBytes,
    calls: &Arc<Calls>,
) -> Result<Flow, ConnectError> {
    let any: SocketAddr = (Ipv6Addr::UNSPECIFIED, 0).into();
    let local = calls.local().unwrap_or(any);
    let end = PlaceEnd::Answers {
        calls: Arc::clone(calls),
        hello,
    };
    place(config, local, any_like(local.ip()), end)
}

/// Makes the client's end of a place, which connects to `peer` again and again while it runs.
pub(super) fn reach(
    config: FlowConfig,
    peer: SocketAddr,
    bind: Option<SocketAddr>,
    hello: &[u8],
) -> Result<Flow, ConnectError> {
    let hello = hello.into();
    let local = bind.unwrap_or(any_like(peer.ip()));
    place(config, local, peer, PlaceEnd::Calls { peer, bind, hello })
}

/// Returns the address that stands for any of the family of `ip`, without a port.
fn any_like(ip: IpAddr) -> SocketAddr {
    match ip {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Makes an end with a socket that never connects, to find out now which options the kernel grants.
fn place(
    config: FlowConfig,
    local: SocketAddr,
    remote: SocketAddr,
    end: PlaceEnd,
) -> Result<Flow, ConnectError> {
    // A host without IPv6 has sockets of the other kind only.
    let opened = socket::open(remote, libc::IPPROTO_TCP).or_else(|error| match &end {
        PlaceEnd::Answers { .. } => {
            socket::open((Ipv4Addr::UNSPECIFIED, 0).into(), libc::IPPROTO_TCP)
        }
        PlaceEnd::Calls { .. } => Err(error),
    });
    let socket = opened.map_err(|error| ConnectError::open(error, remote))?;
    options::apply(socket.as_raw_fd(), &config.options)?;
    let settings = options::granted_settings(socket.as_raw_fd(), &config)
        .map_err(|source| ConnectError::Inspect { source })?;
    let ends = (local.into(), remote.into());
    let shared = Shared {
        place: Some(end),
        ..Shared::new(config, socket, ends, settings.into())
    };
    Ok(Flow { shared })
}
