//! Interrupts of network devices, from `/proc/interrupts`: how many, and on which CPUs.
//!
//! The file is of the whole machine and has a number for every interrupt and CPU. All of them are
//! added up for the host; an interrupt of a network device has its own count and the CPU that took
//! most of it since the reading before, and each CPU the count of what it took for them. The
//! interrupts of a device are those that it had when the observer was opened.
//!
//! Of the pairs of a device's interrupt and a CPU, which are 4096 on a host of 64 queues and CPUs,
//! those are told that moved since the observer was opened: as a rule one or two an interrupt. When
//! one moves for the first time its value at the reading before is told as well, so that no
//! difference is lost.
//!
//! The kernel counts each pair in 32 bits, which 100 000 a second fill in 12 hours; they are carried
//! on, also in the sums.

mod action;
mod devices;
mod parse;

use linerate_model::metric::Metric;
use linerate_model::number::counted;
use linerate_model::sample::{Sample, Subject};

#[cfg(test)]
pub(crate) use action::served;
pub(crate) use devices::{DeviceIrq, network_irqs};

use crate::carried::Carried;
use crate::observer::{Interface, ObserveConfig, Observer, observer};
use crate::readout::Readout;
use crate::sys::file::KernelFile;

const NOTE_NONE: &str = "no network device with interrupts of its own";

/// Most pairs of interrupt and CPU that are told: four CPUs each of the queues of four cards.
const PAIRS_MAX: usize = 1024;

/// The interrupts of the machine.
struct Interrupts {
    file: KernelFile,
    /// The numbers of the CPUs in the order of the columns.
    cpus: Vec<u32>,
    watched: Watched,
    /// All interrupts on that many columns: a sum of numbers of 32 bits wraps as one of them does.
    host: Carried,
    columns: usize,
}

/// The interrupts of network devices, and what was read of them last.
#[derive(Debug, Default)]
struct Watched {
    /// Ascending.
    irqs: Vec<u32>,
    /// The last count of each interrupt on each column, one row an interrupt; absent before the first
    /// reading.
    last: Vec<Option<Carried>>,
    /// Which of these pairs are told, in the same order.
    pairs: Vec<Pair>,
    /// How many have moved.
    moved: usize,
    columns: usize,
    /// What each CPU took for network devices, by column.
    by_column: Vec<u64>,
    /// The instant of the last reading.
    last_ns: u64,
}

/// A pair of interrupt and CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pair {
    /// It has not moved.
    Still,
    /// It has, and is told.
    Told,
    /// It has, and there is no room for it.
    Beyond,
}

/// Opens the file and looks up which interrupts belong to network devices.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let file = KernelFile::open(&config.proc_root.join("interrupts"));
    let irqs = network_irqs(&config.proc_root, &config.sys_root);
    let irqs: Vec<u32> = irqs.iter().map(|found| found.irq).collect();
    let none = irqs.is_empty().then(|| NOTE_NONE.to_owned());
    let notes = config.lab_note("interrupts are the machine's");
    let interrupts = file.map(|file| Interrupts {
        file,
        cpus: Vec::new(),
        watched: Watched {
            irqs,
            ..Watched::default()
        },
        host: Carried::default(),
        columns: 0,
    });
    observer("irq", interrupts, notes.into_iter().chain(none))
}

impl Interface for Interrupts {
    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let (text, at_ns) = self.file.read()?;
        let watched = &mut self.watched;
        let mut push = |metric, subject, at_ns, value: u64| {
            Readout::at(at_ns, out).push(metric, subject, value);
        };
        let mut host = 0_u64;
        watched.by_column.fill(0);
        let understood = parse::parse(text, &mut self.cpus, |line, cpus| {
            host = host.wrapping_add(line.total);
            let Ok(row) = watched.irqs.binary_search(&line.irq) else {
                return;
            };
            watched.resize(cpus.len());
            let (busiest, total) =
                watched.add(row, line.counts(), at_ns, |column, at_ns, count| {
                    let subject = Subject::IrqCpu(line.irq, cpus[column]);
                    push(Metric::IrqCpuCount, subject, at_ns, count);
                });
            let subject = Subject::Irq(line.irq);
            if let Some(busiest) = busiest {
                push(Metric::IrqCpu, subject.clone(), at_ns, cpus[busiest].into());
            }
            push(Metric::IrqCount, subject, at_ns, total);
        });
        if understood == 0 {
            return Err(self.file.says("not understood"));
        }
        watched.last_ns = at_ns;
        if self.columns != self.cpus.len() {
            self.columns = self.cpus.len();
            self.host = Carried::default();
        }
        let host = self.host.add(host as u32);
        push(Metric::IrqCount, Subject::Host, at_ns, host);
        if !watched.irqs.is_empty() {
            for (cpu, count) in self.cpus.iter().zip(&watched.by_column) {
                push(Metric::IrqNetworkCount, Subject::Cpu(*cpu), at_ns, *count);
            }
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let beyond = self.watched.moved.saturating_sub(PAIRS_MAX);
        let note = (beyond > 0).then(|| {
            let pairs = counted(beyond, "pair");
            format!("not told: {pairs} of interrupt and CPU beyond {PAIRS_MAX}")
        });
        Vec::from_iter(note)
    }
}

