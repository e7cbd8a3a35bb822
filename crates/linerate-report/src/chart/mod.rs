//! A figure as SVG: drawn when the report is made, so that it is there on paper, without scripts and
//! in any theme.
//!
//! 1. Text in a drawing shrinks with it, so each figure is drawn twice, for a page and for a phone;
//!    the style sheet shows one of them.
//! 2. Colours are names of the page's style properties: one drawing serves light, dark and paper.
//! 3. A curve of more points than the drawing has pixels keeps the first, the least, the largest and
//!    the last of each pixel, which looks the same.
//! 4. The vertices of a `path` of class `v` are a curve's points, and `data-points` says in words what
//!    they are, for the page's script to show; the phone's drawing has those of the page's.

use std::fmt::Write as _;

use linerate_model::analysis::{Figure, Origin, Scale};
use maud::{Markup, html};

/// Axes: range, ticks and the prefix of their unit.
mod axis;
/// One curve.
mod curve;
/// Pairs of hosts.
mod heat;
/// How a curve looks.
pub mod look;
/// Markers, dashes and hatches.
pub mod mark;
/// What limits each point, below the axis.
mod strip;
/// Words and the room that they need.
mod text;

use crate::points;
pub use heat::heat_map;

use axis::DrawnAxis;
use text::{Label, Names, cut, width_px, with_room};

/// Size of text, in pixels of the drawing; the style sheet's `.chart text` says the same.
const FONT_PX: f64 = 12.0;

/// Height of a line of text, in pixels.
const LINE_PX: f64 = 15.0;

/// Room between labels, and between a label and its axis, in pixels.
const GAP_PX: f64 = 8.0;

/// Room between the ends of a numeric axis and the first and last point, in pixels.
const INSET_PX: f64 = 14.0;

/// Height of the plot of a figure that stands below others, in pixels.
const STACKED_PX: f64 = 84.0;

/// A size that every figure is drawn in.
struct Sheet {
    class: &'static str,
    width: f64,
    height: f64,
    /// Whether it has the words of what others have, too.
    is_first: bool,
}

const PAGE: Sheet = Sheet {
    class: "page",
    width: 680.0,
    height: 330.0,
    is_first: true,
};

/// As wide as the text on a phone of 390 pixels.
const PHONE: Sheet = Sheet {
    class: "phone",
    width: 358.0,
    height: 290.0,
    is_first: false,
};

/// The rectangle of a drawing that curves lie in.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// Where labels of the horizontal axis begin: below the strip of limiters.
    below: f64,
    /// Room that is kept free at both ends of the horizontal axis.
    inset: f64,
}

impl Plot {
    fn x(&self, share: f64) -> f64 {
        let (left, right) = (self.left + self.inset, self.right - self.inset);
        left + share * (right - left)
    }

    fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }
}

/// What drawings of one figure share.
struct Drawing<'a> {
    figure: &'a Figure,
    categories: Vec<String>,
    x: DrawnAxis,
    y: DrawnAxis,
    /// Its place among figures that stand below each other; absent of one that is alone.
    stacked: Option<Stacked>,
}

/// The place of a figure below others on one horizontal axis.
#[derive(Clone, Copy)]
struct Stacked {
    /// Where the plots of all of them begin.
    left: f64,
    /// Whether it has the labels of the axis.
    is_last: bool,
}

/// Draws a figure for a page and for a phone.
pub fn drawings(figure: &Figure) -> Markup {
    let categories = categories(figure);
    let drawing = Drawing {
        x: axis::horizontal(figure, &categories),
        y: axis::vertical(figure),
        figure,
        categories,
        stacked: None,
    };
    drawing.on_both()
}

/// Draws figures that stand below each other on one horizontal axis, each for a page and for a phone.
pub fn stacked(figures: &[&Figure]) -> Vec<Markup> {
    let Some((&first, &last)) = figures.first().zip(figures.last()) else {
        return Vec::new();
    };
    let curves = figures.iter().flat_map(|figure| figure.curves.clone());
    let all = Figure {
        curves: curves.collect(),
        ..first.clone()
    };
    let x = axis::horizontal(&all, &[]);
    let ys: Vec<DrawnAxis> = figures
        .iter()
        .map(|figure| axis::vertical(figure))
        .collect();
    let left = ys.iter().map(left_px).fold(0.0, f64::max);
    let figures = figures.iter().zip(ys);
    let drawn = figures.map(|(&figure, y)| {
        let drawing = Drawing {
            figure,
            categories: Vec::new(),
            x: x.clone(),
            y,
            stacked: Some(Stacked {
                left,
                is_last: std::ptr::eq(figure, last),
            }),
        };
        drawing.on_both()
    });
    drawn.collect()
}

/// Returns the room that the labels of a vertical axis need.
fn left_px(axis: &DrawnAxis) -> f64 {
    let widest = axis.ticks.iter().map(|(_, text)| width_px(text));
    widest.fold(0.0, f64::max) + GAP_PX
}

/// Returns whether curves of this origin are bars: those have a category each, and begin at zero.
pub fn is_bar(figure: &Figure, origin: Origin) -> bool {
    figure.x.scale == Scale::Category && figure.y.scale != Scale::Log && origin != Origin::Computed
}

