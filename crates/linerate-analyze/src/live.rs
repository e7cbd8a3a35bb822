//! Interval lines of a running trial, from its samples as they arrive.
//!
//! The same counters as the final numbers: payload that TCP took in, in order, at the receiving
//! ends, or that receive calls returned where that is not known. A flow's rate in an interval is the
//! difference of its readings at or after the two edges over the true time between them, so a late
//! reading is no error. One that is later than the next edge ends the interval there: both lines of one
//! reading would be the rate of all, and none.
//!
//! Counts that cannot be end the lines: a counter that fell, or payload of more than all that the other end has sent, twice
//! over, since its last reading may be as old as an interval. Why the trial is none is said at its end, with what both
//! ends sent in all.

/// The latencies of one host.
mod latencies;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Add as _;

use linerate_model::histogram::Histogram;
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::run::HostProgram;
use linerate_model::sample::{End, Subject, TrialSample};
use linerate_model::workload::{Direction, Part, Workload, receiving_end};
use linerate_model::{FlowId, HostName, Nanos};
use serde::Serialize;

use crate::latency::Latency;
use crate::reduce::window::{different, has_fallen};
use latencies::Latencies;

/// One interval of one flow, or of all that go one way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Interval {
    /// The flow; absent for a sum.
    pub flow: Option<u32>,
    /// Which way the payload of a stream went.
    pub direction: Option<Direction>,
    /// Begin, after the begin of the window.
    pub begin_s: f64,
    /// End, after the begin of the window.
    pub end_s: f64,
    /// Payload received.
    pub bytes: u64,
    /// Payload received, as a rate.
    pub bits_per_second: f64,
    /// Transactions completed, for request/response.
    pub transactions: Option<u64>,
    /// Transactions completed, as a rate.
    pub transactions_per_second: Option<f64>,
    /// Their latency, each within 1.6 %, of the only flow or of all: hosts tell it of all their flows
    /// together.
    pub latency: Option<Latency>,
    /// Segments sent again by the sending end.
    pub retransmits: Option<u64>,
    /// Of transactions: segments sent again by both ends, since both send.
    pub retransmits_both: Option<u64>,
    /// Congestion window of the sending end at the end of the interval.
    pub snd_cwnd_bytes: Option<u64>,
    /// Smoothed round-trip time at the sending end.
    pub rtt_us: Option<f64>,
    /// Of a stream of datagrams: those that came or are missing.
    pub datagrams: Option<u64>,
    /// Of them, those that are missing.
    pub lost: Option<u64>,
    /// Jitter at the end of the interval; of several flows the mean.
    pub jitter_us: Option<f64>,
}

/// An end of a flow.
type Place = (FlowId, End);
/// An instant after the begin of the window, and a value.
type Reading = (i64, i64);

/// The readings of a counter.
#[derive(Debug)]
struct Series {
    /// Those that intervals still need, in order of time.
    edges: Vec<Reading>,
    /// The last value.
    last: i64,
}

/// Readings of a series that are held at a time: at the last edge and at the next.
const EDGES_HELD: usize = 2;

/// Cuts a running trial into intervals.
#[derive(Debug)]
pub struct Live {
    interval_ns: i64,
    window_ns: i64,
    transactions: bool,
    /// Whether it is a stream of datagrams.
    datagrams: bool,
    /// Whether the receiving end's kernel may count what arrives.
    by_tcp: bool,
    /// What stands for the payload of flows whose receiving end is at a server that is no agent:
    /// a counter of the sending end.
    instead: Option<Metric>,
    flows: Vec<(FlowId, Part)>,
    /// Whether only the sum of the flows is wanted.
    summed: bool,
    /// Whether nothing more will come.
    is_over: bool,
    /// Whether the flows' sockets are TCP's, which say so at every tick.
    over_tcp: bool,
    transport: Transport,
    /// Readings by end of a flow and metric; only those that intervals still need: with
    /// thousands of flows the others would be most of the program's memory.
    readings: BTreeMap<(Place, Metric), Series>,
    /// What the sending ends of streams have sent, where both ends tell.
    sent: BTreeMap<FlowId, i64>,
    /// Whether counts came that cannot be.
    is_refused: bool,
    /// Of transactions, by the host that makes them.
    latencies: BTreeMap<HostName, Latencies>,
    /// Hosts that make transactions: an agent of another version may tell no latencies.
    requesters: BTreeSet<HostName>,
    done: i64,
}

impl Live {
    /// Returns a cutter for `trial` with intervals of `interval`.
    pub fn new(trial: &Trial, interval: Nanos) -> Self {
        let workload = &trial.workload;
        let (is_stream, transport) = (workload.traffic.is_stream(), workload.manner.transport);
        Self {
            interval_ns: (interval.0 as i64).max(1),
            window_ns: trial.timing.measure.0 as i64,
            transactions: workload.traffic.is_transactional(),
            datagrams: is_stream && transport == Transport::Udp,
            by_tcp: is_stream && transport.is_tcp(),
            instead: None,
            flows: workload
                .flows()
                .iter()
                .map(|flow| (flow.flow, flow.client_part))
                .collect(),
            summed: false,
            is_over: false,
            over_tcp: transport == Transport::Tcp && workload.traffic.is_lasting(),
            transport,
            readings: BTreeMap::new(),
            sent: BTreeMap::new(),
            is_refused: false,
            latencies: BTreeMap::new(),
            requesters: BTreeSet::new(),
            done: 0,
        }
    }

