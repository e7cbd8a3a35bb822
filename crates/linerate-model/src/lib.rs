//! The nouns of linerate: what every other room talks about.
//!
//! This crate holds plain values: units, identifiers, the metric catalogue, wire arithmetic and
//! the documents that are stored or sent. It touches no file, socket, clock, environment or
//! source of randomness, so everything here is a function of its arguments.
//!
//! ```
//! use linerate_model::{unit::BitsPerSec, wire::Wire};
//! let wire = Wire { rate: BitsPerSec(1e9), mtu_bytes: 1500, tcp_option_bytes: 0, ipv6: false, udp: false };
//! assert_eq!(wire.payload_limit_at(1460).0.round(), 949_284_785.0);
//! ```

/// What is computed from a run, ready to be drawn.
pub mod analysis;
/// The answer of a run: verdict, headline numbers, what limits each workload.
pub mod answer;
/// Captures of trials: what one may take, and what came of it.
pub mod capture;
/// Runs side by side, or the levels of one run.
pub mod compared;
/// What a response is held against.
pub mod condition;
/// What became of datagrams, and where those that are missing were lost.
pub mod datagram;
/// A question as a document: factors, levels, design.
pub mod experiment;
/// Names of the facts that a host has for each queue and each interrupt.
pub mod fact;
/// Claims with effect, interval and evidence.
pub mod finding;
/// What to know of a trial although it may be averaged.
pub mod flag;
/// A fleet of hosts, and who puts agents there.
pub mod fleet;
/// Fractions of two-level designs, and what they cannot tell apart.
pub mod fraction;
/// Traffic that goes beside other traffic in one trial.
pub mod group;
/// What a group of traffic is called.
mod group_name;
/// Bytes as hexadecimal digits.
pub mod hex;
/// Latency distributions with bounded relative error.
pub mod histogram;
/// What is known of a host without varying it, and what could not be read.
pub mod host;
/// Identifiers of runs, trials, flows and hosts.
pub mod id;
/// The catalogue of knobs: host-wide settings that can be varied and put back.
pub mod knob;
/// What a lab was asked to make of a link.
pub mod lab_link;

/// The limiters: what each is called, and what raises a number that it holds down.
pub mod limiter;
/// How traffic is made: transport, system calls, rate, sizes.
pub mod manner;
/// How much has to differ to matter.
pub mod margin;
/// The catalogue of everything that is sampled.
pub mod metric;
/// Choices that have words.
mod named;
/// Networks: an address, and how many of its first bits count.
pub mod network;
/// How numbers are written for people: digits, intervals, units.
pub mod number;
/// What one trial found.
pub mod outcome;
/// Numbers in as few bytes as they need.
mod packed;
/// Which hosts measure with which.
pub mod pairs;
/// The catalogue of a workload's parameters.
pub mod parameter;
/// The immutable ordered list of trials.
pub mod plan;
/// Looks at a host that cost too much to be taken in every trial.
pub mod probe;
/// Where the CPUs of a host were, found by looking again and again.
pub mod profile;
/// Why a trial may not be averaged.
pub mod reason;
/// The catalogue of responses: what an experiment can explain.
pub mod response;
/// What one execution of a plan recorded.
pub mod run;
/// One value at one instant, and what it is about.
pub mod sample;
/// Samples in the order in which they were read, to be handed over.
pub mod sample_log;
/// Many samples in little memory.
pub mod samples;
/// Settings of a flow, shared where flows have the same.
pub mod setting;
/// Traffic that is due one by one, and what is missing of it.
pub mod shortfall;
/// One TCP or UDP socket of a host at one instant.
pub mod socket;
/// The steps of an exchange.
pub mod step;
/// Prose on lines of a terminal.
pub mod text;
/// What captures come to, ready to be drawn.
pub mod trace_page;
/// Units with their prefixes: bytes, bits per second, nanoseconds.
pub mod unit;
/// Framing overhead, line-rate payload, bandwidth-delay product.
pub mod wire;
/// The traffic wanted between hosts.
pub mod workload;

pub use id::{FlowId, HostName, RunId, TrialId};
pub use unit::{BitsPerSec, Bytes, Nanos};
