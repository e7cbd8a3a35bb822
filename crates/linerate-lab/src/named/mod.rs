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
//! behind, and `up` and `down_all` remove it. Where the file goes first, the holder ends by itself: a lab
//! that cannot be named cannot be removed.

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
