//! Runs under faults: seeded, deterministic, in simulated time, at the seam to the agents.
//!
//! Everything of a run is real but its agents' sockets, threads and hours: the controller, the agents'
//! leases and trial sessions, the recorder and its bundles. A seed says what the hosts are, what happens
//! to them and when ([`scenario`]); an agent of a scenario ([`host`]) loses, delays, doubles and mixes up
//! requests and answers, dies and comes back, stops, lies, and has a clock that is wrong. Whatever happens:
//!
//! 1. the run ends within [`LIMIT`] of simulated time, with a verdict on each of its trials;
//! 2. a trial that is valid counts what went over the wire, to within what its clocks drift;
//! 3. its bundle opens, whole unless the disk failed;
//! 4. nothing is left: no lease and no trial of the run at any agent that lives, at once where it could be
//!    told, by its deadlines else, and no file beside the bundle.
//!
//! turmoil and madsim simulate what is written with tokio; the controller's threads and blocking calls
//! are none of theirs, and its seam is narrow enough to stand in for a network. `FAULT_SEEDS` in the
//! environment says how many seeds are tried instead of [`SEEDS`], or which (`FROM..TO`); a failure names its seed, which then
//! belongs into [`MENDED`].

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use linerate_agent::api::AdmitRequest;
use linerate_model::metric::Metric;
use linerate_model::reason::Reason;
use linerate_model::run::{Admission, Recording, RunDocument, TrialRecord, Validity};
use linerate_model::sample::Subject;
use linerate_model::samples::edges;
use linerate_model::{Nanos, RunId};
use linerate_store::{FileError, Step, WriteError};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use crate::fleet::{Clock, Fleet, Inventories};
use crate::record::Recorder;
use crate::run::{Audience, RunError, execute};

mod host;
mod scenario;

use host::{Affliction, BEYOND, BYTES_PER_MS};
use scenario::{Scenario, Storage, Trouble, scenario};

/// Seeds that the test command tries.
const SEEDS: u64 = 1500;
/// Seeds that found something once.
const MENDED: &[u64] = &[];
/// How long a run may take at the most, whatever happens to it: three trials of 5 s, each with the waits
/// for every answer, for results, and for a host to return.
const LIMIT: Duration = Duration::from_secs(600);

/// A clock that moves when somebody waits.
#[derive(Debug)]
pub struct Time {
    now_ns: AtomicU64,
    /// When the user has seen enough, and the flag that says so.
    interrupt_ns: u64,
    stop: Arc<AtomicBool>,
}

