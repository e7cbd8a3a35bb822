//! Findings: what limits a number, and what else stands out. One file per limiter or finding.
//!
//! A rule reads cells of valid outcomes and either stays silent or makes a finding with its
//! evidence. Thresholds are constants at the top of each file, with their reason.

/// The program that writes pauses.
mod application;
/// Each direction of a stream that goes both ways.
mod both_ways;
/// Reasons to trust a number less.
mod caution;
/// The congestion window, after loss without a queue or by the algorithm's choice.
mod congestion_window;
/// CPUs that our workers did not get.
mod cpu;
/// Where datagrams were lost.
mod datagram_loss;
/// A full path of datagrams.
mod datagram_rate;
/// What a switch or a word changes.
mod effect;
/// Pieces of evidence that several limiters show.
mod evidence;
/// A full path of requests and responses.
mod exchange_rate;
/// A finding as the rules make it.
mod found;
/// Our own worker had no time left.
mod generator;
/// What a host's own counters prove: drops, refusals, throttling.
mod host_counters;
/// Segments dropped inside a host.
mod host_drops;
/// What follows from the facts of a cell.
mod inferred;
/// Every finding and caution by its identifier.
pub(crate) mod known;
/// What limits a cell, and one finding for each limiter.
mod limiter;
/// The link carries what its rate and framing allow.
mod link_rate;
/// The places where datagrams were lost.
mod loss_place;
/// Whether the TCP sockets of a host together have used up its memory.
mod memory_pressure;
/// Nagle's algorithm waiting for a delayed acknowledgement.
pub(crate) mod nagle_delayed_ack;
/// Nothing that was sent arrives.
mod nothing_arrives;
/// Responses that wait for the next request.
mod open_loop;
/// A rate that was asked for, or that TCP gives itself.
mod pacing;
/// A full path whose rate nobody knew.
mod path_rate;
/// Where the two ends of a flow ran, where they could share a CPU.
mod placement;
/// Buffers that do better than the host's own.
mod plateau;
/// Whether connections lie on receive queues less evenly than chance lays them.
mod queue_balance;
/// Backlogs, one CPU that takes all packets, the PCIe link under the card.
mod receive_path;
/// The receiver's window.
mod receiver_window;
/// What to repeat a measurement with.
mod repeat;
/// Where the time of an exchange goes.
mod round_trip;
/// A limiter and how it is found.
mod rule;
/// The list of all rules that find a limiter.
mod rules;
/// A path that another cell shows to be full.
mod same_rate;
/// Sentences of what was concluded.
mod say;
/// Segment sizes that alternate, or do not.
mod segments;
/// The sender's buffer.
mod send_buffer;
/// The program at the receiver leaves data unread.
mod slow_reader;
/// What holds a stream, as shares of the time.
mod stream;
/// Transactions that wait for a retransmission timeout.
mod timeouts;
/// One trial of a stream, as rules read it.
mod trial;
/// What a rule says of one cell.
pub(crate) mod verdict;
/// Zero-copy sends that the kernel copied all the same.
mod zero_copy;

use linerate_model::finding::FindingKind;
use linerate_model::limiter::Limiter;

use crate::dataset::Dataset;

pub(crate) use both_ways::rates_of_both;
pub(crate) use caution::HELD_BACK_SHARE_TOLD;
pub(crate) use effect::claim as effect_claim;
pub(crate) use found::{About, Found, What};
pub use inferred::evidence_of;
pub(crate) use inferred::of_cell_among;
pub use limiter::limiter_of_outcomes;
pub(crate) use limiter::{advised, evident, limiter_of, limits, next, standing};
pub(crate) use pacing::REQUESTS_SHARE_MIN;
pub(crate) use path_rate::LOST_SHARE_MIN;
pub(crate) use plateau::cell as plateau_cell;
pub(crate) use queue_balance::balance;
pub(crate) use receive_path::SATURATED_SHARE;
pub(crate) use receiver_window::{
    is_field_full, is_of_another, is_unscaled, is_untuned, window_bytes,
};
pub(crate) use repeat::WHERE_SHARED;
pub(crate) use rule::is_same;
pub use rules::limiters;
pub(crate) use segments::{Pattern, mss_bytes, pattern_bytes, pattern_of};
pub(crate) use trial::{RATIO_NS_MIN, needless, shortest_ns, turns_per_s};

