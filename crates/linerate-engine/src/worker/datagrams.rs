//! Flows of datagrams on a thread: one with blocking calls, or many with epoll and a clock.
//!
//! Loops of their own beside those of connections, because a sender of datagrams waits for instants
//! rather than for its peer.

use std::io;
use std::time::Duration;

use linerate_model::manner::{SMALL_DATAGRAM_BYTES_MAX, WaitBy};
use linerate_model::workload::{Part, Setting};

use crate::flow::FlowConfig;
use crate::flow::datagram::receive_batch;
use crate::schedule::{Ending, NOTICE_NS};
use crate::sys::clock::{now_ns, sleep_until};
use crate::sys::epoll::Epoll;
use crate::sys::socket;
use crate::worker::timers::{SPIN_NS, Timers};
use crate::worker::{Memory, Seat, Wait};
use crate::workload::Want;
use crate::workload::datagram::{
    DatagramIo, DatagramPart, DatagramPlay, DatagramPlayer, Receiver, Requester, Step,
};

/// How long a call waits before the clock is looked at; a tenth of a requester's patience.
const LOOK_NS: u64 = 20_000_000;
/// The longest sleep while sockets of the thread may become ready unseen.
const NAP_NS: u64 = 500_000;
/// The rest that a receiver of batches takes when it has emptied its socket: so short that a
/// buffer of 208 KiB holds what comes meanwhile at 5 million datagrams a second, and long enough
/// that it is not woken for each of them.
const REST_NS: u64 = 50_000;
/// The same for small datagrams that are sent one by one: 208 KiB hold 277 of them, what comes at 1.8
/// million a second, and a sender makes half of that at the most. Two pairs of 64 B, each on a CPU, in batches
/// of 64, received a second: rests of 50 µs 482 000, 150 µs 652 000, 300 µs 700 000; woken for each
/// datagram 269 000. One flow by `send`, a CPU for each end: 60 µs and 150 µs 392 000, woken 310 000; what its
/// buffer lost was the same 1 to 2 % each time.
const LONG_REST_NS: u64 = 150_000;
/// Silence after which such a receiver waits for the next datagram instead of resting again.
const SILENT_NS: u64 = 5_000_000;
/// Steps that one flow may make before the next has its turn.
const STEPS_MAX: usize = 16;

/// How a worker waits for flows of datagrams.
pub(super) enum DatagramWaiting {
    /// For one flow, in its calls or in a loop of its own.
    Alone,
    /// For many, by epoll and the clock.
    Epoll(DatagramLoop),
}

impl Wait for DatagramWaiting {
    type Player = DatagramPlayer;

    fn choose(
        seats: &mut [Seat<DatagramPlayer>],
        _: &Memory,
    ) -> io::Result<(Self, Option<Setting>)> {
        let [seat] = seats else {
            let many = DatagramLoop::prepare(seats)?;
            return Ok((DatagramWaiting::Epoll(many), None));
        };
        let spins = seat.flow.config.manner.wait == WaitBy::Spin;
        let looks = !rests(&seat.flow.config) && !seat.player.part.is_timed();
        let look = (!spins && looks).then(|| Duration::from_nanos(LOOK_NS));
        socket::set_blocking(seat.flow.socket(), look)?;
        Ok((DatagramWaiting::Alone, None))
    }

    fn play(
        self,
        seats: &mut [Seat<DatagramPlayer>],
        memory: &mut Memory,
        _: &mut Option<Setting>,
    ) {
        match self {
            DatagramWaiting::Alone => {
                for seat in seats {
                    let mut io = memory.datagram_io(&seat.flow, &seat.player.counters);
                    let ending = play_alone(&mut seat.player.part, &mut io);
                    seat.end(ending);
                }
            }
            DatagramWaiting::Epoll(many) => many.play(seats, memory),
        }
    }
}

/// Plays a part that has the thread to itself; each kind has a loop of its own.
fn play_alone(part: &mut DatagramPart, io: &mut DatagramIo<'_>) -> Ending {
    match part {
        DatagramPart::Sender(part) => step_to_the_end(part, io),
        DatagramPart::Receiver(part) if rests(&io.flow.config) => rest_to_the_end(part, io),
        DatagramPart::Receiver(part) => step_to_the_end(part, io),
        DatagramPart::Requester(part) if part.is_timed() => listen_to_the_end(part, io),
        DatagramPart::Requester(part) => step_to_the_end(part, io),
        DatagramPart::Responder(part) => step_to_the_end(part, io),
    }
}

