//! Documents and records that the tests store.

use std::collections::BTreeMap;

use linerate_model::datagram::Datagrams;
use linerate_model::experiment::{DesignKind, Experiment, Factor, Level, Timing};
use linerate_model::flag::TrialFlag;
use linerate_model::histogram::Histogram;
use linerate_model::host::{Availability, Fact, FactValue, Snapshot};
use linerate_model::metric::Metric;
use linerate_model::plan::{Plan, Trial};
use linerate_model::run::{
    Admission, BUNDLE_FORMAT, ClockFit, FlowOutcome, FlowRecord, HostPart, HostProgram, HostRecord,
    Incoming, RunDocument, TrialEvidence, TrialRecord, Validity, ZeroCopyCount,
};
use linerate_model::sample::{End, Subject, TrialSample};
use linerate_model::shortfall::{ConnectionCount, RequestCount};
use linerate_model::unit::Unit;
use linerate_model::workload::{Direction, Part, Setting, Workload};
use linerate_model::{BitsPerSec, Bytes, FlowId, HostName, Nanos, RunId, TrialId};

/// Returns a document with a plan of `trials` trials of one experiment.
pub fn document(trials: u32) -> RunDocument {
    let timing = Timing {
        settle: Nanos::from_ms(50),
        warm_up: Nanos::from_ms(200),
        measure: Nanos::from_ms(500),
        drain: Nanos::from_ms(50),
    };
    let workload = Workload::stream(Direction::ToServer);
    let level = Level::Size(Bytes(65_536));
    let cell = BTreeMap::from([
        (Factor::SocketBuffer, level.clone()),
        (Factor::Nagle, Level::Switch(true)),
    ]);
    let experiment = Experiment {
        name: "socket-buffer".to_owned(),
        chapter: Some(3),
        title: "Socket buffer".to_owned(),
        question: "How large must it be?".to_owned(),
        method: "One level after the other.".to_owned(),
        workload: workload.clone(),
        beside: Vec::new(),
        factors: vec![(Factor::SocketBuffer, vec![level])],
        linked: Vec::new(),
        link_bps: None,
        design: DesignKind::Full,
        baseline: BTreeMap::new(),
        control: None,
        whole_plots: Vec::new(),
        suffices: Vec::new(),
        replicates: trials,
        timing,
        response: "throughput_bps".to_owned(),
        probes: Default::default(),
        search: None,
        refinement: None,
        pairs: None,
        predicted: Vec::new(),
    };
    let trial = |at| Trial {
        id: TrialId(at),
        experiment: "socket-buffer".to_owned(),
        cell: cell.clone(),
        replicate: at,
        seed: u64::from(at),
        workload: workload.clone(),
        beside: Vec::new(),
        hosts: Vec::new(),
        step: 0,
        timing,
    };
    RunDocument {
        format: BUNDLE_FORMAT,
        run: RunId("20261120T125330Z-1a2b3c4d".to_owned()),
        asked: "study --lab".to_owned(),
        version: "0.1.0".to_owned(),
        started_utc: "2026-11-20T12:53:30Z".to_owned(),
        ended_utc: None,
        study: true,
        cut_short: None,
        server_cpus: Vec::new(),
        client_cpus: Vec::new(),
        multicast: None,
        plan: Plan {
            experiments: vec![experiment],
            trials: (1..=trials).map(trial).collect(),
            seed: 7,
            estimate: Nanos::from_s(80),
            budget: Some(Nanos::from_s(180)),
            left_out: Vec::new(),
            optional: Vec::new(),
            repeats: Vec::new(),
            stages: Vec::new(),
            margins: Default::default(),
        },
        hosts: vec![host()],
        left_out: Vec::new(),
    }
}

fn host() -> HostRecord {
    HostRecord {
        name: HostName::from("server"),
        part: HostPart::Server,
        agent: "10.0.0.1:5202".to_owned(),
        control: None,
        data_address: "10.0.0.1".to_owned(),
        version: "0.1.0".to_owned(),
        program: HostProgram::Agent,
        boot: None,
        lab: true,
        link_rate: Some(BitsPerSec(1e9 / 3.0)),
        link_up_rate: None,
        lab_link: None,
        link_loss_ppm: Some(1000),
        groups: Vec::new(),
        link: Some("eth0".to_owned()),
        snapshot: Snapshot {
            facts: vec![
                Fact {
                    name: "cpu.mhz".to_owned(),
                    value: FactValue::Number(2_593.904_999_999_999_7, Unit::Count),
                },
                Fact {
                    name: "numa.nodes".to_owned(),
                    value: FactValue::Missing("no /sys/devices/system/node".to_owned()),
                },
            ],
        },
        observers: vec![Availability {
            observer: "cpu".to_owned(),
            missing: None,
            note: Some("shared by all hosts of the lab".to_owned()),
        }],
        clock: ClockFit {
            offset_ns: -17,
            uncertainty_ns: 900,
            drift_ppb: None,
        },
        admission: Admission::Exclusive,
    }
}

