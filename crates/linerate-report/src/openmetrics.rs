//! A host's counters as text for Prometheus and its kin: OpenMetrics, or the older plain format.
//!
//! Names and units follow its conventions: prefix `linerate_`, base units (seconds, bytes) with the
//! unit at the end of the name, `_total` after counters. What a sample is about becomes labels.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use linerate_model::metric::{Kind, Metric};
use linerate_model::sample::{Sample, Subject};
use linerate_model::unit::Unit;

/// A format of counters as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0, which knows units.
    OpenMetrics,
    /// The format that all scrapers and people read, version 0.0.4.
    Plain,
}

impl Exposition {
    /// Returns what a reader with this `Accept` header would have: the one that it prefers, the plain
    /// one if it does not say.
    pub fn accepted(accept: &str) -> Self {
        let wish = |kind: &str| {
            let parts = accept.split(',').filter_map(|part| {
                let mut words = part.split(';').map(str::trim);
                words.next().filter(|name| *name == kind)?;
                let weight = words.find_map(|word| word.strip_prefix("q="));
                Some(weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
            });
            parts.fold(0.0, f64::max)
        };
        match wish("application/openmetrics-text") {
            open if open > 0.0 && open >= wish("text/plain") => Self::OpenMetrics,
            _ => Self::Plain,
        }
    }

    /// Returns its content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Returns `samples`, one reading of all observers by linerate `version`, in this format.
    ///
    /// Several samples of one metric and subject give the last of them.
    pub fn text(self, version: &str, samples: &[Sample]) -> String {
        let mut page = String::new();
        let what = "The program that answers.";
        let (name, kind) = match self {
            Self::OpenMetrics => ("linerate_build", "info"),
            Self::Plain => ("linerate_build_info", "gauge"),
        };
        head(&mut page, name, kind, what);
        page += &format!(
            "linerate_build_info{{version=\"{}\"}} 1\n",
            escaped(version)
        );
        let mut by_metric: BTreeMap<Metric, BTreeMap<String, &Sample>> = BTreeMap::new();
        for sample in samples {
            let of_metric = by_metric.entry(sample.metric).or_default();
            of_metric.insert(sample.subject.to_string(), sample);
        }
        for (metric, last) in by_metric {
            self.family(&mut page, metric, last.into_values());
        }
        if self == Self::OpenMetrics {
            page += "# EOF\n";
        }
        page
    }

    /// Writes one metric of all its subjects.
    fn family<'s>(
        self,
        page: &mut String,
        metric: Metric,
        samples: impl Iterator<Item = &'s Sample>,
    ) {
        let Exported { name, unit, per } = exported(metric);
        let (kind, total) = match metric.kind() {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
        };
        match self {
            Self::OpenMetrics => {
                head(page, &name, kind, metric.help());
                if let Some(unit) = unit {
                    *page += &format!("# UNIT {name} {unit}\n");
                }
            }
            // Here a family is called as its samples are.
            Self::Plain => head(page, &format!("{name}{total}"), kind, metric.help()),
        }
        for sample in samples {
            let labels = labels(&sample.subject);
            let value = sample.value as f64 / per;
            // Writing to a String does not fail.
            let _ = writeln!(page, "{name}{total}{labels} {value}");
        }
    }
}

