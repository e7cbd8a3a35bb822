//! How far two clocks are apart.
//!
//! With d₁ and d₂ the delays there and back and θ the second clock less the first, segments from the
//! first capture to the second show d₁ + θ, those back d₂ − θ. No delay is less than zero, so θ lies
//! between −min(d₂ − θ) and min(d₁ + θ): its middle is taken, and half the distance is the most by which
//! it can be wrong. That is half the shortest round trip between the captures.
//!
//! Clocks drift: the least delays of 16 stretches of the time give a rate for each direction (Theil and
//! Sen). A drift shows in both alike; a queue that grows shows in one, and is none. Nor is it one if chance
//! can make such a rate of stretches in any order.

use serde::Serialize;

/// When both captures saw the same segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instants {
    pub first_ns: u64,
    pub second_ns: u64,
    /// Whether it went from the first capture to the second.
    pub is_forward: bool,
}

/// Stretches of the time in which the clocks are compared.
const STRETCHES: u64 = 16;
/// Drifts beyond 500 ppm are no quartz's.
const DRIFT_MAX: f64 = 500e-6;
/// How far the rates of both directions may lie apart, as a share of the larger.
const APART_MAX: f64 = 0.25;

/// Standard deviations of Kendall's statistic within which a rate may be chance (three in a thousand).
const CHANCE_DEVIATIONS: f64 = 3.0;

/// The second capture's clock, as the first one's shows it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Clock {
    #[serde(skip)]
    begin_ns: u64,
    /// The second clock less the first, when the first segment was seen.
    pub offset_ns: i64,
    /// By how much that may be wrong: half the shortest round trip between the captures; unknown where
    /// segments went one way only.
    pub uncertainty_ns: Option<u64>,
    /// What the second clock gains, as a share of the time.
    #[serde(skip)]
    drift: f64,
    /// The same in millionths.
    pub drift_ppm: f64,
    /// Segments that tell so.
    pub samples: u64,
}

impl Clock {
    /// Returns the clock that `pairs` show, if there are any.
    pub(crate) fn of(pairs: &[Instants]) -> Option<Self> {
        let begin_ns = pairs.iter().map(|pair| pair.first_ns).min()?;
        let end_ns = pairs.iter().map(|pair| pair.first_ns).max()?;
        let rates = [true, false].map(|is_forward| {
            let own = pairs.iter().filter(|pair| pair.is_forward == is_forward);
            rate(own, begin_ns, end_ns)
        });
        let drift = match rates {
            [Some(there), Some(back)] => {
                let most = there.abs().max(back.abs());
                let is_one = (there - back).abs() <= most * APART_MAX && most <= DRIFT_MAX;
                if is_one { (there + back) / 2.0 } else { 0.0 }
            }
            _ => 0.0,
        };
        Some(Self::at_rate(pairs, begin_ns, drift))
    }

    /// Returns an instant of the second capture by the first's clock.
    pub(crate) fn to_first_ns(self, second_ns: u64) -> i128 {
        let by_offset = i128::from(second_ns) - i128::from(self.offset_ns);
        let elapsed = by_offset - i128::from(self.begin_ns);
        by_offset - (elapsed as f64 * self.drift) as i128
    }

    fn at_rate(pairs: &[Instants], begin_ns: u64, drift: f64) -> Self {
        let (low, high) = bounds(pairs.iter(), begin_ns, drift);
        // With one way only the least delay is taken for none.
        let offset = match (low, high) {
            (Some(low), Some(high)) => low + (high - low) / 2,
            (low, high) => low.or(high).unwrap_or(0),
        };
        let distance = low.zip(high).map(|(low, high)| high - low);
        Self {
            begin_ns,
            offset_ns: i64::try_from(offset).unwrap_or(i64::MAX),
            uncertainty_ns: distance.map(|ns| u64::try_from(ns.abs() / 2 + 1).unwrap_or(u64::MAX)),
            drift,
            drift_ppm: drift * 1e6,
            samples: pairs.len() as u64,
        }
    }
}

