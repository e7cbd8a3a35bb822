//! Flows on a thread that never sleeps: calls are repeated until they move something.
//!
//! The thread keeps its CPU, and the peer's packet has no thread to wake. Where the peer's packets
//! come from this very CPU, as over loopback with both ends on one, keeping it keeps the peer from
//! answering: the thread then yields as soon as it has nothing to do but to wait.

use std::hint;
use std::os::fd::RawFd;

use crate::schedule::Ending;
use crate::sys::clock::{now_ns, tick_ns};
use crate::sys::socket::{self, SO_INCOMING_CPU};
use crate::sys::thread;
use crate::worker::{Memory, Seat, sweep};
use crate::workload::{Io, Play, Player, Turn};

/// Calls in vain of one flow, or flows that had a turn, between two looks at the clock and at the peer's
/// CPU: 650 ns a call in vain, 10 µs a transaction, so that an abort or the stop is noticed within 1 ms
/// and the next tick of the coarse clock.
const TRIES: usize = 64;
/// The pause between two calls in vain of one flow. A receive call locks the socket, and what arrives
/// meanwhile has to wait for the end of the call: without a pause two ends with CPUs of their own
/// made 108 and 117 k transactions/s in two interleaved comparisons of a bare loop, with pauses of
/// 0.4 µs 114 and 121, of 1.6 µs 94.
const PAUSE_NS: u64 = 400;
/// Spin-loop hints of which the time is taken, and how often that is done.
const HINTS: u64 = 128;
const ROUNDS: u32 = 4;
/// Turns that one of several flows may have before the next: a response and its next request, or a
/// request and its response, and a call that finds no more.
const TURNS_MAX: usize = 3;

/// Plays the part to its end; returns whether it has yielded its CPU on the way.
///
/// Cost beside the turns: two compares, and for a turn in vain the pause, an addition and a
/// sixty-fourth of the tick clock and of two system calls, 200 ns together. Yielding takes 100 ns where
/// nobody else wants the CPU; with both ends on one it takes the place of a sleep and a wake-up, and
/// request and response of one byte take 4 to 5 % less than with blocking calls. It comes before the
/// receive call, which would be in vain.
pub(super) fn play(
    part: &mut (impl Play + ?Sized),
    io: &mut Io<'_>,
    pause: Pause,
) -> (Ending, bool) {
    let mut peer = PeerCpu::default();
    loop {
        match part.turn(io) {
            Turn::Moved(_) => {}
            Turn::Rested(_) => peer.yield_cpu(),
            Turn::Blocked(_) => {
                if peer.is_time_to_look(1, io.flow.fd())
                    && let Some(ending) = part.tick(io.control, tick_ns())
                {
                    return (ending, peer.was_here);
                }
                if peer.is_here {
                    peer.yield_cpu()
                } else {
                    pause.take()
                }
            }
            Turn::Ended(ending) => return (ending, peer.was_here),
        }
    }
}

/// Plays all parts of several flows, each in turn, to their ends; each seat then says how its flow ended.
/// Returns whether it has yielded its CPU on the way.
///
/// Cost of a round beside the turns: 2 ns a flow; a flow for which nothing has come takes a receive
/// call in vain, 250 ns, and none that has anything waits for an epoll set to tell of it, which takes
/// as long: 64 flows in shards made 200 k transactions/s in a bare loop by turns and 184 to 191 by
/// epoll.
pub(super) fn play_rounds(seats: &mut [Seat<Player>], memory: &mut Memory) -> bool {
    let mut left = seats.len();
    let mut peer = PeerCpu::default();
    while left > 0 {
        for seat in seats.iter_mut().filter(|seat| seat.ended.is_none()) {
            for _ in 0..TURNS_MAX {
                match seat.player.turn(&mut memory.io(&seat.flow)) {
                    Turn::Moved(_) => {}
                    Turn::Rested(_) | Turn::Blocked(_) => break,
                    Turn::Ended(ending) => {
                        seat.end(ending);
                        left -= 1;
                        break;
                    }
                }
            }
        }
        let waiting = seats.iter().find(|seat| seat.ended.is_none());
        let fd = waiting.map(|seat| seat.flow.fd());
        if fd.is_some_and(|fd| peer.is_time_to_look(left, fd)) {
            let now_ns = tick_ns();
            let tick = |player: &mut Player| player.tick(&memory.control, now_ns);
            left -= sweep(seats, tick, Seat::end);
        }
        peer.yield_cpu();
    }
    peer.was_here
}

