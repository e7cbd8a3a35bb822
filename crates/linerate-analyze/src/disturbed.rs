//! Trials that should be done once more: something else took the hosts' time, or traffic had not
//! reached its rate when the window began.

use linerate_model::TrialId;
use linerate_model::run::Recording;
use linerate_model::unit::Unit;
use linerate_model::workload::Traffic;

use crate::reduce::{DISTURBED_SHARE_MAX, Outcome, name, outcomes};

/// The second half of a window over its first, above which its begin was too early: ten times what
/// halves of a steady window differ by.
const RISING: f64 = 1.1;

/// A trial that should be done once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disturbed {
    /// The trial.
    pub trial: TrialId,
    /// What disturbed it, as a clause.
    pub why: String,
    /// Whether more traffic before the window would help.
    pub rises: bool,
}

/// Returns the valid trials of `recording` that should be done once more.
pub fn disturbed(recording: &Recording) -> Vec<Disturbed> {
    let plan = &recording.document.plan;
    let is_stream = |outcome: &Outcome| {
        let mut trials = plan.trials.iter();
        let own = trials.find(|trial| trial.id == outcome.trial);
        own.is_some_and(|trial| matches!(trial.workload.traffic, Traffic::Stream { .. }))
    };
    let all = outcomes(recording);
    let valid = all.iter().filter(|outcome| outcome.is_valid());
    let found = valid.filter_map(|outcome| {
        let halves = outcome.value(name::HALVES).filter(|_| is_stream(outcome));
        let rising = halves.filter(|ratio| *ratio > RISING).map(|ratio| {
            let percent = Unit::Percent.display(100.0 * (ratio - 1.0));
            format!("its rate still rose: by {percent} from half to half")
        });
        let rises = rising.is_some();
        let why = rising.or_else(|| disturbance(outcome))?;
        let trial = outcome.trial;
        Some(Disturbed { trial, why, rises })
    });
    found.collect()
}

fn disturbance(outcome: &Outcome) -> Option<String> {
    let share = outcome.value(name::CPU_MISSING);
    let share = share.filter(|share| *share > DISTURBED_SHARE_MAX)?;
    let percent = Unit::Percent.display(100.0 * share);
    Some(format!(
        "{percent} of the CPUs' time is in none of their modes"
    ))
}
