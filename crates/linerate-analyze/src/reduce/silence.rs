//! A part of the window in which nothing arrived, in any flow, although something was under way: a link that
//! was down, a peer that was gone for a while. The rate of the window is then one of two states of the path,
//! and of how long each lasted.
//!
//! 1. Of TCP something is under way at readings with segments unacknowledged, while the peer's window holds a
//!    segment: a reader that stops closes it, and who waits or thinks has sent all that it had. It arrives where a
//!    flow's TCP or program has more than at the reading before, at either end.
//! 2. Of connections that are places something is under way all the time, unless they wait for their turn.
//! 3. Of datagrams nothing arrives where none is received although so many were sent that ten would have come
//!    at the rate of arrival before and after: by chance one of 20 000 stretches is as empty. Those that a reader left
//!    to its socket's buffer had arrived.
//!
//! It has to be a part of the window that also a note on missing readings is made of, and longer than a
//! loss makes: a segment, and what is sent again for it, may both be lost, which takes the retransmission timer
//! (200 ms and a round trip) and its doubled successor. Handshakes have a timer of 1 s (RFC 6298).

use linerate_model::Nanos;
use linerate_model::flag::TrialFlag;
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::sample::End;
use linerate_model::samples::Reading;

use super::WINDOW_COVERED_SHARE_MIN;
use super::raw::{Lane, Raw};

/// The shortest retransmission timeout of Linux (`TCP_RTO_MIN`).
const TIMEOUT_NS: f64 = 2e8;
/// Timeout of a handshake (`TCP_TIMEOUT_INIT`).
const HANDSHAKE_TIMEOUT_NS: f64 = 1e9;
/// Timeouts that pass until what was sent again in vain is sent once more: one, and one of twice its length.
const TIMEOUTS: f64 = 3.0;
/// Datagrams that are more than a hiccup's.
pub(crate) const DATAGRAMS_MIN: f64 = 10.0;

/// What grows when something arrives at an end of a flow, or is known to have arrived.
const ARRIVALS: [Metric; 5] = [
    Metric::TcpDelivered,
    Metric::TcpBytesAcked,
    Metric::TcpBytesReceived,
    Metric::AppBytesReceived,
    Metric::AppTransactions,
];

/// A part of the window, in nanoseconds from its begin.
#[derive(Clone, Copy)]
struct Stretch {
    from: i64,
    to: i64,
}

impl Stretch {
    fn length(self) -> i64 {
        self.to.saturating_sub(self.from)
    }

    fn meets(self, other: Self) -> Self {
        Self {
            from: self.from.max(other.from),
            to: self.to.min(other.to),
        }
    }
}

/// Returns the longest stretch of silence, where it is so long that the rate of the window is none of the path.
pub(super) fn silence(raw: &Raw<'_>) -> Option<TrialFlag> {
    let workload = &raw.trial.workload;
    let whole = Stretch {
        from: 0,
        to: raw.readings.window_ns(),
    };
    if !workload.traffic.carries_payload() || whole.length() <= 0 {
        return None;
    }
    let is_datagrams = workload.manner.transport == Transport::Udp;
    let found = if is_datagrams && workload.traffic.is_stream() {
        of_datagrams(raw, whole)
    } else if workload.manner.transport.is_tcp() {
        of_tcp(raw, whole)
    } else {
        None
    }?;
    let share = found.length() as f64 / whole.length() as f64;
    let least = 1.0 - WINDOW_COVERED_SHARE_MIN;
    (share >= least).then_some(TrialFlag::Silent {
        from: Nanos(found.from.unsigned_abs()),
        length: Nanos(found.length().unsigned_abs()),
        share,
    })
}

fn of_tcp(raw: &Raw<'_>, whole: Stretch) -> Option<Stretch> {
    let workload = &raw.trial.workload;
    let is_placed = workload.traffic.is_placed();
    let timeout_ns = if is_placed {
        // Several are not all lost by chance.
        let one = if raw.lanes.len() > 1 { 1.0 } else { TIMEOUTS };
        one * HANDSHAKE_TIMEOUT_NS
    } else {
        TIMEOUTS * (TIMEOUT_NS + longest_round_trip_ns(raw)?)
    };
    let is_long = |stretch: &Stretch| stretch.length() as f64 >= timeout_ns;
    let silent = silences(raw, whole, &ARRIVALS);
    let silent = silent.into_iter().filter(is_long);
    if is_placed {
        let waits = workload.manner.rests_between_requests();
        return silent.max_by_key(|one| one.length()).filter(|_| !waits);
    }
    let silent: Vec<Stretch> = silent.collect();
    if silent.is_empty() {
        return None;
    }
    let ends = raw.lanes.iter().flat_map(both_ends);
    let under_way = ends.flat_map(|(lane, end)| under_way(lane, end));
    let met = under_way.flat_map(|sent| silent.iter().map(move |none| none.meets(sent)));
    met.filter(is_long).max_by_key(|one| one.length())
}

