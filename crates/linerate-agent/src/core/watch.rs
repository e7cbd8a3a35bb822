//! The host as its watchers see it: every observer, read when somebody asks.
//!
//! Watchers cost the host one reading however many they are, and nothing while nobody asks.

use std::collections::BTreeMap;
use std::ops::Range;
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
/// How long the observers stay open after the last question, at least.
const KEPT_NS: u64 = 60_000_000_000;
/// How many turns of a watcher that said its interval they stay open.
const KEPT_TURNS: u64 = 3;
/// Longest interval of a watcher that they stay open for.
const INTERVAL_NS_MAX: u64 = 3_600_000_000_000;

/// Most sockets of one answer: 4 MB as JSON.
const ROWS_MAX: usize = 4096;
/// Longest filter that is read.
const FILTER_BYTES_MAX: usize = 1000;
/// How old the names of processes may be: looking for them costs 2 µs for each open file.
const OWNERS_NS: u64 = 5_000_000_000;

/// The observers while somebody watches, and their last reading.
#[derive(Default)]
pub(super) struct Watch {
    /// Each with the place of its samples in the last reading.
    observers: Vec<(Box<dyn Observer>, Range<usize>)>,
    last: Option<Observation>,
    kept_ns: u64,
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
        let kept_ns = self.kept_ns.max(KEPT_NS);
        if asked_ns.is_some_and(|asked_ns| now_ns.saturating_sub(asked_ns) > kept_ns) {
            *self = Self::default();
        }
    }

    /// Keeps the observers open for a watcher who asks again after `interval_ns`.
    fn keep(&mut self, interval_ns: u64) {
        let kept_ns = KEPT_TURNS * interval_ns.min(INTERVAL_NS_MAX);
        self.kept_ns = self.kept_ns.max(kept_ns);
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
            self.observers = open().into_iter().map(|one| (one, 0..0)).collect();
        }
        let mut samples = Vec::new();
        for (observer, place) in &mut self.observers {
            let from = samples.len();
            // Left out, it is told as it was last: its devices are still there.
            if !observer.sample(&mut samples)
                && let Some(last) = &self.last
            {
                samples.extend_from_slice(&last.samples[place.clone()]);
            }
            *place = from..samples.len();
        }
        let observation = Observation {
            host_name: host_name.to_owned(),
            at_ns: now_ns(),
            samples,
            observers: availabilities(self.observers.iter().map(|(observer, _)| observer)),
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
        watch.keep(wanted.interval_ns.unwrap_or(0));
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

    /// Counts its own readings, and leaves out every one that is a multiple of `.1`.
    struct Counting(i64, i64);

    impl Observer for Counting {
        fn availability(&self) -> Availability {
            Availability {
                observer: "counting".to_owned(),
                missing: None,
                note: None,
            }
        }

        fn sample(&mut self, out: &mut Vec<Sample>) -> bool {
            self.0 += 1;
            let is_made = self.0 % self.1 != 0;
            if is_made {
                out.push(Sample {
                    metric: Metric::CpuUser,
                    subject: Subject::Host,
                    at_ns: now_ns(),
                    value: self.0,
                });
            }
            is_made
        }
    }

    /// Returns what is read by one observer that leaves out every third reading, and by one that leaves out none.
    fn values(watch: &mut Watch) -> Vec<i64> {
        let counting = |left_out| Box::new(Counting(0, left_out)) as Box<dyn Observer>;
        let observation = watch.observe("host", || vec![counting(3), counting(i64::MAX)]);
        let samples = observation.samples.iter();
        samples.map(|sample| sample.value).collect()
    }

    fn readings(watch: &mut Watch) -> i64 {
        values(watch)[1]
    }

    /// Has the last reading be too old for another watcher.
    fn age(watch: &mut Watch) {
        if let Some(last) = &mut watch.last {
            last.at_ns = now_ns() - SHARED_NS;
        }
    }

    #[test]
    fn what_an_observer_leaves_out_is_told_as_it_was() {
        let mut watch = Watch::default();
        let mut all = Vec::new();
        for _ in 0..5 {
            all.push(values(&mut watch));
            age(&mut watch);
        }
        assert_eq!(all, [[1, 1], [2, 2], [2, 3], [4, 4], [5, 5]]);
    }

    #[test]
    fn observers_stay_for_a_slow_watcher_and_not_for_ever() {
        let is_open = |interval_ns: u64, after_ns: u64| {
            let mut watch = Watch::default();
            readings(&mut watch);
            watch.keep(interval_ns);
            let asked_ns = watch.last.as_ref().map_or(0, |last| last.at_ns);
            watch.poll_deadline(asked_ns + after_ns);
            !watch.observers.is_empty()
        };
        let minute = KEPT_NS;
        assert!(is_open(0, minute) && !is_open(0, minute + 1));
        assert!(is_open(2 * minute, 6 * minute) && !is_open(2 * minute, 6 * minute + 1));
        assert!(!is_open(u64::MAX, 181 * minute));
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
        age(&mut watch);
        assert_eq!(readings(&mut watch), 2);
        let asked_ns = watch.last.as_ref().map_or(0, |last| last.at_ns);
        watch.poll_deadline(asked_ns + KEPT_NS);
        assert!(!watch.observers.is_empty());
        watch.poll_deadline(asked_ns + KEPT_NS + 1);
        assert!(watch.observers.is_empty() && watch.last.is_none());
    }
}
