//! Payload and requests in datagrams, one step at a time.
//!
//! A datagram of a stream carries iperf3's header: the sender's clock and a number that grows by
//! one, from 1 on. What the receiver misses was lost, whoever sent it.

/// Requests and responses.
mod exchange;
/// Takes the datagrams of a stream.
mod receiver;
/// Requests due, under way and complete.
mod requests;
/// Sends the datagrams of a stream.
mod sender;
/// Which numbers have come, and in what order.
mod sequence;
/// The header of a datagram.
mod stamp;

use std::net::Shutdown;
use std::sync::Arc;

use linerate_model::manner::{DATAGRAM_BYTES_MIN, ReceiveBy};
use linerate_model::shortfall::RequestCount;
use linerate_model::workload::Part;

use crate::flow::datagram::{is_news, receive_batch};
use crate::flow::{FlowConfig, Shared, Words, opening};
use crate::measure::Window;
use crate::measure::datagrams::DatagramCounters;
use crate::measure::latency::Latency;
use crate::schedule::{Control, Ending};
use crate::sys::datagram::{self, Inbox, Outbox};
use crate::sys::socket;
use crate::workload::sizes::Draw;
use crate::workload::{Seated, Want};

pub(crate) use exchange::Requester;
use exchange::Responder;
pub(crate) use receiver::Receiver;
use sender::Sender;

/// How long after the last payload the end is said: so long does a receiver that keeps up not take
/// to empty its buffer, in which the mark must not be one too many.
const BEFORE_END_NS: u64 = 20_000_000;
/// Time between two of them.
const BETWEEN_ENDS_NS: u64 = 10_000_000;
/// How often the end is said. All of these are lost in one of a million trials where a hundredth
/// of the datagrams is; then the silence ends it, as it does with ends of other programs.
const ENDS: u32 = 3;
/// Silence after the stop for which a receiver takes the other end to have stopped: more than
/// twice what senders take to say so, and than the clocks of two hosts differ.
const SILENCE_NS: u64 = 250_000_000;
/// Room of one buffer that may hold datagrams put together: the most that the kernel hands over.
const PUT_TOGETHER_BYTES: usize = 65_536;
/// What is taken of each datagram where the rest is discarded: header or word, in one cache line.
const HEADER_ROOM_BYTES: usize = 64;
/// Send calls in a row that may end with news of earlier datagrams; what ends the last one is about
/// this datagram.
const NEWS_IN_A_ROW: u32 = 3;
/// Memory of the buffers of one call: more would only leave the second-level cache.
pub(crate) const BUFFERS_BYTES_MAX: usize = 1 << 20;

/// What one step came to.
#[derive(Debug)]
pub(crate) enum Step {
    /// Something moved, and more may at once.
    Again,
    /// Nothing moves until the socket becomes this.
    Wait(Want),
    /// Nothing is to be done before this instant.
    At(u64),
    /// Nothing is to be done before this instant, unless something arrives before.
    Until(u64),
    /// The part is over.
    Ended(Ending),
}

/// What a step works with; one for a worker.
pub(crate) struct DatagramIo<'a> {
    pub(crate) flow: &'a Shared,
    pub(crate) counters: &'a DatagramCounters,
    pub(crate) control: &'a Control,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) inbox: &'a mut Inbox,
    /// The worker's records of times; a part knows its own by index.
    pub(crate) times: &'a mut [Latency],
}

