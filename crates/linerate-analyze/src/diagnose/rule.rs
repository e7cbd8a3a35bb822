//! A limiter and how it is found: what each file that judges one exports.

use linerate_model::finding::Limiter;

use super::trial::Trial;
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};

/// A limiter and how it is found.
pub(crate) struct Rule {
    /// What it finds; its words are the model's.
    pub(crate) limiter: Limiter,
    /// Its place among findings, the lowest first: what can be mended comes before what describes.
    pub(crate) importance: u32,
    /// Whether it can be why a trial is invalid. Others only say what its number, which does not
    /// count, would have been limited by.
    pub(crate) explains_failure: bool,
    /// How it is found.
    pub(crate) judge: Judge,
}

/// How a limiter is found.
pub(crate) enum Judge {
    /// By what all trials of a cell have in common.
    Cell(Tell),
    /// As one of the causes that the time of a stream is shared out to (`super::stream`): whether it is
    /// what holds the stream of one trial, and what is told of a cell of which it holds most.
    Cause(fn(&Trial<'_>) -> bool, Tell),
}

/// Says what is told of a cell, if anything.
pub(crate) type Tell = fn(&Dataset<'_>, &CellOutcomes<'_>) -> Option<Verdict>;
