//! The result document of one measurement, for programs and for the final lines of a terminal.
//!
//! Keys carry their unit; rates are bits per second, volumes bytes. What was not read is `null`.
//! The shape has a number, `SINGLE_SCHEMA_VERSION`; it grows when a key changes its meaning or
//! goes away, not when one is added.

use std::collections::BTreeMap;

use linerate_model::analysis::HostCounters;
use linerate_model::finding::Finding;
use linerate_model::histogram::observations_needed;
use linerate_model::run::{FlowRecord, HostPart, Recording, Validity};
use linerate_model::sample::End;
use linerate_model::setting::Settings;
use linerate_model::unit::Unit;
use linerate_model::workload::{Part, Workload};
use serde::Serialize;

use crate::counters::counters;
use crate::live::{Interval, Live};
use crate::reduce::{Outcome, QdiscDrops, dropping_qdiscs, outcomes};

/// The number of this document's shape.
pub const SINGLE_SCHEMA_VERSION: u32 = 1;

/// One measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Single {
    /// Always `linerate.run`.
    pub schema: &'static str,
    /// [`SINGLE_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of the program.
    pub linerate_version: String,
    /// The run.
    pub run: String,
    /// Start, UTC, RFC 3339.
    pub started_utc: String,
    /// The hosts, the server first.
    pub hosts: Vec<SingleHost>,
    /// The traffic.
    pub workload: Workload,
    /// Each repetition.
    pub trials: Vec<SingleTrial>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Why the numbers are partial, if they are.
    pub partial: Option<String>,
}

/// A host of the measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SingleHost {
    /// Its name.
    pub name: String,
    /// What it was for.
    pub part: HostPart,
    /// Its agent.
    pub agent: String,
    /// Address of its data flows.
    pub data_address: String,
    /// Rate of the link that data flows use, if known.
    pub link_bits_per_second: Option<f64>,
    /// Its clock minus the controller's.
    pub clock_offset_ns: i64,
    /// How well that is known.
    pub clock_uncertainty_ns: u64,
}

/// One repetition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SingleTrial {
    /// Whether the numbers may be used.
    pub valid: bool,
    /// Why not, if not.
    pub invalid: Option<String>,
    /// What to know about it.
    pub flags: Vec<String>,
    /// Length of the window that all ends share.
    pub window_s: f64,
    /// Spread of the instants at which flows began.
    pub start_skew_us: Option<f64>,
    /// How well that is known.
    pub start_skew_uncertainty_us: Option<f64>,
    /// Every response by name; the unit is at the end of the name.
    pub responses: BTreeMap<String, f64>,
    /// Of datagrams: queueing disciplines of the sending hosts that dropped packets, the one with the
    /// most first.
    pub dropping_qdiscs: Vec<QdiscDrops>,
    /// Protocol counters that moved in the window, host by host.
    pub protocol_counters: Vec<HostCounters>,
    /// Interval by interval: the flows, then their sum where there are several.
    pub intervals: Vec<Vec<Interval>>,
    /// Both ends of every flow.
    pub flows: Vec<SingleFlow>,
}

/// One end of one flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SingleFlow {
    /// The flow.
    pub flow: u32,
    /// The host of this end.
    pub host: String,
    /// Which end.
    pub end: End,
    /// What it did.
    pub part: Part,
    /// Local address and port.
    pub local: String,
    /// Remote address and port.
    pub remote: String,
    /// The CPU that its worker last ran on.
    pub cpu: Option<u32>,
    /// Payload sent in all phases.
    pub bytes_sent: u64,
    /// Payload received in all phases.
    pub bytes_received: u64,
    /// Settings as requested, granted, effective.
    pub settings: Settings,
    /// Latency of transactions inside the window.
    pub latency: Option<SingleLatency>,
    /// Why it ended early, if it did.
    pub ended_early: Option<String>,
}

/// A latency distribution; quantiles with too few observations are `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SingleLatency {
    /// Observations.
    pub n: u64,
    /// Mean.
    pub mean_us: Option<f64>,
    /// Median.
    pub p50_us: Option<f64>,
    /// 90th percentile.
    pub p90_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p999_us: Option<f64>,
    /// Longest.
    pub max_us: Option<f64>,
}

