//! The half that stands for the server.

use std::sync::Arc;
use std::time::Duration;

use linerate_compat::iperf3::{ClientEnding, Parameters, Protocol, Results};
use linerate_engine::now_ns;
use linerate_model::TrialId;
use linerate_model::experiment::Timing;
use linerate_model::run::Admission;
use linerate_model::workload::Part;

use super::control::{CallError, Called, Connection};
use super::counts::{self, Counts};
use super::parameters::{in_order, parameters, token};
use super::{PROGRAM, Shared, Test};
use crate::api::{
    API_VERSION, AdmitRequest, Admitted, Agent, AgentError, AgentInfo, Assignment, ClockReading,
    Inventory, InventoryRequest, LimitsInfo, Observation, ObservationRequest, PollFrom, Prepared,
    RefusalCode, StartRequest, TrialState, TrialStatus,
};

/// The name of the only lease there is.
const LEASE: &str = "iperf3";
/// Why its host is not observed.
const UNOBSERVED: &str = "an iperf3 server cannot be observed; run `linerate serve` there";

/// How long the server may take to be free for the next test, and the time between two tries.
const AGAIN_NS: u64 = 3_000_000_000;
const AGAIN_LOOK: Duration = Duration::from_millis(50);
/// How long nothing may listen where a test has just ended: servers open their listener anew within
/// milliseconds, on a busy machine within a tenth of a second.
const REOPENED_NS: u64 = 500_000_000;

/// An iperf3 server, as an agent.
pub struct Iperf3Server(pub(super) Arc<Shared>);

impl Iperf3Server {
    /// Connects, unless that has happened and nothing has become of it yet.
    fn call(&self) -> Result<(), CallError> {
        let options = &self.0.options;
        let mut desk = self.0.desk();
        if desk.called.as_ref().is_some_and(Called::is_alive) {
            return Ok(());
        }
        let opened = desk.opened.take();
        desk.called = Some(Called::call(opened, options.address, options.bind)?);
        Ok(())
    }

    /// Connects to a server that may still be busy with the end of our own last test, or has closed its
    /// listener with it and opens the next one in a moment.
    fn call_again(&self) -> Result<(), CallError> {
        let began_ns = now_ns();
        loop {
            let waited_ns = now_ns() - began_ns;
            match self.call() {
                Err(CallError::Busy) if waited_ns < AGAIN_NS => {}
                Err(CallError::Unreachable(_)) if waited_ns < REOPENED_NS => {}
                other => return other,
            }
            std::thread::sleep(AGAIN_LOOK);
        }
    }

    fn call_error(&self, error: CallError) -> AgentError {
        match error {
            CallError::Busy => self
                .0
                .refused("is busy with another test", RefusalCode::Busy),
            CallError::Unreachable(what) => self.0.error(what, None, true),
            CallError::Odd(what) => self.0.error(what, None, false),
        }
    }

    /// Returns how far a test has come, with samples from number `first` on, and the server's results once it
    /// ended as it should.
    fn status(&self, test: &Test, first: usize) -> (TrialStatus, Option<Results>) {
        let story = test.connection.story();
        let mut status = TrialStatus {
            state: self.state(test, story.ending.as_ref()),
            samples: Vec::new(),
            next: first,
            flows: Vec::new(),
            more: false,
            stacks: Vec::new(),
            notes: Vec::new(),
            capture: None,
        };
        let (TrialState::Finished, Some(results), Some(clients)) =
            (&status.state, &story.results, &test.outcomes)
        else {
            return (status, None);
        };
        let udp = test.parameters.protocol == Protocol::Udp;
        status.flows = counts::server_ends(&test.order, clients, results, udp);
        status.notes = test.notes.clone();
        if let Some(at) = test.at.as_ref().filter(|_| first == 0) {
            let edges = (at.measure_begin_ns, test.counts.end_ns(at));
            let told = &test.parameters;
            status.samples = counts::server_samples(&test.order, clients, results, edges, told);
            status.next = status.samples.len();
        }
        (status, Some(results.clone()))
    }

