//! Sends the datagrams of a stream: as fast as they go, or paced.

use super::{DatagramIo, DatagramPlay, EndMarks, Failure, Step, send, stamp, stream_draw};
use crate::flow::FlowConfig;
use crate::pace::Pacer;
use crate::schedule::NOTICE_NS;
use crate::sys::clock::now_ns;
use crate::workload::Want;
use crate::workload::sizes::Draw;

/// How far behind its schedule a paced sender may fall; what is older is not made up for. A stall
/// of this host would otherwise become a burst that overflows the receiver and looks like its
/// fault.
const LAG_NS_MAX: u64 = 10_000_000;
/// How long frames that the kernel has been given and has not looked at may hold up the end.
const FLUSH_NS: u64 = 20_000_000;
/// Time between two looks at them.
const LOOK_AGAIN_NS: u64 = 100_000;

/// Sends datagrams.
#[derive(Debug)]
pub(crate) struct Sender {
    datagram_bytes: usize,
    /// Datagrams in each buffer.
    segments: usize,
    short: bool,
    mix: Option<Mix>,
    pacer: Option<Pacer>,
    /// Datagrams that go back to back once one is due.
    burst: u64,
    /// Of these, those that have still to go.
    burst_left: u64,
    /// Payload that may still be sent.
    left_bytes: u64,
    /// Number of the next datagram.
    next: u64,
    times: usize,
    last_ns: u64,
    end_marks: Option<EndMarks>,
}

/// Sizes that differ: those of the next call, drawn once each, so that a call which the kernel
/// takes a part of, or nothing, leaves the rest for the next one.
#[derive(Debug)]
struct Mix {
    draw: Draw,
    drawn: Box<[usize]>,
    count: usize,
}

impl Mix {
    /// Returns the size of datagram number `at` of the next call; 1 ns, and drawing it once.
    fn bytes(&mut self, at: usize) -> usize {
        while self.count <= at {
            self.drawn[self.count] = self.draw.next_bytes();
            self.count += 1;
        }
        self.drawn[at]
    }

    /// Takes off the first `count` sizes; returns their sum.
    fn take(&mut self, count: usize) -> usize {
        let bytes = self.drawn[..count].iter().sum();
        self.drawn.copy_within(count..self.count, 0);
        self.count -= count;
        bytes
    }
}

impl Sender {
    /// Returns a sender.
    pub(super) fn new(config: &FlowConfig, times: usize, start_ns: u64) -> Self {
        let manner = &config.manner;
        let stream = config.traffic.stream();
        let datagram_bytes = stream.map_or(1, |(_, message_bytes)| message_bytes.0 as usize);
        let mix = stream_draw(config).map(|draw| Mix {
            draw,
            drawn: vec![0; manner.batch.max(1) as usize].into(),
            count: 0,
        });
        Self {
            datagram_bytes: datagram_bytes.max(1),
            segments: manner.segments.max(1) as usize,
            short: manner.short_numbers,
            mix,
            pacer: manner.rate_bps.map(|rate| Pacer::new(rate, 0, start_ns)),
            burst: manner.burst.max(1).into(),
            burst_left: 0,
            left_bytes: manner.bytes_max.map_or(u64::MAX, |most| most.0),
            next: 1,
            times,
            last_ns: 0,
            end_marks: None,
        }
    }

    /// Returns how many buffers the next call may carry, by number: what a burst still has. A call
    /// that carries more than one datagram without a burst is one.
    fn buffers_max(&self, buffers: usize) -> usize {
        match self.burst {
            1 => buffers,
            _ => buffers.min(self.burst_left.div_ceil(self.segments as u64) as usize),
        }
    }

    /// Fills the buffers of the next call with headers; returns how many it has. The last call may
    /// carry more than is left: whole buffers only.
    fn fill(&mut self, io: &mut DatagramIo<'_>, now_ns: u64) -> usize {
        let count = self.buffers_max(io.outbox.count());
        let (mut number, mut bytes) = (self.next, 0);
        for at in 0..count {
            let datagram_bytes = match &mut self.mix {
                None => self.datagram_bytes,
                Some(mix) => {
                    let datagram_bytes = mix.bytes(at);
                    io.outbox.cut(at, datagram_bytes);
                    datagram_bytes
                }
            };
            for datagram in io.outbox.buffer(at).chunks_exact_mut(datagram_bytes) {
                stamp::write(datagram, now_ns, number, self.short);
                number += 1;
            }
            bytes += (datagram_bytes * self.segments) as u64;
            if bytes >= self.left_bytes {
                return at + 1;
            }
        }
        count
    }

