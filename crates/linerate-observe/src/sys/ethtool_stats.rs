//! The statistics that a driver keeps, by the SIOCETHTOOL ioctl: their names, and their values.

use std::io;

use super::ethtool::{Answer, Ethtool, joined, text};

const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
/// The set of names of statistics.
const ETH_SS_STATS: u32 = 1;
/// Length of a name, in bytes.
const NAME_BYTES: usize = 32;
/// Most statistics believed; 256 queues with a hundred each are 25 600.
const STATISTICS_MAX: usize = 32 << 10;
/// Statistics there is room for: the kernel writes as many as the driver has when it is asked, so
/// a driver that is given more queues between two questions needs room too.
const ROOM: usize = 2 * STATISTICS_MAX;

#[repr(C)]
struct SetInfo {
    command: u32,
    reserved: u32,
    mask: u64,
    count: [u32; 64],
}

/// Room for the values of one device's statistics, kept from reading to reading.
pub(crate) struct Statistics {
    /// Command and count in the first, as struct ethtool_stats has them; then the values.
    words: Vec<u64>,
}

// SAFETY: struct ethtool_sset_info is 16 bytes and a word for each bit of the mask, of 64 at most.
unsafe impl Answer for SetInfo {}
impl Statistics {
    /// Makes room; pages that are never touched take no memory.
    pub(crate) fn new() -> Self {
        Self {
            words: vec![0; 1 + ROOM],
        }
    }
}

impl Ethtool {
    /// Returns how many statistics the driver keeps.
    pub(crate) fn statistics_count(&self, device: &str) -> io::Result<usize> {
        let mut answer = SetInfo {
            command: ETHTOOL_GSSET_INFO,
            reserved: 0,
            mask: 1 << ETH_SS_STATS,
            count: [0; 64],
        };
        self.ask(device, &mut answer)?;
        // A driver without statistics takes the bit out of the mask.
        let count = if answer.mask == 0 {
            0
        } else {
            answer.count[0] as usize
        };
        match count {
            0..=STATISTICS_MAX => Ok(count),
            _ => Err(io::Error::other(format!("{count} statistics are too many"))),
        }
    }

    /// Returns the names of the statistics, in the order of their values.
    pub(crate) fn statistic_names(&self, device: &str) -> io::Result<Vec<String>> {
        let count = self.statistics_count(device)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        // struct ethtool_gstrings: command, set and length, then the names.
        let length = u32::try_from(count).unwrap_or(0);
        let mut bytes = vec![0_u8; 12 + ROOM * NAME_BYTES];
        for (place, word) in [ETHTOOL_GSTRINGS, ETH_SS_STATS, length].iter().enumerate() {
            bytes[4 * place..][..4].copy_from_slice(&word.to_ne_bytes());
        }
        // SAFETY: the kernel copies a header of 12 bytes and a name for each statistic, of which
        // there are at most half as many as there is room for.
        unsafe { self.ask_at(device, bytes.as_mut_ptr().cast()) }?;
        let names = bytes[12..].chunks_exact(NAME_BYTES).take(count);
        Ok(names.map(text).collect())
    }

    /// Returns the values of the statistics, where there are still `count` of them.
    pub(crate) fn statistics<'a>(
        &self,
        device: &str,
        count: usize,
        room: &'a mut Statistics,
    ) -> io::Result<&'a [u64]> {
        if self.statistics_count(device)? != count {
            return Err(changed());
        }
        // struct ethtool_stats: command and count, two words of 32 bits, then the values.
        let header = joined(ETHTOOL_GSTATS, u32::try_from(count).unwrap_or(0));
        room.words[0] = header;
        // SAFETY: the kernel copies a header of 8 bytes and a value for each statistic, of which
        // there are at most half as many as there is room for.
        unsafe { self.ask_at(device, room.words.as_mut_ptr().cast()) }?;
        if room.words[0] != header {
            return Err(changed());
        }
        Ok(&room.words[1..=count])
    }
}

fn changed() -> io::Error {
    io::Error::other("the driver keeps other statistics than before")
}
