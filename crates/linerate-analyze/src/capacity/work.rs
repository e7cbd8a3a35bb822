//! What trials did and what it cost: the rows that a model is fitted to.

use linerate_model::TrialId;
use linerate_model::experiment::{Factor, Level};
use linerate_model::manner::{Manner, Transport};
use linerate_model::workload::Direction;
use serde::Serialize;

use super::fit::Row;
use super::kind::{KINDS, Kind, Side};
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Outcome, name};

/// What a trial did, and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Work {
    /// The trial.
    pub trial: TrialId,
    /// The number of its cell.
    pub cell: usize,
    /// Whether the model was fitted to it.
    pub fitted: bool,
    /// Which way its payload goes, of a stream.
    pub direction: Option<Direction>,
    /// Bytes of a message.
    pub message_bytes: Option<u64>,
    /// Connections.
    pub flows: u32,
    /// Whether its rate was given: below what the hosts and the path can do.
    pub is_paced: bool,
    /// Of each kind, per second: packets, KiB, calls, wake-ups, packets that were held back, connections, and 1 for what is always there.
    pub done: Vec<f64>,
    /// CPUs: all, in user mode, in the kernel, in interrupts.
    pub cost: [Option<f64>; 4],
}

impl Work {
    pub(super) fn bytes(&self) -> f64 {
        self.done[1] * 1024.0
    }

    /// Returns what is fitted: its cost of `mode`, where it has one.
    pub(super) fn row(&self, mode: usize) -> Option<Row> {
        Some(Row {
            cell: self.cell,
            work: self.done.clone(),
            cost: self.cost[mode].filter(|cost| *cost > 0.0)?,
        })
    }
}

/// Returns the cells whose work a model has prices of, in the order of their numbers.
pub(super) fn plain_cells<'d, 'a>(dataset: &'d Dataset<'a>) -> Vec<&'d CellOutcomes<'a>> {
    dataset.measured().filter(|cell| is_plain(cell)).collect()
}

/// Returns what the trials of `cells` did and cost `side`.
pub(super) fn rows(cells: &[&CellOutcomes<'_>], side: Side) -> Vec<Work> {
    let cells = cells.iter().enumerate();
    let rows = cells.flat_map(|(number, cell)| {
        let trials = cell.valid.iter();
        trials.filter_map(move |outcome| work(cell, outcome, side, number))
    });
    rows.collect()
}

/// Returns the numbers of the cells of `rows`, each once.
pub(super) fn numbers(rows: &[Work]) -> Vec<usize> {
    let mut numbers: Vec<usize> = rows.iter().map(|row| row.cell).collect();
    numbers.dedup();
    numbers
}

/// Returns those of `rows` that are trials of cell number `cell`.
pub(super) fn of_cell(rows: &[Work], cell: usize) -> Vec<&Work> {
    rows.iter().filter(|row| row.cell == cell).collect()
}

/// Returns the CPUs that `rows` cost in the mean; absent where one of them has no cost, or there is none.
pub(super) fn mean_cost(rows: &[&Work]) -> Option<f64> {
    let sum = rows.iter().map(|row| row.cost[0]).sum::<Option<f64>>()?;
    Some(sum / rows.len() as f64).filter(|cost| *cost > 0.0)
}

/// Returns what is done in the mean of `rows` for each byte of payload.
pub(super) fn per_byte(rows: &[&Work]) -> Vec<f64> {
    let count = rows.len() as f64;
    let of = |kind: usize| rows.iter().map(move |row| row.done[kind] / row.bytes());
    (0..KINDS.len())
        .map(|kind| of(kind).sum::<f64>() / count)
        .collect()
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
    let both = side.is_of_both();
    let is_idle = direction.is_none() && !cell.workload.traffic.is_transactional();
    let is_own = match (side, direction) {
        (Side::Streams | Side::Receives, Some(Direction::ToServer)) => true,
        (Side::Streams | Side::Sends, Some(Direction::FromServer)) => true,
        (Side::Streams, Some(Direction::Both)) => true,
        (_, Some(_)) => false,
        (side, None) => is_idle || !side.is_of_streams(),
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
                Side::Receives => receives,
                Side::Sends => sends,
                _ => sends + receives,
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
    // Those of senders: of streams that it receives no cost of the server.
    let held_back = value(name::QDISC_OVERLIMITS).filter(|_| side != Side::Receives);
    let connections = value(name::CONNECTIONS).filter(|_| cell.workload.traffic.is_placed());
    let connections = connections.unwrap_or(0.0);
    let others = value(name::CPU_OTHERS).unwrap_or(0.0);
    let others_kernel = value(name::CPU_OTHERS_ALL).map_or(0.0, |all| all - others);
    let less = |response: &str, others: f64| value(response).map(|all| (all - others).max(0.0));
    let interrupts =
        value(name::CPU_SOFTIRQ).map(|soft| soft + value(name::CPU_IRQ).unwrap_or(0.0));
    Some(Work {
        trial: outcome.trial,
        cell: number,
        fitted: true,
        direction,
        message_bytes: cell.message_bytes(),
        flows: cell.workload.connections,
        is_paced: cell.workload.manner.rate_bps.is_some(),
        done: vec![
            packets,
            bytes / 1024.0,
            calls,
            switches?,
            held_back.unwrap_or(0.0),
            connections,
            1.0,
        ],
        cost: [
            value(name::CPU_COST),
            less(name::CPU_USER, others),
            less(name::CPU_SYSTEM, others_kernel),
            interrupts,
        ],
    })
}

/// Returns the work of `bytes` of payload per second: what is there without traffic does not grow with it.
pub(super) fn scaled(per_byte: &[f64], bytes: f64) -> Vec<f64> {
    let kinds = KINDS.iter().zip(per_byte);
    let of = |(kind, each): (&Kind, &f64)| match kind {
        Kind::Always => 1.0,
        _ => each * bytes,
    };
    kinds.map(of).collect()
}
