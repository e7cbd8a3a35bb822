//! Blocks of the input, read when they are wanted or ahead by a thread.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of the input that are read to one place: a system call for 340 full-size frames. What is copied to lines that
/// are in the second-level cache takes a fifth longer than to others, so that all blocks together are larger than it.
pub(super) const BLOCK_BYTES: usize = 512 * 1024;

/// A page of the kernel.
pub(super) const PAGE_BYTES: usize = 4096;

/// Room before a block for a record that began in the one before.
pub(super) const HEAD_BYTES: usize = 64 * 1024;

/// Blocks beside the one that is looked at: one that is read to, and two for what either is early.
const BLOCKS_AHEAD: usize = 3;

/// Room for a block of the input and for what is moved to before it.
pub(super) struct Block {
    bytes: Vec<u8>,
    /// Where the block begins: at the beginning of a page.
    at: usize,
}

impl Block {
    /// Returns room for a block, and for `more_bytes` behind it.
    pub(super) fn new(more_bytes: usize) -> Self {
        let bytes = vec![0; HEAD_BYTES + PAGE_BYTES + BLOCK_BYTES + more_bytes];
        let to_page = bytes[HEAD_BYTES..].as_ptr().align_offset(PAGE_BYTES);
        let at = HEAD_BYTES + to_page.min(PAGE_BYTES);
        Self { bytes, at }
    }
}

/// Bytes of a block.
pub(super) struct Piece {
    block: Block,
    start: usize,
    end: usize,
}

impl Piece {
    /// Returns nothing of `block`.
    pub(super) fn empty(block: Block) -> Self {
        let start = block.at;
        Self {
            block,
            start,
            end: start,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.block.bytes[self.start..self.end]
    }

    /// Takes `count` bytes away from its beginning.
    #[inline]
    pub(super) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.len());
        self.start += count;
    }

    /// Puts the begun record, of at most [`HEAD_BYTES`], to before it.
    pub(super) fn put_before(&mut self, begun: &[u8]) {
        let end = self.start;
        self.start -= begun.len();
        self.block.bytes[self.start..end].copy_from_slice(begun);
    }

    /// Puts more of a record that is longer than [`HEAD_BYTES`] behind it: room doubles, so that each byte is
    /// moved a few times at most.
    pub(super) fn put_behind(&mut self, more: &[u8]) {
        let wanted = self.len() + more.len();
        if self.end + more.len() > self.block.bytes.len() {
            let mut grown = Piece::empty(Block::new(2 * wanted));
            grown.end = grown.start + self.len();
            grown.block.bytes[grown.start..grown.end].copy_from_slice(self.bytes());
            *self = grown;
        }
        self.block.bytes[self.end..self.end + more.len()].copy_from_slice(more);
        self.end += more.len();
    }
}

/// What reads blocks.
///
/// They are read to where the source lies in its page: a destination that lies 1 to 63 bytes further in its page
/// takes three times as long. Mapping a file instead took longer than the copy, for its faults, and would not be
/// safe: a file that is cut while it is mapped kills the process.
struct Filler<'a> {
    input: Box<dyn Read + Send + 'a>,
    position: usize,
}

impl Filler<'_> {
    /// Reads once to `block`; nothing is there at the end.
    fn fill(&mut self, block: Block) -> io::Result<Piece> {
        let mut piece = Piece::empty(block);
        piece.start += self.position % PAGE_BYTES;
        piece.end = piece.start;
        let place = piece.block.at + BLOCK_BYTES;
        let place = &mut piece.block.bytes[piece.start..place];
        let count = loop {
            match self.input.read(place) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        piece.end += count;
        self.position += count;
        Ok(piece)
    }
}

/// Where blocks come from.
pub(super) struct Source<'a>(Kind<'a>);

enum Kind<'a> {
    /// They are read when they are wanted.
    Direct(Filler<'a>, Option<Block>),
    /// A thread reads while the ones before are looked at.
    Ahead {
        filled: Receiver<io::Result<Piece>>,
        empty: Sender<Block>,
    },
}

impl<'a> Source<'a> {
    /// Returns a source that reads `input` when it is asked.
    pub(super) fn new(input: Box<dyn Read + Send + 'a>) -> Self {
        Self(Kind::Direct(Filler { input, position: 0 }, None))
    }

    /// Returns a source that reads `input` ahead, by [`BLOCKS_AHEAD`] blocks at most.
    ///
    /// The thread ends at the end of the input or at its first failure, or with the read behind which nobody asks
    /// any more.
    ///
    /// # Errors
    ///
    /// If there is no thread to be had.
    pub(super) fn ahead(input: Box<dyn Read + Send>) -> io::Result<Source<'static>> {
        let (empty, to_fill) = channel();
        let (fill, filled) = channel();
        for _ in 0..BLOCKS_AHEAD {
            // The other end is here.
            let _ = empty.send(Block::new(0));
        }
        let mut filler = Filler { input, position: 0 };
        let read = move || {
            while let Ok(block) = to_fill.recv() {
                let piece = filler.fill(block);
                let is_last = !piece.as_ref().is_ok_and(|piece| piece.len() > 0);
                if fill.send(piece).is_err() || is_last {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("read ahead".to_owned())
            .spawn(read)?;
        Ok(Source(Kind::Ahead { filled, empty }))
    }

    /// Returns the next bytes; none at the end, behind which it is not asked again.
    pub(super) fn next(&mut self) -> io::Result<Piece> {
        match &mut self.0 {
            Kind::Direct(filler, spare) => {
                filler.fill(spare.take().unwrap_or_else(|| Block::new(0)))
            }
            // Behind the end and a failure nobody asks; any other end of the thread must not pass for the input's.
            Kind::Ahead { filled, .. } => filled
                .recv()
                .unwrap_or_else(|_| Err(io::Error::other("the thread that read it is gone"))),
        }
    }

    /// Takes a block back that is not looked at any more.
    pub(super) fn give_back(&mut self, piece: Piece) {
        match &mut self.0 {
            Kind::Direct(_, spare) => *spare = Some(piece.block),
            Kind::Ahead { empty, .. } => {
                // Behind the end nobody wants it.
                let _ = empty.send(piece.block);
            }
        }
    }
}
