//! What is due while a test goes on: its place is kept, its rate is looked at, and its time passes.

use std::time::Duration;

use linerate_engine::now_ns;
use nix::errno::Errno;

use super::plan::{Ends, Meant};
use super::refused::Refused;
use super::test::Test;
use crate::foreign::guest::RENEW_NS;

/// The time between two looks at what has come.
const ARRIVED_LOOK_NS: u64 = 250_000_000;

/// When what is due.
pub(super) struct Due {
    renew_ns: u64,
    look_ns: u64,
    /// The end of the time that the client named, until it has passed.
    time_ns: Option<u64>,
    /// When the test is ended, until it is.
    end_ns: Option<u64>,
    ends: Ends,
    /// Why the test has to end, if it has.
    pub(super) failed: Option<Refused>,
}

impl Due {
    /// Returns what is due of a test that begins now.
    pub(super) fn new(plan: Meant) -> Self {
        let now = now_ns();
        let end_ns = now.saturating_add(plan.most.0);
        Self {
            renew_ns: now + RENEW_NS,
            look_ns: now + ARRIVED_LOOK_NS,
            time_ns: Some(end_ns.saturating_sub(plan.pad.0)),
            end_ns: Some(end_ns),
            ends: plan.ends,
            failed: None,
        }
    }

    /// Returns how long nothing is due.
    pub(super) fn wait(&self) -> Duration {
        let ends_ns = [self.time_ns, self.end_ns].into_iter().flatten();
        let next_ns = ends_ns.fold(self.look_ns.min(self.renew_ns), u64::min);
        Duration::from_nanos(next_ns.saturating_sub(now_ns()))
    }

    /// Does what is due, and says through `alive` that the test goes on.
    pub(super) fn poll(&mut self, test: &mut Test, alive: &impl Fn()) {
        let now = now_ns();
        if now >= self.renew_ns {
            self.renew_ns = now + RENEW_NS;
            alive();
            if !test.renew() {
                self.fail(Errno::ECANCELED, "the agent took the host back");
            }
        }
        if now >= self.look_ns {
            self.look_ns = now + ARRIVED_LOOK_NS;
            if let Some(why) = test.excess() {
                self.fail(Errno::EDQUOT, why);
            }
        }
        if self.time_ns.take_if(|time| now >= *time).is_some() {
            test.note_time();
        }
        if self.end_ns.take_if(|end| now >= *end).is_some() {
            test.stop();
            if self.ends == Ends::ByLimit {
                self.fail(Errno::ETIME, "the test is longer than this agent allows");
            }
        }
        if self.failed.is_some() {
            test.stop();
        }
    }

    /// Notes why the test has to end; the first reason is the one.
    fn fail(&mut self, error: Errno, why: impl Into<String>) {
        self.failed.get_or_insert(Refused::new(error, why));
    }
}
