//! When requests are due, whatever carries them: arithmetic only, without clock or call.
//!
//! 1. In a closed loop a slot is due when its last response has come, and the think time after.
//!    Latency counts from then; with a think time from the instant of sending, which a timer may
//!    make later than the due one.
//! 2. In an open loop request number n is due at `begin + n / rate`, whatever happens. It is sent
//!    when a slot is free, and its latency counts from the instant at which it was due, so that a
//!    stall delays, and is charged to, everything that was due in it.

use linerate_model::id::FlowId;
use linerate_model::manner::Manner;
use linerate_model::shortfall::RequestCount;

use crate::pace::{NS_PER_S, Pacer};
use crate::schedule::Control;

/// When one flow begins requests, and how many it has begun.
#[derive(Debug)]
pub(crate) struct RequestTiming {
    /// When the first is due.
    pub(crate) begin_ns: u64,
    /// Requests so far.
    pub(crate) begun: u64,
    /// From a response to the next request, in a closed loop.
    think_ns: u64,
    /// Of an open loop.
    pacer: Option<Pacer>,
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
        let think_ns = manner.think.map_or(0, |think| think.0);
        Self::new(per_s, think_ns, start_ns + offset_ns as u64)
    }

    /// Returns the timing of `per_s` requests in an open loop, or else of a closed one.
    pub(crate) fn new(per_s: Option<u32>, think_ns: u64, begin_ns: u64) -> Self {
        Self {
            begin_ns,
            begun: 0,
            think_ns,
            pacer: per_s.map(|rate| Pacer::new(rate.into(), 0, begin_ns)),
        }
    }

    /// Returns whether instants of sending are in the future, so that a clock has to be watched.
    pub(crate) fn is_timed(&self) -> bool {
        self.pacer.is_some() || self.think_ns > 0
    }

    /// Returns when the next request is due that takes a slot which may be used from `free_ns` on;
    /// only a closed loop asks for that.
    pub(crate) fn due_ns(&self, free_ns: impl FnOnce() -> u64) -> u64 {
        self.pacer.as_ref().map_or_else(free_ns, Pacer::due_ns)
    }

    /// Begins a request at `now_ns`, which is due; returns since when its latency counts.
    pub(crate) fn begin(&mut self, now_ns: u64) -> u64 {
        self.begun += 1;
        let Some(pacer) = &mut self.pacer else {
            return now_ns;
        };
        let due_ns = pacer.due_ns();
        pacer.take(1);
        due_ns
    }

    /// Returns from when on a slot may be used whose response has come at `now_ns`.
    pub(crate) fn free_ns(&self, now_ns: u64) -> u64 {
        now_ns + self.think_ns
    }

    /// Returns, for an open loop, how many more requests were due before `stop_ns` than have begun.
    pub(crate) fn missed(&self, stop_ns: u64) -> Option<u64> {
        self.pacer.as_ref().map(|pacer| pacer.due_before(stop_ns))
    }

    /// Returns, for an open loop that ends at `now_ns`, requests that were due and those that began.
    pub(crate) fn count(&self, control: &Control, now_ns: u64) -> Option<RequestCount> {
        // An abort moves the stop to 0; what was due up to it counts.
        let until_ns = match control.stop_ns() {
            0 => now_ns,
            stop_ns => stop_ns.min(now_ns),
        };
        Some(RequestCount {
            due: self.begun + self.missed(until_ns)?,
            sent: self.begun,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
