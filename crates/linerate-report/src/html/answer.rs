//! Page one: what a reader knows after a minute, on a screen, a phone or one sheet of paper.

use linerate_model::analysis::Analysis;
use linerate_model::answer::Tile;
use linerate_model::number::counted;
use maud::{Markup, html};

use super::anchors::Anchors;
use super::{coded, is_usable, limits, table};
use crate::wording::Advice;
use crate::{number, wording};

/// Findings and actions on page one; the chapters have the others.
const SHOWN_MAX: usize = 3;

/// Reasons to trust the numbers less that stand on page one.
const REASONS_SHOWN: usize = 2;

/// What says where a report comes from: labels of `about`, as far as there are such.
const PROVENANCE: [&str; 4] = ["Version", "Started", "Ended", "Asked"];

/// Sets page one.
pub fn page_one(analysis: &Analysis, anchors: &Anchors) -> Markup {
    let answer = &analysis.answer;
    html! {
        header.masthead #answer {
            (bar())
            h1 { (analysis.title) }
            (provenance(analysis))
            @if let Some(why) = &analysis.partial {
                p.banner role="note" { strong { "This report is partial." } " " (wording::stop(why)) }
            }
            @if !analysis.damage.is_empty() {
                p.banner role="note" {
                    strong { "The bundle is damaged." } " "
                    a href="#damage" { "What is missing from it" } "."
                }
            }
            @if !answer.verdict.is_empty() {
                p.verdict.refused[!is_usable(analysis)] { (coded(&wording::stop(&answer.verdict))) }
            }
            @if let Some(trust) = &analysis.trust {
                p.trust {
                    strong { "Trust: " (trust.level.title()) "." } " " (coded(&wording::trust_reasons(trust, REASONS_SHOWN)))
                    @if trust.reasons.len() > REASONS_SHOWN && !analysis.cautions.is_empty() {
                        " " a href="#cautions" { "See " (number::counted(analysis.cautions.len(), "caution")) } "."
                    }
                }
            }
            @if !answer.tiles.is_empty() {
                ul.tiles.refused[!is_usable(analysis)] {
                    @for one in &answer.tiles { (tile(one)) }
                }
            }
            // A page without an answer, of a capture, begins with its table.
            @if answer.verdict.is_empty() && !analysis.summary.rows.is_empty() {
                (table::table(&analysis.summary))
            }
            @if is_usable(analysis) {
                (limits::bars(answer))
                (findings_and_actions(analysis, anchors))
            } @else if !analysis.findings.is_empty() || !answer.bars.is_empty() {
                p.soft { "Findings, limiters and actions are left out: they would rest on these numbers." }
            }
            @if !is_usable(analysis) { (before_again(analysis)) }
            (contents(analysis, anchors))
        }
    }
}

/// Sets what to do before these numbers are measured again.
fn before_again(analysis: &Analysis) -> Markup {
    let all = wording::before_again(analysis);
    html! {
        @if !all.is_empty() {
            section.pair {
                div {
                    h2 { "Before you measure again" }
                    ol { @for one in all.iter().take(SHOWN_MAX) { li { (coded(one)) } } }
                    @if all.len() > SHOWN_MAX && !analysis.cautions.is_empty() { p.small { a href="#cautions" { "All cautions" } } }
                }
            }
        }
    }
}

/// The line above a page's heading.
pub fn bar() -> Markup {
    html! {
        div.topline {
            div.brand { (mark()) "linerate" }
            button #theme type="button" hidden { "Dark theme" }
        }
    }
}

/// The mark: a curve that rises to its plateau under a dotted limit.
fn mark() -> Markup {
    html! {
        svg width="26" height="20" viewBox="0 0 26 20" fill="none" stroke="currentColor"
            stroke-width="2.4" stroke-linecap="round" aria-hidden="true" {
            path d="M2 18C6 18 7 7 12 7h12" {}
            path d="M2 2h22" stroke-dasharray="0.1 4.4" {}
        }
    }
}

