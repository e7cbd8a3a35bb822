//! A named lab for people and for programs.

use std::collections::BTreeSet;
use std::net::IpAddr;

use linerate_lab::named::State;
use linerate_lab::{HostSpec, LabSpec, LinkSpec, Way};
use linerate_model::Nanos;
use linerate_model::unit::significant;
use serde::Serialize;

/// What `lab list --json` prints.
#[derive(Debug, Serialize)]
pub struct Labs<'a> {
    schema: &'static str,
    schema_version: u32,
    labs: Vec<Lab<'a>>,
}

#[derive(Debug, Serialize)]
struct Lab<'a> {
    name: &'a str,
    is_up: bool,
    hosts: Vec<Host<'a>>,
    degraded: &'a [String],
}

#[derive(Debug, Serialize)]
struct Host<'a> {
    name: &'a str,
    address: IpAddr,
    control_address: IpAddr,
    pid: u32,
    /// Of its link, as all that follows; a rate and a queue that are absent have no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_bps: Option<f64>,
    /// From the host, as all that begins so; otherwise towards it or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    up_rate_bps: Option<f64>,
    delay_ns: u64,
    up_delay_ns: u64,
    jitter_ns: u64,
    loss: f64,
    reorder: f64,
    duplicate: f64,
    mtu_bytes: u32,
    queues: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_queue_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    up_queue_bytes: Option<u64>,
    /// How long a frame waits in a full queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    full_queue_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    up_full_queue_ns: Option<u64>,
    /// To the first host, by the delays of the links; that host has none to itself.
    round_trip_ns: Option<u64>,
}

impl<'a> Labs<'a> {
    /// Returns `states` as a document.
    pub fn of(states: &'a [State]) -> Self {
        let lab = |state: &'a State| Lab {
            name: &state.spec.name,
            is_up: state.is_up(),
            hosts: hosts(state),
            degraded: &state.degraded,
        };
        Self {
            schema: "linerate.labs",
            schema_version: 1,
            labs: states.iter().map(lab).collect(),
        }
    }
}

fn hosts(state: &State) -> Vec<Host<'_>> {
    let first = &state.spec.hosts[0];
    let pairs = state.spec.hosts.iter().zip(&state.hosts);
    pairs
        .map(|(spec, at)| Host {
            name: &spec.name,
            address: at.data_address,
            control_address: at.control_address,
            pid: at.init.pid,
            rate_bps: spec.link.rate.map(|rate| rate.0),
            up_rate_bps: spec.link.rate_of(Way::Up).map(|rate| rate.0),
            delay_ns: spec.link.delay.0,
            up_delay_ns: spec.link.delay_of(Way::Up).0,
            jitter_ns: spec.link.jitter.0,
            loss: spec.link.loss,
            reorder: spec.link.reorder,
            duplicate: spec.link.duplicate,
            mtu_bytes: spec.link.mtu_bytes,
            queues: spec.link.queues,
            host_queue_bytes: spec.link.host_queue.map(|bytes| bytes.0),
            queue_bytes: spec.link.queue_of(Way::Down).map(|bytes| bytes.0),
            up_queue_bytes: spec.link.up.queue.map(|bytes| bytes.0),
            full_queue_ns: spec.link.queue_time_of(Way::Down).map(|time| time.0),
            up_full_queue_ns: spec.link.queue_time_of(Way::Up).map(|time| time.0),
            round_trip_ns: (spec.name != first.name).then(|| LabSpec::round_trip(first, spec).0),
        })
        .collect()
}

/// Prints a lab: its hosts, their links and the round trips between them.
pub fn show(state: &State) {
    let standing = if state.is_up() {
        "up"
    } else {
        "crashed; remove it with `linerate lab down --all`"
    };
    super::line(&format!("{}  {standing}", state.spec.name));
    let hosts = &state.spec.hosts;
    let mut rows = vec![Vec::from(["host", "address", "control"].map(str::to_owned))];
    rows[0].extend(heads(hosts).iter().map(|(head, _)| (*head).to_owned()));
    for (host, at) in hosts.iter().zip(&state.hosts) {
        let addresses = [at.data_address, at.control_address].map(|address| address.to_string());
        let row = std::iter::once(host.name.clone()).chain(addresses);
        rows.push(row.chain(cells(hosts, &host.link)).collect());
    }
    grid(&rows);
    for line in travel(hosts) {
        super::line(&format!("  {line}"));
    }
}

/// Prints what the links of a lab are that is not made yet.
pub fn show_links(hosts: &[HostSpec]) {
    super::line("\nLinks of the lab");
    let mut rows = vec![vec!["host".to_owned()]];
    rows[0].extend(heads(hosts).iter().map(|(head, _)| (*head).to_owned()));
    for host in hosts {
        let name = std::iter::once(host.name.clone());
        rows.push(name.chain(cells(hosts, &host.link)).collect());
    }
    grid(&rows);
    for line in travel(hosts) {
        super::line(&format!("  {line}"));
    }
}

fn grid(rows: &[Vec<String>]) {
    for row in rows {
        let cell = |at: usize| {
            let widest = rows.iter().map(|row| row[at].chars().count()).max();
            format!("{:<1$}", row[at], widest.unwrap_or(0))
        };
        let cells: Vec<String> = (0..row.len()).map(cell).collect();
        super::line(&format!("  {}", cells.join("  ").trim_end()));
    }
}

/// What a column shows of a link.
type Shown = fn(&LinkSpec) -> String;
/// Whether a column is needed for a link.
type Needed = fn(&LinkSpec) -> bool;

