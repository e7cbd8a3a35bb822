//! The CPUs, each with its time by mode.

use linerate_model::analysis::{Table, TableCell};
use linerate_model::unit::Unit;

use super::super::cpus::{self, Modes};
use super::super::{Span, Watched};
use super::{Page, tenths, text};
use crate::words;

/// Programs that are named, and the least that one of them uses.
const PROGRAMS_TOLD_MAX: usize = 3;
const PROGRAM_CPUS_MIN: f64 = 0.05;

pub(super) fn page(watched: &Watched, span: Span) -> Page {
    let rows = cpus::cpus(watched, span);
    let line = |name: String, modes: &Modes, of: f64| {
        let parts = [
            modes.busy(),
            modes.user,
            modes.system,
            modes.irq,
            modes.softirq,
            modes.steal,
            modes.idle,
        ];
        let cells = parts.map(|part| TableCell::Number(tenths(100.0 * part / of), Unit::Percent));
        [text(name)].into_iter().chain(cells).collect::<Vec<_>>()
    };
    let each = rows
        .iter()
        .map(|row| line(row.cpu.to_string(), &row.modes, 1.0));
    let mut lines: Vec<_> = each.collect();
    if rows.len() > 1 {
        let all = cpus::together(&rows);
        lines.insert(0, line("all".to_owned(), &all, rows.len() as f64));
    }
    let fullest = rows
        .iter()
        .max_by(|a, b| a.modes.busy().total_cmp(&b.modes.busy()));
    let verdict = fullest.map(|fullest| {
        let busy = 100.0 * fullest.modes.busy();
        match busy {
            95.0.. => format!("CPU {} is full: {busy:.0} % busy", fullest.cpu),
            _ => format!(
                "no CPU is full: the fullest, CPU {}, is {busy:.0} % busy",
                fullest.cpu
            ),
        }
    });
    let verdict = verdict.map(|verdict| match users(watched, span) {
        Some(users) => format!("{verdict}; {users}"),
        None => verdict,
    });
    Page {
        name: "CPUs",
        table: Table::new(
            "CPU time by mode",
            [
                "CPU", "busy", "user", "system", "irq", "softirq", "steal", "idle",
            ],
            lines,
        ),
        trend: 1,
        verdict,
        named_by: &[0],
        is_prose: false,
    }
}

/// Who uses the CPUs, as far as programs were read.
fn users(watched: &Watched, span: Span) -> Option<String> {
    let busiest = watched.programs.busiest(span);
    let told = busiest.iter().take(PROGRAMS_TOLD_MAX);
    let told: Vec<String> = told
        .filter(|program| program.cpus >= PROGRAM_CPUS_MIN)
        .map(|program| format!("{} ({:.2} CPUs)", program.name, program.cpus))
        .collect();
    (!told.is_empty()).then(|| format!("most is used by {}", words::list(&told)))
}
