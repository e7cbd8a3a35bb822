//! What became of datagrams: counts of one end, and the arithmetic that locates what was lost.
//!
//! Both ends number and count the datagrams of a stream; each place that can lose one has a
//! counter of its own. Of what was sent, each datagram is in exactly one row of the `Balance`, so
//! that its rows always add up to the packet; what no counter saw is a row too.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// What one end of a flow of datagrams counted, in all phases.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Datagrams {
    /// Datagrams that this end sent, those that its kernel refused included.
    pub sent: u64,
    /// Of these, refused by the kernel of this host: its queueing discipline dropped them.
    pub refused: u64,
    /// Buffers in which the kernel took them; fewer than datagrams with UDP_SEGMENT.
    pub buffers_sent: u64,
    /// Send calls that found the socket's buffer full and had to be repeated.
    pub waits: u64,
    /// Datagrams received, each duplicate included.
    pub received: u64,
    /// Of these, with a lower number than one that had come before.
    pub late: u64,
    /// Of these, with a number that had come before.
    pub duplicates: u64,
    /// The highest number received: so many were sent at the least.
    pub highest: u64,
    /// Buffers in which the kernel gave them; fewer than datagrams with UDP_GRO.
    pub buffers_received: u64,
    /// Longest run of consecutive numbers that were missing when a higher one came.
    pub missing_run_max: u64,
    /// What the other end said it had sent, when it ended.
    pub announced: Option<u64>,
    /// Datagrams that the kernel dropped at this socket, for lack of room in its receive buffer or
    /// for a wrong checksum; absent where the kernel does not say.
    pub socket_drops: Option<u64>,
    /// Datagrams that were neither payload nor words of ours.
    pub strange: u64,
    /// Requests that got no response in time.
    pub unanswered: u64,
    /// Jitter of the arrivals at the end, RFC 3550 6.4.1: a running mean of the difference in
    /// transit time of two datagrams.
    pub jitter_ns: Option<u64>,
    /// How long those that were received inside the measured window were on their way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transit: Option<Transit>,
    /// Time between two send calls, inside the measured window.
    pub departures: Option<Histogram>,
}

/// How long datagrams were on their way, in one direction: from the stamp of their sender to the call that received them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Transit {
    /// The shortest.
    pub shortest_ns: i64,
    /// The mean.
    pub mean_ns: i64,
    /// The longest.
    pub longest_ns: i64,
    /// By how much all of them may be off, since two hosts have two clocks. Absent as an agent says it, which knows nothing of
    /// the other's clock: these are then the differences of what both read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertainty_ns: Option<u64>,
}

impl Transit {
    /// Returns the same where the receiver's clock is `ahead_ns` ahead of the sender's, to within `uncertainty_ns`.
    pub fn with_clocks(self, ahead_ns: i64, uncertainty_ns: u64) -> Self {
        let less = |ns: i64| ns.saturating_sub(ahead_ns);
        Self {
            shortest_ns: less(self.shortest_ns),
            mean_ns: less(self.mean_ns),
            longest_ns: less(self.longest_ns),
            uncertainty_ns: Some(uncertainty_ns),
        }
    }

    /// Returns whether the mean is known better than by its own size.
    pub fn is_known(&self) -> bool {
        let mean_ns = u64::try_from(self.mean_ns).ok();
        mean_ns
            .zip(self.uncertainty_ns)
            .is_some_and(|(mean, by)| by < mean)
    }
}

impl Datagrams {
    /// Returns how many different datagrams were received.
    pub fn distinct(&self) -> u64 {
        self.received.saturating_sub(self.duplicates)
    }

    /// Returns how many of those received were neither late nor duplicates.
    pub fn in_order(&self) -> u64 {
        self.distinct().saturating_sub(self.late)
    }

    /// Returns how many datagrams were dropped at this socket; absent where the kernel does not say.
    ///
    /// With UDP_GRO the socket drops whole buffers and the kernel counts each as one: they held as many
    /// as those that were received, in the mean.
    pub fn dropped_at_socket(&self) -> Option<u64> {
        let per_buffer = match self.buffers_received {
            0 => 1.0,
            buffers => (self.received as f64 / buffers as f64).max(1.0),
        };
        Some((self.socket_drops? as f64 * per_buffer).round() as u64)
    }

    /// Returns what the receiver misses by the numbers that it has seen: what was lost after the
    /// last one is not in it.
    pub fn missing(&self) -> u64 {
        self.highest.saturating_sub(self.distinct())
    }
}

/// A place at which datagrams are lost, in the order in which they pass it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The sender's kernel refused them: its queueing discipline was full.
    SenderQueue,
    /// A queueing discipline of the sending host took them and dropped them later.
    SenderQdisc,
    /// The device of the sending host dropped them later.
    SenderDevice,
    /// The device of the receiving host dropped them.
    ReceiverDevice,
    /// The receiving host's queue before the protocols was full (softnet_stat).
    ReceiverBacklog,
    /// A queueing discipline of the receiving host dropped them on their way in: a policer at ingress, or the shaper of
    /// a device that what comes is redirected to (ifb).
    ReceiverQdisc,
    /// The receiving host had no memory for their fragments (Ip: ReasmFails less ReasmTimeout).
    Reassembly,
    /// They came to the receiving host's IP, which did not deliver them: its packet filter dropped them, as a rule.
    ReceiverIp,
    /// Their checksum was wrong.
    Checksum,
    /// The receiving socket's buffer was full.
    ReceiveBuffer,
    /// No counter saw them: between the hosts, or at a place without one.
    NotLocated,
}

