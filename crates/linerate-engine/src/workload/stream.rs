//! Payload in one direction, as fast as the path takes it.

use crate::measure::Window;
use crate::measure::gap::Gap;
use crate::schedule::Control;
use crate::sys::clock::{now_ns, tick_ns};
use crate::sys::socket::{self, TCP_QUICKACK};
use crate::workload::{Ending, Io, Play, Turn, Want, failed};

/// Sends bulk payload, one send call a message.
#[derive(Debug)]
pub(crate) struct Sender {
    message_bytes: usize,
    /// How much of the current message has been taken; 0 between messages.
    taken_bytes: usize,
}

impl Sender {
    /// Returns a sender of messages of `message_bytes`.
    pub(crate) fn new(message_bytes: usize) -> Self {
        Self {
            message_bytes,
            taken_bytes: 0,
        }
    }
}

impl Play for Sender {
    /// Cost beside the send call: the tick clock 5 ns, two counters 1 ns each, the rest 1 ns.
    /// Against 700 ns for the cheapest send call (a byte that joins a waiting segment), 1 %. The
    /// tick clock is up to 10 ms late, so a sender stops that much after the stop; the exact clock
    /// would cost 30 ns a call and buy nothing, since nothing is counted after the window.
    fn turn(&mut self, io: &mut Io<'_>) -> Turn {
        if tick_ns() >= io.control.stop_ns() {
            return Turn::Ended(io.control.stopped());
        }
        let rest = &io.payload[self.taken_bytes..self.message_bytes];
        match socket::send(io.flow.fd(), rest) {
            Ok(sent) => {
                io.flow.counters.first_payload(now_ns);
                io.flow.counters.sent(sent);
                self.taken_bytes += sent;
                if self.taken_bytes == self.message_bytes {
                    self.taken_bytes = 0;
                }
                Turn::Moved(Want::Writable)
            }
            Err(error) => failed("sending", &error, Want::Writable),
        }
    }

    fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        (now_ns >= control.stop_ns()).then(|| control.stopped())
    }

    fn stall_max_ns(&self, _now_ns: u64) -> Option<u64> {
        None
    }
}

/// Receives bulk payload until its end.
#[derive(Debug)]
pub(crate) struct Receiver {
    gap: Gap,
    acks_at_once: bool,
}

impl Receiver {
    /// Returns a receiver; `acks_at_once` asks for an acknowledgement after every receive.
    pub(crate) fn new(window: Window, acks_at_once: bool) -> Self {
        Self {
            gap: Gap::new(window),
            acks_at_once,
        }
    }
}

impl Play for Receiver {
    /// Cost beside the receive call: the clock 30 ns, two counters 1 ns each, the gap 2 ns, the
    /// limit 1 ns; with `acks_at_once` one more system call, 120 ns, or 1 µs when it sends an
    /// acknowledgement. A receive call of a few KiB takes 1 µs, one of 128 KiB 15 µs.
    fn turn(&mut self, io: &mut Io<'_>) -> Turn {
        let received = match socket::receive(io.flow.fd(), io.room) {
            Ok(0) => return Turn::Ended(io.control.closed_by_peer(now_ns())),
            Ok(received) => received,
            Err(error) => return failed("receiving", &error, Want::Readable),
        };
        let now_ns = now_ns();
        io.flow.counters.first_payload(|| now_ns);
        io.flow.counters.received(received);
        self.gap.arrived(now_ns);
        if self.acks_at_once {
            // An error here is one of the connection, and the next receive reports it.
            let _ = socket::set(io.flow.fd(), TCP_QUICKACK, 1);
        }
        if let Some(ending) = self.tick(io.control, now_ns) {
            return Turn::Ended(ending);
        }
        if received < io.room.len() {
            return Turn::Rested(Want::Readable);
        }
        Turn::Moved(Want::Readable)
    }

    fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        (now_ns >= control.limit_ns()).then(|| control.overdue("the end of the stream"))
    }

    fn stall_max_ns(&self, now_ns: u64) -> Option<u64> {
        Some(self.gap.longest_ns(now_ns))
    }
}
