//! The result document of one measurement, for programs and for the final lines of a terminal.
//!
//! Keys carry their unit; rates are bits per second, volumes bytes. What was not read is `null`.
//! The shape has a number, `SINGLE_SCHEMA`; it grows when a key changes its meaning or
//! goes away, not when one is added.
//!
//! What there is of each flow is put together as it is written: with thousands of flows the
//! document is several times the recording that it is made of.

use std::collections::BTreeMap;

use linerate_model::analysis::HostCounters;
use linerate_model::capture::TrialCapture;
use linerate_model::compared::Compared;
use linerate_model::datagram::Transit;
use linerate_model::finding::{Caution, Finding, FindingKind, Trust, TrustLevel};
use linerate_model::flag::TrialFlag;
use linerate_model::limiter::Limiter;
use linerate_model::plan::Trial;
use linerate_model::reason::{HostFailure, Reason};
use linerate_model::response::describe;
use linerate_model::run::{Control, FlowRecord, HostPart, Recording, server_program};
use linerate_model::sample::{End, FLOWS_IN_FULL};
use linerate_model::setting::Settings;
use linerate_model::shortfall::{ConnectionCount, RequestCount};
use linerate_model::unit::Unit;
use linerate_model::workload::{Direction, Part, Workload};
use linerate_model::{Nanos, TrialId};
use serde::{Serialize, Serializer};

use crate::condition::Judged;
use crate::counters::counters;
use crate::dataset::Dataset;
use crate::diagnose::{self, Found, What};
use crate::latency::{Latency, microseconds};
use crate::live::{Interval, Live};
use crate::precision::{of_runs, time_of_runs};
use crate::proof::{Proof, Proofs};
use crate::queue_map::queue_of;
use crate::reduce::{
    Outcome, QdiscDrops, ROUND_TRIPS_SETTLED, Together, Values, WAIT_SHARE_MIN, dropping_qdiscs,
    name,
};
use crate::{front, next, trust};

/// This document, and the number of its shape.
pub const SINGLE_SCHEMA: (&str, u32) = ("linerate.run", 2);

/// Share of the CPUs' time with others from which on quiet hosts come before a longer run.
const DISTURBED_SHARE_MUCH: f64 = 0.25;
/// Share of the time that a worker wants its CPU, or that CPUs are busy, from which on the number may depend on them.
const NEEDED_SHARE_MIN: f64 = 0.5;
/// Share of the segments sent again from which on flows that get nothing through are a queue's doing.
const LOST_SHARE_MANY: f64 = 0.01;

/// One measurement.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Single<'a> {
    /// Always `linerate.run`.
    pub schema: &'static str,
    /// The number of `SINGLE_SCHEMA`.
    pub schema_version: u32,
    /// Version of the program.
    pub linerate_version: String,
    /// The run.
    pub run: String,
    /// Start, UTC, RFC 3339.
    pub started_utc: String,
    /// The answer in one line.
    pub summary: Summary,
    /// The hosts, the server first.
    pub hosts: Vec<SingleHost>,
    /// The name of the group, where the trials have several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The traffic.
    pub workload: Workload,
    /// Each repetition.
    pub trials: Vec<SingleTrial<'a>>,
    /// Of several groups, what each repetition carried and cost in all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<Together>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Reasons to trust a number less.
    pub cautions: Vec<Finding>,
    /// How far the numbers may be relied on.
    pub trust: Trust,
    /// What was changed after the measurement to prove what limits it, and what that did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
    /// The limiters that are left standing where what limits it is not known, the likelier first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub standing: Vec<Limiter>,
    /// What to do next about what limits it, if anything.
    pub next: Option<String>,
    /// Why the numbers are partial, if they are.
    pub partial: Option<String>,
    /// The result held against that of another run, with `--baseline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Compared>,
    /// What became of each `--fail-if`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Judged>,
}

/// The answer in one line, for scripts; [`Single`] has what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// The number that was measured, of several runs their mean; `null` where no run was valid.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: Unit,
    /// Both ends of its interval at 95 %, of several runs.
    pub low: Option<f64>,
    /// The upper one.
    pub high: Option<f64>,
    /// What the interval speaks of: the time from the begin of the first valid run to the end of the last, of several.
    pub runs_within_s: Option<f64>,
    /// What limits it, where that is known.
    pub limiter: Option<Limiter>,
    /// How far it may be relied on.
    pub trust: TrustLevel,
    /// What to do next, if anything.
    pub next: Option<String>,
    /// Whether all that was asked for was measured, and may be used.
    pub ok: bool,
}

