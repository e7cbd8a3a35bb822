//! How identical trials differ, and what that leaves unknown of a mean.
//!
//! A budget of minutes buys three replicates of a cell. Three values say little of their own spread,
//! and nothing of a state that one trial in five falls into: in half of all cells none does, and
//! their own intervals would be points. Cells of one experiment share the machine and the noise, so
//! that its form and size are taken of all of them:
//!
//! 1. Are they alike ([`kin::are_alike`])?
//! 2. Size: the relative deviation of a cell is moderated with the pooled one ([`kin`]), and Student's t has the
//!    degrees of freedom of both. Where they are alike it is at least the pooled one, with all degrees of freedom. A cell
//!    that is far quieter than the quietest other is of another kind and speaks for itself.
//! 3. Memory: where trials resemble those before them (drift, a visitor that stays), residuals say
//!    less than their number: of ν degrees of freedom ν (1 − ρ) / (1 + ρ) are left, with the
//!    correlation ρ of successive residuals (Bartlett, "On the theoretical specification and sampling
//!    properties of autocorrelated time-series", 1946).
//! 4. Form: relative deviations of all cells about their means, stretched by √(n/(n − 1)), are drawn
//!    with replacement, n at a time; how far the quantiles of their means lie out on either side,
//!    over what a normal distribution would give, widens the two half widths.
//!
//! A trial is μ (1 + ε), so that the interval is x̄ / (1 + a) to x̄ / (1 − b): an amount has no value
//! below zero.

use linerate_model::finding::{CONFIDENCE, Estimate};
use linerate_model::unit::Unit;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::draw::Draw;
use super::interval::{NORMAL, deviation, mean, proportional, student_t};
use super::kin::{self, Variance};

/// Correlation of successive residuals that chance makes, in units of 1/√N.
const MEMORY_BY_CHANCE: f64 = 1.5;
/// The most that is taken for it: beyond, few blocks tell nothing of how much.
const MEMORY_MAX: f64 = 0.9;
/// The least degrees of freedom that it leaves.
const FREEDOM_LEFT_MIN: f64 = 2.0;
/// Cells from which on one may be told to be of another kind.
const KIN_MIN: usize = 5;
/// A cell with less than this share of the least deviation of all others speaks for itself.
const QUIETER_SHARE: f64 = 0.25;
/// Degrees of freedom from which on the noise has a form.
const FORM_FREEDOM_MIN: f64 = 10.0;
/// Draws for the form.
const FORM_DRAWS: usize = 600;

/// The noise of a response in an experiment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Noise {
    /// Relative standard deviation of one trial.
    pub(crate) share: f64,
    /// Degrees of freedom that it rests on.
    pub(crate) freedom: f64,
    /// Relative deviations of trials from their cells' means, stretched.
    residuals: Vec<f64>,
    /// Relative standard deviations of the cells, ascending.
    deviations: Vec<f64>,
    /// Degrees of freedom that are left when successive trials resemble each other.
    effective: f64,
    /// Student's quantile for them.
    t: f64,
    /// Whether the cells differ no more than chance makes cells of one noise differ.
    alike: bool,
    /// Degrees of freedom that the pooled deviation counts as beside a cell's own, where they do.
    prior: f64,
}

