//! Opening a flow, or adopting one that a listener accepted.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use linerate_model::manner::{SendBy, Transport};
use linerate_model::workload::{FlowOptions, Part, check_flow};

use crate::flow::datagram::{self, is_datagram};
use crate::flow::error::ConnectError;
use crate::flow::opening::HELLO_BYTES;
use crate::flow::options;
use crate::flow::{
    Address, Calls, Content, Flow, FlowConfig, HelloBytes, Shared, mechanism, mptcp, pace, place,
};
use crate::sys::clock::now_ns;
use crate::sys::socket::{self, SO_ERROR, SO_REUSEADDR, SO_ZEROCOPY};
use crate::sys::unix;

/// Opens a flow to `peer`, from `bind` if given, and sends `hello` on it.
///
/// Options are set before connecting. Connecting and sending `hello` together take at most
/// `deadline`. A flow that is a place of connections makes them while it runs, each with `hello`: nothing
/// is connected or sent here. A server of another program may need none.
pub fn connect(
    config: FlowConfig,
    peer: SocketAddr,
    bind: Option<SocketAddr>,
    hello: &[u8],
    deadline: Duration,
) -> Result<Flow, ConnectError> {
    check(&config)?;
    if is_datagram(&config) {
        return datagram::connect(config, peer, bind, hello, deadline);
    }
    if config.traffic.is_placed() {
        return place::reach(config, peer, bind, hello);
    }
    let end_ns = now_ns().saturating_add(deadline.as_nanos() as u64);
    let opened = match config.manner.transport {
        Transport::Mptcp => mptcp::open(peer),
        _ => socket::open(peer, libc::IPPROTO_TCP),
    };
    let socket = opened.map_err(|error| ConnectError::open(error, peer))?;
    options::apply(socket.as_raw_fd(), &config.options)?;
    if let Some(address) = bind {
        bind_to(socket.as_fd(), address)
            .map_err(|source| ConnectError::Bind { address, source })?;
    }
    establish(socket.as_fd(), peer, end_ns)
        .map_err(|error| ConnectError::establish(error, peer, deadline))?;
    options::apply_connected(socket.as_raw_fd(), &config.options)?;
    send_all(socket.as_fd(), hello, end_ns)
        .map_err(|source| ConnectError::Hello { peer, source })?;
    flow(config, socket)
}

/// Makes the server's end of a flow that is a place of connections, one for each transaction: it answers
/// those of `calls` that begin with `hello`, while it runs.
pub fn await_calls(
    config: FlowConfig,
    hello: HelloBytes,
    calls: &Arc<Calls>,
) -> Result<Flow, ConnectError> {
    check(&config)?;
    if !config.traffic.is_placed() || config.part != Part::Responder {
        return Err(ConnectError::Config {
            flow: config.flow,
            reason: "only the server's end of connect/request/response answers connections"
                .to_owned(),
        });
    }
    place::await_calls(config, hello, calls)
}

/// Tells whether this host takes the options of a workload over TCP, by setting them on a socket
/// that goes nowhere.
///
/// Asking beats looking at lists: a congestion control algorithm that is not there yet may be loaded
/// by who asks for it.
pub fn try_options(options: &FlowOptions) -> Result<(), ConnectError> {
    let nowhere = (Ipv4Addr::LOCALHOST, 0).into();
    let socket = socket::open(nowhere, libc::IPPROTO_TCP)
        .map_err(|source| ConnectError::Inspect { source })?;
    Ok(options::apply(socket.as_raw_fd(), options)?)
}

