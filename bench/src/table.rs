//! The result as Markdown.

use std::fmt::Write;

use crate::rounds::Comparison;
use crate::tool::Workload;

/// Returns a table for each workload; ratios are ours over the peer's, of the medians.
pub fn markdown(comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    for comparison in comparisons {
        let Workload::TcpStream { flows } = comparison.workload;
        let _ = writeln!(text, "### TCP stream, {flows} flow(s), loopback\n");
        text.push_str(
            "| tool | Gbit/s, median (range) | CPU s/GiB, median | linerate ÷ tool | runs |\n",
        );
        text.push_str("|---|---:|---:|---:|---:|\n");
        let ours = comparison
            .rows
            .first()
            .map(|row| row.spread(|run| run.bits_per_second).0);
        for row in &comparison.rows {
            let (median, least, most) = row.spread(|run| run.bits_per_second);
            let (cpu, ..) = row.spread(|run| run.cpu_s_per_gib);
            let ratio = ours.map_or(f64::NAN, |ours| ours / median);
            let _ = writeln!(
                text,
                "| {} | {:.1} ({:.1}–{:.1}) | {cpu:.3} | {ratio:.3} | {} |",
                row.tool,
                median / 1e9,
                least / 1e9,
                most / 1e9,
                row.runs.len()
            );
        }
        let (thrown, busy) = (comparison.thrown_away, comparison.kept_busy);
        let _ = writeln!(
            text,
            "\n{thrown} runs thrown away because other programs used the machine, {busy} kept although they did.\n"
        );
    }
    text
}
