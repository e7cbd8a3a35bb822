//! Flows of datagrams: which are expected, and how they are taken up.

use std::sync::Arc;

use linerate_engine::Flow;
use linerate_model::manner::Transport;

use super::Core;
use super::slot::TrialSlot;
use crate::serve::hello::{Announces, Hello};
use crate::sync::lock;

impl Core {
    /// Returns whether a trial waits for the flow of datagrams that `hello` names.
    pub fn expects_datagrams(&self, hello: Hello) -> bool {
        self.slot_of(&hello).is_some_and(|slot| {
            let gathered = lock(&slot.gathered);
            let expected = gathered.expected.get(&hello.flow);
            let is_udp = |group: usize| slot.groups[group].manner.transport == Transport::Udp;
            gathered.session.state().is_gathering()
                && expected.is_some_and(|(group, _)| is_udp(*group))
        })
    }

    /// Confirms flows again whose clients did not hear it.
    pub fn confirm_datagrams_again(&self) {
        let slots: Vec<Arc<TrialSlot>> = lock(&self.trials).values().cloned().collect();
        for slot in slots {
            let gathered = lock(&slot.gathered);
            let is_udp = |flow: &&Flow| flow.config().manner.transport == Transport::Udp;
            for flow in gathered.flows.iter().filter(is_udp) {
                let hello = Hello {
                    cookie: slot.cookie,
                    flow: flow.config().flow,
                    announces: Announces::Flow,
                };
                // A flow that cannot be answered is missed by its client, which reports it.
                let _ = flow.confirm_again(&hello.encode());
            }
        }
    }

    /// Returns the trial that `hello` names; there is a handful at the most.
    pub(super) fn slot_of(&self, hello: &Hello) -> Option<Arc<TrialSlot>> {
        let trials = lock(&self.trials);
        let mut slots = trials.values();
        slots.find(|slot| slot.cookie == hello.cookie).cloned()
    }
}
