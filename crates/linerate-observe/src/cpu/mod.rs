//! Time per CPU and mode, from `/proc/stat`.
//!
//! Two things to know when reading the numbers:
//! 1. `user` includes `guest` and `nice` includes `guest_nice` (kernel/sched/cputime.c,
//!    account_guest_time), so modes are summed without `cpu_guest_ns`.
//! 2. `iowait` and, on kernels with tickless idle, `idle` may go backwards
//!    (Documentation/filesystems/proc.rst); values are stored as read.

mod parse;

use linerate_model::host::Availability;
use linerate_model::metric::Metric;
use linerate_model::number::counted;
use linerate_model::sample::{Sample, Subject};

use crate::observer::{Health, ObserveConfig, Observer, opened};
use crate::readout::Readout;
use crate::sys::file::KernelFile;
use crate::text::ticks_to_ns;

const NOTE_SOFTIRQ: &str = "soft interrupt time is sampled at the tick";
const NOTE_LAB: &str = "shared by every host of the lab: namespaces do not divide CPU time";

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

/// Reads the time of every online CPU; an offline one has no line, so it has no sample.
pub(crate) struct CpuObserver {
    file: Option<KernelFile>,
    user_hz: u64,
    health: Health,
}

impl CpuObserver {
    /// Opens `/proc/stat`, which counts in ticks of `user_hz` a second.
    pub(crate) fn open(config: &ObserveConfig, user_hz: u64) -> Self {
        let (file, missing) = opened(KernelFile::open(&config.proc_root.join("stat")));
        let mut notes = vec![NOTE_SOFTIRQ.to_owned()];
        if config.lab {
            notes.push(NOTE_LAB.to_owned());
        }
        Self {
            file,
            user_hz,
            health: Health::new("cpu", missing, notes),
        }
    }
}

impl Observer for CpuObserver {
    fn availability(&self) -> Availability {
        self.health.availability()
    }

    fn sample(&mut self, out: &mut Vec<Sample>) {
        let Some(file) = &mut self.file else { return };
        self.health
            .reading(out, |out| push_samples(file, self.user_hz, out));
    }
}

fn push_samples(file: &mut KernelFile, user_hz: u64, out: &mut Vec<Sample>) -> Result<(), String> {
    let (text, at_ns) = file.read()?;
    let mut readout = Readout::at(at_ns, out);
    let read = parse::parse(text, |cpu, mode, ticks| {
        if let (Some(&metric), Some(value)) = (MODES.get(mode), ticks_to_ns(ticks, user_hz)) {
            readout.push(metric, Subject::Cpu(cpu), value);
        }
    });
    match read {
        parse::Read { cpus: 0, .. } => Err(file.says("no CPU in it")),
        parse::Read { odd_lines: 0, .. } => Ok(()),
        parse::Read { odd_lines, .. } => {
            Err(file.says(&format!("{} not understood", counted(odd_lines, "line"))))
        }
    }
}
