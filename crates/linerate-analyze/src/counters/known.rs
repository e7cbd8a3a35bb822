//! What the kernel's protocol counters mean, and which of them tell of trouble.
//!
//! Names and meanings are the kernel's (net/ipv4/proc.c, include/uapi/linux/snmp.h,
//! Documentation/networking/snmp_counter.rst). One that is not listed is shown without a meaning;
//! whether it tells of trouble is then read from its name.

/// Words in the name of a counter that tell of trouble.
const TROUBLE: &[&str] = &[
    "Drop",
    "Err",
    "Fail",
    "Overflow",
    "Discard",
    "Lost",
    "Prune",
    "NoRoute",
    "NoPort",
    "Reject",
    "Retrans",
    "Timeout",
    "Truncated",
];

/// Returns whether the counter called `name` tells of trouble, and what it counts, where that is known.
pub(super) fn known(name: &str) -> (bool, Option<&'static str>) {
    let listed = |list: &'static [(&str, &'static str)]| {
        let mut list = list.iter();
        list.find(|(known, _)| *known == name)
            .map(|(_, meaning)| *meaning)
    };
    match (listed(TROUBLES), listed(OTHERS)) {
        (None, None) => (TROUBLE.iter().any(|word| name.contains(word)), None),
        (trouble, other) => (trouble.is_some(), trouble.or(other)),
    }
}

/// A counter of the kernel's protocols of which it is known what it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownCounter {
    /// The kernel's name, as in `TcpExt.ListenOverflows`.
    pub name: &'static str,
    /// Whether it tells of trouble.
    pub trouble: bool,
    /// What it counts.
    pub meaning: &'static str,
}

/// Returns every counter that is known, those that tell of trouble first.
pub fn known_counters() -> impl Iterator<Item = KnownCounter> {
    let of = |trouble| {
        move |&(name, meaning): &(&'static str, &'static str)| KnownCounter {
            name,
            trouble,
            meaning,
        }
    };
    let troubles = TROUBLES.iter().map(of(true));
    troubles.chain(OTHERS.iter().map(of(false)))
}

