//! Axes: range, ticks and the prefix of their unit, in the unit's own base.

use linerate_model::analysis::{Axis, Curve, Figure, Origin, Position, Scale};
use linerate_model::unit::Unit;

use crate::number::{self, Prefixed};
use crate::{points, wording};

/// How far above the highest value intervals are shown, as a multiple of that value.
const INTERVAL_REACH: f64 = 1.5;

/// Number of ticks that an axis of even steps should have.
const TICKS_WANTED: f64 = 5.5;

/// Room above the highest point of a linear axis, as a share of the axis.
const HEADROOM: f64 = 0.06;

/// Most ticks at measured positions of an even axis; of more, round steps are easier to read.
const POSITIONS_MAX: usize = 10;

/// An axis ready to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawnAxis {
    /// What it shows, with its unit unless each tick has it.
    pub title: String,
    /// Where ticks may stand and what they say, in order.
    pub ticks: Vec<(f64, String)>,
    /// The unit of its title.
    pub prefix: Prefixed,
    /// The least and the largest position.
    pub range: (f64, f64),
    /// Whether positions are spaced by factor.
    pub log: bool,
}

impl DrawnAxis {
    /// Returns where a position lies: 0 at the least, 1 at the largest; none where it cannot be shown.
    pub fn share(&self, position: f64) -> Option<f64> {
        let place = |value: f64| if self.log { value.ln() } else { value };
        let (from, to) = (place(self.range.0), place(self.range.1));
        let share = if to > from {
            (place(position) - from) / (to - from)
        } else {
            0.5
        };
        share.is_finite().then_some(share)
    }
}

/// Returns the horizontal axis: ticks may stand where something was measured, or at even steps.
///
/// The positions of categories are their places in `categories`.
pub fn horizontal(figure: &Figure, categories: &[String]) -> DrawnAxis {
    let prefix = number::prefix_of_axis(figure.x.unit, points::position_max(figure));
    let named = wording::heading(&figure.x.label);
    let log = figure.x.scale == Scale::Log;
    let axis = |title, ticks, range| DrawnAxis {
        title,
        ticks,
        prefix,
        range,
        log,
    };
    if figure.x.scale == Scale::Category {
        let ticks = categories
            .iter()
            .enumerate()
            .map(|(at, name)| (at as f64, name.clone()));
        return axis(
            named,
            ticks.collect(),
            (-0.5, categories.len() as f64 - 0.5),
        );
    }
    let all = numeric_positions(figure, |_| true);
    let range = (
        all.first().copied().unwrap_or(0.0),
        all.last().copied().unwrap_or(1.0),
    );
    let measured = numeric_positions(figure, |curve| curve.origin == Origin::Measured);
    let measured = if measured.is_empty() { all } else { measured };
    if log || measured.len() <= POSITIONS_MAX {
        let title = if log {
            log_label(&figure.x, &measured)
        } else {
            named
        };
        return axis(title, labelled(&measured, figure.x.unit), range);
    }
    let step = round_step((range.1 - range.0) / prefix.divisor) * prefix.divisor;
    // Time is told from its beginning.
    let begins_at_zero = (0.0..step).contains(&range.0);
    let range = (if begins_at_zero { 0.0 } else { range.0 }, range.1);
    axis(
        label(&figure.x, prefix),
        even_ticks(range, step, prefix),
        range,
    )
}

/// Returns the vertical axis: from zero, or by decades when it is logarithmic.
pub fn vertical(figure: &Figure) -> DrawnAxis {
    let values = heights(figure);
    let highest = highest_shown(figure).max(0.0);
    let prefix = number::prefix_of_axis(figure.y.unit, highest);
    let positive = || values.iter().copied().filter(|value| *value > 0.0);
    if figure.y.scale == Scale::Log && positive().next().is_some() {
        // A little room on both ends, and never an empty range.
        let range = (
            positive().fold(f64::INFINITY, f64::min) / 1.3,
            positive().fold(0.0, f64::max) * 1.3,
        );
        return DrawnAxis {
            title: log_label(&figure.y, &decades(range.0, range.1)),
            ticks: labelled(&decades(range.0, range.1), figure.y.unit),
            prefix,
            range,
            log: true,
        };
    }
    let lowest = values.iter().copied().fold(0.0, f64::min);
    let (top, step) = match highest {
        0.0 if lowest < 0.0 => (0.0, round_step(-lowest / prefix.divisor)),
        0.0 => (1.0, 0.5),
        _ => from_zero((highest - lowest) / prefix.divisor),
    };
    let step = step * prefix.divisor;
    let range = (
        (lowest / step).floor() * step,
        top * prefix.divisor + lowest,
    );
    let range = (range.0, range.1.max(range.0 + step));
    DrawnAxis {
        title: label(&figure.y, prefix),
        ticks: even_ticks(range, step, prefix),
        prefix,
        range,
        log: false,
    }
}

