//! A request, then a response, then the next request on the same flow.

use linerate_model::workload::Traffic;

use crate::measure::Window;
use crate::measure::latency::Longest;
use crate::schedule::Control;
use crate::sys::clock::{now_ns, tick_ns};
use crate::sys::socket::{self, TCP_QUICKACK};
use crate::workload::{Ending, Io, Play, Turn, Want, failed};

/// The sizes of a transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    request_bytes: usize,
    response_bytes: usize,
    request_writes: usize,
}

impl Shape {
    /// Returns the sizes that `traffic` asks for; a stream has none and counts as 1 byte each.
    pub(crate) fn of(traffic: &Traffic) -> Self {
        match traffic {
            Traffic::Rr {
                request_bytes,
                response_bytes,
                request_writes,
            } => Self {
                request_bytes: request_bytes.0 as usize,
                response_bytes: response_bytes.0 as usize,
                request_writes: *request_writes as usize,
            },
            Traffic::Stream { .. } | Traffic::Crr { .. } | Traffic::Idle => Self {
                request_bytes: 1,
                response_bytes: 1,
                request_writes: 1,
            },
        }
    }

    /// Returns where in the request the send call number `at` ends; the first ones take the
    /// bytes that do not divide evenly.
    fn write_end(&self, at: usize) -> usize {
        let (each, more) = (
            self.request_bytes / self.request_writes,
            self.request_bytes % self.request_writes,
        );
        (at + 1) * each + (at + 1).min(more)
    }
}

/// Sends requests and times the responses.
#[derive(Debug)]
pub(crate) struct Requester {
    shape: Shape,
    latency: usize,
    acks_at_once: bool,
    longest: Longest,
    /// When the current transaction began: the end of the one before, so that one reading of the
    /// clock serves both. 0 before the first.
    began_ns: u64,
    stage: Stage,
}

/// Where a requester is in its transaction.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// So many calls of the request are done, and so many of its bytes taken.
    Sending { write: usize, taken_bytes: usize },
    /// So many bytes of the response are to come.
    Receiving { left_bytes: usize },
}

/// Between two transactions.
const AT_START: Stage = Stage::Sending {
    write: 0,
    taken_bytes: 0,
};

impl Requester {
    /// Returns a requester that records in the worker's latency record number `latency`.
    pub(crate) fn new(shape: Shape, window: Window, latency: usize, acks_at_once: bool) -> Self {
        Self {
            shape,
            latency,
            acks_at_once,
            longest: Longest::new(window),
            began_ns: 0,
            stage: AT_START,
        }
    }

    /// Cost beside the send call: two counters 1 ns each, the arithmetic 2 ns.
    fn send(&mut self, io: &mut Io<'_>, write: usize, taken_bytes: usize) -> Turn {
        if taken_bytes == 0 {
            if self.began_ns == 0 {
                self.began_ns = now_ns();
            }
            if self.began_ns >= io.control.stop_ns() {
                return Turn::Ended(io.control.stopped());
            }
        }
        let end = self.shape.write_end(write);
        let sent = match socket::send(io.flow.fd(), &io.payload[taken_bytes..end]) {
            Ok(sent) => sent,
            Err(error) => return failed("sending a request", &error, Want::Writable),
        };
        io.flow.counters.first_payload(now_ns);
        io.flow.counters.sent(sent);
        let taken_bytes = taken_bytes + sent;
        if taken_bytes == self.shape.request_bytes {
            self.stage = Stage::Receiving {
                left_bytes: self.shape.response_bytes,
            };
            return Turn::Rested(Want::Readable);
        }
        let write = write + usize::from(taken_bytes == end);
        self.stage = Stage::Sending { write, taken_bytes };
        Turn::Moved(Want::Writable)
    }

    /// Cost beside the receive call: the clock 30 ns, the histogram 4 ns, three counters 1 ns
    /// each, the longest transaction 1 ns; with `acks_at_once` one more system call, 120 ns, or
    /// 1 µs when it sends an acknowledgement. A transaction over loopback takes 7 µs and up.
    fn receive(&mut self, io: &mut Io<'_>, left_bytes: usize) -> Turn {
        let room_bytes = left_bytes.min(io.room.len());
        let received = match socket::receive(io.flow.fd(), &mut io.room[..room_bytes]) {
            Ok(0) => {
                let text = "the peer closed the connection before its response was complete";
                return Turn::Ended(Ending::Early(text.to_owned()));
            }
            Ok(received) => received,
            Err(error) => return failed("receiving a response", &error, Want::Readable),
        };
        io.flow.counters.received(received);
        if self.acks_at_once {
            // An error here is one of the connection, and the next receive reports it.
            let _ = socket::set(io.flow.fd(), TCP_QUICKACK, 1);
        }
        if received < left_bytes {
            self.stage = Stage::Receiving {
                left_bytes: left_bytes - received,
            };
            return Turn::Moved(Want::Readable);
        }
        let now_ns = now_ns();
        io.latencies[self.latency].record(self.began_ns, now_ns);
        self.longest.note(self.began_ns, now_ns);
        io.flow.counters.transaction();
        self.began_ns = now_ns;
        self.stage = AT_START;
        Turn::Moved(Want::Writable)
    }
}

