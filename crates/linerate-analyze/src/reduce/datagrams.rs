//! Datagrams: how many came, how evenly, and where the others were lost.
//!
//! Counts are of all phases of a trial, since only those of both ends together add up to the
//! packet; rates are of the measured window. What a host counts for everybody is taken from the
//! window, that of queueing disciplines from the whole trial, and from the hosts at which the flows
//! end, see [`Balance::of`]; of several devices, from the one that the flows use.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use linerate_model::datagram::{Balance, Datagrams, Evidence, Place};
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::response::name;
use linerate_model::run::{FlowRecord, Recording};
use linerate_model::sample::{QdiscId, Subject};
use linerate_model::samples::Reading;
use linerate_model::workload::Part;
use linerate_model::{FlowId, HostName, TrialId};
use serde::Serialize;

use super::exchange::namespaces;
use super::raw::Raw;
use super::window::{Change, Readings, in_window, mean};
use super::{Responses, losses, machine};

/// Upper half of the handle of the discipline of ingress, and of clsact (TC_H_INGRESS of
/// include/uapi/linux/pkt_sched.h).
pub(crate) const INGRESS_MAJOR: u32 = 0xffff;
/// The kernel counts drops of disciplines in 32 bits.
const DROPS_WRAP: i64 = 1 << 32;

/// Packets up to which those that IP took in may have been on their way through it when its counters were read: NAPI hands
/// over so many at a time (NAPI_POLL_WEIGHT of include/linux/netdevice.h).
const ON_THEIR_WAY_MAX: u64 = 64;

/// Every place with the response that says how many were lost there.
pub(crate) const LOSS_PLACES: &[(Place, &str)] = &[
    (Place::SenderQueue, name::LOST_SENDER_QUEUE),
    (Place::SenderQdisc, name::LOST_SENDER_QDISC),
    (Place::SenderDevice, name::LOST_SENDER_DEVICE),
    (Place::ReceiverDevice, name::LOST_RECEIVER_DEVICE),
    (Place::ReceiverBacklog, name::LOST_BACKLOG),
    (Place::ReceiverQdisc, name::LOST_RECEIVER_QDISC),
    (Place::Reassembly, name::LOST_REASSEMBLY),
    (Place::ReceiverIp, name::LOST_RECEIVER_IP),
    (Place::Checksum, name::LOST_CHECKSUM),
    (Place::ReceiveBuffer, name::LOST_RECEIVE_BUFFER),
    (Place::NotLocated, name::LOST_NOT_LOCATED),
];

pub(super) fn reduce(raw: &Raw<'_>, responses: &mut Responses) {
    let workload = &raw.trial.workload;
    if workload.manner.transport != Transport::Udp {
        return;
    }
    if workload.traffic.is_stream() {
        stream(raw, responses)
    } else {
        requests(&raw.records, responses)
    }
}

fn requests(records: &[&FlowRecord], responses: &mut Responses) {
    let asked: Option<Vec<&Datagrams>> = records
        .iter()
        .filter(|record| record.part == Part::Requester)
        .map(|record| record.datagrams.as_deref())
        .collect();
    let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
        return;
    };
    let sum = |of: fn(&Datagrams) -> u64| asked.iter().map(|counts| of(counts)).sum::<u64>() as f64;
    let (sent, lost) = (sum(|counts| counts.sent), sum(|counts| counts.unanswered));
    responses.put(name::UNANSWERED, Some(lost));
    responses.put(name::LOSS_SHARE, (sent > 0.0).then(|| lost / sent));
}

