//! The limiters, each once: what it is called, and what raises the number that it holds down.
//!
//! How each is found, what that needs of evidence and what to do next is beside its rule, in `linerate-analyze`.

use serde::{Deserialize, Serialize};

/// What holds a number down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// The link carries what its rate and framing allow.
    LinkRate,
    /// A full path whose rate nobody knew: data waits in a queue before it.
    PathRate,
    /// The receiver's window.
    ReceiverWindow,
    /// The sender's buffer.
    SendBuffer,
    /// The congestion window, after loss without a queue or by the algorithm's choice.
    CongestionWindow,
    /// The program at the receiver leaves data unread.
    SlowReader,
    /// Segments are dropped by the own host: queueing discipline, device or backlog.
    HostDrops,
    /// A rate that was asked for, or that TCP's congestion control paces itself at.
    Pacing,
    /// Our own worker had no time left.
    Generator,
    /// All CPUs of a host, or the one that the traffic needs, are full.
    Cpu,
    /// Other programs take the CPUs that the traffic needs.
    OtherPrograms,
    /// A quota of a control group or a hypervisor holds the CPUs back.
    CpuQuota,
    /// The round trip: one transaction at a time.
    RoundTrip,
    /// Nagle's algorithm waiting for a delayed acknowledgement.
    NagleDelayedAck,
    /// Retransmission timeouts make the slow ones of the transactions.
    Timeouts,
    /// The program itself: a server that thinks, a writer that pauses.
    Application,
    /// Nothing is acknowledged: a path that swallows segments, or a peer that is gone.
    NothingArrives,
}

/// What a limiter is a limit of; a report has a colour for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Links between the hosts.
    Path,
    /// The time that a round trip takes.
    Time,
    /// A window or a buffer of TCP.
    Window,
    /// CPUs and queues of a host.
    Host,
    /// Timers of TCP, or nothing that gets through.
    Protocol,
    /// The program that uses the connection.
    Program,
    /// Our own load.
    Generator,
}

/// What is known of a limiter before anything is measured.
struct Words {
    id: &'static str,
    title: &'static str,
    short: &'static str,
    heading: &'static str,
    layer: Layer,
    spoils: Option<&'static str>,
    remedy: Remedy,
}

/// What raises a number that a limiter holds down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remedy {
    /// What raises it, as a part of a sentence without its full stop.
    pub raises: &'static str,
    /// What to do, one imperative sentence without its full stop.
    pub action: &'static str,
    /// What that costs, or may do elsewhere, one sentence without its full stop.
    pub cost: &'static str,
    /// How to take it back, one sentence or command without a full stop.
    pub undo: &'static str,
    /// The command that measures it.
    pub measure: &'static str,
    /// What that command is compared with.
    compared: Compared,
}

/// What the command that measures a remedy is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// Nothing: it measures both settings in one run, or searches and writes what it finds, which it does once.
    Once,
    /// The same without this flag, which is the change.
    Without(&'static str),
    /// Itself, before the change and after it.
    BeforeAndAfter,
}

impl Remedy {
    /// Returns what its command adds to one that makes the traffic already; absent where it is an experiment of its own.
    pub fn flags(&self) -> Option<&'static str> {
        let flags = self.measure.strip_prefix("linerate run HOST ")?;
        let flags = flags.strip_prefix("--rr ").unwrap_or(flags);
        (!flags.starts_with("--experiment")).then_some(flags)
    }

    /// Returns when its command is to be run, as the end of a sentence.
    pub fn when(&self) -> String {
        match self.compared {
            Compared::Once => String::new(),
            Compared::Without(flag) => format!(", and the same without {flag}"),
            Compared::BeforeAndAfter => ", before and after".to_owned(),
        }
    }
}

/// Where nothing is changed, there is nothing to take back.
const NOTHING: &str = "Nothing is changed";

