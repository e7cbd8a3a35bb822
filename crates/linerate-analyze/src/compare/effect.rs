//! What turning one thing from a level to another changes, from pairs of trials.
//!
//! A pair are two trials of one block that differ in the factor only; d is their difference as one of
//! logarithms ([`Difference::of_cells`]). The plan shuffles each block, so that under "no effect" the sign of each d is as
//! likely plus as minus, whatever the noise is: normal, skewed, of two modes, or drifting (Fisher,
//! "The Design of Experiments", 1935, section 21). No distribution is assumed.
//!
//! The typical-value theorem (Hartigan, "Using subsample values as typical values", Journal of the
//! American Statistical Association 64, 1969) turns that into an interval: of N differences that are
//! symmetric about θ, the means of all subsets but the empty one divide the line into 2^N parts,
//! each of which holds θ with the same probability. Quantiles of those means are the ends of the
//! interval at any confidence, and twice the share of them beyond 0 is the p-value: one draw of
//! subsets gives both, so that they cannot contradict each other. Of few pairs even the widest such interval, from the least
//! difference to the most, misses oftener than a claim may. Where that one excludes "no effect", so that signs have said
//! all they can, Student's interval of the mean says the rest; both together are then the interval.
//!
//! Interaction: the differences belong to levels of the other factors. The F statistic holds the squares between
//! those levels against what blocks and cells leave over, of the differences and of the sums of the same pairs, which have the
//! same variance; where levels have noises of their own each counts by its own (Welch, "On the comparison of several
//! mean values: an alternative approach", Biometrika 38, 1951). As with signs, the permutations are its guard: if the effect is the same at
//! all levels, differences of one block may change places, and few such permutations may have more between levels than was
//! observed.

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use super::draw::Draw;
use super::interval::{deviation, mean, student};
use super::kin::{self, Variance};

/// Subsets that are all looked at up to this many differences.
const ENUMERATED_MAX: usize = 11;
/// Subsets drawn for more of them: the 95 % interval's ends then rest on a hundred each.
const SUBSETS: usize = 4095;
/// Permutations drawn for the interaction.
const PERMUTATIONS: u32 = 1999;
/// Pairs below which nothing can be decided.
pub(crate) const PAIRS_MIN: usize = linerate_model::finding::PAIRS_MIN as usize;
/// Share of the error that the mean effect may spend, the rest is the interaction's.
const MAIN_SHARE: f64 = 0.9;
/// The least variance of a difference: counters are whole numbers, of which one in a million is nothing.
const WHOLE_SQUARE: f64 = 1e-12;
/// Share of permutations with more between levels than was observed, up to which an interaction is one: the usual 5 %.
const GUARD_SHARE: f64 = 0.05;

/// One pair of trials that differ in one factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Difference {
    /// Which levels of the factor that it is told by, a number of the caller's.
    pub(crate) group: usize,
    /// Which combination of all other levels, likewise.
    pub(crate) cell: usize,
    /// Which block.
    pub(crate) block: u32,
    /// Logarithm of the one over the other.
    pub(crate) log: f64,
    /// The sum of both, in the same unit.
    pub(crate) sum: f64,
}

