//! A full path of datagrams whose rate nobody knew.
//!
//! Datagrams have no round trip. Their path is full where some are lost that no host counts, and so evenly as
//! chance hardly loses them ([`crate::reduce`] has the dispersion, and what was seen): as many of those sent as before, or
//! as many arrive from reading to reading. Chance is less even the more readings there are: one set of ten in 3000 has a
//! dispersion below 0.1, of twenty below 0.2, of thirty below 0.3. Bursts at a rate may overflow a short queue as
//! evenly, and say nothing. What the sender's own queueing discipline holds back is not lost: less is sent than was
//! asked for.
//!
//! Beside other traffic it is not asked how even it is, where all that passes is steady ([`super::path_rate`]).
//!
//! Where the dispersion is that of independent losses they are no full path's: what was asked for is sent
//! ([`super::pacing`]).

use std::ops::RangeInclusive;

use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;
use linerate_model::unit::Unit;

use super::evidence;
use super::path_rate::{
    DATAGRAM_BYTES_MAX, LOST_SHARE_MIN, RULE, datagrams_wait_in_own_qdisc, of_others, passes,
    shared,
};
use super::rule::{Judge, Rule};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{EVEN_DISPERSION_MAX, Values, name};
use crate::words;

/// Dispersion up to which what is lost is even, for each reading.
const EVEN_DISPERSION_OF_READING: f64 = 0.01;
/// Dispersion of independent losses: of twenty readings 95 in 100 sets have 0.47 to 1.7, of thirty 0.56 to 1.6.
const INDEPENDENT_DISPERSION: RangeInclusive<f64> = 0.4..=2.0;
/// Readings from which on that is told from other losses: two pauses of a machine are a fifth of ten.
const INDEPENDENT_READINGS_MIN: f64 = 20.0;
/// Share of what is lost that no host counts, from which on the path lost it.
const NOT_LOCATED_SHARE_MIN: f64 = 0.9;

pub(super) const DATAGRAMS: Rule = Rule {
    judge: Judge::Cell(of_datagrams),
    evident: Some(mend),
    ..RULE
};

pub(super) const OWN_QDISC: Rule = Rule {
    judge: Judge::Cell(of_own_qdisc),
    ..RULE
};

/// Whether nearly all datagrams that are lost are counted at no host; absent where the receiving one was not read, which may
/// have lost them.
pub(super) fn loses_unlocated(cell: &CellOutcomes<'_>) -> Option<bool> {
    cell.mean(name::LOST_BACKLOG)?;
    let lost = cell.mean(name::LOSS_SHARE)? * cell.mean(name::DATAGRAMS_SENT)?;
    Some(cell.mean(name::LOST_NOT_LOCATED)? >= NOT_LOCATED_SHARE_MIN * lost)
}

/// Whether so many datagrams are lost on the way that a path might be full, but independently of each other.
pub(super) fn loses_by_chance(cell: &CellOutcomes<'_>) -> bool {
    let dispersion = cell.mean(name::LOSS_DISPERSION);
    cell.reaches(name::LOSS_SHARE, LOST_SHARE_MIN)
        && loses_unlocated(cell) == Some(true)
        && cell.reaches(name::LOSS_READINGS, INDEPENDENT_READINGS_MIN)
        && dispersion.is_some_and(|quotient| INDEPENDENT_DISPERSION.contains(&quotient))
        && !goes_in_bursts(cell)
}

/// Bursts with pauses between them may overflow a short queue before a path that would carry their rate.
fn goes_in_bursts(cell: &CellOutcomes<'_>) -> bool {
    let manner = &cell.workload.manner;
    manner.rate_bps.is_some() && manner.batch.max(manner.burst).max(manner.segments) > 1
}

