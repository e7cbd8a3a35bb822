//! Looks at a host that cost too much to be taken in every trial.

use serde::{Deserialize, Serialize};

/// Which of them a trial takes; none unless asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Probes {
    /// Looks at each CPU a thousand times a second, for the share of each kind of work and a flame
    /// graph.
    pub profile: bool,
    /// Measures the time in interrupts at their tracepoints, beside what the tick samples.
    pub irq_time: bool,
}

impl Probes {
    /// Returns whether nothing is asked for.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns all of `self` and of `other`.
    pub fn and(self, other: Self) -> Self {
        Self {
            profile: self.profile || other.profile,
            irq_time: self.irq_time || other.irq_time,
        }
    }
}
