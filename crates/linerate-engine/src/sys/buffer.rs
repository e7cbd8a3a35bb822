//! Page-aligned memory for payload, resident before the first byte moves.

/// Bytes of a page on every platform that we run on; larger pages only align better.
pub(super) const PAGE_BYTES: usize = 4096;

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// A page-aligned run of bytes, every page written once.
///
/// A page that was never written is the kernel's one shared zero page when it is read: sending
/// from it would read the same 4 KiB from the L1 cache for ever and flatter the result.
pub(crate) struct PageBuffer {
    pages: Vec<Page>,
    bytes: usize,
}

impl PageBuffer {
    /// Returns `bytes` bytes of a pattern that neither compresses nor deduplicates well.
    pub(crate) fn new(bytes: usize) -> Self {
        let pages = vec![Page([0; PAGE_BYTES]); bytes.div_ceil(PAGE_BYTES).max(1)];
        let mut buffer = Self { pages, bytes };
        fill(buffer.as_mut_slice());
        buffer
    }

    /// Returns how many bytes there are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: `pages` owns at least `bytes` initialised bytes in one allocation (a Page is
        // exactly its array, size equals alignment), borrowed for as long as `self` is.
        unsafe { std::slice::from_raw_parts(self.pages.as_ptr().cast(), self.bytes) }
    }

    /// Returns the bytes for writing.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pages.as_mut_ptr().cast(), self.bytes) }
    }
}

/// Writes a pattern that neither compresses nor deduplicates well.
pub(super) fn fill(bytes: &mut [u8]) {
    // xorshift64 (Marsaglia 2003): eight bytes a step, any non-zero seed.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for word in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_ne_bytes()[..word.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_of_the_length_asked_for() {
        for bytes in [1, 4095, 4096, 4097, 128 << 10] {
            let mut buffer = PageBuffer::new(bytes);
            assert_eq!(buffer.as_slice().len(), bytes);
            assert_eq!(buffer.as_mut_slice().len(), bytes);
            assert_eq!(buffer.as_slice().as_ptr() as usize % PAGE_BYTES, 0);
        }
        let buffer = PageBuffer::new(8192);
        assert_ne!(buffer.as_slice()[..4096], buffer.as_slice()[4096..]);
    }
}
