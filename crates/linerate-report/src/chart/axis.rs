//! Axes: range, ticks and the prefix of their unit.

use linerate_model::analysis::{Axis, Curve, Figure, Origin, Position, Scale};
use linerate_model::unit::Unit;
use plotly::common::{ExponentFormat, Font, Title};
use plotly::layout::{Axis as PlotlyAxis, AxisRange, AxisType, RangeMode, TicksDirection};

use crate::number::{self, Prefixed};
use crate::{points, wording};

/// Most ticks at measured positions; beyond it some go without a label.
const TICKS_MAX: f64 = 10.0;

/// How far above the highest value intervals are shown, as a multiple of that value.
const INTERVAL_REACH: f64 = 1.5;

/// Number of ticks that a vertical axis should have.
const TICKS_WANTED: f64 = 5.5;

/// Room above the highest point of a linear axis, as a share of the axis.
const HEADROOM: f64 = 0.06;

/// A drawn axis: plotly's description and what positions are divided by.
pub struct DrawnAxis {
    /// Range, ticks and colours.
    pub axis: PlotlyAxis,
    /// The label, where it does not stand at the axis.
    pub title: String,
    /// The unit that positions are given in.
    pub prefix: Prefixed,
}

/// Returns the horizontal axis: ticks stand where something was measured.
pub fn horizontal(figure: &Figure) -> DrawnAxis {
    let positions = numeric_positions(figure);
    let prefix = number::prefix_of_axis(figure.x.unit, points::position_max(figure));
    let axis = styled()
        .show_grid(false)
        .show_line(true)
        .ticks(TicksDirection::Outside);
    let named = wording::heading(&figure.x.label);
    let (axis, title) = match figure.x.scale {
        Scale::Category => (axis.type_(AxisType::Category), named),
        Scale::Log => {
            let ticks = spread(&positions, f64::log2);
            (
                with_ticks(axis.type_(AxisType::Log), &ticks, figure.x.unit, prefix),
                named,
            )
        }
        Scale::Linear if is_sparse(&positions) => {
            (with_ticks(axis, &positions, figure.x.unit, prefix), named)
        }
        Scale::Linear => (axis, label(&figure.x, prefix)),
    };
    let title = Title::with_text(super::plain(&title)).font(Font::new().size(super::FONT_PX));
    DrawnAxis {
        axis: axis.title(title),
        title: String::new(),
        prefix,
    }
}

/// Returns the vertical axis: from zero, or by decades when it is logarithmic.
pub fn vertical(figure: &Figure) -> DrawnAxis {
    let values = heights(figure);
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = highest_shown(figure);
    let prefix = number::prefix_of_axis(figure.y.unit, highest.max(0.0));
    let axis = styled().show_grid(true).show_line(false);
    let (axis, title) = match figure.y.scale {
        Scale::Log => {
            let positive: Vec<f64> = values.into_iter().filter(|value| *value > 0.0).collect();
            let axis = logarithmic(axis, &positive, figure.y.unit, prefix);
            (axis, wording::heading(&figure.y.label))
        }
        // Values below zero: plotly's own range, which then includes zero.
        _ if lowest < 0.0 || highest <= 0.0 || values.is_empty() => {
            (axis.range_mode(RangeMode::ToZero), label(&figure.y, prefix))
        }
        _ => {
            let (top, step) = from_zero(highest / prefix.divisor);
            let axis = axis
                .range(AxisRange::new(0.0, top))
                .dtick(step)
                .separate_thousands(top >= number::GROUP_FROM);
            (axis, label(&figure.y, prefix))
        }
    };
    DrawnAxis {
        axis,
        title,
        prefix,
    }
}

/// Returns the axis label with its unit: `Throughput (Mbit/s)`.
fn label(axis: &Axis, prefix: Prefixed) -> String {
    let name = wording::heading(&axis.label);
    match (axis.unit, prefix.symbol) {
        (_, "") => name,
        (_, symbol) if name.ends_with(symbol) => name,
        (Unit::PerSecond, _) if name.ends_with("per second") => name,
        (Unit::PerSecond, _) => format!("{name} (per second)"),
        (_, symbol) => format!("{name} ({symbol})"),
    }
}

fn styled() -> PlotlyAxis {
    PlotlyAxis::new()
        .auto_margin(true)
        .zero_line(false)
        .grid_color("var(--grid)")
        .line_color("var(--axis)")
        .tick_color("var(--axis)")
        .exponent_format(ExponentFormat::None)
        // Four digits need no space between them, as everywhere in the report.
        .separate_thousands(false)
}

fn logarithmic(axis: PlotlyAxis, values: &[f64], unit: Unit, prefix: Prefixed) -> PlotlyAxis {
    let axis = axis.type_(AxisType::Log);
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    if values.is_empty() {
        return axis;
    }
    // A little room on both ends, and never an empty range.
    let (bottom, top) = (lowest / 1.3, highest * 1.3);
    let range = AxisRange::new(
        (bottom / prefix.divisor).log10(),
        (top / prefix.divisor).log10(),
    );
    with_ticks(axis.range(range), &decades(bottom, top), unit, prefix)
}

/// Returns the highest point that the vertical axis must show.
///
/// With two or three trials an interval can be many times as long as its value is high, and would
/// press all curves to the ground: it is shown up to [`INTERVAL_REACH`] times the highest value
/// and then runs out of the picture. Its ends are in the table.
fn highest_shown(figure: &Figure) -> f64 {
    let points = figure.curves.iter().flat_map(|curve| &curve.points);
    let value = points.map(|point| point.y).filter(|y| y.is_finite());
    let value = value.fold(f64::NEG_INFINITY, f64::max);
    let end = heights(figure).into_iter().fold(value, f64::max);
    if value > 0.0 {
        end.min(value * INTERVAL_REACH)
    } else {
        end
    }
}

