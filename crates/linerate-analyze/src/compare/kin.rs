//! What several variances say of each other.
//!
//! Three trials say little of their own spread, and the levels of an experiment may have noises of their own (small
//! buffers that fill in bursts, a tuning that sometimes fails). So a variance s² of d degrees of freedom is moderated:
//! (d₀ s₀² + d s²) / (d₀ + d) of d₀ + d degrees, with the s₀² of all together (Smyth, "Linear models and empirical Bayes
//! methods", 2004, section 6.2). The d₀ says how alike the levels are, and is what they themselves make likely
//! ([`prior_freedom`]): no test of likeness decides, since of few variances none can. Before that the largest is held
//! against the others (F test at [`OWN_P`], corrected for the number of levels: the largest of many is large): one that is
//! far out speaks for itself, with the degrees of freedom that it has, since what others have tells nothing of it; then
//! the next is tried.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};
use statrs::function::beta::ln_beta;

use super::draw::Draw;
use super::interval::{deviation, median};

/// Probability of groups that differ so, were they alike, below which they are not.
const ALIKE_P_MIN: f64 = 0.1;
/// Draws for that.
const ALIKE_DRAWS: u32 = 199;
/// The largest p-value, corrected for their number, at which a variance is one of its own.
const OWN_P: f64 = 0.005;
/// A ratio beyond which variances are not of one noise, whatever their degrees of freedom.
const RATIO_MAX: f64 = 1e12;
/// Degrees of freedom that the others' spread counts as at the least: of fewer a variance has no mean.
const PRIOR_FREEDOM_MIN: f64 = 2.0;
/// Share of the pooled variance below which a variance is none: clocks and counters have steps.
const VARIANCE_SHARE_MIN: f64 = 1e-4;

/// A variance with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Variance {
    /// The square of a standard deviation.
    pub(crate) square: f64,
    /// Degrees of freedom.
    pub(crate) freedom: f64,
}

/// Returns for each of `own` what it is worth beside the others.
pub(crate) fn pooled(own: &[Variance]) -> Vec<Variance> {
    let all = together(own);
    let mut order: Vec<usize> = (0..own.len()).collect();
    order.sort_by(|a, b| own[*a].square.total_cmp(&own[*b].square));
    let mut alone = Vec::new();
    while let Some(largest) = order.pop() {
        let others: Vec<Variance> = order.iter().map(|at| own[*at]).collect();
        let others = together(&others);
        let Variance { square, freedom } = own[largest];
        // Of nothing, anything is a multiple.
        let ratio = (square / others.square).min(RATIO_MAX);
        let p = FisherSnedecor::new(freedom, others.freedom).map_or(1.0, |f| f.sf(ratio));
        if square <= all.square || p * (order.len() + 1) as f64 > OWN_P {
            break;
        }
        alone.push(largest);
    }
    let prior = prior_freedom(own);
    let of = |(at, own): (usize, &Variance)| {
        if alone.contains(&at) {
            *own
        } else {
            own.moderated(all, prior)
        }
    };
    own.iter().enumerate().map(of).collect()
}

impl Variance {
    /// Returns the two-sided p-value of "zero" of a mean that has it.
    pub(super) fn p_of(self, mean: f64) -> f64 {
        if self.square <= 0.0 {
            return if mean == 0.0 { 1.0 } else { 0.0 };
        }
        let t = StudentsT::new(0.0, 1.0, self.freedom.max(1.0));
        t.map_or(1.0, |t| 2.0 * t.cdf(-(mean / self.square.sqrt()).abs()))
    }

    /// Returns that of what is `factor` times as large, the factor squared.
    pub(crate) fn times(self, square: f64) -> Self {
        Self {
            square: square * self.square,
            ..self
        }
    }

    /// Returns it beside what `all` have together, which counts as `prior` degrees of freedom.
    pub(super) fn moderated(self, all: Self, prior: f64) -> Self {
        let prior = prior.min(all.freedom);
        let freedom = prior + self.freedom;
        Self {
            square: (prior * all.square + self.freedom * self.square) / freedom,
            freedom,
        }
    }
}

