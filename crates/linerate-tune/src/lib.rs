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
//! use linerate_tune::{Host, change};
//!
//! # fn main() -> Result<(), linerate_tune::TuneError> {
//! let host = Host { root: Path::new("/"), device: Some("eth0"), cpus: &[0, 1] };
//! let changed = change(&host, &Cell::from([(Factor::Gro, Level::Switch(false))]))?;
//! for setting in changed.settings() {
//!     println!("{} = {:?}", setting.name, setting.granted);
//! }
//! # Ok(())
//! # }
//! ```

/// What is changed for a while.
mod change;

/// Where a knob stands on a host, and its value as text.
mod spot;

/// The system calls: the only place with `unsafe`.
mod sys;

pub use change::{Changed, TuneError, change};

use std::path::Path;

/// The host whose knobs are meant.
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    /// The folder that has its `proc` and `sys`.
    pub root: &'a Path,
    /// The device of its data network, where that is known.
    pub device: Option<&'a str>,
    /// The CPUs that received packets may be spread over.
    pub cpus: &'a [u32],
}

/// Returns whether the network namespace that `root` shows is certainly not the machine's first.
///
/// The kernel has `net.core.netdev_budget` in the first only (`net_core_table` in
/// net/core/sysctl_net_core.c), and `net.core.somaxconn` in all. Where it shows both, or none, the answer is no.
pub fn is_own_network(root: &Path) -> bool {
    let has = |name| root.join("proc/sys/net/core").join(name).exists();
    has("somaxconn") && !has("netdev_budget")
}
