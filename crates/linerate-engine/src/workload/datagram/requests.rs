//! Requests of datagrams due, under way and complete: arithmetic only, without clock or call. When
//! they are due and count from says [`crate::workload::timing`].
//!
//! 1. Each request under way has a slot, since responses come in any order or not at all. Its number
//!    is `generation × slots + slot`, so that the lower bits of a name say whose response came, and
//!    the upper ones whether it is to the request that waits now. A name of one byte tells up to
//!    128 slots apart; what comes half a round of names too late would be taken for another's.
//! 2. A request is given up when it has waited for its patience, from the instant of sending.

use crate::workload::timing::RequestTiming;

/// What is due, under way and complete on one flow.
#[derive(Debug)]
pub(super) struct Requests {
    slots: Box<[Slot]>,
    /// Bits of a number that say its slot.
    slot_bits: u32,
    /// Slots without a request, from the one that is free for the longest on: a ring.
    idle: Box<[u32]>,
    idle_first: usize,
    idle_count: usize,
    pub(super) timing: RequestTiming,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    generation: u64,
    under_way: bool,
    /// Since when the latency of the request under way counts.
    since_ns: u64,
    /// When it was sent; of an idle slot, when the next may be.
    at_ns: u64,
    /// Bytes of the response that it waits for.
    bytes: usize,
}

impl Requests {
    /// Returns nothing under way yet; 44 bytes a slot.
    pub(super) fn new(in_flight: usize, timing: RequestTiming) -> Self {
        let slots = in_flight.max(1);
        let slot = Slot {
            generation: 1,
            under_way: false,
            since_ns: 0,
            at_ns: timing.begin_ns,
            bytes: 0,
        };
        Self {
            slots: vec![slot; slots].into(),
            slot_bits: slots.next_power_of_two().trailing_zeros(),
            idle: (0..slots as u32).collect(),
            idle_first: 0,
            idle_count: slots,
            timing,
        }
    }

    /// Returns how many requests wait for their response.
    pub(super) fn under_way(&self) -> usize {
        self.slots.len() - self.idle_count
    }

