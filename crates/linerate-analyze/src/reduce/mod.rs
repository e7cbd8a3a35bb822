//! Raw samples of a trial → the responses of its outcome.
//!
//! 1. Each counter is read twice: at the first sample at or after the begin of the measured
//!    window, and at the first sample at or after its end (else the last one there is). Its rate
//!    is the difference over the time between these two readings, per host and subject.
//! 2. Rates of flows are summed; a sum in which one flow was not read is absent, not smaller.
//! 3. A throughput that the links cannot carry is refused: the outcome is invalid and says why.
//!    (Payload that arrived before the window and was read in it is put right instead.)
//!
//! Responses are found by name; every name carries its unit at its end (`name`).

/// CPU time and cycles per byte, packet and transaction.
mod cost;
/// Datagrams, and where those that are missing were lost.
mod datagrams;
/// Payload, transactions and segments of the flows.
mod flows;
/// CPUs and threads of the hosts.
mod machine;
/// Numbers above what the links carry.
mod plausible;
/// What the CPUs did.
mod profile;
/// Receive queues and CPUs of the receiving host.
mod queues;
/// Names, units and titles of responses.
mod response;
/// First and last reading of each counter in the measured window.
mod window;

use std::collections::BTreeMap;

use linerate_model::TrialId;
use linerate_model::experiment::Cell;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::run::{FlowRecord, HostPart, HostRecord, Recording, TrialRecord, Validity};
use linerate_model::samples::Samples;
use linerate_model::unit::Unit;
use linerate_model::workload::{Direction, Traffic};

use crate::live::acknowledged;

pub use datagrams::QdiscDrops;
pub(crate) use datagrams::{PLACES as LOSS_PLACES, dropping_qdiscs};
pub(crate) use profile::share_name;
pub(crate) use queues::{CpuIntake, Intake, QueueIntake, intake};
pub use response::{describe, name};
pub(crate) use window::Readings;

/// User time of other programs from which on a trial is flagged, in CPUs. The agents' own control
/// threads and a controller on the same machine stay below a tenth; /proc/stat counts in ticks of
/// 10 ms, which is 0.025 CPUs in a window of 0.4 s.
pub const OTHERS_CPUS_MAX: f64 = 0.15;

/// Share of its time from which on a worker counts as saturated.
///
/// A worker that waits for the network less than 5 % of its time would deliver more if it were
/// faster; the remaining 5 % cover the granularity of scheduler statistics.
pub const WORKER_SATURATED_SHARE: f64 = 0.95;

/// Share of the measured window that readings must span before a note is made of it.
const WINDOW_COVERED_SHARE_MIN: f64 = 0.9;

/// One response of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Response {
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

/// The responses of one trial with its levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The trial.
    pub trial: TrialId,
    /// Its experiment.
    pub experiment: String,
    /// Its levels.
    pub cell: Cell,
    /// Which repetition of the cell.
    pub replicate: u32,
    /// Whether it may be averaged; refused numbers are invalid too.
    pub validity: Validity,
    /// What to know about it although it is valid.
    pub flags: Vec<String>,
    /// The responses by name; one that was not read is not there.
    pub responses: BTreeMap<String, Response>,
}

impl Outcome {
    /// Returns whether the outcome may be averaged.
    pub fn is_valid(&self) -> bool {
        self.validity == Validity::Valid
    }

    /// Returns the value of the response called `name`.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.responses.get(name).map(|response| response.value)
    }
}

/// Returns the outcome of every recorded trial, in the order of execution.
pub fn outcomes(recording: &Recording) -> Vec<Outcome> {
    let mut flows: BTreeMap<TrialId, Vec<&FlowRecord>> = BTreeMap::new();
    for flow in &recording.flows {
        flows.entry(flow.trial).or_default().push(flow);
    }
    let document = &recording.document;
    let plan: BTreeMap<TrialId, &Trial> = document
        .plan
        .trials
        .iter()
        .map(|trial| (trial.id, trial))
        .collect();
    let none = Vec::new();
    recording
        .trials
        .iter()
        .filter_map(|record| Some((plan.get(&record.trial)?, record)))
        .map(|(trial, record)| {
            let flows = flows.get(&record.trial).unwrap_or(&none);
            let readings = Readings::new(&recording.samples, record.trial, record.window_ns);
            reduce(trial, record, flows, &readings, &document.hosts)
        })
        .collect()
}

