//! Places of a thread that make or answer a connection for each transaction, by io_uring or epoll.
//!
//! A thread of its own kind beside those of lasting connections, because the sockets of a place
//! come and go. Against epoll, io_uring takes a tenth to a sixth less CPU time for a transaction:
//! see docs/performance.md, "Transactions".

use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use linerate_model::manner::WaitBy;
use linerate_model::setting::name;
use linerate_model::workload::{Part, Setting, Traffic};

use crate::flow::Shared;
use crate::measure::latency::Latency;
use crate::schedule::{Control, Ending};
use crate::sys::buffer::PageBuffer;
use crate::sys::call_ring::CallRing;
use crate::sys::clock::now_ns;
use crate::sys::{socket, thread};
use crate::worker::EndedFlow;
use crate::worker::epoll::next_sweep;
use crate::worker::thread::{Unready, WorkerShare, get_ready};
use crate::worker::timers::Timers;
use crate::worker::waiting::{wait_word, without_io_uring};
use crate::workload::RECEIVE_BYTES;
use crate::workload::crr::{Callee, Caller, KEYS_PER_PLACE, Place, PlaceIo, SocketEvents};

/// How often the clock is looked at after the stop.
const LAST_LOOKS_NS: u64 = 10_000_000;

/// A flow at its place in a worker.
struct Seat<'a> {
    index: usize,
    flow: &'a Shared,
    place: Place,
    ended: Option<EndedFlow>,
}

/// What all places of a worker share: memory, timers, and what tells of their sockets.
struct PlaceLoop<'a> {
    control: &'a Control,
    events: SocketEvents,
    spins: bool,
    timers: Timers,
    payload: PageBuffer,
    room: PageBuffer,
    latencies: Vec<Latency>,
}

/// Returns whether the flows of a worker are places of connections.
pub(super) fn are_places(share: &WorkerShare) -> bool {
    let mut flows = share.flows.iter();
    flows.any(|(_, flow)| matches!(flow.config.traffic, Traffic::Crr { .. }))
}

/// Runs a worker of this kind, as [`crate::worker::thread::run_worker`] does.
pub(super) fn run_worker(
    share: &WorkerShare,
    ready: &SyncSender<Result<i32, Unready>>,
) -> Vec<EndedFlow> {
    let set_up = |share| {
        let seats = seats(share);
        PlaceLoop::new(share, &seats).map(|(place_loop, wait)| (seats, place_loop, wait))
    };
    let Some((mut seats, mut place_loop, wait)) = get_ready(share, ready, set_up) else {
        return Vec::new();
    };
    share.control.sleep_until_start();
    place_loop.play(&mut seats);
    place_loop.empty();
    ended_flows(seats, place_loop, &wait)
}

fn seats(share: &WorkerShare) -> Vec<Seat<'_>> {
    let mut requesters = 0;
    let seat = |(index, flow): &'_ (usize, std::sync::Arc<Shared>)| -> (usize, Place) {
        let place = match flow.config.part {
            Part::Requester => {
                let record = if share.latency_per_flow {
                    requesters
                } else {
                    0
                };
                requesters += 1;
                let start_ns = share.control.start_ns();
                let caller = Caller::new(flow, start_ns, share.window, record);
                Place::Caller(Box::new(caller))
            }
            _ => Place::Callee(Callee::new(flow)),
        };
        (*index, place)
    };
    let places: Vec<(usize, Place)> = share.flows.iter().map(seat).collect();
    let flows = share.flows.iter().map(|(_, flow)| &**flow);
    let seats = places.into_iter().zip(flows);
    seats
        .map(|((index, place), flow)| Seat {
            index,
            flow,
            place,
            ended: None,
        })
        .collect()
}

