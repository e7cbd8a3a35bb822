//! Hardware counters: cycles, instructions and cache misses, from perf events.
//!
//! Of every CPU where the caller may see that, else of linerate's threads. The three are one group, so
//! that their ratios hold also where counters take turns; values are then scaled by the time that
//! the group was counting (tools/perf/design.txt). Most virtual machines have none: then the reason
//! says so, and whoever wants cycles has CPU time × frequency.

use std::io;
use std::path::Path;

use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

use crate::observer::{Interface, ObserveConfig, Observer, observer};
use crate::places::online_cpus;
use crate::readout::Readout;
use crate::sys::clock::timed;
use crate::sys::perf::{Attributes, Counted, PerfEvent, Target, why_not};

/// The counters of a group with their metrics; the first leads.
const COUNTERS: [(Counted, Metric); 3] = [
    (Counted::Cycles, Metric::PerfCycles),
    (Counted::Instructions, Metric::PerfInstructions),
    (Counted::CacheMisses, Metric::PerfCacheMisses),
];
/// Words before the values: how many, time enabled, time running.
const WORDS_BEFORE: usize = 3;

const NOTE_OWN: &str = "of linerate's threads: the CPUs' counters may not be read";

/// A group of counters for each CPU or thread.
struct Groups(Vec<CounterGroup>);

struct CounterGroup {
    subject: Subject,
    /// The first leads; those that the CPU does not have are not there.
    events: Vec<(PerfEvent, Metric)>,
}

/// Opens the counters.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let all = if config.proc_root == Path::new("/proc") {
        open_cpus(&config.sys_root)
    } else {
        Err(io::Error::other("a recorded root has no counters"))
    };
    let (groups, note) = match all {
        Err(error) if is_refusal(&error) && !config.threads.is_empty() => {
            (open_threads(&config.threads), Some(NOTE_OWN.to_owned()))
        }
        Err(error) => (Err(error), None),
        Ok(groups) => (Ok(groups), config.lab_note("CPUs are the machine's")),
    };
    let groups = groups.map(Groups).map_err(|error| why_not(&error));
    observer("perf", groups, note)
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn open_cpus(sys_root: &Path) -> io::Result<Vec<CounterGroup>> {
    let cpus = online_cpus(sys_root).into_iter();
    cpus.map(|cpu| CounterGroup::open(Subject::Cpu(cpu), Target::Cpu(cpu), &COUNTERS))
        .collect()
}

fn open_threads(threads: &[(String, i32)]) -> io::Result<Vec<CounterGroup>> {
    let threads = threads.iter();
    threads
        .map(|(name, tid)| {
            let subject = Subject::Thread(name.clone());
            CounterGroup::open(subject, Target::Thread(*tid), &COUNTERS)
        })
        .collect()
}

impl CounterGroup {
    fn open(subject: Subject, target: Target, counters: &[(Counted, Metric)]) -> io::Result<Self> {
        let mut events: Vec<(PerfEvent, Metric)> = Vec::new();
        for (counted, metric) in counters {
            let leader = events.first().map(|(event, _)| event);
            match PerfEvent::open(&Attributes::counter(*counted), target, leader) {
                Ok(event) => events.push((event, *metric)),
                // Without the leader there is nothing; a CPU may lack one of the others.
                Err(error) if events.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(Self { subject, events })
    }

    fn push_samples(&self, out: &mut Vec<Sample>) -> io::Result<()> {
        let Some((leader, _)) = self.events.first() else {
            return Ok(());
        };
        let mut words = [0; WORDS_BEFORE + COUNTERS.len()];
        let (read, at_ns) = timed(|| leader.read(&mut words));
        let words = &words[..read?];
        let mut readout = Readout::at(at_ns, out);
        for ((_, metric), value) in self.events.iter().zip(values(words)) {
            readout.push(*metric, self.subject.clone(), value);
        }
        Ok(())
    }
}

/// Returns the values of a group's reading, as they would be had it counted all the time; none where
/// it never counted, since that is no zero.
fn values(words: &[u64]) -> impl Iterator<Item = u64> {
    let (enabled, running) = match words {
        [_, enabled, running, ..] => (u128::from(*enabled), u128::from(*running)),
        _ => (0, 0),
    };
    let values = words.iter().skip(WORDS_BEFORE);
    let scaled = move |value: &u64| {
        let scaled = (u128::from(*value) * enabled).checked_div(running)?;
        u64::try_from(scaled).ok()
    };
    values.map_while(scaled)
}

impl Interface for Groups {
    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let read = self.0.iter().map(|group| {
            let read = group.push_samples(out);
            read.map_err(|error| format!("{}: {error}", group.subject))
        });
        read.fold(Ok(()), Result::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_scaled_by_the_time_that_was_counted() {
        let check = |words: &[u64], expected: &[u64]| {
            assert_eq!(values(words).collect::<Vec<_>>(), expected, "{words:?}");
        };
        check(&[3, 1000, 1000, 5, 6, 7], &[5, 6, 7]);
        check(&[2, 1000, 250, 5, 6], &[20, 24]);
        // A group that had no turn has no value.
        check(&[2, 1000, 0, 0, 0], &[]);
        check(&[], &[]);
        check(&[1, 10], &[]);
        check(&[1, u64::MAX, u64::MAX, u64::MAX], &[u64::MAX]);
    }

    #[test]
    fn a_group_of_software_events_counts_this_thread() {
        let tid = 0;
        let clock = [(Counted::CpuClock, Metric::PerfCycles); 2];
        let group = match CounterGroup::open(Subject::Host, Target::Thread(tid), &clock) {
            Ok(group) => group,
            Err(error) => {
                assert!(is_refusal(&error), "{error}");
                return;
            }
        };
        assert_eq!(group.events.len(), 2);
        let read = || {
            let mut samples = Vec::new();
            group.push_samples(&mut samples).expect("read");
            samples
                .iter()
                .map(|sample| sample.value)
                .collect::<Vec<_>>()
        };
        let before = read();
        std::hint::black_box((0..2_000_000_u64).fold(1_u64, |a, b| a.rotate_left(3) ^ b));
        let after = read();
        assert_eq!(before.len(), 2, "both of the group");
        for (before, after) in before.iter().zip(&after) {
            assert!(after > before, "{before} {after}");
        }
    }
}
