//! What traffic costs, and what a target asks for.
//!
//! The CPU time of a trial is packets, bytes, calls, wake-ups and new connections, each times its price, and what the host
//! does always. Prices are fitted to all trials of a run whose hosts are as they are (`fit`); every fifth cell is kept out
//! and tells the error. Where hosts share a machine the cost is that of both ends and of what connects them; else it is the
//! server's, and sending and receiving have prices of their own.

/// Prices with their intervals.
mod fit;
/// What each further CPU or flow is worth.
pub(crate) mod scaling;

use linerate_model::experiment::{Factor, Level};
use linerate_model::finding::Estimate;
use linerate_model::manner::{Manner, Transport};
use linerate_model::number::counted;
use linerate_model::run::Recording;
use linerate_model::unit::Unit;
use linerate_model::workload::Direction;
use serde::Serialize;

use crate::compare::draw::Draw;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Outcome, name};
use crate::words;
use fit::{Fit, Row};

/// This document, and the number of its shape.
pub const CAPACITY_SCHEMA: (&str, u32) = ("linerate.capacity", 1);

/// One cell in so many is never fitted.
const HELD_OUT_EVERY: usize = 5;
/// Share of its variance that the other kinds of work explain, from which on a kind is not told apart from them: variance
/// inflation of ten, the usual bound (Marquardt, "Generalized inverses, ridge regression, biased linear estimation, and
/// nonlinear estimation", Technometrics 12, 1970).
const ALIKE_SHARE_MIN: f64 = 0.9;
/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// Seed of the cells that are drawn again: the same bundle gives the same numbers.
const FIT_SEED: u64 = 1;

/// A kind of work that costs time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Packets of the flows, with payload and without.
    Packet,
    /// Payload, in KiB.
    KiB,
    /// Send and receive calls.
    Call,
    /// Times that a worker was put on a CPU.
    WakeUp,
    /// Connections made and closed.
    Connection,
    /// What is there without traffic: CPUs.
    Always,
}

/// The kinds, in the order of the work of a row.
const KINDS: [Kind; 6] = [
    Kind::Packet,
    Kind::KiB,
    Kind::Call,
    Kind::WakeUp,
    Kind::Connection,
    Kind::Always,
];

impl Kind {
    /// Returns what one of it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::KiB => "KiB of payload",
            Self::Call => "call",
            Self::WakeUp => "wake-up of a worker",
            Self::Connection => "connection",
            Self::Always => "always",
        }
    }
}

/// Whose cost it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Both ends, which share a machine.
    BothEnds,
    /// The server's, while it receives.
    Receives,
    /// The server's, while it sends.
    Sends,
}

impl Side {
    /// Returns whose cost it is, in words.
    pub fn title(self) -> &'static str {
        match self {
            Self::BothEnds => "both ends, on one machine",
            Self::Receives => "the server, which receives",
            Self::Sends => "the server, which sends",
        }
    }
}

/// What a run says of capacity.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Capacity {
    /// Always `linerate.capacity`.
    pub schema: &'static str,
    /// The number of `CAPACITY_SCHEMA`.
    pub schema_version: u32,
    /// Version of the program.
    pub linerate_version: String,
    /// The run.
    pub run: String,
    /// What traffic costs, by side.
    pub models: Vec<Model>,
    /// Why there is none for a side, where there is none.
    pub missing: Vec<String>,
    /// What the target asks for, where one was given and a model has it.
    pub answer: Option<Answer>,
}

/// What traffic costs a side.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Model {
    /// Whose cost it is.
    pub side: Side,
    /// Trials that it was fitted to.
    pub trials: usize,
    /// Their cells.
    pub cells: usize,
    /// What each kind of work costs.
    pub prices: Vec<Price>,
    /// How far it is off where it was not fitted.
    pub held_out: HeldOut,
    /// Kinds of work that this run does not tell apart.
    pub alike: Vec<Kind>,
    /// The highest payload that it was fitted to, bit/s.
    pub fitted_to_bps: f64,
    #[serde(skip)]
    fit: Fit,
    #[serde(skip)]
    rows: Vec<Work>,
}

