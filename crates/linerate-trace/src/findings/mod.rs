//! Findings: what a capture proves about its ends and its path, with the frames that prove it.
//!
//! 1. Each connection gives its own (`findings_of`), when its detail is handed back or the capture
//!    ends.
//! 2. Those of one kind between the same hosts and the same service are one finding: a thousand
//!    connections with the same stall are one thing to mend, not a thousand. What is a server's alone
//!    is one finding for all of its clients.
//! 3. What costs time comes first, by time × certainty; then what only explains.
//! 4. What the frames of an earlier one show too is told with it: a lost segment is one thing,
//!    whether it is told as a loss, as a timer or as a burst.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use linerate_model::sample::End;
use serde::Serialize;

/// What several connections have in a queue at the same time.
mod queued;
/// What Wireshark calls it.
mod wireshark;
/// What each kind says and asks for.
mod words;

use crate::connection::{
    Connection, Detail, Durations, EndDetail, Endpoint, Example, FrameId, Half, Incident,
    IncidentKind, Place, State,
};
use crate::datagrams::ConversationReport;
use crate::document::{ConnectionReport, Ending};
use queued::QueueShare;

/// Findings that are told apart; further ones are not kept.
const FINDINGS_MAX: usize = 4096;
/// Examples of one finding.
const EXAMPLES_MAX: usize = 5;
/// Clients of one server that are told apart.
pub(crate) const CLIENTS_MAX: usize = 64;
/// Services that one client asked in vain from which they are one finding: a program looks for a few.
const SERVICES_MIN: usize = 16;
/// Such services of one client that are told apart.
pub(crate) const SERVICES_MAX: usize = 4096;

/// Less payload does not need a window.
const WINDOW_BYTES_MIN: u64 = 64 * 1024;
/// A share of the time from which the window is called a limit.
const WINDOW_SHARE_MIN: f64 = 0.2;
/// What full windows over the shortest round trip could carry, as a multiple of what came: beyond,
/// something else was the limit.
const WINDOW_EXCESS_MAX: f64 = 3.0;
/// Segments that closed a window from which its reader is called slow.
const ZERO_WINDOWS_MIN: u32 = 3;
/// Delayed acknowledgements of one end from which they are reported.
const DELAYED_ACKS_MIN: u32 = 3;
/// Retransmissions that nothing else tells of, from which loss is reported.
const LOSS_MIN: u32 = 1;
/// Spurious ones.
const SPURIOUS_MIN: u32 = 3;
/// Segments out of order.
const REORDERED_MIN: u32 = 10;
/// Short segments from which a stream is called one of short segments, if they are most of it.
const SMALL_MIN: u32 = 64;
/// The largest window without scaling.
const UNSCALED_BYTES_MAX: u32 = 65_535;

/// What was found.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TcpFindingKind {
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
    /// The receiver's program did not read: its window shrank, and held the sender back.
    SlowReader,
    /// Window scaling is missing.
    NoWindowScaling,
    /// Many segments were lost at once.
    LossBurst,
    /// Segments were lost.
    Loss,
    /// A receiver dropped what it had acknowledged selectively.
    SackReneging,
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
    /// The server answered a SYN with a reset.
    Refused,
    /// Nothing answered a SYN.
    Unanswered,
    /// A SYN was sent again before it was answered.
    SynAgain,
    /// A router or host says that segments do not get through.
    Unreachable,
    /// One end reset the connection before either had ended its stream.
    Reset,
    /// An end answered with a reset that it has no such connection.
    HalfOpen,
    /// An end was not heard of again.
    PeerSilent,
    /// An end answered no keepalive any more.
    KeepaliveUnanswered,
    /// The server took its time to answer.
    SlowAnswer,
    /// Requests waited for the way to the server and back, more than for anything else.
    RoundTrips,
    /// The client took its time between an answer and its next request.
    ClientPause,
    /// A queue on the way made round trips long.
    Queue,
    /// The sender had nothing to send.
    IdleSender,
    /// The sender stopped at the same amount again and again, with room in the window.
    SendLimit,
    /// Routers marked congestion.
    CongestionMarks,
    /// A handshake was not completed, though the server repeated its SYN-ACK.
    HandshakeIncomplete,
    /// The client reset the connection before it carried data.
    ResetUnused,
    /// The answer to a SYN took longer than the way.
    SlowHandshake,
    /// Questions over UDP without an answer.
    QuestionsUnanswered,
    /// Questions over UDP that were answered late.
    AnswersLate,
}

/// One finding.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct TcpFinding {
    /// What.
    pub kind: TcpFindingKind,
    /// The end that it is about: who would have to change something.
    pub who: IpAddr,
    /// The port of that end, if it is the server.
    pub who_port: Option<u16>,
    /// What that end is.
    pub who_is: End,
    /// The other end; one of them, where `others` says that there are more.
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
    /// Of how many more hosts the same is true; of a server's clients no more than 63 are told apart.
    pub others: u32,
    /// Of how many services (hosts and ports) it is told: more than one where one client asked many of them
    /// in vain, of which no more than 4096 are told apart. `who` is the first of them.
    pub services: u32,
    /// How often.
    pub count: u64,
    /// How long all together.
    pub total_ns: u64,
    /// How long at the longest.
    pub longest_ns: u64,
    /// A number that belongs to it, by kind: a window, a queue, an MTU, a segment size in bytes,
    /// segments of a burst, a median in ns, a hop limit and (times 256) that of the host's other segments, how often something was repeated, hosts of many services, whether a server
    /// over UDP was heard of at all (1).
    pub value: u64,
    /// Out of how many, where that means something: data segments, of those marked all segments, or the connections'
    /// time in ns.
    pub out_of: u64,
    /// The shortest round trip, where that means something.
    pub round_trip_ns: Option<u64>,
    /// The router or host that says so, the first of them, where ICMP is the proof.
    pub by: Option<IpAddr>,
    /// What else the same frames show, as claims.
    pub also: Vec<String>,
    /// What proves it.
    pub proofs: Vec<Proof>,
    /// How long an end took for its answers, those that were not late included.
    #[serde(skip)]
    pub(crate) waits: Durations,
    /// Whether the waits may be those for a way that takes longer.
    #[serde(skip)]
    pub(crate) way_is_doubtful: bool,
    /// What each connection has in a queue.
    #[serde(skip)]
    pub(crate) queued: Vec<QueueShare>,
    /// The clients of the server that it is about.
    #[serde(skip)]
    pub(crate) clients: Vec<IpAddr>,
    /// The hop limit of a reset that refused, if it is that of all.
    #[serde(skip)]
    pub(crate) hop_limit: Option<u8>,
}

