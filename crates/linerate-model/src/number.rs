//! How numbers are written for people: prefix, digits, interval and unit.
//!
//! The one place for it: claims, tables, charts and the terminal all write through here, so that a
//! number has one spelling wherever it stands.
//!
//! 1. With an interval the uncertainty decides the digits, as the Particle Data Group rounds
//!    ("Review of Particle Physics", Introduction, section 5.3): of the first three digits of the
//!    half width, 100 to 354 keep two digits, 355 to 949 one, 950 to 999 become 1000 and keep two.
//!    Value and ends are rounded to the same place.
//! 2. An interval that is symmetric within a tenth of its width is written `941.2 ± 0.8 Mbit/s`,
//!    any other with its ends: `43 (40–52) µs`; so is one that rounding would lead below zero or above
//!    the whole.
//!    However narrow it is, a value has four digits at the most.
//! 3. Two values have no interval, nor has a median of fewer than six; the range that they span is written and
//!    called that, with three digits: `1.30 (2 values: 1.20–1.40) Gbit/s`.
//! 4. Without an interval three digits are written, less trailing zeros: 941 Mbit/s, 1.5 MiB.
//! 5. What was counted or asked for is exact and written in full: whole numbers of things, and
//!    sizes in bytes that people say (1460 B, 18 750 B, 64 KiB).

use crate::Nanos;
use crate::finding::Estimate;
use crate::unit::Unit;

/// What stands for a number that is not finite.
const NOT_FINITE: &str = "not a number";

/// Numbers from here on are written in groups of three digits.
pub const GROUP_FROM: f64 = 10_000.0;

/// A narrow space that does not break, between groups of three digits as the SI brochure asks.
pub const GROUP_SPACE: char = '\u{202f}';

/// Significant digits of a number without interval.
const DIGITS: i32 = 3;

/// Most significant digits that are written of a value, however narrow its interval.
const DIGITS_MAX: i32 = 4;
/// Most digits of a value with a range of two: how near they lie by chance is no precision.
const RANGE_DIGITS_MAX: i32 = DIGITS;
/// Plain bytes below this have all their digits: 1448 B of a segment of 1448 B are not 1450 B.
const WHOLE_BYTES_BELOW: f64 = 10_000.0;

/// Whole sizes below this are written in plain bytes unless a binary prefix fits them exactly.
const PLAIN_BYTES_BELOW: f64 = 100_000.0;

/// Whole thousands of bytes below this are written in plain bytes: 250 000 B.
const THOUSANDS_OF_BYTES_BELOW: f64 = 1_048_576.0;

/// Durations without interval from here on are written in minutes and hours.
const MINUTES_FROM_NS: f64 = 60e9;

/// A scaled unit: `Mbit/s` divides bit/s by 10^6.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prefixed {
    /// What a value in the base unit is divided by.
    pub divisor: f64,
    /// The unit's symbol with its prefix.
    pub symbol: &'static str,
}

/// Returns the prefixes of `unit`, smallest first.
fn prefixes(unit: Unit) -> &'static [Prefixed] {
    const fn p(divisor: f64, symbol: &'static str) -> Prefixed {
        Prefixed { divisor, symbol }
    }
    match unit {
        Unit::BitsPerSecond => {
            const {
                &[
                    p(1.0, "bit/s"),
                    p(1e3, "kbit/s"),
                    p(1e6, "Mbit/s"),
                    p(1e9, "Gbit/s"),
                    p(1e12, "Tbit/s"),
                ]
            }
        }
        Unit::Bytes => {
            const {
                &[
                    p(1.0, "B"),
                    p(1024.0, "KiB"),
                    p(1_048_576.0, "MiB"),
                    p(1_073_741_824.0, "GiB"),
                    p(1_099_511_627_776.0, "TiB"),
                ]
            }
        }
        Unit::Nanoseconds => const { &[p(1.0, "ns"), p(1e3, "µs"), p(1e6, "ms"), p(1e9, "s")] },
        Unit::PerSecond => const { &[p(1.0, "/s")] },
        Unit::Percent => const { &[p(1.0, "%")] },
        Unit::Cpus => const { &[p(1.0, "CPUs")] },
        Unit::Count | Unit::Ratio | Unit::None => const { &[p(1.0, "")] },
    }
}

