//! The part that sends requests and times the responses.

use std::io;

use crate::flow::FlowConfig;
use crate::measure::Window;
use crate::schedule::{Control, Ending};
use crate::sys::clock::{now_ns, tick_ns};
use crate::sys::socket::{self, TCP_QUICKACK};
use crate::workload::messages::{Messages, SizeSequence};
use crate::workload::rr::Shape;
use crate::workload::rr::pass::Pass;
use crate::workload::rr::requests::OrderedRequests;
use crate::workload::timing::RequestTiming;
use crate::workload::{Io, Play, Talk, Turn, Want, failed};

/// Sends requests and times the responses.
#[derive(Debug)]
pub(crate) struct Requester {
    shape: Shape,
    latency: usize,
    acks_at_once: bool,
    pub(crate) requests: OrderedRequests,
    request_sizes: SizeSequence,
    responses: Messages,
    /// What the send call under way has to hand over.
    call: Call,
    pass: Pass,
    /// Whether the stop does not wait for what is under way: a pause may be longer than anybody waits.
    leaves: bool,
    /// When a response was last complete: the clock of an untimed closed loop.
    last_ns: u64,
    /// When payload came last, by the tick clock.
    arrived_ns: u64,
    /// Whether the stop has been seen: nothing new is begun.
    stopped: bool,
}

/// The send call that is under way.
#[derive(Debug, Clone, Copy, Default)]
struct Call {
    /// Bytes that it is to take; 0 = none is under way.
    bytes: usize,
    taken_bytes: usize,
    /// Whether the socket had no room: responses are then taken before it is asked again, so that
    /// two ends that both want to send cannot wait for each other.
    blocked: bool,
}

/// What comes next.
enum Next {
    Send,
    Receive,
    Over,
}

impl Requester {
    /// Returns a requester that records in the worker's latency record number `latency`.
    pub(crate) fn new(
        config: &FlowConfig,
        control: &Control,
        window: Window,
        latency: usize,
    ) -> Self {
        let shape = Shape::of(config);
        let timing = RequestTiming::of(&config.manner, control.start_ns(), config.flow);
        Self {
            latency,
            acks_at_once: config.acks_at_once(),
            requests: OrderedRequests::new(shape.in_flight, timing, window),
            request_sizes: shape.request_sizes(),
            responses: Messages::new(shape.response_sizes()),
            call: Call::default(),
            pass: Pass::of(config),
            leaves: config.manner.has_pauses(),
            last_ns: 0,
            arrived_ns: 0,
            stopped: false,
            shape,
        }
    }

    /// Decides; cost 2 ns, and the clock 30 ns in an open loop or with a think time.
    fn next(&mut self, io: &mut Io<'_>) -> Next {
        if self.call.bytes > 0 {
            return Next::Send;
        }
        if self.pass.is_under_way() && self.goes_on(io) {
            return Next::Send;
        }
        let warm = self.requests.is_warm() && !self.requests.timing.is_timed() && !self.leaves;
        let now_ns = if warm { self.last_ns } else { now_ns() };
        if now_ns >= io.control.stop_ns() {
            self.stopped = true;
            return match self.requests.under_way() {
                0 => Next::Over,
                _ if self.leaves => Next::Over,
                _ => Next::Receive,
            };
        }
        match self.requests.due_ns() {
            Some(due_ns) if due_ns <= now_ns && !self.pass.is_under_way() => {
                self.begin(io, now_ns);
                Next::Send
            }
            _ => Next::Receive,
        }
    }

    /// Returns whether the next call of the request that is under way is to be made now, and which; completes it where its
    /// last step is over.
    fn goes_on(&mut self, io: &mut Io<'_>) -> bool {
        let due = self.pass.due();
        // Not yet where that is the first one of the next.
        self.call.bytes = due.filter(|_| self.pass.is_under_way()).unwrap_or(0);
        if self.pass.take_whole() {
            self.complete(io, 1, now_ns());
        }
        self.call.bytes > 0
    }

    /// Takes so many bytes that have come of an exchange of steps.
    fn take_step(&mut self, io: &mut Io<'_>, received: usize) -> Turn {
        self.pass.received(received);
        let waits = self.pass.is_under_way() && !self.goes_on(io) && self.pass.is_under_way();
        if self.pass.is_overrun() {
            sent_more()
        } else if waits {
            Turn::Moved(Want::Readable)
        } else {
            Turn::Moved(self.want())
        }
    }

    /// Begins the request that is due, and those due with it that one call may carry.
    fn begin(&mut self, io: &mut Io<'_>, now_ns: u64) {
        let record = &mut io.latencies[self.latency];
        self.call.taken_bytes = 0;
        if let Some(bytes) = self.pass.due() {
            record.record_sent(self.requests.begin(now_ns), now_ns);
            self.call.bytes = bytes;
            return;
        }
        let mut bytes = 0;
        for _ in 0..self.shape.batch {
            record.record_sent(self.requests.begin(now_ns), now_ns);
            bytes += self.request_sizes.next();
            let more = self
                .requests
                .due_ns()
                .is_some_and(|due_ns| due_ns <= now_ns);
            let room = self.shape.request_call_bytes_max() - bytes;
            if !more || room < self.shape.largest(self.shape.request_bytes) {
                break;
            }
        }
        self.call.bytes = bytes;
    }