/// What a worker needs of a part.
pub(crate) trait DatagramPlay {
    /// Makes one call that moves datagrams, if it is time.
    fn step(&mut self, io: &mut DatagramIo<'_>) -> Step;
    /// Looks at the clock while nothing moves; [`Step::Wait`] if there is nothing to do.
    fn tick(&mut self, io: &DatagramIo<'_>, now_ns: u64) -> Step;
}

/// Any part, with what its flow counts beside what all flows do.
#[derive(Debug)]
pub(crate) struct DatagramPlayer {
    pub(crate) counters: Arc<DatagramCounters>,
    pub(crate) part: DatagramPart,
}

/// Any part.
#[derive(Debug)]
pub(crate) enum DatagramPart {
    Sender(Sender),
    Receiver(Receiver),
    Requester(Requester),
    Responder(Responder),
}

impl Seated for DatagramPlayer {
    fn new(flow: &Shared, control: &Control, window: Window, record: usize) -> Self {
        let (config, start_ns) = (&flow.config, control.start_ns());
        let part = match config.part {
            Part::Sender => DatagramPart::Sender(Sender::new(config, record, start_ns)),
            Part::Receiver => DatagramPart::Receiver(Receiver::new(config, window)),
            Part::Requester => {
                DatagramPart::Requester(Requester::new(config, window, record, control))
            }
            Part::Responder => DatagramPart::Responder(Responder::new(config)),
        };
        // Every flow of datagrams has its counters: see flow/datagram.rs.
        let counters = flow.datagrams.clone().unwrap_or_default();
        Self { counters, part }
    }

    /// Nothing is shut down: the end was said in datagrams, and what still comes would be answered by
    /// ICMP.
    fn shutdown(&self, _: &Shared, _: &Ending) -> Option<Shutdown> {
        None
    }

    fn stall_max_ns(&self, now_ns: u64) -> Option<u64> {
        match &self.part {
            DatagramPart::Receiver(part) => Some(part.stall_max_ns(now_ns)),
            DatagramPart::Requester(part) => Some(part.stall_max_ns()),
            DatagramPart::Sender(_) | DatagramPart::Responder(_) => None,
        }
    }

    fn requests(&self, control: &Control, now_ns: u64) -> Option<RequestCount> {
        match &self.part {
            DatagramPart::Requester(part) => part.requests(control, now_ns),
            _ => None,
        }
    }
}

impl DatagramPart {
    /// Returns whether the part sends before it receives.
    pub(crate) fn sends_first(&self) -> bool {
        matches!(self, DatagramPart::Sender(_) | DatagramPart::Requester(_))
    }

    /// Returns whether the part listens and watches the clock at once.
    pub(crate) fn is_timed(&self) -> bool {
        matches!(self, DatagramPart::Requester(part) if part.is_timed())
    }
}

impl DatagramPlay for DatagramPart {
    fn step(&mut self, io: &mut DatagramIo<'_>) -> Step {
        match self {
            DatagramPart::Sender(part) => part.step(io),
            DatagramPart::Receiver(part) => part.step(io),
            DatagramPart::Requester(part) => part.step(io),
            DatagramPart::Responder(part) => part.step(io),
        }
    }

    fn tick(&mut self, io: &DatagramIo<'_>, now_ns: u64) -> Step {
        match self {
            DatagramPart::Sender(part) => part.tick(io, now_ns),
            DatagramPart::Receiver(part) => part.tick(io, now_ns),
            DatagramPart::Requester(part) => part.tick(io, now_ns),
            DatagramPart::Responder(part) => part.tick(io, now_ns),
        }
    }
}

/// Returns the sizes of the datagrams of a stream, where they differ; each has room for its header.
fn stream_draw(config: &FlowConfig) -> Option<Draw> {
    let sizes = config.manner.sizes.as_ref()?;
    Some(Draw::of_datagrams(sizes, config.flow, DATAGRAM_BYTES_MIN))
}

/// Returns the largest datagram of a stream.
fn stream_largest(config: &FlowConfig) -> usize {
    let fixed = config.traffic.stream();
    let drawn = stream_draw(config).map(|draw| draw.largest());
    drawn.unwrap_or(fixed.map_or(1, |(_, bytes)| bytes.0 as usize))
}

/// Returns the buffers from which a flow sends.
pub(crate) fn outbox(config: &FlowConfig) -> Outbox {
    let manner = &config.manner;
    match config.part {
        Part::Sender => {
            let bytes = stream_largest(config) * manner.segments.max(1) as usize;
            Outbox::new(call_buffers(manner.batch, bytes), bytes)
        }
        Part::Receiver => Outbox::new(1, 1),
        Part::Requester => Outbox::new(1, exchange::largest(config).0),
        Part::Responder => Outbox::new(1, exchange::largest(config).1),
    }
}

/// Returns the room into which a flow receives.
pub(crate) fn inbox(config: &FlowConfig) -> Inbox {
    let manner = &config.manner;
    match config.part {
        Part::Sender => Inbox::new(1, HEADER_ROOM_BYTES, false),
        Part::Receiver => {
            let bytes = match (manner.receive, manner.gro) {
                (ReceiveBy::Discard, _) => HEADER_ROOM_BYTES,
                (ReceiveBy::Copy, true) => PUT_TOGETHER_BYTES,
                // What is longer is another program's; its length is known all the same.
                (ReceiveBy::Copy, false) => stream_largest(config).max(HEADER_ROOM_BYTES),
            };
            Inbox::new(
                call_buffers(receive_batch(config), bytes),
                bytes,
                manner.gro,
            )
        }
        Part::Requester => Inbox::new(1, exchange::largest(config).1.max(HEADER_ROOM_BYTES), false),
        Part::Responder => Inbox::new(1, exchange::largest(config).0.max(HEADER_ROOM_BYTES), false),
    }
}

/// Returns how many buffers of `bytes` one call moves.
fn call_buffers(batch: u32, bytes: usize) -> usize {
    (batch as usize).clamp(1, (BUFFERS_BYTES_MAX / bytes.max(1)).max(1))
}

/// Sends the first `buffers` of the outbox, which takes them or a part of them; news of earlier
/// datagrams are forgotten.
fn send(io: &mut DatagramIo<'_>, buffers: usize, doing: &str) -> Result<usize, Failure> {
    let fd = io.flow.fd();
    for _ in 0..NEWS_IN_A_ROW {
        match io.outbox.send(fd, buffers) {
            Ok(sent) => return Ok(sent),
            Err(error) if is_news(&error) => datagram::forget_errors(fd),
            Err(error) => return Err(failure(fd, doing, &error)),
        }
    }
    Err(Failure::Refused)
}

/// What a failed call means.
enum Failure {
    /// The socket's buffer is full, or empty: later.
    Full,
    /// This host dropped what was sent: a full queue, no way to the peer, a datagram too long for it.
    Refused,
    /// The flow is over.
    Over(Ending),
}

fn failure(fd: i32, doing: &str, error: &std::io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR) => Failure::Full,
        Some(libc::ENOBUFS) => Failure::Refused,
        _ if is_news(error) => {
            datagram::forget_errors(fd);
            Failure::Full
        }
        Some(libc::ECONNREFUSED) => Failure::Over(Ending::Early(
            "nothing listens on the other end's port any more (ICMP port unreachable)".to_owned(),
        )),
        _ => Failure::Over(Ending::Early(format!("{doing} failed: {error}"))),
    }
}