fn stream(raw: &Raw<'_>, responses: &mut Responses) {
    let readings = raw.readings;
    let ends_of = |part: Part| raw.records.iter().filter(move |record| record.part == part);
    let rate = |part: Part, metric| -> Option<f64> {
        ends_of(part).next()?;
        let rates = ends_of(part).map(|record| {
            let series = readings.flow(record.flow, record.end, metric)?;
            Some(readings.change(&series)?.rate())
        });
        rates.sum()
    };
    responses.put(
        name::DATAGRAMS_SENT_RATE,
        rate(Part::Sender, Metric::AppDatagramsSent),
    );
    let again = rate(Part::Receiver, Metric::AppDatagramsDuplicate).unwrap_or(0.0);
    let all = rate(Part::Receiver, Metric::AppDatagramsReceived);
    responses.put(name::DATAGRAMS_RECEIVED_RATE, all.map(|all| all - again));
    let receivers = || ends_of(Part::Receiver);
    // A running mean: what it was inside the window. At a flow's end it is of how the traffic stopped, with 3 ms
    // between two datagrams, and 40 times as long.
    let jitters = receivers().filter_map(|record| {
        let series = readings.flow(record.flow, record.end, Metric::AppJitter);
        let inside = series.and_then(|series| mean(readings.gauge(&series)));
        inside.or_else(|| Some(record.datagrams.as_ref()?.jitter_ns? as f64))
    });
    responses.put(name::JITTER, mean(jitters));
    let steps = steps(receivers(), readings).unwrap_or_default();
    let dispersion = losses::datagram_dispersion(&steps);
    responses.put(name::LOSS_DISPERSION, dispersion);
    let count = dispersion.map(|_| steps.len() as f64);
    responses.put(name::LOSS_READINGS, count);
    let senders = raw.hosts_of(Part::Sender);
    responses.put(name::QDISC_BACKLOG, raw.qdisc_backlog(&senders));
    let Some((evidence, pairs)) = evidence(raw) else {
        return;
    };
    let balance = Balance::of(&evidence);
    let sum = |of: fn(&Datagrams) -> u64| {
        let counts = pairs.iter().map(|pair| of(pair.1));
        Some(counts.sum::<u64>() as f64)
    };
    responses.put(name::LATE, sum(|counts| counts.late));
    responses.put(name::DUPLICATES, sum(|counts| counts.duplicates));
    responses.put(name::DATAGRAMS_SENT, Some(balance.sent as f64));
    responses.put(name::DATAGRAMS_RECEIVED, Some(balance.received as f64));
    responses.put(name::LOSS_SHARE, balance.loss_share());
    for (place, response) in LOSS_PLACES {
        let row = balance.lost.iter().find(|row| row.0 == *place);
        // What was read and counted nothing is 0; what was not read is absent.
        let lost = row.map_or(0.0, |row| row.1 as f64);
        responses.put(response, was_read(&evidence, *place).then_some(lost));
    }
}

/// Returns what arrived at one host and what did not, from reading to reading; absent where flows end at several, which
/// were not read together.
fn steps<'r>(
    receivers: impl Iterator<Item = &'r &'r FlowRecord> + Clone,
    readings: &Readings<'_>,
) -> Option<Vec<losses::Step>> {
    let first = receivers.clone().next()?;
    if receivers.clone().any(|end| end.host != first.host) {
        return None;
    }
    let grown = |metric| {
        let ends = receivers.clone();
        readings.steps(ends.map(|end| readings.flow(end.flow, end.end, metric)))
    };
    let arrived = grown(Metric::AppDatagramsReceived)?;
    let lost = grown(Metric::AppDatagramsMissing)?;
    let again = grown(Metric::AppDatagramsDuplicate);
    let again = again.filter(|again| again.len() == arrived.len());
    let step = |at: usize| losses::Step {
        ns: arrived[at].0,
        arrived: arrived[at].1 - again.as_ref().map_or(0.0, |again| again[at].1),
        lost: lost[at].1,
    };
    (lost.len() == arrived.len()).then(|| (0..arrived.len()).map(step).collect())
}

/// Returns whether the counter of `place` was read.
fn was_read(evidence: &Evidence, place: Place) -> bool {
    match place {
        Place::SenderQueue | Place::NotLocated => true,
        Place::SenderQdisc => evidence.sender_qdisc_drops.is_some(),
        Place::SenderDevice => evidence.sender_device_drops.is_some(),
        Place::ReceiverDevice => evidence.receiver_device_drops.is_some(),
        Place::ReceiverBacklog => evidence.backlog_drops.is_some(),
        Place::ReceiverQdisc => evidence.receiver_qdisc_drops.is_some(),
        Place::Reassembly => evidence.reassembly_drops.is_some(),
        Place::ReceiverIp => evidence.undelivered.is_some(),
        Place::Checksum => evidence.checksum_errors.is_some() && evidence.socket_drops.is_some(),
        Place::ReceiveBuffer => evidence.socket_drops.is_some(),
    }
}

/// Both ends' counts of one flow, the sender's first.
type Pair<'a> = (&'a Datagrams, &'a Datagrams);

