//! What the two ends counted, in iperf3's words and in ours.

use std::collections::BTreeMap;

use linerate_compat::iperf3::{CpuPercent, Parameters, Protocol, Results, StreamId, StreamResult};
use linerate_engine::now_ns;
use linerate_model::FlowId;
use linerate_model::datagram::Datagrams;
use linerate_model::metric::Metric;
use linerate_model::run::FlowOutcome;
use linerate_model::sample::{End, Sample, Subject};
use linerate_model::setting::name;
use linerate_model::workload::Part;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::api::StartRequest;
use crate::foreign::peer::{congestion_in_force, counted_until_ns, server_end};

/// CPU time of this process at one instant.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuTime {
    at_ns: u64,
    user_us: i64,
    system_us: i64,
}

impl CpuTime {
    /// Reads it; on Linux this does not fail for the own process.
    pub(super) fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
        let us =
            |time: Option<nix::sys::time::TimeVal>| time.map_or(0, |time| time.num_microseconds());
        Self {
            at_ns: now_ns(),
            user_us: us(usage.map(|usage| usage.user_time())),
            system_us: us(usage.map(|usage| usage.system_time())),
        }
    }

    /// Writes what was used since into `results`.
    pub(super) fn until_now(self, results: &mut Results) {
        let now = Self::now();
        let wall_us = now.at_ns.saturating_sub(self.at_ns).max(1000) as f64 / 1e3;
        let percent = |us: i64| 100.0 * us as f64 / wall_us;
        let user = percent(now.user_us - self.user_us);
        let system = percent(now.system_us - self.system_us);
        results.cpu = CpuPercent::of(user, system);
    }
}

/// Counters of one flow at one instant.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    sent: i64,
    received: i64,
    retransmits: Option<i64>,
}

/// What the client's samples say that iperf3's server is told.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// When counting begins, if what comes before is left out.
    omit_until_ns: Option<u64>,
    /// When the last reading was made.
    last_ns: u64,
    first: BTreeMap<FlowId, Reading>,
    last: BTreeMap<FlowId, Reading>,
}

impl Counts {
    /// Takes up the instants; with `omits`, what comes before the window does not count.
    pub(super) fn begin(&mut self, at: &StartRequest, omits: bool) {
        self.omit_until_ns = omits.then_some(at.measure_begin_ns);
    }

    /// Takes up samples of the client, in order of time.
    pub(super) fn note(&mut self, samples: &[Sample]) {
        for sample in samples {
            let Subject::Flow(flow, End::Client) = sample.subject else {
                continue;
            };
            self.last_ns = self.last_ns.max(sample.at_ns);
            let set = |reading: &mut Reading| match sample.metric {
                Metric::AppBytesSent => reading.sent = sample.value,
                Metric::AppBytesReceived => reading.received = sample.value,
                Metric::TcpRetrans => reading.retransmits = Some(sample.value),
                _ => {}
            };
            set(self.last.entry(flow).or_default());
            // The first reading at or after the begin is the base; those before are overwritten.
            if self
                .omit_until_ns
                .is_some_and(|begin| sample.at_ns < begin + EDGE_NS)
            {
                set(self.first.entry(flow).or_default());
            }
        }
    }

    /// Returns when counting ended: with the window, or before if a volume ended the test.
    pub(super) fn end_ns(&self, at: &StartRequest) -> u64 {
        counted_until_ns(at, self.last_ns)
    }