/// What the counters of both hosts say about the time of one transfer.
///
/// Those of one socket count its own datagrams; those of a host count everybody's, and are taken
/// for this transfer's as far as anything of it is missing. Absent is a counter that was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evidence {
    /// Datagrams sent, those refused included.
    pub sent: u64,
    /// Different datagrams received.
    pub received: u64,
    /// Refused to the sending socket.
    pub refused: u64,
    /// Dropped at the receiving socket, for either reason.
    pub socket_drops: Option<u64>,
    /// Wrong checksums on the receiving host (Udp: InCsumErrors).
    pub checksum_errors: Option<u64>,
    /// Dropped by queueing disciplines of the sending host on their way out, those refused to a socket
    /// included.
    pub sender_qdisc_drops: Option<u64>,
    /// Dropped by devices of the sending host.
    pub sender_device_drops: Option<u64>,
    /// Dropped by devices of the receiving host, those dropped from its backlog included: the kernel counts
    /// these at the device, too (enqueue_to_backlog in net/core/dev.c).
    pub receiver_device_drops: Option<u64>,
    /// Dropped from the backlog of the receiving host (softnet_stat).
    pub backlog_drops: Option<u64>,
    /// Dropped by queueing disciplines of the receiving host on their way in.
    pub receiver_qdisc_drops: Option<u64>,
    /// Whole datagrams of which the receiving host dropped fragments for want of memory.
    pub reassembly_drops: Option<u64>,
    /// Packets that came to the receiving host's IP, less those that it delivered or passed on.
    pub undelivered: Option<u64>,
}

/// Where the datagrams of a transfer are: the rows add up to what was sent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Balance {
    /// Datagrams sent.
    pub sent: u64,
    /// Different datagrams received.
    pub received: u64,
    /// Where the rest was lost, in the order in which datagrams pass the places; places that lost
    /// nothing are left out.
    pub lost: Vec<(Place, u64)>,
}

impl Balance {
    /// Locates what was lost.
    ///
    /// What a socket counted comes first, since it is about this transfer alone; then the counters
    /// of whole hosts, those of the receiving host before those of the sending one, each up to what
    /// is still missing. The sum is exact by construction.
    pub fn of(seen: &Evidence) -> Self {
        let mut left = seen.sent.saturating_sub(seen.received);
        let mut lost = Vec::new();
        let mut take = |place, count: Option<u64>, known: u64| {
            let count = count.unwrap_or(0).saturating_sub(known).min(left);
            left -= count;
            if count > 0 {
                lost.push((place, count));
            }
        };
        let drops = seen.socket_drops.unwrap_or(0);
        let checksum = seen.checksum_errors.unwrap_or(0).min(drops);
        let backlog = seen.backlog_drops.unwrap_or(0);
        take(Place::SenderQueue, Some(seen.refused), 0);
        take(Place::Checksum, Some(checksum), 0);
        take(Place::ReceiveBuffer, Some(drops), checksum);
        take(Place::ReceiverBacklog, Some(backlog), 0);
        take(Place::Reassembly, seen.reassembly_drops, 0);
        take(Place::ReceiverIp, seen.undelivered, 0);
        take(Place::ReceiverQdisc, seen.receiver_qdisc_drops, 0);
        // What is counted twice is taken once.
        take(Place::SenderQdisc, seen.sender_qdisc_drops, seen.refused);
        take(Place::SenderDevice, seen.sender_device_drops, seen.refused);
        take(Place::ReceiverDevice, seen.receiver_device_drops, backlog);
        if left > 0 {
            lost.push((Place::NotLocated, left));
        }
        lost.sort_by_key(|row| row.0);
        Self {
            sent: seen.sent,
            received: seen.received,
            lost,
        }
    }

    /// Returns how many were lost in all.
    pub fn lost(&self) -> u64 {
        self.lost.iter().map(|row| row.1).sum()
    }

    /// Returns the share of what was sent that was lost, 0 to 1; absent where nothing was sent.
    pub fn loss_share(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.lost() as f64 / self.sent as f64)
    }
}

