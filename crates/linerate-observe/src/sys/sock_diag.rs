//! Questions to the kernel's socket monitoring, and its events of sockets that end.

use std::io;

use netlink_packet_core::NetlinkBuffer;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};

/// The question's message type that gives both address families at once (inet_diag.h). The newer
/// SOCK_DIAG_BY_FAMILY walks the kernel's whole table of connections once for each family, and on
/// a host with few sockets and much memory that walk is most of the cost.
pub(crate) const TCPDIAG_GETSOCK: u16 = 18;
/// The question's message type for one family and protocol, and that of every event (sock_diag.h).
pub(crate) const SOCK_DIAG_BY_FAMILY: u16 = 20;

/// Groups of events (enum sknetlink_groups of sock_diag.h): TCP sockets that end.
const SKNLGRP_INET_TCP_DESTROY: u32 = 1;
const SKNLGRP_INET6_TCP_DESTROY: u32 = 3;

/// Buffer asked for events, in bytes: with some 800 bytes of kernel memory each, 5000 sockets that
/// end between two readings. The kernel allows net.core.rmem_max at the most.
const EVENT_BUFFER_BYTES: usize = 4 << 20;
/// Most events taken at once: one more than fit.
const EVENTS_MAX: usize = 64 << 10;
/// Longest event taken, in bytes: an address and TCP_INFO are some 400.
const EVENT_BYTES_MAX: usize = 4 << 10;

/// Hears of TCP sockets that end in the network namespace in which it was opened.
pub(crate) struct EndedSockets {
    socket: Socket,
    buffer: Vec<u8>,
}

/// Whether every event was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// All of them.
    All,
    /// The kernel dropped some: the buffer was full.
    Part,
}

impl EndedSockets {
    /// Opens; the kernel asks for CAP_NET_ADMIN over the namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        socket.add_membership(SKNLGRP_INET_TCP_DESTROY)?;
        socket.add_membership(SKNLGRP_INET6_TCP_DESTROY)?;
        // A smaller buffer hears less and says so, so a refusal is no reason to hear nothing.
        let _ = socket.set_rx_buf_sz(EVENT_BUFFER_BYTES as libc::c_int);
        socket.set_non_blocking(true)?;
        Ok(Self {
            socket,
            buffer: Vec::with_capacity(EVENT_BYTES_MAX),
        })
    }

    /// Hands the payload of every event since the last call to `handle`.
    pub(crate) fn drain(&mut self, mut handle: impl FnMut(&[u8])) -> io::Result<Heard> {
        let mut heard = Heard::All;
        for _ in 0..EVENTS_MAX {
            self.buffer.clear();
            match self.socket.recv(&mut self.buffer, 0) {
                Ok(_) => each_event(&self.buffer, &mut handle),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(heard),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => heard = Heard::Part,
                Err(error) => return Err(error),
            }
        }
        Ok(heard)
    }
}

/// Walks the events of one datagram until its end or the first that does not fit.
fn each_event(datagram: &[u8], handle: &mut impl FnMut(&[u8])) {
    let mut rest = datagram;
    while let Ok(message) = NetlinkBuffer::new_checked(rest) {
        if message.message_type() == SOCK_DIAG_BY_FAMILY {
            handle(message.payload());
        }
        let length = (message.length() as usize).next_multiple_of(4);
        rest = rest.get(length..).unwrap_or_default();
    }
}
