//! Sends payload message after message.

use std::io;

use linerate_model::manner::SendBy;
use linerate_model::run::ZeroCopyCount;

use crate::flow::{Content, Shared};
use crate::pace::Pacer;
use crate::schedule::{Control, Ending};
use crate::sys::clock::{now_ns, tick_ns};
use crate::sys::socket;
use crate::sys::zerocopy;
use crate::workload::messages::Messages;
use crate::workload::sizes::Draw;
use crate::workload::{Io, Play, Turn, Want, failed};

/// Messages together this large are bulk: their ends cannot be told apart, and the ways that do not
/// copy then take as much with one call as their source gives at once.
const BULK_BYTES: usize = 64 << 10;
/// The most that one call of those takes: what fits into a pipe.
const CALL_BYTES_MAX: usize = 1 << 20;
/// How fast a flow must be for calls of several messages, where joining them is our choice: 4 Gbit/s.
/// A slower one saves nothing that matters, since its CPU has time; and calls that block for long let
/// counters lag behind and fill the send buffer, so that TCP opens its window further: on a link of
/// 1 Gbit/s it kept 10 MiB under way instead of 2, and a loss among them moved the receiver's count by
/// 1 to 3 % of 3 s.
const JOINED_BYTES_PER_MS: u64 = 500_000;
/// How long a flow is looked at before: a sender that waits for room in a large send buffer is woken
/// when a third of it is free, and then writes that third, 10 MiB, at the speed of memory. In steps of
/// the tick clock, 10 ms at the most.
const PERIOD_NS: u64 = 100_000_000;
/// What the first call of a flow takes at the most: a segment of Ethernet. A call of 128 KiB lasts 1 ms where the
/// receiver's softirqs run in it, and senders that share its CPU begin after it.
const FIRST_BYTES: usize = 1448;

/// Sends bulk payload, one call for a batch of messages.
#[derive(Debug)]
pub(crate) struct Sender {
    by: SendBy,
    /// Bytes of the current call.
    call_bytes: usize,
    /// How much of it has been taken; 0 between calls.
    taken_bytes: usize,
    /// Whether it has sent something.
    has_begun: bool,
    /// Payload that may still be sent.
    left_bytes: u64,
    mixed: Option<Mixed>,
    pace: Option<Pace>,
    zero_copy: ZeroCopyCount,
    /// Where in the file the next call begins, if there is one.
    file_at: usize,
    /// Messages that calls join by our own choice, while they do.
    joined: Option<Joined>,
}

/// Calls of several messages that nobody asked for.
#[derive(Debug)]
struct Joined {
    /// Bytes of a call that joins messages, and of one that does not.
    whole_bytes: usize,
    least_bytes: usize,
    /// The tick clock when this period began; nothing before the first.
    began_ns: Option<u64>,
    /// Bytes that the calls of this period took.
    bytes: u64,
    /// Whether the period before was fast enough.
    joins: bool,
}

impl Joined {
    /// Returns calls of single messages, until the path has shown that it is fast.
    fn new(whole_bytes: usize, least_bytes: usize) -> Self {
        Self {
            whole_bytes,
            least_bytes,
            began_ns: None,
            bytes: 0,
            joins: false,
        }
    }

    /// Returns the bytes of a call that begins: several messages if the period before was fast
    /// enough, else one. Cost 1 ns.
    fn next_bytes(&mut self, tick_ns: u64) -> usize {
        let began_ns = *self.began_ns.get_or_insert(tick_ns);
        let elapsed_ns = tick_ns.saturating_sub(began_ns);
        if elapsed_ns >= PERIOD_NS {
            self.joins = self.bytes / (elapsed_ns / 1_000_000) >= JOINED_BYTES_PER_MS;
            self.began_ns = Some(tick_ns);
            self.bytes = 0;
        }
        if self.joins {
            self.whole_bytes
        } else {
            self.least_bytes
        }
    }
}

/// A rate that this end keeps itself.
#[derive(Debug)]
struct Pace {
    bits_per_s: u64,
    /// From the first turn on.
    pacer: Option<Pacer>,
    /// When the next call is due, while it is not.
    due_ns: Option<u64>,
    /// Messages that go back to back once one is due, and those of them that have still to go.
    burst: u32,
    burst_left: u32,
}

impl Pace {
    /// Returns whether the next call must wait. Cost: the clock 30 ns; nothing inside a burst.
    fn must_wait(&mut self) -> bool {
        if self.burst_left > 0 {
            return false;
        }
        let now_ns = now_ns();
        let rate = self.bits_per_s;
        let pacer = self
            .pacer
            .get_or_insert_with(|| Pacer::new(rate, 0, now_ns));
        self.due_ns = pacer.wait(now_ns).map(|_| pacer.opens_ns());
        if self.due_ns.is_none() {
            self.burst_left = self.burst;
        }
        self.due_ns.is_some()
    }

