//! `--format iperf3`: a run in the documents that iperf3's parsers read.
//!
//! A key is filled where its meaning is the same: what is measured here and there alike. Where
//! parsers need a key whose meaning has no counterpart, docs/guide/iperf3.md says what it holds.

use std::net::SocketAddr;

use linerate_agent::foreign::iperf3_peer::{Iperf3Peer, parameters_of};
use linerate_analyze::iperf3;
use linerate_compat::iperf3::json::{
    self, Datagrams, Document, EndStream, Interval, IntervalEntry, Stream, TcpReading, Test, Total,
};
use linerate_compat::iperf3::{CpuPercent, Protocol, ServerOutput};
use linerate_controller::RunEvent;
use linerate_model::Nanos;
use linerate_model::plan::Trial;
use linerate_model::run::{FlowRecord, HostPart, HostRecord, RunDocument};
use linerate_model::samples::Samples;
use serde_json::json;

use crate::term;
use crate::term::single::{Conclusion, Reader};

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
        // A stream of iperf3's ends with this, whatever fails.
        term::line(&json::line("end", &json!({})));
        return;
    }
    let document = json!({
        "start": { "connected": [], "version": version(), "system_info": system_info() },
        "intervals": [], "end": {}, "error": error,
    });
    term::json_pretty(&document);
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

    fn print_intervals(&mut self, test: &Test) {
        while self.printed < test.intervals() {
            term::line(&json::line("interval", &interval(test, self.printed)));
            self.printed += 1;
        }
    }

    /// Returns the test as far as it is known while it runs.
    fn test_so_far(&self) -> Option<Test> {
        let (document, trial) = (self.document.as_ref()?, self.trial.as_ref()?);
        let counted = iperf3::so_far(document, trial, &self.samples, self.interval);
        test(document, trial, counted, self.interval, None).ok()
    }
}

