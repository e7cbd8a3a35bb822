//! What a reader sees first: head, headline numbers, findings, recommendations, contents.

use linerate_model::analysis::Analysis;
use linerate_model::finding::{Evidence, Finding, FindingKind, Recommendation};
use linerate_model::id::TrialId;
use maud::{Markup, html};

use super::anchors::Anchors;
use super::table;
use crate::{number, wording};

/// Findings whose evidence is open from the start; that of the others takes a click.
const EVIDENCE_OPEN: usize = 5;

/// Sets title, circumstances and, if the numbers are partial, the reason.
pub fn masthead(analysis: &Analysis) -> Markup {
    html! {
        header.masthead {
            div.bar {
                div.brand { (mark()) "linerate" }
                button #theme type="button" hidden { "Dark theme" }
            }
            h1 { (analysis.title) }
            @if let Some(why) = &analysis.partial {
                p.banner role="note" { strong { "This report is partial." } " " (why) }
            }
            @if !analysis.damage.is_empty() {
                p.banner role="note" {
                    strong { "The bundle is damaged." } " "
                    a href="#damage" { "What is missing from it" } "."
                }
            }
            @if let Some(trust) = &analysis.trust {
                p.banner role="note" {
                    strong { "Trust: " (trust.level.title()) "." } " " (wording::trust_reasons(trust))
                }
            }
            dl.about {
                @for (label, text) in &analysis.about {
                    div { dt { (label) } dd { (text) } }
                }
            }
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

/// Sets the table of headline numbers.
pub fn headline(analysis: &Analysis) -> Markup {
    html! {
        section #summary {
            h2 { "Summary" }
            @if analysis.summary.rows.is_empty() {
                p.soft { "No valid measurement, so there is no headline number." }
            } @else {
                div.headline { (table::table(&analysis.summary)) }
            }
        }
    }
}

/// Sets the findings, one card each.
pub fn findings(analysis: &Analysis, anchors: &Anchors) -> Markup {
    html! {
        section #findings {
            h2 { "Findings" }
            @if analysis.findings.is_empty() {
                p.soft { "Nothing was found that the measurements support." }
            }
            ol.cards {
                @for (at, finding) in analysis.findings.iter().enumerate() {
                    (card(finding, at, anchors))
                }
            }
            (cautions(&analysis.cautions, anchors))
        }
    }
}

/// Sets the reasons to trust a number less, a line each, closed.
fn cautions(cautions: &[Finding], anchors: &Anchors) -> Markup {
    let body = html! {
        table {
            thead { tr { th scope="col" { "Caution" } th scope="col" { "What it means" } } }
            tbody {
                @for caution in cautions {
                    tr {
                        th scope="row" { (caution.claim) }
                        td { (caution.explanation) " " (trial_links(caution.evidence.as_slice().first().map_or(&[], |piece| &piece.trials), anchors)) }
                    }
                }
            }
        }
    };
    html! {
        @if !cautions.is_empty() {
            details #cautions {
                summary { "Cautions (" (cautions.len()) ")" }
                (table::scrolling("Cautions", &body))
            }
        }
    }
}

fn card(finding: &Finding, at: usize, anchors: &Anchors) -> Markup {
    let tone = match finding.kind {
        FindingKind::Caution => "caution",
        FindingKind::Limiter(_) | FindingKind::Plateau | FindingKind::Effect => "strong",
        FindingKind::Derived | FindingKind::Absence => "neutral",
    };
    let effect = number::estimate(&finding.effect);
    html! {
        li.card.(tone) id=(anchors.findings[at]) {
            p.kind { span.ordinal { (at + 1) } (wording::kind(finding.kind)) }
            h3 { (finding.claim) }
            div.body {
                p { (finding.explanation) }
                p.effect {
                    span.value {
                        (effect.value)
                        @if let Some(spread) = &effect.spread { " " span.spread { (spread) } }
                        @if !effect.unit.is_empty() { " " span.unit { (effect.unit) } }
                    }
                    span.note { (wording::interval_note(&finding.effect)) }
                }
            }
            (evidence(finding.evidence.as_slice(), at < EVIDENCE_OPEN, anchors))
        }
    }
}

