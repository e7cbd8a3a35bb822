//! Every finding and caution by its identifier: what it is called, what it rests on, what to do about it.
//!
//! For the reference; a finding itself says it with its numbers. A caution whose name is not here cannot be
//! made in a debug build, so that tests find it.

use linerate_model::finding::Caution;
use linerate_model::limiter::Limiter;

use super::{host_counters, rules};

/// A finding or caution that may be in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its identifier behind the experiment that it is about and its kind; some are followed by a host or a
    /// number.
    pub id: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// What it rests on, without a full stop.
    pub needs: &'static str,
    /// What to do about it, without a full stop.
    pub action: &'static str,
}

/// Findings that name no limiter.
const NO_LIMITERS: &[Known] = &[
    Known {
        id: "plateau",
        title: "A fixed buffer does better than autotuning",
        needs: "a fixed socket buffer and autotuned buffers, in one experiment; the ratio is beyond the \
                margin, at the error of the whole report",
        action: "what the recommendation says: the maxima of tcp_rmem and tcp_wmem, or the socket options",
    },
    Known {
        id: "effect",
        title: "An option changes the result",
        needs: "pairs of trials of the same block that differ only in it; the ratio is beyond the margin, \
                at the error of the whole report",
        action: "use the better setting for traffic like that measured; it may depend on the size",
    },
    Known {
        id: "loss",
        title: "Datagrams are lost at one location",
        needs: "a thousandth of the datagrams of a cell; counts of both ends that add up to what was sent",
        action: "see the table of locations in the UDP guide",
    },
    Known {
        id: "queue-balance",
        title: "RSS spreads connections unevenly",
        needs: "more trials beyond the bound of random hashing than chance explains",
        action: "look at hash fields and indirection table: `ethtool -x`, `ethtool -n DEVICE rx-flow-hash tcp4`",
    },
    Known {
        id: "placement",
        title: "CPU placement of the two ends decides the rate",
        needs: "trials of one connection with both ends on one CPU and others with the ends apart, and \
                different rates",
        action: "pin both ends: `-A 0,1` or `-A 0,0`",
    },
];

