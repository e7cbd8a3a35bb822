//! Interval lines of a running trial, from its samples as they arrive.
//!
//! The same counters as the final numbers: payload that TCP took in, in order, at the receiving
//! ends, or that receive calls returned where that is not known. A flow's rate in an interval is the
//! difference of its readings at or after the two edges over the true time between them, so a late
//! reading is no error.

use std::collections::BTreeMap;
use std::ops::Add as _;

use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::sample::{End, Subject, TrialSample};
use linerate_model::workload::{Kind, Part, Workload, receiving_end};
use linerate_model::{FlowId, Nanos};
use serde::Serialize;

/// One interval of one flow, or of all.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Interval {
    /// The flow; absent for the sum.
    pub flow: Option<u32>,
    /// Which way the payload went; absent for the sum of both ways.
    pub direction: Option<&'static str>,
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
    /// Segments sent again by the sending end.
    pub retransmits: Option<u64>,
    /// Congestion window of the sending end at the end of the interval.
    pub snd_cwnd_bytes: Option<u64>,
    /// Smoothed round-trip time at the sending end.
    pub rtt_us: Option<f64>,
}

/// An end of a flow.
type Place = (FlowId, End);

/// Readings of a series that are held at a time: at the last edge and at the next.
const EDGES_HELD: usize = 2;

/// Cuts a running trial into intervals.
#[derive(Debug)]
pub struct Live {
    interval_ns: i64,
    window_ns: i64,
    transactions: bool,
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
    /// Readings by end of a flow and metric, in order of time; only those that intervals still need: with
    /// thousands of flows the others would be most of the program's memory.
    readings: BTreeMap<(Place, Metric), Vec<(i64, i64)>>,
    done: i64,
}

impl Live {
    /// Returns a cutter for `trial` with intervals of `interval`.
    pub fn new(trial: &Trial, interval: Nanos) -> Self {
        Self {
            interval_ns: (interval.0 as i64).max(1),
            window_ns: trial.timing.measure.0 as i64,
            transactions: trial.workload.traffic.is_transactional(),
            by_tcp: trial.workload.traffic.is_stream()
                && matches!(
                    trial.workload.manner.transport,
                    Transport::Tcp | Transport::Mptcp
                ),
            instead: None,
            flows: trial
                .workload
                .flows()
                .iter()
                .map(|flow| (flow.flow, flow.client_part))
                .collect(),
            summed: false,
            is_over: false,
            over_tcp: trial.workload.manner.transport == Transport::Tcp
                && !matches!(trial.workload.traffic.kind(), Kind::Crr | Kind::Idle),
            readings: BTreeMap::new(),
            done: 0,
        }
    }

