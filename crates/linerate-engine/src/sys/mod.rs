//! The only place of this crate that talks to the kernel by hand; all `unsafe` lives here.
//!
//! Each file wraps one kernel interface and adds no policy.

/// What wakes a thread that waits for sockets.
pub(crate) mod bell;
/// Page-aligned memory for payload.
pub(crate) mod buffer;
/// Completions of connections that come and go.
pub(crate) mod call_ring;
/// CLOCK_MONOTONIC and absolute sleep.
pub(crate) mod clock;
/// UDP sockets, and calls that move several datagrams.
pub(crate) mod datagram;
/// Readiness of many sockets.
pub(crate) mod epoll;
/// Filters on sockets.
pub(crate) mod filter;
/// The allocator of the C library.
pub(crate) mod heap;
/// What packets of a path may hold.
pub(crate) mod mtu;
/// Memory that the kernel may go on reading after a call.
pub(crate) mod pages;
/// The kernel's way to an address.
pub(crate) mod route;
/// Sockets, their options and the calls that move payload.
pub(crate) mod socket;
/// Payload from a pipe or a file.
pub(crate) mod splice;
/// The pages of programs and libraries that are mapped.
pub(crate) mod text;
/// What a thread can say and set about itself.
pub(crate) mod thread;
/// Stream sockets of the Unix domain.
pub(crate) mod unix;
/// Completions of many sockets.
pub(crate) mod uring;
/// Frames past the sockets.
pub(crate) mod xdp;
/// MSG_ZEROCOPY and its completions.
pub(crate) mod zerocopy;
