//! Sizes that differ from message to message, drawn alike at both ends.
//!
//! Both ends must draw the same sizes without a word between them, on hosts whose C libraries and
//! processors differ. So the generator is seeded with the flow's number, and everything is made of
//! integers and of the operations that IEEE 754 defines to the last bit (+ − × ÷ √): no `exp` or
//! `ln` of a library, which may round differently from one host to the next.

use std::sync::Arc;

use linerate_model::Bytes;
use linerate_model::id::FlowId;
use linerate_model::manner::{DATAGRAM_BYTES_MAX, Sizes};
use linerate_model::workload::MESSAGE_BYTES_MAX;

/// Draws one size after another. A copy goes on where the original was and draws the same.
#[derive(Debug, Clone)]
pub(crate) struct Draw {
    kind: Kind,
    random: Random,
    /// What is drawn beyond these is moved to them.
    least: u64,
    most: u64,
}

#[derive(Debug, Clone)]
enum Kind {
    List {
        bytes: Arc<[Bytes]>,
        at: usize,
    },
    Uniform {
        low: u64,
        span: u64,
    },
    LogNormal {
        median: f64,
        sigma: f64,
        most: u64,
        spare: Option<f64>,
    },
}

/// Standard deviations after which sizes are cut: one in three million is.
const DEVIATIONS_MAX: f64 = 5.0;

impl Draw {
    /// Returns the sizes of flow number `flow`, from the first.
    ///
    /// Sizes outside 1 B and the largest message, which [`linerate_model::manner::Manner::check`]
    /// refuses, are moved inside.
    pub(crate) fn new(sizes: &Sizes, flow: FlowId) -> Self {
        Self::between(sizes, flow, 1, MESSAGE_BYTES_MAX.0)
    }

    /// Returns the same for datagrams of `least` bytes and more: sizes are moved to what one can
    /// have.
    pub(crate) fn of_datagrams(sizes: &Sizes, flow: FlowId, least: u64) -> Self {
        Self::between(sizes, flow, least, DATAGRAM_BYTES_MAX)
    }

    fn between(sizes: &Sizes, flow: FlowId, least: u64, most: u64) -> Self {
        let kind = match sizes {
            Sizes::List { bytes } => {
                // The list itself: a copy for each of ten thousand flows would be gigabytes.
                let bytes = if bytes.is_empty() {
                    [Bytes(1)].into()
                } else {
                    Arc::clone(bytes)
                };
                Kind::List { bytes, at: 0 }
            }
            Sizes::Uniform { low, high } => {
                let low = within(low.0);
                let span = within(high.0).saturating_sub(low) + 1;
                Kind::Uniform { low, span }
            }
            Sizes::LogNormal {
                median,
                sigma_percent,
            } => {
                let (median, sigma) = (within(median.0) as f64, f64::from(*sigma_percent) / 100.0);
                Kind::LogNormal {
                    median,
                    sigma,
                    most: within((median * exp(DEVIATIONS_MAX * sigma)) as u64),
                    spare: None,
                }
            }
        };
        Self {
            kind,
            random: Random::new(flow.0.into()),
            least,
            most,
        }
    }

    /// Returns the smallest size that can come.
    pub(crate) fn smallest(&self) -> usize {
        let bytes = match &self.kind {
            Kind::List { bytes, .. } => bytes.iter().map(|bytes| bytes.0).min().unwrap_or(1),
            Kind::Uniform { low, .. } => *low,
            Kind::LogNormal { .. } => 1,
        };
        bytes.clamp(self.least, self.most) as usize
    }

    /// Returns the largest size that can come.
    pub(crate) fn largest(&self) -> usize {
        let bytes = match &self.kind {
            Kind::List { bytes, .. } => bytes.iter().map(|bytes| bytes.0).max().unwrap_or(1),
            Kind::Uniform { low, span } => low + span - 1,
            Kind::LogNormal { most, .. } => *most,
        };
        bytes.clamp(self.least, self.most) as usize
    }

