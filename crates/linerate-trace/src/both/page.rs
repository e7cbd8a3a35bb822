//! Two captures of the same traffic as a page: what was lost between them, and the way over time.

use linerate_model::analysis::{Figure, Origin, Table, TableCell};
use linerate_model::sample::End;
use linerate_model::trace_page::{TracePage, TraceSection, TracedFinding};
use linerate_model::unit::Unit;

use super::text::{DATAGRAM, SEGMENT};
use super::{Both, JoinedReport};
use crate::findings::numbers_filter;
use crate::number::{count, counted};
use crate::page::{self, axis, curve, point};

/// Connections that get pictures.
const CONNECTIONS_MAX: usize = 5;

/// Returns the document as a page, titled `title`.
pub fn page(both: &Both, title: &str) -> TracePage {
    let [first, second] = &both.files;
    let mut findings = between(both);
    let mut warnings = both.warnings.clone();
    for (file, trace) in both.files.iter().zip(&both.captures) {
        for mut finding in page::findings_of(trace) {
            finding.claim = format!("{file}: {}", finding.claim);
            findings.push(finding);
        }
        warnings.extend(trace.warnings.iter().map(|text| format!("{file}: {text}")));
    }
    let joined = both
        .connections
        .iter()
        .take(CONNECTIONS_MAX)
        .map(|one| section(both, one, SEGMENT));
    let spoken = both
        .conversations
        .iter()
        .take(CONNECTIONS_MAX)
        .map(|one| section(both, one, DATAGRAM));
    TracePage {
        title: title.to_owned(),
        about: vec![
            ("Captures".to_owned(), format!("{first}, {second}")),
            ("Clocks".to_owned(), both.clock_words()),
            ("Connections in both".to_owned(), count(both.connections.len() as u64)),
            ("UDP conversations in both".to_owned(), count(both.conversations.len() as u64)),
            (
                "In one only".to_owned(),
                format!("{} and {}", count(both.alone[0]), count(both.alone[1])),
            ),
        ],
        warnings,
        findings,
        note: None,
        tables: tables(both),
        sections: joined.chain(spoken).collect(),
        terms: vec![
            (
                "Lost between the captures".to_owned(),
                "Passed the capture at the sender's side, and no byte of it the other.".to_owned(),
            ),
            (
                "Way".to_owned(),
                "From one capture to the other. Its shortest is as wrong as the clocks may be; how much longer \
                 others took is exact."
                    .to_owned(),
            ),
        ],
    }
}

/// What both captures together prove.
fn between(both: &Both) -> Vec<TracedFinding> {
    let mut found = Vec::new();
    let joined = both.connections.iter().map(|one| (one, SEGMENT));
    let spoken = both.conversations.iter().map(|one| (one, DATAGRAM));
    for (joined, what) in joined.chain(spoken) {
        for end in End::BOTH {
            let way = joined.from(end);
            if way.lost == 0 {
                continue;
            }
            let at = &both.files[way.sent_at];
            let kind = match what {
                DATAGRAM => "UDP conversation",
                _ => "connection",
            };
            let shown = way.examples.len() as u64;
            let first = if way.lost > shown {
                format!(", the first {shown} of them")
            } else {
                String::new()
            };
            let place = format!("{kind} #{} of {at}{first}", joined.numbers[way.sent_at]);
            let frames = numbers_filter(way.examples.iter().map(|lost| lost.frame));
            found.push(TracedFinding {
                claim: format!(
                    "{} of {} of the {end} were lost between {} and {}",
                    count(way.lost),
                    counted(way.sent, what),
                    at,
                    both.files[1 - way.sent_at]
                ),
                explanation: "They passed the one capture and not the other.".to_owned(),
                also: Vec::new(),
                advice: Some("Look at what lies between the two captures.".to_owned()),
                cost: None,
                proofs: vec![(place, frames)],
                filter: None,
            });
        }
    }
    found
}

fn tables(both: &Both) -> Vec<Table> {
    let all = [
        ("Between the captures", &both.connections),
        ("UDP between the captures", &both.conversations),
    ];
    let some = all.into_iter().filter(|(_, joined)| !joined.is_empty());
    some.map(|(title, joined)| table(title, joined)).collect()
}

