//! UDP: sockets, and the calls that move several datagrams at once.

use std::ffi::c_int;
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{OwnedFd, RawFd};

use crate::sys::buffer::PageBuffer;
use crate::sys::socket::{self, IntOption, from_kernel, to_kernel};
use crate::sys::xdp::Frames;

/// UDP_SEGMENT of include/uapi/linux/udp.h: payload of each datagram that one buffer is cut into.
pub(crate) const UDP_SEGMENT: IntOption = IntOption::new("UDP_SEGMENT", libc::SOL_UDP, 103);
/// UDP_GRO of the same: whether datagrams may arrive put together.
pub(crate) const UDP_GRO: IntOption = IntOption::new("UDP_GRO", libc::SOL_UDP, 104);
const IP_RECVERR: IntOption = IntOption::new("IP_RECVERR", libc::IPPROTO_IP, libc::IP_RECVERR);
const IPV6_RECVERR: IntOption =
    IntOption::new("IPV6_RECVERR", libc::IPPROTO_IPV6, libc::IPV6_RECVERR);
const IP_PKTINFO: IntOption = IntOption::new("IP_PKTINFO", libc::IPPROTO_IP, libc::IP_PKTINFO);
const IPV6_RECVPKTINFO: IntOption = IntOption::new(
    "IPV6_RECVPKTINFO",
    libc::IPPROTO_IPV6,
    libc::IPV6_RECVPKTINFO,
);
const IPV6_V6ONLY: IntOption = IntOption::new("IPV6_V6ONLY", libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);
/// SO_MEMINFO of include/uapi/asm-generic/socket.h.
const SO_MEMINFO: c_int = 55;
/// Words of SO_MEMINFO; SK_MEMINFO_DROPS is the last (include/uapi/linux/sock_diag.h).
const MEMINFO_WORDS: usize = 9;
const MEMINFO_DROPS: usize = 8;

/// Returns a new non-blocking UDP socket for addresses like `address`.
pub(crate) fn open(address: SocketAddr) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK;
    socket::new(socket::family(address), kind, libc::IPPROTO_UDP)
}

/// Lets the socket take IPv4 beside IPv6, and tell to which address each datagram came.
pub(crate) fn prepare_listener(fd: RawFd, address: SocketAddr) -> io::Result<()> {
    socket::set(fd, socket::SO_REUSEADDR, 1)?;
    match address {
        SocketAddr::V4(_) => socket::set(fd, IP_PKTINFO, 1),
        SocketAddr::V6(_) => {
            socket::set(fd, IPV6_V6ONLY, 0)?;
            socket::set(fd, IPV6_RECVPKTINFO, 1)
        }
    }
}

/// Lets a send call report what became of a datagram on this host and beyond.
///
/// Without it the kernel says nothing when its own queue drops a datagram (udp_send_skb in
/// net/ipv4/udp.c forgets ENOBUFS), and it then could not be located.
pub(crate) fn report_errors(fd: RawFd, address: SocketAddr) -> io::Result<()> {
    match address {
        SocketAddr::V4(_) => socket::set(fd, IP_RECVERR, 1),
        SocketAddr::V6(_) => socket::set(fd, IPV6_RECVERR, 1),
    }
}

/// Takes what [`report_errors`] has queued off the socket: it would fill the receive buffer.
pub(crate) fn forget_errors(fd: RawFd) {
    let mut room = [0_u8; 1];
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    loop {
        // SAFETY: the kernel writes at most one byte to `room`; without an address or control
        // buffer it leaves out the rest.
        let taken = unsafe { libc::recv(fd, room.as_mut_ptr().cast(), room.len(), flags) };
        if taken < 0 {
            return;
        }
    }
}

/// Returns how many datagrams the kernel has dropped at this socket: for lack of room in its
/// receive buffer, and for wrong checksums. Absent before Linux 4.11.
///
/// The same counter that SO_RXQ_OVFL puts beside datagrams, without a cost for each of them, and
/// with those after the last that arrived. 32 bits, which may wrap.
pub(crate) fn drops(fd: RawFd) -> Option<u32> {
    let mut words = [0; 4 * MEMINFO_WORDS];
    let bytes = socket::read_option(fd, libc::SOL_SOCKET, SO_MEMINFO, &mut words).ok()?;
    let (drops, _) = words[4 * MEMINFO_DROPS..].split_first_chunk()?;
    (bytes == words.len()).then(|| u32::from_ne_bytes(*drops))
}

