//! What is known of a host without varying it, and what could not be read.

use serde::{Deserialize, Serialize};

use crate::unit::Unit;

/// How the alias of a device begins whose link a lab keeps to a rate; the rate follows, in bits per
/// second, and that from the host behind [`LAB_LINK_UP`] where it is another. The driver of a virtual device names a rate that nothing keeps, and who enters a lab by hand
/// has no other way to learn the true one.
pub const LAB_LINK_ALIAS: &str = "linerate lab link, bit/s: ";

/// What stands between the two rates of a lab's link.
pub const LAB_LINK_UP: &str = ", up ";

/// Whether an observer can run here, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Availability {
    /// The observer.
    pub observer: String,
    /// Why it cannot run; absent when it can.
    pub missing: Option<String>,
    /// What limits it although it runs, for instance that a counter is shared by several hosts.
    pub note: Option<String>,
}

/// Name of the observer that counts packets by queue.
pub const QUEUE_OBSERVER: &str = "queue";
/// Name of the observer that measures the time in interrupts, if asked to.
pub const IRQ_TIME_OBSERVER: &str = "irq_time";

/// A program that runs on a host, and the CPU time that it has had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Program {
    /// Its number, as the agent sees it.
    pub pid: u32,
    /// Its name (`comm`), 15 bytes at the most.
    pub name: String,
    /// User and system time of all its threads so far, in nanoseconds; counted in ticks.
    pub cpu_ns: u64,
}

/// The value of a fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FactValue {
    /// A number with its unit.
    Number(f64, Unit),
    /// Text as the kernel gives it.
    Text(String),
    /// It could not be read, and why.
    Missing(String),
}

/// A property of a host that is not varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fact {
    /// Dotted name: `cpu.model`, `link.eth0.mtu_bytes`, `sysctl.net.ipv4.tcp_rmem`.
    pub name: String,
    /// Its value.
    pub value: FactValue,
}

/// All facts of a host at one instant, sorted by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// The facts, sorted by name.
    pub facts: Vec<Fact>,
}

/// Name of the fact whether a CPU quota of the agent's control group would be seen: 1, or 0.
pub const CPU_QUOTA_VISIBLE: &str = "cpu.quota_visible";

impl Snapshot {
    /// Returns the most that a setting of three numbers allows, as `tcp_rmem` has least, first and most.
    pub fn most_of_three(&self, name: &str) -> Option<f64> {
        self.text(name)?.split_whitespace().nth(2)?.parse().ok()
    }

    /// Returns the number of the fact called `name`.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.value(name)? {
            FactValue::Number(number, _) => Some(*number),
            FactValue::Text(text) => text.trim().parse().ok(),
            FactValue::Missing(_) => None,
        }
    }

    /// Returns the text of the fact called `name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            FactValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of the fact called `name`.
    pub fn value(&self, name: &str) -> Option<&FactValue> {
        self.facts
            .iter()
            .find(|fact| fact.name == name)
            .map(|fact| &fact.value)
    }
}
