//! One RTM_NEWQDISC message, as a view of its bytes.

use linerate_model::sample::QdiscId;

use crate::attributes::{attribute, each_attribute, until_zero};
use crate::bytes::{u32_at, u64_at};

/// The type of the question for queueing disciplines.
pub(super) const RTM_GETQDISC: u16 = libc::RTM_GETQDISC;
const RTM_NEWQDISC: u16 = libc::RTM_NEWQDISC;
/// Length of struct tcmsg, in bytes (include/uapi/linux/rtnetlink.h).
const HEADER_BYTES: usize = 20;
/// The parent of a discipline that is a device's root (include/uapi/linux/pkt_sched.h).
const TC_H_ROOT: u32 = u32::MAX;

// Attributes of a discipline, include/uapi/linux/rtnetlink.h.
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_DUMP_INVISIBLE: u16 = 10;
// What is inside TCA_STATS2, include/uapi/linux/gen_stats.h.
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;

/// A queueing discipline as the kernel describes it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct QdiscMessage<'a> {
    pub(super) device_index: u32,
    pub(super) handle: u32,
    pub(super) parent: u32,
    /// `pfifo_fast`, `mq`, `fq`, …
    pub(super) kind: &'a [u8],
    pub(super) basic: Option<Basic>,
    pub(super) queue: Option<Queue>,
}

/// What has left it (struct gnet_stats_basic).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Basic {
    pub(super) bytes: u64,
    pub(super) packets: u64,
}

/// What waits in it and what did not get through (struct gnet_stats_queue); 32 bits each.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) backlog_packets: u32,
    pub(super) backlog_bytes: u32,
    pub(super) drops: u32,
    pub(super) requeues: u32,
    pub(super) overlimits: u32,
}

/// Makes the payload of the question for every discipline of every device.
///
/// Without TCA_DUMP_INVISIBLE the kernel leaves out those that it made by itself below a class,
/// such as the queue inside `tbf`.
pub(super) fn every_qdisc() -> Vec<u8> {
    let mut payload = vec![0; HEADER_BYTES];
    payload.extend(attribute(TCA_DUMP_INVISIBLE, &[]));
    payload
}

impl<'a> QdiscMessage<'a> {
    /// Reads a netlink message of type `kind`; absent when it is no queueing discipline.
    pub(super) fn parse(kind: u16, payload: &'a [u8]) -> Option<Self> {
        if kind != RTM_NEWQDISC || payload.len() < HEADER_BYTES {
            return None;
        }
        // struct tcmsg: family and padding (u32), ifindex (i32), handle, parent, info (u32 each).
        let mut qdisc = Self {
            device_index: u32_at(payload, 4)?,
            handle: u32_at(payload, 8)?,
            parent: u32_at(payload, 12)?,
            ..Self::default()
        };
        each_attribute(&payload[HEADER_BYTES..], |kind, value| match kind {
            TCA_KIND => qdisc.kind = until_zero(value),
            TCA_STATS2 => (qdisc.basic, qdisc.queue) = stats(value),
            _ => {}
        });
        (!qdisc.kind.is_empty()).then_some(qdisc)
    }

    /// Returns what it is called: by its handle, or by its class where it has none.
    pub(super) fn id(&self) -> QdiscId {
        match (self.handle, self.parent) {
            (0, TC_H_ROOT) => QdiscId(0),
            (0, parent) => QdiscId(parent),
            (handle, _) => QdiscId(handle),
        }
    }
}

fn stats(value: &[u8]) -> (Option<Basic>, Option<Queue>) {
    let (mut basic, mut queue, mut packets) = (None, None, None);
    each_attribute(value, |kind, value| match kind {
        TCA_STATS_BASIC => basic = read_basic(value),
        TCA_STATS_QUEUE => queue = read_queue(value),
        TCA_STATS_PKT64 => packets = u64_at(value, 0),
        _ => {}
    });
    // The packets of TCA_STATS_BASIC have 32 bits; beyond them the kernel adds this one.
    let basic = basic.map(|basic: Basic| Basic {
        packets: packets.unwrap_or(basic.packets),
        ..basic
    });
    (basic, queue)
}

