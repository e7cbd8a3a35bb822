//! One feature of a device on or off (`SIOCETHTOOL`, `include/uapi/linux/ethtool.h`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::check;

/// A feature that veth lets be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// TCP segmentation offload on sending.
    Tso,
    /// Merging of received segments; on veth it also turns on NAPI.
    Gro,
}

/// `ETHTOOL_STSO`.
const SET_TSO: u32 = 0x1f;
/// `ETHTOOL_SGRO`.
const SET_GRO: u32 = 0x2c;

#[repr(C)]
struct Value {
    command: u32,
    value: u32,
}

/// Sets `feature` of `device` in the calling thread's network namespace.
pub fn set_feature(device: &str, feature: Feature, on: OnOff) -> io::Result<()> {
    let command = match feature {
        Feature::Tso => SET_TSO,
        Feature::Gro => SET_GRO,
    };
    let mut value = Value {
        command,
        value: u32::from(on == OnOff::On),
    };
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
    // SAFETY: the request names a device and points to a value of the layout that the command
    // reads; both live across the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) })?;
    Ok(())
}

/// A switch with two positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnOff {
    /// On.
    On,
    /// Off.
    Off,
}

fn datagram_socket() -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd =
        check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
