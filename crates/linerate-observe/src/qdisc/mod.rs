//! What waits in queueing disciplines and what they dropped, by netlink.
//!
//! One RTM_GETQDISC dump a reading. A device with several transmit queues has `mq` as its root,
//! whose numbers are the sums of its children's, one for each queue. `noqueue` counts nothing, so
//! loopback, veth and bridges have no samples unless they were given another discipline. What
//! waits and what was dropped have 32 bits in the kernel and wrap.

mod message;

use std::io;

use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

use self::message::{QdiscMessage, RTM_GETQDISC, every_qdisc};
use crate::link::DeviceNames;
use crate::observer::{Interface, ObserveConfig, Observer, observer};
use crate::readout::Readout;
use crate::sys::netlink::{NetlinkSocket, Question};

/// Most disciplines sampled: a card of 256 transmit queues has 257.
const QDISCS_MAX: usize = 1024;

/// The counters of every queueing discipline.
struct Qdiscs {
    socket: NetlinkSocket,
    question: Question,
    names: DeviceNames,
}

/// Opens a socket in the network namespace of the calling thread.
pub(crate) fn open(_: &ObserveConfig) -> Box<dyn Observer> {
    let socket = NetlinkSocket::route().map_err(|error| format!("netlink socket: {error}"));
    let qdiscs = socket.map(|socket| Qdiscs {
        socket,
        question: Question::list(RTM_GETQDISC, &every_qdisc()),
        names: DeviceNames::default(),
    });
    observer("qdisc", qdiscs, None)
}

impl Interface for Qdiscs {
    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        match self.sample(out) {
            Err(error) => Err(format!("netlink qdisc dump: {error}")),
            Ok(..=QDISCS_MAX) => Ok(()),
            Ok(count) => Err(format!("{count} qdiscs, only {QDISCS_MAX} are sampled")),
        }
    }
}

impl Qdiscs {
    /// Appends the counters of every discipline, and returns how many there are.
    ///
    /// A device that is not known by name was made since the last reading, so names are asked for and
    /// the question is put again, once: one that is still unknown is gone by now.
    fn sample(&mut self, out: &mut Vec<Sample>) -> io::Result<usize> {
        let before = out.len();
        for attempt in 0..2 {
            let (mut count, mut unknown) = (0, false);
            Readout::halfway(out, |readout| {
                self.socket.ask(&mut self.question, |kind, payload| {
                    let Some(qdisc) = QdiscMessage::parse(kind, payload).filter(counts) else {
                        return;
                    };
                    count += 1;
                    match self.names.of(qdisc.device_index) {
                        Some(name) if count <= QDISCS_MAX => push_samples(name, &qdisc, readout),
                        Some(_) => {}
                        None => unknown = true,
                    }
                })
            })?;
            if !unknown || attempt == 1 {
                return Ok(count);
            }
            out.truncate(before);
            self.names.renew(&mut self.socket)?;
        }
        Ok(0)
    }
}

/// Returns whether the discipline counts anything.
fn counts(qdisc: &QdiscMessage<'_>) -> bool {
    qdisc.kind != b"noqueue"
}

/// Appends the counters of one discipline.
fn push_samples(name: &str, qdisc: &QdiscMessage<'_>, readout: &mut Readout<'_>) {
    let subject = Subject::Qdisc(name.to_owned(), qdisc.id());
    let mut push = |metric, value: u64| readout.push(metric, subject.clone(), value);
    if let Some(basic) = qdisc.basic {
        push(Metric::QdiscTxBytes, basic.bytes);
        push(Metric::QdiscTxPackets, basic.packets);
    }
    if let Some(queue) = qdisc.queue {
        push(Metric::QdiscDrops, queue.drops.into());
        push(Metric::QdiscRequeues, queue.requeues.into());
        push(Metric::QdiscOverlimits, queue.overlimits.into());
        push(Metric::QdiscBacklogBytes, queue.backlog_bytes.into());
        push(Metric::QdiscBacklogPackets, queue.backlog_packets.into());
    }
}
