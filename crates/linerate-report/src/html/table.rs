//! Tables: each in a box that scrolls sideways by itself, numbers to the right.

use linerate_model::analysis::{Table, TableCell};
use linerate_model::finding::Estimate;
use linerate_model::unit::Unit;
use maud::{Markup, html};

use crate::number::{self, EstimateText};
use crate::points::PointTable;
use crate::wording;

/// Wraps a table into a box that a keyboard can reach and scroll.
pub fn scrolling(label: &str, table: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) { (table) }
    }
}

/// Sets a table with its heading as caption.
pub fn table(table: &Table) -> Markup {
    if table.rows.is_empty() {
        return html! { p.soft { (table.title) ": no rows." } };
    }
    let right: Vec<bool> = (0..table.columns.len())
        .map(|at| {
            table
                .rows
                .iter()
                .filter_map(|row| row.get(at))
                .any(wording::is_number)
        })
        .collect();
    let body = html! {
        table {
            @if !table.title.is_empty() { caption { (table.title) } }
            thead { tr {
                @for (column, right) in table.columns.iter().zip(&right) {
                    th scope="col" class=[right.then_some("number")] { (column) }
                }
            } }
            tbody {
                @for row in &table.rows {
                    tr {
                        @for (at, cell) in row.iter().enumerate() {
                            (self::cell(cell, at == 0, right.get(at).copied().unwrap_or(false)))
                        }
                    }
                }
            }
        }
    };
    scrolling(&table.title, &body)
}

fn cell(cell: &TableCell, is_head: bool, right: bool) -> Markup {
    let class = right.then_some("number");
    match cell {
        TableCell::Text(text) if is_head => html! { th scope="row" { (text) } },
        TableCell::Text(text) => html! { td class=[class] { (text) } },
        TableCell::Estimate(value) => html! { td.number { (estimate(value)) } },
        TableCell::Number(value, unit) => html! { td.number { (plain_number(*value, *unit)) } },
        TableCell::Absent(_) => html! { td.absent class=[class] { (wording::cell(cell)) } },
    }
}

/// Sets an estimate: value, interval and unit each in its own weight.
pub fn estimate(estimate: &Estimate) -> Markup {
    parts(&number::estimate(estimate))
}

fn plain_number(value: f64, unit: Unit) -> Markup {
    parts(&number::value_with_bounds(value, None, unit))
}

fn parts(text: &EstimateText) -> Markup {
    html! {
        span.value { (text.value) }
        @if let Some(spread) = &text.spread { " " span.spread { (spread) } }
        @if !text.unit.is_empty() { " " span.unit { (text.unit) } }
    }
}

/// Sets the points of a figure.
pub fn points(title: &str, table: &PointTable) -> Markup {
    let body = html! {
        table {
            thead { tr {
                @for (at, column) in table.columns.iter().enumerate() {
                    th scope="col" class=[(at > 0).then_some("number")] { (column) }
                }
            } }
            tbody {
                @for (position, values) in &table.rows {
                    tr {
                        th.nowrap scope="row" { (position) }
                        @for value in values {
                            td.number { (value.as_deref().unwrap_or("–")) }
                        }
                    }
                }
            }
        }
    };
    html! {
        (scrolling(title, &body))
        @if table.rows_hidden > 0 {
            p.soft.small { (table.rows_hidden) " more rows are in the bundle." }
        }
    }
}
