//! Times and shares as people type them, wherever a flag takes one.

use linerate_model::Nanos;

/// Reads a time: `10`, which is seconds, `10s`, `500ms`, `3m`, `1m30s`.
pub fn seconds(text: &str) -> Result<f64, String> {
    // A number alone comes first: one below zero or without end is refused with its limits.
    match text.parse::<f64>() {
        Ok(seconds) => Ok(seconds),
        Err(_) => text
            .parse()
            .map(Nanos::as_s)
            .map_err(|_| format!("`{text}` is not a time: 10 or 10s, 500ms, 3m, 1m30s, 1h")),
    }
}

/// Reads a time of whole seconds.
pub fn whole_seconds(text: &str) -> Result<u64, String> {
    let seconds = seconds(text)?;
    if seconds.fract() == 0.0 && (0.0..1e9).contains(&seconds) {
        Ok(seconds as u64)
    } else {
        Err(format!("`{text}` is not a number of whole seconds"))
    }
}

/// Reads a time of whole seconds, at least one.
pub fn some_seconds(text: &str) -> Result<u64, String> {
    match whole_seconds(text)? {
        0 => Err("it must be at least 1 s".to_owned()),
        seconds => Ok(seconds),
    }
}

/// Reads a share: `0.01`, or `1%`.
pub fn share(text: &str) -> Result<f64, String> {
    linerate_model::unit::parse_share(text)
        .ok_or_else(|| format!("`{text}` is not a share: 0.01, or 1%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_or_are_seconds() {
        for (text, expected) in [("10", 10.0), ("10s", 10.0), ("500ms", 0.5), ("1m30s", 90.0)] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        assert!(seconds("soon").is_err());
        assert_eq!(whole_seconds("2m"), Ok(120));
        assert!(whole_seconds("1500ms").is_err());
        assert!(some_seconds("0").is_err());
    }

    #[test]
    fn shares_are_numbers_or_percentages() {
        assert_eq!(share("0.01"), Ok(0.01));
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.5 %"), Ok(0.005));
        assert!(share("some").is_err());
    }
}
