//! Chapter 1: request and response.

use linerate_model::analysis::{Axis, Chapter, Figure};
use linerate_model::experiment::{Factor, Level};
use linerate_model::unit::Unit;
use linerate_model::workload::Kind;

use super::draw;
use super::study_chapter::{Content, Measured, Row, StudyChapter, row};
use crate::dataset::CellOutcomes;
use crate::diagnose::Told;
use crate::published::{SUN_FIRE, TCP_RR};
use crate::reduce::name;
use crate::study::{self, latency_cells, payload_bytes};
use crate::words;

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: study::LATENCY,
    content: Content::Experiment(Kind::Rr, fill, lines),
};

/// Replaces figures and answer.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, _told: &Told<'_>) {
    let cells = measured.cells;
    let x = Factor::PayloadBytes;
    if crate::dataset::varied(cells).contains(&x) {
        let rate = rate(cells, x);
        let round_trip = round_trip(cells, x);
        chapter.figures = rate.into_iter().chain(round_trip).collect();
    }
    chapter.answer = answer(cells).or(chapter.answer.take());
    draw::add_verdicts(chapter, measured);
}

fn rate(cells: &[&CellOutcomes<'_>], x: Factor) -> Option<Figure> {
    let caption = "Each connection waits for the response before it sends the next request. Points \
                   are means with 95 % intervals (of two values, their range).";
    let id = "latency-transactions";
    let mut figure = draw::figure(cells, x, name::TRANSACTIONS, id, caption)?;
    for ack in ["on", "off"] {
        let points = published(ack);
        let name = format!("{SUN_FIRE}, delayed ACK {ack}");
        figure.curves.push(draw::published(name, points));
    }
    Some(figure)
}

fn published(delayed_ack: &str) -> Vec<(f64, f64)> {
    TCP_RR.pairs(
        "payload_bytes",
        "transactions_per_s",
        &[("delayed_ack", delayed_ack)],
    )
}

fn round_trip(cells: &[&CellOutcomes<'_>], x: Factor) -> Option<Figure> {
    let mut curves = draw::curves(cells, x, name::RTT_P50, "median");
    curves.extend(draw::curves(cells, x, name::RTT_P99, "99th percentile"));
    if curves.is_empty() {
        return None;
    }
    let scale = draw::scale_of(&curves);
    // One transaction at a time: the mean round trip is the inverse of the rate.
    let inverse = published("on")
        .into_iter()
        .map(|(bytes, rate)| (bytes, 1e9 / rate));
    curves.push(draw::published(format!("mean, {SUN_FIRE}"), inverse));
    Some(Figure {
        id: "latency-round-trip".to_owned(),
        title: "Round trip against payload".to_owned(),
        caption: "Time from the send call of a request to the complete response. The 99th percentile is the \
                  median of the trials, of fewer than six with their range."
            .to_owned(),
        x: draw::factor_axis(cells, x),
        y: Axis::new("round trip", Unit::Nanoseconds, scale),
        curves,
    })
}

fn answer(cells: &[&CellOutcomes<'_>]) -> Option<String> {
    let mut delayed: Vec<_> = cells
        .iter()
        .filter(|cell| cell.level(Factor::DelayedAck) != Some(&Level::Switch(false)))
        .filter_map(|cell| Some((payload_bytes(cell)?, cell.estimate(name::RTT_P50)?, cell)))
        .collect();
    delayed.sort_by_key(|(bytes, ..)| *bytes);
    let (small, rtt, cell) = delayed.first()?;
    let bytes = |bytes: u64| words::number(Unit::Bytes, bytes as f64);
    let rate = cell
        .estimate(name::TRANSACTIONS)
        .map_or(String::new(), |rate| {
            format!(", at {} one at a time", words::estimate(&rate))
        });
    let mut text = format!(
        "The median round trip of {} takes {} (half of it: {}){rate}.",
        bytes(*small),
        words::estimate(rtt),
        Unit::Nanoseconds.display(rtt.value / 2.0),
    );
    if let Some((large, rtt, _)) = delayed.last().filter(|(large, ..)| large > small) {
        text += &format!(" {} take {}.", bytes(*large), words::estimate(rtt));
    }
    Some(text)
}

/// Round trips of the smallest and of the largest payload, and the rate of the smallest.
fn lines(measured: &Measured<'_, '_>) -> Vec<Row> {
    let cells = latency_cells(measured.dataset);
    let bytes = |cell: &CellOutcomes<'_>| {
        payload_bytes(cell).map(|bytes| words::number(Unit::Bytes, bytes as f64))
    };
    let round_trip = |cell: &&CellOutcomes<'_>| {
        let rtt = cell.estimate(name::RTT_P50)?;
        let p99 = cell.estimate(name::RTT_P99);
        let p99 = p99.map_or(String::new(), |p99| {
            format!("; 99th percentile {}", words::estimate(&p99))
        });
        let note = format!(
            "median; half of it {}{p99}",
            Unit::Nanoseconds.display(rtt.value / 2.0)
        );
        Some(row(format!("Round trip of {}", bytes(cell)?), rtt, note))
    };
    let rate = |cell: &&CellOutcomes<'_>| {
        let rate = cell.estimate(name::TRANSACTIONS)?;
        let what = format!("Transactions of {}", bytes(cell)?);
        Some(row(what, rate, "one connection, one at a time"))
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
