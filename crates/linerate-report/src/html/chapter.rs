//! A chapter: question, answer, what follows, figures, findings; behind a click the course of its
//! trials, method, cells, trials and data.

use linerate_model::analysis::{Analysis, Chapter, Figure, HeatMap, Origin, Table, TrialLine};
use maud::{Markup, html};

use super::anchors::Anchors;
use super::{coded, findings, is_usable, limits, swatch, table};
use crate::chart::{self, look};
use crate::{number, points, wording};

/// Most rows of all tables of a chapter together that are open.
const OPEN_ROWS_MAX: usize = 16;
/// Most trials that are listed next to a map; where there are more, those are listed that are invalid.
const TRIALS_OF_MAP_MAX: usize = 200;

/// Sets the chapter at place `at`.
pub fn chapter(analysis: &Analysis, at: usize, anchors: &Anchors) -> Markup {
    let chapter = &analysis.chapters[at];
    let findings = anchors.findings_of(Some(at));
    let first = anchors.figure_numbers[at];
    let figures = (first..).zip(chapter.figures.iter().zip(&anchors.figures[at]));
    let (stacked, figures): (Vec<_>, Vec<_>) =
        figures.partition(|(_, (figure, _))| figure.x.shared && is_drawn(figure));
    html! {
        section.chapter id=(anchors.chapters[at]) {
            h2 {
                @if let Some(number) = anchors.numbers[at] { span.ordinal { (number) } }
                (chapter.title)
            }
            @if !chapter.question.is_empty() { p.question { (chapter.question) } }
            @match wording::answer(chapter, is_usable(analysis)) {
                Ok(answer) => p.answer { (coded(answer)) },
                Err(why) => p.answer.none { "No answer: " (why) "." },
            }
            @if let Some(consequence) = chapter.consequence.as_ref().filter(|_| is_usable(analysis)) {
                p.consequence { (coded(consequence)) }
            }
            @for map in &chapter.heat_maps { (heat_map(map)) }
            @if !stacked.is_empty() { div.stack { (on_one_axis(&stacked)) } }
            @if !figures.is_empty() {
                div.figures {
                    @for (number, (figure, id)) in figures { (measured(figure, id, Some(number))) }
                }
            }
            @if !findings.is_empty() && is_usable(analysis) {
                (findings::cards(analysis, findings, anchors))
            }
            @for table in chapter.tables.iter().filter(|table| is_open(table, chapter)) {
                (table::table(table))
            }
            div.folds {
                (over_time(chapter, &anchors.figures[at]))
                @if !chapter.method.is_empty() {
                    details { summary { "Method" } p { (coded(&chapter.method)) } }
                }
                @for table in chapter.tables.iter().filter(|table| !is_open(table, chapter)) {
                    details.cells {
                        summary { (table.title) " (" (number::counted(table.rows.len(), "row")) ")" }
                        (table::table(table))
                    }
                }
                (trials(chapter, at, anchors))
                (data(chapter, first))
            }
        }
    }
}

/// Sets the points of all figures.
fn data(chapter: &Chapter, first: usize) -> Markup {
    let numbered = (first..).zip(&chapter.figures);
    let drawn: Vec<_> = numbered.filter(|(_, figure)| is_drawn(figure)).collect();
    let (stacked, others): (Vec<_>, Vec<_>) = drawn
        .iter()
        .copied()
        .partition(|(_, figure)| figure.x.shared);
    let stacked: Vec<&Figure> = stacked.into_iter().map(|(_, figure)| figure).collect();
    html! {
        @if let (Some((first, _)), Some((last, _))) = (drawn.first(), drawn.last()) {
            details {
                summary {
                    @if first == last { "Data of figure " (first) }
                    @else { "Data of figures " (first) "–" (last) }
                }
                // One axis, one table: its positions stand once.
                @if let Some(first) = stacked.first() {
                    @let title = wording::heading(&first.x.label);
                    (table::points(&title, &points::table_of(first, &stacked)))
                }
                @for (number, figure) in others {
                    @let title = format!("Figure {number}. {}", figure.title);
                    (table::points(&title, &points::table(figure)))
                }
            }
        }
    }
}

fn is_drawn(figure: &Figure) -> bool {
    figure.curves.iter().any(|curve| !curve.points.is_empty())
}

/// Sets what trials came to, as far as any is valid.
fn measured(figure: &Figure, id: &str, number: Option<usize>) -> Markup {
    let title = &figure.title;
    let heading = number.map_or(title.clone(), |number| format!("Figure {number}. {title}"));
    if !is_drawn(figure) {
        return html! {
            figure id=(id) { h3 { (heading) } p.soft { "Nothing valid to draw." } }
        };
    }
    self::figure(figure, id, &heading, &label_of(figure))
}

/// Sets a map of pairs of hosts.
fn heat_map(map: &HeatMap) -> Markup {
    let title = format!("{}-title", map.id);
    let median = map.unit.display(map.median);
    html! {
        figure id=(map.id) aria-labelledby=(title) {
            h3 id=(title) { (map.title) ", % of the median of " (median) }
            div.plot role="img" aria-label={ "Map: " (map.title) "." } { (chart::heat_map(map)) }
            @if !map.caption.is_empty() { figcaption { (map.caption) } }
        }
    }
}