    /// Returns when the next request may be sent; none while all slots are taken. 2 ns.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let slot = self.next_slot()?;
        Some(self.timing.due_ns(|| self.slots[slot].at_ns))
    }

    /// Returns the number of the next request, if there is a slot for it.
    pub(super) fn next_number(&self) -> Option<u64> {
        self.next_slot().map(|slot| self.number(slot))
    }

    /// Begins the next request at `now_ns`, which is due; a response of `bytes` is to come. Returns since
    /// when it could have gone: since it was due and its slot was free. 8 ns.
    pub(super) fn begin(&mut self, now_ns: u64, bytes: usize) -> u64 {
        let Some(at) = self.next_slot() else {
            return now_ns;
        };
        self.idle_first = (self.idle_first + 1) % self.idle.len();
        self.idle_count -= 1;
        let slot = &mut self.slots[at];
        slot.under_way = true;
        slot.since_ns = self.timing.begin(now_ns);
        let free_ns = std::mem::replace(&mut slot.at_ns, now_ns);
        slot.bytes = bytes;
        slot.since_ns.max(free_ns)
    }

    /// Completes the request whose number has `name` as its lower `name_bits` bits, at `now_ns`;
    /// returns since when its latency counts. None is a response to nothing that waits for one of
    /// `bytes`. 5 ns.
    pub(super) fn complete(
        &mut self,
        name: u64,
        name_bits: u32,
        bytes: usize,
        now_ns: u64,
    ) -> Option<u64> {
        let at = (name & ((1 << self.slot_bits) - 1)) as usize;
        let slot = *self.slots.get(at)?;
        let mask = u64::MAX >> (64 - name_bits.clamp(1, 64));
        let named = name & mask == self.number(at) & mask;
        if !slot.under_way || !named || slot.bytes != bytes {
            return None;
        }
        self.free_slot(at, now_ns);
        Some(slot.since_ns)
    }

    /// Returns the number of the request under way that was sent first, or one of none that is. 1 ns a slot.
    pub(super) fn oldest_number(&self) -> u64 {
        let under_way = (0..self.slots.len()).filter(|at| self.slots[*at].under_way);
        let oldest = under_way.min_by_key(|at| self.slots[*at].at_ns);
        self.number(oldest.unwrap_or(0))
    }

    /// Gives up what was sent before `sent_until_ns`, at `now_ns`; calls `each` with the instant
    /// since which each of them counts. 1 ns a slot.
    pub(super) fn give_up(&mut self, sent_until_ns: u64, now_ns: u64, mut each: impl FnMut(u64)) {
        if self.under_way() == 0 {
            return;
        }
        for at in 0..self.slots.len() {
            let slot = self.slots[at];
            if slot.under_way && slot.at_ns <= sent_until_ns {
                self.free_slot(at, now_ns);
                each(slot.since_ns);
            }
        }
    }

    fn free_slot(&mut self, at: usize, now_ns: u64) {
        let slot = &mut self.slots[at];
        slot.under_way = false;
        slot.generation += 1;
        slot.at_ns = self.timing.free_ns(now_ns);
        let end = (self.idle_first + self.idle_count) % self.idle.len();
        self.idle[end] = at as u32;
        self.idle_count += 1;
    }

    fn next_slot(&self) -> Option<usize> {
        (self.idle_count > 0).then(|| self.idle[self.idle_first] as usize)
    }

    fn number(&self, slot: usize) -> u64 {
        self.slots[slot].generation << self.slot_bits | slot as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn requests(in_flight: usize, per_s: Option<u32>, think_ns: u64) -> Requests {
        Requests::new(in_flight, RequestTiming::new(per_s, think_ns, 1_000))
    }

    fn begin(requests: &mut Requests, now_ns: u64) -> u64 {
        let number = requests.next_number().unwrap();
        requests.begin(now_ns, 9);
        number
    }

    #[test]
    fn one_at_a_time_counts_from_one() {
        let mut one = requests(1, None, 0);
        for (turn, expected) in (1..4).enumerate() {
            let now = 1_000 + turn as u64 * 100;
            assert_eq!(begin(&mut one, now), expected);
            assert_eq!((one.due_ns(), one.under_way()), (None, 1));
            assert_eq!(one.complete(expected, 64, 9, now + 50), Some(now));
            assert_eq!(one.due_ns(), Some(now + 50));
        }
    }

    #[test]
    fn responses_come_in_any_order_and_are_taken_once() {
        let mut three = requests(3, None, 0);
        let numbers: Vec<u64> = (0..3).map(|at| begin(&mut three, 1_000 + at)).collect();
        assert_eq!(three.next_number(), None);
        assert_eq!(three.complete(numbers[2], 64, 9, 2_000), Some(1_002));
        assert_eq!(three.complete(numbers[2], 64, 9, 2_001), None, "twice");
        assert_eq!(three.complete(numbers[0], 64, 8, 2_001), None, "of another");
        assert_eq!(
            three.complete(3, 64, 9, 2_001),
            None,
            "there is no such slot"
        );
        let again = begin(&mut three, 2_002);
        assert!(!numbers.contains(&again));
        assert_eq!(three.complete(numbers[0], 64, 9, 2_003), Some(1_000));
    }

    #[test]
    fn a_response_without_a_name_is_to_the_request_that_was_sent_first() {
        let mut three = requests(3, None, 0);
        let numbers: Vec<u64> = (0..3).map(|at| begin(&mut three, 1_000 + at)).collect();
        three.complete(numbers[0], 64, 9, 2_000);
        assert_eq!(three.oldest_number(), numbers[1]);
        // It takes the slot of the first, and is the last.
        begin(&mut three, 2_001);
        for since_ns in [1_001, 1_002, 2_001] {
            let oldest = three.oldest_number();
            assert_eq!(three.complete(oldest, 64, 9, 3_000), Some(since_ns));
        }
        let nothing = three.oldest_number();
        assert_eq!(three.complete(nothing, 64, 9, 3_001), None);
    }

    #[test]
    fn what_was_lost_is_given_up_and_its_response_comes_too_late() {
        let mut two = requests(2, None, 10);
        assert!(two.timing.is_timed());
        let lost = begin(&mut two, 1_000);
        let kept = begin(&mut two, 1_500);
        let mut gone = Vec::new();
        two.give_up(1_200, 9_000, |since_ns| gone.push(since_ns));
        assert_eq!((gone, two.under_way()), (vec![1_000], 1));
        assert_eq!(two.due_ns(), Some(9_010));
        begin(&mut two, 9_010);
        assert_eq!(two.complete(lost, 64, 9, 9_020), None);
        assert_eq!(two.complete(kept, 64, 9, 9_020), Some(1_500));
    }

    #[test]
    fn a_stall_of_an_open_loop_is_charged_to_what_was_due_in_it() {
        let mut open = requests(1, Some(10_000_000), 0);
        let first = begin(&mut open, 1_000);
        assert_eq!(open.due_ns(), None);
        assert_eq!(open.complete(first, 64, 9, 2_000), Some(1_000));
        for at in 1..=10 {
            let number = begin(&mut open, 2_000);
            assert_eq!(open.complete(number, 64, 9, 2_000), Some(1_000 + at * 100));
        }
        // Due at 2100, 2200, … 2900.
        assert_eq!(
            (open.timing.begun, open.timing.missed(3_000)),
            (11, Some(9))
        );
        assert_eq!(requests(1, None, 0).timing.missed(9_000), None);
    }

    proptest! {
        /// A name of one byte tells 128 requests apart, whatever was lost before.
        #[test]
        fn short_names_tell_those_under_way_apart(
            in_flight in 1..=128_usize,
            steps in prop::collection::vec((any::<bool>(), 0..128_usize), 1..500),
        ) {
            let mut requests = requests(in_flight, None, 0);
            let mut waiting: Vec<(u64, u64)> = Vec::new();
            for (now, (answer, which)) in (2_000..).zip(steps) {
                if (answer || waiting.len() == in_flight) && !waiting.is_empty() {
                    let (number, since_ns) = waiting.swap_remove(which % waiting.len());
                    prop_assert_eq!(requests.complete(number & 0xff, 8, 9, now), Some(since_ns));
                } else {
                    waiting.push((begin(&mut requests, now), now));
                }
                prop_assert_eq!(requests.under_way(), waiting.len());
                let mut names: Vec<u64> = waiting.iter().map(|one| one.0 & 0xff).collect();
                names.sort_unstable();
                names.dedup();
                prop_assert_eq!(names.len(), waiting.len());
            }
        }
    }
}
