//! One trial: begin, follow, conclude.
//!
//! 1. [`Attempt::begin`]: every host makes or expects its flows, the instants are agreed on, and all
//!    start. A host that was late costs nothing but a beginning with more notice.
//! 2. [`Attempt::follow`]: samples are taken over until every host has handed in its results, or the
//!    user has seen enough.
//! 3. [`Attempt::conclude`]: what the hosts handed in becomes the trial's evidence, and what happened on
//!    the way says whether it may be averaged. This is done however far the trial came.

use std::sync::atomic::AtomicBool;

use linerate_model::plan::Trial;
use linerate_model::probe::Probes;
use linerate_model::reason::Reason;
use linerate_model::run::TrialEvidence;
use linerate_model::{HostName, Nanos};

use super::RunRequest;
use super::instants::Instants;
use crate::event::RunEvent;
use crate::fleet::{ClockFilter, Fleet};

/// Assignments, flows, instants, start.
mod begin;
/// What is made of it all.
mod conclude;
/// Files that hosts captured.
mod files;
/// Looks at the running trial.
mod follow;
/// A host in a trial, and what it handed over so far.
mod participant;
/// What memory has no room for.
mod spooling;
/// A start by multicast.
mod trigger;

use participant::Participant;
pub(super) use spooling::Spooling;

/// Flows of a fleet that begin further apart than one part in so many of the window were not in force together for it: as much
/// as a host may be late in reading its edge.
const SKEW_PART: u64 = 10;

/// How the traffic of a trial ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TrafficEnd {
    /// At the instant agreed on.
    Planned,
    /// When the user had seen enough.
    Interrupted,
    /// When the volume that was asked for had been received.
    AllSent,
    /// When a server that is no agent gave up. What this host measured until then is all there ever
    /// will be.
    Forsaken(Reason),
    /// In time or before, but not all came that a host measured, for this reason.
    Lost(Reason),
}

/// What is the same for every trial of a run.
#[derive(Clone, Copy)]
pub(super) struct RunContext<'a> {
    pub request: &'a RunRequest,
    pub stop: &'a AtomicBool,
    /// Start of the run on the fleet's clock.
    pub began_ns: u64,
    /// Bytes that the captures of the trials so far take.
    pub captures_bytes: u64,
}

/// What one trial left.
pub(super) struct Concluded {
    pub evidence: TrialEvidence,
    /// How long traffic went on before the window.
    pub warm_up: Nanos,
    /// Whether it would fail again for the same reason.
    pub is_lasting: bool,
    /// What is known by now of the clocks of its hosts.
    pub clocks: Vec<(HostName, ClockFilter)>,
    /// Why the run ends with what this trial measured.
    pub cut_short: Option<String>,
}

/// One execution of a trial, as far as it has come.
struct Attempt<'a> {
    run: RunContext<'a>,
    fleet: &'a Fleet,
    trial: &'a Trial,
    probes: Probes,
    /// The hosts that have flows in it, the server first.
    participants: Vec<Participant<'a>>,
    /// Estimated until all flows exist.
    at: Instants,
}

/// Drives trials that go on at the same time to their ends.
pub(super) fn drive(
    run: RunContext<'_>,
    fleet: &mut Fleet,
    trials: &[Trial],
    spooling: Spooling<'_>,
    watch: &mut dyn FnMut(&RunEvent<'_>),
) -> Vec<Concluded> {
    let mut queued = |host: &HostName, place| watch(&RunEvent::HostQueued { host, place });
    let failed = fleet.keep_fresh(run.stop, &mut queued);
    let fleet_now = &*fleet;
    let attempts = trials
        .iter()
        .map(|trial| Attempt::new(run, fleet_now, trial));
    let mut attempts: Vec<Attempt<'_>> = attempts.collect();
    let begun = Attempt::begin(&mut attempts, &failed);
    // All threads there are have been made, and workers wait for the start.
    let inventories = if begun.iter().any(Result::is_ok) {
        fleet_now.survey()
    } else {
        Vec::new()
    };
    let ended = Attempt::follow(&mut attempts, begun, spooling, watch);
    let all = attempts.iter().flat_map(|attempt| &attempt.participants);
    let uncertainty_ns = Participant::skew_uncertainty(all);
    let mut concluded = Vec::with_capacity(attempts.len());
    for (attempt, ended) in attempts.into_iter().zip(ended) {
        if matches!(ended, Err(_) | Ok(TrafficEnd::Lost(_))) {
            attempt.abort();
        }
        concluded.push(attempt.conclude(ended));
    }
    if let Some(trial) = trials.first().filter(|trial| !trial.hosts.is_empty()) {
        let most = run
            .request
            .in_step
            .skew_max
            .unwrap_or(Nanos(trial.timing.measure.0 / SKEW_PART));
        Concluded::in_step(&mut concluded, uncertainty_ns, most);
    }
    fleet.take_over(inventories);
    for one in &mut concluded {
        for (host, clock) in one.clocks.drain(..) {
            fleet.take_over_clock(&host, clock);
        }
    }
    concluded
}

impl Attempt<'_> {
    /// Returns which of the reasons that kept hosts from being refreshed spoils the trial: one that is of its own hosts, or
    /// of none.
    fn spoilt_by(&self, failed: &[Reason]) -> Option<Reason> {
        let is_own = |host: &HostName| self.participants.iter().any(|one| one.agent.host() == host);
        let mut failed = failed.iter();
        failed.find(|why| why.host().is_none_or(is_own)).cloned()
    }

    /// Ends the trial on all hosts. Agents that cannot be told end it by its deadlines.
    fn abort(&self) {
        let agents = self.participants.iter().map(|one| one.agent);
        self.fleet
            .clock
            .together(agents, |agent| drop(agent.abort()));
    }
}
