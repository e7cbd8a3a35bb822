//! The points of a figure as rows, for readers and programs that do not see the picture.

use std::cmp::Ordering;

use linerate_model::analysis::{Curve, Figure, Position};

use crate::number;
use crate::wording;

/// Most rows written for one figure.
const ROWS_MAX: usize = 50;

/// About as many rows of a longer series, from all of it; the bundle's samples have the others.
const ROWS_OF_LONGER: usize = 25;

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
    table_of(figure, &[figure])
}

/// Returns the points of figures on one horizontal axis, that of `figure`.
pub fn table_of(figure: &Figure, figures: &[&Figure]) -> PointTable {
    let curves = || {
        let figures = figures.iter();
        figures.flat_map(|figure| figure.curves.iter().map(move |curve| (*figure, curve)))
    };
    let mut positions: Vec<&Position> = Vec::new();
    for point in curves().flat_map(|(_, curve)| &curve.points) {
        let is_name = matches!(point.x, Position::Name(_));
        // A capture has tens of thousands of instants: those are sorted, not searched.
        if !is_name || !positions.contains(&&point.x) {
            positions.push(&point.x);
        }
    }
    // Names come behind numbers and keep their order of appearance: the sort is stable.
    positions.sort_by(|a, b| match (a, b) {
        (Position::Number(a), Position::Number(b)) => a.total_cmp(b),
        (Position::Number(_), Position::Name(_)) => Ordering::Less,
        (Position::Name(_), Position::Number(_)) => Ordering::Greater,
        (Position::Name(_), Position::Name(_)) => Ordering::Equal,
    });
    positions.dedup();
    let all = positions.len();
    if all > ROWS_MAX {
        let step = all.div_ceil(ROWS_OF_LONGER);
        positions = positions.into_iter().step_by(step).collect();
    }
    let rows_hidden = all - positions.len();
    let rows = positions
        .into_iter()
        .map(|x| {
            let values = curves().map(|(figure, curve)| value_at(x, figure, curve));
            (position(x, figure), values.collect())
        })
        .collect();
    let names = curves().map(|(figure, curve)| {
        let name = wording::curve_name(&curve.name, curve.origin);
        let what = wording::heading(&figure.y.label);
        match (figures.len(), name.is_empty()) {
            (1, _) => name,
            (_, true) => what,
            (_, false) => format!("{what}, {name}"),
        }
    });
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

fn value_at(x: &Position, figure: &Figure, curve: &Curve) -> Option<String> {
    let point = curve.points.iter().find(|point| &point.x == x)?;
    Some(number::estimate(&point.estimate(figure.y.unit)).line())
}

#[cfg(test)]
mod tests {
    use linerate_model::analysis::{Axis, Curve, Origin, Point, Scale};
    use linerate_model::unit::Unit;

    use super::*;

    #[test]
    fn numbers_come_before_names_each_once_and_two_values_are_no_interval() {
        let point = |x: Position| Point {
            x,
            y: 2.0,
            low: Some(1.0),
            high: Some(3.0),
            range_of: Some(2),
            note: String::new(),
            limiter: None,
        };
        let curve = |name: &str| Curve {
            name: name.to_owned(),
            origin: Origin::Measured,
            points: vec![
                point(Position::Number(64.0)),
                point(Position::Name("autotuned".to_owned())),
                point(Position::Number(256.0)),
            ],
        };
        let table = table(&Figure {
            id: "one".to_owned(),
            title: String::new(),
            caption: String::new(),
            x: Axis::new("x", Unit::Count, Scale::Linear),
            y: Axis::new("y", Unit::Count, Scale::Linear),
            curves: vec![curve("one"), curve("other")],
        });
        let places: Vec<&str> = table.rows.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(places, ["64", "256", "autotuned"]);
        assert_eq!(
            table.rows[0].1[0].as_deref(),
            Some("2.0 (2 values: 1.0–3.0)")
        );
    }

    #[test]
    fn rows_of_a_long_series_are_from_all_of_it() {
        let of = |count: u32| {
            let point = |at: u32| Point {
                x: Position::Number(f64::from(at)),
                y: f64::from(at),
                low: None,
                high: None,
                range_of: None,
                note: String::new(),
                limiter: None,
            };
            table(&Figure {
                id: "one".to_owned(),
                title: String::new(),
                caption: String::new(),
                x: Axis::new("x", Unit::Count, Scale::Linear),
                y: Axis::new("y", Unit::Count, Scale::Linear),
                curves: vec![Curve {
                    name: "one".to_owned(),
                    origin: Origin::Measured,
                    points: (0..count).map(point).collect(),
                }],
            })
        };
        let short = of(50);
        assert_eq!((short.rows.len(), short.rows_hidden), (50, 0));
        let long = of(300);
        assert_eq!((long.rows.len(), long.rows_hidden), (25, 275));
        assert_eq!((&*long.rows[0].0, &*long.rows[24].0), ("0", "288"));
    }
}
