//! The counters of queues among the statistics that drivers keep.

use std::collections::BTreeMap;
use std::io;

use linerate_model::metric::Metric;
use linerate_model::sample::{QueueKind, Sample, Subject};

use super::name::meaning;
use crate::link::{DEVICES_MAX, each_device};
use crate::readout::Readout;
use crate::sys::clock::timed;
use crate::sys::ethtool::Ethtool;
use crate::sys::ethtool_stats::Statistics;
use crate::sys::netlink::NetlinkSocket;

/// Most devices whose drivers are asked one by one.
const DRIVERS_MAX: usize = 16;

/// The statistics that drivers keep.
pub(super) struct Drivers {
    ethtool: Ethtool,
    room: Statistics,
    devices: Vec<Driver>,
}

/// One device whose driver's statistics tell of queues.
#[derive(Debug)]
struct Driver {
    device: String,
    /// The sides that are asked for.
    sides: Vec<QueueKind>,
    /// How many statistics the driver keeps.
    count: usize,
    /// The subjects and metrics, and the place of each of their values among the statistics.
    counters: Vec<(Subject, Metric, Vec<usize>)>,
}

impl Drivers {
    /// Looks for devices whose drivers' statistics tell of queues; not for sides that
    /// `known` has already.
    pub(super) fn open(known: &[Sample]) -> Option<Self> {
        let ethtool = Ethtool::open().ok()?;
        let mut devices = Vec::new();
        for device in devices_with_queues().unwrap_or_default() {
            let is_known = |wanted: QueueKind| {
                let subjects = known.iter().map(|sample| &sample.subject);
                subjects.clone().any(|subject| {
                    matches!(subject, Subject::Queue(name, kind, _) if *name == device && *kind == wanted)
                })
            };
            let sides = [QueueKind::Rx, QueueKind::Tx];
            let sides: Vec<QueueKind> = sides.into_iter().filter(|side| !is_known(*side)).collect();
            if devices.len() < DRIVERS_MAX && !sides.is_empty() {
                let names = ethtool.statistic_names(&device).unwrap_or_default();
                devices.extend(Driver::of_names(device, sides, &names));
            }
        }
        (!devices.is_empty()).then(|| Self {
            ethtool,
            room: Statistics::new(),
            devices,
        })
    }

    /// Returns the devices' names.
    pub(super) fn devices(&self) -> impl Iterator<Item = &str> {
        self.devices.iter().map(|driver| driver.device.as_str())
    }

    /// Appends the counters of every device; says what failed last.
    pub(super) fn sample(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let mut failure = Ok(());
        let (ethtool, room) = (&self.ethtool, &mut self.room);
        for driver in &mut self.devices {
            let mut read = driver.sample(ethtool, room, out);
            // Given other queues (`ethtool -L`), a driver keeps other statistics.
            if read.is_err() && driver.renew(ethtool) {
                read = driver.sample(ethtool, room, out);
            }
            if let Err(error) = read {
                failure = Err(format!("statistics of {}: {error}", driver.device));
            }
        }
        failure
    }
}

/// Returns the devices that are up and may have queues.
fn devices_with_queues() -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    each_device(&mut NetlinkSocket::route()?, |device| {
        let queueless = device.is_loopback() || device.kind == Some(b"bridge");
        if device.is_up() && !queueless && names.len() < DEVICES_MAX {
            names.push(device.name_text());
        }
    })?;
    Ok(names)
}

