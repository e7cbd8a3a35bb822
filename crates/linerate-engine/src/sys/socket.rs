//! Sockets: opening, connecting, options, TCP_INFO, and the calls that move payload.

use std::ffi::{CStr, c_int, c_short};
use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// TCP_CA_NAME_MAX of include/net/tcp.h, with its terminating zero.
const CONGESTION_NAME_BYTES: usize = 16;
/// Room for TCP_INFO; kernels of 2026 write 280 bytes, older ones less.
pub(crate) const TCP_INFO_BYTES_MAX: usize = 512;

/// SOL_MPTCP of include/linux/socket.h.
const SOL_MPTCP: c_int = 284;
/// MPTCP_INFO and MPTCP_INFO_FLAG_FALLBACK of include/uapi/linux/mptcp.h.
const MPTCP_INFO: c_int = 1;
const MPTCP_INFO_FLAG_FALLBACK: u32 = 1;

/// A socket option whose value is an int.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IntOption {
    /// The kernel's name of it.
    pub(crate) name: &'static str,
    level: c_int,
    option: c_int,
}

impl IntOption {
    /// Returns the option that the kernel calls `name`.
    pub(crate) const fn new(name: &'static str, level: c_int, option: c_int) -> Self {
        Self {
            name,
            level,
            option,
        }
    }
}

macro_rules! int_option {
    ($level:ident $name:ident) => {
        pub(crate) const $name: IntOption =
            IntOption::new(stringify!($name), libc::$level, libc::$name);
    };
}

int_option!(SOL_SOCKET SO_SNDBUF);
int_option!(SOL_SOCKET SO_RCVBUF);
int_option!(SOL_SOCKET SO_RCVLOWAT);
int_option!(SOL_SOCKET SO_INCOMING_CPU);
int_option!(SOL_SOCKET SO_INCOMING_NAPI_ID);
int_option!(SOL_SOCKET SO_REUSEADDR);
int_option!(SOL_SOCKET SO_ERROR);
int_option!(IPPROTO_TCP TCP_NODELAY);
int_option!(IPPROTO_TCP TCP_QUICKACK);
int_option!(IPPROTO_TCP TCP_MAXSEG);
int_option!(IPPROTO_TCP TCP_CORK);
int_option!(IPPROTO_TCP TCP_DEFER_ACCEPT);
int_option!(IPPROTO_TCP TCP_NOTSENT_LOWAT);
int_option!(SOL_SOCKET SO_BUSY_POLL);
int_option!(SOL_SOCKET SO_BINDTOIFINDEX);
int_option!(IPPROTO_IP IP_TOS);
int_option!(IPPROTO_IPV6 IPV6_TCLASS);
int_option!(IPPROTO_IP IP_MTU);
int_option!(IPPROTO_IPV6 IPV6_MTU);
int_option!(IPPROTO_IP IP_BIND_ADDRESS_NO_PORT);
int_option!(SOL_SOCKET SO_PROTOCOL);
int_option!(SOL_SOCKET SO_ZEROCOPY);

/// Returns a new non-blocking stream socket of the address family of `peer` and of `protocol`.
pub(crate) fn open(peer: SocketAddr, protocol: c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
    new(family(peer), kind, protocol)
}

