//! Counters of one end of a flow of datagrams, written by its worker and read by the sampler.
//!
//! As in [`crate::measure::counters`], one thread writes and nothing is ordered by them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use linerate_model::datagram::{Datagrams, Transit};
use linerate_model::metric::Metric;

/// The counters; in pairs of cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct DatagramCounters {
    pub(crate) sent: Count,
    pub(crate) refused: Count,
    pub(crate) buffers_sent: Count,
    pub(crate) waits: Count,
    pub(crate) received: Count,
    pub(crate) late: Count,
    pub(crate) duplicates: Count,
    pub(crate) highest: Count,
    pub(crate) buffers_received: Count,
    pub(crate) missing_run_max: Count,
    pub(crate) strange: Count,
    pub(crate) unanswered: Count,
    /// Datagrams in a row that the other end announced, and one more; 0 is nothing.
    announced: Count,
    /// Nanoseconds, and one more; 0 until there is a value.
    jitter_ns: Count,
    /// Datagrams of the window, and how long they took on two clocks.
    transits: Count,
    transit_mean_ns: Count,
    transit_least_ns: Count,
    transit_most_ns: Count,
}

/// How long datagrams took, on two clocks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Transits {
    count: u64,
    first_ns: i64,
    /// Of all, how much longer than the first: clocks may be years apart, and a sum of years has no room.
    longer_ns: i64,
    least_ns: i64,
    most_ns: i64,
}

impl Transits {
    /// Takes note of one; 2 ns.
    pub(crate) fn note(&mut self, ns: i64) {
        if self.count == 0 {
            (self.first_ns, self.least_ns, self.most_ns) = (ns, ns, ns);
        }
        self.count += 1;
        self.longer_ns = self.longer_ns.wrapping_add(ns.wrapping_sub(self.first_ns));
        self.least_ns = self.least_ns.min(ns);
        self.most_ns = self.most_ns.max(ns);
    }

    fn mean_ns(&self) -> i64 {
        let longer_ns = self.longer_ns.checked_div(self.count as i64);
        self.first_ns.wrapping_add(longer_ns.unwrap_or(0))
    }
}

/// A number that one thread writes.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds `more`: a load, an addition and a store, 1 ns.
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed) + more, Relaxed);
    }

    /// Replaces the number; 0.3 ns.
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Returns the number.
    pub(crate) fn read(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl DatagramCounters {
    /// Notes what the other end said that it sent.
    pub(crate) fn announce(&self, datagrams: u64) {
        self.announced.set(datagrams.saturating_add(1));
    }

    /// Notes the jitter.
    pub(crate) fn jitter(&self, ns: u64) {
        self.jitter_ns.set(ns.saturating_add(1));
    }

    /// Notes what datagrams took, in place of what was noted before: 5 ns, most of it a division.
    pub(crate) fn transit(&self, transits: &Transits) {
        self.transit_mean_ns.set(transits.mean_ns() as u64);
        self.transit_least_ns.set(transits.least_ns as u64);
        self.transit_most_ns.set(transits.most_ns as u64);
        self.transits.set(transits.count);
    }

    fn read_transit(&self) -> Option<Transit> {
        (self.transits.read() > 0).then(|| Transit {
            shortest_ns: self.transit_least_ns.read() as i64,
            mean_ns: self.transit_mean_ns.read() as i64,
            longest_ns: self.transit_most_ns.read() as i64,
            uncertainty_ns: None,
        })
    }

    /// Returns the counters, with the drops that the socket says.
    pub(crate) fn read(&self, socket_drops: Option<u64>) -> Datagrams {
        Datagrams {
            sent: self.sent.read(),
            refused: self.refused.read(),
            buffers_sent: self.buffers_sent.read(),
            waits: self.waits.read(),
            received: self.received.read(),
            late: self.late.read(),
            duplicates: self.duplicates.read(),
            highest: self.highest.read(),
            buffers_received: self.buffers_received.read(),
            missing_run_max: self.missing_run_max.read(),
            announced: self.announced.read().checked_sub(1),
            socket_drops,
            strange: self.strange.read(),
            unanswered: self.unanswered.read(),
            jitter_ns: self.jitter_ns.read().checked_sub(1),
            transit: self.read_transit(),
            departures: None,
        }
    }
}

/// Calls `each` with the samples of `counts`.
pub(crate) fn for_each(counts: &Datagrams, mut each: impl FnMut(Metric, i64)) {
    each(Metric::AppDatagramsSent, counts.sent as i64);
    each(Metric::AppDatagramsRefused, counts.refused as i64);
    each(Metric::AppDatagramsReceived, counts.received as i64);
    each(Metric::AppDatagramsMissing, counts.missing() as i64);
    each(Metric::AppDatagramsLate, counts.late as i64);
    each(Metric::AppDatagramsDuplicate, counts.duplicates as i64);
    if let Some(drops) = counts.socket_drops {
        each(Metric::AppSocketDrops, drops as i64);
    }
    if let Some(jitter) = counts.jitter_ns {
        each(Metric::AppJitter, jitter as i64);
    }
}
