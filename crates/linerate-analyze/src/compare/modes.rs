//! Whether identical trials are of two kinds.
//!
//! A path with two states gives trials of two kinds, and a mean that no trial shows. Sorted values are cut
//! where the sum of squares within the two groups is least (Fisher, "On grouping for maximum
//! homogeneity", 1958); two groups are told where that is less of the whole than in all but one in a
//! thousand samples that are spread evenly, which is the flattest form without modes. Normal, heavy-tailed
//! and skewed samples stay behind it more often still.

use super::interval::{mean, squares};

/// Values from which on, and the largest share of the squares within the groups: quantiles at 0.001 of
/// 100 000 samples (30 000 from 20 values on) of the uniform distribution, each group with two values or
/// more.
const WITHIN_SHARE_MAX: &[(usize, f64)] = &[
    (6, 0.005),
    (8, 0.015),
    (10, 0.029),
    (12, 0.041),
    (16, 0.062),
    (20, 0.081),
    (30, 0.108),
];
/// Least values of a group: one alone is an outlier.
const GROUP_MIN: usize = 2;
/// Least distance of the groups, as a share of the greater: smaller ones change no decision.
const DISTANCE_MIN: f64 = 0.05;

/// One kind of trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mode {
    /// How many there are.
    pub(crate) trials: usize,
    /// The mean of these.
    pub(crate) value: f64,
}

/// Returns the two kinds that `values`, which are above zero, fall into, the smaller first; nothing if
/// they are of one kind, or too few to tell.
pub(crate) fn modes(values: &[f64]) -> Option<[Mode; 2]> {
    let n = values.len();
    // Counts that are none at times have steps of their own.
    if values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let (_, within_max) = WITHIN_SHARE_MAX
        .iter()
        .rev()
        .find(|(least, _)| *least <= n)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let whole = squares(&sorted);
    let cuts = (GROUP_MIN..=n - GROUP_MIN).map(|cut| {
        let (low, high) = sorted.split_at(cut);
        (squares(low) + squares(high), low, high)
    });
    let (within, low, high) = cuts.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let modes = [mode(low), mode(high)];
    let distance = 1.0 - modes[0].value / modes[1].value;
    let are_two = within < within_max * whole && distance >= DISTANCE_MIN;
    are_two.then_some(modes)
}

fn mode(values: &[f64]) -> Mode {
    Mode {
        trials: values.len(),
        value: mean(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::draw::Draw;

    #[test]
    fn two_states_of_a_path_are_told() {
        let values = [941.0, 560.0, 939.0, 941.2, 562.0, 941.1, 561.0];
        let [low, high] = modes(&values).expect("two modes");
        assert_eq!((low.trials, high.trials), (3, 4));
        assert!((low.value - 561.0).abs() < 1e-9, "{low:?}");
        assert!((high.value - 940.575).abs() < 1e-9, "{high:?}");
    }

    #[test]
    fn one_state_few_values_an_outlier_and_a_step_of_a_percent_are_none() {
        for values in [
            &[941.0, 560.0, 941.0, 560.0][..],
            &[941.0, 940.0, 939.0, 942.0, 941.5, 940.5],
            &[941.0, 941.1, 941.2, 940.9, 941.0, 941.1, 560.0],
            &[941.0, 941.1, 941.0, 932.0, 932.1, 932.0],
            &[7.0; 9],
            &[0.0; 9],
            &[0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
            &[],
        ] {
            assert_eq!(modes(values), None, "{values:?}");
        }
    }

    #[test]
    fn chance_makes_no_modes() {
        let mut draw = Draw::new(11);
        let mut told = [0; 3];
        for n in [6, 9, 14, 25].repeat(2000) {
            let even = (0..n).map(|_| 1.0 + draw.unit()).collect();
            let normal: Vec<f64> = (0..n).map(|_| 10.0 + draw.normal()).collect();
            let skewed = normal.iter().map(|value| (value / 2.0).exp()).collect();
            for (count, values) in told.iter_mut().zip([even, normal, skewed]) {
                *count += usize::from(modes(&values).is_some());
            }
        }
        // Of 8000 each.
        assert!(told.iter().all(|count| *count <= 16), "{told:?}");
    }
}
