//! How evenly flows spread over queues, and how evenly chance alone would spread them.
//!
//! A device chooses a flow's queue by a hash, so equal flows fall into queues like balls into bins:
//! some queue gets more than its share although nothing is wrong. Only what exceeds that is an
//! imbalance that a setting could mend.

use linerate_model::workload::FLOWS_MAX;

use super::draw::Draw;

/// Flows up to which the distribution of the fullest queue is computed exactly; beyond, drawn.
///
/// The exact way costs flows² × log₂ queues for each step of the median: 2 ms at 256 flows.
const FLOWS_EXACT_MAX: u32 = 256;
/// Deals of more flows: the 95th percentile then rests on a hundred of them.
const DEALS: u32 = 2000;
/// Most queues computed with; more are treated as so many, as flows are.
const QUEUES_MAX: u32 = 1024;

/// The seed of the draws that chance is computed with, where it is not computed exactly.
pub(crate) const SEED: u64 = 1;

/// How unevenly equal flows lie on queues when each falls into one at random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance {
    /// The median of [`imbalance`].
    pub median: f64,
    /// What it does not exceed in 95 of 100 cases.
    pub most: f64,
}

/// Returns the largest of `loads`, idle queues included, over the mean of all: 1 is even, the number of queues
/// the most there is; absent where there is no load.
pub fn imbalance(loads: &[f64]) -> Option<f64> {
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    let most = loads.iter().copied().fold(0.0, f64::max);
    (mean.is_finite() && mean > 0.0).then(|| most / mean)
}

/// Returns how unevenly `flows` equal flows lie on `queues` queues by chance; absent without flows
/// or queues.
pub fn chance(flows: u32, queues: u32, seed: u64) -> Option<Chance> {
    let (flows, queues) = (flows.min(FLOWS_MAX), queues.min(QUEUES_MAX));
    if flows == 0 || queues == 0 {
        return None;
    }
    let mean = f64::from(flows) / f64::from(queues);
    let (median, most) = if flows <= FLOWS_EXACT_MAX {
        (
            exact_quantile(flows, queues, 0.5),
            exact_quantile(flows, queues, 0.95),
        )
    } else {
        drawn_quantiles(flows, queues, seed)
    };
    Some(Chance {
        median: f64::from(median) / mean,
        most: f64::from(most) / mean,
    })
}

/// Returns the least number that the fullest queue does not exceed with probability `share`.
fn exact_quantile(flows: u32, queues: u32, share: f64) -> u32 {
    let reached = |most: &u32| fullest_at_most(flows, queues, *most) >= share;
    (flows.div_ceil(queues)..flows)
        .find(reached)
        .unwrap_or(flows)
}

/// Returns the probability that no queue gets more than `most` of `flows`.
///
/// With independent Poisson loads of mean λ = n/q instead, the counts given their sum n are the
/// multinomial ones (Feller, vol. I, IX.9). So it is P(all ≤ most and sum = n) / P(sum = n), where
/// the sum over queues is a convolution, done by doubling.
fn fullest_at_most(flows: u32, queues: u32, most: u32) -> f64 {
    let length = flows as usize + 1;
    let mean = f64::from(flows) / f64::from(queues);
    let poisson = |mean: f64, count: usize| {
        let log = (1..=count).fold(-mean, |log, k| log + mean.ln() - (k as f64).ln());
        log.exp()
    };
    let mut power: Vec<f64> = (0..length)
        .map(|count| {
            if count <= most as usize {
                poisson(mean, count)
            } else {
                0.0
            }
        })
        .collect();
    let mut whole = vec![0.0; length];
    whole[0] = 1.0;
    let mut left = queues;
    while left > 0 {
        if left & 1 == 1 {
            whole = convolve(&whole, &power);
        }
        left >>= 1;
        if left > 0 {
            power = convolve(&power, &power);
        }
    }
    whole[length - 1] / poisson(f64::from(flows), flows as usize)
}

