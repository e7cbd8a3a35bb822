//! CPUs and threads of the hosts.
//!
//! CPU time is the server's. In a lab all hosts are one machine, so it is then the machine's, and
//! any host that read it will do. Busy is everything but idle and iowait; guest time is already
//! counted as user time (Documentation/filesystems/proc.rst).

use linerate_model::HostName;
use std::collections::BTreeSet;

use linerate_model::metric::Metric;
use linerate_model::run::{HostPart, HostRecord};
use linerate_model::sample::Subject;

use super::response::name;
use super::window::{Change, Readings};
use super::{Responses, cost};

const USER: &[Metric] = &[Metric::CpuUser, Metric::CpuNice];
const SYSTEM: &[Metric] = &[Metric::CpuSystem];
const IRQ: &[Metric] = &[Metric::CpuIrq];
const SOFTIRQ: &[Metric] = &[Metric::CpuSoftIrq];
const STEAL: &[Metric] = &[Metric::CpuSteal];

/// Threads of the generator that move payload carry this prefix.
const WORKER_PREFIX: &str = "worker";

pub(super) fn reduce(hosts: &[HostRecord], readings: &Readings<'_>, responses: &mut Responses) {
    if let Some(host) = cpu_host(hosts, readings) {
        cpu(host, readings, responses);
        let user = responses.value(name::CPU_USER);
        let ours = our_user_time(&sharing(hosts, host), readings);
        responses.put(
            name::CPU_OTHERS,
            user.zip(ours).map(|(user, ours)| (user - ours).max(0.0)),
        );
    }
    workers(readings, responses);
    for (part, name) in [
        (HostPart::Client, name::CLIENT_WORKERS),
        (HostPart::Server, name::SERVER_WORKERS),
    ] {
        responses.put(name, workers_of(part, hosts, readings));
    }
    let host = cpu_host(hosts, readings);
    if let Some(record) = hosts.iter().find(|record| Some(&record.name) == host) {
        let sharing = sharing(hosts, &record.name);
        interrupts(&record.name, readings, responses);
        cost::reduce(record, &sharing, readings, responses);
    }
    responses.put(name::DELAYED_ACKS, delayed_acks(readings));
    let busy = responses.value(name::CPU_BUSY);
    let gbit = responses.value(name::THROUGHPUT).map(|bps| bps / 1e9);
    let cost = busy.zip(gbit).filter(|(_, gbit)| *gbit > 0.0);
    responses.put(name::CPU_PER_GBIT, cost.map(|(busy, gbit)| busy / gbit));
}

fn cpu_host<'h>(hosts: &'h [HostRecord], readings: &Readings<'_>) -> Option<&'h HostName> {
    let has = |host: &&HostRecord| cpu_time(&host.name, readings, SYSTEM).is_some();
    let server = hosts
        .iter()
        .find(|host| host.part == HostPart::Server)
        .filter(has);
    let other = || hosts.iter().filter(|host| host.lab).find(has);
    server.or_else(other).map(|host| &host.name)
}

fn cpu(host: &HostName, readings: &Readings<'_>, responses: &mut Responses) {
    let part = |metrics| cpu_time(host, readings, metrics);
    let parts = [USER, SYSTEM, IRQ, SOFTIRQ, STEAL].map(part);
    let names = [
        name::CPU_USER,
        name::CPU_SYSTEM,
        name::CPU_IRQ,
        name::CPU_SOFTIRQ,
        name::CPU_STEAL,
    ];
    for (name, part) in names.into_iter().zip(parts) {
        responses.put(name, part);
    }
    // Modes that this kernel does not count cannot hide work: user and system are always there.
    if parts[0].is_some() && parts[1].is_some() {
        responses.put(name::CPU_BUSY, Some(parts.into_iter().flatten().sum()));
    }
}

/// CPUs' worth of time in `metrics`: the host's own line if it was read, else the sum of its CPUs.
fn cpu_time(host: &HostName, readings: &Readings<'_>, metrics: &[Metric]) -> Option<f64> {
    let rate = |subject: &Subject, metric| {
        let series = readings.on(host, subject, metric)?;
        Some(readings.change(&series)?.rate() / 1e9)
    };
    let sum = |subject: &Subject| {
        let rates: Vec<f64> = metrics
            .iter()
            .filter_map(|metric| rate(subject, *metric))
            .collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>())
    };
    if let Some(whole) = sum(&Subject::Host) {
        return Some(whole);
    }
    let cpus: Vec<f64> = readings
        .subjects()
        .filter(|(subject, on)| matches!(subject, Subject::Cpu(_)) && *on == host)
        .filter_map(|(subject, _)| sum(subject))
        .collect();
    (!cpus.is_empty()).then(|| cpus.iter().sum())
}