/// Asks by a hello who listens at `peer`, over a connection of its own; returns the answer. All of it takes at
/// most `deadline`.
pub fn ask(
    peer: SocketAddr,
    bind: Option<SocketAddr>,
    hello: &HelloBytes,
    deadline: Duration,
) -> Result<HelloBytes, ConnectError> {
    let end_ns = now_ns().saturating_add(deadline.as_nanos() as u64);
    let socket = socket::open(peer, libc::IPPROTO_TCP);
    let socket = socket.map_err(|error| ConnectError::open(error, peer))?;
    if let Some(address) = bind {
        bind_to(socket.as_fd(), address)
            .map_err(|source| ConnectError::Bind { address, source })?;
    }
    establish(socket.as_fd(), peer, end_ns)
        .map_err(|error| ConnectError::establish(error, peer, deadline))?;
    send_all(socket.as_fd(), hello, end_ns)
        .map_err(|source| ConnectError::Hello { peer, source })?;
    let mut answer = [0; HELLO_BYTES];
    receive_all(socket.as_fd(), &mut answer, end_ns)
        .map_err(|source| ConnectError::Unidentified { peer, source })?;
    Ok(answer)
}

/// Makes a flow of an accepted socket whose hello has been read.
pub fn adopt(config: FlowConfig, socket: OwnedFd) -> Result<Flow, ConnectError> {
    check(&config)?;
    if is_datagram(&config) {
        return datagram::adopt(config, socket);
    }
    if config.traffic.is_placed() {
        return Err(ConnectError::Config {
            flow: config.flow,
            reason: "connections that come and go are made one by one".to_owned(),
        });
    }
    options::apply(socket.as_raw_fd(), &config.options)?;
    options::apply_connected(socket.as_raw_fd(), &config.options)?;
    flow(config, socket)
}

fn flow(config: FlowConfig, socket: OwnedFd) -> Result<Flow, ConnectError> {
    let inspect = |source| ConnectError::Inspect { source };
    let (send, chosen) = mechanism::choose(&config);
    if send == SendBy::MsgZerocopy {
        options::set(socket.as_raw_fd(), SO_ZEROCOPY, 1)?;
    }
    let mut settings = options::granted_settings(socket.as_raw_fd(), &config).map_err(inspect)?;
    settings.extend(chosen);
    settings.extend(options::set_low_water(socket.as_raw_fd(), &config)?);
    let (pace_bps, pace) = pace::set(socket.as_raw_fd(), &config);
    settings.extend(pace);
    let ends = match config.manner.transport {
        Transport::Unix => {
            let (local, remote) = unix::names(socket.as_fd()).map_err(inspect)?;
            (Address::Unix(local), Address::Unix(remote))
        }
        _ => {
            let local = socket::local(socket.as_fd()).map_err(inspect)?;
            let remote = socket::remote(socket.as_fd()).map_err(inspect)?;
            (local.into(), remote.into())
        }
    };
    let shared = Shared {
        send,
        content: Content::of(send).map_err(|source| ConnectError::Content { source })?,
        pace_bps,
        ..Shared::new(config, socket, ends, settings.into())
    };
    Ok(Flow { shared })
}

/// Checks what the turns rely on: a part that fits its traffic, and a flow that can be made.
pub(super) fn check(config: &FlowConfig) -> Result<(), ConnectError> {
    let exchanges = matches!(config.part, Part::Requester | Part::Responder);
    let refused = |reason| ConnectError::Config {
        flow: config.flow,
        reason,
    };
    if exchanges != config.traffic.is_transactional() {
        let reason = "its part belongs to another kind of traffic".to_owned();
        return Err(refused(reason));
    }
    check_flow(&config.traffic, &config.options, &config.manner)
        .map_err(|error| refused(error.to_string()))
}

fn bind_to(socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    if address.port() == 0 {
        return socket::bind_before_connect(socket, address);
    }
    // A port that was used in the trial before must not be blocked by its TIME_WAIT.
    socket::set(fd, SO_REUSEADDR, 1)?;
    socket::bind(socket, address)
}

