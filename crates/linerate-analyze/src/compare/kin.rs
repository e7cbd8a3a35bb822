//! Which of several variances are of one noise.
//!
//! Three trials say little of their own spread, so that those of all levels are pooled; but a level may have
//! a noise of its own (small buffers that fill in bursts, a tuning that sometimes fails), and with the pooled
//! one its chance would be taken for an effect. The largest variance is held against the mean of the others
//! (F-test at [`OWN_P`]); one that is larger speaks for itself, and the next is tried.

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// The largest p-value at which a variance is one of its own. Nothing is corrected for their number: to
/// leave too many out costs power, to leave too few makes false claims.
const OWN_P: f64 = 0.05;

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

/// Returns the variance of all together for each of `own`, or its own where that is one of its own.
///
/// A noise of a kind of its own stays in what the others have together: where all have outliers, those
/// that met none by chance are not quieter for it.
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
        let p = FisherSnedecor::new(freedom, others.freedom).map_or(1.0, |f| 1.0 - f.cdf(ratio));
        if square <= all.square || p > OWN_P {
            break;
        }
        alone.push(largest);
    }
    let of = |(at, own): (usize, &Variance)| match alone.contains(&at) {
        true => *own,
        false => all,
    };
    own.iter().enumerate().map(of).collect()
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
    let freedom = match one == other || square <= 0.0 {
        true => one.freedom,
        false => square.powi(2) / parts.iter().sum::<f64>(),
    };
    Variance { square, freedom }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(squares: &[f64]) -> Vec<Variance> {
        let own = squares.iter().map(|square| Variance {
            square: *square,
            freedom: 2.0,
        });
        pooled(&own.collect::<Vec<_>>())
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
