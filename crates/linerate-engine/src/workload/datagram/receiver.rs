//! Takes the datagrams of a stream and keeps account of them.

use super::sequence::{Position, Sequence};
use super::{DatagramIo, DatagramPlay, Failure, Step, ended_by_peer, failure, listen_on, stamp};
use crate::flow::FlowConfig;
use crate::flow::opening::Signal;
use crate::measure::Window;
use crate::measure::datagrams::{DatagramCounters, Transits};
use crate::measure::gap::Gap;
use crate::sys::clock::now_ns;
use crate::workload::Want;

/// The gain of RFC 3550's running mean: 1/16.
const JITTER_SHIFT: u32 = 4;

/// Receives datagrams until the sender says that it is done, or falls silent after the stop.
#[derive(Debug)]
pub(crate) struct Receiver {
    short: bool,
    sequence: Box<Sequence>,
    jitter: Jitter,
    window: Window,
    transits: Transits,
    gap: Gap,
    missing_run_max: u64,
    last_ns: u64,
}

/// What a datagram turned out to be.
enum Taken {
    Payload,
    End,
}

impl Receiver {
    /// Returns a receiver.
    pub(super) fn new(config: &FlowConfig, window: Window) -> Self {
        debug_assert!(config.traffic.is_stream());
        Self {
            short: config.manner.short_numbers,
            sequence: Box::new(Sequence::new(config.manner.short_numbers)),
            jitter: Jitter::default(),
            gap: Gap::new(window),
            window,
            transits: Transits::default(),
            missing_run_max: 0,
            last_ns: 0,
        }
    }

    /// Returns when the last datagram came; 0 before the first.
    pub(crate) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Returns the longest wait for a datagram.
    pub(super) fn stall_max_ns(&self, now_ns: u64) -> u64 {
        self.gap.longest_ns(now_ns)
    }

    /// Takes one datagram; `length` is its whole length. 14 ns.
    fn take(
        &mut self,
        counters: &DatagramCounters,
        datagram: &[u8],
        length: usize,
        now_ns: u64,
    ) -> Option<Taken> {
        // The length comes first: a word has one of two.
        if length <= crate::flow::opening::ECHO_BYTES
            && let Some(word) = Signal::read(datagram)
        {
            let Signal::End { datagrams, .. } = word else {
                // An opening that was repeated.
                return None;
            };
            counters.announce(datagrams);
            return Some(Taken::End);
        }
        let stamp = stamp::read(datagram, self.short);
        let placed = stamp.and_then(|stamp| Some((stamp, self.sequence.note(stamp.number)?)));
        let Some((stamp, place)) = placed else {
            counters.strange.add(1);
            return None;
        };
        counters.received.add(1);
        match place {
            Position::Ahead { left_out } => {
                counters.highest.set(self.sequence.highest());
                if left_out > self.missing_run_max {
                    self.missing_run_max = left_out;
                    counters.missing_run_max.set(left_out);
                }
            }
            Position::Late => counters.late.add(1),
            Position::Duplicate => counters.duplicates.add(1),
        }
        let transit_ns = self.jitter.note(now_ns, stamp.sent_us);
        if (self.window.begin_ns..self.window.end_ns).contains(&now_ns) {
            self.transits.note(transit_ns);
        }
        Some(Taken::Payload)
    }
}

impl DatagramPlay for Receiver {
    /// Cost beside the receive call: the clock 30 ns, 14 ns a datagram, six counters 1 ns each, and 5 ns.
    fn step(&mut self, io: &mut DatagramIo<'_>) -> Step {
        let fd = io.flow.fd();
        let buffers = match io.inbox.receive(fd) {
            Ok(buffers) => buffers,
            Err(error) => {
                return match failure(fd, "receiving", &error) {
                    Failure::Over(ending) => Step::Ended(ending),
                    Failure::Full | Failure::Refused => Step::Wait(Want::Readable),
                };
            }
        };
        let now_ns = now_ns();
        let (mut bytes, mut ended) = (0, false);
        for at in 0..buffers {
            let (buffer, length, piece_bytes) = io.inbox.buffer(at);
            let mut offset = 0;
            // A datagram without payload is one, too.
            while offset < length || (length == 0 && offset == 0) {
                let whole = piece_bytes.min(length - offset);
                let end = (offset + whole).min(buffer.len());
                let piece = &buffer[offset.min(end)..end];
                match self.take(io.counters, piece, whole, now_ns) {
                    Some(Taken::Payload) => bytes += whole,
                    Some(Taken::End) => ended = true,
                    None => {}
                }
                offset += whole.max(1);
            }
        }
        self.last_ns = now_ns;
        if bytes > 0 {
            io.counters.buffers_received.add(buffers as u64);
            io.counters.jitter(self.jitter.ns());
            io.counters.transit(&self.transits);
            io.flow.counters.first_payload(|| now_ns);
            io.flow.counters.received(bytes);
            self.gap.arrived(now_ns);
        }
        if ended {
            return Step::Ended(ended_by_peer(io, now_ns));
        }
        if now_ns >= io.control.limit_ns() {
            return Step::Ended(io.control.stopped());
        }
        Step::Again
    }

