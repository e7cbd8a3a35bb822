//! Recordings with a known truth: does the analysis find it, and only it?

/// Recordings with a known truth.
mod builder {
    pub use linerate_analyze::truth::recording::*;
}
mod answer;
mod exchange;
mod findings;
mod host_counters;
mod queues;
mod receive_path;
mod reduction;
mod robustness;
mod streams;
mod verdicts;
mod whole;

use linerate_model::finding::Finding;
use linerate_model::run::Recording;

/// Returns the findings and the cautions of `recording`.
fn told(recording: &Recording) -> Vec<Finding> {
    let analysis = linerate_analyze::analyze(recording);
    analysis
        .findings
        .into_iter()
        .chain(analysis.cautions)
        .collect()
}
