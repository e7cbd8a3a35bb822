//! When a trial starts, is counted and stops, and the word that calls it off.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::measure::Window;
use crate::pace::Hold;
use crate::sys::clock::{now_ns, sleep_until, tick_ns};

/// How long after the stop a receiver of one flow still waits for the end of its stream, and a
/// requester for its response: ten times the smallest retransmission timeout of Linux (200 ms), so
/// that a loss among the last segments is repaired, even twice.
pub const GRACE_NS: u64 = 2_000_000_000;

/// How much longer for each flow: both ends of 8000 flows on two busy CPUs were seen to need more
/// than 2 s for what lay in their buffers, which is a quarter of a millisecond a flow.
const GRACE_NS_PER_FLOW: u64 = 250_000;

/// The longest that is waited, however many flows there are: who follows a trial gives up 10 s after
/// its stop.
const GRACE_NS_MAX: u64 = 6_000_000_000;

/// Returns how long after the stop the ends of so many flows are waited for.
pub fn grace_ns(flows: usize) -> u64 {
    let more = GRACE_NS_PER_FLOW.saturating_mul(flows.saturating_sub(1) as u64);
    GRACE_NS.saturating_add(more).min(GRACE_NS_MAX)
}

/// How much before the stop a peer may end without being called early, beyond what is known of how far clocks
/// differ: over a path whose queue stands for seconds in one direction that is half of the queue.
pub(crate) const EARLY_TOLERANCE_NS: u64 = 20_000_000;

/// The longest time that an abort goes unnoticed by a thread that waits.
pub(crate) const NOTICE_NS: u64 = 100_000_000;

/// The instants of a trial on this host's CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// All flows start.
    pub start_ns: u64,
    /// The measured window begins.
    pub measure_begin_ns: u64,
    /// The measured window ends.
    pub measure_end_ns: u64,
    /// Senders stop and say so; receivers go on to the end of the stream.
    pub stop_ns: u64,
    /// How much these instants may differ from those of the other host.
    pub skew_ns: u64,
}

impl Schedule {
    /// Returns whether the instants are in order.
    pub fn is_ordered(&self) -> bool {
        self.start_ns <= self.measure_begin_ns
            && self.measure_begin_ns <= self.measure_end_ns
            && self.measure_end_ns <= self.stop_ns
    }

    /// Returns the measured window.
    pub(crate) fn window(&self) -> Window {
        Window {
            begin_ns: self.measure_begin_ns,
            end_ns: self.measure_end_ns,
        }
    }
}

/// How a part came to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As scheduled.
    #[default]
    Complete,
    /// By [`crate::Running::abort`].
    Aborted,
    /// Before its time, for this reason.
    Early(String),
    /// As scheduled, but for the end of a stream, which did not come.
    Unheard(Unheard),
}

/// A stream whose end did not come until the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unheard {
    /// What is missing.
    pub(crate) words: String,
    /// When payload came last; 0 if none did.
    pub(crate) arrived_ns: u64,
    /// What lay in the socket then, which nobody had read.
    pub(crate) unread_bytes: u64,
}

impl Unheard {
    /// Returns why the flow did not end as scheduled.
    pub(crate) fn told(self) -> String {
        match self.unread_bytes {
            0 => self.words,
            unread => format!("{}, while {unread} B lay in the socket unread", self.words),
        }
    }
}

/// The schedule as workers see it; an abort moves its ends to the past.
///
/// Workers read these words after every call. They are written twice at most, so they stay shared
/// in every CPU's cache and a read costs what a plain load costs.
#[derive(Debug)]
pub(crate) struct Control {
    start_ns: u64,
    stop_ns: AtomicU64,
    limit_ns: AtomicU64,
    grace_ns: u64,
    skew_ns: u64,
    aborted: AtomicBool,
    /// What exchanges wait for, where they are held to a rate.
    hold: Option<Hold>,
}

impl Control {
    /// Returns the control of `schedule` for so many flows.
    pub(crate) fn new(schedule: &Schedule, flows: usize) -> Self {
        let grace_ns = grace_ns(flows);
        Self {
            grace_ns,
            skew_ns: schedule.skew_ns,
            start_ns: schedule.start_ns,
            stop_ns: AtomicU64::new(schedule.stop_ns),
            limit_ns: AtomicU64::new(schedule.stop_ns.saturating_add(grace_ns)),
            aborted: AtomicBool::new(false),
            hold: None,
        }
    }

