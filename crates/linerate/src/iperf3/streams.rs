//! From samples to iperf3's streams: readings at the edges of intervals, and totals.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_compat::iperf3::json::{Datagrams, Interval, Stream, TcpReading, Total};
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::run::{FlowRecord, HostPart, RunDocument};
use linerate_model::sample::{End, Subject};
use linerate_model::samples::{Reading, Samples};
use linerate_model::workload::{FlowPlan, Part};
use linerate_model::{FlowId, HostName, Nanos};

/// The readings of one trial by what they are of.
pub(super) struct Series {
    flows: BTreeMap<(FlowId, End, Metric), Vec<Reading>>,
    threads: BTreeMap<(HostName, Subject, Metric), Vec<Reading>>,
    window_ns: u64,
}

impl Series {
    /// Sorts the samples of a trial with a window of `window_ns`.
    pub(super) fn new(samples: &Samples, window_ns: u64) -> Self {
        let mut own = Self {
            flows: BTreeMap::new(),
            threads: BTreeMap::new(),
            window_ns,
        };
        for sample in samples.iter() {
            let reading = (sample.at_ns, sample.value);
            let readings = match sample.subject {
                Subject::Flow(flow, end) => {
                    own.flows.entry((flow, end, sample.metric)).or_default()
                }
                Subject::Thread(_) => own
                    .threads
                    .entry((sample.host, sample.subject, sample.metric))
                    .or_default(),
                _ => continue,
            };
            readings.push(reading);
        }
        let all = own.flows.values_mut().chain(own.threads.values_mut());
        all.for_each(|readings| readings.sort_unstable());
        own
    }

    /// Returns the length of the window.
    pub(super) fn window_s(&self) -> f64 {
        self.window_ns.max(1) as f64 / 1e9
    }

    /// Returns the growth of a clock of all our threads on a host inside the window, in seconds.
    pub(super) fn thread_seconds(&self, host: &HostName, metric: Metric) -> Option<f64> {
        let of_host = self
            .threads
            .iter()
            .filter(|((of, _, is), _)| of == host && *is == metric);
        let grown = of_host.filter_map(|(_, readings)| {
            let (first, last) = edges(readings, 0, self.window_ns as i64)?;
            Some((last.1 - first.1).max(0) as f64 / 1e9)
        });
        grown.fold(None, |sum, one| Some(sum.unwrap_or(0.0) + one))
    }

    /// Returns the counter of an end's payload: of a receiving end what TCP took in, as everywhere;
    /// beside a server that is no agent what receive calls returned, as that server counts.
    fn payload(&self, flow: FlowId, end: End, sends: bool, foreign: bool) -> Metric {
        let by_tcp = !foreign && self.of(flow, end, Metric::TcpBytesReceived).is_some();
        match (sends, by_tcp) {
            (true, _) => Metric::AppBytesSent,
            (false, true) => Metric::TcpBytesReceived,
            (false, false) => Metric::AppBytesReceived,
        }
    }

    fn of(&self, flow: FlowId, end: End, metric: Metric) -> Option<&[Reading]> {
        self.flows.get(&(flow, end, metric)).map(Vec::as_slice)
    }

    /// Returns the first reading at or after an instant, or the last there is.
    fn at(&self, flow: FlowId, end: End, metric: Metric, at_ns: i64) -> Option<i64> {
        let readings = self.of(flow, end, metric)?;
        let found = readings.iter().find(|reading| reading.0 >= at_ns);
        found.or(readings.last()).map(|reading| reading.1)
    }

    /// Returns the growth of a counter between two instants, and the time between its readings.
    fn grown(
        &self,
        flow: FlowId,
        end: End,
        metric: Metric,
        between: (i64, i64),
    ) -> Option<(u64, f64)> {
        let (first, last) = edges(self.of(flow, end, metric)?, between.0, between.1)?;
        let grown = (last.1 - first.1).max(0).unsigned_abs();
        Some((grown, (last.0 - first.0) as f64 / 1e9))
    }
}

/// Returns the first reading at or after `begin`, and at or after `end` or else the last.
fn edges(readings: &[Reading], begin: i64, end: i64) -> Option<(Reading, Reading)> {
    let first = *readings.iter().find(|reading| reading.0 >= begin)?;
    let at_end = readings.iter().find(|reading| reading.0 >= end);
    let last = *at_end.or(readings.last())?;
    (last.0 >= first.0).then_some((first, last))
}