/// Returns a valid trial.
pub fn trial(id: u32) -> TrialRecord {
    TrialRecord {
        trial: TrialId(id),
        validity: Validity::Valid,
        flags: vec![TrialFlag::Told("the host is shared".to_owned())],
        offset_ns: u64::from(id) * 1_000_000_000,
        window_ns: 500_000_000,
        start_skew_ns: Some(12_345),
        start_skew_uncertainty_ns: None,
    }
}

/// Returns both ends of flow 0 of trial `id`.
pub fn flows(id: u32) -> Vec<FlowRecord> {
    let setting = Setting {
        name: "SO_SNDBUF".to_owned(),
        requested: Some("65536".to_owned()),
        granted: Some("131072".to_owned()),
        effective: None,
        capped_by: None,
        why: Some("chosen".to_owned()),
    };
    let end = |end, host: &str, part| FlowRecord {
        trial: TrialId(id),
        host: HostName::from(host),
        outcome: FlowOutcome {
            flow: FlowId(0),
            end,
            part,
            local: "10.0.0.2:40000".to_owned(),
            remote: "10.0.0.1:5202".to_owned(),
            cpu: (end == End::Client).then_some(1),
            incoming: Incoming {
                cpu: Some(3),
                napi: (end == End::Server).then_some(8194),
            },
            first_payload_ns: Some(-200_000_000),
            bytes_sent: 60_000_000,
            bytes_received: 0,
            counted_ns: (end == End::Server).then_some(10_040_000_000),
            settings: vec![setting.clone()].into(),
            latency: (end == End::Client).then(|| Histogram {
                buckets: vec![(70_000, 10), (71_000, 3)],
            }),
            lateness: None,
            datagrams: (end == End::Server).then(|| {
                Box::new(Datagrams {
                    received: 41_000,
                    socket_drops: Some(7),
                    ..Datagrams::default()
                })
            }),
            requests: (end == End::Client).then_some(RequestCount { due: 90, sent: 80 }),
            connections: (end == End::Client).then(|| {
                Box::new(ConnectionCount {
                    made: 70,
                    failed: 3,
                    last_failure: Some("connecting failed".to_owned()),
                })
            }),
            zero_copy: (end == End::Client).then_some(ZeroCopyCount { done: 8, copied: 2 }),
            ended_early: None,

            stall_max_ns: None,
        },
    };
    vec![
        end(End::Client, "client1", Part::Sender),
        end(End::Server, "server", Part::Receiver),
    ]
}

/// Returns samples of trial `id` as a run records them, `series` series of `readings` each.
///
/// Of each four series, one is constant (a segment size), one nearly always zero (retransmissions),
/// one wanders (a round-trip time) and one grows by a large amount that varies by 5 % (bytes). All
/// values of a subject are read at one instant, up to 60 µs after the nominal one.
pub fn samples(id: u32, series: usize, readings: usize) -> Vec<TrialSample> {
    let mut state = u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = move |below: i64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64 % below
    };
    let mut samples = Vec::with_capacity(series * readings);
    let metrics = Metric::ALL;
    let mut instants = Vec::new();
    for at in 0..series {
        let flow = at / metrics.len();
        let metric = at % metrics.len();
        if metric == 0 {
            let instant = |reading| reading as i64 * 100_000_000 + random(60_000);
            instants = (0..readings).map(instant).collect();
        }
        let (end, host) = match flow % 2 {
            0 => (End::Client, format!("client{}", flow / 2 % 5 + 1)),
            _ => (End::Server, "server".to_owned()),
        };
        let mut bytes = random(1 << 27);
        for &at_ns in &instants {
            bytes += 11_700_000 + random(600_000);
            let value = match metric % 4 {
                0 => 1448,
                1 => random(20) / 19,
                2 => 150_000 + random(20_000),
                _ => bytes,
            };
            samples.push(TrialSample {
                trial: TrialId(id),
                host: HostName::from(host.clone()),
                subject: Subject::Flow(FlowId(flow as u32 / 2), end),
                metric: metrics[metric],
                at_ns,
                value,
            });
        }
    }
    samples.sort_by(|a, b| {
        (&a.host, &a.subject, a.metric, a.at_ns).cmp(&(&b.host, &b.subject, b.metric, b.at_ns))
    });
    samples
}

/// Returns what a trial left: its record, its flows and as many samples.
pub fn evidence(id: u32, series: usize, readings: usize) -> TrialEvidence {
    TrialEvidence {
        record: trial(id),
        flows: flows(id),
        samples: samples(id, series, readings).into_iter().collect(),
        profiles: Vec::new(),
        captures: Vec::new(),
    }
}
