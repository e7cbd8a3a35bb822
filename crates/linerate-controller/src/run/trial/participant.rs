//! A host in a trial: its agent, its part, and what it handed over so far.

use linerate_agent::api::{
    Agent, AgentError, Assignment, PollFrom, Prepared, StartRequest, TrialState, TrialStatus,
};
use linerate_model::capture::CaptureOutcome;
use linerate_model::experiment::Timing;
use linerate_model::flag::Note;
use linerate_model::profile::Stack;
use linerate_model::reason::{HostFailure, Reason};
use linerate_model::run::{ClockFit, FlowOutcome, HostProgram};
use linerate_model::sample::{Sample, Subject, TrialSample};
use linerate_model::samples::Samples;
use linerate_model::setting::SettingPool;
use linerate_model::workload::Part;
use linerate_model::{HostName, Nanos, TrialId};

use super::super::instants::Instants;
use super::super::validity;
use crate::fleet::{Clock, ClockFilter, Exchange, Member, failure_of};

/// A host that takes part in a trial.
pub(super) struct Participant<'a> {
    pub agent: TrialAgent<'a>,
    pub assignment: Assignment,
    /// The round trip that its handshakes measured.
    pub round_trip: Option<Nanos>,
    /// What its agent lets a long path add to the warm-up.
    pub warm_up_more: Nanos,
    /// Its clock, by its answers so far.
    pub clock: ClockFilter,
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
    /// What all samples so far take, as whoever looks at them has them.
    bytes: u64,
    pub flows: Vec<FlowOutcome>,
    pool: SettingPool,
    pub stacks: Vec<Stack>,
    pub notes: Vec<Note>,
    pub capture: Option<CaptureOutcome>,
    /// The file of the capture.
    pub capture_file: Vec<u8>,
    /// Whether nothing more will come.
    pub is_finished: bool,
    /// Why not all came that there was, if it did not.
    pub lost: Option<Reason>,
    /// Since when its agent has not answered, and the last reason.
    silence: Option<(u64, Reason)>,
    /// Why it gave up in the middle, if it is no agent.
    pub forsook: Option<Reason>,
}

/// Samples of one answer, at the most: an agent hands over 16 384.
const ANSWER_SAMPLES_MAX: usize = 1 << 15;
/// Answers of one look, at the most: an agent keeps 64 MiB of samples, and none takes less than 4 B.
const ANSWERS_MAX: usize = 1024;
/// Samples of one reading of a host, beside those of its flows: up to 1024 each of CPUs, queues, queueing disciplines,
/// interrupts and protocol counters, which observers read at the most, of 12 metrics or fewer.
const READING_SAMPLES_MAX: u64 = 1 << 16;
/// Samples of one reading of a flow: what its program counts, and TCP_INFO.
const FLOW_SAMPLES_MAX: u64 = 64;
/// Readings beside those that are due: at the edges of the window and of the traffic, and one that is late.
const READINGS_MORE: u64 = 8;
/// What a sample takes as whoever looks at it has it: metric, instant and value.
const SAMPLE_BYTES: u64 = 24;
/// What a subject takes beside its name.
const SUBJECT_BYTES: u64 = 64;

impl<'a> TrialAgent<'a> {
    pub fn host(&self) -> &'a HostName {
        &self.member.record.name
    }

    pub fn clock(&self) -> &'a ClockFit {
        &self.member.record.clock
    }

    pub fn program(&self) -> &'a HostProgram {
        &self.member.record.program
    }

    pub fn prepare(&self, assignment: &Assignment, timing: &Timing) -> Result<Prepared, Reason> {
        self.ask(|agent, lease| agent.prepare(lease, assignment, timing))
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
        let Member { spec, admitted, .. } = self.member;
        spec.agent.capture_part(&admitted.lease, self.trial, part)
    }

    fn ask<T>(
        &self,
        request: impl FnOnce(&dyn Agent, &str) -> Result<T, AgentError>,
    ) -> Result<T, Reason> {
        let Member { spec, admitted, .. } = self.member;
        request(&*spec.agent, &admitted.lease).map_err(|error| failure_of(self.host(), &error))
    }
}

