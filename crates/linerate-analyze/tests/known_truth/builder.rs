//! Makes recordings with a known truth: every counter is a closed form of what was asked for.

use std::collections::BTreeMap;

use linerate_model::experiment::{Cell, DesignKind, Experiment, Factor, Level, Timing};
use linerate_model::histogram::Histogram;
use linerate_model::host::{Fact, FactValue, Snapshot};
use linerate_model::manner::Manner;
use linerate_model::metric::Metric;
use linerate_model::plan::{Plan, Trial};
use linerate_model::run::{
    Admission, BUNDLE_FORMAT, ClockFit, FlowRecord, HostPart, HostRecord, Incoming, Recording,
    RunDocument, TrialRecord, Validity,
};
use linerate_model::sample::{End, Subject, TrialSample};
use linerate_model::unit::{BitsPerSec, Bytes, Nanos, Unit};
use linerate_model::workload::{Direction, FlowOptions, Part, Setting, Traffic, Workload};
use linerate_model::{HostName, RunId, TrialId};

/// The measured window of every trial.
pub const WINDOW_NS: u64 = 1_000_000_000;
/// Payload of a full-size segment at MTU 1500 with timestamps.
pub const MSS: f64 = 1448.0;

/// What really happened in a trial; absent values are not sampled.
#[derive(Debug, Clone)]
pub struct Truth {
    /// Payload of all flows together.
    pub throughput_bps: f64,
    /// Payload of a data segment.
    pub payload_bytes: f64,
    /// Data segments for each pure ACK.
    pub segments_per_ack: f64,
    /// Smoothed round trip.
    pub rtt_ns: i64,
    /// Window that the receiver advertises.
    pub window_bytes: i64,
    /// Segments in flight.
    pub unacked: i64,
    /// Share of the time held by that window.
    pub rwnd_share: f64,
    /// Share of the time held by the send buffer.
    pub sndbuf_share: f64,
    /// Share of the time with data outstanding.
    pub busy_share: f64,
    /// Congestion window.
    pub cwnd: i64,
    /// Share of segments sent again.
    pub lost_share: f64,
    /// Longest stall.
    pub stall_ns: i64,
    /// Busy CPUs, half in user mode, half in the kernel.
    pub cpus: f64,
    /// CPUs that other programs used in user mode, of the half of `cpus` that is user time.
    pub others_cpus: f64,
    /// Share of the time that the worker ran.
    pub worker_share: f64,
    /// Share of the time that it waited for a CPU.
    pub worker_wait_share: f64,
    /// Round trips of transactions: value and count.
    pub latency: Vec<(u64, u64)>,
    /// Pure ACKs of a transaction.
    pub acks_per_transaction: f64,
    /// Why the trial is invalid.
    pub invalid: Option<String>,
    /// Spread of the flows' begins.
    pub skew_ns: u64,
    /// What TCP paces all flows together at.
    pub pacing_bps: Option<f64>,
    /// The congestion control in force.
    pub congestion: Option<&'static str>,
    /// How the senders sent, in the words of the setting.
    pub send: Option<&'static str>,
}

impl Default for Truth {
    fn default() -> Self {
        Self {
            throughput_bps: 500e6,
            payload_bytes: MSS,
            segments_per_ack: 2.0,
            rtt_ns: 100_000,
            window_bytes: 1 << 20,
            unacked: 10,
            rwnd_share: 0.0,
            sndbuf_share: 0.0,
            busy_share: 0.5,
            cwnd: 100,
            lost_share: 0.0,
            stall_ns: 500_000,
            cpus: 0.5,
            others_cpus: 0.0,
            worker_share: 0.3,
            worker_wait_share: 0.01,
            latency: Vec::new(),
            acks_per_transaction: 0.0,
            invalid: None,
            skew_ns: 1_000_000,
            pacing_bps: None,
            congestion: None,
            send: None,
        }
    }
}

impl Truth {
    /// A stream of `bps`.
    pub fn stream(bps: f64) -> Self {
        Self {
            throughput_bps: bps,
            ..Self::default()
        }
    }

    /// Transactions one after the other that take `rtt_ns` each, but for one in a hundred that
    /// takes twice as long.
    pub fn transactions(rtt_ns: u64) -> Self {
        let count = (WINDOW_NS as f64 / (rtt_ns as f64 * 1.01)) as u64;
        let slow = count / 100;
        Self {
            latency: vec![(rtt_ns, count - slow), (2 * rtt_ns, slow)],
            rtt_ns: rtt_ns as i64,
            ..Self::default()
        }
    }
}

