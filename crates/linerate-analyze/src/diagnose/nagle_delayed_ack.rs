//! Nagle's algorithm waiting for a delayed acknowledgement.
//!
//! A request handed down in two writes leaves in two segments. Nagle's algorithm (RFC 896) holds
//! the second, which is small, until the first is acknowledged; the receiver delays that
//! acknowledgement, since it has no reply to send yet: 40 ms at the least on Linux (TCP_DELACK_MIN
//! in include/net/tcp.h). Nothing moves until the delayed-ACK timer fires.
//!
//! Rule for requests that go down in several writes, with both on (or left at their defaults, which
//! are on); a request in one write cannot wait for its own acknowledgement:
//!
//! 1. the median round trip is at least 30 ms above that of the cell that differs in Nagle or in
//!    delayed ACK only; without such a cell, as in a single run, above TCP's shortest round trip to the
//!    farthest client, and
//!    no more than the timer's longest. When the median does not stall, or was not read because there
//!    were too few transactions, the mean and then the 99th percentile are looked at, and the claim
//!    says so. A retransmission timeout is as long as a stall, and one is enough to move a mean: trials
//!    that retransmitted anything are not in it, and it tells nothing where those are half of them;
//! 2. the delayed-ACK timer fired about as often as transactions stalled: five times at least, and the
//!    95 % interval of the ratio meets 0.5 to 1.5. Where both were toggled in the same experiment,
//!    other traffic may count in it too; but a counter that rests means another cause, always.
//!
//! Absence: requests are split, both are on, the counterpart was measured, and there is no stall.

use linerate_model::TrialId;
use linerate_model::experiment::{Factor, Level};
use linerate_model::finding::{Estimate, Evidence, EvidenceList};
use linerate_model::limiter::Limiter;
use linerate_model::unit::Unit;

use super::rule::{Judge, Rule};
use super::trial::farthest_ns;
use super::verdict::Verdict;
use crate::compare::poisson;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{DELAYED_ACK_NS_MAX, Outcome, STALL_EXCESS_NS, Values, name};
use crate::words;

/// Quantiles that may show the stall, the more frequent first.
const STALL_QUANTILES: &[(&str, &str)] = &[
    (name::RTT_P50, "median round trip"),
    // A window of half a second holds a dozen stalled transactions: too few for a median.
    (name::RTT_MEAN, "mean round trip"),
    (name::RTT_P99, "99th percentile of the round trip"),
];

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::NagleDelayedAck,
    needs: "requests in pieces that take 30 ms longer than with either off, and the delayed-ACK timer as often",
    importance: 1,
    explains_failure: false,
    judge: Judge::Cell(verdict),
    evident: None,
    next: |_| Some("repeat with `-N` (TCP_NODELAY), or one write per message".to_owned()),
};

/// Returns what evidence of the cell that differs in `factor` only is called.
pub(crate) fn with_off(title: &str, factor: Factor) -> String {
    format!("{title} with {} off", factor.title())
}

fn verdict(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    if !may_stall(cell) {
        return None;
    }
    let cures = cures(dataset, cell);
    if !is_counted(cell, cures.is_empty()) {
        return None;
    }
    STALL_QUANTILES
        .iter()
        .find_map(|(quantile, title)| stall(dataset, cell, &cures, quantile, title))
}

/// Both algorithms are on, and requests go down in several writes.
pub(super) fn may_stall(cell: &CellOutcomes<'_>) -> bool {
    let options = &cell.workload.options;
    is_split(cell) && options.nagle != Some(false) && options.delayed_ack != Some(false)
}

/// The delayed-ACK timer fired as often as transactions stalled, or nothing speaks against it where
/// the toggle is there.
fn is_counted(cell: &CellOutcomes<'_>, alone: bool) -> bool {
    let counted = cell
        .sum(name::DELAYED_ACKS_SENT)
        .zip(cell.sum(name::STALLED));
    match counted {
        Some((fired, stalled)) if alone => poisson::explains(fired, stalled),
        Some((fired, stalled)) => !poisson::rests(fired, stalled),
        None => !alone,
    }
}

/// Returns the cells that differ from `cell` in Nagle or in delayed ACK only, that being off.
fn cures<'d, 'a>(
    dataset: &'d Dataset<'a>,
    cell: &CellOutcomes<'_>,
) -> Vec<(Factor, &'d CellOutcomes<'a>)> {
    let off = |factor: Factor| {
        cell.level(factor)?;
        let cure = dataset.beside(cell, factor, Level::Switch(false));
        Some((factor, cure.filter(|cure| !cure.valid.is_empty())?))
    };
    [Factor::Nagle, Factor::DelayedAck]
        .into_iter()
        .filter_map(off)
        .collect()
}