/// What one of a kind of work costs: CPU time in ns; of what is always there, CPUs.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Price {
    /// The kind.
    pub kind: Kind,
    /// All of it.
    pub all: Estimate,
    /// In user mode.
    pub user: Option<f64>,
    /// In the kernel, for our threads.
    pub system: Option<f64>,
    /// In interrupts.
    pub interrupts: Option<f64>,
}

/// Errors in cells that were not fitted.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HeldOut {
    /// How many there were.
    pub cells: usize,
    /// The median of the relative errors, without sign.
    pub median: Option<f64>,
    /// The largest.
    pub most: Option<f64>,
    /// The share of them whose interval holds what was measured.
    pub held: Option<f64>,
}

/// A rate that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Payload, bit/s.
    pub bps: f64,
    /// Bytes of a message.
    pub message_bytes: u64,
    /// Connections.
    pub flows: u32,
    /// Which way it goes.
    pub direction: Direction,
    /// Share of the CPUs that is to be left.
    pub headroom: f64,
}

/// What a target asks for.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Answer {
    /// Whose cost it is.
    pub side: Side,
    /// CPUs that are busy.
    pub busy: Estimate,
    /// CPUs to have, with the headroom.
    pub cpus: Estimate,
    /// What there is and what is asked of it, what ends first before the others.
    pub supplies: Vec<Supply>,
    /// Where it goes beyond what was measured.
    pub extrapolates: Vec<String>,
}

/// Something that there is so much of.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Supply {
    /// What.
    pub what: String,
    /// What is asked of it.
    pub needs: f64,
    /// What there is.
    pub has: f64,
    /// Its unit, as the documents have it.
    pub unit: Unit,
}

/// What a trial did, and what it cost.
#[derive(Debug, Clone, PartialEq)]
struct Work {
    /// The number of its cell.
    cell: usize,
    direction: Option<Direction>,
    message_bytes: Option<u64>,
    flows: u32,
    /// Whether its rate was given: below what the hosts and the path can do.
    is_paced: bool,
    /// Of each kind, per second, in the order of `KINDS`.
    done: Vec<f64>,
    /// CPUs: all, in user mode, in the kernel, in interrupts.
    cost: [Option<f64>; 4],
}

impl Work {
    fn bytes(&self) -> f64 {
        self.done[1] * 1024.0
    }
}

/// Returns what `recording` says of capacity, and what `target` asks for.
pub fn capacity(recording: &Recording, target: Option<&Target>) -> Capacity {
    let dataset = Dataset::new(recording);
    let document = &recording.document;
    let (models, missing) = models(&dataset);
    Capacity {
        schema: CAPACITY_SCHEMA.0,
        schema_version: CAPACITY_SCHEMA.1,
        linerate_version: document.version.clone(),
        run: document.run.0.clone(),
        answer: target.and_then(|target| answer(&dataset, &models, target)),
        models,
        missing,
    }
}

/// Returns the model of each side of which there are trials enough, and why there is none of another.
pub(crate) fn models(dataset: &Dataset<'_>) -> (Vec<Model>, Vec<String>) {
    let sides: &[Side] = if dataset.is_one_machine() {
        &[Side::BothEnds]
    } else {
        &[Side::Receives, Side::Sends]
    };
    let (mut models, mut missing) = (Vec::new(), Vec::new());
    for side in sides {
        match model(dataset, *side) {
            Ok(model) => models.push(model),
            Err(why) => missing.push(format!("{}: {why}", side.title())),
        }
    }
    (models, missing)
}

