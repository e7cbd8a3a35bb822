//! One measurement as iperf3 counts it: intervals of the client's end and totals of both ends for each
//! stream, and the CPU time of our own threads.
//!
//! These are numbers alone; the documents are made of them elsewhere.

use std::collections::BTreeMap;

use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::run::{
    FlowRecord, HostPart, HostProgram, Recording, RunDocument, server_program,
};
use linerate_model::sample::{End, Subject};
use linerate_model::samples::edges;
use linerate_model::samples::{Reading, Samples};
use linerate_model::setting;
use linerate_model::workload::{FlowPlan, Part};
use linerate_model::{FlowId, HostName, Nanos};

use crate::reduce::window::Readings;

/// One measurement.
#[derive(Debug, PartialEq)]
pub struct Test<'a> {
    /// The streams in iperf3's order: those on which the client sends, then the others.
    pub streams: Vec<Stream<'a>>,
    /// Segment size of the first stream.
    pub mss_bytes: Option<u32>,
    /// SO_SNDBUF of the first stream, as the kernel says it.
    pub sndbuf_bytes: Option<u64>,
    /// SO_RCVBUF of the first stream, as the kernel says it.
    pub rcvbuf_bytes: Option<u64>,
    /// Congestion control of the first sender.
    pub sender_congestion: Option<String>,
    /// Congestion control of the first receiver.
    pub receiver_congestion: Option<String>,
    /// The client's CPU time.
    pub client_cpu: Option<CpuTime>,
    /// The server's CPU time.
    pub server_cpu: Option<CpuTime>,
}

/// CPU time of our own threads over the window, of one CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuTime {
    /// In user mode.
    pub user_percent: f64,
    /// In the kernel.
    pub system_percent: f64,
}

/// One stream.
#[derive(Debug, PartialEq)]
pub struct Stream<'a> {
    /// What became of the client's end, once that is known.
    pub client: Option<&'a FlowRecord>,
    /// Whether the client sends.
    pub sends: bool,
    /// What the client counted, as far as intervals are complete.
    pub intervals: Vec<Interval>,
    /// What the sender counted in the window.
    pub sent: Option<Total>,
    /// What the receiver counted in the window.
    pub received: Option<Total>,
}

/// What the client counted in an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its begin after that of the window, or of the warm-up where it is omitted.
    pub begin_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Payload.
    pub bytes: u64,
    /// Whether it lies in the warm-up.
    pub omitted: bool,
    /// The kernel's view of a TCP stream on which the client sends.
    pub tcp: Option<Tcp>,
    /// Datagrams.
    pub datagrams: Option<Datagrams>,
}

/// The kernel's view of a TCP stream at the end of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp {
    /// Segments retransmitted in the interval.
    pub retransmits: u64,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// The peer's window.
    pub snd_wnd_bytes: u64,
    /// Smoothed round trip.
    pub rtt_us: u64,
    /// Its variation.
    pub rttvar_us: u64,
    /// The path's MTU.
    pub pmtu_bytes: u64,
}

/// What one end knows of datagrams; a sender only how many it sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// Sent, or the numbers passed by.
    pub packets: u64,
    /// Lost.
    pub lost: u64,
    /// Late or double.
    pub out_of_order: u64,
    /// Jitter at its end.
    pub jitter_ns: u64,
}

/// What one end counted in the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Total {
    /// How long it counted.
    pub seconds: f64,
    /// Payload.
    pub bytes: u64,
    /// Segments retransmitted, of a sender.
    pub retransmits: Option<u64>,
    /// Datagrams.
    pub datagrams: Option<Datagrams>,
}

/// Returns what is known while the trial runs.
pub fn so_far<'a>(
    document: &'a RunDocument,
    trial: &'a Trial,
    samples: &'a Samples,
    interval: Nanos,
) -> Test<'a> {
    let readings = Readings::new(samples, trial.id, trial.timing.measure.0);
    Source {
        document,
        trial,
        readings,
        records: &[],
        interval,
    }
    .test()
}

/// Returns all of the first trial, and the trial; none where there was none.
pub fn whole(recording: &Recording, interval: Nanos) -> Option<(&Trial, Test<'_>)> {
    let document = &recording.document;
    let (trial, record) = document.plan.trials.first().zip(recording.trials.first())?;
    let source = Source {
        document,
        trial,
        readings: Readings::of(recording, record),
        records: &recording.flows,
        interval,
    };
    Some((trial, source.test()))
}

