//! One file per chapter, and a general one for any other experiment.
//!
//! A chapter begins as the general one makes it; a file of its own replaces the figures and the
//! answer where it knows more, and has its lines of the summary. Published curves are drawn beside
//! measured ones where that was asked for.

/// Chapter 6: data packets and ACK packets over time.
mod acknowledgements;
/// Hosts that measure with each other.
pub(crate) mod between;
/// The last page: CPUs per Gbit/s and per port.
mod capacity;
/// Chapter 8: connections, many of them and short ones.
mod connections;
/// What the traffic cost, and what the CPUs did.
mod cost;
/// Chapter 7: how many CPUs are worth having.
mod cpus;
/// Chapter 5: data moved per call.
mod data_per_call;
/// Curves and tables that several chapters draw.
mod draw;
/// Chapter 15: what limits each chapter, and what throughput costs.
mod findings;
/// Any experiment that is not a chapter with a file of its own.
mod general;
/// Chapter 0: the hosts.
mod inventory;
/// Chapter 1: request and response.
mod latency;
/// Chapter 14: offloads, and the receive path.
mod offloads;
/// Chapter 10: packets and what the CPUs do, by size.
mod packet_rate;
/// Which interrupt and CPUs serve each queue.
mod queue_table;
/// Chapter 12: packets by receive queue and CPU.
mod queues;
/// Throughput over time of a single cell.
mod series;
/// Chapter 9: streams of small messages.
mod small_messages;
/// Chapter 3: throughput against socket buffer.
mod socket_buffer;
/// Chapter 9: requests in several writes.
mod split_request;
/// What else the samples of a single measurement say over time.
mod strips;
/// What each file of a chapter of the study exports.
mod study_chapter;
/// From which level of a scale on nothing more is gained.
mod suffices;
/// Chapter 4: transfer size, socket buffer and MTU.
mod transfer_size;
/// Chapter 13: queues to send by.
mod transmit_queues;
/// Chapter 11: datagrams sent, received and lost.
mod udp_packet_rate;
/// Latency under load: exchanges beside other groups.
pub(crate) mod under_load;
/// Chapter 2: the window that link and round trip ask for.
mod window;

use std::collections::BTreeMap;

use linerate_model::analysis::{Chapter, Figure, Origin, Table, TableCell};
use linerate_model::experiment::{Effect, Experiment};
use linerate_model::limiter::Limiter;
use linerate_model::number;
use linerate_model::response::is_headline;
use linerate_model::unit::Unit;

use crate::adaptive;
use crate::dataset::{CellOutcomes, Dataset};
use crate::diagnose::{self, Found, Told, What, limiter_of};
use crate::proof::{Proof, Proofs};
use crate::words;
pub(crate) use findings::best_with_cpu;
use study_chapter::{Content, Measured, StudyChapter};
pub(crate) use study_chapter::{Row, row};

/// The chapters of the study.
const CHAPTERS: &[StudyChapter] = &[
    inventory::CHAPTER,
    latency::CHAPTER,
    window::CHAPTER,
    socket_buffer::CHAPTER,
    transfer_size::CHAPTER,
    data_per_call::CHAPTER,
    acknowledgements::CHAPTER,
    cpus::CHAPTER,
    connections::CHAPTER,
    connections::RATE,
    small_messages::CHAPTER,
    split_request::CHAPTER,
    packet_rate::CHAPTER,
    udp_packet_rate::CHAPTER,
    queues::CHAPTER,
    transmit_queues::CHAPTER,
    offloads::CHAPTER,
    offloads::MODERATION,
    findings::CHAPTER,
    capacity::CHAPTER,
];

/// Returns the chapters, in order.
pub(crate) fn chapters(dataset: &Dataset<'_>, told: &Told<'_>) -> Vec<Chapter> {
    let document = &dataset.recording.document;
    // Before anything is drawn: points say what limits their cell.
    for cell in dataset.measured() {
        limiter_of(dataset, cell);
    }
    let experiments = document.plan.experiments.iter();
    // What is measured for a chapter that follows from others has no other of its own.
    let has_own =
        |it: &&Experiment| !document.study || CHAPTERS.iter().all(|known| !known.takes(it));
    let experiments = experiments.filter(has_own);
    let mut chapters: Vec<Chapter> = experiments
        .map(|experiment| of_experiment(dataset, experiment, told))
        .collect();
    if document.study {
        chapters.extend(CHAPTERS.iter().filter_map(|known| match known.content {
            Content::Derived(chapter, _) => {
                Some(derived(dataset, known, chapter(dataset, told), told))
            }
            Content::Experiment(..) => None,
        }));
    }
    // The sort is stable: two experiments of one chapter stay in the plan's order.
    // What has no number comes before what is found of all.
    chapters.sort_by_key(|chapter| chapter.number.unwrap_or(findings::CHAPTER.number - 1));
    chapters
}

