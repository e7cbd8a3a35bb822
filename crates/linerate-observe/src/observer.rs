//! The seam between the rooms above and the observers.

use std::path::PathBuf;

use linerate_model::host::Availability;
use linerate_model::number::counted;
use linerate_model::sample::Sample;

use crate::spacing::Spacing;
use crate::sys::clock::now_ns;

/// Reads one kernel interface.
pub trait Observer: Send {
    /// Answers whether it can read here, and what limits it; after samples also what failed.
    fn availability(&self) -> Availability;

    /// Appends one reading of everything it watches; appends nothing for what cannot be read.
    ///
    /// Returns whether it was made: one that is left out to save CPU time says nothing of what is there.
    fn sample(&mut self, out: &mut Vec<Sample>) -> bool;

    /// As [`Observer::sample`] at an edge of a measured window, where no reading is left out.
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

impl ObserveConfig {
    /// Says what the hosts of a lab share, where this is one.
    pub(crate) fn lab_note(&self, why: &str) -> Option<String> {
        self.lab
            .then(|| format!("shared by every host of the lab: {why}"))
    }
}

/// Takes apart what was opened, and why it was not.
pub(crate) fn opened<T, E>(result: Result<T, E>) -> (Option<T>, Option<E>) {
    match result {
        Ok(opened) => (Some(opened), None),
        Err(reason) => (None, Some(reason)),
    }
}

/// Takes what could be opened of several, and why the rest could not; nothing at all for those reasons
/// is an error.
pub(crate) fn any_opened<T>(
    all: impl IntoIterator<Item = Result<T, String>>,
) -> (Result<Vec<T>, String>, Vec<String>) {
    let (mut opened, mut reasons) = (Vec::new(), Vec::new());
    for one in all {
        match one {
            Ok(one) => opened.push(one),
            Err(reason) => reasons.push(reason),
        }
    }
    if opened.is_empty() {
        (Err(reasons.join("; ")), Vec::new())
    } else {
        (Ok(opened), reasons)
    }
}

/// One interface of the kernel, open.
pub(crate) trait Interface: Send {
    /// The clock by which a reading's cost is told, where readings are left out to save CPU time.
    const COST_NS: Option<fn() -> u64> = None;

    /// Appends one reading of everything it has; says what failed.
    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String>;

    /// Says what has limited it by now.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Returns the observer called `name` of an interface, or of the reason why it could not be opened;
/// `notes` are what limits it.
pub(crate) fn observer<I: Interface + 'static>(
    name: &'static str,
    interface: Result<I, String>,
    notes: impl IntoIterator<Item = String>,
) -> Box<dyn Observer> {
    let (interface, missing) = opened(interface);
    Box::new(InterfaceObserver {
        interface,
        spacing: Spacing::default(),
        health: Health::new(name, missing, notes.into_iter().collect()),
    })
}

/// Reads an interface, if it could be opened.
struct InterfaceObserver<I> {
    interface: Option<I>,
    spacing: Spacing,
    health: Health,
}

impl<I: Interface> Observer for InterfaceObserver<I> {
    fn availability(&self) -> Availability {
        let notes = self
            .interface
            .iter()
            .flat_map(I::notes)
            .chain(self.spacing.note());
        self.health.availability_with(notes)
    }

    fn sample(&mut self, out: &mut Vec<Sample>) -> bool {
        let is_due = I::COST_NS.is_none() || self.spacing.is_due(now_ns());
        if is_due {
            self.sample_edge(out);
        }
        is_due
    }

    fn sample_edge(&mut self, out: &mut Vec<Sample>) {
        let Some(interface) = &mut self.interface else {
            return;
        };
        let begun = I::COST_NS.map(|cost_ns| (cost_ns, now_ns(), cost_ns()));
        self.health.reading(out, |out| interface.read(out));
        if let Some((cost_ns, begin_ns, before_ns)) = begun {
            let spent_ns = cost_ns().saturating_sub(before_ns);
            self.spacing.handle_reading(begin_ns, spent_ns);
        }
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
