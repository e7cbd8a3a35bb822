//! Packets and bytes of every receive and transmit queue of network devices.
//!
//! 1. Drivers that tell the kernel are asked by generic netlink (`netdev`, NETDEV_CMD_QSTATS_GET,
//!    since Linux 6.9), all of them at once.
//! 2. Of what they do not tell (virtio: the transmit side) and of other devices the driver's own
//!    statistics are read (`ethtool -S`), as far as their names tell of a queue. This may cost the driver more: some ask their hardware.
//!
//! Loopback and bridges have no queues. A veth counts the packets of its queues only where they
//! pass its NAPI: the receiving end has GRO on, or an XDP program.

mod drivers;
pub(crate) mod message;
mod name;
mod places;

use std::io;

use linerate_model::host::QUEUE_OBSERVER;
use linerate_model::metric::Metric;
use linerate_model::sample::{QueueKind, Sample, Subject};

pub(crate) use places::{QueuePlace, queue_places};

use self::drivers::Drivers;
use crate::generic::open_family;
use crate::link::DeviceNames;
use crate::observer::{Interface, ObserveConfig, Observer, observer, opened};
use crate::readout::Readout;
use crate::sys::netlink::{NetlinkSocket, Question};

/// Most queues sampled: two cards of 256 queues and two sides each.
const QUEUES_MAX: usize = 1024;

/// Why nothing is read where no device does it.
const NONE: &str = "no device counts by queue";

/// What is counted of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counter {
    Packets,
    Bytes,
    Drops,
}

impl Counter {
    fn metric(self, kind: QueueKind) -> Metric {
        match (kind, self) {
            (QueueKind::Rx, Counter::Packets) => Metric::QueueRxPackets,
            (QueueKind::Rx, Counter::Bytes) => Metric::QueueRxBytes,
            (QueueKind::Rx, Counter::Drops) => Metric::QueueRxDrops,
            (QueueKind::Tx, Counter::Packets) => Metric::QueueTxPackets,
            (QueueKind::Tx, Counter::Bytes) => Metric::QueueTxBytes,
            (QueueKind::Tx, Counter::Drops) => Metric::QueueTxDrops,
        }
    }
}

/// Returns whether the statistic of a driver called `name` is a counter of a single queue.
pub(crate) fn is_of_a_queue(name: &str) -> bool {
    name::meaning(name).is_some()
}

/// The counters of queues.
struct Queues {
    netdev: Option<Netdev>,
    drivers: Option<Drivers>,
}

/// The kernel's own statistics of queues.
struct Netdev {
    socket: NetlinkSocket,
    family: u16,
    question: Question,
    names: DeviceNames,
}

/// Opens what there is in the network namespace of the calling thread.
pub(crate) fn open(_: &ObserveConfig) -> Box<dyn Observer> {
    let (mut netdev, why) = opened(Netdev::open());
    let mut first = Vec::new();
    if let Some(open) = &mut netdev
        && (open.sample(&mut first).is_err() || first.is_empty())
    {
        first.clear();
        netdev = None;
    }
    let drivers = Drivers::open(&first);
    let names: Vec<&str> = drivers.iter().flat_map(Drivers::devices).collect();
    let names = names.join(", ");
    let note = (!names.is_empty()).then(|| format!("by the driver's own statistics: {names}"));
    let queues = match (first.is_empty() && names.is_empty(), why) {
        (false, _) => Ok(Queues { netdev, drivers }),
        (true, None) => Err(NONE.to_owned()),
        (true, Some(why)) => Err(format!("{NONE}; generic netlink family netdev: {why}")),
    };
    observer(QUEUE_OBSERVER, queues, note)
}

impl Interface for Queues {
    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let netdev = self.netdev.as_mut().map_or(Ok(()), |it| it.sample(out));
        let drivers = self.drivers.as_mut().map_or(Ok(()), |it| it.sample(out));
        netdev
            .map_err(|error| format!("netdev statistics: {error}"))
            .and(drivers)
    }
}

impl Netdev {
    fn open() -> io::Result<Self> {
        let (socket, family) = open_family("netdev")?;
        Ok(Self {
            question: Question::list(family, &message::statistics_question()),
            socket,
            family,
            names: DeviceNames::default(),
        })
    }

    /// Appends the counters of every queue that the kernel tells of.
    fn sample(&mut self, out: &mut Vec<Sample>) -> io::Result<()> {
        let before = out.len();
        for attempt in 0..2 {
            let (mut queues, mut unknown) = (0, false);
            let (family, names) = (self.family, &self.names);
            Readout::halfway(out, |readout| {
                self.socket.ask(&mut self.question, |kind, payload| {
                    queues += 1;
                    if kind == family && queues <= QUEUES_MAX {
                        unknown |= !push_queue(names, payload, readout);
                    }
                })
            })?;
            if !unknown || attempt == 1 {
                break;
            }
            out.truncate(before);
            self.names.renew(&mut NetlinkSocket::route()?)?;
        }
        Ok(())
    }
}

/// Appends the counters of one queue. Returns whether the device's name is known.
fn push_queue(names: &DeviceNames, payload: &[u8], readout: &mut Readout<'_>) -> bool {
    let Some(queue) = message::queue_of_statistics(payload) else {
        return true;
    };
    let Some(name) = names.of(queue.device_index) else {
        return false;
    };
    message::each_counter(payload, |counter, value| {
        let subject = Subject::Queue(name.to_owned(), queue.kind, queue.queue);
        readout.push(counter.metric(queue.kind), subject, value);
    });
    true
}
