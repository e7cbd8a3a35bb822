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

/// Names with `#` for the queue's number and `@` for its side, `rx` or `tx`, by the drivers that use them.
const NAMES: &[(&str, Counter)] = &[
    // ixgbe, igb, igc, ice, netvsc, be2net and most others.
    ("@_queue_#_packets", Packets),
    ("@_queue_#_bytes", Bytes),
    ("@_queue_#_drops", Drops),
    // i40e, iavf.
    ("@-#.packets", Packets),
    ("@-#.bytes", Bytes),
    // sfc.
    ("@-#.@_packets", Packets),
    // mlx4, mlx5, virtio_net.
    ("@#_packets", Packets),
    ("@#_bytes", Bytes),
    // ena.
    ("queue_#_@_cnt", Packets),
    ("queue_#_@_bytes", Bytes),
    // bnxt, bnx2x.
    ("[#]: @_ucast_packets", Packets),
    ("[#]: @_mcast_packets", Packets),
    ("[#]: @_bcast_packets", Packets),
    ("[#]: @_ucast_bytes", Bytes),
    ("[#]: @_mcast_bytes", Bytes),
    ("[#]: @_bcast_bytes", Bytes),
    ("[#]: @_bytes", Bytes),
    ("[#]: @_discards", Drops),
    // gve.
    ("@_packets[#]", Packets),
    ("@_bytes[#]", Bytes),
    // mana.
    ("@_#_packets", Packets),
    ("@_#_bytes", Bytes),
    // ionic.
    ("@_#_pkts", Packets),
    // hns3.
    ("@q#_packets", Packets),
    ("@q#_bytes", Bytes),
    // octeontx2.
    ("@q#: frames", Packets),
    ("@q#: bytes", Bytes),
    // nfp.
    ("rvec_#_@_pkts", Packets),
];

/// Names that are not alike on both sides.
const NAMES_OF_SIDES: &[(&str, QueueKind, Counter)] = &[
    // veth: all that its NAPI takes, with an XDP program or without.
    ("rx_queue_#_xdp_packets", Rx, Packets),
    ("rx_queue_#_xdp_bytes", Rx, Bytes),
    // mlx4, mlx5, virtio_net.
    ("rx#_drops", Rx, Drops),
    ("tx#_dropped", Tx, Drops),
    // qede.
    ("#: rcv_pkts", Rx, Packets),
    ("#: xmit_pkts", Tx, Packets),
    // atlantic.
    ("Queue[#] InPackets", Rx, Packets),
    ("Queue[#] OutPackets", Tx, Packets),
];

/// Returns every name of both tables with its side.
fn names() -> impl Iterator<Item = (&'static str, QueueKind, Counter)> {
    let alike = NAMES.iter().flat_map(|&(pattern, counter)| {
        let of = move |side| (pattern, side, counter);
        [of(Rx), of(Tx)]
    });
    alike.chain(NAMES_OF_SIDES.iter().copied())
}

/// Returns what the statistic called `name` counts of which queue.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    let begin = name.find(|byte: char| byte.is_ascii_digit())?;
    let (head, rest) = name.split_at(begin);
    let tail = rest.trim_start_matches(|byte: char| byte.is_ascii_digit());
    let queue = rest[..rest.len() - tail.len()].parse().ok()?;
    let matches = |(pattern, side, _): &(&str, QueueKind, Counter)| {
        let parts = pattern.split_once('#');
        parts.is_some_and(|(before, behind)| fits(before, *side, head) && fits(behind, *side, tail))
    };
    let (_, side, counter) = names().find(matches)?;
    Some((side, queue, counter))
}

/// Tells whether `text` is what `pattern` is for that side.
fn fits(pattern: &str, side: QueueKind, text: &str) -> bool {
    let Some((before, behind)) = pattern.split_once('@') else {
        return text == pattern;
    };
    let rest = text.strip_prefix(before);
    rest.and_then(|rest| rest.strip_prefix(word(side))) == Some(behind)
}

fn word(side: QueueKind) -> &'static str {
    match side {
        Rx => "rx",
        Tx => "tx",
    }
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
        for (pattern, side, counter) in names() {
            let name = pattern.replace('#', "17").replace('@', word(side));
            assert_eq!(meaning(&name), Some((side, 17, counter)), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_name_panics(name: String) {
            let _ = meaning(&name);
        }
    }
}
