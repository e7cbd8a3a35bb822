//! One flow on a thread: blocking calls, so that the kernel wakes the thread when there is work
//! and nothing else has to be asked.
//!
//! A call waits at most [`NOTICE_NS`], by SO_RCVTIMEO and SO_SNDTIMEO; then the clock is looked
//! at. The timer that this arms is only paid when a call really sleeps; where every call does, the
//! thread of worker/deadline.rs ends the wait instead.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::schedule::{Ending, NOTICE_NS};
use crate::sys::clock::now_ns;
use crate::sys::socket;
use crate::workload::{Io, Play, Player, Turn};

/// Makes the socket block, up to the notice time or until the deadline ends the wait.
pub(super) fn prepare(socket: BorrowedFd<'_>, is_watched: bool) -> io::Result<()> {
    let notice_ns = if is_watched { 0 } else { NOTICE_NS };
    socket::set_blocking(socket, Some(Duration::from_nanos(notice_ns)))
}

/// Plays the part to its end.
///
/// The part is matched once here, so that each kind has a loop of its own without a branch.
pub(super) fn play(player: &mut Player, io: &mut Io<'_>) -> Ending {
    match player {
        Player::Sender(part) => turn_to_the_end(part, io),
        Player::Receiver(part) => turn_to_the_end(part, io),
        Player::Requester(part) => turn_to_the_end(part, io),
        Player::Responder(part) => turn_to_the_end(part, io),
        Player::Idle(part) => turn_to_the_end(part, io),
    }
}

/// Returns how a part ends whose limit has passed: it was the deadline that shut the socket down, not
/// the peer.
fn overdue(part: &mut impl Play, io: &Io<'_>, now_ns: u64) -> Option<Ending> {
    (now_ns >= io.control.limit_ns())
        .then(|| part.tick(io.control, now_ns))
        .flatten()
}

/// Cost of the loop beside the turn: one compare.
fn turn_to_the_end(part: &mut impl Play, io: &mut Io<'_>) -> Ending {
    loop {
        match part.turn(io) {
            Turn::Moved(_) | Turn::Rested(_) => {}
            Turn::Blocked(_) => {
                if let Some(ending) = part.tick(io.control, now_ns()) {
                    return ending;
                }
            }
            Turn::Ended(ending) => return overdue(part, io, now_ns()).unwrap_or(ending),
        }
    }
}
