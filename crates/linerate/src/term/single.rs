//! Lines of a single measurement: intervals as they come, the final block, or JSON.

use std::ops::RangeInclusive;

use linerate_agent::foreign::iperf3_peer::{Iperf3Peer, ServerOutput};
use linerate_analyze::live::{Interval, Live};
use linerate_analyze::single::{Shown, Single};
use linerate_controller::RunEvent;
use linerate_model::Nanos;
use linerate_model::plan::Trial;
use linerate_model::run::{Recording, RunDocument};
use linerate_model::sample::FLOWS_IN_FULL;
use linerate_model::samples::Samples;
use linerate_model::unit::Unit;

/// What the traffic cost, and what the CPUs did.
mod cost;
/// What became of datagrams.
mod datagrams;
/// What is going to be measured.
mod heading;
/// The final block.
mod result;

use super::{json_document, json_line, line};
use crate::iperf3::Iperf3Lines;

/// Flows up to which each has its own interval lines; beyond, only the sum is printed.
const FLOW_LINES_MAX: u32 = 16;

/// How one measurement is shown.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// Lines for people, or documents.
    pub form: Form,
    /// Whether the documents are those of iperf3, and printed in any form.
    pub iperf3: bool,
    /// The unit of rates; what fits where none is asked for.
    pub rate_unit: Option<RateUnit>,
    /// Time between interval lines; 0 = none.
    pub interval: Nanos,
    /// Whether documents show every flow in full, however many there are.
    pub all_flows: bool,
}

impl Output {
    /// Returns what the result itself shows: of intervals only what lines have not shown, and those of
    /// thousands of flows are most of a document.
    pub fn of_result(&self) -> Shown {
        Shown {
            interval: match self.form {
                Form::Text => Nanos(0),
                Form::Json | Form::JsonStream => self.interval,
            },
            all_flows: self.all_flows,
        }
    }
}

/// Lines for people, or documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Lines for people.
    Text,
    /// One document.
    Json,
    /// A line for each event.
    JsonStream,
}

/// A unit of rates.
#[derive(Debug, Clone, Copy)]
pub struct RateUnit {
    /// As it is written.
    pub name: &'static str,
    /// How much one of it is.
    pub bits_per_second: f64,
}

/// Hands `event` to `reader`; that a host is waited for is a note, whatever it shows.
pub fn show(reader: &mut dyn Reader, event: &RunEvent<'_>) {
    if let RunEvent::HostLost { host, wait } = event {
        super::note(&super::lost(host, *wait));
    }
    reader.take(event);
}

/// Shows one measurement: its events as they come, and in the end what follows from them.
pub trait Reader {
    /// Takes up an event.
    fn take(&mut self, event: &RunEvent<'_>);
    /// Shows the result.
    fn conclude(&mut self, conclusion: &Conclusion<'_>);
}

/// What a measurement came to.
pub struct Conclusion<'a> {
    /// What was recorded.
    pub recording: &'a Recording,
    /// Its result.
    pub single: &'a Single<'a>,
    /// The server, if it is no agent.
    pub peer: Option<&'a Iperf3Peer>,
    /// Why it is not all that was asked for.
    pub failure: Option<&'a str>,
}

/// Returns who shows a measurement that is repeated `runs` times.
pub fn reader(output: Output, runs: RangeInclusive<u32>) -> Box<dyn Reader> {
    let interval = output.interval;
    let flows_max = if output.all_flows {
        u32::MAX
    } else {
        FLOWS_IN_FULL
    };
    match output.form {
        form if output.iperf3 => Box::new(Iperf3Lines::new(form == Form::JsonStream, interval)),
        Form::Text => Box::new(TextLines {
            rate_unit: output.rate_unit,
            runs,
            intervals: Intervals::new(interval, FLOW_LINES_MAX),
        }),
        Form::Json => Box::new(JsonDocument),
        Form::JsonStream => Box::new(JsonLines {
            intervals: Intervals::new(interval, flows_max),
        }),
    }
}

/// Lines for people.
struct TextLines {
    rate_unit: Option<RateUnit>,
    runs: RangeInclusive<u32>,
    intervals: Intervals,
}

/// A line of JSON for each event.
struct JsonLines {
    intervals: Intervals,
}

/// One document at the end.
struct JsonDocument;

/// What cuts the trials of a run into intervals as their samples come.
struct Intervals {
    interval: Nanos,
    /// Flows up to which each is told; of more, only their sum.
    flows_max: u32,
    /// Whether nothing is read at the server.
    foreign: bool,
    /// Of the present trial, where intervals are wanted.
    live: Option<Live>,
}

impl Intervals {
    fn new(interval: Nanos, flows_max: u32) -> Self {
        Self {
            interval,
            flows_max,
            foreign: false,
            live: None,
        }
    }