/// Findings that a report has at the most: more are read by nobody.
pub const FINDINGS_MAX: usize = 5;

/// Place of what the study brings about itself: beside what describes, behind what can be mended.
const OWN_IMPORTANCE_MIN: u32 = 3;

/// What the rules say, sorted by what it is good for.
pub(crate) struct Told<'d> {
    /// About the host as it is, those first that gain most for certain: what the hosts could do instead of what they do by
    /// themselves.
    pub(crate) findings: Vec<Found<'d>>,
    /// Reasons to trust a number less, in the order of the rules.
    pub(crate) cautions: Vec<Found<'d>>,
}

/// Asks every rule once.
pub(crate) fn told<'d>(dataset: &'d Dataset<'_>) -> Told<'d> {
    let all = [
        caution::findings(dataset),
        limiter::findings(dataset),
        plateau::findings(dataset),
        effect::findings(dataset),
        datagram_loss::findings(dataset),
        queue_balance::findings(dataset),
        placement::findings(dataset),
        open_loop::findings(dataset),
        zero_copy::findings(dataset),
        receive_path::findings(dataset),
        host_counters::findings(dataset),
    ];
    let (cautions, mut findings): (Vec<_>, Vec<_>) =
        all.into_iter().flatten().partition(is_caution);
    let cautions = once_a_kind(cautions);
    // The sort is stable: within one importance findings stay in the order of the rules.
    let own = dataset.own_congestion();
    findings.sort_by(|a, b| {
        let key = |found: &Found<'_>| {
            let rank = if found.is_lever(own) {
                0
            } else {
                importance(found)
            };
            (rank, -gain(found))
        };
        key(a)
            .partial_cmp(&key(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    findings.truncate(FINDINGS_MAX);
    Told { findings, cautions }
}

/// Keeps of cautions of one kind about one host the one with the greatest effect: experiments often
/// meet the same.
fn once_a_kind(cautions: Vec<Found<'_>>) -> Vec<Found<'_>> {
    let mut kept: Vec<Found<'_>> = Vec::new();
    for caution in cautions {
        let is_same =
            |known: &&mut Found<'_>| known.what == caution.what && caution.what != What::Placement;
        match kept.iter_mut().find(is_same) {
            Some(known) if known.effect.value >= caution.effect.value => {}
            Some(known) => *known = caution,
            None => kept.push(caution),
        }
    }
    kept
}

/// A limit of our own generator says nothing of the host: the number is a lower bound.
fn is_caution(found: &Found<'_>) -> bool {
    matches!(
        found.kind(),
        FindingKind::Caution | FindingKind::Limiter(Limiter::Generator)
    )
}

/// How far an effect is from none, by its interval's end next to it.
fn gain(found: &Found<'_>) -> f64 {
    let effect = &found.effect;
    let certain = match (effect.low, effect.high) {
        (Some(low), _) if low > 1.0 => low.ln(),
        (_, Some(high)) if high < 1.0 && high > 0.0 => -high.ln(),
        _ => 0.0,
    };
    match found.kind() {
        FindingKind::Effect | FindingKind::Plateau => certain,
        _ => 0.0,
    }
}

/// What can be mended comes first, what describes comes last.
fn importance(found: &Found<'_>) -> u32 {
    match found.kind() {
        FindingKind::Limiter(limiter) => {
            let own = if found.is_own_doing() {
                OWN_IMPORTANCE_MIN
            } else {
                0
            };
            rules::rule_of(limiter).map_or(1, |rule| rule.importance.max(own))
        }
        FindingKind::Plateau => 0,
        FindingKind::Effect => 3,
        FindingKind::Loss | FindingKind::Caution => 5,
    }
}
