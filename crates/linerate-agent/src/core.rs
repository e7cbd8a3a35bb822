//! The host's part itself: flows, engine, observers, one thread a trial.
//!
//! Everything that may change a state machine goes through the two locks of leases and trials; neither
//! is held while a flow connects, a trial runs or a file is read. A third is held by whoever reads the
//! host for its watchers, so that the others get the same reading; nobody else waits for it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use linerate_engine as engine;
use linerate_engine::Awaited;
use linerate_model::capture::CaptureOutcome;
use linerate_model::manner::Transport;
use linerate_model::number::counted;
use linerate_model::run::FlowOutcome;
use linerate_model::sample::End;
use linerate_model::setting::SettingPool;
use linerate_model::{TrialId, hex};
use sha2::{Digest as _, Sha256};

pub(crate) use crate::access::Caller;
use crate::access::Scope;
use crate::api::{
    API_VERSION, AdmitRequest, Admitted, AgentInfo, Assignment, Busy, FlowSettings,
    LABEL_CHARS_MAX, LimitsInfo, PROGRAM, PollFrom, Prepared, Refusal, RefusalCode, StartRequest,
    TrialState, TrialStatus, one_line, refuse,
};
use crate::confine::Confined;
use crate::limits::Grant;
use crate::limits::{Source, Totals};
use crate::log::{Asker, Ledger, LogEntry, Queue};
use crate::serve::entrance::Doorway;
use crate::serve::hello::{Answer, Hello, INSTANCE_BYTES};
use crate::session::leases::{
    Asking, Disconnection, Ending, GuestTerms, Lease, LeaseError, Leases, Standing, expected_left,
};
use crate::session::trial::{PREPARE_NS, SessionError, TrialSession};
use crate::sync::{lock, try_lock};
use crate::trigger::Armed;
use capture::{OwnPorts, RunningCapture};
pub(crate) use flows::CONNECT_DEADLINE;
use flows::{await_all, connect_all, expected};
pub use limits::{Lacking, check_here, try_out};
pub(crate) use limits::{buffers_of, cpus_online, open_files_max, workers_of_guest};
use limits::{flow_rate_max, record_bytes_max};
pub(crate) use slot::OtherEnd;
use slot::{Change, Gathered, TrialRecord, TrialSlot};
use tuned::Tuning;
use watch::Watch;

/// The frames of a trial, where they were asked for.
mod capture;
/// Flows of datagrams: which are expected, and how they are taken up.
mod datagrams;
/// Data connections: opened by the connecting end, taken up by the accepting one.
mod flows;
/// What the host tells of itself.
mod host;
/// Readings of the host that no request waits for.
mod idle_reader;
/// What is refused: what no honest controller sends, and what a caller may not.
mod limits;
/// Which CPUs the workers run on.
mod placement;
/// One trial on this host: its flows as they come, and its record.
mod slot;
/// One trial while it runs: launch, sample on the ticks, collect.
mod trial;
/// What of the host is changed for a trial.
mod tuned;
mod unix;
/// The host as its watchers see it.
mod watch;

/// How long a start waits for flows that are on their way.
const ARRIVAL_WAIT: Duration = Duration::from_secs(10);
/// How long an answer waits at the most for the end of a trial.
const END_WAIT_MAX: Duration = Duration::from_secs(1);
/// Samples of one answer: 1.5 MB as JSON, so that a trial of 10 000 flows needs no answer of 30 MB
/// at either end.
const SAMPLES_PER_ANSWER: usize = 16_384;
/// Flow outcomes of one answer, and what they may take together as JSON: 1.5 MB.
const FLOWS_PER_ANSWER: usize = 1024;
const FLOW_BYTES_PER_ANSWER: usize = 1_500_000;
/// What a flow outcome takes beside its settings, a setting beside its texts, and a pair of a histogram.
const FLOW_BYTES: usize = 800;
const SETTING_BYTES: usize = 80;
const BUCKET_BYTES: usize = 24;
/// Flows whose round trip is read when they are prepared: a trial's paths differ little.
const TRIPS_READ: usize = 16;
/// Connections after which the heap is trimmed: they may have sent 64 KiB each.
const CONNECTIONS_A_TRIM: u64 = 64;

/// How an agent is set up.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// The host's name as others see it.
    pub host_name: String,
    /// Limits for callers without a token.
    pub limits: LimitsInfo,
    /// Whether the host is a namespace of a lab.
    pub lab: bool,
}

