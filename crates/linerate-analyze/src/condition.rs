//! What a result must not be, as `--fail-if` says it: `throughput < 900M`, `p99 > 200us`.
//!
//! The number is the mean of the cell's valid trials with its interval. All of that below (or above) the limit: the
//! condition is met. None of it: it is not. The limit inside: *not decided*. A single trial has no interval, and its number
//! decides. Of several cells the best one counts, so that a condition on a whole study asks what the server can do.

use linerate_model::finding::Estimate;
use linerate_model::response::{CATALOGUE, describe, name};
use linerate_model::run::Recording;
use linerate_model::unit::{Unit, parse_share};
use linerate_model::{BitsPerSec, Bytes, Nanos};
use serde::Serialize;

use crate::dataset::Dataset;

/// What people call responses beside the names of the catalogue.
const ALSO: [(&str, &str); 8] = [
    ("latency", name::RTT_P50),
    ("p50", name::RTT_P50),
    ("p99", name::RTT_P99),
    ("p999", name::RTT_P999),
    ("transactions", name::TRANSACTIONS),
    ("retransmits", name::RETRANSMITTED),
    ("loss", name::LOSS_SHARE),
    ("jitter", name::JITTER),
];

/// What a result must not be.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// As it was typed.
    pub text: String,
    response: String,
    is_below: bool,
    limit: f64,
}

/// What became of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum Fate {
    /// It is so: the run fails.
    Met,
    /// It is not so.
    NotMet,
    /// The limit lies inside the interval, or the number was not read.
    NotDecided,
}

/// A condition, judged.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Judged {
    /// As it was typed.
    pub condition: String,
    /// The response that it is about.
    pub response: String,
    /// The number that was measured; of several cells the best; absent where it was not read.
    pub value: Option<Estimate>,
    /// What became of it.
    pub outcome: Fate,
}

impl Judged {
    /// Returns it in words, without a full stop.
    pub fn line(&self) -> String {
        let title = describe(&self.response).title;
        let value = self
            .value
            .map(|value| linerate_model::number::estimate(&value).line());
        let value = value.unwrap_or_else(|| "not read".to_owned());
        let outcome = match self.outcome {
            Fate::Met => "is so",
            Fate::NotMet => "is not so",
            Fate::NotDecided => "is not decided",
        };
        format!("--fail-if '{}' {outcome}: {title} {value}", self.condition)
    }
}

impl Condition {
    /// Reads what was typed, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let at = text.find(['<', '>']);
        let Some(at) = at else {
            return Err("it has neither < nor >".to_owned());
        };
        let (named, limit) = (text[..at].trim(), &text[at + 1..]);
        let limit = limit.strip_prefix('=').unwrap_or(limit).trim();
        let response = response(named).ok_or_else(|| format!("no response is called `{named}`"))?;
        Ok(Self {
            text: text.trim().to_owned(),
            is_below: text[at..].starts_with('<'),
            limit: quantity(limit, describe(response).unit)?,
            response: response.to_owned(),
        })
    }

    /// Returns what becomes of it for `recording`.
    pub fn judge(&self, recording: &Recording) -> Judged {
        let dataset = Dataset::new(recording);
        let values = dataset
            .cells
            .iter()
            .filter_map(|cell| cell.estimate(&self.response));
        let better = |one: &Estimate, other: &Estimate| {
            let order = one.value.total_cmp(&other.value);
            if self.is_below {
                order
            } else {
                order.reverse()
            }
        };
        let value = values.max_by(better);
        Judged {
            condition: self.text.clone(),
            response: self.response.clone(),
            outcome: value.map_or(Fate::NotDecided, |value| self.outcome(&value)),
            value,
        }
    }

    fn outcome(&self, value: &Estimate) -> Fate {
        let low = value.low.unwrap_or(value.value);
        let high = value.high.unwrap_or(value.value);
        let (is_met, is_not) = if self.is_below {
            (high < self.limit, low >= self.limit)
        } else {
            (low > self.limit, high <= self.limit)
        };
        match (is_met, is_not) {
            (true, _) => Fate::Met,
            (_, true) => Fate::NotMet,
            _ => Fate::NotDecided,
        }
    }
}