/// A run under construction.
pub struct Run {
    pub recording: Recording,
    seed: u64,
}

impl Run {
    /// A server and `clients` clients on links of `rate`, MTU 1500, timestamps on.
    pub fn new(clients: u32, rate: Option<f64>) -> Self {
        let mut hosts = vec![host("server", HostPart::Server, rate)];
        for client in 1..=clients {
            hosts.push(host(&format!("client{client}"), HostPart::Client, rate));
        }
        let document = RunDocument {
            format: BUNDLE_FORMAT,
            run: RunId("20260101T000000Z-00000001".to_owned()),
            asked: "linerate run server".to_owned(),
            version: "0.1.0".to_owned(),
            started_utc: "2026-01-01T00:00:00Z".to_owned(),
            ended_utc: Some("2026-01-01T00:03:00Z".to_owned()),
            study: false,
            cut_short: None,
            server_cpus: Vec::new(),
            client_cpus: Vec::new(),
            plan: Plan {
                experiments: Vec::new(),
                trials: Vec::new(),
                seed: 1,
                estimate: Nanos::from_s(180),
                budget: None,
                left_out: Vec::new(),
            },
            hosts,
            left_out: Vec::new(),
        };
        Self {
            recording: Recording {
                document,
                trials: Vec::new(),
                flows: Vec::new(),
                samples: linerate_model::samples::Samples::default(),
                profiles: Vec::new(),
                captures: Vec::new(),
                events: Vec::new(),
                damage: Vec::new(),
            },
            seed: 1,
        }
    }

    /// Adds an experiment on `workload`.
    pub fn experiment(&mut self, name: &str, chapter: Option<u32>, workload: Workload) {
        let response = match workload.traffic.is_transactional() {
            false => "throughput_bps",
            true => "transactions_per_s",
        };
        self.recording.document.plan.experiments.push(Experiment {
            name: name.to_owned(),
            chapter,
            title: name.to_owned(),
            question: "What happens?".to_owned(),
            method: "Synthetic.".to_owned(),
            workload,
            factors: Vec::new(),
            linked: Vec::new(),
            design: DesignKind::Full,
            baseline: Cell::new(),
            replicates: 1,
            timing: timing(),
            response: response.to_owned(),
            probes: Default::default(),
        });
    }

    /// Adds a trial of the last experiment for each of `truths`, as its replicates.
    pub fn cell(&mut self, levels: &[(Factor, Level)], truths: &[Truth]) {
        let cell: Cell = levels.iter().cloned().collect();
        let experiment = self
            .recording
            .document
            .plan
            .experiments
            .last_mut()
            .expect("a cell belongs to an experiment");
        for (factor, level) in &cell {
            match experiment
                .factors
                .iter_mut()
                .find(|(known, _)| known == factor)
            {
                Some((_, levels)) if !levels.contains(level) => levels.push(level.clone()),
                Some(_) => {}
                None => experiment.factors.push((*factor, vec![level.clone()])),
            }
        }
        let experiment = experiment.clone();
        let workload = experiment
            .workload_of(&cell)
            .expect("levels fit the workload");
        for (at, truth) in truths.iter().enumerate() {
            let id = TrialId(self.recording.document.plan.trials.len() as u32 + 1);
            self.recording.document.plan.trials.push(Trial {
                id,
                experiment: experiment.name.clone(),
                cell: cell.clone(),
                replicate: at as u32 + 1,
                seed: self.seed,
                workload: workload.clone(),
                timing: timing(),
            });
            self.record(id, &workload, truth);
        }
    }