/// Returns the largest prefix of which `magnitude` holds at least `least`.
pub fn largest_prefix(unit: Unit, magnitude: f64, least: f64) -> Prefixed {
    let all = prefixes(unit);
    let fits = |prefix: &&Prefixed| magnitude.abs() >= prefix.divisor * least;
    *all.iter().rev().find(fits).unwrap_or(&all[0])
}

/// Returns the prefix in which a single value is written.
pub fn prefix_of_value(unit: Unit, value: f64) -> Prefixed {
    let is_plain = unit == Unit::Bytes
        && match value.abs() {
            size if size < PLAIN_BYTES_BELOW => size % 256.0 != 0.0,
            size if size < THOUSANDS_OF_BYTES_BELOW => size % 1000.0 == 0.0 && size % 1024.0 != 0.0,
            _ => false,
        };
    if is_plain {
        return prefixes(unit)[0];
    }
    // What three digits round up to the next prefix is written with that: 999.7 Mbit/s as 1 Gbit/s.
    largest_prefix(unit, value, 0.9995)
}

/// Writes `value` with its unit.
pub fn display(value: f64, unit: Unit) -> String {
    if unit == Unit::Nanoseconds && value.is_finite() && value >= MINUTES_FROM_NS {
        return Nanos(value.round() as u64).to_string();
    }
    EstimateText::plain(value, unit).line()
}

/// Writes how many there are of a thing that people count: `1 trial`, `3 trials`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let number = display(count as f64, Unit::Count);
    agreeing(&number, noun, &format!("{noun}s"))
}

/// Writes a number with what follows one of a thing, or with what follows any other number of them:
/// `1 packet was dropped`, `1.5 packets were dropped`.
pub fn agreeing(number: &str, one: &str, many: &str) -> String {
    let words = if number == "1" { one } else { many };
    format!("{number} {words}")
}

/// Writes a share such as 0.95 as `95 %`.
pub fn percent(share: f64) -> String {
    display(share * 100.0, Unit::Percent)
}

/// Returns parts of a whole as whole percents that add up to 100, as the parts add up to 1: each is rounded
/// down, and those that lost most by it get what is missing (the method of the largest remainder).
pub fn whole_percents(shares: &[f64]) -> Vec<u32> {
    let mut percents: Vec<u32> = shares.iter().map(|share| (share * 100.0) as u32).collect();
    let whole = (shares.iter().sum::<f64>() * 100.0).round() as u32;
    let missing = whole.saturating_sub(percents.iter().sum());
    let lost = |&at: &usize| shares[at] * 100.0 - f64::from(percents[at]);
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|one, other| lost(other).total_cmp(&lost(one)));
    for at in order.into_iter().take(missing as usize) {
        percents[at] += 1;
    }
    percents
}

/// An estimate in parts, so that each output can set them its own way.
#[derive(Debug, Clone, PartialEq)]
pub struct EstimateText {
    /// The point estimate without unit: `941.2`.
    pub value: String,
    /// The interval without unit: `± 0.8`, `(940–951)` when it is not symmetric, or
    /// `(2 values: 940–951)`.
    pub spread: Option<String>,
    /// The unit's symbol, may be empty.
    pub unit: &'static str,
}

impl EstimateText {
    /// Writes the parts behind one another: `941.2 ± 0.8 Mbit/s`.
    pub fn line(&self) -> String {
        match &self.spread {
            None => join(&self.value, self.unit),
            Some(spread) => join(&format!("{} {spread}", self.value), self.unit),
        }
    }

    fn plain(value: f64, unit: Unit) -> Self {
        if !value.is_finite() {
            return Self {
                value: NOT_FINITE.to_owned(),
                spread: None,
                unit: "",
            };
        }
        let prefix = prefix_of_value(unit, value);
        Self {
            value: alone(value, unit, prefix),
            spread: None,
            unit: prefix.symbol,
        }
    }
}

