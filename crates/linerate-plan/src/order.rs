//! The order of trials: shuffled blocks, from a seed, in rounds.
//!
//! Each replicate of an experiment is a block that holds every cell once, and a control as often as the experiment says,
//! in an order of its own. Of an experiment with whole plots the plots are shuffled, and the cells inside each.
//! A round is one block of every experiment. A slow drift of the hosts then falls on all cells alike
//! instead of on those measured last, a run that is cut short has measured all cells about equally
//! often, and after each round it is known which experiments need another.

use linerate_model::experiment::{
    Cell, DesignKind, Experiment, Factor, Level, LevelError, Timing, changes,
};
use linerate_model::pairs::Pair;
use linerate_model::plan::Trial;
use linerate_model::{HostName, TrialId};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::hosts::Hosts;

/// Latin hypercubes that are drawn for each block.
const HYPERCUBES: u32 = 100;

/// Returns the first `count` blocks of `experiment`; their trials have no place in the plan yet.
pub(crate) fn blocks(
    experiment: &Experiment,
    cells: &[Cell],
    seed: u64,
    hosts: &Hosts,
    count: u32,
) -> Result<Vec<Vec<Trial>>, LevelError> {
    // A stream of its own: what else is in the plan does not change an experiment's order.
    let mut random = Pcg64::seed_from_u64(seed ^ fingerprint(&experiment.name));
    (1..=count)
        .map(|replicate| {
            let combined = (experiment.design == DesignKind::LatinHypercube)
                .then(|| hypercube(&experiment.factor_groups(), cells, &mut random));
            let cells = combined.as_deref().unwrap_or(cells);
            let times = |cell| std::iter::repeat_n(cell, experiment.times(cell) as usize);
            let mut plots = plots(experiment, cells.iter().flat_map(times));
            shuffle(&mut plots, &mut random);
            for plot in &mut plots {
                shuffle(plot, &mut random);
            }
            let is_paired = !experiment.levels(Factor::Pair).is_empty();
            let stepped = (1..).zip(plots).flat_map(|(step, plot)| {
                let step = if is_paired { step } else { 0 };
                plot.into_iter().map(move |cell| (step, cell))
            });
            let trials = stepped.map(|(step, cell)| {
                let mut workload = experiment.workload_of(cell)?;
                // What is asked of the hosts instead of the sockets is no longer theirs to choose.
                if !cell.contains_key(&Factor::CongestionDefault) {
                    hosts.settle_congestion(&mut workload);
                }
                let mut beside = experiment.beside_of(cell)?;
                let others = beside.iter_mut().map(|group| &mut group.workload);
                others.for_each(|workload| hosts.settle_congestion(workload));
                Ok(Trial {
                    id: TrialId(0),
                    experiment: experiment.name.clone(),
                    cell: cell.clone(),
                    replicate,
                    seed: random.next_u64(),
                    workload,
                    beside,
                    timing: settled(experiment.timing, cell),
                    hosts: hosts_of(experiment, cell),
                    step,
                })
            });
            trials.collect()
        })
        .collect()
}

/// Returns the hosts of a trial of `cell` where pairs say which, the one that takes up the flows first: those of its pair, or
/// where one host meets all others all of them.
fn hosts_of(experiment: &Experiment, cell: &Cell) -> Vec<HostName> {
    let own = cell.get(&Factor::Pair).and_then(Level::pair);
    let pairs: Vec<Pair> = match (own, &experiment.pairs) {
        (Some(own), _) => vec![own],
        (None, Some(pairs)) => pairs.all().cloned().collect(),
        (None, None) => Vec::new(),
    };
    let server = pairs.first().map(|pair| pair.to.clone());
    server
        .into_iter()
        .chain(pairs.into_iter().map(|pair| pair.from))
        .collect()
}

