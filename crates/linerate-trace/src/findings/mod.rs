//! Findings: what a capture proves about its ends and its path, with the frames that prove it.
//!
//! 1. Each connection gives its own (`of`), when its detail is handed back or the capture ends.
//! 2. Those of one kind between the same hosts and the same service are one finding: a thousand
//!    connections with the same stall are one thing to mend, not a thousand.
//! 3. What costs time comes first, the longest together first; then what only explains.

use std::collections::HashMap;
use std::net::IpAddr;

use serde::Serialize;

/// What each kind says and asks for.
mod words;

use crate::connection::End;
use crate::document::{
    ConnectionReport, EndReport, Endpoint, ExampleReport, FrameReport, HappeningReport, end_name,
};

/// Findings that are told apart.
const FINDINGS_MAX: usize = 4096;
/// Examples of one finding.
const EXAMPLES_MAX: usize = 5;

/// Less payload does not need a window.
const WINDOW_BYTES_MIN: u64 = 64 * 1024;
/// A share of the time from which the window is called a limit.
const WINDOW_SHARE_MIN: f64 = 0.2;
/// Delayed acknowledgements of one end from which they are worth a word.
const DELAYED_ACKS_MIN: u32 = 3;
/// Retransmissions from which loss is worth a word.
const LOSS_MIN: u32 = 3;
/// Spurious ones.
const SPURIOUS_MIN: u32 = 3;
/// Segments out of order.
const REORDERED_MIN: u32 = 10;
/// Short segments from which a stream is called one of short segments, if they are most of it.
const SMALL_MIN: u32 = 64;
/// The largest window without scaling.
const UNSCALED_BYTES_MAX: u32 = 65_535;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Nagle's algorithm waited for a delayed acknowledgement.
    NagleDelayedAck,
    /// The connection stood still until a retransmission timer fired.
    RetransmissionTimeout,
    /// The receiver's program did not read: its window was closed.
    ZeroWindow,
    /// Large segments do not get through.
    PathMtu,
    /// The receiver's window held the sender back.
    WindowLimit,
    /// Window scaling is missing.
    NoWindowScaling,
    /// Many segments were lost at once.
    LossBurst,
    /// Segments were lost.
    Loss,
    /// Segments were sent again that had arrived.
    Spurious,
    /// Segments came out of order.
    Reordering,
    /// Acknowledgements waited for their timer.
    DelayedAck,
    /// Many short segments where few long ones would do.
    SmallSegments,
    /// A segment size below what Ethernet carries.
    ClampedMss,
    /// The capture shows longer segments than the wire.
    Superframes,
}

/// One finding.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// The end that it is about: who would have to change something.
    pub who: IpAddr,
    /// The port of that end, if it is the server.
    pub who_port: Option<u16>,
    /// What that end is: `client` or `server`.
    pub who_is: &'static str,
    /// The other end.
    pub toward: IpAddr,
    /// The port of the other end, if it is the server.
    pub toward_port: Option<u16>,
    /// One sentence with its numbers.
    pub claim: String,
    /// Why it is so, and what it means.
    pub explanation: String,
    /// What to do about it.
    pub advice: Option<String>,
    /// In how many connections.
    pub connections: u32,
    /// How often.
    pub count: u64,
    /// How long all together.
    pub total_ns: u64,
    /// How long at the longest.
    pub longest_ns: u64,
    /// A number that belongs to it, by kind: a window, an MTU, a segment size in bytes, segments
    /// of a burst.
    pub value: u64,
    /// Out of how many, where that means something: data segments, or the connections' time in ns.
    pub out_of: u64,
    /// The shortest round trip, where that means something.
    pub round_trip_ns: Option<u64>,
    /// What proves it.
    pub proofs: Vec<Proof>,
}

/// Frames that prove a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// The connection's number.
    pub connection: u32,
    /// When it began, in nanoseconds since 1970.
    pub at_ns: u64,
    /// How long it took.
    pub length_ns: u64,
    /// The frames, in order.
    pub frames: Vec<FrameReport>,
    /// A number that belongs to it.
    pub value: u32,
}

/// What one finding is told apart by: kind, host, other host, the server's port, which end.
type Key = (FindingKind, IpAddr, IpAddr, u16, End);

/// All findings of a capture.
#[derive(Debug, Default)]
pub(crate) struct FindingBook {
    found: HashMap<Key, Finding>,
    left_out: u64,
}

impl FindingBook {
    /// Takes up the findings of one connection.
    pub(crate) fn add(&mut self, connection: &ConnectionReport) {
        for (key, finding) in of(connection) {
            if let Some(known) = self.found.get_mut(&key) {
                known.join(finding);
            } else if self.found.len() < FINDINGS_MAX {
                self.found.insert(key, finding);
            } else {
                self.left_out += 1;
            }
        }
    }