/// Returns the chapters of what was changed after a measurement, whose answers are what follows from that.
pub(crate) fn proofs(dataset: &Dataset<'_>, proofs: &Proofs) -> Vec<Chapter> {
    let told = Told {
        findings: Vec::new(),
        cautions: Vec::new(),
    };
    let experiments = dataset.experiments().iter();
    let chapter = |experiment: &Experiment| {
        let mut chapter = of_experiment(dataset, experiment, &told);
        let mut all = proofs.all.iter();
        let proof = all.find(|proof| proof.experiment == experiment.name);
        chapter.title = words::sentence(&chapter.title);
        chapter.answer = proof.map(|proof| format!("{}.", words::sentence(&proof.line())));
        chapter.tables.splice(0..0, proof.map(predictions));
        chapter
    };
    experiments.map(chapter).collect()
}

/// Returns what was predicted of a change before it was made.
fn predictions(proof: &Proof) -> Table {
    let rows = proof.predicted.iter().map(|predicted| {
        let effect = match predicted.effect {
            Some(Effect::Grows) => "grows",
            Some(Effect::MayGrow) => "may grow",
            Some(Effect::Stays) => "stays",
            None => "not known",
        };
        let after = match proof.limiter {
            _ if proof.refuted.contains(&predicted.limiter) => "refuted",
            Some(limiter) if limiter == predicted.limiter => proof.verdict.word(),
            _ => "left open",
        };
        let cells = [predicted.limiter.title(), effect, after];
        cells.map(TableCell::from).to_vec()
    });
    let heads = ["If it is held by", "the number", "after it"];
    Table::new("Predicted before it was measured", heads, rows)
}

/// Returns `chapter` with the findings and trials of the experiments that are measured for it.
fn derived(
    dataset: &Dataset<'_>,
    known: &StudyChapter,
    chapter: Chapter,
    told: &Told<'_>,
) -> Chapter {
    let own: Vec<&Experiment> = dataset
        .experiments()
        .iter()
        .filter(|it| known.takes(it))
        .collect();
    let findings = told.findings.iter();
    let findings = findings.filter(|found| own.iter().any(|it| found.is_about(it)));
    Chapter {
        number: Some(known.number),
        findings: chapter
            .findings
            .iter()
            .cloned()
            .chain(findings.map(Found::id))
            .collect(),
        trials: own
            .iter()
            .flat_map(|it| draw::trial_lines(dataset, it))
            .collect(),
        ..chapter
    }
}

fn of_experiment(dataset: &Dataset<'_>, experiment: &Experiment, told: &Told<'_>) -> Chapter {
    let mut chapter = general::chapter(dataset, experiment, &told.findings);
    let cells = &dataset.cells_of(&experiment.name);
    let measured = &Measured {
        dataset,
        experiment,
        cells,
    };
    let known = CHAPTERS.iter().find(|known| known.is_of(experiment));
    match known.map(|known| &known.content) {
        Some(Content::Experiment(_, fill, _)) => fill(&mut chapter, measured, told),
        _ => draw::lead_with_differences(&mut chapter, measured),
    }
    under_load::fill(&mut chapter, dataset, cells);
    if experiment.pairs.is_some() {
        between::fill(&mut chapter, measured);
    }
    chapter.tables.extend(between::shares(measured));
    if let Some(told) = adaptive::told(dataset.recording, experiment) {
        let rows = told.levels.into_iter().map(|line| {
            vec![
                TableCell::Text(line.level),
                TableCell::Number(line.trials.into(), Unit::Count),
                TableCell::of(line.value, "not read"),
                line.says.into(),
            ]
        });
        let heads = ["level", "trials so far", &told.response, told.says];
        let levels = Table::new(told.title, heads, rows);
        let rows = told.added.into_iter();
        let rows = rows.map(|(added, why)| vec![TableCell::Text(added), TableCell::Text(why)]);
        let heads = ["level", "why"];
        let added = Table::new("Levels added, in the order of decisions", heads, rows);
        let tables = [levels, added].into_iter();
        let tables = tables.filter(|table| !table.rows.is_empty());
        chapter.tables.splice(0..0, tables);
        chapter.answer = chapter.answer.is_some().then_some(told.answer);
    }
    if experiment.pairs.is_none() {
        chapter.tables.extend(cost::tables(cells));
    }
    chapter.tables.extend(cost::together(dataset, cells));
    chapter.consequence = consequence(measured, told);
    chapter.over_time = over_time(measured, told);
    if !dataset.published {
        for figure in &mut chapter.figures {
            figure
                .curves
                .retain(|curve| curve.origin != Origin::Published);
        }
    }
    // One strip of limiters a chapter: further figures show the same cells.
    let others = chapter.figures.iter_mut().skip(1);
    for point in others
        .flat_map(|it| &mut it.curves)
        .flat_map(|it| &mut it.points)
    {
        point.limiter = None;
    }
    chapter
}

