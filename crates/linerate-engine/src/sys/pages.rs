//! Memory that the kernel may go on reading after a call has returned: a mapping of its own.
//!
//! What `vmsplice` and MSG_ZEROCOPY send stays in the hands of the kernel until the peer has
//! acknowledged it. Memory of the heap would be given to somebody else after it was freed, and
//! what that one writes would go over the wire; pages of a mapping that is gone are the kernel's
//! alone.

use std::io;
use std::ptr::{self, NonNull};

use crate::sys::buffer;

/// Bytes of a huge page on x86 and on ARM with pages of 4 KiB.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Constant payload on transparent huge pages, where the kernel gives them.
///
/// The segments that `splice` makes of a huge page have one fragment where small pages need one
/// for each 4 KiB: measured 75 against 66 Gbit/s over loopback.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
    /// The mapping, which begins up to a huge page before `start`.
    mapping: NonNull<libc::c_void>,
    mapping_bytes: usize,
}

// SAFETY: the mapping is owned like the memory of a Box, and reachable only through `self`.
unsafe impl Send for Pages {}
// SAFETY: behind a shared reference it is only read.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps `bytes`, rounded up to whole huge pages, and fills them with the pattern of
    /// [`buffer::PageBuffer`].
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(HUGE_PAGE_BYTES);
        let mapping_bytes = bytes + HUGE_PAGE_BYTES;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing of ours.
        let mapping = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapping_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = NonNull::new(mapping).ok_or(io::ErrorKind::OutOfMemory)?;
        let skip = mapping.cast::<u8>().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: `skip` is less than a huge page, by which the mapping is longer than `bytes`.
        let start = unsafe { mapping.cast::<u8>().add(skip) };
        // SAFETY: the range lies inside the mapping. Advice that the kernel does not take leaves
        // small pages, which work as well.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        let mut pages = Self {
            start,
            bytes,
            mapping,
            mapping_bytes,
        };
        buffer::fill(pages.as_mut_slice());
        Ok(pages)
    }

    /// Returns the bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: `bytes` bytes from `start` on are mapped and initialised (the kernel gives zeroed
        // pages) for as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of that length, and nothing borrows from it any more.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.mapping_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_aligned_and_filled() {
        let pages = Pages::new(HUGE_PAGE_BYTES + 1).unwrap();
        assert_eq!(pages.as_slice().len(), 2 * HUGE_PAGE_BYTES);
        assert_eq!(pages.as_slice().as_ptr() as usize % HUGE_PAGE_BYTES, 0);
        assert_ne!(pages.as_slice()[..4096], pages.as_slice()[4096..8192]);
    }
}
