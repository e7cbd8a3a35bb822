//! Traffic that is due one by one, and what is missing of it: requests of an open loop, connections.

use std::fmt;

use serde::{Deserialize, Serialize};

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
pub enum Shortfall {
    /// Requests of an open loop that were not sent.
    Requests(RequestCount),
    /// Connections that failed.
    Connections(ConnectionCount),
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
        }
    }
}
