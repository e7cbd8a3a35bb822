//! What limits each point, as a strip below the horizontal axis: a row a curve, one for all of them
//! where they agree. Words stand in a piece that has room for them; the legend has them all.

use linerate_model::analysis::{Curve, Origin};
use linerate_model::limiter::Limiter;
use maud::{Markup, html};

use super::look::{self, Look};
use super::{Drawing, Plot, mark, tenths};
use crate::html::limits;

/// Height of a row with the gap to the next, in pixels.
const ROW_PX: f64 = 16.0;

/// Room between the axis and the first row, in pixels.
const ABOVE_PX: f64 = 7.0;

/// Most rows: the pointer tells the limiters of further curves.
const ROWS_MAX: usize = 4;

/// Width of a letter in a piece, in pixels: the style sheet's `.chart .short` is 10 pixels high.
const LETTER_PX: f64 = 6.4;

/// A row: the shares of the horizontal axis at which points are, with what limits them.
pub struct Strip {
    /// The curve that it is of; none where all agree.
    look: Option<Look>,
    points: Vec<(f64, Option<Limiter>)>,
}

/// Returns the room that strips need.
pub fn height_px(strips: &[Strip]) -> f64 {
    match strips.len() {
        0 => 0.0,
        rows => ABOVE_PX + rows as f64 * ROW_PX,
    }
}

impl Drawing<'_> {
    /// Returns the strips of the figure's measured curves.
    pub fn strips(&self) -> Vec<Strip> {
        let looks = look::looks(self.figure);
        let known = |(curve, look): (&Curve, Look)| {
            let is_measured = curve.origin == Origin::Measured;
            let place = |point: &linerate_model::analysis::Point| {
                Some((self.place(&point.x)?, point.limiter))
            };
            let points: Vec<_> = curve.points.iter().filter_map(place).collect();
            let is_known = points.iter().any(|(_, limiter)| limiter.is_some());
            (is_measured && is_known).then_some(Strip {
                look: Some(look),
                points,
            })
        };
        let curves = self.figure.curves.iter().zip(looks);
        let mut strips: Vec<Strip> = curves.filter_map(known).collect();
        // A level line has no trials of its own.
        let is_of_trials = |curve: &&Curve| {
            let mut points = curve.points.iter();
            curve.origin == Origin::Measured && points.any(|point| !point.note.is_empty())
        };
        let of_trials = self.figure.curves.iter().filter(is_of_trials).count();
        if let Some((first, others)) = strips.split_first_mut()
            && others.iter().all(|other| other.points == first.points)
            && 1 + others.len() >= of_trials
        {
            first.look = None;
            strips.truncate(1);
        }
        strips.truncate(ROWS_MAX);
        strips
    }

    /// Draws the strips between the axis and its labels.
    pub fn draw_strips(&self, strips: &[Strip], plot: &Plot) -> Markup {
        html! {
            @for (row, strip) in strips.iter().enumerate() {
                @let top = plot.bottom + ABOVE_PX + row as f64 * ROW_PX;
                @if let Some(look) = &strip.look { (of_curve(look, plot.left - 12.0, top + ROW_PX / 2.0 - 1.0)) }
                @for (from, to, limiter) in self.pieces(strip, plot) {
                    path.piece.(limits::tone(Some(limiter))) d={
                        "M" (tenths(from + 0.5)) " " (tenths(top)) "H" (tenths(to - 0.5))
                        "v" (tenths(ROW_PX - 3.0)) "H" (tenths(from + 0.5)) "Z"
                    } {}
                    @if limiter.short().chars().count() as f64 * LETTER_PX + 4.0 <= to - from {
                        text.short.middle x=(tenths((from + to) / 2.0)) y=(tenths(top + ROW_PX - 6.0)) {
                            (limiter.short())
                        }
                    }
                }
            }
        }
    }

    /// Returns where pieces begin and end, in pixels: halfway to the neighbouring points.
    fn pieces(&self, strip: &Strip, plot: &Plot) -> Vec<(f64, f64, Limiter)> {
        let mut points: Vec<(f64, Option<Limiter>)> = strip
            .points
            .iter()
            .map(|(share, limiter)| (plot.x(*share), *limiter))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let slot = (plot.right - plot.left) / self.categories.len().max(1) as f64;
        let mut pieces: Vec<(f64, f64, Limiter)> = Vec::new();
        for (at, (x, limiter)) in points.iter().enumerate() {
            let beside = |other: Option<&(f64, Option<Limiter>)>, end: f64| match other {
                _ if !self.categories.is_empty() => x + (end - x).signum() * slot / 2.0,
                Some((other, _)) => f64::midpoint(*x, *other),
                None => end,
            };
            let from = beside(at.checked_sub(1).and_then(|at| points.get(at)), plot.left);
            let to = beside(points.get(at + 1), plot.right);
            let Some(limiter) = *limiter else { continue };
            match pieces.last_mut() {
                Some(last) if last.2 == limiter && (last.1 - from).abs() < 0.5 => last.1 = to,
                _ => pieces.push((from, to, limiter)),
            }
        }
        pieces
    }
}

/// Draws the marker of the curve that a row is of.
fn of_curve(look: &Look, x: f64, y: f64) -> Markup {
    html! {
        g.whose style={ "color:" (look.color) } transform={ "translate(" (tenths(x)) " " (tenths(y)) ")" } {
            @match look.marker {
                Some(outline) => (mark::marker(outline, look.origin)),
                None => path d="M-6 0h12" stroke="currentColor" stroke-width="2" {},
            }
        }
    }
}
