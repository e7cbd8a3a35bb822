//! Connections that come and go: an io_uring that accepts, connects, sends and receives for them.
//!
//! 1. A call is three linked requests, handed over together: connect, send, receive. Each begins
//!    when the one before has succeeded, inside the kernel; a failure cancels the rest. The last
//!    one always completes, so that its completion is the end of the call.
//! 2. A listening socket has one accept request that stays (multishot).
//! 3. Descriptors are plain ones. Bare loops with registered ones, which a socket can be made into
//!    directly, took 51.8 µs a transaction against 50.8 with plain ones, and as much for closing by
//!    the ring as by a call (64 places, CPU time of both ends, an end on each CPU): what a
//!    registered descriptor saves is small beside a handshake, and options are set by calls.
//!
//! A descriptor must stay open until its call has ended: a linked request looks its number up when
//! it begins. [`CallRing::empty`] ends all calls.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use io_uring::squeue::Flags;
use io_uring::types::{CancelBuilder, Fd};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::sys::buffer::PageBuffer;
use crate::sys::clock::now_ns;
use crate::sys::socket;
use crate::sys::uring;

/// Completions that one place may cause between two looks: three of a call that failed.
const COMPLETIONS_PER_PLACE: usize = 4;
/// Bits of a request's number that say what it does; the others are the key of its socket.
const STEP_BITS: u32 = 3;
/// How long ending all calls may take: cancelling is a matter of microseconds.
const EMPTY_NS_MAX: u64 = 1_000_000_000;

/// What a request does, as it stands in its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Accept = 0,
    Connect = 1,
    Send = 2,
    Receive = 3,
    Poll = 4,
    Cancel = 5,
}

/// What has happened to a socket, known by the key given with the request.
#[derive(Debug)]
pub(crate) enum Done {
    /// A connection was accepted; `again` says that the accept request is over.
    Accepted {
        socket: io::Result<OwnedFd>,
        again: bool,
    },
    /// Connecting failed; the end of the call follows.
    NotConnected(io::Error),
    /// So much of the request was sent, or nothing; the end of the call follows.
    Sent(io::Result<usize>),
    /// A receive request is over, and the call with it: 0 is the end of the stream; `more` says
    /// that payload or the end of the stream waits behind what was received.
    Received {
        received: io::Result<usize>,
        more: bool,
    },
    /// The socket is ready for what it was watched for, or has failed.
    Ready,
}

/// An io_uring for the connections of a worker's places.
pub(crate) struct CallRing {
    /// First, so that it is dropped first: from then on the kernel uses the memory no more.
    ring: IoUring,
    payload: PageBuffer,
    room: PageBuffer,
    /// Where each place calls, as the kernel reads it when a request is handed over.
    peers: Box<[(libc::sockaddr_in6, libc::socklen_t)]>,
    /// Requests that may still touch a descriptor or the memory; linked ones count as one.
    under_way: usize,
}

impl CallRing {
    /// Returns a ring for places that call these peers, none for one that is called, with requests
    /// of up to `payload_bytes`, which a ring has only where some call; a receive request takes up to
    /// `room_bytes`. Fails where the kernel does not have io_uring, or does not allow it, see
    /// [`uring::Ring::new`].
    pub(crate) fn new(
        peers: &[Option<SocketAddr>],
        payload_bytes: usize,
        room_bytes: usize,
    ) -> io::Result<Self> {
        let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
        let payload_bytes = if peers.iter().any(Option::is_some) {
            payload_bytes
        } else {
            0
        };
        let address = |peer: &Option<SocketAddr>| socket::to_kernel(peer.unwrap_or(nobody));
        Ok(Self {
            ring: uring::build(COMPLETIONS_PER_PLACE * peers.len())?,
            payload: PageBuffer::new(payload_bytes.max(1)),
            room: PageBuffer::new(room_bytes.max(1)),
            peers: peers.iter().map(address).collect(),
            under_way: 0,
        })
    }

    /// Returns the most that a receive request takes.
    pub(crate) fn room_bytes(&self) -> usize {
        self.room.bytes()
    }

