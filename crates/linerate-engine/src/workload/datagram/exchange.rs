//! Requests and responses of one datagram each.
//!
//! A request begins with its number, least significant byte first, as far as request and response
//! have room for it; the response repeats it. So the response to a request that was given up is
//! not taken for that to another one. Where sizes differ, a response is as long as its request.
//! A server of another program that repeats no number has answered the request that has waited for the longest.

use linerate_model::shortfall::RequestCount;
use linerate_model::workload::Traffic;

use super::requests::Requests;
use super::{
    DatagramIo, DatagramPlay, EndMarks, Failure, Step, ended_by_peer, failure, listen_on, send,
};
use crate::flow::opening::Signal;
use crate::flow::{FlowConfig, Words};
use crate::measure::Window;
use crate::measure::latency::Longest;
use crate::schedule::Control;
use crate::sys::clock::now_ns;
use crate::workload::Want;
use crate::workload::sizes::Draw;
use crate::workload::timing::RequestTiming;

/// How long a response is waited for: as long as the smallest retransmission timeout of Linux's
/// TCP, so that a loss costs a transaction what it costs there.
pub(super) const PATIENCE_NS: u64 = 200_000_000;
/// How often requests that wait are looked at, so that none waits for a tenth more than its time.
const LOOK_NS: u64 = PATIENCE_NS / 20;
/// Pause of a requester that watches the clock when the socket's buffer is full.
const FULL_NS: u64 = 50_000;
/// The longest name.
const NAME_BYTES_MAX: usize = 8;

/// Returns the sizes of a flow's transactions, where they differ.
fn draw(config: &FlowConfig) -> Option<Draw> {
    let sizes = config.manner.sizes.as_ref()?;
    Some(Draw::of_datagrams(sizes, config.flow, 1))
}

/// Returns the sizes of request and response, where they do not differ.
fn fixed(traffic: &Traffic) -> (usize, usize) {
    traffic.exchange().map_or((1, 1), |(request, response)| {
        (request.0 as usize, response.0 as usize)
    })
}

/// Returns the largest request and the largest response.
pub(super) fn largest(config: &FlowConfig) -> (usize, usize) {
    match draw(config) {
        Some(draw) => (draw.largest(), draw.largest()),
        None => fixed(&config.traffic),
    }
}

/// Returns how many bytes of a request name it.
fn name_bytes(config: &FlowConfig) -> usize {
    let (request, response) = fixed(&config.traffic);
    let least = draw(config).map_or(request.min(response), |draw| draw.smallest());
    least.min(NAME_BYTES_MAX)
}

/// Sends requests and times the responses.
#[derive(Debug)]
pub(crate) struct Requester {
    name_bytes: usize,
    request_bytes: usize,
    response_bytes: usize,
    draw: Option<Draw>,
    /// The size of the next request, where it has been drawn.
    drawn: Option<usize>,
    requests: Requests,
    /// Whether requests are held to a rate.
    is_held: bool,
    times: usize,
    longest: Longest,
    /// When requests that wait are looked at next.
    look_ns: u64,
    /// Whether the stop has been seen: nothing new is begun.
    stopped: bool,
    end_marks: Option<EndMarks>,
}

impl Requester {
    /// Returns a requester.
    pub(super) fn new(
        config: &FlowConfig,
        window: Window,
        times: usize,
        control: &Control,
    ) -> Self {
        let (request_bytes, response_bytes) = fixed(&config.traffic);
        let timing = RequestTiming::of(&config.manner, control.start_ns(), config.flow);
        Self {
            name_bytes: name_bytes(config),
            request_bytes,
            response_bytes,
            draw: draw(config),
            drawn: None,
            requests: Requests::new(config.manner.in_flight as usize, timing),
            is_held: control.hold().is_some(),
            times,
            longest: Longest::new(window),
            look_ns: 0,
            stopped: false,
            end_marks: None,
        }
    }

    /// Returns whether it watches the clock.
    pub(crate) fn is_timed(&self) -> bool {
        self.is_held || self.requests.timing.is_timed()
    }

    /// Returns the longest transaction.
    pub(super) fn stall_max_ns(&self) -> u64 {
        self.longest.longest_ns()
    }

    /// Returns the requests of an open loop.
    pub(super) fn requests(&self, control: &Control, now_ns: u64) -> Option<RequestCount> {
        self.requests.timing.count(control, now_ns)
    }

