//! What arrived of a stream, flow by flow, and whether its level was in force.
//!
//! 1. Throughput is what TCP took in, in order, at the receiving ends. What receive calls returned
//!    is no measure of the wire in a short window: payload that arrived before it is read inside,
//!    and what arrives at its end is read after it. The application's count stands beside it, and
//!    is the throughput where TCP's cannot be had: datagrams, Unix sockets, old kernels. Of datagrams
//!    the different ones count: what a path makes two of was sent once.
//!    Where no reading of a receiving end came at all, it is what TCP acknowledged to the sender.
//! 2. A level of so many flows was in force only where most of them carried something: of a hundred one may be held
//!    up for a window, and what the others carried is right and flagged. What TCP
//!    itself makes unequal within one window (losses, round trips, links of different rates) is a
//!    result and flagged; what nothing on the way explains is the generator's or the host's doing,
//!    and such a trial is invalid.
//! 3. A rate is that of a state only where both halves of the window show it. Where they do not, MSER-5
//!    says from when on it is.

use std::collections::BTreeMap;

use linerate_model::flag::{Because, TrialFlag};
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::reason::Unshared;
use linerate_model::response::name;
use linerate_model::run::{HostPart, HostRecord};
use linerate_model::sample::End;
use linerate_model::samples::Reading;
use linerate_model::wire::INITIAL_WINDOW_SEGMENTS;

use super::raw::{Lane, Raw};
use super::steady;
use super::window::{Change, mean};
use super::{Responses, Values};

/// Share of a window's payload that may lie in receive buffers before it is told.
const BUFFERED_SHARE_MAX: f64 = 0.01;
/// Share of what arrived in order that may have come before the window until it is told.
const HELD_BACK_SHARE_MIN: f64 = 0.01;
/// Fairness below which flows do not share (Jain, Chiu, Hawe 1984): of two flows one has then more
/// than three times the other's rate.
const FAIRNESS_MIN: f64 = 0.8;
/// Twice the pieces by which halves of a steady flow may differ: a message of a paced one falls to either side of the begin,
/// the middle and the end, and a half has half of them.
const PIECES_AT_EDGES: f64 = 4.0;
/// Pieces that a window must hold for each flow before shares mean something: the segments of an
/// initial window, so that one burst more or less is no share.
const SHARED_PIECES_MIN: f64 = INITIAL_WINDOW_SEGMENTS as f64;
/// Share of segments sent again from which on TCP's reaction to losses makes shares unequal.
const UNEVEN_LOSS_SHARE_MIN: f64 = 0.001;
/// The same of a single flow, which may have lost by chance: losses, and their share of its segments.
const FLOW_LOSSES_MIN: f64 = 5.0;
const FLOW_LOSS_SHARE_MIN: f64 = 0.005;
/// Times that the longest of the flows' shortest round trips may be the shortest: TCP shares by
/// the round trip.
const ROUND_TRIPS_RATIO_MAX: f64 = 2.0;
/// Difference of the halves from which on a rate is not that of a steady state.
pub(crate) const HALVES_SHARE_MAX: f64 = 0.05;

/// What is to be said of a stream's level.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// How it was not in force, which nothing on the way explains.
    pub(super) unshared: Option<Unshared>,
    /// What to know about it although it was.
    pub(super) flags: Vec<TrialFlag>,
}

/// What arrived of one flow.
struct Arrival<'a> {
    lane: Lane<'a>,
    /// What counted it at the receiving end.
    metric: Metric,
    change: Change,
    halves: Option<[Change; 2]>,
}

impl<'a> Arrival<'a> {
    fn of(raw: &Raw<'_>, lane: &Lane<'a>, metric: Metric, series: &[Reading]) -> Option<Self> {
        Some(Self {
            lane: *lane,
            metric,
            change: raw.readings.change(series)?,
            halves: raw.readings.halves(series),
        })
    }
}

/// What arrived of all flows.
pub(super) struct Arrivals<'a> {
    flows: Vec<Arrival<'a>>,
    /// Payload that receive calls returned beyond what arrived; negative where they lag.
    read_beyond_bytes: Option<f64>,
    /// An end of which no reading came, where what TCP acknowledged stands for it.
    unread: Option<Lane<'a>>,
}

impl<'a> Arrivals<'a> {
    /// Returns what each flow carried in the window.
    pub(super) fn changes(&self) -> Vec<(Lane<'a>, Change)> {
        let flows = self.flows.iter();
        flows.map(|flow| (flow.lane, flow.change)).collect()
    }
}

