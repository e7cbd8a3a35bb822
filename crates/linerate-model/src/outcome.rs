//! What one trial found: the numbers that an experiment explains, with the levels of its trial.

use std::collections::BTreeMap;

use crate::experiment::Cell;
use crate::flag::TrialFlag;
use crate::id::TrialId;
use crate::run::Validity;
use crate::unit::Unit;

/// One response of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Response {
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

/// The responses of one trial with its levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The trial.
    pub trial: TrialId,
    /// Its experiment.
    pub experiment: String,
    /// Its levels.
    pub cell: Cell,
    /// Which repetition of the cell.
    pub replicate: u32,
    /// Its place among all trials, in the order of execution.
    pub place: u32,
    /// Whether it was done once more for another one, which was not to be averaged.
    pub is_repeat: bool,
    /// Whether it may be averaged; refused numbers are invalid too.
    pub validity: Validity,
    /// What to know about it although it is valid.
    pub flags: Vec<TrialFlag>,
    /// The responses by name; one that was not read is not there.
    pub responses: BTreeMap<String, Response>,
}

impl Outcome {
    /// Returns whether the outcome may be averaged.
    pub fn is_valid(&self) -> bool {
        self.validity == Validity::Valid
    }

    /// Returns the block whose trials it was done among, in an order that was drawn. What was done once more came
    /// after all of them: beside a trial of the block itself a drift would count as an effect.
    pub fn block(&self) -> (u32, bool) {
        (self.replicate, self.is_repeat)
    }

    /// Returns the value of the response called `name`.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.responses.get(name).map(|response| response.value)
    }
}
