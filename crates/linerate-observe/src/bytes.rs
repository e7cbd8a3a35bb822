//! Numbers in the kernel's byte order, by their place in bytes; absent beyond the end.

/// Returns the 16-bit number at `at`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let number = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*number))
}

/// Returns the 32-bit number at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let number = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*number))
}

/// Returns the 64-bit number at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let number = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*number))
}