    /// Returns what the server is told; the CPU is filled in later.
    pub(super) fn results(
        &self,
        order: &[FlowId],
        outcomes: &[FlowOutcome],
        at: Option<&StartRequest>,
    ) -> Results {
        let end_s = at.map_or(0.0, |at| {
            self.end_ns(at).saturating_sub(at.measure_begin_ns) as f64 / 1e9
        });
        let streams = order.iter().enumerate().map(|(index, flow)| {
            let outcome = outcomes.iter().find(|outcome| outcome.flow == *flow);
            let base = self.first.get(flow).copied().unwrap_or_default();
            let last = self.last.get(flow).copied().unwrap_or_default();
            let sends = outcome.is_some_and(|outcome| outcome.part == Part::Sender);
            let (bytes, base_bytes) = match outcome {
                Some(outcome) if sends => (outcome.bytes_sent, base.sent),
                Some(outcome) => (outcome.bytes_received, base.received),
                None => (0, 0),
            };
            let retransmits = last.retransmits.map(|last| {
                let base = base.retransmits.unwrap_or(0);
                (last - base).max(0).unsigned_abs()
            });
            StreamResult {
                bytes: bytes.saturating_sub(base_bytes.unsigned_abs()),
                retransmits: retransmits.filter(|_| sends),
                end_s,
                ..StreamResult::nothing(StreamId::of(index))
            }
        });
        let streams: Vec<StreamResult> = streams.collect();
        let sends = streams.iter().any(|stream| stream.retransmits.is_some());
        Results {
            sender_has_retransmits: sends.then_some(true),
            congestion_used: congestion(outcomes),
            streams,
            ..Results::default()
        }
    }
}

/// A reading so soon after the begin of the window is the one that was due at it.
const EDGE_NS: u64 = 50_000_000;

fn congestion(outcomes: &[FlowOutcome]) -> Option<String> {
    let settings = &outcomes.first()?.settings;
    let setting = settings.named(name::TCP_CONGESTION)?;
    setting.in_force().map(str::to_owned)
}

/// Returns the server's ends of the flows, from what it says and from what the client's ends know
/// of their addresses.
pub(super) fn server_ends(
    order: &[FlowId],
    clients: &[FlowOutcome],
    results: &Results,
    udp: bool,
) -> Vec<FlowOutcome> {
    let end = |(index, flow): (usize, &FlowId)| {
        let client = clients.iter().find(|client| client.flow == *flow)?;
        let stream = results.stream(StreamId::of(index));
        let part = client.part.opposite();
        let bytes = stream.map_or(0, |stream| stream.bytes);
        Some(FlowOutcome {
            bytes_sent: if part == Part::Sender { bytes } else { 0 },
            bytes_received: if part == Part::Receiver { bytes } else { 0 },
            counted_ns: stream.and_then(counted_ns),
            settings: results
                .congestion_used
                .as_deref()
                .map(congestion_in_force)
                .into_iter()
                .collect(),
            datagrams: stream
                .filter(|_| udp)
                .map(|stream| Box::new(datagrams(stream, part))),
            ended_early: match stream {
                Some(_) => None,
                None => Some("the server has no result of it".to_owned()),
            },
            ..server_end(client)
        })
    };
    order.iter().enumerate().filter_map(end).collect()
}

/// Returns for how long the server says that it counted a stream: until it was told to end and all had come.
fn counted_ns(stream: &StreamResult) -> Option<u64> {
    let counted_ns = ((stream.end_s - stream.start_s) * 1e9) as u64;
    (counted_ns > 0).then_some(counted_ns)
}

/// Returns what the server says of its datagrams: how many it sent, or the highest number it saw, how
/// many of those are missing, and their jitter.
fn datagrams(stream: &StreamResult, part: Part) -> Datagrams {
    if part == Part::Sender {
        return Datagrams {
            sent: stream.packets,
            ..Datagrams::default()
        };
    }
    Datagrams {
        received: stream.packets.saturating_sub(stream.errors),
        highest: stream.packets,
        jitter_ns: Some((stream.jitter_s * 1e9) as u64),
        ..Datagrams::default()
    }
}

