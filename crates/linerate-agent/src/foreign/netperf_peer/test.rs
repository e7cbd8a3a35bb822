//! Both halves of a test: what becomes of it at the server, and what this host's agent has to do with it.

use linerate_compat::netperf::{OmniRequest, OmniResults};
use linerate_engine::now_ns;
use linerate_model::experiment::Timing;
use linerate_model::manner::Transport;
use linerate_model::run::FlowOutcome;
use linerate_model::{FlowId, TrialId};

use super::control::{Awaited, Control, Instead};
use super::request::{note, requests};
use super::{Shared, Test, TestFlow, counts};
use crate::api::{AgentError, Assignment, RefusalCode, StartRequest, TrialState, TrialStatus};
use crate::core::OtherEnd;
use crate::foreign::peer::{CallError, Delivered, Named, Peer, bare_status, counted_until_ns};

/// How long after the end of flows that were stopped before their time the counts are waited for: a server that
/// receives has them at once, and one that sends does not hear of the stop.
const COUNTS_WAIT_NS: u64 = 500_000_000;

impl Peer for Shared {
    fn named(&self) -> &Named {
        &self.standing.named
    }

    fn call(&self) -> Result<(), CallError> {
        self.standing.call(Control::greet)
    }

    fn prepare(&self, assignment: &Assignment, timing: &Timing) -> Result<(), AgentError> {
        let bad = |why: String| self.named().refused(why, RefusalCode::BadRequest);
        let asked = requests(assignment, timing, self.named().address).map_err(bad)?;
        let test = Test {
            flows: self.ask(&asked)?,
            is_udp: assignment.manner.transport == Transport::Udp,
            is_placed: assignment.traffic.is_placed(),
            is_open: false,
            at: None,
            last_ns: 0,
            clients: Vec::new(),
            ended_ns: None,
            is_stopped: false,
            note: note(&assignment.options),
        };
        self.standing.desk().test = Some((assignment.trial, test));
        Ok(())
    }

    fn start(&self, trial: TrialId, at: &StartRequest) -> Result<(), AgentError> {
        self.standing.with_test(trial, |test| test.at = Some(*at))
    }

    fn poll(&self, trial: TrialId, first: usize) -> Result<TrialStatus, AgentError> {
        self.standing.with_test(trial, |test| {
            let state = match test.look() {
                Ok(state) => state,
                Err(instead) => TrialState::Failed {
                    why: self.instead(instead).to_string(),
                },
            };
            test.status(state, first)
        })
    }

    fn stop(&self, trial: TrialId) -> Result<(), AgentError> {
        self.standing
            .with_test(trial, |test| test.is_stopped = true)
    }

    fn forget_test(&self, trial: Option<TrialId>) {
        self.standing.forget_test(trial);
    }

    fn leave(&self) {
        self.standing.leave();
    }

    fn told(&self, assignment: &Assignment) -> Result<(Assignment, OtherEnd), AgentError> {
        let addresses = self.standing.with_test(assignment.trial, |test| {
            let address = |flow: FlowId| {
                let mut flows = test.flows.iter();
                flows.find(|one| one.flow == flow).map(|one| one.address)
            };
            let plans = assignment.flows.iter();
            plans.filter_map(|plan| address(plan.flow)).collect()
        })?;
        Ok((assignment.clone(), OtherEnd::Addressed(addresses)))
    }

    fn note_open(&self, trial: TrialId, _: Delivered) -> Result<(), AgentError> {
        self.standing.with_test(trial, |test| test.is_open = true)
    }

    fn note_status(&self, trial: TrialId, status: &TrialStatus) -> Result<(), AgentError> {
        self.standing.with_test(trial, |test| {
            let read_ns = status.samples.iter().map(|sample| sample.at_ns);
            test.last_ns = read_ns.fold(test.last_ns, u64::max);
            if status.state == TrialState::Finished {
                test.clients.extend(status.flows.iter().cloned());
                test.ended_ns = (!status.more).then(now_ns);
            }
        })
    }
}