/// Frames that prove a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Proof {
    /// The connection's number.
    pub connection: u32,
    /// When what it shows began, in nanoseconds since 1970.
    pub at_ns: u64,
    /// How long it took.
    pub length_ns: u64,
    /// The frames, in order.
    pub frames: Vec<FrameId>,
    /// A number that belongs to it.
    pub value: u32,
    /// What shows these frames in Wireshark and tshark.
    pub filter: String,
}

impl Proof {
    /// Returns what proves an occurrence in the connection of this number, or, with zero, in none.
    fn of(connection: u32, example: &Example) -> Self {
        let frames: Vec<FrameId> = example.frames.iter().flatten().copied().collect();
        Self {
            connection,
            at_ns: example.at_ns,
            length_ns: example.length_ns,
            filter: filter_of(frames.iter().copied()),
            frames,
            value: example.value,
        }
    }

    /// Returns whether its frames are those of something that happened, not a connection's first.
    fn is_event(&self) -> bool {
        self.frames.len() > 1
    }

    /// Returns whether its filter is for its frames, not for a connection.
    pub(crate) fn is_of_frames(&self) -> bool {
        self.filter == filter_of(self.frames.iter().copied())
    }

    fn shares_frame(&self, other: &Self) -> bool {
        self.frames.iter().any(|frame| other.frames.contains(frame))
    }
}

/// What one finding is told apart by: kind, host, other host, the server's port, which end.
type Key = (TcpFindingKind, IpAddr, IpAddr, Option<u16>, End);

/// What the connections that a host accepted show of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accepting {
    hop_limit: u8,
    hop_limit_is_same: bool,
    /// The shortest way from the capture to it and back.
    trip_ns: u64,
}

impl Accepting {
    /// Adds what a connection shows of its server; nothing, if it shows no way to it.
    pub(crate) fn add(host: &mut Option<Self>, connection: &Connection) {
        let server = &connection.halves[End::Server as usize];
        let Some(leg) = connection.handshake[0].filter(|_| !server.has_rst()) else {
            return;
        };
        let detail = connection.detail.as_deref();
        let trip_ns = detail.and_then(|detail| detail.leg_ns(End::Server));
        let trip_ns = trip_ns.unwrap_or(leg.ns());
        let own = Self {
            hop_limit: server.hop_limit,
            hop_limit_is_same: true,
            trip_ns,
        };
        let known = host.get_or_insert(own);
        known.hop_limit_is_same &= known.hop_limit == own.hop_limit;
        known.trip_ns = known.trip_ns.min(trip_ns);
    }
}

/// A host and its port.
type Service = (IpAddr, Option<u16>);

/// All findings of a capture.
#[derive(Debug, Default)]
pub(crate) struct FindingBook {
    found: BTreeMap<Key, TcpFinding>,
    /// Which services each client asked in vain.
    asked: BTreeMap<(TcpFindingKind, IpAddr), BTreeSet<Service>>,
    /// Findings that were not kept.
    pub left_out: u64,
}

impl FindingBook {
    /// Adds the findings of one connection between client and server, whose capture goes on until `end_ns`; returns
    /// the report that they are of, if there may be any.
    pub(crate) fn tell(
        &mut self,
        connection: &Connection,
        ends: impl FnOnce() -> [Endpoint; 2],
        end_ns: u64,
    ) -> Option<ConnectionReport> {
        let is_told = Self::may_tell(connection);
        // Held in tests: what is not asked for has nothing to tell.
        if !is_told && !cfg!(debug_assertions) {
            return None;
        }
        let report = ConnectionReport::new(connection, ends(), end_ns);
        let found = findings_of(&report, connection);
        debug_assert!(is_told || found.is_empty(), "{report:?}");
        for mut finding in found {
            if let Some(detail) = &connection.detail
                && finding.kind.is_wait()
            {
                finding.waits = detail.ends[finding.who_is as usize].answers.clone();
            }
            self.keep(finding);
        }
        Some(report)
    }

    /// Returns whether there may be something to tell of a connection. Of most there is not: they are short,
    /// and nothing happened to them; a report of each of a million costs a quarter of the time.
    fn may_tell(connection: &Connection) -> bool {
        /// Fewer than any count of segments from which something is told.
        const DATA_PACKETS_MAX: u32 = 15;
        if connection.reset_without_data().is_some() || connection.accepted_late_ns().is_some() {
            return true;
        }
        let Some(detail) = &connection.detail else {
            return !connection.is_accepted();
        };
        let is_short = |half: &Half| {
            half.data_packets <= DATA_PACKETS_MAX && half.payload_bytes < WINDOW_BYTES_MIN
        };
        let is_quiet = |own: &EndDetail| {
            let counts = &own.counts;
            let told = [
                counts.retransmissions,
                counts.spurious,
                counts.out_of_order,
                counts.healed,
                counts.congestion_marked,
                counts.superframes,
            ];
            told == [0; 6] && own.standing.count <= DATA_PACKETS_MAX
        };
        !(connection.is_accepted()
            && detail.incidents.as_slice().is_empty()
            && connection.halves.iter().all(is_short)
            && detail.ends.iter().all(is_quiet))
    }

    /// Adds what became of the SYN of a connection that was not accepted, at its end.
    pub(crate) fn add_setup(&mut self, report: &ConnectionReport, connection: &Connection) {
        if let Some(finding) = setup(report, connection) {
            self.keep(finding);
        }
    }

    /// Adds what a conversation over UDP proves.
    pub(crate) fn add_conversation(&mut self, conversation: &ConversationReport) {
        for finding in questions(conversation) {
            self.keep(finding);
        }
    }

    /// Returns what a finding is told apart by: a client that asks many services in vain is one.
    fn key_of(&mut self, finding: &TcpFinding) -> Key {
        let (kind, client) = (finding.kind, finding.toward);
        let has_place = self.asked.len() < FINDINGS_MAX || self.asked.contains_key(&(kind, client));
        if !kind.is_in_vain() || !has_place {
            return finding.key();
        }
        let services = self.asked.entry((kind, client)).or_default();
        if services.len() < SERVICES_MAX {
            services.insert((finding.who, finding.who_port));
        }
        if services.len() < SERVICES_MIN {
            return finding.key();
        }
        let key = (kind, client, client, None, End::Client);
        if !self.found.contains_key(&key) {
            let is_its = |one: &TcpFinding| one.kind == kind && one.clients == [client];
            let all = std::mem::take(&mut self.found);
            let (its, others) = all.into_iter().partition(|(_, one)| is_its(one));
            self.found = others;
            let mut its: Vec<TcpFinding> = its.into_values().collect();
            its.sort_by_key(|one| one.proofs.first().map(|proof| proof.connection));
            let joined = its.into_iter().reduce(|mut joined, one| {
                joined.join(one);
                joined
            });
            self.found.extend(joined.map(|joined| (key, joined)));
        }
        key
    }