/// Takes one datagram without waiting, its beginning if it is longer than `room`; returns its
/// whole length. With `peek` it stays in the socket.
pub(crate) fn take(fd: RawFd, room: &mut [u8], peek: bool) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC | if peek { libc::MSG_PEEK } else { 0 };
    receive(fd, room, flags)
}

/// Takes one datagram, its beginning if it is longer than `room`; returns its whole length.
pub(crate) fn receive_header(fd: RawFd, room: &mut [u8]) -> io::Result<usize> {
    receive(fd, room, libc::MSG_TRUNC)
}

fn receive(fd: RawFd, room: &mut [u8], flags: c_int) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `room.len()` bytes to `room`, which is exclusively ours.
    let received = unsafe { libc::recv(fd, room.as_mut_ptr().cast(), room.len(), flags) };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// Room for the control messages of one datagram: its address or the size of its pieces.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Takes one datagram off a listener without waiting: its length as far as it fits `room`, who
/// sent it and to which address of ours.
pub(crate) fn receive_from(
    fd: RawFd,
    room: &mut [u8],
) -> io::Result<(usize, SocketAddr, Option<IpAddr>)> {
    let mut peer = no_address();
    let mut control = Control([0; 64]);
    let mut slice = libc::iovec {
        iov_base: room.as_mut_ptr().cast(),
        iov_len: room.len(),
    };
    let mut message = empty_message();
    message.msg_name = (&raw mut peer).cast();
    message.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    message.msg_iov = &mut slice;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // SAFETY: `message` names room for the address, the payload and the control messages, each
    // with its true length, and all outlive the call.
    let received = unsafe { libc::recvmsg(fd, &mut message, libc::MSG_DONTWAIT) };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    let peer = from_kernel(&peer)?;
    Ok((received, peer, address_in(&message)))
}

/// Returns the address of ours that a datagram came to.
fn address_in(message: &libc::msghdr) -> Option<IpAddr> {
    let mut found = None;
    each_control(message, |level, kind, bytes| match (level, kind) {
        // ipi_addr is the last of three words of struct in_pktinfo: the address of the header.
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            let octets: Option<[u8; 4]> = bytes.get(8..12).and_then(|at| at.try_into().ok());
            found = octets.map(IpAddr::from);
        }
        // ipi6_addr is the first field of struct in6_pktinfo.
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let octets: Option<[u8; 16]> = bytes.get(..16).and_then(|at| at.try_into().ok());
            found = octets.map(|octets| IpAddr::from(octets).to_canonical());
        }
        _ => {}
    });
    found
}

