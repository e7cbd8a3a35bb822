//! The end that answers connections, on a port of its own.
//!
//! The port is there for one trial. Whoever finds it gets at most one response a connection, which
//! the counters show; a few connections may be open at once, and the oldest gives way to a new one.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::flow::Shared;
use crate::schedule::{Control, Ending};
use crate::sys::call_ring::Done;
use crate::sys::clock::now_ns;
use crate::sys::epoll::{READ, WRITE};
use crate::sys::socket;
use crate::workload::crr::{KEYS_PER_PLACE, PlaceIo, SocketEvent, SocketEvents, bytes};

/// Connections that may be open at once: an honest caller has one, and its next may come before
/// the end of the one before has been seen.
const VISITS_MAX: usize = 4;
/// How long after the stop the last connection may still come: the clocks of two hosts agree to
/// 20 ms, and a caller begins nothing after its stop.
const QUIET_NS: u64 = 50_000_000;

const _: () = assert!(VISITS_MAX < KEYS_PER_PLACE);

/// Answers connections.
#[derive(Debug)]
pub(crate) struct Callee {
    request_bytes: usize,
    response_bytes: usize,
    visits: [Option<Visit>; VISITS_MAX],
    /// The place that the next visit takes.
    turn: usize,
    /// When something last happened after the stop, on a clock of ticks.
    busy: bool,
    quiet_since_ns: u64,
}

/// A connection that was accepted.
#[derive(Debug)]
struct Visit {
    socket: OwnedFd,
    received_bytes: usize,
    sent_bytes: usize,
    /// What it is watched for; 0 = nothing.
    watched: u32,
}

impl Callee {
    /// Returns a callee.
    pub(crate) fn new(flow: &Shared) -> Self {
        let (request_bytes, response_bytes) = bytes(&flow.config.traffic);
        Self {
            request_bytes,
            response_bytes,
            visits: [const { None }; VISITS_MAX],
            turn: 0,
            busy: false,
            quiet_since_ns: 0,
        }
    }

    /// Listens from now on.
    pub(super) fn begin(&mut self, io: &mut PlaceIo<'_>) -> Option<Ending> {
        let listener = io.flow.fd();
        let asked = match io.events {
            SocketEvents::Epoll(set) => set.epoll.add(listener, io.key, READ),
            SocketEvents::Ring(ring) => ring.accept(listener, io.key),
        };
        let error = asked.err()?;
        Some(Ending::Early(format!("watching the port failed: {error}")))
    }

    /// Takes a connection up (key 0), or goes on with one.
    ///
    /// Cost over loopback: accepting 3 µs, the request 0.5 µs, the response 1 µs, closing 6 µs with
    /// the segment that carries response and end. They are calls with io_uring too: the request is
    /// there as a rule when its connection is accepted, and requests to the ring that receive, send
    /// and close, linked, took as long (bare loops: 51.5 and 50.8 µs a transaction, both ends, on
    /// two CPUs, 40.3 and 40.1 on one).
    pub(super) fn handle(
        &mut self,
        io: &mut PlaceIo<'_>,
        nth: usize,
        event: SocketEvent,
    ) -> Option<Ending> {
        self.busy = true;
        let at = match (nth.checked_sub(1), event) {
            (Some(at), event) => {
                if let (SocketEvent::Done(_), Some(visit)) = (&event, &mut self.visits[at]) {
                    // The ring tells once.
                    visit.watched = 0;
                }
                at
            }
            (None, SocketEvent::Done(Done::Accepted { socket, again })) => {
                let ending = again.then(|| self.begin(io)).flatten();
                match socket {
                    Ok(socket) if ending.is_none() => self.take_up(socket),
                    Ok(_) => return ending,
                    Err(error) => return ending.or(accept_failed(&error)),
                }
            }
            (None, _) => match socket::accept(io.flow.fd()) {
                Ok(socket) => self.take_up(socket),
                Err(error) => return accept_failed(&error),
            },
        };
        // Nothing is said of a connection that fails: its caller counts it.
        if !matches!(self.serve_connection(io, at), Ok(false)) {
            self.visits[at] = None;
        }
        None
    }

