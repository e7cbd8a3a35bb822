//! Findings: what limits a number, and what else stands out. One file per limiter or finding.
//!
//! A rule reads cells of valid outcomes and either stays silent or makes a finding with its
//! evidence. Thresholds are constants at the top of each file, with their reason.

/// Reasons to trust a number less.
mod caution;
/// The congestion window, after loss or by the algorithm's choice.
mod congestion_window;
/// Where datagrams were lost.
mod datagram_loss;
/// Delayed acknowledgements of small transactions.
mod delayed_ack;
/// Our own worker had no time left.
mod generator;
/// What a host's own counters prove: drops, refusals, throttling.
mod host_counters;
/// Limiters in order of precedence, and one finding for each of an experiment.
mod limiter;
/// The link carries what its rate and framing allow.
mod link_rate;
/// Nagle's algorithm waiting for a delayed acknowledgement.
mod nagle_delayed_ack;
/// Nagle's algorithm on streams of small messages.
mod nagle_stream;
/// A rate that was asked for, or that TCP gives itself.
mod pacing;
/// Where the two ends of a flow ran, where they could share a CPU.
mod placement;
/// The smallest buffer that reaches the best throughput.
mod plateau;
/// Whether connections lie on receive queues less evenly than chance lays them.
mod queue_balance;
/// Backlogs, one CPU that takes all packets, the PCIe link under the card.
mod receive_path;
/// The receiver's window.
mod receiver_window;
/// One transaction at a time.
mod round_trip;
/// Segment sizes that alternate, or do not.
mod segments;
/// The sender's buffer.
mod send_buffer;
/// The window that the link and the round trip ask for.
mod window;
/// Zero-copy sends that the kernel copied all the same.
mod zero_copy;

use linerate_model::finding::{Finding, FindingKind, Limiter};

use crate::dataset::Dataset;

pub(crate) use limiter::{limiter_of, limiter_title};
pub(crate) use plateau::{LevelPlateau, plateaus};
pub(crate) use receiver_window::window_bytes;
pub(crate) use segments::{Pattern, mss_bytes, pattern_bytes, pattern_of};
pub(crate) use window::ID as WINDOW_ID;

/// Returns the findings, most important first.
pub(crate) fn findings(dataset: &Dataset<'_>) -> Vec<Finding> {
    const RULES: &[fn(&Dataset<'_>) -> Vec<Finding>] = &[
        limiter::findings,
        plateau::findings,
        window::findings,
        nagle_delayed_ack::absences,
        nagle_stream::findings,
        segments::findings,
        delayed_ack::findings,
        placement::findings,
        zero_copy::findings,
        datagram_loss::findings,
        queue_balance::findings,
        receive_path::findings,
        host_counters::findings,
        caution::findings,
    ];
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(dataset)).collect();
    // The sort is stable: within one importance findings stay in the order of the rules.
    findings.sort_by_key(|finding| importance(finding.kind));
    findings
}

/// What a reader can act on comes first, what explains comes next, cautions come last.
fn importance(kind: FindingKind) -> u32 {
    match kind {
        FindingKind::Limiter(Limiter::NagleDelayedAck) => 0,
        FindingKind::Plateau => 1,
        FindingKind::Limiter(Limiter::ReceiverWindow) => 2,
        FindingKind::Limiter(Limiter::SendBuffer) => 3,
        FindingKind::Limiter(Limiter::CongestionWindow | Limiter::Pacing) => 4,
        FindingKind::Limiter(Limiter::LinkRate) => 5,
        FindingKind::Effect => 6,
        FindingKind::Derived => 7,
        FindingKind::Limiter(Limiter::Generator) => 8,
        FindingKind::Absence => 9,
        FindingKind::Limiter(Limiter::RoundTrip) => 10,
        FindingKind::Caution => 11,
    }
}