/// The columns of links: head, what it shows, and of which links it is needed.
const LINK_COLUMNS: [(&str, Shown, Needed); 8] = [
    ("rate", rate, |_| true),
    ("delay", delay, |_| true),
    (
        "jitter",
        |link| link.jitter.to_string(),
        |link| link.jitter.0 > 0,
    ),
    ("loss", |link| share(link.loss), |_| true),
    (
        "reorder",
        |link| share(link.reorder),
        |link| link.reorder > 0.0,
    ),
    (
        "duplicate",
        |link| share(link.duplicate),
        |link| link.duplicate > 0.0,
    ),
    ("MTU", |link| link.mtu_bytes.to_string(), |_| true),
    ("queues", |link| link.queues.to_string(), |_| true),
];

/// Returns the columns of links: what few of them have is there where one has it.
fn heads(hosts: &[HostSpec]) -> Vec<(&'static str, Shown)> {
    let is_shown = |has: Needed| hosts.iter().any(|host| has(&host.link));
    let shown = LINK_COLUMNS
        .into_iter()
        .filter(|(_, _, has)| is_shown(*has));
    shown.map(|(head, shown, _)| (head, shown)).collect()
}

fn cells(hosts: &[HostSpec], link: &LinkSpec) -> Vec<String> {
    let heads = heads(hosts).into_iter();
    heads.map(|(_, shown)| shown(link)).collect()
}

fn rate(link: &LinkSpec) -> String {
    let rate = |way| {
        let rate = link.rate_of(way).map(|rate| rate.to_string());
        rate.unwrap_or_else(|| "unlimited".to_owned())
    };
    either_way(rate)
}

fn delay(link: &LinkSpec) -> String {
    either_way(|way| link.delay_of(way).to_string())
}

/// Says once what is the same both ways.
fn either_way(of: impl Fn(Way) -> String) -> String {
    let [down, up] = [Way::Down, Way::Up].map(of);
    if down == up {
        down
    } else {
        format!("{down}, up {up}")
    }
}

fn share(share: f64) -> String {
    format!("{} %", significant(share * 100.0))
}

/// Says how long packets travel: the round trips that the delays make, and what full queues add.
fn travel(hosts: &[HostSpec]) -> Vec<String> {
    let mut lines = round_trips(hosts);
    for (way, words) in [(Way::Down, "to"), (Way::Up, "from")] {
        let times = hosts.iter();
        let times = times.filter_map(|host| Some((host, host.link.queue_time_of(way)?)));
        lines.extend(alike(times).into_iter().map(|(time, names)| {
            let names = if names.len() == hosts.len() {
                "each host".to_owned()
            } else {
                names.join(", ")
            };
            format!("a full queue {words} {names} adds {time}")
        }));
    }
    lines
}

/// Says what round trips the delays make: one sentence where all pairs have the same.
fn round_trips(hosts: &[HostSpec]) -> Vec<String> {
    let pairs = (hosts.iter().enumerate())
        .flat_map(|(at, one)| hosts[at + 1..].iter().map(move |other| (one, other)));
    let all: BTreeSet<Nanos> = pairs
        .map(|(one, other)| LabSpec::round_trip(one, other))
        .collect();
    match Vec::from_iter(all).as_slice() {
        [] | [Nanos(0)] => Vec::new(),
        [same] => vec![format!(
            "round trip between hosts: {same} (a packet crosses two links, there and back)"
        )],
        _ => {
            let first = &hosts[0];
            let times = hosts[1..].iter();
            let times = times.map(|other| (other, LabSpec::round_trip(first, other)));
            let line = |(time, names): (Nanos, Vec<&str>)| {
                format!("round trip {} to {}: {time}", first.name, names.join(", "))
            };
            alike(times).into_iter().map(line).collect()
        }
    }
}

/// Returns each time once, with the names of the hosts that have it.
fn alike<'a>(times: impl Iterator<Item = (&'a HostSpec, Nanos)>) -> Vec<(Nanos, Vec<&'a str>)> {
    let mut alike: Vec<(Nanos, Vec<&str>)> = Vec::new();
    for (host, time) in times {
        match alike.iter_mut().find(|(known, _)| *known == time) {
            Some((_, names)) => names.push(&host.name),
            None => alike.push((time, vec![&host.name])),
        }
    }
    alike
}

#[cfg(test)]
mod tests {
    use linerate_lab::Preset;

    use super::*;

    fn host(name: &str, delay_ms: u64) -> HostSpec {
        HostSpec {
            name: name.to_owned(),
            link: LinkSpec {
                delay: Nanos::from_ms(delay_ms),
                ..LinkSpec::default()
            },
        }
    }

    #[test]
    fn links_say_how_long_packets_travel() {
        let told = |preset| travel(&LabSpec::of_preset(preset, 2).hosts);
        assert_eq!(told(Preset::Lan), ["a full queue to each host adds 20 ms"]);
        assert_eq!(
            told(Preset::Bloated),
            [
                "round trip server to client1, client2: 20 ms",
                "a full queue to server adds 20 ms",
                "a full queue to client1, client2 adds 300 ms",
                "a full queue from client1, client2 adds 300 ms",
            ]
        );
    }

    #[test]
    fn a_round_trip_crosses_both_links_twice() {
        let same = round_trips(&[host("a", 5), host("b", 5), host("c", 5)]);
        assert_eq!(same.len(), 1);
        assert!(
            same[0].starts_with("round trip between hosts: 20 ms"),
            "{same:?}"
        );
        let each = round_trips(&[host("a", 0), host("b", 5), host("c", 1)]);
        assert_eq!(
            each,
            ["round trip a to b: 10 ms", "round trip a to c: 2 ms"]
        );
        assert!(round_trips(&[host("a", 0), host("b", 0)]).is_empty());
        assert!(round_trips(&[host("a", 5)]).is_empty());
    }
}
