//! One feature of a device on or off (`SIOCETHTOOL`, `include/uapi/linux/ethtool.h`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::check;

/// A feature of veth, on or off.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Feature {
    command: u32,
    value: u32,
}

/// TCP segmentation offload on sending, off (`ETHTOOL_STSO`).
pub const TSO_OFF: Feature = Feature {
    command: 0x1f,
    value: 0,
};
/// Merging of received segments, on (`ETHTOOL_SGRO`); on veth it also turns on NAPI.
pub const GRO_ON: Feature = Feature {
    command: 0x2c,
    value: 1,
};

/// Sets `feature` of `device` in the calling thread's network namespace.
pub fn set_feature(device: &str, feature: Feature) -> io::Result<()> {
    ask(device, feature)
}

/// Lets `device` receive and send by so many of its queues (`ETHTOOL_SCHANNELS`).
pub fn set_channels(device: &str, receive: u32, transmit: u32) -> io::Result<()> {
    let mut channels = [0_u32; 9];
    channels[0] = 0x3d;
    (channels[5], channels[6]) = (receive, transmit);
    ask(device, channels)
}

/// Gives the driver of `device` a command with what it is about.
fn ask<T>(device: &str, mut command: T) -> io::Result<()> {
    // SAFETY: ifreq is plain bytes, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut command).cast();
    let socket = datagram_socket()?;
    // SAFETY: the request names a device and points to a structure of the layout that its command
    // reads; both live across the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })?;
    Ok(())
}

fn datagram_socket() -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd =
        check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
