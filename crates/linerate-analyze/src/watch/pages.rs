//! What is seen as tables, a page each.

use linerate_model::analysis::{Table, TableCell};
use linerate_model::unit::Unit;

use super::cpus::{self, Modes};
use super::links::{self, LinkRow, Way};
use super::{Span, Watched};

/// One page of a watched host.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// What it is called where there is little room.
    pub name: &'static str,
    /// Its rows; the first cell of each names what the row is about.
    pub table: Table,
    /// The column whose course is worth seeing.
    pub trend: usize,
    /// What the numbers say, where that can be said.
    pub verdict: Option<String>,
}

/// Returns every page, in the order in which they are leafed through.
pub fn pages(watched: &Watched, span: Span) -> Vec<Page> {
    vec![cpu_page(watched, span), link_page(watched, span)]
}

pub(super) fn text(text: impl Into<String>) -> TableCell {
    TableCell::Text(text.into())
}

/// Returns a number, or that one reading is not enough for it.
pub(super) fn number(value: Option<f64>, unit: Unit) -> TableCell {
    match value {
        Some(value) => TableCell::Number(value, unit),
        None => TableCell::Absent(String::new()),
    }
}

pub(super) fn table(title: &str, columns: &[&str], rows: Vec<Vec<TableCell>>) -> Table {
    Table {
        title: title.to_owned(),
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        rows,
    }
}

/// Returns `value` to a tenth: time is counted in ticks, of which an interval has a few hundred.
pub(super) fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn cpu_page(watched: &Watched, span: Span) -> Page {
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

fn link_page(watched: &Watched, span: Span) -> Page {
    let rows = links::links(watched, span);
    let volume = |way: &Way| match span {
        Span::PerSecond => number(way.bytes.map(|bytes| 8.0 * bytes), Unit::BitsPerSecond),
        Span::SinceStart => number(way.bytes, Unit::Bytes),
    };
    let count = |value| number(value, unit_of_counts(span));
    let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    let line = |row: &LinkRow| {
        vec![
            text(&row.link),
            volume(&row.rx),
            volume(&row.tx),
            count(row.rx.packets),
            count(row.tx.packets),
            number(row.rx.packet_bytes(), Unit::Bytes),
            number(row.tx.packet_bytes(), Unit::Bytes),
            count(sum(row.rx.dropped, row.tx.dropped)),
            count(sum(row.rx.errors, row.tx.errors)),
        ]
    };
    let losing = rows.iter().filter(|row| {
        let parts = [row.rx.dropped, row.tx.dropped, row.rx.errors, row.tx.errors];
        parts.into_iter().flatten().any(|count| count > 0.0)
    });
    let losing: Vec<&str> = losing.map(|row| row.link.as_str()).collect();
    let verdict = match losing.is_empty() {
        true => "no link drops or damages packets".to_owned(),
        false => format!("packets are dropped or damaged at {}", losing.join(", ")),
    };
    Page {
        name: "Links",
        table: table(
            "Links",
            &[
                "link",
                "rx",
                "tx",
                "rx packets",
                "tx packets",
                "rx size",
                "tx size",
                "drops",
                "errors",
            ],
            rows.iter().map(line).collect(),
        ),
        trend: 1,
        verdict: (watched.readings() > 1).then_some(verdict),
    }
}

/// Returns the unit of the change of a count.
pub(super) fn unit_of_counts(span: Span) -> Unit {
    match span {
        Span::PerSecond => Unit::PerSecond,
        Span::SinceStart => Unit::Count,
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::metric::Metric;

    use super::super::tests::sample;
    use super::*;

    fn watched(busy: i64, dropped: i64) -> Watched {
        let mut watched = Watched::default();
        for (at_ns, turn) in [(0, 0), (1_000_000_000, 1)] {
            let samples = [
                sample("cpu:0", Metric::CpuSystem, at_ns, turn * busy),
                sample("cpu:0", Metric::CpuIdle, at_ns, turn * (100 - busy)),
                sample("cpu:1", Metric::CpuIdle, at_ns, turn * 100),
                sample("link:eth0", Metric::LinkRxDropped, at_ns, turn * dropped),
            ];
            watched.take(at_ns, &samples);
        }
        watched
    }

    fn verdicts(watched: &Watched) -> Vec<String> {
        let pages = pages(watched, Span::PerSecond);
        for page in &pages {
            let columns = page.table.columns.len();
            assert!(page.table.rows.iter().all(|row| row.len() == columns));
            assert!(page.trend < columns);
        }
        pages.into_iter().filter_map(|page| page.verdict).collect()
    }

    #[test]
    fn verdicts_follow_the_numbers() {
        assert_eq!(
            verdicts(&watched(97, 0)),
            [
                "CPU 0 is full: 97 % busy",
                "no link drops or damages packets"
            ]
        );
        assert_eq!(
            verdicts(&watched(40, 3)),
            [
                "no CPU is full: the fullest, CPU 0, is 40 % busy",
                "packets are dropped or damaged at eth0"
            ]
        );
        assert!(verdicts(&Watched::default()).is_empty(), "nothing was read");
    }

    #[test]
    fn the_first_row_of_the_cpus_is_all_of_them() {
        let page = &pages(&watched(40, 0), Span::SinceStart)[0];
        assert_eq!(page.table.rows[0][0], text("all"));
        assert_eq!(
            page.table.rows[0][1],
            TableCell::Number(20.0, Unit::Percent)
        );
        assert_eq!(page.table.rows.len(), 3);
    }
}
