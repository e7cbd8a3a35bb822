//! A chapter of the study: what each file of one exports.

use linerate_model::analysis::{Chapter, TableCell};
use linerate_model::experiment::Experiment;
use linerate_model::workload::Kind;

use crate::dataset::{CellOutcomes, Dataset};
use crate::diagnose::Told;

/// A chapter of the study.
pub(super) struct StudyChapter {
    /// Its number.
    pub(super) number: u32,
    /// What it is made of.
    pub(super) content: Content,
}

/// What a chapter is made of.
pub(super) enum Content {
    /// The trials of its experiments of this kind, request/response or any other: the general chapter,
    /// what replaces it, and its lines of the summary.
    Experiment(Kind, Fill, fn(&Measured<'_, '_>) -> Vec<Row>),
    /// What follows from the trials of others: the whole chapter, and its lines of the summary.
    Derived(
        fn(&Dataset<'_>, &Told<'_>) -> Chapter,
        fn(&Dataset<'_>) -> Vec<Row>,
    ),
}

/// Replaces what a chapter knows better than the general one.
pub(super) type Fill = fn(&mut Chapter, &Measured<'_, '_>, &Told<'_>);

/// What, value and note of a line of the summary.
pub(crate) type Row = Vec<TableCell>;

/// An experiment with its cells.
pub(super) struct Measured<'m, 'a> {
    pub(super) dataset: &'m Dataset<'a>,
    pub(super) experiment: &'m Experiment,
    pub(super) cells: &'m [&'m CellOutcomes<'a>],
}

impl StudyChapter {
    /// Returns whether it follows from `experiment`, which is measured for it alone.
    pub(super) fn takes(&self, experiment: &Experiment) -> bool {
        matches!(self.content, Content::Derived(..)) && experiment.chapter == Some(self.number)
    }

    /// Returns whether `experiment` is the one that it is made of.
    pub(super) fn is_of(&self, experiment: &Experiment) -> bool {
        let of_requests = experiment.workload.traffic.is_transactional();
        let is_of_kind = matches!(
            self.content,
            Content::Experiment(kind, ..) if kind.about().traffic.is_transactional() == of_requests
        );
        is_of_kind && experiment.chapter == Some(self.number)
    }
}

/// Returns a line of the summary.
pub(crate) fn row(
    what: impl Into<String>,
    value: impl Into<TableCell>,
    note: impl Into<String>,
) -> Row {
    vec![
        TableCell::Text(what.into()),
        value.into(),
        TableCell::Text(note.into()),
    ]
}
