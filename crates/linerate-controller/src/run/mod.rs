//! The trials of a plan, one after another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_model::experiment::Timing;
use linerate_model::plan::{LeftOut, Plan, Trial};
use linerate_model::reason::Reason;
use linerate_model::run::{
    BUNDLE_FORMAT, Event, FlowRecord, Recording, RunDocument, TrialRecord, Validity,
};
use linerate_model::samples::Samples;
use linerate_model::{HostName, Nanos, RunId, TrialId};
use linerate_store::{ReadError, WriteError};

use crate::fleet::Fleet;
use crate::record::Recorder;

mod agenda;
mod assign;
mod instants;
mod placement;
mod trial;
mod validity;
mod warm_up;

pub use agenda::Repeats;
pub use placement::Placing;
pub use warm_up::WarmUp;

use agenda::{Agenda, Fate, fit};

/// Trials in a row that a lost host may spoil before the run ends with what it has.
const LOSSES_MAX: u32 = 3;
/// How long a lost host may take to come back: an agent that is started again by hand or by its
/// supervisor, with time to spare.
const RETURN_WAIT: Duration = Duration::from_secs(10);
/// Time between two questions whether it is back.
const RETURN_LOOK: Duration = Duration::from_millis(200);

/// What to execute, and how.
pub struct RunRequest {
    /// The run.
    pub run: RunId,
    /// What was asked, as the command line or file name.
    pub asked: String,
    /// Whether this is a whole study.
    pub study: bool,
    /// The plan.
    pub plan: Plan,
    /// Time between samples.
    pub sample_interval: Nanos,
    /// Time between two looks at a running trial; short ones cost CPU on the hosts.
    pub look_interval: Nanos,
    /// CPUs to pin the server's workers to; not pinned when empty.
    pub server_cpus: Vec<u32>,
    /// CPUs to pin the clients' workers to.
    pub client_cpus: Vec<u32>,
    /// Whether those are all that is said of CPUs, or we choose.
    pub placing: Placing,
    /// Most worker threads of each host; absent = one for each of its CPUs.
    pub workers_max: Option<u32>,
    /// Start of the run, UTC, RFC 3339.
    pub started_utc: String,
    /// What the time before a window follows from.
    pub warm_up: WarmUp,
    /// Time that all trials may take together; absent where only the plan limits them.
    pub time: Option<Nanos>,
    /// How many trials that may not be averaged are repeated.
    pub repeats: Repeats,
    /// The first block after which it is asked what is open.
    pub first_look: u32,
}

/// What is made of the trials so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judgement {
    /// The experiments that another block may still decide; the others are measured no further.
    pub open: Vec<String>,
    /// Trials that should be done once more though they are valid.
    pub disturbed: Vec<Disturbed>,
}

/// A valid trial that should be done once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disturbed {
    /// The trial.
    pub trial: TrialId,
    /// What disturbed it, as a clause.
    pub why: String,
    /// Whether more traffic before the window would help.
    pub rises: bool,
}

/// Who is asked and told while a run goes on.
pub struct Audience<'a> {
    /// Is told what happens.
    pub watch: &'a mut dyn FnMut(Progress<'_>),
    /// Is asked what is open after each round from the first look on; without it, every trial of the
    /// plan is done and no further one.
    pub judge: Option<&'a mut dyn FnMut(&Recording) -> Judgement>,
}

/// What a run tells while it goes on.
pub enum Progress<'a> {
    /// A trial begins.
    Begins {
        /// The trial.
        trial: &'a Trial,
        /// Trials that are over.
        over: usize,
        /// Trials of the plan.
        of: usize,
        /// What the rest will take, from what trials took so far.
        left: Nanos,
    },
    /// A look at the running trial.
    Look {
        /// The trial.
        trial: &'a Trial,
        /// Time since the begin of the measured window; negative in the warm-up.
        at_ns: i64,
        /// New samples of each host since the last look, on the window's axis.
        samples: &'a [Samples],
    },
    /// A trial is over and about to be written down.
    Over {
        /// The trial.
        trial: &'a Trial,
        /// Whether it may be averaged.
        record: &'a TrialRecord,
        /// Its flows.
        flows: &'a [FlowRecord],
        /// All its samples.
        samples: &'a Samples,
    },
    /// Something to know.
    Note(&'a str),
}