fn convolve(one: &[f64], other: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; one.len()];
    for (at, first) in one.iter().enumerate().filter(|(_, first)| **first > 0.0) {
        for (place, second) in sum[at..].iter_mut().zip(other) {
            *place += first * second;
        }
    }
    sum
}

/// Returns the median and the 95th percentile of the fullest queue in draws from `seed`.
fn drawn_quantiles(flows: u32, queues: u32, seed: u64) -> (u32, u32) {
    let mut draw = Draw::new(seed);
    let mut counts = vec![0_u32; queues as usize];
    let mut fullest: Vec<u32> = (0..DEALS)
        .map(|_| {
            counts.fill(0);
            for _ in 0..flows {
                let queue = draw.below(queues);
                counts[queue as usize] += 1;
            }
            counts.iter().copied().max().unwrap_or(0)
        })
        .collect();
    fullest.sort_unstable();
    let at = |share: f64| fullest[(share * f64::from(DEALS)) as usize];
    (at(0.5), at(0.95))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} and {expected}");
    }

    #[test]
    fn even_and_uneven_loads() {
        assert_eq!(imbalance(&[5.0, 5.0, 5.0, 5.0]), Some(1.0));
        // All on one of four.
        assert_eq!(imbalance(&[4.0, 0.0, 0.0, 0.0]), Some(4.0));
        assert_eq!(imbalance(&[0.0, 0.0]), None);
        assert_eq!(imbalance(&[]), None);
    }

    #[test]
    fn the_fullest_queue_of_small_cases_is_counted_by_hand() {
        // Two flows on two queues share one in half of the cases.
        close(fullest_at_most(2, 2, 1), 0.5);
        close(fullest_at_most(2, 2, 2), 1.0);
        // Three on three: 3! of 27 ways keep apart, 3 of 27 put all on one.
        close(fullest_at_most(3, 3, 1), 6.0 / 27.0);
        close(fullest_at_most(3, 3, 2), 24.0 / 27.0);
        // Four on two: 6 of 16 ways are even, 14 of 16 have at most three.
        close(fullest_at_most(4, 2, 2), 6.0 / 16.0);
        close(fullest_at_most(4, 2, 3), 14.0 / 16.0);
    }

    #[test]
    fn the_birthdays_of_23_people_are_distinct_with_the_published_probability() {
        // Feller, vol. I, II.3: 0.493 for 23 people and 365 days.
        let distinct = fullest_at_most(23, 365, 1);
        assert!((distinct - 0.492_703).abs() < 1e-6, "{distinct}");
    }

    #[test]
    fn chance_is_what_the_distribution_says() {
        // Four on two: at most 2 with 6/16, 3 with 14/16, 4 with 1; the mean is 2.
        let found = chance(4, 2, 0).expect("flows");
        assert_eq!((found.median, found.most), (1.5, 2.0));
        let one = chance(7, 1, 0).expect("flows");
        assert_eq!((one.median, one.most), (1.0, 1.0));
        assert_eq!(chance(0, 4, 0), None);
        assert_eq!(chance(4, 0, 0), None);
    }

    #[test]
    fn draws_agree_with_the_exact_way() {
        for (flows, queues) in [(100, 8), (256, 64), (32, 4)] {
            let (median, most) = drawn_quantiles(flows, queues, 42);
            let exact = |share| exact_quantile(flows, queues, share);
            assert!(
                median.abs_diff(exact(0.5)) <= 1,
                "{flows} on {queues}, seed 42"
            );
            assert!(
                most.abs_diff(exact(0.95)) <= 1,
                "{flows} on {queues}, seed 42"
            );
        }
    }

    #[test]
    fn more_flows_lie_more_evenly() {
        let most = |flows| chance(flows, 16, 1).map(|chance| chance.most);
        assert!(most(16) > most(64) && most(64) > most(256) && most(256) > most(4000));
        assert!(
            most(4000).is_some_and(|most| most < 1.3),
            "{:?}",
            most(4000)
        );
    }
}
