//! What the time of one direction went into.
//!
//! Between two packets nothing changes that a capture could see, so the state after one packet
//! holds until the next:
//!
//! 1. `Recovering`: something was sent again and is not acknowledged yet.
//! 2. `Window`: what is on its way leaves less than one segment of the receiver's window. Where that is half of what
//!    it was once, or less, it is `Unread`: what was acknowledged still lies in the receiver's buffer.
//! 3. `Idle`: nothing is on its way. The application has nothing to send, or waits itself.
//! 4. `Sender`: something is on its way, the window has room, and the last segment was shorter
//!    than a full one: the application had no more.
//!    Where Nagle's algorithm proves to have held the next one, it is `Nagle`.
//! 5. `Path`: as before, but the last segment was full: congestion window, pacing, or the next
//!    segment is about to leave.

use linerate_model::sample::End;

use super::Half;
use super::detail::{Detail, window_bytes};
use super::sequence::distance;

/// What the time went into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum State {
    /// One end was not captured.
    #[default]
    Unknown,
    /// Nothing is on its way.
    Idle,
    /// The receiver's window has no room.
    Window,
    /// The application had no more.
    Sender,
    /// Congestion window or pacing.
    Path,
    /// Waiting for what was sent again.
    Recovering,
    /// Nagle's algorithm held a short segment.
    Nagle,
    /// The receiver's window has no room, because its program has not read.
    Unread,
}

impl State {
    /// Returns whether the receiver's window has no room.
    #[inline]
    pub(crate) fn is_window(self) -> bool {
        matches!(self, State::Window | State::Unread)
    }
}

/// Nanoseconds in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Shares {
    times_ns: [u64; 8],
    state: State,
    /// The longest time between two packets in which it was [`State::Unread`].
    unread_ns_max: u64,
}

impl Shares {
    /// Adds `elapsed_ns` to the state that held.
    #[inline]
    pub(crate) fn add_elapsed(&mut self, elapsed_ns: u64) {
        self.times_ns[self.state as usize] += elapsed_ns;
        if self.state == State::Unread {
            self.unread_ns_max = self.unread_ns_max.max(elapsed_ns);
        }
    }

    /// Gives `elapsed_ns` of `from` to `to`: what came behind says what the time went into.
    pub(crate) fn reassign(&mut self, from: State, to: State, elapsed_ns: u64) {
        let moved = elapsed_ns.min(self.times_ns[from as usize]);
        self.times_ns[from as usize] -= moved;
        self.times_ns[to as usize] += moved;
    }

    /// Begins a state.
    #[inline]
    pub(crate) fn enter(&mut self, state: State) {
        self.state = state;
    }

    /// Returns the state that holds.
    #[inline]
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Returns these where there is a time in which both ends were seen.
    pub(crate) fn known(self) -> Option<Self> {
        (self.known_ns() > 0).then_some(self)
    }

    /// Returns what part of the time in which both ends were seen was in `state`.
    pub(crate) fn part(&self, state: State) -> f64 {
        self.times_ns[state as usize] as f64 / self.known_ns() as f64
    }

    /// Returns the part in which the receiver's window had no room, read or not.
    pub(crate) fn window_part(&self) -> f64 {
        self.part(State::Window) + self.part(State::Unread)
    }

    /// Returns the longest part without a packet in which the window had no room and was not read.
    pub(crate) fn unread_part_max(&self) -> f64 {
        self.unread_ns_max as f64 / self.known_ns() as f64
    }

    fn known_ns(&self) -> u64 {
        let unknown_ns = self.times_ns[State::Unknown as usize];
        self.times_ns.iter().sum::<u64>() - unknown_ns
    }
}

impl Detail {
    /// Returns the state of what `from` sends. `halves` are as they are behind the last segment.
    #[inline]
    pub(super) fn state(&self, halves: &[Half; 2], shifts: Option<[u8; 2]>, from: End) -> State {
        let to = from.other();
        let (half, peer) = (&halves[from as usize], &halves[to as usize]);
        let (own, receiver) = (&self.ends[from as usize], &self.ends[to as usize]);
        if !half.is_seen() || !peer.is_seen() {
            return State::Unknown;
        }
        let flight = distance(peer.acknowledged, half.next);
        if peer.window == 0 {
            return State::Window;
        }
        let window_bytes = window_bytes(halves, shifts, to);
        // Of the largest behind the handshake: a SYN's may be another.
        let has_shrunk = |window| window <= receiver.window.max / 2;
        let no_room = if window_bytes.is_some_and(has_shrunk) {
            State::Unread
        } else {
            State::Window
        };
        let room = window_bytes.map(|window| window.saturating_sub(flight.max(0) as u64));
        let has_more = own.has_more && own.sets_push;
        if flight <= 0 {
            // A sender does not cut its segments to fill a window that was twice as large once (RFC 9293,
            // section 3.8.6.2.1).
            let least = u64::from(own.segment_bytes).min(receiver.window_bytes_max / 2);
            let is_narrow = room.is_some_and(|room| room < least);
            // What is queued, though all is acknowledged, is paced, or held behind the host and before the capture.
            return match (is_narrow, has_more && flight == 0) {
                (true, _) => no_room,
                (false, true) => State::Path,
                (false, false) => State::Idle,
            };
        }
        if own.recovery.is_some() {
            return State::Recovering;
        }
        if room.is_some_and(|room| room < u64::from(own.segment_bytes)) {
            return no_room;
        }
        if own.is_short(own.last_data_bytes) && !has_more {
            State::Sender
        } else {
            State::Path
        }
    }
}
