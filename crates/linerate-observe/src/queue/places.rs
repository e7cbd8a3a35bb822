//! Where queues are served: queue → NAPI → interrupt.
//!
//! The kernel tells since Linux 6.8 which NAPI serves a queue and, where the driver says, on which
//! interrupt; else the names of interrupts tell. veth does not tell, but makes its NAPIs in the order of
//! its receive queues.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use linerate_model::sample::QueueKind;

use super::message::{self, NapiMessage, QueueMessage};
use crate::generic::open_family;
use crate::irq::{DeviceIrq, network_irqs};
use crate::link::{DeviceNames, each_device};
use crate::sys::netlink::{NetlinkSocket, Question};

/// A queue: its device, side and number.
pub(crate) type QueueName = (String, QueueKind, u32);

/// Where a queue is served, as far as it is known.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueuePlace {
    /// The kernel's number of the NAPI that serves it, as SO_INCOMING_NAPI_ID of a socket gives it.
    pub(crate) napi: Option<u32>,
    pub(crate) irq: Option<u32>,
}

/// Returns where the queues of all devices are served.
pub(crate) fn queue_places(proc_root: &Path, sys_root: &Path) -> BTreeMap<QueueName, QueuePlace> {
    let mut places = of_kernel().unwrap_or_default();
    add_named(&mut places, &network_irqs(proc_root, sys_root));
    places
}

/// Asks the kernel; fails where it is too old.
fn of_kernel() -> io::Result<BTreeMap<QueueName, QueuePlace>> {
    let (mut socket, family) = open_family("netdev")?;
    let (mut names, mut veths) = (DeviceNames::default(), Vec::new());
    each_device(&mut NetlinkSocket::route()?, |device| {
        names.remember(&device);
        if device.kind == Some(b"veth") {
            veths.push(device.index);
        }
    })?;
    let (mut napis, mut queues) = (Vec::new(), Vec::new());
    let mut question = Question::list(family, &message::napis_question());
    socket.ask(&mut question, |_, payload| {
        napis.extend(message::read_napi(payload));
    })?;
    let mut question = Question::list(family, &message::queues_question());
    socket.ask(&mut question, |_, payload| {
        queues.extend(message::read_queue(payload));
    })?;
    for veth in veths {
        add_in_order(veth, &mut queues, &napis);
    }
    let place = |queue: QueueMessage| {
        let napi = queue.napi;
        let served = napis.iter().find(|served| Some(served.napi) == napi);
        let irq = served.and_then(|served| served.irq);
        let name = names.of(queue.device_index)?.to_owned();
        let name = (name, queue.kind, queue.queue);
        Some((name, QueuePlace { napi, irq }))
    };
    Ok(queues.into_iter().filter_map(place).collect())
}

/// Gives the receive queues of a veth their NAPIs: numbers ascend as they are given out, and veth
/// goes through its queues in order (`__veth_napi_enable_range` in drivers/net/veth.c).
///
/// Only where there are as many as queues, and where none was told.
fn add_in_order(device_index: u32, queues: &mut [QueueMessage], napis: &[NapiMessage]) {
    let mut queues: Vec<&mut QueueMessage> = queues
        .iter_mut()
        .filter(|queue| queue.device_index == device_index && queue.kind == QueueKind::Rx)
        .collect();
    queues.sort_by_key(|queue| queue.queue);
    let of_device = napis
        .iter()
        .filter(|napi| napi.device_index == Some(device_index));
    let mut numbers: Vec<u32> = of_device.map(|napi| napi.napi).collect();
    numbers.sort_unstable();
    if queues.len() != numbers.len() || queues.iter().any(|queue| queue.napi.is_some()) {
        return;
    }
    for (queue, napi) in queues.into_iter().zip(numbers) {
        queue.napi = Some(napi);
    }
}

/// Adds the interrupts whose names tell of a queue, where the kernel does not say better.
fn add_named(places: &mut BTreeMap<QueueName, QueuePlace>, irqs: &[DeviceIrq]) {
    for found in irqs {
        let Some(served) = found.served else { continue };
        for kind in [QueueKind::Rx, QueueKind::Tx] {
            if served.side.is_none_or(|side| side == kind) {
                let name = (found.device.clone(), kind, served.queue);
                let place = places.entry(name).or_default();
                place.irq = place.irq.or(Some(found.irq));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::irq::served;

    #[test]
    fn the_queues_of_a_veth_have_its_napis_in_order() {
        let queue = |device_index, queue, kind| QueueMessage {
            device_index,
            kind,
            queue,
            napi: None,
        };
        let all = [
            queue(3, 1, QueueKind::Rx),
            queue(3, 0, QueueKind::Rx),
            queue(3, 0, QueueKind::Tx),
            queue(4, 0, QueueKind::Rx),
        ];
        let napi = |napi, device_index| NapiMessage {
            napi,
            device_index: Some(device_index),
            irq: None,
        };
        // The kernel lists the youngest first.
        let check = |napis: &[NapiMessage], expected: [Option<u32>; 4]| {
            let mut queues = all;
            add_in_order(3, &mut queues, napis);
            assert_eq!(queues.map(|queue| queue.napi), expected);
        };
        let both = [napi(262, 3), napi(261, 3), napi(260, 4)];
        check(&both, [Some(262), Some(261), None, None]);
        check(&both[1..], [None; 4]);
    }

    #[test]
    fn names_of_interrupts_fill_what_the_kernel_does_not_say() {
        let name = |kind, queue| ("eth0".to_owned(), kind, queue);
        let said = QueuePlace {
            napi: Some(8193),
            irq: Some(70),
        };
        let unsaid = QueuePlace {
            napi: Some(8194),
            irq: None,
        };
        let mut places = BTreeMap::from([
            (name(QueueKind::Rx, 0), said),
            (name(QueueKind::Rx, 1), unsaid),
        ]);
        let irqs =
            [(38, "eth0-TxRx-0"), (39, "eth0-rx-1"), (40, "eth0-misc")].map(|(irq, action)| {
                DeviceIrq {
                    irq,
                    device: "eth0".to_owned(),
                    action: action.to_owned(),
                    served: served(action, "eth0"),
                }
            });
        add_named(&mut places, &irqs);
        let irq = |kind, queue| places.get(&name(kind, queue)).and_then(|place| place.irq);
        assert_eq!(irq(QueueKind::Rx, 0), Some(70), "the kernel's word");
        assert_eq!(irq(QueueKind::Tx, 0), Some(38));
        assert_eq!(irq(QueueKind::Rx, 1), Some(39));
        assert_eq!(irq(QueueKind::Tx, 1), None);
        assert_eq!(places.len(), 3);
    }
}