    fn keep(&mut self, finding: TcpFinding) {
        let key = self.key_of(&finding);
        if let Some(known) = self.found.get_mut(&key) {
            known.join(finding);
        } else if self.found.len() < FINDINGS_MAX {
            self.found.insert(key, finding);
        } else {
            self.left_out += 1;
        }
    }

    /// Returns the hosts that refused a client, without anything that they accepted.
    pub(crate) fn refusing(&self) -> BTreeMap<IpAddr, Option<Accepting>> {
        let refused = self.found.values().filter(|one| {
            one.kind == TcpFindingKind::Refused && one.hop_limit.is_some_and(|hops| hops > 0)
        });
        refused.map(|one| (one.who, None)).collect()
    }

    /// Says of refusals that they are not of the host whose address they have: it is behind a way that takes twice as
    /// long at its shortest, and its own segments have another hop limit. One alone proves nothing: a system may give
    /// its resets another limit, and a service behind a balancer may be elsewhere.
    pub(crate) fn judge_refusals(&mut self, hosts: &BTreeMap<IpAddr, Option<Accepting>>) {
        for finding in self.found.values_mut() {
            if finding.kind != TcpFindingKind::Refused {
                continue;
            }
            let host = hosts.get(&finding.who).copied().flatten();
            let host = host.filter(|host| host.hop_limit_is_same);
            if let Some((host, hops)) = host.zip(finding.hop_limit)
                && hops != host.hop_limit
                && finding.longest_ns < host.trip_ns / 2
            {
                finding.value = u64::from(hops) | u64::from(host.hop_limit) << 8;
                finding.round_trip_ns = Some(host.trip_ns);
            }
        }
    }

    /// Hands the findings over, worded, the costliest first.
    pub(crate) fn finish(mut self) -> Vec<TcpFinding> {
        for ((kind, client), services) in &self.asked {
            let key = (*kind, *client, *client, None, End::Client);
            if let Some(finding) = self.found.get_mut(&key) {
                let hosts: BTreeSet<IpAddr> = services.iter().map(|service| service.0).collect();
                (finding.services, finding.value) = (services.len() as u32, hosts.len() as u64);
            }
        }
        let mut found: Vec<TcpFinding> = self.found.into_values().collect();
        join_clamped(&mut found);
        for finding in &mut found {
            if finding.kind.is_wait() {
                finding.value = finding.median_wait_ns().unwrap_or(finding.longest_ns);
            }
            finding
                .proofs
                .sort_by_key(|proof| (proof.at_ns, proof.connection));
            words::put_into_words(finding);
        }
        // Those that are alike in all of this stay in the order of their keys.
        found.sort_by_key(|finding| {
            (
                finding.kind.rank(),
                Reverse(finding.total_ns / 100 * finding.kind.certainty_percent()),
                finding.kind,
                Reverse(finding.count),
                finding.who,
                finding.toward,
            )
        });
        told_once(found)
    }
}

impl TcpFindingKind {
    /// Returns its place: what kept a connection from working, what costs time, what only explains,
    /// and what half of the Internet has.
    fn rank(self) -> u8 {
        match self {
            Self::Refused
            | Self::Unanswered
            | Self::Unreachable
            | Self::HandshakeIncomplete
            | Self::PeerSilent
            | Self::KeepaliveUnanswered => 0,
            Self::Superframes
            | Self::SmallSegments
            | Self::DelayedAck
            | Self::Reordering
            | Self::ClientPause
            | Self::ResetUnused
            | Self::IdleSender
            | Self::CongestionMarks => 2,
            Self::ClampedMss => 3,
            _ => 1,
        }
    }

    /// Returns whether it is the server's, whoever its client is, where it is told of the `end`.
    fn is_of_server(self, end: End) -> bool {
        let is_always = matches!(
            self,
            Self::SlowAnswer | Self::RoundTrips | Self::SlowHandshake | Self::HandshakeIncomplete
        );
        is_always || self.is_in_vain() || (self, end) == (Self::SynAgain, End::Server)
    }

    /// Returns whether it is what became of a SYN that was not accepted.
    fn is_in_vain(self) -> bool {
        matches!(self, Self::Refused | Self::Unanswered)
    }

    /// Returns whether it is how long an end took for its answers.
    fn is_wait(self) -> bool {
        matches!(self, Self::SlowAnswer | Self::ClientPause)
    }

    /// Returns how sure it is that the time of its frames was lost to it, rather than to something
    /// that looks the same.
    fn certainty_percent(self) -> u64 {
        match self {
            // The capture cannot see why a window is small, or why a program was silent.
            // Nor whether a request had to wait for the answer before.
            Self::WindowLimit
            | Self::NoWindowScaling
            | Self::Queue
            | Self::SendLimit
            | Self::RoundTrips => 80,
            Self::SlowAnswer | Self::SlowHandshake => 90,
            _ => 100,
        }
    }
}

impl TcpFinding {
    /// A finding about the `end` of a connection, whose first frame is the proof where a count is all there is.
    fn new(connection: &ConnectionReport, kind: TcpFindingKind, end: End) -> Self {
        let (who, toward) = (connection.endpoint(end), connection.endpoint(end.other()));
        let first_frame = Proof {
            connection: connection.number,
            at_ns: connection.start_ns,
            length_ns: connection.duration_ns,
            frames: connection.first_frame.into_iter().collect(),
            value: 0,
            filter: conversation(connection),
        };
        Self {
            proofs: vec![first_frame],
            ..Self::between(kind, who, end, toward)
        }
    }

    /// One that took `total_ns` of the connection's time.
    fn lasting(
        connection: &ConnectionReport,
        kind: TcpFindingKind,
        end: End,
        total_ns: u64,
    ) -> Self {
        Self {
            count: 1,
            total_ns,
            longest_ns: total_ns,
            out_of: connection.duration_ns,
            ..Self::new(connection, kind, end)
        }
    }

    /// A finding about `who`, which is the `end` of what it has with `toward`.
    fn between(kind: TcpFindingKind, who: Endpoint, end: End, toward: Endpoint) -> Self {
        let port = |endpoint: Endpoint, end: End| (end == End::Server).then_some(endpoint.port);
        Self {
            kind,
            who: who.address,
            who_port: port(who, end),
            who_is: end,
            toward: toward.address,
            toward_port: port(toward, end.other()),
            claim: String::new(),
            explanation: String::new(),
            advice: None,
            connections: 1,
            others: 0,
            services: 1,
            count: 0,
            total_ns: 0,
            longest_ns: 0,
            value: 0,
            out_of: 0,
            round_trip_ns: None,
            by: None,
            also: Vec::new(),
            proofs: Vec::new(),
            waits: Durations::default(),
            way_is_doubtful: false,
            queued: Vec::new(),
            clients: if kind.is_of_server(end) {
                vec![toward.address]
            } else {
                Vec::new()
            },
            hop_limit: None,
        }
    }

