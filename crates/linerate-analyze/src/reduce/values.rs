//! Responses by name, of whatever has them: one trial, or a cell with the means of its trials.

use std::ops::{Add, Mul, Sub};

use super::{Outcome, Responses};

/// How much of something there was, where it was read. A comparison holds only for what was read, in whatever direction:
/// what is absent speaks neither for a claim nor against it. So there is no order, and no number for what is absent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount(Option<f64>);

impl Amount {
    /// Returns it as a number, if it was read.
    pub(crate) fn known(self) -> Option<f64> {
        self.0
    }

    /// Returns what there was at the least, of what cannot be less than none: for sums that have to reach something.
    pub(crate) fn least(self) -> f64 {
        self.0.unwrap_or(0.0)
    }

    /// Returns whether it is known to be `least` or more.
    pub(crate) fn reaches(self, least: f64) -> bool {
        self.0.is_some_and(|value| value >= least)
    }

    /// Returns whether it is known to be more than `bound`.
    pub(crate) fn exceeds(self, bound: f64) -> bool {
        self.0.is_some_and(|value| value > bound)
    }

    /// Returns whether it is known to be `most` or less.
    pub(crate) fn stays_within(self, most: f64) -> bool {
        self.0.is_some_and(|value| value <= most)
    }

    /// Returns whether it is known to be less than `bound`.
    pub(crate) fn stays_below(self, bound: f64) -> bool {
        self.0.is_some_and(|value| value < bound)
    }
}

impl From<Option<f64>> for Amount {
    fn from(value: Option<f64>) -> Self {
        Self(value)
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.zip(other.0).map(|(one, other)| one + other))
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.zip(other.0).map(|(one, other)| one - other))
    }
}

impl Mul<f64> for Amount {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self(self.0.map(|value| value * times))
    }
}

/// What has responses by name. A threshold holds only for what was read.
pub(crate) trait Values {
    /// Returns the value of a response, if it was read.
    fn value(&self, response: &str) -> Option<f64>;

    /// Returns how much of something there was, to be compared.
    fn amount(&self, response: &str) -> Amount {
        Amount(self.value(response))
    }

    /// Returns whether a response is known to be `least` or more.
    fn reaches(&self, response: &str, least: f64) -> bool {
        self.amount(response).reaches(least)
    }

    /// Returns whether a response is known to be more than `bound`.
    fn exceeds(&self, response: &str, bound: f64) -> bool {
        self.amount(response).exceeds(bound)
    }

    /// Returns whether a response is known to be `most` or less.
    fn stays_within(&self, response: &str, most: f64) -> bool {
        self.amount(response).stays_within(most)
    }

    /// Returns whether a response is known to be less than `bound`.
    fn stays_below(&self, response: &str, bound: f64) -> bool {
        self.amount(response).stays_below(bound)
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