impl Summary {
    /// Returns that of a run that came to nothing.
    pub fn of_nothing() -> Self {
        Self {
            value: None,
            unit: Unit::None,
            low: None,
            high: None,
            runs_within_s: None,
            limiter: None,
            trust: TrustLevel::DoNotUse,
            next: None,
            ok: false,
        }
    }

    fn of(single: &Single<'_>, recording: &Recording) -> Self {
        let headline = single.workload.traffic.kind().about().headline;
        let unit = describe(headline).unit;
        let valid = single.trials.iter().filter(|trial| trial.valid);
        let values: Vec<f64> = valid.filter_map(|trial| trial.value(headline)).collect();
        let estimate = of_runs(&values, unit);
        // A range of two or three values is no interval.
        let interval = estimate.filter(|estimate| !estimate.is_range());
        let trust = single.trust.level;
        Self {
            value: estimate.map(|estimate| estimate.value),
            unit,
            low: interval.and_then(|estimate| estimate.low),
            high: interval.and_then(|estimate| estimate.high),
            runs_within_s: time_of_runs(recording)
                .filter(|_| values.len() > 1)
                .map(|time| time.0 as f64 / 1e9),
            limiter: single.limiter().map(|(limiter, _)| limiter),
            trust,
            next: single.next.clone(),
            ok: estimate.is_some() && trust != TrustLevel::DoNotUse && single.partial.is_none(),
        }
    }
}

/// A host of the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SingleHost {
    /// Its name.
    pub name: String,
    /// What it was for.
    pub part: HostPart,
    /// Its agent.
    pub agent: String,
    /// How requests travelled to it, if known.
    pub control: Option<Control>,
    /// How payload travelled: always in the clear, since the network is measured and no cipher.
    pub payload: Control,
    /// Address of its data flows.
    pub data_address: String,
    /// Rate of the link that data flows use, if known.
    pub link_bits_per_second: Option<f64>,
    /// That from the host, where it is another than that towards it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_up_bits_per_second: Option<f64>,
    /// Its clock minus the controller's.
    pub clock_offset_ns: i64,
    /// How well that is known.
    pub clock_uncertainty_ns: u64,
}

/// One repetition.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SingleTrial<'a> {
    /// The trial.
    #[serde(skip)]
    pub trial: TrialId,
    /// The share of the datagrams that was lost in the receive buffer while a worker that reads had no time left,
    /// where it is so much that our own program decides the rate, not the path.
    #[serde(skip)]
    pub lost_unread: Option<f64>,
    /// Whether the numbers may be used.
    pub valid: bool,
    /// Why not, if not.
    pub invalid: Option<String>,
    /// What to know about it.
    #[schemars(with = "Vec<String>")]
    pub flags: Vec<TrialFlag>,
    /// Length of the window that all ends share.
    pub window_s: f64,
    /// Spread of the instants at which flows began.
    pub start_skew_us: Option<f64>,
    /// How well that is known.
    pub start_skew_uncertainty_us: Option<f64>,
    /// How long datagrams were on their way, each direction for itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_way: Vec<OneWay>,
    /// Every response by name; the unit is at the end of the name.
    pub responses: BTreeMap<String, f64>,
    /// Of datagrams: queueing disciplines of the sending hosts that dropped packets, the one with the
    /// most first.
    pub dropping_qdiscs: Vec<QdiscDrops>,
    /// Protocol counters that moved in the window, host by host.
    pub protocol_counters: Vec<HostCounters>,
    /// Interval by interval: the flows, then their sum where there are several.
    #[schemars(with = "Vec<Vec<Interval>>")]
    pub intervals: Intervals<'a>,
    /// Whether the flows are shown in full: with settings and addresses, and interval by interval.
    pub flows_in_full: bool,
    /// Both ends of every flow.
    #[schemars(with = "Vec<FlowOfTrial<'static>>")]
    pub flows: Flows<'a>,
    /// What each host captured, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<TrialCapture>,
}

