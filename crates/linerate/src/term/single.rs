//! Lines of a single measurement: intervals as they come, the final block, or JSON.

use std::ops::RangeInclusive;

use linerate_agent::foreign::iperf3_peer::{Iperf3Peer, ServerOutput};
use linerate_analyze::groups::{Lens, Reduced, View};
use linerate_analyze::live::{Interval, Live};
use linerate_analyze::proof::{Proofs, is_proving};
use linerate_analyze::single::{SINGLE_SCHEMA, Shown, Single, proven};
use linerate_controller::RunEvent;
use linerate_model::Nanos;
use linerate_model::finding::Trust;
use linerate_model::plan::Trial;
use linerate_model::run::{HostProgram, Recording, RunDocument, TrialEvidence, server_program};
use linerate_model::sample::FLOWS_IN_FULL;
use linerate_model::samples::Samples;
use linerate_model::unit::Unit;
use linerate_model::workload::Workload;
use serde::Serialize;

/// What the traffic cost, and what the CPUs did.
mod cost;
/// Rows of values.
mod csv;
/// What became of datagrams.
mod datagrams;
/// How the traffic was made, for those who ask.
mod details;
/// What is going to be measured.
mod heading;
/// The answer.
mod result;
/// Lines of intervals and runs.
mod table;
/// All groups together.
pub mod together;

use super::failure::ErrorDocument;
use super::{Look, json_document, json_line, line, paragraph, styled};
use crate::exit::Failure;
use crate::iperf3::Iperf3Lines;

/// Flows up to which each has its own interval lines; of more only the sum is printed: with their sum they
/// fill a quarter of a screen each second.
const FLOW_LINES_MAX: u32 = 4;

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
    /// Whether every flow is shown in full, however many there are.
    pub all_flows: bool,
    /// Whether of the flows only the sum is shown, interval by interval.
    pub sum_only: bool,
    /// Whether settings, CPUs and mechanisms are shown, too.
    pub verbose: bool,
}

impl Output {
    /// Returns what the result itself shows: of intervals only what lines have not shown, and those of
    /// thousands of flows are most of a document.
    pub fn of_result(&self) -> Shown {
        Shown {
            interval: match self.form {
                Form::Text | Form::Csv => Nanos(0),
                Form::Json | Form::JsonStream => self.interval,
            },
            all_flows: self.all_flows,
            sum_only: self.sum_only,
        }
    }

    /// Returns the flows up to which each has its own lines, where nothing is asked for up to `most`.
    fn flows_max(&self, most: u32) -> u32 {
        match (self.sum_only, self.all_flows) {
            (true, _) => 1,
            (_, true) => u32::MAX,
            _ => most,
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
    /// Rows of values.
    Csv,
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
    match event {
        RunEvent::HostLost { host, wait } => super::note(&super::lost(host, *wait)),
        RunEvent::HostQueued { host, place } => super::note(&super::queued(host, *place)),
        _ => {}
    }
    reader.take(event);
}

/// Shows one measurement: its events as they come, and in the end what follows from them.
pub trait Reader {
    /// Takes up an event.
    fn take(&mut self, _event: &RunEvent<'_>) {}
    /// Shows the result.
    fn conclude(&mut self, conclusion: &Conclusion<'_>);
}

/// What a measurement came to.
pub struct Conclusion<'a> {
    /// What was recorded, with what was changed after the measurement.
    pub whole: &'a Recording,
    /// The measurement alone.
    pub recording: &'a Recording,
    /// Its result.
    pub single: &'a Single<'a>,
    /// Those of the groups beside it.
    pub beside: &'a [Single<'a>],
    /// The server, if it is no agent.
    pub peer: Option<&'a Iperf3Peer>,
    /// Why the command fails, if it does.
    pub error: Option<&'a Failure>,
    /// Why it is not all that was asked for.
    pub failure: Option<&'a str>,
}

/// The document of what was measured, with why it failed and what the server printed.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    single: &'a Single<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    beside: &'a [Single<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    server_output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(rename = "error_next", skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
}

impl<'a> Document<'a> {
    fn of(conclusion: &Conclusion<'a>, error: Option<&'a Failure>) -> Self {
        Self {
            single: conclusion.single,
            beside: conclusion.beside,
            server_output: server_output(conclusion.peer),
            error: error.map(ToString::to_string),
            next: error.and_then(|error| error.next.as_deref()),
        }
    }
}

/// Prints the failure of a measurement that did not come to a result, where documents are asked for: whoever
/// parses them finds one.
pub fn print_failure(form: Form, iperf3: bool, failure: &Failure) {
    if iperf3 {
        crate::iperf3::print_failure(form == Form::JsonStream, &failure.to_string())
    } else {
        let document = ErrorDocument::of(failure, SINGLE_SCHEMA);
        match form {
            Form::Json => document.of_run().print(form),
            form => document.print(form),
        }
    }
}

/// Returns what was changed after a measurement, and what that did.
pub fn proofs(recording: &Recording) -> Proofs {
    if is_proving(&recording.document.plan) {
        Reduced::of(recording).proofs()
    } else {
        Proofs::default()
    }
}

/// Returns the result of a recording, of which `proofs` say what limits it, or those of its groups where it has several.
pub fn of_groups<'r>(
    recording: &'r Recording,
    views: &'r [View],
    proofs: &Proofs,
    shown: Shown,
) -> Vec<Single<'r>> {
    let single = linerate_analyze::single::single;
    if views.is_empty() {
        return vec![proven(recording, proofs.clone(), shown)];
    }
    let of_group = |view: &'r View| Single {
        group: Some(view.name.clone()),
        ..single(&view.recording, shown)
    };
    let mut singles: Vec<Single<'_>> = views.iter().map(of_group).collect();
    // They are one trial on the same hosts: what no number of one group is to be used for, none of another is.
    let whole = singles.iter().map(|single| single.trust.clone());
    if let Some(whole) = whole.reduce(Trust::and) {
        for single in &mut singles {
            single.trust = whole.clone();
        }
    }
    let is_valid = |id| {
        let trials = singles.iter().flat_map(|single| &single.trials);
        trials.filter(|it| it.trial == id).all(|it| it.valid)
    };
    let together = linerate_analyze::reduce::together(recording, is_valid);
    if let Some(first) = singles.first_mut() {
        first.together = together;
    }
    singles
}

