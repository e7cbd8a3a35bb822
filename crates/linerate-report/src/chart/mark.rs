//! The shapes that curves are told apart by: markers, dashes and hatches, in charts and legends.
//!
//! A page defines each marker and hatch once ([`definitions`]); every drawing refers to them, so a
//! point costs its coordinates and nothing else.

use maud::{Markup, html};

use super::look::{Dash, HUES, Hatch, Look, Shape};
use linerate_model::analysis::Origin;

/// Side of a hatch's tile, in pixels.
const TILE_PX: u32 = 7;

/// Returns the markers and hatches that drawings refer to; stands once on a page with charts.
pub fn definitions() -> Markup {
    html! {
        svg.definitions width="0" height="0" aria-hidden="true" {
            defs {
                @for (at, shape) in Shape::ALL.into_iter().enumerate() {
                    @for origin in [Origin::Measured, Origin::Published] {
                        marker id=(marker_id(at, origin)) viewBox="-7 -7 14 14"
                            markerWidth="14" markerHeight="14" markerUnits="userSpaceOnUse"
                            style={ "color:" (super::look::color(origin, at)) } {
                            (marker(shape, origin))
                        }
                    }
                }
                @for hatch in Hatch::ALL {
                    pattern id=(hatch_id(hatch)) width=(TILE_PX) height=(TILE_PX)
                        patternUnits="userSpaceOnUse" {
                        @if let Some(strokes) = tile(hatch) {
                            path.hatch d=(strokes) {}
                        }
                    }
                }
            }
        }
    }
}

/// Returns the reference to the marker of a curve that has one.
pub fn marker_reference(look: &Look) -> Option<String> {
    look.shape
        .map(|_| format!("url(#{})", marker_id(look.rank % HUES, look.origin)))
}

/// Returns the reference to the hatch of a curve's bars; plain bars have none.
pub fn hatch_reference(look: &Look) -> Option<String> {
    let hatch = look.hatch();
    tile(hatch).map(|_| format!("url(#{})", hatch_id(hatch)))
}

fn marker_id(at: usize, origin: Origin) -> String {
    match origin {
        Origin::Published => format!("open-{at}"),
        Origin::Measured | Origin::Computed => format!("mark-{at}"),
    }
}

fn hatch_id(hatch: Hatch) -> String {
    format!("hatch-{}", hatch as usize)
}

/// Draws a marker around 0, 0; that of a published curve is open.
pub fn marker(shape: Shape, origin: Origin) -> Markup {
    let outline = match shape {
        Shape::Circle => "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
        Shape::Square => "M-3.8 -3.8h7.6v7.6h-7.6Z",
        Shape::Diamond => "M0 -5.2L5.2 0L0 5.2L-5.2 0Z",
        Shape::TriangleUp => "M0 -4.8L5 4H-5Z",
        Shape::TriangleDown => "M0 4.8L-5 -4H5Z",
        Shape::Cross => {
            "M-3 -4.8L0 -1.8L3 -4.8L4.8 -3L1.8 0L4.8 3L3 4.8L0 1.8L-3 4.8L-4.8 3L-1.8 0L-4.8 -3Z"
        }
    };
    let fill = match origin {
        Origin::Published => "var(--page)",
        Origin::Measured | Origin::Computed => "currentColor",
    };
    html! { path d=(outline) fill=(fill) stroke="currentColor" stroke-width="1.4" {} }
}

/// Returns the dashes of a line, none for a solid one.
pub fn dashes(dash: Dash) -> Option<&'static str> {
    match dash {
        Dash::Solid => None,
        Dash::Dashed => Some("6 4"),
        Dash::LongDashed => Some("10 4"),
        Dash::Dotted => Some("2 3"),
        Dash::Mixed => Some("6 3 2 3"),
    }
}

/// Returns the strokes of a hatch's tile; neighbouring tiles continue them.
fn tile(hatch: Hatch) -> Option<&'static str> {
    match hatch {
        Hatch::Plain => None,
        Hatch::Rising => Some("M-1 8L8 -1M-1 1L1 -1M6 8L8 6"),
        Hatch::Dots => Some("M2.5 3.5h2"),
        Hatch::Falling => Some("M-1 -1L8 8M6 -1L8 1M-1 6L1 8"),
        Hatch::Level => Some("M0 3.5h7"),
        Hatch::Crossed => Some("M-1 8L8 -1M-1 -1L8 8"),
    }
}
