//! What the traffic of a chapter cost, and what the CPUs did: tables that every chapter has.

use linerate_model::analysis::Table;
use linerate_model::profile::Work;

use super::draw;
use crate::dataset::CellOutcomes;
use crate::reduce::{name, share_name};

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
