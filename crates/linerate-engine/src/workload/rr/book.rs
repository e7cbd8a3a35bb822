//! Requests due, under way and complete: arithmetic only, without clock or call.
//!
//! 1. At most `in_flight` requests are under way. Each has a slot; the slot of a complete one is
//!    that of a request to come, since responses come in order.
//! 2. In a closed loop a slot is due when its last response has come, and the think time after.
//!    Latency counts from then; with a think time from the instant of sending, which a timer may
//!    make later than the due one.
//! 3. In an open loop request number n is due at `begin + n / rate`, whatever happens. It is sent
//!    when a slot is free, and its latency counts from the instant at which it was due, so that a
//!    stall delays, and is charged to, everything that was due in it.

use linerate_model::id::FlowId;
use linerate_model::manner::Manner;
use linerate_model::setting::name;
use linerate_model::workload::Setting;

use crate::pace::Pacer;
use crate::schedule::Control;

const NS_PER_S: u64 = 1_000_000_000;

/// When a flow begins requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestTiming {
    /// Requests a second, in an open loop.
    pub(crate) per_s: Option<u32>,
    /// From a response to the next request, in a closed loop.
    pub(crate) think_ns: u64,
    /// When the first is due.
    pub(crate) begin_ns: u64,
}

impl RequestTiming {
    /// Returns the timing of one of many flows that begin at `start_ns`.
    ///
    /// In an open loop flows of the same rate would all send at the same instants. Their first
    /// requests are spread over one interval by the golden ratio, which spaces any number of
    /// flows about evenly.
    pub(crate) fn of(manner: &Manner, start_ns: u64, flow: FlowId) -> Self {
        let per_s = manner.requests_per_s;
        let interval_ns = per_s.map_or(0, |rate| NS_PER_S / u64::from(rate.max(1)));
        // 2^32 / golden ratio (Knuth, TAOCP 3, 6.4).
        let share = flow.0.wrapping_mul(0x9e37_79b9);
        let offset_ns = (u128::from(interval_ns) * u128::from(share)) >> 32;
        Self {
            per_s,
            think_ns: manner.think.map_or(0, |think| think.0),
            begin_ns: start_ns + offset_ns as u64,
        }
    }
}

/// What is due, under way and complete on one flow.
#[derive(Debug)]
pub(crate) struct Book {
    /// For each slot: when its request began, or when the next may.
    slots: Box<[u64]>,
    begun: u64,
    complete: u64,
    think_ns: u64,
    pacer: Option<Pacer>,
}

impl Book {
    /// Returns an empty book; 8 bytes a slot.
    pub(crate) fn new(in_flight: usize, timing: RequestTiming) -> Self {
        Self {
            slots: vec![timing.begin_ns; in_flight].into(),
            begun: 0,
            complete: 0,
            think_ns: timing.think_ns,
            pacer: timing
                .per_s
                .map(|rate| Pacer::new(rate.into(), 0, timing.begin_ns)),
        }
    }

    /// Returns whether instants of sending are in the future, so that a clock has to be watched.
    pub(crate) fn is_timed(&self) -> bool {
        self.pacer.is_some() || self.think_ns > 0
    }

    /// Returns when the next request may be sent; none while all slots are taken.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        if self.under_way() == self.slots.len() as u64 {
            return None;
        }
        match &self.pacer {
            Some(pacer) => Some(pacer.due_ns()),
            None => Some(self.slots[self.slot(self.begun)]),
        }
    }

    /// Begins the next request at `now_ns`, which is due.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        let slot = self.slot(self.begun);
        self.slots[slot] = match &mut self.pacer {
            Some(pacer) => {
                let due_ns = pacer.due_ns();
                pacer.take(1);
                due_ns
            }
            None => now_ns,
        };
        self.begun += 1;
    }

    /// Completes the oldest request at `now_ns`; returns since when its latency counts.
    pub(crate) fn end(&mut self, now_ns: u64) -> u64 {
        let slot = self.slot(self.complete);
        let began_ns = self.slots[slot];
        self.slots[slot] = now_ns + self.think_ns;
        self.complete += 1;
        began_ns
    }

    /// Returns how many requests wait for their response.
    pub(crate) fn under_way(&self) -> u64 {
        self.begun - self.complete
    }

    /// Returns since when the oldest request under way counts.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        (self.under_way() > 0).then(|| self.slots[self.slot(self.complete)])
    }

    /// Returns what an open loop has to say, given that it ends at `now_ns`: requests that were
    /// due, and those that began.
    pub(crate) fn said(&self, control: &Control, now_ns: u64) -> Vec<Setting> {
        said(control, now_ns, |until_ns| self.missed(until_ns))
    }

    /// Returns, for an open loop, how many requests have begun and how many more were due before
    /// `stop_ns`.
    pub(crate) fn missed(&self, stop_ns: u64) -> Option<(u64, u64)> {
        let pacer = self.pacer.as_ref()?;
        Some((self.begun, pacer.due_before(stop_ns)))
    }

    /// Returns whether every slot has been used.
    pub(crate) fn is_warm(&self) -> bool {
        self.begun >= self.slots.len() as u64
    }

    fn slot(&self, number: u64) -> usize {
        // One slot is the rule, and a division costs 10 ns.
        match self.slots.len() {
            1 => 0,
            slots => (number % slots as u64) as usize,
        }
    }
}

