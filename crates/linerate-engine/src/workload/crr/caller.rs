//! The end that makes connections, one after another.

/// How calls are made where the kernel has io_uring.
mod ring;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use linerate_model::metric::Metric;
use linerate_model::shortfall::ConnectionCount;

use crate::flow::{PlaceEnd, Shared, options};
use crate::measure::{Window, tcp_info};
use crate::schedule::{Control, Ending};
use crate::sys::clock::now_ns;
use crate::sys::epoll::{END, READ, WRITE};
use crate::sys::socket::{self, SO_ERROR, TCP_DEFER_ACCEPT};
use crate::workload::crr::{PlaceIo, SocketEvent, SocketEvents, bytes};
use crate::workload::rr::OrderedRequests;
use crate::workload::timing::RequestTiming;

/// Connections that may fail one after another before the flow is given up.
const FAILURES_MAX: u32 = 100;
/// Of so many connections one is asked for TCP's shortest round trip, which takes 0.4 µs.
const ASKED_ONE_IN: u64 = 64;
/// Pause after a connection that failed: 100 failures take a tenth of a second.
const PAUSE_NS: u64 = 1_000_000;

/// Makes connections and times them.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Of what each connection says first.
    hello_bytes: usize,
    request_bytes: usize,
    response_bytes: usize,
    pub(super) requests: OrderedRequests,
    latency: usize,
    call: Option<Call>,
    complete: u64,
    failed: u64,
    failed_in_a_row: u32,
    last_failure: Option<String>,
    not_before_ns: u64,
    stopped: bool,
}

/// The connection under way.
#[derive(Debug)]
struct Call {
    socket: OwnedFd,
    sent_bytes: usize,
    received_bytes: usize,
    /// Why it failed, where that is known before it has ended: calls by io_uring only.
    failure: Option<(&'static str, io::Error)>,
}

impl Caller {
    /// Returns a caller that records in the worker's latency record number `latency`.
    pub(crate) fn new(flow: &Shared, start_ns: u64, window: Window, latency: usize) -> Self {
        let (request_bytes, response_bytes) = bytes(&flow.config.traffic);
        let timing = RequestTiming::of(&flow.config.manner, start_ns, flow.config.flow);
        let calling = flow.place.as_ref().and_then(PlaceEnd::calling);
        Self {
            hello_bytes: calling.map_or(0, |(_, hello)| hello.len()),
            request_bytes,
            response_bytes,
            requests: OrderedRequests::new(1, timing, window),
            latency,
            call: None,
            complete: 0,
            failed: 0,
            failed_in_a_row: 0,
            last_failure: None,
            not_before_ns: 0,
            stopped: false,
        }
    }

    /// Makes the next connection if one is due.
    pub(super) fn next(&mut self, io: &mut PlaceIo<'_>) -> Option<Ending> {
        if self.call.is_some() {
            return None;
        }
        let now_ns = now_ns();
        if now_ns >= io.control.stop_ns() {
            self.stopped = true;
            return Some(io.control.stopped());
        }
        let due_ns = self.requests.due_ns()?.max(self.not_before_ns);
        if due_ns > now_ns {
            return None;
        }
        let ready_ns = self.requests.begin(now_ns).max(self.not_before_ns);
        io.latencies[self.latency].record_sent(ready_ns, now_ns);
        match self.dial(io) {
            Ok(()) => None,
            Err((doing, error)) => self.fail(io.control, doing, &error),
        }
    }

