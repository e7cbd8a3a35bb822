//! Datagrams: the header, and the receiver's account of loss, order and jitter.

/// What a client sends to open a stream, and what it is answered, since 3.12.
pub const HELLO: [u8; 4] = *b"9876";
/// The answer of a server.
pub const HELLO_ANSWER: [u8; 4] = *b"6789";
/// What older servers on little-endian machines answer: 987654321.
const HELLO_ANSWER_OLD: [u8; 4] = 987_654_321_u32.to_le_bytes();

/// Returns whether `datagram` opens a stream: four bytes. Servers do not look at their content.
pub fn is_hello(datagram: &[u8]) -> bool {
    datagram.len() == HELLO.len()
}

/// Returns whether `datagram` is a server's answer, of any release and byte order.
pub fn is_answer(datagram: &[u8]) -> bool {
    let mut reversed = HELLO_ANSWER_OLD;
    reversed.reverse();
    [HELLO_ANSWER, HELLO_ANSWER_OLD, reversed]
        .iter()
        .any(|answer| datagram == answer)
}

/// How wide the sequence number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counters {
    /// 32 bits: the header has 12 bytes.
    Bits32,
    /// 64 bits (`--udp-counters-64bit`): the header has 16 bytes.
    Bits64,
}

impl Counters {
    /// Returns the bytes of a header.
    pub fn header_bytes(self) -> usize {
        match self {
            Counters::Bits32 => 12,
            Counters::Bits64 => 16,
        }
    }
}

/// What stands before the payload of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// When it was sent, on the sender's monotonic clock, in µs; differences matter only.
    pub sent_us: u64,
    /// Its number, from 1.
    pub sequence: u64,
}

impl Header {
    /// Writes the header to the front of `datagram`; returns `None` if it is too short.
    ///
    /// Seconds beyond 32 bits and, with narrow counters, numbers beyond 32 bits are cut.
    pub fn encode(self, counters: Counters, datagram: &mut [u8]) -> Option<()> {
        let header = datagram.get_mut(..counters.header_bytes())?;
        let seconds = (self.sent_us / 1_000_000) as u32;
        let micros = (self.sent_us % 1_000_000) as u32;
        header[..4].copy_from_slice(&seconds.to_be_bytes());
        header[4..8].copy_from_slice(&micros.to_be_bytes());
        match counters {
            Counters::Bits32 => header[8..].copy_from_slice(&(self.sequence as u32).to_be_bytes()),
            Counters::Bits64 => header[8..].copy_from_slice(&self.sequence.to_be_bytes()),
        }
        Some(())
    }

    /// Reads the header at the front of `datagram`; returns `None` if it is too short.
    pub fn decode(counters: Counters, datagram: &[u8]) -> Option<Self> {
        let header = datagram.get(..counters.header_bytes())?;
        let word = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            u64::from(u32::from_be_bytes(bytes))
        };
        let sequence = match counters {
            Counters::Bits32 => word(8),
            Counters::Bits64 => word(8) << 32 | word(12),
        };
        Some(Self {
            sent_us: word(0) * 1_000_000 + word(4),
            sequence,
        })
    }
}

/// The receiver's account of one stream, as iperf3 keeps it.
///
/// A number above the highest so far adds the gap to the losses. A number not above it is late or
/// double: it counts as out of order and takes one loss back, if there is one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Arrivals {
    /// Datagrams that arrived, of any order.
    pub received: u64,
    /// The highest number seen; this is what iperf3 calls packets.
    pub highest: u64,
    /// Datagrams lost.
    pub lost: u64,
    /// Datagrams late or double.
    pub out_of_order: u64,
    /// Jitter after RFC 3550, section 6.4.1, in seconds.
    pub jitter_s: f64,
    transit_us: Option<i64>,
}

impl Arrivals {
    /// Takes up a datagram that arrived at `arrived_us` on the receiver's monotonic clock.
    pub fn handle(&mut self, header: Header, arrived_us: u64) {
        self.received += 1;
        if header.sequence > self.highest {
            self.lost = self.lost.saturating_add(header.sequence - self.highest - 1);
            self.highest = header.sequence;
        } else {
            self.out_of_order += 1;
            self.lost = self.lost.saturating_sub(1);
        }
        let transit_us = arrived_us.wrapping_sub(header.sent_us) as i64;
        if let Some(before_us) = self.transit_us {
            // J ← J + (|D| − J)/16.
            let difference_s = transit_us.wrapping_sub(before_us).unsigned_abs() as f64 / 1e6;
            self.jitter_s += (difference_s - self.jitter_s) / 16.0;
        }
        self.transit_us = Some(transit_us);
    }

