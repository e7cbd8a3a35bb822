//! Curves and tables that several chapters draw.

use linerate_model::TrialId;
use linerate_model::analysis::{
    Axis, Chapter, Curve, Figure, Origin, Point, Position, Scale, Table, TableCell, TrialLine,
};
use linerate_model::experiment::{Experiment, Factor, Level};
use linerate_model::finding::{Estimate, Verdict};
use linerate_model::number;
use linerate_model::unit::Unit;

use super::study_chapter::Measured;
use crate::dataset::{CellOutcomes, Dataset, TAILS, groups, varied};
use crate::diagnose::effect_claim;
use crate::reduce::{describe, name};
use crate::verdicts::FactorEffect;
use crate::words;
pub(super) use crate::words::sentence;

/// An axis spans by factor rather than evenly from this quotient of its ends on.
const LOG_QUOTIENT_MIN: f64 = 16.0;

/// Returns one curve of `response` against `x` for each combination of the other factors.
///
/// A cell without a valid value has no point. `name` is put before the combination's words.
pub(super) fn curves(
    cells: &[&CellOutcomes<'_>],
    x: Factor,
    response: &str,
    name: &str,
) -> Vec<Curve> {
    groups(cells, x)
        .into_iter()
        .map(|group| Curve {
            name: curve_name(name, &group.words, response),
            origin: Origin::Measured,
            points: group
                .cells
                .iter()
                .filter_map(|cell| point(cell, x, response))
                .collect(),
        })
        .filter(|curve| !curve.points.is_empty())
        .collect()
}

fn curve_name(prefix: &str, words: &str, response: &str) -> String {
    match (prefix.is_empty(), words.is_empty()) {
        (true, true) => describe(response).title.to_owned(),
        (true, false) => words.to_owned(),
        (false, true) => prefix.to_owned(),
        (false, false) => format!("{prefix}, {words}"),
    }
}

fn point(cell: &CellOutcomes<'_>, x: Factor, response: &str) -> Option<Point> {
    let replicates = number::counted(cell.valid.len(), "replicate");
    let point = point_at(position(x, cell.level(x)?), cell.estimate(response)?, cell);
    let note = format!("{replicates}; {}", point.note);
    Some(Point { note, ..point })
}

/// Returns what was measured of a cell at `x`, with its trials.
pub(super) fn point_at(x: Position, y: Estimate, cell: &CellOutcomes<'_>) -> Point {
    Point {
        x,
        y: y.value,
        low: y.low,
        high: y.high,
        range_of: y.is_range().then_some(y.n),
        note: TrialId::list(&cell.trials()),
        limiter: cell.known_limiter(),
    }
}

/// Says what the points of a response are.
pub(super) fn points_are(response: &str) -> &'static str {
    if TAILS.contains(&response) {
        "medians of the trials, of fewer than six with their range"
    } else {
        "means with 95 % intervals (of two values, their range)"
    }
}

fn position(factor: Factor, level: &Level) -> Position {
    match level.as_number() {
        Some(number) => Position::Number(number),
        None => Position::Name(words::level(factor, level)),
    }
}

/// Returns a curve that does not come from trials.
pub(super) fn curve(
    name: impl Into<String>,
    origin: Origin,
    points: impl IntoIterator<Item = (f64, f64)>,
) -> Curve {
    let points = points.into_iter();
    Curve {
        name: name.into(),
        origin,
        points: points
            .map(|(x, y)| bare_point(Position::Number(x), y))
            .collect(),
    }
}

/// Returns a point without an interval.
pub(super) fn bare_point(x: Position, y: f64) -> Point {
    Point {
        x,
        y,
        low: None,
        high: None,
        range_of: None,
        note: String::new(),
        limiter: None,
    }
}

/// Returns a curve of what was published.
pub(super) fn published(
    name: impl Into<String>,
    points: impl IntoIterator<Item = (f64, f64)>,
) -> Curve {
    curve(name, Origin::Published, points)
}

/// Returns a curve of what follows from a formula.
pub(super) fn computed(
    name: impl Into<String>,
    points: impl IntoIterator<Item = (f64, f64)>,
) -> Curve {
    curve(name, Origin::Computed, points)
}

