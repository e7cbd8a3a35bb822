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

/// Sets the heads of columns. A table's first row and first column need no word to be heads, and of large tables such words are most
/// of the page.
pub fn head(heads: &[impl AsRef<str>], right: &[bool]) -> Markup {
    html! {
        thead { tr {
            @for (at, head) in heads.iter().enumerate() {
                @if right.get(at) == Some(&true) {
                    th.number { (head.as_ref()) }
                } @else {
                    th { (head.as_ref()) }
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
    let units = shared_units(table);
    // Most of a page are cells with numbers: where most columns have them, the table says so and not each cell.
    let plain = 2 * right.iter().filter(|right| **right).count() > right.len();
    let body = html! {
        table class=[plain.then_some("numbers")] {
            @if !table.title.is_empty() { caption { (table.title) } }
            thead { tr {
                @for ((column, right), unit) in table.columns.iter().zip(&right).zip(&units) {
                    th class=[right.then_some("number")] {
                        (column)
                        @if let Some(unit) = unit { ", " (unit) }
                    }
                }
            } }
            tbody {
                @for row in &table.rows {
                    tr {
                        @for (at, cell) in row.iter().enumerate() {
                            @let has_unit = units.get(at).is_some_and(Option::is_none);
                            @if at == 0 {
                                th class=(width(cell)) { (words(cell, has_unit)) }
                            } @else {
                                td class=[class(cell, right.get(at) == Some(&true), plain)] { (words(cell, has_unit)) }
                            }
                        }
                    }
                }
            }
        }
    };
    scrolling(&table.title, &body)
}

/// Returns the class of a cell, of a column of numbers where `right`, in a table of them where `plain`.
fn class(cell: &TableCell, right: bool, plain: bool) -> Option<&'static str> {
    match (cell, right) {
        (TableCell::Absent(_), true) => Some("absent right"),
        (TableCell::Absent(_), false) => Some("absent"),
        (_, true) => (!plain).then_some("number"),
        (_, false) => Some(width(cell)),
    }
}

/// Returns the unit of each column whose numbers all have the same: its head says it then, and its cells do not.
fn shared_units(table: &Table) -> Vec<Option<&'static str>> {
    let shared = |at: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(at));
        let mut units = cells.filter_map(|cell| Some(number_of(cell)?.unit));
        let first = units.next().filter(|unit| !unit.is_empty())?;
        let mut others = units.peekable();
        (others.peek().is_some() && others.all(|unit| unit == first)).then_some(first)
    };
    (0..table.columns.len()).map(shared).collect()
}

/// Returns the class that keeps a short text on one line and gives a long one room to wrap.
fn width(cell: &TableCell) -> &'static str {
    let short = wording::cell(cell).chars().count() <= SHORT_MAX;
    if short { "nowrap" } else { "wide" }
}

fn words(cell: &TableCell, has_unit: bool) -> Markup {
    match number_of(cell) {
        Some(text) if has_unit => parts(&text),
        Some(text) => parts(&EstimateText { unit: "", ..text }),
        None => html! { (wording::cell(cell)) },
    }
}

fn number_of(cell: &TableCell) -> Option<EstimateText> {
    match cell {
        TableCell::Estimate(value) => Some(number::estimate(value)),
        TableCell::Number(value, unit) => Some(number::value_with_bounds(*value, None, *unit)),
        TableCell::Text(_) | TableCell::Absent(_) => None,
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
            (Some(spread), "") => { " " i { (spread) } },
            (Some(spread), unit) => { " " i { (spread) " " (unit) } },
            (None, unit) => { " " i { (unit) } },
        }
    }
}

/// Sets the points of a figure.
pub fn points(title: &str, table: &PointTable) -> Markup {
    let body = html! {
        // Its look is the table's, not each cell's.
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
