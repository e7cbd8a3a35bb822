//! What several variances say of each other.
//!
//! Three trials say little of their own spread. Where the levels of an experiment spread no more unlike than chance
//! makes levels of one noise spread ([`are_alike`]), what all have together is each one's. Where they do not, some have
//! a noise of their own (small buffers that fill in bursts, a tuning that sometimes fails): a variance s² of d degrees
//! of freedom is then moderated, (d₀ s₀² + d s²) / (d₀ + d) of d₀ + d degrees, with the s₀² of all together and the d₀
//! by which their logarithms vary more than such of one noise do (Smyth, "Linear models and empirical Bayes methods",
//! 2004, section 6.2). It is never taken for less than its own. The largest is first held against the others (F test at
//! [`OWN_P`], corrected for the number of levels: the largest of many is large): one that is far out speaks for itself,
//! with the degrees of freedom that it has, since what others have tells nothing of it; then the next is tried.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};
use statrs::function::gamma::digamma;

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
/// Degrees of freedom that the others' spread counts as at the least: of few levels not even that they differ is sure.
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

/// Returns for each of `own` what it is worth beside the others; `residuals` are what all leave over.
pub(crate) fn pooled(own: &[Variance], residuals: &[f64]) -> Vec<Variance> {
    let all = together(own);
    let deviations: Vec<f64> = own.iter().map(|it| it.square.sqrt()).collect();
    // As many values as have these degrees of freedom about their own mean.
    let counts = own
        .iter()
        .map(|it| (it.freedom.round() as usize + 1).max(2));
    let are_alike = are_alike(residuals, &counts.collect::<Vec<_>>(), &deviations);
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
    let of = |(at, own): (usize, &Variance)| match () {
        () if alone.contains(&at) => *own,
        () if are_alike => all,
        () => own.moderated(all, prior),
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
    pub(super) fn times(self, square: f64) -> Self {
        Self {
            square: square * self.square,
            ..self
        }
    }

    /// Returns it beside what `all` have together, which counts as `prior` degrees of freedom.
    pub(super) fn moderated(self, all: Self, prior: f64) -> Self {
        let prior = prior.min(all.freedom);
        let freedom = prior + self.freedom;
        let square = (prior * all.square + self.freedom * self.square) / freedom;
        Self {
            square: square.max(self.square),
            freedom,
        }
    }
}

/// Returns how many degrees of freedom the others' spread counts as: those by which logarithms of variances vary more
/// than of one noise; without bound where they do not.
pub(super) fn prior_freedom(own: &[Variance]) -> f64 {
    let least = VARIANCE_SHARE_MIN * together(own).square;
    let known = own.iter().filter(|it| it.freedom > 0.0 && least > 0.0);
    let logs: Vec<(f64, f64)> = known
        .map(|it| {
            let half = it.freedom / 2.0;
            let log = it.square.max(least).ln() - digamma(half) + half.ln();
            (log, trigamma(half))
        })
        .collect();
    let count = logs.len() as f64;
    if count < 2.0 {
        return f64::INFINITY;
    }
    let centre = logs.iter().map(|(log, _)| log).sum::<f64>() / count;
    let spread = logs
        .iter()
        .map(|(log, _)| (log - centre).powi(2))
        .sum::<f64>()
        / (count - 1.0);
    let by_chance = logs.iter().map(|(_, chance)| chance).sum::<f64>() / count;
    match spread - by_chance {
        more if more > 0.0 => (2.0 * trigamma_inverse(more)).max(PRIOR_FREEDOM_MIN),
        _ => f64::INFINITY,
    }
}

/// Returns ψ'(x): by ψ'(x) = ψ'(x + 1) + 1/x² up to where the asymptotic series holds (Abramowitz and Stegun 6.4.12).
fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 8.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0));
    sum + 1.0 / x + square / 2.0 + series * square / x
}

/// Returns the x with ψ'(x) = `value`, by bisection of its logarithm.
fn trigamma_inverse(value: f64) -> f64 {
    let (mut low, mut high) = (-12.0_f64, 18.0_f64);
    while high - low > 1e-9 {
        let middle = (low + high) / 2.0;
        if trigamma(middle.exp()) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.exp()
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

    /// Groups of three values, the middle one at the mean.
    fn of(squares: &[f64]) -> Vec<Variance> {
        let own = squares.iter().map(|square| Variance {
            square: *square,
            freedom: 2.0,
        });
        let far = squares
            .iter()
            .flat_map(|square| [-square.sqrt(), square.sqrt()]);
        pooled(&own.collect::<Vec<_>>(), &far.collect::<Vec<_>>())
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
    fn variances_of_one_noise_are_pooled() {
        let found = of(&[1.0, 3.0, 2.0, 0.1]);
        assert!(found.iter().all(|it| it.freedom == 8.0), "{found:?}");
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
            found[7].square > 30.0 * 1e-4 && found[7].freedom <= 4.0,
            "{found:?}"
        );
        assert!(
            found.iter().zip(squares).all(|(it, own)| it.square >= own),
            "{found:?}"
        );
    }

    #[test]
    fn trigamma_matches_the_tables() {
        // Abramowitz and Stegun: ψ'(1) = π²/6, ψ'(1/2) = π²/2; ψ'(10) = 0.10516633568.
        let square = std::f64::consts::PI.powi(2);
        for (x, known) in [
            (1.0, square / 6.0),
            (0.5, square / 2.0),
            (10.0, 0.105_166_335_68),
        ] {
            assert!((trigamma(x) - known).abs() < 1e-9, "{x}");
            assert!((trigamma_inverse(known) - x).abs() < 1e-6 * x, "{x}");
        }
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
