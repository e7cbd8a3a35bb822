//! A host in a trial: its agent, its part, and what it handed over so far.

use linerate_agent::api::{
    Agent, AgentError, Assignment, PollFrom, Prepared, StartRequest, TrialState, TrialStatus,
};
use linerate_model::capture::CaptureOutcome;
use linerate_model::profile::Stack;
use linerate_model::reason::{HostFailure, Reason};
use linerate_model::run::{ClockFit, FlowOutcome};
use linerate_model::sample::{Sample, TrialSample};
use linerate_model::samples::Samples;
use linerate_model::setting::SettingPool;
use linerate_model::workload::Part;
use linerate_model::{HostName, Nanos, TrialId};

use super::super::instants::Instants;
use super::super::validity;
use crate::fleet::{Member, failure_of};
use crate::together::together;

/// A host that takes part in a trial.
pub(super) struct Participant<'a> {
    pub agent: TrialAgent<'a>,
    pub assignment: Assignment,
    /// The round trip that its handshakes measured.
    pub round_trip: Option<Nanos>,
    /// What its agent lets a long path add to the warm-up.
    pub warm_up_more: Nanos,
    pub gathered: Gathered,
}

/// A host's agent as one trial speaks to it: each request names lease and trial, each failure the host.
#[derive(Clone, Copy)]
pub(super) struct TrialAgent<'a> {
    pub member: &'a Member,
    pub trial: TrialId,
}

/// What a host handed over so far.
#[derive(Default)]
pub(super) struct Gathered {
    /// Samples on the window's axis.
    pub samples: Samples,
    /// Those that nobody has been shown yet.
    pub news: Samples,
    /// The number of the next one.
    next: usize,
    pub flows: Vec<FlowOutcome>,
    pool: SettingPool,
    pub stacks: Vec<Stack>,
    pub notes: Vec<String>,
    pub capture: Option<CaptureOutcome>,
    /// The file of the capture.
    pub capture_file: Vec<u8>,
    pub is_finished: bool,
    /// Why it gave up in the middle, if it is no agent.
    pub forsook: Option<String>,
}

impl<'a> TrialAgent<'a> {
    pub fn host(&self) -> &'a HostName {
        &self.member.record.name
    }

    pub fn clock(&self) -> &'a ClockFit {
        &self.member.record.clock
    }

    pub fn is_foreign(&self) -> bool {
        self.member.record.foreign.is_some()
    }

    pub fn prepare(&self, assignment: &Assignment) -> Result<Prepared, Reason> {
        self.ask(|agent, lease| agent.prepare(lease, assignment))
    }

    pub fn start(&self, at: &StartRequest) -> Result<(), Reason> {
        self.ask(|agent, lease| agent.start(lease, self.trial, at))
    }

    pub fn poll(&self, from: PollFrom) -> Result<TrialStatus, Reason> {
        self.ask(|agent, lease| agent.poll(lease, self.trial, from))
    }

    pub fn stop(&self) -> Result<(), Reason> {
        self.ask(|agent, lease| agent.stop(lease, self.trial))
    }

    pub fn abort(&self) -> Result<(), Reason> {
        self.ask(|agent, lease| agent.abort(lease, self.trial))
    }

    /// A capture that cannot be fetched spoils nothing, so its failure stays what it is.
    pub fn capture_part(&self, part: usize) -> Result<Vec<u8>, AgentError> {
        let Member { spec, lease, .. } = self.member;
        spec.agent.capture_part(lease, self.trial, part)
    }

    fn ask<T>(
        &self,
        request: impl FnOnce(&dyn Agent, &str) -> Result<T, AgentError>,
    ) -> Result<T, Reason> {
        let Member { spec, lease, .. } = self.member;
        request(&*spec.agent, lease).map_err(|error| failure_of(self.host(), &error))
    }
}

impl<'a> Participant<'a> {
    pub fn new(agent: TrialAgent<'a>, assignment: Assignment) -> Self {
        Self {
            agent,
            assignment,
            round_trip: None,
            warm_up_more: Nanos(0),
            gathered: Gathered::default(),
        }
    }