/// Returns the segment size of the first stream.
pub(super) fn first_mss(trial: &Trial, series: &Series) -> Option<u32> {
    let flow = trial.workload.flows().first()?.flow;
    let mss = series.of(flow, End::Client, Metric::TcpSndMss)?.first()?.1;
    u32::try_from(mss).ok()
}

/// Returns the streams in iperf3's order: those on which the client sends, then the others.
pub(super) fn streams(
    document: &RunDocument,
    trial: &Trial,
    series: &Series,
    records: &[&FlowRecord],
    interval: Nanos,
    foreign: bool,
) -> Vec<Stream> {
    let plans = trial.workload.flows();
    let (sending, receiving): (Vec<FlowPlan>, Vec<FlowPlan>) = plans
        .iter()
        .partition(|plan| plan.client_part == Part::Sender);
    let ordered = sending.iter().chain(&receiving).enumerate();
    ordered
        .map(|(at, plan)| {
            let sender = plan.client_part == Part::Sender;
            let record = |end| {
                let mut of_flow = records.iter().filter(|record| record.flow == plan.flow);
                of_flow.find(|record| record.end == end).copied()
            };
            let (local, remote) = addresses(document, record(End::Client));
            let total = |end| total(trial, series, plan.flow, end, record(end), foreign);
            let (sending, receiving) = match sender {
                true => (End::Client, End::Server),
                false => (End::Server, End::Client),
            };
            Stream {
                // iperf3 has the descriptor here, which is 5 for the first stream.
                socket: at as u32 + 5,
                local,
                remote,
                sender,
                intervals: intervals(trial, series, plan, interval, foreign),
                sent: total(sending),
                received: total(receiving),
            }
        })
        .collect()
}

/// Returns the addresses of the client's end: of the connection, or while that is not known of the
/// hosts, with 0 for a port of its own.
fn addresses(document: &RunDocument, client: Option<&FlowRecord>) -> (SocketAddr, SocketAddr) {
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    if let Some(record) = client {
        let parse = |text: &str| text.parse().unwrap_or(nowhere);
        return (parse(&record.local), parse(&record.remote));
    }
    let host = |part| document.hosts.iter().find(|host| host.part == part);
    let local = host(HostPart::Client).and_then(|host| host.data_address.parse().ok());
    let remote = host(HostPart::Server).and_then(|host| host.agent.parse().ok());
    (
        local.map_or(nowhere, |ip| SocketAddr::new(ip, 0)),
        remote.unwrap_or(nowhere),
    )
}

/// Returns what one end counted inside the window.
///
/// Of a server that is no agent it is what it says it counted, over the same window. What was sent
/// to it is all that its client's end sent, since such a test has no traffic after the window.
fn total(
    trial: &Trial,
    series: &Series,
    flow: FlowId,
    end: End,
    record: Option<&FlowRecord>,
    foreign: bool,
) -> Option<Total> {
    let record = record?;
    let sends = record.part == Part::Sender;
    let metric = series.payload(flow, end, sends, foreign);
    let window = (0, series.window_ns as i64);
    let in_window = series.grown(flow, end, metric, window);
    let retransmits = series.grown(flow, end, Metric::TcpRetrans, window);
    let (bytes, seconds) = match (foreign, end) {
        (false, _) => in_window?,
        (true, End::Server) => (
            if sends {
                record.bytes_sent
            } else {
                record.bytes_received
            },
            series.window_s(),
        ),
        (true, End::Client) => {
            let all = if sends {
                record.bytes_sent
            } else {
                record.bytes_received
            };
            let warm_up = match trial.timing.warm_up.0 {
                0 => 0,
                _ => series.at(flow, end, metric, 0).unwrap_or(0),
            };
            (
                all.saturating_sub(warm_up.unsigned_abs()),
                series.window_s(),
            )
        }
    };
    Some(Total {
        seconds,
        bytes,
        retransmits: retransmits.map(|(count, _)| count).filter(|_| sends),
        datagrams: datagrams_of(trial, record),
    })
}

