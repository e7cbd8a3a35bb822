//! Claims with effect, interval and evidence.

use serde::Serialize;

use crate::id::TrialId;
use crate::unit::Unit;

/// A number with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// Lower end of the interval; absent with fewer than two replicates.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Confidence of the interval: 0.95.
    pub confidence: f64,
    /// Number of independent values behind it.
    pub n: u32,
    /// Its unit.
    pub unit: Unit,
}

/// What holds a number down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// The link carries what its rate and framing allow.
    LinkRate,
    /// The receiver's window.
    ReceiverWindow,
    /// The sender's buffer.
    SendBuffer,
    /// The congestion window, after loss or by the algorithm's choice.
    CongestionWindow,
    /// Our own worker had no time left.
    Generator,
    /// The round trip: one transaction at a time.
    RoundTrip,
    /// A rate that was asked for, or that TCP's congestion control paces itself at.
    Pacing,
    /// Nagle's algorithm waiting for a delayed acknowledgement.
    NagleDelayedAck,
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Names what limits a number.
    Limiter(Limiter),
    /// The smallest level that reaches the best one.
    Plateau,
    /// A value that follows from measured ones by a formula.
    Derived,
    /// A comparison of two cells.
    Effect,
    /// Something that users expect and that does not happen here.
    Absence,
    /// A reason to trust a number less.
    Caution,
}

/// One measured value that a claim rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// What was measured, in words: "throughput with a 64 KiB buffer".
    pub what: String,
    /// The value.
    pub estimate: Estimate,
    /// The trials it comes from.
    pub trials: Vec<TrialId>,
}

/// At least one piece of evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct EvidenceList(Vec<Evidence>);

impl EvidenceList {
    /// Makes a list of `first` and `more`; there is no way to make an empty one.
    pub fn new(first: Evidence, more: Vec<Evidence>) -> Self {
        let mut list = vec![first];
        list.extend(more);
        Self(list)
    }

    /// Returns the evidence, at least one piece.
    pub fn as_slice(&self) -> &[Evidence] {
        &self.0
    }
}

/// A claim with effect, interval and evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Stable identifier inside a report: `socket-buffer/plateau/1`.
    pub id: String,
    /// The chapter it belongs to, if any.
    pub chapter: Option<u32>,
    /// Its kind.
    pub kind: FindingKind,
    /// The claim, one sentence with its numbers.
    pub claim: String,
    /// Why it is so, and what it means: one to three sentences.
    pub explanation: String,
    /// The size of the effect.
    pub effect: Estimate,
    /// What it rests on.
    pub evidence: EvidenceList,
}

/// What to do about a finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// The finding it follows from.
    pub finding: String,
    /// What to do, one imperative sentence.
    pub action: String,
    /// What that should change, in words with numbers.
    pub predicted: String,
    /// The command or experiment that would confirm it.
    pub confirm: String,
}