    /// Cost beside the send call: the clock 30 ns, four counters 1 ns each, the slot 8 ns, and with
    /// sizes that differ what drawing one takes.
    fn send_request(&mut self, io: &mut DatagramIo<'_>, number: u64, now_ns: u64) -> Step {
        let (request_bytes, response_bytes) = match &mut self.draw {
            None => (self.request_bytes, self.response_bytes),
            Some(draw) => {
                let bytes = *self.drawn.get_or_insert_with(|| draw.next_bytes());
                io.outbox.cut(0, bytes);
                (bytes, bytes)
            }
        };
        let name = &number.to_le_bytes()[..self.name_bytes];
        io.outbox.buffer(0)[..self.name_bytes].copy_from_slice(name);
        let refused = match send(io, 1, "sending a request") {
            Ok(_) => false,
            Err(Failure::Refused) => true,
            Err(Failure::Full) => {
                io.counters.waits.add(1);
                return if self.is_timed() {
                    Step::At(now_ns + FULL_NS)
                } else {
                    Step::Wait(Want::Writable)
                };
            }
            Err(Failure::Over(ending)) => return Step::Ended(ending),
        };
        io.counters.refused.add(refused.into());
        io.counters.sent.add(1);
        io.counters.buffers_sent.add(1);
        io.flow.counters.first_payload(|| now_ns);
        io.flow.counters.sent(request_bytes);
        io.control.note_held(request_bytes + response_bytes);
        self.drawn = None;
        let ready_ns = self.requests.begin(now_ns, response_bytes);
        io.times[self.times].record_sent(ready_ns, now_ns);
        Step::Again
    }

    /// Cost beside the receive call: the clock 30 ns, the histogram 4 ns, the slot 5 ns, five
    /// counters 1 ns each; every 10 ms 1 ns for each request that may be under way.
    fn receive_response(&mut self, io: &mut DatagramIo<'_>) -> Step {
        let fd = io.flow.fd();
        if let Err(error) = io.inbox.receive(fd) {
            return match failure(fd, "receiving a response", &error) {
                Failure::Over(ending) => Step::Ended(ending),
                Failure::Full | Failure::Refused => self.wait(io, now_ns()),
            };
        }
        let now_ns = now_ns();
        self.give_up(io, now_ns);
        let (response, length, _) = io.inbox.buffer(0);
        let wrong = self.draw.is_none() && length != self.response_bytes;
        if wrong || length < self.name_bytes || Signal::read(response).is_some() {
            io.counters.strange.add(1);
            return Step::Again;
        }
        io.counters.received.add(1);
        io.counters.buffers_received.add(1);
        io.flow.counters.received(length);
        let (name, bits) = match io.flow.words {
            Words::Empty => (self.requests.oldest_number(), u64::BITS),
            _ => {
                let mut name = [0; NAME_BYTES_MAX];
                name[..self.name_bytes].copy_from_slice(&response[..self.name_bytes]);
                (u64::from_le_bytes(name), self.name_bytes as u32 * 8)
            }
        };
        let Some(since_ns) = self.requests.complete(name, bits, length, now_ns) else {
            // To a request that was given up, or a second time.
            io.counters.late.add(1);
            return Step::Again;
        };
        io.times[self.times].record(since_ns, now_ns);
        self.longest.note(since_ns, now_ns);
        io.flow.counters.transactions(1);
        Step::Again
    }

    /// Gives up requests whose time is over, if it is time to look.
    fn give_up(&mut self, io: &DatagramIo<'_>, now_ns: u64) {
        let sent_until_ns = match io.control.limit_ns() {
            // An abort.
            0 => u64::MAX,
            _ if now_ns < self.look_ns => return,
            _ => now_ns.saturating_sub(PATIENCE_NS),
        };
        self.look_ns = now_ns + LOOK_NS;
        let longest = &mut self.longest;
        self.requests.give_up(sent_until_ns, now_ns, |since_ns| {
            io.counters.unanswered.add(1);
            longest.note(since_ns, now_ns);
        });
    }

    /// Returns when the next request may be sent; none while as many as may be are under way.
    fn due_ns(&self, control: &Control) -> Option<u64> {
        let due_ns = self.requests.due_ns()?;
        Some(match control.hold() {
            None => due_ns,
            Some(hold) => due_ns.max(hold.opens_ns()),
        })
    }

    /// Returns how to wait, unless something was given up.
    fn wait(&mut self, io: &DatagramIo<'_>, now_ns: u64) -> Step {
        let before = self.requests.under_way();
        self.give_up(io, now_ns);
        if self.requests.under_way() < before {
            return Step::Again;
        }
        match self.due_ns(io.control).filter(|_| !self.stopped) {
            // What is due in an untimed loop is asked at once.
            Some(due_ns) => Step::Until(due_ns),
            None => Step::Wait(Want::Readable),
        }
    }

