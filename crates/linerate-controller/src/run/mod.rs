//! The trials of a plan, one after another.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_model::experiment::{Experiment, Timing};
use linerate_model::fleet::InStep;
use linerate_model::plan::{LeftOut, Plan, Spoilt, Stage, Trial};
use linerate_model::reason::{HostFailure, Reason};
use linerate_model::run::{
    BUNDLE_FORMAT, BUNDLE_FORMAT_OF_FLEETS, BUNDLE_FORMAT_OF_GROUPS, Progress, Recording,
    RunDocument, TrialEvidence, TrialRecord, Validity,
};
use linerate_model::samples::Samples;
use linerate_model::{HostName, Nanos, RunId};
use linerate_store::WriteError;

use crate::event::RunEvent;
use crate::fleet::Fleet;
use crate::record::Recorder;

mod agenda;
mod assign;
mod instants;
mod placement;
mod trial;
mod validity;
mod warm_up;

pub use agenda::{More, Repeats};
pub use placement::Placing;
pub use warm_up::WarmUp;

use agenda::{Agenda, Fate, fit};
use trial::RunContext;

/// Trials in a row of one experiment without flows before it is given up, and experiments in a row given up
/// before the run ends: what is blocked for one kind of traffic is not for another, and a dead path is for all.
const SILENT_MAX: u32 = 3;
const GIVEN_UP_MAX: u32 = 2;
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
    /// Time that all trials may take together, planned blocks after the first a tenth more; absent where only the
    /// plan limits them.
    pub time: Option<Nanos>,
    /// How many trials that may not be averaged are repeated.
    pub repeats: Repeats,
    /// The first block after which it is asked what is open.
    pub first_look: u32,
    /// Time from the begin of a trial to that of the next, where trials are spread.
    pub every: Option<Nanos>,
    /// How the hosts of a fleet begin at the same moment.
    pub in_step: InStep,
}

/// Longest time without a word to the hosts while a trial is not due: a quarter of what their leases last.
const SPREAD_LOOK_NS: u64 = 5_000_000_000;
/// Time between two looks whether the run was interrupted meanwhile.
const SPREAD_SLEEP: Duration = Duration::from_millis(50);

/// What is made of the trials so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Judgement {
    /// The experiments that another block may still decide; the others are measured no further.
    pub open: Vec<String>,
    /// Trials that should be done once more though they ended well.
    pub spoilt: Vec<Spoilt>,
    /// What the next plan has beyond this one, with the trials of each stage.
    pub stages: Vec<(Stage, Vec<Trial>)>,
}

/// Who is asked and told while a run goes on.
pub struct Audience<'a> {
    /// Is told what happens.
    pub watch: &'a mut dyn FnMut(&RunEvent<'_>),
    /// Is asked what is open after each round, and heard from the first look on; without it, every trial of the
    /// plan is done and no further one. Of each trial it is shown the samples once.
    pub judge: Option<&'a mut dyn FnMut(&Recording) -> Judgement>,
    /// Is asked what else is measured once nothing is left to do, with the time that is left where any was given; of each trial
    /// it is shown the samples that nobody was shown before.
    pub prove: Option<&'a mut Prove<'a>>,
}

/// Says what else is measured, from what was and in the time that is left.
pub type Prove<'a> = dyn FnMut(&Recording, Option<Nanos>) -> Option<More> + 'a;

/// Why a run could not be recorded. What was measured before is in the bundle.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The bundle could not be written.
    #[error("the run could not be recorded")]
    Write(#[from] WriteError),
}

impl RunRequest {
    /// Returns the document of the run as it begins.
    pub fn document(&self, fleet: &Fleet) -> RunDocument {
        RunDocument {
            format: format_of(&self.plan),
            run: self.run.clone(),
            asked: self.asked.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_utc: self.started_utc.clone(),
            ended_utc: None,
            study: self.study,
            cut_short: None,
            server_cpus: self.server_cpus.clone(),
            client_cpus: self.client_cpus.clone(),
            multicast: self.in_step.multicast.map(|to| to.group),
            plan: self.plan.clone(),
            hosts: fleet.records(),
            left_out: left_out_of(fleet),
        }
    }
}

