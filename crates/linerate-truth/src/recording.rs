//! Makes recordings with a known truth: every counter is a closed form of what was asked for.

use std::collections::BTreeMap;

use linerate_model::experiment::{Cell, Experiment, Factor, Level, Timing};
use linerate_model::histogram::Histogram;
use linerate_model::host::{Fact, FactValue, Snapshot};
use linerate_model::metric::Metric;
use linerate_model::plan::{Plan, Trial};
use linerate_model::response::name;
use linerate_model::run::{
    Admission, ClockFit, FlowOutcome, FlowRecord, HostPart, HostProgram, HostRecord, Incoming,
    Recording, RunDocument, TrialRecord, Validity,
};
use linerate_model::sample::{End, QdiscId, Subject, TrialSample};
use linerate_model::setting;
use linerate_model::unit::{BitsPerSec, Bytes, Nanos, Unit};
use linerate_model::workload::{Direction, Part, Setting, Traffic, Workload};
use linerate_model::{FlowId, HostName, RunId, TrialId};

use super::whole;

pub use super::truth::{MSS, Truth, WINDOW_NS};

/// A run under construction.
pub struct MadeRun {
    /// What was recorded so far.
    pub recording: Recording,
    /// When every counter is read, in tenths of a second from the begin of the window.
    pub tenths: Vec<i64>,
    /// Whether all is read that a real host reads.
    pub is_whole: bool,
    seed: u64,
}

impl MadeRun {
    /// A server and `clients` clients on links of `rate`, MTU 1500, timestamps on.
    pub fn new(clients: u32, rate: Option<f64>) -> Self {
        let mut hosts = vec![host("server", HostPart::Server, rate)];
        for client in 1..=clients {
            hosts.push(host(&format!("client{client}"), HostPart::Client, rate));
        }
        let plan = Plan {
            experiments: Vec::new(),
            trials: Vec::new(),
            seed: 1,
            estimate: Nanos::from_s(180),
            budget: None,
            left_out: Vec::new(),
            optional: Vec::new(),
            repeats: Vec::new(),
            stages: Vec::new(),
            margins: Default::default(),
        };
        let document = RunDocument {
            run: RunId("20260101T000000Z-00000001".to_owned()),
            asked: "linerate run server".to_owned(),
            version: "0.1.0".to_owned(),
            started_utc: "2026-01-01T00:00:00Z".to_owned(),
            ended_utc: Some("2026-01-01T00:03:00Z".to_owned()),
            hosts,
            ..RunDocument::of_plan(plan)
        };
        Self {
            recording: Recording::empty(document),
            tenths: (-2..=11).collect(),
            is_whole: false,
            seed: 1,
        }
    }

    /// Adds an experiment on `workload`.
    pub fn experiment(&mut self, name: &str, chapter: Option<u32>, workload: Workload) {
        let response = if workload.traffic.is_transactional() {
            name::TRANSACTIONS
        } else {
            name::THROUGHPUT
        };
        self.recording.document.plan.experiments.push(Experiment {
            chapter,
            title: name.to_owned(),
            question: "What happens?".to_owned(),
            method: "Synthetic.".to_owned(),
            response: response.to_owned(),
            ..Experiment::plain(name, workload, timing(), 1)
        });
    }

    /// Adds a trial of the last experiment for each of `truths`, as its replicates.
    pub fn cell(&mut self, levels: &[(Factor, Level)], truths: &[Truth]) {
        for (at, truth) in truths.iter().enumerate() {
            self.trial(levels, at as u32 + 1, truth);
        }
    }

    /// Adds a trial of the last experiment.
    pub fn trial(&mut self, levels: &[(Factor, Level)], replicate: u32, truth: &Truth) {
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
        let id = TrialId(self.recording.document.plan.trials.len() as u32 + 1);
        self.recording.document.plan.trials.push(Trial {
            id,
            experiment: experiment.name.clone(),
            cell,
            replicate,
            seed: self.seed,
            workload: workload.clone(),
            beside: Vec::new(),
            hosts: Vec::new(),
            step: 0,
            timing: timing(),
        });
        self.record(id, &workload, truth);
    }

    /// A server and a client of which all is read that a real host reads.
    pub fn whole(clients: u32, rate: Option<f64>) -> Self {
        let mut run = Self::new(clients, rate);
        run.is_whole = true;
        for host in &mut run.recording.document.hosts {
            host.snapshot.facts.push(Fact {
                name: "sysctl.net.ipv4.tcp_moderate_rcvbuf".to_owned(),
                value: FactValue::Number(1.0, Unit::Count),
            });
        }
        run
    }

