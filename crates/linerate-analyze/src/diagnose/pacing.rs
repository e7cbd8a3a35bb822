//! Pacing: a rate that was asked for, or that TCP's congestion control gives itself.
//!
//! 1. *Asked for.* The rate of payload is at least 95 % of flows × `--bitrate`, or 90 % of flows ×
//!    `--fq-rate` (SO_MAX_PACING_RATE counts headers where the fq queueing discipline paces, and 10 % is more
//!    than they are at any MTU), or of what an agent allows where that is less; or transactions are at least 98 % of those that `--rate` begins. Not where a
//!    hundredth of the datagrams is lost, or where less than 99.8 % come (less what headers take of
//!    `--fq-rate`, and two segments) while data waits in a queue most of the time, or is what Ethernet carries and some
//!    of it is lost: then the path does not carry what was asked for. Nor of TCP where less than 98.5 % come while most
//!    trials lost segments, were held by a window or a buffer, or had a saturated worker. Datagrams that are lost
//!    independently of each other are no full path's ([`super::datagram_rate`]): of these counts what is sent.
//!    Connections and requests make up for what came late, also for what was missed in the warm-up: so much more than the
//!    rate may be in the window (106 % was seen of 3 s after 200 ms, with a quota that held the start), and nothing else
//!    limited it.
//! 2. *TCP's own.* No agent held the trial to a rate, which the kernel then paces at, the sending ends run an
//!    algorithm that paces (bbr), no queue makes the round trip long
//!    (with one it tracks a bottleneck, see [`super::stream`]), the receiver's window and the send buffer
//!    held less than half of the time (the send buffer of a long path less than a tenth), data was outstanding for at least half of it, and the throughput
//!    is within 25 % of the mean pacing rate (tcpi_pacing_rate). bbr takes its rate from the delivery that
//!    it measures, so that the two agree wherever nothing else holds the sender. What may be a full path is
//!    therefore not called its own: a link that is full with what was retransmitted, a steady rate that is
//!    what Ethernet carries, segments lost (a policer, a queue too short to be seen), and on a long path a
//!    round trip above its shortest, where a cap leaves 1.01 and probing a bottleneck makes 1.06 and more.
//!    On loopback the estimate is the best of short bursts and the mean stays further below it
//!    (36 of 80 Gbit/s was seen): down to 30 % counts where workers neither ran nor waited for a
//!    CPU for three quarters of the time, the congestion window allows twice as much, the round trip is
//!    below half a millisecond and nobody waited for the send buffer, so that the timers are all that is
//!    left.

use std::iter;

use linerate_model::finding::Estimate;
use linerate_model::flag::TrialFlag;
use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;
use linerate_model::unit::{BitsPerSec, Unit};
use linerate_model::workload::Workload;

use super::datagram_rate::loses_by_chance;
use super::evidence;
use super::link_rate::{FULL_SHARE_MIN, share_of};
use super::path_rate::{
    LOST_SHARE_MIN, OVERFLOW_SHARE_MIN, framing_bytes, is_of_ethernet, is_what_ethernet_carries,
};
use super::rule::{Judge, Rule};
use super::trial::{
    MOST, SIGNALS_MIN, TrialView, VARIATION_LINE_MAX, hides_path, pacing_algorithm,
};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Amount, Outcome, Values, WHOLE_SHARE_MIN, WORKER_SATURATED_SHARE, name};
use crate::trust::lost_unread;
use crate::words;