    /// Returns the same for flows whose exchanges are held to a rate.
    pub(crate) fn held_by(self, hold: Option<Hold>) -> Self {
        Self { hold, ..self }
    }

    /// Calls the trial off.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Relaxed);
        self.stop_ns.store(0, Relaxed);
        self.limit_ns.store(0, Relaxed);
    }

    /// Lets the stop come at `now_ns`, if it has not come yet.
    pub(crate) fn stop(&self, now_ns: u64) {
        self.stop_ns.fetch_min(now_ns, Relaxed);
        self.limit_ns
            .fetch_min(now_ns.saturating_add(self.grace_ns), Relaxed);
    }

    /// Returns when all flows start.
    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Returns when nothing new is sent any more.
    pub(crate) fn stop_ns(&self) -> u64 {
        self.stop_ns.load(Relaxed)
    }

    /// Returns when nothing is waited for any more.
    pub(crate) fn limit_ns(&self) -> u64 {
        self.limit_ns.load(Relaxed)
    }

    /// Returns what exchanges wait for. Cost where there is nothing: one branch.
    pub(crate) fn hold(&self) -> Option<&Hold> {
        self.hold.as_ref()
    }

    /// Waits until an exchange may go on that is held to a rate, or until nothing is waited for any more.
    pub(crate) fn await_hold(&self) {
        let Some(hold) = self.hold() else {
            return;
        };
        loop {
            let (now_ns, opens_ns) = (now_ns(), hold.opens_ns());
            // By the clock that parts look for their end with: up to a tick before it sees the limit they would go on
            // unheld.
            if now_ns >= opens_ns || tick_ns() >= self.limit_ns() {
                return;
            }
            sleep_until(opens_ns.min(now_ns + NOTICE_NS));
        }
    }

    /// Notes what moved of an exchange.
    pub(crate) fn note_held(&self, bytes: usize) {
        if let Some(hold) = self.hold() {
            hold.take(now_ns(), bytes);
        }
    }

    /// Returns how a part that stops now has ended.
    pub(crate) fn stopped(&self) -> Ending {
        self.early_unless_aborted(Ending::Complete)
    }

    /// Returns how a part that waited until the limit for `what` has ended.
    pub(crate) fn overdue(&self, what: &str) -> Ending {
        self.early_unless_aborted(Ending::Early(self.missing(what)))
    }

    /// Returns how a stream has ended whose end did not come until the limit.
    ///
    /// Its payload came last at `arrived_ns`.
    pub(crate) fn unheard(&self, arrived_ns: u64) -> Ending {
        self.early_unless_aborted(Ending::Unheard(Unheard {
            words: self.missing("the end of the stream"),
            arrived_ns,
            unread_bytes: 0,
        }))
    }

    fn missing(&self, what: &str) -> String {
        format!(
            "{what} did not come within {} s after the stop",
            (self.grace_ns + 500_000_000) / 1_000_000_000
        )
    }

    /// Returns how a part has ended whose peer closed the connection at `now_ns`.
    pub(crate) fn closed_by_peer(&self, now_ns: u64) -> Ending {
        let missing_ns = self.stop_ns().saturating_sub(now_ns);
        if missing_ns <= EARLY_TOLERANCE_NS.saturating_add(self.skew_ns) {
            return self.stopped();
        }
        Ending::Early(format!(
            "the peer closed the connection {} ms before the stop",
            missing_ns / 1_000_000
        ))
    }

    /// Sleeps until all flows start, the last stretch of 50 to 150 ms in one piece; or until an
    /// abort.
    pub(crate) fn sleep_until_start(&self) {
        while !self.aborted.load(Relaxed) {
            let now_ns = now_ns();
            if self.start_ns.saturating_sub(now_ns) <= NOTICE_NS + NOTICE_NS / 2 {
                return sleep_until(self.start_ns);
            }
            sleep_until(now_ns + NOTICE_NS);
        }
    }

    fn early_unless_aborted(&self, ending: Ending) -> Ending {
        if self.aborted.load(Relaxed) {
            return Ending::Aborted;
        }
        ending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULE: Schedule = Schedule {
        start_ns: 1_000_000_000,
        measure_begin_ns: 2_000_000_000,
        measure_end_ns: 3_000_000_000,
        stop_ns: 4_000_000_000,
        skew_ns: 0,
    };

    #[test]
    fn instants_out_of_order_are_seen() {
        assert!(SCHEDULE.is_ordered());
        let check = |schedule: Schedule| assert!(!schedule.is_ordered(), "{schedule:?}");
        check(Schedule {
            start_ns: 2_500_000_000,
            ..SCHEDULE
        });
        check(Schedule {
            measure_begin_ns: 3_500_000_000,
            ..SCHEDULE
        });
        check(Schedule {
            stop_ns: 2_900_000_000,
            ..SCHEDULE
        });
    }

    #[test]
    fn a_peer_that_closes_is_early_only_well_before_the_stop() {
        let control = Control::new(&SCHEDULE, 1);
        assert_eq!(control.closed_by_peer(4_100_000_000), Ending::Complete);
        assert_eq!(control.closed_by_peer(3_990_000_000), Ending::Complete);
        assert_eq!(
            control.closed_by_peer(3_000_000_000),
            Ending::Early("the peer closed the connection 1000 ms before the stop".to_owned())
        );
        let apart = Schedule {
            skew_ns: 990_000_000,
            ..SCHEDULE
        };
        let ending = Control::new(&apart, 1).closed_by_peer(3_000_000_000);
        assert_eq!(ending, Ending::Complete);
    }

    /// An exchange that goes on sees its end by the tick clock, else it would run unheld until then.
    #[test]
    fn a_hold_lasts_until_the_end_is_seen() {
        for ahead_ns in [1_000_000, 5_300_000, 9_700_000] {
            let limit_ns = now_ns() + ahead_ns;
            let schedule = Schedule {
                stop_ns: limit_ns - GRACE_NS,
                ..SCHEDULE
            };
            let held = Hold::new(8, now_ns());
            held.take(now_ns(), 1 << 20);
            let control = Control::new(&schedule, 0).held_by(Some(held));
            let limit_ns = control.limit_ns();
            control.await_hold();
            assert!(tick_ns() >= limit_ns);
        }
    }

    #[test]
    fn a_stop_comes_once_and_never_later_than_scheduled() {
        let control = Control::new(&SCHEDULE, 1);
        control.stop(3_500_000_000);
        control.stop(3_700_000_000);
        assert_eq!(control.stop_ns(), 3_500_000_000);
        assert_eq!(control.limit_ns(), 3_500_000_000 + GRACE_NS);
        assert_eq!(control.stopped(), Ending::Complete);
        control.abort();
        control.stop(3_800_000_000);
        assert_eq!((control.stop_ns(), control.limit_ns()), (0, 0));
    }

    #[test]
    fn thousands_of_flows_get_more_time_to_end_and_never_too_much() {
        assert_eq!(grace_ns(1), GRACE_NS);
        assert_eq!(grace_ns(8001), 2 * GRACE_NS);
        assert_eq!(grace_ns(20_000), GRACE_NS_MAX);
        assert_eq!(grace_ns(usize::MAX), GRACE_NS_MAX);
        let control = Control::new(&SCHEDULE, 8001);
        assert_eq!(control.limit_ns(), SCHEDULE.stop_ns + 2 * GRACE_NS);
        let why = "the end did not come within 4 s after the stop";
        assert_eq!(control.overdue("the end"), Ending::Early(why.to_owned()));
    }

    #[test]
    fn an_abort_ends_everything_at_once() {
        let control = Control::new(&SCHEDULE, 1);
        assert_eq!(control.limit_ns(), 6_000_000_000);
        assert_eq!(control.stopped(), Ending::Complete);
        control.abort();
        assert_eq!((control.stop_ns(), control.limit_ns()), (0, 0));
        assert_eq!(control.stopped(), Ending::Aborted);
        assert_eq!(control.overdue("the response"), Ending::Aborted);
        control.sleep_until_start();
    }
}
