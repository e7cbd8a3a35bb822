//! Latency distributions with bounded relative error.

use serde::{Deserialize, Serialize};

use crate::unit::Nanos;

/// Counts of durations by bucket, ascending; empty buckets are left out.
///
/// The engine records with three significant digits, so each value is known to 0.1 %.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Histogram {
    /// Pairs of a bucket's highest value in nanoseconds and the number of durations in it.
    pub buckets: Vec<(u64, u64)>,
}

impl Histogram {
    /// Returns the number of durations recorded.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.1).sum()
    }

    /// Returns the smallest recorded value not below a share `q` (0 to 1) of all of them.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        let rank = ((self.count() as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        for &(value, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                return Some(Nanos(value));
            }
        }
        None
    }

    /// Returns the largest recorded value.
    pub fn max(&self) -> Option<Nanos> {
        self.buckets.last().map(|bucket| Nanos(bucket.0))
    }

    /// Returns the mean of the recorded values in nanoseconds.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        let sum: f64 = self
            .buckets
            .iter()
            .map(|&(value, n)| value as f64 * n as f64)
            .sum();
        (count > 0).then(|| sum / count as f64)
    }

    /// Returns the mean in nanoseconds of the share `kept` (0 to 1) of values that are shortest.
    pub fn trimmed_mean_ns(&self, kept: f64) -> Option<f64> {
        let mut left = (self.count() as f64 * kept).ceil() as u64;
        let (all, mut sum) = (left, 0.0);
        for &(value, count) in &self.buckets {
            let taken = count.min(left);
            sum += value as f64 * taken as f64;
            left -= taken;
        }
        (all > 0).then(|| sum / all as f64)
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        self.buckets.extend_from_slice(&other.buckets);
        // Stable, which takes two ascending runs as they are.
        self.buckets.sort_by_key(|bucket| bucket.0);
        self.buckets.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += if is_same { next.1 } else { 0 };
            is_same
        });
    }
}

/// Returns the observations needed before quantile `q` may be printed: 10 / (1 − q).
///
/// Fewer leave the quantile to one or two extreme values (Le Boudec 2010, section 2.2).
pub fn observations_needed(q: f64) -> u64 {
    (10.0 / (1.0 - q)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_known_distribution() {
        let histogram = Histogram {
            buckets: (1..=100).map(|value| (value, 10)).collect(),
        };
        assert_eq!(histogram.count(), 1000);
        assert_eq!(histogram.quantile(0.5), Some(Nanos(50)));
        let few = Histogram {
            buckets: vec![(10, 1), (20, 18), (9000, 1)],
        };
        // 19 of 20: 10 and eighteen times 20.
        assert_eq!(few.trimmed_mean_ns(0.95), Some(370.0 / 19.0));
        assert_eq!(Histogram::default().trimmed_mean_ns(0.95), None);
        assert_eq!(histogram.quantile(0.99), Some(Nanos(99)));
        assert_eq!(histogram.quantile(1.0), Some(Nanos(100)));
        assert_eq!(histogram.mean_ns(), Some(50.5));
        assert_eq!(Histogram::default().quantile(0.5), None);
        assert_eq!(observations_needed(0.999), 10_000);
    }

    #[test]
    fn merging_adds_counts() {
        let mut left = Histogram {
            buckets: vec![(1, 1), (3, 1)],
        };
        left.merge(&Histogram {
            buckets: vec![(2, 5), (3, 2), (9, 1)],
        });
        assert_eq!(left.buckets, vec![(1, 1), (2, 5), (3, 3), (9, 1)]);
    }
}