impl Difference {
    /// Returns the differences of the pairs (block, one, other) of two cells.
    ///
    /// With A and B the means of the cells, a pair counts as ln(A/B) · (a − b) / (A − B): the mean of
    /// the pairs is then the logarithm of the ratio that the cells' means have, and a trial that was
    /// slow by chance does not weigh more than a fast one, as it would in ln(a/b).
    pub(crate) fn of_cells((group, cell): (usize, usize), pairs: &[(u32, f64, f64)]) -> Vec<Self> {
        let n = pairs.len().max(1) as f64;
        let sum = |of: fn(&(u32, f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
        let (one, other) = (sum(|pair| pair.1), sum(|pair| pair.2));
        // ln(A/B) / (A − B) is 2 / (A + B) where they are the same.
        let unit = if (one - other).abs() < 1e-9 * (one + other) {
            2.0 / (one + other)
        } else {
            (one / other).ln() / (one - other)
        };
        let of_pair = |&(block, a, b): &(u32, f64, f64)| Self {
            group,
            cell,
            block,
            log: unit * (a - b),
            sum: unit * (a + b),
        };
        pairs.iter().map(of_pair).collect()
    }

    /// Returns it as one of a group that is its cell alone.
    fn of_cell(&self) -> Self {
        Self {
            group: self.cell,
            ..*self
        }
    }

    /// Returns the differences between whole plots, from those of their trials: for each block and number of a pair of
    /// plots the mean.
    ///
    /// The trials of a plot share what happened to it, so that their differences are no more independent than one
    /// (Yates, "Complex experiments", Supplement to the Journal of the Royal Statistical Society 2, 1935).
    pub(crate) fn of_plots(differences: &[(usize, Self)]) -> Vec<Self> {
        let mut plots: BTreeMap<(usize, u32), Vec<Self>> = BTreeMap::new();
        for (plot, difference) in differences {
            let own = plots.entry((*plot, difference.block)).or_default();
            own.push(*difference);
        }
        let of_plot = |((plot, block), own): ((usize, u32), Vec<Self>)| {
            let mean = |of: fn(&Self) -> f64| own.iter().map(of).sum::<f64>() / own.len() as f64;
            Self {
                group: own[0].group,
                cell: plot,
                block,
                log: mean(|it| it.log),
                sum: mean(|it| it.sum),
            }
        };
        plots.into_iter().map(of_plot).collect()
    }
}

/// The mean effect of a factor, and whether it differs between the levels of the others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Effect {
    /// Mean of the logarithms.
    pub(crate) log: f64,
    /// Number of pairs.
    pub(crate) pairs: usize,
    /// p-value of the mean effect.
    pub(crate) p_main: f64,
    /// p-value of the interaction; 1 where there is but one group.
    pub(crate) p_interaction: f64,
    /// The same with all combinations of the other levels.
    p_cells: f64,
    /// The least and the greatest mean of such a combination.
    pub(crate) span: (f64, f64),
    /// Means of subsets, ascending.
    typical: Vec<f64>,
    /// Variance of the mean.
    variance: Variance,
    /// By group: mean, pairs.
    groups: Vec<(usize, f64, usize)>,
    /// By group: variance of differences about the group's mean.
    residual: Vec<Variance>,
}

impl Effect {
    /// Returns the effect that `differences` show; absent for fewer than [`PAIRS_MIN`].
    pub(crate) fn of(differences: &[Difference], seed: u64) -> Option<Self> {
        if differences.len() < PAIRS_MIN {
            return None;
        }
        let mut draw = Draw::new(seed);
        let logs: Vec<f64> = differences.iter().map(|it| it.log).collect();
        let typical = typical_values(&logs, &mut draw);
        let groups = by_group(differences);
        let cells: Vec<Difference> = differences.iter().map(Difference::of_cell).collect();
        let left = Left::of(differences);
        let of_pair = left.variance;
        let residual = left.by_group(&groups);
        let p_interaction = left.interaction(differences, (&groups, &residual), &mut draw);
        let means = by_group(&cells);
        let p_cells = if means.len() == groups.len() {
            p_interaction
        } else {
            between_cells(&cells, &means, &mut draw)
        };
        let mut found = Self {
            log: mean(&logs),
            pairs: logs.len(),
            p_main: 1.0,
            p_interaction,
            p_cells,
            span: span(&means),
            typical,
            variance: of_pair.times(1.0 / logs.len() as f64),
            residual,
            groups,
        };
        found.p_main = found.p_of_mean();
        Some(found)
    }

    /// Takes up, of an effect between whole plots, what `differences` of their trials say of how much it differs from cell
    /// to cell.
    ///
    /// Cells of one pair of `plots` share the noise of their plots, which blocks take off; those of several pairs do
    /// not, and tell nothing of it.
    pub(crate) fn look_inside(&mut self, differences: &[Difference], plots: usize, seed: u64) {
        let cells: Vec<Difference> = differences.iter().map(Difference::of_cell).collect();
        let means = by_group(&cells);
        self.span = span(&means);
        if plots == 1 && means.len() > 1 {
            self.p_cells = between_cells(&cells, &means, &mut Draw::new(seed));
        }
    }

