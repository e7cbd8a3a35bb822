//! The result as Markdown.

use std::fmt::Write;

use crate::document::Document;
use crate::rounds::{Comparison, Row};
use crate::target::best;
use crate::tool::Kind;

/// Returns a head with the machine and the tools, and a table for each comparison.
pub fn markdown(document: &Document) -> String {
    let mut text = head(document);
    for comparison in &document.comparisons {
        text.push_str(&table(comparison));
    }
    text
}

fn head(document: &Document) -> String {
    let (machine, settings) = (&document.machine, &document.settings);
    let mut text = format!(
        "{}, {} CPUs; Linux {}; congestion control {} (host: {}); huge pages {}; \
         {} rounds of {} s, runs with others above {:.0} % of the machine thrown away.\n\n",
        machine.cpu,
        machine.cpus,
        machine.kernel,
        document.congestion,
        machine.congestion,
        machine.huge_pages,
        settings.rounds,
        settings.seconds,
        settings.others_share_max * 100.0
    );
    for (name, version) in &document.tools {
        let _ = writeln!(
            text,
            "* {name}: {}",
            version.as_deref().unwrap_or("not installed")
        );
    }
    text.push('\n');
    text
}

/// Returns one table; ratios are of medians, and `others` is the median share of the machine that
/// other programs used.
fn table(comparison: &Comparison) -> String {
    let (_, title) = comparison.workload.words();
    let (divisor, unit) = comparison.unit.scale();
    let cpu = comparison.unit.cpu_per().map(|(_, name)| name);
    let mut text = format!("### {title}: {}\n\n", comparison.environment.name());
    let _ = write!(text, "| row | {unit}, median (range) |");
    if let Some(cpu) = cpu {
        let _ = write!(text, " {cpu}, client | server |");
    }
    text.push_str(" ÷ best peer | ÷ probe | others | runs |\n|---|---:|");
    text.push_str(if cpu.is_some() { "---:|---:|" } else { "" });
    text.push_str("---:|---:|---:|---:|\n");
    let median = |row: &Row| row.value().map(|spread| spread.median);
    let peer = best(comparison, Kind::Peer).and_then(median);
    let probe = comparison.rows.iter().find(|row| row.kind == Kind::Probe);
    let probe = probe.and_then(median);
    for row in &comparison.rows {
        let Some(value) = row.value() else {
            continue;
        };
        let digits = if value.median / divisor < 100.0 { 1 } else { 0 };
        let _ = write!(
            text,
            "| {} | {:.digits$} ({:.digits$}–{:.digits$}) |",
            row.name,
            value.median / divisor,
            value.least / divisor,
            value.greatest / divisor,
        );
        if cpu.is_some() {
            let end = |of: fn(&crate::run::Run) -> Option<f64>| {
                row.spread(of)
                    .map_or_else(|| "–".to_owned(), |spread| format!("{:.3}", spread.median))
            };
            let (client, server) = (end(|run| run.client_cpu), end(|run| run.server_cpu));
            let _ = write!(text, " {client} | {server} |");
        }
        let ratio = |other: Option<f64>| {
            other.map_or_else(
                || "–".to_owned(),
                |other| format!("{:.2}", value.median / other),
            )
        };
        let others = row.spread(|run| Some(run.others_share));
        let _ = writeln!(
            text,
            " {} | {} | {:.0} % | {} |",
            ratio(peer),
            ratio(probe),
            others.map_or(0.0, |others| others.median * 100.0),
            row.runs.len()
        );
    }
    text.push('\n');
    for one in &comparison.targets {
        let _ = writeln!(text, "* {}", one.sentence(comparison.unit));
    }
    for row in comparison.rows.iter().filter(|row| row.note.is_some()) {
        let note = row.note.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "* {}: {} run(s) only: {note}",
            row.name,
            row.runs.len()
        );
    }
    let (thrown, busy) = (comparison.thrown_away, comparison.kept_busy);
    let _ = writeln!(
        text,
        "* {thrown} run(s) thrown away because other programs used the machine, {busy} kept although they did.\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::run::Run;
    use crate::workload::Workload;

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
            workload: Workload::Tcp1,
            unit: Workload::Tcp1.unit(),
            rows: vec![
                row("linerate", Kind::Ours, vec![run.clone()], None),
                row("iperf3", Kind::Peer, vec![Run { value: 4e10, ..run }], None),
                row("xfr", Kind::Peer, Vec::new(), Some("broken")),
            ],
            thrown_away: 2,
            kept_busy: 0,
            targets: Vec::new(),
        };
        let text = table(&comparison);
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
