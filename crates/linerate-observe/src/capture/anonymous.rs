//! Frames that name nobody: made addresses, no payload, nothing but TCP and UDP.
//!
//! An address becomes the number of its first appearance, 10.0.0.1 and on or 2001:db8::1 and on,
//! so that conversations can still be told apart; hardware addresses become zero. The IPv4 header's
//! checksum is made anew, that of TCP and UDP is left as it was and no longer fits. What stays:
//! ports, sequence numbers, sizes, options (their timestamps too, which tell how long a host has
//! been up), and all times. Only an option of MPTCP that names a further address of a host becomes padding.

use std::collections::HashMap;
use std::net::IpAddr;

use super::{ETHERNET_BYTES, TCP, TYPE_IPV4, TYPE_IPV6, UDP};
use super::{Frame, LINKTYPE_ETHERNET, LINKTYPE_RAW};

/// Addresses that are told apart; later ones share the last number.
const ADDRESSES_MAX: u32 = 1 << 20;

/// Length of TCP's header without options, in bytes.
const TCP_BYTES: usize = 20;
// Kinds of TCP's options (RFC 9293, RFC 8684), and the one of MPTCP with an address.
const OPTION_END: u8 = 0;
const OPTION_PADDING: u8 = 1;
const OPTION_MPTCP: u8 = 30;
const MPTCP_ADD_ADDR: u8 = 3;

/// Makes frames of one capture anonymous.
#[derive(Debug)]
pub struct Anonymiser {
    link_type: u16,
    numbers: HashMap<IpAddr, u32>,
    bytes: Vec<u8>,
}

impl Anonymiser {
    /// Returns one for a capture of this link type.
    pub fn new(link_type: u16) -> Self {
        Self {
            link_type,
            numbers: HashMap::new(),
            bytes: Vec::new(),
        }
    }

    /// Returns the frame without names, or nothing where that cannot be had: other protocols than
    /// TCP and UDP carry addresses in places of their own.
    pub fn anonymise<'s>(&'s mut self, frame: &Frame<'_>) -> Option<Frame<'s>> {
        let at = match self.link_type {
            LINKTYPE_ETHERNET => ETHERNET_BYTES,
            LINKTYPE_RAW => 0,
            _ => return None,
        };
        let packet = frame.bytes.get(at..)?;
        let version = packet.first()? >> 4;
        let (kind, headers) = match version {
            4 => (TYPE_IPV4, headers_v4(packet)?),
            6 => (TYPE_IPV6, headers_v6(packet)?),
            _ => return None,
        };
        self.bytes.clear();
        if at == ETHERNET_BYTES {
            // A frame of another type whose payload looks like IP.
            if frame.bytes.get(12..14)? != kind.to_be_bytes() {
                return None;
            }
            self.bytes.extend([0; 12]);
            self.bytes.extend(kind.to_be_bytes());
        }
        self.bytes.extend(packet.get(..headers)?);
        let (protocol, transport) = match version {
            4 => (*packet.get(9)?, at + 20),
            _ => (*packet.get(6)?, at + 40),
        };
        match version {
            4 => self.rename_v4(at)?,
            _ => self.rename_v6(at)?,
        }
        if protocol == TCP {
            pad_addresses(self.bytes.get_mut(transport + TCP_BYTES..)?);
        }
        Some(Frame {
            bytes: &self.bytes,
            ..*frame
        })
    }

    fn number(&mut self, address: IpAddr) -> u32 {
        let next = (self.numbers.len() as u32 + 1).min(ADDRESSES_MAX);
        if next < ADDRESSES_MAX {
            *self.numbers.entry(address).or_insert(next)
        } else {
            self.numbers.get(&address).copied().unwrap_or(ADDRESSES_MAX)
        }
    }

    fn rename_v4(&mut self, at: usize) -> Option<()> {
        for place in [at + 12, at + 16] {
            let old: [u8; 4] = *self.bytes.get(place..)?.first_chunk()?;
            let number = self.number(IpAddr::from(old)) & 0xff_ffff;
            let new = (10 << 24 | number).to_be_bytes();
            self.bytes[place..place + 4].copy_from_slice(&new);
        }
        self.bytes[at + 10..at + 12].fill(0);
        let length = usize::from(self.bytes[at] & 15) * 4;
        let sum = checksum(self.bytes.get(at..at + length)?);
        self.bytes[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
        Some(())
    }

    fn rename_v6(&mut self, at: usize) -> Option<()> {
        for place in [at + 8, at + 24] {
            let old: [u8; 16] = *self.bytes.get(place..)?.first_chunk()?;
            let number = u128::from(self.number(IpAddr::from(old)));
            let new = (0x2001_0db8 << 96 | number).to_be_bytes();
            self.bytes[place..place + 16].copy_from_slice(&new);
        }
        Some(())
    }
}

/// Returns the length of the headers of IPv4 and of what it carries; options of IPv4 hold addresses
/// (of routes), so a packet that has any is none of ours.
fn headers_v4(packet: &[u8]) -> Option<usize> {
    let is_first = u16::from_be_bytes(*packet.get(6..)?.first_chunk()?) & 0x1fff == 0;
    (*packet.first()? == 0x45 && is_first).then_some(())?;
    Some(20 + transport(*packet.get(9)?, packet.get(20..)?)?)
}

/// The same for IPv6, without extension headers.
fn headers_v6(packet: &[u8]) -> Option<usize> {
    Some(40 + transport(*packet.get(6)?, packet.get(40..)?)?)
}

fn transport(protocol: u8, segment: &[u8]) -> Option<usize> {
    let length = match protocol {
        TCP => usize::from(segment.get(12)? >> 4) * 4,
        UDP => 8,
        _ => return None,
    };
    let shortest = if protocol == TCP { TCP_BYTES } else { 8 };
    (length >= shortest && length <= segment.len()).then_some(length)
}

/// Puts padding in place of options that hold addresses: ADD_ADDR of MPTCP (RFC 8684, section 3.4.1). What
/// cannot be read as options any more could hold some, too.
fn pad_addresses(options: &mut [u8]) {
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        let (length, least) = match kind {
            OPTION_END | OPTION_PADDING => (1, 1),
            _ => (options.get(at + 1).map_or(0, |it| usize::from(*it)), 2),
        };
        let option = options.get_mut(at..at + length);
        let Some(option) = option.filter(|option| option.len() >= least) else {
            return options[at..].fill(OPTION_PADDING);
        };
        let subtype = option.get(2).map(|byte| byte >> 4);
        if kind == OPTION_MPTCP && subtype == Some(MPTCP_ADD_ADDR) {
            option.fill(OPTION_PADDING);
        }
        at += length;
    }
}