/// Writes what comes before the samples of a family.
fn head(page: &mut String, name: &str, kind: &str, help: &str) {
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    // Writing to a String does not fail.
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// A metric as it is exported.
struct Exported {
    /// Its name with its unit, without `_total`.
    name: String,
    unit: Option<&'static str>,
    /// By what a stored value is divided to be in that unit.
    per: f64,
}

fn exported(metric: Metric) -> Exported {
    let stored = metric.name();
    let bare = |suffix: &str| stored.strip_suffix(suffix).unwrap_or(stored).to_owned();
    let (name, unit, per) = match metric {
        // These are not counted in base units, or have a name that is kept for histograms.
        Metric::NetstatMemoryPressureTime => (bare("_ms"), Some("seconds"), 1e3),
        Metric::ThermalFrequency => (bare("_hz"), Some("hertz"), 1.0),
        Metric::ThermalZone | Metric::ThermalSensor => {
            (bare("_millicelsius"), Some("celsius"), 1e3)
        }
        Metric::ConntrackCount => ("conntrack_entries".to_owned(), None, 1.0),
        Metric::ConntrackMax => ("conntrack_entries_limit".to_owned(), None, 1.0),
        _ => match metric.unit() {
            Unit::Nanoseconds => (bare("_ns"), Some("seconds"), 1e9),
            Unit::Bytes => (stored.replacen("_bytes", "", 1), Some("bytes"), 1.0),
            Unit::BitsPerSecond => (bare("_bps"), Some("bytes_per_second"), 8.0),
            _ => (stored.to_owned(), None, 1.0),
        },
    };
    let name = match unit {
        Some(unit) => format!("linerate_{name}_{unit}"),
        None => format!("linerate_{name}"),
    };
    Exported { name, unit, per }
}

/// Returns what a sample is about as labels.
fn labels(subject: &Subject) -> String {
    let text = subject.to_string();
    match subject {
        Subject::IrqCpu(irq, cpu) => format!("{{irq=\"{irq}\",cpu=\"{cpu}\"}}"),
        _ => match text.split_once(':') {
            None => String::new(),
            Some((kind, rest)) => format!("{{{kind}=\"{}\"}}", escaped(rest)),
        },
    }
}

/// Returns the value of a label as it is written between quotes.
fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
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

    fn page(exposition: Exposition) -> String {
        let samples = [
            sample(Metric::CpuUser, "cpu:0", 1_500_000_000),
            sample(Metric::CpuUser, "cpu:1", 999),
            sample(Metric::CpuUser, "cpu:1", 250_000_000),
            sample(Metric::LinkRxBytes, "link:a\"b", 7),
            sample(Metric::SnmpTcpInSegs, "host", 3),
            sample(Metric::TcpPacingRate, "host", 10),
            sample(Metric::IrqCpuCount, "irq:38:cpu:1", 4),
        ];
        exposition.text("0.1.0", &samples)
    }

    #[track_caller]
    fn has(page: &str, lines: &[&str]) {
        for line in lines {
            assert!(page.lines().any(|one| one == *line), "{line}\n{page}");
        }
    }

    const SAMPLES: [&str; 7] = [
        "linerate_build_info{version=\"0.1.0\"} 1",
        "linerate_cpu_user_seconds_total{cpu=\"0\"} 1.5",
        "linerate_cpu_user_seconds_total{cpu=\"1\"} 0.25",
        "linerate_link_rx_bytes_total{link=\"a\\\"b\"} 7",
        "linerate_snmp_tcp_in_segs_total 3",
        "linerate_tcp_pacing_rate_bytes_per_second 1.25",
        "linerate_irq_cpu_count_total{irq=\"38\",cpu=\"1\"} 4",
    ];

    #[test]
    fn names_units_and_labels_follow_the_conventions() {
        let open = page(Exposition::OpenMetrics);
        has(&open, &SAMPLES);
        let families = [
            "# TYPE linerate_build info",
            "# TYPE linerate_cpu_user_seconds counter",
            "# UNIT linerate_cpu_user_seconds seconds",
            "# TYPE linerate_tcp_pacing_rate_bytes_per_second gauge",
        ];
        has(&open, &families);
        assert!(open.ends_with("# EOF\n"), "{open}");
        let plain = page(Exposition::Plain);
        has(&plain, &SAMPLES);
        let families = [
            "# TYPE linerate_build_info gauge",
            "# TYPE linerate_cpu_user_seconds_total counter",
            "# TYPE linerate_tcp_pacing_rate_bytes_per_second gauge",
        ];
        has(&plain, &families);
        assert!(
            !plain.contains("# UNIT") && !plain.contains("# EOF"),
            "{plain}"
        );
    }

    #[test]
    fn the_reader_chooses() {
        let check = |accept: &str, expected| assert_eq!(Exposition::accepted(accept), expected);
        // Prometheus 2 and 3, curl, a browser.
        check(
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
            Exposition::OpenMetrics,
        );
        check("text/plain;version=0.0.4", Exposition::Plain);
        check(
            "text/plain;q=0.9, application/openmetrics-text;q=0.5",
            Exposition::Plain,
        );
        check("application/openmetrics-text", Exposition::OpenMetrics);
        check("*/*", Exposition::Plain);
        check("", Exposition::Plain);
    }

    #[test]
    fn no_two_metrics_share_a_name() {
        let mut names: Vec<_> = Metric::ALL.iter().map(|one| exported(*one).name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