fn read_basic(value: &[u8]) -> Option<Basic> {
    Some(Basic {
        bytes: u64_at(value, 0)?,
        packets: u32_at(value, 8)?.into(),
    })
}

fn read_queue(value: &[u8]) -> Option<Queue> {
    let word = |at: usize| u32_at(value, 4 * at);
    Some(Queue {
        backlog_packets: word(0)?,
        backlog_bytes: word(1)?,
        drops: word(2)?,
        requeues: word(3)?,
        overlimits: word(4)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(words: [u32; 5], attributes: &[Vec<u8>]) -> Vec<u8> {
        let header = words.iter().flat_map(|word| word.to_ne_bytes());
        header.chain(attributes.concat()).collect()
    }

    fn bytes_of(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn basic(bytes: u64, packets: u32) -> Vec<u8> {
        let padded = [bytes.to_ne_bytes().as_slice(), &bytes_of(&[packets, 0])].concat();
        attribute(TCA_STATS_BASIC, &padded)
    }

    #[test]
    fn a_discipline_is_what_its_attributes_say() {
        let queue = attribute(TCA_STATS_QUEUE, &bytes_of(&[10, 15_140, 3, 2, 7]));
        let stats = [basic(1 << 40, 9), queue].concat();
        let bytes = message(
            [0, 4, 0x8001_0000, TC_H_ROOT, 2],
            &[
                attribute(TCA_KIND, b"tbf\0"),
                attribute(999, b"a later kernel's"),
                attribute(TCA_STATS2, &stats),
            ],
        );
        let qdisc = QdiscMessage::parse(RTM_NEWQDISC, &bytes).expect("it has a kind");
        assert_eq!(qdisc.device_index, 4);
        assert_eq!(qdisc.kind, b"tbf");
        let expected = Basic {
            bytes: 1 << 40,
            packets: 9,
        };
        assert_eq!(qdisc.basic, Some(expected));
        let expected = Queue {
            backlog_packets: 10,
            backlog_bytes: 15_140,
            drops: 3,
            requeues: 2,
            overlimits: 7,
        };
        assert_eq!(qdisc.queue, Some(expected));
    }

    #[test]
    fn packets_beyond_32_bits_are_taken_from_the_longer_number() {
        let longer = attribute(TCA_STATS_PKT64, &(5_u64 << 32 | 9).to_ne_bytes());
        let value = [basic(1, 9), longer].concat();
        let (found, queue) = stats(&value);
        assert_eq!(found.map(|basic| basic.packets), Some(5 << 32 | 9));
        assert_eq!(queue, None);
    }

    #[test]
    fn names_are_distinct_where_handles_are_not() {
        let name = |handle, parent| {
            let qdisc = QdiscMessage {
                handle,
                parent,
                ..QdiscMessage::default()
            };
            qdisc.id().to_string()
        };
        assert_eq!(name(0, TC_H_ROOT), "0:");
        assert_eq!(name(0, 1), "0:1");
        assert_eq!(name(0, 2), "0:2");
        assert_eq!(name(0x8001_0000, TC_H_ROOT), "8001:");
        assert_eq!(name(0xffff_0000, 0xffff_fff1), "ffff:");
    }

    #[test]
    fn what_is_not_a_discipline_is_not_read() {
        let words = [0, 4, 0, TC_H_ROOT, 0];
        let bytes = message(words, &[attribute(TCA_KIND, b"mq\0")]);
        assert!(QdiscMessage::parse(RTM_NEWQDISC, &bytes).is_some());
        assert!(QdiscMessage::parse(RTM_NEWQDISC + 1, &bytes).is_none());
        assert!(QdiscMessage::parse(RTM_NEWQDISC, &bytes[..19]).is_none());
        assert!(QdiscMessage::parse(RTM_NEWQDISC, &message(words, &[])).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            payload in proptest::collection::vec(any::<u8>(), 0..200),
            kind in 0_u16..12,
            value: Vec<u8>,
        ) {
            let _ = QdiscMessage::parse(RTM_NEWQDISC, &payload);
            let stats = attribute(TCA_STATS2, &attribute(kind, &value));
            let _ = QdiscMessage::parse(RTM_NEWQDISC, &message([0; 5], &[stats]));
        }
    }
}
