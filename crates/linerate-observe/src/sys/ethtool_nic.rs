//! What a driver says of its card: firmware, bus, rings, channels, moderation, RSS, pause.

use std::io;

use super::ethtool::{Answer, Ethtool};

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

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GCOALESCE: u32 = 0x0e;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
const ETHTOOL_GRXFH: u32 = 0x29;
const ETHTOOL_GRXFHINDIR: u32 = 0x38;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
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
// asks its command with exactly that many, GRXFH with the whole of its structure and more.
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
    /// Returns the name of the driver.
    pub(crate) fn driver(&self, device: &str) -> io::Result<String> {
        let [driver, ..] = self.driver_info(device)?;
        Ok(driver)
    }

    /// Returns the versions of driver and firmware, and the address on the bus; empty where the
    /// driver says nothing.
    pub(crate) fn versions_and_bus(&self, device: &str) -> io::Result<[String; 3]> {
        let [_, version, firmware, bus] = self.driver_info(device)?;
        Ok([version, firmware, bus])
    }

    fn driver_info(&self, device: &str) -> io::Result<[String; 4]> {
        let mut answer = DriverInfo {
            command: ETHTOOL_GDRVINFO,
            texts: [[0; 32]; 5],
            rest: [0; 32],
        };
        self.ask(device, &mut answer)?;
        Ok([0, 1, 2, 3].map(|at| {
            let text: &[u8; 32] = &answer.texts[at];
            let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        }))
    }

    /// Returns the entries of the rings.
    pub(crate) fn rings(&self, device: &str) -> io::Result<Rings> {
        let words = self.words::<9>(device, ETHTOOL_GRINGPARAM)?;
        Ok(Rings {
            rx_max: Some(words[1]),
            tx_max: Some(words[4]),
            rx: Some(words[5]),
            tx: Some(words[8]),
        })
    }

    /// Returns when the card interrupts.
    pub(crate) fn moderation(&self, device: &str) -> io::Result<Moderation> {
        let words = self.words::<23>(device, ETHTOOL_GCOALESCE)?;
        Ok(Moderation {
            rx_usecs: Some(words[1]),
            rx_frames: Some(words[2]),
            tx_usecs: Some(words[5]),
            tx_frames: Some(words[6]),
            adaptive_rx: Some(words[10] != 0),
            adaptive_tx: Some(words[11] != 0),
        })
    }

    /// Returns whether pause frames are negotiated, honoured and sent.
    pub(crate) fn pause(&self, device: &str) -> io::Result<Pause> {
        let words = self.words::<4>(device, ETHTOOL_GPAUSEPARAM)?;
        Ok(Pause {
            autoneg: words[1] != 0,
            rx: words[2] != 0,
            tx: words[3] != 0,
        })
    }

    /// Returns the queues in use, and those that the card can have.
    pub(crate) fn channels(&self, device: &str) -> io::Result<Channels> {
        // Most of rx, tx, other and combined, then those in use.
        let words = self.words::<9>(device, ETHTOOL_GCHANNELS)?;
        let (combined_max, combined) = (words[4], words[8]);
        Ok(Channels {
            rx_max: words[1].max(combined_max),
            tx_max: words[2].max(combined_max),
            rx: words[5].saturating_add(combined),
            tx: words[6].saturating_add(combined),
        })
    }

    /// Returns the fields that choose the queue of a TCP and of a UDP packet over IPv4.
    pub(crate) fn hash_fields(&self, device: &str) -> io::Result<[String; 2]> {
        let of = |flow_type| -> io::Result<String> {
            // struct ethtool_rxnfc is 192 bytes; this command copies its first 16.
            let mut answer = Words::<64>([0; 64]);
            answer.0[0] = ETHTOOL_GRXFH;
            answer.0[1] = flow_type;
            self.ask(device, &mut answer)?;
            let bytes = [answer.0[2].to_ne_bytes(), answer.0[3].to_ne_bytes()].concat();
            let bits = bytes
                .first_chunk()
                .map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            Ok(hash_words(bits))
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

    fn words<const N: usize>(&self, device: &str, command: u32) -> io::Result<[u32; N]> {
        let mut answer = Words([0; N]);
        answer.0[0] = command;
        self.ask(device, &mut answer)?;
        Ok(answer.0)
    }
}

fn hash_words(bits: u64) -> String {
    let fields = HASH_FIELDS.iter().filter(|(bit, _)| bits & bit != 0);
    let names: Vec<&str> = fields.map(|(_, name)| *name).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
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
        assert!(ethtool.rings("lo").is_err());
        assert!(ethtool.rss_table("lo").is_err());
        assert!(ethtool.rings("nosuchdevice0").is_err());
    }
}