/// How long the datagrams of one direction were on their way.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct OneWay {
    /// Which direction.
    pub direction: Direction,
    /// Whether it is known better than by its own size. Where it is not, the numbers say so by `uncertainty_us` alone.
    pub known: bool,
    /// The shortest.
    pub shortest_us: f64,
    /// The mean of all flows.
    pub mean_us: f64,
    /// The longest.
    pub longest_us: f64,
    /// By how much all of these may be off: as much as the clocks of the two hosts leave open.
    pub uncertainty_us: f64,
}

/// What the document of a measurement shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Time between intervals; 0 = none.
    pub interval: Nanos,
    /// Whether every flow is shown in full, however many there are.
    pub all_flows: bool,
    /// Whether intervals show the sum of the flows alone.
    pub sum_only: bool,
}

impl Shown {
    /// What a conclusion needs: no intervals, and no flows.
    pub const RESULT_ALONE: Self = Self {
        interval: Nanos(0),
        all_flows: false,
        sum_only: true,
    };
}

impl Single<'_> {
    /// Returns what limits the number, with the finding that says so; our own generator is a caution.
    pub fn limiter(&self) -> Option<(Limiter, &Finding)> {
        let mut all = self.findings.iter().chain(&self.cautions);
        all.find_map(|finding| match finding.kind {
            FindingKind::Limiter(limiter) => Some((limiter, finding)),
            _ => None,
        })
    }

    /// Returns whether others had so much of the CPUs that this may be what limits the number: not where workers
    /// rested.
    fn lacks_cpus(&self) -> bool {
        let mut valid = self.trials.iter().filter(|trial| trial.valid);
        let wanted = valid.any(SingleTrial::wants_cpus);
        self.cautions.iter().any(|caution| {
            let is_much = caution.effect.value >= DISTURBED_SHARE_MUCH;
            match caution.caution {
                Some(Caution::Starved) => true,
                Some(Caution::Disturbed) => is_much && wanted,
                _ => false,
            }
        })
    }

    /// Whether a longer window may tell more: the rate had not settled in one that was valid, or it has few round trips.
    fn is_unsettled(&self) -> bool {
        let mut valid = self.trials.iter().filter(|trial| trial.valid);
        valid.any(|trial| {
            let trip_ns = trial.value(name::TCP_RTT).or(trial.value(name::RTT_MEAN));
            let is_short =
                trip_ns.is_some_and(|ns| 1e9 * trial.window_s < ROUND_TRIPS_SETTLED * ns);
            let unsteady = |flag: &TrialFlag| matches!(flag, TrialFlag::Unsteady { .. });
            is_short || trial.flags.iter().any(unsteady)
        })
    }

    fn shares_device(&self) -> bool {
        let mut all = self.cautions.iter();
        all.any(|caution| caution.caution == Some(Caution::OtherTraffic))
    }

    /// Whether most of the datagrams that are missing did not fit the receive buffer.
    fn fills_buffer(&self) -> bool {
        let sum = |name: &str| -> Option<f64> {
            let trials = self.trials.iter().filter(|trial| trial.valid);
            trials.map(|trial| trial.value(name)).sum()
        };
        let known = || {
            let missing = sum(name::DATAGRAMS_SENT)? - sum(name::DATAGRAMS_RECEIVED)?;
            Some((sum(name::LOST_RECEIVE_BUFFER)?, missing))
        };
        known().is_some_and(|(lost, missing)| lost > 0.0 && 2.0 * lost >= missing)
    }

    fn loses_datagrams(&self) -> bool {
        let mut all = self.findings.iter();
        all.any(|finding| finding.kind == FindingKind::Loss)
    }
}