impl Reader for Iperf3Lines {
    fn take(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::RunBegan(document) => self.document = Some((*document).clone()),
            RunEvent::TrialBegan { trial, .. } => {
                self.trial = Some((*trial).clone());
                if let Some(test) = self.test_so_far().filter(|_| self.stream) {
                    term::line(&json::line("start", &json::start(&test)));
                }
            }
            RunEvent::Samples { hosts, .. } if self.stream => {
                let of_traffic = hosts.iter().flat_map(Samples::of_traffic);
                self.samples.extend(of_traffic);
                if let Some(test) = self.test_so_far() {
                    self.print_intervals(&test);
                }
            }
            _ => {}
        }
    }

    fn conclude(&mut self, conclusion: &Conclusion<'_>) {
        let Conclusion {
            recording,
            peer,
            failure,
            ..
        } = *conclusion;
        let Some((trial, counted)) = iperf3::whole(recording, self.interval) else {
            return print_failure(self.stream, failure.unwrap_or("nothing was measured"));
        };
        let test = test(&recording.document, trial, counted, self.interval, peer);
        let mut test = match test {
            Ok(test) => test,
            Err(why) => return print_failure(self.stream, &format!("iperf3 {why}")),
        };
        test.error = failure.map(str::to_owned);
        if !self.stream {
            return term::json_pretty(&whole(&test));
        }
        self.print_intervals(&test);
        if let Some(error) = &test.error {
            term::line(&json::line("error", error));
        }
        match &test.server_output {
            Some(ServerOutput::Json(output)) => {
                term::line(&json::line("server_output_json", output));
            }
            Some(ServerOutput::Text(output)) => {
                term::line(&json::line("server_output_text", output));
            }
            None => {}
        }
        term::line(&json::line("end", &whole(&test).end));
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

/// Returns the test with what the numbers do not say: who, when and what was asked for; or why iperf3 has no
/// words for that.
fn test(
    document: &RunDocument,
    trial: &Trial,
    counted: iperf3::Test<'_>,
    interval: Nanos,
    peer: Option<&Iperf3Peer>,
) -> Result<Test, String> {
    let parameters = parameters_of(&trial.workload, &trial.timing)?;
    let server = document.server();
    let peer_results = peer.and_then(Iperf3Peer::results);
    let is_tcp = parameters.protocol == Protocol::Tcp;
    let streams = counted.streams.iter().enumerate();
    Ok(Test {
        version: version(),
        system_info: system_info(),
        unix_ms: unix_ms(&document.started_utc),
        peer_host: server.map_or_else(String::new, |server| server.data_address.clone()),
        peer_port: server.map_or(0, port),
        cookie: document.run.0.clone(),
        interval_s: interval.0 as f64 / 1e9,
        mss_default: counted.mss_bytes,
        sndbuf_actual: counted.sndbuf_bytes,
        rcvbuf_actual: counted.rcvbuf_bytes,
        streams: streams
            .map(|(at, one)| stream(document, at as u32, one))
            .collect(),
        cpu: counted.client_cpu.map(cpu).unwrap_or_default(),
        cpu_remote: match &peer_results {
            Some(results) => Some(results.cpu),
            None => counted.server_cpu.map(cpu),
        },
        sender_congestion: counted.sender_congestion.filter(|_| is_tcp),
        receiver_congestion: counted.receiver_congestion.filter(|_| is_tcp),
        server_output: peer_results.and_then(|results| results.server_output),
        error: None,
        parameters,
    })
}

fn cpu(time: iperf3::CpuTime) -> CpuPercent {
    CpuPercent::of(time.user_percent, time.system_percent)
}

fn stream(document: &RunDocument, number: u32, counted: &iperf3::Stream<'_>) -> Stream {
    let (local, remote) = addresses(document, counted.client);
    Stream {
        // iperf3 has the descriptor here, which is 5 for the first stream.
        socket: number + 5,
        local,
        remote,
        sender: counted.sends,
        intervals: counted.intervals.iter().map(counted_in).collect(),
        sent: counted.sent.map(total),
        received: counted.received.map(total),
    }
}

/// Returns the addresses of the client's end: of the connection, or while that is not known of the
/// hosts, with 0 for a port of its own.
fn addresses(document: &RunDocument, client: Option<&FlowRecord>) -> (SocketAddr, SocketAddr) {
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    if let Some(record) = client {
        let parse = |text: &str| text.parse().unwrap_or(nowhere);
        return (parse(&record.local), parse(&record.remote));
    }
    let host = |part| document.hosts.iter().find(|host| host.part == part);
    let local = host(HostPart::Client).and_then(|host| host.data_address.parse().ok());
    let remote = host(HostPart::Server).and_then(|host| host.agent.parse().ok());
    (
        local.map_or(nowhere, |ip| SocketAddr::new(ip, 0)),
        remote.unwrap_or(nowhere),
    )
}

fn counted_in(interval: &iperf3::Interval) -> Interval {
    Interval {
        start_s: interval.begin_s,
        end_s: interval.end_s,
        bytes: interval.bytes,
        omitted: interval.omitted,
        tcp: interval.tcp.map(|tcp| TcpReading {
            retransmits: tcp.retransmits,
            snd_cwnd_bytes: tcp.cwnd_bytes,
            snd_wnd_bytes: tcp.snd_wnd_bytes,
            rtt_us: tcp.rtt_us,
            rttvar_us: tcp.rttvar_us,
            pmtu_bytes: tcp.pmtu_bytes,
            reorder: 0,
        }),
        datagrams: interval.datagrams.map(datagrams),
    }
}

fn total(counted: iperf3::Total) -> Total {
    Total {
        seconds: counted.seconds,
        bytes: counted.bytes,
        retransmits: counted.retransmits,
        datagrams: counted.datagrams.map(datagrams),
    }
}

fn datagrams(counted: iperf3::Datagrams) -> Datagrams {
    Datagrams {
        packets: counted.packets,
        lost: counted.lost,
        out_of_order: counted.out_of_order,
        jitter_s: counted.jitter_ns as f64 / 1e9,
    }
}

fn port(server: &HostRecord) -> u16 {
    let address = server.agent.parse::<SocketAddr>();
    address.map_or(0, |address| address.port())
}

fn unix_ms(rfc3339: &str) -> u64 {
    let at = rfc3339.parse::<jiff::Timestamp>();
    at.map_or(0, |at| at.as_millisecond().unsigned_abs())
}
