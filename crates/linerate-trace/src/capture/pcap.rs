//! The classic format: a header of 24 bytes, then records of 16 bytes and a frame each
//! (draft-ietf-opsawg-pcap).

use super::error::CaptureError;
use super::link::LinkType;
use super::window::{RECORD_BYTES_MAX, Window};
use super::{Endian, Fault, Record};

const HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
/// What kernels with Alexey Kuznetsov's patch of libpcap wrote: 8 more bytes in each record.
const PATCHED_HEADER_BYTES: usize = 24;

/// What the magic number says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    endian: Endian,
    fraction_ns: u64,
    header_bytes: usize,
}

impl Order {
    /// Returns what `magic` says, if it is a magic number of this format.
    pub(crate) fn of(magic: [u8; 4]) -> Option<Self> {
        let (endian, magic) = match magic[0] {
            0xa1 => (Endian::Big, u32::from_be_bytes(magic)),
            _ => (Endian::Little, u32::from_le_bytes(magic)),
        };
        let (fraction_ns, header_bytes) = match magic {
            0xa1b2_c3d4 => (1000, RECORD_HEADER_BYTES),
            0xa1b2_3c4d => (1, RECORD_HEADER_BYTES),
            0xa1b2_cd34 => (1000, PATCHED_HEADER_BYTES),
            _ => return None,
        };
        Some(Self {
            endian,
            fraction_ns,
            header_bytes,
        })
    }
}

/// A file of this format behind its header.
pub(crate) struct Pcap {
    order: Order,
    link: LinkType,
}

impl Pcap {
    /// Reads the header.
    pub(crate) fn open(order: Order, window: &mut Window<'_>) -> Result<Self, CaptureError> {
        window.fill(HEADER_BYTES)?;
        let header = window.bytes();
        if header.len() < HEADER_BYTES {
            return Err(CaptureError::NoHeader);
        }
        let endian = order.endian;
        let version = endian.u16(header, 4).zip(endian.u16(header, 6));
        let network = endian.u32(header, 20);
        let ((major, minor), network) = version.zip(network).ok_or(CaptureError::NoHeader)?;
        if major != 2 {
            return Err(CaptureError::Version {
                format: "pcap",
                major,
                minor,
            });
        }
        window.consume(HEADER_BYTES);
        Ok(Self {
            order,
            // The upper half carries the length of frame check sequences.
            link: LinkType((network & 0xffff) as u16),
        })
    }

    /// Finds the next record.
    #[inline]
    pub(crate) fn next_record(&self, window: &mut Window<'_>) -> Result<Option<Record>, Fault> {
        let header_bytes = self.order.header_bytes;
        match window.fill(header_bytes)? {
            0 => return Ok(None),
            visible if visible < header_bytes => return Err(Fault::Cut),
            _ => {}
        }
        let endian = self.order.endian;
        let header = window.bytes();
        let field = |at| endian.u32(header, at).ok_or(Fault::Cut);
        let (seconds, fraction) = (field(0)?, field(4)?);
        let (captured, wire_bytes) = (field(8)? as usize, field(12)?);
        if captured > RECORD_BYTES_MAX - header_bytes {
            return Err(Fault::Wrong("a frame of more than 4 MiB"));
        }
        let whole = header_bytes + captured;
        window.need(whole)?;
        Ok(Some(Record {
            bytes: whole,
            start: header_bytes,
            captured,
            // Some writers leave the length out of frames that they did not cut.
            wire_bytes: wire_bytes.max(captured as u32),
            time_ns: u64::from(seconds) * 1_000_000_000
                + u64::from(fraction) * self.order.fraction_ns,
            link: self.link,
        }))
    }
}
