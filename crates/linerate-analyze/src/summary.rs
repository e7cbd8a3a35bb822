//! The summary table: one line a headline number.
//!
//! Of a study: latency, window, throughput, buffer, stall, small messages, cost and noise, as far
//! as they were measured. Of anything else: the response of each cell, and of a single cell what
//! else was read.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::analysis::{Table, TableCell};
use linerate_model::experiment::Factor;
use linerate_model::number;
use linerate_model::setting;
use linerate_model::unit::Unit;
use linerate_model::workload::{Part, Setting};
use linerate_model::{HostName, TrialId};

use crate::chapters::{self, Row, between, row};
use crate::dataset::{CellOutcomes, Dataset};
use crate::diagnose::{limits, needless};
use crate::reduce::{describe, name};
use crate::study;
use crate::words;

/// Rows of the summary of a lone experiment; all cells are in its chapter.
const CELLS_MAX: usize = 12;

/// Returns the summary table.
pub(crate) fn summary(dataset: &Dataset<'_>) -> Table {
    let rows = if dataset.recording.document.study {
        study_rows(dataset)
    } else {
        plain_rows(dataset)
    };
    Table::new("Summary", ["What", "Value", "Note"], rows)
}

fn study_rows(dataset: &Dataset<'_>) -> Vec<Row> {
    let mut rows = chapters::lines(dataset);
    rows.extend(cost(dataset));
    rows.extend(congestion(dataset));
    rows.extend(noise(dataset));
    rows
}

fn cost(dataset: &Dataset<'_>) -> Option<Row> {
    let cost = chapters::best_with_cpu(dataset)?.estimate(name::CPU_PER_GBIT)?;
    let note = if dataset.is_one_machine() {
        "all hosts together, which share a machine, at the best throughput"
    } else {
        "of the server, at the best throughput"
    };
    Some(row("CPU cost of 1 Gbit/s", cost, note))
}

/// The noisiest experiment's.
fn noise(dataset: &Dataset<'_>) -> Option<Row> {
    let noises = study::noises(dataset);
    let (experiment, noise) = noises.first()?;
    let estimate = noise.estimate()?.map(Unit::Percent, |share| 100.0 * share);
    let note = format!(
        "standard deviation of identical trials, largest in {}",
        experiment.title
    );
    Some(row("Noise floor", estimate, note))
}

/// The congestion controls in force at the sending ends; those of the trials that were averaged.
fn congestion(dataset: &Dataset<'_>) -> Option<Row> {
    let valid: BTreeSet<TrialId> = dataset.valid().map(|outcome| outcome.trial).collect();
    let mut trials: BTreeMap<&str, BTreeSet<TrialId>> = BTreeMap::new();
    let default_of = |name: &HostName| {
        let host = dataset.recording.document.host(name)?;
        host.snapshot.text("sysctl.net.ipv4.tcp_congestion_control")
    };
    let mut from = BTreeSet::new();
    for flow in &dataset.recording.flows {
        let sends = matches!(flow.part, Part::Sender | Part::Requester);
        if !sends || !valid.contains(&flow.trial) {
            continue;
        }
        let Some(setting) = flow.settings.named(setting::name::TCP_CONGESTION) else {
            continue;
        };
        if let Some(in_force) = setting.in_force() {
            from.insert(Source::of(setting, in_force, default_of(&flow.host)));
            trials.entry(in_force).or_default().insert(flow.trial);
        }
    }
    let words: Vec<String> = match trials.len() {
        0 => return None,
        1 => trials.keys().map(|name| (*name).to_owned()).collect(),
        _ => trials
            .iter()
            .map(|(name, trials)| format!("{name} ({})", number::counted(trials.len(), "trial")))
            .collect(),
    };
    let note: Vec<String> = from.into_iter().map(Source::words).collect();
    Some(row(
        "Congestion control",
        TableCell::Text(words::list(&words)),
        note.join("; "),
    ))
}

/// Why a connection had its congestion control.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Source<'a> {
    /// It was asked for.
    Asked,
    /// This one was asked for, and is not in force.
    Replaced(&'a str),
    /// None was asked for, and it is what its host gives every connection.
    Default,
    /// None was asked for, and its host gives every connection another.
    NotDefault,
    /// None was asked for, and what its host gives is not known.
    Unknown,
}

impl<'a> Source<'a> {
    fn of(setting: &'a Setting, in_force: &str, default: Option<&str>) -> Self {
        match (setting.requested.as_deref(), default) {
            (Some(asked), _) if asked == in_force => Self::Asked,
            (Some(asked), _) => Self::Replaced(asked),
            (None, Some(default)) if default == in_force => Self::Default,
            (None, Some(_)) => Self::NotDefault,
            (None, None) => Self::Unknown,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Asked => "asked for".to_owned(),
            Self::Replaced(asked) => {
                format!("not {asked}, which was asked for: a route or a program set it")
            }
            Self::Default => "the hosts' default where none was set".to_owned(),
            Self::NotDefault => "not the hosts' default: a route or a program set it".to_owned(),
            Self::Unknown => "none was asked for".to_owned(),
        }
    }
}

