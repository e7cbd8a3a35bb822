//! Where the CPUs of a host were, found by looking again and again.

use serde::{Deserialize, Serialize};

use crate::id::{HostName, TrialId};
use crate::metric::Metric;

/// A kind of work; every look belongs to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// User mode.
    User,
    /// The way into the kernel and out, and the socket calls themselves.
    Entry,
    /// Copying payload between user memory and the kernel's.
    Copy,
    /// TCP or UDP.
    Transport,
    /// IP, routing, filters, bridges.
    Ip,
    /// Network drivers, their queues, queueing disciplines.
    Device,
    /// Dispatch of softirqs, polling.
    SoftIrq,
    /// Taking a lock.
    Locks,
    /// Choosing, waking and switching threads; timers.
    Scheduler,
    /// Allocating, clearing and freeing memory and packets.
    Memory,
    /// Anything else in the kernel.
    Other,
    /// Idle.
    Idle,
}

impl Work {
    /// Every kind, in the order in which they are told.
    pub const ALL: &'static [Work] = &[
        Work::User,
        Work::Entry,
        Work::Copy,
        Work::Transport,
        Work::Ip,
        Work::Device,
        Work::SoftIrq,
        Work::Locks,
        Work::Scheduler,
        Work::Memory,
        Work::Other,
        Work::Idle,
    ];

    /// Returns the name that documents carry.
    pub fn name(self) -> &'static str {
        match self {
            Work::User => "user",
            Work::Entry => "entry",
            Work::Copy => "copy",
            Work::Transport => "transport",
            Work::Ip => "ip",
            Work::Device => "device",
            Work::SoftIrq => "softirq",
            Work::Locks => "locks",
            Work::Scheduler => "scheduler",
            Work::Memory => "memory",
            Work::Other => "other",
            Work::Idle => "idle",
        }
    }

    /// Returns the kind that documents call `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|work| work.name() == name)
    }

    /// Returns the words for a column or a legend.
    pub fn title(self) -> &'static str {
        match self {
            Work::User => "user mode",
            Work::Entry => "system calls",
            Work::Copy => "copying",
            Work::Transport => "TCP and UDP",
            Work::Ip => "IP",
            Work::Device => "drivers",
            Work::SoftIrq => "softirqs",
            Work::Locks => "locks",
            Work::Scheduler => "scheduler",
            Work::Memory => "memory",
            Work::Other => "other",
            Work::Idle => "idle",
        }
    }

    /// Returns the counter of the looks that found this kind.
    pub fn metric(self) -> Metric {
        match self {
            Work::User => Metric::ProfileUser,
            Work::Entry => Metric::ProfileEntry,
            Work::Copy => Metric::ProfileCopy,
            Work::Transport => Metric::ProfileTransport,
            Work::Ip => Metric::ProfileIp,
            Work::Device => Metric::ProfileDevice,
            Work::SoftIrq => Metric::ProfileSoftIrq,
            Work::Locks => Metric::ProfileLocks,
            Work::Scheduler => Metric::ProfileScheduler,
            Work::Memory => Metric::ProfileMemory,
            Work::Other => Metric::ProfileOther,
            Work::Idle => Metric::ProfileIdle,
        }
    }
}

/// One place that CPUs were found at, with the way there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stack {
    /// Thread, then functions from the outermost to the innermost, with `;` between them.
    pub frames: String,
    /// What was done there.
    pub work: Work,
    /// Looks inside the measured window that found it.
    pub samples: u64,
}

/// The stacks of one trial on one host, as the store keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialProfile {
    /// The trial.
    pub trial: TrialId,
    /// The host.
    pub host: HostName,
    /// The stacks, those found most often first.
    pub stacks: Vec<Stack>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_counters_differ() {
        for (at, &work) in Work::ALL.iter().enumerate() {
            assert_eq!(Work::from_name(work.name()), Some(work));
            let others = &Work::ALL[..at];
            assert!(others.iter().all(|other| other.metric() != work.metric()));
        }
    }
}
