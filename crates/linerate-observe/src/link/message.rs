//! One RTM_NEWLINK message, as a view of its bytes.
//!
//! The whole-message parser of netlink-packet-route allocates for every attribute and fails on one
//! that a newer kernel has changed; here only what is used is looked at, and nothing is allocated.

use netlink_packet_route::link::Stats64;

use crate::attributes::{each_attribute, first_attribute, until_zero};
use crate::bytes::u32_at;

const RTM_NEWLINK: u16 = libc::RTM_NEWLINK;
/// Length of struct ifinfomsg, in bytes (include/uapi/linux/rtnetlink.h).
pub(super) const HEADER_BYTES: usize = 16;

// Attributes of a link, include/uapi/linux/if_link.h.
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_QDISC: u16 = 6;
const IFLA_LINKINFO: u16 = 18;
const IFLA_IFALIAS: u16 = 20;
const IFLA_STATS64: u16 = 23;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_INFO_KIND: u16 = 1;

/// A device as the kernel describes it; what it did not say is absent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceMessage<'a> {
    pub(crate) index: u32,
    pub(crate) flags: u32,
    /// IFLA_IFNAME without the terminating zero; any bytes but `/` and white space.
    pub(crate) name: &'a [u8],
    pub(crate) mtu_bytes: Option<u32>,
    pub(crate) address: Option<&'a [u8]>,
    pub(crate) qdisc: Option<&'a [u8]>,
    /// What somebody wrote on it.
    pub(crate) alias: Option<&'a [u8]>,
    /// What kind of virtual device it is; absent for hardware and loopback.
    pub(crate) kind: Option<&'a [u8]>,
    /// Queues allocated, which may be more than are in use.
    pub(crate) rx_queues_max: Option<u32>,
    pub(crate) tx_queues_max: Option<u32>,
    pub(crate) stats: Option<Stats64>,
}

impl<'a> DeviceMessage<'a> {
    /// Reads a netlink message of type `kind`; absent when it is no device with a name.
    pub(crate) fn parse(kind: u16, payload: &'a [u8]) -> Option<Self> {
        if kind != RTM_NEWLINK || payload.len() < HEADER_BYTES {
            return None;
        }
        // struct ifinfomsg: family, pad, type (u16), index (i32), flags (u32), change (u32).
        let mut device = Self {
            index: u32_at(payload, 4)?,
            flags: u32_at(payload, 8)?,
            ..Self::default()
        };
        each_attribute(&payload[HEADER_BYTES..], |kind, value| {
            match kind {
                IFLA_IFNAME => device.name = until_zero(value),
                IFLA_MTU => device.mtu_bytes = u32_at(value, 0),
                IFLA_ADDRESS => device.address = Some(value),
                IFLA_QDISC => device.qdisc = Some(until_zero(value)),
                IFLA_IFALIAS => device.alias = Some(until_zero(value)),
                IFLA_LINKINFO => {
                    device.kind = first_attribute(value, IFLA_INFO_KIND).map(until_zero);
                }
                IFLA_STATS64 => device.stats = Stats64::parse(value).ok(),
                IFLA_NUM_TX_QUEUES => device.tx_queues_max = u32_at(value, 0),
                IFLA_NUM_RX_QUEUES => device.rx_queues_max = u32_at(value, 0),
                _ => {}
            };
        });
        (!device.name.is_empty()).then_some(device)
    }

    /// Returns whether the device is administratively up.
    pub(crate) fn is_up(&self) -> bool {
        self.has_flag(libc::IFF_UP)
    }

    /// Returns whether the device leads back to this host.
    pub(crate) fn is_loopback(&self) -> bool {
        self.has_flag(libc::IFF_LOOPBACK)
    }

    /// Returns the name as text.
    pub(crate) fn name_text(&self) -> String {
        String::from_utf8_lossy(self.name).into_owned()
    }

    fn has_flag(&self, flag: i32) -> bool {
        self.flags & flag.cast_unsigned() != 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attributes::attribute;

    fn message(index: u32, flags: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
        let words = [0, index, flags, 0];
        let header = words.iter().flat_map(|word| word.to_ne_bytes());
        header.chain(attributes.concat()).collect()
    }

    /// Counters 1, 2, 3, … in the order of struct rtnl_link_stats64.
    fn stats(words: u64) -> Vec<u8> {
        (1..=words).flat_map(u64::to_ne_bytes).collect()
    }

    #[test]
    fn a_device_is_what_its_attributes_say() {
        let bytes = message(
            7,
            (libc::IFF_UP | libc::IFF_RUNNING) as u32,
            &[
                attribute(IFLA_IFNAME, b"eth0\0"),
                attribute(IFLA_MTU, &9000u32.to_ne_bytes()),
                attribute(IFLA_ADDRESS, &[2, 0, 0, 0, 0, 1]),
                attribute(IFLA_QDISC, b"mq\0"),
                attribute(IFLA_IFALIAS, b"to the rack\0"),
                attribute(IFLA_LINKINFO, &attribute(IFLA_INFO_KIND, b"veth\0")),
                attribute(IFLA_NUM_TX_QUEUES, &4u32.to_ne_bytes()),
                attribute(IFLA_NUM_RX_QUEUES, &8u32.to_ne_bytes()),
                attribute(999, b"a later kernel's"),
                attribute(IFLA_STATS64, &stats(24)),
            ],
        );
        let device = DeviceMessage::parse(RTM_NEWLINK, &bytes).expect("it has a name");
        assert!(device.is_up() && !device.is_loopback());
        assert_eq!((device.index, device.name), (7, b"eth0".as_slice()));
        assert_eq!(device.mtu_bytes, Some(9000));
        assert_eq!(device.address, Some([2, 0, 0, 0, 0, 1].as_slice()));
        assert_eq!(device.qdisc, Some(b"mq".as_slice()));
        assert_eq!(device.alias, Some(b"to the rack".as_slice()));
        assert_eq!(device.kind, Some(b"veth".as_slice()));
        assert_eq!(
            (device.tx_queues_max, device.rx_queues_max),
            (Some(4), Some(8))
        );
        let stats = device.stats.expect("it has counters");
        assert_eq!((stats.rx_packets, stats.tx_packets), (1, 2));
        assert_eq!((stats.rx_bytes, stats.tx_bytes), (3, 4));
        assert_eq!((stats.rx_errors, stats.tx_errors), (5, 6));
        assert_eq!((stats.rx_dropped, stats.tx_dropped), (7, 8));
    }

    #[test]
    fn what_is_not_a_device_is_not_read() {
        let named = message(7, 0, &[attribute(IFLA_IFNAME, b"eth0\0")]);
        assert!(DeviceMessage::parse(RTM_NEWLINK, &named).is_some());
        assert!(DeviceMessage::parse(RTM_NEWLINK + 1, &named).is_none());
        assert!(DeviceMessage::parse(RTM_NEWLINK, &named[..15]).is_none());
        assert!(DeviceMessage::parse(RTM_NEWLINK, &named[..20]).is_none());
        assert!(DeviceMessage::parse(RTM_NEWLINK, &message(7, 0, &[])).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = DeviceMessage::parse(RTM_NEWLINK, &payload);
        }

        #[test]
        fn no_attribute_panics(kind in 0u16..40, value: Vec<u8>) {
            let bytes = message(1, 1, &[attribute(IFLA_IFNAME, b"e"), attribute(kind, &value)]);
            let _ = DeviceMessage::parse(RTM_NEWLINK, &bytes);
        }
    }
}