impl<'a> PlaceLoop<'a> {
    /// Returns the loop, and how its worker waits, in words.
    fn new(share: &'a WorkerShare, seats: &[Seat<'_>]) -> io::Result<(Self, Setting)> {
        let callers = seats
            .iter()
            .filter(|seat| matches!(seat.place, Place::Caller(_)))
            .count();
        let records = match share.latency_per_flow {
            true => callers,
            false => callers.min(1),
        };
        let bytes = |seat: &Seat<'_>| {
            let (request, response) = crate::workload::crr::bytes(&seat.flow.config.traffic);
            request.max(response)
        };
        let longest = seats.iter().map(bytes).max().unwrap_or(0).max(1);
        let room_bytes = longest.min(RECEIVE_BYTES);
        let asked = seats
            .first()
            .map_or(WaitBy::Auto, |seat| seat.flow.config.manner.wait);
        let (events, wait) = choose(asked, seats, longest, room_bytes)?;
        let place_loop = Self {
            control: &share.control,
            events,
            spins: asked == WaitBy::Spin,
            timers: Timers::new(seats.len()),
            payload: PageBuffer::new(longest),
            room: PageBuffer::new(room_bytes),
            latencies: (0..records).map(|_| Latency::new(share.window)).collect(),
        };
        Ok((place_loop, wait))
    }

    /// Plays all places to their ends; each seat then says how its flow ended.
    fn play(&mut self, seats: &mut [Seat<'_>]) {
        let mut left = seats.len();
        for (at, seat) in seats.iter_mut().enumerate() {
            left -= self.serve_place(at, seat, |place, io| place.begin(io));
        }
        let mut now = now_ns();
        let mut sweep_ns = next_look(self.control, now);
        while left > 0 {
            let rest = match self.spins {
                true => Duration::ZERO,
                false => self.timers.rest(now, sweep_ns),
            };
            if let Err(error) = self.events.wait(rest) {
                return break_off(seats, &error);
            }
            while let Some((key, event)) = self.events.next() {
                let (at, nth) = (key / KEYS_PER_PLACE, key % KEYS_PER_PLACE);
                let handle = |place: &mut Place, io: &mut PlaceIo<'_>| place.handle(io, nth, event);
                left -= self.serve_place(at, &mut seats[at], handle);
            }
            now = now_ns();
            for _ in 0..self.timers.count() {
                let Some(at) = self.timers.take(now) else {
                    break;
                };
                left -= self.serve_place(at, &mut seats[at], |place, io| match place {
                    Place::Caller(_) => place.begin(io),
                    Place::Callee(_) => None,
                });
            }
            if now >= sweep_ns {
                left -= self.sweep(seats, now);
                sweep_ns = next_look(self.control, now);
            }
        }
    }

    /// Lets go of all sockets that the ring still works with: a place that ended by its limit has a
    /// call under way, and every port an accept request.
    fn empty(&mut self) {
        if let SocketEvents::Ring(ring) = &mut self.events {
            let _ = ring.empty();
        }
    }

    /// Lets one place do something; returns 1 if it has ended, else 0.
    fn serve_place(
        &mut self,
        at: usize,
        seat: &mut Seat<'_>,
        turn: impl FnOnce(&mut Place, &mut PlaceIo<'_>) -> Option<Ending>,
    ) -> usize {
        if seat.ended.is_some() {
            return 0;
        }
        let mut io = PlaceIo {
            flow: seat.flow,
            control: self.control,
            events: &mut self.events,
            key: at * KEYS_PER_PLACE,
            payload: self.payload.as_slice(),
            room: self.room.as_mut_slice(),
            latencies: &mut self.latencies,
        };
        if let Some(ending) = turn(&mut seat.place, &mut io) {
            seat.end(ending);
            return 1;
        }
        if let Some(instant_ns) = seat.place.timer_ns() {
            self.timers.set(at, instant_ns);
        }
        0
    }

    /// Shows the clock to all places; returns how many have ended by it.
    fn sweep(&mut self, seats: &mut [Seat<'_>], now_ns: u64) -> usize {
        let mut ended = 0;
        for seat in seats.iter_mut().filter(|seat| seat.ended.is_none()) {
            if let Some(ending) = seat.place.tick(self.control, now_ns) {
                seat.end(ending);
                ended += 1;
            }
        }
        ended
    }
}

impl Seat<'_> {
    fn end(&mut self, ending: Ending) {
        if matches!(self.place, Place::Callee(_)) {
            // No more connections, although the port is there until the flow is dropped.
            let _ = socket::shutdown(self.flow.socket(), std::net::Shutdown::Both);
        }
        let stall_max_ns = match &self.place {
            Place::Caller(caller) => Some(caller.stall_max_ns(now_ns())),
            Place::Callee(_) => None,
        };
        self.ended = Some(EndedFlow {
            index: self.index,
            ending,
            stall_max_ns,
            cpu: thread::cpu(),
            latency: None,
            completions: None,
            settings: Vec::new(),
        });
    }
}

/// Returns when the places are shown the clock next: more often once the stop has come.
fn next_look(control: &Control, now_ns: u64) -> u64 {
    if now_ns >= control.stop_ns() {
        return now_ns + LAST_LOOKS_NS;
    }
    next_sweep(control, now_ns)
}

/// Ends every place that goes on, since the ring does not.
fn break_off(seats: &mut [Seat<'_>], error: &io::Error) {
    for seat in seats.iter_mut().filter(|seat| seat.ended.is_none()) {
        seat.end(Ending::Early(format!(
            "waiting for io_uring failed: {error}"
        )));
    }
}

/// Chooses by what the places of a worker hear of their sockets; returns how it is said.
fn choose(
    asked: WaitBy,
    seats: &[Seat<'_>],
    payload_bytes: usize,
    room_bytes: usize,
) -> io::Result<(SocketEvents, Setting)> {
    let (mut refused, mut events) = (None, None);
    if matches!(asked, WaitBy::Auto | WaitBy::Uring) {
        let peer = |seat: &Seat<'_>| seat.flow.place.map(|(peer, _)| peer);
        let peers: Vec<_> = seats.iter().map(peer).collect();
        match CallRing::new(&peers, payload_bytes, room_bytes) {
            Ok(ring) => events = Some(SocketEvents::Ring(Box::new(ring))),
            Err(error) => refused = Some(without_io_uring(&error)),
        }
    }
    let granted = wait_word(match (asked, &events) {
        (WaitBy::Spin, _) => WaitBy::Spin,
        (_, Some(_)) => WaitBy::Uring,
        (_, None) => WaitBy::Epoll,
    });
    let said = Setting {
        effective: Some(match &refused {
            Some(why) => format!("{granted}, since {why}"),
            None => granted.to_owned(),
        }),
        capped_by: refused.filter(|_| asked == WaitBy::Uring),
        ..Setting::granted(
            name::WAIT,
            Some(wait_word(asked).to_owned()),
            Some(granted.to_owned()),
        )
    };
    Ok((events.map_or_else(SocketEvents::epoll, Ok)?, said))
}

/// Returns how the flows ended, each latency record with the first requester that used it.
///
/// The ring goes first: what could not be ended is ended with it, before its socket is closed.
fn ended_flows(seats: Vec<Seat<'_>>, place_loop: PlaceLoop<'_>, wait: &Setting) -> Vec<EndedFlow> {
    drop(place_loop.events);
    let mut records = place_loop.latencies.iter();
    let wait = Arc::new(wait.clone());
    let now_ns = now_ns();
    seats
        .into_iter()
        .filter_map(|seat| {
            let mut ended = seat.ended?;
            ended.settings.push(Arc::clone(&wait));
            if let Place::Caller(caller) = &seat.place {
                let complete = seat.flow.counters.read().transactions;
                let said = caller.settings(place_loop.control, complete, now_ns);
                ended.settings.extend(said.into_iter().map(Arc::new));
                ended.latency = records.next().map(Latency::to_histogram);
            }
            Some(ended)
        })
        .collect()
}
