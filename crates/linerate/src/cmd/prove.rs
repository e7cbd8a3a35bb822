//! What is changed after a measurement or a study to prove what limits it.

use linerate_analyze::groups::{Known, Reduced};
use linerate_analyze::prove::{Next, Suspects, Why, next, suspects};
use linerate_controller::{More, RunEvent};
use linerate_model::Nanos;
use linerate_model::plan::Trial;
use linerate_model::run::Recording;

use crate::term;

/// Says what is changed next.
pub(super) struct Prover {
    budget: Nanos,
    /// What may limit the measurement, once it is over.
    suspects: Option<Suspects>,
    /// Why nothing more is changed, once that is so.
    why: Option<Why>,
}

impl Prover {
    /// Returns who proves for so long at the most.
    pub(super) fn new(budget: Nanos) -> Self {
        Self {
            budget,
            suspects: None,
            why: None,
        }
    }

    /// Returns why nothing more was changed, where that left it open what limits the number.
    pub(super) fn left_open(&self) -> Option<&'static str> {
        Some(match self.why? {
            Why::Decided => return None,
            Why::NoSuspect => "no limiter is known that may be the one",
            Why::NoToggle => "nothing else can be changed here that separates what may limit it",
            Why::NoTime => "no time was left: give --prove more seconds",
        })
    }

    /// Returns what the run does next, in the time that is `left`; of trials that are `known` the recording needs no samples.
    pub(super) fn more(
        &mut self,
        recording: &Recording,
        left: Option<Nanos>,
        known: &mut Known,
    ) -> Option<More> {
        let reduced = Reduced::with(recording, known);
        if self.suspects.is_none() {
            self.suspects = suspects(&reduced);
            self.budget = left.map_or(self.budget, |left| self.budget.min(left));
        }
        match next(&reduced, self.suspects.as_ref()?, self.budget) {
            Next::Nothing(why) => {
                self.why = Some(why);
                None
            }
            Next::Block(experiment) => Some(More::Block(experiment)),
            Next::Change(asked) => {
                let plan = &recording.document.plan;
                let trials =
                    linerate_plan::proof(plan, &asked.experiment, &asked.changed, asked.blocks);
                // A change that makes no workload is none.
                Some(More::Experiment(Box::new(asked.experiment), trials.ok()?))
            }
        }
    }
}

/// Keeps the trials of changes from who shows the measurement, and says which change is made.
#[derive(Default)]
pub(super) struct Aside {
    /// The experiments of changes, by name and title.
    changes: Vec<(String, String)>,
}

impl Aside {
    /// Takes up an event; returns whether it is of a change.
    pub(super) fn takes(&mut self, event: &RunEvent<'_>) -> bool {
        let is_change = |trial: &Trial| {
            let mut changes = self.changes.iter();
            changes.any(|(name, _)| *name == trial.experiment)
        };
        match event {
            RunEvent::PlanChanged(document) => {
                let proofs = document.plan.experiments.iter().filter(|it| it.is_proof());
                let all: Vec<_> = proofs
                    .map(|it| (it.name.clone(), it.title.clone()))
                    .collect();
                for (_, title) in all.iter().skip(self.changes.len()) {
                    term::note(&format!("changing {title}"));
                }
                self.changes = all;
                false
            }
            RunEvent::TrialBegan { trial, .. }
            | RunEvent::Samples { trial, .. }
            | RunEvent::TrialEnded { trial, .. } => is_change(trial),
            RunEvent::RunBegan(_)
            | RunEvent::HostLost { .. }
            | RunEvent::HostQueued { .. }
            | RunEvent::RunEnded(_) => false,
        }
    }
}
