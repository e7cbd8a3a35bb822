//! What else passes the devices that streams use.
//!
//! A device counts all that passes it. What of its payload is none of the streams' is of other programs, or
//! our own control traffic: the streams could not have it, and nothing else says so. Headers are taken off by
//! the device's own packets, which may be superframes.
//!
//! Of our own control traffic the readings are most, which cross the device where the controller is elsewhere. Their number
//! is known, and what each takes at the most: up to that, nothing is said.
//!
//! 1. *On the way of the payload* others take what the streams could have. Whether they do is told by how both vary: where
//!    they share a full path, one has more whenever the other has less, so that the device passes the same all the time,
//!    while the streams' part varies. The deviation of all over that of the part was 0.002 to 0.37 of 30 shared full paths,
//!    and 0.7 and more of others: independent traffic adds up to more. Read behind the bottleneck it is least, so that the
//!    lesser of both ends is taken. Segments are counted as they come, in order or not: behind a lost one the count in order
//!    stands still by itself.
//! 2. *Against it* they make ACKs wait. What comes back of a stream is ACKs, which have no payload: next to nothing is left
//!    when the longest headers are taken off. Below a fifth of what the streams carry nothing is said: on slow lines
//!    readings and frames of the network itself are a tenth.

use std::collections::BTreeSet;

use linerate_model::flag::TrialFlag;
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::response::name;
use linerate_model::run::{Control, FlowRecord, HostRecord};
use linerate_model::sample::Subject;
use linerate_model::samples::Reading;
use linerate_model::wire::ETHERNET_HEADER_BYTES;
use linerate_model::workload::Part;
use linerate_model::{FlowId, HostName};

use super::evidence::rates_of;
use super::raw::{Lane, Raw};
use super::window::{Change, mean};
use super::{DISTURBED_SHARE_MAX, Responses, namespaces};
use crate::compare::interval::deviation;
use crate::wire_use::is_ipv6;

/// Headers of IPv4 and TCP with timestamps, and of IPv4 and UDP, and what those of IPv6 have more. Where a packet has
/// less, the others' share comes out a little too small.
pub(crate) const TCP_HEADERS_BYTES: f64 = 52.0;
pub(crate) const UDP_HEADERS_BYTES: f64 = 28.0;
const IPV6_MORE_BYTES: f64 = 20.0;
/// The same of an ACK that has all the options that there is room for: SACK blocks.
const ACK_BYTES_MAX: f64 = ETHERNET_HEADER_BYTES as f64 + 80.0;
/// Payload of others up to which nobody shared anything: requests of this measurement's own, beside a stream that is small.
const BYTES_MIN: f64 = 65_536.0;
/// Payload against the streams' direction from which on it is told, as a share of theirs.
const AGAINST_SHARE_MIN: f64 = 0.2;
/// What a reading takes of a connection at the most, compressed and encrypted: 8 to 13 were seen with 1 to 16 flows.
const READING_BYTES_MAX: f64 = 16.0;
/// Steps between readings from which on two deviations are compared: of eight steps of independent traffic one set in
/// 1000 has half of it.
const STEPS_MIN: usize = 8;
/// Where both ends of everything are.
const LOOPBACK: &str = "lo";

/// Reduces what others had of the way of the payload.
pub(super) fn reduce(raw: &Raw<'_>, responses: &mut Responses) {
    let Some(streams) = Streams::of(raw) else {
        return;
    };
    let places = streams.places();
    let shared = places
        .iter()
        .filter_map(|(host, part)| Some((host, part, streams.others_share(host, *part)?)));
    let shared: Vec<_> = shared.collect();
    let most = shared.iter().map(|(.., share)| *share);
    responses.put(name::OTHERS_SHARE, most.max_by(f64::total_cmp));
    let common = shared
        .iter()
        .filter_map(|(host, part, _)| streams.common(host, **part));
    let steadiest = common.min_by(|a, b| a.over_own.total_cmp(&b.over_own));
    responses.put(name::SHARED_BPS, steadiest.map(|all| all.bps));
    responses.put(name::SHARED_VARIATION, steadiest.map(|all| all.variation));
    responses.put(name::SHARED_OVER_OWN, steadiest.map(|all| all.over_own));
}

/// Returns the flag of the device of which others had most, where they had more than a measurement should
/// share: on the way of the payload, or else against it.
pub(super) fn other_traffic(raw: &Raw<'_>) -> Option<TrialFlag> {
    let streams = Streams::of(raw)?;
    let places = streams.places();
    let most = |of_others: &dyn Fn(&HostName, Part) -> Option<f64>| {
        let shares = places
            .iter()
            .filter_map(|(host, part)| Some((of_others(host, *part)?, *host, *part)));
        shares.max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let along = most(&|host, part| streams.others_share(host, part));
    let (share, host, part) =
        along.or_else(|| most(&|host, part| streams.others_share_against(host, part)))?;
    Some(TrialFlag::OtherTraffic {
        host: host.clone(),
        device: streams.link(host)?,
        is_sent: part == Part::Sender,
        share,
    })
}

/// All that passed a device that streams share with others.
#[derive(Debug, Clone, Copy)]
struct Common {
    /// Bits per second, as the device counts frames.
    bps: f64,
    /// Deviation from reading to reading, of its mean.
    variation: f64,
    /// The same deviation over that of the streams' own part.
    over_own: f64,
}

/// The streams of a trial and the devices that they use.
struct Streams<'a> {
    raw: &'a Raw<'a>,
    transport: Transport,
}

