//! Findings: what limits a number, and what else stands out.

use linerate_model::finding::Finding;

use crate::dataset::Dataset;

/// Returns the findings, most important first.
pub(crate) fn findings(_dataset: &Dataset<'_>) -> Vec<Finding> {
    Vec::new()
}