/// Cost of the loop beside the step: one compare.
fn step_to_the_end(part: &mut impl DatagramPlay, io: &mut DatagramIo<'_>) -> Ending {
    loop {
        match part.step(io) {
            Step::Again => {}
            Step::Wait(_) => {
                // The call has waited, or this thread spins.
                if let Step::Ended(ending) = part.tick(io, now_ns()) {
                    return ending;
                }
            }
            Step::At(at_ns) | Step::Until(at_ns) => pause(at_ns, NOTICE_NS),
            Step::Ended(ending) => return ending,
        }
    }
}

/// Returns whether a part takes what has gathered from time to time, instead of being woken.
fn rests(config: &FlowConfig) -> bool {
    let manner = &config.manner;
    let may_rest = matches!(manner.wait, WaitBy::Auto | WaitBy::Xdp);
    config.part == Part::Receiver && receive_batch(config) > 1 && may_rest
}

/// Returns how long such a part rests.
fn rest_ns(config: &FlowConfig) -> u64 {
    let manner = &config.manner;
    match config.traffic.stream() {
        Some((_, message_bytes))
            if message_bytes.0 <= SMALL_DATAGRAM_BYTES_MAX
                && manner.segments == 1
                && manner.sizes.is_none() =>
        {
            LONG_REST_NS
        }
        _ => REST_NS,
    }
}

/// Receives batches. A wake-up for each datagram costs as much as the datagram, and takes the CPU
/// from a sender that shares it.
fn rest_to_the_end(part: &mut Receiver, io: &mut DatagramIo<'_>) -> Ending {
    let rest_ns = rest_ns(&io.flow.config);
    loop {
        match part.step(io) {
            Step::Again | Step::At(_) | Step::Until(_) => {}
            Step::Wait(_) => {
                let now = now_ns();
                if let Step::Ended(ending) = part.tick(io, now) {
                    return ending;
                }
                if now.saturating_sub(part.last_ns()) < SILENT_NS {
                    sleep_until(now + rest_ns);
                } else {
                    // What it waited for shows at the next step, an error too.
                    let look = Duration::from_nanos(LOOK_NS);
                    let _ = socket::wait_readable(io.flow.socket(), look);
                }
            }
            Step::Ended(ending) => return ending,
        }
    }
}

/// Waits until `at_ns` or for `most_ns`: asleep, and the last stretch before `at_ns` spinning.
fn pause(at_ns: u64, most_ns: u64) {
    let began_ns = now_ns();
    let end_ns = at_ns.min(began_ns + most_ns);
    if end_ns < at_ns {
        return sleep_until(end_ns.min(at_ns - SPIN_NS));
    }
    if end_ns.saturating_sub(began_ns) > SPIN_NS {
        sleep_until(end_ns - SPIN_NS);
    }
    while now_ns() < end_ns {
        std::hint::spin_loop();
    }
}

/// Asks by the clock and listens meanwhile, on a socket that never waits.
///
/// Cost of a wait beside the step: ppoll 300 ns and the clock 30 ns; the last stretch before a request
/// is due asks the socket again and again.
fn listen_to_the_end(part: &mut Requester, io: &mut DatagramIo<'_>) -> Ending {
    loop {
        match part.step(io) {
            Step::Again => {}
            Step::Wait(_) => {
                listen(io, u64::MAX);
                if let Step::Ended(ending) = part.tick(io, now_ns()) {
                    return ending;
                }
            }
            Step::At(at_ns) => pause(at_ns, NOTICE_NS),
            Step::Until(at_ns) => listen(io, at_ns),
            Step::Ended(ending) => return ending,
        }
    }
}

/// Waits until something arrives or shortly before `at_ns`, unless the thread never sleeps.
fn listen(io: &DatagramIo<'_>, at_ns: u64) {
    let left_ns = at_ns.saturating_sub(now_ns()).min(LOOK_NS);
    if left_ns > SPIN_NS && io.flow.config.manner.wait != WaitBy::Spin {
        // What it waited for shows at the next step, an error too.
        let left = Duration::from_nanos(left_ns - SPIN_NS);
        let _ = socket::wait_readable(io.flow.socket(), left);
    }
}

