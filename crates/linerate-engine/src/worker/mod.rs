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

use std::sync::Arc;

use linerate_model::histogram::Histogram;
use linerate_model::workload::Setting;

use crate::flow::Shared;
use crate::measure::latency::Latency;
use crate::schedule::{Control, Ending};
use crate::sys::buffer::PageBuffer;
use crate::sys::splice::Pipe;
use crate::sys::zerocopy::Completions;
use crate::workload::{CpuYield, Io, Player};

pub use launch::{EngineConfig, FlowResult, LaunchError, Running, launch};

/// A flow at its place in a worker.
#[derive(Debug)]
struct Seat {
    /// Where the flow stands in the list that was launched.
    index: usize,
    flow: Arc<Shared>,
    player: Player,
    /// How it ended, once it has.
    ended: Option<EndedFlow>,
}

/// What a worker alone knows of a flow that has ended.
#[derive(Debug, Clone)]
struct EndedFlow {
    index: usize,
    ending: Ending,
    stall_max_ns: Option<u64>,
    cpu: Option<u32>,
    latency: Option<Histogram>,
    /// What the kernel said about calls with MSG_ZEROCOPY.
    completions: Option<Completions>,
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
    latencies: Vec<Latency>,
}

impl Memory {
    /// Returns what a turn of `flow` works with.
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
}
