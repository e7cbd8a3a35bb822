//! Where the CPUs are, found by looking 999 times a second: shares of each kind of work, and stacks.
//!
//! A timer of each CPU (or of each of our threads) writes down the instruction that it interrupts and
//! the chain of callers inside the kernel; here they are taken from the ring, named, and sorted into
//! kinds of work by the table in `rules`. No program beside ours is needed.
//!
//! Four things to know when reading the numbers:
//! 1. The timer is no non-maskable interrupt: work with interrupts off is charged to the place that
//!    switches them on again. The rules leave releases of locks to their callers for that reason.
//! 2. An idle CPU's timer stops, so that idle is found too rarely; `/proc/stat` knows it. Shares are
//!    therefore of the looks that found a CPU busy.
//! 3. Chains end where user mode begins: our program is built without frame pointers, so of user
//!    mode the innermost function is known only, and only of our own program.
//! 4. Where only our own threads may be looked at, or hosts share a machine, softirqs are
//!    seen as far as they ran on top of these threads.
//!
//! What it costs (`cargo run --release --example probes`, on a virtual machine, whose timers cost more
//! than others'): 20 µs of the CPU that is looked at for each look, 2 % while it is busy, 3 µs of the
//! sampler's CPU to take it up, and 50 ms once to read the symbols, which happens before the traffic.
//! So it is off unless asked for.

/// A sample's record.
mod record;
/// Which kind of work a function does.
mod rules;
/// How many looks found each stack.
mod stacks;
/// Addresses into names.
mod symbols;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_model::host::Availability;
use linerate_model::metric::Metric;
use linerate_model::number::counted;
use linerate_model::profile::{Stack, Work};
use linerate_model::sample::{Sample, Subject};

use crate::files::entries;
use crate::observer::{Health, NEEDS_TOKEN, ObserveConfig, opened};
use crate::places::online_cpus;
use crate::readout::Readout;
use crate::sys::clock::now_ns;
use crate::sys::file::read_value;
use crate::sys::perf::{Attributes, PerfEvent, Ring, Target, why_not};
use record::{Look, Record, record};
use rules::{work_of, work_of_stack};
use stacks::{NameId, Names, Stacks};
use symbols::{OwnProgram, Symbols};

/// Looks a second. Not 1000, which would keep step with timers of the same period.
const LOOKS_HZ: u64 = 999;
/// Pages of a ring: 256 KiB, half a second of looks with chains of 40 callers. An unprivileged user
/// may lock 516 KiB for each CPU (kernel.perf_event_mlock_kb).
const RING_PAGES: usize = 64;
/// Most threads of ours that are looked at one by one.
const THREADS_MAX: usize = 64;

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every CPU, whoever runs there; where that is not allowed, our own threads.
    Host,
    /// Our own threads: for hosts that share a machine.
    OwnThreads,
}

/// Looks at the CPUs of one trial.
#[derive(Debug)]
pub struct Profiler {
    rings: Vec<Ring>,
    tally: Tally,
    health: Health,
}

/// What the looks so far have found.
#[derive(Debug)]
struct Tally {
    program: Arc<Program>,
    /// Stacks are of looks at these instants.
    window_ns: Range<u64>,
    names: Names,
    /// Kernel functions by an address inside them.
    kernel_names: HashMap<u64, NameId>,
    /// Threads by their id.
    threads: HashMap<i32, NameId>,
    proc_root: PathBuf,
    drivers: Vec<String>,
    stacks: Stacks,
    by_work: HashMap<Work, i64>,
    lost: i64,
}

/// Names that stay the same until a module is loaded.
#[derive(Debug)]
struct Program {
    /// Modules whose functions are known.
    modules: Vec<String>,
    kernel: Result<Symbols, String>,
    own: OwnProgram,
    pid: i32,
}

/// Reads the symbols, unless that has been done: 50 ms that no trial should have in its window.
pub fn load_symbols(proc_root: &Path) {
    program(proc_root);
}