/// Returns the result document of a recording of one cell.
pub fn single(recording: &Recording, interval: linerate_model::Nanos) -> Single {
    let document = &recording.document;
    let workload = document.plan.trials.first().map_or_else(
        || Workload::stream(linerate_model::workload::Direction::ToServer),
        |trial| trial.workload.clone(),
    );
    let analysis = crate::analyze(recording);
    Single {
        schema: "linerate.run",
        schema_version: SINGLE_SCHEMA_VERSION,
        linerate_version: document.version.clone(),
        run: document.run.0.clone(),
        started_utc: document.started_utc.clone(),
        hosts: hosts(recording),
        workload,
        trials: outcomes(recording)
            .into_iter()
            .map(|outcome| trial(recording, outcome, interval))
            .collect(),
        findings: analysis.findings,
        partial: analysis.partial,
    }
}

fn hosts(recording: &Recording) -> Vec<SingleHost> {
    let hosts = recording.document.hosts.iter();
    hosts
        .map(|host| SingleHost {
            name: host.name.to_string(),
            part: host.part,
            agent: host.agent.clone(),
            data_address: host.data_address.clone(),
            link_bits_per_second: host.link_rate.map(|rate| rate.0),
            clock_offset_ns: host.clock.offset_ns,
            clock_uncertainty_ns: host.clock.uncertainty_ns,
        })
        .collect()
}

fn trial(recording: &Recording, outcome: Outcome, interval: linerate_model::Nanos) -> SingleTrial {
    let record = recording
        .trials
        .iter()
        .find(|record| record.trial == outcome.trial);
    let planned = recording
        .document
        .plan
        .trials
        .iter()
        .find(|trial| trial.id == outcome.trial);
    let intervals = match planned {
        Some(planned) if interval.0 > 0 => {
            let samples = recording.samples.iter();
            let samples = samples.filter(|sample| sample.trial == outcome.trial);
            let server = recording.document.server();
            let foreign = server.is_some_and(|server| server.foreign.is_some());
            let mut live = Live::new(planned, interval).with_server(planned, foreign);
            live.add(samples);
            live.poll()
        }
        _ => Vec::new(),
    };
    SingleTrial {
        valid: outcome.is_valid(),
        invalid: match &outcome.validity {
            Validity::Valid => None,
            Validity::Invalid(why) => Some(why.clone()),
        },
        flags: outcome.flags,
        window_s: record.map_or(0.0, |record| record.window_ns as f64 / 1e9),
        start_skew_us: record
            .and_then(|record| record.start_skew_ns)
            .map(microseconds),
        start_skew_uncertainty_us: record
            .and_then(|record| record.start_skew_uncertainty_ns)
            .map(microseconds),
        responses: outcome
            .responses
            .into_iter()
            .filter(|(_, response)| response.unit != Unit::None)
            .map(|(name, response)| (name, response.value))
            .collect(),
        dropping_qdiscs: dropping_qdiscs(recording, outcome.trial),
        protocol_counters: counters(recording, record.into_iter()),
        intervals,
        flows: recording
            .flows
            .iter()
            .filter(|flow| flow.trial == outcome.trial)
            .map(single_flow)
            .collect(),
    }
}

fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn single_flow(flow: &FlowRecord) -> SingleFlow {
    SingleFlow {
        flow: flow.flow.0,
        host: flow.host.to_string(),
        end: flow.end,
        part: flow.part,
        local: flow.local.clone(),
        remote: flow.remote.clone(),
        cpu: flow.cpu,
        bytes_sent: flow.bytes_sent,
        bytes_received: flow.bytes_received,
        settings: flow.settings.clone(),
        latency: flow.latency.as_ref().map(|histogram| {
            let n = histogram.count();
            let quantile = |q: f64| {
                let value = histogram
                    .quantile(q)
                    .filter(|_| n >= observations_needed(q));
                value.map(|value| microseconds(value.0))
            };
            SingleLatency {
                n,
                mean_us: histogram.mean_ns().map(|mean| mean / 1e3),
                p50_us: quantile(0.5),
                p90_us: quantile(0.9),
                p99_us: quantile(0.99),
                p999_us: quantile(0.999),
                max_us: histogram.max().map(|max| microseconds(max.0)),
            }
        }),
        ended_early: flow.ended_early.clone(),
    }
}
