//! Interrupts of network devices: how often, for which queue, on which CPUs.

use linerate_model::analysis::HostInterrupts;
use maud::{Markup, html};

use super::table;
use crate::wording;

/// Sets the interrupts of all hosts, if there are any.
pub fn interrupts(hosts: &[HostInterrupts]) -> Markup {
    html! {
        @if !hosts.is_empty() {
            section.chapter #interrupts {
                h2 { "Interrupts of network devices" }
                p.soft { (wording::INTERRUPTS) }
                @for host in hosts {
                    div.host {
                        h3 {
                            (host.host)
                            span.soft { ", " (wording::span(host.seconds, host.trials)) }
                        }
                        (table::table(&wording::interrupt_table(host)))
                    }
                }
            }
        }
    }
}
