//! Two runs of which is known how they truly differ, and what `linerate compare` says of the pair.

use linerate_analyze::Draw;
use linerate_analyze::compared::{RunSide, compared};
use linerate_model::finding::Verdict;

use crate::noise::{Noise, Place};
use crate::recording::{MadeRun, Truth, stream};

/// Throughput of the first run: far enough below what the link carries that no noise exceeds that.
const BASE_BPS: f64 = 400e6;
const FAST_LINK_BPS: f64 = 10e9;

/// How often what was said of pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Said {
    /// Pairs that were made.
    pub pairs: u32,
    /// Said to differ, as they do.
    pub found: u32,
    /// Said to differ where nothing does, or the other way round.
    pub wrong: u32,
    /// Said to be the same.
    pub same: u32,
}

/// Returns what is said of so many runs with `trials` each, and for each of `times` another with so many times the
/// throughput; what stays with a run for a while is drawn for each run alone.
pub fn said<const N: usize>(
    times: [f64; N],
    noise: Noise,
    trials: usize,
    pairs: u32,
    seed: u64,
) -> [Said; N] {
    let mut seeds = Draw::new(seed);
    let mut all = [Said::default(); N];
    for _ in 0..pairs {
        let mut run = |mean: f64| run(mean, noise, trials, seeds.bits());
        let base = run(1.0);
        for (said, times) in all.iter_mut().zip(times) {
            said.add(&base, run(times), times);
        }
    }
    all
}

impl Said {
    fn add(&mut self, base: &RunSide, other: RunSide, times: f64) {
        self.pairs += 1;
        let compared = compared(&[base.clone(), other], None);
        for pair in &compared.pairs {
            let is_right = times != 1.0 && (pair.ratio.value > 1.0) == (times > 1.0);
            match pair.verdict {
                Verdict::Differs if is_right => self.found += 1,
                Verdict::Differs => self.wrong += 1,
                Verdict::Same => self.same += 1,
                Verdict::NotDecided => {}
            }
        }
    }
}

fn run(mean: f64, noise: Noise, trials: usize, seed: u64) -> RunSide {
    let mut run = MadeRun::new(1, Some(FAST_LINK_BPS));
    run.experiment("run", None, stream());
    let factors = noise.factors(&vec![Place::default(); trials], seed);
    let truth = |(factor, _): &(f64, f64)| Truth::stream(BASE_BPS * mean * factor);
    let truths: Vec<Truth> = factors.iter().map(truth).collect();
    run.cell(&[], &truths);
    RunSide::of_recording(&run.recording, "run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_far_more_than_trials_do_is_found_and_nothing_else() {
        let [far] = said([0.5], Noise::Normal(0.01), 5, 20, 1);
        assert_eq!((far.found, far.wrong, far.same), (20, 0, 0));
        let [none, half] = said([1.0, 0.5], Noise::Exact, 5, 2, 1);
        assert_eq!((none.found, none.wrong, none.same), (0, 0, 2));
        assert_eq!((half.found, half.wrong, half.same), (2, 0, 0));
    }
}
