//! What lies before IP: Ethernet with VLAN tags, LLC with SNAP, PPPoE or MPLS, PPP, Cisco's HDLC, Frame Relay,
//! 802.11 with and without radiotap, Linux cooked headers, BSD loopback, nothing.

use super::{NoSegment, u16_at};
use crate::capture::LinkType;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: u16 = 0x8100;
pub(crate) const ETHERTYPE_MPLS: u16 = 0x8847;
const ETHERTYPE_QINQ: u16 = 0x88a8;
/// What some switches wrote before 802.1ad had a number.
const ETHERTYPE_QINQ_OLD: u16 = 0x9100;

/// Tags that are looked through; two are in use, a third has been seen in labs.
const TAGS_MAX: usize = 4;
/// Headers with an ethertype in them that are followed one behind the other.
const HEADERS_MAX: usize = 8;

/// Returns how many bytes lie before the IP header.
#[inline]
pub(crate) fn header_bytes(link: LinkType, bytes: &[u8]) -> Result<usize, NoSegment> {
    match link {
        LinkType::ETHERNET => behind_tags(bytes, 12),
        LinkType::LINUX_SLL => behind_tags(bytes, 14),
        LinkType::LINUX_SLL2 => sll2(bytes),
        LinkType::PPP | LinkType::PPP_SERIAL => ppp(bytes, 0),
        // The control field of HDLC shows whether the direction stands for its address.
        LinkType::PPP_PPPD if bytes.get(1) == Some(&3) => ppp(bytes, 2),
        LinkType::PPP_PPPD | LinkType::PPP_DIRECTION => ppp(bytes, 1),
        LinkType::CISCO_HDLC => behind_tags(bytes, 2),
        LinkType::FRAME_RELAY => frame_relay(bytes),
        LinkType::PPI => ppi(bytes),
        LinkType::NULL | LinkType::LOOP => loopback(bytes),
        LinkType::IEEE802_11 => wireless(bytes, 0),
        LinkType::RADIOTAP => wireless(bytes, radiotap(bytes)?),
        LinkType::PRISM => wireless(bytes, PRISM_BYTES),
        // 12 and 14 are what BSDs write for raw IP.
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => Ok(0),
        _ => Err(NoSegment::Foreign),
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
            other => return rare(other, bytes, at + 2),
        }
    }
    Err(NoSegment::Malformed)
}

/// Follows what is seldom between the type of a frame and IP; `at` is behind the type.
#[cold]
fn rare(ethertype: u16, bytes: &[u8], at: usize) -> Result<usize, NoSegment> {
    /// What is no type is a length (IEEE 802.3), or what Linux has for one, and LLC follows.
    const LENGTH_MAX: u16 = 1500;
    match ethertype {
        0..=LENGTH_MAX => llc(bytes, at),
        other => behind_type(other, bytes, at),
    }
}

/// Follows an ethertype, wherever it stands; `at` is behind it.
#[cold]
pub(crate) fn behind_type(ethertype: u16, bytes: &[u8], at: usize) -> Result<usize, NoSegment> {
    const PPPOE_SESSION: u16 = 0x8864;
    const MPLS_MULTICAST: u16 = 0x8848;
    /// IEEE 802.1BR: four bytes more than a VLAN tag.
    const E_TAG: u16 = 0x893f;
    const MACSEC: u16 = 0x88e5;
    const BACKBONE: u16 = 0x88e7;
    const SERVICE_CHAIN: u16 = 0x894f;
    let (mut ethertype, mut at) = (ethertype, at);
    for _ in 0..HEADERS_MAX {
        let next = match ethertype {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return Ok(at),
            ETHERTYPE_VLAN | ETHERTYPE_QINQ | ETHERTYPE_QINQ_OLD => at + 2,
            E_TAG => at + 6,
            PPPOE_SESSION => return ppp(bytes, at + 6),
            ETHERTYPE_MPLS | MPLS_MULTICAST => return mpls(bytes, at),
            MACSEC => return Err(NoSegment::Undecoded("MACsec")),
            BACKBONE => {
                return Err(NoSegment::Undecoded("provider backbone bridges (802.1ah)"));
            }
            SERVICE_CHAIN => return Err(NoSegment::Undecoded("network service headers (NSH)")),
            _ => return Err(NoSegment::NotIp),
        };
        ethertype = u16_at(bytes, next).ok_or(NoSegment::Cut)?;
        at = next + 2;
    }
    Err(NoSegment::Malformed)
}

