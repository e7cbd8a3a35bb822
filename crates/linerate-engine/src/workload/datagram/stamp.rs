//! The header of a datagram of a stream, as iperf3 writes it.
//!
//! ```text
//! offset  bytes  content, big-endian
//!      0      4  seconds of the sender's CLOCK_MONOTONIC
//!      4      4  microseconds
//!      8      4  number, from 1 on: 32-bit numbers
//!      8      8  number, from 1 on: 64-bit numbers
//! ```

/// Bytes of a header with 32-bit numbers; those with 64-bit numbers have four more.
const SHORT_BYTES: usize = 12;
const LONG_BYTES: usize = 16;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The sender's clock, in microseconds.
    pub(super) sent_us: u64,
    /// The number; of 32 bits where they are short.
    pub(super) number: u64,
}

/// Writes the header of datagram `number`; `short` numbers keep their lower half. `datagram` has at
/// least 16 bytes.
pub(super) fn write(datagram: &mut [u8], now_ns: u64, number: u64, short: bool) {
    let us = now_ns / 1_000;
    datagram[..4].copy_from_slice(&((us / 1_000_000) as u32).to_be_bytes());
    datagram[4..8].copy_from_slice(&((us % 1_000_000) as u32).to_be_bytes());
    if short {
        datagram[8..SHORT_BYTES].copy_from_slice(&(number as u32).to_be_bytes())
    } else {
        datagram[8..LONG_BYTES].copy_from_slice(&number.to_be_bytes())
    }
}

/// Reads a header, unless the datagram is too short for one.
pub(super) fn read(datagram: &[u8], short: bool) -> Option<Stamp> {
    let word = |at: usize| {
        let bytes = datagram.get(at..)?.first_chunk::<4>()?;
        Some(u64::from(u32::from_be_bytes(*bytes)))
    };
    let sent_us = word(0)? * 1_000_000 + word(4)?;
    let number = if short {
        word(8)?
    } else {
        (word(8)? << 32) | word(12)?
    };
    Some(Stamp { sent_us, number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_wire() {
        let mut datagram = [0xff; 20];
        write(&mut datagram, 3_000_004_999, 1 << 40 | 7, false);
        assert_eq!(
            datagram[..16],
            [0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 1, 0, 0, 0, 0, 7]
        );
        let long = Stamp {
            sent_us: 3_000_004,
            number: 1 << 40 | 7,
        };
        assert_eq!(read(&datagram, false), Some(long));
        write(&mut datagram, 3_000_004_999, 1 << 40 | 7, true);
        assert_eq!(read(&datagram, true), Some(Stamp { number: 7, ..long }));
        assert_eq!(read(&datagram[..15], false), None);
        assert_eq!(read(&datagram[..11], true), None);
    }
}
