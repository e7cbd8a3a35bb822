//! How far two runs lie apart with nothing changed.
//!
//! Trials of one run follow each other, and resemble each other more than those of another run: hosts drift, and what
//! a run finds them like stays with all of its trials. The mean of a run of n trials with the relative deviation s
//! therefore has the variance
//!
//! s² (κ² + 1/n),
//!
//! with κ = [`RUN_SHARE`], the deviation of runs over that of trials. Trials of one run do not tell it. Of 79 runs within
//! forty minutes, over loopback and in a lab on a machine whose other users came and went, it was 0 to 1.6. With κ = 2 one
//! of 1383 pairs of runs of the same kind was told to differ, with 1.5 there were 13, with 1 49. It is taken for
//! what a run is known to differ by before another one is seen, worth [`RUN_FREEDOM`] degrees of freedom. Where runs are
//! given of which nothing that is known differs, what they differ by is known as well, and the two are put together by
//! their degrees of freedom d₀ and d (Smyth, "Linear models and empirical Bayes methods", 2004):
//!
//! (d₀ s² (κ² + 1/n) + d r²) / (d₀ + d),
//!
//! r² being the variance of the means of such runs. The ratio of two means is as of logarithms, and its interval
//! Student's with those degrees of freedom.

use super::side::{Values, has_spread};
use crate::compare::interval::{deviation, student};

/// Relative deviation of runs over that of their trials.
const RUN_SHARE: f64 = 2.0;
/// Degrees of freedom that this counts as.
const RUN_FREEDOM: f64 = 4.0;

/// What is known of a pair: its ratio with the interval, or why it has none.
pub(super) struct Apart {
    /// Logarithm of the other over the base.
    pub(super) log: f64,
    /// Its interval.
    pub(super) ends: Option<(f64, f64)>,
    /// Values behind it, on the side that has fewer.
    pub(super) n: usize,
    /// Why there is no interval.
    pub(super) why: Option<String>,
}

impl Apart {
    /// Returns it without its interval where something stands against it.
    pub(super) fn unless(self, why: Option<String>) -> Self {
        match why {
            None => self,
            why => Self {
                ends: None,
                why,
                ..self
            },
        }
    }
}

/// Returns the logarithm of the centre of `other` over that of `base`.
pub(super) fn log_ratio(base: &Values, other: &Values) -> f64 {
    match (base.centre(), other.centre()) {
        (Some(base), Some(other)) => (other / base).ln(),
        _ => f64::NAN,
    }
}

/// Returns the ratio of two runs, with the interval that misses it with probability `alpha`; `kin` are groups of runs of
/// which nothing that is known differs inside a group.
pub(super) fn apart(base: &Values, other: &Values, kin: &[Vec<&Values>], alpha: f64) -> Apart {
    let n = base.trials.len().min(other.trials.len());
    let log = log_ratio(base, other);
    let open = |why: &str| Apart {
        log,
        ends: None,
        n,
        why: Some(why.to_owned()),
    };
    if !log.is_finite() {
        return open("a side is zero, which has no ratio");
    }
    if !has_spread(n) {
        return open(
            "fewer than three valid trials on a side, whose spread is not known: measure with --runs 6",
        );
    }
    let (squares, freedom) = between(kin);
    let variance = |of: &Values| {
        let prior = of.share().powi(2) * (RUN_SHARE.powi(2) + 1.0 / of.trials.len() as f64);
        (RUN_FREEDOM * prior + squares) / (RUN_FREEDOM + freedom)
    };
    let error = (variance(base) + variance(other)).sqrt();
    let half = student(RUN_FREEDOM + freedom, 1.0 - alpha / 2.0) * error;
    Apart {
        log,
        ends: Some((log - half, log + half)),
        n,
        why: None,
    }
}

/// Returns the squares of the logarithms of runs' means about those of their groups, and their degrees of freedom.
fn between(kin: &[Vec<&Values>]) -> (f64, f64) {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for group in kin {
        let centres = group.iter().filter_map(|values| values.centre());
        let logs: Vec<f64> = centres.map(f64::ln).filter(|log| log.is_finite()).collect();
        if logs.len() > 1 {
            let own = logs.len() as f64 - 1.0;
            freedom += own;
            squares += own * deviation(&logs).powi(2);
        }
    }
    (squares, freedom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::draw::Draw;

    fn run(draw: &mut Draw, mean: f64, trials: u32, share: f64, of_run: f64) -> Values {
        let centre = mean * (1.0 + share * of_run * draw.normal());
        let trial = |block| ((block, false), centre * (1.0 + share * draw.normal()));
        Values {
            response: "throughput_bps".to_owned(),
            trials: (1..=trials).map(trial).collect(),
        }
    }

    /// Returns how often of 2000 pairs the interval leaves out that nothing differs.
    fn false_claims(of_run: f64, kin: usize) -> f64 {
        let mut draw = Draw::new(7);
        let mut wrong = 0;
        for _ in 0..2000 {
            let mut one = || run(&mut draw, 1e9, 6, 0.03, of_run);
            let (base, other) = (one(), one());
            let further: Vec<Values> = (0..kin).map(|_| one()).collect();
            let mut group: Vec<&Values> = further.iter().collect();
            group.push(&base);
            let (low, high) = apart(&base, &other, &[group], 0.05)
                .ends
                .expect("six trials");
            wrong += u32::from(low > 0.0 || high < 0.0);
        }
        f64::from(wrong) / 2000.0
    }

    #[test]
    fn runs_that_drift_as_much_as_trials_are_seldom_told_apart() {
        for (of_run, kin) in [(0.0, 0), (0.5, 0), (1.5, 0), (1.5, 2), (1.5, 6)] {
            let share = false_claims(of_run, kin);
            assert!(share <= 0.05, "{of_run}, {kin}: {share}");
        }
        // Beyond what is taken for it the runs themselves have to tell.
        let (alone, beside) = (false_claims(5.0, 0), false_claims(5.0, 8));
        assert!(alone > 0.05 && beside < alone / 2.0, "{alone}, {beside}");
    }

    #[test]
    fn a_run_that_is_far_off_is_told_apart() {
        let mut draw = Draw::new(1);
        let base = run(&mut draw, 1e9, 6, 0.02, 1.0);
        let other = run(&mut draw, 0.7e9, 6, 0.02, 1.0);
        let (low, high) = apart(&base, &other, &[], 0.05).ends.expect("six trials");
        assert!(low < 0.7_f64.ln() && high < 0.0, "{low} {high}");
    }

    #[test]
    fn one_trial_has_no_spread() {
        let mut draw = Draw::new(1);
        let one = run(&mut draw, 1e9, 1, 0.02, 0.0);
        let other = run(&mut draw, 1e9, 6, 0.02, 0.0);
        assert!(apart(&one, &other, &[], 0.05).ends.is_none());
    }
}
