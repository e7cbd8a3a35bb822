//! The queues between devices and protocols (`/proc/net/softnet_stat`): what each CPU processes and
//! drops, and how often NAPI ran out of budget.

use linerate_model::analysis::Table;
use linerate_model::metric::Metric;
use linerate_model::sample::Subject;

use super::super::{Span, Watched};
use super::{Page, number, text, unit_of_counts};

/// What is counted for each CPU, with the column's head.
const COLUMNS: [(&str, Metric); 6] = [
    ("packets", Metric::SoftnetProcessed),
    ("dropped", Metric::SoftnetDropped),
    ("time_squeeze", Metric::SoftnetSqueezed),
    ("from RPS", Metric::SoftnetReceivedRps),
    ("flow limit", Metric::SoftnetFlowLimit),
    ("net irqs", Metric::IrqNetworkCount),
];

pub(super) fn page(watched: &Watched, span: Span) -> Page {
    let unit = unit_of_counts(span);
    let cpus: Vec<(u32, &Subject)> = watched
        .cpus()
        .filter(|(_, subject)| watched.value(subject, Metric::SoftnetProcessed).is_some())
        .collect();
    let line = |(cpu, subject): &(u32, &Subject)| {
        let changes =
            COLUMNS.map(|(_, metric)| number(watched.change(subject, metric, span), unit));
        let backlog = watched.value(subject, Metric::SoftnetBacklog);
        let backlog = number(
            backlog.map(|packets| packets as f64),
            linerate_model::unit::Unit::Count,
        );
        let mut cells = vec![text(cpu.to_string())];
        cells.extend(changes);
        cells.push(backlog);
        cells
    };
    let mut heads = vec!["CPU"];
    heads.extend(COLUMNS.iter().map(|(head, _)| *head));
    heads.push("backlog");
    Page {
        name: "Softnet",
        table: Table::new(
            "Packets processed by each CPU (softnet)",
            heads,
            cpus.iter().map(line),
        ),
        trend: 1,
        verdict: verdict(watched, &cpus, span),
        named_by: &[0],
        is_prose: false,
    }
}

fn verdict(watched: &Watched, cpus: &[(u32, &Subject)], span: Span) -> Option<String> {
    let of = |metric| {
        let changes = cpus
            .iter()
            .filter_map(move |(cpu, subject)| Some((*cpu, watched.change(subject, metric, span)?)));
        changes
            .filter(|(_, change)| *change > 0.0)
            .collect::<Vec<_>>()
    };
    let names = |cpus: &[(u32, f64)]| {
        let names: Vec<String> = cpus.iter().map(|(cpu, _)| cpu.to_string()).collect();
        let noun = if names.len() == 1 { "CPU" } else { "CPUs" };
        format!("{noun} {}", names.join(", "))
    };
    let dropped = of(Metric::SoftnetDropped);
    if !dropped.is_empty() {
        let cpus = names(&dropped);
        return Some(format!(
            "packets are dropped at {cpus}: the backlog is full (net.core.netdev_max_backlog)"
        ));
    }
    let squeezed = of(Metric::SoftnetSqueezed);
    if !squeezed.is_empty() {
        let cpus = names(&squeezed);
        return Some(format!(
            "NAPI ran out of budget on {cpus} (time_squeeze; net.core.netdev_budget): packets wait for the next softirq"
        ));
    }
    let known = cpus.iter().any(|(_, cpu)| {
        watched
            .change(cpu, Metric::SoftnetProcessed, span)
            .is_some()
    });
    known.then(|| "nothing is dropped, and NAPI's budget is enough (no time_squeeze)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::sample;
    use super::*;

    fn verdict_after(dropped: i64, squeezed: i64) -> Option<String> {
        let mut watched = Watched::default();
        for (at_ns, turn) in [(0, 0), (1_000_000_000, 1)] {
            let samples = [
                sample("cpu:0", Metric::SoftnetProcessed, at_ns, turn * 9),
                sample("cpu:1", Metric::SoftnetProcessed, at_ns, turn * 9),
                sample("cpu:1", Metric::SoftnetDropped, at_ns, turn * dropped),
                sample("cpu:0", Metric::SoftnetSqueezed, at_ns, turn * squeezed),
                sample("cpu:0", Metric::SoftnetBacklog, at_ns, 4),
            ];
            watched.take(at_ns, &samples);
        }
        let page = page(&watched, Span::PerSecond);
        assert_eq!(page.table.rows.len(), 2);
        page.verdict
    }

    #[test]
    fn drops_are_worse_than_squeezes_and_both_worse_than_nothing() {
        assert!(
            verdict_after(3, 5)
                .unwrap()
                .contains("dropped at CPU 1: the backlog is full")
        );
        assert!(
            verdict_after(0, 5)
                .unwrap()
                .contains("out of budget on CPU 0")
        );
        assert!(
            verdict_after(0, 0)
                .unwrap()
                .starts_with("nothing is dropped")
        );
    }
}