fn of_datagrams(raw: &Raw<'_>, whole: Stretch) -> Option<Stretch> {
    let silent = silences(raw, whole, &[Metric::AppDatagramsReceived]);
    let longest = silent.into_iter().max_by_key(|one| one.length())?;
    let sum = |end: fn(&Lane<'_>) -> End, metric, within: Stretch| -> Option<f64> {
        let lanes = raw.lanes.iter();
        let grown = lanes.map(|lane| Some(grown(&lane.series(end(lane), metric)?, within)));
        grown.sum()
    };
    let sender = |lane: &Lane<'_>| lane.sender;
    let receiver = |lane: &Lane<'_>| lane.receiver;
    let sent = sum(sender, Metric::AppDatagramsSent, longest)?;
    let sent_beside = sum(sender, Metric::AppDatagramsSent, whole)? - sent;
    if sent_beside <= 0.0 {
        return None;
    }
    let came = sum(receiver, Metric::AppDatagramsReceived, whole)?;
    let would_have_come = sent * came / sent_beside;
    // What a reader found full when it came back.
    let ever = Stretch {
        from: i64::MIN,
        to: i64::MAX,
    };
    let unread = sum(receiver, Metric::AppSocketDrops, ever).unwrap_or(0.0);
    let all = sum(sender, Metric::AppDatagramsSent, ever)?;
    let lost = all - sum(receiver, Metric::AppDatagramsReceived, ever)? - unread;
    let is_lost = lost >= would_have_come / 2.0;
    let is_long = longest.length() as f64 >= TIMEOUTS * TIMEOUT_NS;
    (would_have_come >= DATAGRAMS_MIN && is_lost && is_long).then_some(longest)
}

fn both_ends<'l, 'a>(lane: &'l Lane<'a>) -> [(&'l Lane<'a>, End); 2] {
    [(lane, lane.sender), (lane, lane.receiver)]
}

/// Largest smoothed round trip of any flow: what stands in a queue, or is sent by a slow line, is part of it.
fn longest_round_trip_ns(raw: &Raw<'_>) -> Option<f64> {
    let ends = raw.lanes.iter().flat_map(both_ends);
    let trips = ends.filter_map(|(lane, end)| lane.gauge(end, Metric::TcpRtt));
    trips.flatten().max_by(f64::total_cmp)
}

/// Returns the stretches between readings of one end at all of which something is under way.
fn under_way(lane: &Lane<'_>, end: End) -> Vec<Stretch> {
    let series = |metric| lane.series(end, metric).unwrap_or_default();
    let unacknowledged = series(Metric::TcpUnacked);
    let windows = series(Metric::TcpSndWnd);
    let segments = series(Metric::TcpSndMss);
    let at = |series: &[Reading], at_ns: i64| {
        let place = series.binary_search_by_key(&at_ns, |one| one.0).ok()?;
        Some(series[place].1)
    };
    let is_open = |at_ns| {
        let offered = at(&windows, at_ns);
        let segment = at(&segments, at_ns).unwrap_or(1);
        offered.is_none_or(|bytes| bytes >= segment.max(1))
    };
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut is_on = false;
    for (at_ns, flight) in unacknowledged {
        let was_on = std::mem::replace(&mut is_on, flight > 0 && is_open(at_ns));
        match stretches.last_mut().filter(|_| was_on) {
            Some(last) if is_on => last.to = at_ns,
            _ if is_on => stretches.push(Stretch {
                from: at_ns,
                to: at_ns,
            }),
            _ => {}
        }
    }
    stretches
}

/// Returns the stretches of `whole` in which none of `metrics` grew from reading to reading at any end of a flow.
fn silences(raw: &Raw<'_>, whole: Stretch, metrics: &[Metric]) -> Vec<Stretch> {
    let ends = raw.lanes.iter().flat_map(both_ends);
    let series = ends.flat_map(|(lane, end)| {
        metrics
            .iter()
            .filter_map(move |metric| lane.series(end, *metric))
    });
    // Further flows of many are read at the edges of the window alone, which says nothing of what is between.
    let is_read = |series: &Vec<Reading>| raw.readings.count(series) > 2;
    let mut busy: Vec<Stretch> = Vec::new();
    for series in series.filter(is_read) {
        let steps = series.windows(2).filter(|pair| pair[1].1 != pair[0].1);
        busy.extend(steps.map(|pair| Stretch {
            from: pair[0].0,
            to: pair[1].0,
        }));
    }
    if busy.is_empty() {
        // Nothing at all, or nothing was read: said by others.
        return Vec::new();
    }
    busy.sort_by_key(|one| one.from);
    let mut silent = Vec::new();
    let mut from = whole.from;
    for one in busy {
        silent.push(Stretch { from, to: one.from }.meets(whole));
        from = from.max(one.to);
    }
    silent.push(Stretch { from, ..whole });
    silent.retain(|one| one.length() > 0);
    silent
}

/// What a counter grew between its readings next to the ends of `within`.
fn grown(series: &[Reading], within: Stretch) -> f64 {
    let begin = series.partition_point(|one| one.0 < within.from);
    let end = series.partition_point(|one| one.0 < within.to);
    let at = |place: usize| series.get(place).or(series.last());
    let change = at(begin)
        .zip(at(end))
        .map(|(first, last)| last.1 as f64 - first.1 as f64);
    change.unwrap_or(0.0)
}