/// An agent without its way in: the same for HTTP and in-process callers.
pub struct Core {
    config: AgentConfig,
    log: Log,
    leases: Mutex<Leases>,
    trials: Mutex<HashMap<(String, TrialId), Arc<TrialSlot>>>,
    /// The names of its host.
    names: Vec<String>,
    /// Which boot of its host it is, which it does not outlive.
    boot: Option<String>,
    /// A number that this process chose for itself: no two agents have the same.
    instance: [u8; INSTANCE_BYTES],
    /// Where it listens, if it does.
    listens: OnceLock<Listens>,
    /// What it gave up before it served, and what it could not.
    confined: OnceLock<String>,
    /// What guests have under way.
    totals: Totals,
    /// Whether a trial has changed the host.
    tuning: Tuning,
    watch: Mutex<Watch>,
    /// Runs and connections that were over when the heap was trimmed.
    trimmed: AtomicU64,
}

/// Where an agent listens.
struct Listens {
    port: u16,
    /// Its listener of connections, for the workers of trials.
    doorway: Doorway,
    /// Which datagrams are taken.
    sieve: Option<engine::Sieve>,
}

/// Where ends of runs and refusals are told, if they are.
#[derive(Default)]
struct Log {
    ledger: Mutex<Ledger>,
    queue: Option<Queue>,
}

impl Log {
    /// Tells what `tell` finds worth it.
    fn tell(&self, tell: impl FnOnce(&mut Ledger) -> Option<LogEntry>) {
        let Some(queue) = &self.queue else { return };
        let entry = tell(&mut lock(&self.ledger));
        if let Some(entry) = entry {
            queue.push(entry);
        }
    }
}

impl From<LeaseError> for Refusal {
    fn from(error: LeaseError) -> Self {
        let code = match error {
            LeaseError::Busy { .. }
            | LeaseError::Full
            | LeaseError::Guests { .. }
            | LeaseError::Token(_) => RefusalCode::Busy,
            LeaseError::NoLease(_) => RefusalCode::Gone,
        };
        let next = error.next();
        Refusal {
            next,
            ..refuse(code, error)
        }
    }
}

/// Returns what tells this boot of this kernel from others, and not its number: strangers may ask who is one machine,
/// but the number stands in logs and is what other programs derive their secrets from.
fn digest_of_boot(id: &str) -> String {
    hex::encode(&Sha256::digest(format!("linerate boot {id}")))
}

impl Core {
    /// Returns an agent that nobody uses yet.
    pub fn new(config: AgentConfig) -> Self {
        Self {
            names: vec![config.host_name.clone()],
            boot: linerate_observe::boot_id(Path::new("/proc")).map(|id| digest_of_boot(&id)),
            log: Log::default(),
            config,
            leases: Mutex::default(),
            trials: Mutex::default(),
            instance: {
                let mut instance = [0; INSTANCE_BYTES];
                // The system's generator does not fail once it has been seeded at boot (getrandom(2)).
                getrandom::fill(&mut instance).expect("the system's random generator works");
                instance
            },
            listens: OnceLock::new(),
            confined: OnceLock::new(),
            totals: Totals::default(),
            tuning: Tuning::default(),
            watch: Mutex::default(),
            trimmed: AtomicU64::new(0),
        }
    }

    /// Notes where it listens, once; `datagrams` then takes only what is waited for.
    pub(crate) fn listens_on(
        &self,
        doorway: Doorway,
        datagrams: &engine::DatagramListener,
    ) -> std::io::Result<()> {
        let port = doorway.address()?.port();
        self.listens.get_or_init(|| Listens {
            port,
            doorway,
            sieve: datagrams.sieve().ok(),
        });
        Ok(())
    }

    /// Returns what is answered to whoever asks by a hello who listens here.
    pub(crate) fn answer_to(&self, hello: &Hello) -> Answer {
        Answer {
            knows: self.slot_of(hello).is_some(),
            flow: hello.flow,
            instance: self.instance,
        }
    }

    /// Lets datagrams through that are `awaited`, until the answer is dropped.
    pub(crate) fn wait_for(&self, awaited: engine::Awaited) -> Option<engine::Await> {
        let sieve = &self.listens.get()?.sieve;
        Some(sieve.as_ref()?.wait_for(awaited))
    }

    /// Tells `write` of every run that is over, and now and then of what was refused; it may block, on a
    /// thread of its own.
    pub fn with_log(mut self, write: impl Fn(&LogEntry) + Send + 'static) -> Self {
        self.log.queue = Some(Queue::new(Box::new(write)));
        self
    }

    /// Waits until all is told that there is to tell, for `most` at the longest.
    pub fn flush_log(&self, most: Duration) {
        if let Some(queue) = &self.log.queue {
            queue.flush(most);
        }
    }

    /// Counts a request that was refused, of whom and why.
    pub(crate) fn note_refusal(&self, kind: &'static str, asker: Asker, why: &str) {
        self.log.tell(|ledger| {
            ledger.handle_refusal(kind, asker, why);
            None
        });
    }