/// Returns what both hosts counted, and each flow's ends; absent unless both ends of every flow
/// counted.
fn evidence<'a>(raw: &Raw<'a>) -> Option<(Evidence, Vec<Pair<'a>>)> {
    let of = |flow: FlowId, part: Part| {
        let mut ends = raw.records.iter().filter(|record| record.flow == flow);
        ends.find(|record| record.part == part)
    };
    let mut pairs = Vec::new();
    let (mut senders, mut receivers): (Vec<&HostName>, Vec<&HostName>) = (Vec::new(), Vec::new());
    for lane in &raw.lanes {
        let (sender, receiver) = (of(lane.flow, Part::Sender)?, of(lane.flow, Part::Receiver)?);
        pairs.push((sender.datagrams.as_deref()?, receiver.datagrams.as_deref()?));
        senders.push(&sender.host);
        receivers.push(&receiver.host);
    }
    let sum = |of: &dyn Fn(&Pair<'_>) -> u64| pairs.iter().map(of).sum::<u64>();
    let drops = pairs.iter().map(|pair| pair.1.dropped_at_socket());
    let evidence = Evidence {
        sent: sum(&|pair| pair.0.sent),
        received: sum(&|pair| pair.1.distinct()),
        refused: sum(&|pair| pair.0.refused),
        socket_drops: drops.sum(),
        checksum_errors: raw.total_on(&receivers, Metric::SnmpUdpInCsumErrors),
        sender_qdisc_drops: raw.qdisc_drops(&senders, in_all_phases),
        sender_device_drops: raw.device_drops(&senders, Metric::LinkTxDropped),
        receiver_device_drops: raw.device_drops(&receivers, Metric::LinkRxDropped),
        backlog_drops: raw.total_of_machines(&receivers, Metric::SoftnetDropped),
        receiver_qdisc_drops: raw.receiver_qdisc_drops(&raw.hosts_of(Part::Receiver)),
        reassembly_drops: raw.reassembly_drops(),
        undelivered: raw.undelivered(&raw.hosts_of(Part::Receiver)),
    };
    Some((evidence, pairs))
}

/// A queueing discipline of a sending host that dropped packets on their way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct QdiscDrops {
    /// The host.
    pub host: String,
    /// The network device.
    pub device: String,
    /// Its handle, as `tc qdisc` writes it; for one without a handle the class that it hangs at.
    pub handle: String,
    /// Packets dropped in all phases of the trial, everybody's.
    pub drops: u64,
}

impl fmt::Display for QdiscDrops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "qdisc {} {}", self.device, self.handle)
    }
}

/// Returns the queueing disciplines of the hosts that send in `trial` which dropped something, the
/// one with the most first.
pub(crate) fn dropping_qdiscs(recording: &Recording, trial: TrialId) -> Vec<QdiscDrops> {
    let Some(record) = recording.record(trial) else {
        return Vec::new();
    };
    let flows = recording.flows_of(trial);
    let ends = flows.filter(|flow| flow.part == Part::Sender && flow.datagrams.is_some());
    let senders: Vec<&HostName> = ends.map(|flow| &flow.host).collect();
    if senders.is_empty() {
        return Vec::new();
    }
    let readings = Readings::of(recording, record);
    let Some(raw) = Raw::of(recording, record, &readings) else {
        return Vec::new();
    };
    let mut all: Vec<QdiscDrops> = raw
        .roots(&senders, in_all_phases)
        .into_iter()
        .filter(|(_, (drops, _))| *drops > 0)
        .map(|((host, device), (drops, id))| QdiscDrops {
            host: host.to_string(),
            device: device.to_owned(),
            handle: id.to_string(),
            drops: drops as u64,
        })
        .collect();
    all.sort_by_key(|qdisc| std::cmp::Reverse(qdisc.drops));
    all
}

/// A device of a receiving host that what arrives is redirected to and that holds it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArrivalShaper {
    /// The host.
    pub(crate) host: HostName,
    /// The device.
    pub(crate) device: String,
    /// The kind of its queueing discipline, where that is known.
    pub(crate) kind: Option<String>,
}

