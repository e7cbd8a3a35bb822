//! A full path whose rate nobody knew.
//!
//! It is known by the queue before it: the round trip under load lies above the shortest one, while
//! neither end is behind. What waits is rate × extra round trip (Little's law, here of the queue alone).
//! The queue may as well be one of ACKs on their way back. What a full path carries is steady, and what ACKs
//! that come in bursts let go is not.
//!
//! Where nobody read the receiving end and its window held the sender most of the time, a program that reads
//! slowly looks the same, and nothing is told.
//!
//! Of a queue that is short beside the round trip, the rate tells: as steady as a line's (a deviation of 0.0003 to 0.02 from
//! reading to reading, of one flow), while the sender always has data, neither window nor its buffer holds it, and its
//! congestion window has room, or loses some, or grows and makes nothing but the round trip longer. A policer whose rate
//! several flows share is as steady.
//!
//! A rate that changes now and then is the path's if it is as steady between the changes, while the round trip is not: what
//! a window holds, the round trip changes.
//!
//! Where CPU time was lost meanwhile, or the rate is not steady, the path was not full all the time: then it
//! carries at least this much. With several flows the queue may never have been empty, so that the shortest
//! round trip holds a part of it: then at least this much waits.
//!
//! A path that is shared with others is known by what passes the device of the flows as well (`reduce/beside.rs`): all of it
//! is as steady as a line (a deviation of up to 0.01 behind the bottleneck), while the flows' part varies by 0.03 to 0.3,
//! since others have what it leaves. Then neither the rate nor the round trip need be that of a queue of the flows'
//! own: TCP's shortest round trip holds the others' queue (14 of 21 ms were seen on a wire of 9 µs).
//!
//! Where the payload is what Ethernet of a common rate carries at this segment size, that is said; shapers
//! count frames without checksum, preamble and gap, so that a little more passes them.

use linerate_model::finding::Estimate;
use linerate_model::flag::TrialFlag;
use linerate_model::limiter::Limiter;
use linerate_model::manner::Transport;
use linerate_model::number::agreeing;
use linerate_model::unit::Unit;
use linerate_model::wire::{ETHERNET_HEADER_BYTES, ETHERNET_UNSEEN_BYTES};

use super::evidence;
use super::link_rate::FULL_SHARE_MIN;
use super::repeat;
use super::rule::{Judge, Rule};
use super::trial::{self, ELASTICITY_MIN, MOST, Setup, TrialView, VARIATION_LINE_MAX, shortest_ns};
use super::verdict::Verdict;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{
    ArrivalShaper, Outcome, TCP_HEADERS_BYTES, UDP_HEADERS_BYTES, Values, WORKER_SATURATED_SHARE,
    arrival_shaper, name,
};
use crate::words;

/// Rates of Ethernet (IEEE 802.3), bit/s.
const ETHERNET_BPS: &[f64] = &[
    10e6, 100e6, 1e9, 2.5e9, 5e9, 10e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9,
];
/// Payload up to which a datagram is one packet of the usual path.
pub(super) const DATAGRAM_BYTES_MAX: u64 = 1472;
/// What Ethernet puts around a packet.
const FRAME_BYTES: f64 = (ETHERNET_HEADER_BYTES + ETHERNET_UNSEEN_BYTES) as f64;
/// How far from the arithmetic a rate may lie: ACKs and what was sent again take some.
const BELOW_MAX: f64 = 0.985;
const ABOVE_MAX: f64 = 1.005;
/// Share of the segments from which on what is lost is the queue's doing: damaged frames are fewer.
pub(super) const OVERFLOW_SHARE_MIN: f64 = 1e-4;
/// Share of what a known link carries from which on a full path is that link.
const LINK_SHARE_MIN: f64 = 0.85;
/// The same of one trial, which has no interval: a shaper may give 90 % of a link.
const LINK_SHARE_ALONE_MIN: f64 = 0.97;

/// Deviation of the rate from reading to reading beyond which no queue is always full on the way of the
/// data: 0.02 to 0.16 were seen of full paths, shared ones and such that drop; 0.3 to 1.1 where ACKs wait on
/// theirs.
pub(super) const VARIATION_MAX: f64 = 0.25;
/// The same where nobody read the receiving end: ACKs that wait come more evenly than what they let go, and
/// 0.13 was seen of them.
const VARIATION_ONE_SIDED_MAX: f64 = 0.1;