    /// Cost beside the send call: the clock 30 ns, headers 2 ns a datagram, the histogram 4 ns, five
    /// counters 1 ns each, 5 ns of pacer, and with sizes that differ 4 ns a datagram, or what drawing
    /// one takes. The cheapest send call of a datagram takes 700 ns.
    fn send(&mut self, io: &mut DatagramIo<'_>, now_ns: u64) -> Step {
        let count = self.fill(io, now_ns);
        match send(io, count, "sending") {
            Ok(sent) => {
                self.count(io, sent, now_ns);
                io.flow.counters.first_payload(|| now_ns);
                Step::Again
            }
            Err(Failure::Full) => {
                io.counters.waits.add(1);
                Step::Wait(Want::Writable)
            }
            Err(Failure::Refused) => {
                // The first buffer of the call; the others were not looked at.
                self.count(io, 1, now_ns);
                io.counters.refused.add(self.segments as u64);
                Step::Again
            }
            Err(Failure::Over(ending)) => Step::Ended(ending),
        }
    }

    /// Counts `buffers` that have numbers now.
    fn count(&mut self, io: &mut DatagramIo<'_>, buffers: usize, now_ns: u64) {
        let datagrams = (buffers * self.segments) as u64;
        let bytes = match &mut self.mix {
            None => buffers * self.segments * self.datagram_bytes,
            Some(mix) => mix.take(buffers),
        };
        self.next += datagrams;
        io.counters.sent.add(datagrams);
        io.counters.buffers_sent.add(buffers as u64);
        io.flow.counters.sent(bytes);
        if let Some(pacer) = &mut self.pacer {
            pacer.take(8 * bytes as u64);
        }
        self.burst_left = self.burst_left.saturating_sub(datagrams);
        self.left_bytes = self.left_bytes.saturating_sub(bytes as u64);
        if self.last_ns > 0 {
            io.times[self.times].record(self.last_ns, now_ns);
        }
        self.last_ns = now_ns;
    }

    /// Returns until when to wait for the next datagram to be due, if it is not; begins a burst if
    /// it is.
    fn rest(&mut self, now_ns: u64) -> Option<u64> {
        let pacer = self.pacer.as_mut().filter(|_| self.burst_left == 0)?;
        pacer.forget(now_ns, LAG_NS_MAX);
        let opens_ns = pacer.opens_ns();
        if opens_ns > now_ns {
            // Not longer than an abort may go unnoticed.
            return Some(opens_ns.min(now_ns + NOTICE_NS));
        }
        self.burst_left = self.burst;
        None
    }
}

impl DatagramPlay for Sender {
    fn step(&mut self, io: &mut DatagramIo<'_>) -> Step {
        let now_ns = now_ns();
        if let Some(end_marks) = &mut self.end_marks {
            return end_marks.step(io, now_ns);
        }
        if now_ns >= io.control.stop_ns() || self.left_bytes == 0 {
            if !io.outbox.is_flushed() && now_ns < self.last_ns + FLUSH_NS {
                return Step::At(now_ns + LOOK_AGAIN_NS);
            }
            let end_marks = EndMarks::new(io.control.stopped());
            let at_ns = end_marks.begin_ns(now_ns);
            self.end_marks = Some(end_marks);
            return Step::At(at_ns);
        }
        if let Some(at_ns) = self.rest(now_ns) {
            return Step::At(at_ns);
        }
        self.send(io, now_ns)
    }

    fn tick(&mut self, io: &DatagramIo<'_>, now_ns: u64) -> Step {
        if now_ns >= io.control.stop_ns() {
            Step::Again
        } else {
            Step::Wait(Want::Writable)
        }
    }
}
