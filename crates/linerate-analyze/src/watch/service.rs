//! What holds the connections of a service that is not ours, by what the kernels of one or both ends count.
//!
//! Each of the busiest connections is made the one flow of a trial whose window is the time that was watched, so that it is
//! reduced, and its facts are read, as those of our own flows are. The sender's kernel shares out its time itself: nothing to
//! send, waiting for the receive window, waiting for the send buffer, and sending (`Clock`). Where one of them has most of it,
//! the causes are those of that clock, and facts tell which; where they do not, those that are left standing are shown.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use linerate_model::experiment::{Cell, Experiment, Timing};
use linerate_model::host::{Availability, Snapshot};
use linerate_model::limiter::Limiter;
use linerate_model::metric::Metric;
use linerate_model::plan::{Plan, Trial};
use linerate_model::run::{
    Admission, ClockFit, FlowOutcome, FlowRecord, HostPart, HostProgram, HostRecord, Incoming,
    Recording, RunDocument, TrialRecord, Validity,
};
use linerate_model::sample::{End, Sample, Subject, TrialSample};
use linerate_model::setting;
use linerate_model::socket::{SocketRow, TcpInfo, TcpMore};
use linerate_model::unit::Nanos;
use linerate_model::workload::{Direction, Part, Setting, Workload};
use linerate_model::{FlowId, HostName, TrialId};
use serde::Serialize;

use crate::clocks::{Clock, Clocks};
use crate::dataset::{CellOutcomes, Dataset};
use crate::diagnose::{limits, of_cell_among};
use crate::evidence::{FACTS, Source};
use crate::reduce::name;

/// The document, and the number of its shape.
const EXPLAIN_SCHEMA: (&str, u32) = ("linerate.explain", 1);
/// Connections that are explained one by one.
const SHOWN_MAX: usize = 8;
/// Facts that are about workers of ours, and the CPUs that they run on: of a service there are none.
const OF_WORKERS: &[Source] = &[
    Source::Workers,
    Source::Waiting,
    Source::OtherPrograms,
    Source::Cpus,
    Source::Quota,
    Source::Steal,
];
/// Facts that are shown of each.
const REASONS_SHOWN: usize = 3;

/// One reading of a host's sockets, and what else its observers read.
#[derive(Debug, Clone)]
pub struct Look {
    /// When the sockets were read, on the host's CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Its connections.
    pub rows: Vec<SocketRow>,
    /// How many more there are.
    pub beyond: u64,
    /// Names and numbers of the processes that hold them, by the sockets' inodes.
    pub owners: BTreeMap<u64, String>,
    /// What the observers read.
    pub samples: Vec<Sample>,
}

/// All that was read of one host.
#[derive(Debug, Clone)]
pub struct Side {
    /// Its name.
    pub name: String,
    /// What it is.
    pub facts: Snapshot,
    /// What can be observed there.
    pub observers: Vec<Availability>,
    /// The readings, two or more, in their order.
    pub looks: Vec<Look>,
}

/// What holds a service's connections.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Explained {
    /// Always `linerate.explain`.
    pub schema: &'static str,
    /// The number of `EXPLAIN_SCHEMA`.
    pub schema_version: u32,
    /// The host that was watched.
    pub host: String,
    /// The host at the other end, if it was watched, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_host: Option<String>,
    /// For how long.
    pub seconds: f64,
    /// Connections that were there all the time and moved payload.
    pub connections: usize,
    /// Connections that were there all the time and moved none.
    pub idle: usize,
    /// Connections that were there at the end and not at the begin.
    pub opened: usize,
    /// Connections that were there at the begin and not at the end.
    pub closed: usize,
    /// Payload of all connections that this host sent, bit/s.
    pub sent_bps: f64,
    /// Payload of all connections that this host received, bit/s.
    pub received_bps: f64,
    /// What the time of the connections that this end sends on went to, each by its payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// The other ends with most payload: address, and its share of all.
    pub peers: Vec<Peer>,
    /// The busiest connections.
    pub flows: Vec<ExplainedFlow>,
    /// What could not be seen.
    pub unseen: Vec<String>,
}

/// An other end.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Peer {
    /// Its address.
    pub address: String,
    /// Connections with it.
    pub connections: usize,
    /// Payload in both directions, bit/s.
    pub bps: f64,
}

