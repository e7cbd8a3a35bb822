//! Levels, replicates and lengths that a budget of time allows.
//!
//! What grows with time is put into one fixed order, from the least that answers the questions to
//! everything, and the plan takes as many steps of it as fit:
//!
//! 1. the least: core and end levels, the fewest replicates, the shortest window;
//! 2. three replicates, the fewest that give an interval worth drawing; four of an experiment with a control; as many as
//!    its comparisons need to decide anything;
//! 3. the other levels of scales, widest gap first;
//! 4. the other levels of what has no order (a direction), since each of them adds as many trials
//!    as all scales together;
//! 5. more replicates;
//! 6. what time remains makes the windows longer.
//!
//! Where further blocks are allowed, a tenth of the budget is kept for what shows while trials run:
//! those that have to be repeated, and verdicts that are still open.
//!
//! Since the order does not depend on the budget, more time never measures less: when a step more
//! fits, the plan with that step at its shortest already takes all the time of the plan before.

use linerate_model::Nanos;
use linerate_model::experiment::{DesignKind, Experiment, Factor, Level, Timing};
use linerate_model::finding::PAIRS_MIN;

use crate::draft::Draft;
use crate::group::{FactorGroup, cell_count, control_count, groups};
use crate::planner::PlanRequest;

/// Replicates below which an interval of a mean says next to nothing: with two, Student's t for
/// 95 % is 12.7, with three 4.3.
const REPLICATES_WANTED: u32 = 3;
/// The same of an experiment with a control: that nothing differs from it asks for more than an interval (`docs/accuracy.md`).
const REPLICATES_OF_CURVE: u32 = 4;
/// One part in so many of a budget is not planned: a study of 231 trials had to repeat five, and the
/// rest is for blocks of the experiments that need them. Planned blocks of what is decided before give their time to those, too.
const KEPT_PART: u128 = 10;
/// Windows are lengthened by whole multiples of this, so that plans read well.
const MEASURE_STEP: Nanos = Nanos::from_ms(10);

/// How much of an experiment is measured.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extent {
    /// For each group, whether each of its levels is in.
    pub(crate) levels: Vec<Vec<bool>>,
    pub(crate) replicates: u32,
    pub(crate) measure: Nanos,
}

/// One step from the least to everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    Replicate,
    Level { group: usize, level: usize },
}

/// Returns the extent of each experiment as its file has it, with every level.
pub(crate) fn whole(experiment: &Experiment) -> Extent {
    Extent {
        levels: groups(experiment)
            .iter()
            .map(|group| vec![true; group.levels.len()])
            .collect(),
        replicates: experiment.replicates,
        measure: experiment.timing.measure,
    }
}

/// Returns what the experiments take together.
pub(crate) fn cost<'a>(
    extents: impl Iterator<Item = (&'a Experiment, &'a Extent)>,
    request: &PlanRequest,
) -> u128 {
    let trials: u128 = extents
        .map(|(experiment, extent)| {
            let timing = Timing {
                measure: extent.measure,
                ..experiment.timing
            };
            let one = u128::from(timing.total().0)
                + u128::from(request.overhead_per_trial.0)
                + of_flows(experiment, extent, request.overhead_per_flow);
            let trials = trial_count(experiment, extent).saturating_mul(one);
            match &experiment.pairs {
                // Those of a round take the time of one.
                Some(pairs) => {
                    trials * pairs.rounds.len() as u128 / pairs.all().count().max(1) as u128
                }
                None => trials,
            }
        })
        .fold(0, u128::saturating_add);
    trials.saturating_add(u128::from(request.overhead_once.0))
}

/// Returns what the flows of a trial beyond the first add to it: the mean of the levels of their number, each of which has as many trials.
fn of_flows(experiment: &Experiment, extent: &Extent, each: Nanos) -> u128 {
    let mut groups = groups(experiment).into_iter().zip(&extent.levels);
    let counts = groups.find_map(|(group, is_in)| {
        let at = group
            .factors
            .iter()
            .position(|it| *it == Factor::Connections)?;
        let levels = group.levels.iter().zip(is_in).filter(|(_, is_in)| **is_in);
        let counts = levels.filter_map(|(level, _)| level[at].whole());
        Some(counts.map(u128::from).collect::<Vec<u128>>())
    });
    let fixed = || vec![experiment.workload.connections.into()];
    let counts = counts
        .filter(|counts| !counts.is_empty())
        .unwrap_or_else(fixed);
    let all: u128 = counts.iter().map(|count| count.saturating_sub(1)).sum();
    all * u128::from(each.0) / counts.len() as u128
}

