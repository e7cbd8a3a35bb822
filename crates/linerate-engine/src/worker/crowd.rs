//! Many flows on a thread: non-blocking calls, and epoll where nothing can move.

use std::io;
use std::time::Duration;

use crate::flow::Shared;
use crate::schedule::{Control, NOTICE_NS};
use crate::sys::clock;
use crate::sys::epoll::Epoll;
use crate::worker::thread::end_of;
use crate::worker::{Bench, Seat};
use crate::workload::{Ending, Io, Play, Turn, Want};

/// Calls that one flow may make before the next ready one has its turn: enough to make the wait
/// cheap for small messages, and not so many that a fast flow keeps the others waiting.
const TURNS_MAX: usize = 16;

/// A thread's flows and the set that tells which are ready.
pub(super) struct Crowd {
    epoll: Epoll,
    /// What each seat's socket is watched for.
    wants: Vec<Want>,
}

impl Crowd {
    /// Makes the sockets non-blocking and watches them.
    pub(super) fn prepare(seats: &[Seat], flows: &[&Shared]) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let mut wants = Vec::with_capacity(seats.len());
        for (at, (seat, flow)) in seats.iter().zip(flows).enumerate() {
            let want = seat.player.first_want();
            flow.stream.set_nonblocking(true)?;
            epoll.add(flow.fd(), at, want)?;
            wants.push(want);
        }
        Ok(Self { epoll, wants })
    }

    /// Plays all parts to their ends; each seat then has its outcome.
    ///
    /// Cost a wait: the system call, 300 ns and 20 ns for each ready flow; the clock 25 ns.
    pub(super) fn play(
        mut self,
        seats: &mut [Seat],
        flows: &[&Shared],
        control: &Control,
        bench: &mut Bench,
    ) {
        let mut left = seats.len();
        for at in 0..seats.len() {
            left -= self.serve(at, &mut seats[at], flows[at], control, bench);
        }
        let mut now_ns = clock::now_ns();
        let mut sweep_ns = next_sweep(control, now_ns);
        while left > 0 {
            let rest = Duration::from_nanos(sweep_ns.saturating_sub(now_ns));
            // The set is ours and so are its events: the one error left, a signal, reads as none.
            let ready = self.epoll.wait(rest).unwrap_or(0);
            for nth in 0..ready {
                let at = self.epoll.ready(nth);
                left -= self.serve(at, &mut seats[at], flows[at], control, bench);
            }
            now_ns = clock::now_ns();
            if now_ns >= sweep_ns {
                left -= self.sweep(seats, flows, control, now_ns);
                sweep_ns = next_sweep(control, now_ns);
            }
        }
    }

    /// Lets one flow have its turns; returns 1 if it has ended, else 0.
    ///
    /// Cost beside the turns: nothing for a flow that goes on wanting the same; a system call of
    /// 300 ns when it wants something else, which a stream never does and a request or response
    /// only when it does not fit the send buffer.
    fn serve(
        &mut self,
        at: usize,
        seat: &mut Seat,
        flow: &Shared,
        control: &Control,
        bench: &mut Bench,
    ) -> usize {
        if seat.outcome.is_some() {
            return 0;
        }
        let mut io = Io {
            flow,
            control,
            payload: bench.payload.as_slice(),
            room: bench.room.as_mut_slice(),
            latencies: &mut bench.latencies,
        };
        let mut next = self.wants[at];
        for _ in 0..TURNS_MAX {
            match seat.player.turn(&mut io) {
                Turn::Moved(want) => next = want,
                Turn::Rested(want) | Turn::Blocked(want) => {
                    next = want;
                    break;
                }
                Turn::Ended(ending) => {
                    self.end(seat, flow, ending);
                    return 1;
                }
            }
        }
        self.watch(at, flow, next);
        0
    }

    /// Shows the clock to flows that may be waiting in vain; returns how many have ended by it.
    fn sweep(
        &mut self,
        seats: &mut [Seat],
        flows: &[&Shared],
        control: &Control,
        now_ns: u64,
    ) -> usize {
        let mut ended = 0;
        for (seat, flow) in seats.iter_mut().zip(flows) {
            if seat.outcome.is_none()
                && let Some(ending) = seat.player.tick(control, now_ns)
            {
                self.end(seat, flow, ending);
                ended += 1;
            }
        }
        ended
    }

    fn watch(&mut self, at: usize, flow: &Shared, want: Want) {
        if self.wants[at] != want && self.epoll.change(flow.fd(), at, want).is_ok() {
            self.wants[at] = want;
        }
    }

    fn end(&mut self, seat: &mut Seat, flow: &Shared, ending: Ending) {
        // An error would mean that the socket is not in the set, which is what is wanted.
        let _ = self.epoll.remove(flow.fd());
        seat.outcome = Some(end_of(seat, flow, ending));
    }
}

/// Returns when the waiting flows are shown the clock next: at the stop, or after the notice time.
fn next_sweep(control: &Control, now_ns: u64) -> u64 {
    let regular_ns = now_ns + NOTICE_NS;
    let stop_ns = control.stop_ns();
    if stop_ns > now_ns {
        return regular_ns.min(stop_ns);
    }
    regular_ns
}
