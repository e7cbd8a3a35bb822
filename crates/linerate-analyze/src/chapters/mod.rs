//! One file per chapter, and a general one for any other experiment.

/// Curves and tables that several chapters draw.
mod draw;
/// Any experiment that is not a chapter with a file of its own.
mod general;

use linerate_model::analysis::Chapter;
use linerate_model::finding::Finding;

use crate::dataset::Dataset;

/// Returns the chapters, in order.
pub(crate) fn chapters(dataset: &Dataset<'_>, findings: &[Finding]) -> Vec<Chapter> {
    let experiments = &dataset.recording.document.plan.experiments;
    experiments
        .iter()
        .map(|experiment| general::chapter(dataset, experiment, findings))
        .collect()
}
