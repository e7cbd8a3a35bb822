//! This host's half: what its agent's flows greet with, and what becomes of what they count.

use linerate_compat::iperf3::datagram;
use linerate_model::TrialId;
use linerate_model::manner::Transport;

use super::Shared;
use super::control::Delivered;
use super::parameters::in_order;
use crate::api::{AgentError, Assignment, TrialState, TrialStatus};
use crate::core::OtherEnd;

impl Shared {
    /// Returns what this host's agent is told instead, and how its flows greet.
    pub(crate) fn told(
        &self,
        assignment: &Assignment,
    ) -> Result<(Assignment, OtherEnd), AgentError> {
        let cookie = self.with_test(assignment.trial, |test| test.connection.cookie.clone())?;
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

    /// Notes that the flows of `trial` are open, and how to learn that all they sent has arrived.
    pub(crate) fn note_open(&self, trial: TrialId, delivered: Delivered) -> Result<(), AgentError> {
        self.with_test(trial, |test| {
            test.is_open = true;
            let waits = test.sends || test.parameters.bytes.is_some();
            test.delivered = waits.then_some(delivered);
        })
    }

    /// Notes what the flows of `trial` counted.
    pub(crate) fn note_status(
        &self,
        trial: TrialId,
        status: &TrialStatus,
    ) -> Result<(), AgentError> {
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
        })
    }
}
