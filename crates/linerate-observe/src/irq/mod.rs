//! Interrupts of network devices, from `/proc/interrupts`: how many, and on which CPUs.
//!
//! The file is of the whole machine and has a number for every interrupt and CPU. All of them are
//! added up for the host; an interrupt of a network device has its own count and the CPU that took
//! most of it since the reading before, and each CPU the count of what it took for them. The
//! interrupts of a device are those that it had when the observer was opened.

mod action;
mod devices;
mod parse;

use linerate_model::host::Availability;
use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

#[cfg(test)]
pub(crate) use action::served;
pub(crate) use devices::{DeviceIrq, network_irqs};

use crate::observer::{Health, ObserveConfig, Observer};
use crate::sys::file::KernelFile;

const NOTE_LAB: &str = "shared by every host of the lab: interrupts are the machine's";
const NOTE_NONE: &str = "no network device with interrupts of its own";

/// Reads the interrupts of the machine.
pub(crate) struct IrqObserver {
    file: Option<KernelFile>,
    /// The numbers of the CPUs in the order of the columns.
    cpus: Vec<u32>,
    watched: Watched,
    health: Health,
}

/// The interrupts of network devices, and what was read of them last.
#[derive(Debug, Default)]
struct Watched {
    /// Ascending.
    irqs: Vec<u32>,
    /// The last count of each interrupt on each column, one row an interrupt.
    last: Vec<u64>,
    columns: usize,
    /// What each CPU took for network devices, by column.
    by_column: Vec<u64>,
}

impl IrqObserver {
    /// Opens the file and looks up which interrupts belong to network devices.
    pub(crate) fn open(config: &ObserveConfig) -> Self {
        let (file, missing) = match KernelFile::open(&config.proc_root.join("interrupts")) {
            Ok(file) => (Some(file), None),
            Err(reason) => (None, Some(reason)),
        };
        let irqs = network_irqs(&config.proc_root, &config.sys_root);
        let irqs: Vec<u32> = irqs.iter().map(|found| found.irq).collect();
        let mut notes = Vec::new();
        if config.lab {
            notes.push(NOTE_LAB.to_owned());
        }
        if irqs.is_empty() {
            notes.push(NOTE_NONE.to_owned());
        }
        Self {
            file,
            cpus: Vec::new(),
            watched: Watched {
                irqs,
                ..Watched::default()
            },
            health: Health::new("irq", missing, notes),
        }
    }
}

impl Observer for IrqObserver {
    fn availability(&self) -> Availability {
        self.health.availability()
    }

    fn sample(&mut self, out: &mut Vec<Sample>) {
        let Some(file) = &mut self.file else { return };
        let before = out.len();
        let failure = push_samples(file, &mut self.cpus, &mut self.watched, out).err();
        self.health.record(out.len() - before, failure);
    }
}

fn push_samples(
    file: &mut KernelFile,
    cpus: &mut Vec<u32>,
    watched: &mut Watched,
    out: &mut Vec<Sample>,
) -> Result<(), String> {
    let (text, at_ns) = file.read()?;
    let mut push = |metric, subject, value: u64| {
        let Ok(value) = i64::try_from(value) else {
            return;
        };
        out.push(Sample {
            metric,
            subject,
            at_ns,
            value,
        });
    };
    let mut host = 0_u64;
    watched.by_column.fill(0);
    let understood = parse::parse(text, cpus, |line, cpus| {
        host = host.wrapping_add(line.total);
        let Ok(row) = watched.irqs.binary_search(&line.irq) else {
            return;
        };
        let subject = Subject::Irq(line.irq);
        if let Some(busiest) = watched.add(row, line.counts(), cpus.len()) {
            push(Metric::IrqCpu, subject.clone(), cpus[busiest].into());
        }
        push(Metric::IrqCount, subject, line.total);
    });
    if understood == 0 {
        return Err(format!("{}: not understood", file.path().display()));
    }
    push(Metric::IrqCount, Subject::Host, host);
    if !watched.irqs.is_empty() {
        for (cpu, count) in cpus.iter().zip(&watched.by_column) {
            push(Metric::IrqNetworkCount, Subject::Cpu(*cpu), *count);
        }
    }
    Ok(())
}

impl Watched {
    /// Adds the counts of one interrupt, and returns the column that took most of it since the
    /// reading before; absent when nothing did, and in the first reading.
    fn add(
        &mut self,
        row: usize,
        counts: impl Iterator<Item = u64>,
        columns: usize,
    ) -> Option<usize> {
        let first = self.columns != columns;
        if first {
            // CPUs came or went: what was read before stood in other columns.
            self.columns = columns;
            self.last = vec![u64::MAX; self.irqs.len() * columns];
            self.by_column = vec![0; columns];
        }
        let mut busiest = None;
        let last = &mut self.last[row * columns..(row + 1) * columns];
        for (column, (last, count)) in last.iter_mut().zip(counts).enumerate() {
            self.by_column[column] = self.by_column[column].wrapping_add(count);
            let grown = count.saturating_sub(*last);
            *last = count;
            if grown > busiest.map_or(0, |(_, most)| most) {
                busiest = Some((column, grown));
            }
        }
        busiest.map(|(column, _)| column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_cpu_is_the_one_that_took_most_since_the_last_reading() {
        let mut watched = Watched {
            irqs: vec![24, 30],
            ..Watched::default()
        };
        let mut read = |row, counts: &[u64]| watched.add(row, counts.iter().copied(), counts.len());
        assert_eq!(read(0, &[1_000_000, 0, 5]), None, "the first reading");
        assert_eq!(read(1, &[0, 0, 0]), None);
        assert_eq!(read(0, &[1_000_001, 0, 8]), Some(2));
        assert_eq!(read(1, &[0, 0, 0]), None, "nothing came");
        assert_eq!(read(0, &[1_000_002, 1, 8]), Some(0));
        assert_eq!(read(0, &[1_000_002, 1]), None, "a CPU went away");
        assert_eq!(read(0, &[1_000_002, 9]), Some(1));
    }
}
