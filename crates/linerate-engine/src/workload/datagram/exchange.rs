//! Requests and responses of one datagram each.
//!
//! A request begins with its number, least significant byte first, as far as request and response
//! have room for it; the response repeats it. So the response to a request that was given up is
//! not taken for that to the next one.

use linerate_model::workload::Traffic;

use super::{Carry, Failure, Farewell, Post, Step, ended_by_peer, failure, listen_on};
use crate::flow::FlowConfig;
use crate::flow::opening::Word;
use crate::measure::Window;
use crate::measure::latency::Longest;
use crate::sys::clock::now_ns;
use crate::workload::Want;

/// How long a response is waited for: as long as the smallest retransmission timeout of Linux's
/// TCP, so that a loss costs a transaction what it costs there.
pub(super) const PATIENCE_NS: u64 = 200_000_000;

/// Returns how many bytes of a request name it.
fn name_bytes(traffic: &Traffic) -> usize {
    match traffic {
        Traffic::Rr {
            request_bytes,
            response_bytes,
            ..
        } => request_bytes.0.min(response_bytes.0).min(8) as usize,
        _ => 0,
    }
}

/// Sends requests one after another and times the responses.
#[derive(Debug)]
pub(crate) struct Requester {
    name_bytes: usize,
    response_bytes: usize,
    times: usize,
    longest: Longest,
    number: u64,
    /// When the request under way was sent.
    asked_ns: Option<u64>,
    farewell: Option<Farewell>,
}

impl Requester {
    /// Returns a requester.
    pub(super) fn new(config: &FlowConfig, window: Window, times: usize) -> Self {
        Self {
            name_bytes: name_bytes(&config.traffic),
            response_bytes: match config.traffic {
                Traffic::Rr { response_bytes, .. } => response_bytes.0 as usize,
                _ => 0,
            },
            times,
            longest: Longest::new(window),
            number: 0,
            asked_ns: None,
            farewell: None,
        }
    }

    /// Returns the longest transaction.
    pub(super) fn stall_max_ns(&self) -> u64 {
        self.longest.longest_ns()
    }

    /// Cost beside the send call: the clock 30 ns, four counters 1 ns each.
    fn ask(&mut self, post: &mut Post<'_>) -> Step {
        let fd = post.flow.fd();
        let now_ns = now_ns();
        if now_ns >= post.control.stop_ns() {
            let farewell = Farewell::new(post.control.stopped());
            let at_ns = farewell.begin_ns(now_ns);
            self.farewell = Some(farewell);
            return Step::At(at_ns);
        }
        let number = self.number.wrapping_add(1);
        let request = post.outbox.buffer(0);
        let bytes = request.len();
        request[..self.name_bytes].copy_from_slice(&number.to_le_bytes()[..self.name_bytes]);
        let refused = match post.outbox.send(fd, 1) {
            Ok(_) => false,
            Err(error) => match failure(fd, "sending a request", &error) {
                Failure::Full => {
                    post.counters.waits.add(1);
                    return Step::Wait(Want::Writable);
                }
                Failure::Refused => true,
                Failure::Over(ending) => return Step::Ended(ending),
            },
        };
        post.counters.refused.add(refused.into());
        post.counters.sent.add(1);
        post.counters.buffers_sent.add(1);
        post.flow.counters.first_payload(|| now_ns);
        post.flow.counters.sent(bytes);
        self.number = number;
        self.asked_ns = Some(now_ns);
        Step::Again
    }

    /// Cost beside the receive call: the clock 30 ns, the histogram 4 ns, five counters 1 ns each.
    fn hear(&mut self, post: &mut Post<'_>, asked_ns: u64) -> Step {
        let fd = post.flow.fd();
        if let Err(error) = post.inbox.receive(fd) {
            return match failure(fd, "receiving a response", &error) {
                Failure::Over(ending) => Step::Ended(ending),
                Failure::Full | Failure::Refused => self.wait(post, asked_ns, now_ns()),
            };
        }
        let now_ns = now_ns();
        let (response, length, _) = post.inbox.buffer(0);
        if length != self.response_bytes || Word::read(response).is_some() {
            post.counters.strange.add(1);
            return Step::Again;
        }
        post.counters.received.add(1);
        post.counters.buffers_received.add(1);
        post.flow.counters.received(length);
        if response[..self.name_bytes] != self.number.to_le_bytes()[..self.name_bytes] {
            // To a request that was given up.
            post.counters.late.add(1);
            return Step::Again;
        }
        post.times[self.times].record(asked_ns, now_ns);
        self.longest.note(asked_ns, now_ns);
        post.flow.counters.transactions(1);
        self.asked_ns = None;
        Step::Again
    }

