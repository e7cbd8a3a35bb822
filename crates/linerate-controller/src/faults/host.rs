//! An agent of a scenario: its leases and trial sessions are the real ones, its traffic is arithmetic.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use linerate_agent::api::{
    API_VERSION, AdmitRequest, Admitted, Agent, AgentError, AgentInfo, Assignment, ClockReading,
    Inventory, InventoryRequest, LimitsInfo, Loss, Observation, ObservationRequest, PROGRAM,
    PollFrom, Prepared, Refusal, RefusalCode, StartRequest, TrialState, TrialStatus,
};
use linerate_agent::session::leases::{Asking, LEASE_NS, Leases, Standing};
use linerate_agent::session::trial::{KEEP_NS, OVERTIME_NS, SessionError, TrialSession};
use linerate_model::experiment::Timing;
use linerate_model::metric::Metric;
use linerate_model::run::{Admission, FlowOutcome};
use linerate_model::sample::{End, Sample, Subject};
use linerate_model::setting::{Settings, name};
use linerate_model::workload::{Part, Setting};
use linerate_model::{Nanos, TrialId};
use rand::{Rng as _, RngExt as _};
use rand_pcg::Pcg64;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Time;

/// Payload that each flow moves.
pub(super) const BYTES_PER_MS: u64 = 1_000;
/// What each socket buffer holds.
const BUFFER_BYTES: u64 = 65_536;
/// How long a controller waits for an answer, and to say an end.
const ANSWER_NS: u64 = 15_000_000_000;
const END_NS: u64 = 3_000_000_000;
/// How long a start waits for flows.
const ARRIVAL_NS: u64 = 10_000_000_000;
/// How long an end tries to connect a flow.
const CONNECT_NS: u64 = 5_000_000_000;
/// Samples of one answer.
const SAMPLES_PER_ANSWER: usize = 200;
/// What a host says of a trial that it ends.
pub(super) const BEYOND: &str = "carried too much";
/// How late a host reads that reads late.
const LATE_NS: u64 = 500_000_000;
/// Where every clock of a host begins.
const BOOT_NS: i128 = 1 << 60;

/// What happens to a host for a while.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub during_ns: Range<u64>,
    pub what: Affliction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Affliction {
    /// Its process is gone; when it comes back it knows of nothing.
    Dead,
    /// Its process does nothing, and then goes on.
    Stopped,
    RequestsLost,
    AnswersLost,
    /// Each way takes this much longer.
    Slow {
        there_ns: u64,
        back_ns: u64,
    },
    /// Another run has the host.
    Taken,
    /// Each request is heard twice.
    Doubled,
    /// Answers are those of the request before.
    Reordered,
    /// Connections are reset in the middle of the answer.
    Reset,
    /// Flows of the trial do not arrive.
    FlowsLost,
    /// No flow can be connected: the path loses what asks for one.
    SynsLost,
    /// It ends its trial, which is beyond a limit.
    EndsTrial,
    /// It is not on its CPU while the first half second of a window passes.
    ReadsLate,
    /// Of what arrives it counts one half.
    CountsLess,
}

/// A host's CLOCK_MONOTONIC; right by default.
#[derive(Debug, Clone, Default)]
pub(super) struct Wrong {
    pub offset_ns: i64,
    pub drift_ppm: i64,
    /// When, and by how much, it jumps.
    pub jump: Option<(u64, i64)>,
}

impl Wrong {
    fn reads(&self, now_ns: u64) -> u64 {
        let jumped = self.jump.filter(|(at_ns, _)| now_ns >= *at_ns);
        let drift = i128::from(now_ns) * i128::from(self.drift_ppm) / 1_000_000;
        let jump = i128::from(jumped.map_or(0, |(_, by_ns)| by_ns));
        (BOOT_NS + i128::from(now_ns) + i128::from(self.offset_ns) + drift + jump) as u64
    }
}