impl Place {
    /// Returns what the place is called in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Place::SenderQueue => "the sender's qdisc",
            Place::SenderQdisc => "the sending host's qdiscs, which had taken them",
            Place::SenderDevice => "the sending host's devices",
            Place::ReceiverDevice => "the receiving host's devices",
            Place::ReceiverBacklog => "the receiving host's backlog (softnet)",
            Place::ReceiverQdisc => "the receiving host's qdiscs, on their way in",
            Place::Reassembly => "the receiving host's reassembly of fragments",
            Place::ReceiverIp => "the receiving host's IP (its packet filter)",
            Place::Checksum => "wrong checksums",
            Place::ReceiveBuffer => "the receiving socket's buffer",
            Place::NotLocated => "not located: between the hosts, or where no counter covers it",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_to_what_was_sent() {
        let evidence = Evidence {
            sent: 1000,
            received: 700,
            refused: 100,
            socket_drops: Some(120),
            checksum_errors: Some(20),
            ..Evidence::default()
        };
        let balance = Balance::of(&evidence);
        let expected = [
            (Place::SenderQueue, 100),
            (Place::Checksum, 20),
            (Place::ReceiveBuffer, 100),
            (Place::NotLocated, 80),
        ];
        assert_eq!(balance.lost, expected);
        assert_eq!(balance.lost() + balance.received, balance.sent);
        assert_eq!(balance.loss_share(), Some(0.3));
    }

    #[test]
    fn counters_of_whole_hosts_explain_no_more_than_is_missing() {
        let evidence = Evidence {
            sent: 100,
            received: 90,
            backlog_drops: Some(4),
            sender_device_drops: Some(1_000_000),
            ..Evidence::default()
        };
        let balance = Balance::of(&evidence);
        let expected = [(Place::SenderDevice, 6), (Place::ReceiverBacklog, 4)];
        assert_eq!(balance.lost, expected);
        let clean = Evidence {
            received: 100,
            ..evidence
        };
        assert_eq!(Balance::of(&clean).lost, []);
    }

    /// What the receiving host's IP takes in and does not deliver is no path's.
    #[test]
    fn what_the_receiving_host_drops_is_its_own() {
        let evidence = Evidence {
            sent: 1000,
            received: 100,
            receiver_qdisc_drops: Some(50),
            reassembly_drops: Some(500),
            undelivered: Some(200),
            ..Evidence::default()
        };
        let expected = [
            (Place::ReceiverQdisc, 50),
            (Place::Reassembly, 500),
            (Place::ReceiverIp, 200),
            (Place::NotLocated, 150),
        ];
        assert_eq!(Balance::of(&evidence).lost, expected);
    }

    /// What a backlog drops its device counts, too.
    #[test]
    fn what_a_backlog_drops_is_lost_once() {
        let evidence = Evidence {
            sent: 1000,
            received: 800,
            backlog_drops: Some(100),
            receiver_device_drops: Some(100),
            ..Evidence::default()
        };
        let check = |evidence: Evidence, expected: &[(Place, u64)]| {
            assert_eq!(Balance::of(&evidence).lost, expected);
        };
        check(
            evidence,
            &[(Place::ReceiverBacklog, 100), (Place::NotLocated, 100)],
        );
        let ring = Evidence {
            receiver_device_drops: Some(130),
            ..evidence
        };
        check(
            ring,
            &[
                (Place::ReceiverDevice, 30),
                (Place::ReceiverBacklog, 100),
                (Place::NotLocated, 70),
            ],
        );
    }

    /// What a discipline refuses it counts too; what it counts beyond that it had taken.
    #[test]
    fn what_a_discipline_drops_later_is_its_own_row() {
        let evidence = Evidence {
            sent: 1000,
            received: 800,
            refused: 70,
            sender_qdisc_drops: Some(190),
            ..Evidence::default()
        };
        let balance = Balance::of(&evidence);
        let expected = [
            (Place::SenderQueue, 70),
            (Place::SenderQdisc, 120),
            (Place::NotLocated, 10),
        ];
        assert_eq!(balance.lost, expected);
        assert_eq!(balance.lost() + balance.received, balance.sent);
    }

    #[test]
    fn a_buffer_that_was_dropped_is_all_its_datagrams() {
        let check = |received, buffers_received, socket_drops, expected| {
            let counts = Datagrams {
                received,
                buffers_received,
                socket_drops,
                ..Datagrams::default()
            };
            assert_eq!(counts.dropped_at_socket(), expected, "{counts:?}");
        };
        check(147, 21, Some(3), Some(21));
        // Buffers that are hardly ever joined, none that says how many it held, and no count.
        check(100_000, 99_000, Some(10), Some(10));
        check(0, 0, Some(3), Some(3));
        check(147, 0, Some(3), Some(3));
        check(147, 21, None, None);
    }

    /// Where little is joined, ten drops at the socket are not what a switch lost.
    #[test]
    fn losses_of_a_switch_are_not_those_of_a_buffer() {
        let counts = Datagrams {
            received: 98_990,
            buffers_received: 97_000,
            socket_drops: Some(10),
            ..Datagrams::default()
        };
        let balance = Balance::of(&Evidence {
            sent: 100_000,
            received: counts.distinct(),
            socket_drops: counts.dropped_at_socket(),
            ..Evidence::default()
        });
        let expected = [(Place::ReceiveBuffer, 10), (Place::NotLocated, 1000)];
        assert_eq!(balance.lost, expected);
    }

    #[test]
    fn more_received_than_sent_is_no_loss() {
        let evidence = Evidence {
            sent: 5,
            received: 6,
            socket_drops: Some(3),
            ..Evidence::default()
        };
        assert_eq!(Balance::of(&evidence).lost, []);
    }
}
