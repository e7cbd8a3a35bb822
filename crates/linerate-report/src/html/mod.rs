//! The page: one HTML file that opens without a network.
//!
//! It is written with `maud`: the markup is checked when compiling and every value is escaped
//! unless marked otherwise, which a page that shows names from other machines needs. Only our own
//! style sheet and script are put in as they are.
//!
//! A content security policy forbids the page every request, so that a reader need not trust that
//! no part of it makes one.
//!
//! The answer is page one; a chapter follows a chapter; what proves them is behind a click, and stays
//! there on paper unless it is asked for.

use linerate_model::analysis::Analysis;
use linerate_model::finding::TrustLevel;
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

/// Identifiers inside the page, and the numbers of chapters and figures.
mod anchors;
/// Page one: verdict, trust, headline numbers, what limits each workload, findings and actions.
mod answer;
/// One chapter.
mod chapter;
/// What is behind a click: all numbers, hosts, counters, what was not measured, definitions.
mod evidence;
/// Findings with what they rest on.
mod findings;
/// Flame graphs.
mod flame;
/// Hosts: one row a machine, and what differs.
mod hosts;
/// What limits each workload, as bars and as words.
pub mod limits;
/// The drawing before a curve's name in a legend.
mod swatch;
/// Tables.
mod table;
/// The page of captures.
mod trace;

pub use chapter::is_open;
pub use trace::trace_html;

use crate::chart::mark;
use anchors::Anchors;

/// Nothing may be loaded; scripts, styles and images come from the file itself.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
    base-uri 'none'; form-action 'none'";

/// How much of a report is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The answer and the chapters; what proves them is behind a click.
    Answer,
    /// Everything, for paper that has to hold all of it.
    Full,
}

/// Returns the report as one HTML file without external references.
pub fn html(analysis: &Analysis, extent: Extent) -> String {
    let stripped = (!is_usable(analysis)).then(|| without_limiters(analysis));
    let analysis = stripped.as_ref().unwrap_or(analysis);
    let anchors = Anchors::new(analysis);
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            (head_of(&analysis.title))
            body {
                a.skip href="#answer" { "Skip to the answer" }
                @if analysis.chapters.iter().any(|chapter| !chapter.figures.is_empty()) {
                    (mark::definitions())
                }
                (answer::page_one(analysis, &anchors))
                main {
                    (findings::without_chapter(analysis, &anchors))
                    @for at in 0..analysis.chapters.len() { (chapter::chapter(analysis, at, &anchors)) }
                    (evidence::damage(&analysis.damage))
                    (evidence::evidence(analysis, &anchors))
                }
                footer {
                    "Made by linerate from stored data alone: the same bundle gives the same page."
                }
                script { (PreEscaped(compact(include_str!("page.js")))) }
            }
        }
    };
    let page = lean(page.into_string());
    match extent {
        Extent::Answer => page,
        // Words from outside are escaped, so that this is an element of ours.
        Extent::Full => page.replace("<details", "<details open"),
    }
}

/// Leaves out the end tags of tables that HTML lets out: of a study's page they are a tenth.
fn lean(page: String) -> String {
    // Words from outside are escaped, so that these are elements of ours.
    ["</td>", "</th>", "</tr>", "</thead>", "</tbody>"]
        .iter()
        .fold(page, |page, tag| page.replace(tag, ""))
}

/// Tells whether the numbers may be drawn conclusions from.
pub fn is_usable(analysis: &Analysis) -> bool {
    let trust = analysis.trust.as_ref();
    trust.is_none_or(|trust| trust.level != TrustLevel::DoNotUse)
}

/// Returns the analysis with charts that name no limiter.
fn without_limiters(analysis: &Analysis) -> Analysis {
    let mut analysis = analysis.clone();
    for chapter in &mut analysis.chapters {
        let figures = chapter.figures.iter_mut().chain(&mut chapter.over_time);
        let curves = figures.flat_map(|figure| &mut figure.curves);
        for point in curves.flat_map(|curve| &mut curve.points) {
            point.limiter = None;
        }
    }
    analysis
}

/// Sets what stands between two backticks as code.
fn coded(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    // One that has no other is a sign like any.
    let paired = (parts.len() - 1) / 2 * 2;
    markup! {
        @for (at, part) in parts.iter().enumerate() {
            @if at % 2 == 1 && at < paired { code { (part) } }
            @else if at > paired { "`" (part) }
            @else { (part) }
        }
    }
}

fn head_of(title: &str) -> Markup {
    markup! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(POLICY);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="generator" content="linerate";
            meta name="color-scheme" content="light dark";
            title { (title) }
            style { (PreEscaped(style(title))) }
        }
    }
}

/// Returns the style sheet: the dark colours hold where the system or the reader asks for them.
fn style(title: &str) -> String {
    let (light, dark) = (include_str!("light.css"), include_str!("dark.css"));
    format!(
        ":root {{ {light} }}\n\
         @media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}\n\
         @media screen {{ :root[data-theme=dark] {{ {dark} }} }}\n{}\n\
         @page {{ @top-left {{ content: \"linerate: {}\"; }} }}\n",
        dense(&compact(include_str!("page.css"))),
        style_string(title),
    )
}

/// Returns a style sheet without the blanks that nobody but its writers needs.
fn dense(sheet: &str) -> String {
    const BLANKS: [(&str, &str); 6] = [
        (" {", "{"),
        ("{ ", "{"),
        (" }", "}"),
        ("; ", ";"),
        (": ", ":"),
        (", ", ","),
    ];
    let all = BLANKS.iter();
    all.fold(sheet.to_owned(), |sheet, (from, to)| {
        sheet.replace(from, to)
    })
}

/// Returns a file of ours without what only its writers read: indents, and comments that have lines of their own.
fn compact(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let is_comment =
        |line: &&str| line.starts_with("//") || line.starts_with("/*") && line.ends_with("*/");
    let kept = lines.filter(|line| !line.is_empty() && !is_comment(line));
    kept.collect::<Vec<_>>().join("\n")
}

/// Writes words from outside inside a string of a style sheet: all but letters, digits and a few signs
/// by their numbers, so that nothing ends the string, or the sheet.
fn style_string(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(HEAD_MAX) {
        if c.is_alphanumeric() || " .,:()-/".contains(c) {
            out.push(c)
        } else {
            out.push_str(&format!("\\{:x} ", u32::from(c)))
        }
    }
    out
}

/// Most characters of the title in the running head of a printed page.
const HEAD_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_outside_stay_inside_a_style_string() {
        assert_eq!(style_string("Study of a-1"), "Study of a-1");
        assert_eq!(style_string("\"</style>"), "\\22 \\3c /style\\3e ");
        assert_eq!(style_string("a\n\\"), "a\\a \\5c ");
    }
}
