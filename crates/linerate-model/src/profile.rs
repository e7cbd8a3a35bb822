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

/// Every kind in its order, with its name in documents, its words and its counter.
const TABLE: [(Work, &str, &str, Metric); 12] = [
    (Work::User, "user", "user mode", Metric::ProfileUser),
    (Work::Entry, "entry", "system calls", Metric::ProfileEntry),
    (Work::Copy, "copy", "copying", Metric::ProfileCopy),
    (
        Work::Transport,
        "transport",
        "TCP and UDP",
        Metric::ProfileTransport,
    ),
    (Work::Ip, "ip", "IP", Metric::ProfileIp),
    (Work::Device, "device", "drivers", Metric::ProfileDevice),
    (Work::SoftIrq, "softirq", "softirqs", Metric::ProfileSoftIrq),
    (Work::Locks, "locks", "locks", Metric::ProfileLocks),
    (
        Work::Scheduler,
        "scheduler",
        "scheduler",
        Metric::ProfileScheduler,
    ),
    (Work::Memory, "memory", "memory", Metric::ProfileMemory),
    (Work::Other, "other", "other", Metric::ProfileOther),
    (Work::Idle, "idle", "idle", Metric::ProfileIdle),
];

impl Work {
    /// Every kind, in the order in which they are told.
    pub const ALL: &'static [Work] = &{
        let mut all = [Work::User; TABLE.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = TABLE[at].0;
            at += 1;
        }
        all
    };

    /// Returns the name that documents carry.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Returns the kind that documents call `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut rows = TABLE.iter();
        rows.find(|row| row.1 == name).map(|row| row.0)
    }

    /// Returns the words for a column or a legend.
    pub fn title(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// Returns the counter of the looks that found this kind.
    pub fn metric(self) -> Metric {
        TABLE[self as usize].3
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
            assert_eq!(work as usize, at);
            let others = &Work::ALL[..at];
            assert!(others.iter().all(|other| other.metric() != work.metric()));
        }
    }
}
