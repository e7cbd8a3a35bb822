//! Takes payload to the end of the stream.

use std::io;

use linerate_model::manner::ReceiveBy;

use super::ROOM_REPEATS;
use crate::flow::FlowConfig;
use crate::measure::Window;
use crate::measure::gap::Gap;
use crate::pace::CALL_BYTES_MAX;
use crate::schedule::{Control, Ending};
use crate::sys::clock::now_ns;
use crate::sys::socket::{self, TCP_QUICKACK};
use crate::workload::messages::Messages;
use crate::workload::sizes::Draw;
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
    /// Returns a receiver.
    pub(crate) fn new(config: &FlowConfig, window: Window) -> Self {
        let sizes = config.manner.sizes.as_ref();
        Self {
            by: config.manner.receive,
            gap: Gap::new(window),
            arrived_ns: 0,
            acks_at_once: config.acks_at_once(),
            messages: sizes.map(|sizes| Messages::drawn(Draw::new(sizes, config.flow))),
            bytes_max: config.manner.bytes_max.map(|bytes| bytes.0),
        }
    }

    /// Returns the longest wait for payload.
    pub(crate) fn stall_max_ns(&self, now_ns: u64) -> u64 {
        self.gap.longest_ns(now_ns)
    }

    fn receive(&self, io: &mut Io<'_>) -> (usize, io::Result<usize>) {
        // What one call takes of a stream that is held goes ahead of its time.
        let most = match io.control.hold() {
            Some(_) => CALL_BYTES_MAX,
            None => usize::MAX,
        };
        match self.by {
            ReceiveBy::Copy => {
                let bytes = (io.room.len() * ROOM_REPEATS).min(most);
                let received = socket::receive_repeated(io.flow.fd(), io.room, bytes);
                (bytes, received)
            }
            ReceiveBy::Discard => {
                let bytes = DISCARD_BYTES.min(most);
                (bytes, socket::discard(io.flow.fd(), bytes))
            }
        }
    }

    fn closed(&self, io: &Io<'_>) -> Ending {
        match self.bytes_max {
            Some(most) if io.flow.counters.read().bytes_received >= most => io.control.stopped(),
            _ => io.control.closed_by_peer(now_ns()),
        }
    }
}

impl Play for Receiver {
    /// Cost beside the receive call: the clock 30 ns, two counters 1 ns each, the gap 2 ns, the
    /// limit 1 ns; with `acks_at_once` one more system call, 120 ns, or 1 µs when it sends an
    /// acknowledgement; with mixed sizes 1 to 40 ns a message. A receive call of a few KiB takes
    /// 1 µs, one of 128 KiB 15 µs, half of that without a copy.
    fn turn(&mut self, io: &mut Io<'_>) -> Turn {
        io.control.await_hold();
        let (asked, received) = self.receive(io);
        let received = match received {
            Ok(0) => return Turn::Ended(self.closed(io)),
            Ok(received) => received,
            Err(error) => return failed("receiving", &error, Want::Readable),
        };
        io.control.note_held(received);
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

    /// Whether a stream was whole whose end does not come in time, the launch says of all of them at once.
    fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        (now_ns >= control.limit_ns()).then(|| control.unheard(self.arrived_ns))
    }
}
