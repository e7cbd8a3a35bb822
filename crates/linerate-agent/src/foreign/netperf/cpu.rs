//! How busy the CPUs were, as netperf reckons it.

use std::collections::BTreeMap;

use linerate_compat::netperf::{CpuMethod, CpuShares};
use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};
use linerate_observe::{ObserveConfig, Observer, cpu_times};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

/// The modes of a CPU that add up to the time that passed: guests are in the first two.
const MODES: [Metric; 8] = [
    Metric::CpuIdle,
    Metric::CpuUser,
    Metric::CpuSystem,
    Metric::CpuIoWait,
    Metric::CpuIrq,
    Metric::CpuSoftIrq,
    Metric::CpuNice,
    Metric::CpuSteal,
];

/// Time of each CPU in each of [`MODES`], nanoseconds.
type Times = BTreeMap<u32, [i64; MODES.len()]>;

/// Time of all CPUs from one instant on.
pub(super) struct HostWatch {
    observer: Box<dyn Observer>,
    before: Times,
}

impl HostWatch {
    /// Begins now.
    pub(super) fn begin() -> Self {
        let mut observer = cpu_times(&ObserveConfig {
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            lab: false,
            host_wide: true,
            threads: Vec::new(),
        });
        Self {
            before: read(&mut *observer),
            observer,
        }
    }

    /// Returns how many CPUs there are.
    pub(super) fn cpus(&self) -> u32 {
        self.before.len() as u32
    }

    /// Returns how busy the host was since the beginning.
    pub(super) fn shares(&mut self) -> CpuShares {
        shares(&self.before, &read(&mut *self.observer))
    }
}

/// CPU time of the calling thread from one instant on.
pub(super) struct ThreadWatch {
    user_ns: i64,
    system_ns: i64,
}

impl ThreadWatch {
    /// Begins now.
    pub(super) fn begin() -> Self {
        let none = Self {
            user_ns: 0,
            system_ns: 0,
        };
        getrusage(UsageWho::RUSAGE_THREAD).map_or(none, |usage| Self {
            user_ns: usage.user_time().num_microseconds() * 1000,
            system_ns: usage.system_time().num_microseconds() * 1000,
        })
    }

    /// Returns what part of `cpus` CPUs the thread took since the beginning, `elapsed_ns` ago.
    pub(super) fn shares(&self, cpus: u32, elapsed_ns: u64) -> CpuShares {
        let now = Self::begin();
        let all_ns = elapsed_ns.max(1) as f64 * f64::from(cpus.max(1));
        let percent = |before: i64, after: i64| 100.0 * (after - before).max(0) as f64 / all_ns;
        let user = percent(self.user_ns, now.user_ns) as f32;
        let system = percent(self.system_ns, now.system_ns) as f32;
        CpuShares {
            method: CpuMethod::Rusage,
            busy: user + system,
            user,
            system,
            io_wait: 0.0,
            irq: 0.0,
            soft_irq: 0.0,
            peak_cpu: 0,
            peak: 0.0,
        }
    }
}

fn read(observer: &mut dyn Observer) -> Times {
    let mut samples = Vec::new();
    observer.sample(&mut samples);
    let mut times = Times::new();
    for Sample {
        metric,
        subject,
        value,
        ..
    } in samples
    {
        let mode = MODES.iter().position(|mode| *mode == metric);
        if let (Subject::Cpu(cpu), Some(mode)) = (subject, mode) {
            times.entry(cpu).or_default()[mode] = value;
        }
    }
    times
}

/// Returns the shares of all CPUs: each one's part that was not idle, and their mean.
fn shares(before: &Times, after: &Times) -> CpuShares {
    let mut sums = [0.0; MODES.len()];
    let (mut busy, mut peak) = (0.0, (0, 0.0_f64));
    for (cpu, after) in after {
        let before = before.get(cpu).unwrap_or(after);
        let spent: [i64; MODES.len()] =
            std::array::from_fn(|mode| (after[mode] - before[mode]).max(0));
        let all = spent.iter().sum::<i64>().max(1) as f64;
        let percent = spent.map(|ns| 100.0 * ns as f64 / all);
        // All but idle, which is the first.
        let of_cpu = percent[1..].iter().sum::<f64>();
        busy += of_cpu;
        if of_cpu > peak.1 {
            peak = (*cpu, of_cpu);
        }
        for (sum, percent) in sums.iter_mut().zip(percent) {
            *sum += percent;
        }
    }
    let mean = |sum: f64| (sum / after.len().max(1) as f64) as f32;
    CpuShares {
        method: CpuMethod::ProcStat,
        busy: mean(busy),
        user: mean(sums[1]),
        system: mean(sums[2]),
        io_wait: mean(sums[3]),
        irq: mean(sums[4]),
        soft_irq: mean(sums[5]),
        peak_cpu: peak.0,
        peak: peak.1 as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_means_of_all_cpus() {
        let before = Times::from([(0, [10; 8]), (3, [20; 8])]);
        // Of 100 ns each: idle, user, system, waiting for a disk, interrupts, soft ones, nice, stolen.
        let more = [
            (0, [50, 20, 10, 5, 4, 6, 3, 2]),
            (3, [90, 0, 10, 0, 0, 0, 0, 0]),
        ];
        let mut after = before.clone();
        for (cpu, more) in more {
            let of_cpu = after.get_mut(&cpu).unwrap();
            for (time, more) in of_cpu.iter_mut().zip(more) {
                *time += more;
            }
        }
        let expected = CpuShares {
            method: CpuMethod::ProcStat,
            busy: 30.0,
            user: 10.0,
            system: 10.0,
            io_wait: 2.5,
            irq: 2.0,
            soft_irq: 3.0,
            peak_cpu: 0,
            peak: 50.0,
        };
        assert_eq!(shares(&before, &after), expected);
        assert_eq!(shares(&before, &before).busy, 0.0);
    }

    #[test]
    fn this_host_has_cpus_and_no_share_is_beyond_all() {
        let mut watch = HostWatch::begin();
        assert!(watch.cpus() > 0);
        let shares = watch.shares();
        assert!((0.0..=100.0).contains(&shares.busy), "{shares:?}");
        assert!((0.0..=100.0).contains(&shares.peak), "{shares:?}");
    }
}
