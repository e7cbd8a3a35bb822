//! Chapter 14: what each offload is worth, and what the receive path does to a round trip.

use linerate_model::analysis::Chapter;
use linerate_model::workload::Kind;

use super::draw;
use super::study_chapter::{Content, Measured, StudyChapter};
use crate::reduce::name;

/// What an offload saves.
const OFFLOADED: &[&str] = &[
    name::THROUGHPUT,
    name::CPU_BUSY,
    name::CPU_PER_KIB,
    name::CYCLES_PER_BYTE,
    name::CYCLES_PER_BYTE_NOMINAL,
    name::PAYLOAD_PER_SEGMENT,
    name::SEGMENTS_PER_ACK,
];
/// What the receive path does to a round trip.
const ROUND_TRIP: &[&str] = &[
    name::TRANSACTIONS,
    name::RTT_P50,
    name::RTT_P99,
    name::CPU_PER_TRANSACTION,
];

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 14,
    content: Content::Experiment(
        Kind::Stream,
        |it, of, _| fill(it, of, OFFLOADED),
        |_| Vec::new(),
    ),
};

/// The receive path and round trips.
pub(super) const MODERATION: StudyChapter = StudyChapter {
    number: 14,
    content: Content::Experiment(
        Kind::Rr,
        |it, of, _| fill(it, of, ROUND_TRIP),
        |_| Vec::new(),
    ),
};

/// Adds a table of one row for each thing that was changed, and what the comparisons decide.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, responses: &[&str]) {
    let title = "The hosts as they are, and with one thing changed";
    let table = draw::table(title, measured.cells, responses);
    chapter.tables.insert(0, table);
    // A picture of one level each says less than the table.
    chapter.figures.clear();
    let range = chapter.answer.take();
    draw::add_verdicts(chapter, measured);
    chapter.answer = chapter.answer.take().or(range);
}
