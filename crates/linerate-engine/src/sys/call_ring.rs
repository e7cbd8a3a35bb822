//! Connections that come and go: an io_uring that accepts, connects, sends and receives for them.
//!
//! 1. A call is three linked requests, handed over together: connect, send, receive. Each begins
//!    when the one before has succeeded, inside the kernel; a failure cancels the rest. The last
//!    one always completes, so that its completion is the end of the call.
//! 2. A listening socket has some accept requests, each for one connection: where several rings accept at
//!    one socket, those that stay (multishot) would leave all connections to the first ring.
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
    /// A connection was accepted.
    Accepted { socket: io::Result<OwnedFd> },
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
    /// What each place calls with, as the kernel reads it when a request is handed over.
    lines: Box<[Line]>,
    /// Requests that may still touch a descriptor or the memory; linked ones count as one.
    under_way: usize,
}

/// Where a place calls, and what it says: its hello and then the request. The addresses in it are those of
/// its own fields, which never move as they are in a box, and of the payload.
struct Line {
    address: libc::sockaddr_in6,
    address_bytes: libc::socklen_t,
    hello: Box<[u8]>,
    parts: [libc::iovec; 2],
    message: libc::msghdr,
}

impl CallRing {
    /// Returns a ring for places that call these peers with these hellos, and requests of up to
    /// `payload_bytes`; a receive request takes up to `room_bytes`. Fails where the kernel does not have
    /// io_uring, or does not allow it, see [`uring::Ring::new`].
    pub(crate) fn calling(
        peers: &[(SocketAddr, Box<[u8]>)],
        payload_bytes: usize,
        room_bytes: usize,
    ) -> io::Result<Self> {
        let payload = PageBuffer::new(payload_bytes.max(1));
        let mut lines: Box<[Line]> = peers.iter().map(Line::new).collect();
        for line in &mut lines {
            let part = |bytes: &[u8]| libc::iovec {
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            };
            line.parts = [part(&line.hello), part(&payload.as_slice()[..0])];
            line.message.msg_iov = line.parts.as_mut_ptr();
            line.message.msg_iovlen = line.parts.len() as _;
        }
        Ok(Self {
            ring: uring::build(COMPLETIONS_PER_PLACE * peers.len())?,
            payload,
            room: PageBuffer::new(room_bytes.max(1)),
            lines,
            under_way: 0,
        })
    }

    /// Returns a ring that accepts, and watches up to `sockets_max` sockets.
    pub(crate) fn answering(sockets_max: usize) -> io::Result<Self> {
        Ok(Self {
            ring: uring::build(sockets_max)?,
            payload: PageBuffer::new(1),
            room: PageBuffer::new(1),
            lines: Box::default(),
            under_way: 0,
        })
    }

    /// Returns the most that a receive request takes.
    pub(crate) fn room_bytes(&self) -> usize {
        self.room.bytes()
    }

