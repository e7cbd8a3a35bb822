//! What the model says of something it was not fitted to, and what was measured there: a change, and a higher load.

use linerate_model::experiment::Factor;
use linerate_model::finding::Estimate;
use linerate_model::unit::Unit;
use serde::Serialize;

use super::kind::{KINDS, Kind, Side};
use super::model::{Check, HeldOut, Model};
use super::target::Target;
use super::work::{self, Work};
use crate::compare::interval::median;
use crate::dataset::{CellOutcomes, Dataset, groups};
use crate::reduce::name;
use crate::words;

/// A change that makes work less, as a model predicts it that was not fitted to what is changed, and as it was measured.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Gain {
    /// Whose cost it is.
    pub side: Side,
    /// The kind of work that there is less of.
    pub kind: Kind,
    /// The least payload of one of it before, in bytes.
    pub from_bytes: f64,
    /// The most after.
    pub to_bytes: f64,
    /// CPU time of a byte after the change over that before, as predicted: the median of all pairs of cells.
    pub predicted: f64,
    /// The same as measured.
    pub measured: f64,
    /// How far the predictions are off.
    pub errors: HeldOut,
}

/// A load above half of what such streams reach, and what a model says of it that was fitted to those up to it.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Above {
    /// Whose cost it is.
    pub side: Side,
    /// Its cell, in words.
    pub what: String,
    /// Its payload, over the most that such streams reach.
    pub share: f64,
    /// What the model says of the work that was measured.
    pub of_work: Estimate,
    /// What it says of rate, messages and connections alone: their work for each byte is that of the highest load that it knows.
    pub of_target: Estimate,
    /// What was measured, CPUs.
    pub measured: f64,
}

/// What is changed, and the kind of work that it makes fewer of.
const CHANGES: [(Factor, Kind); 2] = [
    (Factor::Mtu, Kind::Packet),
    (Factor::MessageBytes, Kind::Call),
];

/// Half of what such streams reach, and by how much a stream of that rate may exceed it in a short window.
const HALF: f64 = 0.55;

/// Two cells of streams that differ in one thing.
struct Pair {
    /// The number of each.
    cells: [usize; 2],
    /// Bytes of what is changed in each: of a whole segment's payload, or of a message.
    bytes: [f64; 2],
    /// By what the change multiplies packets and calls of the same payload.
    packets: f64,
    calls: f64,
}

/// Returns what each change gains, by a model that was not fitted to what is changed.
pub(super) fn gains(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>], side: Side) -> Vec<Gain> {
    let rows = work::rows(cells, side);
    let of = |(factor, kind)| gain(side, &rows, &pairs(dataset, cells, factor), kind);
    CHANGES.into_iter().filter_map(of).collect()
}

/// Returns the pairs of the smallest and the largest level of `factor` where nothing else differs.
fn pairs(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>], factor: Factor) -> Vec<Pair> {
    let streams: Vec<&CellOutcomes<'_>> = cells
        .iter()
        .copied()
        .filter(|cell| cell.workload.traffic.direction().is_some())
        .collect();
    let of_experiment = |name: &str| -> Vec<&CellOutcomes<'_>> {
        let own = streams.iter().copied();
        own.filter(|cell| cell.experiment.name == name).collect()
    };
    let experiments = dataset.experiments().iter();
    let all = experiments.flat_map(|it| groups(&of_experiment(&it.name), factor));
    all.filter_map(|group| pair(dataset, cells, &group.cells, factor))
        .collect()
}

