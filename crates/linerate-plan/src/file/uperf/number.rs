//! Numbers and times as uperf writes them.

use linerate_model::Nanos;

/// Suffixes of sizes, each 1024 times the one before it.
const SIZE_SUFFIXES: &str = "bkmgtpez";
/// Digits of a number: more than the largest has.
const DIGITS_MAX: usize = 20;

/// Returns a number with its suffix, `8k` or `1.5m`, as long as it fits into 32 bits, which uperf counts in.
pub(super) fn count(text: &str) -> Option<u64> {
    let (number, suffix) = split(text)?;
    let mut letters = suffix.chars();
    let power = match letters.next() {
        None => 0,
        Some(letter) => SIZE_SUFFIXES.find(letter)?,
    };
    if !matches!(letters.as_str(), "" | "b") {
        return None;
    }
    let value = number * 1024_f64.powi(power as i32);
    (value <= f64::from(u32::MAX)).then_some(value as u64)
}

/// Returns a time: in seconds, or with the suffix s, m (milliseconds), u or n, after which a further `s` may stand.
pub(super) fn time(text: &str) -> Option<Nanos> {
    let (number, suffix) = split(text)?;
    let unit_ns = match suffix {
        "" | "s" => 1e9,
        "m" | "ms" => 1e6,
        "u" | "us" => 1e3,
        "n" | "ns" => 1.0,
        _ => return None,
    };
    let value = (number * unit_ns).round();
    (value <= Nanos::from_s(u32::MAX.into()).0 as f64).then_some(Nanos(value as u64))
}

/// Returns the digits of `text` as a number, and what follows them.
fn split(text: &str) -> Option<(f64, &str)> {
    let is_digit = |c: char| c.is_ascii_digit() || c == '.';
    let end = text.find(|c| !is_digit(c)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    if number.len() > DIGITS_MAX {
        return None;
    }
    Some((number.parse().ok()?, suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_suffixes_of_1024() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(count(text), expected, "{text}");
        check("8192", Some(8192));
        check("8k", Some(8192));
        check("8kb", Some(8192));
        check("64b", Some(64));
        check("1.5m", Some(1_572_864));
        check(".5k", Some(512));
        check("3g", Some(3 << 30));
        check("0", Some(0));
        for none in [
            "4g",
            "1z",
            "",
            ".",
            "k",
            "-1",
            "8kk",
            "8q",
            "1e3",
            "1.2.3",
            "0x10",
            "99999999999999999999999",
        ] {
            check(none, None);
        }
    }

    #[test]
    fn an_m_of_time_is_a_millisecond() {
        let check =
            |text: &str, expected: Option<Nanos>| assert_eq!(time(text), expected, "{text}");
        check("30", Some(Nanos::from_s(30)));
        check("30s", Some(Nanos::from_s(30)));
        check("10m", Some(Nanos::from_ms(10)));
        check("10ms", Some(Nanos::from_ms(10)));
        check("0.5s", Some(Nanos::from_ms(500)));
        check("7us", Some(Nanos(7000)));
        check("7n", Some(Nanos(7)));
        for none in ["", "s", "1h", "-1s", "1min", "99999999999s"] {
            check(none, None);
        }
    }
}