/// What the numbers are made of.
struct Source<'a> {
    document: &'a RunDocument,
    trial: &'a Trial,
    readings: Readings<'a>,
    records: &'a [FlowRecord],
    interval: Nanos,
}

type Records<'a> = BTreeMap<(FlowId, End), &'a FlowRecord>;

impl<'a> Source<'a> {
    fn test(&self) -> Test<'a> {
        let of_trial = |record: &&FlowRecord| record.trial == self.trial.id;
        let all = self.records.iter().filter(of_trial);
        let by_end = all
            .clone()
            .map(|record| ((record.flow, record.end), record));
        let records: Records<'a> = by_end.collect();
        let mut plans = self.trial.workload.flows();
        let mss = plans.first().and_then(|plan| {
            let mss = self
                .readings
                .flow(plan.flow, End::Client, Metric::TcpSndMss)?;
            u32::try_from(mss.first()?.1).ok()
        });
        plans.sort_by_key(|plan| plan.client_part != Part::Sender);
        let first = |is_meant: fn(&FlowRecord) -> bool, name: &str| {
            let record = all.clone().find(|record| is_meant(record))?;
            record.settings.named(name)
        };
        let congestion = |is_meant| {
            let setting = first(is_meant, setting::name::TCP_CONGESTION)?;
            setting.in_force().map(str::to_owned)
        };
        // What the kernel says is twice what it lets payload use.
        let buffer = |name| {
            let granted = &first(|record| record.end == End::Client, name)?.granted;
            Some(2 * granted.as_ref()?.parse::<u64>().ok()?)
        };
        Test {
            mss_bytes: mss,
            sndbuf_bytes: buffer(setting::name::SO_SNDBUF),
            rcvbuf_bytes: buffer(setting::name::SO_RCVBUF),
            sender_congestion: congestion(|record| record.part == Part::Sender),
            receiver_congestion: congestion(|record| record.part == Part::Receiver),
            client_cpu: self.cpu(HostPart::Client),
            server_cpu: self.cpu(HostPart::Server),
            streams: plans
                .iter()
                .map(|plan| self.stream(plan, &records))
                .collect(),
        }
    }

    fn stream(&self, plan: &FlowPlan, records: &Records<'a>) -> Stream<'a> {
        let record = |end| records.get(&(plan.flow, end)).copied();
        let sends = plan.client_part == Part::Sender;
        let (sender, receiver) = if sends {
            (End::Client, End::Server)
        } else {
            (End::Server, End::Client)
        };
        Stream {
            client: record(End::Client),
            sends,
            intervals: self.intervals(plan.flow, sends),
            sent: record(sender).and_then(|record| self.total(record)),
            received: record(receiver).and_then(|record| self.total(record)),
        }
    }

    fn server(&self) -> &HostProgram {
        server_program(&self.document.hosts)
    }

    fn window_s(&self) -> f64 {
        self.readings.window_ns().max(1) as f64 / 1e9
    }

    fn of(&self, flow: FlowId, end: End, metric: Metric) -> Vec<Reading> {
        self.readings.flow(flow, end, metric).unwrap_or_default()
    }

    /// Returns the counter of an end's payload: of a receiving end what TCP took in, as everywhere;
    /// beside a server that is no agent what receive calls returned, as that server counts.
    fn payload(&self, flow: FlowId, end: End, sends: bool) -> Vec<Reading> {
        if sends {
            return self.of(flow, end, Metric::AppBytesSent);
        }
        let by_tcp = match self.server() {
            HostProgram::Agent => self.readings.flow(flow, end, Metric::TcpBytesReceived),
            HostProgram::Foreign(_) => None,
        };
        by_tcp.unwrap_or_else(|| self.of(flow, end, Metric::AppBytesReceived))
    }

    /// Returns what one end counted inside the window.
    fn total(&self, record: &FlowRecord) -> Option<Total> {
        let (flow, end) = (record.flow, record.end);
        let sends = record.part == Part::Sender;
        let payload = self.payload(flow, end, sends);
        let retransmits = self.of(flow, end, Metric::TcpRetrans);
        let window = (0, self.readings.window_ns());
        let all = if sends {
            record.bytes_sent
        } else {
            record.bytes_received
        };
        let (bytes, seconds) = match (self.server(), end) {
            // Its bytes leave out what was omitted.
            (HostProgram::Foreign(_), End::Server) => {
                let counted_s = record.counted_ns.map(|counted_ns| counted_ns as f64 / 1e9);
                let seconds = if sends {
                    counted_s.unwrap_or(self.window_s())
                } else {
                    let drained_s = self.drained_s(flow, all).unwrap_or(self.window_s());
                    // It counts on until it has heard that the test is over, while nothing comes.
                    drained_s.min(counted_s.unwrap_or(drained_s))
                };
                (all, seconds)
            }
            (HostProgram::Foreign(_), End::Client) if sends => {
                (self.counted(&payload, all, sends)?, self.window_s())
            }
            _ => self.grown(&payload)?,
        };
        Some(Total {
            seconds,
            bytes,
            retransmits: grown(&retransmits, window)
                .map(|(count, _)| count)
                .filter(|_| sends),
            datagrams: self.datagrams_of(record),
        })
    }

    /// Returns what a counter of an end that sends or receives counted of the window; `all` is its last value.
    ///
    /// Beside a server that is no agent a client that sends has no traffic after the window, and what it sent
    /// since that began is all of it; such a server sends until it has heard of the end.
    fn counted(&self, series: &[Reading], all: u64, sends: bool) -> Option<u64> {
        match self.server() {
            HostProgram::Foreign(_) if sends && self.trial.timing.warm_up.0 > 0 => {
                let before = at(series, 0).unwrap_or(0).max(0).unsigned_abs();
                Some(all.saturating_sub(before))
            }
            HostProgram::Foreign(_) if sends => Some(all),
            _ => self.grown(series).map(|(count, _)| count),
        }
    }

    /// Returns how long `all` that the client sent took to arrive, at the rate at which it was acknowledged in the
    /// window: what lay in its buffers at the end came after that. Absent where nothing is acknowledged.
    fn drained_s(&self, flow: FlowId, all: u64) -> Option<f64> {
        let acked = self.of(flow, End::Client, Metric::TcpBytesAcked);
        let (bytes, seconds) = self.grown(&acked)?;
        (bytes > 0).then(|| (seconds * all as f64 / bytes as f64).max(self.window_s()))
    }

    /// Returns the growth of a counter in the window, and the time that it is of. Without a warm-up nothing had
    /// moved when the window began, although the first reading may be late.
    fn grown(&self, series: &[Reading]) -> Option<(u64, f64)> {
        let window = (0, self.readings.window_ns());
        match self.server() {
            HostProgram::Foreign(_) if self.trial.timing.warm_up.0 == 0 => {
                let read = series.iter().filter(|reading| reading.0 > 0);
                let whole: Vec<Reading> = [(0, 0)].into_iter().chain(read.copied()).collect();
                grown(&whole, window)
            }
            _ => grown(series, window),
        }
    }

    /// Returns the datagrams of the window, as its bytes are; of all phases where one end does not know which
    /// are the window's, so that those of the two ends can be compared.
    fn datagrams_of(&self, record: &FlowRecord) -> Option<Datagrams> {
        let counts = record.datagrams.as_ref().filter(|_| self.is_udp())?;
        let sends = record.part == Part::Sender;
        let window = (0, self.readings.window_ns());
        let series = DATAGRAM_COUNTERS.map(|metric| self.of(record.flow, record.end, metric));
        let is_known = |end| {
            let metrics = [Metric::AppDatagramsSent, Metric::AppDatagramsReceived];
            let mut all = metrics
                .map(|metric| self.of(record.flow, end, metric))
                .into_iter();
            all.any(|series| grown(&series, window).is_some())
        };
        let [sent, received, missing, late, duplicates, jitter] = &series;
        let is_of_window = is_known(End::Client) && is_known(End::Server);
        let client_sends = sends == (record.end == End::Client);
        let counted = |series: &[Reading], all| {
            if is_of_window {
                self.counted(series, all, client_sends)
            } else {
                Some(all)
            }
        };
        if sends {
            return Some(Datagrams {
                packets: counted(sent, counts.sent)?,
                ..Datagrams::default()
            });
        }
        let arrived = [
            counted(received, counts.received)?,
            counted(missing, counts.missing())?,
            counted(late, counts.late).unwrap_or(0),
            counted(duplicates, counts.duplicates).unwrap_or(0),
        ];
        // At the end of a flow it is of how the traffic stopped.
        let jitter_ns = gauge_at(jitter, window.1).or(counts.jitter_ns);
        Some(of_receiver(arrived, jitter_ns.unwrap_or(0)))
    }

    fn is_udp(&self) -> bool {
        self.trial.workload.manner.transport == Transport::Udp
    }

    /// Returns the intervals of the client's end that are complete.
    fn intervals(&self, flow: FlowId, sends: bool) -> Vec<Interval> {
        // Without intervals it has one, in which its kernel's readings are.
        let step = match self.interval.0 {
            0 => self.readings.window_ns(),
            interval => i64::try_from(interval).unwrap_or(i64::MAX),
        };
        let payload = self.payload(flow, End::Client, sends);
        let Some(last) = payload.last().filter(|_| step > 0) else {
            return Vec::new();
        };
        let warm_up = -(self.trial.timing.warm_up.0 as i64);
        let cut = |begin: i64, end: i64| {
            (0..)
                .map(move |at| begin.saturating_add(step.saturating_mul(at)))
                .take_while(move |from| *from < end)
                .map(move |from| (from, from.saturating_add(step).min(end)))
        };
        let omitted = cut(warm_up, 0).map(|between| (between, warm_up));
        let counted = cut(0, self.readings.window_ns()).map(|between| (between, 0));
        let tcp = sends.then(|| TCP.map(|metric| self.of(flow, End::Client, metric)));
        let datagrams = self
            .is_udp()
            .then(|| DATAGRAM_COUNTERS.map(|metric| self.of(flow, End::Client, metric)));
        omitted
            .chain(counted)
            .take_while(|((_, to), _)| *to <= last.0)
            .filter_map(|(between, origin)| {
                let (bytes, _) = grown(&payload, between)?;
                let seconds = |at: i64| (at - origin) as f64 / 1e9;
                Some(Interval {
                    begin_s: seconds(between.0),
                    end_s: seconds(between.1),
                    bytes,
                    omitted: between.0 < 0,
                    tcp: tcp.as_ref().and_then(|tcp| tcp_in(tcp, between)),
                    datagrams: datagrams
                        .as_ref()
                        .map(|counts| datagrams_in(counts, sends, between)),
                })
            })
            .collect()
    }

    /// Returns the CPU time of our own threads on all hosts of a part.
    fn cpu(&self, part: HostPart) -> Option<CpuTime> {
        let is_part = |host: &HostName| {
            let mut hosts = self.document.hosts.iter();
            hosts.any(|record| record.part == part && record.name == *host)
        };
        let window = (0, self.readings.window_ns());
        let percent = |metric| {
            let threads = self
                .readings
                .subjects()
                .filter(|(subject, of)| matches!(subject, Subject::Thread(_)) && is_part(of));
            let grown = threads.filter_map(|(subject, host)| {
                let (ns, _) = grown(&self.readings.on(host, subject, metric)?, window)?;
                Some(ns as f64 / 1e9)
            });
            let seconds = grown.reduce(|sum, one| sum + one)?;
            Some(100.0 * seconds / self.window_s())
        };
        Some(CpuTime {
            user_percent: percent(Metric::ThreadUser)?,
            system_percent: percent(Metric::ThreadSystem)?,
        })
    }
}

