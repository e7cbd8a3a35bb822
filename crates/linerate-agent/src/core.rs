//! The host's part itself: flows, engine, observers, one thread a trial.
//!
//! Everything that may change a state machine goes through the two locks of leases and trials; neither
//! is held while a flow connects, a trial runs or a file is read. A third is held by whoever reads the
//! host for its watchers, so that the others get the same reading.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_engine as engine;
use linerate_model::capture::CaptureOutcome;
use linerate_model::manner::Transport;
use linerate_model::sample::End;
use linerate_model::setting::SettingPool;
use linerate_model::{TrialId, hex};

use crate::api::{
    API_VERSION, AdmitRequest, Admitted, AgentInfo, Assignment, Busy, FlowPort, FlowSettings,
    LimitsInfo, PROGRAM, PollFrom, Prepared, Refusal, RefusalCode, StartRequest, TrialState,
    TrialStatus,
};
use crate::session::leases::{Disconnection, LeaseError, Leases, Standing, expected_left};
use crate::session::trial::{SessionError, TrialSession};
use capture::RunningCapture;
pub(crate) use flows::CONNECT_DEADLINE;
use flows::{connect_all, expected, is_placed, listen_all, ports};
use limits::flow_rate_max;
pub(crate) use limits::open_files_max;
pub use limits::{Lacking, check_here};
pub(crate) use slot::OtherEnd;
use slot::{Gathered, TrialRecord, TrialSlot};
use watch::Watch;

/// The frames of a trial, where they were asked for.
mod capture;
/// Flows of datagrams: which are expected, and how they are taken up.
mod datagrams;
/// Data connections: opened by the connecting end, taken up by the accepting one.
mod flows;
/// What the host tells of itself.
mod host;
/// What is refused: what no honest controller sends, and what a caller may not.
mod limits;
/// Which CPUs the workers run on.
mod placement;
/// One trial on this host: its flows as they come, and its record.
mod slot;
/// One trial while it runs: launch, sample on the ticks, collect.
mod trial;
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
/// Flow outcomes of one answer: 1.5 MB as JSON.
const FLOWS_PER_ANSWER: usize = 1024;
/// Flows whose round trip is read when they are prepared: a trial's paths differ little.
const TRIPS_READ: usize = 16;
/// Longest label of a run.
const LABEL_CHARS_MAX: usize = 200;

/// What the agent allows callers that hold no token.
pub type Limits = LimitsInfo;

/// How an agent is set up.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// The host's name as others see it.
    pub host_name: String,
    /// Shared secret of those who may observe from other hosts.
    pub token: Option<String>,
    /// Limits for callers without it.
    pub limits: Limits,
    /// Whether the host is a namespace of a lab.
    pub lab: bool,
}

/// What a caller may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Holds the token, or calls from this host.
    Trusted,
    /// May measure within the limits; carries why it may not observe.
    Stranger(String),
}

/// An agent without its way in: the same for HTTP and in-process callers.
#[derive(Debug)]
pub struct Core {
    config: AgentConfig,
    leases: Mutex<Leases>,
    trials: Mutex<HashMap<(String, TrialId), Arc<TrialSlot>>>,
    watch: Mutex<Watch>,
}

/// Takes a lock even if a thread panicked while it held it: the state machines behind it are
/// whole after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refuse(code: RefusalCode, error: impl std::fmt::Display) -> Refusal {
    Refusal {
        error: error.to_string(),
        code,
    }
}

impl From<LeaseError> for Refusal {
    fn from(error: LeaseError) -> Self {
        let code = match error {
            LeaseError::Busy { .. } | LeaseError::Full => RefusalCode::Busy,
            LeaseError::NoLease => RefusalCode::Gone,
        };
        refuse(code, error)
    }
}