impl Watched {
    /// Begins anew where CPUs came or went: what was read before stood in other columns.
    fn resize(&mut self, columns: usize) {
        if self.columns != columns {
            self.columns = columns;
            self.last = vec![None; self.irqs.len() * columns];
            self.pairs = vec![Pair::Still; self.irqs.len() * columns];
            self.moved = 0;
            self.by_column = vec![0; columns];
        }
    }

    /// Adds the counts of one interrupt, read at `at_ns`; returns the column that took most of it
    /// since the reading before, absent when nothing did and in the first reading, and the sum.
    ///
    /// `tell` gets the column, instant and count of each pair that has moved, and in the reading in
    /// which it first does also those of the reading before.
    fn add(
        &mut self,
        row: usize,
        counts: impl Iterator<Item = u64>,
        at_ns: u64,
        mut tell: impl FnMut(usize, u64, u64),
    ) -> (Option<usize>, u64) {
        let own = row * self.columns..(row + 1) * self.columns;
        let last = self.last[own.clone()].iter_mut();
        let pairs = last.zip(&mut self.pairs[own]).zip(&mut self.by_column);
        let (mut busiest, mut total) = (None, 0);
        for (column, (((last, pair), sum), count)) in pairs.zip(counts).enumerate() {
            let before = last.map(Carried::value);
            let count = last.get_or_insert_default().add(count as u32);
            *sum += count;
            total += count;
            let before = before.unwrap_or(count);
            if *pair == Pair::Still && before != count {
                self.moved += 1;
                *pair = if self.moved <= PAIRS_MAX {
                    Pair::Told
                } else {
                    Pair::Beyond
                };
                if *pair == Pair::Told {
                    tell(column, self.last_ns, before);
                }
            }
            if *pair == Pair::Told {
                tell(column, at_ns, count);
            }
            let grown = count.saturating_sub(before);
            if grown > busiest.map_or(0, |(_, most)| most) {
                busiest = Some((column, grown));
            }
        }
        (busiest.map(|(column, _)| column), total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(irqs: &[u32]) -> Watched {
        Watched {
            irqs: irqs.to_vec(),
            ..Watched::default()
        }
    }

    #[test]
    fn the_busiest_cpu_is_the_one_that_took_most_since_the_last_reading() {
        let mut watched = watched(&[24, 30]);
        let mut read = |row, counts: &[u64]| {
            watched.resize(counts.len());
            watched.add(row, counts.iter().copied(), 0, |_, _, _| {}).0
        };
        assert_eq!(read(0, &[1_000_000, 0, 5]), None, "the first reading");
        assert_eq!(read(1, &[0, 0, 0]), None);
        assert_eq!(read(0, &[1_000_001, 0, 8]), Some(2));
        assert_eq!(read(1, &[0, 0, 0]), None, "nothing came");
        assert_eq!(read(0, &[1_000_002, 1, 8]), Some(0));
        assert_eq!(read(0, &[1_000_002, 1]), None, "a CPU went away");
        assert_eq!(read(0, &[1_000_002, 9]), Some(1));
    }

    #[test]
    fn counts_go_on_beyond_32_bits() {
        let most = u64::from(u32::MAX);
        let mut watched = watched(&[24]);
        let mut read = |counts: &[u64]| {
            watched.resize(counts.len());
            watched.by_column.fill(0);
            let read = watched.add(0, counts.iter().copied(), 0, |_, _, _| {});
            (read, watched.by_column.clone())
        };
        assert_eq!(read(&[most, 5]), ((None, most + 5), vec![most, 5]));
        let beyond = most + 4;
        assert_eq!(
            read(&[3, 6]),
            ((Some(0), beyond + 6), vec![beyond, 6]),
            "four more, of which three are after the wrap"
        );
    }

    #[test]
    fn a_pair_is_told_from_the_reading_before_it_moved() {
        let mut watched = watched(&[24]);
        let mut read = |at_ns, counts: &[u64]| {
            let mut told = Vec::new();
            watched.resize(counts.len());
            watched.add(0, counts.iter().copied(), at_ns, |column, at_ns, count| {
                told.push((column, at_ns, count));
            });
            watched.last_ns = at_ns;
            told
        };
        assert_eq!(read(1, &[7, 0, 3]), []);
        assert_eq!(read(2, &[7, 0, 3]), []);
        assert_eq!(read(3, &[7, 4, 3]), [(1, 2, 0), (1, 3, 4)]);
        assert_eq!(read(4, &[7, 4, 3]), [(1, 4, 4)], "told from then on");
        assert_eq!(read(5, &[8, 5, 3]), [(0, 4, 7), (0, 5, 8), (1, 5, 5)]);
        assert_eq!(read(6, &[9, 6]), [], "a CPU went away");
    }

    #[test]
    fn pairs_are_bounded_and_sums_are_not() {
        let columns = PAIRS_MAX + 3;
        let mut watched = watched(&[24]);
        watched.resize(columns);
        for (count, expected) in [(1, 0), (2, 2 * PAIRS_MAX), (3, PAIRS_MAX)] {
            let mut told = 0;
            watched.by_column.fill(0);
            watched.add(0, (0..columns).map(|_| count), count, |_, _, _| told += 1);
            assert_eq!(told, expected);
            assert!(watched.by_column.iter().all(|sum| *sum == count));
        }
        assert_eq!(watched.moved, PAIRS_MAX + 3);
    }
}
