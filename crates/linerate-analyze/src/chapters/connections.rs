//! Chapter 8: throughput, CPU time, fairness and memory by the number of connections.

use linerate_model::analysis::{Axis, Chapter, Curve, Figure, Scale};
use linerate_model::experiment::Factor;
use linerate_model::number;
use linerate_model::unit::Unit;
use linerate_model::workload::{Direction, Kind};

use super::draw;
use super::study_chapter::{Content, Measured, Row, StudyChapter, row};
use crate::dataset::{CellOutcomes, Dataset, by_value};
use crate::diagnose::{Told, limits};
use crate::published::{NEHALEM, NEHALEM_TCP};
use crate::reduce::name;
use crate::words;

/// What a connection costs and gets.
const EACH: &[&str] = &[
    name::THROUGHPUT,
    name::CPU_PER_KIB,
    name::CYCLES_PER_BYTE,
    name::CYCLES_PER_BYTE_NOMINAL,
    name::CONTEXT_SWITCHES,
    name::FAIRNESS,
    name::FLOWS_IDLE,
    name::TCP_MEMORY_PER_FLOW,
];

/// Modes of the CPUs, with what curves of them are called.
const DRAWN_MODES: &[(&str, &str)] = &[
    (name::CPU_USER, "user"),
    (name::CPU_SYSTEM, "system"),
    (name::CPU_SOFTIRQ, "softirq"),
];

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 8,
    content: Content::Experiment(Kind::Stream, fill, lines),
};

/// Connections that last for one exchange.
pub(super) const RATE: StudyChapter = StudyChapter {
    number: 8,
    content: Content::Experiment(Kind::Crr, fill_rate, |_| Vec::new()),
};

/// Replaces figures and answer, and adds the table of what a connection costs and gets.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, _told: &Told<'_>) {
    let Measured { dataset, cells, .. } = *measured;
    let drawn = [
        (name::THROUGHPUT, "throughput"),
        (name::CPU_PER_KIB, "cost"),
    ];
    let mut figures = draw::figures(cells, Factor::Connections, "connections", &drawn);
    if let Some(figure) = figures.first_mut() {
        figure.curves.extend(published(Direction::ToServer, "rx"));
        figure.curves.extend(published(Direction::FromServer, "tx"));
    }
    figures.extend(modes(dataset, cells));
    let title = "What a connection gets and costs";
    chapter.tables.insert(0, draw::table(title, cells, EACH));
    let answers = [Direction::ToServer, Direction::FromServer];
    let answers: Vec<String> = answers
        .into_iter()
        .filter_map(|way| answer(measured, way))
        .collect();
    draw::replace(chapter, figures, &answers);
}

/// The published curve of a direction as that server saw it.
fn published(way: Direction, word: &str) -> Option<Curve> {
    let pairs = NEHALEM_TCP.pairs("connections", "mbit_per_s", &[("direction", word)]);
    let points = pairs.into_iter().map(|(flows, mbit)| (flows, mbit * 1e6));
    let name = format!("{NEHALEM}, {}", way.in_words());
    Some(draw::published(&name, points))
}

/// CPU time by mode.
fn modes(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let x = Factor::Connections;
    let curves = DRAWN_MODES
        .iter()
        .flat_map(|(response, word)| draw::curves(cells, x, response, word));
    let curves: Vec<Curve> = curves.collect();
    let caption = if dataset.is_one_machine() {
        "CPUs of the whole machine, which all hosts share, by mode."
    } else {
        "CPUs of the server by mode."
    };
    (!curves.is_empty()).then(|| Figure {
        id: "connections-modes".to_owned(),
        title: "What the CPUs did".to_owned(),
        caption: caption.to_owned(),
        x: draw::factor_axis(cells, x),
        y: Axis::new("busy CPUs", Unit::Cpus, Scale::Linear),
        curves,
    })
}

/// Cells of one direction, by their connections.
fn of_way<'c, 'd, 'a>(
    cells: &'c [&'d CellOutcomes<'a>],
    way: Direction,
) -> Vec<&'c &'d CellOutcomes<'a>> {
    let goes = |cell: &&&CellOutcomes<'_>| cell.workload.traffic.direction() == Some(way);
    let mut own: Vec<_> = cells.iter().filter(goes).collect();
    own.sort_by_key(|cell| cell.workload.connections);
    own
}

/// Says where a direction is at its best, and what becomes of it with most connections.
fn answer(measured: &Measured<'_, '_>, way: Direction) -> Option<String> {
    let own = of_way(measured.cells, way);
    let (best, most) = by_value(own.iter().copied(), name::THROUGHPUT).pop()?;
    let flows =
        |cell: &CellOutcomes<'_>| number::counted(cell.workload.connections as usize, "connection");
    let mut text = format!(
        "The most {} is {}, of {}.",
        way.in_words(),
        words::estimate(&most),
        flows(best)
    );
    let last = own.last().filter(|last| last.cell != best.cell);
    if let Some((last, value)) =
        last.and_then(|last| Some((last, last.estimate(name::THROUGHPUT)?)))
    {
        text += &format!(" That of {} is {}", flows(last), words::estimate(&value));
        if let Some(fairness) = last.estimate(name::FAIRNESS) {
            text += &format!(", with a Jain index of {}", words::estimate(&fairness));
        }
        if let Some(limiter) = limits(measured.dataset, last) {
            text += &format!(", limited by {}", limiter.title());
        }
        text += ".";
    }
    Some(text)
}

/// Throughput with most connections, each way.
fn lines(measured: &Measured<'_, '_>) -> Vec<Row> {
    let line = |way: Direction| {
        let own = of_way(measured.cells, way);
        let last = own.last()?;
        let cost = last.estimate(name::CPU_PER_KIB);
        let cost = cost.map_or(String::new(), |cost| {
            format!("{} of CPU time per KiB", words::estimate(&cost))
        });
        let what = format!("Throughput, {}", words::whole_cell(&last.cell));
        Some(row(what, last.estimate(name::THROUGHPUT)?, cost))
    };
    [Direction::ToServer, Direction::FromServer]
        .into_iter()
        .filter_map(line)
        .collect()
}

/// Replaces the answer of connections per second.
fn fill_rate(chapter: &mut Chapter, measured: &Measured<'_, '_>, _told: &Told<'_>) {
    let Some((best, most)) = by_value(measured.cells, name::CONNECTIONS).pop() else {
        return;
    };
    let cost = best.estimate(name::CPU_PER_TRANSACTION);
    let cost = cost.map_or(String::new(), |cost| {
        format!(", at {} of CPU time each", words::estimate(&cost))
    });
    chapter.answer = Some(format!(
        "Most connections per second are {} with {}{cost}.",
        words::estimate(&most),
        words::whole_cell(&best.cell)
    ));
}