    /// Returns whether it has flows that send first.
    pub fn sends(&self) -> bool {
        let mut flows = self.assignment.flows.iter();
        flows.any(|flow| matches!(flow.part, Part::Sender | Part::Requester))
    }

    /// Makes or expects its flows; returns what its agent says of them.
    pub fn prepare(&mut self) -> Result<Prepared, Reason> {
        let prepared = self.agent.prepare(&self.assignment)?;
        self.round_trip = prepared.round_trip_ns.map(Nanos);
        self.warm_up_more = prepared.warm_up_more;
        if let Some(rate) = prepared.rate_limit {
            let note = format!("limited by the agent to {rate}");
            self.gathered.notes.push(note);
        }
        let host = self.agent.host();
        let mut flows = prepared.settings.iter();
        match flows.find_map(|flow| validity::capped(host, &flow.settings)) {
            Some(capped) => Err(capped),
            None => Ok(prepared),
        }
    }

    /// Takes over all there is, for which its agent may wait so long for the end of the trial.
    pub fn look(&mut self, at: &Instants, wait: Nanos) -> Result<(), Reason> {
        while !self.gathered.is_finished && self.look_once(at, wait)? {}
        Ok(())
    }

    /// Takes over one answer; returns whether there is more to be asked for at once.
    fn look_once(&mut self, at: &Instants, wait: Nanos) -> Result<bool, Reason> {
        let (agent, gathered) = (&self.agent, &mut self.gathered);
        let status = agent.poll(PollFrom {
            sample: gathered.next,
            flow: gathered.flows.len(),
            wait,
        })?;
        let begin_ns = at.on_host(agent.clock()).measure_begin_ns;
        let on_axis = |sample| on_window_axis(agent, sample, begin_ns);
        gathered
            .news
            .extend(status.samples.into_iter().map(on_axis));
        gathered.next = status.next;
        match status.state {
            TrialState::Finished => {
                gathered.add_flows(status.flows, self.assignment.flows.len());
                if !status.more {
                    gathered.stacks = status.stacks;
                    gathered.capture = status.capture;
                    gathered.notes.extend(status.notes);
                    gathered.is_finished = true;
                }
                Ok(status.more)
            }
            TrialState::Failed { why } if agent.is_foreign() => {
                gathered.forsook = Some(why);
                gathered.is_finished = true;
                Ok(false)
            }
            TrialState::Failed { why } => Err(Reason::Host {
                host: agent.host().clone(),
                failure: HostFailure::Failed,
                words: why,
            }),
            TrialState::Gathering { .. } | TrialState::Ready | TrialState::Running => {
                Ok(status.more)
            }
        }
    }
}

impl Gathered {
    /// Adds `flows`, of `of` in all, with settings shared where they are the same.
    fn add_flows(&mut self, flows: Vec<FlowOutcome>, of: usize) {
        // At once, since growing by and by would hold the list twice.
        self.flows
            .reserve_exact(of.saturating_sub(self.flows.len()));
        let pool = &mut self.pool;
        self.flows.extend(flows.into_iter().map(|flow| FlowOutcome {
            settings: pool.share(&flow.settings),
            ..flow
        }));
    }
}

/// Places an agent's sample on the axis of the trial's window.
fn on_window_axis(agent: &TrialAgent<'_>, sample: Sample, begin_on_host_ns: u64) -> TrialSample {
    TrialSample {
        trial: agent.trial,
        host: agent.host().clone(),
        subject: sample.subject,
        metric: sample.metric,
        at_ns: sample.at_ns as i64 - begin_on_host_ns as i64,
        value: sample.value,
    }
}

/// Runs `work` for every participant at the same time; returns the first failure in their order.
pub(super) fn each<'a, 'p: 'a>(
    participants: impl IntoIterator<Item = &'a mut Participant<'p>>,
    work: impl Fn(&mut Participant<'_>) -> Result<(), Reason> + Sync,
) -> Result<(), Reason> {
    together(participants, work).into_iter().collect()
}
