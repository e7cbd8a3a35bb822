//! Completions of many sockets: an io_uring that receives for all of them at once.
//!
//! 1. Each socket has one receive request that stays (multishot): the kernel receives as payload
//!    comes, without being asked again.
//! 2. It takes a buffer of a ring for it. All buffers of the ring are the same memory, since what
//!    is received is never looked at: the memory stays in the first-level cache, and a buffer is
//!    free again as soon as its completion has been seen.
//! 3. Sockets are registered, so that a request does not look its descriptor up.
//!
//! Sends are not made here. A send over TCP costs 3 µs and the call around it 0.1 µs, so batching
//! them gains little, and each would leave later than the instant that is noted for it.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use io_uring::types::{BufRingEntry, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::sys::buffer::PageBuffer;

/// Requests that are handed to the kernel together; more go in several calls.
const REQUESTS: u32 = 256;
/// Completions that may wait to be seen, at least and at most (IORING_MAX_CQ_ENTRIES is 65 536).
const COMPLETIONS_MIN: usize = 1024;
const COMPLETIONS_MAX: usize = 32_768;
/// Buffers of the ring: receives between two looks at the completions. With fewer than are needed
/// a receive ends with ENOBUFS and is asked for anew.
const BUFFERS: u16 = 1024;
/// In a request's number: that it waits for room to send, and not for payload.
const WRITABLE: u64 = 1 << 32;

/// An io_uring that receives for the sockets of a worker.
pub(crate) struct Ring {
    /// First, so that it is dropped first: from then on the kernel writes to the others no more.
    ring: IoUring,
    /// BUFFERS entries of a buffer ring.
    entries: PageBuffer,
    /// The memory of every buffer.
    room: PageBuffer,
    tail: u16,
}

/// What has happened to a socket, known by its index.
#[derive(Debug)]
pub(crate) enum RingEvent {
    /// So much was received, 0 being the end of the stream; `again` says that the receive request
    /// is over and must be made anew, if anything is to be received.
    Received {
        at: usize,
        received: io::Result<usize>,
        again: bool,
    },
    /// There is room to send, or an error that a send call will tell.
    Writable { at: usize },
}

impl Ring {
    /// Returns a ring for `sockets`, which are known by their index; a receive call takes at most
    /// `room_bytes`. Fails where the kernel does not have it, or does not allow it: Linux before
    /// 6.1, `kernel.io_uring_disabled`, a seccomp filter of a container.
    pub(crate) fn new(sockets: &[RawFd], room_bytes: usize) -> io::Result<Self> {
        let ring = build(2 * sockets.len())?;
        ring.submitter().register_files(sockets)?;
        let mut ring = Self {
            ring,
            entries: PageBuffer::new(usize::from(BUFFERS) * size_of::<BufRingEntry>()),
            room: PageBuffer::new(room_bytes.max(1)),
            tail: 0,
        };
        ring.lend_buffers()?;
        Ok(ring)
    }

    /// Receives from a socket from now on.
    pub(crate) fn receive(&mut self, at: usize) -> io::Result<()> {
        self.push(
            &opcode::RecvMulti::new(Fixed(at as u32), 0)
                .build()
                .user_data(at as u64),
        )
    }

    /// Tells once when a socket has room to send.
    pub(crate) fn watch_writable(&mut self, at: usize) -> io::Result<()> {
        let mask = libc::POLLOUT as u32;
        let number = at as u64 | WRITABLE;
        self.push(
            &opcode::PollAdd::new(Fixed(at as u32), mask)
                .build()
                .user_data(number),
        )
    }