/// One connection, in the direction in which it moves most.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ExplainedFlow {
    /// This host's end.
    pub local: String,
    /// The other end.
    pub remote: String,
    /// The process that holds it, `NAME/PID`, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether this host's end is the one that sends.
    pub sends: bool,
    /// Payload, bit/s.
    pub bps: f64,
    /// What the sender's time went to, where the sender's kernel was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// Smoothed round trip in nanoseconds, mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<f64>,
    /// Shortest round trip that TCP knows, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_min_ns: Option<f64>,
    /// Share of the segments that were retransmitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_share: Option<f64>,
    /// What holds it; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limiter: Option<Limiter>,
    /// What is left standing where it is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub standing: Vec<Limiter>,
    /// The facts that speak for it.
    pub because: Vec<&'static str>,
}

/// A connection that was there from the first reading to the last.
struct Course<'s> {
    first: TcpInfo,
    last: &'s SocketRow,
    tcp: TcpInfo,
    owner: Option<&'s String>,
}

impl Course<'_> {
    fn ends(&self) -> (SocketAddr, SocketAddr) {
        (self.last.local, self.last.remote)
    }

    fn sent(&self) -> u64 {
        self.tcp.bytes_acked.saturating_sub(self.first.bytes_acked)
    }

    fn received(&self) -> u64 {
        self.tcp
            .bytes_received
            .saturating_sub(self.first.bytes_received)
    }

    fn sends(&self) -> bool {
        self.sent() >= self.received()
    }

    fn moved(&self) -> u64 {
        self.sent() + self.received()
    }

    fn clocks(&self, watched_ns: u64) -> Clocks {
        let ran = |of: fn(&TcpInfo) -> u64| {
            of(&self.tcp).saturating_sub(of(&self.first)) as f64 * 1e3 / watched_ns.max(1) as f64
        };
        Clocks::of(
            ran(|tcp| tcp.busy_us),
            ran(|tcp| tcp.rwnd_limited_us),
            ran(|tcp| tcp.sndbuf_limited_us),
        )
    }
}

impl Side {
    /// From when to when its readings go, so that each counter was read at or after both.
    fn span(&self) -> Option<(u64, u64)> {
        let earliest = |look: &Look| {
            let samples = look.samples.iter().map(|sample| sample.at_ns);
            samples.chain([look.at_ns]).min()
        };
        let (first, last) = (self.looks.first()?, self.looks.last()?);
        let span = (earliest(first)?, earliest(last)?);
        (span.0 < span.1).then_some(span)
    }

    fn courses(&self) -> Vec<Course<'_>> {
        let (Some(first), Some(last)) = (self.looks.first(), self.looks.last()) else {
            return Vec::new();
        };
        let begun: BTreeMap<u64, TcpInfo> = first
            .rows
            .iter()
            .filter_map(|row| Some((row.cookie, row.tcp?)))
            .collect();
        let course = |row: &'_ SocketRow| begun.get(&row.cookie).copied().zip(row.tcp);
        let rows = last.rows.iter().filter_map(|row| {
            let (first, tcp) = course(row)?;
            Some(Course {
                first,
                last: row,
                tcp,
                owner: last.owners.get(&row.inode),
            })
        });
        rows.collect()
    }
}

