//! A server of another program, as a controller sees it: an agent that observes nothing.

use std::sync::Arc;
use std::time::Duration;

use linerate_engine::now_ns;
use linerate_model::TrialId;
use linerate_model::experiment::Timing;
use linerate_model::run::Admission;

use super::{CallError, Named, Peer};
use crate::api::{
    API_VERSION, AdmitRequest, Admitted, Agent, AgentError, AgentInfo, Assignment, ClockReading,
    Inventory, InventoryRequest, LimitsInfo, Observation, ObservationRequest, PollFrom, Prepared,
    RefusalCode, StartRequest, TrialStatus,
};

/// How long the server may take to be free for the next test, and the time between two tries.
const AGAIN_NS: u64 = 3_000_000_000;
const AGAIN_LOOK: Duration = Duration::from_millis(50);
/// How long nothing may listen where a test has just ended: servers open their listener anew within
/// milliseconds, on a busy machine within a tenth of a second.
const REOPENED_NS: u64 = 500_000_000;

/// Connects to a server that may still be busy with the end of our own last test, or has closed its
/// listener with it and opens the next one in a moment.
fn call_again(peer: &dyn Peer) -> Result<(), CallError> {
    let began_ns = now_ns();
    loop {
        let waited_ns = now_ns() - began_ns;
        match peer.call() {
            Err(CallError::Busy) if waited_ns < AGAIN_NS => {}
            Err(CallError::Unreachable(_)) if waited_ns < REOPENED_NS => {}
            other => return other,
        }
        std::thread::sleep(AGAIN_LOOK);
    }
}

/// A server of another program, as an agent.
pub(in crate::foreign) struct PeerServer(pub(in crate::foreign) Arc<dyn Peer>);

impl PeerServer {
    fn admitted(&self, queue_place: Option<u32>, admission: Admission) -> Admitted {
        Admitted {
            // The name of the only lease there is.
            lease: self.0.named().program.to_owned(),
            queue_place,
            admission,
            shared_with: 0,
        }
    }
}

impl Agent for PeerServer {
    fn address(&self) -> String {
        self.0.named().address.to_string()
    }

    fn control(&self) -> linerate_model::run::Control {
        linerate_model::run::Control::Clear
    }

    fn info(&self) -> Result<AgentInfo, AgentError> {
        let Named { program, address } = self.0.named();
        Ok(AgentInfo {
            program: (*program).to_owned(),
            version: String::new(),
            api: API_VERSION,
            host_name: address.ip().to_string(),
            lab: false,
            boot: None,
            observe_refused: Some(format!(
                "the host of a server of {program} cannot be observed; run `linerate serve` there"
            )),
            busy: None,
            limits: LimitsInfo::default(),
        })
    }

    /// Returns this host's clock: the server has none to offer, and every instant of its test is one of
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
        Err(self.0.named().refused(what, RefusalCode::BadRequest))
    }

    fn admit(&self, request: &AdmitRequest) -> Result<Admitted, AgentError> {
        match self.0.call() {
            Ok(()) => Ok(self.admitted(None, request.admission)),
            // It keeps no queue, so that whoever asks first once it is free is served.
            Err(CallError::Busy) if request.admission == Admission::Queued => {
                Ok(self.admitted(Some(1), Admission::Queued))
            }
            Err(error) => Err(self.0.named().call_error(error)),
        }
    }

    fn renew(&self, _lease: &str) -> Result<Admitted, AgentError> {
        self.0.forget_test(None);
        match call_again(&*self.0) {
            Ok(()) => Ok(self.admitted(None, Admission::Exclusive)),
            Err(CallError::Busy) => Ok(self.admitted(Some(1), Admission::Queued)),
            Err(error) => Err(self.0.named().call_error(error)),
        }
    }

    fn leave(&self, _lease: &str) -> Result<(), AgentError> {
        self.0.leave();
        Ok(())
    }

    fn prepare(
        &self,
        _lease: &str,
        assignment: &Assignment,
        timing: &Timing,
    ) -> Result<Prepared, AgentError> {
        let called = call_again(&*self.0);
        called.map_err(|error| self.0.named().call_error(error))?;
        self.0.prepare(assignment, timing)?;
        Ok(Prepared::default())
    }

    fn start(&self, _lease: &str, trial: TrialId, at: &StartRequest) -> Result<(), AgentError> {
        self.0.start(trial, at)
    }

    fn poll(
        &self,
        _lease: &str,
        trial: TrialId,
        from: PollFrom,
    ) -> Result<TrialStatus, AgentError> {
        self.0.poll(trial, from.sample)
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
        self.0.stop(trial)
    }

    fn abort(&self, _lease: &str, trial: TrialId) -> Result<(), AgentError> {
        self.0.forget_test(Some(trial));
        Ok(())
    }
}