fn model(dataset: &Dataset<'_>, side: Side) -> Result<Model, String> {
    let cells = dataset.measured().filter(|cell| is_plain(cell));
    let rows: Vec<Work> = cells
        .enumerate()
        .flat_map(|(number, cell)| {
            let trials = cell.valid.iter();
            trials.filter_map(move |outcome| work(cell, outcome, side, number))
        })
        .collect();
    let mut numbers: Vec<usize> = rows.iter().map(|row| row.cell).collect();
    numbers.dedup();
    // By chance: in their order every fifth may have the same level.
    Draw::new(FIT_SEED).shuffle(&mut numbers);
    let is_held_out = |row: &Work| {
        let place = numbers.iter().position(|number| *number == row.cell);
        place.is_some_and(|place| place % HELD_OUT_EVERY == HELD_OUT_EVERY - 1)
    };
    let (held_out, fitted): (Vec<Work>, Vec<Work>) = rows.into_iter().partition(is_held_out);
    let rows_of = |mode: usize| -> Vec<Row> {
        let row = |work: &Work| {
            let cost = work.cost[mode].filter(|cost| *cost > 0.0)?;
            Some(Row {
                cell: work.cell,
                work: work.done.clone(),
                cost,
            })
        };
        fitted.iter().filter_map(row).collect()
    };
    let few = || {
        let there = counted(numbers.len() as u64, "cell");
        format!("{there} of plain streams and exchanges with their cost are too few")
    };
    let fit = Fit::of(&rows_of(0), FIT_SEED).ok_or_else(few)?;
    let modes =
        [1, 2, 3].map(|mode| Some(Fit::prices_of(&rows_of(mode))).filter(|it| !it.is_empty()));
    let price = |(at, kind): (usize, Kind)| {
        // Times in ns; what is always there in CPUs.
        let (scale, unit) = match kind {
            Kind::Always => (1.0, Unit::Cpus),
            _ => (1e9, Unit::Nanoseconds),
        };
        let (low, high) = fit.price_interval(at);
        let of = |mode: usize| modes[mode].as_ref().map(|prices| scale * prices[at]);
        Price {
            kind,
            all: Estimate {
                value: scale * fit.prices[at],
                low: Some(scale * low),
                high: Some(scale * high),
                confidence: CONFIDENCE,
                n: fitted.len() as u32,
                unit,
            },
            user: of(0),
            system: of(1),
            interrupts: of(2),
        }
    };
    let done = |kind: usize| fitted.iter().any(|row| row.done[kind] > 0.0);
    let kinds = KINDS.into_iter().enumerate().filter(|(at, _)| done(*at));
    let fitted_to = fitted.iter().map(|row| 8.0 * row.bytes());
    Ok(Model {
        side,
        trials: fitted.len(),
        cells: {
            let mut cells: Vec<usize> = fitted.iter().map(|row| row.cell).collect();
            cells.dedup();
            cells.len()
        },
        prices: kinds.map(price).collect(),
        held_out: errors(&fit, &held_out),
        alike: alike(&fitted),
        fitted_to_bps: fitted_to.fold(0.0, f64::max),
        fit,
        rows: fitted,
    })
}

/// Returns whether a cell's hosts are as they are but for what the model knows: what else is set has prices of its own.
pub(crate) fn is_plain(cell: &CellOutcomes<'_>) -> bool {
    let is_known = |(factor, level): (&Factor, &Level)| {
        factor.knob().is_none() || *factor == Factor::Mtu || level.is_auto()
    };
    let manner = &cell.workload.manner;
    let usual = Manner {
        rate_bps: manner.rate_bps,
        requests_per_s: manner.requests_per_s,
        cpus: manner.cpus,
        ..Manner::default()
    };
    cell.experiment.beside.is_empty()
        && cell.cell.iter().all(is_known)
        && manner.transport == Transport::Tcp
        && usual == *manner
        && cell.workload.link_loss_ppm.unwrap_or(0) == 0
}