    /// Takes up an event and shows the intervals that it completes.
    fn take(&mut self, event: &RunEvent<'_>, mut show: impl FnMut(&[Interval])) {
        match event {
            RunEvent::RunBegan(document) => {
                let server = document.server();
                self.foreign = server.is_some_and(|server| server.foreign.is_some());
            }
            RunEvent::TrialBegan { trial, .. } => {
                let is_summed = trial.workload.connections > self.flows_max;
                self.live = (self.interval.0 > 0).then(|| {
                    let live = Live::new(trial, self.interval).with_server(trial, self.foreign);
                    if is_summed { live.summed() } else { live }
                });
            }
            RunEvent::Samples { hosts, .. } => {
                if let Some(live) = &mut self.live {
                    live.add(hosts.iter().flat_map(Samples::of_flows));
                }
            }
            RunEvent::TrialEnded { .. } => {
                if let Some(live) = &mut self.live {
                    live.finish();
                }
            }
            RunEvent::HostLost { .. } | RunEvent::PlanChanged(_) | RunEvent::RunEnded(_) => {}
        }
        while let Some(lines) = self.live.as_mut().and_then(Live::poll_next) {
            show(&lines);
        }
    }
}

impl Reader for TextLines {
    fn take(&mut self, event: &RunEvent<'_>) {
        let unit = self.rate_unit;
        self.intervals
            .take(event, |lines| print_interval(lines, unit));
        if let RunEvent::RunBegan(document) = event {
            heading(document);
        }
        if let RunEvent::TrialBegan { trial, progress } = event
            && self.intervals.live.is_some()
        {
            table_head(trial, progress.over, &self.runs);
        }
    }

    fn conclude(&mut self, conclusion: &Conclusion<'_>) {
        result::print(conclusion.single, self.rate_unit);
        print_server_output(conclusion.peer);
    }
}

impl Reader for JsonLines {
    fn take(&mut self, event: &RunEvent<'_>) {
        self.intervals
            .take(event, |lines| json_line("interval", lines));
        if let RunEvent::RunBegan(document) = event {
            start_line(document);
        }
    }

    fn conclude(&mut self, conclusion: &Conclusion<'_>) {
        json_line("end", conclusion.single);
    }
}

impl Reader for JsonDocument {
    fn take(&mut self, _: &RunEvent<'_>) {}

    fn conclude(&mut self, conclusion: &Conclusion<'_>) {
        json_document(conclusion.single);
    }
}

impl Reader for Iperf3Lines {
    fn take(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::RunBegan(document) => self.start(document),
            RunEvent::TrialBegan { trial, .. } => self.begins(trial),
            RunEvent::Samples { hosts, .. } => self.look(hosts),
            RunEvent::TrialEnded { .. }
            | RunEvent::HostLost { .. }
            | RunEvent::PlanChanged(_)
            | RunEvent::RunEnded(_) => {}
        }
    }

    fn conclude(&mut self, conclusion: &Conclusion<'_>) {
        self.end(conclusion.recording, conclusion.peer, conclusion.failure);
    }
}

/// Tells what is going to be measured.
fn heading(document: &RunDocument) {
    let Some(trial) = document.plan.trials.first() else {
        return;
    };
    for text in heading::heading(&trial.workload, &trial.timing, document.server()) {
        line(&text);
    }
    for left_out in &document.left_out {
        super::note(&format!("{}: {}", left_out.what, left_out.why));
    }
}

fn start_line(document: &RunDocument) {
    let Some(trial) = document.plan.trials.first() else {
        return;
    };
    let hosts = document.hosts.iter().map(|host| &*host.name.0);
    json_line(
        "start",
        serde_json::json!({
            "schema": "linerate.run", "schema_version": linerate_analyze::single::SINGLE_SCHEMA_VERSION,
            "run": document.run, "started_utc": document.started_utc,
            "workload": trial.workload, "timing": trial.timing,
            "hosts": hosts.collect::<Vec<_>>(),
        }),
    );
}

fn table_head(trial: &Trial, over: usize, runs: &RangeInclusive<u32>) {
    let (least, most) = (runs.start(), runs.end());
    if *most > 1 {
        let of = if least == most {
            least.to_string()
        } else {
            format!("at most {most}")
        };
        line(&format!("\nrun {} of {of}", over + 1));
    }
    let what = trial.workload.traffic.kind().about().counted;
    line(&format!(
        " flow  interval           {what:>12}            rate   retr       cwnd        rtt"
    ));
}

/// Prints what a server of iperf3 printed itself, if it was asked for.
fn print_server_output(peer: Option<&Iperf3Peer>) {
    let results = peer.and_then(Iperf3Peer::results);
    let text = match results.and_then(|results| results.server_output) {
        None => return,
        Some(ServerOutput::Text(text)) => text,
        Some(ServerOutput::Json(json)) => json.to_string(),
    };
    line("\nserver output:");
    line(text.trim_end());
}

fn print_interval(lines: &[Interval], rate_unit: Option<RateUnit>) {
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
                Unit::Bytes.display(interval.bytes as f64),
                rate_words(interval.bits_per_second, rate_unit),
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
                    .map(|bytes| Unit::Bytes.display(bytes as f64))
            ),
            or_dash(
                interval
                    .rtt_us
                    .map(|rtt| Unit::Nanoseconds.display(rtt * 1e3))
            ),
        ));
    }
}

/// Writes a rate in the unit that was asked for, or the one that fits.
fn rate_words(bits_per_second: f64, unit: Option<RateUnit>) -> String {
    let Some(unit) = unit else {
        return Unit::BitsPerSecond.display(bits_per_second);
    };
    let rate = Unit::Ratio.display(bits_per_second / unit.bits_per_second);
    format!("{rate} {}", unit.name)
}