    /// Hands requests over and waits until something has happened or `timeout` has passed.
    ///
    /// Cost: the system call, and 0.4 µs for each receive that it makes.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        wait(&self.ring, timeout)
    }

    /// Returns what has happened next, up to the last wait; 5 ns.
    pub(crate) fn next(&mut self) -> Option<RingEvent> {
        let completion = self.ring.completion().next()?;
        let at = (completion.user_data() & (WRITABLE - 1)) as usize;
        if completion.user_data() & WRITABLE != 0 {
            return Some(RingEvent::Writable { at });
        }
        if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
            self.lend(buffer);
        }
        let received = match completion.result() {
            result if result >= 0 => Ok(result as usize),
            error => Err(io::Error::from_raw_os_error(-error)),
        };
        Some(RingEvent::Received {
            at,
            received,
            again: !cqueue::more(completion.flags()),
        })
    }

    fn push(&mut self, request: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: neither kind of request points to memory of ours: what is received goes to
            // buffers of the ring, which live as long as `self` does.
            if unsafe { self.ring.submission().push(request) }.is_ok() {
                return Ok(());
            }
            self.ring.submitter().submit()?;
        }
    }

    fn lend_buffers(&mut self) -> io::Result<()> {
        self.entries.as_mut_slice().fill(0);
        let address = self.entries.as_slice().as_ptr() as u64;
        let submitter = self.ring.submitter();
        // SAFETY: `entries` is page-aligned, holds BUFFERS entries, is all zeros and is dropped
        // after the ring.
        unsafe { submitter.register_buf_ring_with_flags(address, BUFFERS, 0, 0) }?;
        for buffer in 0..BUFFERS {
            self.lend(buffer);
        }
        Ok(())
    }

    /// Gives a buffer to the kernel; 2 ns.
    fn lend(&mut self, buffer: u16) {
        let room = self.room.as_mut_slice();
        let (address, bytes) = (room.as_mut_ptr() as u64, room.len() as u32);
        let first: *mut BufRingEntry = self.entries.as_mut_slice().as_mut_ptr().cast();
        // SAFETY: the index is below BUFFERS, as many as `entries` holds.
        let place = unsafe { first.add(usize::from(self.tail % BUFFERS)) };
        // SAFETY: the place is aligned and ours: the kernel reads entries up to the tail only, and
        // there are never more of them lent than it holds.
        let entry = unsafe { &mut *place };
        entry.set_addr(address);
        entry.set_len(bytes);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: `first` is the first entry of the ring that was registered.
        let tail = unsafe { BufRingEntry::tail(first) };
        // SAFETY: the tail lies inside the first entry, is aligned to two bytes, and is written
        // by this thread alone.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        // The kernel must see the entry before the tail that tells of it.
        tail.store(self.tail, Ordering::Release);
    }
}

/// Returns a ring of this thread with room for about so many completions.
pub(super) fn build(completions: usize) -> io::Result<IoUring> {
    let completions = completions.clamp(COMPLETIONS_MIN, COMPLETIONS_MAX);
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_cqsize(completions as u32)
        .build(REQUESTS)?;
    if ring.params().is_feature_ext_arg() {
        Ok(ring)
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Hands requests over and waits until something has happened or `timeout` has passed.
pub(super) fn wait(ring: &IoUring, timeout: Duration) -> io::Result<()> {
    let time = Timespec::new()
        .sec(timeout.as_secs())
        .nsec(timeout.subsec_nanos());
    let arguments = SubmitArgs::new().timespec(&time);
    match ring.submitter().submit_with_args(1, &arguments) {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            // EBUSY: completions have to be seen first, and they are.
            Some(libc::ETIME | libc::EINTR | libc::EBUSY) => Ok(()),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn payload_end_and_room_are_told() {
        let (near, mut far) = pair();
        let mut ring = match Ring::new(&[near.as_raw_fd()], 8) {
            Ok(ring) => ring,
            Err(error) => return println!("skipped: no io_uring: {error}"),
        };
        ring.receive(0).unwrap();
        ring.watch_writable(0).unwrap();
        let second = Duration::from_secs(1);
        ring.wait(second).unwrap();
        assert!(matches!(ring.next(), Some(RingEvent::Writable { at: 0 })));
        assert!(ring.next().is_none());
        // More receives than there are buffers, each of a part of the payload.
        far.write_all(&[1; 9000]).unwrap();
        drop(far);
        let mut bytes = 0;
        loop {
            ring.wait(second).unwrap();
            while let Some(event) = ring.next() {
                match event {
                    RingEvent::Received {
                        received: Ok(0), ..
                    } => return assert_eq!(bytes, 9000),
                    RingEvent::Received {
                        received: Ok(more),
                        again,
                        ..
                    } => {
                        bytes += more;
                        if again {
                            ring.receive(0).unwrap();
                        }
                    }
                    RingEvent::Received {
                        received: Err(error),
                        again,
                        ..
                    } => {
                        assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS));
                        assert!(again);
                        ring.receive(0).unwrap();
                    }
                    RingEvent::Writable { .. } => panic!("asked once"),
                }
            }
        }
    }

    #[test]
    fn a_wait_ends_by_its_timeout() {
        let (near, _far) = pair();
        let Ok(mut ring) = Ring::new(&[near.as_raw_fd()], 8) else {
            return println!("skipped: no io_uring");
        };
        ring.receive(0).unwrap();
        ring.wait(Duration::from_millis(1)).unwrap();
        assert!(ring.next().is_none());
    }
}
