//! The agent in this process: the same core, without HTTP.

use std::sync::Arc;

use linerate_engine::now_ns;
use linerate_model::TrialId;

use crate::api::{
    AdmitRequest, Admitted, Agent, AgentError, AgentInfo, Assignment, ClockReading, Inventory,
    InventoryRequest, Observation, ObservationRequest, PollFrom, Prepared, Refusal, StartRequest,
    TrialStatus,
};
use crate::core::{Caller, Core, OtherEnd};

/// What messages call it.
const ADDRESS: &str = "in-process";

/// An agent for the controller's own host.
pub struct LocalAgent {
    core: Arc<Core>,
}

impl LocalAgent {
    /// Returns the agent behind `core`; whoever holds it is trusted.
    pub fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Makes the flows of a trial with `other_end`.
    pub(crate) fn prepare_with(
        &self,
        lease: &str,
        assignment: Assignment,
        other_end: OtherEnd,
    ) -> Result<Prepared, AgentError> {
        self.core
            .prepare_with(&Caller::Trusted, lease, assignment, other_end)
            .map_err(refused)
    }

    /// Returns whether the senders of a trial have stopped and all they sent was acknowledged.
    pub(crate) fn delivered(&self, lease: &str, trial: TrialId) -> bool {
        self.core.delivered(lease, trial)
    }
}

fn refused(refusal: Refusal) -> AgentError {
    AgentError::Refused {
        address: ADDRESS.to_owned(),
        refusal,
    }
}

impl Agent for LocalAgent {
    fn address(&self) -> String {
        ADDRESS.to_owned()
    }

    fn control(&self) -> linerate_model::run::Control {
        linerate_model::run::Control::InProcess
    }

    fn info(&self) -> Result<AgentInfo, AgentError> {
        Ok(self.core.info(&Caller::Trusted))
    }

    fn clock(&self) -> Result<ClockReading, AgentError> {
        let now = now_ns();
        Ok(ClockReading {
            received_ns: now,
            sent_ns: now,
        })
    }

    fn inventory(&self, request: &InventoryRequest) -> Result<Inventory, AgentError> {
        Ok(self.core.inventory(&Caller::Trusted, request))
    }

    fn observe(&self, request: &ObservationRequest) -> Result<Observation, AgentError> {
        self.core
            .observe(&Caller::Trusted, request)
            .map_err(refused)
    }

    fn admit(&self, request: &AdmitRequest) -> Result<Admitted, AgentError> {
        self.core
            .admit(&Caller::Trusted, None, request)
            .map_err(refused)
    }

    fn renew(&self, lease: &str) -> Result<Admitted, AgentError> {
        self.core.renew(lease).map_err(refused)
    }

    fn leave(&self, lease: &str) -> Result<(), AgentError> {
        self.core.leave(lease).map_err(refused)
    }

    fn prepare(&self, lease: &str, assignment: &Assignment) -> Result<Prepared, AgentError> {
        self.prepare_with(lease, assignment.clone(), OtherEnd::Agent)
    }

    fn start(&self, lease: &str, trial: TrialId, at: &StartRequest) -> Result<(), AgentError> {
        self.core.start(lease, trial, at).map_err(refused)
    }

    fn poll(&self, lease: &str, trial: TrialId, from: PollFrom) -> Result<TrialStatus, AgentError> {
        self.core.poll_trial(lease, trial, from).map_err(refused)
    }

    fn capture_part(
        &self,
        lease: &str,
        trial: TrialId,
        part: usize,
    ) -> Result<Vec<u8>, AgentError> {
        self.core.capture_part(lease, trial, part).map_err(refused)
    }

    fn stop(&self, lease: &str, trial: TrialId) -> Result<(), AgentError> {
        self.core.stop(lease, trial).map_err(refused)
    }

    fn abort(&self, lease: &str, trial: TrialId) -> Result<(), AgentError> {
        self.core.abort(lease, trial).map_err(refused)
    }
}
