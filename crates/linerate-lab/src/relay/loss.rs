//! Which frames are lost: each by itself, with a fixed probability, from a seeded sequence.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Decides for one direction of a link.
#[derive(Debug)]
pub struct Loss {
    random: Pcg64Mcg,
    /// A frame is lost when 64 random bits are below this.
    threshold: u64,
    lost: u64,
}

impl Loss {
    /// Returns a sequence of decisions that loses a share of `probability`.
    pub fn new(probability: f64, seed: u64) -> Self {
        Self {
            random: Pcg64Mcg::seed_from_u64(seed),
            threshold: (probability.clamp(0.0, 1.0) * u64::MAX as f64) as u64,
            lost: 0,
        }
    }

    /// Tells whether the next frame is lost.
    pub fn handle_frame(&mut self) -> bool {
        if self.threshold == 0 {
            return false;
        }
        let lost = self.random.next_u64() < self.threshold;
        self.lost += u64::from(lost);
        lost
    }

    /// Returns how many frames were lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: u64 = 1_000_000;

    fn lost_of(probability: f64, seed: u64) -> u64 {
        let mut loss = Loss::new(probability, seed);
        for _ in 0..FRAMES {
            loss.handle_frame();
        }
        loss.lost()
    }

    #[test]
    fn the_share_is_the_probability() {
        for (probability, seed) in [(0.001, 1), (0.01, 2), (0.1, 3), (0.5, 4)] {
            let mean = probability * FRAMES as f64;
            let sigma = (mean * (1.0 - probability)).sqrt();
            let lost = lost_of(probability, seed) as f64;
            assert!(
                (lost - mean).abs() < 5.0 * sigma,
                "p {probability}, seed {seed}: {lost} of {FRAMES}"
            );
        }
    }

    #[test]
    fn nothing_is_lost_at_zero_and_a_seed_repeats() {
        assert_eq!(lost_of(0.0, 1), 0);
        assert_eq!(lost_of(0.01, 7), lost_of(0.01, 7));
        assert_ne!(lost_of(0.01, 7), lost_of(0.01, 8));
    }
}