    /// Notes who observes this host.
    pub(crate) fn note_observation(&self, asker: Asker) {
        let now = engine::now_ns();
        self.log
            .tell(|ledger| ledger.handle_observation(now, asker));
    }

    fn note_end(&self, lease: &Lease, ending: Ending) {
        let now = engine::now_ns();
        self.log
            .tell(|ledger| ledger.handle_run(now, lease, ending));
    }

    /// Takes requests for these names of the host beside its own.
    pub fn with_names(mut self, names: Vec<String>) -> Self {
        self.names.extend(names);
        self
    }

    /// Notes what it gave up before it served; said in its inventory.
    pub fn note_confined(&self, confined: &Confined) {
        let _ = self.confined.set(confined.to_string());
    }

    /// Returns the names by which it may be asked.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the set-up.
    pub fn config(&self) -> &AgentConfig {
        &self.config
    }

    /// Returns who the agent is and whether it is busy.
    pub fn info(&self, caller: &Caller) -> AgentInfo {
        let now = engine::now_ns();
        let leases = lock(&self.leases);
        AgentInfo {
            program: PROGRAM.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            api: API_VERSION,
            host_name: self.config.host_name.clone(),
            lab: self.config.lab,
            boot: self.boot.clone(),
            observe_refused: caller.check(Scope::Observe).err().map(|why| why.error),
            busy: leases.holder().map(|(lease, waiting)| Busy {
                label: (!caller.is_stranger()).then(|| lease.asked.label.clone()),
                since: linerate_model::Nanos(now.saturating_sub(lease.since_ns)),
                expected_left: expected_left(lease, now),
                waiting,
            }),
            limits: self.config.limits.clone(),
        }
    }

