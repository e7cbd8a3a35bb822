//! The small drawing before a curve's name in a legend; the same look as in the chart.

use linerate_model::analysis::{Figure, Origin, Scale};
use maud::{Markup, html};

use crate::chart::look::{Dash, Hatch, Look, Shape};

/// Draws the look of a curve: its line and marker, or its bar.
pub fn swatch(look: &Look, figure: &Figure) -> Markup {
    let is_bar = figure.x.scale == Scale::Category
        && figure.y.scale != Scale::Log
        && look.origin != Origin::Computed;
    let style = format!("color: {}", look.color);
    html! {
        svg width="30" height="14" viewBox="0 0 30 14" aria-hidden="true" style=(style) {
            @if is_bar { (bar(look)) } @else { (line(look)) }
        }
    }
}

fn line(look: &Look) -> Markup {
    let dashes = match look.dash {
        Dash::Solid => None,
        Dash::Dashed => Some("6 4"),
        Dash::LongDashed => Some("10 4"),
        Dash::Dotted => Some("2 3"),
        Dash::Mixed => Some("6 3 2 3"),
    };
    html! {
        path d="M0 7h30" stroke="currentColor" stroke-width="2" stroke-dasharray=[dashes] {}
        @if let Some(shape) = look.shape { (marker(shape, look.origin)) }
    }
}

fn marker(shape: Shape, origin: Origin) -> Markup {
    let outline = match shape {
        Shape::Circle => "M11 7a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
        Shape::Square => "M11.2 3.2h7.6v7.6h-7.6Z",
        Shape::Diamond => "M15 1.8L20.2 7L15 12.2L9.8 7Z",
        Shape::TriangleUp => "M15 2.2L20 11H10Z",
        Shape::TriangleDown => "M15 11.8L10 3H20Z",
        Shape::Cross => {
            "M12 2.2L15 5.2L18 2.2L19.8 4L16.8 7L19.8 10L18 11.8L15 8.8L12 11.8L10.2 10L13.2 7L10.2 4Z"
        }
    };
    let fill = match origin {
        Origin::Published => "var(--page)",
        Origin::Measured | Origin::Computed => "currentColor",
    };
    html! { path d=(outline) fill=(fill) stroke="currentColor" stroke-width="1.4" {} }
}

fn bar(look: &Look) -> Markup {
    let strokes = match look.hatch() {
        Hatch::Plain => None,
        Hatch::Rising => Some("M8 7L15 0M8 14L22 0M15 14L22 7"),
        Hatch::Dots => Some("M11 4h1.5M17 4h1.5M11 10h1.5M17 10h1.5"),
        Hatch::Falling => Some("M15 0L22 7M8 0L22 14M8 7L15 14"),
        Hatch::Level => Some("M8 3.5h14M8 7h14M8 10.5h14"),
        Hatch::Crossed => Some("M8 0L22 14M8 14L22 0M15 0L22 7L15 14L8 7Z"),
    };
    html! {
        rect x="8" width="14" height="14" fill="currentColor" {}
        @if let Some(strokes) = strokes {
            path d=(strokes) fill="none" stroke="var(--page)" stroke-width="1.5" {}
        }
    }
}
