//! Responses by name, of whatever has them: one trial, or a cell with the means of its trials.

use super::{Outcome, Responses};

/// What has responses by name. A threshold holds only for what was read.
pub(crate) trait Values {
    /// Returns the value of a response, if it was read.
    fn value(&self, response: &str) -> Option<f64>;

    /// Returns how much of something there was, none where it was not read.
    fn amount(&self, response: &str) -> f64 {
        self.value(response).unwrap_or(0.0)
    }

    /// Returns whether a response is known to be `least` or more.
    fn reaches(&self, response: &str, least: f64) -> bool {
        self.value(response).is_some_and(|value| value >= least)
    }

    /// Returns whether a response is known to be more than `bound`.
    fn exceeds(&self, response: &str, bound: f64) -> bool {
        self.value(response).is_some_and(|value| value > bound)
    }

    /// Returns whether a response is known to be `most` or less.
    fn stays_within(&self, response: &str, most: f64) -> bool {
        self.value(response).is_some_and(|value| value <= most)
    }

    /// Returns whether a response is known to be less than `bound`.
    fn stays_below(&self, response: &str, bound: f64) -> bool {
        self.value(response).is_some_and(|value| value < bound)
    }
}

impl Values for Outcome {
    fn value(&self, response: &str) -> Option<f64> {
        Outcome::value(self, response)
    }
}

impl Values for Responses {
    fn value(&self, response: &str) -> Option<f64> {
        self.0.get(response).map(|response| response.value)
    }
}
