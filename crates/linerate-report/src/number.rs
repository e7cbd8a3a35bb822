//! How numbers are written: prefix, digits, interval and unit.
//!
//! Nothing is computed here but the half width of a symmetric interval, so that it can be
//! written behind a `±`.

use linerate_model::finding::Estimate;
use linerate_model::unit::Unit;

/// What stands for a number that is not finite.
const NOT_FINITE: &str = "not a number";

/// Numbers from here on are written in groups of three digits.
pub const GROUP_FROM: f64 = 10_000.0;

/// A narrow space that does not break, between groups of three digits as the SI brochure asks.
pub const GROUP_SPACE: char = '\u{202f}';

/// Most significant digits that are written of a value, however narrow its interval.
const DIGITS_MAX: i32 = 6;

/// Sizes below this are written in plain bytes unless a binary prefix fits them exactly.
const PLAIN_BYTES_BELOW: f64 = 100_000.0;

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
fn largest(unit: Unit, magnitude: f64, least: f64) -> Prefixed {
    let all = prefixes(unit);
    let fits = |prefix: &&Prefixed| magnitude.abs() >= prefix.divisor * least;
    *all.iter().rev().find(fits).unwrap_or(&all[0])
}

/// Returns the prefix in which a single value is written.
pub fn prefix_of_value(unit: Unit, value: f64) -> Prefixed {
    let whole_bytes = unit == Unit::Bytes && value < PLAIN_BYTES_BELOW && value % 256.0 != 0.0;
    if whole_bytes {
        return prefixes(unit)[0];
    }
    largest(unit, value, 0.99995)
}

/// Returns the prefix for an axis that reaches up to `maximum`.
///
/// An axis changes to the next prefix only at twice its size: ticks 200, 400 … 1000 Mbit/s read
/// better than 0.2, 0.4 … 1 Gbit/s.
pub fn prefix_of_axis(unit: Unit, maximum: f64) -> Prefixed {
    largest(unit, maximum, 2.0)
}

/// Writes `value` with its unit.
pub fn display(value: f64, unit: Unit) -> String {
    if !value.is_finite() {
        return NOT_FINITE.to_owned();
    }
    let prefix = prefix_of_value(unit, value);
    join(&four_digits(value / prefix.divisor), prefix.symbol)
}

/// Writes `value` as a position on an axis that reaches up to `maximum`.
///
/// Message sizes up to a segment stay in bytes, so that 536 B, 1024 B and 1460 B stand beside one
/// another.
pub fn display_on_axis(value: f64, unit: Unit, maximum: f64) -> String {
    if unit == Unit::Bytes && maximum < 2048.0 && value.is_finite() {
        return join(&four_digits(value), "B");
    }
    display(value, unit)
}

/// An estimate in parts, so that each output can set them its own way.
#[derive(Debug, Clone, PartialEq)]
pub struct EstimateText {
    /// The point estimate without unit: `941.2`.
    pub value: String,
    /// The interval without unit: `± 0.8`, or `(940 – 951)` when it is not symmetric.
    pub spread: Option<String>,
    /// The unit's symbol, may be empty.
    pub unit: &'static str,
}

impl EstimateText {
    /// Writes the parts behind one another: `941.2 ± 0.8 Mbit/s`.
    pub fn line(&self) -> String {
        match &self.spread {
            None => join(&self.value, self.unit),
            Some(spread) => format!("{} {spread} {}", self.value, self.unit)
                .trim_end()
                .to_owned(),
        }
    }
}

/// Writes `estimate` in parts that share one prefix and one number of decimals.
pub fn estimate(estimate: &Estimate) -> EstimateText {
    let bounds = estimate.low.zip(estimate.high);
    value_with_bounds(estimate.value, bounds, estimate.unit)
}

/// Writes a value and its lower and upper bound in parts, as [`estimate`] does.
pub fn value_with_bounds(value: f64, bounds: Option<(f64, f64)>, unit: Unit) -> EstimateText {
    if !value.is_finite() {
        return EstimateText {
            value: NOT_FINITE.to_owned(),
            spread: None,
            unit: "",
        };
    }
    let prefix = prefix_of_value(unit, value);
    let scaled = |number: f64| number / prefix.divisor;
    let value = scaled(value);
    // An interval without width says nothing that the value does not.
    let finite = bounds.filter(|(low, high)| low.is_finite() && high.is_finite() && low < high);
    let Some((low, high)) = finite.map(|(low, high)| (scaled(low), scaled(high))) else {
        return EstimateText {
            value: four_digits(value),
            spread: None,
            unit: prefix.symbol,
        };
    };
    let (below, above) = (value - low, high - value);
    let symmetric = (above - below).abs() <= 0.1 * (high - low);
    let mut decimals = decimals_for((high - low) / 2.0, value);
    if !symmetric {
        // The value must stay recognisable inside an interval many times its size.
        decimals = decimals.max((1 - exponent(value)).clamp(0, 6) as usize);
    }
    let spread = if symmetric {
        half_width((high - low) / 2.0, decimals)
    } else {
        format!("({} – {})", fixed(low, decimals), fixed(high, decimals))
    };
    EstimateText {
        value: fixed(value, decimals),
        spread: Some(spread),
        unit: prefix.symbol,
    }
}

