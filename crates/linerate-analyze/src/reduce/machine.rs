//! CPUs and threads of the hosts.
//!
//! CPU time is the server's. In a lab all hosts are one machine, so it is then the machine's, and
//! any host that read it will do. Busy is everything but idle and iowait; guest time is already
//! counted as user time (Documentation/filesystems/proc.rst). Ticks that fall into a window are not all of it,
//! so that full CPUs may count more than there are: all modes are then smaller by the same share.
//!
//! Whose the time was:
//!
//! 1. A thread's own times have the softirqs that ran in its context, and the host's line
//!    `system` has not. So our kernel time is taken to be what our threads say, but no more than the
//!    host has of it, and all interrupts are taken to be the traffic's. The host's lines are of ticks,
//!    which short work falls between; the scheduler's clock of our threads has no steps, and both parts
//!    together are never less than that.
//! 2. The rest of user and system time is other programs': never more than they had, and less by
//!    the interrupts that ran in our threads. Both parts add up to what was busy.
//! 3. What no mode accounts for (1 − Σ modes / CPUs × time) was taken by the machine below, or its
//!    ticks were lost; the work of the host was disturbed by it either way.

use std::collections::BTreeMap;
use std::ops::Add as _;

use linerate_model::HostName;
use linerate_model::flag::TrialFlag;
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::response::name;
use linerate_model::run::{HostPart, HostRecord};
use linerate_model::sample::{End, Subject};

use super::cpu_time::{BUSY, FREE, IRQ, SOFTIRQ, STEAL, SYSTEM, USER, cpu_time};
use super::exchange::hosts_with_flows;
use super::raw::Raw;
use super::starved::our_time;
use super::window::{Change, Readings, mean};
use super::{DISTURBED_SHARE_MAX, OTHERS_CPUS_MAX, Responses, Values, cost};

/// CPU time that this run took, as far as that is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    /// Whether segments that came are counted as aggregates at some end.
    pub(super) on_aggregates: bool,
    /// CPUs' worth of our own threads, without the interrupts that ran in them.
    pub(super) threads: Option<f64>,
    /// CPUs' worth of all interrupts.
    pub(super) interrupts: f64,
}