/// Says the end, at its times; for whichever part sends first.
#[derive(Debug)]
struct EndMarks {
    said: u32,
    ending: Ending,
}

impl EndMarks {
    fn new(ending: Ending) -> Self {
        Self { said: 0, ending }
    }

    /// Returns when to say it first.
    fn begin_ns(&self, now_ns: u64) -> u64 {
        match self.ending {
            Ending::Complete => now_ns + BEFORE_END_NS,
            _ => now_ns,
        }
    }

    fn step(&mut self, io: &DatagramIo<'_>, now_ns: u64) -> Step {
        if io.flow.words == Words::None {
            // It would take the mark for payload.
            return Step::Ended(self.ending.clone());
        }
        let sent = io.counters.sent.read();
        let bytes = io.flow.counters.read().bytes_sent;
        if self.said == 0 && io.flow.config.manner.segments > 1 {
            // A mark must not be cut where datagrams are shorter than it.
            let _ = socket::set(io.flow.fd(), datagram::UDP_SEGMENT, 0);
        }
        let mark = opening::end(io.flow.config.flow.0, sent, bytes);
        let mark: &[u8] = match io.flow.words {
            Words::Empty => &[],
            _ => &mark,
        };
        // One that is not sent is one that is lost.
        let _ = socket::send(io.flow.fd(), mark);
        self.said += 1;
        if self.said < ENDS {
            return Step::At(now_ns + BETWEEN_ENDS_NS);
        }
        Step::Ended(self.ending.clone())
    }
}

/// Returns how a part ended whose peer said that it is done.
fn ended_by_peer(io: &DatagramIo<'_>, now_ns: u64) -> Ending {
    // A sender that may stop after so much payload is done when it has sent it.
    if io.flow.config.manner.bytes_max.is_some() {
        return io.control.stopped();
    }
    io.control.closed_by_peer(now_ns)
}

/// Looks whether a part that only listens ends by itself at `now_ns`; the last datagram came at
/// `last_ns`.
fn listen_on(control: &Control, last_ns: u64, now_ns: u64) -> Step {
    let since_ns = last_ns.max(control.stop_ns());
    let silent = now_ns.saturating_sub(since_ns) >= SILENCE_NS && now_ns >= control.stop_ns();
    if silent || now_ns >= control.limit_ns() {
        return Step::Ended(control.stopped());
    }
    Step::Wait(Want::Readable)
}
