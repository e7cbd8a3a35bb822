//! What the samples of a single measurement say beside its rate, on the same axis of time: round trip, congestion
//! window, segments sent again, and busy CPUs.
//!
//! Of several trials there is none: their strips would be four times as many.

use std::collections::BTreeMap;

use linerate_model::HostName;
use linerate_model::analysis::{Axis, Curve, Figure, Origin, Scale};
use linerate_model::experiment::Experiment;
use linerate_model::metric::Metric;
use linerate_model::response::{describe, name};
use linerate_model::sample::{End, Subject};
use linerate_model::unit::Unit;
use linerate_model::workload::{FlowPlan, Part, receiving_end};

use super::draw;
use super::series::{SAMPLE_NS, Sampled};
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::Readings;
use crate::reduce::cpu_time::{BUSY, STEAL};

/// Returns the strips of the cell's only trial, as far as each was sampled.
pub(super) fn figures(
    dataset: &Dataset<'_>,
    experiment: &Experiment,
    cell: &CellOutcomes<'_>,
) -> Vec<Figure> {
    let mut outcomes = cell.valid.iter().chain(&cell.invalid);
    let (Some(outcome), None) = (outcomes.next(), outcomes.next()) else {
        return Vec::new();
    };
    let record = dataset.recording.record(outcome.trial);
    let window_ns = record.map_or(0, |record| record.window_ns);
    let readings = Readings::new(&dataset.recording.samples, outcome.trial, window_ns);
    let flows = cell.workload.flows();
    let sampled = Sampled {
        readings: &readings,
        flows: &flows,
        interval_ns: SAMPLE_NS,
    };
    let strip = |id: &str, title: &str, caption: &str, unit: Unit, curves: Vec<Curve>| {
        let curves: Vec<Curve> = curves
            .into_iter()
            .filter(|curve| !curve.points.is_empty())
            .collect();
        let time = "time in the measured window";
        (!curves.is_empty()).then(|| Figure {
            id: format!("{}-{id}-over-time", experiment.name),
            title: format!("{title} over time"),
            caption: caption.to_owned(),
            x: Axis::new(time, Unit::Nanoseconds, Scale::Linear),
            y: Axis::new(title.to_lowercase(), unit, Scale::Linear),
            curves,
        })
    };
    let count = flows.len() as f64;
    let of_flows = |points: Vec<(f64, f64)>, share: f64| {
        let points = points.into_iter().map(|(at, value)| (at, value * share));
        vec![draw::curve("", Origin::Measured, points)]
    };
    let of_each = match flows.len() {
        1 => "at the sending end",
        _ => "at the sending ends, the mean of the flows",
    };
    let of_all = match flows.len() {
        1 => "of the sending end",
        _ => "of the sending ends, all flows together",
    };
    let trips = sampled.gauges(&[Metric::TcpRtt], sending_end);
    let windows = sampled.gauges(&[Metric::TcpCwnd, Metric::TcpSndMss], sending_end);
    let again = sampled.rates(Metric::TcpRetrans, sending_end);
    let hosts = dataset.hosts().iter().map(|host| &host.name);
    let cpus = hosts.map(|host| {
        let points = busy(&readings, host);
        draw::curve(host.to_string(), Origin::Measured, points)
    });
    [
        strip(
            "round-trip",
            "Round trip",
            &format!("Smoothed round-trip time of TCP, {of_each}."),
            Unit::Nanoseconds,
            of_flows(trips, 1.0 / count),
        ),
        strip(
            "window",
            "Congestion window",
            &format!("Payload that may be in flight, {of_all}."),
            Unit::Bytes,
            of_flows(windows, 1.0),
        ),
        strip(
            "retransmits",
            "Segments retransmitted",
            &format!("Since the point before, {of_all}."),
            Unit::PerSecond,
            of_flows(again, 1.0),
        ),
        strip(
            "cpus",
            "Busy CPUs",
            "CPUs' worth of time that was not idle since the point before; all programs of a host count.",
            describe(name::CPU_BUSY).unit,
            cpus.collect(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the end whose TCP says how sending goes: of transactions the one that asks.
fn sending_end(flow: &FlowPlan) -> End {
    match flow.client_part {
        Part::Requester | Part::Responder => End::Client,
        part => receiving_end(part).other(),
    }
}

/// Returns the busy CPUs of a host between its readings.
fn busy(readings: &Readings<'_>, host: &HostName) -> Vec<(f64, f64)> {
    let whole = readings.on(host, &Subject::Host, Metric::CpuUser).is_some();
    let subjects = readings.subjects().filter(|(subject, on)| {
        let is_wanted = match subject {
            Subject::Host => whole,
            Subject::Cpu(_) => !whole,
            _ => false,
        };
        is_wanted && *on == host
    });
    let mut sums: BTreeMap<i64, (i64, u32)> = BTreeMap::new();
    let mut most = 0;
    for (subject, _) in subjects {
        // What the hypervisor took is none that the host had.
        let taken = BUSY.iter().chain(STEAL);
        for series in taken.filter_map(|metric| readings.on(host, subject, *metric)) {
            most += 1;
            for (at_ns, value) in series {
                let sum = sums.entry(at_ns).or_default();
                *sum = (sum.0.saturating_add(value), sum.1 + 1);
            }
        }
    }
    // One reading of /proc/stat has all of a host's CPUs at one instant.
    let read = sums
        .into_iter()
        .filter(|(at, (_, read))| *at >= 0 && *read == most);
    let read: Vec<(i64, i64)> = read.map(|(at, (sum, _))| (at, sum)).collect();
    let pairs = read
        .windows(2)
        .filter(|pair| pair[1].0 <= readings.window_ns() + SAMPLE_NS);
    pairs
        .map(|pair| {
            let grown = (pair[1].1 - pair[0].1).max(0) as f64;
            (pair[1].0 as f64, grown / (pair[1].0 - pair[0].0) as f64)
        })
        .collect()
}
