//! How often the interrupts of network devices came, and which CPUs took them.

use linerate_model::analysis::{HostInterrupts, InterruptCpu, InterruptLine};
use linerate_model::fact::{IrqFact, OfIrq};
use linerate_model::metric::Metric;
use linerate_model::run::{HostRecord, Recording, TrialRecord};
use linerate_model::sample::Subject;

use crate::moved::{Moved, moved};

/// Most interrupts of a host that are listed: those of the queues of four cards.
const LINES_MAX: usize = 256;

/// By interrupt: all of it, and what each CPU took.
type Sum = Moved<(u32, Option<u32>)>;

/// Returns the interrupts that came within the windows of `trials`, host by host, the server first.
///
/// Hosts of a lab are left out: interrupts are the machine's, and its cards are not their links.
pub(crate) fn interrupts<'a>(
    recording: &'a Recording,
    trials: impl Iterator<Item = &'a TrialRecord>,
) -> Vec<HostInterrupts> {
    let sums = moved(recording, trials, |readings, host, subject| {
        let (key, metric) = match subject {
            Subject::IrqCpu(irq, cpu) => ((*irq, Some(*cpu)), Metric::IrqCpuCount),
            Subject::Irq(irq) => ((*irq, None), Metric::IrqCount),
            _ => return None,
        };
        Some((key, readings.change_on(host, subject, metric)?))
    });
    let hosts = recording.document.hosts.iter().filter(|host| !host.lab);
    hosts
        .filter_map(|host| of_host(host, sums.get(&host.name)?))
        .collect()
}

/// Returns what `host` took; absent where no interrupt came.
fn of_host(host: &HostRecord, sum: &Sum) -> Option<HostInterrupts> {
    let came = sum.amounts.iter().filter(|(_, count)| **count > 0.0);
    let all = came.filter(|((_, cpu), _)| cpu.is_none());
    let mut interrupts: Vec<_> = all
        .map(|((irq, _), count)| line(host, sum, *irq, *count))
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
    let fact = |what| {
        let text = host.snapshot.text(&IrqFact { irq, what }.to_string());
        text.map(str::to_owned)
    };
    let own = sum
        .amounts
        .range((irq, Some(0))..=(irq, Some(u32::MAX)))
        .filter(|(_, count)| **count > 0.0);
    let mut cpus: Vec<InterruptCpu> = own
        .filter_map(|((_, cpu), count)| {
            Some(InterruptCpu {
                cpu: (*cpu)?,
                per_s: count / sum.seconds,
            })
        })
        .collect();
    cpus.sort_by(|a, b| b.per_s.total_cmp(&a.per_s));
    InterruptLine {
        irq,
        device: fact(OfIrq::Link),
        queue: fact(OfIrq::Queue),
        name: fact(OfIrq::Action),
        per_s: count / sum.seconds,
        cpus,
    }
}