/// A host of a scenario, as it begins; by default nothing happens to it.
#[derive(Debug, Clone, Default)]
pub(super) struct Fate {
    pub seed: u64,
    pub clock: Wrong,
    pub faults: Vec<Fault>,
    /// One way, and by how much more at the most.
    pub latency_ns: (u64, u64),
    /// How many of a thousand answers are something else than an agent would say.
    pub lies: u32,
    /// From when on.
    pub lies_from_ns: u64,
}

/// The agents at which flows arrive, once all are there.
pub(super) type Servers = Arc<OnceLock<Vec<Weak<SimulatedAgent>>>>;

/// The agent of a host.
pub(super) struct SimulatedAgent {
    name: String,
    fate: Fate,
    time: Arc<Time>,
    servers: Servers,
    state: Mutex<State>,
}

struct State {
    random: Pcg64,
    leases: Leases,
    keys: u64,
    trials: HashMap<(String, TrialId), SimulatedTrial>,
    /// The last answer of each operation.
    answers: HashMap<&'static str, Value>,
    deaths: usize,
}

struct SimulatedTrial {
    session: TrialSession,
    assignment: Assignment,
    at: Option<StartRequest>,
    stopped_ns: Option<u64>,
    reads_late: bool,
    counts_less: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refuse(code: RefusalCode, error: impl ToString) -> Refusal {
    Refusal {
        error: error.to_string(),
        code,
        next: None,
    }
}

impl SimulatedAgent {
    pub fn new(name: &str, fate: Fate, time: &Arc<Time>, servers: Servers) -> Self {
        use rand::SeedableRng as _;
        Self {
            name: name.to_owned(),
            time: Arc::clone(time),
            servers,
            state: Mutex::new(State {
                random: Pcg64::seed_from_u64(fate.seed),
                leases: Leases::default(),
                keys: 0,
                trials: HashMap::new(),
                answers: HashMap::new(),
                deaths: 0,
            }),
            fate,
        }
    }

    /// Holds that nothing of a run is left: at once where it was told, by the deadlines else.
    pub fn nothing_is_left(&self, now_ns: u64) {
        let mut state = lock(&self.state);
        // A clock that jumps back has all deadlines farther away.
        let jump_ns = self
            .fate
            .clock
            .jump
            .map_or(0, |(_, by_ns)| by_ns.unsigned_abs());
        let later_ns = now_ns + LEASE_NS + KEEP_NS + 2 * OVERTIME_NS + jump_ns;
        let is_told = self.fate.faults.is_empty() && self.fate.lies == 0;
        for at_ns in [now_ns, now_ns + LEASE_NS + 1, later_ns, later_ns + KEEP_NS] {
            state.live_until(&self.fate, at_ns);
            let (_, held) = state.leases.runs();
            let of_run = state.trials.len();
            if is_told || at_ns > later_ns {
                assert_eq!((held, of_run), (0, 0), "host {}", self.name);
            }
        }
    }

    /// Returns how often a run asked for the host.
    pub fn requests(&self) -> u64 {
        lock(&self.state).keys
    }

    fn fault(&self, what: impl Fn(Affliction) -> bool) -> Option<&Fault> {
        let now_ns = self.time.now_ns();
        let mut faults = self.fate.faults.iter();
        faults.find(|fault| fault.during_ns.contains(&now_ns) && what(fault.what))
    }

    fn is(&self, what: Affliction) -> bool {
        self.fault(|other| other == what).is_some()
    }

    fn pass(&self, ns: u64) {
        self.time.sleep(Duration::from_nanos(ns));
    }

    fn lost(&self, doing: &'static str, how: Loss, cause: String) -> AgentError {
        AgentError::Lost {
            address: self.name.clone(),
            doing,
            how,
            source: cause.into(),
        }
    }

