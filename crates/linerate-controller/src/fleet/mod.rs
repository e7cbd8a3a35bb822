//! The hosts of a run: connecting, admission, inventory, clocks.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_agent::api::{
    AdmitRequest, Admitted, Agent, AgentError, AgentInfo, Inventory, InventoryRequest, Loss,
    PROGRAM, RefusalCode,
};
use linerate_model::host::{FactValue, Snapshot};
use linerate_model::lab_link::LabLink;
use linerate_model::reason::{HostFailure, Reason, with_causes};
use linerate_model::run::{Admission, ClockFit, HostPart, HostProgram, HostRecord};
use linerate_model::unit::Unit;
use linerate_model::workload::Workload;
use linerate_model::{BitsPerSec, HostName, Nanos};

mod check;
mod clock;

pub use check::{Answer, Checked};
pub(crate) use clock::{Clock, ClockFilter, Exchange};

/// Clock exchanges when a host joins, at the most.
const EXCHANGES_AT_START: u32 = 16;
/// How well a clock must be known for fewer exchanges to do: less than a reading takes to be made.
const UNCERTAINTY_NS_GOOD: u64 = 100_000;
/// Clock exchanges before each trial.
const EXCHANGES_PER_TRIAL: u32 = 4;
/// How long leases and clocks need no refreshing: the first trial begins within a few milliseconds.
/// A clock that runs 100 ppm wrong drifts by 10 µs in it, less than most exchanges can tell.
const FRESH_NS: u64 = 100_000_000;
/// Looks in a row at a queue that may stay without an answer.
const UNHEARD_MAX: u32 = 3;
/// Time between two looks at the queue.
const QUEUE_LOOK: Duration = Duration::from_millis(500);

/// A host that is to take part.
#[derive(Clone)]
pub struct HostSpec {
    /// Its name in the run.
    pub name: HostName,
    /// What it is for.
    pub part: HostPart,
    /// Its agent.
    pub agent: Arc<dyn Agent>,
    /// Address that data flows use: the server's is connected to, a client's, of which the port counts
    /// nothing, tells its link.
    pub data_address: Option<std::net::SocketAddr>,
    /// Address that a client connects from, if it must be a certain one; with a zone also the device, and one of
    /// IPv4 is then written as one of IPv6.
    pub bind: Option<std::net::SocketAddr>,
    /// Whether to measure the memory's copy rate before the run.
    pub memory_copy: bool,
    /// Signalling rate of the data link, when it is known better than the host can tell.
    pub link_rate: Option<BitsPerSec>,
    /// That from the host, where it is another.
    pub link_up_rate: Option<BitsPerSec>,
    /// What a lab of this run makes of the link.
    pub lab_link: Option<LabLink>,
    /// Frames of a million that the data link loses on purpose, for a client that is there for
    /// trials that ask for that.
    pub link_loss_ppm: Option<u32>,
    /// The groups of a fleet that it belongs to.
    pub groups: Vec<String>,
    /// The address of its own at which its agent is called; absent where others are on the way.
    pub control_ip: Option<IpAddr>,
}

impl HostSpec {
    /// Returns a host whose data flows use `address`, and nothing else is known of.
    pub fn new(
        name: impl Into<HostName>,
        part: HostPart,
        agent: Arc<dyn Agent>,
        address: std::net::SocketAddr,
    ) -> Self {
        Self {
            name: name.into(),
            part,
            agent,
            data_address: Some(address),
            bind: None,
            memory_copy: false,
            link_rate: None,
            link_up_rate: None,
            lab_link: None,
            link_loss_ppm: None,
            groups: Vec::new(),
            control_ip: None,
        }
    }
}

/// A host that takes part.
pub struct Member {
    pub(crate) spec: HostSpec,
    /// What it answered when it was last asked for the host.
    pub(crate) admitted: Admitted,
    /// What the run's document says of it.
    pub record: HostRecord,
    /// Whether it was asked what it has.
    is_surveyed: bool,
    /// Whether another device of the same host asked for its agent.
    is_sibling: bool,
    /// What its clock has shown.
    pub(crate) clock: ClockFilter,
    /// Whether the run goes on without it.
    is_given_up: bool,
    /// By how much its clock was set before the present trial, if it was.
    pub(crate) clock_stepped: Option<Nanos>,
    /// What the agent allows without its token, and who is refused observation, for messages.
    pub observe_refused: Option<String>,
}

