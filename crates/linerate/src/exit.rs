//! Exit codes and failures.

use std::fmt;
use std::process::ExitCode;

/// What to do about what a host refuses.
pub const OF_REFUSED: &str =
    "use settings that host supports, or change there what the message names";
/// What to do where too little was measured when it was interrupted.
pub const OF_INTERRUPTED: &str = "let it run longer, or measure for less time with -t";

/// How a command ended; each has an exit code of its own, documented in docs/guide/exit-codes.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Ok,
    /// It could not be done.
    Failed,
    /// The command line or a document asks for something impossible.
    Usage,
    /// Measured, but not to be trusted: implausible, CPUs taken by others, too many invalid trials.
    Untrustworthy,
    /// Worse than the baseline, or than a limit, by more than was allowed.
    Worse,
    /// Interrupted; what was measured is kept.
    Interrupted,
    /// A program run in a lab host ended with this code.
    Program(u8),
}

impl Exit {
    /// Returns the exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Untrustworthy => 3,
            Exit::Worse => 4,
            Exit::Interrupted => 130,
            Exit::Program(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// A failure with its exit code and what to do next.
#[derive(Debug)]
pub struct Failure {
    /// The exit code's meaning.
    pub exit: Exit,
    /// What failed, with its causes.
    pub error: anyhow::Error,
    /// What the user can do about it.
    pub next: Option<String>,
}

/// The result of a command.
pub type CmdResult<T = Exit> = Result<T, Failure>;

impl Failure {
    /// Returns a failure to do what was asked.
    pub fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit: Exit::Failed,
            error: error.into(),
            next: None,
        }
    }

    /// Returns a refusal of what was asked.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit: Exit::Usage,
            ..Self::failed(error)
        }
    }

    /// Adds what the user can do about it.
    pub fn next(self, next: impl Into<String>) -> Self {
        self.maybe(Some(next))
    }

    /// Adds what the user can do about it, where that is known.
    pub fn maybe(self, next: Option<impl Into<String>>) -> Self {
        let next = next.map(Into::into);
        Self { next, ..self }
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
