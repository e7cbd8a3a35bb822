//! Claims with effect, interval and evidence.

use serde::{Deserialize, Serialize};

use crate::id::TrialId;
use crate::limiter::Limiter;
use crate::number;
use crate::unit::Unit;

/// A number with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// Lower end of the interval; absent with fewer than two replicates.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Confidence of the interval: 0.95; of the range of a few values less.
    pub confidence: f64,
    /// Number of independent values behind it.
    pub n: u32,
    /// Its unit.
    pub unit: Unit,
}

/// Confidence of all intervals.
pub const CONFIDENCE: f64 = 0.95;

/// Confidence of the range of two values.
pub const RANGE_CONFIDENCE: f64 = 0.5;

/// Returns the confidence of the range of `n` values: it holds the median of what they are drawn from with
/// 1 − 2 · (1/2)ⁿ.
pub fn range_confidence(n: u32) -> f64 {
    1.0 - 2.0 * 0.5_f64.powf(f64::from(n))
}

impl Estimate {
    /// Returns one value without an interval.
    pub fn point(value: f64, unit: Unit) -> Self {
        Self {
            value,
            low: None,
            high: None,
            confidence: CONFIDENCE,
            n: 1,
            unit,
        }
    }

    /// Returns it with `value` done to the point and to both ends, in `unit`.
    pub fn map(self, unit: Unit, value: impl Fn(f64) -> f64) -> Self {
        Self {
            value: value(self.value),
            low: self.low.map(&value),
            high: self.high.map(&value),
            unit,
            ..self
        }
    }

    /// Tells whether its ends are the least and the most of a few values and no interval.
    pub fn is_range(&self) -> bool {
        let confidence = range_confidence(self.n);
        confidence < CONFIDENCE && self.n >= 2 && self.confidence == confidence
    }
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Names what limits a number.
    Limiter(Limiter),
    /// The smallest level that reaches the best one.
    Plateau,
    /// Datagrams that are lost.
    #[serde(rename = "derived")]
    Loss,
    /// A comparison of two cells.
    Effect,
    /// A reason to trust a number less.
    Caution,
}

impl FindingKind {
    /// Whether traffic brings it about by its shape, requests in pieces or one at a time, and not the hosts: of a
    /// chapter of the study that is the study's own doing.
    pub fn is_of_traffic(self) -> bool {
        matches!(
            self,
            Self::Limiter(Limiter::NagleDelayedAck | Limiter::RoundTrip)
        )
    }
}

/// What a caution is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caution {
    /// Both ends ran on one CPU.
    OneCpu,
    /// One CPU processes all packets of a host.
    OneCpuOfPackets,
    /// A CPU's backlog was full.
    Backlog,
    /// NAPI ran out of budget.
    Squeezed,
    /// The PCIe link is narrower than the network card.
    Pcie,
    /// Zero-copy sends were copied.
    ZeroCopy,
    /// Requests were sent late.
    GeneratorLate,
    /// Responses come one request late.
    ResponseWaits,
    /// The conntrack table is nearly full.
    ConntrackFull,
    /// Identical trials differ.
    Noise,
    /// Identical trials fall into two groups.
    Modes,
    /// Trials are invalid.
    Invalid,
    /// A cell has few replicates.
    Replicates,
    /// Flows started at different times.
    StartSkew,
    /// A setting is below the requested value.
    Capped,
    /// Requests that were due were not sent.
    ShortRequests,
    /// Connections failed.
    ShortConnections,
    /// Workers waited for CPUs.
    Starved,
    /// Others took CPU time.
    Disturbed,
    /// Other traffic passed a device that the flows use.
    OtherTraffic,
    /// Some of what is counted had come before the window.
    HeldBack,
    /// Datagrams go in fragments.
    Fragments,
    /// Nothing arrived for a part of the window.
    Silent,
    /// All hosts share this machine's CPUs.
    SharedCpus,
    /// Other runs may have been active at the same time.
    SharedHosts,
    /// A counter grew that stands still on a host that is well: the name of its rule.
    Counter(&'static str),
}

