//! Tables: each in a box that scrolls sideways by itself, numbers to the right.

use linerate_model::analysis::{Table, TableCell};
use linerate_model::finding::Estimate;
use linerate_model::number::counted;
use maud::{Markup, html};

use crate::number::{self, EstimateText};
use crate::points::PointTable;
use crate::wording;

/// Longest text of a cell that is kept on one line, in characters.
const SHORT_MAX: usize = 20;

/// Wraps a table into a box that a keyboard can reach and scroll.
pub fn scrolling(label: &str, table: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) { (table) }
    }
}

/// Sets `rows` under the heads of their columns; `right` says which of those are of numbers.
pub fn grid(label: &str, heads: &[&str], right: &[bool], rows: &Markup) -> Markup {
    let body = html! {
        table {
            (head(heads, right))
            tbody { (rows) }
        }
    };
    scrolling(label, &body)
}

/// Sets the heads of columns.
pub fn head(heads: &[impl AsRef<str>], right: &[bool]) -> Markup {
    html! {
        thead { tr {
            @for (at, head) in heads.iter().enumerate() {
                @if right.get(at) == Some(&true) {
                    th.number scope="col" { (head.as_ref()) }
                } @else {
                    th scope="col" { (head.as_ref()) }
                }
            }
        } }
    }
}

/// Sets a table with its heading as caption.
pub fn table(table: &Table) -> Markup {
    if table.rows.is_empty() {
        return html! { p.soft { (table.title) ": no rows." } };
    }
    let right = wording::number_columns(table);
    // Most of a page are cells with numbers: where most columns have them, the table says so and not each cell.
    let plain = 2 * right.iter().filter(|right| **right).count() > right.len();
    let body = html! {
        table class=[plain.then_some("numbers")] {
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
                            @if at == 0 {
                                th class=(width(cell)) scope="row" { (words(cell)) }
                            } @else {
                                (self::cell(cell, right.get(at).copied().unwrap_or(false), plain))
                            }
                        }
                    }
                }
            }
        }
    };
    scrolling(&table.title, &body)
}

/// Sets a cell, of a column of numbers where `right`, in a table of them where `plain`.
fn cell(cell: &TableCell, right: bool, plain: bool) -> Markup {
    let class = match (cell, right) {
        (TableCell::Absent(_), true) => Some("absent right"),
        (TableCell::Absent(_), false) => Some("absent"),
        (_, true) => (!plain).then_some("number"),
        (_, false) => Some(width(cell)),
    };
    html! { td class=[class] { (words(cell)) } }
}

/// Returns the class that keeps a short text on one line and gives a long one room to wrap.
fn width(cell: &TableCell) -> &'static str {
    let short = wording::cell(cell).chars().count() <= SHORT_MAX;
    if short { "nowrap" } else { "wide" }
}

fn words(cell: &TableCell) -> Markup {
    match cell {
        TableCell::Estimate(value) => estimate(value),
        TableCell::Number(value, unit) => parts(&number::value_with_bounds(*value, None, *unit)),
        TableCell::Text(_) | TableCell::Absent(_) => html! { (wording::cell(cell)) },
    }
}

/// Sets an estimate: interval and unit are softer than the value.
pub fn estimate(estimate: &Estimate) -> Markup {
    parts(&number::estimate(estimate))
}

fn parts(text: &EstimateText) -> Markup {
    html! {
        (text.value)
        @match (&text.spread, text.unit) {
            (None, "") => {},
            (Some(spread), unit) => { " " i { (spread) " " (unit) } },
            (None, unit) => { " " i { (unit) } },
        }
    }
}

/// Sets the points of a figure.
pub fn points(title: &str, table: &PointTable) -> Markup {
    let body = html! {
        // Its look is the table's, not each cell's, and a row's first cell needs no word to be its head: of large figures
        // it is most of the page.
        table.points {
            caption { (title) }
            (head(&table.columns, &[]))
            tbody {
                @for (position, values) in &table.rows {
                    tr {
                        th { (position) }
                        @for value in values { td { (value.as_deref().unwrap_or("–")) } }
                    }
                }
            }
        }
    };
    html! {
        (scrolling(title, &body))
        @if table.rows_hidden > 0 {
            p.soft.small { "Between these, in the bundle: " (counted(table.rows_hidden, "row")) "." }
        }
    }
}
