//! Clock offsets from two-way exchanges.
//!
//! With t1 asked and t4 answered on our clock, t2 received and t3 sent on the host's, the offset is
//! ((t2 − t1) + (t3 − t4)) / 2 and is right within half the round trip (t4 − t1) − (t3 − t2)
//! (Cristian 1989; RFC 5905, section 8). The exchange with the shortest round trip is kept.

use std::time::Instant;

use linerate_model::run::ClockFit;

/// The controller's clock: nanoseconds since the fleet was begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    pub(super) base: Instant,
}

/// The four instants of one exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    /// t1, on our clock.
    pub asked_ns: u64,
    /// t2, on the host's.
    pub received_ns: u64,
    /// t3, on the host's.
    pub sent_ns: u64,
    /// t4, on our clock.
    pub answered_ns: u64,
}

/// Returns the better of the fit so far and that of one more exchange.
pub(super) fn better(best: Option<ClockFit>, exchange: Exchange) -> ClockFit {
    let there = exchange.received_ns as i128 - exchange.asked_ns as i128;
    let back = exchange.sent_ns as i128 - exchange.answered_ns as i128;
    let round_trip = (there - back).max(0) as u64;
    let fit = ClockFit {
        offset_ns: ((there + back) / 2) as i64,
        uncertainty_ns: round_trip.div_ceil(2),
    };
    match best {
        Some(best) if best.uncertainty_ns <= fit.uncertainty_ns => best,
        _ => fit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_exchange_wins() {
        // The host's clock is 1 000 ahead; the first exchange is lopsided, the second is not.
        let slow = Exchange {
            asked_ns: 0,
            received_ns: 1900,
            sent_ns: 1910,
            answered_ns: 1010,
        };
        let fast = Exchange {
            asked_ns: 2000,
            received_ns: 3010,
            sent_ns: 3012,
            answered_ns: 2022,
        };
        let fit = better(None, slow);
        assert_eq!(
            fit,
            ClockFit {
                offset_ns: 1400,
                uncertainty_ns: 500
            }
        );
        let fit = better(Some(fit), fast);
        assert_eq!(
            fit,
            ClockFit {
                offset_ns: 1000,
                uncertainty_ns: 10
            }
        );
        assert_eq!(better(Some(fit), slow), fit);
    }

    #[test]
    fn the_true_offset_lies_within_the_uncertainty() {
        for (there, back) in [(10, 10), (0, 100), (77, 3)] {
            let (offset, work) = (-5_000i64, 7);
            let received = 10_000 + there as i64 + offset;
            let exchange = Exchange {
                asked_ns: 10_000,
                received_ns: received as u64,
                sent_ns: (received + work) as u64,
                answered_ns: (10_000 + there + work as u64 as i32 + back) as u64,
            };
            let fit = better(None, exchange);
            assert!(
                (fit.offset_ns - offset).unsigned_abs() <= fit.uncertainty_ns,
                "{fit:?}"
            );
        }
    }
}