    /// Returns the same cutter for what serves: where nothing is read of the server, payload to it is
    /// what its host acknowledged, or what was sent where nothing is acknowledged.
    pub fn with_server(mut self, trial: &Trial, program: &HostProgram) -> Self {
        self.instead = counted_instead(program, &trial.workload);
        self
    }

    /// Returns the same cutter for whoever wants nothing but the sum of all flows.
    pub fn summed(mut self) -> Self {
        self.summed = true;
        self
    }

    /// Takes up that nothing more will come: what was not read is shown as missing.
    pub fn finish(&mut self) {
        self.is_over = true;
    }

    /// Takes up new samples, those of each series in order of time; only those of flows and latencies
    /// matter.
    pub fn add(&mut self, samples: impl IntoIterator<Item = TrialSample>) {
        for sample in samples {
            let (flow, end) = match sample.subject {
                Subject::Flow(flow, end) => (flow, end),
                Subject::Latency(_, about) if self.transactions && sample.at_ns >= 0 => {
                    let latencies = self.latencies.entry(sample.host).or_default();
                    latencies.add(about, (sample.at_ns, sample.value));
                    continue;
                }
                _ => continue,
            };
            if self.is_sent((flow, end), sample.metric) {
                self.sent.insert(flow, sample.value);
            }
            if sample.at_ns < 0 || !self.is_wanted((flow, end), sample.metric) {
                continue;
            }
            if sample.metric == Metric::AppTransactions && !self.requesters.contains(&sample.host) {
                self.requesters.insert(sample.host);
            }
            let (interval_ns, window_ns) = (self.interval_ns, self.window_ns);
            let edges =
                |at_ns: i64| at_ns.min(window_ns) / interval_ns + i64::from(at_ns >= window_ns);
            let key = ((flow, end), sample.metric);
            let series = self.readings.entry(key);
            let series = series.or_insert_with(|| Series {
                edges: Vec::with_capacity(EDGES_HELD),
                last: 0,
            });
            self.is_refused |= has_fallen(key.1, self.transport, series.last, sample.value);
            series.last = sample.value;
            // Only the first reading at or after an edge is ever looked for.
            let last = series.edges.last();
            if last.is_none_or(|&(last_ns, _)| edges(sample.at_ns) > edges(last_ns)) {
                series.edges.push((sample.at_ns, sample.value));
            }
        }
    }

    /// Returns whether intervals show anything that follows from a metric of an end of a flow.
    fn is_wanted(&self, (flow, end): Place, metric: Metric) -> bool {
        // Flows are numbered from zero on, as `Workload::flows` makes them.
        let Some(&(_, part)) = self.flows.get(flow.0 as usize) else {
            return false;
        };
        let receives = end == receiving_end(part);
        match metric {
            Metric::AppBytesReceived => receives,
            Metric::TcpBytesReceived => receives && self.by_tcp,
            Metric::AppTransactions => receives && self.transactions,
            Metric::TcpRetrans => self.transactions || !receives,
            Metric::AppDatagramsReceived
            | Metric::AppDatagramsDuplicate
            | Metric::AppDatagramsMissing
            | Metric::AppJitter => receives && self.datagrams,
            // A sum has none.
            Metric::TcpCwnd | Metric::TcpSndMss | Metric::TcpRtt => {
                receives == self.transactions && !self.is_sum_alone()
            }
            other => self.instead == Some(other),
        }
    }

    /// Returns whether a metric of an end of a flow is what it sent of a stream that keeps order: of a datagram a path may
    /// make two.
    fn is_sent(&self, (flow, end): Place, metric: Metric) -> bool {
        let part = self.flows.get(flow.0 as usize).map(|(_, part)| *part);
        let sends = part.is_some_and(|part| end != receiving_end(part));
        let is_stream = !self.transactions && !self.datagrams && self.instead.is_none();
        metric == Metric::AppBytesSent && sends && is_stream
    }

    /// Returns whether a line has more than the other end can have sent.
    fn is_unsent(&self, line: &Interval) -> bool {
        let sent = line.flow.and_then(|flow| self.sent.get(&FlowId(flow)));
        sent.is_some_and(|sent| line.bytes / 2 > sent.unsigned_abs())
    }

    /// Returns the intervals that became complete: for each its flows, then for each way of several its
    /// sum.
    pub fn poll(&mut self) -> Vec<Vec<Interval>> {
        std::iter::from_fn(|| self.poll_next()).collect()
    }

