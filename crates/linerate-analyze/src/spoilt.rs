//! Trials that should be done once more: their numbers may not be averaged, something else took the hosts'
//! time and moved their number, nothing arrived for a part of the window, or traffic had not reached its rate when the
//! window began.
//!
//! Time that others had alone is no reason: kernels count it in ticks, of which one is 1 % of a short window, and a trial
//! whose number is that of its cell has lost nothing by it. A number alone is none either: what is repeated for being low
//! makes the others' mean too high. So it takes both: a cause that is unusual, and a number that is further from the
//! others of its cell than [`MOVED_DEVIATIONS`] robust deviations of the experiment (Hampel, "The influence curve and its
//! role in robust estimation", 1974).

use std::collections::BTreeMap;

use linerate_model::TrialId;
use linerate_model::experiment::Experiment;
use linerate_model::flag::TrialFlag;
use linerate_model::plan::Spoilt;
use linerate_model::reason::{Disturbance, RepeatReason};
use linerate_model::run::TrialRecord;

use crate::compare::interval::median;
use crate::groups::Reduced;
use crate::reduce::{DISTURBED_SHARE_MAX, OTHERS_CPUS_MAX, Outcome, name};

/// The second half of a window over its first, above which its begin was too early: ten times what
/// halves of a steady window differ by.
const RISING: f64 = 1.1;
/// Robust deviations, of 1.4826 times the median of what trials are from the others of their cell, beyond which a number
/// was moved.
pub(crate) const MOVED_DEVIATIONS: f64 = 3.0;
pub(crate) const DEVIATION_OF_MEDIAN: f64 = 1.4826;
/// Trials of a cell that say what its traffic misses: whoever comes and goes is in one or two.
const CELL_TRIALS_MIN: usize = 3;

/// Returns the trials of `recording` that ended well and should be done once more all the same.
pub fn spoilt(reduced: &Reduced<'_>) -> Vec<Spoilt> {
    let recording = reduced.recorded();
    let plan = &recording.document.plan;
    let is_stream = |outcome: &Outcome| {
        let own = plan.trial(outcome.trial);
        own.is_some_and(|trial| trial.workload.traffic.is_stream())
    };
    let ended_well = |trial| recording.record(trial).is_some_and(TrialRecord::is_valid);
    let all = reduced.outcomes();
    let experiments = plan.experiments.iter();
    let departures = experiments.map(|own| (own.name.as_str(), departures(&all, own)));
    let departures: BTreeMap<&str, BTreeMap<TrialId, f64>> = departures.collect();
    let is_moved = |outcome: &Outcome| {
        let of_all = departures.get(outcome.experiment.as_str());
        of_all.is_some_and(|of_all| is_moved(of_all, outcome.trial))
    };
    let disturbance = |outcome: &Outcome| {
        let halves = outcome.value(name::HALVES).filter(|_| is_stream(outcome));
        let rising = halves.filter(|ratio| *ratio > RISING);
        let taken = || taken(&all, outcome).filter(|_| is_moved(outcome));
        let silent = || silent(outcome).map(Disturbance::Silent);
        let rising = rising.map(Disturbance::Rising);
        rising.or_else(silent).or_else(taken)
    };
    let found = all.iter().filter_map(|outcome| {
        let why = match outcome.validity.reason() {
            None => RepeatReason::Disturbed(disturbance(outcome)?),
            Some(why) if ended_well(outcome.trial) => RepeatReason::Invalid(why.clone()),
            Some(_) => return None,
        };
        let trial = outcome.trial;
        Some(Spoilt { trial, why })
    });
    // Each group of a trial may be spoilt, and all are repeated together.
    let mut spoilt: Vec<Spoilt> = Vec::new();
    for one in found {
        if spoilt.iter().all(|known| known.trial != one.trial) {
            spoilt.push(one);
        }
    }
    spoilt
}

/// Returns the share of the window in which nothing arrived, where that is much.
fn silent(outcome: &Outcome) -> Option<f64> {
    outcome.flags.iter().find_map(|flag| match flag {
        TrialFlag::Silent { share, .. } => Some(*share),
        _ => None,
    })
}

