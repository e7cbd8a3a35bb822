//! What repeated measurements of one thing say of it, and whether that is as much as was asked for.
//!
//! 1. The half width of the mean's interval is t(1 − α/2, ν) · s · √(k / n) (Student 1908), with ν = n − 1 and
//!    k = 1 where runs do not resemble those before them, as netperf computes it for `-I`.
//! 2. Where they do (a host that drifts, a visitor that stays), k = (1 + ρ) / (1 − ρ) and ν = (n − 1) / k, with the
//!    correlation ρ of successive runs (Bartlett, "On the theoretical specification and sampling properties of
//!    autocorrelated time-series", 1946). In n runs about their own mean it comes out too small by (1 + 4 ρ) / n
//!    (Marriott and Pope, "Bias in the estimation of autocorrelations", 1954), which is put back. Nothing is added
//!    below half of its standard error 1 / √n, and above the whole of it: to take ρ for less costs more than to take
//!    it for more. Fewer than `RUNS_MIN` runs tell nothing of it.
//! 3. Who ends as soon as the interval is narrow enough also ends where a few agree by chance: of intervals of 95 % he
//!    then has 90 % that hold the truth. It has to stay narrow enough for `LOOKS` runs, and for `RUNS_MIN` in all.
//!
//! The interval is of what the host did while these runs were made. Of what it does in another hour runs within
//! seconds know nothing, nor of a state that none of them met: n runs miss one that a share p of the time is spent in
//! with probability (1 − p)ⁿ.

use linerate_model::Nanos;
use linerate_model::finding::{CONFIDENCE, Estimate};
use linerate_model::run::{Recording, TrialRecord};
use linerate_model::unit::Unit;

use crate::compare::interval::{deviation, mean, mean_interval, student};
use crate::groups::outcomes;

/// Runs in a row after each of which an interval has to be narrow enough.
const LOOKS: usize = 3;
/// Fewest runs that tell whether they resemble each other, and fewest that are enough: in 95 of 100 tries they meet a
/// state in which a quarter of all runs is.
const RUNS_MIN: usize = 10;
/// The most that is taken for the correlation: beyond, so few runs tell nothing of how much.
const CORRELATION_MAX: f64 = 0.9;
/// The least degrees of freedom that it leaves.
const FREEDOM_OF_RUNS_MIN: f64 = 2.0;

/// What is asked of the interval of a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// Its confidence: 0.95.
    pub confidence: f64,
    /// Its half width over the mean, at the most: 0.02.
    pub half_share: f64,
}

impl Precision {
    /// Returns the half width over the mean of `values`, at this confidence; absent for fewer than
    /// two, or around zero.
    pub fn reached(&self, values: &[f64]) -> Option<f64> {
        if values.len() < 2 || mean(values) <= 0.0 {
            return None;
        }
        Some(half_width(values, self.confidence) / mean(values))
    }

    /// Returns whether `values` are as narrow as is asked for.
    pub fn is_met(&self, values: &[f64]) -> bool {
        self.reached(values)
            .is_some_and(|share| share <= self.half_share)
    }

    /// Returns whether no more runs are needed: whether there are enough, as narrow as is asked for, and were it before
    /// the last ones came.
    pub fn is_settled(&self, values: &[f64]) -> bool {
        let begin = values.len().saturating_sub(LOOKS) + 1;
        values.len() >= RUNS_MIN && (begin..=values.len()).all(|end| self.is_met(&values[..end]))
    }
}

/// Returns the mean of successive runs with its 95 % interval, for those who show it.
pub fn of_runs(values: &[f64], unit: Unit) -> Option<Estimate> {
    mean_interval(values, unit, |values| Some(half_width(values, CONFIDENCE)))
}

/// Returns the time from the begin of the first window to the end of the last, of the valid runs of a recording.
pub fn time_of_runs(recording: &Recording) -> Option<Nanos> {
    let valid = || recording.trials.iter().filter(|trial| trial.is_valid());
    let end_ns = |trial: &TrialRecord| trial.offset_ns + trial.window_ns;
    let begin_ns = valid().map(|trial| trial.offset_ns).min()?;
    Some(Nanos(valid().map(end_ns).max()? - begin_ns))
}

/// Returns half of the interval of the mean of successive runs, of which there are two at the least.
fn half_width(values: &[f64], confidence: f64) -> f64 {
    let (n, correlation) = (values.len() as f64, correlation(values));
    let more = (1.0 + correlation) / (1.0 - correlation);
    let freedom = ((n - 1.0) / more).max(FREEDOM_OF_RUNS_MIN.min(n - 1.0));
    student(freedom, 0.5 + confidence / 2.0) * deviation(values) * (more / n).sqrt()
}

/// Returns the correlation of successive runs; zero where chance gives as much, or nothing is known of it.
fn correlation(values: &[f64]) -> f64 {
    let (n, mean) = (values.len() as f64, mean(values));
    let about = |at: usize| values[at] - mean;
    let squares: f64 = (0..values.len()).map(|at| about(at).powi(2)).sum();
    if values.len() < RUNS_MIN || squares <= 0.0 {
        return 0.0;
    }
    let products = (1..values.len()).map(|at| about(at - 1) * about(at));
    let found = (products.sum::<f64>() / squares + 1.0 / n) / (1.0 - 4.0 / n);
    let error = 1.0 / n.sqrt();
    if found <= error / 2.0 {
        return 0.0;
    }
    (found + error).min(CORRELATION_MAX)
}

