//! Chapter 10: packets a second against their size, and the share of CPU time in user mode and copying.

use linerate_model::analysis::{Chapter, Figure, Table, TableCell};
use linerate_model::experiment::Factor;
use linerate_model::limiter::Limiter;
use linerate_model::number::agreeing;
use linerate_model::profile::Work;
use linerate_model::unit::Unit;
use linerate_model::workload::Kind;

use super::draw;
use super::study_chapter::{Content, Measured, StudyChapter};
use crate::dataset::{CellOutcomes, Dataset, varied};
use crate::diagnose::{Told, limits};
use crate::published::{CPU_SHARE, SUN_FIRE};
use crate::reduce::{Outcome, name, share_name};
use crate::words;

/// Places of the columns of what was published.
const THEIRS: [usize; 2] = [5, 8];
/// Sizes that differ by less than this part are compared: 1448 B is what 1460 B was before time
/// stamps were usual.
const ALIKE: f64 = 0.02;
/// Segments of two cells that differ by less than this part are alike.
const ALIKE_SEGMENTS: f64 = 0.1;
/// Largest payload of a segment over the smallest from which on the trials of a cell have no one size.
const SIZES_RATIO_MAX: f64 = 2.0;

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 10,
    content: Content::Experiment(Kind::Stream, fill, |_| Vec::new()),
};

/// Replaces figures and adds the table and the answer.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, _told: &Told<'_>) {
    let Measured { dataset, cells, .. } = *measured;
    if !varied(cells).contains(&Factor::MessageBytes) {
        return;
    }
    chapter.figures = [rate(cells), shares(cells)].into_iter().flatten().collect();
    chapter.tables.insert(0, table(cells, dataset.published));
    chapter.answer = answer(dataset, cells).or(chapter.answer.take());
}

fn rate(cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let caption = "Segments with payload on the wire, by TCP_INFO of the sender. If the cost of a packet \
                   does not depend on its size, the line is level.";
    let id = "packet-rate-segments";
    let x = Factor::MessageBytes;
    let mut figure = draw::figure(cells, x, name::DATA_SEGMENTS, id, caption)?;
    let messages = draw::curves(cells, x, name::MESSAGES, "messages per second");
    if let Some(curve) = figure.curves.first_mut() {
        curve.name = "data segments per second".to_owned();
    }
    figure.curves.extend(messages);
    Some(figure)
}

/// The shares that were published, beside those of both ends.
fn shares(cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let caption = "Share of the busy time of each side's CPUs, sampled 999 times per second. The client \
                   sends, the server receives.";
    let mut curves = Vec::new();
    for work in [Work::User, Work::Copy] {
        for (end, does) in [("client", "sending"), ("server", "receiving")] {
            let title = format!("{}, {does}", work.title());
            let response = share_name(end, work);
            curves.extend(draw::curves(cells, Factor::MessageBytes, &response, &title));
        }
    }
    if curves.is_empty() {
        return None;
    }
    let published = [("user_percent", Work::User), ("copy_percent", Work::Copy)];
    for (column, work) in published {
        let points = CPU_SHARE
            .pairs("payload_bytes", column, &[])
            .into_iter()
            .map(|(x, percent)| (x, percent / 100.0));
        let name = format!("{SUN_FIRE}, {}", work.title());
        curves.push(draw::published(name, points));
    }
    let mut y = draw::response_axis(&share_name("client", Work::User));
    y.label = "share of busy CPU time".to_owned();
    Some(Figure {
        id: "packet-rate-shares".to_owned(),
        title: "User mode and copying against message size".to_owned(),
        caption: caption.to_owned(),
        x: draw::factor_axis(cells, Factor::MessageBytes),
        y,
        curves,
    })
}

fn table(cells: &[&CellOutcomes<'_>], published: bool) -> Table {
    let columns = [
        "Message",
        "Data segments/s",
        "Messages per segment",
        "User mode, sending",
        "User mode, receiving",
        "User mode, published",
        "Copying, sending",
        "Copying, receiving",
        "Copying, published",
    ];
    let is_shown = |at: usize| published || !THEIRS.contains(&at);
    let row = |cell: &&CellOutcomes<'_>| -> Option<Vec<TableCell>> {
        let bytes = cell.message_bytes()?;
        let estimate = |response: &str| draw::read(cell.estimate(response));
        let row = vec![
            TableCell::Text(words::number(Unit::Bytes, bytes as f64)),
            estimate(name::DATA_SEGMENTS),
            estimate(name::MESSAGES_PER_SEGMENT),
            estimate(&share_name("client", Work::User)),
            estimate(&share_name("server", Work::User)),
            self::published("user_percent", bytes),
            estimate(&share_name("client", Work::Copy)),
            estimate(&share_name("server", Work::Copy)),
            self::published("copy_percent", bytes),
        ];
        let shown = row.into_iter().enumerate().filter(|(at, _)| is_shown(*at));
        Some(shown.map(|(_, cell)| cell).collect())
    };
    let columns = columns
        .into_iter()
        .enumerate()
        .filter(|(at, _)| is_shown(*at));
    Table::new(
        if published {
            format!("Packets and shares; published: {SUN_FIRE}")
        } else {
            "Packets and shares".to_owned()
        },
        columns.map(|(_, column)| column),
        cells.iter().filter_map(row),
    )
}