/// Segments from which on what waits is a queue.
pub(super) const WAITING_SEGMENTS_MIN: f64 = 3.0;
/// Share of the datagrams lost from which on the path does not carry what is sent.
pub(crate) const LOST_SHARE_MIN: f64 = 0.01;
/// Segments of a congestion window up to which the last of a flight often waits for the delayed-ACK timer.
const WINDOW_SEGMENTS_SMALL: f64 = 3.0;
/// Share of the time that the receiver's window holds the sender from which on nothing else does.
pub(super) const HELD_ALWAYS_MIN: f64 = 0.9;
/// Share of what waits that is on its way to the receiver where the queue is on that way; 0.08 was seen of ACKs that
/// wait, 0.6 and more of the others.
const FORWARD_SHARE_MIN: f64 = 0.3;
/// Elasticity of the round trip beyond which the rate falls while it grows: a path of one rate has 1, and no more than
/// 1.19 was seen of any; 1.27 and 1.34 of one that became longer.
const ELASTICITY_MAX: f64 = 1.2;
/// Smoothed over shortest round trip from which on another way hardly explains it.
pub(super) const BLOATED_QUOTIENT_MIN: f64 = 2.0;

pub(super) const RULE: Rule = Rule {
    limiter: Limiter::PathRate,
    needs: "round trips well above the shortest, while the reader keeps up: a queue",
    importance: 2,
    explains_failure: false,
    judge: Judge::Cause(
        |trial| trial.shares_full_path() || (trial.is_queued() && !trial.pauses()),
        tell,
    ),
    evident: Some(mend),
    next: |workload| {
        let words = if workload.manner.transport == Transport::Udp {
            "repeat with a `-b` whose sum over the flows is below the number above: where next to none is lost then, it \
             is what the path carries"
        } else {
            "find the slowest hop of the path: it carries the number above, and what others send through it"
        };
        Some(words.to_owned())
    },
};