    /// Says the end as soon as nothing is under way.
    fn end(&mut self, io: &mut DatagramIo<'_>, now_ns: u64) -> Step {
        self.stopped = true;
        if self.requests.under_way() > 0 {
            return self.receive_response(io);
        }
        let end_marks = EndMarks::new(io.control.stopped());
        let at_ns = end_marks.begin_ns(now_ns);
        self.end_marks = Some(end_marks);
        Step::At(at_ns)
    }
}

impl DatagramPlay for Requester {
    /// Cost beside a call: 2 ns, and the clock 30 ns where one is to be asked or watched.
    fn step(&mut self, io: &mut DatagramIo<'_>) -> Step {
        if let Some(end_marks) = &mut self.end_marks {
            return end_marks.step(io, now_ns());
        }
        let next = self.due_ns(io.control).zip(self.requests.next_number());
        let (Some((due_ns, number)), false) = (next, self.stopped) else {
            return if self.stopped && self.requests.under_way() == 0 {
                self.end(io, now_ns())
            } else {
                self.receive_response(io)
            };
        };
        let now_ns = now_ns();
        if now_ns >= io.control.stop_ns() {
            return self.end(io, now_ns);
        }
        if due_ns <= now_ns {
            self.send_request(io, number, now_ns)
        } else {
            self.receive_response(io)
        }
    }

    fn tick(&mut self, io: &DatagramIo<'_>, now_ns: u64) -> Step {
        match self.requests.under_way() {
            0 => Step::Again,
            _ => self.wait(io, now_ns),
        }
    }
}

/// Answers requests until the requester says that it is done.
#[derive(Debug)]
pub(crate) struct Responder {
    name_bytes: usize,
    /// The least and the greatest request.
    request_bytes: (usize, usize),
    /// Whether a response is as long as its request.
    mixed: bool,
    last_ns: u64,
}

impl Responder {
    /// Returns a responder.
    pub(super) fn new(config: &FlowConfig) -> Self {
        let (request_bytes, _) = fixed(&config.traffic);
        let draw = draw(config);
        Self {
            name_bytes: name_bytes(config),
            request_bytes: match &draw {
                Some(draw) => (draw.smallest(), draw.largest()),
                None => (request_bytes, request_bytes),
            },
            mixed: draw.is_some(),
            last_ns: 0,
        }
    }

    /// Sends a response; one that the socket cannot take now is lost, and the requester counts it.
    fn respond(&mut self, io: &mut DatagramIo<'_>) -> Step {
        let response = io.outbox.buffer(0);
        let bytes = response.len();
        io.control.await_hold();
        let refused = match send(io, 1, "sending a response") {
            Ok(_) => false,
            Err(Failure::Full | Failure::Refused) => true,
            Err(Failure::Over(ending)) => return Step::Ended(ending),
        };
        io.counters.refused.add(refused.into());
        io.counters.sent.add(1);
        io.counters.buffers_sent.add(1);
        io.flow.counters.sent(bytes);
        io.control.note_held(bytes);
        Step::Again
    }
}

impl DatagramPlay for Responder {
    /// Cost beside both calls: the clock 30 ns, seven counters 1 ns each.
    fn step(&mut self, io: &mut DatagramIo<'_>) -> Step {
        let fd = io.flow.fd();
        if let Err(error) = io.inbox.receive(fd) {
            return match failure(fd, "receiving a request", &error) {
                Failure::Over(ending) => Step::Ended(ending),
                Failure::Full | Failure::Refused => Step::Wait(Want::Readable),
            };
        }
        let now_ns = now_ns();
        self.last_ns = now_ns;
        let (request, length, _) = io.inbox.buffer(0);
        match Signal::read(request) {
            Some(Signal::End { datagrams, .. }) => {
                io.counters.announce(datagrams);
                return Step::Ended(ended_by_peer(io, now_ns));
            }
            Some(_) => return Step::Again,
            None => {}
        }
        let (least, most) = self.request_bytes;
        if !(least..=most).contains(&length) {
            io.counters.strange.add(1);
            return Step::Again;
        }
        if self.mixed {
            io.outbox.cut(0, length);
        }
        io.outbox.buffer(0)[..self.name_bytes].copy_from_slice(&request[..self.name_bytes]);
        io.counters.received.add(1);
        io.counters.buffers_received.add(1);
        io.flow.counters.first_payload(|| now_ns);
        io.flow.counters.received(length);
        io.control.note_held(length);
        if now_ns >= io.control.limit_ns() {
            return Step::Ended(io.control.stopped());
        }
        self.respond(io)
    }

    fn tick(&mut self, io: &DatagramIo<'_>, now_ns: u64) -> Step {
        listen_on(io.control, self.last_ns, now_ns)
    }
}
