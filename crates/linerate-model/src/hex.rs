//! Bytes as hexadecimal digits: cookies, leases, tokens and the ends of run identifiers.

/// Returns two lower-case digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes that `text` spells, if it is `2 * BYTES` hexadecimal digits and nothing else.
pub fn decode<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    // `from_str_radix` takes a sign, which is no digit.
    if text.len() != 2 * BYTES || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_goes_both_ways() {
        let bytes: [u8; 16] = std::array::from_fn(|at| (at * 17) as u8);
        assert_eq!(encode(&bytes), "00112233445566778899aabbccddeeff");
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
        assert_eq!(decode("0aFf"), Some([0x0a, 0xff]));
    }

    #[test]
    fn what_is_not_hex_is_refused() {
        for bad in ["", "00", "zz00", "+1+1", "00 0", "é00", "00000"] {
            assert_eq!(decode::<2>(bad), None, "{bad}");
        }
    }
}
