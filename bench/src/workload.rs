//! What is compared: names, units, where the ends run, and what linerate must reach.

use serde::{Serialize, Serializer};

/// A workload, the same for every tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contest {
    /// One bulk flow that copies at both ends.
    Tcp1,
    /// The same with send calls of 128 KiB from every tool.
    Tcp1Calls128K,
    /// The same with send calls of 1 MiB from every tool.
    Tcp1Calls1M,
    /// One bulk flow, zero-copy send, copying receive.
    Tcp1ZerocopySend,
    /// One bulk flow, zero-copy send, discarding receive.
    Tcp1Fast,
    /// Ten bulk flows that copy at both ends.
    Tcp10,
    /// Ten bulk flows, zero-copy send, discarding receive.
    Tcp10Fast,
    /// One request in flight, both ends spinning on CPUs of their own.
    Rr1Spin,
    /// One request in flight, both ends on one CPU.
    Rr1,
    /// 64 flows with one request in flight each.
    Rr64,
    /// 64 times connect, request, response, close in flight.
    Crr64,
    /// Datagrams of 64 bytes, one packet each.
    Udp64,
    /// Datagrams of 64 bytes, cut by the kernel from one send; plain receiver.
    Udp64Gso,
    /// Datagrams of 64 bytes, cut by the kernel from one send and put together for one receive.
    Udp64GsoGro,
    /// Messages of 100 bytes, one send call each, `TCP_NODELAY`.
    Tcp100Nodelay,
    /// Messages of 100 bytes, as many a segment as the tool can.
    Tcp100Batched,
    /// What a run of 1 s takes beyond 1 s.
    Startup,
    /// Resident memory of the greater end, one flow.
    Memory1,
    /// Resident memory of the greater end, 10 000 flows.
    Memory10000,
}

/// What a workload's number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Payload bits per second at the receiver.
    BitsPerSecond,
    /// Transactions per second.
    TransactionsPerSecond,
    /// Messages per second at the receiver.
    MessagesPerSecond,
    /// Packets per second that the receiver got.
    PacketsPerSecond,
    /// Seconds; less is better.
    Seconds,
    /// Bytes; less is better.
    Bytes,
}

/// Where the ends of a workload run, beyond what the environment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// As the environment says.
    Environment,
    /// Both on CPU 0.
    OneCpu,
    /// On a CPU each.
    TwoCpus,
    /// Not pinned, and always over loopback: the number is about the program, not the network.
    Host,
}

/// What a number of ours is held against.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// The median of this row.
    Row(&'static str),
    /// The best median of all peers.
    BestPeer,
    /// The workload's first probe.
    Probe,
    /// A number in the workload's own unit.
    Absolute,
}

/// What one of our rows must reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Target {
    /// Our row.
    pub row: &'static str,
    /// What it is held against.
    pub against: Against,
    /// The ratio, or the absolute number.
    pub bound: f64,
    /// Whether it is about CPU seconds of both ends per unit, of which less is better.
    pub cpu: bool,
}

const fn target(row: &'static str, against: Against, bound: f64) -> Target {
    Target {
        row,
        against,
        bound,
        cpu: false,
    }
}

