//! Writes the bundle of a made-up run of many hosts, and tells what that took: `big_bundle DIR PATTERN HOSTS CPUS SECONDS`.
//!
//! PATTERN is one of `linerate fleet run`: `many-to-one` is one trial of all hosts, `mesh` many trials of two. Plan, writer
//! and rows are those of a run; each host tells every 100 ms what one with so many CPUs and a flow tells. `.ci/bundles` holds
//! the memory that writing takes, and reading by `linerate report`, against what they may take.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use linerate_model::fleet::{FleetHost, Role};
use linerate_model::host::Snapshot;
use linerate_model::manner::Named;
use linerate_model::metric::Metric;
use linerate_model::pairs::Pattern;
use linerate_model::plan::Trial;
use linerate_model::run::{
    Admission, BUNDLE_FORMAT_OF_FLEETS, ClockFit, FlowOutcome, FlowRecord, HostPart, HostProgram,
    HostRecord, Incoming, RunDocument, TrialEvidence, TrialRecord, Validity,
};
use linerate_model::sample::{End, Subject, TrialSample};
use linerate_model::samples::Samples;
use linerate_model::setting::Settings;
use linerate_model::workload::Part;
use linerate_model::{BitsPerSec, HostName, Nanos, RunId};
use linerate_plan::{Hosts, PatternAsked, PlanRequest};
use linerate_store::{Spool, Writer};

type Failed = Box<dyn std::error::Error>;

/// Time between two readings.
const INTERVAL_NS: u64 = 100_000_000;

/// Samples of a trial that are kept in memory: as many as the controller keeps of all hosts.
const HELD_MAX: usize = 20 << 20;

/// What each CPU tells: `/proc/stat` and `/proc/net/softnet_stat`.
const OF_CPU: [Metric; 12] = [
    Metric::CpuUser,
    Metric::CpuNice,
    Metric::CpuSystem,
    Metric::CpuIdle,
    Metric::CpuIoWait,
    Metric::CpuIrq,
    Metric::CpuSoftIrq,
    Metric::CpuSteal,
    Metric::CpuGuest,
    Metric::SoftnetDropped,
    Metric::SoftnetProcessed,
    Metric::SoftnetReceivedRps,
];
/// What the device tells.
const OF_LINK: [Metric; 8] = [
    Metric::LinkRxBytes,
    Metric::LinkTxBytes,
    Metric::LinkRxPackets,
    Metric::LinkTxPackets,
    Metric::LinkRxDropped,
    Metric::LinkTxDropped,
    Metric::LinkRxErrors,
    Metric::LinkTxErrors,
];
/// What the end of a flow tells, as far as a report needs it.
const OF_FLOW: [Metric; 8] = [
    Metric::AppBytesSent,
    Metric::AppBytesReceived,
    Metric::TcpBytesSent,
    Metric::TcpBytesAcked,
    Metric::TcpBytesReceived,
    Metric::TcpRtt,
    Metric::TcpCwnd,
    Metric::TcpRetrans,
];

/// What is asked for.
struct Asked {
    pattern: Pattern,
    hosts: usize,
    cpus: u32,
    seconds: u64,
}

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, pattern, hosts, cpus, seconds] = arguments.as_slice() else {
        return Err("usage: big_bundle DIR PATTERN HOSTS CPUS SECONDS".into());
    };
    let asked = Asked {
        pattern: Pattern::named(pattern).ok_or("no such pattern")?,
        hosts: hosts.parse()?,
        cpus: cpus.parse()?,
        seconds: seconds.parse()?,
    };
    let document = asked.document()?;
    let directory = PathBuf::from(directory);
    let mut writer = Writer::create(&directory, &document)?;
    let spool = Spool::new(&directory)?;
    let mut rows = 0;
    for trial in &document.plan.trials {
        let evidence = asked.evidence(trial, &document, &spool)?;
        rows += evidence.samples.len();
        writer.append(&evidence)?;
    }
    let appended = peak_kib();
    writer.finish(&document)?;
    writeln!(
        std::io::stdout(),
        "{} trials, {rows} samples; peak {} MiB while they were written, {} MiB in all",
        document.plan.trials.len(),
        appended / 1024,
        peak_kib() / 1024,
    )?;
    Ok(())
}

