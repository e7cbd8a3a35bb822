//! Clock offsets from two-way exchanges.
//!
//! With t1 asked and t4 answered on our clock, t2 received and t3 sent on the host's, the offset is at
//! most t2 − t1, as if the request had taken no time, and at least t3 − t4, as if the answer had taken
//! none (Marzullo and Owicki 1983; RFC 5905, section 8). Every exchange of a run leaves such bounds:
//!
//! 1. The bounds of a fit are the narrowest of either way, not those of the exchange with the shortest
//!    round trip: a queue in one direction widens one of them only, and not below what an exchange before
//!    the queue has shown.
//! 2. Bounds of before move apart by [`DRIFT_PPM_MAX`]: what is left open is the uncertainty, and grows
//!    towards half of what the two ways differ by while the queue stands.
//! 3. Bounds that exclude each other say that a clock was set, or that it runs faster than that: those of
//!    before count no longer. A clock that is slewed faster is thus known within the round trip, not half
//!    of it, since the offset lies within the bounds of the last exchange as well.

use std::time::{Duration, Instant};

use linerate_model::Nanos;
use linerate_model::run::ClockFit;

use crate::together::together;

/// By how much two clocks run apart at the most: crystals are right within 50 ppm each.
const DRIFT_PPM_MAX: i128 = 100;
/// By how much of the time a clock is slewed at the most, for its rate and for its offset: 500 ppm each (adjtimex(2),
/// adjtime(3)). What moves further was set.
const SLEW_PPM_MAX: u64 = 1000;
/// How long exchanges count as the first ones: those when a host joins are over by then.
const DRIFT_BASE_NS: u64 = 100_000_000;

/// The controller's clock: nanoseconds since the fleet was begun.
#[derive(Debug, Clone)]
pub(crate) enum Clock {
    /// This machine's.
    Wall(Instant),
    /// One that moves when somebody waits, for tests.
    #[cfg(test)]
    Simulated(std::sync::Arc<crate::faults::Time>),
}

impl Clock {
    /// Returns a clock that starts now.
    pub(crate) fn start() -> Self {
        Self::Wall(Instant::now())
    }

    /// Returns the time since the clock started; every instant of the controller is one of these.
    pub(crate) fn now_ns(&self) -> u64 {
        match self {
            Self::Wall(base) => base.elapsed().as_nanos() as u64,
            #[cfg(test)]
            Self::Simulated(time) => time.now_ns(),
        }
    }

    /// Waits so long.
    pub(crate) fn sleep(&self, duration: Duration) {
        match self {
            Self::Wall(_) => std::thread::sleep(duration),
            #[cfg(test)]
            Self::Simulated(time) => time.sleep(duration),
        }
    }

    /// Runs `work` for all of `items` at the same time and returns its results in their order.
    pub(crate) fn together<T: Send, R: Send>(
        &self,
        items: impl IntoIterator<Item = T>,
        work: impl Fn(T) -> R + Sync,
    ) -> Vec<R> {
        match self {
            Self::Wall(_) => together(items, work),
            #[cfg(test)]
            Self::Simulated(time) => time.together(items, work),
        }
    }
}

/// The four instants of one exchange.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange {
    /// t1, on our clock.
    pub asked_ns: u64,
    /// t2, on the host's.
    pub received_ns: u64,
    /// t3, on the host's.
    pub sent_ns: u64,
    /// t4, on our clock.
    pub answered_ns: u64,
}

/// A host's clock against ours, from all exchanges of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClockFilter {
    bounds: Option<Bounds>,
    /// The narrowest of the first exchanges, which took [`DRIFT_BASE_NS`] at the most: what the drift is read against.
    first: Option<Bounds>,
    /// All bounds since the begin of a trial together, if one has begun.
    whole: Option<Bounds>,
    /// By how much it was set, all times together.
    stepped: Option<Nanos>,
}

/// Between what the offset lies, host minus ours.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    least_ns: i128,
    most_ns: i128,
    /// When, on our clock.
    at_ns: u64,
}

