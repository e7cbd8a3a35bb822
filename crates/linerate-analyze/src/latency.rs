//! What is told of a distribution of latencies.

use linerate_model::histogram::{Histogram, observations_needed};
use serde::Serialize;

/// A latency distribution; quantiles with too few observations are `null`.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Latency {
    /// Observations.
    pub n: u64,
    /// Mean.
    pub mean_us: Option<f64>,
    /// Median.
    pub p50_us: Option<f64>,
    /// 90th percentile.
    pub p90_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p999_us: Option<f64>,
    /// Longest.
    pub max_us: Option<f64>,
}

impl Latency {
    /// Returns what is told of `histogram`.
    pub(crate) fn of(histogram: &Histogram) -> Self {
        let n = histogram.count();
        let quantile = |q: f64| {
            let value = histogram
                .quantile(q)
                .filter(|_| n >= observations_needed(q));
            value.map(|value| microseconds(value.0))
        };
        Self {
            n,
            mean_us: histogram.mean_ns().map(|mean| mean / 1e3),
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            max_us: histogram.max().map(|max| microseconds(max.0)),
        }
    }
}

pub(crate) fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1e3
}
