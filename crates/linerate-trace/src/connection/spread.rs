//! A quantity of which only count, smallest, largest, sum and a coarse histogram are kept.

/// Steps of the histogram to each doubling: a quantile is right within an eighth, from a microsecond on.
const STEPS: u32 = 4;
/// Doublings that are told apart, from 1024 ns on; the last holds everything from 9 h on.
const DOUBLINGS: u32 = 36;
/// Where the histogram begins, as a power of two.
const BEGIN: u32 = 10;
const PLACES: usize = (STEPS * DOUBLINGS) as usize;

/// Count, smallest, largest and sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spread {
    pub count: u32,
    /// The smallest; meaningless without any.
    pub min: u64,
    pub max: u64,
    pub sum: u64,
}

impl Default for Spread {
    fn default() -> Self {
        Self {
            count: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
        }
    }
}

impl Spread {
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.count = self.count.saturating_add(1);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum = self.sum.saturating_add(value);
    }

    fn join(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Returns the mean, if there is any value.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / f64::from(self.count))
    }

    /// Returns the smallest value, if there is any.
    #[inline]
    pub(crate) fn least(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }
}

/// Durations by size, for quantiles.
#[derive(Debug, Clone, Default)]
pub(crate) struct Durations {
    /// Count, smallest, largest, sum.
    pub spread: Spread,
    /// Made with the second value; most connections have one or none.
    places: Option<Box<[u32; PLACES]>>,
}

impl Durations {
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        let first = self.spread.least();
        self.spread.add(ns);
        if let Some(places) = &mut self.places {
            let place = &mut places[place(ns)];
            *place = place.saturating_add(1);
        } else if let Some(first) = first {
            let mut places = Box::new([0; PLACES]);
            places[place(first)] += 1;
            places[place(ns)] += 1;
            self.places = Some(places);
        }
    }

    /// Adds all of `other`.
    pub(crate) fn join(&mut self, other: &Self) {
        // Without places there is one value at the most.
        let only = |durations: &Self| durations.spread.least();
        match (&mut self.places, &other.places) {
            (_, None) => only(other).into_iter().for_each(|ns| self.add(ns)),
            (None, Some(_)) => {
                let own = std::mem::replace(self, other.clone());
                only(&own).into_iter().for_each(|ns| self.add(ns));
            }
            (Some(places), Some(others)) => {
                for (place, other) in places.iter_mut().zip(others.iter()) {
                    *place = place.saturating_add(*other);
                }
                self.spread.join(&other.spread);
            }
        }
    }

    /// Returns whether four of five are within a quarter of their median, or `slack_ns`; fewer than `least` always
    /// are.
    pub(crate) fn are_alike(&self, slack_ns: u64, least: u32) -> bool {
        let quantiles = [0.1, 0.5, 0.9].map(|quantile| self.quantile(quantile));
        let [Some(low), Some(median), Some(high)] = quantiles else {
            return true;
        };
        self.spread.count < least || high - low <= slack_ns.max(median / 4)
    }

    /// Returns the duration below which the share `quantile` of all lie.
    pub(crate) fn quantile(&self, quantile: f64) -> Option<u64> {
        let spread = self.spread;
        let least = spread.least()?;
        let Some(places) = &self.places else {
            return Some(least);
        };
        let wanted = (quantile * f64::from(spread.count)).ceil().max(1.0) as u64;
        let mut sum = 0;
        for (at, count) in places.iter().enumerate() {
            sum += u64::from(*count);
            if sum >= wanted {
                return Some(middle(at).clamp(least, spread.max));
            }
        }
        Some(spread.max)
    }
}

/// Returns the place of `ns`: its doubling and the two bits behind the highest.
#[inline]
fn place(ns: u64) -> usize {
    let power = ns.max(1).ilog2();
    if power < BEGIN {
        return 0;
    }
    let step = (ns >> (power - 2)) & u64::from(STEPS - 1);
    let place = (power - BEGIN) * STEPS + step as u32;
    (place as usize).min(PLACES - 1)
}

/// Returns the middle of what falls into a place.
fn middle(at: usize) -> u64 {
    let (power, step) = (at as u32 / STEPS + BEGIN, at as u64 % u64::from(STEPS));
    let low = (1u64 << power) + (step << (power - 2));
    low + (1u64 << (power - 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_within_a_step() {
        let mut durations = Durations::default();
        assert_eq!(durations.quantile(0.5), None);
        for ns in 1..=1000u64 {
            durations.add(ns * 10_000);
        }
        let check = |quantile: f64, expected: f64| {
            let found = durations.quantile(quantile).unwrap() as f64;
            assert!(
                (found / expected - 1.0).abs() <= 0.125,
                "{quantile}: {found}"
            );
        };
        for percent in 1..=100 {
            let quantile = f64::from(percent) / 100.0;
            check(quantile, quantile * 1e7);
        }
        assert_eq!(durations.spread.min, 10_000);
    }

    #[test]
    fn joined_durations_are_those_of_both() {
        for counts in [[0, 0], [0, 1], [1, 0], [1, 1], [1, 9], [9, 1], [9, 9]] {
            let mut all = Durations::default();
            let [mut one, other] = counts.map(|count| {
                let mut some = Durations::default();
                for at in 1..=count {
                    some.add(at * 1_000_000 * count);
                    all.add(at * 1_000_000 * count);
                }
                some
            });
            one.join(&other);
            assert_eq!(one.spread, all.spread, "{counts:?}");
            assert_eq!(one.quantile(0.5), all.quantile(0.5), "{counts:?}");
        }
    }

    #[test]
    fn timers_are_alike_and_sleep_is_not() {
        let check = |ms: &[u64], expected| {
            let mut durations = Durations::default();
            ms.iter().for_each(|ms| durations.add(ms * 1_000_000));
            assert_eq!(durations.are_alike(15_000_000, 3), expected, "{ms:?}");
        };
        check(&[], true);
        check(&[30, 100], true);
        check(&[38, 40, 41, 44, 40], true);
        check(&[205, 200, 195, 210], true);
        check(&[30, 80, 100], false);
        check(&[26, 35, 47, 52, 68, 75, 84, 93, 101], false);
    }

    #[test]
    fn every_duration_has_a_place() {
        for power in 0..64 {
            let at = place(1 << power);
            assert!(at < PLACES);
        }
        assert_eq!(place(u64::MAX), PLACES - 1);
        assert_eq!(place(0), 0);
    }
}