/// Share of the rate that our pacer was asked for from which on it is what holds.
const BITRATE_SHARE_MIN: f64 = 0.95;
/// The same where the kernel paces, headers included.
const FQ_RATE_SHARE_MIN: f64 = 0.90;
/// The same for requests that begin by the clock.
pub(crate) const REQUESTS_SHARE_MIN: f64 = 0.98;
/// The same where the rest is what Ethernet of a common rate carries: the first second filled its queue and lost nothing.
const LOST_SHARE_LINE_MIN: f64 = 0.001;
/// Segments that the edges of a window may keep out of it.
const EDGE_SEGMENTS: f64 = 2.0;
/// Share of what was asked for up to which it is what holds, beside what the warm-up missed.
const REACHED_SHARE_MAX: f64 = 1.05;
/// The same from which on something was missed.
const MADE_UP_SHARE_MIN: f64 = 1.01;
/// Largest relative difference of throughput and TCP's own pacing rate.
const PACING_DIFFERENCE_MAX: f64 = 0.25;
/// Share of the pacing rate that a flow reaches which sends in short bursts.
const BURST_SHARE_MIN: f64 = 0.3;
/// Share of the time below which the busiest worker wanted no CPU, and could have done more.
const WORKER_WANTED_SHARE_REST: f64 = 0.75;
/// Share of the time up to which waiting for the send buffer is none to speak of.
const WAITED_SHARE_MAX: f64 = 0.1;
/// Shortest round trip up to which timers and bursts are what is left.
const SHORT_NS_MAX: f64 = 500_000.0;
/// Quotient of what the congestion window allows and the rate from which on it is roomy.
const ROOMY_QUOTIENT_MIN: f64 = 2.0;
/// Smoothed over shortest round trip of a long path from which on probing may have met a bottleneck.
const PROBED_QUOTIENT_MIN: f64 = 1.05;
/// Share of the segments lost from which on probing may have met one that drops: a path that does not drop
/// what is sent beyond its rate, but damages frames, loses less.
const PROBED_LOSS_SHARE_MIN: f64 = 1e-3;

pub(super) const ASKED: Rule = Rule {
    limiter: Limiter::Pacing,
    needs: "the requested rate; or TCP's own pacing rate (bbr) and nothing else",
    importance: 1,
    explains_failure: false,
    judge: Judge::Cell(asked),
    evident: Some(mend),
    next,
};

