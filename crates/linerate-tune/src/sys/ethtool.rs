//! Features and numbers of a device (`SIOCETHTOOL`, `include/uapi/linux/ethtool.h`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use linerate_model::knob::{Feature, Number};

/// Where the combined queues of `struct ethtool_channels` stand: the most, then what there are.
const COMBINED: (usize, usize) = (4, 8);
/// Where its receive queues and its transmit queues stand.
const RECEIVE_AND_TRANSMIT: [usize; 2] = [5, 6];
/// Where `rx_coalesce_usecs` of `struct ethtool_coalesce` stands.
const RX_COALESCE_USECS: usize = 1;

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
    Ok(ask(device, [commands(feature).0, 0])?[1] != 0)
}

/// Turns `feature` of `device` on or off.
pub(crate) fn set(device: &str, feature: Feature, on: bool) -> io::Result<()> {
    ask(device, [commands(feature).1, on.into()]).map(drop)
}

/// Returns a number of `device`; of queues that receive and send apart, those that receive.
pub(crate) fn number(device: &str, number: Number) -> io::Result<u32> {
    match number {
        Number::ReceiveCoalescing => Ok(coalescing(device)?[RX_COALESCE_USECS]),
        Number::Queues => {
            let channels = channels(device)?;
            Ok(channels[counts(&channels)[0]])
        }
        Number::TransmitQueues => {
            let channels = channels(device)?;
            Ok(channels[of_sending(&channels)])
        }
    }
}

/// Sets a number of `device`; of queues that receive and send apart, both.
pub(crate) fn set_number(device: &str, number: Number, value: u32) -> io::Result<()> {
    match number {
        Number::ReceiveCoalescing => {
            let mut all = coalescing(device)?;
            all[0] = 0x0f;
            all[RX_COALESCE_USECS] = value;
            ask(device, all).map(drop)
        }
        Number::Queues => {
            let all = channels(device)?;
            set_channels(device, all, counts(&all), value)
        }
        Number::TransmitQueues => {
            let all = channels(device)?;
            set_channels(device, all, &[of_sending(&all)], value)
        }
    }
}

/// Returns `struct ethtool_coalesce` of `device` (`ETHTOOL_GCOALESCE`).
fn coalescing(device: &str) -> io::Result<[u32; 23]> {
    let mut all = [0; 23];
    all[0] = 0x0e;
    ask(device, all)
}

/// Returns `struct ethtool_channels` of `device` (`ETHTOOL_GCHANNELS`).
fn channels(device: &str) -> io::Result<[u32; 9]> {
    let mut all = [0; 9];
    all[0] = 0x3c;
    ask(device, all)
}

/// Sets the numbers of `channels` that stand at `places` (`ETHTOOL_SCHANNELS`).
fn set_channels(
    device: &str,
    mut channels: [u32; 9],
    places: &[usize],
    value: u32,
) -> io::Result<()> {
    channels[0] = 0x3d;
    places.iter().for_each(|at| channels[*at] = value);
    ask(device, channels).map(drop)
}

/// Returns where the number of queues stands that send.
fn of_sending(channels: &[u32; 9]) -> usize {
    counts(channels).last().copied().unwrap_or(COMBINED.1)
}

/// Returns where the numbers of queues stand that the device has: combined, or of either kind.
fn counts(channels: &[u32; 9]) -> &'static [usize] {
    const ONE: &[usize] = &[COMBINED.1];
    if channels[COMBINED.0] > 0 {
        ONE
    } else {
        &RECEIVE_AND_TRANSMIT
    }
}

/// Asks the driver with a structure of whole numbers, of which the first is the command.
fn ask<const N: usize>(device: &str, mut value: [u32; N]) -> io::Result<[u32; N]> {
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
    // SAFETY: the request names a device and points to as many numbers as the structure of its command has, all
    // of which the kernel may read and write; both live across the call.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_says_what_it_does_not_have() {
        for asked in [
            Number::ReceiveCoalescing,
            Number::Queues,
            Number::TransmitQueues,
        ] {
            let error =
                number("lo", asked).expect_err("loopback has no interrupts and no channels");
            assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP), "{asked:?}");
        }
        assert!(is_on("lo", Feature::Gso).is_ok());
        assert!(is_on("no-such-device", Feature::Gso).is_err());
    }
}
