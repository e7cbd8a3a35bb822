//! A descriptor that one thread makes readable to wake another.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::sys::socket;

/// What is rung, and heard by whoever waits for its descriptor.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    /// Returns a bell that is silent.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes two numbers and no pointer.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        socket::check(fd)?;
        // SAFETY: `fd` was just returned as a new descriptor that nothing else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Returns the descriptor that is readable while it rings.
    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Rings; one that rings already goes on.
    pub(crate) fn ring(&self) {
        let one = 1_u64;
        // SAFETY: the kernel reads the 8 bytes of `one`. It fails only where 2^64 rings were not heard.
        let _ = unsafe { libc::write(self.fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// Silences it.
    pub(crate) fn silence(&self) {
        let mut rings = 0_u64;
        // SAFETY: the kernel writes 8 bytes to `rings`. It fails only where nobody has rung.
        let _ = unsafe { libc::read(self.fd(), (&raw mut rings).cast(), size_of::<u64>()) };
    }
}