/// Writes the lower and upper end of an estimate's interval: `940.4 to 942.0 Mbit/s`.
pub fn interval(estimate: &Estimate) -> Option<String> {
    let (low, high) = estimate.low.zip(estimate.high)?;
    let prefix = prefix_of_value(estimate.unit, estimate.value);
    let (low, high) = (low / prefix.divisor, high / prefix.divisor);
    if !low.is_finite() || !high.is_finite() {
        return None;
    }
    let decimals = decimals_for((high - low) / 2.0, estimate.value / prefix.divisor);
    let text = format!("{} to {}", fixed(low, decimals), fixed(high, decimals));
    Some(join(&text, prefix.symbol))
}

/// Writes a share such as 0.95 as `95 %`.
pub fn percent(share: f64) -> String {
    display(share * 100.0, Unit::Percent)
}

fn half_width(half: f64, decimals: usize) -> String {
    let text = fixed(half, decimals);
    let is_zero = text.chars().all(|c| c == '0' || c == '.');
    if is_zero && half > 0.0 {
        let least = 10f64.powi(-(decimals as i32));
        return format!("± <{}", fixed(least, decimals));
    }
    format!("± {text}")
}

/// Returns the decimals that show one or two significant digits of `half`.
///
/// Two when they are below 35, one from there on, as the Particle Data Group rounds
/// (Review of Particle Physics, "Introduction", section 5.3).
fn decimals_for(half: f64, value: f64) -> usize {
    let of_value = DIGITS_MAX - 1 - exponent(value);
    if half <= 0.0 {
        return (3 - exponent(value)).clamp(0, 6) as usize;
    }
    let leading = half / 10f64.powi(exponent(half));
    let digits = if leading < 3.5 { 2 } else { 1 };
    (digits - 1 - exponent(half)).min(of_value).clamp(0, 6) as usize
}

/// Returns the power of ten of the leading digit.
fn exponent(value: f64) -> i32 {
    if value == 0.0 {
        return 0;
    }
    value.abs().log10().floor() as i32
}

/// Writes `value` with about four significant digits and no trailing zeros.
fn four_digits(value: f64) -> String {
    let decimals = (3 - exponent(value)).clamp(0, 6) as usize;
    let text = fixed(value, decimals);
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Writes `value` with `decimals`, whole digits in groups from ten thousand on.
fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let is_zero = text.chars().all(|c| c == '0' || c == '.');
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    if value.abs() < GROUP_FROM {
        return format!("{sign}{text}");
    }
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(GROUP_SPACE);
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

fn join(number: &str, symbol: &str) -> String {
    match symbol {
        "" => number.to_owned(),
        "/s" => format!("{number}/s"),
        _ => format!("{number} {symbol}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(value: f64, bounds: Option<(f64, f64)>, unit: Unit) -> String {
        estimate(&Estimate {
            value,
            low: bounds.map(|(low, _)| low),
            high: bounds.map(|(_, high)| high),
            confidence: 0.95,
            n: 5,
            unit,
        })
        .line()
    }

    #[test]
    fn estimates_share_prefix_and_decimals() {
        let rate = Unit::BitsPerSecond;
        let check = |value, low, high, unit, expect: &str| {
            assert_eq!(line(value, Some((low, high)), unit), expect);
        };
        check(941.23e6, 940.43e6, 942.03e6, rate, "941.2 ± 0.8 Mbit/s");
        check(941.23e6, 941.03e6, 941.43e6, rate, "941.23 ± 0.20 Mbit/s");
        check(941.23e6, 925.0e6, 957.5e6, rate, "941 ± 16 Mbit/s");
        check(1.0e9, 1.0e9, 1.0e9, rate, "1 Gbit/s");
        check(-0.31, -2.21, 1.59, Unit::Percent, "−0.3 ± 1.9 %");
        check(
            43_210.0,
            40_000.0,
            52_000.0,
            Unit::Nanoseconds,
            "43 (40 – 52) µs",
        );
        check(0.0021, 0.0, 0.0103, Unit::Ratio, "0.0021 (0.0000 – 0.0103)");
        check(
            12_345.6,
            12_300.0,
            12_391.2,
            Unit::PerSecond,
            "12\u{202f}346 ± 46 /s",
        );
        check(
            0.5,
            0.4999999,
            0.5000001,
            Unit::Ratio,
            "0.500000 ± <0.000001",
        );
        assert_eq!(line(65_536.0, None, Unit::Bytes), "64 KiB");
    }

    #[test]
    fn sizes_read_as_people_say_them() {
        let check = |value, expect: &str| assert_eq!(display(value, Unit::Bytes), expect);
        check(1460.0, "1460 B");
        check(18_750.0, "18\u{202f}750 B");
        check(65_536.0, "64 KiB");
        check(1_048_576.0, "1 MiB");
        check(250_000.0, "244.1 KiB");
        check(0.0, "0 B");
    }

    #[test]
    fn what_is_no_number_says_so() {
        assert_eq!(display(f64::NAN, Unit::Bytes), "not a number");
        assert_eq!(line(f64::INFINITY, None, Unit::Bytes), "not a number");
        assert_eq!(line(5.0, Some((f64::NAN, 6.0)), Unit::Count), "5");
    }

    #[test]
    fn an_axis_keeps_the_smaller_prefix_up_to_twice_the_next() {
        assert_eq!(prefix_of_axis(Unit::BitsPerSecond, 1.0e9).symbol, "Mbit/s");
        assert_eq!(prefix_of_axis(Unit::BitsPerSecond, 9.4e9).symbol, "Gbit/s");
        assert_eq!(prefix_of_axis(Unit::Nanoseconds, 44e6).symbol, "ms");
    }
}