    /// Notes that a call of so many messages is done.
    fn done(&mut self, messages: u32) {
        self.burst_left = self.burst_left.saturating_sub(messages);
    }

    fn sent(&mut self, bytes: usize) {
        if let Some(pacer) = &mut self.pacer {
            pacer.take(bytes as u64 * 8);
        }
    }
}

/// Messages whose sizes differ.
#[derive(Debug)]
struct Mixed {
    /// Sizes of the calls to come.
    ahead: Draw,
    batch: u32,
    /// Boundaries of what was taken.
    messages: Messages,
}

impl Mixed {
    fn call_bytes(&mut self) -> usize {
        (0..self.batch).map(|_| self.ahead.next_bytes()).sum()
    }
}

impl Sender {
    /// Returns the sender of `flow`, whose messages have `message_bytes` unless their sizes differ.
    pub(crate) fn new(flow: &Shared, message_bytes: usize) -> Self {
        let (config, by) = (&flow.config, flow.send);
        let batch = config.manner.batch;
        let mut mixed = config.manner.sizes.as_ref().map(|sizes| {
            let draw = Draw::new(sizes, config.flow);
            Mixed {
                ahead: draw.clone(),
                batch,
                messages: Messages::drawn(draw),
            }
        });
        let left_bytes = config.manner.bytes_max.map_or(u64::MAX, |most| most.0);
        let call_bytes = match &mut mixed {
            Some(mixed) => mixed.call_bytes(),
            None => call_bytes(config.manner.send, message_bytes * batch as usize),
        };
        let asked_for_calls = config.manner.send == SendBy::Copy && !config.manner.batch_is_chosen;
        let least_bytes = if config.manner.batch_is_chosen {
            message_bytes
        } else {
            message_bytes * batch as usize
        };
        let joins = !asked_for_calls && by == SendBy::Copy && mixed.is_none();
        Self {
            by,
            call_bytes: call_bytes.min(usize::try_from(left_bytes).unwrap_or(usize::MAX)),
            taken_bytes: 0,
            has_begun: false,
            left_bytes,
            mixed,
            pace: flow.pace_bps.map(|bits_per_s| Pace {
                bits_per_s,
                pacer: None,
                due_ns: None,
                burst: config.manner.burst,
                burst_left: 0,
            }),
            zero_copy: ZeroCopyCount::default(),
            file_at: 0,
            joined: joins.then(|| Joined::new(call_bytes, least_bytes)),
        }
    }

    /// Returns what the kernel said about calls with MSG_ZEROCOPY.
    pub(crate) fn zero_copy(&self) -> Option<ZeroCopyCount> {
        (self.by == SendBy::MsgZerocopy).then_some(self.zero_copy)
    }

    /// Returns whether the volume that was asked for has been sent.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.left_bytes == 0
    }

    fn send(&mut self, io: &mut Io<'_>) -> io::Result<usize> {
        // Its first bytes leave as the call begins; the call itself may wait for a window of acknowledgements.
        io.flow.counters.first_payload(now_ns);
        let fd = io.flow.fd();
        let mut left_bytes = self.call_bytes - self.taken_bytes;
        if !self.has_begun {
            left_bytes = left_bytes.min(FIRST_BYTES);
        }
        match &io.flow.content {
            Content::Copied if self.call_bytes <= io.payload.len() => {
                socket::send(fd, &io.payload[self.taken_bytes..][..left_bytes])
            }
            Content::Copied => socket::send_repeated(fd, io.payload, left_bytes),
            Content::File(file) => file.send(fd, &mut self.file_at, left_bytes),
            Content::Pages(pages) if self.by == SendBy::Vmsplice => match &mut io.pipe {
                Some(pipe) => pipe.send(fd, pages.as_slice(), left_bytes),
                // The worker has made one before the start, or did not start.
                None => Err(io::ErrorKind::NotFound.into()),
            },
            Content::Pages(pages) => {
                let pages = pages.as_slice();
                while zerocopy::reap(fd, &mut self.zero_copy) {}
                let payload = &pages[..left_bytes.min(pages.len())];
                let sent = zerocopy::send(fd, payload);
                if !matches!(&sent, Err(error) if error.raw_os_error() == Some(libc::ENOBUFS)) {
                    return sent;
                }
                // The notifications have used up the socket's option memory
                // (net.core.optmem_max): this call copies, and is counted so.
                let sent = socket::send(fd, payload)?;
                self.zero_copy.done += 1;
                self.zero_copy.copied += 1;
                Ok(sent)
            }
        }
    }

    fn sent(&mut self, io: &mut Io<'_>, sent: usize) -> Turn {
        io.flow.counters.sent(sent);
        io.cpu_yield.sent(sent);
        self.has_begun = true;
        self.taken_bytes += sent;
        self.left_bytes -= sent as u64;
        if let Some(joined) = &mut self.joined {
            joined.bytes += sent as u64;
        }
        if let Some(pace) = &mut self.pace {
            pace.sent(sent);
        }
        if let Some(mixed) = &mut self.mixed {
            io.flow.counters.messages(mixed.messages.moved(sent));
        }
        if self.taken_bytes == self.call_bytes {
            self.taken_bytes = 0;
            if let Some(pace) = &mut self.pace {
                pace.done(io.flow.config.manner.batch);
            }
            if let Some(mixed) = &mut self.mixed {
                self.call_bytes = mixed.call_bytes();
            }
            if (self.call_bytes as u64) > self.left_bytes {
                self.call_bytes = self.left_bytes as usize;
            }
            if self.call_bytes == 0 {
                return Turn::Ended(io.control.stopped());
            }
        }
        Turn::Moved(Want::Writable)
    }
}

