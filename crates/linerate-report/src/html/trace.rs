//! The page of captures: findings with display filters, connections, pictures.

use linerate_model::analysis::Figure;
use linerate_model::number::whole_percents;
use linerate_model::trace_page::{TracePage, TraceSection, TracedFinding};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{answer, chapter, coded, compact, head_of, lean, table};
use crate::chart::{look, mark};

/// Returns the page as one HTML file without external references.
pub fn trace_html(page: &TracePage) -> String {
    let has_figures = page
        .sections
        .iter()
        .any(|section| !section.figures.is_empty());
    let body = html! {
        (DOCTYPE)
        html lang="en" {
            (head_of(&page.title))
            body {
                a.skip href="#findings" { "Skip to the findings" }
                @if has_figures { (mark::definitions()) }
                header.masthead {
                    (answer::bar())
                    h1 { (page.title) }
                    @for warning in &page.warnings {
                        p.banner role="note" { (warning) }
                    }
                    dl.about {
                        @for (label, text) in &page.about {
                            div { dt { (label) } dd { (text) } }
                        }
                    }
                }
                main {
                    (findings(page))
                    @for table in &page.tables { section { h2 { (table.title) } div.named { (table::table(table)) } } }
                    @for section in &page.sections { (self::section(section)) }
                    (terms(page))
                }
                footer { "Made by linerate from the captures alone." }
                script { (PreEscaped(compact(include_str!("page.js")))) }
                @if has_figures { script { (PreEscaped(compact(include_str!("zoom.js")))) } }
            }
        }
    };
    lean(body.into_string())
}

fn findings(page: &TracePage) -> Markup {
    html! {
        section #findings {
            h2 { "Findings" }
            @if page.findings.is_empty() { p { "None." } }
            ol.cards {
                @for (at, finding) in page.findings.iter().enumerate() { (card(at + 1, finding)) }
            }
            @if let Some(note) = &page.note { p.soft { (note) } }
        }
    }
}

fn card(number: usize, finding: &TracedFinding) -> Markup {
    html! {
        li.card id={ "finding-" (number) } {
            p.kind { span.ordinal { (number) } @if let Some(cost) = &finding.cost { " · " (cost) } }
            h3 { (finding.claim) }
            p { (finding.explanation) }
            @for also in &finding.also { p.soft { "The same frames: " (also) } }
            dl {
                @if let Some(advice) = &finding.advice { dt { "What to do" } dd { (coded(advice)) } }
                @for (place, filter) in &finding.proofs {
                    dt { "Proof" }
                    dd { (place) @if !filter.is_empty() { pre { (filter) } } }
                }
                @if let Some(filter) = &finding.filter { dt { "All such frames" } dd { pre { (filter) } } }
            }
        }
    }
}

fn section(section: &TraceSection) -> Markup {
    html! {
        section.chapter id=(section.id) {
            h2 { (section.title) }
            @for line in &section.lines { p { (line) } }
            (shares(&section.shares))
            @if !section.figures.is_empty() {
                div.figures { @for figure in &section.figures { (self::figure(figure)) } }
            }
            @for table in &section.tables { (table::table(table)) }
        }
    }
}

/// Sets the shares of time as a bar, and as a list that says the same, in whole percents.
fn shares(shares: &[(String, f64)]) -> Markup {
    if shares.is_empty() {
        return html! {};
    }
    let color = |at: usize| match at {
        at if at < look::HUES => format!("var(--curve-{})", at + 1),
        _ => "var(--published)".to_owned(),
    };
    let all: Vec<f64> = shares.iter().map(|(_, share)| *share).collect();
    let whole = shares.iter().zip(whole_percents(&all));
    let shown: Vec<(&str, u32)> = whole
        .map(|((name, _), percent)| (&**name, percent))
        .filter(|(_, percent)| *percent > 0)
        .collect();
    html! {
        div.shares role="img" aria-label="What the time went into; the list below says the same" {
            @for (at, (_, percent)) in shown.iter().enumerate() {
                span style={ "flex-grow:" (percent) ";background:" (color(at)) } {}
            }
        }
        ul.legend {
            @for (at, (name, percent)) in shown.iter().enumerate() {
                li { span.hue style={ "background:" (color(at)) } {} span { (name) " " (percent) " %" } }
            }
        }
    }
}

fn figure(figure: &Figure) -> Markup {
    let label = format!("Chart: {}. {}", figure.title, figure.caption);
    chapter::figure(figure, &figure.id, &figure.title, &label)
}

fn terms(page: &TracePage) -> Markup {
    html! {
        @if !page.terms.is_empty() {
            section #terms {
                h2 { "Words" }
                dl.terms { @for (term, meaning) in &page.terms { dt { (term) } dd { (meaning) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_findings_number_does_not_run_into_its_cost() {
        let finding = TracedFinding {
            claim: "Something was lost".to_owned(),
            explanation: String::new(),
            also: Vec::new(),
            advice: None,
            cost: Some("790 ms".to_owned()),
            proofs: Vec::new(),
            filter: None,
        };
        let shown = card(1, &finding).into_string();
        assert!(shown.contains("1</span> · 790 ms"), "{shown}");
    }
}
