//! The smallest level that is as good as the control.
//!
//! The control is the host as it is: no buffer set, so that the kernel tunes it. Where that was not
//! measured it is the largest level, which is said. In logarithms y of level l and block b is
//! μₗ + βᵦ + ε, where y is linear about its level's mean ([`Steps::of`]); s is the deviation of what level and
//! block leave over, with ν degrees of freedom, of all levels together unless they have noises of
//! their own ([`super::kin`]); dₗ is the mean of y(l, b) − y(control, b) over the m blocks that have both.
//!
//! 1. A larger buffer holds no less: where the measured levels do not show otherwise, μₗ is no less than the mean of the
//!    levels i … l, and no more than that of l … j. So level l is *at least* the largest of the lower bounds of the means
//!    dᵢ … dₗ, and *at most* the least of the upper bounds of dₗ … dⱼ, each of 5 % with one critical value for all of them:
//!    the quantile of the largest of their standardised errors, as drawn, times Student's over the normal one. (The idea is
//!    that of Williams, "A test for differences between treatment means when several dose levels are compared with a
//!    zero dose control", 1971.) A level that lies below those before it by more than chance (5 %) is not put together with them.
//! 2. Level l *suffices* where it is at least ln(1 − δ): its loss is below δ, shown and not merely not refuted
//!    (Schuirmann, "A comparison of the two one-sided tests procedure", 1987). Absence of evidence makes no plateau:
//!    more noise makes larger ones, or none.
//! 3. From the largest level down, the first that does not suffice ends the search. Each step is
//!    tested only after all before it held, so that all of them together err with 5 % (fixed-sequence
//!    test: Maurer, Hothorn and Lehmacher 1995). A largest level that is shown to lose more than δ is
//!    passed over and told.
//! 4. Level l is *the same* where it suffices, and is at most ln(1 + δ) as well: that nothing
//!    is lost does not show that nothing is gained.
//! 5. That a level *loses*, or gains, is a claim of its own, with the error that the report's family
//!    leaves it (Bonferroni over the levels).

use std::collections::BTreeSet;

use super::draw::Draw;
use super::interval::{further, mean, student};
use super::kin::{self, Variance};

/// Error of the statement that a level suffices.
const SUFFICES_ALPHA: f64 = 0.05;
/// Draws for the critical value of several bounds: it is then known to 3 %.
const DRAWS: usize = 2000;
/// The normal distribution's quantile for [`SUFFICES_ALPHA`].
const NORMAL_ONE_SIDED: f64 = 1.644_854;

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

    /// Returns the mean of its trials of a block.
    fn of_block(&self, block: Block) -> Option<f64> {
        let own = self.values.iter().filter(|(known, _)| *known == block);
        let logs: Vec<f64> = own.map(|(_, log)| *log).collect();
        (!logs.is_empty()).then(|| mean(&logs))
    }

    /// Returns how many blocks it has trials of.
    fn blocks(&self) -> usize {
        let blocks: BTreeSet<Block> = self.values.iter().map(|(block, _)| *block).collect();
        blocks.len()
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
    /// Of its variance, the part that is the level's own, and the control's.
    own: Variance,
    control: Variance,
    /// What it is at least and at most, each with an error of [`SUFFICES_ALPHA`].
    bounds: (f64, f64),
}

impl Step {
    /// Returns the interval that misses the truth with probability `alpha`.
    pub(crate) fn interval(&self, alpha: f64) -> (f64, f64) {
        let variance = self.variance();
        let half = student(variance.freedom, 1.0 - alpha / 2.0) * variance.square.sqrt();
        (self.log - half, self.log + half)
    }

    fn variance(&self) -> Variance {
        kin::sum(&[self.own, self.control])
    }

    /// Returns the two-sided p-value of "no difference".
    fn p(&self) -> f64 {
        self.variance().p_of(self.log)
    }

    /// Returns whether a loss of `delta` is excluded, with this share of the usual error.
    fn suffices(&self, delta: f64, share: f64) -> bool {
        self.bounds_of(share).0 > (1.0 - delta).ln()
    }

    /// Returns whether a gain of `delta` is excluded, likewise.
    fn excludes_gain(&self, delta: f64, share: f64) -> bool {
        self.bounds_of(share).1 < (1.0 + delta).ln()
    }

