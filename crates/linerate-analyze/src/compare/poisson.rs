//! Whether a counter rose as often as something happened.

use super::interval::NORMAL;

/// Least count from which on a counter proves anything: below it Poisson's interval spans a factor of 7.
const COUNTED_MIN: f64 = 5.0;
/// Events that one count stands for at the least and at the most. A timer that fires again for the same
/// transaction counts twice, and a host's counters count other traffic.
const SHARE: std::ops::RangeInclusive<f64> = 0.5..=1.5;

/// Returns the 95 % interval of the mean of a Poisson count.
///
/// Byar's approximation of the exact one: within 1 % of it from a count of 5 on (Breslow and Day 1987,
/// Statistical Methods in Cancer Research II, equation 2.10).
pub(crate) fn interval(count: f64) -> (f64, f64) {
    let side = |n: f64, z: f64| n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * n.sqrt())).powi(3);
    let low = if count > 0.0 {
        side(count, -NORMAL).max(0.0)
    } else {
        0.0
    };
    (low, side(count + 1.0, NORMAL))
}

/// Returns whether a counter that rose by `counted` explains `events`: it is at least five, and the
/// interval of their ratio meets 0.5 to 1.5.
pub(crate) fn explains(counted: f64, events: f64) -> bool {
    let (low, high) = interval(counted);
    counted >= COUNTED_MIN && low <= SHARE.end() * events && high >= SHARE.start() * events
}

/// Returns whether a counter rested: it rose too seldom to be behind half of `events`.
pub(crate) fn rests(counted: f64, events: f64) -> bool {
    interval(counted).1 < SHARE.start() * events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_tables() {
        // Exact limits: chi-square quantiles (Garwood 1936).
        for (count, low, high) in [(0.0, 0.0, 3.69), (5.0, 1.62, 11.67), (20.0, 12.22, 30.89)] {
            let got = interval(count);
            let near = |a: f64, b: f64| (a - b).abs() <= 0.02 * b + 0.05;
            assert!(near(got.0, low) && near(got.1, high), "{count}: {got:?}");
        }
    }

    #[test]
    fn a_counter_explains_what_happens_as_often() {
        let check = |counted, events, expected: (bool, bool)| {
            assert_eq!(
                (explains(counted, events), rests(counted, events)),
                expected
            );
        };
        check(19.0, 20.0, (true, false));
        check(0.0, 20.0, (false, true));
        check(3.0, 3.0, (false, false));
        check(10.0, 1000.0, (false, true));
        check(1000.0, 10.0, (false, false));
    }
}
