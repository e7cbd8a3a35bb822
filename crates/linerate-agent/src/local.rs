//! The agent in this process: the same core, without HTTP.

use std::sync::Arc;

use linerate_engine::now_ns;
use linerate_model::TrialId;
use linerate_model::experiment::Timing;

use crate::api::{
    AdmitRequest, Admitted, Agent, AgentError, AgentInfo, Assignment, ClockReading, Inventory,
    InventoryRequest, Observation, ObservationRequest, PollFrom, Prepared, Refusal, StartRequest,
    TrialStatus,
};
use crate::core::{Caller, Core, OtherEnd};
use crate::foreign::peer::Peer;

/// What messages call it.
const ADDRESS: &str = "in-process";

/// An agent for the controller's own host.
pub struct LocalAgent {
    core: Arc<Core>,
    /// The other end, if that is a server of another program.
    peer: Option<Arc<dyn Peer>>,
}

impl LocalAgent {
    /// Returns the agent behind `core`; whoever holds it is trusted.
    pub fn new(core: Arc<Core>) -> Self {
        Self { core, peer: None }
    }

    /// Returns the same for trials with `peer`.
    pub(crate) fn with_peer(self, peer: Arc<dyn Peer>) -> Self {
        let peer = Some(peer);
        Self { peer, ..self }
    }
}

impl From<Refusal> for AgentError {
    /// Returns the error of an agent in this process, which has no address.
    fn from(refusal: Refusal) -> Self {
        Self::Refused {
            address: None,
            refusal,
        }
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
        Ok(self.core.observe(&Caller::Trusted, request)?)
    }

    fn admit(&self, request: &AdmitRequest) -> Result<Admitted, AgentError> {
        Ok(self.core.admit(&Caller::Trusted, None, request)?)
    }

    fn renew(&self, lease: &str) -> Result<Admitted, AgentError> {
        Ok(self.core.renew(lease)?)
    }

    fn leave(&self, lease: &str) -> Result<(), AgentError> {
        Ok(self.core.leave(lease)?)
    }

    fn prepare(
        &self,
        lease: &str,
        assignment: &Assignment,
        _timing: &Timing,
    ) -> Result<Prepared, AgentError> {
        let (told, other_end) = match &self.peer {
            Some(peer) => peer.told(assignment)?,
            None => (assignment.clone(), OtherEnd::Agent),
        };
        let core = &self.core;
        let prepared = core.prepare_with(&Caller::Trusted, lease, told, other_end)?;
        if let Some(peer) = &self.peer {
            let (core, lease, trial) = (core.clone(), lease.to_owned(), assignment.trial);
            peer.note_open(trial, Box::new(move || core.delivered(&lease, trial)))?;
        }
        Ok(prepared)
    }

    fn start(&self, lease: &str, trial: TrialId, at: &StartRequest) -> Result<(), AgentError> {
        Ok(self.core.start(lease, trial, at)?)
    }

    fn poll(&self, lease: &str, trial: TrialId, from: PollFrom) -> Result<TrialStatus, AgentError> {
        let status = self.core.poll_trial(lease, trial, from)?;
        if let Some(peer) = &self.peer {
            peer.note_status(trial, &status)?;
        }
        Ok(status)
    }

    fn capture_part(
        &self,
        lease: &str,
        trial: TrialId,
        part: usize,
    ) -> Result<Vec<u8>, AgentError> {
        Ok(self.core.capture_part(lease, trial, part)?)
    }

    fn stop(&self, lease: &str, trial: TrialId) -> Result<(), AgentError> {
        Ok(self.core.stop(lease, trial)?)
    }

    fn abort(&self, lease: &str, trial: TrialId) -> Result<(), AgentError> {
        Ok(self.core.abort(lease, trial)?)
    }
}
