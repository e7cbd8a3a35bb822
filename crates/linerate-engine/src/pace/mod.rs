//! When the next thing may be sent, at a given rate.
//!
//! A [`Pacer`] is arithmetic only: it reads no clock and does not wait. What is paced is counted
//! in units, bits or requests alike. Unit number n is due at `begin + n / rate`, exactly: the
//! fraction of a nanosecond that one step leaves is carried to the next, so that intended instants
//! never drift, and one that was missed does not move those that follow (open loop).

/// What holds exchanges to a rate.
mod hold;

use std::time::Duration;

pub(crate) use hold::{CALL_BYTES_MAX, Hold};

pub(crate) const NS_PER_S: u64 = 1_000_000_000;

/// The schedule of things that are sent at a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pacer {
    units_per_s: u64,
    /// How long before it is due a unit may go, so that several go in one call.
    ahead_ns: u64,
    /// When the next unit is due, in nanoseconds and `fraction / units_per_s` more.
    due_ns: u64,
    fraction: u64,
}

impl Pacer {
    /// Returns the schedule of `units_per_s` from `begin_ns` on; up to `burst` units may go at
    /// once, before they are due. A rate of 0 counts as 1 a second.
    pub(crate) fn new(units_per_s: u64, burst: u64, begin_ns: u64) -> Self {
        let units_per_s = units_per_s.max(1);
        let (ahead_ns, _) = time_of(burst, units_per_s, 0);
        Self {
            units_per_s,
            ahead_ns,
            due_ns: begin_ns,
            fraction: 0,
        }
    }

    /// Returns when the next unit is due: the intended instant, from which a latency counts.
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Returns from when on the next unit may be sent: when it is due, less the burst.
    pub(crate) fn opens_ns(&self) -> u64 {
        self.due_ns.saturating_sub(self.ahead_ns)
    }

    /// Returns how long to wait from `now_ns` until the next unit may be sent, if at all.
    pub(crate) fn wait(&self, now_ns: u64) -> Option<Duration> {
        let left_ns = self.opens_ns().saturating_sub(now_ns);
        (left_ns > 0).then(|| Duration::from_nanos(left_ns))
    }

    /// Takes `units` off the schedule: those that were sent.
    ///
    /// Cost: a multiplication and a division of 64 bits, 5 ns.
    pub(crate) fn take(&mut self, units: u64) {
        let (ns, fraction) = time_of(units, self.units_per_s, self.fraction);
        self.due_ns = self.due_ns.saturating_add(ns);
        self.fraction = fraction;
    }

    /// Returns how many units are due before `stop_ns` and have not been taken.
    pub(crate) fn due_before(&self, stop_ns: u64) -> u64 {
        let left_ns = u128::from(stop_ns.saturating_sub(self.due_ns));
        let units = (left_ns * u128::from(self.units_per_s)).div_ceil(u128::from(NS_PER_S));
        u64::try_from(units).unwrap_or(u64::MAX)
    }

    /// Forgets what is overdue by more than `lag_ns` at `now_ns`: the rest of the schedule moves
    /// by that much, instead of everything missed being sent as fast as it goes. Returns by how
    /// much it has moved.
    pub(crate) fn forget(&mut self, now_ns: u64, lag_ns: u64) -> u64 {
        let moved_ns = now_ns.saturating_sub(self.due_ns).saturating_sub(lag_ns);
        self.due_ns += moved_ns;
        moved_ns
    }
}

/// Returns the time that `units` take, in whole nanoseconds and the fraction that is left;
/// `fraction` is the one that was left before.
fn time_of(units: u64, units_per_s: u64, fraction: u64) -> (u64, u64) {
    // 18 gigabits in one step overflow; nothing sent in one call has as many.
    if let Some(total) = units.checked_mul(NS_PER_S)
        && let Some(total) = total.checked_add(fraction)
    {
        return (total / units_per_s, total % units_per_s);
    }
    let total = u128::from(units) * u128::from(NS_PER_S) + u128::from(fraction);
    let rate = u128::from(units_per_s);
    let ns = u64::try_from(total / rate).unwrap_or(u64::MAX);
    (ns, (total % rate) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_are_due_at_equal_distances() {
        let mut pacer = Pacer::new(4, 0, 1_000);
        let mut due = Vec::new();
        for _ in 0..5 {
            due.push(pacer.due_ns() - 1_000);
            pacer.take(1);
        }
        assert_eq!(due, [0, 250_000_000, 500_000_000, 750_000_000, NS_PER_S]);
    }

    #[test]
    fn a_burst_may_go_ahead_of_time_and_no_more() {
        let mut pacer = Pacer::new(1_000, 3, NS_PER_S);
        let mut sent = 0;
        while pacer.wait(NS_PER_S).is_none() {
            pacer.take(1);
            sent += 1;
        }
        // The one that is due now, and three before their time.
        assert_eq!(sent, 4);
        assert_eq!(pacer.wait(NS_PER_S), Some(Duration::from_millis(1)));
        assert_eq!(pacer.wait(NS_PER_S + 1_000_000), None);
    }

    #[test]
    fn a_stall_moves_nothing_unless_it_is_forgotten() {
        let mut pacer = Pacer::new(1_000_000, 0, 0);
        pacer.take(10);
        assert_eq!(pacer.due_ns(), 10_000);
        let mut patient = pacer;
        assert_eq!(patient.forget(1_000_000, 2_000_000), 0);
        assert_eq!(patient, pacer);
        assert_eq!(pacer.forget(1_000_000, 5_000), 985_000);
        assert_eq!(pacer.due_ns(), 995_000);
    }

    #[test]
    fn no_rate_is_a_slow_one() {
        let mut pacer = Pacer::new(0, 0, 5);
        pacer.take(2);
        assert_eq!(pacer.due_ns(), 2 * NS_PER_S + 5);
        pacer.take(u64::MAX);
        assert_eq!(pacer.due_ns(), u64::MAX);
    }

    proptest! {
        /// However the units are dealt over calls, the instant is that of the exact quotient.
        #[test]
        fn intended_instants_do_not_drift(
            rate in 1..200_000_000_000_u64,
            steps in prop::collection::vec(1..600_000_000_u64, 1..200),
        ) {
            let mut pacer = Pacer::new(rate, 0, 7);
            let mut taken = 0_u128;
            for step in steps {
                taken += u128::from(step);
                pacer.take(step);
                let exact = taken * u128::from(NS_PER_S) / u128::from(rate);
                prop_assert_eq!(u128::from(pacer.due_ns() - 7), exact);
            }
        }

        /// A sender that always waits as told never exceeds its rate by more than the burst.
        #[test]
        fn the_rate_is_kept(rate in 1..1_000_000_000_u64, burst in 0..100_000_u64, unit in 1..10_000_u64) {
            let mut pacer = Pacer::new(rate, burst, 0);
            let (mut now_ns, mut sent) = (0_u64, 0_u128);
            for _ in 0..1000 {
                if let Some(wait) = pacer.wait(now_ns) {
                    now_ns += wait.as_nanos() as u64;
                }
                pacer.take(unit);
                sent += u128::from(unit);
                let due = u128::from(now_ns + 1) * u128::from(rate) / u128::from(NS_PER_S);
                prop_assert!(sent <= due + u128::from(burst + unit) + 1);
            }
        }
    }
}