    fn waited_in_vain(&self, doing: &'static str, since_ns: u64, most_ns: u64) -> AgentError {
        self.pass((since_ns + most_ns).saturating_sub(self.time.now_ns()));
        let waited = Nanos(most_ns);
        let cause = format!("this host waited {waited} for the answer");
        self.lost(doing, Loss::Silent, cause)
    }

    /// One request and its answer, on a way where anything may happen to them.
    fn ask<T: Serialize + DeserializeOwned>(
        &self,
        doing: &'static str,
        most_ns: u64,
        work: impl Fn(&mut State, u64) -> Result<T, Refusal>,
    ) -> Result<T, AgentError> {
        let began_ns = self.time.now_ns();
        let (there_ns, back_ns) = self.ways();
        if self.is(Affliction::Dead) {
            self.pass(there_ns);
            return Err(self.lost(doing, Loss::Gone, "Connection refused".to_owned()));
        }
        if self.is(Affliction::RequestsLost) {
            return Err(self.waited_in_vain(doing, began_ns, most_ns));
        }
        let stopped = self.fault(|what| what == Affliction::Stopped);
        if let Some(goes_on_ns) = stopped.map(|fault| fault.during_ns.end) {
            if goes_on_ns > began_ns + most_ns {
                return Err(self.waited_in_vain(doing, began_ns, most_ns));
            }
            self.pass(goes_on_ns - began_ns);
        }
        self.pass(there_ns);
        let mut answer = self.perform(&work);
        if self.is(Affliction::Doubled) {
            answer = self.perform(&work);
        }
        if self.is(Affliction::AnswersLost) {
            return Err(self.waited_in_vain(doing, began_ns, most_ns));
        }
        self.pass(back_ns);
        if self.time.now_ns() > began_ns + most_ns {
            return Err(self.waited_in_vain(doing, began_ns, most_ns));
        }
        if self.is(Affliction::Dead) || self.is(Affliction::Reset) {
            let cause = "Connection reset by peer".to_owned();
            return Err(self.lost(doing, Loss::Silent, cause));
        }
        let said = answer.map_err(|refusal| AgentError::Refused {
            address: Some(self.name.clone()),
            refusal,
        })?;
        self.heard(doing, said)
    }

    fn ways(&self) -> (u64, u64) {
        let mut state = lock(&self.state);
        let (least, more) = self.fate.latency_ns;
        let mut way = || least + state.random.random_range(0..=more);
        let (mut there_ns, mut back_ns) = (way(), way());
        let slow = self.fault(|what| matches!(what, Affliction::Slow { .. }));
        if let Some(Affliction::Slow {
            there_ns: there,
            back_ns: back,
        }) = slow.map(|fault| fault.what)
        {
            there_ns += there;
            back_ns += back;
        }
        (there_ns, back_ns)
    }

    fn perform<T>(
        &self,
        work: &impl Fn(&mut State, u64) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut state = lock(&self.state);
        state.live_until(&self.fate, self.time.now_ns());
        let host_ns = self.fate.clock.reads(self.time.now_ns());
        work(&mut state, host_ns)
    }

    /// Returns an answer as it is heard: as JSON, of this request or another, as it is or not.
    fn heard<T: Serialize + DeserializeOwned>(
        &self,
        doing: &'static str,
        said: T,
    ) -> Result<T, AgentError> {
        let mut state = lock(&self.state);
        if self.fate.lies == 0 && !self.is(Affliction::Reordered) {
            return Ok(said);
        }
        let mut said = serde_json::to_value(said).expect("plain values");
        let before = state.answers.insert(doing, said.clone());
        if let Some(before) = before.filter(|_| self.is(Affliction::Reordered)) {
            said = before;
        }
        let lies = self.time.now_ns() >= self.fate.lies_from_ns;
        if lies && state.random.random_range(0..1000) < self.fate.lies {
            lie(&mut said, &mut state.random);
        }
        serde_json::from_value(said).map_err(|error| AgentError::NotAnAgent {
            address: self.name.clone(),
            what: format!("its answer is not the JSON expected ({error})"),
        })
    }

