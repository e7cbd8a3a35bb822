//! The end that answers connections: those of all flows of the trial that this worker takes up.
//!
//! Which worker that is decides nothing: each knows all flows of the trial, and counts for any.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use linerate_model::workload::FlowOptions;

use crate::flow::calls::{AtDoor, Callees, HelloBytes};
use crate::flow::opening::HELLO_BYTES;
use crate::flow::options;
use crate::schedule::Ending;
use crate::sys::call_ring::Done;
use crate::sys::clock::now_ns;
use crate::sys::epoll::{ALONE, READ, WRITE};
use crate::sys::socket;
use crate::workload::crr::{CalleeIo, SocketEvent, SocketEvents, bytes};

/// Key of the listener, of the bell, and of the first visit.
const LISTENER: usize = 0;
const BELL: usize = 1;
const VISITS: usize = 2;
/// Accept requests of one ring. Each takes one connection and queues behind those of the other workers, so
/// that all get their share: of requests that stay the kernel wakes the first again and again.
const ACCEPTS: usize = 4;
/// Connections that have not said anything yet; the others' owner waits for more of them.
const SILENT_MAX: usize = 64;
/// How long after the stop the last connection may still come: the clocks of two hosts agree to
/// 20 ms, and a caller begins nothing after its stop.
const QUIET_NS: u64 = 50_000_000;

/// Answers connections.
pub(crate) struct Callee {
    callees: Arc<Callees>,
    request_bytes: usize,
    response_bytes: usize,
    /// What accepted sockets are given, if anything.
    options: Option<FlowOptions>,
    pacing_bytes_per_s: Option<u64>,
    /// Connections, each at the place that its key names.
    visits: Vec<Option<Visit>>,
    free: Vec<usize>,
    silent: usize,
    /// Whether it accepts for itself.
    is_at_door: bool,
    /// When something last happened after the stop, on a clock of ticks.
    busy: bool,
    quiet_since_ns: u64,
    /// Whether it was quiet for long enough at the last look at the clock.
    was_quiet: bool,
}

/// A connection that was accepted.
#[derive(Debug)]
struct Visit {
    socket: OwnedFd,
    /// Whose it is, once it has said so.
    flow: Option<usize>,
    /// What of its hello is still to be read, which is there.
    hello_bytes: usize,
    received_bytes: usize,
    sent_bytes: usize,
    /// What it is watched for; 0 = nothing.
    watched: u32,
    /// Whether it was there at the last look at the clock.
    was_seen: bool,
}

/// How far a connection has come.
enum Step {
    /// It waits for these events.
    Waits(u32),
    /// It is over.
    Over,
    /// It is somebody else's.
    Other,
}

impl Callee {
    /// Returns one that answers for all `callees`, whose options are alike.
    pub(crate) fn new(callees: &Arc<Callees>) -> Self {
        let flow = callees.flow(0);
        let (request_bytes, response_bytes) = bytes(&flow.config.traffic);
        let options = &flow.config.options;
        let places = callees.count() + SILENT_MAX;
        Self {
            callees: Arc::clone(callees),
            request_bytes,
            response_bytes,
            options: (*options != FlowOptions::default()).then(|| options.clone()),
            pacing_bytes_per_s: flow.rate_max_bps.map(|rate| (rate / 8).max(1)),
            visits: (0..places).map(|_| None).collect(),
            free: (0..places).rev().collect(),
            silent: 0,
            is_at_door: false,
            busy: false,
            quiet_since_ns: 0,
            was_quiet: false,
        }
    }

    /// Returns how many sockets it may watch at once for so many flows.
    pub(crate) fn sockets_max(callees: &Callees) -> usize {
        VISITS + callees.count() + SILENT_MAX
    }

    /// Takes connections up from now on.
    ///
    /// A worker that is held to a rate sleeps, and would keep the connections of others waiting: it answers
    /// those that are handed in.
    pub(crate) fn begin(&mut self, io: &mut CalleeIo<'_>) -> Option<Ending> {
        let callees = Arc::clone(&self.callees);
        let watched = watch(io.events, callees.calls.bell().fd(), BELL, READ);
        let failed = |error: io::Error| Ending::Early(format!("watching the port failed: {error}"));
        if let Err(error) = watched {
            return Some(failed(error));
        }
        let held = io.control.hold().is_some();
        if let Some(listener) = callees.calls.listener().filter(|_| !held) {
            callees.calls.tell(AtDoor::Opens);
            self.is_at_door = true;
            let asked = match io.events {
                SocketEvents::Epoll(set) => set.epoll.add(listener, LISTENER, READ | ALONE),
                SocketEvents::Ring(ring) => {
                    (0..ACCEPTS).try_for_each(|_| ring.accept(listener, LISTENER))
                }
            };
            if let Err(error) = asked {
                return Some(failed(error));
            }
        }
        // What came before the start.
        self.take_handed(io);
        None
    }

