//! Hosts: one row a machine, then the facts of the first and what differs in the others.

use linerate_model::analysis::HostSummary;
use linerate_model::number::counted;
use maud::{Markup, html};

use super::table;

/// What tells hosts apart and says nothing of how they are set up: ends of facts' names.
const IDENTITY: [&str; 3] = ["host.name", ".address", ".napi"];

/// What a row says of a machine: head, and the fact's name or its end.
const COLUMNS: [(&str, &str); 7] = [
    ("Kernel", "kernel.release"),
    ("CPU", "cpu.model"),
    ("CPUs", "cpu.online"),
    ("Memory", "memory.total_bytes"),
    ("Link", ".speed_bps"),
    ("Driver", ".driver"),
    ("Congestion control", "tcp_congestion_control"),
];

/// A host, or several that are set up alike.
struct Machine<'a> {
    names: Vec<String>,
    part: &'a str,
    cells: Vec<Option<&'a str>>,
}

/// Sets the hosts.
pub fn hosts(hosts: &[HostSummary]) -> Markup {
    let Some((first, others)) = hosts.split_first() else {
        return html! {};
    };
    html! {
        (machines(hosts))
        (facts(&format!("All {} facts of {}", first.facts.len(), first.name), &first.facts, &first.limits))
        @for other in others {
            @let (of_facts, limits) = (beside(&other.facts, &first.facts), beside(&other.limits, &first.limits));
            @let differing = differing(&of_facts, &limits);
            @if differing > 0 {
                @let words = format!("{}: as {}, but for {}", other.name, first.name, counted(differing, "thing"));
                (facts(&words, &of_facts, &limits))
            }
        }
    }
}

/// Sets a row a machine; hosts of a lab that are set up alike share one.
fn machines(hosts: &[HostSummary]) -> Markup {
    let mut machines: Vec<Machine<'_>> = Vec::new();
    for host in hosts {
        let cells: Vec<_> = COLUMNS.iter().map(|(_, name)| known(host, name)).collect();
        match machines.iter_mut().find(|other| other.cells == cells) {
            Some(machine) => machine.names.push(host.name.to_string()),
            None => machines.push(Machine {
                names: vec![host.name.to_string()],
                part: &host.part,
                cells,
            }),
        }
    }
    let is_known = |at: &usize| machines.iter().any(|machine| machine.cells[*at].is_some());
    let shown: Vec<usize> = (0..COLUMNS.len()).filter(is_known).collect();
    let rows = html! {
        @for machine in &machines {
            tr {
                th scope="row" {
                    (machine.names.join(", "))
                    @if !machine.part.is_empty() && machine.names.len() == 1 {
                        span.soft { ", " (machine.part) }
                    }
                }
                @for &at in &shown { td { (machine.cells[at].unwrap_or("–")) } }
            }
        }
    };
    let heads: Vec<&str> = shown.iter().map(|at| COLUMNS[*at].0).collect();
    table::grid("Hosts", &[&["Host"][..], &heads].concat(), &[], &rows)
}

/// Returns the first fact of that name, or with that end, that was read.
fn known<'a>(host: &'a HostSummary, name: &str) -> Option<&'a str> {
    let mut facts = host.facts.iter();
    let is_it = |fact: &&(String, String)| {
        fact.0.ends_with(name) && !host.unread.contains(&fact.0) && !fact.0.starts_with("link.lo.")
            // The lab's own network is not measured.
            && !fact.0.starts_with("link.ctl0.")
    };
    facts.find(is_it).map(|(_, text)| text.as_str())
}

/// Returns the pairs of a host that the first does not have alike.
fn beside(pairs: &[(String, String)], first: &[(String, String)]) -> Vec<(String, String)> {
    let differs = |pair: &&(String, String)| !first.contains(pair);
    pairs.iter().filter(differs).cloned().collect()
}

/// Counts what makes a host another one than the first.
fn differing(facts: &[(String, String)], limits: &[(String, String)]) -> usize {
    let is_identity = |name: &str| IDENTITY.iter().any(|end| name.ends_with(end));
    facts.iter().filter(|(name, _)| !is_identity(name)).count() + limits.len()
}

fn facts(words: &str, facts: &[(String, String)], limits: &[(String, String)]) -> Markup {
    html! {
        details {
            summary { (words) }
            @if !facts.is_empty() { (table::scrolling(words, &pairs(["Fact", "Value"], facts))) }
            @if !limits.is_empty() {
                h3 { "What could not be observed here" }
                (table::scrolling("Limits of observers", &pairs(["Observer", "Reason"], limits)))
            }
        }
    }
}

/// Sets pairs of a name and a text.
pub fn pairs(heads: [&str; 2], pairs: &[(String, String)]) -> Markup {
    html! {
        table.facts {
            (table::head(&heads, &[]))
            tbody {
                @for (label, text) in pairs {
                    tr { th scope="row" { (label) } td { (text) } }
                }
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
        let check = |facts: &[(String, String)], things: usize| {
            assert_eq!(differing(&beside(facts, &first), &[]), things);
        };
        check(&first, 0);
        let same = [pair("cpu.online", "2"), pair("link.eth0.address", "b")];
        check(&same, 0);
        let other = [pair("cpu.online", "4"), pair("link.eth0.address", "b")];
        check(&other, 1);
    }

    #[test]
    fn a_fact_that_was_not_read_fills_no_column() {
        let fact = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let host = HostSummary {
            name: "server".into(),
            part: String::new(),
            facts: vec![
                fact("link.eth0.speed_bps", "not read: permission denied"),
                fact("link.eth1.speed_bps", "10 Gbit/s"),
            ],
            unread: vec!["link.eth0.speed_bps".to_owned()],
            limits: Vec::new(),
        };
        assert_eq!(known(&host, ".speed_bps"), Some("10 Gbit/s"));
        assert_eq!(known(&host, ".driver"), None);
    }
}