    fn key(&self) -> Key {
        let server_port = self.who_port.or(self.toward_port);
        let toward = if self.kind.is_of_server(self.who_is) {
            self.who
        } else {
            self.toward
        };
        (self.kind, self.who, toward, server_port, self.who_is)
    }

    /// Returns whether a router told of what is too big: it names an MTU and takes no time, while a segment sent again
    /// and again does.
    fn is_by_router(&self) -> bool {
        self.total_ns == 0
    }

    /// Returns the largest MTU that a router named, if one did.
    fn mtu_bytes(&self) -> Option<u32> {
        let is_word = |proof: &&Proof| proof.length_ns == 0 && proof.value > 0;
        let words = self.proofs.iter().filter(is_word);
        words.map(|proof| proof.value).max()
    }

    /// Returns the median of the waits that count: as many of the longest as there are.
    fn median_wait_ns(&self) -> Option<u64> {
        let all = u64::from(self.waits.spread.count).max(1);
        let share = self.count as f64 / all as f64;
        self.waits.quantile(1.0 - share.min(1.0) / 2.0)
    }

    /// Returns how many proofs there could be: one each time, or of each connection where that is all that
    /// they show.
    pub(crate) fn occurrences(&self) -> u64 {
        let is_each_time = self.proofs.iter().all(Proof::is_of_frames)
            && !matches!(
                self.kind,
                // Its segment was sent so often; the slowest answer stands for the others.
                TcpFindingKind::PathMtu | TcpFindingKind::AnswersLate
            );
        if is_each_time {
            self.count
        } else {
            u64::from(self.connections)
        }
    }

    /// Returns whether the frames that prove `other` prove this finding as well, and `other` is not
    /// more than it.
    fn shows(&self, other: &Self) -> bool {
        let hosts = |finding: &Self| {
            let (one, other) = (finding.who, finding.toward);
            (one.min(other), one.max(other))
        };
        let segments = match self.kind {
            TcpFindingKind::LossBurst => self.count * self.value,
            _ => self.count,
        };
        let is_proven = |proof: &Proof| {
            let mut own = self.proofs.iter();
            own.any(|own| own.is_event() && own.shares_frame(proof))
        };
        let is_a_clients = self.others > 0 && [other.who, other.toward].contains(&self.who);
        (hosts(self) == hosts(other) || is_a_clients)
            && other.count <= segments.saturating_mul(2)
            && !other.proofs.is_empty()
            && other
                .proofs
                .iter()
                .all(|proof| proof.is_event() && is_proven(proof))
    }

    fn join(&mut self, mut other: Self) {
        // Where a segment is retransmitted again and again, that is what counts, not how often a router said why.
        if self.kind == TcpFindingKind::PathMtu && self.is_by_router() != other.is_by_router() {
            let word = if self.is_by_router() {
                &mut *self
            } else {
                &mut other
            };
            (word.count, word.value) = (0, 0);
        }
        self.connections = self.connections.saturating_add(other.connections);
        self.count += other.count;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        // Who said it goes with what was said.
        if self.by.is_none() || other.value > self.value {
            self.by = other.by.or(self.by);
        }
        queued::join(&mut self.queued, other.queued);
        (self.total_ns, self.value, self.out_of) = match self.kind {
            TcpFindingKind::Queue => {
                let (bytes, rate) = queued::most_at_once(&self.queued);
                (self.total_ns.max(other.total_ns), bytes, rate)
            }
            kind => (
                self.total_ns.saturating_add(other.total_ns),
                self.value.max(other.value),
                match kind {
                    TcpFindingKind::ClampedMss => self.out_of.max(other.out_of),
                    _ => self.out_of.saturating_add(other.out_of),
                },
            ),
        };
        let round_trips_ns = [self.round_trip_ns, other.round_trip_ns];
        self.round_trip_ns = round_trips_ns.into_iter().flatten().min();
        self.hop_limit = self.hop_limit.filter(|_| self.hop_limit == other.hop_limit);
        self.waits.join(&other.waits);
        self.way_is_doubtful |= other.way_is_doubtful;
        for client in other.clients {
            if self.clients.len() < CLIENTS_MAX && !self.clients.contains(&client) {
                self.clients.push(client);
            }
        }
        self.others = self.clients.len().saturating_sub(1) as u32;
        self.proofs.extend(other.proofs);
        if self.proofs.len() > EXAMPLES_MAX {
            self.proofs
                .sort_by_key(|proof| Reverse((proof.length_ns, proof.value)));
            self.proofs.truncate(EXAMPLES_MAX);
        }
    }
}

fn proofs(connection: &ConnectionReport, examples: &[Example]) -> Vec<Proof> {
    let proof = |example| Proof::of(connection.number, example);
    examples.iter().map(proof).collect()
}

/// Joins each finding to the first before it that its frames show as well. What says no more than that
/// something was lost is joined to what says why.
fn told_once(found: Vec<TcpFinding>) -> Vec<TcpFinding> {
    let mut kept: Vec<TcpFinding> = Vec::with_capacity(found.len());
    for mut finding in found {
        let says_why = |known: &TcpFinding| known.kind != TcpFindingKind::Loss;
        let mut known = kept.iter_mut();
        let known =
            known.find(|known| known.shows(&finding) || !says_why(known) && finding.shows(known));
        match known {
            Some(known) if says_why(known) => known.also.push(finding.claim),
            Some(known) => {
                std::mem::swap(known, &mut finding);
                known.also.push(finding.claim);
            }
            None => kept.push(finding),
        }
    }
    kept
}

/// Returns the filter for frames.
pub(crate) fn filter_of(frames: impl Iterator<Item = FrameId>) -> String {
    numbers_filter(frames.map(FrameId::number))
}

/// Returns the filter for frames by their numbers.
pub(crate) fn numbers_filter(numbers: impl Iterator<Item = u64>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    match &numbers[..] {
        [] => String::new(),
        [one] => format!("frame.number == {one}"),
        more => format!("frame.number in {{{}}}", more.join(", ")),
    }
}

/// Returns one filter for the frames of all proofs, those of the first one's file; where the first is a whole
/// connection, for that.
pub(crate) fn proofs_filter(proofs: &[Proof]) -> Option<String> {
    let first = proofs.first()?;
    let file = first.frames.first().map(|frame| frame.file());
    if !first.is_of_frames() {
        return Some(first.filter.clone());
    }
    let frames = proofs.iter().flat_map(|proof| &proof.frames);
    let numbers: BTreeSet<u64> = frames
        .filter(|frame| Some(frame.file()) == file)
        .map(|frame| frame.number())
        .collect();
    Some(numbers_filter(numbers.into_iter()))
}