/// Returns what an open loop has to say that ends at `now_ns`; `missed` says how many requests have
/// begun, and how many more were due before an instant.
pub(crate) fn said(
    control: &Control,
    now_ns: u64,
    missed: impl FnOnce(u64) -> Option<(u64, u64)>,
) -> Vec<Setting> {
    // An abort moves the stop to 0; what was due up to it counts.
    let until_ns = match control.stop_ns() {
        0 => now_ns,
        stop_ns => stop_ns.min(now_ns),
    };
    let Some((begun, missed)) = missed(until_ns) else {
        return Vec::new();
    };
    let due = begun + missed;
    vec![Setting {
        effective: Some(begun.to_string()),
        capped_by: (missed > 0).then(|| {
            format!(
                "the rate of the responses: {missed} of {due} requests that were due were not sent"
            )
        }),
        ..Setting::granted(
            name::REQUESTS,
            Some(due.to_string()),
            Some(begun.to_string()),
        )
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(in_flight: usize, per_s: Option<u32>, think_ns: u64) -> Book {
        let timing = RequestTiming {
            per_s,
            think_ns,
            begin_ns: 1_000,
        };
        Book::new(in_flight, timing)
    }

    #[test]
    fn a_closed_loop_begins_when_a_response_has_come() {
        let mut book = book(2, None, 0);
        assert!(!book.is_timed());
        for now in [1_000, 1_001] {
            assert_eq!(book.due_ns(), Some(1_000));
            book.begin(now);
        }
        assert_eq!((book.due_ns(), book.under_way()), (None, 2));
        assert_eq!(book.oldest_ns(), Some(1_000));
        assert_eq!(book.end(1_500), 1_000);
        assert_eq!(
            (book.due_ns(), book.oldest_ns()),
            (Some(1_500), Some(1_001))
        );
        book.begin(1_500);
        assert_eq!((book.end(1_600), book.end(1_700)), (1_001, 1_500));
        assert_eq!((book.due_ns(), book.oldest_ns()), (Some(1_600), None));
        assert_eq!(book.missed(u64::MAX), None);
    }

    #[test]
    fn a_think_time_puts_the_next_request_off() {
        let mut book = book(1, None, 50);
        assert!(book.is_timed());
        book.begin(1_000);
        assert_eq!(book.end(1_100), 1_000);
        assert_eq!(book.due_ns(), Some(1_150));
        // The timer came late; the latency does not count that.
        book.begin(1_170);
        assert_eq!(book.end(1_200), 1_170);
    }

    #[test]
    fn a_stall_of_an_open_loop_is_charged_to_what_was_due_in_it() {
        let mut book = book(1, Some(10_000_000), 0);
        book.begin(1_000);
        // The response takes as long as ten requests.
        assert_eq!(book.due_ns(), None);
        assert_eq!(book.end(2_000), 1_000);
        for number in 1..=10 {
            assert_eq!(book.due_ns(), Some(1_000 + number * 100));
            book.begin(2_000);
            assert_eq!(book.end(2_000), 1_000 + number * 100);
        }
        assert_eq!(book.due_ns(), Some(2_100));
        // Due at 2100, 2200, … 2900.
        assert_eq!(book.missed(3_000), Some((11, 9)));
        assert_eq!(book.missed(2_100), Some((11, 0)));
        assert_eq!(book.missed(0), Some((11, 0)));
    }

    #[test]
    fn flows_of_one_rate_do_not_send_at_the_same_instants() {
        let open = Manner {
            requests_per_s: Some(1000),
            ..Manner::default()
        };
        let begins: Vec<u64> = (0..8)
            .map(|flow| RequestTiming::of(&open, 0, FlowId(flow)).begin_ns)
            .collect();
        let mut sorted = begins.clone();
        sorted.sort_unstable();
        // Eighths of a millisecond would be 125 µs apart; the golden ratio keeps half of that.
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] > 62_000));
        assert!(begins.iter().all(|begin| *begin < 1_000_000));
        assert_eq!(
            RequestTiming::of(&Manner::default(), 5, FlowId(3)).begin_ns,
            5
        );
    }
}