/// Returns the names, read anew where a module came or went: the first flow of a congestion control loads
/// one.
fn program(proc_root: &Path) -> Arc<Program> {
    static PROGRAM: Mutex<Option<Arc<Program>>> = Mutex::new(None);
    let mut known = PROGRAM.lock().unwrap_or_else(PoisonError::into_inner);
    let modules = symbols::modules(proc_root);
    match &*known {
        Some(program) if program.modules == modules => program.clone(),
        _ => known
            .insert(Arc::new(Program::read(proc_root, modules)))
            .clone(),
    }
}

impl Program {
    fn read(proc_root: &Path, modules: Vec<String>) -> Self {
        Self {
            modules,
            kernel: symbols::of_kernel(proc_root),
            own: OwnProgram::read(proc_root),
            pid: std::process::id().cast_signed(),
        }
    }
}

impl Profiler {
    /// Begins to look; stacks are kept of looks inside `window_ns` of CLOCK_MONOTONIC.
    pub fn open(config: &ObserveConfig, scope: Scope, window_ns: Range<u64>) -> Self {
        let program = program(&config.proc_root);
        let mut note = None;
        let rings = match (config.host_wide, &program.kernel) {
            (false, _) => Err(NEEDS_TOKEN.to_owned()),
            (true, Err(why)) => Err(why.clone()),
            (true, Ok(_)) => open_rings(config, scope, &mut note),
        };
        let (rings, missing) = opened(rings);
        Self {
            rings: rings.unwrap_or_default(),
            health: Health::new("profile", missing, Vec::from_iter(note)),
            tally: Tally {
                program,
                window_ns,
                names: Names::default(),
                kernel_names: HashMap::new(),
                threads: HashMap::new(),
                proc_root: config.proc_root.clone(),
                drivers: drivers(&config.sys_root),
                stacks: Stacks::default(),
                by_work: HashMap::new(),
                lost: 0,
            },
        }
    }

    /// Answers whether it can look, and at what.
    pub fn availability(&self) -> Availability {
        let mut availability = self.health.availability();
        if self.tally.lost > 0 {
            let of = availability.note.as_deref().unwrap_or("the whole host");
            let lost = counted(self.tally.lost, "sample");
            availability.note = Some(format!("{of}; the buffer was full and lost {lost}"));
        }
        availability
    }

    /// Takes up the looks since the last time, and appends how many found each kind of work so far.
    pub fn sample(&mut self, out: &mut Vec<Sample>) {
        if self.rings.is_empty() {
            return;
        }
        for ring in &mut self.rings {
            ring.drain(|kind, misc, body| match record(kind, misc, body) {
                Some(Record::Look(look)) => self.tally.add(&look),
                Some(Record::Lost(looks)) => self.tally.lost += looks.cast_signed(),
                None => {}
            });
        }
        self.health.reading(out, |out| {
            let mut readout = Readout::at(now_ns(), out);
            for work in Work::ALL {
                let count = self.tally.by_work.get(work).copied().unwrap_or(0);
                readout.push(work.metric(), Subject::Host, count);
            }
            readout.push(Metric::ProfileLost, Subject::Host, self.tally.lost);
            Ok(())
        });
    }

    /// Returns the stacks of the window, those found most often first.
    pub fn finish(mut self) -> Vec<Stack> {
        self.sample(&mut Vec::new());
        self.tally.stacks.told(&self.tally.names)
    }
}

fn open_rings(
    config: &ObserveConfig,
    scope: Scope,
    note: &mut Option<String>,
) -> Result<Vec<Ring>, String> {
    let own = "linerate's threads only";
    if scope == Scope::Host {
        let cpus = online_cpus(&config.sys_root).into_iter();
        match rings(cpus.map(Target::Cpu)) {
            Ok(rings) => return Ok(rings),
            Err(error) => *note = Some(format!("{own}: the whole host is {}", why_not(&error))),
        }
    } else {
        *note = Some(format!("{own}: several hosts share this machine"));
    }
    let threads = config.threads.iter().take(THREADS_MAX);
    match rings(threads.map(|(_, tid)| Target::Thread(*tid))) {
        Ok(rings) if rings.is_empty() => Err("no thread to profile".to_owned()),
        Ok(rings) => Ok(rings),
        Err(error) => {
            *note = None;
            Err(why_not(&error))
        }
    }
}

