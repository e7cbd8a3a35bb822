//! One trial on this host: what it was told to do, its flows as they come, and its record.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

use linerate_engine as engine;
use linerate_engine::Flow;
use linerate_model::sample::Sample;
use linerate_model::unit::Bytes;
use linerate_model::workload::Part;
use linerate_model::{BitsPerSec, FlowId};

use super::lock;
use crate::api::{Assignment, FlowOutcome};
use crate::session::trial::TrialSession;

/// Returns the bytes of one sample in memory, for the bound on a trial's record.
pub(super) const SAMPLE_BYTES: Bytes = Bytes(size_of::<Sample>() as u64);

/// One trial on this host.
pub(super) struct TrialSlot {
    pub(super) assignment: Assignment,
    pub(super) cookie: [u8; 16],
    pub(super) observe: bool,
    /// What all its flows together may receive.
    pub(super) rate_max: Option<BitsPerSec>,
    pub(super) gathered: Mutex<Gathered>,
    /// Signalled when a flow arrives or the trial fails.
    pub(super) changed: Condvar,
    pub(super) record: Mutex<Record>,
    pub(super) abort: AtomicBool,
    /// Whether everything that the flows sent has been acknowledged; only seen to where the other
    /// end is no agent, which would not read on after its end.
    pub(super) delivered: AtomicBool,
}

/// How far a trial has come, with its flows until they are launched.
pub(super) struct Gathered {
    pub(super) session: TrialSession,
    pub(super) flows: Vec<Flow>,
    /// The flows that have not arrived, and what this end does in them.
    pub(super) expected: HashMap<FlowId, Part>,
}

/// What a trial has to hand over.
#[derive(Default)]
pub(super) struct Record {
    /// The number of the first of `samples`; those before were handed over.
    pub(super) first: usize,
    pub(super) samples: Vec<Sample>,
    pub(super) flows: Vec<FlowOutcome>,
    pub(super) notes: Vec<String>,
}

impl Record {
    /// Returns the samples from number `from` on. Asking for it says that those before have
    /// arrived, so they are forgotten: a long trial holds no more than one look's worth.
    pub(super) fn hand_over(&mut self, from: usize) -> Vec<Sample> {
        let arrived = from.saturating_sub(self.first).min(self.samples.len());
        self.samples.drain(..arrived);
        self.first += arrived;
        match from == self.first {
            true => self.samples.clone(),
            // A number that was never handed out.
            false => Vec::new(),
        }
    }
}

impl std::fmt::Debug for TrialSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrialSlot")
            .field("trial", &self.assignment.trial)
            .finish_non_exhaustive()
    }
}

impl TrialSlot {
    /// Ends the trial without result, unless it has one.
    pub(super) fn fail(&self, why: &str) {
        lock(&self.gathered)
            .session
            .handle_failure(engine::now_ns(), why.to_owned());
        self.abort.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_arrived_is_forgotten_and_the_rest_can_be_asked_for_again() {
        let sample = |value| Sample {
            metric: linerate_model::metric::Metric::CpuUser,
            subject: linerate_model::sample::Subject::Host,
            at_ns: 0,
            value,
        };
        let mut record = Record {
            samples: (0..5).map(sample).collect(),
            ..Record::default()
        };
        let values = |samples: Vec<Sample>| -> Vec<i64> {
            samples.into_iter().map(|sample| sample.value).collect()
        };
        assert_eq!(values(record.hand_over(0)), [0, 1, 2, 3, 4]);
        assert_eq!(values(record.hand_over(3)), [3, 4]);
        assert_eq!(
            values(record.hand_over(3)),
            [3, 4],
            "an answer that was lost is repeated"
        );
        record.samples.push(sample(5));
        assert_eq!(values(record.hand_over(5)), [5]);
        assert_eq!(
            values(record.hand_over(0)),
            [] as [i64; 0],
            "what has arrived is gone"
        );
        assert_eq!(
            values(record.hand_over(9)),
            [] as [i64; 0],
            "and what is to come is not there"
        );
        assert_eq!(record.samples.len(), 0);
    }
}