/// What the kernel's view of a stream is made of.
const TCP: [Metric; 7] = [
    Metric::TcpRetrans,
    Metric::TcpCwnd,
    Metric::TcpSndMss,
    Metric::TcpSndWnd,
    Metric::TcpRtt,
    Metric::TcpRttVar,
    Metric::TcpPmtu,
];

fn tcp_in(series: &[Vec<Reading>; 7], between: (i64, i64)) -> Option<Tcp> {
    let [retransmits, gauges @ ..] = series;
    let [cwnd, mss, wnd, rtt, rttvar, pmtu] = gauges
        .each_ref()
        .map(|gauge| Some(at(gauge, between.1)?.max(0).unsigned_abs()));
    Some(Tcp {
        retransmits: grown(retransmits, between)?.0,
        cwnd_bytes: cwnd? * mss?,
        snd_wnd_bytes: wnd.unwrap_or(0),
        rtt_us: rtt? / 1000,
        rttvar_us: rttvar.unwrap_or(0) / 1000,
        pmtu_bytes: pmtu.unwrap_or(0),
    })
}

/// What is counted of datagrams.
const DATAGRAM_COUNTERS: [Metric; 6] = [
    Metric::AppDatagramsSent,
    Metric::AppDatagramsReceived,
    Metric::AppDatagramsMissing,
    Metric::AppDatagramsLate,
    Metric::AppDatagramsDuplicate,
    Metric::AppJitter,
];