/// Many flows of datagrams on a thread: epoll, and their timers.
pub(super) struct DatagramLoop {
    epoll: Epoll,
    timers: Timers,
    /// What each flow's socket is watched for; `None` while it only waits for the clock, or is over.
    wants: Vec<Option<Want>>,
    spins: bool,
    /// Whether flows listen and watch the clock at once.
    timed: bool,
}

impl DatagramLoop {
    fn prepare(seats: &[Seat<DatagramPlayer>]) -> io::Result<Self> {
        let mut many = Self {
            epoll: Epoll::new()?,
            timers: Timers::new(seats.len()),
            wants: vec![None; seats.len()],
            spins: false,
            timed: seats.iter().any(|seat| seat.player.part.is_timed()),
        };
        for (at, seat) in seats.iter().enumerate() {
            socket::set_blocking(seat.flow.socket(), None)?;
            // Watched for what it receives; a sender that waits for room is watched meanwhile.
            many.epoll.add(seat.flow.fd(), at, Want::Readable)?;
            if seat.player.part.sends_first() {
                many.epoll.remove(seat.flow.fd())?;
                many.timers.set(at, 0);
            } else {
                many.wants[at] = Some(Want::Readable);
            }
            many.spins |= seat.flow.config.manner.wait == WaitBy::Spin;
        }
        Ok(many)
    }

    /// Plays all parts to their ends.
    fn play(mut self, seats: &mut [Seat<DatagramPlayer>], memory: &mut Memory) {
        let mut left = seats.len();
        let mut sweep_ns = now_ns() + LOOK_NS;
        while left > 0 {
            let mut now = now_ns();
            // Each once, so that senders without a rate do not keep receivers waiting.
            for _ in 0..self.timers.count() {
                let Some(at) = self.timers.take(now) else {
                    break;
                };
                left -= self.serve(at, &mut seats[at], memory);
                now = now_ns();
            }
            let next_ns = self.timers.next_ns().unwrap_or(u64::MAX);
            let ready = self
                .epoll
                .wait(self.rest(next_ns.min(sweep_ns)))
                .unwrap_or(0);
            for nth in 0..ready {
                let (at, _) = self.epoll.event(nth);
                left -= self.serve(at, &mut seats[at], memory);
            }
            if ready == 0 && next_ns != u64::MAX && !self.spins && !self.timed {
                pause(next_ns.min(sweep_ns), NAP_NS);
            }
            now = now_ns();
            if now >= sweep_ns {
                left -= self.sweep(seats, memory, now);
                sweep_ns = now + LOOK_NS;
            }
        }
    }

    /// Returns how long epoll may sleep. Not at all where senders are due before the next sweep:
    /// they pause without listening. Where flows listen too, until shortly before one is due; the
    /// last stretch is spun through with epoll.
    fn rest(&self, until_ns: u64) -> Duration {
        if self.spins || (!self.timed && self.timers.count() > 0) {
            return Duration::ZERO;
        }
        let spin_ns = if self.timed { SPIN_NS } else { 0 };
        Duration::from_nanos(until_ns.saturating_sub(now_ns()).saturating_sub(spin_ns))
    }

    /// Lets one flow make its steps; returns 1 if it has ended, else 0.
    fn serve(&mut self, at: usize, seat: &mut Seat<DatagramPlayer>, memory: &mut Memory) -> usize {
        if seat.ended.is_some() {
            return 0;
        }
        let mut io = memory.datagram_io(&seat.flow, &seat.player.counters);
        for _ in 0..STEPS_MAX {
            match seat.player.part.step(&mut io) {
                Step::Again => {}
                Step::Wait(want) => {
                    self.watch(at, seat, Some(want));
                    return 0;
                }
                Step::At(at_ns) => {
                    self.watch(at, seat, None);
                    self.timers.set(at, at_ns);
                    return 0;
                }
                Step::Until(at_ns) => {
                    self.watch(at, seat, Some(Want::Readable));
                    self.timers.set(at, at_ns);
                    return 0;
                }
                Step::Ended(ending) => {
                    self.watch(at, seat, None);
                    seat.end(ending);
                    return 1;
                }
            }
        }
        // More may move at once: what a watched flow has received is reported again. The others come
        // after those that are due by now, and so do requests that may go while nothing arrives.
        let is_watched = self.wants[at] == Some(Want::Readable);
        if !is_watched {
            self.watch(at, seat, None);
        }
        if !is_watched || seat.player.part.sends_first() {
            self.timers.set(at, now_ns());
        }
        0
    }