    fn p_of_mean(&self) -> f64 {
        let below = self.typical.iter().filter(|mean| **mean <= 0.0).count();
        let above = self.typical.iter().filter(|mean| **mean >= 0.0).count();
        // The empty subset belongs to either side.
        let of_signs = 2.0 * (below.min(above) + 1) as f64 / (self.typical.len() + 1) as f64;
        if of_signs > self.error_min() {
            return of_signs.min(1.0);
        }
        of_signs.min(self.variance.p_of(self.log))
    }

    /// Returns the p-value of "no effect at any level": the mean and the interaction share the error.
    pub(crate) fn p(&self) -> f64 {
        let main = self.p_main / MAIN_SHARE;
        main.min(self.p_interaction / (1.0 - MAIN_SHARE)).min(1.0)
    }

    /// Returns whether, with an error of `alpha` for both, the mean is not zero.
    pub(crate) fn is_main(&self, alpha: f64) -> bool {
        self.p_main <= MAIN_SHARE * alpha
    }

    /// Returns whether, with an error of `alpha` for both, the effect differs between groups.
    pub(crate) fn is_interaction(&self, alpha: f64) -> bool {
        self.p_interaction <= (1.0 - MAIN_SHARE) * alpha
    }

    /// Returns whether the mean may hide what the effect is somewhere: it differs between combinations of the other
    /// levels, with an error of `alpha`, or is beyond `most` in one of them as it was measured.
    pub(crate) fn is_mixed(&self, alpha: f64, most: f64) -> bool {
        let farthest = self.span.1.max(-self.span.0);
        self.p_interaction.min(self.p_cells) <= alpha || farthest >= most
    }

    /// Returns whether it differs between combinations of the other levels, with an error of `alpha`, and was measured in
    /// both directions.
    pub(crate) fn turns(&self, alpha: f64) -> bool {
        let (least, most) = self.span;
        self.p_interaction.min(self.p_cells) <= alpha && least < 0.0 && most > 0.0
    }

    /// Returns the least probability with which an interval of signs alone can miss: the widest is from the least
    /// difference to the most.
    fn error_min(&self) -> f64 {
        2.0 / (self.typical.len() + 1) as f64
    }

    /// Returns whether signs alone can claim something with an error of `alpha`.
    pub(crate) fn rests_on_signs(&self, alpha: f64) -> bool {
        alpha >= self.error_min()
    }

    /// Returns the interval of the mean logarithm that misses it with probability `alpha`.
    pub(crate) fn interval(&self, alpha: f64) -> (f64, f64) {
        let last = self.typical.len() - 1;
        let rank = (alpha / 2.0 * (self.typical.len() + 1) as f64).floor() as usize;
        let low = rank.saturating_sub(1).min(last);
        let (low, high) = (self.typical[low], self.typical[last - low]);
        if self.rests_on_signs(alpha) {
            return (low, high);
        }
        let half = student(self.variance.freedom, 1.0 - alpha / 2.0) * self.variance.square.sqrt();
        (low.min(self.log - half), high.max(self.log + half))
    }

    /// Returns the variance of the mean, and the two-sided error that it may have where the claim has `alpha`.
    pub(crate) fn of_mean(&self, alpha: f64) -> (Variance, f64) {
        (self.variance, MAIN_SHARE * alpha)
    }

    /// Returns half of the width that the interval has with so many pairs for each pair that there is.
    pub(crate) fn half_width(&self, alpha: f64, times: f64) -> f64 {
        let (low, high) = self.interval(alpha);
        let t = |freedom| student(freedom, 1.0 - alpha / 2.0);
        let freedom = self.variance.freedom;
        (high - low) / 2.0 * t(freedom * times) / t(freedom) / times.sqrt()
    }

