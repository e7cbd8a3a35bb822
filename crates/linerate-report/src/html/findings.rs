//! Findings with what they rest on: a card each, where they belong.

use linerate_model::analysis::Analysis;
use linerate_model::finding::{Evidence, Finding, FindingKind};
use linerate_model::id::TrialId;
use maud::{Markup, html};

use super::anchors::Anchors;
use super::{coded, is_usable, table};
use crate::{number, wording};

/// Sets the findings that no chapter has.
pub fn without_chapter(analysis: &Analysis, anchors: &Anchors) -> Markup {
    let rest = anchors.findings_of(None);
    html! {
        @if is_usable(analysis) && !rest.is_empty() {
            section.chapter #findings {
                h2 { "Findings" }
                (cards(analysis, rest, anchors))
            }
        }
    }
}

/// Sets these findings, one card each.
pub fn cards(analysis: &Analysis, places: &[usize], anchors: &Anchors) -> Markup {
    html! {
        ol.cards {
            @for &at in places { (card(&analysis.findings[at], at, anchors)) }
        }
    }
}

fn card(finding: &Finding, at: usize, anchors: &Anchors) -> Markup {
    let tone = match finding.kind {
        FindingKind::Caution => "caution",
        FindingKind::Limiter(_) | FindingKind::Plateau | FindingKind::Effect => "strong",
        FindingKind::Loss => "neutral",
    };
    html! {
        li.card.(tone) id=(anchors.findings[at]) {
            p.kind {
                "Finding " (at + 1) ": " (wording::kind(finding.kind))
                @if let Some(from) = &finding.from { " (" (from) ")" }
            }
            h3 { (coded(&finding.claim)) }
            p { (coded(&finding.explanation)) }
            (evidence(finding, anchors))
        }
    }
}

fn evidence(finding: &Finding, anchors: &Anchors) -> Markup {
    let evidence = finding.evidence.as_slice();
    // What a capture shows comes from no trial.
    let of_trials = evidence.iter().any(|piece| !piece.trials.is_empty());
    let note = wording::interval_note(&finding.effect);
    let row = |piece: &Evidence| {
        html! {
            tr {
                th scope="row" { (piece.what) }
                td.number { (table::estimate(&piece.estimate)) }
                @if of_trials { td { (trial_links(&piece.trials, anchors)) } }
            }
        }
    };
    let rows = html! { @for piece in evidence { (row(piece)) } };
    let heads = &["Measured", "Value", "Trials"][..if of_trials { 3 } else { 2 }];
    html! {
        details {
            summary {
                "Evidence: effect " (number::estimate(&finding.effect).line()) ", " (note)
            }
            (table::grid("Evidence", heads, &[false, true, false], &rows))
            @if let FindingKind::Limiter(limiter) = finding.kind {
                p.soft.small { "What it means, how to confirm it and what to do: " code { (limiter.page()) } }
            }
        }
    }
}

/// Sets the reasons to trust a number less, a line each.
pub fn cautions(cautions: &[Finding], anchors: &Anchors) -> Markup {
    let rows = html! {
        @for caution in cautions {
            tr {
                th scope="row" { (coded(&caution.claim)) }
                td { (coded(&caution.explanation)) " " (trial_links(caution.evidence.as_slice().first().map_or(&[], |piece| &piece.trials), anchors)) }
            }
        }
    };
    table::grid("Cautions", &["Caution", "What it means"], &[], &rows)
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