impl Time {
    fn new(interrupt_ns: u64, stop: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            now_ns: AtomicU64::new(0),
            interrupt_ns,
            stop,
        })
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn sleep(&self, duration: Duration) {
        // No call is free, so that whoever never sleeps still gets on.
        self.set(self.now_ns() + (duration.as_nanos() as u64).max(1));
    }

    fn set(&self, now_ns: u64) {
        assert!(now_ns < LIMIT.as_nanos() as u64, "the run does not end");
        self.now_ns.store(now_ns, Ordering::Relaxed);
        if now_ns >= self.interrupt_ns {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Does one after the other, each from the same instant on; all are over when the last is.
    pub(crate) fn together<T, R>(
        &self,
        items: impl IntoIterator<Item = T>,
        work: impl Fn(T) -> R,
    ) -> Vec<R> {
        let (began_ns, mut ended_ns) = (self.now_ns(), self.now_ns());
        let each = items.into_iter().map(|item| {
            self.now_ns.store(began_ns, Ordering::Relaxed);
            let done = work(item);
            ended_ns = ended_ns.max(self.now_ns());
            done
        });
        let done = each.collect();
        self.set(ended_ns);
        done
    }
}

/// A disk that is full after so many events, or takes its time for each.
pub struct Disk {
    trouble: Trouble,
    time: Arc<Time>,
}

impl Disk {
    fn new(trouble: Trouble, time: &Arc<Time>) -> Self {
        let time = Arc::clone(time);
        Self { trouble, time }
    }

    pub(crate) fn keep(&mut self) -> Result<(), WriteError> {
        match &mut self.trouble {
            Trouble::Full(0) => Err(WriteError::File(FileError {
                step: Step::Write,
                path: "bundle".into(),
                cause: std::io::ErrorKind::StorageFull.into(),
            })),
            Trouble::Full(left) => {
                *left -= 1;
                Ok(())
            }
            Trouble::Slow(each) => {
                self.time.sleep(*each);
                Ok(())
            }
        }
    }
}

/// What a run came to.
#[derive(Debug, Default, PartialEq)]
struct Ended {
    trials: Vec<TrialRecord>,
    cut_short: Option<String>,
    /// Why no trial was begun, or the run could not be kept.
    failed: Option<String>,
    took_ns: u64,
}

/// Runs `scenario` and holds what became of it against the rules.
fn run(scenario: &Scenario) -> Ended {
    let stop = Arc::new(AtomicBool::new(false));
    let folder = scratch();
    let Scenario {
        request,
        hosts,
        interrupt_ns,
        disk,
        admission,
        is_told_truly,
    } = scenario;
    let time = Time::new(*interrupt_ns, Arc::clone(&stop));
    let specs = hosts.specs(&time);
    let admit = AdmitRequest {
        run: request.run.clone(),
        label: "faults".to_owned(),
        admission: *admission,
        expected: Some(request.plan.estimate),
        evict: false,
    };
    let clock = Clock::Simulated(Arc::clone(&time));
    let inventories = Inventories::Underway;
    let gathered = Fleet::gather_by(clock, specs, &admit, inventories, &stop, &mut |_, _| ());
    let mut ended = Ended::default();
    match gathered {
        Err(error) => ended.failed = Some(linerate_model::reason::with_causes(&error)),
        Ok(mut fleet) => {
            let directory = folder.path().join("bundle");
            let document = request.document(&fleet);
            let mut recorder = if disk.is_kept {
                Recorder::bundle(&directory, &document).expect("an empty place")
            } else {
                Recorder::memory(&document)
            };
            if let Some(trouble) = disk.trouble {
                let disk = Disk::new(trouble, &time);
                recorder = Recorder::Afflicted(Box::new(recorder), disk);
            }
            let audience = Audience {
                watch: &mut |_| (),
                judge: None,
                prove: None,
            };
            let done = execute(request, &mut fleet, &mut recorder, &stop, audience);
            let kept = finish(recorder, &directory, done, disk, &mut ended);
            if let Some(recording) = kept {
                ended.trials.clone_from(&recording.trials);
                if *is_told_truly {
                    counts_what_was_sent(&recording);
                }
            }
        }
    }
    ended.took_ns = time.now_ns();
    hosts.nothing_is_left(&time);
    says_why(&ended);
    let left = std::fs::read_dir(folder.path()).expect("it is there");
    let left: Vec<_> = left.map(|one| one.expect("a name").file_name()).collect();
    assert!(left.iter().all(|name| name == "bundle"), "{left:?}");
    ended
}

fn check(seed: u64) -> Ended {
    run(&scenario(seed))
}

/// Memory, where there is a file system of it: bundles are forced to the disk.
fn scratch() -> tempfile::TempDir {
    let memory = tempfile::tempdir_in("/dev/shm");
    memory.or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// Closes the recorder as the program does, and returns what a reader finds.
fn finish(
    recorder: Recorder,
    directory: &std::path::Path,
    done: Result<RunDocument, RunError>,
    disk: &Storage,
    ended: &mut Ended,
) -> Option<Recording> {
    let kept = match done {
        Ok(document) => {
            ended.cut_short.clone_from(&document.cut_short);
            recorder.finish(&document).expect("the disk has room now")
        }
        Err(error) => {
            assert!(matches!(disk.trouble, Some(Trouble::Full(_))), "{error}");
            ended.failed = Some(linerate_model::reason::with_causes(&error));
            drop(recorder);
            None
        }
    };
    if kept.is_some() || !directory.exists() {
        return kept;
    }
    let read = linerate_store::read(directory).expect("the bundle opens");
    if ended.failed.is_none() {
        assert!(read.damage.is_empty(), "{:?}", read.damage);
        assert!(!directory.join("partial").exists());
    }
    Some(read)
}

/// Every trial has a verdict, and every failure says who waited for what.
fn says_why(ended: &Ended) {
    let reasons = ended
        .trials
        .iter()
        .filter_map(|trial| trial.validity.reason())
        .map(ToString::to_string);
    let failures = ended.failed.iter().chain(&ended.cut_short).cloned();
    for words in reasons.chain(failures) {
        // "timeout: global" names nobody; the name of a counter in an answer that is no JSON may have it.
        assert!(!words.is_empty() && !words.contains("timeout:"), "{words}");
    }
    let any = !ended.trials.is_empty() || ended.failed.is_some() || ended.cut_short.is_some();
    assert!(any, "{ended:?}");
}

/// In valid trials each flow moved what a flow of these hosts moves, between readings as they are.
fn counts_what_was_sent(recording: &Recording) {
    for trial in recording.trials.iter().filter(|trial| trial.is_valid()) {
        let mut any = false;
        let samples = recording.samples.trial(trial.trial);
        for (host, subject) in samples.subjects() {
            let Subject::Flow(..) = subject else { continue };
            let all = samples.readings(host, subject);
            let all = all.expect("it was listed");
            let of = |metric| {
                let own = all.iter().filter(move |(other, _)| *other == metric);
                own.map(|(_, reading)| *reading).collect::<Vec<_>>()
            };
            for series in [of(Metric::AppBytesSent), of(Metric::AppBytesReceived)] {
                let Some((first, last)) = edges(&series, 0, trial.window_ns as i64) else {
                    continue;
                };
                assert!(series.is_sorted_by(|a, b| a.0 < b.0), "each reading once");
                let took_ms = (last.0 - first.0) as f64 / 1e6;
                let moved = (last.1 - first.1) as f64;
                let wire = took_ms * BYTES_PER_MS as f64;
                assert!((moved - wire).abs() <= wire * 0.002 + BYTES_PER_MS as f64);
                any = true;
            }
        }
        assert!(any, "a trial without a reading is not valid: {trial:?}");
        assert!(trial.window_ns > 0);
    }
}

/// Returns the seeds that fail, with what they fail for.
fn failing(seeds: impl Iterator<Item = u64>) -> Vec<(u64, String)> {
    let words = |panic: Box<dyn std::any::Any + Send>| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default()
    };
    let outcome = |seed| {
        let ended = catch_unwind(AssertUnwindSafe(|| check(seed)));
        Some((seed, words(ended.err()?)))
    };
    seeds.filter_map(outcome).take(20).collect()
}

#[test]
fn runs_end_with_a_verdict_and_leave_nothing_whatever_happens() {
    let asked = std::env::var("FAULT_SEEDS").ok();
    let number = |text: &str| text.parse::<u64>().expect("a number of seeds, or FROM..TO");
    let seeds = match asked
        .as_deref()
        .map(|asked| (asked, asked.split_once("..")))
    {
        None => 0..SEEDS,
        Some((_, Some((from, to)))) => number(from)..number(to),
        Some((count, None)) => 0..number(count),
    };
    let failing = failing(MENDED.iter().copied().chain(seeds));
    assert!(failing.is_empty(), "seeds and why: {failing:#?}");
}

#[test]
fn a_seed_is_one_run() {
    for seed in 0..40 {
        assert_eq!(check(seed), check(seed), "seed {seed}");
    }
}

/// What the seeds are made of: without this, faults that never bite would go unnoticed.
#[test]
fn faults_bite_and_runs_survive_them() {
    let ended: Vec<Ended> = (0..300).map(check).collect();
    let trials = || ended.iter().flat_map(|ended| &ended.trials);
    let reasons: BTreeSet<String> = trials()
        .filter_map(|trial| trial.validity.reason())
        .map(|why| why.to_string())
        .collect();
    let flags: BTreeSet<String> = trials()
        .flat_map(|trial| &trial.flags)
        .map(|flag| flag.to_string())
        .collect();
    let failed: BTreeSet<&String> = ended.iter().filter_map(|end| end.failed.as_ref()).collect();
    let valid = trials().filter(|trial| trial.validity == Validity::Valid);
    assert!(valid.count() * 3 > trials().count(), "most are measured");
    let told = |of: &BTreeSet<String>, words: &str| {
        assert!(of.iter().any(|one| one.contains(words)), "{words}: {of:#?}");
    };
    told(&reasons, "this host waited");
    told(&reasons, "refused");
    told(&reasons, "interrupted");
    told(&flags, "did not answer for");
    told(&flags, "of the window of");
    told(&flags, "interrupted");
    assert!(
        failed.iter().any(|why| why.contains("no storage space")),
        "{failed:#?}"
    );
}

#[test]
fn answers_that_are_late_or_lost_in_the_middle_cost_nothing() {
    let scenario = scenario::quiet(1, Duration::from_secs(10));
    // From 3 to 9 s no answer of the server arrives, for 6 s after that each takes 4 s.
    let scenario = scenario.with_silence(3_000_000_000..9_000_000_000, 4_000_000_000);
    let ended = run(&scenario);
    let trial = &ended.trials[0];
    assert_eq!(trial.validity, Validity::Valid, "{ended:?}");
    assert_eq!(trial.window_ns, 10_000_000_000);
    assert_eq!(ended.cut_short, None);
    let flags: Vec<String> = trial.flags.iter().map(ToString::to_string).collect();
    assert!(
        flags.iter().any(|flag| flag.contains("did not answer for")),
        "{flags:?}"
    );
}

#[test]
fn a_host_that_dies_in_the_middle_costs_what_was_not_measured() {
    let scenario = scenario::quiet(1, Duration::from_secs(10));
    let scenario = scenario.with_fault(0, 5_000_000_000..u64::MAX, Affliction::Dead);
    let ended = run(&scenario);
    let trial = &ended.trials[0];
    assert_eq!(trial.validity, Validity::Valid, "{ended:?}");
    let window = Nanos(trial.window_ns);
    assert!((3.0..5.0).contains(&window.as_s()), "{window}");
    let why = ended.cut_short.expect("it was");
    assert!(
        why.contains("of the window of 10 s") && why.contains("refused"),
        "{why}"
    );
}

/// That a client was late as well is not why it ended.
#[test]
fn what_ended_a_trial_comes_before_what_else_is_wrong_with_it() {
    let scenario = scenario::quiet(1, Duration::from_secs(10));
    let scenario = scenario.with_fault(0, 3_000_000_000..u64::MAX, Affliction::EndsTrial);
    let scenario = scenario.with_fault(1, 0..u64::MAX, Affliction::ReadsLate);
    let ended = run(&scenario);
    let why = ended.trials[0].validity.reason().map(ToString::to_string);
    assert!(why.is_some_and(|why| why.contains(BEYOND)), "{ended:?}");
    let partial = ended.cut_short.expect("it was");
    assert!(partial.contains(BEYOND), "{partial}");
}

/// Half of 10 s at 1 MB/s is more than the buffers of these hosts hold.
#[test]
fn what_was_sent_and_not_read_is_no_result() {
    let scenario = scenario::quiet(1, Duration::from_secs(10));
    let scenario = scenario.with_fault(0, 0..u64::MAX, Affliction::CountsLess);
    let ended = run(&scenario);
    let why = ended.trials[0].validity.reason();
    let Some(Reason::Unread(unread)) = why else {
        panic!("{ended:?}");
    };
    assert_eq!((unread.streams, unread.of), (1, 1));
    assert!(unread.bytes.0 >= 5_000_000, "{unread:?}");
}

#[test]
fn what_one_end_measured_is_kept_where_nothing_comes_of_the_other() {
    let scenario = scenario::quiet(1, Duration::from_secs(10));
    let scenario = scenario.with_silence(400_000_000..100_000_000_000, 0);
    let ended = run(&scenario);
    let trial = &ended.trials[0];
    assert_eq!(trial.validity, Validity::Valid, "{ended:?}");
    assert_eq!(trial.window_ns, 10_000_000_000);
    let why = ended.cut_short.expect("it was");
    assert!(
        why.contains("this host waited 15 s for the answer"),
        "{why}"
    );
}

/// The connection of a trial that did not come about says nothing of the next.
#[test]
fn a_trial_whose_flow_could_not_be_connected_is_repeated() {
    let scenario = scenario::quiet(2, Duration::from_secs(1));
    let scenario = scenario.with_fault(1, 0..1_000_000_000, Affliction::SynsLost);
    let ended = run(&scenario);
    let valid: Vec<bool> = ended.trials.iter().map(TrialRecord::is_valid).collect();
    assert_eq!(valid, [false, true, true], "{ended:?}");
    let why = ended.trials[0].validity.reason().map(ToString::to_string);
    assert!(why.is_some_and(|why| why.contains("no answer within")));
}

/// A thousand hosts, or `FAULT_HOSTS`, some of which die, stop or are slow in the middle: their pairs have a reason, and no
/// other.
#[test]
fn hosts_of_a_fleet_that_are_lost_cost_their_own_pairs() {
    const ROUNDS: u32 = 5;
    let asked = std::env::var("FAULT_HOSTS").ok();
    let asked = asked.map(|asked| asked.parse().expect("a number of hosts"));
    let hosts: usize = asked.unwrap_or(1000);
    let mut random = Pcg64::seed_from_u64(37);
    let mut scenario = scenario::fleet(hosts, ROUNDS);
    let afflictions = [
        Affliction::Dead,
        Affliction::RequestsLost,
        Affliction::Stopped,
        Affliction::SynsLost,
        Affliction::Slow {
            there_ns: 50_000_000,
            back_ns: 20_000_000,
        },
    ];
    let mut afflicted = BTreeSet::new();
    for at in 0..20 {
        let host = random.random_range(0..hosts);
        afflicted.insert(host);
        // Hosts are asked for one after the other, 2.2 ms each, and a run needs all of them.
        let asked_ns = (hosts as u64).saturating_sub(1000) * 2_500_000;
        let from_ns = asked_ns + random.random_range(1_000_000_000..4_000_000_000);
        let what = afflictions[at % afflictions.len()];
        scenario = scenario.with_fault(host, from_ns..LIMIT.as_nanos() as u64, what);
    }
    let ended = run(&scenario);
    assert!(
        ended.failed.is_none() && ended.cut_short.is_none(),
        "{ended:?}"
    );
    let plan = &scenario.request.plan;
    let is_afflicted = |trial: &TrialRecord| {
        let between = &plan.trial(trial.trial).expect("it was planned").hosts;
        let mut names = afflicted.iter().map(|at| scenario::name_of(*at));
        names.any(|name| between.iter().any(|host| *host.0 == *name))
    };
    let (of_afflicted, others): (Vec<_>, Vec<_>) =
        ended.trials.iter().partition(|it| is_afflicted(it));
    let valid = |trials: &[&TrialRecord]| trials.iter().filter(|trial| trial.is_valid()).count();
    assert_eq!(
        valid(&others),
        others.len(),
        "those of no afflicted host are undisturbed"
    );
    assert!(
        others.len() > ROUNDS as usize * (hosts - 3 * afflicted.len()),
        "and none is left out"
    );
    assert!(
        valid(&of_afflicted) < of_afflicted.len(),
        "the others have a reason"
    );
}

/// A clock that is set by 200 ms in the middle of a trial makes those of its host longer or shorter than they seem.
#[test]
fn a_clock_that_is_set_in_the_middle_costs_the_trials_of_its_host() {
    for by_ns in [200_000_000, -200_000_000] {
        // Rounds of 1.2 s begin at about 0, 1.3 and 2.6 s; that is in the window of the second.
        let scenario = scenario::fleet(20, 3).with_jump(7, (2_000_000_000, by_ns));
        let ended = run(&scenario);
        let plan = &scenario.request.plan;
        let name = scenario::name_of(7);
        let of_host = |trial: &&TrialRecord| {
            let hosts = &plan.trial(trial.trial).expect("it was planned").hosts;
            hosts.iter().any(|host| *host.0 == *name)
        };
        let (own, others): (Vec<_>, Vec<_>) = ended.trials.iter().partition(of_host);
        assert!(others.iter().all(|trial| trial.is_valid()), "{others:?}");
        let spoilt = own.iter().filter_map(|trial| match &trial.validity {
            Validity::Invalid(Reason::ClockSet { host, by }) => Some((&*host.0, by.0)),
            _ => None,
        });
        // It sends in one and receives in another.
        let spoilt: Vec<_> = spoilt.collect();
        assert_eq!(spoilt.len(), 2, "{own:?}");
        for (host, by) in spoilt {
            assert!(
                host == name && by.abs_diff(200_000_000) < 5_000_000,
                "{by} ns"
            );
        }
        let valid = own.iter().filter(|trial| trial.is_valid()).count();
        assert_eq!(valid, own.len() - 2, "those before and after it count");
    }
}

/// Whoever measures a path that is dead, on hosts that answer, is told so: the rest would fail alike.
#[test]
fn a_run_whose_path_is_dead_ends_and_says_so() {
    let scenario = scenario::quiet(100, Duration::from_secs(1));
    // The third trial is under way, and hears of it at its end.
    let scenario = scenario.with_fault(1, 3_000_000_000..600_000_000_000, Affliction::SynsLost);
    let ended = run(&scenario);
    let valid = ended.trials.iter().filter(|trial| trial.is_valid()).count();
    assert_eq!((valid, ended.trials.len()), (3, 6), "{ended:?}");
    assert!(
        ended
            .cut_short
            .is_some_and(|why| why.contains("no answer within"))
    );
}

/// Its repeat is all that is left to do, and no host had to be there for it at once.
#[test]
fn a_host_that_dies_in_the_last_trial_is_waited_for() {
    let scenario = scenario::quiet(2, Duration::from_secs(1));
    // In the second trial, before its window.
    let scenario = scenario.with_fault(0, 1_300_000_000..4_300_000_000, Affliction::Dead);
    let ended = run(&scenario);
    let valid: Vec<bool> = ended.trials.iter().map(TrialRecord::is_valid).collect();
    assert_eq!(valid, [true, false, true], "{ended:?}");
    assert_eq!(ended.cut_short, None);
}

#[test]
fn a_run_that_waits_for_one_host_keeps_those_it_has() {
    let scenario = scenario::quiet(1, Duration::from_secs(1));
    // Half as long again as the client keeps a lease of which it hears nothing.
    let scenario = scenario.with_fault(0, 0..30_000_000_000, Affliction::Taken);
    let ended = run(&scenario);
    assert_eq!(ended.trials[0].validity, Validity::Valid, "{ended:?}");
    assert!(ended.took_ns > 30_000_000_000);
    assert_eq!(scenario.hosts.requests(), [1, 1]);
}

/// Two runs whose hosts are the same and whose server is not would wait for each other for ever.
#[test]
fn hosts_are_asked_in_an_order_that_all_runs_have() {
    let mut scenario = scenario::quiet(1, Duration::from_secs(1));
    scenario.interrupt_ns = 10_000_000_000;
    // Its address comes first.
    let scenario = scenario.with_fault(1, 0..20_000_000_000, Affliction::Taken);
    let why = run(&scenario).failed.expect("it was interrupted");
    assert!(why.contains("interrupted while waiting for"), "{why}");
    assert_eq!(scenario.hosts.requests(), [0, 1]);
}

#[test]
fn a_run_that_lost_a_host_to_another_waits_for_it_again() {
    let scenario = scenario::quiet(2, Duration::from_secs(1));
    let taken = 3_000_000_000..30_000_000_000;
    let scenario = scenario.with_fault(1, 1_300_000_000..3_000_000_000, Affliction::Dead);
    let scenario = scenario.with_fault(1, taken, Affliction::Taken);
    let ended = run(&scenario);
    let valid: Vec<bool> = ended.trials.iter().map(TrialRecord::is_valid).collect();
    assert_eq!(valid, [true, false, true], "{ended:?}");
    assert!(ended.took_ns > 30_000_000_000);
    assert_eq!(scenario.hosts.requests(), [1, 2]);
}

#[test]
fn a_run_that_may_not_wait_for_a_host_that_another_has_keeps_its_other_trials() {
    let taken = |during_ns: Range<u64>| {
        let mut scenario = scenario::quiet(5, Duration::from_secs(1));
        scenario.admission = Admission::Exclusive;
        let scenario = scenario.with_fault(1, 1_300_000_000..3_000_000_000, Affliction::Dead);
        let ended = run(&scenario.with_fault(1, during_ns, Affliction::Taken));
        let valid: Vec<bool> = ended.trials.iter().map(TrialRecord::is_valid).collect();
        (valid, ended.cut_short)
    };
    let (valid, cut_short) = taken(3_000_000_000..8_000_000_000);
    let lost = valid.iter().filter(|valid| !**valid).count();
    assert_eq!((lost, valid.len(), cut_short), (1, 6, None), "{valid:?}");
    let (valid, cut_short) = taken(3_000_000_000..40_000_000_000);
    assert!(cut_short.is_some_and(|why| why.contains("did not come back")));
    assert_eq!(valid, [true, false]);
}

/// Agents take a run for gone of which they hear nothing for 20 s.
#[test]
fn hosts_hear_of_a_run_that_has_nothing_to_ask() {
    let mut scenario = scenario::quiet(1, Duration::from_secs(60));
    scenario.request.look_interval = Nanos::from_s(30);
    scenario.request.plan.trials[0].timing.settle = Nanos::from_s(40);
    let ended = run(&scenario);
    assert_eq!(ended.trials[0].validity, Validity::Valid, "{ended:?}");
    assert_eq!(scenario.hosts.requests(), [1, 1]);
}

#[test]
fn a_place_in_the_queue_outlasts_an_answer_that_is_lost() {
    let scenario = scenario::quiet(1, Duration::from_secs(1));
    let scenario = scenario.with_fault(0, 0..30_000_000_000, Affliction::Taken);
    let scenario = scenario.with_fault(0, 5_000_000_000..6_000_000_000, Affliction::AnswersLost);
    let ended = run(&scenario);
    assert_eq!(ended.failed, None);
    assert_eq!(ended.trials[0].validity, Validity::Valid, "{ended:?}");
}

fn run_id() -> RunId {
    RunId("20261123T000000Z-00000000".to_owned())
}