/// Cautions, but for those of a host's counters.
const CAUTIONS: &[Known] = &[
    Known {
        id: Caution::OneCpu.id(),
        title: "Both ends ran on one CPU",
        needs: "all trials of a cell on one machine with client and server on the same CPU",
        action: "pin them apart: `-A 0,1`; two hosts never share a CPU",
    },
    Known {
        id: Caution::OneCpuOfPackets.id(),
        title: "One CPU processes all packets of a host",
        needs: "a CPU in interrupts for most of the window, the others for less than half as long",
        action: "spread packets over CPUs: more queues, the affinity of interrupts, RPS",
    },
    Known {
        id: Caution::Fragments.id(),
        title: "Datagrams go in fragments",
        needs: "the MTU of a host's device, and datagrams that are longer than what it carries in a packet",
        action: "leave `-l` out, for the size that fits the path, or give one that does",
    },
    Known {
        id: Caution::Backlog.id(),
        title: "A CPU's backlog was full",
        needs: "drops in /proc/net/softnet_stat during a trial",
        action: "raise net.core.netdev_max_backlog, or spread packets over more CPUs",
    },
    Known {
        id: Caution::Squeezed.id(),
        title: "NAPI ran out of budget",
        needs: "time_squeeze of /proc/net/softnet_stat more than ten times per second",
        action: "raise net.core.netdev_budget and netdev_budget_usecs where a CPU has time, else spread packets",
    },
    Known {
        id: Caution::Pcie.id(),
        title: "The PCIe link is narrower than the network card",
        needs: "width and speed of the narrowest link between network card and CPU, and the rate of that card",
        action: "use another slot, or find what keeps the link below its full width and speed",
    },
    Known {
        id: Caution::ZeroCopy.id(),
        title: "Zero-copy sends were copied",
        needs: "the kernel's notifications of MSG_ZEROCOPY sends",
        action: "measure between hosts: with loopback, veth and packet sockets the kernel copies",
    },
    Known {
        id: Caution::GeneratorLate.id(),
        title: "Requests were sent late",
        needs: "an open loop; 99th percentile of the lateness 100 µs or more, and at least a fifth of the \
                99th percentile of the latency",
        action: "more workers, pinned; a part of the tail is the generator's own",
    },
    Known {
        id: Caution::ResponseWaits.id(),
        title: "Responses come one request late",
        needs: "an open loop with Nagle on; a median latency of a flow of one period and a round trip below half of one",
        action: "TCP_NODELAY (`-N`)",
    },
    Known {
        id: Caution::ConntrackFull.id(),
        title: "The conntrack table is nearly full",
        needs: "nine tenths of nf_conntrack_max in use",
        action: "raise net.netfilter.nf_conntrack_max, or do not track this traffic (notrack)",
    },
    Known {
        id: Caution::Noise.id(),
        title: "Identical trials differ",
        needs: "a pooled relative standard deviation above 5 %",
        action: "a quieter machine, or a larger budget; the caution says how many replicates",
    },
    Known {
        id: Caution::Modes.id(),
        title: "Identical trials fall into two groups",
        needs: "two groups of values with a gap between that chance does not explain",
        action: "find what switches: the CPU that workers ran on, a queue, other traffic",
    },
    Known {
        id: Caution::Invalid.id(),
        title: "Trials are invalid",
        needs: "any trial that failed a check; it is kept with its reason and not averaged",
        action: "what the reason says",
    },
    Known {
        id: Caution::Replicates.id(),
        title: "Few replicates",
        needs: "a cell with fewer than three valid trials",
        action: "a larger `--budget`, or `--runs`",
    },
    Known {
        id: Caution::StartSkew.id(),
        title: "Flows started at different times",
        needs: "starts spread over more than 5 % of the measured window",
        action: "a longer window, or fewer flows; early connections had more time to grow their windows",
    },
    Known {
        id: Caution::Capped.id(),
        title: "A setting is below the requested value",
        needs: "what the kernel granted, read back from the socket",
        action: "raise the sysctl that is named",
    },
    Known {
        id: Caution::ShortRequests.id(),
        title: "Requests that were due were not sent",
        needs: "an open loop; fewer requests sent than its rate requires",
        action: "a lower rate or more flows: what was not sent has no latency",
    },
    Known {
        id: Caution::ShortConnections.id(),
        title: "Connections failed",
        needs: "connections that were not established, with the last error",
        action: "what the error says: ports, backlog, firewall",
    },
    Known {
        id: Caution::Starved.id(),
        title: "Workers waited for CPUs",
        needs: "a worker that waited for a quarter of the time and twice as long as it ran",
        action: "stop other programs, or give both ends CPUs of their own (`-A`); where a quota held them back, raise it",
    },
    Known {
        id: Caution::Disturbed.id(),
        title: "Others took CPU time",
        needs: "3 % of the CPUs' time with the hypervisor, or so much more than in other trials in no mode and not to spare; \
                or other programs beyond what a controller needs",
        action: "stop other programs, or measure on a machine of its own",
    },
    Known {
        id: Caution::OtherTraffic.id(),
        title: "Other traffic passed the device",
        needs: "3 % of the payload that a device of the flows passed and that is neither theirs nor of readings; against \
                their direction, so much that it is a fifth of what they carry",
        action: "stop other traffic",
    },
    Known {
        id: Caution::HeldBack.id(),
        title: "Throughput holds what came before the window",
        needs: "2.5 % of what is counted that had come before, and waited for a lost segment",
        action: "longer windows, and more traffic before them (`-O`)",
    },
    Known {
        id: Caution::Silent.id(),
        title: "Nothing arrived for a part of the window",
        needs: "a tenth of the window and two retransmission timers in which no flow had anything arrive while segments \
                were unacknowledged or datagrams were sent, and the receivers' windows were open",
        action: "look for a link that was down or a path that changed: `ip -s link`, the logs of both hosts; then measure again",
    },
    Known {
        id: Caution::SharedCpus.id(),
        title: "All hosts share this machine's CPUs",
        needs: "hosts that are namespaces of one machine",
        action: "measure CPU cost, transaction and packet rates between machines",
    },
    Known {
        id: Caution::SharedHosts.id(),
        title: "Other runs may have been active at the same time",
        needs: "an agent that admitted the run as shared",
        action: "leave `--shared` out",
    },
];

/// Returns the findings that name a limiter.
pub fn known_limiters() -> Vec<(Limiter, Known)> {
    let known = |limiter: Limiter| {
        let known = Known {
            id: limiter.id(),
            title: limiter.heading(),
            needs: rules::rule_of(limiter)?.needs,
            action: limiter.remedy().action,
        };
        Some((limiter, known))
    };
    rules::limiters().into_iter().filter_map(known).collect()
}

/// Returns the other findings.
pub fn known_findings() -> &'static [Known] {
    NO_LIMITERS
}

/// Returns the cautions, those of the counters of a host last.
pub fn known_cautions() -> impl Iterator<Item = Known> {
    CAUTIONS.iter().copied().chain(host_counters::known())
}

/// Returns whether `caution` is in the reference.
pub(super) fn is_known(caution: Caution) -> bool {
    known_cautions().any(|known| known.id == caution.id())
}
