//! The engine over real loopback sockets.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

/// Both ends count the same bytes, whatever the workload.
mod agree;
/// Bulk payload in every manner.
mod bulk;
/// What goes wrong: peers that vanish, aborts, refusals.
mod datagrams;
mod endings;
/// Servers of netperf.
mod netperf;
/// What the sampler reads and what the results say.
mod readings;
/// Opening pairs of flows and running them.
mod rig;
/// Options as requested, granted and effective.
mod settings;
