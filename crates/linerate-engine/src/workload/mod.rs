//! What each part of a workload does, one system call at a time.
//!
//! A part is a state machine that a worker turns. Each turn makes one call that moves payload, on
//! a blocking or a non-blocking socket alike; what differs is only what the worker does when the
//! call would have to wait. So every part works alone on a thread and among thousands.

/// A connection for each transaction.
pub(crate) mod crr;
/// Payload and requests in datagrams.
pub(crate) mod datagram;
/// Connections that carry nothing.
pub(crate) mod idle;
/// Whole messages, counted from bytes.
mod messages;
/// Request and response.
pub(crate) mod rr;
/// Sizes that differ, drawn alike at both ends.
mod sizes;
/// Payload in one direction.
pub(crate) mod stream;
/// When requests are due.
mod timing;

use std::io;
use std::net::Shutdown;
use std::ops::{Deref, DerefMut};

use linerate_model::run::ZeroCopyCount;
use linerate_model::sample::End;
use linerate_model::shortfall::{ConnectionCount, RequestCount};
use linerate_model::workload::{Part, Traffic};

use crate::flow::datagram::is_datagram;
use crate::flow::opening::HELLO_BYTES;
use crate::flow::{FlowConfig, Shared, Words};
use crate::measure::Window;
use crate::measure::latency::Latency;
use crate::schedule::{Control, Ending};
use crate::sys::socket;
use crate::sys::splice::Pipe;

use idle::IdlePart;
use rr::{Requester, Responder};
pub(crate) use stream::CpuYield;
use stream::{Receiver, Sender};

pub(crate) use crate::sys::epoll::Want;

/// What one turn came to.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Payload moved, and more may move at once, in this direction.
    Moved(Want),
    /// Payload moved, and nothing more will until the peer acts.
    Rested(Want),
    /// Nothing moved: the call would have had to wait, or waited as long as the socket allows.
    Blocked(Want),
    /// The part is over.
    Ended(Ending),
}

/// Everything that a turn works with; one for a worker, handed to each flow in turn.
pub(crate) struct Io<'a> {
    /// The flow.
    pub(crate) flow: &'a Shared,
    /// The schedule, and whether it still holds.
    pub(crate) control: &'a Control,
    /// Send buffer, as long as the longest message.
    pub(crate) payload: &'a [u8],
    /// Receive buffer; its content is never looked at.
    pub(crate) room: &'a mut [u8],
    /// Pipe that takes pages to a socket, where a sender uses vmsplice.
    pub(crate) pipe: Option<&'a mut Pipe>,
    /// When the worker lets others have its CPU.
    pub(crate) cpu_yield: &'a mut CpuYield,
    /// The worker's latency records; a requester knows its own by index.
    pub(crate) latencies: &'a mut [Latency],
}

/// What a worker needs of any part to seat it and to tell how it ended, whatever carries its payload.
pub(crate) trait Seated: Sized {
    /// Returns the part of `flow`, which has the record of times number `record` if it has one; what it
    /// allocates it allocates here.
    fn new(flow: &Shared, control: &Control, window: Window, record: usize) -> Self;
    /// Returns how the socket of `flow` is shut down as the part ends, if it is.
    fn shutdown(&self, flow: &Shared, ending: &Ending) -> Option<Shutdown>;
    /// Returns the longest stall, given that the part ends at `now_ns`.
    fn stall_max_ns(&self, now_ns: u64) -> Option<u64>;
    /// Returns what the kernel said about calls with MSG_ZEROCOPY, for a sender that makes them.
    fn zero_copy(&self) -> Option<ZeroCopyCount> {
        None
    }
    /// Returns the requests of an open loop, given that it ended at `now_ns`.
    fn requests(&self, control: &Control, now_ns: u64) -> Option<RequestCount>;
    /// Returns the connections of a part that makes them, one after another.
    fn connections(&self, _flow: &Shared) -> Option<ConnectionCount> {
        None
    }
}