    /// Takes up a request for the host, which comes `from` there unless from this process.
    pub fn admit(
        &self,
        caller: &Caller,
        from: Option<IpAddr>,
        request: &AdmitRequest,
    ) -> Result<Admitted, Refusal> {
        if request.label.chars().count() > LABEL_CHARS_MAX {
            let error = format!("the label is longer than {LABEL_CHARS_MAX} characters");
            return Err(refuse(RefusalCode::BadRequest, error));
        }
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| refuse(RefusalCode::Internal, error))?;
        let key = hex::encode(&key);
        let asking = self.asking(caller, from, request, key.clone());
        if request.evict {
            caller.check(Scope::Admin)?;
            self.evict(caller)?;
        }
        let standing = lock(&self.leases).handle_request(engine::now_ns(), asking)?;
        Ok(admitted(key, request.admission, standing))
    }

    /// Returns whether such a request would be taken up now.
    pub(crate) fn would_admit(
        &self,
        caller: &Caller,
        from: Option<IpAddr>,
        request: &AdmitRequest,
    ) -> bool {
        let asking = self.asking(caller, from, request, String::new());
        lock(&self.leases).check(engine::now_ns(), &asking).is_ok()
    }

    fn asking(
        &self,
        caller: &Caller,
        from: Option<IpAddr>,
        request: &AdmitRequest,
        key: String,
    ) -> Asking {
        let limits = &self.config.limits;
        let terms = GuestTerms {
            runs: limits.runs.unwrap_or(u32::MAX),
            length: limits.run,
        };
        Asking {
            key,
            label: one_line(&request.label),
            admission: request.admission,
            expected: request.expected,
            from: from.map(Source::of),
            guest: caller.is_stranger().then_some(terms),
            token: caller.name().map(str::to_owned),
        }
    }

    /// Keeps a lease alive and returns its present standing.
    pub fn renew(&self, lease: &str) -> Result<Admitted, Refusal> {
        let mut leases = lock(&self.leases);
        let standing = leases.handle_seen(engine::now_ns(), lease)?;
        let found = leases.find(lease).ok_or_else(|| leases.no_lease(lease))?;
        let admission = found.asked.admission;
        Ok(admitted(lease.to_owned(), admission, standing))
    }

    /// Notes that a connection carries requests of a run; returns whether there is such a run.
    pub(crate) fn connected(&self, lease: &str) -> bool {
        lock(&self.leases).handle_connection(lease)
    }

    /// Notes the end of such a connection.
    pub(crate) fn disconnected(&self, lease: &str, ending: Disconnection) {
        lock(&self.leases).handle_disconnection(engine::now_ns(), lease, ending);
    }

    /// Returns how many runs have had this host and are over, and how many hold it or wait for it.
    pub fn runs(&self) -> (u64, usize) {
        lock(&self.leases).runs()
    }

    /// Ends a lease and whatever trials it has.
    pub fn leave(&self, lease: &str) -> Result<(), Refusal> {
        let left = lock(&self.leases).handle_leave(lease)?;
        self.end_trials_of(lease, "the run left");
        self.note_end(&left, Ending::Left);
        Ok(())
    }

    /// Ends all runs for a caller of scope admin; returns how many had the host or waited for it.
    pub fn evict(&self, caller: &Caller) -> Result<usize, Refusal> {
        caller.check(Scope::Admin)?;
        let evicted = lock(&self.leases).handle_eviction();
        for lease in &evicted {
            self.end_trials_of(&lease.asked.key, &Ending::Evicted.to_string());
            self.note_end(lease, Ending::Evicted);
        }
        Ok(evicted.len())
    }

    /// Returns whether trials are still under way that are counted, as they are for a moment after their runs
    /// were ended.
    pub(crate) fn has_trials_under_way(&self) -> bool {
        !self.totals.is_idle()
    }

    /// Makes the flows of a trial between agents, or expects them.
    pub fn prepare(
        &self,
        caller: &Caller,
        lease: &str,
        assignment: Assignment,
    ) -> Result<Prepared, Refusal> {
        self.prepare_with(caller, lease, assignment, OtherEnd::Agent)
    }

    /// Makes the flows of a trial with `other_end`, or expects them.
    pub(crate) fn prepare_with(
        &self,
        caller: &Caller,
        lease: &str,
        mut assignment: Assignment,
        other_end: OtherEnd,
    ) -> Result<Prepared, Refusal> {
        self.require_admitted(lease)?;
        let from = lock(&self.leases)
            .find(lease)
            .and_then(|lease| lease.asked.from);
        self.check_assignment(caller, from, &assignment)?;
        self.check_changes(caller, lease, assignment.changes.as_ref())?;
        let warm_up_more = self.warm_up_more(caller, &assignment);
        assignment.warm_up_more = warm_up_more;
        let cookie = hex::decode(&assignment.cookie)
            .ok_or_else(|| refuse(RefusalCode::BadRequest, "the cookie is not 32 hex digits"))?;
        let key = (lease.to_owned(), assignment.trial);
        // A repeated trial takes the place of what is left of the earlier try.
        if let Some(old) = lock(&self.trials).remove(&key) {
            old.fail("prepared again");
        }
        self.make_room(lease)?;
        refuse_taken(&lock(&self.trials), &key, &assignment, cookie)?;
        if assignment.probes.profile && caller.may(Scope::Observe) {
            linerate_observe::load_symbols(Path::new("/proc"));
        }
        let grant = self.claim(caller, from, &assignment)?;
        let rate_max = grant.as_ref().and_then(Grant::rate);
        if caller.is_stranger() {
            assignment.workers_max = Some(workers_of_guest(assignment.workers_max));
        }
        assignment.flow_rate_max = flow_rate_max(&assignment, rate_max);
        let tuned = self.tuning.change(assignment.changes.as_ref())?;
        // Before the first flow connects, whose handshake says what later segments mean.
        let own = OwnPorts {
            listens: self.listens.get().map(|listens| listens.port),
        };
        let capture = begin_capture(caller, &assignment, &own);
        let captures = matches!(capture, Some(Ok(_)));
        let profiles = assignment.probes.profile && caller.may(Scope::Observe);
        lock(&self.leases).handle_probes(lease, captures, profiles);
        // Connections come and go while a trial with places runs: nobody has to come first.
        let groups = assignment.of_groups();
        let calls = match assignment.end {
            End::Server if groups.iter().any(|group| group.traffic.is_placed()) => {
                Some(self.calls()?)
            }
            End::Server | End::Client => None,
        };
        let mut flows = Vec::new();
        for group in &groups {
            flows.extend(match (group.end, &calls) {
                (End::Client, _) => connect_all(group, &other_end, cookie)?,
                (End::Server, Some(calls)) if group.traffic.is_placed() => {
                    await_all(group, cookie, calls)?
                }
                (End::Server, _) => Vec::new(),
            });
        }
        let expected = match assignment.end {
            End::Client => HashMap::new(),
            End::Server => expected(&groups),
        };
        let trips = flows
            .iter()
            .take(TRIPS_READ)
            .filter_map(engine::Flow::round_trip);
        let round_trip_ns = trips.map(|trip| trip.0).max();
        let settings = flows
            .iter()
            .map(|flow| FlowSettings {
                flow: flow.config().flow,
                settings: flow.settings().clone(),
            })
            .collect();
        let (capture, no_capture) = match capture {
            Some(Ok(capture)) => (Some(capture), None),
            Some(Err(why)) => (None, Some(CaptureOutcome::Missing(why))),
            None => (None, None),
        };
        // From here on: its clients say hello as soon as this is answered.
        let mut waiting = expected.values();
        let is_udp = |group: usize| groups[group].manner.transport == Transport::Udp;
        let hellos = if waiting.any(|(group, _)| is_udp(*group)) {
            self.wait_for(Awaited::Cookie(cookie))
        } else {
            None
        };
        let slot = TrialSlot {
            lease: lease.to_owned(),
            record_bytes_max: record_bytes_max(caller),
            grant: Mutex::new(grant),
            tuned: Mutex::new(tuned),
            launched: AtomicBool::new(false),
            armed: AtomicBool::new(false),
            other_end,
            cookie,
            calls,
            capture: Mutex::new(capture),
            observe: caller.may(Scope::Observe),
            rate_max,
            gathered: Mutex::new(Gathered {
                session: TrialSession::new(engine::now_ns(), expected.len() as u32),
                flows,
                pool: SettingPool::default(),
                expected,
                hellos,
            }),
            changed: Change::default(),
            record: Mutex::new(TrialRecord {
                capture: no_capture,
                ..TrialRecord::default()
            }),
            abort: AtomicBool::new(false),
            delivered: AtomicBool::new(false),
            groups,
            assignment,
        };
        let slot = Arc::new(slot);
        let over_unix = slot.assignment.manner.transport == Transport::Unix;
        let socket_name = match slot.assignment.end {
            End::Server if over_unix => Some(unix::listen(&slot)?),
            End::Client | End::Server => None,
        };
        // Of two requests at once neither saw the other's; the lock is free again when it fails.
        let mut trials = lock(&self.trials);
        refuse_taken(&trials, &key, &slot.assignment, cookie)?;
        let beside = trials.insert(key.clone(), slot);
        drop(trials);
        if let Some(beside) = beside {
            beside.fail("prepared again");
        }
        // A lease that ended meanwhile has ended those trials that were there.
        if let Err(refusal) = self.require_admitted(lease) {
            if let Some(late) = lock(&self.trials).remove(&key) {
                late.fail("its run has ended");
            }
            return Err(refusal);
        }
        Ok(Prepared {
            settings,
            rate_limit: rate_max,
            instance: Some(hex::encode(&self.instance)),
            socket_name,
            round_trip_ns,
            warm_up_more,
        })
    }

    /// Returns the connections that come for the places of a trial: to the agent's own listener, where there
    /// is one, and in any case those that are handed in.
    fn calls(&self) -> Result<Arc<engine::Calls>, Refusal> {
        let door = self.listens.get().map(|listens| listens.doorway.open());
        let calls = door.transpose().and_then(engine::Calls::new);
        calls.map_err(|error| refuse(RefusalCode::Internal, error))
    }

    /// Gives back what the kernel has mapped around the code that was needed, where no more than so many trials
    /// are under way: others would feel it, since code comes back page by page.
    fn give_back_neighbours(&self, trials: usize) {
        let slots: Vec<_> = lock(&self.trials).values().cloned().collect();
        if slots.iter().filter(|slot| !slot.is_over()).count() <= trials {
            engine::give_back_neighbours();
        }
    }

    /// Returns whether a lease is that of a caller without the token.
    fn is_guests(&self, lease: &str) -> bool {
        let leases = lock(&self.leases);
        leases
            .find(lease)
            .is_none_or(|lease| lease.asked.guest.is_some())
    }

    /// Returns how many trials of the run with this lease are under way.
    fn trials_of(&self, lease: &str) -> usize {
        let trials = lock(&self.trials);
        let own = trials.iter().filter(|((run, _), _)| run == lease);
        own.filter(|(_, slot)| !slot.is_over()).count()
    }

    /// Sets the instants of a trial and launches its flows.
    pub fn start(
        self: &Arc<Self>,
        lease: &str,
        trial: TrialId,
        at: &StartRequest,
    ) -> Result<(), Refusal> {
        let slot = self.startable(lease, trial, at)?;
        slot.wait_while(ARRIVAL_WAIT, TrialState::is_gathering);
        self.begin_or_arm(&slot, at)
    }

    /// Does the same, and waits without a thread.
    pub(crate) async fn start_when_there(
        self: &Arc<Self>,
        lease: &str,
        trial: TrialId,
        at: &StartRequest,
    ) -> Result<(), Refusal> {
        let slot = self.startable(lease, trial, at)?;
        slot.while_so(ARRIVAL_WAIT, TrialState::is_gathering).await;
        self.begin_or_arm(&slot, at)
    }

    /// Returns a trial that may be started at these instants, once its flows are there.
    fn startable(
        &self,
        lease: &str,
        trial: TrialId,
        at: &StartRequest,
    ) -> Result<Arc<TrialSlot>, Refusal> {
        self.require_admitted(lease)?;
        let slot = self.slot(lease, trial)?;
        let length_ns = at.stop_ns.saturating_sub(at.start_ns);
        let assigned = &slot.assignment;
        let most = linerate_model::Nanos(assigned.length.0 + assigned.warm_up_more.0);
        if length_ns > most.0 {
            let length = linerate_model::Nanos(length_ns);
            let error = format!("the instants span {length}, but the assignment said {most}");
            return Err(refuse(RefusalCode::BadRequest, error));
        }
        Ok(slot)
    }

    /// Launches the flows of a trial, or waits for the datagram that starts it; no longer than for flows.
    fn begin_or_arm(
        self: &Arc<Self>,
        slot: &Arc<TrialSlot>,
        at: &StartRequest,
    ) -> Result<(), Refusal> {
        let Some(trigger) = at.trigger else {
            return self.begin(slot, at);
        };
        // A host that joins a group has its network forward what is sent to it.
        if self.is_guests(&slot.lease) {
            let error = "a start by multicast needs a token";
            return Err(refuse(RefusalCode::Limited, error));
        }
        if slot.armed.swap(true, Ordering::Relaxed) {
            let error = "the trial waits for its start already";
            return Err(refuse(RefusalCode::BadRequest, error));
        }
        let armed = Armed::join(&trigger).map_err(|error| {
            refuse(
                RefusalCode::BadRequest,
                linerate_model::reason::with_causes(&error),
            )
        })?;
        let (core, slot, at) = (Arc::clone(self), Arc::clone(slot), *at);
        let until_ns = at.start_ns.min(engine::now_ns() + PREPARE_NS);
        let thread = std::thread::Builder::new().name("trigger".to_owned());
        let spawned = thread.spawn(move || {
            let begun = match armed.wait(until_ns, || !slot.is_over()) {
                Some(start_ns) => core.begin(&slot, &at.beginning_at(start_ns)),
                None => Err(refuse(RefusalCode::Late, Armed::unheard(&trigger))),
            };
            if let Err(refusal) = begun {
                slot.fail(&refusal.error);
                core.trial_over(&slot);
            }
        });
        let no_thread = |error| refuse(RefusalCode::Internal, format!("no thread: {error}"));
        spawned.map(drop).map_err(no_thread)
    }

    /// Launches the flows of a trial.
    fn begin(self: &Arc<Self>, slot: &Arc<TrialSlot>, at: &StartRequest) -> Result<(), Refusal> {
        let mut gathered = lock(&slot.gathered);
        gathered
            .session
            .handle_start(engine::now_ns(), at)
            .map_err(|error| match error {
                SessionError::Late(_) => refuse(RefusalCode::Late, error),
                error => refuse(RefusalCode::Flows, error),
            })?;
        let flows = std::mem::take(&mut gathered.flows);
        gathered.hellos = None;
        slot.launched.store(true, Ordering::Relaxed);
        drop(gathered);
        lock(&self.leases).handle_trial(&slot.lease, in_words(&slot.assignment));
        let (core, own, at) = (Arc::clone(self), Arc::clone(slot), *at);
        let thread = std::thread::Builder::new().name("sampler".to_owned());
        let spawned = thread.spawn(move || {
            trial::run(&core, &own, flows, at);
            core.trial_over(&own);
        });
        spawned.map(drop).map_err(|error| {
            let why = format!("no thread: {error}");
            slot.fail(&why);
            lock(&slot.capture).take();
            self.trial_over(slot);
            refuse(RefusalCode::Internal, why)
        })
    }

    /// Notes that the traffic of a foreign run began; its end is that of its lease.
    pub(crate) fn note_traffic(&self, lease: &str, what: String) {
        lock(&self.leases).handle_trial(lease, what);
    }

    /// Notes that a foreign run failed.
    pub(crate) fn note_failure(&self, lease: &str, why: &str) {
        lock(&self.leases).handle_trial_over(engine::now_ns(), lease, Some(why.to_owned()));
    }

    /// Gives back what a trial took that was launched, and notes its end.
    fn trial_over(&self, slot: &TrialSlot) {
        lock(&slot.grant).take();
        lock(&slot.tuned).take();
        // A guest that has several under way keeps the results of the last: no limit counts their memory. A trial
        // that was aborted says nothing of those after it.
        let is_guest = self.is_guests(&slot.lease);
        let mut trials = lock(&self.trials);
        let is_own = |other: &Arc<TrialSlot>| std::ptr::eq(Arc::as_ptr(other), slot);
        if is_guest && trials.values().any(is_own) {
            trials.retain(|(lease, _), other| {
                *lease != slot.lease || is_own(other) || !other.is_over()
            });
        }
        drop(trials);
        let failed = slot.failure();
        lock(&self.leases).handle_trial_over(engine::now_ns(), &slot.lease, failed);
    }

    /// Returns the state of a trial, and what it has to hand over from `from` on.
    pub fn poll_trial(
        &self,
        lease: &str,
        trial: TrialId,
        from: PollFrom,
    ) -> Result<TrialStatus, Refusal> {
        let (slot, wait) = self.looked_at(lease, trial, from)?;
        slot.wait_while(wait, |state| !state.is_over());
        Ok(status(&slot, from))
    }

    /// Does the same, and waits without a thread.
    pub(crate) async fn poll_when_over(
        &self,
        lease: &str,
        trial: TrialId,
        from: PollFrom,
    ) -> Result<TrialStatus, Refusal> {
        let (slot, wait) = self.looked_at(lease, trial, from)?;
        slot.while_so(wait, |state| !state.is_over()).await;
        Ok(status(&slot, from))
    }

    /// Returns a trial, and how long the answer may wait for its end.
    fn looked_at(
        &self,
        lease: &str,
        trial: TrialId,
        from: PollFrom,
    ) -> Result<(Arc<TrialSlot>, Duration), Refusal> {
        let now = engine::now_ns();
        lock(&self.leases).handle_seen(now, lease)?;
        let wait = Duration::from_nanos(from.wait_ns).min(END_WAIT_MAX);
        let slot = self.slot(lease, trial)?;
        lock(&slot.gathered).session.handle_fetch(now);
        slot.look_for_refusals();
        Ok((slot, wait))
    }

    /// Returns part `part`, from 0, of the file that a trial captured, nothing behind the last; the
    /// parts before it have arrived and are forgotten.
    pub fn capture_part(
        &self,
        lease: &str,
        trial: TrialId,
        part: usize,
    ) -> Result<Vec<u8>, Refusal> {
        let now = engine::now_ns();
        lock(&self.leases).handle_seen(now, lease)?;
        let slot = self.slot(lease, trial)?;
        lock(&slot.gathered).session.handle_fetch(now);
        let (mut parts, _) = lock(&slot.record)
            .capture_parts
            .hand_over(part, 1, |_| true);
        Ok(parts.pop().unwrap_or_default())
    }

    /// Returns whether the senders of a trial have stopped and all they sent was acknowledged; a
    /// trial that is not there any more delivers nothing.
    pub(crate) fn delivered(&self, lease: &str, trial: TrialId) -> bool {
        self.slot(lease, trial)
            .is_ok_and(|slot| slot.delivered.load(Ordering::Relaxed))
    }

    /// Ends the traffic of a running trial now; it then finishes with what was measured.
    pub fn stop(&self, lease: &str, trial: TrialId) -> Result<(), Refusal> {
        lock(&self.leases).handle_seen(engine::now_ns(), lease)?;
        self.slot(lease, trial)?
            .abort
            .store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Ends a trial before its time.
    pub fn abort(&self, lease: &str, trial: TrialId) -> Result<(), Refusal> {
        let slot = lock(&self.trials).remove(&(lease.to_owned(), trial));
        let slot = slot.ok_or_else(|| refuse(RefusalCode::Gone, "no such trial"))?;
        slot.fail("ended by the controller");
        Ok(())
    }

    /// Applies every deadline; to be called about once a second.
    pub fn poll_deadlines(&self) {
        let now = engine::now_ns();
        // Whoever holds it reads the host, which may take a while: then it is in use.
        if let Some(mut watch) = try_lock(&self.watch) {
            watch.poll_deadline(now);
        }
        self.log.tell(|ledger| ledger.poll(now));
        let expired = lock(&self.leases).poll_expired(now);
        for (lease, ending) in expired {
            self.end_trials_of(
                &lease.asked.key,
                &format!("its run lost the host: {ending}"),
            );
            self.note_end(&lease, ending);
        }
        lock(&self.trials).retain(|_, slot| {
            let mut gathered = lock(&slot.gathered);
            let forget = gathered.session.poll_deadline(now);
            if matches!(gathered.session.state(), TrialState::Failed { .. }) {
                slot.end(gathered);
            }
            !forget
        });
    }

    /// Gives memory back that runs took, or `gone` connections so far; to be called about once a second.
    pub(crate) fn trim(&self, gone: u64) {
        // Only while nobody measures: it takes some hundred microseconds.
        let (over, held) = self.runs();
        let mark = over + gone / CONNECTIONS_A_TRIM;
        if held == 0 && self.trimmed.swap(mark, Ordering::Relaxed) != mark {
            engine::trim_heap();
        }
    }

    fn end_trials_of(&self, lease: &str, why: &str) {
        let mut trials = lock(&self.trials);
        for (_, slot) in trials.extract_if(|key, _| key.0 == lease) {
            slot.fail(why);
        }
    }

    fn require_admitted(&self, lease: &str) -> Result<(), Refusal> {
        match lock(&self.leases).handle_seen(engine::now_ns(), lease)? {
            Standing::Admitted { .. } => Ok(()),
            Standing::Waiting { place } => Err(refuse(
                RefusalCode::Busy,
                format!("the run is number {place} in the queue"),
            )),
        }
    }

    fn slot(&self, lease: &str, trial: TrialId) -> Result<Arc<TrialSlot>, Refusal> {
        lock(&self.trials)
            .get(&(lease.to_owned(), trial))
            .cloned()
            .ok_or_else(|| refuse(RefusalCode::Gone, "no such trial; it may have been reaped"))
    }
}

