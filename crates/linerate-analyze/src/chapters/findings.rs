//! Chapter 15: what limits each chapter, and what throughput costs.

use std::collections::BTreeMap;

use linerate_model::analysis::{Chapter, Table, TableCell};
use linerate_model::finding::{Comparison, Verdict};
use linerate_model::limiter::Limiter;
use linerate_model::number;
use linerate_model::unit::Unit;

use super::draw;
use super::study_chapter::{Content, StudyChapter};
use crate::compare::interval::MANY;
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
        "Each valid cell is checked against the limiters in order of precedence; cost is the CPU \
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

/// Whether all levels of a curve of buffers are shown to lose no more than the margin.
fn loses_nothing(curve: &Comparison) -> bool {
    let least = 1.0 - curve.margin;
    let mut levels = curve.levels.iter();
    curve.is_plateau && levels.all(|(.., ratio)| ratio.low.is_some_and(|low| low > least))
}

/// Says at which levels it differs; of a curve of buffers the ratio beside is that of the first.
fn differing(comparison: &Comparison) -> String {
    let levels = comparison.levels.iter();
    let differ = levels.filter(|(_, verdict, _)| *verdict == Verdict::Differs);
    let names: Vec<&str> = differ.map(|(level, ..)| level.as_str()).collect();
    match (names.as_slice(), comparison.is_plateau) {
        ([], _) => "differs".to_owned(),
        ([one], true) => format!("differs: {one}"),
        ([first, others @ ..], true) => {
            format!("differs: {first} as shown; {}", others.join(", "))
        }
        (names, false) => format!("differs with {}; on average as shown", names.join(", ")),
    }
}

/// One row for each comparison of the report.
fn verdicts(dataset: &Dataset<'_>) -> Table {
    let row = |comparison: Comparison| {
        let verdict = match (comparison.verdict, comparison.more) {
            (Verdict::Differs, _) => differing(&comparison),
            (Verdict::Same, _) => {
                let mean = if comparison.is_plateau || comparison.levels.is_empty() {
                    ""
                } else {
                    "on average the "
                };
                format!("{mean}same within {}", words::percent(comparison.margin))
            }
            (Verdict::NotDecided, _) if loses_nothing(&comparison) => format!(
                "loses less than {}; whether it gains is not decided",
                words::percent(comparison.margin)
            ),
            (Verdict::NotDecided, Some(MANY..)) => {
                "not decided (needs many more replicates)".to_owned()
            }
            (Verdict::NotDecided, Some(more)) => {
                let more = number::counted(more, "more replicate");
                format!("not decided (needs about {more})")
            }
            (Verdict::NotDecided, None) => "not decided".to_owned(),
        };
        vec![
            TableCell::Text(comparison.experiment),
            TableCell::Text(draw::sentence(&comparison.what)),
            TableCell::Text(verdict),
            TableCell::Estimate(comparison.effect),
        ]
    };
    let columns = ["Experiment", "Compared", "Verdict", "Ratio"];
    Table::new(
        "Every comparison with its verdict, and the interval that decided it",
        columns,
        comparisons(dataset).into_iter().map(row),
    )
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
