//! A figure as the data, layout and configuration that plotly draws.
//!
//! The page's own script hands these to `Plotly.newPlot` and fills in the colours of the theme;
//! `Plot::to_inline_html` is not used, since it would fix the colours when the file is written
//! and could not redraw for the dark theme or for paper.

use linerate_model::analysis::{Curve, Figure, Origin, Point, Position, Scale};
use plotly::common::{
    Anchor, ErrorData, ErrorType, Font, Label, Line, Marker, MarkerSymbol, Mode, Pad, Pattern,
    Reference, Title,
};
use plotly::configuration::{ImageButtonFormats, ModeBarButtonName, ToImageButtonOptions};
use plotly::layout::{BarMode, HoverMode, Margin, ModeBar};
use plotly::{Bar, Configuration, Layout, Plot, Scatter, Trace};
use serde_json::Value;

/// Axes: range, ticks and the prefix of their unit.
mod axis;
/// How a curve looks.
pub mod look;

use crate::{number, points, wording};
use axis::DrawnAxis;
use look::Look;

/// Longest line of a category's name under the axis, in characters.
const CATEGORY_LINE_MAX: usize = 18;

/// Longest line of a note shown on hovering, in characters.
const HOVER_LINE_MAX: usize = 48;

/// Size of text in charts, in pixels.
const FONT_PX: usize = 13;

/// No colour: the page's own shows.
const CLEAR: &str = "rgba(0,0,0,0)";

/// Size of markers, in pixels.
const MARKER_PX: usize = 8;

/// Returns the script that draws charts, with its `<script>` element.
///
/// The crate hands out plotly together with MathJax, which weighs 2 MB and which no text of ours
/// needs: only the first element is kept.
pub fn script() -> String {
    let mut sources = Plot::offline_js_sources();
    let end = sources
        .find("</script>")
        .map_or(sources.len(), |at| at + "</script>".len());
    sources.truncate(end);
    assert!(
        sources.contains("plotly.js v"),
        "the first embedded script is plotly"
    );
    sources
}

