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
    /// Connections made and closed.
    Connection,
    /// What is there without traffic: CPUs.
    Always,
}

/// The kinds, in the order of the work of a row.
pub(super) const KINDS: [Kind; 6] = [
    Kind::Packet,
    Kind::KiB,
    Kind::Call,
    Kind::WakeUp,
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
            Self::Connection => "connection",
            Self::Always => "always",
        }
    }
}

/// Whose cost it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Both ends, which share a machine.
    BothEnds,
    /// The server's, while it receives.
    Receives,
    /// The server's, while it sends.
    Sends,
}

impl Side {
    /// Returns whose cost it is, in words.
    pub fn title(self) -> &'static str {
        match self {
            Self::BothEnds => "both ends, on one machine",
            Self::Receives => "the server, which receives",
            Self::Sends => "the server, which sends",
        }
    }
}