/// Returns a new socket.
pub(super) fn new(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket takes three numbers and no pointer.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    check(fd)?;
    // SAFETY: `fd` was just returned as a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the family of an address.
pub(super) fn family(address: SocketAddr) -> c_int {
    match address {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    }
}

/// Gives the socket a local address; one with a zone keeps it to that device. An address of IPv4 has one where
/// it is written as one of IPv6.
pub(crate) fn bind(fd: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    let mut address = address;
    if let SocketAddr::V6(v6) = address
        && v6.scope_id() != 0
    {
        set(
            fd.as_raw_fd(),
            SO_BINDTOIFINDEX,
            v6.scope_id().cast_signed(),
        )?;
        if let Some(v4) = v6.ip().to_ipv4_mapped() {
            address = SocketAddr::new(v4.into(), v6.port());
        }
    }
    let (storage, bytes) = to_kernel(address);
    // SAFETY: the kernel reads `bytes` bytes of `storage`, which to_kernel has written.
    let status = unsafe { libc::bind(fd.as_raw_fd(), (&raw const storage).cast(), bytes) };
    check(status)
}

/// Gives a socket that is about to connect a local address, with a port of the kernel's choice.
///
/// The port is chosen when connecting, where it only has to be unique together with the peer's:
/// more than 28 000 flows from one address. An old kernel that refuses this has fewer.
pub(crate) fn bind_before_connect(fd: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    let _ = set(fd.as_raw_fd(), IP_BIND_ADDRESS_NO_PORT, 1);
    let mut any_port = address;
    any_port.set_port(0);
    bind(fd, any_port)
}

/// Takes up a connection that waits at a listening socket; the new socket does not block.
pub(crate) fn accept(fd: RawFd) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: with null pointers the kernel writes no address.
    let socket = unsafe { libc::accept4(fd, std::ptr::null_mut(), std::ptr::null_mut(), flags) };
    check(socket)?;
    // SAFETY: `socket` was just returned as a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Returns the socket's own address and port.
pub(crate) fn local(fd: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    address(fd, libc::getsockname)
}

/// Returns the address and port that the socket is connected to.
pub(crate) fn remote(fd: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    address(fd, libc::getpeername)
}

/// A call that tells one of a socket's addresses.
type AddressCall = unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int;

fn address(fd: BorrowedFd<'_>, call: AddressCall) -> io::Result<SocketAddr> {
    // SAFETY: a sockaddr_in6 is numbers only, for which zero is a value.
    let mut storage: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    let mut bytes = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to `storage`, which is that long.
    let status = unsafe { call(fd.as_raw_fd(), (&raw mut storage).cast(), &mut bytes) };
    check(status)?;
    from_kernel(&storage)
}

/// Lets calls wait, each at most `notice`, or not at all; a notice of 0 is no limit (socket(7)).
pub(crate) fn set_blocking(fd: BorrowedFd<'_>, notice: Option<Duration>) -> io::Result<()> {
    let raw = fd.as_raw_fd();
    // SAFETY: fcntl takes numbers here and no pointer.
    let flags = unsafe { libc::fcntl(raw, libc::F_GETFL) };
    check(flags)?;
    let flags = match notice {
        Some(_) => flags & !libc::O_NONBLOCK,
        None => flags | libc::O_NONBLOCK,
    };
    // SAFETY: as above.
    check(unsafe { libc::fcntl(raw, libc::F_SETFL, flags) })?;
    let Some(notice) = notice else {
        return Ok(());
    };
    let time = libc::timeval {
        tv_sec: notice.as_secs() as _,
        tv_usec: notice.subsec_micros().into(),
    };
    for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        set_option(raw, libc::SOL_SOCKET, option, &time)?;
    }
    Ok(())
}

/// Ends one direction of a connection, or both.
pub(crate) fn shutdown(fd: BorrowedFd<'_>, how: Shutdown) -> io::Result<()> {
    let how = match how {
        Shutdown::Read => libc::SHUT_RD,
        Shutdown::Write => libc::SHUT_WR,
        Shutdown::Both => libc::SHUT_RDWR,
    };
    // SAFETY: shutdown takes two numbers and no pointer.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), how) })
}

/// Starts to connect; on a non-blocking socket it goes on after EINPROGRESS.
pub(crate) fn connect(fd: BorrowedFd<'_>, peer: SocketAddr) -> io::Result<()> {
    let (storage, bytes) = to_kernel(peer);
    // SAFETY: the kernel reads `bytes` bytes of `storage`, which to_kernel has written.
    let status = unsafe { libc::connect(fd.as_raw_fd(), (&raw const storage).cast(), bytes) };
    check(status)
}

/// Waits until the socket is writable, has failed, or `timeout` has passed (then `false`).
pub(crate) fn wait_writable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    wait(fd, libc::POLLOUT, timeout)
}

