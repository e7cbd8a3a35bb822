//! Why a trial may not be averaged: what happened, as types. Words are made where they are shown.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{FlowId, HostName};
use crate::unit::Nanos;
use crate::workload::Setting;

/// Why a trial may not be averaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The user ended it before it had begun to count, or one of several trials.
    Interrupted,
    /// A host did not do its part.
    Host {
        /// The host.
        host: HostName,
        /// In which way.
        failure: HostFailure,
        /// What it, or the way to it, said.
        words: String,
    },
    /// Flows that were connected did not reach the server's trial.
    FlowsMissing {
        /// The server.
        host: HostName,
        /// How many.
        missing: u32,
    },
    /// The hosts did not hand in their results in time.
    Overdue,
    /// A host granted less than the level that the cell stands for.
    Capped {
        /// The host.
        host: HostName,
        /// What was asked for, granted, and by what it was capped.
        setting: Box<Setting>,
    },
    /// Flows ended before the drain phase did.
    EndedEarly {
        /// How many ends.
        ends: usize,
        /// Of how many.
        of: usize,
        /// The first of them.
        flow: FlowId,
        /// Its host.
        host: HostName,
        /// What its end was told.
        words: String,
    },
    /// A host has no reading at an edge of the window.
    Unread {
        /// The host.
        host: HostName,
        /// The edge.
        edge: Edge,
    },
    /// A host read an edge of the window more than a tenth of it late.
    ReadLate {
        /// The host.
        host: HostName,
        /// The edge.
        edge: Edge,
        /// How late.
        late: Nanos,
    },
    /// Its numbers themselves say so, or a bundle does, in these words.
    Told(String),
}

/// In which way a host did not do its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostFailure {
    /// It does not answer: it may be gone.
    Lost,
    /// It refuses what was asked of it, and will do so again.
    Refused,
    /// It got its instants when the window had begun; with more notice it would not have.
    Late,
    /// It tried and failed.
    Failed,
}

/// An edge of the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edge {
    /// Where counting begins.
    Begin,
    /// Where it ends.
    End,
}

impl Reason {
    /// Returns the way in which a host failed, if that is the reason.
    pub fn host_failure(&self) -> Option<HostFailure> {
        match self {
            Self::Host { failure, .. } => Some(*failure),
            _ => None,
        }
    }

    /// Returns the host that may be gone, if that is the reason.
    pub fn lost_host(&self) -> Option<&HostName> {
        match self {
            Self::Host {
                host,
                failure: HostFailure::Lost,
                ..
            } => Some(host),
            _ => None,
        }
    }

    /// Returns whether the trial would fail for it again.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Host { failure, .. } => *failure == HostFailure::Refused,
            Self::Capped { .. } => true,
            _ => false,
        }
    }
}

/// Returns an error's text with those of its causes.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Begin => "begin",
            Self::End => "end",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Host { host, words, .. } => write!(f, "host {host}: {words}"),
            Self::FlowsMissing { host, missing } => {
                write!(f, "host {host}: {missing} flows have not arrived")
            }
            Self::Overdue => f.write_str("the hosts did not hand in their results in time"),
            Self::Capped { host, setting } => {
                let or_unknown = |text: &Option<String>| text.clone().unwrap_or("?".to_owned());
                write!(
                    f,
                    "{} of {} was asked for, {} granted on {host}: capped by {}",
                    setting.name,
                    or_unknown(&setting.requested),
                    or_unknown(&setting.granted),
                    or_unknown(&setting.capped_by),
                )
            }
            Self::EndedEarly {
                ends,
                of,
                flow,
                host,
                words,
            } => write!(
                f,
                "{ends} of {of} flow ends ended early, flow {} on {host} since {words}",
                flow.0
            ),
            Self::Unread { host, edge } => {
                write!(f, "host {host} has no reading at the {edge} of the window")
            }
            Self::ReadLate { host, edge, late } => write!(
                f,
                "host {host} read the {edge} of the window {late} late, more than a tenth of it"
            ),
            Self::Told(words) => f.write_str(words),
        }
    }
}

/// As a document has it: its words.
impl Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::Told)
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Self {
        Self::Told(words.to_owned())
    }
}

impl From<String> for Reason {
    fn from(words: String) -> Self {
        Self::Told(words)
    }
}