/// Returns between what the offset lies.
fn bounds<'p>(
    pairs: impl Iterator<Item = &'p Instants>,
    begin_ns: u64,
    drift: f64,
) -> (Option<i128>, Option<i128>) {
    let (mut low, mut high): (Option<i128>, Option<i128>) = (None, None);
    for pair in pairs {
        let gained = (pair.first_ns.saturating_sub(begin_ns) as f64 * drift) as i128;
        let apart = i128::from(pair.second_ns) - i128::from(pair.first_ns) - gained;
        if pair.is_forward {
            high = Some(high.map_or(apart, |high| high.min(apart)));
        } else {
            low = Some(low.map_or(apart, |low| low.max(apart)));
        }
    }
    (low, high)
}

/// Returns the median of the slopes between the least delays of stretches of one direction, if its interval
/// has no zero inside.
///
/// P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, 1968: of the sorted slopes
/// between n points, the middle ones within z √(n (n − 1) (2n + 5) / 18) hold the rate.
fn rate<'p>(pairs: impl Iterator<Item = &'p Instants>, begin_ns: u64, end_ns: u64) -> Option<f64> {
    let width_ns = (end_ns - begin_ns) / STRETCHES + 1;
    let mut least: [Option<(u64, i128)>; STRETCHES as usize] = [None; STRETCHES as usize];
    for pair in pairs {
        let elapsed_ns = pair.first_ns - begin_ns;
        let apart = i128::from(pair.second_ns) - i128::from(pair.first_ns);
        let delay = |apart: i128| if pair.is_forward { apart } else { -apart };
        let place = &mut least[(elapsed_ns / width_ns) as usize];
        if place.is_none_or(|(_, known)| delay(apart) < delay(known)) {
            *place = Some((elapsed_ns, apart));
        }
    }
    let known: Vec<(u64, i128)> = least.into_iter().flatten().collect();
    let mut slopes: Vec<f64> = Vec::new();
    for (at, one) in known.iter().enumerate() {
        for other in &known[at + 1..] {
            slopes.push((other.1 - one.1) as f64 / (other.0 - one.0) as f64);
        }
    }
    slopes.sort_by(f64::total_cmp);
    let n = known.len() as f64;
    let within = CHANCE_DEVIATIONS * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let from = ((slopes.len() as f64 - within) / 2.0).floor();
    if from < 0.0 {
        return None;
    }
    let ends = slopes
        .get(from as usize)
        .zip(slopes.iter().nth_back(from as usize));
    let (low, high) = ends?;
    (low * high > 0.0).then(|| slopes[slopes.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_lies_within_its_bounds() {
        for (offset, drift) in [(5_000_000_000i64, 0.0), (-40_000_000, 80e-6), (0, -20e-6)] {
            let mut pairs = Vec::new();
            for at in 0..2000u64 {
                let first_ns = 10_000_000_000 + at * 10_000_000;
                let gained = (at as f64 * 1e7 * drift) as i64;
                // 3 ms there, 5 ms back, and a queue that comes and goes.
                let queue = (at % 7) as i64 * 100_000;
                let is_forward = at % 2 == 0;
                let apart = if is_forward {
                    3_000_000 + queue
                } else {
                    -5_000_000 - queue
                };
                pairs.push(Instants {
                    first_ns,
                    second_ns: first_ns.saturating_add_signed(offset + gained + apart),
                    is_forward,
                });
            }
            let clock = Clock::of(&pairs).expect("pairs");
            let bound = clock.uncertainty_ns.expect("both ways");
            assert!(bound <= 4_200_000, "{clock:?}");
            assert!(clock.offset_ns.abs_diff(offset) <= bound, "{clock:?}");
            assert!((clock.drift - drift).abs() < 2e-6, "{clock:?}");
        }
    }

    #[test]
    fn queues_of_a_short_capture_are_no_drift() {
        let mut state = 1u64;
        let mut queue_ns = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) % 300_000
        };
        for run in 0..500 {
            let pairs: Vec<Instants> = (0..600u64)
                .map(|at| {
                    let first_ns = 1_000_000_000 + at * 1_000_000;
                    let is_forward = at % 2 == 0;
                    let apart = 5_000_000 + queue_ns();
                    let second_ns = if is_forward {
                        first_ns + apart
                    } else {
                        first_ns - apart
                    };
                    Instants {
                        first_ns,
                        second_ns,
                        is_forward,
                    }
                })
                .collect();
            let clock = Clock::of(&pairs).expect("pairs");
            assert_eq!(clock.drift, 0.0, "run {run}: {clock:?}");
        }
    }
}