/// Says what limits cells that were measured, and what would raise them: the limiter that a finding names,
/// else that of most cells.
fn consequence(measured: &Measured<'_, '_>, told: &Told<'_>) -> Option<String> {
    let (dataset, experiment) = (measured.dataset, measured.experiment);
    let cells = measured.cells.iter();
    let valid: Vec<_> = cells.filter(|cell| !cell.valid.is_empty()).collect();
    let mut counts: BTreeMap<Limiter, usize> = BTreeMap::new();
    for limiter in valid.iter().filter_map(|cell| cell.known_limiter()) {
        *counts.entry(limiter).or_default() += 1;
    }
    let mut own = told.findings.iter().filter(|it| it.is_about(experiment));
    let named = own.find_map(|found| match found.what {
        What::Limiter(limiter) => Some((limiter, *counts.get(&limiter)?)),
        _ => None,
    });
    let most = counts.iter().max_by_key(|(_, count)| **count);
    let (limiter, count) = named.or(most.map(|(limiter, count)| (*limiter, *count)))?;
    let of = match valid.len() {
        1 => String::new(),
        all => format!(" in {count} of {}", number::counted(all, "cell")),
    };
    // What is done about others of its kind does not help where the evidence says something else.
    let mut own = valid
        .iter()
        .filter(|cell| cell.known_limiter() == Some(limiter));
    let is_another = own.any(|cell| diagnose::evident(limiter, dataset, cell).is_some());
    let raises = if is_another {
        String::new()
    } else {
        format!(": {}", raises(limiter, &experiment.response))
    };
    Some(format!("Limited by {}{of}{raises}.", limiter.title()))
}

/// Returns what raises what `limiter` limits: not a response of another kind, as packets per second, which larger
/// frames lower.
fn raises(limiter: Limiter, response: &str) -> String {
    let raises = limiter.remedy().raises;
    if is_headline(response) {
        raises.to_owned()
    } else {
        raises
            .replace("raise it", "raise throughput")
            .replace("raises it", "raises throughput")
    }
}

/// Returns the course of the trials that findings about an experiment rest on.
fn over_time(measured: &Measured<'_, '_>, told: &Told<'_>) -> Vec<Figure> {
    let (experiment, cells) = (measured.experiment, measured.cells);
    // That of a single cell is a figure of the chapter.
    if cells.len() < 2 {
        return Vec::new();
    }
    let own = told.findings.iter().filter(|it| it.is_about(experiment));
    let mut shown: Vec<&CellOutcomes<'_>> = Vec::new();
    for found in own {
        let trials = &found.evidence.as_slice()[0].trials;
        let rests_on =
            |cell: &&&CellOutcomes<'_>| cell.trials().iter().any(|it| trials.contains(it));
        let cell = cells.iter().find(rests_on).copied();
        shown.extend(cell.filter(|cell| shown.iter().all(|other| other.cell != cell.cell)));
    }
    let figure = |(at, cell): (usize, &CellOutcomes<'_>)| {
        let figure = series::figure(measured.dataset, experiment, cell)?;
        Some(Figure {
            id: format!("{}-{}", figure.id, at + 1),
            title: format!("{}: {}", figure.title, words::whole_cell(&cell.cell)),
            ..figure
        })
    };
    shown.into_iter().enumerate().filter_map(figure).collect()
}

/// Returns the lines of the summary that the chapters of the study have, in their order.
pub(crate) fn lines(dataset: &Dataset<'_>) -> Vec<Row> {
    let experiments = dataset.experiments();
    let of_chapter = |known: &StudyChapter| match known.content {
        Content::Derived(_, lines) => lines(dataset),
        Content::Experiment(_, _, lines) => experiments
            .iter()
            .filter(|experiment| known.is_of(experiment))
            .flat_map(|experiment| {
                lines(&Measured {
                    dataset,
                    experiment,
                    cells: &dataset.cells_of(&experiment.name),
                })
            })
            .collect(),
    };
    CHAPTERS.iter().flat_map(of_chapter).collect()
}
