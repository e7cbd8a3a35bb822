//! The seam between the rooms above and the observers.

use std::path::PathBuf;

use linerate_model::host::Availability;
use linerate_model::number::counted;
use linerate_model::sample::Sample;

/// Reads one kernel interface.
pub trait Observer: Send {
    /// Answers whether it can read here, and what limits it; after samples also what failed.
    fn availability(&self) -> Availability;

    /// Appends one reading of everything it watches; appends nothing for what cannot be read.
    fn sample(&mut self, out: &mut Vec<Sample>);

    /// As [`Observer::sample`] at an edge of a measured window, where a reading that is otherwise
    /// left out to save CPU time is made.
    fn sample_edge(&mut self, out: &mut Vec<Sample>) {
        self.sample(out);
    }
}

/// What may be observed, and where the kernel's files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserveConfig {
    /// Where procfs is mounted: `/proc`, or a recorded root.
    pub proc_root: PathBuf,
    /// Where sysfs is mounted: `/sys`, or a recorded root.
    pub sys_root: PathBuf,
    /// This host is a network namespace of a lab, so it shares its CPUs with the other hosts.
    pub lab: bool,
    /// The caller may see the whole host; otherwise only our own threads.
    pub host_wide: bool,
    /// Our own threads to watch: name and thread id as the thread itself sees it (gettid).
    pub threads: Vec<(String, i32)>,
}

/// Why an observer of the whole host does not run for a caller who may not see it.
pub(crate) const NEEDS_TOKEN: &str = "needs the agent's token";

/// Takes apart what was opened, and why it was not.
pub(crate) fn opened<T, E>(result: Result<T, E>) -> (Option<T>, Option<E>) {
    match result {
        Ok(opened) => (Some(opened), None),
        Err(reason) => (None, Some(reason)),
    }
}

/// How an observer's readings went so far, kept for its availability.
#[derive(Debug)]
pub(crate) struct Health {
    observer: &'static str,
    missing: Option<String>,
    notes: Vec<String>,
    readings: u64,
    samples: usize,
    failures: u64,
    last_failure: Option<String>,
}

impl Health {
    /// Starts with what is known once the observer has opened its sources.
    pub(crate) fn new(observer: &'static str, missing: Option<String>, notes: Vec<String>) -> Self {
        Self {
            observer,
            missing,
            notes,
            readings: 0,
            samples: 0,
            failures: 0,
            last_failure: None,
        }
    }

    /// Counts one reading, the samples it gave, and what of it failed, if anything.
    pub(crate) fn record(&mut self, samples: usize, failure: Option<String>) {
        self.readings += 1;
        self.samples += samples;
        if failure.is_some() {
            self.failures += 1;
            self.last_failure = failure;
        }
    }

    /// Makes one reading by `read`, and counts it.
    pub(crate) fn reading(
        &mut self,
        out: &mut Vec<Sample>,
        read: impl FnOnce(&mut Vec<Sample>) -> Result<(), String>,
    ) {
        let before = out.len();
        let failure = read(out).err();
        self.record(out.len() - before, failure);
    }

    /// Answers in the words of the model.
    ///
    /// An observer that never gave a sample because its readings failed cannot run here; one that
    /// did is available, and notes what was lost.
    pub(crate) fn availability(&self) -> Availability {
        self.availability_with([])
    }

    /// The same, with what else there is to know at the moment.
    pub(crate) fn availability_with(&self, more: impl IntoIterator<Item = String>) -> Availability {
        let mut missing = self.missing.clone();
        let mut notes = self.notes.clone();
        match &self.last_failure {
            Some(failure) if self.samples == 0 => missing = missing.or(Some(failure.clone())),
            Some(failure) => notes.push(format!(
                "not complete: {} of {}, the last: {failure}",
                self.failures,
                counted(self.readings, "reading")
            )),
            None => {}
        }
        notes.extend(more);
        Availability {
            observer: self.observer.to_owned(),
            missing,
            note: (!notes.is_empty()).then(|| notes.join("; ")),
        }
    }
}
