//! The protocol of iperf3, as spoken by the releases from 3.1 to 3.21.
//!
//! A control connection carries a `Cookie`, `State` bytes and JSON texts in `frame`s; data
//! connections begin with the same cookie, streams of datagrams with a `datagram::HELLO`.
//! `ServerMachine` and `ClientMachine` hold the order of things. Both take bytes and events and
//! answer with actions; both have a deadline at every moment.

/// Passwords: RSA tokens and the file of users.
pub mod auth;
/// The client's side of a control connection.
mod client;
/// What names a test on all its connections.
mod cookie;
/// Streams of datagrams: how they are opened, and what share of them is lost.
pub mod datagram;
/// The numbers of errors.
mod error;
/// Texts with their length before them.
pub mod frame;
/// The documents that iperf3 prints: `-J`, `--json-stream`, and a server's text.
pub mod json;
/// Numbers in JSON as other programs write them.
mod number;
/// What the client asks for.
mod parameters;
/// What one end measured, as the other is told.
mod results;
/// The server's side of a control connection.
mod server;
/// The bytes that move a test along.
mod state;
/// Numbers of streams.
mod stream_id;

pub use client::{ClientAction, ClientEnding, ClientMachine};
pub use cookie::{COOKIE_BYTES, Cookie};
pub use error::Code;
pub use parameters::{Direction, Gso, Parameters, ParametersError, Protocol};
pub use results::{CpuPercent, Results, ResultsError, ServerOutput, StreamResult};
pub use server::{BUSY, ServerAction, ServerEnding, ServerMachine, refusal};
pub use state::State;
pub use stream_id::StreamId;

/// A second, in nanoseconds.
const S: u64 = 1_000_000_000;
