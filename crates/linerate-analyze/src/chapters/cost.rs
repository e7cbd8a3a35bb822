//! What the traffic of a chapter cost, and what the CPUs did: tables that every chapter has.

use linerate_model::analysis::{Table, TableCell};
use linerate_model::profile::Work;
use linerate_model::unit::Unit;

use super::draw;
use crate::compare::interval::student_t_interval;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Together, describe, name, share_name};
use crate::words::sentence;

const COST: &[&str] = &[
    name::CPU_BUSY,
    name::CLIENT_WORKERS,
    name::SERVER_WORKERS,
    name::CPU_PER_GBIT,
    name::CPU_PER_KIB,
    name::CPU_PER_TRANSACTION,
    name::CYCLES_PER_PACKET,
    name::CYCLES_PER_BYTE,
    name::GBIT_PER_GHZ,
    name::INSTRUCTIONS_PER_CYCLE,
    name::CACHE_MISSES_PER_KIB,
    name::HOST_SHARE,
];

/// Told where the CPU counts no cycles.
const NOMINAL: &[&str] = &[
    name::CYCLES_PER_PACKET_NOMINAL,
    name::CYCLES_PER_BYTE_NOMINAL,
    name::GBIT_PER_GHZ_NOMINAL,
];

const INTERRUPTS: &[&str] = &[
    name::CPU_SOFTIRQ,
    name::SOFTIRQ_MEASURED,
    name::NET_RX,
    name::NET_TX,
    name::CPU_IRQ,
    name::HARDIRQ_MEASURED,
];

/// What all groups of a trial cost together.
const TOGETHER: &[&str] = &[
    name::CPU_COST,
    name::CPU_PER_KIB,
    name::CYCLES_PER_BYTE,
    name::CYCLES_PER_BYTE_NOMINAL,
];
/// What the CPUs did meanwhile.
const MODES: &[&str] = &[
    name::CPU_BUSY,
    name::CPU_USER,
    name::CPU_SYSTEM,
    name::CPU_SOFTIRQ,
    name::CPU_IRQ,
    name::CPU_STEAL,
];

/// What is read of all groups of a trial.
type Read = dyn Fn(&Together) -> Option<f64>;

/// A column of what all groups of a trial did.
struct Column {
    head: String,
    unit: Unit,
    of: Box<Read>,
}

/// Returns the table of what all groups of each trial carried and cost, where cells are of the first of several.
pub(super) fn together(dataset: &Dataset<'_>, cells: &[&CellOutcomes<'_>]) -> Option<Table> {
    let of_cell = |cell: &CellOutcomes<'_>| -> Vec<&Together> {
        let trials = cell.valid.iter().map(|outcome| outcome.trial);
        let of_trial = |id| dataset.together.iter().find(|one| one.trial == id);
        trials.filter_map(of_trial).collect()
    };
    let all: Vec<&Together> = cells.iter().flat_map(|cell| of_cell(cell)).collect();
    let mut columns = columns(all.first()?);
    columns.retain(|column| all.iter().any(|one| (column.of)(one).is_some()));
    let heads = columns.iter().map(|column| column.head.clone());
    let title = "All groups together: payload, busy CPUs and cost";
    Some(draw::table_of(title, cells, heads.collect(), |cell| {
        let estimate = |column: &Column| {
            let values = of_cell(cell).into_iter();
            let values: Vec<f64> = values.filter_map(|one| (column.of)(one)).collect();
            TableCell::of(student_t_interval(&values, column.unit), "not read")
        };
        columns.iter().map(estimate).collect()
    }))
}

fn columns(of: &Together) -> Vec<Column> {
    let mut columns = vec![Column {
        head: "Payload".to_owned(),
        unit: Unit::BitsPerSecond,
        of: Box::new(|one| one.payload_bps),
    }];
    for (at, host) in of.hosts.iter().enumerate() {
        let whose = match of.hosts.len() {
            1 => String::new(),
            _ => format!(", {}", host.hosts.join(", ")),
        };
        columns.extend(MODES.iter().map(|mode| Column {
            head: sentence(describe(mode).title) + &whose,
            unit: describe(mode).unit,
            of: Box::new(move |one| one.hosts.get(at)?.responses.get(*mode).copied()),
        }));
    }
    columns.extend(TOGETHER.iter().map(|name| Column {
        head: sentence(describe(name).title),
        unit: describe(name).unit,
        of: Box::new(|one| one.responses.get(*name).copied()),
    }));
    columns
}

/// Returns the tables of cost, of measured interrupts and of the CPUs' work, as far as they were
/// read.
pub(super) fn tables(cells: &[&CellOutcomes<'_>]) -> Vec<Table> {
    let has = |response: &str| cells.iter().any(|cell| !cell.values(response).is_empty());
    let mut tables = Vec::new();
    if has(name::CPU_BUSY) {
        let nominal = if has(name::CYCLES_PER_BYTE) {
            &[]
        } else {
            NOMINAL
        };
        let responses = [COST, nominal].concat();
        tables.push(draw::table("What it cost", cells, &responses));
    }
    if has(name::SOFTIRQ_MEASURED) {
        let title = "Time in interrupts, sampled at the tick and measured";
        tables.push(draw::table(title, cells, INTERRUPTS));
    }
    for end in ["client", "server"] {
        let shares: Vec<String> = Work::ALL
            .iter()
            .map(|work| share_name(end, *work))
            .collect();
        let shares: Vec<&str> = shares.iter().map(String::as_str).collect();
        if shares.iter().any(|share| has(share)) {
            let title = format!("What the {end}'s CPUs did while they were busy");
            tables.push(draw::table(&title, cells, &shares));
        }
    }
    tables
}
