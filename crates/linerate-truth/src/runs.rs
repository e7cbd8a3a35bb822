//! Measurements that are repeated, of a known mean, and how often the interval that is shown of them holds it.

use linerate_analyze::Draw;
use linerate_analyze::precision::{Precision, of_runs};
use linerate_model::unit::Unit;

use crate::noise::{Noise, Place};

/// The runs of `--runs 10`.
const RUNS: usize = 10;
/// The most runs until the interval is as narrow as `--precision` asks: as many as it makes where nothing else is said.
const RUNS_MAX: usize = 30;
/// What is asked of the interval.
const WANTED: Precision = Precision {
    confidence: 0.95,
    half_share: 0.02,
};
/// The mean that is true: 1 Gbit/s.
const TRUTH: f64 = 1e9;

/// Counts of what intervals of runs hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Measurements that were made.
    pub tries: u32,
    /// Those whose interval of ten runs holds the mean.
    pub of_ten: u32,
    /// Those whose interval holds it that ended as soon as it was ± 2 %, or after 30 runs.
    pub of_ended: u32,
    /// Runs that these took, all together.
    pub runs_of_ended: u32,
}

/// Returns the counts of so many measurements whose runs differ by `noise`.
pub fn held(noise: Noise, tries: u32, seed: u64) -> Held {
    let mut seeds = Draw::new(seed);
    let mut held = Held {
        tries,
        ..Held::default()
    };
    for _ in 0..tries {
        let factors = noise.factors(&[Place::default(); RUNS_MAX], seeds.bits());
        let values: Vec<f64> = factors.iter().map(|(factor, _)| TRUTH * factor).collect();
        let is_enough = |n: &usize| WANTED.is_settled(&values[..*n]);
        let ended = (2..RUNS_MAX).find(is_enough).unwrap_or(RUNS_MAX);
        held.of_ten += u32::from(holds(&values[..RUNS]));
        held.of_ended += u32::from(holds(&values[..ended]));
        held.runs_of_ended += ended as u32;
    }
    held
}

/// Returns whether the interval that is shown of `values` holds the truth.
fn holds(values: &[f64]) -> bool {
    let shown = of_runs(values, Unit::BitsPerSecond);
    let ends = shown.and_then(|shown| shown.low.zip(shown.high));
    ends.is_some_and(|(low, high)| (low..=high).contains(&TRUTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_equal_runs_hold_the_mean_as_often_as_they_say() {
        // Of 2000 at 95 % four deviations are 39.
        let held = held(Noise::Normal(0.03), 2000, 1);
        assert!((1861..=1939).contains(&held.of_ten), "{held:?}");
        // ± 2 % of a deviation of 3 % takes more than the ten that are the least.
        assert!(held.runs_of_ended > 10 * held.tries, "{held:?}");
    }
}
