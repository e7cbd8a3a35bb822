//! One transaction at a time.
//!
//! Rule: by Little's law, transactions per second × mean round trip is the mean number of
//! transactions under way. When that is within 10 % of the number of connections, each connection
//! always waits for its own round trip and nothing else holds the rate. Not for traffic that has
//! several requests under way, pauses, goes by the clock, or makes connections.

use linerate_model::finding::{EvidenceList, Limiter};
use linerate_model::unit::Unit;
use linerate_model::workload::Traffic;

use super::limiter::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::words;

/// Largest relative difference of transactions under way and connections.
const LITTLE_SHARE_MAX: f64 = 0.1;

pub(super) fn verdict(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let manner = &cell.workload.manner;
    let at_once = manner.in_flight > 1 || manner.think.is_some() || manner.requests_per_s.is_some();
    if at_once || !matches!(cell.workload.traffic, Traffic::Rr { .. }) {
        return None;
    }
    let rate = cell.estimate(name::TRANSACTIONS)?;
    let rtt = cell
        .estimate(name::RTT_MEAN)
        .filter(|rtt| rtt.value > 0.0)?;
    let flows = f64::from(cell.workload.connections);
    // Trial by trial, since trials may differ among themselves by more than 10 %.
    let allowed = cell.derived(Unit::PerSecond, |outcome| {
        Some(flows * 1e9 / outcome.value(name::RTT_MEAN).filter(|rtt| *rtt > 0.0)?)
    })?;
    let share = cell.derived(Unit::Ratio, |outcome| {
        let under_way = outcome.value(name::TRANSACTIONS)? * outcome.value(name::RTT_MEAN)? / 1e9;
        Some(under_way / flows)
    })?;
    if (share.value - 1.0).abs() > LITTLE_SHARE_MAX {
        return None;
    }
    let more = [
        cell.evidence("mean round trip", name::RTT_MEAN),
        cell.evidence("median round trip", name::RTT_P50),
    ];
    Some(Verdict {
        limiter: Limiter::RoundTrip,
        claim: format!(
            "The round trip limits the rate to {}: {} with one transaction at a time and a mean round \
             trip of {} allow {}.",
            words::estimate(&rate),
            words::count(cell.workload.connections as usize, "connection"),
            Unit::Nanoseconds.display(rtt.value),
            Unit::PerSecond.display(allowed.value),
        ),
        explanation: "A connection that waits for each response sends one request per round trip. \
                      Only a shorter round trip or more connections raise the rate."
            .to_owned(),
        effect: share,
        evidence: EvidenceList::new(
            cell.evidence("transactions per second", name::TRANSACTIONS)?,
            more.into_iter().flatten().collect(),
        ),
        weight: rate.value,
    })
}
