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
pub(crate) use view::{MATHIS_CONSTANT, MOST, lacking, lacks, lost};

use crate::dataset::{CellOutcomes, Dataset};
use setup::Setup;

/// Returns the place of a fact in [`FACTS`].
pub fn place(id: &str) -> Option<usize> {
    FACTS.iter().position(|fact| fact.id == id)
}

/// Hands the view of each valid trial of `cell` to `act`.
pub(crate) fn for_each_view(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    mut act: impl FnMut(&View<'_>),
) {
    let setup = Setup::of(dataset, cell);
    let of_cell = crate::diagnose::patterns_of_cell(dataset, cell);
    for outcome in &cell.valid {
        let workload = &cell.workload;
        let patterns = crate::diagnose::patterns_of_trial(&of_cell, outcome, &setup, workload);
        act(&View::new(outcome, &setup, workload, patterns));
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