    /// Takes a connection up, or goes on with one.
    ///
    /// Cost over loopback: accepting 3 µs, its first bytes 0.3 µs, the request 0.5 µs, the response 1 µs,
    /// closing 6 µs with the segment that carries response and end. They are calls with io_uring too: the
    /// request is there as a rule when its connection is accepted, and requests to the ring that receive,
    /// send and close, linked, took as long (bare loops: 51.5 and 50.8 µs a transaction, both ends, on
    /// two CPUs, 40.3 and 40.1 on one).
    pub(crate) fn handle(
        &mut self,
        io: &mut CalleeIo<'_>,
        key: usize,
        event: SocketEvent,
    ) -> Option<Ending> {
        self.busy = true;
        match (key, event) {
            (LISTENER, SocketEvent::Done(Done::Accepted { socket })) => {
                let again = match (&mut *io.events, self.callees.calls.listener()) {
                    (SocketEvents::Ring(ring), Some(listener)) => ring.accept(listener, LISTENER),
                    _ => Ok(()),
                };
                if let Err(error) = again {
                    let why = format!("asking io_uring to accept failed: {error}");
                    return Some(Ending::Early(why));
                }
                self.accepted(io, socket)
            }
            (LISTENER, _) => {
                let listener = self.callees.calls.listener()?;
                self.accepted(io, socket::accept(listener))
            }
            (BELL, event) => {
                let bell = self.callees.calls.bell();
                bell.silence();
                let fd = bell.fd();
                if let (SocketEvent::Done(_), SocketEvents::Ring(ring)) = (event, &mut *io.events)
                    && let Err(error) = ring.watch(fd, BELL, READ)
                {
                    return Some(Ending::Early(format!("watching the port failed: {error}")));
                }
                self.take_handed(io);
                None
            }
            (key, event) => {
                let at = key - VISITS;
                let visit = self.visits[at].as_mut()?;
                if matches!(event, SocketEvent::Done(_)) {
                    // The ring tells once.
                    visit.watched = 0;
                }
                self.go_on(io, at);
                None
            }
        }
    }

    fn accepted(&mut self, io: &mut CalleeIo<'_>, socket: io::Result<OwnedFd>) -> Option<Ending> {
        match socket {
            Ok(socket) => self.take_up(io, socket, None),
            Err(error) => return accept_failed(&error),
        }
        None
    }

    /// Takes up what was handed in.
    fn take_handed(&mut self, io: &mut CalleeIo<'_>) {
        let callees = Arc::clone(&self.callees);
        while self.free.len() > SILENT_MAX - self.silent
            && let Some((socket, hello)) = callees.calls.take()
        {
            if let Some(flow) = callees.find(&hello) {
                self.take_up(io, socket, Some(flow));
            }
        }
    }

    /// Gives a connection its place, of this flow if that was said already, and begins with it.
    fn take_up(&mut self, io: &mut CalleeIo<'_>, socket: OwnedFd, flow: Option<usize>) {
        let Some(at) = self.free.pop() else {
            return self.callees.calls.tell(AtDoor::Other(socket));
        };
        let visit = Visit {
            socket,
            flow: None,
            hello_bytes: 0,
            received_bytes: 0,
            sent_bytes: 0,
            watched: 0,
            was_seen: false,
        };
        self.visits[at] = Some(visit);
        self.silent += 1;
        match flow {
            Some(flow) if !self.introduce(io, at, flow, 0) => self.forget(io, at),
            _ => self.go_on(io, at),
        }
    }