/// Returns what a trial did and what it cost `side`; absent where that was not read, or is another side's.
fn work(cell: &CellOutcomes<'_>, outcome: &Outcome, side: Side, number: usize) -> Option<Work> {
    let value = |response: &str| outcome.value(response);
    let direction = cell.workload.traffic.direction();
    let both = side == Side::BothEnds;
    let is_own = match (side, direction) {
        (Side::BothEnds, _) | (_, None) => true,
        (Side::Receives, Some(way)) => way == Direction::ToServer,
        (Side::Sends, Some(way)) => way == Direction::FromServer,
    };
    if !is_own {
        return None;
    }
    let transactions = value(name::TRANSACTIONS);
    let exchange = cell.workload.traffic.exchange();
    let (bytes, calls) = match (direction, exchange) {
        (Some(_), _) => {
            let sends = value(name::SEND_CALLS)?;
            let receives = value(name::RECEIVE_CALLS)?;
            let calls = match side {
                Side::BothEnds => sends + receives,
                Side::Receives => receives,
                Side::Sends => sends,
            };
            (value(name::THROUGHPUT)? / 8.0, calls)
        }
        (None, Some((request, response))) => {
            let rate = transactions?;
            let ends = if both { 2.0 } else { 1.0 };
            let writes = f64::from(cell.workload.traffic.request_writes());
            let bytes = (request.0 + response.0) as f64;
            (rate * bytes, rate * ends * (1.0 + writes))
        }
        (None, None) => (0.0, 0.0),
    };
    let packets = value(name::DATA_SEGMENTS).unwrap_or(0.0) + value(name::ACKS).unwrap_or(0.0);
    let switches = value(if both {
        name::CONTEXT_SWITCHES
    } else {
        name::SERVER_SWITCHES
    });
    let connections = value(name::CONNECTIONS).filter(|_| cell.workload.traffic.is_placed());
    let connections = connections.unwrap_or(0.0);
    let others = value(name::CPU_OTHERS).unwrap_or(0.0);
    let others_kernel = value(name::CPU_OTHERS_ALL).map_or(0.0, |all| all - others);
    let less = |response: &str, others: f64| value(response).map(|all| (all - others).max(0.0));
    let interrupts =
        value(name::CPU_SOFTIRQ).map(|soft| soft + value(name::CPU_IRQ).unwrap_or(0.0));
    Some(Work {
        cell: number,
        direction,
        message_bytes: cell.message_bytes(),
        flows: cell.workload.connections,
        is_paced: cell.workload.manner.rate_bps.is_some(),
        done: vec![packets, bytes / 1024.0, calls, switches?, connections, 1.0],
        cost: [
            value(name::CPU_COST),
            less(name::CPU_USER, others),
            less(name::CPU_SYSTEM, others_kernel),
            interrupts,
        ],
    })
}

/// Returns the errors of `fit` in cells that it has not seen: of the mean of each.
fn errors(fit: &Fit, rows: &[Work]) -> HeldOut {
    let mut cells: Vec<usize> = rows.iter().map(|row| row.cell).collect();
    cells.dedup();
    let of_cell = |cell: usize| {
        let own: Vec<&Work> = rows.iter().filter(|row| row.cell == cell).collect();
        let count = own.len() as f64;
        let cost = own.iter().map(|row| row.cost[0]).sum::<Option<f64>>()? / count;
        let mean = |kind: usize| own.iter().map(|row| row.done[kind]).sum::<f64>() / count;
        let done: Vec<f64> = (0..KINDS.len()).map(mean).collect();
        let (low, high) = fit.cost_interval(&done);
        let error = (fit.cost(&done) / cost - 1.0).abs();
        (cost > 0.0).then_some((error, (low..=high).contains(&cost)))
    };
    let mut found: Vec<(f64, bool)> = cells.into_iter().filter_map(of_cell).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let held = found.iter().filter(|(_, held)| *held).count() as f64;
    HeldOut {
        cells: found.len(),
        median: found.get(found.len() / 2).map(|(error, _)| *error),
        most: found.last().map(|(error, _)| *error),
        held: (!found.is_empty()).then(|| held / found.len() as f64),
    }
}

