//! Numbers that cannot be: above what the links carry, or counted as no host counts.
//!
//! A throughput above the payload limit of the links in its way cannot have crossed them; the
//! number is refused rather than shown with a warning, since whoever copies it does not copy the
//! warning.
//!
//! So are all numbers that rest on counts which contradict themselves or each other, whichever agent they come from:
//!
//! 1. What our own program and the kernel count of a flow never falls. Counters of devices and protocols may begin
//!    anew, and are only absent then.
//! 2. No more arrives, at a server of another program neither, than an agent sent in all phases. Totals are compared, not readings of one instant: these
//!    are of two clocks. A segment that is sent again arrives in order once; of a datagram a path may make two, which
//!    have one number.
//! 3. A thread or a CPU is busy no longer than it is there.

use std::collections::BTreeSet;

use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::reason::{Impossible, Moved, Reason};
use linerate_model::response::name;
use linerate_model::run::{FlowRecord, HostProgram, HostRecord};
use linerate_model::sample::{End, Subject};
use linerate_model::workload::{Direction, TrialHost, Workload};
use linerate_model::{BitsPerSec, HostName, Nanos};

use super::cpu_time::BUSY;
use super::raw::Lane;
use super::window::{GROWING, GROWING_OF_TCP, has_fallen};
use super::{Outcome, Raw, Responses, Values};
use crate::wire_use::Path;

/// Share above the limit that is still believed: the clocks of the two ends.
const CLOCK_SHARE: f64 = 0.005;
/// What a shaper or a queue owed when the window began: so much of the link's time may come beside the
/// window's own. A lab's link passes 4 ms of what it owes.
const OWED_NS: f64 = 5_000_000.0;

/// What opens a connection travels in it, and is none of its payload: the client's hello of 32 bytes and an answer.
const OPENING_BYTES: u64 = 128;
/// How late the kernel may bring the times of a thread or a CPU up to date: a CPU without ticks (nohz_full) has one in a
/// second. So much of what was before the first reading may count in the last.
const UPDATED_NS: f64 = 1e9;
/// How much of the window a reading may be late of itself, at either edge, before the trial is invalid for that.
const LATE_SHARE: f64 = 0.1;

/// Returns why the counts of the hosts are refused, if they are.
pub(super) fn impossible(raw: &Raw<'_>) -> Option<Reason> {
    let of_agents = raw.readings.subjects().filter(|(_, on)| is_agent(raw, on));
    let mut of_one = of_agents.filter_map(|(subject, host)| {
        let how = match subject {
            Subject::Flow(..) => fell(raw, host, subject),
            Subject::Thread(_) => too_busy(raw, host, subject, &[Metric::ThreadRun]),
            // What others took and what it waited are guesses of the kernel, which may jump.
            Subject::Cpu(_) => too_busy(raw, host, subject, BUSY),
            _ => None,
        }?;
        let host = host.clone();
        Some(Reason::Impossible { host, how })
    });
    of_one.next().or_else(|| {
        let lanes = raw.lanes.iter();
        let mut ends = lanes.flat_map(|lane| End::BOTH.map(|end| (lane, end)));
        ends.find_map(|(lane, end)| unsent(raw, lane, end))
    })
}

fn is_agent(raw: &Raw<'_>, host: &HostName) -> bool {
    let host = raw.host(host);
    host.is_some_and(|host| host.program == HostProgram::Agent)
}

fn fell(raw: &Raw<'_>, host: &HostName, subject: &Subject) -> Option<Impossible> {
    let transport = raw.trial.workload.manner.transport;
    let mut metrics = GROWING.iter().chain(&GROWING_OF_TCP);
    let metric = metrics.find(|metric| {
        let series = raw.readings.on(host, subject, **metric).unwrap_or_default();
        let values = || std::iter::once(0).chain(series.iter().map(|reading| reading.1));
        let mut steps = values().zip(values().skip(1));
        steps.any(|(before, after)| has_fallen(**metric, transport, before, after))
    })?;
    Some(Impossible::Fell {
        metric: *metric,
        subject: subject.clone(),
    })
}

