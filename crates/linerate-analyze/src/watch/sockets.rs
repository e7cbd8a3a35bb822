//! The TCP connections of a host, each with its rates.

use std::collections::BTreeMap;

use linerate_model::socket::{SocketRow, TcpInfo};
use serde::Serialize;

use super::Span;
use crate::reduce::are_aggregates;

/// One connection over a span; what needs two readings is absent after the first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct WatchedFlow {
    /// This host's end.
    pub local: String,
    /// The other end.
    pub remote: String,
    /// Its state, as `ss` spells it.
    pub state: &'static str,
    /// Payload sent, retransmissions included.
    pub sent_bytes: Option<f64>,
    /// Payload received.
    pub received_bytes: Option<f64>,
    /// Segments with payload sent.
    pub data_segments: Option<f64>,
    /// Segments sent again.
    pub retransmissions: Option<f64>,
    /// Segments with payload for each pure ACK, in the direction that carries more payload.
    pub data_per_ack: Option<f64>,
    /// Smoothed round-trip time, in microseconds.
    pub rtt_us: Option<f64>,
    /// Congestion window, in bytes.
    pub cwnd_bytes: Option<f64>,
    /// Share of the busy time held by the peer's window.
    pub rwnd_limited: Option<f64>,
    /// Share of the busy time held by the send buffer.
    pub sndbuf_limited: Option<f64>,
    /// Congestion control algorithm.
    pub congestion: String,
    /// Bytes that wait to be read.
    pub receive_queue_bytes: u32,
    /// Bytes not yet sent or acknowledged.
    pub send_queue_bytes: u32,
    /// The process that holds it, `NAME/PID`, where that is known.
    pub owner: Option<String>,
}

/// A connection's first, last but one and last reading.
#[derive(Debug, Clone)]
struct Course {
    first: TcpInfo,
    before: Option<(u64, TcpInfo)>,
    last: SocketRow,
}

/// The connections that the last reading had.
#[derive(Debug, Clone, Default)]
pub struct Sockets {
    /// By the kernel's own name of the socket.
    courses: BTreeMap<u64, Course>,
    owners: BTreeMap<u64, String>,
    at_ns: u64,
    beyond: u64,
    missing: Option<String>,
}

/// Returns whether a socket was connected anew: it keeps its cookie, and its counters begin at zero
/// (`tcp_disconnect` in net/ipv4/tcp.c).
fn is_anew(before: Option<TcpInfo>, now: &TcpInfo) -> bool {
    let fell = |before: u32, now: u32| now.wrapping_sub(before) > u32::MAX / 2;
    before.is_some_and(|before| {
        now.bytes_sent < before.bytes_sent
            || now.bytes_received < before.bytes_received
            || fell(before.segs_out, now.segs_out)
            || fell(before.total_retrans, now.total_retrans)
    })
}

impl Sockets {
    /// Takes up one reading, made at `at_ns` of the host's clock; `beyond` sockets are not in it.
    pub fn take(
        &mut self,
        at_ns: u64,
        rows: &[SocketRow],
        beyond: u64,
        owners: BTreeMap<u64, String>,
    ) {
        let mut courses = BTreeMap::new();
        for row in rows {
            let Some(tcp) = row.tcp else { continue };
            let known = self.courses.remove(&row.cookie);
            let known = known.filter(|course| !is_anew(course.last.tcp, &tcp));
            let before = known.as_ref().and_then(|course| course.last.tcp);
            let course = Course {
                first: known.map_or(tcp, |course| course.first),
                before: before.map(|tcp| (self.at_ns, tcp)),
                last: *row,
            };
            courses.insert(row.cookie, course);
        }
        self.courses = courses;
        (self.at_ns, self.beyond, self.owners) = (at_ns, beyond, owners);
        self.missing = None;
    }

    /// Notes why sockets cannot be read.
    pub fn miss(&mut self, why: &str) {
        *self = Self {
            missing: Some(why.to_owned()),
            ..Self::default()
        };
    }