/// Reduces throughput, shares and halves; absent when a flow was not read.
pub(super) fn reduce<'a>(raw: &Raw<'a>, responses: &mut Responses) -> Option<Arrivals<'a>> {
    let manner = &raw.trial.workload.manner;
    let is_tcp = manner.transport.is_tcp();
    let by_tcp = arrivals(raw, Metric::TcpBytesReceived).filter(|_| is_tcp);
    let by_app = arrivals(raw, Metric::AppBytesReceived);
    let payload = Metric::AppBytesReceived;
    let different = match manner.transport {
        Transport::Udp => arrivals_of(raw, payload, |lane| raw.arrived(lane, payload)),
        _ => None,
    };
    let bps =
        |flows: &[Arrival<'_>]| 8.0 * flows.iter().map(|flow| flow.change.rate()).sum::<f64>();
    responses.put(name::APP_RECEIVED, by_app.as_deref().map(bps));
    let read_beyond_bytes = by_tcp.as_ref().and_then(|_| read_beyond_bytes(raw));
    let known = by_tcp.or(different).or(by_app).map(|flows| (flows, None));
    let (flows, unread) = known.or_else(|| acknowledged(raw).filter(|_| is_tcp))?;
    // A volume that had arrived before the first reading has no rate that anybody saw.
    if manner.bytes_max.is_some() && amount(&flows) <= 0.0 {
        return None;
    }
    responses.put(name::THROUGHPUT, Some(bps(&flows)));
    for (name, end) in [
        (name::THROUGHPUT_TO_SERVER, End::Server),
        (name::THROUGHPUT_FROM_SERVER, End::Client),
    ] {
        let rates = flows.iter().filter(|flow| flow.lane.receiver == end);
        let sum = rates.map(|flow| 8.0 * flow.change.rate());
        responses.put(name, sum.reduce(|left, right| left + right));
    }
    let rates = || flows.iter().map(|flow| 8.0 * flow.change.rate());
    if flows.len() > 1 {
        responses.put(name::FLOW_MIN, rates().min_by(f64::total_cmp));
        responses.put(name::FLOW_MAX, rates().max_by(f64::total_cmp));
        let ways = [End::Server, End::Client].map(|end| {
            let one_way = flows.iter().filter(|flow| flow.lane.receiver == end);
            jain(one_way.map(|flow| flow.change.amount))
        });
        let least = ways.into_iter().flatten().min_by(f64::total_cmp);
        responses.put(name::FAIRNESS, least);
    }
    let idle = flows.iter().filter(|flow| is_idle(&flow.change)).count();
    responses.put(name::FLOWS_IDLE, Some(idle as f64));
    let halves = halves(&flows);
    responses.put(name::HALVES, halves);
    if halves.is_some_and(is_unsteady) {
        responses.put(name::STEADY_AFTER, steady_after(raw, &flows));
    }
    Some(Arrivals {
        flows,
        read_beyond_bytes,
        unread,
    })
}

/// Returns what receive calls returned of all flows beyond what TCP took in, between instants at which both were read: where
/// the last reading is late, the socket may be gone, and what came since TCP's last lies in no buffer.
fn read_beyond_bytes(raw: &Raw<'_>) -> Option<f64> {
    let beyond = |lane: &Lane<'_>| {
        let series = |metric| raw.series(lane, lane.receiver, metric);
        let mut app = series(Metric::AppBytesReceived)?;
        let mut tcp = series(Metric::TcpBytesReceived)?;
        let is_in =
            |series: &[Reading], at_ns| series.binary_search_by_key(&at_ns, |it| it.0).is_ok();
        app.retain(|reading| is_in(&tcp, reading.0));
        tcp.retain(|reading| is_in(&app, reading.0));
        let amount = |series: &[Reading]| Some(raw.readings.change(series)?.amount);
        Some(amount(&app)? - amount(&tcp)?)
    };
    raw.lanes.iter().map(beyond).sum()
}

/// Returns what is known of each flow at either end, and the first of which nothing is at the receiving.
fn acknowledged<'a>(raw: &Raw<'a>) -> Option<(Vec<Arrival<'a>>, Option<Lane<'a>>)> {
    let mut unread = None;
    let arrivals = raw.lanes.iter().map(|lane| {
        let arrival = |end, metric| {
            let series = raw.series(lane, end, metric)?;
            Arrival::of(raw, lane, Metric::TcpBytesReceived, &series)
        };
        // A host that was lost may have been read before the window.
        arrival(lane.receiver, Metric::TcpBytesReceived).or_else(|| {
            unread.get_or_insert(*lane);
            arrival(lane.sender, Metric::TcpBytesAcked)
        })
    });
    let arrivals: Option<Vec<Arrival<'_>>> = arrivals.collect();
    Some((arrivals.filter(|all| !all.is_empty())?, unread))
}

