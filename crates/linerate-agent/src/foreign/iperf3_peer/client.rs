//! This host's half: its own agent, whose flows greet as iperf3's do.

use std::sync::Arc;

use linerate_compat::iperf3::datagram;
use linerate_model::TrialId;
use linerate_model::manner::Transport;

use super::parameters::in_order;
use super::{Shared, Test};
use crate::LocalAgent;
use crate::api::{
    AdmitRequest, Admitted, Agent, AgentError, AgentInfo, Assignment, ClockReading, Inventory,
    InventoryRequest, Observation, ObservationRequest, PollFrom, Prepared, StartRequest,
    TrialState, TrialStatus,
};
use crate::core::OtherEnd;

/// The agent of this process, for a trial with an iperf3 server.
pub struct Iperf3Client {
    shared: Arc<Shared>,
    local: Arc<LocalAgent>,
}

impl Iperf3Client {
    pub(super) fn new(shared: Arc<Shared>, local: LocalAgent) -> Self {
        Self {
            shared,
            local: Arc::new(local),
        }
    }

    /// Does `work` with the test of `trial`.
    fn with_test<T>(
        &self,
        trial: TrialId,
        work: impl FnOnce(&mut Test) -> T,
    ) -> Result<T, AgentError> {
        let mut desk = self.shared.desk();
        let test = desk.test.as_mut().filter(|test| test.trial == trial);
        let test = test.ok_or_else(|| self.shared.no_trial())?;
        Ok(work(test))
    }
}

impl Agent for Iperf3Client {
    fn address(&self) -> String {
        self.local.address()
    }

    fn control(&self) -> linerate_model::run::Control {
        linerate_model::run::Control::InProcess
    }

    fn info(&self) -> Result<AgentInfo, AgentError> {
        self.local.info()
    }

    fn clock(&self) -> Result<ClockReading, AgentError> {
        self.local.clock()
    }

    fn inventory(&self, request: &InventoryRequest) -> Result<Inventory, AgentError> {
        self.local.inventory(request)
    }

    fn observe(&self, request: &ObservationRequest) -> Result<Observation, AgentError> {
        self.local.observe(request)
    }

    fn admit(&self, request: &AdmitRequest) -> Result<Admitted, AgentError> {
        self.local.admit(request)
    }

    fn renew(&self, lease: &str) -> Result<Admitted, AgentError> {
        self.local.renew(lease)
    }

    fn leave(&self, lease: &str) -> Result<(), AgentError> {
        self.local.leave(lease)
    }

    fn prepare(&self, lease: &str, assignment: &Assignment) -> Result<Prepared, AgentError> {
        let trial = assignment.trial;
        let cookie = self.with_test(trial, |test| test.connection.cookie.clone())?;
        let greeting = match assignment.manner.transport {
            Transport::Udp => datagram::HELLO.to_vec(),
            _ => cookie.encode().to_vec(),
        };
        let told = Assignment {
            flows: in_order(&assignment.flows),
            ..assignment.clone()
        };
        let other_end = OtherEnd::Foreign { greeting };
        let prepared = self.local.prepare_with(lease, told, other_end)?;
        let (local, lease) = (Arc::clone(&self.local), lease.to_owned());
        self.with_test(trial, |test| {
            test.is_open = true;
            let waits = test.sends || test.parameters.bytes.is_some();
            test.delivered = waits.then(|| -> super::control::Delivered {
                Box::new(move || local.delivered(&lease, trial))
            });
        })?;
        Ok(prepared)
    }

    fn start(&self, lease: &str, trial: TrialId, at: &StartRequest) -> Result<(), AgentError> {
        self.local.start(lease, trial, at)
    }

    fn poll(&self, lease: &str, trial: TrialId, from: PollFrom) -> Result<TrialStatus, AgentError> {
        let status = self.local.poll(lease, trial, from)?;
        self.with_test(trial, |test| {
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
        })?;
        Ok(status)
    }

    fn capture_part(
        &self,
        lease: &str,
        trial: TrialId,
        part: usize,
    ) -> Result<Vec<u8>, AgentError> {
        self.local.capture_part(lease, trial, part)
    }

    fn stop(&self, lease: &str, trial: TrialId) -> Result<(), AgentError> {
        self.local.stop(lease, trial)
    }

    fn abort(&self, lease: &str, trial: TrialId) -> Result<(), AgentError> {
        self.local.abort(lease, trial)
    }
}
