//! Chapter 9: streams of small messages.

use linerate_model::analysis::{Chapter, Figure, Scale, Table, TableCell};
use linerate_model::experiment::{Factor, Level};
use linerate_model::unit::Unit;
use linerate_model::workload::Kind;

use super::draw;
use super::study_chapter::{Content, Measured, Row, StudyChapter, row};
use crate::dataset::{CellOutcomes, Dataset, varied};
use crate::diagnose::{Pattern, Told, mss_bytes, pattern_bytes, pattern_of};
use crate::published::{NAGLE_OFF, NAGLE_ON, SUN_FIRE};
use crate::reduce::name;
use crate::words;

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 9,
    content: Content::Experiment(Kind::Stream, fill, lines),
};

/// Replaces figures and adds a table and the answer.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, _told: &Told<'_>) {
    let Measured { dataset, cells, .. } = *measured;
    if !varied(cells).contains(&Factor::MessageBytes) {
        return;
    }
    let figures = [
        throughput(cells),
        packets(cells),
        payload(dataset, cells),
        stalls(cells),
    ];
    chapter.figures = figures.into_iter().flatten().collect();
    chapter.tables.insert(0, segments(dataset, cells));
    chapter.answer = answer(dataset, cells).or(chapter.answer.take());
    draw::add_verdicts(chapter, measured);
}

