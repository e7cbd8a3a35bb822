//! One value at one instant, and what it is about.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::{FlowId, HostName, TrialId};
use crate::metric::Metric;
use crate::unit::Nanos;

/// Flows of a trial that are read in full on every tick, by their number, and shown in full unless more is
/// asked for. Of the others only what interval lines show is kept between the edges of the window: a full
/// reading of 10 000 flows is 330 000 samples, 30 MB as JSON and 1 to 2 MB packed, at each end, and a
/// document of them 65 MB.
pub const FLOWS_IN_FULL: u32 = 256;

/// The side of a flow that opened it, or the one that accepted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The end that connected.
    Client,
    /// The end that accepted.
    Server,
}

impl End {
    /// Both ends.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// Returns the other end.
    #[inline]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// The side of a network device that a queue is on (`enum netdev_queue_type` of the kernel).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// Receives.
    Rx,
    /// Transmits.
    Tx,
}

impl QueueKind {
    /// Returns the side that `word` names.
    pub fn named(word: &str) -> Option<Self> {
        match word {
            "rx" => Some(QueueKind::Rx),
            "tx" => Some(QueueKind::Tx),
            _ => None,
        }
    }
}

impl fmt::Display for QueueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QueueKind::Rx => "rx",
            QueueKind::Tx => "tx",
        })
    }
}

/// A queueing discipline of a device: its handle, or the class it hangs at where it has none.
///
/// The number is the kernel's (major in the upper 16 bits), the text that of `tc`: `8001:` is a
/// handle, `1:2` a class, `0:` a root without a handle. The kernel's own children of `mq` have no
/// handles, so the class tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QdiscId(pub u32);

impl fmt::Display for QdiscId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = (self.0 >> 16, self.0 & 0xffff);
        match minor {
            0 => write!(f, "{major:x}:"),
            _ => write!(f, "{major:x}:{minor:x}"),
        }
    }
}

/// What a sample is about, on the host it was read on.
///
/// As text: `host`, `cpu:0`, `node:0`, `irq:24`, `link:eth0`, `queue:eth0:rx:3`,
/// `qdisc:eth0:8001:`, `flow:3:client`, `thread:worker-0`, `counter:Tcp.RetransSegs`,
/// `irq:24:cpu:3`, `sensor:coretemp-2:Package id 0`, `latency:all`, `latency:21504`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// The whole host (or network namespace, for protocol counters).
    Host,
    /// One CPU, by the kernel's number.
    Cpu(u32),
    /// One network device, by name.
    Link(String),
    /// One end of one flow.
    Flow(FlowId, End),
    /// One of our own threads, by its name.
    Thread(String),
    /// One NUMA node, by the kernel's number.
    Node(u32),
    /// One interrupt, by its number in `/proc/interrupts`.
    Irq(u32),
    /// One queue of a network device: the device's name, the side, the number.
    Queue(String, QueueKind, u32),
    /// One queueing discipline of a network device.
    Qdisc(String, QdiscId),
    /// One protocol counter of the network namespace, by the kernel's own name.
    Counter(String),
    /// One interrupt on one CPU, both by the kernel's numbers.
    IrqCpu(u32, u32),
    /// One sensor, by chip and label.
    Sensor(String),
    /// The transactions of this host's workers whose latency lies about here, or all of them; where the trial has
    /// several groups, of those alone that are of the group of this flow.
    Latency(Option<FlowId>, Option<Nanos>),
}

/// What the name of a thread that moves payload begins with, before its number.
pub const WORKER: &str = "worker-";

impl Subject {
    /// Returns whether it is one of the threads that move payload.
    pub fn is_worker(&self) -> bool {
        matches!(self, Subject::Thread(name) if name.starts_with(WORKER))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Host => f.write_str("host"),
            Subject::Cpu(cpu) => write!(f, "cpu:{cpu}"),
            Subject::Link(name) => write!(f, "link:{name}"),
            Subject::Flow(flow, end) => write!(f, "flow:{}:{end}", flow.0),
            Subject::Thread(name) => write!(f, "thread:{name}"),
            Subject::Node(node) => write!(f, "node:{node}"),
            Subject::Irq(irq) => write!(f, "irq:{irq}"),
            Subject::Queue(link, kind, queue) => write!(f, "queue:{link}:{kind}:{queue}"),
            Subject::Qdisc(link, id) => write!(f, "qdisc:{link}:{id}"),
            Subject::Counter(name) => write!(f, "counter:{name}"),
            Subject::IrqCpu(irq, cpu) => write!(f, "irq:{irq}:cpu:{cpu}"),
            Subject::Sensor(name) => write!(f, "sensor:{name}"),
            Subject::Latency(flow, about) => {
                f.write_str("latency:")?;
                if let Some(flow) = flow {
                    write!(f, "flow:{}:", flow.0)?;
                }
                match about {
                    None => f.write_str("all"),
                    Some(Nanos(ns)) => write!(f, "{ns}"),
                }
            }
        }
    }
}

/// The text is not a subject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a subject")]
pub struct ParseSubjectError(String);

impl FromStr for Subject {
    type Err = ParseSubjectError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        subject(text).ok_or_else(|| ParseSubjectError(text.to_owned()))
    }
}