/// Returns how many degrees of freedom the others' spread counts as: one over the mean of 1/d₀ by the likelihood of
/// these variances, where s² / s₀² of d degrees is distributed as F(d, d₀), s₀² is anything, and 1/d₀ anything from none
/// (one noise) to one half. Of few variances it is never without bound: not even that they are alike is sure.
pub(super) fn prior_freedom(own: &[Variance]) -> f64 {
    /// Steps of 1/d₀, and of ln s₀² on either side of the mean logarithm in its own uncertainty.
    const STEPS: i32 = 24;
    let least = VARIANCE_SHARE_MIN * together(own).square;
    let known = own.iter().filter(|it| it.freedom > 0.0 && least > 0.0);
    let logs: Vec<(f64, f64)> = known
        .map(|it| (it.square.max(least).ln(), it.freedom))
        .collect();
    if logs.len() < 2 {
        return f64::INFINITY;
    }
    let (most, fewest) = logs.iter().fold(
        (f64::NEG_INFINITY, f64::INFINITY),
        |(high, low), (log, _)| (high.max(*log), low.min(*log)),
    );
    let mut weights: Vec<(f64, f64)> = Vec::new();
    for at in 0..=STEPS {
        let inverse = f64::from(at) / f64::from(STEPS) / PRIOR_FREEDOM_MIN;
        let prior = 1.0 / inverse.max(1e-4);
        let beta: f64 = logs
            .iter()
            .map(|(_, d)| ln_beta(d / 2.0, prior / 2.0) - d / 2.0 * (d / prior).ln())
            .sum();
        for step in 0..=STEPS {
            let centre = fewest + (most - fewest) * f64::from(step) / f64::from(STEPS);
            // The density of ln x, of x distributed as F(d, d₀).
            let of = |(log, d): &(f64, f64)| {
                let log = log - centre;
                d / 2.0 * log - (d + prior) / 2.0 * (d / prior * log.exp()).ln_1p()
            };
            weights.push((inverse, logs.iter().map(of).sum::<f64>() - beta));
        }
    }
    let highest = weights
        .iter()
        .map(|(_, log)| *log)
        .fold(f64::NEG_INFINITY, f64::max);
    let (mut sum, mut all) = (0.0, 0.0);
    for (inverse, log) in weights {
        let weight = (log - highest).exp();
        sum += weight * inverse;
        all += weight;
    }
    all / sum
}

fn together(own: &[Variance]) -> Variance {
    let freedom: f64 = own.iter().map(|it| it.freedom).sum();
    let squares = own.iter().map(|it| it.freedom * it.square);
    Variance {
        square: squares.sum::<f64>() / freedom,
        freedom,
    }
}

/// Takes the means of rows and of blocks off `cells` of (row, block, value), and returns the degrees of freedom of what is
/// left over: rows + blocks − 1 fewer than there are cells.
///
/// With a value of each row in each block one round is exact.
pub(super) fn leave_over<B: Ord + Copy>(cells: &mut [(usize, B, f64)]) -> f64 {
    const ROUNDS: u32 = 8;
    let count = |mut keys: Vec<(Option<usize>, Option<B>)>| {
        keys.sort_unstable();
        keys.dedup();
        keys.len() as f64
    };
    let rows = count(cells.iter().map(|(row, ..)| (Some(*row), None)).collect());
    let blocks = count(
        cells
            .iter()
            .map(|(_, block, _)| (None, Some(*block)))
            .collect(),
    );
    for _ in 0..ROUNDS {
        take_off(cells, |(row, ..)| *row);
        take_off(cells, |(_, block, _)| *block);
    }
    (cells.len() as f64 - rows - blocks + 1.0).max(0.0)
}

/// Takes the mean of those with one key off each of them.
fn take_off<B: Copy, K: Ord>(cells: &mut [(usize, B, f64)], key: impl Fn(&(usize, B, f64)) -> K) {
    let mut sums = std::collections::BTreeMap::<K, (f64, f64)>::new();
    for cell in cells.iter() {
        let sum = sums.entry(key(cell)).or_default();
        sum.0 += cell.2;
        sum.1 += 1.0;
    }
    for cell in cells.iter_mut() {
        let (sum, count) = sums[&key(cell)];
        cell.2 -= sum / count;
    }
}

/// Returns the variance of a sum of means, each with the variance and the degrees of freedom given, with the degrees of freedom
/// that Welch and Satterthwaite give it; parts of one noise have those of the noise.
pub(crate) fn sum(parts: &[Variance]) -> Variance {
    let square: f64 = parts.iter().map(|it| it.square).sum();
    let first = parts.first().map_or(f64::INFINITY, |it| it.freedom);
    let own: f64 = parts.iter().map(|it| it.square.powi(2) / it.freedom).sum();
    let freedom = if own <= 0.0 || parts.iter().all(|it| it.freedom == first) {
        first
    } else {
        square.powi(2) / own
    };
    Variance { square, freedom }
}

