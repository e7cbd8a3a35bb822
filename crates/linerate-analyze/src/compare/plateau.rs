//! The smallest level that is as good as the control.
//!
//! The control is the host as it is: no buffer set, so that the kernel tunes it. Where that was not
//! measured it is the largest level, which is said. In logarithms y of level l and block b is
//! μₗ + βᵦ + ε, where y is linear about its level's mean ([`Steps::of`]); s is the deviation of what level and
//! block leave over, with ν degrees of freedom, of all levels together but for those that have a noise of
//! their own ([`super::kin`]); dₗ is the mean of y(l, b) − y(control, b) over the m blocks that have both.
//!
//! 1. Level l *suffices* where dₗ − t(0.95, ν) · √((sₗ² + s²)/m) > ln(1 − δ), s being the control's: its loss is below δ, shown and
//!    not merely not refuted (Schuirmann, "A comparison of the two one-sided tests procedure", 1987).
//!    Absence of evidence makes no plateau: more noise makes larger ones, or none.
//! 2. From the largest level down, the first that does not suffice ends the search. Each step is
//!    tested only after all before it held, so that all of them together err with 5 % (fixed-sequence
//!    test: Maurer, Hothorn and Lehmacher 1995). A largest level that is shown to lose more than δ is
//!    passed over and told.
//! 3. Level l is *the same* where it suffices, and dₗ + t(0.95, ν) · √((sₗ² + s²)/m) < ln(1 + δ) as well: that nothing
//!    is lost does not show that nothing is gained.
//! 4. That a level *loses*, or gains, is a claim of its own, with the error that the report's family
//!    leaves it (Bonferroni over the levels).

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::interval::{mean, student};
use super::kin::{self, Variance};

/// Error of the statement that a level suffices.
const SUFFICES_ALPHA: f64 = 0.05;
/// Rounds of taking off level and block means; with all trials there one is exact.
const ROUNDS: u32 = 8;

/// A block, and whether of the repeats that came after all blocks ([`Outcome::block`]).
///
/// [`Outcome::block`]: linerate_model::outcome::Outcome::block
type Block = (u32, bool);

/// The trials of one level: block and logarithm of the response.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Steps {
    /// Block and logarithm.
    pub(crate) values: Vec<(Block, f64)>,
}

impl Steps {
    /// Returns the trials of a level, of (block, response above zero).
    ///
    /// The logarithm is linear about the mean, ln x̄ + (x − x̄) / x̄, as in the effects of factors: the mean of
    /// these is the logarithm of the mean that is shown, and a trial that was slow by chance does not weigh
    /// more than a fast one.
    pub(crate) fn of(trials: &[(Block, f64)]) -> Self {
        let values: Vec<f64> = trials.iter().map(|(_, value)| *value).collect();
        if values.is_empty() {
            return Self::default();
        }
        let centre = mean(&values);
        let linear = |(block, value): &(Block, f64)| (*block, centre.ln() + value / centre - 1.0);
        Self {
            values: trials.iter().map(linear).collect(),
        }
    }

    /// Whether a trial of it was done in a block of `other`.
    pub(crate) fn shares_block(&self, other: &Self) -> bool {
        self.values.iter().any(|(block, _)| other.has(*block))
    }

    fn has(&self, block: Block) -> bool {
        self.values.iter().any(|(own, _)| *own == block)
    }

    /// Returns the trials of blocks that others of `all` have, too: one alone says nothing of a difference.
    fn shared(&self, all: &[&Self]) -> Self {
        let is_shared = |block| all.iter().filter(|steps| steps.has(block)).count() > 1;
        let values = self.values.iter().copied();
        Self {
            values: values.filter(|(block, _)| is_shared(*block)).collect(),
        }
    }
}

/// A level against the control.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// Mean logarithm of the level over the control; below zero it loses.
    pub(crate) log: f64,
    /// Blocks that have both.
    pub(crate) blocks: usize,
    /// Standard error of `log`.
    error: f64,
    freedom: f64,
}