fn subject(text: &str) -> Option<Subject> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    Some(match kind {
        "host" => Subject::Host,
        "cpu" => Subject::Cpu(rest.parse().ok()?),
        "link" => Subject::Link(rest.to_owned()),
        "thread" => Subject::Thread(rest.to_owned()),
        "node" => Subject::Node(rest.parse().ok()?),
        "irq" => irq(rest)?,
        "queue" => queue(rest)?,
        "qdisc" => qdisc(rest)?,
        "counter" if !rest.is_empty() => Subject::Counter(rest.to_owned()),
        "sensor" if !rest.is_empty() => Subject::Sensor(rest.to_owned()),
        "latency" => latency(rest)?,
        "flow" => {
            let (flow, end) = rest.split_once(':')?;
            let end = match end {
                "client" => End::Client,
                "server" => End::Server,
                _ => return None,
            };
            Subject::Flow(FlowId(flow.parse().ok()?), end)
        }
        _ => return None,
    })
}

/// Reads `all`, `21504`, or either behind `flow:3:`.
fn latency(text: &str) -> Option<Subject> {
    let (flow, about) = match text.strip_prefix("flow:") {
        None => (None, text),
        Some(rest) => {
            let (flow, about) = rest.split_once(':')?;
            (Some(FlowId(flow.parse().ok()?)), about)
        }
    };
    let about = match about {
        "all" => None,
        ns => Some(Nanos(ns.parse().ok()?)),
    };
    Some(Subject::Latency(flow, about))
}

/// Reads `24` or `24:cpu:3`.
fn irq(text: &str) -> Option<Subject> {
    match text.split_once(":cpu:") {
        Some((irq, cpu)) => Some(Subject::IrqCpu(irq.parse().ok()?, cpu.parse().ok()?)),
        None => text.parse().ok().map(Subject::Irq),
    }
}

/// Reads `eth0:rx:3` from the right, since names of devices may have colons (`eth0:1`).
fn queue(text: &str) -> Option<Subject> {
    let (rest, queue) = text.rsplit_once(':')?;
    let (link, kind) = rest.rsplit_once(':')?;
    let kind = QueueKind::named(kind)?;
    Some(Subject::Queue(link.to_owned(), kind, queue.parse().ok()?))
}

/// Reads `eth0:8001:` or `eth0:1:2` from the right.
fn qdisc(text: &str) -> Option<Subject> {
    let (rest, minor) = text.rsplit_once(':')?;
    let (link, major) = rest.rsplit_once(':')?;
    let half = |text: &str| u16::from_str_radix(text, 16).ok().map(u32::from);
    let minor = if minor.is_empty() { 0 } else { half(minor)? };
    Some(Subject::Qdisc(
        link.to_owned(),
        QdiscId(half(major)? << 16 | minor),
    ))
}

impl Serialize for Subject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Subject {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Subject".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "host, cpu:N, node:N, irq:N, irq:N:cpu:N, link:NAME, queue:NAME:rx:N, queue:NAME:tx:N, qdisc:NAME:HANDLE, flow:N:client, flow:N:server, thread:NAME, counter:NAME, sensor:NAME, latency:all or latency:NANOSECONDS, both with flow:N: before the last part where a trial has several groups"
        })
    }
}

/// One value of one metric of one subject at one instant.
///
/// The clock is the agent's CLOCK_MONOTONIC while a sample travels from agent to controller, and
/// the controller's once it is in a [`TrialSample`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// What is counted.
    pub metric: Metric,
    /// What it is about.
    pub subject: Subject,
    /// When it was read, on the host's monotonic clock.
    pub at_ns: u64,
    /// The value, in the metric's unit.
    pub value: i64,
}

/// A sample placed on the axis of its trial, as the store keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialSample {
    /// The trial it belongs to.
    pub trial: TrialId,
    /// The host it was read on.
    pub host: HostName,
    /// What it is about.
    pub subject: Subject,
    /// What is counted.
    pub metric: Metric,
    /// Instant relative to the begin of the measured window, on the controller's clock; samples of
    /// the warm-up are negative.
    pub at_ns: i64,
    /// The value, in the metric's unit.
    pub value: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_survive_text() {
        for text in [
            "host",
            "cpu:3",
            "link:eth0",
            "flow:7:client",
            "flow:0:server",
            "thread:w-0",
            "node:1",
            "irq:24",
            "irq:24:cpu:3",
            "queue:eth0:rx:3",
            "queue:eth0:1:tx:0",
            "qdisc:eth0:8001:",
            "qdisc:eth0:0:",
            "qdisc:eth0:1:0:1a",
            "qdisc:lo:ffff:ffff",
            "counter:Tcp.RetransSegs",
            "counter:Ip6InReceives",
            "sensor:coretemp-2:Package id 0",
            "latency:all",
            "latency:21504",
            "latency:flow:3:all",
            "latency:flow:3:21504",
        ] {
            assert_eq!(text.parse::<Subject>().unwrap().to_string(), text);
        }
        let one = "queue:eth0:1:rx:3".parse();
        let expected = Subject::Queue("eth0:1".to_owned(), QueueKind::Rx, 3);
        assert_eq!(one, Ok(expected));
        let one = "qdisc:eth0:8001:".parse();
        assert_eq!(
            one,
            Ok(Subject::Qdisc("eth0".to_owned(), QdiscId(0x8001_0000)))
        );
        for text in [
            "",
            "cpu:x",
            "flow:1",
            "flow:1:middle",
            "disk:1",
            "counter:",
            "sensor:",
            "latency:",
            "latency:-1",
            "irq:",
            "irq:24:cpu:",
            "irq:24:3",
            "queue:eth0:3",
            "queue:eth0:up:3",
            "qdisc:eth0",
            "qdisc:eth0:8001",
            "qdisc:eth0:10000:",
        ] {
            assert!(text.parse::<Subject>().is_err(), "{text}");
        }
    }
}
