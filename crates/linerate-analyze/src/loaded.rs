//! Latency under load: a probe alone, and beside bulk in each direction.
//!
//! The probe waits where bulk waits, so its latency beside bulk less that alone is time in a queue – if bulk's own TCP
//! sees the same wait. A scheduler makes both wait as well: what is no longer than it may take is nobody's queue.

use linerate_model::finding::{Trust, TrustLevel};
use linerate_model::run::{HostPart, HostRecord, Recording, TrialRecord};
use linerate_model::unit::Unit;
use linerate_model::workload::{Direction, Workload};
use serde::Serialize;

use crate::compare::interval::mean;
use crate::condition::Judged;
use crate::groups::{self, View};
use crate::reduce::{self, Outcome, SCHEDULER_NS_MAX, Together, name};
use crate::single::{self, Shown};
use crate::words;

/// This document, and the number of its shape.
pub const LOADED_SCHEMA: (&str, u32) = ("linerate.loaded", 1);

/// Part of the probe's wait that bulk's own TCP must see for it to be the queue that bulk fills.
const SAME_QUEUE_SHARE_MIN: f64 = 0.5;

/// Latency alone and under load.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Loaded {
    /// Always `linerate.loaded`.
    pub schema: &'static str,
    /// The number of `LOADED_SCHEMA`.
    pub schema_version: u32,
    /// Version of the program.
    pub linerate_version: String,
    /// The run.
    pub run: String,
    /// Start, UTC, RFC 3339.
    pub started_utc: String,
    /// The probe.
    pub probe: Workload,
    /// Its latency alone.
    pub idle: Latencies,
    /// The same beside bulk, in each direction.
    pub loaded: Vec<Beside>,
    /// How far the numbers may be relied on: as far as the worst of them.
    pub trust: TrustLevel,
    /// Why, where that is not far.
    pub reasons: Vec<String>,
    /// What became of each `--fail-if`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Judged>,
}

impl Loaded {
    /// Whether nothing at all was measured.
    pub fn is_empty(&self) -> bool {
        let beside = self.loaded.iter().map(|one| &one.latency);
        std::iter::once(&self.idle)
            .chain(beside)
            .all(|latencies| latencies.p50_ns.is_none())
    }
}

/// Latencies of the probe, of several runs their means.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Latencies {
    /// The mean: few that wait long show in it, and not in the median.
    pub mean_ns: Option<f64>,
    /// The median.
    pub p50_ns: Option<f64>,
    /// The 99th percentile.
    pub p99_ns: Option<f64>,
    /// Transactions per second.
    pub transactions_per_s: Option<f64>,
    /// Round trips per minute: a minute over their mean without the longest 5 %.
    pub round_trips_per_minute: Option<f64>,
    /// Why there are none, if a trial was not valid.
    pub invalid: Option<String>,
}

/// The probe beside bulk.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Beside {
    /// The experiment: `to-server`, `from-server`.
    pub name: String,
    /// The bulk.
    pub bulk: Workload,
    /// What the probe waited.
    pub latency: Latencies,
    /// Its mean over that alone.
    pub ratio_mean: Option<f64>,
    /// Its median over that alone.
    pub ratio_p50: Option<f64>,
    /// Its 99th percentile over that alone.
    pub ratio_p99: Option<f64>,
    /// Payload of the bulk that arrived.
    pub throughput_bps: Option<f64>,
    /// What probe and bulk carried and cost together, trial by trial.
    pub together: Vec<Together>,
    /// How much longer the median was than alone.
    pub waited_ns: Option<f64>,
    /// How much longer bulk's own smoothed round trip was than its shortest.
    pub bulk_waited_ns: Option<f64>,
    /// Whether bulk fills the queue that the probe waited in; absent where that cannot be told.
    pub fills_queue: Option<bool>,
    /// The queue that bulk fills, where it fills one.
    pub queue: Option<FullQueue>,
}

/// A queue that bulk keeps full, so that everything else waits in it: bufferbloat.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FullQueue {
    /// How long the median probe waits in it.
    pub wait_ns: f64,
    /// Payload that waits: what bulk carried in that time.
    pub bytes: f64,
    /// Where it is.
    pub place: QueuePlace,
}

/// Where a queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueuePlace {
    /// In the queueing discipline of the host that sends bulk.
    SendingHost,
    /// Behind that of the sending host: at a device of the path, or where a busy CPU takes packets late.
    Path,
    /// The queueing disciplines of the sending host were not read.
    NotRead,
}