/// Sets in one line what was run, when and by which version; of other documents all that is told.
fn provenance(analysis: &Analysis) -> Markup {
    let told = |label: &str| {
        let mut pairs = analysis.about.iter();
        pairs
            .find(|(known, _)| known == label)
            .map(|(_, text)| text)
    };
    let [version, started, ended, asked] = PROVENANCE.map(told);
    if version.is_none() && asked.is_none() {
        return html! {
            @if !analysis.about.is_empty() {
                dl.about {
                    @for (label, text) in &analysis.about { div { dt { (label) } dd { (text) } } }
                }
            }
        };
    }
    html! {
        p.provenance {
            "linerate " (version.map_or("", String::as_str))
            @if let Some(started) = started {
                " · " (wording::moments(started, ended.map(String::as_str)))
            }
            @if let Some(asked) = asked { " · " code { (asked) } }
        }
    }
}

fn tile(tile: &Tile) -> Markup {
    let text = number::estimate(&tile.value);
    html! {
        li.tile {
            span.label { (tile.what) }
            span.reads {
                b { (text.value) }
                @if !text.unit.is_empty() {
                    @if text.unit != "/s" { "\u{a0}" }
                    b.unit { (text.unit) }
                }
                @if let Some(spread) = &text.spread { " " span.spread { (spread) } }
            }
            @if !tile.note.is_empty() { span.note { (tile.note) } }
        }
    }
}

fn findings_and_actions(analysis: &Analysis, anchors: &Anchors) -> Markup {
    let advice = wording::advice(analysis, SHOWN_MAX);
    // A capture's page tells what to do beside each finding.
    if analysis.trust.is_none() {
        return html! {};
    }
    html! {
        div.pair {
            @if !analysis.findings.is_empty() { section {
                h2 { "Findings" }
                ol {
                    @for (finding, id) in analysis.findings.iter().zip(&anchors.findings).take(SHOWN_MAX) {
                        li { a href={ "#" (id) } { (coded(&wording::claim(finding))) } }
                    }
                }
                @if analysis.findings.len() > SHOWN_MAX {
                    @let more = analysis.findings.len() - SHOWN_MAX;
                    p.small { a href={ "#" (anchors.findings[SHOWN_MAX]) } {
                        (counted(more, "more finding"))
                    } }
                }
            } }
            section {
                h2 { "What to do" }
                @if !advice.is_empty() {
                    ol { @for one in advice.iter().take(SHOWN_MAX) { (action(one, anchors)) } }
                }
                @match &analysis.next {
                    Some(next) => p.next { b { "Next: " } (coded(&wording::stop(next))) },
                    None if advice.is_empty() => p { (wording::nothing_to_change(analysis)) },
                    None => {}
                }
            }
        }
    }
}

/// Sets one thing to do: what, what it gains and costs, how to undo and to confirm it.
pub fn action(advice: &Advice<'_>, anchors: &Anchors) -> Markup {
    html! {
        li.action {
            strong { (coded(&advice.action)) }
            dl {
                dt { "Gain" } dd { (coded(advice.gain.unwrap_or("not measured"))) }
                @if let Some(cost) = &advice.cost { dt { "Cost" } dd { (coded(cost)) } }
                @if let Some(undo) = &advice.undo { dt { "Undo" } dd { (coded(undo)) } }
                @if let Some(confirm) = &advice.confirm {
                    dt { "Confirm" } dd { (confirm.before) code { (confirm.command) } (confirm.when) }
                }
                @if let Some(place) = advice.why {
                    dt { "Why" }
                    dd { a href={ "#" (anchors.findings[place]) } { "finding " (place + 1) } }
                }
            }
        }
    }
}

/// Sets where the rest is.
fn contents(analysis: &Analysis, anchors: &Anchors) -> Markup {
    let chapters = analysis.chapters.iter().zip(&anchors.chapters);
    let more = analysis.recommendations.len().saturating_sub(SHOWN_MAX);
    html! {
        nav #contents aria-label="Contents" {
            ol {
                @for (at, (chapter, id)) in chapters.enumerate() {
                    li { a href={ "#" (id) } { (wording::chapter_title(chapter, anchors.numbers[at])) } }
                }
                @if more > 0 {
                    li { a href="#actions" { (counted(more, "more action")) } }
                }
                li { a href="#evidence" { "Evidence" } }
                li { a href="#reading" { "How to read this" } }
            }
        }
    }
}