impl SingleTrial<'_> {
    /// Says of its retransmissions that most of them had arrived, where that is known.
    pub fn needless(&self) -> Option<String> {
        diagnose::needless(self)
    }

    /// Whether a worker wanted its CPU for a good part of the time, or waited for it; where that was not read, it may have.
    fn wants_cpus(&self) -> bool {
        self.reaches(name::RUNQUEUE_WAIT_MAX, WAIT_SHARE_MIN)
            || !self.stays_below(name::WORKER_WANTED_SHARE_MAX, NEEDED_SHARE_MIN)
    }

    /// Whether the number may depend on CPUs at all: a worker wanted its CPU at least half of the time, or that much of
    /// the CPUs was busy where one wanted it most.
    pub fn may_need_cpus(&self) -> bool {
        [name::WORKER_WANTED_SHARE_MAX, name::CPU_BUSY_SHARE]
            .iter()
            .any(|share| self.reaches(share, NEEDED_SHARE_MIN))
    }
}

impl Values for SingleTrial<'_> {
    fn value(&self, response: &str) -> Option<f64> {
        self.responses.get(response).copied()
    }
}

/// The intervals of a trial; a list of lists in the document, cut while it is written.
#[derive(Debug, Clone, Copy)]
pub struct Intervals<'a> {
    recording: &'a Recording,
    /// The trial and the length of an interval; absent where none are wanted.
    cut: Option<(&'a Trial, Nanos)>,
    /// Whether each flow has a line of its own.
    each: bool,
}

/// The ends of the flows of a trial; in the document a list of [`SingleFlow`], or of [`BriefFlow`].
#[derive(Debug, Clone, Copy)]
pub struct Flows<'a> {
    recording: &'a Recording,
    trial: TrialId,
    in_full: bool,
}

impl<'a> Flows<'a> {
    /// Returns what was recorded of each end.
    pub fn records(self) -> impl Iterator<Item = &'a FlowRecord> {
        self.recording.flows_of(self.trial)
    }
}

impl Serialize for Flows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.in_full {
            return serializer.collect_seq(self.records().map(brief_flow));
        }
        let flow = |flow| single_flow(self.recording, flow);
        serializer.collect_seq(self.records().map(flow))
    }
}

impl Serialize for Intervals<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut live = self.cut.map(|(trial, interval)| {
            let program = server_program(&self.recording.document.hosts);
            let samples = self.recording.samples.of_traffic();
            let mut live = Live::new(trial, interval).with_server(trial, program);
            live.add(samples.filter(|sample| sample.trial == trial.id));
            live.finish();
            if self.each { live } else { live.summed() }
        });
        // One at a time: the lines of thousands of flows take megabytes.
        let next = || live.as_mut().and_then(Live::poll_next);
        serializer.collect_seq(std::iter::from_fn(next))
    }
}

/// An end of a flow, as [`Flows`] are written.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "what is written of each flow is put together as it is written"
)]
enum FlowOfTrial<'a> {
    InFull(Box<SingleFlow<'a>>),
    Brief(BriefFlow<'a>),
}

/// One end of one flow.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SingleFlow<'a> {
    /// The flow.
    pub flow: u32,
    /// The host of this end.
    pub host: &'a str,
    /// Which end.
    pub end: End,
    /// What it did.
    pub part: Part,
    /// Local address and port.
    pub local: &'a str,
    /// Remote address and port.
    pub remote: &'a str,
    /// The CPU that its worker last ran on.
    pub cpu: Option<u32>,
    /// Where this host took in its packets.
    pub incoming: SingleIncoming,
    /// Payload sent in all phases.
    pub bytes_sent: u64,
    /// Payload received in all phases.
    pub bytes_received: u64,
    /// Settings as requested, granted, effective.
    pub settings: &'a Settings,
    /// Requests of an open loop in all phases: those that were due, and those that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestCount>,
    /// Connections that were made one after another, in all phases, and those that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<&'a ConnectionCount>,
    /// Latency of transactions inside the window.
    pub latency: Option<Latency>,
    /// How late the requests of an open loop went, after the instant at which each was due and might go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Latency>,
    /// Why it ended early, if it did.
    pub ended_early: Option<&'a str>,
}

/// One end of one of many flows.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct BriefFlow<'a> {
    /// The flow.
    pub flow: u32,
    /// Which end.
    pub end: End,
    /// What it did.
    pub part: Part,
    /// Payload sent in all phases.
    pub bytes_sent: u64,
    /// Payload received in all phases.
    pub bytes_received: u64,
    /// Why it ended early, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<&'a str>,
}

