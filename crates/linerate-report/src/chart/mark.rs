//! The shapes that curves are told apart by: markers, dashes and hatches, in charts and legends.
//!
//! A page defines each marker and hatch once ([`definitions`]); every drawing refers to them, so a
//! point costs its coordinates and nothing else.

use maud::{Markup, html};

use super::look::{HUES, Look, MARKERS, TILES};
use linerate_model::analysis::Origin;

/// Side of a hatch's tile, in pixels.
const TILE_PX: u32 = 7;

/// Returns the markers and hatches that drawings refer to; stands once on a page with charts.
pub fn definitions() -> Markup {
    html! {
        svg.definitions width="0" height="0" aria-hidden="true" {
            defs {
                @for (at, outline) in MARKERS.into_iter().enumerate() {
                    @for origin in [Origin::Measured, Origin::Published] {
                        marker id=(marker_id(at, origin)) viewBox="-7 -7 14 14"
                            markerWidth="14" markerHeight="14" markerUnits="userSpaceOnUse"
                            style={ "color:" (super::look::color(origin, at)) } {
                            (marker(outline, origin))
                        }
                    }
                }
                @for (hatch, strokes) in TILES.into_iter().enumerate() {
                    pattern id={ "hatch-" (hatch) } width=(TILE_PX) height=(TILE_PX)
                        patternUnits="userSpaceOnUse" {
                        @if let Some(strokes) = strokes {
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
    look.marker
        .map(|_| format!("url(#{})", marker_id(look.rank % HUES, look.origin)))
}

/// Returns the reference to the hatch of a curve's bars; plain bars have none.
pub fn hatch_reference(look: &Look) -> Option<String> {
    let hatch = look.hatch();
    TILES[hatch].map(|_| format!("url(#hatch-{hatch})"))
}

fn marker_id(at: usize, origin: Origin) -> String {
    match origin {
        Origin::Published => format!("open-{at}"),
        Origin::Measured | Origin::Computed => format!("mark-{at}"),
    }
}

/// Draws a marker around 0, 0; that of a published curve is open.
pub fn marker(outline: &str, origin: Origin) -> Markup {
    let fill = match origin {
        Origin::Published => "var(--page)",
        Origin::Measured | Origin::Computed => "currentColor",
    };
    html! { path d=(outline) fill=(fill) stroke="currentColor" stroke-width="1.4" {} }
}
