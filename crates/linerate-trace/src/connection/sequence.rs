//! Sequence numbers: 32 bits that wrap (RFC 9293, section 3.4).

/// Returns how far `to` lies behind `from`; negative if it lies before. Right as long as the two
/// are less than 2³¹ bytes apart, which windows of at most 2³⁰ bytes see to.
#[inline]
pub(crate) fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from) as i32
}

/// Returns whether `one` lies behind `other`.
#[inline]
pub(crate) fn after(one: u32, other: u32) -> bool {
    distance(other, one) > 0
}

/// Returns the one that lies further.
#[inline]
pub(crate) fn furthest(one: u32, other: u32) -> u32 {
    if after(one, other) { one } else { other }
}