/// Returns the filter for a whole connection.
fn conversation(connection: &ConnectionReport) -> String {
    let (client, server) = (connection.client, connection.server);
    let ip = match client.address {
        IpAddr::V4(_) => "ip",
        IpAddr::V6(_) => "ipv6",
    };
    format!(
        "{ip}.addr == {} && {ip}.addr == {} && tcp.port == {} && tcp.port == {}",
        client.address, server.address, client.port, server.port
    )
}

/// Returns what became of a SYN that was not accepted.
fn setup(connection: &ConnectionReport, kept: &Connection) -> Option<TcpFinding> {
    // What a router said of it explains it.
    if count_of(connection, IncidentKind::Unreachable, End::Client) > 0 {
        return None;
    }
    if let Some(end) = kept.reset_without_data() {
        let kind = match end {
            End::Client => TcpFindingKind::ResetUnused,
            End::Server => TcpFindingKind::Reset,
        };
        return Some(TcpFinding {
            count: 1,
            ..TcpFinding::new(connection, kind, end)
        });
    }
    let kind = match connection.ending {
        Ending::Refused => TcpFindingKind::Refused,
        Ending::Unanswered => TcpFindingKind::Unanswered,
        _ => return None,
    };
    let length_ns = match kind {
        // What passed before the SYN that was refused is told of the SYN.
        TcpFindingKind::Refused => kept.answered_last_ns(),
        _ => connection.duration_ns,
    };
    Some(TcpFinding {
        count: u64::from(connection.from_client.packets),
        total_ns: length_ns,
        longest_ns: length_ns,
        hop_limit: Some(kept.halves[End::Server as usize].hop_limit),
        ..TcpFinding::new(connection, kind, End::Server)
    })
}

/// What became of the questions of a conversation over UDP.
fn questions(conversation: &ConversationReport) -> Vec<TcpFinding> {
    /// A median from which answers are late: people notice, and resolvers on the way answer in less.
    const LATE_NS_MIN: u64 = 50_000_000;
    const ANSWERS_MIN: u32 = 3;
    let (server, client) = (conversation.server, conversation.client);
    let finding = |kind, example: &Example| TcpFinding {
        out_of: conversation.asked.unwrap_or(0),
        proofs: vec![Proof::of(0, example)],
        ..TcpFinding::between(kind, server, End::Server, client)
    };
    let mut found = Vec::new();
    let unanswered = conversation.unanswered.unwrap_or(0);
    if unanswered > 0
        && let Some(asked) = conversation.first_unanswered
    {
        let alone = Place {
            frame: None,
            ..asked
        };
        let example = Example::between(asked, alone, 0);
        found.push(TcpFinding {
            count: unanswered,
            value: u64::from(conversation.from_server.datagrams > 0),
            ..finding(TcpFindingKind::QuestionsUnanswered, &example)
        });
    }
    if let (Some(answers), Some(slowest)) = (conversation.answers, &conversation.slowest)
        && let Some(median_ns) = answers.median_ns
        && median_ns >= LATE_NS_MIN
        && answers.count >= ANSWERS_MIN
    {
        found.push(TcpFinding {
            count: u64::from(answers.count),
            total_ns: answers.sum_ns,
            longest_ns: answers.max_ns,
            value: median_ns,
            ..finding(TcpFindingKind::AnswersLate, slowest)
        });
    }
    found
}

/// Returns the findings of one connection: of its report, and of what is kept of it beyond that. Of one that was
/// only counted there is none.
fn findings_of(connection: &ConnectionReport, kept: &Connection) -> Vec<TcpFinding> {
    let Some(detail) = kept.detail.as_deref() else {
        return Vec::new();
    };
    let mut found: Vec<TcpFinding> = connection
        .incidents
        .iter()
        .filter_map(|incident| from_incident(connection, kept, detail, incident))
        .collect();
    for end in End::BOTH {
        found.extend(queue(connection, detail, end));
        found.extend(window_limit(connection, detail, end));
        found.extend(slow_reader(connection, detail, end));
        found.extend(idle_sender(connection, end));
        found.extend(send_limit(connection, detail, end));
        found.extend(from_counts(connection, detail, end));
        found.extend(clamped_mss(connection, end));
    }
    if let Some(mut missing) = missing_scaling(connection) {
        // What it costs is its own: no buffer makes such a window larger.
        let is_its = |one: &TcpFinding| {
            let is_window = one.kind == TcpFindingKind::WindowLimit;
            is_window && one.value > u64::from(UNSCALED_BYTES_MAX / 2)
        };
        for limit in found.extract_if(.., |one| is_its(one)) {
            if limit.total_ns >= missing.total_ns {
                missing.total_ns = limit.total_ns;
                missing.longest_ns = limit.longest_ns;
                missing.out_of = limit.out_of;
            }
        }
        found.push(missing);
    }
    found.extend(slow_handshake(connection, kept));
    // A queue makes round trips long: that is told.
    if !found
        .iter()
        .any(|finding| finding.kind == TcpFindingKind::Queue)
    {
        found.extend(round_trips(connection, detail));
    }
    found
}

fn from_incident(
    connection: &ConnectionReport,
    kept: &Connection,
    detail: &Detail,
    incident: &Incident,
) -> Option<TcpFinding> {
    let kind = match incident.kind {
        IncidentKind::NagleDelayedAck => TcpFindingKind::NagleDelayedAck,
        IncidentKind::RetransmissionTimeout => TcpFindingKind::RetransmissionTimeout,
        IncidentKind::ZeroWindow => TcpFindingKind::ZeroWindow,
        IncidentKind::LossBurst => TcpFindingKind::LossBurst,
        IncidentKind::TakenBack => TcpFindingKind::SackReneging,
        IncidentKind::RepeatedSegment | IncidentKind::TooBig => TcpFindingKind::PathMtu,
        // What Nagle's algorithm waited for is told with it.
        IncidentKind::DelayedAck
            if incident.count
                >= count_of(
                    connection,
                    IncidentKind::NagleDelayedAck,
                    incident.end.other(),
                ) + DELAYED_ACKS_MIN =>
        {
            TcpFindingKind::DelayedAck
        }
        IncidentKind::SynAgain
            if incident.end == End::Server
                && connection.ending == Ending::Open
                && !kept.is_set_up() =>
        {
            TcpFindingKind::HandshakeIncomplete
        }
        // Of a SYN that was never answered more is told.
        IncidentKind::SynAgain if connection.ending != Ending::Unanswered => {
            TcpFindingKind::SynAgain
        }
        IncidentKind::Unreachable => TcpFindingKind::Unreachable,
        IncidentKind::Reset => TcpFindingKind::Reset,
        IncidentKind::HalfOpen => TcpFindingKind::HalfOpen,
        // With its SYN repeated, an end was never heard of at all.
        IncidentKind::PeerSilent => TcpFindingKind::PeerSilent,
        IncidentKind::KeepaliveUnanswered => TcpFindingKind::KeepaliveUnanswered,
        IncidentKind::Answer => answer_kind(connection, incident)?,
        // What is found of loss and short segments follows from counts.
        IncidentKind::DelayedAck
        | IncidentKind::SynAgain
        | IncidentKind::Loss
        | IncidentKind::SmallSegments => return None,
    };
    let lengths_ns = incident.examples.iter().map(|example| example.length_ns);
    let longest_ns = match kind {
        // All of them are one wait.
        TcpFindingKind::HandshakeIncomplete => incident.total_ns,
        _ => lengths_ns.max().unwrap_or(0),
    };
    // A router's word on what is retransmitted again and again is told with that.
    let is_with_repetition = incident.kind == IncidentKind::TooBig
        && count_of(connection, IncidentKind::RepeatedSegment, incident.end) > 0;
    Some(TcpFinding {
        connections: u32::from(!is_with_repetition),
        count: u64::from(incident.count),
        total_ns: incident.total_ns,
        longest_ns,
        value: u64::from(incident.value_max),
        out_of: connection.duration_ns,
        round_trip_ns: detail.leg_ns(incident.end),
        by: incident.by,
        way_is_doubtful: is_way_doubtful(connection, detail, incident),
        proofs: proofs(connection, &incident.examples),
        ..TcpFinding::new(connection, kind, incident.end)
    })
}

