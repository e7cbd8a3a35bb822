//! The links, both ways.

use linerate_model::analysis::Table;
use linerate_model::unit::Unit;

use super::super::links::{self, LinkRow};
use super::super::{Span, Watched};
use super::{LINKS, Page, number, text, unit_of_counts, volume};

pub(super) fn page(watched: &Watched, span: Span) -> Page {
    let rows = links::links(watched, span);
    let count = |value| number(value, unit_of_counts(span));
    let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    let line = |row: &LinkRow| {
        vec![
            text(&row.link),
            volume(row.rx.bytes, span),
            volume(row.tx.bytes, span),
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
    let verdict = if losing.is_empty() {
        "no link drops or damages packets".to_owned()
    } else {
        format!("packets are dropped or damaged at {}", losing.join(", "))
    };
    Page {
        name: LINKS,
        table: Table::new(
            "Links",
            [
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
            rows.iter().map(line),
        ),
        trend: 1,
        verdict: (watched.readings() > 1).then_some(verdict),
        named_by: &[0],
        is_prose: false,
    }
}
