//! What the samples of a single measurement say beside its rate, below it on the same axis of time: round trip,
//! congestion window, segments sent again, queues, and busy CPUs. Where the rate falls deep, what else stands out then.
//!
//! Of several trials there is none: their strips would be four times as many.

use std::collections::BTreeMap;

use linerate_model::analysis::{Axis, Curve, Figure, Origin, Position, Scale};
use linerate_model::experiment::Experiment;
use linerate_model::metric::Metric;
use linerate_model::response::{describe, name};
use linerate_model::sample::{End, Subject};
use linerate_model::unit::Unit;
use linerate_model::workload::{FlowPlan, Part, receiving_end};
use linerate_model::{HostName, TrialId};

use super::draw;
use super::series::{SAMPLE_NS, Sampled};
use crate::compare::interval::median;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::cpu_time::{BUSY, STEAL};
use crate::reduce::{INGRESS_MAJOR, Readings};
use crate::words;

/// Share of its median below which a rate is told to have fallen, and a window: a loss halves that of Reno
/// (RFC 5681), so that less is more than one loss; and its inverse, above which something stands out.
const DEEP_SHARE: f64 = 0.5;

/// Points, the first and the last left out, below which a median says little of the course.
const POINTS_MIN: usize = 8;

/// A position in the window in nanoseconds, and a value.
type Points = Vec<(f64, f64)>;

/// What is drawn below the rate.
struct Strips {
    round_trip: Points,
    window: Points,
    retransmitted: Points,
    unsent: Points,
    /// What waits in the fullest queueing discipline of a sending host.
    qdisc: Points,
    busy: Vec<(String, Points)>,
}

/// Returns `course`, the rate over time, and below it the strips of the cell's only trial, as far as each was sampled.
pub(super) fn figures(
    dataset: &Dataset<'_>,
    experiment: &Experiment,
    cell: &CellOutcomes<'_>,
    course: Option<Figure>,
) -> Vec<Figure> {
    let mut outcomes = cell.valid.iter().chain(&cell.invalid);
    let (Some(outcome), None) = (outcomes.next(), outcomes.next()) else {
        return course.into_iter().collect();
    };
    let flows = cell.workload.flows();
    let strips = Strips::of(dataset, outcome.trial, &flows);
    let course = course.map(|mut course| {
        // The only trial needs no name, but what it is not to be used for.
        if outcome.is_valid() {
            course
                .curves
                .iter_mut()
                .for_each(|curve| curve.name.clear());
        }
        strips.mark(course)
    });
    let mut figures: Vec<Figure> = course
        .into_iter()
        .chain(strips.figures(experiment, flows.len()))
        .collect();
    if figures.len() > 1 {
        for figure in &mut figures {
            figure.x.shared = true;
        }
    }
    figures
}

impl Strips {
    fn of(dataset: &Dataset<'_>, trial: TrialId, flows: &[FlowPlan]) -> Self {
        let record = dataset.recording.record(trial);
        let window_ns = record.map_or(0, |record| record.window_ns);
        let readings = Readings::new(&dataset.recording.samples, trial, window_ns);
        let sampled = Sampled {
            readings: &readings,
            flows,
            interval_ns: SAMPLE_NS,
        };
        let records = || dataset.recording.flows_of(trial);
        let is_sending = |flow: &FlowPlan, end: End| sending_end(flow) == end;
        let sends = |host: &HostName| {
            records().any(|record| {
                let mut own = flows.iter().filter(|flow| flow.flow == record.flow);
                record.host == *host && own.any(|flow| is_sending(flow, record.end))
            })
        };
        let mean = |points: Points| {
            let count = flows.len() as f64;
            points
                .into_iter()
                .map(|(at, sum)| (at, sum / count))
                .collect()
        };
        let hosts = dataset.hosts().iter().map(|host| &host.name);
        Self {
            round_trip: mean(sampled.gauges(&[Metric::TcpRtt], sending_end)),
            window: sampled.gauges(&[Metric::TcpCwnd, Metric::TcpSndMss], sending_end),
            retransmitted: sampled.rates(Metric::TcpRetrans, sending_end),
            unsent: sampled.gauges(&[Metric::TcpNotSent], sending_end),
            qdisc: sampled.nominal_points(waiting(&readings, sends)),
            busy: hosts
                .map(|host| {
                    (
                        host.to_string(),
                        sampled.nominal_points(busy(&readings, host)),
                    )
                })
                .collect(),
        }
    }