    /// Returns the next interval that became complete, for those who hold one at a time: the lines
    /// of thousands of flows take a megabyte.
    pub fn poll_next(&mut self) -> Option<Vec<Interval>> {
        let begin = self.done * self.interval_ns;
        let end = (begin + self.interval_ns).min(self.window_ns);
        if self.is_refused || begin >= end || !self.covered(end) {
            return None;
        }
        let read = self.edge_read(end);
        let end = if read == end || self.covered(read) {
            read
        } else if self.is_over {
            // Another host's readings do not reach as far.
            end
        } else {
            return None;
        };
        let lines = self.cut(begin, end);
        if self.is_refused {
            return None;
        }
        self.done = (end + self.interval_ns - 1) / self.interval_ns;
        for series in self.readings.values_mut() {
            let past = series.edges.partition_point(|reading| reading.0 < end);
            series.edges.drain(..past);
        }
        for latencies in self.latencies.values_mut() {
            latencies.forget_before(end);
        }
        Some(lines)
    }

    /// Returns whether a sum is all that is shown.
    fn is_sum_alone(&self) -> bool {
        self.summed && self.flows.len() > 1
    }

    /// Returns the end at which the payload of a flow is counted up to `at`, and the counter. TCP's count is not told of
    /// a stream that ends while it is read, and of a late last reading no other follows.
    fn counted(&self, flow: FlowId, part: Part, at: i64) -> (Place, Metric) {
        let end = receiving_end(part);
        let of_tcp = ((flow, end), Metric::TcpBytesReceived);
        let is_told = if self.is_over {
            self.reaches(of_tcp.0, of_tcp.1, at)
        } else {
            self.is_read(of_tcp.0, of_tcp.1)
        };
        match self.instead {
            _ if self.transactions => ((flow, end), Metric::AppTransactions),
            Some(metric) if end == End::Server => ((flow, End::Client), metric),
            _ if is_told => of_tcp,
            _ => ((flow, end), Metric::AppBytesReceived),
        }
    }

    /// Returns whether a counter has come: those of one reading come together.
    fn is_read(&self, place: Place, metric: Metric) -> bool {
        self.readings.contains_key(&(place, metric))
    }

    /// Returns the first reading of a counter at or after an instant.
    fn reading(&self, place: Place, metric: Metric, at: i64) -> Option<Reading> {
        let series = self.readings.get(&(place, metric))?;
        series.edges.iter().find(|reading| reading.0 >= at).copied()
    }

    /// Returns whether a counter was read at or after an instant.
    fn reaches(&self, place: Place, metric: Metric, at: i64) -> bool {
        self.reading(place, metric, at).is_some()
    }

    /// Returns whether all that an interval up to `at` shows has been read: its payload, and what the
    /// sending end says of TCP, and hosts of latencies, where that is read at all.
    fn covered(&self, at: i64) -> bool {
        let mut latencies = self.latencies.values();
        if !self.is_over && !latencies.all(|of_host| of_host.reach(at)) {
            return false;
        }
        self.flows.iter().all(|&(flow, part)| {
            let (place, metric) = self.counted(flow, part, at);
            let sending = self.sending(flow, part);
            let other = (flow, sending.1.other());
            let is_read = self.instead.is_none() || sending.1 == End::Client;
            let is_awaited = self.over_tcp && is_read && !self.is_over;
            // What TCP says at one instant comes together, of each flow at least this.
            let mut senders = [sending, other].into_iter().take(self.ends_that_send());
            let tcp_reaches = |place| self.reaches(place, Metric::TcpRetrans, at);
            self.reaches(place, metric, at) && (!is_awaited || senders.all(tcp_reaches))
        })
    }

    /// Returns the last edge at or before the readings that stand for the edge `end`.
    fn edge_read(&self, end: i64) -> i64 {
        let at = self.flows.iter().filter_map(|&(flow, part)| {
            let (place, metric) = self.counted(flow, part, end);
            Some(self.reading(place, metric, end)?.0)
        });
        let latest = at.max().unwrap_or(end);
        let edge = latest / self.interval_ns * self.interval_ns;
        if latest >= self.window_ns {
            self.window_ns
        } else {
            edge.max(end)
        }
    }

    /// Returns how many ends of a flow send payload: of transactions both.
    fn ends_that_send(&self) -> usize {
        if self.transactions { 2 } else { 1 }
    }

    /// Returns the end whose TCP an interval tells of.
    fn sending(&self, flow: FlowId, part: Part) -> Place {
        let receiving = receiving_end(part);
        // A requester both sends and completes.
        let end = if self.transactions {
            receiving
        } else {
            receiving.other()
        };
        (flow, end)
    }

    fn cut(&mut self, begin: i64, end: i64) -> Vec<Interval> {
        let cut = |&(flow, part): &(FlowId, Part)| self.cut_flow(flow, part, begin, end);
        // With room for the sum: growing by it would double the room.
        let mut lines = Vec::with_capacity(self.flows.len() + 2);
        lines.extend(self.flows.iter().map(cut));
        self.is_refused |= lines.iter().any(|line| self.is_unsent(line));
        let sums = match lines.len() {
            0 | 1 => Vec::new(),
            _ => sums(&lines, self.is_sum_alone()),
        };
        if self.is_sum_alone() {
            lines.clear();
        }
        lines.extend(sums);
        if let Some(last) = lines.last_mut().filter(|_| self.transactions) {
            let histogram = self.latencies_between(begin, end);
            last.latency = histogram.map(|histogram| Latency::of(&histogram));
        }
        lines
    }

