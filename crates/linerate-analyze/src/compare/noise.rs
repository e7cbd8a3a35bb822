//! How much identical cells differ: the noise floor.
//!
//! Pooled relative standard deviation over all cells that were measured at least twice:
//! s = √( Σ (nᵢ − 1)·(sᵢ / x̄ᵢ)² / Σ (nᵢ − 1) ), the within-cell mean square of an analysis of
//! variance on relative values (Jain, "The Art of Computer Systems Performance Analysis", 1991,
//! chapter 20). A difference between cells below it is not a difference.

use linerate_model::finding::Estimate;

use super::interval::{deviation, mean, student_t};

/// The noise floor of a response.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Noise {
    /// Relative standard deviation of one trial.
    pub(crate) share: f64,
    /// Degrees of freedom that it rests on.
    pub(crate) freedom: f64,
}

impl Noise {
    /// Pools the replicates of `cells`; absent when no cell was repeated.
    pub(crate) fn pooled<'a>(cells: impl IntoIterator<Item = &'a [f64]>) -> Option<Self> {
        let (mut squares, mut freedom) = (0.0, 0.0);
        for values in cells {
            if values.len() < 2 || mean(values) <= 0.0 {
                continue;
            }
            let degrees = values.len() as f64 - 1.0;
            squares += degrees * (deviation(values) / mean(values)).powi(2);
            freedom += degrees;
        }
        (freedom > 0.0).then(|| Self {
            share: (squares / freedom).sqrt(),
            freedom,
        })
    }

    /// Returns the relative difference of two cells' means that chance explains:
    /// t(0.975, ν) · s · √(1/n₁ + 1/n₂).
    pub(crate) fn difference_share(self, n1: u32, n2: u32) -> f64 {
        let t = student_t(self.freedom).unwrap_or(f64::INFINITY);
        let inverse = |n: u32| 1.0 / f64::from(n.max(1));
        t * self.share * (inverse(n1) + inverse(n2)).sqrt()
    }
}

/// Share of difference that needs no explanation where no cell was repeated, so that the noise is
/// not known; cells of two short trials on one machine seldom agree better.
const DIFFERENCE_SHARE_UNKNOWN: f64 = 0.1;
/// Share of difference that is not worth a word, however sure it is.
const DIFFERENCE_SHARE_MIN: f64 = 0.02;

/// Returns whether `new` differs from `old` by more than chance explains.
pub(crate) fn differs(old: &Estimate, new: &Estimate, noise: Option<Noise>) -> bool {
    let chance = noise.map_or(DIFFERENCE_SHARE_UNKNOWN, |noise| {
        noise.difference_share(old.n, new.n)
    });
    let larger = old.value.max(new.value);
    larger > 0.0 && (new.value - old.value).abs() / larger > chance.max(DIFFERENCE_SHARE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooling_weighs_by_degrees_of_freedom() {
        // 100 ± 10 (n = 3) and 1000 ± 20 (n = 2, s = 20): (2·0.01 + 1·0.0004) / 3 = 0.0068.
        let s = 20.0 / 2.0_f64.sqrt();
        let cells: [&[f64]; 3] = [&[90.0, 100.0, 110.0], &[1000.0 - s, 1000.0 + s], &[5.0]];
        let noise = Noise::pooled(cells).unwrap();
        assert!((noise.share - 0.0068_f64.sqrt()).abs() < 1e-12, "{noise:?}");
        assert_eq!(noise.freedom, 3.0);
        assert_eq!(Noise::pooled([&[1.0][..]]), None);
    }

    #[test]
    fn chance_explains_less_with_more_replicates() {
        let noise = Noise {
            share: 0.02,
            freedom: 4.0,
        };
        // t(4) = 2.776; √(1/3 + 1/3) = 0.8165.
        assert!((noise.difference_share(3, 3) - 2.7764 * 0.02 * 0.8165).abs() < 1e-5);
        assert!(noise.difference_share(10, 10) < noise.difference_share(2, 2));
    }
}