fn datagrams_in(series: &[Vec<Reading>; 6], sends: bool, between: (i64, i64)) -> Datagrams {
    let count = |one: &Vec<Reading>| grown(one, between).map_or(0, |(count, _)| count);
    let [counts @ .., jitter] = series.each_ref();
    let [sent, arrived @ ..] = counts.map(count);
    let jitter_ns = gauge_at(jitter, between.1).unwrap_or(0);
    if sends {
        Datagrams {
            packets: sent,
            ..Datagrams::default()
        }
    } else {
        of_receiver(arrived, jitter_ns)
    }
}

/// Returns what a receiver says of datagrams as iperf3 counts them: its packets are different ones, and one
/// that comes again is out of order.
fn of_receiver([received, lost, late, duplicates]: [u64; 4], jitter_ns: u64) -> Datagrams {
    Datagrams {
        packets: received.saturating_sub(duplicates) + lost,
        lost,
        out_of_order: late + duplicates,
        jitter_ns,
    }
}

/// Returns the growth of a counter between two instants, and the time between its readings.
fn grown(series: &[Reading], between: (i64, i64)) -> Option<(u64, f64)> {
    let (first, last) = edges(series, between.0, between.1)?;
    let amount = (last.1 - first.1).max(0).unsigned_abs();
    Some((amount, (last.0 - first.0) as f64 / 1e9))
}

