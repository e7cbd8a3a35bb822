//! The CPUs, each with its time by mode.

use linerate_model::analysis::TableCell;
use linerate_model::unit::Unit;

use super::super::cpus::{self, Modes};
use super::super::{Span, Watched};
use super::{Page, table, tenths, text};

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
    Page {
        name: "CPUs",
        table: table(
            "CPU time by mode",
            &[
                "CPU", "busy", "user", "system", "irq", "softirq", "steal", "idle",
            ],
            lines,
        ),
        trend: 1,
        verdict,
    }
}
