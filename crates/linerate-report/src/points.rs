//! The points of a figure as rows, for readers and programs that do not see the picture.

use linerate_model::analysis::{Figure, Position};

use crate::number;
use crate::wording;

/// Most rows written for one figure; a longer series is in the bundle's samples.
const ROWS_MAX: usize = 100;

/// A figure's points: one row a position, one column a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct PointTable {
    /// The horizontal axis's label, then the curves' names.
    pub columns: Vec<String>,
    /// The position, then a value per curve; absent where a curve has no point.
    pub rows: Vec<(String, Vec<Option<String>>)>,
    /// Rows that were left away because there are too many.
    pub rows_hidden: usize,
}

/// Returns the points of `figure` as rows in the order of its horizontal axis.
pub fn table(figure: &Figure) -> PointTable {
    let mut positions: Vec<&Position> = Vec::new();
    for point in figure.curves.iter().flat_map(|curve| &curve.points) {
        let is_name = matches!(point.x, Position::Name(_));
        // A capture has tens of thousands of instants: those are sorted, not searched.
        if !is_name || !positions.contains(&&point.x) {
            positions.push(&point.x);
        }
    }
    // Names keep their order of appearance: the sort is stable.
    positions.sort_by(|a, b| match (a, b) {
        (Position::Number(a), Position::Number(b)) => a.total_cmp(b),
        _ => std::cmp::Ordering::Equal,
    });
    positions.dedup();
    let rows_hidden = positions.len().saturating_sub(ROWS_MAX);
    positions.truncate(ROWS_MAX);
    let rows = positions
        .into_iter()
        .map(|x| (position(x, figure), values_at(x, figure)))
        .collect();
    let names = figure
        .curves
        .iter()
        .map(|curve| wording::curve_name(&curve.name, curve.origin));
    let columns = std::iter::once(wording::heading(&figure.x.label))
        .chain(names)
        .collect();
    PointTable {
        columns,
        rows,
        rows_hidden,
    }
}

/// Writes a position on the horizontal axis of `figure`.
pub fn position(x: &Position, figure: &Figure) -> String {
    match x {
        Position::Number(value) => {
            number::display_on_axis(*value, figure.x.unit, position_max(figure))
        }
        Position::Name(name) => name.clone(),
    }
}

/// Returns the largest numeric position of `figure`, at least zero.
pub fn position_max(figure: &Figure) -> f64 {
    let points = figure.curves.iter().flat_map(|curve| &curve.points);
    let numbers = points.filter_map(|point| match point.x {
        Position::Number(number) if number.is_finite() => Some(number),
        _ => None,
    });
    numbers.fold(0.0, f64::max)
}

fn values_at(x: &Position, figure: &Figure) -> Vec<Option<String>> {
    figure
        .curves
        .iter()
        .map(|curve| {
            let point = curve.points.iter().find(|point| &point.x == x)?;
            let bounds = point.low.zip(point.high);
            Some(number::value_with_bounds(point.y, bounds, figure.y.unit).line())
        })
        .collect()
}