    /// Returns the next size.
    ///
    /// Cost: 1 ns from a list, 2 ns uniform, 40 ns log-normal.
    pub(crate) fn next_bytes(&mut self) -> usize {
        let bytes = match &mut self.kind {
            Kind::List { bytes, at } => {
                let size = bytes[*at];
                *at = if *at + 1 == bytes.len() { 0 } else { *at + 1 };
                size.0
            }
            Kind::Uniform { low, span } => *low + self.random.below(*span),
            Kind::LogNormal {
                median,
                sigma,
                most,
                spare,
            } => {
                let deviate = spare.take().unwrap_or_else(|| {
                    let (one, other) = self.random.normal_pair();
                    *spare = Some(other);
                    one
                });
                let size = *median * exp(*sigma * deviate) + 0.5;
                (size as u64).clamp(1, *most)
            }
        };
        bytes.clamp(self.least, self.most) as usize
    }
}

/// Moves a size inside 1 B and the largest message; 0.5 ns.
fn within(bytes: u64) -> u64 {
    bytes.clamp(1, MESSAGE_BYTES_MAX.0)
}

/// xorshift64* (Vigna 2016, "An experimental exploration of Marsaglia's xorshift generators").
#[derive(Debug, Clone, Copy)]
struct Random(u64);

impl Random {
    /// Returns the generator of a seed; neighbouring seeds give unrelated rows, by splitmix64.
    fn new(seed: u64) -> Self {
        let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // The one state that xorshift never leaves is 0.
        Self((z ^ (z >> 31)).max(1))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number from 0 to `span` − 1: the upper half of a product of 128 bits (Lemire
    /// 2019). With spans of 2^26 at the most the bias is below 2^-38.
    fn below(&mut self, span: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(span)) >> 64) as u64
    }

    /// Returns a number from −1 to 1.
    fn signed_unit(&mut self) -> f64 {
        // 53 bits fill a double.
        (self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    /// Returns two independent normal deviates: the polar method (Marsaglia and Bray 1964), which
    /// needs no sine.
    fn normal_pair(&mut self) -> (f64, f64) {
        loop {
            let (x, y) = (self.signed_unit(), self.signed_unit());
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * ln(square) / square).sqrt();
                return (x * factor, y * factor);
            }
        }
    }
}

/// Returns e^x for −200 < x < 200: 2^k times the series of the rest, which is at most ln 2 / 2.
fn exp(x: f64) -> f64 {
    let k = (x * std::f64::consts::LOG2_E + if x < 0.0 { -0.5 } else { 0.5 }) as i32;
    let rest = x - f64::from(k) * std::f64::consts::LN_2;
    // 13 terms: the next is below 2^-56 of the sum.
    let mut sum = 1.0;
    for n in (1..=13).rev() {
        sum = 1.0 + sum * rest / f64::from(n);
    }
    let exponent = (1023 + k.clamp(-1022, 1023)) as u64;
    sum * f64::from_bits(exponent << 52)
}

