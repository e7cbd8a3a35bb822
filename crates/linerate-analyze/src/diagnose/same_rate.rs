//! A path that another cell shows to be full.
//!
//! Where the receiver's window holds many flows and nothing is lost, a queue and a way that became longer look the same
//! ([`super::path_rate`]), and nothing is told. Another cell may tell: where it fills the path and its rate is the same to
//! within [`RATE_SHARE_SAME`], with a rate as steady as a line's and a round trip above the shortest here as well, the
//! path is full here, too. A way of another length would have made another rate.

use linerate_model::finding::Evidence;
use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;

use super::evidence;
use super::trial::{self, VARIATION_LINE_MAX};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::name;
use crate::words;

/// Relative difference up to which two rates are the same: those of one full path were seen within 0.3 %.
const RATE_SHARE_SAME: f64 = 0.01;

/// Returns that the path is full in `cell`, of which no rule tells anything, as it is in another; `of_other` says what limits
/// that one.
pub(super) fn verdict(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    of_other: impl Fn(&CellOutcomes<'_>) -> Option<Limiter>,
) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let varies = cell.mean(name::RATE_VARIATION)?;
    if !is_one_way(cell) || varies > VARIATION_LINE_MAX || !trial::is_queued(dataset, cell) {
        return None;
    }
    let is_same = |other: &&CellOutcomes<'_>| {
        let rate = other.mean(name::THROUGHPUT).unwrap_or_default();
        let goes_there = is_one_way(other)
            && other.workload.traffic.direction() == cell.workload.traffic.direction()
            && other.workload.clients == cell.workload.clients
            && other.workload.link_loss_ppm == cell.workload.link_loss_ppm;
        goes_there && (rate / throughput.value - 1.0).abs() <= RATE_SHARE_SAME
    };
    let mut others = dataset.cells.iter().filter(is_same);
    let full = others.find(|other| of_other(other) == Some(Limiter::PathRate))?;
    let levels = words::whole_cell(&full.cell);
    let of_full = Evidence {
        what: format!("throughput where its queue shows that the path is full ({levels})"),
        ..full.evidence("", name::THROUGHPUT)?
    };
    let evidence = cell.proof(&[
        ("throughput", name::THROUGHPUT),
        ("smoothed round trip", name::TCP_RTT),
        ("share of the time with a queue", name::QUEUED),
        evidence::RATE_VARIATION,
    ])?;
    Some(Verdict {
        limiter: Limiter::PathRate,
        claim: format!(
            "The path is full: {} passes it, as with {levels}.",
            words::estimate(&throughput)
        ),
        explanation: "The round trip is above the shortest, which a longer way makes as well; but the rate is as steady \
                      as a line's, and the same as where the queue alone shows that the path is full."
            .to_owned(),
        effect: throughput,
        evidence: evidence.with([of_full]),
        // The cell that shows it by itself is the one to be shown.
        weight: 0.0,
    })
}

/// Whether payload goes in one direction over TCP.
fn is_one_way(cell: &CellOutcomes<'_>) -> bool {
    let workload = &cell.workload;
    workload.manner.transport == Transport::Tcp
        && workload.traffic.is_stream()
        && !workload.goes_both_ways()
}
