//! What is refused: what no honest controller sends, and what a caller without the token may not.

use std::path::Path;
use std::time::{Duration, Instant};

use linerate_engine as engine;
use linerate_engine::{ConnectError, Flow, FlowConfig};
use linerate_model::experiment::{Factor, Level};
use linerate_model::group::GROUPS_MAX;
use linerate_model::manner::{Transport, WaitBy};
use linerate_model::reason::with_causes;
use linerate_model::run::Admission;
use linerate_model::sample::End;
use linerate_model::workload::{FLOWS_MAX, Part, Traffic, Workload, check_flow};
use linerate_model::{BitsPerSec, Nanos};
use linerate_tune::Target;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use super::flows::flow_config;
use super::{Caller, Core, END_WAIT_MAX, capture};
use crate::access::Scope;
use crate::api::{
    Assignment, Changes, Placement, Refusal, RefusalCode, SAMPLE_INTERVAL_MAX, refuse,
};
use crate::limits::{Counts, Exceeded, Grant, Means, Most, Source, TOKEN_MEMORY_PART, Whose};
use crate::session::leases::{GUESTS_MAX, IDLE_NS};
use crate::sync::lock;

/// Shortest time between samples that may be asked for.
const SAMPLE_INTERVAL_NS_MIN: u64 = 1_000_000;
/// Trials of one run of a guest that may be under way at the same time; an honest controller has one.
const TRIALS_UNDER_WAY_MAX: usize = 4;
/// The same of a run with the token: a host of a fleet has one with each other, to it and from it, where all go on at once.
const TRIALS_UNDER_WAY_MAX_OF_HOLDERS: usize = 64;
/// Longest reason for a placement: it becomes a setting of every flow.
const WHY_CHARS_MAX: usize = 200;
/// Longest address or name of a device, with a port: a name of DNS has 253 characters.
const NAME_CHARS_MAX: usize = 300;
/// Longest trial that anyone may ask for: a day.
const TRIAL_NS_MAX: u64 = 86_400_000_000_000;

/// Open files that a place of connections may have: a socket of its own, and four connections at once, of
/// which an honest caller has one.
const FILES_OF_PLACE: usize = 5;
/// Memory of a host that does not tell: as much as the smallest that are rented.
const MEMORY_BYTES: u64 = 1 << 30;

/// Memory that the samples of one trial may take.
const RECORD_BYTES_MAX: u64 = 64 << 20;
/// The same of a guest's, of whom many may be there: a controller fetches them every 250 ms.
const GUEST_RECORD_BYTES_MAX: u64 = 8 << 20;
/// What part of a token's memory samples may take.
const RECORD_PART: u64 = 4;

/// How often a claim looks whether what is about to be given back is there.
const GIVE_BACK_LOOK: Duration = Duration::from_millis(5);

/// Open files that a trial needs beside its flows: observers, workers' epoll sets, control
/// connections.
const FILES_SPARE: usize = 64;

impl Core {
    /// Forgets the trials of a run that are over, since their controller has gone on, and refuses
    /// more than an honest one has.
    pub(super) fn make_room(&self, lease: &str) -> Result<(), Refusal> {
        let most = if self.is_guests(lease) {
            TRIALS_UNDER_WAY_MAX
        } else {
            TRIALS_UNDER_WAY_MAX_OF_HOLDERS
        };
        let mut trials = lock(&self.trials);
        trials.retain(|key, slot| key.0 != lease || !slot.is_over());
        let under_way = trials.keys().filter(|key| key.0 == lease).count();
        if under_way >= most {
            let error = format!("the run has {under_way} trials in progress already");
            return Err(refuse(RefusalCode::Busy, error));
        }
        Ok(())
    }

    /// Claims what a trial takes of what its caller may have; who is trusted with everything claims nothing.
    pub(super) fn claim(
        &self,
        caller: &Caller,
        from: Option<Source>,
        assignment: &Assignment,
    ) -> Result<Option<Grant>, Refusal> {
        let who = match (caller, from) {
            (Caller::Stranger(_), Some(from)) => Whose::Network(from),
            (Caller::Holder { name, .. }, _) => Whose::Token(name.clone()),
            (Caller::Stranger(_), None) | (Caller::Trusted, _) => return Ok(None),
        };
        let groups = assignment.of_groups();
        let flows = assignment.all_flows().count();
        // Of all groups the most that one asks for.
        let files = if groups.iter().any(|group| group.traffic.is_placed()) {
            FILES_OF_PLACE
        } else {
            1
        };
        // One group without a rate may take all there is.
        let asked: Option<f64> = groups.iter().map(rate_asked).sum();
        let asked = asked.map(BitsPerSec);
        let counts = Counts::of_trial(flows, files);
        let memory_bytes = match caller {
            Caller::Stranger(_) => {
                buffer_bytes(assignment, workers_of_guest(assignment.workers_max))
            }
            Caller::Holder { .. } | Caller::Trusted => {
                let workers = assignment.workers_max.unwrap_or(cpus_online() as u32);
                let buffers = buffer_bytes(assignment, workers);
                let capture = assignment.probes.capture.map_or(0, capture::memory_bytes);
                buffers
                    .saturating_add(capture)
                    .saturating_add(record_bytes_max(caller))
            }
        };
        let counts = counts.with_memory(memory_bytes);
        self.claim_patiently(&who, counts, asked)
            .map(Some)
            .map_err(|exceeded| Refusal {
                next: Some(exceeded.next()),
                ..refuse(exceeded.code(), exceeded)
            })
    }

    /// Claims `counts` and a rate for a trial from there, and waits for what trials that have ended are about to
    /// give back; for threads that may block.
    fn claim_patiently(
        &self,
        who: &Whose,
        counts: Counts,
        rate_asked: Option<BitsPerSec>,
    ) -> Result<Grant, Exceeded> {
        let until = Instant::now() + END_WAIT_MAX;
        loop {
            // Asked before the claim: what is given back between the two is there for the next try.
            let may_pass = self.totals.is_ending() && Instant::now() < until;
            // Of a rate there may be some already, and more in a moment.
            if !(may_pass && self.config.limits.rate.is_some()) {
                match self.claim_of(who.clone(), counts, rate_asked) {
                    Err(exceeded) if may_pass && exceeded.ends_with_others() => {}
                    claimed => return claimed,
                }
            }
            std::thread::sleep(GIVE_BACK_LOOK);
        }
    }

