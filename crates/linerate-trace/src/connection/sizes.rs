//! Sizes of payloads: their distribution, the most frequent, and a sequence that repeats.

/// Sizes that are counted one by one; the others fall under their power of two only.
const FREQUENT_MAX: usize = 8;
/// The longest sequence that is looked for.
pub(crate) const PERIOD_MAX: usize = 8;
/// Powers of two that are told apart: payloads of 1 B to 1 MiB.
pub(crate) const POWERS: usize = 21;

/// A sequence of payload sizes that came again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Repeat {
    sizes: [u32; PERIOD_MAX],
    period: u8,
    /// How many packets in a row followed it.
    pub packets: u32,
}

impl Repeat {
    /// Returns the sizes in their order.
    pub(crate) fn sizes(&self) -> &[u32] {
        &self.sizes[..usize::from(self.period)]
    }
}

/// Sizes of the payloads of one direction.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    pub min: u32,
    pub max: u32,
    /// How many were of each power of two: place p holds 2^p to 2^(p+1) − 1.
    pub powers: [u32; POWERS],
    frequent: [(u32, u32); FREQUENT_MAX],
    last: [u32; PERIOD_MAX],
    /// For each period, how many packets in a row were as long as the one a period before.
    runs: [u32; PERIOD_MAX],
    /// The sequence that the most packets in a row followed.
    pub repeat: Option<Repeat>,
    pub packets: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            min: u32::MAX,
            max: 0,
            powers: [0; POWERS],
            frequent: [(0, 0); FREQUENT_MAX],
            last: [0; PERIOD_MAX],
            runs: [0; PERIOD_MAX],
            repeat: None,
            packets: 0,
        }
    }
}

impl Sizes {
    /// Adds a payload of `bytes`, which is not zero.
    ///
    /// Cost: eight comparisons for periods and up to eight for frequent sizes; bulk flows end at
    /// the first.
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets = self.packets.saturating_add(1);
        self.min = self.min.min(bytes);
        self.max = self.max.max(bytes);
        let power = (bytes.max(1).ilog2() as usize).min(POWERS - 1);
        self.powers[power] = self.powers[power].saturating_add(1);
        self.count_frequent(bytes);
        // `last` holds the sizes from the newest back: the one a period p before is at p − 1.
        for (run, &before) in self.runs.iter_mut().zip(&self.last) {
            *run = if before == bytes {
                run.saturating_add(1)
            } else {
                0
            };
        }
        self.last.copy_within(..PERIOD_MAX - 1, 1);
        self.last[0] = bytes;
        // A sequence is looked at when it has come three times at the least, and then only where
        // it does better than what is known; of one size is no sequence.
        let known = self.repeat.map_or(0, |best| best.packets);
        if self.runs[0] == 0 {
            for period in 2..=PERIOD_MAX {
                let run = self.runs[period - 1];
                if run as usize >= 2 * period && run + (period as u32) > known {
                    self.keep_sequence(period, run);
                    break;
                }
            }
        }
    }

    #[inline]
    fn count_frequent(&mut self, bytes: u32) {
        for (at, (size, count)) in self.frequent.iter_mut().enumerate() {
            if *count > 0 && *size == bytes {
                *count = count.saturating_add(1);
                // The most frequent move to the front, so that the search is short.
                if at > 0 && self.frequent[at - 1].1 < self.frequent[at].1 {
                    self.frequent.swap(at - 1, at);
                }
                return;
            }
        }
        // Misra and Gries: where all places are taken, the last loses one.
        let last = &mut self.frequent[FREQUENT_MAX - 1];
        if last.1 <= 1 {
            *last = (bytes, 1);
            let mut at = FREQUENT_MAX - 1;
            while at > 0 && self.frequent[at - 1].1 == 0 {
                self.frequent.swap(at - 1, at);
                at -= 1;
            }
        } else {
            last.1 -= 1;
        }
    }

    fn keep_sequence(&mut self, period: usize, run: u32) {
        let mut sizes = [0; PERIOD_MAX];
        // Starts at the smallest size, as a reader would.
        let turn = |at: usize| self.last[period - 1 - at % period];
        let start = (0..period).min_by_key(|&at| turn(at)).unwrap_or(0);
        for (at, size) in sizes.iter_mut().take(period).enumerate() {
            *size = turn(start + at);
        }
        self.repeat = Some(Repeat {
            sizes,
            period: period as u8,
            packets: run + period as u32,
        });
    }

    /// Returns the most frequent sizes with a lower bound of their counts, most frequent first.
    pub(crate) fn frequent(&self) -> Vec<(u32, u32)> {
        let mut found: Vec<_> = self
            .frequent
            .iter()
            .copied()
            .filter(|(_, count)| *count > 0)
            .collect();
        found.sort_by_key(|&(size, count)| (std::cmp::Reverse(count), size));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeat_of(sizes: &[u32]) -> Option<(Vec<u32>, u32)> {
        let mut all = Sizes::default();
        sizes.iter().for_each(|&size| all.add(size));
        let repeat = all.repeat?;
        Some((repeat.sizes().to_vec(), repeat.packets))
    }

    #[test]
    fn sequences_are_found() {
        let pair: Vec<u32> = [100, 1400].repeat(10);
        assert_eq!(repeat_of(&pair), Some((vec![100, 1400], 20)));
        let three: Vec<u32> = [1448, 1448, 200].repeat(5);
        assert_eq!(repeat_of(&three), Some((vec![200, 1448, 1448], 15)));
        assert_eq!(repeat_of(&[1448; 50]), None);
        let random: Vec<u32> = (0..60).map(|at| at * at % 53 + 1).collect();
        assert_eq!(repeat_of(&random[..30]), None);
    }

    #[test]
    fn frequent_sizes_are_counted() {
        let mut sizes = Sizes::default();
        for at in 0..1000u32 {
            sizes.add(1448);
            sizes.add(at % 5 + 1);
        }
        assert_eq!(sizes.frequent()[0], (1448, 1000));
        assert_eq!(sizes.frequent()[1], (1, 200));
        assert_eq!((sizes.min, sizes.max, sizes.packets), (1, 1448, 2000));
        assert_eq!(sizes.powers[10], 1000);
    }
}