    /// Notes whose connection it is; returns whether its flow may have it. The oldest of this worker's gives
    /// way to a new one.
    fn introduce(
        &mut self,
        io: &mut CalleeIo<'_>,
        at: usize,
        flow: usize,
        hello_bytes: usize,
    ) -> bool {
        if !self.callees.enter(flow) {
            let is_of_flow = |visit: &Option<Visit>| {
                visit.as_ref().is_some_and(|visit| visit.flow == Some(flow))
            };
            let Some(older) = self.visits.iter().position(is_of_flow) else {
                return false;
            };
            self.forget(io, older);
            if !self.callees.enter(flow) {
                return false;
            }
        }
        let Some(visit) = &mut self.visits[at] else {
            return false;
        };
        visit.flow = Some(flow);
        visit.hello_bytes = hello_bytes;
        self.silent -= 1;
        let fd = visit.socket.as_raw_fd();
        if let Some(options) = &self.options {
            // They were granted to a socket of the same kind.
            let _ = options::apply(fd, options);
            let _ = options::apply_connected(fd, options);
        }
        if let Some(bytes_per_s) = self.pacing_bytes_per_s {
            let _ = socket::limit_pacing(fd, bytes_per_s);
        }
        true
    }

    /// Does what can be done with a connection at once.
    fn go_on(&mut self, io: &mut CalleeIo<'_>, at: usize) {
        // Nothing is said of a connection that fails: its caller counts it.
        match self.step(io, at).unwrap_or(Step::Over) {
            Step::Waits(_) if self.is_too_silent(at) => self.give_back(io, at),
            Step::Waits(events) => {
                let Some(visit) = &mut self.visits[at] else {
                    return;
                };
                if visit.watch(io.events, at, events).is_err() {
                    self.forget(io, at);
                }
            }
            Step::Over => self.forget(io, at),
            Step::Other => self.give_back(io, at),
        }
    }

    /// Returns whether a connection has said nothing, and too many others have not either.
    fn is_too_silent(&self, at: usize) -> bool {
        let visit = self.visits[at].as_ref();
        visit.is_some_and(|visit| visit.flow.is_none()) && self.silent > SILENT_MAX
    }

    /// Returns how far a connection has come.
    fn step(&mut self, io: &mut CalleeIo<'_>, at: usize) -> io::Result<Step> {
        let Some(visit) = &self.visits[at] else {
            return Ok(Step::Over);
        };
        let fd = visit.socket.as_raw_fd();
        let flow = match visit.flow {
            Some(flow) => flow,
            None => {
                let mut first: HelloBytes = [0; HELLO_BYTES];
                let flow = match socket::peek(fd, &mut first) {
                    Ok(HELLO_BYTES) => self.callees.find(&first),
                    Ok(0) => return Ok(Step::Over),
                    // Whoever says less at once is waited for by the others' owner.
                    Ok(_) => None,
                    Err(error) if is_early(&error) => return Ok(Step::Waits(READ)),
                    Err(error) => return Err(error),
                };
                let Some(flow) = flow else {
                    return Ok(Step::Other);
                };
                if !self.introduce(io, at, flow, HELLO_BYTES) {
                    return Ok(Step::Over);
                }
                flow
            }
        };
        let Some(visit) = &mut self.visits[at] else {
            return Ok(Step::Over);
        };
        let flow = self.callees.flow(flow);
        let counters = &flow.counters;
        let left_bytes = self.request_bytes - visit.received_bytes;
        let wanted_bytes = visit.hello_bytes + left_bytes;
        if wanted_bytes > 0 {
            let room_bytes = wanted_bytes.min(io.room.len());
            match socket::receive(fd, &mut io.room[..room_bytes]) {
                Ok(0) => return Ok(Step::Over),
                Ok(received) => {
                    // The hello is there as a whole, and no payload.
                    let received = received - visit.hello_bytes.min(received);
                    visit.hello_bytes = 0;
                    if received > 0 {
                        counters.first_payload(now_ns);
                        counters.received_by_any(received);
                        io.control.note_held(received);
                        visit.received_bytes += received;
                    }
                    if received < left_bytes {
                        return Ok(Step::Waits(READ));
                    }
                }
                Err(error) if is_early(&error) => return Ok(Step::Waits(READ)),
                Err(error) => return Err(error),
            }
        }
        let rest = &io.payload[visit.sent_bytes..self.response_bytes];
        if !rest.is_empty() {
            io.control.await_hold();
            match socket::send_more(fd, rest) {
                Ok(sent) => {
                    counters.sent_by_any(sent);
                    io.control.note_held(sent);
                    visit.sent_bytes += sent;
                    if sent < rest.len() {
                        return Ok(Step::Waits(WRITE));
                    }
                }
                Err(error) if is_early(&error) => return Ok(Step::Waits(WRITE)),
                Err(error) => return Err(error),
            }
        }
        counters.first_payload(now_ns);
        counters.transaction_by_any();
        Ok(Step::Over)
    }

