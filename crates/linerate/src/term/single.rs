//! Lines of a single measurement: intervals as they come, the final block, or JSON.

use linerate_analyze::live::{Interval, Live};
use linerate_analyze::single::{Single, SingleTrial};
use linerate_model::plan::Trial;
use linerate_model::run::{HostRecord, RunDocument};
use linerate_model::sample::TrialSample;
use linerate_model::unit::{Unit, significant};
use linerate_model::workload::{Direction, Part, Traffic, Workload};
use linerate_model::{BitsPerSec, Bytes, Nanos};
use serde::Serialize;

use super::line;
use crate::args::{RateFormat, RunArgs};

/// Flows up to which each has its own interval lines; beyond, only the sum is printed.
const FLOW_LINES_MAX: u32 = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    Text,
    Json,
    JsonStream,
}

/// Prints one measurement.
pub struct SingleLines {
    output: Output,
    format: Option<RateFormat>,
    interval: Nanos,
    live: Option<Live>,
    runs: u32,
}

/// A line of `--json-stream`.
#[derive(Serialize)]
struct EventLine<'a, T: Serialize> {
    event: &'a str,
    data: T,
}

fn json_line<T: Serialize>(event: &str, data: T) {
    // Plain values with text keys: there is no failing serializer among them.
    if let Ok(text) = serde_json::to_string(&EventLine { event, data }) {
        line(&text);
    }
}

impl SingleLines {
    /// Returns a printer for what `args` ask for.
    pub fn new(args: &RunArgs, interval: Nanos) -> Self {
        let output = match (args.output.json, args.output.json_stream) {
            (true, _) => Output::Json,
            (_, true) => Output::JsonStream,
            _ => Output::Text,
        };
        Self {
            output,
            format: args.output.format,
            interval,
            live: None,
            runs: args.time.runs,
        }
    }

    /// Tells what is going to be measured.
    pub fn start(&self, document: &RunDocument) {
        let Some(trial) = document.plan.trials.first() else {
            return;
        };
        match self.output {
            Output::Json => {}
            Output::JsonStream => json_line(
                "start",
                serde_json::json!({
                    "schema": "linerate.run", "schema_version": linerate_analyze::single::SINGLE_SCHEMA_VERSION,
                    "run": document.run, "started_utc": document.started_utc,
                    "workload": trial.workload, "timing": trial.timing,
                    "hosts": document.hosts.iter().map(|host| host.name.0.as_str()).collect::<Vec<_>>(),
                }),
            ),
            Output::Text => {
                line(&describe(&trial.workload, document.server()));
                for left_out in &document.left_out {
                    super::note(&format!("{}: {}", left_out.what, left_out.why));
                }
            }
        }
    }

    /// Takes up the begin of a trial.
    pub fn begins(&mut self, trial: &Trial, over: usize) {
        self.live = (self.interval.0 > 0).then(|| Live::new(trial, self.interval));
        if self.output != Output::Text || self.live.is_none() {
            return;
        }
        if self.runs > 1 {
            line(&format!("\nrun {} of {}", over + 1, self.runs));
        }
        let what = match trial.workload.traffic {
            Traffic::Rr { .. } | Traffic::Crr { .. } => "  transactions            rate",
            Traffic::Stream { .. } | Traffic::Idle => "      transfer            rate",
        };
        line(&format!(
            " flow  interval         {what}   retr       cwnd        rtt"
        ));
    }

    /// Takes up new samples and prints the intervals that they complete.
    pub fn look(&mut self, samples: &[TrialSample]) {
        let Some(live) = &mut self.live else { return };
        live.add(samples);
        for lines in live.poll() {
            match self.output {
                Output::Json => {}
                Output::JsonStream => json_line("interval", &lines),
                Output::Text => print_interval(&lines, self.format),
            }
        }
    }

    /// Prints the result.
    pub fn end(&self, single: &Single) {
        match self.output {
            Output::Json => {
                if let Ok(text) = serde_json::to_string_pretty(single) {
                    line(&text);
                }
            }
            Output::JsonStream => json_line("end", single),
            Output::Text => self.print_end(single),
        }
    }

    fn print_end(&self, single: &Single) {
        for (at, trial) in single.trials.iter().enumerate() {
            line("");
            if single.trials.len() > 1 {
                line(&format!("run {}", at + 1));
            }
            print_trial(trial, self.format);
        }
        let summary = across(single);
        if let Some(summary) = summary {
            line(&summary);
        }
        for finding in &single.findings {
            line(&format!("found           {}", finding.claim));
        }
        if let Some(partial) = &single.partial {
            line(&format!("partial         {partial}"));
        }
    }
}

