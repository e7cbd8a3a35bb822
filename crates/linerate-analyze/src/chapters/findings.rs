//! Chapter 15: what limits each chapter, and what throughput costs.

use std::collections::BTreeMap;

use linerate_model::analysis::{Chapter, Table, TableCell};
use linerate_model::experiment::Experiment;
use linerate_model::finding::Comparison;
use linerate_model::limiter::Limiter;
use linerate_model::number;
use linerate_model::unit::Unit;

use super::draw;
use super::study_chapter::{Content, StudyChapter};
use crate::dataset::{CellOutcomes, Dataset, by_value};
use crate::diagnose::Told;
use crate::diagnose::{Found, LOST_SHARE_MIN, limits};
use crate::reduce::{Values, name};
use crate::verdicts::comparisons;
use crate::words;

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 15,
    content: Content::Derived(chapter, |_| Vec::new()),
};

/// Returns the chapter.
fn chapter(dataset: &Dataset<'_>, told: &Told<'_>) -> Chapter {
    let findings = &told.findings;
    let mut method =
        "What limits each valid cell follows from what was counted of it; cost is the CPU \
                      time of linerate's own threads and of the kernel's work for them, over throughput, in the \
                      best cell of each stream experiment."
            .to_owned();
    if dataset.is_one_machine() {
        method += " All hosts share one machine's CPUs, so the cost includes senders, receivers and what connects them.";
    }
    let tables = [
        Some(verdicts(dataset)),
        Some(limiters(dataset)),
        cost(dataset),
    ];
    Chapter {
        id: "findings".to_owned(),
        title: "Limits and cost".to_owned(),
        question: "What limits each number, and what does throughput cost?".to_owned(),
        answer: answer(dataset),
        method,
        tables: tables
            .into_iter()
            .flatten()
            .filter(|table| !table.rows.is_empty())
            .collect(),
        findings: findings.iter().map(Found::id).collect(),
        ..Chapter::default()
    }
}

/// Limiters that the answer names; the table has all of them.
const NAMED_MAX: usize = 3;