impl Step {
    /// Returns the interval that misses the truth with probability `alpha`.
    pub(crate) fn interval(&self, alpha: f64) -> (f64, f64) {
        let half = student(self.freedom, 1.0 - alpha / 2.0) * self.error;
        (self.log - half, self.log + half)
    }

    /// Returns the two-sided p-value of "no difference".
    fn p(&self) -> f64 {
        if self.error <= 0.0 {
            return if self.log == 0.0 { 1.0 } else { 0.0 };
        }
        let t = StudentsT::new(0.0, 1.0, self.freedom.max(1.0));
        t.map_or(1.0, |t| 2.0 * t.cdf(-(self.log / self.error).abs()))
    }

    fn suffices(&self, delta: f64, alpha: f64) -> bool {
        let half = student(self.freedom, 1.0 - alpha) * self.error;
        self.log - half > (1.0 - delta).ln()
    }

    /// Returns whether a gain of `delta` is excluded.
    fn excludes_gain(&self, delta: f64, alpha: f64) -> bool {
        let half = student(self.freedom, 1.0 - alpha) * self.error;
        self.log + half < (1.0 + delta).ln()
    }
}

/// Levels against a control.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plateau {
    /// The smallest level from which on all suffice, but for those passed over; absent where none is
    /// shown to.
    pub(crate) begin: Option<usize>,
    /// The levels in order.
    pub(crate) steps: Vec<Step>,
    /// Levels at the upper end that are shown to lose more than δ.
    pub(crate) fallen: usize,
    /// The least p-value of a level's difference, corrected for their number.
    pub(crate) p: f64,
    /// Blocks that would decide the level below the plateau, or where that begins with the first whether any gains,
    /// beyond those there are.
    pub(crate) more: Option<u32>,
    /// The loss that matters.
    pub(crate) delta: f64,
}

impl Plateau {
    /// Returns the error of each level when they may err with `alpha` together.
    fn each(&self, alpha: f64) -> f64 {
        alpha / self.steps.len() as f64
    }

    /// Returns a level's interval when all together may err with `alpha`.
    pub(crate) fn interval(&self, at: usize, alpha: f64) -> (f64, f64) {
        self.steps[at].interval(self.each(alpha))
    }

    /// Returns the interval of a level that decides whether it is the same, and the probability that it misses:
    /// twice that of each of the two statements, which ask for one end only.
    pub(crate) fn deciding_interval(&self, at: usize) -> ((f64, f64), f64) {
        let alpha = 2.0 * SUFFICES_ALPHA;
        (self.steps[at].interval(alpha), alpha)
    }

    /// Returns whether a level is shown to suffice, as all above it are but those passed over.
    pub(crate) fn suffices(&self, at: usize) -> bool {
        let end = self.steps.len() - self.fallen;
        self.begin.is_some_and(|begin| (begin..end).contains(&at))
    }

    /// Returns whether a level is shown to lose, all together erring with `alpha`.
    pub(crate) fn loses(&self, at: usize, alpha: f64) -> bool {
        self.interval(at, alpha).1 < 0.0
    }

    /// Returns whether a level is shown to be the same.
    pub(crate) fn is_same(&self, at: usize) -> bool {
        self.suffices(at) && self.steps[at].excludes_gain(self.delta, SUFFICES_ALPHA)
    }

    /// Returns whether all levels are the same with this share of the usual error.
    pub(crate) fn all_same(&self, share: f64) -> bool {
        let alpha = share * SUFFICES_ALPHA;
        let delta = self.delta;
        let is_same = |step: &Step| step.suffices(delta, alpha) && step.excludes_gain(delta, alpha);
        self.steps.iter().all(is_same)
    }

    /// Returns whether a level is shown to gain more than δ, all together erring with `alpha`.
    pub(crate) fn is_beyond(&self, at: usize, alpha: f64) -> bool {
        self.interval(at, alpha).0 > (1.0 + self.delta).ln()
    }

    /// Returns the level that is shown to gain more than δ, if one is; of several the smallest that
    /// gains as much as the best does for certain.
    pub(crate) fn gains(&self, alpha: f64) -> Option<usize> {
        let certain = |at: &usize| self.interval(*at, alpha).0;
        let beyond = |at: &usize| self.is_beyond(*at, alpha);
        let levels = (0..self.steps.len()).filter(beyond);
        let best = levels.max_by(|a, b| certain(a).total_cmp(&certain(b)))?;
        (0..=best).find(|at| beyond(at) && self.steps[*at].log >= certain(&best))
    }
}

