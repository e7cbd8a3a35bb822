//! Raw samples of a trial → the responses of its outcome.
//!
//! 1. Each counter is read twice: at the first sample at or after the begin of the measured
//!    window, and at the first sample at or after its end (else the last one there is). Its rate
//!    is the difference over the time between these two readings, per host and subject.
//! 2. Rates of flows are summed; a sum in which one flow was not read is absent, not smaller.
//! 3. A throughput that the links cannot carry is refused: the outcome is invalid and says why. So are counts that
//!    cannot be, of which nothing is reduced.
//!    So is the level of a stream whose flows did not all take part.
//!
//! Responses are found by name; every name carries its unit at its end (`name`).

/// What arrived of a stream, flow by flow, and whether its level was in force.
mod arrived;
/// What else passes the devices that streams use.
mod beside;
/// CPU time and cycles per byte, packet and transaction.
mod cost;
/// What CPUs do with their time.
pub(crate) mod cpu_time;
/// Segments that arrived with a wrong checksum.
mod damaged;
/// Datagrams, and where those that are missing were lost.
mod datagrams;
/// What tells the limiters of streams apart.
mod evidence;
/// Where the time of an exchange goes.
mod exchange;
/// The shortest round trip between each client and the server.
mod floors;
/// Payload, transactions and segments of the flows.
mod flows;
/// How losses lie in time.
mod losses;
/// CPUs and threads of the hosts.
mod machine;
/// Numbers that cannot be.
mod plausible;
/// What the CPUs did.
mod profile;
/// Receive queues and CPUs of the receiving host.
mod queues;
/// A trial with all that was recorded of it.
mod raw;
/// Parts of the window in which nothing arrived.
mod silence;
/// Whether workers got the CPUs that they wanted.
mod starved;
mod steady;
/// All groups of a trial together.
mod together;
/// Responses by name, of a trial or a cell.
mod values;
/// First and last reading of each counter in the measured window.
pub(crate) mod window;

use std::collections::BTreeMap;

use linerate_model::flag::{Because, TrialFlag};
use linerate_model::histogram::Histogram;
use linerate_model::manner::{Transport, WaitBy};
use linerate_model::plan::{Repeat, Trial};
use linerate_model::reason::{Reason, Unshared};
use linerate_model::run::{
    FlowRecord, HostPart, HostProgram, Recording, TrialRecord, Validity, server_program,
};
use linerate_model::workload::{Direction, FlowPlan, Part, Workload};
use linerate_model::{HostName, TrialId};

use arrived::Judged;

pub(crate) use arrived::HALVES_SHARE_MAX;
pub(crate) use beside::{TCP_HEADERS_BYTES, UDP_HEADERS_BYTES};
pub use datagrams::QdiscDrops;
pub(crate) use datagrams::{
    ArrivalShaper, INGRESS_MAJOR, LOSS_PLACES, arrival_shaper, dropping_qdiscs,
};
pub(crate) use evidence::SCHEDULER_NS_MAX;
pub(crate) use exchange::{DELAYED_ACK_NS_MAX, SEGMENT_BYTES, STALL_EXCESS_NS, Way, namespaces};
pub(crate) use floors::Floors;
pub use linerate_model::outcome::{Outcome, Response};
pub use linerate_model::response::{describe, name, share_name};
pub(crate) use losses::EVEN_DISPERSION_MAX;
pub(crate) use plausible::{beyond_together, tolerance};
pub(crate) use queues::{CpuIntake, Intake, QueueIntake, intake, interrupt_share, queues_in_use};
pub(crate) use raw::{Raw, are_aggregates};
pub(crate) use silence::DATAGRAMS_MIN;
pub use together::{GroupPayload, HostCpus, Together, together};
pub(crate) use values::{Amount, Values, lacks, note_lack, note_unread};
pub(crate) use window::Readings;

/// Time of other programs below which a trial is not flagged for it, in CPUs. The agents' own
/// control threads and a controller on the same machine stay below a tenth; /proc/stat counts in
/// ticks of 10 ms, which is 0.025 CPUs in a window of 0.4 s.
pub const OTHERS_CPUS_MAX: f64 = 0.15;
/// Share of the CPUs' time that others take from which on it may have moved the result.
pub const DISTURBED_SHARE_MAX: f64 = 0.03;

/// Share of its time from which on a worker counts as saturated.
///
/// A worker that waits for the network less than 5 % of its time would deliver more if it were
/// faster; the remaining 5 % cover the granularity of scheduler statistics.
pub const WORKER_SATURATED_SHARE: f64 = 0.95;

/// Share of the measured window that readings must span before a note is made of it.
const WINDOW_COVERED_SHARE_MIN: f64 = 0.9;