fn describe(workload: &Workload, server: Option<&HostRecord>) -> String {
    let what = match &workload.traffic {
        Traffic::Stream {
            direction,
            message_bytes,
        } => {
            let way = match direction {
                Direction::ToServer => "to the server",
                Direction::FromServer => "from the server",
                Direction::Both => "both ways",
            };
            format!("TCP stream {way}, {message_bytes} per send call")
        }
        Traffic::Rr {
            request_bytes,
            response_bytes,
            ..
        } => {
            format!("TCP request/response, {request_bytes} / {response_bytes}")
        }
        Traffic::Crr {
            request_bytes,
            response_bytes,
        } => {
            format!("TCP connect/request/response, {request_bytes} / {response_bytes}")
        }
        Traffic::Idle => "idle TCP connections".to_owned(),
    };
    let flows = if workload.connections == 1 {
        "flow"
    } else {
        "flows"
    };
    let server = server.map_or("?", |host| host.agent.as_str());
    format!(
        "linerate {} → {server}: {what}, {} {flows}",
        env!("CARGO_PKG_VERSION"),
        workload.connections
    )
}

fn print_interval(lines: &[Interval], format: Option<RateFormat>) {
    let flows = lines.len() as u32 - u32::from(lines.len() > 1);
    for interval in lines {
        let is_sum = interval.flow.is_none();
        if !is_sum && flows > FLOW_LINES_MAX {
            continue;
        }
        let name = interval
            .flow
            .map_or_else(|| "sum".to_owned(), |flow| flow.to_string());
        let (volume, rate) = match (interval.transactions, interval.transactions_per_second) {
            (Some(count), Some(rate)) => (
                Unit::Count.display(count as f64),
                Unit::PerSecond.display(rate),
            ),
            _ => (
                Bytes(interval.bytes).to_string(),
                rate_words(interval.bits_per_second, format),
            ),
        };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        line(&format!(
            "{name:>5}  {:>6.1}–{:<6.1} s  {volume:>14}  {rate:>14}  {:>5}  {:>9}  {:>9}",
            interval.begin_s,
            interval.end_s,
            or_dash(interval.retransmits.map(|count| count.to_string())),
            or_dash(
                interval
                    .snd_cwnd_bytes
                    .map(|bytes| Bytes(bytes).to_string())
            ),
            or_dash(
                interval
                    .rtt_us
                    .map(|rtt| Nanos((rtt * 1e3) as u64).to_string())
            ),
        ));
    }
}

/// Writes a rate with the prefix that `-f` asks for, or the one that fits.
fn rate_words(bits_per_second: f64, format: Option<RateFormat>) -> String {
    let bytes = bits_per_second / 8.0;
    let (value, unit) = match format {
        None => return BitsPerSec(bits_per_second).to_string(),
        Some(RateFormat::Kbit) => (bits_per_second / 1e3, "kbit/s"),
        Some(RateFormat::Mbit) => (bits_per_second / 1e6, "Mbit/s"),
        Some(RateFormat::Gbit) => (bits_per_second / 1e9, "Gbit/s"),
        Some(RateFormat::Tbit) => (bits_per_second / 1e12, "Tbit/s"),
        Some(RateFormat::KiByte) => (bytes / 1024.0, "KiB/s"),
        Some(RateFormat::MiByte) => (bytes / 1024f64.powi(2), "MiB/s"),
        Some(RateFormat::GiByte) => (bytes / 1024f64.powi(3), "GiB/s"),
        Some(RateFormat::TiByte) => (bytes / 1024f64.powi(4), "TiB/s"),
    };
    format!("{} {unit}", significant(value))
}