/// Explains what was read of a host, with what was read of the host at the other end, if it was watched, too. Nothing of a
/// host of which there are not two readings.
pub fn explain(here: &Side, there: Option<&Side>) -> Option<Explained> {
    let (begin, end) = here.span()?;
    // Sockets are read beside the observers, at their own instants.
    let (first, last) = (here.looks.first()?, here.looks.last()?);
    let watched_ns = last.at_ns.checked_sub(first.at_ns).filter(|ns| *ns > 0)?;
    let mut courses = here.courses();
    courses.sort_by_key(|course| std::cmp::Reverse(course.moved()));
    let seconds = watched_ns as f64 / 1e9;
    let bps = |bytes: u64| bytes as f64 * 8.0 / seconds;
    let moving: Vec<&Course<'_>> = courses.iter().filter(|course| course.moved() > 0).collect();
    let cookies =
        |look: &Look| -> BTreeSet<u64> { look.rows.iter().map(|row| row.cookie).collect() };
    let (first, last) = (cookies(first), cookies(last));
    // Of a connection of this host with itself the sender's end is told.
    let ends: BTreeSet<(SocketAddr, SocketAddr)> =
        moving.iter().map(|course| course.ends()).collect();
    let is_told = |course: &&Course<'_>| {
        let (local, remote) = course.ends();
        course.sends() || !ends.contains(&(remote, local))
    };
    let is_with_itself = ends
        .iter()
        .any(|(local, remote)| ends.contains(&(*remote, *local)));
    let there = there.or(is_with_itself.then_some(here));
    let shown = moving.iter().copied().filter(is_told).take(SHOWN_MAX);
    let shown: Vec<&Course<'_>> = shown.collect();
    let recording = recording(&shown, here, there, end - begin);
    let dataset = Dataset::new(&recording);
    let flows = shown.iter().enumerate().map(|(at, course)| {
        let found = dataset
            .cells
            .iter()
            .find(|cell| cell.experiment.name == experiment_name(at));
        flow(&dataset, found, course, watched_ns)
    });
    let flows: Vec<ExplainedFlow> = flows.collect();
    Some(Explained {
        schema: EXPLAIN_SCHEMA.0,
        schema_version: EXPLAIN_SCHEMA.1,
        host: here.name.clone(),
        other_host: there
            .map(|side| side.name.clone())
            .filter(|name| *name != here.name),
        seconds,
        connections: moving.iter().copied().filter(is_told).count(),
        idle: courses.len() - moving.len(),
        opened: last.difference(&first).count(),
        closed: first.difference(&last).count(),
        sent_bps: bps(courses.iter().map(Course::sent).sum()),
        received_bps: bps(courses.iter().map(Course::received).sum()),
        clocks: Clocks::mean(
            moving
                .iter()
                .filter(|course| course.sends())
                .map(|course| (course.clocks(watched_ns), course.sent() as f64)),
        ),
        peers: peers(&moving, seconds),
        unseen: unseen(here, there, &flows),
        flows,
    })
}

