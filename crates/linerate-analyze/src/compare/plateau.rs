//! The smallest level that is as good as the best one.
//!
//! Among levels i with means x̄ᵢ of nᵢ replicates let b be the best. Level i reaches the best iff
//!
//!   (x̄_b − x̄ᵢ) / x̄_b ≤ max( t(0.975, ν) · s · √(1/nᵢ + 1/n_b), 1 % )
//!
//! with the pooled relative deviation s of ν degrees of freedom (`noise`). This is a comparison
//! with the best (Hsu, "Constrained simultaneous confidence intervals for multiple comparisons
//! with the best", Annals of Statistics 12, 1984) with a plain t quantile, and an indifference zone
//! of 1 % below which a difference is not worth a setting. Pooling matters: two replicates alone
//! have intervals so wide (t = 12.7) that any level would reach any other. Without a single
//! repeated cell s is unknown and only the indifference zone remains.
//!
//! The plateau begins at the smallest level that reaches the best. Larger levels that fall back
//! are reported, since a buffer can also be too large.

use super::noise::Noise;

/// Share of the best below which a difference is not worth a setting.
pub(crate) const INDIFFERENCE_SHARE: f64 = 0.01;

/// One level with its mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// The level as a number.
    pub(crate) level: f64,
    /// Mean response.
    pub(crate) mean: f64,
    /// Replicates.
    pub(crate) n: u32,
}

/// Where a response stops growing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plateau {
    /// Index of the smallest level that reaches the best.
    pub(crate) begin: usize,
    /// Index of the best level.
    pub(crate) best: usize,
    /// Indices of larger levels that fall back below the best.
    pub(crate) fallen: Vec<usize>,
    /// Share of the best by which the level at which it begins could have fallen short unseen.
    pub(crate) resolution: f64,
}

/// Returns the plateau of `steps`, ordered by level; absent for fewer than two levels.
pub(crate) fn plateau(steps: &[Step], noise: Option<Noise>) -> Option<Plateau> {
    debug_assert!(
        steps.is_sorted_by(|a, b| a.level <= b.level),
        "levels ascend"
    );
    if steps.len() < 2 {
        return None;
    }
    let by_mean = |a: &usize, b: &usize| steps[*a].mean.total_cmp(&steps[*b].mean);
    let best = (0..steps.len()).max_by(by_mean)?;
    if steps[best].mean <= 0.0 {
        return None;
    }
    let tolerance = |at: &usize| {
        let chance = noise.map_or(0.0, |noise| {
            noise.difference_share(steps[*at].n, steps[best].n)
        });
        chance.max(INDIFFERENCE_SHARE)
    };
    let reaches =
        |at: &usize| (steps[best].mean - steps[*at].mean) / steps[best].mean <= tolerance(at);
    let begin = (0..steps.len()).find(reaches)?;
    let fallen = (begin + 1..steps.len()).filter(|at| !reaches(at)).collect();
    Some(Plateau {
        begin,
        best,
        fallen,
        resolution: tolerance(&begin),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(means: &[f64]) -> Vec<Step> {
        let step = |(at, mean): (usize, &f64)| Step {
            level: at as f64,
            mean: *mean,
            n: 3,
        };
        means.iter().enumerate().map(step).collect()
    }

    #[test]
    fn plateau_begins_where_the_best_is_reached() {
        let quiet = Some(Noise {
            share: 0.001,
            freedom: 10.0,
        });
        let loud = Some(Noise {
            share: 0.1,
            freedom: 10.0,
        });
        let check = |means: &[f64], noise, expected: Option<(usize, &[usize])>| {
            let found = plateau(&steps(means), noise);
            let found = found
                .as_ref()
                .map(|found| (found.begin, found.fallen.as_slice()));
            assert_eq!(found, expected, "{means:?} {noise:?}");
        };
        check(&[100.0, 500.0, 935.0, 940.0, 941.0], quiet, Some((2, &[])));
        // A rise to the end has its plateau at the last level.
        check(&[100.0, 200.0, 400.0], quiet, Some((2, &[])));
        // No effect at all.
        check(&[940.0, 941.0, 940.0], quiet, Some((0, &[])));
        // Too large is worse again.
        check(&[100.0, 940.0, 941.0, 700.0], quiet, Some((1, &[3])));
        // Chance explains 10 % · 2.228 · √(2/3) = 18 %.
        check(&[100.0, 800.0, 941.0], loud, Some((1, &[])));
        check(&[100.0, 700.0, 941.0], loud, Some((2, &[])));
        // Without repeated cells only the indifference zone counts.
        check(&[100.0, 935.0, 941.0], None, Some((1, &[])));
        check(&[100.0, 925.0, 941.0], None, Some((2, &[])));
        check(&[941.0], quiet, None);
        check(&[0.0, 0.0], quiet, None);
    }
}