/// Returns the kinds of work whose amounts, relative to the cost, follow from those of the others.
fn alike(rows: &[Work]) -> Vec<Kind> {
    let share =
        |row: &Work, kind: usize| Some(row.done[kind] / row.cost[0].filter(|it| *it > 0.0)?);
    let column =
        |kind: usize| -> Vec<f64> { rows.iter().filter_map(|row| share(row, kind)).collect() };
    let is_alike = |kind: &usize| {
        let own = column(*kind);
        let others: Vec<Vec<f64>> = (0..KINDS.len())
            .filter(|other| other != kind)
            .map(column)
            .filter(|column| column.iter().any(|it| *it > 0.0))
            .collect();
        let all: f64 = own.iter().map(|it| it * it).sum();
        if all <= 0.0 {
            return false;
        }
        let rest = crate::compare::line::left_over(&own, &others);
        rest < (1.0 - ALIKE_SHARE_MIN) * all
    };
    let kinds = (0..KINDS.len()).filter(is_alike);
    kinds.map(|kind| KINDS[kind]).collect()
}

/// Returns what `target` asks for, by the model of its side.
fn answer(dataset: &Dataset<'_>, models: &[Model], target: &Target) -> Option<Answer> {
    let side = match (dataset.is_one_machine(), target.direction) {
        (true, _) => Side::BothEnds,
        (false, Direction::FromServer) => Side::Sends,
        (false, _) => Side::Receives,
    };
    let model = models.iter().find(|model| model.side == side)?;
    let done = model.work_of(target)?;
    let busy = model.busy(target)?;
    let cpus = busy.map(Unit::Cpus, |cpus| cpus / (1.0 - target.headroom));
    Some(Answer {
        side,
        busy,
        cpus,
        supplies: supplies(dataset, model, target, &done, cpus.value),
        extrapolates: model.extrapolates(target),
    })
}

impl Model {
    /// Returns the sizes of messages that it was fitted to in `direction`, ascending: those of loads below saturation, where there
    /// are such.
    pub(crate) fn message_sizes(&self, direction: Direction) -> Vec<u64> {
        let sizes = |is_meant: fn(&Work) -> bool| {
            let own = self
                .rows
                .iter()
                .filter(|row| row.direction == Some(direction));
            let own = own.filter(|row| is_meant(row));
            let mut sizes: Vec<u64> = own.filter_map(|row| row.message_bytes).collect();
            sizes.sort_unstable();
            sizes.dedup();
            sizes
        };
        let paced = sizes(|row| row.is_paced);
        if paced.is_empty() {
            sizes(|_| true)
        } else {
            paced
        }
    }

    /// Returns the CPUs that are busy with `target`.
    pub(crate) fn busy(&self, target: &Target) -> Option<Estimate> {
        let done = self.work_of(target)?;
        let (low, high) = self.fit.cost_interval(&done);
        Some(Estimate {
            value: self.fit.cost(&done),
            low: Some(low),
            high: Some(high),
            confidence: CONFIDENCE,
            n: self.trials as u32,
            unit: Unit::Cpus,
        })
    }

    /// Returns the work that `target` is: what the trials with messages of about that size do for each byte, those of them
    /// that carry most.
    fn work_of(&self, target: &Target) -> Option<Vec<f64>> {
        let far = |row: &Work| {
            let bytes = row.message_bytes? as f64;
            let is_way = row.direction == Some(target.direction);
            is_way.then(|| (bytes / target.message_bytes as f64).ln().abs())
        };
        let nearest = self.rows.iter().filter_map(far).min_by(f64::total_cmp)?;
        let near = self.rows.iter().filter(|row| far(row) == Some(nearest));
        let near: Vec<&Work> = near.collect();
        let most = near.iter().map(|row| row.bytes()).fold(0.0, f64::max);
        let fast: Vec<&&Work> = near
            .iter()
            .filter(|row| 2.0 * row.bytes() >= most)
            .collect();
        let bytes = target.bps / 8.0;
        let each = |kind: usize| {
            let of = fast.iter().map(|row| row.done[kind] / row.bytes());
            of.sum::<f64>() / fast.len() as f64
        };
        let mut done: Vec<f64> = (0..KINDS.len()).map(|kind| each(kind) * bytes).collect();
        // What is there without traffic does not grow with it.
        *done.last_mut()? = 1.0;
        Some(done)
    }