/// Returns what a gauge that is not below zero shows at an instant.
fn gauge_at(series: &[Reading], at_ns: i64) -> Option<u64> {
    at(series, at_ns).map(|value| value.max(0).unsigned_abs())
}

/// Returns the first value at or after an instant, or the last there is.
fn at(series: &[Reading], at_ns: i64) -> Option<i64> {
    let found = series.iter().find(|reading| reading.0 >= at_ns);
    found.or(series.last()).map(|reading| reading.1)
}

#[cfg(test)]
mod tests {
    use linerate_model::sample::TrialSample;
    use linerate_model::workload::{Direction, Workload};

    use super::*;
    use linerate_truth::recording::{MadeRun, Truth, stream};

    /// Returns a recording of a second of 80 Mbit/s after 200 ms of warm-up.
    fn recording(workload: Workload) -> Recording {
        let mut run = MadeRun::new(1, None);
        run.experiment("run", None, workload);
        let truth = Truth {
            lost_share: 0.01,
            congestion: Some("cubic"),
            delivered_variation: Some(0.0),
            ..Truth::stream(80e6)
        };
        run.trial(&[], 1, &truth);
        run.recording
    }

    #[test]
    fn intervals_add_up_to_the_total_and_the_warm_up_counts_for_itself() {
        let recording = recording(stream());
        let (_, test) = whole(&recording, Nanos::from_ms(100)).unwrap();
        let [stream] = &test.streams[..] else {
            panic!("one stream");
        };
        let is_omitted = |interval: &&Interval| interval.omitted;
        let omitted: Vec<_> = stream.intervals.iter().filter(is_omitted).collect();
        let counted = stream.intervals.iter().filter(|one| !one.omitted);
        let bounds: Vec<_> = omitted.iter().map(|one| (one.begin_s, one.end_s)).collect();
        assert_eq!(bounds, [(0.0, 0.1), (0.1, 0.2)]);
        assert_eq!(counted.clone().count(), 10);
        assert!(counted.clone().all(|one| one.bytes == 1_000_000));
        let tcp = counted.clone().map(|one| one.tcp.unwrap());
        let again: u64 = tcp.map(|tcp| tcp.retransmits).sum();
        for total in [stream.sent.unwrap(), stream.received.unwrap()] {
            assert_eq!((total.bytes, total.seconds), (10_000_000, 1.0));
        }
        assert_eq!(stream.sent.unwrap().retransmits, Some(again));
        assert_eq!(stream.received.unwrap().retransmits, None);
    }

