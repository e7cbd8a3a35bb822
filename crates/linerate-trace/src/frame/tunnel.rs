//! Packets inside packets: IP in IP, GRE and ERSPAN, VXLAN with and without its generic extension, GENEVE,
//! GTP-U, L2TP, Teredo, EtherIP, MPLS in IP, GRE and UDP. What is inside is what connections are made of; what is known to carry packets
//! and is not followed is named.

use super::ip::PROTOCOL_UDP;
use super::link;
use super::{Decoded, NoSegment, Parts, ip, u16_at};
use crate::capture::LinkType;

/// Packets in packets that are looked through.
const DEPTH_MAX: u8 = 4;

const PROTOCOL_IPV4: u8 = 4;
const PROTOCOL_IPV6: u8 = 41;
const PROTOCOL_GRE: u8 = 47;
const PROTOCOL_ESP: u8 = 50;
const PROTOCOL_AH: u8 = 51;
const PROTOCOL_ETHERIP: u8 = 97;
const PROTOCOL_IPCOMP: u8 = 108;
const PROTOCOL_L2TP: u8 = 115;
const PROTOCOL_MPLS: u8 = 137;

const ETHERTYPE_BRIDGING: u16 = 0x6558;
const ETHERTYPE_ERSPAN: u16 = 0x88be;

const OTHER_GRE: &str = "GRE of other protocols";

