//! Worker threads, each owning whole flows.

/// One flow on a thread: blocking calls.
mod alone;
/// Many flows on a thread: non-blocking calls and epoll.
mod crowd;
/// Which worker owns which flow.
mod deal;
/// Launching, sampling, aborting, collecting.
mod launch;
/// The life of one worker thread.
mod thread;

use linerate_model::histogram::Histogram;

use crate::measure::latency::Latency;
use crate::workload::{Ending, Player};

pub use launch::{EngineConfig, FlowResult, LaunchError, Running, launch};

/// A flow at its place in a worker.
#[derive(Debug)]
struct Seat {
    /// Where the flow stands in the list that was launched.
    index: usize,
    /// What it does.
    player: Player,
    /// How it ended, once it has.
    outcome: Option<Outcome>,
}

/// What a worker alone knows of a flow that has ended.
#[derive(Debug, Clone)]
struct Outcome {
    index: usize,
    ending: Ending,
    stall_max_ns: Option<u64>,
    cpu: Option<u32>,
    latency: Option<Histogram>,
}

/// What all flows of a worker share.
struct Bench {
    payload: crate::sys::buffer::PageBuffer,
    room: crate::sys::buffer::PageBuffer,
    latencies: Vec<Latency>,
}