/// Writes `estimate` in parts that share one prefix and one place of the last digit.
pub fn estimate(estimate: &Estimate) -> EstimateText {
    let (value, unit) = (estimate.value, estimate.unit);
    let bounds = estimate.low.zip(estimate.high);
    if !estimate.is_range() {
        return value_with_bounds(value, bounds, unit);
    }
    let digits_max = match unit {
        Unit::Bytes => DIGITS_MAX,
        _ => RANGE_DIGITS_MAX,
    };
    let n = estimate.n;
    with_spread(value, bounds, unit, digits_max, |spread| {
        if spread.low == spread.high {
            format!("({n} values)")
        } else {
            format!("({n} values: {})", ends(&spread.low, &spread.high))
        }
    })
}

/// Writes a value and its lower and upper bound in parts, as [`estimate`] does.
pub fn value_with_bounds(value: f64, bounds: Option<(f64, f64)>, unit: Unit) -> EstimateText {
    with_spread(value, bounds, unit, DIGITS_MAX, |spread| {
        match &spread.half {
            Some(half) => format!("± {half}"),
            None => format!("({})", ends(&spread.low, &spread.high)),
        }
    })
}

fn with_spread(
    value: f64,
    bounds: Option<(f64, f64)>,
    unit: Unit,
    digits_max: i32,
    words: impl Fn(&Spread) -> String,
) -> EstimateText {
    let Some(spread) = spread(value, bounds, unit, digits_max) else {
        return EstimateText::plain(value, unit);
    };
    EstimateText {
        spread: Some(words(&spread)),
        value: spread.value,
        unit: spread.prefix.symbol,
    }
}

/// An interval in words, all its numbers rounded to one place.
struct Spread {
    value: String,
    low: String,
    high: String,
    /// The half width, if the interval is symmetric.
    half: Option<String>,
    prefix: Prefixed,
}

/// Writes the numbers of an interval; nothing if it is not finite, or has no width and so says
/// nothing that the value does not.
fn spread(value: f64, bounds: Option<(f64, f64)>, unit: Unit, digits_max: i32) -> Option<Spread> {
    let is_finite = |(low, high): &(f64, f64)| low.is_finite() && high.is_finite() && low < high;
    let (low, high) = bounds.filter(is_finite).filter(|_| value.is_finite())?;
    let prefix = match value {
        0.0 => prefix_of_value(unit, high),
        value => prefix_of_value(unit, value),
    };
    let [value, low, high] = [value, low, high].map(|number| number / prefix.divisor);
    let (below, above) = (value - low, high - value);
    let half = (high - low) / 2.0;
    let is_symmetric = (above - below).abs() <= 0.1 * (high - low)
        && !leaves_what_can_be(value, (low, high), half, unit);
    let mut place = place_of_uncertainty(half);
    if value != 0.0 {
        // The value must stay recognisable inside an interval many times its size.
        place = place.min(exponent(value) - i32::from(!is_symmetric));
        // An end above zero is not written as zero, as far as three digits of the value show it.
        if low > 0.0 {
            place = place.min(exponent(low).max(exponent(value) - DIGITS + 1));
        }
        place = place.max(exponent(value) - digits_max + 1);
    }
    Some(Spread {
        value: rounded(value, place),
        low: rounded(low, place),
        high: rounded(high, place),
        // Ends that are the same in so many digits say less than what they are nearer than.
        half: (is_symmetric || rounded(low, place) == rounded(high, place))
            .then(|| half_width(half, place)),
        prefix,
    })
}

/// Returns the power of ten of the last digit that is written of an uncertainty.
fn place_of_uncertainty(half: f64) -> i32 {
    let leading = half / 10f64.powi(exponent(half) - 2);
    match leading.round() {
        ..355.0 => exponent(half) - 1,
        // From 950 on it is rounded up to the next power of ten, of which two digits are kept.
        _ => exponent(half),
    }
}

