//! Opening pairs of flows and running them.

use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use linerate_engine::{
    Cpus, EngineConfig, Flow, FlowConfig, FlowResult, Running, Schedule, adopt, connect,
    connect_unix, launch, now_ns,
};
use linerate_model::Bytes;
use linerate_model::id::FlowId;
use linerate_model::manner::{Manner, Transport};
use linerate_model::sample::End;
use linerate_model::workload::{Direction, FlowOptions, Part, Traffic};
use socket2::{Domain, Protocol, Socket, Type};

/// Longer than any healthy connect over loopback, shorter than a test run.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// One worker for each flow, or all on one.
pub const WORKERS: usize = 2;

pub fn stream(message_bytes: u64) -> Traffic {
    Traffic::Stream {
        direction: Direction::ToServer,
        message_bytes: Bytes(message_bytes),
    }
}

pub fn rr(request_bytes: u64, response_bytes: u64, request_writes: u32) -> Traffic {
    Traffic::Rr {
        request_bytes: Bytes(request_bytes),
        response_bytes: Bytes(response_bytes),
        request_writes,
    }
}

pub fn config(flow: u32, end: End, part: Part, traffic: &Traffic) -> FlowConfig {
    FlowConfig {
        flow: FlowId(flow),
        end,
        part,
        traffic: traffic.clone(),
        options: FlowOptions::default(),
        manner: Manner::default(),
    }
}

pub fn listener() -> TcpListener {
    TcpListener::bind((IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).unwrap()
}

/// Returns both ends of a flow; the client's end has `part`.
pub fn pair(flow: u32, part: Part, traffic: &Traffic, options: &FlowOptions) -> (Flow, Flow) {
    let listener = listener();
    let peer = listener.local_addr().unwrap();
    let with = |config| FlowConfig {
        options: options.clone(),
        ..config
    };
    let near = with(config(flow, End::Client, part, traffic));
    let far = with(config(flow, End::Server, part.opposite(), traffic));
    let near = connect(near, peer, None, b"", DEADLINE).unwrap();
    let far = adopt(far, listener.accept().unwrap().0.into()).unwrap();
    (near, far)
}

/// Returns both ends of a flow of datagrams, opened without a hello, with `change`d configurations.
pub fn datagram_pair(
    flow: u32,
    part: Part,
    traffic: &Traffic,
    manner: &Manner,
    change: impl Fn(FlowConfig) -> FlowConfig,
) -> (Flow, Flow) {
    let far = UdpSocket::bind((IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).unwrap();
    let with = |config| {
        change(FlowConfig {
            manner: manner.clone(),
            ..config
        })
    };
    let near = with(config(flow, End::Client, part, traffic));
    let near = connect(near, far.local_addr().unwrap(), None, b"", DEADLINE).unwrap();
    far.connect(near.local().ip().unwrap()).unwrap();
    let config = with(config(flow, End::Server, part.opposite(), traffic));
    (near, adopt(config, far.into()).unwrap())
}

/// Returns both ends of a flow made in this manner; the client's end has `part`.
pub fn pair_by(flow: u32, part: Part, traffic: &Traffic, manner: &Manner) -> (Flow, Flow) {
    let with = |config| FlowConfig {
        manner: manner.clone(),
        ..config
    };
    let near = with(config(flow, End::Client, part, traffic));
    let far = with(config(flow, End::Server, part.opposite(), traffic));
    if manner.transport == Transport::Unix {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("linerate-test-{}-{number}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let near = connect_unix(near, &name, b"", DEADLINE).unwrap();
        let far = adopt(far, listener.accept().unwrap().0.into()).unwrap();
        return (near, far);
    }
    let listener = match manner.transport {
        Transport::Mptcp => mptcp_listener(),
        _ => listener(),
    };
    let peer = listener.local_addr().unwrap();
    let near = connect(near, peer, None, b"", DEADLINE).unwrap();
    let far = adopt(far, listener.accept().unwrap().0.into()).unwrap();
    (near, far)
}

/// Returns a listener that speaks MPTCP, or TCP on a kernel without it.
pub fn mptcp_listener() -> TcpListener {
    let new = |protocol| Socket::new(Domain::IPV4, Type::STREAM, Some(protocol));
    // IPPROTO_MPTCP of include/uapi/linux/in.h.
    let socket = new(Protocol::from(262))
        .or_else(|_| new(Protocol::TCP))
        .unwrap();
    let address = std::net::SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    socket.bind(&address.into()).unwrap();
    socket.listen(16).unwrap();
    socket.into()
}

/// How long the workers may take to make their pages, pipes and files: in a debug build on a busy
/// machine they take tens of milliseconds.
pub const READY_MS: u64 = 60;

/// Returns a schedule that starts now, with `length_ms` measured and 10 ms before and after.
pub fn schedule(length_ms: u64) -> Schedule {
    schedule_after(0, length_ms)
}

/// The same, starting after `ready_ms`.
pub fn schedule_after(ready_ms: u64, length_ms: u64) -> Schedule {
    let start_ns = now_ns() + ready_ms * 1_000_000;
    let measure_begin_ns = start_ns + 10_000_000;
    let measure_end_ns = measure_begin_ns + length_ms * 1_000_000;
    Schedule {
        start_ns,
        measure_begin_ns,
        measure_end_ns,
        stop_ns: measure_end_ns + 10_000_000,
        skew_ns: 0,
    }
}

/// Returns a schedule that would go on for a minute.
pub fn endless() -> Schedule {
    schedule(60_000)
}

pub fn start(flows: Vec<Flow>, schedule: Schedule, workers_max: usize) -> Running {
    let config = EngineConfig {
        workers_max,
        cpus: Cpus::Any,
    };
    launch(flows, schedule, &config).unwrap()
}

/// Runs both ends of `flows` flows; returns the results of the client's ends and the server's.
pub fn run(
    flows: u32,
    part: Part,
    traffic: &Traffic,
    workers_max: usize,
    length_ms: u64,
) -> (Vec<FlowResult>, Vec<FlowResult>) {
    let (near, far): (Vec<Flow>, Vec<Flow>) = (0..flows)
        .map(|flow| pair(flow, part, traffic, &FlowOptions::default()))
        .unzip();
    let schedule = schedule(length_ms);
    let far = start(far, schedule, workers_max);
    let near = start(near, schedule, workers_max);
    (near.finish(), far.finish())
}