impl<'a> Participant<'a> {
    pub fn new(agent: TrialAgent<'a>, assignment: Assignment) -> Self {
        Self {
            agent,
            assignment,
            round_trip: None,
            warm_up_more: Nanos(0),
            clock: agent.member.clock.of_trial(),
            gathered: Gathered::default(),
        }
    }

    /// Returns whether it has flows that send first.
    pub fn sends(&self) -> bool {
        let mut flows = self.assignment.all_flows();
        flows.any(|flow| matches!(flow.part, Part::Sender | Part::Requester))
    }

    /// Makes or expects its flows; returns what its agent says of them.
    pub fn prepare(&mut self, timing: &Timing) -> Result<Prepared, Reason> {
        let prepared = self.agent.prepare(&self.assignment, timing)?;
        self.round_trip = prepared.round_trip_ns.map(Nanos);
        self.warm_up_more = prepared.warm_up_more;
        if let Some(rate) = prepared.rate_limit {
            self.gathered.notes.push(Note::RateLimit(rate));
        }
        let host = self.agent.host();
        let mut flows = prepared.settings.iter();
        match flows.find_map(|flow| validity::capped(host, &flow.settings)) {
            Some(capped) => Err(capped),
            None => Ok(prepared),
        }
    }

    /// Takes over all there is, for which its agent may wait so long for the end of the trial. One that
    /// does not answer now may later: what it has measured is there until then.
    pub fn look(&mut self, clock: &Clock, at: &Instants, wait: Nanos) {
        let asked_ns = clock.now_ns();
        let flows = self.assignment.all_flows().count();
        let sample_interval = self.assignment.sample_interval;
        let elapsed = Nanos(asked_ns.saturating_sub(at.start_ns));
        let bytes_max = bytes_max(flows, sample_interval, elapsed);
        let mut answers = (0..ANSWERS_MAX).map(|_| self.look_once(clock, at, wait, bytes_max));
        let looked = answers.find(|answer| !matches!(answer, Ok(true)));
        let endless = || self.failed("its agent hands over more than an agent keeps".to_owned());
        match looked.unwrap_or_else(|| Err(endless())) {
            Ok(_) => self.handle_answer(clock.now_ns()),
            Err(why) => self.handle_failure(asked_ns, why),
        }
    }

    /// Returns whether `subject` is a flow that is not its own: another host's count would be taken for that one's.
    fn is_foreign_flow(&self, subject: &Subject) -> bool {
        let Subject::Flow(flow, end) = subject else {
            return false;
        };
        // Those of a group are in the order of their numbers.
        let beside = self.assignment.beside.iter().map(|group| &group.flows);
        let mut groups = std::iter::once(&self.assignment.flows).chain(beside);
        let is_own = groups.any(|flows| flows.binary_search_by_key(flow, |own| own.flow).is_ok());
        *end != self.assignment.end || !is_own
    }

    /// Notes that a request of `asked_ns` failed.
    pub fn handle_failure(&mut self, asked_ns: u64, why: Reason) {
        let gathered = &mut self.gathered;
        if why.host_failure() == Some(HostFailure::Silent) {
            let since_ns = gathered.silence.take().map_or(asked_ns, |(since, _)| since);
            gathered.silence = Some((since_ns, why));
        } else {
            self.lose(why);
        }
    }

    /// Notes that the agent answers; how long it did not is something to know of the trial.
    fn handle_answer(&mut self, now_ns: u64) {
        let Some((since_ns, why)) = self.gathered.silence.take() else {
            return;
        };
        let silent = Nanos(now_ns.saturating_sub(since_ns));
        let note = format!("it did not answer for {silent}, and nothing is missing ({why})");
        self.gathered.notes.push(Note::Words(note));
    }

    /// Returns whether the last request was not answered.
    pub fn is_silent(&self) -> bool {
        self.gathered.silence.is_some()
    }

    /// Gives up waiting for what has not come in `waited` since the end of the traffic.
    pub fn give_up(&mut self, waited: Nanos) {
        let host = self.agent.host().clone();
        let why = match self.gathered.silence.take() {
            Some((_, why)) => why,
            None => Reason::Overdue { host, waited },
        };
        self.lose(why);
    }

