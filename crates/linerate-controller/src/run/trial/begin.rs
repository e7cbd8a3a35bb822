//! The beginning of a trial: who does what, the flows, the instants.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linerate_agent::api::{Assignment, Changes, Placement, PollFrom, Prepared, TrialState};
use linerate_model::experiment::{Timing, changes};
use linerate_model::fleet::Multicast;
use linerate_model::manner::Transport;
use linerate_model::plan::Trial;
use linerate_model::probe::Probes;
use linerate_model::reason::{HostFailure, Reason};
use linerate_model::run::{ClockFit, HostPart, HostRecord};
use linerate_model::{BitsPerSec, HostName, Nanos};

use super::super::assign::{Terms, assignments};
use super::super::instants::{Instants, instants};
use super::super::placement::{Pinned, Placing, is_one_machine, is_over_loopback, on_one_machine};
use super::super::warm_up::first_windows;
use super::participant::{Participant, TrialAgent, each};
use super::trigger::Starter;
use super::{Attempt, RunContext, files};
use crate::fleet::{Fleet, Member};

/// How long flows that are connected may take to be taken up by the server.
const ARRIVAL_NS: u64 = 10_000_000_000;
/// Time between looks at flows that should be there in a moment: a quarter of what it has taken so far,
/// within these.
const LOOK_SOON_NS: (u64, u64) = (200_000, 5_000_000);
/// How much longer the notice is after hosts were late, and how much longer it gets at the most:
/// two hosts are given 6 ms, then 48, then 384.
const PATIENCE_STEP: u64 = 8;
const PATIENCE_MAX: u64 = 64;

impl<'a> Attempt<'a> {
    /// Makes the flows of all `attempts` but those that hosts spoil which have `failed`, agrees on instants that are the same for
    /// those that have theirs, and starts these; returns of each whether it has begun.
    pub(super) fn begin(attempts: &mut [Self], failed: &[Reason]) -> Vec<Result<(), Reason>> {
        // Before a datagram can be sent, all have heard of it.
        let is_sent = attempts.iter().any(|attempt| attempt.multicast().is_some());
        let mut patience = if is_sent { PATIENCE_STEP } else { 1 };
        loop {
            let begun = Self::begin_with(attempts, failed, patience);
            let is_late = |begun: &Result<(), Reason>| {
                let failure = begun.as_ref().err().and_then(Reason::host_failure);
                failure == Some(HostFailure::Late)
            };
            if patience >= PATIENCE_MAX || !begun.iter().any(is_late) {
                return begun;
            }
            // Nothing was measured yet: once more from the beginning, with more notice.
            for attempt in &mut *attempts {
                attempt.abort();
                attempt.participants = attempt.assigned();
            }
            patience *= PATIENCE_STEP;
        }
    }

    fn begin_with(
        attempts: &mut [Self],
        failed: &[Reason],
        patience: u64,
    ) -> Vec<Result<(), Reason>> {
        let Some(clock) = attempts.first().map(|attempt| &attempt.fleet.clock) else {
            return Vec::new();
        };
        let made = clock.together(&mut *attempts, |attempt| match attempt.spoilt_by(failed) {
            Some(why) => Err(why),
            None => attempt.make_flows(),
        });
        let with_flows = attempts.iter().zip(&made).filter(|(_, made)| made.is_ok());
        let clocks: Vec<ClockFit> = attempts.iter().flat_map(Self::clocks).collect();
        let instants = with_flows.map(|(attempt, _)| attempt.instants(patience, &clocks));
        let Some(at) = instants.reduce(Instants::of_both) else {
            return made;
        };
        let by_multicast = attempts.iter().find_map(Self::multicast);
        let starter = by_multicast.map(|(to, agent)| Starter::open(to, &agent));
        let with_result = attempts.iter_mut().zip(made);
        let begun = clock.together(with_result, |(attempt, made)| {
            made?;
            attempt.at = at;
            attempt.start(starter.as_ref())
        });
        if let Some(Ok(starter)) = starter {
            starter.send(clock, at.start_ns);
        }
        begun
    }

    /// Returns where the datagram goes that starts this trial of a fleet, and a host that hears it.
    fn multicast(&self) -> Option<(Multicast, TrialAgent<'a>)> {
        let to = self.run.request.in_step.multicast?;
        let is_of_fleet = !self.trial.hosts.is_empty();
        let first = self.participants.first().filter(|_| is_of_fleet)?;
        Some((to, first.agent))
    }

    /// Returns an attempt at `trial` of which nothing has been done yet.
    pub(super) fn new(run: RunContext<'a>, fleet: &'a Fleet, trial: &'a Trial) -> Self {
        let experiment = run.request.plan.experiment(&trial.experiment);
        let mut attempt = Self {
            run,
            fleet,
            trial,
            probes: experiment.map_or(Probes::default(), |experiment| experiment.probes),
            participants: Vec::new(),
            at: instants(fleet.clock.now_ns(), &trial.timing, &[], 0, 1),
        };
        attempt.participants = attempt.assigned();
        attempt.at = attempt.instants(1, &attempt.clocks());
        attempt
    }

