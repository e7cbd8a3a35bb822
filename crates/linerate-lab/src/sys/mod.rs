//! The system calls: the only place in this crate with `unsafe`.

/// One feature of a device on or off (`SIOCETHTOOL`).
pub mod ethtool;
/// A program in a host: entering namespaces between fork and exec.
pub mod guest;
/// The first process of a host.
pub mod init;
/// Work inside another network namespace.
pub mod namespace;
/// Links, addresses and queueing disciplines over rtnetlink.
pub mod netlink;
/// Raw frames from and to a device.
pub mod packet;
/// Processes held by descriptor, so that a reused id is never meant.
pub mod process;
/// The token bucket filter's message.
pub mod tbf;
/// A program for the first look at a frame.
pub mod xdp;

use std::io;

/// Returns the error of the last call when `result` is -1, as libc's functions and `syscall` report it.
fn check<N: Copy + PartialEq + From<i8>>(result: N) -> io::Result<N> {
    if result == N::from(-1) {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