fn arrivals<'a>(raw: &Raw<'a>, metric: Metric) -> Option<Vec<Arrival<'a>>> {
    arrivals_of(raw, metric, |lane| raw.series(lane, lane.receiver, metric))
}

fn arrivals_of<'a>(
    raw: &Raw<'a>,
    metric: Metric,
    series: impl Fn(&Lane<'a>) -> Option<Vec<Reading>>,
) -> Option<Vec<Arrival<'a>>> {
    let arrival = |lane: &Lane<'a>| Arrival::of(raw, lane, metric, &series(lane)?);
    let all: Option<Vec<Arrival<'a>>> = raw.lanes.iter().map(arrival).collect();
    all.filter(|all| !all.is_empty())
}

fn amount(flows: &[Arrival<'_>]) -> f64 {
    flows.iter().map(|flow| flow.change.amount).sum()
}

/// The end of a stream counts as one byte where a kernel's count was taken as it is.
fn is_idle(change: &Change) -> bool {
    change.amount <= 1.0
}

/// Returns (Σx)² / (n Σx²): 1 for equal shares, 1/n where one has all; absent where none has any.
fn jain(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// Tells whether the halves of a window are of two states.
fn is_unsteady(halves: f64) -> bool {
    (halves - 1.0).abs() > HALVES_SHARE_MAX
}

/// Returns the time into the window from which on what arrived is steady.
fn steady_after(raw: &Raw<'_>, flows: &[Arrival<'_>]) -> Option<f64> {
    let series = |flow: &Arrival<'_>| raw.arrived(&flow.lane, flow.metric);
    let window_ns = raw.readings.window_ns();
    let readings = raw.readings.count(&series(flows.first()?)?);
    let mut growth = vec![0.0; steady::pieces(readings)?];
    for flow in flows {
        steady::add_growth(&series(flow)?, window_ns, &mut growth)?;
    }
    Some(steady::steady_after(&growth)? * window_ns as f64)
}

fn halves(flows: &[Arrival<'_>]) -> Option<f64> {
    let half = |at: usize| -> Option<f64> {
        let rates = flows.iter().map(|flow| Some(flow.halves?[at].rate()));
        rates.sum()
    };
    let (first, second) = half(0).zip(half(1))?;
    (first > 0.0).then(|| second / first)
}

/// Judges the level of the stream; the other responses of its flows are known by now.
pub(super) fn judge(raw: &Raw<'_>, arrivals: &Arrivals<'_>, responses: &Responses) -> Judged {
    let mut judged = Judged::default();
    // A volume is over when it is over: flows end apart, or before the window has begun.
    if raw.trial.workload.manner.bytes_max.is_none() {
        match unshared(raw, arrivals, responses) {
            Some((how, Some(because))) => judged.flags.push(TrialFlag::Unshared { how, because }),
            Some((how, None)) => judged.unshared = Some(how),
            None => {}
        }
        let halves = responses.value(name::HALVES);
        let is_grain = |halves: f64| {
            let pieces = pieces(raw.trial, &arrivals.changes(), responses);
            pieces.is_some_and(|pieces| (halves - 1.0).abs() <= PIECES_AT_EDGES / pieces)
        };
        let unsteady = halves.filter(|halves| is_unsteady(*halves) && !is_grain(*halves));
        judged
            .flags
            .extend(unsteady.map(|halves| TrialFlag::Unsteady {
                halves,
                steady_after_ns: responses.value(name::STEADY_AFTER).filter(|ns| *ns > 0.0),
            }));
    }
    judged.flags.extend(buffered(raw, arrivals));
    judged.flags.extend(held_back(raw, responses));
    let unread = arrivals.unread.as_ref();
    judged
        .flags
        .extend(unread.and_then(|lane| unread_at(lane, raw.hosts)));
    judged
}

fn unread_at(lane: &Lane<'_>, hosts: &[HostRecord]) -> Option<TrialFlag> {
    let of = |part| hosts.iter().filter(move |host| host.part == part);
    let host = match lane.receiver {
        End::Server => of(HostPart::Server).next(),
        End::Client => of(HostPart::Client).nth(lane.client as usize),
    };
    let host = host?.name.clone();
    Some(TrialFlag::UnreadAtReceiver { host })
}

/// Returns how flows did not share, if so, and what on the way explains it.
fn unshared(
    raw: &Raw<'_>,
    arrivals: &Arrivals<'_>,
    responses: &Responses,
) -> Option<(Unshared, Option<Because>)> {
    let trial = raw.trial;
    let is_udp = trial.workload.manner.transport == Transport::Udp;
    // Which datagrams get through is the result; whether each flow sent any is the level.
    let sent = |lane: &Lane<'_>| raw.change(lane, lane.sender, Metric::AppBytesSent);
    let flows: Vec<(Lane<'_>, Change)> = if is_udp {
        raw.lanes
            .iter()
            .map(|lane| Some((*lane, sent(lane)?)))
            .collect::<Option<_>>()?
    } else {
        arrivals.changes()
    };
    let idle = flows.iter().filter(|(_, change)| is_idle(change)).count();
    if idle > 0 {
        let of = flows.len();
        let few = pieces(trial, &flows, responses).filter(|pieces| *pieces < SHARED_PIECES_MIN);
        let because = few.map(Because::FewPieces).or_else(|| {
            let most_moved = 2 * idle < of;
            let others_share = || {
                let shared = least_fair(&flows, raw.hosts).is_some_and(|all| all >= FAIRNESS_MIN);
                (is_udp || shared).then_some(Because::OthersShare)
            };
            most_moved
                .then(|| others_share().or_else(|| on_the_way(raw, &flows, responses)))
                .flatten()
        });
        return Some((Unshared::Idle { idle, of }, because));
    }
    if is_udp || pieces(trial, &flows, responses).is_none_or(|pieces| pieces < SHARED_PIECES_MIN) {
        return None;
    }
    let fairness = least_fair(&flows, raw.hosts)?;
    let how = Unshared::Unfair {
        flows: flows.len(),
        fairness,
        fairness_min: FAIRNESS_MIN,
    };
    (fairness < FAIRNESS_MIN).then(|| (how, on_the_way(raw, &flows, responses)))
}

/// Returns how many messages or segments of full size the window holds for each flow; absent where
/// nothing moved although no rate was asked for.
fn pieces(trial: &Trial, flows: &[(Lane<'_>, Change)], responses: &Responses) -> Option<f64> {
    let manner = &trial.workload.manner;
    let segment = responses.value(name::SEND_MSS).unwrap_or(1.0);
    let stream = trial.workload.traffic.stream();
    let message = stream.map_or(1.0, |(_, message_bytes)| message_bytes.0 as f64);
    let together = f64::from(manner.batch) * f64::from(manner.burst);
    let piece = match (manner.rate_bps, manner.transport) {
        (Some(_), _) => segment.max(message * together),
        (None, Transport::Udp) => message,
        (None, _) => segment,
    };
    let moved: f64 = flows.iter().map(|(_, change)| change.amount).sum();
    let asked = manner.rate_bps.or(trial.workload.options.pacing_bps);
    let seconds = flows
        .iter()
        .map(|(_, change)| change.seconds)
        .max_by(f64::total_cmp)
        .unwrap_or_default();
    let each = if moved > 0.0 {
        moved / flows.len().max(1) as f64
    } else {
        asked? as f64 / 8.0 * seconds
    };
    Some(each / piece.max(1.0))
}

/// Returns the least fairness among flows that meet the same links, each direction for itself.
fn least_fair(flows: &[(Lane<'_>, Change)], hosts: &[HostRecord]) -> Option<f64> {
    let clients = || hosts.iter().filter(|host| host.part == HostPart::Client);
    let rate = |host: &HostRecord| host.link_rate.map(|rate| (rate.0, host.link_up_rate));
    let first = clients().next().and_then(rate);
    let is_even = first.is_some() && clients().all(|host| rate(host) == first);
    let mut groups: BTreeMap<(End, u32), Vec<f64>> = BTreeMap::new();
    for (lane, change) in flows {
        let client = if is_even { 0 } else { lane.client };
        let group = groups.entry((lane.receiver, client));
        group.or_default().push(change.amount);
    }
    let fairness = groups
        .into_values()
        .filter_map(|group| jain(group.into_iter()));
    fairness.min_by(f64::total_cmp)
}

/// Returns what on the way makes TCP share unequally, if anything does.
fn on_the_way(
    raw: &Raw<'_>,
    flows: &[(Lane<'_>, Change)],
    responses: &Responses,
) -> Option<Because> {
    round_trips(flows, Metric::TcpMinRtt)
        .or_else(|| losses(raw, responses))
        // Of a few segments the smoothed one holds delayed ACKs, so that losses come first.
        .or_else(|| round_trips(flows, Metric::TcpRtt))
}

/// Whether segments were lost so that flows slow down for that.
fn losses(raw: &Raw<'_>, responses: &Responses) -> Option<Because> {
    let lost = responses.value(name::RETRANSMITTED_SHARE);
    if let Some(lost) = lost.filter(|lost| *lost >= UNEVEN_LOSS_SHARE_MIN) {
        return Some(Because::Losses(lost));
    }
    let lost_of_flow = raw.lanes.iter().filter_map(|lane| {
        let grown = |metric| Some(raw.change(lane, lane.sender, metric)?.amount);
        let again = grown(Metric::TcpRetrans).filter(|again| *again >= FLOW_LOSSES_MIN)?;
        let sent = grown(Metric::TcpDataSegsOut).filter(|sent| *sent >= again)?;
        Some(again / sent)
    });
    let most = lost_of_flow
        .max_by(f64::total_cmp)
        .filter(|lost| *lost >= FLOW_LOSS_SHARE_MIN);
    most.map(Because::FlowLosses)
}

/// Whether the round trips of flows differ, each the least of a flow's shortest ones or the mean of its smoothed ones, and
/// the flow with the longest has less than the one with the shortest.
fn round_trips(flows: &[(Lane<'_>, Change)], metric: Metric) -> Option<Because> {
    let of_flow = |lane: &Lane<'_>| {
        let values = lane
            .gauge(lane.sender, metric)?
            .into_iter()
            .filter(|ns| *ns > 0.0);
        match metric {
            Metric::TcpMinRtt => values.min_by(f64::total_cmp),
            _ => mean(values),
        }
    };
    let trips = flows
        .iter()
        .filter_map(|(lane, change)| Some((of_flow(lane)?, change.amount)));
    let trips: Vec<(f64, f64)> = trips.collect();
    let (least, of_least) = trips.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let (most, of_most) = trips.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
    // Below a tenth of a millisecond a minimum is a matter of wake-ups.
    const NEAR_NS: f64 = 1e5;
    let differ = most > ROUND_TRIPS_RATIO_MAX * least.max(NEAR_NS);
    (differ && of_most < of_least).then_some(Because::RoundTrips {
        least_ns: least,
        most_ns: most,
    })
}

/// What arrived in order, beyond all that the segments of the window can have carried, full ones all of them: TCP counts
/// what lies behind a lost segment once that has come.
fn held_back(raw: &Raw<'_>, responses: &Responses) -> Option<TrialFlag> {
    let is_tcp = raw.trial.workload.manner.transport == Transport::Tcp;
    let full = responses.value(name::SEND_MSS).filter(|_| is_tcp)?;
    // Absent where aggregates are counted.
    let came = full
        * raw
            .sum(|lane| lane.receiver, Metric::TcpDataSegsIn)
            .filter(|segments| *segments > 0.0)?;
    let before = 1.0 - came / raw.sum(|lane| lane.receiver, Metric::TcpBytesReceived)?;
    (HELD_BACK_SHARE_MIN..1.0)
        .contains(&before)
        .then_some(TrialFlag::HeldBack(before))
}

fn buffered(raw: &Raw<'_>, arrivals: &Arrivals<'_>) -> Option<TrialFlag> {
    let beyond_bytes = arrivals.read_beyond_bytes?;
    let moved = amount(&arrivals.flows);
    if beyond_bytes.abs() <= BUFFERED_SHARE_MAX * moved {
        return None;
    }
    let share = (moved > 0.0).then(|| beyond_bytes.abs() / moved);
    let each = receive_buffer_bytes(raw.trial, raw.hosts);
    let held = each.map(|bytes| bytes * arrivals.flows.len() as f64);
    Some(if held.is_some_and(|held| beyond_bytes.abs() > held) {
        TrialFlag::ReadApart {
            beyond_bytes,
            share,
        }
    } else {
        TrialFlag::Buffered {
            beyond_bytes,
            share,
        }
    })
}

/// What a receive buffer may hold at the most: the largest limit of any host, or what was asked for, of which the kernel
/// makes twice as much (socket(7)).
fn receive_buffer_bytes(trial: &Trial, hosts: &[HostRecord]) -> Option<f64> {
    let limit = |host: &HostRecord| host.snapshot.most_of_three("sysctl.net.ipv4.tcp_rmem");
    let tuned = hosts.iter().filter_map(limit).max_by(f64::total_cmp)?;
    let asked = trial.workload.options.socket_buffer;
    let asked = asked.map_or(0.0, |bytes| 2.0 * bytes.0 as f64);
    Some(tuned.max(asked))
}
