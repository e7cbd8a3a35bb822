//! Whether workers got the CPUs that they wanted, and what the CPUs did meanwhile.
//!
//! All of it is of one host: that of the worker that ran or waited for a CPU most, those aside that spin. Throttling is of the
//! control group of any host with flows, the most throttled.

use std::collections::BTreeSet;
use std::ops::Add as _;

use linerate_model::HostName;
use linerate_model::metric::Metric;
use linerate_model::response::name;
use linerate_model::run::HostRecord;
use linerate_model::sample::Subject;

use super::Responses;
use super::cpu_time::{BUSY, FREE, PROGRAMS, STEAL, SYSTEM, USER, cpu_time};
use super::exchange::hosts_with_flows;
use super::machine::sharing;
use super::raw::Raw;
use super::window::{Readings, mean};

/// Time that is booked on threads by mode, and what a thread of ours has of it.
const BY_MODE: [(&[Metric], &[Metric]); 2] = [
    (USER, &[Metric::ThreadUser]),
    (SYSTEM, &[Metric::ThreadSystem]),
];
/// What our own threads ran: to the nanosecond, or else in ticks.
const OURS: [&[Metric]; 2] = [
    &[Metric::ThreadRun],
    &[Metric::ThreadUser, Metric::ThreadSystem],
];

/// Time in interrupts, soft ones and others.
const IN_INTERRUPTS: &[Metric] = &[Metric::CpuIrq, Metric::CpuSoftIrq];
/// A tick of /proc/stat (USER_HZ is 100).
const TICK_NS: f64 = 1e7;

pub(super) fn reduce(raw: &Raw<'_>, spinning: &[&HostName], responses: &mut Responses) {
    let (hosts, readings) = (raw.hosts, raw.readings);
    throttling(raw, responses);
    let Some((worker, host, waited)) = neediest(raw, spinning) else {
        return;
    };
    responses.put(name::WORKER_WAITED, Some(waited));
    let stolen = cpu_time(host, readings, STEAL);
    let busy = cpu_time(host, readings, BUSY);
    let all = busy
        .zip(cpu_time(host, readings, FREE))
        .map(|(busy, free)| busy + free + stolen.unwrap_or(0.0));
    let share = |part: Option<f64>| {
        let (part, all) = part.zip(all).filter(|(_, all)| *all > 0.0)?;
        Some(part / all)
    };
    responses.put(name::CPU_BUSY_SHARE, share(busy));
    responses.put(name::CPU_STEAL_SHARE, share(stolen));
    let beside = sharing(hosts, host);
    let of_workers = busy_where_workers_ran(raw, host, &beside);
    responses.put(name::WORKER_CPUS_BUSY, of_workers);
    if let Some((idle, softirq)) = where_it_stayed(readings, worker, host) {
        responses.put(name::WORKER_CPU_IDLE, Some(idle));
        responses.put(name::WORKER_CPU_SOFTIRQ, Some(softirq));
    }
    // Another program that serves us is no stranger, and nothing is read of its threads.
    let is_foreign = |host: &HostRecord| !host.program.is_agent() && beside.contains(&&host.name);
    if !hosts.iter().any(is_foreign) {
        responses.put(name::OTHERS_THERE, others(host, &beside, readings));
        let (user, ours) = BY_MODE[0];
        let user = beyond(host, user, &beside, &[ours], readings);
        responses.put(name::OTHERS_THERE_USER, user);
        responses.put(name::OTHERS_THERE_USER_SHARE, share(user));
    }
}

/// Share of the time that those CPUs of `host` were busy on which any reading found a worker of the hosts that share them.
fn busy_where_workers_ran(raw: &Raw<'_>, host: &HostName, beside: &[&HostName]) -> Option<f64> {
    let readings = raw.readings;
    let workers = raw.workers().filter(|(_, on)| beside.contains(on));
    let found = workers.filter_map(|(subject, on)| {
        let series = readings.on(on, subject, Metric::ThreadCpu)?;
        Some(readings.gauge(&series).collect::<Vec<f64>>())
    });
    let cpus: BTreeSet<u32> = found.flatten().map(|cpu| cpu as u32).collect();
    let time = |metrics: &[Metric]| {
        let of_cpu = |cpu: &u32| {
            let subject = Subject::Cpu(*cpu);
            let rate = |metric: &Metric| Some(readings.change_on(host, &subject, *metric)?.share());
            metrics
                .iter()
                .filter_map(rate)
                .reduce(|sum, rate| sum + rate)
        };
        cpus.iter().map(of_cpu).sum::<Option<f64>>()
    };
    let (busy, free) = time(BUSY).zip(time(FREE))?;
    let all = busy + free + time(STEAL).unwrap_or(0.0);
    (all > 0.0).then(|| busy / all)
}

