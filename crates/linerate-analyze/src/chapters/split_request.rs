//! Chapter 9: requests in several writes.

use linerate_model::analysis::{Axis, Chapter, Curve, Figure, Origin, Position, Scale};
use linerate_model::experiment::{Factor, Level};
use linerate_model::limiter::Limiter;
use linerate_model::unit::Unit;
use linerate_model::workload::Kind;

use super::draw;
use super::study_chapter::{Content, Measured, Row, StudyChapter, row};
use crate::dataset::{CellOutcomes, by_value, groups, varied};
use crate::diagnose::{Told, limits};
use crate::reduce::{describe, name};
use crate::words;

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 9,
    content: Content::Experiment(Kind::Rr, fill, lines),
};

/// Replaces figures and answer. Means, since a request that stalls is made too seldom for a median.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, _told: &Told<'_>) {
    let Measured { cells, .. } = *measured;
    let figures = [
        by_options(cells, name::RTT_MEAN, "split-request-mean"),
        by_options(cells, name::RTT_P99, "split-request-p99"),
        by_options(cells, name::TRANSACTIONS, "split-request-transactions"),
    ];
    let figures: Vec<Figure> = figures.into_iter().flatten().collect();
    if !figures.is_empty() {
        chapter.figures = figures;
    }
    chapter.answer = answer(cells).or(chapter.answer.take());
}

/// A category for each combination of options, a curve for each number of writes.
fn by_options(cells: &[&CellOutcomes<'_>], response: &str, id: &str) -> Option<Figure> {
    let options: Vec<Factor> = varied(cells)
        .into_iter()
        .filter(|factor| *factor != Factor::RequestWrites)
        .collect();
    if options.is_empty() {
        return None;
    }
    let point = |cell: &&CellOutcomes<'_>| {
        let x = Position::Name(words::cell(&cell.cell, &options));
        Some(draw::point_at(x, cell.estimate(response)?, cell))
    };
    let mut levels: Vec<_> = cells
        .iter()
        .map(|cell| cell.level(Factor::RequestWrites))
        .collect();
    levels.sort();
    levels.dedup();
    let curve = |level: &Option<&Level>| Curve {
        name: level.map_or("requests".to_owned(), |level| {
            words::level(Factor::RequestWrites, level)
        }),
        origin: Origin::Measured,
        points: cells
            .iter()
            .filter(|cell| cell.level(Factor::RequestWrites) == *level)
            .filter_map(point)
            .collect(),
    };
    let curves: Vec<Curve> = levels
        .iter()
        .map(curve)
        .filter(|curve| !curve.points.is_empty())
        .collect();
    let scale = draw::scale_of(&curves);
    let description = describe(response);
    let points = draw::points_are(response);
    let mut caption = format!(
        "Requests in one write and in several, for each combination of Nagle and delayed ACK. Points are \
         {points}."
    );
    if curves.iter().map(|curve| curve.points.len()).sum::<usize>() < cells.len() {
        caption += " None where a trial had too few requests for a percentile.";
    }
    (!curves.is_empty()).then(|| Figure {
        id: id.to_owned(),
        title: draw::sentence(&format!("{} by options", description.title)),
        caption,
        x: Axis::new("options", Unit::None, Scale::Category),
        y: Axis::new(description.title, description.unit, scale),
        curves,
    })
}

fn answer(cells: &[&CellOutcomes<'_>]) -> Option<String> {
    let most_writes = groups(cells, Factor::Nagle)
        .into_iter()
        .flat_map(|group| group.cells)
        .filter_map(|cell| cell.number(Factor::RequestWrites))
        .max_by(f64::total_cmp)?;
    let split = cells
        .iter()
        .filter(|cell| cell.number(Factor::RequestWrites) == Some(most_writes));
    let known = by_value(split, name::RTT_MEAN);
    let (fast, slow) = known.first().zip(known.last())?;
    let options = [Factor::Nagle, Factor::DelayedAck];
    Some(format!(
        "A request in {most_writes} writes takes {} on average with {}, and {} with {}.",
        words::estimate(&slow.1),
        words::cell(&slow.0.cell, &options),
        words::estimate(&fast.1),
        words::cell(&fast.0.cell, &options),
    ))
}

/// The cell whose stall is longest, else the slowest split request.
fn lines(measured: &Measured<'_, '_>) -> Vec<Row> {
    slowest(measured).into_iter().collect()
}

fn slowest(measured: &Measured<'_, '_>) -> Option<Row> {
    let Measured { dataset, cells, .. } = *measured;
    let split = cells
        .iter()
        .filter(|cell| cell.workload.traffic.request_writes() > 1);
    let (slowest, rtt) = by_value(split, name::RTT_MEAN).pop()?;
    let verdict = limits(dataset, slowest);
    let cured = dataset.beside(slowest, Factor::Nagle, Level::Switch(false));
    let cured = cured.and_then(|cell| cell.mean(name::RTT_MEAN));
    let note = match (verdict, cured) {
        (Some(Limiter::NagleDelayedAck), Some(cured)) => {
            format!(
                "Nagle waits for a delayed ACK; {} with Nagle off",
                Unit::Nanoseconds.display(cured)
            )
        }
        (Some(Limiter::NagleDelayedAck), None) => "Nagle waits for a delayed ACK".to_owned(),
        (Some(other), _) => format!("limited by {}", other.title()),
        (None, _) => "no stall by Nagle and delayed ACK is shown".to_owned(),
    };
    let what = words::whole_cell(&slowest.cell);
    Some(row(format!("Slowest split request ({what})"), rtt, note))
}