/// What is known of the CPU that packets come from.
#[derive(Debug, Default)]
struct PeerCpu {
    tries: usize,
    is_here: bool,
    was_here: bool,
}

impl PeerCpu {
    /// Notes so many tries; returns whether it is time to look at the clock, and has then looked where
    /// the packets of the socket come from.
    fn is_time_to_look(&mut self, tries: usize, fd: RawFd) -> bool {
        self.tries += tries;
        let is_time = self.tries >= TRIES;
        if is_time {
            self.tries = 0;
            self.is_here = comes_from_here(fd);
            self.was_here |= self.is_here;
        }
        is_time
    }

    /// Lets the peer have the CPU, if that is ours.
    fn yield_cpu(&self) {
        if self.is_here {
            std::thread::yield_now();
        }
    }
}

/// Returns whether the last packet of the socket was brought up on the CPU that this thread runs on
/// (SO_INCOMING_CPU). Over loopback and veth that is where its sender ran; what cannot be told, as of
/// a Unix socket, counts as elsewhere.
fn comes_from_here(fd: RawFd) -> bool {
    let incoming = socket::read(fd, SO_INCOMING_CPU).ok();
    let incoming = incoming.and_then(|cpu| u32::try_from(cpu).ok());
    incoming.is_some() && incoming == thread::cpu()
}

/// A pause between two calls in vain, in spin-loop hints of the processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pause {
    hints: u64,
}

impl Pause {
    /// Finds out how many hints make a pause: one takes 10 to 140 cycles, by the processor. Takes 20 µs.
    pub(super) fn measure() -> Self {
        let took_ns = |_| {
            let began_ns = now_ns();
            (0..HINTS).for_each(|_| hint::spin_loop());
            now_ns() - began_ns
        };
        // The least counts, since whatever interrupts only adds.
        let took_ns = (0..ROUNDS).map(took_ns).min().unwrap_or(0).max(1);
        let hints = PAUSE_NS * HINTS / took_ns;
        // Not more than one a nanosecond, whatever the clock said.
        Self {
            hints: hints.clamp(1, PAUSE_NS),
        }
    }

    fn take(self) {
        (0..self.hints).for_each(|_| hint::spin_loop());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_about_as_long_as_it_should_be() {
        let pause = Pause::measure();
        assert!((1..=PAUSE_NS).contains(&pause.hints), "{pause:?}");
        let took_ns = |_| {
            let began_ns = now_ns();
            pause.take();
            now_ns() - began_ns
        };
        let least_ns = (0..100).map(took_ns).min().expect("a hundred");
        assert!(least_ns < 20 * PAUSE_NS, "{least_ns}");
    }

    #[test]
    fn the_clock_is_looked_at_after_so_many_tries_whoever_made_them() {
        let mut peer = PeerCpu::default();
        // No socket has this number: what cannot be told counts as elsewhere.
        let looks = |peer: &mut PeerCpu, tries, of| {
            let looked = (0..of).filter(|_| peer.is_time_to_look(tries, -1));
            looked.count()
        };
        assert_eq!(looks(&mut peer, 1, TRIES - 1), 0);
        assert_eq!(looks(&mut peer, 1, 1), 1);
        assert_eq!(looks(&mut peer, 1000, 3), 3);
        assert!(!peer.is_here && !peer.was_here);
    }
}
