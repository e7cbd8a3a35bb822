//! One flow on a thread that never sleeps: calls are repeated until they move something.
//!
//! The thread keeps its CPU, and the peer's packet finds nobody to wake.

use std::io;
use std::os::fd::BorrowedFd;

use crate::sys::clock::tick_ns;
use crate::sys::socket;
use crate::workload::{Ending, Io, Play, Turn};

/// Calls in vain between two looks at the clock: 250 ns each, so that an abort or the stop is
/// noticed within 20 µs and the next tick of the coarse clock.
const TRIES: u32 = 64;

/// Makes the socket answer at once.
pub(super) fn prepare(socket: BorrowedFd<'_>) -> io::Result<()> {
    socket::set_blocking(socket, None)
}

/// Plays the part to its end.
///
/// Cost beside the turns: one compare, and for a turn in vain an addition and a sixty-fourth of
/// the tick clock.
pub(super) fn play(part: &mut impl Play, io: &mut Io<'_>) -> Ending {
    let mut tries = 0;
    loop {
        match part.turn(io) {
            Turn::Moved(_) | Turn::Rested(_) => {}
            Turn::Blocked(_) => {
                tries += 1;
                if tries % TRIES == 0
                    && let Some(ending) = part.tick(io.control, tick_ns())
                {
                    return ending;
                }
            }
            Turn::Ended(ending) => return ending,
        }
    }
}