/// Returns the outcome of one live trial, by the same reduction as [`outcomes`].
///
/// `flows` and `samples` of other trials are passed over.
pub fn outcome_of(
    trial: &Trial,
    record: &TrialRecord,
    flows: &[FlowRecord],
    samples: &Samples,
    hosts: &[HostRecord],
) -> Outcome {
    let flows: Vec<&FlowRecord> = flows.iter().filter(|flow| flow.trial == trial.id).collect();
    let readings = Readings::new(samples, trial.id, record.window_ns);
    reduce(trial, record, &flows, &readings, hosts)
}

fn reduce(
    trial: &Trial,
    record: &TrialRecord,
    flows: &[&FlowRecord],
    readings: &Readings<'_>,
    hosts: &[HostRecord],
) -> Outcome {
    let mut responses = Responses::default();
    let mut flags = record.flags.clone();
    let server = hosts.iter().find(|host| host.part == HostPart::Server);
    let foreign = server.and_then(|server| server.foreign.as_deref());
    flows::reduce(trial, flows, readings, foreign.is_some(), &mut responses);
    datagrams::reduce(trial, flows, readings, &mut responses);
    let plausibility = plausible::check(&trial.workload, &mut responses, hosts);
    machine::reduce(hosts, readings, &mut responses);
    profile::reduce(hosts, readings, &mut responses);
    queues::reduce(trial, flows, hosts, readings, &mut responses);
    flags.extend(plausibility.flags);
    let counted = foreign.filter(|_| responses.value(name::THROUGHPUT).is_some());
    flags.extend(counted.and_then(|program| foreign_flag(program, trial)));
    flags.extend(coverage_flag(readings));
    flags.extend(saturation_flag(&responses));
    flags.extend(others_flag(&responses));
    let validity = match (&record.validity, plausibility.refusal) {
        (Validity::Valid, Some(reason)) => Validity::Invalid(reason),
        (validity, _) => validity.clone(),
    };
    Outcome {
        trial: trial.id,
        experiment: trial.experiment.clone(),
        cell: trial.cell.clone(),
        replicate: trial.replicate,
        validity,
        flags,
        responses: responses.0,
    }
}

fn foreign_flag(program: &str, trial: &Trial) -> Option<String> {
    let to_server = matches!(
        trial.workload.traffic,
        Traffic::Stream { direction, .. } if direction != Direction::FromServer
    );
    (to_server && acknowledged(&trial.workload) == Metric::TcpBytesAcked).then(|| {
        format!(
            "throughput to the server is what its TCP acknowledged, since {program} does not say \
             what it has read at an instant"
        )
    })
}

fn coverage_flag(readings: &Readings<'_>) -> Option<String> {
    let share = readings.covered_share()?;
    (share < WINDOW_COVERED_SHARE_MIN).then(|| {
        format!(
            "readings span only {} of the measured window",
            Unit::Percent.display(100.0 * share)
        )
    })
}

fn others_flag(responses: &Responses) -> Option<String> {
    let others = responses.value(name::CPU_OTHERS)?;
    (others > OTHERS_CPUS_MAX).then(|| {
        format!(
            "other programs used {} in user mode meanwhile",
            Unit::Cpus.display(others)
        )
    })
}

fn saturation_flag(responses: &Responses) -> Option<String> {
    let run = responses.value(name::WORKER_BUSY_SHARE_MAX)?;
    let wanted = responses
        .value(name::WORKER_WANTED_SHARE_MAX)
        .unwrap_or(run);
    let percent = |share: f64| Unit::Percent.display(100.0 * share);
    if run >= WORKER_SATURATED_SHARE {
        Some(format!(
            "generator saturated: its busiest worker ran {} of the time",
            percent(run)
        ))
    } else if wanted >= WORKER_SATURATED_SHARE {
        Some(format!(
            "generator short of CPU: a worker ran or waited for a CPU {} of the time",
            percent(wanted)
        ))
    } else {
        None
    }
}

/// Responses while they are collected.
#[derive(Debug, Default)]
pub(crate) struct Responses(BTreeMap<String, Response>);

impl Responses {
    /// Adds a response when it was read; one that is not finite was not.
    fn put(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            let unit = describe(name).unit;
            self.0.insert(name.to_owned(), Response { value, unit });
        }
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.0.get(name).map(|response| response.value)
    }
}
