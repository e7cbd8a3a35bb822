//! Sums over all connections, those included that are not kept.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::connection::{Connection, Detail};

/// Sums over everything that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Totals {
    /// Frames.
    pub frames: u64,
    /// Their lengths on the wire, in bytes.
    pub wire_bytes: u64,
    /// Frames with a TCP segment.
    pub tcp_frames: u64,
    /// Frames without IP.
    pub not_ip: u64,
    /// IP packets without TCP.
    pub not_tcp: u64,
    /// Of these, datagrams of UDP.
    pub udp: u64,
    /// Datagrams of conversations beyond the number that is kept.
    pub udp_left_out: u64,
    /// Frames with packets in packets that are not decoded, by what they are in.
    pub undecoded: BTreeMap<&'static str, u64>,
    /// Frames of 802.11 without data.
    pub wireless: u64,
    /// Frames of 802.11 whose data is encrypted.
    pub encrypted: u64,
    /// Fragments.
    pub fragments: u64,
    /// Frames that the capture cut before the end of the TCP header.
    pub cut: u64,
    /// SYNs of which the capture cut the options.
    pub options_cut: u64,
    /// Segments whose packet says that it is longer than its frame.
    pub shortened: u64,
    /// Frames that contradict themselves.
    pub malformed: u64,
    /// Frames of link types without IP.
    pub foreign_links: u64,
    /// Segments that no `--flow` wanted.
    pub filtered: u64,
    /// Segments of addresses beyond the number that is kept.
    pub untracked: u64,
    /// ICMP messages that a segment was too big.
    pub too_big: u64,
    /// ICMP messages that a segment did not get through.
    pub unreachable: u64,
    /// Findings beyond the number that is kept.
    pub findings_left_out: u64,
    /// Connections.
    pub connections: u64,
    /// Connections whose ends and ports had been another's before.
    pub reused_ports: u64,
    /// Connections that handed their details back.
    pub folded: u64,
    /// Connections that are in these sums only.
    pub forgotten: u64,
    /// Connections that were only counted: no place was free for their detail.
    pub without_detail: u64,
    /// Segments of all connections.
    pub packets: u64,
    /// Segments with payload.
    pub data_packets: u64,
    /// Acknowledgements without payload.
    pub pure_acks: u64,
    /// Payload, that sent again included.
    pub payload_bytes: u64,
    /// Segments with payload sent again.
    pub retransmissions: u64,
    /// Of these, by acknowledgements that asked.
    pub fast_retransmissions: u64,
    /// Of these, by a timer.
    pub timeout_retransmissions: u64,
    /// Of these, as probes of the tail.
    pub tail_probes: u64,
    /// Of these, those that the receiver had.
    pub spurious_retransmissions: u64,
    /// SYNs and FINs sent again.
    pub control_retransmissions: u64,
    /// Segments out of order.
    pub out_of_order: u64,
    /// Jumps over what was not captured.
    pub holes: u64,
    /// Of these, those that were acknowledged all the same: the capture lost them.
    pub holes_of_capture: u64,
    /// Duplicate acknowledgements.
    pub duplicate_acks: u64,
    /// Segments that closed a window.
    pub zero_windows: u64,
    /// Acknowledgements that waited for their timer.
    pub delayed_acks: u64,
    /// Segments longer than the path carries.
    pub superframes: u64,
    /// Frames captured twice.
    pub duplicate_frames: u64,
}

impl Totals {
    /// Adds a connection with what is kept of it.
    pub(crate) fn add(&mut self, connection: &Connection) {
        for half in &connection.halves {
            self.packets += u64::from(half.packets);
            self.data_packets += u64::from(half.data_packets);
            self.pure_acks += u64::from(half.pure_acks);
            self.payload_bytes += half.payload_bytes;
        }
        if let Some(detail) = &connection.detail {
            self.add_detail(detail);
        }
    }

    /// Adds a detail that is handed back.
    pub(crate) fn add_detail(&mut self, detail: &Detail) {
        self.holes_of_capture += u64::from(detail.holes_of_capture);
        self.duplicate_frames += u64::from(detail.duplicate_frames);
        for end in &detail.ends {
            let counts = &end.counts;
            self.retransmissions += u64::from(counts.retransmissions);
            self.fast_retransmissions += u64::from(counts.fast);
            self.timeout_retransmissions += u64::from(counts.timeout);
            self.tail_probes += u64::from(counts.tail_probe);
            self.spurious_retransmissions += u64::from(counts.spurious);
            self.control_retransmissions += u64::from(counts.control_retransmissions);
            self.out_of_order += u64::from(counts.out_of_order);
            self.holes += u64::from(counts.holes);
            self.duplicate_acks += u64::from(counts.duplicate_acks);
            self.zero_windows += u64::from(counts.zero_windows);
            self.delayed_acks += u64::from(counts.delayed_acks);
            self.superframes += u64::from(counts.superframes);
        }
    }
}
