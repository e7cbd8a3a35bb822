//! Findings → what to do.

use linerate_model::finding::{Finding, Recommendation};

use crate::dataset::Dataset;

/// Returns what to do about `findings`.
pub(crate) fn recommendations(
    _dataset: &Dataset<'_>,
    _findings: &[Finding],
) -> Vec<Recommendation> {
    Vec::new()
}
