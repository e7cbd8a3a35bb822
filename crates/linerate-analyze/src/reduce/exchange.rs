//! Where the time of an exchange goes, as far as the counters of both ends tell.
//!
//! 1. *Path*: the shortest round trip that TCP saw at either end (of connections made for one transaction, at
//!    the client's and of one in 64). It holds both hosts' least work. Clients
//!    lie at different distances: it is each client's own, and what is compared with it, too. Means of
//!    round trips are over transactions, as the mean round trip is.
//! 2. *Loaded path*: TCP's smoothed round trip, of the end at which it is shorter. The requester's
//!    holds what the responder takes to answer, since the acknowledgement rides on the response; the
//!    responder's holds what the requester takes to ask again, which is next to nothing where the next
//!    request follows a response. What both have is on the way between them.
//! 3. *Waiting for a CPU* and *running*: shares of the time of the workers of both parts (schedstat) ×
//!    the mean round trip. With one flow a worker that is exact; with several it is the most that it
//!    can be.
//! 4. *Slow* transactions: those that took [`TIMEOUT_EXCESS_NS`] longer than the fastest tenth, and
//!    what they add to the mean. *Stalled* ones took [`STALL_EXCESS_NS`] longer than the path. They are
//!    counted, to be held against the counters of the timers that could have made them.
//! 5. *Losing*: share of the steps from reading to reading in which an end sent segments again, of the end with more.
//!    What is lost at once is one event, however much it was.
//!
//! Counters of hosts are of the network namespace: other traffic counts in them.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::histogram::Histogram;
use linerate_model::manner::WaitBy;
use linerate_model::metric::Metric;
use linerate_model::response::name;
use linerate_model::run::{HostPart, HostRecord};
use linerate_model::sample::{End, Subject};
use linerate_model::step::turns;
use linerate_model::workload::Workload;
use linerate_model::{Bytes, FlowId, HostName};

use super::evidence::deviation_of;
use super::floors;
use super::raw::{Lane, Raw};
use super::window::mean;
use super::{Responses, pooled_latency};

/// Longer than the fastest tenth by this, a transaction may have waited for a retransmission timeout:
/// 200 ms at the least (TCP_RTO_MIN in include/net/tcp.h), which a loss probe shares where one packet
/// is out, less the share of it that the fastest tenth may lie above the path.
pub(crate) const TIMEOUT_EXCESS_NS: f64 = 150e6;
/// Longer than the path by this, a transaction may have waited for the delayed-ACK timer: its 40 ms
/// (TCP_DELACK_MIN) less one tick of 10 ms of a kernel with HZ=100.
pub(crate) const STALL_EXCESS_NS: f64 = 30e6;
/// The longest that a receiver delays an acknowledgement (TCP_DELACK_MAX, HZ / 5), and a tick.
pub(crate) const DELAYED_ACK_NS_MAX: f64 = 210e6;

/// Payload of a full segment on the usual path: MTU 1500, IPv4, timestamps. Nagle's algorithm holds a message of less.
pub(crate) const SEGMENT_BYTES: u64 = 1448;

pub(super) fn reduce(raw: &Raw<'_>, responses: &mut Responses) {
    let trial = raw.trial;
    if !trial.workload.traffic.is_transactional() {
        return;
    }
    let lanes = raw.lanes.iter().copied();
    let floors = floors::of_trial(lanes, |_| vec![End::Client, End::Server]);
    path(raw, &floors, responses);
    timers(raw, responses);
    steps(raw, responses);
    let Some(mean_ns) = pooled_latency(&raw.records).mean_ns() else {
        return;
    };
    // Transactions with pauses are as long as these, and workers that pause may spin.
    if trial.workload.manner.has_pauses() {
        return;
    }
    let latencies = by_client(raw);
    slow(&latencies, responses);
    let stalled = latencies.iter().filter_map(|(client, latency)| {
        let path_ns = *floors.get(client)?;
        let longest = DELAYED_ACK_NS_MAX + 2.0 * path_ns;
        let least_ns = path_ns * Way::of(&trial.workload).trips();
        let is_stalled = |ns: f64| (STALL_EXCESS_NS..=longest).contains(&(ns - least_ns));
        Some(counted(latency, is_stalled))
    });
    responses.put(name::STALLED, stalled.reduce(|sum, one| sum + one));
    for (name, metric) in [
        (name::RTT_CPU_WAIT, Metric::ThreadWait),
        (name::RTT_WORKERS, Metric::ThreadRun),
    ] {
        // A worker that spins runs always, whatever the exchange takes of it.
        if trial.workload.manner.wait == WaitBy::Spin && metric == Metric::ThreadRun {
            continue;
        }
        let parts = [HostPart::Client, HostPart::Server];
        let shares = parts.map(|part| workers_share(raw, part, metric));
        let known = shares.iter().any(Option::is_some);
        let share = shares.into_iter().flatten().sum::<f64>().min(1.0);
        responses.put(name, known.then_some(share * mean_ns));
    }
}

