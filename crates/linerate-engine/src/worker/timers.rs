//! Timers: which flow wants a turn at which instant, whatever its socket says.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint;
use std::time::Duration;

use linerate_model::manner::Manner;

use crate::pace::NS_PER_S;
use crate::sys::clock::now_ns;
use crate::workload::Play;

/// No instant.
const NEVER: u64 = u64::MAX;
/// The last stretch before an instant is spun through: a sleep ends up to this much late even with sharp
/// timers, where the CPU has gone to a deeper idle state meanwhile.
pub(super) const SPIN_NS: u64 = 50_000;
/// The most of the time between two requests that is spun through, one part of so many.
const SPIN_PART: u64 = 4;
/// Instants of each flow that there is room for: the next, and one that an earlier one has replaced.
const INSTANTS_EACH: usize = 2;

/// The timers of a worker's flows, at most one each.
///
/// Cost of a timer, set and gone off: 20 ns for ten flows, 60 ns for ten thousand.
#[derive(Debug)]
pub(super) struct Timers {
    /// Who goes on when; what `at_ns` does not say any more is skipped.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// When each flow goes on.
    at_ns: Vec<u64>,
    /// How long before an instant the worker stays awake while nothing can arrive.
    spin_ns: u64,
    /// Whether nothing can.
    is_quiet: bool,
    /// Until when it stays awake whatever can arrive, looking again and again: a busy pause of one flow keeps the CPU from
    /// others, and not the worker from its other flows.
    busy_ns: u64,
}

impl Timers {
    /// Returns no timers for `flows` flows, with room for all: nothing is allocated later.
    pub(super) fn new(flows: usize) -> Self {
        Self {
            next: BinaryHeap::with_capacity(flows * INSTANTS_EACH),
            at_ns: vec![NEVER; flows],
            spin_ns: 0,
            is_quiet: true,
            busy_ns: 0,
        }
    }

    /// Returns the same, to be kept more sharply for a flow like `manner`: in an open loop of one flow the
    /// worker stays awake before a request is due, while none is under way.
    ///
    /// Nothing can arrive then, so that no socket has to be looked at. Otherwise a response would wait, or
    /// its sender for the CPU that both ends have.
    pub(super) fn spinning_for(self, manner: &Manner) -> Self {
        let is_one = self.at_ns.len() == 1;
        let per_s = manner.requests_per_s.filter(|_| is_one);
        let spin_ns = per_s.map_or(0, |rate| NS_PER_S / u64::from(rate.max(1)) / SPIN_PART);
        Self {
            spin_ns: spin_ns.min(SPIN_NS),
            ..self
        }
    }

    /// Sets the timer that the part of flow `at` wants, if it wants one.
    pub(super) fn follow(&mut self, at: usize, part: &(impl Play + ?Sized)) {
        let Some(instant_ns) = part.timer_ns() else {
            return;
        };
        self.set(at, instant_ns);
        self.is_quiet = part.is_quiet();
        if part.is_busy() {
            self.busy_ns = self.busy_ns.max(instant_ns);
        }
    }

    /// Sets the timer of flow `at`; one that is set already and fires before stays as it is, and
    /// fires in vain.
    pub(super) fn set(&mut self, at: usize, instant_ns: u64) {
        if instant_ns < self.at_ns[at] {
            self.at_ns[at] = instant_ns;
            self.next.push(Reverse((instant_ns, at as u32)));
        }
    }

    /// Returns how many are set, at the most.
    pub(super) fn count(&self) -> usize {
        self.next.len()
    }

    /// Returns when the next one fires.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.next.peek().map(|timer| timer.0.0)
    }

    /// Returns how long there is to rest from `now_ns`: until the next one fires, less what is spun
    /// through, or until `most_ns` if that comes before.
    pub(super) fn rest(&self, now_ns: u64, most_ns: u64) -> Duration {
        if now_ns < self.busy_ns {
            return Duration::ZERO;
        }
        let wake_ns = self.next_ns().map(|ns| ns.saturating_sub(self.awake_ns()));
        let until_ns = wake_ns.map_or(most_ns, |ns| ns.min(most_ns));
        Duration::from_nanos(until_ns.saturating_sub(now_ns))
    }

    /// Returns the clock: now, or, where that is to be spun through, when the next one fires.
    pub(super) fn clock_ns(&self) -> u64 {
        let mut now = now_ns();
        if let Some(next_ns) = self.next_ns().filter(|ns| *ns <= now + self.awake_ns()) {
            while now < next_ns {
                hint::spin_loop();
                now = now_ns();
            }
        }
        now
    }

    fn awake_ns(&self) -> u64 {
        if self.is_quiet { self.spin_ns } else { 0 }
    }

    /// Takes the next timer whose instant has come.
    pub(super) fn take(&mut self, now_ns: u64) -> Option<usize> {
        while let Some(instant_ns) = self.next_ns().filter(|&ns| ns <= now_ns) {
            let at = self.next.pop()?.0.1 as usize;
            if self.at_ns[at] == instant_ns {
                self.at_ns[at] = NEVER;
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_loop_of_one_flow_is_awake_before_a_request_is_due() {
        let check = |flows: usize, requests_per_s: Option<u32>, is_quiet: bool, spin_us: u64| {
            let manner = Manner {
                requests_per_s,
                ..Manner::default()
            };
            let mut timers = Timers::new(flows).spinning_for(&manner);
            timers.is_quiet = is_quiet;
            let now = now_ns();
            timers.set(0, now + 1_000_000);
            let rest = timers.rest(now, u64::MAX);
            assert_eq!(rest, Duration::from_micros(1000 - spin_us));
            // Shortly before, the clock is that of the instant, wherever it is spun through.
            let soon = now_ns() + 1000 * spin_us / 2;
            timers.set(0, soon);
            assert!(spin_us == 0 || timers.clock_ns() >= soon);
        };
        check(1, Some(1000), true, 50);
        check(1, Some(25_000), true, 10);
        check(1, Some(1000), false, 0);
        check(2, Some(1000), true, 0);
        check(1, None, true, 0);
    }

    #[test]
    fn timers_fire_in_their_order_and_once() {
        let mut timers = Timers::new(3);
        timers.set(0, 30);
        timers.set(1, 10);
        timers.set(2, 20);
        timers.set(1, 99);
        assert_eq!(timers.next_ns(), Some(10));
        assert_eq!(timers.rest(4, 50), Duration::from_nanos(6));
        assert_eq!(timers.rest(4, 9), Duration::from_nanos(5));
        assert_eq!(timers.rest(11, 50), Duration::ZERO);
        assert_eq!(timers.take(9), None);
        assert_eq!((timers.take(25), timers.take(25)), (Some(1), Some(2)));
        assert_eq!(timers.take(25), None);
        timers.set(1, 98);
        timers.set(1, 26);
        assert_eq!((timers.take(97), timers.take(97)), (Some(1), Some(0)));
        assert_eq!(timers.take(99), None, "an earlier one has replaced it");
        assert_eq!(timers.next_ns(), None);
    }
}
