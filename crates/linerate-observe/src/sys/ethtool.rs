//! Questions to a network driver by the SIOCETHTOOL ioctl (include/uapi/linux/ethtool.h).
//!
//! Every kernel in use answers it, and none of these questions needs a privilege. Most of them are
//! asked by netlink first, see `card`.

use std::io;
use std::os::fd::AsRawFd;

use netlink_sys::{Socket, protocols::NETLINK_ROUTE};

const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
/// Most 32-bit words of a link-mode mask: the count travels as a signed byte.
const LINK_MODE_WORDS_MAX: usize = 127;

/// What of a device is on or off, by the command that asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toggle {
    /// The link (ETHTOOL_GLINK).
    Link = 0x0a,
    /// TCP segmentation by the device (ETHTOOL_GTSO).
    Tso = 0x1e,
    /// Segmentation late in the kernel (ETHTOOL_GGSO).
    Gso = 0x23,
    /// Aggregation of received packets (ETHTOOL_GGRO).
    Gro = 0x2b,
}

/// Asks drivers of the network namespace in which it was opened.
pub(crate) struct Ethtool {
    socket: Socket,
}

#[repr(C)]
struct Value {
    command: u32,
    value: u32,
}

#[repr(C)]
struct LinkSettings {
    command: u32,
    speed_mbps: u32,
    /// duplex, port, phy_address, autoneg, mdio_support, eth_tp_mdix, eth_tp_mdix_ctrl.
    modes: [u8; 7],
    link_mode_words: i8,
    /// transceiver, master_slave_cfg, master_slave_state, rate_matching, reserved.
    rest: [u32; 8],
    link_modes: [u32; 3 * LINK_MODE_WORDS_MAX],
}

/// Returns the text before the terminating zero.
pub(super) fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Returns a number of 64 bits of its halves, as they lie one behind the other.
pub(super) fn joined(first: u32, second: u32) -> u64 {
    let halves = [first.to_ne_bytes(), second.to_ne_bytes()];
    u64::from_ne_bytes(std::array::from_fn(|at| halves.as_flattened()[at]))
}

/// A structure that one ethtool command reads and fills.
///
/// # Safety
///
/// The type is `repr(C)` of integers only, begins with the command, and is at least as long as
/// what the kernel copies for every command it is used with.
pub(super) unsafe trait Answer {}

// SAFETY: struct ethtool_value is two 32-bit words.
unsafe impl Answer for Value {}
// SAFETY: struct ethtool_link_settings is 48 bytes, asserted below, and three masks of at most
// LINK_MODE_WORDS_MAX words follow it.
unsafe impl Answer for LinkSettings {}

const _: () = assert!(size_of::<LinkSettings>() == 48 + 12 * LINK_MODE_WORDS_MAX);

impl Ethtool {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// Any kind of socket passes the ioctl on to the device; this one exists on every host.
    pub(crate) fn open() -> io::Result<Self> {
        Socket::new(NETLINK_ROUTE).map(|socket| Self { socket })
    }

    /// Returns whether it is on.
    pub(crate) fn is_on(&self, device: &str, toggle: Toggle) -> io::Result<bool> {
        let mut answer = Value {
            command: toggle as u32,
            value: 0,
        };
        self.ask(device, &mut answer)?;
        Ok(answer.value != 0)
    }

    /// Returns speed in Mbit/s, duplex and whether both are negotiated; the names of modes are not known
    /// by this way.
    pub(crate) fn link_settings(&self, device: &str) -> io::Result<[u32; 3]> {
        let mut answer = LinkSettings {
            command: ETHTOOL_GLINKSETTINGS,
            speed_mbps: 0,
            modes: [0; 7],
            link_mode_words: 0,
            rest: [0; 8],
            link_modes: [0; 3 * LINK_MODE_WORDS_MAX],
        };
        // The first question has no room for masks; the kernel answers how many words it wants,
        // negated, and the second question offers exactly them.
        self.ask(device, &mut answer)?;
        if answer.link_mode_words < 0 {
            answer.link_mode_words = answer.link_mode_words.saturating_neg();
            answer.command = ETHTOOL_GLINKSETTINGS;
            self.ask(device, &mut answer)?;
        }
        let [duplex, _, _, autoneg, ..] = answer.modes;
        Ok([answer.speed_mbps, duplex.into(), autoneg.into()])
    }

    pub(super) fn ask<T: Answer>(&self, device: &str, answer: &mut T) -> io::Result<()> {
        // SAFETY: by `Answer`, it is at least as long as what the command copies.
        unsafe { self.ask_at(device, (&raw mut *answer).cast()) }
    }

    /// Asks with the structure at `answer`, which begins with the command.
    ///
    /// # Safety
    ///
    /// `answer` points to as many bytes as the command copies, valid and exclusive for the call.
    pub(super) unsafe fn ask_at(&self, device: &str, answer: *mut libc::c_char) -> io::Result<()> {
        let mut name = [0; libc::IFNAMSIZ];
        if device.len() >= name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in name.iter_mut().zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        let mut request = libc::ifreq {
            ifr_name: name,
            ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: answer },
        };
        // SAFETY: the socket is open; `request` is a valid ifreq with a terminated name; its data
        // pointer is what the caller vouches for.
        let result = unsafe {
            libc::ioctl(
                self.socket.as_raw_fd(),
                libc::SIOCETHTOOL as _,
                &raw mut request,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}