/// Waits until data or an error is there, or `timeout` has passed (then `false`).
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    wait(fd, libc::POLLIN, timeout)
}

/// Returns whether an error waits to be told. It stays there for whoever reads or writes next, who would not
/// hear of one that `SO_ERROR` had told.
pub(crate) fn has_error(fd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(poll(fd, 0, Duration::ZERO)? & libc::POLLERR != 0)
}

/// Returns whether the other end has ended the stream, read to there or not.
pub(crate) fn has_stream_end(fd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(poll(fd, libc::POLLRDHUP, Duration::ZERO)? & libc::POLLRDHUP != 0)
}

/// Returns how much payload of a stream has come, in order, and was not read.
pub(crate) fn unread_bytes(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: c_int = 0;
    // SAFETY: FIONREAD writes one int, which is valid and exclusively ours; the descriptor is open.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    check(done)?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

fn wait(fd: BorrowedFd<'_>, events: c_short, timeout: Duration) -> io::Result<bool> {
    Ok(poll(fd, events, timeout)? != 0)
}

/// Returns which of `events`, or what went wrong, is so within `timeout`; 0 for nothing.
fn poll(fd: BorrowedFd<'_>, events: c_short, timeout: Duration) -> io::Result<c_short> {
    let mut entry = libc::pollfd {
        fd: fd.as_raw_fd(),
        events,
        revents: 0,
    };
    let time = libc::timespec {
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as _,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: ppoll reads and writes one pollfd, which is valid and exclusively ours, and reads one
    // timespec that outlives the call; a null signal mask changes none.
    let ready = unsafe { libc::ppoll(&mut entry, 1, &time, std::ptr::null()) };
    check(ready)?;
    Ok(entry.revents)
}

/// Hands `payload` to the socket; returns how much of it was taken.
pub(crate) fn send(fd: RawFd, payload: &[u8]) -> io::Result<usize> {
    send_flagged(fd, payload, 0)
}

/// Hands `payload` to the socket, which keeps what fills no segment until more comes: the end.
pub(crate) fn send_more(fd: RawFd, payload: &[u8]) -> io::Result<usize> {
    send_flagged(fd, payload, libc::MSG_MORE)
}

/// As a bare system call, like [`receive`]: in a process with threads the C library lets a thread be
/// cancelled around each `send` and `recv`, which takes 0.7 % of a transaction over loopback.
fn send_flagged(fd: RawFd, payload: &[u8], flags: c_int) -> io::Result<usize> {
    // SAFETY: the kernel reads `payload.len()` bytes of `payload`, and no address, since there is
    // none. MSG_NOSIGNAL keeps a closed peer from raising SIGPIPE.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_sendto,
            libc::c_long::from(fd),
            payload.as_ptr(),
            payload.len(),
            libc::c_long::from(libc::MSG_NOSIGNAL | flags),
            std::ptr::null::<libc::sockaddr>(),
            0 as libc::c_long,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Most times that one call repeats its payload, or its room.
pub(crate) const REPEATS_MAX: usize = 16;

/// Hands `bytes` of `payload`, which is not empty, again and again to the socket, or as many as
/// [`REPEATS_MAX`] times it has; returns how much was taken.
pub(crate) fn send_repeated(fd: RawFd, payload: &[u8], bytes: usize) -> io::Result<usize> {
    let parts = repeated(payload.as_ptr().cast_mut(), payload.len(), bytes);
    // SAFETY: a msghdr of zeros is one without name, control data and parts.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_ptr().cast_mut();
    message.msg_iovlen = parts_used(&parts) as _;
    // SAFETY: the kernel reads `parts`, each of which lies within `payload`; both outlive the call.
    // MSG_NOSIGNAL keeps a closed peer from raising SIGPIPE.
    let sent = unsafe { libc::sendmsg(fd, &message, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Takes up to `bytes` of payload from the socket, or as many as [`REPEATS_MAX`] times `room` has, and
/// keeps what came last to each place of it; 0 is the end of the stream.
pub(crate) fn receive_repeated(fd: RawFd, room: &mut [u8], bytes: usize) -> io::Result<usize> {
    let parts = repeated(room.as_mut_ptr(), room.len(), bytes);
    // SAFETY: the kernel writes to `parts`, each of which lies within `room`, which is exclusively ours,
    // one after the other; both outlive the call.
    let received = unsafe { libc::readv(fd, parts.as_ptr(), parts_used(&parts) as c_int) };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// Returns `bytes` as parts that all begin at `start` and have up to `part_bytes`.
fn repeated(start: *mut u8, part_bytes: usize, bytes: usize) -> [libc::iovec; REPEATS_MAX] {
    let mut left_bytes = bytes;
    std::array::from_fn(|_| {
        let iov_len = part_bytes.min(left_bytes);
        left_bytes -= iov_len;
        libc::iovec {
            iov_base: start.cast(),
            iov_len,
        }
    })
}

/// Returns how many of `parts` are not empty, which come first.
fn parts_used(parts: &[libc::iovec]) -> usize {
    parts.partition_point(|part| part.iov_len > 0)
}

/// Hands `first` and then `payload` to the socket, as one call; returns how much of both was taken.
pub(crate) fn send_both(fd: RawFd, first: &[u8], payload: &[u8]) -> io::Result<usize> {
    let part = |bytes: &[u8]| libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let parts = [part(first), part(payload)];
    // SAFETY: a msghdr of zeros is one without name, control data and parts.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_ptr().cast_mut();
    message.msg_iovlen = parts.len() as _;
    // SAFETY: the kernel reads `parts`, which are `first` and `payload`; all outlive the call.
    // MSG_NOSIGNAL keeps a closed peer from raising SIGPIPE.
    let sent = unsafe { libc::sendmsg(fd, &message, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Takes payload from the socket; 0 is the end of the stream.
pub(crate) fn receive(fd: RawFd, room: &mut [u8]) -> io::Result<usize> {
    receive_flagged(fd, room, 0)
}

/// Shows what would be taken from the socket, and leaves it there.
pub(crate) fn peek(fd: RawFd, room: &mut [u8]) -> io::Result<usize> {
    receive_flagged(fd, room, libc::MSG_PEEK)
}

fn receive_flagged(fd: RawFd, room: &mut [u8], flags: c_int) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `room.len()` bytes to `room`, which is exclusively ours, and
    // no address, since both pointers for it are null.
    let received = unsafe {
        libc::syscall(
            libc::SYS_recvfrom,
            libc::c_long::from(fd),
            room.as_mut_ptr(),
            room.len(),
            libc::c_long::from(flags),
            std::ptr::null_mut::<libc::sockaddr>(),
            std::ptr::null_mut::<libc::socklen_t>(),
        )
    };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// Takes up to `bytes` of payload from a TCP or MPTCP socket and drops it, without a copy; 0 is the
/// end of the stream.
pub(crate) fn discard(fd: RawFd, bytes: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC these two protocols write nothing (tcp(7)); any other would find that
    // address 0 cannot be written to, and say EFAULT.
    let dropped = unsafe { libc::recv(fd, std::ptr::null_mut(), bytes, libc::MSG_TRUNC) };
    usize::try_from(dropped).map_err(|_| io::Error::last_os_error())
}

/// Sets an option.
pub(crate) fn set(fd: RawFd, option: IntOption, value: i32) -> io::Result<()> {
    set_option(fd, option.level, option.option, &value)
}

/// Returns an option as the kernel has it.
pub(crate) fn read(fd: RawFd, option: IntOption) -> io::Result<i32> {
    let mut value = [0; size_of::<c_int>()];
    read_option(fd, option.level, option.option, &mut value)?;
    Ok(c_int::from_ne_bytes(value))
}

/// Sets an option to what lies in `value`.
pub(super) fn set_option<T: ?Sized>(
    fd: RawFd,
    level: c_int,
    option: c_int,
    value: &T,
) -> io::Result<()> {
    let bytes = size_of_val(value) as libc::socklen_t;
    // SAFETY: the kernel reads `bytes` bytes of `value`, its size; value outlives the call.
    check(unsafe { libc::setsockopt(fd, level, option, (&raw const *value).cast(), bytes) })
}

/// Writes an option into `room` and returns how many bytes of it the kernel has.
pub(super) fn read_option(
    fd: RawFd,
    level: c_int,
    option: c_int,
    room: &mut [u8],
) -> io::Result<usize> {
    let mut bytes = room.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to `room`, which is that long.
    let status =
        unsafe { libc::getsockopt(fd, level, option, room.as_mut_ptr().cast(), &mut bytes) };
    check(status)?;
    Ok((bytes as usize).min(room.len()))
}

/// Chooses the congestion control algorithm.
pub(crate) fn set_congestion(fd: RawFd, algorithm: &str) -> io::Result<()> {
    // The kernel takes a name up to a zero or its longest, and would grant what was not asked for.
    if algorithm.len() >= CONGESTION_NAME_BYTES || algorithm.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    // The kernel adds the zero at the end itself.
    set_option(
        fd,
        libc::IPPROTO_TCP,
        libc::TCP_CONGESTION,
        algorithm.as_bytes(),
    )
}

/// Returns the congestion control algorithm in force.
pub(crate) fn congestion(fd: RawFd) -> io::Result<String> {
    let mut name = [0_u8; CONGESTION_NAME_BYTES + 1];
    let room = &mut name[..CONGESTION_NAME_BYTES];
    read_option(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, room)?;
    let name = CStr::from_bytes_until_nul(&name).map_err(io::Error::other)?;
    Ok(name.to_string_lossy().into_owned())
}

/// Lets the kernel send no faster than this many bytes per second; TCP then paces by itself,
/// whatever the queueing discipline (`SO_MAX_PACING_RATE`, socket(7)).
pub(crate) fn limit_pacing(fd: RawFd, bytes_per_s: u64) -> io::Result<()> {
    let option = libc::SO_MAX_PACING_RATE;
    set_option(fd, libc::SOL_SOCKET, option, &bytes_per_s)
}

/// Returns how many bytes of struct tcp_info the kernel has written to `room`.
pub(crate) fn tcp_info(fd: RawFd, room: &mut [u8; TCP_INFO_BYTES_MAX]) -> io::Result<usize> {
    read_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, room)
}

/// What a socket that was asked to speak MPTCP speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mptcp {
    /// MPTCP.
    Spoken {
        /// Connections of TCP that carry it, the first included.
        subflows: u8,
        /// Payload that it took in, in order, over all of them: mptcpi_bytes_received, since Linux 6.5.
        bytes_received: Option<u64>,
        /// Payload that the other end has acknowledged: mptcpi_bytes_acked, as old.
        bytes_acked: Option<u64>,
    },
    /// TCP: it is no socket of MPTCP, or it fell back.
    PlainTcp,
}

impl Mptcp {
    /// Returns how many connections carry it; 0 for TCP.
    pub(crate) fn subflows(self) -> u8 {
        match self {
            Mptcp::Spoken { subflows, .. } => subflows,
            Mptcp::PlainTcp => 0,
        }
    }

    /// Returns the payload that the other end has acknowledged, over all of them.
    pub(crate) fn bytes_acked(self) -> Option<u64> {
        match self {
            Mptcp::Spoken { bytes_acked, .. } => bytes_acked,
            Mptcp::PlainTcp => None,
        }
    }
}

/// Returns what the socket speaks: MPTCP_INFO, since Linux 5.16 (include/uapi/linux/mptcp.h).
pub(crate) fn mptcp(fd: RawFd) -> Mptcp {
    // struct mptcp_info begins with six numbers of a byte, the first of which counts the subflows
    // beside the first, and has its flags at byte 8, mptcpi_bytes_received at byte 64 and
    // mptcpi_bytes_acked at 72.
    let mut info = [0_u8; 80];
    // Sockets of TCP have no such option (ENOPROTOOPT), nor has MPTCP that fell back (EOPNOTSUPP).
    let Ok(written) = read_option(fd, SOL_MPTCP, MPTCP_INFO, &mut info) else {
        return Mptcp::PlainTcp;
    };
    if u32::from_ne_bytes(std::array::from_fn(|at| info[8 + at])) & MPTCP_INFO_FLAG_FALLBACK != 0 {
        return Mptcp::PlainTcp;
    }
    let counter = |begin: usize| {
        let bytes = std::array::from_fn(|at| info[begin + at]);
        (written == info.len()).then_some(u64::from_ne_bytes(bytes))
    };
    Mptcp::Spoken {
        subflows: info[0].saturating_add(1),
        bytes_received: counter(64),
        bytes_acked: counter(72),
    }
}

/// Returns the error that the calling thread's last call left, if `status` says that it failed.
pub(super) fn check(status: c_int) -> io::Result<()> {
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Returns `address` as the kernel wants it, with its length.
pub(super) fn to_kernel(address: SocketAddr) -> (libc::sockaddr_in6, libc::socklen_t) {
    // A sockaddr_in6 is longer than a sockaddr_in, and both start with family and port, so the
    // shorter one is written over the longer one's first bytes.
    match address {
        SocketAddr::V6(v6) => {
            let kernel = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            };
            (kernel, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
        }
        SocketAddr::V4(v4) => {
            let kernel = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET as libc::sa_family_t,
                sin6_port: v4.port().to_be(),
                // sin_addr lies where sin6_flowinfo does, in network order.
                sin6_flowinfo: u32::from_ne_bytes(v4.ip().octets()),
                sin6_addr: libc::in6_addr { s6_addr: [0; 16] },
                sin6_scope_id: 0,
            };
            (kernel, size_of::<libc::sockaddr_in>() as libc::socklen_t)
        }
    }
}

/// Returns the address that the kernel has written.
pub(super) fn from_kernel(storage: &libc::sockaddr_in6) -> io::Result<SocketAddr> {
    let port = u16::from_be(storage.sin6_port);
    match c_int::from(storage.sin6_family) {
        // sin_addr lies where sin6_flowinfo does, in network order.
        libc::AF_INET => {
            let address = Ipv4Addr::from(storage.sin6_flowinfo.to_ne_bytes());
            Ok(SocketAddr::new(address.into(), port))
        }
        libc::AF_INET6 => Ok(SocketAddrV6::new(
            Ipv6Addr::from(storage.sin6_addr.s6_addr),
            port,
            storage.sin6_flowinfo,
            storage.sin6_scope_id,
        )
        .into()),
        family => Err(io::Error::other(format!("address family {family}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_call_fills_its_room_again_and_again() {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"0123456789").unwrap();
        let mut room = [0; 4];
        let mut receive = |bytes| {
            let received = receive_repeated(far.as_raw_fd(), &mut room, bytes).unwrap();
            (received, room)
        };
        assert_eq!(receive(9), (9, *b"8567"));
        assert_eq!(receive(9), (1, *b"9567"), "no more than there is");
        let most = 4 * REPEATS_MAX;
        near.write_all(&vec![7; most + 1]).unwrap();
        assert_eq!(receive(most + 1).0, most, "no more than one call has parts");
        assert_eq!(receive(1), (1, [7; 4]));
        drop(near);
        assert_eq!(receive(9).0, 0, "the end of the stream");
    }

    #[test]
    fn what_nobody_has_read_is_counted() {
        let (mut near, far) = UnixStream::pair().unwrap();
        assert_eq!(unread_bytes(far.as_fd()).unwrap(), 0);
        near.write_all(b"0123456789").unwrap();
        assert_eq!(unread_bytes(far.as_fd()).unwrap(), 10);
        assert_eq!(
            receive_repeated(far.as_raw_fd(), &mut [0; 4], 4).unwrap(),
            4
        );
        assert_eq!(unread_bytes(far.as_fd()).unwrap(), 6);
    }
}
