//! Bytes of kernel text files into complete lines, words and numbers.

/// Iterates over the lines that end in a line feed.
///
/// A last line without one was cut off, and a number cut off in the middle is a wrong number.
pub(crate) fn complete_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n')
        .filter_map(|line| line.strip_suffix(b"\n"))
}

/// Iterates over the words of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// Reads a number of decimal digits and nothing else.
pub(crate) fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Reads a number that is a sample's value.
pub(crate) fn value(word: &[u8]) -> Option<i64> {
    number(word)?.try_into().ok()
}

/// Converts clock ticks to nanoseconds; absent when the result does not fit a sample's value.
pub(crate) fn ticks_to_ns(ticks: u64, user_hz: u64) -> Option<i64> {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(user_hz.max(1));
    i64::try_from(ns).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_is_dropped() {
        let lines: Vec<_> = complete_lines(b"a 1\n\nb 2").collect();
        assert_eq!(lines, [b"a 1".as_slice(), b""]);
    }

    #[test]
    fn numbers_are_digits_only_and_fit() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for bad in [
            b"18446744073709551616".as_slice(),
            b"",
            b"-1",
            b"+1",
            b"1.5",
            b"0x1",
        ] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn ticks_become_nanoseconds() {
        assert_eq!(ticks_to_ns(3, 100), Some(30_000_000));
        assert_eq!(ticks_to_ns(1, 1024), Some(976_562));
        assert_eq!(ticks_to_ns(u64::MAX, 100), None);
    }
}