/// Returns who shows a measurement that is repeated `runs` times.
pub fn reader(output: Output, runs: RangeInclusive<u32>) -> Box<dyn Reader> {
    let interval = output.interval;
    match output.form {
        form if output.iperf3 => Box::new(Iperf3Lines::new(form == Form::JsonStream, interval)),
        Form::Text => Box::new(TextLines {
            output,
            runs,
            intervals: Intervals::new(interval, output.flows_max(FLOW_LINES_MAX), output.all_flows),
            document: None,
            has_head: false,
            over: 0,
            rows: Vec::new(),
        }),
        Form::Json => Box::new(JsonDocument),
        Form::JsonStream => Box::new(JsonLines {
            intervals: Intervals::new(interval, output.flows_max(FLOWS_IN_FULL), true),
            groups: Vec::new(),
        }),
        Form::Csv => Box::new(csv::Rows::new(Intervals::new(
            interval,
            output.flows_max(FLOWS_IN_FULL),
            true,
        ))),
    }
}

/// Lines for people.
struct TextLines {
    output: Output,
    runs: RangeInclusive<u32>,
    intervals: Intervals,
    /// What is measured, of several runs: each has its own result.
    document: Option<RunDocument>,
    /// Whether the head of the table stands.
    has_head: bool,
    /// Runs that are over, and their lines where intervals stand between.
    over: usize,
    rows: Vec<String>,
}

/// A line of JSON for each event.
struct JsonLines {
    intervals: Intervals,
    /// The names of the groups of the present trial.
    groups: Vec<String>,
}

/// The intervals of one of several groups.
#[derive(Serialize)]
struct GroupIntervals<'a> {
    group: &'a str,
    intervals: &'a [Interval],
}

/// One document at the end.
struct JsonDocument;

/// What cuts the trials of a run into intervals as their samples come.
struct Intervals {
    interval: Nanos,
    /// Flows up to which each is told; of more, only their sum.
    flows_max: u32,
    /// Whether flows are told whose latency is not known.
    without_latency: bool,
    /// What serves.
    server: HostProgram,
    /// Whose the samples of the present trial are.
    lens: Option<Lens>,
    /// Of each group of the present trial, where intervals are wanted.
    live: Vec<Live>,
}

/// Lines of intervals, and whose they are.
struct OfGroup<'a> {
    /// The group's place.
    at: usize,
    lines: &'a [Interval],
}

impl Intervals {
    fn new(interval: Nanos, flows_max: u32, without_latency: bool) -> Self {
        Self {
            interval,
            flows_max,
            without_latency,
            server: HostProgram::Agent,
            lens: None,
            live: Vec::new(),
        }
    }

    /// Whether only the sum of the flows of `workload` is told. Agents count latencies by worker: of one of several
    /// flows a line would have a rate and no more.
    fn sums(&self, workload: &Workload) -> bool {
        let lacks_latency = workload.traffic.is_transactional() && !self.without_latency;
        let flows_max = if lacks_latency { 1 } else { self.flows_max };
        workload.connections > flows_max
    }