    /// Closes a connection.
    fn forget(&mut self, io: &mut CalleeIo<'_>, at: usize) {
        self.take_out(io, at);
    }

    /// Gives a connection to whom the listener belongs.
    fn give_back(&mut self, io: &mut CalleeIo<'_>, at: usize) {
        if let Some(visit) = self.take_out(io, at) {
            self.callees.calls.tell(AtDoor::Other(visit.socket));
        }
    }

    /// Ends a visit, whose place is free then.
    fn take_out(&mut self, io: &mut CalleeIo<'_>, at: usize) -> Option<Visit> {
        let visit = self.visits[at].take()?;
        self.free.push(at);
        match visit.flow {
            Some(flow) => self.callees.leave(flow),
            None => self.silent -= 1,
        }
        if visit.watched != 0 {
            // What watches a socket would keep it beyond our descriptor. Whoever has the place when that is
            // heard of is looked at in vain.
            let _ = match io.events {
                SocketEvents::Ring(ring) => ring.unwatch(VISITS + at),
                SocketEvents::Epoll(set) => set.epoll.remove(visit.socket.as_raw_fd()),
            };
        }
        Some(visit)
    }

    /// Looks at the clock.
    pub(crate) fn tick(&mut self, io: &mut CalleeIo<'_>, now_ns: u64) -> Option<Ending> {
        self.pass_silent_on(io);
        // What found no place when it was handed in.
        self.take_handed(io);
        let control = io.control;
        if now_ns < control.stop_ns() {
            return None;
        }
        if now_ns >= control.limit_ns() {
            return Some(control.stopped());
        }
        let is_ours = |visit: &Visit| visit.flow.is_some();
        let waits = self.visits.iter().flatten().any(is_ours);
        if self.quiet_since_ns == 0 || waits || std::mem::take(&mut self.busy) {
            self.quiet_since_ns = now_ns;
        }
        // What came while this thread had no CPU is heard of before the next look.
        let is_quiet = now_ns - self.quiet_since_ns >= QUIET_NS;
        let was_quiet = std::mem::replace(&mut self.was_quiet, is_quiet);
        (is_quiet && was_quiet).then(|| control.stopped())
    }

    /// Gives back who has said nothing since the look before the last.
    fn pass_silent_on(&mut self, io: &mut CalleeIo<'_>) {
        if self.silent == 0 {
            return;
        }
        for at in 0..self.visits.len() {
            match &mut self.visits[at] {
                Some(visit) if visit.flow.is_none() && visit.was_seen => self.give_back(io, at),
                Some(visit) => visit.was_seen = true,
                None => {}
            }
        }
    }

    /// Leaves the listener to the others, with what was accepted for them. Nothing watches any more.
    pub(crate) fn leave(&mut self, accepted: Vec<OwnedFd>) {
        let calls = &self.callees.calls;
        for socket in accepted {
            calls.tell(AtDoor::Other(socket));
        }
        for visit in self.visits.iter_mut().filter_map(Option::take) {
            match visit.flow {
                Some(flow) => self.callees.leave(flow),
                None => calls.tell(AtDoor::Other(visit.socket)),
            }
        }
        if std::mem::take(&mut self.is_at_door) {
            calls.tell(AtDoor::Leaves);
        }
    }
}

/// A worker that fails leaves the listener to the others, too.
impl Drop for Callee {
    fn drop(&mut self) {
        self.leave(Vec::new());
    }
}

impl Visit {
    /// Watches for what the visit waits for; it goes on then.
    fn watch(&mut self, events: &mut SocketEvents, at: usize, wanted: u32) -> io::Result<()> {
        let (fd, key) = (self.socket.as_raw_fd(), VISITS + at);
        match (&mut *events, self.watched) {
            (SocketEvents::Epoll(set), watched) if watched != 0 && watched != wanted => {
                set.epoll.change(fd, key, wanted)?;
            }
            (_, 0) => watch(events, fd, key, wanted)?,
            _ => {}
        }
        self.watched = wanted;
        Ok(())
    }
}

fn watch(events: &mut SocketEvents, fd: i32, key: usize, wanted: u32) -> io::Result<()> {
    match events {
        SocketEvents::Ring(ring) => ring.watch(fd, key, wanted),
        SocketEvents::Epoll(set) => set.epoll.add(fd, key, wanted),
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
        // The listener is gone.
        Some(libc::EINVAL | libc::EBADF | libc::ENOTSOCK) => Some(Ending::Early(format!(
            "accepting a connection failed: {error}"
        ))),
        _ => None,
    }
}