/// Reduces the CPUs' part; returns what to know of disturbances.
pub(super) fn reduce(
    raw: &Raw<'_>,
    spinning: &[&HostName],
    responses: &mut Responses,
) -> Vec<TrialFlag> {
    let (hosts, readings) = (raw.hosts, raw.readings);
    let mut spent = Spent::default();
    if let Some(host) = cpu_host(hosts, readings) {
        cpu(host, cpus(raw, host), readings, responses);
        let sharing = sharing(hosts, host);
        let ours = |metric| our_time(&sharing, readings, &[&[metric]]);
        let of_host = |name: &str| responses.value(name);
        let user = of_host(name::CPU_USER).zip(ours(Metric::ThreadUser));
        let system = of_host(name::CPU_SYSTEM).zip(ours(Metric::ThreadSystem));
        let others = |(all, ours): (f64, f64)| (all - ours).max(0.0);
        let least = |(all, ours): (f64, f64)| all.min(ours);
        let interrupts = [name::CPU_IRQ, name::CPU_SOFTIRQ]
            .map(of_host)
            .into_iter()
            .flatten()
            .sum();
        let ran = ours(Metric::ThreadRun).unwrap_or_default();
        let mut lanes = raw.lanes.iter();
        spent = Spent {
            on_aggregates: lanes.any(|lane| {
                [End::Client, End::Server]
                    .into_iter()
                    .any(|end| lane.counts_aggregates(end))
            }),
            threads: user
                .zip(system)
                .map(|(user, system)| (least(user) + least(system)).max(ran - interrupts)),
            interrupts,
        };
        responses.put(name::CPU_OTHERS, user.map(others));
        let all = user
            .zip(system)
            .map(|(user, system)| others(user) + others(system));
        responses.put(name::CPU_OTHERS_ALL, all);
    }
    let kernels = kernels(hosts, readings);
    let most = |of: &dyn Fn(&HostName) -> Option<f64>| {
        let values = kernels.iter().filter_map(|host| of(host));
        values.max_by(f64::total_cmp)
    };
    let missing = most(&|host| missing_share(host, readings, |missing, _| missing));
    responses.put(name::CPU_MISSING, missing);
    let scarce =
        most(&|host| missing_share(host, readings, |missing, idle| (missing - idle).max(0.0)));
    responses.put(name::CPU_MISSING_SCARCE, scarce);
    let pressure = most(&|host| {
        let pressure = readings.change_on(host, &Subject::Host, Metric::PressureCpuSome);
        pressure.map(Change::share)
    });
    responses.put(name::CPU_PRESSURE, pressure);
    workers(raw, spinning, responses);
    for (part, ran, wanted) in [
        (
            HostPart::Client,
            name::CLIENT_WORKERS,
            name::CLIENT_WORKER_WANTED,
        ),
        (
            HostPart::Server,
            name::SERVER_WORKERS,
            name::SERVER_WORKER_WANTED,
        ),
    ] {
        responses.put(ran, workers_of(raw, part));
        responses.put(wanted, wanted_of(raw, part));
    }
    let switches = |is_wanted: &dyn Fn(&HostName) -> bool| {
        let of_worker = |subject: &Subject, on: &HostName| subject.is_worker() && is_wanted(on);
        readings.sum(Metric::ThreadArrivals, of_worker, Change::rate)
    };
    responses.put(name::CONTEXT_SWITCHES, switches(&|_| true));
    let of_server = switches(&|on| raw.is_part(on, HostPart::Server));
    responses.put(name::SERVER_SWITCHES, of_server);
    responses.put(name::TCP_MEMORY_PER_FLOW, tcp_memory_per_flow(raw));
    let host = cpu_host(hosts, readings);
    if let Some(record) = host.and_then(|host| raw.host(host)) {
        let sharing = sharing(hosts, &record.name);
        interrupts(&record.name, readings, responses);
        cost::reduce(record, &sharing, spent, readings, responses);
    }
    responses.put(name::DELAYED_ACKS, delayed_acks(raw));
    let cost = responses.value(name::CPU_COST);
    let gbit = responses.value(name::THROUGHPUT).map(|bps| bps / 1e9);
    let cost = cost.zip(gbit).filter(|(_, gbit)| *gbit > 0.0);
    responses.put(name::CPU_PER_GBIT, cost.map(|(cost, gbit)| cost / gbit));
    let cpus = host.map_or(0, |host| cpus_of(host, readings).len());
    disturbances(cpus as f64, hosts.iter().any(|host| host.lab), responses)
}

/// Returns what the CPUs of each kernel did, with the hosts that share them.
pub(super) fn by_kernel<'a>(raw: &Raw<'a>) -> Vec<(Vec<&'a HostName>, Responses)> {
    let mut kernels: Vec<(Vec<&HostName>, Responses)> = Vec::new();
    for host in raw.hosts {
        if kernels.iter().any(|(known, _)| known.contains(&&host.name)) {
            continue;
        }
        let sharing = sharing(raw.hosts, &host.name);
        let mut read = sharing.iter();
        let read = read.find(|host| cpu_time(host, raw.readings, SYSTEM).is_some());
        let mut responses = Responses::default();
        if let Some(host) = read {
            cpu(host, cpus(raw, host), raw.readings, &mut responses);
            kernels.push((sharing, responses));
        }
    }
    kernels
}

/// Returns how many CPUs `host` has.
fn cpus(raw: &Raw<'_>, host: &HostName) -> f64 {
    let record = raw.host(host);
    let online = record.and_then(|record| record.snapshot.number("cpu.online"));
    let counted = cpus_of(host, raw.readings).len() as f64;
    counted.max(online.unwrap_or(0.0))
}

