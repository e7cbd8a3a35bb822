//! What a trace looks for, and what a capture cannot show from where and when it was taken: without it, nothing found
//! would mean more than it does.

use linerate_model::sample::End;
use serde::Serialize;

use super::{ConnectionReport, Ending, Totals};

/// What TCP connections are looked at for.
const LOOKED_FOR: [&str; 16] = [
    "refused, unanswered and repeated SYNs",
    "handshakes that are late or do not complete",
    "what ICMP says of them",
    "resets",
    "silent ends",
    "slow answers",
    "many requests over a long way",
    "loss",
    "retransmission timers",
    "unanswered keepalives",
    "closed and small windows",
    "missing window scaling and small segment sizes",
    "queues",
    "black holes",
    "reordering",
    "delayed ACKs that Nagle's algorithm waits for",
];

/// What was looked for, and what cannot be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Coverage {
    /// What was looked for, whether it was found or not; nothing, where there is no TCP connection.
    pub looked_for: Vec<&'static str>,
    /// What the capture cannot show of the connections of this document.
    pub cannot_show: Vec<&'static str>,
}

impl Coverage {
    pub(super) fn new(totals: &Totals, connections: &[ConnectionReport]) -> Self {
        if totals.connections == 0 {
            return Self::default();
        }
        let any = |holds: fn(&ConnectionReport) -> bool| connections.iter().any(holds);
        let blind = [
            (
                any(ConnectionReport::has_far_stream),
                "what the far end waits for while it sends (its windows, its program)",
            ),
            (
                any(|one| {
                    let mut ends = End::BOTH.iter();
                    ends.any(|&end| one.end(end).round_trip_is_bound)
                }),
                "whether the way or the far end's program took the time until an answer, where no handshake and no \
                 acknowledgement without data shows the way alone",
            ),
            (
                any(|one| {
                    let waits = one.ending == Ending::Open && one.from_client.offer.is_some();
                    waits && one.from_server.packets == 0 && one.from_client.data_packets == 0
                }),
                "whether a SYN is answered behind which the capture ended within 1 s",
            ),
            (
                any(|one| {
                    let has_data = one.from_client.data_packets + one.from_server.data_packets > 0;
                    !one.handshake && has_data
                }),
                "windows in bytes, where no handshake was captured",
            ),
            (
                totals.options_cut > 0,
                "small windows, and what options tell, where the capture cut the options",
            ),
            (
                any(|one| one.one_sided),
                "round trips and waits, where only one direction was captured",
            ),
            (
                totals.holes_of_capture > 0,
                "what happened in the frames that the capture lost",
            ),
            (
                totals.without_detail > 0,
                "anything of connections that were only counted",
            ),
        ];
        Self {
            looked_for: LOOKED_FOR.to_vec(),
            cannot_show: blind.iter().filter(|one| one.0).map(|one| one.1).collect(),
        }
    }

    /// Says what the capture cannot show, if there is such.
    pub(crate) fn blind_spots(&self) -> Option<String> {
        let all = self.cannot_show.join("; ");
        (!all.is_empty()).then(|| format!("What this capture cannot show: {all}."))
    }
}