/// How often a transaction of small messages goes over the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// There and back.
    Once,
    /// Once for each answer in an exchange of several steps.
    Answers(u32),
    /// Once more to connect.
    Connects,
    /// Once more for the second piece of a request, which Nagle's algorithm holds until the first is acknowledged.
    HoldsPieces,
    /// Of several small requests under way on a connection: Nagle's algorithm holds each until those before it are
    /// acknowledged, and its response likewise.
    HoldsMessages,
}

impl Way {
    pub(crate) fn of(workload: &Workload) -> Self {
        // A cork holds the pieces together.
        let may_hold = workload.manner.transport.is_tcp()
            && workload.options.nagle != Some(false)
            && workload.options.cork != Some(true);
        let (traffic, manner) = (&workload.traffic, &workload.manner);
        let is_small =
            |(request, response): (Bytes, Bytes)| request.max(response).0 < SEGMENT_BYTES;
        let several_small = manner.in_flight > 1
            && manner.sizes.is_none()
            && traffic.exchange().is_some_and(is_small);
        if traffic.is_placed() {
            Self::Connects
        } else if let Some(steps) = &manner.steps {
            Self::Answers(turns(steps))
        } else if traffic.request_writes() > 1 && may_hold {
            Self::HoldsPieces
        } else if several_small && may_hold {
            Self::HoldsMessages
        } else {
            Self::Once
        }
    }

    pub(crate) fn trips(self) -> f64 {
        match self {
            Self::Once => 1.0,
            Self::Answers(answers) => answers.into(),
            Self::Connects | Self::HoldsPieces => 2.0,
            Self::HoldsMessages => 3.0,
        }
    }
}

fn path(raw: &Raw<'_>, floors: &BTreeMap<u32, f64>, responses: &mut Responses) {
    let timed = raw
        .records
        .iter()
        .filter_map(|record| Some((record.flow, record.latency.as_ref()?.count() as f64)));
    let timed: BTreeMap<FlowId, f64> = timed.collect();
    let over_transactions = |of: &dyn Fn(&Lane<'_>) -> Option<f64>| {
        let weight = |lane: &Lane<'_>| timed.get(&lane.flow).map_or(1.0, |count| count.max(1.0));
        let lanes = raw.lanes.iter();
        let known = lanes.filter_map(|lane| Some((of(lane)?, weight(lane))));
        let sums = known.fold((0.0, 0.0), |(sum, all), (ns, weight)| {
            (sum + ns * weight, all + weight)
        });
        (sums.1 > 0.0).then(|| sums.0 / sums.1)
    };
    let shortest = over_transactions(&|lane| floors.get(&lane.client).copied());
    responses.put(name::PATH_RTT, shortest);
    let [client, server] = [End::Client, End::Server].map(|end| {
        over_transactions(&|lane| {
            let trips = lane.gauge(end, Metric::TcpRtt)?.into_iter();
            mean(trips.filter(|ns| *ns > 0.0))
        })
    });
    let loaded = client.into_iter().chain(server).min_by(f64::total_cmp);
    responses.put(name::PATH_RTT_LOADED, loaded);
    responses.put(name::TCP_RTT_SERVER, server);
}

/// What the timers of the hosts with flows did in the window; one that was not read leaves the sum
/// unknown, since it may be the one.
fn timers(raw: &Raw<'_>, responses: &mut Responses) {
    let readings = raw.readings;
    let with_flows = hosts_with_flows(raw);
    let sum = |metrics: &[Metric]| -> Option<f64> {
        let amount = |host: &HostName, metric| {
            Some(readings.change_on(host, &Subject::Host, metric)?.amount)
        };
        let each = with_flows
            .iter()
            .flat_map(|host| metrics.iter().map(|metric| amount(host, *metric)));
        (!with_flows.is_empty()).then(|| each.sum::<Option<f64>>())?
    };
    responses.put(name::DELAYED_ACKS_SENT, sum(&[Metric::NetstatDelayedAcks]));
    responses.put(
        name::TIMERS_FIRED,
        sum(&[Metric::NetstatTcpTimeouts, Metric::NetstatTcpLossProbes]),
    );
    responses.put(
        name::LISTEN_DROPS,
        sum(&[Metric::NetstatListenDrops, Metric::NetstatReqQFullDrop]),
    );
    let is_flow = |subject: &Subject, _: &HostName| matches!(subject, Subject::Flow(..));
    let again = readings.sum(Metric::TcpRetrans, is_flow, |change| change.amount);
    responses.put(name::RETRANSMITTED_BOTH, again);
}

