//! Takes payload to the end of the stream.

use std::io;

use linerate_model::manner::ReceiveBy;

use crate::flow::FlowConfig;
use crate::measure::Window;
use crate::measure::gap::Gap;
use crate::schedule::{Control, Ending, GRACE_NS};
use crate::sys::clock::now_ns;
use crate::sys::socket::{self, TCP_QUICKACK};
use crate::workload::sizes::Draw;
use crate::workload::stream::messages::Messages;
use crate::workload::{Io, Play, Turn, Want, failed};

/// Most bytes that one receive call drops. The call returns as soon as the queue is empty, so
/// that the limit only keeps the counters young.
const DISCARD_BYTES: usize = 1 << 20;

/// Receives bulk payload until its end.
#[derive(Debug)]
pub(crate) struct Receiver {
    by: ReceiveBy,
    gap: Gap,
    /// When payload came last.
    arrived_ns: u64,
    acks_at_once: bool,
    /// Boundaries of messages, if they differ in size.
    messages: Option<Messages>,
    /// Payload after which the sender stops, if it does so before the end of the trial.
    bytes_max: Option<u64>,
}

impl Receiver {
    /// Returns a receiver; `acks_at_once` asks for an acknowledgement after every receive.
    pub(crate) fn new(config: &FlowConfig, window: Window, acks_at_once: bool) -> Self {
        let sizes = config.manner.sizes.as_ref();
        Self {
            by: config.manner.receive,
            gap: Gap::new(window),
            arrived_ns: 0,
            acks_at_once,
            messages: sizes.map(|sizes| Messages::new(Draw::new(sizes, config.flow))),
            bytes_max: config.manner.bytes_max.map(|bytes| bytes.0),
        }
    }

    fn receive(&self, io: &mut Io<'_>) -> (usize, io::Result<usize>) {
        match self.by {
            ReceiveBy::Copy => (io.room.len(), socket::receive(io.flow.fd(), io.room)),
            ReceiveBy::Discard => (DISCARD_BYTES, socket::discard(io.flow.fd(), DISCARD_BYTES)),
        }
    }

    fn closed(&self, io: &Io<'_>) -> Ending {
        match self.bytes_max {
            Some(most) if io.flow.counters.read().bytes_received >= most => io.control.stopped(),
            _ => io.control.closed_by_peer(now_ns()),
        }
    }
}

/// How recently payload must have come for a stream that goes on: a flow of a thousand on a line of 100
/// Mbit/s has a segment each 0.25 s, and one that lost its path at the stop has had none for 2 s.
const STILL_COMES_NS: u64 = GRACE_NS / 4;

/// Returns whether a stream whose payload came last at `arrived_ns` goes on.
fn still_comes(arrived_ns: u64, now_ns: u64) -> bool {
    now_ns.saturating_sub(arrived_ns) < STILL_COMES_NS
}

impl Play for Receiver {
    /// Cost beside the receive call: the clock 30 ns, two counters 1 ns each, the gap 2 ns, the
    /// limit 1 ns; with `acks_at_once` one more system call, 120 ns, or 1 µs when it sends an
    /// acknowledgement; with mixed sizes 1 to 40 ns a message. A receive call of a few KiB takes
    /// 1 µs, one of 128 KiB 15 µs, half of that without a copy.
    fn turn(&mut self, io: &mut Io<'_>) -> Turn {
        let (asked, received) = self.receive(io);
        let received = match received {
            Ok(0) => return Turn::Ended(self.closed(io)),
            Ok(received) => received,
            Err(error) => return failed("receiving", &error, Want::Readable),
        };
        let now_ns = now_ns();
        io.flow.counters.first_payload(|| now_ns);
        io.flow.counters.received(received);
        if let Some(messages) = &mut self.messages {
            io.flow.counters.messages(messages.moved(received));
        }
        self.gap.arrived(now_ns);
        self.arrived_ns = now_ns;
        if self.acks_at_once {
            // An error here is one of the connection, and the next receive reports it.
            let _ = socket::set(io.flow.fd(), TCP_QUICKACK, 1);
        }
        if let Some(ending) = self.tick(io.control, now_ns) {
            return Turn::Ended(ending);
        }
        if received < asked {
            return Turn::Rested(Want::Readable);
        }
        Turn::Moved(Want::Readable)
    }

    /// A stream whose payload still comes at the limit is whole: what lay in the buffers of many flows
    /// takes a slow line longer than the grace time.
    fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        (now_ns >= control.limit_ns()).then(|| match still_comes(self.arrived_ns, now_ns) {
            true => control.stopped(),
            false => control.overdue("the end of the stream"),
        })
    }

    fn stall_max_ns(&self, now_ns: u64) -> Option<u64> {
        Some(self.gap.longest_ns(now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_at_the_stop_does_not_come_still_when_the_waiting_is_over() {
        let (stop_ns, limit_ns) = (7_000_000_000, 7_000_000_000 + GRACE_NS);
        assert!(
            !still_comes(stop_ns + 100_000_000, limit_ns),
            "the path went"
        );
        assert!(still_comes(limit_ns - 250_000_000, limit_ns), "a slow line");
        assert!(!still_comes(0, limit_ns), "nothing ever came");
    }
}
