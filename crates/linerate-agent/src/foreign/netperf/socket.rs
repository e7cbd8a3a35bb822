//! The socket to which a client brings its payload.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use linerate_compat::netperf::{NOTHING_SAID, OmniRequest, OmniResponse, flag};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::plan::{Meant, Role};

/// After how long a call that waits looks whether its test is over.
pub(super) const CALL_LOOK: Duration = Duration::from_millis(100);
/// What a call moves at the most where the client leaves it to the server.
const CALL_BYTES: usize = 1 << 20;
/// Connections that may wait to be accepted: clients make one after another.
const PAYLOAD_BACKLOG: i32 = 128;

/// A socket of either kind.
#[derive(Debug)]
pub(super) enum Payload {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// A bound socket, and what of it the client is told.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) payload: Payload,
    pub(super) response: OmniResponse,
    /// What a call receives.
    pub(super) receive_bytes: usize,
    /// What a call sends.
    pub(super) send_bytes: usize,
}

/// Opens what `request` asks for, at the address `own` of the control connection unless another one is asked for.
pub(super) fn open(request: &OmniRequest, plan: &Meant, own: SocketAddr) -> io::Result<Opened> {
    let address = address(request, own);
    let (kind, protocol) = if plan.is_udp {
        (Type::DGRAM, Protocol::UDP)
    } else {
        (Type::STREAM, Protocol::TCP)
    };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    let tos = set_options(&socket, request, address.ip())?;
    if !plan.is_udp && request.port != 0 {
        // Connections of the last test on this port may not be forgotten yet.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    // Sockets that a listener accepts have its options.
    socket.set_read_timeout(Some(CALL_LOOK))?;
    socket.set_write_timeout(Some(CALL_LOOK))?;
    let receive_window_bytes = socket.recv_buffer_size()?;
    let send_window_bytes = socket.send_buffer_size()?;
    let (receive_bytes, send_bytes) = sizes(request, plan, receive_window_bytes, send_window_bytes);
    let interval = request.interval.filter(|_| plan.role == Role::Send);
    let payload = if plan.is_udp {
        Payload::Udp(socket.into())
    } else {
        socket.listen(PAYLOAD_BACKLOG)?;
        Payload::Tcp(socket.into())
    };
    let port = payload.port()?;
    let said = |bytes: usize| match bytes {
        0 => NOTHING_SAID,
        bytes => bytes as u32,
    };
    Ok(Opened {
        payload,
        receive_bytes,
        send_bytes,
        response: OmniResponse {
            receive_window_bytes: receive_window_bytes as u32,
            receive_bytes: said(receive_bytes),
            send_window_bytes: send_window_bytes as u32,
            send_bytes: said(send_bytes),
            flags: request.flags & (flag::NO_DELAY | flag::MEASURES_CPU | flag::CONNECTS),
            length: request.length.word(),
            port,
            burst: interval.map_or(0, |interval| interval.burst),
            interval_us: interval.map_or(0, |interval| interval.us),
            priority: request.priority.unwrap_or(NOTHING_SAID),
            tos: tos.unwrap_or(NOTHING_SAID),
        },
    })
}

impl Payload {
    fn port(&self) -> io::Result<u16> {
        let address = match self {
            Self::Tcp(listener) => listener.local_addr(),
            Self::Udp(socket) => socket.local_addr(),
        };
        Ok(address?.port())
    }
}

/// Returns where the socket is bound: its scope, on a link, is that of the control connection.
fn address(request: &OmniRequest, own: SocketAddr) -> SocketAddr {
    let mut address = match own.ip().to_canonical() {
        IpAddr::V4(address) => SocketAddr::from((address, 0)),
        IpAddr::V6(_) => own,
    };
    if let Some(asked) = request.server.filter(|asked| *asked != address.ip()) {
        address = SocketAddr::from((asked, 0));
    }
    address.set_port(request.port);
    address
}

/// Sets what was asked for; returns the type of service in effect where one was.
fn set_options(socket: &Socket, request: &OmniRequest, address: IpAddr) -> io::Result<Option<u32>> {
    if let Some(bytes) = request.receive_window_bytes {
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    if let Some(bytes) = request.send_window_bytes {
        socket.set_send_buffer_size(bytes as usize)?;
    }
    if let Some(priority) = request.priority {
        socket.set_priority(priority)?;
    }
    if socket.r#type()? == Type::STREAM {
        if let Some(name) = &request.congestion {
            socket.set_tcp_congestion(name.as_bytes())?;
        }
        socket.set_tcp_nodelay(request.has(flag::NO_DELAY))?;
    }
    match (request.tos, address) {
        (None, _) => Ok(None),
        (Some(tos), IpAddr::V4(_)) => {
            socket.set_tos_v4(tos)?;
            socket.tos_v4().map(Some)
        }
        (Some(tos), IpAddr::V6(_)) => {
            socket.set_tclass_v6(tos)?;
            socket.tclass_v6().map(Some)
        }
    }
}

/// Returns what a call receives and sends: what is asked for, or what the socket's buffers have room for, as
/// netperf has it; 0 for what the test does not do.
fn sizes(
    request: &OmniRequest,
    plan: &Meant,
    receive_window_bytes: usize,
    send_window_bytes: usize,
) -> (usize, usize) {
    let asked = |bytes: Option<u32>, window_bytes: usize| {
        bytes.map_or(window_bytes.min(CALL_BYTES), |bytes| bytes as usize)
    };
    match plan.role {
        Role::Receive => (asked(request.receive_bytes, receive_window_bytes), 0),
        Role::Send => (0, asked(request.send_bytes, send_window_bytes)),
        Role::Exchange | Role::Connections => (
            asked(request.request_bytes, 1),
            asked(request.response_bytes, 1),
        ),
    }
}

/// Returns the bytes of the buffers of a test at the most.
pub(super) fn buffers_bytes(request: &OmniRequest, plan: &Meant) -> u64 {
    let (receive, send) = sizes(request, plan, CALL_BYTES, CALL_BYTES);
    (receive + send) as u64
}

/// Returns the sizes of the receiving and the sending buffer of a socket as they are now.
pub(super) fn windows_bytes(socket: &SockRef<'_>) -> (u32, u32) {
    let size = |bytes: io::Result<usize>| bytes.map_or(0, |bytes| bytes as u32);
    (
        size(socket.recv_buffer_size()),
        size(socket.send_buffer_size()),
    )
}