fn plain_rows(dataset: &Dataset<'_>) -> Vec<Row> {
    let rest = |cell: &&CellOutcomes<'_>| !cell.cell.contains_key(&Factor::Pair);
    let cells = dataset.cells.iter().filter(rest);
    let mut rows: Vec<Row> = cells
        .take(CELLS_MAX)
        .map(|cell| cell_row(dataset, cell))
        .collect();
    if let Some((what, median, notes)) = between::headline(dataset) {
        rows.push(row(what, median, notes.join("; ")));
    } else if dataset.cells.len() > CELLS_MAX {
        let more = number::counted(dataset.cells.len() - CELLS_MAX, "more cell");
        rows.push(row(more, TableCell::Text("in the chapter".to_owned()), ""));
    }
    if let [cell] = dataset.cells.as_slice() {
        rows.extend(details(dataset, cell));
    }
    rows.extend(congestion(dataset));
    rows
}

fn cell_row(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Row {
    let what = match dataset.cells.len() {
        1 => describe(&cell.experiment.response).title.to_owned(),
        _ => words::whole_cell(&cell.cell),
    };
    let value = match cell.main() {
        Some(estimate) => TableCell::Estimate(estimate),
        None if cell.valid.is_empty() => TableCell::Absent("no valid trial".to_owned()),
        None => TableCell::Absent("not read".to_owned()),
    };
    let mut reasons = cell.invalid.iter().filter_map(|it| it.validity.reason());
    let refused = reasons.next().map(|why| match cell.valid.len() {
        0 => why.to_string(),
        valid => {
            let invalid = cell.invalid.len();
            let all = number::counted(valid + invalid, "trial");
            format!("{invalid} of {all} invalid: {why}")
        }
    });
    let limiter = limits(dataset, cell).map(|it| format!("limited by {}", it.title()));
    let notes: Vec<String> = limiter.into_iter().chain(refused).collect();
    row(what, value, notes.join("; "))
}

/// What else was read of the only cell.
fn details(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Vec<Row> {
    const DETAILS: &[&str] = &[
        name::RTT_P50,
        name::RTT_P99,
        name::RTT_P999,
        name::TCP_RTT,
        name::RETRANSMITTED,
        name::RETRANSMITTED_BOTH,
        name::PAYLOAD_PER_SEGMENT,
        name::SEGMENTS_PER_ACK,
        name::STALL_MAX,
        name::CPU_BUSY,
        name::CPU_PER_GBIT,
    ];
    let wire = dataset
        .limit_bps(cell)
        .zip(cell.mean(name::THROUGHPUT))
        .map(|(limit, throughput)| {
            let note = format!("{} of it reached", words::reached(throughput, limit));
            row(
                "payload that the wire can carry",
                TableCell::Number(limit, Unit::BitsPerSecond),
                note,
            )
        });
    // Of transactions both ends send, and the clients' own count leaves out the large responses.
    let is_part = |response: &str| {
        response == name::RETRANSMITTED && cell.mean(name::RETRANSMITTED_BOTH).is_some()
    };
    let told = DETAILS.iter().filter(|response| !is_part(response));
    let note = |response: &str| match response {
        name::RETRANSMITTED => needless(cell).unwrap_or_default(),
        _ => String::new(),
    };
    let read = |response: &&str| {
        let title = describe(response).title;
        Some(row(title, cell.estimate(response)?, note(response)))
    };
    wire.into_iter().chain(told.filter_map(read)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_chose_the_congestion_control_is_told_as_it_was() {
        let check =
            |requested: Option<&str>, in_force: &str, default: Option<&str>, words: &str| {
                let setting = Setting::granted(
                    setting::name::TCP_CONGESTION,
                    requested.map(str::to_owned),
                    Some(in_force.to_owned()),
                );
                assert_eq!(Source::of(&setting, in_force, default).words(), words);
            };
        let replaced = "not bbr, which was asked for: a route or a program set it";
        let default = "the hosts' default where none was set";
        let not_default = "not the hosts' default: a route or a program set it";
        check(Some("bbr"), "bbr", Some("cubic"), "asked for");
        check(Some("bbr"), "cubic", Some("cubic"), replaced);
        check(None, "cubic", Some("cubic"), default);
        check(None, "bbr", Some("cubic"), not_default);
        check(None, "cubic", None, "none was asked for");
    }
}
