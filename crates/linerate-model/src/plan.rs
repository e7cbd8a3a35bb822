//! The immutable ordered list of trials.

use serde::{Deserialize, Serialize};

use crate::experiment::{Cell, Experiment, Timing};
use crate::group;
use crate::id::{HostName, TrialId};
use crate::margin::Margins;
use crate::reason::RepeatReason;
use crate::unit::Nanos;
use crate::workload::{FlowPlan, Group, Workload};

/// One timed execution of one cell, fully specified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// Its place in the plan, from 1.
    pub id: TrialId,
    /// The experiment it belongs to.
    pub experiment: String,
    /// The levels it realises.
    pub cell: Cell,
    /// The number of its block, from 1: which repetition of the cell it is, where that is no control.
    pub replicate: u32,
    /// Seed of everything random inside it.
    pub seed: u64,
    /// The traffic: the first group, and the only one of most trials.
    pub workload: Workload,
    /// The groups that go on beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Group>,
    /// The phases.
    pub timing: Timing,
    /// The hosts that have it, the one that takes up its flows first; none where those of the run have it by their parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostName>,
    /// Trials of the same number, from 1, go on at the same time.
    #[serde(default, skip_serializing_if = "is_none")]
    pub step: u32,
}

fn is_none(step: &u32) -> bool {
    *step == 0
}

/// A part of a question that is not measured, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// The chapter it belongs to, if any.
    pub chapter: Option<u32>,
    /// The chapter, experiment or level.
    pub what: String,
    /// The reason, as a clause: "net.core.rmem_max = 212992 caps it".
    pub why: String,
}

/// A trial that was done once more, since the first one may not be averaged or was disturbed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repeat {
    /// The trial that repeats: it has the cell and the block of the other.
    pub trial: TrialId,
    /// The trial that it stands for.
    pub of: TrialId,
    /// Why.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub why: RepeatReason,
}

/// A trial that should be done once more.
#[derive(Debug, Clone, PartialEq)]
pub struct Spoilt {
    /// The trial.
    pub trial: TrialId,
    /// What spoilt it.
    pub why: RepeatReason,
}

/// What one plan has beyond the plan before it, its parent: further trials of an experiment, which follow from what
/// was measured of the parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stage {
    /// The experiment.
    pub experiment: String,
    /// The cell that is measured.
    pub cell: Cell,
    /// The trials; all of lower numbers were planned before it.
    pub trials: Vec<TrialId>,
}

/// Everything that will be measured, in order; complete before anything runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The experiments, in order.
    pub experiments: Vec<Experiment>,
    /// The trials, in the order of execution.
    pub trials: Vec<Trial>,
    /// Seed that the order came from.
    pub seed: u64,
    /// What the time estimate is, control overhead included.
    pub estimate: Nanos,
    /// The budget it was made for, if any.
    pub budget: Option<Nanos>,
    /// What was left out, and why.
    pub left_out: Vec<LeftOut>,
    /// Further blocks of the experiments, in the order in which they are taken up where a verdict is
    /// still open and time is left. What is done moves to [`trials`](Self::trials); what stays here
    /// was not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optional: Vec<Trial>,
    /// Which trials repeat others; found while they run, and among [`trials`](Self::trials).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Repeat>,
    /// The plans that followed from this one, each with the one before it for its parent, the first with the plan as
    /// it was made. What they add is among [`trials`](Self::trials).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// What is the same to whoever asked.
    #[serde(default, skip_serializing_if = "Margins::is_default")]
    pub margins: Margins,
}

impl Trial {
    /// Returns the workloads of its groups, in order.
    pub fn workloads(&self) -> impl Iterator<Item = &Workload> {
        let beside = self.beside.iter().map(|group| &group.workload);
        std::iter::once(&self.workload).chain(beside)
    }

    /// Returns the names of its groups, in order.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        group::names(&self.workload, &self.beside)
    }

    /// Returns the flows of all its groups.
    pub fn flows(&self) -> Vec<FlowPlan> {
        group::flows(self.workloads())
    }
}

impl Plan {
    /// Returns the experiment called `name`.
    pub fn experiment(&self, name: &str) -> Option<&Experiment> {
        self.experiments
            .iter()
            .find(|experiment| experiment.name == name)
    }

    /// Returns the trial with this number.
    pub fn trial(&self, id: TrialId) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.id == id)
    }
}
