//! The host's part itself: flows, engine, observers, one thread a trial.
//!
//! Everything that may change a state machine goes through the two locks of [`Core`]; neither is
//! held while a flow connects, a trial runs or a file is read.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_engine as engine;
use linerate_engine::{Flow, FlowConfig};
use linerate_model::host::{Availability, Fact, FactValue};
use linerate_model::manner::Transport;
use linerate_model::sample::{End, Sample};
use linerate_model::unit::{Bytes, Unit};
use linerate_model::workload::Part;
use linerate_model::{FlowId, TrialId};
use linerate_observe::ObserveConfig;

use crate::api::{
    API_VERSION, AdmitRequest, Admitted, AgentInfo, Assignment, Busy, FlowOutcome, FlowSettings,
    Inventory, InventoryRequest, LimitsInfo, Prepared, Refusal, RefusalCode, StartRequest,
    TrialState, TrialStatus,
};
use crate::serve::hello::Hello;
use crate::session::desk::{Answer, Desk, DeskError, expected_left};
use crate::session::trial::TrialSession;
use limits::{flow_rate_max, limit_rate};

/// Flows of datagrams: which are expected, and how they are taken up.
mod datagrams;
/// What is refused: what no honest controller sends, and what a caller may not.
mod limits;
mod trial;

/// How long one data connection may take to open.
pub(crate) const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// How long a start waits for flows that are on their way.
const ARRIVAL_WAIT: Duration = Duration::from_secs(10);
/// How long the memory copy of an inventory runs.
const MEMORY_COPY_LENGTH: Duration = Duration::from_millis(150);
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
    desk: Mutex<Desk>,
    trials: Mutex<HashMap<(String, TrialId), Arc<TrialSlot>>>,
}

/// One trial on this host.
struct TrialSlot {
    assignment: Assignment,
    cookie: [u8; 16],
    observe: bool,
    /// What all its flows together may receive.
    rate_max: Option<linerate_model::BitsPerSec>,
    gathered: Mutex<Gathered>,
    /// Signalled when a flow arrives or the trial fails.
    changed: Condvar,
    record: Mutex<Record>,
    abort: AtomicBool,
}

struct Gathered {
    session: TrialSession,
    flows: Vec<Flow>,
}

#[derive(Default)]
struct Record {
    /// The number of the first of `samples`; those before were handed over.
    first: usize,
    samples: Vec<Sample>,
    flows: Vec<FlowOutcome>,
    notes: Vec<String>,
}

impl Record {
    /// Returns the samples from number `from` on. Asking for it says that those before have
    /// arrived, so they are forgotten: a long trial holds no more than one look's worth.
    fn hand_over(&mut self, from: usize) -> Vec<Sample> {
        let arrived = from.saturating_sub(self.first).min(self.samples.len());
        self.samples.drain(..arrived);
        self.first += arrived;
        match from == self.first {
            true => self.samples.clone(),
            // A number that was never handed out.
            false => Vec::new(),
        }
    }
}

impl std::fmt::Debug for TrialSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrialSlot")
            .field("trial", &self.assignment.trial)
            .finish_non_exhaustive()
    }
}

/// Takes a lock even if a thread panicked while it held it: the state machines behind it are
/// whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refuse(code: RefusalCode, error: impl std::fmt::Display) -> Refusal {
    Refusal {
        error: error.to_string(),
        code,
    }
}

impl From<DeskError> for Refusal {
    fn from(error: DeskError) -> Self {
        let code = match error {
            DeskError::Busy { .. } | DeskError::Full => RefusalCode::Busy,
            DeskError::NoLease => RefusalCode::Gone,
        };
        refuse(code, error)
    }
}

impl Core {
    /// Returns an agent that nobody uses yet.
    pub fn new(config: AgentConfig) -> Self {
        Self {
            config,
            desk: Mutex::default(),
            trials: Mutex::default(),
        }
    }

    /// Returns the set-up.
    pub fn config(&self) -> &AgentConfig {
        &self.config
    }

    /// Returns who the agent is and whether it is busy.
    pub fn info(&self, caller: &Caller) -> AgentInfo {
        let now = engine::now_ns();
        let desk = lock(&self.desk);
        AgentInfo {
            program: "linerate".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            api: API_VERSION,
            host_name: self.config.host_name.clone(),
            lab: self.config.lab,
            observe_refused: match caller {
                Caller::Trusted => None,
                Caller::Stranger(why) => Some(why.clone()),
            },
            busy: desk.holder().map(|(lease, waiting)| Busy {
                label: lease.label.clone(),
                since: linerate_model::Nanos(now.saturating_sub(lease.since_ns)),
                expected_left: expected_left(lease, now),
                waiting,
            }),
            limits: self.config.limits.clone(),
        }
    }

