//! Memory that is shared with the kernel through a descriptor.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

/// A mapping of a descriptor.
#[derive(Debug)]
pub(super) struct SharedMemory {
    begin: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone on our side; the kernel does not care which thread
// looks at it.
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// Maps the first `bytes` of what `fd` shares.
    pub(super) fn map(fd: &OwnedFd, bytes: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (anywhere, fd) = (std::ptr::null_mut(), fd.as_raw_fd());
        // SAFETY: a new mapping at an address of the kernel's choice, of a descriptor that is open.
        let map = unsafe { libc::mmap(anywhere, bytes, access, libc::MAP_SHARED, fd, 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let begin = NonNull::new(map.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { begin, bytes })
    }

    /// Returns where byte number `at` lies, which is good for as long as `self`.
    pub(super) fn at(&self, at: usize) -> *mut u8 {
        assert!(at < self.bytes, "it is not mapped");
        // SAFETY: inside the mapping, which lives as long as `self`.
        unsafe { self.begin.as_ptr().add(at) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping that `map` made, and no reference into it is left. It cannot
        // fail for a mapping that exists.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.bytes) };
    }
}