/// Returns a tick at each of `positions`, its unit beside its number.
fn labelled(positions: &[f64], unit: Unit) -> Vec<(f64, String)> {
    let maximum = positions.last().copied().unwrap_or(0.0);
    let text = |at| number::display_on_axis(at, unit, maximum);
    positions.iter().map(|&at| (at, text(at))).collect()
}

/// Returns the multiples of `step` within `range`, as numbers of the title's unit.
fn even_ticks(range: (f64, f64), step: f64, prefix: Prefixed) -> Vec<(f64, String)> {
    // Just below the decade, or 0.1 + 0.2 would have 17 digits.
    let decimals = (-(step / prefix.divisor * 1.001).log10().floor()).max(0.0) as usize;
    let (first, last) = (
        (range.0 / step).ceil() as i64,
        (range.1 / step).floor() as i64,
    );
    let ticks = (first..=last).map(|count| count as f64 * step);
    ticks
        .map(|at| (at, number::grouped(at / prefix.divisor, decimals)))
        .collect()
}

/// Returns the axis label with its unit: `Throughput (Mbit/s)`.
fn label(axis: &Axis, prefix: Prefixed) -> String {
    let name = wording::heading(&axis.label);
    match (axis.unit, prefix.symbol) {
        (_, "") => name,
        (_, symbol) if name.ends_with(symbol) => name,
        (Unit::PerSecond, _)
            if ["per second", "a second"]
                .iter()
                .any(|end| name.ends_with(end)) =>
        {
            name
        }
        (Unit::PerSecond, _) => format!("{name} (per second)"),
        (_, symbol) => format!("{name} ({symbol})"),
    }
}

/// Returns the label of an axis by factor, with the units of its first and last tick:
/// `Socket buffer (KiB – MiB, log scale)`.
fn log_label(axis: &Axis, ticks: &[f64]) -> String {
    let name = wording::heading(&axis.label);
    let most = ticks.last().copied().unwrap_or(0.0);
    let symbol = |at: Option<&f64>| {
        let text = number::display_on_axis(*at?, axis.unit, most);
        let unit = text.trim_start_matches(|c: char| !c.is_alphabetic() && c != '%' && c != '/');
        Some(unit.to_owned()).filter(|unit| !unit.is_empty())
    };
    match (symbol(ticks.first()), symbol(ticks.last())) {
        // Said already.
        _ if name.ends_with("per second") => format!("{name} (log scale)"),
        (Some(first), Some(last)) if first == last => format!("{name} ({first}, log scale)"),
        (Some(first), Some(last)) => format!("{name} ({first} – {last}, log scale)"),
        _ => format!("{name} (log scale)"),
    }
}

/// Returns the highest point that the vertical axis must show.
///
/// With two or three trials an interval can be many times as long as its value is high, and would
/// press all curves to the ground: it is shown up to [`INTERVAL_REACH`] times the highest value
/// and then runs out of the picture. Its ends are in the table.
fn highest_shown(figure: &Figure) -> f64 {
    let points = figure.curves.iter().flat_map(|curve| &curve.points);
    let value = points
        .map(|point| point.y)
        .filter(|y| y.is_finite())
        .fold(f64::NEG_INFINITY, f64::max);
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
    let step = round_step(highest);
    let (least, next) = (highest * (1.0 + HEADROOM), (highest / step).ceil() * step);
    // A hair above the tick, or its line would lie on the edge and be cut.
    let near = (least.min(next)..=highest * (1.0 + 2.0 * HEADROOM)).contains(&next);
    (if near { least.max(next * 1.005) } else { least }, step)
}

/// Returns a round step that parts `length` into about [`TICKS_WANTED`] pieces.
fn round_step(length: f64) -> f64 {
    let rough = length / TICKS_WANTED;
    let decade = 10f64.powf(rough.log10().floor());
    let fits = |factor: &f64| factor * decade >= rough;
    [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * decade
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

/// Returns the positions of points of the wanted curves, sorted; on a logarithmic axis those above zero.
fn numeric_positions(figure: &Figure, wanted: impl Fn(&Curve) -> bool) -> Vec<f64> {
    let curves = figure.curves.iter().filter(|curve| wanted(curve));
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
    fn even_ticks_have_as_many_decimals_as_their_step() {
        let none = Prefixed {
            divisor: 1.0,
            symbol: "",
        };
        let check = |range, step, texts: &[&str]| {
            let ticks = even_ticks(range, step, none);
            let found: Vec<&str> = ticks.iter().map(|(_, text)| &**text).collect();
            assert_eq!(found, texts);
        };
        check((0.0, 0.45), 0.1, &["0.0", "0.1", "0.2", "0.3", "0.4"]);
        check((-50.0, 106.0), 50.0, &["-50", "0", "50", "100"]);
        check((0.0, 21e3), 1e4, &["0", "10\u{202f}000", "20\u{202f}000"]);
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
