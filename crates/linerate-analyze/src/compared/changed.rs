//! What differs between runs: whether they were asked for the same traffic, how that was made, and the hosts.

use linerate_model::compared::Changed;
use linerate_model::experiment::Level;
use linerate_model::fact::is_identity;
use linerate_model::host::FactValue;
use linerate_model::parameter::{PARAMETERS, Parameter};
use linerate_model::run::HostPart;
use linerate_model::unit::Unit;
use linerate_model::workload::{Group, Workload};

use super::side::{RunSide, SideHost};

/// Parameters that say how traffic is made and not what is asked for: two runs that differ in them are compared, and
/// that is what is compared. All others are the question itself.
const HOW: [&str; 18] = [
    "clients",
    "socket_buffer",
    "nagle",
    "delayed_ack",
    "congestion",
    "mss_bytes",
    "send",
    "receive",
    "wait",
    "batch",
    "segments",
    "receive_low_water",
    "gro",
    "cork",
    "busy_poll_us",
    "tos",
    "short_numbers",
    "request_writes",
];

/// Parameters that are another view of one that has a place of its own in the list.
fn is_view(parameter: &Parameter) -> bool {
    parameter.key == "payload_bytes" || parameter.key.starts_with("wait = ")
}

/// Beginnings of what tells most of why a number is another, in the order in which it is told.
const TELLING: [&str; 9] = [
    "kernel.release",
    "link.driver",
    "link.speed_bps",
    "link.mtu_bytes",
    "sysctl.",
    "link.features",
    "link.",
    "cpu.",
    "virtualisation",
];
/// Facts that differ from boot to boot, or from one reading to the next, on a host that is as it was.
const PASSING: [&str; 2] = ["cpu.mhz", "kernel.version"];

/// Returns that two runs were not asked for the same traffic, if they were not.
pub(super) fn other_traffic(base: &Workload, other: &Workload) -> Option<String> {
    let kinds = [base, other].map(|one| one.traffic.kind().about().title);
    if kinds[0] != kinds[1] {
        return Some(format!("other workload: {} and {}", kinds[0], kinds[1]));
    }
    let asked = PARAMETERS
        .iter()
        .filter(|it| !HOW.contains(&it.key) && !is_view(it));
    let mut other_than = asked.filter_map(|parameter| {
        let (one, two) = (parameter.read(base), parameter.read(other));
        let words = |level| words(parameter, level);
        (one != two).then(|| format!("{} {} and {}", key(parameter), words(one), words(two)))
    });
    let first = other_than.next();
    let is_mixed = base.manner.sizes != other.manner.sizes;
    let is_other = base.manner.steps != other.manner.steps;
    first
        .or_else(|| is_mixed.then(|| "other sizes".to_owned()))
        .or_else(|| is_other.then(|| "other steps".to_owned()))
        .map(|what| format!("other workload: {what}"))
}

/// Returns that other traffic went on at the same time, if it did.
pub(super) fn other_beside(base: &[Group], other: &[Group]) -> Option<String> {
    let names = |groups: &[Group]| {
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        if names.is_empty() {
            "nothing".to_owned()
        } else {
            names.join(", ")
        }
    };
    let (one, two) = (names(base), names(other));
    if one != two {
        return Some(format!("other traffic at the same time: {one} and {two}"));
    }
    let mut pairs = base.iter().zip(other);
    pairs.find_map(|(one, two)| {
        let why = other_traffic(&one.workload, &two.workload)?;
        Some(format!("{} at the same time: {why}", one.name))
    })
}

fn key(parameter: &Parameter) -> String {
    match parameter.factor {
        Some((_, title)) => title.to_owned(),
        None => parameter.key.replace('_', " "),
    }
}

fn words(parameter: &Parameter, level: Option<Level>) -> String {
    match level {
        None if parameter.key == "socket_buffer" => "auto".to_owned(),
        None => "not set".to_owned(),
        Some(level) => level.to_string(),
    }
}

/// Returns what differs between each of `runs` and the first, most telling first.
pub(super) fn changed(runs: &[RunSide]) -> Vec<Changed> {
    let Some((base, others)) = runs.split_first() else {
        return Vec::new();
    };
    let sides = others.iter().enumerate();
    sides
        .flat_map(|(at, other)| between(base, other, at + 1))
        .collect()
}