/// Returns the server's own counts as readings at the edges of what it counted: segments sent again
/// over TCP; over UDP, where nothing is acknowledged, what it sent or received.
///
/// Its bytes and segments leave out what was omitted, its datagrams do not: from 3.14 on it says how many those
/// were, and before there are none of the window.
pub(super) fn server_samples(
    order: &[FlowId],
    clients: &[FlowOutcome],
    results: &Results,
    (begin_ns, end_ns): (u64, u64),
    parameters: &Parameters,
) -> Vec<Sample> {
    let readings = |(index, &flow): (usize, &FlowId)| {
        let stream = results.stream(StreamId::of(index))?;
        let client = clients.iter().find(|client| client.flow == flow)?;
        let counters = counters(stream, client.part, parameters);
        // Its counting begins and ends with the traffic, up to the time that a word takes, and the
        // traffic that counts is that of the window.
        let edges = counters.into_iter().flat_map(move |(metric, counts)| {
            [begin_ns, end_ns]
                .into_iter()
                .zip(counts)
                .map(move |(at_ns, count)| Sample {
                    metric,
                    subject: Subject::Flow(flow, End::Server),
                    at_ns,
                    value: i64::try_from(count).unwrap_or(i64::MAX),
                })
        });
        Some(edges)
    };
    let all = order.iter().enumerate().filter_map(readings);
    all.flatten().collect()
}

/// Returns the server's counters of a flow of which the client's part is `part`, at the begin and at the end.
fn counters(stream: &StreamResult, part: Part, parameters: &Parameters) -> Vec<(Metric, [u64; 2])> {
    let to_server = part == Part::Sender;
    if parameters.protocol == Protocol::Tcp {
        let again = stream
            .retransmits
            .map(|count| (Metric::TcpRetrans, [0, count]));
        return again.into_iter().collect();
    }
    let omitted = match parameters.omit_s {
        0 => Some((0, 0)),
        _ => stream.omitted_packets.zip(stream.omitted_errors),
    };
    let mut counters = Vec::new();
    if to_server {
        counters.push((Metric::AppBytesReceived, [0, stream.bytes]));
    }
    let Some((packets, errors)) = omitted else {
        return counters;
    };
    if !to_server {
        counters.push((Metric::AppDatagramsSent, [packets, stream.packets]));
        return counters;
    }
    let received = [
        packets.saturating_sub(errors),
        stream.packets.saturating_sub(stream.errors),
    ];
    counters.push((Metric::AppDatagramsReceived, received));
    counters.push((Metric::AppDatagramsMissing, [errors, stream.errors]));
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_were_omitted_are_none_of_the_window() {
        let bytes = (Metric::AppBytesReceived, [0, 5_000_000]);
        let check = |omit_s: u32, omitted: Option<(u64, u64)>, part, expected: &[_]| {
            let stream = StreamResult {
                bytes: 5_000_000,
                packets: 3000,
                errors: 30,
                omitted_packets: omitted.map(|(packets, _)| packets),
                omitted_errors: omitted.map(|(_, errors)| errors),
                ..StreamResult::nothing(StreamId::of(0))
            };
            let parameters = Parameters {
                omit_s,
                ..Parameters::of(Protocol::Udp)
            };
            assert_eq!(
                counters(&stream, part, &parameters),
                expected,
                "{omit_s} {omitted:?}"
            );
        };
        let received = |edges| (Metric::AppDatagramsReceived, edges);
        let missing = |edges| (Metric::AppDatagramsMissing, edges);
        let sent = |edges| (Metric::AppDatagramsSent, edges);
        let omitted = Some((1000, 20));
        let whole = [bytes, received([0, 2970]), missing([0, 30])];
        check(0, None, Part::Sender, &whole);
        let part = [bytes, received([980, 2970]), missing([20, 30])];
        check(2, omitted, Part::Sender, &part);
        check(2, None, Part::Sender, &[bytes]);
        check(0, None, Part::Receiver, &[sent([0, 3000])]);
        check(2, omitted, Part::Receiver, &[sent([1000, 3000])]);
        check(2, None, Part::Receiver, &[]);
    }
}