/// Returns the largest resident set so far.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut words = status
        .lines()
        .filter_map(|line| line.strip_prefix("VmHWM:"));
    let word = words.next().and_then(|rest| rest.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

impl Asked {
    /// Plans the run.
    fn document(&self) -> Result<RunDocument, Failed> {
        let fleet: Vec<FleetHost> = (0..self.hosts).map(fleet_host).collect();
        let asked = PatternAsked {
            pattern: self.pattern,
            at_once: false,
            groups: None,
            seed: 1,
        };
        let pairs = linerate_plan::pairs(&fleet, &asked)?;
        let mut draft = linerate_plan::paired(&linerate_plan::fleet_look(), pairs);
        draft.experiment.timing.measure = Nanos::from_s(self.seconds);
        let known = Hosts {
            clients: self.hosts as u32 - 1,
            ..Hosts::default()
        };
        let plan = linerate_plan::plan(&[draft], &PlanRequest::within(None, 1, known))?;
        Ok(RunDocument {
            format: BUNDLE_FORMAT_OF_FLEETS,
            run: RunId("20261130T000000Z-00000000".to_owned()),
            asked: "big_bundle".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_utc: "2026-11-30T00:00:00Z".to_owned(),
            ended_utc: None,
            study: false,
            cut_short: None,
            server_cpus: Vec::new(),
            client_cpus: Vec::new(),
            multicast: None,
            plan,
            hosts: fleet.iter().map(|host| record(&host.name)).collect(),
            left_out: Vec::new(),
        })
    }

    /// Returns what a trial leaves: its flows share a link of 10 Gbit/s.
    fn evidence(
        &self,
        trial: &Trial,
        document: &RunDocument,
        spool: &Arc<Spool>,
    ) -> Result<TrialEvidence, Failed> {
        let hosts = document.hosts_of(trial.id);
        let mut samples = Samples::default();
        let mut flows = Vec::new();
        let of_trial = trial.workload.flows();
        let bytes_per_s = 1_170_000_000 / of_trial.len().max(1) as u64;
        for (number, host) in (0..).zip(hosts.iter()) {
            let ends = of_trial.iter().flat_map(|flow| {
                [(flow.from, End::Client), (flow.to, End::Server)].map(|at| (flow.flow, at))
            });
            let own = ends.filter(|(_, (host, _))| *host == number);
            let own: Vec<_> = own.map(|(flow, (_, end))| (flow, end)).collect();
            let subjects = (0..self.cpus)
                .map(|cpu| (Subject::Cpu(cpu), &OF_CPU[..]))
                .chain([(Subject::Link("eth0".to_owned()), &OF_LINK[..])])
                .chain(
                    own.iter()
                        .map(|(flow, end)| (Subject::Flow(*flow, *end), &OF_FLOW[..])),
                );
            let subjects: Vec<_> = subjects.collect();
            for (place, (subject, metrics)) in subjects.iter().enumerate() {
                let kind = metrics.len() as u32;
                for reading in 0..=self.seconds * 1_000_000_000 / INTERVAL_NS {
                    let at_ns = reading * INTERVAL_NS;
                    for metric in *metrics {
                        samples.push(TrialSample {
                            trial: trial.id,
                            host: host.name.clone(),
                            subject: subject.clone(),
                            metric: *metric,
                            // All CPUs are read at once, and nothing at the exact instant.
                            at_ns: (at_ns
                                + noise(&[trial.id.0, number, kind, reading as u32]) % 50_000)
                                as i64,
                            value: value(
                                *metric,
                                at_ns,
                                noise(&[trial.id.0, number, place as u32, reading as u32]),
                                bytes_per_s,
                            ),
                        });
                    }
                }
            }
            if samples.held() > HELD_MAX {
                spool.take(&mut samples)?;
            }
            let moved = bytes_per_s * self.seconds;
            flows.extend(own.into_iter().map(|(flow, end)| FlowRecord {
                trial: trial.id,
                host: host.name.clone(),
                outcome: FlowOutcome {
                    flow,
                    end,
                    part: match end {
                        End::Client => Part::Sender,
                        End::Server => Part::Receiver,
                    },
                    local: "10.0.0.1:40000".to_owned(),
                    remote: "10.0.0.2:5201".to_owned(),
                    cpu: Some(0),
                    incoming: Incoming::default(),
                    first_payload_ns: Some(0),
                    bytes_sent: if end == End::Client { moved } else { 0 },
                    bytes_received: if end == End::Server { moved } else { 0 },
                    counted_ns: None,
                    stall_max_ns: None,
                    settings: Settings::default(),
                    latency: None,
                    lateness: None,
                    datagrams: None,
                    requests: None,
                    connections: None,
                    zero_copy: None,
                    ended_early: None,
                },
            }));
        }
        Ok(TrialEvidence {
            record: TrialRecord {
                trial: trial.id,
                validity: Validity::Valid,
                flags: Vec::new(),
                offset_ns: u64::from(trial.id.0) * self.seconds * 1_000_000_000,
                window_ns: self.seconds * 1_000_000_000,
                start_skew_ns: Some(10_000),
                start_skew_uncertainty_ns: Some(10_000),
            },
            flows,
            samples,
            profiles: Vec::new(),
            captures: Vec::new(),
        })
    }
}

/// Returns numbers that look drawn, the same for the same `of` (FNV-1a).
fn noise(of: &[u32]) -> u64 {
    let bytes = of.iter().flat_map(|number| number.to_le_bytes());
    let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.fold(0xcbf2_9ce4_8422_2325, mix) >> 20
}

/// Returns a value of `metric`: payload and times grow as they do, with some noise, and what goes wrong stays zero.
fn value(metric: Metric, at_ns: u64, noise: u64, bytes_per_s: u64) -> i64 {
    let moved = (at_ns as f64 / 1e9 * bytes_per_s as f64) as u64 + noise % 1_000_000;
    // The kernel counts in ticks of 10 ms.
    let ticks = |share: f64| ((at_ns as f64 * share / 1e7) as u64 + noise % 2) * 10_000_000;
    let value = match metric {
        Metric::CpuUser | Metric::CpuSystem => ticks(0.1),
        Metric::CpuSoftIrq => ticks(0.05),
        Metric::CpuIdle => ticks(0.75),
        Metric::SoftnetProcessed | Metric::LinkRxPackets | Metric::LinkTxPackets => moved / 1448,
        Metric::LinkRxBytes
        | Metric::LinkTxBytes
        | Metric::AppBytesSent
        | Metric::AppBytesReceived
        | Metric::TcpBytesSent
        | Metric::TcpBytesAcked
        | Metric::TcpBytesReceived => moved,
        Metric::TcpRtt => 200_000 + noise % 10_000,
        Metric::TcpCwnd => 100 + noise % 10,
        _ => 0,
    };
    value as i64
}

fn fleet_host(at: usize) -> FleetHost {
    FleetHost {
        name: HostName::from(format!("n{at:05}")),
        control: String::new(),
        data: Vec::new(),
        role: Role::Any,
        groups: Vec::new(),
    }
}

fn record(name: &HostName) -> HostRecord {
    HostRecord {
        name: name.clone(),
        part: HostPart::Client,
        agent: format!("{name}:5201"),
        control: None,
        data_address: "10.0.0.1".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program: HostProgram::Agent,
        lab: false,
        boot: None,
        link_rate: Some(BitsPerSec(10e9)),
        link_up_rate: None,
        lab_link: None,
        link_loss_ppm: None,
        groups: Vec::new(),
        link: Some("eth0".to_owned()),
        snapshot: Snapshot::default(),
        observers: Vec::new(),
        clock: ClockFit::default(),
        admission: Admission::Exclusive,
    }
}