fn rings(targets: impl Iterator<Item = Target>) -> std::io::Result<Vec<Ring>> {
    let attributes = Attributes::sampler(LOOKS_HZ);
    let open = |target| Ring::map(PerfEvent::open(&attributes, target, None)?, RING_PAGES);
    let rings: Vec<Ring> = targets.map(open).collect::<Result<_, _>>()?;
    rings.iter().try_for_each(Ring::enable)?;
    Ok(rings)
}

/// Returns the modules that drive network devices.
fn drivers(sys_root: &Path) -> Vec<String> {
    let devices = sys_root.join("class/net");
    let module = |device: String| {
        let module = devices.join(device).join("device/driver/module");
        let module = std::fs::read_link(module).ok()?;
        Some(module.file_name()?.to_string_lossy().into_owned())
    };
    let drivers = entries(&devices).into_iter().filter_map(module);
    BTreeSet::from_iter(drivers).into_iter().collect()
}

impl Tally {
    fn add(&mut self, look: &Look<'_>) {
        let mut frames: Vec<NameId> = look
            .kernel_addresses()
            .map(|address| self.kernel_name(address))
            .collect();
        let work = if look.is_user {
            Work::User
        } else {
            work_of_stack(frames.iter().map(|&id| self.names.work(id)))
        };
        *self.by_work.entry(work).or_default() += 1;
        if !self.window_ns.contains(&look.at_ns) || work == Work::Idle {
            return;
        }
        if look.is_user {
            frames.push(self.user_name(look));
        }
        frames.push(self.thread_name(look));
        frames.reverse();
        self.stacks.add(&frames, work);
    }

    fn kernel_name(&mut self, address: u64) -> NameId {
        if let Some(&id) = self.kernel_names.get(&address) {
            return id;
        }
        let symbols = self.program.kernel.as_ref().ok();
        let id = match symbols.and_then(|symbols| symbols.find(address)) {
            Some(named) => {
                let work = work_of(named, &self.drivers);
                match named.module {
                    Some(module) => self.names.id(&format!("{} [{module}]", named.name), work),
                    None => self.names.id(named.name, work),
                }
            }
            None => self.names.id("[kernel]", None),
        };
        self.kernel_names.insert(address, id);
        id
    }

    fn user_name(&mut self, look: &Look<'_>) -> NameId {
        let own = (look.pid == self.program.pid).then(|| self.program.own.find(look.address));
        let name = own.flatten().unwrap_or_else(|| "[user]".to_owned());
        self.names.id(&name, None)
    }

    fn thread_name(&mut self, look: &Look<'_>) -> NameId {
        if let Some(&id) = self.threads.get(&look.tid) {
            return id;
        }
        let path = format!("{}/task/{}/comm", look.pid, look.tid);
        let name = match look.tid {
            0 => "swapper".to_owned(),
            _ => read_value(&self.proc_root.join(path)).unwrap_or_else(|_| "[ended]".to_owned()),
        };
        let id = self.names.id(kind_of_thread(&name), None);
        self.threads.insert(look.tid, id);
        id
    }
}