fn published(column: &str, bytes: u64) -> TableCell {
    let bytes = bytes as f64;
    let pairs = CPU_SHARE.pairs("payload_bytes", column, &[]);
    let alike = pairs
        .iter()
        .find(|(size, _)| (size - bytes).abs() <= ALIKE * bytes);
    TableCell::of(
        alike.map(|(_, percent)| (*percent, Unit::Percent)),
        "not published",
    )
}

/// Rates that unlike things limit say nothing of what size costs: those stand beside each other, with their
/// limiters, and are not compared. Nor are those of segments that are alike, and cells whose trials sent
/// unlike segments are left out: they have no one size.
fn answer(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Option<String> {
    let known = || {
        let known = cells.iter().filter(|cell| !cell.valid.is_empty());
        known.filter(|cell| has_one_size(cell)).filter_map(|cell| {
            let rate = cell.mean(name::DATA_SEGMENTS)?;
            Some((cell.message_bytes()?, rate, cell))
        })
    };
    let (small, small_rate, at_small) = known().min_by_key(|(bytes, ..)| *bytes)?;
    let (large, large_rate, at_large) = known().max_by_key(|(bytes, ..)| *bytes)?;
    if small == large {
        return None;
    }
    // Of trials that differ by much the mean alone says little.
    let rate = |cell: &CellOutcomes<'_>| {
        let rate = cell.estimate(name::DATA_SEGMENTS);
        let count = rate.map(|rate| rate.map(Unit::Count, |rate| rate));
        count.map_or(String::new(), |count| words::estimate(&count))
    };
    let size = |bytes: u64| words::number(Unit::Bytes, bytes as f64);
    let payloads = [payload_bytes(at_small)?, payload_bytes(at_large)?];
    let [small_segment, large_segment] = payloads.map(|bytes| words::number(Unit::Bytes, bytes));
    let are_alike = payloads[0] >= (1.0 - ALIKE_SEGMENTS) * payloads[1];
    let limiters = (limits(dataset, at_small), limits(dataset, at_large));
    let is_same = limiters.0.is_some() && limiters.0 == limiters.1;
    let by = |limiter: Option<Limiter>| match limiter.filter(|_| !is_same) {
        Some(limiter) => format!(", limited by {}", limiter.title()),
        None => String::new(),
    };
    let sends = if are_alike {
        format!(
            "Messages of {} and of {} leave in like segments:",
            size(small),
            size(large)
        )
    } else {
        "One connection sends".to_owned()
    };
    let mut text = format!(
        "{sends} {} of {} payload{}, and {} of {}{}{}.",
        agreeing(&rate(at_small), "segment per second", "segments per second"),
        small_segment,
        by(limiters.0),
        rate(at_large),
        large_segment,
        by(limiters.1),
        if is_same && !are_alike {
            format!(
                ": {:.0} times the bytes in a message at {} of the rate",
                large as f64 / small.max(1) as f64,
                words::percent(large_rate / small_rate),
            )
        } else {
            String::new()
        },
    );
    let copy = at_large.mean(&share_name("client", Work::Copy));
    if let Some(copy) = copy {
        text += &format!(
            " Of the sender's time, copying takes {} at {}.",
            words::percent(copy),
            size(large)
        );
    }
    Some(text)
}

/// Returns whether the trials of `cell` sent segments of about one size.
fn has_one_size(cell: &CellOutcomes<'_>) -> bool {
    let payloads = cell.values(name::PAYLOAD_PER_SEGMENT);
    let most = payloads.iter().copied().fold(0.0, f64::max);
    payloads.iter().all(|bytes| most <= SIZES_RATIO_MAX * bytes)
}

/// Returns the payload of a segment of all trials of `cell` together: their mean would count a trial of few
/// large segments for as much as one of many small ones.
fn payload_bytes(cell: &CellOutcomes<'_>) -> Option<f64> {
    let of_trial = |outcome: &Outcome| {
        let segments = outcome.value(name::DATA_SEGMENTS)?;
        Some((
            segments * outcome.value(name::PAYLOAD_PER_SEGMENT)?,
            segments,
        ))
    };
    let trials = cell.valid.iter().filter_map(of_trial);
    let (bytes, segments) = trials.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (segments > 0.0).then_some(bytes / segments)
}
