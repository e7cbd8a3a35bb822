//! Kinds of work that cost time, and whose cost it is.

use serde::Serialize;

/// A kind of work that costs time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Packets of the flows, with payload and without.
    Packet,
    /// Payload, in KiB.
    #[serde(rename = "kib")]
    KiB,
    /// Send and receive calls.
    Call,
    /// Times that a worker was put on a CPU.
    WakeUp,
    /// Times that a sender's qdisc held packets back for its rate, and set a timer.
    HeldBack,
    /// Connections made and closed.
    Connection,
    /// What is there without traffic: CPUs.
    Always,
}

/// The kinds, in the order of the work of a row.
pub(super) const KINDS: [Kind; 7] = [
    Kind::Packet,
    Kind::KiB,
    Kind::Call,
    Kind::WakeUp,
    Kind::HeldBack,
    Kind::Connection,
    Kind::Always,
];

impl Kind {
    /// Returns what one of it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::KiB => "KiB of payload",
            Self::Call => "call",
            Self::WakeUp => "wake-up of a worker",
            Self::HeldBack => "packet held back for a rate",
            Self::Connection => "connection",
            Self::Always => "always",
        }
    }
}

/// Whose cost it is, and of which traffic: a worker of a stream mostly runs when there is something to do, one of an exchange is
/// woken for it, so that the same work has other prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Streams: that of both ends, which share a machine.
    Streams,
    /// Streams: the server's, while it receives.
    Receives,
    /// Streams: the server's, while it sends.
    Sends,
    /// Exchanges and connections: that of both ends, which share a machine.
    Exchanges,
    /// Exchanges and connections: the server's.
    Answers,
}

impl Side {
    /// Returns whose cost it is, in words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Streams => "streams, both ends on one machine",
            Self::Receives => "streams that the server receives",
            Self::Sends => "streams that the server sends",
            Self::Exchanges => "exchanges, both ends on one machine",
            Self::Answers => "exchanges that the server answers",
        }
    }

    /// Returns whether it is that of both ends.
    pub(super) fn is_of_both(self) -> bool {
        matches!(self, Self::Streams | Self::Exchanges)
    }

    /// Returns whether it is that of streams.
    pub(super) fn is_of_streams(self) -> bool {
        !matches!(self, Self::Exchanges | Self::Answers)
    }
}