impl Play for Requester {
    fn turn(&mut self, io: &mut Io<'_>) -> Turn {
        match self.stage {
            Stage::Sending { write, taken_bytes } => self.send(io, write, taken_bytes),
            Stage::Receiving { left_bytes } => self.receive(io, left_bytes),
        }
    }

    fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        (now_ns >= control.limit_ns()).then(|| control.overdue("the response"))
    }

    fn stall_max_ns(&self, now_ns: u64) -> Option<u64> {
        let mut longest = self.longest;
        let between = matches!(
            self.stage,
            Stage::Sending {
                write: 0,
                taken_bytes: 0
            }
        );
        if !between {
            longest.note(self.began_ns, now_ns);
        }
        Some(longest.longest_ns())
    }
}

/// Answers requests until the requester closes.
#[derive(Debug)]
pub(crate) struct Responder {
    shape: Shape,
    acks_at_once: bool,
    stage: Answer,
}

/// Where a responder is in its transaction.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// So many bytes of the request are to come.
    Receiving { left_bytes: usize },
    /// So many bytes of the response are taken.
    Sending { taken_bytes: usize },
}

impl Responder {
    /// Returns a responder.
    pub(crate) fn new(shape: Shape, acks_at_once: bool) -> Self {
        Self {
            shape,
            acks_at_once,
            stage: Answer::Receiving {
                left_bytes: shape.request_bytes,
            },
        }
    }

    /// Cost beside the receive call: two counters 1 ns each, the tick clock 5 ns; with
    /// `acks_at_once` one more system call, 120 ns, or 1 µs when it sends an acknowledgement.
    fn receive(&mut self, io: &mut Io<'_>, left_bytes: usize) -> Turn {
        let room_bytes = left_bytes.min(io.room.len());
        let received = match socket::receive(io.flow.fd(), &mut io.room[..room_bytes]) {
            Ok(0) if left_bytes == self.shape.request_bytes => {
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
        if self.acks_at_once {
            // An error here is one of the connection, and the next receive reports it.
            let _ = socket::set(io.flow.fd(), TCP_QUICKACK, 1);
        }
        if let Some(ending) = self.tick(io.control, tick_ns()) {
            return Turn::Ended(ending);
        }
        if received < left_bytes {
            self.stage = Answer::Receiving {
                left_bytes: left_bytes - received,
            };
            return Turn::Moved(Want::Readable);
        }
        self.stage = Answer::Sending { taken_bytes: 0 };
        Turn::Moved(Want::Writable)
    }

    /// Cost beside the send call: two counters 1 ns each.
    fn send(&mut self, io: &mut Io<'_>, taken_bytes: usize) -> Turn {
        let rest = &io.payload[taken_bytes..self.shape.response_bytes];
        let sent = match socket::send(io.flow.fd(), rest) {
            Ok(sent) => sent,
            Err(error) => return failed("sending a response", &error, Want::Writable),
        };
        io.flow.counters.sent(sent);
        if sent < rest.len() {
            self.stage = Answer::Sending {
                taken_bytes: taken_bytes + sent,
            };
            return Turn::Moved(Want::Writable);
        }
        self.stage = Answer::Receiving {
            left_bytes: self.shape.request_bytes,
        };
        Turn::Rested(Want::Readable)
    }
}

impl Play for Responder {
    fn turn(&mut self, io: &mut Io<'_>) -> Turn {
        match self.stage {
            Answer::Receiving { left_bytes } => self.receive(io, left_bytes),
            Answer::Sending { taken_bytes } => self.send(io, taken_bytes),
        }
    }

    fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        (now_ns >= control.limit_ns()).then(|| control.overdue("the end of the requests"))
    }

    fn stall_max_ns(&self, _now_ns: u64) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_split_over_its_calls() {
        let check = |request_bytes, request_writes, ends: &[usize]| {
            let shape = Shape {
                request_bytes,
                response_bytes: 1,
                request_writes,
            };
            let got: Vec<usize> = (0..request_writes).map(|at| shape.write_end(at)).collect();
            assert_eq!(got, ends);
        };
        check(1, 1, &[1]);
        check(2, 2, &[1, 2]);
        check(100, 3, &[34, 67, 100]);
        check(16, 16, &(1..=16).collect::<Vec<_>>());
    }
}