/// Returns the shaper of a receiving host that all payload of `trial` passed and that dropped some or held it back.
pub(crate) fn arrival_shaper(recording: &Recording, trial: TrialId) -> Option<ArrivalShaper> {
    let record = recording.record(trial)?;
    let readings = Readings::of(recording, record);
    let raw = Raw::of(recording, record, &readings)?;
    let arrived = |host: &HostName| {
        let ends = raw.records.iter();
        let ends = ends.filter(|end| end.part == Part::Receiver && end.host == *host);
        let rates = ends.map(|end| {
            let series = readings.flow(end.flow, end.end, Metric::AppBytesReceived)?;
            readings.change(&series).map(Change::rate)
        });
        rates.sum::<Option<f64>>()
    };
    let receivers = raw.hosts_of(Part::Receiver);
    readings.subjects().find_map(|(subject, host)| {
        let Subject::Qdisc(device, _) = subject else {
            return None;
        };
        if !receivers.contains(&host) || !raw.is_redirected_to(host, device) {
            return None;
        }
        let change = |metric| readings.change_on(host, subject, metric);
        let grew = |metric| change(metric).is_some_and(|change| change.amount >= 1.0);
        let holds = grew(Metric::QdiscOverlimits) || grew(Metric::QdiscDrops);
        let passed = change(Metric::QdiscTxBytes)?.rate();
        let fact = format!("link.{device}.qdisc");
        let kind = raw.host(host)?.snapshot.text(&fact).map(str::to_owned);
        (holds && passed >= arrived(host)?).then(|| ArrivalShaper {
            host: host.clone(),
            device: device.clone(),
            kind,
        })
    })
}

