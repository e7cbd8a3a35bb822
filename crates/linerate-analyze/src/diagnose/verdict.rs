//! What a rule says of one cell.

use linerate_model::finding::{Estimate, EvidenceList};
use linerate_model::limiter::Limiter;

/// What a rule says of one cell.
pub(crate) struct Verdict {
    /// The limiter.
    pub(crate) limiter: Limiter,
    /// The claim with its numbers.
    pub(crate) claim: String,
    /// Why, and what it means.
    pub(crate) explanation: String,
    /// How large the effect is.
    pub(crate) effect: Estimate,
    /// What it rests on.
    pub(crate) evidence: EvidenceList,
    /// Of several cells with the same limiter, the one with the greatest weight is shown.
    pub(crate) weight: f64,
}
