//! The page: one HTML file that opens without a network.
//!
//! It is written with `maud`: the markup is checked when compiling and every value is escaped
//! unless marked otherwise, which a page that shows names from other machines needs. Only our own
//! style sheet and script are put in as they are.
//!
//! A content security policy forbids the page every request, so that a reader need not trust that
//! no part of it makes one.

use linerate_model::analysis::Analysis;
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

/// Identifiers inside the page.
mod anchors;
/// Hosts, what was not measured, damage, definitions.
mod appendix;
/// One chapter.
mod chapter;
/// Protocol counters.
mod counters;
/// Flame graphs.
mod flame;
/// Interrupts of network devices.
mod interrupts;
/// Head, headline numbers, findings, recommendations, contents.
mod summary;
/// The drawing before a curve's name in a legend.
mod swatch;
/// Tables.
mod table;

use crate::chart::mark;
use anchors::Anchors;

/// Nothing may be loaded; scripts, styles and images come from the file itself.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
    base-uri 'none'; form-action 'none'";

/// Returns the report as one HTML file without external references.
pub fn html(analysis: &Analysis) -> String {
    let anchors = Anchors::new(analysis);
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            (head(analysis))
            body {
                a.skip href="#summary" { "Skip to the summary" }
                @if analysis.chapters.iter().any(|chapter| !chapter.figures.is_empty()) {
                    (mark::definitions())
                }
                (summary::masthead(analysis))
                main { (sections(analysis, &anchors)) }
                footer {
                    "Made by linerate from stored data alone: the same bundle gives the same page."
                }
                script { (PreEscaped(include_str!("page.js"))) }
            }
        }
    };
    page.into_string()
}

fn head(analysis: &Analysis) -> Markup {
    markup! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(POLICY);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="generator" content="linerate";
            meta name="color-scheme" content="light dark";
            title { (analysis.title) }
            style { (PreEscaped(style())) }
        }
    }
}

fn sections(analysis: &Analysis, anchors: &Anchors) -> Markup {
    markup! {
        (summary::headline(analysis))
        (summary::findings(analysis, anchors))
        (summary::recommendations(analysis, anchors))
        (summary::contents(analysis, anchors))
        @for at in 0..analysis.chapters.len() { (chapter::chapter(analysis, at, anchors)) }
        (flame::flames(&analysis.flames))
        (appendix::hosts(&analysis.hosts))
        (interrupts::interrupts(&analysis.interrupts))
        (counters::counters(&analysis.counters))
        (appendix::left_out(analysis))
        (appendix::damage(&analysis.damage))
        (appendix::reading())
    }
}

/// Returns the style sheet: the dark colours hold where the system or the reader asks for them.
fn style() -> String {
    let (light, dark) = (include_str!("light.css"), include_str!("dark.css"));
    format!(
        ":root {{ {light} }}\n\
         @media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}\n\
         @media screen {{ :root[data-theme=dark] {{ {dark} }} }}\n{}",
        include_str!("page.css")
    )
}