/// LLC: with SNAP and no organisation an ethertype follows; IP has a number of its own too (RFC 948).
pub(crate) fn llc(bytes: &[u8], at: usize) -> Result<usize, NoSegment> {
    match bytes.get(at..at + 8).ok_or(NoSegment::Cut)? {
        [0xaa, 0xaa, 3, 0, 0, 0, high, low] => {
            behind_type(u16::from_be_bytes([*high, *low]), bytes, at + 8)
        }
        [6, 6, 3, ..] => Ok(at + 3),
        _ => Err(NoSegment::NotIp),
    }
}

/// A stack of labels; what follows the last is IP if it begins as IP does.
pub(crate) fn mpls(bytes: &[u8], at: usize) -> Result<usize, NoSegment> {
    const LABELS_MAX: usize = 8;
    for label in 0..LABELS_MAX {
        let at = at + 4 * label;
        let is_last = bytes.get(at + 2).ok_or(NoSegment::Cut)? & 1 != 0;
        if is_last {
            let no_ip = NoSegment::Undecoded("MPLS without IP in it (pseudowires)");
            return begins_here(bytes, at + 4).map_err(|error| match error {
                NoSegment::NotIp => no_ip,
                other => other,
            });
        }
    }
    Err(NoSegment::Malformed)
}

/// Returns `at` if IP begins there.
fn begins_here(bytes: &[u8], at: usize) -> Result<usize, NoSegment> {
    match bytes.get(at).ok_or(NoSegment::Cut)? >> 4 {
        4 | 6 => Ok(at),
        _ => Err(NoSegment::NotIp),
    }
}

/// PPP: perhaps address and control, then a protocol of one or two bytes (RFC 1661).
pub(crate) fn ppp(bytes: &[u8], at: usize) -> Result<usize, NoSegment> {
    let at = match bytes.get(at..at + 2).ok_or(NoSegment::Cut)? {
        [0xff, 3] => at + 2,
        _ => at,
    };
    match bytes.get(at..at + 2).ok_or(NoSegment::Cut)? {
        [0, 0x21 | 0x57] => Ok(at + 2),
        [0x21 | 0x57, _] => Ok(at + 1),
        [2, 0x81 | 0x83] => mpls(bytes, at + 2),
        // Compressed TCP, several links, encryption and compression (RFC 1144, 1990, 1968, 1962), in one byte or two.
        [0, 0x2d | 0x2f | 0x3d | 0x53 | 0xfd] | [0x2d | 0x2f | 0x3d | 0x53 | 0xfd, _] => Err(
            NoSegment::Undecoded("PPP that is compressed, encrypted or split (multilink)"),
        ),
        _ => Err(NoSegment::NotIp),
    }
}

/// Frame Relay: an address whose last byte has its lowest bit set (ITU-T Q.922), and what follows as RFC 2427
/// has it, or an ethertype as Cisco does.
fn frame_relay(bytes: &[u8]) -> Result<usize, NoSegment> {
    const ADDRESS_BYTES_MAX: usize = 4;
    const UNNUMBERED: u8 = 3;
    const NLPID_SNAP: u8 = 0x80;
    const NLPID_IPV4: u8 = 0xcc;
    const NLPID_IPV6: u8 = 0x8e;
    let mut address = bytes.iter().take(ADDRESS_BYTES_MAX);
    let at = match address.position(|byte| byte & 1 != 0) {
        Some(last) => last + 1,
        None if bytes.len() < ADDRESS_BYTES_MAX => return Err(NoSegment::Cut),
        None => return Err(NoSegment::Malformed),
    };
    match bytes.get(at..).ok_or(NoSegment::Cut)? {
        [UNNUMBERED, NLPID_IPV4 | NLPID_IPV6, ..] => Ok(at + 2),
        // A byte may stand between, so that what follows begins at an even one.
        [UNNUMBERED, 0, NLPID_SNAP, 0, 0, 0, ..] => behind_tags(bytes, at + 6),
        [UNNUMBERED, NLPID_SNAP, 0, 0, 0, ..] => behind_tags(bytes, at + 5),
        [UNNUMBERED, _, _, ..] => Err(NoSegment::NotIp),
        _ => behind_tags(bytes, at),
    }
}