/// The checksum of the Internet (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks_exact(2)
        .map(|two| u16::from_be_bytes([two[0], two[1]]));
    let mut sum: u32 = words.map(u32::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A TCP segment with `payload` from 192.0.2.HOST to 192.0.2.9 on Ethernet.
    fn segment(host: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x02SECRE\x02TSECR\x08\x00".to_vec();
        bytes.extend([0x45, 0, 0, 60, 1, 2, 0x40, 0, 64, TCP, 0xab, 0xcd]);
        bytes.extend([192, 0, 2, host, 192, 0, 2, 9]);
        bytes.extend([
            0x14, 0x51, 0x9c, 0x40, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0,
        ]);
        bytes.extend(payload);
        bytes
    }

    fn frame(bytes: &[u8]) -> Frame<'_> {
        Frame {
            at_unix_ns: 1,
            length: 1514,
            bytes,
            vlan: None,
            is_outgoing: false,
        }
    }

    fn hide(anonymiser: &mut Anonymiser, bytes: &[u8]) -> Vec<u8> {
        anonymiser.anonymise(&frame(bytes)).unwrap().bytes.to_vec()
    }

    #[test]
    fn names_go_and_numbers_stay() {
        let mut anonymiser = Anonymiser::new(LINKTYPE_ETHERNET);
        let one = hide(&mut anonymiser, &segment(5, b"PASSWORD"));
        assert_eq!(one.len(), 54, "no payload");
        assert_eq!(one[..12], [0; 12]);
        assert_eq!(one[26..34], [10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(checksum(&one[14..34]), 0, "the header's checksum fits");
        assert_eq!(
            one[34..54],
            segment(5, b"")[34..54],
            "ports, numbers, flags"
        );
        let two = hide(&mut anonymiser, &segment(6, b""));
        assert_eq!(
            two[26..34],
            [10, 0, 0, 3, 10, 0, 0, 2],
            "the same is the same"
        );
    }

    #[test]
    fn what_could_carry_a_name_elsewhere_is_left_out() {
        let mut anonymiser = Anonymiser::new(LINKTYPE_ETHERNET);
        let with = |at: usize, value: u8| {
            let mut bytes = segment(5, b"");
            bytes[at] = value;
            bytes
        };
        for (what, bytes) in [
            ("ICMP", with(23, 1)),
            ("a later fragment", with(21, 1)),
            ("options of IPv4", with(14, 0x46)),
            ("ARP", with(13, 6)),
            ("a header that was cut off", segment(5, b"")[..50].to_vec()),
        ] {
            assert_eq!(anonymiser.anonymise(&frame(&bytes)), None, "{what}");
        }
        let mut other = Anonymiser::new(113);
        assert_eq!(other.anonymise(&frame(&segment(5, b""))), None);
    }

    #[test]
    fn addresses_in_options_become_padding() {
        let mut anonymiser = Anonymiser::new(LINKTYPE_ETHERNET);
        let mut hide = |options: &[u8]| {
            let mut bytes = segment(5, b"");
            bytes[46] = ((20 + options.len()) << 2) as u8;
            bytes.extend(options);
            hide(&mut anonymiser, &bytes)[54..].to_vec()
        };
        // A timestamp, ADD_ADDR of 192.0.2.7 with its 8 bytes of HMAC, and DSS.
        let timestamp = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let add = [30, 16, 0x30, 2, 192, 0, 2, 7, 9, 9, 9, 9, 9, 9, 9, 9];
        let data = [30, 8, 0x20, 1, 0, 0, 0, 5];
        assert_eq!(
            hide(&[&timestamp[..], &add, &data].concat()),
            [&timestamp[..], &[1; 16], &data].concat()
        );
        // What is no option to its end, or lies behind the end.
        assert_eq!(hide(&[30, 40, 0x30, 2, 192, 0, 2, 7]), [1; 8]);
        assert_eq!(hide(&[&[0, 0, 0, 0], &add[..]].concat())[4..], [1; 16]);
        assert_eq!(hide(&[30, 0, 0x30, 2, 192, 0, 2, 7]), [1; 8]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..100), raw: bool) {
            let link_type = if raw { LINKTYPE_RAW } else { LINKTYPE_ETHERNET };
            let hidden = Anonymiser::new(link_type);
            let mut hidden = hidden;
            if let Some(frame) = hidden.anonymise(&frame(&bytes)) {
                prop_assert!(frame.bytes.len() <= bytes.len());
            }
        }
    }
}
