//! The interrupts of network devices: how many, for which queue, and on which CPU.

use linerate_model::analysis::Table;
use linerate_model::fact::{IrqFact, OfIrq};
use linerate_model::host::Snapshot;
use linerate_model::metric::Metric;
use linerate_model::sample::Subject;

use super::super::{Span, Watched};
use super::{Page, fact, number, text, unit_of_counts};

pub(super) fn page(watched: &Watched, facts: &Snapshot, span: Span) -> Page {
    let irqs: Vec<(u32, &Subject)> = watched
        .subjects()
        .filter_map(|subject| match subject {
            Subject::Irq(irq) => Some((*irq, subject)),
            _ => None,
        })
        .collect();
    let line = |(irq, subject): &(u32, &Subject)| {
        let of = |what| fact(facts, &IrqFact { irq: *irq, what }.to_string());
        let change = watched.change(subject, Metric::IrqCount, span);
        vec![
            text(irq.to_string()),
            number(change, unit_of_counts(span)),
            text(taken_by(watched, *irq, span)),
            of(OfIrq::Link),
            of(OfIrq::Queue),
            of(OfIrq::Cpus),
            of(OfIrq::Node),
            of(OfIrq::Action),
        ]
    };
    Page {
        name: "Interrupts",
        table: Table::new(
            "Interrupts of network devices",
            [
                "irq",
                "count",
                "on CPU",
                "device",
                "queue",
                "may run on",
                "node",
                "name",
            ],
            irqs.iter().map(line),
        ),
        trend: 1,
        verdict: (watched.readings() > 1 || irqs.is_empty())
            .then(|| verdict(watched, irqs.len(), span)),
        named_by: &[0],
        is_prose: false,
    }
}

/// CPUs named of an interrupt: the others share what is left.
const CPUS_NAMED_MAX: usize = 3;

/// Returns the CPUs that took `irq`, those that took most of it first, with their parts of it where
/// there are several.
fn taken_by(watched: &Watched, irq: u32, span: Span) -> String {
    let counts = watched.pairs_of(irq).filter_map(|(cpu, subject)| {
        let count = watched.change(subject, Metric::IrqCpuCount, span)?;
        (count > 0.0).then_some((cpu, count))
    });
    let mut counts: Vec<(u32, f64)> = counts.collect();
    counts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let sum: f64 = counts.iter().map(|(_, count)| count).sum();
    match counts.as_slice() {
        [] => "–".to_owned(),
        [(cpu, _)] => cpu.to_string(),
        several => {
            let named = several
                .iter()
                .take(CPUS_NAMED_MAX)
                .map(|(cpu, count)| format!("{cpu} ({:.0} %)", 100.0 * count / sum));
            let mut words = named.collect::<Vec<_>>().join(", ");
            if several.len() > CPUS_NAMED_MAX {
                words += &format!(", {} more", several.len() - CPUS_NAMED_MAX);
            }
            words
        }
    }
}

/// Returns how the interrupts lie on the CPUs.
fn verdict(watched: &Watched, irqs: usize, span: Span) -> String {
    if irqs == 0 {
        return "no network device here has interrupts of its own".to_owned();
    }
    let counts = watched.cpus().filter_map(|(cpu, subject)| {
        let count = watched.change(subject, Metric::IrqNetworkCount, span)?;
        Some((cpu, count))
    });
    let counts: Vec<(u32, f64)> = counts.collect();
    let sum: f64 = counts.iter().map(|(_, count)| count).sum();
    let busiest = counts.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    match busiest {
        Some((cpu, most)) if sum > 0.0 => {
            let taking = counts.iter().filter(|(_, count)| *count > 0.0).count();
            let share = 100.0 * most / sum;
            format!(
                "{taking} of {} CPUs take them; CPU {cpu} takes {share:.0} %",
                counts.len()
            )
        }
        _ => "no network device interrupts now".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::analysis::TableCell;
    use linerate_model::host::{Fact, FactValue};

    use super::super::super::tests::sample;
    use super::*;

    #[test]
    fn an_interrupt_is_shown_with_its_queue_and_cpu() {
        let mut watched = Watched::default();
        for (at_ns, turn) in [(0, 0), (1_000_000_000, 1)] {
            let samples = [
                sample("irq:38", Metric::IrqCount, at_ns, 100 * turn),
                sample("irq:38:cpu:0", Metric::IrqCpuCount, at_ns, 25 * turn),
                sample("irq:38:cpu:1", Metric::IrqCpuCount, at_ns, 75 * turn),
                sample("irq:38:cpu:7", Metric::IrqCpuCount, at_ns, 5),
                sample("irq:39:cpu:7", Metric::IrqCpuCount, at_ns, 9 * turn),
                sample("cpu:0", Metric::IrqNetworkCount, at_ns, 25 * turn),
                sample("cpu:1", Metric::IrqNetworkCount, at_ns, 75 * turn),
            ];
            watched.take(at_ns, &samples);
        }
        let fact = |name: &str, value: &str| Fact {
            name: format!("irq.38.{name}"),
            value: FactValue::Text(value.to_owned()),
        };
        let facts = Snapshot {
            facts: vec![fact("link", "eth0"), fact("queue", "rx:0")],
        };
        let page = page(&watched, &facts, Span::PerSecond);
        let words: Vec<_> = page.table.rows[0]
            .iter()
            .filter_map(|cell| match cell {
                TableCell::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(
            words,
            ["38", "1 (75 %), 0 (25 %)", "eth0", "rx:0", "–", "–", "–"]
        );
        assert_eq!(taken_by(&watched, 39, Span::PerSecond), "7");
        assert_eq!(taken_by(&watched, 40, Span::PerSecond), "–");
        let verdict = page.verdict.unwrap();
        assert_eq!(verdict, "2 of 2 CPUs take them; CPU 1 takes 75 %");
    }

    #[test]
    fn a_host_without_such_interrupts_says_so() {
        let page = page(&Watched::default(), &Snapshot::default(), Span::PerSecond);
        assert!(page.verdict.unwrap().starts_with("no network device here"));
    }
}