/// Returns who had more of the hosts' time than is usual, where that is more than a little.
fn taken(all: &[Outcome], outcome: &Outcome) -> Option<Disturbance> {
    let beyond = |response, most: f64| {
        unusually_much(all, outcome, response).filter(|excess| *excess > most)
    };
    let others = || beyond(name::CPU_OTHERS_ALL, OTHERS_CPUS_MAX).map(Disturbance::Others);
    let stolen = || beyond(name::CPU_STEAL_SHARE, DISTURBED_SHARE_MAX).map(Disturbance::Stolen);
    let missing = || unusually_missing(all, outcome).map(Disturbance::Unaccounted);
    others().or_else(stolen).or_else(missing)
}

/// Returns how far the number of each trial of an experiment is from the median of the others of its cell, as a share
/// of it; of a cell of two nobody knows which is far.
fn departures(all: &[Outcome], experiment: &Experiment) -> BTreeMap<TrialId, f64> {
    let valid = all
        .iter()
        .filter(|it| it.is_valid() && it.experiment == experiment.name);
    let valid: Vec<(&Outcome, f64)> = valid
        .filter_map(|it| Some((it, it.value(&experiment.response)?)))
        .collect();
    let departure = |(own, value): &(&Outcome, f64)| {
        let others = valid
            .iter()
            .filter(|(it, _)| it.cell == own.cell && it.trial != own.trial);
        let mut others: Vec<f64> = others.map(|(_, value)| *value).collect();
        let known = others.len() + 1 >= CELL_TRIALS_MIN;
        let centre = median(&mut others).filter(|centre| known && *centre > 0.0)?;
        Some((own.trial, value / centre - 1.0))
    };
    valid.iter().filter_map(departure).collect()
}

fn is_moved(departures: &BTreeMap<TrialId, f64>, trial: TrialId) -> bool {
    let mut sizes: Vec<f64> = departures.values().map(|share| share.abs()).collect();
    let deviation = median(&mut sizes).map(|middle| DEVIATION_OF_MEDIAN * middle);
    let own = departures.get(&trial).map(|share| share.abs());
    own.zip(deviation)
        .is_some_and(|(own, deviation)| own > MOVED_DEVIATIONS * deviation)
}

/// Returns how much more of the CPUs' time is in no mode in a trial than is usual, as a share, where that is
/// more than a little. Of one trial nobody knows what is usual.
///
/// Kernels that sample busy time at the tick and count idle time exactly lose whatever runs between two
/// idle spells without meeting a tick: exchanges miss a tenth of the time in every trial on a machine
/// that nobody else uses (HZ = 250, while their threads' own clocks have it), and how much depends on the
/// traffic. Who takes time from some trials leaves a quarter of them as they are: of the experiment, or of the
/// cell where all of its trials miss more.
pub(crate) fn unusually_missing(all: &[Outcome], outcome: &Outcome) -> Option<f64> {
    unusually_much(all, outcome, name::CPU_MISSING).filter(|excess| *excess > DISTURBED_SHARE_MAX)
}

/// Returns how much more a trial has of what is taken from it than is usual.
fn unusually_much(all: &[Outcome], outcome: &Outcome, response: &str) -> Option<f64> {
    let share = outcome.value(response)?;
    let same = all.iter().filter(|it| it.experiment == outcome.experiment);
    let of_experiment = usual(same.clone(), response, 2)?;
    let of_cell = usual(
        same.filter(|it| it.cell == outcome.cell),
        response,
        CELL_TRIALS_MIN,
    );
    Some(share - of_cell.unwrap_or(0.0).max(of_experiment))
}

/// The lower quartile of what is taken, of so many trials at the least.
fn usual<'o>(
    trials: impl Iterator<Item = &'o Outcome>,
    response: &str,
    least: usize,
) -> Option<f64> {
    let shares = trials.filter_map(|trial| trial.value(response));
    let mut shares: Vec<f64> = shares.collect();
    shares.sort_by(f64::total_cmp);
    let quartile = shares
        .get(shares.len() / 4)
        .filter(|_| shares.len() >= least)?;
    Some(quartile.max(0.0))
}