/// Returns how many trials an experiment has; of a search those of its ends, of the levels between them, and those that
/// confirm the answer; of a refinement those of the levels that it adds.
pub(crate) fn trial_count(experiment: &Experiment, extent: &Extent) -> u128 {
    let count = |group: &Vec<bool>| group.iter().filter(|&&is_in| is_in).count();
    let cells = cell_count(experiment.design, extent.levels.iter().map(count));
    let more = experiment.control.as_ref().map_or(0, |control| {
        let cells = control_count(experiment, control, &extent.levels);
        cells.saturating_mul(control.times.saturating_sub(1).into())
    });
    let searched = experiment.searched();
    // What the condition is relative to is measured once with both ends, and with each further level.
    let (between, beside) = searched.map_or((0, 0), |(search, _, [low, high])| {
        let levels = 1 + u128::from(search.steps(low, high));
        match search.control {
            Some(_) => (2 * levels, 1),
            None => (levels, 0),
        }
    });
    let refined = experiment.refinement.as_ref();
    let added = refined.map_or(0, |it| u128::from(it.levels).saturating_sub(cells));
    let block = cells
        .saturating_add(more)
        .saturating_add(between + beside)
        .saturating_add(added);
    block.saturating_mul(extent.replicates.into())
}

/// Returns the part of `budget` that trials are planned for.
pub(crate) fn planned(budget: Nanos, request: &PlanRequest) -> u128 {
    let budget = u128::from(budget.0);
    match request.further_blocks {
        0 => budget,
        _ => budget - budget / KEPT_PART,
    }
}

/// Returns the richest extents that fit into `budget`, or the time that the least takes.
pub(crate) fn fit(
    drafts: &[Draft],
    budget: Nanos,
    request: &PlanRequest,
) -> Result<Vec<Extent>, u128> {
    let planned = planned(budget, request);
    let budget = u128::from(budget.0);
    let mut extents: Vec<Extent> = drafts.iter().map(least).collect();
    let cost_of = |extents: &[Extent]| {
        let experiments = drafts.iter().map(|draft| &draft.experiment);
        cost(experiments.zip(extents), request)
    };
    let needed = cost_of(&extents);
    if needed > budget {
        return Err(needed);
    }
    for (at, growth) in steps(drafts, &extents) {
        let before = extents[at].clone();
        grow(&mut extents[at], growth);
        if cost_of(&extents) > planned {
            extents[at] = before;
            break;
        }
    }
    lengthen(drafts, &mut extents, |extents| cost_of(extents) <= planned);
    Ok(extents)
}

/// Returns the least of `draft` that answers its question.
pub(crate) fn least(draft: &Draft) -> Extent {
    let groups = groups(&draft.experiment);
    let levels = groups.iter().map(|group| least_levels(group, draft));
    Extent {
        levels: levels.collect(),
        replicates: draft.budget.replicates.0,
        measure: draft.budget.measure.0,
    }
}

/// Returns which levels of `group` are never left out: its core, the control and the baseline; of a scale the
/// ends too; of a group without order and without core, all.
fn least_levels(group: &FactorGroup, draft: &Draft) -> Vec<bool> {
    let last = group.levels.len().saturating_sub(1);
    let baseline = group.position(&draft.experiment.baseline);
    let control = draft.experiment.control.as_ref();
    let is_core = |(factor, level): (Factor, Level)| {
        let core = draft.budget.core.get(&factor);
        core.is_some_and(|core| core.contains(&level))
    };
    let is_control = |(factor, level): (Factor, Level)| {
        control.is_some_and(|control| control.levels.get(&factor) == Some(&level))
    };
    let core: Vec<bool> = (0..group.levels.len())
        .map(|at| group.part(at).any(is_core))
        .collect();
    let scale = group.is_scale();
    let all = draft.experiment.is_of_some_cells() || !scale && !core.contains(&true);
    (0..group.levels.len())
        .map(|at| {
            let end = scale && (at == 0 || at == last);
            all || end || core[at] || baseline == Some(at) || group.part(at).any(is_control)
        })
        .collect()
}

/// Returns every step from `least` to everything, in the order in which they are taken.
fn steps(drafts: &[Draft], least: &[Extent]) -> Vec<(usize, Growth)> {
    // (phase, place inside the phase, experiment, step); the sort is stable.
    let mut steps: Vec<(u8, f64, usize, Growth)> = Vec::new();
    for (at, (draft, extent)) in drafts.iter().zip(least).enumerate() {
        let (fewest, most) = draft.budget.replicates;
        let wanted = wanted(&draft.experiment);
        let groups = groups(&draft.experiment);
        let deciding = deciding(&draft.experiment, &groups, extent);
        let wanted = wanted.max(deciding).clamp(fewest, most);
        let phases = [
            vec![Growth::Replicate; (wanted - fewest) as usize],
            level_steps(&groups, extent, FactorGroup::is_scale),
            level_steps(&groups, extent, |group| !group.is_scale()),
            vec![Growth::Replicate; (most - wanted) as usize],
        ];
        for (phase, list) in (0u8..).zip(phases) {
            // Experiments grow side by side; a heavy one is ahead of a light one.
            let whole = list.len() as f64 * f64::from(draft.budget.weight);
            let place = |index: usize| (index + 1) as f64 / whole;
            let entries = list.iter().enumerate();
            steps.extend(entries.map(|(index, &growth)| (phase, place(index), at, growth)));
        }
    }
    steps.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    steps
        .into_iter()
        .map(|(_, _, at, growth)| (at, growth))
        .collect()
}

