//! The list of all observers.

use linerate_model::host::{Availability, IRQ_TIME_OBSERVER, QUEUE_OBSERVER};
use linerate_model::probe::Probes;
use linerate_model::sample::Sample;

use crate::observer::{NEEDS_TOKEN, ObserveConfig, Observer};
use crate::{
    cgroup, conntrack, cpu, irq, irq_time, link, memory, netstat, numa, perf, qdisc, queue,
    softnet, tcp, thermal, threads, udp,
};

/// Opens one observer.
type Open = fn(&ObserveConfig) -> Box<dyn Observer>;

/// Every observer by name, in the order in which they read.
const OBSERVERS: &[(&str, Open)] = &[
    ("cpu", cpu::open),
    (OWN_THREADS, threads::open),
    ("netstat", netstat::open),
    ("softnet", softnet::open),
    ("link", link::open),
    ("qdisc", qdisc::open),
    ("tcp", tcp::open),
    ("udp", udp::open),
    ("perf", perf::open),
    ("irq", irq::open),
    ("memory", memory::open),
    ("cgroup", cgroup::open),
    ("numa", numa::open),
    ("conntrack", conntrack::open),
    ("thermal", thermal::open),
    ("hwmon", thermal::open_hwmon),
    (QUEUE_OBSERVER, queue::open),
    ("counters", netstat::open_all),
];

/// The observer that shows nothing but our own process.
const OWN_THREADS: &str = "threads";

/// Opens every observer; one that cannot run here is in the list and says why.
pub fn observers(config: &ObserveConfig) -> Vec<Box<dyn Observer>> {
    let allowed = |name| config.host_wide || name == OWN_THREADS;
    let open = |(name, open): &(&'static str, Open)| {
        if allowed(*name) {
            open(config)
        } else {
            Box::new(Refused(name))
        }
    };
    OBSERVERS.iter().map(open).collect()
}

/// Opens the observer of the CPUs' time alone.
pub fn cpu_times(config: &ObserveConfig) -> Box<dyn Observer> {
    cpu::open(config)
}

/// Opens the observers that cost too much to run always, as far as `probes` asks for them; the
/// sampling profiler is [`crate::Profiler`].
pub fn probes(config: &ObserveConfig, probes: Probes) -> Vec<Box<dyn Observer>> {
    match (probes.irq_time, config.host_wide) {
        (true, true) => vec![irq_time::open(config)],
        (true, false) => vec![Box::new(Refused(IRQ_TIME_OBSERVER))],
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

    fn sample(&mut self, _out: &mut Vec<Sample>) -> bool {
        false
    }
}
