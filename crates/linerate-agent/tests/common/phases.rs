//! The phases of a trial, of which agents are not told.

use linerate_model::Nanos;
use linerate_model::experiment::Timing;

/// A second without anything around it.
pub const TIMING: Timing = Timing {
    settle: Nanos(0),
    warm_up: Nanos(0),
    measure: Nanos::from_s(1),
    drain: Nanos(0),
};