    /// Returns group, pairs, mean logarithm and interval of each group, which all together miss one with
    /// probability `alpha` at the most (Bonferroni).
    ///
    /// A group has as many pairs as blocks, too few for subsets: Student's t with the deviation of
    /// all groups, or the group's own where it has a noise of its own ([`kin`]).
    pub(crate) fn levels(&self, alpha: f64) -> Vec<(usize, usize, f64, (f64, f64))> {
        let tail = alpha / 2.0 / self.groups.len() as f64;
        let level = |(&(group, log, pairs), variance): (&(usize, f64, usize), &Variance)| {
            let t = student(variance.freedom, 1.0 - tail);
            let half = t * (variance.square / pairs as f64).sqrt();
            (group, pairs, log, (log - half, log + half))
        };
        self.groups.iter().zip(&self.residual).map(level).collect()
    }
}

/// Returns the means of subsets of `logs`, ascending: of all of them, or of those drawn.
fn typical_values(logs: &[f64], draw: &mut Draw) -> Vec<f64> {
    let mut means: Vec<f64> = if logs.len() <= ENUMERATED_MAX {
        let chosen = 1_u64..1 << logs.len();
        chosen.map(|chosen| mean_of(logs, &[chosen])).collect()
    } else {
        let words = logs.len().div_ceil(64);
        let mut chosen = vec![0; words];
        let mut one = || {
            loop {
                chosen.fill_with(|| draw.bits());
                let mean = mean_of(logs, &chosen);
                if mean.is_finite() {
                    return mean;
                }
            }
        };
        (0..SUBSETS).map(|_| one()).collect()
    };
    means.sort_by(f64::total_cmp);
    means
}

/// Returns the mean of those of `logs` whose bit is set; not a number for none.
fn mean_of(logs: &[f64], chosen: &[u64]) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u32);
    for (logs, bits) in logs.chunks(64).zip(chosen) {
        for (at, log) in logs.iter().enumerate() {
            if bits >> at & 1 == 1 {
                sum += log;
                count += 1;
            }
        }
    }
    sum / f64::from(count)
}

/// Returns the p-value of "the same in all cells".
fn between_cells(cells: &[Difference], means: &[(usize, f64, usize)], draw: &mut Draw) -> f64 {
    let left = Left::of(cells);
    let residual = left.by_group(means);
    left.interaction(cells, (means, &residual), draw)
}

/// Returns the least and the greatest mean.
fn span(means: &[(usize, f64, usize)]) -> (f64, f64) {
    let logs = means.iter().map(|(_, log, _)| *log);
    (
        logs.clone().fold(f64::INFINITY, f64::min),
        logs.fold(f64::NEG_INFINITY, f64::max),
    )
}

