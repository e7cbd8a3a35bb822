//! Latency of transactions: a histogram with bounded relative error.
//!
//! A transaction is recorded if it *ends* inside the measured window, wherever it began, so that
//! the histogram's count equals the growth of the transaction counter over the window. One that
//! is under way when the window ends is not recorded; if it is a stall it shows in the flow's
//! longest transaction, which takes every transaction that touches the window.
//!
//! While the trial runs, the sampler reads from [`LatencyCounts`] how many transactions of each latency a
//! worker has recorded so far, so that any interval has its own quantiles: its histogram is the difference
//! of two readings, and those of workers and hosts add up.
//!
//! In an open loop a second histogram has the lateness of the generator: how long after a request could go
//! it went. It is recorded if the request went inside the window.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hdrhistogram::Histogram as Hdr;
use linerate_model::Nanos;
use linerate_model::histogram::Histogram;

use crate::measure::Window;

/// The longest latency that is told apart; longer ones count as this (a TCP flow whose peer is
/// silent for a minute is reported by its stall and its early end, not by a quantile).
const LATENCY_NS_MAX: u64 = 60_000_000_000;
/// Three digits: each value is known to 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Buckets of [`LatencyCounts`] in each factor of two: what stands for one is at most a 64th, 1.6 %, from
/// any latency in it. With twice as many a reading would hand over twice as many.
const BUCKETS_PER_OCTAVE: u64 = 1 << OCTAVE_BITS;
const OCTAVE_BITS: u32 = 5;
/// Up to [`LATENCY_NS_MAX`], which lies below 2 to the power of 36.
const BUCKETS: usize = (36 - OCTAVE_BITS as usize + 1) << OCTAVE_BITS;

/// How many transactions of each latency a worker has recorded: written by it, read by the sampler.
///
/// As in [`crate::measure::counters`] one thread writes, and nothing is ordered by the counts. 8 KiB.
#[derive(Debug)]
pub(crate) struct LatencyCounts(Box<[AtomicU64]>);

impl Default for LatencyCounts {
    fn default() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl LatencyCounts {
    /// Counts a transaction: five instructions for the bucket, a load and a store; 2 ns.
    fn count(&self, latency_ns: u64) {
        let count = &self.0[bucket(latency_ns)];
        count.store(count.load(Relaxed) + 1, Relaxed);
    }

    /// Adds what was counted so far to `sums`, bucket by bucket.
    pub(crate) fn add_to(&self, sums: &mut [u64; BUCKETS]) {
        for (sum, count) in sums.iter_mut().zip(&self.0) {
            *sum += count.load(Relaxed);
        }
    }
}

/// The latencies of all workers of a trial as they were last read.
#[derive(Debug)]
pub(crate) struct LatenciesSeen {
    workers: Vec<Arc<LatencyCounts>>,
    counts: Box<[u64; BUCKETS]>,
}

impl LatenciesSeen {
    /// Returns what is seen of workers that have not begun.
    pub(crate) fn new(workers: Vec<Arc<LatencyCounts>>) -> Self {
        Self {
            workers,
            counts: Box::new([0; BUCKETS]),
        }
    }

    /// Reads all workers; gives `each` how many transactions there are in all, and in each bucket that
    /// has grown since the last reading, with the latency that stands for it. 0.2 µs a worker from the cache.
    pub(crate) fn read(&mut self, mut each: impl FnMut(Option<Nanos>, u64)) {
        if self.workers.is_empty() {
            return;
        }
        let mut counts = [0; BUCKETS];
        for worker in &self.workers {
            worker.add_to(&mut counts);
        }
        each(None, counts.iter().sum());
        for (bucket, (&now, before)) in counts.iter().zip(self.counts.iter()).enumerate() {
            if now != *before {
                each(Some(Nanos(middle_ns(bucket))), now);
            }
        }
        *self.counts = counts;
    }
}

/// Returns the bucket of a latency: up to 63 ns each has its own, above each factor of two has as many.
fn bucket(latency_ns: u64) -> usize {
    let latency_ns = latency_ns.min(LATENCY_NS_MAX);
    let shift = (latency_ns | BUCKETS_PER_OCTAVE).ilog2() - OCTAVE_BITS;
    ((u64::from(shift) << OCTAVE_BITS) + (latency_ns >> shift)) as usize
}

/// Returns the latency in the middle of a bucket.
fn middle_ns(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket >> OCTAVE_BITS).saturating_sub(1);
    let low_ns = (bucket - (shift << OCTAVE_BITS)) << shift;
    low_ns + (1 << shift) / 2
}

/// The transactions of one flow, or of all flows of a worker.
///
/// 110 KiB of address space, of which only the pages of values that occur become resident: a
/// factor of two in latency is one page.
#[derive(Debug)]
pub(crate) struct Latency {
    window: Window,
    histogram: Hdr<u32>,
    /// Of an open loop.
    lateness: Option<Hdr<u32>>,
    /// Where the worker's transactions are counted as they come; nowhere for what is not one.
    counts: Option<Arc<LatencyCounts>>,
}

impl Latency {
    /// Returns an empty record for `window`, with the lateness of an open loop where requests have a
    /// rate; this is the only place that allocates.
    pub(crate) fn new(
        window: Window,
        requests_per_s: Option<u32>,
        counts: Option<Arc<LatencyCounts>>,
    ) -> Self {
        let empty = || {
            Hdr::new_with_bounds(1, LATENCY_NS_MAX, SIGNIFICANT_DIGITS)
                .expect("1 ns to 60 s with three digits is a range that the histogram takes")
        };
        Self {
            window,
            histogram: empty(),
            lateness: requests_per_s.map(|_| empty()),
            counts,
        }
    }

