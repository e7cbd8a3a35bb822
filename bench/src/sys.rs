//! The calls of the probes that no safe crate wraps as they need them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Size of a huge page here; elsewhere the advice is simply for nothing.
const HUGE_PAGE: usize = 2 << 20;

/// Returns memory that lives as long as the program, on a huge page where the kernel has one.
pub fn huge_buffer(bytes: usize) -> io::Result<&'static mut [u8]> {
    let whole = bytes.next_multiple_of(HUGE_PAGE) + HUGE_PAGE;
    // SAFETY: an anonymous private mapping at an address of the kernel's choice touches nothing
    // that exists; the result is checked below.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            whole,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = start.cast::<u8>();
    let skip = start.align_offset(HUGE_PAGE);
    // SAFETY: `skip` is below HUGE_PAGE, which the mapping is longer than the aligned part.
    let aligned = unsafe { start.add(skip) };
    // SAFETY: the range lies in the mapping; the advice changes no content. Its failure costs speed
    // only, so it is not looked at.
    unsafe { libc::madvise(aligned.cast(), whole - HUGE_PAGE, libc::MADV_HUGEPAGE) };
    // SAFETY: the range lies in a mapping of ours that nobody else knows and nobody unmaps, and is
    // zeroed by the kernel.
    let buffer = unsafe { std::slice::from_raw_parts_mut(aligned, bytes) };
    buffer.fill(7);
    Ok(buffer)
}

/// Datagrams received by one call.
const BATCH: usize = 64;
/// Room for each of them; the probes' datagrams are smaller.
const ROOM: usize = 2048;

/// Room for a batch of datagrams.
pub struct Batch {
    /// What the vectors point at, and the vectors that the headers point at: neither list is
    /// touched again once made, so that its elements stay where they are.
    _room: Vec<[u8; ROOM]>,
    _vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Batch {
    /// Makes the room.
    pub fn new() -> Self {
        let mut room = vec![[0; ROOM]; BATCH];
        let vectors = room.iter_mut().map(|room| libc::iovec {
            iov_base: room.as_mut_ptr().cast(),
            iov_len: ROOM,
        });
        let mut vectors: Vec<libc::iovec> = vectors.collect();
        let headers = vectors.iter_mut().map(|vector| {
            // SAFETY: a header of zeros is a valid one: no name, no vectors, no control.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header
        });
        Self {
            headers: headers.collect(),
            _vectors: vectors,
            _room: room,
        }
    }

    /// Waits for a datagram and takes those that are there; returns how many.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        // SAFETY: BATCH headers, each with one vector, each vector with ROOM bytes, all of them on
        // the heap and owned by `self`, which outlives the call; the kernel changes only lengths
        // and flags of the headers. No timeout is given.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }
}