    fn record(&mut self, id: TrialId, workload: &Workload, truth: &Truth) {
        self.recording.trials.push(TrialRecord {
            trial: id,
            validity: truth
                .invalid
                .clone()
                .map_or(Validity::Valid, Validity::Invalid),
            flags: Vec::new(),
            offset_ns: u64::from(id.0) * 2 * WINDOW_NS,
            window_ns: WINDOW_NS,
            start_skew_ns: Some(truth.skew_ns),
            start_skew_uncertainty_ns: Some(1000),
        });
        let mut rates: BTreeMap<(HostName, Subject, Metric), f64> = BTreeMap::new();
        let mut gauges: BTreeMap<(HostName, Subject, Metric), i64> = BTreeMap::new();
        for flow in workload.flows() {
            let client = HostName::from(format!("client{}", flow.client + 1));
            let ends = [
                (client, End::Client, flow.client_part),
                ("server".into(), End::Server, flow.client_part.opposite()),
            ];
            for (host, end, part) in ends {
                let subject = Subject::Flow(flow.flow, end);
                let mut rate = |metric, value: f64| {
                    rates.insert((host.clone(), subject.clone(), metric), value);
                };
                counters(part, workload, truth, &mut rate);
                let mut gauge = |metric, value: i64| {
                    gauges.insert((host.clone(), subject.clone(), metric), value);
                };
                for (metric, value) in [
                    (Metric::TcpRtt, truth.rtt_ns),
                    (Metric::TcpMinRtt, truth.rtt_ns),
                    (Metric::TcpCwnd, truth.cwnd),
                    (Metric::TcpUnacked, truth.unacked),
                    (Metric::TcpSndWnd, truth.window_bytes),
                    (Metric::TcpSndMss, MSS as i64),
                ] {
                    gauge(metric, value);
                }
                if let (Part::Sender, Some(bps)) = (part, truth.pacing_bps) {
                    let each = bps / f64::from(workload.connections);
                    gauge(Metric::TcpPacingRate, each as i64);
                }
                if part == Part::Receiver {
                    gauge(Metric::AppStallMax, truth.stall_ns);
                }
                self.recording
                    .flows
                    .push(flow_record(id, flow.flow, host, end, part, truth));
            }
        }
        let cpu = |metric| ("server".into(), Subject::Cpu(0), metric);
        rates.insert(cpu(Metric::CpuUser), truth.cpus * 0.5e9);
        rates.insert(cpu(Metric::CpuSystem), truth.cpus * 0.5e9);
        rates.insert(cpu(Metric::CpuIdle), (2.0 - truth.cpus) * 1e9);
        let worker = |metric| {
            (
                "client1".into(),
                Subject::Thread("worker-0".to_owned()),
                metric,
            )
        };
        rates.insert(worker(Metric::ThreadRun), truth.worker_share * 1e9);
        rates.insert(worker(Metric::ThreadWait), truth.worker_wait_share * 1e9);
        let own = worker(Metric::ThreadUser);
        rates.insert(own, (truth.cpus * 0.5 - truth.others_cpus).max(0.0) * 1e9);
        self.samples(id, &rates, &gauges);
    }

    /// Samples every 100 ms from 200 ms before the window to 100 ms after it, each 50 µs late.
    fn samples(
        &mut self,
        trial: TrialId,
        rates: &BTreeMap<(HostName, Subject, Metric), f64>,
        gauges: &BTreeMap<(HostName, Subject, Metric), i64>,
    ) {
        const START: f64 = 1e6;
        for tenth in -2..=11_i64 {
            let at_ns = tenth * 100_000_000 + 50_000;
            let counted = |rate: &f64| (START + rate * (at_ns as f64 / 1e9 + 1.0)) as i64;
            let counters = rates.iter().map(|(key, rate)| (key, counted(rate)));
            let all = counters.chain(gauges.iter().map(|(key, value)| (key, *value)));
            self.recording
                .samples
                .extend(all.map(|((host, subject, metric), value)| TrialSample {
                    trial,
                    host: host.clone(),
                    subject: subject.clone(),
                    metric: *metric,
                    at_ns,
                    value,
                }));
        }
    }
}