fn stall(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    cures: &[(Factor, &CellOutcomes<'_>)],
    quantile: &str,
    title: &str,
) -> Option<Verdict> {
    let waiting = without_loss(cell, quantile, title)?;
    let cured: Vec<_> = cures
        .iter()
        .filter_map(|(factor, cure)| {
            let cured = without_loss(cure, quantile, with_off(title, *factor))?;
            Some((*factor, cured))
        })
        .collect();
    // What was measured and says nothing does not make it a single run.
    if quantile == name::RTT_MEAN && cured.is_empty() && !cures.is_empty() {
        return None;
    }
    // One toggle that ends the stall proves it; the better one shows how much there is to gain.
    let values = cured.iter().map(|(_, cured)| cured.estimate.value);
    let base = match values.min_by(f64::total_cmp) {
        Some(best_ns) => best_ns,
        // Transactions of several clients are counted together: those of the farthest stall least.
        None => farthest_ns(dataset, cell)?,
    };
    let stalled_ns = waiting.estimate.value - base;
    // Beyond the timer's longest, and the path once more, something else waits too.
    let longest_ns = DELAYED_ACK_NS_MAX + 2.0 * base;
    if !(STALL_EXCESS_NS..=longest_ns).contains(&stalled_ns) {
        return None;
    }
    let display = |estimate: &Estimate| words::estimate(estimate);
    let toggles: Vec<String> = cured
        .iter()
        .map(|(factor, cured)| format!("{} with {} off", display(&cured.estimate), factor.title()))
        .collect();
    let instead = if toggles.is_empty() {
        format!(
            ", although TCP saw a round trip of {}{}",
            Unit::Nanoseconds.display(base),
            match cell.workload.clients {
                0 | 1 => "",
                _ => " to the farthest client",
            }
        )
    } else {
        format!(" instead of {}", words::list(&toggles))
    };
    let proof = if toggles.is_empty() {
        " This was not proven by switching one of them off; the sign is that the timer fired as often \
                  as transactions stalled."
    } else {
        ""
    };
    let more = cured
        .into_iter()
        .map(|(_, cured)| cured)
        .chain(cell.evidence("transactions per second", name::TRANSACTIONS))
        .chain(cell.evidence(
            "ACKs sent by the delayed-ACK timer per second",
            name::DELAYED_ACKS,
        ))
        .chain(cell.evidence("longest round trip", name::RTT_MAX));
    Some(Verdict {
        limiter: Limiter::NagleDelayedAck,
        claim: format!(
            "Nagle's algorithm and delayed ACKs stall {}: the {title} is {}{instead}.",
            requests(cell),
            display(&waiting.estimate),
        ),
        explanation: format!(
            "The sender holds its last small segment until the one before is acknowledged, and the \
             receiver delays that acknowledgement by its timer of about 40 ms. `TCP_NODELAY` at the sender ends the wait.{proof}"
        ),
        effect: waiting.estimate.map(waiting.estimate.unit, |ns| ns - base),
        evidence: EvidenceList::new(waiting, more.collect()),
        weight: stalled_ns,
    })
}

/// Returns a quantile of `cell`, or its mean of the trials that retransmitted nothing, where those are
/// most of them.
fn without_loss(
    cell: &CellOutcomes<'_>,
    quantile: &str,
    what: impl Into<String>,
) -> Option<Evidence> {
    let lost = |outcome: &Outcome| outcome.exceeds(name::RETRANSMITTED_BOTH, 0.0);
    let whole = cell.evidence(what, quantile)?;
    if quantile != name::RTT_MEAN || !cell.valid.iter().any(lost) {
        return Some(whole);
    }
    let kept = cell.valid.iter().filter(|outcome| !lost(outcome));
    let trials: Vec<TrialId> = kept.map(|outcome| outcome.trial).collect();
    if 2 * trials.len() <= cell.valid.len() {
        return None;
    }
    let value = |outcome: &Outcome| outcome.value(quantile).filter(|_| !lost(outcome));
    Some(Evidence {
        estimate: cell.derived(whole.estimate.unit, value)?,
        trials,
        ..whole
    })
}

fn requests(cell: &CellOutcomes<'_>) -> String {
    let traffic = &cell.workload.traffic;
    match (traffic.request_writes(), traffic.exchange()) {
        (writes @ 2.., Some((request, _))) => {
            let bytes = words::number(Unit::Bytes, request.0 as f64);
            format!("requests of {bytes} in {writes} writes")
        }
        _ => "transactions".to_owned(),
    }
}

fn is_split(cell: &CellOutcomes<'_>) -> bool {
    cell.workload.traffic.request_writes() > 1
}