fn peers(moving: &[&Course<'_>], seconds: f64) -> Vec<Peer> {
    let mut by_address: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for course in moving {
        let one = by_address
            .entry(course.last.remote.ip().to_string())
            .or_default();
        *one = (one.0 + 1, one.1 + course.moved());
    }
    let peer = |(address, (connections, bytes))| Peer {
        address,
        connections,
        bps: bytes as f64 * 8.0 / seconds,
    };
    let mut peers: Vec<Peer> = by_address.into_iter().map(peer).collect();
    peers.sort_by(|a, b| b.bps.total_cmp(&a.bps));
    peers.truncate(SHOWN_MAX);
    peers
}

fn flow(
    dataset: &Dataset<'_>,
    cell: Option<&CellOutcomes<'_>>,
    course: &Course<'_>,
    watched_ns: u64,
) -> ExplainedFlow {
    let value = |name: &str| cell.and_then(|cell| cell.mean(name));
    let of_other = || {
        let [window, buffer] = [name::RWND_LIMITED, name::SNDBUF_LIMITED].map(value);
        Some(Clocks::of(value(name::BUSY)?, window?, buffer?))
    };
    let clocks = if course.sends() {
        Some(course.clocks(watched_ns))
    } else {
        of_other()
    };
    let clock = clocks.as_ref().and_then(Clocks::most);
    let of_clock = clock.map_or(Clock::ALL_LIMITERS, Clock::limiters);
    let inference = cell.map(|cell| of_cell_among(dataset, cell, of_clock, OF_WORKERS));
    // Of one limiter that a clock can mean the clock itself is the proof.
    let limiter = match (clock, of_clock) {
        (Some(_), [one]) => Some(*one),
        _ => {
            let both = cell.and_then(|cell| limits(dataset, cell));
            let both = both.filter(|limiter| of_clock.contains(limiter));
            both.or(inference.as_ref().and_then(|inference| inference.limiter))
        }
    };
    // A clock that can mean two leaves both; of the many that sending can mean those are left that facts show.
    let standing = match (&limiter, &inference, of_clock) {
        (Some(_), ..) | (_, None, _) => Vec::new(),
        (None, Some(_), [one, other]) => vec![*one, *other],
        (None, Some(inference), _) => inference.standing(),
    };
    let because = inference.iter().flat_map(|inference| {
        let telling = |fact: &&usize| FACTS[**fact].source != Source::Traffic;
        inference.because.iter().filter(telling).take(REASONS_SHOWN)
    });
    let bytes = if course.sends() {
        course.sent()
    } else {
        course.received()
    };
    ExplainedFlow {
        local: course.last.local.to_string(),
        remote: course.last.remote.to_string(),
        owner: course.owner.cloned(),
        sends: course.sends(),
        bps: bytes as f64 * 8e9 / watched_ns as f64,
        clocks,
        rtt_ns: value(name::TCP_RTT),
        rtt_min_ns: value(name::TCP_MIN_RTT),
        retransmitted_share: value(name::RETRANSMITTED_SHARE),
        limiter,
        standing,
        because: because.map(|fact| FACTS[*fact].words).collect(),
    }
}

fn unseen(here: &Side, there: Option<&Side>, flows: &[ExplainedFlow]) -> Vec<String> {
    let mut unseen = Vec::new();
    let beyond = here.looks.last().map_or(0, |look| look.beyond);
    if beyond > 0 {
        unseen.push(format!(
            "connections beyond those that were read, for their number: {beyond}"
        ));
    }
    let one_sided = flows.iter().filter(|flow| flow.clocks.is_none()).count();
    if one_sided > 0 {
        unseen.push(match there {
            None => format!(
                "the sender's end of {one_sided} of the connections shown: watch that host, too (--with HOST)"
            ),
            Some(there) => format!(
                "the sender's end of {one_sided} of the connections shown: {} has no such connection, which something between \
                 the hosts ends, or address translation renames",
                there.name
            ),
        });
    }
    unseen.push(
        "what each program waits for: workers and calls are watched of linerate's own flows alone"
            .to_owned(),
    );
    let there = there.filter(|there| there.name != here.name);
    for side in [Some(here), there].into_iter().flatten() {
        let missing = side.observers.iter().filter(|one| one.missing.is_some());
        let missing: Vec<String> = missing.map(|one| one.observer.to_string()).collect();
        if !missing.is_empty() {
            unseen.push(format!("{} at {}", missing.join(", "), side.name));
        }
    }
    unseen
}

fn experiment_name(at: usize) -> String {
    format!("connection-{}", at + 1)
}

fn host(side: &Side, part: HostPart, name: &str) -> HostRecord {
    HostRecord {
        name: name.into(),
        part,
        agent: String::new(),
        control: None,
        data_address: String::new(),
        version: String::new(),
        program: HostProgram::Agent,
        lab: false,
        boot: None,
        link_rate: None,
        link_up_rate: None,
        lab_link: None,
        link_loss_ppm: None,
        groups: Vec::new(),
        link: None,
        snapshot: side.facts.clone(),
        observers: side.observers.clone(),
        clock: ClockFit {
            offset_ns: 0,
            uncertainty_ns: 0,
            drift_ppb: None,
        },
        admission: Admission::Exclusive,
    }
}

/// Makes a trial of each connection, all over the same time.
fn recording(
    shown: &[&Course<'_>],
    here: &Side,
    there: Option<&Side>,
    window_ns: u64,
) -> Recording {
    let timing = Timing {
        settle: Nanos(0),
        warm_up: Nanos(0),
        measure: Nanos(window_ns),
        drain: Nanos(0),
    };
    let mut plan = Plan {
        experiments: Vec::new(),
        trials: Vec::new(),
        seed: 0,
        estimate: Nanos(window_ns),
        budget: None,
        left_out: Vec::new(),
        optional: Vec::new(),
        repeats: Vec::new(),
        stages: Vec::new(),
        margins: Default::default(),
    };
    for (at, course) in shown.iter().enumerate() {
        let direction = if course.sends() {
            Direction::FromServer
        } else {
            Direction::ToServer
        };
        let workload = Workload::stream(direction);
        plan.experiments.push(Experiment::plain(
            &experiment_name(at),
            workload.clone(),
            timing,
            1,
        ));
        plan.trials.push(Trial {
            id: id(at),
            experiment: experiment_name(at),
            cell: Cell::new(),
            replicate: 1,
            seed: 0,
            workload,
            beside: Vec::new(),
            hosts: Vec::new(),
            step: 0,
            timing,
        });
    }
    let server = host(here, HostPart::Server, SERVER);
    let client = there.map(|there| host(there, HostPart::Client, CLIENT));
    let document = RunDocument {
        hosts: [server].into_iter().chain(client).collect(),
        ..RunDocument::of_plan(plan)
    };
    let mut recording = Recording::empty(document);
    for (at, course) in shown.iter().enumerate() {
        recording.trials.push(TrialRecord {
            trial: id(at),
            validity: Validity::Valid,
            flags: Vec::new(),
            offset_ns: 0,
            window_ns,
            start_skew_ns: None,
            start_skew_uncertainty_ns: None,
        });
        let ends = course.ends();
        take(
            &mut recording,
            id(at),
            here,
            (SERVER, End::Server),
            ends,
            course.sends(),
        );
        if let Some(there) = there {
            take(
                &mut recording,
                id(at),
                there,
                (CLIENT, End::Client),
                (ends.1, ends.0),
                !course.sends(),
            );
        }
    }
    recording
}

/// The names of the two hosts in the recording, which may have one name.
const SERVER: &str = "server";
const CLIENT: &str = "client1";

/// Bits of tcpi_options, and what they say (include/uapi/linux/tcp.h).
const AGREED: [(u8, &str); 2] = [(2, setting::SACK), (4, setting::WINDOW_SCALING)];

fn id(at: usize) -> TrialId {
    TrialId(at as u32 + 1)
}

/// Adds one end of a connection, and what else was read of its host.
fn take(
    recording: &mut Recording,
    trial: TrialId,
    side: &Side,
    (name, end): (&str, End),
    (local, remote): (SocketAddr, SocketAddr),
    sends: bool,
) {
    let host = HostName::from(name);
    let Some((begin, _)) = side.span() else {
        return;
    };
    let mut add = |subject: &Subject, metric, at_ns: u64, value| {
        recording.samples.push(TrialSample {
            trial,
            host: host.clone(),
            subject: subject.clone(),
            metric,
            at_ns: at_ns as i64 - begin as i64,
            value,
        });
    };
    let flow = Subject::Flow(FlowId(0), end);
    let (mut begun, mut last) = (None, None);
    for look in &side.looks {
        for sample in &look.samples {
            add(&sample.subject, sample.metric, sample.at_ns, sample.value);
        }
        let is_it = |row: &&SocketRow| row.local == local && row.remote == remote;
        let Some(row) = look.rows.iter().find(is_it) else {
            continue;
        };
        let Some(tcp) = row.tcp else { continue };
        let begun = *begun.get_or_insert(tcp);
        for (metric, value) in counted(row, &tcp, &begun) {
            add(&flow, metric, look.at_ns, value);
        }
        last = Some((*row, tcp));
    }
    let Some((row, tcp)) = last else { return };
    let part = if sends { Part::Sender } else { Part::Receiver };
    let algorithm = row.congestion.as_str().to_owned();
    let agreed = tcp.more.map(|more| {
        let agreed = AGREED.iter().filter(|(bit, _)| more.options & bit != 0);
        let agreed: Vec<&str> = agreed.map(|(_, name)| *name).collect();
        Setting::seen(setting::name::TCPI_OPTIONS, Some(agreed.join(", ")))
    });
    let algorithm = Setting::seen(setting::name::TCP_CONGESTION, Some(algorithm));
    let settings: Vec<Setting> = [algorithm].into_iter().chain(agreed).collect();
    recording.flows.push(FlowRecord {
        trial,
        host,
        outcome: FlowOutcome {
            flow: FlowId(0),
            end,
            part,
            local: local.to_string(),
            remote: remote.to_string(),
            cpu: None,
            incoming: Incoming::default(),
            first_payload_ns: None,
            bytes_sent: tcp.bytes_sent,
            bytes_received: tcp.bytes_received,
            counted_ns: None,
            stall_max_ns: None,
            settings: settings.into(),
            latency: None,
            lateness: None,
            datagrams: None,
            requests: None,
            connections: None,
            zero_copy: None,
            ended_early: None,
        },
    });
}

/// Returns what a socket counts, as samples of a flow have it. What programs have written and read is what TCP has and what
/// waits in its queues.
fn counted(row: &SocketRow, tcp: &TcpInfo, begun: &TcpInfo) -> Vec<(Metric, i64)> {
    let us = |us: u32| i64::from(us) * 1000;
    let clock = |us: u64| us as i64 * 1000;
    // Counters of 32 bits wrap.
    let count =
        |of: fn(&TcpInfo) -> u32| i64::from(of(begun)) + i64::from(of(tcp).wrapping_sub(of(begun)));
    let more = tcp
        .more
        .zip(begun.more)
        .into_iter()
        .flat_map(|(more, begun)| {
            let count = |of: fn(&TcpMore) -> u32| {
                i64::from(of(&begun)) + i64::from(of(&more).wrapping_sub(of(&begun)))
            };
            let timeouts = more
                .timeouts
                .map(|fired| (Metric::TcpTimeouts, i64::from(fired)));
            let always = [
                (Metric::TcpAppLimited, more.is_app_limited.into()),
                (Metric::TcpDelivered, count(|more| more.delivered)),
                (Metric::TcpDeliveredCe, count(|more| more.delivered_ce)),
                (Metric::TcpBytesRetrans, more.bytes_retrans as i64),
                (Metric::TcpDsackDups, count(|more| more.dsack_dups)),
                (Metric::TcpReordSeen, count(|more| more.reord_seen)),
            ];
            always.into_iter().chain(timeouts)
        });
    // All ones is no limit.
    let pacing = Some(tcp.pacing_bytes_per_s).filter(|rate| *rate < u64::MAX / 2);
    let pacing = pacing.map(|rate| (Metric::TcpPacingRate, (rate as i64).saturating_mul(8)));
    let always = [
        (
            Metric::AppBytesSent,
            tcp.bytes_acked as i64 + i64::from(row.send_queue),
        ),
        (
            Metric::AppBytesReceived,
            tcp.bytes_received as i64 - i64::from(row.receive_queue),
        ),
        (Metric::TcpRtt, us(tcp.rtt_us)),
        (Metric::TcpMinRtt, us(tcp.min_rtt_us)),
        (Metric::TcpCwnd, tcp.snd_cwnd.into()),
        (Metric::TcpUnacked, tcp.unacked.into()),
        (Metric::TcpSndWnd, tcp.snd_wnd_bytes.into()),
        (Metric::TcpRcvWnd, tcp.rcv_wnd_bytes.into()),
        (Metric::TcpSndMss, tcp.snd_mss_bytes.into()),
        (Metric::TcpNotSent, tcp.notsent_bytes.into()),
        (
            Metric::TcpDeliveryRate,
            (tcp.delivery_bytes_per_s as i64).saturating_mul(8),
        ),
        (Metric::TcpSegsOut, count(|tcp| tcp.segs_out)),
        (Metric::TcpSegsIn, count(|tcp| tcp.segs_in)),
        (Metric::TcpDataSegsOut, count(|tcp| tcp.data_segs_out)),
        (Metric::TcpDataSegsIn, count(|tcp| tcp.data_segs_in)),
        (Metric::TcpRetrans, count(|tcp| tcp.total_retrans)),
        (Metric::TcpBytesSent, tcp.bytes_sent as i64),
        (Metric::TcpBytesAcked, tcp.bytes_acked as i64),
        (Metric::TcpBytesReceived, tcp.bytes_received as i64),
        (Metric::TcpBusy, clock(tcp.busy_us)),
        (Metric::TcpRwndLimited, clock(tcp.rwnd_limited_us)),
        (Metric::TcpSndbufLimited, clock(tcp.sndbuf_limited_us)),
    ];
    always.into_iter().chain(more).chain(pacing).collect()
}

#[cfg(test)]
mod tests {
    use linerate_model::socket::{CongestionName, Protocol, SocketState};

    use super::*;

    const SEGMENT: u32 = 1448;

    /// A connection that sends `bytes_per_look` between two readings of 100 ms, of which the clocks have so many microseconds.
    struct Made {
        ends: (&'static str, &'static str),
        bytes_per_look: u64,
        busy_us: u64,
        window_us: u64,
    }

    impl Made {
        fn row(&self, look: u64, cookie: u64, is_sender: bool) -> SocketRow {
            let (bytes, segments) = (
                look * self.bytes_per_look,
                look as u32 * (self.bytes_per_look as u32 / SEGMENT),
            );
            // Wraps on the way.
            let segments = u32::MAX.wrapping_add(segments);
            let (local, remote) = if is_sender {
                self.ends
            } else {
                (self.ends.1, self.ends.0)
            };
            let moved = if is_sender { [bytes, 0] } else { [0, bytes] };
            SocketRow {
                protocol: Protocol::Tcp,
                state: SocketState::Established,
                local: local.parse().unwrap(),
                remote: remote.parse().unwrap(),
                link_index: 0,
                cookie,
                uid: 0,
                inode: cookie,
                receive_queue: 0,
                send_queue: 0,
                memory: None,
                congestion: CongestionName::from_bytes(b"cubic"),
                tcp: Some(TcpInfo {
                    bytes_sent: moved[0],
                    bytes_acked: moved[0],
                    bytes_received: moved[1],
                    segs_out: segments,
                    data_segs_out: segments,
                    busy_us: look * self.busy_us,
                    rwnd_limited_us: look * self.window_us,
                    rtt_us: 10_000,
                    min_rtt_us: 10_000,
                    snd_mss_bytes: SEGMENT,
                    snd_cwnd: 100,
                    unacked: 20,
                    snd_wnd_bytes: 30_000,
                    ..TcpInfo::default()
                }),
            }
        }
    }

    fn side(name: &str, made: &[(&Made, bool)]) -> Side {
        let look = |look: u64| Look {
            at_ns: (7 + look) * 100_000_000,
            rows: made
                .iter()
                .enumerate()
                .map(|(at, (made, is_sender))| made.row(look, at as u64 + 1, *is_sender))
                .collect(),
            beyond: 0,
            owners: BTreeMap::from([(1, "nginx/812".to_owned())]),
            samples: Vec::new(),
        };
        Side {
            name: name.to_owned(),
            facts: Snapshot::default(),
            observers: Vec::new(),
            looks: (0..=20).map(look).collect(),
        }
    }

    const PAUSES: Made = Made {
        ends: ("192.0.2.1:443", "192.0.2.7:40000"),
        bytes_per_look: 14_480,
        busy_us: 20_000,
        window_us: 0,
    };
    const AT_WINDOW: Made = Made {
        ends: ("192.0.2.1:443", "192.0.2.8:40000"),
        bytes_per_look: 144_800,
        busy_us: 100_000,
        window_us: 90_000,
    };

    #[test]
    fn the_kernels_clocks_say_what_a_connection_waits_for() {
        let here = side("web", &[(&AT_WINDOW, true), (&PAUSES, true)]);
        let found = explain(&here, None).expect("there are readings");
        assert_eq!(
            (found.connections, found.idle, found.opened, found.closed),
            (2, 0, 0, 0)
        );
        assert!(
            (found.sent_bps / (8.0 * 1_592_800.0) - 1.0).abs() < 0.01,
            "{found:?}"
        );
        let [window, pauses] = &found.flows[..] else {
            panic!("{found:?}");
        };
        // The window, or who reads behind it: the receiver alone knows.
        assert_eq!(window.limiter, None);
        assert_eq!(
            window.standing,
            [Limiter::ReceiverWindow, Limiter::SlowReader]
        );
        assert_eq!(window.owner.as_deref(), Some("nginx/812"));
        assert!(
            window
                .clocks
                .is_some_and(|clocks| (clocks.window - 0.9).abs() < 0.01)
        );
        assert_eq!(pauses.limiter, Some(Limiter::Application));
        assert!(
            pauses
                .clocks
                .is_some_and(|clocks| (clocks.idle - 0.8).abs() < 0.01)
        );
        assert_eq!(pauses.retransmitted_share, Some(0.0));
        assert_eq!(found.peers[0].address, "192.0.2.8");
        // Of one that only receives the sender's clocks are not there.
        let found = explain(&side("web", &[(&PAUSES, false)]), None).expect("there are readings");
        assert_eq!(
            (found.flows[0].clocks, found.flows[0].limiter),
            (None, None)
        );
        assert!(
            found.unseen.iter().any(|what| what.contains("--with")),
            "{found:?}"
        );
    }

    #[test]
    fn the_other_end_is_joined_by_its_addresses() {
        let here = side("db", &[(&PAUSES, false)]);
        let found =
            explain(&here, Some(&side("web", &[(&PAUSES, true)]))).expect("there are readings");
        assert_eq!(
            found.flows[0].limiter,
            Some(Limiter::Application),
            "{found:?}"
        );
        assert_eq!(found.other_host.as_deref(), Some("web"));
        // What translates addresses between them leaves the other end unknown.
        let found =
            explain(&here, Some(&side("web", &[(&AT_WINDOW, true)]))).expect("there are readings");
        assert_eq!(found.flows[0].limiter, None);
        // Both ends of one host are one connection.
        let both = side("web", &[(&PAUSES, true), (&PAUSES, false)]);
        let found = explain(&both, None).expect("there are readings");
        assert_eq!(
            (found.connections, found.flows.len(), found.other_host),
            (1, 1, None)
        );
    }

    #[test]
    fn one_reading_explains_nothing() {
        let mut here = side("web", &[(&PAUSES, true)]);
        here.looks.truncate(1);
        assert_eq!(explain(&here, None), None);
    }
}