impl FullQueue {
    /// Returns the queue in which `waited_ns` passes while bulk carries `bulk_bps`; `backlog_bytes` wait in the sending
    /// host's own.
    pub(crate) fn of(waited_ns: f64, bulk_bps: f64, backlog_bytes: Option<f64>) -> Self {
        let bytes = waited_ns * bulk_bps / 8e9;
        Self {
            wait_ns: waited_ns,
            bytes,
            place: match backlog_bytes {
                None => QueuePlace::NotRead,
                Some(own) if own >= SAME_QUEUE_SHARE_MIN * bytes => QueuePlace::SendingHost,
                Some(_) => QueuePlace::Path,
            },
        }
    }

    /// Says how much waits where.
    pub fn words(&self) -> String {
        let place = match self.place {
            QueuePlace::SendingHost => "in the qdisc of the host that sends",
            QueuePlace::Path => "behind that of the host that sends, which holds less",
            QueuePlace::NotRead => "in a queue that was not read",
        };
        format!(
            "bulk keeps {} waiting, {} of the path, {place}",
            words::number(Unit::Bytes, self.bytes),
            words::number(Unit::Nanoseconds, self.wait_ns),
        )
    }
}

/// Returns what waited in the queueing disciplines of the hosts that send bulk, the mean of trials.
pub(crate) fn backlog(trials: &[&Together], senders: &[String]) -> Option<f64> {
    let of_trial = |one: &&Together| {
        let read = senders
            .iter()
            .map(|host| one.backlog_bytes.get(host).copied());
        read.sum::<Option<f64>>()
    };
    let read: Option<Vec<f64>> = trials.iter().map(of_trial).collect();
    let read = read.filter(|read| !read.is_empty() && !senders.is_empty())?;
    Some(mean(&read))
}

/// Returns the hosts that send bulk of `workload`: the server, or its clients.
pub(crate) fn senders(hosts: &[HostRecord], workload: &Workload) -> Vec<String> {
    let is_sender = |host: &&HostRecord| match workload.traffic.direction() {
        Some(Direction::FromServer) => host.part == HostPart::Server,
        _ => host.part == HostPart::Client,
    };
    let all = hosts
        .iter()
        .filter(is_sender)
        .map(|host| host.name.to_string());
    match workload.traffic.direction() {
        Some(Direction::FromServer) => all.collect(),
        _ => all.take(workload.clients_needed() as usize).collect(),
    }
}

/// Returns what a recording of the plan of `linerate run --loaded` shows.
pub fn loaded(recording: &Recording) -> Option<Loaded> {
    if !groups::is_loaded(&recording.document.plan) {
        return None;
    }
    let views = groups::views(recording);
    let [probe, bulk] = views.as_slice() else {
        return None;
    };
    let document = &recording.document;
    let mut experiments = probe.recording.document.plan.experiments.iter();
    let alone = experiments.next()?;
    let (of_probe, of_bulk) = (outcomes(probe), outcomes(bulk));
    let idle = latencies(&of_probe, &alone.name);
    let is_valid = |id| {
        let both = of_probe.iter().chain(&of_bulk);
        both.filter(|it| it.trial == id).all(Outcome::is_valid)
    };
    let together = reduce::together(recording, is_valid);
    let loaded = experiments.filter_map(|experiment| {
        let bulk = &experiment.beside.first()?.workload;
        let latency = latencies(&of_probe, &experiment.name);
        let of_bulk = of_experiment(&of_bulk, &format!("{}-{}", experiment.name, views[1].name));
        let throughput_bps = average(&of_bulk, name::THROUGHPUT);
        let smoothed = average(&of_bulk, name::TCP_RTT);
        let shortest = average(&of_bulk, name::TCP_MIN_RTT);
        let waited_ns = difference(latency.p50_ns, idle.p50_ns);
        let bulk_waited_ns = difference(smoothed, shortest);
        let together = of_plan(recording, &together, &experiment.name);
        let fills_queue = fills_queue(waited_ns, bulk_waited_ns);
        let queue = fills_queue.filter(|fills| *fills).and_then(|_| {
            let senders = senders(&document.hosts, bulk);
            let backlog = backlog(&together.iter().collect::<Vec<_>>(), &senders);
            Some(FullQueue::of(waited_ns?, throughput_bps?, backlog))
        });
        Some(Beside {
            name: experiment.name.clone(),
            bulk: bulk.clone(),
            ratio_mean: ratio(latency.mean_ns, idle.mean_ns),
            ratio_p50: ratio(latency.p50_ns, idle.p50_ns),
            ratio_p99: ratio(latency.p99_ns, idle.p99_ns),
            latency,
            throughput_bps,
            fills_queue,
            queue,
            together,
            waited_ns,
            bulk_waited_ns,
        })
    });
    let loaded: Vec<Beside> = loaded.collect();
    let told = std::iter::once(&idle).chain(loaded.iter().map(|one| &one.latency));
    let titled = document.plan.experiments.iter().zip(told);
    let without = titled.filter(|(_, latencies)| latencies.p50_ns.is_none());
    let without: Vec<&str> = without.map(|(one, _)| &*one.title).collect();
    let (trust, reasons) = trust(&views, &without);
    Some(Loaded {
        schema: LOADED_SCHEMA.0,
        schema_version: LOADED_SCHEMA.1,
        linerate_version: document.version.clone(),
        run: document.run.0.clone(),
        started_utc: document.started_utc.clone(),
        probe: alone.workload.clone(),
        loaded,
        idle,
        trust,
        reasons,
        conditions: Vec::new(),
    })
}