    /// Returns the same cutter for a server of which nothing is read, if `foreign`: payload to it is
    /// then what its host acknowledged, or what was sent where nothing is acknowledged.
    pub fn with_server(mut self, trial: &Trial, foreign: bool) -> Self {
        self.instead = foreign.then(|| acknowledged(&trial.workload));
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

    /// Takes up new samples, those of each series in order of time; only those of flows matter.
    pub fn add(&mut self, samples: impl IntoIterator<Item = TrialSample>) {
        for sample in samples {
            let Subject::Flow(flow, end) = sample.subject else {
                continue;
            };
            if sample.at_ns < 0 || !self.is_wanted((flow, end), sample.metric) {
                continue;
            }
            let (interval_ns, window_ns) = (self.interval_ns, self.window_ns);
            let edges =
                |at_ns: i64| at_ns.min(window_ns) / interval_ns + i64::from(at_ns >= window_ns);
            let key = ((flow, end), sample.metric);
            let series = self.readings.entry(key);
            let series = series.or_insert_with(|| Vec::with_capacity(EDGES_HELD));
            // Only the first reading at or after an edge is ever looked for.
            let last = series.last();
            if last.is_none_or(|&(last_ns, _)| edges(sample.at_ns) > edges(last_ns)) {
                series.push((sample.at_ns, sample.value));
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
            Metric::TcpRetrans => receives == self.transactions,
            // A sum has none.
            Metric::TcpCwnd | Metric::TcpSndMss | Metric::TcpRtt => {
                receives == self.transactions && !self.is_sum_alone()
            }
            other => self.instead == Some(other),
        }
    }

    /// Returns the intervals that became complete: for each its flows, then the sum.
    pub fn poll(&mut self) -> Vec<Vec<Interval>> {
        std::iter::from_fn(|| self.poll_next()).collect()
    }

    /// Returns the next interval that became complete, for those who hold one at a time: the lines
    /// of thousands of flows take a megabyte.
    pub fn poll_next(&mut self) -> Option<Vec<Interval>> {
        let begin = self.done * self.interval_ns;
        let end = (begin + self.interval_ns).min(self.window_ns);
        if begin >= end || !self.covered(end) {
            return None;
        }
        let lines = self.cut(begin, end);
        self.done += 1;
        for series in self.readings.values_mut() {
            let past = series.partition_point(|reading| reading.0 < end);
            series.drain(..past);
        }
        Some(lines)
    }

    /// Returns whether a sum is all that is shown.
    fn is_sum_alone(&self) -> bool {
        self.summed && self.flows.len() > 1
    }

    /// Returns the end at which the payload of a flow is counted, and the counter.
    fn counted(&self, flow: FlowId, part: Part) -> (Place, Metric) {
        let end = receiving_end(part);
        match self.instead {
            _ if self.transactions => ((flow, end), Metric::AppTransactions),
            Some(metric) if end == End::Server => ((flow, End::Client), metric),
            _ if self.is_read((flow, end), Metric::TcpBytesReceived) => {
                ((flow, end), Metric::TcpBytesReceived)
            }
            _ => ((flow, end), Metric::AppBytesReceived),
        }
    }

    /// Returns whether a counter has come: those of one reading come together.
    fn is_read(&self, place: Place, metric: Metric) -> bool {
        self.readings.contains_key(&(place, metric))
    }

    /// Returns whether all that an interval up to `at` shows has been read: its payload, and what the
    /// sending end says of TCP where that is read at all.
    fn covered(&self, at: i64) -> bool {
        let reaches = |place, metric| {
            let series = self.readings.get(&(place, metric));
            series.is_some_and(|all| all.last().is_some_and(|last| last.0 >= at))
        };
        self.flows.iter().all(|&(flow, part)| {
            let (place, metric) = self.counted(flow, part);
            let sending = self.sending(flow, part);
            let is_read = self.instead.is_none() || sending.1 == End::Client;
            let is_awaited = self.over_tcp && is_read && !self.is_over;
            // What TCP says at one instant comes together, of each flow at least this.
            reaches(place, metric) && (!is_awaited || reaches(sending, Metric::TcpRetrans))
        })
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

    fn cut(&self, begin: i64, end: i64) -> Vec<Interval> {
        let cut = |&(flow, part): &(FlowId, Part)| self.cut_flow(flow, part, begin, end);
        // With room for the sum: growing by it would double the room.
        let mut lines = Vec::with_capacity(self.flows.len() + 1);
        lines.extend(self.flows.iter().map(cut));
        if lines.len() > 1 {
            let sum = sum(&lines);
            if self.summed {
                return vec![sum];
            }
            lines.push(sum);
        }
        lines
    }

    fn cut_flow(&self, flow: FlowId, part: Part, begin: i64, end: i64) -> Interval {
        let receiving = (flow, receiving_end(part));
        let sending = self.sending(flow, part);
        let (at, metric) = if self.transactions {
            (receiving, Metric::AppBytesReceived)
        } else {
            self.counted(flow, part)
        };
        let (bytes, bytes_ns) = self.difference(at, metric, begin, end).unwrap_or((0, 0));
        let transactions = self.difference(receiving, Metric::AppTransactions, begin, end);
        let transactions = transactions.filter(|_| self.transactions);
        let at_end = |metric| self.at(sending, metric, end);
        Interval {
            flow: Some(flow.0),
            direction: match part {
                Part::Sender => Some("to-server"),
                Part::Receiver => Some("from-server"),
                Part::Requester | Part::Responder => None,
            },
            begin_s: begin as f64 / 1e9,
            end_s: end as f64 / 1e9,
            bytes,
            bits_per_second: per_second(bytes, bytes_ns) * 8.0,
            transactions: transactions.map(|(count, _)| count),
            transactions_per_second: transactions.map(|(count, ns)| per_second(count, ns)),
            retransmits: self
                .difference(sending, Metric::TcpRetrans, begin, end)
                .map(|(count, _)| count),
            snd_cwnd_bytes: at_end(Metric::TcpCwnd)
                .zip(at_end(Metric::TcpSndMss))
                .map(|(segments, mss)| (segments * mss) as u64),
            rtt_us: at_end(Metric::TcpRtt).map(|rtt| rtt as f64 / 1e3),
        }
    }

    /// Returns the growth of a counter between the readings at or after two instants, and the time
    /// between those readings.
    fn difference(&self, place: Place, metric: Metric, begin: i64, end: i64) -> Option<(u64, i64)> {
        let readings = self.readings.get(&(place, metric))?;
        let first = readings.iter().find(|reading| reading.0 >= begin)?;
        let last = readings.iter().find(|reading| reading.0 >= end)?;
        Some(((last.1 - first.1).max(0) as u64, last.0 - first.0))
    }

    fn at(&self, place: Place, metric: Metric, at: i64) -> Option<i64> {
        let readings = self.readings.get(&(place, metric))?;
        readings
            .iter()
            .find(|reading| reading.0 >= at)
            .map(|reading| reading.1)
    }
}

/// Returns the sender's counter that comes closest to what a receiver that is not read has got.
pub(crate) fn acknowledged(workload: &Workload) -> Metric {
    match workload.manner.transport {
        Transport::Udp | Transport::Unix => Metric::AppBytesSent,
        Transport::Tcp | Transport::Mptcp => Metric::TcpBytesAcked,
    }
}

fn per_second(count: u64, ns: i64) -> f64 {
    if ns <= 0 {
        0.0
    } else {
        count as f64 * 1e9 / ns as f64
    }
}

fn sum(lines: &[Interval]) -> Interval {
    let total = |of: fn(&Interval) -> Option<u64>| lines.iter().filter_map(of).reduce(u64::add);
    let rate = |of: fn(&Interval) -> Option<f64>| lines.iter().filter_map(of).reduce(f64::add);
    let one_way = lines
        .windows(2)
        .all(|pair| pair[0].direction == pair[1].direction);
    Interval {
        flow: None,
        direction: lines[0].direction.filter(|_| one_way),
        begin_s: lines[0].begin_s,
        end_s: lines[0].end_s,
        bytes: lines.iter().map(|line| line.bytes).sum(),
        bits_per_second: lines.iter().map(|line| line.bits_per_second).sum(),
        transactions: total(|line| line.transactions),
        transactions_per_second: rate(|line| line.transactions_per_second),
        retransmits: total(|line| line.retransmits),
        snd_cwnd_bytes: None,
        rtt_us: None,
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::TrialId;
    use linerate_model::experiment::{Cell, Timing};
    use linerate_model::workload::{Direction, Workload};

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
        let kept: usize = live.readings.values().map(Vec::len).sum();
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
        let kept: usize = live.readings.values().map(Vec::len).sum();
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
        assert_eq!(lines[0][2].direction, Some("to-server"));
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
    fn what_a_foreign_server_acknowledged_stands_for_what_it_received() {
        let trial = trial(1);
        let mut live = Live::new(&trial, Nanos::from_ms(500)).with_server(&trial, true);
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