/// Returns the names on a horizontal axis of categories, in order of appearance.
fn categories(figure: &Figure) -> Vec<String> {
    let mut names = Vec::new();
    if figure.x.scale == Scale::Category {
        for point in figure.curves.iter().flat_map(|curve| &curve.points) {
            let name = points::position(&point.x, figure);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

impl Drawing<'_> {
    fn on_both(&self) -> Markup {
        html! {
            (self.on(&PAGE))
            (self.on(&PHONE))
        }
    }

    fn on(&self, sheet: &Sheet) -> Markup {
        let left = self
            .stacked
            .map_or_else(|| left_px(&self.y), |stacked| stacked.left);
        let has_labels = self.stacked.is_none_or(|stacked| stacked.is_last);
        let slot = (sheet.width - left - GAP_PX) / self.categories.len().max(1) as f64;
        let names = Names::of(&self.categories, slot);
        let strips = self.strips();
        let labels_px = if has_labels {
            2.0 * LINE_PX + names.height_px.max(LINE_PX)
        } else {
            GAP_PX
        };
        let top = if self.stacked.is_some() {
            1.5 * LINE_PX
        } else {
            2.0 * LINE_PX
        };
        let bottom = match self.stacked {
            Some(_) => top + STACKED_PX,
            None => sheet.height - labels_px,
        };
        let height = bottom + labels_px + strip::height_px(&strips);
        let plot = Plot {
            left,
            right: sheet.width - GAP_PX,
            top,
            bottom,
            below: bottom + strip::height_px(&strips),
            inset: if self.categories.is_empty() {
                INSET_PX
            } else {
                0.0
            },
        };
        // The axes as numbers, for values that are read off them.
        let axes = format!(
            "[[{},{},{}],[{},{},{}]]",
            tenths(plot.x(0.0)),
            tenths(plot.x(1.0)),
            scale(&self.x),
            tenths(plot.bottom),
            tenths(plot.top),
            scale(&self.y),
        );
        let title_x = (plot.left + plot.right) / 2.0;
        html! {
            svg.chart.(sheet.class) viewBox={ "0 0 " (sheet.width) " " (height) }
                width=(sheet.width) height=(height) data-axes=(axes) aria-hidden="true" {
                // Level above the plot, where a phone has room for it.
                text.title x="0" y=(FONT_PX) { (cut(&self.y.title, sheet.width)) }
                (self.vertical_ticks(&plot))
                @if self.categories.is_empty() {
                    (self.horizontal_ticks(&plot, sheet, has_labels))
                } @else {
                    (names.draw(&plot, slot))
                }
                (self.draw_strips(&strips, &plot))
                @if has_labels {
                    text.title.middle x=(tenths(title_x)) y=(tenths(height - 5.0)) {
                        (cut(&self.x.title, 2.0 * (sheet.width - title_x)))
                    }
                }
                @for (curve, look) in self.figure.curves.iter().zip(look::looks(self.figure)) {
                    (self.curve(curve, &look, &plot, sheet))
                }
            }
        }
    }

    fn vertical_ticks(&self, plot: &Plot) -> Markup {
        let mut grid = String::new();
        let mut texts = Vec::new();
        for (at, text) in &self.y.ticks {
            let Some(share) = self.y.share(*at) else {
                continue;
            };
            let y = plot.y(share);
            let _ = write!(
                grid,
                "M{} {}H{}",
                tenths(plot.left),
                tenths(y),
                tenths(plot.right)
            );
            texts.push((y, text));
        }
        html! {
            path.grid d=(grid) {}
            @for (y, text) in texts {
                text.end x=(tenths(plot.left - GAP_PX / 2.0)) y=(tenths(y + FONT_PX / 3.0)) { (text) }
            }
        }
    }

    fn horizontal_ticks(&self, plot: &Plot, sheet: &Sheet, has_labels: bool) -> Markup {
        let places = self.x.ticks.iter().filter_map(|(at, text)| {
            let (x, half) = (plot.x(self.x.share(*at)?), width_px(text) / 2.0);
            // Within the drawing, even where a tick stands near its end.
            let middle = x.min(sheet.width - half).max(half);
            Some(Label {
                x,
                middle,
                half,
                text,
            })
        });
        let labels = with_room(places.collect());
        let mut line = format!(
            "M{} {}H{}",
            tenths(plot.left),
            tenths(plot.bottom),
            tenths(plot.right)
        );
        for label in &labels {
            let _ = write!(line, "M{} {}v5", tenths(label.x), tenths(plot.bottom));
        }
        html! {
            path.axis d=(line) {}
            @for label in labels.iter().filter(|_| has_labels) {
                text.middle x=(tenths(label.middle)) y=(tenths(plot.below + LINE_PX + 3.0)) { (label.text) }
            }
        }
    }
}

/// Returns an axis for reading values off: its ends in the unit of its title, spacing and unit.
fn scale(axis: &DrawnAxis) -> String {
    // A thousandth of a pixel, and no more digits.
    let end = |value: f64| {
        let value: f64 = format!("{:.6e}", value / axis.prefix.divisor)
            .parse()
            .unwrap_or(value);
        format!("{value:e}")
    };
    let (from, to) = axis.range;
    format!(
        "{},{},{},\"{}\"",
        end(from),
        end(to),
        u8::from(axis.log),
        axis.prefix.symbol
    )
}

/// Writes a coordinate, in tenths of a pixel.
pub fn tenths(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}
