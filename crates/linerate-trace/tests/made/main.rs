//! Captures made by hand or simulated, whose truth is known: what is said of them.

/// Captures made by hand.
#[path = "../common/mod.rs"]
mod common;

mod agreement;
mod both;
mod captures;
mod claims;
mod connection;
mod datagrams;
mod evidence;
mod filters;
mod lookalikes;
mod page;
mod rows;
mod simulation;
mod truth;
