//! A host's counters as OpenMetrics text, for Prometheus and its kin.
//!
//! Names and units follow its conventions: prefix `linerate_`, base units (seconds, bytes) with the
//! unit at the end of the name, `_total` after counters. What a sample is about becomes labels.

use linerate_model::metric::{Kind, Metric};
use linerate_model::sample::{Sample, Subject};
use linerate_model::unit::Unit as Measure;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

/// The content type of the text.
pub const OPENMETRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns `samples`, one reading of all observers, as OpenMetrics.
///
/// Several samples of one metric and subject give the last of them.
pub fn openmetrics(samples: &[Sample]) -> String {
    let mut registry = Registry::with_prefix("linerate");
    registry.register_collector(Box::new(Reading(samples.to_vec())));
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = text::encode(&mut page, &registry);
    page
}

/// One reading of all observers.
#[derive(Debug)]
struct Reading(Vec<Sample>);

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for &metric in Metric::ALL {
            let of_metric = || self.0.iter().filter(|sample| sample.metric == metric);
            if of_metric().next().is_none() {
                continue;
            }
            let (name, unit, scale) = name(metric);
            let kind = match metric.kind() {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
            };
            let mut family =
                encoder.encode_descriptor(&name, metric.help(), unit.as_ref(), kind)?;
            let mut last = std::collections::BTreeMap::new();
            for sample in of_metric() {
                last.insert(sample.subject.to_string(), sample);
            }
            for sample in last.values() {
                let labels = labels(&sample.subject);
                let value = sample.value as f64 / scale;
                let one = family.encode_family(&labels)?;
                match metric.kind() {
                    Kind::Counter => ConstCounter::new(value).encode(one)?,
                    Kind::Gauge => ConstGauge::new(value).encode(one)?,
                }
            }
        }
        Ok(())
    }
}

/// Returns a metric's name without prefix, unit and `_total`, its unit, and by what its values are
/// divided to be in that unit.
fn name(metric: Metric) -> (String, Option<Unit>, f64) {
    let name = metric.name();
    let bare = |suffix: &str| name.strip_suffix(suffix).unwrap_or(name).to_owned();
    match metric.unit() {
        Measure::Nanoseconds => (bare("_ns"), Some(Unit::Seconds), 1e9),
        Measure::Bytes => (bare("_bytes"), Some(Unit::Bytes), 1.0),
        Measure::BitsPerSecond => {
            let unit = Unit::Other("bits_per_second".to_owned());
            (bare("_bps"), Some(unit), 1.0)
        }
        _ => (name.to_owned(), None, 1.0),
    }
}

/// Returns what a sample is about as labels.
fn labels(subject: &Subject) -> Vec<(String, String)> {
    if let Subject::IrqCpu(irq, cpu) = subject {
        let label = |kind: &str, number: &u32| (kind.to_owned(), number.to_string());
        return vec![label("irq", irq), label("cpu", cpu)];
    }
    let text = subject.to_string();
    match text.split_once(':') {
        None => Vec::new(),
        Some((kind, rest)) => vec![(kind.to_owned(), rest.to_owned())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(metric: Metric, subject: &str, value: i64) -> Sample {
        Sample {
            metric,
            subject: subject.parse().unwrap(),
            at_ns: 1,
            value,
        }
    }

    #[test]
    fn names_units_and_labels_follow_the_conventions() {
        let page = openmetrics(&[
            sample(Metric::CpuUser, "cpu:0", 1_500_000_000),
            sample(Metric::CpuUser, "cpu:1", 250_000_000),
            sample(Metric::LinkRxBytes, "link:a\"b", 7),
            sample(Metric::SnmpTcpInSegs, "host", 3),
            sample(Metric::TcpPacingRate, "host", 10),
        ]);
        for line in [
            "# TYPE linerate_cpu_user_seconds counter",
            "# UNIT linerate_cpu_user_seconds seconds",
            "linerate_cpu_user_seconds_total{cpu=\"0\"} 1.5",
            "linerate_cpu_user_seconds_total{cpu=\"1\"} 0.25",
            "linerate_link_rx_bytes_total{link=\"a\\\"b\"} 7.0",
            "linerate_snmp_tcp_in_segs_total{} 3.0",
            "# TYPE linerate_tcp_pacing_rate_bits_per_second gauge",
            "linerate_tcp_pacing_rate_bits_per_second{} 10.0",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}\n{page}");
        }
        assert!(page.ends_with("# EOF\n"), "{page}");
    }

    #[test]
    fn no_two_metrics_share_a_name() {
        let mut names: Vec<_> = Metric::ALL
            .iter()
            .map(|metric| {
                let (name, unit, _) = name(*metric);
                (name, unit.map(|unit| unit.as_str().to_owned()))
            })
            .collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
