//! The result as Markdown.

use std::fmt::Write;

use crate::document::Document;
use crate::kept::{Kept, KeptRow};
use crate::tool::Kind;

/// Returns a head with the machine and the tools, and a table for each comparison.
pub fn markdown(document: &Document) -> String {
    let mut text = format!("{}\n\n", document.conditions());
    for comparison in &document.comparisons {
        text.push_str(&table(&Kept::of(comparison)));
    }
    text
}

/// Returns one table; ratios are of medians, and `others` is the median share of the machine that
/// other programs used.
pub fn table(comparison: &Kept) -> String {
    let (divisor, unit) = comparison.unit.scale();
    let has_cpu = |row: &KeptRow| row.client_cpu.is_some() || row.server_cpu.is_some();
    let cpu = comparison
        .unit
        .cpu_per()
        .map(|(_, name)| name)
        .filter(|_| comparison.rows.iter().any(has_cpu));
    let mut text = format!("### {}: {}\n\n", comparison.title, comparison.environment);
    let _ = write!(text, "| row | {unit}, median (range) |");
    if let Some(cpu) = cpu {
        let _ = write!(text, " {cpu}, client | server |");
    }
    text.push_str(" ÷ best peer | ÷ probe | others | runs |\n|---|---:|");
    text.push_str(if cpu.is_some() { "---:|---:|" } else { "" });
    text.push_str("---:|---:|---:|---:|\n");
    let median = |row: &KeptRow| row.value.median;
    let peer = comparison.best(Kind::Peer).map(median);
    let probe = comparison
        .rows
        .iter()
        .find(|row| row.kind == Kind::Probe)
        .map(median);
    for row in &comparison.rows {
        let value = row.value;
        let digits = if value.median / divisor < 100.0 { 1 } else { 0 };
        let _ = write!(
            text,
            "| {} | {:.digits$} ({:.digits$}–{:.digits$}) |",
            row.name,
            value.median / divisor,
            value.least / divisor,
            value.greatest / divisor,
        );
        let or_dash = |value: Option<f64>, words: &dyn Fn(f64) -> String| {
            value.map_or_else(|| "–".to_owned(), words)
        };
        if cpu.is_some() {
            let cpu = |end| or_dash(end, &|end| format!("{end:.3}"));
            let _ = write!(text, " {} | {} |", cpu(row.client_cpu), cpu(row.server_cpu));
        }
        let ratio = |other| or_dash(other, &|other| format!("{:.2}", value.median / other));
        let others = or_dash(row.others_share, &|share| format!("{:.0} %", share * 100.0));
        let _ = writeln!(
            text,
            " {} | {} | {others} | {} |",
            ratio(peer),
            ratio(probe),
            row.runs
        );
    }
    text.push('\n');
    for one in &comparison.targets {
        let _ = writeln!(text, "* {}", one.words);
    }
    for note in &comparison.notes {
        let _ = writeln!(text, "* {note}");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::rounds::{Comparison, Row};
    use crate::run::Run;
    use crate::workload::Contest;

    #[test]
    fn a_row_with_ratios_and_a_row_without_runs() {
        let run = Run {
            value: 5e10,
            client_cpu: Some(0.1),
            server_cpu: None,
            others_share: 0.0,
        };
        let row = |name: &str, kind, runs: Vec<Run>, note: Option<&str>| Row {
            name: name.to_owned(),
            kind,
            runs,
            note: note.map(str::to_owned),
        };
        let comparison = Comparison {
            environment: Environment::LabPinned,
            workload: Contest::Tcp1,
            unit: Contest::Tcp1.unit(),
            rows: vec![
                row("linerate", Kind::Ours, vec![run.clone()], None),
                row("iperf3", Kind::Peer, vec![Run { value: 4e10, ..run }], None),
                row("xfr", Kind::Peer, Vec::new(), Some("broken")),
            ],
            thrown_away: 2,
            kept_busy: 0,
            targets: Vec::new(),
        };
        let text = table(&Kept::of(&comparison));
        assert!(
            text.contains(
                "### TCP, 1 flow, copying, calls as each tool has them by default: lab-pinned"
            ),
            "{text}"
        );
        assert!(
            text.contains("| linerate | 50.0 (50.0–50.0) | 0.100 | – | 1.25 | – | 0 % | 1 |"),
            "{text}"
        );
        assert!(text.contains("* xfr: 0 run(s) only: broken"), "{text}");
        assert!(text.contains("2 run(s) thrown away"), "{text}");
    }
}
