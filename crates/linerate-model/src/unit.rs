//! Units with their prefixes.
//!
//! Sizes take binary prefixes (K = 1024) and rates decimal ones (K = 1000), as the users of
//! iperf3 expect. Documents may carry numbers in base units or text with a prefix.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::number::largest_prefix;

/// A volume or size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A rate in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct BitsPerSec(pub f64);

/// A duration, or an instant on a stated clock, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

/// Why a quantity could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseUnitError {
    /// No number at the start of the text.
    #[error("`{0}` does not start with a number")]
    NoNumber(String),
    /// The number is below zero, or more than can be counted.
    #[error("`{0}` is negative or too large")]
    OutOfRange(String),
    /// The text after the number is not a unit of this kind.
    #[error("`{suffix}` in `{text}` is not one of {expected}")]
    UnknownSuffix {
        /// The whole text.
        text: String,
        /// What followed the number.
        suffix: String,
        /// The suffixes that would have been understood.
        expected: &'static str,
    },
}

impl Nanos {
    /// Returns the duration of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Returns the duration of `s` whole seconds.
    pub const fn from_s(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// Returns the duration in seconds.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// Splits `text` into its leading non-negative number and what follows, trimmed.
fn split_number(text: &str) -> Result<(f64, &str), ParseUnitError> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|&(at, c)| !(c.is_ascii_digit() || c == '.' || (at == 0 && (c == '-' || c == '+'))))
        .map_or(text.len(), |(at, _)| at);
    let number: f64 = text[..end]
        .parse()
        .map_err(|_| ParseUnitError::NoNumber(text.to_owned()))?;
    if !number.is_finite() || number < 0.0 {
        return Err(ParseUnitError::OutOfRange(text.to_owned()));
    }
    Ok((number, text[end..].trim()))
}

fn unknown(text: &str, suffix: &str, expected: &'static str) -> ParseUnitError {
    ParseUnitError::UnknownSuffix {
        text: text.to_owned(),
        suffix: suffix.to_owned(),
        expected,
    }
}

fn to_whole(value: f64, text: &str) -> Result<u64, ParseUnitError> {
    // 2^63 keeps every sum of two such values inside u64.
    if value >= 9.2e18 {
        return Err(ParseUnitError::OutOfRange(text.to_owned()));
    }
    Ok(value.round() as u64)
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, suffix) = split_number(text)?;
        let shift = match suffix.to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(unknown(text, suffix, "B, K, M, G, T (1024)")),
        };
        Ok(Self(to_whole(number * (1u64 << shift) as f64, text)?))
    }
}

impl FromStr for BitsPerSec {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, suffix) = split_number(text)?;
        let lower = suffix.to_ascii_lowercase();
        let prefix = lower
            .strip_suffix("bit/s")
            .or(lower.strip_suffix("bit"))
            .unwrap_or(&lower);
        let prefix = prefix.strip_suffix("bps").unwrap_or(prefix);
        let factor = match prefix {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            "t" => 1e12,
            _ => return Err(unknown(text, suffix, "bit/s with K, M, G, T (1000)")),
        };
        Ok(Self(number * factor))
    }
}

impl FromStr for Nanos {
    type Err = ParseUnitError;

    /// Reads `1.5`, which is seconds, `500ms`, or `1h30m`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        one_time(text)
            .map(|(time, _)| time)
            .or_else(|error| joined_times(text).ok_or(error))
    }
}

/// Reads a time of one unit; returns it with its unit in nanoseconds.
fn one_time(text: &str) -> Result<(Nanos, f64), ParseUnitError> {
    let (number, suffix) = split_number(text)?;
    let factor = match suffix {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "" | "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(unknown(text, suffix, "ns, us, ms, s, m, h")),
    };
    Ok((Nanos(to_whole(number * factor, text)?), factor))
}

/// Reads a time of several units, each less than one of that before it: `1m30s`.
fn joined_times(text: &str) -> Option<Nanos> {
    let unit = text.find(char::is_alphabetic)?;
    let next = unit + text[unit..].find(|letter: char| letter.is_ascii_digit())?;
    let (first, unit_ns) = one_time(&text[..next]).ok()?;
    let rest: Nanos = text[next..].parse().ok()?;
    ((rest.0 as f64) < unit_ns).then(|| Nanos(first.0.saturating_add(rest.0)))
}

/// Reads a share: `0.01`, or `1%`; nothing if it is no finite number.
pub fn parse_share(text: &str) -> Option<f64> {
    let (number, parts) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text.trim(), 1.0),
    };
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some(number / parts)
}

/// Writes a quantity that someone set, with about four significant digits and no trailing zeros;
/// what was measured is written by [`crate::number`].
pub fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    let digits = value.abs().log10().floor() as i32 + 1;
    let decimals = (4 - digits).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Writes `value` with the largest prefix that four digits reach.