/// What to do about a limit of the agent's, or datagrams that chance takes.
fn mend(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<String> {
    let words = if agents_limit(cell).is_some() {
        "repeat with a token of that agent (`linerate token add NAME` there), or with a higher `serve --limit-rate`"
    } else if loses_by_chance(cell) {
        "find what loses datagrams by chance: `ip -s link` along the path, cable, optics, Wi-Fi; at half of `-b` the \
         same share is lost"
    } else {
        return None;
    };
    Some(words.to_owned())
}

fn next(workload: &Workload) -> Option<String> {
    let manner = &workload.manner;
    let is_requested = manner.rate_bps.is_some()
        || manner.rests_between_requests()
        || workload.options.pacing_bps.is_some();
    let words = if !is_requested {
        "compare `-C cubic`: a window limits it, not a pacing rate"
    } else if workload.traffic.is_stream() && manner.transport == Transport::Udp {
        "repeat with a higher `-b` to find what the path carries"
    } else if manner.think.is_some() {
        "omit `--think` to find what path and hosts carry"
    } else if manner.has_pauses() {
        "leave the pauses out of the steps to find what path and hosts carry"
    } else {
        "omit the rate to find what the path carries"
    };
    Some(words.to_owned())
}

pub(super) const OWN: Rule = Rule {
    judge: Judge::Cause(
        |trial| {
            trial.setup.paces
                && !trial.outcome.flags.iter().any(TrialFlag::is_agents_limit)
                && !trial.may_be_queued()
                && !hides_path(trial.outcome)
                && trial.leaves_link(FULL_SHARE_MIN)
                && !may_be_full(trial)
                && trial.workers_rest()
                && fits(trial)
        },
        tell,
    ),
    ..ASKED
};

/// A rate that was asked for.
struct Asked {
    flag: &'static str,
    /// How to measure without it.
    without: &'static str,
    each: f64,
    unit: Unit,
    response: &'static str,
    share_min: f64,
    /// The rate is that of frames, which have headers beside the payload.
    counts_headers: bool,
}

/// Returns the rate that an agent held all flows together to, where that is less than what was asked for.
fn agents_limit(cell: &CellOutcomes<'_>) -> Option<BitsPerSec> {
    let flags = cell.valid.iter().flat_map(|outcome| &outcome.flags);
    let limits = flags.filter_map(TrialFlag::agents_limit);
    let limit = limits.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let flows = f64::from(cell.workload.connections);
    let asked = what_was_asked(cell).map(|asked| flows * asked.each);
    let is_less = asked.is_none_or(|asked| limit.0 < BITRATE_SHARE_MIN * asked);
    (cell.workload.traffic.is_stream() && is_less).then_some(limit)
}

/// The limit is what an agent allows its callers.
fn allowed(cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let limit = agents_limit(cell)?;
    let reached = cell.estimate(name::THROUGHPUT)?;
    let share = share_of(&reached, limit.0);
    // The agent has the kernel pace TCP, with headers where fq does, and its own worker datagrams.
    let is_udp = cell.workload.manner.transport == Transport::Udp;
    let (share_min, counts_headers) = if is_udp {
        (BITRATE_SHARE_MIN, false)
    } else {
        (FQ_RATE_SHARE_MIN, true)
    };
    if !is_held(cell, share_min, counts_headers, share.value) {
        return None;
    }
    let allows = Estimate::point(limit.0, Unit::BitsPerSecond);
    Some(Verdict {
        limiter: Limiter::Pacing,
        claim: format!(
            "The agent's limit is what holds: {} of the {} that it allows this caller.",
            words::estimate(&reached),
            words::estimate(&allows),
        ),
        explanation: "Path and hosts carry at least this much. A token, or a higher `serve --limit-rate`, shows \
                      their limit."
            .to_owned(),
        effect: share,
        evidence: cell.proof_with(
            &[("throughput", name::THROUGHPUT)],
            [("rate that the agent allows, all flows together", allows)],
        )?,
        weight: share.value,
    })
}

/// The limit is a rate that was asked for, or that an agent allows.
fn asked(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    requested(dataset, cell).or_else(|| allowed(cell))
}

fn requested(_dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let flows = f64::from(cell.workload.connections);
    let asked = what_was_asked(cell)?;
    let lost = if loses_by_chance(cell) {
        cell.estimate(name::LOSS_SHARE)
    } else {
        None
    };
    let response = match lost {
        Some(_) => name::THROUGHPUT_SENT,
        None => asked.response,
    };
    let reached = cell.estimate(response)?;
    let share = share_of(&reached, flows * asked.each);
    if !is_held(cell, asked.share_min, asked.counts_headers, share.value) {
        return None;
    }
    let total = match cell.workload.connections {
        1 => String::new(),
        count => format!(
            " for each of {count} flows, {} in total",
            asked.unit.display(flows * asked.each)
        ),
    };
    let computed = Estimate::point(flows * asked.each, asked.unit);
    let what = crate::reduce::describe(response).title;
    let (how, explanation) = match &lost {
        Some(lost) => by_chance(lost),
        None => (
            if share.value >= MADE_UP_SHARE_MIN && makes_up(cell) {
                "; what is more makes up for what was missed before the window".to_owned()
            } else {
                String::new()
            },
            format!(
                "Path and hosts carry at least this much. {} to find their limit.",
                asked.without
            ),
        ),
    };
    let of_lost = lost.map(|_| {
        [
            ("share of the datagrams lost", name::LOSS_SHARE),
            ("dispersion of what is lost", name::LOSS_DISPERSION),
        ]
    });
    let rate = iter::once((what, response));
    let pieces: Vec<_> = rate.chain(of_lost.into_iter().flatten()).collect();
    Some(Verdict {
        limiter: Limiter::Pacing,
        claim: format!(
            "The requested rate is the limit: {} with {} {}{total}{how}.",
            words::estimate(&reached),
            asked.flag,
            asked.unit.display(asked.each),
        ),
        explanation,
        effect: share,
        evidence: cell.proof_with(&pieces, [("requested rate, all flows together", computed)])?,
        weight: share.value,
    })
}

/// What is said of a requested rate that is sent whole, of which some is lost independently of each other.
fn by_chance(lost: &Estimate) -> (String, String) {
    let how = format!(
        "; {} of the datagrams are lost on the way, independently of each other",
        words::percent(lost.value)
    );
    let explanation = "A full queue or a policer passes a rate, and loses evenly what is more. These are lost by chance, as \
                       where frames are damaged or dropped at random (of a datagram of several packets each has to \
                       arrive), or where a managed queue (RED, PIE) does so. Check error counters along the path \
                       (cable, optics, Wi-Fi).";
    (how, explanation.to_owned())
}

/// Whether `share` of a rate is what holds: enough of it came, and nothing else kept the rest away.
fn is_held(cell: &CellOutcomes<'_>, share_min: f64, counts_headers: bool, share: f64) -> bool {
    let payload = payload_share(cell, share_min, counts_headers);
    // Far above it nobody kept to it: an old agent, or a damaged recording.
    let timing = &cell.experiment.timing;
    let missed = if makes_up(cell) {
        timing.warm_up.0 as f64 / timing.measure.0.max(1) as f64
    } else {
        0.0
    };
    (share_min..=REACHED_SHARE_MAX + missed).contains(&share)
        && !loses_unread(cell)
        && !is_beyond_path(cell, payload, share)
        && !may_fall_short(cell, share / payload)
}

/// Whether what came late is made up for, however late: datagrams forget it.
fn makes_up(cell: &CellOutcomes<'_>) -> bool {
    let is_exchange = !cell.workload.traffic.is_stream();
    is_exchange || cell.workload.manner.transport != Transport::Udp
}

/// Whether the path does not carry all of what was asked for: it loses, or a queue stands before it.
fn is_beyond_path(cell: &CellOutcomes<'_>, payload: f64, share: f64) -> bool {
    // Of streams over TCP it is known, unless nobody read their round trips.
    let is_read =
        cell.workload.traffic.is_stream() && cell.workload.manner.transport == Transport::Tcp;
    let may_be_queued = is_read && !cell.stays_below(name::QUEUED, MOST);
    // The edges of a window may divide what is sent at once.
    let segments = cell.mean(name::SEGMENTS_SENT).unwrap_or(f64::INFINITY);
    let least = payload * (WHOLE_SHARE_MIN - EDGE_SEGMENTS / segments);
    let is_less = share < least;
    let is_udp = cell.workload.manner.transport == Transport::Udp;
    let of_datagrams = is_udp && cell.workload.traffic.is_stream();
    // What nobody counted may be lost.
    let loses = |from| of_datagrams && !cell.stays_below(name::LOSS_SHARE, from);
    (loses(LOST_SHARE_MIN) && !loses_by_chance(cell))
        || (is_less && may_be_queued)
        || (is_less && is_what_ethernet_carries(cell) && loses(LOST_SHARE_LINE_MIN))
}

/// Whether a TCP flow that has less of what was asked for may be held by something else, in most trials: it is, or nobody
/// knows. Who paces makes up for what came late.
fn may_fall_short(cell: &CellOutcomes<'_>, share: f64) -> bool {
    let is_held_back = |outcome: &&Outcome| {
        // What of it had arrived is told of streams alone.
        let again = outcome.amount(name::RETRANSMITTED);
        let needless = Amount::from(Some(outcome.amount(name::SPURIOUS).least()));
        let many = OVERFLOW_SHARE_MIN * outcome.amount(name::SEGMENTS_SENT).least();
        !(again - needless).stays_below(SIGNALS_MIN.max(many))
            || !outcome.stays_below(name::RWND_LIMITED, MOST)
            || !outcome.stays_below(name::SNDBUF_LIMITED, MOST)
            || !outcome.stays_below(name::WORKER_WANTED_SHARE_MAX, WORKER_SATURATED_SHARE)
    };
    let held_back = cell.valid.iter().filter(is_held_back).count();
    share < FULL_SHARE_MIN
        && cell.workload.manner.transport.is_tcp()
        && 2 * held_back > cell.valid.len()
}

/// The part of a rate that was asked for that is payload; the least that passes for it where the segments are not known.
fn payload_share(cell: &CellOutcomes<'_>, share_min: f64, counts_headers: bool) -> f64 {
    let segment = cell.mean(name::PAYLOAD_PER_SEGMENT);
    if counts_headers {
        segment.map_or(share_min, |bytes| bytes / (bytes + framing_bytes()))
    } else {
        1.0
    }
}

/// Whether datagrams were lost since our own reader had no time: then it is a limit, too.
pub(super) fn loses_unread(cell: &CellOutcomes<'_>) -> bool {
    let mut valid = cell.valid.iter();
    valid.any(|outcome| lost_unread(&cell.workload, outcome).is_some())
}

/// The lowest of the rates that were asked for.
fn what_was_asked(cell: &CellOutcomes<'_>) -> Option<Asked> {
    let manner = &cell.workload.manner;
    if !cell.workload.traffic.is_stream() {
        return Some(Asked {
            flag: "--rate",
            without: "Leave out --rate",
            each: f64::from(manner.requests_per_s?),
            unit: Unit::PerSecond,
            response: name::TRANSACTIONS,
            share_min: REQUESTS_SHARE_MIN,
            counts_headers: false,
        });
    }
    let asked = |(flag, without), rate: Option<u64>, share_min, counts_headers| {
        Some(Asked {
            flag,
            without,
            each: rate? as f64,
            unit: Unit::BitsPerSecond,
            response: name::THROUGHPUT,
            share_min,
            counts_headers,
        })
    };
    // Datagrams have a rate of 1 Mbit/s where none is asked for.
    let bitrate = match manner.transport {
        Transport::Udp => ("--bitrate", "Set `-b 0`"),
        _ => ("--bitrate", "Leave out --bitrate"),
    };
    let rates = [
        asked(bitrate, manner.rate_bps, BITRATE_SHARE_MIN, false),
        asked(
            ("--fq-rate", "Leave out --fq-rate"),
            cell.workload.options.pacing_bps,
            FQ_RATE_SHARE_MIN,
            true,
        ),
    ]
    .into_iter()
    .flatten();
    rates.min_by(|a, b| a.each.total_cmp(&b.each))
}

/// Whether the throughput of a trial is what TCP's congestion control paces itself at.
fn fits(trial: &TrialView<'_>) -> bool {
    let outcome = trial.outcome;
    let may_be_held = [name::RWND_LIMITED, name::SNDBUF_LIMITED]
        .iter()
        .any(|held| !outcome.stays_below(held, MOST));
    let Some(relation) = relation(outcome) else {
        return false;
    };
    let near = (relation - 1.0).abs() <= PACING_DIFFERENCE_MAX;
    let in_bursts = (BURST_SHARE_MIN..1.0).contains(&relation) && is_last(outcome);
    let waits = outcome.reaches(name::SNDBUF_LIMITED, WAITED_SHARE_MAX);
    let in_bursts = in_bursts && is_short(trial) && !waits;
    // What pacing holds back is unsent in the buffer: nobody waits there for what is in flight.
    let near = near && !(trial.is_long() && waits);
    let busy = outcome.reaches(name::BUSY, MOST);
    busy && !may_be_held && (near || in_bursts) && !is_a_line(trial)
}

/// The limit is what TCP's congestion control paces itself at.
fn tell(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let algorithm = pacing_algorithm(dataset, cell)?;
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let pacing = cell.estimate(name::PACING)?;
    let share = cell.derived(Unit::Ratio, relation)?;
    let worker = cell
        .mean(name::WORKER_BUSY_SHARE_MAX)
        .map_or(String::new(), |busy| {
            format!(
                ", while the busiest worker ran {} of the time",
                words::percent(busy)
            )
        });
    Some(Verdict {
        limiter: Limiter::Pacing,
        claim: format!(
            "The congestion control paces itself: {algorithm} allows {} and throughput is {}{worker}.",
            words::estimate(&pacing),
            words::estimate(&throughput),
        ),
        explanation: format!(
            "{algorithm} spaces segments by its own estimate of the path's bandwidth. Where the sending \
             device has no fq qdisc, TCP does that with a timer for each flow, in small bursts, and on a \
             fast path the estimate settles far below what path and hosts can carry. No queue on the path \
             made the round trip long. If the path really is that slow, another algorithm gets no more."
        ),
        effect: share,
        evidence: cell.proof(&[
            ("throughput", name::THROUGHPUT),
            ("pacing rate of all flows", name::PACING),
            ("smoothed round trip", name::TCP_RTT),
            ("shortest round trip", name::TCP_MIN_RTT),
            ("share of the time with data outstanding", name::BUSY),
            evidence::AT_WINDOW,
            evidence::AT_BUFFER,
            evidence::WORKER_RAN,
        ])?,
        weight: 1.0 - (share.value - 1.0).abs(),
    })
}

/// What bbr sends beyond its estimate, to find more, may have met a bottleneck.
fn may_be_full(trial: &TrialView<'_>) -> bool {
    let quotient = trial.value(name::TCP_RTT).zip(trial.setup.shortest_ns());
    let waits = quotient.is_none_or(|(rtt, shortest)| rtt >= PROBED_QUOTIENT_MIN * shortest);
    let lost = trial.share_of(trial.losses());
    (trial.is_long() && waits) || !lost.stays_below(PROBED_LOSS_SHARE_MIN)
}

/// The round trip is that of one machine or rack, where the best of short bursts is far above the mean.
fn is_short(trial: &TrialView<'_>) -> bool {
    let shortest = trial.setup.shortest_ns();
    shortest.is_some_and(|ns| ns < SHORT_NS_MAX)
}

/// Neither a CPU nor the congestion window can be what the sender waits for.
fn is_last(outcome: &Outcome) -> bool {
    outcome.stays_below(name::WORKER_WANTED_SHARE_MAX, WORKER_WANTED_SHARE_REST)
        && is_roomy(outcome) == Some(true)
}

/// The congestion window holds far more than what is in flight.
fn is_roomy(outcome: &Outcome) -> Option<bool> {
    let window = outcome.value(name::CWND)? * outcome.value(name::SEND_MSS)?;
    Some(window > ROOMY_QUOTIENT_MIN * outcome.value(name::IN_FLIGHT)?)
}

/// The rate is steady, and what was sent is what Ethernet carries.
fn is_a_line(trial: &TrialView<'_>) -> bool {
    let is_steady = trial.stays_within(name::RATE_VARIATION, VARIATION_LINE_MAX);
    let rate = trial.sent_bps().zip(trial.value(name::PAYLOAD_PER_SEGMENT));
    // The sum of both directions is no line's.
    let ways = [name::THROUGHPUT_TO_SERVER, name::THROUGHPUT_FROM_SERVER];
    let is_one_way = ways.iter().any(|way| trial.value(way).is_none());
    is_steady && is_one_way && rate.is_some_and(|(rate, segment)| is_of_ethernet(rate, segment))
}

/// Throughput as a share of the pacing rate.
fn relation(outcome: &Outcome) -> Option<f64> {
    let pacing = outcome.value(name::PACING).filter(|rate| *rate > 0.0)?;
    Some(outcome.value(name::THROUGHPUT)? / pacing)
}
