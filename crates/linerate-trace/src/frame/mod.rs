//! One frame decoded: link header, IP, TCP. A function of its bytes; nothing is allocated.
//!
//! Cost: everything that is read of a frame lies in its first two cache lines; a segment whose only
//! options are timestamps takes one comparison for them.

/// ICMP that speaks of a TCP connection.
mod icmp;
/// IPv4 and IPv6.
mod ip;
/// What lies before IP.
mod link;
/// The TCP header and its options.
mod tcp;
/// Packets inside packets.
mod tunnel;
/// UDP and what shows of its protocols.
mod udp;

pub(crate) use icmp::{Complaint, Reason};
pub(crate) use ip::Addresses;
pub(crate) use tcp::{Flags, Segment};
pub(crate) use udp::{Asked, Datagram, PORT_NTP, QuicKind, Says};

use crate::capture::LinkType;

/// What a frame is. What it says is in the part of [`Parts`] that is named here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// A TCP segment.
    Tcp,
    /// A datagram of UDP.
    Udp,
    /// An ICMP message that a segment did not get through.
    Complaint,
}

/// Where a frame is decoded to: room for each of what it may be, used again for the next.
///
/// A segment has some 150 bytes. Returned by value it is copied by each function that it passes, right
/// behind the stores that made it, which the processor waits for: an eighth of what a full-size frame
/// costs beside being read.
#[derive(Debug, Default)]
pub struct Parts {
    pub(crate) segment: Segment,
    pub(crate) datagram: Datagram,
    pub(crate) complaint: Complaint,
}

/// Why a frame is not a TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum NoSegment {
    /// Of a link type from which no IP packet can be taken.
    Foreign,
    /// Not IP: ARP, LLDP, spanning tree.
    NotIp,
    /// IP, but neither TCP nor UDP.
    NotTcp,
    /// Packets in packets of a kind that is not decoded, by its name.
    Undecoded(&'static str),
    /// A frame of 802.11 that carries no data: management, control.
    Wireless,
    /// Data of 802.11 that is encrypted.
    Encrypted,
    /// A fragment behind the first, which carries no TCP header.
    Fragment,
    /// The capture cut it before the end of the TCP header.
    Cut,
    /// Its headers contradict themselves or its length.
    Malformed,
}

/// Decodes a frame of `link` that was `wire_bytes` long into `parts`.
#[inline]
pub(crate) fn decode(
    link: LinkType,
    bytes: &[u8],
    wire_bytes: u32,
    parts: &mut Parts,
) -> Result<Decoded, NoSegment> {
    let header_bytes = link::header_bytes(link, bytes)?;
    let packet_bytes = (wire_bytes as usize).saturating_sub(header_bytes);
    let packet = bytes.get(header_bytes..).unwrap_or_default();
    ip::decode(packet, packet_bytes, 0, parts)
}

/// Reads two bytes in network order.
#[inline]
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Reads four bytes in network order.
#[inline]
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