    /// Returns the bounds with this share of the usual error.
    fn bounds_of(&self, share: f64) -> (f64, f64) {
        let variance = self.variance();
        let quantile = |alpha| student(variance.freedom, 1.0 - alpha);
        let more = quantile(share * SUFFICES_ALPHA) - quantile(SUFFICES_ALPHA);
        let wider = more * variance.square.sqrt();
        (self.bounds.0 - wider, self.bounds.1 + wider)
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

    /// Returns the variance of the level that is known least, and the two-sided error of each where all have `alpha`.
    pub(crate) fn of_level(&self, alpha: f64) -> Option<(Variance, f64)> {
        let variances = self.steps.iter().map(Step::variance);
        let loudest = variances.max_by(|a, b| a.square.total_cmp(&b.square))?;
        Some((loudest, self.each(alpha)))
    }

    /// Returns what decides whether a level is the same, value and interval, and the probability that it misses:
    /// twice that of each of the two statements, which ask for one end only.
    pub(crate) fn deciding(&self, at: usize) -> (f64, (f64, f64), f64) {
        let Step {
            log,
            bounds: (low, high),
            ..
        } = self.steps[at];
        // Levels that were put together may leave one's own mean outside, and two of them cross.
        let (low, high) = (low.min(high), low.max(high));
        (log.clamp(low, high), (low, high), 2.0 * SUFFICES_ALPHA)
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
        self.suffices(at) && self.steps[at].excludes_gain(self.delta, 1.0)
    }

    /// Returns whether all levels are the same with this share of the usual error.
    pub(crate) fn all_same(&self, share: f64) -> bool {
        let delta = self.delta;
        let is_same = |step: &Step| step.suffices(delta, share) && step.excludes_gain(delta, share);
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
    let of_control = of_mean(*variances.last()?, control.values.len());
    let is_control = |at: usize| at + 1 == rows.len();
    let step = |(at, (level, variance)): (usize, (&Steps, &Variance))| {
        let blocks: BTreeSet<Block> = level.values.iter().map(|(block, _)| *block).collect();
        let pairs = blocks.into_iter();
        let logs: Vec<f64> = pairs
            .filter_map(|block| Some(level.of_block(block)? - control.of_block(block)?))
            .collect();
        let own = of_mean(*variance, level.values.len());
        // The control is not known better than its trials beside the level tell.
        let beside = logs.len() as f64 / control.blocks().max(1) as f64;
        // What is held against itself has no error.
        let share = if is_control(at) { 0.0 } else { 1.0 };
        (!logs.is_empty()).then(|| Step {
            log: mean(&logs),
            blocks: logs.len(),
            own: own.times(share),
            control: of_control.times(share / beside),
            bounds: (0.0, 0.0),
        })
    };
    let own = rows.iter().take(levels.len()).zip(&variances);
    let mut steps: Vec<Step> = own.enumerate().map(step).collect::<Option<_>>()?;
    let each = SUFFICES_ALPHA / steps.len() as f64;
    let falls = |step: &Step| step.interval(each).1 < (1.0 - delta).ln();
    let fallen = steps.iter().rev().take_while(|step| falls(step)).count();
    bound(&mut steps, fallen);
    let suffices = |step: &&Step| step.suffices(delta, 1.0);
    // Where none suffices nothing has fallen back: all of them lose.
    let fallen = if steps.iter().any(|step| suffices(&step)) {
        fallen
    } else {
        0
    };
    let upper = steps[..steps.len() - fallen].iter().rev();
    let sufficient = upper.take_while(suffices).count();
    let begin = steps.len() - fallen - sufficient;
    let open = begin.checked_sub(1).map(|at| &steps[at]);
    let least = steps.iter().map(Step::p).fold(1.0, f64::min);
    Some(Plateau {
        begin: (sufficient > 0).then_some(begin),
        fallen,
        p: (least * steps.len() as f64).min(1.0),
        more: match open {
            Some(step) => (!falls(step)).then(|| more(step, (1.0 - delta).ln(), delta)),
            // None loses what matters; whether one gains it may be open.
            None => {
                let gains = |step: &&Step| step.interval(each).0 > (1.0 + delta).ln();
                let may_gain = steps
                    .iter()
                    .filter(|step| !step.excludes_gain(delta, 1.0) && !gains(step));
                may_gain
                    .map(|step| more(step, (1.0 + delta).ln(), delta))
                    .max()
            }
        },
        delta,
        steps,
    })
}

/// Returns the variance of the mean of `n` trials.
fn of_mean(variance: Variance, n: usize) -> Variance {
    Variance {
        square: variance.square / n.max(1) as f64,
        ..variance
    }
}

/// Finds what each step is at least and at most, but for the last `fallen`, which have their own intervals.
fn bound(steps: &mut [Step], fallen: usize) {
    let rising = steps.len() - fallen;
    let known = steps.to_vec();
    let mut draw = Draw::new(steps.len() as u64);
    let draws: Vec<Vec<f64>> = (0..DRAWS)
        .map(|_| (0..=rising).map(|_| draw.normal()).collect())
        .collect();
    for (at, step) in steps.iter_mut().enumerate() {
        if at >= rising {
            step.bounds = step.interval(2.0 * SUFFICES_ALPHA);
            continue;
        }
        let below: Vec<usize> = (0..=at).rev().collect();
        let above: Vec<usize> = (at..rising).collect();
        step.bounds = (
            at_least(&known, &below, 1.0, &draws),
            -at_least(&known, &above, -1.0, &draws),
        );
    }
}

/// Returns what the first of `order` is at least, if those after it are no more than it: the largest of the lower bounds of
/// the means of the first, the first two, and so on; with a `sign` of −1 all is turned about.
fn at_least(steps: &[Step], order: &[usize], sign: f64, draws: &[Vec<f64>]) -> f64 {
    let chance = |variance: Variance| {
        student(variance.freedom, 1.0 - SUFFICES_ALPHA) * variance.square.sqrt()
    };
    let mean_of = |some: &[usize]| {
        let share = 1.0 / some.len() as f64;
        let log = some.iter().map(|at| sign * steps[*at].log).sum::<f64>() * share;
        let own = some.iter().map(|at| steps[*at].own.times(share * share));
        (log, own.collect::<Vec<Variance>>())
    };
    let first = &steps[order[0]];
    // As far as the first does not lie below those that should be no more than it.
    let is_below = |others: &[usize]| {
        let (log, mut parts) = mean_of(others);
        parts.push(first.own);
        sign * first.log - log < -chance(kin::sum(&parts))
    };
    let mut means: Vec<(f64, Variance)> = Vec::new();
    for count in 1..=order.len() {
        let (log, mut parts) = mean_of(&order[..count]);
        parts.push(steps[order[count - 1]].control);
        let variance = kin::sum(&parts);
        // One more that is so loud that it tells less than nothing costs a bound more to choose from.
        let is_louder = means
            .last()
            .is_some_and(|(_, before)| variance.square >= before.square);
        if count > 1 && (is_louder || is_below(&order[1..count])) {
            break;
        }
        means.push((log, variance));
    }
    let together = &order[..means.len()];
    let wider = critical(steps, together, &means, draws);
    let bounds = means
        .iter()
        .map(|(log, variance)| log - wider * chance(*variance));
    bounds.fold(f64::NEG_INFINITY, f64::max)
}

/// Returns the critical value of the largest error of `means` over the variance that each has, in units of that of one.
fn critical(steps: &[Step], order: &[usize], means: &[(f64, Variance)], draws: &[Vec<f64>]) -> f64 {
    let control = steps[order[0]].control.square.sqrt();
    let largest = |draw: &Vec<f64>| {
        let of_control = draw.last().copied().unwrap_or_default() * control;
        let mut sum = 0.0;
        let errors = order.iter().zip(means).zip(1..);
        let errors = errors.map(|((at, (_, variance)), count)| {
            sum += draw[*at] * steps[*at].own.square.sqrt();
            (sum / f64::from(count) - of_control) / variance.square.sqrt()
        });
        errors.fold(f64::NEG_INFINITY, f64::max)
    };
    let mut all: Vec<f64> = draws
        .iter()
        .map(largest)
        .filter(|it| it.is_finite())
        .collect();
    all.sort_by(f64::total_cmp);
    let rank = ((1.0 - SUFFICES_ALPHA) * all.len() as f64) as usize;
    all.get(rank)
        .map_or(1.0, |most| (most / NORMAL_ONE_SIDED).max(1.0))
}

/// Returns the further blocks after which it is decided on which side of `bound` a level lies whose estimate stays.
fn more(step: &Step, bound: f64, delta: f64) -> u32 {
    let distance = (step.log - bound).abs().max(delta / 4.0);
    let blocks = step.blocks as f64;
    let half = |more: u32| {
        let all = blocks + f64::from(more);
        // A block more has a degree of freedom more of each level.
        let variance = step.variance();
        let freedom = variance.freedom * all / blocks;
        student(freedom, 1.0 - SUFFICES_ALPHA) * (variance.square * blocks / all).sqrt()
    };
    further(|more| half(more) <= distance)
}

/// Returns the variance of a trial of each level, and of the control as the last; absent where blocks and
/// levels explain all.
fn variances(rows: &[Steps]) -> Option<Vec<Variance>> {
    let mut cells: Vec<(usize, Block, f64)> = Vec::new();
    for (row, steps) in rows.iter().enumerate() {
        cells.extend(steps.values.iter().map(|(block, log)| (row, *block, *log)));
    }
    let of_means = cells.len().checked_sub(rows.len())? as f64;
    let freedom = kin::leave_over(&mut cells);
    if freedom <= 0.0 {
        return None;
    }
    let squares: f64 = cells.iter().map(|(.., log)| log * log).sum();
    let mean = squares / freedom;
    // Two levels have but their difference, and a level of one trial has nothing of its own.
    let are_known = rows.len() > 2 && rows.iter().all(|row| row.values.len() > 1);
    let all = Variance {
        square: mean,
        freedom,
    };
    Some(if are_known {
        // What the blocks take of the degrees of freedom they take of each level's alike.
        let share = freedom / of_means;
        let own = own_variances(&cells, rows.len());
        let own: Vec<Variance> = own
            .map(|own| Variance {
                freedom: own.freedom * share,
                ..own
            })
            .collect();
        kin::pooled(&own)
    } else {
        vec![all; rows.len()]
    })
}

/// Returns the variance of a trial of each of `rows` levels by itself, with the degrees of freedom about its mean, of
/// what levels and blocks leave over.
///
/// What the m trials of a level in B blocks leave over is from the mean of their blocks, which the noise of all levels is
/// part of: of N trials a block of one noise, Σ r² is σ² (m − 1 − (m − m/B) / N).
fn own_variances(
    cells: &[(usize, Block, f64)],
    rows: usize,
) -> impl Iterator<Item = Variance> + '_ {
    let blocks = |row: Option<usize>| {
        let own = cells
            .iter()
            .filter(|(own, ..)| row.is_none_or(|it| it == *own));
        let blocks: BTreeSet<Block> = own.map(|(_, block, _)| *block).collect();
        blocks.len() as f64
    };
    let of_block = cells.len() as f64 / blocks(None);
    (0..rows).map(move |row| {
        let own = cells.iter().filter(|(own, ..)| *own == row);
        let squares: Vec<f64> = own.map(|(.., log)| log * log).collect();
        let trials = squares.len() as f64;
        let of_blocks = (trials - trials / blocks(Some(row))) / of_block;
        Variance {
            square: squares.iter().sum::<f64>() / (trials - 1.0 - of_blocks),
            freedom: trials - 1.0,
        }
    })
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
    fn several_trials_of_the_control_in_a_block_have_the_noise_that_is_true() {
        // Four levels once and the control three times in each of four blocks, all of one noise.
        const STUDIES: usize = 2000;
        let mut draw = Draw::new(7);
        let mut sums = [0.0; 5];
        for _ in 0..STUDIES {
            let mut row = |times: usize| {
                let blocks = (0..4).flat_map(|block| std::iter::repeat_n((block, false), times));
                let values = blocks.map(|block| (block, draw.normal())).collect();
                Steps { values }
            };
            let rows = [1, 1, 1, 1, 3].map(&mut row);
            let mut cells: Vec<(usize, Block, f64)> = Vec::new();
            for (at, row) in rows.iter().enumerate() {
                cells.extend(row.values.iter().map(|(block, log)| (at, *block, *log)));
            }
            kin::leave_over(&mut cells);
            for (sum, own) in sums.iter_mut().zip(own_variances(&cells, rows.len())) {
                *sum += own.square / STUDIES as f64;
            }
        }
        // The mean of 2000 variances of two degrees of freedom and more is known to 2.3 %.
        for mean in sums {
            assert!((mean - 1.0).abs() < 0.08, "{sums:?}");
        }
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
