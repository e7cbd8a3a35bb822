//! Timers: which flow wants a turn at which instant, whatever its socket says.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// No instant.
const NEVER: u64 = u64::MAX;
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
}

impl Timers {
    /// Returns no timers for `flows` flows, with room for all: nothing is allocated later.
    pub(super) fn new(flows: usize) -> Self {
        Self {
            next: BinaryHeap::with_capacity(flows * INSTANTS_EACH),
            at_ns: vec![NEVER; flows],
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

    /// Returns how long there is to rest from `now_ns`: until the next one fires, or until
    /// `most_ns` if that comes before.
    pub(super) fn rest(&self, now_ns: u64, most_ns: u64) -> Duration {
        let until_ns = self.next_ns().map_or(most_ns, |ns| ns.min(most_ns));
        Duration::from_nanos(until_ns.saturating_sub(now_ns))
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