    /// Accepts connections at a listening socket from now on.
    pub(crate) fn accept(&mut self, listener: RawFd, key: usize) -> io::Result<()> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let accept = opcode::AcceptMulti::new(Fd(listener)).flags(flags).build();
        self.push(&[numbered(accept, key, Step::Accept)])
    }

    /// Connects to the peer of place number `place`, sends `request_bytes`, and then receives up to
    /// `room_bytes`.
    ///
    /// Cost: 30 ns here; what the kernel does for it is done by the next wait, for all calls.
    pub(crate) fn call(
        &mut self,
        fd: RawFd,
        key: usize,
        place: usize,
        request_bytes: usize,
        room_bytes: usize,
    ) -> io::Result<()> {
        let (address, address_bytes) = &self.peers[place];
        let address = (&raw const *address).cast();
        let connect = opcode::Connect::new(Fd(fd), address, *address_bytes).build();
        let connect = numbered(connect, key, Step::Connect);
        // Not with SKIP_SUCCESS: the requests behind one that fails would then complete silently.
        let connect = connect.flags(Flags::IO_LINK);
        let receive = self.receive_request(fd, key, room_bytes);
        if request_bytes == 0 {
            return self.push(&[connect, receive]);
        }
        let payload = &self.payload.as_slice()[..request_bytes];
        let send = opcode::Send::new(Fd(fd), payload.as_ptr(), payload.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build();
        let send = numbered(send, key, Step::Send).flags(Flags::IO_LINK);
        self.push(&[connect, send, receive])
    }

    /// Receives up to `room_bytes` once more.
    pub(crate) fn receive(&mut self, fd: RawFd, key: usize, room_bytes: usize) -> io::Result<()> {
        let request = self.receive_request(fd, key, room_bytes);
        self.push(&[request])
    }

    /// Tells once when a socket is ready for `events`, those of [`crate::sys::epoll`].
    pub(crate) fn watch(&mut self, fd: RawFd, key: usize, events: u32) -> io::Result<()> {
        let poll = opcode::PollAdd::new(Fd(fd), events).build();
        self.push(&[numbered(poll, key, Step::Poll)])
    }

    /// Hands requests over and waits until something has happened or `timeout` has passed.
    ///
    /// Cost: the system call, and all that the requests do: 30 µs for a call.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        uring::wait(&self.ring, timeout)
    }

    /// Returns what has happened next, up to the last wait, with the key of the socket; 10 ns.
    pub(crate) fn next(&mut self) -> Option<(usize, Done)> {
        loop {
            let completion = self.ring.completion().next()?;
            if let Some(news) = self.read(&completion) {
                return Some(news);
            }
        }
    }

    /// Ends all calls, and drops what they say; returns when no descriptor is used any more.
    ///
    /// The connections that were accepted meanwhile are closed.
    pub(crate) fn empty(&mut self) -> io::Result<()> {
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        let limit_ns = now_ns() + EMPTY_NS_MAX;
        while self.under_way > 0 {
            self.push(&[numbered(cancel.clone(), 0, Step::Cancel)])?;
            // One wait may see the end of some and not of others, and a call goes on to its next
            // request if it could not be cancelled any more.
            self.wait(Duration::from_millis(1))?;
            while self.next().is_some() {}
            if now_ns() >= limit_ns {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }

    fn receive_request(&mut self, fd: RawFd, key: usize, room_bytes: usize) -> squeue::Entry {
        let room = &mut self.room.as_mut_slice()[..room_bytes];
        let receive = opcode::Recv::new(Fd(fd), room.as_mut_ptr(), room.len() as u32).build();
        numbered(receive, key, Step::Receive)
    }

    /// Puts requests that belong together among those to be handed over.
    fn push(&mut self, requests: &[squeue::Entry]) -> io::Result<()> {
        // SAFETY: the requests point to the payload, the room and the peers, which live as long as
        // the ring and never move; descriptors are checked by the kernel.
        while unsafe { self.ring.submission().push_multiple(requests) }.is_err() {
            self.ring.submitter().submit()?;
        }
        self.under_way += 1;
        Ok(())
    }

    /// Returns what a completion says; nothing if it says nothing.
    fn read(&mut self, completion: &cqueue::Entry) -> Option<(usize, Done)> {
        let number = completion.user_data();
        let key = (number >> STEP_BITS) as usize;
        let step = number & ((1 << STEP_BITS) - 1);
        let result = match completion.result() {
            result if result >= 0 => Ok(result as usize),
            error => Err(io::Error::from_raw_os_error(-error)),
        };
        let is = |other: Step| step == other as u64;
        let goes_on = cqueue::more(completion.flags());
        if !goes_on && !is(Step::Connect) && !is(Step::Send) {
            self.under_way -= 1;
        }
        let done = match () {
            () if is(Step::Accept) => Done::Accepted {
                // SAFETY: a result of an accept request is a new descriptor that nothing else owns.
                socket: result.map(|fd| unsafe { OwnedFd::from_raw_fd(fd as RawFd) }),
                again: !goes_on,
            },
            () if is(Step::Connect) => Done::NotConnected(result.err()?),
            () if is(Step::Send) => Done::Sent(result),
            () if is(Step::Receive) => Done::Received {
                received: result,
                more: cqueue::sock_nonempty(completion.flags()),
            },
            () if is(Step::Poll) => Done::Ready,
            () => return None,
        };
        Some((key, done))
    }
}

/// Returns `request` with the number by which its completion is known.
fn numbered(request: squeue::Entry, key: usize, step: Step) -> squeue::Entry {
    request.user_data(((key as u64) << STEP_BITS) | step as u64)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::fd::{AsRawFd, OwnedFd};

    use super::*;
    use crate::sys::epoll::READ;

    const SECOND: Duration = Duration::from_secs(1);

    /// A ring that calls `peer`, and a socket to call with; none where there is no io_uring.
    fn ring(peer: SocketAddr) -> Option<(CallRing, OwnedFd)> {
        match CallRing::new(&[None, Some(peer)], 100, 10) {
            Ok(ring) => Some((ring, socket::open(peer, libc::IPPROTO_TCP).unwrap())),
            Err(error) => {
                println!("skipped: no io_uring: {error}");
                None
            }
        }
    }

    fn next(ring: &mut CallRing) -> (usize, Done) {
        loop {
            if let Some(news) = ring.next() {
                return news;
            }
            ring.wait(SECOND).unwrap();
        }
    }

    #[test]
    fn a_ring_without_callers_has_no_payload() {
        match CallRing::new(&[None, None], 64 << 20, 10) {
            Ok(ring) => assert_eq!(ring.payload.bytes(), 1),
            Err(error) => println!("skipped: no io_uring: {error}"),
        }
    }

    #[test]
    fn a_call_is_accepted_and_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let Some((mut ring, near)) = ring(listener.local_addr().unwrap()) else {
            return;
        };
        ring.accept(listener.as_raw_fd(), 8).unwrap();
        ring.call(near.as_raw_fd(), 3, 1, 100, 10).unwrap();
        let mut far = None;
        let mut sent = false;
        while far.is_none() || !sent {
            match next(&mut ring) {
                (8, Done::Accepted { socket, again }) => {
                    far = Some(std::net::TcpStream::from(socket.unwrap()));
                    assert!(!again);
                }
                (3, Done::Sent(Ok(100))) => sent = true,
                other => panic!("{other:?}"),
            }
        }
        let mut far = far.unwrap();
        ring.watch(far.as_raw_fd(), 9, READ).unwrap();
        assert!(matches!(next(&mut ring), (9, Done::Ready)));
        far.read_exact(&mut [0; 100]).unwrap();
        far.write_all(&[1; 10]).unwrap();
        drop(far);
        match next(&mut ring) {
            (3, Done::Received { received, more }) => {
                assert_eq!(received.unwrap(), 10);
                if !more {
                    // The end had not come yet.
                    ring.receive(near.as_raw_fd(), 3, 1).unwrap();
                    let end = next(&mut ring);
                    assert!(matches!(
                        end,
                        (
                            3,
                            Done::Received {
                                received: Ok(0),
                                ..
                            }
                        )
                    ));
                }
            }
            other => panic!("{other:?}"),
        }
        // The accept request is still there.
        assert_eq!(ring.under_way, 1);
        ring.empty().unwrap();
        assert_eq!(ring.under_way, 0);
    }

    #[test]
    fn a_call_that_is_refused_says_so_and_ends() {
        let gone = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let Some((mut ring, near)) = ring(gone) else {
            return;
        };
        ring.call(near.as_raw_fd(), 3, 1, 100, 10).unwrap();
        let mut refused = false;
        loop {
            match next(&mut ring) {
                (3, Done::NotConnected(error)) => {
                    refused = error.kind() == io::ErrorKind::ConnectionRefused;
                }
                (3, Done::Sent(Err(_))) => {}
                (3, Done::Received { received, .. }) => {
                    received.unwrap_err();
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(refused);
        assert_eq!(ring.under_way, 0);
    }

    #[test]
    fn calls_that_nobody_answers_are_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let Some((mut ring, near)) = ring(listener.local_addr().unwrap()) else {
            return;
        };
        ring.call(near.as_raw_fd(), 3, 1, 100, 10).unwrap();
        assert!(matches!(next(&mut ring), (3, Done::Sent(Ok(100)))));
        // Handed over only now, by `empty`.
        ring.accept(listener.as_raw_fd(), 8).unwrap();
        assert_eq!(ring.under_way, 2);
        ring.empty().unwrap();
        assert_eq!(ring.under_way, 0);
    }
}
