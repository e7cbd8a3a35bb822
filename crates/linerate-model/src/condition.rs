//! What a response is held against: `throughput < 900M`, `p99 > 200us`, of a group `probe.p99 > 5ms`, relative to another level
//! `throughput > 95% of auto`.

use crate::group_name::GroupName;
use crate::response::{CATALOGUE, describe, name};
use crate::unit::{BitsPerSec, Bytes, Nanos, Unit, parse_share};

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

/// A response above or below a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// As it was typed.
    pub text: String,
    /// The group whose response it is about, where it names one.
    pub group: Option<GroupName>,
    /// The response that it is about.
    pub response: String,
    /// Whether it is so below the limit, and not above.
    pub is_below: bool,
    /// The limit, in the response's unit; a share where it is of another level.
    pub limit: f64,
    /// The level whose response the limit is a share of, as it was typed; absent where the limit stands alone.
    pub of: Option<String>,
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
        let of_group = || {
            let (group, named) = named.split_once('.')?;
            Some((Some(GroupName::new(group)?), response(named)?))
        };
        // Words of some responses have a point: "round trip, 99.9th percentile".
        let found = response(named).map(|response| (None, response));
        let (group, response) = found
            .or_else(of_group)
            .ok_or_else(|| format!("no response is called `{named}`"))?;
        let (limit, of) = match limit.split_once(" of ") {
            Some((share, level)) => (share.trim(), Some(level.trim().to_owned())),
            None => (limit, None),
        };
        let unit = match of {
            Some(_) => Unit::Ratio,
            None => describe(response).unit,
        };
        Ok(Self {
            text: text.trim().to_owned(),
            group,
            is_below: text[at..].starts_with('<'),
            limit: quantity(limit, unit)?,
            response: response.to_owned(),
            of,
        })
    }

    /// Returns whether it is so of everything from `low` to `high`; absent where that has the limit inside.
    pub fn is_so(&self, low: f64, high: f64) -> Option<bool> {
        let (is_met, is_not) = if self.is_below {
            (high < self.limit, low >= self.limit)
        } else {
            (low > self.limit, high <= self.limit)
        };
        match (is_met, is_not) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
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
    // Of a number alone nobody knows whether it was meant in bits or in megabits.
    let with_unit = Some(text).filter(|text| text.ends_with(char::is_alphabetic));
    let read = match unit {
        Unit::BitsPerSecond => with_unit
            .and_then(|text| text.parse::<BitsPerSec>().ok())
            .map(|rate| rate.0),
        Unit::Bytes => with_unit
            .and_then(|text| text.parse::<Bytes>().ok())
            .map(|bytes| bytes.0 as f64),
        Unit::Nanoseconds => with_unit
            .and_then(|text| text.parse::<Nanos>().ok())
            .map(|time| time.0 as f64),
        Unit::Ratio => parse_share(text),
        _ => plain(),
    };
    let expected = match unit {
        Unit::BitsPerSecond => "rate with its unit, as in 900M",
        Unit::Bytes => "size with its unit, as in 64K or 100B",
        Unit::Nanoseconds => "time with its unit, as in 200us",
        Unit::Ratio => "share, as in 1%",
        _ => "number",
    };
    read.ok_or_else(|| format!("`{text}` is no {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_may_name_a_group() {
        let group = |text: &str| Condition::parse(text).map(|it| it.group.map(|it| it.to_string()));
        assert_eq!(group("probe.p99 > 5ms"), Ok(Some("probe".to_owned())));
        assert_eq!(group("p99 > 5ms"), Ok(None));
        assert_eq!(group("round trip, 99.9th percentile > 5ms"), Ok(None));
    }

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
        check("throughput > 95% of auto", name::THROUGHPUT, false, 0.95);
        let of = |text: &str| Condition::parse(text).expect(text).of;
        assert_eq!(of("p99 < 110% of 4M").as_deref(), Some("4M"));
        assert_eq!(of("p99 < 10ms"), None);
        for wrong in [
            "throughput > 900M of auto",
            "throughput",
            "speed < 1G",
            "throughput < fast",
            "p99 > 200",
            "throughput < 900",
            "payload_per_segment < 100",
            "loss > ?",
            "probe.speed < 1G",
            "a b.p99 > 5ms",
        ] {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }
}