    /// Returns the latencies of all transactions; absent where a host that makes some has told none.
    fn latencies_between(&self, begin: i64, end: i64) -> Option<Histogram> {
        let mut all = Histogram::default();
        for host in &self.requesters {
            all.merge(&self.latencies.get(host)?.between(begin, end)?);
        }
        (!self.requesters.is_empty()).then_some(all)
    }

    fn cut_flow(&self, flow: FlowId, part: Part, begin: i64, end: i64) -> Interval {
        let receiving = (flow, receiving_end(part));
        let sending = self.sending(flow, part);
        let (at, metric) = if self.transactions {
            (receiving, Metric::AppBytesReceived)
        } else {
            self.counted(flow, part, end)
        };
        let (bytes, bytes_ns) = self.difference(at, metric, begin, end).unwrap_or((0, 0));
        let transactions = self
            .difference(receiving, Metric::AppTransactions, begin, end)
            .filter(|_| self.transactions);
        let at_end = |metric| self.at(sending, metric, end);
        let grown = |metric| self.difference(receiving, metric, begin, end);
        let again = |place| {
            let again = self.difference(place, Metric::TcpRetrans, begin, end)?;
            Some(again.0)
        };
        let lost = grown(Metric::AppDatagramsMissing).map(|(count, _)| count);
        let came = grown(Metric::AppDatagramsReceived).map(|(count, _)| count);
        // What a path makes two of was sent once.
        let twice = grown(Metric::AppDatagramsDuplicate).map_or(0, |(count, _)| count);
        let counts = [bytes, came.unwrap_or(0), twice].map(|count| count as i64);
        let bytes = different(counts[0], counts[1], counts[2]) as u64;
        let came = came.map(|came| came.saturating_sub(twice));
        Interval {
            flow: Some(flow.0),
            direction: match part {
                Part::Sender => Some(Direction::ToServer),
                Part::Receiver => Some(Direction::FromServer),
                Part::Requester | Part::Responder => None,
            },
            begin_s: begin as f64 / 1e9,
            end_s: end as f64 / 1e9,
            bytes,
            bits_per_second: per_second(bytes, bytes_ns) * 8.0,
            transactions: transactions.map(|(count, _)| count),
            transactions_per_second: transactions.map(|(count, ns)| per_second(count, ns)),
            latency: None,
            retransmits: again(sending),
            retransmits_both: again(sending)
                .zip(again((flow, sending.1.other())))
                .map(|(one, other)| one + other)
                .filter(|_| self.transactions),
            snd_cwnd_bytes: at_end(Metric::TcpCwnd)
                .zip(at_end(Metric::TcpSndMss))
                .map(|(segments, mss)| (segments * mss) as u64),
            rtt_us: at_end(Metric::TcpRtt).map(|rtt| rtt as f64 / 1e3),
            datagrams: came.zip(lost).map(|(came, lost)| came + lost),
            lost,
            jitter_us: self
                .at(receiving, Metric::AppJitter, end)
                .map(|jitter| jitter as f64 / 1e3),
        }
    }

    /// Returns the growth of a counter between the readings at or after two instants, and the time
    /// between those readings.
    fn difference(&self, place: Place, metric: Metric, begin: i64, end: i64) -> Option<(u64, i64)> {
        let first = self.reading(place, metric, begin)?;
        let last = self.reading(place, metric, end)?;
        Some(((last.1 - first.1).max(0) as u64, last.0 - first.0))
    }

    fn at(&self, place: Place, metric: Metric, at: i64) -> Option<i64> {
        Some(self.reading(place, metric, at)?.1)
    }
}

/// Returns the sender's counter that comes closest to what the server has got, where nothing is read of
/// it.
pub(crate) fn counted_instead(program: &HostProgram, workload: &Workload) -> Option<Metric> {
    match (program, workload.manner.transport) {
        (HostProgram::Agent, _) => None,
        (_, Transport::Udp | Transport::Unix) => Some(Metric::AppBytesSent),
        (_, Transport::Tcp | Transport::Mptcp) => Some(Metric::TcpBytesAcked),
    }
}

fn per_second(count: u64, ns: i64) -> f64 {
    if ns <= 0 {
        0.0
    } else {
        count as f64 * 1e9 / ns as f64
    }
}

/// Returns the sum of each way, to the server first: the two ways of a link are no rate together. One flow alone goes without,
/// unless nothing but sums is wanted.
fn sums(lines: &[Interval], alone: bool) -> Vec<Interval> {
    let ways: BTreeSet<_> = lines.iter().map(|line| line.direction).collect();
    let least = if alone { 1 } else { 2 };
    let of_way = |way| {
        let lines = lines.iter().filter(|line| line.direction == way);
        let lines: Vec<&Interval> = lines.collect();
        (lines.len() >= least).then(|| sum(&lines))
    };
    ways.into_iter().filter_map(of_way).collect()
}

