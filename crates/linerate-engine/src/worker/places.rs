//! Places of a thread that make or answer a connection for each transaction, by io_uring or epoll.
//!
//! A loop of its own beside those of lasting connections, because the sockets of a place come and
//! go. Against epoll, io_uring takes a tenth to a sixth less CPU time for a transaction:
//! see docs/performance-notes.md, "Transactions".

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use linerate_model::manner::WaitBy;
use linerate_model::workload::Setting;

use crate::schedule::{Control, Ending};
use crate::sys::call_ring::CallRing;
use crate::sys::clock::now_ns;
use crate::worker::timers::Timers;
use crate::worker::waiting::{asked, wait_setting, wait_word, without_io_uring};
use crate::worker::{Memory, Seat, Wait, break_off, next_sweep, sweep};
use crate::workload::crr::{Callee, Place, PlaceIo, SocketEvents};

/// How often the clock is looked at after the stop.
const LAST_LOOKS_NS: u64 = 10_000_000;

/// What tells of the sockets of places, and their timers.
pub(super) struct PlaceLoop {
    /// First, so that it gives back what it has before its sockets are watched no more.
    callee: Option<Callee>,
    events: SocketEvents,
    spins: bool,
    timers: Timers,
}

impl Wait for PlaceLoop {
    type Player = Place;

    fn choose(seats: &mut [Seat<Place>], memory: &Memory) -> io::Result<(Self, Option<Setting>)> {
        let asked = asked(seats);
        let (events, said) = choose(asked, seats, memory)?;
        let place_loop = Self {
            callee: memory.callees.as_ref().map(Callee::new),
            events,
            spins: asked == WaitBy::Spin,
            timers: Timers::new(seats.len()).spinning_for(&seats[0].flow.config.manner),
        };
        Ok((place_loop, Some(said)))
    }

    /// The ring goes before the seats: what could not be ended is ended with it, before its socket is
    /// closed.
    fn play(mut self, seats: &mut [Seat<Place>], memory: &mut Memory, _: &mut Option<Setting>) {
        let callee = self.callee.take();
        let Some(mut callee) = callee else {
            self.call_to_the_ends(seats, memory);
            self.end_calls();
            return;
        };
        if let Some(ending) = self.answer(&mut callee, seats, memory) {
            let on = seats.iter_mut().filter(|seat| seat.ended.is_none());
            on.for_each(|seat| seat.end(ending.clone()));
        }
        let accepted = self.end_calls();
        callee.leave(accepted);
    }
}

impl PlaceLoop {
    /// Ends what is under way; returns the connections that were accepted meanwhile.
    fn end_calls(&mut self) -> Vec<OwnedFd> {
        let mut accepted = Vec::new();
        if let SocketEvents::Ring(ring) = &mut self.events {
            // A place that ended by its limit has a call under way, and whoever answers accept requests.
            let _ = ring.empty(|socket| accepted.push(socket));
        }
        accepted
    }

    /// Answers connections; returns how that ended, unless all seats have heard of it.
    fn answer(
        &mut self,
        callee: &mut Callee,
        seats: &mut [Seat<Place>],
        memory: &mut Memory,
    ) -> Option<Ending> {
        let began = callee.begin(&mut memory.callee_io(&mut self.events));
        if began.is_some() {
            return began;
        }
        let mut sweep_ns = next_look(&memory.control, now_ns());
        let mut now = now_ns();
        loop {
            if let Err(error) = self.events.wait(self.rest(now, sweep_ns)) {
                break_off(seats, &error);
                return None;
            }
            while let Some((key, event)) = self.events.next() {
                let ending = callee.handle(&mut memory.callee_io(&mut self.events), key, event);
                if ending.is_some() {
                    return ending;
                }
            }
            now = self.timers.clock_ns();
            if now >= sweep_ns {
                let ending = callee.tick(&mut memory.callee_io(&mut self.events), now);
                if ending.is_some() {
                    return ending;
                }
                sweep_ns = next_look(&memory.control, now);
            }
        }
    }

