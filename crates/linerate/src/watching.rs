//! A host that is only looked at, and what of it.

use std::sync::Arc;

use linerate_agent::api::{Agent, AgentError, InventoryRequest, Observation, ObservationRequest};
use linerate_analyze::watch::Watched;
use linerate_model::Nanos;
use linerate_model::host::Snapshot;

/// The host, and what of it is looked at.
pub struct Watching {
    /// Its agent.
    pub agent: Arc<dyn Agent>,
    /// What of it.
    pub request: ObservationRequest,
    /// Time between two readings.
    pub interval: Nanos,
}

impl Watching {
    /// Reads the host.
    pub fn observe(&self) -> Result<Observation, AgentError> {
        self.agent.observe(&self.request)
    }

    /// Returns what the host is: its queues and where interrupts may run change while it is watched.
    pub fn facts(&self) -> Result<Snapshot, AgentError> {
        let inventory = self.agent.inventory(&InventoryRequest::default())?;
        Ok(inventory.snapshot)
    }
}

/// Takes up one reading.
pub fn take(watched: &mut Watched, reading: Observation) {
    watched.take(reading.at_ns, &reading.samples);
    watched.programs.take(reading.at_ns, &reading.programs);
    if let Some(seen) = reading.sockets {
        let sockets = &mut watched.sockets;
        sockets.take(seen.at_ns, &seen.rows, seen.beyond, seen.owners);
    }
}
