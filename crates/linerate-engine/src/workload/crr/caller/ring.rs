//! Calls by io_uring: connecting, sending and receiving are handed over together, and what is left
//! is to hear how they ended.
//!
//! Making the socket with its options, and closing it, are calls of our own: closing belongs to the
//! latency, and the ring would do it no cheaper.

use std::io;
use std::os::fd::AsRawFd;

use crate::flow::options;
use crate::schedule::Ending;
use crate::sys::call_ring::{CallRing, Done};
use crate::workload::crr::caller::{Caller, note_sent};
use crate::workload::crr::{PlaceIo, SocketEvents};

impl Caller {
    /// Hands a call over; it begins when the worker waits next.
    ///
    /// Cost over loopback, with what the kernel does for it: 23 µs where both ends share a CPU, 37
    /// where not; by epoll 33 and 43.
    pub(super) fn call_by_ring(
        &self,
        ring: &mut CallRing,
        key: usize,
    ) -> Result<(), (&'static str, io::Error)> {
        let Some(call) = &self.call else {
            return Ok(());
        };
        let fd = call.socket.as_raw_fd();
        let room_bytes = self.room_bytes(ring);
        ring.call(fd, key, self.request_bytes, room_bytes)
            .map_err(|error| ("asking io_uring to connect", error))
    }

    /// Takes note of what has happened to the call under way.
    pub(super) fn handle_done(&mut self, io: &mut PlaceIo<'_>, done: Done) -> Option<Ending> {
        let call = self.call.as_mut()?;
        match done {
            Done::NotConnected(error) => call.failure = Some(("connecting", error)),
            Done::Sent(Ok(sent)) => {
                note_sent(io, sent.saturating_sub(self.hello_bytes));
                call.sent_bytes += sent;
                // An error here is one of the connection, and receiving reports it.
                let fd = call.socket.as_raw_fd();
                let _ = options::apply_connected(fd, &io.flow.config.options);
            }
            // What comes first is the cause; the requests behind it are cancelled.
            Done::Sent(Err(error)) if call.failure.is_none() => {
                call.failure = Some(("sending a request", error));
            }
            Done::Received { received, more } => return self.hear_response(io, received, more),
            Done::Sent(Err(_)) | Done::Accepted { .. } | Done::Ready => {}
        }
        None
    }

    /// Takes what has come: the response, a part of it, its end, or the end of a call that failed.
    fn hear_response(
        &mut self,
        io: &mut PlaceIo<'_>,
        received: io::Result<usize>,
        more: bool,
    ) -> Option<Ending> {
        let call = self.call.as_mut()?;
        let left_bytes = self.response_bytes - call.received_bytes;
        match received {
            Ok(0) if left_bytes == 0 => return self.complete_and_go_on(io),
            Ok(0) => {
                let cut = io::ErrorKind::UnexpectedEof.into();
                return self.fail(io.control, "receiving a response", &cut);
            }
            // Beyond the response nothing counts; there is room for a byte of it each time.
            Ok(_) if left_bytes == 0 => {}
            Ok(received) => {
                io.flow.counters.received(received);
                call.received_bytes += received;
                // What waits behind the whole response can only be the end.
                if received == left_bytes && more {
                    return self.complete_and_go_on(io);
                }
            }
            Err(error) => {
                let (doing, error) = call
                    .failure
                    .take()
                    .unwrap_or(("receiving a response", error));
                return self.fail(io.control, doing, &error);
            }
        }
        let fd = call.socket.as_raw_fd();
        let SocketEvents::Ring(ring) = &mut *io.events else {
            return None;
        };
        let asked = ring.receive(fd, io.key, self.room_bytes(ring));
        asked
            .err()
            .and_then(|error| self.fail(io.control, "asking io_uring to receive", &error))
    }

    fn complete_and_go_on(&mut self, io: &mut PlaceIo<'_>) -> Option<Ending> {
        self.complete(io);
        self.next(io)
    }

    /// Returns how much the next receive request may take: what is left of the response, or a byte
    /// where only the end is left.
    fn room_bytes(&self, ring: &CallRing) -> usize {
        let received_bytes = self.call.as_ref().map_or(0, |call| call.received_bytes);
        let left_bytes = self.response_bytes - received_bytes;
        left_bytes.clamp(1, ring.room_bytes())
    }
}
