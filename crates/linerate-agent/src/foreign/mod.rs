//! Programs that speak other protocols than ours.
//!
//! Their clients come in on the agent's own port. Their servers are put behind the trait by which a
//! controller asks an agent, so that plan, record, analysis and report are what they are for any
//! run: one side is observed, the other is what the foreign program says it counted.
//!
//! What they say is decoded by `linerate-compat`; here are the sockets, the limits and the load.

/// Clients of other programs at the host's desk.
mod guest;
/// Clients of iperf3.
pub(crate) mod iperf3;
/// iperf3's server.
pub mod iperf3_peer;
/// Clients of netperf.
pub(crate) mod netperf;
/// netperf's server.
pub mod netperf_peer;
/// A server of another program in the place of an agent.
pub(crate) mod peer;

/// What netperf is called in messages and records.
pub const NETPERF: &str = "netperf";