    /// Returns what the way in which a test ended means for the trial.
    fn state(&self, test: &Test, ending: Option<&ClientEnding>) -> TrialState {
        let missing = test.order.len() as u32;
        match (ending, test.at) {
            (Some(ClientEnding::Done | ClientEnding::ClientTerminated), _) => TrialState::Finished,
            (Some(ending), _) => TrialState::Failed {
                why: self.0.error(words(ending), None, false).to_string(),
            },
            (None, Some(_)) => TrialState::Running,
            (None, None) if test.is_open => TrialState::Ready,
            (None, None) => TrialState::Gathering { missing },
        }
    }
}

/// Returns what the server did, as the rest of a sentence that begins with its name.
fn words(ending: &ClientEnding) -> String {
    match ending {
        ClientEnding::Done => "has ended the test".to_owned(),
        ClientEnding::Busy => "is busy with another test, or does not take a stream".to_owned(),
        ClientEnding::ServerError { code, errno: 0 } => format!("refused: {code}"),
        ClientEnding::ServerError { code, errno } => {
            let system = std::io::Error::from_raw_os_error(*errno);
            format!("refused: {code}: {system}")
        }
        ClientEnding::ServerTerminated => "was terminated".to_owned(),
        ClientEnding::ServerLeft => "closed the control connection".to_owned(),
        ClientEnding::Unanswered => "closed the control connection after it received the parameters, \
             without a reason: it exited, or it is a current one that refused the login (authentication \
             failed, or it wants a user and none is given)"
            .to_owned(),
        ClientEnding::ClientTerminated => "was asked to end the test".to_owned(),
        ClientEnding::Failed { reason } => format!("failed: {reason}"),
    }
}

fn code(ending: &ClientEnding) -> RefusalCode {
    match ending {
        ClientEnding::Busy => RefusalCode::Busy,
        ClientEnding::ServerError { code, .. }
            if *code == linerate_compat::iperf3::Code::AUTHENTICATION =>
        {
            RefusalCode::Unauthorized
        }
        ClientEnding::Unanswered => RefusalCode::Unauthorized,
        ClientEnding::ServerError { .. } => RefusalCode::BadRequest,
        _ => RefusalCode::Flows,
    }
}

fn admitted(queue_place: Option<u32>, admission: Admission) -> Admitted {
    Admitted {
        lease: LEASE.to_owned(),
        queue_place,
        admission,
        shared_with: 0,
    }
}

impl Agent for Iperf3Server {
    fn address(&self) -> String {
        self.0.options.address.to_string()
    }

    fn control(&self) -> linerate_model::run::Control {
        linerate_model::run::Control::Clear
    }

    fn info(&self) -> Result<AgentInfo, AgentError> {
        Ok(AgentInfo {
            program: PROGRAM.to_owned(),
            version: String::new(),
            api: API_VERSION,
            host_name: self.0.options.address.ip().to_string(),
            lab: false,
            boot: None,
            observe_refused: Some(UNOBSERVED.to_owned()),
            busy: None,
            limits: LimitsInfo::default(),
        })
    }

    /// Returns this host's clock: iperf3 has none to offer, and every instant of its test is one of
    /// ours.
    fn clock(&self) -> Result<ClockReading, AgentError> {
        let now = now_ns();
        Ok(ClockReading {
            received_ns: now,
            sent_ns: now,
        })
    }

    fn inventory(&self, _request: &InventoryRequest) -> Result<Inventory, AgentError> {
        Ok(Inventory::default())
    }

    fn observe(&self, _request: &ObservationRequest) -> Result<Observation, AgentError> {
        let what = "cannot observe its host: it is no linerate agent";
        Err(self.0.refused(what, RefusalCode::BadRequest))
    }

    fn admit(&self, request: &AdmitRequest) -> Result<Admitted, AgentError> {
        match self.call() {
            Ok(()) => Ok(admitted(None, request.admission)),
            // It keeps no queue, so that whoever asks first once it is free is served.
            Err(CallError::Busy) if request.admission == Admission::Queued => {
                Ok(admitted(Some(1), Admission::Queued))
            }
            Err(error) => Err(self.call_error(error)),
        }
    }