/// Counters that tell of loss, want of room, or work done twice.
const TROUBLES: &[(&str, &str)] = &[
    ("Tcp.RetransSegs", "segments retransmitted"),
    (
        "Tcp.AttemptFails",
        "connections that failed while they were opened",
    ),
    ("Tcp.EstabResets", "established connections that were reset"),
    ("Tcp.InErrs", "bad segments received"),
    (
        "Tcp.InCsumErrors",
        "segments received with a wrong checksum",
    ),
    ("Tcp.OutRsts", "resets sent"),
    (
        "Udp.InErrors",
        "datagrams not handed to a socket, for any reason",
    ),
    (
        "Udp.RcvbufErrors",
        "datagrams dropped because the receive buffer of their socket was full",
    ),
    ("Udp.InCsumErrors", "datagrams with a wrong checksum"),
    (
        "Udp.MemErrors",
        "datagrams for which UDP had no memory (net.ipv4.udp_mem)",
    ),
    (
        "Udp.NoPorts",
        "datagrams for ports on which nothing listens",
    ),
    (
        "Udp.SndbufErrors",
        "datagrams that this host could not send",
    ),
    (
        "Udp6InErrors",
        "datagrams over IPv6 not handed to a socket, for any reason",
    ),
    (
        "Udp6RcvbufErrors",
        "datagrams over IPv6 dropped because the receive buffer of their socket was full",
    ),
    (
        "Udp6InCsumErrors",
        "datagrams over IPv6 with a wrong checksum",
    ),
    (
        "Udp6MemErrors",
        "datagrams over IPv6 for which UDP had no memory (net.ipv4.udp_mem)",
    ),
    (
        "Udp6NoPorts",
        "datagrams over IPv6 for ports on which nothing listens",
    ),
    (
        "Udp6SndbufErrors",
        "datagrams over IPv6 that this host could not send",
    ),
    ("Ip.InHdrErrors", "packets dropped because of their header"),
    (
        "Ip.InAddrErrors",
        "packets dropped because of their address",
    ),
    (
        "Ip.InDiscards",
        "good packets dropped on their way in, for lack of memory for instance",
    ),
    (
        "Ip.OutDiscards",
        "good packets dropped on their way out, by a qdisc for instance",
    ),
    (
        "Ip.OutNoRoutes",
        "packets dropped because no route was found",
    ),
    (
        "Ip.ReasmTimeout",
        "packets discarded because a fragment did not arrive in time",
    ),
    (
        "Ip.ReasmFails",
        "packets that could not be reassembled from fragments",
    ),
    (
        "Ip.FragFails",
        "packets that were too long and must not be fragmented",
    ),
    (
        "Ip6InHdrErrors",
        "IPv6 packets dropped because of their header",
    ),
    (
        "Ip6InTooBigErrors",
        "IPv6 packets longer than the MTU of the next link",
    ),
    (
        "Ip6InNoRoutes",
        "IPv6 received packets for which no route was found",
    ),
    (
        "Ip6InAddrErrors",
        "IPv6 packets dropped because of their address",
    ),
    ("Ip6InTruncatedPkts", "IPv6 packets that were truncated"),
    ("Ip6InDiscards", "good IPv6 packets dropped on their way in"),
    (
        "Ip6OutDiscards",
        "good IPv6 packets dropped on their way out",
    ),
    (
        "Ip6OutNoRoutes",
        "IPv6 packets dropped because no route was found",
    ),
    (
        "Ip6ReasmTimeout",
        "IPv6 packets discarded because a fragment did not arrive in time",
    ),
    (
        "Ip6ReasmFails",
        "IPv6 packets that could not be reassembled from fragments",
    ),
    ("Ip6FragFails", "IPv6 packets that could not be fragmented"),
    (
        "IpExt.InNoRoutes",
        "received packets for which no route was found",
    ),
    ("IpExt.InTruncatedPkts", "packets that were truncated"),
    (
        "IpExt.InCsumErrors",
        "packets with a wrong checksum in their IP header",
    ),
    (
        "IpExt.InCEPkts",
        "packets that a router had marked as congested (ECN)",
    ),
    (
        "Ip6InCEPkts",
        "IPv6 packets that a router had marked as congested (ECN)",
    ),
    (
        "Icmp.InDestUnreachs",
        "messages that a destination cannot be reached, received",
    ),
    (
        "Icmp.OutDestUnreachs",
        "messages that a destination cannot be reached, sent",
    ),
    ("TcpExt.SyncookiesSent", "SYNs answered with a cookie"),
    (
        "TcpExt.SyncookiesFailed",
        "SYN cookies that came back wrong",
    ),
    (
        "TcpExt.EmbryonicRsts",
        "connections reset before they were established",
    ),
    (
        "TcpExt.PruneCalled",
        "receive queues pruned for lack of memory",
    ),
    (
        "TcpExt.RcvPruned",
        "receive queues that stayed too large after pruning: segments were dropped",
    ),
    (
        "TcpExt.OfoPruned",
        "out-of-order queues dropped for lack of memory",
    ),
    (
        "TcpExt.OutOfWindowIcmps",
        "ICMP messages about segments outside the window",
    ),
    (
        "TcpExt.LockDroppedIcmps",
        "ICMP messages dropped because the socket was in use",
    ),
    (
        "TcpExt.PAWSActive",
        "SYN-ACKs dropped: their timestamp was too old",
    ),
    (
        "TcpExt.PAWSEstab",
        "segments dropped: their timestamp was too old",
    ),
    (
        "TcpExt.DelayedACKLost",
        "segments received again after they had been received whole: the ACK was lost or late",
    ),
    (
        "TcpExt.ListenOverflows",
        "connections dropped because a listener's accept queue was full",
    ),
    (
        "TcpExt.ListenDrops",
        "connections dropped by a listener, for any reason",
    ),
    (
        "TcpExt.TCPRenoRecovery",
        "times that a sender began to recover from a loss, without SACK",
    ),
    (
        "TcpExt.TCPSackRecovery",
        "times that a sender began to recover from a loss, by SACK",
    ),
    (
        "TcpExt.TCPRenoRecoveryFail",
        "recoveries without SACK that ended in a timeout",
    ),
    (
        "TcpExt.TCPSackRecoveryFail",
        "recoveries by SACK that ended in a timeout",
    ),
    (
        "TcpExt.TCPSACKReneging",
        "times that a receiver dropped data already acknowledged by SACK",
    ),
    (
        "TcpExt.TCPSACKReorder",
        "times that SACK showed segments out of order",
    ),
    (
        "TcpExt.TCPRenoReorder",
        "times that duplicate ACKs showed segments out of order",
    ),
    (
        "TcpExt.TCPTSReorder",
        "times that timestamps showed segments out of order",
    ),
    (
        "TcpExt.TCPFullUndo",
        "times that a congestion window reduction was undone: nothing had been lost",
    ),
    (
        "TcpExt.TCPPartialUndo",
        "times that a congestion window reduction was undone in part",
    ),
    (
        "TcpExt.TCPDSACKUndo",
        "times that a congestion window reduction was undone: all retransmitted segments were duplicates (D-SACK)",
    ),
    (
        "TcpExt.TCPLossUndo",
        "times that a congestion window reduction was undone after a timeout",
    ),
    (
        "TcpExt.TCPLostRetransmit",
        "segments retransmitted that were lost again",
    ),
    (
        "TcpExt.TCPRenoFailures",
        "timeouts after duplicate ACKs, without SACK",
    ),
    (
        "TcpExt.TCPSackFailures",
        "timeouts after duplicate ACKs, with SACK",
    ),
    (
        "TcpExt.TCPLossFailures",
        "timeouts while recovering from a timeout",
    ),
    (
        "TcpExt.TCPFastRetrans",
        "segments retransmitted without waiting for a timeout",
    ),
    (
        "TcpExt.TCPSlowStartRetrans",
        "segments retransmitted after a timeout",
    ),
    ("TcpExt.TCPTimeouts", "retransmission timeouts"),
    (
        "TcpExt.TCPLossProbes",
        "loss probes sent because the last segments were not acknowledged in time (TLP)",
    ),
    (
        "TcpExt.TCPLossProbeRecovery",
        "losses that a probe found and repaired",
    ),
    (
        "TcpExt.TCPSpuriousRTOs",
        "timeouts after which nothing proved to be lost",
    ),
    (
        "TcpExt.TCPRetransFail",
        "segments that could not be retransmitted",
    ),
    ("TcpExt.TCPSynRetrans", "SYNs retransmitted"),
    (
        "TcpExt.TCPSpuriousRtxHostQueues",
        "segments not retransmitted because they still waited in this host's queues",
    ),
    (
        "TcpExt.TCPRcvCollapsed",
        "segments merged in receive queues to save memory",
    ),
    (
        "TcpExt.TCPDSACKOldSent",
        "duplicate segments received, reported to the sender (D-SACK)",
    ),
    (
        "TcpExt.TCPDSACKOfoSent",
        "duplicate out-of-order segments received, reported to the sender (D-SACK)",
    ),
    (
        "TcpExt.TCPDSACKRecv",
        "times that the peer reported a duplicate segment (D-SACK)",
    ),
    (
        "TcpExt.TCPDSACKRecvSegs",
        "duplicate segments that the peer reported (D-SACK)",
    ),
    (
        "TcpExt.TCPDSACKOfoRecv",
        "times that the peer reported a duplicate out-of-order segment (D-SACK)",
    ),
    (
        "TcpExt.TCPAbortOnData",
        "connections reset because data came after their end",
    ),
    (
        "TcpExt.TCPAbortOnClose",
        "connections reset because a program closed them with data unread",
    ),
    (
        "TcpExt.TCPAbortOnMemory",
        "connections reset for lack of memory",
    ),
    (
        "TcpExt.TCPAbortOnTimeout",
        "connections given up after too many timeouts",
    ),
    (
        "TcpExt.TCPAbortOnLinger",
        "connections reset because they took too long to close",
    ),
    ("TcpExt.TCPAbortFailed", "resets that could not be sent"),
    (
        "TcpExt.TCPMemoryPressures",
        "times that TCP came under memory pressure (net.ipv4.tcp_mem)",
    ),
    (
        "TcpExt.TCPMemoryPressuresChrono",
        "milliseconds under memory pressure",
    ),
    (
        "TcpExt.TCPBacklogDrop",
        "segments dropped because the backlog of a socket was full",
    ),
    (
        "TcpExt.PFMemallocDrop",
        "packets dropped because only the reserve of memory was left",
    ),
    (
        "TcpExt.IPReversePathFilter",
        "packets dropped by the reverse path filter (rp_filter)",
    ),
    (
        "TcpExt.TCPTimeWaitOverflow",
        "connections closed without TIME_WAIT: there are too many (tcp_max_tw_buckets)",
    ),
    (
        "TcpExt.TCPReqQFullDoCookies",
        "SYNs answered with a cookie because too many connection requests were pending",
    ),
    (
        "TcpExt.TCPReqQFullDrop",
        "SYNs dropped because too many connection requests were pending",
    ),
    (
        "TcpExt.TCPOFOQueue",
        "segments received out of order and kept",
    ),
    (
        "TcpExt.TCPOFODrop",
        "out-of-order segments dropped for lack of memory",
    ),
    (
        "TcpExt.TCPOFOMerge",
        "out-of-order segments that overlapped queued data",
    ),
    (
        "TcpExt.TCPChallengeACK",
        "ACKs sent to ask whether a suspicious reset or SYN was meant",
    ),
    (
        "TcpExt.TCPToZeroWindowAdv",
        "times that this host closed its receive window",
    ),
    (
        "TcpExt.TCPWantZeroWindowAdv",
        "times that this host wanted to close its receive window and might not yet",
    ),
    (
        "TcpExt.TCPFromZeroWindowAdv",
        "times that this host opened its receive window again",
    ),
    (
        "TcpExt.TCPWinProbe",
        "probes of a receive window that the peer had closed",
    ),
    (
        "TcpExt.TCPZeroWindowDrop",
        "segments dropped because the receive window was closed",
    ),
    (
        "TcpExt.TCPRcvQDrop",
        "segments dropped because the receive queue was full",
    ),
    (
        "TcpExt.TCPWqueueTooBig",
        "segments not split because the send queue was too large",
    ),
    ("TcpExt.TCPMTUPFail", "probes of a larger MTU that failed"),
    (
        "TcpExt.TCPDeliveredCE",
        "segments delivered with a congestion mark (ECN)",
    ),
    (
        "TcpExt.TcpTimeoutRehash",
        "times that a connection chose another path after a timeout",
    ),
    (
        "TcpExt.TcpDuplicateDataRehash",
        "times that a connection chose another path because of duplicate segments",
    ),
];