    /// Returns what has arrived since `earlier`, a copy of this account.
    ///
    /// Jitter is a running value and stays as it is. Losses that were taken back after `earlier`
    /// count as none.
    pub fn since(&self, earlier: &Arrivals) -> Arrivals {
        Arrivals {
            received: self.received.saturating_sub(earlier.received),
            highest: self.highest.saturating_sub(earlier.highest),
            lost: self.lost.saturating_sub(earlier.lost),
            out_of_order: self.out_of_order.saturating_sub(earlier.out_of_order),
            ..*self
        }
    }

    /// Returns the losses in percent of `highest`; 0 before the first datagram.
    pub fn lost_percent(&self) -> f64 {
        lost_percent(self.lost, self.highest)
    }
}

/// Returns `lost` in percent of `packets`; 0 if there were none.
pub fn lost_percent(lost: u64, packets: u64) -> f64 {
    match packets {
        0 => 0.0,
        packets => 100.0 * lost as f64 / packets as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(sequences: &[u64]) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for &sequence in sequences {
            arrivals.handle(
                Header {
                    sent_us: 0,
                    sequence,
                },
                0,
            );
        }
        arrivals
    }

    #[test]
    fn loss_and_order() {
        let check = |sequences: &[u64], highest, lost, out_of_order| {
            let account = arrivals(sequences);
            let got = (account.highest, account.lost, account.out_of_order);
            assert_eq!(got, (highest, lost, out_of_order), "{sequences:?}");
            assert_eq!(account.received, sequences.len() as u64);
        };
        check(&[], 0, 0, 0);
        check(&[1, 2, 3], 3, 0, 0);
        check(&[3], 3, 2, 0);
        check(&[1, 4], 4, 2, 0);
        check(&[1, 3, 2], 3, 0, 1);
        check(&[1, 2, 2], 2, 0, 1);
        check(&[1, 4, 2, 2, 2], 4, 0, 3);
        check(&[u64::MAX, 1], u64::MAX, u64::MAX - 2, 1);
    }

    #[test]
    fn jitter_follows_the_formula() {
        let mut arrivals = Arrivals::default();
        for (sequence, sent_us, arrived_us) in [(1, 0, 100), (2, 1000, 1116), (3, 2000, 2100)] {
            arrivals.handle(Header { sent_us, sequence }, arrived_us);
        }
        // Transit 100, 116, 100 µs: J = 16/16 = 1 µs, then 1 + (16 − 1)/16 µs.
        assert!((arrivals.jitter_s - 1.9375e-6).abs() < 1e-15);
    }

    #[test]
    fn headers_are_big_endian() {
        let header = Header {
            sent_us: 0x0102_0304 * 1_000_000 + 0x0506,
            sequence: 0x0A0B_0C0D,
        };
        let mut narrow = [0; 12];
        header.encode(Counters::Bits32, &mut narrow).unwrap();
        assert_eq!(narrow, [1, 2, 3, 4, 0, 0, 5, 6, 10, 11, 12, 13]);
        assert_eq!(Header::decode(Counters::Bits32, &narrow), Some(header));
        let mut wide = [0; 16];
        header.encode(Counters::Bits64, &mut wide).unwrap();
        assert_eq!(wide[8..], [0, 0, 0, 0, 10, 11, 12, 13]);
        assert_eq!(Header::decode(Counters::Bits64, &wide), Some(header));
        assert_eq!(header.encode(Counters::Bits64, &mut narrow), None);
        assert_eq!(Header::decode(Counters::Bits64, &narrow), None);
    }

    #[test]
    fn an_interval_is_a_difference() {
        let early = arrivals(&[1, 4]);
        let mut late = early;
        for sequence in [6, 2] {
            late.handle(
                Header {
                    sent_us: 0,
                    sequence,
                },
                0,
            );
        }
        let between = late.since(&early);
        assert_eq!((between.received, between.highest), (2, 2));
        assert_eq!((between.lost, between.out_of_order), (0, 1));
    }

    #[test]
    fn hellos_of_all_releases() {
        assert_eq!(HELLO_ANSWER_OLD, [0xB1, 0x68, 0xDE, 0x3A]);
        for hello in [HELLO, 123_456_789_u32.to_le_bytes(), [0; 4]] {
            assert!(is_hello(&hello));
        }
        assert!(!is_hello(b"98765"));
        assert!(is_answer(b"6789") && is_answer(&HELLO_ANSWER_OLD));
        assert!(is_answer(&[0x3A, 0xDE, 0x68, 0xB1]));
        assert!(!is_answer(b"9876") && !is_answer(b""));
    }
}