/// Returns `cells` with the levels of each group of factors in an order of its own.
///
/// Of [`HYPERCUBES`] that are drawn it is the one whose orders have least in common, as the greatest correlation of two of them.
/// Whether an order is drawn forwards or backwards makes no difference to that, so that a factor without effect has a slope
/// of either sign with the same probability.
fn hypercube(groups: &[Vec<Factor>], cells: &[Cell], random: &mut Pcg64) -> Vec<Cell> {
    let mut best: Option<(f64, Vec<Vec<usize>>)> = None;
    for _ in 0..HYPERCUBES {
        let orders = (0..groups.len()).map(|_| {
            let mut order: Vec<usize> = (0..cells.len()).collect();
            shuffle(&mut order, random);
            order
        });
        let orders: Vec<Vec<usize>> = orders.collect();
        let pairs = (0..orders.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        let common = pairs.map(|(one, other)| correlation(&orders[one], &orders[other]).abs());
        let common = common.fold(0.0, f64::max);
        if best.as_ref().is_none_or(|(least, _)| common < *least) {
            best = Some((common, orders));
        }
    }
    let orders = best.map_or_else(Vec::new, |(_, orders)| orders);
    let cell = |at: usize| {
        let levels = groups.iter().zip(&orders).flat_map(|(factors, order)| {
            let from = &cells[order[at]];
            factors
                .iter()
                .filter_map(|factor| Some((*factor, from.get(factor)?.clone())))
        });
        levels.collect()
    };
    (0..cells.len()).map(cell).collect()
}

/// Returns the correlation of two orders of the same places (Spearman's).
fn correlation(one: &[usize], other: &[usize]) -> f64 {
    let count = one.len() as f64;
    let apart = one
        .iter()
        .zip(other)
        .map(|(one, other)| one.abs_diff(*other).pow(2) as f64);
    1.0 - 6.0 * apart.sum::<f64>() / (count * (count * count - 1.0))
}

/// Returns `cells` by the levels that whole plots have in common; all of them where there are no whole plots.
fn plots<'c>(experiment: &Experiment, cells: impl Iterator<Item = &'c Cell>) -> Vec<Vec<&'c Cell>> {
    let mut plots: Vec<(Cell, Vec<&Cell>)> = Vec::new();
    for cell in cells {
        let plot = experiment.plot_of(cell);
        match plots.iter_mut().find(|(known, _)| *known == plot) {
            Some((_, own)) => own.push(cell),
            None => plots.push((plot, vec![cell])),
        }
    }
    plots.into_iter().map(|(_, cells)| cells).collect()
}

/// Returns `timing` with a settle phase that is long enough for what `cell` changes of the hosts.
pub(crate) fn settled(timing: Timing, cell: &Cell) -> Timing {
    let changes = changes(cell);
    let knobs = changes.keys().filter_map(|factor| factor.knob());
    let settle = knobs.map(|knob| knob.settle).max().unwrap_or_default();
    Timing {
        settle: timing.settle.max(settle),
        ..timing
    }
}

/// Returns the trials of `experiments`, each with its blocks, round after round; their places begin
/// with `first`.
pub(crate) fn rounds(experiments: &[Vec<Vec<Trial>>], first: u32) -> Vec<Trial> {
    let rounds = experiments.iter().map(Vec::len).max().unwrap_or(0);
    let blocks =
        (0..rounds).flat_map(|round| experiments.iter().filter_map(move |of| of.get(round)));
    let placed = |(trial, id): (&Trial, u32)| Trial {
        id: TrialId(id),
        ..trial.clone()
    };
    blocks.flatten().zip(first..).map(placed).collect()
}

/// Shuffles by Fisher and Yates.
///
/// Written out, since the library's may draw differently in its next version and a seed in an old
/// report should still give the same plan.
pub(crate) fn shuffle<T>(items: &mut [T], random: &mut Pcg64) {
    for at in (1..items.len()).rev() {
        items.swap(at, below(at as u64 + 1, random) as usize);
    }
}

/// Returns a number below `limit`, each equally likely.
fn below(limit: u64, random: &mut Pcg64) -> u64 {
    // The multiples of `limit` that fit into 64 bits; what lies above would favour small numbers.
    let fair = u64::MAX - u64::MAX % limit;
    loop {
        let drawn = random.next_u64();
        if drawn < fair {
            return drawn % limit;
        }
    }
}

/// Returns a number that tells names apart: FNV-1a, 64 bit.
fn fingerprint(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
