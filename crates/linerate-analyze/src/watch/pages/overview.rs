//! The overview: what each page says in one line, and every counter that proves trouble.

use linerate_model::analysis::{Table, TableCell};
use linerate_model::number::agreeing;

use super::super::links::links;
use super::super::{Span, Watched};
use super::{ALARM, LINKS, OVERVIEW, Page, TROUBLE, number, text, volume};

/// Links whose traffic is told, those with most first.
const LINKS_MAX: usize = 4;

/// Returns the overview of `pages`; each row begins with the name of the page that has more.
pub(super) fn page(watched: &Watched, pages: &[Page], span: Span) -> Page {
    let mut rows = Vec::new();
    let trouble = pages.iter().find(|page| page.name == TROUBLE);
    for row in trouble.iter().flat_map(|page| &page.table.rows) {
        let [place, count, what] = [0, 1, 2].map(|at| row.get(at).map(words).unwrap_or_default());
        rows.push(line(TROUBLE, format!("{ALARM}{what}: {count} ({place})")));
    }
    if let (true, Some(verdict)) = (
        rows.is_empty(),
        trouble.and_then(|page| page.verdict.clone()),
    ) {
        rows.push(line(TROUBLE, verdict));
    }
    for page in pages.iter().filter(|page| page.name != TROUBLE) {
        if let Some(verdict) = &page.verdict {
            rows.push(line(page.name, verdict.clone()));
        }
        if page.name == LINKS {
            let traffic = traffic(watched, span);
            rows.extend(traffic.into_iter().map(|words| line(LINKS, words)));
        }
    }
    if rows.is_empty() {
        rows.push(line(
            OVERVIEW,
            "one reading so far; rates need two".to_owned(),
        ));
    }
    Page {
        name: OVERVIEW,
        table: Table::new(OVERVIEW, ["page", "what it says"], rows),
        trend: 0,
        verdict: None,
        named_by: &[0],
        is_prose: true,
    }
}

fn line(name: &str, words: String) -> Vec<TableCell> {
    vec![text(name), text(words)]
}

/// Returns a cell as words of a sentence.
fn words(cell: &TableCell) -> String {
    match cell {
        TableCell::Text(text) => text.clone(),
        TableCell::Number(value, unit) => linerate_model::number::display(*value, *unit),
        TableCell::Estimate(estimate) => {
            linerate_model::number::display(estimate.value, estimate.unit)
        }
        TableCell::Absent(_) => "–".to_owned(),
    }
}

/// Returns what goes through each link that has traffic.
fn traffic(watched: &Watched, span: Span) -> Vec<String> {
    let mut links = links(watched, span);
    let bytes = |way: &super::super::links::Way| way.bytes.unwrap_or(0.0);
    links.retain(|link| bytes(&link.rx) + bytes(&link.tx) > 0.0);
    links.sort_by(|a, b| {
        let sum = |link: &super::super::links::LinkRow| bytes(&link.rx) + bytes(&link.tx);
        sum(b).total_cmp(&sum(a))
    });
    let told = links.iter().take(LINKS_MAX).map(|link| {
        let [rx, tx] = [&link.rx, &link.tx].map(|way| {
            let packets = number(way.packets, super::unit_of_counts(span));
            let packets = match span {
                Span::PerSecond => words(&packets).replace("/s", " packets/s"),
                Span::SinceStart => agreeing(&words(&packets), "packet", "packets"),
            };
            format!("{} ({packets})", words(&volume(way.bytes, span)))
        });
        format!("{} receives {rx} and sends {tx}", link.link)
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use linerate_model::host::Snapshot;
    use linerate_model::metric::Metric;

    use super::super::super::tests::sample;
    use super::*;

    fn rows(dropped: i64, squeezed: i64) -> Vec<(String, String)> {
        let mut watched = Watched::default();
        for (at_ns, turn) in [(0, 0), (1_000_000_000, 1)] {
            let samples = [
                sample("cpu:0", Metric::CpuSystem, at_ns, turn * 97),
                sample("cpu:0", Metric::CpuIdle, at_ns, turn * 3),
                sample("cpu:0", Metric::SoftnetProcessed, at_ns, turn * 9),
                sample("cpu:0", Metric::SoftnetSqueezed, at_ns, turn * squeezed),
                sample("host", Metric::SnmpUdpRcvbufErrors, at_ns, turn * dropped),
                sample("link:eth0", Metric::LinkRxBytes, at_ns, turn * 125_000),
                sample("link:eth0", Metric::LinkTxBytes, at_ns, turn * 1250),
                sample("link:lo", Metric::LinkRxBytes, at_ns, 0),
            ];
            watched.take(at_ns, &samples);
        }
        let page = super::super::pages(&watched, &Snapshot::default(), Span::PerSecond).remove(0);
        assert_eq!(page.name, "Overview");
        let row = |row: &Vec<TableCell>| (words(&row[0]), words(&row[1]));
        page.table.rows.iter().map(row).collect()
    }

    #[test]
    fn trouble_comes_first_and_each_page_has_its_line() {
        let rows = rows(120, 7);
        assert_eq!(rows[0].0, "Trouble");
        assert!(
            rows[0].1.starts_with("! UDP: receive buffer full"),
            "{rows:?}"
        );
        assert!(rows[0].1.ends_with("120/s (host)"), "{rows:?}");
        assert!(rows[1].1.contains("time_squeeze"), "{rows:?}");
        assert_eq!(rows[2], ("CPUs".into(), "CPU 0 is full: 97 % busy".into()));
        let links: Vec<_> = rows.iter().filter(|row| row.0 == "Links").collect();
        assert!(
            links[1].1.starts_with("eth0 receives 1 Mbit/s"),
            "{links:?}"
        );
        assert_eq!(
            links.len(),
            2,
            "a link without traffic is not told: {links:?}"
        );
    }

    #[test]
    fn without_trouble_that_is_said() {
        let rows = rows(0, 0);
        let none = ("Trouble".into(), "nothing is dropped or refused".into());
        assert_eq!(rows[0], none);
        assert_eq!(rows[1].0, "CPUs");
    }

    #[test]
    fn one_reading_says_that_there_is_one() {
        let page = super::super::pages(&Watched::default(), &Snapshot::default(), Span::PerSecond);
        assert!(!page[0].table.rows.is_empty());
    }
}
