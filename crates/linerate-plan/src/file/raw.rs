//! What TOML and the spelling of keys allow.

use std::fmt;

use linerate_model::Nanos;
use linerate_model::probe::Probes;
use linerate_model::unit::ParseUnitError;
use linerate_model::workload::TrialHost;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use toml::Spanned;

/// The number of the format, read before anything else.
#[derive(serde::Deserialize)]
pub(super) struct Numbered {
    pub(super) format: Option<u32>,
}

/// A whole file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    #[serde(rename = "format")]
    pub(super) _format: u32,
    pub(super) name: Spanned<String>,
    pub(super) chapter: Option<u32>,
    pub(super) title: String,
    pub(super) question: String,
    #[serde(default)]
    pub(super) method: String,
    pub(super) response: Option<Spanned<String>>,
    pub(super) workload: Spanned<Entries>,
    /// `[[group]]`: what goes on beside it.
    #[serde(default)]
    pub(super) group: Vec<RawGroup>,
    #[serde(default)]
    pub(super) factors: Entries,
    pub(super) design: RawDesign,
    pub(super) timing: RawTiming,
    /// `[observe]`: what is looked at beyond what every trial shows.
    pub(super) observe: Option<Probes>,
    pub(super) budget: Option<RawBudget>,
}

/// `[[group]]`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGroup {
    pub(super) name: Spanned<String>,
    /// The hosts that open its flows, and those that take them up: one, or a list.
    pub(super) from: Option<Spanned<Hosts>>,
    pub(super) to: Option<Spanned<Hosts>>,
    pub(super) workload: Spanned<Entries>,
}

/// Hosts of a trial by their parts.
#[derive(serde::Deserialize)]
#[serde(
    untagged,
    expecting = "a host, `server` or `client 1`, or a list of such"
)]
pub(super) enum Hosts {
    One(TrialHost),
    Several(Vec<TrialHost>),
}

/// `[design]`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDesign {
    pub(super) kind: RawKind,
    #[serde(default)]
    pub(super) baseline: Entries,
    pub(super) control: Option<RawControl>,
    /// Factors whose levels change seldom.
    pub(super) whole_plots: Option<Spanned<Vec<Spanned<String>>>>,
    /// Scales of which the smallest level that suffices is asked for.
    pub(super) suffices: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) replicates: Spanned<u32>,
    /// For a fraction: the combinations of a block.
    pub(super) runs: Option<Spanned<u32>>,
    /// For a bisection: what holds on one side.
    pub(super) condition: Option<Spanned<String>>,
    /// For a refinement: how many levels there are in the end.
    pub(super) levels: Option<Spanned<u32>>,
    /// For a bisection and a refinement: how near two levels come.
    pub(super) resolution: Option<Spanned<String>>,
}

/// The kinds of a design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawKind {
    OneAtATime,
    Full,
    Fractional,
    LatinHypercube,
    /// Every level, and further ones between the two: a search.
    Bisection,
    /// Every level, and further ones where the response changes most.
    Refinement,
}

/// `[design] control`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawControl {
    pub(super) levels: Spanned<Entries>,
    pub(super) times: Spanned<u32>,
}

/// `[timing]`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTiming {
    pub(super) settle: Spanned<Length>,
    pub(super) warm_up: Spanned<Length>,
    pub(super) measure: Spanned<Length>,
    pub(super) drain: Spanned<Length>,
}

/// `[budget]`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBudget {
    pub(super) weight: Option<Spanned<u32>>,
    pub(super) replicates: Option<Spanned<[u32; 2]>>,
    pub(super) measure: Option<Spanned<[Length; 2]>>,
    #[serde(default)]
    pub(super) core: Entries,
}

/// A duration as text with its unit; a bare number would be read as seconds by one person and as
/// milliseconds by the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length(pub(super) Nanos);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Length;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration as text with its unit, such as \"400ms\" or \"10s\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Length, E> {
                let ends_in_digit = text.trim_end().ends_with(|c: char| c.is_ascii_digit());
                if ends_in_digit {
                    return Err(E::custom(format_args!(
                        "`{text}` has no unit; use ns, us, ms, s, m or h"
                    )));
                }
                text.parse()
                    .map(Length)
                    .map_err(|e: ParseUnitError| E::custom(e))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

/// Keys with their values, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Entries(pub(super) Vec<(Spanned<String>, Spanned<toml::Value>)>);

impl Entries {
    /// Returns the entry that is called `name`.
    pub(super) fn find(&self, name: &str) -> Option<&(Spanned<String>, Spanned<toml::Value>)> {
        self.0.iter().find(|(key, _)| key.get_ref() == name)
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries: Vec<(Spanned<String>, Spanned<toml::Value>)> = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                // The parser's table is sorted by name; the file's order is the person's.
                entries.sort_by_key(|(name, _)| name.span().start);
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Map)
    }
}
