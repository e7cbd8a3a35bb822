//! What a lab was asked to make of a host's link, beside its rates.

use serde::{Deserialize, Serialize};

use crate::unit::{BitsPerSec, Bytes, Nanos};

/// The link between a host of a lab and its switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabLink {
    /// How long a frame is on its way to the host.
    pub delay: Nanos,
    /// And from it.
    pub up_delay: Nanos,
    /// How much longer than that at the most, either way.
    pub jitter: Nanos,
    /// The probability that a frame is lost, either way.
    pub loss: f64,
    /// That others overtake it.
    pub reorder: f64,
    /// That it comes twice.
    pub duplicate: f64,
    /// Bytes that wait before the rate towards the host at the most, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Bytes>,
    /// And before that from the host, where more waits there than TCP leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_queue: Option<Bytes>,
}

impl LabLink {
    /// Returns the round trip that the delays of two links make: every packet crosses both, there and back.
    pub fn round_trip(&self, other: &Self) -> Nanos {
        Nanos(self.delay.0 + self.up_delay.0 + other.delay.0 + other.up_delay.0)
    }
}

/// Returns how long a frame waits in a queue of `bytes` that is full, before `rate`.
pub fn full_queue_time(bytes: Bytes, rate: BitsPerSec) -> Nanos {
    Nanos((bytes.0 as f64 * 8e9 / rate.0) as u64)
}
