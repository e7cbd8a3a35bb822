//! A connection over time, in bins that widen as it grows: the same memory for a second as for a
//! day.

use linerate_model::sample::End;

/// Bins of one connection at the most.
const BINS_MAX: usize = 256;
/// The width that bins begin with.
const WIDTH_NS_MIN: u64 = 1_000_000;

/// What one end sent in one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BinEnd {
    pub data_packets: u32,
    pub pure_acks: u32,
    pub payload_bytes: u64,
    pub retransmissions: u32,
}

impl BinEnd {
    fn join(&mut self, other: &Self) {
        self.data_packets = self.data_packets.saturating_add(other.data_packets);
        self.pure_acks = self.pure_acks.saturating_add(other.pure_acks);
        self.payload_bytes = self.payload_bytes.saturating_add(other.payload_bytes);
        self.retransmissions = self.retransmissions.saturating_add(other.retransmissions);
    }
}

/// The bins of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    /// When the first bin begins, in nanoseconds since 1970.
    pub start_ns: u64,
    /// How wide each bin is, in nanoseconds.
    pub width_ns: u64,
    /// What the client sent in each, then what the server sent.
    pub bins: Vec<[BinEnd; 2]>,
}

impl Timeline {
    /// Returns a timeline that begins at `start_ns`.
    pub(crate) fn new(start_ns: u64) -> Self {
        Self {
            start_ns,
            width_ns: WIDTH_NS_MIN,
            bins: Vec::new(),
        }
    }

    /// Returns what `end` sent in the bin of `time_ns`.
    #[inline]
    pub(crate) fn at(&mut self, time_ns: u64, end: End) -> &mut BinEnd {
        let elapsed = time_ns.saturating_sub(self.start_ns);
        while elapsed / self.width_ns >= BINS_MAX as u64 {
            self.widen();
        }
        let at = (elapsed / self.width_ns) as usize;
        if at >= self.bins.len() {
            self.bins.resize(at + 1, [BinEnd::default(); 2]);
        }
        &mut self.bins[at][end as usize]
    }

    #[cold]
    fn widen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let halves = self.bins.len().div_ceil(2);
        for at in 0..halves {
            let mut bin = self.bins[2 * at];
            if let Some(second) = self.bins.get(2 * at + 1) {
                bin[0].join(&second[0]);
                bin[1].join(&second[1]);
            }
            self.bins[at] = bin;
        }
        self.bins.truncate(halves);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widening_keeps_sums() {
        let mut timeline = Timeline::new(1000);
        for second in 0..5000u64 {
            let end = if second % 2 == 0 {
                End::Client
            } else {
                End::Server
            };
            timeline
                .at(1000 + second * 1_000_000_000, end)
                .payload_bytes += 3;
        }
        assert!(timeline.bins.len() <= BINS_MAX);
        let sum = |end: usize| -> u64 {
            let bins = timeline.bins.iter();
            bins.map(|bin| bin[end].payload_bytes).sum()
        };
        assert_eq!((sum(0), sum(1)), (7500, 7500));
        assert!(timeline.width_ns * BINS_MAX as u64 > 4_999_000_000_000);
    }

    #[test]
    fn the_end_of_time_has_a_bin() {
        let mut timeline = Timeline::new(0);
        timeline.at(u64::MAX, End::Client).data_packets += 1;
        assert_eq!(
            timeline
                .bins
                .iter()
                .map(|bin| bin[0].data_packets)
                .sum::<u32>(),
            1
        );
    }
}