    #[test]
    fn the_kernel_says_twice_the_buffer_and_windows_in_bytes() {
        let recording = recording(stream());
        let (_, test) = whole(&recording, Nanos::from_ms(500)).unwrap();
        assert_eq!(test.rcvbuf_bytes, Some(262_144));
        assert_eq!(test.sndbuf_bytes, None);
        assert_eq!(test.sender_congestion.as_deref(), Some("cubic"));
        let tcp = test.streams[0].intervals[0].tcp.unwrap();
        let mss = u64::from(test.mss_bytes.unwrap());
        assert_eq!((tcp.cwnd_bytes, tcp.rtt_us), (100 * mss, 100));
        // Half of the server's half a CPU each; nothing of the client's is read.
        let cpu = test.server_cpu.unwrap();
        assert!((cpu.user_percent - 25.0).abs() < 1e-6, "{cpu:?}");
        assert_eq!(test.client_cpu, None);
    }

    #[test]
    fn streams_on_which_the_client_sends_come_first() {
        let recording = recording(Workload {
            connections: 4,
            ..Workload::stream(Direction::Both)
        });
        let (_, test) = whole(&recording, Nanos(0)).unwrap();
        let order: Vec<_> = test
            .streams
            .iter()
            .map(|stream| (stream.sends, stream.client.unwrap().flow.0))
            .collect();
        assert_eq!(order, [(true, 0), (true, 2), (false, 1), (false, 3)]);
        for stream in &test.streams {
            let counted = stream.intervals.iter().filter(|one| !one.omitted);
            let counted: Vec<_> = counted.map(|one| (one.begin_s, one.end_s)).collect();
            assert_eq!(counted, [(0.0, 1.0)], "one, where none are asked for");
        }
    }

    #[test]
    fn what_a_foreign_server_counted_is_what_it_says() {
        let mut recording = recording(stream());
        foreign(&mut recording);
        for record in &mut recording.flows {
            (record.outcome.bytes_sent, record.outcome.bytes_received) = (15_000_000, 9_999_999);
        }
        let (_, test) = whole(&recording, Nanos(0)).unwrap();
        let bytes = |total: &Option<Total>| total.unwrap().bytes;
        assert_eq!(bytes(&test.streams[0].received), 9_999_999);
        // Of what the client sent in all, what it had sent when the window began is not counted.
        let sent = bytes(&test.streams[0].sent);
        assert_eq!(sent, 15_000_000 - 11_000_500);
        // At the rate at which the window was acknowledged, 20 % more took 20 % longer; but it counts no longer
        // than it says.
        let mut check = |received, counted_ns, expected: f64| {
            let is_server = |record: &&mut FlowRecord| record.end == End::Server;
            for record in recording.flows.iter_mut().filter(is_server) {
                (record.outcome.bytes_received, record.outcome.counted_ns) = (received, counted_ns);
            }
            let (_, test) = whole(&recording, Nanos(0)).unwrap();
            let seconds = |total: &Option<Total>| total.unwrap().seconds;
            let received_s = seconds(&test.streams[0].received);
            assert!((received_s - expected).abs() < 1e-3, "{received_s}");
            assert_eq!(seconds(&test.streams[0].sent), 1.0);
        };
        check(10_000_000, None, 1.0);
        check(10_000_000, Some(1_100_000_000), 1.0);
        check(12_000_000, None, 1.2);
        check(12_000_000, Some(1_300_000_000), 1.2);
        check(12_000_000, Some(1_150_000_000), 1.15);
    }

