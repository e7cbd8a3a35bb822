//! Results as they are checked in: `docs/performance.json`, from which `docs/performance.md` is rendered.
//!
//! A set is one run of the benchmark with its date and conditions. A newer set takes the place of what older
//! ones have of the same workload in the same environment, so that the page has each number once. Of a row
//! the spread is kept, not each run.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::rounds::{self, Comparison, Row, Spread};
use crate::tool::Kind;
use crate::workload::Unit;

/// The number of the file's format.
const FORMAT: u32 = 1;

/// Everything that is published.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// [`FORMAT`].
    pub format: u32,
    /// One run of the benchmark each, the newest last.
    pub sets: Vec<Set>,
}

/// One run of the benchmark.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// The day, as 2026-11-22.
    pub date: String,
    /// Machine, tools, rounds: what the numbers hold for.
    pub conditions: String,
    /// What was compared.
    pub comparisons: Vec<Kept>,
}

/// All rows of one workload in one environment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The name of the environment.
    pub environment: String,
    /// The name of the workload.
    pub workload: String,
    /// What the workload is.
    pub title: String,
    /// What its numbers count.
    pub unit: Unit,
    /// The rows that have a number, ours first.
    pub rows: Vec<KeptRow>,
    /// What ours must reach and has.
    pub targets: Vec<KeptTarget>,
    /// What else to know of it.
    pub notes: Vec<String>,
}

/// All runs of one tool, or of one of its ways.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptRow {
    /// The tool, and its way if it has several.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its number, in the unit of the workload.
    pub value: Spread,
    /// Median CPU time of the client for each unit of work.
    pub client_cpu: Option<f64>,
    /// Median CPU time of the server.
    pub server_cpu: Option<f64>,
    /// Median share of the machine that other programs used.
    pub others_share: Option<f64>,
    /// Runs.
    pub runs: usize,
}

/// A target and what became of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptTarget {
    /// In words.
    pub words: String,
    /// Whether it is reached; absent where either side has no number.
    pub reached: Option<bool>,
}

impl Results {
    /// Reads the file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let results: Self = serde_json::from_str(&text)
            .with_context(|| format!("cannot understand {}", path.display()))?;
        anyhow::ensure!(
            results.format == FORMAT,
            "{} has format {}, this program reads {FORMAT}",
            path.display(),
            results.format
        );
        Ok(results)
    }

    /// Puts `set` in place of what older ones have of the same.
    pub fn publish(&mut self, set: Set) {
        for old in &mut self.sets {
            old.comparisons.retain(|old| {
                let is_same = |new: &Kept| {
                    (&new.environment, &new.workload) == (&old.environment, &old.workload)
                };
                !set.comparisons.iter().any(is_same)
            });
        }
        self.sets.retain(|set| !set.comparisons.is_empty());
        self.sets.push(set);
    }
}

impl Set {
    /// Returns what a run of the benchmark found, on this day.
    pub fn of(document: &Document, date: String) -> Self {
        Self {
            date,
            conditions: document.conditions(),
            comparisons: document.comparisons.iter().map(Kept::of).collect(),
        }
    }
}

impl Kept {
    /// Returns what is kept of a comparison.
    pub fn of(comparison: &Comparison) -> Self {
        let (workload, title) = comparison.workload.words();
        let short = comparison.rows.iter().filter_map(|row| {
            let note = row.note.as_deref()?;
            Some(format!(
                "{}: {} run(s) only: {note}",
                row.name,
                row.runs.len()
            ))
        });
        let (thrown, busy) = (comparison.thrown_away, comparison.kept_busy);
        let busy = format!(
            "{thrown} run(s) thrown away because other programs used the machine, {busy} kept although \
             they did."
        );
        let target = |one: &crate::target::Reached| KeptTarget {
            words: one.sentence(comparison.unit),
            reached: one.reached,
        };
        Self {
            environment: comparison.environment.name(),
            workload: workload.to_owned(),
            title: title.to_owned(),
            unit: comparison.unit,
            rows: comparison.rows.iter().filter_map(KeptRow::of).collect(),
            targets: comparison.targets.iter().map(target).collect(),
            notes: short.chain([busy]).collect(),
        }
    }

    /// Returns the row of a kind with the best median.
    pub fn best(&self, kind: Kind) -> Option<&KeptRow> {
        let rows = self.rows.iter().filter(|row| row.kind == kind);
        rows.max_by(|a, b| self.unit.order(a.value.median, b.value.median))
    }
}

impl KeptRow {
    fn of(row: &Row) -> Option<Self> {
        let median = |of: fn(&crate::run::Run) -> Option<f64>| {
            row.spread(of).map(|spread: rounds::Spread| spread.median)
        };
        Some(Self {
            name: row.name.clone(),
            kind: row.kind,
            value: row.value()?,
            client_cpu: median(|run| run.client_cpu),
            server_cpu: median(|run| run.server_cpu),
            others_share: median(|run| Some(run.others_share)),
            runs: row.runs.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_run_takes_the_place_of_what_it_has_again() {
        let kept = |environment: &str, workload: &str| Kept {
            environment: environment.to_owned(),
            workload: workload.to_owned(),
            title: String::new(),
            unit: Unit::Bytes,
            rows: Vec::new(),
            targets: Vec::new(),
            notes: Vec::new(),
        };
        let set = |date: &str, comparisons| Set {
            date: date.to_owned(),
            conditions: String::new(),
            comparisons,
        };
        let mut results = Results {
            format: FORMAT,
            sets: vec![
                set("1", vec![kept("lab", "tcp-1"), kept("lab", "rr-1")]),
                set("2", vec![kept("loopback", "rr-1")]),
            ],
        };
        results.publish(set(
            "3",
            vec![kept("loopback", "rr-1"), kept("lab", "rr-1")],
        ));
        let left: Vec<(&str, usize)> = results
            .sets
            .iter()
            .map(|set| (set.date.as_str(), set.comparisons.len()))
            .collect();
        assert_eq!(left, [("1", 1), ("3", 2)]);
    }
}