impl Core {
    /// Returns an agent that nobody uses yet.
    pub fn new(config: AgentConfig) -> Self {
        Self {
            config,
            leases: Mutex::default(),
            trials: Mutex::default(),
            watch: Mutex::default(),
        }
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
            boot: linerate_observe::boot_id(Path::new("/proc")),
            observe_refused: match caller {
                Caller::Trusted => None,
                Caller::Stranger(why) => Some(why.clone()),
            },
            busy: leases.holder().map(|(lease, waiting)| Busy {
                label: lease.label.clone(),
                since: linerate_model::Nanos(now.saturating_sub(lease.since_ns)),
                expected_left: expected_left(lease, now),
                waiting,
            }),
            limits: self.config.limits.clone(),
        }
    }

    /// Takes up a request for the host.
    pub fn admit(&self, request: &AdmitRequest) -> Result<Admitted, Refusal> {
        if request.label.chars().count() > LABEL_CHARS_MAX {
            let error = format!("the label is longer than {LABEL_CHARS_MAX} characters");
            return Err(refuse(RefusalCode::BadRequest, error));
        }
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| refuse(RefusalCode::Internal, error))?;
        let key = hex::encode(&key);
        let label = request.label.clone();
        let standing = lock(&self.leases).handle_request(
            engine::now_ns(),
            key.clone(),
            label,
            request.admission,
            request.expected,
        )?;
        Ok(admitted(key, request.admission, standing))
    }

    /// Keeps a lease alive and returns its present standing.
    pub fn renew(&self, lease: &str) -> Result<Admitted, Refusal> {
        let mut leases = lock(&self.leases);
        let standing = leases.handle_seen(engine::now_ns(), lease)?;
        let admission = leases.admission(lease).ok_or(LeaseError::NoLease)?;
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
        if !lock(&self.leases).handle_leave(lease) {
            return Err(LeaseError::NoLease.into());
        }
        self.end_trials_of(lease, "the run left");
        Ok(())
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
        self.check_assignment(caller, &assignment)?;
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
        if assignment.probes.profile {
            linerate_observe::load_symbols(Path::new("/proc"));
        }
        let rate_max = self.rate_limit(caller);
        assignment.flow_rate_max = flow_rate_max(&assignment, rate_max);
        let listening = match assignment.end {
            // Places accept connections of their own: nobody has to come first.
            End::Server if is_placed(&assignment) => listen_all(&assignment)?,
            End::Server | End::Client => Vec::new(),
        };
        let ports = ports(&listening);
        // Before the first flow connects, whose handshake says what later segments mean.
        let capture = begin_capture(caller, &assignment, &ports);
        let (flows, expected) = match assignment.end {
            End::Client => (
                connect_all(&assignment, &other_end, cookie)?,
                HashMap::new(),
            ),
            End::Server if is_placed(&assignment) => (listening, HashMap::new()),
            End::Server => (Vec::new(), expected(&assignment)),
        };
        let trips = flows
            .iter()
            .take(TRIPS_READ)
            .filter_map(engine::Flow::round_trip);
        let round_trip_ns = trips.map(|trip| trip.0).max();
        let settings = flows
            .iter()
            .zip(&assignment.flows)
            .map(|(flow, plan)| FlowSettings {
                flow: plan.flow,
                settings: flow.settings().clone(),
            })
            .collect();
        let (capture, no_capture) = match capture {
            Some(Ok(capture)) => (Some(capture), None),
            Some(Err(why)) => (None, Some(CaptureOutcome::Missing(why))),
            None => (None, None),
        };
        let slot = TrialSlot {
            other_end,
            cookie,
            capture: Mutex::new(capture),
            observe: *caller == Caller::Trusted,
            rate_max,
            gathered: Mutex::new(Gathered {
                session: TrialSession::new(engine::now_ns(), expected.len() as u32),
                flows,
                pool: SettingPool::default(),
                expected,
            }),
            changed: Condvar::new(),
            record: Mutex::new(TrialRecord {
                capture: no_capture,
                ..TrialRecord::default()
            }),
            abort: AtomicBool::new(false),
            delivered: AtomicBool::new(false),
            assignment,
        };
        let slot = Arc::new(slot);
        let over_unix = slot.assignment.manner.transport == Transport::Unix;
        let socket_name = match slot.assignment.end {
            End::Server if over_unix => Some(unix::listen(&slot)?),
            End::Client | End::Server => None,
        };
        lock(&self.trials).insert(key, slot);
        Ok(Prepared {
            settings,
            rate_limit: rate_max,
            ports,
            socket_name,
            round_trip_ns,
            warm_up_more,
        })
    }

    /// Gives back the code that brought us here, unless more than so many trials are under way: it
    /// comes back page by page, which they would feel.
    fn give_back_text(&self, trials: usize) {
        let slots: Vec<_> = lock(&self.trials).values().cloned().collect();
        if slots.iter().filter(|slot| !slot.is_over()).count() <= trials {
            engine::give_back_text();
        }
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
        let gathering = |gathered: &mut Gathered| {
            matches!(gathered.session.state(), TrialState::Gathering { .. })
        };
        let (mut gathered, _) = slot
            .changed
            .wait_timeout_while(lock(&slot.gathered), ARRIVAL_WAIT, gathering)
            .unwrap_or_else(PoisonError::into_inner);
        gathered
            .session
            .handle_start(engine::now_ns(), at)
            .map_err(|error| match error {
                SessionError::Late(_) => refuse(RefusalCode::Late, error),
                error => refuse(RefusalCode::Flows, error),
            })?;
        let flows = std::mem::take(&mut gathered.flows);
        drop(gathered);
        let (core, at) = (Arc::clone(self), *at);
        let thread = std::thread::Builder::new().name("sampler".to_owned());
        thread
            .spawn(move || trial::run(&core, &slot, flows, at))
            .map_err(|error| refuse(RefusalCode::Internal, format!("no thread: {error}")))?;
        Ok(())
    }

    /// Returns the state of a trial, and what it has to hand over from `from` on.
    pub fn poll_trial(
        &self,
        lease: &str,
        trial: TrialId,
        from: PollFrom,
    ) -> Result<TrialStatus, Refusal> {
        lock(&self.leases).handle_seen(engine::now_ns(), lease)?;
        let slot = self.slot(lease, trial)?;
        let wait = Duration::from_nanos(from.wait.0).min(END_WAIT_MAX);
        let goes_on = |gathered: &mut Gathered| !gathered.session.state().is_over();
        let (gathered, _) = slot
            .changed
            .wait_timeout_while(lock(&slot.gathered), wait, goes_on)
            .unwrap_or_else(PoisonError::into_inner);
        // The state first: once it says finished, the record is complete.
        let state = gathered.session.state().clone();
        drop(gathered);
        let mut record = lock(&slot.record);
        let (samples, more_samples) = record.samples.hand_over(from.sample, SAMPLES_PER_ANSWER);
        let (flows, more_flows) = match state == TrialState::Finished && !more_samples {
            true => record.flows.hand_over(from.flow, FLOWS_PER_ANSWER),
            false => (Vec::new(), more_samples),
        };
        let is_last = state == TrialState::Finished && !more_samples && !more_flows;
        let stacks = match is_last {
            true => record.stacks.clone(),
            false => Vec::new(),
        };
        Ok(TrialStatus {
            state,
            next: from.sample + samples.len(),
            samples,
            flows,
            more: more_samples || more_flows,
            stacks,
            notes: record.notes.clone(),
            capture: record.capture.clone().filter(|_| is_last),
        })
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
        let (mut parts, _) = lock(&slot.record).capture_parts.hand_over(part, 1);
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
        lock(&self.watch).poll_deadline(now);
        let expired = lock(&self.leases).poll_expired(now);
        for lease in expired {
            self.end_trials_of(&lease.key, "the controller fell silent");
        }
        lock(&self.trials).retain(|_, slot| {
            let forget = lock(&slot.gathered).session.poll_deadline(now);
            if matches!(
                lock(&slot.gathered).session.state(),
                TrialState::Failed { .. }
            ) {
                slot.abort.store(true, Ordering::Relaxed);
                slot.changed.notify_all();
            }
            !forget
        });
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

/// Begins the capture of a trial if one is asked for; says why there is none. The caller must be one
/// who may observe the host.
fn begin_capture(
    caller: &Caller,
    assignment: &Assignment,
    ports: &[FlowPort],
) -> Option<Result<RunningCapture, String>> {
    let options = assignment.probes.capture?;
    Some(match caller {
        Caller::Trusted => RunningCapture::begin(options, assignment, ports),
        Caller::Stranger(why) => Err(why.clone()),
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