/// Refuses the cookie of another trial than `own` that expects flows: who has read it would have that trial's flows.
fn refuse_taken(
    trials: &HashMap<(String, TrialId), Arc<TrialSlot>>,
    own: &(String, TrialId),
    assignment: &Assignment,
    cookie: [u8; 16],
) -> Result<(), Refusal> {
    let expects = |end| end == End::Server;
    let is_same = |(key, slot): (&(String, TrialId), &Arc<TrialSlot>)| {
        key != own && expects(slot.assignment.end) && slot.cookie == cookie && !slot.is_over()
    };
    if expects(assignment.end) && trials.iter().any(is_same) {
        let error = "the cookie is that of another trial in progress: each has one of its own";
        return Err(refuse(RefusalCode::BadRequest, error));
    }
    Ok(())
}

/// Returns the state of a trial, and what it has to hand over from `from` on.
fn status(slot: &TrialSlot, from: PollFrom) -> TrialStatus {
    // The state first: once it says finished, the record is complete.
    let state = lock(&slot.gathered).session.state().clone();
    let mut record = lock(&slot.record);
    let (samples, more_samples) = record.samples.hand_over(from.sample, SAMPLES_PER_ANSWER);
    let (flows, more_flows) = if state == TrialState::Finished && !more_samples {
        let mut bytes = 0;
        let fits = |flow: &FlowOutcome| {
            bytes += written_bytes(flow);
            bytes <= FLOW_BYTES_PER_ANSWER
        };
        record.flows.hand_over(from.flow, FLOWS_PER_ANSWER, fits)
    } else {
        (Vec::new(), more_samples)
    };
    let is_last = state == TrialState::Finished && !more_samples && !more_flows;
    let stacks = if is_last {
        record.stacks.clone()
    } else {
        Vec::new()
    };
    TrialStatus {
        state,
        at_ns: Some(engine::now_ns()),
        next: from.sample + samples.len(),
        samples,
        flows,
        more: more_samples || more_flows,
        stacks,
        notes: record.notes.clone(),
        capture: record.capture.clone().filter(|_| is_last),
    }
}

