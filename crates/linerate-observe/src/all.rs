//! The list of all observers.

use linerate_model::host::Availability;
use linerate_model::probe::Probes;
use linerate_model::sample::Sample;

use crate::cpu::CpuObserver;
use crate::irq::IrqObserver;
use crate::irq_time::IrqTimeObserver;
use crate::link::LinkObserver;
use crate::netstat::{CountersObserver, NetstatObserver};
use crate::observer::{NEEDS_TOKEN, ObserveConfig, Observer};
use crate::perf::PerfObserver;
use crate::qdisc::QdiscObserver;
use crate::queue::QueueObserver;
use crate::softnet::SoftnetObserver;
use crate::sys::clock::user_hz;
use crate::tcp::TcpObserver;
use crate::threads::ThreadsObserver;
use crate::udp::UdpObserver;
use crate::{cgroup, conntrack, memory, numa, thermal};

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