/// Where a host took in the packets of a flow; what nobody tells is `null`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct SingleIncoming {
    /// The CPU that brought the last one up to the socket.
    pub cpu: Option<u32>,
    /// The kernel's number of the NAPI that took it off the device.
    pub napi: Option<u32>,
    /// The receive queue that this NAPI serves: its device and number.
    pub queue: Option<String>,
    /// The queue's interrupt.
    pub irq: Option<u32>,
    /// The CPUs that the interrupt goes to.
    pub irq_cpus: Option<String>,
    /// The NUMA node of the first of them.
    pub node: Option<u32>,
}

/// Returns the result document of a recording of one cell.
pub fn single(recording: &Recording, shown: Shown) -> Single<'_> {
    proven(recording, Proofs::default(), shown)
}

/// Returns the same where changes were made after it.
pub fn proven(recording: &Recording, proofs: Proofs, shown: Shown) -> Single<'_> {
    let document = &recording.document;
    let workload = document.plan.trials.first().map_or_else(
        || Workload::stream(linerate_model::workload::Direction::ToServer),
        |trial| trial.workload.clone(),
    );
    let mut dataset = Dataset::new(recording);
    dataset.proofs = proofs.clone();
    let told = diagnose::told(&dataset);
    let all = told.findings.iter().chain(&told.cautions);
    let limiter = all.filter_map(|found| match found.what {
        What::Limiter(limiter) => Some(limiter),
        _ => None,
    });
    let mut all = told.findings.iter().chain(&told.cautions);
    let standing = if all.any(|found| matches!(found.what, What::Limiter(_))) {
        Vec::new()
    } else {
        standing(&dataset)
    };
    let evident = limiter.zip(&dataset.cells).next();
    let evident = evident.and_then(|(limiter, cell)| diagnose::evident(limiter, &dataset, cell));
    let has = |what: fn(&Reason) -> bool| {
        let mut outcomes = dataset.outcomes.iter();
        outcomes.any(|outcome| outcome.validity.reason().is_some_and(what))
    };
    let is_unshared = workload.connections > 1 && has(|why| matches!(why, Reason::Unshared(_)));
    let is_unanswered = has(|why| *why == Reason::NoExchange);
    let loses_many = dataset
        .outcomes
        .iter()
        .any(|outcome| outcome.reaches(name::RETRANSMITTED_SHARE, LOST_SHARE_MANY));
    let mut experiments = document.plan.experiments.iter();
    let is_beside = experiments.any(|experiment| !experiment.beside.is_empty());
    let cut_short = document.cut_short.as_ref();
    let lost_host = cut_short.and_then(|_| dataset.outcomes.iter().find_map(loses_host));
    let cut = dataset.cut_datagrams().next();
    let uncut_bytes = cut.map(|(_, wire, _)| wire.payload_bytes_max());
    let mut single = Single {
        schema: SINGLE_SCHEMA.0,
        schema_version: SINGLE_SCHEMA.1,
        linerate_version: document.version.clone(),
        run: document.run.0.clone(),
        started_utc: document.started_utc.clone(),
        summary: Summary::of_nothing(),
        hosts: hosts(recording),
        group: None,
        together: Vec::new(),
        workload,
        trust: trust::trust(&dataset, &told),
        standing,
        proofs: proofs.all,
        next: None,
        findings: told.findings.into_iter().map(Found::finding).collect(),
        cautions: told.cautions.into_iter().map(Found::finding).collect(),
        partial: front::partial(&dataset),
        comparison: None,
        conditions: Vec::new(),
        trials: dataset
            .outcomes
            .into_iter()
            .map(|outcome| trial(recording, outcome, shown))
            .collect(),
    };
    let limiter = single.limiter().map(|(limiter, _)| limiter);
    let separating = next::separating(&single.standing, &single.workload);
    let is_measured = single.trials.iter().any(|trial| trial.valid);
    let mut cautions = single.cautions.iter();
    let cure = cautions.find_map(|caution| caution.action.clone());
    single.next = match limiter {
        _ if let Some(failure) = lost_host => Some(match failure {
            HostFailure::Silent => next::WHERE_SILENT_HOST.to_owned(),
            _ => next::WHERE_LOST_HOST.to_owned(),
        }),
        // At the rate that was asked for, what makes each request slower comes first.
        Some(Limiter::Pacing) | None if is_measured && cure.is_some() => cure,
        None if is_measured && is_beside => Some(next::WHERE_BESIDE.to_owned()),
        Some(limiter) => evident.or_else(|| diagnose::next(limiter, &single.workload)),
        // Nothing is to be raised where nothing is carried.
        None if is_measured && !single.workload.traffic.carries_payload() => None,
        None if is_measured && single.fills_buffer() => Some(next::WHERE_BUFFER_FULL.to_owned()),
        None if is_measured && single.loses_datagrams() => Some(match uncut_bytes {
            Some(bytes) => next::where_cut(bytes),
            None => next::WHERE_LOST.to_owned(),
        }),
        None if is_measured && single.shares_device() => Some(diagnose::WHERE_SHARED.to_owned()),
        None if is_measured && single.lacks_cpus() => Some(next::WHERE_DISTURBED.to_owned()),
        // What was changed already is not asked for again.
        None if is_measured && separating.is_some() && single.proofs.is_empty() => separating,
        None if is_measured && single.is_unsettled() => Some(next::WHERE_UNSETTLED.to_owned()),
        None if is_measured && !recording.captures.is_empty() => {
            Some(next::WHERE_CAPTURED.to_owned())
        }
        None if is_measured && !recording.profiles.is_empty() => {
            Some(next::WHERE_PROFILED.to_owned())
        }
        None if is_measured => Some(next::WHERE_UNKNOWN.to_owned()),
        None if is_unanswered => Some(next::WHERE_UNANSWERED.to_owned()),
        None if is_unshared && loses_many => Some(next::WHERE_STARVED.to_owned()),
        None => is_unshared.then(|| next::WHERE_UNSHARED.to_owned()),
    };
    single.summary = Summary::of(&single, recording);
    single
}

