//! What one test counted: readings, intervals, results. Arithmetic only.

use std::net::SocketAddr;

use linerate_compat::iperf3::json::{Datagrams, Interval, Stream, TcpReading, Total};
use linerate_compat::iperf3::{CpuPercent, Parameters, Protocol, Results, StreamId, StreamResult};
use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

/// Memory that the intervals of one test may take; later ones are left out of the text.
const INTERVALS_BYTES_MAX: usize = 4 << 20;

/// One reading of one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Reading {
    /// When, on CLOCK_MONOTONIC.
    pub(super) at_ns: u64,
    /// Bytes that this end sent or received.
    pub(super) bytes: u64,
    /// Segments sent again, from a TCP sender.
    pub(super) retransmits: Option<u64>,
    /// The kernel's view of a TCP sender.
    pub(super) tcp: TcpReading,
    /// The datagrams of a UDP stream.
    pub(super) datagrams: Datagrams,
    /// Payload that has arrived and was not read yet, where the kernel tells.
    pub(super) unread_bytes: u64,
}

/// A stream as it was opened.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) sender: bool,
    /// The congestion control in force.
    pub(super) congestion: Option<String>,
}

/// The account of one test.
#[derive(Debug)]
pub(super) struct Count {
    /// Whether the streams are of datagrams.
    pub(super) is_udp: bool,
    keep: bool,
    pub(super) streams: Vec<Opened>,
    /// When the test began.
    start_ns: u64,
    /// The readings from which is counted: the start, or the end of the omitted time.
    base: Vec<Reading>,
    /// Whether the omitted time is over.
    counting: bool,
    last: Vec<Reading>,
    intervals: Vec<Vec<Interval>>,
}

impl Count {
    /// Begins an account at `start_ns`.
    pub(super) fn new(parameters: &Parameters, streams: Vec<Opened>, start_ns: u64) -> Self {
        let nothing = Reading {
            at_ns: start_ns,
            ..Reading::default()
        };
        Self {
            is_udp: parameters.protocol == Protocol::Udp,
            keep: parameters.server_output,
            start_ns,
            base: vec![nothing; streams.len()],
            counting: parameters.omit_s == 0,
            last: vec![nothing; streams.len()],
            intervals: vec![Vec::new(); streams.len()],
            streams,
        }
    }

    /// Ends an interval.
    pub(super) fn handle_interval(&mut self, readings: &[Reading]) {
        let kept = self.intervals.first().map_or(0, Vec::len) * self.streams.len();
        let room = (kept + self.streams.len()) * size_of::<Interval>() <= INTERVALS_BYTES_MAX;
        if self.keep && room {
            for (at, now) in readings.iter().enumerate() {
                let interval = self.interval(at, now);
                self.intervals[at].push(interval);
            }
        }
        self.last = readings.to_vec();
    }

    /// The omitted time is over: counting begins at `readings`.
    pub(super) fn handle_base(&mut self, readings: &[Reading]) {
        self.handle_interval(readings);
        self.base = readings.to_vec();
        self.counting = true;
    }

    /// Ends the account at `readings`.
    ///
    /// A rest shorter than a tenth of an interval of a second is no interval of its own for
    /// iperf3 either, if nothing moved in it.
    pub(super) fn handle_end(&mut self, readings: &[Reading]) {
        if !self.counting {
            // The client ended within the omitted time: nothing was counted.
            self.base = readings.to_vec();
        }
        let moved = readings
            .iter()
            .zip(&self.last)
            .any(|(now, before)| now.bytes > before.bytes);
        if moved || self.intervals.first().is_none_or(Vec::is_empty) {
            self.handle_interval(readings);
        }
        self.last = readings.to_vec();
    }

    /// Returns the bytes that this end has received so far.
    pub(super) fn received_bytes(readings: &[Reading], streams: &[Opened]) -> u64 {
        let received = readings.iter().zip(streams);
        received
            .filter(|(_, stream)| !stream.sender)
            .map(|(reading, _)| reading.bytes)
            .sum()
    }

    /// Returns whether every stream has counted at least what the other end says: what it sent has
    /// all been received, and nothing that it received is missing from what was sent.
    pub(super) fn has_all(&self, readings: &[Reading], theirs: &Results) -> bool {
        readings.iter().enumerate().all(|(at, reading)| {
            let told = theirs.stream(StreamId::of(at));
            told.is_some_and(|told| reading.bytes >= told.bytes)
        })
    }

    fn interval(&self, at: usize, now: &Reading) -> Interval {
        let (before, base) = (&self.last[at], &self.base[at]);
        let from_ns = if self.counting {
            base.at_ns
        } else {
            self.start_ns
        };
        let sender = self.streams[at].sender;
        Interval {
            start_s: seconds(from_ns, before.at_ns),
            end_s: seconds(from_ns, now.at_ns),
            bytes: now.bytes.saturating_sub(before.bytes),
            omitted: !self.counting,
            tcp: now
                .retransmits
                .filter(|_| sender)
                .map(|retransmits| TcpReading {
                    retransmits: retransmits.saturating_sub(before.retransmits.unwrap_or(0)),
                    ..now.tcp
                }),
            datagrams: self
                .is_udp
                .then(|| since(&now.datagrams, &before.datagrams)),
        }
    }

