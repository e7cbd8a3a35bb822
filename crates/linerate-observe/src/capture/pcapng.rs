//! A capture as pcapng (draft-ietf-opsawg-pcapng), as Wireshark and tcpdump read it.

use std::io::{self, Write};

use super::Frame;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const OPTION_IF_NAME: u16 = 2;
const OPTION_IF_TIME_RESOLUTION: u16 = 9;
const OPTION_PACKET_FLAGS: u16 = 2;
const OPTION_RECEIVED: u16 = 4;
const OPTION_DROPPED: u16 = 5;
/// Bytes that a block takes beyond those of its frame, at the most: of a frame 51, of the counts 52.
pub const BLOCK_BYTES_MORE: usize = 64;
/// Nanoseconds: 10⁻⁹.
const RESOLUTION: u8 = 9;

/// Writes one section with one interface.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// The block under construction, kept for its memory.
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the heads. `link_type` is a LINKTYPE of tcpdump.org.
    pub fn new(out: W, link_type: u16, device: &str, snap_bytes: u32) -> io::Result<Self> {
        let mut writer = Self {
            out,
            block: Vec::new(),
        };
        // Version 1.0, of a length that is not known.
        writer.block.extend(BYTE_ORDER.to_ne_bytes());
        writer.block.extend(1_u16.to_ne_bytes());
        writer.block.extend(0_u16.to_ne_bytes());
        writer.block.extend(u64::MAX.to_ne_bytes());
        writer.end(SECTION_HEADER)?;
        writer.block.extend(link_type.to_ne_bytes());
        writer.block.extend([0; 2]);
        writer.block.extend(snap_bytes.to_ne_bytes());
        writer.option(OPTION_IF_NAME, device.as_bytes());
        writer.option(OPTION_IF_TIME_RESOLUTION, &[RESOLUTION]);
        writer.option(0, &[]);
        writer.end(INTERFACE_DESCRIPTION)?;
        Ok(writer)
    }

    /// Returns what is written to.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// Writes a frame, with the VLAN tag that was taken off put back.
    pub fn frame(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        let tag = vlan_tag(frame);
        let tag = tag.as_slice().as_flattened();
        let kept = frame.bytes.len() + tag.len();
        let length = frame.length as usize + tag.len();
        self.block.extend(0_u32.to_ne_bytes());
        self.block
            .extend(((frame.at_unix_ns >> 32) as u32).to_ne_bytes());
        self.block.extend((frame.at_unix_ns as u32).to_ne_bytes());
        self.block.extend((kept as u32).to_ne_bytes());
        self.block.extend((length as u32).to_ne_bytes());
        let (addresses, rest) = frame.bytes.split_at(frame.bytes.len().min(12));
        self.block.extend(addresses);
        self.block.extend(tag);
        self.block.extend(rest);
        self.pad();
        let direction: u32 = if frame.is_outgoing { 2 } else { 1 };
        self.option(OPTION_PACKET_FLAGS, &direction.to_ne_bytes());
        self.option(0, &[]);
        self.end(ENHANCED_PACKET)
    }

    /// Writes how many frames there were and how many of them were dropped, and hands out what was
    /// written to.
    pub fn finish(mut self, at_unix_ns: u64, frames: u64, drops: u64) -> io::Result<W> {
        self.block.extend(0_u32.to_ne_bytes());
        self.block.extend(((at_unix_ns >> 32) as u32).to_ne_bytes());
        self.block.extend((at_unix_ns as u32).to_ne_bytes());
        self.option(OPTION_RECEIVED, &frames.to_ne_bytes());
        self.option(OPTION_DROPPED, &drops.to_ne_bytes());
        self.option(0, &[]);
        self.end(INTERFACE_STATISTICS)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend(code.to_ne_bytes());
        self.block.extend((value.len() as u16).to_ne_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn end(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.block.len() as u32 + 12).to_ne_bytes();
        self.out.write_all(&kind.to_ne_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.block)?;
        self.block.clear();
        self.out.write_all(&length)
    }
}

/// Returns the tag that a frame had on the wire behind both addresses.
fn vlan_tag(frame: &Frame<'_>) -> Option<[u8; 4]> {
    let (kind, tag) = frame.vlan.filter(|_| frame.bytes.len() >= 12)?;
    Some((u32::from(kind) << 16 | u32::from(tag)).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_holds_its_blocks_and_their_lengths_twice() {
        let mut writer = Writer::new(Vec::new(), 1, "eth0", 96).unwrap();
        let frame = Frame {
            at_unix_ns: (7 << 32) + 9,
            length: 1514,
            bytes: b"abcdefABCDEF\x08\x00xyz",
            vlan: Some((0x8100, 5)),
            is_outgoing: true,
        };
        writer.frame(&frame).unwrap();
        let bytes = writer.finish(1, 4, 3).unwrap();
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let mut kinds = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let length = word(at + 4) as usize;
            assert_eq!((word(at + length - 4) as usize, length % 4), (length, 0));
            kinds.push((word(at), at));
            at += length;
        }
        let expected = [
            SECTION_HEADER,
            INTERFACE_DESCRIPTION,
            ENHANCED_PACKET,
            INTERFACE_STATISTICS,
        ];
        assert_eq!(
            kinds.iter().map(|kind| kind.0).collect::<Vec<_>>(),
            expected
        );
        let packet = kinds[2].1;
        assert_eq!((word(packet + 12), word(packet + 16)), (7, 9));
        assert_eq!((word(packet + 20), word(packet + 24)), (21, 1518));
        assert_eq!(
            &bytes[packet + 28..packet + 49],
            b"abcdefABCDEF\x81\x00\x00\x05\x08\x00xyz"
        );
    }
}
