//! ICMP messages about a TCP connection: a segment was too big for a link of its path, or did not
//! get through at all.

use std::net::IpAddr;

use super::ip::{self, Addresses};
use super::{Decoded, NoSegment, u16_at, u32_at};

/// What a router or host says of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Complaint {
    /// From where to where the segment went.
    pub addresses: Addresses,
    /// The segment's sender's port.
    pub source_port: u16,
    /// The segment's receiver's port.
    pub target_port: u16,
    pub reason: Reason,
    /// Who says so.
    pub sender: Option<IpAddr>,
}

/// Why a segment did not get through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Reason {
    /// It is too big for the next link, which carries so many bytes; zero from routers older than
    /// RFC 1191.
    TooBig(u32),
    /// There is no way to its network.
    #[default]
    NoWay,
    /// There is a way, but the host is not there.
    NoHost,
    /// An administrator does not want it.
    Prohibited,
    /// Nothing listens at the port.
    Port,
    /// The host does not speak the protocol.
    Protocol,
    /// It passed as many routers as its sender allowed.
    HopLimit,
}

/// Returns what an ICMP message of IPv4 says (RFC 792, RFC 1191, RFC 1122, RFC 1812).
#[cold]
pub(crate) fn reason_v4(bytes: &[u8]) -> Result<Reason, NoSegment> {
    const UNREACHABLE: u8 = 3;
    const TIME_EXCEEDED: u8 = 11;
    Ok(match bytes {
        [UNREACHABLE, 4, ..] => Reason::TooBig(u32::from(u16_at(bytes, 6).ok_or(NoSegment::Cut)?)),
        [UNREACHABLE, 9 | 10 | 13, ..] => Reason::Prohibited,
        [UNREACHABLE, 1 | 7 | 8 | 12, ..] => Reason::NoHost,
        [UNREACHABLE, 2, ..] => Reason::Protocol,
        [UNREACHABLE, 3, ..] => Reason::Port,
        [UNREACHABLE, ..] => Reason::NoWay,
        [TIME_EXCEEDED, 0, ..] => Reason::HopLimit,
        _ => return Err(NoSegment::NotTcp),
    })
}

/// Returns what an ICMP message of IPv6 says (RFC 4443).
#[cold]
pub(crate) fn reason_v6(bytes: &[u8]) -> Result<Reason, NoSegment> {
    const UNREACHABLE: u8 = 1;
    const PACKET_TOO_BIG: u8 = 2;
    const TIME_EXCEEDED: u8 = 3;
    Ok(match bytes {
        [PACKET_TOO_BIG, ..] => Reason::TooBig(u32_at(bytes, 4).ok_or(NoSegment::Cut)?),
        [UNREACHABLE, 1 | 5 | 6, ..] => Reason::Prohibited,
        [UNREACHABLE, 3, ..] => Reason::NoHost,
        [UNREACHABLE, 4, ..] => Reason::Port,
        [UNREACHABLE, ..] => Reason::NoWay,
        [TIME_EXCEEDED, 0, ..] => Reason::HopLimit,
        _ => return Err(NoSegment::NotTcp),
    })
}

/// Decodes what an ICMP message is about: all quote the packet from the ninth byte on, and at least the first eight
/// bytes of TCP.
#[cold]
pub(crate) fn decode(
    bytes: &[u8],
    reason: Reason,
    sender: IpAddr,
    complaint: &mut Complaint,
) -> Result<Decoded, NoSegment> {
    const HEADER_BYTES: usize = 8;
    let packet = bytes.get(HEADER_BYTES..).ok_or(NoSegment::Cut)?;
    let (addresses, segment) = ip::quoted(packet).ok_or(NoSegment::NotTcp)?;
    let ports = u16_at(segment, 0).zip(u16_at(segment, 2));
    let (source_port, target_port) = ports.ok_or(NoSegment::Cut)?;
    *complaint = Complaint {
        addresses,
        source_port,
        target_port,
        reason,
        sender: Some(sender),
    };
    Ok(Decoded::Complaint)
}