impl ClockFilter {
    /// Takes up one more exchange. One that took the host longer than us tells nothing.
    pub(crate) fn handle_exchange(&mut self, exchange: Exchange) {
        let new = Bounds::of(exchange);
        if new.most_ns < new.least_ns {
            return;
        }
        let Some(before) = self.bounds.map(|bounds| bounds.at(new.at_ns)) else {
            self.bounds = Some(new);
            self.first = Some(new);
            return;
        };
        let both = Bounds {
            least_ns: before.least_ns.max(new.least_ns),
            most_ns: before.most_ns.min(new.most_ns),
            at_ns: new.at_ns,
        };
        if both.least_ns <= both.most_ns {
            self.bounds = Some(both);
            if self
                .first
                .is_some_and(|first| new.at_ns < first.at_ns + DRIFT_BASE_NS)
            {
                self.first = Some(both);
            }
        } else {
            let step_ns = (new.middle_ns() - before.middle_ns()).unsigned_abs();
            let step_ns = u64::try_from(step_ns).unwrap_or(u64::MAX);
            let before_ns = self.stepped.map_or(0, |stepped| stepped.0);
            self.stepped = Some(Nanos(before_ns.saturating_add(step_ns)));
            self.bounds = Some(new);
            self.first = Some(new);
        }
        self.whole = self.whole.zip(self.bounds).map(|(whole, now)| Bounds {
            least_ns: whole.least_ns.min(now.least_ns),
            most_ns: whole.most_ns.max(now.most_ns),
            at_ns: now.at_ns,
        });
    }

    /// Returns the same, which from now on is that of a trial.
    pub(crate) fn of_trial(&self) -> Self {
        Self {
            whole: self.bounds,
            ..self.clone()
        }
    }

    /// Returns between what the offset was during the trial: from one exchange to the next it goes from the one to the other.
    pub(crate) fn fit_of_trial(&self) -> Option<ClockFit> {
        self.fit_of(self.whole?)
    }

    /// Returns what is known at the instant of the last exchange, if any told something.
    pub(crate) fn fit(&self) -> Option<ClockFit> {
        self.fit_of(self.bounds?)
    }

    fn fit_of(&self, bounds: Bounds) -> Option<ClockFit> {
        let uncertainty_ns = (bounds.most_ns - bounds.least_ns + 1) / 2;
        Some(ClockFit {
            offset_ns: bounds.middle_ns().clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            uncertainty_ns: u64::try_from(uncertainty_ns).unwrap_or(u64::MAX),
            drift_ppb: self.drift_ppb(bounds),
        })
    }

    /// Returns between what the drift lies by which the offset came from the first exchanges to where it is now; absent where
    /// that says no more than what a clock may drift anyway.
    fn drift_ppb(&self, now: Bounds) -> Option<[i64; 2]> {
        let first = self.first?;
        let took_ns = i128::from(now.at_ns.saturating_sub(first.at_ns));
        let per_s = |ns: i128| (ns * 1_000_000_000).checked_div(took_ns);
        let least = per_s(now.least_ns - first.most_ns)?;
        let most = per_s(now.most_ns - first.least_ns)?;
        let is_known = most - least < 2 * 1000 * DRIFT_PPM_MAX;
        is_known.then_some([i64::try_from(least).ok()?, i64::try_from(most).ok()?])
    }

    /// Returns by how much the clock was set since this was last asked, if that is more than it may be slewed in `took`.
    pub(crate) fn poll_set_in(&mut self, took: Nanos) -> Option<Nanos> {
        let slewed_ns = took.0 / 1_000_000 * SLEW_PPM_MAX;
        self.poll_step().filter(|step| step.0 > slewed_ns)
    }

    /// Returns by how much the clock was set since this was last asked, if it was.
    pub(super) fn poll_step(&mut self) -> Option<Nanos> {
        self.stepped.take()
    }
}

impl Bounds {
    fn of(exchange: Exchange) -> Self {
        Self {
            least_ns: i128::from(exchange.sent_ns) - i128::from(exchange.answered_ns),
            most_ns: i128::from(exchange.received_ns) - i128::from(exchange.asked_ns),
            at_ns: exchange.answered_ns,
        }
    }

    fn at(self, now_ns: u64) -> Self {
        let since_ns = i128::from(now_ns.saturating_sub(self.at_ns));
        let drift_ns = (since_ns * DRIFT_PPM_MAX).div_euclid(1_000_000) + 1;
        Self {
            least_ns: self.least_ns - drift_ns,
            most_ns: self.most_ns + drift_ns,
            at_ns: now_ns,
        }
    }

    fn middle_ns(self) -> i128 {
        (self.least_ns + self.most_ns).div_euclid(2)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng as _};
    use rand_pcg::Pcg64;

    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;

    /// A host whose clock is `offset_ns` ahead at first and runs `drift_ppm` fast.
    struct Host {
        offset_ns: i64,
        drift_ppm: f64,
    }