/// Returns the results of a recording of one cell: those of its valid trials, in order.
pub fn results(recording: &Recording) -> Vec<f64> {
    let experiment = recording.document.plan.experiments.first();
    let Some(response) = experiment.map(|experiment| experiment.response.as_str()) else {
        return Vec::new();
    };
    outcomes(recording)
        .iter()
        .filter(|outcome| outcome.is_valid())
        // Of several groups the first is what is repeated for.
        .filter(|outcome| experiment.is_some_and(|it| it.name == outcome.experiment))
        .filter_map(|outcome| outcome.value(response))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::draw::Draw;

    #[test]
    fn intervals_are_those_of_students_table() {
        // Mean 10, s = 1: t(0.975, 2) = 4.303, t(0.995, 2) = 9.925, over √3.
        let values = [9.0, 10.0, 11.0];
        let check = |confidence: f64, expected: f64| {
            let half_share = 0.02;
            let precision = Precision {
                confidence,
                half_share,
            };
            let share = precision.reached(&values).expect("there are three");
            assert!((share - expected).abs() < 1e-4, "{share}");
            assert!(!precision.is_met(&values));
        };
        check(0.95, 4.303 / 3f64.sqrt() / 10.0);
        check(0.99, 9.925 / 3f64.sqrt() / 10.0);
        let wide = Precision {
            confidence: 0.95,
            half_share: 0.25,
        };
        assert!(wide.is_met(&values));
        assert!(!wide.is_met(&values[..1]));
        assert_eq!(wide.reached(&[0.0, 0.0]), None);
    }
    /// Counts of 1000 intervals that hold the truth at ± 2 % of a noise: of ten runs, and of those that ended when
    /// they were narrow enough.
    fn held(noise: impl Fn(&mut Draw) -> Box<dyn FnMut(&mut Draw) -> f64>) -> [u32; 2] {
        let wanted = Precision {
            confidence: 0.95,
            half_share: 0.02,
        };
        let mut draw = Draw::new(5);
        let mut counts = [0; 2];
        for _ in 0..1000 {
            let mut next = noise(&mut draw);
            let values: Vec<f64> = (0..30).map(|_| next(&mut draw)).collect();
            let is_enough = |n: &usize| wanted.is_settled(&values[..*n]);
            let ended = (3..values.len()).find(is_enough).unwrap_or(values.len());
            for (count, n) in counts.iter_mut().zip([10, ended]) {
                let mean = mean(&values[..n]);
                let half = half_width(&values[..n], wanted.confidence);
                *count += u32::from((mean - 1.0).abs() <= half);
            }
        }
        counts
    }

    fn normal(share: f64) -> [u32; 2] {
        held(|_| Box::new(move |draw| 1.0 + share * draw.normal()))
    }

    /// An autoregression with this coefficient and a deviation of 3 %.
    fn resembling(coefficient: f64) -> [u32; 2] {
        held(|draw| {
            let mut state = draw.normal();
            Box::new(move |draw| {
                let rest = (1.0 - coefficient.powi(2)).sqrt();
                state = coefficient * state + rest * draw.normal();
                1.0 + 0.03 * state
            })
        })
    }

    /// One run in `every` is 30 % slower, 1 % beside it, each for `length` runs in turn on average.
    fn slower(every: f64, length: f64) -> [u32; 2] {
        held(|draw| {
            let mut is_slow = draw.unit() < 1.0 / every;
            Box::new(move |draw| {
                if draw.unit() < 1.0 / length {
                    is_slow = draw.unit() < 1.0 / every;
                }
                let slow = if is_slow { 0.3 } else { 0.0 };
                (1.0 - slow) / (1.0 - 0.3 / every) * (1.0 + 0.01 * draw.normal())
            })
        })
    }

    #[test]
    fn intervals_hold_what_their_runs_can_know() {
        for share in [0.01, 0.02, 0.03, 0.04] {
            let [ten, ended] = normal(share);
            assert!(ten >= 935 && ended >= 930, "{share}: {ten}, {ended}");
        }
        // Runs that resemble each other: plain intervals hold 86 and 60 % of ten, 81 and 56 % of those that end.
        let [ten, ended] = resembling(0.3);
        assert!(ten >= 920 && ended >= 890, "{ten}, {ended}");
        let [ten, ended] = resembling(0.7);
        assert!(ten >= 890 && ended >= 870, "{ten}, {ended}");
        // One in five is slower; ten miss it in 11 of 100 tries.
        let [ten, ended] = slower(5.0, 1.0);
        assert!(ten >= 860 && ended >= 860, "{ten}, {ended}");
    }

    #[test]
    fn a_state_that_no_run_met_is_not_known() {
        // Ten runs miss one in fifteen in half of all tries, and one that stays for four runs in most.
        let missed = |counts: [u32; 2]| counts.iter().all(|held| *held < 800);
        assert!(missed(slower(15.0, 1.0)));
        assert!(missed(slower(5.0, 4.0)));
    }

    #[test]
    fn runs_that_resemble_each_other_say_less() {
        let rising: Vec<f64> = (0..12).map(|at| 100.0 + f64::from(at)).collect();
        let mut turning = rising.clone();
        // The same values, far from those beside them.
        for at in (0..6).step_by(2) {
            turning.swap(at, 11 - at);
        }
        assert!(half_width(&rising, 0.95) > 2.0 * half_width(&turning, 0.95));
        assert_eq!(correlation(&turning), 0.0);
        assert_eq!(correlation(&[5.0; 12]), 0.0);
        let estimate = of_runs(&rising, Unit::Count).expect("there are twelve");
        let plain = crate::compare::interval::student_t_interval(&rising, Unit::Count);
        assert_eq!(Some(estimate.value), plain.map(|plain| plain.value));
        assert!(Some(estimate.low) < plain.map(|plain| plain.low));
    }
}