    /// Notes flows of a client that arrive.
    fn handle_arrival(&self, cookie: &str, flows: usize) {
        let mut state = lock(&self.state);
        let mut trials = state.trials.values_mut();
        if let Some(trial) = trials.find(|trial| trial.assignment.cookie == cookie) {
            (0..flows).for_each(|_| trial.session.handle_flow());
        }
    }
}

/// Changes one value of `said`, wherever it is, or takes it away.
fn lie(said: &mut Value, random: &mut Pcg64) {
    if random.random_bool(0.05) {
        *said = nonsense(said, random);
        return;
    }
    match said {
        Value::Object(map) if !map.is_empty() => {
            let which = random.random_range(0..map.len());
            let key = map.keys().nth(which).cloned().expect("it has so many");
            match random.random_range(0..10) {
                0 => drop(map.remove(&key)),
                _ => lie(&mut map[&key], random),
            }
        }
        Value::Array(list) if !list.is_empty() => {
            let which = random.random_range(0..list.len());
            match random.random_range(0..10) {
                0 => drop(list.remove(which)),
                1 => list.push(list[which].clone()),
                _ => lie(&mut list[which], random),
            }
        }
        _ => *said = nonsense(said, random),
    }
}

fn nonsense(instead_of: &Value, random: &mut Pcg64) -> Value {
    match random.random_range(0..12) {
        0 => Value::Null,
        1 => (-1).into(),
        2 => u64::MAX.into(),
        3 => i64::MIN.into(),
        4 => 1e308.into(),
        5 => "\u{1b}[2J\r\n\u{7}".repeat(50).into(),
        6 => Vec::<Value>::new().into(),
        7 => (0..40).fold(Value::Null, |inner, _| vec![inner].into()),
        8 => (instead_of.as_u64().unwrap_or(0) ^ (1 << random.random_range(0..64))).into(),
        9 => random.next_u64().into(),
        10 => serde_json::json!({}),
        _ => (!instead_of.as_bool().unwrap_or(false)).into(),
    }
}

impl State {
    /// Applies what time brings: deaths, and every deadline.
    fn live_until(&mut self, fate: &Fate, now_ns: u64) {
        let died = fate
            .faults
            .iter()
            .filter(|fault| fault.what == Affliction::Dead)
            .filter(|fault| fault.during_ns.start <= now_ns)
            .count();
        if died > self.deaths {
            self.deaths = died;
            self.leases = Leases::default();
            self.trials.clear();
        }
        let host_ns = fate.clock.reads(now_ns);
        let mut faults = fate.faults.iter();
        let is_taken = faults
            .any(|fault| fault.what == Affliction::Taken && fault.during_ns.contains(&now_ns));
        match is_taken {
            true if self.leases.handle_seen(host_ns, &another().key).is_err() => {
                // Who has the host keeps it.
                let _busy = self.leases.handle_request(host_ns, another());
            }
            true => {}
            false => drop(self.leases.handle_leave(&another().key)),
        }
        for (lease, _) in self.leases.poll_expired(host_ns) {
            self.trials.retain(|(key, _), _| *key != lease.asked.key);
        }
        self.trials.retain(|_, trial| {
            trial.get_on(host_ns);
            !trial.session.poll_deadline(host_ns)
        });
    }

    fn require_admitted(&mut self, lease: &str, host_ns: u64) -> Result<(), Refusal> {
        match self.seen(lease, host_ns)? {
            Standing::Admitted { .. } => Ok(()),
            Standing::Waiting { .. } => Err(refuse(RefusalCode::Busy, "it waits")),
        }
    }

    fn seen(&mut self, lease: &str, host_ns: u64) -> Result<Standing, Refusal> {
        let seen = self.leases.handle_seen(host_ns, lease);
        seen.map_err(|error| refuse(RefusalCode::Gone, error))
    }

