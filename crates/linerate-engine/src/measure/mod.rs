//! What is counted while payload moves.
//!
//! The workers write, the sampler reads; they meet only in [`counters::Counters`].

/// How instants are read.
pub(crate) mod clock;
/// Counters of one flow: one writer, any reader.
pub(crate) mod counters;
/// Counters of datagrams.
pub(crate) mod datagrams;
/// The longest wait between two receive calls.
pub(crate) mod gap;
/// Latency of transactions.
pub(crate) mod latency;
/// How fast this host copies memory.
pub(crate) mod memory;
/// struct tcp_info, whatever its length.
pub(crate) mod tcp_info;

/// The part of a trial that is counted, on this host's CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Its begin.
    pub(crate) begin_ns: u64,
    /// Its end.
    pub(crate) end_ns: u64,
}