/// Returns the sum of flows that go one way.
fn sum(lines: &[&Interval]) -> Interval {
    let counts = lines.iter().filter_map(|line| line.transactions);
    let rates = lines.iter().filter_map(|line| line.transactions_per_second);
    let again = lines.iter().filter_map(|line| line.retransmits);
    // What is not known of one flow is not known of all.
    let of_all = |of: fn(&Interval) -> Option<u64>| {
        let all = lines.iter().map(|line| of(line));
        all.sum::<Option<u64>>()
    };
    let jitters: Option<Vec<f64>> = lines.iter().map(|line| line.jitter_us).collect();
    Interval {
        flow: None,
        direction: lines[0].direction,
        begin_s: lines[0].begin_s,
        end_s: lines[0].end_s,
        bytes: lines.iter().map(|line| line.bytes).sum(),
        bits_per_second: lines.iter().map(|line| line.bits_per_second).sum(),
        transactions: counts.reduce(u64::add),
        transactions_per_second: rates.reduce(f64::add),
        latency: None,
        retransmits: again.reduce(u64::add),
        retransmits_both: of_all(|line| line.retransmits_both),
        snd_cwnd_bytes: None,
        rtt_us: None,
        datagrams: of_all(|line| line.datagrams),
        lost: of_all(|line| line.lost),
        jitter_us: jitters.map(|all| all.iter().sum::<f64>() / lines.len() as f64),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::TrialId;
    use linerate_model::experiment::{Cell, Timing};
    use linerate_model::workload::{Kind, Workload};

    use super::*;

    const MS: i64 = 1_000_000;

    fn trial(connections: u32) -> Trial {
        let phase = Nanos::from_ms(100);
        Trial {
            id: TrialId(1),
            experiment: "run".into(),
            cell: Cell::new(),
            replicate: 1,
            seed: 0,
            workload: Workload {
                connections,
                ..Workload::stream(Direction::ToServer)
            },
            beside: Vec::new(),
            hosts: Vec::new(),
            step: 0,
            timing: Timing {
                settle: phase,
                warm_up: phase,
                measure: Nanos::from_ms(1000),
                drain: phase,
            },
        }
    }

    fn reading(flow: u32, at_ms: i64, bytes: i64) -> TrialSample {
        TrialSample {
            trial: TrialId(1),
            host: "server".into(),
            subject: Subject::Flow(FlowId(flow), End::Server),
            metric: Metric::AppBytesReceived,
            at_ns: at_ms * MS,
            value: bytes,
        }
    }

    #[test]
    fn only_what_intervals_still_need_is_kept() {
        let flows = 100;
        let mut live = Live::new(&trial(flows), Nanos::from_ms(500));
        live.finish();
        for at_ms in (0..=400).step_by(10) {
            for flow in 0..flows {
                for end in [End::Client, End::Server] {
                    live.add(Metric::ALL.iter().map(|metric| TrialSample {
                        subject: Subject::Flow(FlowId(flow), end),
                        metric: *metric,
                        ..reading(flow, at_ms, at_ms)
                    }));
                }
            }
        }
        let kept: usize = live.readings.values().map(|it| it.edges.len()).sum();
        assert_eq!(
            kept, 600,
            "six counters of each flow, the first of 41 readings"
        );
        for flow in 0..flows {
            live.add([500, 510].map(|at_ms| TrialSample {
                metric: Metric::TcpBytesReceived,
                ..reading(flow, at_ms, at_ms)
            }));
        }
        assert_eq!(live.poll().len(), 1);
        let kept: usize = live.readings.values().map(|it| it.edges.len()).sum();
        assert_eq!(kept, 100, "one edge of the next interval");
    }

    #[test]
    fn what_tcp_took_in_counts_and_not_what_was_read_of_it() {
        let mut live = Live::new(&trial(1), Nanos::from_ms(500));
        live.finish();
        for (at_ms, read, arrived) in [(0, 0, 900), (500, 1900, 1900), (1000, 1900, 2900)] {
            live.add(
                [Metric::AppBytesReceived, Metric::TcpBytesReceived].map(|metric| {
                    let is_app = metric == Metric::AppBytesReceived;
                    TrialSample {
                        metric,
                        ..reading(0, at_ms, if is_app { read } else { arrived })
                    }
                }),
            );
        }
        let bytes: Vec<u64> = live.poll().iter().map(|lines| lines[0].bytes).collect();
        assert_eq!(bytes, [1000, 1000]);
    }

    #[test]
    fn counts_that_cannot_be_end_the_lines() {
        let lines = |received: &[i64], sent: i64| {
            let mut live = Live::new(&trial(1), Nanos::from_ms(500));
            live.add([TrialSample {
                subject: Subject::Flow(FlowId(0), End::Client),
                metric: Metric::AppBytesSent,
                ..reading(0, 0, sent)
            }]);
            let at_ms = (0..).step_by(500);
            live.add(
                at_ms
                    .zip(received)
                    .map(|(at_ms, bytes)| reading(0, at_ms, *bytes)),
            );
            live.finish();
            live.poll().len()
        };
        assert_eq!(lines(&[0, 1000, 2000], 2000), 2);
        assert_eq!(lines(&[0, 1000, 999], 2000), 0, "fallen");
        assert_eq!(lines(&[0, -1, 2000], 2000), 0, "below zero");
        assert_eq!(
            lines(&[0, 2000, 4000], 1000),
            2,
            "read half a second before"
        );
        assert_eq!(lines(&[0, 1000, 4000], 1000), 1, "nobody sent it");
    }

    #[test]
    fn intervals_without_a_reading_of_their_own_are_one() {
        let mut live = Live::new(&trial(2), Nanos::from_ms(100));
        let lines = |live: &mut Live| -> Vec<(f64, f64, u64)> {
            let polled = live.poll();
            let sums = polled.iter().map(|lines| lines.last().expect("a sum"));
            sums.map(|sum| (sum.begin_s, sum.end_s, sum.bytes))
                .collect()
        };
        // Every second edge is left out of both flows, and 600 ms of one of them.
        for at_ms in [0, 200, 400] {
            live.add([0, 1].map(|flow| reading(flow, at_ms, at_ms)));
        }
        live.add([reading(1, 600, 600)]);
        let read = [(0.0, 0.2, 400), (0.2, 0.4, 400)];
        live.is_over = true;
        assert_eq!(lines(&mut live), read);
        live.add([0, 1].map(|flow| reading(flow, 801, 801)));
        assert_eq!(lines(&mut live), [(0.4, 0.8, 802)]);
        live.add([0, 1].map(|flow| reading(flow, 1300, 1300)));
        assert_eq!(lines(&mut live), [(0.8, 1.0, 998)]);
        assert_eq!(lines(&mut live), []);
    }

    #[test]
    fn the_last_interval_is_shown_where_tcp_counts_no_more() {
        let mut live = Live::new(&trial(1), Nanos::from_ms(500));
        let tcp = |at_ms, bytes| TrialSample {
            metric: Metric::TcpBytesReceived,
            ..reading(0, at_ms, bytes)
        };
        live.add([reading(0, 0, 0), tcp(0, 100)]);
        live.add([reading(0, 500, 900), tcp(500, 1000)]);
        live.add([reading(0, 1001, 1900)]);
        live.finish();
        let bytes: Vec<u64> = live.poll().iter().map(|lines| lines[0].bytes).collect();
        assert_eq!(bytes, [900, 1000]);
    }

    #[test]
    fn intervals_wait_for_every_flow_and_add_up() {
        let mut live = Live::new(&trial(2), Nanos::from_ms(500));
        live.finish();
        live.add([
            reading(0, -100, 5),
            reading(0, 0, 1000),
            reading(0, 500, 2000),
        ]);
        assert!(live.poll().is_empty(), "flow 1 has not reported");
        live.add([reading(1, 0, 0), reading(1, 510, 1020)]);
        let lines = live.poll();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].len(), 3);
        assert_eq!(lines[0][0].bits_per_second, 16_000.0);
        assert_eq!(
            lines[0][1].bits_per_second, 16_000.0,
            "1020 B in the 510 ms between readings"
        );
        assert_eq!(lines[0][2].bytes, 2020);
        assert_eq!(lines[0][2].direction, Some(Direction::ToServer));
        live.add([reading(0, 1000, 2500), reading(1, 1000, 1020)]);
        let lines = live.poll();
        assert_eq!((lines.len(), lines[0][2].bytes), (1, 500));
        assert!(live.poll().is_empty(), "the window is over");
    }

    #[test]
    fn intervals_wait_for_what_the_sending_end_says_until_nothing_more_comes() {
        let mut live = Live::new(&trial(1), Nanos::from_ms(500));
        let of_tcp = |at_ms| {
            [Metric::TcpRtt, Metric::TcpRetrans].map(|metric| TrialSample {
                subject: Subject::Flow(FlowId(0), End::Client),
                metric,
                ..reading(0, at_ms, 1000)
            })
        };
        live.add([reading(0, 0, 0), reading(0, 500, 10)]);
        live.add([0, 400].into_iter().flat_map(of_tcp));
        assert!(live.poll().is_empty(), "the sending end was read to 400 ms");
        live.add(of_tcp(500));
        assert_eq!(live.poll()[0][0].rtt_us, Some(1.0));
        live.add([reading(0, 1000, 20)]);
        assert!(live.poll().is_empty());
        live.finish();
        assert_eq!(live.poll()[0][0].rtt_us, None, "it was never read");
    }

    #[test]
    fn who_wants_the_sum_gets_the_same_and_nothing_else() {
        let mut all = Live::new(&trial(3), Nanos::from_ms(500));
        let mut summed = Live::new(&trial(3), Nanos::from_ms(500)).summed();
        all.finish();
        summed.finish();
        for at_ms in [0, 500, 1000] {
            for flow in 0..3 {
                let one = reading(flow, at_ms, i64::from(flow) * at_ms);
                let rtt = TrialSample {
                    subject: Subject::Flow(FlowId(flow), End::Client),
                    metric: Metric::TcpRtt,
                    ..reading(flow, at_ms, 1000)
                };
                all.add([one.clone(), rtt.clone()]);
                summed.add([one, rtt]);
            }
        }
        assert_eq!((all.readings.len(), summed.readings.len()), (6, 3));
        let sums = |lines: Vec<Interval>| lines.last().cloned();
        let expected: Vec<_> = all.poll().into_iter().filter_map(sums).collect();
        assert_eq!(expected[0].bytes, 3 * 500);
        assert_eq!(summed.poll_next(), Some(vec![expected[0].clone()]));
        assert_eq!(summed.poll(), [[expected[1].clone()]]);
    }

    #[test]
    fn each_way_has_a_sum_of_its_own() {
        let check =
            |connections, summed: bool, expect: &[(Option<u32>, Option<Direction>, u64)]| {
                let mut trial = trial(connections);
                trial.workload = Workload {
                    connections,
                    ..Workload::stream(Direction::Both)
                };
                let live = Live::new(&trial, Nanos::from_ms(500));
                let mut live = if summed { live.summed() } else { live };
                live.finish();
                for flow in 0..connections {
                    let end = if flow % 2 == 0 {
                        End::Server
                    } else {
                        End::Client
                    };
                    live.add([0, 500].map(|at_ms| TrialSample {
                        subject: Subject::Flow(FlowId(flow), end),
                        ..reading(flow, at_ms, i64::from(flow + 1) * at_ms)
                    }));
                }
                let lines = live.poll().swap_remove(0);
                let told = |line: &Interval| (line.flow, line.direction, line.bytes);
                assert_eq!(lines.iter().map(told).collect::<Vec<_>>(), expect);
            };
        let (to, from) = (Some(Direction::ToServer), Some(Direction::FromServer));
        check(2, false, &[(Some(0), to, 500), (Some(1), from, 1000)]);
        check(2, true, &[(None, to, 500), (None, from, 1000)]);
        check(4, true, &[(None, to, 2000), (None, from, 3000)]);
        let flows = [
            (Some(0), to, 500),
            (Some(1), from, 1000),
            (Some(2), to, 1500),
            (Some(3), from, 2000),
            (None, to, 2000),
            (None, from, 3000),
        ];
        check(4, false, &flows);
    }

    #[test]
    fn transactions_tell_the_latency_of_each_interval() {
        let mut trial = trial(2);
        trial.workload = Workload {
            connections: 2,
            ..Workload::of(Kind::Rr)
        };
        let host = |host: &str, sample: TrialSample| TrialSample {
            host: host.into(),
            ..sample
        };
        let done = |flow, at_ms, count| TrialSample {
            subject: Subject::Flow(FlowId(flow), End::Client),
            metric: Metric::AppTransactions,
            ..reading(flow, at_ms, count)
        };
        let took = |about: Option<u64>, at_ms, count| TrialSample {
            subject: Subject::Latency(None, about.map(Nanos)),
            metric: Metric::AppLatencies,
            ..reading(0, at_ms, count)
        };
        let (fast, slow) = (Some(20_000), Some(3_000_000));
        let of_one = [
            done(0, 0, 50),
            took(None, 0, 7),
            took(fast, 0, 7),
            done(0, 500, 1550),
            took(None, 500, 1500),
            took(fast, 500, 1490),
            took(slow, 500, 10),
            done(0, 1000, 1560),
            took(None, 1000, 1510),
            took(fast, 1000, 1500),
        ];
        let of_other = [
            done(1, 0, 0),
            took(None, 0, 0),
            done(1, 500, 100),
            took(None, 500, 100),
            took(slow, 500, 100),
            done(1, 1000, 100),
            took(None, 1000, 100),
        ];
        let mut live = Live::new(&trial, Nanos::from_ms(500));
        live.finish();
        live.add(of_one.iter().cloned().map(|it| host("a", it)));
        live.add(of_other.iter().cloned().map(|it| host("b", it)));
        let lines = live.poll();
        let told = |at: usize| lines[at].last().and_then(|line| line.latency.clone());
        let first = told(0).expect("both hosts told it");
        assert_eq!(first.n, 1600, "1490 + 10 of one host, 100 of the other");
        assert_eq!((first.p50_us, first.p99_us), (Some(20.0), Some(3000.0)));
        let second = told(1).expect("both hosts told it");
        assert_eq!((second.n, second.max_us), (10, Some(20.0)));
        assert_eq!((second.p50_us, second.p99_us), (None, None), "too few");
        assert!(lines[0][0].latency.is_none(), "a host tells of all flows");

        // An agent that does not tell latencies: what one host says is not that of all.
        let mut live = Live::new(&trial, Nanos::from_ms(500));
        live.finish();
        let is_flow = |sample: &TrialSample| matches!(sample.subject, Subject::Flow(..));
        live.add(of_one.iter().cloned().map(|it| host("a", it)));
        let of_other = of_other.iter().filter(|it| is_flow(it)).cloned();
        live.add(of_other.map(|it| host("b", it)));
        assert!(live.poll().concat().iter().all(|it| it.latency.is_none()));
    }

    #[test]
    fn transactions_tell_what_both_ends_sent_again_when_both_were_read() {
        let mut trial = trial(1);
        trial.workload = Workload::of(Kind::Rr);
        let at = |end, metric, at_ms, value| TrialSample {
            subject: Subject::Flow(FlowId(0), end),
            metric,
            ..reading(0, at_ms, value)
        };
        let client = |at_ms, again| {
            [
                at(End::Client, Metric::AppTransactions, at_ms, at_ms),
                at(End::Client, Metric::TcpRetrans, at_ms, again),
            ]
        };
        let server = |at_ms, again| at(End::Server, Metric::TcpRetrans, at_ms, again);
        let mut live = Live::new(&trial, Nanos::from_ms(500));
        live.add(client(0, 1).into_iter().chain(client(500, 3)));
        assert!(live.poll().is_empty(), "the server was not read");
        live.add([server(0, 10), server(500, 43)]);
        let told = |line: &Interval| (line.retransmits, line.retransmits_both);
        assert_eq!(told(&live.poll()[0][0]), (Some(2), Some(35)));
        live.add(client(1000, 4));
        live.finish();
        assert_eq!(told(&live.poll()[0][0]), (Some(1), None), "a lost server");
    }

    #[test]
    fn datagrams_tell_what_is_missing_and_their_jitter() {
        let mut trial = trial(2);
        trial.workload.manner.transport = Transport::Udp;
        let mut live = Live::new(&trial, Nanos::from_ms(500));
        let at = |flow, at_ms, received, missing, jitter_ns| {
            let counts = [
                (Metric::AppBytesReceived, 100 * received),
                (Metric::AppDatagramsReceived, received),
                (Metric::AppDatagramsMissing, missing),
                (Metric::AppJitter, jitter_ns),
            ];
            counts.map(|(metric, value)| TrialSample {
                metric,
                ..reading(flow, at_ms, value)
            })
        };
        live.add(at(0, 0, 10, 2, 1000));
        live.add(at(1, 0, 0, 0, 1000));
        live.add(at(0, 500, 100, 12, 3000));
        live.add(at(1, 500, 50, 0, 5000));
        let lines = live.poll().swap_remove(0);
        let told = |line: &Interval| (line.datagrams, line.lost, line.jitter_us);
        assert_eq!(told(&lines[0]), (Some(100), Some(10), Some(3.0)));
        assert_eq!(told(&lines[1]), (Some(50), Some(0), Some(5.0)));
        assert_eq!(told(&lines[2]), (Some(150), Some(10), Some(4.0)));
        // A late one that came lowers what is missing: no interval has lost less than nothing.
        live.add(at(0, 1000, 200, 2, 3000));
        live.add([reading(1, 1000, 9000)]);
        let lines = live.poll().swap_remove(0);
        assert_eq!(told(&lines[0]), (Some(100), Some(0), Some(3.0)));
        assert_eq!(told(&lines[2]), (None, None, None), "one was not read");
    }

    #[test]
    fn datagrams_that_came_twice_count_once() {
        let mut trial = trial(1);
        trial.workload.manner.transport = Transport::Udp;
        let mut live = Live::new(&trial, Nanos::from_ms(500));
        let at = |at_ms, received: i64, twice| {
            let counts = [
                (Metric::AppBytesReceived, 100 * received),
                (Metric::AppDatagramsReceived, received),
                (Metric::AppDatagramsDuplicate, twice),
                (Metric::AppDatagramsMissing, 0),
            ];
            counts.map(|(metric, value)| TrialSample {
                metric,
                ..reading(0, at_ms, value)
            })
        };
        live.add(at(0, 10, 10));
        live.add(at(500, 160, 60));
        live.add(at(1000, 260, 60));
        let told = |line: &Interval| (line.bytes, line.datagrams);
        let lines = live.poll();
        assert_eq!(told(&lines[0][0]), (10_000, Some(100)), "150 came");
        assert_eq!(told(&lines[1][0]), (10_000, Some(100)));
    }

    #[test]
    fn what_a_foreign_server_acknowledged_stands_for_what_it_received() {
        let trial = trial(1);
        let mut live = Live::new(&trial, Nanos::from_ms(500))
            .with_server(&trial, &HostProgram::Foreign("iperf3".to_owned()));
        live.finish();
        let acked = |at_ms: i64, bytes: i64| TrialSample {
            host: "client1".into(),
            subject: Subject::Flow(FlowId(0), End::Client),
            metric: Metric::TcpBytesAcked,
            ..reading(0, at_ms, bytes)
        };
        live.add([acked(0, 37), acked(500, 1037), acked(1000, 1537)]);
        let bytes: Vec<u64> = live.poll().iter().map(|lines| lines[0].bytes).collect();
        assert_eq!(bytes, [1000, 500]);
    }
}
