//! `--format iperf3`: a run in the documents that iperf3's parsers read.
//!
//! A key is filled where its meaning is the same: what is measured here and there alike. Where
//! parsers need a key whose meaning has no counterpart, docs/guide/iperf3.md says what it holds.

/// From samples to iperf3's streams.
mod streams;

use linerate_agent::foreign::iperf3_peer::{Iperf3Peer, parameters_of};
use linerate_compat::iperf3::json::{
    self, CpuPercent, Document, EndStream, IntervalEntry, Role, Test,
};
use linerate_compat::iperf3::{Parameters, Protocol};
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::run::{HostPart, HostRecord, Recording, RunDocument, TrialRecord};
use linerate_model::sample::{Subject, TrialSample};
use linerate_model::samples::Samples;
use linerate_model::setting::Settings;
use linerate_model::{HostName, Nanos};
use serde_json::json;

use crate::term;
use streams::Series;

/// Prints one measurement as iperf3 does.
pub struct Iperf3Lines {
    /// Whether each event is a line of its own.
    stream: bool,
    interval: Nanos,
    document: Option<RunDocument>,
    trial: Option<Trial>,
    samples: Samples,
    /// Intervals that were printed.
    printed: usize,
}

/// Prints the document of a measurement that did not begin.
pub fn print_failure(stream: bool, error: &str) {
    if stream {
        term::line(&json::line("error", &error));
        return;
    }
    let document = json!({
        "start": { "connected": [], "version": version(), "system_info": system_info() },
        "intervals": [], "end": {}, "error": error,
    });
    print_pretty(&document);
}

fn print_pretty(document: &impl serde::Serialize) {
    // Plain values with text keys: there is no failing serializer among them.
    if let Ok(text) = serde_json::to_string_pretty(document) {
        term::line(&text);
    }
}

impl Iperf3Lines {
    /// Returns a printer: one document, or with `stream` a line for each event.
    pub fn new(stream: bool, interval: Nanos) -> Self {
        Self {
            stream,
            interval,
            document: None,
            trial: None,
            samples: Samples::default(),
            printed: 0,
        }
    }

    /// Takes up the run as it begins.
    pub fn start(&mut self, document: &RunDocument) {
        self.document = Some(document.clone());
    }

    /// Takes up the begin of the trial.
    pub fn begins(&mut self, trial: &Trial) {
        self.trial = Some(trial.clone());
        if let Some(test) = self.test_so_far().filter(|_| self.stream) {
            term::line(&json::line("start", &json::start(&test)));
        }
    }

    /// Takes up new samples, and prints the intervals that they complete if each is a line.
    pub fn look(&mut self, samples: &[Samples]) {
        if !self.stream {
            return;
        }
        let ours = |sample: &TrialSample| matches!(sample.subject, Subject::Flow(..));
        let all = samples.iter().flat_map(Samples::iter);
        self.samples.extend(all.filter(ours));
        let Some(test) = self.test_so_far() else {
            return;
        };
        self.print_intervals(&test);
    }

    fn print_intervals(&mut self, test: &Test) {
        while self.printed < test.intervals() {
            term::line(&json::line("interval", &interval(test, self.printed)));
            self.printed += 1;
        }
    }

    /// Returns the test as far as it is known while it runs.
    fn test_so_far(&self) -> Option<Test> {
        let (document, trial) = (self.document.as_ref()?, self.trial.as_ref()?);
        let series = Series::new(&self.samples, trial.timing.measure.0);
        Some(test(document, trial, &series, None, self.interval, None))
    }

    /// Prints what is known at the end; `failure` says why it is not all.
    pub fn end(&mut self, recording: &Recording, peer: Option<&Iperf3Peer>, failure: Option<&str>) {
        let plan = &recording.document.plan;
        let Some((trial, record)) = plan.trials.first().zip(recording.trials.first()) else {
            return print_failure(self.stream, failure.unwrap_or("nothing was measured"));
        };
        let series = Series::new(&recording.samples, record.window_ns);
        let mut test = test(
            &recording.document,
            trial,
            &series,
            Some((recording, record)),
            self.interval,
            peer,
        );
        test.error = failure.map(str::to_owned);
        if !self.stream {
            return print_pretty(&whole(&test));
        }
        self.print_intervals(&test);
        if let Some(error) = &test.error {
            term::line(&json::line("error", error));
        }
        let document = whole(&test);
        if let Some(output) = &document.server_output_json {
            term::line(&json::line("server_output_json", output));
        }
        if let Some(output) = &document.server_output_text {
            term::line(&json::line("server_output_text", output));
        }
        term::line(&json::line("end", &document.end));
    }
}

/// Returns the document without what is not measured: the kernel's estimate of reordering.
fn whole(test: &Test) -> Document {
    let mut document = json::document(test);
    for (at, entry) in document.intervals.iter_mut().enumerate() {
        *entry = interval(test, at);
    }
    for stream in &mut document.end.streams {
        if let EndStream::Tcp { sender, .. } = stream {
            sender.reorder = None;
        }
    }
    document
}