fn label_of(figure: &Figure) -> String {
    format!("Chart: {}. Its data follows as a table.", figure.title)
}

/// Sets figures below each other, with one axis of time.
fn on_one_axis(numbered: &[(usize, (&Figure, &String))]) -> Markup {
    let figures: Vec<&Figure> = numbered.iter().map(|(_, (figure, _))| *figure).collect();
    let drawn = chart::stacked(&figures);
    html! {
        @for ((number, (figure, id)), drawn) in numbered.iter().zip(drawn) {
            @let heading = format!("Figure {number}. {}", figure.title);
            (framed(figure, id, &heading, &label_of(figure), &drawn))
        }
    }
}

/// Sets a chart, its legend and caption; `label` stands for it where it cannot be seen.
pub fn figure(figure: &Figure, id: &str, heading: &str, label: &str) -> Markup {
    framed(figure, id, heading, label, &chart::drawings(figure))
}

fn framed(figure: &Figure, id: &str, heading: &str, label: &str, drawn: &Markup) -> Markup {
    let title = format!("{id}-title");
    html! {
        figure id=(id) aria-labelledby=(title) {
            h3 id=(title) { (heading) }
            // A curve without a name is alone: the heading says what it is.
            @if figure.curves.iter().any(|curve| !curve.name.is_empty()) { (legend(figure)) }
            div.plot id={ (id) "-plot" } role="img" aria-label=(label) { (drawn) }
            (limits::legend(figure))
            @if !figure.caption.is_empty() { figcaption { (figure.caption) } }
        }
    }
}

/// Sets the course of the trials that findings rest on, behind a click.
fn over_time(chapter: &Chapter, ids: &[String]) -> Markup {
    let ids = &ids[chapter.figures.len()..];
    html! {
        @for (figure, id) in chapter.over_time.iter().zip(ids) {
            details { summary { (figure.title) } (measured(figure, id, None)) }
        }
    }
}

/// Tells whether a table is open: one without a title always, others where no figure shows the same and
/// they are short.
pub fn is_open(table: &Table, chapter: &Chapter) -> bool {
    let rows: usize = chapter.tables.iter().map(|table| table.rows.len()).sum();
    table.title.is_empty()
        || (chapter.figures.is_empty() && chapter.heat_maps.is_empty() && rows <= OPEN_ROWS_MAX)
}

/// Sets what each curve's look means.
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

/// Sets the trials, those of a cell after each other: a cell's levels stand once.
fn trials(chapter: &Chapter, at: usize, anchors: &Anchors) -> Markup {
    if chapter.trials.is_empty() {
        return html! {};
    }
    // A map has every pair.
    let is_listed = |line: &TrialLine| {
        let is_short = chapter.heat_maps.is_empty() || chapter.trials.len() <= TRIALS_OF_MAP_MAX;
        is_short || line.invalid.is_some()
    };
    let listed = chapter
        .trials
        .iter()
        .enumerate()
        .filter(|(_, line)| is_listed(line));
    let most = if chapter.heat_maps.is_empty() {
        usize::MAX
    } else {
        TRIALS_OF_MAP_MAX
    };
    let listed: Vec<_> = listed.take(most).collect();
    let left_out = chapter.trials.len() - listed.len();
    let mut cells: Vec<(&str, Vec<usize>)> = Vec::new();
    for (row, line) in listed {
        match cells.iter_mut().find(|(cell, _)| *cell == line.cell) {
            Some((_, rows)) => rows.push(row),
            None => cells.push((&line.cell, vec![row])),
        }
    }
    let rows = html! {
        @for (cell, rows) in &cells {
            @for (place, row) in rows.iter().enumerate() {
                @let line = &chapter.trials[*row];
                @let heads = (place == 0).then_some((*cell, rows.len()));
                (trial(line, heads, anchors.trial_row(line.trial, at, *row)))
            }
        }
    };
    let heads = ["Cell", "Trial", "Replicate", "Response", "Remarks"];
    html! {
        details.trials {
            summary { (wording::trial_count(&chapter.trials)) }
            (table::grid("Trials", &heads, &[false, true, true, true, false], &rows))
            @if left_out > 0 { p.soft { (number::counted(left_out, "further trial")) ": see results.parquet." } }
        }
    }
}

/// Sets a trial, with what is remarked of many in a few words: of a long study whole ones would be most of the page, and cautions
/// say them; the first of its cell has the cell's levels and how many trials they are of.
fn trial(line: &TrialLine, heads: Option<(&str, usize)>, id: Option<String>) -> Markup {
    let response = line.response.map(|value| number::display(value, line.unit));
    html! {
        tr id=[id] class=[line.invalid.as_ref().map(|_| "invalid")] {
            @if let Some((cell, count)) = heads { th rowspan=(count) { (cell) } }
            td { (line.trial.0) }
            td { (line.replicate) }
            td { (response.as_deref().unwrap_or("–")) }
            td {
                @if let Some(why) = &line.invalid { span.why { "invalid: " (why) } }
                @for (at, flag) in line.flags.iter().enumerate() {
                    @if at > 0 || line.invalid.is_some() { "; " }
                    (flag.brief().map_or_else(|| flag.to_string(), str::to_owned))
                }
            }
        }
    }
}
