//! What is known about one test, at the client's end.

use std::net::SocketAddr;

use crate::iperf3::parameters::Parameters;
use crate::iperf3::results::{CpuPercent, ServerOutput};

/// Everything that the documents say.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The program and its version.
    pub version: String,
    /// The host's system, as `uname -a` says.
    pub system_info: String,
    /// When the test began, in ms since 1970.
    pub unix_ms: u64,
    /// The other end of the control connection, as the user named it.
    pub peer_host: String,
    /// Its port.
    pub peer_port: u16,
    /// The cookie's characters.
    pub cookie: String,
    /// What was asked for.
    pub parameters: Parameters,
    /// The length of an interval, in seconds; 0 if there are none.
    pub interval_s: f64,
    /// The MSS of the control connection, if it was read.
    pub mss_default: Option<u32>,
    /// SO_SNDBUF of the first stream, as the kernel says it.
    pub sndbuf_actual: Option<u64>,
    /// SO_RCVBUF of the first stream, as the kernel says it.
    pub rcvbuf_actual: Option<u64>,
    /// Every stream, in the order of their numbers.
    pub streams: Vec<Stream>,
    /// The CPU that this end used.
    pub cpu: CpuPercent,
    /// The CPU that the other end used, if it said so.
    pub cpu_remote: Option<CpuPercent>,
    /// The congestion control of the sender of the first stream.
    pub sender_congestion: Option<String>,
    /// The congestion control of the receiver of the first stream.
    pub receiver_congestion: Option<String>,
    /// The server's own output, in a client's document.
    pub server_output: Option<ServerOutput>,
    /// What went wrong.
    pub error: Option<String>,
}

impl Test {
    /// Returns how many intervals every stream has.
    pub fn intervals(&self) -> usize {
        intervals(&self.streams)
    }
}

/// Returns how many intervals every one of `streams` has.
pub(super) fn intervals(streams: &[Stream]) -> usize {
    let lengths = streams.iter().map(|stream| stream.intervals.len());
    lengths.min().unwrap_or(0)
}

/// One stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// What names it in the documents: iperf3 has the number of the file descriptor here.
    pub socket: u32,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Whether this end sends.
    pub sender: bool,
    /// What this end counted, in order; every stream has the same ones.
    pub intervals: Vec<Interval>,
    /// What the sender counted, without the omitted time, if it is known.
    pub sent: Option<Total>,
    /// What the receiver counted, without the omitted time, if it is known.
    pub received: Option<Total>,
}

/// What one end counted in one stream in one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// When it began, in seconds from the start of counting; intervals that are omitted count from
    /// the start of the test.
    pub start_s: f64,
    /// When it ended.
    pub end_s: f64,
    /// Bytes.
    pub bytes: u64,
    /// Whether it is not counted.
    pub omitted: bool,
    /// The kernel's view of a TCP stream on which this end sends.
    pub tcp: Option<TcpReading>,
    /// The datagrams of a UDP stream.
    pub datagrams: Option<Datagrams>,
}

/// The kernel's view of a TCP stream at the end of an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpReading {
    /// Segments retransmitted in the interval.
    pub retransmits: u64,
    /// The congestion window, in bytes.
    pub snd_cwnd_bytes: u64,
    /// The peer's window, in bytes.
    pub snd_wnd_bytes: u64,
    /// The smoothed round-trip time, in µs.
    pub rtt_us: u64,
    /// Its variation, in µs.
    pub rttvar_us: u64,
    /// The path's MTU, in bytes.
    pub pmtu_bytes: u64,
    /// The kernel's estimate of reordering, in segments.
    pub reorder: u64,
}

/// What one end knows of datagrams. A sender knows only how many it sent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Datagrams {
    /// Datagrams sent, or the numbers passed by.
    pub packets: u64,
    /// Datagrams lost.
    pub lost: u64,
    /// Datagrams late or double.
    pub out_of_order: u64,
    /// Jitter, in seconds.
    pub jitter_s: f64,
}

/// What one end counted in one stream in all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Total {
    /// How long it counted, in seconds.
    pub seconds: f64,
    /// Bytes.
    pub bytes: u64,
    /// Segments retransmitted, from a TCP sender that knows.
    pub retransmits: Option<u64>,
    /// The datagrams of a UDP stream.
    pub datagrams: Option<Datagrams>,
}
