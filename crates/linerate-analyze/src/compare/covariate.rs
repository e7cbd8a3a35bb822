//! What a disturbance that was measured beside a response did to it (analysis of covariance).
//!
//! Within cells, logarithms of the response are regressed on the disturbance: slope b = Σ x̃ỹ / Σ x̃²
//! with deviations x̃, ỹ from the cells' means, ν = Σ (n − 1) − 1 degrees of freedom, and t = b / s_b.
//! Where it is beyond doubt (p ≤ [`SLOPE_P_MAX`] on [`SLOPE_FREEDOM_MIN`] degrees of freedom or more), responses
//! are compared as they would have been had all trials been disturbed alike, x̄ (Fisher, "Statistical
//! Methods for Research Workers", 4th edition 1932, section 49.1).
//!
//! That is right only for a disturbance that comes from elsewhere. Where cells are disturbed to
//! different extents (an F-test between and within cells, p ≤ [`CELLS_P_MAX`]), a level may bring it
//! about itself, and to adjust for it would take away or make up an effect: then nothing is adjusted.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use super::interval::mean;

/// The largest p-value of a slope that is used.
const SLOPE_P_MAX: f64 = 1e-3;
/// The largest p-value at which cells are disturbed to different extents.
const CELLS_P_MAX: f64 = 0.1;
/// The least degrees of freedom of one.
const SLOPE_FREEDOM_MIN: f64 = 10.0;

/// A response's dependence on a disturbance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slope {
    slope: f64,
    mean: f64,
}

impl Slope {
    /// Returns what `cells` of (disturbance, logarithm of the response) show; absent where that is nothing
    /// for certain.
    pub(crate) fn of(cells: &[Vec<(f64, f64)>]) -> Option<Self> {
        let (mut xx, mut xy, mut yy, mut freedom) = (0.0, 0.0, 0.0, -1.0);
        let mut means = Vec::new();
        for cell in cells.iter().filter(|cell| cell.len() > 1) {
            let of = |part: fn(&(f64, f64)) -> f64| cell.iter().map(part).collect::<Vec<f64>>();
            let (x, y) = (mean(&of(|pair| pair.0)), mean(&of(|pair| pair.1)));
            for pair in cell {
                let (dx, dy) = (pair.0 - x, pair.1 - y);
                (xx, xy, yy) = (xx + dx * dx, xy + dx * dy, yy + dy * dy);
            }
            means.push((x, cell.len() as f64));
            freedom += cell.len() as f64 - 1.0;
        }
        if freedom < SLOPE_FREEDOM_MIN || xx <= 0.0 {
            return None;
        }
        let trials: f64 = means.iter().map(|(_, n)| n).sum();
        let middle = means.iter().map(|(x, n)| x * n).sum::<f64>() / trials;
        let between: f64 = means.iter().map(|(x, n)| n * (x - middle).powi(2)).sum();
        let cells = means.len() as f64 - 1.0;
        if cells >= 1.0 {
            let f = (between / cells) / (xx / (freedom + 1.0));
            let p = 1.0 - FisherSnedecor::new(cells, freedom + 1.0).ok()?.cdf(f);
            if p <= CELLS_P_MAX {
                return None;
            }
        }
        let slope = xy / xx;
        let rest = ((yy - slope * xy) / freedom).max(0.0);
        let t = slope.abs() / (rest / xx).sqrt();
        let p = 2.0 * (1.0 - StudentsT::new(0.0, 1.0, freedom).ok()?.cdf(t));
        (p <= SLOPE_P_MAX).then_some(Self {
            slope,
            mean: middle,
        })
    }

    /// Whether the response grows with the disturbance.
    pub(crate) fn rises(&self) -> bool {
        self.slope > 0.0
    }

    /// Returns the response that would have been, had the disturbance been the average one.
    pub(crate) fn adjusted(&self, disturbance: f64, response: f64) -> f64 {
        response * (-self.slope * (disturbance - self.mean)).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::Draw;
    use super::*;

    /// Twelve cells of three trials, which lose `slope` of a disturbance of up to a fifth.
    fn cells(slope: f64, noise: f64) -> Vec<Vec<(f64, f64)>> {
        let mut draw = Draw::new(3);
        let mut trial = |cell: usize| {
            let lost = 0.2 * draw.unit();
            (lost, cell as f64 - slope * lost + noise * draw.normal())
        };
        let mut cell = |at| (0..3).map(|_| trial(at)).collect::<Vec<_>>();
        (0..12).map(&mut cell).collect()
    }

    #[test]
    fn what_was_lost_is_given_back() {
        let made = cells(1.5, 0.0);
        let found = Slope::of(&made).expect("a slope beyond doubt");
        let (lost, log) = made[4][1];
        let adjusted = found.adjusted(lost, log.exp()).ln();
        assert!(
            (adjusted - (4.0 - 1.5 * found.mean)).abs() < 1e-9,
            "{adjusted}"
        );
    }

    #[test]
    fn a_disturbance_that_a_level_makes_is_no_covariate() {
        let mut draw = Draw::new(5);
        let mut trial = |lost: f64| {
            let lost = lost + 0.02 * draw.unit();
            (lost, -1.5 * lost + 0.001 * draw.normal())
        };
        let cells = (0..12).map(|cell| [(); 3].map(|()| trial(0.05 * f64::from(cell % 2))));
        let cells: Vec<Vec<(f64, f64)>> = cells.map(Vec::from).collect();
        assert_eq!(Slope::of(&cells), None);
    }

    #[test]
    fn chance_and_too_little_are_no_slope() {
        assert_eq!(Slope::of(&cells(0.0, 0.1)), None);
        assert_eq!(Slope::of(&cells(1.5, 0.0)[..3]), None);
        assert_eq!(Slope::of(&[vec![(0.0, 1.0); 20]]), None);
        assert_eq!(Slope::of(&[]), None);
    }
}