    impl Host {
        fn offset_at(&self, now_ns: u64) -> i64 {
            self.offset_ns + (now_ns as f64 * self.drift_ppm / 1e6) as i64
        }

        fn reads(&self, now_ns: u64) -> u64 {
            now_ns.checked_add_signed(self.offset_at(now_ns)).unwrap()
        }

        /// An exchange at `now_ns` whose ways take so long.
        fn exchange(&self, now_ns: u64, there_ns: u64, back_ns: u64) -> Exchange {
            let (work_ns, received_ns) = (7_000, now_ns + there_ns);
            Exchange {
                asked_ns: now_ns,
                received_ns: self.reads(received_ns),
                sent_ns: self.reads(received_ns + work_ns),
                answered_ns: received_ns + work_ns + back_ns,
            }
        }
    }

    /// Four exchanges every `every_ns` for `length_ns`, with a jitter of up to 300 µs either way beside
    /// what `queues` says of an instant; returns the largest error and uncertainty after `from_ns`.
    fn run(
        host: &Host,
        (length_ns, every_ns, from_ns): (u64, u64, u64),
        queues: impl Fn(u64) -> (u64, u64),
    ) -> (u64, u64) {
        let mut random = Pcg64::seed_from_u64(length_ns ^ host.drift_ppm.to_bits());
        let mut filter = ClockFilter::default();
        let (mut error_max, mut uncertainty_max) = (0, 0);
        for begin_ns in (S..length_ns).step_by(every_ns as usize) {
            let mut now_ns = begin_ns;
            for _ in 0..4 {
                let (there, back) = queues(now_ns);
                let mut jitter = || 40_000 + random.random_range(0..300_000);
                let exchange = host.exchange(now_ns, there + jitter(), back + jitter());
                now_ns = exchange.answered_ns;
                filter.handle_exchange(exchange);
            }
            let fit = filter.fit().expect("there were exchanges");
            let error = fit.offset_ns.abs_diff(host.offset_at(now_ns));
            assert!(error <= fit.uncertainty_ns, "{error} ns off, {fit:?}");
            if begin_ns >= from_ns {
                error_max = error_max.max(error);
                uncertainty_max = uncertainty_max.max(fit.uncertainty_ns);
            }
        }
        assert_eq!(filter.poll_step(), None);
        (error_max, uncertainty_max)
    }

    #[test]
    fn the_narrowest_way_of_each_direction_counts() {
        // The host's clock is 1 000 ahead. Queues first on the way there, then on the way back.
        let exchange = |asked_ns, there: u64, back: u64| Exchange {
            asked_ns,
            received_ns: asked_ns + there + 1000,
            sent_ns: asked_ns + there + 1002,
            answered_ns: asked_ns + there + 2 + back,
        };
        let mut filter = ClockFilter::default();
        filter.handle_exchange(exchange(0, 900, 10));
        let fit = filter.fit().expect("one exchange");
        assert_eq!((fit.offset_ns, fit.uncertainty_ns), (1445, 455));
        filter.handle_exchange(exchange(2000, 10, 900));
        let fit = filter.fit().expect("two exchanges");
        assert!(fit.offset_ns.abs_diff(1000) <= 1, "{fit:?}");
        assert!(fit.uncertainty_ns <= 11, "{fit:?}");
    }

    #[test]
    fn a_queue_in_one_direction_moves_the_offset_no_further_than_drift_allows() {
        let host = Host {
            offset_ns: -400 * MS as i64,
            drift_ppm: 30.0,
        };
        // Of 100 ms, from the fifth second on, either way.
        for there in [true, false] {
            let queue = |now_ns: u64| match (now_ns > 5 * S, there) {
                (false, _) => (0, 0),
                (true, true) => (100 * MS, 0),
                (true, false) => (0, 100 * MS),
            };
            let (error, uncertainty) = run(&host, (65 * S, S, 5 * S), queue);
            assert!(error < 5 * MS, "{error} ns off after a minute");
            assert!(uncertainty < 7 * MS, "{uncertainty} ns");
            // The exchange with the shortest round trip would be 50 ms off now.
        }
    }

    #[test]
    fn a_queue_that_stands_is_in_the_uncertainty() {
        let host = Host {
            offset_ns: 7,
            drift_ppm: -50.0,
        };
        let (error, uncertainty) = run(&host, (20 * S, S, S), |_| (100 * MS, 0));
        assert!(error > 45 * MS && uncertainty >= error, "{error} ns off");
        // And what an exchange before it had shown wears off towards that.
        let later = |now_ns: u64| ((if now_ns > 5 * S { 100 * MS } else { 0 }), 0);
        let (_, after_1_min) = run(&host, (60 * S, S, 59 * S), later);
        let (_, after_10_min) = run(&host, (600 * S, S, 599 * S), later);
        assert!(after_1_min < after_10_min && after_10_min <= 51 * MS);
    }

