//! Who measures with whom, where all hosts of a run do: pairs, in rounds of those that go on at the same time.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::HostName;
use crate::named::Named;

/// Which hosts measure with which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// All but one send to that one, at the same time.
    ManyToOne,
    /// One sends to all others, at the same time.
    OneToMany,
    /// The first host with the second, the third with the fourth; of two groups the first with the first.
    Pairs,
    /// Each host sends to another and receives from another, drawn anew by the seed.
    Permutation,
    /// Each host with each other, either way.
    Mesh,
    /// Each host of one group sends to each of another.
    Racks,
    /// Each host of one half with one of the other, both ways.
    Bisection,
}

impl Named for Pattern {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("many-to-one", Self::ManyToOne),
        ("one-to-many", Self::OneToMany),
        ("pairs", Self::Pairs),
        ("permutation", Self::Permutation),
        ("mesh", Self::Mesh),
        ("racks", Self::Racks),
        ("bisection", Self::Bisection),
    ];
}

/// Two hosts: one opens flows to the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct Pair {
    /// Who opens the flows: of a stream to the server it sends.
    pub from: HostName,
    /// Who takes them up.
    pub to: HostName,
}

/// What stands between the names of a pair.
const TO: &str = " > ";

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{TO}{}", self.from, self.to)
    }
}

impl From<Pair> for String {
    fn from(pair: Pair) -> Self {
        pair.to_string()
    }
}

impl TryFrom<String> for Pair {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let names = text
            .split_once(TO)
            .filter(|(from, to)| !from.is_empty() && !to.is_empty());
        let (from, to) = names.ok_or_else(|| format!("`{text}` is no pair of hosts: A{TO}B"))?;
        Ok(Self {
            from: from.into(),
            to: to.into(),
        })
    }
}

/// The pairs of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pairs {
    /// How they were chosen.
    pub pattern: Pattern,
    /// Rounds: the pairs of one go on at the same time.
    pub rounds: Vec<Vec<Pair>>,
}

impl Pairs {
    /// Returns every pair, round by round.
    pub fn all(&self) -> impl Iterator<Item = &Pair> {
        self.rounds.iter().flatten()
    }
}
