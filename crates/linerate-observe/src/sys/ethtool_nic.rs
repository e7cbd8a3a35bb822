//! What a driver says of its card: firmware, bus, rings, channels, moderation, RSS, pause.

use std::io;

use super::ethtool::{Answer, Ethtool, joined, text};

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GRXFH: u32 = 0x29;
const ETHTOOL_GRXFHINDIR: u32 = 0x38;

/// What of a card is a list of numbers, by the command that asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// When it interrupts (ETHTOOL_GCOALESCE).
    Coalesce = 0x0e,
    /// Entries of the rings (ETHTOOL_GRINGPARAM).
    Rings = 0x10,
    /// Pause frames (ETHTOOL_GPAUSEPARAM).
    Pause = 0x12,
    /// Queues (ETHTOOL_GCHANNELS).
    Channels = 0x3c,
}

/// Words of the longest of these lists, with the command.
const NUMBERS_MAX: usize = 23;
const TCP_V4_FLOW: u32 = 1;
const UDP_V4_FLOW: u32 = 2;
/// Longest RSS table believed; the largest of today's have 4096 entries.
const TABLE_MAX: usize = 16 << 10;

/// Fields of a packet that the hash of RSS takes in (RXH_*), by bit.
const HASH_FIELDS: [(u64, &str); 7] = [
    (1 << 1, "destination MAC"),
    (1 << 2, "VLAN"),
    (1 << 3, "protocol"),
    (1 << 4, "source address"),
    (1 << 5, "destination address"),
    (1 << 6, "source port"),
    (1 << 7, "destination port"),
];

/// Words of 32 bits after a command: N with it.
#[repr(C)]
struct Words<const N: usize>([u32; N]);

// SAFETY: struct ethtool_ringparam is 9 words, ethtool_coalesce 23, ethtool_pauseparam 4,
// ethtool_channels 9; GRXFH copies 4 words where FLOW_RSS is not asked for. Each function below
// asks its command with as many and more.
unsafe impl<const N: usize> Answer for Words<N> {}

#[repr(C)]
struct DriverInfo {
    command: u32,
    /// driver, version, fw_version, bus_info, erom_version, reserved2.
    texts: [[u8; 32]; 5],
    rest: [u8; 12 + 5 * 4],
}

// SAFETY: struct ethtool_drvinfo is 196 bytes, asserted below.
unsafe impl Answer for DriverInfo {}
const _: () = assert!(size_of::<DriverInfo>() == 196);

impl Ethtool {
    /// Returns the driver's name, its version and the firmware's, and the address on the bus; empty where
    /// the driver says nothing.
    pub(crate) fn driver_info(&self, device: &str) -> io::Result<[String; 4]> {
        let mut answer = DriverInfo {
            command: ETHTOOL_GDRVINFO,
            texts: [[0; 32]; 5],
            rest: [0; 32],
        };
        self.ask(device, &mut answer)?;
        Ok([0, 1, 2, 3].map(|at| text(&answer.texts[at])))
    }

    /// Returns a list of numbers behind the command; what is beyond its length is 0.
    pub(crate) fn numbers(&self, device: &str, list: Numbers) -> io::Result<[u32; NUMBERS_MAX]> {
        let mut answer = Words([0; NUMBERS_MAX]);
        answer.0[0] = list as u32;
        self.ask(device, &mut answer)?;
        Ok(answer.0)
    }

    /// Returns the fields that choose the queue of a TCP and of a UDP packet over IPv4.
    pub(crate) fn hash_fields(&self, device: &str) -> io::Result<[String; 2]> {
        let of = |flow_type| -> io::Result<String> {
            // struct ethtool_rxnfc is 192 bytes; this command copies its first 16.
            let mut answer = Words::<64>([0; 64]);
            answer.0[0] = ETHTOOL_GRXFH;
            answer.0[1] = flow_type;
            self.ask(device, &mut answer)?;
            Ok(hash_words(joined(answer.0[2], answer.0[3])))
        };
        Ok([of(TCP_V4_FLOW)?, of(UDP_V4_FLOW)?])
    }

    /// Returns the table by which a hash leads to a receive queue.
    pub(crate) fn rss_table(&self, device: &str) -> io::Result<Vec<u32>> {
        // struct ethtool_rxfh_indir: command, size, then the table.
        let mut words = vec![0_u32; 2 + TABLE_MAX];
        words[0] = ETHTOOL_GRXFHINDIR;
        // SAFETY: with a size of 0 the kernel copies the two words of the header.
        unsafe { self.ask_at(device, words.as_mut_ptr().cast()) }?;
        let size = words[1] as usize;
        if size > TABLE_MAX {
            return Err(io::Error::other(format!("a table of {size} is too long")));
        }
        words[0] = ETHTOOL_GRXFHINDIR;
        // SAFETY: the kernel copies a table of the size in the header, or refuses with EINVAL where
        // that is not the device's, and there is room for it.
        unsafe { self.ask_at(device, words.as_mut_ptr().cast()) }?;
        Ok(words[2..2 + size].to_vec())
    }
}

fn hash_words(bits: u64) -> String {
    let fields = HASH_FIELDS.iter().filter(|(bit, _)| bits & bit != 0);
    let names: Vec<&str> = fields.map(|(_, name)| *name).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_fields_have_names() {
        assert_eq!(
            hash_words(0xf0),
            "source address, destination address, source port, destination port"
        );
        assert_eq!(hash_words(0x30), "source address, destination address");
        assert_eq!(hash_words(0), "none");
    }

    #[test]
    fn loopback_has_no_card() {
        let ethtool = Ethtool::open().expect("a socket");
        assert!(ethtool.numbers("lo", Numbers::Rings).is_err());
        assert!(ethtool.rss_table("lo").is_err());
        assert!(ethtool.numbers("nosuchdevice0", Numbers::Rings).is_err());
    }
}
