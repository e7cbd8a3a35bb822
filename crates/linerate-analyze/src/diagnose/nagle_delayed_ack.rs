//! Nagle's algorithm waiting for a delayed acknowledgement.
//!
//! A request handed down in two writes leaves in two segments. Nagle's algorithm (RFC 896) holds
//! the second, which is small, until the first is acknowledged; the receiver delays that
//! acknowledgement, since it has no reply to send yet: 40 ms at the least on Linux (TCP_DELACK_MIN
//! in include/net/tcp.h). Nothing moves until the delayed-ACK timer fires.
//!
//! Rule for a request/response cell with both on (or left at their defaults, which are on): the
//! median round trip is at least 30 ms above that of the cell that differs in Nagle or in delayed
//! ACK only. Without such a cell, as in a single run, it must be at least 30 ms above TCP's
//! shortest round trip, and the explanation says that it was not proven by toggling. When the
//! median does not stall, or was not read because there were too few transactions, the mean and then
//! the 99th percentile are looked at, and the claim says so.
//!
//! A request in one write should not stall: there the whole interval must lie 30 ms above.
//!
//! Absence: requests are split, both are on, the counterpart was measured, and there is no stall.

use linerate_model::experiment::{Factor, Level};
use linerate_model::finding::{Estimate, EvidenceList, Finding, FindingKind, Limiter};
use linerate_model::unit::Unit;
use linerate_model::workload::Traffic;

use super::limiter::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::words;

/// Extra waiting from which on the delayed-ACK timer is the cause: its 40 ms less one tick of
/// 10 ms of a kernel with HZ=100.
pub(crate) const STALL_NS_MIN: f64 = 30e6;

/// Quantiles that may show the stall, the more frequent first.
const QUANTILES: &[(&str, &str)] = &[
    (name::RTT_P50, "median round trip"),
    // A window of half a second holds a dozen stalled transactions: too few for a median.
    (name::RTT_MEAN, "mean round trip"),
    (name::RTT_P99, "99th percentile of the round trip"),
];

pub(super) fn verdict(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    if !is_suspect(cell) {
        return None;
    }
    let cures = cures(dataset, cell);
    QUANTILES
        .iter()
        .find_map(|(quantile, title)| stall(cell, &cures, quantile, title))
}

/// Both algorithms are on, and traffic is of the kind that can stall.
fn is_suspect(cell: &CellOutcomes<'_>) -> bool {
    let options = &cell.workload.options;
    cell.is_rr() && options.nagle != Some(false) && options.delayed_ack != Some(false)
}

/// Returns the cells that differ from `cell` in Nagle or in delayed ACK only, that being off.
fn cures<'d, 'a>(
    dataset: &'d Dataset<'a>,
    cell: &CellOutcomes<'_>,
) -> Vec<(Factor, &'d CellOutcomes<'a>)> {
    let off = |factor: Factor| {
        let mut wanted = cell.cell.clone();
        wanted.insert(factor, Level::Switch(false))?;
        let cells = dataset.cells.iter();
        let mut same = cells.filter(|other| other.experiment.name == cell.experiment.name);
        Some((
            factor,
            same.find(|other| other.cell == wanted && !other.valid.is_empty())?,
        ))
    };
    [Factor::Nagle, Factor::DelayedAck]
        .into_iter()
        .filter_map(off)
        .collect()
}

fn writes(cell: &CellOutcomes<'_>) -> u32 {
    match cell.workload.traffic {
        Traffic::Rr { request_writes, .. } => request_writes,
        Traffic::Stream { .. } | Traffic::Crr { .. } | Traffic::Idle => 0,
    }
}

