//! Chapter 13: throughput, cost and wake-ups by the number of transmit queues.

use linerate_model::analysis::Chapter;
use linerate_model::experiment::Factor;
use linerate_model::workload::Kind;

use super::study_chapter::{Content, Measured, StudyChapter};
use super::{draw, queue_table};
use crate::diagnose::Told;
use crate::reduce::name;

/// What more queues cost and save.
const QUEUE_COST: &[&str] = &[
    name::THROUGHPUT,
    name::CPU_PER_KIB,
    name::CYCLES_PER_BYTE,
    name::CYCLES_PER_BYTE_NOMINAL,
    name::CONTEXT_SWITCHES,
    name::RX_QUEUE_IMBALANCE,
];

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 13,
    content: Content::Experiment(Kind::Stream, fill, |_| Vec::new()),
};

/// Replaces figures and answer; adds the cost, and which CPUs serve each queue.
fn fill(chapter: &mut Chapter, measured: &Measured<'_, '_>, _told: &Told<'_>) {
    let Measured {
        dataset,
        experiment,
        cells,
    } = *measured;
    let drawn = [
        (name::THROUGHPUT, "throughput"),
        (name::CPU_PER_KIB, "cost"),
    ];
    let figures = draw::figures(cells, Factor::TxQueues, "transmit-queues", &drawn);
    let map = dataset.recording.document.server().and_then(|server| {
        let link = server.link.as_deref()?;
        queue_table::queues(&server.snapshot, link, &Default::default())
    });
    let cost = draw::table("Cost and wake-ups", cells, QUEUE_COST);
    chapter
        .tables
        .splice(0..0, std::iter::once(cost).chain(map));
    if dataset.is_lab() {
        chapter.method += " In a lab the queue that a frame leaves its host by also moves its flow between the receive \
                           queues of the other host: the switch chooses by it.";
    }
    let effects = dataset.verdicts().effects_of(&experiment.name);
    let sentences: Vec<String> = effects.map(draw::verdict_sentence).collect();
    draw::replace(chapter, figures, &sentences);
}
