//! What lies before IP: Ethernet with VLAN tags, Linux cooked headers, BSD loopback, nothing.

use super::{NoSegment, u16_at};
use crate::capture::LinkType;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_QINQ: u16 = 0x88a8;
/// What some switches wrote before 802.1ad had a number.
const ETHERTYPE_QINQ_OLD: u16 = 0x9100;

/// Tags that are looked through; two are in use, a third has been seen in labs.
const TAGS_MAX: usize = 4;

/// Returns how many bytes lie before the IP header.
#[inline]
pub(crate) fn header_bytes(link: LinkType, bytes: &[u8]) -> Result<usize, NoSegment> {
    match link {
        LinkType::ETHERNET => behind_tags(bytes, 12),
        LinkType::LINUX_SLL => behind_tags(bytes, 14),
        LinkType::LINUX_SLL2 => sll2(bytes),
        LinkType::NULL | LinkType::LOOP => loopback(bytes),
        // The link type was checked when the file was opened: the others are raw IP.
        _ => Ok(0),
    }
}

/// Follows ethertypes from `at` over VLAN tags.
#[inline]
fn behind_tags(bytes: &[u8], at: usize) -> Result<usize, NoSegment> {
    let mut at = at;
    for _ in 0..=TAGS_MAX {
        match u16_at(bytes, at).ok_or(NoSegment::Cut)? {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return Ok(at + 2),
            ETHERTYPE_VLAN | ETHERTYPE_QINQ | ETHERTYPE_QINQ_OLD => at += 4,
            _ => return Err(NoSegment::NotIp),
        }
    }
    Err(NoSegment::Malformed)
}

/// Version 2 has the ethertype first and 20 bytes in all; a tag then stands behind them.
fn sll2(bytes: &[u8]) -> Result<usize, NoSegment> {
    const HEADER_BYTES: usize = 20;
    match u16_at(bytes, 0).ok_or(NoSegment::Cut)? {
        _ if bytes.len() < HEADER_BYTES => Err(NoSegment::Cut),
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Ok(HEADER_BYTES),
        ETHERTYPE_VLAN | ETHERTYPE_QINQ => behind_tags(bytes, HEADER_BYTES + 2),
        _ => Err(NoSegment::NotIp),
    }
}

/// The address family is in the writer's byte order, and IPv6 has another number on each system;
/// the IP header's own version says as much.
fn loopback(bytes: &[u8]) -> Result<usize, NoSegment> {
    const HEADER_BYTES: usize = 4;
    match bytes.get(HEADER_BYTES).map(|first| first >> 4) {
        Some(4 | 6) => Ok(HEADER_BYTES),
        Some(_) => Err(NoSegment::NotIp),
        None => Err(NoSegment::Cut),
    }
}