/// Returns the intervals of the client's end that are complete.
fn intervals(
    trial: &Trial,
    series: &Series,
    plan: &FlowPlan,
    interval: Nanos,
    foreign: bool,
) -> Vec<Interval> {
    let (flow, end) = (plan.flow, End::Client);
    let sends = plan.client_part == Part::Sender;
    let metric = series.payload(flow, end, sends, foreign);
    let Some(last) = series.of(flow, end, metric).and_then(<[Reading]>::last) else {
        return Vec::new();
    };
    let step = i64::try_from(interval.0).unwrap_or(i64::MAX);
    if step == 0 {
        return Vec::new();
    }
    let warm_up = -(trial.timing.warm_up.0 as i64);
    let edges = |begin: i64, end: i64| {
        (0..)
            .map(move |at| begin.saturating_add(step.saturating_mul(at)))
            .take_while(move |from| *from < end)
            .map(move |from| (from, from.saturating_add(step).min(end)))
    };
    let omitted = edges(warm_up, 0).map(|edges| (edges, true));
    let counted = edges(0, series.window_ns as i64).map(|edges| (edges, false));
    omitted
        .chain(counted)
        .take_while(|((_, to), _)| *to <= last.0)
        .filter_map(|((from, to), is_omitted)| {
            let (bytes, _) = series.grown(flow, end, metric, (from, to))?;
            let shift = if is_omitted { warm_up } else { 0 };
            let seconds = |at: i64| (at - shift) as f64 / 1e9;
            Some(Interval {
                start_s: seconds(from),
                end_s: seconds(to),
                bytes,
                omitted: is_omitted,
                tcp: tcp(series, flow, (from, to)).filter(|_| sends),
                datagrams: datagrams_in(trial, series, plan, (from, to)),
            })
        })
        .collect()
}

/// Returns what one end counted of its datagrams.
fn datagrams_of(trial: &Trial, record: &FlowRecord) -> Option<Datagrams> {
    let is_udp = trial.workload.manner.transport == Transport::Udp;
    let counts = record.datagrams.as_ref().filter(|_| is_udp)?;
    Some(match record.part {
        Part::Sender => Datagrams {
            packets: counts.sent,
            ..Datagrams::default()
        },
        _ => Datagrams {
            packets: counts.highest,
            lost: counts.missing(),
            out_of_order: counts.late,
            jitter_s: counts.jitter_ns.unwrap_or(0) as f64 / 1e9,
        },
    })
}

/// Returns what the client's end counted of its datagrams in an interval, without jitter, of which
/// only the last is known.
fn datagrams_in(
    trial: &Trial,
    series: &Series,
    plan: &FlowPlan,
    between: (i64, i64),
) -> Option<Datagrams> {
    if trial.workload.manner.transport != Transport::Udp {
        return None;
    }
    let grown = |metric| {
        let grown = series.grown(plan.flow, End::Client, metric, between);
        grown.map_or(0, |(count, _)| count)
    };
    Some(match plan.client_part {
        Part::Sender => Datagrams {
            packets: grown(Metric::AppDatagramsSent),
            ..Datagrams::default()
        },
        _ => {
            let lost = grown(Metric::AppDatagramsMissing);
            Datagrams {
                packets: grown(Metric::AppDatagramsReceived) + lost,
                lost,
                out_of_order: grown(Metric::AppDatagramsLate),
                jitter_s: 0.0,
            }
        }
    })
}

fn tcp(series: &Series, flow: FlowId, between: (i64, i64)) -> Option<TcpReading> {
    let at = |metric| {
        let value = series.at(flow, End::Client, metric, between.1)?;
        Some(value.max(0).unsigned_abs())
    };
    let (retransmits, _) = series.grown(flow, End::Client, Metric::TcpRetrans, between)?;
    Some(TcpReading {
        retransmits,
        snd_cwnd_bytes: at(Metric::TcpCwnd)? * at(Metric::TcpSndMss)?,
        snd_wnd_bytes: at(Metric::TcpSndWnd).unwrap_or(0),
        rtt_us: at(Metric::TcpRtt)? / 1000,
        rttvar_us: at(Metric::TcpRttVar).unwrap_or(0) / 1000,
        pmtu_bytes: at(Metric::TcpPmtu).unwrap_or(0),
        reorder: 0,
    })
}
