//! Time per CPU and mode, from `/proc/stat`.
//!
//! Two things to know when reading the numbers:
//! 1. `user` includes `guest` and `nice` includes `guest_nice` (kernel/sched/cputime.c,
//!    account_guest_time), so modes are summed without `cpu_guest_ns`.
//! 2. `iowait` and, on kernels with tickless idle, `idle` may go backwards
//!    (Documentation/filesystems/proc.rst); values are stored as read.

mod parse;

use linerate_model::metric::Metric;
use linerate_model::number::counted;
use linerate_model::sample::{Sample, Subject};

use crate::observer::{Interface, ObserveConfig, Observer, observer};
use crate::readout::Readout;
use crate::sys::clock::user_hz;
use crate::sys::file::KernelFile;
use crate::text::ticks_to_ns;

const NOTE_SOFTIRQ: &str = "soft interrupt time is sampled at the tick";

/// The modes in the order of a line of `/proc/stat`.
const MODES: [Metric; parse::MODES] = [
    Metric::CpuUser,
    Metric::CpuNice,
    Metric::CpuSystem,
    Metric::CpuIdle,
    Metric::CpuIoWait,
    Metric::CpuIrq,
    Metric::CpuSoftIrq,
    Metric::CpuSteal,
    Metric::CpuGuest,
];

/// The time of every online CPU; an offline one has no line, so it has no sample.
struct CpuTimes {
    file: KernelFile,
    user_hz: u64,
}

/// Opens `/proc/stat`.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let file = KernelFile::open(&config.proc_root.join("stat"));
    let user_hz = user_hz();
    let notes = config.lab_note("namespaces do not divide CPU time");
    let notes = [NOTE_SOFTIRQ.to_owned()].into_iter().chain(notes);
    observer("cpu", file.map(|file| CpuTimes { file, user_hz }), notes)
}

impl Interface for CpuTimes {
    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let (text, at_ns) = self.file.read()?;
        let mut readout = Readout::at(at_ns, out);
        let read = parse::parse(text, |cpu, mode, ticks| {
            let value = ticks_to_ns(ticks, self.user_hz);
            if let (Some(&metric), Some(value)) = (MODES.get(mode), value) {
                readout.push(metric, Subject::Cpu(cpu), value);
            }
        });
        match read {
            parse::Read { cpus: 0, .. } => Err(self.file.says("no CPU in it")),
            parse::Read { odd_lines: 0, .. } => Ok(()),
            parse::Read { odd_lines, .. } => {
                let odd = counted(odd_lines, "line");
                Err(self.file.says(&format!("{odd} not understood")))
            }
        }
    }
}