impl Contest {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 19] = [
        Self::Tcp1,
        Self::Tcp1Calls128K,
        Self::Tcp1Calls1M,
        Self::Tcp1ZerocopySend,
        Self::Tcp1Fast,
        Self::Tcp10,
        Self::Tcp10Fast,
        Self::Rr1Spin,
        Self::Rr1,
        Self::Rr64,
        Self::Crr64,
        Self::Udp64,
        Self::Udp64Gso,
        Self::Udp64GsoGro,
        Self::Tcp100Nodelay,
        Self::Tcp100Batched,
        Self::Startup,
        Self::Memory1,
        Self::Memory10000,
    ];

    /// Returns the name on the command line and what it says, for people.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Tcp1 => (
                "tcp-1",
                "TCP, 1 flow, copying, calls as each tool has them by default",
            ),
            Self::Tcp1Calls128K => ("tcp-1-128k", "TCP, 1 flow, copying, calls of 128 KiB"),
            Self::Tcp1Calls1M => ("tcp-1-1m", "TCP, 1 flow, copying, calls of 1 MiB"),
            Self::Tcp1ZerocopySend => (
                "tcp-1-zerocopy-send",
                "TCP, 1 flow, zero-copy send, copying receive",
            ),
            Self::Tcp1Fast => (
                "tcp-1-fast",
                "TCP, 1 flow, zero-copy send, discarding receive",
            ),
            Self::Tcp10 => ("tcp-10", "TCP, 10 flows, copying"),
            Self::Tcp10Fast => (
                "tcp-10-fast",
                "TCP, 10 flows, zero-copy send, discarding receive",
            ),
            Self::Rr1Spin => (
                "rr-1-spin",
                "request/response of 1 byte, 1 flow, both ends spinning",
            ),
            Self::Rr1 => ("rr-1", "request/response of 1 byte, 1 flow, one CPU"),
            Self::Rr64 => ("rr-64", "request/response of 1 byte, 64 flows"),
            Self::Crr64 => ("crr-64", "connect/request/response, 64 in flight"),
            Self::Udp64 => ("udp-64", "UDP, 64 bytes, packets received"),
            Self::Udp64Gso => (
                "udp-64-gso",
                "UDP, 64 bytes, GSO sender, plain receiver, packets received",
            ),
            Self::Udp64GsoGro => (
                "udp-64-gso-gro",
                "UDP, 64 bytes, GSO sender, GRO receiver, packets received",
            ),
            Self::Tcp100Nodelay => (
                "tcp-100-nodelay",
                "TCP messages of 100 bytes, one send each, NODELAY",
            ),
            Self::Tcp100Batched => ("tcp-100-batched", "TCP messages of 100 bytes, batched"),
            Self::Startup => ("startup", "what a run of 1 s takes beyond 1 s"),
            Self::Memory1 => (
                "memory-1",
                "peak resident memory of the greater end, 1 flow",
            ),
            Self::Memory10000 => (
                "memory-10000",
                "peak resident memory of the greater end, 10 000 flows",
            ),
        }
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// Returns what its number counts.
    pub fn unit(self) -> Unit {
        match self {
            Self::Tcp1
            | Self::Tcp1Calls128K
            | Self::Tcp1Calls1M
            | Self::Tcp1ZerocopySend
            | Self::Tcp1Fast
            | Self::Tcp10
            | Self::Tcp10Fast => Unit::BitsPerSecond,
            Self::Rr1Spin | Self::Rr1 | Self::Rr64 | Self::Crr64 => Unit::TransactionsPerSecond,
            Self::Udp64 | Self::Udp64Gso | Self::Udp64GsoGro => Unit::PacketsPerSecond,
            Self::Tcp100Nodelay | Self::Tcp100Batched => Unit::MessagesPerSecond,
            Self::Startup => Unit::Seconds,
            Self::Memory1 | Self::Memory10000 => Unit::Bytes,
        }
    }

    /// Returns where its ends run.
    pub fn placement(self) -> Placement {
        match self {
            Self::Rr1Spin => Placement::TwoCpus,
            Self::Rr1 => Placement::OneCpu,
            Self::Startup | Self::Memory1 | Self::Memory10000 => Placement::Host,
            _ => Placement::Environment,
        }
    }

    /// Returns how many flows it has.
    pub fn flows(self) -> u32 {
        match self {
            Self::Tcp10 | Self::Tcp10Fast => 10,
            Self::Rr64 | Self::Crr64 => 64,
            Self::Memory10000 => 10_000,
            _ => 1,
        }
    }

    /// Returns what linerate must reach.
    pub fn targets(self) -> Vec<Target> {
        use Against::{Absolute, BestPeer, Probe, Row};
        match self {
            Self::Tcp1 => vec![
                target("linerate", Row("iperf3"), 1.00),
                Target {
                    cpu: true,
                    ..target("linerate", Row("iperf3"), 1.02)
                },
                target(
                    "linerate with intervals",
                    Row("linerate without intervals"),
                    0.99,
                ),
            ],
            Self::Tcp1Calls128K | Self::Tcp1Calls1M => vec![
                target("linerate", Row("iperf3"), 1.03),
                Target {
                    cpu: true,
                    ..target("linerate", Row("iperf3"), 0.95)
                },
            ],
            Self::Tcp1ZerocopySend | Self::Tcp10 => vec![target("linerate", BestPeer, 1.05)],
            Self::Tcp1Fast => vec![target("linerate", BestPeer, 1.35)],
            Self::Tcp10Fast => vec![target("linerate", BestPeer, 1.7)],
            Self::Rr1Spin | Self::Tcp100Nodelay => vec![target("linerate", BestPeer, 1.0)],
            Self::Rr1 => vec![
                target("linerate", BestPeer, 1.05),
                target("linerate yielding", BestPeer, 1.05),
            ],
            Self::Rr64 => vec![
                target("linerate", Probe, 1.1),
                target("linerate spinning", Probe, 1.1),
                target("linerate sharded", Probe, 1.75),
                target("linerate sharded, spinning", Probe, 1.75),
            ],
            Self::Crr64 => vec![
                target("linerate", Probe, 0.95),
                target("linerate sharded", Probe, 1.6),
            ],
            Self::Udp64 => vec![
                target("linerate", BestPeer, 1.05),
                target("linerate two pairs", BestPeer, 1.5),
            ],
            Self::Udp64Gso => vec![target("linerate", BestPeer, 2.0)],
            // Not a case of its own among the targets: shown beside the best peer.
            Self::Udp64GsoGro => Vec::new(),
            Self::Tcp100Batched => vec![target("linerate", BestPeer, 5.0)],
            Self::Startup => vec![target("linerate", Absolute, 0.010)],
            Self::Memory1 => vec![target("linerate", Absolute, 6.0 * 1_048_576.0)],
            // 8 MiB, and 4 KiB for each flow.
            Self::Memory10000 => {
                vec![target("linerate", Absolute, 8.0 * 1_048_576.0 + 4096e4)]
            }
        }
    }
}

