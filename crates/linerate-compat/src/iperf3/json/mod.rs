//! The documents that iperf3 prints: a client's `-J` and `--json-stream`, and a server's text.
//!
//! `Test` is everything that is known about one test at the client's end, as plain numbers. From it follow
//! the `Document` that `iperf3 -J` prints (`document`), and its pieces as lines of `--json-stream`
//! (`start`, `interval`, `end`, `line`). From the streams alone follows the text that a server prints
//! for people (`text`), which a client can ask for.
//!
//! Names, units and sums are iperf3's: bits per second, RTT in µs, jitter in ms, and a value that
//! this end cannot know, such as what the other end received of a test that failed, is 0, since
//! programs that read these documents expect the keys.

/// Dates as e-mail writes them.
mod date;
/// The keys of the documents.
mod document;
/// What is known about one test.
mod input;
/// Intervals and totals with their sums.
mod sums;
/// What iperf3 prints for people.
mod text;

use serde::Serialize;

use crate::iperf3::parameters::{Direction, Protocol};

pub use document::{
    Connected, CpuUtilization, Document, EndSection, EndStream, Endpoint, IntervalEntry,
    IntervalRow, Start, TestStart, Timestamp, TotalRow,
};
pub use input::{Datagrams, Interval, Stream, TcpReading, Test, Total};
pub use sums::{end, interval};
pub use text::text;

/// Returns the whole document.
pub fn document(test: &Test) -> Document {
    Document {
        start: start(test),
        intervals: (0..test.intervals()).map(|at| interval(test, at)).collect(),
        end: end(test),
        title: test.parameters.title.clone(),
        extra_data: test.parameters.extra_data.clone(),
        server_output: test.server_output.clone(),
        error: test.error.clone(),
    }
}

/// Returns one line of `--json-stream`, without the line break.
///
/// `event` is `start`, `interval`, `error`, `server_output_json`, `server_output_text` or `end`.
pub fn line(event: &str, body: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Line<'a, T> {
        event: &'a str,
        data: &'a T,
    }
    // Numbers and strings under fixed keys always have a text.
    serde_json::to_string(&Line { event, data: body }).unwrap_or_default()
}

/// Returns what is known when the streams are there.
pub fn start(test: &Test) -> Start {
    let parameters = &test.parameters;
    let tcp = parameters.protocol == Protocol::Tcp;
    let target = parameters.bits_per_second.unwrap_or(0);
    let fq_rate = parameters.fq_bits_per_second.unwrap_or(0);
    Start {
        connected: test.streams.iter().map(connected).collect(),
        version: test.version.clone(),
        system_info: test.system_info.clone(),
        timestamp: Timestamp {
            time: date::written(test.unix_ms / 1000),
            timesecs: test.unix_ms / 1000,
            timemillisecs: test.unix_ms,
        },
        connecting_to: Endpoint {
            host: test.peer_host.clone(),
            port: test.peer_port,
        },
        cookie: test.cookie.clone(),
        tcp_mss: parameters.mss_bytes.filter(|_| tcp),
        tcp_mss_default: match parameters.mss_bytes {
            None if tcp => Some(test.mss_default.unwrap_or(0)),
            _ => None,
        },
        target_bitrate: target,
        fq_rate,
        sock_bufsize: parameters.window_bytes.unwrap_or(0),
        sndbuf_actual: test.sndbuf_actual.unwrap_or(0),
        rcvbuf_actual: test.rcvbuf_actual.unwrap_or(0),
        test_start: TestStart {
            protocol: parameters.protocol.name().to_owned(),
            num_streams: parameters.parallel,
            blksize: parameters.block_bytes,
            omit: parameters.omit_s,
            duration: parameters.time_s,
            bytes: parameters.bytes.unwrap_or(0),
            blocks: parameters.blocks.unwrap_or(0),
            reverse: u8::from(parameters.direction == Direction::ToClient),
            tos: parameters.tos.unwrap_or(0),
            target_bitrate: target,
            bidir: u8::from(parameters.direction == Direction::Both),
            fqrate: fq_rate,
            interval: test.interval_s,
            gso: parameters.gso.map_or(0, |gso| gso.gso),
            gro: parameters.gso.map_or(0, |gso| gso.gro),
        },
    }
}

fn connected(stream: &Stream) -> Connected {
    Connected {
        socket: stream.socket,
        local_host: host(&stream.local),
        local_port: stream.local.port(),
        remote_host: host(&stream.remote),
        remote_port: stream.remote.port(),
    }
}

/// Returns the address without the port; an IPv4 address inside an IPv6 one is written as IPv4.
fn host(address: &std::net::SocketAddr) -> String {
    address.ip().to_canonical().to_string()
}
