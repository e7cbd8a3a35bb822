//! What a result must not be, as `--fail-if` says it: `throughput < 900M`, `p99 > 200us`.
//!
//! The number is the mean of the cell's valid trials with its interval. All of that below (or above) the limit: the
//! condition is met. None of it: it is not. The limit inside: *not decided*. A single trial has no interval, and its number
//! decides. Of several cells the best one counts, so that a condition on a whole study asks what the server can do.
//!
//! Of several groups it is about the one that it names; without a name, about the first that has the response. Of a probe
//! alone and beside bulk, the numbers beside bulk count, and the worse direction: alone it always is what the path can do.

use linerate_model::condition::Condition;
use linerate_model::experiment::Experiment;
use linerate_model::finding::Estimate;
use linerate_model::group;
use linerate_model::response::describe;
use linerate_model::run::Recording;
use serde::Serialize;

use crate::dataset::Dataset;
use crate::groups::{self, View};

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
    /// The group that it is about, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
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
        let group = self.group.as_ref();
        let of = group.map_or(String::new(), |group| format!(" of {group}"));
        format!(
            "--fail-if '{}' {outcome}: {title}{of} {value}",
            self.condition
        )
    }
}

/// Returns what becomes of `condition` for `recording`.
pub fn judge(condition: &Condition, recording: &Recording) -> Judged {
    let views = groups::views(recording);
    let alone = || (None, values(condition, recording, recording, 0));
    let of_view = |(at, view): (usize, &View)| {
        let values = values(condition, recording, &view.recording, at);
        (Some(view.name.clone()), values)
    };
    let mut all = views.iter().enumerate().map(of_view);
    let (group, values) = if views.is_empty() {
        alone()
    } else {
        all.find(|(_, values)| !values.is_empty())
            .unwrap_or_default()
    };
    let better = |one: &Estimate, other: &Estimate| {
        let order = one.value.total_cmp(&other.value);
        if condition.is_below {
            order
        } else {
            order.reverse()
        }
    };
    let values = values.into_iter();
    let value = if groups::is_loaded(&recording.document.plan) {
        values.min_by(better)
    } else {
        values.max_by(better)
    };
    let named = condition.group.map(|group| group.to_string());
    Judged {
        condition: condition.text.clone(),
        group: named.filter(|_| !views.is_empty()).or(group),
        response: condition.response.clone(),
        outcome: value.map_or(Fate::NotDecided, |value| outcome(condition, &value)),
        value,
    }
}

/// Returns the numbers that the condition may be about, of the cells of `view`: what `recording` has of the group that is
/// the trial's number `at`.
fn values(
    condition: &Condition,
    recording: &Recording,
    view: &Recording,
    at: usize,
) -> Vec<Estimate> {
    let plan = &recording.document.plan;
    let is_loaded = groups::is_loaded(plan);
    let is_meant = |experiment: &Experiment| {
        let name = group::names(&experiment.workload, &experiment.beside).nth(at);
        let wanted = condition.group.as_ref();
        let is_named = wanted.is_none_or(|wanted| Some(wanted.as_str()) == name);
        is_named && (!is_loaded || !experiment.beside.is_empty())
    };
    let whole = plan.experiments.iter().filter(|it| it.beside.len() >= at);
    let own: Vec<&str> = whole
        .zip(&view.document.plan.experiments)
        .filter(|(whole, _)| is_meant(whole))
        .map(|(_, own)| &*own.name)
        .collect();
    let dataset = Dataset::new(view);
    let cells = dataset.cells.iter();
    cells
        .filter(|cell| own.contains(&&*cell.experiment.name))
        .filter_map(|cell| cell.estimate(&condition.response))
        .collect()
}

fn outcome(condition: &Condition, value: &Estimate) -> Fate {
    let low = value.low.unwrap_or(value.value);
    let high = value.high.unwrap_or(value.value);
    match condition.is_so(low, high) {
        Some(true) => Fate::Met,
        Some(false) => Fate::NotMet,
        None => Fate::NotDecided,
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::unit::Unit;

    use super::*;

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
                [outcome(&below, &estimate), outcome(&above, &estimate)],
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