/// Whether `value ± half` lies outside of what its ends keep to: zero, and the whole of a share.
fn leaves_what_can_be(value: f64, (low, high): (f64, f64), half: f64, unit: Unit) -> bool {
    let step = 10f64.powi(place_of_uncertainty(half));
    let [value, half] = [value, half].map(|number| (number / step).round());
    let whole = match unit {
        Unit::Ratio => 1.0,
        Unit::Percent => 100.0,
        _ => f64::INFINITY,
    };
    (low >= 0.0 && half > value) || (high <= whole && value + half > (whole / step).round())
}

fn half_width(half: f64, place: i32) -> String {
    match rounded(half, place) {
        text if is_zero(&text) => format!("<{}", rounded(10f64.powi(place), place)),
        text => text,
    }
}

/// Writes both ends: with a dash, or with a word where a minus sign stands beside it.
fn ends(low: &str, high: &str) -> String {
    if low.starts_with('−') {
        format!("{low} to {high}")
    } else {
        format!("{low}–{high}")
    }
}

/// Writes a number that has no interval, without its unit.
fn alone(value: f64, unit: Unit, prefix: Prefixed) -> String {
    let is_exact =
        matches!(unit, Unit::Count | Unit::Bytes) && prefix.divisor == 1.0 && value.fract() == 0.0;
    let scaled = value / prefix.divisor;
    let is_plain = unit == Unit::Bytes && prefix.divisor == 1.0 && value < WHOLE_BYTES_BELOW;
    let place = match exponent(scaled) - DIGITS + 1 {
        _ if is_exact => 0,
        place if is_plain => place.min(0),
        place => place,
    };
    let text = rounded(scaled, place);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Returns the power of ten of the leading digit.
fn exponent(value: f64) -> i32 {
    if value == 0.0 {
        return 0;
    }
    value.abs().log10().floor() as i32
}

/// Writes `value` rounded to the power of ten `place`, whole digits in groups from ten thousand on.
fn rounded(value: f64, place: i32) -> String {
    let step = 10f64.powi(place.max(0));
    let magnitude = (value.abs() / step).round() * step;
    let text = match usize::try_from(-place) {
        Ok(decimals) => format!("{:.decimals$}", value.abs()),
        Err(_) => format!("{magnitude:.0}"),
    };
    let sign = if value < 0.0 && !is_zero(&text) {
        "−"
    } else {
        ""
    };
    if magnitude < GROUP_FROM {
        return format!("{sign}{text}");
    }
    format!("{sign}{}", in_groups(&text))
}

/// Sets the whole digits of `text` in groups of three.
pub fn in_groups(text: &str) -> String {
    let whole = text.find('.').unwrap_or(text.len());
    let mut grouped = String::new();
    for (at, digit) in text.chars().enumerate() {
        let left = whole.saturating_sub(at);
        if left > 0 && left.is_multiple_of(3) && grouped.ends_with(|c: char| c.is_ascii_digit()) {
            grouped.push(GROUP_SPACE);
        }
        grouped.push(digit);
    }
    grouped
}

fn is_zero(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '0' | '.'))
}

