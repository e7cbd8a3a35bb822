//! Labs for people: they have a name, stay up by themselves, and any shell can use them.
//!
//! A *holder* process owns each lab. `up` starts it (the program runs itself again and calls
//! `hold`), and what others need to know lies in a `State` file:
//!
//! ```text
//! /run/linerate/lab/NAME/state.json              root
//! $XDG_RUNTIME_DIR/linerate/lab/NAME/state.json  a user
//! /tmp/linerate-UID/lab/NAME/state.json          a user without a runtime directory
//! ```
//!
//! The kernel ends the hosts when the holder ends, however it ends; only the file can stay
//! behind, and `up` and `down_all` remove it.

/// Ending the processes of a lab.
mod end;
/// The process that owns a lab.
mod holder;
/// The directory they are in.
mod place;
/// The labs of one user, and their state files.
mod registry;
/// What a holder writes down.
mod state;
/// Running a program in a host of a named lab.
mod visit;

pub use end::DownError;
pub use holder::{HoldError, HolderCommand, UpError, hold};
pub use registry::{Registry, RegistryError};
pub use state::{ProcessKey, State, StateHost};
pub use visit::VisitError;

use std::ffi::OsString;
use std::process::ExitStatus;

use crate::spec::LabSpec;

/// Brings up the lab of `spec` and leaves it up; `holder` is how this program calls [`hold`].
pub fn up(spec: &LabSpec, holder: &HolderCommand) -> Result<State, UpError> {
    Registry::of_user()?.up(spec, holder)
}

/// Returns all labs of this user, the crashed ones included, and why others cannot be read.
pub fn list() -> Result<(Vec<State>, Vec<RegistryError>), RegistryError> {
    Registry::of_user()?.list()
}

/// Runs a program in a host of lab `name` and returns how it ended.
///
/// `words` are the program and its arguments, without any the user's shell. Input, output and working directory are the
/// caller's; Ctrl-C goes to the program.
pub fn exec(name: &str, host: &str, words: &[OsString]) -> Result<ExitStatus, VisitError> {
    Registry::of_user()?.exec(name, host, words)
}

/// Takes down lab `name` and waits until nothing of it is left.
pub fn down(name: &str) -> Result<(), DownError> {
    Registry::of_user()?.down(name)
}

/// Takes down all labs of this user, and removes what crashed ones left; returns their names.
pub fn down_all() -> Result<Vec<String>, DownError> {
    Registry::of_user()?.down_all()
}
