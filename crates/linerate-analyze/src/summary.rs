//! The summary table: one line a headline number.
//!
//! Of a study: latency, window, throughput, buffer, stall, small messages, cost and noise, as far
//! as they were measured. Of anything else: the response of each cell, and of a single cell what
//! else was read.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::TrialId;
use linerate_model::analysis::{Table, TableCell};
use linerate_model::experiment::{Experiment, Factor, Level};
use linerate_model::finding::{CONFIDENCE, Estimate, Limiter};
use linerate_model::run::Validity;
use linerate_model::unit::Unit;
use linerate_model::workload::{Part, Traffic};

use crate::dataset::{CellOutcomes, Dataset};
use crate::diagnose::{limiter_of, plateau_cell};
use crate::reduce::{describe, name};
use crate::study;
use crate::words;

/// Rows of the summary of a lone experiment; all cells are in its chapter.
const CELLS_MAX: usize = 12;

type Row = Vec<TableCell>;

/// Returns the summary table.
pub(crate) fn summary(dataset: &Dataset<'_>) -> Table {
    let rows = match dataset.recording.document.study {
        true => study_rows(dataset),
        false => plain_rows(dataset),
    };
    Table {
        title: "Summary".to_owned(),
        columns: ["What", "Value", "Note"].map(str::to_owned).to_vec(),
        rows,
    }
}

fn row(what: impl Into<String>, value: TableCell, note: impl Into<String>) -> Row {
    vec![
        TableCell::Text(what.into()),
        value,
        TableCell::Text(note.into()),
    ]
}

fn estimate_row(what: impl Into<String>, value: Estimate, note: impl Into<String>) -> Row {
    row(what, TableCell::Estimate(value), note)
}

fn study_rows(dataset: &Dataset<'_>) -> Vec<Row> {
    let mut rows = latency(dataset);
    rows.extend(window(dataset));
    for experiment in dataset.experiments_of(study::SOCKET_BUFFER) {
        rows.extend(socket_buffer(dataset, experiment));
    }
    for experiment in dataset.experiments_of(study::SMALL_MESSAGES) {
        rows.extend(split_request(dataset, experiment));
        rows.extend(small_messages(dataset, experiment));
    }
    rows.extend(cost(dataset));
    rows.extend(congestion(dataset));
    rows.extend(noise(dataset));
    rows
}