/// Returns the horizontal axis of a factor with the levels of `cells`.
pub(super) fn factor_axis(cells: &[&CellOutcomes<'_>], factor: Factor) -> Axis {
    let numbers: Vec<f64> = cells
        .iter()
        .filter_map(|cell| cell.number(factor))
        .collect();
    let levels = cells
        .iter()
        .filter(|cell| cell.level(factor).is_some())
        .count();
    let own = factor.beside().map_or(factor, |(_, own)| own);
    let unit = match own {
        size if words::is_size(size) => Unit::Bytes,
        Factor::Connections
        | Factor::Clients
        | Factor::RequestWrites
        | Factor::Batch
        | Factor::Segments
        | Factor::InFlight => Unit::Count,
        Factor::RequestsPerS => Unit::PerSecond,
        Factor::Rate => Unit::BitsPerSecond,
        Factor::LinkLoss => Unit::Ratio,
        _ => Unit::None,
    };
    Axis {
        label: factor.title().into_owned(),
        unit,
        scale: if numbers.len() < levels {
            Scale::Category
        } else {
            scale(&numbers)
        },
        shared: false,
    }
}

/// Returns how numbers are best spaced.
fn scale(numbers: &[f64]) -> Scale {
    let least = numbers.iter().copied().min_by(f64::total_cmp);
    let most = numbers.iter().copied().max_by(f64::total_cmp);
    match least.zip(most) {
        Some((least, most)) if least > 0.0 && most / least >= LOG_QUOTIENT_MIN => Scale::Log,
        _ => Scale::Linear,
    }
}

/// Returns how the heights of curves are best spaced.
pub(super) fn scale_of(curves: &[Curve]) -> Scale {
    let points = curves.iter().flat_map(|curve| &curve.points);
    scale(&points.map(|point| point.y).collect::<Vec<f64>>())
}

/// Returns `table` unless it has no rows.
pub(super) fn unless_empty(table: Table) -> Option<Table> {
    (!table.rows.is_empty()).then_some(table)
}

/// Returns the vertical axis of a response.
pub(super) fn response_axis(response: &str) -> Axis {
    let description = describe(response);
    Axis::new(description.title, description.unit, Scale::Linear)
}

/// Replaces what the general chapter shows and says, by as much as there is.
pub(super) fn replace(chapter: &mut Chapter, figures: Vec<Figure>, sentences: &[String]) {
    if !figures.is_empty() {
        chapter.figures = figures;
    }
    if !sentences.is_empty() {
        chapter.answer = Some(sentences.join(" "));
    }
}

/// Returns what the points of a response are, as a caption.
pub(super) fn caption(response: &str) -> String {
    format!("Points are {}.", points_are(response))
}

/// Returns a figure for each of `responses` that was read; its id is `id` and the word that goes with it.
pub(super) fn figures(
    cells: &[&CellOutcomes<'_>],
    x: Factor,
    id: &str,
    responses: &[(&str, &str)],
) -> Vec<Figure> {
    let drawn = responses.iter().filter_map(|(response, word)| {
        figure(
            cells,
            x,
            response,
            format!("{id}-{word}"),
            &caption(response),
        )
    });
    drawn.collect()
}

/// Returns a figure with a curve for each combination, or nothing without points.
pub(super) fn figure(
    cells: &[&CellOutcomes<'_>],
    x: Factor,
    response: &str,
    id: impl Into<String>,
    caption: &str,
) -> Option<Figure> {
    let curves = curves(cells, x, response, "");
    (!curves.is_empty()).then(|| Figure {
        id: id.into(),
        title: sentence(&format!(
            "{} against {}",
            describe(response).title,
            x.title()
        )),
        caption: caption.to_owned(),
        x: factor_axis(cells, x),
        y: response_axis(response),
        curves,
    })
}

/// Says what a comparison decides.
pub(super) fn verdict_sentence(effect: &FactorEffect) -> String {
    match effect.verdict {
        Verdict::Differs => effect_claim(effect),
        Verdict::Same => format!(
            "{} against {}: {}no difference beyond {}.",
            sentence(&words::level(effect.factor, &effect.levels.0)),
            words::bare_level(effect.factor, &effect.levels.1),
            if effect.is_on_average() {
                "on average "
            } else {
                ""
            },
            words::percent(effect.margin),
        ),
        Verdict::NotDecided => format!(
            "{} against {}: not decided.",
            sentence(&words::level(effect.factor, &effect.levels.0)),
            words::bare_level(effect.factor, &effect.levels.1),
        ),
    }
}

/// Adds what the comparisons of `experiment` decide: a sentence of the answer and a table.
pub(super) fn add_verdicts(chapter: &mut Chapter, measured: &Measured<'_, '_>) {
    let verdicts = measured.dataset.verdicts();
    let effects = verdicts.effects_of(&measured.experiment.name);
    let mut sentences: Vec<String> = effects.map(verdict_sentence).collect();
    // What stands before may be of one of them.
    if let Some(first) = sentences.first_mut() {
        *first = format!("Over all pairs of trials: {first}");
    }
    let answer: Vec<String> = chapter.answer.take().into_iter().chain(sentences).collect();
    chapter.answer = (!answer.is_empty()).then(|| answer.join(" "));
}

/// Lets the answer begin with what the comparisons of `experiment` found to differ: who varies something asks for that.
pub(super) fn lead_with_differences(chapter: &mut Chapter, measured: &Measured<'_, '_>) {
    let verdicts = measured.dataset.verdicts();
    let effects = verdicts.effects_of(&measured.experiment.name);
    let differ = effects.filter(|effect| effect.verdict == Verdict::Differs);
    let answer = differ.map(verdict_sentence).chain(chapter.answer.take());
    let answer: Vec<String> = answer.collect();
    chapter.answer = (!answer.is_empty()).then(|| answer.join(" "));
}

/// Returns a table with a row for each cell: its varied levels, then responses.
///
/// Columns of responses that no cell has are left out.
pub(super) fn table(title: &str, cells: &[&CellOutcomes<'_>], responses: &[&str]) -> Table {
    let present: Vec<&str> = responses
        .iter()
        .copied()
        .filter(|response| cells.iter().any(|cell| !cell.values(response).is_empty()))
        .collect();
    let heads = present
        .iter()
        .map(|response| sentence(describe(response).title));
    table_of(title, cells, heads.collect(), |cell| {
        let values = present.iter();
        values
            .map(|response| estimate_cell(response, cell))
            .collect()
    })
}

/// Returns the same with what `values` says of each cell, under `heads`.
pub(super) fn table_of(
    title: &str,
    cells: &[&CellOutcomes<'_>],
    heads: Vec<String>,
    values: impl Fn(&CellOutcomes<'_>) -> Vec<TableCell>,
) -> Table {
    let factors = row_factors(cells);
    let mut columns: Vec<String> = factors
        .iter()
        .map(|factor| sentence(&factor.title()))
        .collect();
    if factors.is_empty() {
        columns.push("Cell".to_owned());
    }
    columns.extend(heads);
    columns.push("Valid trials".to_owned());
    let row = |cell: &&CellOutcomes<'_>| {
        let mut row: Vec<TableCell> = factors
            .iter()
            .map(|factor| match cell.level(*factor) {
                Some(level) => TableCell::Text(words::bare_level(*factor, level)),
                None => TableCell::Text("–".to_owned()),
            })
            .collect();
        if factors.is_empty() {
            row.push(TableCell::Text(words::whole_cell(&cell.cell)));
        }
        row.extend(values(cell));
        row.push(TableCell::Text(valid_of(cell)));
        row
    };
    Table::new(title, columns, cells.iter().map(row))
}

fn row_factors(cells: &[&CellOutcomes<'_>]) -> Vec<Factor> {
    let mut factors = varied(cells);
    let clients_vary = cells
        .iter()
        .any(|cell| cell.level(Factor::Clients).is_some());
    if factors.contains(&Factor::Connections) && clients_vary && !factors.contains(&Factor::Clients)
    {
        factors.insert(1.min(factors.len()), Factor::Clients);
    }
    factors
}

fn valid_of(cell: &CellOutcomes<'_>) -> String {
    let valid = cell.valid.len();
    let valid = match cell.invalid.len() {
        0 => valid.to_string(),
        invalid => format!("{valid} of {}", valid + invalid),
    };
    match cell.trend() {
        Some(trend) => format!("{valid}, {trend}"),
        None => valid,
    }
}

fn estimate_cell(response: &str, cell: &CellOutcomes<'_>) -> TableCell {
    match cell.estimate(response) {
        None if cell.valid.is_empty() => TableCell::Absent("no valid trial".to_owned()),
        None if cell.is_rr() && is_latency(response) => {
            TableCell::Absent("too few transactions".to_owned())
        }
        estimate => read(estimate),
    }
}

/// Returns the cell of what was read, a share in hundredths.
pub(super) fn read(estimate: Option<Estimate>) -> TableCell {
    match estimate {
        Some(estimate) if estimate.unit == Unit::Ratio => TableCell::Estimate(as_percent(estimate)),
        Some(estimate) => TableCell::Estimate(estimate),
        None => TableCell::Absent("not read".to_owned()),
    }
}

/// Quantiles of the latency need a number of transactions each.
fn is_latency(response: &str) -> bool {
    [name::RTT_P50, name::RTT_P99, name::RTT_P999, name::ONE_WAY].contains(&response)
}

/// Returns a share in hundredths.
pub(super) fn as_percent(estimate: Estimate) -> Estimate {
    estimate.map(Unit::Percent, |share| 100.0 * share)
}

/// Returns the trials of an experiment, in the order of execution.
pub(super) fn trial_lines(dataset: &Dataset<'_>, experiment: &Experiment) -> Vec<TrialLine> {
    let response = experiment.response.as_str();
    dataset
        .outcomes
        .iter()
        .filter(|outcome| outcome.experiment == experiment.name)
        .map(|outcome| TrialLine {
            trial: outcome.trial,
            cell: words::whole_cell(&outcome.cell),
            replicate: outcome.replicate,
            response: outcome.value(response).filter(|_| outcome.is_valid()),
            unit: describe(response).unit,
            invalid: outcome.validity.reason().map(ToString::to_string),
            flags: outcome.flags.clone(),
        })
        .collect()
}