fn stall(
    cell: &CellOutcomes<'_>,
    cures: &[(Factor, &CellOutcomes<'_>)],
    quantile: &str,
    title: &str,
) -> Option<Verdict> {
    let waiting = cell.estimate(quantile)?;
    let cured: Vec<_> = cures
        .iter()
        .filter_map(|(factor, cure)| Some((*factor, *cure, cure.estimate(quantile)?)))
        .collect();
    // One toggle that ends the stall proves it; the better one shows how much there is to gain.
    let best = cured.iter().min_by(|a, b| a.2.value.total_cmp(&b.2.value));
    let base = match best {
        Some((_, _, estimate)) => estimate.value,
        None => cell.mean(name::TCP_MIN_RTT)?,
    };
    let stalled_ns = waiting.value - base;
    // A request in one write should not stall at all; a few slow transactions on a busy machine
    // must not pass for it, so its whole interval has to lie beyond the threshold.
    let certain_ns = match writes(cell) {
        0 | 1 => waiting.low.unwrap_or(0.0) - base,
        _ => stalled_ns,
    };
    if certain_ns < STALL_NS_MIN {
        return None;
    }
    let display = |estimate: &Estimate| words::estimate(estimate);
    let toggles: Vec<String> = cured
        .iter()
        .map(|(factor, _, estimate)| format!("{} with {} off", display(estimate), factor.title()))
        .collect();
    let instead = match toggles.is_empty() {
        true => format!(
            ", although TCP saw a round trip of {}",
            Unit::Nanoseconds.display(base)
        ),
        false => format!(" instead of {}", words::list(&toggles)),
    };
    let proof = match toggles.is_empty() {
        true => {
            " It was not proven by switching one of them off; the length of the stall is the \
                  sign."
        }
        false => "",
    };
    let more = cured
        .iter()
        .filter_map(|(factor, cure, _)| {
            cure.evidence(format!("{title} with {} off", factor.title()), quantile)
        })
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
            display(&waiting),
        ),
        explanation: format!(
            "The sender holds its last small segment until the one before is acknowledged, and the \
             receiver delays that acknowledgement by its timer of about 40 ms.{proof}"
        ),
        effect: difference(&waiting, base),
        evidence: EvidenceList::new(cell.evidence(title, quantile)?, more.collect()),
        weight: stalled_ns,
    })
}

fn requests(cell: &CellOutcomes<'_>) -> String {
    match cell.workload.traffic {
        Traffic::Rr {
            request_bytes,
            request_writes,
            ..
        } if request_writes > 1 => {
            let bytes = words::number(Unit::Bytes, request_bytes.0 as f64);
            format!("requests of {bytes} in {request_writes} writes")
        }
        _ => "transactions".to_owned(),
    }
}

fn difference(estimate: &Estimate, base: f64) -> Estimate {
    Estimate {
        value: estimate.value - base,
        low: estimate.low.map(|low| low - base),
        high: estimate.high.map(|high| high - base),
        ..*estimate
    }
}

/// Returns a finding for each experiment whose split requests could stall and do not.
pub(super) fn absences(dataset: &Dataset<'_>) -> Vec<Finding> {
    let experiments = &dataset.recording.document.plan.experiments;
    experiments
        .iter()
        .filter_map(|experiment| {
            let cells = dataset.cells_of(&experiment.name);
            let split: Vec<_> = cells
                .into_iter()
                .filter(|cell| is_split(cell) && is_suspect(cell))
                .collect();
            if split.iter().any(|cell| verdict(dataset, cell).is_some()) {
                return None;
            }
            split.into_iter().find_map(|cell| absence(dataset, cell))
        })
        .collect()
}

fn is_split(cell: &CellOutcomes<'_>) -> bool {
    matches!(cell.workload.traffic, Traffic::Rr { request_writes, .. } if request_writes > 1)
}

fn absence(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Finding> {
    let (factor, cure) = *cures(dataset, cell).first()?;
    let waiting = cell.estimate(name::RTT_P50)?;
    let cured = cure.estimate(name::RTT_P50)?;
    let title = format!("median round trip with {} off", factor.title());
    Some(Finding {
        id: format!("{}/absence/stall", cell.experiment.name),
        chapter: cell.experiment.chapter,
        kind: FindingKind::Absence,
        claim: format!(
            "Nagle's algorithm and delayed ACKs do not stall {} here: the median round trip is {} \
             with both on and {} with {} off.",
            requests(cell),
            words::estimate(&waiting),
            words::estimate(&cured),
            factor.title(),
        ),
        explanation: "The classic stall of about 40 ms needs an acknowledgement that is delayed; \
                      here the receiver acknowledges at once or the writes leave together."
            .to_owned(),
        effect: difference(&waiting, cured.value),
        evidence: EvidenceList::new(
            cell.evidence("median round trip with both on", name::RTT_P50)?,
            cure.evidence(title, name::RTT_P50).into_iter().collect(),
        ),
    })
}