fn counters(part: Part, workload: &Workload, truth: &Truth, rate: &mut dyn FnMut(Metric, f64)) {
    let flows = f64::from(workload.connections);
    let bytes = truth.throughput_bps / 8.0 / flows;
    let segments = bytes / truth.payload_bytes;
    let count: u64 = truth.latency.iter().map(|(_, count)| count).sum();
    let transactions = count as f64 / flows;
    match part {
        Part::Sender => {
            rate(Metric::AppBytesSent, bytes);
            if let Traffic::Stream { message_bytes, .. } = workload.traffic {
                rate(Metric::AppCalls, bytes / message_bytes.0 as f64);
            }
            rate(Metric::TcpBytesSent, bytes);
            rate(Metric::TcpDataSegsOut, segments);
            rate(Metric::TcpSegsOut, segments);
            rate(Metric::TcpSegsIn, segments / truth.segments_per_ack);
            rate(Metric::TcpDataSegsIn, 0.0);
            rate(Metric::TcpRetrans, segments * truth.lost_share);
            rate(Metric::TcpRwndLimited, truth.rwnd_share * 1e9);
            rate(Metric::TcpSndbufLimited, truth.sndbuf_share * 1e9);
            rate(Metric::TcpBusy, truth.busy_share * 1e9);
        }
        Part::Receiver => {
            rate(Metric::AppBytesReceived, bytes);
            rate(Metric::TcpBytesReceived, bytes);
            rate(Metric::TcpDataSegsIn, segments);
        }
        Part::Requester => {
            rate(Metric::AppTransactions, transactions);
            rate(Metric::TcpDataSegsOut, transactions);
            rate(Metric::TcpDataSegsIn, transactions);
            rate(
                Metric::TcpSegsOut,
                transactions * (1.0 + truth.acks_per_transaction),
            );
            rate(Metric::TcpSegsIn, transactions);
            if let Traffic::Rr { request_bytes, .. } = workload.traffic {
                rate(Metric::TcpBytesSent, transactions * request_bytes.0 as f64);
            }
        }
        Part::Responder => {}
    }
}

fn flow_record(
    trial: TrialId,
    flow: linerate_model::FlowId,
    host: HostName,
    end: End,
    part: Part,
    truth: &Truth,
) -> FlowRecord {
    let latency = Histogram {
        buckets: truth.latency.clone(),
    };
    let setting = |name: &str, value: &str| Setting {
        name: name.to_owned(),
        requested: None,
        granted: Some(value.to_owned()),
        effective: None,
        capped_by: None,
    };
    let mut settings = vec![setting("SO_RCVBUF", "131072")];
    settings.extend(truth.congestion.map(|name| setting("TCP_CONGESTION", name)));
    if let (Part::Sender, Some(how)) = (part, truth.send) {
        settings.push(Setting {
            effective: Some(how.to_owned()),
            ..setting("send", "MSG_ZEROCOPY")
        });
    }
    FlowRecord {
        trial,
        flow,
        host,
        end,
        part,
        local: "10.0.0.1:1".to_owned(),
        remote: "10.0.0.2:2".to_owned(),
        cpu: Some(0),
        incoming: Incoming::default(),
        first_payload_ns: Some(-1),
        bytes_sent: 1,
        bytes_received: 1,
        settings: settings.into(),
        latency: (part == Part::Requester).then_some(latency),
        datagrams: None,
        ended_early: None,
    }
}

fn host(name: &str, part: HostPart, rate: Option<f64>) -> HostRecord {
    let number = |name: &str, value, unit| Fact {
        name: name.to_owned(),
        value: FactValue::Number(value, unit),
    };
    let text = |name: &str, value: &str| Fact {
        name: name.to_owned(),
        value: FactValue::Text(value.to_owned()),
    };
    HostRecord {
        name: name.into(),
        part,
        agent: "127.0.0.1:5210".to_owned(),
        data_address: match part {
            HostPart::Server => "10.0.0.1".to_owned(),
            HostPart::Client => "10.0.0.2".to_owned(),
        },
        version: "0.1.0".to_owned(),
        foreign: None,
        lab: false,
        boot: None,
        link_rate: rate.map(BitsPerSec),
        link_loss_ppm: None,
        link: Some("eth0".to_owned()),
        snapshot: Snapshot {
            facts: vec![
                text("cpu.model", "Model"),
                number("cpu.online", 2.0, Unit::Count),
                text("host.name", name),
                text("kernel.release", "6.18.0"),
                number("link.eth0.mtu_bytes", 1500.0, Unit::Bytes),
                number("memory.copy_bytes_per_s", 1e10, Unit::Bytes),
                text("sysctl.net.ipv4.tcp_timestamps", "1"),
            ],
        },
        observers: Vec::new(),
        clock: ClockFit {
            offset_ns: 0,
            uncertainty_ns: 1000,
        },
        admission: Admission::Exclusive,
    }
}

fn timing() -> Timing {
    Timing {
        settle: Nanos(0),
        warm_up: Nanos::from_ms(200),
        measure: Nanos(WINDOW_NS),
        drain: Nanos::from_ms(100),
    }
}