/// The hosts of a run, the server first.
pub struct Fleet {
    pub(crate) members: Vec<Member>,
    /// Where each of them is, by its name.
    places: HashMap<HostName, usize>,
    pub(crate) clock: Clock,
    request: AdmitRequest,
    /// When all leases and clocks were last refreshed, counted from before the first of them.
    refreshed_ns: u64,
}

/// When the hosts are asked what they have: facts, observers, the link of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inventories {
    /// Before anything else, where something is decided by them or the run's document is written
    /// before its trials.
    First,
    /// While the first trial begins: that saves 2 to 4 ms of CPU time on each host, and as much of the
    /// time, before a single measurement.
    Underway,
}

/// Why a fleet could not be gathered.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A host did not answer, or refused.
    #[error("host {host}")]
    Agent {
        /// The host.
        host: HostName,
        /// The cause.
        #[source]
        source: AgentError,
    },
    /// The user gave up while waiting.
    #[error("interrupted while waiting for host {0}")]
    Interrupted(HostName),
}

impl Fleet {
    /// Gathers the hosts: asks who they are, takes inventory if that comes first, waits for
    /// admission, reads clocks.
    ///
    /// `waiting` is told the host and the place in its queue while that lasts; `stop` ends it.
    pub fn gather(
        specs: Vec<HostSpec>,
        request: &AdmitRequest,
        inventories: Inventories,
        stop: &AtomicBool,
        waiting: &mut dyn FnMut(&HostName, u32),
    ) -> Result<Self, FleetError> {
        Self::gather_by(Clock::start(), specs, request, inventories, stop, waiting)
    }