/// Returns the hosts whose programs run on the CPUs of `host`: all of a lab, both ends of loopback.
fn sharing<'h>(hosts: &'h [HostRecord], host: &'h HostName) -> Vec<&'h HostName> {
    let record = hosts.iter().find(|record| record.name == *host);
    let address = record.map_or("", |record| &record.data_address);
    let loopback = address
        .parse()
        .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    let same = |other: &&HostRecord| {
        other.name == *host || other.lab || loopback || other.data_address == address
    };
    hosts.iter().filter(same).map(|other| &other.name).collect()
}

/// CPUs' worth of user time of our own threads on `hosts`.
///
/// User time is attributed to the thread that used it; kernel time is not, since soft interrupts
/// run in whichever thread they interrupt. So what others do is seen in user mode only.
fn our_user_time(hosts: &[&HostName], readings: &Readings<'_>) -> Option<f64> {
    let threads = readings
        .subjects()
        .filter(|(subject, on)| matches!(subject, Subject::Thread(_)) && hosts.contains(on));
    let rates: Vec<f64> = threads
        .filter_map(|(subject, on)| {
            let series = readings.on(on, subject, Metric::ThreadUser)?;
            Some(readings.change(&series)?.rate() / 1e9)
        })
        .collect();
    (!rates.is_empty()).then(|| rates.iter().sum())
}

/// Time in interrupts as tracepoints measure it, where that was asked for.
fn interrupts(host: &HostName, readings: &Readings<'_>, responses: &mut Responses) {
    let measured: [(_, &[Metric]); 4] = [
        (name::SOFTIRQ_MEASURED, &Metric::SOFTIRQ_VECTORS),
        (name::NET_RX, &[Metric::SoftIrqNetRx]),
        (name::NET_TX, &[Metric::SoftIrqNetTx]),
        (name::HARDIRQ_MEASURED, &[Metric::HardIrqHandlers]),
    ];
    for (name, metrics) in measured {
        responses.put(name, cpu_time(host, readings, metrics));
    }
}

/// CPUs' worth of time that the workers of all hosts of `part` ran.
///
/// Threads are of one trial, so that this is right however many runs share a host.
fn workers_of(part: HostPart, hosts: &[HostRecord], readings: &Readings<'_>) -> Option<f64> {
    let of_part = |on: &HostName| {
        let mut hosts = hosts.iter();
        hosts.any(|host| host.part == part && host.name == *on)
    };
    let rates: Vec<f64> = readings
        .subjects()
        .filter(|(subject, on)| {
            let is_worker =
                matches!(subject, Subject::Thread(name) if name.starts_with(WORKER_PREFIX));
            is_worker && of_part(on)
        })
        .filter_map(|(subject, on)| {
            let series = readings.on(on, subject, Metric::ThreadRun)?;
            Some(readings.change(&series)?.rate() / 1e9)
        })
        .collect();
    (!rates.is_empty()).then(|| rates.iter().sum())
}

fn workers(readings: &Readings<'_>, responses: &mut Responses) {
    let share = |subject: &Subject, host: &HostName, metric| {
        let series = readings.on(host, subject, metric)?;
        readings
            .change(&series)
            .map(Change::rate)
            .map(|rate| rate / 1e9)
    };
    let mut greatest: [Option<f64>; 3] = [None; 3];
    for (subject, host) in readings.subjects() {
        if !matches!(subject, Subject::Thread(name) if name.starts_with(WORKER_PREFIX)) {
            continue;
        }
        let run = share(subject, host, Metric::ThreadRun);
        let wait = share(subject, host, Metric::ThreadWait);
        // The kernel adds a wait when it ends, so that one from before the window may count in it.
        let wait = wait.map(|wait| wait.min(1.0));
        let wanted = run.zip(wait).map(|(run, wait)| (run + wait).min(1.0));
        for (greatest, value) in greatest.iter_mut().zip([run, wait, wanted]) {
            *greatest = (*greatest).into_iter().chain(value).max_by(f64::total_cmp);
        }
    }
    let names = [
        name::WORKER_BUSY_SHARE_MAX,
        name::RUNQUEUE_WAIT_MAX,
        name::WORKER_WANTED_SHARE_MAX,
    ];
    for (name, value) in names.into_iter().zip(greatest) {
        responses.put(name, value);
    }
}

/// Sum over the hosts with flows; absent when one of them was not read, since that one may be the
/// host that delays.
fn delayed_acks(readings: &Readings<'_>) -> Option<f64> {
    let hosts: BTreeSet<&HostName> = readings
        .subjects()
        .filter(|(subject, _)| matches!(subject, Subject::Flow(..)))
        .map(|(_, host)| host)
        .collect();
    let rate = |host: &&HostName| {
        let series = readings.on(host, &Subject::Host, Metric::NetstatDelayedAcks)?;
        readings.change(&series).map(Change::rate)
    };
    (!hosts.is_empty()).then(|| hosts.iter().map(rate).sum::<Option<f64>>())?
}
