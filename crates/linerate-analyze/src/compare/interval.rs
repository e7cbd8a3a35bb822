//! Confidence intervals of means, medians and quantiles.
//!
//! Means: x̄ ± t(1 − α/2, n − 1) · s / √n, Student 1908. Quantiles: order statistics with exact
//! binomial ranks, which assume nothing about the distribution (Le Boudec, "Performance Evaluation
//! of Computer and Communication Systems", 2010, section 2.2).

use linerate_model::finding::Estimate;
use linerate_model::histogram::{Histogram, observations_needed};
use linerate_model::unit::Unit;
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

/// Confidence of every interval in an analysis.
pub const CONFIDENCE: f64 = 0.95;

/// Returns the two-sided Student quantile for `freedom` degrees of freedom at [`CONFIDENCE`].
pub fn student_t(freedom: f64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(distribution.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}

/// Returns mean, lower and upper end of the 95 % Student interval; the ends are absent for fewer
/// than two values.
///
/// All responses are amounts, so a lower end below zero is cut to zero.
pub fn student_t_interval(values: &[f64], unit: Unit) -> Option<Estimate> {
    if values.is_empty() {
        return None;
    }
    let mean = mean(values);
    let half = half_width(values);
    Some(Estimate {
        value: mean,
        low: half.map(|half| (mean - half).max(0.0_f64.min(mean))),
        high: half.map(|half| mean + half),
        confidence: CONFIDENCE,
        n: u32::try_from(values.len()).unwrap_or(u32::MAX),
        unit,
    })
}

fn half_width(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let t = (values.len() >= 2).then(|| student_t(n - 1.0))??;
    Some(t * deviation(values) / n.sqrt())
}

/// Returns the arithmetic mean; `values` must not be empty.
pub(crate) fn mean(values: &[f64]) -> f64 {
    debug_assert!(!values.is_empty(), "a mean needs a value");
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sample standard deviation, zero for fewer than two values.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

/// Returns the ranks (from 1) of the order statistics that enclose quantile `q` of the population
/// with at least 95 % confidence, or nothing when `n` values are too few for that.
///
/// With B ~ Binomial(n, q), the quantile lies in [x(l), x(u)) with probability
/// P(l ≤ B < u); l is the largest rank with P(B < l) ≤ α/2, u the smallest with
/// P(B ≥ u) ≤ α/2.
pub fn quantile_ranks(n: u64, q: f64) -> Option<(u64, u64)> {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let binomial = Binomial::new(q, n).ok()?;
    let below = |rank: u64| binomial.cdf(rank - 1);
    let first = binomial.inverse_cdf(tail);
    // inverse_cdf gives the smallest k with P(B ≤ k) ≥ tail, so P(B < k) = P(B ≤ k − 1) < tail.
    let low = first.min(n);
    let mut high = binomial.inverse_cdf(1.0 - tail) + 1;
    while high > 1 && 1.0 - below(high - 1) <= tail {
        high -= 1;
    }
    (low >= 1 && high <= n).then_some((low, high))
}

/// Returns the median of `values` with its order-statistics interval; the ends are absent for
/// fewer than six values.
pub fn median_interval(values: &[f64], unit: Unit) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let middle = match n {
        0 => return None,
        _ if n % 2 == 1 => sorted[n / 2],
        _ => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    };
    let ranks = quantile_ranks(n as u64, 0.5);
    Some(Estimate {
        value: middle,
        low: ranks.map(|(low, _)| sorted[low as usize - 1]),
        high: ranks.map(|(_, high)| sorted[high as usize - 1]),
        confidence: CONFIDENCE,
        n: u32::try_from(n).unwrap_or(u32::MAX),
        unit,
    })
}

/// Returns quantile `q` of a latency histogram with its order-statistics interval; absent with
/// fewer observations than a quantile needs.
///
/// The interval takes observations as independent. Transactions of one trial are not quite, so it
/// is the narrowest that can be claimed.
pub(crate) fn quantile_interval(histogram: &Histogram, q: f64) -> Option<Estimate> {
    let count = histogram.count();
    if count < observations_needed(q) {
        return None;
    }
    let ranks = quantile_ranks(count, q);
    let at_rank = |rank: u64| {
        histogram
            .quantile(rank as f64 / count as f64)
            .map(|ns| ns.0 as f64)
    };
    Some(Estimate {
        value: histogram.quantile(q)?.0 as f64,
        low: ranks.and_then(|(low, _)| at_rank(low)),
        high: ranks.and_then(|(_, high)| at_rank(high)),
        confidence: CONFIDENCE,
        n: u32::try_from(count).unwrap_or(u32::MAX),
        unit: Unit::Nanoseconds,
    })
}

/// Returns the replicates that would bring the half width to a share `width` of the mean:
/// n ≈ (t · CV / e)², with the t of the values at hand.
pub(crate) fn replicates_needed(values: &[f64], width: f64) -> Option<u32> {
    if values.len() < 2 || mean(values) <= 0.0 {
        return None;
    }
    let t = student_t(values.len() as f64 - 1.0)?;
    let variation = deviation(values) / mean(values);
    Some(
        (t * variation / width)
            .powi(2)
            .ceil()
            .min(f64::from(u32::MAX)) as u32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_quantiles_match_the_tables() {
        let check = |freedom, expected: f64| {
            let t = student_t(freedom).unwrap();
            assert!(
                (t - expected).abs() < 6e-4,
                "{freedom}: {t}, table {expected}"
            );
        };
        check(1.0, 12.7062);
        check(2.0, 4.3027);
        check(4.0, 2.7764);
        check(9.0, 2.2622);
        check(29.0, 2.0452);
        check(120.0, 1.9799);
    }

    #[test]
    fn interval_of_a_textbook_sample() {
        // Mean 5, s = √(10/4); t(4) = 2.7764 → half width 1.9632.
        let estimate = student_t_interval(&[3.0, 4.0, 5.0, 6.0, 7.0], Unit::Count).unwrap();
        assert_eq!(estimate.value, 5.0);
        assert!(
            (estimate.low.unwrap() - 3.0368).abs() < 1e-3,
            "{estimate:?}"
        );
        assert!(
            (estimate.high.unwrap() - 6.9632).abs() < 1e-3,
            "{estimate:?}"
        );
        let one = student_t_interval(&[3.0], Unit::Count).unwrap();
        assert_eq!((one.low, one.high, one.n), (None, None, 1));
        assert_eq!(student_t_interval(&[], Unit::Count), None);
        let wide = student_t_interval(&[1.0, 9.0], Unit::Count).unwrap();
        assert_eq!(wide.low, Some(0.0));
    }

    #[test]
    fn ranks_of_the_median_match_the_tables() {
        // Le Boudec 2010, table A.1: 95 % intervals of the median.
        let check = |n, expected| assert_eq!(quantile_ranks(n, 0.5), expected, "n = {n}");
        check(1, None);
        check(5, None);
        check(6, Some((1, 6)));
        check(7, Some((1, 7)));
        check(8, Some((1, 8)));
        check(9, Some((2, 8)));
        check(10, Some((2, 9)));
        check(20, Some((6, 15)));
        check(30, Some((10, 21)));
    }

    #[test]
    fn ranks_of_a_high_quantile_need_many_values() {
        assert_eq!(quantile_ranks(100, 0.99), None);
        let (low, high) = quantile_ranks(1000, 0.99).unwrap();
        // np = 990, √(npq) = 3.15.
        assert!((983..=985).contains(&low), "{low}");
        assert!((996..=998).contains(&high), "{high}");
    }

    #[test]
    fn median_of_few_values_has_no_interval() {
        let estimate = median_interval(&[5.0, 1.0, 3.0], Unit::Count).unwrap();
        assert_eq!((estimate.value, estimate.low), (3.0, None));
        let six = median_interval(&[6.0, 5.0, 4.0, 3.0, 2.0, 1.0], Unit::Count).unwrap();
        assert_eq!((six.value, six.low, six.high), (3.5, Some(1.0), Some(6.0)));
    }

    #[test]
    fn quantile_of_a_histogram_has_its_ranks() {
        let histogram = |count| Histogram {
            buckets: (1..=count).map(|ns| (ns, 1)).collect(),
        };
        let of = |count| {
            quantile_interval(&histogram(count), 0.5)
                .map(|found| (found.value, found.low, found.high))
        };
        assert_eq!(of(19), None);
        assert_eq!(of(20), Some((10.0, Some(6.0), Some(15.0))));
        assert_eq!(of(30), Some((15.0, Some(10.0), Some(21.0))));
    }

    #[test]
    fn needed_replicates_follow_the_formula() {
        // CV 10 %, t(2) = 4.303, width 5 % → (8.606)² = 74.06.
        let values = [90.0, 100.0, 110.0];
        assert_eq!(replicates_needed(&values, 0.05), Some(75));
    }
}
