//! Exit codes and failures.

use std::fmt;

/// How a command ended; each has an exit code of its own, documented in docs/guide/exit-codes.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Ok,
    /// It could not be done.
    Failed,
    /// The command line or a document asks for something impossible.
    Usage,
    /// Measured, but not to be trusted: implausible, generator saturated, too many invalid trials.
    Untrustworthy,
    /// Interrupted; what was measured is kept.
    Interrupted,
    /// A program run in a lab host ended with this code.
    Program(u8),
}

impl Outcome {
    /// Returns the exit code.
    pub fn code(self) -> u8 {
        match self {
            Outcome::Ok => 0,
            Outcome::Failed => 1,
            Outcome::Usage => 2,
            Outcome::Untrustworthy => 3,
            Outcome::Interrupted => 130,
            Outcome::Program(code) => code,
        }
    }
}

/// A failure with its exit code and what to do next.
#[derive(Debug)]
pub struct Failure {
    /// The exit code's meaning.
    pub outcome: Outcome,
    /// What failed, with its causes.
    pub error: anyhow::Error,
    /// What the user can do about it.
    pub next: Option<String>,
}

/// The result of a command.
pub type CmdResult<T = Outcome> = Result<T, Failure>;

impl Failure {
    /// Returns a failure to do what was asked.
    pub fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self {
            outcome: Outcome::Failed,
            error: error.into(),
            next: None,
        }
    }

    /// Returns a refusal of what was asked.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self {
            outcome: Outcome::Usage,
            error: error.into(),
            next: None,
        }
    }

    /// Adds what the user can do about it.
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::failed(error)
    }
}
