//! What is seen as tables, a page each.

use linerate_model::analysis::{Table, TableCell};
use linerate_model::host::{FactValue, Snapshot};
use linerate_model::unit::Unit;

use super::{Span, Watched};

mod cpus;
mod interrupts;
mod links;
mod overview;
mod queues;
mod softnet;
mod tcp;
mod trouble;

/// Name of the page whose rows are about the others.
pub const OVERVIEW: &str = "Overview";
/// Name of the page of links.
const LINKS: &str = "Links";
/// Name of the page of what goes wrong.
const TROUBLE: &str = "Trouble";
/// What a sentence begins with that tells of trouble.
pub const ALARM: &str = "! ";

/// One page of a watched host.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// What it is called where there is little room.
    pub name: &'static str,
    /// Its rows; the first cell of each says what the row is about.
    pub table: Table,
    /// The columns that tell a row from the others, from one reading to the next.
    pub named_by: &'static [usize],
    /// The column whose course is worth seeing.
    pub trend: usize,
    /// What the numbers say, where that can be said.
    pub verdict: Option<String>,
    /// Whether the last column is sentences, which are wrapped and never cut.
    pub is_prose: bool,
}

/// Returns every page, in the order in which they are leafed through, an overview of the others first;
/// `facts` are the host's.
pub fn pages(watched: &Watched, facts: &Snapshot, span: Span) -> Vec<Page> {
    let mut pages = vec![
        cpus::page(watched, span),
        queues::page(watched, facts, span),
        interrupts::page(watched, facts, span),
        softnet::page(watched, span),
        tcp::page(watched, span),
        links::page(watched, span),
        trouble::page(watched, span),
    ];
    pages.insert(0, overview::page(watched, &pages, span));
    pages
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

/// Returns `value` to a tenth: time is counted in ticks, of which an interval has a few hundred.
pub(super) fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Returns what traffic came to: bits per second, or bytes in all.
pub(super) fn volume(bytes: Option<f64>, span: Span) -> TableCell {
    match span {
        Span::PerSecond => number(bytes.map(|bytes| 8.0 * bytes), Unit::BitsPerSecond),
        Span::SinceStart => number(bytes, Unit::Bytes),
    }
}

/// Returns a fact of the host as words, a dash where it is not known.
pub(super) fn fact(facts: &Snapshot, name: &str) -> TableCell {
    text(match facts.value(name) {
        Some(FactValue::Text(text)) => text.clone(),
        Some(FactValue::Number(number, _)) => number.to_string(),
        Some(FactValue::Missing(_)) | None => "–".to_owned(),
    })
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

    fn page(watched: &Watched, name: &str, span: Span) -> Page {
        let pages = pages(watched, &Snapshot::default(), span);
        for page in &pages {
            let columns = page.table.columns.len();
            assert!(page.table.rows.iter().all(|row| row.len() == columns));
            assert!(page.trend < columns);
        }
        let page = pages.into_iter().find(|page| page.name == name);
        page.unwrap()
    }

    fn verdict(watched: &Watched, name: &str) -> Option<String> {
        page(watched, name, Span::PerSecond).verdict
    }

    #[test]
    fn verdicts_follow_the_numbers() {
        let check = |busy, dropped, cpus: &str, links: &str| {
            let watched = watched(busy, dropped);
            assert_eq!(verdict(&watched, "CPUs").as_deref(), Some(cpus));
            assert_eq!(verdict(&watched, "Links").as_deref(), Some(links));
        };
        check(
            97,
            0,
            "CPU 0 is full: 97 % busy",
            "no link drops or damages packets",
        );
        check(
            40,
            3,
            "no CPU is full: the fullest, CPU 0, is 40 % busy",
            "packets are dropped or damaged at eth0",
        );
        assert_eq!(
            verdict(&Watched::default(), "CPUs"),
            None,
            "nothing was read"
        );
    }

    #[test]
    fn the_first_row_of_the_cpus_is_all_of_them() {
        let page = page(&watched(40, 0), "CPUs", Span::SinceStart);
        assert_eq!(page.table.rows[0][0], text("all"));
        assert_eq!(
            page.table.rows[0][1],
            TableCell::Number(20.0, Unit::Percent)
        );
        assert_eq!(page.table.rows.len(), 3);
    }
}