fn establish(socket: BorrowedFd<'_>, peer: SocketAddr, end_ns: u64) -> io::Result<()> {
    match socket::connect(socket, peer) {
        Ok(()) => return Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    wait_writable(socket, end_ns)?;
    match socket::read(socket.as_raw_fd(), SO_ERROR)? {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

pub(super) fn send_all(socket: BorrowedFd<'_>, mut bytes: &[u8], end_ns: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket::send(socket.as_raw_fd(), bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_writable(socket, end_ns)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn receive_all(socket: BorrowedFd<'_>, mut room: &mut [u8], end_ns: u64) -> io::Result<()> {
    while !room.is_empty() {
        let left = Duration::from_nanos(end_ns.saturating_sub(now_ns()));
        if !socket::wait_readable(socket, left)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match socket::receive(socket.as_raw_fd(), room) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(received) => room = &mut room[received..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until the socket is writable; an error of kind `TimedOut` if it is not by `end_ns`.
fn wait_writable(socket: BorrowedFd<'_>, end_ns: u64) -> io::Result<()> {
    loop {
        let left = Duration::from_nanos(end_ns.saturating_sub(now_ns()));
        match socket::wait_writable(socket, left) {
            Ok(true) => return Ok(()),
            Ok(false) => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use linerate_model::Bytes;
    use linerate_model::id::FlowId;
    use linerate_model::manner::Manner;
    use linerate_model::sample::End;
    use linerate_model::workload::{Direction, Traffic};

    use super::*;

    fn sender() -> FlowConfig {
        FlowConfig {
            flow: FlowId(7),
            end: End::Client,
            part: Part::Sender,
            traffic: Traffic::Stream {
                direction: Direction::ToServer,
                message_bytes: Bytes(1),
            },
            options: FlowOptions::default(),
            manner: Manner::default(),
        }
    }

    #[test]
    fn a_listener_that_does_not_answer_is_a_timeout() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        socket2::SockRef::from(&listener).listen(0).unwrap();
        let deadline = Duration::from_millis(50);
        // A backlog of 0 takes one connection; the kernel drops what comes after it.
        let mut waiting = Vec::new();
        let error = loop {
            match connect(sender(), peer, None, b"", deadline) {
                Ok(flow) => waiting.push(flow),
                Err(error) => break error,
            }
            assert!(waiting.len() < 10);
        };
        assert!(matches!(error, ConnectError::TimedOut { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            format!("cannot connect to {peer}: no answer within 50 ms")
        );
    }

    #[test]
    fn a_congestion_control_that_the_kernel_would_cut_is_refused() {
        let check = |name: String| {
            let options = FlowOptions {
                congestion: Some(name),
                ..FlowOptions::default()
            };
            try_options(&options).map_err(|error| error.to_string())
        };
        check("reno".to_owned()).unwrap();
        for more in ["\0".to_owned(), "\0".repeat(4 << 20)] {
            let told = check(format!("reno{more}"));
            assert!(told.is_err());
        }
    }

    #[test]
    fn configurations_that_cannot_run_are_refused() {
        let rr = |request_bytes, response_bytes, request_writes| Traffic::Rr {
            request_bytes: Bytes(request_bytes),
            response_bytes: Bytes(response_bytes),
            request_writes,
        };
        let refused = |part, traffic| {
            let config = FlowConfig {
                part,
                traffic,
                ..sender()
            };
            match check(&config) {
                Err(ConnectError::Config { reason, .. }) => reason,
                other => panic!("{other:?}"),
            }
        };
        let other = "its part belongs to another kind of traffic";
        assert_eq!(refused(Part::Sender, rr(1, 1, 1)), other);
        assert_eq!(refused(Part::Responder, sender().traffic), other);
        // What cannot run is told by the nouns' own check, here as everywhere.
        let writes = refused(Part::Requester, rr(1, 1, 2));
        assert!(writes.starts_with("request_writes is 2"), "{writes}");
        let placed = FlowConfig {
            manner: Manner {
                segments: 4,
                ..Manner::default()
            },
            ..sender()
        };
        let told = check(&placed).expect_err("refused").to_string();
        assert!(told.contains("segments is for udp"), "{told}");
        assert!(check(&sender()).is_ok());
    }
}