    fn tick(&mut self, io: &DatagramIo<'_>, now_ns: u64) -> Step {
        listen_on(io.control, self.last_ns, now_ns)
    }
}

/// RFC 3550, 6.4.1: J += (|D| − J) / 16, where D is the difference in transit time of a datagram
/// and the one that came before; in microseconds as the sender stamps them, kept 16-fold and so
/// rounded by a sixteenth.
#[derive(Debug, Default)]
struct Jitter {
    /// Arrival less departure of the last datagram, on two clocks.
    transit_ns: Option<i64>,
    sixteenfold_ns: u64,
}

impl Jitter {
    /// Takes note of an arrival, and returns its transit; 2 ns.
    fn note(&mut self, now_ns: u64, sent_us: u64) -> i64 {
        let transit_ns = now_ns.wrapping_sub(sent_us.wrapping_mul(1_000)) as i64;
        if let Some(before) = self.transit_ns {
            let difference = transit_ns.wrapping_sub(before).unsigned_abs();
            self.sixteenfold_ns += difference;
            self.sixteenfold_ns -= (self.sixteenfold_ns - difference) >> JITTER_SHIFT;
        }
        self.transit_ns = Some(transit_ns);
        transit_ns
    }

    fn ns(&self) -> u64 {
        self.sixteenfold_ns >> JITTER_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_the_running_mean_of_the_standard() {
        let mut jitter = Jitter::default();
        let (mut expected, mut before) = (0.0_f64, None);
        for (at, extra_us) in [0_u64, 30, 10, 400, 0, 0, 25].into_iter().enumerate() {
            let sent_us = at as u64 * 1_000;
            let transit_us = 700 + extra_us;
            jitter.note((sent_us + transit_us) * 1_000, sent_us);
            if let Some(before) = before {
                let difference = transit_us.abs_diff(before) as f64 * 1_000.0;
                expected += (difference - expected) / 16.0;
            }
            before = Some(transit_us);
        }
        let error = (jitter.ns() as f64 - expected).abs();
        assert!(error < 2.0, "{} for {expected}", jitter.ns());
    }

    #[test]
    fn the_way_of_datagrams_is_known_on_clocks_that_are_years_apart() {
        const YEARS_NS: i64 = 300_000_000_000_000_000;
        for ahead_ns in [-YEARS_NS, 0, YEARS_NS] {
            let counters = DatagramCounters::default();
            assert_eq!(counters.read(None).transit, None);
            let mut transits = Transits::default();
            for at in 0..1_000_000 {
                transits.note(ahead_ns + 5_000_000 + at % 1_001);
            }
            counters.transit(&transits);
            let raw = counters.read(None).transit.expect("there were some");
            let known = raw.with_clocks(ahead_ns + 40, 60);
            assert_eq!(known.shortest_ns, 5_000_000 - 40);
            assert_eq!(known.longest_ns, 5_001_000 - 40);
            assert!(known.mean_ns.abs_diff(5_000_460) < 3, "{known:?}");
            assert!(known.is_known() && !raw.is_known());
            assert!(!raw.with_clocks(ahead_ns, 6_000_000).is_known());
        }
    }

    #[test]
    fn a_clock_that_is_behind_makes_no_jitter() {
        let mut jitter = Jitter::default();
        for at in 0..100 {
            jitter.note(at * 1_000_000, 5_000_000_000 + at * 1_000);
        }
        assert_eq!(jitter.ns(), 0);
    }
}