/// How much a discipline's drops grew.
pub(super) type Grown = fn(&Readings<'_>, &[Reading]) -> Option<i64>;

/// Growth over the whole trial.
pub(super) fn in_all_phases(_readings: &Readings<'_>, series: &[Reading]) -> Option<i64> {
    Some(series.last()?.1 - series.first()?.1)
}

/// Kinds of devices that count packets of their own and none that the card below them drops (`vlan_dev_get_stats64`,
/// `br_get_stats64`, `macvlan_dev_get_stats64`). A bond or team has its members' counts.
const KINDS_ON_ANOTHER: &[&str] = &[
    "vlan",
    "bridge",
    "macvlan",
    "macvtap",
    "ipvlan",
    "ipvtap",
    "openvswitch",
    "vxlan",
    "geneve",
    "wireguard",
];

/// The devices that the flows of a trial use, and what its hosts count for everybody.
impl<'a> Raw<'a> {
    fn link(&self, host: &HostName) -> Option<&'a str> {
        self.host(host)?.link.as_deref()
    }

    /// Returns the device of `host` that the flows use.
    pub(super) fn device(&self, host: &HostName) -> Option<Subject> {
        Some(Subject::Link(self.link(host)?.to_owned()))
    }

    /// Returns how much a counter of the devices of `hosts` grew in the window; of a host whose device is not
    /// known, of all its devices. Absent if none was read, and where the flows' device is one that hands on to a card:
    /// what that drops, it does not count.
    pub(super) fn device_drops(&self, hosts: &[&HostName], metric: Metric) -> Option<u64> {
        if hosts.iter().any(|host| self.is_on_another(host)) {
            return None;
        }
        let is_used = |device: &Subject, host: &HostName| {
            hosts.contains(&host) && self.device(host).is_none_or(|used| used == *device)
        };
        let wanted = |subject: &Subject, host: &HostName| {
            matches!(subject, Subject::Link(_)) && is_used(subject, host)
        };
        let amount = self.readings.sum(metric, wanted, |change| change.amount)?;
        Some(amount as u64)
    }

    /// Whether the flows' device of `host` lies on another one, and counts only what it drops itself.
    fn is_on_another(&self, host: &HostName) -> bool {
        let kind = self.host(host).and_then(|record| {
            let link = record.link.as_deref()?;
            record.snapshot.text(&format!("link.{link}.kind"))
        });
        kind.is_some_and(|kind| KINDS_ON_ANOTHER.contains(&kind))
    }

    /// Returns what the queueing disciplines of `hosts` dropped on the way out; absent if none was read.
    pub(super) fn qdisc_drops(&self, hosts: &[&HostName], grown: Grown) -> Option<u64> {
        let devices = self.roots(hosts, grown);
        let all = devices.values().map(|(drops, _)| *drops as u64);
        (!devices.is_empty()).then(|| all.sum())
    }

    /// Bytes that wait in the queueing disciplines of `senders`, on the devices that the flows use.
    pub(super) fn qdisc_backlog(&self, senders: &[&HostName]) -> Option<f64> {
        let readings = self.readings;
        self.of_qdiscs(senders, |host, subject| {
            let series = readings.on(host, subject, Metric::QdiscBacklogBytes)?;
            mean(readings.gauge(&series))
        })
    }

    /// Returns how often per second the queueing disciplines of `senders` held packets back for their rates.
    pub(super) fn qdisc_overlimits(&self, senders: &[&HostName]) -> Option<f64> {
        let readings = self.readings;
        self.of_qdiscs(senders, |host, subject| {
            let change = readings.change_on(host, subject, Metric::QdiscOverlimits);
            change.map(Change::rate)
        })
    }

    /// Returns what `read` reads of the queueing disciplines of `senders`, that of each host on the device of which it is most.
    fn of_qdiscs(
        &self,
        senders: &[&HostName],
        read: impl Fn(&HostName, &Subject) -> Option<f64>,
    ) -> Option<f64> {
        // What a discipline says holds its children's, so that the root has the most.
        let mut found: BTreeMap<(&HostName, &str), f64> = BTreeMap::new();
        for (subject, host) in self.readings.subjects() {
            let Subject::Qdisc(device, id) = subject else {
                continue;
            };
            if !senders.contains(&host) || id.0 >> 16 == INGRESS_MAJOR {
                continue;
            }
            if let Some(value) = read(host, subject) {
                let most = found.entry((host, device)).or_insert(value);
                *most = most.max(value);
            }
        }
        self.keep_used(senders, &mut found);
        let of_host = |host: &&HostName| {
            let devices = found.iter().filter(|((on, _), _)| on == host);
            let values = devices.map(|(_, value)| *value);
            values.max_by(f64::total_cmp)
        };
        let of_hosts = senders.iter().filter_map(of_host);
        of_hosts.reduce(|sum, one| sum + one)
    }

    /// Returns the packets that came to IP on `hosts` and that it neither delivered nor passed on: dropped by a packet
    /// filter, connection tracking, or for what the counters of IP name. Absent where these were not read.
    ///
    /// Fragments count each as they come, and together when they are delivered. What connection tracking puts together of
    /// IPv6 is counted nowhere, so that nothing is known where senders cut packets.
    pub(super) fn undelivered(&self, hosts: &[&HostName]) -> Option<u64> {
        let is_cut = |host: &&HostName| {
            let cut = self.total_on(&[*host], Metric::SnmpIpFragCreates);
            cut.is_some_and(|fragments| fragments > 0)
        };
        if self.hosts_of(Part::Sender).iter().any(is_cut) {
            return None;
        }
        let total = |metric| self.total_on(hosts, metric);
        let came = total(Metric::SnmpIpInReceives)?;
        let delivered = total(Metric::SnmpIpInDelivers)?;
        let passed_on = total(Metric::SnmpIpForwarded).unwrap_or(0);
        let fragments = total(Metric::SnmpIpReasmReqds).unwrap_or(0);
        let joined = total(Metric::SnmpIpReasmOks).unwrap_or(0);
        let held = fragments.saturating_sub(joined);
        let rest = came.saturating_sub(delivered + passed_on + held);
        Some(if rest < ON_THEIR_WAY_MAX { 0 } else { rest })
    }

    /// Returns how many whole packets the fragments were that the receiving hosts dropped for want of memory: each that
    /// senders cut has as many of them.
    fn reassembly_drops(&self) -> Option<u64> {
        let of = |part, metric| self.total_on(&self.hosts_of(part), metric);
        let failed = of(Part::Receiver, Metric::SnmpIpReasmFails)?;
        let too_late = of(Part::Receiver, Metric::SnmpIpReasmTimeout)?;
        let fragments = of(Part::Sender, Metric::SnmpIpFragCreates)?;
        let packets = of(Part::Sender, Metric::SnmpIpFragOks)?;
        let each = fragments.checked_div(packets).unwrap_or(0).max(1);
        Some(failed.saturating_sub(too_late).div_ceil(each))
    }

    /// Returns what queueing disciplines of `hosts` dropped of what came in: policers at the ingress of the flows' device,
    /// and those of devices that what comes is redirected to (ifb). Absent if none was read.
    pub(super) fn receiver_qdisc_drops(&self, hosts: &[&HostName]) -> Option<u64> {
        let mut most: BTreeMap<(&HostName, &str), i64> = BTreeMap::new();
        for (subject, host) in self.readings.subjects() {
            let Subject::Qdisc(device, id) = subject else {
                continue;
            };
            let is_ingress = id.0 >> 16 == INGRESS_MAJOR && self.link(host) == Some(device);
            if !hosts.contains(&host) || !(is_ingress || self.is_redirected_to(host, device)) {
                continue;
            }
            let series = self.readings.on(host, subject, Metric::QdiscDrops);
            let grown = series.and_then(|series| in_window(self.readings, &series));
            if let Some(drops) = grown.map(|amount| amount.rem_euclid(DROPS_WRAP)) {
                let known = most.entry((host, device)).or_insert(drops);
                *known = drops.max(*known);
            }
        }
        let drops = most.values().map(|drops| *drops as u64);
        (!most.is_empty()).then(|| drops.sum())
    }

    /// Whether `device` of `host` is one that takes what others receive or send.
    fn is_redirected_to(&self, host: &HostName, device: &str) -> bool {
        let kind = format!("link.{device}.kind");
        let record = self.host(host);
        record.and_then(|record| record.snapshot.text(&kind)) == Some("ifb")
    }

    /// Returns what the queueing disciplines of each device of `hosts` dropped on the way out, and which one
    /// counted it.
    ///
    /// Only the device that the flows use counts. One that has no discipline (a VLAN, a bond) hands on to
    /// others, and then all count.
    ///
    /// A discipline counts what its children dropped, too (qdisc_tree_reduce_backlog in
    /// net/sched/sch_api.c; mq adds its children up), so that the largest number of a device is that of
    /// its root. Of several with that number, it is one with a handle, by which `tc` shows it. Those of
    /// ingress see what comes.
    fn roots(
        &self,
        hosts: &[&HostName],
        grown: Grown,
    ) -> BTreeMap<(&'a HostName, &'a str), (i64, QdiscId)> {
        let mut devices: BTreeMap<(&'a HostName, &'a str), (i64, QdiscId)> = BTreeMap::new();
        for (subject, host) in self.readings.subjects() {
            let Subject::Qdisc(device, id) = subject else {
                continue;
            };
            if !hosts.contains(&host) || id.0 >> 16 == INGRESS_MAJOR {
                continue;
            }
            let series = self.readings.on(host, subject, Metric::QdiscDrops);
            if let Some(amount) = series.and_then(|series| grown(self.readings, &series)) {
                let drops = amount.rem_euclid(DROPS_WRAP);
                let rank = |(drops, id): (i64, QdiscId)| (drops, id.0 >> 16 != 0);
                let most = devices.entry((host, device)).or_insert((drops, *id));
                if rank((drops, *id)) > rank(*most) {
                    *most = (drops, *id);
                }
            }
        }
        self.keep_used(hosts, &mut devices);
        devices
    }

    /// Keeps of the devices of each host the one that the flows use, where it is among them.
    pub(super) fn keep_used<T>(
        &self,
        hosts: &[&HostName],
        devices: &mut BTreeMap<(&'a HostName, &'a str), T>,
    ) {
        for host in hosts {
            let link = self.link(host).unwrap_or_default();
            if devices.contains_key(&(*host, link)) {
                devices.retain(|(on, device), _| on != host || *device == link);
            }
        }
    }

    /// The hosts that are `part` of a flow, one of each network namespace.
    pub(super) fn hosts_of(&self, part: Part) -> Vec<&'a HostName> {
        let of_part = self.records.iter().filter(|record| record.part == part);
        let names: BTreeSet<&HostName> = of_part.map(|record| &record.host).collect();
        namespaces(self.hosts, names)
    }

    /// Returns the growth of a counter over the window, all subjects of `hosts` together; absent if
    /// none was read.
    pub(super) fn total_on(&self, hosts: &[&HostName], metric: Metric) -> Option<u64> {
        let wanted = |subject: &Subject, host: &HostName| {
            !matches!(subject, Subject::Flow(..)) && hosts.contains(&host)
        };
        let amount = self.readings.sum(metric, wanted, |change| change.amount)?;
        Some(amount as u64)
    }

    /// Returns the growth of a counter of the machine over the window: once where `hosts` are namespaces of one.
    pub(super) fn total_of_machines(&self, hosts: &[&HostName], metric: Metric) -> Option<u64> {
        let mut left = hosts.to_vec();
        let mut totals = Vec::new();
        while let Some(host) = left.first().copied() {
            let machine = machine::sharing(self.hosts, host);
            // A damaged recording may lack the host.
            let is_here = |other: &mut &HostName| *other == host || machine.contains(other);
            let here = left.extract_if(.., is_here);
            let read = here.filter_map(|host| self.total_on(&[host], metric));
            totals.extend(read.max());
        }
        totals.into_iter().reduce(|sum, total| sum + total)
    }
}
