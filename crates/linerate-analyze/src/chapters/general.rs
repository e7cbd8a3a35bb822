//! Any experiment that is not a chapter with a file of its own.
//!
//! One figure of the response against the first factor that has numbers, a curve for each
//! combination of the others, and one table of everything that was read.

use linerate_model::analysis::{Chapter, Figure};
use linerate_model::experiment::{Cell, DesignKind, Experiment, Factor};

use super::findings::verdicts_of;
use super::{draw, series, strips};
use crate::dataset::{CellOutcomes, Dataset, by_value, varied};
use crate::diagnose::Found;
use crate::reduce::{describe, name};
use crate::words;

const STREAM: &[&str] = &[
    name::THROUGHPUT,
    name::RETRANSMITTED,
    name::TCP_RTT,
    name::PAYLOAD_PER_SEGMENT,
    name::SEGMENTS_PER_ACK,
    name::RWND_LIMITED,
    name::SNDBUF_LIMITED,
    name::STALL_MAX,
    name::CPU_BUSY,
    name::WORKER_BUSY_SHARE_MAX,
];

const BOTH_WAYS: &[&str] = &[
    name::THROUGHPUT,
    name::THROUGHPUT_TO_SERVER,
    name::THROUGHPUT_FROM_SERVER,
    name::RETRANSMITTED,
    name::TCP_RTT,
    name::PAYLOAD_PER_SEGMENT,
    name::SEGMENTS_PER_ACK,
    name::CPU_BUSY,
    name::WORKER_BUSY_SHARE_MAX,
];

const RR: &[&str] = &[
    name::TRANSACTIONS,
    name::RTT_P50,
    name::RTT_P99,
    name::RTT_P999,
    name::ONE_WAY,
    name::ACKS_PER_TRANSACTION,
    name::RETRANSMITTED_BOTH,
    name::CPU_BUSY,
    name::WORKER_BUSY_SHARE_MAX,
];

/// Returns the chapter of `experiment`.
pub(super) fn chapter(
    dataset: &Dataset<'_>,
    experiment: &Experiment,
    findings: &[Found<'_>],
) -> Chapter {
    let cells = dataset.cells_of(&experiment.name);
    let mut figures = match experiment.design {
        DesignKind::Full => full_figure(experiment, &cells).into_iter().collect(),
        DesignKind::OneAtATime => factor_figures(experiment, &cells),
        // No curve of some of all combinations has more than a point.
        DesignKind::LatinHypercube => Vec::new(),
        DesignKind::Fractional { .. } if experiment.fraction().is_some() => Vec::new(),
        DesignKind::Fractional { .. } => full_figure(experiment, &cells).into_iter().collect(),
    };
    if let [cell] = cells.as_slice() {
        let course = series::figure(dataset, experiment, cell);
        if dataset.is_one_measurement() {
            figures.extend(strips::figures(dataset, experiment, cell, course));
        } else {
            figures.extend(course);
        }
    }
    let responses = match cells.iter().any(|cell| cell.is_rr()) {
        true => RR,
        false if cells.iter().any(|cell| cell.workload.goes_both_ways()) => BOTH_WAYS,
        false => STREAM,
    };
    Chapter {
        number: experiment.chapter,
        id: experiment.name.clone(),
        title: experiment.title.clone(),
        question: experiment.question.clone(),
        answer: answer(&cells),
        method: experiment.method.clone(),
        figures,
        tables: verdicts_of(dataset, experiment)
            .into_iter()
            // What a change proves is decided by its own margin and error.
            .filter(|_| !experiment.is_proof())
            .chain([draw::table("All cells", &cells, responses)])
            .collect(),
        findings: findings
            .iter()
            .filter(|found| found.is_about(experiment))
            .map(Found::id)
            .collect(),
        trials: draw::trial_lines(dataset, experiment),
        ..Chapter::default()
    }
}

fn full_figure(experiment: &Experiment, cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let x = horizontal(experiment, cells)?;
    let id = format!(
        "{}-{}",
        experiment.name,
        experiment.response.replace('_', "-")
    );
    draw::figure(
        cells,
        x,
        &experiment.response,
        id,
        &draw::caption(&experiment.response),
    )
}

/// A figure for each factor, of the cells in which all others are at the baseline.
fn factor_figures(experiment: &Experiment, cells: &[&CellOutcomes<'_>]) -> Vec<Figure> {
    let figure = |x: Factor| {
        let at_baseline = |cell: &&&CellOutcomes<'_>| {
            let others = |levels: &Cell| {
                let mut others = levels.clone();
                others.remove(&x);
                others
            };
            others(&cell.cell) == others(&experiment.baseline)
        };
        let cells: Vec<_> = cells.iter().filter(at_baseline).copied().collect();
        let id = format!("{}-{}", experiment.name, x.name().replace('_', "-"));
        draw::figure(
            &cells,
            x,
            &experiment.response,
            id,
            &draw::caption(&experiment.response),
        )
    };
    varied(cells).into_iter().filter_map(figure).collect()
}

/// Returns the first varied factor of the document with numbers, else the first varied one.
fn horizontal(experiment: &Experiment, cells: &[&CellOutcomes<'_>]) -> Option<Factor> {
    let varied = varied(cells);
    let in_order = experiment
        .factors
        .iter()
        .map(|(factor, _)| *factor)
        .filter(|factor| varied.contains(factor));
    let candidates: Vec<Factor> = in_order.chain(varied.iter().copied()).collect();
    let numeric = |factor: &&Factor| cells.iter().all(|cell| cell.number(**factor).is_some());
    candidates
        .iter()
        .find(numeric)
        .or(candidates.first())
        .copied()
}

fn answer(cells: &[&CellOutcomes<'_>]) -> Option<String> {
    let response = &cells.first()?.experiment.response;
    let known = by_value(cells, response);
    let (least, most) = known.first().zip(known.last())?;
    let title = describe(response).title;
    if known.len() == 1 {
        return Some(format!(
            "{}: {}.",
            draw::sentence(title),
            words::estimate(&most.1)
        ));
    }
    Some(format!(
        "{} ranges from {} ({}) to {} ({}).",
        draw::sentence(title),
        words::estimate(&least.1),
        words::whole_cell(&least.0.cell),
        words::estimate(&most.1),
        words::whole_cell(&most.0.cell),
    ))
}