fn evidence(evidence: &[Evidence], open: bool, anchors: &Anchors) -> Markup {
    // What a capture shows comes from no trial.
    let of_trials = evidence.iter().any(|piece| !piece.trials.is_empty());
    let body = html! {
        table {
            thead { tr {
                th scope="col" { "Measured" }
                th.number scope="col" { "Value" }
                @if of_trials { th scope="col" { "Trials" } }
            } }
            tbody {
                @for piece in evidence {
                    tr {
                        th scope="row" { (piece.what) }
                        td.number { (table::estimate(&piece.estimate)) }
                        @if of_trials { td { (trial_links(&piece.trials, anchors)) } }
                    }
                }
            }
        }
    };
    html! {
        details open[open] {
            summary { "Evidence (" (evidence.len()) ")" }
            (table::scrolling("Evidence", &body))
        }
    }
}

/// Sets trial numbers as links, runs of neighbours as a link to the first of them.
fn trial_links(trials: &[TrialId], anchors: &Anchors) -> Markup {
    html! {
        @for (at, run) in wording::trial_runs(trials).iter().enumerate() {
            @if at > 0 { ", " }
            @match anchors.trial(run.first) {
                Some(id) => a.nowrap href={ "#" (id) } { (run.text) },
                None => span.nowrap { (run.text) },
            }
        }
    }
}

/// Sets the recommendations, each with what it should change and how to confirm it.
pub fn recommendations(analysis: &Analysis, anchors: &Anchors) -> Markup {
    html! {
        section #recommendations {
            h2 { "Recommendations" }
            @if analysis.recommendations.is_empty() {
                p.soft { "None follows from what was measured." }
            }
            ol.cards {
                @for item in &analysis.recommendations { (recommendation(item, anchors)) }
            }
        }
    }
}

fn recommendation(item: &Recommendation, anchors: &Anchors) -> Markup {
    html! {
        li.card {
            h3 { (item.action) }
            dl {
                dt { "Measured gain" } dd { (item.predicted) }
                @if !item.cost.is_empty() { dt { "Cost" } dd { (item.cost) } }
                @if !item.undo.is_empty() { dt { "Undo" } dd { (item.undo) } }
                dt { "Confirm with" } dd { pre { code { (item.confirm) } } }
                @if let Some((id, place)) = anchors.finding(&item.finding) {
                    dt { "Follows from" }
                    dd.small { a href={ "#" (id) } { "finding " (place + 1) } }
                }
            }
        }
    }
}

/// Sets the list of all sections.
pub fn contents(analysis: &Analysis, anchors: &Anchors) -> Markup {
    let chapters = analysis.chapters.iter().zip(&anchors.chapters);
    html! {
        nav #contents aria-label="Contents" {
            h2 { "Contents" }
            ol {
                li { a href="#summary" { "Summary" } }
                li { a href="#findings" { "Findings" } }
                li { a href="#recommendations" { "Recommendations" } }
                @for (chapter, id) in chapters {
                    li { a href={ "#" (id) } { (wording::chapter_title(chapter)) } }
                }
                @if !analysis.flames.is_empty() { li { a href="#flames" { "What the CPUs did" } } }
                @if !analysis.hosts.is_empty() { li { a href="#hosts" { "Hosts" } } }
                @if !analysis.interrupts.is_empty() {
                    li { a href="#interrupts" { "Interrupts of network devices" } }
                }
                @if !analysis.counters.is_empty() {
                    li { a href="#counters" { "Protocol counters" } }
                }
                li { a href="#left-out" { "Not measured" } }
                @if !analysis.damage.is_empty() { li { a href="#damage" { "Damage" } } }
                li { a href="#reading" { "How to read this" } }
            }
        }
    }
}