    /// Cost over loopback: the socket 2 µs; and by epoll connecting 10 µs with the server's part in
    /// it, the request 4 µs, the epoll set 0.5 µs.
    fn dial(&mut self, io: &mut PlaceIo<'_>) -> Result<(), (&'static str, io::Error)> {
        let flow = io.flow;
        let Some(PlaceEnd::Calls { peer, bind, .. }) = flow.place else {
            return Err(("finding the peer", io::ErrorKind::AddrNotAvailable.into()));
        };
        let opened = socket::open(peer, libc::IPPROTO_TCP);
        let socket = opened.map_err(|error| ("making a socket", error))?;
        let call = self.call.insert(Call {
            socket,
            sent_bytes: 0,
            received_bytes: 0,
            failure: None,
        });
        options::apply(call.socket.as_raw_fd(), &flow.config.options)
            .map_err(|refused| ("setting an option", refused.source))?;
        if self.request_bytes == 0 {
            // The hello goes with the last segment of the handshake, so that a connection without payload
            // is three segments and its end, as it would be without the hello. The option is a wish.
            let _ = socket::set(call.socket.as_raw_fd(), TCP_DEFER_ACCEPT, 1);
        }
        if let Some(address) = bind {
            socket::bind_before_connect(call.socket.as_fd(), address)
                .map_err(|error| ("binding", error))?;
        }
        match io.events {
            SocketEvents::Ring(ring) => self.call_by_ring(ring, io.key),
            SocketEvents::Epoll(_) => self.call_by_epoll(io, peer),
        }
    }

