//! The seam between the rooms above and the observers, and the list of all observers.

use std::path::PathBuf;

use linerate_model::host::Availability;
use linerate_model::probe::Probes;
use linerate_model::sample::Sample;

use crate::cpu::CpuObserver;
use crate::irq::IrqObserver;
use crate::irq_time::IrqTimeObserver;
use crate::link::LinkObserver;
use crate::netstat::{CountersObserver, NetstatObserver};
use crate::perf::PerfObserver;
use crate::qdisc::QdiscObserver;
use crate::queue::QueueObserver;
use crate::softnet::SoftnetObserver;
use crate::sys::clock::user_hz;
use crate::tcp::TcpObserver;
use crate::threads::ThreadsObserver;
use crate::udp::UdpObserver;
use crate::{cgroup, conntrack, memory, numa, thermal};

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

/// Opens one observer.
type Open = fn(&ObserveConfig) -> Box<dyn Observer>;

/// Every observer by name, in the order in which they read.
const OBSERVERS: &[(&str, Open)] = &[
    ("cpu", |config| {
        Box::new(CpuObserver::open(config, user_hz()))
    }),
    (OWN_THREADS, |config| {
        Box::new(ThreadsObserver::open(config, user_hz()))
    }),
    ("netstat", |config| Box::new(NetstatObserver::open(config))),
    ("softnet", |config| Box::new(SoftnetObserver::open(config))),
    ("link", |_| Box::new(LinkObserver::open())),
    ("qdisc", |_| Box::new(QdiscObserver::open())),
    ("tcp", |_| Box::new(TcpObserver::open())),
    ("udp", |_| Box::new(UdpObserver::open())),
    ("perf", |config| Box::new(PerfObserver::open(config))),
    ("irq", |config| Box::new(IrqObserver::open(config))),
    ("memory", |config| Box::new(memory::open(config))),
    ("cgroup", |config| Box::new(cgroup::open(config))),
    ("numa", |config| Box::new(numa::open(config))),
    ("conntrack", |config| Box::new(conntrack::open(config))),
    ("thermal", |config| Box::new(thermal::open(config))),
    ("hwmon", |config| Box::new(thermal::open_hwmon(config))),
    ("queue", |_| Box::new(QueueObserver::open())),
    ("counters", |config| {
        Box::new(CountersObserver::open(config))
    }),
];

/// The observer that shows nothing but our own process.
const OWN_THREADS: &str = "threads";

/// Opens every observer; one that cannot run here is in the list and says why.
pub fn observers(config: &ObserveConfig) -> Vec<Box<dyn Observer>> {
    let allowed = |name| config.host_wide || name == OWN_THREADS;
    let open = |(name, open): &(&'static str, Open)| match allowed(*name) {
        true => open(config),
        false => Box::new(Refused(name)),
    };
    OBSERVERS.iter().map(open).collect()
}

/// Opens the observers that cost too much to run always, as far as `probes` asks for them; the
/// sampling profiler is [`crate::Profiler`].
pub fn probes(config: &ObserveConfig, probes: Probes) -> Vec<Box<dyn Observer>> {
    match (probes.irq_time, config.host_wide) {
        (true, true) => vec![Box::new(IrqTimeObserver::open(config))],
        (true, false) => vec![Box::new(Refused("irq_time"))],
        (false, _) => Vec::new(),
    }
}

/// Answers for every observer whether it can run here.
pub fn availabilities(config: &ObserveConfig) -> Vec<Availability> {
    observers(config)
        .iter()
        .map(|observer| observer.availability())
        .collect()
}

/// An observer that the caller may not use.
struct Refused(&'static str);

impl Observer for Refused {
    fn availability(&self) -> Availability {
        Availability {
            observer: self.0.to_owned(),
            missing: Some(NEEDS_TOKEN.to_owned()),
            note: None,
        }
    }

    fn sample(&mut self, _out: &mut Vec<Sample>) {}
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
                "{} of {} readings were not complete, the last: {failure}",
                self.failures, self.readings
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
