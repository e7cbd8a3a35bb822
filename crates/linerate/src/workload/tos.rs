//! The type-of-service byte: a number as `-S` takes it, or a DSCP by name.

use anyhow::anyhow;

use crate::exit::{CmdResult, Failure};

/// Classes by name (RFC 2474, 2597, 3246, 5865, 8622).
const CLASSES: &[(&str, u8)] = &[
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
    ("va", 44),
    ("le", 1),
];

/// Returns the byte that `--tos` or `--dscp` ask for.
pub(super) fn parse(tos: Option<&str>, dscp: Option<&str>) -> CmdResult<Option<u8>> {
    if let Some(text) = tos {
        let byte = number(text).and_then(|number| u8::try_from(number).ok());
        let bad = || anyhow!("--tos (-S) is {text}, but must be 0 to 255, decimal or 0x…");
        return byte.map(Some).ok_or_else(|| Failure::usage(bad()));
    }
    let Some(text) = dscp else { return Ok(None) };
    let lower = text.to_ascii_lowercase();
    let class = CLASSES
        .iter()
        .find(|(name, _)| *name == lower)
        .map(|(_, class)| u32::from(*class))
        .or_else(|| number(text))
        .filter(|class| *class < 64);
    match class {
        // The two bits below are ECN.
        Some(class) => Ok(Some((class << 2) as u8)),
        None => {
            let names: Vec<&str> = CLASSES.iter().map(|(name, _)| *name).collect();
            let error = anyhow!("--dscp is {text}, but must be 0 to 63 or a class");
            Err(Failure::usage(error).next(format!("the classes are {}", names.join(" "))))
        }
    }
}

/// Reads a number as C does: 0x… hexadecimal, 0… octal, else decimal.
fn number(text: &str) -> Option<u32> {
    if let Some(hex) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        return u32::from_str_radix(hex, 16).ok();
    }
    match text.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u32::from_str_radix(octal, 8).ok(),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_classes_are_read() {
        let tos = |text: &str| parse(Some(text), None).unwrap();
        assert_eq!(tos("0x10"), Some(16));
        assert_eq!(tos("020"), Some(16));
        assert_eq!(tos("0"), Some(0));
        assert_eq!(tos("255"), Some(255));
        let dscp = |text: &str| parse(None, Some(text)).unwrap();
        assert_eq!(dscp("EF"), Some(0xb8));
        assert_eq!(dscp("af41"), Some(0x88));
        assert_eq!(dscp("46"), Some(0xb8));
        assert_eq!(parse(None, None).unwrap(), None);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        for bad in ["256", "x", "-1", "0x100"] {
            assert!(
                parse(Some(bad), None)
                    .unwrap_err()
                    .to_string()
                    .contains(bad)
            );
        }
        for bad in ["64", "gold", ""] {
            assert!(parse(None, Some(bad)).is_err(), "{bad}");
        }
    }
}