    /// Says where `target` is beyond what was measured.
    fn extrapolates(&self, target: &Target) -> Vec<String> {
        let mut beyond = Vec::new();
        if target.bps > self.fitted_to_bps {
            beyond.push(format!(
                "the rate is {} times the highest that was measured",
                words::number(Unit::Ratio, target.bps / self.fitted_to_bps)
            ));
        }
        let sizes = self.rows.iter().filter_map(|row| row.message_bytes);
        let (least, most) = sizes.fold((u64::MAX, 0), |(least, most), bytes| {
            (least.min(bytes), most.max(bytes))
        });
        if target.message_bytes < least || target.message_bytes > most {
            beyond.push(format!(
                "messages of {} were not measured: from {} to {}",
                words::number(Unit::Bytes, target.message_bytes as f64),
                words::number(Unit::Bytes, least as f64),
                words::number(Unit::Bytes, most as f64),
            ));
        }
        let flows = self.rows.iter().map(|row| row.flows).max().unwrap_or(0);
        if target.flows > flows {
            beyond.push(format!(
                "{} were not measured: up to {flows}",
                counted(target.flows, "connection")
            ));
        }
        beyond
    }
}

/// Returns what there is and what is asked of it, what ends first before the others.
fn supplies(
    dataset: &Dataset<'_>,
    model: &Model,
    target: &Target,
    done: &[f64],
    cpus: f64,
) -> Vec<Supply> {
    let of = |what: &str, needs: f64, has: Option<f64>, unit: Unit| {
        has.filter(|has| *has > 0.0).map(|has| Supply {
            what: what.to_owned(),
            needs,
            has,
            unit,
        })
    };
    let link = dataset.path.rate_bps(dataset.clients().count() as u32);
    let full = dataset.measured().find_map(|cell| {
        let is_way = cell.workload.traffic.direction() == Some(target.direction);
        let limit = dataset.path_of(cell).limit_bps(&cell.workload, None, None);
        limit.filter(|_| is_way)
    });
    // Of an interrupt's CPU a receive queue has one.
    let interrupts = model.prices.iter().zip(model.kinds());
    let interrupts: f64 = interrupts
        .filter_map(|(price, at)| Some(price.interrupts? * done[at] / 1e9))
        .sum();
    let server = dataset.recording.document.server();
    let queues = server.and_then(|server| {
        let link = server.link.as_deref()?;
        server.snapshot.number(&format!("link.{link}.rx_queues"))
    });
    let mut all: Vec<Supply> = [
        of(
            "CPUs of the host, with the headroom",
            cpus,
            dataset.cpus(),
            Unit::Cpus,
        ),
        of(
            "payload that the links carry",
            target.bps,
            full.or(link),
            Unit::BitsPerSecond,
        ),
        of(
            "CPUs that interrupts of the receive queues run on",
            interrupts,
            queues,
            Unit::Cpus,
        ),
        of(
            "CPUs of the flows, one each",
            cpus - interrupts,
            Some(f64::from(target.flows)),
            Unit::Cpus,
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    all.sort_by(|a, b| (b.needs / b.has).total_cmp(&(a.needs / a.has)));
    all
}

impl Model {
    /// Returns the places of its prices among the kinds of work, without what is always there.
    fn kinds(&self) -> Vec<usize> {
        let place = |price: &Price| KINDS.iter().position(|kind| *kind == price.kind);
        self.prices.iter().filter_map(place).collect()
    }
}
