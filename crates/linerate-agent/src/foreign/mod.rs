//! Clients that speak other protocols than ours, on the same port.
//!
//! What they say is decoded by `linerate-compat`; here are the sockets, the limits and the load.

/// Clients of iperf3.
pub(crate) mod iperf3;
