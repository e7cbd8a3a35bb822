//! One host's part in a trial, and the API by which a controller asks for it.
//!
//! An agent admits a run, connects or accepts the flows of one trial after another, drives them
//! with the engine, reads the host with the observers, and hands back samples and results. It
//! knows nothing of plans, stores or analysis, and decides nothing: every instant and every
//! socket option comes with the assignment.
//!
//! Two ways in, behind one trait ([`api::Agent`]): [`api::client::HttpAgent`] speaks to a
//! `linerate serve` elsewhere, [`LocalAgent`] calls the same core in this process.

/// Who may do what: tokens, scopes, networks.
pub mod access;
/// The types, the trait, the HTTP client and the OpenAPI document.
pub mod api;
/// What an agent gives up that it does not need.
pub mod confine;
/// The host's part itself: flows, engine, observers, one thread a trial.
mod core;
/// Files of ours, and of secrets.
pub mod draft;
/// Programs that speak other protocols: their clients, and their servers in the place of an agent.
pub mod foreign;
/// What callers without the token may have under way in all.
pub mod limits;
/// What is told to those who run the agent.
pub mod log;
/// The listener: one port for control and data.
pub mod serve;
/// State machines without I/O: who may use the host, and how far a trial has come.
pub mod session;
/// TLS on control connections: certificates, what agents showed before, handshakes.
pub mod tls;

mod local;
/// Locks.
mod sync;
/// A datagram that starts trials.
mod trigger;

pub use crate::core::{AgentConfig, Core, Lacking, check_here, try_out};
pub use linerate_engine::{
    connection_mtu_bytes, frugal_heap, give_back_text, map_single_pages, read_text_ahead,
    route_mtu_bytes,
};
pub use local::LocalAgent;
