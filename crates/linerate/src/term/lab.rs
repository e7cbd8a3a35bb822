//! A named lab for people and for programs.

use std::collections::BTreeSet;
use std::net::IpAddr;

use linerate_lab::named::State;
use linerate_lab::{HostSpec, LabSpec};
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
    delay_ns: u64,
    loss: f64,
    mtu_bytes: u32,
    queues: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_queue_bytes: Option<u64>,
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
            delay_ns: spec.link.delay.0,
            loss: spec.link.loss,
            mtu_bytes: spec.link.mtu_bytes,
            queues: spec.link.queues,
            host_queue_bytes: spec.link.host_queue.map(|bytes| bytes.0),
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
    let heads = [
        "host", "address", "control", "rate", "delay", "loss", "MTU", "queues",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    for (host, at) in state.spec.hosts.iter().zip(&state.hosts) {
        let link = &host.link;
        let rate = link.rate.map(|rate| rate.to_string());
        rows.push([
            host.name.clone(),
            at.data_address.to_string(),
            at.control_address.to_string(),
            rate.unwrap_or_else(|| "unlimited".to_owned()),
            link.delay.to_string(),
            format!("{} %", significant(link.loss * 100.0)),
            link.mtu_bytes.to_string(),
            link.queues.to_string(),
        ]);
    }
    for row in &rows {
        let cell = |at: usize| {
            let widest = rows.iter().map(|row| row[at].chars().count()).max();
            format!("{:<1$}", row[at], widest.unwrap_or(0))
        };
        let cells: Vec<String> = (0..row.len()).map(cell).collect();
        super::line(&format!("  {}", cells.join("  ").trim_end()));
    }
    for line in round_trips(&state.spec.hosts) {
        super::line(&format!("  {line}"));
    }
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
            let others = hosts[1..].iter();
            let line = |other: &HostSpec| {
                let round_trip = LabSpec::round_trip(first, other);
                format!("round trip {} to {}: {round_trip}", first.name, other.name)
            };
            others.map(line).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_lab::LinkSpec;

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