    /// Returns the facts and observers that the caller may see.
    pub fn inventory(&self, caller: &Caller, wanted: &InventoryRequest) -> Inventory {
        let config = self.observe_config(*caller == Caller::Trusted, Vec::new());
        let address = wanted
            .address
            .as_deref()
            .and_then(|address| address.parse().ok());
        let mut snapshot = match caller {
            Caller::Trusted => linerate_observe::facts(&config),
            Caller::Stranger(_) => linerate_model::host::Snapshot::default(),
        };
        if wanted.memory_copy {
            let name = "memory.copy_bytes_per_s".to_owned();
            snapshot.facts.push(Fact {
                name,
                value: self.memory_copy(caller),
            });
            snapshot.facts.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Inventory {
            snapshot,
            observers: linerate_observe::availabilities(&config),
            link: address.and_then(linerate_observe::link_of_address),
        }
    }

    /// Measures the memory's copy rate, unless that would disturb a run.
    fn memory_copy(&self, caller: &Caller) -> FactValue {
        match caller {
            Caller::Stranger(why) => FactValue::Missing(why.clone()),
            Caller::Trusted if lock(&self.desk).holder().is_some() => {
                FactValue::Missing("the host was in use".to_owned())
            }
            Caller::Trusted => FactValue::Number(
                engine::memory_copy_bytes_per_s(MEMORY_COPY_LENGTH),
                Unit::Bytes,
            ),
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
        let key = to_hex(&key);
        let label = request.label.clone();
        let answer = lock(&self.desk).handle_request(
            engine::now_ns(),
            key.clone(),
            label,
            request.admission,
            request.expected,
        )?;
        Ok(admitted(key, request.admission, answer))
    }

    /// Keeps a lease alive and returns its present standing.
    pub fn renew(&self, lease: &str) -> Result<Admitted, Refusal> {
        let mut desk = lock(&self.desk);
        let answer = desk.handle_seen(engine::now_ns(), lease)?;
        let admission = desk.admission(lease).ok_or(DeskError::NoLease)?;
        Ok(admitted(lease.to_owned(), admission, answer))
    }

    /// Ends a lease and whatever trials it has.
    pub fn leave(&self, lease: &str) -> Result<(), Refusal> {
        if !lock(&self.desk).handle_leave(lease) {
            return Err(DeskError::NoLease.into());
        }
        self.end_trials_of(lease, "the run left");
        Ok(())
    }

    /// Makes the flows of a trial, or expects them.
    pub fn prepare(
        &self,
        caller: &Caller,
        lease: &str,
        mut assignment: Assignment,
    ) -> Result<Prepared, Refusal> {
        self.require_admitted(lease)?;
        self.check_assignment(caller, &assignment)?;
        let cookie = from_hex(&assignment.cookie)
            .ok_or_else(|| refuse(RefusalCode::BadRequest, "the cookie is not 32 hex digits"))?;
        let key = (lease.to_owned(), assignment.trial);
        // A repeated trial takes the place of what is left of the earlier try.
        if let Some(old) = lock(&self.trials).remove(&key) {
            old.fail("prepared again");
        }
        self.make_room(lease)?;
        let rate_max = self.rate_limit(caller);
        assignment.flow_rate_max = flow_rate_max(&assignment, rate_max);
        let flows = match assignment.end {
            End::Client => connect_all(&assignment, cookie)?,
            End::Server => Vec::new(),
        };
        let settings = flows
            .iter()
            .zip(&assignment.flows)
            .map(|(flow, plan)| FlowSettings {
                flow: plan.flow,
                settings: flow.settings().to_vec(),
            })
            .collect();
        let missing = assignment.flows.len() - flows.len();
        let slot = TrialSlot {
            cookie,
            observe: *caller == Caller::Trusted,
            rate_max,
            gathered: Mutex::new(Gathered {
                session: TrialSession::new(engine::now_ns(), missing as u32),
                flows,
            }),
            changed: Condvar::new(),
            record: Mutex::default(),
            abort: AtomicBool::new(false),
            assignment,
        };
        lock(&self.trials).insert(key, Arc::new(slot));
        Ok(Prepared {
            settings,
            rate_limit: rate_max,
            ports: Vec::new(),
            socket_name: None,
        })
    }

    /// Takes up a data connection that said whose flow it is; hands it back when nobody waits.
    pub fn deliver(&self, hello: Hello, stream: std::net::TcpStream) -> Result<(), String> {
        self.deliver_socket(hello, stream.into(), Transport::Tcp)
    }

    /// Takes up a socket that said whose flow it is, and what carries it.
    fn deliver_socket(
        &self,
        hello: Hello,
        socket: OwnedFd,
        transport: Transport,
    ) -> Result<(), String> {
        let slot = lock(&self.trials)
            .values()
            .find(|slot| slot.cookie == hello.cookie)
            .cloned();
        let slot = slot.ok_or("no trial waits for this connection")?;
        let plan = slot
            .assignment
            .flows
            .iter()
            .find(|plan| plan.flow == hello.flow)
            .ok_or("the trial has no such flow")?;
        let wanted = slot.assignment.manner.transport;
        if (wanted == Transport::Udp) != (transport == Transport::Udp) {
            return Err("the trial wants another transport".to_owned());
        }
        let flow = engine::adopt(flow_config(&slot.assignment, plan.flow, plan.part), socket)
            .map_err(|error| with_causes(&error))?;
        limit_rate(&flow, &slot.assignment).map_err(|refusal| refusal.error)?;
        let mut gathered = lock(&slot.gathered);
        if !matches!(gathered.session.state(), TrialState::Gathering { .. }) {
            return Err("the trial has all its flows already".to_owned());
        }
        if transport == Transport::Udp {
            // Lost or not: a client that does not hear it asks again.
            let _ = flow.confirm(&hello.encode());
        }
        gathered.flows.push(flow);
        gathered.session.handle_flow();
        slot.changed.notify_all();
        Ok(())
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
        let (length_ns, most) = (
            at.stop_ns.saturating_sub(at.start_ns),
            slot.assignment.length,
        );
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
            .map_err(|error| refuse(RefusalCode::Flows, error))?;
        let flows = std::mem::take(&mut gathered.flows);
        drop(gathered);
        let (core, at) = (Arc::clone(self), *at);
        let thread = std::thread::Builder::new().name("sampler".to_owned());
        thread
            .spawn(move || trial::run(&core, &slot, flows, at))
            .map_err(|error| refuse(RefusalCode::Internal, format!("no thread: {error}")))?;
        Ok(())
    }

    /// Returns the state of a trial and its samples from number `from` on.
    pub fn poll_trial(
        &self,
        lease: &str,
        trial: TrialId,
        from: usize,
    ) -> Result<TrialStatus, Refusal> {
        lock(&self.desk).handle_seen(engine::now_ns(), lease)?;
        let slot = self.slot(lease, trial)?;
        // The state first: once it says finished, the record is complete.
        let state = lock(&slot.gathered).session.state().clone();
        let mut record = lock(&slot.record);
        let samples = record.hand_over(from);
        let finished = state == TrialState::Finished;
        Ok(TrialStatus {
            state,
            next: from + samples.len(),
            samples,
            flows: if finished {
                record.flows.clone()
            } else {
                Vec::new()
            },
            notes: record.notes.clone(),
        })
    }

    /// Ends the traffic of a running trial now; it then finishes with what was measured.
    pub fn stop(&self, lease: &str, trial: TrialId) -> Result<(), Refusal> {
        lock(&self.desk).handle_seen(engine::now_ns(), lease)?;
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
        let expired = lock(&self.desk).poll_expired(now);
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

    fn observe_config(&self, host_wide: bool, threads: Vec<(String, i32)>) -> ObserveConfig {
        ObserveConfig {
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            lab: self.config.lab,
            host_wide,
            threads,
        }
    }

    fn end_trials_of(&self, lease: &str, why: &str) {
        let mut trials = lock(&self.trials);
        for (_, slot) in trials.extract_if(|key, _| key.0 == lease) {
            slot.fail(why);
        }
    }

    fn require_admitted(&self, lease: &str) -> Result<(), Refusal> {
        match lock(&self.desk).handle_seen(engine::now_ns(), lease)? {
            Answer::Admitted { .. } => Ok(()),
            Answer::Waiting { place } => Err(refuse(
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

impl TrialSlot {
    fn fail(&self, why: &str) {
        lock(&self.gathered)
            .session
            .handle_failure(engine::now_ns(), why.to_owned());
        self.abort.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

fn admitted(lease: String, admission: linerate_model::run::Admission, answer: Answer) -> Admitted {
    let (queue_place, shared_with) = match answer {
        Answer::Admitted { shared_with } => (None, shared_with),
        Answer::Waiting { place } => (Some(place), 0),
    };
    Admitted {
        lease,
        queue_place,
        admission,
        shared_with,
    }
}

fn flow_config(assignment: &Assignment, flow: FlowId, part: Part) -> FlowConfig {
    let mut manner = assignment.manner.clone();
    // Only TCP paces itself without a queueing discipline that does (fq): datagrams are paced by
    // their sender.
    let paced = manner.transport == Transport::Udp && part == Part::Sender;
    if let Some(most) = assignment.flow_rate_max.filter(|_| paced) {
        let most = most.0.max(8.0) as u64;
        manner.rate_bps = Some(manner.rate_bps.map_or(most, |rate| rate.min(most)));
    }
    FlowConfig {
        flow,
        end: assignment.end,
        part,
        traffic: assignment.traffic.clone(),
        options: assignment.options.clone(),
        manner,
    }
}

/// Opens every flow of the connecting end, one after another.
fn connect_all(assignment: &Assignment, cookie: [u8; 16]) -> Result<Vec<Flow>, Refusal> {
    let bad = |what: &str| refuse(RefusalCode::BadRequest, what);
    let peer = assignment
        .peer
        .as_deref()
        .ok_or_else(|| bad("the connecting end needs a peer"))?;
    let peer = peer
        .parse()
        .map_err(|_| bad("the peer is not ADDRESS:PORT"))?;
    let bind = match &assignment.bind {
        None => None,
        Some(address) => {
            let address = address
                .parse()
                .map_err(|_| bad("the bind address is not an address"))?;
            Some(std::net::SocketAddr::new(address, 0))
        }
    };
    assignment
        .flows
        .iter()
        .map(|plan| {
            let config = flow_config(assignment, plan.flow, plan.part);
            let hello = Hello {
                cookie,
                flow: plan.flow,
            }
            .encode();
            let flow = engine::connect(config, peer, bind, &hello, CONNECT_DEADLINE)
                .map_err(|error| refuse(RefusalCode::Flows, with_causes(&error)))?;
            limit_rate(&flow, assignment)?;
            Ok(flow)
        })
        .collect()
}

/// Returns an error's text with those of its causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 16];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Returns the bytes of one sample in memory, for the bound on a trial's record.
const SAMPLE_BYTES: Bytes = Bytes(size_of::<Sample>() as u64);

/// What an observer said when asked after a trial.
fn degraded(before: &[Availability], after: &[Availability]) -> Vec<String> {
    after
        .iter()
        .filter(|now| now.missing.is_some())
        .filter(|now| {
            before
                .iter()
                .any(|then| then.observer == now.observer && then.missing.is_none())
        })
        .map(|now| {
            format!(
                "observer {} failed: {}",
                now.observer,
                now.missing.as_deref().unwrap_or("")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_arrived_is_forgotten_and_the_rest_can_be_asked_for_again() {
        let sample = |value| Sample {
            metric: linerate_model::metric::Metric::CpuUser,
            subject: linerate_model::sample::Subject::Host,
            at_ns: 0,
            value,
        };
        let mut record = Record {
            samples: (0..5).map(sample).collect(),
            ..Record::default()
        };
        let values = |samples: Vec<Sample>| -> Vec<i64> {
            samples.into_iter().map(|sample| sample.value).collect()
        };
        assert_eq!(values(record.hand_over(0)), [0, 1, 2, 3, 4]);
        assert_eq!(values(record.hand_over(3)), [3, 4]);
        assert_eq!(
            values(record.hand_over(3)),
            [3, 4],
            "an answer that was lost is repeated"
        );
        record.samples.push(sample(5));
        assert_eq!(values(record.hand_over(5)), [5]);
        assert_eq!(
            values(record.hand_over(0)),
            [] as [i64; 0],
            "what has arrived is gone"
        );
        assert_eq!(
            values(record.hand_over(9)),
            [] as [i64; 0],
            "and what is to come is not there"
        );
        assert_eq!(record.samples.len(), 0);
    }

    #[test]
    fn hex_goes_both_ways() {
        let bytes: [u8; 16] = std::array::from_fn(|at| (at * 17) as u8);
        assert_eq!(from_hex(&to_hex(&bytes)), Some(bytes));
        for bad in [
            "",
            "00",
            "zz112233445566778899aabbccddeeff",
            "é0112233445566778899aabbccddeef",
        ] {
            assert_eq!(from_hex(bad), None, "{bad}");
        }
    }
}
