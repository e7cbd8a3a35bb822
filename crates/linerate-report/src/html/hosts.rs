//! Hosts: one row a machine, then the facts of the first and what differs in the others.

use linerate_model::analysis::HostSummary;
use linerate_model::fact::is_identity;
use linerate_model::number::counted;
use maud::{Markup, html};

use super::table;

/// What a row says of a machine: head, and the fact.
const COLUMNS: [(&str, Shown); 7] = [
    ("Kernel", Shown::Fact("kernel.release")),
    ("CPU", Shown::Fact("cpu.model")),
    ("CPUs", Shown::Fact("cpu.online")),
    ("Memory", Shown::Fact("memory.total_bytes")),
    ("Link", Shown::LinkRate),
    ("Driver", Shown::OfLink("driver")),
    (
        "Congestion control",
        Shown::Fact("sysctl.net.ipv4.tcp_congestion_control"),
    ),
];

/// A fact of a host by its name, one of the device that it is measured over by what it is, or that device's rate.
#[derive(Clone, Copy)]
enum Shown {
    Fact(&'static str),
    OfLink(&'static str),
    LinkRate,
}

/// A host, or several that are set up alike.
struct Machine<'a> {
    names: Vec<String>,
    part: &'a str,
    cells: Vec<Option<String>>,
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
        let cells: Vec<_> = COLUMNS.iter().map(|(_, fact)| known(host, *fact)).collect();
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
                @for &at in &shown { td { (machine.cells[at].as_deref().unwrap_or("–")) } }
            }
        }
    };
    let heads: Vec<&str> = shown.iter().map(|at| COLUMNS[*at].0).collect();
    table::grid("Hosts", &[&["Host"][..], &heads].concat(), &[], &rows)
}

/// Returns what is known of a host.
fn known(host: &HostSummary, shown: Shown) -> Option<String> {
    let name = match shown {
        Shown::Fact(name) => name.to_owned(),
        Shown::OfLink(what) => format!("link.{}.{what}", host.link.as_ref()?),
        // A lab's devices have no rate of their own: what it set is known.
        Shown::LinkRate => {
            let up = host.link_up_rate.map(|up| format!(", {up} from it"));
            return (host.link_rate).map(|rate| format!("{rate}{}", up.unwrap_or_default()));
        }
    };
    let mut facts = host.facts.iter();
    let read = facts.find(|fact| fact.0 == name && !host.unread.contains(&name));
    read.map(|(_, text)| text.clone())
}

/// Returns the pairs of a host that the first does not have alike.
fn beside(pairs: &[(String, String)], first: &[(String, String)]) -> Vec<(String, String)> {
    let differs = |pair: &&(String, String)| !first.contains(pair);
    pairs.iter().filter(differs).cloned().collect()
}

/// Counts what makes a host another one than the first.
fn differing(facts: &[(String, String)], limits: &[(String, String)]) -> usize {
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
                    tr { th { (label) } td { (text) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::BitsPerSec;

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
    fn a_fact_fills_a_column_if_it_was_read_and_is_of_the_device_in_use() {
        let fact = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let mut host = HostSummary {
            name: "server".into(),
            part: String::new(),
            link: Some("eth1".to_owned()),
            link_rate: Some(BitsPerSec(1e10)),
            link_up_rate: None,
            facts: vec![
                fact("kernel.release", "6.12"),
                fact("link.eth0.driver", "e1000e"),
                fact("link.eth1.driver", "mlx5_core"),
                fact("link.eth2.driver", "not read: permission denied"),
            ],
            unread: vec!["link.eth2.driver".to_owned()],
            limits: Vec::new(),
        };
        let check = |host: &HostSummary, shown, text: Option<&str>| {
            assert_eq!(known(host, shown).as_deref(), text);
        };
        check(&host, Shown::Fact("kernel.release"), Some("6.12"));
        check(&host, Shown::OfLink("driver"), Some("mlx5_core"));
        check(&host, Shown::LinkRate, Some("10 Gbit/s"));
        host.link = Some("eth2".to_owned());
        check(&host, Shown::OfLink("driver"), None);
        host.link = None;
        check(&host, Shown::OfLink("driver"), None);
    }
}