impl Caution {
    /// Returns its name in a finding's identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::OneCpu => "one-cpu",
            Self::OneCpuOfPackets => "one-cpu-of-packets",
            Self::Backlog => "backlog",
            Self::Squeezed => "squeezed",
            Self::Pcie => "pcie",
            Self::ZeroCopy => "zero-copy",
            Self::GeneratorLate => "generator-late",
            Self::ResponseWaits => "response-waits",
            Self::ConntrackFull => "conntrack-full",
            Self::Noise => "noise",
            Self::Modes => "modes",
            Self::Invalid => "invalid",
            Self::Replicates => "replicates",
            Self::StartSkew => "start-skew",
            Self::Capped => "capped",
            Self::ShortRequests => "short/requests",
            Self::ShortConnections => "short/connections",
            Self::Starved => "starved",
            Self::Disturbed => "disturbed",
            Self::OtherTraffic => "other-traffic",
            Self::HeldBack => "held-back",
            Self::Fragments => "fragments",
            Self::Silent => "silent",
            Self::SharedCpus => "shared-cpus",
            Self::SharedHosts => "shared-hosts",
            Self::Counter(rule) => rule,
        }
    }
}

/// One measured value that a claim rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct EvidenceList(Vec<Evidence>);

impl EvidenceList {
    /// Makes a list of `first` and `more`; there is no way to make an empty one.
    pub fn new(first: Evidence, more: Vec<Evidence>) -> Self {
        let mut list = vec![first];
        list.extend(more);
        Self(list)
    }

    /// Returns the list with `more` at its end.
    pub fn with(mut self, more: impl IntoIterator<Item = Evidence>) -> Self {
        self.0.extend(more);
        self
    }

    /// Returns the evidence, at least one piece.
    pub fn as_slice(&self) -> &[Evidence] {
        &self.0
    }
}

/// A claim with effect, interval and evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Stable identifier inside a report: `socket-buffer/plateau/1`.
    pub id: String,
    /// The experiment it is about, if any.
    #[serde(skip)]
    pub experiment: Option<String>,
    /// The title of that experiment, where the run has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it cautions about, where it is a caution of such a kind.
    #[serde(skip)]
    pub caution: Option<Caution>,
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
    /// What to do about this one, where that is not what is done about others of its kind; without a full stop.
    #[serde(skip)]
    pub action: Option<String>,
}

/// What a comparison decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The effect is there, with the error that the whole report allows.
    Differs,
    /// The effect is shown to be smaller than what matters.
    Same,
    /// Neither is shown.
    NotDecided,
}

/// A comparison with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Stable identifier inside a report: `latency/effect/delayed_ack`.
    pub id: String,
    /// The experiment.
    pub experiment: String,
    /// Whether buffers are held against autotuned ones; else it is an effect.
    #[serde(skip)]
    pub is_plateau: bool,
    /// What is compared, in words: "transactions per second, delayed ACK on over off".
    pub what: String,
    /// The interactions of two factors that it cannot be told from, in words: of an experiment that measures a fraction of
    /// all combinations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// What it decides.
    pub verdict: Verdict,
    /// The ratio; its interval has the confidence that the verdict needs.
    pub effect: Estimate,
    /// The relative difference below which two are the same.
    pub margin: f64,
    /// Further replicates after which it would be decided, where it is not.
    pub more: Option<u32>,
    /// Where the effect is not the same everywhere: the levels in words, each with verdict and ratio.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<(String, Verdict, Estimate)>,
}

/// Further replicates from which on how many it takes is no longer told: "many".
pub const MANY: u32 = 100;

impl Comparison {
    /// Returns the verdict in words: "differs", "same within 5 %", "not decided (needs about 3 more replicates)".
    pub fn verdict_in_words(&self) -> String {
        let margin = number::percent(self.margin);
        match (self.verdict, self.more) {
            (Verdict::Differs, _) => self.differing(),
            (Verdict::Same, _) => {
                let mean = if self.is_plateau || self.levels.is_empty() {
                    ""
                } else {
                    "on average the "
                };
                format!("{mean}same within {margin}")
            }
            (Verdict::NotDecided, _) if self.loses_nothing() => {
                format!("loses less than {margin}; whether it gains is not decided")
            }
            (Verdict::NotDecided, Some(MANY..)) => {
                "not decided (needs many more replicates)".to_owned()
            }
            (Verdict::NotDecided, Some(more)) => {
                let more = number::counted(more, "more replicate");
                format!("not decided (needs about {more})")
            }
            (Verdict::NotDecided, None) => "not decided".to_owned(),
        }
    }

    /// Whether, of a curve, each level is shown to lose less than matters.
    fn loses_nothing(&self) -> bool {
        let least = 1.0 - self.margin;
        let mut levels = self.levels.iter();
        self.is_plateau && levels.all(|(.., ratio)| ratio.low.is_some_and(|low| low > least))
    }