/// Returns the fewest replicates that are worth having.
pub(crate) fn wanted(experiment: &Experiment) -> u32 {
    match experiment.control {
        None => REPLICATES_WANTED,
        Some(_) => REPLICATES_OF_CURVE,
    }
}

/// Returns the blocks below which a comparison of `experiment` has too few pairs to decide anything: two trials of a block
/// are a pair where they differ in one factor only.
fn deciding(experiment: &Experiment, groups: &[FactorGroup], extent: &Extent) -> u32 {
    let count = |at: usize| extent.levels[at].iter().filter(|&&is_in| is_in).count();
    let is_compared = |group: &FactorGroup| {
        let is_named = |at: usize| {
            let factor = group.factors[at];
            let mut levels = group.levels.iter().map(|level| &level[at]);
            let is_curve = experiment.asks_what_suffices(factor);
            !is_curve && levels.all(|level| factor.compares_by_name(level))
        };
        experiment.is_of_some_cells() || (0..group.factors.len()).any(is_named)
    };
    let is_plot = |at: usize| {
        let mut factors = groups[at].factors.iter();
        factors.any(|factor| experiment.whole_plots.contains(factor))
    };
    let pairs = |own: usize| match experiment.design {
        // Of some of all cells a block has one contrast, or slope, of each factor.
        DesignKind::OneAtATime | DesignKind::Fractional { .. } | DesignKind::LatinHypercube => 1,
        DesignKind::Full => {
            let others = (0..groups.len()).filter(|other| *other != own);
            // The trials of a whole plot are one.
            let others = others.filter(|other| !is_plot(own) || is_plot(*other));
            others.map(count).product::<usize>()
        }
    };
    let compared = (0..groups.len()).filter(|&at| is_compared(&groups[at]) && count(at) > 1);
    let fewest = compared.map(pairs).min();
    let fewest = fewest.filter(|_| !experiment.is_adaptive());
    fewest.map_or(0, |pairs| PAIRS_MIN.div_ceil(pairs.max(1) as u32))
}

/// Returns the levels of the groups of one `kind` that `least` lacks, in the order in which they
/// come in: always the group that is least complete grows next.
fn level_steps(
    groups: &[FactorGroup],
    least: &Extent,
    kind: fn(&FactorGroup) -> bool,
) -> Vec<Growth> {
    let mut levels = least.levels.clone();
    let mut steps = Vec::new();
    loop {
        let share = |at: usize| {
            let inside = levels[at].iter().filter(|&&is_in| is_in).count();
            inside as f64 / levels[at].len() as f64
        };
        let next = (0..groups.len())
            .filter(|&at| kind(&groups[at]) && levels[at].contains(&false))
            .min_by(|&a, &b| share(a).total_cmp(&share(b)));
        let Some(group) = next else { return steps };
        let level = widest_gap(&levels[group]);
        levels[group][level] = true;
        steps.push(Growth::Level { group, level });
    }
}

/// Returns the level that is farthest from any that is in; the first of several.
fn widest_gap(levels: &[bool]) -> usize {
    let distance = |at: usize| {
        let inside = (0..levels.len()).filter(|&other| levels[other]);
        inside
            .map(|other| other.abs_diff(at))
            .min()
            .unwrap_or(usize::MAX)
    };
    let outside = (0..levels.len()).filter(|&at| !levels[at]);
    // `max_by_key` returns the last maximum; going backwards makes it the first.
    outside.rev().max_by_key(|&at| distance(at)).unwrap_or(0)
}

fn grow(extent: &mut Extent, growth: Growth) {
    match growth {
        Growth::Replicate => extent.replicates += 1,
        Growth::Level { group, level } => extent.levels[group][level] = true,
    }
}

/// Lengthens all windows in proportion to their weights, as far as `fits` allows.
fn lengthen(drafts: &[Draft], extents: &mut [Extent], fits: impl Fn(&[Extent]) -> bool) {
    let hints = || drafts.iter().map(|draft| &draft.budget);
    let widths = hints().map(|hints| hints.measure.1.0 - hints.measure.0.0);
    let widest = widths.max().unwrap_or(0);
    let set = |extents: &mut [Extent], steps: u64| {
        for (hints, extent) in hints().zip(extents) {
            let more = MEASURE_STEP.0 * steps * u64::from(hints.weight);
            let (shortest, longest) = hints.measure;
            extent.measure = Nanos(shortest.0.saturating_add(more).min(longest.0));
        }
    };
    // Bisection for the largest number of steps that fits: `low` always does.
    let (mut low, mut high) = (0, widest / MEASURE_STEP.0 + 1);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        set(extents, middle);
        if fits(extents) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    set(extents, low);
}
