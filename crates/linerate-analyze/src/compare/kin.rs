//! Which of several variances are of one noise.
//!
//! Three trials say little of their own spread, so that those of all levels are pooled; but a level may have
//! a noise of its own (small buffers that fill in bursts, a tuning that sometimes fails), and with the pooled
//! one its chance would be taken for an effect. The largest variance is held against the mean of the others
//! (F-test at [`OWN_P`]); one that is larger speaks for itself, and the next is tried.
//!
//! Where the noise grows from level to level, the loudest may look quiet by chance of its few trials. So
//! where levels are not alike at all, none that does not speak for itself has more than
//! [`PRIOR_FREEDOM`] degrees of freedom of the others beside its own (Smyth, "Linear models and empirical
//! Bayes methods", 2004).

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use super::draw::Draw;
use super::interval::{deviation, median};

/// The largest p-value at which a variance is one of its own. Nothing is corrected for their number: to
/// leave too many out costs power, to leave too few makes false claims.
const OWN_P: f64 = 0.05;

/// Probability of groups that differ so, were they alike, below which they are not.
const ALIKE_P_MIN: f64 = 0.1;
/// Draws for that.
const ALIKE_DRAWS: u32 = 199;
/// Share of the pooled variance below which a variance is none: clocks and counters have steps.
const VARIANCE_SHARE_MIN: f64 = 1e-4;
/// Degrees of freedom that the others' spread counts as where groups are not alike.
pub(super) const PRIOR_FREEDOM: f64 = 2.0;

/// A ratio beyond which variances are not of one noise, whatever their degrees of freedom.
const RATIO_MAX: f64 = 1e12;

/// A variance with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Variance {
    /// The square of a standard deviation.
    pub(crate) square: f64,
    /// Degrees of freedom.
    pub(crate) freedom: f64,
}

/// Returns the variance of all together for each of `own`, or its own where that is one of its own;
/// `residuals` are what groups of `counts` values leave over.
///
/// A noise of a kind of its own stays in what the others have together: where all have outliers, those
/// that met none by chance are not quieter for it.
pub(crate) fn pooled(own: &[Variance], residuals: &[f64], counts: &[usize]) -> Vec<Variance> {
    let all = together(own);
    let deviations: Vec<f64> = own.iter().map(|it| it.square.sqrt()).collect();
    let are_alike = are_alike(residuals, counts, &deviations);
    let mut order: Vec<usize> = (0..own.len()).collect();
    order.sort_by(|a, b| own[*a].square.total_cmp(&own[*b].square));
    let mut alone = Vec::new();
    while let Some(largest) = order.pop() {
        let others: Vec<Variance> = order.iter().map(|at| own[*at]).collect();
        let others = together(&others);
        let Variance { square, freedom } = own[largest];
        // Of nothing, anything is a multiple.
        let ratio = (square / others.square).min(RATIO_MAX);
        let p = FisherSnedecor::new(freedom, others.freedom).map_or(1.0, |f| 1.0 - f.cdf(ratio));
        if square <= all.square || p > OWN_P {
            break;
        }
        alone.push(largest);
    }
    let of = |(at, own): (usize, &Variance)| match alone.contains(&at) {
        true => *own,
        false if are_alike => all,
        false => moderated(*own, all),
    };
    own.iter().enumerate().map(of).collect()
}

/// Returns a variance with few degrees of freedom, and not below what it has of itself.
fn moderated(own: Variance, all: Variance) -> Variance {
    let prior = PRIOR_FREEDOM.min(all.freedom);
    let freedom = prior + own.freedom;
    let square = (prior * all.square + own.freedom * own.square) / freedom;
    Variance {
        square: square.max(own.square),
        freedom,
    }
}

fn together(own: &[Variance]) -> Variance {
    let freedom: f64 = own.iter().map(|it| it.freedom).sum();
    let squares = own.iter().map(|it| it.freedom * it.square);
    Variance {
        square: squares.sum::<f64>() / freedom,
        freedom,
    }
}

/// Returns the variance of the difference of two means of `n` values, with the degrees of freedom that
/// Welch and Satterthwaite give it; two of one noise have those of the noise.
pub(crate) fn difference(one: Variance, other: Variance, n: f64) -> Variance {
    let square = (one.square + other.square) / n;
    let parts = [one, other].map(|it| (it.square / n).powi(2) / it.freedom);
    let freedom = if one == other || square <= 0.0 {
        one.freedom
    } else {
        square.powi(2) / parts.iter().sum::<f64>()
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
        let counts = vec![3; squares.len()];
        pooled(&own.collect::<Vec<_>>(), &far.collect::<Vec<_>>(), &counts)
    }

    #[test]
    fn a_level_with_a_noise_of_its_own_speaks_for_itself() {
        let found = of(&[1.0, 100.0, 1.0, 3.0, 0.5, 0.5]);
        assert_eq!((found[1].square, found[1].freedom), (100.0, 2.0));
        // 106 / 6: what is pooled has it too.
        assert!((found[0].square - 106.0 / 6.0).abs() < 1e-12, "{found:?}");
        assert_eq!((found[0].freedom, found[3]), (12.0, found[0]));
        // Two of them are both found.
        let found = of(&[1.0, 100.0, 1.0, 1.0, 400.0, 1.0, 1.0]);
        assert_eq!((found[1].square, found[4].square), (100.0, 400.0));
    }

    #[test]
    fn variances_of_one_noise_are_pooled() {
        let found = of(&[1.0, 3.0, 2.0, 0.1]);
        assert!(found.iter().all(|it| it.freedom == 8.0), "{found:?}");
        let none = of(&[0.0, 0.0, 0.0]);
        assert!(none.iter().all(|it| it.square == 0.0), "{none:?}");
        let but_one = of(&[0.0, 4.0, 0.0]);
        assert_eq!(but_one[1].square, 4.0);
        assert_eq!(of(&[]), []);
    }

    #[test]
    fn where_noise_grows_from_level_to_level_none_is_taken_for_quiet() {
        // The last varies as much as the one before it, and its three trials agree by chance.
        let found = of(&[1e-4, 4e-4, 16e-4, 64e-4, 256e-4, 1024e-4, 4096e-4, 1e-4]);
        let last = found[7];
        assert_eq!(last.freedom, 4.0, "{found:?}");
        let own = 0.5461_f64 / 8.0;
        assert!((last.square - (own + 1e-4) / 2.0).abs() < 1e-4, "{found:?}");
        // One that is louder than the others but not beyond doubt keeps what it has.
        assert!(
            found
                .iter()
                .zip([1e-4, 4e-4, 16e-4, 64e-4, 256e-4])
                .all(|(it, own)| it.square >= own)
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
    fn a_difference_of_two_noises_has_fewer_degrees_of_freedom() {
        let pooled = Variance {
            square: 1.0,
            freedom: 20.0,
        };
        let own = Variance {
            square: 9.0,
            freedom: 2.0,
        };
        let same = difference(pooled, pooled, 3.0);
        assert_eq!((same.square, same.freedom), (2.0 / 3.0, 20.0));
        // (10/3)² / ((9/3)²/2 + (1/3)²/20)
        let mixed = difference(own, pooled, 3.0);
        assert!(
            (mixed.freedom - 11.1111 / (4.5 + 0.005_556)).abs() < 1e-3,
            "{mixed:?}"
        );
    }
}