    /// Gives the request up when its time is over.
    fn wait(&mut self, post: &Post<'_>, asked_ns: u64, now_ns: u64) -> Step {
        if now_ns < asked_ns + PATIENCE_NS && post.control.limit_ns() > 0 {
            return Step::Wait(Want::Readable);
        }
        post.counters.unanswered.add(1);
        self.longest.note(asked_ns, now_ns);
        self.asked_ns = None;
        Step::Again
    }
}

impl Carry for Requester {
    fn step(&mut self, post: &mut Post<'_>) -> Step {
        if let Some(farewell) = &mut self.farewell {
            return farewell.step(post, now_ns());
        }
        match self.asked_ns {
            None => self.ask(post),
            Some(asked_ns) => self.hear(post, asked_ns),
        }
    }

    fn tick(&mut self, post: &Post<'_>, now_ns: u64) -> Step {
        match self.asked_ns {
            Some(asked_ns) => self.wait(post, asked_ns, now_ns),
            None => Step::Again,
        }
    }
}

/// Answers requests until the requester says that it is done.
#[derive(Debug)]
pub(crate) struct Responder {
    name_bytes: usize,
    request_bytes: usize,
    last_ns: u64,
}

impl Responder {
    /// Returns a responder.
    pub(super) fn new(config: &FlowConfig) -> Self {
        Self {
            name_bytes: name_bytes(&config.traffic),
            request_bytes: match config.traffic {
                Traffic::Rr { request_bytes, .. } => request_bytes.0 as usize,
                _ => 0,
            },
            last_ns: 0,
        }
    }

    /// Sends a response; one that the socket cannot take now is lost, and the requester counts it.
    fn respond(&mut self, post: &mut Post<'_>) -> Step {
        let fd = post.flow.fd();
        let response = post.outbox.buffer(0);
        let bytes = response.len();
        let refused = match post.outbox.send(fd, 1) {
            Ok(_) => false,
            Err(error) => match failure(fd, "sending a response", &error) {
                Failure::Full | Failure::Refused => true,
                Failure::Over(ending) => return Step::Ended(ending),
            },
        };
        post.counters.refused.add(refused.into());
        post.counters.sent.add(1);
        post.counters.buffers_sent.add(1);
        post.flow.counters.sent(bytes);
        Step::Again
    }
}

impl Carry for Responder {
    /// Cost beside both calls: the clock 30 ns, seven counters 1 ns each.
    fn step(&mut self, post: &mut Post<'_>) -> Step {
        let fd = post.flow.fd();
        if let Err(error) = post.inbox.receive(fd) {
            return match failure(fd, "receiving a request", &error) {
                Failure::Over(ending) => Step::Ended(ending),
                Failure::Full | Failure::Refused => Step::Wait(Want::Readable),
            };
        }
        let now_ns = now_ns();
        self.last_ns = now_ns;
        let (request, length, _) = post.inbox.buffer(0);
        match Word::read(request) {
            Some(Word::End { datagrams, .. }) => {
                post.counters.announce(datagrams);
                return Step::Ended(ended_by_peer(post, now_ns));
            }
            Some(_) => return Step::Again,
            None => {}
        }
        if length != self.request_bytes {
            post.counters.strange.add(1);
            return Step::Again;
        }
        post.outbox.buffer(0)[..self.name_bytes].copy_from_slice(&request[..self.name_bytes]);
        post.counters.received.add(1);
        post.counters.buffers_received.add(1);
        post.flow.counters.first_payload(|| now_ns);
        post.flow.counters.received(length);
        if now_ns >= post.control.limit_ns() {
            return Step::Ended(post.control.stopped());
        }
        self.respond(post)
    }

    fn tick(&mut self, post: &Post<'_>, now_ns: u64) -> Step {
        listen_on(post.control, self.last_ns, now_ns)
    }
}
