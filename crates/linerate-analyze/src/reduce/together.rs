//! What a trial of several groups carried, and what that cost its hosts: of all groups together.
//!
//! The CPUs of a host serve all groups, and nothing that is read says which part of their time was whose. So the cost is
//! that of the sum of all payload, and no group has one of its own.

use std::collections::BTreeMap;

use linerate_model::flag::TrialFlag;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::response::name;
use linerate_model::run::{Recording, TrialRecord};
use linerate_model::sample::End;
use linerate_model::workload::FlowPlan;
use linerate_model::{HostName, TrialId};
use serde::Serialize;

use super::exchange::hosts_with_flows;
use super::window::{Change, Readings};
use super::{Raw, Responses, Values, arrived, machine};

/// What is told of the cost.
const COST_OF_ALL: [&str; 15] = [
    name::CPU_COST,
    name::CPU_OTHERS_ALL,
    name::CLIENT_WORKERS,
    name::SERVER_WORKERS,
    name::HOST_SHARE,
    name::CPU_PER_KIB,
    name::CYCLES_PER_BYTE,
    name::CYCLES_PER_PACKET,
    name::GBIT_PER_GHZ,
    name::CYCLES_PER_BYTE_NOMINAL,
    name::CYCLES_PER_PACKET_NOMINAL,
    name::GBIT_PER_GHZ_NOMINAL,
    name::INSTRUCTIONS_PER_CYCLE,
    name::CACHE_MISSES_PER_KIB,
    name::CPU_PER_GBIT,
];

/// A trial of several groups as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Together {
    /// The trial.
    #[serde(skip)]
    pub trial: TrialId,
    /// What arrived of each group, in their order.
    pub groups: Vec<GroupPayload>,
    /// Payload of all groups that arrived in the window; `null` where that of one was not read.
    pub payload_bytes: Option<u64>,
    /// The same per second.
    pub payload_bps: Option<f64>,
    /// What the CPUs of the hosts did, by mode.
    pub hosts: Vec<HostCpus>,
    /// What all of the payload cost the server, in a lab both ends: every response by name.
    pub responses: BTreeMap<String, f64>,
    /// Bytes that waited in the hosts' own queueing disciplines, by host; of those with flows whose were read.
    pub backlog_bytes: BTreeMap<String, f64>,
    /// Who else took the CPUs' time.
    #[schemars(with = "Vec<String>")]
    pub flags: Vec<TrialFlag>,
}

/// What arrived of a group at both ends.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct GroupPayload {
    /// The name of the group.
    pub group: String,
    /// Payload that arrived in the window; of streams what their throughput is of.
    pub payload_bytes: Option<u64>,
    /// The same per second.
    pub payload_bps: Option<f64>,
}

/// What the CPUs of one machine did.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HostCpus {
    /// The hosts that share them.
    pub hosts: Vec<String>,
    /// CPUs busy, in all and by mode.
    pub responses: BTreeMap<String, f64>,
}

/// Returns the trials of `recording` that have several groups and are `valid`, in the order of execution.
pub fn together(recording: &Recording, valid: impl Fn(TrialId) -> bool) -> Vec<Together> {
    let trials = recording.document.plan.trials.iter();
    let several = trials.filter(|trial| !trial.beside.is_empty() && valid(trial.id));
    let of_trial = |trial: &Trial| Some(of_trial(recording, trial, recording.record(trial.id)?));
    several.filter_map(of_trial).collect()
}

fn of_trial(recording: &Recording, trial: &Trial, record: &TrialRecord) -> Together {
    let readings = Readings::of(recording, record);
    let plans = trial.flows();
    let records: Vec<_> = recording.flows_of(trial.id).collect();
    let whole = Raw::new(trial, &plans, records, readings.host_records(), &readings);
    let groups = groups(&whole, &plans);
    let payload_bps = groups.iter().map(|group| group.payload_bps).sum();
    let mut responses = Responses::default();
    // What the cost of a byte is of.
    responses.put(name::THROUGHPUT, payload_bps);
    let flags = machine::reduce(&whole, &[], &mut responses);
    let cost = COST_OF_ALL.iter();
    let cost = cost.filter_map(|name| Some(((*name).to_owned(), responses.value(name)?)));
    let cpus = machine::by_kernel(&whole).into_iter();
    Together {
        trial: trial.id,
        payload_bytes: groups.iter().map(|group| group.payload_bytes).sum(),
        payload_bps,
        groups,
        hosts: cpus
            .map(|(hosts, modes)| HostCpus {
                hosts: hosts.into_iter().map(ToString::to_string).collect(),
                responses: modes
                    .0
                    .into_iter()
                    .map(|(name, it)| (name, it.value))
                    .collect(),
            })
            .collect(),
        responses: cost.collect(),
        backlog_bytes: backlogs(&whole),
        flags,
    }
}

fn backlogs(whole: &Raw<'_>) -> BTreeMap<String, f64> {
    let hosts = hosts_with_flows(whole).into_iter();
    let backlog = |host: &HostName| Some((host.to_string(), whole.qdisc_backlog(&[host])?));
    hosts.filter_map(backlog).collect()
}

fn groups(whole: &Raw<'_>, plans: &[FlowPlan]) -> Vec<GroupPayload> {
    let mut left = plans;
    let groups = whole.trial.group_names().zip(whole.trial.workloads());
    groups
        .map(|(group, workload)| {
            let own;
            (own, left) = left.split_at(workload.flows().len());
            let alone = Trial {
                workload: workload.clone(),
                beside: Vec::new(),
                ..whole.trial.clone()
            };
            let mut records = whole.records.clone();
            records.retain(|record| own.iter().any(|plan| plan.flow == record.flow));
            let raw = Raw::new(&alone, own, records, whole.hosts, whole.readings);
            let arrived = arrived(&raw);
            let arrived = arrived.as_ref();
            GroupPayload {
                group: group.to_owned(),
                payload_bytes: arrived.map(|all| all.iter().map(|it| it.amount as u64).sum()),
                payload_bps: arrived.map(|all| 8.0 * all.iter().map(|it| it.rate()).sum::<f64>()),
            }
        })
        .collect()
}

/// Returns what arrived of each flow of a group; absent where one was not read.
fn arrived(raw: &Raw<'_>) -> Option<Vec<Change>> {
    let traffic = &raw.trial.workload.traffic;
    if !traffic.carries_payload() {
        return Some(Vec::new());
    }
    if traffic.is_stream() {
        let arrivals = arrived::reduce(raw, &mut Responses::default())?;
        let changes = arrivals.changes().into_iter();
        return Some(changes.map(|(_, change)| change).collect());
    }
    let ends = raw
        .lanes
        .iter()
        .flat_map(|lane| End::BOTH.map(|end| (lane, end)));
    ends.map(|(lane, end)| lane.change(end, Metric::AppBytesReceived))
        .collect()
}