    pub fn failed(&self, words: String) -> Reason {
        self.because(HostFailure::Failed, words)
    }

    fn because(&self, failure: HostFailure, words: String) -> Reason {
        Reason::Host {
            host: self.agent.host().clone(),
            failure,
            words,
        }
    }

    fn lose(&mut self, why: Reason) {
        self.gathered.is_finished = true;
        self.gathered.lost = Some(why);
    }

    /// Takes over one answer; returns whether there is more to be asked for at once.
    fn look_once(
        &mut self,
        clock: &Clock,
        at: &Instants,
        wait: Nanos,
        bytes_max: u64,
    ) -> Result<bool, Reason> {
        let asked_ns = clock.now_ns();
        let flows = self.assignment.all_flows().count();
        let status = self.agent.poll(PollFrom {
            sample: self.gathered.next,
            flow: self.gathered.flows.len(),
            wait_ns: wait.0,
        })?;
        if status.next != self.gathered.next.saturating_add(status.samples.len()) {
            let words = "it answered another request than the last".to_owned();
            return Err(self.because(HostFailure::Silent, words));
        }
        if let Some(at_ns) = status.at_ns {
            self.clock.handle_exchange(Exchange {
                asked_ns,
                received_ns: at_ns,
                sent_ns: at_ns,
                answered_ns: clock.now_ns(),
            });
        }
        self.gathered.bytes += bytes_of(&status.samples);
        let checked = self.gathered.check(&status, flows, bytes_max);
        checked.map_err(|what| self.failed(format!("its agent {what}")))?;
        let mut subjects = status.samples.iter().map(|sample| &sample.subject);
        let mut ends = status.flows.iter();
        if subjects.any(|subject| self.is_foreign_flow(subject))
            || ends.any(|one| self.is_foreign_flow(&Subject::Flow(one.flow, one.end)))
        {
            let words = "its agent hands over flows of another host".to_owned();
            return Err(self.failed(words));
        }
        let (agent, gathered) = (&self.agent, &mut self.gathered);
        let begin_ns = at.on_host(agent.clock()).measure_begin_ns;
        let on_axis = |sample| on_window_axis(agent, sample, begin_ns);
        gathered
            .news
            .extend(status.samples.into_iter().map(on_axis));
        gathered.next = status.next;
        match status.state {
            TrialState::Finished => {
                gathered.add_flows(status.flows, flows);
                if !status.more {
                    gathered.stacks = status.stacks;
                    gathered.capture = status.capture;
                    gathered
                        .notes
                        .extend(status.notes.into_iter().map(Note::Words));
                    gathered.is_finished = true;
                }
                Ok(status.more)
            }
            TrialState::Failed { why } => match agent.program() {
                HostProgram::Foreign(_) => {
                    gathered.forsook = Some(Reason::ServerGaveUp(why));
                    gathered.is_finished = true;
                    Ok(false)
                }
                HostProgram::Agent => Err(self.failed(why)),
            },
            TrialState::Gathering { .. } | TrialState::Ready | TrialState::Running => {
                Ok(status.more)
            }
        }
    }
}

impl Gathered {
    /// Returns the instant of the last reading on the window's axis.
    pub fn read_until_ns(&self, host: &HostName) -> Option<i64> {
        let instants = [&self.samples, &self.news].map(|samples| samples.instants(host).max());
        instants.into_iter().flatten().max()
    }

    /// Refuses what no agent hands over: these answers would never end, or fill the memory.
    fn check(
        &self,
        status: &TrialStatus,
        flows: usize,
        bytes_max: u64,
    ) -> Result<(), &'static str> {
        let is_more = status.next > self.next || !status.flows.is_empty();
        if status.more && !is_more {
            Err("says that there is more and hands over nothing")
        } else if self.flows.len() + status.flows.len() > flows {
            Err("hands over flows that the trial does not have")
        } else if status.samples.len() > ANSWER_SAMPLES_MAX {
            Err("hands over more samples at once than an agent does")
        } else if self.bytes > bytes_max {
            Err("hands over more samples than it can have read since the start")
        } else {
            Ok(())
        }
    }

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