fn join(number: &str, symbol: &str) -> String {
    match symbol {
        "" => number.to_owned(),
        "/s" => format!("{number}/s"),
        "CPUs" => agreeing(number, "CPU", symbol),
        _ => format!("{number} {symbol}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::RANGE_CONFIDENCE;

    const RATE: Unit = Unit::BitsPerSecond;
    const TIME: Unit = Unit::Nanoseconds;

    #[test]
    fn a_number_agrees_with_what_follows_it() {
        assert_eq!(counted(0_u32, "trial"), "0 trials");
        assert_eq!(counted(1_u32, "trial"), "1 trial");
        assert_eq!(counted(12_000_u32, "trial"), "12\u{202f}000 trials");
        let written = |count: f64| agreeing(&display(count, Unit::Count), "was", "were");
        assert_eq!(written(1.0), "1 was");
        assert_eq!(
            (written(1.004), written(1.5)),
            ("1 was".into(), "1.5 were".into())
        );
        assert_eq!(Unit::Cpus.display(1.0), "1 CPU");
    }

    fn of(value: f64, low: f64, high: f64, n: u32, unit: Unit) -> String {
        let (low, high) = (Some(low), Some(high));
        let all = Estimate {
            value,
            low,
            high,
            confidence: match n {
                2 => RANGE_CONFIDENCE,
                _ => 0.95,
            },
            n,
            unit,
        };
        estimate(&all).line()
    }

    #[test]
    fn the_uncertainty_decides_the_digits() {
        let check = |value, half: f64, unit, expected: &str| {
            assert_eq!(of(value, value - half, value + half, 5, unit), expected);
        };
        // The table of the Particle Data Group: 0.827 ± 0.119, ± 0.367, and what lies about 950.
        check(0.827, 0.119, Unit::Ratio, "0.83 ± 0.12");
        check(0.827, 0.367, Unit::Ratio, "0.8 ± 0.4");
        check(0.827, 0.354, Unit::Ratio, "0.83 ± 0.35");
        check(0.827, 0.3552, Unit::Ratio, "0.8 ± 0.4");
        check(14.674, 0.949, Unit::Ratio, "14.7 ± 0.9");
        check(14.674, 0.964, Unit::Ratio, "14.7 ± 1.0");
        check(941.23e6, 0.8e6, RATE, "941.2 ± 0.8 Mbit/s");
        check(941.23e6, 0.2e6, RATE, "941.2 ± 0.2 Mbit/s");
        check(941.23e6, 16.25e6, RATE, "941 ± 16 Mbit/s");
        check(999e6, 9e6, RATE, "999 ± 9 Mbit/s");
        check(12_345.6, 45.6, Unit::PerSecond, "12\u{202f}350 ± 50/s");
        check(12_396.0, 2814.0, Unit::PerSecond, "12\u{202f}400 ± 2800/s");
        check(9891.0, 23.5, Unit::PerSecond, "9891 ± 24/s");
        check(
            3.4e6,
            2e5,
            Unit::Count,
            "3\u{202f}400\u{202f}000 ± 200\u{202f}000",
        );
        check(18_750.0, 750.0, Unit::Bytes, "18\u{202f}800 ± 800 B");
        check(-0.31, 1.9, Unit::Percent, "−0.3 ± 1.9 %");
        check(3.0, 400.0, Unit::Ratio, "3 ± 400");
        check(0.0, 2.5e6, RATE, "0.0 ± 2.5 Mbit/s");
        check(0.5, 1e-7, Unit::Ratio, "0.5000 ± <0.0001");
    }

    #[test]
    fn an_interval_that_is_not_symmetric_has_its_ends() {
        let check = |value, low, high, unit, expected: &str| {
            assert_eq!(of(value, low, high, 5, unit), expected);
        };
        check(90e3, 68.41e3, 121.6e3, TIME, "90 (68–122) µs");
        check(43_210.0, 40_000.0, 52_000.0, TIME, "43 (40–52) µs");
        check(44.04e6, 43.97e6, 44.07e6, TIME, "44.04 (43.97–44.07) ms");
        check(0.0021, 0.0, 0.0103, Unit::Ratio, "0.0021 (0.0000–0.0103)");
        check(729e6, 0.0, 941e6, RATE, "730 (0–940) Mbit/s");
        check(100.0, 3.0, 250.0, Unit::Ratio, "100 (3–250)");
        check(0.184, 0.0, 0.374, Unit::Ratio, "0.18 (0.00–0.37)");
        check(0.2, 0.0, 0.4, Unit::Ratio, "0.20 ± 0.20");
        check(0.946, 0.888, 1.0, Unit::Ratio, "0.95 (0.89–1.00)");
        check(100.0, 1e-6, 250.0, Unit::Ratio, "100 (0–250)");
        check(999e6, 700e6, 1008e6, RATE, "1000 (700–1010) Mbit/s");
        check(1.0, -0.5, 9.0, Unit::Percent, "1.0 (−0.5 to 9.0) %");
        check(
            940.99e6,
            940.77e6,
            941.33e6,
            RATE,
            "941.0 (940.8–941.3) Mbit/s",
        );
        check(941e6, 940.99e6, 941.04e6, RATE, "941.0 ± <0.1 Mbit/s");
    }

    #[test]
    fn two_values_are_a_range() {
        assert_eq!(
            of(1.3e9, 1.2e9, 1.4e9, 2, RATE),
            "1.30 (2 values: 1.20–1.40) Gbit/s"
        );
        assert_eq!(
            of(940.32e6, 940.07e6, 940.58e6, 2, RATE),
            "940 (2 values: 940–941) Mbit/s"
        );
        assert_eq!(of(22.502, 22.498, 22.506, 2, TIME), "22.5 (2 values) ns");
        assert_eq!(of(44e6, 44e6, 44e6, 2, TIME), "44 ms");
        let three = Estimate {
            value: 79e3,
            low: Some(76e3),
            high: Some(716e3),
            confidence: 0.75,
            n: 3,
            unit: TIME,
        };
        assert_eq!(estimate(&three).line(), "79 (3 values: 76–716) µs");
        let bytes = of(1448.0, 1447.9, 1448.1, 2, Unit::Bytes);
        assert_eq!(bytes, "1448 (2 values) B");
        assert_eq!(Unit::Bytes.display(1447.9), "1448 B");
    }

    #[test]
    fn without_interval_three_digits_are_written() {
        let check = |value, unit, expected: &str| {
            assert_eq!(display(value, unit), expected);
            if value < 60e9 {
                assert_eq!(value_with_bounds(value, None, unit).line(), expected);
            }
        };
        check(0.04357, Unit::Cpus, "0.0436 CPUs");
        check(1.0, Unit::Cpus, "1 CPU");
        check(0.000_123_4, Unit::Ratio, "0.000123");
        check(3_418_307.4, Unit::Count, "3\u{202f}420\u{202f}000");
        check(12_345.0, Unit::PerSecond, "12\u{202f}300/s");
        check(941_482_300.0, RATE, "941 Mbit/s");
        check(999_700_000.0, RATE, "1 Gbit/s");
        check(43_210.0, TIME, "43.2 µs");
        check(99.98, Unit::Percent, "100 %");
        check(1.5, Unit::Ratio, "1.5");
        check(0.0, RATE, "0 bit/s");
        check(180e9, TIME, "3 min");
        assert_eq!(percent(0.361_62), "36.2 %");
    }

    #[test]
    fn what_is_exact_is_written_in_full() {
        let check = |value, unit, expected: &str| assert_eq!(display(value, unit), expected);
        check(3_418_307.0, Unit::Count, "3\u{202f}418\u{202f}307");
        check(1460.0, Unit::Bytes, "1460 B");
        check(18_750.0, Unit::Bytes, "18\u{202f}750 B");
        check(250_000.0, Unit::Bytes, "250\u{202f}000 B");
        check(65_536.0, Unit::Bytes, "64 KiB");
        check(1_572_864.0, Unit::Bytes, "1.5 MiB");
        check(1_048_576.0, Unit::Bytes, "1 MiB");
        check(0.0, Unit::Bytes, "0 B");
        // What was measured is not.
        check(18_753.4, Unit::Bytes, "18\u{202f}800 B");
        check(250_123.0, Unit::Bytes, "244 KiB");
    }

    #[test]
    fn whole_percents_add_up() {
        let check = |shares: &[f64], expected: &[u32]| {
            assert_eq!(whole_percents(shares), expected, "{shares:?}");
        };
        check(&[1.0 / 3.0; 3], &[34, 33, 33]);
        check(&[0.125; 8], &[13, 13, 13, 13, 12, 12, 12, 12]);
        check(&[0.995, 0.004, 0.001], &[100, 0, 0]);
        check(&[0.496, 0.496, 0.008], &[50, 49, 1]);
        check(&[0.999, 0.000_999], &[100, 0]);
        check(&[0.1, 0.2, 0.7], &[10, 20, 70]);
        check(&[1.0], &[100]);
        check(&[], &[]);
    }

    #[test]
    fn what_is_no_number_says_so() {
        assert_eq!(display(f64::NAN, Unit::Bytes), "not a number");
        assert_eq!(of(f64::INFINITY, 0.0, 1.0, 5, Unit::Bytes), "not a number");
        assert_eq!(of(5.0, f64::NAN, 6.0, 5, Unit::Count), "5");
    }
}