/// What a tunnel carries, and where it begins.
enum Inner {
    Ip(usize),
    Ethernet(usize),
    /// What an ethertype says.
    Typed(u16, usize),
    /// What is not followed.
    Named(&'static str),
}

/// Decodes what is behind an IP header of `protocol`, `wire_bytes` long and inside `depth` others.
#[cold]
pub(crate) fn decode(
    protocol: u8,
    bytes: &[u8],
    wire_bytes: usize,
    depth: u8,
    parts: &mut Parts,
) -> Result<Decoded, NoSegment> {
    if depth >= DEPTH_MAX {
        return Err(match protocol {
            PROTOCOL_IPV4 | PROTOCOL_IPV6 | PROTOCOL_GRE => {
                NoSegment::Undecoded("packets more than four deep in others")
            }
            _ => NoSegment::NotTcp,
        });
    }
    let inner = match protocol {
        PROTOCOL_IPV4 | PROTOCOL_IPV6 => Inner::Ip(0),
        PROTOCOL_GRE => gre(bytes).ok_or(NoSegment::Undecoded(OTHER_GRE))?,
        PROTOCOL_UDP => udp(bytes, wire_bytes).ok_or(NoSegment::NotTcp)?,
        PROTOCOL_ESP => return Err(NoSegment::Undecoded("IPsec ESP")),
        PROTOCOL_AH => return Err(NoSegment::Undecoded("IPsec AH")),
        // Version 3 and nothing else.
        PROTOCOL_ETHERIP if bytes.first_chunk() == Some(&[0x30, 0]) => Inner::Ethernet(2),
        PROTOCOL_ETHERIP => return Err(NoSegment::Undecoded("Ethernet in IP (EtherIP)")),
        PROTOCOL_IPCOMP => return Err(NoSegment::Undecoded("compressed IP (IPComp)")),
        PROTOCOL_L2TP => return Err(NoSegment::Undecoded("L2TP")),
        PROTOCOL_MPLS => Inner::Typed(link::ETHERTYPE_MPLS, 0),
        _ => return Err(NoSegment::NotTcp),
    };
    let found = start_of(&inner, bytes).and_then(|at| {
        let packet = bytes.get(at..).unwrap_or_default();
        ip::decode(packet, wire_bytes.saturating_sub(at), depth + 1, parts)
    });
    found.map_err(|other| match other {
        NoSegment::NotIp if matches!(inner, Inner::Typed(..)) && protocol == PROTOCOL_GRE => {
            NoSegment::Undecoded(OTHER_GRE)
        }
        // Bridges carry much that is no IP.
        NoSegment::NotIp => NoSegment::NotTcp,
        // What looked like a tunnel by its port was none, as is what nothing cut and is too short all the same.
        NoSegment::Malformed if protocol == PROTOCOL_UDP => NoSegment::NotTcp,
        NoSegment::Cut if protocol == PROTOCOL_UDP && bytes.len() >= wire_bytes => {
            NoSegment::NotTcp
        }
        other => other,
    })
}

/// Returns where the IP header begins.
fn start_of(inner: &Inner, bytes: &[u8]) -> Result<usize, NoSegment> {
    match *inner {
        Inner::Ip(at) => Ok(at),
        Inner::Typed(ethertype, at) => link::behind_type(ethertype, bytes, at),
        Inner::Named(what) => Err(NoSegment::Undecoded(what)),
        Inner::Ethernet(at) => {
            let frame = bytes.get(at..).ok_or(NoSegment::Cut)?;
            Ok(at + link::header_bytes(LinkType::ETHERNET, frame)?)
        }
    }
}

/// GRE (RFC 2784, RFC 2890), with ERSPAN of type I, II and III in it.
fn gre(bytes: &[u8]) -> Option<Inner> {
    const CHECKSUM: u16 = 0x8000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    /// Routing, recursion and version: of other protocols than this.
    const FOREIGN: u16 = 0x4f07;
    const ETHERTYPE_ERSPAN_III: u16 = 0x22eb;
    let (flags, ethertype) = u16_at(bytes, 0).zip(u16_at(bytes, 2))?;
    if flags & FOREIGN != 0 {
        return None;
    }
    let options = (flags & (CHECKSUM | KEY | SEQUENCE)).count_ones() as usize;
    let at = 4 + 4 * options;
    match ethertype {
        ETHERTYPE_BRIDGING => Some(Inner::Ethernet(at)),
        // Type II has a sequence number and eight bytes, type I neither.
        ETHERTYPE_ERSPAN if flags & SEQUENCE == 0 => Some(Inner::Ethernet(at)),
        ETHERTYPE_ERSPAN => Some(Inner::Ethernet(at + 8)),
        ETHERTYPE_ERSPAN_III => {
            let has_more = bytes.get(at + 11)? & 1 != 0;
            Some(Inner::Ethernet(at + if has_more { 20 } else { 12 }))
        }
        other => Some(Inner::Typed(other, at)),
    }
}

/// The header of UDP.
const HEADER_BYTES: usize = 8;

/// VXLAN (RFC 7348) and its generic extension, GENEVE (RFC 8926), GTP-U (3GPP TS 29.281), L2TP (RFC 2661),
/// MPLS (RFC 7510) and Teredo (RFC 4380), by their ports.
fn udp(bytes: &[u8], wire_bytes: usize) -> Option<Inner> {
    const VXLAN: u16 = 4789;
    /// What Linux took before VXLAN had a number.
    const VXLAN_OLD: u16 = 8472;
    const GENEVE: u16 = 6081;
    const VXLAN_GPE: u16 = 4790;
    const GTP_U: u16 = 2152;
    const L2TP: u16 = 1701;
    const MPLS: u16 = 6635;
    const TEREDO: u16 = 3544;
    let tunnel = bytes.get(HEADER_BYTES..)?;
    // Of a relay's packets to its client the port is their source.
    if u16_at(bytes, 0)? == TEREDO {
        return teredo(bytes, wire_bytes);
    }
    match u16_at(bytes, 2)? {
        TEREDO => teredo(bytes, wire_bytes),
        VXLAN | VXLAN_OLD => {
            (tunnel.first()? & 0x08 != 0).then_some(Inner::Ethernet(HEADER_BYTES + 8))
        }
        VXLAN_GPE => vxlan_gpe(tunnel),
        L2TP => l2tp(bytes, wire_bytes),
        MPLS => filled(bytes, wire_bytes, link::mpls(bytes, HEADER_BYTES).ok()?),
        GENEVE => {
            let (first, ethertype) = (*tunnel.first()?, u16_at(tunnel, 2)?);
            let at = HEADER_BYTES + 8 + 4 * usize::from(first & 0x3f);
            match ethertype {
                _ if first >> 6 != 0 => None,
                ETHERTYPE_BRIDGING => Some(Inner::Ethernet(at)),
                other => Some(Inner::Typed(other, at)),
            }
        }
        GTP_U => {
            const USER_DATA: u8 = 255;
            let (flags, kind) = (*tunnel.first()?, *tunnel.get(1)?);
            // Version 1, and neither of what lies before the packet but four bytes of options.
            if flags >> 4 != 3 || kind != USER_DATA {
                return None;
            }
            let mut at = 8 + if flags & 7 != 0 { 4 } else { 0 };
            let mut next = if flags & 4 != 0 { *tunnel.get(11)? } else { 0 };
            for _ in 0..4 {
                if next == 0 {
                    return Some(Inner::Ip(HEADER_BYTES + at));
                }
                let length = 4 * usize::from(*tunnel.get(at)?);
                next = *tunnel.get(at + length.checked_sub(1)?)?;
                at += length;
            }
            None
        }
        _ => None,
    }
}

/// IPv6 without a header before it, or with where its sender's packets come from.
fn teredo(bytes: &[u8], wire_bytes: usize) -> Option<Inner> {
    const ORIGIN_BYTES: usize = 8;
    let at = match bytes.get(HEADER_BYTES..)? {
        [0, 0, ..] => HEADER_BYTES + ORIGIN_BYTES,
        _ => HEADER_BYTES,
    };
    let is_ipv6 = bytes.get(at)? >> 4 == 6;
    filled(bytes, wire_bytes, at).filter(|_| is_ipv6)
}

/// VXLAN that says what it carries (draft-ietf-nvo3-vxlan-gpe-13).
fn vxlan_gpe(tunnel: &[u8]) -> Option<Inner> {
    /// Reserved bits, the version, and messages to the tunnel's ends.
    const FOREIGN: u8 = 0xf1;
    const SAYS_PROTOCOL: u8 = 0x04;
    let [flags, 0, 0, protocol, _, _, _, 0] = *tunnel.first_chunk()? else {
        return None;
    };
    let at = HEADER_BYTES + 8;
    match protocol {
        _ if flags & FOREIGN != 0 || flags & SAYS_PROTOCOL == 0 => None,
        1 | 2 => Some(Inner::Ip(at)),
        3 => Some(Inner::Ethernet(at)),
        4 => Some(Inner::Named("network service headers (NSH)")),
        _ => None,
    }
}

/// Data of L2TP, version 2: PPP behind it.
fn l2tp(bytes: &[u8], wire_bytes: usize) -> Option<Inner> {
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    const PRIORITY: u16 = 0x0100;
    const VERSION: u16 = 2;
    let flags = u16_at(bytes, HEADER_BYTES)?;
    // Messages of control have the highest bit.
    if flags & !(LENGTH | SEQUENCE | OFFSET | PRIORITY) != VERSION {
        return None;
    }
    let bytes_if = |flag: u16, count: usize| if flags & flag != 0 { count } else { 0 };
    let mut at = HEADER_BYTES + 6 + bytes_if(LENGTH, 2) + bytes_if(SEQUENCE, 4);
    if flags & OFFSET != 0 {
        at += 2 + usize::from(u16_at(bytes, at)?);
    }
    filled(bytes, wire_bytes, link::ppp(bytes, at).ok()?)
}

/// A packet at `at` whose own length is what is left of its datagram: what stands before it says too little
/// to know it by.
fn filled(bytes: &[u8], wire_bytes: usize, at: usize) -> Option<Inner> {
    const IPV6_HEADER_BYTES: usize = 40;
    let packet = bytes.get(at..)?;
    let packet_bytes = match packet.first()? >> 4 {
        4 => usize::from(u16_at(packet, 2)?),
        _ => usize::from(u16_at(packet, 4)?) + IPV6_HEADER_BYTES,
    };
    (packet_bytes == wire_bytes.checked_sub(at)?).then_some(Inner::Ip(at))
}