    /// Hands the findings over, worded, the costliest first.
    pub(crate) fn finish(self) -> Vec<Finding> {
        let mut found: Vec<Finding> = self.found.into_values().collect();
        for finding in &mut found {
            finding
                .proofs
                .sort_by_key(|proof| (proof.at_ns, proof.connection));
            words::word(finding);
        }
        found.sort_by_key(|finding| {
            let weight = std::cmp::Reverse((finding.kind.costs_time(), finding.total_ns));
            (
                weight,
                finding.kind,
                std::cmp::Reverse(finding.count),
                finding.who,
                finding.toward,
            )
        });
        found
    }
}

impl FindingKind {
    /// Returns whether its time is lost time; else it only explains.
    fn costs_time(self) -> bool {
        !matches!(
            self,
            Self::Superframes
                | Self::ClampedMss
                | Self::SmallSegments
                | Self::DelayedAck
                | Self::Reordering
                | Self::NoWindowScaling
        )
    }
}

impl Finding {
    fn new(connection: &ConnectionReport, kind: FindingKind, end: End) -> Self {
        let (who, toward) = (connection.endpoint(end), connection.endpoint(end.other()));
        let port = |endpoint: Endpoint, end: End| (end == End::Server).then_some(endpoint.port);
        Self {
            kind,
            who: who.address,
            who_port: port(who, end),
            who_is: end_name(end),
            toward: toward.address,
            toward_port: port(toward, end.other()),
            claim: String::new(),
            explanation: String::new(),
            advice: None,
            connections: 1,
            count: 0,
            total_ns: 0,
            longest_ns: 0,
            value: 0,
            out_of: 0,
            round_trip_ns: None,
            proofs: Vec::new(),
        }
    }

    fn join(&mut self, other: Self) {
        self.connections = self.connections.saturating_add(other.connections);
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.value = self.value.max(other.value);
        self.out_of = self.out_of.saturating_add(other.out_of);
        self.round_trip_ns = match (self.round_trip_ns, other.round_trip_ns) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.proofs.extend(other.proofs);
        if self.proofs.len() > EXAMPLES_MAX {
            self.proofs
                .sort_by_key(|proof| std::cmp::Reverse((proof.length_ns, proof.value)));
            self.proofs.truncate(EXAMPLES_MAX);
        }
    }

    fn prove(&mut self, connection: &ConnectionReport, examples: &[ExampleReport]) {
        self.proofs = examples
            .iter()
            .map(|example| Proof {
                connection: connection.number,
                at_ns: example.at_ns,
                length_ns: example.length_ns,
                frames: example.frames.clone(),
                value: example.value,
            })
            .collect();
    }

    /// Gives the connection's first frame as proof, where a count is all there is.
    fn prove_by_first_frame(&mut self, connection: &ConnectionReport) {
        self.proofs = vec![Proof {
            connection: connection.number,
            at_ns: connection.start_ns,
            length_ns: connection.duration_ns,
            frames: connection.first_frame.into_iter().collect(),
            value: 0,
        }];
    }
}

/// Returns the findings of one connection.
fn of(connection: &ConnectionReport) -> Vec<(Key, Finding)> {
    let mut found = Vec::new();
    from_happenings(connection, &mut found);
    for end in End::BOTH {
        window_limit(connection, end, &mut found);
        from_counts(connection, end, &mut found);
        clamped(connection, end, &mut found);
    }
    no_scaling(connection, &mut found);
    let key = |finding: Finding, end: End| {
        let port = connection.server.port;
        (
            (finding.kind, finding.who, finding.toward, port, end),
            finding,
        )
    };
    found
        .into_iter()
        .map(|(end, finding)| key(finding, end))
        .collect()
}

fn from_happenings(connection: &ConnectionReport, found: &mut Vec<(End, Finding)>) {
    for happening in &connection.happenings {
        let end = match happening.end {
            "client" => End::Client,
            _ => End::Server,
        };
        let kind = match happening.kind {
            "nagle_delayed_ack" => FindingKind::NagleDelayedAck,
            "retransmission_timeout" => FindingKind::RetransmissionTimeout,
            "zero_window" => FindingKind::ZeroWindow,
            "loss_burst" => FindingKind::LossBurst,
            "repeated_segment" | "too_big" => FindingKind::PathMtu,
            "delayed_ack" if happening.count >= DELAYED_ACKS_MIN => FindingKind::DelayedAck,
            _ => continue,
        };
        let mut finding = Finding::new(connection, kind, end);
        finding.count = u64::from(happening.count);
        finding.total_ns = happening.total_ns;
        finding.longest_ns = happening
            .examples
            .iter()
            .map(|example| example.length_ns)
            .max()
            .unwrap_or(0);
        finding.value = u64::from(happening.value_max);
        finding.out_of = connection.duration_ns;
        finding.prove(connection, &happening.examples);
        found.push((end, finding));
    }
}

