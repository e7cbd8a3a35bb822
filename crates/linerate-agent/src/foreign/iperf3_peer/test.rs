//! Both halves of a test: what becomes of it at the server, and what this host's agent has to do with it.

use linerate_compat::iperf3::{ClientEnding, Parameters, Protocol, Results, datagram};
use linerate_model::TrialId;
use linerate_model::experiment::Timing;
use linerate_model::manner::Transport;
use linerate_model::workload::Part;

use super::control::{Called, Connection};
use super::counts::{self, Counts};
use super::parameters::{in_order, parameters, token};
use super::{Shared, Test};
use crate::api::{AgentError, Assignment, RefusalCode, StartRequest, TrialState, TrialStatus};
use crate::core::OtherEnd;
use crate::foreign::peer::{CallError, Delivered, Named, Peer, bare_status};
use crate::sync::lock;

impl Peer for Shared {
    fn named(&self) -> &Named {
        &self.standing.named
    }

    fn call(&self) -> Result<(), CallError> {
        self.standing.call(Called::greet)
    }

    fn prepare(&self, assignment: &Assignment, timing: &Timing) -> Result<(), AgentError> {
        let options = &self.options;
        let bad = |why: String| self.named().refused(why, RefusalCode::BadRequest);
        let (mut wanted, notes) =
            parameters(assignment, timing, options.server_output).map_err(bad)?;
        if let Some(credentials) = &options.credentials {
            wanted.auth_token = Some(token(credentials).map_err(bad)?);
        }
        self.begin(assignment, wanted, notes)
    }

    fn start(&self, trial: TrialId, at: &StartRequest) -> Result<(), AgentError> {
        self.standing.with_test(trial, |test| {
            test.at = Some(*at);
            test.counts.begin(at, test.parameters.omit_s > 0);
            let delivered = test.delivered.take();
            let by_volume = test.parameters.bytes.is_some();
            test.connection.schedule(at.stop_ns, by_volume, delivered);
        })
    }

    fn poll(&self, trial: TrialId, first: usize) -> Result<TrialStatus, AgentError> {
        let look = |test: &mut Test| self.status(test, first);
        let (status, results) = self.standing.with_test(trial, look)?;
        if results.is_some() {
            *lock(&self.results) = results;
        }
        Ok(status)
    }

    fn stop(&self, trial: TrialId) -> Result<(), AgentError> {
        self.standing
            .with_test(trial, |test| test.connection.interrupt())
    }

    fn forget_test(&self, trial: Option<TrialId>) {
        self.standing.forget_test(trial);
    }

    fn leave(&self) {
        self.standing.leave();
    }

    fn told(&self, assignment: &Assignment) -> Result<(Assignment, OtherEnd), AgentError> {
        let cookie = self
            .standing
            .with_test(assignment.trial, |test| test.connection.cookie.clone())?;
        let greeting = match assignment.manner.transport {
            Transport::Udp => datagram::HELLO.to_vec(),
            _ => cookie.encode().to_vec(),
        };
        let told = Assignment {
            flows: in_order(&assignment.flows),
            ..assignment.clone()
        };
        Ok((told, OtherEnd::Foreign { greeting }))
    }

    fn note_open(&self, trial: TrialId, delivered: Delivered) -> Result<(), AgentError> {
        self.standing.with_test(trial, |test| {
            test.is_open = true;
            let waits = test.sends || test.parameters.bytes.is_some();
            test.delivered = waits.then_some(delivered);
        })
    }

    fn note_status(&self, trial: TrialId, status: &TrialStatus) -> Result<(), AgentError> {
        self.standing.with_test(trial, |test| {
            test.counts.note(&status.samples);
            // With the last answer come all flows: iperf3 has 128 at the most.
            let is_over = status.state == TrialState::Finished && !status.more;
            if is_over && test.outcomes.is_none() {
                let results = test
                    .counts
                    .results(&test.order, &status.flows, test.at.as_ref());
                test.outcomes = Some(status.flows.clone());
                test.connection.measured(results);
            }
        })
    }
}

impl Shared {
    /// Begins a test and waits until the server expects its streams.
    fn begin(
        &self,
        assignment: &Assignment,
        wanted: Parameters,
        notes: Vec<String>,
    ) -> Result<(), AgentError> {
        let named = &self.standing.named;
        let called = self.standing.desk().called.take();
        let called = called.ok_or_else(|| named.call_error(CallError::Busy))?;
        let connection = Connection::begin(called, wanted.clone())
            .map_err(|error| named.error(format!("gets no thread: {error}"), None, false))?;
        connection.wait_opened();
        let ending = connection.story().ending.clone();
        if let Some(ending) = ending {
            return Err(named.refused(words(&ending), code(&ending)));
        }
        // The server's parts are the opposite of the client's, which decide the order.
        let mut flows = assignment.flows.clone();
        for flow in &mut flows {
            flow.part = flow.part.opposite();
        }
        let order = in_order(&flows).iter().map(|flow| flow.flow).collect();
        let sends = flows.iter().any(|flow| flow.part == Part::Sender);
        let test = Test {
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
        };
        self.standing.desk().test = Some((assignment.trial, test));
        Ok(())
    }

    /// Returns how far a test has come, with samples from number `first` on, and the server's results once it
    /// ended as it should.
    fn status(&self, test: &Test, first: usize) -> (TrialStatus, Option<Results>) {
        let story = test.connection.story();
        let mut status = bare_status(self.state(test, story.ending.as_ref()), first);
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
                why: self
                    .standing
                    .named
                    .error(words(ending), None, false)
                    .to_string(),
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
