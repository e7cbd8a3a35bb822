//! The CPUs of a host, each with its time by mode.

use linerate_model::metric::Metric;
use linerate_model::sample::Subject;
use serde::Serialize;

use super::{Span, Watched};
use crate::reduce::cpu_time::{FREE, IRQ, SOFTIRQ, STEAL, SYSTEM, USER};

/// Time of one CPU by mode, as shares of all its time; of all CPUs together their sum, in CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Modes {
    /// In user mode, at any priority.
    pub user: f64,
    /// In the kernel, interrupts left out.
    pub system: f64,
    /// In hardirqs.
    pub irq: f64,
    /// In softirqs, sampled at the tick.
    pub softirq: f64,
    /// Given to others by the hypervisor.
    pub steal: f64,
    /// Idle, waiting for disks included.
    pub idle: f64,
}

impl Modes {
    /// Returns what is not idle.
    pub fn busy(&self) -> f64 {
        self.user + self.system + self.irq + self.softirq + self.steal
    }
}

/// One CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CpuRow {
    /// The kernel's number.
    pub cpu: u32,
    /// Its time.
    pub modes: Modes,
}

/// Counters of each part of [`Modes`], in its order.
const COUNTERS: [&[Metric]; 6] = [USER, SYSTEM, IRQ, SOFTIRQ, STEAL, FREE];

/// Returns every CPU of which there are two readings, by number.
pub fn cpus(watched: &Watched, span: Span) -> Vec<CpuRow> {
    let rows = watched.cpus().filter_map(|(cpu, subject)| {
        let modes = modes(watched, subject, span)?;
        Some(CpuRow { cpu, modes })
    });
    rows.collect()
}

/// Returns the sum of all CPUs, in CPUs.
pub fn together(rows: &[CpuRow]) -> Modes {
    let sum = |part: fn(&Modes) -> f64| rows.iter().fold(0.0, |sum, row| sum + part(&row.modes));
    Modes {
        user: sum(|modes| modes.user),
        system: sum(|modes| modes.system),
        irq: sum(|modes| modes.irq),
        softirq: sum(|modes| modes.softirq),
        steal: sum(|modes| modes.steal),
        idle: sum(|modes| modes.idle),
    }
}

/// Returns the shares of a CPU's time; a mode that fell (as idle time may) counts as none.
fn modes(watched: &Watched, cpu: &Subject, span: Span) -> Option<Modes> {
    let change = |metric: &Metric| watched.change(cpu, *metric, span);
    let times = COUNTERS.map(|metrics| metrics.iter().filter_map(change).sum::<f64>());
    let all: f64 = times.iter().sum();
    let [user, system, irq, softirq, steal, idle] = times.map(|time| time / all);
    (all > 0.0).then_some(Modes {
        user,
        system,
        irq,
        softirq,
        steal,
        idle,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn watched(readings: &[[i64; 3]]) -> Watched {
        let metrics = [Metric::CpuUser, Metric::CpuSoftIrq, Metric::CpuIdle];
        let mut watched = Watched::default();
        for (at_s, values) in readings.iter().enumerate() {
            let at_ns = at_s as u64 * 1_000_000_000;
            let samples = metrics.iter().zip(values);
            let samples: Vec<_> = samples
                .map(|(metric, value)| sample("cpu:3", *metric, at_ns, *value))
                .collect();
            watched.take(at_ns, &samples);
        }
        watched
    }

    #[test]
    fn shares_are_of_the_time_that_was_counted() {
        let watched = watched(&[[0, 0, 0], [100, 300, 600], [100, 1300, 600]]);
        let now = &cpus(&watched, Span::PerSecond)[0];
        assert_eq!((now.cpu, now.modes.softirq, now.modes.idle), (3, 1.0, 0.0));
        let all = &cpus(&watched, Span::SinceStart)[0].modes;
        assert_eq!((all.user, all.softirq, all.idle), (0.05, 0.65, 0.3));
        assert!((all.busy() - 0.7).abs() < 1e-12);
    }

    #[test]
    fn one_reading_and_time_that_stands_still_have_no_shares() {
        assert!(cpus(&watched(&[[1, 2, 3]]), Span::PerSecond).is_empty());
        assert!(cpus(&watched(&[[1, 2, 3], [1, 2, 3]]), Span::PerSecond).is_empty());
        let backwards = cpus(&watched(&[[1, 2, 3], [11, 2, 1]]), Span::PerSecond);
        assert_eq!(backwards[0].modes.user, 1.0);
        let sum = together(&[backwards[0], backwards[0]]);
        assert_eq!((sum.user, sum.busy()), (2.0, 2.0));
    }
}