    fn call_by_epoll(
        &mut self,
        io: &mut PlaceIo<'_>,
        peer: SocketAddr,
    ) -> Result<(), (&'static str, io::Error)> {
        let Some(call) = &self.call else {
            return Ok(());
        };
        match socket::connect(call.socket.as_fd(), peer) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
                return Err(("connecting", error));
            }
            _ => {}
        }
        // Over loopback the connection exists by now, although the call does not say so; elsewhere
        // this costs 200 ns for the answer that it does not.
        let all = self.send(io).map_err(|error| ("connecting", error))?;
        let events = if all { READ | END } else { WRITE };
        self.watch(io, events, true)
            .map_err(|error| ("watching a connection", error))
    }

    /// Watches the socket of the call under way, by epoll; `new` says that it was not before.
    fn watch(&self, io: &PlaceIo<'_>, events: u32, new: bool) -> io::Result<()> {
        let (Some(call), SocketEvents::Epoll(set)) = (&self.call, &*io.events) else {
            return Ok(());
        };
        let fd = call.socket.as_raw_fd();
        if new {
            set.epoll.add(fd, io.key, events)
        } else {
            set.epoll.change(fd, io.key, events)
        }
    }

    /// Sends what is left of hello and request; returns whether all is sent.
    fn send(&mut self, io: &mut PlaceIo<'_>) -> io::Result<bool> {
        let (Some(call), Some(PlaceEnd::Calls { hello, .. })) = (&mut self.call, &io.flow.place)
        else {
            return Ok(true);
        };
        let all_bytes = hello.len() + self.request_bytes;
        if call.sent_bytes == all_bytes {
            return Ok(true);
        }
        let hello = &hello[call.sent_bytes.min(hello.len())..];
        let begun_bytes = call.sent_bytes.saturating_sub(self.hello_bytes);
        let rest = &io.payload[begun_bytes..self.request_bytes];
        match socket::send_both(call.socket.as_raw_fd(), hello, rest) {
            Ok(sent) => {
                note_sent(io, sent.saturating_sub(hello.len()));
                call.sent_bytes += sent;
                let all = call.sent_bytes == all_bytes;
                if all {
                    // An error here is one of the connection, and receiving reports it.
                    let _ =
                        options::apply_connected(call.socket.as_raw_fd(), &io.flow.config.options);
                }
                Ok(all)
            }
            Err(error) => match error.raw_os_error() {
                // ENOTCONN is what some kernels say of a connection under way.
                Some(libc::EAGAIN | libc::EINTR | libc::ENOTCONN) => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Goes on with the connection under way.
    pub(super) fn handle(&mut self, io: &mut PlaceIo<'_>, event: SocketEvent) -> Option<Ending> {
        let events = match event {
            SocketEvent::Done(done) => return self.handle_done(io, done),
            SocketEvent::Ready(events) => events,
        };
        let sending = self
            .call
            .as_ref()
            .is_some_and(|call| call.sent_bytes < self.hello_bytes + self.request_bytes);
        if sending {
            return match self.send(io) {
                Ok(false) => None,
                Ok(true) => match self.watch(io, READ | END, false) {
                    Ok(()) => None,
                    Err(error) => self.fail(io.control, "watching a connection", &error),
                },
                Err(error) => self.fail(io.control, "sending a request", &error),
            };
        }
        match self.receive(io, events & END != 0) {
            Ok(false) => None,
            Ok(true) => {
                self.complete(io);
                self.next(io)
            }
            Err(error) => self.fail(io.control, "receiving a response", &error),
        }
    }

    /// Takes what has come; returns whether that is the whole response and the end.
    fn receive(&mut self, io: &mut PlaceIo<'_>, ended: bool) -> io::Result<bool> {
        let Some(call) = &mut self.call else {
            return Ok(false);
        };
        let left_bytes = self.response_bytes - call.received_bytes;
        if left_bytes == 0 {
            // Without payload the connection itself may have failed.
            return match socket::read(call.socket.as_raw_fd(), SO_ERROR)? {
                0 => Ok(ended),
                code => Err(io::Error::from_raw_os_error(code)),
            };
        }
        let room_bytes = left_bytes.min(io.room.len());
        match socket::receive(call.socket.as_raw_fd(), &mut io.room[..room_bytes]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(received) => {
                io.flow.counters.received(received);
                call.received_bytes += received;
                Ok(received == left_bytes && ended)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
                _ => Err(error),
            },
        }
    }

    fn complete(&mut self, io: &mut PlaceIo<'_>) {
        if self.complete.is_multiple_of(ASKED_ONE_IN)
            && let Some(call) = &self.call
        {
            let ns = tcp_info::ask_ns(call.socket.as_raw_fd(), Metric::TcpMinRtt);
            io.flow.counters.note_rtt(ns.unwrap_or(0));
        }
        self.complete += 1;
        // Closed before the clock is read: closing is part of it.
        self.call = None;
        let now_ns = now_ns();
        let began_ns = self.requests.end(now_ns);
        io.latencies[self.latency].record(began_ns, now_ns);
        io.flow.counters.first_payload(|| now_ns);
        io.flow.counters.transactions(1);
        self.failed_in_a_row = 0;
    }

    /// Counts a connection that failed; gives the flow up when too many did one after another.
    ///
    /// One that outlives the trial is none: its peer has gone, which a SYN that is sent again late finds.
    fn fail(&mut self, control: &Control, doing: &str, error: &io::Error) -> Option<Ending> {
        self.call = None;
        let now_ns = now_ns();
        self.requests.end(now_ns);
        if now_ns >= control.stop_ns() {
            self.stopped = true;
            return Some(control.stopped());
        }
        self.not_before_ns = now_ns + PAUSE_NS;
        self.failed += 1;
        self.failed_in_a_row += 1;
        // The one place here that allocates: a failure is not the path of payload.
        let why = match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                format!("{doing} failed: the peer closed before it was complete")
            }
            io::ErrorKind::AddrNotAvailable => format!(
                "{doing} failed: {error} (all ports to that address are taken: \
                 net.ipv4.ip_local_port_range)"
            ),
            _ => format!("{doing} failed: {error}"),
        };
        let ending = (self.failed_in_a_row >= FAILURES_MAX).then(|| {
            Ending::Early(format!(
                "{FAILURES_MAX} connections in a row failed, the last: {why}"
            ))
        });
        self.last_failure = Some(why);
        ending
    }

    pub(super) fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        if now_ns >= control.stop_ns() && self.call.is_none() {
            self.stopped = true;
            return Some(control.stopped());
        }
        (now_ns >= control.limit_ns()).then(|| control.overdue("the response"))
    }

    pub(super) fn timer_ns(&self) -> Option<u64> {
        if self.call.is_some() || self.stopped {
            return None;
        }
        self.requests
            .due_ns()
            .map(|due_ns| due_ns.max(self.not_before_ns))
    }

    /// Returns the connections, of which `made` are complete.
    pub(crate) fn connections(&self, made: u64) -> ConnectionCount {
        ConnectionCount {
            made,
            failed: self.failed,
            last_failure: self.last_failure.clone(),
        }
    }
}

/// Counts what was sent of a request.
fn note_sent(io: &PlaceIo<'_>, bytes: usize) {
    if bytes > 0 {
        io.flow.counters.first_payload(now_ns);
        io.flow.counters.sent(bytes);
    }
}
