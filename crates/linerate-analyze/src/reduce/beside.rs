//! What else passes the devices that streams use.
//!
//! A device counts all that passes it. What of its payload is none of the streams' is of other programs, or
//! our own control traffic: the streams could not have it, and nothing else says so. Headers are taken off by
//! the device's own packets, which may be superframes.
//!
//! Of our own control traffic the readings are most, which cross the device where the controller is elsewhere. Their number
//! is known, and what each takes at the most: up to that, nothing is said.

use std::collections::BTreeSet;

use linerate_model::flag::TrialFlag;
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::run::{Control, FlowRecord, HostRecord};
use linerate_model::sample::Subject;
use linerate_model::wire::ETHERNET_HEADER_BYTES;
use linerate_model::workload::Part;
use linerate_model::{FlowId, HostName};

use super::datagrams::Route;
use super::flows::Lane;
use super::window::mean;
use super::{DISTURBED_SHARE_MAX, Readings, namespaces};
use crate::wire_use::is_ipv6;

/// Headers of TCP with timestamps over IPv4, and what those of IPv6 have more. Where a packet has less, the
/// others' share comes out a little too small.
const HEADER_BYTES: f64 = ETHERNET_HEADER_BYTES as f64 + 52.0;
const IPV6_MORE_BYTES: f64 = 20.0;
/// Payload of others up to which nobody shared anything: requests of this measurement's own, beside a stream that is small.
const BYTES_MIN: f64 = 65_536.0;
/// What a reading takes of a connection at the most, compressed and encrypted: 8 to 13 were seen with 1 to 16 flows.
const READING_BYTES_MAX: f64 = 16.0;
/// Where both ends of everything are.
const LOOPBACK: &str = "lo";

/// Returns the flag of the device of which others had most, where they had more than a measurement should
/// share.
pub(super) fn other_traffic(
    trial: &Trial,
    records: &[&FlowRecord],
    hosts: &[HostRecord],
    readings: &Readings<'_>,
) -> Option<TrialFlag> {
    let is_tcp = trial.workload.manner.transport == Transport::Tcp;
    if !is_tcp || !trial.workload.traffic.is_stream() {
        return None;
    }
    let flows = trial.workload.flows();
    let streams = Streams {
        lanes: flows.iter().map(Lane::of).collect(),
        records,
        route: Route { hosts, readings },
    };
    let names: BTreeSet<&HostName> = records.iter().map(|record| &record.host).collect();
    let ways = namespaces(hosts, names)
        .into_iter()
        .flat_map(|host| [Part::Sender, Part::Receiver].map(|part| (host, part)));
    let of_others = ways.filter_map(|(host, part)| {
        let Subject::Link(device) = streams.route.device(host)? else {
            return None;
        };
        let payload = streams.payload_bytes_per_s(host, part)?;
        let passed = streams.passed_bytes_per_s(host, &device, part)?;
        let others = |own: f64| {
            let beside = passed - payload - own;
            let is_much = beside * readings.window_ns() as f64 / 1e9 >= BYTES_MIN;
            let share = beside / passed;
            (share > DISTURBED_SHARE_MAX && is_much).then_some(share)
        };
        // Who counts all readings unpacks them: only where they matter.
        others(0.0)?;
        let share = others(streams.readings_bytes_per_s(host, part))?;
        Some((share, host, device, part))
    });
    let (share, host, device, part) = of_others.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(TrialFlag::OtherTraffic {
        host: host.clone(),
        device,
        is_sent: part == Part::Sender,
        share,
    })
}

/// The streams of a trial and the devices that they use.
struct Streams<'r, 'a> {
    lanes: Vec<Lane>,
    records: &'r [&'r FlowRecord],
    route: Route<'r, 'a>,
}

impl Streams<'_, '_> {
    fn host(&self, name: &HostName) -> Option<&HostRecord> {
        self.route.hosts.iter().find(|host| host.name == *name)
    }

    /// Payload of the streams of which `host` is `part`, at the most; absent where there is none, or one was
    /// not read.
    fn payload_bytes_per_s(&self, host: &HostName, part: Part) -> Option<f64> {
        let readings = self.route.readings;
        // Several agents may be at one address.
        let address = |name: &HostName| self.host(name).map(|host| host.data_address.as_str());
        let own = address(host);
        let is_its = |record: &&&FlowRecord| {
            record.part == part && (record.host == *host || address(&record.host) == own)
        };
        let its = self.records.iter().filter(is_its);
        let its: BTreeSet<FlowId> = its.map(|record| record.flow).collect();
        let rate = |lane: &Lane| match part {
            Part::Sender => {
                let sent = readings.flow(lane.flow, lane.sender, Metric::TcpBytesSent)?;
                Some(readings.change(&sent)?.rate())
            }
            // What came twice or out of order passed the device as well: segments say it, full ones at the most.
            _ => {
                let segments = readings.flow(lane.flow, lane.receiver, Metric::TcpDataSegsIn)?;
                let size = readings.flow(lane.flow, lane.sender, Metric::TcpSndMss)?;
                Some(readings.change(&segments)?.rate() * mean(readings.gauge(&size))?)
            }
        };
        let lanes = self.lanes.iter().filter(|lane| its.contains(&lane.flow));
        let payload: f64 = lanes.map(rate).sum::<Option<f64>>()?;
        (payload > 0.0).then_some(payload)
    }

    /// What the readings of hosts take of the device at the most: `host` sends its own, or receives all others', where the
    /// controller is its client.
    fn readings_bytes_per_s(&self, host: &HostName, part: Part) -> f64 {
        let is_here = |host: &HostRecord| host.control == Some(Control::InProcess);
        let address = |name: &HostName| self.host(name).map(|host| host.data_address.as_str());
        let is_at_controller = self.host(host).is_some_and(is_here);
        let crosses = |other: &&HostRecord| {
            let is_its = address(&other.name) == address(host);
            match part {
                Part::Sender => is_its && !is_here(other),
                _ => is_at_controller && !is_its,
            }
        };
        let hosts = self.route.hosts.iter().filter(crosses);
        let count: usize = hosts
            .map(|other| self.route.readings.count_of(&other.name))
            .sum();
        READING_BYTES_MAX * count as f64 / (self.route.readings.window_ns() as f64 / 1e9)
    }

    /// What passed the device without its headers.
    fn passed_bytes_per_s(&self, host: &HostName, device: &str, part: Part) -> Option<f64> {
        if device == LOOPBACK {
            return None;
        }
        let (bytes, packets) = match part {
            Part::Sender => (Metric::LinkTxBytes, Metric::LinkTxPackets),
            _ => (Metric::LinkRxBytes, Metric::LinkRxPackets),
        };
        let link = Subject::Link(device.to_owned());
        let rate = |metric| {
            let change = self.route.readings.change_on(host, &link, metric)?;
            Some(change.rate())
        };
        let header = match is_ipv6(&self.host(host)?.data_address) {
            true => HEADER_BYTES + IPV6_MORE_BYTES,
            false => HEADER_BYTES,
        };
        Some(rate(bytes)? - header * rate(packets)?).filter(|passed| *passed > 0.0)
    }
}