    fn trial(&mut self, lease: &str, trial: TrialId) -> Result<&mut SimulatedTrial, Refusal> {
        let trial = self.trials.get_mut(&(lease.to_owned(), trial));
        trial.ok_or_else(|| refuse(RefusalCode::Gone, "no such trial"))
    }
}

impl SimulatedTrial {
    fn get_on(&mut self, host_ns: u64) {
        let Some(at) = self.at else { return };
        let is_over = host_ns >= self.stopped_ns.unwrap_or(at.stop_ns);
        if is_over && *self.session.state() == TrialState::Running {
            self.session.handle_finished(host_ns);
        }
    }

    /// Returns the samples from number `from` on, and how many there are beyond.
    fn samples(&self, host_ns: u64, from: usize) -> (Vec<Sample>, bool) {
        let Some(at) = self.at else {
            return (Vec::new(), false);
        };
        let interval = self.assignment.sample_interval.0;
        let until_ns = host_ns.min(self.stopped_ns.unwrap_or(u64::MAX));
        let before = (at.measure_begin_ns - at.start_ns) / interval;
        let mut tick = at.measure_begin_ns - before * interval;
        let mut ticks = Vec::new();
        while tick <= until_ns.min(at.measure_end_ns) {
            ticks.push(tick);
            if tick == at.measure_end_ns {
                break;
            }
            tick = (tick + interval).min(at.measure_end_ns);
        }
        // An end before its time is read as well.
        ticks.extend(self.stopped_ns.filter(|at_ns| {
            *at_ns <= host_ns
                && ticks.last().is_none_or(|last| last < at_ns)
                && *at_ns < at.measure_end_ns
        }));
        if self.reads_late {
            let begin_ns = at.measure_begin_ns;
            ticks.retain(|tick| !(begin_ns..begin_ns + LATE_NS).contains(tick));
        }
        let flows = &self.assignment.flows;
        let all = ticks.iter().flat_map(|tick| {
            flows.iter().map(move |flow| {
                let sends = matches!(flow.part, Part::Sender | Part::Requester);
                Sample {
                    metric: if sends {
                        Metric::AppBytesSent
                    } else {
                        Metric::AppBytesReceived
                    },
                    subject: Subject::Flow(flow.flow, self.assignment.end),
                    at_ns: *tick,
                    value: ((tick - at.start_ns.min(*tick)) * BYTES_PER_MS / 1_000_000) as i64,
                }
            })
        });
        let samples: Vec<Sample> = all.skip(from).take(SAMPLES_PER_ANSWER).collect();
        let more = from + samples.len() < ticks.len() * flows.len();
        (samples, more)
    }

    fn outcomes(&self) -> Vec<FlowOutcome> {
        let flows = self.assignment.flows.iter();
        // Both ends are told to end at one instant, each by its own clock.
        let length_ns = self.at.map_or(0, |at| at.stop_ns - at.start_ns);
        let moved = length_ns / 1_000_000 * BYTES_PER_MS;
        let buffer = |name: &str| Setting {
            effective: Some(BUFFER_BYTES.to_string()),
            ..Setting::granted(name, None, None)
        };
        let buffers: Settings = vec![buffer(name::SO_SNDBUF), buffer(name::SO_RCVBUF)].into();
        let outcome = |flow: &linerate_agent::api::FlowAssignment| FlowOutcome {
            flow: flow.flow,
            end: self.assignment.end,
            part: flow.part,
            local: "10.0.0.1:1".to_owned(),
            remote: "10.0.0.2:2".to_owned(),
            cpu: Some(0),
            incoming: Default::default(),
            first_payload_ns: self.at.map(|at| at.start_ns as i64),
            bytes_sent: if flow.part == Part::Sender { moved } else { 0 },
            bytes_received: match flow.part {
                Part::Receiver if self.counts_less => moved / 2,
                Part::Receiver => moved,
                _ => 0,
            },
            counted_ns: None,
            stall_max_ns: Some(1),
            settings: buffers.clone(),
            latency: None,
            lateness: None,
            datagrams: None,
            requests: None,
            connections: None,
            zero_copy: None,
            ended_early: None,
        };
        flows.map(outcome).collect()
    }
}

impl Agent for SimulatedAgent {
    fn control(&self) -> linerate_model::run::Control {
        linerate_model::run::Control::Loopback
    }

