//! Two hosts that speak TCP over a path, in simulated time, and a capture somewhere on it.
//!
//! A small TCP: slow start, Reno with selective acknowledgements, retransmission timers, Nagle's algorithm,
//! delayed acknowledgements, windows, programs that write, read, think and pause. What it leaves out (pacing,
//! tail probes, probes of a closed window) the labs of `bench/trace-lab` have.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::common::{ACK, BEGIN_NS, From, PSH, Packet, SYN, Talk, sack_option, syn_options};

pub const MS: u64 = 1_000_000;

/// SplitMix64: the same numbers on every machine.
#[derive(Clone)]
pub struct Draw(pub u64);

impl Draw {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `low` to `high`, both included.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub fn chance(&mut self, share: f64) -> bool {
        ((self.next() >> 11) as f64) < share * (1u64 << 53) as f64
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.within(0, all.len() as u64 - 1) as usize]
    }
}

/// Where the capture is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    Client,
    Middle,
    Server,
}

/// What the programs do. Bytes go from the client to the server, and answers back.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    /// Writes all at once.
    Bulk { bytes: u64 },
    /// Writes `bytes` every so often.
    Bursts {
        bytes: u64,
        every_ns: u64,
        count: u64,
    },
    /// Asks in `parts`, waits for the answer, pauses, asks again.
    Requests {
        ask: u64,
        parts: u64,
        answer: u64,
        count: u64,
        think_ns: u64,
        pause_ns: u64,
    },
}

/// One direction of the path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    pub delay_ns: u64,
    /// Up to so much more, for each frame.
    pub jitter_ns: u64,
    /// Zero: nothing limits.
    pub bits_per_second: u64,
    pub queue_bytes: u64,
    pub loss: f64,
    /// Frames that are overtaken, and by how much they are late.
    pub overtaken: f64,
    pub late_ns: u64,
    /// Zero: everything fits.
    pub payload_bytes_max: u64,
    /// From then on nothing arrives.
    pub cut_at_ns: Option<u64>,
}