fn too_busy(
    raw: &Raw<'_>,
    host: &HostName,
    subject: &Subject,
    metrics: &[Metric],
) -> Option<Impossible> {
    let changes = metrics.iter();
    let changes = changes.filter_map(|metric| raw.readings.change_on(host, subject, *metric));
    let (busy_ns, there_s) = changes.fold((0.0, 0.0_f64), |(busy_ns, there_s), change| {
        (busy_ns + change.amount, there_s.max(change.seconds))
    });
    let there_ns = 1e9 * there_s;
    let most_ns = there_ns * (1.0 + 2.0 * LATE_SHARE) + UPDATED_NS;
    (there_ns > 0.0 && busy_ns > most_ns).then(|| Impossible::Beyond {
        subject: subject.clone(),
        times: busy_ns / there_ns,
    })
}

/// Returns that `end` of a flow says to have more than the other end, an agent, sent in all. A sender that is none may
/// count less than all phases.
fn unsent(raw: &Raw<'_>, lane: &Lane<'_>, end: End) -> Option<Reason> {
    let record = |end| {
        let mut records = raw.records.iter();
        records.find(|record| record.flow == lane.flow && record.end == end)
    };
    let (receiver, sender) = (record(end)?, record(end.other())?);
    if !is_agent(raw, &sender.host) {
        return None;
    }
    let workload = &raw.trial.workload;
    let moved = match workload.manner.transport {
        Transport::Udp => datagrams(raw, lane, receiver, sender),
        Transport::Tcp | Transport::Mptcp | Transport::Unix => {
            vec![payload(lane, receiver, sender)]
        }
    };
    let responses = responses(workload, lane, receiver, sender);
    let mut moved = moved.into_iter().chain(responses);
    let (what, arrived, sent) = moved.find(|(_, arrived, sent)| arrived > sent)?;
    Some(Reason::Impossible {
        host: receiver.host.clone(),
        how: Impossible::Unsent {
            flow: lane.flow,
            what,
            arrived,
            sender: sender.host.clone(),
            sent,
        },
    })
}

/// What arrived, and how much may have.
type Balance = (Moved, u64, u64);

fn payload(lane: &Lane<'_>, receiver: &FlowRecord, sender: &FlowRecord) -> Balance {
    let by_app = last(lane, receiver.end, Metric::AppBytesReceived);
    let by_tcp = last(lane, receiver.end, Metric::TcpBytesReceived);
    let arrived = receiver.bytes_received.max(by_app).max(by_tcp);
    let sent = sender.bytes_sent.saturating_add(OPENING_BYTES);
    (Moved::Bytes, arrived, sent)
}

/// Those of a stream: a requester gives up what is late, and its responder answers a request twice that came twice.
/// Others do not tell which of them came again: a path that makes two of each is the worst that there is.
fn datagrams(
    raw: &Raw<'_>,
    lane: &Lane<'_>,
    receiver: &FlowRecord,
    sender: &FlowRecord,
) -> Vec<Balance> {
    let workload = &raw.trial.workload;
    let of_stream = workload.traffic.stream();
    let both = of_stream.zip(receiver.datagrams.as_ref().zip(sender.datagrams.as_ref()));
    let Some(((_, one_bytes), (got, gave))) = both else {
        return Vec::new();
    };
    let last = |metric| last(lane, receiver.end, metric);
    let again = if is_agent(raw, &receiver.host) {
        last(Metric::AppDatagramsDuplicate).max(got.duplicates)
    } else {
        gave.sent
    };
    let all = last(Metric::AppDatagramsReceived).max(got.received);
    let bytes = last(Metric::AppBytesReceived).max(receiver.bytes_received);
    let sizes = workload.manner.sizes.as_ref();
    let most_bytes = sizes.map_or(one_bytes, |sizes| sizes.largest()).0;
    let bytes_again = again.saturating_mul(most_bytes);
    vec![
        (Moved::Datagrams, all.saturating_sub(again), gave.sent),
        (
            Moved::Bytes,
            bytes,
            sender.bytes_sent.saturating_add(bytes_again),
        ),
    ]
}