    fn address(&self) -> String {
        self.name.to_owned()
    }

    fn info(&self) -> Result<AgentInfo, AgentError> {
        self.ask("asking who it is", ANSWER_NS / 3, |_, _| {
            Ok(AgentInfo {
                program: PROGRAM.to_owned(),
                version: "0".to_owned(),
                api: API_VERSION,
                host_name: self.name.clone(),
                lab: false,
                boot: None,
                observe_refused: None,
                busy: None,
                limits: LimitsInfo::default(),
            })
        })
    }

    fn clock(&self) -> Result<ClockReading, AgentError> {
        self.ask("reading its clock", ANSWER_NS, |_, host_ns| {
            Ok(ClockReading {
                received_ns: host_ns,
                sent_ns: host_ns,
            })
        })
    }

    fn inventory(&self, _: &InventoryRequest) -> Result<Inventory, AgentError> {
        self.ask("taking its inventory", ANSWER_NS, |_, _| {
            Ok(Inventory {
                link: Some("eth0".to_owned()),
                ..Inventory::default()
            })
        })
    }

    fn observe(&self, _: &ObservationRequest) -> Result<Observation, AgentError> {
        unreachable!("no run watches a host")
    }

    fn admit(&self, request: &AdmitRequest) -> Result<Admitted, AgentError> {
        self.ask("asking for admission", ANSWER_NS, |state, host_ns| {
            state.keys += 1;
            let key = format!("{}-{}-{}", self.name, state.deaths, state.keys);
            let asking = Asking {
                key: key.clone(),
                label: request.label.clone(),
                admission: request.admission,
                expected: request.expected,
                ..another()
            };
            let standing = state.leases.handle_request(host_ns, asking);
            let standing = standing.map_err(|error| refuse(RefusalCode::Busy, error))?;
            Ok(admitted(key, &standing))
        })
    }

    fn renew(&self, lease: &str) -> Result<Admitted, AgentError> {
        self.ask("keeping the lease", ANSWER_NS, |state, host_ns| {
            let standing = state.seen(lease, host_ns)?;
            Ok(admitted(lease.to_owned(), &standing))
        })
    }

    fn leave(&self, lease: &str) -> Result<(), AgentError> {
        self.ask("leaving", END_NS, |state, _| {
            state.trials.retain(|(key, _), _| key != lease);
            let _left = state.leases.handle_leave(lease);
            Ok(())
        })
    }

    fn prepare(
        &self,
        lease: &str,
        assignment: &Assignment,
        _timing: &Timing,
    ) -> Result<Prepared, AgentError> {
        let prepared = self.ask("preparing a trial", ANSWER_NS, |state, host_ns| {
            state.require_admitted(lease, host_ns)?;
            if assignment.end == End::Client && self.is(Affliction::SynsLost) {
                self.pass(CONNECT_NS);
                let error = "cannot connect to 10.0.0.1:5201: no answer within 5000 ms";
                return Err(refuse(RefusalCode::Flows, error));
            }
            let expected = match assignment.end {
                End::Server => assignment.flows.len() as u32,
                End::Client => 0,
            };
            let trial = SimulatedTrial {
                session: TrialSession::new(host_ns, expected),
                assignment: assignment.clone(),
                at: None,
                stopped_ns: None,
                reads_late: self.is(Affliction::ReadsLate),
                counts_less: self.is(Affliction::CountsLess),
            };
            let key = (lease.to_owned(), assignment.trial);
            state.trials.insert(key, trial);
            Ok(Prepared {
                round_trip_ns: Some(2 * self.fate.latency_ns.0),
                warm_up_more: assignment.warm_up_more,
                ..Prepared::default()
            })
        });
        if assignment.end == End::Client && prepared.is_ok() && !self.is(Affliction::FlowsLost) {
            let servers = self.servers.get().into_iter().flatten();
            for server in servers.filter_map(Weak::upgrade) {
                server.handle_arrival(&assignment.cookie, assignment.flows.len());
            }
        }
        prepared
    }

