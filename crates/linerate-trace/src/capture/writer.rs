//! Writes pcapng: one section, one interface with nanoseconds, enhanced packet blocks.
//!
//! Every block is its type, its length, its body padded to four bytes, and its length again, in
//! little endian. What [`super::Reader`] reads back is what was written.

use std::io::{self, Write};

use super::link::LinkType;

/// Writes frames as a capture.
pub struct Writer<W: Write> {
    output: W,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a capture of frames of `link`.
    ///
    /// # Errors
    ///
    /// If `output` cannot be written.
    pub fn new(output: W, link: LinkType) -> io::Result<Self> {
        let mut writer = Self {
            output,
            block: Vec::new(),
        };
        let mut section = Vec::new();
        section.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
        section.extend_from_slice(&1u16.to_le_bytes());
        section.extend_from_slice(&0u16.to_le_bytes());
        // The section's length is not known: it runs to the end.
        section.extend_from_slice(&u64::MAX.to_le_bytes());
        writer.block(0x0a0d_0d0a, &section)?;
        let mut interface = Vec::new();
        interface.extend_from_slice(&link.0.to_le_bytes());
        interface.extend_from_slice(&[0; 2]);
        interface.extend_from_slice(&0u32.to_le_bytes());
        // if_tsresol: 10⁻⁹ s, padded; then the end of options.
        interface.extend_from_slice(&[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        writer.block(1, &interface)?;
        Ok(writer)
    }

    /// Writes one frame that was `wire_bytes` long and of which `bytes` are kept.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn frame(&mut self, time_ns: u64, bytes: &[u8], wire_bytes: u32) -> io::Result<()> {
        let mut body = std::mem::take(&mut self.block);
        body.clear();
        body.extend_from_slice(&0u32.to_le_bytes());
        body.extend_from_slice(&((time_ns >> 32) as u32).to_le_bytes());
        body.extend_from_slice(&(time_ns as u32).to_le_bytes());
        body.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        body.extend_from_slice(&wire_bytes.to_le_bytes());
        body.extend_from_slice(bytes);
        let written = self.block(6, &body);
        self.block = body;
        written
    }

    /// Hands the output back, all of it written.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let padding = body.len().next_multiple_of(4) - body.len();
        let length = (12 + body.len() + padding) as u32;
        self.output.write_all(&kind.to_le_bytes())?;
        self.output.write_all(&length.to_le_bytes())?;
        self.output.write_all(body)?;
        self.output.write_all(&[0; 3][..padding])?;
        self.output.write_all(&length.to_le_bytes())
    }
}
