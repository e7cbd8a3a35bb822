//! IPv4 with options and fragments, IPv6 with extension headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Decoded, NoSegment, Parts, icmp, tcp, tunnel, u16_at, udp};

const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_TCP: u8 = 6;
pub(super) const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_ICMPV6: u8 = 58;

const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;

/// Extension headers that are looked through; RFC 8200 names six.
const EXTENSIONS_MAX: usize = 8;

/// Source and destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Addresses {
    V4 { source: u32, target: u32 },
    V6 { source: u128, target: u128 },
}

impl Default for Addresses {
    fn default() -> Self {
        Addresses::V4 {
            source: 0,
            target: 0,
        }
    }
}

impl Addresses {
    pub(crate) fn source(self) -> IpAddr {
        match self {
            Addresses::V4 { source, .. } => Ipv4Addr::from_bits(source).into(),
            Addresses::V6 { source, .. } => Ipv6Addr::from_bits(source).into(),
        }
    }

    /// Returns what the headers of IP and TCP take of a packet, without options.
    pub(crate) fn headers_bytes(self) -> u32 {
        let ip = match self {
            Addresses::V4 { .. } => IPV4_HEADER_BYTES,
            Addresses::V6 { .. } => IPV6_HEADER_BYTES,
        };
        (ip + tcp::HEADER_BYTES) as u32
    }

    /// Returns to whom it was sent.
    pub(crate) fn target(self) -> IpAddr {
        match self {
            Addresses::V4 { target, .. } => Ipv4Addr::from_bits(target).into(),
            Addresses::V6 { target, .. } => Ipv6Addr::from_bits(target).into(),
        }
    }
}

/// What IP says of the packet around a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// From where to where.
    pub addresses: Addresses,
    /// Bytes behind the IP header, as they were on the wire.
    pub payload_bytes: usize,
    /// Whether routers marked congestion (ECN CE).
    pub congestion_marked: bool,
    /// Whether its length goes beyond its frame.
    pub shortened: bool,
    /// Whether more fragments follow.
    pub fragmented: bool,
    pub identification: u16,
    /// Routers that it may still pass: by it packets of another sender are known.
    pub hop_limit: u8,
}

/// Decodes an IP packet of which `bytes` were captured and which was `packet_bytes` long, inside
/// `depth` others.
#[inline]
pub(crate) fn decode(
    bytes: &[u8],
    packet_bytes: usize,
    depth: u8,
    parts: &mut Parts,
) -> Result<Decoded, NoSegment> {
    match bytes.first().map(|first| first >> 4) {
        Some(4) => ipv4(bytes, packet_bytes, depth, parts),
        Some(6) => ipv6(bytes, packet_bytes, depth, parts),
        Some(_) => Err(NoSegment::Malformed),
        None => Err(NoSegment::Cut),
    }
}

#[inline]
fn ipv4(
    bytes: &[u8],
    packet_bytes: usize,
    depth: u8,
    parts: &mut Parts,
) -> Result<Decoded, NoSegment> {
    let header: &[u8; IPV4_HEADER_BYTES] = bytes.first_chunk().ok_or(NoSegment::Cut)?;
    let header_bytes = usize::from(header[0] & 0xf) * 4;
    if header_bytes < IPV4_HEADER_BYTES {
        return Err(NoSegment::Malformed);
    }
    let total_bytes = match usize::from(u16::from_be_bytes([header[2], header[3]])) {
        // A superframe above 64 KiB (BIG TCP) has no length; the frame's own is what is left.
        0 => packet_bytes,
        // A frame may be padded. Where it is shorter than its packet, a writer has lost its length
        // (anonymisers, filters): what was on the wire is all that is known.
        total => total.min(packet_bytes),
    };
    if total_bytes < header_bytes {
        return Err(NoSegment::Malformed);
    }
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    if fragment & 0x1fff != 0 {
        return Err(NoSegment::Fragment);
    }
    let rest = bytes.get(header_bytes..).ok_or(NoSegment::Cut)?;
    let payload_bytes = total_bytes - header_bytes;
    match header[9] {
        PROTOCOL_TCP => {
            let packet = ipv4_packet(header, payload_bytes, packet_bytes);
            tcp::decode(rest, &packet, &mut parts.segment)
        }
        PROTOCOL_ICMP => {
            let sender = Ipv4Addr::new(header[12], header[13], header[14], header[15]);
            let reason = icmp::reason_v4(rest)?;
            icmp::decode(rest, reason, sender.into(), &mut parts.complaint)
        }
        other => {
            let packet = ipv4_packet(header, payload_bytes, packet_bytes);
            behind(other, rest, &packet, depth, parts)
        }
    }
}

/// Returns what the header of IPv4 says of a packet of so many bytes behind it, in a frame with room for
/// `packet_bytes`.
///
/// Always inlined, and for TCP not made before it is known to be that: all of it then stays in registers until it is
/// where it belongs.
#[inline(always)]
fn ipv4_packet(
    header: &[u8; IPV4_HEADER_BYTES],
    payload_bytes: usize,
    packet_bytes: usize,
) -> Packet {
    Packet {
        addresses: Addresses::V4 {
            source: u32::from_be_bytes([header[12], header[13], header[14], header[15]]),
            target: u32::from_be_bytes([header[16], header[17], header[18], header[19]]),
        },
        payload_bytes,
        congestion_marked: header[1] & 3 == 3,
        shortened: usize::from(u16::from_be_bytes([header[2], header[3]])) > packet_bytes,
        fragmented: header[6] & 0x20 != 0,
        identification: u16::from_be_bytes([header[4], header[5]]),
        hop_limit: header[8],
    }
}