/// Returns the bytes of one call, given how it was asked for and the bytes of its messages.
fn call_bytes(asked: SendBy, messages_bytes: usize) -> usize {
    if asked == SendBy::Copy || messages_bytes < BULK_BYTES {
        return messages_bytes;
    }
    messages_bytes * (CALL_BYTES_MAX / messages_bytes).max(1)
}

impl Play for Sender {
    /// Cost beside the send call: the tick clock 5 ns, two counters 1 ns each, the rest 2 ns; with
    /// mixed sizes 2 to 80 ns a message; with a rate of our own the clock 30 ns. Against 700 ns for the cheapest send call (a byte that
    /// joins a waiting segment), 1 %. The tick clock is up to 10 ms late, and a sender of small messages
    /// stops that much after the stop: the exact clock would cost 30 ns a call and buy nothing, since
    /// nothing is counted after the window. Bulk senders have read it for each 512 KiB and stop by
    /// that, so that receivers have less to drain. MSG_ZEROCOPY asks for completions with each call: 200 ns.
    fn turn(&mut self, io: &mut Io<'_>) -> Turn {
        let tick_ns = tick_ns();
        if tick_ns.max(io.cpu_yield.latest_ns()) >= io.control.stop_ns() {
            return Turn::Ended(io.control.stopped());
        }
        if self.taken_bytes == 0
            && let Some(joined) = &mut self.joined
        {
            let bytes = joined.next_bytes(tick_ns) as u64;
            self.call_bytes = bytes.min(self.left_bytes) as usize;
        }
        if self.taken_bytes == 0
            && let Some(pace) = &mut self.pace
            && pace.must_wait()
        {
            if self.by == SendBy::MsgZerocopy {
                // A notification wakes who waits for anything, again and again until it is taken.
                while zerocopy::reap(io.flow.fd(), &mut self.zero_copy) {}
            }
            // Nothing becomes readable here: only the timer wakes the worker.
            return Turn::Rested(Want::Readable);
        }
        match self.send(io) {
            Ok(sent) => self.sent(io, sent),
            Err(error) => failed("sending", &error, Want::Writable),
        }
    }

    fn tick(&mut self, control: &Control, now_ns: u64) -> Option<Ending> {
        (now_ns >= control.stop_ns()).then(|| control.stopped())
    }

    fn timer_ns(&self) -> Option<u64> {
        self.pace.as_ref()?.due_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_join_messages_where_the_period_before_was_fast() {
        const LEAST: usize = 128 << 10;
        const WHOLE: usize = 1 << 20;
        let enough = JOINED_BYTES_PER_MS * PERIOD_NS / 1_000_000;
        let mut joined = Joined::new(WHOLE, LEAST);
        let mut now_ns = 7_000_000_000;
        // A period of so many bytes in calls of this size, at whatever pace within it, and its length.
        let mut check = |payload: u64, bytes: usize, length_ns: u64| {
            for call in 0..payload.div_ceil(bytes as u64) {
                // One that has no room is asked for again, and counts once.
                for _ in 0..2 {
                    assert_eq!(joined.next_bytes(now_ns), bytes, "call {call} at {now_ns}");
                }
                joined.bytes += bytes as u64;
            }
            now_ns += length_ns;
        };
        // The first period joins nothing, since nobody knows the path.
        check(enough, LEAST, PERIOD_NS);
        check(enough, WHOLE, PERIOD_NS);
        check(enough, WHOLE, 2 * PERIOD_NS);
        check(enough - LEAST as u64, LEAST, PERIOD_NS);
        check(enough, LEAST, PERIOD_NS);
        check(1, WHOLE, 100 * PERIOD_NS);
        check(1, LEAST, 1);
    }
}
