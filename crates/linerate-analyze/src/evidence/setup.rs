//! What all trials of a cell have in common: the set-up that its numbers are read against.

use std::collections::BTreeSet;

use linerate_model::HostName;
use linerate_model::run::{FlowRecord, HostRecord};
use linerate_model::sample::End;
use linerate_model::setting;
use linerate_model::workload::{Direction, Part};

use crate::compare::interval::mean;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::note_lack;

/// Algorithms that pace (sk_pacing_status in tcp_bbr.c); the others do only where fq makes them.
const PACING_ALGORITHMS: &[&str] = &["bbr", "bbr1", "bbr2", "bbr3"];

/// What all trials of a cell have in common.
pub(crate) struct Setup {
    pub(crate) flows: f64,
    shortest_ns: Option<f64>,
    turns_per_s: Option<f64>,
    is_tcp: bool,
    /// The senders' congestion control paces.
    pub(crate) paces: bool,
    /// The kernel was asked to pace.
    pub(crate) is_paced: bool,
    /// A receive buffer was set.
    pub(crate) buffer_is_set: bool,
    /// What the send buffer may hold, by what was set or the host's limit.
    pub(crate) send_buffer: Option<f64>,
    /// Payload that the link carries, where its rate is known.
    pub(crate) link_bps: Option<f64>,
    /// Up to how many bytes the receivers' buffers grow by themselves.
    pub(crate) receive_buffer: Option<f64>,
    /// Whether the receivers' kernels tune their buffers.
    pub(crate) tunes: Option<bool>,
    /// Whether the handshakes agreed on window scaling, and on SACK.
    pub(crate) scales: Option<bool>,
    pub(crate) has_sack: Option<bool>,
}

impl Setup {
    pub(crate) fn of(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Self {
        let asked = cell.workload.options.socket_buffer;
        Self {
            flows: cell.workload.flows().len() as f64,
            shortest_ns: shortest_ns(dataset, cell),
            turns_per_s: turns_per_s(dataset, cell),
            is_tcp: cell.workload.manner.transport.is_tcp(),
            paces: pacing_algorithm(dataset, cell).is_some(),
            is_paced: cell.workload.options.pacing_bps.is_some(),
            buffer_is_set: asked.is_some(),
            send_buffer: asked
                .map(|bytes| bytes.0 as f64)
                .or_else(|| auto_buffer(dataset, cell, Part::Sender).map(|bytes| bytes / 2.0)),
            link_bps: dataset.limit_bps(cell),
            receive_buffer: auto_buffer(dataset, cell, Part::Receiver),
            tunes: tunes(dataset, cell),
            scales: agreed_on(dataset, cell, setting::WINDOW_SCALING),
            has_sack: agreed_on(dataset, cell, setting::SACK),
        }
    }
}

impl Setup {
    /// Returns the shortest round trip that any trial saw of a flow's client, mean of the flows.
    pub(crate) fn shortest_ns(&self) -> Option<f64> {
        noted(self.shortest_ns, self.is_tcp)
    }