/// Returns what `levels`, in ascending order, are against `control`, or against the last of them without
/// one; absent where no two trials of a block can be compared or nothing was repeated.
pub(crate) fn plateau(levels: &[Steps], control: Option<&Steps>, delta: f64) -> Option<Plateau> {
    let all: Vec<&Steps> = levels.iter().chain(control).collect();
    let rows: Vec<Steps> = all.iter().map(|steps| steps.shared(&all)).collect();
    let variances = variances(&rows)?;
    let control = rows.last()?;
    let of_control = variances.last()?;
    let step = |(level, variance): (&Steps, &Variance)| {
        let of_block = |block| control.values.iter().find(|(known, _)| *known == block);
        let pairs = level.values.iter();
        let logs: Vec<f64> = pairs
            .filter_map(|(block, log)| Some(log - of_block(*block)?.1))
            .collect();
        let blocks = logs.len();
        let difference = kin::difference(*variance, *of_control, blocks as f64);
        (blocks > 0).then(|| Step {
            log: logs.iter().sum::<f64>() / blocks as f64,
            blocks,
            error: difference.square.sqrt(),
            freedom: difference.freedom,
        })
    };
    let own = rows.iter().take(levels.len()).zip(&variances);
    let steps: Vec<Step> = own.map(step).collect::<Option<_>>()?;
    let each = SUFFICES_ALPHA / steps.len() as f64;
    let falls = |step: &&Step| step.interval(each).1 < (1.0 - delta).ln();
    let fallen = if steps
        .iter()
        .any(|step| step.suffices(delta, SUFFICES_ALPHA))
    {
        steps.iter().rev().take_while(falls).count()
    } else {
        0
    };
    let upper = steps[..steps.len() - fallen].iter().rev();
    let sufficient = upper
        .take_while(|step| step.suffices(delta, SUFFICES_ALPHA))
        .count();
    let begin = steps.len() - fallen - sufficient;
    let open = begin.checked_sub(1).map(|at| &steps[at]);
    let least = steps.iter().map(Step::p).fold(1.0, f64::min);
    Some(Plateau {
        begin: (sufficient > 0).then_some(begin),
        fallen,
        p: (least * steps.len() as f64).min(1.0),
        more: match open {
            Some(step) => (!falls(&step)).then(|| more(step, (1.0 - delta).ln(), delta)),
            // None loses what matters; whether one gains it may be open.
            None => {
                let gains = |step: &&Step| step.interval(each).0 > (1.0 + delta).ln();
                let may_gain = steps
                    .iter()
                    .filter(|step| !step.excludes_gain(delta, SUFFICES_ALPHA) && !gains(step));
                may_gain
                    .map(|step| more(step, (1.0 + delta).ln(), delta))
                    .max()
            }
        },
        delta,
        steps,
    })
}

/// Returns the further blocks after which it is decided on which side of `bound` a level lies whose estimate stays.
fn more(step: &Step, bound: f64, delta: f64) -> u32 {
    let distance = (step.log - bound).abs().max(delta / 4.0);
    let half = student(step.freedom, 1.0 - SUFFICES_ALPHA) * step.error;
    let needed = step.blocks as f64 * (half / distance).powi(2);
    ((needed - step.blocks as f64).ceil() as u32).max(1)
}

