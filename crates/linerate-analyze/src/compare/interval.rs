//! Confidence intervals of means, medians and quantiles.
//!
//! Means: x̄ ± t(1 − α/2, n − 1) · s / √n, Student 1908. Quantiles: order statistics with exact
//! binomial ranks, which assume nothing about the distribution (Le Boudec, "Performance Evaluation
//! of Computer and Communication Systems", 2010, section 2.2).

use linerate_model::finding::{CONFIDENCE, Estimate, RANGE_CONFIDENCE, range_confidence};
use linerate_model::histogram::{Histogram, observations_needed};
use linerate_model::unit::Unit;
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

/// The two-sided quantile of the normal distribution at [`CONFIDENCE`].
pub(crate) const NORMAL: f64 = 1.959_964;

/// Returns the two-sided Student quantile for `freedom` degrees of freedom at [`CONFIDENCE`].
pub fn student_t(freedom: f64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(distribution.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}

/// Returns the quantile of Student's distribution at `share`, with one degree of freedom at the least.
pub(crate) fn student(freedom: f64, share: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, freedom.max(1.0));
    t.map_or(f64::INFINITY, |t| t.inverse_cdf(share))
}

pub(crate) use linerate_model::finding::MANY;

/// Returns the fewest repeats with which `reaches` holds, at least one and at the most [`MANY`].
pub(crate) fn further(reaches: impl Fn(u32) -> bool) -> u32 {
    (1..MANY).find(|more| reaches(*more)).unwrap_or(MANY)
}

/// Returns the mean with its 95 % interval.
///
/// * Amounts are above zero and vary in proportion: x̄ / (1 ± t · CV / √n), with CV = s / x̄.
/// * Where a value is zero it is x̄ ± t · s / √n, cut at zero.
/// * Two values have their range instead, with the confidence that it has ([`RANGE_CONFIDENCE`]); one
///   has nothing, nor have values that are all the same: none of a few trials is no interval of 0 to 0.
pub fn student_t_interval(values: &[f64], unit: Unit) -> Option<Estimate> {
    mean_interval(values, unit, half_width)
}

/// Returns the same with another half width, of three values at the least.
pub(crate) fn mean_interval(
    values: &[f64],
    unit: Unit,
    half_width: impl Fn(&[f64]) -> Option<f64>,
) -> Option<Estimate> {
    if values.is_empty() {
        return None;
    }
    let mean = mean(values);
    let (low, high) = match values {
        [_] => (None, None),
        [first, others @ ..] if others.iter().all(|other| other == first) => (None, None),
        [one, other] => (Some(one.min(*other)), Some(one.max(*other))),
        _ => {
            let half = half_width(values)?;
            if values.iter().all(|value| *value > 0.0) {
                let (low, high) = proportional(mean, half / mean, half / mean);
                (Some(low), Some(high))
            } else {
                (
                    Some((mean - half).max(0.0_f64.min(mean))),
                    Some(mean + half),
                )
            }
        }
    };
    Some(Estimate {
        value: mean,
        low,
        high,
        confidence: match values.len() {
            2 => RANGE_CONFIDENCE,
            _ => CONFIDENCE,
        },
        n: u32::try_from(values.len()).unwrap_or(u32::MAX),
        unit,
    })
}

/// Returns half of the 95 % interval of the mean, for a distribution that is symmetric about it.
pub(crate) fn half_width(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    Some(student_t(n - 1.0)? * deviation(values) / n.sqrt())
}

/// Returns the mean of shares of a whole with its interval, which ends where a share can.
pub(crate) fn share_interval(shares: &[f64]) -> Option<Estimate> {
    let estimate = student_t_interval(shares, Unit::Ratio)?;
    let most = shares.iter().copied().fold(1.0, f64::max);
    let high = estimate.high.map(|high| high.min(most));
    Some(Estimate { high, ..estimate })
}

/// Returns the ends of the interval of a mean that may lie `above` its truth and `below` it by these
/// shares of the truth: x̄ / (1 + above) to x̄ / (1 − below). Where it may lie below by nearly all of
/// it there is no upper end to tell, and the share is taken as one of logarithms.
pub(crate) fn proportional(mean: f64, above: f64, below: f64) -> (f64, f64) {
    /// Share from which on 1 / (1 − x) runs away.
    const SHARE_MAX: f64 = 0.5;
    let high = if below <= SHARE_MAX {
        mean / (1.0 - below)
    } else {
        mean / (1.0 - SHARE_MAX) * (below - SHARE_MAX).exp()
    };
    (mean / (1.0 + above), high)
}

