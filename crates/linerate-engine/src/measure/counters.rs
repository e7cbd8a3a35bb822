//! Counters of one flow, written by its worker and read by the sampler.
//!
//! One thread writes each block (but of connections that come and go: `…_by_any`), so an addition is a relaxed load, an add and a relaxed store:
//! three plain instructions on x86 and ARM (about 1 ns), where `fetch_add` would lock the cache
//! line (5 ns alone, 20 ns and more when the sampler has just read it). Nothing is ordered by
//! these counters; each is a number that grows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The counters of one flow.
///
/// 128 bytes and aligned to that: adjacent lines are fetched in pairs on current x86, and two
/// workers must not write to one pair.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
    calls: AtomicU64,
    transactions: AtomicU64,
    messages: AtomicU64,
    /// 0 until the first payload has moved: the monotonic clock of a running host is past 0.
    first_payload_ns: AtomicU64,
    /// The shortest round trip that TCP saw; 0 until one is noted.
    shortest_rtt_ns: AtomicU64,
    /// Whether the flow ended by an error.
    broken: AtomicBool,
}

/// The counters of one flow at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Payload that send calls accepted.
    pub(crate) bytes_sent: u64,
    /// Payload that receive calls returned.
    pub(crate) bytes_received: u64,
    /// Send or receive calls that moved payload.
    pub(crate) calls: u64,
    /// Responses fully received, or fully sent.
    pub(crate) transactions: u64,
    /// Whole messages, where they are counted: see [`crate::flow::Shared::messages`].
    pub(crate) messages: u64,
    /// When the first payload moved.
    pub(crate) first_payload_ns: Option<u64>,
    /// The shortest round trip that TCP saw on connections that are gone.
    pub(crate) shortest_rtt_ns: Option<u64>,
}

impl Counters {
    /// Counts a send call that took `bytes`.
    pub(crate) fn sent(&self, bytes: usize) {
        add(&self.bytes_sent, bytes as u64);
        add(&self.calls, 1);
    }

    /// Counts a receive call that returned `bytes`.
    pub(crate) fn received(&self, bytes: usize) {
        add(&self.bytes_received, bytes as u64);
        add(&self.calls, 1);
    }

    /// Counts complete transactions.
    pub(crate) fn transactions(&self, complete: u64) {
        add(&self.transactions, complete);
    }

    /// Counts messages that became whole.
    pub(crate) fn messages(&self, whole: u64) {
        add(&self.messages, whole);
    }

    /// Counts a send call of whichever worker has a connection of the flow, where those are several.
    pub(crate) fn sent_by_any(&self, bytes: usize) {
        self.bytes_sent.fetch_add(bytes as u64, Relaxed);
        self.calls.fetch_add(1, Relaxed);
    }

    /// Counts a receive call likewise.
    pub(crate) fn received_by_any(&self, bytes: usize) {
        self.bytes_received.fetch_add(bytes as u64, Relaxed);
        self.calls.fetch_add(1, Relaxed);
    }

    /// Counts a complete transaction likewise.
    pub(crate) fn transaction_by_any(&self) {
        self.transactions.fetch_add(1, Relaxed);
    }

    /// Notes the instant of the first payload; later calls change nothing and read no clock.
    pub(crate) fn first_payload(&self, now_ns: impl FnOnce() -> u64) {
        if self.first_payload_ns.load(Relaxed) == 0 {
            self.first_payload_ns.store(now_ns(), Relaxed);
        }
    }

    /// Notes what TCP saw as the shortest round trip of a connection.
    pub(crate) fn note_rtt(&self, ns: u64) {
        let known = self.shortest_rtt_ns.load(Relaxed);
        if ns > 0 && (known == 0 || ns < known) {
            self.shortest_rtt_ns.store(ns, Relaxed);
        }
    }

    /// Notes that the flow ended by an error.
    pub(crate) fn break_off(&self) {
        self.broken.store(true, Relaxed);
    }

    /// Returns whether it did.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Relaxed)
    }

    /// Returns the payload of both directions, for the thread that counts it: two plain loads.
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.bytes_sent.load(Relaxed) + self.bytes_received.load(Relaxed)
    }

    /// Returns the counters as they are now.
    pub(crate) fn read(&self) -> Counts {
        let noted = |ns: &AtomicU64| Some(ns.load(Relaxed)).filter(|ns| *ns != 0);
        Counts {
            bytes_sent: self.bytes_sent.load(Relaxed),
            bytes_received: self.bytes_received.load(Relaxed),
            calls: self.calls.load(Relaxed),
            transactions: self.transactions.load(Relaxed),
            messages: self.messages.load(Relaxed),
            first_payload_ns: noted(&self.first_payload_ns),
            shortest_rtt_ns: noted(&self.shortest_rtt_ns),
        }
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_fills_its_own_pair_of_cache_lines() {
        assert_eq!(size_of::<Counters>(), 128);
        assert_eq!(align_of::<Counters>(), 128);
    }

    #[test]
    fn the_first_payload_stays() {
        let counters = Counters::default();
        assert_eq!(counters.read().first_payload_ns, None);
        counters.first_payload(|| 7);
        counters.first_payload(|| 9);
        counters.sent(3);
        counters.received(4);
        counters.transactions(1);
        counters.messages(5);
        for ns in [90, 0, 70, 80] {
            counters.note_rtt(ns);
        }
        let expected = Counts {
            bytes_sent: 3,
            bytes_received: 4,
            calls: 2,
            transactions: 1,
            messages: 5,
            first_payload_ns: Some(7),
            shortest_rtt_ns: Some(70),
        };
        assert_eq!(counters.read(), expected);
    }
}