/// The receiver's window: it stands for a share of the time, so it needs a stream, not a request.
fn window_limit(connection: &ConnectionReport, end: End, found: &mut Vec<(End, Finding)>) {
    let (sender, receiver) = (connection.end(end), connection.end(end.other()));
    let Some(time) = sender.time else { return };
    // At the receiver, data is acknowledged as it is seen: what is on its way does not show.
    if connection.captured_at == Some(end_name(end.other()))
        || !receiver.window_is_scaled
        || sender.payload_bytes < WINDOW_BYTES_MIN
        || time.window < WINDOW_SHARE_MIN
    {
        return;
    }
    // The receiver is the one to change something.
    let mut finding = Finding::new(connection, FindingKind::WindowLimit, end.other());
    finding.count = receiver
        .counts
        .map_or(0, |counts| u64::from(counts.zero_windows));
    finding.total_ns = (time.window * connection.duration_ns as f64) as u64;
    finding.longest_ns = finding.total_ns;
    finding.out_of = connection.duration_ns;
    finding.value = receiver.window_bytes_max.unwrap_or(0);
    finding.round_trip_ns = sender.round_trip.map(|trip| trip.min_ns);
    finding.prove_by_first_frame(connection);
    found.push((end.other(), finding));
}

fn from_counts(connection: &ConnectionReport, end: End, found: &mut Vec<(End, Finding)>) {
    let own = connection.end(end);
    let Some(counts) = own.counts else { return };
    let mut push = |kind, count: u32, value: u64| {
        let mut finding = Finding::new(connection, kind, end);
        finding.count = u64::from(count);
        finding.out_of = u64::from(own.data_packets);
        finding.value = value;
        let is_loss = |happening: &&HappeningReport| {
            happening.kind == "loss" && happening.end == end_name(end)
        };
        match connection.happenings.iter().find(is_loss) {
            Some(happening) if kind == FindingKind::Loss => {
                finding.prove(connection, &happening.examples);
            }
            _ => finding.prove_by_first_frame(connection),
        }
        found.push((end, finding));
    };
    let lost = counts.retransmissions.saturating_sub(counts.spurious);
    if lost >= LOSS_MIN {
        push(FindingKind::Loss, lost, counts.retransmitted_bytes);
    }
    if counts.spurious >= SPURIOUS_MIN {
        push(FindingKind::Spurious, counts.spurious, 0);
    }
    if counts.out_of_order >= REORDERED_MIN {
        push(FindingKind::Reordering, counts.out_of_order, 0);
    }
    if counts.superframes > 0 {
        let largest = own.sizes.as_ref().map_or(0, |sizes| sizes.max_bytes);
        push(
            FindingKind::Superframes,
            counts.superframes,
            u64::from(largest),
        );
    }
    if counts.small >= SMALL_MIN && counts.small > own.data_packets / 2 && streams(connection, own)
    {
        let mean = own.payload_bytes / u64::from(own.data_packets.max(1));
        push(FindingKind::SmallSegments, counts.small, mean);
    }
}

/// Returns whether an end sends segments one behind the other, rather than one for each answer.
fn streams(connection: &ConnectionReport, own: &EndReport) -> bool {
    let trains = connection.happenings.iter();
    let in_trains: u64 = trains
        .filter(|happening| happening.kind == "small_segments")
        .map(|happening| u64::from(happening.value_max))
        .sum();
    in_trains >= u64::from(own.data_packets) / 4
}

/// A segment size below what Ethernet carries: a tunnel, a provider's access, or a router that
/// rewrites the option.
fn clamped(connection: &ConnectionReport, end: End, found: &mut Vec<(End, Finding)>) {
    /// Below it lies no link; such values are set on purpose.
    const MSS_MIN: u16 = 500;
    let whole = match connection.client.address {
        IpAddr::V4(_) => 1460,
        IpAddr::V6(_) => 1440,
    };
    let offer = connection.end(end).offer;
    let Some(mss) = offer.and_then(|offer| offer.mss_bytes) else {
        return;
    };
    if mss >= whole || mss < MSS_MIN {
        return;
    }
    let mut finding = Finding::new(connection, FindingKind::ClampedMss, end);
    finding.count = 1;
    finding.value = u64::from(mss);
    finding.out_of = u64::from(whole);
    finding.prove_by_first_frame(connection);
    found.push((end, finding));
}

fn no_scaling(connection: &ConnectionReport, found: &mut Vec<(End, Finding)>) {
    let offers = End::BOTH.map(|end| connection.end(end).offer);
    let [Some(client), Some(server)] = offers else {
        return;
    };
    let end = match (client.window_scale, server.window_scale) {
        (Some(_), Some(_)) => return,
        (None, _) => End::Client,
        (Some(_), None) => End::Server,
    };
    let is_needed = End::BOTH.iter().any(|&end| {
        let own = connection.end(end);
        let flight = own.flight_bytes_max.unwrap_or(0);
        own.payload_bytes >= 2 * WINDOW_BYTES_MIN && flight >= UNSCALED_BYTES_MAX / 2
    });
    if !is_needed {
        return;
    }
    let mut finding = Finding::new(connection, FindingKind::NoWindowScaling, end);
    finding.count = 1;
    finding.value = u64::from(UNSCALED_BYTES_MAX);
    let trips = End::BOTH
        .iter()
        .filter_map(|&end| connection.end(end).round_trip);
    finding.round_trip_ns = trips.map(|trip| trip.min_ns).max();
    finding.prove_by_first_frame(connection);
    found.push((end, finding));
}
