//! Whether repeated measurements determine a result as well as was asked for.
//!
//! The half width of the mean's interval is t(1 − α/2, n − 1) · s / √n (Student 1908), as netperf
//! computes it for `-I`. Who ends as soon as it is narrow enough also ends where a few agree by chance:
//! of intervals of 95 % he then has 90 % that hold the truth. It has to stay narrow enough for `LOOKS`
//! runs, which brings that to 93 % and more, for two runs more.

use linerate_model::run::Recording;

use crate::compare::interval::{deviation, mean, student};
use crate::groups::outcomes;

/// Runs in a row after each of which an interval has to be narrow enough.
const LOOKS: usize = 3;

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
        let n = values.len() as f64;
        if values.len() < 2 || mean(values) <= 0.0 {
            return None;
        }
        let t = student(n - 1.0, 0.5 + self.confidence / 2.0);
        Some(t * deviation(values) / n.sqrt() / mean(values))
    }

    /// Returns whether `values` are as narrow as is asked for.
    pub fn is_met(&self, values: &[f64]) -> bool {
        self.reached(values)
            .is_some_and(|share| share <= self.half_share)
    }

    /// Returns whether no more runs are needed: whether `values` are as narrow as is asked for, and were it
    /// before the last ones came.
    pub fn is_settled(&self, values: &[f64]) -> bool {
        let begin = values.len().saturating_sub(LOOKS) + 1;
        values.len() >= LOOKS && (begin..=values.len()).all(|end| self.is_met(&values[..end]))
    }
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
    #[test]
    fn who_ends_when_it_is_narrow_is_as_sure_as_he_says() {
        let wanted = Precision {
            confidence: 0.95,
            half_share: 0.02,
        };
        let mut draw = Draw::new(5);
        let mut held = |noise: f64, is_enough: fn(&Precision, &[f64]) -> bool| {
            let mut once = || {
                let mut values = Vec::new();
                while values.len() < 30 && (values.len() < 3 || !is_enough(&wanted, &values)) {
                    values.push(1.0 + noise * draw.normal());
                }
                let half = wanted.reached(&values).expect("three") * mean(&values);
                u32::from((mean(&values) - 1.0).abs() <= half)
            };
            (0..4000).map(|_| once()).sum::<u32>()
        };
        for noise in [0.01, 0.02, 0.03, 0.04] {
            let found = held(noise, Precision::is_settled);
            assert!(found >= 3690, "{noise}: {found} of 4000");
        }
        // What it is for: ended at once, one in ten misses.
        assert!(held(0.03, Precision::is_met) < 3660);
    }
}