impl Shared {
    /// Asks for a test for each flow, by a connection of its own, and hears where their payload goes.
    fn ask(&self, asked: &[(FlowId, OmniRequest)]) -> Result<Vec<TestFlow>, AgentError> {
        let instead = |instead| self.instead(instead);
        let controls = asked.iter().map(|_| self.control());
        let mut controls = controls.collect::<Result<Vec<_>, _>>()?;
        // All of their clocks start at once, and no answer is waited for in between.
        for ((_, request), control) in asked.iter().zip(&mut controls) {
            control.ask(request).map_err(instead)?;
        }
        let flows = asked.iter().zip(controls).map(|((flow, _), mut control)| {
            let response = control.answer().map_err(instead)?;
            let mut address = self.named().address;
            address.set_port(response.port);
            Ok(TestFlow {
                flow: *flow,
                address,
                awaited: Awaited::Counts(Box::new(control)),
            })
        });
        flows.collect()
    }

    /// Returns the connection that was called, or another one to the same server.
    fn control(&self) -> Result<Control, AgentError> {
        let called = self.standing.desk().called.take();
        let another = || self.standing.connect().map(Control::of);
        let control = called.map_or_else(another, Ok);
        control.map_err(|error| self.named().call_error(error))
    }

    fn instead(&self, instead: Instead) -> AgentError {
        self.named().error(instead.words, instead.code, false)
    }
}

impl Test {
    /// Looks how far the server has come.
    fn look(&mut self) -> Result<TrialState, Instead> {
        for flow in &mut self.flows {
            flow.awaited.look()?;
        }
        let mut flows = self.flows.iter();
        let is_counted = flows.all(|flow| flow.awaited.counted().is_some());
        let gives_up = |ended_ns: u64| self.is_stopped && now_ns() > ended_ns + COUNTS_WAIT_NS;
        Ok(match (self.at, self.ended_ns) {
            (Some(_), Some(ended_ns)) if is_counted || gives_up(ended_ns) => TrialState::Finished,
            (Some(_), _) => TrialState::Running,
            (None, _) if self.is_open => TrialState::Ready,
            (None, _) => TrialState::Gathering {
                missing: self.flows.len() as u32,
            },
        })
    }

    /// Returns what there is to say of a test in `state`, with samples from number `first` on.
    fn status(&self, state: TrialState, first: usize) -> TrialStatus {
        let mut status = bare_status(state, first);
        let (TrialState::Finished, Some(at)) = (&status.state, self.at) else {
            return status;
        };
        let ends: Vec<_> = self.ends().collect();
        status.flows = ends
            .iter()
            .map(|(client, results)| counts::end_of(client, *results))
            .collect();
        status.notes.extend(self.note.clone());
        let said = ends.iter().filter_map(|(_, results)| *results);
        // Each of its processes measures the same CPUs.
        let cpu = said.filter(|_| !self.is_placed).find_map(counts::cpu_note);
        status.notes.extend(cpu);
        if self.is_udp && first == 0 && at.start_ns == at.measure_begin_ns {
            let edges = (at.measure_begin_ns, counted_until_ns(&at, self.last_ns));
            let samples = ends
                .iter()
                .filter_map(|(client, results)| Some(counts::samples(client, (*results)?, edges)));
            status.samples = samples.flatten().collect();
            status.next = status.samples.len();
        }
        status
    }

    /// Returns what became of the client's end of each flow, with what the server counted of it.
    fn ends(&self) -> impl Iterator<Item = (&FlowOutcome, Option<&OmniResults>)> {
        let of = |flow: &TestFlow| self.clients.iter().find(|client| client.flow == flow.flow);
        let flows = self.flows.iter();
        flows.filter_map(move |flow| Some((of(flow)?, flow.awaited.counted())))
    }
}
