//! The host as its watchers see it: every observer, read when somebody asks.
//!
//! Watchers cost the host one reading however many they are, and nothing while nobody asks.

use std::collections::BTreeMap;
use std::path::Path;

use linerate_engine::now_ns;
use linerate_observe::{FilterError, Observer, Processes, SocketFilter, TcpSockets};

use super::host::availabilities;
use super::{Caller, Core};
use crate::access::Scope;
use crate::api::{Observation, ObservationRequest, Refusal, RefusalCode, SocketsSeen, refuse};
use crate::sync::lock;

/// How old a reading may be to be given to the next watcher too.
const SHARED_NS: u64 = 10_000_000;
/// How long the observers stay open after the last question: several turns of a slow watcher.
const KEPT_NS: u64 = 60_000_000_000;

/// Most sockets of one answer: 4 MB as JSON.
const ROWS_MAX: usize = 4096;
/// Longest filter that is read.
const FILTER_BYTES_MAX: usize = 1000;
/// How old the names of processes may be: looking for them costs 2 µs for each open file.
const OWNERS_NS: u64 = 5_000_000_000;

/// The observers while somebody watches, and their last reading.
#[derive(Default)]
pub(super) struct Watch {
    observers: Vec<Box<dyn Observer>>,
    last: Option<Observation>,
    sockets: Option<TcpSockets>,
    owners: Owners,
}

/// The processes that hold sockets, and when they were looked for.
#[derive(Default)]
struct Owners {
    processes: Processes,
    at_ns: Option<u64>,
}

impl Owners {
    fn renewed(&mut self) -> &Processes {
        let now_ns = now_ns();
        let is_old = |at_ns: u64| now_ns.saturating_sub(at_ns) > OWNERS_NS;
        if self.at_ns.is_none_or(is_old) {
            self.processes = Processes::scan(Path::new("/proc"));
            self.at_ns = Some(now_ns);
        }
        &self.processes
    }
}

impl Watch {
    /// Closes the observers once nobody has asked for a while.
    pub(super) fn poll_deadline(&mut self, now_ns: u64) {
        let asked_ns = self.last.as_ref().map(|last| last.at_ns);
        if asked_ns.is_some_and(|asked_ns| now_ns.saturating_sub(asked_ns) > KEPT_NS) {
            *self = Self::default();
        }
    }

    fn observe(
        &mut self,
        host_name: &str,
        open: impl FnOnce() -> Vec<Box<dyn Observer>>,
    ) -> Observation {
        if let Some(last) = &self.last
            && now_ns().saturating_sub(last.at_ns) < SHARED_NS
        {
            return last.clone();
        }
        if self.observers.is_empty() {
            self.observers = open();
        }
        let mut samples = Vec::new();
        for observer in &mut self.observers {
            observer.sample(&mut samples);
        }
        let observation = Observation {
            host_name: host_name.to_owned(),
            at_ns: now_ns(),
            samples,
            observers: availabilities(&self.observers),
            sockets: None,
            programs: Vec::new(),
        };
        self.last.insert(observation).clone()
    }

    fn sockets(&mut self, filter: &SocketFilter) -> std::io::Result<SocketsSeen> {
        let sockets = match &mut self.sockets {
            Some(sockets) => sockets,
            none => none.insert(TcpSockets::open()?),
        };
        let processes = self.owners.renewed();
        let mut rows = Vec::new();
        let (at_ns, all) = sockets.read(filter, processes, &mut rows)?;
        rows.truncate(ROWS_MAX);
        let beyond = all - rows.len() as u64;
        let held = rows.iter().filter_map(|row| {
            let process = processes.of_inode(row.inode)?;
            Some((row.inode, format!("{}/{}", process.name, process.pid)))
        });
        let owners: BTreeMap<u64, String> = held.collect();
        Ok(SocketsSeen {
            at_ns,
            rows,
            beyond,
            owners,
        })
    }
}

impl Core {
    /// Returns what every observer of this host reads, at most 10 ms old, and the sockets asked
    /// for as they are now, with the programs that run.
    pub fn observe(
        &self,
        caller: &Caller,
        wanted: &ObservationRequest,
    ) -> Result<Observation, Refusal> {
        caller.check(Scope::Observe)?;
        let filter = wanted.sockets.as_deref().map(filter).transpose()?;
        let open = || linerate_observe::observers(&self.observe_config(true, Vec::new()));
        let mut watch = lock(&self.watch);
        let mut observation = watch.observe(&self.config.host_name, open);
        if let Some(filter) = filter {
            let sockets = watch.sockets(&filter);
            let sockets = sockets.map_err(|error| refuse(RefusalCode::Internal, error))?;
            observation.sockets = Some(sockets);
            observation.programs = linerate_observe::programs(Path::new("/proc"));
        }
        Ok(observation)
    }
}

fn filter(text: &str) -> Result<SocketFilter, Refusal> {
    if text.len() > FILTER_BYTES_MAX {
        let error = format!("the filter is longer than {FILTER_BYTES_MAX} B");
        return Err(refuse(RefusalCode::BadRequest, error));
    }
    let bad = |error: FilterError| refuse(RefusalCode::BadRequest, error);
    text.parse().map_err(bad)
}

#[cfg(test)]
mod tests {
    use linerate_model::host::Availability;
    use linerate_model::metric::Metric;
    use linerate_model::sample::{Sample, Subject};

    use super::*;

    /// Counts its own readings.
    struct Counting(i64);

    impl Observer for Counting {
        fn availability(&self) -> Availability {
            Availability {
                observer: "counting".to_owned(),
                missing: None,
                note: None,
            }
        }

        fn sample(&mut self, out: &mut Vec<Sample>) {
            self.0 += 1;
            out.push(Sample {
                metric: Metric::CpuUser,
                subject: Subject::Host,
                at_ns: now_ns(),
                value: self.0,
            });
        }
    }

    fn readings(watch: &mut Watch) -> i64 {
        let open = || vec![Box::new(Counting(0)) as Box<dyn Observer>];
        watch.observe("host", open).samples[0].value
    }

    #[test]
    fn deadlines_do_not_wait_for_who_reads_the_host() {
        let core = std::sync::Arc::new(Core::new(crate::core::AgentConfig {
            host_name: "host".into(),
            limits: Default::default(),
            lab: false,
        }));
        let reads = lock(&core.watch);
        let (done, is_done) = std::sync::mpsc::channel();
        let polled = std::sync::Arc::clone(&core);
        let thread = std::thread::spawn(move || {
            polled.poll_deadlines();
            done.send(())
        });
        let waited = is_done.recv_timeout(std::time::Duration::from_secs(10));
        drop(reads);
        thread.join().unwrap().unwrap();
        waited.unwrap();
    }

    #[test]
    fn watchers_share_a_reading_and_observers_close_after_the_last() {
        let mut watch = Watch::default();
        assert_eq!(readings(&mut watch), 1);
        // Another watcher at the same moment, whenever this machine comes to it.
        if let Some(last) = &mut watch.last {
            last.at_ns = now_ns() + SHARED_NS;
        }
        assert_eq!(readings(&mut watch), 1);
        if let Some(last) = &mut watch.last {
            last.at_ns = now_ns() - SHARED_NS;
        }
        assert_eq!(readings(&mut watch), 2);
        let asked_ns = watch.last.as_ref().map_or(0, |last| last.at_ns);
        watch.poll_deadline(asked_ns + KEPT_NS);
        assert_eq!(watch.observers.len(), 1);
        watch.poll_deadline(asked_ns + KEPT_NS + 1);
        assert!(watch.observers.is_empty() && watch.last.is_none());
    }
}
