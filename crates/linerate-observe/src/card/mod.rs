//! What the driver of a card says of it: by ethtool's netlink, and by its ioctl where that is all
//! there is.
//!
//! 1. Netlink (family `ethtool`, since Linux 5.6, with rings, channels, moderation, pause and
//!    features since 5.8) is asked first: it has the names of link modes and features, and says
//!    which numbers a driver does not have, where the ioctl says 0.
//! 2. What it does not answer is asked by the ioctl, and [`Cards::way`] names it.
//! 3. Driver, firmware, the table of queues and the driver's statistics have no answer by netlink
//!    on most kernels in use; they come by the ioctl always.
//!
//! The crate `ethtool` asks the same questions; it is asynchronous throughout, and its runtime is
//! more than all of this.

mod message;

use std::collections::BTreeSet;
use std::io;

use self::message::{Command, Lookup};
use crate::generic::open_family;
use crate::sys::ethtool::{Ethtool, Toggle};
use crate::sys::ethtool_nic::Numbers;
use crate::sys::netlink::{NetlinkSocket, Question};

/// What the kernel answers for a speed it does not know (SPEED_UNKNOWN).
const SPEED_UNKNOWN: u32 = u32::MAX;

/// How a link runs and could run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) speed_mbps: Option<u32>,
    pub(crate) full_duplex: Option<bool>,
    pub(crate) autoneg: bool,
    /// Names of the modes that card and port support, of those offered to the other end, and of
    /// those that it offered; absent where nobody says.
    pub(crate) supported: Option<Vec<String>>,
    pub(crate) advertised: Option<Vec<String>>,
    pub(crate) peer: Option<Vec<String>>,
}

/// Entries of the rings, as they are and as they could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rings {
    pub(crate) rx: Option<u32>,
    pub(crate) rx_max: Option<u32>,
    pub(crate) tx: Option<u32>,
    pub(crate) tx_max: Option<u32>,
}

/// Queues in use, and those that there could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Channels {
    pub(crate) rx: u32,
    pub(crate) rx_max: u32,
    pub(crate) tx: u32,
    pub(crate) tx_max: u32,
}

/// When a card interrupts: after so long or so many, or as it sees fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moderation {
    pub(crate) rx_usecs: Option<u32>,
    pub(crate) rx_frames: Option<u32>,
    pub(crate) tx_usecs: Option<u32>,
    pub(crate) tx_frames: Option<u32>,
    pub(crate) adaptive_rx: Option<bool>,
    pub(crate) adaptive_tx: Option<bool>,
}

/// Whether pause frames are negotiated, honoured and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) autoneg: bool,
    pub(crate) rx: bool,
    pub(crate) tx: bool,
}

/// What the device and the kernel do for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) tso: bool,
    pub(crate) gso: bool,
    pub(crate) gro: bool,
    /// Names of those that are on, and of those that are off and could be on.
    pub(crate) on: Option<Vec<String>>,
    pub(crate) off: Option<Vec<String>>,
}

impl Mode {
    /// Returns the mode of these numbers, without names.
    fn of(speed: Option<u32>, duplex: u32, autoneg: u32) -> Self {
        Self {
            speed_mbps: speed.filter(|&speed| speed != 0 && speed != SPEED_UNKNOWN),
            // DUPLEX_HALF, DUPLEX_FULL; DUPLEX_UNKNOWN is 0xff.
            full_duplex: match duplex {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            },
            autoneg: autoneg != 0,
            supported: None,
            advertised: None,
            peer: None,
        }
    }
}

/// Asks drivers of the network namespace in which it was opened.
pub(crate) struct Cards {
    netlink: io::Result<Netlink>,
    ioctl: io::Result<Ethtool>,
    /// What the ioctl answered and netlink did not, of the present device.
    by_ioctl: BTreeSet<&'static str>,
}

/// Ethtool's own family of generic netlink.
struct Netlink {
    socket: NetlinkSocket,
    family: u16,
}

impl Netlink {
    fn ask<T>(
        &mut self,
        command: Command,
        device: &str,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> io::Result<T> {
        let mut question = Question::single(self.family, &message::question(command, device));
        let mut answer = None;
        self.socket
            .ask(&mut question, |_, payload| answer = read(payload))?;
        answer.ok_or_else(odd_answer)
    }
}

impl Cards {
    /// Opens both ways in the network namespace of the calling thread.
    pub(crate) fn open() -> Self {
        let netlink = open_family("ethtool");
        Self {
            netlink: netlink.map(|(socket, family)| Netlink { socket, family }),
            ioctl: Ethtool::open(),
            by_ioctl: BTreeSet::new(),
        }
    }

    /// Opens the ioctl alone.
    #[cfg(test)]
    fn without_netlink() -> Self {
        Self {
            netlink: Err(io::Error::from_raw_os_error(libc::ENOENT)),
            ..Self::open()
        }
    }

    /// Returns the ioctl, for what netlink does not answer.
    pub(crate) fn ioctl(&self) -> Result<&Ethtool, String> {
        self.ioctl.as_ref().map_err(said)
    }

    /// Begins with another device.
    pub(crate) fn begin(&mut self) {
        self.by_ioctl.clear();
    }