/// Returns whether waits of an end may be those for a way to it that takes longer: for good since they began, or at
/// times, as radio that sleeps does, or one that lost the answer. What passes after an acknowledgement of its own is surely its program's.
fn is_way_doubtful(connection: &ConnectionReport, detail: &Detail, incident: &Incident) -> bool {
    /// How much the waits for a program differ that does the same each time, on a busy host.
    const JITTER_NS: u64 = 15_000_000;
    const NEARER_TIMES: u64 = 4;
    let (end, count) = (incident.end, u64::from(incident.count.max(1)));
    let own = &detail.ends[end as usize];
    let is_proven = own.answers_proven_ns >= incident.total_ns / 2;
    let is_longer = detail.ends[end.other() as usize]
        .way
        .longer_ns()
        .is_some_and(|longer_ns| longer_ns > incident.total_ns / count / 2);
    // Where the handshake took about as long as the answers, and far longer than acknowledgements, something near the
    // client (a proxy, the network of a virtual machine) may acknowledge for a server that is so far.
    let may_be_behind = end == End::Server
        && connection
            .syn_to_answer_ns
            .zip(detail.leg_ns(end))
            .is_some_and(|(accepted_ns, trip_ns)| {
                accepted_ns >= NEARER_TIMES * trip_ns
                    && accepted_ns >= incident.total_ns / count / 2
            });
    // An answer that was lost before it came here, and sent again, looks late.
    let may_be_lost = own.counts.retransmissions > 0;
    let are_alike = own.answers.are_alike(JITTER_NS, 3);
    let is_here = connection.captured_at == Some(end);
    !is_here && (may_be_lost || may_be_behind || !is_proven && (is_longer || !are_alike))
}

/// Returns how often something happened at `end`.
fn count_of(connection: &ConnectionReport, kind: IncidentKind, end: End) -> u32 {
    incident_of(connection, kind, end).map_or(0, |incident| incident.count)
}

fn incident_of(connection: &ConnectionReport, kind: IncidentKind, end: End) -> Option<&Incident> {
    let mut incidents = connection.incidents.iter();
    incidents.find(|incident| incident.kind == kind && incident.end == end)
}

/// Waits for an end's answers, where they are much of the time.
fn answer_kind(connection: &ConnectionReport, incident: &Incident) -> Option<TcpFindingKind> {
    const TOTAL_NS_MIN: u64 = 50_000_000;
    let (kind, part) = match incident.end {
        End::Server => (TcpFindingKind::SlowAnswer, 10),
        End::Client => (TcpFindingKind::ClientPause, 2),
    };
    let is_much = incident.total_ns >= TOTAL_NS_MIN.max(connection.duration_ns / part);
    is_much.then_some(kind)
}

/// A server that takes its time before it accepts, where that is much of the connection's.
fn slow_handshake(connection: &ConnectionReport, kept: &Connection) -> Option<TcpFinding> {
    const PART: u64 = 10;
    let late_ns = kept
        .accepted_late_ns()
        .filter(|&late_ns| late_ns >= connection.duration_ns / PART)?;
    let kind = TcpFindingKind::SlowHandshake;
    Some(TcpFinding {
        round_trip_ns: kept.detail.as_deref()?.leg_ns(End::Server),
        ..TcpFinding::lasting(connection, kind, End::Server, late_ns)
    })
}

/// Requests, one behind the other, over a way that takes most of the time.
fn round_trips(connection: &ConnectionReport, detail: &Detail) -> Option<TcpFinding> {
    /// With fewer `may_tell` asks for nothing.
    const REQUESTS_MIN: u32 = 16;
    const SHARE_MIN: f64 = 0.5;
    const TOTAL_NS_MIN: u64 = 1_000_000_000;
    /// Shorter ways are those of a building, where the hosts take as long.
    const TRIP_NS_MIN: u64 = 5_000_000;
    // An answer takes its server's time too: only a handshake that needed no second try shows the way alone.
    connection
        .syn_to_answer_ns
        .zip(connection.answer_to_ack_ns)?;
    let trip_ns = detail.leg_ns(End::Client)? + detail.leg_ns(End::Server)?;
    let requests = connection.from_server.answers?.count;
    let share = connection.time?.round_trip;
    let total_ns = (share * connection.duration_ns as f64) as u64;
    // Other segments wait for the way too; requests must be most of what waited.
    let by_requests_ns = trip_ns.saturating_mul(requests.into());
    let is_much = share >= SHARE_MIN
        && total_ns >= TOTAL_NS_MIN
        && trip_ns >= TRIP_NS_MIN
        && requests >= REQUESTS_MIN
        && by_requests_ns >= total_ns / 2;
    let kind = TcpFindingKind::RoundTrips;
    is_much.then(|| TcpFinding {
        count: u64::from(requests),
        round_trip_ns: Some(trip_ns),
        ..TcpFinding::lasting(connection, kind, End::Server, total_ns)
    })
}