/// Returns whether groups of `counts` values with these `deviations` differ no more than groups whose
/// values are drawn from one bag of all `residuals`.
///
/// It is Bartlett's statistic (1937) against what it is of such groups: the same whatever form the noise
/// has, of two modes or with a tail.
pub(crate) fn are_alike(residuals: &[f64], counts: &[usize], deviations: &[f64]) -> bool {
    // One alone is like itself.
    if counts.len() < 2 {
        return true;
    }
    let variances = deviations.iter().map(|share| share.powi(2));
    let observed = bartlett(counts, variances);
    let mut draw = Draw::new(residuals.len() as u64);
    let mut trials = Vec::new();
    let mut as_much = 1;
    for _ in 0..ALIKE_DRAWS {
        let variances: Vec<f64> = counts
            .iter()
            .map(|n| {
                trials.clear();
                let drawn = (0..*n).map(|_| draw.below(residuals.len() as u32) as usize);
                trials.extend(drawn.map(|at| residuals[at]));
                deviation(&trials).powi(2)
            })
            .collect();
        as_much += u32::from(bartlett(counts, variances) >= observed);
    }
    f64::from(as_much) >= ALIKE_P_MIN * f64::from(ALIKE_DRAWS + 1)
}

/// Returns Σ νᵢ ln(s² / sᵢ²) with the pooled s²: the more, the less alike the variances are.
fn bartlett(counts: &[usize], variances: impl IntoIterator<Item = f64> + Clone) -> f64 {
    let freedoms = || counts.iter().map(|n| *n as f64 - 1.0);
    let all: f64 = freedoms().sum();
    let squares = freedoms().zip(variances.clone());
    let pooled = squares.map(|(freedom, s2)| freedom * s2).sum::<f64>() / all;
    if pooled <= 0.0 {
        return 0.0;
    }
    let ratio = |s2: f64| (s2 / pooled).max(VARIANCE_SHARE_MIN);
    let parts = freedoms().zip(variances);
    parts.map(|(freedom, s2)| -freedom * ratio(s2).ln()).sum()
}

