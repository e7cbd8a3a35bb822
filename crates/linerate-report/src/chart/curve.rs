//! One curve of a drawing: line and markers or bars, intervals, and what is told of each point.

use std::fmt::Write as _;

use linerate_model::analysis::{Curve, Point, Position};
use maud::{Markup, html};

use super::look::Look;
use super::{Drawing, Plot, Sheet, is_bar, mark, tenths};
use crate::{number, points, wording};

/// Share of a category's room that its bars take, and the share of a bar's room that it fills.
const BARS: f64 = 0.7;
const BAR: f64 = 0.92;

/// Half the width of an interval's ends, in pixels.
const CAP_PX: f64 = 4.0;

/// Drawn points beyond which a curve's values are read off its axes, unless there is more to say: those of a curve
/// whose points are marked.
const TOLD_MAX: usize = super::look::MARKERS_MAX;

/// A point in pixels of the drawing.
struct Dot<'a> {
    x: f64,
    y: f64,
    point: &'a Point,
}

impl Drawing<'_> {
    /// Draws a curve in its colour.
    pub fn curve(&self, curve: &Curve, look: &Look, plot: &Plot, sheet: &Sheet) -> Markup {
        let bars = is_bar(self.figure, curve.origin);
        let shift = if bars {
            self.bar_place(curve, plot)
        } else {
            (0.0, 0.0)
        };
        let strokes = self.strokes(curve, plot, shift.0 + shift.1 / 2.0);
        let count = |strokes: &[Vec<Dot<'_>>]| strokes.iter().map(Vec::len).sum::<usize>();
        let all = count(&strokes);
        let strokes: Vec<Vec<Dot<'_>>> = match look.marker {
            None => strokes.into_iter().map(decimated).collect(),
            Some(_) => strokes,
        };
        let is_whole = count(&strokes) == all;
        let dots = || strokes.iter().flatten();
        let intervals = self.intervals(dots(), plot);
        let intervals = Some(intervals).filter(|path| !path.is_empty());
        let line = path(&strokes);
        let noted = dots().any(|dot| !dot.point.note.is_empty() || dot.point.limiter.is_some());
        let is_told = noted || dots().count() <= TOLD_MAX;
        // The phone's drawing has the same points, unless pixels were left out.
        let is_told = is_told && (sheet.is_first || !is_whole);
        let told = is_told.then(|| self.told(dots()));
        let zero = plot.y(self.y.share(0.0).unwrap_or(0.0));
        html! {
            g.curve style={ "color:" (look.color) } data-name=(wording::curve_name(&curve.name, curve.origin))
                data-points=[told] {
                @if bars {
                    @let outline = bar_outline(dots(), shift.1, zero);
                    path.bar d=(outline) {}
                    @if let Some(hatch) = mark::hatch_reference(look) { path.bar style={ "fill:" (hatch) } d=(outline) {} }
                    path.v.unseen d=(line) {}
                    @if let Some(intervals) = &intervals { path.interval.dark d=(intervals) {} }
                } @else {
                    @if let Some(intervals) = &intervals { path.interval d=(intervals) {} }
                    // A limit that was computed at one place only would not show as a line.
                    @if look.marker.is_none() && dots().count() == 1 {
                        @for dot in dots() {
                            path.line d={ "M" (tenths(dot.x - 12.0)) " " (tenths(dot.y)) "h24" } {}
                        }
                    }
                    @let marker = mark::marker_reference(look).map(|reference| format!("marker:{reference}"));
                    path.v.line d=(line) stroke-dasharray=[look.dashes] style=[marker] {}
                }
            }
        }
    }

    /// Returns where a curve's bars begin, from the middle of their category, and their width.
    fn bar_place(&self, curve: &Curve, plot: &Plot) -> (f64, f64) {
        let room = (plot.right - plot.left) / self.categories.len() as f64 * BARS;
        let is_bar = |other: &&Curve| is_bar(self.figure, other.origin);
        let of_bars = self.figure.curves.iter().filter(is_bar);
        let rank = of_bars.clone().position(|other| std::ptr::eq(other, curve));
        let each = room / of_bars.count() as f64;
        (rank.unwrap_or(0) as f64 * each - room / 2.0, each * BAR)
    }

    /// Returns the points that can be drawn, in strokes between those that cannot.
    fn strokes<'a>(&self, curve: &'a Curve, plot: &Plot, shift: f64) -> Vec<Vec<Dot<'a>>> {
        let mut strokes = vec![Vec::new()];
        for point in &curve.points {
            let dot = self.place(&point.x).zip(self.y.share(point.y));
            match (dot, strokes.last_mut()) {
                (Some((x, y)), Some(stroke)) => stroke.push(Dot {
                    x: plot.x(x) + shift,
                    y: plot.y(y),
                    point,
                }),
                _ => strokes.push(Vec::new()),
            }
        }
        strokes.retain(|stroke| !stroke.is_empty());
        strokes
    }

    pub fn place(&self, position: &Position) -> Option<f64> {
        match position {
            _ if !self.categories.is_empty() => {
                let name = points::position(position, self.figure);
                let at = self.categories.iter().position(|other| *other == name)?;
                self.x.share(at as f64)
            }
            Position::Number(number) => self.x.share(*number),
            Position::Name(_) => None,
        }
    }

    /// Returns intervals as strokes with ends; what runs out of the picture has an arrow's head there.
    fn intervals<'a>(&self, dots: impl Iterator<Item = &'a Dot<'a>>, plot: &Plot) -> String {
        let mut out = String::new();
        for dot in dots {
            let Some((low, high)) = dot.point.low.zip(dot.point.high) else {
                continue;
            };
            // No logarithm of nothing: such an interval runs out below.
            let share = |value: f64| self.y.share(value).unwrap_or(-1.0);
            let (low, high) = (share(low), share(high));
            let (from, to) = (plot.y(low.max(0.0)), plot.y(high.min(1.0)));
            let _ = write!(out, "M{} {}V{}", tenths(dot.x), tenths(from), tenths(to));
            for (share, y) in [(low, from), (high, to)] {
                let left = tenths(dot.x - CAP_PX);
                let _ = if (0.0..=1.0).contains(&share) {
                    write!(out, "M{left} {}h{}", tenths(y), 2.0 * CAP_PX)
                } else {
                    let back = if share > 1.0 { CAP_PX } else { -CAP_PX };
                    write!(
                        out,
                        "M{left} {}l{CAP_PX} {}l{CAP_PX} {back}",
                        tenths(y + back),
                        -back
                    )
                };
            }
        }
        out
    }

    /// Returns what a reader is told of each point: value, position and note, a line a point.
    fn told<'a>(&self, dots: impl Iterator<Item = &'a Dot<'a>>) -> String {
        let unit = self.figure.y.unit;
        let line = |dot: &Dot<'_>| {
            let point = dot.point;
            let value = number::estimate(&point.estimate(unit)).line();
            let place = points::position(&point.x, self.figure);
            let limiter = point.limiter.map(|it| format!("limited by {}", it.title()));
            let notes = [limiter.as_deref().unwrap_or(""), &point.note]
                .into_iter()
                .filter(|note| !note.is_empty());
            let note = notes.collect::<Vec<_>>().join("; ");
            let parts = [&value, &place, &note].map(|part| part.replace(['\t', '\n'], " "));
            parts.join("\t").trim_end().to_owned()
        };
        dots.map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Keeps the first, least, largest and last point of each pixel's width.