fn latency(dataset: &Dataset<'_>) -> Vec<Row> {
    let cells = study::latency_cells(dataset);
    let bytes = |cell: &CellOutcomes<'_>| {
        study::payload_bytes(cell).map(|bytes| words::number(Unit::Bytes, bytes as f64))
    };
    let round_trip = |cell: &&CellOutcomes<'_>| {
        let rtt = cell.estimate(name::RTT_P50)?;
        let p99 = cell.mean(name::RTT_P99).map_or(String::new(), |p99| {
            format!("; 99th percentile {}", Unit::Nanoseconds.display(p99))
        });
        let note = format!(
            "median; one way about {}{p99}",
            Unit::Nanoseconds.display(rtt.value / 2.0)
        );
        Some(estimate_row(
            format!("Round trip of {}", bytes(cell)?),
            rtt,
            note,
        ))
    };
    let rate = |cell: &&CellOutcomes<'_>| {
        let rate = cell.estimate(name::TRANSACTIONS)?;
        let what = format!("Transactions of {}", bytes(cell)?);
        Some(estimate_row(
            what,
            rate,
            "one connection, one after the other",
        ))
    };
    let largest = cells.last().filter(|_| cells.len() > 1);
    [
        cells.first().and_then(round_trip),
        largest.and_then(round_trip),
        cells.first().and_then(rate),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn window(dataset: &Dataset<'_>) -> Option<Row> {
    let windows = study::windows(dataset);
    let first = windows.first()?;
    let rate = Unit::BitsPerSecond.display(dataset.path.rate_bps(1)?);
    Some(estimate_row(
        "Window needed",
        first.bytes,
        format!("{rate} × {}", first.basis),
    ))
}

/// For each combination the throughput of the host as it is, and the smallest buffer that does as
/// well.
fn socket_buffer(dataset: &Dataset<'_>, experiment: &Experiment) -> Vec<Row> {
    let plateaus = dataset.verdicts().plateaus_of(&experiment.name);
    plateaus
        .filter_map(|found| {
            let control = plateau_cell(dataset, found, None)?;
            let main = control.main()?;
            let mut note = match found.plateau.begin {
                Some(at) => {
                    let size = words::bare_level(Factor::SocketBuffer, &found.levels[at]);
                    let margin = words::percent(found.plateau.delta);
                    format!("fixed buffers of {size} lose less than {margin}")
                }
                None => "no fixed buffer is shown to do as well".to_owned(),
            };
            if let Some(limit) = dataset.path.limit_bps(&control.workload, None, None) {
                note += &format!("; {} of the wire limit", words::percent(main.value / limit));
            }
            let with = match found.words.is_empty() {
                true => String::new(),
                false => format!(", {}", found.words),
            };
            Some(estimate_row(format!("Throughput{with}"), main, note))
        })
        .collect()
}

/// The cell whose stall is longest, else the slowest split request.
fn split_request(dataset: &Dataset<'_>, experiment: &Experiment) -> Option<Row> {
    let cells = dataset.cells_of(&experiment.name);
    let split = cells.iter().filter(|cell| {
        matches!(cell.workload.traffic, Traffic::Rr { request_writes, .. } if request_writes > 1)
    });
    let known = split.filter_map(|cell| Some((cell, cell.estimate(name::RTT_P50)?)));
    let (slowest, rtt) = known.max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let verdict = limiter_of(dataset, slowest).map(|verdict| verdict.limiter);
    let mut cured = slowest.cell.clone();
    cured.insert(Factor::Nagle, Level::Switch(false));
    let cured = cells
        .iter()
        .find(|cell| cell.cell == cured)
        .and_then(|cell| cell.mean(name::RTT_P50));
    let note = match (verdict, cured) {
        (Some(Limiter::NagleDelayedAck), Some(cured)) => {
            format!(
                "Nagle waits for a delayed ACK; {} with Nagle off",
                Unit::Nanoseconds.display(cured)
            )
        }
        (Some(Limiter::NagleDelayedAck), None) => "Nagle waits for a delayed ACK".to_owned(),
        _ => "no stall by Nagle and delayed ACK".to_owned(),
    };
    let what = words::whole_cell(&slowest.cell);
    Some(estimate_row(
        format!("Slowest split request ({what})"),
        rtt,
        note,
    ))
}

fn small_messages(dataset: &Dataset<'_>, experiment: &Experiment) -> Vec<Row> {
    let cells = dataset.cells_of(&experiment.name);
    let with = |nagle: bool| {
        let cell = cells
            .iter()
            .filter(|cell| cell.workload.options.nagle == Some(nagle) && !cell.is_rr())
            .filter(|cell| cell.workload.options.delayed_ack != Some(false))
            .filter(|cell| cell.main().is_some())
            .min_by_key(|cell| cell.message_bytes())?;
        let payload = cell
            .mean(name::PAYLOAD_PER_SEGMENT)
            .map_or(String::new(), |payload| {
                format!(
                    "{} of payload per segment",
                    words::number(Unit::Bytes, payload)
                )
            });
        let message = words::number(Unit::Bytes, cell.message_bytes()? as f64);
        let on = if nagle { "on" } else { "off" };
        let what = format!("Stream of {message} messages, Nagle {on}");
        Some(estimate_row(
            what,
            cell.estimate(name::THROUGHPUT)?,
            payload,
        ))
    };
    [with(true), with(false)].into_iter().flatten().collect()
}

fn cost(dataset: &Dataset<'_>) -> Option<Row> {
    let experiment = dataset.experiments_of(study::SOCKET_BUFFER).next()?;
    let cells = dataset.cells_of(&experiment.name);
    let known = cells.iter().filter_map(|cell| {
        Some((
            cell.mean(name::THROUGHPUT)?,
            cell.estimate(name::CPU_PER_GBIT)?,
        ))
    });
    let (_, cost) = known.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let note = match dataset.is_lab() {
        true => "all hosts of the lab together, at the best throughput",
        false => "of the server, at the best throughput",
    };
    Some(estimate_row(
        "CPU cost of 1 Gbit/s",
        Estimate {
            unit: Unit::Cpus,
            ..cost
        },
        note,
    ))
}

/// The noisiest experiment's.
fn noise(dataset: &Dataset<'_>) -> Option<Row> {
    let noises = study::noises(dataset);
    let (experiment, noise) = noises.first()?;
    let (low, high) = noise.interval()?;
    let estimate = Estimate {
        value: 100.0 * noise.share,
        low: Some(100.0 * low),
        high: Some(100.0 * high),
        confidence: CONFIDENCE,
        n: noise.freedom as u32 + 1,
        unit: Unit::Percent,
    };
    let note = format!(
        "standard deviation of identical trials, greatest in {}",
        experiment.title
    );
    Some(estimate_row("Noise floor", estimate, note))
}

/// The congestion controls in force at the sending ends; those of the trials that were averaged.
fn congestion(dataset: &Dataset<'_>) -> Option<Row> {
    let valid = dataset.outcomes.iter().filter(|outcome| outcome.is_valid());
    let valid: BTreeSet<TrialId> = valid.map(|outcome| outcome.trial).collect();
    let mut trials: BTreeMap<&str, BTreeSet<TrialId>> = BTreeMap::new();
    let mut asked = true;
    for flow in &dataset.recording.flows {
        let sends = matches!(flow.part, Part::Sender | Part::Requester);
        if !sends || !valid.contains(&flow.trial) {
            continue;
        }
        let mut settings = flow.settings.iter();
        let Some(setting) = settings.find(|setting| setting.name == "TCP_CONGESTION") else {
            continue;
        };
        let in_force = setting.effective.as_deref().or(setting.granted.as_deref());
        if let Some(in_force) = in_force {
            asked &= setting.requested.is_some();
            trials.entry(in_force).or_default().insert(flow.trial);
        }
    }
    let words: Vec<String> = match trials.len() {
        0 => return None,
        1 => trials.keys().map(|name| (*name).to_owned()).collect(),
        _ => trials
            .iter()
            .map(|(name, trials)| format!("{name} ({})", words::count(trials.len(), "trial")))
            .collect(),
    };
    let note = match asked {
        true => "asked for",
        false => "the hosts' own choice where none was asked for",
    };
    Some(row(
        "Congestion control",
        TableCell::Text(words::list(&words)),
        note,
    ))
}

fn plain_rows(dataset: &Dataset<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = dataset
        .cells
        .iter()
        .take(CELLS_MAX)
        .map(|cell| cell_row(dataset, cell))
        .collect();
    if dataset.cells.len() > CELLS_MAX {
        let more = words::count(dataset.cells.len() - CELLS_MAX, "more cell");
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
    let refused = cell
        .invalid
        .iter()
        .find_map(|outcome| match &outcome.validity {
            Validity::Invalid(reason) => Some(reason.to_string()),
            Validity::Valid => None,
        });
    let limiter = || limiter_of(dataset, cell).map(|verdict| verdict.limiter.title());
    let note = refused.or_else(|| limiter().map(|title| format!("limited by {title}")));
    row(what, value, note.unwrap_or_default())
}

/// What else was read of the only cell.
fn details(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Vec<Row> {
    const DETAILS: &[&str] = &[
        name::RTT_P50,
        name::RTT_P99,
        name::RTT_P999,
        name::TCP_RTT,
        name::RETRANSMITTED,
        name::PAYLOAD_PER_SEGMENT,
        name::SEGMENTS_PER_ACK,
        name::STALL_MAX,
        name::CPU_BUSY,
        name::CPU_PER_GBIT,
    ];
    let wire = dataset
        .path
        .limit_bps(&cell.workload, None, None)
        .zip(cell.mean(name::THROUGHPUT));
    let wire = wire.map(|(limit, throughput)| {
        let note = format!("{} of it reached", words::percent(throughput / limit));
        row(
            "payload that the wire can carry",
            TableCell::Number(limit, Unit::BitsPerSecond),
            note,
        )
    });
    let read = |response: &&str| {
        Some(estimate_row(
            describe(response).title,
            cell.estimate(response)?,
            "",
        ))
    };
    wire.into_iter()
        .chain(DETAILS.iter().filter_map(read))
        .collect()
}