fn figure(cells: &[&CellOutcomes<'_>], response: &str, id: &str, caption: &str) -> Option<Figure> {
    draw::figure(cells, Factor::MessageBytes, response, id, caption)
}

fn throughput(cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let caption = "Payload received, for each combination of Nagle at the sender and delayed ACK at the \
                   receiver. Points are means with 95 % intervals (of two values, their range).";
    let id = "small-messages-throughput";
    let mut figure = figure(cells, name::THROUGHPUT, id, caption)?;
    add_published(&mut figure, "mbit_per_s", 1e6);
    Some(figure)
}

fn packets(cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let caption = "Segments with payload on the wire, by TCP_INFO of the sender.";
    let id = "small-messages-segments";
    let mut figure = figure(cells, name::DATA_SEGMENTS, id, caption)?;
    add_published(&mut figure, "packets_per_s", 1.0);
    Some(figure)
}

/// Adds the published curves with delayed ACK on; `unit` is what one of the column is.
fn add_published(figure: &mut Figure, column: &str, unit: f64) {
    let on = NAGLE_ON.pairs("message_bytes", column, &[]);
    let off = NAGLE_OFF.pairs("payload_bytes", column, &[("delayed_ack", "on")]);
    for (nagle, points) in [("on", on), ("off", off)] {
        let name = format!("{SUN_FIRE}, Nagle {nagle}, delayed ACK on");
        let points = points.into_iter().map(|(x, y)| (x, unit * y));
        figure.curves.push(draw::published(name, points));
    }
}

fn payload(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let caption = "Mean payload of a data segment on the wire. Computed: one message per segment, and the \
                   mean of segments that alternate between one message and as many as fit.";
    let id = "small-messages-payload";
    let mut figure = figure(cells, name::PAYLOAD_PER_SEGMENT, id, caption)?;
    let mut sizes: Vec<(u64, u64)> = cells
        .iter()
        .filter_map(|cell| Some((cell.message_bytes()?, mss_bytes(dataset, cell)?)))
        .collect();
    sizes.sort_unstable();
    sizes.dedup_by_key(|(message, _)| *message);
    let single = sizes
        .iter()
        .map(|(message, mss)| (*message as f64, *message.min(mss) as f64));
    let single = draw::computed("one message per segment", single);
    figure.curves.push(single);
    let alternating: Vec<(f64, f64)> = sizes
        .iter()
        .filter_map(|(message, mss)| Some((*message as f64, pattern_bytes(*message, *mss)?)))
        .collect();
    if !alternating.is_empty() {
        let curve = draw::computed("segments that alternate", alternating);
        figure.curves.push(curve);
    }
    Some(figure)
}

fn stalls(cells: &[&CellOutcomes<'_>]) -> Option<Figure> {
    let caption = "Longest wait of the receiver between two pieces of payload. The delayed-ACK timer \
                   is about 40 ms.";
    let id = "small-messages-stall";
    let mut figure = figure(cells, name::STALL_MAX, id, caption)?;
    figure.y.scale = draw::scale_of(&figure.curves);
    debug_assert!(figure.y.scale != Scale::Category, "heights are numbers");
    Some(figure)
}

/// Segments, payload and the check that segments/s × payload × 8 is the throughput.
fn segments(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Table {
    let columns = [
        "Message",
        "Options",
        "Segments/s",
        "Payload per segment",
        "Messages per segment",
        "Alternation would give",
        "Pattern",
        "Segments/s × payload × 8",
        "Measured throughput",
    ];
    let factors: Vec<Factor> = varied(cells)
        .into_iter()
        .filter(|factor| *factor != Factor::MessageBytes)
        .collect();
    let row = |cell: &&CellOutcomes<'_>| -> Option<Vec<TableCell>> {
        let message = cell.message_bytes()?;
        let estimate = |response| draw::read(cell.estimate(response));
        let expected = mss_bytes(dataset, cell).and_then(|mss| pattern_bytes(message, mss));
        let product = cell
            .mean(name::DATA_SEGMENTS)
            .zip(cell.mean(name::PAYLOAD_PER_SEGMENT));
        Some(vec![
            TableCell::Text(words::number(Unit::Bytes, message as f64)),
            TableCell::Text(words::cell(&cell.cell, &factors)),
            estimate(name::DATA_SEGMENTS),
            estimate(name::PAYLOAD_PER_SEGMENT),
            estimate(name::MESSAGES_PER_SEGMENT),
            TableCell::of(
                expected.map(|bytes| (bytes, Unit::Bytes)),
                "message above half a segment",
            ),
            TableCell::of(
                pattern_of(dataset, cell).map(Pattern::title),
                "message above a quarter of a segment",
            ),
            TableCell::of(
                product.map(|(rate, bytes)| (8.0 * rate * bytes, Unit::BitsPerSecond)),
                "not read",
            ),
            estimate(name::THROUGHPUT),
        ])
    };
    Table::new(
        "Messages and segments",
        columns,
        cells.iter().filter_map(row),
    )
}

fn answer(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Option<String> {
    let of_nagle = cells.iter().filter(|cell| {
        let options = &cell.workload.options;
        options.nagle == Some(true) && options.delayed_ack != Some(false)
    });
    // Both of one size: the smallest that was measured either way.
    let pairs = of_nagle.filter_map(|on| {
        let off = dataset.beside(on, Factor::Nagle, Level::Switch(false))?;
        let are_measured = !on.valid.is_empty() && !off.valid.is_empty();
        are_measured.then_some((*on, off))
    });
    let (on, off) = pairs.min_by_key(|(on, _)| on.message_bytes())?;
    let rate = |cell: &CellOutcomes<'_>| Some(words::estimate(&cell.estimate(name::THROUGHPUT)?));
    let others = match on.level(Factor::DelayedAck) {
        Some(level) => format!(", {}", words::level(Factor::DelayedAck, level)),
        None => String::new(),
    };
    let mut text = format!(
        "Messages of {} reach {} with Nagle on and {} with Nagle off{others}.",
        words::number(Unit::Bytes, on.message_bytes()? as f64),
        rate(on)?,
        rate(off)?,
    );
    text += match pattern_of(dataset, on) {
        Some(Pattern::Alternating) => " With Nagle on, small and full segments alternate.",
        Some(Pattern::Full) => " With Nagle on, segments are full; they do not alternate.",
        Some(Pattern::OneEach) => " With Nagle on, each message still has a segment of its own.",
        // In between, the mean does not tell how segments were made.
        Some(Pattern::Between) | None => "",
    };
    Some(text)
}

/// The smallest messages with Nagle on and off.
fn lines(measured: &Measured<'_, '_>) -> Vec<Row> {
    let cells = measured.cells;
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
        Some(row(what, cell.estimate(name::THROUGHPUT)?, payload))
    };
    [with(true), with(false)].into_iter().flatten().collect()
}
