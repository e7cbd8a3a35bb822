//! Launching, sampling, aborting, collecting.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::num::NonZero;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle, available_parallelism};

use linerate_model::datagram::Datagrams;
use linerate_model::manner::{Transport, WaitBy};
use linerate_model::metric::Metric;
use linerate_model::run::FlowOutcome;
use linerate_model::sample::{Sample, Subject, WORKER};
use linerate_model::setting::SettingPool;
use linerate_model::workload::{Part, Setting};

use crate::flow::calls::Callees;
use crate::flow::sampler::{self, SAMPLES_PER_FLOW, Seen, WindowsSeen};
use crate::flow::{self, Flow, Shared};
use crate::measure::clock;
use crate::measure::latency::{LatenciesSeen, LatencyCounts};
use crate::pace::Hold;
use crate::schedule::{Control, Ending, GRACE_NS, Schedule, Unheard};
use crate::sys::clock::now_ns;
use crate::sys::thread;
use crate::worker::EndedFlow;
use crate::worker::deadline::{self, Deadline};
use crate::worker::deal::{FlowKey, deal};
use crate::worker::thread::{Unready, WorkerShare, run_worker};

/// How much of the rate requesters ask for, in percent: by less than all, what has gathered at a responder
/// that was kept waiting drains.
const ASKED_PERCENT: u64 = 99;
/// How much of the rate is taken of a connection, in percent: senders keep their rate in payload and make up
/// for stalls, and whoever keeps to it must not wait.
const TAKEN_PERCENT: u64 = 110;

/// Requesters of one trial that have a latency record each; more share one a worker.
///
/// A record is 110 KiB of address space and 20 to 60 KiB of memory in use: 4 MiB for this many.
const LATENCY_RECORDS_MAX: usize = 64;

/// How flows are spread over threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineConfig {
    /// The most worker threads; there are never more than flows, nor more that spin than CPUs for them:
    /// those of `cpus`, or of this process, half of them where the other end is on this host and may run there too.
    pub workers_max: usize,
    /// Where they run.
    pub cpus: Cpus,
}

/// Where workers run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cpus {
    /// Where the scheduler puts them.
    #[default]
    Any,
    /// Each on one of these, in turn.
    InTurn(Vec<usize>),
    /// All on any of these, as the scheduler deals them.
    Among(Vec<usize>),
}

impl Cpus {
    /// Returns those that worker `at` may use; none leaves it to the scheduler.
    fn of_worker(&self, at: usize) -> &[usize] {
        match self {
            Cpus::InTurn(cpus) if !cpus.is_empty() => {
                let own = at % cpus.len();
                &cpus[own..=own]
            }
            Cpus::Among(cpus) => cpus,
            Cpus::Any | Cpus::InTurn(_) => &[],
        }
    }
}

