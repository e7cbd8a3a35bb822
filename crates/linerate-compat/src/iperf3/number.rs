//! Numbers in JSON as other programs write them.

use serde_json::Value;

/// Returns a whole number that is not negative.
///
/// cJSON keeps every number as a double, so `1e6` and `5.0` are whole numbers too. A value from 2^63
/// on is a negative one that was printed without its sign (3.12 writes -1 so); it is none.
pub(super) fn whole(value: &Value) -> Option<u64> {
    const SIGN: u64 = 1 << 63;
    if let Some(number) = value.as_u64() {
        return (number < SIGN).then_some(number);
    }
    let number = value.as_f64()?;
    let whole = number >= 0.0 && number < SIGN as f64 && number.fract() == 0.0;
    whole.then_some(number as u64)
}

/// Returns a finite number.
pub(super) fn real(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        let check = |text: &str, expected: Option<u64>| {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(whole(&value), expected, "{text}");
        };
        check("0", Some(0));
        check("1163919360", Some(1_163_919_360));
        check("1e6", Some(1_000_000));
        check("5.0", Some(5));
        check("5.5", None);
        check("-1", None);
        check("18446744073709551615", None);
        check("1e300", None);
        check("true", None);
        check("\"7\"", None);
    }
}