    /// Claims `counts` and a rate for a trial from there.
    pub(crate) fn claim_of(
        &self,
        who: Whose,
        counts: Counts,
        rate_asked: Option<BitsPerSec>,
    ) -> Result<Grant, Exceeded> {
        let limits = &self.config.limits;
        let most = Most::of(Means {
            runs: limits.runs.unwrap_or(GUESTS_MAX).min(GUESTS_MAX),
            flows: limits.flows.unwrap_or(u32::MAX),
            files: open_files_max().map_or(u32::MAX, |most| most as u32),
            memory_bytes: memory_bytes(),
            rate: limits.rate,
        });
        self.totals
            .claim(engine::now_ns(), who, counts, rate_asked, &most)
    }

    /// Refuses changes of a host that is not a lab's, and those of whoever may not.
    ///
    /// 1. Only the host of a lab is changed: one whose agent the lab started, in a network namespace that is not
    ///    the machine's first. On any other the change would outlive this process if that were killed.
    /// 2. Only a run that has the host to itself changes it, and never a caller without a token.
    pub(super) fn check_changes(
        &self,
        caller: &Caller,
        lease: &str,
        changes: Option<&Changes>,
    ) -> Result<(), Refusal> {
        let Some(changes) = changes else {
            return Ok(());
        };
        let names: Vec<_> = changes.levels.keys().map(|factor| factor.name()).collect();
        let names = names.join(", ");
        if !self.config.lab || !linerate_tune::is_own_network(Path::new("/")) {
            let error = format!("{names}: this is host-wide, and only hosts of a lab are changed");
            let next = "vary it with --lab; on this host, set it by hand and measure each level";
            return Err(Refusal {
                next: Some(next.to_owned()),
                ..refuse(RefusalCode::Limited, error)
            });
        }
        if caller.is_stranger() {
            let error = format!("{names}: this is host-wide, and not for callers without a token");
            return Err(refuse(RefusalCode::Unauthorized, error));
        }
        let leases = lock(&self.leases);
        let admission = leases.find(lease).map(|lease| lease.asked.admission);
        if !matches!(admission, Some(Admission::Exclusive | Admission::Queued)) {
            let error = format!("{names}: this is host-wide, and the run shares the host");
            return Err(refuse(RefusalCode::Limited, error));
        }
        Ok(())
    }

    /// Refuses what no honest controller sends, and what the limits forbid this caller.
    pub(super) fn check_assignment(
        &self,
        caller: &Caller,
        from: Option<Source>,
        assignment: &Assignment,
    ) -> Result<(), Refusal> {
        let bad = |error: String| Err(refuse(RefusalCode::BadRequest, error));
        let flows = assignment.all_flows().count();
        if 1 + assignment.beside.len() > GROUPS_MAX {
            let groups = 1 + assignment.beside.len();
            return bad(format!("{groups} groups, but {GROUPS_MAX} is the most"));
        }
        let groups = assignment.of_groups();
        if flows == 0 || flows > FLOWS_MAX as usize {
            return bad(format!("{flows} flows, but must be 1 to {FLOWS_MAX}"));
        }
        let (interval, length) = (assignment.sample_interval, assignment.length);
        if interval.0 < SAMPLE_INTERVAL_NS_MIN {
            return bad(format!("a sample every {interval}, but 1 ms is the least"));
        }
        if interval > SAMPLE_INTERVAL_MAX {
            return bad(format!("a sample every {interval}, but 10 s is the most"));
        }
        check_cpus(&assignment.cpus)?;
        if let Placement::Chosen { why } = &assignment.placement
            && why.chars().count() > WHY_CHARS_MAX
        {
            return bad(format!(
                "why CPUs were chosen is longer than {WHY_CHARS_MAX} characters"
            ));
        }
        let device = assignment.capture_at.as_ref().map(|at| &at.device);
        let named = [assignment.peer.as_ref(), assignment.bind.as_ref(), device];
        if named
            .into_iter()
            .flatten()
            .any(|name| name.len() > NAME_CHARS_MAX)
        {
            return bad(format!(
                "an address or a device of more than {NAME_CHARS_MAX} characters"
            ));
        }
        if let Some(Err(error)) = assignment.probes.capture.map(|options| options.check()) {
            return bad(format!("the capture: {error}"));
        }
        let placed = groups.iter().filter(|group| group.traffic.is_placed());
        if groups.len() > 1 && placed.clone().count() > 1 {
            return bad("two groups that make connections one after another".to_owned());
        }
        let places = placed.map(|group| group.flows.len()).sum();
        check_files(flows, places)?;
        if length.0 > TRIAL_NS_MAX {
            return bad(format!("a trial of {length}, but a day is the most"));
        }
        // How many flows there are of each direction is the plan's business.
        for group in &groups {
            check_flow(&group.traffic, &group.options, &group.manner)
                .map_err(|error| refuse(RefusalCode::BadRequest, error))?;
            let manner = &group.manner;
            check_cpu_count(manner.cpus)?;
            let is_alone = manner.bytes_max.is_some() || manner.transport == Transport::Unix;
            if groups.len() > 1 && is_alone {
                return bad("a volume, or Unix sockets, in a trial of several groups".to_owned());
            }
        }
        // A name on this host is of no use to anyone else, whatever token they hold.
        if assignment.manner.transport == Transport::Unix
            && from.is_some_and(|from| !from.is_loopback())
        {
            return bad("Unix sockets are for callers on the agent's own host".to_owned());
        }
        // Otherwise anyone could make this host send to anyone.
        if caller.is_stranger() && assignment.end == End::Client {
            let error = "connecting to other hosts needs the agent's token";
            return Err(refuse(RefusalCode::Unauthorized, error));
        }
        // Frames go past this host's own rules: its netfilter, its routing, its queues.
        let is_past_sockets = groups.iter().any(|group| {
            let mut parts = group.flows.iter().map(|flow| flow.part);
            group.manner.wait == WaitBy::Xdp && parts.any(|part| part == Part::Sender)
        });
        if is_past_sockets && let Err(refusal) = caller.check(Scope::Admin) {
            let error = "sending by AF_XDP (xdp) needs the agent's token";
            return Err(if caller.is_stranger() {
                refuse(RefusalCode::Unauthorized, error)
            } else {
                refusal
            });
        }
        if !caller.is_stranger() {
            return Ok(());
        }
        let limits = &self.config.limits;
        let limited = |error: String| Err(refuse(RefusalCode::Limited, error));
        if let Some(most) = limits.flows.filter(|most| flows > *most as usize) {
            return limited(format!(
                "{flows} flows, but this agent allows {most} without a token (--limit-flows)"
            ));
        }
        if let Some(most) = limits.trial.filter(|most| length > *most) {
            return limited(format!(
                "a trial of {length}, but this agent allows {most} without a token (--limit-time)"
            ));
        }
        // A host without traffic is nobody's, whether between trials or in one.
        let is_idle = groups.iter().all(|group| group.traffic == Traffic::Idle);
        if is_idle && length.0 > IDLE_NS {
            let most = Nanos(IDLE_NS);
            return limited(format!(
                "a trial without traffic of {length}, but {most} is the most without a token"
            ));
        }
        Ok(())
    }

