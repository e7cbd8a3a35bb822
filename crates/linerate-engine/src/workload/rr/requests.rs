//! Requests due, under way and complete where responses come in order: arithmetic only, without
//! clock or call.
//!
//! At most `in_flight` requests are under way. Each has a slot; the slot of a complete one is that of
//! a request to come.

use crate::measure::Window;
use crate::measure::latency::Longest;
use crate::workload::timing::RequestTiming;

/// What is due, under way and complete on one flow.
#[derive(Debug)]
pub(crate) struct OrderedRequests {
    /// For each slot: when its request began, or when the next may.
    slots: Box<[u64]>,
    complete: u64,
    pub(crate) timing: RequestTiming,
    longest: Longest,
}

impl OrderedRequests {
    /// Returns nothing under way yet; 8 bytes a slot.
    pub(crate) fn new(in_flight: usize, timing: RequestTiming, window: Window) -> Self {
        Self {
            longest: Longest::new(window),
            slots: vec![timing.begin_ns; in_flight].into(),
            complete: 0,
            timing,
        }
    }

    /// Returns when the next request may be sent; none while all slots are taken.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        if self.under_way() == self.slots.len() as u64 {
            return None;
        }
        let free_ns = || self.slots[self.slot(self.timing.begun)];
        Some(self.timing.due_ns(free_ns))
    }

    /// Begins the next request at `now_ns`, which is due; returns since when it could have gone: since it
    /// was due and its slot was free.
    pub(crate) fn begin(&mut self, now_ns: u64) -> u64 {
        let slot = self.slot(self.timing.begun);
        let due_ns = self.timing.begin(now_ns);
        std::mem::replace(&mut self.slots[slot], due_ns).max(due_ns)
    }

    /// Completes the oldest request at `now_ns`; returns since when its latency counts.
    pub(crate) fn end(&mut self, now_ns: u64) -> u64 {
        let slot = self.slot(self.complete);
        self.complete += 1;
        let began_ns = std::mem::replace(&mut self.slots[slot], self.timing.free_ns(now_ns));
        self.longest.note(began_ns, now_ns);
        began_ns
    }

    /// Returns the longest transaction, given that the part ends at `now_ns`.
    pub(crate) fn stall_max_ns(&self, now_ns: u64) -> u64 {
        let mut longest = self.longest;
        if let Some(oldest_ns) = self.oldest_ns() {
            longest.note(oldest_ns, now_ns);
        }
        longest.longest_ns()
    }

    /// Returns how many requests wait for their response.
    pub(crate) fn under_way(&self) -> u64 {
        self.timing.begun - self.complete
    }

    /// Returns since when the oldest request under way counts.
    fn oldest_ns(&self) -> Option<u64> {
        (self.under_way() > 0).then(|| self.slots[self.slot(self.complete)])
    }

    /// Returns whether every slot has been used.
    pub(crate) fn is_warm(&self) -> bool {
        self.timing.begun >= self.slots.len() as u64
    }

    fn slot(&self, number: u64) -> usize {
        // One slot is the rule, and a division costs 10 ns.
        match self.slots.len() {
            1 => 0,
            slots => (number % slots as u64) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(in_flight: usize, per_s: Option<u32>, think_ns: u64) -> OrderedRequests {
        let window = Window {
            begin_ns: 0,
            end_ns: u64::MAX,
        };
        OrderedRequests::new(
            in_flight,
            RequestTiming::new(per_s, think_ns, 1_000),
            window,
        )
    }

    #[test]
    fn a_closed_loop_begins_when_a_response_has_come() {
        let mut requests = requests(2, None, 0);
        assert!(!requests.timing.is_timed());
        for now in [1_000, 1_001] {
            assert_eq!(requests.due_ns(), Some(1_000));
            requests.begin(now);
        }
        assert_eq!((requests.due_ns(), requests.under_way()), (None, 2));
        assert_eq!(requests.oldest_ns(), Some(1_000));
        assert_eq!(requests.end(1_500), 1_000);
        assert_eq!(
            (requests.due_ns(), requests.oldest_ns()),
            (Some(1_500), Some(1_001))
        );
        requests.begin(1_500);
        assert_eq!((requests.end(1_600), requests.end(1_700)), (1_001, 1_500));
        assert_eq!(
            (requests.due_ns(), requests.oldest_ns()),
            (Some(1_600), None)
        );
        assert_eq!(requests.timing.missed(u64::MAX), None);
    }

    #[test]
    fn a_think_time_puts_the_next_request_off() {
        let mut requests = requests(1, None, 50);
        assert!(requests.timing.is_timed());
        requests.begin(1_000);
        assert_eq!(requests.end(1_100), 1_000);
        assert_eq!(requests.due_ns(), Some(1_150));
        // The timer came late; the latency does not count that.
        requests.begin(1_170);
        assert_eq!(requests.end(1_200), 1_170);
    }

    #[test]
    fn a_stall_of_an_open_loop_is_charged_to_what_was_due_in_it() {
        let mut requests = requests(1, Some(10_000_000), 0);
        requests.begin(1_000);
        // The response takes as long as ten requests.
        assert_eq!(requests.due_ns(), None);
        assert_eq!(requests.end(2_000), 1_000);
        for number in 1..=10 {
            assert_eq!(requests.due_ns(), Some(1_000 + number * 100));
            requests.begin(2_000);
            assert_eq!(requests.end(2_000), 1_000 + number * 100);
        }
        assert_eq!(requests.due_ns(), Some(2_100));
        // Due at 2100, 2200, … 2900.
        assert_eq!(requests.timing.missed(3_000), Some(9));
        assert_eq!(requests.timing.missed(2_100), Some(0));
        assert_eq!(requests.timing.missed(0), Some(0));
    }
}