fn table(title: &str, joined: &[JoinedReport]) -> Table {
    let columns = [
        "Connection",
        "From",
        "Packets",
        "Lost",
        "ACKs lost",
        "Way, least",
        "Longer, median",
        "Longer, most",
    ];
    let number = |value: u64| TableCell::Number(value as f64, Unit::Count);
    let lost = |lost: u64, undecided: u64| match (lost, undecided) {
        (0, 1..) => TableCell::Absent(format!("{} lost or missed", count(undecided))),
        _ => number(lost),
    };
    let rows = joined.iter().take(40).flat_map(|joined| {
        End::BOTH.map(|end| {
            let way = joined.from(end);
            let time =
                |ns: Option<f64>| TableCell::of(ns.map(|ns| (ns, Unit::Nanoseconds)), "not seen");
            let [one, other] = joined.numbers;
            vec![
                TableCell::Text(format!("#{one}, #{other}")),
                TableCell::Text(end.to_string()),
                number(way.sent),
                lost(way.lost, way.undecided),
                lost(way.acks_lost, way.acks_undecided),
                time(way.delay.map(|delay| delay.min_ns as f64)),
                time(way.delay.map(|delay| delay.above_min_median_ns as f64)),
                time(way.delay.map(|delay| delay.above_min_max_ns as f64)),
            ]
        })
    });
    Table::new(title, columns, rows)
}

fn section(both: &Both, joined: &JoinedReport, what: &str) -> TraceSection {
    let [one, other] = joined.numbers;
    let mut lines: Vec<String> = End::BOTH
        .iter()
        .map(|&end| {
            format!(
                "From the {end}: {}.",
                both.way_words(joined.from(end), what)
            )
        })
        .collect();
    lines.extend(joined.rewritten.iter().map(|one| {
        format!(
            "Rewritten on the way from the {}: {} {} → {}.",
            one.end, one.what, one.sent, one.arrived
        )
    }));
    TraceSection {
        id: format!("both-{what}-{one}-{other}"),
        title: format!("{} → {}", joined.client[0], joined.server[0]),
        lines,
        shares: Vec::new(),
        figures: delay_figure(joined, what).into_iter().collect(),
        tables: Vec::new(),
    }
}

/// How much longer than the shortest each way took, and when something was lost.
fn delay_figure(joined: &JoinedReport, what: &str) -> Option<Figure> {
    /// More would be a line.
    const LOSSES_MAX: usize = 40;
    let ways = End::BOTH.map(|end| (end, joined.from(end)));
    let begin_ns = ways
        .iter()
        .filter_map(|(_, way)| way.points.first())
        .map(|point| point.0)
        .min()?;
    let mut curves = Vec::new();
    for (end, way) in ways {
        let Some(delay) = way.delay else { continue };
        let points = way.points.iter().map(|&(at_ns, way_ns)| {
            let above = way_ns.abs_diff(delay.min_ns) as f64;
            point(at_ns.saturating_sub(begin_ns), above, String::new())
        });
        curves.push(curve(
            &format!("from the {end}"),
            Origin::Measured,
            points.collect(),
        ));
        let losses = way.losses_ns.iter().take(LOSSES_MAX).flat_map(|&at_ns| {
            let at_ns = at_ns.saturating_sub(begin_ns);
            let note = format!("lost, from the {end}");
            [
                point(at_ns, 0.0, note),
                point(at_ns, f64::NAN, String::new()),
            ]
        });
        let losses: Vec<_> = losses.collect();
        if !losses.is_empty() {
            curves.push(curve(
                &format!("lost, from the {end}"),
                Origin::Published,
                losses,
            ));
        }
    }
    let [one, other] = joined.numbers;
    Some(Figure {
        id: format!("way-{what}-{one}-{other}"),
        title: "The way between the captures".to_owned(),
        caption: "How much longer than the shortest it took; what was lost stands at the bottom."
            .to_owned(),
        x: axis("Time since the first segment", Unit::Nanoseconds),
        y: axis("Longer than the shortest", Unit::Nanoseconds),
        curves,
    })
}
