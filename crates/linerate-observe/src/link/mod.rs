//! Network devices, by routing netlink: counters, and which device owns an address.
//!
//! Netlink and not `/sys/class/net`: the latter shows the network namespace in which sysfs was
//! mounted, which need not be ours. One RTM_GETLINK dump a reading, on a socket that stays open.

mod address;
mod message;
mod names;

use std::io;

use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};
use netlink_packet_route::link::Stats64;

pub use address::link_of_address;
pub(crate) use message::DeviceMessage;
pub(crate) use names::DeviceNames;

use crate::observer::{Interface, ObserveConfig, Observer, observer};
use crate::readout::Readout;
use crate::sys::netlink::{NetlinkSocket, Question};

/// Most devices sampled; a host of containers may have thousands, which are not the question.
pub(crate) const DEVICES_MAX: usize = 256;

/// The counters of every device that is up.
struct Links {
    socket: NetlinkSocket,
    question: Question,
    names: DeviceNames,
}

/// Opens a socket in the network namespace of the calling thread.
pub(crate) fn open(_: &ObserveConfig) -> Box<dyn Observer> {
    let socket = NetlinkSocket::route().map_err(|error| format!("netlink socket: {error}"));
    let links = socket.map(|socket| Links {
        socket,
        question: every_device(),
        names: DeviceNames::default(),
    });
    observer("link", links, None)
}

/// Makes the question for every device of the namespace.
pub(crate) fn every_device() -> Question {
    Question::list(libc::RTM_GETLINK, &[0; message::HEADER_BYTES])
}

/// Hands every device of the namespace to `handle`.
pub(crate) fn each_device(
    socket: &mut NetlinkSocket,
    mut handle: impl FnMut(DeviceMessage<'_>),
) -> io::Result<()> {
    socket.ask(&mut every_device(), |kind, payload| {
        if let Some(device) = DeviceMessage::parse(kind, payload) {
            handle(device);
        }
    })
}

impl Interface for Links {
    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let mut devices = 0;
        Readout::halfway(out, |readout| {
            self.socket.ask(&mut self.question, |kind, payload| {
                let device = DeviceMessage::parse(kind, payload);
                if let Some(device) = device.filter(DeviceMessage::is_up) {
                    devices += 1;
                    if devices <= DEVICES_MAX {
                        push_samples(&mut self.names, &device, readout);
                    }
                }
            })
        })
        .map_err(|error| format!("netlink link dump: {error}"))?;
        match devices {
            ..=DEVICES_MAX => Ok(()),
            _ => Err(format!("{devices} devices, only {DEVICES_MAX} are sampled")),
        }
    }
}

/// Appends the counters of one device.
fn push_samples(names: &mut DeviceNames, device: &DeviceMessage<'_>, readout: &mut Readout<'_>) {
    let Some(stats) = &device.stats else { return };
    let name = names.remember(device);
    for (metric, value) in counters(stats) {
        readout.push(metric, Subject::Link(name.to_owned()), value);
    }
}

/// Returns what is counted of a device. What its receive ring had no room for is counted apart from what
/// the kernel dropped, and added to it, as `/proc/net/dev` does
/// (rtnl_link_stats64 in include/uapi/linux/if_link.h).
fn counters(stats: &Stats64) -> [(Metric, u64); 8] {
    let rx_dropped = stats.rx_dropped.saturating_add(stats.rx_missed_errors);
    [
        (Metric::LinkRxBytes, stats.rx_bytes),
        (Metric::LinkTxBytes, stats.tx_bytes),
        (Metric::LinkRxPackets, stats.rx_packets),
        (Metric::LinkTxPackets, stats.tx_packets),
        (Metric::LinkRxDropped, rx_dropped),
        (Metric::LinkTxDropped, stats.tx_dropped),
        (Metric::LinkRxErrors, stats.rx_errors),
        (Metric::LinkTxErrors, stats.tx_errors),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_ring_had_no_room_for_is_dropped() {
        let of = |rx_dropped, rx_missed_errors| {
            let mut stats = Stats64::default();
            (stats.rx_dropped, stats.rx_missed_errors) = (rx_dropped, rx_missed_errors);
            let dropped = |counter: &(Metric, u64)| counter.0 == Metric::LinkRxDropped;
            counters(&stats).into_iter().find(dropped)
        };
        assert_eq!(of(3, 5), Some((Metric::LinkRxDropped, 8)));
        assert_eq!(of(u64::MAX, 1), Some((Metric::LinkRxDropped, u64::MAX)));
    }
}