/// Why flows could not be launched.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There is nothing to do.
    #[error("there are no flows to launch")]
    NoFlows,
    /// There is nobody to do it.
    #[error("flows cannot be launched with workers_max = 0")]
    NoWorkers,
    /// The instants are not in order.
    #[error("the instants are not in order: {0:?}")]
    Schedule(Schedule),
    /// A thread could not be made.
    #[error("cannot make thread {name}")]
    Spawn {
        /// Its name.
        name: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A worker may not run on the CPUs chosen for it.
    #[error("cannot pin {name} to CPU {}", words_of(cpus))]
    Pin {
        /// The worker.
        name: String,
        /// The CPUs chosen for it.
        cpus: Vec<usize>,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A worker could not prepare its sockets or its epoll set.
    #[error("cannot prepare the sockets of {name}")]
    Prepare {
        /// The worker.
        name: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// One end of a flow after its trial.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowResult {
    /// What became of it.
    pub outcome: FlowOutcome,
    /// Messages of a stream that were sent or received whole, in all phases.
    pub messages: u64,
    /// Responses fully received by a requester or fully sent by a responder, in all phases.
    pub transactions: u64,
}

impl Deref for FlowResult {
    type Target = FlowOutcome;

    fn deref(&self) -> &FlowOutcome {
        &self.outcome
    }
}

/// Flows under way.
#[derive(Debug)]
pub struct Running {
    flows: Vec<Arc<Shared>>,
    seen: Vec<Seen>,
    latencies: LatenciesSeen,
    control: Arc<Control>,
    deadline: Option<Deadline>,
    workers: Vec<Worker>,
}

#[derive(Debug)]
struct Worker {
    name: String,
    thread_id: i32,
    thread: JoinHandle<Vec<EndedFlow>>,
    spent: Arc<CpuTimes>,
}

/// CPU time that a worker has used, once it has ended.
#[derive(Debug, Default)]
struct CpuTimes {
    user_ns: AtomicU64,
    system_ns: AtomicU64,
}

/// Starts the workers; they sleep until the start and then run by `schedule`.
///
/// Everything that allocates or can be refused has happened when this returns. A start that is
/// past is now.
pub fn launch(
    flows: Vec<Flow>,
    schedule: Schedule,
    config: &EngineConfig,
) -> Result<Running, LaunchError> {
    launch_beside(flows, schedule, config, 0)
}

/// Does the same beside flows whose `before` workers were started already: the further ones take the numbers and the
/// CPUs that follow theirs.
pub fn launch_beside(
    flows: Vec<Flow>,
    schedule: Schedule,
    config: &EngineConfig,
    before: usize,
) -> Result<Running, LaunchError> {
    if flows.is_empty() {
        return Err(LaunchError::NoFlows);
    }
    if config.workers_max == 0 {
        return Err(LaunchError::NoWorkers);
    }
    if !schedule.is_ordered() {
        return Err(LaunchError::Schedule(schedule));
    }
    let flows: Vec<Arc<Shared>> = flows
        .into_iter()
        .map(|flow| Arc::new(flow.shared))
        .collect();
    let key = |flow: &Arc<Shared>| FlowKey {
        flow: flow.config.flow,
        end: flow.config.end,
        part: flow.config.part,
    };
    let callees = Callees::of(&flows).map(Arc::new);
    let keys: Vec<FlowKey> = flows.iter().map(key).collect();
    let requesters = keys.iter().filter(|key| key.part == Part::Requester);
    let latency_per_flow = requesters.count() <= LATENCY_RECORDS_MAX;
    let spinners_max = cpus_to_spin_on(&flows, config);
    let workers_max = spinners_max.map_or(config.workers_max, |most| most.min(config.workers_max));
    let shares = deal(&keys, workers_max);
    let asked = flows.len().min(config.workers_max);
    let spinners = (shares.len() < asked).then_some((shares.len(), asked));
    let rates = flows.iter().filter_map(|flow| held_rate(flow));
    let rate = rates.reduce(u64::saturating_add);
    let hold = rate.map(|rate| Hold::new(rate, schedule.start_ns));
    let control = Arc::new(Control::new(&schedule, flows.len()).held_by(hold));
    let makes_transactions =
        |share: &Vec<usize>| share.iter().any(|at| keys[*at].part == Part::Requester);
    let latency_counts = shares.iter().map(|share| {
        let counts = makes_transactions(share).then(LatencyCounts::default);
        counts.map(Arc::new)
    });
    let latency_counts: Vec<_> = latency_counts.collect();
    let mut running = Running {
        latencies: LatenciesSeen::new(latency_counts.iter().flatten().cloned().collect()),
        seen: vec![Seen::default(); flows.len()],
        // Before the workers: none may wait without a limit that nobody watches.
        deadline: start_deadline(&control, &flows, &shares)?,
        control,
        workers: Vec::new(),
        flows,
    };
    for (at, (share, latency_counts)) in (before..).zip(shares.into_iter().zip(latency_counts)) {
        let share = WorkerShare {
            flows: share
                .into_iter()
                .map(|index| (index, Arc::clone(&running.flows[index])))
                .collect(),
            control: Arc::clone(&running.control),
            window: schedule.window(),
            cpus: config.cpus.of_worker(at).to_vec(),
            latency_per_flow,
            latency_counts,
            callees: callees.clone(),
            spinners,
        };
        // On an error the workers so far are aborted as `running` is dropped.
        running.workers.push(start(format!("{WORKER}{at}"), share)?);
    }
    Ok(running)
}

/// Returns the rate at which this end holds what a flow exchanges, if it does.
fn held_rate(flow: &Shared) -> Option<u64> {
    let rate = flow.rate_max_bps?;
    match (flow.config.part, flow.config.manner.transport) {
        (Part::Responder, _) => Some(rate),
        (Part::Requester, Transport::Udp) => Some(rate.saturating_mul(ASKED_PERCENT) / 100),
        // What is not read keeps the sender waiting; of datagrams nothing does.
        (Part::Receiver, transport) if transport != Transport::Udp => {
            Some(rate.saturating_mul(TAKEN_PERCENT) / 100)
        }
        _ => None,
    }
}

/// Returns how many workers of `flows` may spin, if they do: two on one CPU wait for each other, a
/// scheduler's slice at a time.
fn cpus_to_spin_on(flows: &[Arc<Shared>], config: &EngineConfig) -> Option<usize> {
    let first = flows.first()?;
    if first.config.manner.wait != WaitBy::Spin {
        return None;
    }
    let ends = if first.is_local() { 2 } else { 1 };
    let cpus = match &config.cpus {
        Cpus::InTurn(cpus) if !cpus.is_empty() => cpus.len(),
        Cpus::Among(cpus) => cpus.len() / ends,
        Cpus::Any | Cpus::InTurn(_) => available_parallelism().map_or(1, NonZero::get) / ends,
    };
    Some(cpus.max(1))
}

fn words_of(cpus: &[usize]) -> String {
    let words: Vec<String> = cpus.iter().map(usize::to_string).collect();
    words.join(", ")
}

/// Starts the thread that ends waits, if a flow is alone on its worker that needs it.
fn start_deadline(
    control: &Arc<Control>,
    flows: &[Arc<Shared>],
    shares: &[Vec<usize>],
) -> Result<Option<Deadline>, LaunchError> {
    let alone = shares.iter().filter_map(|share| match share.as_slice() {
        [one] => Some(&flows[*one]),
        _ => None,
    });
    let watched: Vec<Arc<Shared>> = alone
        .filter(|flow| deadline::watches(&flow.config))
        .cloned()
        .collect();
    if watched.is_empty() {
        return Ok(None);
    }
    let spawned = Deadline::start(control, watched);
    spawned.map(Some).map_err(|source| LaunchError::Spawn {
        name: deadline::NAME.to_owned(),
        source,
    })
}

fn start(name: String, share: WorkerShare) -> Result<Worker, LaunchError> {
    let (ready, word) = sync_channel(1);
    let spent = Arc::new(CpuTimes::default());
    let spends = Arc::clone(&spent);
    let spawned = Builder::new().name(name.clone()).spawn(move || {
        let ended_flows = run_worker(&share, &ready);
        let (user_ns, system_ns) = thread::cpu_times_ns();
        spends.user_ns.store(user_ns, Ordering::Relaxed);
        spends.system_ns.store(system_ns, Ordering::Relaxed);
        ended_flows
    });
    let thread = match spawned {
        Ok(thread) => thread,
        Err(source) => return Err(LaunchError::Spawn { name, source }),
    };
    match word.recv() {
        Ok(Ok(thread_id)) => Ok(Worker {
            name,
            thread_id,
            thread,
            spent,
        }),
        Ok(Err(Unready::Pin(cpus, source))) => Err(LaunchError::Pin { name, cpus, source }),
        Ok(Err(Unready::Prepare(source))) => Err(LaunchError::Prepare { name, source }),
        Err(gone) => Err(LaunchError::Prepare {
            name,
            source: io::Error::other(gone),
        }),
    }
}

impl Running {
    /// Adds a reading of every flow to `out`: our counters and TCP_INFO, each flow with its own
    /// instant.
    ///
    /// Costs 0.6 µs a flow and takes nothing from the workers but the moment in which the
    /// kernel keeps a socket locked to read it.
    pub fn sample(&mut self, out: &mut Vec<Sample>) {
        out.reserve(self.flows.len() * SAMPLES_PER_FLOW);
        for (flow, seen) in self.flows.iter().zip(&mut self.seen) {
            sampler::sample(flow, seen, out);
        }
    }

    /// Does the same, but gives each sample to `take` as it is read: of thousands of flows they
    /// are too many to be kept as they are.
    pub fn sample_each(&mut self, mut take: impl FnMut(Sample)) {
        let mut room = Vec::with_capacity(SAMPLES_PER_FLOW);
        for (flow, seen) in self.flows.iter().zip(&mut self.seen) {
            sampler::sample(flow, seen, &mut room);
            room.drain(..).for_each(&mut take);
        }
    }

    /// Gives `take` how many transactions the workers have recorded so far: all of them, and by latency
    /// where that has grown since the last reading. They are worth a reading in each interval that is shown.
    pub fn sample_latencies(&mut self, mut take: impl FnMut(Sample)) {
        let at_ns = now_ns();
        self.latencies.read(|about, count| {
            take(Sample {
                metric: Metric::AppLatencies,
                subject: Subject::Latency(None, about),
                at_ns,
                value: count.cast_signed(),
            });
        });
    }

    /// Returns the name and kernel id of every worker thread.
    pub fn threads(&self) -> Vec<(String, i32)> {
        self.workers
            .iter()
            .map(|worker| (worker.name.clone(), worker.thread_id))
            .collect()
    }

    /// Returns the CPU time of the workers that have ended, in user and in system mode, in nanoseconds:
    /// nobody else can tell it then.
    pub fn spent_by_ended_ns(&self) -> (u64, u64) {
        let sum = |of: fn(&CpuTimes) -> &AtomicU64| {
            let spent = self.workers.iter().map(|worker| &worker.spent);
            spent.map(|spent| of(spent).load(Ordering::Relaxed)).sum()
        };
        (sum(|spent| &spent.user_ns), sum(|spent| &spent.system_ns))
    }

    /// Returns whether all flows have ended.
    pub fn done(&self) -> bool {
        self.workers
            .iter()
            .all(|worker| worker.thread.is_finished())
    }

    /// Lets the stop of the schedule come now: senders end and say so, receivers go on to the end
    /// of their streams, for the grace time at the most.
    pub fn stop(&self) {
        self.control.stop(now_ns());
        self.deadline.iter().for_each(Deadline::wake);
    }

    /// Ends all flows within about 200 ms, whatever the schedule says.
    pub fn abort(&self) {
        self.control.abort();
        self.deadline.iter().for_each(Deadline::wake);
    }

    /// Waits until all flows have ended and returns their results, in the order launched.
    ///
    /// This is at most the grace time after the stop, see [`crate::grace_ns`].
    pub fn finish(mut self) -> Vec<FlowResult> {
        let mut ended_flows: Vec<Option<EndedFlow>> = vec![None; self.flows.len()];
        for worker in self.workers.drain(..) {
            // A worker that panicked leaves its flows without an end, and they say so.
            for ended in worker.thread.join().unwrap_or_default() {
                let index = ended.index;
                ended_flows[index] = Some(ended);
            }
        }
        if let Some(deadline) = self.deadline.take() {
            deadline.dismiss();
        }
        let mut pool = SettingPool::default();
        let clock = clock::setting();
        forgive_unheard(&self.flows, &mut ended_flows, self.control.stop_ns());
        self.flows
            .iter()
            .zip(&self.seen)
            .zip(ended_flows)
            .map(|((flow, seen), ended)| result(flow, seen.windows, ended, &clock, &mut pool))
            .collect()
    }
}

impl Drop for Running {
    /// Ends what was not finished, without waiting for it.
    fn drop(&mut self) {
        self.abort();
    }
}

/// How long before the stop payload may have come last for a stream that is whole. Flows of a crowded slow
/// line wait a second or two for TCP's timers, and what lies in their buffers takes the line longer than the
/// grace time; the window was over before. Nothing comes for longer where a path has gone.
const SILENT_NS_MAX: u64 = GRACE_NS;

/// Takes streams for whole whose end was not heard, where that says nothing of what was counted.
///
/// 1. A volume is whole once all of it has come, and not before.
/// 2. A timed stream of which something was read after the stop is: the window was over.
/// 3. One of which something came until [`SILENT_NS_MAX`] before the stop is, too, unless more lay in its socket: it
///    waited for TCP's timers. One that left payload lying there was not woken for it, whoever's fault that is.
/// 4. So is one of which nothing came for longer, or ever, where others of the same peer came through: the path is there,
///    and on a crowded one some wait for longer than anybody waits for them.
fn forgive_unheard(flows: &[Arc<Shared>], ended: &mut [Option<EndedFlow>], stop_ns: u64) {
    for (flow, ended) in flows.iter().zip(ended.iter_mut()) {
        let Some(EndedFlow { ending, .. }) = ended else {
            continue;
        };
        if let Ending::Unheard(unheard) = ending
            && is_whole(unheard, volume_left(flow), stop_ns)
        {
            *ending = Ending::Complete;
        }
    }
    let peer = |flow: &Shared| flow.remote.ip().map(|remote| remote.ip());
    let came_through: BTreeSet<IpAddr> = flows
        .iter()
        .zip(ended.iter())
        .filter(|(flow, ended)| {
            let is_whole = |ended: &EndedFlow| ended.ending == Ending::Complete;
            flow.config.part == Part::Receiver && ended.as_ref().is_some_and(is_whole)
        })
        .filter_map(|(flow, _)| peer(flow))
        .collect();
    for (flow, ended) in flows.iter().zip(ended.iter_mut()) {
        let Some(EndedFlow { ending, .. }) = ended else {
            continue;
        };
        let waits = matches!(ending, Ending::Unheard(unheard) if unheard.unread_bytes == 0);
        let is_there = peer(flow).is_some_and(|ip| came_through.contains(&ip));
        if waits && is_there && volume_left(flow).is_none() {
            *ending = Ending::Complete;
        }
    }
}

/// Returns what a receiver lacks of the volume that was asked for, if one was.
fn volume_left(flow: &Shared) -> Option<u64> {
    let received = flow.counters.read().bytes_received;
    let volume = flow.config.manner.bytes_max?;
    Some(volume.0.saturating_sub(received))
}

/// Returns whether a stream was whole until the stop by what is known of it alone.
fn is_whole(unheard: &Unheard, volume_left: Option<u64>, stop_ns: u64) -> bool {
    if let Some(left) = volume_left {
        return left == 0;
    }
    let arrived_ns = unheard.arrived_ns;
    let waited = unheard.unread_bytes == 0 && stop_ns.saturating_sub(arrived_ns) <= SILENT_NS_MAX;
    arrived_ns > 0 && (arrived_ns >= stop_ns || waited)
}

fn result(
    flow: &Shared,
    windows: WindowsSeen,
    ended: Option<EndedFlow>,
    clock: &Setting,
    pool: &mut SettingPool,
) -> FlowResult {
    let counts = flow.counters.read();
    let ended = ended.unwrap_or_else(|| EndedFlow {
        ending: Ending::Early("its worker thread panicked".to_owned()),
        ..EndedFlow::default()
    });
    let mut settings = flow::effective_settings(flow, windows, ended.zero_copy);
    let said = ended.settings.iter();
    settings.extend(said.map(|setting| setting.as_ref().clone()));
    settings.push(clock.clone());
    let mut times = ended.latency;
    let datagrams = flow::datagram::counts(flow).map(|counts| Datagrams {
        departures: times.take_if(|_| flow.config.part == Part::Sender),
        ..counts
    });
    let outcome = FlowOutcome {
        flow: flow.config.flow,
        end: flow.config.end,
        part: flow.config.part,
        local: flow.local.to_string(),
        remote: flow.remote.to_string(),
        cpu: ended.cpu,
        incoming: flow::incoming(flow),
        first_payload_ns: counts.first_payload_ns.map(u64::cast_signed),
        bytes_sent: counts.bytes_sent,
        bytes_received: counts.bytes_received,
        counted_ns: None,
        datagrams: datagrams.map(Box::new),
        settings: pool.share(&settings.into()),
        latency: times,
        lateness: ended.lateness,
        stall_max_ns: ended.stall_max_ns,
        requests: ended.requests,
        connections: ended.connections,
        zero_copy: ended.zero_copy,
        ended_early: match ended.ending {
            Ending::Complete => None,
            Ending::Aborted => Some("aborted".to_owned()),
            Ending::Early(reason) => Some(reason),
            Ending::Unheard(unheard) => Some(unheard.told()),
        },
    };
    FlowResult {
        outcome,
        messages: flow.messages(&counts),
        transactions: counts.transactions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timed_stream_is_whole_that_was_read_until_the_stop() {
        const STOP_NS: u64 = 7_000_000_000;
        let check = |arrived_ns, unread_bytes, expected| {
            let unheard = Unheard {
                arrived_ns,
                unread_bytes,
                ..Unheard::default()
            };
            assert_eq!(is_whole(&unheard, None, STOP_NS), expected, "{unheard:?}");
        };
        // What was on its way.
        check(STOP_NS + 100_000_000, 0, true);
        check(STOP_NS + 100_000_000, 4096, true);
        // A timer's wait.
        check(STOP_NS - 1_600_000_000, 0, true);
        // It was not woken for what came.
        check(STOP_NS - 1_600_000_000, 1, false);
        // The path went.
        check(STOP_NS - 2_100_000_000, 0, false);
        check(0, 0, false);
    }

    #[test]
    fn a_volume_is_whole_once_all_of_it_has_come() {
        let unheard = Unheard {
            arrived_ns: 7_100_000_000,
            ..Unheard::default()
        };
        let whole = |left| is_whole(&unheard, Some(left), 7_000_000_000);
        assert_eq!([0, 1, 2_000_000].map(whole), [true, false, false]);
    }
}
