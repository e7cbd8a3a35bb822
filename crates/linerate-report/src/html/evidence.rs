//! What proves the answer, behind a click: all numbers, cautions, hosts, counters, what was not
//! measured, how to read it.

use linerate_model::analysis::{Analysis, HostCounters, HostInterrupts};
use maud::{Markup, html};

use super::anchors::Anchors;
use super::{answer, findings, flame, hosts, is_usable, table};
use crate::wording;

/// Sets everything that is behind a click at the end of the page.
pub fn evidence(analysis: &Analysis, anchors: &Anchors) -> Markup {
    let has_answer = !analysis.answer.verdict.is_empty();
    let count = |title: &str, count: usize| format!("{title} ({count})");
    let left = analysis.recommendations.len();
    html! {
        section.chapter #evidence {
            h2 { "Evidence" }
            @if left > 0 && is_usable(analysis) {
                (fold("actions", &count("All actions", left), &html! {
                    ol { @for one in wording::advice(analysis, 0) { (answer::action(&one, anchors)) } }
                }))
            }
            @if has_answer && !analysis.summary.rows.is_empty() {
                (fold("summary", &count("All headline numbers", analysis.summary.rows.len()), &table::table(&analysis.summary)))
            }
            @if !analysis.cautions.is_empty() {
                (fold("cautions", &count("Cautions", analysis.cautions.len()), &findings::cautions(&analysis.cautions, anchors)))
            }
            @if !analysis.left_out.is_empty() {
                (fold("left-out", &count("Not measured", analysis.left_out.len()), &left_out(analysis, anchors)))
            }
            @if has_answer && !analysis.about.is_empty() {
                (fold("about", "How it was run", &table::scrolling("How it was run", &hosts::pairs(["What", "Value"], &analysis.about))))
            }
            @if !analysis.hosts.is_empty() {
                (fold("hosts", &count("Hosts", analysis.hosts.len()), &hosts::hosts(&analysis.hosts)))
            }
            @if !analysis.flames.is_empty() {
                (fold("flames", &count("What the CPUs did: flame graphs", analysis.flames.len()), &flame::flames(&analysis.flames)))
            }
            (counters(&analysis.counters))
            @if !analysis.interrupts.is_empty() {
                (fold("interrupts", "Interrupts of network devices", &interrupts(&analysis.interrupts)))
            }
            (fold("reading", "How to read this", &html! {
                dl.terms { @for (term, meaning) in wording::READING { dt { (term) } dd { (meaning) } } }
            }))
        }
    }
}

fn fold(id: &str, summary: &str, body: &Markup) -> Markup {
    html! { details.fold id=(id) { summary { (summary) } (body) } }
}

/// Sets the counters of all hosts, those that show trouble first.
fn counters(hosts: &[HostCounters]) -> Markup {
    let [trouble, others] = [true, false].map(|trouble| wording::counter_table(hosts, trouble));
    let part = |id: &str, table: &linerate_model::analysis::Table| {
        let words = format!("{} ({})", table.title, table.rows.len());
        let body = html! {
            p.soft.small { (wording::COUNTERS) " " (wording::counted(hosts)) }
            div.cells { (table::table(table)) }
        };
        fold(id, &words, &body)
    };
    html! {
        @if !trouble.rows.is_empty() { (part("counters", &trouble)) }
        @if !others.rows.is_empty() { (part("other-counters", &others)) }
    }
}

fn interrupts(hosts: &[HostInterrupts]) -> Markup {
    html! {
        p.soft.small { (wording::INTERRUPTS) }
        @for host in hosts {
            h3 { (host.host) span.soft { ", " (wording::span(host.seconds, host.trials)) } }
            (table::table(&wording::interrupt_table(host)))
        }
    }
}

/// Sets everything that was planned or expected and not measured, with the reasons.
fn left_out(analysis: &Analysis, anchors: &Anchors) -> Markup {
    let place = |chapter: Option<u32>| {
        let chapter = chapter?;
        let mut known = analysis.chapters.iter().enumerate();
        let (at, known) = known.find(|(_, known)| known.number == Some(chapter))?;
        let title = wording::chapter_title(known, anchors.numbers[at]);
        Some(html! { a href={ "#" (anchors.chapters[at]) } { (title) } })
    };
    let rows = html! {
        @for item in &analysis.left_out {
            tr {
                th scope="row" { (item.what) }
                td { (item.why) }
                td { @match place(item.chapter) { Some(link) => (link), None => "–" } }
            }
        }
    };
    table::grid("Not measured", &["What", "Why", "Where"], &[], &rows)
}

/// Sets what was damaged in the bundle.
pub fn damage(damage: &[String]) -> Markup {
    html! {
        @if !damage.is_empty() {
            section.chapter #damage {
                h2 { "Damage to the bundle" }
                p { "These parts could not be read; everything else was used." }
                ul { @for item in damage { li { (item) } } }
            }
        }
    }
}
