//! The Universal Scalability Law: what one more of something is worth.
//!
//! X(n) = γ n / (1 + α (n − 1) + β n (n − 1)): with n of something the throughput is γ n, less what they wait for each other
//! (α) and what they tell each other (β) (Gunther, "Guerrilla Capacity Planning", 2007, chapter 4). As n / X(n) it is a line
//! in n − 1 and n (n − 1), which is fitted with slopes from zero on.

use super::fit::{Fit, Row};

/// Fewest numbers of something that a law of three unknowns is fitted to.
const LEVELS_MIN: usize = 4;

/// A law of what throughput is with n of something.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scaling {
    /// What one has.
    pub(crate) one: f64,
    /// What they wait for each other.
    pub(crate) contention: f64,
    /// What they tell each other.
    pub(crate) coherency: f64,
    /// Relative errors, by n.
    pub(crate) residuals: Vec<(f64, f64)>,
}

impl Scaling {
    /// Returns the law of `points`, n and throughput of each; absent for fewer than four different n, and where none fits.
    pub(crate) fn of(points: &[(f64, f64)]) -> Option<Self> {
        let mut numbers: Vec<f64> = points.iter().map(|(n, _)| *n).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        if numbers.len() < LEVELS_MIN || points.iter().any(|(_, x)| *x <= 0.0) {
            return None;
        }
        let rows = points.iter().enumerate().map(|(cell, (n, x))| Row {
            cell,
            work: vec![1.0, n - 1.0, n * (n - 1.0)],
            cost: n / x,
        });
        let rows: Vec<Row> = rows.collect();
        let prices = Fit::prices_of(&rows);
        let one = 1.0 / prices[0].max(f64::MIN_POSITIVE);
        let mut law = Self {
            one,
            contention: prices[1] * one,
            coherency: prices[2] * one,
            residuals: Vec::new(),
        };
        law.residuals = points
            .iter()
            .map(|(n, x)| (*n, x / law.at(*n) - 1.0))
            .collect();
        // What they wait for each other is a share: more than all of it is no such law.
        (law.contention <= 1.0).then_some(law)
    }

    /// Returns what n have.
    pub(crate) fn at(&self, n: f64) -> f64 {
        self.one * n / (1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0))
    }

    /// Returns the n that has most; absent where more always have more.
    pub(crate) fn peak(&self) -> Option<f64> {
        (self.coherency > 0.0).then(|| ((1.0 - self.contention).max(0.0) / self.coherency).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_is_found_again() {
        let truth = |n: f64| 5e8 * n / (1.0 + 0.1 * (n - 1.0) + 0.01 * n * (n - 1.0));
        let points = [1.0, 2.0, 4.0, 8.0, 16.0].map(|n| (n, truth(n)));
        let law = Scaling::of(&points).expect("a law");
        assert!((law.one / 5e8 - 1.0).abs() < 0.01, "{law:?}");
        assert!((law.contention - 0.1).abs() < 0.01, "{law:?}");
        assert!((law.coherency - 0.01).abs() < 0.001, "{law:?}");
        // The peak of the published formula: sqrt((1 − α) / β).
        assert!((law.peak().expect("a peak") - 90f64.sqrt()).abs() < 0.5);
        assert!(law.residuals.iter().all(|(_, error)| error.abs() < 0.01));
        assert_eq!(Scaling::of(&points[..3]), None);
    }
}
