//! What the life of a connection went into: every instant from its first packet to its last has one
//! phase, so that the times add up to the life.
//!
//! 1. *Handshake*: from the SYN until both ends have acknowledged.
//! 2. *Recovery*: something was sent again and is not acknowledged yet, and the silence before, where
//!    a timer ended it.
//! 3. *Window*: what is on its way leaves less than one segment of the receiver's window.
//! 4. *Congestion*: full segments are on their way and the window has room: the congestion window, or
//!    pacing, or the next segment is about to leave.
//! 5. Where neither holds, nobody knows before the next data what the time went into. If the other end
//!    sends it, as much as the way takes was the *round trip* and the rest the program that *answers*;
//!    if the same end goes on, its program *paused*, or Nagle's algorithm held it. If nothing comes any
//!    more, the connection was *idle*.
//! 6. *Silence*: the other end was not heard of again, from what was repeated first on; of keepalives, from
//!    the first on that was not answered.

use linerate_model::sample::End;

use super::Half;
use super::shares::State;

/// What an instant went into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    /// The connection was set up.
    #[default]
    Handshake,
    /// Nothing was on its way, and nothing came.
    Idle,
    /// What was sent was on its way, or its acknowledgement.
    RoundTrip,
    /// The receiver's window had no room.
    Window,
    /// Congestion window or pacing of the client.
    ClientCongestion,
    /// Congestion window or pacing of the server.
    ServerCongestion,
    /// Waiting for what was sent again, or for the timer that sends it.
    Recovery,
    /// Nagle's algorithm held a short segment.
    Nagle,
    /// The other end was not heard of again.
    Silence,
    /// Before the client's data, as much as the way from the capture to it and back takes.
    ClientWay,
    /// Before the server's data, as much as the way to it and back takes.
    ServerWay,
    /// The client's program was waited for by the server.
    ClientAnswers,
    /// The server's program was waited for by the client.
    ServerAnswers,
    /// The client's program had no more to send, and went on later.
    ClientPauses,
    /// The server's program had no more to send, and went on later.
    ServerPauses,
    /// What the client went on for had to reach it first.
    ClientGoesOn,
    /// What the server went on for had to reach it first.
    ServerGoesOn,
    /// A short segment is on its way: what comes next tells.
    InFlight,
    /// Nothing is on its way: what comes next tells.
    AtRest,
}

/// Those of each end, the client's first.
impl Phase {
    pub(crate) const CONGESTION: [Self; 2] = [Self::ClientCongestion, Self::ServerCongestion];
    pub(crate) const WAY: [Self; 2] = [Self::ClientWay, Self::ServerWay];
    pub(crate) const PAUSES: [Self; 2] = [Self::ClientPauses, Self::ServerPauses];
    const ANSWERS: [Self; 2] = [Self::ClientAnswers, Self::ServerAnswers];
    pub(crate) const GOES_ON: [Self; 2] = [Self::ClientGoesOn, Self::ServerGoesOn];
}

const PHASES: usize = Phase::AtRest as usize + 1;

/// Nanoseconds in each phase.
#[derive(Debug, Clone, Default)]
pub(crate) struct Life {
    times_ns: [u64; PHASES],
    phase: Phase,
    /// The times when an end repeated itself first since it heard of the other, for each end.
    heard: [Option<Box<[u64; PHASES]>>; 2],
}

/// Who sends data now, and what the wait for it was.
pub(crate) struct Speech {
    /// Who sends.
    pub end: End,
    /// Who sent data last.
    pub last: Option<End>,
    /// How long the way from the capture to it and back takes, at the least.
    pub leg_ns: u64,
    /// The same with the queue that was there a moment ago.
    pub trip_ns: u64,
    /// Whether Nagle's algorithm held it.
    pub is_nagle: bool,
}

impl Life {
    /// Adds `elapsed_ns` to the phase that held.
    #[inline]
    pub(crate) fn add_elapsed(&mut self, elapsed_ns: u64) {
        self.times_ns[self.phase as usize] += elapsed_ns;
    }