/// Returns the response of this name: of the catalogue, with or without the unit at its end, or its words.
fn response(named: &str) -> Option<&'static str> {
    const UNITS: [&str; 6] = ["_bps", "_per_s", "_ns", "_bytes", "_cpus", "_segments"];
    let lower = named.to_lowercase();
    let also = ALSO.iter().find(|(short, _)| *short == lower);
    let is_it = |(known, _, title): &&(&'static str, Unit, &'static str)| {
        let without = UNITS.iter().find_map(|unit| known.strip_suffix(unit));
        *known == lower || without == Some(&*lower) || *title == lower
    };
    let known = || CATALOGUE.iter().find(is_it).map(|(known, ..)| *known);
    also.map(|(_, known)| *known).or_else(known)
}

fn quantity(text: &str, unit: Unit) -> Result<f64, String> {
    let plain = || text.parse::<f64>().ok().filter(|number| number.is_finite());
    let read = match unit {
        Unit::BitsPerSecond => text.parse::<BitsPerSec>().ok().map(|rate| rate.0),
        Unit::Bytes => text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64),
        Unit::Nanoseconds => {
            let has_unit = text.ends_with(char::is_alphabetic);
            let time = has_unit.then(|| text.parse::<Nanos>().ok()).flatten();
            return time
                .map(|time| time.0 as f64)
                .ok_or_else(|| format!("`{text}` is no time with its unit, as in 200us"));
        }
        Unit::Ratio => parse_share(text),
        _ => plain(),
    };
    let expected = match unit {
        Unit::BitsPerSecond => "rate, as in 900M",
        Unit::Bytes => "size, as in 64K",
        Unit::Ratio => "share, as in 1%",
        _ => "number",
    };
    read.ok_or_else(|| format!("`{text}` is no {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_read_with_the_names_and_units_that_users_know() {
        let check = |text: &str, response: &str, is_below: bool, limit: f64| {
            let read = Condition::parse(text).expect(text);
            assert_eq!(
                (read.response.as_str(), read.is_below, read.limit),
                (response, is_below, limit),
                "{text}"
            );
        };
        check("throughput < 900M", name::THROUGHPUT, true, 900e6);
        check("throughput_bps<0.9G", name::THROUGHPUT, true, 900e6);
        check("p99 > 200us", name::RTT_P99, false, 200e3);
        check("rtt_p50 > 1ms", name::RTT_P50, false, 1e6);
        check(
            "transactions_per_s <= 1000",
            name::TRANSACTIONS,
            true,
            1000.0,
        );
        check("loss > 1%", name::LOSS_SHARE, false, 0.01);
        for wrong in [
            "throughput",
            "speed < 1G",
            "throughput < fast",
            "p99 > 200",
            "loss > ?",
        ] {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_inside_the_interval_decides_nothing() {
        let below = Condition::parse("throughput < 900M").unwrap();
        let above = Condition::parse("throughput > 900M").unwrap();
        let check = |ends: Option<(f64, f64)>, value: f64, expected: [Fate; 2]| {
            let estimate = Estimate {
                low: ends.map(|ends| ends.0),
                high: ends.map(|ends| ends.1),
                ..Estimate::point(value, Unit::BitsPerSecond)
            };
            assert_eq!(
                [below.outcome(&estimate), above.outcome(&estimate)],
                expected,
                "{ends:?}"
            );
        };
        check(Some((800e6, 880e6)), 850e6, [Fate::Met, Fate::NotMet]);
        check(Some((910e6, 950e6)), 930e6, [Fate::NotMet, Fate::Met]);
        check(Some((850e6, 950e6)), 899e6, [Fate::NotDecided; 2]);
        check(None, 850e6, [Fate::Met, Fate::NotMet]);
    }
}