/// Returns the outcome of every recorded trial, in the order of execution; each trial has one group.
pub fn outcomes(recording: &Recording) -> Vec<Outcome> {
    in_order(recording, each(recording, |trial| Some(Err(trial))))
}

/// Returns the outcome of each recorded trial that is `wanted`: as it is known, or reduced where the trial is returned. What
/// follows from the others is not in it.
pub(crate) fn each<'r>(
    recording: &'r Recording,
    wanted: impl Fn(&'r Trial) -> Option<Result<Outcome, &'r Trial>>,
) -> Vec<Outcome> {
    let flows = by_trial(recording);
    let document = &recording.document;
    let records: BTreeMap<TrialId, &TrialRecord> =
        (recording.trials.iter().map(|record| (record.trial, record))).collect();
    // The plan has them in the order of execution; of numbers, repeats have the last.
    let known = document.plan.trials.iter();
    let known = known.filter_map(|trial| Some((trial, *records.get(&trial.id)?)));
    let outcome = |(trial, record): (&'r Trial, &TrialRecord)| {
        let trial = match wanted(trial)? {
            Ok(known) => return Some(known),
            Err(trial) => trial,
        };
        let flows = flows.get(&record.trial).cloned().unwrap_or_default();
        let readings = Readings::of(recording, record);
        let plans = trial.workload.flows();
        let raw = Raw::new(trial, &plans, flows, readings.host_records(), &readings);
        Some(reduce(&raw, record))
    };
    known.filter_map(outcome).collect()
}

/// Returns `outcomes` with what follows of each from the others.
pub(crate) fn in_order(recording: &Recording, mut outcomes: Vec<Outcome>) -> Vec<Outcome> {
    let document = &recording.document;
    for (place, outcome) in (0..).zip(&mut outcomes) {
        outcome.place = place;
        let mut repeats = document.plan.repeats.iter();
        outcome.is_repeat = repeats.any(|repeat| repeat.trial == outcome.trial);
    }
    for (trial, why) in superseded(recording, &outcomes) {
        let own = outcomes.iter_mut().filter(|own| own.trial == trial);
        own.for_each(|own| own.validity = Validity::Invalid(why.clone()));
    }
    outcomes
}

/// Returns what was recorded of the flows of each trial.
pub(crate) fn by_trial(recording: &Recording) -> BTreeMap<TrialId, Vec<&FlowRecord>> {
    let mut flows: BTreeMap<TrialId, Vec<&FlowRecord>> = BTreeMap::new();
    for flow in &recording.flows {
        flows.entry(flow.trial).or_default().push(flow);
    }
    flows
}

/// Returns the trials that ended well and are not averaged all the same, with the reason: something disturbed
/// them or their numbers spoil them, and a repeat whose own numbers may be averaged stands for them.
fn superseded(recording: &Recording, outcomes: &[Outcome]) -> Vec<(TrialId, Reason)> {
    let ended_well = |trial| recording.record(trial).is_some_and(TrialRecord::is_valid);
    let may_be_averaged = |trial| {
        let mut outcomes = outcomes.iter();
        outcomes.any(|outcome| outcome.trial == trial && outcome.is_valid())
    };
    let mut known: Vec<(TrialId, Reason)> = Vec::new();
    for repeat in &recording.document.plan.repeats {
        let is_known = known.iter().any(|(trial, _)| *trial == repeat.of);
        if !is_known && ended_well(repeat.of) && may_be_averaged(repeat.trial) {
            let reason = Reason::Superseded {
                why: Box::new(repeat.why.clone()),
                by: repeat.trial,
            };
            known.push((repeat.of, reason));
        }
    }
    known
}

/// Returns those that may not be averaged and that no repeat was measured for.
pub fn lacking<'o>(
    recording: &'o Recording,
    outcomes: &'o [Outcome],
) -> impl Iterator<Item = &'o Outcome> {
    let is_measured = |trial| outcomes.iter().any(|outcome| outcome.trial == trial);
    let repeats = &recording.document.plan.repeats;
    outcomes.iter().filter(move |outcome| {
        let mut repeats = repeats.iter();
        let stands_for = |repeat: &Repeat| repeat.of == outcome.trial && is_measured(repeat.trial);
        !outcome.is_valid() && !repeats.any(stands_for)
    })
}

