//! A connection for each transaction: connect, request, response, close.
//!
//! Each flow is a place. Its client's end makes one connection after another, each with the hello of its
//! flow ahead of the request, which says whose it is and is not counted; its server's end answers each.
//!
//! 1. The server closes first, right after its response, so that the TIME_WAIT of each connection
//!    stays with the server: a client that kept it would run out of its 28 000 ports in a second.
//!    A reset (SO_LINGER of 0) would leave none at all, but then it is no orderly close that is
//!    measured, and what is under way may be lost. Linux reuses a port in TIME_WAIT for a
//!    connection with a later timestamp (RFC 6191), so that the server does not run out either.
//! 2. The response is sent with MSG_MORE and the close pushes it out: response and end travel in
//!    one segment, and the client reads both at once.
//! 3. A transaction is complete when the response and the end have come. Its latency counts from
//!    before the socket was made.

/// The end that answers them.
mod callee;
/// The end that makes connections.
mod caller;

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use linerate_model::shortfall::{ConnectionCount, RequestCount};
use linerate_model::workload::{Part, Traffic};

use crate::flow::Shared;
use crate::measure::Window;
use crate::measure::latency::Latency;
use crate::schedule::{Control, Ending};
use crate::sys::call_ring::{CallRing, Done};
use crate::sys::epoll::Epoll;
use crate::workload::Seated;

pub(crate) use callee::Callee;
use caller::Caller;

/// What tells places of their sockets: epoll or io_uring.
pub(crate) enum SocketEvents {
    /// By readiness; all calls are made here.
    Epoll(EpollEvents),
    /// By completions: the kernel accepts, connects, sends requests and receives responses.
    Ring(Box<CallRing>),
}

/// An epoll set, and how many of its events have been seen.
pub(crate) struct EpollEvents {
    pub(crate) epoll: Epoll,
    ready: usize,
    seen: usize,
}

/// What has happened to a socket of a place.
#[derive(Debug)]
pub(crate) enum SocketEvent {
    /// It is ready for these events.
    Ready(u32),
    /// io_uring has done something for it.
    Done(Done),
}

impl SocketEvents {
    /// Returns a new epoll set.
    pub(crate) fn epoll() -> io::Result<Self> {
        Ok(SocketEvents::Epoll(EpollEvents {
            epoll: Epoll::new()?,
            ready: 0,
            seen: 0,
        }))
    }

    /// Waits until something has happened or `timeout` has passed.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        match self {
            SocketEvents::Epoll(set) => {
                set.seen = 0;
                // The set is ours and so are its events: the one error left, a signal, reads as
                // none.
                set.ready = set.epoll.wait(timeout).unwrap_or(0);
                Ok(())
            }
            SocketEvents::Ring(ring) => ring.wait(timeout),
        }
    }

    /// Returns what has happened next, up to the last wait, with the key of the socket.
    pub(crate) fn next(&mut self) -> Option<(usize, SocketEvent)> {
        match self {
            SocketEvents::Epoll(set) if set.seen == set.ready => None,
            SocketEvents::Epoll(set) => {
                let (key, events) = set.epoll.event(set.seen);
                set.seen += 1;
                Some((key, SocketEvent::Ready(events)))
            }
            SocketEvents::Ring(ring) => ring
                .next()
                .map(|(key, done)| (key, SocketEvent::Done(done))),
        }
    }
}

/// What a place works with.
pub(crate) struct PlaceIo<'a> {
    pub(crate) flow: &'a Shared,
    pub(crate) control: &'a Control,
    pub(crate) events: &'a mut SocketEvents,
    /// The key of the place's socket.
    pub(crate) key: usize,
    /// Send buffer, as long as the longest message.
    pub(crate) payload: &'a [u8],
    /// Receive buffer; its content is never looked at.
    pub(crate) room: &'a mut [u8],
    pub(crate) latencies: &'a mut [Latency],
}

/// What the end that answers works with.
pub(crate) struct CalleeIo<'a> {
    pub(crate) control: &'a Control,
    pub(crate) events: &'a mut SocketEvents,
    /// Send buffer, as long as the longest message.
    pub(crate) payload: &'a [u8],
    /// Receive buffer; its content is never looked at.
    pub(crate) room: &'a mut [u8],
}

/// Either end of a place.
#[derive(Debug)]
pub(crate) enum Place {
    /// Makes connections.
    Caller(Box<Caller>),
    /// Is there for what is counted of those that are answered, by whichever [`Callee`] takes them up.
    Called,
}

impl Seated for Place {
    fn new(flow: &Shared, control: &Control, window: Window, record: usize) -> Self {
        match flow.config.part {
            Part::Requester => {
                let caller = Caller::new(flow, control.start_ns(), window, record);
                Place::Caller(Box::new(caller))
            }
            _ => Place::Called,
        }
    }

    /// Its own socket is not connected.
    fn shutdown(&self, _: &Shared, _: &Ending) -> Option<Shutdown> {
        None
    }

    fn stall_max_ns(&self, now_ns: u64) -> Option<u64> {
        Some(self.caller()?.requests.stall_max_ns(now_ns))
    }

    fn requests(&self, control: &Control, now_ns: u64) -> Option<RequestCount> {
        self.caller()?.requests.timing.count(control, now_ns)
    }

    fn connections(&self, flow: &Shared) -> Option<ConnectionCount> {
        let made = flow.counters.read().transactions;
        Some(self.caller()?.connections(made))
    }
}

impl Place {
    /// Does what can be done at once, before anything is ready; none says that it goes on.
    pub(crate) fn begin(&mut self, io: &mut PlaceIo<'_>) -> Option<Ending> {
        self.caller_mut()?.next(io)
    }

    /// Takes note of what has happened to the socket of the place.
    pub(crate) fn handle(&mut self, io: &mut PlaceIo<'_>, event: SocketEvent) -> Option<Ending> {
        self.caller_mut()?.handle(io, event)
    }

    /// Looks at the clock while nothing moves.
    pub(crate) fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        self.caller_mut()?.tick(control, now_ns)
    }

    /// Returns when the place wants a turn whatever its socket says.
    pub(crate) fn timer_ns(&self) -> Option<u64> {
        self.caller()?.timer_ns()
    }

    fn caller_mut(&mut self) -> Option<&mut Caller> {
        match self {
            Place::Caller(caller) => Some(caller),
            Place::Called => None,
        }
    }

    fn caller(&self) -> Option<&Caller> {
        match self {
            Place::Caller(caller) => Some(caller),
            Place::Called => None,
        }
    }
}

/// Returns the bytes of a request and of a response.
pub(crate) fn bytes(traffic: &Traffic) -> (usize, usize) {
    let bytes = traffic.exchange().unwrap_or_default();
    (bytes.0.0 as usize, bytes.1.0 as usize)
}