    fn start(&self, lease: &str, trial: TrialId, at: &StartRequest) -> Result<(), AgentError> {
        self.ask("starting a trial", ANSWER_NS, |state, host_ns| {
            state.require_admitted(lease, host_ns)?;
            let trial = state.trial(lease, trial)?;
            if matches!(trial.session.state(), TrialState::Gathering { .. }) {
                self.pass(ARRIVAL_NS);
            }
            let started = trial.session.handle_start(host_ns, at);
            started.map_err(|error| match error {
                SessionError::Late(_) => refuse(RefusalCode::Late, error),
                error => refuse(RefusalCode::Flows, error),
            })?;
            trial.at = Some(*at);
            Ok(())
        })
    }

    fn poll(&self, lease: &str, trial: TrialId, from: PollFrom) -> Result<TrialStatus, AgentError> {
        if from.wait_ns > 0 {
            self.pass(from.wait_ns);
        }
        self.ask("following a trial", ANSWER_NS, |state, host_ns| {
            state.seen(lease, host_ns)?;
            let trial = state.trial(lease, trial)?;
            if self.is(Affliction::EndsTrial) && *trial.session.state() == TrialState::Running {
                trial.stopped_ns.get_or_insert(host_ns);
                trial.session.handle_failure(host_ns, BEYOND.to_owned());
            }
            let (samples, more) = trial.samples(host_ns, from.sample);
            let flows = match (trial.session.state(), more) {
                (TrialState::Finished, false) => trial.outcomes(),
                _ => Vec::new(),
            };
            Ok(TrialStatus {
                state: trial.session.state().clone(),
                at_ns: Some(host_ns),
                next: from.sample + samples.len(),
                samples,
                flows: flows.into_iter().skip(from.flow).collect(),
                more,
                stacks: Vec::new(),
                notes: Vec::new(),
                capture: None,
            })
        })
    }

    fn capture_part(&self, _: &str, _: TrialId, _: usize) -> Result<Vec<u8>, AgentError> {
        self.ask("fetching a capture", ANSWER_NS, |_, _| Ok(vec![0; 1000]))
    }

    fn stop(&self, lease: &str, trial: TrialId) -> Result<(), AgentError> {
        self.ask("stopping a trial", ANSWER_NS, |state, host_ns| {
            state.seen(lease, host_ns)?;
            let trial = state.trial(lease, trial)?;
            trial.stopped_ns.get_or_insert(host_ns);
            Ok(())
        })
    }

    fn abort(&self, lease: &str, trial: TrialId) -> Result<(), AgentError> {
        self.ask("ending a trial", END_NS, |state, _| {
            let trial = state.trials.remove(&(lease.to_owned(), trial));
            trial
                .map(drop)
                .ok_or_else(|| refuse(RefusalCode::Gone, "no such trial"))
        })
    }
}

fn admitted(lease: String, standing: &Standing) -> Admitted {
    let (queue_place, shared_with) = match standing {
        Standing::Admitted { shared_with } => (None, *shared_with),
        Standing::Waiting { place } => (Some(*place), 0),
    };
    Admitted {
        lease,
        queue_place,
        admission: Admission::Exclusive,
        shared_with,
    }
}

/// The run that a host is taken by.
fn another() -> Asking {
    Asking {
        key: "another".to_owned(),
        label: "another".to_owned(),
        admission: Admission::Exclusive,
        expected: None,
        from: None,
        guest: None,
        token: None,
    }
}
