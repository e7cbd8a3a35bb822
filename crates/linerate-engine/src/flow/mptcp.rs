//! Multipath TCP: where the kernel has it, and whether the other end has spoken it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{OwnedFd, RawFd};

use linerate_model::setting::name;
use linerate_model::workload::Setting;

use crate::sys::socket::{self, Mptcp, SO_PROTOCOL};

/// Returns a new socket of MPTCP; of plain TCP where the kernel has no MPTCP or has it switched off.
pub(super) fn open(peer: SocketAddr) -> io::Result<OwnedFd> {
    match socket::open(peer, libc::IPPROTO_MPTCP) {
        Err(error) if is_missing(&error) => socket::open(peer, libc::IPPROTO_TCP),
        opened => opened,
    }
}

/// Tells whether an error of making a socket means that there is no MPTCP: not built in
/// (EPROTONOSUPPORT, or EINVAL before Linux 5.6), or net.mptcp.enabled = 0 (ENOPROTOOPT).
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPROTONOSUPPORT | libc::EINVAL | libc::ENOPROTOOPT)
    )
}

/// Returns the setting that tells what was spoken.
pub(super) fn transport_setting(fd: RawFd) -> Setting {
    let word = match (socket::mptcp(fd), socket::read(fd, SO_PROTOCOL)) {
        (Mptcp::Spoken { .. }, _) => "mptcp",
        (_, Ok(libc::IPPROTO_MPTCP)) => "tcp (one end or the path between does not support MPTCP)",
        _ => "tcp (this end has no MPTCP: see net.mptcp.enabled)",
    };
    Setting::granted(
        name::TRANSPORT,
        Some("mptcp".to_owned()),
        Some(word.to_owned()),
    )
}

/// Returns what was in force at the end, where `seen` subflows were the most while it went on: an end
/// that the other has closed has none but the first.
pub(super) fn effective_transport(fd: RawFd, seen: u8) -> String {
    match socket::mptcp(fd).subflows().max(seen) {
        0 => "tcp".to_owned(),
        1 => "mptcp, 1 subflow".to_owned(),
        subflows => format!("mptcp, {subflows} subflows"),
    }
}
