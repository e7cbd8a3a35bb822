//! Chapter 5: throughput, calls and cost by the bytes that go down the stack at a time.

use linerate_model::analysis::Chapter;
use linerate_model::experiment::{Factor, Level};
use linerate_model::workload::Kind;

use super::study_chapter::{Content, Measured, StudyChapter};
use super::{draw, suffices};
use crate::diagnose::Told;
use crate::reduce::name;
use crate::verdicts::ScalePlateau;

/// What calls and aggregates save.
const SAVED: &[&str] = &[
    name::THROUGHPUT,
    name::SEND_CALLS,
    name::PAYLOAD_PER_CALL,
    name::MESSAGES_PER_SEGMENT,
    name::CONTEXT_SWITCHES,
    name::CPU_PER_KIB,
    name::CYCLES_PER_BYTE,
    name::CYCLES_PER_BYTE_NOMINAL,
];

pub(super) const CHAPTER: StudyChapter = StudyChapter {
    number: 5,
    content: Content::Experiment(Kind::Stream, fill, |_| Vec::new()),
};

/// Replaces figures and answer, and adds the table of calls.
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
    let figures = draw::figures(cells, Factor::MessageBytes, "data-per-call", &drawn);
    chapter
        .tables
        .insert(0, draw::table("Calls, wake-ups and cost", cells, SAVED));
    let verdicts = dataset.verdicts();
    // With aggregates as the host has them: the effect says what smaller ones do.
    let as_it_is = |of: &&ScalePlateau| {
        let aggregate = of.others.get(&Factor::GsoMaxSize);
        aggregate.is_none_or(Level::is_auto)
    };
    let sizes = verdicts.plateaus_of(&experiment.name).filter(as_it_is);
    let sizes = suffices::sentences(&sizes.collect::<Vec<_>>()).into_iter();
    let aggregates = verdicts
        .effects_of(&experiment.name)
        .map(draw::verdict_sentence);
    let sentences: Vec<String> = sizes.chain(aggregates).collect();
    draw::replace(chapter, figures, &sentences);
}