/// Returns the natural logarithm of a normal number above 0: k ln 2 + ln m with m near 1, and
/// ln m = 2 artanh((m − 1) / (m + 1)) by its series.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut k = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mut m = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if m > std::f64::consts::SQRT_2 {
        m /= 2.0;
        k += 1;
    }
    let t = (m - 1.0) / (m + 1.0);
    let square = t * t;
    // t is at most 0.1716: the term with t^21 is below 2^-57.
    let mut sum = 0.0;
    for n in (0..=10).rev() {
        sum = sum * square + 1.0 / f64::from(2 * n + 1);
    }
    f64::from(k) * std::f64::consts::LN_2 + 2.0 * t * sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(bytes: &[u64]) -> Sizes {
        Sizes::List {
            bytes: bytes.iter().copied().map(Bytes).collect(),
        }
    }

    fn first(sizes: &Sizes, flow: u32, count: usize) -> Vec<usize> {
        let mut draw = Draw::new(sizes, FlowId(flow));
        (0..count).map(|_| draw.next_bytes()).collect()
    }

    fn any_sizes() -> impl Strategy<Value = Sizes> {
        let size = || prop_oneof![1..100_u64, 1..MESSAGE_BYTES_MAX.0 + 1];
        prop_oneof![
            prop::collection::vec(size(), 1..20).prop_map(|sizes| list(&sizes)),
            (size(), size()).prop_map(|(a, b)| Sizes::Uniform {
                low: Bytes(a.min(b)),
                high: Bytes(a.max(b)),
            }),
            (size(), 1..=500_u32).prop_map(|(median, sigma_percent)| Sizes::LogNormal {
                median: Bytes(median),
                sigma_percent,
            }),
        ]
    }

    proptest! {
        #[test]
        fn both_ends_draw_the_same_and_nothing_beyond_the_limits(sizes in any_sizes(), flow in 0..20_000_u32) {
            let (near, far) = (first(&sizes, flow, 500), first(&sizes, flow, 500));
            let largest = Draw::new(&sizes, FlowId(flow)).largest();
            prop_assert!(largest as u64 <= MESSAGE_BYTES_MAX.0);
            prop_assert!(near.iter().all(|&size| (1..=largest).contains(&size)));
            prop_assert_eq!(near, far);
        }

        #[test]
        fn a_copy_goes_on_as_the_original(sizes in any_sizes(), skip in 0..10_usize) {
            let mut draw = Draw::new(&sizes, FlowId(3));
            for _ in 0..skip {
                draw.next_bytes();
            }
            let mut copy = draw.clone();
            for _ in 0..50 {
                prop_assert_eq!(draw.next_bytes(), copy.next_bytes());
            }
        }

        #[test]
        fn exp_and_ln_are_right_to_the_last_bits(x in -30.0..30.0_f64) {
            prop_assert!((exp(x) / x.exp() - 1.0).abs() < 1e-14, "exp {x}");
            let y = x.exp();
            prop_assert!((ln(y) - y.ln()).abs() < 1e-14 * x.abs().max(1.0), "ln {y}");
        }
    }

    #[test]
    fn a_list_comes_round_in_its_order() {
        assert_eq!(first(&list(&[3, 1, 2]), 9, 7), [3, 1, 2, 3, 1, 2, 3]);
        assert_eq!(first(&list(&[0, u64::MAX]), 0, 2), [1, 64 << 20]);
    }

    #[test]
    fn flows_share_a_list() {
        let sizes = list(&[3, 1, 2]);
        let draws = [0, 1, 2].map(|flow| Draw::new(&sizes, FlowId(flow)));
        let Sizes::List { bytes } = &sizes else {
            unreachable!("it was made as a list");
        };
        assert_eq!(Arc::strong_count(bytes), draws.len() + 1);
    }

    /// What is drawn on one host must be drawn on every other. The numbers are those of another
    /// program for the same formulas, in Python.
    #[test]
    fn sizes_are_the_same_everywhere() {
        let uniform = Sizes::Uniform {
            low: Bytes(1),
            high: Bytes(1_000_000),
        };
        let normal = Sizes::LogNormal {
            median: Bytes(10_000),
            sigma_percent: 150,
        };
        assert_eq!(first(&uniform, 0, 4), [483_349, 869_139, 702_244, 876_766]);
        assert_eq!(first(&normal, 0, 4), [9284, 51_971, 17_526, 28_442]);
        assert_ne!(first(&normal, 1, 4), first(&normal, 0, 4));
    }

    #[test]
    fn uniform_sizes_fill_their_range_evenly() {
        let sizes = Sizes::Uniform {
            low: Bytes(5),
            high: Bytes(14),
        };
        let mut counts = [0_u32; 20];
        for size in first(&sizes, 1, 100_000) {
            counts[size] += 1;
        }
        assert_eq!(counts[..5].iter().chain(&counts[15..]).sum::<u32>(), 0);
        // 10 000 each; the standard deviation is 95.
        assert!(
            counts[5..15]
                .iter()
                .all(|count| (9_500..=10_500).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn log_normal_sizes_have_the_median_and_the_spread_asked_for() {
        let sizes = Sizes::LogNormal {
            median: Bytes(10_000),
            sigma_percent: 100,
        };
        let mut drawn = first(&sizes, 1, 100_001);
        drawn.sort_unstable();
        let at = |quantile: f64| drawn[(quantile * 100_000.0) as usize] as f64;
        // The quantiles of the normal distribution at −1, 0, 1 and 2 standard deviations.
        for (quantile, deviations) in [
            (0.158_655, -1.0),
            (0.5, 0.0),
            (0.841_345, 1.0),
            (0.977_25, 2.0),
        ] {
            let expected = 10_000.0 * f64::exp(deviations);
            assert!(
                (at(quantile) / expected - 1.0).abs() < 0.03,
                "{quantile}: {}",
                at(quantile)
            );
        }
    }
}