fn reduce(raw: &Raw<'_>, record: &TrialRecord) -> Outcome {
    // Nothing rests on counts that cannot be.
    if let Some(reason) = plausible::impossible(raw) {
        let flags = record.flags.clone();
        return outcome(raw, record, Some(reason), flags, Responses::default());
    }
    let mut flags = record.flags.clone();
    let (level, mut responses) = reduce_flows(raw);
    let refusal = plausible::refusal(raw, record.window(), &responses);
    let spinning = spinning(raw, &responses);
    let disturbances = machine::reduce(raw, &spinning, &mut responses);
    starved::reduce(raw, &spinning, &mut responses);
    exchange::reduce(raw, &mut responses);
    profile::reduce(raw, &mut responses);
    queues::reduce(raw, &mut responses);
    beside::reduce(raw, &mut responses);
    flags.extend(level.flags);
    if responses.value(name::THROUGHPUT).is_some() {
        flags.extend(acknowledged_flag(raw));
    }
    let covered = raw.readings.covered_share();
    let uncovered = covered.filter(|share| *share < WINDOW_COVERED_SHARE_MIN);
    flags.extend(uncovered.map(TrialFlag::Uncovered));
    let saturated = saturation_flag(&spinning, &responses);
    let unshared = level.unshared.filter(|how| {
        let is_unfair = matches!(how, Unshared::Unfair { .. });
        let may_explain = is_unfair && machine::have_several_workers(raw);
        let because = workers_share(saturated.is_some(), &responses).filter(|_| may_explain);
        flags.extend(because.map(|because| TrialFlag::Unshared { how: *how, because }));
        because.is_none()
    });
    flags.extend(saturated);
    flags.extend(disturbances);
    flags.extend(silence::silence(raw));
    flags.extend(damaged::damaged(raw));
    flags.extend(beside::other_traffic(raw));
    let refusal = refusal.or(unshared.map(Reason::Unshared));
    // A rate of none is no number of a path or a host.
    let ended = responses.value(name::TRANSACTIONS);
    let refusal = refusal.or((ended == Some(0.0)).then_some(Reason::NoExchange));
    outcome(raw, record, refusal, flags, responses)
}

/// Returns the outcome of a trial whose numbers are refused for this reason, if they are.
fn outcome(
    raw: &Raw<'_>,
    record: &TrialRecord,
    refusal: Option<Reason>,
    flags: Vec<TrialFlag>,
    responses: Responses,
) -> Outcome {
    let trial = raw.trial;
    let validity = match (&record.validity, refusal) {
        (Validity::Valid, Some(reason)) => Validity::Invalid(reason),
        (validity, _) => validity.clone(),
    };
    Outcome {
        trial: trial.id,
        experiment: trial.experiment.clone(),
        cell: trial.cell.clone(),
        replicate: trial.replicate,
        place: 0,
        is_repeat: false,
        validity,
        flags,
        responses: responses.0,
    }
}

/// Reduces what the flows say.
fn reduce_flows(raw: &Raw<'_>) -> (Judged, Responses) {
    let mut responses = Responses::default();
    let level = flows::reduce(raw, &mut responses);
    evidence::reduce(raw, &mut responses);
    datagrams::reduce(raw, &mut responses);
    (level, responses)
}

/// Returns `workload`, a stream that goes both ways, as that of one of its directions.
pub(crate) fn one_way(workload: &Workload, way: Direction) -> Workload {
    let mut workload = workload.clone();
    let flows = plans_one_way(&workload, way).len();
    workload.connections = u32::try_from(flows).unwrap_or(u32::MAX);
    if let Some((direction, _)) = workload.traffic.stream_mut() {
        *direction = way;
    }
    workload
}

/// Returns the flows of a stream that goes both ways whose payload goes one of them.
fn plans_one_way(workload: &Workload, way: Direction) -> Vec<FlowPlan> {
    let part = match way {
        Direction::FromServer => Part::Receiver,
        Direction::ToServer | Direction::Both => Part::Sender,
    };
    let mut plans = workload.flows();
    plans.retain(|plan| plan.client_part == part);
    plans
}

/// Returns `whole`, the outcome of a stream that goes both ways, as those of each of `ways`: what its flows say is
/// of those alone that go this way, all else of the hosts.
pub(crate) fn outcomes_one_way(
    recording: &Recording,
    whole: &Outcome,
    ways: [Direction; 2],
) -> Option<[Outcome; 2]> {
    let record = recording.record(whole.trial)?;
    let readings = Readings::of(recording, record);
    let raw = Raw::of(recording, record, &readings)?;
    let (_, of_both) = reduce_flows(&raw);
    Some(ways.map(|way| {
        let plans = plans_one_way(&raw.trial.workload, way);
        let mut flows = raw.records.clone();
        flows.retain(|flow| plans.iter().any(|plan| plan.flow == flow.flow));
        let trial = Trial {
            workload: one_way(&raw.trial.workload, way),
            ..raw.trial.clone()
        };
        let (_, of_one) = reduce_flows(&Raw::new(&trial, &plans, flows, raw.hosts, &readings));
        let mut outcome = whole.clone();
        let responses = &mut outcome.responses;
        responses.retain(|name, _| !of_both.0.contains_key(name));
        responses.extend(of_one.0);
        outcome
    }))
}