    #[test]
    fn drift_is_followed() {
        for drift_ppm in [-99.0, -20.0, 0.0, 1.0, 99.0] {
            let host = Host {
                offset_ns: 3600 * S as i64,
                drift_ppm,
            };
            let (error, _) = run(&host, (3600 * S, 10 * S, S), |_| (0, 0));
            assert!(error < MS / 2, "{error} ns off with {drift_ppm} ppm");
        }
    }

    #[test]
    fn drift_is_known_better_the_longer_a_run_takes() {
        for drift_ppm in [-60.0, 0.0, 7.5] {
            let host = Host {
                offset_ns: 17,
                drift_ppm,
            };
            let mut filter = ClockFilter::default();
            filter.handle_exchange(host.exchange(S, 60_000, 40_000));
            assert_eq!(filter.fit().and_then(|fit| fit.drift_ppb), None);
            let mut width = i64::MAX;
            for at_s in [10, 60, 600] {
                filter.handle_exchange(host.exchange(at_s * S, 40_000, 60_000));
                let [least, most] = filter
                    .fit()
                    .and_then(|fit| fit.drift_ppb)
                    .expect("it took long");
                let true_ppb = (drift_ppm * 1000.0) as i64;
                assert!(
                    (least..=most).contains(&true_ppb),
                    "{least} {true_ppb} {most}"
                );
                assert!(most - least < width);
                width = most - least;
            }
            assert!(width < 1_000, "{width} ppb after ten minutes");
        }
    }

    #[test]
    fn the_offset_of_a_trial_lies_within_what_was_known_at_each_instant_of_it() {
        let host = Host {
            offset_ns: 5_000,
            drift_ppm: 80.0,
        };
        let mut filter = ClockFilter::default();
        filter.handle_exchange(host.exchange(S, 10_000, 12_000));
        assert_eq!(filter.fit_of_trial(), None);
        let mut filter = filter.of_trial();
        for at_s in 2..20 {
            filter.handle_exchange(host.exchange(at_s * S, 11_000, 10_000));
        }
        let fit = filter.fit_of_trial().expect("exchanges");
        for at_s in 1..20 {
            let off_ns = fit.offset_ns.abs_diff(host.offset_at(at_s * S));
            assert!(off_ns <= fit.uncertainty_ns, "{off_ns} of {fit:?}");
        }
        let last = filter.fit().expect("exchanges");
        assert!(last.uncertainty_ns < 20_000 && fit.uncertainty_ns > 700_000);
    }

    #[test]
    fn a_step_is_noticed_and_followed() {
        let mut host = Host {
            offset_ns: 0,
            drift_ppm: 0.0,
        };
        let mut filter = ClockFilter::default();
        filter.handle_exchange(host.exchange(S, 50_000, 50_000));
        assert_eq!(filter.poll_step(), None);
        for step_ns in [2 * S as i64, -(S as i64), -(300 * MS as i64)] {
            host.offset_ns += step_ns;
            filter.handle_exchange(host.exchange(5 * S, 90_000, 30_000));
            let told = filter.poll_step().expect("a step");
            assert!(told.0.abs_diff(step_ns.unsigned_abs()) < MS, "{told}");
            assert_eq!(filter.poll_step(), None);
            let fit = filter.fit().expect("exchanges");
            assert!(fit.offset_ns.abs_diff(host.offset_ns) <= fit.uncertainty_ns);
            assert!(fit.uncertainty_ns < 100_000);
        }
    }

    #[test]
    fn what_cannot_be_tells_nothing() {
        let mut filter = ClockFilter::default();
        for (received_ns, sent_ns) in [(0, u64::MAX), (100, 10_000)] {
            filter.handle_exchange(Exchange {
                asked_ns: 10,
                received_ns,
                sent_ns,
                answered_ns: 20,
            });
            assert_eq!(filter.fit(), None);
        }
        filter.handle_exchange(Exchange {
            asked_ns: 10,
            received_ns: u64::MAX,
            sent_ns: u64::MAX,
            answered_ns: 20,
        });
        assert_eq!(filter.fit().map(|fit| fit.offset_ns), Some(i64::MAX));
    }
}