    /// Begins the phase that the states of both directions make.
    #[inline]
    pub(crate) fn enter(&mut self, halves: &[Half; 2], states: [State; 2]) {
        let any = |state: State| states.contains(&state);
        let client = &halves[End::Client as usize];
        let is_set_up = halves.iter().all(Half::has_acknowledged);
        self.phase = if client.has_syn() && !is_set_up {
            Phase::Handshake
        } else if any(State::Recovering) {
            Phase::Recovery
        } else if states.iter().any(|state| state.is_window()) {
            Phase::Window
        } else if states[End::Client as usize] == State::Path {
            Phase::ClientCongestion
        } else if any(State::Path) {
            Phase::ServerCongestion
        } else if any(State::Sender) {
            Phase::InFlight
        } else {
            Phase::AtRest
        };
    }

    /// Gives the last `elapsed_ns` to a recovery: a timer ended them.
    #[cold]
    pub(crate) fn recover(&mut self, elapsed_ns: u64) {
        self.give(self.phase, Phase::Recovery, elapsed_ns);
    }

    /// What was sent last was captured where it arrives as well: until now it was on its way.
    #[cold]
    pub(crate) fn arrive(&mut self) {
        self.give(Phase::InFlight, Phase::RoundTrip, u64::MAX);
        self.give(Phase::AtRest, Phase::RoundTrip, u64::MAX);
    }

    /// Data came: what was waited for until now is known.
    #[inline]
    pub(crate) fn handle_data(&mut self, speech: &Speech) {
        let waited_ns =
            self.times_ns[Phase::InFlight as usize] + self.times_ns[Phase::AtRest as usize];
        if waited_ns == 0 {
            return;
        }
        let trip_ns = match speech.last {
            Some(last) if last != speech.end => speech.trip_ns,
            // What it goes on for, an acknowledgement, has to reach it first.
            _ => speech.leg_ns.min(self.times_ns[Phase::AtRest as usize]),
        };
        self.times_ns[Phase::InFlight as usize] = 0;
        self.times_ns[Phase::AtRest as usize] = 0;
        let trip_ns = trip_ns.min(waited_ns);
        let answers = speech
            .last
            .map_or(speech.end == End::Server, |last| last != speech.end);
        let (way, program) = if answers {
            (Phase::WAY, Phase::ANSWERS)
        } else {
            (Phase::GOES_ON, Phase::PAUSES)
        };
        self.times_ns[way[speech.end as usize] as usize] += trip_ns;
        let phase = if speech.is_nagle {
            Phase::Nagle
        } else {
            program[speech.end as usize]
        };
        self.times_ns[phase as usize] += waited_ns - trip_ns;
    }

    /// `end` repeats itself for the first time since it heard of the other, for which it had waited
    /// `waited_ns`.
    #[cold]
    pub(crate) fn handle_repetition(&mut self, end: End, waited_ns: u64) {
        let mut times_ns = self.times_ns;
        let last = &mut times_ns[self.phase as usize];
        *last = last.saturating_sub(waited_ns);
        self.heard[end as usize] = Some(Box::new(times_ns));
    }

    /// The other end of `end` was not heard of again since its first repetition.
    pub(crate) fn fall_silent(&mut self, end: End) {
        let Some(heard) = self.heard[end as usize].take() else {
            return;
        };
        let all: u64 = self.times_ns.iter().sum();
        let before: u64 = heard.iter().sum();
        self.times_ns = *heard;
        self.times_ns[Phase::Silence as usize] += all.saturating_sub(before);
    }

    /// Gives to `phase` what was Nagle's.
    pub(crate) fn forget_nagle(&mut self, phase: Phase) {
        self.give(Phase::Nagle, phase, u64::MAX);
    }

    /// Nothing comes any more.
    pub(crate) fn finish(&mut self, trip_ns: u64) {
        self.give(Phase::InFlight, Phase::RoundTrip, trip_ns);
        self.give(Phase::InFlight, Phase::Idle, u64::MAX);
        self.give(Phase::AtRest, Phase::Idle, u64::MAX);
    }

    /// Returns the time in `phase`, in nanoseconds.
    pub(crate) fn time_ns(&self, phase: Phase) -> u64 {
        self.times_ns[phase as usize]
    }

    fn give(&mut self, from: Phase, to: Phase, most_ns: u64) {
        let moved = most_ns.min(self.times_ns[from as usize]);
        self.times_ns[from as usize] -= moved;
        self.times_ns[to as usize] += moved;
    }
}