    /// Takes up an event and shows the intervals that it completes, those of all groups side by side.
    fn take(&mut self, event: &RunEvent<'_>, mut show: impl FnMut(OfGroup<'_>)) {
        match event {
            RunEvent::RunBegan(document) => {
                self.server = server_program(&document.hosts).clone();
            }
            RunEvent::TrialBegan { trial, .. } if self.interval.0 > 0 => {
                let lens = Lens::of(trial);
                let live = lens.trials().iter().map(|trial| {
                    let live = Live::new(trial, self.interval).with_server(trial, &self.server);
                    if self.sums(&trial.workload) {
                        live.summed()
                    } else {
                        live
                    }
                });
                self.live = live.collect();
                self.lens = Some(lens);
            }
            RunEvent::Samples { hosts, .. } => {
                for (at, live) in self.live.iter_mut().enumerate() {
                    let samples = hosts.iter().flat_map(Samples::of_traffic);
                    let lens = self.lens.as_ref();
                    live.add(samples.filter_map(|sample| lens?.sample(at, sample)));
                }
            }
            RunEvent::TrialEnded { .. } => self.live.iter_mut().for_each(Live::finish),
            RunEvent::TrialBegan { .. }
            | RunEvent::HostLost { .. }
            | RunEvent::HostQueued { .. }
            | RunEvent::PlanChanged(_)
            | RunEvent::RunEnded(_) => {}
        }
        loop {
            let mut is_more = false;
            for (at, live) in self.live.iter_mut().enumerate() {
                if let Some(lines) = live.poll_next() {
                    is_more = true;
                    show(OfGroup { at, lines: &lines });
                }
            }
            if !is_more {
                return;
            }
        }
    }
}

/// Returns the names of the groups of a trial as they stand before its lines; of the only one nothing does.
fn leads(trial: &Trial) -> Vec<String> {
    if trial.beside.is_empty() {
        return vec![String::new()];
    }
    let names: Vec<&str> = trial.group_names().collect();
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let lead = |name: &&str| format!("{name:<width$} ");
    names.iter().map(lead).collect()
}

impl TextLines {
    /// Shows the intervals that `event` completes; their head stands above the first of a run.
    fn intervals(&mut self, event: &RunEvent<'_>) {
        let (rate_unit, has_head) = (self.output.rate_unit, &mut self.has_head);
        let is_shown = self.intervals.interval.0 > 0;
        let trial = match event {
            RunEvent::TrialBegan { trial, progress } if is_shown => {
                *has_head = false;
                if *self.runs.end() > 1 {
                    line("");
                    line(&styled(&run_words(progress.over, &self.runs), Look::Quiet));
                }
                trial
            }
            RunEvent::Samples { trial, .. } | RunEvent::TrialEnded { trial, .. } => trial,
            _ => return self.intervals.take(event, |_| {}),
        };
        let lens = Lens::of(trial);
        let leads = leads(trial);
        let sums = |workload: &Workload, intervals: &Intervals| {
            workload.connections > 1 && intervals.sums(workload)
        };
        let trials = lens.trials().iter().zip(&leads);
        let groups = trials.map(|(trial, lead)| {
            let workload = &trial.workload;
            (workload, lead, sums(workload, &self.intervals))
        });
        let groups: Vec<(&Workload, &String, bool)> = groups.collect();
        self.intervals.take(event, |OfGroup { at, lines }| {
            if !std::mem::replace(has_head, true) {
                for (workload, lead, is_summed) in &groups {
                    table::interval_head(lead, workload, *is_summed, rate_unit);
                }
            }
            let (workload, lead, _) = groups[at];
            for interval in lines {
                line(&table::interval(lead, interval, workload, rate_unit));
            }
        });
    }

    /// Shows a run that is over as a line of their table.
    fn run_ended(&mut self, evidence: &TrialEvidence) {
        let Some(document) = &self.document else {
            return;
        };
        self.over += 1;
        let recording = recording_of(document, evidence);
        let shown = Shown {
            interval: Nanos(0),
            ..self.output.of_result()
        };
        let views = linerate_analyze::groups::views(&recording);
        let singles = of_groups(&recording, &views, &Proofs::default(), shown);
        let leads = recording
            .document
            .plan
            .trials
            .first()
            .map(leads)
            .unwrap_or_default();
        let groups = singles.iter().zip(&leads);
        let rows = groups.clone().flat_map(|(single, lead)| {
            let rows = table::run(self.over, single, self.output.rate_unit).into_iter();
            rows.map(move |row| format!("{lead}{row}"))
        });
        let rows: Vec<String> = rows.collect();
        if self.intervals.interval.0 > 0 {
            self.rows.extend(rows);
            return;
        }
        if !std::mem::replace(&mut self.has_head, true) {
            groups.for_each(|(single, lead)| table::run_head(lead, &single.workload));
        }
        rows.iter().for_each(|row| line(row));
    }
}