    fn rest(&self, now_ns: u64, sweep_ns: u64) -> Duration {
        if self.spins {
            Duration::ZERO
        } else {
            self.timers.rest(now_ns, sweep_ns)
        }
    }

    fn call_to_the_ends(&mut self, seats: &mut [Seat<Place>], memory: &mut Memory) {
        let mut left = seats.len();
        for (at, seat) in seats.iter_mut().enumerate() {
            left -= self.serve_place(at, seat, memory, |place, io| place.begin(io));
        }
        let mut now = now_ns();
        let mut sweep_ns = next_look(&memory.control, now);
        while left > 0 {
            if let Err(error) = self.events.wait(self.rest(now, sweep_ns)) {
                return break_off(seats, &error);
            }
            while let Some((at, event)) = self.events.next() {
                let handle = |place: &mut Place, io: &mut PlaceIo<'_>| place.handle(io, event);
                left -= self.serve_place(at, &mut seats[at], memory, handle);
            }
            now = self.timers.clock_ns();
            for _ in 0..self.timers.count() {
                let Some(at) = self.timers.take(now) else {
                    break;
                };
                left -= self.serve_place(at, &mut seats[at], memory, |place, io| place.begin(io));
            }
            if now >= sweep_ns {
                let tick = |place: &mut Place| place.tick(&memory.control, now);
                left -= sweep(seats, tick, Seat::end);
                sweep_ns = next_look(&memory.control, now);
            }
        }
    }

    /// Lets one place do something; returns 1 if it has ended, else 0.
    fn serve_place(
        &mut self,
        at: usize,
        seat: &mut Seat<Place>,
        memory: &mut Memory,
        turn: impl FnOnce(&mut Place, &mut PlaceIo<'_>) -> Option<Ending>,
    ) -> usize {
        if seat.ended.is_some() {
            return 0;
        }
        let mut io = memory.place_io(&seat.flow, &mut self.events, at);
        if let Some(ending) = turn(&mut seat.player, &mut io) {
            seat.end(ending);
            return 1;
        }
        if let Some(instant_ns) = seat.player.timer_ns() {
            self.timers.set(at, instant_ns);
        }
        0
    }
}

/// Returns when the places are shown the clock next: more often once the stop has come.
fn next_look(control: &Control, now_ns: u64) -> u64 {
    if now_ns >= control.stop_ns() {
        return now_ns + LAST_LOOKS_NS;
    }
    next_sweep(control, now_ns)
}

/// Chooses by what the places of a worker hear of their sockets; returns how it is said.
fn choose(
    asked: WaitBy,
    seats: &[Seat<Place>],
    memory: &Memory,
) -> io::Result<(SocketEvents, Setting)> {
    let (mut refused, mut events) = (None, None);
    if matches!(asked, WaitBy::Auto | WaitBy::Uring) {
        let ring = match &memory.callees {
            Some(callees) => CallRing::answering(Callee::sockets_max(callees)),
            None => {
                let place = |seat: &Seat<Place>| seat.flow.place.as_ref()?.calling();
                let peers: Vec<_> = seats.iter().filter_map(place).collect();
                CallRing::calling(&peers, memory.payload.bytes(), memory.room.bytes())
            }
        };
        match ring {
            Ok(ring) => events = Some(SocketEvents::Ring(Box::new(ring))),
            Err(error) => refused = Some(without_io_uring(&error)),
        }
    }
    let granted = wait_word(match (asked, &events) {
        (WaitBy::Spin, _) => WaitBy::Spin,
        (_, Some(_)) => WaitBy::Uring,
        (_, None) => WaitBy::Epoll,
    });
    let said = wait_setting(asked, granted, refused);
    Ok((events.map_or_else(SocketEvents::epoll, Ok)?, said))
}
