//! What CPUs do with their time, by the modes that the kernel counts; guests' time is in that of users.

use std::collections::BTreeMap;
use std::ops::Add as _;

use linerate_model::HostName;
use linerate_model::metric::Metric;
use linerate_model::sample::Subject;

use super::window::{Change, Readings};

pub(crate) const USER: &[Metric] = &[Metric::CpuUser, Metric::CpuNice];
pub(crate) const SYSTEM: &[Metric] = &[Metric::CpuSystem];
pub(crate) const IRQ: &[Metric] = &[Metric::CpuIrq];
pub(crate) const SOFTIRQ: &[Metric] = &[Metric::CpuSoftIrq];
/// Time that the hypervisor gave to others.
pub(crate) const STEAL: &[Metric] = &[Metric::CpuSteal];
/// Time in which a CPU did nothing.
pub(crate) const FREE: &[Metric] = &[Metric::CpuIdle, Metric::CpuIoWait];
/// Time in which it did something.
pub(crate) const BUSY: &[Metric] = &[
    Metric::CpuUser,
    Metric::CpuNice,
    Metric::CpuSystem,
    Metric::CpuIrq,
    Metric::CpuSoftIrq,
];
/// Time that is booked on the thread that used it; softirqs are not, they run in whichever
/// thread they interrupt.
pub(super) const PROGRAMS: &[Metric] = &[Metric::CpuUser, Metric::CpuNice, Metric::CpuSystem];

/// CPUs' worth of time in `metrics`: the host's own line if it was read, else the sum of its CPUs.
pub(super) fn cpu_time(
    host: &HostName,
    readings: &Readings<'_>,
    metrics: &[Metric],
) -> Option<f64> {
    let sum = |subject: &Subject| sum(host, subject, readings, metrics);
    if let Some(whole) = sum(&Subject::Host) {
        return Some(whole);
    }
    let cpus = readings
        .subjects()
        .filter(|(subject, on)| matches!(subject, Subject::Cpu(_)) && *on == host);
    cpus.filter_map(|(subject, _)| sum(subject))
        .reduce(f64::add)
}

/// The kernel gives all modes of a CPU or none: where one of these is missing, what is left is no sum of them.
const ALWAYS: &[Metric] = &[Metric::CpuUser, Metric::CpuSystem, Metric::CpuIdle];

fn sum(
    host: &HostName,
    subject: &Subject,
    readings: &Readings<'_>,
    metrics: &[Metric],
) -> Option<f64> {
    let change = |metric: &Metric| readings.change_on(host, subject, *metric);
    let is_whole = ALWAYS.iter().all(|metric| change(metric).is_some());
    let changes = metrics.iter().filter_map(change).filter(|_| is_whole);
    changes.map(Change::share).reduce(f64::add)
}

/// Returns the share of its time that each CPU of `host` was busy, and that it was busy with interrupts.
pub(crate) fn busy_by_cpu(host: &HostName, readings: &Readings<'_>) -> BTreeMap<u32, (f64, f64)> {
    let of_cpu = |(subject, on): (&Subject, &HostName)| {
        let Subject::Cpu(cpu) = subject else {
            return None;
        };
        let share = |metrics| sum(host, subject, readings, metrics);
        let interrupts = share(&[Metric::CpuIrq, Metric::CpuSoftIrq]).unwrap_or(0.0);
        (on == host).then(|| Some((*cpu, (share(BUSY)?, interrupts))))?
    };
    readings.subjects().filter_map(of_cpu).collect()
}