fn print_trial(trial: &SingleTrial, format: Option<RateFormat>) {
    if let Some(why) = &trial.invalid {
        line(&format!("INVALID         {why}"));
    }
    let of = |name: &str| trial.responses.get(name).copied();
    let time = |name: &str| of(name).map(|ns| Unit::Nanoseconds.display(ns));
    if let Some(rate) = of("transactions_per_s") {
        line(&format!(
            "completed       {}",
            Unit::PerSecond
                .display(rate)
                .replace("/s", " transactions/s")
        ));
        let quantiles = [
            ("p50", "rtt_p50_ns"),
            ("p99", "rtt_p99_ns"),
            ("p99.9", "rtt_p999_ns"),
            ("longest", "rtt_max_ns"),
        ];
        let words: Vec<String> = quantiles
            .into_iter()
            .filter_map(|(label, name)| time(name).map(|value| format!("{label} {value}")))
            .collect();
        line(&format!("round trip      {}", words.join(", ")));
    } else if let Some(rate) = of("throughput_bps") {
        line(&format!("received        {}", rate_words(rate, format)));
        let ways = [
            ("to server", "throughput_to_server_bps"),
            ("from server", "throughput_from_server_bps"),
        ];
        if ways.iter().all(|(_, name)| of(name).is_some()) {
            for (label, name) in ways {
                line(&format!(
                    "  {label:<11} {}",
                    rate_words(of(name).unwrap_or_default(), format)
                ));
            }
        }
    }
    let skew = trial
        .start_skew_us
        .filter(|_| trial.flows.len() > 2)
        .map_or(String::new(), |skew| {
            format!(
                ", flows began within {} (± {})",
                Nanos((skew * 1e3) as u64),
                Nanos((trial.start_skew_uncertainty_us.unwrap_or(0.0) * 1e3) as u64)
            )
        });
    line(&format!(
        "window          {} s, the same on every host{skew}",
        significant(trial.window_s)
    ));
    print_tcp(trial);
    print_cpu(trial);
    print_settings(trial);
    for flag in &trial.flags {
        line(&format!("note            {flag}"));
    }
}

fn print_tcp(trial: &SingleTrial) {
    let of = |name: &str| trial.responses.get(name).copied();
    let mut words = Vec::new();
    if let Some(count) = of("retransmitted_segments") {
        words.push(format!(
            "{} segments sent again",
            Unit::Count.display(count)
        ));
    }
    if let Some(bytes) = of("payload_per_segment_bytes") {
        words.push(format!("{} a data segment", Unit::Bytes.display(bytes)));
    }
    if let Some(count) = of("data_segments_per_ack") {
        words.push(format!("{} data segments an ACK", significant(count)));
    }
    if !words.is_empty() {
        line(&format!("TCP             {}", words.join(", ")));
    }
}

fn print_cpu(trial: &SingleTrial) {
    let of = |name: &str| trial.responses.get(name).copied();
    if let Some(busy) = of("worker_busy_share_max") {
        line(&format!(
            "generator       busiest worker ran {} of the time",
            Unit::Percent.display(busy * 100.0)
        ));
    }
    if let Some(busy) = of("cpu_busy_cpus") {
        let part =
            |name: &str, label: &str| of(name).map(|cpus| format!("{label} {}", significant(cpus)));
        let parts: Vec<String> = [
            ("cpu_usr_cpus", "user"),
            ("cpu_sys_cpus", "system"),
            ("cpu_softirq_cpus", "softirq"),
            ("cpu_irq_cpus", "irq"),
            ("cpu_steal_cpus", "stolen"),
        ]
        .into_iter()
        .filter_map(|(name, label)| part(name, label))
        .collect();
        line(&format!(
            "CPUs busy       {} ({})",
            significant(busy),
            parts.join(", ")
        ));
    }
}

/// Settings that were asked for, and the congestion control in force, from the sending end.
fn print_settings(trial: &SingleTrial) {
    let sending = trial
        .flows
        .iter()
        .find(|flow| matches!(flow.part, Part::Sender | Part::Requester));
    let Some(flow) = sending else { return };
    for setting in &flow.settings {
        if setting.requested.is_none() && setting.name != "TCP_CONGESTION" {
            continue;
        }
        let words = [
            setting
                .requested
                .as_ref()
                .map(|value| format!("requested {value}")),
            setting
                .granted
                .as_ref()
                .map(|value| format!("granted {value}")),
            setting
                .effective
                .as_ref()
                .map(|value| format!("effective {value}")),
            setting
                .capped_by
                .as_ref()
                .map(|value| format!("capped by {value}")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        line(&format!("{:<16}{}", setting.name, words.join(", ")));
    }
}

/// Mean and interval over several runs.
fn across(single: &Single) -> Option<String> {
    let valid: Vec<f64> = single
        .trials
        .iter()
        .filter(|trial| trial.valid)
        .filter_map(|trial| {
            trial
                .responses
                .get("transactions_per_s")
                .or(trial.responses.get("throughput_bps"))
                .copied()
        })
        .collect();
    let rr = single
        .trials
        .iter()
        .any(|trial| trial.responses.contains_key("transactions_per_s"));
    let unit = if rr {
        Unit::PerSecond
    } else {
        Unit::BitsPerSecond
    };
    let estimate = linerate_analyze::student_t_interval(&valid, unit)?;
    let (low, high) = (estimate.low?, estimate.high?);
    Some(format!(
        "\nmean            {} (95 % interval {} to {}, n = {})",
        unit.display(estimate.value),
        unit.display(low),
        unit.display(high),
        valid.len()
    ))
}