    /// Returns why sockets cannot be read, if they cannot.
    pub fn missing(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    /// Returns how many sockets were not read for their number.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns how many connections move payload and have another host at their other end, as far as addresses tell.
    pub fn moving_beyond_this_host(&self, span: Span) -> usize {
        let leaves = |course: &&Course| {
            let row = &course.last;
            let remote = row.remote.ip();
            !remote.is_unspecified() && !remote.is_loopback() && remote != row.local.ip()
        };
        let flows = self.courses.values().filter(leaves);
        let moved = flows.filter_map(|course| Some(moved(&self.flow(course, span)?)));
        moved.filter(|bytes| *bytes > 0.0).count()
    }

    /// Returns the connections, those that move most payload first.
    pub fn flows(&self, span: Span) -> Vec<WatchedFlow> {
        let flow = |course: &Course| self.flow(course, span);
        let mut flows: Vec<WatchedFlow> = self.courses.values().filter_map(flow).collect();
        flows.sort_by(|a, b| moved(b).total_cmp(&moved(a)));
        flows
    }

    fn flow(&self, course: &Course, span: Span) -> Option<WatchedFlow> {
        let row = &course.last;
        let now = row.tcp?;
        let (from, seconds) = match span {
            Span::SinceStart => (Some(course.first), 1.0),
            Span::PerSecond => match course.before {
                Some((at_ns, before)) if at_ns < self.at_ns => {
                    (Some(before), (self.at_ns - at_ns) as f64 / 1e9)
                }
                _ => (None, 1.0),
            },
        };
        // Counters of 32 bits wrap; those of 64 never go backwards.
        let count =
            |of: fn(&TcpInfo) -> u32| from.map(|from| f64::from(of(&now).wrapping_sub(of(&from))));
        let volume =
            |of: fn(&TcpInfo) -> u64| from.map(|from| of(&now).saturating_sub(of(&from)) as f64);
        let rate = |change: Option<f64>| change.map(|change| change / seconds);
        let (sent, received) = (
            volume(|tcp| tcp.bytes_sent),
            volume(|tcp| tcp.bytes_received),
        );
        let (data_out, data_in) = (
            count(|tcp| tcp.data_segs_out),
            count(|tcp| tcp.data_segs_in),
        );
        let full_bytes = f64::from(now.rcv_mss_bytes.max(now.snd_mss_bytes));
        let segments = f64::from(now.data_segs_in);
        let data_in =
            data_in.filter(|_| !are_aggregates(now.bytes_received as f64, segments, full_bytes));
        // Of ACKs none are joined.
        let acks_in = count(|tcp| tcp.segs_in.wrapping_sub(tcp.data_segs_in));
        let data_per_ack = || {
            // Pure ACKs answer the data that goes the other way; a reading between both counters may be one behind.
            let (data, acks) = if sent? >= received? {
                (data_out?, acks_in?)
            } else {
                (data_in?, count(|tcp| tcp.segs_out)? - data_out?)
            };
            (acks > 0.0 && data > 0.0).then(|| data / acks)
        };
        let limited = |of: fn(&TcpInfo) -> u64| {
            let busy = volume(|tcp| tcp.busy_us).filter(|us| *us > 0.0)?;
            Some((volume(of)? / busy).min(1.0))
        };
        Some(WatchedFlow {
            local: row.local.to_string(),
            remote: row.remote.to_string(),
            state: row.state.name(),
            sent_bytes: rate(sent),
            received_bytes: rate(received),
            data_segments: rate(data_out),
            retransmissions: rate(count(|tcp| tcp.total_retrans)),
            data_per_ack: data_per_ack(),
            rtt_us: (now.rtt_us > 0).then(|| f64::from(now.rtt_us)),
            cwnd_bytes: Some(f64::from(now.snd_cwnd) * f64::from(now.snd_mss_bytes)),
            rwnd_limited: limited(|tcp| tcp.rwnd_limited_us),
            sndbuf_limited: limited(|tcp| tcp.sndbuf_limited_us),
            congestion: row.congestion.as_str().to_owned(),
            receive_queue_bytes: row.receive_queue,
            send_queue_bytes: row.send_queue,
            owner: self.owners.get(&row.inode).cloned(),
        })
    }
}

/// Payload of a connection in both directions.
fn moved(flow: &WatchedFlow) -> f64 {
    flow.sent_bytes.unwrap_or(0.0) + flow.received_bytes.unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use linerate_model::socket::{CongestionName, Protocol, SocketState};

    use super::*;

    fn row(cookie: u64, tcp: TcpInfo) -> SocketRow {
        SocketRow {
            protocol: Protocol::Tcp,
            state: SocketState::Established,
            local: "192.0.2.1:5201".parse().unwrap(),
            remote: "192.0.2.2:40000".parse().unwrap(),
            link_index: 0,
            cookie,
            uid: 0,
            inode: 7,
            receive_queue: 0,
            send_queue: 0,
            memory: None,
            congestion: CongestionName::from_bytes(b"reno"),
            tcp: Some(tcp),
        }
    }

    fn tcp(turn: u32) -> TcpInfo {
        TcpInfo {
            bytes_sent: u64::from(turn) * 1_000_000,
            // Wraps on the way.
            data_segs_out: u32::MAX.wrapping_add(turn * 1000),
            segs_out: u32::MAX.wrapping_add(turn * 1000),
            segs_in: turn * 250,
            total_retrans: turn * 10,
            busy_us: u64::from(turn) * 1000,
            rwnd_limited_us: u64::from(turn) * 400,
            rtt_us: 120,
            snd_cwnd: 10,
            snd_mss_bytes: 1448,
            ..TcpInfo::default()
        }
    }

    fn take(sockets: &mut Sockets, at_s: u64, rows: &[SocketRow]) {
        let owners = BTreeMap::from([(7, "nginx/812".to_owned())]);
        sockets.take(at_s * 1_000_000_000, rows, 0, owners);
    }

    #[test]
    fn a_connection_has_its_rates_and_what_held_it() {
        let mut sockets = Sockets::default();
        for (turn, at_s) in [(0, 0), (1, 1), (3, 5)] {
            take(&mut sockets, at_s, &[row(1, tcp(turn))]);
        }
        let flow = &sockets.flows(Span::PerSecond)[0];
        assert_eq!(flow.sent_bytes, Some(500_000.0));
        assert_eq!(flow.retransmissions, Some(5.0));
        assert_eq!(flow.data_per_ack, Some(4.0));
        assert_eq!(
            (flow.rwnd_limited, flow.sndbuf_limited),
            (Some(0.4), Some(0.0))
        );
        assert_eq!((flow.rtt_us, flow.cwnd_bytes), (Some(120.0), Some(14480.0)));
        assert_eq!(flow.owner.as_deref(), Some("nginx/812"));
        let whole = &sockets.flows(Span::SinceStart)[0];
        assert_eq!(whole.data_segments, Some(3000.0), "wrapped counters go on");
        assert_eq!(sockets.moving_beyond_this_host(Span::PerSecond), 1);
        take(&mut sockets, 6, &[row(1, tcp(3))]);
        assert_eq!(sockets.moving_beyond_this_host(Span::PerSecond), 0);
        assert_eq!(sockets.moving_beyond_this_host(Span::SinceStart), 1);
    }

    #[test]
    fn aggregates_are_no_segments_for_each_ack() {
        // Of 10 MB in single frames 3453 of each ACK, and in aggregates of a virtual device.
        let per_ack = |data_segs_in: u32| {
            let mut sockets = Sockets::default();
            let received = |turn: u32| TcpInfo {
                bytes_received: u64::from(turn) * 10_000_000,
                data_segs_in: turn * data_segs_in,
                segs_out: turn * 3453,
                snd_mss_bytes: 1448,
                rcv_mss_bytes: 1448,
                ..TcpInfo::default()
            };
            for turn in [0, 1] {
                take(&mut sockets, turn.into(), &[row(1, received(turn))]);
            }
            sockets.flows(Span::PerSecond)[0].data_per_ack
        };
        assert_eq!(per_ack(6_907), Some(6_907.0 / 3_453.0));
        assert_eq!(per_ack(491), None);
    }

    #[test]
    fn one_that_is_new_has_no_rate_and_one_that_went_is_gone() {
        let mut sockets = Sockets::default();
        take(&mut sockets, 0, &[row(1, tcp(0))]);
        take(&mut sockets, 1, &[row(2, tcp(5))]);
        let flows = sockets.flows(Span::PerSecond);
        assert_eq!(
            (flows.len(), flows[0].sent_bytes, flows[0].rtt_us),
            (1, None, Some(120.0))
        );
        sockets.miss("no sock_diag");
        assert!(sockets.flows(Span::PerSecond).is_empty());
        assert_eq!(sockets.missing(), Some("no sock_diag"));
    }

    #[test]
    fn one_that_was_connected_anew_begins_anew() {
        let mut sockets = Sockets::default();
        take(&mut sockets, 0, &[row(1, tcp(3))]);
        let failed = TcpInfo {
            total_retrans: 6,
            ..TcpInfo::default()
        };
        take(&mut sockets, 1, &[row(1, failed)]);
        let of = |sockets: &Sockets, span| sockets.flows(span)[0].retransmissions;
        assert_eq!(of(&sockets, Span::PerSecond), None, "bytes were lost");
        take(&mut sockets, 2, &[row(1, TcpInfo::default())]);
        take(&mut sockets, 3, &[row(1, TcpInfo::default())]);
        assert_eq!(of(&sockets, Span::SinceStart), Some(0.0));
    }

    #[test]
    fn those_that_move_most_come_first() {
        let mut sockets = Sockets::default();
        take(&mut sockets, 0, &[row(1, tcp(0)), row(2, tcp(0))]);
        take(&mut sockets, 1, &[row(1, tcp(1)), row(2, tcp(2))]);
        let sent: Vec<_> = sockets
            .flows(Span::PerSecond)
            .iter()
            .map(|flow| flow.sent_bytes)
            .collect();
        assert_eq!(sent, [Some(2e6), Some(1e6)]);
    }
}
