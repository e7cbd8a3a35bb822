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

/// Number of hues that the style sheet defines for measured curves, and of markers and hatches.
pub const HUES: usize = 6;
/// Most points of a curve that are marked one by one; a longer series is a line.
pub const MARKERS_MAX: usize = 40;

/// Outlines of markers around 0, 0, in the order in which curves take them: circle, square, diamond,
/// triangle up, triangle down, cross.
pub const MARKERS: [&str; HUES] = [
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
    "M-3.8 -3.8h7.6v7.6h-7.6Z",
    "M0 -5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 -4.8L5 4H-5Z",
    "M0 4.8L-5 -4H5Z",
    "M-3 -4.8L0 -1.8L3 -4.8L4.8 -3L1.8 0L4.8 3L3 4.8L0 1.8L-3 4.8L-4.8 3L-1.8 0L-4.8 -3Z",
];

/// Strokes of the tiles that bars are hatched with, so that colour is not needed to tell them apart, in the
/// order in which curves take them: plain, rising, dots, falling, level, crossed. Neighbouring tiles
/// continue them.
pub const TILES: [Option<&str>; HUES] = [
    None,
    Some("M-1 8L8 -1M-1 1L1 -1M6 8L8 6"),
    Some("M2.5 3.5h2"),
    Some("M-1 -1L8 8M6 -1L8 1M-1 6L1 8"),
    Some("M0 3.5h7"),
    Some("M-1 8L8 -1M-1 -1L8 8"),
];

/// Dashes of a broken line, of one with long dashes, of a dotted one, of dots and dashes by turns, of two dots after each
/// dash, and of dots far apart.
const DASHED: &str = "6 4";
const LONG_DASHED: &str = "10 4";
const DOTTED: &str = "2 3";
const MIXED: &str = "6 3 2 3";
const TWO_DOTS: &str = "8 3 2 3 2 3";
const FAR_DOTS: &str = "2 7";

/// Dashes of computed curves, and of published ones, in the order in which curves take them.
const COMPUTED: [&str; 5] = [DOTTED, MIXED, LONG_DASHED, TWO_DOTS, FAR_DOTS];
const PUBLISHED: [&str; 2] = [DASHED, LONG_DASHED];

/// The look of one curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Where the curve comes from.
    pub origin: Origin,
    /// Its place among the curves of the same origin, from 0.
    pub rank: usize,
    /// The style property that holds its colour.
    pub color: String,
    /// The dashes of its line; none of a solid one.
    pub dashes: Option<&'static str>,
    /// The outline of its marker; none for computed curves and long series.
    pub marker: Option<&'static str>,
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
    let marker = (curve.points.len() <= MARKERS_MAX).then_some(MARKERS[rank % HUES]);
    let (dashes, marker) = match curve.origin {
        Origin::Measured => (None, marker),
        Origin::Computed => (Some(COMPUTED[rank % COMPUTED.len()]), None),
        Origin::Published => (Some(PUBLISHED[rank % PUBLISHED.len()]), marker),
    };
    Look {
        origin: curve.origin,
        rank,
        color: color(curve.origin, rank),
        dashes,
        marker,
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
    /// Returns the place in [`TILES`] of the hatching of the curve's bars; published ones are never plain.
    pub fn hatch(&self) -> usize {
        let shift = usize::from(self.origin == Origin::Published);
        (self.rank + shift) % HUES
    }
}
