//! A window that slides over the input: records are looked at where they were read to.
//!
//! Cost: one copy by the kernel, by a thread of the caller's where it has one (docs/performance-notes.md), and for
//! each block one move of the begun record (at most a frame) to before the next block. Of a file that lies in
//! memory the copy takes as long as all that is done with its frames.

use super::block::{Block, Piece};
use super::error::{CaptureError, Fault};
use super::input::NextPiece;

/// The longest record that is believed. The largest that Linux can capture is a superframe of
/// 512 KiB (GSO_MAX_SIZE) with its header; editors of captures write comments of some KiB.
pub(crate) const RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The input, and a window on it.
pub(crate) struct Window<'a> {
    next: NextPiece<'a>,
    /// A block that is not looked at any more.
    spare: Option<Block>,
    /// What is visible, in the block that was read last.
    piece: Piece,
    position: u64,
    ended: bool,
}

impl<'a> Window<'a> {
    /// Returns an empty window at the start of what `next` reads.
    pub(crate) fn new(next: NextPiece<'a>) -> Self {
        Self {
            next,
            spare: None,
            piece: Piece::new(Block::default(), 0, 0),
            position: 0,
            ended: false,
        }
    }

    /// Returns how many bytes were consumed.
    pub(crate) fn position_bytes(&self) -> u64 {
        self.position
    }

    /// Makes at least `wanted` bytes visible, unless the input ends before; says how many are.
    #[inline]
    pub(crate) fn fill(&mut self, wanted: usize) -> Result<usize, CaptureError> {
        if self.piece.len() >= wanted {
            return Ok(self.piece.len());
        }
        self.fill_more(wanted)
    }

    /// Makes `wanted` bytes visible.
    #[inline]
    pub(super) fn need(&mut self, wanted: usize) -> Result<(), Fault> {
        if self.fill(wanted)? < wanted {
            Err(Fault::Cut)
        } else {
            Ok(())
        }
    }

    /// Returns what is visible.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.piece.bytes()
    }

    /// Consumes `count` visible bytes.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        self.piece.consume(count);
        self.position += count as u64;
    }

    #[cold]
    fn fill_more(&mut self, wanted: usize) -> Result<usize, CaptureError> {
        assert!(wanted <= RECORD_BYTES_MAX, "callers check lengths");
        while self.piece.len() < wanted && !self.ended {
            let next = (self.next)(self.spare.take()).map_err(CaptureError::Read)?;
            self.ended = next.is_empty();
            self.spare = Some(self.piece.join(next).into_block());
        }
        Ok(self.piece.len())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, Read, Result};
    use std::sync::{Arc, Mutex};

    use super::super::block::{BLOCK_BYTES, HEAD_BYTES, PAGE_BYTES};
    use super::super::input::Input;
    use super::*;

    /// Gives at most so many bytes at once and fails behind the last, if it is to; notes where in their pages they
    /// went.
    #[derive(Default)]
    struct Pieces {
        all: Vec<u8>,
        given: usize,
        most: usize,
        fails: bool,
        places: Arc<Mutex<Vec<(usize, usize)>>>,
    }

    fn window_of(pieces: Pieces) -> Window<'static> {
        Window::new(Input::new(Box::new(pieces)).when_wanted())
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            let rest = &self.all[self.given..];
            let count = self.most.min(buffer.len()).min(rest.len());
            if count == 0 && self.fails {
                return Err(Error::other("gone"));
            }
            buffer[..count].copy_from_slice(&rest[..count]);
            self.given += count;
            let mut places = self.places.lock().expect("nobody panicked");
            places.push((buffer.as_ptr().addr(), count));
            Ok(count)
        }
    }

    /// Reads records of these lengths from pieces of these; each must be what it was.
    fn check(record_bytes: &[usize], most: usize) {
        let total: usize = record_bytes.iter().sum();
        let input: Vec<u8> = (0..total as u32)
            .map(|at| (at.wrapping_mul(at) >> 7) as u8)
            .collect();
        let places = Arc::default();
        let mut window = window_of(Pieces {
            all: input.clone(),
            most,
            places: Arc::clone(&places),
            ..Pieces::default()
        });
        let mut at = 0;
        for &bytes in record_bytes {
            assert!(window.fill(bytes).expect("memory is read") >= bytes);
            assert_eq!(&window.bytes()[..bytes], &input[at..at + bytes]);
            window.consume(bytes);
            at += bytes;
            assert_eq!(window.position_bytes(), at as u64);
        }
        assert_eq!(window.fill(1).expect("memory is read"), 0);
        let mut read = 0;
        for (place, count) in places.lock().expect("nobody panicked").iter() {
            assert_eq!(place % PAGE_BYTES, read % PAGE_BYTES, "byte {read}");
            read += count;
        }
        assert_eq!(read, total);
    }

    #[test]
    fn records_are_whole_wherever_blocks_and_pieces_end() {
        let small: Vec<usize> = (0..3000).map(|at| 60 + at % 1500).collect();
        for most in [usize::MAX, 65_536, 4099, 777, 1] {
            check(&small[..small.len().min(most.saturating_mul(100))], most);
        }
        for most in [usize::MAX, 65_536, 4099, 777] {
            let large = [28, RECORD_BYTES_MAX, 1514, 700_000, 1, RECORD_BYTES_MAX];
            check(&large, most);
        }
        let around = [HEAD_BYTES * 2, BLOCK_BYTES, BLOCK_BYTES + 1, 5];
        check(&around, usize::MAX);
    }

    #[test]
    fn what_was_read_before_a_failure_is_seen() {
        let mut window = window_of(Pieces {
            all: vec![7; 5000],
            most: 1000,
            fails: true,
            ..Pieces::default()
        });
        for _ in 0..5 {
            assert!(window.fill(1000).expect("it is there") >= 1000);
            window.consume(1000);
        }
        let failed = window.fill(1).expect_err("it fails");
        assert!(matches!(failed, CaptureError::Read(error) if error.to_string() == "gone"));
    }
}