    fn renew(&self, _lease: &str) -> Result<Admitted, AgentError> {
        self.0.desk().test = None;
        match self.call_again() {
            Ok(()) => Ok(admitted(None, Admission::Exclusive)),
            Err(CallError::Busy) => Ok(admitted(Some(1), Admission::Queued)),
            Err(error) => Err(self.call_error(error)),
        }
    }

    fn leave(&self, _lease: &str) -> Result<(), AgentError> {
        let mut desk = self.0.desk();
        desk.called = None;
        desk.test = None;
        Ok(())
    }

    fn prepare(
        &self,
        _lease: &str,
        assignment: &Assignment,
        timing: &Timing,
    ) -> Result<Prepared, AgentError> {
        let options = &self.0.options;
        let bad = |why: String| self.0.refused(why, RefusalCode::BadRequest);
        let (mut wanted, notes) =
            parameters(assignment, timing, options.server_output).map_err(bad)?;
        if let Some(credentials) = &options.credentials {
            wanted.auth_token = Some(token(credentials).map_err(bad)?);
        }
        self.call_again().map_err(|error| self.call_error(error))?;
        self.begin(assignment, wanted, notes)?;
        Ok(Prepared::default())
    }

    fn start(&self, _lease: &str, trial: TrialId, at: &StartRequest) -> Result<(), AgentError> {
        self.0.with_test(trial, |test| {
            test.at = Some(*at);
            test.counts.begin(at, test.parameters.omit_s > 0);
            let delivered = test.delivered.take();
            let by_volume = test.parameters.bytes.is_some();
            test.connection.schedule(at.stop_ns, by_volume, delivered);
        })
    }

    fn poll(
        &self,
        _lease: &str,
        trial: TrialId,
        from: PollFrom,
    ) -> Result<TrialStatus, AgentError> {
        let (status, results) = self
            .0
            .with_test(trial, |test| self.status(test, from.sample))?;
        if results.is_some() {
            self.0.desk().results = results;
        }
        Ok(status)
    }

    /// Nothing: only agents capture.
    fn capture_part(
        &self,
        _lease: &str,
        _trial: TrialId,
        _part: usize,
    ) -> Result<Vec<u8>, AgentError> {
        Ok(Vec::new())
    }

    fn stop(&self, _lease: &str, trial: TrialId) -> Result<(), AgentError> {
        self.0.with_test(trial, |test| test.connection.interrupt())
    }

    fn abort(&self, _lease: &str, trial: TrialId) -> Result<(), AgentError> {
        let mut desk = self.0.desk();
        // Dropping the connection tells the server.
        desk.test.take_if(|test| test.trial == trial);
        Ok(())
    }
}

impl Iperf3Server {
    /// Begins a test and waits until the server expects its streams.
    fn begin(
        &self,
        assignment: &Assignment,
        wanted: Parameters,
        notes: Vec<String>,
    ) -> Result<(), AgentError> {
        let called = self.0.desk().called.take();
        let called = called.ok_or_else(|| self.call_error(CallError::Busy))?;
        let connection = Connection::begin(called, wanted.clone()).map_err(|error| {
            self.0
                .error(format!("gets no thread: {error}"), None, false)
        })?;
        connection.wait_opened();
        let ending = connection.story().ending.clone();
        if let Some(ending) = ending {
            return Err(self.0.refused(words(&ending), code(&ending)));
        }
        // The server's parts are the opposite of the client's, which decide the order.
        let mut flows = assignment.flows.clone();
        for flow in &mut flows {
            flow.part = flow.part.opposite();
        }
        let order = in_order(&flows).iter().map(|flow| flow.flow).collect();
        let sends = flows.iter().any(|flow| flow.part == Part::Sender);
        self.0.desk().test = Some(Test {
            trial: assignment.trial,
            connection,
            parameters: wanted,
            order,
            sends,
            is_open: false,
            at: None,
            counts: Counts::default(),
            delivered: None,
            outcomes: None,
            notes,
        });
        Ok(())
    }
}