impl Limiter {
    fn words(self) -> &'static Words {
        match self {
            Self::LinkRate => &Words {
                id: "link-rate",
                title: "the link's rate",
                short: "link",
                heading: "Limited by the link",
                layer: Layer::Path,
                spoils: None,
                remedy: Remedy {
                    raises: "larger frames or a faster link raise it, buffers and CPUs do not",
                    action: "Use larger frames (MTU 9000), or a faster link",
                    cost: "Every host and switch port of the path has to support them",
                    undo: "ip link set dev DEVICE mtu 1500, on both hosts",
                    measure: "linerate run HOST --runs 5",
                    compared: Compared::BeforeAndAfter,
                },
            },
            Self::PathRate => &Words {
                id: "path-rate",
                title: "the path's rate",
                short: "path",
                heading: "Limited by the path",
                layer: Layer::Path,
                spoils: None,
                remedy: Remedy {
                    raises: "find the slowest link or shaper on the path",
                    action: "Find the slowest link or shaper on the path",
                    cost: "None: this only searches",
                    undo: NOTHING,
                    measure: "linerate run HOST --runs 5",
                    compared: Compared::BeforeAndAfter,
                },
            },
            Self::ReceiverWindow => &Words {
                id: "receiver-window",
                title: "the receive window",
                short: "rwnd",
                heading: "Limited by the receive window",
                layer: Layer::Window,
                spoils: None,
                remedy: Remedy {
                    raises: "a larger receive buffer raises it",
                    action: "Raise the maximum of net.ipv4.tcp_rmem on the receiver, or leave SO_RCVBUF unset; where \
                 windows are not scaled, turn on net.ipv4.tcp_window_scaling at both ends",
                    cost: "Memory of up to that size for each connection",
                    undo: "sysctl -w with the values that were printed before",
                    measure: "linerate run HOST --experiment socket-buffer",
                    compared: Compared::Once,
                },
            },
            Self::SendBuffer => &Words {
                id: "send-buffer",
                title: "the send buffer",
                short: "sndbuf",
                heading: "Limited by the send buffer",
                layer: Layer::Window,
                spoils: None,
                remedy: Remedy {
                    raises: "a larger send buffer raises it",
                    action: "Raise the maximum of net.ipv4.tcp_wmem on the sender, or leave SO_SNDBUF unset",
                    cost: "Memory of up to that size for each connection",
                    undo: "sysctl -w with the values that were printed before",
                    measure: "linerate run HOST --experiment socket-buffer",
                    compared: Compared::Once,
                },
            },
            Self::CongestionWindow => &Words {
                id: "congestion-window",
                title: "the congestion window",
                short: "cwnd",
                heading: "Limited by the congestion window",
                layer: Layer::Window,
                spoils: None,
                remedy: Remedy {
                    raises: "less loss, or a congestion control that tolerates it, raises it",
                    action: "Find where segments are lost, or use a congestion control that tolerates it (-C bbr); without \
                 loss, measure for longer",
                    cost: "Such a control may take bandwidth from others on the path",
                    undo: "sysctl -w net.ipv4.tcp_congestion_control with the name that was printed before",
                    measure: "linerate run HOST -C bbr --runs 5",
                    compared: Compared::Without("-C bbr"),
                },
            },
            Self::SlowReader => &Words {
                id: "slow-reader",
                title: "the receiving program",
                short: "reader",
                heading: "Limited by the reader",
                layer: Layer::Program,
                spoils: None,
                remedy: Remedy {
                    raises: "the receiving program has to read faster",
                    action: "Make the receiving program read faster: larger reads, or less work between them",
                    cost: "Work on that program",
                    undo: "Its previous version",
                    measure: "linerate run HOST --rx discard --runs 5",
                    compared: Compared::Without("--rx discard"),
                },
            },
            Self::HostDrops => &Words {
                id: "host-drops",
                title: "drops inside a host",
                short: "drops",
                heading: "Limited by drops in a host",
                layer: Layer::Host,
                spoils: None,
                remedy: Remedy {
                    raises: "longer queues in the host that drops, or fewer bursts, raise it",
                    action: "Make the queue that drops longer (qdisc, txqueuelen, net.core.netdev_max_backlog)",
                    cost: "Memory, and a longer round trip while it is full",
                    undo: "tc, ip link or sysctl with the values that were printed before",
                    measure: "linerate run HOST --runs 5",
                    compared: Compared::BeforeAndAfter,
                },
            },
            Self::Pacing => &Words {
                id: "pacing",
                title: "pacing",
                short: "pacing",
                heading: "Limited by pacing",
                layer: Layer::Program,
                spoils: None,
                remedy: Remedy {
                    raises: "the requested rate, or TCP's own pacing, is the limit",
                    action: "Set a higher rate, or none (-b 0 of datagrams); where bbr paces by itself, try another congestion control (-C cubic)",
                    cost: "More load on the path",
                    undo: "The previous flags",
                    measure: "linerate run HOST --runs 5",
                    compared: Compared::BeforeAndAfter,
                },
            },
            Self::Generator => &Words {
                id: "generator",
                title: "the load generator",
                short: "generator",
                heading: "Limited by the generator",
                layer: Layer::Generator,
                spoils: None,
                remedy: Remedy {
                    raises: "it is a lower bound of what the host can do",
                    action: "Measure with fewer calls or more flows, to see what the host can do",
                    cost: "None: only the measurement changes",
                    undo: NOTHING,
                    measure: "linerate run HOST -P 4 --runs 5",
                    compared: Compared::Without("-P 4"),
                },
            },
            Self::Cpu => &Words {
                id: "cpu",
                title: "the CPUs",
                short: "CPU",
                heading: "Limited by the CPUs",
                layer: Layer::Host,
                spoils: None,
                remedy: Remedy {
                    raises: "more or faster CPUs, or less work per byte, raise it",
                    action: "Give the traffic more CPUs or less work per byte: larger frames, offloads, fewer copies",
                    cost: "CPUs that other programs then lack",
                    undo: "ethtool -K and the affinities with the previous values",
                    measure: "linerate run HOST --profile --runs 5",
                    compared: Compared::BeforeAndAfter,
                },
            },
            Self::OtherPrograms => &Words {
                id: "other-programs",
                title: "other programs on the CPUs",
                short: "others",
                heading: "Limited by other programs",
                layer: Layer::Host,
                spoils: Some("other programs had the CPUs"),
                remedy: Remedy {
                    raises: "measure again while nothing else runs",
                    action: "Measure again while nothing else runs, or pin other programs to other CPUs",
                    cost: "The other programs have to stop, or to share fewer CPUs",
                    undo: "Start them again",
                    measure: "linerate run HOST --runs 5",
                    compared: Compared::BeforeAndAfter,
                },
            },
            Self::CpuQuota => &Words {
                id: "cpu-quota",
                title: "a CPU quota",
                short: "quota",
                heading: "Limited by a CPU quota",
                layer: Layer::Host,
                spoils: Some("a CPU quota held the workers back"),
                remedy: Remedy {
                    raises: "a larger CPU quota raises it",
                    action: "Raise the quota of the control group (cpu.max), or of the virtual machine",
                    cost: "CPU time that others then lack",
                    undo: "cpu.max with the previous value",
                    measure: "linerate run HOST --runs 5",
                    compared: Compared::BeforeAndAfter,
                },
            },
            Self::RoundTrip => &Words {
                id: "round-trip",
                title: "the round trip",
                short: "RTT",
                heading: "Limited by the round trip",
                layer: Layer::Time,
                spoils: None,
                remedy: Remedy {
                    raises: "more requests at a time raise it, or a shorter path and faster wake-ups",
                    action: "Keep more requests in flight, or poll instead of sleeping",
                    cost: "Requests wait for each other, or a CPU polls all the time",
                    undo: "One request at a time",
                    measure: "linerate run HOST --rr --in-flight 16 --runs 5",
                    compared: Compared::Without("--in-flight 16"),
                },
            },
            Self::NagleDelayedAck => &Words {
                id: "nagle-delayed-ack",
                title: "Nagle waiting for a delayed ACK",
                short: "Nagle",
                heading: "Limited by Nagle and delayed ACK",
                layer: Layer::Protocol,
                spoils: None,
                remedy: Remedy {
                    raises: "TCP_NODELAY, or one write per request, ends the wait",
                    action: "In programs that write a request in pieces, set TCP_NODELAY or write it at once",
                    cost: "More and smaller segments where it writes little at a time",
                    undo: "Leave TCP_NODELAY unset",
                    measure: "linerate run HOST --experiment split-request",
                    compared: Compared::Once,
                },
            },
            Self::Timeouts => &Words {
                id: "timeouts",
                title: "retransmission timeouts",
                short: "RTO",
                heading: "Limited by timeouts",
                layer: Layer::Protocol,
                spoils: None,
                remedy: Remedy {
                    raises: "less loss raises it",
                    action: "Find where segments are lost",
                    cost: "None: this only searches",
                    undo: NOTHING,
                    measure: "linerate run HOST --rr --capture --out run.bundle",
                    compared: Compared::Once,
                },
            },
            Self::Application => &Words {
                id: "application",
                title: "the application",
                short: "app",
                heading: "Limited by the application",
                layer: Layer::Program,
                spoils: None,
                remedy: Remedy {
                    raises: "the measured program itself has to answer faster",
                    action: "Make the measured program answer faster",
                    cost: "Work on that program",
                    undo: "Its previous version",
                    measure: "linerate run HOST --rr --runs 5",
                    compared: Compared::BeforeAndAfter,
                },
            },
            Self::NothingArrives => &Words {
                id: "nothing-arrives",
                title: "a path that carries nothing",
                short: "nothing",
                heading: "Nothing arrives",
                layer: Layer::Protocol,
                spoils: None,
                remedy: Remedy {
                    raises: "find where the path drops segments",
                    action: "Find where the path drops segments: its MTU, or a firewall",
                    cost: "None: this only searches",
                    undo: NOTHING,
                    measure: "linerate run HOST -M 1208",
                    compared: Compared::Without("-M 1208"),
                },
            },
        }
    }

    /// Returns its name for identifiers.
    pub fn id(self) -> &'static str {
        self.words().id
    }

    /// Returns it in words, as in "limited by …".
    pub fn title(self) -> &'static str {
        self.words().title
    }

    /// Returns it in as few letters as a strip below a chart has room for; the kernel's word where it
    /// has one.
    pub fn short(self) -> &'static str {
        self.words().short
    }

    /// Returns the heading of a finding that names it.
    pub fn heading(self) -> &'static str {
        self.words().heading
    }

    /// Returns what it is a limit of.
    pub fn layer(self) -> Layer {
        self.words().layer
    }

    /// Returns why a number that it limits is not to be used, where neither the path nor the hosts decided it.
    pub fn spoils(self) -> Option<&'static str> {
        self.words().spoils
    }

    /// Returns what raises a number that it limits, in general: nothing of it was measured on a host.
    pub fn remedy(self) -> &'static Remedy {
        &self.words().remedy
    }

    /// Returns its page of the guide, below the root of the project.
    pub fn page(self) -> String {
        format!("docs/guide/limiters/{}.md", self.id())
    }
}