/// Returns the end of an axis from zero that holds `highest`, and the step of its ticks.
///
/// The end is a tick if one is near, so that the topmost curve has a number above it.
fn from_zero(highest: f64) -> (f64, f64) {
    let rough = highest / TICKS_WANTED;
    let decade = 10f64.powf(rough.log10().floor());
    let fits = |factor: &f64| factor * decade >= rough;
    let step = [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * decade;
    let (least, next) = (highest * (1.0 + HEADROOM), (highest / step).ceil() * step);
    // A hair above the tick, or its line would lie on the edge and be cut.
    let near = (least.min(next)..=highest * (1.0 + 2.0 * HEADROOM)).contains(&next);
    (if near { least.max(next * 1.005) } else { least }, step)
}

/// Returns 1, 10, 100 … between `bottom` and `top`, with 2 and 5 between them on short ranges.
fn decades(bottom: f64, top: f64) -> Vec<f64> {
    let (first, last) = (bottom.log10().floor() as i32, top.log10().ceil() as i32);
    let steps: &[f64] = match last - first {
        0..=3 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    (first..=last)
        .flat_map(|exponent| steps.iter().map(move |step| step * 10f64.powi(exponent)))
        .filter(|tick| (bottom..=top).contains(tick))
        .collect()
}

fn with_ticks(axis: PlotlyAxis, ticks: &[f64], unit: Unit, prefix: Prefixed) -> PlotlyAxis {
    let maximum = ticks.last().copied().unwrap_or(0.0);
    let texts = ticks
        .iter()
        .map(|tick| number::display_on_axis(*tick, unit, maximum))
        .collect();
    axis.tick_values(ticks.iter().map(|tick| tick / prefix.divisor).collect())
        .tick_text(texts)
}

/// Returns whether a label at each position has room on an even axis.
fn is_sparse(positions: &[f64]) -> bool {
    positions.len() > 1 && spread(positions, |position| position).len() == positions.len()
}

/// Returns those of the sorted `positions` that stand far enough apart on the axis.
fn spread(positions: &[f64], place: impl Fn(f64) -> f64) -> Vec<f64> {
    let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else {
        return Vec::new();
    };
    let room = (place(last) - place(first)) / TICKS_MAX * 0.999;
    let mut ticks = vec![first];
    for &position in &positions[1..] {
        let from_previous = place(position) - place(ticks[ticks.len() - 1]);
        let to_last = place(last) - place(position);
        // The end of the axis is always labelled, so nothing stands too close before it.
        if from_previous >= room && (position == last || to_last >= room) {
            ticks.push(position);
        }
    }
    if ticks[ticks.len() - 1] != last {
        ticks.push(last);
    }
    ticks
}

/// Returns the positions that ticks may stand at: where something was measured, sorted.
///
/// On a logarithmic axis only those above zero. A figure without measured curves takes all.
fn numeric_positions(figure: &Figure) -> Vec<f64> {
    let measured = |curve: &&Curve| curve.origin == Origin::Measured;
    let any_measured = figure.curves.iter().any(|curve| measured(&curve));
    let curves = figure
        .curves
        .iter()
        .filter(|curve| !any_measured || measured(curve));
    let mut positions: Vec<f64> = curves
        .flat_map(|curve| &curve.points)
        .filter_map(|point| match point.x {
            Position::Number(number) if number.is_finite() => Some(number),
            _ => None,
        })
        .filter(|position| figure.x.scale != Scale::Log || *position > 0.0)
        .collect();
    positions.sort_by(f64::total_cmp);
    positions.dedup();
    positions
}

/// Returns every finite height that the figure shows, interval ends included.
fn heights(figure: &Figure) -> Vec<f64> {
    let points = figure.curves.iter().flat_map(|curve| &curve.points);
    points
        .flat_map(|point| [Some(point.y), point.low, point.high])
        .flatten()
        .filter(|value| value.is_finite())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_keep_both_ends_and_their_distance() {
        let doubled: Vec<f64> = (4..=10).map(|power| 2f64.powi(power) * 1024.0).collect();
        assert_eq!(spread(&doubled, f64::log2), doubled);
        let crowded = [1.0, 1.05, 4.0, 1400.0, 1460.0];
        assert_eq!(spread(&crowded, f64::log2), [1.0, 4.0, 1460.0]);
        assert_eq!(spread(&[], f64::log2), [0.0; 0]);
        assert_eq!(spread(&[7.0], f64::log2), [7.0]);
    }

    #[test]
    fn an_axis_from_zero_ends_at_a_tick_if_one_is_near() {
        let check = |highest, top: f64, step| {
            let (found, found_step) = from_zero(highest);
            assert!((found - top).abs() < top * 1e-9, "{highest}: {found}");
            assert_eq!(found_step, step);
        };
        check(941.5, 1005.0, 200.0);
        check(20_300.0, 20_300.0 * 1.06, 5000.0);
        check(100.0, 106.0, 20.0);
        check(0.5, 0.53, 0.1);
    }

    #[test]
    fn short_logarithmic_ranges_get_twos_and_fives() {
        assert_eq!(decades(0.9, 30.0), [1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(decades(0.9, 1e6), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
    }
}
