//! Where queues are served: queue → NAPI → interrupt.
//!
//! The kernel tells since Linux 6.8 which NAPI serves a queue and, where the driver says, on which
//! interrupt; else the names of interrupts tell.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use linerate_model::sample::QueueKind;

use super::message;
use crate::generic::open_family;
use crate::irq::{DeviceIrq, network_irqs};
use crate::link::DeviceNames;
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
    let mut names = DeviceNames::default();
    names.renew(&mut NetlinkSocket::route()?)?;
    let mut irqs = BTreeMap::new();
    let mut question = Question::list(family, &message::napis_question());
    socket.ask(&mut question, |_, payload| {
        irqs.extend(message::read_napi(payload));
    })?;
    let mut places = BTreeMap::new();
    let mut question = Question::list(family, &message::queues_question());
    socket.ask(&mut question, |_, payload| {
        let Some(queue) = message::read_queue(payload) else {
            return;
        };
        let irq = queue.napi.and_then(|napi| irqs.get(&napi).copied());
        if let Some(name) = names.of(queue.device_index) {
            let place = QueuePlace {
                napi: queue.napi,
                irq,
            };
            places.insert((name.to_owned(), queue.kind, queue.queue), place);
        }
    })?;
    Ok(places)
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
        let irqs = [(38, "eth0-TxRx-0"), (39, "eth0-rx-1"), (40, "eth0-misc")];
        let irqs = irqs.map(|(irq, action)| DeviceIrq {
            irq,
            device: "eth0".to_owned(),
            action: action.to_owned(),
            served: served(action, "eth0"),
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
