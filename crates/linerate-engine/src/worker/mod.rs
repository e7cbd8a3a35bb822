//! Worker threads, each owning whole flows.

/// One flow on a thread: blocking calls.
mod blocking;
/// Flows of datagrams on a thread.
mod datagrams;
/// Ends waits that have no limit of their own.
mod deadline;
/// Which worker owns which flow.
mod deal;
/// Many flows on a thread: non-blocking calls and epoll.
mod epoll;
/// Launching, sampling, aborting, collecting.
mod launch;
/// Places that make or answer a connection for each transaction.
mod places;
/// Many flows that speak and listen on a thread: io_uring.
mod ring;
/// Flows on a thread that never sleeps.
mod spin;
/// The life of one worker thread.
mod thread;
/// Timers of flows that want a turn at an instant.
mod timers;
/// How a worker waits.
mod waiting;

use std::io;
use std::sync::Arc;

use linerate_model::histogram::Histogram;
use linerate_model::run::ZeroCopyCount;
use linerate_model::shortfall::{ConnectionCount, RequestCount};
use linerate_model::workload::Setting;

use crate::flow::Shared;
use crate::flow::calls::Callees;
use crate::measure::datagrams::DatagramCounters;
use crate::measure::latency::Latency;
use crate::schedule::{Control, Ending, NOTICE_NS};
use crate::sys::buffer::PageBuffer;
use crate::sys::datagram::{Inbox, Outbox};
use crate::sys::splice::Pipe;
use crate::workload::crr::{CalleeIo, PlaceIo, SocketEvents};
use crate::workload::datagram::DatagramIo;
use crate::workload::{CpuYield, Io, Seated};

pub use launch::{Cpus, EngineConfig, FlowResult, LaunchError, Running, launch, launch_beside};
pub use thread::worker_bytes;

/// A flow at its place in a worker, with what it plays there.
#[derive(Debug)]
struct Seat<P> {
    /// Where the flow stands in the list that was launched.
    index: usize,
    flow: Arc<Shared>,
    player: P,
    /// How it ended, once it has.
    ended: Option<EndedFlow>,
}

/// How a worker waits for parts of one kind.
trait Wait: Sized {
    /// Any part of the kind.
    type Player: Seated;

    /// Chooses and prepares it, once for all flows of the worker; returns the setting that says it,
    /// where there was a choice.
    fn choose(
        seats: &mut [Seat<Self::Player>],
        memory: &Memory,
    ) -> io::Result<(Self, Option<Setting>)>;

    /// Plays all parts to their ends; each seat then says how its flow ended. What only showed
    /// meanwhile is added to `said`.
    fn play(
        self,
        seats: &mut [Seat<Self::Player>],
        memory: &mut Memory,
        said: &mut Option<Setting>,
    );
}

/// What a worker alone knows of a flow that has ended.
#[derive(Debug, Clone, Default)]
struct EndedFlow {
    index: usize,
    ending: Ending,
    /// When that was.
    at_ns: u64,
    stall_max_ns: Option<u64>,
    cpu: Option<u32>,
    latency: Option<Histogram>,
    lateness: Option<Histogram>,
    /// What the kernel said about calls with MSG_ZEROCOPY.
    zero_copy: Option<ZeroCopyCount>,
    requests: Option<RequestCount>,
    connections: Option<Box<ConnectionCount>>,
    /// What the worker has to say of the flow's manner.
    settings: Vec<Arc<Setting>>,
}

/// What all flows of a worker share: buffers, pipe and records.
struct Memory {
    control: Arc<Control>,
    payload: PageBuffer,
    room: PageBuffer,
    pipe: Option<Pipe>,
    cpu_yield: CpuYield,
    outbox: Outbox,
    inbox: Inbox,
    latencies: Vec<Latency>,
    /// The flows of the trial that answer connections, those of other workers, too.
    callees: Option<Arc<Callees>>,
}

impl Memory {
    /// Returns what a turn of a lasting connection works with.
    fn io<'a>(&'a mut self, flow: &'a Shared) -> Io<'a> {
        Io {
            flow,
            control: &self.control,
            payload: self.payload.as_slice(),
            room: self.room.as_mut_slice(),
            pipe: self.pipe.as_mut(),
            cpu_yield: &mut self.cpu_yield,
            latencies: &mut self.latencies,
        }
    }

    /// Returns what a step of a flow of datagrams works with.
    fn datagram_io<'a>(
        &'a mut self,
        flow: &'a Shared,
        counters: &'a DatagramCounters,
    ) -> DatagramIo<'a> {
        DatagramIo {
            flow,
            counters,
            control: &self.control,
            outbox: &mut self.outbox,
            inbox: &mut self.inbox,
            times: &mut self.latencies,
        }
    }

    /// Returns what answering connections works with.
    fn callee_io<'a>(&'a mut self, events: &'a mut SocketEvents) -> CalleeIo<'a> {
        CalleeIo {
            control: &self.control,
            events,
            payload: self.payload.as_slice(),
            room: self.room.as_mut_slice(),
        }
    }

    /// Returns what a place that makes connections works with, whose key is `key`.
    fn place_io<'a>(
        &'a mut self,
        flow: &'a Shared,
        events: &'a mut SocketEvents,
        key: usize,
    ) -> PlaceIo<'a> {
        PlaceIo {
            flow,
            control: &self.control,
            events,
            key,
            payload: self.payload.as_slice(),
            room: self.room.as_mut_slice(),
            latencies: &mut self.latencies,
        }
    }
}

/// Shows the clock to the parts that go on, by `tick`, and lets `end` end those that are over; returns
/// how many those are.
fn sweep<P>(
    seats: &mut [Seat<P>],
    mut tick: impl FnMut(&mut P) -> Option<Ending>,
    mut end: impl FnMut(&mut Seat<P>, Ending),
) -> usize {
    let mut ended = 0;
    for seat in seats.iter_mut().filter(|seat| seat.ended.is_none()) {
        if let Some(ending) = tick(&mut seat.player) {
            end(seat, ending);
            ended += 1;
        }
    }
    ended
}

/// Returns when the parts that wait are shown the clock next: at the stop, or after the notice time.
fn next_sweep(control: &Control, now_ns: u64) -> u64 {
    let regular_ns = now_ns + NOTICE_NS;
    let stop_ns = control.stop_ns();
    if stop_ns > now_ns {
        return regular_ns.min(stop_ns);
    }
    regular_ns
}

/// Ends every flow that goes on, since io_uring does not.
fn break_off<P: Seated>(seats: &mut [Seat<P>], error: &io::Error) {
    for seat in seats.iter_mut().filter(|seat| seat.ended.is_none()) {
        let why = format!("waiting for io_uring failed: {error}");
        seat.end(Ending::Early(why));
    }
}
