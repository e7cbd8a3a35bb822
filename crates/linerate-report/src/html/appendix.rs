//! What closes the page: hosts, what could not be measured, damage, how to read the numbers.

use linerate_model::analysis::{Analysis, HostSummary};
use linerate_model::id::HostName;
use maud::{Markup, html};

use super::table;
use crate::wording;

/// What tells hosts apart and says nothing of how they are set up: ends of facts' names.
const IDENTITY: [&str; 3] = ["host.name", ".address", ".napi"];

/// Sets the hosts: the first with all its facts, of the others what differs from it; each behind a
/// click.
pub fn hosts(hosts: &[HostSummary]) -> Markup {
    let Some((first, others)) = hosts.split_first() else {
        return html! {};
    };
    html! {
        section.chapter #hosts {
            h2 { "Hosts" }
            (host(first, &first.facts, &first.limits, &format!("{} facts", first.facts.len())))
            @for other in others {
                @let facts = beside(&other.facts, &first.facts);
                @let limits = beside(&other.limits, &first.limits);
                (host(other, &facts, &limits, &compared(&facts, &limits, &first.name)))
            }
        }
    }
}

/// Returns the pairs of a host that the first does not have alike.
fn beside(pairs: &[(String, String)], first: &[(String, String)]) -> Vec<(String, String)> {
    let differs = |pair: &&(String, String)| !first.contains(pair);
    pairs.iter().filter(differs).cloned().collect()
}

/// Says how far a host is another one than the first.
fn compared(facts: &[(String, String)], limits: &[(String, String)], first: &HostName) -> String {
    let is_identity = |name: &str| IDENTITY.iter().any(|end| name.ends_with(end));
    let differing = facts.iter().filter(|(name, _)| !is_identity(name)).count() + limits.len();
    match differing {
        0 => format!("set up as {first}"),
        1 => format!("as {first}, but for 1 thing"),
        _ => format!("as {first}, but for {differing} things"),
    }
}

fn host(
    host: &HostSummary,
    facts: &[(String, String)],
    limits: &[(String, String)],
    words: &str,
) -> Markup {
    let title = format!("Facts of {}", host.name);
    html! {
        div.host {
            h3 {
                (host.name)
                @if !host.part.is_empty() { span.soft { ", " (host.part) } }
            }
            @if facts.is_empty() && limits.is_empty() {
                p.soft.small { (words) }
            } @else {
                details {
                    summary { (words) }
                    @if !facts.is_empty() { (table::scrolling(&title, &pairs("Fact", facts))) }
                    @if !limits.is_empty() {
                        h4 { "What could not be observed here" }
                        (table::scrolling("Limits of observers", &pairs("Observer", limits)))
                    }
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_do_not_make_a_host_another_one() {
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let first = [pair("cpu.online", "2"), pair("link.eth0.address", "a")];
        let check = |facts: &[(String, String)], words: &str| {
            let facts = beside(facts, &first);
            assert_eq!(compared(&facts, &[], &HostName::from("server")), words);
        };
        check(&first, "set up as server");
        let same = [pair("cpu.online", "2"), pair("link.eth0.address", "b")];
        check(&same, "set up as server");
        let other = [pair("cpu.online", "4"), pair("link.eth0.address", "b")];
        check(&other, "as server, but for 1 thing");
    }
}