/// Returns the part of a thread's name that it shares with its like: `worker` of `worker-3`,
/// `ksoftirqd` of `ksoftirqd/0`, `kworker` of `kworker/u8:1`.
fn kind_of_thread(name: &str) -> &str {
    let name = name.split('/').next().unwrap_or(name);
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match kind.strip_suffix('-') {
        Some(kind) if !kind.is_empty() => kind,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_kind_share_a_name() {
        for (name, kind) in [
            ("worker-12", "worker"),
            ("ksoftirqd/0", "ksoftirqd"),
            ("kworker/u8:1-events", "kworker"),
            ("linerate", "linerate"),
            ("iperf3", "iperf3"),
            ("-1", "-1"),
        ] {
            assert_eq!(kind_of_thread(name), kind);
        }
    }

    fn config() -> ObserveConfig {
        let tid = std::fs::read_link("/proc/thread-self").expect("this thread");
        let tid = tid.file_name().expect("its id").to_string_lossy();
        ObserveConfig {
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            lab: false,
            host_wide: true,
            threads: vec![("test".to_owned(), tid.parse().expect("a number"))],
        }
    }

    #[inline(never)]
    fn busy_in_user_mode(until_ns: u64) {
        while now_ns() < until_ns {
            // Without a call, so that a sample of it has its name.
            let (mut mixed, mut at) = (1_u64, 0_u64);
            while at < 20_000 {
                mixed = (mixed << 3) ^ at;
                at += 1;
            }
            std::hint::black_box(mixed);
        }
    }

    #[test]
    fn this_thread_is_found_where_it_is() {
        let config = config();
        load_symbols(&config.proc_root);
        let begin_ns = now_ns();
        let mut profiler = Profiler::open(&config, Scope::OwnThreads, begin_ns..u64::MAX);
        if let Some(why) = profiler.availability().missing {
            // Refused to users without the right, and the reason says what would help.
            assert!(why.contains("root"), "{why}");
            return;
        }
        // By CPU time, so that a busy machine does not matter.
        let mut samples = Vec::new();
        for _ in 0..100 {
            busy_in_user_mode(now_ns() + 20_000_000);
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
            let address = socket.local_addr().expect("its address");
            let mut buffer = [0; 2000];
            for _ in 0..2000 {
                socket.send_to(&[1; 1400], address).expect("sent");
                socket.recv(&mut buffer).expect("received");
            }
            samples.clear();
            profiler.sample(&mut samples);
            let of = |metric| {
                samples
                    .iter()
                    .find(|s| s.metric == metric)
                    .map_or(0, |s| s.value)
            };
            if of(Metric::ProfileUser) > 20 && of(Metric::ProfileTransport) > 5 {
                break;
            }
        }
        let of = |work: Work| {
            let sample = samples.iter().find(|s| s.metric == work.metric());
            sample.map_or(0, |sample| sample.value)
        };
        assert!(of(Work::User) > 20, "{samples:?}");
        assert!(of(Work::Transport) > 5, "{samples:?}");
        let known: i64 = Work::ALL.iter().map(|work| of(*work)).sum();
        assert!(4 * of(Work::Other) < known, "rules know most: {samples:?}");
        let stacks = profiler.finish();
        let found = |part: &str| stacks.iter().any(|stack| stack.frames.contains(part));
        assert!(found("busy_in_user_mode"), "{stacks:?}");
        assert!(found("udp_sendmsg"), "{stacks:?}");
        assert!(stacks.is_sorted_by(|a, b| a.samples >= b.samples));
    }

    /// A program of somebody else, ended when the test is.
    struct Other(std::process::Child);

    impl Drop for Other {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn the_whole_host_has_other_programs() {
        let config = config();
        load_symbols(&config.proc_root);
        let mut profiler = Profiler::open(&config, Scope::Host, 0..u64::MAX);
        let availability = profiler.availability();
        if availability.missing.is_some() || availability.note.is_some() {
            // Refused to users without the right, and the reason says what would help.
            let why = availability.missing.or(availability.note);
            assert!(
                why.as_ref().is_some_and(|why| why.contains("root")),
                "{why:?}"
            );
            return;
        }
        let mut busy = std::process::Command::new("sh");
        busy.args(["-c", "while :; do :; done"]);
        let _other = Other(busy.spawn().expect("a shell"));
        let mut samples = Vec::new();
        for _ in 0..500 {
            busy_in_user_mode(now_ns() + 10_000_000);
            samples.clear();
            profiler.sample(&mut samples);
            if samples
                .iter()
                .any(|s| s.metric == Metric::ProfileUser && s.value > 500)
            {
                break;
            }
        }
        let stacks = profiler.finish();
        let of = |thread: &str| {
            let of_thread = |frames: &str| frames.split(';').next() == Some(thread);
            let found = stacks.iter().filter(|stack| of_thread(&stack.frames));
            found.map(|stack| stack.samples).sum::<u64>()
        };
        // On a busy host the samples are those of many others.
        assert!(of("sh") > 0, "the other program: {stacks:?}");
    }
}
