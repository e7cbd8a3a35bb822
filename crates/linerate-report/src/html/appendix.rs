//! What closes the page: hosts, what could not be measured, damage, how to read the numbers.

use linerate_model::analysis::{Analysis, HostSummary};
use maud::{Markup, html};

use super::table;
use crate::wording;

/// Sets the hosts with their facts and the limits of their observers.
pub fn hosts(hosts: &[HostSummary]) -> Markup {
    html! {
        @if !hosts.is_empty() {
            section.chapter #hosts {
                h2 { "Hosts" }
                @for host in hosts { (self::host(host)) }
            }
        }
    }
}

fn host(host: &HostSummary) -> Markup {
    let title = format!("Facts of {}", host.name);
    html! {
        div.host {
            h3 {
                (host.name)
                @if !host.part.is_empty() { span.soft { ", " (host.part) } }
            }
            @if !host.facts.is_empty() { (table::scrolling(&title, &pairs("Fact", &host.facts))) }
            @if !host.limits.is_empty() {
                h4 { "What could not be observed here" }
                (table::scrolling("Limits of observers", &pairs("Observer", &host.limits)))
            }
        }
    }
}

fn pairs(head: &str, pairs: &[(String, String)]) -> Markup {
    let second = if head == "Fact" { "Value" } else { "Reason" };
    html! {
        table.facts {
            thead { tr { th scope="col" { (head) } th scope="col" { (second) } } }
            tbody {
                @for (label, text) in pairs {
                    tr { th scope="row" { (label) } td { (text) } }
                }
            }
        }
    }
}

/// Sets everything that was planned or expected and not measured, with the reasons.
pub fn left_out(analysis: &Analysis) -> Markup {
    let body = html! {
        table {
            thead { tr {
                th scope="col" { "What" }
                th scope="col" { "Why" }
                th scope="col" { "Where" }
            } }
            tbody {
                @for item in &analysis.left_out {
                    tr {
                        th scope="row" { (item.what) }
                        td { (item.why) }
                        td.nowrap { (wording::left_out_place(item.chapter)) }
                    }
                }
            }
        }
    };
    html! {
        section.chapter #left-out {
            h2 { "Not measured" }
            @if analysis.left_out.is_empty() {
                p.soft { "Everything that was planned was measured." }
            } @else {
                (table::scrolling("Not measured", &body))
            }
        }
    }
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

/// Sets the definitions of what the numbers mean.
pub fn reading() -> Markup {
    html! {
        section.chapter #reading {
            h2 { "How to read this" }
            dl.terms {
                @for (term, meaning) in wording::READING { dt { (term) } dd { (meaning) } }
            }
        }
    }
}