/// Counters of ordinary traffic.
const OTHERS: &[(&str, &str)] = &[
    ("Ip.InReceives", "packets received"),
    ("Ip.InDelivers", "packets handed to TCP, UDP or ICMP"),
    (
        "Ip.OutRequests",
        "packets that TCP, UDP or ICMP asked to send",
    ),
    ("Ip.OutTransmits", "packets sent"),
    ("Ip.ForwDatagrams", "packets forwarded"),
    ("Ip.FragOKs", "packets that were sent in fragments"),
    ("Ip.FragCreates", "fragments made"),
    ("Ip.ReasmReqds", "fragments received"),
    ("Ip.ReasmOKs", "packets reassembled from fragments"),
    ("IpExt.InOctets", "bytes received, IP headers included"),
    ("IpExt.OutOctets", "bytes sent, IP headers included"),
    ("IpExt.InNoECTPkts", "packets received without ECN"),
    ("IpExt.InECT0Pkts", "packets received with ECN and no mark"),
    (
        "IpExt.InECT1Pkts",
        "packets received with ECN's other code and no mark",
    ),
    ("IpExt.InMcastPkts", "multicast packets received"),
    ("IpExt.OutMcastPkts", "multicast packets sent"),
    ("IpExt.InBcastPkts", "broadcast packets received"),
    ("IpExt.OutBcastPkts", "broadcast packets sent"),
    ("Ip6InReceives", "IPv6 packets received"),
    ("Ip6InDelivers", "IPv6 packets handed to TCP, UDP or ICMP"),
    (
        "Ip6OutRequests",
        "IPv6 packets that TCP, UDP or ICMP asked to send",
    ),
    ("Ip6OutTransmits", "IPv6 packets sent"),
    ("Ip6InOctets", "bytes received, IPv6 headers included"),
    ("Ip6OutOctets", "bytes sent, IPv6 headers included"),
    ("Ip6InNoECTPkts", "IPv6 packets received without ECN"),
    (
        "Ip6InECT0Pkts",
        "IPv6 packets received with ECN and no mark",
    ),
    (
        "Tcp.ActiveOpens",
        "connections that this host began to open",
    ),
    (
        "Tcp.PassiveOpens",
        "connections that others opened to this host",
    ),
    (
        "Tcp.CurrEstab",
        "connections that exist; a value at an instant",
    ),
    ("Tcp.InSegs", "segments received"),
    ("Tcp.OutSegs", "segments sent, those retransmitted left out"),
    ("Udp.InDatagrams", "datagrams handed to sockets"),
    ("Udp.OutDatagrams", "datagrams sent"),
    ("Udp.IgnoredMulti", "multicast datagrams without a receiver"),
    ("Udp6InDatagrams", "datagrams over IPv6 handed to sockets"),
    ("Udp6OutDatagrams", "datagrams over IPv6 sent"),
    (
        "TcpExt.TW",
        "connections that left TIME_WAIT after their time",
    ),
    ("TcpExt.DelayedACKs", "ACKs sent by the delayed-ACK timer"),
    (
        "TcpExt.DelayedACKLocked",
        "delayed ACKs put off a little because the socket was in use",
    ),
    (
        "TcpExt.TCPHPHits",
        "segments with payload taken on the fast path",
    ),
    (
        "TcpExt.TCPPureAcks",
        "ACKs without payload taken on the slow path",
    ),
    ("TcpExt.TCPHPAcks", "ACKs taken on the fast path"),
    (
        "TcpExt.TCPBacklogCoalesce",
        "segments merged in the backlog of a socket",
    ),
    ("TcpExt.TCPRcvCoalesce", "segments merged in receive queues"),
    (
        "TcpExt.TCPAutoCorking",
        "small writes delayed while earlier data was still queued to the device (autocorking)",
    ),
    (
        "TcpExt.TCPOrigDataSent",
        "segments with payload sent for the first time",
    ),
    ("TcpExt.TCPDelivered", "segments that peers acknowledged"),
    (
        "TcpExt.TCPAckCompressed",
        "ACKs omitted because a later one covers them",
    ),
    (
        "TcpExt.TCPHystartTrainDetect",
        "times that slow start ended because ACKs came in a long train",
    ),
    (
        "TcpExt.TCPHystartTrainCwnd",
        "sum of the congestion windows when slow start ended for a long train of ACKs",
    ),
    (
        "TcpExt.TCPHystartDelayDetect",
        "times that slow start ended because the round trip grew",
    ),
    (
        "TcpExt.TCPHystartDelayCwnd",
        "sum of the congestion windows when slow start ended because the round trip grew",
    ),
    (
        "TcpExt.TCPSackShifted",
        "segments marked as received by SACK, joined to their neighbour",
    ),
    (
        "TcpExt.TCPSackMerged",
        "segments marked as received by SACK, joined to their neighbour whole",
    ),
    (
        "TcpExt.TCPSackShiftFallback",
        "segments marked as received by SACK, not joined",
    ),
    (
        "TcpExt.TCPDSACKIgnoredOld",
        "D-SACK reports ignored: they were too old",
    ),
    (
        "TcpExt.TCPDSACKIgnoredNoUndo",
        "D-SACK reports ignored: nothing could be undone",
    ),
    (
        "TcpExt.TCPKeepAlive",
        "probes whether a silent peer is still there",
    ),
    (
        "TcpExt.TCPMTUPSuccess",
        "probes of a larger MTU that succeeded",
    ),
    (
        "TcpExt.BusyPollRxPackets",
        "packets received by a socket that polled its device",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_meaning_stands_alone() {
        for (name, meaning) in TROUBLES.iter().chain(OTHERS) {
            for word in ["of them", " it ", "at that time"] {
                let about = format!(" {meaning} ");
                assert!(!about.contains(word), "{name}: {meaning}");
            }
        }
    }

    #[test]
    fn each_counter_is_listed_once() {
        let names = TROUBLES.iter().chain(OTHERS).map(|(name, _)| *name);
        let names: Vec<&str> = names.collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
        }
    }

    #[test]
    fn a_counter_that_is_not_listed_is_told_by_its_name() {
        let check = |name, trouble, meaning| assert_eq!(known(name), (trouble, meaning));
        check("Tcp.RetransSegs", true, Some("segments retransmitted"));
        check("Tcp.InSegs", false, Some("segments received"));
        check("TcpExt.TCPNewDrop", true, None);
        check("MPTcpExt.MPCapableSYNRX", false, None);
    }
}