    /// Returns how many of these round trips all flows together make in a second.
    pub(crate) fn turns_per_s(&self) -> Option<f64> {
        noted(self.turns_per_s, self.is_tcp)
    }
}

/// Notes where something of TCP that was asked for was not read.
fn noted<T>(value: Option<T>, is_tcp: bool) -> Option<T> {
    if value.is_none() && is_tcp {
        note_lack();
    }
    value
}

/// Whether the handshakes of all flows agreed on `option`.
fn agreed_on(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>, option: &str) -> Option<bool> {
    let agreed = dataset
        .flows_of(cell)
        .filter_map(|flow| flow.settings.agreed_on(option));
    agreed.reduce(|all, one| all && one)
}

/// Whether the kernels of all ends that receive tune the receive buffer; both ends of exchanges do.
fn tunes(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<bool> {
    let receivers: Vec<&HostRecord> = if cell.workload.traffic.is_stream() {
        hosts_of(dataset, cell, Part::Receiver).collect()
    } else {
        dataset.hosts().iter().collect()
    };
    let tunes = "sysctl.net.ipv4.tcp_moderate_rcvbuf";
    let told = receivers
        .iter()
        .filter_map(|host| host.snapshot.number(tunes));
    told.map(|number| number != 0.0)
        .reduce(|all, one| all && one)
}

/// Returns the shortest round trip that any trial over the same links saw of a flow's client, mean of the
/// flows.
pub(crate) fn shortest_ns(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<f64> {
    let of_flows = dataset.floors().of_flows(&cell.workload);
    let shortest = (!of_flows.is_empty()).then(|| mean(&of_flows));
    noted(shortest, cell.workload.manner.transport.is_tcp())
}

/// Returns the same of the client that is farthest away.
pub(crate) fn farthest_ns(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<f64> {
    let of_flows = dataset.floors().of_flows(&cell.workload);
    of_flows.into_iter().max_by(f64::total_cmp)
}

/// Returns how many of these shortest round trips all flows together make in a second.
pub(crate) fn turns_per_s(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Option<f64> {
    let of_flows = dataset.floors().of_flows(&cell.workload);
    let turns: Vec<f64> = of_flows.iter().map(|ns| 1e9 / ns).collect();
    let turns = (!turns.is_empty()).then(|| cell.workload.flows().len() as f64 * mean(&turns));
    noted(turns, cell.workload.manner.transport.is_tcp())
}

/// Returns up to how many bytes the buffers of `part` grow by themselves: the least limit of the hosts that
/// have this part in the cell.
pub(crate) fn auto_buffer(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    part: Part,
) -> Option<f64> {
    let fact = match part {
        Part::Sender => "sysctl.net.ipv4.tcp_wmem",
        _ => "sysctl.net.ipv4.tcp_rmem",
    };
    let hosts = hosts_of(dataset, cell, part);
    let most = hosts.filter_map(|host| host.snapshot.most_of_three(fact));
    most.min_by(f64::total_cmp)
}

/// Returns the hosts that have `part` of a flow in the cell.
pub(crate) fn hosts_of<'d>(
    dataset: &'d Dataset<'_>,
    cell: &CellOutcomes<'_>,
    part: Part,
) -> impl Iterator<Item = &'d HostRecord> {
    let own = dataset
        .flows_of(cell)
        .filter(move |flow| flow.part == part && is_of(cell, flow));
    let names: BTreeSet<&HostName> = own.map(|flow| &flow.host).collect();
    let hosts = dataset.hosts().iter();
    hosts.filter(move |host| names.contains(&host.name))
}

/// Whether a flow is one of the cell's, which may be one direction of a trial.
fn is_of(cell: &CellOutcomes<'_>, flow: &FlowRecord) -> bool {
    let sender = match flow.part {
        Part::Sender => flow.end,
        _ => flow.end.other(),
    };
    match cell.workload.traffic.direction() {
        Some(Direction::ToServer) => sender == End::Client,
        Some(Direction::FromServer) => sender == End::Server,
        Some(Direction::Both) | None => true,
    }
}

/// The congestion control in force at the sending ends, if it is one that paces.
pub(crate) fn pacing_algorithm<'a>(
    dataset: &Dataset<'a>,
    cell: &CellOutcomes<'_>,
) -> Option<&'a str> {
    algorithm_of(dataset, cell).filter(|algorithm| PACING_ALGORITHMS.contains(algorithm))
}

/// The congestion control in force at the sending ends; absent when they differ.
fn algorithm_of<'a>(dataset: &Dataset<'a>, cell: &CellOutcomes<'_>) -> Option<&'a str> {
    let mut in_force = dataset
        .flows_of(cell)
        .filter(|flow| flow.part == Part::Sender && is_of(cell, flow))
        .filter_map(|flow| {
            flow.settings
                .named(setting::name::TCP_CONGESTION)?
                .in_force()
        });
    let first = in_force.next()?;
    in_force.all(|other| other == first).then_some(first)
}