/// Everything that is random of a capture.
#[derive(Clone, Debug)]
pub struct World {
    pub seed: u64,
    pub at: At,
    pub program: Program,
    /// From the client, from the server.
    pub paths: [Path; 2],
    pub mss: u64,
    pub stamps: bool,
    pub nagle: bool,
    /// How long an acknowledgement waits; none: it does not.
    pub delayed_ack_ns: Option<u64>,
    pub receive_buffer_bytes: u64,
    /// What the client may have on its way.
    pub send_buffer_bytes: u64,
    /// The server's program reads so much every so often.
    pub reads: Option<(u64, u64)>,
    /// The capture goes on until then.
    pub until_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    from: usize,
    seq: u64,
    ack: u64,
    len: u64,
    window: u64,
    flags: u8,
    sack: Option<(u64, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Seen(Segment),
    Arrives(Segment),
    Writes(usize, u64),
    Reads,
    Timer(usize, u64),
    AckTimer(usize, u64),
}

#[derive(Debug, Default)]
struct End {
    written: u64,
    una: u64,
    next: u64,
    cwnd: f64,
    ssthresh: f64,
    duplicates: u32,
    /// In recovery until this is acknowledged, and up to where it has sent again.
    recovery: Option<(u64, u64)>,
    sacked: Vec<(u64, u64)>,
    peer_window: u64,
    timer: u64,
    backoff: u32,
    round_trip_ns: u64,
    timed: Option<(u64, u64)>,
    received: u64,
    read: u64,
    beyond: Vec<(u64, u64)>,
    waiting_segments: u64,
    ack_timer: u64,
    offered: u64,
    told: u64,
}

/// A capture being made.
pub struct Simulation {
    world: World,
    draw: Draw,
    now_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    ends: [End; 2],
    busy_ns: [u64; 2],
    last_arrival_ns: [u64; 2],
    last_sent_ns: [u64; 2],
    talk: Talk,
    first: [u32; 2],
    asked: u64,
}

/// Plays the world; returns the frames of its capture.
pub fn play(world: World) -> Vec<(u64, Vec<u8>)> {
    let mut draw = Draw(world.seed);
    let first = [draw.next() as u32, draw.next() as u32];
    let mut talk = Talk::new(first[0], first[1]);
    if world.stamps {
        talk = talk.with_stamps();
    }
    let mut simulation = Simulation {
        draw,
        now_ns: 0,
        events: BinaryHeap::new(),
        order: 0,
        ends: [End::default(), End::default()],
        busy_ns: [0; 2],
        last_arrival_ns: [0; 2],
        last_sent_ns: [0; 2],
        talk,
        first,
        asked: 0,
        world,
    };
    simulation.begin();
    simulation.run();
    simulation.talk.frames
}

const SCALE: u32 = 7;

impl Simulation {
    /// The handshake, which goes well, and the programs' first words.
    fn begin(&mut self) {
        let [up, down] = self.world.paths;
        let (to_server, to_client) = match self.world.at {
            At::Client => (0, up.delay_ns + down.delay_ns),
            At::Middle => (up.delay_ns / 2, up.delay_ns + down.delay_ns / 2),
            At::Server => (up.delay_ns, up.delay_ns),
        };
        let trip_ns = up.delay_ns + down.delay_ns;
        let offer = self.world.receive_buffer_bytes;
        for end in 0..2 {
            let window = if end == 1 { offer } else { 1 << 20 };
            self.ends[end].offered = window;
            self.ends[1 - end].peer_window = window;
            self.ends[end].cwnd = 10.0 * self.world.mss as f64;
            self.ends[end].ssthresh = f64::MAX;
            self.ends[end].round_trip_ns = trip_ns;
            (
                self.ends[end].una,
                self.ends[end].next,
                self.ends[end].written,
            ) = (1, 1, 1);
            (
                self.ends[end].received,
                self.ends[end].read,
                self.ends[end].told,
            ) = (1, 1, 1);
        }
        let mss = self.world.mss as u16 + if self.world.stamps { 12 } else { 0 };
        for (from, at_ns, flags, ack) in [
            (From::Client, to_server, SYN, 0),
            (From::Server, to_client, SYN | ACK, 1),
            (From::Client, trip_ns + to_server, ACK, 1),
        ] {
            let is_syn = flags & SYN != 0;
            let mut options = if is_syn {
                syn_options((mss, Some(SCALE as u8)))
            } else {
                Vec::new()
            };
            if is_syn && self.world.stamps {
                options.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0]);
            }
            self.talk.now_ns = BEGIN_NS + at_ns;
            let own = from as usize;
            let seq = self.first[own].wrapping_add(u32::from(!is_syn));
            let packet = Packet {
                from,
                sequence: seq,
                acknowledgement: if ack == 0 {
                    0
                } else {
                    self.first[1 - own].wrapping_add(1)
                },
                flags,
                window: if is_syn {
                    64_000
                } else {
                    (1 << 20 >> SCALE) as u16
                },
                payload: 0,
                options,
                identification: 0,
            };
            self.talk.send(packet);
        }
        self.now_ns = trip_ns + 50_000;
        match self.world.program {
            Program::Bulk { bytes } => self.at(1000, Event::Writes(0, bytes)),
            Program::Bursts {
                bytes,
                every_ns,
                count,
            } => {
                for burst in 0..count {
                    self.at(1000 + burst * every_ns, Event::Writes(0, bytes));
                }
            }
            Program::Requests { .. } => self.ask(1000),
        }
        if let Some((_, every_ns)) = self.world.reads {
            self.at(every_ns, Event::Reads);
        }
    }

    fn ask(&mut self, wait_ns: u64) {
        let Program::Requests {
            ask, parts, count, ..
        } = self.world.program
        else {
            return;
        };
        if self.asked < count {
            self.asked += 1;
            for part in 0..parts {
                self.at(wait_ns + part * 5000, Event::Writes(0, ask));
            }
        }
    }

    fn at(&mut self, wait_ns: u64, event: Event) {
        self.order += 1;
        self.events
            .push(Reverse((self.now_ns + wait_ns, self.order, event)));
    }

    fn run(&mut self) {
        while let Some(Reverse((at_ns, _, event))) = self.events.pop() {
            self.now_ns = at_ns;
            if at_ns > self.world.until_ns {
                return;
            }
            match event {
                Event::Seen(segment) => self.see(&segment),
                Event::Arrives(segment) => self.arrive(&segment),
                Event::Writes(end, bytes) => {
                    self.ends[end].written += bytes;
                    self.send(end);
                }
                Event::Reads => {
                    let Some((bytes, every_ns)) = self.world.reads else {
                        continue;
                    };
                    let server = &mut self.ends[1];
                    server.read = (server.read + bytes).min(server.received);
                    if self.offer(1) > self.ends[1].offered + 2 * self.world.mss
                        && self.ends[1].offered < self.world.receive_buffer_bytes / 2
                    {
                        self.acknowledge(1);
                    }
                    self.at(every_ns, Event::Reads);
                }
                Event::Timer(end, timer) if self.ends[end].timer == timer => self.time_out(end),
                Event::AckTimer(end, timer) if self.ends[end].ack_timer == timer => {
                    self.acknowledge(end);
                }
                Event::Timer(..) | Event::AckTimer(..) => {}
            }
        }
    }

    /// The room that an end may offer: never less than it offered before.
    fn offer(&self, end: usize) -> u64 {
        let own = &self.ends[end];
        let all = if end == 1 {
            self.world.receive_buffer_bytes
        } else {
            1 << 20
        };
        let room = all.saturating_sub(own.received - own.read);
        let kept = (own.told + own.offered).saturating_sub(own.received);
        // No silly windows (RFC 9293, section 3.8.6.2.2).
        let room = if room < self.world.mss.min(all / 2) {
            0
        } else {
            room
        };
        room.max(kept) >> SCALE << SCALE
    }

    /// Sends what may be sent.
    fn send(&mut self, end: usize) {
        let mss = self.world.mss;
        loop {
            let own = &self.ends[end];
            let flight = own.next - own.una;
            let sacked: u64 = own.sacked.iter().map(|(from, to)| to - from).sum();
            let buffer = if end == 0 {
                self.world.send_buffer_bytes
            } else {
                u64::MAX
            };
            let room = own
                .peer_window
                .min(buffer)
                .saturating_sub(flight)
                .min((own.cwnd as u64 + sacked).saturating_sub(flight));
            let left = own.written.saturating_sub(own.next);
            let len = left.min(mss);
            // A segment that is cut by a window only if it is all that there is.
            if left == 0 || room < len {
                return;
            }
            let is_held = self.world.nagle && len < mss && flight > 0;
            if is_held {
                return;
            }
            let seq = own.next;
            self.ends[end].next += len;
            let now_ns = self.now_ns;
            self.ends[end].timed.get_or_insert((seq + len, now_ns));
            self.transmit(end, seq, len);
            if flight == 0 {
                self.start_timer(end);
            }
        }
    }

    fn start_timer(&mut self, end: usize) {
        let own = &mut self.ends[end];
        own.timer += 1;
        let wait_ns = (own.round_trip_ns * 2 + 200 * MS) << own.backoff.min(6);
        let timer = own.timer;
        self.at(wait_ns, Event::Timer(end, timer));
    }

    fn time_out(&mut self, end: usize) {
        let mss = self.world.mss as f64;
        let own = &mut self.ends[end];
        if own.una == own.next {
            return;
        }
        own.ssthresh = ((own.next - own.una) as f64 / 2.0).max(2.0 * mss);
        own.cwnd = mss;
        own.backoff += 1;
        own.duplicates = 0;
        own.sacked.clear();
        own.timed = None;
        own.recovery = Some((own.next, own.una));
        self.send_again(end);
        self.start_timer(end);
    }

    /// Sends the first hole of a recovery again that was not yet.
    fn send_again(&mut self, end: usize) {
        let mss = self.world.mss;
        let own = &mut self.ends[end];
        let Some((point, done)) = &mut own.recovery else {
            return;
        };
        let mut seq = own.una.max(*done);
        while let Some(&(_, to)) = own
            .sacked
            .iter()
            .find(|(from, to)| *from <= seq && seq < *to)
        {
            seq = to;
        }
        let highest = own
            .sacked
            .iter()
            .map(|(_, to)| *to)
            .max()
            .unwrap_or(own.una + 1);
        if seq >= *point || seq >= highest.max(own.una + 1) {
            return;
        }
        let end_of = own
            .sacked
            .iter()
            .map(|(from, _)| *from)
            .filter(|from| *from > seq)
            .min();
        let len = mss.min(end_of.unwrap_or(*point).min(own.next) - seq);
        *done = seq + len;
        self.transmit(end, seq, len);
    }

    fn acknowledge(&mut self, end: usize) {
        let seq = self.ends[end].next;
        self.transmit(end, seq, 0);
    }

    /// Puts a segment on the path.
    fn transmit(&mut self, from: usize, seq: u64, len: u64) {
        let offered = self.offer(from);
        let own = &mut self.ends[from];
        (own.offered, own.told) = (offered, own.received);
        own.waiting_segments = 0;
        own.ack_timer += 1;
        let segment = Segment {
            from,
            seq,
            ack: own.received,
            len,
            window: offered,
            flags: if len > 0 { ACK | PSH } else { ACK },
            sack: own.beyond.last().copied(),
        };
        let path = self.world.paths[from];
        let wire_bytes = len + 90;
        let host_ns = self.draw.within(3_000, 40_000);
        // The queue is on the way, behind a capture at the sender.
        let sent_ns = (self.now_ns + host_ns).max(self.last_sent_ns[from] + 500);
        self.last_sent_ns[from] = sent_ns;
        let mut out_ns = sent_ns;
        let mut is_lost = self.draw.chance(path.loss)
            || path.payload_bytes_max > 0 && len > path.payload_bytes_max
            || path.cut_at_ns.is_some_and(|cut_ns| self.now_ns >= cut_ns);
        if let Some(bytes_ns) = (wire_bytes * 8_000_000_000).checked_div(path.bits_per_second) {
            let begin_ns = out_ns.max(self.busy_ns[from]);
            let queued = (begin_ns - out_ns) as f64 * path.bits_per_second as f64 / 8e9;
            if queued as u64 > path.queue_bytes {
                is_lost = true;
            } else if !is_lost {
                self.busy_ns[from] = begin_ns + bytes_ns;
                out_ns = begin_ns + bytes_ns;
            }
        }
        let jitter_ns = self.draw.within(0, path.jitter_ns.max(1));
        let mut arrival_ns =
            (out_ns + path.delay_ns + jitter_ns).max(self.last_arrival_ns[from] + 500);
        if self.draw.chance(path.overtaken) {
            arrival_ns += self.draw.within(path.late_ns / 2, path.late_ns);
        } else {
            self.last_arrival_ns[from] = arrival_ns;
        }
        let is_near = matches!((self.world.at, from), (At::Client, 0) | (At::Server, 1));
        let seen_ns = match self.world.at {
            _ if is_near => Some(sent_ns),
            // Half of what is lost is lost before the middle.
            At::Middle if is_lost && self.draw.chance(0.5) => None,
            At::Middle if is_lost => Some(
                (out_ns + path.delay_ns / 2)
                    .max(self.last_arrival_ns[from].saturating_sub(path.delay_ns / 2)),
            ),
            At::Middle => Some(arrival_ns - path.delay_ns / 2),
            _ if is_lost => None,
            _ => Some(arrival_ns - 1000),
        };
        if let Some(seen_ns) = seen_ns {
            self.at(
                seen_ns.saturating_sub(self.now_ns),
                Event::Seen(segment.clone()),
            );
        }
        if !is_lost {
            self.at(arrival_ns - self.now_ns, Event::Arrives(segment));
        }
    }

    fn see(&mut self, segment: &Segment) {
        let own = segment.from;
        let number = |end: usize, at: u64| self.first[end].wrapping_add(at as u32);
        let packet = Packet {
            from: if own == 0 { From::Client } else { From::Server },
            sequence: number(own, segment.seq),
            acknowledgement: number(1 - own, segment.ack),
            flags: segment.flags,
            window: (segment.window >> SCALE) as u16,
            payload: segment.len as usize,
            options: segment.sack.map_or_else(Vec::new, |(from, to)| {
                sack_option(number(1 - own, from), number(1 - own, to))
            }),
            identification: 0,
        };
        self.talk.now_ns = BEGIN_NS + self.now_ns;
        self.talk.send(packet);
    }

    fn arrive(&mut self, segment: &Segment) {
        let end = 1 - segment.from;
        self.take_acknowledgement(end, segment);
        if segment.len > 0 {
            self.take_data(end, segment);
        }
        self.send(end);
    }

    fn take_acknowledgement(&mut self, end: usize, segment: &Segment) {
        let mss = self.world.mss as f64;
        let now_ns = self.now_ns;
        let own = &mut self.ends[end];
        own.peer_window = (segment.ack + segment.window).saturating_sub(own.una.max(segment.ack));
        if let Some(block) = segment.sack {
            own.sacked.retain(|old| old.1 < block.0 || old.0 > block.1);
            own.sacked.push(block);
        }
        if segment.ack > own.una {
            let advance = segment.ack - own.una;
            own.una = segment.ack;
            own.next = own.next.max(own.una);
            own.sacked.retain(|(_, to)| *to > segment.ack);
            own.duplicates = 0;
            own.backoff = 0;
            if let Some((_, sent_ns)) = own.timed.filter(|(to, _)| *to <= segment.ack) {
                own.round_trip_ns = (own.round_trip_ns * 7 + (now_ns - sent_ns)) / 8;
                own.timed = None;
            }
            match own.recovery {
                Some((point, _)) if segment.ack >= point => {
                    own.recovery = None;
                    own.cwnd = own.ssthresh;
                }
                Some((_, done)) => {
                    if done <= segment.ack {
                        own.recovery = own.recovery.map(|(point, _)| (point, segment.ack));
                    }
                    if own.cwnd < own.ssthresh {
                        own.cwnd += mss;
                    }
                    self.send_again(end);
                }
                None if own.cwnd < own.ssthresh => own.cwnd += (advance as f64).min(2.0 * mss),
                None => own.cwnd += mss * advance as f64 / own.cwnd,
            }
            if self.ends[end].una < self.ends[end].next {
                self.start_timer(end);
            } else {
                self.ends[end].timer += 1;
            }
        } else if segment.len == 0
            && segment.ack == own.una
            && own.next > own.una
            && segment.sack.is_some()
        {
            own.duplicates += 1;
            own.timed = None;
            if own.duplicates == 3 && own.recovery.is_none() {
                own.ssthresh = ((own.next - own.una) as f64 / 2.0).max(2.0 * mss);
                own.cwnd = own.ssthresh;
                own.recovery = Some((own.next, own.una));
                self.send_again(end);
            } else if own.recovery.is_some() {
                self.send_again(end);
            }
        }
    }

    fn take_data(&mut self, end: usize, segment: &Segment) {
        let (from, to) = (segment.seq, segment.seq + segment.len);
        let own = &mut self.ends[end];
        if to <= own.received || from > own.received {
            // What came before, or beyond a hole: told at once.
            if from > own.received {
                let mut block = (from, to);
                own.beyond.retain(|old| {
                    let apart = old.1 < block.0 || old.0 > block.1;
                    if !apart {
                        block = (block.0.min(old.0), block.1.max(old.1));
                    }
                    apart
                });
                own.beyond.push(block);
            }
            return self.acknowledge(end);
        }
        let had_holes = !own.beyond.is_empty();
        own.received = to;
        while let Some(at) = own.beyond.iter().position(|block| block.0 <= own.received) {
            own.received = own.received.max(own.beyond.remove(at).1);
        }
        own.waiting_segments += segment.len.div_ceil(self.world.mss);
        let full = segment.len == self.world.mss;
        if end == 0 || self.world.reads.is_none() {
            own.read = own.received;
        }
        let waits = own.waiting_segments;
        self.hear(end);
        match self.world.delayed_ack_ns {
            Some(wait_ns) if !(had_holes || waits >= 2 && full) => {
                if waits == 1 || !full {
                    self.ends[end].ack_timer += 1;
                    let timer = self.ends[end].ack_timer;
                    self.at(wait_ns, Event::AckTimer(end, timer));
                }
            }
            _ => self.acknowledge(end),
        }
    }

    /// Lets the program act on what it has.
    fn hear(&mut self, end: usize) {
        let Program::Requests {
            ask,
            parts,
            answer,
            think_ns,
            pause_ns,
            ..
        } = self.world.program
        else {
            return;
        };
        let read = self.ends[end].read - 1;
        let jitter_ns = self.draw.within(10_000, 60_000);
        if end == 1 && read == self.asked * ask * parts {
            self.at(think_ns + jitter_ns, Event::Writes(1, answer));
        } else if end == 0 && read == self.asked * answer {
            self.ask(pause_ns + jitter_ns);
        }
    }
}
