//! Chapter 4: throughput by transfer size, socket buffer and MTU.

use std::cmp::Ordering;

use linerate_model::analysis::{Chapter, Curve, Figure};
use linerate_model::experiment::{Cell, Factor, Level};
use linerate_model::workload::Kind;

use super::study_chapter::{Content, Measured, StudyChapter};
use super::{draw, suffices};
use crate::dataset::{CellOutcomes, varied};
use crate::diagnose::Told;
use crate::published::TRU64_STREAM;
use crate::reduce::name;
use crate::verdicts::ScalePlateau;
use crate::words;

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 4,
    content: Content::Experiment(Kind::Stream, fill, |_| Vec::new()),
};

/// Replaces the figure and the answer.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, _told: &Told<'_>) {
    let Measured { cells, .. } = *measured;
    if let Some(figure) = families(cells) {
        chapter.figures = vec![figure];
    }
    chapter.answer = answer(measured).or(chapter.answer.take());
}

/// One picture of the three: a curve along the transfers for each socket buffer and MTU.
fn families(cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let caption = "A curve for each socket buffer and MTU. Where curves of different buffers lie on each other the transfer \
                   size binds, where they part the buffer does, and where those of one buffer part the MTU does. Points are \
                   means with 95 % intervals (of two values, their range).";
    let id = "transfer-size-throughput";
    let mut figure = draw::figure(cells, Factor::MessageBytes, name::THROUGHPUT, id, caption)?;
    figure.curves.extend(published());
    Some(figure)
}

/// The published families: along transfers, and the ends of those along buffers at 64 KiB.
fn published() -> impl Iterator<Item = Curve> {
    [("61440", "1500"), ("32768", "9000")]
        .into_iter()
        .map(|(buffer, mtu)| {
            let filter = [("socket_buffer_bytes", buffer), ("mtu_bytes", mtu)];
            let pairs = TRU64_STREAM.pairs("transfer_bytes", "mbit_per_s", &filter);
            let points = pairs.into_iter().map(|(bytes, mbit)| (bytes, mbit * 1e6));
            let kib = buffer.parse::<f64>().unwrap_or_default() / 1024.0;
            draw::published(
                format!("AlphaServer ES40, 2001: {kib} KiB, MTU {mtu}"),
                points,
            )
        })
}

/// Says from where on each of the three no longer binds while the other two are at their largest, and what small buffers
/// make of the transfers.
fn answer(measured: &Measured<'_, '_>) -> Option<String> {
    let Measured {
        dataset,
        experiment,
        cells,
    } = *measured;
    let plateaus: Vec<&ScalePlateau> = dataset.verdicts().plateaus_of(&experiment.name).collect();
    let largest_others = |own: Factor| {
        let others = varied(cells).into_iter().filter(|factor| *factor != own);
        let level = |factor| Some((factor, largest(cells, factor)?));
        others.map(level).collect::<Option<Cell>>()
    };
    let at_largest = [Factor::MessageBytes, Factor::SocketBuffer].map(|factor| {
        let others = largest_others(factor)?;
        let has_all = |of: &Cell| others.iter().all(|(it, level)| of.get(it) == Some(level));
        let mut own = plateaus.iter().copied();
        own.find(|it| it.factor == factor && has_all(&it.others))
    });
    let bounds = at_largest.iter().flatten().filter_map(|found| {
        let size = suffices::binds_below(found)?;
        let what = match found.factor {
            Factor::SocketBuffer => "socket buffers",
            _ => "transfers",
        };
        Some(format!("{what} below {size}"))
    });
    let bounds: Vec<String> = bounds.collect();
    let binds = (!bounds.is_empty()).then(|| {
        format!(
            "With the other two at their largest, {} bind.",
            words::list(&bounds)
        )
    });
    let details = at_largest
        .iter()
        .flatten()
        .map(|found| suffices::sentence(found));
    let mtu = dataset.verdicts().effects_of(&experiment.name);
    let mtu = mtu.filter(|effect| effect.factor == Factor::Mtu);
    let mtu = mtu.map(draw::verdict_sentence);
    let sentences: Vec<String> = binds.into_iter().chain(details).chain(mtu).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Returns the largest level of `factor`.
fn largest(cells: &[&CellOutcomes<'_>], factor: Factor) -> Option<Level> {
    let number = |cell: &&&CellOutcomes<'_>| cell.number(factor);
    let known = cells.iter().filter(|cell| number(cell).is_some());
    let largest =
        known.max_by(|a, b| number(a).partial_cmp(&number(b)).unwrap_or(Ordering::Equal))?;
    largest.level(factor).cloned()
}
