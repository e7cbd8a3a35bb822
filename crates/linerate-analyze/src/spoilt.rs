//! Trials that should be done once more: their numbers may not be averaged, something else took the hosts'
//! time, or traffic had not reached its rate when the window began.

use linerate_model::TrialId;
use linerate_model::plan::Spoilt;
use linerate_model::reason::{Disturbance, RepeatReason};
use linerate_model::run::{Recording, Validity};

use crate::reduce::{DISTURBED_SHARE_MAX, Outcome, name, outcomes};

/// The second half of a window over its first, above which its begin was too early: ten times what
/// halves of a steady window differ by.
const RISING: f64 = 1.1;

/// Returns the trials of `recording` that ended well and should be done once more all the same.
pub fn spoilt(recording: &Recording) -> Vec<Spoilt> {
    let plan = &recording.document.plan;
    let is_stream = |outcome: &Outcome| {
        let mut trials = plan.trials.iter();
        let own = trials.find(|trial| trial.id == outcome.trial);
        own.is_some_and(|trial| trial.workload.traffic.is_stream())
    };
    let ended_well = |trial: TrialId| {
        let mut records = recording.trials.iter();
        records.any(|record| record.trial == trial && record.validity == Validity::Valid)
    };
    let all = outcomes(recording);
    let disturbance = |outcome: &Outcome| {
        let halves = outcome.value(name::HALVES).filter(|_| is_stream(outcome));
        let rising = halves.filter(|ratio| *ratio > RISING);
        let missing = || unusually_missing(&all, outcome).map(Disturbance::Unaccounted);
        rising.map(Disturbance::Rising).or_else(missing)
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
    found.collect()
}

/// Returns the CPU time of a trial that is in no mode, as a share, where that is more than what other
/// trials of its experiment miss.
///
/// Kernels that sample busy time at the tick and count idle time exactly lose whatever runs between two
/// idle spells without meeting a tick: exchanges miss a tenth of the time in every trial on a machine
/// that nobody else uses (HZ = 250, while their threads' own clocks have it). Who takes time from some
/// trials leaves a quarter of them as they are.
pub(crate) fn unusually_missing(all: &[Outcome], outcome: &Outcome) -> Option<f64> {
    let share = outcome.value(name::CPU_MISSING)?;
    let same = all
        .iter()
        .filter(|other| other.experiment == outcome.experiment);
    let mut shares: Vec<f64> = same
        .filter_map(|other| other.value(name::CPU_MISSING))
        .collect();
    shares.sort_by(f64::total_cmp);
    let usual = shares
        .get(shares.len() / 4)
        .copied()
        .unwrap_or(0.0)
        .max(0.0);
    // One trial alone has nothing to be compared with.
    let usual = if shares.len() > 1 { usual } else { 0.0 };
    (share - usual > DISTURBED_SHARE_MAX).then_some(share)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use linerate_model::TrialId;
    use linerate_model::experiment::Cell;
    use linerate_model::outcome::Response;
    use linerate_model::run::Validity;
    use linerate_model::unit::Unit;

    use super::*;

    /// The trials of `shares` that miss unusually much, counted from 0.
    fn unusual(shares: &[f64]) -> Vec<usize> {
        let outcome = |(at, &value): (usize, &f64)| Outcome {
            trial: TrialId(at as u32),
            experiment: "one".to_owned(),
            cell: Cell::new(),
            replicate: 1,
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
        let all: Vec<Outcome> = shares.iter().enumerate().map(outcome).collect();
        let is_unusual = |at: &usize| unusually_missing(&all, &all[*at]).is_some();
        (0..all.len()).filter(is_unusual).collect()
    }

    #[test]
    fn what_every_trial_misses_is_the_kernels_way_to_count() {
        assert_eq!(unusual(&[0.09, 0.10, 0.08, 0.11, 0.09]), [0; 0]);
        assert_eq!(unusual(&[0.09, 0.10, 0.30, 0.11, 0.09]), [2]);
        // Somebody took time from half of the trials.
        assert_eq!(unusual(&[0.0, 0.15, 0.01, 0.2, 0.0, 0.18]), [1, 3, 5]);
        assert_eq!(unusual(&[0.2]), [0], "nothing to compare with");
        assert_eq!(unusual(&[-0.02, 0.02, -0.01, 0.0]), [0; 0]);
    }
}