/// Returns the limiters that may hold the number of a measurement of one cell, where none is known to.
fn standing(dataset: &Dataset<'_>) -> Vec<Limiter> {
    let mut cells = dataset.measured();
    match (cells.next(), cells.next()) {
        (Some(cell), None) if cell.experiment.beside.is_empty() => {
            diagnose::standing(dataset, cell)
        }
        _ => Vec::new(),
    }
}

/// Returns how an agent was gone, if the traffic ended because one was.
fn loses_host(outcome: &Outcome) -> Option<HostFailure> {
    // A host that took itself back refused, and is not lost.
    let lost = |why: &Reason| {
        let failure = why.host_failure();
        failure.filter(|failure| matches!(failure, HostFailure::Lost | HostFailure::Silent))
    };
    let partial = outcome.flags.iter().filter_map(|flag| match flag {
        TrialFlag::Partial { why, .. } => Some(why.as_ref()),
        _ => None,
    });
    partial.chain(outcome.validity.reason()).find_map(lost)
}

fn hosts(recording: &Recording) -> Vec<SingleHost> {
    let hosts = recording.document.hosts.iter();
    hosts
        .map(|host| SingleHost {
            name: host.name.to_string(),
            part: host.part,
            agent: host.agent.clone(),
            control: host.control,
            payload: Control::Clear,
            data_address: host.data_address.clone(),
            link_bits_per_second: host.link_rate.map(|rate| rate.0),
            link_up_bits_per_second: host.link_up_rate.map(|rate| rate.0),
            clock_offset_ns: host.clock.offset_ns,
            clock_uncertainty_ns: host.clock.uncertainty_ns,
        })
        .collect()
}