    pub(crate) fn gather_by(
        clock: Clock,
        specs: Vec<HostSpec>,
        request: &AdmitRequest,
        inventories: Inventories,
        stop: &AtomicBool,
        waiting: &mut dyn FnMut(&HostName, u32),
    ) -> Result<Self, FleetError> {
        let mut fleet = Fleet {
            members: Vec::new(),
            places: HashMap::new(),
            refreshed_ns: clock.now_ns(),
            clock,
            request: request.clone(),
        };
        let names: Vec<HostName> = specs.iter().map(|spec| spec.name.clone()).collect();
        let surveys = survey_all(&fleet.clock, &specs, inventories);
        let surveyed = specs.into_iter().zip(surveys).map(|(spec, survey)| {
            let survey = survey.map_err(failed(&spec))?;
            Ok((spec, survey))
        });
        let mut surveyed: Vec<_> = surveyed.collect::<Result<_, FleetError>>()?;
        // All runs ask in one order: of two that asked in orders of their own each could keep a host that
        // the other waits for.
        surveyed.sort_by_key(|(spec, _)| spec.agent.address());
        // Devices of one host have one agent, which is asked once.
        let is_sibling = |at: usize| {
            let before = at.checked_sub(1).map(|before| &surveyed[before].0.agent);
            before.is_some_and(|before| Arc::ptr_eq(before, &surveyed[at].0.agent))
        };
        let siblings: Vec<bool> = (0..surveyed.len()).map(is_sibling).collect();
        // Who does not wait keeps no host from others: all are asked at the same time.
        let mut asked = match request.admission {
            Admission::Queued => Vec::new(),
            Admission::Exclusive | Admission::Shared => {
                let all = surveyed.iter().zip(&siblings);
                let firsts = all.filter(|(_, is_sibling)| !**is_sibling);
                let admit =
                    |((spec, _), _): (&(HostSpec, Survey), &bool)| spec.agent.admit(request);
                fleet.clock.together(firsts, admit)
            }
        }
        .into_iter();
        let mut refused = None;
        for ((spec, (info, inventory)), is_sibling) in surveyed.into_iter().zip(siblings) {
            if is_sibling && refused.is_some() {
                continue;
            }
            // Dropping the fleet on the way out gives back what was admitted so far.
            let of_first = fleet.members.last().filter(|_| is_sibling);
            let admitted = match of_first.map(|first| first.admitted.clone()) {
                Some(admitted) => Ok(admitted),
                None => match asked.next() {
                    Some(asked) => asked.map_err(failed(&spec)),
                    None => fleet.admit(&spec, stop, waiting),
                },
            };
            let admitted = match admitted {
                Ok(admitted) => admitted,
                // Of those that were asked at the same time others may have said yes.
                Err(error) => {
                    refused = refused.or(Some(error));
                    if request.admission == Admission::Queued {
                        break;
                    }
                    continue;
                }
            };
            let record = HostRecord {
                name: spec.name.clone(),
                part: spec.part,
                agent: spec.agent.address(),
                control: Some(spec.agent.control()),
                data_address: spec
                    .data_address
                    .map_or(String::new(), |at| at.ip().to_string()),
                version: info.version,
                program: match info.program {
                    program if program == PROGRAM => HostProgram::Agent,
                    program => HostProgram::Foreign(program),
                },
                lab: info.lab,
                boot: info.boot,
                link_rate: spec.link_rate,
                link_up_rate: spec.link_up_rate,
                lab_link: spec.lab_link.clone(),
                link_loss_ppm: spec.link_loss_ppm,
                groups: spec.groups.clone(),
                link: None,
                snapshot: Snapshot::default(),
                observers: Vec::new(),
                clock: ClockFit {
                    offset_ns: 0,
                    uncertainty_ns: u64::MAX,
                    drift_ppb: None,
                },
                admission: request.admission,
            };
            let mut member = Member {
                is_surveyed: false,
                is_sibling,
                is_given_up: false,
                clock: ClockFilter::default(),
                clock_stepped: None,
                spec,
                admitted,
                record,
                observe_refused: info.observe_refused,
            };
            member.take_over(inventory);
            fleet.members.push(member);
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        let (clock, members) = (&fleet.clock, &mut fleet.members);
        let exchanged = clock.together(members, |member| {
            let Member {
                spec,
                clock: filter,
                record,
                ..
            } = member;
            record.clock = clock
                .exchange(&*spec.agent, filter, EXCHANGES_AT_START)
                .map_err(failed(spec))?;
            Ok(())
        });
        exchanged.into_iter().collect::<Result<(), FleetError>>()?;
        fleet.places = names.into_iter().zip(0..).collect();
        let places = &fleet.places;
        fleet
            .members
            .sort_by_key(|member| places.get(&member.record.name));
        Ok(fleet)
    }

    /// Asks for admission and waits in the queue if that is what was asked for. The hosts that were
    /// admitted before hear of the run meanwhile, or they would give themselves to another.
    fn admit(
        &self,
        spec: &HostSpec,
        stop: &AtomicBool,
        waiting: &mut dyn FnMut(&HostName, u32),
    ) -> Result<Admitted, FleetError> {
        let mut admitted = spec.agent.admit(&self.request).map_err(failed(spec))?;
        let mut unheard = 0;
        while let Some(place) = admitted.queue_place {
            waiting(&spec.name, place);
            self.clock.sleep(QUEUE_LOOK);
            if stop.load(Ordering::Relaxed) {
                let _ = spec.agent.leave(&admitted.lease);
                return Err(FleetError::Interrupted(spec.name.clone()));
            }
            let members = self.members.iter();
            let held = members.map(|member| (&*member.spec.agent, &member.admitted.lease));
            let all = held.chain([(&*spec.agent, &admitted.lease)]);
            let mut renewed = self
                .clock
                .together(all, |(agent, lease)| agent.renew(lease));
            // What became of the others shows when the first trial begins.
            let own = renewed.pop().expect("it asked at least for this one");
            admitted = match own {
                // An answer that is lost costs no place in the queue, which lasts longer.
                Err(error) if error.loss() == Some(Loss::Silent) && unheard < UNHEARD_MAX => {
                    unheard += 1;
                    continue;
                }
                Err(error) if error.refusal() == Some(RefusalCode::Gone) => {
                    spec.agent.admit(&self.request)
                }
                own => own,
            }
            .map_err(failed(spec))?;
            unheard = 0;
        }
        Ok(admitted)
    }

    /// Refreshes leases and clocks unless that was done just now; returns why hosts could not be.
    pub(crate) fn keep_fresh(
        &mut self,
        stop: &AtomicBool,
        waiting: &mut dyn FnMut(&HostName, u32),
    ) -> Vec<Reason> {
        if self.clock.now_ns() < self.refreshed_ns + FRESH_NS {
            return Vec::new();
        }
        self.refresh(stop, waiting)
    }

    /// Keeps the leases, asks anew where an agent has forgotten the run (it may have been started
    /// again), and reads the clocks; all hosts at the same time. Returns why hosts could not be refreshed.
    ///
    /// Where another run has a host by now, it waits in the queue if that is how the run asked for it;
    /// `waiting` is told each new place, and `stop` ends it.
    pub(crate) fn refresh(
        &mut self,
        stop: &AtomicBool,
        waiting: &mut dyn FnMut(&HostName, u32),
    ) -> Vec<Reason> {
        let request = self.request.clone();
        let mut told = None;
        loop {
            let failed = self.of_each(|member, _| {
                if member.is_sibling {
                    return Ok(());
                }
                member.keep_lease(&request)
            });
            if !failed.is_empty() {
                return failed;
            }
            self.share_leases();
            let mut members = self.members.iter().filter(|member| !member.is_given_up);
            let waits =
                |member: &Member| Some((member.record.name.clone(), member.admitted.queue_place?));
            let Some((host, place)) = members.find_map(waits) else {
                break;
            };
            if told.replace(place) != Some(place) {
                waiting(&host, place);
            }
            self.clock.sleep(QUEUE_LOOK);
            if stop.load(Ordering::Relaxed) {
                return vec![Reason::Interrupted];
            }
        }
        let began_ns = self.clock.now_ns();
        let failed = self.of_each(Member::read_clock);
        if failed.is_empty() {
            self.refreshed_ns = began_ns;
        }
        failed
    }

    /// Lets all devices of a host have the lease of the first.
    fn share_leases(&mut self) {
        let first_of = |agent: &Arc<dyn Agent>, members: &[Member]| {
            let mut firsts = members.iter().filter(|member| !member.is_sibling);
            let first = firsts.find(|member| Arc::ptr_eq(&member.spec.agent, agent));
            first.map(|first| first.admitted.clone())
        };
        for at in 0..self.members.len() {
            if self.members[at].is_sibling
                && let Some(admitted) = first_of(&self.members[at].spec.agent, &self.members)
            {
                self.members[at].admitted = admitted;
            }
        }
    }

    /// Does the same with all hosts at the same time, but those that were given up; returns why it failed.
    fn of_each(
        &mut self,
        work: impl Fn(&mut Member, &Clock) -> Result<(), AgentError> + Sync,
    ) -> Vec<Reason> {
        let clock = &self.clock;
        let members = self.members.iter_mut().filter(|member| !member.is_given_up);
        let done = clock.together(members, |member| {
            work(member, clock)
                .err()
                .map(|error| failure_of(&member.record.name, &error))
        });
        done.into_iter().flatten().collect()
    }

    /// Goes on without `host`, which has no part in what follows.
    pub(crate) fn give_up(&mut self, host: &HostName) {
        if let Some(member) = self.member_mut(host) {
            member.is_given_up = true;
        }
    }

    /// Asks every host that has not been asked yet what it has; the hosts that were, and those that do not
    /// answer, are `None`: what they measure does not hang on it.
    pub(crate) fn survey(&self) -> Vec<Option<Inventory>> {
        self.clock.together(&self.members, |member| {
            let lease = Some(member.admitted.lease.clone());
            let is_asked = !member.is_surveyed && !member.is_given_up;
            is_asked.then(|| inventory(&member.spec, lease).ok())?
        })
    }

    /// Takes over what [`Fleet::survey`] returned.
    pub(crate) fn take_over(&mut self, inventories: Vec<Option<Inventory>>) {
        for (member, inventory) in self.members.iter_mut().zip(inventories) {
            member.take_over(inventory);
        }
    }

    /// Takes over what a trial has shown of the clock of `host`.
    pub(crate) fn take_over_clock(&mut self, host: &HostName, clock: ClockFilter) {
        if let Some(member) = self.member_mut(host) {
            member.record.clock = clock.fit().unwrap_or(member.record.clock);
            member.clock = clock;
        }
    }

    /// Returns the host called `name`.
    pub(crate) fn member(&self, name: &HostName) -> Option<&Member> {
        self.members.get(*self.places.get(name)?)
    }

    fn member_mut(&mut self, name: &HostName) -> Option<&mut Member> {
        self.members.get_mut(*self.places.get(name)?)
    }

    /// Returns the hosts, the server first.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns what the run's document says of the hosts.
    pub fn records(&self) -> Vec<HostRecord> {
        self.members
            .iter()
            .map(|member| member.record.clone())
            .collect()
    }

    /// Returns how many clients there are for trials that ask for no loss.
    pub fn clients(&self) -> u32 {
        self.clients_with(None).count() as u32
    }

    /// Returns the clients that `workload` is for: those whose links lose what it asks for. Links
    /// that nobody made lossy will do where it asks for none.
    pub(crate) fn clients_for(&self, workload: &Workload) -> Vec<&Member> {
        let asked: Vec<&Member> = self.clients_with(workload.link_loss_ppm).collect();
        match (asked.is_empty(), workload.link_loss_ppm) {
            (true, Some(0)) => self.clients_with(None).collect(),
            _ => asked,
        }
    }

    fn clients_with(&self, link_loss_ppm: Option<u32>) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |member| {
            member.record.part == HostPart::Client && member.record.link_loss_ppm == link_loss_ppm
        })
    }
}

