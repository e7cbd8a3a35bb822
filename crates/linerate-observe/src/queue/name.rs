//! Which queue and counter the name of a driver's statistic means.
//!
//! Drivers name their statistics as they like (`ethtool -S`); with the queue's number taken out, the
//! names of one driver are the same few, and they are the table below. A name that is not in it is
//! no counter of a queue. Where several names are the same counter of a queue, their values add
//! up: bnxt counts unicast, multicast and broadcast apart.

use linerate_model::sample::QueueKind::{self, Rx, Tx};

use super::Counter::{self, Bytes, Drops, Packets};

/// What a statistic counts: the queue's side and number, and the counter.
pub(super) type Meaning = (QueueKind, u32, Counter);

/// Names with `#` for the queue's number, by the drivers that use them.
const NAMES: &[(&str, QueueKind, Counter)] = &[
    // ixgbe, igb, igc, ice, netvsc, be2net and most others.
    ("rx_queue_#_packets", Rx, Packets),
    ("rx_queue_#_bytes", Rx, Bytes),
    ("rx_queue_#_drops", Rx, Drops),
    ("tx_queue_#_packets", Tx, Packets),
    ("tx_queue_#_bytes", Tx, Bytes),
    ("tx_queue_#_drops", Tx, Drops),
    // veth: all that its NAPI takes, with an XDP program or without.
    ("rx_queue_#_xdp_packets", Rx, Packets),
    ("rx_queue_#_xdp_bytes", Rx, Bytes),
    // i40e, iavf.
    ("rx-#.packets", Rx, Packets),
    ("rx-#.bytes", Rx, Bytes),
    ("tx-#.packets", Tx, Packets),
    ("tx-#.bytes", Tx, Bytes),
    // sfc.
    ("rx-#.rx_packets", Rx, Packets),
    ("tx-#.tx_packets", Tx, Packets),
    // mlx4, mlx5, virtio_net.
    ("rx#_packets", Rx, Packets),
    ("rx#_bytes", Rx, Bytes),
    ("rx#_drops", Rx, Drops),
    ("tx#_packets", Tx, Packets),
    ("tx#_bytes", Tx, Bytes),
    ("tx#_dropped", Tx, Drops),
    // ena.
    ("queue_#_rx_cnt", Rx, Packets),
    ("queue_#_rx_bytes", Rx, Bytes),
    ("queue_#_tx_cnt", Tx, Packets),
    ("queue_#_tx_bytes", Tx, Bytes),
    // bnxt, bnx2x.
    ("[#]: rx_ucast_packets", Rx, Packets),
    ("[#]: rx_mcast_packets", Rx, Packets),
    ("[#]: rx_bcast_packets", Rx, Packets),
    ("[#]: rx_ucast_bytes", Rx, Bytes),
    ("[#]: rx_mcast_bytes", Rx, Bytes),
    ("[#]: rx_bcast_bytes", Rx, Bytes),
    ("[#]: rx_bytes", Rx, Bytes),
    ("[#]: rx_discards", Rx, Drops),
    ("[#]: tx_ucast_packets", Tx, Packets),
    ("[#]: tx_mcast_packets", Tx, Packets),
    ("[#]: tx_bcast_packets", Tx, Packets),
    ("[#]: tx_ucast_bytes", Tx, Bytes),
    ("[#]: tx_mcast_bytes", Tx, Bytes),
    ("[#]: tx_bcast_bytes", Tx, Bytes),
    ("[#]: tx_bytes", Tx, Bytes),
    ("[#]: tx_discards", Tx, Drops),
    // gve.
    ("rx_packets[#]", Rx, Packets),
    ("rx_bytes[#]", Rx, Bytes),
    ("tx_packets[#]", Tx, Packets),
    ("tx_bytes[#]", Tx, Bytes),
    // mana.
    ("rx_#_packets", Rx, Packets),
    ("rx_#_bytes", Rx, Bytes),
    ("tx_#_packets", Tx, Packets),
    ("tx_#_bytes", Tx, Bytes),
    // ionic.
    ("rx_#_pkts", Rx, Packets),
    ("tx_#_pkts", Tx, Packets),
    // hns3.
    ("rxq#_packets", Rx, Packets),
    ("rxq#_bytes", Rx, Bytes),
    ("txq#_packets", Tx, Packets),
    ("txq#_bytes", Tx, Bytes),
    // octeontx2.
    ("rxq#: frames", Rx, Packets),
    ("rxq#: bytes", Rx, Bytes),
    ("txq#: frames", Tx, Packets),
    ("txq#: bytes", Tx, Bytes),
    // nfp.
    ("rvec_#_rx_pkts", Rx, Packets),
    ("rvec_#_tx_pkts", Tx, Packets),
    // qede.
    ("#: rcv_pkts", Rx, Packets),
    ("#: xmit_pkts", Tx, Packets),
    // atlantic.
    ("Queue[#] InPackets", Rx, Packets),
    ("Queue[#] OutPackets", Tx, Packets),
];

/// Returns what the statistic called `name` counts of which queue.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    let begin = name.find(|byte: char| byte.is_ascii_digit())?;
    let (head, rest) = name.split_at(begin);
    let tail = rest.trim_start_matches(|byte: char| byte.is_ascii_digit());
    let queue = rest[..rest.len() - tail.len()].parse().ok()?;
    let matches = |pattern: &str| {
        let own = pattern
            .strip_prefix(head)
            .and_then(|own| own.strip_prefix('#'));
        own == Some(tail)
    };
    let found = NAMES.iter().find(|(pattern, ..)| matches(pattern))?;
    Some((found.1, queue, found.2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_the_usual_drivers() {
        for (name, expected) in [
            ("rx_queue_0_packets", (Rx, 0, Packets)),
            ("tx_queue_63_bytes", (Tx, 63, Bytes)),
            ("rx_queue_3_xdp_packets", (Rx, 3, Packets)),
            ("rx-0.packets", (Rx, 0, Packets)),
            ("tx-127.bytes", (Tx, 127, Bytes)),
            ("rx0_packets", (Rx, 0, Packets)),
            ("tx11_dropped", (Tx, 11, Drops)),
            ("queue_0_rx_cnt", (Rx, 0, Packets)),
            ("queue_7_tx_bytes", (Tx, 7, Bytes)),
            ("[0]: rx_ucast_packets", (Rx, 0, Packets)),
            ("[12]: tx_bcast_packets", (Tx, 12, Packets)),
            ("rx_bytes[5]", (Rx, 5, Bytes)),
            ("rxq2: frames", (Rx, 2, Packets)),
            ("rvec_1_tx_pkts", (Tx, 1, Packets)),
            ("3: rcv_pkts", (Rx, 3, Packets)),
            ("Queue[6] InPackets", (Rx, 6, Packets)),
        ] {
            assert_eq!(meaning(name), Some(expected), "{name}");
        }
        for name in [
            "",
            "rx_packets",
            "rx_64_bytes_packets_phy",
            "rx_65_to_127_bytes",
            "rx0_xdp_drop",
            "rx0_csum_none",
            "ptp_rx0_packets",
            "port.rx_size_64",
            "rx_prio0_packets",
            "tx_queue_0_restart",
            "rx_queue_99999999999_packets",
            "[0]: rx_error_packets",
        ] {
            assert_eq!(meaning(name), None, "{name}");
        }
    }

    #[test]
    fn every_name_of_the_table_is_found() {
        for (pattern, kind, counter) in NAMES {
            let name = pattern.replace('#', "17");
            assert_eq!(meaning(&name), Some((*kind, 17, *counter)), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_name_panics(name: String) {
            let _ = meaning(&name);
        }
    }
}