/// Calls `each` with level, type and bytes of every control message that the kernel wrote.
fn each_control(message: &libc::msghdr, mut each: impl FnMut(c_int, c_int, &[u8])) {
    // SAFETY: the message's control pointer and length describe room that the caller owns and the
    // kernel has written.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return null or a header that lies inside that room,
    // aligned as `Control` is.
    while let Some(header) = unsafe { next.as_ref() } {
        // SAFETY: the data of a header that the kernel has written follow it.
        let start = unsafe { libc::CMSG_DATA(header) };
        // SAFETY: takes a number and no pointer.
        let overhead = unsafe { libc::CMSG_LEN(0) } as usize;
        let length: usize = header.cmsg_len as _;
        let bytes = length.saturating_sub(overhead);
        // SAFETY: cmsg_len counts the header and its data, which the kernel wrote inside the room.
        let data = unsafe { std::slice::from_raw_parts(start, bytes) };
        each(header.cmsg_level, header.cmsg_type, data);
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
}

/// Sends one datagram to `peer` from the address `local` of ours, without waiting.
pub(crate) fn send_to(
    fd: RawFd,
    bytes: &[u8],
    peer: SocketAddr,
    local: Option<IpAddr>,
) -> io::Result<()> {
    let (mut storage, storage_bytes) = to_kernel(peer);
    let mut slice = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut control = Control([0; 64]);
    let mut message = empty_message();
    message.msg_name = (&raw mut storage).cast();
    message.msg_namelen = storage_bytes;
    message.msg_iov = &mut slice;
    message.msg_iovlen = 1;
    let control_bytes = local.map_or(0, |local| from_address(&mut control, peer, local));
    if control_bytes > 0 {
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control_bytes as _;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the kernel reads address, payload and control messages of `message`, each with its
    // true length; it writes none of them.
    let sent = unsafe { libc::sendmsg(fd, &message, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
    Ok(())
}

/// Writes the control message that asks for the source address `local`; returns its length.
fn from_address(control: &mut Control, peer: SocketAddr, local: IpAddr) -> usize {
    // struct cmsghdr: length (a size_t), level, type; then struct in_pktinfo (interface, source
    // address, header address) or struct in6_pktinfo (address, interface).
    let (level, kind, data) = match (peer, local) {
        (SocketAddr::V4(_), IpAddr::V4(local)) => {
            let mut data = [0_u8; 20];
            data[4..8].copy_from_slice(&local.octets());
            (libc::IPPROTO_IP, libc::IP_PKTINFO, (data, 12))
        }
        (SocketAddr::V6(_), local) => {
            let octets = match local {
                IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                IpAddr::V6(v6) => v6.octets(),
            };
            let mut data = [0_u8; 20];
            data[..16].copy_from_slice(&octets);
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, (data, 20))
        }
        (SocketAddr::V4(_), IpAddr::V6(_)) => return 0,
    };
    let (data, bytes) = data;
    let header = size_of::<libc::cmsghdr>();
    let length = header + bytes;
    control.0[..size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
    control.0[header - 8..header - 4].copy_from_slice(&level.to_ne_bytes());
    control.0[header - 4..header].copy_from_slice(&kind.to_ne_bytes());
    control.0[header..length].copy_from_slice(&data[..bytes]);
    length.next_multiple_of(size_of::<usize>())
}

fn no_address() -> libc::sockaddr_in6 {
    // SAFETY: a sockaddr_in6 is numbers only, for which zero is a value.
    unsafe { zeroed() }
}

/// Returns a message of nothing, without an address; also what a C library pads it with is 0, as the kernel asks.
pub(super) fn empty_message() -> libc::msghdr {
    // SAFETY: a msghdr is numbers and pointers, for which zero is a value.
    unsafe { zeroed() }
}

/// Buffers that one call sends: one datagram each, or with UDP_SEGMENT several of equal length.
pub(crate) struct Outbox {
    buffer: PageBuffer,
    bytes_each: usize,
    /// How much of each buffer is sent.
    lengths: Vec<usize>,
    slices: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    /// Where the datagrams of the one flow go past its socket: everything.
    frames: Option<Box<Frames>>,
}

impl Outbox {
    /// Returns `count` buffers of `bytes_each`; the only place that allocates.
    pub(crate) fn new(count: usize, bytes_each: usize) -> Self {
        Self {
            buffer: PageBuffer::new(count * bytes_each),
            bytes_each,
            lengths: vec![bytes_each; count],
            slices: vec![no_slice(); count],
            messages: vec![empty_messages(); count],
            frames: None,
        }
    }

    /// Returns buffers that are frames.
    pub(crate) fn past_sockets(frames: Box<Frames>) -> Self {
        let frames = Some(frames);
        Self {
            frames,
            ..Self::new(1, 1)
        }
    }

    /// Returns how many buffers there are.
    pub(crate) fn count(&self) -> usize {
        let frames = self.frames.as_ref();
        frames.map_or(self.slices.len(), |frames| frames.count())
    }

    /// Returns buffer number `at` for writing.
    pub(crate) fn buffer(&mut self, at: usize) -> &mut [u8] {
        match &mut self.frames {
            Some(frames) => frames.payload(at),
            None => &mut self.buffer.as_mut_slice()[at * self.bytes_each..][..self.lengths[at]],
        }
    }

    /// Sends no more than `bytes` of buffer number `at` from now on; what is beyond its end is left
    /// out.
    pub(crate) fn cut(&mut self, at: usize, bytes: usize) {
        self.lengths[at] = bytes.min(self.bytes_each);
    }

    /// Sends the first `count` buffers; returns how many the kernel took.
    ///
    /// Cost beside the call, for more than one: 3 ns a buffer to name them anew, so that no
    /// pointer outlives a borrow.
    pub(crate) fn send(&mut self, fd: RawFd, count: usize) -> io::Result<usize> {
        if let Some(frames) = &mut self.frames {
            return frames.send(count);
        }
        if count == 1 {
            socket::send(fd, &self.buffer.as_slice()[..self.lengths[0]])?;
            return Ok(1);
        }
        let buffers = self.buffer.as_mut_slice().chunks_exact_mut(self.bytes_each);
        let named = self
            .slices
            .iter_mut()
            .zip(&mut self.messages)
            .zip(buffers)
            .zip(&self.lengths);
        for (((slice, message), buffer), &length) in named.take(count) {
            let buffer = &mut buffer[..length];
            slice.iov_base = buffer.as_mut_ptr().cast();
            slice.iov_len = buffer.len();
            message.msg_hdr.msg_iov = slice;
            message.msg_hdr.msg_iovlen = 1;
        }
        let count = count.min(self.messages.len());
        // SAFETY: the first `count` messages each name one slice of ours, and each slice one buffer
        // of ours with its length; the kernel reads the buffers and writes msg_len. By number, since
        // musl's function makes a call for each message.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_sendmmsg,
                fd,
                self.messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_NOSIGNAL,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Makes the kernel send what it has been given and has not looked at; returns whether nothing of
    /// that is left, as with sockets, which look at once.
    pub(crate) fn is_flushed(&mut self) -> bool {
        self.frames
            .as_mut()
            .is_none_or(|frames| frames.is_flushed())
    }
}

/// Room for what one call receives.
pub(crate) struct Inbox {
    buffer: PageBuffer,
    bytes_each: usize,
    slices: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    controls: Vec<Control>,
    /// Length of the one buffer that a plain call has filled.
    plain: Option<usize>,
}

impl Inbox {
    /// Returns room for `count` buffers of `bytes_each`; the only place that allocates. With
    /// `put_together` each may hold several datagrams (UDP_GRO).
    pub(crate) fn new(count: usize, bytes_each: usize, put_together: bool) -> Self {
        let controls = if put_together { count } else { 0 };
        Self {
            buffer: PageBuffer::new(count * bytes_each),
            bytes_each,
            slices: vec![no_slice(); count],
            messages: vec![empty_messages(); count],
            controls: vec![Control([0; 64]); controls],
            plain: None,
        }
    }

    /// Receives as many buffers as there are, waiting for the first at the most; returns how many.
    pub(crate) fn receive(&mut self, fd: RawFd) -> io::Result<usize> {
        if self.messages.len() == 1 && self.controls.is_empty() {
            let room = &mut self.buffer.as_mut_slice()[..self.bytes_each];
            self.plain = Some(receive_header(fd, room)?);
            return Ok(1);
        }
        let buffers = self.buffer.as_mut_slice().chunks_exact_mut(self.bytes_each);
        for ((slice, message), buffer) in
            self.slices.iter_mut().zip(&mut self.messages).zip(buffers)
        {
            slice.iov_base = buffer.as_mut_ptr().cast();
            slice.iov_len = buffer.len();
            message.msg_hdr.msg_iov = slice;
            message.msg_hdr.msg_iovlen = 1;
        }
        for (message, control) in self.messages.iter_mut().zip(&mut self.controls) {
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = control.0.len() as _;
        }
        let flags = libc::MSG_WAITFORONE | libc::MSG_TRUNC;
        // SAFETY: every message names one slice of ours, each slice one buffer of ours with its
        // length, and where there are controls one of these with its length. The kernel writes
        // buffers, controls and lengths; a null timeout is none.
        let received = unsafe {
            libc::recvmmsg(
                fd,
                self.messages.as_mut_ptr(),
                self.messages.len() as libc::c_uint,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    /// Returns what buffer number `at` of the last call holds: its bytes as far as there was room,
    /// its whole length, and the length of each datagram in it but the last.
    pub(crate) fn buffer(&self, at: usize) -> (&[u8], usize, usize) {
        let room = &self.buffer.as_slice()[at * self.bytes_each..][..self.bytes_each];
        let length = self.plain.unwrap_or(self.messages[at].msg_len as usize);
        let mut piece_bytes = length;
        if !self.controls.is_empty() {
            each_control(&self.messages[at].msg_hdr, |level, kind, bytes| {
                if (level, kind) == (libc::SOL_UDP, 104)
                    && let Some(word) = bytes.first_chunk::<4>()
                {
                    piece_bytes = u32::from_ne_bytes(*word) as usize;
                }
            });
        }
        (&room[..length.min(room.len())], length, piece_bytes.max(1))
    }
}

fn no_slice() -> libc::iovec {
    libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    }
}

fn empty_messages() -> libc::mmsghdr {
    libc::mmsghdr {
        msg_hdr: empty_message(),
        msg_len: 0,
    }
}
