//! The only place of this crate that talks to the kernel by hand; all `unsafe` lives here.
//!
//! Each file wraps one kernel interface and adds no policy.

/// Page-aligned memory for payload.
pub(crate) mod buffer;
/// CLOCK_MONOTONIC and absolute sleep.
pub(crate) mod clock;
/// Readiness of many sockets.
pub(crate) mod epoll;
/// Sockets, their options and the calls that move payload.
pub(crate) mod socket;
/// What a thread can say and set about itself.
pub(crate) mod thread;
