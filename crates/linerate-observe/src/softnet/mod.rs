//! The queues between devices and protocols, from `/proc/net/softnet_stat`.
//!
//! One line a CPU, of the whole machine: network namespaces share them. The kernel's numbers have
//! 32 bits; that of packets taken off wraps within an hour of a busy host, so every counter is
//! carried on beyond them while the observer is open.

mod parse;

use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

use self::parse::COUNTERS;
use crate::carried::Carried;
use crate::observer::{Interface, ObserveConfig, Observer, observer};
use crate::readout::Readout;
use crate::sys::file::KernelFile;

/// What every CPU took off, dropped and postponed.
struct Softnet {
    file: KernelFile,
    carried: Vec<[Carried; COUNTERS.len()]>,
}

/// What the counters are, in the order in which a line is read.
const METRICS: [Metric; COUNTERS.len()] = [
    Metric::SoftnetProcessed,
    Metric::SoftnetDropped,
    Metric::SoftnetSqueezed,
    Metric::SoftnetReceivedRps,
    Metric::SoftnetFlowLimit,
];

/// Highest CPU number believed, so that an odd line takes no memory (NR_CPUS is at most 8192).
const CPU_MAX: u32 = 1 << 16;

/// Opens the file.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let file = KernelFile::of_network(&config.proc_root, "softnet_stat");
    let softnet = file.map(|file| Softnet {
        file,
        carried: Vec::new(),
    });
    let notes = config.lab_note("namespaces do not divide CPUs");
    observer("softnet", softnet, notes)
}

impl Interface for Softnet {
    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let (text, at_ns) = self.file.read()?;
        let before = out.len();
        let mut readout = Readout::at(at_ns, out);
        let carried = &mut self.carried;
        parse::parse(text, |line| {
            if line.cpu > CPU_MAX {
                return;
            }
            let mut push = |metric, value: u64| readout.push(metric, Subject::Cpu(line.cpu), value);
            let cpu = line.cpu as usize;
            if carried.len() <= cpu {
                carried.resize(cpu + 1, [Carried::default(); COUNTERS.len()]);
            }
            let counters = METRICS.iter().zip(line.counters).zip(&mut carried[cpu]);
            for ((metric, value), carried) in counters {
                if let Some(value) = value {
                    push(*metric, carried.add(value));
                }
            }
            if let Some(backlog) = line.backlog {
                push(Metric::SoftnetBacklog, backlog.into());
            }
        });
        if out.len() == before {
            return Err(self.file.says("not understood"));
        }
        Ok(())
    }
}
