//! Attributes of netlink messages, as views of bytes.
//!
//! An attribute is a length, a type and a value, padded to four bytes (include/uapi/linux/netlink.h,
//! struct nlattr). Reading allocates nothing, passes over what it does not know, and ends at what
//! does not fit.

use netlink_packet_core::NlasIterator;

/// Walks attributes until their end or the first that does not fit.
pub(crate) fn each_attribute<'a>(bytes: &'a [u8], mut handle: impl FnMut(u16, &'a [u8])) {
    for attribute in NlasIterator::new(bytes) {
        let Ok(attribute) = attribute else { return };
        let kind = attribute.kind();
        let length = attribute.value_length();
        if let Some(value) = attribute.into_inner().get(4..4 + length) {
            handle(kind, value);
        }
    }
}

/// Returns the first attribute of a type.
pub(crate) fn first_attribute(attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut found = None;
    each_attribute(attributes, |kind, value| {
        if kind == wanted && found.is_none() {
            found = Some(value);
        }
    });
    found
}

/// Returns the text before the terminating zero.
pub(crate) fn until_zero(value: &[u8]) -> &[u8] {
    value.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Makes an attribute with its padding.
///
/// # Panics
///
/// Where `value` is longer than the 16 bits of the length say; ours are a few bytes.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len() + 4).expect("our values are short");
    let mut bytes = Vec::with_capacity(value.len() + 8);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bytes::{u32_at, u64_at};

    proptest! {
        #[test]
        fn what_was_made_is_found(all in proptest::collection::vec(
            (0_u16..0x3fff, proptest::collection::vec(any::<u8>(), 0..20)), 0..6,
        )) {
            let bytes: Vec<u8> = all.iter().flat_map(|(kind, value)| attribute(*kind, value)).collect();
            let mut found = Vec::new();
            each_attribute(&bytes, |kind, value| found.push((kind, value.to_vec())));
            prop_assert_eq!(found, all);
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            each_attribute(&bytes, |_, value| {
                let _ = (u32_at(value, 0), u64_at(value, 0), until_zero(value));
            });
        }
    }
}
