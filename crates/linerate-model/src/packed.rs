//! Numbers in as few bytes as they need, as in Protocol Buffers.

/// Returns `number` so that small ones are small whatever their sign (zigzag).
pub(crate) fn fold(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

/// Returns what was folded.
pub(crate) fn unfold(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Adds `number`, 7 bits a byte from the lowest, each byte but the last with its highest bit set.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number from the front; absent where the bytes end.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}