/// Returns how far `values` are from their median, but for the one that is it.
///
/// A mean of values of two states lies between them, and about such means there are as many states as means;
/// about medians there are two.
pub(crate) fn about_median(mut values: Vec<f64>) -> impl Iterator<Item = f64> {
    let middle = median(&mut values).unwrap_or_default();
    if values.len() % 2 == 1 {
        values.remove(values.len() / 2);
    }
    values.into_iter().map(move |value| value - middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups of three values.
    fn of(squares: &[f64]) -> Vec<Variance> {
        let own = squares.iter().map(|square| Variance {
            square: *square,
            freedom: 2.0,
        });
        pooled(&own.collect::<Vec<_>>())
    }

    #[test]
    fn a_level_with_a_noise_of_its_own_keeps_it() {
        let found = of(&[1.0, 10_000.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!((found[1].square, found[1].freedom), (10_000.0, 2.0));
        // What the others have of it makes them louder than they are, never quieter.
        assert!(found.iter().all(|it| it.square >= 1.0), "{found:?}");
        // The largest of eight is large.
        let found = of(&[1.0, 8.0, 1.0, 0.5, 2.0, 1.0, 0.1, 1.0]);
        assert!(found[1].freedom > 2.0, "{found:?}");
    }

    #[test]
    fn variances_of_one_noise_are_pooled_the_more_the_more_there_are() {
        let few = of(&[1.0, 3.0, 2.0, 0.1]);
        let many = of(&[1.0, 3.0, 2.0, 0.1].repeat(6));
        assert!(few.iter().all(|it| it.freedom > 5.0), "{few:?}");
        assert!(
            many.iter().all(|it| it.freedom > few[0].freedom + 2.0),
            "{many:?}"
        );
        let none = of(&[0.0, 0.0, 0.0]);
        assert!(none.iter().all(|it| it.square == 0.0), "{none:?}");
        assert_eq!(of(&[]), []);
    }

    #[test]
    fn where_noise_grows_from_level_to_level_none_is_taken_for_quiet() {
        // The last varies as much as the one before it, and its three trials agree by chance.
        let squares = [1e-4, 4e-4, 16e-4, 64e-4, 256e-4, 1024e-4, 4096e-4, 1e-4];
        let found = of(&squares);
        assert!(
            found[7].square > 30.0 * 1e-4 && found[7].freedom <= 5.0,
            "{found:?}"
        );
    }

    #[test]
    fn the_degrees_of_a_prior_are_those_it_was_drawn_with() {
        // Variances that vary as a χ² of 8 degrees over 8 does, each seen with 4 degrees of its own.
        let mut draw = Draw::new(11);
        let mut chi = |n: u32| (0..n).map(|_| draw.normal().powi(2)).sum::<f64>() / f64::from(n);
        let own: Vec<Variance> = (0..4000)
            .map(|_| Variance {
                square: chi(4) / chi(8),
                freedom: 4.0,
            })
            .collect();
        let prior = prior_freedom(&own);
        assert!((6.0..10.5).contains(&prior), "{prior}");
        let same: Vec<Variance> = (0..4000)
            .map(|_| Variance {
                square: chi(4),
                freedom: 4.0,
            })
            .collect();
        assert!(prior_freedom(&same) > 50.0);
    }

    #[test]
    fn few_variances_are_not_sure_to_be_alike() {
        let mut draw = Draw::new(5);
        let mut of = |count: usize| {
            let own = (0..count).map(|_| Variance {
                square: (draw.normal().powi(2) + draw.normal().powi(2)) / 2.0,
                freedom: 2.0,
            });
            prior_freedom(&own.collect::<Vec<_>>())
        };
        let few: Vec<f64> = (0..50).map(|_| of(7)).collect();
        assert!(few.iter().all(|prior| *prior < 15.0), "{few:?}");
        assert!(of(400) > 20.0);
    }

    #[test]
    fn what_rows_and_blocks_leave_over_has_the_rest_of_the_degrees() {
        let mut cells = vec![(0, 1, 1.0), (0, 2, 2.0), (1, 1, 3.0), (1, 2, 6.0)];
        assert_eq!(leave_over(&mut cells), 1.0);
        let left: Vec<f64> = cells.iter().map(|(.., value)| *value).collect();
        assert!(
            left.iter()
                .zip([0.5, -0.5, -0.5, 0.5])
                .all(|(a, b)| (a - b).abs() < 1e-12)
        );
    }

    #[test]
    fn groups_of_two_states_are_alike() {
        // One value in five is slower by 30 %: eight of a group may meet it twice or never.
        let mut draw = Draw::new(3);
        let mut group = || {
            let slow = |unit: f64| if unit < 0.2 { 0.7 } else { 1.0 };
            (0..8)
                .map(|_| slow(draw.unit()) + 0.01 * draw.normal())
                .collect()
        };
        let (mut about_medians, mut about_means) = (0, 0);
        for _ in 0..50 {
            let groups: Vec<Vec<f64>> = (0..16).map(|_| group()).collect();
            let deviations: Vec<f64> = groups.iter().map(|group| deviation(group)).collect();
            let is_alike =
                |residuals: Vec<f64>| u32::from(are_alike(&residuals, &[8; 16], &deviations));
            about_medians += is_alike(groups.iter().cloned().flat_map(about_median).collect());
            about_means += is_alike(
                groups
                    .iter()
                    .flat_map(|group| {
                        let centre = group.iter().sum::<f64>() / 8.0;
                        group.iter().map(move |value| value - centre)
                    })
                    .collect(),
            );
        }
        assert!(about_medians >= 40, "{about_medians} of 50");
        assert!(about_means <= 35, "{about_means} of 50");
    }

    #[test]
    fn a_sum_of_two_noises_has_fewer_degrees_of_freedom() {
        let of = |square, freedom| Variance { square, freedom };
        let same = sum(&[of(1.0 / 3.0, 20.0), of(1.0 / 3.0, 20.0)]);
        assert_eq!((same.square, same.freedom), (2.0 / 3.0, 20.0));
        // (10/3)² / ((9/3)²/2 + (1/3)²/20)
        let mixed = sum(&[of(3.0, 2.0), of(1.0 / 3.0, 20.0)]);
        assert!(
            (mixed.freedom - 11.1111 / (4.5 + 0.005_556)).abs() < 1e-3,
            "{mixed:?}"
        );
    }
}