impl<'a> Streams<'a> {
    /// Returns the flows of a trial, if they are streams of which a device counts the packets.
    fn of(raw: &'a Raw<'a>) -> Option<Self> {
        let transport = raw.trial.workload.manner.transport;
        let is_counted = matches!(transport, Transport::Tcp | Transport::Udp);
        let is_stream = raw.trial.workload.traffic.is_stream();
        (is_counted && is_stream).then_some(Self { raw, transport })
    }

    /// Each end of the streams: a host, and what it is there.
    fn places(&self) -> Vec<(&'a HostName, Part)> {
        let names: BTreeSet<&HostName> =
            self.raw.records.iter().map(|record| &record.host).collect();
        let hosts = namespaces(self.raw.hosts, names).into_iter();
        hosts
            .flat_map(|host| [Part::Sender, Part::Receiver].map(|part| (host, part)))
            .collect()
    }

    fn link(&self, host: &HostName) -> Option<String> {
        match self.raw.device(host)? {
            Subject::Link(device) if device != LOOPBACK => Some(device),
            _ => None,
        }
    }

    /// Share of what passed the device of `host` on the way of the payload that was others', where that was more than a
    /// measurement should share.
    fn others_share(&self, host: &HostName, part: Part) -> Option<f64> {
        let payload = self.payload_bytes_per_s(host, part)?;
        let passed = self.passed_bytes_per_s(host, part, self.header_bytes())?;
        let others = |own: f64| {
            let beside = passed - payload - own;
            let share = beside / passed;
            (share > DISTURBED_SHARE_MAX && self.is_much(beside)).then_some(share)
        };
        // Who counts all readings unpacks them: only where they matter.
        others(0.0)?;
        others(self.readings_bytes_per_s(host, part))
    }

    /// Share of what passed the device of `host` against the streams, as `part`, that was neither ACKs nor readings, where
    /// ACKs may have waited for it.
    fn others_share_against(&self, host: &HostName, part: Part) -> Option<f64> {
        // Streams that go both ways have payload there, even where nobody read how much.
        if !self.its(host, part).is_empty() {
            return None;
        }
        let payload = self.payload_bytes_per_s(host, part.opposite())?;
        let passed = self.passed_bytes_per_s(host, part, ACK_BYTES_MAX)?;
        let others = |own: f64| {
            let beside = passed - own;
            let is_told = beside >= AGAINST_SHARE_MIN * payload && self.is_much(beside);
            is_told.then_some(beside / passed)
        };
        others(0.0)?;
        others(self.readings_bytes_per_s(host, part))
    }

    fn is_much(&self, bytes_per_s: f64) -> bool {
        bytes_per_s * self.raw.readings.window_ns() as f64 / 1e9 >= BYTES_MIN
    }

    /// Returns all that passed the device of `host`, where all streams pass it as well.
    fn common(&self, host: &HostName, part: Part) -> Option<Common> {
        let its = self.its(host, part);
        if !self.raw.lanes.iter().all(|lane| its.contains(&lane.flow)) {
            return None;
        }
        let readings = self.raw.readings;
        let own = self.raw.lanes.iter().map(|lane| self.counted(lane, part));
        let own = readings.steps(own)?;
        let device = Subject::Link(self.link(host)?);
        let all = readings.on(host, &device, bytes_of(part));
        let all = readings.steps(std::iter::once(all))?;
        // Segments are of one size.
        let segment = match (self.transport, part) {
            (Transport::Tcp, Part::Receiver) => self.segment_bytes()?,
            _ => 1.0,
        };
        let (own, all) = (rates_of(&own), rates_of(&all));
        let of_own = segment * deviation(&own);
        let per_ns = mean(all.iter().copied()).filter(|rate| *rate > 0.0)?;
        let is_known = own.len().min(all.len()) >= STEPS_MIN && of_own > 0.0;
        is_known.then(|| Common {
            bps: 8e9 * per_ns,
            variation: deviation(&all) / per_ns,
            over_own: deviation(&all) / of_own,
        })
    }

    /// What counts all of a stream that passes the device at its end: what came twice or out of order, too.
    fn counted(&self, lane: &Lane<'_>, part: Part) -> Option<Vec<Reading>> {
        let metric = match (self.transport, part) {
            (Transport::Udp, Part::Sender) => Metric::AppBytesSent,
            (Transport::Udp, _) => Metric::AppBytesReceived,
            (_, Part::Sender) => Metric::TcpBytesSent,
            _ => Metric::TcpDataSegsIn,
        };
        let end = match part {
            Part::Sender => lane.sender,
            _ => lane.receiver,
        };
        lane.series(end, metric)
    }

