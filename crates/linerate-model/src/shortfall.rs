//! What is missing of traffic: requests of an open loop, connections, a volume, what streams sent.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::number::counted;
use crate::unit::Bytes;

/// Requests of an open loop, in all phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestCount {
    /// Those that were due.
    pub due: u64,
    /// Those of them that were sent.
    pub sent: u64,
}

/// Connections that were made one after another, in all phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConnectionCount {
    /// Those that were made and did what they were for.
    pub made: u64,
    /// Those that failed.
    pub failed: u64,
    /// Why the last of these did.
    pub last_failure: Option<String>,
}

/// What is missing of what was due.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Shortfall {
    /// Requests of an open loop that were not sent.
    Requests(RequestCount),
    /// Connections that failed.
    Connections(ConnectionCount),
    /// A volume that was not sent whole.
    Volume {
        /// What was asked for.
        due: Bytes,
        /// What of it was sent.
        sent: Bytes,
    },
}

/// What senders of streams sent and their receivers did not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unread {
    /// Of how many streams.
    pub streams: usize,
    /// Of how many there were.
    pub of: usize,
    /// How much of all of them.
    pub bytes: Bytes,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { streams, of, bytes } = self;
        write!(
            f,
            "{bytes} that {streams} of {} sent were not read",
            counted(*of, "stream")
        )
    }
}

impl RequestCount {
    /// Returns what is missing, if anything is.
    pub fn shortfall(self) -> Option<Shortfall> {
        (self.sent < self.due).then_some(Shortfall::Requests(self))
    }
}

impl ConnectionCount {
    /// Returns what is missing, if anything is.
    pub fn shortfall(&self) -> Option<Shortfall> {
        (self.failed > 0).then(|| Shortfall::Connections(self.clone()))
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(RequestCount { due, sent }) => {
                let missed = due.saturating_sub(*sent);
                write!(
                    f,
                    "requests: {missed} of {due} that were due were not sent, since responses came \
                     too slowly"
                )
            }
            Self::Connections(ConnectionCount {
                failed,
                last_failure,
                ..
            }) => {
                write!(f, "connections: {failed} failed")?;
                match last_failure {
                    Some(why) => write!(f, ", the last: {why}"),
                    None => Ok(()),
                }
            }
            Self::Volume { due, sent } => {
                write!(f, "volume: {sent} of {due} were sent in the time there was")
            }
        }
    }
}