/// Decodes what is neither TCP nor ICMP: a tunnel, or UDP that is none.
#[cold]
fn behind(
    protocol: u8,
    rest: &[u8],
    packet: &Packet,
    depth: u8,
    parts: &mut Parts,
) -> Result<Decoded, NoSegment> {
    match tunnel::decode(protocol, rest, packet.payload_bytes, depth, parts) {
        Err(NoSegment::NotTcp) if protocol == PROTOCOL_UDP => {
            udp::decode(rest, packet, &mut parts.datagram)
        }
        decoded => decoded,
    }
}

#[inline]
fn ipv6(
    bytes: &[u8],
    packet_bytes: usize,
    depth: u8,
    parts: &mut Parts,
) -> Result<Decoded, NoSegment> {
    let header: &[u8; IPV6_HEADER_BYTES] = bytes.first_chunk().ok_or(NoSegment::Cut)?;
    let total_bytes = match usize::from(u16::from_be_bytes([header[4], header[5]])) {
        // A jumbogram: its length is in an option, and the frame's own says the same.
        0 => packet_bytes,
        payload => (payload + IPV6_HEADER_BYTES).min(packet_bytes),
    };
    let address = |at: usize| -> Result<u128, NoSegment> {
        let bytes = header[at..].first_chunk().ok_or(NoSegment::Cut)?;
        Ok(u128::from_be_bytes(*bytes))
    };
    let (source, target) = (address(8)?, address(24)?);
    let traffic_class = (header[0] << 4) | (header[1] >> 4);
    let (protocol, header_bytes, fragmented) = extensions(bytes, header[6])?;
    let payload_bytes = total_bytes
        .checked_sub(header_bytes)
        .ok_or(NoSegment::Malformed)?;
    let packet = Packet {
        addresses: Addresses::V6 { source, target },
        payload_bytes,
        congestion_marked: traffic_class & 3 == 3,
        shortened: usize::from(u16::from_be_bytes([header[4], header[5]])) + IPV6_HEADER_BYTES
            > packet_bytes,
        fragmented,
        identification: 0,
        hop_limit: header[7],
    };
    let rest = bytes.get(header_bytes..).ok_or(NoSegment::Cut)?;
    match protocol {
        PROTOCOL_TCP => tcp::decode(rest, &packet, &mut parts.segment),
        PROTOCOL_ICMPV6 => {
            let sender = packet.addresses.source();
            let reason = icmp::reason_v6(rest)?;
            icmp::decode(rest, reason, sender, &mut parts.complaint)
        }
        other => behind(other, rest, &packet, depth, parts),
    }
}

/// Returns the protocol behind all extension headers, where it begins, and whether this is the
/// first of several fragments.
#[inline]
fn extensions(bytes: &[u8], first: u8) -> Result<(u8, usize, bool), NoSegment> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    const DESTINATION: u8 = 60;
    const MOBILITY: u8 = 135;
    let (mut protocol, mut at, mut fragmented) = (first, IPV6_HEADER_BYTES, false);
    for _ in 0..EXTENSIONS_MAX {
        let length = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY => {
                (usize::from(*bytes.get(at + 1).ok_or(NoSegment::Cut)?) + 1) * 8
            }
            AUTHENTICATION => (usize::from(*bytes.get(at + 1).ok_or(NoSegment::Cut)?) + 2) * 4,
            FRAGMENT => {
                let offset = u16_at(bytes, at + 2).ok_or(NoSegment::Cut)?;
                if offset & 0xfff8 != 0 {
                    return Err(NoSegment::Fragment);
                }
                fragmented = offset & 1 != 0;
                8
            }
            _ => return Ok((protocol, at, fragmented)),
        };
        protocol = *bytes.get(at).ok_or(NoSegment::Cut)?;
        at += length;
    }
    Err(NoSegment::Malformed)
}

/// Reads addresses and the rest of an IP header that an ICMP message quotes.
///
/// Routers may rewrite or cut what they quote, so nothing but the addresses and the protocol is
/// looked at.
pub(crate) fn quoted(bytes: &[u8]) -> Option<(Addresses, &[u8])> {
    match bytes.first()? >> 4 {
        4 => {
            let header_bytes = usize::from(bytes[0] & 0xf) * 4;
            let source = super::u32_at(bytes, 12)?;
            let target = super::u32_at(bytes, 16)?;
            let rest = bytes.get(header_bytes.max(IPV4_HEADER_BYTES)..)?;
            (bytes[9] == PROTOCOL_TCP).then_some((Addresses::V4 { source, target }, rest))
        }
        6 => {
            let source = u128::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
            let target = u128::from_be_bytes(*bytes.get(24..)?.first_chunk()?);
            let (protocol, at, _) = extensions(bytes, *bytes.get(6)?).ok()?;
            let rest = bytes.get(at..)?;
            (protocol == PROTOCOL_TCP).then_some((Addresses::V6 { source, target }, rest))
        }
        _ => None,
    }
}