impl Noise {
    /// Pools the replicates of `cells`, each with its place in the order of execution; absent when no
    /// cell was repeated.
    pub(crate) fn pooled<'a>(cells: impl IntoIterator<Item = &'a [(u32, f64)]>) -> Option<Self> {
        let (mut squares, mut freedom) = (0.0, 0.0);
        let (mut residuals, mut deviations) = (Vec::new(), Vec::new());
        let (mut counts, mut about_medians) = (Vec::new(), Vec::new());
        for trials in cells {
            let values: Vec<f64> = trials.iter().map(|(_, value)| *value).collect();
            if values.len() < 2 || values.iter().any(|value| *value <= 0.0) {
                continue;
            }
            let (n, centre) = (values.len() as f64, mean(&values));
            let relative = deviation(&values) / centre;
            squares += (n - 1.0) * relative.powi(2);
            freedom += n - 1.0;
            deviations.push(relative);
            counts.push(values.len());
            let stretch = (n / (n - 1.0)).sqrt();
            let residual = |(at, value): &(u32, f64)| (*at, (value / centre - 1.0) * stretch);
            residuals.extend(trials.iter().map(residual));
            about_medians.extend(kin::about_median(values).map(|residual| residual / centre));
        }
        residuals.sort_by_key(|(at, _)| *at);
        let residuals: Vec<f64> = residuals
            .into_iter()
            .map(|(_, residual)| residual)
            .collect();
        let cells = counts.len().max(1) as f64;
        let kept = 1.0 - cells / residuals.len().max(1) as f64;
        let memory = memory(&residuals, kept);
        // Whoever stays for several trials does not choose their cells: the order is shuffled.
        let alike = memory > 0.0 || kin::are_alike(&about_medians, &counts, &deviations);
        let own = deviations.iter().zip(&counts).map(|(share, n)| Variance {
            square: share.powi(2),
            freedom: *n as f64 - 1.0,
        });
        let prior = kin::prior_freedom(&own.collect::<Vec<_>>());
        deviations.sort_by(f64::total_cmp);
        let effective = freedom * (1.0 - memory) / (1.0 + memory);
        let effective = effective.max(FREEDOM_LEFT_MIN.min(freedom));
        (freedom > 0.0).then(|| Self {
            share: (squares / freedom).sqrt(),
            freedom,
            residuals,
            deviations,
            effective,
            t: student_t(effective).unwrap_or(f64::INFINITY),
            alike,
            prior,
        })
    }

    /// Returns the relative standard deviation of one trial of the typical cell: that of all together where they
    /// are alike, the middle one where each has a noise of its own and the loudest would speak for all.
    pub(crate) fn typical(&self) -> f64 {
        match self.deviations.get(self.deviations.len() / 2) {
            Some(middle) if !self.alike => *middle,
            _ => self.share,
        }
    }

    /// Returns the interval of the noise floor itself, by χ²: √(ν s² / χ²(1 − α/2)) and so on.
    pub(crate) fn interval(&self) -> Option<(f64, f64)> {
        let chi = ChiSquared::new(self.freedom).ok()?;
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let end = |share| self.share * (self.freedom / chi.inverse_cdf(share)).sqrt();
        Some((end(1.0 - tail), end(tail)))
    }

    /// Returns it as a share with this interval.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        let (low, high) = self.interval()?;
        Some(Estimate {
            value: self.share,
            low: Some(low),
            high: Some(high),
            confidence: CONFIDENCE,
            n: self.freedom as u32 + 1,
            unit: Unit::Ratio,
        })
    }

    /// Returns the relative difference of two cells' means that chance explains (the least
    /// significant difference): t(0.975, ν) · s · √(1/n₁ + 1/n₂).
    pub(crate) fn difference_share(&self, n1: u32, n2: u32) -> f64 {
        let t = student_t(self.freedom).unwrap_or(f64::INFINITY);
        let inverse = |n: u32| 1.0 / f64::from(n.max(1));
        t * self.share * (inverse(n1) + inverse(n2)).sqrt()
    }

    /// Returns how far below and above the mean of `n` trials the truth may lie, as shares of
    /// s / √n at one unit of Student's t over the normal quantile; (1.96, 1.96) without a form.
    ///
    /// The same for every cell of `n` replicates, so callers keep it.
    pub(crate) fn form(&self, n: usize) -> (f64, f64) {
        if self.freedom < FORM_FREEDOM_MIN || self.share <= 0.0 {
            return (NORMAL, NORMAL);
        }
        let mut draw = Draw::new(n as u64);
        let count = self.residuals.len() as u32;
        let mut one = || {
            let chosen = (0..n).map(|_| self.residuals[draw.below(count) as usize]);
            chosen.sum::<f64>() / n as f64
        };
        let mut means: Vec<f64> = (0..FORM_DRAWS).map(|_| one()).collect();
        means.sort_by(f64::total_cmp);
        let tail = ((1.0 - CONFIDENCE) / 2.0 * FORM_DRAWS as f64) as usize;
        let unit = self.share / (n as f64).sqrt();
        // A mean that came out too high has its truth below it, and the other way round.
        let below = means[FORM_DRAWS - 1 - tail] / unit;
        let above = -means[tail] / unit;
        (below.max(NORMAL), above.max(NORMAL))
    }

    /// Puts the interval to the mean of `values`, a cell of this experiment with its `form`.
    pub(crate) fn widen(&self, values: &[f64], form: (f64, f64), estimate: Estimate) -> Estimate {
        let n = values.len() as f64;
        let own = deviation(values) / estimate.value;
        let (scale, freedom) = self.moderated(own, n - 1.0);
        let t = if freedom == self.effective {
            self.t
        } else {
            student_t(freedom).unwrap_or(f64::INFINITY)
        } / NORMAL;
        let half = |side: f64| t * scale * side / n.sqrt();
        let (low, high) = proportional(estimate.value, half(form.0), half(form.1));
        Estimate {
            low: Some(low),
            high: Some(high),
            ..estimate
        }
    }

    fn moderated(&self, own: f64, freedom: f64) -> (f64, f64) {
        let others = self.freedom - freedom;
        // The quietest of several that are quiet is none of another kind.
        let apart = self.deviations.len() > KIN_MIN
            && own <= self.deviations[0] * (1.0 + 1e-9)
            && own < QUIETER_SHARE * self.deviations[1];
        if others < 1.0 || apart {
            return (own, freedom);
        }
        let all = Variance {
            square: self.share.powi(2),
            freedom: others,
        };
        let own = Variance {
            square: own.powi(2),
            freedom,
        };
        let found = own.moderated(all, self.prior);
        if self.alike {
            (found.square.sqrt().max(self.share), self.effective)
        } else {
            (found.square.sqrt(), found.freedom)
        }
    }
}