/// A queue on the way: round trips under load are a multiple of the shortest.
fn queue(connection: &ConnectionReport, detail: &Detail, end: End) -> Option<TcpFinding> {
    /// Fewer round trips under load show no queue that stands.
    const TRIPS_MIN: u32 = 16;
    const TIMES_MIN: u64 = 4;
    const QUEUE_NS_MIN: u64 = 20_000_000;
    let (own, peer) = (connection.end(end), connection.end(end.other()));
    // At the receiver the path is behind its data, and round trips are its own; and one whose window
    // closes acknowledges when its program reads.
    let closes = peer
        .counts
        .is_some_and(|counts| counts.zero_windows >= ZERO_WINDOWS_MIN);
    if connection.captured_at == Some(end.other()) || closes {
        return None;
    }
    let loaded = own
        .round_trip_loaded
        .filter(|loaded| loaded.count >= TRIPS_MIN)?;
    let least_ns = detail.leg_ns(end.other())?;
    let median_ns = loaded.median_ns?;
    let queued_ns = median_ns.saturating_sub(least_ns);
    if queued_ns < QUEUE_NS_MIN || median_ns < least_ns * TIMES_MIN {
        return None;
    }
    let rate = own.bits_per_second?;
    let (begin_ns, end_ns) = detail.ends[end as usize].data_times_ns()?;
    let share = QueueShare {
        begin_ns,
        end_ns,
        bytes: (rate / 8e9 * queued_ns as f64) as u64,
        bits_per_second: rate as u64,
    };
    Some(TcpFinding {
        count: u64::from(loaded.count),
        total_ns: queued_ns,
        longest_ns: loaded.max_ns.saturating_sub(least_ns),
        value: share.bytes,
        out_of: share.bits_per_second,
        queued: vec![share],
        round_trip_ns: Some(least_ns),
        ..TcpFinding::new(connection, TcpFindingKind::Queue, end)
    })
}

/// A stream in one direction whose sender had nothing to send for most of the time.
fn idle_sender(connection: &ConnectionReport, end: End) -> Option<TcpFinding> {
    const BYTES_MIN: u64 = 1 << 20;
    const SHARE_MIN: f64 = 0.5;
    let (own, peer) = (connection.end(end), connection.end(end.other()));
    let is_stream = own.payload_bytes >= BYTES_MIN && peer.payload_bytes < own.payload_bytes / 100;
    if !is_stream || connection.captured_at == Some(end.other()) {
        return None;
    }
    // Of a stream the program's time is its pauses; behind its last word it is none's.
    let life = connection.time?;
    let share = match end {
        End::Client => life.client,
        End::Server => life.server,
    };
    if share < SHARE_MIN {
        return None;
    }
    let total_ns = (share * connection.duration_ns as f64) as u64;
    let kind = TcpFindingKind::IdleSender;
    Some(TcpFinding::lasting(connection, kind, end, total_ns))
}

/// A sender that stops at the same amount again and again, though nothing was lost and the window has room.
fn send_limit(connection: &ConnectionReport, detail: &Detail, end: End) -> Option<TcpFinding> {
    /// A congestion window has grown by more than a level's width in as many round trips.
    const SILENCES_MIN: u32 = 24;
    const SHARE_MIN: f64 = 0.5;
    const LEVEL_SHARE_MIN: f64 = 0.8;
    let (own, peer) = (connection.end(end), connection.end(end.other()));
    let (counts, standing) = (own.counts?, detail.ends[end as usize].standing);
    let window_bytes_mean = detail.ends[end.other() as usize].window.mean();
    let is_level = standing.count >= SILENCES_MIN
        && standing.level_ns as f64 >= LEVEL_SHARE_MIN * standing.total_ns as f64
        && standing.level_ns as f64 >= SHARE_MIN * connection.duration_ns as f64;
    let is_stream = peer.payload_bytes < own.payload_bytes / 100;
    let had_room = peer.window_is_scaled && window_bytes_mean? >= 2.0 * f64::from(standing.bytes);
    // What shows less than every loss and mark shows no cause.
    let is_clear = counts.retransmissions == 0
        && counts.congestion_marked == 0
        && peer.counts?.congestion_echoes == 0
        && connection.captured_at == Some(end);
    if !(is_level && is_stream && had_room && is_clear) {
        return None;
    }
    let kind = TcpFindingKind::SendLimit;
    Some(TcpFinding {
        count: u64::from(standing.count),
        value: u64::from(standing.bytes),
        round_trip_ns: Some(own.round_trip?.min_ns.max(1)),
        ..TcpFinding::lasting(connection, kind, end, standing.level_ns)
    })
}

/// The receiver's window: it stands for a share of the time, so it needs a stream, not a request.
fn window_limit(connection: &ConnectionReport, detail: &Detail, end: End) -> Option<TcpFinding> {
    let (sender, receiver) = (connection.end(end), connection.end(end.other()));
    // What a reader leaves of it says nothing of its size.
    let time = detail.ends[end as usize].shares.known()?;
    let share = time.window_part() - time.part(State::Unread);
    // At the receiver, data is acknowledged as it is seen: what is on its way does not show.
    if connection.captured_at == Some(end.other())
        || !receiver.window_is_scaled
        || sender.payload_bytes < WINDOW_BYTES_MIN
        || share < WINDOW_SHARE_MIN
    {
        return None;
    }
    let zero_windows = receiver.counts.map(|counts| counts.zero_windows);
    // A program that reads slowly closes the window again and again; its size is not the limit.
    if zero_windows.is_some_and(|zero_windows| zero_windows >= ZERO_WINDOWS_MIN) {
        return None;
    }
    // What such windows carry in such a time, over the shortest round trip. Where far less came,
    // round trips were longer than the path: a queue, and a larger window would lengthen it.
    let least_ns = sender.round_trip?.min_ns.max(1);
    let window_ns = share * connection.duration_ns as f64;
    let window_bytes_mean = detail.ends[end.other() as usize].window.mean()?;
    let possible = window_bytes_mean * window_ns / least_ns as f64;
    if possible > WINDOW_EXCESS_MAX * sender.payload_bytes as f64 {
        return None;
    }
    let total_ns = (share * connection.duration_ns as f64) as u64;
    // The receiver is the one to change something.
    let kind = TcpFindingKind::WindowLimit;
    Some(TcpFinding {
        count: zero_windows.map_or(0, u64::from),
        value: receiver.window_bytes_max.unwrap_or(0),
        round_trip_ns: Some(least_ns),
        ..TcpFinding::lasting(connection, kind, end.other(), total_ns)
    })
}

/// A program that reads slowly: its window has shrunk to half or less of what it was, and held the sender back.
/// Where the window closes, that says it.
fn slow_reader(connection: &ConnectionReport, detail: &Detail, end: End) -> Option<TcpFinding> {
    /// Of a few segments half is one that arrived just now.
    const BUFFER_SEGMENTS_MIN: u64 = 8;
    /// Much of it at once may be a sender that had no more, as one whose windows are opened bit by bit had.
    const LONGEST_SHARE_MAX: f64 = 0.25;
    let (sender, receiver) = (connection.end(end), connection.end(end.other()));
    let (counts, time) = (receiver.counts?, detail.ends[end as usize].shares.known()?);
    let unread = time.part(State::Unread);
    let largest = receiver.window_bytes_max?;
    let segment_bytes = u64::from(sender.segment_bytes?);
    let is_reader = counts.zero_windows == 0
        && receiver.window_is_scaled
        && sender.payload_bytes >= WINDOW_BYTES_MIN
        && unread >= WINDOW_SHARE_MIN
        && unread >= time.window_part() / 2.0
        && time.unread_part_max() <= LONGEST_SHARE_MAX * unread
        && largest >= BUFFER_SEGMENTS_MIN * segment_bytes;
    let total_ns = (unread * connection.duration_ns as f64) as u64;
    let kind = TcpFindingKind::SlowReader;
    is_reader.then(|| TcpFinding {
        value: largest,
        ..TcpFinding::lasting(connection, kind, end.other(), total_ns)
    })
}

