//! Addresses in four words.
//!
//! That of IPv4 is the first word. The four of IPv6 are 16 bytes that the client took for words of its own
//! byte order: one whose order is little-endian sends each turned round, and what order it has it does not
//! say. Nearly all have that one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::message::Message;

/// Words of an address.
const WORDS: usize = 4;

/// Reads the address whose first word is `first`; absent where it is all zeros.
pub(super) fn read(message: &Message, first: usize, is_v6: bool) -> Option<IpAddr> {
    let words: [u32; WORDS] = std::array::from_fn(|index| message.word(first + index));
    let address = if is_v6 {
        let mut bytes = [0; 16];
        for (room, word) in bytes.chunks_exact_mut(4).zip(words) {
            room.copy_from_slice(&word.to_le_bytes());
        }
        IpAddr::from(Ipv6Addr::from(bytes))
    } else {
        Ipv4Addr::from_bits(words[0]).into()
    };
    Some(address).filter(|address| !address.is_unspecified())
}

/// Writes an address from word `first` on.
pub(super) fn write(message: &mut Message, first: usize, address: Option<IpAddr>) {
    match address {
        None => {}
        Some(IpAddr::V4(address)) => message.set_word(first, address.to_bits()),
        Some(IpAddr::V6(address)) => {
            for (index, word) in address.octets().as_chunks::<4>().0.iter().enumerate() {
                message.set_word(first + index, u32::from_le_bytes(*word));
            }
        }
    }
}