    fn record(&mut self, id: TrialId, workload: &Workload, truth: &Truth) {
        let whole = self.is_whole.then(|| truth.whole(workload));
        let truth = whole.as_ref().unwrap_or(truth);
        self.recording.trials.push(TrialRecord {
            trial: id,
            validity: truth
                .invalid
                .clone()
                .map_or(Validity::Valid, |why| Validity::Invalid(why.into())),
            flags: Vec::new(),
            offset_ns: u64::from(id.0) * 2 * WINDOW_NS,
            window_ns: WINDOW_NS,
            start_skew_ns: Some(truth.skew_ns),
            start_skew_uncertainty_ns: Some(1000),
        });
        let mut rates: whole::Known<f64> = BTreeMap::new();
        let mut gauges: whole::Known<i64> = BTreeMap::new();
        for flow in workload.flows() {
            for (host, end, part) in whole::ends(flow.from, flow.client_part) {
                let subject = Subject::Flow(flow.flow, end);
                let mut rate = |metric, value: f64| {
                    rates.insert((host.clone(), subject.clone(), metric), value);
                };
                counters(flow.flow, part, workload, truth, &mut rate);
                let mut gauge = |metric, value: i64| {
                    gauges.insert((host.clone(), subject.clone(), metric), value);
                };
                let smoothed_ns = truth.server_rtt_ns.filter(|_| end == End::Server);
                let shortest_ns = truth.min_rtt_ns.unwrap_or(truth.rtt_ns);
                let at = (flow.from as usize).checked_sub(2);
                let distance = at.and_then(|at| truth.distances.get(at)).unwrap_or(&1.0);
                let further_ns = (shortest_ns as f64 * (distance - 1.0)) as i64;
                for (metric, value) in [
                    (
                        Metric::TcpRtt,
                        smoothed_ns.unwrap_or(truth.rtt_ns) + further_ns,
                    ),
                    (Metric::TcpMinRtt, shortest_ns + further_ns),
                    (Metric::TcpCwnd, truth.cwnd),
                    (Metric::TcpUnacked, truth.unacked),
                    (Metric::TcpSndWnd, truth.window_bytes),
                    (Metric::TcpSndMss, MSS as i64),
                ] {
                    gauge(metric, value);
                }
                let each = |bps: f64| (bps / f64::from(workload.connections)) as i64;
                let of_part = [
                    (
                        Part::Sender,
                        Metric::TcpPacingRate,
                        truth.pacing_bps.map(each),
                    ),
                    (Part::Sender, Metric::TcpNotSent, truth.unsent_bytes),
                    (
                        Part::Sender,
                        Metric::TcpDeliveryRate,
                        truth.delivery_bps.map(|bps| bps as i64),
                    ),
                    (Part::Receiver, Metric::AppStallMax, Some(truth.stall_ns)),
                    (Part::Receiver, Metric::TcpRcvWnd, truth.offered_bytes),
                ];
                for (_, metric, value) in of_part.into_iter().filter(|(own, ..)| *own == part) {
                    value.into_iter().for_each(|value| gauge(metric, value));
                }
                self.recording
                    .flows
                    .push(flow_record(id, flow.flow, host, end, part, workload, truth));
            }
        }
        let mut rate = |host: &str, subject: &Subject, metric, rate: f64| {
            rates.insert((host.into(), subject.clone(), metric), rate);
        };
        for (metric, (server, client)) in timers(truth) {
            rate("server", &Subject::Host, metric, server);
            rate("client1", &Subject::Host, metric, client);
        }
        for host in ["server", "client1"] {
            let busy = if self.is_whole {
                whole::busy(truth)
            } else {
                [0.5 * truth.cpus; 2]
            };
            for (cpu, busy) in [0, 1].map(Subject::Cpu).into_iter().zip(busy) {
                rate(host, &cpu, Metric::CpuUser, busy * 0.5e9);
                rate(host, &cpu, Metric::CpuSystem, busy * 0.5e9);
                rate(host, &cpu, Metric::CpuSteal, truth.stolen_share * 1e9);
                let idle = 1.0 - truth.missing_share - truth.stolen_share - busy;
                rate(host, &cpu, Metric::CpuIdle, idle.max(0.0) * 1e9);
            }
        }
        if let Some(share) = truth.pressure_share {
            rate(
                "server",
                &Subject::Host,
                Metric::PressureCpuSome,
                share * 1e9,
            );
        }
        let [worker, second] =
            ["worker-0", "worker-1"].map(|name| Subject::Thread(name.to_owned()));
        rate(
            "client1",
            &worker,
            Metric::ThreadRun,
            truth.worker_share * 1e9,
        );
        rate(
            "client1",
            &worker,
            Metric::ThreadWait,
            truth.worker_wait_share * 1e9,
        );
        if truth.second_worker {
            rate("client1", &second, Metric::ThreadRun, 1e8);
        }
        let qdisc = Subject::Qdisc("eth0".to_owned(), QdiscId(0x8001_0000));
        rate("client1", &qdisc, Metric::QdiscDrops, truth.qdisc_drops);
        let device = Subject::Link("eth0".to_owned());
        if let Some(beside_bps) = truth.beside_bps {
            // Superframes of 20 segments, each with its headers once.
            let payload = (truth.throughput_bps + beside_bps) / 8.0;
            let packets = payload / (20.0 * MSS);
            rate(
                "server",
                &device,
                Metric::LinkRxBytes,
                payload + 66.0 * packets,
            );
            rate("server", &device, Metric::LinkRxPackets, packets);
        }
        if let Some(against_bps) = truth.against_bps {
            let acks = truth.throughput_bps / 8.0 / MSS / truth.segments_per_ack;
            let others = against_bps / 8.0 / MSS;
            let bytes = 66.0 * acks + (66.0 + MSS) * others;
            rate("server", &device, Metric::LinkTxBytes, bytes);
            rate("server", &device, Metric::LinkTxPackets, acks + others);
        }
        // What of the CPUs' time is our own.
        let user = truth.cpus * 0.5 - truth.others_cpus;
        let system = truth.cpus * 0.5 - truth.others_kernel_cpus;
        // Where others have some, the client's is that of the worker that waits for them.
        let hosts = if truth.others_cpus > 0.0 {
            &["server", "client1"][..]
        } else {
            &["server"]
        };
        for host in hosts {
            rate(host, &worker, Metric::ThreadUser, user.max(0.0) * 1e9);
            rate(host, &worker, Metric::ThreadSystem, system.max(0.0) * 1e9);
        }
        if self.is_whole {
            whole::complete(workload, truth, &mut rates, &mut gauges);
        }
        self.samples(id, truth, &rates, &gauges);
    }