    /// Returns what of the warm-up that a long path may add the limits leave.
    pub(super) fn warm_up_more(&self, caller: &Caller, assignment: &Assignment) -> Nanos {
        let own = self.config.limits.trial.filter(|_| caller.is_stranger());
        let most = own.map_or(TRIAL_NS_MAX, |most| most.0.min(TRIAL_NS_MAX));
        let spare = most.saturating_sub(assignment.length.0);
        Nanos(assignment.warm_up_more.0.min(spare))
    }
}

/// Returns the rate that the flows of one group ask for together, if they ask for one.
fn rate_asked(group: &Assignment) -> Option<f64> {
    let each = group.flow_rate_max.map(|rate| rate.0);
    let own = group.manner.rate_bps.map(|rate| rate as f64);
    let least = each.into_iter().chain(own).reduce(f64::min)?;
    Some(least * group.flows.len() as f64)
}

/// Returns how many CPUs this process may run on.
pub(crate) fn cpus_online() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Returns how many workers a guest's trial has: a worker for each CPU drives any number of flows.
pub(crate) fn workers_of_guest(asked: Option<u32>) -> u32 {
    let cpus = cpus_online() as u32;
    asked.map_or(cpus, |asked| asked.min(cpus))
}

fn memory_bytes() -> u64 {
    let memory = linerate_observe::memory_bytes(std::path::Path::new("/proc"));
    memory.unwrap_or(MEMORY_BYTES)
}

/// Returns the memory that the samples of one trial may take; later ones are dropped and the trial says so.
pub(super) fn record_bytes_max(caller: &Caller) -> u64 {
    match caller {
        Caller::Trusted => RECORD_BYTES_MAX,
        // Of a small host a part, so that there is something for buffers.
        Caller::Holder { .. } => {
            RECORD_BYTES_MAX.min(memory_bytes() / TOKEN_MEMORY_PART / RECORD_PART)
        }
        Caller::Stranger(_) => GUEST_RECORD_BYTES_MAX,
    }
}

/// Returns the bytes of buffers that so many workers of each group of a trial take.
fn buffer_bytes(assignment: &Assignment, workers: u32) -> u64 {
    let groups = assignment.of_groups();
    let workers = workers_of_group(workers as usize, groups.len());
    let each = groups
        .iter()
        .map(|group| group_buffer_bytes(group, workers));
    each.fold(0, u64::saturating_add)
}

/// Returns how many of a host's `workers` each of so many groups has: those of one group never work for another.
pub(super) fn workers_of_group(workers: usize, groups: usize) -> usize {
    (workers / groups.max(1)).max(1)
}

/// The same of one group: each worker has flows of every part.
fn group_buffer_bytes(assignment: &Assignment, workers: usize) -> u64 {
    let parts = [
        Part::Sender,
        Part::Receiver,
        Part::Requester,
        Part::Responder,
    ];
    let first = |part| assignment.flows.iter().find(|flow| flow.part == part);
    let firsts = parts.into_iter().filter_map(first);
    let configs = firsts.map(|plan| flow_config(assignment, plan.flow, plan.part));
    buffers_of(configs, assignment.flows.len(), workers)
}

/// Returns the bytes of buffers of up to `workers` workers that share so many `flows`, which are like one
/// or the other of `configs`.
pub(crate) fn buffers_of(
    configs: impl Iterator<Item = FlowConfig>,
    flows: usize,
    workers: usize,
) -> u64 {
    let workers = workers.min(flows).max(1);
    let of_worker = |config| engine::worker_bytes(&config, flows.div_ceil(workers)) as u64;
    let each = configs.map(of_worker).fold(0, u64::saturating_add);
    each.saturating_mul(workers as u64)
}

/// What this process lacks for a client's part, each with what says so.
#[derive(Debug, thiserror::Error)]
pub enum Lacking {
    /// A CPU on which it may run.
    #[error("{0}")]
    Cpu(String),
    /// As many CPUs as its workers are to be confined to.
    #[error("{0}")]
    Cpus(String),
    /// Open files.
    #[error("{0}")]
    Files(String),
    /// The congestion control algorithm.
    #[error("{0}")]
    Congestion(String),
    /// Another option of a socket.
    #[error("{0}")]
    Option(String),
}

/// Tells whether `device`, in the network of the calling thread, which a lab made, takes a level of a knob, by setting
/// it and putting it back; says why not.
pub fn try_out(device: &str, factor: Factor, level: &Level) -> Result<(), String> {
    let root = Path::new("/");
    if !linerate_tune::is_own_network(root) {
        return Err("only hosts of a lab are changed".to_owned());
    }
    let host = Target {
        root,
        device: Some(device),
        cpus: &[],
    };
    linerate_tune::try_out(&host, factor, level).map_err(|error| with_causes(&error))
}