impl Driver {
    /// Returns the device's counters of queues, where the names of its statistics tell of any.
    fn of_names(device: String, sides: Vec<QueueKind>, names: &[String]) -> Option<Self> {
        let mut counters: Vec<(Subject, Metric, Vec<usize>)> = Vec::new();
        let mut places = BTreeMap::new();
        let has = |name: &str| names.iter().any(|other| other == name);
        for (place, name) in names.iter().enumerate() {
            let Some((kind, queue, counter)) = meaning(name) else {
                continue;
            };
            // virtio counts what an XDP program sees beside all that a queue takes, veth instead of it.
            let is_part = name.contains("_xdp_") && has(&name.replacen("_xdp_", "_", 1));
            if !sides.contains(&kind) || is_part {
                continue;
            }
            let metric = counter.metric(kind);
            let at = *places.entry((kind, queue, metric)).or_insert_with(|| {
                let subject = Subject::Queue(device.clone(), kind, queue);
                counters.push((subject, metric, Vec::new()));
                counters.len() - 1
            });
            counters[at].2.push(place);
        }
        (!counters.is_empty()).then_some(Self {
            device,
            sides,
            count: names.len(),
            counters,
        })
    }

    /// Looks for the counters anew; returns whether there are any.
    fn renew(&mut self, ethtool: &Ethtool) -> bool {
        let names = ethtool.statistic_names(&self.device).unwrap_or_default();
        let found = Self::of_names(self.device.clone(), self.sides.clone(), &names);
        let is_found = found.is_some();
        if let Some(found) = found {
            *self = found;
        }
        is_found
    }

    /// Appends the counters as they are now.
    fn sample(
        &self,
        ethtool: &Ethtool,
        room: &mut Statistics,
        out: &mut Vec<Sample>,
    ) -> io::Result<()> {
        let (values, at_ns) = timed(|| ethtool.statistics(&self.device, self.count, room));
        self.push(values?, at_ns, out);
        Ok(())
    }

    fn push(&self, values: &[u64], at_ns: u64, out: &mut Vec<Sample>) {
        let mut readout = Readout::at(at_ns, out);
        for (subject, metric, places) in &self.counters {
            let values = places.iter().filter_map(|place| values.get(*place));
            let sum = values.fold(0_u64, |sum, value| sum.wrapping_add(*value));
            readout.push(*metric, subject.clone(), sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> Vec<QueueKind> {
        vec![QueueKind::Rx, QueueKind::Tx]
    }

    #[test]
    fn names_that_are_the_same_counter_add_up() {
        let names = [
            "rx_total",
            "[0]: rx_ucast_packets",
            "[0]: rx_mcast_packets",
            "[0]: tx_ucast_packets",
            "[1]: rx_ucast_packets",
            "[0]: rx_bcast_packets",
        ]
        .map(str::to_owned);
        let driver = Driver::of_names("eth0".to_owned(), both(), &names).expect("it has queues");
        let mut out = Vec::new();
        driver.push(&[1000, 1, 2, 4, 8, 16], 7, &mut out);
        let found: Vec<_> = out
            .iter()
            .map(|sample| {
                format!(
                    "{} {} {}",
                    sample.subject,
                    sample.metric.name(),
                    sample.value
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                "queue:eth0:rx:0 queue_rx_packets 19",
                "queue:eth0:tx:0 queue_tx_packets 4",
                "queue:eth0:rx:1 queue_rx_packets 8",
            ]
        );
        let sent =
            Driver::of_names("eth0".to_owned(), both()[1..].to_vec(), &names).expect("it sends");
        assert_eq!(sent.counters.len(), 1);
        assert!(Driver::of_names("eth0".to_owned(), both(), &names[..1]).is_none());
    }

    #[test]
    fn packets_of_an_xdp_program_are_a_part_where_a_queue_counts_all() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let driver = Driver::of_names("eth0".to_owned(), both(), &names).expect("a queue");
            let mut out = Vec::new();
            driver.push(&[10, 10], 7, &mut out);
            out.iter().map(|sample| sample.value).collect::<Vec<_>>()
        };
        let (all, part) = ("rx_queue_0_packets", "rx_queue_0_xdp_packets");
        assert_eq!(of(&[all, part]), [10]);
        assert_eq!(of(&[part, all]), [10]);
        assert_eq!(of(&[part]), [10]);
    }
}
