//! How a curve looks, so that its origin and its name can be told without colour.
//!
//! 1. Measured: solid line, filled marker, one of six hues.
//! 2. Computed: dotted line without markers, in the colour of text; further ones dot and dash.
//! 3. Published: dashed grey line, open marker.
//!
//! Within one origin, curves differ by marker shape or dash pattern as well as by hue. Colours
//! are names of the page's style properties (`var(--curve-1)`), because the same chart is drawn
//! on light, dark and paper.

use linerate_model::analysis::{Curve, Figure, Origin};

/// Number of hues that the style sheet defines for measured curves.
pub const HUES: usize = 6;

/// Most points of a curve that are marked one by one; a longer series is a line.
const MARKERS_MAX: usize = 40;

/// The shape of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Circle,
    Square,
    Diamond,
    TriangleUp,
    TriangleDown,
    Cross,
}

impl Shape {
    /// All shapes, in the order in which curves take them.
    pub const ALL: [Shape; HUES] = [
        Shape::Circle,
        Shape::Square,
        Shape::Diamond,
        Shape::TriangleUp,
        Shape::TriangleDown,
        Shape::Cross,
    ];
}

/// How a line is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dash {
    Solid,
    Dashed,
    LongDashed,
    Dotted,
    /// Dots and dashes by turns.
    Mixed,
}

/// How the bars of a curve are hatched, so that colour is not needed to tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hatch {
    Plain,
    Rising,
    Dots,
    Falling,
    Level,
    Crossed,
}

impl Hatch {
    /// All hatches, in the order in which curves take them.
    pub const ALL: [Hatch; HUES] = [
        Hatch::Plain,
        Hatch::Rising,
        Hatch::Dots,
        Hatch::Falling,
        Hatch::Level,
        Hatch::Crossed,
    ];
}

/// The look of one curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Where the curve comes from.
    pub origin: Origin,
    /// Its place among the curves of the same origin, from 0.
    pub rank: usize,
    /// The style property that holds its colour.
    pub color: String,
    /// How its line is broken.
    pub dash: Dash,
    /// Its marker; none for computed curves and long series.
    pub shape: Option<Shape>,
}

/// Returns the looks of the figure's curves, in their order.
pub fn looks(figure: &Figure) -> Vec<Look> {
    let rank_of = |at: usize, origin: Origin| {
        let before = figure.curves.iter().take(at);
        before.filter(|curve| curve.origin == origin).count()
    };
    let look_at = |(at, curve): (usize, &Curve)| look(curve, rank_of(at, curve.origin));
    figure.curves.iter().enumerate().map(look_at).collect()
}

fn look(curve: &Curve, rank: usize) -> Look {
    let shape = (curve.points.len() <= MARKERS_MAX).then_some(Shape::ALL[rank % HUES]);
    const COMPUTED: [Dash; 3] = [Dash::Dotted, Dash::Mixed, Dash::LongDashed];
    const PUBLISHED: [Dash; 2] = [Dash::Dashed, Dash::LongDashed];
    let (dash, shape) = match curve.origin {
        Origin::Measured => (Dash::Solid, shape),
        Origin::Computed => (COMPUTED[rank % 3], None),
        Origin::Published => (PUBLISHED[rank % 2], shape),
    };
    Look {
        origin: curve.origin,
        rank,
        color: color(curve.origin, rank),
        dash,
        shape,
    }
}

/// Returns the style property that holds the colour of the `rank`-th curve of an origin.
pub fn color(origin: Origin, rank: usize) -> String {
    match origin {
        Origin::Measured => format!("var(--curve-{})", rank % HUES + 1),
        Origin::Computed => "var(--computed)".to_owned(),
        Origin::Published => "var(--published)".to_owned(),
    }
}

impl Look {
    /// Returns the hatching of the curve's bars; published ones are never plain.
    pub fn hatch(&self) -> Hatch {
        let shift = usize::from(self.origin == Origin::Published);
        Hatch::ALL[(self.rank + shift) % HUES]
    }
}
