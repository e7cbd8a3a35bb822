//! Questions to the `netdev` family of generic netlink and its answers, as views of bytes.
//!
//! The family is described in Documentation/netlink/specs/netdev.yaml; numbers are those of
//! include/uapi/linux/netdev.h. Numbers of type `uint` have 32 or 64 bits, as the kernel likes.

use linerate_model::sample::QueueKind;

use super::Counter;
use crate::attributes::{attribute, each_attribute};
use crate::bytes::{u32_at, u64_at};
use crate::generic::{attributes_of, header};

const NETDEV_CMD_QUEUE_GET: u8 = 10;
const NETDEV_CMD_NAPI_GET: u8 = 11;
const NETDEV_CMD_QSTATS_GET: u8 = 12;

// Attributes of a queue.
const NETDEV_A_QUEUE_ID: u16 = 1;
const NETDEV_A_QUEUE_IFINDEX: u16 = 2;
const NETDEV_A_QUEUE_TYPE: u16 = 3;
const NETDEV_A_QUEUE_NAPI_ID: u16 = 4;
// Attributes of a NAPI.
const NETDEV_A_NAPI_IFINDEX: u16 = 1;
const NETDEV_A_NAPI_ID: u16 = 2;
const NETDEV_A_NAPI_IRQ: u16 = 3;
// Attributes of statistics.
const NETDEV_A_QSTATS_IFINDEX: u16 = 1;
const NETDEV_A_QSTATS_QUEUE_TYPE: u16 = 2;
const NETDEV_A_QSTATS_QUEUE_ID: u16 = 3;
const NETDEV_A_QSTATS_SCOPE: u16 = 4;
const NETDEV_QSTATS_SCOPE_QUEUE: u32 = 1;

/// Statistics that are counters of ours, by attribute.
const COUNTERS: &[(u16, Counter)] = &[
    (8, Counter::Packets),
    (9, Counter::Bytes),
    (10, Counter::Packets),
    (11, Counter::Bytes),
    // RX_HW_DROPS, which those for want of room are part of; TX_HW_DROPS.
    (13, Counter::Drops),
    (24, Counter::Drops),
];

/// A queue of a device, and what of it was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueMessage {
    pub(crate) device_index: u32,
    pub(crate) kind: QueueKind,
    pub(crate) queue: u32,
    pub(crate) napi: Option<u32>,
}

/// A NAPI of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NapiMessage {
    pub(crate) napi: u32,
    pub(crate) device_index: Option<u32>,
    pub(crate) irq: Option<u32>,
}

/// Makes the question for the statistics of every queue.
pub(super) fn statistics_question() -> Vec<u8> {
    let mut payload = header(NETDEV_CMD_QSTATS_GET);
    let scope = NETDEV_QSTATS_SCOPE_QUEUE.to_ne_bytes();
    payload.extend(attribute(NETDEV_A_QSTATS_SCOPE, &scope));
    payload
}

/// Makes the question for every queue.
pub(crate) fn queues_question() -> Vec<u8> {
    header(NETDEV_CMD_QUEUE_GET)
}

/// Makes the question for every NAPI, which serves queues on an interrupt.
pub(crate) fn napis_question() -> Vec<u8> {
    header(NETDEV_CMD_NAPI_GET)
}

/// Reads which queue statistics are of.
pub(super) fn queue_of_statistics(payload: &[u8]) -> Option<QueueMessage> {
    let (mut device, mut kind, mut queue) = (None, None, None);
    each_attribute(attributes_of(payload)?, |attribute, value| {
        match attribute {
            NETDEV_A_QSTATS_IFINDEX => device = u32_at(value, 0),
            NETDEV_A_QSTATS_QUEUE_TYPE => kind = queue_kind(value),
            NETDEV_A_QSTATS_QUEUE_ID => queue = u32_at(value, 0),
            _ => {}
        };
    });
    Some(QueueMessage {
        device_index: device?,
        kind: kind?,
        queue: queue?,
        napi: None,
    })
}

/// Hands every counter of the statistics of a queue to `push`.
pub(super) fn each_counter(payload: &[u8], mut push: impl FnMut(Counter, u64)) {
    let attributes = attributes_of(payload).unwrap_or_default();
    each_attribute(attributes, |attribute, value| {
        let known = COUNTERS.iter().find(|(known, _)| *known == attribute);
        if let (Some((_, counter)), Some(value)) = (known, uint_at(value)) {
            push(*counter, value);
        }
    });
}