    /// Samples at every one of `tenths`: every 100 ms from 200 ms before the window to 100 ms after it
    /// unless told otherwise, each 50 µs late; what arrives does so at `halves` times the rate from the
    /// middle of the window on, and `variation` more and less in turn.
    fn samples(
        &mut self,
        trial: TrialId,
        truth: &Truth,
        rates: &BTreeMap<(HostName, Subject, Metric), f64>,
        gauges: &BTreeMap<(HostName, Subject, Metric), i64>,
    ) {
        for tenth in &self.tenths {
            let at_ns = tenth * 100_000_000 + 50_000;
            let (second, middle) = (at_ns as f64 / 1e9, 0.5 + 50e-6);
            // What came by every other reading lags, so that the rates between are more and less in turn.
            let lag = |variation| match tenth.rem_euclid(2) {
                1 => 0.1 * variation,
                _ => 0.0,
            };
            // Where the window closes, all that arrives does so before.
            let open = 1.0 - truth.closed_share;
            let is_closed = truth.closed_share > 0.0 && *tenth as f64 > 10.0 * open;
            let elapsed = |metric| match metric {
                Metric::AppBytesReceived | Metric::TcpBytesReceived | Metric::TcpBytesAcked
                    if truth.closed_share > 0.0 =>
                {
                    second.min(open) / open.max(0.1)
                }
                Metric::AppBytesReceived | Metric::TcpBytesReceived => {
                    let first = 2.0 / (1.0 + truth.halves);
                    first * (second.min(middle) + truth.halves * (second - middle).max(0.0))
                        - lag(truth.variation)
                }
                Metric::TcpDataSegsIn => second - lag(truth.variation),
                // Of all that passes only the flows' part varies.
                Metric::LinkRxBytes if !truth.others_fill => {
                    let others = truth.beside_bps.unwrap_or(0.0);
                    let own = truth.throughput_bps / (truth.throughput_bps + others);
                    second - own * lag(truth.variation)
                }
                Metric::TcpDelivered => second - lag(truth.delivered_variation.unwrap_or(0.0)),
                Metric::TcpRetrans if !truth.loss_parts.is_empty() => {
                    let before = (*tenth).max(0) as usize;
                    let parts = truth.loss_parts.iter().take(before).sum::<f64>();
                    parts / truth.loss_parts.iter().sum::<f64>()
                }
                _ => second,
            };
            let ahead = |metric| match metric {
                Metric::TcpBytesReceived => truth.unread_bytes,
                // Every counter begins at the same number, that of what was sent again, too.
                Metric::TcpBytesSent => truth
                    .on_its_way_bytes
                    .map_or(0, |bytes| bytes + START as i64),
                _ => 0,
            };
            let counted = |metric, rate: &f64| {
                (START + rate * (elapsed(metric) + 1.0)).round() as i64 + ahead(metric)
            };
            let counters = rates.iter().map(|(key, rate)| (key, counted(key.2, rate)));
            let swing = |value: i64, elasticity: f64| {
                let (share, _) = truth.swings.unwrap_or_default();
                let sign = if tenth.rem_euclid(2) == 1 { 1.0 } else { -1.0 };
                (value as f64 * (1.0 + sign * share * elasticity)) as i64
            };
            let gauge = |metric, value| match metric {
                Metric::TcpUnacked => swing(value, 1.0),
                Metric::TcpRtt => swing(value, truth.swings.map_or(0.0, |(_, with)| with)),
                Metric::TcpSndWnd if is_closed => 0,
                _ => value,
            };
            let gauges = gauges
                .iter()
                .map(|(key, value)| (key, gauge(key.2, *value)));
            let all = counters.chain(gauges);
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

/// Counters of the server and of the first client, as far as they are sampled.
fn timers(truth: &Truth) -> Vec<(Metric, (f64, f64))> {
    let delayed = truth
        .delayed_acks
        .map(|rate| vec![(Metric::NetstatDelayedAcks, (rate, 0.0))]);
    let twice = truth
        .twice
        .map(|rate| vec![(Metric::NetstatDelayedAckLost, (rate, 0.0))]);
    let fired = truth.timeouts.map(|rate| {
        vec![
            (Metric::NetstatTcpTimeouts, (0.0, rate)),
            (Metric::NetstatTcpLossProbes, (0.0, 0.0)),
        ]
    });
    // Ten periods of 100 ms in a second.
    let throttled = truth.throttled.map(|share| {
        vec![
            (Metric::CgroupPeriods, (10.0, 10.0)),
            (Metric::CgroupThrottled, (10.0 * share, 0.0)),
            (Metric::CgroupThrottledTime, (0.5e9 * share, 0.0)),
        ]
    });
    let all = [delayed, twice, fired, throttled].into_iter().flatten();
    all.flatten().collect()
}

fn counters(
    flow: FlowId,
    part: Part,
    workload: &Workload,
    truth: &Truth,
    rate: &mut dyn FnMut(Metric, f64),
) {
    let flows = f64::from(workload.connections);
    let share = match truth.shares.get(flow.0 as usize) {
        Some(share) => share / truth.shares.iter().sum::<f64>(),
        None => 1.0 / flows,
    };
    let bytes = truth.throughput_bps / 8.0 * share;
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
            rate(Metric::TcpDataSegsOut, segments + truth.in_vain);
            rate(Metric::TcpSegsOut, segments + truth.in_vain);
            rate(Metric::TcpSegsIn, segments / truth.segments_per_ack);
            rate(Metric::TcpDataSegsIn, 0.0);
            let again = segments * truth.lost_share + truth.in_vain / 2.0;
            rate(Metric::TcpRetrans, again);
            rate(Metric::TcpDsackDups, again * truth.spurious_share);
            if truth.on_its_way_bytes.is_some() {
                rate(Metric::TcpBytesRetrans, 0.0);
            }
            if truth.marked_share > 0.0 {
                rate(Metric::TcpDeliveredCe, segments * truth.marked_share);
            }
            if truth.delivered_variation.is_some() {
                rate(Metric::TcpDelivered, segments);
            }
            if truth.delivered_variation.is_some() || truth.closed_share > 0.0 {
                rate(Metric::TcpBytesAcked, bytes);
            }
            rate(Metric::TcpRwndLimited, truth.rwnd_share * 1e9);
            rate(Metric::TcpSndbufLimited, truth.sndbuf_share * 1e9);
            rate(Metric::TcpBusy, truth.busy_share * 1e9);
        }
        Part::Receiver => {
            let beyond = truth.read_beyond_bytes / flows / (WINDOW_NS as f64 / 1e9);
            rate(Metric::AppBytesReceived, bytes + beyond);
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
                let bytes = transactions * request_bytes.0 as f64;
                rate(Metric::TcpBytesSent, bytes);
                let segments = (bytes / truth.payload_bytes).max(transactions);
                // A timer that fires sends a segment again.
                let by_timers = truth.timeouts.unwrap_or(0.0) / flows / (WINDOW_NS as f64 / 1e9);
                rate(Metric::TcpRetrans, segments * truth.lost_share + by_timers);
            }
            rate(Metric::TcpRwndLimited, 0.0);
        }
        // The response is what a window holds, where one does.
        Part::Responder => rate(Metric::TcpRwndLimited, truth.rwnd_share * 1e9),
    }
}