/// What to do about a path that is shared, is the own host's, or is full of requests.
fn mend(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<String> {
    if let Some(shaper) = shaper_of(dataset, cell) {
        return Some(format!(
            "look at `tc -s qdisc show dev {}` of {}: it shapes what arrives",
            shaper.device, shaper.host
        ));
    }
    if shares_full_path(cell) {
        return Some(repeat::WHERE_SHARED.to_owned());
    }
    if waits_in_own_qdisc(dataset, cell) {
        let words = "look at the sending host's own qdisc (`tc -s qdisc`): it shapes, or its device is slower";
        return Some(words.to_owned());
    }
    let is_of_requests = cell.workload.traffic.is_transactional();
    let half = repeat::half_at_a_time(&cell.workload).filter(|_| is_of_requests)?;
    Some(format!(
        "repeat with {half}: where the rate stays, the path is full, and its slowest hop carries the number above"
    ))
}

/// Returns the receiving host's own shaper of what arrives, where each trial passed it.
pub(super) fn shaper_of(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<ArrivalShaper> {
    let trials = cell.valid.iter();
    let shapers = trials.map(|outcome| arrival_shaper(dataset.recording, outcome.trial));
    let mut shapers = shapers.collect::<Option<Vec<_>>>()?;
    let last = shapers.pop()?;
    shapers.iter().all(|one| *one == last).then_some(last)
}

/// Says what is full.
pub(super) fn what_is_full(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> String {
    shaper_of(dataset, cell).map_or("The path".to_owned(), |shaper| {
        let kind = shaper
            .kind
            .map_or(String::new(), |kind| format!(" ({kind})"));
        let (host, device) = (shaper.host, shaper.device);
        format!("The receiving host's own {device}{kind}, which shapes what arrives at {host},")
    })
}

fn tell(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<Verdict> {
    let throughput = cell.estimate(name::THROUGHPUT)?;
    let shortest = shortest_ns(dataset, cell)?;
    // What each of several flows has beyond its own shortest round trip is a queue's for certain: ways may differ.
    let several = cell.workload.connections > 1;
    let waiting = |outcome: &Outcome| {
        let above_own = outcome.value(name::RTT_ABOVE_OWN).filter(|_| several);
        let above = || Some(outcome.value(name::TCP_RTT)? - shortest);
        Some(above_own.or_else(above)?.max(0.0))
    };
    let delay = cell.derived(Unit::Nanoseconds, waiting)?;
    let bytes = cell.derived(Unit::Bytes, |outcome| {
        Some(outcome.value(name::THROUGHPUT)? * waiting(outcome)? / 8e9)
    })?;
    let path = Estimate::point(shortest, Unit::Nanoseconds);
    let mut shown = vec![
        ("throughput", name::THROUGHPUT),
        ("smoothed round trip", name::TCP_RTT),
        ("share of the time with a queue", name::QUEUED),
        evidence::RATE_VARIATION,
        evidence::UNREAD,
        ("segments retransmitted", name::RETRANSMITTED),
        evidence::OTHERS_SHARE,
        evidence::ALL_PASSED,
        evidence::ALL_PASSED_VARIATION,
        (
            "the same over the deviation of the flows' part",
            name::SHARED_OVER_OWN,
        ),
    ];
    if varies(cell) {
        shown.push(("median step of the rate", name::RATE_STEP));
        shown.push(("median step of the smoothed round trip", name::RTT_STEP));
    }
    let evidence = cell.proof_with(
        &shown,
        [
            ("extra waiting under load (computed)", delay),
            ("shortest round trip of the path", path),
            ("bytes that wait before the path (computed)", bytes),
        ],
    )?;
    let is_shared = shares_full_path(cell);
    let several = if several || is_shared {
        "at least "
    } else {
        ""
    };
    let is_of_line = is_of_a_line(dataset, cell);
    let is_none = bytes.value < 1.0;
    let delay = words::number(Unit::Nanoseconds, delay.value);
    let wait = format!(
        "{several}{} ({delay}) wait before it",
        words::number(Unit::Bytes, bytes.value),
    );
    let (limiter, weight, claim) = match known_link(dataset, cell, &throughput) {
        // As [`super::link_rate`] weighs it.
        Some((rate, share)) => (
            Limiter::LinkRate,
            share,
            format!(
                "The link is full: it carries {} of payload at {}, and {wait}.",
                words::estimate(&throughput),
                Unit::BitsPerSecond.display(rate),
            ),
        ),
        None if !is_shared && ((varies(cell) && !is_of_line) || may_be_reader(cell)) => {
            return None;
        }
        None if !is_shared && may_be_other(cell, shortest, is_of_line) => return None,
        None if !is_shared && varies(cell) => (
            Limiter::PathRate,
            throughput.value,
            format!(
                "{} is full, at a rate that changed: {} of payload passed it on average, and {wait}.",
                what_is_full(dataset, cell),
                words::estimate(&throughput),
            ),
        ),
        None => (
            Limiter::PathRate,
            throughput.value,
            format!(
                "{} is full{}{}{}.",
                what_is_full(dataset, cell),
                passes(cell, &throughput, at_least(cell)),
                of_others(cell),
                if is_none {
                    String::new()
                } else {
                    format!(", and {wait}")
                },
            ),
        ),
    };
    Some(Verdict {
        limiter,
        claim,
        explanation: explanation(cell, waits_in_own_qdisc(dataset, cell), limiter),
        effect: throughput,
        evidence,
        weight,
    })
}

/// Returns the words for a path that was not full all the time, or whose rate holds something else.
pub(super) fn at_least(cell: &CellOutcomes<'_>) -> &'static str {
    let disturbed: fn(&TrialFlag) -> bool = |flag| {
        matches!(
            flag,
            TrialFlag::OtherPrograms { .. }
                | TrialFlag::OtherTraffic { .. }
                | TrialFlag::Stolen(_)
                | TrialFlag::ShortOfCpu { .. }
                | TrialFlag::Unsteady { .. }
        )
    };
    let has = |what: fn(&TrialFlag) -> bool| {
        let mut flags = cell.valid.iter().flat_map(|outcome| &outcome.flags);
        flags.any(what)
    };
    let holds_more = has(|flag| matches!(flag, TrialFlag::HeldBack(_)));
    // Where others have the rest, that is said.
    match (holds_more, has(disturbed) && !shares_full_path(cell)) {
        // Some of it had come before.
        (true, false) => "about ",
        (true, true) => "at least about ",
        (false, true) => "at least ",
        (false, false) => "",
    }
}

/// Whether the rate is that of a line in each trial, however often that changed; read at both ends, so that ACKs which wait
/// on their way back would be seen.
fn is_of_a_line(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let setup = &Setup::of(dataset, cell);
    let mut trials = cell
        .valid
        .iter()
        .map(|outcome| TrialView { outcome, setup });
    !is_one_sided(cell) && trials.all(|trial| trial.is_of_a_changing_line())
}

/// Whether the flows of `cell` and others fill a path together.
fn shares_full_path(cell: &CellOutcomes<'_>) -> bool {
    trial::shares_full_path(cell)
}

/// Says what others have of a full path.
pub(super) fn of_others(cell: &CellOutcomes<'_>) -> String {
    let all = cell
        .estimate(name::SHARED_BPS)
        .filter(|_| shares_full_path(cell));
    all.map_or(String::new(), |all| {
        format!(
            ", other traffic has the rest of the {} that it carries",
            words::estimate(&all)
        )
    })
}

/// Whether the rate varies as that of a full path does not, or nobody knows.
fn varies(cell: &CellOutcomes<'_>) -> bool {
    let most = if is_one_sided(cell) {
        VARIATION_ONE_SIDED_MAX
    } else {
        VARIATION_MAX
    };
    !cell.stays_within(name::RATE_VARIATION, most)
}

/// Whether a slow reader may be what is taken for a queue: nobody saw what lies unread, or for how long that held the
/// sender.
fn may_be_reader(cell: &CellOutcomes<'_>) -> bool {
    let has_unread = !cell.stays_below(name::UNREAD_SHARE, MOST);
    let is_held = !cell.stays_below(name::RWND_LIMITED, MOST);
    let is_known = cell.mean(name::UNREAD).is_some() && cell.mean(name::RWND_LIMITED).is_some();
    has_unread && is_held && !is_known
}

/// Whether what makes round trips longer may be none that waits in a queue:
///
/// 1. fewer than three segments, which the time that each takes on a slow line makes, and ACKs that wait for a
///    second segment;
/// 2. ACKs that were delayed: windows of up to three segments leave one alone again and again;
/// 3. a way that became longer after its shortest round trip was seen. A queue that nothing but the receiver's
///    window or the send buffer bounds, and that loses nothing, looks the same, unless it is many times the way or the rate is
///    that of a line;
/// 4. ACKs that wait on their way back: little of what waits is on its way to the receiver;
/// 5. a way that takes longer at times, as radio does, or became longer: the round trip does not go with what is in
///    flight, or grows by more, while the rate falls. Where the own queueing discipline holds most of it, or the rate is
///    that of a line between its changes (`is_of_line`), that is not asked.
fn may_be_other(cell: &CellOutcomes<'_>, shortest_ns: f64, is_of_line: bool) -> bool {
    let waiting_bytes = waiting_bytes(cell, shortest_ns).unwrap_or(0.0);
    let segment = cell.mean(name::PAYLOAD_PER_SEGMENT);
    let is_little = segment.is_some_and(|segment| waiting_bytes < WAITING_SEGMENTS_MIN * segment);
    let may_be_small = !cell.exceeds(name::CWND, WINDOW_SEGMENTS_SMALL);
    let may_be_delayed = !cell.stays_within(name::DELAYED_ACKS, 0.0);
    let loses = cell.reaches(name::RETRANSMITTED, 1.0);
    let is_many_times = cell.reaches(name::TCP_RTT, BLOATED_QUOTIENT_MIN * shortest_ns);
    is_little
        || waits_on_the_way_back(cell, shortest_ns, waiting_bytes)
        || (goes_its_own_way(cell) && !is_of_line && !is_in_own_qdisc(cell, waiting_bytes))
        || (may_be_small && may_be_delayed)
        || ((is_held(cell) || cell.reaches(name::SNDBUF_LIMITED, MOST))
            && !loses
            && !is_many_times
            && !is_what_ethernet_carries(cell))
}

/// Whether most of what waits before a full path does so in the sending host's own queueing discipline.
fn waits_in_own_qdisc(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let bytes = shortest_ns(dataset, cell).and_then(|ns| waiting_bytes(cell, ns));
    datagrams_wait_in_own_qdisc(cell) || bytes.is_some_and(|bytes| is_in_own_qdisc(cell, bytes))
}

/// What waits, of all flows, beyond what the path holds at its shortest round trip.
fn waiting_bytes(cell: &CellOutcomes<'_>, shortest_ns: f64) -> Option<f64> {
    let above = cell.mean(name::TCP_RTT)? - shortest_ns;
    Some(cell.mean(name::THROUGHPUT)? * above.max(0.0) / 8e9)
}

/// Whether most of `bytes` that wait do so in the sending host's own queueing discipline.
fn is_in_own_qdisc(cell: &CellOutcomes<'_>, bytes: f64) -> bool {
    cell.exceeds(name::QDISC_BACKLOG, 0.0) && cell.reaches(name::QDISC_BACKLOG, MOST * bytes)
}

/// Whether what makes the round trips of `cell` longer are its ACKs, which wait on their way back.
pub(super) fn acks_wait(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> bool {
    let of_queue = |shortest: f64| {
        let bytes = waiting_bytes(cell, shortest)?;
        Some(waits_on_the_way_back(cell, shortest, bytes))
    };
    trial::is_queued(dataset, cell) && shortest_ns(dataset, cell).and_then(of_queue) == Some(true)
}

/// Whether next to nothing of what waits is on its way to the receiver.
fn waits_on_the_way_back(cell: &CellOutcomes<'_>, shortest_ns: f64, waiting_bytes: f64) -> bool {
    let flows = f64::from(cell.workload.connections.max(1));
    let forward = cell.amount(name::ON_ITS_WAY) * flows;
    // What the way itself holds, half of it there and half back.
    let empty = cell.amount(name::THROUGHPUT) * (shortest_ns / 2.0 / 8e9);
    (forward - empty).stays_below(FORWARD_SHARE_MIN * waiting_bytes)
}

/// Whether the round trip stays as it is while what is in flight varies, or grows by more. Not where the rate is as steady
/// as a line's, which no way is that takes as long as it likes: a queue of a few packets, or that of many flows, follows
/// none of them.
fn goes_its_own_way(cell: &CellOutcomes<'_>) -> bool {
    let elasticity = cell.mean(name::RTT_ELASTICITY);
    let differs =
        elasticity.is_some_and(|slope| !(ELASTICITY_MIN..=ELASTICITY_MAX).contains(&slope));
    // What does not vary has no elasticity; what was not read may have any.
    (differs || cell.mean(name::IN_FLIGHT).is_none())
        && !cell.stays_within(name::RATE_VARIATION, VARIATION_LINE_MAX)
}

/// Whether the receiver's window holds the sender, whatever else does.
fn is_held(cell: &CellOutcomes<'_>) -> bool {
    cell.reaches(name::RWND_LIMITED, HELD_ALWAYS_MIN)
}

/// Whether only the sending end was read.
fn is_one_sided(cell: &CellOutcomes<'_>) -> bool {
    cell.mean(name::UNREAD).is_none()
}

/// Returns the rate of the link, and the share of what it carries, where it is known and may be what is
/// full: the interval reaches what it carries, and the mean is near; of one trial, the value is.
fn known_link(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    throughput: &Estimate,
) -> Option<(f64, f64)> {
    let limit = dataset.limit_bps(cell)?;
    let share = throughput.value / limit;
    let is_link = match throughput.high {
        Some(high) => high >= FULL_SHARE_MIN * limit && share >= LINK_SHARE_MIN,
        None => share >= LINK_SHARE_ALONE_MIN,
    };
    let rate = dataset.path.rate_of(&cell.workload)?;
    is_link.then_some((rate, share))
}

/// Says what passes the path; `how_much` stands before it.
pub(super) fn passes(cell: &CellOutcomes<'_>, throughput: &Estimate, how_much: &str) -> String {
    format!(
        ": {how_much}{}{} passes it",
        words::estimate(throughput),
        carried(cell, throughput.value)
    )
}

/// What the payload is in terms of a line.
fn carried(cell: &CellOutcomes<'_>, payload_bps: f64) -> String {
    let Some((payload, headers)) = packet(cell) else {
        return " of payload".to_owned();
    };
    // A part of what a path carries is that of a line by chance only.
    let line = ethernet_bps(payload_bps, payload, headers).filter(|_| !shares_full_path(cell));
    match line {
        Some(rate) => format!(
            " of payload (what {} Ethernet carries)",
            Unit::BitsPerSecond.display(rate)
        ),
        None => {
            let framed = payload + headers + ETHERNET_HEADER_BYTES as f64;
            let line_bps = payload_bps * framed / payload;
            let [payload, line] =
                [payload_bps, line_bps].map(|rate| Unit::BitsPerSecond.display(rate));
            // Large segments have next to nothing around them.
            if payload == line {
                " of payload".to_owned()
            } else {
                format!(" of payload ({line} with headers)")
            }
        }
    }
}

/// Returns the payload and the headers of a packet, where they are known.
fn packet(cell: &CellOutcomes<'_>) -> Option<(f64, f64)> {
    let over_udp = cell.workload.manner.transport == Transport::Udp;
    if let Some(bytes) = cell.message_bytes().filter(|_| over_udp) {
        let payload = (1..=DATAGRAM_BYTES_MAX).contains(&bytes);
        return payload.then_some((bytes as f64, UDP_HEADERS_BYTES));
    }
    let segment = cell.mean(name::PAYLOAD_PER_SEGMENT);
    Some((segment.filter(|bytes| *bytes >= 1.0)?, TCP_HEADERS_BYTES))
}

/// What a segment's payload is wrapped in as queueing disciplines count it.
pub(super) fn framing_bytes() -> f64 {
    TCP_HEADERS_BYTES + ETHERNET_HEADER_BYTES as f64
}

/// Whether `payload_bps` in full segments of TCP is what Ethernet carries.
pub(super) fn is_of_ethernet(payload_bps: f64, segment: f64) -> bool {
    ethernet_bps(payload_bps, segment, TCP_HEADERS_BYTES).is_some()
}

/// Returns the rate of Ethernet that carries `payload_bps` in packets of `payload` and `headers` bytes.
fn ethernet_bps(payload_bps: f64, payload: f64, headers: f64) -> Option<f64> {
    // As the wire counts a frame, or as shapers do: of small packets the two are far apart.
    let shares = [FRAME_BYTES, ETHERNET_HEADER_BYTES as f64]
        .map(|around| payload / (payload + headers + around));
    let is_it = |rate: &&f64| {
        let near = |share: &f64| {
            let carried = share * **rate;
            (BELOW_MAX * carried..=ABOVE_MAX * carried).contains(&payload_bps)
        };
        shares.iter().any(near)
    };
    ETHERNET_BPS.iter().find(is_it).copied()
}

/// Whether the throughput is what Ethernet of a common rate carries in segments, or datagrams, of this size.
pub(super) fn is_what_ethernet_carries(cell: &CellOutcomes<'_>) -> bool {
    let rate = cell.mean(name::THROUGHPUT).zip(packet(cell));
    rate.is_some_and(|(rate, (payload, headers))| ethernet_bps(rate, payload, headers).is_some())
}

fn explanation(cell: &CellOutcomes<'_>, is_in_own_qdisc: bool, limiter: Limiter) -> String {
    let place = if is_in_own_qdisc {
        "Most of it waits in the sending host's own qdisc (`tc -s qdisc`)"
    } else if cell.mean(name::QDISC_BACKLOG).is_some() {
        "The sending host's own queues are short, so it waits further along the path"
    } else {
        "Whether it waits in the sending host's own qdisc was not read (`tc -s qdisc`)"
    };
    let again = trial::losses(cell).least();
    let sent = cell.mean(name::SEGMENTS_SENT);
    let is_shared = shares_full_path(cell);
    let is_short = !is_shared && cell.stays_below(name::QUEUED, MOST);
    let loses = sent.is_some_and(|sent| again >= (OVERFLOW_SHARE_MIN * sent).max(1.0));
    let segments = agreeing(
        &words::number(Unit::Count, again),
        "segment per trial was lost",
        "segments per trial were lost",
    );
    // A short queue may lose less than the way does otherwise.
    let lost = match (loses, is_short) {
        (true, true) => format!("; {segments}"),
        (true, false) => format!(", and overflows: {segments}"),
        (false, _) => String::new(),
    };
    let steady = match (is_short, loses) {
        (false, _) => "",
        (true, false) => {
            " The queue is short against the round trip; the rate is as steady as a line's."
        }
        (true, true) => {
            " The queue is short against the round trip; the rate is as steady as a line's, or as a policer's that flows \
             share."
        }
    };
    let seen = if is_one_sided(cell) {
        " Read at the sender alone, ACKs that wait on their way back look the same."
    } else {
        ""
    };
    let ends = if is_one_sided(cell) {
        "the sender keeps up shows"
    } else {
        "both ends keep up shows"
    };
    let held = if is_held(cell) {
        " The receive window bounds what waits: a path that became longer after its shortest round trip \
             was seen looks the same."
    } else {
        ""
    };
    let shown = match limiter {
        Limiter::LinkRate => format!("That data waits before it while {ends} that it is full."),
        _ => shared(cell).unwrap_or_else(|| {
            format!(
                "The rate of this path is not known; that data waits before it while {ends} that it is full."
            )
        }),
    };
    let changed = if varies(cell) && !is_shared && limiter == Limiter::PathRate {
        " Its rate changed, or others took more of it, or less."
    } else {
        ""
    };
    format!(
        "{place}{lost}. {shown}{steady}{changed} Larger buffers only make the queue longer; others on the path wait in it \
         too.{held}{seen}"
    )
}

/// Says what shows that the path is shared, where it is.
pub(super) fn shared(cell: &CellOutcomes<'_>) -> Option<String> {
    let all = cell
        .mean(name::SHARED_VARIATION)
        .filter(|_| shares_full_path(cell))?;
    Some(format!(
        "All that passes the device together varies by {} from reading to reading, these flows' part of it by more: \
         others have what it leaves, which shows that the path is full.",
        words::percent(all)
    ))
}

/// Whether less is sent than was asked for, nothing is lost, no worker lacks time, and datagrams wait in the own qdisc.
pub(super) fn datagrams_wait_in_own_qdisc(cell: &CellOutcomes<'_>) -> bool {
    let asked = cell.mean(name::THROUGHPUT_INTENDED);
    let enough = asked.map_or(f64::INFINITY, |bps| FULL_SHARE_MIN * bps);
    let datagram = cell.message_bytes().unwrap_or(0) as f64;
    cell.workload.manner.transport == Transport::Udp
        && cell.stays_below(name::THROUGHPUT_SENT, enough)
        && cell.reaches(name::QDISC_BACKLOG, WAITING_SEGMENTS_MIN * datagram)
        && cell.stays_below(name::LOSS_SHARE, LOST_SHARE_MIN)
        && cell.stays_below(name::WORKER_WANTED_SHARE_MAX, WORKER_SATURATED_SHARE)
}

#[cfg(test)]
mod tests {
    use super::{TCP_HEADERS_BYTES, ethernet_bps};

    #[test]
    fn rates_of_ethernet_are_recognised_by_their_payload() {
        let check = |mbit: f64, segment: f64, expected: Option<f64>| {
            assert_eq!(
                ethernet_bps(mbit * 1e6, segment, TCP_HEADERS_BYTES),
                expected,
                "{mbit} in {segment}"
            );
        };
        // 1448 of 1538 B on the line, and of 1514 B as a shaper counts.
        check(94.1, 1448.0, Some(100e6));
        check(95.6, 1448.0, Some(100e6));
        check(941.0, 1448.0, Some(1e9));
        check(9.4, 1448.0, Some(10e6));
        check(9_890.0, 8948.0, Some(10e9));
        check(98.0, 1448.0, None);
        // 6.8 on the line and 7.4 as a shaper counts: not what lies between.
        check(6.8, 190.0, Some(10e6));
        check(7.4, 190.0, Some(10e6));
        check(7.1, 190.0, None);
        check(90.0, 1448.0, None);
        check(300.0, 1448.0, None);
    }
}
