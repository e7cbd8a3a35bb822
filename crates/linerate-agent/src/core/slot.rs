//! One trial on this host: what it was told to do, its flows as they come, and its record.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use linerate_engine as engine;
use linerate_engine::{Calls, Flow};
use linerate_model::capture::CaptureOutcome;
use linerate_model::profile::Stack;
use linerate_model::run::FlowOutcome;
use linerate_model::sample::End;
use linerate_model::sample_log::SampleLog;
use linerate_model::setting::SettingPool;
use linerate_model::workload::Part;
use linerate_model::{BitsPerSec, FlowId};
use tokio::sync::Notify;

use super::capture::RunningCapture;
use super::flows::refused;
use super::tuned::Tuned;
use crate::api::{Assignment, TrialState};
use crate::limits::Grant;
use crate::session::trial::TrialSession;
use crate::sync::lock;

/// Who is at the other end of a trial's flows.
#[derive(Debug)]
pub(crate) enum OtherEnd {
    /// An agent, which reads to the end of every stream by itself.
    Agent,
    /// A program of another protocol. Only this process may choose it, never a request: no agent can
    /// be made to speak to strangers.
    Foreign {
        /// What each flow says first, in place of cookie and number.
        greeting: Vec<u8>,
    },
    /// Another program likewise, which awaits each flow at an address of its own, in their order, where it says
    /// nothing but payload, and reads to the end of every stream.
    Addressed(Vec<SocketAddr>),
}

impl OtherEnd {
    /// Returns whether it stops reading once its own end is told, so that delivery is waited for here.
    pub(super) fn must_be_waited_for(&self) -> bool {
        matches!(self, Self::Foreign { .. })
    }
}

/// One trial on this host.
pub(super) struct TrialSlot {
    /// The lease of its run.
    pub(super) lease: String,
    pub(super) assignment: Assignment,
    /// The same for each of its groups alone.
    pub(super) groups: Vec<Assignment>,
    pub(super) other_end: OtherEnd,
    pub(super) cookie: [u8; 16],
    /// Where the connections of its places come in, if it answers such.
    pub(super) calls: Option<Arc<Calls>>,
    pub(super) observe: bool,
    /// What all its flows together may receive.
    pub(super) rate_max: Option<BitsPerSec>,
    /// What a caller without the token may take for it, until it is over.
    pub(super) grant: Mutex<Option<Grant>>,
    /// What of the host is changed for it, until it is over.
    pub(super) tuned: Mutex<Option<Tuned>>,
    /// Memory that its samples may take.
    pub(super) record_bytes_max: u64,
    /// Whether its flows were launched: they are then in the hands of its sampler.
    pub(super) launched: AtomicBool,
    /// Whether it waits for a datagram that starts it, or has.
    pub(super) armed: AtomicBool,
    pub(super) gathered: Mutex<Gathered>,
    /// Told when a flow arrives and when the trial is over.
    pub(super) changed: Change,
    pub(super) record: Mutex<TrialRecord>,
    /// The capture under way, until the flows are launched.
    pub(super) capture: Mutex<Option<RunningCapture>>,
    pub(super) abort: AtomicBool,
    /// Whether everything that the flows sent has been acknowledged; only seen to where the other
    /// end is no agent, which would not read on after its end.
    pub(super) delivered: AtomicBool,
}

/// Wakes whoever waits for a trial: threads of this process, and requests, which wait without one.
#[derive(Default)]
pub(super) struct Change {
    threads: Condvar,
    requests: Notify,
}

impl Change {
    /// Wakes all who wait.
    pub(super) fn tell(&self) {
        self.threads.notify_all();
        self.requests.notify_waiters();
    }
}

/// How far a trial has come, with its flows until they are launched.
pub(super) struct Gathered {
    pub(super) session: TrialSession,
    pub(super) flows: Vec<Flow>,
    /// Settings of the flows so far.
    pub(super) pool: SettingPool,
    /// The flows that have not arrived, and what this end does in them, each with the place of its group in
    /// [`TrialSlot::groups`].
    pub(super) expected: HashMap<FlowId, (usize, Part)>,
    /// Lets the hellos of its flows of datagrams through.
    pub(super) hellos: Option<engine::Await>,
}

/// What a trial has to hand over.
#[derive(Default)]
pub(super) struct TrialRecord {
    pub(super) samples: SampleLog,
    pub(super) flows: Outbox<FlowOutcome>,
    pub(super) stacks: Vec<Stack>,
    pub(super) notes: Vec<String>,
    /// What came of the capture that was asked for.
    pub(super) capture: Option<CaptureOutcome>,
    /// Its file, in parts.
    pub(super) capture_parts: Outbox<Vec<u8>>,
}

/// Items that are handed over by and by, and forgotten once they have arrived.
pub(super) struct Outbox<T> {
    /// The number of the first of `items`; those before were handed over.
    first: usize,
    /// What has not arrived yet.
    pub(super) items: Vec<T>,
}

// Derived, it would ask for `T: Default`.
impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self {
            first: 0,
            items: Vec::new(),
        }
    }
}

