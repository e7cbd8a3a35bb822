//! How much longer than its delay a frame takes.
//!
//! As on a medium that one sends on at a time, of a radio cell or a cable network: a frame that comes when the line
//! is free waits for a time that is drawn, uniformly between 0 and the jitter; those that come meanwhile wait
//! for it and go right behind it. So frames stay in order, and delays vary for a busy line as well. To draw
//! for each frame by itself, and to keep the order, would give nearly every frame of a busy line the longest
//! of many draws: no jitter.
//!
//! A frame alone waits J / 2 in the mean, of a jitter J. On a line with frames at any instant one falls into
//! a wait of length w with a density 2 w / J² and at any place of it: 2 (J − x) / J² for its own wait x, and
//! J / 3 in the mean.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Draws the waits of one direction of a link.
#[derive(Debug)]
pub struct Jitter {
    random: Pcg64Mcg,
    most_ns: u64,
    /// Until then what comes waits.
    until_ns: u64,
}

impl Jitter {
    /// Returns waits of up to `most_ns`.
    pub fn new(most_ns: u64, seed: u64) -> Self {
        Self {
            random: Pcg64Mcg::seed_from_u64(seed),
            most_ns,
            until_ns: 0,
        }
    }

    /// Returns until when a frame waits that comes at `now_ns`.
    pub fn handle_frame(&mut self, now_ns: u64) -> u64 {
        if now_ns >= self.until_ns {
            let random = u128::from(self.random.next_u64());
            let wait_ns = (random * (u128::from(self.most_ns) + 1)) >> 64;
            self.until_ns = now_ns + wait_ns as u64;
        }
        self.until_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JITTER_NS: u64 = 1_000_000;
    const FRAMES: u64 = 100_000;

    /// Returns the waits of frames `apart_ns` apart.
    fn waits(apart_ns: u64, seed: u64) -> Vec<u64> {
        let mut jitter = Jitter::new(JITTER_NS, seed);
        let mut last = 0;
        let wait = |number| {
            let now_ns = number * apart_ns;
            let until_ns = jitter.handle_frame(now_ns);
            assert!(until_ns >= now_ns && until_ns >= last, "seed {seed}");
            last = until_ns;
            until_ns - now_ns
        };
        (0..FRAMES).map(wait).collect()
    }

    /// Counts by which tenth of the jitter they fall into.
    fn tenths(waits: &[u64]) -> [f64; 10] {
        let mut tenths = [0.0; 10];
        for wait in waits {
            tenths[(wait * 10 / (JITTER_NS + 1)) as usize] += 1.0 / waits.len() as f64;
        }
        tenths
    }

    #[test]
    fn frames_alone_wait_uniformly() {
        for seed in [1, 2] {
            let tenths = tenths(&waits(2 * JITTER_NS, seed));
            // Five standard deviations of a share of 0.1.
            let bound = 5.0 * (0.1 * 0.9 / FRAMES as f64).sqrt();
            let is_uniform = |share: &f64| (share - 0.1).abs() < bound;
            assert!(tenths.iter().all(is_uniform), "seed {seed}: {tenths:?}");
        }
    }

    #[test]
    fn frames_of_a_busy_line_wait_for_the_first() {
        for seed in [1, 2] {
            let waits = waits(JITTER_NS / 1000, seed);
            let mean = waits.iter().sum::<u64>() as f64 / FRAMES as f64;
            // Some 200 waits, with a standard deviation of the mean of 2 %.
            let share = mean / (JITTER_NS as f64 / 3.0);
            assert!((share - 1.0).abs() < 0.1, "seed {seed}: {share}");
            let tenths = tenths(&waits);
            assert!(
                tenths[0] > 0.15 && tenths[9] < 0.03,
                "seed {seed}: {tenths:?}"
            );
        }
    }

    #[test]
    fn a_seed_repeats() {
        assert_eq!(waits(JITTER_NS, 7), waits(JITTER_NS, 7));
        assert_ne!(waits(JITTER_NS, 7), waits(JITTER_NS, 8));
    }
}
