//! Latency under load: an exchange while other groups of its trial fill the path, against the same alone.

use linerate_model::group;
use linerate_model::response::name;
use linerate_model::unit::Unit;
use linerate_model::workload::Group;

use crate::dataset::{CellOutcomes, Dataset};
use crate::groups::{experiment_name, seen_cell};
use crate::loaded::fills_queue;
use crate::words;

/// An exchange beside other groups, against the same alone.
pub(crate) struct UnderLoad<'d, 'a> {
    /// The exchange beside them.
    pub(crate) cell: &'d CellOutcomes<'a>,
    /// Its median.
    median_ns: f64,
    /// That of the same exchange alone.
    alone_ns: Option<f64>,
}

impl<'d, 'a> UnderLoad<'d, 'a> {
    /// Returns that of `cell`; absent for what is alone or has no latency.
    fn of(dataset: &'d Dataset<'a>, cell: &'d CellOutcomes<'a>) -> Option<Self> {
        let is_beside = cell.is_rr() && !cell.experiment.beside.is_empty();
        let median_ns = cell.mean(name::RTT_P50).filter(|_| is_beside)?;
        let mut measured = dataset.measured();
        let alone = measured
            .find(|other| other.experiment.beside.is_empty() && other.workload == cell.workload);
        Some(Self {
            cell,
            median_ns,
            alone_ns: alone.and_then(|cell| cell.mean(name::RTT_P50)),
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
        match self.alone_ns.filter(|alone| *alone > 0.0) {
            Some(alone) => {
                let times = words::number(Unit::Count, self.median_ns / alone);
                format!("{next_to}; {times} times as long as alone")
            }
            None => next_to,
        }
    }

    /// Returns whether it waits in the queue that bulk fills; absent where that cannot be told.
    fn fills_queue(&self, dataset: &Dataset<'_>) -> Option<bool> {
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
        let bulk = measured.find(|other| is_bulk(other) && is_first(other))?;
        let waited = bulk.mean(name::TCP_RTT)? - bulk.mean(name::TCP_MIN_RTT)?;
        fills_queue(Some(self.median_ns - self.alone_ns?), Some(waited))
    }
}

/// Returns the exchange that takes longest of those beside others.
pub(crate) fn longest<'d, 'a>(dataset: &'d Dataset<'a>) -> Option<UnderLoad<'d, 'a>> {
    let measured = dataset.measured();
    let loaded = measured.filter_map(|cell| UnderLoad::of(dataset, cell));
    loaded.max_by(|a, b| a.median_ns.total_cmp(&b.median_ns))
}

/// Returns what a chapter of such exchanges answers.
pub(super) fn answer(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Option<String> {
    let sentence = |loaded: UnderLoad<'_, '_>| {
        let median = words::estimate(&loaded.cell.estimate(name::RTT_P50)?);
        let p99 = loaded.cell.estimate(name::RTT_P99);
        let p99 = p99.map_or(String::new(), |p99| {
            format!(", 99th percentile {}", words::estimate(&p99))
        });
        let queue = match loaded.fills_queue(dataset) {
            Some(true) => " It waits in the queue that the payload fills.",
            Some(false) => " The payload's own TCP does not see that wait.",
            None => "",
        };
        Some(format!(
            "A round trip takes {median} ({}{p99}).{queue}",
            loaded.note()
        ))
    };
    let loaded = cells.iter().filter_map(|cell| UnderLoad::of(dataset, cell));
    let sentences: Vec<String> = loaded.filter_map(sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}
