//! CPU time of our own threads, from `/proc/self/task/TID/{stat,schedstat}`.
//!
//! Three things to know when reading the numbers:
//! 1. `utime` and `stime` add up to the exact run time, in ticks of USER_HZ; only their shares are
//!    sampled at the tick (kernel/sched/cputime.c, cputime_adjust).
//! 2. `schedstat` is in nanoseconds, but of a thread that runs now it is as of the last tick or
//!    switch. It is all zero on a kernel without CONFIG_SCHED_INFO, which counts as absent.
//! 3. A thread that has ended has no reading any more; its last sample is the last one.

mod find;
mod parse;
mod programs;

use std::path::{Path, PathBuf};

pub use programs::programs;

use linerate_model::metric::Metric;
use linerate_model::sample::{Sample, Subject};

use crate::observer::{Interface, ObserveConfig, Observer, any_opened, observer};
use crate::readout::Readout;
use crate::sys::clock::user_hz;
use crate::sys::file::KernelFile;
use crate::text::ticks_to_ns;

/// The CPU time of the threads it was opened with.
struct Threads {
    threads: Vec<Thread>,
    /// Names of those that were there and are no more.
    ended: Vec<String>,
    user_hz: u64,
}

struct Thread {
    name: String,
    task: PathBuf,
    stat: KernelFile,
    schedstat: Option<KernelFile>,
}

/// Opens the files of each thread.
pub(crate) fn open(config: &ObserveConfig) -> Box<dyn Observer> {
    let threads = config.threads.iter().map(|(name, tid)| {
        let thread = Thread::open(&config.proc_root, name, *tid);
        thread.map_err(|reason| format!("thread {name}: {reason}"))
    });
    let (mut threads, mut notes) = any_opened(threads);
    if config.threads.is_empty() {
        threads = find::own_tasks(&config.proc_root).map(|_| Vec::new());
    }
    let lacks = |thread: &Thread| thread.schedstat.is_none();
    if threads.iter().flatten().any(lacks) {
        notes.push("no schedstat: run-queue wait is not known".to_owned());
    }
    let threads = threads.map(|threads| Threads {
        threads,
        ended: Vec::new(),
        user_hz: user_hz(),
    });
    observer("threads", threads, notes)
}

impl Thread {
    fn open(proc_root: &Path, name: &str, tid: i32) -> Result<Self, String> {
        let task = find::task_dir(proc_root, tid)?;
        Ok(Self {
            name: name.to_owned(),
            stat: KernelFile::open(&task.join("stat"))?,
            schedstat: KernelFile::open(&task.join("schedstat")).ok(),
            task,
        })
    }

    fn push_samples(&mut self, user_hz: u64, out: &mut Vec<Sample>) -> Result<(), String> {
        let Self {
            name,
            stat,
            schedstat,
            task: _,
        } = self;
        let mut push = |metric, at_ns, value: Option<i64>| {
            if let Some(value) = value {
                Readout::at(at_ns, out).push(metric, Subject::Thread(name.clone()), value);
            }
        };
        let odd = |file: &KernelFile| file.says("not understood");

        let (text, at_ns) = stat.read()?;
        let times = parse::stat(text).ok_or_else(|| odd(stat))?;
        push(
            Metric::ThreadUser,
            at_ns,
            ticks_to_ns(times.utime_ticks, user_hz),
        );
        push(
            Metric::ThreadSystem,
            at_ns,
            ticks_to_ns(times.stime_ticks, user_hz),
        );
        push(Metric::ThreadCpu, at_ns, times.processor.map(i64::from));

        let Some(schedstat) = schedstat else {
            return Ok(());
        };
        let (text, at_ns) = schedstat.read()?;
        let times = parse::schedstat(text).ok_or_else(|| odd(schedstat))?;
        push(Metric::ThreadRun, at_ns, times.map(|times| times.run_ns));
        push(Metric::ThreadWait, at_ns, times.map(|times| times.wait_ns));
        let arrivals = times.map(|times| times.arrivals);
        push(Metric::ThreadArrivals, at_ns, arrivals);
        Ok(())
    }
}

impl Interface for Threads {
    fn read(&mut self, out: &mut Vec<Sample>) -> Result<(), String> {
        let mut read = Ok(());
        self.threads.retain_mut(|thread| {
            let Err(reason) = thread.push_samples(self.user_hz, out) else {
                return true;
            };
            // Not a failure of the reading: a volume may be through before the first.
            let has_ended = !thread.task.exists();
            if has_ended {
                self.ended.push(thread.name.clone());
            } else if read.is_ok() {
                read = Err(format!("thread {}: {reason}", thread.name));
            }
            !has_ended
        });
        read
    }

    fn notes(&self) -> Vec<String> {
        let ended = self.ended.iter();
        ended
            .map(|name| format!("thread {name} has ended"))
            .collect()
    }
}
