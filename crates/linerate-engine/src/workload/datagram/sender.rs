//! Sends the datagrams of a stream: as fast as they go, or paced.

use linerate_model::workload::Traffic;

use super::{Carry, Failure, Farewell, Post, Step, failure, stamp};
use crate::flow::FlowConfig;
use crate::pace::Pacer;
use crate::schedule::NOTICE_NS;
use crate::sys::clock::now_ns;
use crate::workload::Want;

/// How far behind its schedule a paced sender may fall; what is older is not made up for. A stall
/// of this host would otherwise become a burst that overflows the receiver and looks like its
/// fault.
const LAG_NS_MAX: u64 = 10_000_000;
const BITS: u64 = 8;

/// Sends datagrams.
#[derive(Debug)]
pub(crate) struct Sender {
    datagram_bytes: usize,
    /// Datagrams in each buffer.
    segments: usize,
    short: bool,
    pacer: Option<Pacer>,
    /// Datagrams that may still be sent, where there is a limit.
    left: Option<u64>,
    /// Number of the next datagram.
    next: u64,
    times: usize,
    last_ns: u64,
    farewell: Option<Farewell>,
}

impl Sender {
    /// Returns a sender.
    pub(super) fn new(config: &FlowConfig, times: usize, start_ns: u64) -> Self {
        let manner = &config.manner;
        let datagram_bytes = match config.traffic {
            Traffic::Stream { message_bytes, .. } => message_bytes.0,
            _ => 1,
        };
        Self {
            datagram_bytes: datagram_bytes as usize,
            segments: manner.segments.max(1) as usize,
            short: manner.short_numbers,
            pacer: manner.rate_bps.map(|rate| Pacer::new(rate, 0, start_ns)),
            left: manner
                .bytes_max
                .map(|most| most.0.div_ceil(datagram_bytes.max(1))),
            next: 1,
            times,
            last_ns: 0,
            farewell: None,
        }
    }

    /// Cost beside the send call: the clock 30 ns, headers 2 ns a datagram, the histogram 4 ns, five
    /// counters 1 ns each, and 5 ns of pacer. The cheapest send call of a datagram takes 700 ns.
    fn send(&mut self, post: &mut Post<'_>, now_ns: u64) -> Step {
        let fd = post.flow.fd();
        let mut count = post.outbox.count();
        if let Some(left) = self.left {
            // The last call may carry more than is left: whole buffers only.
            count = count.min(left.div_ceil(self.segments as u64) as usize);
        }
        let mut number = self.next;
        for at in 0..count {
            let buffer = post.outbox.buffer(at);
            for datagram in buffer.chunks_exact_mut(self.datagram_bytes) {
                stamp::write(datagram, now_ns, number, self.short);
                number += 1;
            }
        }
        match post.outbox.send(fd, count) {
            Ok(sent) => {
                self.count(post, sent, now_ns);
                let bytes = sent * self.segments * self.datagram_bytes;
                post.flow.counters.first_payload(|| now_ns);
                post.flow.counters.sent(bytes);
                Step::Again
            }
            Err(error) => match failure(fd, "sending", &error) {
                Failure::Full => {
                    post.counters.waits.add(1);
                    Step::Wait(Want::Writable)
                }
                Failure::Refused => {
                    // The first buffer of the call; the others were not looked at.
                    self.count(post, 1, now_ns);
                    post.counters.refused.add(self.segments as u64);
                    post.flow.counters.sent(self.segments * self.datagram_bytes);
                    Step::Again
                }
                Failure::Over(ending) => Step::Ended(ending),
            },
        }
    }

    /// Counts `buffers` that have numbers now.
    fn count(&mut self, post: &mut Post<'_>, buffers: usize, now_ns: u64) {
        let datagrams = (buffers * self.segments) as u64;
        self.next += datagrams;
        post.counters.sent.add(datagrams);
        post.counters.buffers_sent.add(buffers as u64);
        if let Some(pacer) = &mut self.pacer {
            pacer.take(datagrams * self.datagram_bytes as u64 * BITS);
        }
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(datagrams);
        }
        if self.last_ns > 0 {
            post.times[self.times].record(self.last_ns, now_ns);
        }
        self.last_ns = now_ns;
    }
}

impl Carry for Sender {
    fn step(&mut self, post: &mut Post<'_>) -> Step {
        let now_ns = now_ns();
        if let Some(farewell) = &mut self.farewell {
            return farewell.step(post, now_ns);
        }
        if now_ns >= post.control.stop_ns() || self.left == Some(0) {
            let farewell = Farewell::new(post.control.stopped());
            let at_ns = farewell.begin_ns(now_ns);
            self.farewell = Some(farewell);
            return Step::At(at_ns);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.forget(now_ns, LAG_NS_MAX);
            let opens_ns = pacer.opens_ns();
            if opens_ns > now_ns {
                // Not longer than an abort may go unnoticed.
                return Step::At(opens_ns.min(now_ns + NOTICE_NS));
            }
        }
        self.send(post, now_ns)
    }

    fn tick(&mut self, post: &Post<'_>, now_ns: u64) -> Step {
        match now_ns >= post.control.stop_ns() {
            true => Step::Again,
            false => Step::Wait(Want::Writable),
        }
    }
}
