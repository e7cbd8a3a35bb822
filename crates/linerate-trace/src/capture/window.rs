//! A window that slides over the input: records are looked at where they were read to.
//!
//! Cost: one copy by the kernel into a buffer that stays in the second-level cache, and for each
//! fill one move of the begun record (at most a frame): 13 GB/s here (docs/performance-notes.md). Mapping
//! the file instead would save the copy, but not be safe: a file that is cut while it is mapped kills
//! the process.

use std::io::Read;

use super::error::CaptureError;

/// Bytes asked for at once: fits the second-level cache of every server CPU of the last decade,
/// and makes system calls one in 170 full-size frames.
const FILL_BYTES: usize = 256 * 1024;

/// The longest record that is believed. The largest that Linux can capture is a superframe of
/// 512 KiB (GSO_MAX_SIZE) with its header; editors of captures write comments of some KiB.
pub(crate) const RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The input, and a window on it.
pub(crate) struct Window<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    before: u64,
    ended: bool,
}

impl<R: Read> Window<R> {
    /// Returns an empty window at the start of `input`.
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; FILL_BYTES],
            start: 0,
            end: 0,
            before: 0,
            ended: false,
        }
    }

    /// Returns how many bytes were consumed.
    pub(crate) fn position_bytes(&self) -> u64 {
        self.before + self.start as u64
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
    }

    #[cold]
    fn fill_more(&mut self, wanted: usize) -> Result<usize, CaptureError> {
        assert!(wanted <= RECORD_BYTES_MAX, "callers check lengths");
        self.buffer.copy_within(self.start..self.end, 0);
        self.before += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted.next_power_of_two(), 0);
        }
        while self.end < wanted && !self.ended {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(CaptureError::Read(error)),
            }
        }
        Ok(self.end)
    }
}