/// Returns what took more of the machine than a measurement should share.
fn disturbances(cpus: f64, in_lab: bool, responses: &Responses) -> Vec<TrialFlag> {
    let mut flags = Vec::new();
    let most = DISTURBED_SHARE_MAX * cpus;
    let others = responses.value(name::CPU_OTHERS_ALL);
    if let Some(others) = others.filter(|others| *others > most.max(OTHERS_CPUS_MAX)) {
        flags.push(TrialFlag::OtherPrograms {
            cpus: others,
            in_lab,
        });
    }
    let stolen = responses.value(name::CPU_STEAL);
    if let Some(stolen) = stolen.filter(|stolen| cpus > 0.0 && *stolen > most) {
        flags.push(TrialFlag::Stolen(stolen / cpus));
    }
    let scarce = responses.value(name::CPU_MISSING_SCARCE);
    let missing = responses.value(name::CPU_MISSING);
    let missing = missing.filter(|_| scarce.is_some_and(|share| share > DISTURBED_SHARE_MAX));
    flags.extend(missing.map(TrialFlag::Unaccounted));
    flags
}

/// Returns one host of each kernel whose CPUs were read: hosts of a lab share theirs.
fn kernels<'h>(hosts: &'h [HostRecord], readings: &Readings<'_>) -> Vec<&'h HostName> {
    if hosts.iter().any(|host| host.lab) {
        cpu_host(hosts, readings).into_iter().collect()
    } else {
        hosts.iter().map(|host| &host.name).collect()
    }
}

fn cpus_of<'a>(host: &HostName, readings: &'a Readings<'_>) -> Vec<&'a Subject> {
    let subjects = readings.subjects();
    let of_host = subjects.filter(|(_, on)| *on == host);
    let subjects = of_host.map(|(subject, _)| subject);
    subjects
        .filter(|subject| matches!(subject, Subject::Cpu(_)))
        .filter(|subject| readings.on(host, subject, Metric::CpuIdle).is_some())
        .collect()
}