    /// Says by which way the questions about the present device were answered.
    pub(crate) fn way(&self) -> String {
        let by_ioctl: Vec<&str> = self.by_ioctl.iter().copied().collect();
        match (&self.netlink, by_ioctl.as_slice()) {
            (Err(error), _) => format!("ioctl; netlink family ethtool: {error}"),
            (Ok(_), []) => "netlink".to_owned(),
            (Ok(_), some) => format!("netlink; by ioctl: {}", some.join(", ")),
        }
    }

    /// Returns how the link runs and could run.
    pub(crate) fn mode(&mut self, device: &str) -> Result<Mode, String> {
        let ask = (Command::LinkModes, "link modes");
        self.ask(device, ask, message::read_mode, |ethtool| {
            let [speed, duplex, autoneg] = ethtool.link_settings(device)?;
            Ok(Mode::of(Some(speed), duplex, autoneg))
        })
    }

    /// Returns whether the device has a link.
    pub(crate) fn link(&mut self, device: &str) -> Result<Option<bool>, String> {
        let ask = (Command::LinkState, "link state");
        self.ask(device, ask, message::read_state, |ethtool| {
            ethtool.is_on(device, Toggle::Link).map(Some)
        })
    }

    /// Returns what the device and the kernel do for it.
    pub(crate) fn features(&mut self, device: &str) -> Result<Features, String> {
        let ask = (Command::Features, "features");
        self.ask(device, ask, message::read_features, |ethtool| {
            Ok(Features {
                tso: ethtool.is_on(device, Toggle::Tso)?,
                gso: ethtool.is_on(device, Toggle::Gso)?,
                gro: ethtool.is_on(device, Toggle::Gro)?,
                on: None,
                off: None,
            })
        })
    }

    /// Returns the entries of the rings.
    pub(crate) fn rings(&mut self, device: &str) -> Result<Rings, String> {
        let ask = (Command::Rings, "rings");
        self.ask_numbers(device, ask, Numbers::Rings, message::rings)
    }

    /// Returns the queues.
    pub(crate) fn channels(&mut self, device: &str) -> Result<Channels, String> {
        let ask = (Command::Channels, "channels");
        self.ask_numbers(device, ask, Numbers::Channels, message::channels)
    }

    /// Returns when the card interrupts.
    pub(crate) fn moderation(&mut self, device: &str) -> Result<Moderation, String> {
        let ask = (Command::Coalesce, "moderation");
        self.ask_numbers(device, ask, Numbers::Coalesce, message::moderation)
    }

    /// Returns how pause frames are used.
    pub(crate) fn pause(&mut self, device: &str) -> Result<Pause, String> {
        let ask = (Command::Pause, "pause");
        self.ask_numbers(device, ask, Numbers::Pause, message::pause)
    }

    /// Asks for numbers, which both ways list in the same order: an attribute of netlink has one more
    /// than the word of the ioctl, since its header takes a number as well.
    fn ask_numbers<T>(
        &mut self,
        device: &str,
        ask: (Command, &'static str),
        list: Numbers,
        read: fn(Lookup<'_>) -> Option<T>,
    ) -> Result<T, String> {
        let by_netlink = |payload: &[u8]| message::read_numbers(payload, read);
        self.ask(device, ask, by_netlink, |ethtool| {
            let words = ethtool.numbers(device, list)?;
            let word = |number: u16| words.get(usize::from(number) - 1).copied();
            read(&word).ok_or_else(odd_answer)
        })
    }

    /// Asks by netlink, and by the ioctl where that has no answer.
    fn ask<T>(
        &mut self,
        device: &str,
        (command, what): (Command, &'static str),
        read: impl Fn(&[u8]) -> Option<T>,
        by_ioctl: impl FnOnce(&Ethtool) -> io::Result<T>,
    ) -> Result<T, String> {
        if let Ok(netlink) = &mut self.netlink
            && let Ok(answer) = netlink.ask(command, device, read)
        {
            return Ok(answer);
        }
        let answer = by_ioctl(self.ioctl.as_ref().map_err(said)?);
        let answer = answer.map_err(|error| said(&error))?;
        self.by_ioctl.insert(what);
        Ok(answer)
    }
}

fn odd_answer() -> io::Error {
    io::Error::other("an answer that makes no sense")
}

fn said(error: &io::Error) -> String {
    format!("ethtool: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_say_the_same_of_loopback() {
        let (mut both, mut ioctl) = (Cards::open(), Cards::without_netlink());
        let features = both.features("lo").expect("features");
        let by_ioctl = ioctl.features("lo").expect("features");
        assert_eq!(
            (features.tso, features.gso, features.gro),
            (by_ioctl.tso, by_ioctl.gso, by_ioctl.gro)
        );
        assert_eq!(both.link("lo"), ioctl.link("lo"));
        assert_eq!(both.rings("lo"), ioctl.rings("lo"));
        assert!(both.rings("lo").is_err(), "it has none");
        assert!(both.mode("nosuchdevice0").is_err());
        assert_eq!(
            ioctl.way(),
            "ioctl; netlink family ethtool: No such file or directory (os error 2)"
        );
        if both.netlink.is_ok() {
            assert_eq!(both.way(), "netlink");
            assert!(features.on.is_some_and(|on| !on.is_empty()));
        }
    }
}
