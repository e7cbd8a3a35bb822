//! What recordings say of hosts, paths and programs, in one vocabulary: some hundred facts.
//!
//! A fact is one row of `FACTS`: its name, the words for it, the counter that it is read from, and how. It is read of a
//! `View`: what one group of flows did in one trial, beside what is known of its set-up. What was not read is unread, and
//! speaks neither for a cause nor against it. What follows from facts is not said here.

/// The rows.
mod facts;
/// What is read of a fact.
pub mod reading;
/// A fact as a row.
mod row;
/// What all trials of a cell have in common.
pub(crate) mod setup;
/// What facts are read from.
mod view;

pub use facts::FACTS;
pub use reading::Reading;
pub use row::{FactRow, Source};
pub use view::View;
pub(crate) use view::{MATHIS_CONSTANT, MOST, lost};

use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::Outcome;
use setup::Setup;

/// Returns the place of a fact in [`FACTS`].
pub fn place(id: &str) -> Option<usize> {
    FACTS.iter().position(|fact| fact.id == id)
}

/// Hands the view of each valid trial of `cell` to `act`, with the `patterns` that are seen in it.
pub(crate) fn for_each_view(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    patterns: impl Fn(&Outcome, &Setup) -> Vec<(&'static str, Reading)>,
    mut act: impl FnMut(&View<'_>),
) {
    let setup = Setup::of(dataset, cell);
    for outcome in &cell.valid {
        let seen = patterns(outcome, &setup);
        act(&View::new(outcome, &setup, &cell.workload, seen));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<&str> = FACTS.iter().map(|fact| fact.id).collect();
        assert_eq!(names.len(), FACTS.len());
    }
}