/// Returns the mean over CPUs `of` what no mode has and what was idle: 1 − Σ modes / time, where ticks count too much below none.
///
/// Kernels that sample busy time at the tick and count idle time exactly lose what runs between two idle spells without
/// meeting a tick. A CPU that hardly rests meets all of them, so that what misses there was taken; and what one misses
/// that rested for longer it had to spare.
fn missing_share(host: &HostName, readings: &Readings<'_>, of: fn(f64, f64) -> f64) -> Option<f64> {
    // A host that was lost has no second reading: nothing is known of its time.
    let time = |subject: &Subject, modes: &[&[Metric]]| {
        let rates = modes.iter().copied().flatten().filter_map(|metric| {
            let series = readings.on(host, subject, *metric)?;
            // Idle time may go backwards (Documentation/filesystems/proc.rst).
            Some(readings.difference(&series)?.rate() / 1e9)
        });
        rates.reduce(f64::add)
    };
    let of_cpu = |subject: &Subject| {
        let counted = time(subject, &[BUSY, STEAL, FREE])?;
        Some(of(1.0 - counted, time(subject, &[FREE])?))
    };
    let cpus = cpus_of(host, readings).into_iter();
    Some(mean(cpus.filter_map(of_cpu))?.max(0.0))
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

fn cpu(host: &HostName, cpus: f64, readings: &Readings<'_>, responses: &mut Responses) {
    let part = |metrics| cpu_time(host, readings, metrics);
    let parts = [USER, SYSTEM, IRQ, SOFTIRQ, STEAL].map(part);
    let busy: f64 = parts.into_iter().flatten().sum();
    let share = if busy > cpus && cpus > 0.0 {
        cpus / busy
    } else {
        1.0
    };
    let parts = parts.map(|part| part.map(|part| share * part));
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

/// Returns the hosts whose programs run on the CPUs of `host`: all of a lab, both ends of loopback, and
/// other namespaces under the same kernel.
pub(super) fn sharing<'h>(hosts: &'h [HostRecord], host: &'h HostName) -> Vec<&'h HostName> {
    let record = hosts.iter().find(|record| record.name == *host);
    let address = record.map_or("", |record| &record.data_address);
    let loopback = address
        .parse()
        .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    let boot = record.and_then(|record| record.boot.as_ref());
    let same = |other: &&HostRecord| {
        let kernel = boot.is_some() && other.boot.as_ref() == boot;
        other.name == *host || other.lab || loopback || kernel || other.data_address == address
    };
    hosts.iter().filter(same).map(|other| &other.name).collect()
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

/// Memory of all TCP sockets of the server's kernel for each flow: pages of buffers, not of the sockets themselves. Where
/// hosts share a kernel it is that of both ends.
fn tcp_memory_per_flow(raw: &Raw<'_>) -> Option<f64> {
    let server = raw
        .hosts
        .iter()
        .find(|host| host.part == HostPart::Server)?;
    let series = raw
        .readings
        .on(&server.name, &Subject::Host, Metric::MemoryTcp)?;
    let all = mean(raw.readings.gauge(&series))?;
    let flows = f64::from(raw.trial.workload.connections);
    (raw.trial.workload.manner.transport == Transport::Tcp && flows > 0.0).then_some(all / flows)
}

/// CPUs' worth of time that the workers of all hosts of `part` ran.
///
/// Threads are of one trial, so that this is right however many runs share a host.
fn workers_of(raw: &Raw<'_>, part: HostPart) -> Option<f64> {
    let wanted = |subject: &Subject, on: &HostName| subject.is_worker() && raw.is_part(on, part);
    raw.readings.sum(Metric::ThreadRun, wanted, Change::share)
}

/// Share of the time that the neediest worker of the hosts of `part` ran or waited for a CPU, as far as waits are counted.
fn wanted_of(raw: &Raw<'_>, part: HostPart) -> Option<f64> {
    let workers = raw.workers().filter(|(_, on)| raw.is_part(on, part));
    let wanted = workers.filter_map(|(subject, on)| {
        let share = |metric| Some(raw.readings.change_on(on, subject, metric)?.share());
        let wait = share(Metric::ThreadWait).unwrap_or(0.0);
        Some((share(Metric::ThreadRun)? + wait).min(1.0))
    });
    wanted.max_by(f64::total_cmp)
}

/// Returns whether a host had several workers, which share their own CPU time each.
pub(super) fn have_several_workers(raw: &Raw<'_>) -> bool {
    let mut workers: BTreeMap<&HostName, usize> = BTreeMap::new();
    for (_, host) in raw.workers() {
        *workers.entry(host).or_default() += 1;
    }
    workers.values().any(|count| *count > 1)
}

/// What workers ran and waited at the most, and what those wanted that do not spin.
fn workers(raw: &Raw<'_>, spinning: &[&HostName], responses: &mut Responses) {
    let share = |subject: &Subject, host: &HostName, metric| {
        let change = raw.readings.change_on(host, subject, metric);
        change.map(Change::share)
    };
    let mut greatest: [Option<f64>; 3] = [None; 3];
    for (subject, host) in raw.workers() {
        let run = share(subject, host, Metric::ThreadRun);
        let wait = share(subject, host, Metric::ThreadWait);
        // The kernel adds a wait when it ends, so that one from before the window may count in it.
        let wait = wait.map(|wait| wait.min(1.0));
        let wanted = run
            .zip(wait)
            .map(|(run, wait)| (run + wait).min(1.0))
            .filter(|_| !spinning.contains(&host));
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
fn delayed_acks(raw: &Raw<'_>) -> Option<f64> {
    let hosts = hosts_with_flows(raw);
    let rate = |host: &&HostName| {
        let metric = Metric::NetstatDelayedAcks;
        let change = raw.readings.change_on(host, &Subject::Host, metric);
        change.map(Change::rate)
    };
    (!hosts.is_empty()).then(|| hosts.iter().map(rate).sum::<Option<f64>>())?
}