    /// Makes the flows.
    fn make_flows(&mut self) -> Result<(), Reason> {
        let Some((server, clients)) = self.participants.split_first_mut() else {
            return Err(Reason::NoServer);
        };
        let timing = &self.trial.timing;
        let prepared = server.prepare(timing)?;
        for client in &mut *clients {
            point_at(&mut client.assignment, &prepared);
            client.assignment.flow_rate_max =
                share(prepared.rate_limit, server.assignment.all_flows().count());
        }
        let clock = &self.fleet.clock;
        each(clock, clients, |client| client.prepare(timing).map(drop))?;
        self.await_flows()
    }

    /// Starts at the instants that were agreed on, or when `starter` says so.
    fn start(&mut self, starter: Option<&Result<Starter, Reason>>) -> Result<(), Reason> {
        let (clock, at) = (&self.fleet.clock, self.at);
        let starter = match starter {
            Some(Err(why)) => return Err(why.clone()),
            Some(Ok(starter)) => Some(starter),
            None => None,
        };
        each(clock, &mut self.participants, |one| {
            let asked_ns = clock.now_ns();
            let mut request = at.on_host(one.agent.clock());
            if let Some(starter) = starter {
                request = starter.arm(&one.agent, request)?;
            }
            match one.agent.start(&request) {
                // Whether it has heard is seen by following it.
                Err(why) if why.host_failure() == Some(HostFailure::Silent) => {
                    one.handle_failure(asked_ns, why);
                    Ok(())
                }
                told => told,
            }
        })
    }

    /// Waits until the server has taken up every flow, so that the start is not past by then.
    fn await_flows(&self) -> Result<(), Reason> {
        let Some(server) = self.participants.first() else {
            return Ok(());
        };
        let clock = &self.fleet.clock;
        let began_ns = clock.now_ns();
        let mut looks = 0;
        loop {
            let state = server.agent.poll(PollFrom::default())?.state;
            let TrialState::Gathering { missing } = state else {
                return Ok(());
            };
            let waited_ns = clock.now_ns() - began_ns;
            if waited_ns > ARRIVAL_NS {
                let host = server.agent.host().clone();
                return Err(Reason::FlowsMissing { host, missing });
            }
            if self.run.stop.load(Ordering::Relaxed) {
                return Err(Reason::Interrupted);
            }
            // Whoever else took a flow has said so to its client.
            looks += 1;
            let asked = if looks > 1 {
                1..
            } else {
                self.participants.len()..
            };
            for client in &self.participants[asked] {
                if let TrialState::Failed { why } = client.agent.poll(PollFrom::default())?.state {
                    return Err(client.failed(why));
                }
            }
            let (least, most) = LOOK_SOON_NS;
            clock.sleep(Duration::from_nanos((waited_ns / 4).clamp(least, most)));
        }
    }

    /// Returns what is known of the clocks of its hosts.
    fn clocks(&self) -> Vec<ClockFit> {
        self.participants
            .iter()
            .map(|one| *one.agent.clock())
            .collect()
    }

    /// Returns the instants of the trial if the start requests go out now, to hosts with these `clocks`: its own, and those of
    /// trials that begin at the same time.
    fn instants(&self, patience: u64, clocks: &[ClockFit]) -> Instants {
        let (trial, participants) = (self.trial, &self.participants);
        let round_trip = participants.iter().filter_map(|one| one.round_trip).max();
        let records = || participants.iter().map(|one| &one.agent.member.record);
        let turns = trial
            .workloads()
            .map(|workload| first_windows(workload, records()));
        let turn = turns.max().unwrap_or_default();
        let asked = trial.timing.warm_up;
        let warm_up = self.run.request.warm_up.length(asked, round_trip, turn);
        // Every agent has limits of its own.
        let granted = participants.iter().map(|one| one.warm_up_more.0).min();
        let most = Nanos(asked.0.saturating_add(granted.unwrap_or(0)));
        let timing = Timing {
            warm_up: warm_up.min(most),
            ..trial.timing
        };
        let flows = trial.workloads().map(|workload| workload.connections).sum();
        instants(self.fleet.clock.now_ns(), &timing, clocks, flows, patience)
    }

