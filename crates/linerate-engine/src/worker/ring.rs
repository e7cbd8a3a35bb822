//! Many flows that speak and listen on a thread: io_uring receives, plain calls send.
//!
//! Against epoll this saves a receive call and a readiness event for each message; see
//! docs/performance-notes.md, "Transactions".

use std::io;
use std::os::fd::RawFd;

use crate::schedule::Ending;
use crate::sys::clock;
use crate::sys::socket;
use crate::sys::uring::{Ring, RingEvent};
use crate::worker::timers::Timers;
use crate::worker::{Memory, Seat, break_off, next_sweep, sweep};
use crate::workload::{Player, Turn, Want};

/// The ring of a worker whose flows all speak and listen.
pub(super) struct RingLoop {
    ring: Ring,
    /// Whether a seat waits for room to send.
    blocked: Vec<bool>,
    timers: Timers,
}

impl RingLoop {
    /// Makes the sockets non-blocking, for the sends, and the ring.
    pub(super) fn prepare(seats: &[Seat<Player>], room_bytes: usize) -> io::Result<Self> {
        let sockets: Vec<RawFd> = seats.iter().map(|seat| seat.flow.fd()).collect();
        for seat in seats {
            socket::set_blocking(seat.flow.socket(), None)?;
        }
        Ok(Self {
            ring: Ring::new(&sockets, room_bytes)?,
            blocked: vec![false; seats.len()],
            timers: Timers::new(seats.len()).spinning_for(&seats[0].flow.config.manner),
        })
    }

    /// Plays all parts to their ends; each seat then says how its flow ended.
    ///
    /// Cost a wait: the system call, 300 ns beside what it receives; the clock 30 ns.
    pub(super) fn play(mut self, seats: &mut [Seat<Player>], memory: &mut Memory) {
        let mut left = seats.len();
        for (at, seat) in seats.iter_mut().enumerate() {
            left -= self.receive(at, seat);
            left -= self.serve(at, seat, memory, Turn::Moved(Want::Writable));
        }
        let mut now_ns = clock::now_ns();
        let mut sweep_ns = next_sweep(&memory.control, now_ns);
        while left > 0 {
            let rest = self.timers.rest(now_ns, sweep_ns);
            if let Err(error) = self.ring.wait(rest) {
                return break_off(seats, &error);
            }
            while let Some(event) = self.ring.next() {
                left -= self.handle(event, seats, memory);
            }
            now_ns = self.timers.clock_ns();
            // No more than are set now: one that is set anew and due at once has its turn after
            // the sockets had theirs.
            for _ in 0..self.timers.count() {
                let Some(at) = self.timers.take(now_ns) else {
                    break;
                };
                left -= self.serve(at, &mut seats[at], memory, Turn::Moved(Want::Writable));
            }
            if now_ns >= sweep_ns {
                let tick = |player: &mut Player| player.tick(&memory.control, now_ns);
                left -= sweep(seats, tick, Seat::end);
                sweep_ns = next_sweep(&memory.control, now_ns);
            }
        }
    }

    /// Returns how many flows have ended by an event.
    fn handle(
        &mut self,
        event: RingEvent,
        seats: &mut [Seat<Player>],
        memory: &mut Memory,
    ) -> usize {
        match event {
            RingEvent::Writable { at } => {
                self.blocked[at] = false;
                self.serve(at, &mut seats[at], memory, Turn::Moved(Want::Writable))
            }
            RingEvent::Received {
                at,
                received,
                again,
            } => {
                let seat = &mut seats[at];
                if seat.ended.is_some() {
                    return 0;
                }
                let no_buffer = matches!(&received, Err(error)
                    if error.raw_os_error() == Some(libc::ENOBUFS));
                if !no_buffer {
                    let Some(part) = seat.player.talk() else {
                        return 0;
                    };
                    let turn = part.handle_received(&mut memory.io(&seat.flow), received);
                    if self.serve(at, seat, memory, turn) > 0 {
                        return 1;
                    }
                }
                if again { self.receive(at, seat) } else { 0 }
            }
        }
    }

    /// Asks for what a flow receives; returns 1 if that cannot be, which ends the flow.
    fn receive(&mut self, at: usize, seat: &mut Seat<Player>) -> usize {
        match self.ring.receive(at) {
            Ok(()) => 0,
            Err(error) => {
                seat.end(Ending::Early(format!(
                    "asking io_uring to receive failed: {error}"
                )));
                1
            }
        }
    }

    /// Lets a flow say all that is due after `turn`; returns 1 if it has ended, else 0.
    ///
    /// What is due has a bound of its own, the requests that may be under way.
    fn serve(
        &mut self,
        at: usize,
        seat: &mut Seat<Player>,
        memory: &mut Memory,
        turn: Turn,
    ) -> usize {
        if seat.ended.is_some() {
            return 0;
        }
        let mut next = Some(turn);
        while let Some(turn) = next {
            next = match turn {
                Turn::Moved(Want::Writable | Want::Either) => {
                    let mut io = memory.io(&seat.flow);
                    seat.player.talk().and_then(|part| part.send_due(&mut io))
                }
                Turn::Blocked(Want::Writable | Want::Either) => {
                    if !self.blocked[at] && self.ring.watch_writable(at).is_ok() {
                        self.blocked[at] = true;
                    }
                    None
                }
                Turn::Ended(ending) => {
                    seat.end(ending);
                    return 1;
                }
                Turn::Moved(Want::Readable) | Turn::Blocked(Want::Readable) | Turn::Rested(_) => {
                    None
                }
            };
        }
        self.timers.follow(at, &*seat.player);
        0
    }
}
