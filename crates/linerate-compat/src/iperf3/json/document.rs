//! The keys of the documents, in iperf3's order and spelling.

#![expect(
    missing_docs,
    reason = "iperf3's own names; docs/guide/iperf3.md lists them"
)]

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::iperf3::results::ServerOutput;

/// What `iperf3 -J` prints.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// What is known when the streams are there.
    pub start: Start,
    /// One entry for each interval.
    pub intervals: Vec<IntervalEntry>,
    /// The totals.
    pub end: EndSection,
    /// What the user calls the test.
    pub title: Option<String>,
    /// What the user wants to find here.
    pub extra_data: Option<String>,
    /// The server's own document or text.
    #[serde(flatten)]
    pub server_output: Option<ServerOutput>,
    /// What went wrong.
    pub error: Option<String>,
}

/// The head of the document.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    pub connected: Vec<Connected>,
    pub version: String,
    pub system_info: String,
    pub timestamp: Timestamp,
    pub connecting_to: Endpoint,
    pub cookie: String,
    pub tcp_mss: Option<u32>,
    pub tcp_mss_default: Option<u32>,
    pub target_bitrate: u64,
    #[serde(default)]
    pub fq_rate: u64,
    pub sock_bufsize: u32,
    pub sndbuf_actual: u64,
    pub rcvbuf_actual: u64,
    pub test_start: TestStart,
}

/// The addresses of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connected {
    pub socket: u32,
    pub local_host: String,
    pub local_port: u16,
    pub remote_host: String,
    pub remote_port: u16,
}

/// When the test began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamp {
    pub time: String,
    pub timesecs: u64,
    /// Since 3.18.
    #[serde(default)]
    pub timemillisecs: u64,
}

/// The other end of the control connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    pub host: String,
    pub port: u16,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestStart {
    pub protocol: String,
    pub num_streams: u32,
    pub blksize: u32,
    pub omit: u32,
    pub duration: u32,
    pub bytes: u64,
    pub blocks: u64,
    pub reverse: u8,
    pub tos: u8,
    pub target_bitrate: u64,
    #[serde(default)]
    pub bidir: u8,
    #[serde(default)]
    pub fqrate: u64,
    #[serde(default)]
    pub interval: f64,
    #[serde(default)]
    pub gso: u64,
    #[serde(default)]
    pub gro: u64,
}

/// One interval of all streams.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntervalEntry {
    /// Every stream.
    pub streams: Vec<IntervalRow>,
    /// The streams of the direction to the server; of the only direction, if there is one.
    pub sum: IntervalRow,
    /// The streams of the direction to the client, if both are measured.
    pub sum_bidir_reverse: Option<IntervalRow>,
}

/// One interval of one stream, or of a sum of streams, which has no socket.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalRow {
    pub socket: Option<u32>,
    pub start: f64,
    pub end: f64,
    pub seconds: f64,
    pub bytes: u64,
    pub bits_per_second: f64,
    pub retransmits: Option<u64>,
    pub snd_cwnd: Option<u64>,
    pub snd_wnd: Option<u64>,
    pub rtt: Option<u64>,
    pub rttvar: Option<u64>,
    pub pmtu: Option<u64>,
    pub reorder: Option<u64>,
    pub jitter_ms: Option<f64>,
    pub lost_packets: Option<u64>,
    pub packets: Option<u64>,
    pub lost_percent: Option<f64>,
    pub omitted: bool,
    pub sender: bool,
}

/// The totals.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EndSection {
    #[serde(default)]
    pub streams: Vec<EndStream>,
    pub sum: Option<TotalRow>,
    pub sum_sent: Option<TotalRow>,
    pub sum_received: Option<TotalRow>,
    pub sum_bidir_reverse: Option<TotalRow>,
    pub sum_sent_bidir_reverse: Option<TotalRow>,
    pub sum_received_bidir_reverse: Option<TotalRow>,
    #[serde(default)]
    pub cpu_utilization_percent: CpuUtilization,
    pub sender_tcp_congestion: Option<String>,
    pub receiver_tcp_congestion: Option<String>,
}

/// The totals of one stream: two sides for TCP, one entry for UDP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EndStream {
    /// A UDP stream.
    Udp { udp: Box<TotalRow> },
    /// A TCP or SCTP stream.
    Tcp {
        sender: Box<TotalRow>,
        receiver: Box<TotalRow>,
    },
}

/// The totals of one side of a stream, or of a sum of streams, which has no socket.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TotalRow {
    pub socket: Option<u32>,
    pub start: f64,
    pub end: f64,
    pub seconds: f64,
    pub bytes: u64,
    pub bits_per_second: f64,
    pub retransmits: Option<u64>,
    pub reorder: Option<u64>,
    pub max_snd_cwnd: Option<u64>,
    pub max_snd_wnd: Option<u64>,
    pub max_rtt: Option<u64>,
    pub min_rtt: Option<u64>,
    pub mean_rtt: Option<u64>,
    pub jitter_ms: Option<f64>,
    pub lost_packets: Option<u64>,
    pub packets: Option<u64>,
    pub lost_percent: Option<f64>,
    pub out_of_order: Option<u64>,
    pub sender: bool,
}

/// CPU time over wall time at both ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUtilization {
    pub host_total: f64,
    pub host_user: f64,
    pub host_system: f64,
    pub remote_total: f64,
    pub remote_user: f64,
    pub remote_system: f64,
}