/// Reads one queue.
pub(crate) fn read_queue(payload: &[u8]) -> Option<QueueMessage> {
    let (mut device, mut kind, mut queue, mut napi) = (None, None, None, None);
    each_attribute(attributes_of(payload)?, |attribute, value| {
        match attribute {
            NETDEV_A_QUEUE_IFINDEX => device = u32_at(value, 0),
            NETDEV_A_QUEUE_TYPE => kind = queue_kind(value),
            NETDEV_A_QUEUE_ID => queue = u32_at(value, 0),
            NETDEV_A_QUEUE_NAPI_ID => napi = u32_at(value, 0),
            _ => {}
        };
    });
    Some(QueueMessage {
        device_index: device?,
        kind: kind?,
        queue: queue?,
        napi,
    })
}

/// Reads one NAPI.
pub(crate) fn read_napi(payload: &[u8]) -> Option<NapiMessage> {
    let (mut device_index, mut napi, mut irq) = (None, None, None);
    each_attribute(attributes_of(payload)?, |attribute, value| {
        match attribute {
            NETDEV_A_NAPI_IFINDEX => device_index = u32_at(value, 0),
            NETDEV_A_NAPI_ID => napi = u32_at(value, 0),
            NETDEV_A_NAPI_IRQ => irq = u32_at(value, 0),
            _ => {}
        };
    });
    Some(NapiMessage {
        napi: napi?,
        device_index,
        irq,
    })
}

fn queue_kind(value: &[u8]) -> Option<QueueKind> {
    match u32_at(value, 0)? {
        0 => Some(QueueKind::Rx),
        1 => Some(QueueKind::Tx),
        _ => None,
    }
}

fn uint_at(value: &[u8]) -> Option<u64> {
    u64_at(value, 0).or_else(|| u32_at(value, 0).map(u64::from))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let attributes = attributes
            .iter()
            .map(|(kind, value)| attribute(*kind, value));
        [vec![0, 1, 0, 0], attributes.collect::<Vec<_>>().concat()].concat()
    }

    fn word(number: u32) -> [u8; 4] {
        number.to_ne_bytes()
    }

    #[test]
    fn statistics_of_a_queue_are_32_or_64_bits() {
        let payload = answer(&[
            (NETDEV_A_QSTATS_IFINDEX, &word(2)),
            (NETDEV_A_QSTATS_QUEUE_TYPE, &word(1)),
            (NETDEV_A_QSTATS_QUEUE_ID, &word(5)),
            (10, &word(77)),
            (11, &(5_u64 << 32).to_ne_bytes()),
            (99, &word(1)),
        ]);
        let mut counters = Vec::new();
        each_counter(&payload, |counter, value| counters.push((counter, value)));
        let expected = QueueMessage {
            device_index: 2,
            kind: QueueKind::Tx,
            queue: 5,
            napi: None,
        };
        assert_eq!(queue_of_statistics(&payload), Some(expected));
        assert_eq!(
            counters,
            [(Counter::Packets, 77), (Counter::Bytes, 5 << 32)]
        );
    }

    #[test]
    fn a_queue_leads_to_its_napi_and_that_to_its_interrupt() {
        let payload = answer(&[
            (NETDEV_A_QUEUE_ID, &word(3)),
            (NETDEV_A_QUEUE_TYPE, &word(0)),
            (NETDEV_A_QUEUE_NAPI_ID, &word(8194)),
            (NETDEV_A_QUEUE_IFINDEX, &word(2)),
        ]);
        let queue = read_queue(&payload).expect("a queue");
        assert_eq!((queue.kind, queue.queue), (QueueKind::Rx, 3));
        assert_eq!(queue.napi, Some(8194));
        let payload = answer(&[
            (NETDEV_A_NAPI_IFINDEX, &word(2)),
            (NETDEV_A_NAPI_ID, &word(8194)),
            (NETDEV_A_NAPI_IRQ, &word(38)),
        ]);
        let found = NapiMessage {
            napi: 8194,
            device_index: Some(2),
            irq: Some(38),
        };
        assert_eq!(read_napi(&payload), Some(found));
        let without = answer(&[(NETDEV_A_NAPI_ID, &word(8194))]);
        assert_eq!(read_napi(&without).and_then(|napi| napi.irq), None);
        assert_eq!(read_napi(&answer(&[])), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(payload: Vec<u8>) {
            each_counter(&payload, |_, _| {});
            let _ = queue_of_statistics(&payload);
            let _ = (read_queue(&payload), read_napi(&payload));
        }
    }
}
