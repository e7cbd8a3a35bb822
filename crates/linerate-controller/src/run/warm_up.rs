//! How long traffic goes on before it is counted.
//!
//! A window that begins while the sender still finds out what the path takes reads too little. Slow
//! start doubles what is under way every round trip, from ten segments on: after 20 round trips it has
//! filled any path there is (10 · 2²⁰ segments are 15 GB), and bbr, which leaves its start-up when the
//! delivery rate has not grown for three rounds and then empties the queue that it made, has done both.
//! What a loss on the way leaves to congestion avoidance takes longer than anybody would wait; a window
//! whose halves differ says so.

use linerate_model::Nanos;

/// Round trips before a window.
const ROUND_TRIPS: u64 = 20;
/// The longest time that they may add; a path of 250 ms has 20 of them.
const MOST: Nanos = Nanos::from_s(5);

/// What the time before a window follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// From what is asked for alone.
    AsAsked,
    /// From that, and from the path's round trip if it is long.
    RoundTrips,
}

impl WarmUp {
    /// Returns the time before the window where `asked` was asked for on a path whose round trip the
    /// handshake measured. Who asks for none counts from the first byte on.
    pub(super) fn length(self, asked: Nanos, round_trip: Option<Nanos>) -> Nanos {
        let needed = round_trip.map_or(0, |one| one.0.saturating_mul(ROUND_TRIPS));
        let most = asked.0 + self.more(asked).0;
        asked.max(Nanos(needed.min(most)))
    }

    /// Returns the most that a path may add to `asked`.
    pub(super) fn more(self, asked: Nanos) -> Nanos {
        match self {
            WarmUp::RoundTrips if asked.0 > 0 => Nanos(MOST.0.saturating_sub(asked.0)),
            WarmUp::RoundTrips | WarmUp::AsAsked => Nanos(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_have_their_round_trips_before_the_window() {
        let check = |warm_up: WarmUp, asked_ms, trip_us: Option<u64>, expected_ms| {
            let trip = trip_us.map(|us| Nanos(us * 1000));
            let length = warm_up.length(Nanos::from_ms(asked_ms), trip);
            assert_eq!(
                length,
                Nanos::from_ms(expected_ms),
                "{asked_ms} {trip_us:?}"
            );
        };
        check(WarmUp::RoundTrips, 150, Some(100), 150);
        check(WarmUp::RoundTrips, 150, Some(50_000), 1000);
        check(WarmUp::RoundTrips, 150, Some(600_000), 5000);
        check(WarmUp::RoundTrips, 8000, Some(600_000), 8000);
        check(WarmUp::RoundTrips, 150, None, 150);
        check(WarmUp::RoundTrips, 0, Some(50_000), 0);
        check(WarmUp::AsAsked, 150, Some(50_000), 150);
    }

    /// Slow start on a path of 50 ms and 1 Gbit/s, and bbr's start-up on the same: after the time
    /// before the window neither is in it.
    #[test]
    fn starts_are_over_before_the_window() {
        let (trip, rate_bytes_per_s, segment) = (0.05, 125e6, 1448.0_f64);
        let full: f64 = trip * rate_bytes_per_s / segment;
        let rounds_of = |growth: f64| (full / 10.0).ln() / growth.ln();
        let length = WarmUp::RoundTrips.length(Nanos::from_ms(150), Some(Nanos::from_ms(50)));
        let rounds = length.as_s() / trip;
        // Slow start; where acknowledgements are stretched; bbr, with three rounds to notice that the
        // rate does not grow and as many to empty the queue.
        assert!(rounds_of(2.0) < rounds);
        assert!(rounds_of(1.5) < rounds);
        assert!(rounds_of(2.0) + 6.0 < rounds);
    }
}