    /// Says at which levels it differs; of a curve of buffers the ratio beside is that of the first.
    fn differing(&self) -> String {
        let levels = self.levels.iter();
        let differ = levels.filter(|(_, verdict, _)| *verdict == Verdict::Differs);
        let names: Vec<&str> = differ.map(|(level, ..)| level.as_str()).collect();
        match (names.as_slice(), self.is_plateau) {
            ([], _) => "differs".to_owned(),
            ([one], true) => format!("differs: {one}"),
            ([first, others @ ..], true) => {
                format!("differs: {first} as shown; {}", others.join(", "))
            }
            (names, false) => format!("differs with {}; on average as shown", names.join(", ")),
        }
    }
}

/// Pairs of trials below which two levels are not told apart: the least p-value of the signs of five is 2/32.
pub const PAIRS_MIN: u32 = 5;
/// The noises that a plan is told of: relative deviations of the trials of a cell.
pub const NOISES: [f64; 3] = [0.03, 0.05, 0.10];
/// The share of runs in which the smallest difference that a plan is told to find is found.
pub const FOUND_SHARE: f64 = 0.8;

/// What a comparison of a plan can decide, before anything is measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decidable {
    /// That of the [`Comparison`] which comes of it.
    pub id: String,
    /// The experiment.
    pub experiment: String,
    /// What is compared, in words.
    pub what: String,
    /// Pairs of trials; of a curve the blocks of a level.
    pub pairs: u32,
    /// The pairs that would do, where there are too few to decide anything: the least attainable p-value is then 1. With
    /// as many, a difference that is large beside the noise reaches any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs_needed: Option<u32>,
    /// The p-value that a claim needs where no other comparison of the plan shows anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_needed: Option<f64>,
    /// The relative difference below which two are the same.
    pub margin: f64,
    /// What it decides at each of [`NOISES`]; empty where there are too few pairs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<DecidableAt>,
}

/// What a comparison of a plan can decide at a noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecidableAt {
    /// The relative deviation of the trials of a cell.
    pub noise: f64,
    /// The smallest relative difference that is found in [`FOUND_SHARE`] of runs, and matters.
    pub smallest: f64,
    /// The share of runs that are told to be the same where nothing differs.
    pub same_share: f64,
}

/// How far the numbers of a report may be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrustLevel {
    /// Nothing stands against them.
    Good,
    /// They hold with the limits that are named.
    Limited,
    /// They do not describe the hosts.
    DoNotUse,
}

impl TrustLevel {
    /// Returns the level in words.
    pub fn title(self) -> &'static str {
        match self {
            TrustLevel::Good => "good",
            TrustLevel::Limited => "limited",
            TrustLevel::DoNotUse => "do not use",
        }
    }
}

/// How far the numbers may be relied on, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trust {
    /// How far.
    pub level: TrustLevel,
    /// Why no further, the gravest first; empty where it is good.
    pub reasons: Vec<String>,
}

impl Trust {
    /// Returns what both promise: no more than the worse of them, for the reasons of both.
    pub fn and(self, other: Self) -> Self {
        let mut reasons = self.reasons;
        let further = other.reasons.into_iter();
        let further: Vec<String> = further.filter(|why| !reasons.contains(why)).collect();
        if other.level > self.level {
            reasons.splice(0..0, further);
        } else {
            reasons.extend(further);
        }
        Self {
            level: self.level.max(other.level),
            reasons,
        }
    }

    /// Returns it in one line: "limited because …", with the gravest reason alone and how many more there are; what
    /// follows a colon in it is told with the cautions.
    pub fn line(&self) -> String {
        let title = self.level.title();
        let Some((first, more)) = self.reasons.split_first() else {
            return title.to_owned();
        };
        let first = first
            .split_once(": ")
            .map_or(first.as_str(), |(what, _)| what);
        match more.len() {
            0 => format!("{title} because {first}"),
            more => format!("{title} because {first} (+{more} more)"),
        }
    }
}

/// What to do about a finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recommendation {
    /// The finding it follows from.
    pub finding: String,
    /// What to do, one imperative sentence.
    pub action: String,
    /// What that gains, as it was measured against the host as it is.
    pub predicted: String,
    /// What it costs, or may do elsewhere; empty where that is not known.
    pub cost: String,
    /// How to take it back; empty where nothing is changed.
    pub undo: String,
    /// The command or experiment that would confirm it.
    pub confirm: String,
}