/// Tells whether this process can do a client's part of `workload` with workers on `cpus`; who runs
/// the trial as well asks before there is one.
pub fn check_here(workload: &Workload, cpus: &[u32]) -> Result<(), Lacking> {
    check_cpus(cpus).map_err(|refusal| Lacking::Cpu(refusal.error))?;
    check_cpu_count(workload.manner.cpus).map_err(|refusal| Lacking::Cpus(refusal.error))?;
    let flows = workload.connections as usize;
    let places = if workload.traffic.is_placed() {
        flows
    } else {
        0
    };
    check_files(flows, places).map_err(|refusal| Lacking::Files(refusal.error))?;
    match workload.manner.transport {
        Transport::Tcp | Transport::Mptcp => {
            engine::try_options(&workload.options).map_err(|error| {
                let words = with_causes(&error);
                if matches!(error, ConnectError::Congestion { .. }) {
                    Lacking::Congestion(words)
                } else {
                    Lacking::Option(words)
                }
            })
        }
        Transport::Udp | Transport::Unix => Ok(()),
    }
}

/// Refuses more CPUs to be confined to than this process may run on.
fn check_cpu_count(count: Option<u32>) -> Result<(), Refusal> {
    let Some(count) = count else {
        return Ok(());
    };
    let Some((words, allowed)) = cpus_allowed() else {
        let error = format!(
            "cpus is {count}, but what this host allows cannot be read (/proc/self/status)"
        );
        return Err(refuse(RefusalCode::Limited, error));
    };
    if count as usize > allowed.len() {
        let most = allowed.len();
        let error = format!("cpus is {count}, but this host allows {most}: {words}");
        return Err(refuse(RefusalCode::BadRequest, error));
    }
    Ok(())
}

/// Returns the CPUs that this process may run on, as the kernel writes them and one by one.
fn cpus_allowed() -> Option<(String, Vec<u32>)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let words = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let words = words.trim();
    Some((words.to_owned(), linerate_observe::cpu_list(words)?))
}

/// Refuses CPUs on which this process may not run, and more than there are of those.
fn check_cpus(cpus: &[u32]) -> Result<(), Refusal> {
    if cpus.is_empty() {
        return Ok(());
    }
    // Where the list cannot be read, launching tells.
    let Some((words, allowed)) = cpus_allowed() else {
        return Ok(());
    };
    let (asked, most) = (cpus.len(), allowed.len());
    if asked > most {
        let error = format!("{asked} CPUs for workers, but this host allows {most}: {words}");
        return Err(refuse(RefusalCode::BadRequest, error));
    }
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => {
            let error = format!("no worker can be pinned to CPU {cpu}: this host allows {words}");
            Err(refuse(RefusalCode::BadRequest, error))
        }
    }
}

/// Refuses more flows than this process may open, some of which are places: the listener would miss them in silence.
fn check_files(flows: usize, places: usize) -> Result<(), Refusal> {
    // A place has a socket of its own beside that of the connection under way.
    let files = flows + places;
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let needed = open + files + FILES_SPARE;
    let Some(most) = open_files_max().filter(|most| needed > *most) else {
        return Ok(());
    };
    let files = match places {
        0 => "as many".to_owned(),
        _ if places == flows => "2 times as many".to_owned(),
        _ => files.to_string(),
    };
    let error = format!(
        "{flows} flows need {files} open files, {needed} with those for other purposes, but this \
         host's process may have {most} (RLIMIT_NOFILE): ask for fewer flows, or raise the hard \
         limit there before linerate starts (`ulimit -Hn {needed}` as root, `LimitNOFILE=` in a \
         unit of systemd)"
    );
    Err(refuse(RefusalCode::Limited, error))
}

