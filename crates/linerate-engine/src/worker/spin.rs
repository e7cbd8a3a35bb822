//! One flow on a thread that never sleeps: calls are repeated until they move something.
//!
//! The thread keeps its CPU, and the peer's packet finds nobody to wake. Where the peer's packets
//! come from this very CPU, as over loopback with both ends on one, keeping it keeps the peer from
//! answering: the thread then yields after each call in vain.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use crate::sys::clock::tick_ns;
use crate::sys::socket::{self, SO_INCOMING_CPU};
use crate::sys::thread;
use crate::workload::{Ending, Io, Play, Turn};

/// Calls in vain between two looks at the clock and at the peer's CPU: 250 ns each, so that an abort
/// or the stop is noticed within 20 µs and the next tick of the coarse clock.
const TRIES: u32 = 64;

/// Makes the socket answer at once.
pub(super) fn prepare(socket: BorrowedFd<'_>) -> io::Result<()> {
    socket::set_blocking(socket, None)
}

/// Plays the part to its end; returns whether it has yielded its CPU on the way.
///
/// Cost beside the turns: one compare, and for a turn in vain an addition and a sixty-fourth of
/// the tick clock and of two system calls, 200 ns together. Yielding takes 100 ns where nobody else
/// wants the CPU; with both ends on one it takes the place of a sleep and a wake-up, and request and
/// response of one byte take 4 to 5 % less than with blocking calls.
pub(super) fn play(part: &mut impl Play, io: &mut Io<'_>) -> (Ending, bool) {
    let mut tries = 0;
    let (mut yields, mut yielded) = (false, false);
    loop {
        match part.turn(io) {
            Turn::Moved(_) | Turn::Rested(_) => {}
            Turn::Blocked(_) => {
                tries += 1;
                if tries % TRIES == 0 {
                    if let Some(ending) = part.tick(io.control, tick_ns()) {
                        return (ending, yielded);
                    }
                    yields = comes_from_here(io.flow.fd());
                    yielded |= yields;
                }
                if yields {
                    thread::give_way();
                }
            }
            Turn::Ended(ending) => return (ending, yielded),
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
