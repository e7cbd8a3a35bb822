//! A window that slides over the input: records are looked at where they were read to.
//!
//! Cost: one copy by the kernel, and for each block one move of the begun record (at most a frame) to
//! before the next block: 8 to 13 GB/s here (docs/performance-notes.md). Of a file that lies in memory the
//! copy is what takes longest, and where it goes decides how long: blocks of the input are read to the
//! beginning of a page, since a destination that lies 1 to 63 bytes further in its page than the source
//! takes three times as long. Mapping the file instead took longer than the copy, for its faults, and would
//! not be safe: a file that is cut while it is mapped kills the process.

use std::io::Read;

use super::error::CaptureError;

/// Bytes of the input that are read to one place: system calls are one in 680 full-size frames. Smaller
/// blocks stay in the second-level cache and take longer all the same: 12 % with a quarter of it.
const BLOCK_BYTES: usize = 1024 * 1024;

/// A page of the kernel.
const PAGE_BYTES: usize = 4096;

/// Room before the block for a record that began in the one before; more is made for longer ones.
const HEAD_BYTES: usize = 64 * 1024;

/// The longest record that is believed. The largest that Linux can capture is a superframe of
/// 512 KiB (GSO_MAX_SIZE) with its header; editors of captures write comments of some KiB.
pub(crate) const RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The input, and a window on it.
pub(crate) struct Window<'a> {
    input: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    /// Where blocks of the input are read to.
    block: usize,
    start: usize,
    end: usize,
    position: u64,
    ended: bool,
}

impl<'a> Window<'a> {
    /// Returns an empty window at the start of `input`.
    pub(crate) fn new(input: Box<dyn Read + 'a>) -> Self {
        let (buffer, block) = room(HEAD_BYTES);
        Self {
            input,
            buffer,
            block,
            start: block,
            end: block,
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
        if self.end - self.start >= wanted {
            return Ok(self.end - self.start);
        }
        self.fill_more(wanted)
    }

    /// Returns what is visible.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Consumes `count` visible bytes.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
        self.position += count as u64;
    }

    #[cold]
    fn fill_more(&mut self, wanted: usize) -> Result<usize, CaptureError> {
        assert!(wanted <= RECORD_BYTES_MAX, "callers check lengths");
        while self.end - self.start < wanted && !self.ended {
            if self.end == self.block + BLOCK_BYTES {
                self.begin_block();
            }
            let place = &mut self.buffer[self.end..self.block + BLOCK_BYTES];
            match self.input.read(place) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(CaptureError::Read(error)),
            }
        }
        Ok(self.end - self.start)
    }

    /// Moves what is visible to before the block, which can then be read to once more.
    fn begin_block(&mut self) {
        let visible = self.end - self.start;
        if visible > self.block {
            let (mut buffer, block) = room(visible.next_power_of_two());
            buffer[block - visible..block].copy_from_slice(self.bytes());
            (self.buffer, self.block) = (buffer, block);
        } else {
            let place = self.block - visible;
            self.buffer.copy_within(self.start..self.end, place);
        }
        (self.start, self.end) = (self.block - visible, self.block);
    }
}

/// Returns a buffer, and where in it a block begins that has at least `head_bytes` before it.
fn room(head_bytes: usize) -> (Vec<u8>, usize) {
    let buffer = vec![0; head_bytes + PAGE_BYTES + BLOCK_BYTES];
    let to_page = buffer[head_bytes..].as_ptr().align_offset(PAGE_BYTES);
    (buffer, head_bytes + to_page.min(PAGE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives at most so many bytes at once, and notes where in their pages they went.
    struct Pieces<'a> {
        rest: &'a [u8],
        most: usize,
        places: Vec<(usize, usize)>,
    }

    impl Read for &mut Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.most.min(buffer.len()).min(self.rest.len());
            buffer[..count].copy_from_slice(&self.rest[..count]);
            self.rest = &self.rest[count..];
            self.places.push((buffer.as_ptr().addr(), count));
            Ok(count)
        }
    }

    /// Reads records of these lengths from pieces of these; each must be what it was.
    fn check(record_bytes: &[usize], most: usize) {
        let total: usize = record_bytes.iter().sum();
        let input: Vec<u8> = (0..total as u32)
            .map(|at| (at.wrapping_mul(at) >> 7) as u8)
            .collect();
        let mut pieces = Pieces {
            rest: &input,
            most,
            places: Vec::new(),
        };
        let mut window = Window::new(Box::new(&mut pieces));
        let mut at = 0;
        for &bytes in record_bytes {
            assert!(window.fill(bytes).expect("memory is read") >= bytes);
            assert_eq!(&window.bytes()[..bytes], &input[at..at + bytes]);
            window.consume(bytes);
            at += bytes;
            assert_eq!(window.position_bytes(), at as u64);
        }
        assert_eq!(window.fill(1).expect("memory is read"), 0);
        drop(window);
        let mut read = 0;
        for (place, count) in pieces.places {
            assert_eq!(place % PAGE_BYTES, read % PAGE_BYTES, "byte {read}");
            read += count;
        }
    }

    #[test]
    fn records_are_whole_wherever_blocks_and_pieces_end() {
        let small: Vec<usize> = (0..3000).map(|at| 60 + at % 1500).collect();
        for most in [usize::MAX, 65_536, 4099, 777] {
            check(&small, most);
            check(
                &[28, RECORD_BYTES_MAX, 1514, 700_000, 1, RECORD_BYTES_MAX],
                most,
            );
        }
        check(
            &[HEAD_BYTES * 2, BLOCK_BYTES, BLOCK_BYTES + 1, 5],
            usize::MAX,
        );
    }
}
