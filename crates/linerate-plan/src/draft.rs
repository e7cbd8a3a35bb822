//! A checked experiment and how it grows with the time there is.

use std::collections::BTreeMap;

use linerate_model::Nanos;
use linerate_model::experiment::{Experiment, Factor, Level};

/// An experiment file that has been read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The experiment with all its levels, and with the replicates and timing of its file.
    pub experiment: Experiment,
    /// How it is fitted into a budget.
    pub budget: BudgetHints,
}

/// How an experiment is fitted into a budget of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetHints {
    /// Share of the spare time that it gets beside other experiments, 1 to 100.
    pub weight: u32,
    /// The fewest and the most replicates.
    pub replicates: (u32, u32),
    /// The shortest and the longest measured window.
    pub measure: (Nanos, Nanos),
    /// Levels that are never thinned away.
    pub core: BTreeMap<Factor, Vec<Level>>,
}

impl BudgetHints {
    /// Returns hints that keep replicates and timing of `experiment` as they are.
    pub fn fixed(experiment: &Experiment) -> Self {
        let (replicates, measure) = (experiment.replicates, experiment.timing.measure);
        Self {
            weight: 1,
            replicates: (replicates, replicates),
            measure: (measure, measure),
            core: BTreeMap::new(),
        }
    }
}