/// Returns whether the probe waited in a queue that bulk fills; absent where the wait may be the scheduler's.
pub(crate) fn fills_queue(waited_ns: Option<f64>, bulk_waited_ns: Option<f64>) -> Option<bool> {
    let (waited, bulk) = (waited_ns?, bulk_waited_ns?);
    if waited <= SCHEDULER_NS_MAX {
        return None;
    }
    Some(bulk > SCHEDULER_NS_MAX && bulk >= SAME_QUEUE_SHARE_MIN * waited)
}

fn outcomes(view: &View) -> Vec<Outcome> {
    reduce::outcomes(&view.recording)
}

fn of_experiment<'o>(outcomes: &'o [Outcome], experiment: &str) -> Vec<&'o Outcome> {
    let own = outcomes.iter();
    own.filter(|outcome| outcome.experiment == experiment)
        .collect()
}

fn of_plan(recording: &Recording, together: &[Together], experiment: &str) -> Vec<Together> {
    let is_own = |one: &&Together| {
        let trial = recording.document.plan.trial(one.trial);
        trial.is_some_and(|trial| trial.experiment == experiment)
    };
    together.iter().filter(is_own).cloned().collect()
}

/// Returns the mean of a response over valid trials, if each of them has it.
fn average(outcomes: &[&Outcome], response: &str) -> Option<f64> {
    let valid = outcomes.iter().filter(|outcome| outcome.is_valid());
    let values: Option<Vec<f64>> = valid.map(|outcome| outcome.value(response)).collect();
    let values = values.filter(|values| !values.is_empty())?;
    Some(mean(&values))
}

fn latencies(outcomes: &[Outcome], experiment: &str) -> Latencies {
    let own = of_experiment(outcomes, experiment);
    let invalid = own.iter().find_map(|outcome| outcome.validity.reason());
    Latencies {
        mean_ns: average(&own, name::RTT_MEAN),
        p50_ns: average(&own, name::RTT_P50),
        p99_ns: average(&own, name::RTT_P99),
        transactions_per_s: average(&own, name::TRANSACTIONS),
        round_trips_per_minute: average(&own, name::RESPONSIVENESS),
        invalid: invalid.map(ToString::to_string),
    }
}

fn ratio(loaded: Option<f64>, idle: Option<f64>) -> Option<f64> {
    let (loaded, idle) = (loaded?, idle.filter(|idle| *idle > 0.0)?);
    Some(loaded / idle)
}

fn difference(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? - other?)
}

/// Returns how far the worst of all measurements may be relied on, and why; `without` are the titles of those that have no
/// latency.
fn trust(views: &[View], without: &[&str]) -> (TrustLevel, Vec<String>) {
    let shown = Shown::RESULT_ALONE;
    let mut trust = Trust {
        level: TrustLevel::Good,
        reasons: Vec::new(),
    };
    if !without.is_empty() {
        trust = trust.and(Trust {
            level: TrustLevel::DoNotUse,
            reasons: vec![format!("not measured: {}", without.join(", "))],
        });
    }
    for view in views {
        for experiment in &view.recording.document.plan.experiments {
            let mut own = view.recording.document.clone();
            own.plan
                .experiments
                .retain(|one| one.name == experiment.name);
            own.plan
                .trials
                .retain(|one| one.experiment == experiment.name);
            let is_own = |trial| own.plan.trial(trial).is_some();
            let trials = view.recording.trials.iter();
            let trials: Vec<_> = trials
                .filter(|record| is_own(record.trial))
                .cloned()
                .collect();
            // What is missing is named above.
            own.cut_short = None;
            if !trials.iter().any(TrialRecord::is_valid) {
                continue;
            }
            let one = Recording {
                trials,
                document: own,
                ..view.recording.clone()
            };
            trust = trust.and(single::single(&one, shown).trust);
        }
    }
    (trust.level, trust.reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_bulks_where_both_wait_in_it_longer_than_a_scheduler_takes() {
        let check = |waited, bulk, expected| assert_eq!(fills_queue(waited, bulk), expected);
        check(Some(10e6), Some(9e6), Some(true));
        // Bulk itself waits for nothing: the probe does elsewhere.
        check(Some(10e6), Some(1e6), Some(false));
        // A scheduler may take as long.
        check(Some(0.1e6), Some(9e6), None);
        check(None, Some(9e6), None);
        check(Some(10e6), None, None);
    }
}