    /// Shows the clock to flows that wait; returns how many have ended by it.
    fn sweep(
        &mut self,
        seats: &mut [Seat<DatagramPlayer>],
        memory: &mut Memory,
        now_ns: u64,
    ) -> usize {
        let mut ended = 0;
        for (at, seat) in seats.iter_mut().enumerate() {
            if seat.ended.is_some() || self.wants[at].is_none() {
                continue;
            }
            let io = memory.datagram_io(&seat.flow, &seat.player.counters);
            match seat.player.part.tick(&io, now_ns) {
                Step::Again => ended += self.serve(at, seat, memory),
                Step::Ended(ending) => {
                    self.watch(at, seat, None);
                    seat.end(ending);
                    ended += 1;
                }
                Step::Wait(_) | Step::At(_) | Step::Until(_) => {}
            }
        }
        ended
    }

    /// Watches a flow for something else than before; an error leaves it to the sweep.
    fn watch(&mut self, at: usize, seat: &Seat<DatagramPlayer>, want: Option<Want>) {
        let fd = seat.flow.fd();
        let done = match (self.wants[at], want) {
            (before, now) if before == now => Ok(()),
            (None, Some(want)) => self.epoll.add(fd, at, want),
            (Some(_), Some(want)) => self.epoll.change(fd, at, want),
            (_, None) => self.epoll.remove(fd),
        };
        if done.is_ok() {
            self.wants[at] = want;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::Arc;

    use linerate_model::id::FlowId;
    use linerate_model::manner::{Manner, Transport};
    use linerate_model::sample::End;
    use linerate_model::unit::Bytes;
    use linerate_model::workload::{FlowOptions, Traffic};

    use super::*;
    use crate::flow;
    use crate::measure::latency::LatencyCounts;
    use crate::schedule::{Control, Schedule};
    use crate::worker::thread::{WorkerShare, set_up};

    /// More requests than a flow may send in a turn are due, it listens already, and nothing arrives.
    #[test]
    fn an_open_loop_beside_another_asks_all_that_is_due_before_anything_arrives() {
        const IN_FLIGHT: u64 = 4 * STEPS_MAX as u64;
        let peer = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let config = FlowConfig {
            flow: FlowId(0),
            end: End::Client,
            part: Part::Requester,
            traffic: Traffic::Rr {
                request_bytes: Bytes(64),
                response_bytes: Bytes(64),
                request_writes: 1,
            },
            options: FlowOptions::default(),
            manner: Manner {
                transport: Transport::Udp,
                in_flight: IN_FLIGHT as u32,
                requests_per_s: Some(1000),
                ..Manner::default()
            },
        };
        let open = |index| {
            let config = config.clone();
            let peer = peer.local_addr().expect("it has one");
            let flow = flow::connect(config, peer, None, b"", Duration::from_secs(1));
            (index, Arc::new(flow.expect("no peer has to answer").shared))
        };
        // All that may be under way is due since a second, and the end is far.
        let now = now_ns();
        let schedule = Schedule {
            start_ns: now - 1_000_000_000,
            measure_begin_ns: now,
            measure_end_ns: now + 60_000_000_000,
            stop_ns: now + 60_000_000_000,
            skew_ns: 0,
        };
        let share = WorkerShare {
            flows: vec![open(0), open(1)],
            control: Arc::new(Control::new(&schedule, 2)),
            window: schedule.window(),
            cpus: Vec::new(),
            latency_per_flow: true,
            latency_counts: Some(Arc::new(LatencyCounts::default())),
            callees: None,
            spinners: None,
        };
        let ready = set_up::<DatagramWaiting>(&share).expect("sockets and an epoll set");
        let (mut seats, mut memory, DatagramWaiting::Epoll(mut many), _) = ready else {
            panic!("two flows wait by epoll");
        };
        for (at, seat) in seats.iter().enumerate() {
            many.watch(at, seat, Some(Want::Readable));
        }
        while let Some(at) = many.timers.take(now_ns()) {
            assert_eq!(many.serve(at, &mut seats[at], &mut memory), 0);
        }
        for seat in &seats {
            let counts = flow::datagram::counts(&seat.flow).expect("it counts them");
            // Given up and asked again where this thread was held up for longer than they wait.
            assert!(counts.sent >= IN_FLIGHT, "{counts:?}");
        }
    }
}
