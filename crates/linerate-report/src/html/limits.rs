//! What limits each workload: a bar a workload against its ceiling; colours repeat what words say.

use linerate_model::analysis::Figure;
use linerate_model::answer::{Answer, Ceilings, LimitBar};
use linerate_model::limiter::{Layer, Limiter};
use maud::{Markup, html};

use crate::{number, wording};

/// Sets the bars of all workloads.
pub fn bars(answer: &Answer) -> Markup {
    let bars = &answer.bars;
    html! {
        @if !bars.is_empty() {
            section.limits {
                h2 { "What limits it" }
                ul.bars { @for bar in bars { (self::bar(bar)) } }
                p.soft.small { (wording::bars_left_out(answer)) (caption(bars)) }
            }
        }
    }
}

/// Says what a bar is, as far as there are such bars.
fn caption(bars: &[LimitBar]) -> String {
    let has = |what: Ceilings| {
        let mut ceilings = bars.iter().filter_map(|bar| bar.ceiling.as_ref());
        ceilings.any(|ceiling| ceiling.what == what)
    };
    let full = match (has(Ceilings::Wire), has(Ceilings::RoundTrip)) {
        (true, true) => {
            "A full bar is what the wire carries in frames of the measured size, and for requests what \
             the path's shortest round trip allows"
        }
        (true, false) => "A full bar is what the wire carries in frames of the measured size",
        (false, true) => "A full bar is what the path's shortest round trip allows",
        (false, false) if has(Ceilings::Path) => "A full bar is what the path was found to carry",
        (false, false) => "The maximum of these is not known",
    };
    let less = if has(Ceilings::Path) && (has(Ceilings::Wire) || has(Ceilings::RoundTrip)) {
        ", or what the path was found to carry, where that is less"
    } else {
        ""
    };
    let has_interval = |bar: &LimitBar| bar.ceiling.is_some() && bar.value.low.is_some();
    let line = if bars.iter().any(has_interval) {
        "; the line is the interval, of two values their range."
    } else {
        "."
    };
    let mut text = format!("{full}{less}{line}");
    if bars.iter().any(LimitBar::is_lower_bound) {
        text += " Grey: the load generator is the limit, so the host can do at least as much.";
    }
    text
}

fn bar(bar: &LimitBar) -> Markup {
    let text = number::estimate(&bar.value);
    html! {
        li.(tone(bar.limiter)) {
            span.what {
                @if !bar.experiment.is_empty() { b { (bar.experiment) } " " }
                (bar.workload)
            }
            (track(bar))
            span.reads {
                b { (text.value) }
                @if let Some(spread) = &text.spread { " " (spread) }
                @if text.unit != "/s" { " " }
                (text.unit)
                @if let Some(ceiling) = &bar.ceiling {
                    span.soft { " of " (number::display(ceiling.value, bar.value.unit)) }
                }
                span.limiter {
                    @match bar.limiter {
                        Some(limiter) => (wording::heading(limiter.title())),
                        None => "Limiter not known",
                    }
                    @if bar.is_lower_bound() { ": a lower bound" }
                    @if bar.cells > 1 { span.soft { ", and " (number::counted(bar.cells - 1, "more cell")) } }
                }
            }
        }
    }
}

/// Draws how much of the ceiling is reached, and the interval of that.
fn track(bar: &LimitBar) -> Markup {
    let percent = |value: f64| bar.share(value).map(|share| 100.0 * share);
    let Some(reached) = percent(bar.value.value) else {
        return html! { span.track.unknown aria-hidden="true" {} };
    };
    let ends = bar.value.low.zip(bar.value.high);
    let interval = ends.and_then(|(low, high)| percent(low.max(0.0)).zip(percent(high)));
    html! {
        span.track aria-hidden="true" {
            span.fill style={ "width:" (format!("{reached:.2}")) "%" } {}
            @if let Some((low, high)) = interval {
                span.interval style={
                    "left:" (format!("{low:.2}")) "%;width:" (format!("{:.2}", high - low)) "%"
                } {}
            }
        }
    }
}

/// Sets which limiters the strip below a chart shows, with their whole names.
pub fn legend(figure: &Figure) -> Markup {
    let points = figure.curves.iter().flat_map(|curve| &curve.points);
    let mut limiters: Vec<Limiter> = points.filter_map(|point| point.limiter).collect();
    limiters.sort();
    limiters.dedup();
    html! {
        @if !limiters.is_empty() {
            ul.legend.limiters {
                li { "Strip, limited by:" }
                @for limiter in limiters {
                    li.(tone(Some(limiter))) {
                        span.swatch aria-hidden="true" {}
                        span { b { (limiter.short()) } " " (limiter.title()) }
                    }
                }
            }
        }
    }
}

/// Returns the class that has the colour of a limiter: those of one layer share it.
pub fn tone(limiter: Option<Limiter>) -> &'static str {
    match limiter.map(Limiter::layer) {
        Some(Layer::Path) => "of-path",
        Some(Layer::Time) => "of-time",
        Some(Layer::Window) => "of-window",
        Some(Layer::Host) => "of-host",
        Some(Layer::Protocol) => "of-protocol",
        Some(Layer::Program) => "of-program",
        Some(Layer::Generator) => "of-generator",
        None => "of-unknown",
    }
}