fn responses(
    workload: &Workload,
    lane: &Lane<'_>,
    receiver: &FlowRecord,
    sender: &FlowRecord,
) -> Option<Balance> {
    let is_requester = receiver.end == lane.receiver.other() && workload.manner.sizes.is_none();
    let (_, one) = workload.traffic.exchange().filter(|_| is_requester)?;
    let whole = sender.bytes_sent.checked_div(one.0)?;
    let complete = last(lane, receiver.end, Metric::AppTransactions);
    Some((Moved::Responses, complete, whole))
}

/// Returns the last reading of a counter of one end.
fn last(lane: &Lane<'_>, end: End, metric: Metric) -> u64 {
    let series = lane.series(end, metric);
    let last = series.and_then(|series| Some(series.last()?.1));
    last.and_then(|value| u64::try_from(value).ok())
        .unwrap_or(0)
}

/// Returns the share by which a number may lie above what the links carry in `window`.
pub(crate) fn tolerance(window: Nanos) -> f64 {
    CLOCK_SHARE.max(OWED_NS / window.0.max(1) as f64)
}

/// Returns why the throughput of a direction is refused, if it is.
pub(super) fn refusal(raw: &Raw<'_>, window: Nanos, responses: &Responses) -> Option<Reason> {
    let workload = &raw.trial.workload;
    let tolerance = tolerance(window);
    let path = Path::new(raw.hosts).with(&raw.trial.cell);
    let of_direction = |direction| {
        let ceiling = path.ceiling(workload, direction)?;
        let rate = one_way_bps(workload, responses, direction)?;
        let rate = BitsPerSec(rate);
        let is_beyond = rate.0 > ceiling.payload.0 * (1.0 + tolerance);
        is_beyond.then_some(Reason::Beyond { rate, ceiling })
    };
    [Direction::ToServer, Direction::FromServer]
        .into_iter()
        .find_map(of_direction)
}

/// Returns why the throughput of all groups of a trial together is refused, if it is: the ceiling is that of the group
/// whose packets carry most.
pub(crate) fn beyond_together(
    hosts: &[HostRecord],
    window: Nanos,
    groups: &[(&Trial, &Outcome)],
) -> Option<Reason> {
    let tolerance = tolerance(window);
    let path = Path::new(hosts);
    // Groups of several clients have the links of all of these.
    let flows = groups.iter().flat_map(|(trial, _)| trial.workload.flows());
    let from: BTreeSet<u32> = flows.map(|flow| flow.from).collect();
    let of_all = |workload: &Workload| Workload {
        clients: from.len() as u32,
        from: from.iter().map(|host| TrialHost(*host)).collect(),
        ..workload.clone()
    };
    let of_direction = |direction| {
        let ceilings = groups.iter();
        let ceilings = ceilings.filter_map(|(trial, _)| {
            let path = path.with(&trial.cell);
            path.ceiling(&of_all(&trial.workload), direction)
        });
        let ceiling = ceilings.max_by(|a, b| a.payload.0.total_cmp(&b.payload.0))?;
        // What was not read of one is no less than nothing.
        let rates = groups.iter();
        let rates =
            rates.filter_map(|(of, outcome)| one_way_bps(&of.workload, *outcome, direction));
        let rate = BitsPerSec(rates.sum());
        let is_beyond = rate.0 > ceiling.payload.0 * (1.0 + tolerance);
        is_beyond.then_some(Reason::Beyond { rate, ceiling })
    };
    [Direction::ToServer, Direction::FromServer]
        .into_iter()
        .find_map(of_direction)
}

/// Payload per second that goes in `direction`.
fn one_way_bps(workload: &Workload, responses: &impl Values, direction: Direction) -> Option<f64> {
    let to_server = direction == Direction::ToServer;
    match workload.traffic.exchange() {
        Some((request, response)) => {
            let bytes = if to_server { request } else { response };
            Some(8.0 * bytes.0 as f64 * responses.value(name::TRANSACTIONS)?)
        }
        None if to_server => responses.value(name::THROUGHPUT_TO_SERVER),
        None => responses.value(name::THROUGHPUT_FROM_SERVER),
    }
}