/// Returns the recording of a run that is one of several.
fn recording_of(document: &RunDocument, evidence: &TrialEvidence) -> Recording {
    let mut document = document.clone();
    document
        .plan
        .trials
        .retain(|trial| trial.id == evidence.record.trial);
    Recording {
        trials: vec![evidence.record.clone()],
        flows: evidence.flows.clone(),
        samples: evidence.samples.clone(),
        ..Recording::empty(document)
    }
}

impl Reader for TextLines {
    fn take(&mut self, event: &RunEvent<'_>) {
        self.intervals(event);
        match event {
            RunEvent::RunBegan(document) => {
                heading(document, self.output.verbose);
                self.document = (*self.runs.end() > 1).then(|| (*document).clone());
            }
            RunEvent::PlanChanged(document) if self.document.is_some() => {
                self.document = Some((*document).clone());
            }
            RunEvent::TrialEnded { evidence, .. } => self.run_ended(evidence),
            _ => {}
        }
    }

    fn conclude(&mut self, conclusion: &Conclusion<'_>) {
        if !self.rows.is_empty() {
            line("");
            let trials = &conclusion.recording.document.plan.trials;
            let leads = trials.first().map(leads).unwrap_or_default();
            let singles = std::iter::once(conclusion.single).chain(conclusion.beside);
            for (single, lead) in singles.zip(&leads) {
                table::run_head(lead, &single.workload);
            }
            self.rows.iter().for_each(|row| line(row));
        }
        for single in std::iter::once(conclusion.single).chain(conclusion.beside) {
            result::print(single, self.output);
        }
        together::print(&conclusion.single.together, self.output.rate_unit);
        if let Some(text) = server_output(conclusion.peer) {
            line("\nserver output:");
            line(text.trim_end());
        }
    }
}

impl Reader for JsonLines {
    fn take(&mut self, event: &RunEvent<'_>) {
        if let RunEvent::TrialBegan { trial, .. } = event {
            self.groups = trial.group_names().map(str::to_owned).collect();
        }
        let groups = &self.groups;
        self.intervals.take(event, |OfGroup { at, lines }| {
            match (groups.len(), groups.get(at)) {
                (2.., Some(group)) => {
                    let data = GroupIntervals {
                        group,
                        intervals: lines,
                    };
                    json_line("interval", data);
                }
                _ => json_line("interval", lines),
            }
        });
        if let RunEvent::RunBegan(document) = event {
            start_line(document);
        }
    }

    fn conclude(&mut self, conclusion: &Conclusion<'_>) {
        if let Some(error) = conclusion.error {
            ErrorDocument::of(error, SINGLE_SCHEMA).print(Form::JsonStream);
        }
        // The event before says why it failed.
        json_line("end", Document::of(conclusion, None));
    }
}

impl Reader for JsonDocument {
    fn conclude(&mut self, conclusion: &Conclusion<'_>) {
        json_document(&Document::of(conclusion, conclusion.error));
    }
}

/// Tells what is going to be measured.
fn heading(document: &RunDocument, verbose: bool) {
    let Some(trial) = document.plan.trials.first() else {
        return;
    };
    let server = document.server();
    for text in heading::heading(&trial.workload, &trial.timing, server, verbose) {
        paragraph(&text);
    }
    for group in &trial.beside {
        paragraph(&heading::beside(group, verbose));
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
    let mut start = serde_json::json!({
        "schema": SINGLE_SCHEMA.0, "schema_version": SINGLE_SCHEMA.1,
        "run": document.run, "started_utc": document.started_utc,
        "workload": trial.workload, "timing": trial.timing,
        "hosts": hosts.collect::<Vec<_>>(),
    });
    if !trial.beside.is_empty() {
        start["groups"] = serde_json::json!(trial.group_names().collect::<Vec<_>>());
        start["workloads"] = serde_json::json!(trial.workloads().collect::<Vec<_>>());
    }
    json_line("start", start);
}

fn run_words(over: usize, runs: &RangeInclusive<u32>) -> String {
    let (least, most) = (runs.start(), runs.end());
    let of = if least == most {
        least.to_string()
    } else {
        format!("at most {most}")
    };
    format!("run {} of {of}", over + 1)
}

/// Returns what a server of iperf3 printed itself, if it was asked for.
fn server_output(peer: Option<&Iperf3Peer>) -> Option<String> {
    Some(match peer?.results()?.server_output? {
        ServerOutput::Text(text) => text,
        ServerOutput::Json(json) => json.to_string(),
    })
}

/// Writes a rate in the unit that was asked for, or the one that fits.
fn rate_words(bits_per_second: f64, unit: Option<RateUnit>) -> String {
    let Some(unit) = unit else {
        return Unit::BitsPerSecond.display(bits_per_second);
    };
    let rate = Unit::Ratio.display(bits_per_second / unit.bits_per_second);
    format!("{rate} {}", unit.name)
}