fn between(base: &RunSide, other: &RunSide, side: usize) -> Vec<Changed> {
    let mut all = Vec::new();
    let mut tell = |host, what: String, from: Option<String>, to: Option<String>| {
        let one = Changed {
            side,
            host,
            what,
            from,
            to,
        };
        if one.from != one.to && !all.contains(&one) {
            all.push(one);
        }
    };
    let version = |run: &RunSide| Some(run.version.clone());
    for cell in &base.cells {
        let Some(like) = other.cell_like(cell) else {
            continue;
        };
        let how = PARAMETERS.iter().filter(|it| HOW.contains(&it.key));
        for parameter in how {
            let of = |workload| Some(words(parameter, parameter.read(workload)));
            tell(None, key(parameter), of(&cell.workload), of(&like.workload));
        }
    }
    tell(None, "linerate".to_owned(), version(base), version(other));
    for (one, two) in paired(base, other) {
        let rate = |host: &SideHost| {
            let rate = Unit::BitsPerSecond.display(host.link_bps?);
            let up = host.link_up_bps.map(|up| Unit::BitsPerSecond.display(up));
            Some(up.map_or(rate.clone(), |up| format!("{rate}, {up} from it")))
        };
        tell(Some(one.part), "link rate".to_owned(), rate(one), rate(two));
        for (what, from, to) in facts(one, two) {
            tell(Some(one.part), what, from, to);
        }
    }
    let rank = |one: &Changed| {
        let telling = TELLING.iter().position(|begin| one.what.starts_with(begin));
        let of_host = telling.unwrap_or(TELLING.len()) + 1;
        if one.host.is_none() { 0 } else { of_host }
    };
    all.sort_by_key(rank);
    all
}

/// Returns the hosts of both that have the same part, in their order.
fn paired<'a>(
    base: &'a RunSide,
    other: &'a RunSide,
) -> impl Iterator<Item = (&'a SideHost, &'a SideHost)> {
    let of = |run: &'a RunSide, part: HostPart| run.hosts.iter().filter(move |it| it.part == part);
    let both = [HostPart::Server, HostPart::Client].into_iter();
    both.flat_map(move |part| of(base, part).zip(of(other, part)))
}

/// Returns the facts that differ: what and its two values; of devices only those of the one that data flows used.
fn facts(base: &SideHost, other: &SideHost) -> Vec<(String, Option<String>, Option<String>)> {
    if base.facts.facts.is_empty() || other.facts.facts.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<String> = base
        .facts
        .facts
        .iter()
        .filter_map(|it| told(base, &it.name))
        .collect();
    names.extend(
        other
            .facts
            .facts
            .iter()
            .filter_map(|it| told(other, &it.name)),
    );
    names.sort();
    names.dedup();
    let value = |host: &SideHost, name: &str| {
        let mut facts = host.facts.facts.iter();
        let found = facts.find(|fact| told(host, &fact.name).as_deref() == Some(name))?;
        match &found.value {
            FactValue::Number(number, unit) => Some(unit.display(*number)),
            FactValue::Text(text) => Some(text.clone()),
            FactValue::Missing(_) => None,
        }
    };
    let differing = names.into_iter().filter_map(|name| {
        let (from, to) = (value(base, &name), value(other, &name));
        (from != to).then_some((name, from, to))
    });
    differing.collect()
}

/// Returns what a fact is told as: without the name of the device, which may be another; absent where it says nothing of
/// how the host is set up, or is of another device.
fn told(host: &SideHost, name: &str) -> Option<String> {
    let is_number = name.starts_with("irq.") || name.ends_with(".irq");
    if is_identity(name) || is_number || PASSING.contains(&name) {
        return None;
    }
    let device = host.link.as_deref();
    for kind in ["link", "queue"] {
        if let Some(rest) = name
            .strip_prefix(kind)
            .and_then(|rest| rest.strip_prefix('.'))
        {
            let own = rest.strip_prefix(device?)?.strip_prefix('.')?;
            return Some(format!("{kind}.{own}"));
        }
    }
    Some(name.to_owned())
}
