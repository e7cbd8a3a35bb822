//! Many flows on a thread: non-blocking calls, and epoll where nothing can move.

use std::io;

use crate::schedule::Ending;
use crate::sys::clock;
use crate::sys::epoll::Epoll;
use crate::sys::socket;
use crate::worker::timers::Timers;
use crate::worker::{Memory, Seat, next_sweep, sweep};
use crate::workload::{Player, Turn, Want};

/// Calls that one flow may make before the next ready one has its turn: enough to make the wait
/// cheap for small messages, and not so many that a fast flow keeps the others waiting.
const TURNS_MAX: usize = 16;
/// Payload that moves before the clock is looked at.
const PIECE_BYTES: u64 = 128 << 10;
/// How long a flow may go on after its first piece: 16 calls of 128 KiB take 0.4 ms where nothing but
/// copying holds them up.
///
/// Where the CPU that calls is also the one that forwards, a flow's calls take as long as the line takes
/// for them, and the flow that has the CPU has the line: 16 calls were 17 ms of 1 Gbit/s, and 31 of 64 flows
/// moved nothing in 0.4 s. With this bound all did, with a fairness of 0.9 and more, and 10 and 64 flows
/// over loopback kept 1.00 and 1.02 of their rate (medians of 9 interleaved pairs).
const TURN_NS: u64 = 800_000;

/// The epoll set that tells which flows of a thread are ready, and their timers.
pub(super) struct EpollLoop {
    epoll: Epoll,
    /// What each seat's socket is watched for.
    wants: Vec<Want>,
    timers: Timers,
}

impl EpollLoop {
    /// Makes the sockets non-blocking and watches them.
    pub(super) fn prepare(seats: &[Seat<Player>]) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let mut wants = Vec::with_capacity(seats.len());
        for (at, seat) in seats.iter().enumerate() {
            let want = seat.player.first_want();
            socket::set_blocking(seat.flow.socket(), None)?;
            epoll.add(seat.flow.fd(), at, want)?;
            wants.push(want);
        }
        Ok(Self {
            epoll,
            wants,
            timers: Timers::new(seats.len()).spinning_for(&seats[0].flow.config.manner),
        })
    }

    /// Plays all parts to their ends; each seat then says how its flow ended.
    ///
    /// Cost a wait: the system call, 400 ns with one ready flow; the clock 30 ns.
    pub(super) fn play(mut self, seats: &mut [Seat<Player>], memory: &mut Memory) {
        let mut left = seats.len();
        // One turn each, so that the last flow does not start sixteen turns of all others later.
        for (at, seat) in seats.iter_mut().enumerate() {
            left -= self.serve(at, seat, memory, 1);
        }
        let mut now_ns = clock::now_ns();
        let mut sweep_ns = next_sweep(&memory.control, now_ns);
        while left > 0 {
            let rest = self.timers.rest(now_ns, sweep_ns);
            // The set is ours and so are its events: the one error left, a signal, reads as none.
            let ready = self.epoll.wait(rest).unwrap_or(0);
            for nth in 0..ready {
                let (at, _) = self.epoll.event(nth);
                left -= self.serve(at, &mut seats[at], memory, TURNS_MAX);
            }
            now_ns = self.timers.clock_ns();
            // No more than are set now: one that is set anew and due at once has its turn after
            // the sockets had theirs.
            for _ in 0..self.timers.count() {
                let Some(at) = self.timers.take(now_ns) else {
                    break;
                };
                left -= self.serve(at, &mut seats[at], memory, TURNS_MAX);
            }
            if now_ns >= sweep_ns {
                let tick = |player: &mut Player| player.tick(&memory.control, now_ns);
                left -= sweep(seats, tick, |seat, ending| self.end(seat, ending));
                sweep_ns = next_sweep(&memory.control, now_ns);
            }
        }
    }

    /// Lets one flow have its turns; returns 1 if it has ended, else 0.
    ///
    /// Cost beside the turns: 5 ns, 1 ns for each of them, the clock of 30 ns for each 128 KiB, and a
    /// system call of 300 ns when the flow wants something else than before, which a stream never does and a request or response only when it does
    /// not fit the send buffer or uses up its turns.
    fn serve(
        &mut self,
        at: usize,
        seat: &mut Seat<Player>,
        memory: &mut Memory,
        turns_max: usize,
    ) -> usize {
        if seat.ended.is_some() {
            return 0;
        }
        let mut io = memory.io(&seat.flow);
        let mut next = self.wants[at];
        let mut piece = Piece::after(seat.flow.counters.moved_bytes());
        for _ in 0..turns_max {
            match seat.player.turn(&mut io) {
                Turn::Moved(want) => {
                    next = want;
                    if piece.is_over(seat.flow.counters.moved_bytes(), clock::now_ns) {
                        break;
                    }
                }
                Turn::Rested(want) | Turn::Blocked(want) => {
                    next = want;
                    break;
                }
                Turn::Ended(ending) => {
                    self.end(seat, ending);
                    return 1;
                }
            }
        }
        self.watch(at, seat, next);
        self.timers.follow(at, &*seat.player);
        0
    }

    fn watch(&mut self, at: usize, seat: &Seat<Player>, want: Want) {
        if self.wants[at] != want && self.epoll.change(seat.flow.fd(), at, want).is_ok() {
            self.wants[at] = want;
        }
    }

    fn end(&mut self, seat: &mut Seat<Player>, ending: Ending) {
        // An error would mean that the socket is not in the set, which is what is wanted.
        let _ = self.epoll.remove(seat.flow.fd());
        seat.end(ending);
    }
}

/// When one flow has had its turn: by the clock, looked at once a piece.
#[derive(Debug)]
struct Piece {
    /// Payload of the flow when the clock is looked at next.
    full_at: u64,
    /// When the first piece was full.
    first_ns: Option<u64>,
}

impl Piece {
    /// Returns the first piece of a flow that has moved so many bytes before its turns.
    fn after(moved_bytes: u64) -> Self {
        Self {
            full_at: moved_bytes + PIECE_BYTES,
            first_ns: None,
        }
    }

    /// Returns whether a flow that has moved so many bytes in all has had its turn.
    fn is_over(&mut self, moved_bytes: u64, now_ns: impl FnOnce() -> u64) -> bool {
        if moved_bytes < self.full_at {
            return false;
        }
        self.full_at = moved_bytes + PIECE_BYTES;
        let now_ns = now_ns();
        now_ns - *self.first_ns.get_or_insert(now_ns) >= TURN_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces that take `piece_ns` each; returns how many a flow moves before others have their turn.
    fn pieces(piece_ns: u64) -> u64 {
        let mut piece = Piece::after(7);
        let ends = |nth: &u64| piece.is_over(7 + nth * PIECE_BYTES, || 1_000 + nth * piece_ns);
        (1..=TURNS_MAX as u64)
            .find(ends)
            .unwrap_or(TURNS_MAX as u64)
    }

    #[test]
    fn a_flow_goes_on_while_its_calls_are_fast() {
        assert_eq!(pieces(25_000), TURNS_MAX as u64, "at the speed of memory");
        assert_eq!(pieces(1_048_576), 2, "at 1 Gbit/s");
        assert_eq!(pieces(10_485_760), 2, "at 100 Mbit/s");
    }

    #[test]
    fn small_messages_do_not_ask_for_the_clock() {
        let mut piece = Piece::after(0);
        let asks = (1..=1000).filter(|nth| piece.is_over(nth * 100, || panic!("no clock")));
        assert_eq!(asks.count(), 0);
    }
}