fn trial(recording: &Recording, outcome: Outcome, shown: Shown) -> SingleTrial<'_> {
    let record = recording.record(outcome.trial);
    let planned = recording.document.plan.trial(outcome.trial);
    let wanted = planned.filter(|_| shown.interval.0 > 0);
    let are_few = planned.is_none_or(|trial| trial.workload.connections <= FLOWS_IN_FULL);
    let in_full = shown.all_flows || are_few;
    let lost_unread = planned
        .filter(|_| outcome.is_valid())
        .and_then(|trial| trust::lost_unread(&trial.workload, &outcome));
    SingleTrial {
        trial: outcome.trial,
        lost_unread,
        valid: outcome.is_valid(),
        invalid: outcome.validity.reason().map(ToString::to_string),
        flags: outcome.flags,
        window_s: record.map_or(0.0, |record| record.window_ns as f64 / 1e9),
        start_skew_us: record
            .and_then(|record| record.start_skew_ns)
            .map(microseconds),
        start_skew_uncertainty_us: record
            .and_then(|record| record.start_skew_uncertainty_ns)
            .map(microseconds),
        one_way: one_way(recording, outcome.trial),
        responses: outcome
            .responses
            .into_iter()
            .filter(|(_, response)| response.unit != Unit::None)
            .map(|(name, response)| (name, response.value))
            .collect(),
        dropping_qdiscs: dropping_qdiscs(recording, outcome.trial),
        protocol_counters: counters(recording, record.into_iter()),
        intervals: Intervals {
            recording,
            cut: wanted.map(|trial| (trial, shown.interval)),
            each: in_full && !shown.sum_only,
        },
        flows_in_full: in_full,
        flows: Flows {
            recording,
            trial: outcome.trial,
            in_full,
        },
        captures: recording
            .captures
            .iter()
            .filter(|capture| capture.trial == outcome.trial)
            .cloned()
            .collect(),
    }
}

fn one_way(recording: &Recording, trial: TrialId) -> Vec<OneWay> {
    let of = |(direction, end)| {
        let receivers = recording.flows_of(trial).filter(|flow| flow.end == end);
        let transits: Vec<Transit> = receivers
            .filter_map(|flow| flow.datagrams.as_ref()?.transit)
            .collect();
        let us = |ns: i64| ns as f64 / 1e3;
        let uncertainty_ns = transits.iter().map(|it| it.uncertainty_ns).max()??;
        let whole = Transit {
            shortest_ns: transits.iter().map(|it| it.shortest_ns).min()?,
            mean_ns: transits.iter().map(|it| it.mean_ns).sum::<i64>() / transits.len() as i64,
            longest_ns: transits.iter().map(|it| it.longest_ns).max()?,
            uncertainty_ns: Some(uncertainty_ns),
        };
        Some(OneWay {
            direction,
            known: whole.is_known(),
            shortest_us: us(whole.shortest_ns),
            mean_us: us(whole.mean_ns),
            longest_us: us(whole.longest_ns),
            uncertainty_us: uncertainty_ns as f64 / 1e3,
        })
    };
    let ways = [
        (Direction::ToServer, End::Server),
        (Direction::FromServer, End::Client),
    ];
    ways.into_iter().filter_map(of).collect()
}

fn incoming(recording: &Recording, flow: &FlowRecord) -> SingleIncoming {
    let host = recording.document.host(&flow.host);
    let queue = host.and_then(|host| queue_of(&host.snapshot, flow.incoming));
    let known = queue.as_ref();
    SingleIncoming {
        cpu: flow.incoming.cpu,
        napi: flow.incoming.napi,
        queue: known.map(|queue| queue.to_string()),
        irq: known.and_then(|queue| queue.irq),
        irq_cpus: known.and_then(|queue| queue.cpus.map(str::to_owned)),
        node: known.and_then(|queue| queue.node),
    }
}

fn brief_flow(flow: &FlowRecord) -> BriefFlow<'_> {
    BriefFlow {
        flow: flow.flow.0,
        end: flow.end,
        part: flow.part,
        bytes_sent: flow.bytes_sent,
        bytes_received: flow.bytes_received,
        ended_early: flow.ended_early.as_deref(),
    }
}

fn single_flow<'r>(recording: &Recording, flow: &'r FlowRecord) -> SingleFlow<'r> {
    SingleFlow {
        flow: flow.flow.0,
        host: &flow.host.0,
        end: flow.end,
        part: flow.part,
        local: &flow.local,
        remote: &flow.remote,
        cpu: flow.cpu,
        incoming: incoming(recording, flow),
        bytes_sent: flow.bytes_sent,
        bytes_received: flow.bytes_received,
        settings: &flow.settings,
        requests: flow.requests,
        connections: flow.connections.as_deref(),
        latency: flow.latency.as_ref().map(Latency::of),
        lateness: flow.lateness.as_ref().map(Latency::of),
        ended_early: flow.ended_early.as_deref(),
    }
}
