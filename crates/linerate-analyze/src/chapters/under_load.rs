//! Latency under load: an exchange while other groups of its trial fill the path, against the same alone.

use linerate_model::analysis::{
    Axis, Chapter, Curve, Figure, Origin, Position, Scale, Table, TableCell,
};
use linerate_model::group;
use linerate_model::histogram::observations_needed;
use linerate_model::response::name;
use linerate_model::unit::Unit;
use linerate_model::workload::{Group, Workload};

use super::draw;
use crate::dataset::{CellOutcomes, Dataset};
use crate::groups::{experiment_name, seen_cell};
use crate::loaded::{FullQueue, backlog, fills_queue, senders};
use crate::words;

/// An exchange beside other groups, against the same alone.
pub(crate) struct UnderLoad<'d, 'a> {
    /// The exchange beside them.
    pub(crate) cell: &'d CellOutcomes<'a>,
    /// Its median.
    median_ns: f64,
    /// The same exchange alone.
    alone: Option<&'d CellOutcomes<'a>>,
}

impl<'d, 'a> UnderLoad<'d, 'a> {
    /// Returns that of `cell`; absent for what is alone or has no latency.
    fn of(dataset: &'d Dataset<'a>, cell: &'d CellOutcomes<'a>) -> Option<Self> {
        let is_beside = cell.is_rr() && !cell.experiment.beside.is_empty();
        let median_ns = cell.mean(name::RTT_P50).filter(|_| is_beside)?;
        let mut measured = dataset.measured();
        let alone = measured.find(|other| {
            other.experiment.beside.is_empty()
                && plain(&other.workload) == plain(&cell.workload)
                && other.cell.keys().all(|factor| factor.knob().is_none())
        });
        Some(Self {
            cell,
            median_ns,
            alone,
        })
    }

    /// Returns what goes on beside it, with what varies of that: "stream to the server".
    fn others(&self) -> String {
        let levels = self.cell.cell.iter();
        let levels = levels.filter_map(|(factor, level)| Some((factor.beside()?, level)));
        let levels: Vec<_> = levels.collect();
        let told = |group: &Group| {
            let own = levels
                .iter()
                .filter(|((name, _), _)| name.as_str() == group.name);
            let own = own.map(|((_, factor), level)| words::level(*factor, level));
            let words: Vec<String> = std::iter::once(group.name.clone()).chain(own).collect();
            words.join(" ")
        };
        let beside = self.cell.experiment.beside.iter().map(told);
        words::list(&beside.collect::<Vec<_>>())
    }

    /// Returns what it is next to, and how many times as long as alone.
    pub(crate) fn note(&self) -> String {
        let next_to = format!("median next to {}", self.others());
        match self.alone_ns().filter(|alone| *alone > 0.0) {
            Some(alone) => {
                let times = words::number(Unit::Count, self.median_ns / alone);
                format!("{next_to}; {times} times as long as alone")
            }
            None => next_to,
        }
    }

    /// Returns its median alone.
    fn alone_ns(&self) -> Option<f64> {
        self.alone?.mean(name::RTT_P50)
    }

    /// Returns the bulk beside it.
    fn bulk(&self, dataset: &'d Dataset<'a>) -> Option<&'d CellOutcomes<'a>> {
        let mut measured = dataset.measured();
        let name = &self.cell.experiment.name;
        // The first group of a trial has the experiment's own name.
        let is_first = |other: &CellOutcomes<'_>| {
            let first = group::name_of(other.workload.traffic.kind());
            let mut beside = other.experiment.beside.iter();
            beside.any(|own| {
                *name == experiment_name(&other.experiment.name, 1, &own.name)
                    && seen_cell(&other.cell, &own.name, first) == self.cell.cell
            })
        };
        let is_bulk = |other: &&CellOutcomes<'_>| other.workload.traffic.is_stream();
        measured.find(|other| is_bulk(other) && is_first(other))
    }

    /// Returns whether it waits in the queue that bulk fills; absent where that cannot be told.
    fn fills_queue(&self, bulk: &CellOutcomes<'_>) -> Option<bool> {
        let waited = bulk.mean(name::TCP_RTT)? - bulk.mean(name::TCP_MIN_RTT)?;
        fills_queue(Some(self.median_ns - self.alone_ns()?), Some(waited))
    }

    /// Returns the queue that bulk fills.
    fn queue(&self, dataset: &Dataset<'_>, bulk: &CellOutcomes<'_>) -> Option<FullQueue> {
        self.fills_queue(bulk).filter(|fills| *fills)?;
        let trials = bulk.trials();
        let own = dataset.together.iter();
        let own: Vec<_> = own.filter(|one| trials.contains(&one.trial)).collect();
        let senders = senders(dataset.hosts(), &bulk.workload);
        let waited = self.median_ns - self.alone_ns()?;
        let bps = bulk.mean(name::THROUGHPUT)?;
        Some(FullQueue::of(waited, bps, backlog(&own, &senders)))
    }
}

/// Returns `workload` without what the kernel does by itself: it delays ACKs.
fn plain(workload: &Workload) -> Workload {
    let mut plain = workload.clone();
    plain.options.delayed_ack = plain.options.delayed_ack.filter(|on| !on);
    plain
}

/// Returns the exchange that takes longest of those beside others.
pub(crate) fn longest<'d, 'a>(dataset: &'d Dataset<'a>) -> Option<UnderLoad<'d, 'a>> {
    let measured = dataset.measured();
    let loaded = measured.filter_map(|cell| UnderLoad::of(dataset, cell));
    loaded.max_by(|a, b| a.median_ns.total_cmp(&b.median_ns))
}

