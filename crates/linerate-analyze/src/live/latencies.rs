//! The latencies of one host, interval by interval, from counts that only grow.

use std::collections::BTreeMap;

use linerate_model::Nanos;
use linerate_model::histogram::Histogram;

use crate::live::Reading;

/// How many transactions a host's workers have recorded, by latency; only what intervals still need.
///
/// A reading tells of a bucket where it has grown, and always of all together, so that the readings of
/// all say when a bucket was read and had not grown.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    all: Vec<Reading>,
    buckets: BTreeMap<Nanos, Vec<Reading>>,
}

impl Latencies {
    /// Takes up how many transactions there were in a bucket, or in all.
    pub(super) fn add(&mut self, about: Option<Nanos>, reading: Reading) {
        match about {
            None => self.all.push(reading),
            Some(about) => self.buckets.entry(about).or_default().push(reading),
        }
    }

    /// Returns whether they were read at `at` or later.
    pub(super) fn reach(&self, at: i64) -> bool {
        self.all.last().is_some_and(|last| last.0 >= at)
    }

    /// Returns the transactions between the readings at or after two instants; absent where they were
    /// not read, or not whole.
    pub(super) fn between(&self, begin: i64, end: i64) -> Option<Histogram> {
        let [first, last] = [begin, end].map(|at| self.read_at(at));
        let (first, last) = first.zip(last)?;
        let grown = |(&Nanos(about), readings): (&Nanos, &Vec<Reading>)| {
            let [before, now] = [first, last].map(|(at, _)| count_at(readings, at));
            (now > before).then(|| (about, (now - before).unsigned_abs()))
        };
        let buckets = self.buckets.iter().filter_map(grown).collect();
        let histogram = Histogram { buckets };
        let grown = (last.1 - first.1).unsigned_abs();
        (histogram.count() == grown).then_some(histogram)
    }

    /// Forgets what no interval needs that begins at `begin` or later.
    pub(super) fn forget_before(&mut self, begin: i64) {
        let past = self.all.partition_point(|reading| reading.0 < begin);
        self.all.drain(..past);
        let first = self.all.first().map_or(begin, |reading| reading.0);
        for readings in self.buckets.values_mut() {
            let past = readings.partition_point(|reading| reading.0 <= first);
            // The last of them says how many there were.
            readings.drain(..past.saturating_sub(1));
        }
    }

    /// Returns the reading at or after an instant, which at the begin of the window is none: counts begin
    /// there, and the first reading has what came up to it.
    fn read_at(&self, at: i64) -> Option<Reading> {
        if at == 0 {
            return Some((i64::MIN, 0));
        }
        let readings = self.all.iter();
        readings.copied().find(|reading| reading.0 >= at)
    }
}

/// Returns how many there were at the last reading up to `at`.
fn count_at(readings: &[Reading], at: i64) -> i64 {
    let past = readings.partition_point(|reading| reading.0 <= at);
    past.checked_sub(1).map_or(0, |last| readings[last].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_what_came_between_its_edges() {
        let mut latencies = Latencies::default();
        let (fast, slow) = (Nanos(20_000), Nanos(900_000));
        for (about, at, count) in [
            // Late by 10, in which one came.
            (None, 10, 1),
            (Some(fast), 10, 1),
            (None, 51, 5),
            (Some(fast), 51, 4),
            (Some(slow), 51, 1),
            // Read, and nothing had come.
            (None, 100, 5),
            (None, 150, 9),
            (Some(fast), 150, 8),
            (None, 200, 10),
            (Some(slow), 200, 2),
        ] {
            latencies.add(about, (at, count));
        }
        let check = |latencies: &Latencies, begin, end, expect: &[(u64, u64)]| {
            let histogram = latencies.between(begin, end);
            assert_eq!(histogram.map(|it| it.buckets), Some(expect.to_vec()));
        };
        let (fast, slow) = (fast.0, slow.0);
        check(&latencies, 0, 50, &[(fast, 4), (slow, 1)]);
        check(&latencies, 50, 100, &[]);
        check(&latencies, 0, 200, &[(fast, 8), (slow, 2)]);
        latencies.forget_before(100);
        check(&latencies, 100, 200, &[(fast, 4), (slow, 1)]);
        latencies.forget_before(150);
        check(&latencies, 150, 200, &[(slow, 1)]);
        assert!(latencies.reach(200) && !latencies.reach(201));
        assert_eq!(latencies.between(150, 201), None, "it was not read");
    }

    #[test]
    fn intervals_of_a_steady_load_tell_what_all_of_it_tells() {
        let mut latencies = Latencies::default();
        // Of each hundred the n-th takes n µs.
        for tick in 0..=50 {
            latencies.add(None, (tick * 10, tick * 200));
            for us in 1..=100_u64 {
                latencies.add(Some(Nanos(us * 1000)), (tick * 10, tick * 2));
            }
        }
        let whole = latencies.between(0, 500).expect("it was read");
        assert_eq!(whole.count(), 10_000);
        let mut put_together = Histogram::default();
        for at in 0..10 {
            let (begin, end) = (at * 50, at * 50 + 50);
            let one = latencies.between(begin, end).expect("it was read");
            for q in [0.5, 0.9, 0.99, 1.0] {
                assert_eq!(one.quantile(q), whole.quantile(q), "interval {at}, q {q}");
            }
            put_together.merge(&one);
            latencies.forget_before(end);
        }
        assert_eq!(put_together, whole);
    }

    #[test]
    fn counts_that_do_not_add_up_tell_nothing() {
        let mut latencies = Latencies::default();
        latencies.add(None, (0, 0));
        latencies.add(None, (100, 3));
        latencies.add(Some(Nanos(5)), (100, 2));
        assert_eq!(latencies.between(0, 100), None);
    }
}