/// Shares of the time that the CPU of a worker was idle, at the least, and in interrupts.
///
/// A worker moves from CPU to CPU, so that this is of the time between readings that found it on the same one. The kernel
/// tells the time of a CPU in whole ticks: what a stay on one had of idle time is known to a tick.
fn where_it_stayed(
    readings: &Readings<'_>,
    worker: &Subject,
    host: &HostName,
) -> Option<(f64, f64)> {
    let found = readings.on(host, worker, Metric::ThreadCpu)?;
    let stays = readings
        .inside(&found)
        .chunk_by(|before, after| before.1 == after.1);
    let (mut all_ns, mut idle_ns, mut softirq_ns) = (0.0, 0.0, 0.0);
    for stay in stays {
        let (Some(first), Some(last)) = (stay.first(), stay.last()) else {
            continue;
        };
        let cpu = Subject::Cpu(u32::try_from(first.1).ok()?);
        // Threads are read beside the CPUs, not at the same instant.
        let grown = |metric: &Metric| {
            let series = readings.on(host, &cpu, *metric)?;
            let at = |at_ns: i64| series.iter().min_by_key(|it| it.0.abs_diff(at_ns));
            let (begin, end) = (at(first.0)?, at(last.0)?);
            Some(end.1.saturating_sub(begin.1) as f64)
        };
        let sum = |metrics: &[Metric]| metrics.iter().filter_map(grown).reduce(f64::add);
        let (idle, softirq) = (sum(FREE)?, sum(IN_INTERRUPTS)?);
        if last.0 > first.0 {
            all_ns += (last.0 - first.0) as f64;
            idle_ns += idle - TICK_NS;
            softirq_ns += softirq;
        }
    }
    let share = |ns: f64| (ns / all_ns).clamp(0.0, 1.0);
    (all_ns > 0.0).then(|| (share(idle_ns), share(softirq_ns)))
}

/// CPUs' worth of time of the programs on `host` that are none of ours, of which `beside` has the threads.
///
/// A machine that loses ticks counts less kernel time than our threads had, to the nanosecond, by themselves. What
/// is missing there is not the user time of others, so that both modes are looked at apart as well.
fn others(host: &HostName, beside: &[&HostName], readings: &Readings<'_>) -> Option<f64> {
    let beyond = |all, ours: &[&[Metric]]| beyond(host, all, beside, ours, readings);
    let whole = beyond(PROGRAMS, &OURS);
    let by_mode: Option<f64> = BY_MODE.iter().map(|(all, own)| beyond(all, &[own])).sum();
    whole.into_iter().chain(by_mode).max_by(f64::total_cmp)
}

/// CPUs' worth of time in `programs` on `host` beyond what the threads of `beside` had by `ours`.
fn beyond(
    host: &HostName,
    programs: &[Metric],
    beside: &[&HostName],
    ours: &[&[Metric]],
    readings: &Readings<'_>,
) -> Option<f64> {
    let programs = cpu_time(host, readings, programs)?;
    Some((programs - our_time(beside, readings, ours)?).max(0.0))
}

/// The worker that ran or waited for a CPU most, its host, and the share of the time that it waited.
fn neediest<'a>(raw: &Raw<'a>, spinning: &[&HostName]) -> Option<(&'a Subject, &'a HostName, f64)> {
    let workers = raw.workers().filter(|(_, host)| !spinning.contains(host));
    let needs = workers.filter_map(|(subject, host)| {
        let share = |metric| Some(raw.readings.change_on(host, subject, metric)?.share());
        // The kernel adds a wait when it ends, so that one from before the window may count in it.
        let run = share(Metric::ThreadRun)?.min(1.0);
        let wait = share(Metric::ThreadWait)?.min(1.0 - run);
        Some((subject, host, wait, run + wait))
    });
    let most = needs.max_by(|a, b| a.3.total_cmp(&b.3))?;
    Some((most.0, most.1, most.2))
}

/// CPUs' worth of time of our own threads on `hosts`, by the first of `metrics` that a thread has.
pub(super) fn our_time(
    hosts: &[&HostName],
    readings: &Readings<'_>,
    metrics: &[&[Metric]],
) -> Option<f64> {
    let threads = readings
        .subjects()
        .filter(|(subject, on)| matches!(subject, Subject::Thread(_)) && hosts.contains(on));
    let of = |(subject, on): (&Subject, &HostName)| -> Option<f64> {
        let rate = |metric: &Metric| Some(readings.change_on(on, subject, *metric)?.share());
        let mut metrics = metrics.iter();
        metrics.find_map(|metrics| metrics.iter().map(rate).sum())
    };
    threads.filter_map(of).reduce(|sum, rate| sum + rate)
}

/// Of the hosts with flows, how often and how long the control group of our process was throttled.
fn throttling(raw: &Raw<'_>, responses: &mut Responses) {
    let readings = raw.readings;
    let greatest = |of: &dyn Fn(&HostName) -> Option<f64>| {
        let hosts = hosts_with_flows(raw).into_iter();
        hosts.filter_map(of).max_by(f64::total_cmp)
    };
    let change = |host: &HostName, metric| readings.change_on(host, &Subject::Host, metric);
    let periods = |host: &HostName| {
        let all = change(host, Metric::CgroupPeriods)?.amount;
        let throttled = change(host, Metric::CgroupThrottled)?.amount;
        Some(if all > 0.0 {
            (throttled / all).min(1.0)
        } else {
            0.0
        })
    };
    responses.put(name::THROTTLED_PERIODS, greatest(&periods));
    // The kernel adds up the time of every CPU that the group has threads on.
    let time = |host: &HostName| Some(change(host, Metric::CgroupThrottledTime)?.share().min(1.0));
    responses.put(name::THROTTLED, greatest(&time));
    let quota = |host: &HostName| {
        let series = readings.on(host, &Subject::Host, Metric::CgroupQuota)?;
        Some(mean(readings.gauge(&series))? / 1e9)
    };
    let tightest = hosts_with_flows(raw).into_iter().filter_map(quota);
    responses.put(name::QUOTA, tightest.min_by(f64::total_cmp));
}
