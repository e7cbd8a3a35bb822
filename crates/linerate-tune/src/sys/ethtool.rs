//! Features of a device, on or off (`SIOCETHTOOL`, `include/uapi/linux/ethtool.h`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use linerate_model::knob::Feature;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Returns the commands that read and that set a feature: `ETHTOOL_GTSO` and so on.
fn commands(feature: Feature) -> (u32, u32) {
    match feature {
        Feature::Tso => (0x1e, 0x1f),
        Feature::Gso => (0x23, 0x24),
        Feature::Gro => (0x2b, 0x2c),
    }
}

/// Returns whether `feature` of `device`, in the calling thread's network namespace, is on.
pub(crate) fn is_on(device: &str, feature: Feature) -> io::Result<bool> {
    let (command, data) = (commands(feature).0, 0);
    Ok(ask(device, Value { command, data })?.data != 0)
}

/// Turns `feature` of `device` on or off.
pub(crate) fn set(device: &str, feature: Feature, on: bool) -> io::Result<()> {
    let (command, data) = (commands(feature).1, on.into());
    ask(device, Value { command, data }).map(drop)
}

fn ask(device: &str, mut value: Value) -> io::Result<Value> {
    // SAFETY: ifreq is plain bytes, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    let socket = datagram_socket()?;
    // SAFETY: the request names a device and points to a value of the layout that these commands read and
    // write; both live across the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value)
}

fn datagram_socket() -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