fn by_group(differences: &[Difference]) -> Vec<(usize, f64, usize)> {
    let mut groups: Vec<usize> = differences.iter().map(|it| it.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let mean_of = |group: usize| {
        let own = differences.iter().filter(|it| it.group == group);
        let logs: Vec<f64> = own.map(|it| it.log).collect();
        (group, mean(&logs), logs.len())
    };
    groups.into_iter().map(mean_of).collect()
}

/// What cells and blocks leave over of differences, and of the sums of the same pairs.
struct Left {
    /// Group and rest.
    rests: Vec<(usize, f64)>,
    /// All of them as the variance of one difference.
    variance: Variance,
    /// Whether anything was repeated: else nothing is left over, and no group can be told from chance.
    is_repeated: bool,
}

impl Left {
    fn of(differences: &[Difference]) -> Self {
        let (mut rests, mut freedom) = (Vec::new(), 0.0);
        for of in [|it: &Difference| it.log, |it: &Difference| it.sum] {
            let cells = differences.iter().map(|it| (it.cell, it.block, of(it)));
            let mut cells: Vec<(usize, u32, f64)> = cells.collect();
            freedom += kin::leave_over(&mut cells);
            let groups = differences.iter().map(|it| it.group);
            rests.extend(groups.zip(cells.iter().map(|(.., rest)| *rest)));
        }
        let squares: f64 = rests.iter().map(|(_, rest)| rest * rest).sum();
        // Where nothing was repeated the differences are all there is.
        let logs: Vec<f64> = differences.iter().map(|it| it.log).collect();
        let is_repeated = freedom > 0.0;
        let (square, freedom) = if is_repeated {
            (squares / freedom, freedom)
        } else {
            (deviation(&logs).powi(2), logs.len() as f64 - 1.0)
        };
        let variance = Variance {
            square: square.max(WHOLE_SQUARE),
            freedom,
        };
        Self {
            rests,
            variance,
            is_repeated,
        }
    }

    /// Returns the p-value of "the same in all groups".
    fn interaction(
        &self,
        differences: &[Difference],
        groups: (&[(usize, f64, usize)], &[Variance]),
        draw: &mut Draw,
    ) -> f64 {
        if self.is_repeated {
            interaction(differences, groups, draw)
        } else {
            1.0
        }
    }

    /// Returns the variance of a difference in each of `groups`.
    fn by_group(&self, groups: &[(usize, f64, usize)]) -> Vec<Variance> {
        if !self.is_repeated {
            return vec![self.variance; groups.len()];
        }
        // What cells and blocks take of the degrees of freedom they take of each group's alike.
        let share = self.variance.freedom / self.rests.len() as f64;
        let own = groups.iter().map(|(group, ..)| {
            let rests = self.rests.iter().filter(|(of, _)| of == group);
            let freedom = rests.clone().count() as f64 * share;
            Variance {
                square: (rests.map(|(_, rest)| rest * rest).sum::<f64>() / freedom)
                    .max(WHOLE_SQUARE),
                freedom,
            }
        });
        let own: Vec<Variance> = own.collect();
        kin::pooled(&own)
    }
}

/// Returns the p-value of "all means are the same": F's where the variances lean on each other with the same degrees of
/// freedom ([`kin`]), else Welch's.
fn p_of_means(means: &[(usize, f64, usize)], variances: &[Variance]) -> f64 {
    let count = means.len() as f64;
    let weights = means
        .iter()
        .zip(variances)
        .map(|((.., n), it)| *n as f64 / it.square);
    let weights: Vec<f64> = weights.collect();
    let all: f64 = weights.iter().sum();
    let centre = means
        .iter()
        .zip(&weights)
        .map(|((_, mean, _), weight)| mean * weight)
        .sum::<f64>()
        / all;
    let squares = means
        .iter()
        .zip(&weights)
        .map(|((_, mean, _), weight)| weight * (mean - centre).powi(2));
    let between = squares.sum::<f64>() / (count - 1.0);
    let shared = variances.first().map_or(0.0, |it| it.freedom);
    let (ratio, freedom) = if variances.iter().all(|it| it.freedom == shared) {
        (between, shared)
    } else {
        let open = weights.iter().zip(variances);
        let open: f64 = open
            .map(|(weight, it)| (1.0 - weight / all).powi(2) / it.freedom)
            .sum();
        let square = count * count - 1.0;
        (
            between / (1.0 + 2.0 * (count - 2.0) / square * open),
            square / (3.0 * open),
        )
    };
    FisherSnedecor::new(count - 1.0, freedom).map_or(1.0, |f| f.sf(ratio))
}

/// Returns the p-value of "the same in all groups" of these means, where one difference of each has this variance.
fn interaction(
    differences: &[Difference],
    (means, variances): (&[(usize, f64, usize)], &[Variance]),
    draw: &mut Draw,
) -> f64 {
    let mut differences = differences.to_vec();
    differences.sort_by_key(|it| it.block);
    let groups = differences.iter().map(|it| it.group).max().unwrap_or(0) + 1;
    let mut logs: Vec<f64> = differences.iter().map(|it| it.log).collect();
    let owners: Vec<usize> = differences.iter().map(|it| it.group).collect();
    let mut counts = vec![0.0_f64; groups];
    for owner in &owners {
        counts[*owner] += 1.0;
    }
    let levels = counts.iter().filter(|count| **count > 0.0).count() as f64;
    if levels < 2.0 {
        return 1.0;
    }
    let mut blocks = Vec::new();
    let mut begin = 0;
    for at in 1..=differences.len() {
        if at == differences.len() || differences[at].block != differences[begin].block {
            blocks.push(begin..at);
            begin = at;
        }
    }
    let mut sums = vec![0.0_f64; groups];
    let mut between = |logs: &[f64]| {
        sums.fill(0.0);
        for (log, owner) in logs.iter().zip(&owners) {
            sums[*owner] += log;
        }
        let squares = sums.iter().zip(&counts).filter(|(_, count)| **count > 0.0);
        squares.map(|(sum, count)| sum * sum / count).sum::<f64>()
    };
    let observed = between(&logs);
    // The total is the same for every permutation, so that it need not be taken off; one that changes nothing sums in
    // another order.
    let mut larger = 0;
    for _ in 0..PERMUTATIONS {
        for block in &blocks {
            draw.shuffle(&mut logs[block.clone()]);
        }
        larger += u32::from(between(&logs) > observed * (1.0 + 1e-12));
    }
    let guard = f64::from(larger) / f64::from(PERMUTATIONS);
    let tail = p_of_means(means, variances);
    // So often do blocks put one level where it was observed, or all of them another there.
    let alike = levels.powi(1 - blocks.len() as i32);
    // What is drawn has a share of its own: three standard errors of that.
    let drawn = 3.0 * (alike * (1.0 - alike) / f64::from(PERMUTATIONS)).sqrt();
    match () {
        () if guard > GUARD_SHARE.max(alike + drawn) => guard.max(tail),
        () => tail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(groups: usize, blocks: u32, log: impl Fn(usize, u32) -> f64) -> Vec<Difference> {
        let pairs = (0..groups).flat_map(|group| (0..blocks).map(move |block| (group, block)));
        let difference = |(group, block)| Difference {
            group,
            cell: group,
            block,
            log: log(group, block),
            sum: 0.0,
        };
        pairs.map(difference).collect()
    }

    #[test]
    fn all_subsets_of_few_differences_are_looked_at() {
        // Fisher's fifteen pairs of maize would be drawn; of five that are all positive one of 32
        // sign patterns is as far out on either side.
        let found = Effect::of(
            &differences(1, 5, |_, block| 0.1 + 0.01 * f64::from(block)),
            1,
        );
        let found = found.expect("five pairs");
        assert!(found.p_main <= 2.0 / 32.0, "{found:?}");
        assert!(found.rests_on_signs(2.0 / 32.0) && !found.rests_on_signs(0.06));
        assert_eq!(found.p_interaction, 1.0);
        let (low, high) = found.interval(2.0 / 32.0);
        assert!(
            (low - 0.10).abs() < 1e-12 && (high - 0.14).abs() < 1e-12,
            "{low} {high}"
        );
        assert_eq!(Effect::of(&differences(1, 4, |_, _| 0.1), 1), None);
    }

    #[test]
    fn nothing_is_told_of_levels_that_were_measured_once() {
        // Six levels in one block: what differs between them and what is chance are the same six numbers.
        let logs = [-1.2, -0.26, 0.02, -0.23, 0.3, -0.2];
        let found = Effect::of(&differences(6, 1, |group, _| logs[group]), 1);
        let found = found.expect("six pairs");
        assert_eq!((found.p_interaction, found.p_cells), (1.0, 1.0));
        assert!(!found.is_interaction(0.05));
        for (.., log, (low, high)) in found.levels(0.05) {
            assert!(high - log > 0.5 && log - low > 0.5, "{low} to {high}");
        }
    }

    #[test]
    fn signs_that_do_not_agree_have_the_last_word() {
        // The one below zero is the least: of 32 patterns two are as far out on either side.
        let logs = [-0.01, 0.30, 0.31, 0.32, 0.33];
        let found = Effect::of(&differences(1, 5, |_, block| logs[block as usize]), 1);
        let found = found.expect("five pairs");
        assert_eq!(found.p_main, 4.0 / 32.0);
        let (low, high) = found.interval(0.01);
        assert!(low <= -0.01 && high >= 0.33, "{low} {high}");
    }

    #[test]
    fn differences_have_the_ratio_of_the_means() {
        let pairs = [(1, 120.0, 90.0), (2, 110.0, 110.0), (3, 130.0, 100.0)];
        let found = Difference::of_cells((0, 0), &pairs);
        let logs: Vec<f64> = found.iter().map(|it| it.log).collect();
        assert!((mean(&logs) - (120.0_f64 / 100.0).ln()).abs() < 1e-12);
        assert!((logs[0] - 1.5 * mean(&logs)).abs() < 1e-12);
        // Turned about, the same with the other sign.
        let turned = pairs.map(|(block, a, b)| (block, b, a));
        let turned = Difference::of_cells((0, 0), &turned);
        for (one, other) in found.iter().zip(&turned) {
            assert!((one.log + other.log).abs() < 1e-12);
        }
        assert_eq!(Difference::of_cells((0, 0), &[(1, 5.0, 5.0)])[0].log, 0.0);
    }

    #[test]
    fn p_value_and_interval_agree() {
        let mut draw = Draw::new(7);
        for _ in 0..200 {
            let noise: Vec<f64> = (0..24).map(|_| 0.2 * draw.normal() + 0.07).collect();
            let found = differences(8, 3, |group, block| noise[group * 3 + block as usize]);
            let found = Effect::of(&found, draw.bits()).expect("enough pairs");
            let (low, high) = found.interval(0.05);
            let excluded = low > 0.0 || high < 0.0;
            assert!(excluded == (found.p_main <= 0.05) || (found.p_main - 0.05).abs() < 2e-3);
        }
    }

    #[test]
    fn means_are_compared_as_the_books_do() {
        let of = |square, freedom| Variance { square, freedom };
        // Three groups of five with means 1, 2, 3 and the variance 1: F(2, 12) = 5, p = 0.0263 (tables).
        let means = [(0, 1.0, 5), (1, 2.0, 5), (2, 3.0, 5)];
        let p = p_of_means(&means, &[of(1.0, 12.0); 3]);
        assert!((p - 0.0263).abs() < 1e-4, "{p}");
        // Of two groups Welch's is the square of his t: means 0 and 1, variances 1 and 4 of 6 values each, t² = 1.2 with
        // (5/6)² / ((1/6)²/5 + (4/6)²/6) = 8.72 degrees of freedom, p = 0.303.
        let p = p_of_means(&[(0, 0.0, 6), (1, 1.0, 6)], &[of(1.0, 5.0), of(4.0, 6.0)]);
        assert!((p - 0.303).abs() < 2e-3, "{p}");
    }

    #[test]
    fn one_level_of_four_that_differs_is_an_interaction() {
        let mut draw = Draw::new(5);
        let mut found = 0;
        for _ in 0..100 {
            let noise: Vec<[f64; 2]> = (0..12)
                .map(|_| [0.014; 2].map(|it| it * draw.normal()))
                .collect();
            let mut pairs = differences(4, 3, |group, block| {
                let own = if group == 0 { 0.18 } else { 0.0 };
                own + noise[group * 3 + block as usize][0]
            });
            for (pair, [_, sum]) in pairs.iter_mut().zip(&noise) {
                pair.sum = *sum;
            }
            let effect = Effect::of(&pairs, draw.bits()).expect("enough pairs");
            let first = effect.levels(0.018)[0].3.0 > 0.0;
            found += u32::from(effect.is_interaction(0.018) && first);
        }
        assert!(found >= 90, "{found} of 100");
    }

    #[test]
    fn an_effect_that_turns_about_is_an_interaction() {
        let turning = |group: usize, block: u32| {
            let wobble = f64::from(block) * 0.01;
            if group < 4 {
                0.5 + wobble
            } else {
                -0.5 - wobble
            }
        };
        let found = Effect::of(&differences(8, 3, turning), 1).expect("enough pairs");
        assert!(
            found.p_main > 0.5 && found.is_interaction(0.05),
            "{found:?}"
        );
        assert!(found.p() < 0.01);
        let levels = found.levels(0.05);
        assert!(levels.iter().take(4).all(|(_, _, low, _)| *low > 0.0));
        assert!(levels.iter().skip(4).all(|(.., (_, high))| *high < 0.0));
    }
}