#[cfg(test)]
mod tests {
    use linerate_model::experiment::{Cell, Factor, Level};
    use linerate_model::outcome::Response;
    use linerate_model::run::Validity;
    use linerate_model::unit::Unit;

    use super::*;

    /// Trials of cells with these shares in no mode.
    fn outcomes(cells: &[&[f64]]) -> Vec<Outcome> {
        let of_cell = |(at, shares): (usize, &&[f64])| -> Vec<(u64, f64)> {
            shares.iter().map(|share| (at as u64, *share)).collect()
        };
        let all = cells.iter().enumerate().flat_map(of_cell);
        let outcome = |(at, (cell, value)): (usize, (u64, f64))| Outcome {
            trial: TrialId(at as u32),
            experiment: "one".to_owned(),
            cell: Cell::from([(Factor::PayloadBytes, Level::Count(cell))]),
            replicate: 1,
            place: at as u32,
            is_repeat: false,
            validity: Validity::Valid,
            flags: Vec::new(),
            responses: BTreeMap::from([(
                name::CPU_MISSING.to_owned(),
                Response {
                    value,
                    unit: Unit::Ratio,
                },
            )]),
        };
        all.enumerate().map(outcome).collect()
    }

    /// The trials that miss unusually much, counted from 0.
    fn unusual(cells: &[&[f64]]) -> Vec<usize> {
        let all = outcomes(cells);
        let is_unusual = |at: &usize| unusually_missing(&all, &all[*at]).is_some();
        (0..all.len()).filter(is_unusual).collect()
    }

    #[test]
    fn what_every_trial_misses_is_the_kernels_way_to_count() {
        assert_eq!(unusual(&[&[0.09, 0.10, 0.08, 0.11, 0.09]]), [0; 0]);
        assert_eq!(unusual(&[&[0.09, 0.10, 0.30, 0.11, 0.09]]), [2]);
        // Somebody took time from half of the trials.
        assert_eq!(unusual(&[&[0.0, 0.15, 0.01, 0.2, 0.0, 0.18]]), [1, 3, 5]);
        assert_eq!(unusual(&[&[0.2]]), [0; 0], "nothing to compare with");
        assert_eq!(unusual(&[&[-0.02, 0.02, -0.01, 0.0]]), [0; 0]);
        // One cell's traffic misses more, and one of its trials more than that.
        let idle = [0.01; 6];
        assert_eq!(unusual(&[&idle, &[0.12, 0.13, 0.11]]), [0; 0]);
        assert_eq!(unusual(&[&idle, &[0.12, 0.30, 0.11]]), [7]);
    }

    #[test]
    fn a_number_is_moved_where_it_is_far_from_those_of_its_cell() {
        let moved = |shares: &[f64]| {
            let of_trial = |(at, share): (usize, &f64)| (TrialId(at as u32), *share);
            let all: BTreeMap<TrialId, f64> = shares.iter().enumerate().map(of_trial).collect();
            let is_moved = |at: &usize| is_moved(&all, TrialId(*at as u32));
            (0..shares.len()).filter(is_moved).collect::<Vec<_>>()
        };
        assert_eq!(moved(&[0.01, -0.02, 0.01, 0.0, -0.3, 0.02]), [4]);
        // Half of them are as far: that is their noise.
        assert_eq!(moved(&[0.1, -0.2, 0.2, -0.1, 0.3, 0.02]), [0; 0]);
        assert_eq!(moved(&[]), [0; 0]);
    }

    #[test]
    fn only_what_is_beyond_the_usual_was_taken() {
        let all = outcomes(&[&[0.10, 0.10, 0.30, 0.10, 0.10]]);
        let excess = unusually_missing(&all, &all[2]).expect("it misses more");
        assert!((excess - 0.2).abs() < 1e-9, "{excess}");
    }
}