/// Returns the arithmetic mean; `values` must not be empty.
pub(crate) fn mean(values: &[f64]) -> f64 {
    debug_assert!(!values.is_empty(), "a mean needs a value");
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sample standard deviation, zero for fewer than two values.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    (squares(values) / (values.len() as f64 - 1.0)).sqrt()
}

/// Returns the sum of squares about the mean.
pub(crate) fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Sorts `values` and returns the middle one, of an even number the mean of both.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(match values.len() % 2 {
        0 => (values[middle - 1] + upper) / 2.0,
        _ => upper,
    })
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
    let middle = median(&mut sorted)?;
    let n = sorted.len();
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

/// Returns the median over trials of a number that one bad trial rules, as its tail: where there are too few
/// for order statistics, with the range of all.
pub(crate) fn median_or_range(values: &[f64], unit: Unit) -> Option<Estimate> {
    let median = median_interval(values, unit)?;
    let [least, most] = [f64::min, f64::max].map(|end| values.iter().copied().reduce(end));
    if median.low.is_some() || least == most {
        return Some(median);
    }
    Some(Estimate {
        low: least,
        high: most,
        confidence: range_confidence(median.n),
        ..median
    })
}

/// Returns quantile `q` of the latencies of several trials together, with an order-statistics
/// interval; absent with fewer observations than a quantile needs.
///
/// Transactions of one trial have its state in common, so they are not independent. How much, the
/// index of dispersion tells: with kᵢ of nᵢ transactions of trial i at or below the quantile of all,
/// which are a share p of all, D = Σ (kᵢ − nᵢ p)² / (nᵢ p (1 − p)) / (m − 1), 1 for independent ones. The interval is
/// that of N / D observations, with Student's t of m − 1 degrees of freedom for the few trials. Of two trials
/// D says nothing, and there is no interval.
pub(crate) fn quantile_interval(trials: &[&Histogram], q: f64) -> Option<Estimate> {
    let mut pooled = Histogram::default();
    for histogram in trials {
        pooled.merge(histogram);
    }
    let count = pooled.count();
    if count < observations_needed(q) {
        return None;
    }
    let value = pooled.quantile(q)?.0;
    let of = effective(trials, value, count);
    let ranks = quantile_ranks(of, q).filter(|_| trials.len() != 2);
    let at_rank = |rank: u64| {
        let share = rank as f64 / of as f64;
        pooled.quantile(share).map(|ns| ns.0 as f64)
    };
    Some(Estimate {
        value: value as f64,
        low: ranks.and_then(|(low, _)| at_rank(low)),
        high: ranks.and_then(|(_, high)| at_rank(high)),
        confidence: CONFIDENCE,
        n: u32::try_from(trials.len()).unwrap_or(u32::MAX),
        unit: Unit::Nanoseconds,
    })
}

/// Returns how many independent observations those of `trials` are worth at `value`.
///
/// The share of all at or below `value` stands for q, since a bucket may hold more than one value.
fn effective(trials: &[&Histogram], value: u64, count: u64) -> u64 {
    let below = |histogram: &Histogram| -> u64 {
        let buckets = histogram.buckets.iter();
        let low = buckets.filter(|(bucket, _)| *bucket <= value);
        low.map(|(_, count)| count).sum()
    };
    let all: u64 = trials.iter().map(|histogram| below(histogram)).sum();
    let share = all as f64 / count as f64;
    let freedom = trials.len() as f64 - 1.0;
    let square = |histogram: &&Histogram| {
        let n = histogram.count() as f64;
        (below(histogram) as f64 - n * share).powi(2) / (n * share * (1.0 - share))
    };
    let dispersion = trials.iter().map(square).sum::<f64>() / freedom;
    let t = student_t(freedom).unwrap_or(1.0) / 1.96;
    if dispersion.is_finite() && dispersion > 1.0 {
        ((count as f64 / (dispersion * t * t)) as u64).max(1)
    } else {
        count
    }
}