/// Per-packet information: version, flags, its length and the link type of what follows, the lower byte first.
fn ppi(bytes: &[u8]) -> Result<usize, NoSegment> {
    const HEADER_BYTES_MIN: usize = 8;
    let [0, _, length @ .., link_low, link_high, 0, 0] = *bytes
        .first_chunk::<HEADER_BYTES_MIN>()
        .ok_or(NoSegment::Cut)?
    else {
        return Err(NoSegment::Malformed);
    };
    let length = usize::from(u16::from_le_bytes(length));
    let link = LinkType(u16::from_le_bytes([link_low, link_high]));
    if length < HEADER_BYTES_MIN || link == LinkType::PPI {
        return Err(NoSegment::Malformed);
    }
    let frame = bytes.get(length..).ok_or(NoSegment::Cut)?;
    match header_bytes(link, frame) {
        // The frame is of a link type that is known; what lies in it is not.
        Err(NoSegment::Foreign) => Err(NoSegment::NotIp),
        inner => Ok(length + inner?),
    }
}

/// What Prism chips' drivers put before a frame.
const PRISM_BYTES: usize = 144;

/// Returns how long a radiotap header is: the third and fourth byte, the lower first.
fn radiotap(bytes: &[u8]) -> Result<usize, NoSegment> {
    const HEADER_BYTES_MIN: usize = 8;
    match bytes {
        [0, _, low, high, ..] => match usize::from(u16::from_le_bytes([*low, *high])) {
            length if length >= HEADER_BYTES_MIN => Ok(length),
            _ => Err(NoSegment::Malformed),
        },
        [_, _, _, _, ..] => Err(NoSegment::Malformed),
        _ => Err(NoSegment::Cut),
    }
}

/// A frame of 802.11 (IEEE 802.11-2020, section 9.3.2): data has LLC with SNAP behind its header.
fn wireless(bytes: &[u8], at: usize) -> Result<usize, NoSegment> {
    const HEADER_BYTES: usize = 24;
    const ADDRESS_BYTES: usize = 6;
    const QOS_BYTES: usize = 2;
    const HT_BYTES: usize = 4;
    let field = |offset: usize| bytes.get(at + offset).copied().ok_or(NoSegment::Cut);
    let (control, flags) = (field(0)?, field(1)?);
    let (is_data, is_empty, has_qos) = (
        control & 0x0c == 0x08,
        control & 0x40 != 0,
        control & 0x80 != 0,
    );
    if !is_data || is_empty {
        return Err(NoSegment::Wireless);
    }
    if flags & 0x40 != 0 {
        return Err(NoSegment::Encrypted);
    }
    if field(22)? & 0x0f != 0 {
        return Err(NoSegment::Fragment);
    }
    let mut header_bytes = HEADER_BYTES;
    if flags & 3 == 3 {
        header_bytes += ADDRESS_BYTES;
    }
    if has_qos {
        // Several packets in one: their own addresses and lengths would follow.
        if field(header_bytes)? & 0x80 != 0 {
            return Err(NoSegment::Undecoded(
                "several packets in a frame of 802.11 (A-MSDU)",
            ));
        }
        header_bytes += QOS_BYTES;
        if flags & 0x80 != 0 {
            header_bytes += HT_BYTES;
        }
    }
    // Some cards pad the header to four bytes.
    let padded = header_bytes.next_multiple_of(4);
    llc(bytes, at + header_bytes).or_else(|error| {
        if padded == header_bytes {
            Err(error)
        } else {
            llc(bytes, at + padded)
        }
    })
}

/// Version 2 has the ethertype first and 20 bytes in all; a tag then stands behind them.
fn sll2(bytes: &[u8]) -> Result<usize, NoSegment> {
    const HEADER_BYTES: usize = 20;
    match u16_at(bytes, 0).ok_or(NoSegment::Cut)? {
        _ if bytes.len() < HEADER_BYTES => Err(NoSegment::Cut),
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Ok(HEADER_BYTES),
        other => rare(other, bytes, HEADER_BYTES),
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
