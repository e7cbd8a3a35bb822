//! Chapter 2: the window that link, or path, and round trip ask for. Derived, without trials of its own.

use linerate_model::analysis::{Axis, Chapter, Figure, Origin, Scale, Table, TableCell};
use linerate_model::unit::{Bytes, Nanos, Unit};
use linerate_model::wire::{bandwidth_delay_bytes, window_limit};
use linerate_model::workload::{Direction, Workload};

use super::draw;
use super::study_chapter::{Content, Row, StudyChapter, row};
use crate::dataset::Dataset;
use crate::diagnose::Told;
use crate::study::{self, PUBLISHED_LINK, PUBLISHED_RTT, RateOf, Window};
use crate::words;

/// Windows of the computed curves: 1 KiB to 1 MiB, or more where more is needed.
const WINDOW_POWER_MIN: u32 = 10;
const WINDOW_POWER_MAX: u32 = 20;

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 2,
    content: Content::Derived(chapter, lines),
};

/// Returns the chapter.
fn chapter(dataset: &Dataset<'_>, _told: &Told<'_>) -> Chapter {
    let windows = study::windows(dataset);
    Chapter {
        id: "window".to_owned(),
        title: "Window".to_owned(),
        question: "How many bytes must be in flight to fill the link?".to_owned(),
        answer: answer(dataset, &windows),
        method: method(dataset),
        figures: figure(dataset, &windows).into_iter().collect(),
        tables: vec![table(dataset, &windows)],
        ..Chapter::default()
    }
}

fn method(dataset: &Dataset<'_>) -> String {
    let rate = match study::rate(dataset) {
        Some(rate) if rate.of == RateOf::Path => "the throughput that the path's rate limits",
        _ => "the signalling rate of the link",
    };
    format!(
        "Derived from the round trips that were measured and {rate}: bytes in flight = rate × round trip / 8. \
         The interval is that of the round trip."
    )
}

fn answer(dataset: &Dataset<'_>, windows: &[Window]) -> Option<String> {
    let Some(first) = windows.first() else {
        return Some(why_none(dataset).to_owned());
    };
    let published = if dataset.published {
        format!(
            " The published example needs {} for 1 Gbit/s over {PUBLISHED_RTT}.",
            published_bytes()
        )
    } else {
        String::new()
    };
    let little = if first.is_little() {
        ": less than a segment, so that no window is too small"
    } else {
        ""
    };
    Some(format!(
        "{} for {} over the {} of {}{little}.{published}",
        words::estimate(&first.bytes),
        Unit::BitsPerSecond.display(first.rate.bps),
        first.basis,
        words::estimate(&first.rtt),
    ))
}

fn why_none(dataset: &Dataset<'_>) -> &'static str {
    match study::rate(dataset) {
        None => "The rate of the link is not known, so no window can be computed.",
        Some(_) => "No round trip was measured, so no window can be computed.",
    }
}

fn published_bytes() -> String {
    let bytes = bandwidth_delay_bytes(PUBLISHED_LINK, PUBLISHED_RTT);
    words::number(Unit::Bytes, bytes.0 as f64)
}

fn table(dataset: &Dataset<'_>, windows: &[Window]) -> Table {
    let mut rows: Vec<Vec<TableCell>> = windows
        .iter()
        .map(|window| {
            vec![
                TableCell::Text(draw::sentence(&window.basis)),
                TableCell::Number(window.rate.bps, Unit::BitsPerSecond),
                TableCell::Estimate(window.rtt),
                TableCell::Estimate(window.bytes),
            ]
        })
        .collect();
    rows.extend(dataset.published.then(|| {
        vec![
            TableCell::Text("Published: Sun Fire 6800, 1460 B, 2003".to_owned()),
            TableCell::Number(PUBLISHED_LINK.0, Unit::BitsPerSecond),
            TableCell::Number(PUBLISHED_RTT.0 as f64, Unit::Nanoseconds),
            TableCell::Text(published_bytes()),
        ]
    }));
    Table::new(
        "Bandwidth-delay product (BDP)",
        ["Round trip of", "Rate", "Round trip", "Window"],
        rows,
    )
}

/// Returns the payload that full segments carry: a link's rate has headers, preambles and gaps in it.
fn carried(dataset: &Dataset<'_>, window: &Window) -> f64 {
    let limit = |way| {
        let stream = Workload::stream(way);
        dataset.path.limit_bps(&stream, None, None)
    };
    // As the rate is that of the wider way.
    let ways = [Direction::ToServer, Direction::FromServer];
    let of_link = || ways.into_iter().filter_map(limit).max_by(f64::total_cmp);
    match window.rate.of {
        RateOf::Link => of_link().unwrap_or(window.rate.bps),
        RateOf::Path => window.rate.bps,
    }
}

/// Throughput that a window allows: window / round trip, up to what the wire carries.
fn figure(dataset: &Dataset<'_>, windows: &[Window]) -> Option<Figure> {
    let rate = carried(dataset, windows.first()?);
    // Beyond the largest bend, so that it is seen.
    let most = windows
        .iter()
        .map(|window| window.bytes.value)
        .fold(0.0, f64::max);
    let last = WINDOW_POWER_MAX.max(most.max(1.0).log2().ceil() as u32 + 1);
    let curve = |name: String, origin, rtt_ns: f64, cap: f64| {
        let points = (WINDOW_POWER_MIN..=last).map(|power| {
            let window = Bytes(1 << power);
            let limit = window_limit(window, Nanos(rtt_ns.max(1.0).round() as u64)).0;
            (window.0 as f64, limit.min(cap))
        });
        draw::curve(name, origin, points)
    };
    let mut curves: Vec<_> = windows
        .iter()
        .map(|window| {
            let name = format!(
                "{}: {}",
                window.basis,
                words::number(Unit::Nanoseconds, window.rtt.value)
            );
            curve(name, Origin::Computed, window.rtt.value, rate)
        })
        .collect();
    if dataset.published {
        let name = format!("published: {PUBLISHED_RTT} at {PUBLISHED_LINK}");
        let (rtt_ns, rate) = (PUBLISHED_RTT.0 as f64, PUBLISHED_LINK.0);
        curves.push(curve(name, Origin::Published, rtt_ns, rate));
    }
    Some(Figure {
        id: "window-limit".to_owned(),
        title: "Throughput that a window allows".to_owned(),
        caption:
            "Computed: one window per round trip, up to what full segments carry. The bend is the \
                  window needed."
                .to_owned(),
        x: Axis::new("window", Unit::Bytes, Scale::Log),
        y: Axis::new("throughput", Unit::BitsPerSecond, Scale::Linear),
        curves,
    })
}

fn lines(dataset: &Dataset<'_>) -> Vec<Row> {
    needed(dataset).into_iter().collect()
}

fn needed(dataset: &Dataset<'_>) -> Option<Row> {
    let windows = study::windows(dataset);
    // What is less than a segment needs none.
    let first = windows.first().filter(|window| !window.is_little())?;
    let rate = Unit::BitsPerSecond.display(first.rate.bps);
    Some(row(
        "Window needed",
        first.bytes,
        format!("{rate} × {}", first.basis),
    ))
}
