//! Stream sockets of the Unix domain with names of the abstract namespace (unix(7)).

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use crate::sys::socket;

/// Returns a new non-blocking stream socket.
pub(crate) fn open() -> io::Result<OwnedFd> {
    socket::new(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0)
}

/// Connects to the socket of that name; an error of kind `WouldBlock` says that its backlog is
/// full.
pub(crate) fn connect(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // SAFETY: a sockaddr_un is a number and bytes, all of which may be 0.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // An abstract name begins with a zero byte and has no zero at its end.
    let room = &mut address.sun_path[1..];
    if name.len() > room.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in room.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let bytes = offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    debug_assert!(bytes <= size_of::<libc::sockaddr_un>());
    // SAFETY: the kernel reads `bytes` bytes of `address`, which is longer.
    let status = unsafe {
        libc::connect(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            bytes as libc::socklen_t,
        )
    };
    socket::check(status)
}

/// Returns the names of this end and of the other; empty for an end without one.
pub(crate) fn names(fd: BorrowedFd<'_>) -> io::Result<(String, String)> {
    let stream = UnixStream::from(fd.try_clone_to_owned()?);
    Ok((name(&stream.local_addr()?), name(&stream.peer_addr()?)))
}

fn name(address: &SocketAddr) -> String {
    let name = address.as_abstract_name().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}
