//! Codecs of foreign protocols: what other programs say on the wire, as functions of bytes.
//!
//! [`iperf3`] holds the protocol of iperf3, for both roles: its messages, its state machines, its
//! authentication and its documents. [`netperf`] has the control messages of netperf. Whoever owns the sockets hands in what arrived and does what the
//! machines say; nothing here reads a socket, a file, a clock or a source of randomness. Time, bytes
//! and random bytes come in as arguments.
//!
//! What comes from the other end is never trusted: every length has a limit, every decoder takes
//! slices that are cut anywhere, and the same bytes give the same answer however they are cut
//! (`tests/fuzz.rs`).
//!
//! ```
//! use linerate_compat::iperf3::{Parameters, ServerAction, ServerMachine, frame};
//!
//! let (mut server, said) = ServerMachine::new(0);
//! assert!(matches!(&said[..], [ServerAction::Send(bytes)] if bytes == &[9]));
//!
//! let text = br#"{"tcp":true,"omit":0,"time":1,"parallel":2,"len":131072}"#;
//! let said = server.handle_bytes(0, &frame::encode(text));
//! let [ServerAction::Decide(parameters)] = &said[..] else { panic!("{said:?}") };
//! assert_eq!(parameters.parallel, 2);
//! # let _: &Parameters = parameters;
//! ```

/// The protocol of iperf3.
pub mod iperf3;
/// The control messages of netperf.
pub mod netperf;