    /// Accepts one connection at a listening socket.
    pub(crate) fn accept(&mut self, listener: RawFd, key: usize) -> io::Result<()> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let nobody = (std::ptr::null_mut(), std::ptr::null_mut());
        let accept = opcode::Accept::new(Fd(listener), nobody.0, nobody.1);
        let accept = accept.flags(flags).build();
        self.push(&[numbered(accept, key, Step::Accept)])
    }

    /// Connects to the peer of place number `key`, sends its hello and `request_bytes`, and then receives
    /// up to `room_bytes`.
    ///
    /// Cost: 30 ns here; what the kernel does for it is done by the next wait, for all calls.
    pub(crate) fn call(
        &mut self,
        fd: RawFd,
        key: usize,
        request_bytes: usize,
        room_bytes: usize,
    ) -> io::Result<()> {
        let line = &mut self.lines[key];
        line.parts[1].iov_len = self.payload.as_slice()[..request_bytes].len();
        let address = (&raw const line.address).cast();
        let connect = opcode::Connect::new(Fd(fd), address, line.address_bytes).build();
        let connect = numbered(connect, key, Step::Connect);
        // Not with SKIP_SUCCESS: the requests behind one that fails would then complete silently.
        let connect = connect.flags(Flags::IO_LINK);
        let send = opcode::SendMsg::new(Fd(fd), &raw const line.message)
            .flags((libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32)
            .build();
        let receive = self.receive_request(fd, key, room_bytes);
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

    /// Ends such a watch, which tells of it.
    pub(crate) fn unwatch(&mut self, key: usize) -> io::Result<()> {
        let remove = opcode::PollRemove::new(number(key, Step::Poll)).build();
        self.push(&[numbered(remove, key, Step::Cancel)])
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

    /// Ends all calls, and drops what they say but for the connections that were accepted meanwhile;
    /// returns when no descriptor is used any more.
    pub(crate) fn empty(&mut self, mut accepted: impl FnMut(OwnedFd)) -> io::Result<()> {
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        let limit_ns = now_ns() + EMPTY_NS_MAX;
        while self.under_way > 0 {
            self.push(&[numbered(cancel.clone(), 0, Step::Cancel)])?;
            // One wait may see the end of some and not of others, and a call goes on to its next
            // request if it could not be cancelled any more.
            self.wait(Duration::from_millis(1))?;
            while let Some((_, done)) = self.next() {
                if let Done::Accepted {
                    socket: Ok(socket), ..
                } = done
                {
                    accepted(socket);
                }
            }
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
        // SAFETY: the requests point to the payload, the room and the lines, which live as long as
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

impl Line {
    /// Returns one that says nothing yet.
    fn new((peer, hello): &(SocketAddr, Box<[u8]>)) -> Self {
        let (address, address_bytes) = socket::to_kernel(*peer);
        let nothing = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        Self {
            address,
            address_bytes,
            hello: hello.clone(),
            parts: [nothing; 2],
            // SAFETY: a msghdr of zeros is one without name, control data and parts.
            message: unsafe { std::mem::zeroed() },
        }
    }
}

/// Returns `request` with the number by which its completion is known.
fn numbered(request: squeue::Entry, key: usize, step: Step) -> squeue::Entry {
    request.user_data(number(key, step))
}

fn number(key: usize, step: Step) -> u64 {
    ((key as u64) << STEP_BITS) | step as u64
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
        match CallRing::calling(&[(peer, Box::new([7; 4]))], 100, 10) {
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
    fn a_call_is_accepted_and_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let Some((mut ring, near)) = ring(listener.local_addr().unwrap()) else {
            return;
        };
        ring.accept(listener.as_raw_fd(), 8).unwrap();
        ring.call(near.as_raw_fd(), 0, 100, 10).unwrap();
        let mut far = None;
        let mut sent = false;
        while far.is_none() || !sent {
            match next(&mut ring) {
                (8, Done::Accepted { socket }) => {
                    far = Some(std::net::TcpStream::from(socket.unwrap()));
                }
                (0, Done::Sent(Ok(104))) => sent = true,
                other => panic!("{other:?}"),
            }
        }
        let mut far = far.unwrap();
        ring.watch(far.as_raw_fd(), 9, READ).unwrap();
        assert!(matches!(next(&mut ring), (9, Done::Ready)));
        let mut said = [0; 104];
        far.read_exact(&mut said).unwrap();
        // What the place says first, and then the request.
        assert_eq!(said[..4], [7; 4]);
        far.write_all(&[1; 10]).unwrap();
        drop(far);
        match next(&mut ring) {
            (0, Done::Received { received, more }) => {
                assert_eq!(received.unwrap(), 10);
                if !more {
                    // The end had not come yet.
                    ring.receive(near.as_raw_fd(), 0, 1).unwrap();
                    let end = next(&mut ring);
                    assert!(matches!(
                        end,
                        (
                            0,
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
        assert_eq!(ring.under_way, 0);
        // What is accepted while all is ended is not lost.
        ring.accept(listener.as_raw_fd(), 8).unwrap();
        let _late = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut accepted = Vec::new();
        ring.empty(|socket| accepted.push(socket)).unwrap();
        assert_eq!(accepted.len(), 1);
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
        ring.call(near.as_raw_fd(), 0, 100, 10).unwrap();
        let mut refused = false;
        loop {
            match next(&mut ring) {
                (0, Done::NotConnected(error)) => {
                    refused = error.kind() == io::ErrorKind::ConnectionRefused;
                }
                (0, Done::Sent(Err(_))) => {}
                (0, Done::Received { received, .. }) => {
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
        ring.call(near.as_raw_fd(), 0, 100, 10).unwrap();
        assert!(matches!(next(&mut ring), (0, Done::Sent(Ok(104)))));
        // Handed over only now, by `empty`.
        ring.accept(listener.as_raw_fd(), 8).unwrap();
        assert_eq!(ring.under_way, 2);
        ring.empty(drop).unwrap();
        assert_eq!(ring.under_way, 0);
    }
}
