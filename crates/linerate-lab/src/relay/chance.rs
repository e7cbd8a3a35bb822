//! What happens to some frames: to each by itself, with a fixed probability, from a seeded sequence.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Decides for one direction of a link, and one thing that may happen to its frames.
#[derive(Debug)]
pub struct Chance {
    random: Pcg64Mcg,
    /// It happens when 64 random bits are below this.
    threshold: u64,
    count: u64,
}

impl Chance {
    /// Returns a sequence of decisions of which a share of `probability` is yes.
    pub fn new(probability: f64, seed: u64) -> Self {
        Self {
            random: Pcg64Mcg::seed_from_u64(seed),
            threshold: (probability.clamp(0.0, 1.0) * u64::MAX as f64) as u64,
            count: 0,
        }
    }

    /// Tells whether it happens to the next frame.
    pub fn handle_frame(&mut self) -> bool {
        if self.threshold == 0 {
            return false;
        }
        let happens = self.random.next_u64() < self.threshold;
        self.count += u64::from(happens);
        happens
    }

    /// Returns to how many frames it happened.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: u64 = 1_000_000;

    fn count_of(probability: f64, seed: u64) -> u64 {
        let mut chance = Chance::new(probability, seed);
        for _ in 0..FRAMES {
            chance.handle_frame();
        }
        chance.count()
    }

    #[test]
    fn the_share_is_the_probability() {
        for (probability, seed) in [(0.001, 1), (0.01, 2), (0.1, 3), (0.5, 4)] {
            let mean = probability * FRAMES as f64;
            let sigma = (mean * (1.0 - probability)).sqrt();
            let count = count_of(probability, seed) as f64;
            assert!(
                (count - mean).abs() < 5.0 * sigma,
                "p {probability}, seed {seed}: {count} of {FRAMES}"
            );
        }
    }

    #[test]
    fn nothing_happens_at_zero_and_a_seed_repeats() {
        assert_eq!(count_of(0.0, 1), 0);
        assert_eq!(count_of(0.01, 7), count_of(0.01, 7));
        assert_ne!(count_of(0.01, 7), count_of(0.01, 8));
    }
}