/// The path passes a rate of datagrams and loses what is more; of both directions [`super::both_ways`] judges each.
fn of_datagrams(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let lost = cell.estimate(name::LOSS_SHARE)?;
    if cell.workload.goes_both_ways() {
        return None;
    }
    let is_of_path = loses_unlocated(cell)?;
    let is_even = || {
        let of_readings = EVEN_DISPERSION_OF_READING * cell.mean(name::LOSS_READINGS)?;
        Some(cell.mean(name::LOSS_DISPERSION)? <= EVEN_DISPERSION_MAX.min(of_readings))
    };
    let shared = shared(cell);
    if lost.value < LOST_SHARE_MIN
        || !is_of_path
        || (shared.is_none() && is_even() != Some(true))
        || goes_in_bursts(cell)
    {
        return None;
    }
    Some(Verdict {
        limiter: Limiter::PathRate,
        claim: format!(
            "The path is full{}{}{}, and what is more is lost on the way: {} of the datagrams.",
            passes(cell, &throughput, ""),
            in_packets(cell),
            of_others(cell),
            words::percent(lost.value),
        ),
        explanation: shared.unwrap_or_else(|| {
            "What arrives, or the share that is lost, hardly varies from reading to reading, as where a slower \
             link, a shaper or a policer passes a rate: lost by chance, it would. No counter that was read \
             has them. Where it is so, next to none is lost while all flows together send less than this."
                .to_owned()
                + if is_small(cell) {
                    " Of datagrams as small as these it may be a limit of packets per second as well as one of bits: larger \
                     ones tell."
                } else {
                    ""
                }
        }),
        effect: throughput,
        evidence: cell.proof(&[
            ("throughput", name::THROUGHPUT),
            ("payload that was sent", name::THROUGHPUT_SENT),
            ("share of the datagrams lost", name::LOSS_SHARE),
            ("datagrams lost where no host counts them", name::LOST_NOT_LOCATED),
            ("dispersion of what is lost", name::LOSS_DISPERSION),
            evidence::OTHERS_SHARE,
            evidence::ALL_PASSED,
            evidence::ALL_PASSED_VARIATION,
        ])?,
        weight: throughput.value,
    })
}

/// Says how many datagrams pass a path, where they are so small that it may be their number that is limited.
fn in_packets(cell: &CellOutcomes<'_>) -> String {
    let rate = cell.mean(name::DATAGRAMS_RECEIVED_RATE);
    let rate = rate.filter(|_| is_small(cell));
    rate.map_or(String::new(), |rate| {
        format!(", {} per second", words::things(rate.round(), "datagram"))
    })
}

/// Whether datagrams are less than half of a packet: as many of twice the size are the same number, and twice the rate.
fn is_small(cell: &CellOutcomes<'_>) -> bool {
    let bytes = cell.message_bytes();
    bytes.is_some_and(|bytes| 2 * bytes <= DATAGRAM_BYTES_MAX)
}

/// What tells a limit of packets from one of bits.
fn mend(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<String> {
    let is_udp = cell.workload.manner.transport == Transport::Udp;
    let in_packets = is_udp && is_small(cell) && shared(cell).is_none();
    let words = "repeat with `-l 1400`: where as many datagrams per second pass, the path limits packets (a small router or \
                 firewall, a cloud's allowance); where the same rate in bit/s does, it limits bits";
    if in_packets && !datagrams_wait_in_own_qdisc(cell) {
        return Some(words.to_owned());
    }
    RULE.evident.and_then(|mend| mend(dataset, cell))
}

/// The sending host's own queueing discipline has a backlog, which holds the sender by its socket buffer: nothing is lost,
/// and less is sent than was asked for.
fn of_own_qdisc(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let backlog = cell.estimate(name::QDISC_BACKLOG)?;
    if cell.workload.goes_both_ways() || !datagrams_wait_in_own_qdisc(cell) {
        return None;
    }
    Some(Verdict {
        limiter: Limiter::PathRate,
        claim: format!(
            "The path is full{}, and {} wait before it in the sending host's own qdisc.",
            passes(cell, &throughput, ""),
            words::number(Unit::Bytes, backlog.value),
        ),
        explanation: "A sender whose datagrams wait in its own host's qdisc waits for space in its socket buffer: less \
                      is sent, and nothing is lost. The qdisc shapes, or its device is slower (`tc -s qdisc`)."
            .to_owned(),
        effect: throughput,
        evidence: cell.proof(&[
            ("throughput", name::THROUGHPUT),
            ("payload that was sent", name::THROUGHPUT_SENT),
            ("bytes that wait in the own qdisc", name::QDISC_BACKLOG),
            ("share of the datagrams lost", name::LOSS_SHARE),
            evidence::WORKER_RAN,
        ])?,
        weight: throughput.value,
    })
}
