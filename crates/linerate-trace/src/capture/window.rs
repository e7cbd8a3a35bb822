//! A window that slides over the input: records are looked at where they were read to.
//!
//! Cost: one copy by the kernel, by a thread of its own where there is one (docs/performance-notes.md), and for
//! each block one move of the begun record (at most a frame) to before the next block. Of a file that lies in
//! memory the copy takes as long as all that is done with its frames.

use super::block::{Block, HEAD_BYTES, Piece, Source};
use super::error::CaptureError;

/// The longest record that is believed. The largest that Linux can capture is a superframe of
/// 512 KiB (GSO_MAX_SIZE) with its header; editors of captures write comments of some KiB.
pub(crate) const RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The input, and a window on it.
pub(crate) struct Window<'a> {
    source: Source<'a>,
    /// What is visible, in the block that was read last.
    piece: Piece,
    position: u64,
    ended: bool,
}

impl<'a> Window<'a> {
    /// Returns an empty window at the start of what `source` reads.
    pub(crate) fn new(source: Source<'a>) -> Self {
        Self {
            source,
            piece: Piece::empty(Block::new(0)),
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
            let mut next = self.source.next().map_err(CaptureError::Read)?;
            if next.len() == 0 {
                self.ended = true;
            } else if self.piece.len() <= HEAD_BYTES {
                next.put_before(self.piece.bytes());
                std::mem::swap(&mut self.piece, &mut next);
            } else {
                self.piece.put_behind(next.bytes());
            }
            self.source.give_back(next);
        }
        Ok(self.piece.len())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, Read};
    use std::sync::{Arc, Mutex};

    use super::super::block::{BLOCK_BYTES, PAGE_BYTES};
    use super::*;

    /// Gives at most so many bytes at once and fails behind the last, if it is to; notes where in their pages they
    /// went.
    struct Pieces {
        rest: Vec<u8>,
        most: usize,
        fails: bool,
        places: Arc<Mutex<Vec<(usize, usize)>>>,
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.most.min(buffer.len()).min(self.rest.len());
            if count == 0 && self.fails {
                return Err(Error::other("gone"));
            }
            buffer[..count].copy_from_slice(&self.rest[..count]);
            self.rest.drain(..count);
            let mut places = self.places.lock().expect("nobody panicked");
            places.push((buffer.as_ptr().addr(), count));
            Ok(count)
        }
    }

    /// Reads records of these lengths from pieces of these; each must be what it was.
    fn check(record_bytes: &[usize], most: usize, is_ahead: bool) {
        let total: usize = record_bytes.iter().sum();
        let input: Vec<u8> = (0..total as u32)
            .map(|at| (at.wrapping_mul(at) >> 7) as u8)
            .collect();
        let places = Arc::default();
        let pieces = Box::new(Pieces {
            rest: input.clone(),
            most,
            fails: false,
            places: Arc::clone(&places),
        });
        let mut window = Window::new(match is_ahead {
            true => Source::ahead(pieces).expect("a thread"),
            false => Source::new(pieces),
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
        for is_ahead in [false, true] {
            for most in [usize::MAX, 65_536, 4099, 777] {
                check(&small, most, is_ahead);
            }
            for most in [usize::MAX, 65_536, 4099] {
                let large = [28, RECORD_BYTES_MAX, 1514, 700_000, 1, RECORD_BYTES_MAX];
                check(&large, most, is_ahead);
            }
            let around = [HEAD_BYTES * 2, BLOCK_BYTES, BLOCK_BYTES + 1, 5];
            check(&around, usize::MAX, is_ahead);
        }
    }

    #[test]
    fn what_was_read_before_a_failure_is_seen() {
        for is_ahead in [false, true] {
            let pieces = Box::new(Pieces {
                rest: vec![7; 5000],
                most: 1000,
                fails: true,
                places: Arc::default(),
            });
            let mut window = Window::new(match is_ahead {
                true => Source::ahead(pieces).expect("a thread"),
                false => Source::new(pieces),
            });
            for _ in 0..5 {
                assert!(window.fill(1000).expect("it is there") >= 1000);
                window.consume(1000);
            }
            let failed = window.fill(1).expect_err("it fails");
            assert!(matches!(failed, CaptureError::Read(error) if error.to_string() == "gone"));
        }
    }

    #[test]
    fn who_does_not_read_on_ends_the_thread() {
        let places = Arc::default();
        let pieces = Box::new(Pieces {
            rest: vec![7; 50 * BLOCK_BYTES],
            most: 1000,
            fails: false,
            places: Arc::clone(&places),
        });
        let mut window = Window::new(Source::ahead(pieces).expect("a thread"));
        assert!(window.fill(1).expect("it is there") >= 1);
        drop(window);
        // The thread drops its end of the input when it ends.
        while Arc::strong_count(&places) > 1 {
            std::thread::yield_now();
        }
        assert!(places.lock().expect("nobody panicked").len() < 100);
    }
}