/// Returns the number of the format that the bundle of a run with this plan has.
fn format_of(plan: &Plan) -> u32 {
    let has = |what: fn(&Trial) -> bool| plan.trials.iter().any(what);
    if has(|trial| !trial.hosts.is_empty()) {
        BUNDLE_FORMAT_OF_FLEETS
    } else if has(|trial| !trial.beside.is_empty()) {
        BUNDLE_FORMAT_OF_GROUPS
    } else {
        BUNDLE_FORMAT
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

/// Executes the plan, keeps what happens with `recorder`, and tells it.
///
/// A trial that a host spoils is invalid and the run goes on once the host answers again. When it
/// does not come back within [`RETURN_WAIT`], after [`LOSSES_MAX`] losses in a row, where hosts answer and the
/// path between them does not ([`SILENT_MAX`]), or when `stop` is raised, the run ends with what it has and says so in the document it returns. What was repeated,
/// taken up and left out on the way is in the plan of that document. The caller closes the recorder
/// with it.
pub fn execute(
    request: &RunRequest,
    fleet: &mut Fleet,
    recorder: &mut Recorder,
    stop: &AtomicBool,
    audience: Audience<'_>,
) -> Result<RunDocument, RunError> {
    let mut run = Execution {
        document: request.document(fleet),
        agenda: Agenda::new(&request.plan, request.repeats),
        context: RunContext {
            request,
            stop,
            began_ns: fleet.clock.now_ns(),
            captures_bytes: 0,
        },
        pace: Pace::default(),
        over: 0,
        trial_began_ns: None,
        losses: 0,
        losses_of: BTreeMap::new(),
        so_far: (audience.judge.is_some() || audience.prove.is_some())
            .then(|| Recording::empty(request.document(fleet))),
        silence: Silence::default(),
        fleet,
        recorder,
        audience,
    };
    let document = run.document.clone();
    run.tell(RunEvent::RunBegan(&document))?;
    'run: while let Some(trial) = run.next()? {
        if !run.await_turn() {
            run.document.cut_short = Some("interrupted".to_owned());
            break;
        }
        let trials = run.agenda.with_its_step(trial);
        let done = run.perform(&trials)?;
        for (trial, done) in trials.iter().zip(done) {
            if let ControlFlow::Break(cut_short) = run.whether_to_go_on(trial, done)? {
                run.document.cut_short = cut_short;
                break 'run;
            }
        }
        if let Some(trial) = trials.last() {
            run.ask_judge(trial)?;
        }
    }
    // What hosts have may have been asked while the first trial began.
    run.document.hosts = run.fleet.records();
    let document = run.document.clone();
    run.tell(RunEvent::RunEnded(&document))?;
    Ok(document)
}

/// Samples that are kept for whoever judges the run: a round of a study has as many, and one of a fleet's mesh may have any
/// number.
const SAMPLES_UNSHOWN_MAX: usize = 4 << 20;

/// What the blocks of the plan may take beyond the time that was given: one part in so many. The plan fitted by an
/// estimate, and a block that is done for a few seconds more is worth them.
const SLACK_PART: u64 = 10;

/// A run under way.
struct Execution<'a, 'w> {
    context: RunContext<'a>,
    fleet: &'a mut Fleet,
    recorder: &'a mut Recorder,
    audience: Audience<'w>,
    document: RunDocument,
    agenda: Agenda,
    pace: Pace,
    /// Trials that are over, and when the last began.
    over: usize,
    trial_began_ns: Option<u64>,
    /// Trials in a row that a lost host spoiled.
    losses: u32,
    /// The same of each host of a fleet.
    losses_of: BTreeMap<HostName, u32>,
    /// What was measured so far, where somebody judges it.
    so_far: Option<Recording>,
    silence: Silence,
}

/// Trials whose flows could not be made, though their hosts answer.
#[derive(Debug, Default)]
struct Silence {
    /// How many of each experiment in a row.
    trials: BTreeMap<String, u32>,
    /// Experiments that were given up since flows were last made.
    given_up: u32,
}

impl Silence {
    /// Takes up that a trial of `experiment` was without flows, or was not; returns whether that experiment is to be
    /// given up.
    fn note(&mut self, experiment: &str, is_unconnected: bool) -> bool {
        if !is_unconnected {
            self.trials.remove(experiment);
            self.given_up = 0;
            return false;
        }
        let trials = self.trials.entry(experiment.to_owned()).or_default();
        *trials += 1;
        let is_too_often = *trials == SILENT_MAX;
        self.given_up += u32::from(is_too_often);
        is_too_often
    }
}

/// What became of a trial.
struct Done {
    record: TrialRecord,
    /// Why the run ends with it.
    cut_short: Option<String>,
}

impl Execution<'_, '_> {
    fn tell(&mut self, event: RunEvent<'_>) -> Result<(), WriteError> {
        (self.audience.watch)(&event);
        let at_ns = self.fleet.clock.now_ns() - self.context.began_ns;
        self.recorder.keep(at_ns, event)
    }

    /// Returns the trial that is due, if there is one and time for it.
    fn next(&mut self) -> Result<Option<Trial>, RunError> {
        let size = |plan: &Plan| (plan.trials.len(), plan.left_out.len());
        let planned = size(&self.document.plan);
        self.leave_out_late_blocks();
        let fits = self.fits(Nanos(0));
        let mut next = self.agenda.poll(&mut self.document.plan, &fits);
        if next.is_none()
            && let Some(more) = self.ask_for_more()
        {
            self.agenda.handle_more(&mut self.document.plan, more);
            next = self.agenda.poll(&mut self.document.plan, fits);
        }
        if size(&self.document.plan) != planned {
            self.tell_plan()?;
        }
        Ok(next)
    }

    /// Leaves out planned blocks for which there is no time.
    fn leave_out_late_blocks(&mut self) {
        let slack = self
            .context
            .request
            .time
            .map_or(0, |time| time.0 / SLACK_PART);
        let fits = self.fits(Nanos(slack));
        self.agenda.handle_time(&mut self.document.plan, fits);
    }

    /// Returns what says whether trials fit into the time that is left, and `slack` beyond it.
    fn fits(&self, slack: Nanos) -> impl Fn(&[Trial]) -> bool + use<> {
        let left = self.left(slack);
        let beyond = self.pace.beyond();
        move |trials| fit(trials, beyond, left)
    }

    /// Returns the time that is left, and `slack` beyond it, where any was given.
    fn left(&self, slack: Nanos) -> Option<Nanos> {
        let took_ns = self.fleet.clock.now_ns() - self.context.began_ns;
        let time = self.context.request.time?;
        Some(Nanos((time.0 + slack.0).saturating_sub(took_ns)))
    }

    fn tell_plan(&mut self) -> Result<(), WriteError> {
        let document = self.document.clone();
        self.tell(RunEvent::PlanChanged(&document))
    }

    /// Waits until the next trial may begin, and keeps the hosts meanwhile; returns whether it may.
    fn await_turn(&mut self) -> bool {
        let every = self.context.request.every;
        let Some((every, began_ns)) = every.zip(self.trial_began_ns) else {
            return true;
        };
        let due_ns = began_ns + every.0;
        let mut told_ns = self.fleet.clock.now_ns();
        loop {
            let now_ns = self.fleet.clock.now_ns();
            if self.context.stop.load(Ordering::Relaxed) {
                return false;
            }
            if now_ns >= due_ns {
                return true;
            }
            if now_ns >= told_ns + SPREAD_LOOK_NS {
                // A host that is lost by then is lost to the trial, which says so.
                let _ = self.refresh();
                told_ns = now_ns;
            }
            let left = Duration::from_nanos(due_ns - now_ns);
            self.fleet.clock.sleep(left.min(SPREAD_SLEEP));
        }
    }

    /// Does trials that go on at the same time, which most do alone.
    fn perform(&mut self, trials: &[Trial]) -> Result<Vec<Done>, RunError> {
        for trial in trials {
            let due = std::iter::once(trial).chain(self.agenda.due());
            let progress = Progress {
                over: self.over,
                of: self.document.plan.trials.len() + self.agenda.waiting(),
                left: Some(self.pace.left(due)),
            };
            self.tell(RunEvent::TrialBegan { trial, progress })?;
        }
        let began_ns = self.fleet.clock.now_ns();
        self.trial_began_ns = Some(began_ns);
        let spooling = trial::Spooling::new(self.recorder.directory());
        let watch = &mut *self.audience.watch;
        let concluded = trial::drive(self.context, self.fleet, trials, spooling, watch);
        let took_ns = self.fleet.clock.now_ns() - began_ns;
        if let Some(trial) = trials.first() {
            self.pace.note(&trial.timing, took_ns);
        }
        let with_trials = trials.iter().zip(concluded);
        with_trials
            .map(|(trial, concluded)| self.keep(trial, concluded))
            .collect()
    }

    /// Keeps what became of a trial.
    fn keep(&mut self, trial: &Trial, concluded: trial::Concluded) -> Result<Done, RunError> {
        let trial::Concluded {
            evidence,
            warm_up,
            is_lasting,
            cut_short,
            ..
        } = concluded;
        self.over += 1;
        self.context.captures_bytes += captured_bytes(&evidence);
        let record = evidence.record.clone();
        if let Some(so_far) = &mut self.so_far {
            so_far.trials.push(record.clone());
            so_far.flows.extend(evidence.flows.iter().cloned());
            so_far.samples.append(evidence.samples.clone());
        }
        let evidence = Box::new(evidence);
        self.tell(RunEvent::TrialEnded { trial, evidence })?;
        let fate = match record.validity.reason() {
            None => Fate::Valid,
            Some(_) if is_lasting => Fate::Lasting,
            Some(why) => Fate::Passing(why),
        };
        self.agenda.handle_warm_up(trial.id, warm_up);
        self.agenda.handle_over(&self.document.plan, trial, fate);
        Ok(Done { record, cut_short })
    }

    /// Returns whether the run goes on after `trial`, or what its end cuts short. A lost host is waited for
    /// where anything is left to do, be it a repeat of this trial.
    fn whether_to_go_on(
        &mut self,
        trial: &Trial,
        done: Done,
    ) -> Result<ControlFlow<Option<String>>, RunError> {
        let Done { record, cut_short } = done;
        let lost = record.validity.reason().and_then(Reason::lost_host);
        self.losses = if lost.is_some() { self.losses + 1 } else { 0 };
        let trials = self.document.plan.trials.len();
        if self.is_proof(trial) && !self.context.stop.load(Ordering::Relaxed) {
            // What was measured is whole without it.
            let is_gone = lost.is_some() || cut_short.is_some();
            return Ok(if is_gone {
                ControlFlow::Break(None)
            } else {
                ControlFlow::Continue(())
            });
        }
        if cut_short.is_some() {
            return Ok(ControlFlow::Break(cut_short));
        }
        if self.context.stop.load(Ordering::Relaxed) {
            let cut_short = interruption(trial, self.over, trials, &record);
            return Ok(ControlFlow::Break(cut_short));
        }
        let is_unconnected = record.validity.reason().and_then(Reason::host_failure)
            == Some(HostFailure::Unconnected);
        if self.silence.note(&trial.experiment, is_unconnected)
            && let Some(why) = record.validity.reason()
        {
            return self.give_up(&trial.experiment, why);
        }
        if lost.is_some() {
            self.leave_out_late_blocks();
        }
        // Of a fleet the others go on: whoever is lost too often has no part in the rest.
        if !trial.hosts.is_empty() {
            return self.go_on_without(trial, lost);
        }
        let is_needed = || {
            self.agenda
                .has_next(&self.document.plan, self.fits(Nanos(0)))
        };
        let Some(host) = lost.filter(|_| is_needed()) else {
            return Ok(ControlFlow::Continue(()));
        };
        if self.losses >= LOSSES_MAX {
            let why = format!("lost host {host} for {LOSSES_MAX} trials in a row");
            return Ok(ControlFlow::Break(Some(why)));
        }
        let is_back = self.await_return(host)?;
        let why = if self.context.stop.load(Ordering::Relaxed) {
            format!("interrupted while host {host} was lost")
        } else if is_back {
            return Ok(ControlFlow::Continue(()));
        } else {
            let wait = RETURN_WAIT.as_secs();
            format!("lost host {host}, which did not come back within {wait} s")
        };
        Ok(ControlFlow::Break(Some(why)))
    }

    /// Goes on with what does not need the host that was `lost`, once that has spoilt a few trials; ends the run where no two
    /// hosts are left that have something to do.
    fn go_on_without(
        &mut self,
        trial: &Trial,
        lost: Option<&HostName>,
    ) -> Result<ControlFlow<Option<String>>, RunError> {
        for host in &trial.hosts {
            if lost != Some(host) {
                self.losses_of.remove(host);
            }
        }
        let Some(host) = lost else {
            return Ok(ControlFlow::Continue(()));
        };
        let losses = self.losses_of.entry(host.clone()).or_default();
        *losses += 1;
        let is_too_often = *losses == LOSSES_MAX;
        // At its end a run has nothing to do without it.
        let fits = self.fits(Nanos(0));
        if !is_too_often || !self.agenda.has_next(&self.document.plan, fits) {
            return Ok(ControlFlow::Continue(()));
        }
        let why = format!("lost host {host} for {LOSSES_MAX} trials in a row");
        self.fleet.give_up(host);
        let left_out = LeftOut {
            chapter: None,
            what: format!("the rest of host {host}"),
            why: why.clone(),
        };
        let needs = |trial: &Trial| trial.hosts.contains(host);
        self.agenda
            .give_up(&mut self.document.plan, left_out, needs);
        self.tell_plan()?;
        let fits = self.fits(Nanos(0));
        Ok(if self.agenda.has_next(&self.document.plan, fits) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(Some(why))
        })
    }

    /// Gives up an experiment whose flows are not made, and with too many of them, or the last, the run.
    fn give_up(
        &mut self,
        experiment: &str,
        why: &Reason,
    ) -> Result<ControlFlow<Option<String>>, RunError> {
        let of_one = format!("no flow could be made in {SILENT_MAX} trials in a row: {why}");
        let known = self.document.plan.experiment(experiment);
        let left_out = LeftOut {
            chapter: known.and_then(|experiment| experiment.chapter),
            what: format!("{experiment}: the rest"),
            why: of_one.clone(),
        };
        let is_of = |trial: &Trial| trial.experiment == experiment;
        self.agenda
            .give_up(&mut self.document.plan, left_out, is_of);
        self.tell_plan()?;
        let fits = self.fits(Nanos(0));
        let is_last = !self.agenda.has_next(&self.document.plan, fits);
        Ok(if is_last || self.silence.given_up >= GIVEN_UP_MAX {
            ControlFlow::Break(Some(of_one))
        } else {
            ControlFlow::Continue(())
        })
    }

    /// Waits until every host answers again; returns whether they do.
    fn await_return(&mut self, host: &HostName) -> Result<bool, WriteError> {
        let deadline_ns = self.fleet.clock.now_ns() + RETURN_WAIT.as_nanos() as u64;
        let mut is_told = false;
        while let Some(why) = self.refresh().into_iter().next() {
            // A host that answers is back, whatever it says; the next trial says what.
            if why.lost_host().is_none() {
                return Ok(true);
            }
            let is_late = self.fleet.clock.now_ns() >= deadline_ns;
            if self.context.stop.load(Ordering::Relaxed) || is_late {
                return Ok(false);
            }
            if !is_told {
                let wait = Nanos(RETURN_WAIT.as_nanos() as u64);
                self.tell(RunEvent::HostLost { host, wait })?;
                is_told = true;
            }
            self.fleet.clock.sleep(RETURN_LOOK);
        }
        Ok(true)
    }

    fn refresh(&mut self) -> Vec<Reason> {
        let watch = &mut self.audience.watch;
        let mut queued = |host: &HostName, place| watch(&RunEvent::HostQueued { host, place });
        self.fleet.refresh(self.context.stop, &mut queued)
    }

    /// Asks what is open and what is spoilt, where a round has ended.
    fn ask_judge(&mut self, trial: &Trial) -> Result<(), RunError> {
        if self.is_proof(trial) {
            return Ok(());
        }
        let (Some(judge), Some(so_far)) = (self.audience.judge.as_mut(), &mut self.so_far) else {
            return Ok(());
        };
        let ends_round = self.agenda.ends_round(&self.document.plan, trial);
        if !ends_round && so_far.samples.len() <= SAMPLES_UNSHOWN_MAX {
            return Ok(());
        }
        self.document.hosts = self.fleet.records();
        so_far.document = self.document.clone();
        let Judgement {
            open,
            spoilt,
            stages,
        } = judge(so_far);
        so_far.samples = Samples::default();
        if !ends_round || trial.replicate < self.context.request.first_look {
            return Ok(());
        }
        self.agenda.handle_spoilt(&self.document.plan, spoilt);
        self.agenda.handle_open(&mut self.document.plan, open);
        let fits = self.fits(Nanos(0));
        self.agenda
            .handle_stages(&mut self.document.plan, stages, fits);
        Ok(self.tell_plan()?)
    }

    /// Whether a trial is of a change that proves what limits what was measured.
    fn is_proof(&self, trial: &Trial) -> bool {
        let own = self.document.plan.experiment(&trial.experiment);
        own.is_some_and(Experiment::is_proof)
    }

    /// Asks what is measured once nothing is left to do.
    fn ask_for_more(&mut self) -> Option<More> {
        let left = self.left(Nanos(0));
        let (prove, so_far) = self.audience.prove.as_mut().zip(self.so_far.as_mut())?;
        self.document.hosts = self.fleet.records();
        so_far.document = self.document.clone();
        let more = prove(so_far, left);
        so_far.samples = Samples::default();
        more
    }
}

fn captured_bytes(evidence: &TrialEvidence) -> u64 {
    let files = evidence.captures.iter();
    files.map(|(_, file)| file.len() as u64).sum()
}

/// Returns what an interruption of `trial`, by which `over` of so many were over, cut short, if it did.
fn interruption(trial: &Trial, over: usize, trials: usize, record: &TrialRecord) -> Option<String> {
    let whole = record.validity == Validity::Valid && record.window_ns == trial.timing.measure.0;
    match trials {
        1 if whole => None,
        // It was to end so.
        1 if record.validity == Validity::Valid && trial.timing.is_until_stopped() => None,
        1 if record.validity == Validity::Valid => Some(format!(
            "interrupted {} after the start of the window",
            Nanos(record.window_ns)
        )),
        _ => {
            let over = over - usize::from(!whole);
            (over < trials).then(|| "interrupted".to_owned())
        }
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
        Nanos(
            agenda::in_turn(trials)
                .map(|trial| trial.timing.total().0 + beyond.0)
                .sum(),
        )
    }
}