/// Returns the variance of a trial of each level, and of the control as the last; absent where blocks and
/// levels explain all.
///
/// What a level leaves over is from the mean of its block, which the noise of all levels is part of: of L
/// levels, q = Σ r² / (m − 1) is σ² (1 − 2/L) + σ̄² / L, with the mean σ̄² of all (Grubbs, "On estimating
/// precision of measuring instruments and product variability", 1948).
fn variances(rows: &[Steps]) -> Option<Vec<Variance>> {
    let mut cells: Vec<(usize, Block, f64)> = Vec::new();
    for (row, steps) in rows.iter().enumerate() {
        cells.extend(steps.values.iter().map(|(block, log)| (row, *block, *log)));
    }
    let mut blocks: Vec<Block> = cells.iter().map(|(_, block, _)| *block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let of_means = cells.len().checked_sub(rows.len())?;
    let freedom = (of_means + 1).checked_sub(blocks.len())?;
    if freedom == 0 {
        return None;
    }
    for _ in 0..ROUNDS {
        take_off(&mut cells, |(row, ..)| *row);
        take_off(&mut cells, |(_, block, _)| *block);
    }
    let squares: f64 = cells.iter().map(|(.., log)| log * log).sum();
    let mean = squares / freedom as f64;
    let count = rows.len() as f64;
    // What the blocks take of the degrees of freedom they take of each level's alike.
    let share = freedom as f64 / of_means as f64;
    let of_row = |at: usize| {
        let own: Vec<f64> = cells
            .iter()
            .filter(|(row, ..)| *row == at)
            .map(|(.., log)| log * log)
            .collect();
        let of_mean = own.len() as f64 - 1.0;
        let left_over = own.iter().sum::<f64>() / of_mean;
        Variance {
            square: ((left_over - mean / count) * count / (count - 2.0)).max(0.0),
            freedom: of_mean * share,
        }
    };
    // Two levels have but their difference, and a level of one trial has nothing of its own.
    let are_known = rows.len() > 2 && rows.iter().all(|row| row.values.len() > 1);
    let all = Variance {
        square: mean,
        freedom: freedom as f64,
    };
    Some(if are_known {
        let own: Vec<Variance> = (0..rows.len()).map(of_row).collect();
        let residuals: Vec<f64> = cells.iter().map(|(.., log)| *log).collect();
        let counts: Vec<usize> = rows.iter().map(|row| row.values.len()).collect();
        kin::pooled(&own, &residuals, &counts)
    } else {
        vec![all; rows.len()]
    })
}

/// Takes the mean of those with one key off each of them.
fn take_off<K: Ord>(cells: &mut [(usize, Block, f64)], key: impl Fn(&(usize, Block, f64)) -> K) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial in each block.
    fn in_turn(values: &[f64]) -> Vec<(Block, f64)> {
        let blocks = (0..).map(|block| (block, false));
        blocks.zip(values.iter().copied()).collect()
    }

    #[test]
    fn what_was_done_once_more_at_the_end_is_held_against_no_block() {
        // The host is slower by a fifth after the blocks, when a trial of the last is done once more.
        let control = Steps::of(&in_turn(&[1.0, 0.999, 1.001, 1.0]));
        let mut trials = in_turn(&[0.999, 1.001, 1.0, 0.8]);
        trials[3].0 = (3, true);
        let levels = [
            Steps::of(&trials),
            Steps::of(&in_turn(&[1.001, 1.0, 0.999, 1.0])),
        ];
        let found = plateau(&levels, Some(&control), 0.05).expect("three blocks");
        let blocks: Vec<usize> = found.steps.iter().map(|step| step.blocks).collect();
        assert_eq!((blocks, found.begin), (vec![3, 4], Some(0)), "{found:?}");
        assert!(levels[0].shares_block(&control));
        assert!(!Steps::of(&trials[3..]).shares_block(&control));
    }

    /// Levels with means relative to a control of 1, three blocks whose trials differ by `noise`
    /// about the mean in turn.
    fn found(means: &[f64], noise: f64) -> Plateau {
        let steps = |at: usize, mean: f64| Steps {
            values: (0..3)
                .map(|block: u32| {
                    let wobble = noise * f64::from((block as i32 + at as i32) % 3 - 1);
                    ((block, false), (mean * (1.0 + wobble)).ln())
                })
                .collect(),
        };
        let levels: Vec<Steps> = (0..)
            .zip(means)
            .map(|(at, mean)| steps(at, *mean))
            .collect();
        plateau(&levels, Some(&steps(1, 1.0)), 0.05).expect("three blocks")
    }

    #[test]
    fn plateau_begins_where_a_loss_is_excluded() {
        let check = |means: &[f64], noise, begin: Option<usize>, fallen| {
            let found = found(means, noise);
            assert_eq!(
                (found.begin, found.fallen),
                (begin, fallen),
                "{means:?}: {found:?}"
            );
        };
        check(&[0.2, 0.6, 0.99, 1.0, 1.0], 0.002, Some(2), 0);
        check(&[1.0, 1.0, 1.0], 0.002, Some(0), 0);
        // A loss of 4 % is none that matters; one of 6 % is.
        check(&[0.94, 0.96, 1.0], 0.002, Some(1), 0);
        // Nothing reaches the control.
        check(&[0.2, 0.4, 0.8], 0.002, None, 0);
        // Too large is worse again.
        check(&[0.2, 1.0, 1.0, 0.7], 0.002, Some(1), 1);
        // Noise makes no plateau, it takes it away.
        check(&[1.0, 1.0, 1.0], 0.2, None, 0);
    }

    #[test]
    fn a_level_with_a_noise_of_its_own_is_not_judged_by_that_of_others() {
        // All are the same but for chance, and the first varies by 10 % where others do by 0.2 %.
        let level = |deviations: [f64; 3]| Steps::of(&in_turn(&deviations.map(|it| 1.0 + it)));
        let loud = level([-0.15, -0.06, 0.06]);
        let quiet = |at: usize| {
            let mut deviations = [-0.002, 0.0, 0.002];
            deviations.rotate_left(at % 3);
            level(deviations)
        };
        let levels: Vec<Steps> = [loud].into_iter().chain((0..10).map(quiet)).collect();
        let found = plateau(&levels, Some(&quiet(1)), 0.05).expect("three blocks");
        assert!(!found.loses(0, 0.05), "{:?}", found.steps[0]);
        assert!(found.p > 0.05 && found.begin == Some(1), "{found:?}");
    }

    #[test]
    fn levels_without_any_noise_are_compared() {
        let level = |mean: f64| Steps::of(&in_turn(&[mean; 3]));
        let levels = [level(0.5), level(1.0), level(1.0)];
        let found = plateau(&levels, Some(&level(1.0)), 0.05).expect("three blocks");
        assert_eq!((found.begin, found.fallen), (Some(1), 0), "{found:?}");
        assert!(found.loses(0, 0.05) && !found.loses(1, 0.05));
        let same = [level(1.0), level(1.0)];
        let found = plateau(&same, None, 0.05).expect("three blocks");
        assert_eq!((found.begin, found.p), (Some(0), 1.0), "{found:?}");
    }

    #[test]
    fn a_level_has_the_mean_that_is_shown() {
        let slow = Steps::of(&in_turn(&[100.0, 100.0, 40.0]));
        let logs: Vec<f64> = slow.values.iter().map(|(_, log)| *log).collect();
        assert!((mean(&logs) - 80.0_f64.ln()).abs() < 1e-12, "{slow:?}");
    }

    #[test]
    fn what_is_open_says_how_much_more_it_needs() {
        let quiet = found(&[0.2, 1.0, 1.0], 0.002);
        assert_eq!(quiet.more, None);
        assert!(quiet.loses(0, 0.05) && !quiet.loses(1, 0.05));
        // That it loses something says nothing of whether it loses more than matters.
        let little = found(&[0.97, 1.0, 1.0], 0.0127);
        assert_eq!(little.begin, Some(1), "{little:?}");
        assert!(little.steps[0].interval(0.05).1 < 0.0, "{little:?}");
        assert!(little.more.is_some(), "{little:?}");
        let loud = found(&[1.0, 1.0, 1.0], 0.1);
        assert!(loud.more.is_some_and(|more| more > 3), "{loud:?}");
    }

    #[test]
    fn a_level_better_than_the_control_is_found() {
        let found = found(&[0.9, 1.2, 1.3, 1.3], 0.002);
        assert_eq!(found.gains(0.05), Some(2));
        let all_gain = self::found(&[1.2, 1.3, 1.3], 0.002);
        assert_eq!(
            (all_gain.begin, all_gain.more),
            (Some(0), None),
            "it is decided"
        );
        assert!(found.p < 1e-6);
    }
}