/// Returns about how long a flow outcome is as JSON.
fn written_bytes(flow: &FlowOutcome) -> usize {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let settings = flow.settings.into_iter().map(|setting| {
        let texts = [
            &setting.requested,
            &setting.granted,
            &setting.effective,
            &setting.capped_by,
            &setting.why,
        ];
        SETTING_BYTES + setting.name.len() + texts.into_iter().map(length).sum::<usize>()
    });
    let times = [&flow.latency, &flow.lateness].into_iter().flatten();
    let buckets: usize = times.map(|times| times.buckets.len()).sum();
    FLOW_BYTES + settings.sum::<usize>() + buckets * BUCKET_BYTES + length(&flow.ended_early)
}

/// Returns what a trial is, for the log.
fn in_words(assignment: &Assignment) -> String {
    let groups = assignment.of_groups();
    let words = groups.iter().map(|group| {
        let traffic = group.traffic.in_words();
        let transport = group.manner.transport.title();
        let flows = counted(group.flows.len(), "flow");
        format!("{transport} {traffic}, {flows}")
    });
    words.collect::<Vec<_>>().join("; in addition ")
}

/// Begins the capture of a trial if one is asked for; says why there is none, for one to callers who
/// may not.
fn begin_capture(
    caller: &Caller,
    assignment: &Assignment,
    own: &OwnPorts,
) -> Option<Result<RunningCapture, String>> {
    let options = assignment.probes.capture?;
    Some(match caller.check(Scope::Capture) {
        Ok(()) => RunningCapture::begin(options, assignment, own),
        Err(refusal) => Err(refusal.error),
    })
}

fn admitted(
    lease: String,
    admission: linerate_model::run::Admission,
    standing: Standing,
) -> Admitted {
    let (queue_place, shared_with) = match standing {
        Standing::Admitted { shared_with } => (None, shared_with),
        Standing::Waiting { place } => (Some(place), 0),
    };
    Admitted {
        lease,
        queue_place,
        admission,
        shared_with,
    }
}
