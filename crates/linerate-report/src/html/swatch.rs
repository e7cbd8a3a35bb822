//! The small drawing before a curve's name in a legend; the same look as in the chart.

use linerate_model::analysis::Figure;
use maud::{Markup, html};

use crate::chart::look::Look;
use crate::chart::{self, mark};

/// Draws the look of a curve: its line and marker, or its bar.
pub fn swatch(look: &Look, figure: &Figure) -> Markup {
    let is_bar = chart::is_bar(figure, look.origin);
    let style = format!("color:{}", look.color);
    html! {
        svg width="30" height="14" aria-hidden="true" style=(style) {
            @if is_bar {
                rect x="8" width="14" height="14" fill="currentColor" {}
                @if let Some(hatch) = mark::hatch_reference(look) {
                    rect x="8" width="14" height="14" fill=(hatch) {}
                }
            } @else {
                path d="M0 7h15h15" stroke-dasharray=[look.dashes] marker-mid=[mark::marker_reference(look)] {}
            }
        }
    }
}