/// Returns what an end sent until its flow was over, a second after the window: whatever its readings begin with, and
/// what the receiver's count or its program is ahead.
fn sent_in_all_phases(part: Part, workload: &Workload, truth: &Truth) -> u64 {
    let seconds = 2.0 + WINDOW_NS as f64 / 1e9;
    let ahead = truth.unread_bytes as f64 + truth.read_beyond_bytes.abs();
    let payload = START + seconds * truth.throughput_bps / 8.0 + ahead;
    let count: u64 = truth.latency.iter().map(|(_, count)| count).sum();
    let responses = START + seconds * count as f64;
    let one = workload.traffic.exchange().map_or(0, |(_, one)| one.0);
    match part {
        Part::Sender => payload as u64,
        Part::Responder => (responses * one as f64) as u64,
        Part::Receiver | Part::Requester => 1,
    }
}

fn flow_record(
    trial: TrialId,
    flow: linerate_model::FlowId,
    host: HostName,
    end: End,
    part: Part,
    workload: &Workload,
    truth: &Truth,
) -> FlowRecord {
    let latency = Histogram {
        buckets: truth.latency.clone(),
    };
    let setting = |name: &str, value: &str| Setting::granted(name, None, Some(value.to_owned()));
    let mut settings = vec![setting(setting::name::SO_RCVBUF, "131072")];
    settings.extend(
        truth
            .congestion
            .map(|how| setting(setting::name::TCP_CONGESTION, how)),
    );
    let agreed = truth.agreed.map(str::to_owned);
    settings
        .extend(agreed.map(|options| Setting::seen(setting::name::TCPI_OPTIONS, Some(options))));
    FlowRecord {
        trial,
        host,
        outcome: FlowOutcome {
            flow,
            end,
            part,
            local: "10.0.0.1:1".to_owned(),
            remote: "10.0.0.2:2".to_owned(),
            cpu: Some(0),
            incoming: Incoming::default(),
            first_payload_ns: Some(-1),
            bytes_sent: sent_in_all_phases(part, workload, truth),
            bytes_received: 1,
            counted_ns: None,
            settings: settings.into(),
            latency: (part == Part::Requester).then_some(latency),
            lateness: (!truth.lateness.is_empty()).then(|| Histogram {
                buckets: truth.lateness.clone(),
            }),
            datagrams: None,
            requests: None,
            connections: None,
            zero_copy: truth.zero_copy.filter(|_| part == Part::Sender),
            ended_early: None,

            stall_max_ns: None,
        },
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
        control: None,
        data_address: match part {
            HostPart::Server => "10.0.0.1".to_owned(),
            HostPart::Client => "10.0.0.2".to_owned(),
        },
        version: "0.1.0".to_owned(),
        program: HostProgram::Agent,
        lab: false,
        boot: None,
        link_rate: rate.map(BitsPerSec),
        link_up_rate: None,
        lab_link: None,
        link_loss_ppm: None,
        groups: Vec::new(),
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
            drift_ppb: None,
        },
        admission: Admission::Exclusive,
    }
}

/// What every counter begins with, a second before the window.
const START: f64 = 1e6;

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
        ..stream()
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