/// Why a run could not be taken down. What was measured before is in the bundle.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The bundle could not be written.
    #[error("the run could not be taken down")]
    Write(#[from] WriteError),
    /// What was measured so far could not be read.
    #[error("the run so far could not be read")]
    Read(#[from] ReadError),
}

impl RunRequest {
    /// Returns the document of the run as it begins.
    pub fn document(&self, fleet: &Fleet) -> RunDocument {
        RunDocument {
            format: BUNDLE_FORMAT,
            run: self.run.clone(),
            asked: self.asked.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_utc: self.started_utc.clone(),
            ended_utc: None,
            study: self.study,
            cut_short: None,
            server_cpus: self.server_cpus.clone(),
            client_cpus: self.client_cpus.clone(),
            plan: self.plan.clone(),
            hosts: fleet.records(),
            left_out: left_out_of(fleet),
        }
    }
}

/// What the agents refuse to show, as parts of the run that are not measured.
fn left_out_of(fleet: &Fleet) -> Vec<LeftOut> {
    fleet
        .members()
        .iter()
        .filter_map(|member| {
            Some(LeftOut {
                chapter: None,
                what: format!("observation of host {}", member.record.name),
                why: member.observe_refused.clone()?,
            })
        })
        .collect()
}

/// Executes the plan and takes it down with `recorder`.
///
/// A trial that a host spoils is invalid and the run goes on once the host answers again. When it
/// does not come back within [`RETURN_WAIT`], after [`LOSSES_MAX`] losses in a row, or when `stop`
/// is raised, the run ends with what it has and says so in the document it returns. What was repeated,
/// taken up and left out on the way is in the plan of that document. The caller closes the recorder
/// with it.
pub fn execute(
    request: &RunRequest,
    fleet: &mut Fleet,
    recorder: &mut Recorder,
    stop: &AtomicBool,
    audience: Audience<'_>,
) -> Result<RunDocument, RunError> {
    let Audience { watch, mut judge } = audience;
    let mut document = request.document(fleet);
    let mut agenda = Agenda::new(&request.plan, request.repeats);
    let began_ns = fleet.clock.now_ns();
    let mut pace = Pace::default();
    let mut losses = 0;
    let mut captures_bytes = 0;
    let mut over = 0;
    loop {
        let left = request.time.map(|time| {
            let took_ns = fleet.clock.now_ns() - began_ns;
            Nanos(time.0.saturating_sub(took_ns))
        });
        let planned = document.plan.trials.len();
        let fits = |trials: &[Trial]| fit(trials, pace.beyond(), left);
        let Some(trial) = agenda.poll(&mut document.plan, fits) else {
            break;
        };
        if document.plan.trials.len() != planned {
            recorder.update(&document)?;
        }
        let (trial, trials) = (&trial, document.plan.trials.len());
        watch(Progress::Begins {
            trial,
            over,
            of: trials + agenda.waiting(),
            left: pace.left(std::iter::once(trial).chain(agenda.due())),
        });
        let trial_began_ns = fleet.clock.now_ns();
        let context = trial::RunContext {
            request,
            stop,
            began_ns,
            captures_bytes,
        };
        let trial::Concluded {
            evidence,
            is_lasting,
            cut_short,
        } = trial::drive(context, fleet, trial, watch);
        pace.note(&trial.timing, fleet.clock.now_ns() - trial_began_ns);
        over += 1;
        let lost = evidence
            .record
            .validity
            .reason()
            .and_then(Reason::lost_host);
        let lost = lost.cloned();
        if let Validity::Invalid(why) = &evidence.record.validity {
            let text = format!("invalid: {why}");
            recorder.event(&event(fleet, began_ns, trial, lost.as_ref(), text))?;
        }
        watch(Progress::Over {
            trial,
            record: &evidence.record,
            flows: &evidence.flows,
            samples: &evidence.samples,
        });
        let files = evidence.captures.iter().map(|(_, file)| file.len() as u64);
        captures_bytes += files.sum::<u64>();
        let record = evidence.record.clone();
        recorder.append(evidence)?;
        let words = record.validity.reason().map(Reason::to_string);
        let fate = match &words {
            None => Fate::Valid,
            Some(_) if is_lasting => Fate::Lasting,
            Some(why) => Fate::Passing(why),
        };
        agenda.handle_over(&document.plan, trial, fate);
        if cut_short.is_some() {
            document.cut_short = cut_short;
            break;
        }
        losses = if lost.is_some() { losses + 1 } else { 0 };
        if stop.load(Ordering::Relaxed) {
            document.cut_short = interruption(trial, over, trials, &record);
            break;
        }
        if let Some(host) = lost.filter(|_| over < trials) {
            let after = format!("after {over} of {trials} trials");
            if losses >= LOSSES_MAX {
                document.cut_short = Some(format!(
                    "lost host {host} for {LOSSES_MAX} trials in a row, {after}"
                ));
                break;
            }
            if !await_return(fleet, &host, stop, watch) {
                document.cut_short = Some(match stop.load(Ordering::Relaxed) {
                    true => format!("interrupted while host {host} was lost, {after}"),
                    false => format!(
                        "lost host {host}, which did not come back within {} s, {after}",
                        RETURN_WAIT.as_secs()
                    ),
                });
                break;
            }
        }
        if let Some(judge) = &mut judge
            && trial.replicate >= request.first_look
            && agenda.ends_round(&document.plan, trial)
        {
            document.hosts = fleet.records();
            let Judgement { open, disturbed } = judge(&*recorder.so_far(&document)?);
            agenda.handle_disturbed(&document.plan, disturbed);
            agenda.handle_open(&mut document.plan, open);
            recorder.update(&document)?;
        }
    }
    // What hosts have may have been asked while the first trial began.
    document.hosts = fleet.records();
    Ok(document)
}

/// Returns what an interruption of `trial`, by which `over` of so many were over, cut short, if it did.
fn interruption(trial: &Trial, over: usize, trials: usize, record: &TrialRecord) -> Option<String> {
    let whole = record.validity == Validity::Valid && record.window_ns == trial.timing.measure.0;
    match trials {
        1 if whole => None,
        1 if record.validity == Validity::Valid => Some(format!(
            "interrupted {} after the begin of the window",
            Nanos(record.window_ns)
        )),
        _ => {
            let over = over - usize::from(!whole);
            (over < trials).then(|| format!("interrupted after {over} of {trials} trials"))
        }
    }
}

/// Waits until every host answers again; returns whether they do.
fn await_return(
    fleet: &mut Fleet,
    host: &HostName,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Progress<'_>),
) -> bool {
    let deadline = Instant::now() + RETURN_WAIT;
    let mut told = false;
    while let Err(why) = fleet.refresh() {
        // A host that answers is back, whatever it says; the next trial says what.
        if why.lost_host().is_none() {
            return true;
        }
        if stop.load(Ordering::Relaxed) || Instant::now() >= deadline {
            return false;
        }
        if !told {
            let wait = RETURN_WAIT.as_secs();
            let note = format!("host {host} is lost; waiting up to {wait} s for it to come back");
            watch(Progress::Note(&note));
            told = true;
        }
        std::thread::sleep(RETURN_LOOK);
    }
    true
}

fn event(
    fleet: &Fleet,
    began_ns: u64,
    trial: &Trial,
    host: Option<&HostName>,
    text: String,
) -> Event {
    Event {
        at_ns: fleet.clock.now_ns() - began_ns,
        trial: Some(trial.id),
        host: host.cloned(),
        text,
    }
}

/// How much longer trials take than their phases, learnt while they run.
#[derive(Debug, Default)]
struct Pace {
    trials: u32,
    beyond_ns: u64,
}

/// Time beyond its phases that a trial is expected to take before the first has shown it.
const BEYOND_NS_FIRST: u64 = 150_000_000;

impl Pace {
    fn note(&mut self, timing: &Timing, took_ns: u64) {
        self.trials += 1;
        self.beyond_ns += took_ns.saturating_sub(timing.total().0);
    }

    /// Returns what a trial takes beyond its phases.
    fn beyond(&self) -> Nanos {
        Nanos(match self.trials {
            0 => BEYOND_NS_FIRST,
            some => self.beyond_ns / u64::from(some),
        })
    }

    fn left<'a>(&self, trials: impl Iterator<Item = &'a Trial>) -> Nanos {
        let beyond = self.beyond();
        Nanos(trials.map(|trial| trial.timing.total().0 + beyond.0).sum())
    }
}
