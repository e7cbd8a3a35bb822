//! What is refused, and how that is said: to the client by a number of the system's, in the log by words.

use linerate_compat::netperf::{Message, refused};
use nix::errno::Errno;

use crate::foreign::NETPERF;

/// A test that is not done, or that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) error: Errno,
    /// What kind of refusal the log counts.
    pub(super) kind: &'static str,
    pub(super) reason: String,
}

impl Refused {
    /// Returns what is said of a test that cannot be done.
    pub(super) fn new(error: Errno, reason: impl Into<String>) -> Self {
        Self {
            error,
            kind: NETPERF,
            reason: reason.into(),
        }
    }

    /// Returns what is said where others have what it takes.
    pub(super) fn busy(reason: impl Into<String>) -> Self {
        Self {
            kind: "busy",
            ..Self::new(Errno::EBUSY, reason)
        }
    }

    /// Returns what the client gets.
    pub(super) fn message(&self) -> Message {
        refused(self.error as u32)
    }
}
