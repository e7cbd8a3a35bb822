//! The link carries what its rate and framing allow.
//!
//! Rule: mean throughput ≥ 98.5 % of the payload limit of the wire, where the limit is taken at the
//! measured payload per data segment, so that a link full of small frames counts as full. The
//! claim says whether the interval, or both of two values, lie above that share.

use linerate_model::finding::Estimate;
use linerate_model::limiter::Limiter;
use linerate_model::unit::Unit;

use super::rule::{Judge, Rule};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{name, tolerance};
use crate::words;

/// Share of the wire's payload limit from which on the link is full. ACKs, ARP and retransmissions
/// take up to about 1 %, and clocks of two ends differ by less than the rest.
pub(super) const FULL_SHARE_MIN: f64 = 0.985;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::LinkRate,
    needs: "98.5 % of the payload that the link carries at the measured segment size",
    importance: 2,
    explains_failure: false,
    judge: Judge::Cell(verdict),
    evident: None,
    // Nothing behind a full link can raise the number.
    next: |_| None,
};

fn verdict(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let limit = dataset.limit_bps(cell)?;
    let share = share_of(&throughput, limit);
    if share.value < FULL_SHARE_MIN {
        return None;
    }
    let rate = dataset.path.rate_of(&cell.workload)?;
    let beyond = share.low.unwrap_or(share.value) > 1.0;
    let of = if beyond {
        format!("{} more than", words::percent(share.value - 1.0))
    } else {
        format!("{} of", words::percent(share.value))
    };
    let sure = match (share.low, share.is_range()) {
        _ if beyond => "",
        (Some(low), false) if low >= FULL_SHARE_MIN => "; the whole interval lies above 98.5 %",
        (Some(_), false) => "; the interval reaches below 98.5 %",
        (Some(low), true) if low >= FULL_SHARE_MIN => "; both values lie above 98.5 %",
        (Some(_), true) => "; one of the two values lies below 98.5 %",
        (None, _) => "",
    };
    let mut explanation = "Neither buffers nor CPUs can raise this number; larger frames or a faster link can. Headers, \
                           preamble and gaps of each frame take the rest of the rate."
        .to_owned();
    if share.high.unwrap_or(share.value) > 1.0 {
        let trials = cell.trials().into_iter();
        let own = trials.filter_map(|trial| dataset.recording.record(trial));
        let most = own
            .map(|record| tolerance(record.window()))
            .max_by(f64::total_cmp)?;
        explanation += &format!(
            " A window may hold up to {} more than that: what the link had not passed before it.",
            words::percent(most)
        );
    }
    Some(Verdict {
        limiter: Limiter::LinkRate,
        claim: format!(
            "The link is full: {} is {of} the {} of payload that a link of {} carries{sure}.",
            words::estimate(&throughput),
            Unit::BitsPerSecond.display(limit),
            Unit::BitsPerSecond.display(rate),
        ),
        explanation,
        effect: share,
        evidence: cell.proof_with(
            &[
                ("throughput", name::THROUGHPUT),
                ("payload per data segment", name::PAYLOAD_PER_SEGMENT),
            ],
            [(
                "payload that the wire can carry at this segment size (computed)",
                Estimate::point(limit, Unit::BitsPerSecond),
            )],
        )?,
        // The surest cell is shown, not the one that by chance carried most.
        weight: share.low.unwrap_or(share.value).min(1.0),
    })
}

/// Returns an estimate as a share of a known number.
pub(super) fn share_of(estimate: &Estimate, whole: f64) -> Estimate {
    estimate.map(Unit::Ratio, |value| value / whole)
}