/// Shares of the transactions at which a distribution is drawn, and what they are called.
const DRAWN: [(f64, &str); 9] = [
    (0.01, "1 %"),
    (0.1, "10 %"),
    (0.25, "25 %"),
    (0.5, "50 %"),
    (0.75, "75 %"),
    (0.9, "90 %"),
    (0.99, "99 %"),
    (0.999, "99.9 %"),
    (1.0, "all"),
];

/// Replaces what a chapter of such exchanges shows: the distribution idle against loaded, what waits where, and the answer.
pub(super) fn fill<'d, 'a>(
    chapter: &mut Chapter,
    dataset: &'d Dataset<'a>,
    cells: &[&'d CellOutcomes<'a>],
) {
    let loaded = cells.iter().filter_map(|cell| UnderLoad::of(dataset, cell));
    let loaded: Vec<_> = loaded.collect();
    if loaded.is_empty() {
        return;
    }
    chapter
        .figures
        .insert(0, distributions(&chapter.id, &loaded));
    chapter.tables.insert(0, table(dataset, &loaded));
    chapter.answer = answer(dataset, &loaded).or(chapter.answer.take());
}

/// The share of the transactions that takes no longer than so long, alone and beside others.
fn distributions(id: &str, loaded: &[UnderLoad<'_, '_>]) -> Figure {
    let curve = |name: String, cell: &CellOutcomes<'_>| {
        let all = cell.latency();
        let known = |share: f64| share >= 1.0 || all.count() >= observations_needed(share);
        let drawn = DRAWN.iter().filter(|(share, _)| known(*share));
        let points = drawn.filter_map(|(share, words)| {
            let at = Position::Name((*words).to_owned());
            Some(draw::bare_point(at, all.quantile(*share)?.0 as f64))
        });
        Curve {
            name,
            origin: Origin::Measured,
            points: points.collect(),
        }
    };
    let alone = loaded.iter().find_map(|one| one.alone);
    let alone = alone.map(|cell| curve("idle".to_owned(), cell));
    let beside = loaded
        .iter()
        .map(|one| curve(format!("next to {}", one.others()), one.cell));
    Figure {
        id: format!("{id}-distribution"),
        title: "Round trips, idle and loaded".to_owned(),
        caption: "How long so many of the round trips of all trials take at the most.".to_owned(),
        x: Axis::new("share of the round trips", Unit::None, Scale::Category),
        y: Axis::new("round trip", Unit::Nanoseconds, Scale::Log),
        curves: alone.into_iter().chain(beside).collect(),
    }
}

fn table(dataset: &Dataset<'_>, loaded: &[UnderLoad<'_, '_>]) -> Table {
    let latencies = |cell: &CellOutcomes<'_>| {
        let names = [
            name::RTT_P50,
            name::RTT_P99,
            name::RTT_MEAN,
            name::RESPONSIVENESS,
        ];
        names.map(|response| draw::read(cell.estimate(response)))
    };
    let none = || TableCell::Text("–".to_owned());
    let alone = loaded.iter().find_map(|one| one.alone);
    let alone = alone.map(|cell| {
        let mut row = vec![TableCell::Text("idle".to_owned())];
        row.extend(latencies(cell));
        row.extend([none(), none(), none()]);
        row
    });
    let rows = loaded.iter().map(|one| {
        let bulk = one.bulk(dataset);
        let queue = bulk.and_then(|bulk| one.queue(dataset, bulk));
        let mut row = vec![TableCell::Text(format!("next to {}", one.others()))];
        row.extend(latencies(one.cell));
        row.push(draw::read(
            bulk.and_then(|bulk| bulk.estimate(name::THROUGHPUT)),
        ));
        row.extend(match queue {
            Some(queue) => [
                TableCell::Number(queue.wait_ns, Unit::Nanoseconds),
                TableCell::Number(queue.bytes, Unit::Bytes),
            ],
            None => [none(), none()],
        });
        row
    });
    let heads = [
        "Probe",
        "Median",
        "99th percentile",
        "Mean",
        "Round trips per minute",
        "Payload of the bulk",
        "Waits in its queue",
        "Which holds",
    ];
    Table::new(
        "Idle and loaded; round trips per minute are a minute over their mean without the longest 5 %",
        heads,
        alone.into_iter().chain(rows),
    )
}

/// Returns what a chapter of such exchanges answers.
fn answer(dataset: &Dataset<'_>, loaded: &[UnderLoad<'_, '_>]) -> Option<String> {
    let sentence = |loaded: &UnderLoad<'_, '_>| {
        let median = words::estimate(&loaded.cell.estimate(name::RTT_P50)?);
        let p99 = loaded.cell.estimate(name::RTT_P99);
        let p99 = p99.map_or(String::new(), |p99| {
            format!(", 99th percentile {}", words::estimate(&p99))
        });
        let bulk = loaded.bulk(dataset);
        let queue = bulk.and_then(|bulk| loaded.queue(dataset, bulk));
        let queue = match (bulk.and_then(|bulk| loaded.fills_queue(bulk)), queue) {
            (Some(true), Some(queue)) => format!(" {}.", draw::sentence(&queue.words())),
            (Some(true), None) => " It waits in the queue that the payload fills.".to_owned(),
            (Some(false), _) => " The payload's own TCP does not see that wait.".to_owned(),
            (None, _) => String::new(),
        };
        Some(format!(
            "A round trip takes {median} ({}{p99}).{queue}",
            loaded.note()
        ))
    };
    let sentences: Vec<String> = loaded.iter().filter_map(sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}
