//! The load generator: makes traffic between hosts and measures it.
//!
//! A [`Flow`] is one end of a connection with its options applied. [`launch`] gives flows to
//! worker threads, which sleep until the start of a [`Schedule`], play their parts and stop;
//! while they run, [`Running::sample`] reads what they count and what the kernel's TCP_INFO says.
//!
//! This room knows no experiments, no HTTP and no store, and reads neither /proc nor sysctls. On
//! the path that moves payload it allocates nothing, takes no lock, logs nothing and awaits
//! nothing. Comments there give the cost of each line, measured on a virtual machine with two
//! CPUs (AMD EPYC, Linux 6.18).
//!
//! The layers, lowest first: `sys`; `measure` and `pace`; `schedule`; `flow`; `workload`; `worker`.
//! Each uses itself and lower ones only.
//!
//! ```
//! use std::net::TcpListener;
//! use std::time::Duration;
//!
//! use linerate_engine::{Cpus, EngineConfig, FlowConfig, Schedule, adopt, connect, launch, now_ns};
//! use linerate_model::id::FlowId;
//! use linerate_model::manner::Manner;
//! use linerate_model::sample::End;
//! use linerate_model::workload::{Direction, FlowOptions, Part, Traffic};
//! use linerate_model::Bytes;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = FlowConfig {
//!     flow: FlowId(0),
//!     end: End::Client,
//!     part: Part::Sender,
//!     traffic: Traffic::Stream { direction: Direction::ToServer, message_bytes: Bytes(4096) },
//!     options: FlowOptions::default(),
//!     manner: Manner::default(),
//! };
//! let server = FlowConfig { end: End::Server, part: Part::Receiver, ..client.clone() };
//!
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let sender = connect(client, listener.local_addr()?, None, b"", Duration::from_secs(1))?;
//! let receiver = adopt(server, listener.accept()?.0.into())?;
//!
//! let start_ns = now_ns();
//! let schedule = Schedule {
//!     start_ns,
//!     measure_begin_ns: start_ns + 10_000_000,
//!     measure_end_ns: start_ns + 40_000_000,
//!     stop_ns: start_ns + 50_000_000,
//!     skew_ns: 0,
//! };
//! let config = EngineConfig { workers_max: 2, cpus: Cpus::Any };
//! let results = launch(vec![sender, receiver], schedule, &config)?.finish();
//! assert_eq!(results[0].bytes_sent, results[1].bytes_received);
//! # Ok(())
//! # }
//! ```

/// One end of a connection, with its options applied, reported and sampled.
mod flow;
/// Counters, gaps, latency.
mod measure;
/// When the next thing may be sent, at a given rate.
mod pace;
/// When a trial starts, is counted and stops, and how a part in it ended.
mod schedule;
/// System calls; the only `unsafe` of this crate.
mod sys;
/// Threads that own whole flows.
mod worker;
/// Stream and request/response, as state machines that make one call a turn.
mod workload;

pub use flow::{
    Address, Arrival, AtDoor, Await, Awaited, Calls, ConnectError, DatagramListener, Door, Flow,
    FlowConfig, HelloBytes, Sieve, adopt, ask, await_calls, connect, connect_unix, opening,
    try_options,
};
pub use measure::memory::memory_copy_bytes_per_s;
pub use measure::tcp_info::retransmissions;
pub use schedule::{GRACE_NS, Schedule, grace_ns};
pub use sys::clock::now_ns;
pub use sys::heap::{frugal_heap, trim_heap};
pub use sys::mtu::{connection_mtu_bytes, route_mtu_bytes};
pub use sys::text::{give_back_neighbours, give_back_text, map_single_pages, read_text_ahead};
pub use sys::thread::{pin, run_when_idle};
pub use worker::{
    Cpus, EngineConfig, FlowResult, LaunchError, Running, launch, launch_beside, worker_bytes,
};