/// Returns the replicates that bring the half width to a share `width` of the mean where one trial
/// has the relative deviation `share`: the least n with t(n − 1) · s / √n ≤ width.
pub(crate) fn replicates_needed(share: f64, width: f64) -> u32 {
    /// Replicates beyond which nobody goes.
    const MAX: u32 = 1000;
    let reaches = |n: &u32| {
        let t = student_t(f64::from(*n) - 1.0).unwrap_or(f64::INFINITY);
        t * share / f64::from(*n).sqrt() <= width
    };
    (2..MAX).find(reaches).unwrap_or(MAX)
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
    fn the_deviation_is_that_of_a_sample() {
        assert_eq!(deviation(&[2.0, 4.0, 6.0]), 2.0);
    }

    #[test]
    fn no_share_is_above_the_whole() {
        let shares = [0.29, 0.5, 0.6];
        assert!(student_t_interval(&shares, Unit::Ratio).unwrap().high > Some(1.0));
        assert_eq!(share_interval(&shares).unwrap().high, Some(1.0));
    }

    #[test]
    fn interval_of_a_textbook_sample() {
        // Mean 5, s = √(10/4); t(4) = 2.7764 → half width 1.9632, 0.39264 of the mean.
        let estimate = student_t_interval(&[3.0, 4.0, 5.0, 6.0, 7.0], Unit::Count).unwrap();
        assert_eq!(estimate.value, 5.0);
        let ends = (estimate.low.unwrap(), estimate.high.unwrap());
        assert!((ends.0 - 5.0 / 1.39264).abs() < 1e-3, "{ends:?}");
        assert!((ends.1 - 5.0 / (1.0 - 0.39264)).abs() < 1e-3, "{ends:?}");
        let one = student_t_interval(&[3.0], Unit::Count).unwrap();
        assert_eq!((one.low, one.high, one.n), (None, None, 1));
        assert_eq!(student_t_interval(&[], Unit::Count), None);
        // Two values have their range.
        let two = student_t_interval(&[9.0, 1.0], Unit::Count).unwrap();
        assert_eq!((two.low, two.high), (Some(1.0), Some(9.0)));
        assert_eq!(two.confidence, RANGE_CONFIDENCE);
        // A count may be zero: 1 ± 4.303 · 1.732 / 1.732, cut.
        for same in [&[0.0; 2][..], &[0.0; 3], &[7.0; 5]] {
            let estimate = student_t_interval(same, Unit::Count).unwrap();
            assert_eq!((estimate.low, estimate.high), (None, None), "{same:?}");
        }
        let counts = student_t_interval(&[0.0, 0.0, 3.0], Unit::Count).unwrap();
        assert_eq!(counts.low, Some(0.0));
        assert!((counts.high.unwrap() - 5.3027).abs() < 1e-3, "{counts:?}");
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
    fn one_bad_trial_does_not_rule_a_tail() {
        // The 99th percentiles of three trials of a healthy lab.
        let of = |values: &[f64]| median_or_range(values, Unit::Nanoseconds).unwrap();
        let three = of(&[79e3, 76e3, 716e3]);
        assert_eq!(
            (three.value, three.low, three.high, three.confidence),
            (79e3, Some(76e3), Some(716e3), 0.75)
        );
        assert!(three.is_range());
        // P(B(6, 1/2) = 0 or 6) = 2/64: six have an interval.
        let six = of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!((six.low, six.high), (Some(1.0), Some(6.0)));
        assert!(!six.is_range());
        assert_eq!((of(&[5.0]).low, of(&[5.0, 5.0]).low), (None, None));
    }

    #[test]
    fn quantile_of_a_histogram_has_its_ranks() {
        let histogram = |count| Histogram {
            buckets: (1..=count).map(|ns| (ns, 1)).collect(),
        };
        let of = |count| {
            quantile_interval(&[&histogram(count)], 0.5)
                .map(|found| (found.value, found.low, found.high))
        };
        assert_eq!(of(19), None);
        assert_eq!(of(20), Some((10.0, Some(6.0), Some(15.0))));
        assert_eq!(of(30), Some((15.0, Some(10.0), Some(21.0))));
    }

    #[test]
    fn trials_that_differ_are_worth_fewer_observations() {
        let about = |ns| Histogram {
            buckets: vec![(ns, 1000)],
        };
        let same = [about(100), about(100), about(100)];
        let apart = [about(90), about(100), about(110)];
        let of = |trials: &[Histogram; 3]| {
            let trials: Vec<&Histogram> = trials.iter().collect();
            effective(&trials, 100, 3000)
        };
        assert_eq!(of(&same), 3000);
        assert!(of(&apart) < 10, "{}", of(&apart));
    }

    #[test]
    fn two_trials_do_not_say_how_far_a_pooled_quantile_is_known() {
        let trial = Histogram {
            buckets: (1..=1000).map(|ns| (ns, 1)).collect(),
        };
        let ends = |trials: &[&Histogram]| {
            let found = quantile_interval(trials, 0.99).expect("enough of them");
            (found.low.is_some(), found.high.is_some())
        };
        assert_eq!(ends(&[&trial, &trial]), (false, false));
        assert_eq!(ends(&[&trial, &trial, &trial]), (true, true));
        // Of one, its own transactions are all there is.
        assert_eq!(ends(&[&trial]), (true, true));
    }

    #[test]
    fn needed_replicates_follow_the_formula() {
        // t(16) · 0.1 / √17 = 2.1199 · 0.02425 = 0.0514; t(17) · 0.1 / √18 = 0.04973.
        assert_eq!(replicates_needed(0.1, 0.05), 18);
    }
}
