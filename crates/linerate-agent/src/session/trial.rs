//! How far one trial has come, with a deadline on every state.
//!
//! ```text
//! Gathering ──all flows──► Ready ──start──► Running ──finished──► Finished
//!     └────────────────────── deadline, abort or failure ────────► Failed
//! ```

use crate::api::{StartRequest, TrialState};
use linerate_model::number;

/// How long flows may take to arrive and the instants to be set.
pub const PREPARE_NS: u64 = 15_000_000_000;
/// How long a trial may go on after its senders stopped: receivers drain for 2 s, of
/// thousands of flows for up to 6.
pub const OVERTIME_NS: u64 = 10_000_000_000;
/// How long results are kept.
pub const KEEP_NS: u64 = 30_000_000_000;
/// What part of the window may have passed when the instants arrive.
pub const LATE_PART: u64 = 20;
/// How far in the future a start may lie.
pub const START_AHEAD_NS: u64 = 60_000_000_000;

/// Why an event does not fit the state of a trial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// Flows are missing.
    #[error("{} did not arrive", number::counted(*missing, "flow"))]
    FlowsMissing {
        /// How many.
        missing: u32,
    },
    /// A start request out of order, or with instants that make no sense.
    #[error("{0}")]
    BadStart(&'static str),
    /// The instants came when the window had begun.
    #[error("the window began {} ms ago", .0 / 1_000_000)]
    Late(u64),
    /// The trial has failed.
    #[error("the trial has failed: {0}")]
    Failed(String),
}

/// The state of one trial.
#[derive(Debug, Clone)]
pub struct TrialSession {
    state: TrialState,
    deadline_ns: u64,
}

impl TrialSession {
    /// Returns a trial that waits for `expected` flows from `now_ns` on.
    pub fn new(now_ns: u64, expected: u32) -> Self {
        let state = match expected {
            0 => TrialState::Ready,
            missing => TrialState::Gathering { missing },
        };
        Self {
            state,
            deadline_ns: now_ns + PREPARE_NS,
        }
    }

    /// Returns how far it has come.
    pub fn state(&self) -> &TrialState {
        &self.state
    }

    /// Notes that one more flow exists.
    pub fn handle_flow(&mut self) {
        if let TrialState::Gathering { missing } = self.state {
            self.state = match missing {
                0 | 1 => TrialState::Ready,
                more => TrialState::Gathering { missing: more - 1 },
            };
        }
    }

    /// Takes up the instants; the flows may then be launched.
    pub fn handle_start(&mut self, now_ns: u64, at: &StartRequest) -> Result<(), SessionError> {
        match &self.state {
            TrialState::Ready => {}
            TrialState::Gathering { missing } => {
                return Err(SessionError::FlowsMissing { missing: *missing });
            }
            TrialState::Failed { why } => return Err(SessionError::Failed(why.clone())),
            TrialState::Running | TrialState::Finished => {
                return Err(SessionError::BadStart("the trial was started already"));
            }
        }
        let ordered = at.start_ns <= at.measure_begin_ns
            && at.measure_begin_ns < at.measure_end_ns
            && at.measure_end_ns <= at.stop_ns;
        if !ordered {
            return Err(SessionError::BadStart(
                "the instants must be ordered: start, begin, end, stop",
            ));
        }
        // A request that is somewhat late starts the flows at once: that shows as start skew and in
        // the instants of the readings. Later than this, the window's first edge could not be read.
        let window_ns = at.measure_end_ns - at.measure_begin_ns;
        if now_ns > at.measure_begin_ns + window_ns / LATE_PART {
            return Err(SessionError::Late(now_ns - at.measure_begin_ns));
        }
        if at.start_ns > now_ns + START_AHEAD_NS {
            return Err(SessionError::BadStart(
                "the start lies more than 60 s ahead",
            ));
        }
        self.state = TrialState::Running;
        self.deadline_ns = at.stop_ns + OVERTIME_NS;
        Ok(())
    }

    /// Notes that the flows are over and results exist.
    pub fn handle_finished(&mut self, now_ns: u64) {
        if self.state == TrialState::Running {
            self.state = TrialState::Finished;
            self.deadline_ns = now_ns + KEEP_NS;
        }
    }