impl Member {
    fn keep_lease(&mut self, request: &AdmitRequest) -> Result<(), AgentError> {
        let agent = &*self.spec.agent;
        self.admitted = match agent.renew(&self.admitted.lease) {
            Err(error) if error.refusal() == Some(RefusalCode::Gone) => {
                agent.admit(request).map_err(taken)
            }
            other => other,
        }?;
        Ok(())
    }

    fn read_clock(&mut self, clock: &Clock) -> Result<(), AgentError> {
        let agent = &*self.spec.agent;
        self.record.clock = clock.exchange(agent, &mut self.clock, EXCHANGES_PER_TRIAL)?;
        self.clock_stepped = self.clock.poll_step();
        Ok(())
    }

    /// Takes over what it has, if it was asked and answered.
    fn take_over(&mut self, inventory: Option<Inventory>) {
        let Some(inventory) = inventory else { return };
        let record = &mut self.record;
        record.link = inventory.link;
        record.snapshot = inventory.snapshot;
        record.observers = inventory.observers;
        let told = |what| rate_of_link(record, what);
        let rates = (told("speed_bps"), told("up_speed_bps"));
        // Who knows the one better knows both.
        if record.link_rate.is_none() {
            (record.link_rate, record.link_up_rate) = rates;
        }
        self.is_surveyed = true;
    }

