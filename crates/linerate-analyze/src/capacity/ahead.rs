//! What the model says of something it was not fitted to, and what was measured there: a change, and a higher load.

use linerate_model::experiment::Factor;
use linerate_model::unit::Unit;

use super::model::Check;
use super::work::{self, Work};
use super::{Above, Gain, HeldOut, KINDS, Kind, Model, Side, Target};
use crate::dataset::{CellOutcomes, Dataset, groups};
use crate::words;

/// What is changed, and the kind of work that it makes fewer of.
const CHANGES: [(Factor, Kind); 2] = [
    (Factor::Mtu, Kind::Packet),
    (Factor::MessageBytes, Kind::Call),
];

/// Half of the link's rate, and by how much a stream of that rate may exceed it in a short window.
const HALF: f64 = 0.55;

/// Two cells of streams that differ in one thing.
struct Pair {
    /// The number of each.
    cells: [usize; 2],
    /// What a unit of the work carries in each, in bytes.
    bytes: [f64; 2],
}

/// Returns what each change gains, by a model that was not fitted to what is changed.
pub(super) fn gains(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>], side: Side) -> Vec<Gain> {
    let rows = work::rows(cells, side);
    let of = |(factor, kind)| gain(side, &rows, &pairs(dataset, cells, factor), kind);
    CHANGES.into_iter().filter_map(of).collect()
}

/// Returns the pairs of the smallest and the largest level of `factor` where nothing else differs.
fn pairs(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>], factor: Factor) -> Vec<Pair> {
    let bytes = |cell: &CellOutcomes<'_>| match factor {
        Factor::Mtu => dataset.path_of(cell).segment_bytes(&cell.workload),
        _ => Some(cell.message_bytes()? as f64),
    };
    let mut found = Vec::new();
    for experiment in dataset.experiments() {
        let streams = cells.iter().copied().filter(|cell| {
            cell.experiment.name == experiment.name && cell.workload.traffic.direction().is_some()
        });
        for group in groups(&streams.collect::<Vec<_>>(), factor) {
            let place =
                |cell: &CellOutcomes<'_>| cells.iter().position(|it| std::ptr::eq(*it, cell));
            let levels = group
                .cells
                .iter()
                .filter_map(|cell| Some((place(cell)?, bytes(cell)?)));
            let levels: Vec<(usize, f64)> = levels.collect();
            let least = levels.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            let most = levels.iter().max_by(|a, b| a.1.total_cmp(&b.1));
            if let (Some(least), Some(most)) = (least, most)
                && least.1 < most.1
            {
                found.push(Pair {
                    cells: [least.0, most.0],
                    bytes: [least.1, most.1],
                });
            }
        }
    }
    found
}

fn gain(side: Side, rows: &[Work], pairs: &[Pair], kind: Kind) -> Option<Gain> {
    let at = KINDS.iter().position(|it| *it == kind)?;
    let is_new = |row: &Work| pairs.iter().any(|pair| pair.cells[1] == row.cell);
    let model = Model::fitted(
        side,
        rows.iter().filter(|row| !is_new(row)).cloned().collect(),
    )?;
    let mut checks = Vec::new();
    let (mut told, mut measured) = (Vec::new(), Vec::new());
    for pair in pairs {
        let [old, new] = pair.cells.map(|cell| Mean::of(rows, cell));
        let (Some(old), Some(new)) = (old, new) else {
            continue;
        };
        let mut per_byte = old.per_byte.clone();
        per_byte[at] *= pair.bytes[0] / pair.bytes[1];
        let check = Check {
            told: model.cost(&work::scaled(&per_byte, new.bytes)),
            truth: new.cost,
        };
        let before = old.cost / old.bytes * new.bytes;
        told.push(check.told.value / before);
        measured.push(check.truth / before);
        checks.push(check);
    }
    let of = |which: usize| {
        pairs
            .iter()
            .map(|pair| pair.bytes[which])
            .fold(0.0, f64::max)
    };
    Some(Gain {
        side,
        kind,
        from_bytes: of(0),
        to_bytes: of(1),
        predicted: median(told)?,
        measured: median(measured)?,
        errors: HeldOut::of(&checks),
    })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The mean of the trials of a cell.
struct Mean {
    per_byte: Vec<f64>,
    /// Payload per second.
    bytes: f64,
    /// CPUs.
    cost: f64,
}

impl Mean {
    fn of(rows: &[Work], cell: usize) -> Option<Self> {
        let own: Vec<&Work> = rows.iter().filter(|row| row.cell == cell).collect();
        let count = own.len() as f64;
        let cost = own.iter().map(|row| row.cost[0]).sum::<Option<f64>>()? / count;
        let bytes = own.iter().map(|row| row.bytes()).sum::<f64>() / count;
        (cost > 0.0 && bytes > 0.0).then(|| Self {
            per_byte: work::per_byte(&own),
            bytes,
            cost,
        })
    }
}

/// Returns what a model that was fitted to loads up to half the link's rate says of the streams above it.
pub(super) fn above_half(
    dataset: &Dataset<'_>,
    cells: &[&CellOutcomes<'_>],
    side: Side,
) -> Vec<Above> {
    let Some(link_bps) = dataset.path.rate_bps(1) else {
        return Vec::new();
    };
    let rows = work::rows(cells, side);
    let means: Vec<Option<Mean>> = (0..cells.len()).map(|cell| Mean::of(&rows, cell)).collect();
    let share = |cell: usize| Some(8.0 * means[cell].as_ref()?.bytes / link_bps);
    let is_above = |cell: usize| share(cell).is_some_and(|share| share > HALF);
    let below = rows.iter().filter(|row| !is_above(row.cell));
    let Some(model) = Model::fitted(side, below.cloned().collect()) else {
        return Vec::new();
    };
    let of_cell = |number: usize| {
        let (cell, mean) = (cells[number], means[number].as_ref()?);
        let target = Target {
            bps: 8.0 * mean.bytes,
            message_bytes: cell.message_bytes()?,
            flows: cell.workload.connections,
            direction: cell.workload.traffic.direction()?,
            headroom: 0.0,
        };
        Some(Above {
            side,
            what: format!(
                "{}, {}",
                cell.experiment.name,
                words::whole_cell(&cell.cell)
            ),
            share: share(number)?,
            told: model.busy(&target)?,
            measured: mean.cost,
        })
    };
    let above = (0..cells.len()).filter(|number| is_above(*number));
    above.filter_map(of_cell).collect()
}

impl Above {
    /// Returns how far the model of `side` is off in those of `all`.
    pub fn errors(all: &[Self], side: Side) -> HeldOut {
        let own = all.iter().filter(|it| it.side == side);
        let checks = own.map(|it| Check {
            told: it.told,
            truth: it.measured,
        });
        HeldOut::of(&checks.collect::<Vec<_>>())
    }
}

impl Gain {
    /// Returns what is changed, in words.
    pub fn title(&self) -> String {
        let bytes = |bytes: f64| words::number(Unit::Bytes, bytes);
        let (from, to) = (bytes(self.from_bytes), bytes(self.to_bytes));
        match self.kind {
            Kind::Packet => format!("segments of {to} instead of {from}"),
            _ => format!("messages of {to} instead of {from}"),
        }
    }
}