/// Returns what the samples of a host with so many flows may take so long after their start: a reading comes at each
/// interval, and none has more than host and flows have.
fn bytes_max(flows: usize, interval: Nanos, elapsed: Nanos) -> u64 {
    let readings = elapsed.0 / interval.0.max(1) + READINGS_MORE;
    let of_flows = (flows as u64).saturating_mul(FLOW_SAMPLES_MAX);
    let each = READING_SAMPLES_MAX.saturating_add(of_flows);
    readings.saturating_mul(each).saturating_mul(SAMPLE_BYTES)
}

/// Returns what `samples` take, as whoever looks at them has them: those of a subject come one after the other.
fn bytes_of(samples: &[Sample]) -> u64 {
    let of_one = samples.chunk_by(|one, next| one.subject == next.subject);
    let bytes = of_one.map(|alike| {
        let name_bytes = alike[0].subject.to_string().len() as u64;
        SUBJECT_BYTES + name_bytes + SAMPLE_BYTES * alike.len() as u64
    });
    bytes.sum()
}

/// Places an agent's sample on the axis of the trial's window.
fn on_window_axis(agent: &TrialAgent<'_>, sample: Sample, begin_on_host_ns: u64) -> TrialSample {
    TrialSample {
        trial: agent.trial,
        host: agent.host().clone(),
        subject: sample.subject,
        metric: sample.metric,
        at_ns: since(sample.at_ns, begin_on_host_ns),
        value: sample.value,
    }
}

/// Returns how long after `base_ns` an instant of the same clock lies, whatever a host says that it is.
pub(super) fn since(instant_ns: impl Into<i128>, base_ns: u64) -> i64 {
    let since_ns = instant_ns.into() - i128::from(base_ns);
    since_ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Runs `work` for every participant at the same time; returns the first failure in their order.
pub(super) fn each<'a, 'p: 'a>(
    clock: &Clock,
    participants: impl IntoIterator<Item = &'a mut Participant<'p>>,
    work: impl Fn(&mut Participant<'_>) -> Result<(), Reason> + Sync,
) -> Result<(), Reason> {
    clock.together(participants, work).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use linerate_model::FlowId;
    use linerate_model::metric::Metric;
    use linerate_model::sample::{End, QueueKind};

    use super::*;

    /// What one subject has, of so many metrics.
    fn of(subject: &Subject, metrics: usize) -> Vec<Sample> {
        let one = |metric: &Metric| Sample {
            metric: *metric,
            subject: subject.clone(),
            at_ns: 1,
            value: 1,
        };
        Metric::ALL.iter().take(metrics).map(one).collect()
    }

    #[test]
    fn the_largest_host_hands_over_less_than_it_may() {
        // As many of each kind as observers read.
        let subjects = (0..1024).flat_map(|number| {
            [
                Subject::Cpu(number),
                Subject::Queue("enp129s0f0np0".to_owned(), QueueKind::Rx, number),
                Subject::IrqCpu(number, number),
                Subject::Counter(format!("TcpExt.SomeCounter{number}")),
            ]
        });
        let host: Vec<Sample> = subjects.flat_map(|subject| of(&subject, 8)).collect();
        let flows = |count: u32| {
            let ends = (0..count).map(|flow| Subject::Flow(FlowId(flow), End::Server));
            ends.flat_map(|end| of(&end, 48)).collect::<Vec<Sample>>()
        };
        let interval = Nanos::from_ms(100);
        for count in [1, 256, 10_000] {
            let reading = bytes_of(&host) + bytes_of(&flows(count));
            // Ten in a second, and those at the edges.
            let most = bytes_max(count as usize, interval, Nanos::from_s(1));
            assert!(14 * reading < most, "{count} flows: {reading} of {most}");
        }
        // The same sample again and again does not.
        let most = bytes_max(1, interval, Nanos::from_s(1));
        let again = of(&Subject::Host, 100);
        let endless: Vec<Sample> = again.iter().cycle().take(2 << 20).cloned().collect();
        assert!(bytes_of(&endless) > most, "{most}");
    }
}
