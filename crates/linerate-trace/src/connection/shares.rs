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

use super::sequence::distance;
use super::{Half, Pair};

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

    /// Returns the longest time between two packets in which the window had no room and was not read.
    pub(crate) fn unread_ns_max(&self) -> u64 {
        self.unread_ns_max
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

    /// Returns the time in `state`, in nanoseconds.
    pub(crate) fn time_ns(&self, state: State) -> u64 {
        self.times_ns[state as usize]
    }
}

/// What is known of a direction beside its sequence numbers.
pub(crate) struct Sending {
    /// Whether something that was sent again is not acknowledged yet.
    pub recovering: bool,
    /// Bytes of a full segment.
    pub segment_bytes: u32,
    /// Whether the last segment was shorter than a full one.
    pub last_was_short: bool,
    /// Whether more was queued behind it.
    pub has_more: bool,
    /// The receiver's window in bytes, if its scale is known.
    pub window_bytes: Option<u64>,
    /// The largest that it was.
    pub window_bytes_max: u64,
    /// The largest behind the handshake: a SYN's may be another.
    pub window_bytes_used: u64,
}

/// Returns the state of the direction from `pair.from` to `pair.to`.
#[inline]
pub(crate) fn state(pair: Pair<&Half>, sending: &Sending) -> State {
    if !pair.from.is_seen() || !pair.to.is_seen() {
        return State::Unknown;
    }
    let flight = distance(pair.to.acknowledged, pair.from.next);
    let closed = pair.to.window == 0;
    if closed {
        return State::Window;
    }
    let has_shrunk = |window| window <= sending.window_bytes_used / 2;
    let no_room = match sending.window_bytes.is_some_and(has_shrunk) {
        true => State::Unread,
        false => State::Window,
    };
    let room = sending
        .window_bytes
        .map(|window| window.saturating_sub(flight.max(0) as u64));
    if flight <= 0 {
        // A sender does not cut its segments to fill a window that was twice as large once (RFC 9293,
        // section 3.8.6.2.1).
        let least = u64::from(sending.segment_bytes).min(sending.window_bytes_max / 2);
        let is_narrow = room.is_some_and(|room| room < least);
        // What is queued, though all is acknowledged, is paced, or held behind the host and before the capture.
        return match (is_narrow, sending.has_more && flight == 0) {
            (true, _) => no_room,
            (false, true) => State::Path,
            (false, false) => State::Idle,
        };
    }
    if sending.recovering {
        return State::Recovering;
    }
    if room.is_some_and(|room| room < u64::from(sending.segment_bytes)) {
        return no_room;
    }
    if sending.last_was_short && !sending.has_more {
        State::Sender
    } else {
        State::Path
    }
}