fn write_scaled(f: &mut fmt::Formatter<'_>, value: f64, unit: Unit) -> fmt::Result {
    let prefix = largest_prefix(unit, value, 0.99995);
    let number = significant(value / prefix.divisor);
    write!(f, "{number} {}", prefix.symbol)
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0 as f64, Unit::Bytes)
    }
}

impl fmt::Display for BitsPerSec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, Unit::BitsPerSecond)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 60_000_000_000 {
            let seconds = self.0.div_ceil(1_000_000_000);
            return match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
                (0, m, 0) => write!(f, "{m} min"),
                (0, m, s) => write!(f, "{m} min {s} s"),
                (h, m, _) => write!(f, "{h} h {m} min"),
            };
        }
        write_scaled(f, self.0 as f64, Unit::Nanoseconds)
    }
}

/// What a stored number counts; the unit of every response, column and axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bits per second.
    BitsPerSecond,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Events, transactions or packets per second.
    PerSecond,
    /// A number of things.
    Count,
    /// A dimensionless quotient.
    Ratio,
    /// Hundredths.
    Percent,
    /// CPUs' worth of time: busy CPU seconds per second.
    Cpus,
    /// Text; the number is meaningless.
    None,
}

impl Unit {
    /// Writes `value` for a person: scaled prefix, three digits unless it is exact, unit.
    pub fn display(self, value: f64) -> String {
        crate::number::display(value, self)
    }
}

/// Reads and writes a quantity of a document: a number in base units, or text with a prefix.
macro_rules! quantity_serde {
    ($type:ident, $base:ty, $schema:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Either;
                impl serde::de::Visitor<'_> for Either {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a number in base units or text: ")?;
                        f.write_str($schema)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }

                    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<$type, E> {
                        Ok($type(value as $base))
                    }

                    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<$type, E> {
                        if value < 0 {
                            return Err(E::custom(format_args!("{value} is negative")));
                        }
                        Ok($type(value as $base))
                    }

                    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<$type, E> {
                        if !value.is_finite() || value < 0.0 {
                            return Err(E::custom(format_args!("{value} is negative or not finite")));
                        }
                        Ok($type(value as $base))
                    }
                }
                deserializer.deserialize_any(Either)
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": ["number", "string"], "minimum": 0, "description": $schema })
            }
        }
    };
}

quantity_serde!(Bytes, u64, "bytes; as text with K, M, G (1024)");
quantity_serde!(
    BitsPerSec,
    f64,
    "bits per second; as text with K, M, G (1000)"
);
quantity_serde!(Nanos, u64, "nanoseconds; as text with ns, us, ms, s, m, h");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_and_rates_decimal() {
        assert_eq!("64K".parse(), Ok(Bytes(65_536)));
        assert_eq!("1.5 MiB".parse(), Ok(Bytes(1_572_864)));
        assert_eq!("1gbit".parse(), Ok(BitsPerSec(1e9)));
        assert_eq!("10Mbit/s".parse(), Ok(BitsPerSec(1e7)));
        assert_eq!("5G".parse(), Ok(BitsPerSec(5e9)));
        assert_eq!("5ms".parse(), Ok(Nanos(5_000_000)));
        assert_eq!("3m".parse(), Ok(Nanos::from_s(180)));
        assert_eq!("1m30s".parse(), Ok(Nanos::from_s(90)));
        assert_eq!("1h0m2s".parse(), Ok(Nanos::from_s(3602)));
        assert!("30s1m".parse::<Nanos>().is_err());
        assert!("1m60s".parse::<Nanos>().is_err());
        assert!("1m30x".parse::<Nanos>().is_err());
    }

    #[test]
    fn bad_quantities_are_named() {
        assert!(matches!(
            "-3K".parse::<Bytes>(),
            Err(ParseUnitError::OutOfRange(_))
        ));
        assert!(matches!(
            "fast".parse::<BitsPerSec>(),
            Err(ParseUnitError::NoNumber(_))
        ));
        assert!(matches!(
            "3 apples".parse::<Bytes>(),
            Err(ParseUnitError::UnknownSuffix { .. })
        ));
        assert!("99999999999G".parse::<Bytes>().is_err());
    }

    #[test]
    fn people_read_four_digits() {
        assert_eq!(BitsPerSec(941_482_300.0).to_string(), "941.5 Mbit/s");
        assert_eq!(BitsPerSec(999_960_000.0).to_string(), "1 Gbit/s");
        assert_eq!(Bytes(65_536).to_string(), "64 KiB");
        assert_eq!(significant(f64::INFINITY), "inf");
        assert_eq!(Nanos(43_210).to_string(), "43.21 µs");
        assert_eq!(Nanos::from_s(180).to_string(), "3 min");
    }
}