    /// Gives a connection that was accepted its place, which it returns.
    fn take_up(&mut self, socket: OwnedFd) -> usize {
        let at = self.free_place();
        let visit = Visit {
            socket,
            received_bytes: 0,
            sent_bytes: 0,
            watched: 0,
        };
        if let Some(oldest) = self.visits[at].replace(visit) {
            // A ring that watches the socket would keep the connection beyond our descriptor; now
            // it hears of the end, and of whoever has the place by then, who is looked at in vain.
            let _ = socket::shutdown(oldest.socket.as_fd(), Shutdown::Both);
        }
        at
    }

    /// Returns a free place, or that of the oldest visit.
    fn free_place(&mut self) -> usize {
        if let Some(at) = self.visits.iter().position(Option::is_none) {
            return at;
        }
        self.turn = (self.turn + 1) % VISITS_MAX;
        self.turn
    }

    /// Returns whether a visit is over.
    fn serve_connection(&mut self, io: &mut PlaceIo<'_>, at: usize) -> io::Result<bool> {
        let Some(visit) = &mut self.visits[at] else {
            return Ok(true);
        };
        let fd = visit.socket.as_raw_fd();
        let counters = &io.flow.counters;
        let left_bytes = self.request_bytes - visit.received_bytes;
        if left_bytes > 0 {
            let room_bytes = left_bytes.min(io.room.len());
            match socket::receive(fd, &mut io.room[..room_bytes]) {
                Ok(0) => return Ok(true),
                Ok(received) => {
                    counters.first_payload(now_ns);
                    counters.received(received);
                    io.control.note_held(received);
                    visit.received_bytes += received;
                    if received < left_bytes {
                        return visit.watch(io, at, READ);
                    }
                }
                Err(error) if is_early(&error) => return visit.watch(io, at, READ),
                Err(error) => return Err(error),
            }
        }
        let rest = &io.payload[visit.sent_bytes..self.response_bytes];
        if !rest.is_empty() {
            io.control.await_hold();
            match socket::send_more(fd, rest) {
                Ok(sent) => {
                    counters.sent(sent);
                    io.control.note_held(sent);
                    visit.sent_bytes += sent;
                    if sent < rest.len() {
                        return visit.watch(io, at, WRITE);
                    }
                }
                Err(error) if is_early(&error) => return visit.watch(io, at, WRITE),
                Err(error) => return Err(error),
            }
        }
        counters.first_payload(now_ns);
        counters.transactions(1);
        Ok(true)
    }

    pub(super) fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        if now_ns < control.stop_ns() {
            return None;
        }
        if now_ns >= control.limit_ns() {
            return Some(control.stopped());
        }
        let under_way = |visit: &Visit| visit.received_bytes > 0;
        let waits = self.visits.iter().flatten().any(under_way);
        if self.quiet_since_ns == 0 || waits || std::mem::take(&mut self.busy) {
            self.quiet_since_ns = now_ns;
        }
        (now_ns - self.quiet_since_ns >= QUIET_NS).then(|| control.stopped())
    }
}

impl Visit {
    /// Watches for what the visit waits for; it goes on then.
    fn watch(&mut self, io: &mut PlaceIo<'_>, at: usize, events: u32) -> io::Result<bool> {
        let (fd, key) = (self.socket.as_raw_fd(), io.key + at + 1);
        match (&mut *io.events, self.watched) {
            (SocketEvents::Ring(ring), 0) => ring.watch(fd, key, events)?,
            (SocketEvents::Epoll(set), 0) => set.epoll.add(fd, key, events)?,
            (SocketEvents::Epoll(set), watched) if watched != events => {
                set.epoll.change(fd, key, events)?;
            }
            _ => {}
        }
        self.watched = events;
        Ok(false)
    }
}

fn is_early(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Returns what a failure to accept means: most are of the connection that was to be.
fn accept_failed(error: &io::Error) -> Option<Ending> {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => Some(Ending::Early(format!(
            "accepting a connection failed: {error} (RLIMIT_NOFILE, `ulimit -n`)"
        ))),
        _ => None,
    }
}
