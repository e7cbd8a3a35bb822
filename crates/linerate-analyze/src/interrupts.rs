//! How often the interrupts of network devices came, and which CPUs took them.

use std::collections::BTreeMap;

use linerate_model::HostName;
use linerate_model::analysis::{HostInterrupts, InterruptCpu, InterruptLine};
use linerate_model::metric::Metric;
use linerate_model::run::{HostRecord, Recording, TrialRecord};
use linerate_model::sample::Subject;

use crate::reduce::Readings;

/// Most interrupts of a host that are listed: those of the queues of four cards.
const LINES_MAX: usize = 256;

/// What a host took, summed over trials.
#[derive(Default)]
struct Sum {
    trials: u32,
    seconds: f64,
    /// By interrupt.
    all: BTreeMap<u32, f64>,
    /// By interrupt and CPU.
    pairs: BTreeMap<(u32, u32), f64>,
}

/// Returns the interrupts that came within the windows of `trials`, host by host, the server first.
///
/// Hosts of a lab are left out: interrupts are the machine's, and its cards are not their links.
pub(crate) fn interrupts<'a>(
    recording: &'a Recording,
    trials: impl Iterator<Item = &'a TrialRecord>,
) -> Vec<HostInterrupts> {
    let mut sums: BTreeMap<&HostName, Sum> = BTreeMap::new();
    for trial in trials {
        let readings = Readings::new(&recording.samples, trial.trial, trial.window_ns);
        let mut longest: BTreeMap<&HostName, f64> = BTreeMap::new();
        for (subject, host) in readings.subjects() {
            let change = |metric| readings.change(&readings.on(host, subject, metric)?);
            match subject {
                Subject::IrqCpu(irq, cpu) => {
                    if let Some(change) = change(Metric::IrqCpuCount) {
                        let sum = sums.entry(host).or_default();
                        *sum.pairs.entry((*irq, *cpu)).or_default() += change.amount;
                    }
                }
                Subject::Irq(irq) => {
                    if let Some(change) = change(Metric::IrqCount) {
                        let sum = sums.entry(host).or_default();
                        *sum.all.entry(*irq).or_default() += change.amount;
                        let seconds = longest.entry(host).or_default();
                        *seconds = seconds.max(change.seconds);
                    }
                }
                _ => {}
            }
        }
        for (host, seconds) in longest {
            let sum = sums.entry(host).or_default();
            sum.trials += 1;
            sum.seconds += seconds;
        }
    }
    let hosts = recording.document.hosts.iter().filter(|host| !host.lab);
    hosts
        .filter_map(|host| of_host(host, sums.get(&host.name)?))
        .collect()
}

/// Returns what `host` took; absent where no interrupt came.
fn of_host(host: &HostRecord, sum: &Sum) -> Option<HostInterrupts> {
    let came = sum.all.iter().filter(|(_, count)| **count > 0.0);
    let mut interrupts: Vec<_> = came
        .map(|(irq, count)| line(host, sum, *irq, *count))
        .collect();
    interrupts.sort_by(|a, b| b.per_s.total_cmp(&a.per_s));
    interrupts.truncate(LINES_MAX);
    (!interrupts.is_empty()).then(|| HostInterrupts {
        host: host.name.clone(),
        trials: sum.trials,
        seconds: sum.seconds,
        interrupts,
    })
}

fn line(host: &HostRecord, sum: &Sum, irq: u32, count: f64) -> InterruptLine {
    let fact = |name: &str| {
        let text = host.snapshot.text(&format!("irq.{irq}.{name}"));
        text.map(str::to_owned)
    };
    let own = sum.pairs.range((irq, 0)..=(irq, u32::MAX));
    let own = own.filter(|(_, count)| **count > 0.0);
    let mut cpus: Vec<InterruptCpu> = own
        .map(|((_, cpu), count)| InterruptCpu {
            cpu: *cpu,
            per_s: count / sum.seconds,
        })
        .collect();
    cpus.sort_by(|a, b| b.per_s.total_cmp(&a.per_s));
    InterruptLine {
        irq,
        device: fact("link"),
        queue: fact("queue"),
        name: fact("action"),
        per_s: count / sum.seconds,
        cpus,
    }
}