fn decimated(dots: Vec<Dot<'_>>) -> Vec<Dot<'_>> {
    let mut kept: Vec<Dot<'_>> = Vec::new();
    let mut column: Vec<Dot<'_>> = Vec::new();
    for dot in dots {
        if column
            .first()
            .is_some_and(|first| first.x.floor() != dot.x.floor())
        {
            keep_extremes(&mut column, &mut kept);
        }
        column.push(dot);
    }
    keep_extremes(&mut column, &mut kept);
    kept
}

fn keep_extremes<'a>(column: &mut Vec<Dot<'a>>, kept: &mut Vec<Dot<'a>>) {
    let by_height = |a: &usize, b: &usize| column[*a].y.total_cmp(&column[*b].y);
    let least = (0..column.len()).min_by(by_height);
    let largest = (0..column.len()).max_by(by_height);
    let last = column.len().checked_sub(1);
    for (at, dot) in column.drain(..).enumerate() {
        if at == 0 || [least, largest, last].contains(&Some(at)) {
            kept.push(dot);
        }
    }
}

/// Returns the path of strokes, a command for each of their points: page.js reads them back. Each is relative
/// to the one before, which takes half of the bytes: pictures of captures are most of a page that has some.
fn path(strokes: &[Vec<Dot<'_>>]) -> String {
    let mut out = String::new();
    let mut last: Option<(i64, i64)> = None;
    for stroke in strokes {
        for (at, dot) in stroke.iter().enumerate() {
            // Of whole tenths, so that nothing adds up.
            let here = ((dot.x * 10.0).round() as i64, (dot.y * 10.0).round() as i64);
            let (x, y) = match last {
                Some(last) => (here.0 - last.0, here.1 - last.1),
                None => here,
            };
            let gap = if y < 0 { "" } else { " " };
            let _ = match (last, at, x, y) {
                (None, ..) => write!(out, "M{} {}", tenth(x), tenth(y)),
                (_, 0, ..) => write!(out, "m{}{gap}{}", tenth(x), tenth(y)),
                (_, _, _, 0) => write!(out, "h{}", tenth(x)),
                (_, _, 0, _) => write!(out, "v{}", tenth(y)),
                _ => write!(out, "l{}{gap}{}", tenth(x), tenth(y)),
            };
            last = Some(here);
        }
    }
    out
}

/// Writes so many tenths in as few letters as a path takes.
fn tenth(tenths: i64) -> String {
    let sign = if tenths < 0 { "-" } else { "" };
    match (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10) {
        (whole, 0) => format!("{sign}{whole}"),
        (0, part) => format!("{sign}.{part}"),
        (whole, part) => format!("{sign}{whole}.{part}"),
    }
}

fn bar_outline<'a>(dots: impl Iterator<Item = &'a Dot<'a>>, width: f64, zero: f64) -> String {
    let (mut out, zero) = (String::new(), tenths(zero));
    for dot in dots {
        let left = tenths(dot.x - width / 2.0);
        let _ = write!(
            out,
            "M{left} {zero}V{}h{}V{zero}Z",
            tenths(dot.y),
            tenths(width)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_keeps_the_extremes_of_each_pixel() {
        let point = |y: f64| Point {
            x: Position::Number(0.0),
            y,
            low: None,
            high: None,
            range_of: None,
            note: String::new(),
            limiter: None,
        };
        let heights = [5.0, 1.0, 2.0, 9.0, 3.0, 7.0, 7.5];
        let points: Vec<Point> = heights.into_iter().map(point).collect();
        let dots = points.iter().enumerate().map(|(at, point)| Dot {
            x: at as f64 * 0.2,
            y: point.y,
            point,
        });
        let kept: Vec<f64> = decimated(dots.collect()).iter().map(|dot| dot.y).collect();
        // Five points in the first pixel, two in the second.
        assert_eq!(kept, [5.0, 1.0, 9.0, 3.0, 7.0, 7.5]);
    }

    #[test]
    fn a_path_has_a_short_command_for_each_point() {
        let point = Point {
            x: Position::Number(0.0),
            y: 0.0,
            low: None,
            high: None,
            range_of: None,
            note: String::new(),
            limiter: None,
        };
        let stroke = |places: &[(f64, f64)]| -> Vec<Dot<'_>> {
            let dots = places.iter();
            dots.map(|&(x, y)| Dot {
                x,
                y,
                point: &point,
            })
            .collect()
        };
        let strokes = [
            stroke(&[(10.04, 20.0), (12.0, 20.0), (12.0, 19.5), (12.0, 19.5)]),
            stroke(&[(14.0, 18.0), (14.5, 20.25), (15.0, 20.0)]),
        ];
        assert_eq!(path(&strokes), "M10 20h2v-.5h0m2-1.5l.5 2.3l.5-.3");
    }
}
