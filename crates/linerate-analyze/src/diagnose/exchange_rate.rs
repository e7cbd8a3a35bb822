//! A full path of requests and responses.
//!
//! Several connections that always have a request under way keep a queue before a full path, which never empties: nothing
//! is ever as fast as the path's shortest round trip allows, each transaction takes about as long as any other, and CPUs
//! have time. Rule, for connections that each wait for one response, without a pause or a rate that was asked for:
//!
//! 1. TCP's smoothed round trip, of the end where it is shorter, is at least twice the shortest, and what it has above that,
//!    0.5 ms or more, is most of the mean round trip;
//! 2. rate × that time, what waits by Little's law, are three transactions or more;
//! 3. all but one in a hundred wait three quarters of what the mean waits: 0.79 to 0.98 were seen of full paths; 0.02 to
//!    0.03 of ways with jitter, 0.45 and 0.49 behind the traffic of others and of CPUs that were full;
//! 4. the rate varies by 5 % at the most from reading to reading: 0.4 to 2.5 % were seen of full paths;
//! 5. no worker, and no CPU by its interrupts, had its time full, and tasks seldom waited for a CPU.
//!
//! A way that became longer after its shortest round trip was seen, or that passes packets at fixed instants, looks the
//! same; half as many connections tell, since a full path carries as much of those.

use linerate_model::finding::Estimate;
use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;
use linerate_model::unit::Unit;

use super::evidence;
use super::path_rate::{BLOATED_QUOTIENT_MIN, RULE, WAITING_SEGMENTS_MIN, at_least, framing_bytes};
use super::rule::{Judge, Rule};
use super::trial::{MOST, QUEUE_NS_MIN, VARIATION_STEADY_MAX, WANTED_REST_MAX, hides_path};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Values, name};
use crate::words;

/// What the fastest hundredth waits, as a share of what the mean waits, from which on the queue is never empty.
const FASTEST_SHARE_MIN: f64 = 0.75;

pub(super) const EXCHANGES: Rule = Rule {
    judge: Judge::Cell(of_exchanges),
    ..RULE
};

fn of_exchanges(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let manner = &cell.workload.manner;
    let always_waits = manner.in_flight <= 1 && !manner.rests_between_requests();
    let is_closed = always_waits && manner.transport == Transport::Tcp;
    if !is_closed || !cell.workload.traffic.is_lasting() || !have_time(cell) {
        return None;
    }
    let rate = cell.estimate(name::TRANSACTIONS)?;
    let mean_ns = cell.mean(name::RTT_MEAN)?;
    let shortest_ns = cell.mean(name::PATH_RTT)?;
    // With one end alone, TCP's round trip holds what the other takes to answer.
    cell.mean(name::TCP_RTT_SERVER)?;
    let loaded_ns = cell.mean(name::PATH_RTT_LOADED)?;
    let waits_ns = loaded_ns - shortest_ns;
    let waiting = rate.value * waits_ns / 1e9;
    let fastest = (cell.mean(name::RTT_P01)? - shortest_ns) / (mean_ns - shortest_ns);
    if loaded_ns < BLOATED_QUOTIENT_MIN * shortest_ns
        || waits_ns < QUEUE_NS_MIN.max(MOST * mean_ns)
        || waiting < WAITING_SEGMENTS_MIN
        || fastest < FASTEST_SHARE_MIN
        || cell.mean(name::TRANSACTIONS_VARIATION)? > VARIATION_STEADY_MAX
    {
        return None;
    }
    let line = line_bps(cell, rate.value).map_or(String::new(), |bps| {
        let bps = Unit::BitsPerSecond.display(bps);
        format!(" ({bps} with headers, one way)")
    });
    Some(Verdict {
        limiter: Limiter::PathRate,
        claim: format!(
            "The path is full: {}{} of these exchanges{line} pass it, and {} of {} requests or responses wait before \
             it, for {}.",
            at_least(cell),
            words::estimate(&rate),
            words::number(Unit::Count, waiting.round()),
            cell.workload.connections,
            words::number(Unit::Nanoseconds, waits_ns),
        ),
        explanation: "That hardly a transaction was faster than the others, that \
                      their rate is steady, and that CPUs had time show a queue that is never empty. More at a time only \
                      make it longer; others on the path wait in it too. A path that became longer after its shortest \
                      round trip was seen, or that passes packets at fixed instants, looks the same: where half as many \
                      connections make as many transactions, the path is full."
            .to_owned(),
        evidence: cell.proof_with(
            &[
                ("transactions per second", name::TRANSACTIONS),
                ("mean round trip", name::RTT_MEAN),
                ("round trip that one in a hundred is below", name::RTT_P01),
                ("TCP's shortest round trip, of both ends", name::PATH_RTT),
                evidence::LOADED,
                (
                    "deviation of the transactions from reading to reading",
                    name::TRANSACTIONS_VARIATION,
                ),
            ],
            [(
                "transactions that wait before the path (computed)",
                Estimate::point(waiting, Unit::Count),
            )],
        )?,
        effect: rate,
        weight: 0.0,
    })
}

/// Whether CPUs had time for the exchanges: what waits does not do so for one.
fn have_time(cell: &CellOutcomes<'_>) -> bool {
    cell.stays_within(name::WORKER_WANTED_SHARE_MAX, WANTED_REST_MAX)
        && !cell.reaches(name::CPU_PRESSURE, MOST)
        && !cell.valid.iter().any(hides_path)
}

/// What a line has to carry of so many transactions in the direction with more, headers included, bit/s; absent where their
/// sizes differ.
fn line_bps(cell: &CellOutcomes<'_>, transactions: f64) -> Option<f64> {
    let manner = &cell.workload.manner;
    if manner.sizes.is_some() || manner.steps.is_some() {
        return None;
    }
    let (request, response) = cell.workload.traffic.exchange()?;
    let segment = cell.mean(name::SEND_MSS).filter(|bytes| *bytes >= 1.0)?;
    let bytes = request.0.max(response.0) as f64;
    let segments = (bytes / segment).ceil();
    Some(transactions * (bytes + segments * framing_bytes()) * 8.0)
}