fn interval(test: &Test, at: usize) -> IntervalEntry {
    let mut entry = json::interval(test, at);
    let sums = [Some(&mut entry.sum), entry.sum_bidir_reverse.as_mut()];
    for row in entry.streams.iter_mut().chain(sums.into_iter().flatten()) {
        row.reorder = None;
        // Only the jitter at the end is known.
        row.jitter_ms = None;
    }
    entry
}

fn version() -> String {
    concat!("linerate ", env!("CARGO_PKG_VERSION")).to_owned()
}

/// Returns what `uname -a` says.
fn system_info() -> String {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}"));
        text.map_or_else(|_| String::new(), |text| text.trim().to_owned())
    };
    let words = [
        read("ostype"),
        read("hostname"),
        read("osrelease"),
        read("version"),
    ];
    format!("{} {}", words.join(" "), std::env::consts::ARCH)
}

fn test(
    document: &RunDocument,
    trial: &Trial,
    series: &Series,
    recorded: Option<(&Recording, &TrialRecord)>,
    interval: Nanos,
    peer: Option<&Iperf3Peer>,
) -> Test {
    let parameters = parameters_of(&trial.workload, &trial.timing).map_or_else(
        |_| Parameters::of(Protocol::Tcp),
        |(parameters, _)| parameters,
    );
    let server = document.server();
    let foreign = server.is_some_and(|server| server.foreign.is_some());
    let flows: Vec<_> = recorded.map_or_else(Vec::new, |(recording, _)| {
        recording
            .flows
            .iter()
            .filter(|flow| flow.trial == trial.id)
            .collect()
    });
    let congestion = |settings: &Settings| {
        let setting = settings.iter().find(|one| one.name == "TCP_CONGESTION")?;
        setting
            .effective
            .clone()
            .or_else(|| setting.granted.clone())
    };
    let first = |sends: bool| {
        use linerate_model::workload::Part;
        let part = if sends { Part::Sender } else { Part::Receiver };
        let flow = flows.iter().find(|flow| flow.part == part)?;
        congestion(&flow.settings)
    };
    let buffer = |name: &str| {
        let client = linerate_model::sample::End::Client;
        let flow = flows.iter().find(|flow| flow.end == client)?;
        let setting = flow.settings.iter().find(|one| one.name == name)?;
        // What the kernel says is twice what it lets payload use.
        Some(2 * setting.granted.as_ref()?.parse::<u64>().ok()?)
    };
    let peer_results = peer.and_then(Iperf3Peer::results);
    let cpu = |part| cpu(series, document.hosts.iter().find(|host| host.part == part));
    let streams = streams::streams(document, trial, series, &flows, interval, foreign);
    let mss = streams::first_mss(trial, series);
    Test {
        role: Role::Client,
        version: version(),
        system_info: system_info(),
        unix_ms: unix_ms(&document.started_utc),
        peer_host: server.map_or_else(String::new, |server| server.data_address.clone()),
        peer_port: server.map_or(0, port),
        cookie: document.run.0.clone(),
        interval_s: interval.0 as f64 / 1e9,
        mss_default: mss,
        sndbuf_actual: buffer("SO_SNDBUF"),
        rcvbuf_actual: buffer("SO_RCVBUF"),
        streams,
        cpu: cpu(HostPart::Client).unwrap_or_default(),
        cpu_remote: match &peer_results {
            Some(results) => Some(CpuPercent {
                total: results.cpu_total_percent,
                user: results.cpu_user_percent,
                system: results.cpu_system_percent,
            }),
            None => cpu(HostPart::Server),
        },
        sender_congestion: first(true).filter(|_| parameters.protocol == Protocol::Tcp),
        receiver_congestion: first(false).filter(|_| parameters.protocol == Protocol::Tcp),
        server_output: peer_results.and_then(|results| results.server_output),
        error: None,
        parameters,
    }
}

fn port(server: &HostRecord) -> u16 {
    let address = server.agent.parse::<std::net::SocketAddr>();
    address.map_or(0, |address| address.port())
}

fn unix_ms(rfc3339: &str) -> u64 {
    let at = rfc3339.parse::<jiff::Timestamp>();
    at.map_or(0, |at| at.as_millisecond().unsigned_abs())
}

/// Returns the CPU time of our own threads on a host over the window.
fn cpu(series: &Series, host: Option<&HostRecord>) -> Option<CpuPercent> {
    let host: &HostName = &host?.name;
    let percent = |metric| {
        let seconds = series.thread_seconds(host, metric)?;
        Some(100.0 * seconds / series.window_s())
    };
    let (user, system) = (percent(Metric::ThreadUser)?, percent(Metric::ThreadSystem)?);
    Some(CpuPercent {
        total: user + system,
        user,
        system,
    })
}
