//! A chapter: question, answer, figures, findings; behind a click its cells, method and trials.

use linerate_model::analysis::{Analysis, Chapter, Figure, Origin, Table, TrialLine};
use maud::{Markup, html};

use super::anchors::Anchors;
use super::{swatch, table};
use crate::chart::{self, look};
use crate::{number, points, wording};

/// Most rows of a table that is open.
const OPEN_ROWS_MAX: usize = 16;

/// Sets the chapter at place `at`.
pub fn chapter(analysis: &Analysis, at: usize, anchors: &Anchors) -> Markup {
    let chapter = &analysis.chapters[at];
    html! {
        section.chapter id=(anchors.chapters[at]) {
            h2 {
                @if let Some(number) = chapter.number { span.ordinal { (number) } }
                (chapter.title)
            }
            @if !chapter.question.is_empty() { p.question { (chapter.question) } }
            @match &chapter.answer {
                Some(answer) => p.answer { (answer) },
                None => p.answer.none { "No answer: nothing valid was measured." },
            }
            @if !chapter.figures.is_empty() {
                div.figures {
                    @for (figure, id) in chapter.figures.iter().zip(&anchors.figures[at]) {
                        (self::figure(figure, id))
                    }
                }
            }
            (related(analysis, chapter, anchors))
            @for table in &chapter.tables { (cells(table, chapter)) }
            @if !chapter.method.is_empty() {
                details { summary { "Method" } p { (chapter.method) } }
            }
            (trials(chapter, at, anchors))
        }
    }
}

/// Sets a chart, its legend and caption, and its data as a table.
fn figure(figure: &Figure, id: &str) -> Markup {
    if figure.curves.iter().all(|curve| curve.points.is_empty()) {
        return html! {
            figure id=(id) { h3 { (figure.title) } p.soft { "Nothing valid to draw." } }
        };
    }
    let title = format!("{id}-title");
    let label = format!("Chart: {}. Its data follows as a table.", figure.title);
    html! {
        figure id=(id) aria-labelledby=(title) {
            h3 id=(title) { (figure.title) }
            // A curve without a name is alone: the heading says what it is.
            @if figure.curves.iter().any(|curve| !curve.name.is_empty()) { (legend(figure)) }
            div.plot id={ (id) "-plot" } role="img" aria-label=(label) { (chart::drawings(figure)) }
            @if !figure.caption.is_empty() { figcaption { (figure.caption) } }
            details {
                summary { "Data of this chart" }
                (table::points(&figure.title, &points::table(figure)))
            }
        }
    }
}

/// Sets a table of a chapter: behind a click where a figure shows the same, or where it is long.
fn cells(table: &Table, chapter: &Chapter) -> Markup {
    let rows = table.rows.len();
    if table.title.is_empty() || (chapter.figures.is_empty() && rows <= OPEN_ROWS_MAX) {
        return table::table(table);
    }
    html! {
        details.cells {
            summary { (table.title) " (" (rows) " rows)" }
            (table::table(table))
        }
    }
}

fn legend(figure: &Figure) -> Markup {
    html! {
        ul.legend {
            @for (curve, look) in figure.curves.iter().zip(look::looks(figure)) {
                li {
                    (swatch::swatch(&look, figure))
                    span {
                        (curve.name)
                        @if let Some(word) = origin_word(&curve.name, curve.origin) {
                            span.origin { " (" (word) ")" }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the word for the curve's origin unless its name says it already.
fn origin_word(name: &str, origin: Origin) -> Option<&'static str> {
    wording::origin(origin).filter(|_| wording::curve_name(name, origin) != name)
}

fn related(analysis: &Analysis, chapter: &Chapter, anchors: &Anchors) -> Markup {
    let found: Vec<(&str, usize)> = chapter
        .findings
        .iter()
        .filter_map(|id| anchors.finding(id))
        .collect();
    html! {
        @if !found.is_empty() {
            div.related {
                h3 { "Findings from this chapter" }
                ul {
                    @for (id, place) in found {
                        li { a href={ "#" (id) } { (analysis.findings[place].claim) } }
                    }
                }
            }
        }
    }
}

fn trials(chapter: &Chapter, at: usize, anchors: &Anchors) -> Markup {
    if chapter.trials.is_empty() {
        return html! {};
    }
    let body = html! {
        table {
            thead { tr {
                th.number scope="col" { "Trial" }
                th scope="col" { "Cell" }
                th.number scope="col" { "Replicate" }
                th.number scope="col" { "Response" }
                th scope="col" { "Remarks" }
            } }
            tbody {
                @for (row, line) in chapter.trials.iter().enumerate() {
                    (trial(line, anchors.trial_row(line.trial, at, row)))
                }
            }
        }
    };
    html! {
        details.trials {
            summary { (wording::trial_count(&chapter.trials)) }
            (table::scrolling("Trials", &body))
        }
    }
}

fn trial(line: &TrialLine, id: Option<String>) -> Markup {
    let response = line.response.map(|value| number::display(value, line.unit));
    html! {
        tr id=[id] class=[line.invalid.as_ref().map(|_| "invalid")] {
            th.number scope="row" { (line.trial.0) }
            td { (line.cell) }
            td.number { (line.replicate) }
            td.number { (response.as_deref().unwrap_or("–")) }
            td {
                @if let Some(why) = &line.invalid { span.why { "invalid: " (why) } }
                @for (at, flag) in line.flags.iter().enumerate() {
                    @if at > 0 || line.invalid.is_some() { "; " }
                    (flag.to_string())
                }
            }
        }
    }
}