    #[test]
    fn what_a_foreign_server_sends_after_the_window_is_not_of_it() {
        let mut recording = recording(Workload::stream(Direction::FromServer));
        foreign(&mut recording);
        for record in &mut recording.flows {
            (record.outcome.bytes_sent, record.outcome.bytes_received) = (15_000_000, 15_000_000);
            record.outcome.counted_ns = (record.end == End::Server).then_some(1_500_000_000);
        }
        let (_, test) = whole(&recording, Nanos(0)).unwrap();
        let counted = |total: &Option<Total>| total.map(|total| (total.bytes, total.seconds));
        assert_eq!(counted(&test.streams[0].received), Some((10_000_000, 1.0)));
        assert_eq!(counted(&test.streams[0].sent), Some((15_000_000, 1.5)));
    }

    /// Turns the server of a recording into one of iperf3.
    fn foreign(recording: &mut Recording) {
        let hosts = recording.document.hosts.iter_mut();
        for server in hosts.filter(|host| host.part == HostPart::Server) {
            server.program = HostProgram::Foreign("iperf3".to_owned());
        }
    }

    /// Returns a recording of 1500 datagrams, of which 100 were lost and 50 came twice: 500, 90 and 5 of them
    /// before the window.
    fn of_datagrams() -> Recording {
        let mut recording = recording(stream());
        recording.document.plan.trials[0].workload.manner.transport = Transport::Udp;
        let trial = recording.trials[0].trial;
        for record in &mut recording.flows {
            let counts = linerate_model::datagram::Datagrams {
                sent: 1500,
                highest: 1500,
                received: 1450,
                duplicates: 50,
                ..Default::default()
            };
            record.outcome.datagrams = Some(Box::new(counts));
            let counters: &[(Metric, [i64; 3])] = match record.end {
                End::Client => &[(Metric::AppDatagramsSent, [0, 500, 1500])],
                End::Server => &[
                    (Metric::AppDatagramsReceived, [0, 415, 1450]),
                    (Metric::AppDatagramsMissing, [0, 90, 100]),
                    (Metric::AppDatagramsDuplicate, [0, 5, 50]),
                ],
            };
            for (metric, values) in counters {
                let instants = [-200_000_000, 0, 1_000_000_000];
                for (at_ns, value) in instants.into_iter().zip(*values) {
                    recording.samples.push(TrialSample {
                        trial,
                        host: record.host.clone(),
                        subject: Subject::Flow(record.flow, record.end),
                        metric: *metric,
                        at_ns,
                        value,
                    });
                }
            }
        }
        recording
    }

    #[test]
    fn datagrams_are_those_of_the_window_as_bytes_are() {
        let check = |recording: &Recording, expected: [u64; 4]| {
            let (_, test) = whole(recording, Nanos(0)).unwrap();
            let datagrams = |total: &Option<Total>| total.unwrap().datagrams.unwrap();
            let (sent, received) = (&test.streams[0].sent, &test.streams[0].received);
            let received = datagrams(received);
            let told = [
                datagrams(sent).packets,
                received.packets,
                received.lost,
                received.out_of_order,
            ];
            assert_eq!(told, expected);
        };
        let mut recording = of_datagrams();
        check(&recording, [1000, 1000, 10, 45]);
        foreign(&mut recording);
        check(&recording, [1000, 1000, 10, 45]);
        // A server that does not say what of them it omitted: both ends have all phases.
        let samples = recording.samples.iter();
        let is_of_server = |sample: &TrialSample| {
            matches!(sample.subject, Subject::Flow(_, End::Server))
                && DATAGRAM_COUNTERS.contains(&sample.metric)
        };
        recording.samples = samples.filter(|sample| !is_of_server(sample)).collect();
        check(&recording, [1500, 1500, 100, 50]);
    }

    #[test]
    fn intervals_show_once_they_are_complete() {
        let recording = recording(stream());
        let trial = &recording.document.plan.trials[0];
        let mut samples = recording.samples.iter().collect::<Vec<_>>();
        samples.retain(|sample| sample.at_ns < 500_000_000);
        let samples: Samples = samples.into_iter().collect();
        let test = so_far(&recording.document, trial, &samples, Nanos::from_ms(200));
        let ends: Vec<_> = test.streams[0]
            .intervals
            .iter()
            .map(|one| one.end_s)
            .collect();
        assert_eq!(ends, [0.2, 0.2, 0.4]);
        assert_eq!(test.streams[0].sent, None, "what became of it is not known");
    }
}