/// Returns the figure as JSON that is safe inside a `<script>` element.
pub fn json(figure: &Figure, file_name: &str) -> String {
    plot(figure, file_name)
        .to_json()
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

fn plot(figure: &Figure, file_name: &str) -> Plot {
    let x = axis::horizontal(figure);
    let y = axis::vertical(figure);
    let mut plot = Plot::new();
    for (curve, look) in figure.curves.iter().zip(look::looks(figure)) {
        plot.add_trace(trace(
            figure,
            curve,
            &look,
            (x.prefix.divisor, y.prefix.divisor),
        ));
    }
    plot.set_layout(layout(x, y));
    plot.set_configuration(configuration(file_name));
    plot
}

fn trace(figure: &Figure, curve: &Curve, look: &Look, divisors: (f64, f64)) -> Box<dyn Trace> {
    let points = &curve.points;
    let places: Vec<Value> = points
        .iter()
        .map(|point| place(&point.x, figure, divisors.0))
        .collect();
    let heights: Vec<f64> = points.iter().map(|point| point.y / divisors.1).collect();
    let texts: Vec<String> = points
        .iter()
        .map(|point| hover(figure, curve, point))
        .collect();
    // A bar must start at zero, which a logarithmic axis does not have.
    let bars = figure.x.scale == Scale::Category && figure.y.scale != Scale::Log;
    if bars && look.origin != Origin::Computed {
        let errors = error_bars(curve, "var(--ink)".to_owned(), divisors.1);
        return bar(Bar::new(places, heights), look)
            .name(plain(&curve.name))
            .error_y(errors)
            .hover_text_array(texts)
            .hover_template("%{hovertext}<extra></extra>");
    }
    let errors = error_bars(curve, look.color.clone(), divisors.1);
    line(Scatter::new(places, heights), points.len(), look)
        .name(plain(&curve.name))
        .error_y(errors)
        .hover_text_array(texts)
        .hover_template("%{hovertext}<extra></extra>")
}

/// Returns a position as plotly takes it: a category's words, or a number; `null` draws nothing.
fn place(position: &Position, figure: &Figure, divisor: f64) -> Value {
    match position {
        _ if figure.x.scale == Scale::Category => {
            Value::from(category(&points::position(position, figure)))
        }
        Position::Number(number) => Value::from(number / divisor),
        Position::Name(_) => Value::Null,
    }
}

fn line(trace: Box<Scatter<Value, f64>>, points: usize, look: &Look) -> Box<Scatter<Value, f64>> {
    let color = look.color.clone();
    let stroke = Line::new()
        .color(color.clone())
        .width(2.0)
        .dash(look.dash_type());
    let trace = trace.line(stroke);
    match look.symbol() {
        Some(symbol) => {
            let marker = Marker::new().symbol(symbol).size(MARKER_PX).color(color);
            trace.mode(Mode::LinesMarkers).marker(marker)
        }
        // A limit that was computed at one place only would not show as a line.
        None if points < 2 => {
            let stroke = Line::new().color(color.clone()).width(2.0);
            let marker = Marker::new()
                .symbol(MarkerSymbol::LineEWOpen)
                .size(3 * MARKER_PX);
            trace
                .mode(Mode::Markers)
                .marker(marker.color(color).line(stroke))
        }
        None => trace.mode(Mode::Lines),
    }
}

fn bar(trace: Box<Bar<Value, f64>>, look: &Look) -> Box<Bar<Value, f64>> {
    let pattern = Pattern::new()
        .shape(look.pattern())
        .background_color(look.color.clone())
        .foreground_color("var(--page)")
        .size(7.0)
        .solidity(0.25);
    trace.marker(Marker::new().color(look.color.clone()).pattern(pattern))
}

/// Returns the intervals as bars; a point without one gets `null`, which draws nothing.
fn error_bars(curve: &Curve, color: String, divisor: f64) -> ErrorData {
    let reach = |end: Option<f64>, y: f64| end.map_or(f64::NAN, |end| (end - y).abs() / divisor);
    let above = curve
        .points
        .iter()
        .map(|point| reach(point.high, point.y))
        .collect();
    let below = curve
        .points
        .iter()
        .map(|point| reach(point.low, point.y))
        .collect();
    ErrorData::new(ErrorType::Data)
        .symmetric(false)
        .array(above)
        .array_minus(below)
        .color(color)
        .thickness(1.4)
        .width(4)
}

fn hover(figure: &Figure, curve: &Curve, point: &Point) -> String {
    let bounds = point.low.zip(point.high);
    let value = number::value_with_bounds(point.y, bounds, figure.y.unit).line();
    let name = plain(&wording::curve_name(&curve.name, curve.origin));
    let place = plain(&points::position(&point.x, figure));
    let mut text = format!("<b>{}</b><br>{place}<br>{name}", plain(&value));
    if !point.note.is_empty() {
        text.push_str("<br>");
        text.push_str(&broken(&plain(&point.note), HOVER_LINE_MAX));
    }
    text
}

fn layout(x: DrawnAxis, y: DrawnAxis) -> Layout {
    // The vertical axis is labelled above the plot, level, where a phone has room for it.
    let title = Title::with_text(plain(&y.title))
        .font(Font::new().size(FONT_PX))
        .x_ref(Reference::Container)
        .x(0.0)
        .x_anchor(Anchor::Left)
        .y_ref(Reference::Container)
        .y(1.0)
        .y_anchor(Anchor::Top)
        .pad(Pad::new(6, 0, 2));
    let label = Label::new()
        .background_color("var(--raised)")
        .border_color("var(--axis)")
        .font(
            Font::new()
                .color("var(--ink)")
                .family("var(--sans)")
                .size(FONT_PX),
        );
    let mode_bar = ModeBar::new()
        .background_color(CLEAR)
        .color("var(--axis)")
        .active_color("var(--ink)");
    Layout::new()
        .title(title)
        .show_legend(false)
        .auto_size(true)
        .bar_mode(BarMode::Group)
        .bar_gap(0.3)
        .bar_group_gap(0.08)
        .font(
            Font::new()
                .family("var(--sans)")
                .size(FONT_PX)
                .color("var(--ink-soft)"),
        )
        .paper_background_color(CLEAR)
        .plot_background_color(CLEAR)
        .margin(Margin::new().left(48).right(18).top(38).bottom(44))
        .separators(format!(".{}", number::GROUP_SPACE))
        .mode_bar(mode_bar)
        .hover_mode(HoverMode::Closest)
        .hover_label(label)
        .x_axis(x.axis)
        .y_axis(y.axis)
}

fn configuration(file_name: &str) -> Configuration {
    Configuration::new()
        .responsive(true)
        .display_logo(false)
        .typeset_math(false)
        .mode_bar_buttons_to_remove(vec![
            ModeBarButtonName::Select2d,
            ModeBarButtonName::Lasso2d,
            ModeBarButtonName::AutoScale2d,
        ])
        .to_image_button_options(
            ToImageButtonOptions::new()
                .format(ImageButtonFormats::Svg)
                .filename(file_name),
        )
}

/// Writes a category's name in short lines, as it stands under an axis.
fn category(name: &str) -> String {
    broken(&plain(name), CATEGORY_LINE_MAX)
}

/// Breaks words into lines of about `width` characters with plotly's `<br>`.
fn broken(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            out.push_str("<br>");
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out
}

/// Writes text so that plotly, which reads a few HTML tags in labels, shows it as it is.
fn plain(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plotly_is_embedded() {
        let script = script();
        assert_eq!(script.matches("<script").count(), 1);
        assert_eq!(script.matches("</script").count(), 1);
        assert!(script.len() < 5_000_000, "{} bytes", script.len());
    }

    #[test]
    fn categories_break_between_words() {
        assert_eq!(
            category("Nagle on, delayed ACK off"),
            "Nagle on, delayed<br>ACK off"
        );
        assert_eq!(category("<b>"), "&lt;b&gt;");
    }
}