impl<T: Clone> Outbox<T> {
    /// Returns up to `most` items from number `from` on, no more than `fits` takes one after another but
    /// one in any case, and whether there are more. Asking for it says that those before have arrived, so
    /// they are forgotten: a long trial holds no more than one look's worth.
    pub(super) fn hand_over(
        &mut self,
        from: usize,
        most: usize,
        fits: impl FnMut(&T) -> bool,
    ) -> (Vec<T>, bool) {
        let arrived = from.saturating_sub(self.first).min(self.items.len());
        self.items.drain(..arrived);
        self.first += arrived;
        if self.items.is_empty() {
            // The room of a reading of thousands of flows, which is not needed until the next.
            self.items = Vec::new();
        }
        if from == self.first {
            let fitting = self
                .items
                .iter()
                .map(fits)
                .take(most)
                .take_while(|fits| *fits);
            let count = fitting.count().max(most.min(self.items.len()).min(1));
            (self.items[..count].to_vec(), count < self.items.len())
        } else {
            // A number that was never handed out.
            (Vec::new(), false)
        }
    }
}

impl TrialSlot {
    /// Returns whether nothing more comes of the trial.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.gathered).session.state().is_over()
    }

    /// Returns why the trial ended without result, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        match lock(&self.gathered).session.state() {
            TrialState::Failed { why } => Some(why.clone()),
            _ => None,
        }
    }

    /// Ends a trial of which the other end has said that it will not take up a flow.
    pub(super) fn look_for_refusals(&self) {
        if self.assignment.end == End::Server || self.launched.load(Ordering::Relaxed) {
            return;
        }
        let refusal = refused(&self.assignment, &lock(&self.gathered).flows);
        if let Some(refusal) = refusal {
            self.fail(&refusal.error);
        }
    }

    /// Ends the trial without result, unless it has one.
    pub(super) fn fail(&self, why: &str) {
        let mut gathered = lock(&self.gathered);
        gathered
            .session
            .handle_failure(engine::now_ns(), why.to_owned());
        self.end(gathered);
    }

    /// Ends what of the trial is still under way, and tells whoever waits for it.
    pub(super) fn end(&self, mut gathered: MutexGuard<'_, Gathered>) {
        self.abort.store(true, Ordering::Relaxed);
        self.release(&mut gathered);
        drop(gathered);
        self.changed.tell();
    }

    /// Closes the flows of a trial that never began and gives back what they took; the sampler of one that did is
    /// about to.
    fn release(&self, gathered: &mut Gathered) {
        if self.launched.load(Ordering::Relaxed) {
            if let Some(grant) = lock(&self.grant).as_mut() {
                grant.note_ending();
            }
            return;
        }
        gathered.flows = Vec::new();
        gathered.hellos = None;
        lock(&self.grant).take();
        lock(&self.tuned).take();
        lock(&self.capture).take();
    }

    /// Waits while the trial is in a state that `goes_on` names, at most so long.
    pub(super) fn wait_while(&self, most: Duration, goes_on: impl Fn(&TrialState) -> bool) {
        let goes_on = |gathered: &mut Gathered| goes_on(gathered.session.state());
        let (threads, gathered) = (&self.changed.threads, lock(&self.gathered));
        // Another thread that panicked changes nothing: see `lock`.
        drop(threads.wait_timeout_while(gathered, most, goes_on));
    }

    /// Waits likewise, without a thread.
    pub(super) async fn while_so(&self, most: Duration, goes_on: impl Fn(&TrialState) -> bool) {
        // A timer of no length ends with the runtime's next millisecond.
        if most.is_zero() {
            return;
        }
        let change = async {
            loop {
                let mut told = std::pin::pin!(self.changed.requests.notified());
                // From here on it hears what is told, whenever it is looked at.
                told.as_mut().enable();
                if !goes_on(lock(&self.gathered).session.state()) {
                    return;
                }
                told.await;
            }
        };
        let _ = tokio::time::timeout(most, change).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_arrived_is_forgotten_and_the_rest_can_be_asked_for_again() {
        let mut outbox = Outbox {
            first: 0,
            items: (0..5).collect(),
        };
        let all = usize::MAX;
        assert_eq!(
            outbox.hand_over(0, all, |_| true),
            (vec![0, 1, 2, 3, 4], false)
        );
        assert_eq!(outbox.hand_over(3, all, |_| true), (vec![3, 4], false));
        assert_eq!(
            outbox.hand_over(3, all, |_| true),
            (vec![3, 4], false),
            "an answer that was lost is repeated"
        );
        assert_eq!(
            outbox.hand_over(3, 1, |_| true),
            (vec![3], true),
            "the rest waits"
        );
        assert_eq!(
            outbox.hand_over(3, all, |_| false),
            (vec![3], true),
            "one in any case"
        );
        outbox.items.push(5);
        assert_eq!(outbox.hand_over(5, all, |_| true), (vec![5], false));
        assert_eq!(
            outbox.hand_over(0, all, |_| true),
            (vec![], false),
            "what has arrived is gone"
        );
        assert_eq!(
            outbox.hand_over(9, all, |_| true),
            (vec![], false),
            "and what is to come is not there"
        );
        assert_eq!(outbox.items.len(), 0);
    }
}