    /// Returns `ADDRESS:PORT` of the member's data connections.
    pub(crate) fn data_socket(&self) -> String {
        match self.spec.data_address {
            Some(address) => address.to_string(),
            None => self.record.agent.clone(),
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for member in self.members.iter().filter(|member| !member.is_sibling) {
            // The lease ends by itself where the agent cannot be told.
            let _ = member.spec.agent.leave(&member.admitted.lease);
        }
    }
}

/// Returns why a host is not there for a run that has lost it: one that another run has by now is as good as
/// gone, and may come back.
fn taken(mut error: AgentError) -> AgentError {
    if let AgentError::Refused { refusal, .. } = &mut error
        && refusal.code == RefusalCode::Busy
    {
        refusal.code = RefusalCode::Gone;
    }
    error
}

/// Returns what the failure of a request to `host` means for a trial.
pub(crate) fn failure_of(host: &HostName, error: &AgentError) -> Reason {
    let failure = match (error.loss(), error.refusal()) {
        (Some(Loss::Gone), _) => HostFailure::Lost,
        (Some(Loss::Silent), _) => HostFailure::Silent,
        (None, Some(RefusalCode::Late)) => HostFailure::Late,
        // It forgot the run, or took the host back: asked anew it may have it again.
        (None, Some(RefusalCode::Gone)) => HostFailure::Gone,
        (None, Some(RefusalCode::Flows)) => HostFailure::Unconnected,
        // Another run, a thread that could not be made: these pass.
        (None, Some(RefusalCode::Busy | RefusalCode::Internal)) => HostFailure::Failed,
        (
            None,
            Some(RefusalCode::BadRequest | RefusalCode::Unauthorized | RefusalCode::Limited),
        ) => HostFailure::Refused,
        (None, None) => HostFailure::Failed,
    };
    Reason::Host {
        host: host.clone(),
        failure,
        words: with_causes(error),
    }
}

/// Returns what makes the error of a host that did not answer, or refused.
fn failed(spec: &HostSpec) -> impl FnOnce(AgentError) -> FleetError {
    let host = spec.name.clone();
    |source| FleetError::Agent { host, source }
}

/// Who a host says it is, and what it has.
type Survey = (AgentInfo, Option<Inventory>);

/// Asks every host who it is, and what it has if that comes first; before admission, since a host
/// that is in use, be it by this run, measures no memory.
///
/// All at once, which saves the few milliseconds that each takes; one after another where memory is
/// measured, since hosts may share a machine.
fn survey_all(
    clock: &Clock,
    specs: &[HostSpec],
    inventories: Inventories,
) -> Vec<Result<Survey, AgentError>> {
    let survey = |spec: &HostSpec| {
        let info = spec.agent.info()?;
        let has = match inventories {
            Inventories::First => Some(inventory(spec, None)?),
            Inventories::Underway => None,
        };
        Ok((info, has))
    };
    if specs.iter().any(|spec| spec.memory_copy) {
        specs.iter().map(survey).collect()
    } else {
        clock.together(specs, survey)
    }
}

fn inventory(spec: &HostSpec, lease: Option<String>) -> Result<Inventory, AgentError> {
    spec.agent.inventory(&InventoryRequest {
        address: spec.data_address.map(|address| address.ip().to_string()),
        memory_copy: spec.memory_copy,
        lease,
    })
}

fn rate_of_link(record: &HostRecord, what: &str) -> Option<BitsPerSec> {
    let name = format!("link.{}.{what}", record.link.as_deref()?);
    match record.snapshot.value(&name)? {
        FactValue::Number(rate, Unit::BitsPerSecond) => Some(BitsPerSec(*rate)),
        _ => None,
    }
}

impl Clock {
    /// Exchanges instants with `agent`, so often at the most or until its clock is known well; returns what
    /// is known of it.
    fn exchange(
        &self,
        agent: &dyn Agent,
        filter: &mut ClockFilter,
        exchanges: u32,
    ) -> Result<ClockFit, AgentError> {
        for done in 0..exchanges {
            let is_good = |fit: ClockFit| fit.uncertainty_ns <= UNCERTAINTY_NS_GOOD;
            if done >= EXCHANGES_PER_TRIAL && filter.fit().is_some_and(is_good) {
                break;
            }
            let asked_ns = self.now_ns();
            let reading = agent.clock()?;
            filter.handle_exchange(Exchange {
                asked_ns,
                received_ns: reading.received_ns,
                sent_ns: reading.sent_ns,
                answered_ns: self.now_ns(),
            });
        }
        filter.fit().ok_or_else(|| AgentError::NotAnAgent {
            address: agent.address(),
            what: format!("its clock passed more time than {exchanges} exchanges took"),
        })
    }
}