    /// Returns what this end counted in the stream at place `at`.
    fn total(&self, at: usize) -> Total {
        let (base, last) = (&self.base[at], &self.last[at]);
        Total {
            seconds: seconds(base.at_ns, last.at_ns),
            bytes: last.bytes.saturating_sub(base.bytes),
            retransmits: last
                .retransmits
                .filter(|_| self.streams[at].sender)
                .map(|all| all.saturating_sub(base.retransmits.unwrap_or(0))),
            datagrams: self.is_udp.then(|| since(&last.datagrams, &base.datagrams)),
        }
    }

    /// Returns the streams as documents have them; `peer` is what the other end counted.
    pub(super) fn streams(&self) -> Vec<Stream> {
        let streams = self.streams.iter().enumerate();
        streams
            .map(|(at, opened)| {
                let own = Some(self.total(at));
                Stream {
                    // iperf3 has the descriptor here, which is 5 for the first stream.
                    socket: at as u32 + 5,
                    local: opened.local,
                    remote: opened.remote,
                    sender: opened.sender,
                    intervals: self.intervals[at].clone(),
                    sent: own.filter(|_| opened.sender),
                    received: own.filter(|_| !opened.sender),
                }
            })
            .collect()
    }

    /// Returns what the client is told, but for the text.
    pub(super) fn results(&self, cpu: CpuPercent) -> Results {
        let sends = self.streams.iter().any(|stream| stream.sender);
        let congestion = self
            .streams
            .first()
            .and_then(|first| first.congestion.clone());
        Results {
            cpu,
            sender_has_retransmits: sends.then_some(!self.is_udp),
            congestion_used: congestion.filter(|_| !self.is_udp),
            server_output: None,
            streams: (0..self.streams.len()).map(|at| self.result(at)).collect(),
        }
    }

    /// Numbers of datagrams include the omitted time, which is told beside them: so does iperf3,
    /// whose clients subtract what they know to be omitted.
    fn result(&self, at: usize) -> StreamResult {
        let total = self.total(at);
        let all = self.last[at].datagrams;
        let omitted = self.base[at].datagrams;
        StreamResult {
            bytes: total.bytes,
            retransmits: total.retransmits,
            jitter_s: all.jitter_s,
            errors: all.lost,
            packets: all.packets,
            omitted_errors: self.is_udp.then_some(omitted.lost),
            omitted_packets: self.is_udp.then_some(omitted.packets),
            start_s: 0.0,
            end_s: total.seconds,
            ..StreamResult::nothing(StreamId::of(at))
        }
    }
}

fn seconds(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}

fn since(now: &Datagrams, before: &Datagrams) -> Datagrams {
    Datagrams {
        packets: now.packets.saturating_sub(before.packets),
        lost: now.lost.saturating_sub(before.lost),
        out_of_order: now.out_of_order.saturating_sub(before.out_of_order),
        jitter_s: now.jitter_s,
    }
}

/// Returns the readings that samples of `streams` flows make.
pub(super) fn readings(samples: &[Sample], streams: &[Opened]) -> Vec<Reading> {
    let mut readings = vec![Reading::default(); streams.len()];
    let mut segments = vec![(0_u64, 0_u64, 0_u64); streams.len()];
    let mut duplicates = vec![0_u64; streams.len()];
    for sample in samples {
        let Subject::Flow(flow, _) = &sample.subject else {
            continue;
        };
        let at = flow.0 as usize;
        let Some(reading) = readings.get_mut(at) else {
            continue;
        };
        reading.at_ns = sample.at_ns;
        let value = u64::try_from(sample.value).unwrap_or(0);
        match sample.metric {
            Metric::AppBytesSent if streams[at].sender => reading.bytes = value,
            Metric::AppBytesReceived if !streams[at].sender => reading.bytes = value,
            Metric::AppDatagramsSent if streams[at].sender => reading.datagrams.packets = value,
            // The highest number, once missing and duplicates are added below.
            Metric::AppDatagramsReceived if !streams[at].sender => {
                reading.datagrams.packets += value;
            }
            Metric::AppDatagramsMissing => {
                reading.datagrams.packets += value;
                reading.datagrams.lost = value;
            }
            Metric::AppDatagramsLate => reading.datagrams.out_of_order += value,
            Metric::AppDatagramsDuplicate => {
                reading.datagrams.out_of_order += value;
                duplicates[at] = value;
            }
            Metric::AppJitter => reading.datagrams.jitter_s = value as f64 / 1e9,
            Metric::TcpRetrans => reading.retransmits = Some(value),
            Metric::TcpRtt => reading.tcp.rtt_us = value / 1000,
            Metric::TcpRttVar => reading.tcp.rttvar_us = value / 1000,
            Metric::TcpSndWnd => reading.tcp.snd_wnd_bytes = value,
            Metric::TcpPmtu => reading.tcp.pmtu_bytes = value,
            Metric::TcpReordSeen => reading.tcp.reorder = value,
            Metric::TcpCwnd => segments[at].0 = value,
            Metric::TcpSndMss => segments[at].1 = value,
            Metric::TcpBytesReceived => segments[at].2 = value,
            _ => {}
        }
    }
    for (reading, duplicates) in readings.iter_mut().zip(duplicates) {
        reading.datagrams.packets = reading.datagrams.packets.saturating_sub(duplicates);
    }
    for (reading, (cwnd, mss, arrived)) in readings.iter_mut().zip(segments) {
        reading.tcp.snd_cwnd_bytes = cwnd * mss;
        reading.unread_bytes = arrived.saturating_sub(reading.bytes + COOKIE);
    }
    readings
}