fn answer(dataset: &Dataset<'_>) -> Option<String> {
    let cost = best_with_cpu(dataset).and_then(|cell| cell.estimate(name::CPU_PER_GBIT));
    let cost = cost.map(|cost| {
        format!(
            "1 Gbit/s costs {} at the best throughput.",
            words::estimate(&cost)
        )
    });
    let sentences: Vec<String> = limited(dataset).into_iter().chain(cost).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Says what limits how many of all cells.
fn limited(dataset: &Dataset<'_>) -> Option<String> {
    let mut counts: BTreeMap<Option<Limiter>, usize> = BTreeMap::new();
    for cell in dataset.measured() {
        *counts.entry(limits(dataset, cell)).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    let unknown = counts.remove(&None).unwrap_or(0);
    let known = counts
        .into_iter()
        .filter_map(|(limiter, count)| Some((limiter?.title(), count)));
    let mut known: Vec<(&str, usize)> = known.collect();
    known.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let others: usize = known.iter().skip(NAMED_MAX).map(|(_, count)| count).sum();
    known.truncate(NAMED_MAX);
    known.extend((others > 0).then_some(("other limiters", others)));
    let cells = number::counted(all, "cell");
    let mut named = known
        .iter()
        .map(|(title, count)| format!("{title} in {count}"));
    let Some(first) = named.next() else {
        return (all > 0).then(|| format!("No limiter is identified in {cells}."));
    };
    let others: String = named.map(|other| format!(", by {other}")).collect();
    let unknown = match unknown {
        0 => String::new(),
        unknown => format!("; in {unknown} no limiter is identified"),
    };
    Some(format!("Limited by {first} of {cells}{others}{unknown}."))
}

/// One row for each comparison of the report.
fn verdicts(dataset: &Dataset<'_>) -> Table {
    let row = |comparison: Comparison| {
        let mut row = vec![TableCell::Text(comparison.experiment.clone())];
        row.extend(compared(comparison));
        row
    };
    let columns = ["Experiment", "Compared", "Verdict", "Ratio"];
    Table::new(
        "Every comparison with its verdict, and the interval that decided it",
        columns,
        comparisons(dataset).into_iter().map(row),
    )
}

/// What is compared, the verdict, and the ratio.
fn compared(comparison: Comparison) -> [TableCell; 3] {
    [
        TableCell::Text(draw::sentence(&comparison.what)),
        TableCell::Text(comparison.verdict_in_words()),
        TableCell::Estimate(comparison.effect),
    ]
}

/// One row for each comparison of `experiment`, where it has any.
pub(super) fn verdicts_of(dataset: &Dataset<'_>, experiment: &Experiment) -> Option<Table> {
    let all = comparisons(dataset).into_iter();
    let own = all.filter(|comparison| comparison.experiment == experiment.name);
    let rows: Vec<_> = own.map(|one| compared(one).to_vec()).collect();
    let columns = ["Compared", "Verdict", "Ratio"];
    (!rows.is_empty()).then(|| {
        Table::new(
            "Comparisons, and the interval that decided each",
            columns,
            rows,
        )
    })
}

/// One row for each limiter of each experiment, with the range of the response it holds down.
fn limiters(dataset: &Dataset<'_>) -> Table {
    let mut rows = Vec::new();
    for experiment in dataset.experiments() {
        let mut by_limiter: BTreeMap<Option<Limiter>, Vec<&CellOutcomes<'_>>> = BTreeMap::new();
        for cell in dataset.cells_of(&experiment.name) {
            if !cell.valid.is_empty() {
                by_limiter
                    .entry(limits(dataset, cell))
                    .or_default()
                    .push(cell);
            }
        }
        for (limiter, cells) in by_limiter {
            let limiter = limiter.map_or("no limiter identified", Limiter::title);
            rows.push(vec![
                TableCell::Text(experiment.title.clone()),
                TableCell::Text(draw::sentence(limiter)),
                TableCell::Number(cells.len() as f64, Unit::Count),
                range(&cells),
            ]);
        }
    }
    let columns = ["Experiment", "Limiter", "Cells", "Response"];
    Table::new("Limiter of each experiment", columns, rows)
}

fn range(cells: &[&CellOutcomes<'_>]) -> TableCell {
    let response = cells.first().map(|cell| &cell.experiment.response);
    let mains = response.map_or(Vec::new(), |response| by_value(cells, response));
    match mains.as_slice() {
        [] => TableCell::Absent("not read".to_owned()),
        [(_, one)] => TableCell::Estimate(*one),
        [(_, least), .., (_, most)] => TableCell::Text(format!(
            "{} to {}",
            words::number(least.unit, least.value),
            words::number(most.unit, most.value)
        )),
    }
}

/// CPUs per Gbit/s in the best cell of each stream experiment.
fn cost(dataset: &Dataset<'_>) -> Option<Table> {
    let rows = dataset.experiments().iter().filter_map(|experiment| {
        let best = best_of(dataset, &experiment.name)?;
        Some(vec![
            TableCell::Text(experiment.title.clone()),
            TableCell::Text(words::whole_cell(&best.cell)),
            TableCell::Estimate(best.estimate(name::THROUGHPUT)?),
            TableCell::Estimate(best.estimate(name::CPU_COST)?),
            TableCell::Estimate(best.estimate(name::CPU_PER_GBIT)?),
        ])
    });
    let columns = [
        "Experiment",
        "Best cell",
        "Throughput",
        "CPUs of this run",
        "CPUs per Gbit/s",
    ];
    let title = if dataset.is_one_machine() {
        "What throughput costs (all hosts together)"
    } else {
        "What throughput costs the server"
    };
    draw::unless_empty(Table::new(title, columns, rows))
}

/// A host's CPU time is of ticks (USER_HZ, Documentation/filesystems/proc.rst).
const TICK_S: f64 = 0.01;
/// Share of a cost from which on one tick more or less is too much.
const TICK_SHARE_MAX: f64 = 0.1;

/// Returns the cell that tells what throughput costs: the one with the highest of all experiments; absent
/// where a tick in the window is too much of its cost.
pub(crate) fn best_with_cpu<'d, 'a>(dataset: &'d Dataset<'a>) -> Option<&'d CellOutcomes<'a>> {
    let experiments = dataset.experiments().iter();
    let rate = |cell: &CellOutcomes<'_>| cell.amount(name::THROUGHPUT).least();
    let best = experiments
        .filter_map(|experiment| best_of(dataset, &experiment.name))
        .max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let tick_cpus = TICK_S * 1e9 / best.experiment.timing.measure.0 as f64;
    let cost_cpus = best.mean(name::CPU_COST)?;
    (tick_cpus <= TICK_SHARE_MAX * cost_cpus).then_some(best)
}

/// Returns the cell of an experiment with the highest throughput whose CPU cost was read, of those that
/// lose no datagrams to speak of: with those lost, CPU time is not what the throughput costs.
fn best_of<'d, 'a>(dataset: &'d Dataset<'a>, experiment: &str) -> Option<&'d CellOutcomes<'a>> {
    let rate = |cell: &CellOutcomes<'_>| {
        cell.mean(name::CPU_PER_GBIT)?;
        let is_lossy = cell.reaches(name::LOSS_SHARE, LOST_SHARE_MIN);
        cell.mean(name::THROUGHPUT).filter(|_| !is_lossy)
    };
    dataset.most(experiment, rate).map(|(cell, _)| cell)
}