/// How transactions and losses lie in time.
fn steps(raw: &Raw<'_>, responses: &mut Responses) {
    let done = raw.steps(|_| End::Client, Metric::AppTransactions);
    responses.put(
        name::TRANSACTIONS_VARIATION,
        done.and_then(|steps| deviation_of(&steps)),
    );
    let losing = |end| {
        let steps = raw.steps(|_| end, Metric::TcpRetrans)?;
        mean(
            steps
                .iter()
                .map(|(_, again)| f64::from(u8::from(*again > 0.0))),
        )
    };
    let most = [End::Client, End::Server].into_iter().filter_map(losing);
    responses.put(name::LOSING, most.max_by(f64::total_cmp));
}

/// The hosts that have an end of a flow, one of each network namespace.
pub(super) fn hosts_with_flows<'a>(raw: &Raw<'a>) -> Vec<&'a HostName> {
    let ends = raw
        .readings
        .subjects()
        .filter(|(subject, _)| matches!(subject, Subject::Flow(..)));
    let names: BTreeSet<&HostName> = ends.map(|(_, host)| host).collect();
    namespaces(raw.hosts, names)
}

/// Returns one host of each network namespace: of those with one address, as both ends over loopback, the
/// first, since they read the same counters.
pub(crate) fn namespaces<'a>(
    hosts: &[HostRecord],
    names: impl IntoIterator<Item = &'a HostName>,
) -> Vec<&'a HostName> {
    let address = |name: &HostName| {
        let record = hosts.iter().find(|host| host.name == *name);
        record.map(|host| host.data_address.as_str())
    };
    let mut seen = BTreeSet::new();
    let is_first = |name: &&HostName| match address(name) {
        Some(address) => seen.insert(address),
        None => true,
    };
    names.into_iter().filter(is_first).collect()
}

fn counted(latency: &Histogram, keep: impl Fn(f64) -> bool) -> f64 {
    let kept = latency.buckets.iter().filter(|(ns, _)| keep(*ns as f64));
    kept.map(|(_, count)| *count as f64).sum()
}

/// Latencies of each client's transactions together.
fn by_client(raw: &Raw<'_>) -> BTreeMap<u32, Histogram> {
    let mut latencies: BTreeMap<u32, Histogram> = BTreeMap::new();
    for record in &raw.records {
        // Flows are numbered from 0.
        let lane = raw.lanes.get(record.flow.0 as usize);
        if let Some((lane, latency)) = lane.zip(record.latency.as_ref()) {
            latencies.entry(lane.client).or_default().merge(latency);
        }
    }
    latencies
}

/// Transactions that a retransmission timeout may have held up, and what they add to the mean.
fn slow(latencies: &BTreeMap<u32, Histogram>, responses: &mut Responses) {
    let all: f64 = latencies.values().map(|all| all.count() as f64).sum();
    let each = latencies.values().filter_map(slow_of);
    let sums = each.fold((0.0, 0.0), |sums, one| (sums.0 + one.0, sums.1 + one.1));
    responses.put(name::SLOW, Some(sums.0));
    responses.put(name::RTT_SLOW, Some(sums.1 / all));
}

/// How many transactions of one client are slow, and the time that they took beyond the mean of the others.
fn slow_of(latency: &Histogram) -> Option<(f64, f64)> {
    let low_ns = latency.quantile(0.1)?.0 as f64;
    let is_slow = |ns: f64| ns - low_ns >= TIMEOUT_EXCESS_NS;
    let (mut count, mut fast, mut fast_ns, mut slow_ns) = (0.0, 0.0, 0.0, 0.0);
    for (ns, number) in latency
        .buckets
        .iter()
        .map(|(ns, n)| (*ns as f64, *n as f64))
    {
        if is_slow(ns) {
            (count, slow_ns) = (count + number, slow_ns + ns * number)
        } else {
            (fast, fast_ns) = (fast + number, fast_ns + ns * number)
        }
    }
    // The fastest tenth is never slow, so that there is a mean of the others.
    Some((count, slow_ns - count * fast_ns / fast))
}

/// Mean over the workers of the hosts of `part` of the share of time that a clock of theirs ran.
fn workers_share(raw: &Raw<'_>, part: HostPart, metric: Metric) -> Option<f64> {
    let workers = raw.workers().filter(|(_, on)| raw.is_part(on, part));
    mean(workers.filter_map(|(subject, on)| {
        let change = raw.readings.change_on(on, subject, metric)?;
        // The kernel adds a wait when it ends, so that one from before the window may count in it.
        Some(change.share().min(1.0))
    }))
}
