//! Places of connections: a port that listens, or the socket that stands for those to come.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::flow::error::ConnectError;
use crate::flow::{Flow, FlowConfig, Shared, options};
use crate::sys::socket;

/// Opens the server's end of a place: a port of its own at `local_ip`, which the kernel chooses.
///
/// [`Flow::local`] says which. The port is there until the flow is dropped, and answers only while
/// the flow runs.
pub(super) fn listen(config: FlowConfig, local_ip: IpAddr) -> Result<Flow, ConnectError> {
    let address = SocketAddr::new(local_ip, 0);
    let bind = |source| ConnectError::Bind { address, source };
    let listener = TcpListener::bind(address).map_err(bind)?;
    listener.set_nonblocking(true).map_err(bind)?;
    let socket = OwnedFd::from(listener);
    // Accepted connections take the options over.
    options::apply(socket.as_raw_fd(), &config.options)?;
    let inspect = |source| ConnectError::Inspect { source };
    let local = socket::local(socket.as_fd()).map_err(inspect)?;
    place(config, socket, local, any_like(local_ip), None)
}

/// Makes the client's end of a place, which connects to `peer` again and again while it runs.
///
/// It has a socket that never connects, to find out now which options the kernel grants.
pub(super) fn reach(
    config: FlowConfig,
    peer: SocketAddr,
    bind: Option<SocketAddr>,
) -> Result<Flow, ConnectError> {
    let socket =
        socket::open(peer, libc::IPPROTO_TCP).map_err(|error| ConnectError::open(error, peer))?;
    options::apply(socket.as_raw_fd(), &config.options)?;
    let local = bind.unwrap_or(any_like(peer.ip()));
    place(config, socket, local, peer, Some((peer, bind)))
}

/// Returns the address that stands for any of the family of `ip`, without a port.
fn any_like(ip: IpAddr) -> SocketAddr {
    match ip {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

fn place(
    config: FlowConfig,
    socket: OwnedFd,
    local: SocketAddr,
    remote: SocketAddr,
    place: Option<(SocketAddr, Option<SocketAddr>)>,
) -> Result<Flow, ConnectError> {
    let settings = options::granted_settings(socket.as_raw_fd(), &config)
        .map_err(|source| ConnectError::Inspect { source })?;
    let ends = (local.into(), remote.into());
    let shared = Shared {
        place,
        ..Shared::new(config, socket, ends, settings.into())
    };
    Ok(Flow { shared })
}