    /// Records a transaction that ends inside the window; about 6 ns.
    pub(crate) fn record(&mut self, began_ns: u64, ended_ns: u64) {
        if ended_ns >= self.window.begin_ns && ended_ns <= self.window.end_ns {
            let latency_ns = (ended_ns - began_ns).max(1);
            self.histogram.saturating_record(latency_ns);
            if let Some(counts) = &self.counts {
                counts.count(latency_ns);
            }
        }
    }

    /// Records that a request of an open loop that could go at `ready_ns` went at `sent_ns`; 1 ns in a
    /// closed loop, else about 4 ns: estimates, from what [`Latency::record`] takes.
    pub(crate) fn record_sent(&mut self, ready_ns: u64, sent_ns: u64) {
        if let Some(lateness) = &mut self.lateness
            && (self.window.begin_ns..=self.window.end_ns).contains(&sent_ns)
        {
            lateness.saturating_record(sent_ns.saturating_sub(ready_ns).max(1));
        }
    }

    /// Returns the buckets that are not empty.
    pub(crate) fn to_histogram(&self) -> Histogram {
        buckets(&self.histogram)
    }

    /// Returns those of the lateness of an open loop.
    pub(crate) fn lateness(&self) -> Option<Histogram> {
        self.lateness.as_ref().map(buckets)
    }
}

fn buckets(histogram: &Hdr<u32>) -> Histogram {
    let recorded = histogram.iter_recorded();
    let bucket = recorded.map(|one| (one.value_iterated_to(), one.count_at_value().into()));
    Histogram {
        buckets: bucket.collect(),
    }
}

/// The longest transaction of one flow that touches the window, in full length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Longest {
    window: Window,
    longest_ns: u64,
}

impl Longest {
    /// Returns a follower for `window`.
    pub(crate) fn new(window: Window) -> Self {
        Self {
            window,
            longest_ns: 0,
        }
    }

    /// Takes note of a transaction, finished or given up.
    pub(crate) fn note(&mut self, began_ns: u64, ended_ns: u64) {
        if ended_ns >= self.window.begin_ns && began_ns <= self.window.end_ns {
            self.longest_ns = self.longest_ns.max(ended_ns.saturating_sub(began_ns));
        }
    }

    /// Returns its length.
    pub(crate) fn longest_ns(&self) -> u64 {
        self.longest_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window {
        begin_ns: 1_000,
        end_ns: 2_000,
    };

    #[test]
    fn transactions_that_end_inside_the_window_are_recorded() {
        let counts = Arc::new(LatencyCounts::default());
        let mut latency = Latency::new(WINDOW, None, Some(Arc::clone(&counts)));
        for (began, ended) in [(800, 900), (900, 1_100), (1_100, 1_300), (1_900, 2_500)] {
            latency.record(began, ended);
        }
        assert_eq!(latency.to_histogram().buckets, vec![(200, 2)]);
        let mut seen = LatenciesSeen::new(vec![Arc::clone(&counts), counts]);
        let mut read = || {
            let mut all = Vec::new();
            seen.read(|about, count| all.push((about.map(|about| about.0), count)));
            all
        };
        assert_eq!(read(), [(None, 4), (Some(202), 4)], "of two workers");
        assert_eq!(read(), [(None, 4)], "nothing came since");
    }

    #[test]
    fn what_stands_for_a_bucket_is_near_all_of_it() {
        let mut last = 0;
        for ns in (0..4000).chain((12..36).flat_map(|bits| {
            let at = 1_u64 << bits;
            [at - 1, at, at + at / 3, at + at / 2 + 1]
        })) {
            let ns = ns.min(LATENCY_NS_MAX);
            let middle = middle_ns(bucket(ns));
            assert!(middle.abs_diff(ns) * 64 <= ns, "{middle} for {ns}");
            assert_eq!(bucket(middle), bucket(ns));
            assert!(bucket(ns) >= last, "{ns}");
            last = bucket(ns);
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn lateness_is_that_of_requests_sent_inside_the_window_of_an_open_loop() {
        let of = |requests_per_s| {
            let mut latency = Latency::new(WINDOW, requests_per_s, None);
            for (ready, sent) in [(980, 990), (990, 1_100), (1_200, 1_200), (1_990, 2_010)] {
                latency.record_sent(ready, sent);
            }
            latency.lateness()
        };
        let late = of(Some(5)).expect("an open loop");
        assert_eq!(late.buckets, vec![(1, 1), (110, 1)]);
        assert_eq!(of(None), None);
    }

    #[test]
    fn values_are_known_to_a_thousandth() {
        let always = Window {
            begin_ns: 0,
            end_ns: u64::MAX,
        };
        let mut latency = Latency::new(always, None, None);
        for exponent in 0..11 {
            latency.record(0, 10_u64.pow(exponent));
        }
        latency.record(0, u64::MAX - 1);
        let buckets = latency.to_histogram().buckets;
        assert_eq!(buckets.len(), 12);
        for (exponent, &(value, count)) in buckets[..11].iter().enumerate() {
            let truth = 10_u64.pow(exponent as u32);
            assert_eq!(count, 1);
            assert!(
                value >= truth && value - truth <= truth / 1000,
                "{value} for {truth}"
            );
        }
        let longest = buckets[11].0;
        assert!((LATENCY_NS_MAX..2 * LATENCY_NS_MAX).contains(&longest));
    }

    #[test]
    fn a_stall_over_the_end_of_the_window_is_seen() {
        let mut longest = Longest::new(WINDOW);
        longest.note(100, 900);
        assert_eq!(longest.longest_ns(), 0);
        longest.note(1_200, 1_300);
        longest.note(1_900, 9_000);
        longest.note(9_000, 99_000);
        assert_eq!(longest.longest_ns(), 7_100);
    }
}
