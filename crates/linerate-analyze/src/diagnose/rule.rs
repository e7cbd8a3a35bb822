//! A limiter and how it is found: what each file that judges one exports.

use linerate_model::limiter::Limiter;
use linerate_model::workload::Workload;

use super::trial::TrialView;
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};

/// A limiter and how it is found.
pub(super) struct Rule {
    /// What it finds; its words are the model's.
    pub(super) limiter: Limiter,
    /// What evidence that needs, without a full stop; the guide has it in full.
    pub(super) needs: &'static str,
    /// Its place among findings, the lowest first: what can be mended comes before what describes.
    pub(super) importance: u32,
    /// Whether it can be why a trial is invalid. Others only say what its number, which does not
    /// count, would have been limited by.
    pub(super) explains_failure: bool,
    /// How it is found.
    pub(super) judge: Judge,
    /// What the evidence of a cell says to do next, where that is not what [`Rule::next`] says.
    pub(super) evident: Option<Evident>,
    /// What to do next, in one line, if there is anything: flags to repeat it with, or where to look. Nothing of it
    /// was measured to help.
    pub(super) next: fn(&Workload) -> Option<String>,
}

/// Says what the evidence of a cell says to do next, if anything.
pub(super) type Evident = fn(&Dataset<'_>, &CellOutcomes<'_>) -> Option<String>;

/// How a limiter is found.
pub(super) enum Judge {
    /// By what all trials of a cell have in common.
    Cell(Tell),
    /// As one of the causes that the time of a stream is shared out to (`super::stream`): whether it is
    /// what holds the stream of one trial, and what is told of a cell of which it holds most.
    Cause(fn(&TrialView<'_>) -> bool, Tell),
}

/// Says what is told of a cell, if anything.
pub(super) type Tell = fn(&Dataset<'_>, &CellOutcomes<'_>) -> Option<Verdict>;

/// Whether two limiters are one that is told in two ways: a path whose link's rate is known, and CPUs that are our worker's.
pub(crate) fn is_same(one: Limiter, other: Limiter) -> bool {
    let family = |limiter| match limiter {
        Limiter::LinkRate => Limiter::PathRate,
        Limiter::Generator => Limiter::Cpu,
        limiter => limiter,
    };
    family(one) == family(other)
}
