//! What moved between the edges of a measured window, of all protocol counters by name.
//!
//! The first edge is kept until the second, since nobody knows before which of the kernel's 400
//! counters will move; then both readings of each one that did are samples, at their own instants.
//! Between the edges nothing is read.

use linerate_model::host::Availability;
use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

use super::named::{NamedCounters, open_files};
use crate::observer::{Health, ObserveConfig, Observer, any_opened, opened};
use crate::readout::Readout;
use crate::sys::file::KernelFile;

/// Most counters that are told of a window; each takes two samples. A kernel of today has some 400
/// in all.
const MOVED_MAX: usize = 1024;

/// Reads all protocol counters at the edges of a window.
struct CountersObserver {
    files: Vec<KernelFile>,
    /// The edge before, with its instant.
    edge: Option<(NamedCounters, u64)>,
    health: Health,
}

/// Opens the files of the calling thread's network namespace.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let (files, notes) = any_opened(open_files(&config.proc_root));
    let (files, missing) = opened(files);
    Box::new(CountersObserver {
        files: files.unwrap_or_default(),
        edge: None,
        health: Health::new("counters", missing, notes),
    })
}

impl Observer for CountersObserver {
    fn availability(&self) -> Availability {
        self.health.availability()
    }

    fn sample(&mut self, _out: &mut Vec<Sample>) -> bool {
        false
    }

    fn sample_edge(&mut self, out: &mut Vec<Sample>) {
        let (now, now_ns, failure) = NamedCounters::read_files(self.files.iter_mut());
        let Some(now_ns) = now_ns else {
            return self.health.record(0, failure);
        };
        self.health.record(now.len(), failure);
        if let Some((then, then_ns)) = &self.edge {
            for (name, before, after) in now.moved_since(then).take(MOVED_MAX) {
                for (at_ns, value) in [(*then_ns, before), (now_ns, after)] {
                    let subject = Subject::Counter(name.to_owned());
                    // A negative number of the kernel's is what the difference needs.
                    let value = value.cast_signed();
                    Readout::at(at_ns, out).push(Metric::ProtocolCounter, subject, value);
                }
            }
        }
        self.edge = Some((now, now_ns));
    }
}
