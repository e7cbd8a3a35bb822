//! Throughput over time of a single cell.

use std::collections::BTreeMap;

use linerate_model::analysis::{Axis, Curve, Figure, Origin, Scale};
use linerate_model::experiment::Experiment;
use linerate_model::metric::Metric;
use linerate_model::sample::End;
use linerate_model::unit::Unit;
use linerate_model::workload::{FlowPlan, receiving_end};

use super::draw;
use crate::dataset::{CellOutcomes, Dataset};
use crate::reduce::{Outcome, Readings};

/// Time between two samples of a flow, where nothing else was asked for.
pub(super) const SAMPLE_NS: i64 = 100_000_000;
/// Points of a curve; a screen shows no more, and a report stays small for a run of hours.
const POINTS_MAX: i64 = 600;

/// Returns the rate of the cell's payload or transactions over the measured window, a curve for
/// each trial; absent when nothing was sampled.
pub(super) fn figure(
    dataset: &Dataset<'_>,
    experiment: &Experiment,
    cell: &CellOutcomes<'_>,
) -> Option<Figure> {
    let outcomes = cell.valid.iter().chain(&cell.invalid);
    let curves: Vec<Curve> = outcomes
        .map(|outcome| curve(dataset, cell, outcome))
        .filter(|curve| !curve.points.is_empty())
        .collect();
    let (label, unit) = if cell.is_rr() {
        ("transactions per second", Unit::PerSecond)
    } else {
        ("throughput", Unit::BitsPerSecond)
    };
    (!curves.is_empty()).then(|| Figure {
        id: format!("{}-over-time", experiment.name),
        title: format!("{} over time", draw::sentence(label)),
        caption: "Each point is the mean since the point before, at the receiving end.".to_owned(),
        x: Axis::new(
            "time in the measured window",
            Unit::Nanoseconds,
            Scale::Linear,
        ),
        y: Axis::new(label.to_owned(), unit, Scale::Linear),
        curves,
    })
}

fn curve(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>, outcome: &Outcome) -> Curve {
    let record = dataset.recording.record(outcome.trial);
    let window_ns = record.map_or(0, |record| record.window_ns);
    let readings = Readings::new(&dataset.recording.samples, outcome.trial, window_ns);
    let (metrics, scale): (&[Metric], f64) = match cell.is_rr() {
        true => (&[Metric::AppTransactions], 1.0),
        // As the throughput: what TCP took in, where it says so.
        false if cell.workload.manner.transport.is_tcp() => {
            (&[Metric::TcpBytesReceived, Metric::AppBytesReceived], 8.0)
        }
        false => (&[Metric::AppBytesReceived], 8.0),
    };
    let invalid = if outcome.is_valid() { "" } else { " (invalid)" };
    let receiving = |flow: &FlowPlan| receiving_end(flow.client_part);
    let flows = cell.workload.flows();
    let sampled = Sampled {
        readings: &readings,
        flows: &flows,
        interval_ns: SAMPLE_NS,
    };
    let points = metrics
        .iter()
        .map(|metric| sampled.rates(*metric, receiving))
        .find(|points| !points.is_empty())
        .unwrap_or_default();
    draw::curve(
        format!("trial {}{invalid}", outcome.trial),
        Origin::Measured,
        points
            .into_iter()
            .map(|(at_ns, rate)| (at_ns, scale * rate)),
    )
}

/// The readings of a trial's flows, and how far apart in time they are looked at.
pub(super) struct Sampled<'a> {
    pub readings: &'a Readings<'a>,
    pub flows: &'a [FlowPlan],
    pub interval_ns: i64,
}

impl Sampled<'_> {
    /// Sums the products of these metrics of one end of the flows at each nominal instant of sampling at which all of
    /// them were read.
    pub(super) fn gauges(
        &self,
        metrics: &[Metric],
        end: impl Fn(&FlowPlan) -> End,
    ) -> Vec<(f64, f64)> {
        let (steps, stride) = self.steps();
        let mut sums: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
        for flow in self.flows {
            let mut products: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
            for metric in metrics {
                let series = self.readings.flow(flow.flow, end(flow), *metric);
                for (at_ns, value) in series.unwrap_or_default() {
                    let product = products.entry(self.nominal(at_ns)).or_insert((1.0, 0));
                    *product = (product.0 * value as f64, product.1 + 1);
                }
            }
            let whole = products.into_iter().filter(|(at, (_, read))| {
                (0..=steps).contains(at) && at % stride == 0 && *read == metrics.len()
            });
            for (at, (product, _)) in whole {
                let sum = sums.entry(at).or_default();
                *sum = (sum.0 + product, sum.1 + 1);
            }
        }
        self.of_all(sums)
    }

    /// Returns how many nominal instants the window has, and every how many of them one is shown.
    fn steps(&self) -> (i64, i64) {
        let steps = self.readings.window_ns() / self.interval_ns;
        (steps, ((steps + POINTS_MAX - 1) / POINTS_MAX).max(1))
    }

    /// Returns of readings at any instant those of the window at nominal instants, the last at each.
    pub(super) fn nominal_points(&self, readings: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
        let (steps, stride) = self.steps();
        let placed = readings
            .into_iter()
            .map(|(at_ns, value)| (self.nominal(at_ns as i64), value));
        let shown: BTreeMap<i64, f64> = placed
            .filter(|(at, _)| (0..=steps).contains(at) && at % stride == 0)
            .collect();
        let at_ns = |at: i64| (at * self.interval_ns) as f64;
        shown
            .into_iter()
            .map(|(at, value)| (at_ns(at), value))
            .collect()
    }

    fn nominal(&self, at_ns: i64) -> i64 {
        at_ns
            .saturating_add(self.interval_ns / 2)
            .div_euclid(self.interval_ns)
    }

    /// Returns the sums of those instants at which all flows were read.
    fn of_all(&self, sums: BTreeMap<i64, (f64, usize)>) -> Vec<(f64, f64)> {
        sums.into_iter()
            .filter(|(_, (_, read))| *read == self.flows.len())
            .map(|(at, (sum, _))| ((at * self.interval_ns) as f64, sum))
            .collect()
    }

    /// Sums the rates of one end of the flows at each nominal instant of sampling at which all of
    /// them were read.
    pub(super) fn rates(&self, metric: Metric, end: impl Fn(&FlowPlan) -> End) -> Vec<(f64, f64)> {
        let (steps, stride) = self.steps();
        let mut sums: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
        for flow in self.flows {
            let Some(series) = self.readings.arrived(flow.flow, end(flow), metric) else {
                return Vec::new();
            };
            let by_instant: BTreeMap<i64, (i64, i64)> = series
                .iter()
                .map(|reading| (self.nominal(reading.0), *reading))
                .filter(|(at, _)| *at >= 0 && *at <= steps && at % stride == 0)
                .collect();
            let readings: Vec<_> = by_instant.into_iter().collect();
            for pair in readings.windows(2) {
                let (before, (at, now)) = (pair[0].1, pair[1]);
                let grown = now.1.checked_sub(before.1).filter(|grown| *grown >= 0);
                if let Some(grown) = grown.filter(|_| now.0 > before.0) {
                    let sum = sums.entry(at).or_default();
                    sum.0 += grown as f64 * 1e9 / (now.0 - before.0) as f64;
                    sum.1 += 1;
                }
            }
        }
        self.of_all(sums)
    }
}