    /// Payload of a full segment, mean of the streams.
    fn segment_bytes(&self) -> Option<f64> {
        let lanes = self.raw.lanes.iter();
        mean(lanes.filter_map(|lane| lane.mean(lane.sender, Metric::TcpSndMss)))
    }

    /// The flows of which `host` is `part`: several agents may be at one address.
    fn its(&self, host: &HostName, part: Part) -> BTreeSet<FlowId> {
        let address = |name: &HostName| self.raw.host(name).map(|host| host.data_address.as_str());
        let own = address(host);
        let is_its = |record: &&&FlowRecord| {
            record.part == part && (record.host == *host || address(&record.host) == own)
        };
        let its = self.raw.records.iter().filter(is_its);
        its.map(|record| record.flow).collect()
    }

    /// Payload of the streams of which `host` is `part`, at the most; absent where there is none, or one was
    /// not read.
    fn payload_bytes_per_s(&self, host: &HostName, part: Part) -> Option<f64> {
        let its = self.its(host, part);
        let readings = self.raw.readings;
        let counted = |lane: &Lane<'_>, part| {
            let series = self.counted(lane, part)?;
            readings.change(&series).map(Change::rate)
        };
        // What the host itself loses had passed its device.
        let loses = self
            .raw
            .undelivered(&[host])
            .is_some_and(|packets| packets > 0);
        let rate = |lane: &Lane<'_>| match (self.transport, part) {
            // What came twice or out of order passed the device as well: segments say it, full ones at the most.
            (Transport::Tcp, Part::Receiver) => {
                let came = counted(lane, part)? * lane.mean(lane.sender, Metric::TcpSndMss)?;
                let sent = counted(lane, Part::Sender).filter(|_| loses);
                Some(sent.unwrap_or(0.0).max(came))
            }
            (_, Part::Receiver) => {
                Some(counted(lane, Part::Sender)?.max(counted(lane, Part::Receiver)?))
            }
            _ => counted(lane, part),
        };
        let lanes = self
            .raw
            .lanes
            .iter()
            .filter(|lane| its.contains(&lane.flow));
        let payload: f64 = lanes.map(rate).sum::<Option<f64>>()?;
        (payload > 0.0).then_some(payload)
    }

    /// What the readings of hosts take of the device at the most: `host` sends its own, or receives all others', where the
    /// controller is its client.
    fn readings_bytes_per_s(&self, host: &HostName, part: Part) -> f64 {
        let is_here = |host: &HostRecord| host.control == Some(Control::InProcess);
        let address = |name: &HostName| self.raw.host(name).map(|host| host.data_address.as_str());
        let is_at_controller = self.raw.host(host).is_some_and(is_here);
        let crosses = |other: &&HostRecord| {
            let is_its = address(&other.name) == address(host);
            match part {
                Part::Sender => is_its && !is_here(other),
                _ => is_at_controller && !is_its,
            }
        };
        let hosts = self.raw.hosts.iter().filter(crosses);
        let count: usize = hosts
            .map(|other| self.raw.readings.count_of(&other.name))
            .sum();
        READING_BYTES_MAX * count as f64 / (self.raw.readings.window_ns() as f64 / 1e9)
    }

    /// Headers of a packet of the streams.
    fn header_bytes(&self) -> f64 {
        match (self.transport, self.raw.trial.workload.goes_both_ways()) {
            (Transport::Udp, _) => ETHERNET_HEADER_BYTES as f64 + UDP_HEADERS_BYTES,
            // ACKs of the other direction pass, too.
            (_, true) => ACK_BYTES_MAX,
            (_, false) => ETHERNET_HEADER_BYTES as f64 + TCP_HEADERS_BYTES,
        }
    }

    /// What passed the device without `header_bytes` of each packet, of IPv6 some more.
    fn passed_bytes_per_s(&self, host: &HostName, part: Part, header_bytes: f64) -> Option<f64> {
        let packets = match part {
            Part::Sender => Metric::LinkTxPackets,
            _ => Metric::LinkRxPackets,
        };
        let link = Subject::Link(self.link(host)?);
        let rate = |metric| {
            let change = self.raw.readings.change_on(host, &link, metric)?;
            Some(change.rate())
        };
        let header = if is_ipv6(&self.raw.host(host)?.data_address) {
            header_bytes + IPV6_MORE_BYTES
        } else {
            header_bytes
        };
        Some(rate(bytes_of(part))? - header * rate(packets)?).filter(|passed| *passed > 0.0)
    }
}

/// What counts all that a device passes at the end that is `part`.
fn bytes_of(part: Part) -> Metric {
    match part {
        Part::Sender => Metric::LinkTxBytes,
        _ => Metric::LinkRxBytes,
    }
}
