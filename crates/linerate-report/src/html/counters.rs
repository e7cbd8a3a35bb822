//! Protocol counters that moved: those that tell of trouble first, each behind a click.

use linerate_model::analysis::HostCounters;
use maud::{Markup, html};

use super::table;
use crate::wording;

/// Sets the counters of all hosts, if there are any.
pub fn counters(hosts: &[HostCounters]) -> Markup {
    html! {
        @if !hosts.is_empty() {
            section.chapter #counters {
                h2 { "Protocol counters" }
                p.soft { (wording::COUNTERS) }
                @for host in hosts { (self::host(host)) }
            }
        }
    }
}

fn host(host: &HostCounters) -> Markup {
    let (trouble, others) = wording::counter_tables(host);
    html! {
        div.host {
            h3 { (host.host) span.soft { ", " (wording::span(host.seconds, host.trials)) } }
            @if trouble.rows.is_empty() {
                p.soft { "None that tells of trouble moved." }
            } @else {
                details.cells {
                    summary { (trouble.title) " (" (trouble.rows.len()) ")" }
                    (table::table(&trouble))
                }
            }
            @if !others.rows.is_empty() {
                details.cells {
                    summary { (others.title) " (" (others.rows.len()) ")" }
                    (table::table(&others))
                }
            }
        }
    }
}
