//! The input, read block by block.

use std::io::{self, Read};

use super::block::{Block, PAGE_BYTES, Piece};

/// An input, unpacked if it was gzip.
///
/// It is read to where the source lies in its page: a destination that lies 1 to 63 bytes further in its page
/// takes three times as long. Mapping a file instead took longer than the copy, for its faults, and would not be
/// safe: a file that is cut while it is mapped kills the process.
pub struct Input<'a> {
    bytes: Box<dyn Read + Send + 'a>,
    position: usize,
}

/// Reads the next piece of an input, which is empty at the end, and takes a block back that is not looked at any
/// more. Behind the end and a failure it is not asked again.
pub type NextPiece<'a> = Box<dyn FnMut(Option<Block>) -> io::Result<Piece> + 'a>;

impl<'a> Input<'a> {
    pub(super) fn new(bytes: Box<dyn Read + Send + 'a>) -> Self {
        Self { bytes, position: 0 }
    }

    /// Reads once to `block`; the piece is empty at the end.
    ///
    /// # Errors
    ///
    /// As the input has them; it is read again where a signal interrupted it.
    pub fn read(&mut self, mut block: Block) -> io::Result<Piece> {
        let offset = self.position % PAGE_BYTES;
        let count = loop {
            match self.bytes.read(block.place(offset)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.position += count;
        Ok(Piece::new(block, offset, count))
    }

    /// Reads each piece when it is wanted.
    pub fn when_wanted(mut self) -> NextPiece<'a> {
        Box::new(move |spare| self.read(spare.unwrap_or_default()))
    }
}
