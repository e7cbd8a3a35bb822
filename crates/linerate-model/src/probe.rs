//! How hosts are looked at beyond what every trial shows: how often, and what costs too much to be
//! taken always.

use serde::{Deserialize, Serialize};

use crate::capture::{CaptureOptions, switch_or_options};
use crate::unit::Nanos;

/// Samples a second, 1 to 1000; 10 unless asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "u32", into = "u32")]
pub struct SampleRate(u32);

/// The number is no rate of samples.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a sample rate of {0} Hz, but it must be 1 to 1000")]
pub struct SampleRateError(pub u32);

impl SampleRate {
    /// Returns the time between samples.
    pub fn interval(self) -> Nanos {
        Nanos(1_000_000_000 / u64::from(self.0))
    }
}

impl TryFrom<u32> for SampleRate {
    type Error = SampleRateError;

    fn try_from(hz: u32) -> Result<Self, Self::Error> {
        match hz {
            1..=1000 => Ok(Self(hz)),
            _ => Err(SampleRateError(hz)),
        }
    }
}

impl From<SampleRate> for u32 {
    fn from(rate: SampleRate) -> Self {
        rate.0
    }
}

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
    /// How often everything is sampled.
    pub sample_rate: Option<SampleRate>,
    /// Captures the headers of the trial's own traffic: `true`, or limits.
    #[serde(
        deserialize_with = "switch_or_options",
        skip_serializing_if = "Option::is_none"
    )]
    pub capture: Option<CaptureOptions>,
}

impl Probes {
    /// Returns whether nothing is asked for.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns all of `self` and of `other`, whose sample rate and limits of a capture are taken
    /// where it has any.
    pub fn and(self, other: Self) -> Self {
        Self {
            profile: self.profile || other.profile,
            irq_time: self.irq_time || other.irq_time,
            sample_rate: other.sample_rate.or(self.sample_rate),
            capture: other.capture.or(self.capture),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_1_to_1000_hz() {
        let interval = |hz| SampleRate::try_from(hz).map(SampleRate::interval);
        assert_eq!(interval(1), Ok(Nanos(1_000_000_000)));
        assert_eq!(interval(1000), Ok(Nanos(1_000_000)));
        for hz in [0, 1001] {
            assert_eq!(interval(hz), Err(SampleRateError(hz)));
        }
    }

    #[test]
    fn the_rate_asked_for_later_is_taken() {
        let with = |hz: Option<u32>| Probes {
            sample_rate: hz.and_then(|hz| hz.try_into().ok()),
            ..Probes::default()
        };
        assert_eq!(with(Some(5)).and(with(Some(50))), with(Some(50)));
        assert_eq!(with(Some(5)).and(with(None)), with(Some(5)));
        assert!(with(None).is_none() && !with(Some(5)).is_none());
    }
}