/// Returns the correlation of successive trials; zero where chance gives as much.
///
/// Residuals are about the means of their own cells, which keep the share 1 − 1/n of a variance and
/// its square of what successive trials of different cells have in common: r = ρ (1 − 1/n).
fn memory(residuals: &[f64], kept: f64) -> f64 {
    let squares: f64 = residuals.iter().map(|one| one.powi(2)).sum();
    let products: f64 = residuals.windows(2).map(|two| two[0] * two[1]).sum();
    let correlation = products / squares;
    let chance = MEMORY_BY_CHANCE / (residuals.len() as f64).sqrt();
    if correlation > chance {
        // Its own standard error is added: to take it for less costs more than to take it for more.
        ((correlation + 1.0 / (residuals.len() as f64).sqrt()) / kept).min(MEMORY_MAX)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::unit::Unit;

    use super::super::interval::student_t_interval;
    use super::*;

    /// Pools cells that were measured one after the other.
    fn pooled<'a>(cells: impl IntoIterator<Item = &'a [f64]>) -> Option<Noise> {
        let mut at = 0;
        let mut next = |value: &f64| {
            at += 1;
            (at, *value)
        };
        let cells = cells
            .into_iter()
            .map(|cell| cell.iter().map(&mut next).collect::<Vec<_>>());
        let cells: Vec<_> = cells.collect();
        Noise::pooled(cells.iter().map(Vec::as_slice))
    }

    #[test]
    fn pooling_weighs_by_degrees_of_freedom() {
        // 100 ± 10 (n = 3) and 1000 ± 20 (n = 2, s = 20): (2·0.01 + 1·0.0004) / 3 = 0.0068.
        let s = 20.0 / 2.0_f64.sqrt();
        let cells: [&[f64]; 3] = [&[90.0, 100.0, 110.0], &[1000.0 - s, 1000.0 + s], &[5.0]];
        let noise = pooled(cells).unwrap();
        assert!((noise.share - 0.0068_f64.sqrt()).abs() < 1e-12, "{noise:?}");
        assert_eq!(noise.freedom, 3.0);
        assert_eq!(pooled([&[1.0][..]]), None);
    }

    #[test]
    fn the_least_significant_difference_shrinks_with_replicates() {
        let noise = pooled([&[98.0, 102.0][..]; 4]).unwrap();
        // s = √8 / 100, t(4) = 2.776; √(1/3 + 1/3) = 0.8165.
        let expected = 2.7764 * 8.0_f64.sqrt() / 100.0 * 0.8165;
        assert!((noise.difference_share(3, 3) - expected).abs() < 1e-5);
        assert!(noise.difference_share(10, 10) < noise.difference_share(2, 2));
    }

    #[test]
    fn the_floor_has_an_interval() {
        // χ²(0.975, 10) = 20.483, χ²(0.025, 10) = 3.247 (tables).
        let noise = pooled([&[98.0, 102.0][..]; 10]).unwrap();
        let (low, high) = noise.interval().unwrap();
        assert!((low / noise.share - (10.0_f64 / 20.483).sqrt()).abs() < 1e-4);
        assert!((high / noise.share - (10.0_f64 / 3.247).sqrt()).abs() < 1e-4);
    }

    #[test]
    fn three_lucky_trials_know_of_the_slow_ones() {
        // One trial in five is 30 % slower; this cell met none.
        let slow = [100.0, 70.0, 100.1];
        let mixed = [99.9, 100.0, 100.1];
        let cells = [slow, mixed, mixed, slow, mixed, slow];
        let noise = pooled(cells.iter().map(|cell| &cell[..])).unwrap();
        let form = noise.form(3);
        let own = student_t_interval(&mixed, Unit::Count).unwrap();
        let found = noise.widen(&mixed, form, own);
        assert!(found.low.unwrap() < 94.0, "{found:?}");
        // The slow state lies on one side.
        assert!(form.0 <= form.1, "{form:?}");
    }

    #[test]
    fn cells_with_noises_of_their_own_are_told_from_those_of_one_noise() {
        let of = |shares: &[f64]| {
            let mut draw = Draw::new(7);
            let trials = |share: f64| [(); 3].map(|()| 100.0 * (1.0 + share * draw.normal()));
            let cells: Vec<[f64; 3]> = shares.iter().copied().map(trials).collect();
            pooled(cells.iter().map(|cell| &cell[..])).unwrap()
        };
        assert!(of(&[0.05; 20]).alike);
        let mixed = [0.005, 0.1].repeat(10);
        assert!(!of(&mixed).alike);
        // Two cells of ten that are of no use leave the others as they are.
        let (loud, quiet) = ([20.0, 100.0, 220.0], [99.0, 100.0, 101.0]);
        let two = pooled(
            [
                loud, quiet, quiet, quiet, quiet, loud, quiet, quiet, quiet, quiet,
            ]
            .iter()
            .map(|cell| &cell[..]),
        );
        let two = two.unwrap();
        assert!(two.share > 0.35 && two.typical() == 0.01, "{two:?}");
        let all = of(&[0.2; 10]);
        assert_eq!(all.typical(), all.share);
        assert!(pooled([&[100.0, 100.0][..]; 3]).unwrap().alike);
    }

    #[test]
    fn a_cell_of_another_kind_speaks_for_itself() {
        let loud: Vec<[f64; 3]> = (1..=6)
            .map(|at| [80.0, 100.0, 120.0 + f64::from(at)])
            .collect();
        let quiet = [44.00, 44.04, 44.05];
        let cells = loud.iter().map(|cell| &cell[..]).chain([&quiet[..]]);
        let noise = pooled(cells).unwrap();
        let own = student_t_interval(&quiet, Unit::Count).unwrap();
        let found = noise.widen(&quiet, noise.form(3), own);
        assert!(found.high.unwrap() < 44.3, "{found:?}");
    }
}
