//! How much has to differ to matter.

use serde::{Deserialize, Serialize};

use crate::unit::Unit;

/// Relative differences below which two numbers are the same to a user.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Margins {
    /// Of throughput and other rates.
    pub rate: f64,
    /// Of CPU time.
    pub cpu: f64,
    /// Of latency, or [`LATENCY_NS_MIN`] where that is more.
    pub latency: f64,
}

/// Differences of latency below which two are the same whatever their ratio, in nanoseconds: what a
/// wake-up varies by.
pub const LATENCY_NS_MIN: f64 = 5000.0;

impl Default for Margins {
    fn default() -> Self {
        Self {
            rate: 0.05,
            cpu: 0.10,
            latency: 0.10,
        }
    }
}

impl Margins {
    /// Returns the relative difference that matters of numbers of this unit that are about `value`.
    pub fn of(&self, unit: Unit, value: f64) -> f64 {
        match unit {
            Unit::Nanoseconds => self.latency.max(LATENCY_NS_MIN / value.max(1.0)),
            Unit::Cpus => self.cpu,
            _ => self.rate,
        }
    }

    /// Whether nobody asked for others.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
