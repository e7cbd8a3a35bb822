//! Names of facts. Those that a host has for each queue and each interrupt are types, for the observer that
//! makes them and for those that look them up.

use std::fmt;

use crate::manner::Named;
use crate::sample::QueueKind;

/// Ends of the names of facts that tell hosts apart and say nothing of how they are set up.
const IDENTITIES: [&str; 3] = ["host.name", ".address", ".napi"];

/// Whether two hosts that are set up alike differ in the fact of this name.
pub fn is_identity(name: &str) -> bool {
    IDENTITIES.iter().any(|end| name.ends_with(end))
}

/// A fact of a queue of a device: `queue.eth0.rx.2.node`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFact<'d> {
    /// The device.
    pub device: &'d str,
    /// The side of the queue.
    pub side: QueueKind,
    /// Its number on that side.
    pub number: u32,
    /// What of it.
    pub what: OfQueue,
}

/// What is known of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfQueue {
    /// The kernel's number of the NAPI that serves it.
    Napi,
    /// Its interrupt.
    Irq,
    /// The CPUs that the interrupt goes to, as a list.
    Cpus,
    /// The NUMA node of the first of them.
    Node,
}

/// A fact of an interrupt of a network device: `irq.38.action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IrqFact {
    /// The interrupt.
    pub irq: u32,
    /// What of it.
    pub what: OfIrq,
}

/// What is known of an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfIrq {
    /// Its device.
    Link,
    /// Its name.
    Action,
    /// The queue that it serves, as its name has it.
    Queue,
    /// The CPUs that it may go to, as a list.
    Cpus,
    /// Those of them that the hardware was told.
    EffectiveCpus,
    /// Its NUMA node.
    Node,
}

impl Named for OfQueue {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("napi", Self::Napi),
        ("irq", Self::Irq),
        ("cpus", Self::Cpus),
        ("node", Self::Node),
    ];
}

impl Named for OfIrq {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("link", Self::Link),
        ("action", Self::Action),
        ("queue", Self::Queue),
        ("cpus", Self::Cpus),
        ("effective_cpus", Self::EffectiveCpus),
        ("node", Self::Node),
    ];
}

impl<'d> QueueFact<'d> {
    /// Takes the name of a fact apart, if it is one of a queue; a device's name may have dots, a VLAN's has.
    pub fn named(name: &'d str) -> Option<Self> {
        let mut parts = name.strip_prefix("queue.")?.rsplitn(4, '.');
        let (what, number, side) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self {
            device: parts.next()?,
            side: QueueKind::named(side)?,
            number: number.parse().ok()?,
            what: OfQueue::named(what)?,
        })
    }
}

impl fmt::Display for QueueFact<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (device, side, what) = (self.device, self.side, self.what.word());
        write!(f, "queue.{device}.{side}.{}.{what}", self.number)
    }
}

impl fmt::Display for IrqFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "irq.{}.{}", self.irq, self.what.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_queues_are_read_as_they_are_made() {
        for (name, what) in OfQueue::NAMES {
            let fact = QueueFact {
                device: "eth0.10",
                side: QueueKind::Tx,
                number: 3,
                what: *what,
            };
            assert_eq!(fact.to_string(), format!("queue.eth0.10.tx.3.{name}"));
            assert_eq!(QueueFact::named(&fact.to_string()), Some(fact));
        }
        for other in [
            "queue.eth0.rx.1",
            "queue.eth0.rx.1.name",
            "queue.eth0.both.1.irq",
            "queue.eth0.rx.many.irq",
            "link.eth0.rx.1.irq",
        ] {
            assert_eq!(QueueFact::named(other), None, "{other}");
        }
        let irq = IrqFact {
            irq: 38,
            what: OfIrq::EffectiveCpus,
        };
        assert_eq!(irq.to_string(), "irq.38.effective_cpus");
    }
}
