//! Lines of a single measurement: intervals as they come, the final block, or JSON.

use std::ops::RangeInclusive;

use linerate_agent::foreign::iperf3_peer::{Iperf3Peer, ServerOutput};
use linerate_analyze::live::{Interval, Live};
use linerate_analyze::single::Single;
use linerate_model::Nanos;
use linerate_model::plan::Trial;
use linerate_model::run::{Recording, RunDocument};
use linerate_model::samples::Samples;
use linerate_model::unit::Unit;
use linerate_model::workload::Traffic;

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

/// Prints one measurement.
pub struct SingleLines {
    output: Output,
    live: Option<Live>,
    runs: RangeInclusive<u32>,
    /// Whether nothing is read at the server.
    foreign: bool,
    /// Who prints in place of this, if iperf3's documents are wanted.
    iperf3: Option<Iperf3Lines>,
}

impl SingleLines {
    /// Returns a printer of a measurement that is repeated `runs` times.
    pub fn new(output: Output, runs: RangeInclusive<u32>) -> Self {
        let is_stream = output.form == Form::JsonStream;
        Self {
            output,
            live: None,
            runs,
            foreign: false,
            iperf3: output
                .iperf3
                .then(|| Iperf3Lines::new(is_stream, output.interval)),
        }
    }

    /// Tells what is going to be measured.
    pub fn start(&mut self, document: &RunDocument) {
        if let Some(lines) = &mut self.iperf3 {
            return lines.start(document);
        }
        let server = document.server();
        self.foreign = server.is_some_and(|server| server.foreign.is_some());
        let Some(trial) = document.plan.trials.first() else {
            return;
        };
        match self.output.form {
            Form::Json => {}
            Form::JsonStream => json_line(
                "start",
                serde_json::json!({
                    "schema": "linerate.run", "schema_version": linerate_analyze::single::SINGLE_SCHEMA_VERSION,
                    "run": document.run, "started_utc": document.started_utc,
                    "workload": trial.workload, "timing": trial.timing,
                    "hosts": document.hosts.iter().map(|host| &*host.name.0).collect::<Vec<_>>(),
                }),
            ),
            Form::Text => {
                for text in heading::heading(&trial.workload, document.server()) {
                    line(&text);
                }
                for left_out in &document.left_out {
                    super::note(&format!("{}: {}", left_out.what, left_out.why));
                }
            }
        }
    }

    /// Takes up the begin of a trial.
    pub fn begins(&mut self, trial: &Trial, over: usize) {
        if let Some(lines) = &mut self.iperf3 {
            return lines.begins(trial);
        }
        let Output { form, interval, .. } = self.output;
        let is_summed = form == Form::Text && trial.workload.connections > FLOW_LINES_MAX;
        self.live = (interval.0 > 0 && form != Form::Json).then(|| {
            let live = Live::new(trial, interval).with_server(trial, self.foreign);
            if is_summed { live.summed() } else { live }
        });
        if form != Form::Text || self.live.is_none() {
            return;
        }
        let (least, most) = (self.runs.start(), self.runs.end());
        if *most > 1 {
            let of = match least == most {
                true => least.to_string(),
                false => format!("at most {most}"),
            };
            line(&format!("\nrun {} of {of}", over + 1));
        }
        let what = match trial.workload.traffic {
            Traffic::Rr { .. } => "  transactions            rate",
            Traffic::Crr { .. } => "   connections            rate",
            Traffic::Stream { .. } | Traffic::Idle => "      transfer            rate",
        };
        line(&format!(
            " flow  interval         {what}   retr       cwnd        rtt"
        ));
    }

    /// Takes up new samples and prints the intervals that they complete.
    pub fn look(&mut self, samples: &[Samples]) {
        if let Some(lines) = &mut self.iperf3 {
            return lines.look(samples);
        }
        let Some(live) = &mut self.live else { return };
        live.add(samples.iter().flat_map(Samples::of_flows));
        while let Some(lines) = live.poll_next() {
            match self.output.form {
                Form::Json => {}
                Form::JsonStream => json_line("interval", &lines),
                Form::Text => print_interval(&lines, self.output.rate_unit),
            }
        }
    }

    /// Prints the result; `failure` says why it is not all that was asked for.
    pub fn end(
        &mut self,
        recording: &Recording,
        single: &Single<'_>,
        peer: Option<&Iperf3Peer>,
        failure: Option<&str>,
    ) {
        if let Some(lines) = &mut self.iperf3 {
            return lines.end(recording, peer, failure);
        }
        match self.output.form {
            Form::Json => json_document(single),
            Form::JsonStream => json_line("end", single),
            Form::Text => {
                result::print(single, self.output.rate_unit);
                print_server_output(peer);
            }
        }
    }
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