    /// Cost beside the send call: two counters 1 ns each, the arithmetic 2 ns.
    fn send(&mut self, io: &mut Io<'_>) -> Turn {
        let rest = &io.payload[self.call.taken_bytes..self.call.bytes];
        let sent = match socket::send(io.flow.fd(), rest) {
            Ok(sent) => sent,
            Err(error) => {
                let turn = failed("sending a request", &error, self.want());
                self.call.blocked = matches!(turn, Turn::Blocked(_));
                return turn;
            }
        };
        io.flow.counters.first_payload(now_ns);
        io.flow.counters.sent(sent);
        self.call.taken_bytes += sent;
        self.call.blocked = false;
        if self.call.taken_bytes == self.call.bytes {
            self.call.taken_bytes = 0;
            self.call.bytes = 0;
            self.pass.go_on();
            if self.pass.is_under_way() {
                self.goes_on(io);
            }
        }
        if self.call.bytes == 0 && !self.may_send() {
            Turn::Rested(Want::Readable)
        } else {
            Turn::Moved(self.want())
        }
    }

    /// Returns whether a slot is free whose instant may have come.
    fn may_send(&self) -> bool {
        match self.requests.due_ns() {
            None => false,
            Some(_) if self.pass.is_under_way() => false,
            // A timed one is told by its timer.
            Some(_) => !self.requests.timing.is_timed(),
        }
    }

    /// Returns what a part that has something to send is woken by, whether its socket had no room or
    /// its turns are used up: a peer that has responses to send may take no request before they are gone.
    fn want(&self) -> Want {
        let being_sent = u64::from(self.call.bytes > 0);
        if self.requests.under_way() > being_sent {
            Want::Either
        } else {
            // No response can come yet.
            Want::Writable
        }
    }

    /// Completes `complete` transactions at `now_ns`.
    ///
    /// Cost of each: the histogram 4 ns, the longest 1 ns, a counter 1 ns.
    fn complete(&mut self, io: &mut Io<'_>, complete: u64, now_ns: u64) {
        for _ in 0..complete {
            let began_ns = self.requests.end(now_ns);
            io.latencies[self.latency].record(began_ns, now_ns);
        }
        io.flow.counters.transactions(complete);
        self.last_ns = now_ns;
    }
}

/// Returns how a part ends whose peer does not keep to the exchange.
fn sent_more() -> Turn {
    let text = "the peer sent more than the responses to its requests";
    Turn::Ended(Ending::Early(text.to_owned()))
}

impl Talk for Requester {
    fn send_due(&mut self, io: &mut Io<'_>) -> Option<Turn> {
        match self.next(io) {
            Next::Send => Some(self.send(io)),
            Next::Receive => None,
            Next::Over => Some(Turn::Ended(io.control.stopped())),
        }
    }

    /// Cost beside the receive call: the clocks 30 and 5 ns, two counters 1 ns each, and what a complete
    /// transaction costs; with `acks_at_once` one more system call, 120 ns, or 1 µs when it sends
    /// an acknowledgement. A transaction over loopback takes 8 µs of both ends.
    ///
    /// A clock reading for each receive call, not one for each wait: 0.4 % of a transaction, and
    /// a latency is that of the request, not of the flows that were served before it.
    fn handle_received(&mut self, io: &mut Io<'_>, received: io::Result<usize>) -> Turn {
        let received = match received {
            Ok(0) => {
                let text = "the peer closed the connection before its response was complete";
                return Turn::Ended(Ending::Early(text.to_owned()));
            }
            Ok(received) => received,
            Err(error) => return failed("receiving a response", &error, Want::Readable),
        };
        io.flow.counters.received(received);
        self.arrived_ns = tick_ns();
        if self.acks_at_once {
            // An error here is one of the connection, and the next receive reports it.
            let _ = socket::set(io.flow.fd(), TCP_QUICKACK, 1);
        }
        if self.pass.is_of_steps() {
            return self.take_step(io, received);
        }
        let complete = self.responses.moved(received);
        if complete > self.requests.under_way() {
            return sent_more();
        }
        if complete == 0 {
            return Turn::Moved(Want::Readable);
        }
        self.complete(io, complete, now_ns());
        if self.requests.timing.is_timed() && self.call.bytes == 0 {
            Turn::Rested(Want::Readable)
        } else {
            Turn::Moved(self.want())
        }
    }

    fn room_bytes(&self) -> usize {
        self.shape.responses_bytes_max()
    }
}

impl Play for Requester {
    fn turn(&mut self, io: &mut Io<'_>) -> Turn {
        if !self.call.blocked
            && let Some(turn) = self.send_due(io)
        {
            return turn;
        }
        match self.receive(io) {
            Turn::Blocked(_) | Turn::Rested(_) if self.call.blocked => self.send(io),
            // Watching only what is to come would leave the call undone.
            Turn::Moved(_) if self.call.blocked => Turn::Moved(Want::Either),
            turn => turn,
        }
    }

    fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        if now_ns >= control.stop_ns() && (self.requests.under_way() == 0 || self.leaves) {
            return Some(control.stopped());
        }
        (now_ns >= control.limit_ns()).then(|| {
            // Those to many requests take a slow line longer than anybody waits; the window was over before.
            if self.arrived_ns >= control.stop_ns() {
                control.stopped()
            } else {
                control.overdue("the response")
            }
        })
    }

    fn timer_ns(&self) -> Option<u64> {
        if self.pass.is_under_way() {
            return self.pass.until_ns();
        }
        // In the middle of a call it is the socket that is waited for.
        if !self.requests.timing.is_timed() || self.stopped || self.call.bytes > 0 {
            return None;
        }
        self.requests.due_ns()
    }

    fn is_quiet(&self) -> bool {
        self.requests.under_way() == 0
    }

    fn is_busy(&self) -> bool {
        self.pass.is_busy()
    }
}