/// Returns the latencies of all of `records` together.
pub(crate) fn pooled_latency(records: &[&FlowRecord]) -> Histogram {
    pooled(records.iter().filter_map(|record| record.latency.as_ref()))
}

/// Returns how late the requests of all of `records` went, together.
fn pooled_lateness(records: &[&FlowRecord]) -> Histogram {
    pooled(records.iter().filter_map(|record| record.lateness.as_ref()))
}

fn pooled<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut pooled = Histogram::default();
    histograms.for_each(|histogram| pooled.merge(histogram));
    pooled
}

fn acknowledged_flag(raw: &Raw<'_>) -> Option<TrialFlag> {
    let direction = raw.trial.workload.traffic.direction()?;
    let HostProgram::Foreign(program) = server_program(raw.hosts) else {
        return None;
    };
    (direction != Direction::FromServer && raw.instead.is_some()).then(|| TrialFlag::Acknowledged {
        program: program.clone(),
    })
}

/// Returns what of several workers makes the flows of one slower than those of another, if anything does.
fn workers_share(is_saturated: bool, responses: &Responses) -> Option<Because> {
    if is_saturated {
        return Some(Because::Workers);
    }
    let waited = responses.value(name::RUNQUEUE_WAIT_MAX)?;
    (waited >= WAIT_SHARE_MIN).then_some(Because::WaitedForCpu(waited))
}

fn saturation_flag(spinning: &[&HostName], responses: &Responses) -> Option<TrialFlag> {
    let run = responses.value(name::WORKER_BUSY_SHARE_MAX)?;
    let wanted = responses.value(name::WORKER_WANTED_SHARE_MAX);
    let waited = responses.value(name::WORKER_WAITED);
    // The busiest one may be one that spins, of which there is nothing to say.
    let run = match spinning {
        [] => run,
        _ => wanted? - waited?,
    };
    let wanted = wanted.unwrap_or(run);
    if run >= WORKER_SATURATED_SHARE {
        Some(TrialFlag::Saturated(run))
    } else {
        let waited = waited.unwrap_or(wanted - run);
        let ran = wanted - waited;
        (wanted >= WORKER_SATURATED_SHARE || is_starved(waited, ran))
            .then_some(TrialFlag::ShortOfCpu { ran, waited })
    }
}

/// Share of what was asked for from which on it was sent, or came, whole.
pub(crate) const WHOLE_SHARE_MIN: f64 = 0.998;

/// Returns whether datagrams of a rate that was asked for were sent whole: a sender that spins until each is due is busy,
/// and was not short of anything.
pub(crate) fn sends_as_asked(workload: &Workload, values: &impl Values) -> bool {
    let asked = values.value(name::THROUGHPUT_INTENDED);
    workload.manner.transport == Transport::Udp
        && asked.is_some_and(|bps| values.reaches(name::THROUGHPUT_SENT, WHOLE_SHARE_MIN * bps))
}

/// Returns the hosts whose workers spin: what they ran says nothing of what they need.
///
/// 1. Those that only send, and spin before each datagram of a rate that they reach.
/// 2. All of a single request under way, where it was asked for: they spin until a message is there, and do nothing else.
fn spinning<'a>(raw: &Raw<'a>, responses: &Responses) -> Vec<&'a HostName> {
    let (workload, hosts) = (&raw.trial.workload, raw.hosts.iter());
    let manner = &workload.manner;
    let is_single = workload.connections == 1 && manner.in_flight <= 1;
    if workload.traffic.is_transactional() && is_single && manner.wait == WaitBy::Spin {
        return hosts.map(|host| &host.name).collect();
    }
    let senders = match workload.traffic.direction() {
        Some(Direction::ToServer) => HostPart::Client,
        Some(Direction::FromServer) => HostPart::Server,
        Some(Direction::Both) | None => return Vec::new(),
    };
    if !sends_as_asked(workload, responses) {
        return Vec::new();
    }
    let senders = hosts.filter(|host| host.part == senders);
    senders.map(|host| &host.name).collect()
}

/// Share of the time that a worker waited for a CPU from which on that costs a visible part of what it
/// does.
pub(crate) const WAIT_SHARE_MIN: f64 = 0.25;

/// Round trips of a window below which a longer one tells more: a congestion window grows for ten to twenty.
pub(crate) const ROUND_TRIPS_SETTLED: f64 = 30.0;

/// Returns whether a worker was starved of CPU: it waited long, and twice as long as it ran.
pub(crate) fn is_starved(waited: f64, ran: f64) -> bool {
    waited >= WAIT_SHARE_MIN && waited >= 2.0 * ran
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
}
