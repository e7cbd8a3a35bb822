//! A network of hosts on this machine: namespaces, a switch, links with rate, delay and loss.
//!
//! For measurements without a second machine, and for tests with a known truth. Everything goes
//! through netlink and system calls: no `ip`, `tc` or `iptables` is run or needed. It works as
//! root, and as an ordinary user where user namespaces are allowed.
//!
//! This crate changes nothing outside the namespaces that it made. Whatever happens to the
//! process that holds a lab, the kernel takes the lab down with it: hosts are process-id
//! namespaces that end with their maker, and devices live in namespaces that nobody else holds.
//!
//! ```no_run
//! use linerate_lab::{Lab, LabSpec, enter};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // First thing in main, while there is one thread: no way back.
//!     let entered = enter()?;
//!     let lab = Lab::up(&LabSpec::study_default(5), &entered)?;
//!     let server = lab.hosts()[0].data_address.to_string();
//!     lab.command("client1", "ping")?.args(["-c1", &server]).status()?;
//!     lab.down()?;
//!     Ok(())
//! }
//! ```
//!
//! # How to read it
//!
//! A [`LabSpec`] says what is wanted. [`enter()`] moves this process out of the machine's
//! network; it becomes the switch. [`Lab::up`] starts the hosts (`keeper`), lays the cables
//! (`network`) with their rate ([`shape`]) and, where a link does more than limit, puts a [`relay`]
//! into it. [`named`] keeps labs up for people. `sys` holds the system calls.

/// What a lab shall look like, with its limits.
pub mod spec;

/// Labs with a name.
pub mod preset;

/// Leaving the machine's network.
pub mod enter;

/// A lab that is up.
pub mod lab;

/// The thread that makes the hosts and with which they end.
mod keeper;

/// The cables: devices, addresses and filters.
pub mod network;

/// The rate of a wire as settings of the token bucket filter.
pub mod shape;

/// Delay, jitter, loss, duplicates, reordering: frames pass through this process.
pub mod relay;

/// Labs with names, which stay up by themselves.
pub mod named;

/// What can go wrong, with the next step.
pub mod error;

/// The system calls: the only place with `unsafe`.
mod sys;

pub use enter::{Entered, enter};
pub use error::LabError;
pub use lab::{Lab, LabHost};
pub use preset::Preset;
pub use relay::RelayCount;
pub use spec::{HostSpec, LabSpec, LinkSpec, SpecError, UpSpec, Way};
