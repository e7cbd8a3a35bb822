//! ICMP messages about a TCP connection: a segment was too big for a link of its path.

use super::ip::{self, Addresses};
use super::{Decoded, NoSegment, u16_at, u32_at};

/// "Fragmentation needed" (RFC 1191) or "packet too big" (RFC 8201).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooBig {
    /// From where to where the segment went.
    pub addresses: Addresses,
    /// The segment's sender's port.
    pub source_port: u16,
    /// The segment's receiver's port.
    pub target_port: u16,
    /// What the next link carries, in bytes; zero from routers older than RFC 1191.
    pub mtu_bytes: u32,
}

/// Decodes an ICMP message of IPv4.
#[cold]
pub(crate) fn decode_v4(bytes: &[u8]) -> Result<Decoded, NoSegment> {
    const UNREACHABLE: u8 = 3;
    const FRAGMENTATION_NEEDED: u8 = 4;
    match bytes {
        [UNREACHABLE, FRAGMENTATION_NEEDED, ..] => {
            let mtu_bytes = u16_at(bytes, 6).ok_or(NoSegment::Cut)?;
            too_big(bytes, u32::from(mtu_bytes))
        }
        _ => Err(NoSegment::NotTcp),
    }
}

/// Decodes an ICMP message of IPv6.
#[cold]
pub(crate) fn decode_v6(bytes: &[u8]) -> Result<Decoded, NoSegment> {
    const PACKET_TOO_BIG: u8 = 2;
    match bytes {
        [PACKET_TOO_BIG, ..] => too_big(bytes, u32_at(bytes, 4).ok_or(NoSegment::Cut)?),
        _ => Err(NoSegment::NotTcp),
    }
}

/// Both quote the packet from the ninth byte on, and at least the first eight bytes of TCP.
fn too_big(bytes: &[u8], mtu_bytes: u32) -> Result<Decoded, NoSegment> {
    const HEADER_BYTES: usize = 8;
    let packet = bytes.get(HEADER_BYTES..).ok_or(NoSegment::Cut)?;
    let (addresses, segment) = ip::quoted(packet).ok_or(NoSegment::NotTcp)?;
    let ports = u16_at(segment, 0).zip(u16_at(segment, 2));
    let (source_port, target_port) = ports.ok_or(NoSegment::Cut)?;
    Ok(Decoded::TooBig(TooBig {
        addresses,
        source_port,
        target_port,
        mtu_bytes,
    }))
}