impl Serialize for Contest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl std::str::FromStr for Contest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| format!("no workload {text}; --list shows them"))
    }
}

impl Unit {
    /// Whether a smaller number is the better one.
    pub fn less_is_better(self) -> bool {
        matches!(self, Self::Seconds | Self::Bytes)
    }

    /// Returns the order of two numbers, the better one last.
    pub fn order(self, one: f64, other: f64) -> std::cmp::Ordering {
        if self.less_is_better() {
            other.total_cmp(&one)
        } else {
            one.total_cmp(&other)
        }
    }

    /// Returns the divisor and the name for people.
    pub fn scale(self) -> (f64, &'static str) {
        match self {
            Self::BitsPerSecond => (1e9, "Gbit/s"),
            Self::TransactionsPerSecond => (1e3, "k transactions/s"),
            Self::MessagesPerSecond => (1e3, "k messages/s"),
            Self::PacketsPerSecond => (1e3, "k packets/s"),
            Self::Seconds => (1e-3, "ms"),
            Self::Bytes => (1_048_576.0, "MiB"),
        }
    }

    /// Returns what CPU time is divided by, as units of work a unit of the number, and its name.
    ///
    /// A rate in bits per second is 2^33 bits a GiB; every other rate counts operations, of which
    /// one costs microseconds.
    pub fn cpu_per(self) -> Option<(f64, &'static str)> {
        match self {
            Self::BitsPerSecond => Some((8.0 * 1_073_741_824.0, "CPU s/GiB")),
            Self::TransactionsPerSecond => Some((1e6, "CPU µs/transaction")),
            Self::MessagesPerSecond => Some((1e6, "CPU µs/message")),
            Self::PacketsPerSecond => Some((1e6, "CPU µs/packet")),
            Self::Seconds | Self::Bytes => None,
        }
    }
}