fn from_counts(connection: &ConnectionReport, detail: &Detail, end: End) -> Vec<TcpFinding> {
    let own = connection.end(end);
    let EndDetail { counts, shares, .. } = &detail.ends[end as usize];
    // What timers took is told with them, and the wait for what was taken back; the rest of a recovery is a loss's.
    let recovering = shares
        .known()
        .map_or(0.0, |time| time.part(State::Recovering));
    let taken_back = incident_of(connection, IncidentKind::TakenBack, end.other());
    let recovering_ns = ((recovering * connection.duration_ns as f64) as u64)
        .saturating_sub(taken_back.map_or(0, |taken| taken.total_ns));
    let mut found = Vec::new();
    let mut add = |kind, count: u32, value: u64| {
        let mut finding = TcpFinding {
            count: u64::from(count),
            out_of: u64::from(match kind {
                // Routers mark acknowledgements too.
                TcpFindingKind::CongestionMarks => own.packets,
                _ => own.data_packets,
            }),
            value,
            ..TcpFinding::new(connection, kind, end)
        };
        if kind == TcpFindingKind::Loss {
            finding.total_ns = recovering_ns;
            if let Some(loss) = incident_of(connection, IncidentKind::Loss, end) {
                finding.proofs = proofs(connection, &loss.examples);
            }
        }
        found.push(finding);
    };
    let not_lost = counts.spurious + counts.resized + counts.sacked;
    let lost = counts.retransmissions.saturating_sub(not_lost);
    // What a black hole, a silent peer or timers explain is told with them.
    let silent = incident_of(connection, IncidentKind::PeerSilent, end.other());
    let told = count_of(connection, IncidentKind::RepeatedSegment, end)
        + count_of(connection, IncidentKind::RetransmissionTimeout, end)
        + silent.map_or(0, |silent| silent.value_max);
    if lost.saturating_sub(told) >= LOSS_MIN {
        add(TcpFindingKind::Loss, lost, counts.retransmitted_bytes);
    }
    if counts.spurious >= SPURIOUS_MIN {
        add(TcpFindingKind::Spurious, counts.spurious, 0);
    }
    // At the receiver it is seen; at the sender the receiver tells.
    let reordered = counts
        .out_of_order
        .max(detail.ends[end.other() as usize].counts.healed);
    if reordered >= REORDERED_MIN {
        add(TcpFindingKind::Reordering, reordered, 0);
    }
    if counts.congestion_marked > 0 {
        add(TcpFindingKind::CongestionMarks, counts.congestion_marked, 0);
    }
    if counts.superframes > 0 {
        let largest = own.sizes.as_ref().map_or(0, |sizes| sizes.max_bytes);
        add(
            TcpFindingKind::Superframes,
            counts.superframes,
            u64::from(largest),
        );
    }
    if counts.small >= SMALL_MIN
        && counts.small > own.data_packets / 2
        && is_streaming(connection, end)
    {
        let mean = own.payload_bytes / u64::from(own.data_packets.max(1));
        add(TcpFindingKind::SmallSegments, counts.small, mean);
    }
    found
}

/// Returns whether an end sends segments one behind the other, rather than one for each answer.
fn is_streaming(connection: &ConnectionReport, end: End) -> bool {
    let trains = incident_of(connection, IncidentKind::SmallSegments, end);
    trains.is_some_and(|trains| trains.value_max >= connection.end(end).data_packets / 4)
}

/// Keeps of several hosts with small segments the one that was sent most of them: half of the
/// Internet lies behind tunnels, and one line says so.
fn join_clamped(found: &mut Vec<TcpFinding>) {
    let is_clamped = |finding: &&TcpFinding| finding.kind == TcpFindingKind::ClampedMss;
    let all = found.iter().filter(is_clamped);
    let Some(most) = all.clone().max_by_key(|finding| finding.count).cloned() else {
        return;
    };
    let others = all.count() as u32 - 1;
    found.retain(|finding| finding.kind != TcpFindingKind::ClampedMss);
    found.push(TcpFinding { others, ..most });
}

/// A segment size below what Ethernet carries, where many such segments were sent: a tunnel, a
/// provider's access, or a router that rewrites the option.
fn clamped_mss(connection: &ConnectionReport, end: End) -> Option<TcpFinding> {
    /// Below it lies no link; such values are set on purpose.
    const MSS_MIN: u16 = 500;
    /// Fewer full segments make no difference.
    const SEGMENTS_MIN: u32 = 64;
    let whole = match connection.client.address {
        IpAddr::V4(_) => 1460,
        IpAddr::V6(_) => 1440,
    };
    let mss = connection.end(end).offer?.mss_bytes?.get();
    if !(MSS_MIN..whole).contains(&mss) {
        return None;
    }
    let toward = connection.end(end.other());
    let full = toward.data_packets.saturating_sub(toward.counts?.small);
    if full < SEGMENTS_MIN {
        return None;
    }
    Some(TcpFinding {
        count: u64::from(full),
        value: u64::from(mss),
        out_of: u64::from(whole),
        ..TcpFinding::new(connection, TcpFindingKind::ClampedMss, end)
    })
}

fn missing_scaling(connection: &ConnectionReport) -> Option<TcpFinding> {
    let (client, server) = (connection.from_client.offer?, connection.from_server.offer?);
    if client.options_cut || server.options_cut {
        return None;
    }
    let end = match (client.window_scale, server.window_scale) {
        (Some(_), Some(_)) => return None,
        (None, _) => End::Client,
        (Some(_), None) => End::Server,
    };
    let ends = || End::BOTH.into_iter().map(|end| connection.end(end));
    let is_needed = ends().any(|own| {
        let flight = own.flight_bytes_max.unwrap_or(0);
        own.payload_bytes >= 2 * WINDOW_BYTES_MIN && flight >= UNSCALED_BYTES_MAX / 2
    });
    is_needed.then(|| TcpFinding {
        count: 1,
        value: u64::from(UNSCALED_BYTES_MAX),
        round_trip_ns: ends().filter_map(|own| Some(own.round_trip?.min_ns)).max(),
        ..TcpFinding::new(connection, TcpFindingKind::NoWindowScaling, end)
    })
}
