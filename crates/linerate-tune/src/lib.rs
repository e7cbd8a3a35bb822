//! Changes a host, and undoes it.
//!
//! A knob ([`linerate_model::knob`]) is read, written, read back, and put back when the trial that asked for
//! it is over. A write that was taken and did nothing (as `net.core` in a namespace does) is an error: what
//! is measured afterwards would be called what it is not. What somebody else changed meanwhile is not put
//! back over.
//!
//! Only hosts of a lab are changed so far ([`is_own_network`]): what was there before a change is kept in
//! memory, and a lab's host goes with its lab. Nothing here decides whether to change something.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use linerate_model::experiment::{Cell, Factor, Level};
//! use linerate_tune::{Target, change};
//!
//! # fn main() -> Result<(), linerate_tune::TuneError> {
//! let host = Target { root: Path::new("/"), device: Some("eth0"), cpus: &[0, 1] };
//! let changed = change(&host, &Cell::from([(Factor::Gro, Level::Switch(false))]))?;
//! for setting in changed.settings() {
//!     println!("{} = {:?}", setting.name, setting.granted);
//! }
//! # Ok(())
//! # }
//! ```

/// The host whose knobs are meant.
mod target;

/// Why a host could not be changed.
mod error;

/// What is changed for a while.
mod change;

/// Where a knob stands on a host, and its value as text.
mod spot;

/// The system calls: the only place with `unsafe`.
mod sys;

pub use change::{Changed, change, try_out};
pub use error::TuneError;
pub use target::{Target, is_own_network};
