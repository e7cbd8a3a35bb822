//! Identifiers of runs, trials, flows and hosts.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One execution of a plan, as text that sorts by time: `20261120T125330Z-1a2b3c4d`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct RunId(pub String);

/// A trial's place in its plan, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct TrialId(pub u32);

/// One transport conversation inside a trial, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct FlowId(pub u32);

/// The name of a host inside a run: `server`, `client1`.
///
/// Cheap to clone: every sample carries it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct HostName(pub Arc<str>);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Trials that [`TrialId::list`] names.
const TRIALS_LISTED_MAX: usize = 8;

impl TrialId {
    /// Returns trials in words: `trial #3`, `trials #3, #5`, `trials #1, …, #8 and 12 more`.
    pub fn list(trials: &[Self]) -> String {
        let listed = trials.iter().take(TRIALS_LISTED_MAX);
        let listed: Vec<String> = listed.map(Self::to_string).collect();
        let more = match trials.len() - listed.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let word = if trials.len() == 1 { "trial" } else { "trials" };
        format!("{word} {}{more}", listed.join(", "))
    }
}

impl fmt::Display for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl From<&str> for HostName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<String> for HostName {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}