    /// Returns the hosts that have flows in this trial with their parts, the server first.
    fn assigned(&self) -> Vec<Participant<'a>> {
        let (trial, request) = (self.trial, self.run.request);
        let Some((server, clients)) = self.hosts() else {
            return Vec::new();
        };
        let binds: Vec<Option<String>> = clients
            .iter()
            .map(|member| member.spec.bind.map(bind_text))
            .collect();
        let capture = self
            .probes
            .capture
            .and_then(|asked| files::options(asked, self.run.captures_bytes, 1 + clients.len()));
        let over_loopback = capture.is_some() && is_over_loopback(&self.records());
        let terms = Terms {
            server_data: &server.data_socket(),
            binds: &binds,
            cookie: &cookie(),
            sample_interval: request.sample_interval,
            pinned: &self.pinned(),
            probes: Probes {
                capture,
                ..self.probes
            },
            warm_up: request.warm_up,
        };
        let (server_assignment, client_assignments) = assignments(trial, &terms);
        let participant = |member: &'a Member, mut assignment: Assignment| {
            assignment.capture_at =
                capture.and_then(|_| files::device_of(member, server, over_loopback));
            let levels = changes(&trial.cell);
            assignment.changes = (!levels.is_empty()).then(|| Changes {
                device: member.record.link.clone(),
                levels,
            });
            let trial = trial.id;
            Participant::new(TrialAgent { member, trial }, assignment)
        };
        let client_assignments = client_assignments.into_iter();
        std::iter::once(participant(server, server_assignment))
            .chain(client_assignments.map(|(at, own)| participant(clients[at], own)))
            .collect()
    }

    /// Returns the host that takes up the flows of the trial, and those that open them: the ones that it names, or those of
    /// the run by their parts.
    fn hosts(&self) -> Option<(&'a Member, Vec<&'a Member>)> {
        let members = &self.fleet.members;
        let named = |name: &HostName| self.fleet.member(name);
        if let Some((server, clients)) = self.trial.hosts.split_first() {
            let clients: Option<Vec<&Member>> = clients.iter().map(named).collect();
            return named(server).zip(clients);
        }
        let is_server = |member: &&Member| member.record.part == HostPart::Server;
        let server = members.iter().find(is_server)?;
        Some((server, self.fleet.clients_for(&self.trial.workload)))
    }

    /// Returns what the run's document says of them.
    fn records(&self) -> Vec<HostRecord> {
        let Some((server, clients)) = self.hosts().filter(|_| !self.trial.hosts.is_empty()) else {
            return self.fleet.records();
        };
        let all = std::iter::once(server).chain(clients);
        all.map(|member| member.record.clone()).collect()
    }

    /// Returns the CPUs of both ends, and who chose them.
    fn pinned(&self) -> Pinned {
        let request = self.run.request;
        let as_asked = |placement| Pinned {
            server: request.server_cpus.clone(),
            clients: request.client_cpus.clone(),
            placement,
            workers_max: request.workers_max,
        };
        // A workload that says how many CPUs it has leaves nothing to choose but which, to each agent.
        let confined = self.trial.workload.manner.cpus;
        if let Some(cpus) = confined.filter(|_| self.trial.beside.is_empty()) {
            return Pinned {
                server: Vec::new(),
                clients: Vec::new(),
                placement: Placement::AsAsked,
                workers_max: request.workers_max.or(Some(cpus)),
            };
        }
        let Placing::Auto { cpus } = &request.placing else {
            return as_asked(Placement::AsAsked);
        };
        let records = self.records();
        if !is_one_machine(&records) {
            return as_asked(Placement::NearLink);
        }
        // CPUs are chosen for one kind of traffic; of several the scheduler deals them.
        if !self.trial.beside.is_empty() {
            return as_asked(Placement::AsAsked);
        }
        let (workload, workers_max) = (&self.trial.workload, request.workers_max);
        on_one_machine(workload, workers_max, cpus, is_over_loopback(&records))
    }
}

/// Tells a client where the server expects its flows, and which server that is.
fn point_at(client: &mut Assignment, server: &Prepared) {
    let is_local = client.manner.transport == Transport::Unix;
    if let Some(name) = server.socket_name.as_ref().filter(|_| is_local) {
        client.peer = Some(format!("unix:@{name}"));
        client.bind = None;
    }
    client.server.clone_from(&server.instance);
}

/// Returns a local address as agents read it, with the number of a device where it has one.
fn bind_text(address: SocketAddr) -> String {
    match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => address.to_string(),
        _ => address.ip().to_string(),
    }
}

/// Returns each flow's share of a rate.
fn share(rate: Option<BitsPerSec>, flows: usize) -> Option<BitsPerSec> {
    rate.map(|rate| BitsPerSec(rate.0 / flows.max(1) as f64))
}

/// Returns a cookie that nobody can guess.
fn cookie() -> String {
    let mut bytes = [0; 16];
    // The system's generator does not fail once it has been seeded at boot (getrandom(2)).
    getrandom::fill(&mut bytes).expect("the system's random generator works");
    linerate_model::hex::encode(&bytes)
}