/// What a worker needs of a part on a lasting connection.
pub(crate) trait Play {
    /// Makes one call that moves payload.
    fn turn(&mut self, io: &mut Io<'_>) -> Turn;
    /// Looks at the clock while nothing moves.
    fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending>;
    /// Returns when the part wants a turn whatever its socket says, if it does.
    fn timer_ns(&self) -> Option<u64> {
        None
    }
    /// Returns whether nothing can arrive before the part sends.
    fn is_quiet(&self) -> bool {
        false
    }
    /// Returns whether the worker is to stay awake until the timer goes off.
    fn is_busy(&self) -> bool {
        false
    }
}

/// A part that sends and receives in turn: a [`Play`] whose receive calls io_uring may make.
pub(crate) trait Talk {
    /// Makes one send call, if one is due; none says that it is the other end's turn.
    fn send_due(&mut self, io: &mut Io<'_>) -> Option<Turn>;
    /// Takes what a receive call returned.
    fn handle_received(&mut self, io: &mut Io<'_>, received: io::Result<usize>) -> Turn;
    /// Returns how many bytes the other end may have sent.
    fn room_bytes(&self) -> usize;

    /// Makes one receive call. One that did not fill its room has left nothing behind, so that no
    /// second one is made to be told so.
    fn receive(&mut self, io: &mut Io<'_>) -> Turn {
        let room_bytes = self.room_bytes().min(io.room.len());
        let received = socket::receive(io.flow.fd(), &mut io.room[..room_bytes]);
        let filled = matches!(received, Ok(bytes) if bytes == room_bytes);
        match self.handle_received(io, received) {
            Turn::Moved(Want::Readable) if !filled => Turn::Rested(Want::Readable),
            turn => turn,
        }
    }
}

/// Any part on a lasting connection.
#[derive(Debug)]
pub(crate) enum Player {
    /// Sends bulk payload.
    Sender(Sender),
    /// Receives bulk payload.
    Receiver(Receiver),
    /// Sends requests.
    Requester(Requester),
    /// Answers requests.
    Responder(Responder),
    /// Keeps a connection that carries nothing.
    Idle(IdlePart),
}

impl Seated for Player {
    fn new(flow: &Shared, control: &Control, window: Window, record: usize) -> Self {
        let config = &flow.config;
        match (&config.traffic, config.part) {
            (Traffic::Stream { message_bytes, .. }, Part::Sender) => {
                Player::Sender(Sender::new(flow, message_bytes.0 as usize))
            }
            (Traffic::Idle, part) => Player::Idle(IdlePart::new(part == Part::Sender)),
            // Places of connections are parts of another kind: see crr.
            (Traffic::Stream { .. } | Traffic::Crr { .. }, _) => {
                Player::Receiver(Receiver::new(config, window))
            }
            (Traffic::Rr { .. }, Part::Requester) => {
                Player::Requester(Requester::new(config, control, window, record))
            }
            (Traffic::Rr { .. }, _) => Player::Responder(Responder::new(config)),
        }
    }

    fn shutdown(&self, flow: &Shared, ending: &Ending) -> Option<Shutdown> {
        // The other end has said that it is over, and reads what is under way: iperf3's client waits for
        // the rest of a block until it sees the end of the stream.
        let has_sent_all = matches!(self, Player::Sender(part) if part.has_sent_all());
        let is_stopped = flow.config.end == End::Server && !has_sent_all;
        match (flow.config.part, ending) {
            // It hears of the end by its own protocol, and would take this for a connection that broke.
            (Part::Sender, Ending::Complete) if flow.words == Words::None && !is_stopped => None,
            // The peer of a sender reads on to this mark; what is under way is still delivered.
            (Part::Sender | Part::Requester, Ending::Complete) => Some(Shutdown::Write),
            _ => Some(Shutdown::Both),
        }
    }

    fn stall_max_ns(&self, now_ns: u64) -> Option<u64> {
        match self {
            Player::Receiver(part) => Some(part.stall_max_ns(now_ns)),
            Player::Requester(part) => Some(part.requests.stall_max_ns(now_ns)),
            Player::Sender(_) | Player::Responder(_) | Player::Idle(_) => None,
        }
    }

    fn zero_copy(&self) -> Option<ZeroCopyCount> {
        match self {
            Player::Sender(part) => part.zero_copy(),
            _ => None,
        }
    }

    fn requests(&self, control: &Control, now_ns: u64) -> Option<RequestCount> {
        match self {
            Player::Requester(part) => part.requests.timing.count(control, now_ns),
            _ => None,
        }
    }
}

impl Player {
    /// Returns the part as one whose receive calls io_uring may make.
    pub(crate) fn talk(&mut self) -> Option<&mut dyn Talk> {
        match self {
            Player::Sender(_) | Player::Receiver(_) | Player::Idle(_) => None,
            Player::Requester(part) => Some(part),
            Player::Responder(part) => Some(part),
        }
    }

    /// Returns what the part waits for before its first turn.
    pub(crate) fn first_want(&self) -> Want {
        match self {
            Player::Sender(_) | Player::Requester(_) => Want::Writable,
            Player::Receiver(_) | Player::Responder(_) | Player::Idle(_) => Want::Readable,
        }
    }
}

impl Deref for Player {
    type Target = dyn Play;

    fn deref(&self) -> &Self::Target {
        match self {
            Player::Sender(part) => part,
            Player::Receiver(part) => part,
            Player::Requester(part) => part,
            Player::Responder(part) => part,
            Player::Idle(part) => part,
        }
    }
}

impl DerefMut for Player {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Player::Sender(part) => part,
            Player::Receiver(part) => part,
            Player::Requester(part) => part,
            Player::Responder(part) => part,
            Player::Idle(part) => part,
        }
    }
}

/// Most bytes of one receive call of a part that talks.
const RECEIVE_BYTES: usize = 48 << 10;
/// Most bytes of one receive call of a worker with one flow of bulk payload, which fills its room again and
/// again (see [`stream::room_bytes`]). Fewer calls count for more than a room that stays in the first-level cache. Over loopback under reno, two CPUs, medians of 5 interleaved runs in
/// Gbit/s and CPU seconds a GiB of both ends: messages of 128 KiB 65 and 0.226 with 48 KiB, 69 and 0.222
/// with 128 KiB, 83 and 0.182 with 1 MiB; of 1 MiB 68 and 0.220, 74 and 0.198, 90 and 0.180; eight of
/// 128 KiB a call 68 and 0.226, 80 and 0.195, 93 and 0.169. SO_RCVLOWAT of 64 or 128 KiB changed nothing.
/// Whole programs of before and after, interleaved: 68 (54–89) and 92 (85–99), CPU 0.210 and 0.163.
const ALONE_RECEIVE_BYTES: usize = 1 << 20;
/// The same for a worker with several flows. Ten flows, two workers at each end, each on its CPU,
/// medians of interleaved runs, CPU seconds a GiB of both ends: 48 KiB 0.175, 128 KiB 0.172, 256 KiB
/// 0.159, 512 KiB 0.157; the best run of each in Gbit/s: 90, 101, 102, 75.
const SHARED_RECEIVE_BYTES: usize = 256 << 10;

/// Bytes that one call of this end may send at most: the payload buffer's length.
pub(crate) fn payload_bytes(config: &FlowConfig) -> usize {
    match (&config.traffic, config.part) {
        // They are sent from buffers of their own.
        _ if is_datagram(config) => 0,
        (Traffic::Stream { message_bytes, .. }, Part::Sender) => {
            stream::payload_bytes(config, message_bytes.0 as usize)
        }
        (Traffic::Rr { .. }, Part::Requester) => rr::Shape::of(config).request_call_bytes_max(),
        (Traffic::Rr { .. }, Part::Responder) => rr::Shape::of(config).response_call_bytes_max(),
        (traffic @ Traffic::Crr { .. }, _) => {
            let (request, response) = crr::bytes(traffic);
            request.max(response)
        }
        (Traffic::Stream { .. } | Traffic::Rr { .. } | Traffic::Idle, _) => 0,
    }
}

/// Bytes that one call of this end may receive at most: the length of the room, which a worker with so
/// many `flows` has for all of them.
pub(crate) fn room_bytes(config: &FlowConfig, flows: usize) -> usize {
    let message_bytes = match (&config.traffic, config.part) {
        // They are received into buffers of their own.
        _ if is_datagram(config) => 0,
        // With what says whose the request is.
        (Traffic::Crr { .. }, Part::Responder) => {
            return payload_bytes(config).min(RECEIVE_BYTES) + HELLO_BYTES;
        }
        (Traffic::Crr { .. }, _) => payload_bytes(config),
        // A receiver with SO_RCVLOWAT wakes to a fuller queue: with 32 KiB and room for 48 KiB it
        // took 0.29 µs for a message of 100 B, with room for all 0.22, and its sender 5 % less.
        (Traffic::Stream { .. }, Part::Receiver)
            if flows > 1 || config.manner.receive_low_water.is_some() =>
        {
            return stream::room_bytes(config, SHARED_RECEIVE_BYTES);
        }
        (Traffic::Stream { .. }, Part::Receiver) => {
            return stream::room_bytes(config, ALONE_RECEIVE_BYTES);
        }
        (Traffic::Rr { .. }, Part::Responder) => rr::Shape::of(config).requests_bytes_max(),
        (Traffic::Rr { .. }, Part::Requester) => rr::Shape::of(config).responses_bytes_max(),
        (Traffic::Stream { .. } | Traffic::Rr { .. } | Traffic::Idle, _) => 0,
    };
    message_bytes.min(RECEIVE_BYTES)
}

/// Returns what a failed call means; `doing` completes the sentence "… failed".
fn failed(doing: &str, error: &io::Error, want: Want) -> Turn {
    match error.kind() {
        // A signal is treated as a wait of no length: the clock is looked at and the call made
        // again.
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Turn::Blocked(want),
        // A reset that follows the end of the peer's stream: it was sent to after it closed.
        io::ErrorKind::BrokenPipe => Turn::Ended(Ending::Early(format!(
            "the peer closed the connection: {doing} failed: {error}"
        ))),
        _ => Turn::Ended(Ending::Early(format!("{doing} failed: {error}"))),
    }
}