    /// Notes that results are being fetched, which may take a while: they are kept as long.
    pub fn handle_fetch(&mut self, now_ns: u64) {
        if self.state == TrialState::Finished {
            self.deadline_ns = now_ns + KEEP_NS;
        }
    }

    /// Notes that the trial cannot go on.
    pub fn handle_failure(&mut self, now_ns: u64, why: String) {
        if !self.state.is_over() {
            self.state = TrialState::Failed { why };
            self.deadline_ns = now_ns + KEEP_NS;
        }
    }

    /// Applies the deadline; returns whether the trial may be forgotten.
    pub fn poll_deadline(&mut self, now_ns: u64) -> bool {
        if now_ns <= self.deadline_ns {
            return false;
        }
        let why = match &self.state {
            TrialState::Finished | TrialState::Failed { .. } => return true,
            TrialState::Gathering { missing } => {
                format!(
                    "{} did not arrive in time",
                    number::counted(*missing, "flow")
                )
            }
            TrialState::Ready => "the instants were not set in time".to_owned(),
            TrialState::Running => "the flows did not end in time".to_owned(),
        };
        self.handle_failure(now_ns, why);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn instants() -> StartRequest {
        StartRequest {
            start_ns: S,
            measure_begin_ns: 2 * S,
            measure_end_ns: 3 * S,
            stop_ns: 4 * S,
            skew_ns: 0,
            trigger: None,
        }
    }

    #[test]
    fn a_trial_goes_through_its_states() {
        let mut trial = TrialSession::new(0, 2);
        assert_eq!(
            trial.handle_start(0, &instants()),
            Err(SessionError::FlowsMissing { missing: 2 })
        );
        trial.handle_flow();
        trial.handle_flow();
        assert_eq!(trial.state(), &TrialState::Ready);
        trial.handle_start(0, &instants()).unwrap();
        assert!(trial.handle_start(0, &instants()).is_err());
        trial.handle_finished(4 * S);
        assert_eq!(trial.state(), &TrialState::Finished);
        assert!(!trial.poll_deadline(4 * S + KEEP_NS));
        assert!(trial.poll_deadline(4 * S + KEEP_NS + 1));
    }

    #[test]
    fn every_state_has_a_deadline() {
        let check = |mut trial: TrialSession, late_ns: u64, words: &str| {
            assert!(!trial.poll_deadline(late_ns));
            match trial.state() {
                TrialState::Failed { why } => assert!(why.contains(words), "{why}"),
                state => panic!("{state:?}"),
            }
            assert!(trial.poll_deadline(late_ns + KEEP_NS + 1));
        };
        check(TrialSession::new(0, 1), PREPARE_NS + 1, "did not arrive");
        check(TrialSession::new(0, 0), PREPARE_NS + 1, "instants");
        let mut running = TrialSession::new(0, 0);
        running.handle_start(0, &instants()).unwrap();
        check(running, 4 * S + OVERTIME_NS + 1, "did not end");
    }

    #[test]
    fn results_that_are_being_fetched_are_kept() {
        let mut trial = TrialSession::new(0, 0);
        trial.handle_fetch(S);
        assert_eq!(trial.state(), &TrialState::Ready);
        trial.handle_start(0, &instants()).unwrap();
        trial.handle_finished(4 * S);
        trial.handle_fetch(20 * S);
        assert!(!trial.poll_deadline(20 * S + KEEP_NS));
        assert!(trial.poll_deadline(20 * S + KEEP_NS + 1));
    }

    #[test]
    fn impossible_instants_are_refused() {
        let refuse = |now: u64, at: StartRequest| {
            assert!(matches!(
                TrialSession::new(0, 0).handle_start(now, &at),
                Err(SessionError::BadStart(_))
            ));
        };
        refuse(
            0,
            StartRequest {
                measure_end_ns: S,
                ..instants()
            },
        );
        let latest = 2 * S + S / LATE_PART;
        let late = TrialSession::new(0, 0).handle_start(latest + 1, &instants());
        assert_eq!(late, Err(SessionError::Late(latest + 1 - 2 * S)));
        TrialSession::new(0, 0)
            .handle_start(latest, &instants())
            .expect("a late start is a start");
        refuse(
            0,
            StartRequest {
                start_ns: 100 * S,
                measure_begin_ns: 101 * S,
                measure_end_ns: 102 * S,
                stop_ns: 103 * S,
                skew_ns: 0,
                trigger: None,
            },
        );
    }
}