/// Returns the pair of the smallest and the largest level among `group`. Whole segments need messages that fill them.
fn pair(
    dataset: &Dataset<'_>,
    cells: &[&CellOutcomes<'_>],
    group: &[&CellOutcomes<'_>],
    factor: Factor,
) -> Option<Pair> {
    let segment = |cell: &CellOutcomes<'_>| dataset.path_of(cell).segment_bytes(&cell.workload);
    let message = |cell: &CellOutcomes<'_>| Some(cell.message_bytes()? as f64);
    let bytes = |cell: &CellOutcomes<'_>| match factor {
        Factor::Mtu => segment(cell),
        _ => message(cell),
    };
    let levels = group.iter().filter_map(|cell| Some((*cell, bytes(cell)?)));
    let levels: Vec<(&CellOutcomes<'_>, f64)> = levels.collect();
    let old = levels.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let new = levels.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let is_filled = message(new.0)? >= segment(new.0)?;
    if !is_filled || old.1 >= new.1 {
        return None;
    }
    let place = |cell: &CellOutcomes<'_>| cells.iter().position(|it| std::ptr::eq(*it, cell));
    let payload = old.0.mean(name::PAYLOAD_PER_SEGMENT)?;
    Some(Pair {
        cells: [place(old.0)?, place(new.0)?],
        bytes: [old.1, new.1],
        packets: (payload / segment(new.0)?).min(1.0),
        calls: message(old.0)? / message(new.0)?,
    })
}

fn gain(side: Side, rows: &[Work], pairs: &[Pair], kind: Kind) -> Option<Gain> {
    let is_new = |row: &Work| pairs.iter().any(|pair| pair.cells[1] == row.cell);
    let fitted = rows.iter().filter(|row| !is_new(row)).cloned();
    let model = Model::fitted(side, fitted.collect())?;
    let checks = pairs.iter().filter_map(|pair| check(&model, rows, pair));
    let checks: Vec<(Check, f64)> = checks.collect();
    let over = |of: fn(&Check) -> f64| {
        let ratios = checks.iter().map(|(check, before)| of(check) / before);
        median(&mut ratios.collect::<Vec<_>>())
    };
    let (predicted, measured) = (over(|it| it.told.value)?, over(|it| it.truth)?);
    let bytes = |which: usize| pairs.iter().map(move |pair| pair.bytes[which]);
    Some(Gain {
        side,
        kind,
        from_bytes: bytes(0).fold(f64::INFINITY, f64::min),
        to_bytes: bytes(1).fold(0.0, f64::max),
        predicted,
        measured,
        errors: HeldOut::of(
            &checks
                .into_iter()
                .map(|(check, _)| check)
                .collect::<Vec<_>>(),
        ),
    })
}

/// Returns what `model` says of the cell after the change, what that cost, and what its payload had cost before.
fn check(model: &Model, rows: &[Work], pair: &Pair) -> Option<(Check, f64)> {
    let [old, new] = pair.cells.map(|cell| Mean::of(rows, cell));
    let (mut old, new) = (old?, new?);
    for (each, kind) in old.per_byte.iter_mut().zip(KINDS) {
        *each *= match kind {
            Kind::Packet => pair.packets,
            Kind::Call => pair.calls,
            _ => 1.0,
        };
    }
    let told = model.cost(&work::scaled(&old.per_byte, new.bytes));
    let before = old.cost / old.bytes * new.bytes;
    Some((
        Check {
            told,
            truth: new.cost,
        },
        before,
    ))
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
        let own = work::of_cell(rows, cell);
        let cost = work::mean_cost(&own)?;
        let bytes = own.iter().map(|row| row.bytes()).sum::<f64>() / own.len() as f64;
        (bytes > 0.0).then(|| Self {
            per_byte: work::per_byte(&own),
            bytes,
            cost,
        })
    }
}

/// Returns what a model that was fitted to streams up to half of what such streams reach says of those above: such have messages
/// of the same size, as many connections and one direction.
pub(super) fn above_half(cells: &[&CellOutcomes<'_>], side: Side) -> Vec<Above> {
    let rows = work::rows(cells, side);
    let streams: Vec<Option<Stream>> = (0..cells.len())
        .map(|cell| Stream::of(&rows, cells, cell))
        .collect();
    // The rates of streams like one, over its own.
    let alike = |cell: usize| -> Option<Vec<f64>> {
        let own = &streams[cell].as_ref()?.target;
        let alike = streams.iter().flatten().filter(|it| it.is_like(own));
        Some(alike.map(|it| it.target.bps / own.bps).collect())
    };
    let share = |cell: usize| alike(cell)?.into_iter().reduce(f64::max).map(f64::recip);
    // What was measured at one rate alone is no load below another.
    let lowest = |cell: usize| alike(cell)?.into_iter().reduce(f64::min);
    let is_above = |cell: usize| share(cell).is_some_and(|share| share > HALF);
    let is_ahead =
        |cell: &usize| is_above(*cell) && lowest(*cell).is_some_and(|least| least <= HALF);
    let below = rows.iter().filter(|row| !is_above(row.cell));
    let Some(model) = Model::fitted(side, below.cloned().collect()) else {
        return Vec::new();
    };
    let of_cell = |number: usize| {
        let (cell, stream) = (cells[number], streams[number].as_ref()?);
        Some(Above {
            side,
            what: format!(
                "{}, {}",
                cell.experiment.name,
                words::whole_cell(&cell.cell)
            ),
            share: share(number)?,
            of_work: model.cost(&stream.work),
            of_target: model.busy(&stream.target)?,
            measured: stream.cost,
        })
    };
    (0..cells.len())
        .filter(is_ahead)
        .filter_map(of_cell)
        .collect()
}

/// A cell of streams: what it is as a target, its work, and the CPUs that it cost.
struct Stream {
    target: Target,
    work: Vec<f64>,
    cost: f64,
}

impl Stream {
    fn of(rows: &[Work], cells: &[&CellOutcomes<'_>], cell: usize) -> Option<Self> {
        let mean = Mean::of(rows, cell)?;
        let workload = &cells[cell].workload;
        let target = Target {
            bps: 8.0 * mean.bytes,
            message_bytes: cells[cell].message_bytes()?,
            flows: workload.connections,
            direction: workload.traffic.direction()?,
            headroom: 0.0,
        };
        Some(Self {
            target,
            work: work::scaled(&mean.per_byte, mean.bytes),
            cost: mean.cost,
        })
    }

    fn is_like(&self, target: &Target) -> bool {
        let key = |it: &Target| (it.message_bytes, it.flows, it.direction);
        key(&self.target) == key(target)
    }
}

impl Above {
    /// Returns how far the model of `side` is off in those of `all`: of their work, and of their targets.
    pub fn errors(all: &[Self], side: Side) -> [HeldOut; 2] {
        let told: [fn(&Self) -> Estimate; 2] = [|it| it.of_work, |it| it.of_target];
        told.map(|told| {
            let own = all.iter().filter(|it| it.side == side);
            let checks = own.map(|it| Check {
                told: told(it),
                truth: it.measured,
            });
            HeldOut::of(&checks.collect::<Vec<_>>())
        })
    }
}

impl Gain {
    /// Returns what is changed, in words.
    pub fn title(&self) -> String {
        let bytes = |bytes: f64| words::number(Unit::Bytes, bytes);
        let (from, to) = (bytes(self.from_bytes), bytes(self.to_bytes));
        match self.kind {
            Kind::Packet => format!("segments of up to {to}, of {from} before"),
            _ => format!("messages of up to {to}, from {from} on before"),
        }
    }
}