/// One flow of bulk payload to the server.
pub fn stream() -> Workload {
    Workload::stream(Direction::ToServer)
}

/// One flow of requests and responses of `bytes`.
pub fn rr(bytes: u64) -> Workload {
    Workload {
        traffic: Traffic::Rr {
            request_bytes: Bytes(bytes),
            response_bytes: Bytes(bytes),
            request_writes: 1,
        },
        connections: 1,
        clients: 1,
        link_loss_ppm: None,
        options: FlowOptions::default(),
        manner: Manner::default(),
    }
}

/// A size level.
pub fn size(bytes: u64) -> Level {
    Level::Size(Bytes(bytes))
}

/// Levels of Nagle and delayed ACK.
pub fn switches(nagle: bool, delayed_ack: bool) -> [(Factor, Level); 2] {
    [
        (Factor::Nagle, Level::Switch(nagle)),
        (Factor::DelayedAck, Level::Switch(delayed_ack)),
    ]
}

/// A whole study with a known truth: one client for C=1, five for C=10; a window limit at 16 KiB,
/// a full link from 64 KiB on; Nagle and delayed ACK stall split requests.
pub fn study() -> Run {
    let mut run = Run::new(5, Some(1e9));
    run.recording.document.study = true;
    run.experiment("latency", Some(1), rr(4));
    for (payload, rtt_ns) in [(4, 50_000), (536, 70_000), (1460, 100_000)] {
        for ack in [true, false] {
            let acks_per_transaction = if ack { 0.0 } else { 1.0 };
            let truth = |wobble: u64| Truth {
                acks_per_transaction,
                ..Truth::transactions(rtt_ns + wobble)
            };
            let levels = [
                (Factor::PayloadBytes, size(payload)),
                (Factor::DelayedAck, Level::Switch(ack)),
            ];
            run.cell(&levels, &[truth(0), truth(100), truth(200)]);
        }
    }
    run.experiment("socket-buffer", Some(3), stream());
    for (connections, clients) in [(1, 1), (10, 5)] {
        for (buffer, bps) in [(16_384, 262e6), (65_536, 941e6), (1_048_576, 941.2e6)] {
            let window_bytes = buffer as i64;
            let limited = buffer == 16_384;
            let flows = connections as f64;
            let truth = |wobble: f64| Truth {
                window_bytes,
                rwnd_share: if limited { 0.95 } else { 0.1 },
                rtt_ns: (flows * buffer as f64 * 8e9 / bps) as i64,
                ..Truth::stream(bps + wobble)
            };
            let levels = [
                (Factor::Connections, Level::Count(connections)),
                (Factor::Clients, Level::Count(clients)),
                (Factor::SocketBuffer, size(buffer)),
            ];
            run.cell(&levels, &[truth(0.0), truth(1e5), truth(2e5)]);
        }
    }
    run.experiment("small-messages", Some(9), stream());
    for message in [100_u64, 536, 1460] {
        for nagle in [true, false] {
            for ack in [true, false] {
                let payload_bytes = if nagle { MSS } else { message.min(1448) as f64 };
                let truth = |wobble: f64| Truth {
                    payload_bytes,
                    stall_ns: if nagle && ack { 44_000_000 } else { 1_000_000 },
                    ..Truth::stream(message as f64 * 4e5 * if nagle { 2.0 } else { 1.0 } + wobble)
                };
                let mut levels = switches(nagle, ack).to_vec();
                levels.push((Factor::MessageBytes, size(message)));
                run.cell(&levels, &[truth(0.0), truth(1e4), truth(2e4)]);
            }
        }
    }
    run.experiment("split-request", Some(9), rr(200));
    for writes in [1, 2] {
        for nagle in [true, false] {
            for ack in [true, false] {
                let stalls = writes == 2 && nagle && ack;
                let rtt_ns = if stalls { 44_000_000 } else { 60_000 };
                let mut levels = switches(nagle, ack).to_vec();
                levels.push((Factor::RequestWrites, Level::Count(writes)));
                let truth = |wobble: u64| Truth {
                    rtt_ns: 60_000,
                    ..Truth::transactions(rtt_ns + wobble)
                };
                run.cell(&levels, &[truth(0), truth(100), truth(200)]);
            }
        }
    }
    run
}
