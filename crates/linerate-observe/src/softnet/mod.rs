//! The queues between devices and protocols, from `/proc/net/softnet_stat`.
//!
//! One line a CPU, of the whole machine: network namespaces share them. The numbers have 32 bits
//! and wrap; that of packets taken off does so within an hour of a busy host and is left out.

mod parse;

use linerate_model::host::Availability;
use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

use crate::observer::{Health, ObserveConfig, Observer};
use crate::sys::file::KernelFile;

const NOTE_LAB: &str = "shared by every host of the lab: namespaces do not divide CPUs";

/// Reads what every CPU dropped and postponed.
pub(crate) struct SoftnetObserver {
    file: Option<KernelFile>,
    health: Health,
}

impl SoftnetObserver {
    /// Opens the file.
    pub(crate) fn open(config: &ObserveConfig) -> Self {
        let of = |whose: &str| {
            let path = config.proc_root.join(whose).join("net/softnet_stat");
            KernelFile::open(&path)
        };
        let (file, missing) = match of("thread-self").or_else(|_| of("self")) {
            Ok(file) => (Some(file), None),
            Err(reason) => (None, Some(reason)),
        };
        let notes = config.lab.then(|| NOTE_LAB.to_owned());
        Self {
            file,
            health: Health::new("softnet", missing, notes.into_iter().collect()),
        }
    }
}

impl Observer for SoftnetObserver {
    fn availability(&self) -> Availability {
        self.health.availability()
    }

    fn sample(&mut self, out: &mut Vec<Sample>) {
        let Some(file) = &mut self.file else { return };
        let before = out.len();
        let failure = push_samples(file, out).err();
        self.health.record(out.len() - before, failure);
    }
}

fn push_samples(file: &mut KernelFile, out: &mut Vec<Sample>) -> Result<(), String> {
    let (text, at_ns) = file.read()?;
    let before = out.len();
    parse::parse(text, |line| {
        for (metric, value) in [
            (Metric::SoftnetDropped, line.dropped),
            (Metric::SoftnetSqueezed, line.squeezed),
        ] {
            out.push(Sample {
                metric,
                subject: Subject::Cpu(line.cpu),
                at_ns,
                value: value.into(),
            });
        }
    });
    if out.len() == before {
        return Err(format!("{}: not understood", file.path().display()));
    }
    Ok(())
}