/// Returns how many open files this process may have.
pub(crate) fn open_files_max() -> Option<usize> {
    let (most, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    (most != RLIM_INFINITY).then_some(most as usize)
}

/// Returns what each flow may send: the agent's limit shared by all, or less if less is asked for.
pub(super) fn flow_rate_max(
    assignment: &Assignment,
    rate_max: Option<BitsPerSec>,
) -> Option<BitsPerSec> {
    let share = rate_max.map(|rate| rate.0 / assignment.all_flows().count() as f64);
    let asked = assignment.flow_rate_max.map(|rate| rate.0);
    let least = asked.into_iter().chain(share).reduce(f64::min);
    least.map(BitsPerSec)
}

/// Holds a flow to the rate of its assignment.
pub(super) fn limit_rate(flow: &mut Flow, assignment: &Assignment) -> Result<(), Refusal> {
    match assignment.flow_rate_max {
        None => Ok(()),
        Some(rate) => flow
            .limit_rate(rate)
            .map_err(|error| refuse(RefusalCode::Flows, format!("limit the rate: {error}"))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};
    use std::time::{Duration, Instant};

    use linerate_engine::now_ns;
    use linerate_model::manner::Manner;
    use linerate_model::metric::Metric;
    use linerate_model::run::Admission;
    use linerate_model::workload::{Direction, FlowOptions, Part};
    use linerate_model::{Bytes, FlowId, TrialId};

    use super::*;
    use crate::api::LimitsInfo;
    use crate::api::{
        AdmitRequest, FlowAssignment, PollFrom, StartRequest, TrialState, TrialStatus,
    };
    use crate::core::AgentConfig;
    use crate::serve::hello::{Announces, Hello};

    pub(in crate::core) const COOKIE: &str = "00112233445566778899aabbccddeeff";

    /// Returns an agent with limits, and the lease of a run on it.
    fn agent(limits: LimitsInfo) -> (Arc<Core>, String) {
        let core = Arc::new(Core::new(AgentConfig {
            host_name: "host".into(),
            limits,
            lab: false,
        }));
        let request = AdmitRequest {
            run: linerate_model::RunId("r".into()),
            label: "l".into(),
            admission: Admission::Exclusive,
            expected: None,
            evict: false,
        };
        let admitted = core.admit(&stranger(), Some([192, 0, 2, 1].into()), &request);
        let lease = admitted.expect("nobody else is there").lease;
        (core, lease)
    }

    fn stranger() -> Caller {
        Caller::Stranger("far away".into())
    }

    /// Returns the receiving end of a stream.
    pub(in crate::core) fn receiver(trial: u32) -> Assignment {
        Assignment {
            trial: TrialId(trial),
            end: End::Server,
            peer: None,
            bind: None,
            server: None,
            cookie: COOKIE.into(),
            traffic: Traffic::Stream {
                direction: Direction::ToServer,
                message_bytes: Bytes(1024),
            },
            options: FlowOptions::default(),
            manner: Manner::default(),
            flows: vec![FlowAssignment {
                flow: FlowId(0),
                part: Part::Receiver,
            }],
            beside: Vec::new(),
            workers_max: None,
            cpus: Vec::new(),
            placement: Default::default(),
            probes: Default::default(),
            capture_at: None,
            changes: None,
            sample_interval: Nanos::from_ms(20),
            length: Nanos::from_s(10),
            warm_up_more: Nanos(0),
            flow_rate_max: None,
        }
    }

    #[test]
    fn an_answer_that_waits_for_nothing_is_there_at_once() {
        let (core, lease) = agent(LimitsInfo::default());
        core.prepare(&stranger(), &lease, receiver(1)).unwrap();
        let answer = core.poll_when_over(&lease, TrialId(1), PollFrom::default());
        // Whoever looks at it again only when it calls has waited for a timer.
        let looked = pin!(answer).poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Ok(status)) = looked else {
            panic!("not there: {looked:?}");
        };
        assert_eq!(status.state, TrialState::Gathering { missing: 1 });
    }

    #[test]
    fn an_answer_waits_for_the_end_of_the_trial_and_no_longer() {
        let (core, lease) = agent(LimitsInfo::default());
        core.prepare(&stranger(), &lease, receiver(1)).unwrap();
        let poll = |wait_ns| {
            let from = PollFrom {
                wait_ns,
                ..PollFrom::default()
            };
            core.poll_trial(&lease, TrialId(1), from).unwrap().state
        };
        let state = poll(1_000_000);
        assert_eq!(state, TrialState::Gathering { missing: 1 });
        std::thread::scope(|scope| {
            let asked = Instant::now();
            let waiting = scope.spawn(|| poll(1_000_000_000));
            std::thread::sleep(Duration::from_millis(200));
            core.leave(&lease).unwrap();
            let state = waiting.join().unwrap();
            let took = asked.elapsed();
            assert!(matches!(state, TrialState::Failed { .. }), "{state:?}");
            assert!(took < Duration::from_millis(900), "{took:?}");
        });
    }

    /// How a stream is kept to its limit.
    #[derive(Clone, Copy)]
    enum Watch {
        /// It is read at its rate.
        Read,
        /// It is read as it comes, as datagrams are, and looked at while it goes on.
        AsItGoes,
        /// It is looked at when it is over.
        AtTheEnd,
    }

    /// A trial of one stream to an agent that allows 1 Mbit/s, with a record of so many bytes.
    struct Stream {
        core: Arc<Core>,
        lease: String,
        sender: TcpStream,
    }

    impl Stream {
        fn begin(record_bytes_max: u64, ends_ms: [u64; 4]) -> Self {
            Self::begin_with(record_bytes_max, ends_ms, Watch::AsItGoes)
        }

        fn begin_with(record_bytes_max: u64, ends_ms: [u64; 4], watch: Watch) -> Self {
            let (core, lease) = agent(LimitsInfo {
                rate: Some(BitsPerSec(1e6)),
                ..LimitsInfo::default()
            });
            let prepared = core.prepare(&stranger(), &lease, receiver(1)).unwrap();
            assert_eq!(prepared.rate_limit, Some(BitsPerSec(1e6)));
            for slot in lock(&core.trials).values_mut() {
                let slot = Arc::get_mut(slot).unwrap();
                slot.record_bytes_max = record_bytes_max;
                match watch {
                    Watch::Read => {}
                    Watch::AsItGoes => slot.groups[0].flow_rate_max = None,
                    Watch::AtTheEnd => {
                        slot.groups[0].flow_rate_max = None;
                        slot.rate_max = None;
                    }
                }
            }
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let hello = Hello {
                cookie: linerate_model::hex::decode(COOKIE).unwrap(),
                flow: FlowId(0),
                announces: Announces::Flow,
            };
            let socket = listener.accept().unwrap().0.into();
            core.deliver(hello, socket, Transport::Tcp).unwrap();
            let now = now_ns();
            let [start_ns, measure_begin_ns, measure_end_ns, stop_ns] =
                ends_ms.map(|ms| now + ms * 1_000_000);
            let at = StartRequest {
                start_ns,
                measure_begin_ns,
                measure_end_ns,
                stop_ns,
                skew_ns: 0,
                trigger: None,
            };
            core.start(&lease, TrialId(1), &at).unwrap();
            Self {
                core,
                lease,
                sender,
            }
        }

        fn end(&self) -> TrialStatus {
            let deadline = Instant::now() + Duration::from_secs(8);
            loop {
                let status = self
                    .core
                    .poll_trial(&self.lease, TrialId(1), PollFrom::default())
                    .unwrap();
                if status.state.is_over() {
                    return status;
                }
                assert!(Instant::now() < deadline, "the trial goes on");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    #[test]
    fn a_sender_that_ignores_the_limit_is_cut_off() {
        let check = |record_bytes_max, ends_ms| {
            let stream = Stream::begin(record_bytes_max, ends_ms);
            let mut sender = stream.sender.try_clone().unwrap();
            let sending =
                std::thread::spawn(move || while sender.write_all(&[0; 65_536]).is_ok() {});
            let state = stream.end().state;
            let TrialState::Failed { why } = state else {
                panic!("{state:?}");
            };
            let expected = "this agent allows 1 Mbit/s without a token";
            assert!(why.contains(expected), "{why}");
            sending.join().unwrap();
        };
        check(u64::MAX, [50, 60, 9000, 9000]);
        // After the window, and where nothing more is recorded.
        check(u64::MAX, [50, 51, 52, 9000]);
        check(0, [50, 60, 9000, 9000]);
    }

    #[test]
    fn a_sender_that_ignores_the_limit_is_read_at_its_rate_and_owes_nothing() {
        let stream = Stream::begin_with(u64::MAX, [50, 60, 1060, 1060], Watch::Read);
        let mut sender = stream.sender.try_clone().unwrap();
        let sending = std::thread::spawn(move || while sender.write_all(&[0; 65_536]).is_ok() {});
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut received = Vec::new();
        loop {
            let from = PollFrom::default();
            let status = stream.core.poll_trial(&stream.lease, TrialId(1), from);
            let status = status.unwrap();
            received.extend(status.samples.into_iter().filter_map(|sample| {
                let is_it = sample.metric == Metric::AppBytesReceived;
                is_it.then_some((sample.at_ns, sample.value))
            }));
            match status.state {
                TrialState::Failed { why } => panic!("{why}"),
                TrialState::Finished => break,
                _ => assert!(Instant::now() < deadline, "the trial goes on"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        sending.join().unwrap();
        let (first, last) = (
            received.iter().min().unwrap(),
            received.iter().max().unwrap(),
        );
        let seconds = (last.0 - first.0) as f64 / 1e9;
        let moved = (last.1 - first.1) as f64;
        // A tenth more than the rate, and what one call takes ahead of its time, at either end.
        let most = 1.1e6 / 8.0 * (seconds + 0.02) + 2.0 * 65_536.0;
        assert!(
            seconds > 0.5 && moved <= most,
            "{moved} bytes in {seconds} s"
        );
        assert!(moved >= 0.2 * most, "{moved} bytes in {seconds} s");
        // Nobody waits for it.
        stream
            .core
            .prepare(&stranger(), &stream.lease, receiver(2))
            .unwrap();
    }

    #[test]
    fn what_came_after_the_last_look_is_owed_too() {
        let mut stream = Stream::begin_with(u64::MAX, [50, 60, 9000, 9000], Watch::AtTheEnd);
        let _ = stream.sender.write_all(&vec![0; 64 << 20]);
        stream.core.abort(&stream.lease, TrialId(1)).unwrap();
        let next = stream.core.prepare(&stranger(), &stream.lease, receiver(2));
        let words = next.unwrap_err().error;
        assert!(words.contains("moved more than"), "{words}");
    }

    #[test]
    fn who_says_that_it_is_over_has_given_back_what_it_took() {
        let stream = Stream::begin(u64::MAX, [50, 60, 160, 170]);
        stream.sender.shutdown(Shutdown::Write).unwrap();
        assert_eq!(stream.end().state, TrialState::Finished);
        let slot = stream.core.slot(&stream.lease, TrialId(1)).unwrap();
        assert!(lock(&slot.grant).is_none());
    }

    /// Returns what a trial of exchanges moved in 0.6 s at an agent that allows 1 Mbit/s, sent and received,
    /// and how many times `ask` asked: for responses of 1000 bytes, until it failed or the trial was over.
    fn exchanged(
        change: impl FnOnce(&mut Assignment),
        ask: impl FnOnce(&Arc<Core>) -> Box<dyn FnMut() -> bool + Send>,
    ) -> (i64, i64) {
        let (core, lease) = agent(LimitsInfo {
            rate: Some(BitsPerSec(1e6)),
            ..LimitsInfo::default()
        });
        let mut responder = receiver(1);
        responder.flows[0].part = Part::Responder;
        change(&mut responder);
        core.prepare(&stranger(), &lease, responder).unwrap();
        let mut ask = ask(&core);
        let now = now_ns();
        let at = StartRequest {
            start_ns: now + 50_000_000,
            measure_begin_ns: now + 50_000_001,
            measure_end_ns: now + 650_000_000,
            stop_ns: now + 650_000_000,
            skew_ns: 0,
            trigger: None,
        };
        core.start(&lease, TrialId(1), &at).unwrap();
        let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let asking = std::thread::spawn(move || {
            let mut asked = 0;
            while !seen.load(std::sync::atomic::Ordering::Relaxed) && ask() {
                asked += 1;
                std::thread::sleep(Duration::from_micros(500));
            }
            asked
        });
        let deadline = Instant::now() + Duration::from_secs(8);
        let mut samples = Vec::new();
        loop {
            let from = PollFrom {
                sample: samples.len(),
                ..PollFrom::default()
            };
            let status = core.poll_trial(&lease, TrialId(1), from).unwrap();
            samples.extend(status.samples);
            if status.state.is_over() {
                assert_eq!(status.state, TrialState::Finished);
                break;
            }
            assert!(Instant::now() < deadline, "the trial goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        let asked = asking.join().unwrap();
        // What is read at the end of the window may be read late, and is allowed so much more.
        let last = samples.iter().map(|sample| sample.at_ns).max().unwrap();
        let late_bytes = last.saturating_sub(at.measure_end_ns) as i64 / 8000;
        let metrics = [Metric::AppBytesSent, Metric::AppBytesReceived];
        let of = |flow, metric| {
            let samples = samples.iter().filter(|sample| {
                sample.metric == metric
                    && matches!(sample.subject, linerate_model::sample::Subject::Flow(it, _) if it == flow)
            });
            samples.map(|sample| sample.value).max().unwrap_or(0)
        };
        let flows = (0..FLOWS).map(FlowId);
        let moved = flows.map(|flow| metrics.map(|metric| of(flow, metric)).iter().sum::<i64>());
        (moved.sum::<i64>() - late_bytes, asked)
    }

    /// The most flows of [`exchanged`].
    const FLOWS: u32 = 4;

    #[test]
    fn exchanges_are_held_to_the_limit_whatever_carries_them() {
        let check = |bytes: i64, (moved, asked): (i64, i64)| {
            // 1 Mbit/s for 0.6 s, and a call of each worker.
            let most = 75_000 + 4 * bytes;
            assert!((bytes..=most).contains(&moved), "{moved}");
            assert!(
                asked * bytes > moved + 4 * bytes,
                "{asked} asked for, {moved}"
            );
        };
        let (request_bytes, response_bytes) = (Bytes(500), Bytes(1000));
        let exchange = Traffic::Rr {
            request_bytes,
            response_bytes,
            request_writes: 1,
        };
        let by_datagrams = |asked: &mut Assignment| {
            asked.manner.transport = Transport::Udp;
            asked.traffic = exchange.clone();
        };
        let hello = Hello {
            cookie: linerate_model::hex::decode(COOKIE).unwrap(),
            flow: FlowId(0),
            announces: Announces::Flow,
        };
        let moved = exchanged(by_datagrams, |core| {
            let near = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let far = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            near.connect(far.local_addr().unwrap()).unwrap();
            far.connect(near.local_addr().unwrap()).unwrap();
            core.deliver(hello, far.into(), Transport::Udp).unwrap();
            Box::new(move || near.send(&[7; 500]).is_ok())
        });
        check(1500, moved);
        // One that asks again without waiting: its requests count too.
        let pipelined = |asked: &mut Assignment| {
            asked.manner.in_flight = 64;
            asked.traffic = exchange.clone();
        };
        let moved = exchanged(pipelined, |core| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let socket = listener.accept().unwrap().0.into();
            core.deliver(hello, socket, Transport::Tcp).unwrap();
            near.set_nonblocking(true).unwrap();
            Box::new(move || {
                let _ = std::io::Read::read(&mut near, &mut [0; 65_536]);
                // Where there is no room it is asked for all the same.
                let _ = near.write(&[7; 500]);
                true
            })
        });
        check(1500, moved);
        // All places together.
        let by_connections = |asked: &mut Assignment| {
            asked.flows = (0..FLOWS)
                .map(|flow| FlowAssignment {
                    flow: FlowId(flow),
                    ..asked.flows[0]
                })
                .collect();
            asked.traffic = Traffic::Crr {
                request_bytes,
                response_bytes,
            };
        };
        let moved = exchanged(by_connections, |core| {
            let core = Arc::clone(core);
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut under_way = std::collections::VecDeque::new();
            let mut nth = 0;
            Box::new(move || {
                nth += 1;
                let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let call = Hello {
                    flow: FlowId(nth % FLOWS),
                    announces: Announces::Connection,
                    ..hello
                };
                core.hand_in(&call, listener.accept().unwrap().0);
                let asked = stream.write_all(&[0; 500]);
                under_way.push_back(stream);
                under_way.truncate(8);
                asked.is_ok()
            })
        });
        check(1500, moved);
    }

    #[test]
    fn the_edges_of_the_window_are_kept_when_the_record_is_full() {
        let mut stream = Stream::begin(0, [50, 60, 300, 310]);
        stream.sender.write_all(&[0; 1000]).unwrap();
        stream.sender.shutdown(Shutdown::Write).unwrap();
        let status = stream.end();
        assert_eq!(status.state, TrialState::Finished);
        let received = status.samples.iter();
        let mut received = received.filter(|sample| sample.metric == Metric::AppBytesReceived);
        // Before the window, while there is nothing yet, at its begin and at its end.
        let count = received.clone().count();
        assert!((2..=3).contains(&count), "{count}");
        assert_eq!(received.next_back().map(|last| last.value), Some(1000));
    }

    #[test]
    fn strangers_are_limited_and_the_trusted_are_not() {
        let (core, lease) = agent(LimitsInfo {
            flows: Some(1),
            trial: Some(Nanos::from_s(5)),
            ..LimitsInfo::default()
        });
        let check = |caller: &Caller, assignment: Assignment| {
            let result = core.prepare(caller, &lease, assignment);
            result.map(|_| ()).map_err(|refusal| refusal.code)
        };
        assert_eq!(check(&stranger(), receiver(1)), Err(RefusalCode::Limited));
        assert_eq!(check(&Caller::Trusted, receiver(1)), Ok(()));
        let short = Assignment {
            length: Nanos::from_s(1),
            ..receiver(1)
        };
        assert_eq!(check(&stranger(), short.clone()), Ok(()));
        let two = Assignment {
            flows: [short.flows.clone(), short.flows.clone()].concat(),
            ..short.clone()
        };
        assert_eq!(check(&stranger(), two), Err(RefusalCode::Limited));
        let mut past_sockets = short.clone();
        past_sockets.manner.transport = Transport::Udp;
        past_sockets.manner.wait = WaitBy::Xdp;
        past_sockets.flows[0].part = Part::Sender;
        assert_eq!(
            check(&stranger(), past_sockets.clone()),
            Err(RefusalCode::Unauthorized)
        );
        let measures = Caller::Holder {
            name: "ci".into(),
            scopes: "measure,observe".parse().expect("scopes"),
        };
        assert_eq!(
            check(&measures, past_sockets.clone()),
            Err(RefusalCode::Limited)
        );
        let connecting = Assignment {
            end: End::Client,
            peer: Some("192.0.2.1:80".into()),
            ..short
        };
        assert_eq!(
            check(&stranger(), connecting),
            Err(RefusalCode::Unauthorized)
        );
    }

    #[test]
    fn a_cookie_in_use_is_refused() {
        let (core, lease) = agent(LimitsInfo::default());
        core.prepare(&stranger(), &lease, receiver(1)).unwrap();
        let beside = core.prepare(&stranger(), &lease, receiver(2));
        assert_eq!(beside.unwrap_err().code, RefusalCode::BadRequest);
        // A repeated trial has its own again, and so has whoever comes when it is over.
        core.prepare(&stranger(), &lease, receiver(1)).unwrap();
        core.abort(&lease, TrialId(1)).unwrap();
        core.prepare(&stranger(), &lease, receiver(2)).unwrap();
    }

    #[test]
    fn one_token_takes_a_part_of_the_memory() {
        let (core, lease) = agent(LimitsInfo::default());
        let token = Caller::Holder {
            name: "ci".into(),
            scopes: "measure".parse().expect("scopes"),
        };
        let mut large = receiver(1);
        // One call of so much for each worker, of which there may be any number.
        large.traffic = Traffic::Rr {
            request_bytes: Bytes(64 << 20),
            response_bytes: Bytes(64 << 20),
            request_writes: 1,
        };
        large.workers_max = Some(1_000_000);
        large.flows = (0..1000)
            .map(|flow| FlowAssignment {
                flow: FlowId(flow),
                part: Part::Responder,
            })
            .collect();
        let claimed = core
            .claim(&token, None, &large)
            .map(|grant| grant.is_some());
        assert_eq!(claimed.unwrap_err().code, RefusalCode::Limited);
        assert!(
            core.claim(&Caller::Trusted, None, &large)
                .unwrap()
                .is_none()
        );
        // What an honest run needs is there.
        core.prepare(&token, &lease, receiver(1)).unwrap();
        assert!(core.has_trials_under_way());
    }

    #[test]
    fn buffers_are_those_of_all_workers() {
        let check = |traffic, part, change: &dyn Fn(&mut Assignment), expected: u64| {
            let mut assignment = receiver(1);
            assignment.traffic = traffic;
            assignment.flows[0].part = part;
            change(&mut assignment);
            let workers = workers_of_guest(assignment.workers_max);
            assert_eq!(buffer_bytes(&assignment, workers), expected);
        };
        let crr = Traffic::Crr {
            request_bytes: Bytes(1),
            response_bytes: Bytes(64 << 20),
        };
        let room = 48 << 10;
        // With what says whose a connection is.
        check(
            crr.clone(),
            Part::Responder,
            &|_| {},
            (64 << 20) + room + 32,
        );
        check(crr, Part::Requester, &|_| {}, (128 << 20) + 2 * room);
        let stream = Traffic::Stream {
            direction: Direction::Both,
            message_bytes: Bytes(64 << 10),
        };
        let joined = |asked: &mut Assignment| asked.manner.batch = 1024;
        check(stream.clone(), Part::Sender, &joined, 64 << 20);
        // Both ways, by one worker, or by two if there are as many CPUs.
        let workers = u64::from(workers_of_guest(None).min(2));
        let both = |asked: &mut Assignment| {
            let mut back = asked.flows[0];
            back.part = Part::Receiver;
            asked.flows.push(back);
        };
        let room = if workers == 1 { 32 << 10 } else { 128 << 10 };
        check(stream, Part::Sender, &both, workers * ((64 << 10) + room));
    }

    #[test]
    fn what_becomes_a_setting_of_every_flow_is_short() {
        let (core, lease) = agent(LimitsInfo::default());
        let check = |change: &dyn Fn(&mut Assignment)| {
            let mut assignment = receiver(1);
            change(&mut assignment);
            let prepared = core.prepare(&stranger(), &lease, assignment);
            prepared.map_err(|refusal| refusal.code).map(drop)
        };
        let chosen = |chars| Placement::Chosen {
            why: "ü".repeat(chars),
        };
        let bad = Err(RefusalCode::BadRequest);
        assert_eq!(check(&|asked| asked.placement = chosen(200)), Ok(()));
        assert_eq!(check(&|asked| asked.bind = Some("1".repeat(300))), Ok(()));
        assert_eq!(check(&|asked| asked.bind = Some("1".repeat(301))), bad);
        assert_eq!(check(&|asked| asked.peer = Some("1".repeat(301))), bad);
        assert_eq!(check(&|asked| asked.placement = chosen(201)), bad);
        let cpu = linerate_observe::cpus_allowed(std::path::Path::new("/proc"))[0];
        assert_eq!(check(&|asked| asked.cpus = vec![cpu]), Ok(()));
        assert_eq!(check(&|asked| asked.cpus = vec![cpu; 10_000]), bad);
    }

    #[test]
    fn an_answer_has_as_many_flows_as_fit() {
        let stream = Stream::begin(u64::MAX, [10, 11, 20, 30]);
        stream.sender.shutdown(Shutdown::Write).unwrap();
        let status = stream.end();
        let mut long = status.flows[0].clone();
        long.ended_early = Some("x".repeat(10_000));
        for slot in lock(&stream.core.trials).values() {
            lock(&slot.record).flows.items = vec![long.clone(); 1000];
        }
        let mut flows = 0;
        loop {
            let from = PollFrom {
                sample: status.next,
                flow: flows,
                ..PollFrom::default()
            };
            let page = stream.core.poll_trial(&stream.lease, TrialId(1), from);
            let page = page.unwrap();
            let bytes = serde_json::to_vec(&page).unwrap().len();
            assert!((1..=2_000_000).contains(&bytes), "{bytes}");
            flows += page.flows.len();
            if !page.more {
                break;
            }
        }
        assert_eq!(flows, 1000);
    }

    #[test]
    fn a_run_has_a_few_trials_under_way_at_the_most() {
        let (core, lease) = agent(LimitsInfo::default());
        let of_its_own = |trial: u32| Assignment {
            cookie: format!("{trial:032x}"),
            ..receiver(trial)
        };
        for trial in 1..=TRIALS_UNDER_WAY_MAX as u32 {
            core.prepare(&Caller::Trusted, &lease, of_its_own(trial))
                .unwrap();
        }
        let refused = core.prepare(&Caller::Trusted, &lease, of_its_own(99));
        assert_eq!(refused.unwrap_err().code, RefusalCode::Busy);
        core.abort(&lease, TrialId(1)).unwrap();
        core.prepare(&Caller::Trusted, &lease, of_its_own(99))
            .unwrap();
    }

    #[test]
    fn a_limit_is_shared_by_the_flows_and_may_be_asked_lower() {
        let mut four = receiver(1);
        four.flows = vec![four.flows[0]; 4];
        assert_eq!(flow_rate_max(&four, None), None);
        let limit = Some(BitsPerSec(8e6));
        assert_eq!(flow_rate_max(&four, limit), Some(BitsPerSec(2e6)));
        four.flow_rate_max = Some(BitsPerSec(1e6));
        assert_eq!(flow_rate_max(&four, limit), Some(BitsPerSec(1e6)));
        assert_eq!(flow_rate_max(&four, None), Some(BitsPerSec(1e6)));
    }
}