/// Bytes of a TCP stream before its payload.
const COOKIE: u64 = linerate_compat::iperf3::COOKIE_BYTES as u64;

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(sender: bool) -> Opened {
        let address = "127.0.0.1:5201".parse().expect("an address");
        Opened {
            local: address,
            remote: address,
            sender,
            congestion: Some("cubic".into()),
        }
    }

    fn reading(at_s: u64, bytes: u64, retransmits: u64, packets: u64, lost: u64) -> Reading {
        Reading {
            at_ns: at_s * 1_000_000_000,
            bytes,
            retransmits: Some(retransmits),
            datagrams: Datagrams {
                packets,
                lost,
                ..Datagrams::default()
            },
            ..Reading::default()
        }
    }

    #[test]
    fn what_is_omitted_is_not_counted() {
        let parameters = Parameters {
            omit_s: 1,
            server_output: true,
            ..Parameters::of(Protocol::Tcp)
        };
        let mut count = Count::new(&parameters, vec![opened(true)], 0);
        count.handle_base(&[reading(1, 100, 5, 0, 0)]);
        count.handle_interval(&[reading(2, 250, 6, 0, 0)]);
        count.handle_end(&[reading(3, 450, 9, 0, 0)]);
        let results = count.results(CpuPercent::default());
        let stream = &results.streams[0];
        assert_eq!((stream.bytes, stream.retransmits), (350, Some(4)));
        assert_eq!((stream.start_s, stream.end_s), (0.0, 2.0));
        assert_eq!(results.sender_has_retransmits, Some(true));
        assert_eq!(
            (stream.omitted_packets, stream.omitted_errors),
            (None, None)
        );
        let rows: Vec<_> = count.streams()[0]
            .intervals
            .iter()
            .map(|row| (row.start_s, row.end_s, row.bytes, row.omitted))
            .collect();
        let expected = [
            (0.0, 1.0, 100, true),
            (0.0, 1.0, 150, false),
            (1.0, 2.0, 200, false),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn datagrams_are_told_with_what_was_omitted() {
        let parameters = Parameters {
            omit_s: 1,
            ..Parameters::of(Protocol::Udp)
        };
        let mut count = Count::new(&parameters, vec![opened(false)], 0);
        count.handle_base(&[reading(1, 100, 0, 10, 2)]);
        count.handle_end(&[reading(2, 300, 0, 35, 3)]);
        let results = count.results(CpuPercent::default());
        let stream = &results.streams[0];
        assert_eq!((stream.packets, stream.errors), (35, 3));
        let omitted = (stream.omitted_packets, stream.omitted_errors);
        assert_eq!(omitted, (Some(10), Some(2)));
        assert_eq!(stream.retransmits, None);
        assert_eq!(results.sender_has_retransmits, None);
        assert_eq!(results.congestion_used, None);
        let total = count.streams()[0].received.expect("it received");
        let datagrams = total.datagrams.expect("of datagrams");
        assert_eq!((datagrams.packets, datagrams.lost), (25, 1));
    }

    #[test]
    fn all_has_been_counted_when_every_stream_says_so() {
        let parameters = Parameters::of(Protocol::Tcp);
        let count = Count::new(&parameters, vec![opened(false), opened(true)], 0);
        let told = |sent, received| Results {
            streams: [(1, sent), (3, received)]
                .map(|(id, bytes)| StreamResult {
                    bytes,
                    ..StreamResult::nothing(StreamId(id))
                })
                .to_vec(),
            ..Results::default()
        };
        let readings = [reading(1, 100, 0, 0, 0), reading(1, 70, 0, 0, 0)];
        assert!(count.has_all(&readings, &told(100, 60)));
        assert!(!count.has_all(&readings, &told(101, 60)));
        assert!(!count.has_all(&readings, &told(100, 71)));
        assert!(!count.has_all(&readings, &Results::default()));
    }

    #[test]
    fn a_test_that_ends_while_it_is_omitted_counted_nothing() {
        let parameters = Parameters {
            omit_s: 5,
            ..Parameters::of(Protocol::Tcp)
        };
        let mut count = Count::new(&parameters, vec![opened(false)], 0);
        count.handle_end(&[reading(2, 300, 0, 0, 0)]);
        assert_eq!(count.results(CpuPercent::default()).streams[0].bytes, 0);
    }
}
