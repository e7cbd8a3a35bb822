//! The part that answers.

use std::io;

use crate::flow::FlowConfig;
use crate::pace::CALL_BYTES_MAX;
use crate::schedule::{Control, Ending};
use crate::sys::clock::{now_ns, tick_ns};
use crate::sys::socket::{self, TCP_QUICKACK};
use crate::workload::messages::{Messages, SizeSequence};
use crate::workload::rr::Shape;
use crate::workload::rr::pass::Pass;
use crate::workload::{Io, Play, Talk, Turn, Want, failed};

/// Answers requests until the requester closes.
#[derive(Debug)]
pub(crate) struct Responder {
    shape: Shape,
    acks_at_once: bool,
    requests: Messages,
    responses: SizeSequence,
    /// Requests without an answer, those of the call under way not counted.
    owed: u64,
    pass: Pass,
    /// Whether the requester does not wait at the stop for what is under way.
    is_left: bool,
    /// Bytes that the send call under way is to take, and those that it has; 0 = none is.
    call_bytes: usize,
    taken_bytes: usize,
    /// Responses in the call under way.
    call_responses: u64,
    /// When payload moved last, by the tick clock.
    moved_ns: u64,
}

impl Responder {
    /// Returns a responder.
    pub(crate) fn new(config: &FlowConfig) -> Self {
        let shape = Shape::of(config);
        Self {
            acks_at_once: config.acks_at_once(),
            requests: Messages::new(shape.request_sizes()),
            responses: shape.response_sizes(),
            owed: 0,
            pass: Pass::of(config),
            is_left: config.manner.has_pauses(),
            call_bytes: 0,
            taken_bytes: 0,
            call_responses: 0,
            moved_ns: 0,
            shape,
        }
    }

    /// Begins the next response, and those that one call may carry with it; returns whether one is due.
    fn begin(&mut self) -> bool {
        (self.call_bytes, self.taken_bytes, self.call_responses) = (0, 0, 0);
        if self.pass.is_of_steps() {
            self.call_bytes = self.pass.due().unwrap_or(0);
            return self.call_bytes > 0;
        }
        if self.owed == 0 {
            return false;
        }
        let most = self.shape.response_call_bytes_max();
        for _ in 0..self.shape.batch {
            self.call_bytes += self.responses.next();
            self.call_responses += 1;
            self.owed -= 1;
            let room = most - self.call_bytes;
            if self.owed == 0 || room < self.shape.largest(self.shape.response_bytes) {
                break;
            }
        }
        true
    }

    /// Returns whether a response, or a part of one, is due.
    fn owes(&mut self) -> bool {
        self.owed > 0 || self.pass.due().is_some()
    }

    /// Cost beside the send call: the tick clock 5 ns, three counters 1 ns each.
    fn send(&mut self, io: &mut Io<'_>) -> Turn {
        let mut rest = &io.payload[self.taken_bytes..self.call_bytes];
        if io.control.hold().is_some() {
            io.control.await_hold();
            rest = &rest[..rest.len().min(CALL_BYTES_MAX)];
        }
        let sent = match socket::send(io.flow.fd(), rest) {
            Ok(sent) => sent,
            Err(error) => {
                let closed = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
                // Who has waited long enough for the rest of the responses closes.
                if closed.contains(&error.kind()) && now_ns() >= io.control.stop_ns() {
                    return Turn::Ended(io.control.stopped());
                }
                return failed("sending a response", &error, Want::Writable);
            }
        };
        io.flow.counters.sent(sent);
        self.moved_ns = tick_ns();
        io.control.note_held(sent);
        self.taken_bytes += sent;
        if self.taken_bytes < self.call_bytes {
            return Turn::Moved(Want::Writable);
        }
        self.call_bytes = 0;
        self.pass.go_on();
        let of_steps = u64::from(self.pass.take_whole());
        io.flow
            .counters
            .transactions(self.call_responses + of_steps);
        if self.owes() {
            Turn::Moved(Want::Writable)
        } else {
            Turn::Rested(Want::Readable)
        }
    }
}

impl Talk for Responder {
    fn send_due(&mut self, io: &mut Io<'_>) -> Option<Turn> {
        let is_due = self.call_bytes > 0 || self.begin();
        is_due.then(|| self.send(io))
    }

    /// Cost beside the receive call: two counters 1 ns each, the tick clock 5 ns; with
    /// `acks_at_once` one more system call, 120 ns, or 1 µs when it sends an acknowledgement.
    fn handle_received(&mut self, io: &mut Io<'_>, received: io::Result<usize>) -> Turn {
        let received = match received {
            Ok(0) if self.requests.is_between() || self.is_left => {
                return Turn::Ended(io.control.closed_by_peer(now_ns()));
            }
            Ok(0) => {
                let text = "the peer closed the connection inside a request";
                return Turn::Ended(Ending::Early(text.to_owned()));
            }
            Ok(received) => received,
            Err(error) => return failed("receiving a request", &error, Want::Readable),
        };
        io.flow.counters.first_payload(now_ns);
        io.flow.counters.received(received);
        io.control.note_held(received);
        io.control.await_hold();
        if self.acks_at_once {
            // An error here is one of the connection, and the next receive reports it.
            let _ = socket::set(io.flow.fd(), TCP_QUICKACK, 1);
        }
        self.moved_ns = tick_ns();
        if let Some(ending) = self.tick(io.control, self.moved_ns) {
            return Turn::Ended(ending);
        }
        self.pass.received(received);
        let whole = self.requests.moved(received);
        self.owed += if self.pass.is_of_steps() { 0 } else { whole };
        Turn::Moved(if self.owes() {
            Want::Writable
        } else {
            Want::Readable
        })
    }

    fn room_bytes(&self) -> usize {
        self.shape.requests_bytes_max()
    }
}

impl Play for Responder {
    fn turn(&mut self, io: &mut Io<'_>) -> Turn {
        match self.send_due(io) {
            Some(turn) => turn,
            None => self.receive(io),
        }
    }

    fn timer_ns(&self) -> Option<u64> {
        self.pass.until_ns()
    }

    fn is_busy(&self) -> bool {
        self.pass.is_busy()
    }

    fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        (now_ns >= control.limit_ns()).then(|| {
            // Its requester says whether the rest is missed.
            if self.moved_ns >= control.stop_ns() {
                control.stopped()
            } else {
                control.overdue("the end of the requests")
            }
        })
    }
}