    fn figures(&self, experiment: &Experiment, flows: usize) -> Vec<Figure> {
        let strip =
            |id: &str, title: &str, caption: &str, unit: Unit, curves: Vec<(&str, &Points)>| {
                let curves: Vec<Curve> = curves
                    .into_iter()
                    .filter(|(_, points)| !points.is_empty())
                    .map(|(name, points)| {
                        draw::curve(name, Origin::Measured, points.iter().copied())
                    })
                    .collect();
                let time = "time in the measured window";
                (!curves.is_empty()).then(|| Figure {
                    id: format!("{}-{id}-over-time", experiment.name),
                    title: format!("{title} over time"),
                    caption: caption.to_owned(),
                    x: Axis::new(time, Unit::Nanoseconds, Scale::Linear),
                    y: Axis::new(words::clause(title), unit, Scale::Linear),
                    curves,
                })
            };
        let (of_each, of_all) = match flows {
            1 => ("at the sending end", "of the sending end"),
            _ => (
                "at the sending ends, the mean of the flows",
                "of the sending ends, all flows together",
            ),
        };
        let busy = self.busy.iter();
        [
            strip(
                "round-trip",
                "Round trip",
                &format!("Smoothed round-trip time of TCP, {of_each}."),
                Unit::Nanoseconds,
                vec![("", &self.round_trip)],
            ),
            strip(
                "window",
                "Congestion window",
                &format!("Payload that may be in flight, {of_all}."),
                Unit::Bytes,
                vec![("", &self.window)],
            ),
            strip(
                "retransmits",
                "Segments retransmitted",
                &format!("Since the point before, {of_all}."),
                Unit::PerSecond,
                vec![("", &self.retransmitted)],
            ),
            strip(
                "queues",
                "Sending queues",
                &format!("Bytes that wait to be sent: payload in the sockets' buffers {of_all}, and frames in the \
                          fullest qdisc of the sending host."),
                Unit::Bytes,
                vec![("in the sockets", &self.unsent), ("in the qdisc", &self.qdisc)],
            ),
            strip(
                "cpus",
                "Busy CPUs",
                "CPUs' worth of time that was not idle since the point before; all programs of a host count.",
                describe(name::CPU_BUSY).unit,
                busy.map(|(host, points)| (host.as_str(), points)).collect(),
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Marks the deepest fall of the rate, if it fell deep, and says what else stands out at the same time.
    fn mark(&self, mut course: Figure) -> Figure {
        let rate = course.curves.first().map(|curve| curve.points.iter());
        let rate: Points = rate
            .into_iter()
            .flatten()
            .filter_map(|point| match point.x {
                Position::Number(at) => Some((at, point.y)),
                Position::Name(_) => None,
            })
            .collect();
        let Some(fall) = deepest(&rate) else {
            return course;
        };
        let unit = course.y.unit;
        let what = words::number(unit, fall.value);
        let usual = words::number(unit, fall.median);
        let at = words::number(Unit::Nanoseconds, fall.at_ns);
        let others = match self.standing_out(fall.at_ns).as_slice() {
            [] => "nothing else that was sampled stands out then".to_owned(),
            parts => format!("at that time {}", words::list(parts)),
        };
        course.caption += &format!(
            " The lowest point is {what} at {at}, against {usual} in the median: {others}."
        );
        let mut mark = draw::curve("lowest", Origin::Measured, [(fall.at_ns, fall.value)]);
        for point in &mut mark.points {
            point.note.clone_from(&others);
        }
        for curve in course
            .curves
            .iter_mut()
            .filter(|curve| curve.name.is_empty())
        {
            curve.name.clone_from(&course.y.label);
        }
        course.curves.push(mark);
        course
    }

    /// Returns what stands out at an instant, or at the one before, against its own median.
    fn standing_out(&self, at_ns: f64) -> Vec<String> {
        let near = |points: &Points| -> Vec<f64> {
            let apart = 1.5 * SAMPLE_NS as f64;
            let near = points
                .iter()
                .filter(|(at, _)| (0.0..apart).contains(&(at_ns - at)));
            near.map(|(_, value)| *value).collect()
        };
        let usual = |points: &Points| {
            let mut values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
            median(&mut values)
        };
        let against = |what: &str, unit: Unit, value: f64, usual: f64| {
            let [value, usual] = [value, usual].map(|value| words::number(unit, value));
            format!("{what} is {value} (median {usual})")
        };
        let high = |what: &str, unit: Unit, points: &Points| {
            let most = near(points).into_iter().max_by(f64::total_cmp)?;
            let usual = usual(points)?;
            (most > usual / DEEP_SHARE).then(|| against(what, unit, most, usual))
        };
        let low = |what: &str, unit: Unit, points: &Points| {
            let least = near(points).into_iter().min_by(f64::total_cmp)?;
            let usual = usual(points)?;
            (least < usual * DEEP_SHARE).then(|| against(what, unit, least, usual))
        };
        let again = "the rate of segments retransmitted";
        let mut found: Vec<String> = [
            high(again, Unit::PerSecond, &self.retransmitted),
            low("the congestion window", Unit::Bytes, &self.window),
            high("the round trip", Unit::Nanoseconds, &self.round_trip),
        ]
        .into_iter()
        .flatten()
        .collect();
        found.extend(self.busy.iter().filter_map(|(host, points)| {
            let what = format!("the CPU time of {host}");
            let unit = describe(name::CPU_BUSY).unit;
            high(&what, unit, points).or_else(|| low(&what, unit, points))
        }));
        found
    }
}

/// The deepest fall of a rate.
#[derive(Debug, PartialEq)]
struct Fall {
    at_ns: f64,
    value: f64,
    median: f64,
}

/// Returns the lowest point of a rate where it is deep; its ends, where traffic begins and stops, do not count.
fn deepest(rate: &Points) -> Option<Fall> {
    let [_, inner @ .., _] = rate.as_slice() else {
        return None;
    };
    if inner.len() < POINTS_MIN {
        return None;
    }
    let mut values: Vec<f64> = inner.iter().map(|(_, value)| *value).collect();
    let median = median(&mut values)?;
    let lowest = inner.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    (lowest.1 < DEEP_SHARE * median).then_some(Fall {
        at_ns: lowest.0,
        value: lowest.1,
        median,
    })
}

/// Returns the bytes that wait in the fullest queueing discipline of the hosts that send.
fn waiting(readings: &Readings<'_>, sends: impl Fn(&HostName) -> bool) -> Points {
    let mut most: BTreeMap<i64, i64> = BTreeMap::new();
    for (subject, host) in readings.subjects() {
        let Subject::Qdisc(_, id) = subject else {
            continue;
        };
        if id.0 >> 16 == INGRESS_MAJOR || !sends(host) {
            continue;
        }
        let series = readings.on(host, subject, Metric::QdiscBacklogBytes);
        for (at_ns, bytes) in series.unwrap_or_default() {
            let known = most.entry(at_ns).or_insert(bytes);
            *known = (*known).max(bytes);
        }
    }
    most.into_iter()
        .map(|(at_ns, bytes)| (at_ns as f64, bytes as f64))
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
fn busy(readings: &Readings<'_>, host: &HostName) -> Points {
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
