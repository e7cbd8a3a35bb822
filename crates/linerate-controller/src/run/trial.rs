//! One trial: prepare, agree on the instants, start, follow, collect.

use std::collections::HashMap;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_agent::api::{
    AgentError, Assignment, CaptureAt, FlowOutcome, Placement, PollFrom, Prepared, RefusalCode,
    TrialState, TrialStatus,
};
use linerate_model::capture::{
    CaptureOptions, CaptureOutcome, FILE_BYTES_MAX, FILE_BYTES_MIN, TrialCapture,
};
use linerate_model::experiment::{Level, Timing};
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::probe::Probes;
use linerate_model::profile::{Stack, TrialProfile};
use linerate_model::run::{ClockFit, FlowRecord, HostPart, TrialRecord, Validity};
use linerate_model::sample::{Sample, Subject, TrialSample};
use linerate_model::samples::Samples;
use linerate_model::setting::{SettingPool, Settings};
use linerate_model::workload::{Part, Setting};
use linerate_model::{BitsPerSec, Bytes, HostName, Nanos};

use super::assign::{Terms, assignments};
use super::instants::{Instants, instants};
use super::placement::{Placed, Placing, is_one_machine, is_over_loopback, on_one_machine};
use super::warm_up::first_windows;
use super::{Progress, RunRequest, place, validity};
use crate::fleet::{Fleet, Member};
use crate::record::Captured;
use crate::together::together;

/// Time between looks at flows that should be there in a moment: a quarter of what it has taken so far,
/// within these.
const LOOK_SOON_NS: std::ops::RangeInclusive<u64> = 200_000..=5_000_000;
/// How long after an interval's end its reading has been made, on all but the busiest hosts.
const READ_NS: u64 = 20_000_000;
/// How long before the stop hosts are looked at for the last time: most of what there is has been taken
/// over then, and does not keep them from reading the end of the window and from draining.
const LAST_LOOK_NS: u64 = 20_000_000;
/// How long after the stop a near host may have drained one flow and handed in its results.
const DRAINED_NS: u64 = 1_000_000;
/// Time between looks from then on: an eighth of what it has taken since the stop, within these.
const LOOK_AT_END_NS: std::ops::RangeInclusive<u64> = 300_000..=5_000_000;
/// Longest time between looks at a trial that a volume ends: nobody knows when that will be.
const VOLUME_LOOK: Nanos = Nanos::from_ms(50);
/// Longest sleep between two looks at the stop flag.
const STOP_LOOK: Duration = Duration::from_millis(50);
/// How long after the stop a trial may take to hand in its results: receivers drain for 2 to 6 s, the
/// agent gives up after 10 s.
const OVERTIME_NS: u64 = 12_000_000_000;
/// How long flows that are connected may take to be taken up by the server.
const ARRIVAL_NS: u64 = 10_000_000_000;

/// How much longer the notice is after hosts were late, and how much longer it gets at the most:
/// two hosts are given 6 ms, then 48, then 384.
const PATIENCE_STEP: u64 = 8;
const PATIENCE_MAX: u64 = 64;

/// Bytes that the captures of one run take together at the most: a bundle should be one that can be
/// copied, and a report is rendered from all of them.
const CAPTURES_BYTES_MAX: u64 = 1 << 30;
/// Fewer are not worth a capture: handshakes and a few packets.
const CAPTURE_BYTES_MIN: u64 = FILE_BYTES_MIN;
/// Parts of one capture that are asked for at the most: agents hand over a mebibyte at once.
const CAPTURE_PARTS_MAX: usize = 2 * (FILE_BYTES_MAX >> 20) as usize;

/// How the traffic of a trial ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    /// At the instant agreed on.
    Planned,
    /// When the user had seen enough.
    Interrupted,
    /// When the volume that was asked for had been received.
    AllSent,
    /// When a server that is no agent gave up, which says so in these words. What this host
    /// measured until then is all there ever will be.
    Forsaken(String),
}

/// What one trial left.
pub(super) struct Driven {
    /// What is taken down.
    pub captured: Captured,
    /// The host that may be gone.
    pub lost: Option<HostName>,
    /// Whether it would fail again for the same reason.
    pub lasting: bool,
    /// Why the run ends with what this trial measured.
    pub cut_short: Option<String>,
}

/// Why a trial has no result.
struct Spoilt {
    why: String,
    /// The host that may be gone, if that is why.
    lost: Option<HostName>,
    /// Whether a host got its instants too late.
    late: bool,
    /// Whether it would fail again for the same reason.
    lasting: bool,
}

impl Spoilt {
    fn because(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            lost: None,
            late: false,
            lasting: false,
        }
    }

    fn of_agent(host: &HostName, error: &AgentError) -> Self {
        let mut why = format!("host {host}: {error}");
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            why.push_str(&format!(": {inner}"));
            cause = inner.source();
        }
        let late = error.refusal() == Some(RefusalCode::Late);
        Self {
            why,
            lost: error.is_loss().then(|| host.clone()),
            late,
            lasting: error.refusal().is_some() && !late,
        }
    }
}

/// A host that takes part in the trial, and what came of it so far.
struct Participant<'a> {
    member: &'a Member,
    assignment: Assignment,
    shared_with: u32,
    /// Samples taken over so far, on the window's axis.
    samples: Samples,
    /// Those that nobody has been shown yet.
    news: Samples,
    next: usize,
    flows: Vec<FlowOutcome>,
    pool: SettingPool,
    stacks: Vec<Stack>,
    notes: Vec<String>,
    capture: Option<CaptureOutcome>,
    /// The file of the capture.
    capture_file: Vec<u8>,
    finished: bool,
    /// Why it gave up in the middle, if it is no agent.
    forsook: Option<String>,
    /// The round trip that its handshakes measured.
    round_trip: Option<Nanos>,
    /// What its agent lets a long path add to the warm-up.
    warm_up_more: Nanos,
}

impl Participant<'_> {
    fn is_foreign(&self) -> bool {
        self.member.record.foreign.is_some()
    }

    fn host(&self) -> &HostName {
        &self.member.record.name
    }

    fn clock(&self) -> &ClockFit {
        &self.member.record.clock
    }
}

/// What is the same for every trial of a run.
pub(super) struct Driver<'a> {
    pub request: &'a RunRequest,
    pub stop: &'a AtomicBool,
    /// Start of the run on the fleet's clock.
    pub began_ns: u64,
    /// Bytes that the captures of the trials so far take.
    pub captures_bytes: u64,
}

impl Driver<'_> {
    /// Drives one trial to its end.
    pub fn drive(
        &self,
        fleet: &mut Fleet,
        trial: &Trial,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Driven {
        let refreshed = match fleet.is_fresh() {
            true => Ok(()),
            false => fleet.refresh(),
        };
        let mut spoilt = refreshed
            .err()
            .map(|(host, error)| Spoilt::of_agent(&host, &error));
        let members = &*fleet;
        let mut participants = self.participants(members, trial);
        let mut at = self.instants(members, trial, &participants, 1);
        let mut patience = 1;
        while spoilt.is_none() {
            match self.begin(members, trial, &mut participants, &mut at, patience) {
                Ok(()) => break,
                Err(why) if why.late && patience < PATIENCE_MAX => {
                    // Nothing was measured yet: once more from the beginning, with more notice.
                    abort(trial, &participants);
                    participants = self.participants(members, trial);
                    patience *= PATIENCE_STEP;
                }
                Err(why) => spoilt = Some(why),
            }
        }
        let mut inventories = Vec::new();
        if spoilt.is_none() {
            // All threads there are have been made, and workers wait for the start.
            match members.survey() {
                Ok(all) => inventories = all,
                Err((host, error)) => spoilt = Some(Spoilt::of_agent(&host, &error)),
            }
        }
        let mut end = End::Planned;
        if spoilt.is_none() {
            match self.follow(members, trial, &mut participants, &at, watch) {
                Ok(how) => end = how,
                Err(why) => spoilt = Some(why),
            }
        }
        if spoilt.is_some() {
            abort(trial, &participants);
        }
        let is_forsaken = matches!(end, End::Forsaken(_));
        let captured = self.capture(trial, &at, participants, end, spoilt.as_ref());
        // The first flag says how it was cut.
        let cut_short = captured.record.flags.first().filter(|_| is_forsaken);
        fleet.take_over(inventories);
        let mut settings = captured
            .flows
            .iter()
            .map(|flow| (&flow.host, &flow.settings));
        let is_capped = settings.any(|(host, settings)| validity::capped(host, settings).is_some());
        Driven {
            lasting: is_capped || spoilt.as_ref().is_some_and(|spoilt| spoilt.lasting),
            cut_short: cut_short.cloned(),
            captured,
            lost: spoilt.and_then(|spoilt| spoilt.lost),
        }
    }

    fn instants(
        &self,
        fleet: &Fleet,
        trial: &Trial,
        participants: &[Participant<'_>],
        patience: u64,
    ) -> Instants {
        let clocks: Vec<ClockFit> = participants
            .iter()
            .map(|participant| *participant.clock())
            .collect();
        let flows = trial.workload.connections;
        let round_trips = participants.iter().filter_map(|one| one.round_trip);
        let asked = trial.timing.warm_up;
        let records = participants.iter().map(|one| &one.member.record);
        let turn = first_windows(&trial.workload, records);
        let warm_up = self.request.warm_up.length(asked, round_trips.max(), turn);
        // Every agent has limits of its own.
        let granted = participants.iter().map(|one| one.warm_up_more.0).min();
        let most = Nanos(asked.0 + granted.unwrap_or(0));
        let timing = Timing {
            warm_up: warm_up.min(most),
            ..trial.timing
        };
        instants(fleet.clock.now_ns(), &timing, &clocks, flows, patience)
    }

    /// Returns the CPUs of both ends, and who chose them.
    fn placed(&self, fleet: &Fleet, trial: &Trial) -> (Placed, Placement) {
        let none = Placed {
            server: self.request.server_cpus.clone(),
            clients: self.request.client_cpus.clone(),
            why: "",
            workers_max: self.request.workers_max,
        };
        let Placing::Auto { cpus } = &self.request.placing else {
            return (none, Placement::AsAsked);
        };
        let records = fleet.records();
        match is_one_machine(&records) {
            true => {
                let (workers_max, over_loopback) =
                    (self.request.workers_max, is_over_loopback(&records));
                let placed = on_one_machine(&trial.workload, workers_max, cpus, over_loopback);
                let why = placed.why.to_owned();
                (placed, Placement::Chosen { why })
            }
            false => (none, Placement::NearLink),
        }
    }

    /// Returns what is looked at in `trial` beyond what every trial shows.
    fn probes(&self, trial: &Trial) -> Probes {
        let mut experiments = self.request.plan.experiments.iter();
        let own = experiments.find(|experiment| experiment.name == trial.experiment);
        own.map_or(Probes::default(), |experiment| experiment.probes)
    }

    /// Returns what each of `hosts` may capture of what is asked for, if that is anything.
    fn capture_options(
        &self,
        asked: Option<CaptureOptions>,
        hosts: usize,
    ) -> Option<CaptureOptions> {
        let asked = asked?;
        let left = CAPTURES_BYTES_MAX.saturating_sub(self.captures_bytes);
        let bytes = asked.bytes.0.min(left / hosts.max(1) as u64);
        (bytes >= CAPTURE_BYTES_MIN).then_some(CaptureOptions {
            bytes: Bytes(bytes),
            ..asked
        })
    }

    /// Returns the hosts that have flows in this trial, the server first.
    fn participants<'a>(&self, fleet: &'a Fleet, trial: &Trial) -> Vec<Participant<'a>> {
        let clients = fleet.clients_for(&trial.workload);
        let binds: Vec<Option<String>> = clients
            .iter()
            .map(|member| member.spec.bind.map(|bind| bind.to_string()))
            .collect();
        let is_server = |member: &&Member| member.record.part == HostPart::Server;
        let Some(server) = fleet.members.iter().find(is_server) else {
            return Vec::new();
        };
        let (placed, placement) = self.placed(fleet, trial);
        let mut probes = self.probes(trial);
        probes.capture = self.capture_options(probes.capture, 1 + clients.len());
        let over_loopback = probes.capture.is_some() && is_over_loopback(&fleet.records());
        let terms = Terms {
            server_data: &server.data_socket(),
            binds: &binds,
            cookie: &cookie(),
            sample_interval: self.request.sample_interval,
            server_cpus: &placed.server,
            client_cpus: &placed.clients,
            placement,
            probes,
            workers_max: placed.workers_max,
            warm_up: self.request.warm_up,
        };
        let (server_assignment, client_assignments) = assignments(trial, &terms);
        let participant = |member: &'a Member, assignment| Participant {
            member,
            assignment: Assignment {
                capture_at: probes
                    .capture
                    .and_then(|_| capture_at(member, server, over_loopback)),
                ..assignment
            },
            shared_with: member.shared_with,
            samples: Samples::default(),
            news: Samples::default(),
            next: 0,
            flows: Vec::new(),
            pool: SettingPool::default(),
            stacks: Vec::new(),
            notes: Vec::new(),
            capture: None,
            capture_file: Vec::new(),
            finished: false,
            forsook: None,
            round_trip: None,
            warm_up_more: Nanos(0),
        };
        let mut all = vec![participant(server, server_assignment)];
        for (client, assignment) in client_assignments {
            all.push(participant(clients[client], assignment));
        }
        all
    }

    /// Makes the flows, agrees on the instants and starts.
    fn begin(
        &self,
        fleet: &Fleet,
        trial: &Trial,
        participants: &mut [Participant<'_>],
        at: &mut Instants,
        patience: u64,
    ) -> Result<(), Spoilt> {
        let Some((server, clients)) = participants.split_first_mut() else {
            return Err(Spoilt::because("the run has no server"));
        };
        let prepared = prepare(server)?;
        let rate_limit = prepared.rate_limit;
        let ports = prepared.ports.iter().map(|own| (own.flow, own.port));
        let ports: HashMap<_, _> = ports.collect();
        for client in &mut *clients {
            if let Some(name) = &prepared.socket_name {
                client.assignment.peer = Some(format!("unix:@{name}"));
                client.assignment.bind = None;
            }
            for flow in &mut client.assignment.flows {
                flow.port = ports.get(&flow.flow).copied();
            }
            client.assignment.flow_rate_max = share(rate_limit, server.assignment.flows.len());
        }
        each(clients.iter_mut(), |client| prepare(client).map(|_| ()))?;
        self.await_flows(fleet, trial, server)?;
        *at = self.instants(fleet, trial, participants, patience);
        let instants = *at;
        each(participants.iter_mut(), |participant| {
            let start = instants.on_host(participant.clock());
            ask(participant, |participant| {
                let member = participant.member;
                member.spec.agent.start(&member.lease, trial.id, &start)
            })
        })
    }

    /// Waits until the server has taken up every flow, so that the start is not past by then.
    fn await_flows(
        &self,
        fleet: &Fleet,
        trial: &Trial,
        server: &mut Participant<'_>,
    ) -> Result<(), Spoilt> {
        let began_ns = fleet.clock.now_ns();
        loop {
            let status: TrialStatus = ask(server, |server| {
                let member = server.member;
                member
                    .spec
                    .agent
                    .poll(&member.lease, trial.id, PollFrom::default())
            })?;
            let waited_ns = fleet.clock.now_ns() - began_ns;
            match status.state {
                TrialState::Gathering { missing } if waited_ns > ARRIVAL_NS => {
                    let host = server.host();
                    let why = format!("host {host}: {missing} flows have not arrived");
                    return Err(Spoilt::because(why));
                }
                TrialState::Gathering { .. } if self.stop.load(Ordering::Relaxed) => {
                    return Err(Spoilt::because("interrupted"));
                }
                TrialState::Gathering { .. } => {
                    let rest_ns = within(waited_ns / 4, &LOOK_SOON_NS);
                    std::thread::sleep(Duration::from_nanos(rest_ns));
                }
                _ => return Ok(()),
            }
        }
    }

    /// Takes over samples until every host has handed in its results, and then what it captured.
    fn follow(
        &self,
        fleet: &Fleet,
        trial: &Trial,
        participants: &mut [Participant<'_>],
        at: &Instants,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Result<End, Spoilt> {
        let mut end = End::Planned;
        let mut stop_ns = at.stop_ns;
        let by_volume = trial.workload.manner.bytes_max.is_some();
        let look_interval = match by_volume {
            true => self.request.look_interval.min(VOLUME_LOOK),
            false => self.request.look_interval,
        };
        let mut look_ns = next_look(at.start_ns, at.begin_ns, look_interval, stop_ns);
        loop {
            if end == End::Planned && self.is_interrupted_before(fleet, look_ns) {
                stop_ns = self.interrupt(fleet, trial, participants, at, "interrupted")?;
                end = End::Interrupted;
            }
            sleep_until(fleet, look_ns);
            // Taking over the readings of thousands of flows takes seconds on a busy machine, which
            // is no delay of the hosts.
            let looked_ns = fleet.clock.now_ns();
            let unfinished = participants.iter_mut().filter(|p| !p.finished);
            each(unfinished, |participant| look(participant, trial, at))?;
            let now = fleet.clock.now_ns();
            // All hosts at once: what one host says alone would look like a gap in the others.
            let news = participants.iter_mut().map(|p| take(&mut p.news));
            let news: Vec<Samples> = news.collect();
            watch(Progress::Look {
                trial,
                at_ns: now as i64 - at.begin_ns as i64,
                samples: &news,
            });
            // Moved, not copied: the readings of thousands of flows are megabytes.
            for (participant, news) in participants.iter_mut().zip(news) {
                participant.samples.append(news);
            }
            if let Some(why) = forsaken(participants).filter(|_| end == End::Planned) {
                stop_ns = self.interrupt(fleet, trial, participants, at, &why)?;
                end = End::Forsaken(why);
            }
            if participants.iter().all(|participant| participant.finished) {
                let captured = participants.iter_mut().filter(|p| p.capture.is_some());
                each(captured, |participant| {
                    fetch_capture(participant, trial);
                    Ok(())
                })?;
                let all_sent = end == End::Planned && by_volume && now < at.stop_ns;
                return Ok(if all_sent { End::AllSent } else { end });
            }
            if looked_ns > stop_ns + OVERTIME_NS {
                return Err(Spoilt::because(
                    "the hosts did not hand in their results in time",
                ));
            }
            look_ns = next_look(now, at.begin_ns, look_interval, stop_ns);
        }
    }

    /// Waits for the instant of the next look; returns true if the user interrupts before.
    fn is_interrupted_before(&self, fleet: &Fleet, instant_ns: u64) -> bool {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return true;
            }
            let now = fleet.clock.now_ns();
            if now >= instant_ns {
                return false;
            }
            std::thread::sleep(Duration::from_nanos(instant_ns - now).min(STOP_LOOK));
        }
    }

    /// Ends the traffic of a trial that goes on no longer, if its numbers are worth keeping: a single
    /// measurement has no others. Returns the instant at which it stopped.
    fn interrupt(
        &self,
        fleet: &Fleet,
        trial: &Trial,
        participants: &mut [Participant<'_>],
        at: &Instants,
        why: &str,
    ) -> Result<u64, Spoilt> {
        let now = fleet.clock.now_ns();
        if self.request.plan.trials.len() > 1 || now <= at.begin_ns {
            return Err(Spoilt::because(why));
        }
        each(participants.iter_mut(), |participant| {
            if participant.finished {
                return Ok(());
            }
            ask(participant, |participant| {
                let member = participant.member;
                member.spec.agent.stop(&member.lease, trial.id)
            })
        })?;
        Ok(now)
    }

    /// Puts together what the hosts handed in and decides whether it may be averaged.
    fn capture(
        &self,
        trial: &Trial,
        at: &Instants,
        participants: Vec<Participant<'_>>,
        end: End,
        spoilt: Option<&Spoilt>,
    ) -> Captured {
        let window = match end {
            End::Planned => trial.timing.measure,
            End::Interrupted | End::AllSent | End::Forsaken(_) => {
                common_window(&participants).min(trial.timing.measure)
            }
        };
        let mut captured = Captured {
            record: TrialRecord {
                trial: trial.id,
                validity: Validity::Valid,
                flags: Vec::new(),
                offset_ns: at.begin_ns.saturating_sub(self.began_ns),
                window_ns: window.0,
                start_skew_ns: None,
                start_skew_uncertainty_ns: None,
            },
            flows: Vec::new(),
            samples: Samples::default(),
            profiles: Vec::new(),
            captures: Vec::new(),
        };
        let asked = self.probes(trial).capture.is_some();
        let sending = participants
            .iter()
            .filter(|participant| sends(&participant.assignment));
        let uncertainties: Vec<u64> = sending
            .map(|sender| sender.clock().uncertainty_ns)
            .collect();
        // Flows of one host share its clock, so their spread needs none.
        let uncertainty_ns = match uncertainties.as_slice() {
            [] | [_] => 0,
            several => several.iter().copied().max().unwrap_or(0),
        };
        let mut reasons = vec![spoilt.map(|spoilt| spoilt.why.clone())];
        let cut = match &end {
            End::Planned | End::AllSent => None,
            End::Interrupted => Some("interrupted"),
            End::Forsaken(why) => Some(why.as_str()),
        };
        if let Some(why) = cut {
            let flag = format!("{why} {window} after the begin of the window");
            captured.record.flags.push(flag);
        }
        for mut participant in participants {
            // What came together with the failure of another host.
            participant.samples.append(take(&mut participant.news));
            let host = participant.host().clone();
            let admission = participant.member.record.admission;
            captured.record.flags.extend(validity::shared(
                &host,
                admission,
                participant.shared_with,
            ));
            for note in &participant.notes {
                captured.record.flags.push(format!("host {host}: {note}"));
            }
            let settings = participant.flows.iter().map(|flow| &flow.settings);
            captured
                .record
                .flags
                .extend(validity::fell_short(&host, settings));
            captured.flows.reserve_exact(participant.flows.len());
            for flow in take(&mut participant.flows) {
                reasons.push(validity::capped(&host, &flow.settings));
                captured
                    .samples
                    .extend(stall_sample(&host, trial, window, &flow));
                captured
                    .flows
                    .push(flow_record(trial, &participant, flow, at));
            }
            // A volume may take less time than a host needs to begin; rates use the true instants.
            let is_timed = end != End::AllSent && !participant.is_foreign();
            if spoilt.is_none() && is_timed {
                reasons.push(validity::uncovered(&host, window, &participant.samples));
            }
            captured.samples.append(take(&mut participant.samples));
            if asked && spoilt.is_none() {
                captured.captures.push((
                    TrialCapture {
                        trial: trial.id,
                        host: host.clone(),
                        file: None,
                        outcome: capture_outcome(&mut participant),
                    },
                    take(&mut participant.capture_file),
                ));
            }
            let stacks = take(&mut participant.stacks);
            if !stacks.is_empty() {
                captured.profiles.push(TrialProfile {
                    trial: trial.id,
                    host,
                    stacks,
                });
            }
        }
        if matches!(end, End::Planned | End::AllSent) {
            reasons.push(validity::died(&captured.flows));
        }
        captured.record.start_skew_ns = start_skew(&captured.flows);
        captured.record.start_skew_uncertainty_ns =
            captured.record.start_skew_ns.map(|_| uncertainty_ns);
        captured.record.validity = validity::verdict(reasons);
        captured
    }
}

/// Ends the trial on all hosts. Agents that cannot be told end it by its deadlines.
fn abort(trial: &Trial, participants: &[Participant<'_>]) {
    for participant in participants {
        let agent = &participant.member.spec.agent;
        let _ = agent.abort(&participant.member.lease, trial.id);
    }
}

/// Returns when hosts that were looked at at `now_ns` are looked at again: when they have read the end
/// of an interval of the window, so that its line is shown as it ends.
fn next_look(now_ns: u64, begin_ns: u64, interval: Nanos, stop_ns: u64) -> u64 {
    let last_ns = stop_ns.saturating_sub(LAST_LOOK_NS);
    let drained_ns = stop_ns + DRAINED_NS;
    if now_ns < last_ns {
        let (read_ns, interval_ns) = (begin_ns + READ_NS, interval.0.max(1));
        // In the warm-up, too, which may be longer than an interval.
        let since_ns = now_ns as i64 - read_ns as i64;
        let left_ns = interval_ns - since_ns.rem_euclid(interval_ns as i64) as u64;
        return (now_ns + left_ns).min(last_ns);
    }
    if now_ns < drained_ns {
        return drained_ns;
    }
    now_ns + within((now_ns - stop_ns) / 8, &LOOK_AT_END_NS)
}

fn within(number: u64, bounds: &std::ops::RangeInclusive<u64>) -> u64 {
    number.clamp(*bounds.start(), *bounds.end())
}

/// Returns the part of the window that every host has read to its end.
fn common_window(participants: &[Participant<'_>]) -> Nanos {
    let last = |participant: &Participant<'_>| {
        let instants = participant.samples.instants(participant.host());
        instants.max().unwrap_or(0)
    };
    let observed = participants
        .iter()
        .filter(|participant| !participant.is_foreign());
    let common_ns = observed.map(last).min().unwrap_or(0);
    Nanos(common_ns.max(0).unsigned_abs())
}

/// Returns why a server that is no agent gave up, if one did.
fn forsaken(participants: &[Participant<'_>]) -> Option<String> {
    participants
        .iter()
        .find_map(|participant| participant.forsook.clone())
}

fn sleep_until(fleet: &Fleet, instant_ns: u64) {
    let left = instant_ns.saturating_sub(fleet.clock.now_ns());
    std::thread::sleep(Duration::from_nanos(left).min(STOP_LOOK));
}

/// Returns each flow's share of a rate.
fn share(rate: Option<BitsPerSec>, flows: usize) -> Option<BitsPerSec> {
    rate.map(|rate| BitsPerSec(rate.0 / flows.max(1) as f64))
}

/// Returns the spread of the instants at which sending ends moved their first payload.
fn start_skew(flows: &[FlowRecord]) -> Option<u64> {
    let sending = flows
        .iter()
        .filter(|flow| matches!(flow.part, Part::Sender | Part::Requester));
    let first: Vec<i64> = sending.filter_map(|flow| flow.first_payload_ns).collect();
    Some(first.iter().max()?.abs_diff(*first.iter().min()?))
}

fn sends(assignment: &Assignment) -> bool {
    assignment
        .flows
        .iter()
        .any(|flow| matches!(flow.part, Part::Sender | Part::Requester))
}

/// Returns a cookie that nobody can guess.
fn cookie() -> String {
    let mut bytes = [0; 16];
    // The system's generator does not fail once it has been seeded at boot (getrandom(2)).
    getrandom::fill(&mut bytes).expect("the system's random generator works");
    linerate_model::hex::encode(&bytes)
}

/// Runs `work` for every participant at the same time; returns the first failure in their order.
fn each<'a, 'p: 'a>(
    participants: impl IntoIterator<Item = &'a mut Participant<'p>>,
    work: impl Fn(&mut Participant<'_>) -> Result<(), Spoilt> + Sync,
) -> Result<(), Spoilt> {
    together(participants, work).into_iter().collect()
}

fn ask<T>(
    participant: &mut Participant<'_>,
    request: impl FnOnce(&mut Participant<'_>) -> Result<T, AgentError>,
) -> Result<T, Spoilt> {
    let host = participant.host().clone();
    request(participant).map_err(|error| Spoilt::of_agent(&host, &error))
}

/// Makes or expects the flows of one host; returns what its agent says of them.
fn prepare(participant: &mut Participant<'_>) -> Result<Prepared, Spoilt> {
    let prepared = ask(participant, |participant| {
        let member = participant.member;
        member
            .spec
            .agent
            .prepare(&member.lease, &participant.assignment)
    })?;
    participant.round_trip = prepared.round_trip_ns.map(Nanos);
    participant.warm_up_more = prepared.warm_up_more;
    if let Some(rate) = prepared.rate_limit {
        participant
            .notes
            .push(format!("limited by the agent to {rate}"));
    }
    let capped = prepared
        .settings
        .iter()
        .find_map(|flow| validity::capped(participant.host(), &flow.settings));
    match capped {
        None => Ok(prepared),
        Some(why) => Err(Spoilt {
            lasting: true,
            ..Spoilt::because(why)
        }),
    }
}

/// Returns where `member` sees frames of flows to `server`, as far as that is known.
fn capture_at(member: &Member, server: &Member, over_loopback: bool) -> Option<CaptureAt> {
    let device = match over_loopback {
        // Whatever the address: what a machine sends to itself passes there.
        true => "lo".to_owned(),
        false => member.record.link.clone()?,
    };
    let port = server.data_socket().rsplit_once(':')?.1.parse().ok()?;
    Some(CaptureAt { device, port })
}

/// Takes over the file that a host captured; a file that does not arrive whole is said to be missing
/// and spoils nothing.
fn fetch_capture(participant: &mut Participant<'_>, trial: &Trial) {
    let Some(CaptureOutcome::Taken(taken)) = &participant.capture else {
        return;
    };
    let bytes = taken.bytes;
    let member = participant.member;
    let mut file = Vec::new();
    let mut failure = None;
    // One more than there are: the answer to the last says that all have arrived.
    for part in 0..CAPTURE_PARTS_MAX {
        match member
            .spec
            .agent
            .capture_part(&member.lease, trial.id, part)
        {
            Ok(part) if part.is_empty() => break,
            Ok(part) => file.extend(part),
            Err(error) => {
                failure = Some(format!("it could not be fetched: {error}"));
                break;
            }
        }
        if file.len() as u64 > bytes {
            break;
        }
    }
    if failure.is_none() && file.len() as u64 != bytes {
        let got = file.len();
        failure = Some(format!("{got} of its {bytes} bytes arrived"));
    }
    match failure {
        Some(why) => participant.capture = Some(CaptureOutcome::Missing(why)),
        None => participant.capture_file = file,
    }
}

/// Returns what came of the capture that was asked for.
fn capture_outcome(participant: &mut Participant<'_>) -> CaptureOutcome {
    let missing = |why: &str| CaptureOutcome::Missing(why.to_owned());
    match (participant.capture.take(), participant.is_foreign()) {
        (Some(outcome), _) => outcome,
        (None, true) => missing("only agents capture, and the server is none"),
        (None, false) if participant.assignment.probes.capture.is_none() => missing(
            "the captures of one run take 1 GiB together at the most, and those before took it",
        ),
        (None, false) => missing("its agent did not hand any over"),
    }
}

/// Takes over the news of one host.
fn look(participant: &mut Participant<'_>, trial: &Trial, at: &Instants) -> Result<(), Spoilt> {
    while !participant.finished && look_once(participant, trial, at)? {}
    Ok(())
}

/// Takes over one answer; returns whether there is more to be asked for at once.
fn look_once(
    participant: &mut Participant<'_>,
    trial: &Trial,
    at: &Instants,
) -> Result<bool, Spoilt> {
    let status: TrialStatus = ask(participant, |participant| {
        let member = participant.member;
        let from = PollFrom {
            sample: participant.next,
            flow: participant.flows.len(),
        };
        member.spec.agent.poll(&member.lease, trial.id, from)
    })?;
    let begin_ns = at.on_host(participant.clock()).measure_begin_ns;
    let host = participant.host().clone();
    let place = |sample: Sample| place(&host, trial, sample, begin_ns);
    participant
        .news
        .extend(status.samples.into_iter().map(place));
    participant.next = status.next;
    match status.state {
        TrialState::Finished => {
            // At once, since growing by and by would hold the list twice.
            let most = participant.assignment.flows.len();
            participant
                .flows
                .reserve_exact(most.saturating_sub(participant.flows.len()));
            let pool = &mut participant.pool;
            let share = |flow: FlowOutcome| FlowOutcome {
                settings: pool.share(&flow.settings),
                ..flow
            };
            participant
                .flows
                .extend(status.flows.into_iter().map(share));
            if !status.more {
                participant.stacks = status.stacks;
                participant.capture = status.capture;
                participant.notes.extend(status.notes);
                participant.finished = true;
            }
            Ok(status.more)
        }
        TrialState::Failed { why } if participant.is_foreign() => {
            participant.forsook = Some(why);
            participant.finished = true;
            Ok(false)
        }
        TrialState::Failed { why } => Err(Spoilt::because(format!("host {host}: {why}"))),
        TrialState::Gathering { .. } | TrialState::Ready | TrialState::Running => Ok(status.more),
    }
}

/// Returns the sample that carries a flow's longest stall, at the end of its window.
fn stall_sample(
    host: &HostName,
    trial: &Trial,
    window: Nanos,
    flow: &FlowOutcome,
) -> Option<TrialSample> {
    Some(TrialSample {
        trial: trial.id,
        host: host.clone(),
        subject: Subject::Flow(flow.flow, flow.end),
        metric: Metric::AppStallMax,
        at_ns: window.0 as i64,
        value: i64::try_from(flow.stall_max_ns?).unwrap_or(i64::MAX),
    })
}

/// Adds the loss of the link to the settings of a flow that is there for it.
fn with_link_loss(settings: Settings, ppm: Option<u32>) -> Settings {
    let Some(ppm) = ppm else { return settings };
    let share = Some(Level::Ppm(ppm).to_string());
    settings.with(&Arc::new(Setting {
        name: "link loss".to_owned(),
        requested: share.clone(),
        granted: share,
        effective: None,
        capped_by: None,
    }))
}

fn flow_record(
    trial: &Trial,
    participant: &Participant<'_>,
    flow: FlowOutcome,
    at: &Instants,
) -> FlowRecord {
    let begin_ns = at.on_host(participant.clock()).measure_begin_ns as i64;
    FlowRecord {
        trial: trial.id,
        flow: flow.flow,
        host: participant.host().clone(),
        end: flow.end,
        part: flow.part,
        local: flow.local,
        remote: flow.remote,
        cpu: flow.cpu,
        incoming: flow.incoming,
        first_payload_ns: flow.first_payload_ns.map(|first| first as i64 - begin_ns),
        bytes_sent: flow.bytes_sent,
        bytes_received: flow.bytes_received,
        settings: with_link_loss(flow.settings, participant.member.record.link_loss_ppm),
        latency: flow.latency,
        datagrams: flow.datagrams,
        ended_early: flow.ended_early,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_leave_the_end_of_the_window_alone_and_become_rarer_after_it() {
        const MS: u64 = 1_000_000;
        // A window from 200 ms on with a stop after 1202 ms.
        let (begin_ns, stop_ns) = (200 * MS, 1_202 * MS);
        let check = |now_ms: u64, expected_us: u64| {
            let next_ns = next_look(now_ms * MS, begin_ns, Nanos::from_ms(250), stop_ns);
            assert_eq!(next_ns, expected_us * 1_000, "after {now_ms} ms");
        };
        check(0, 220_000);
        check(219, 220_000);
        check(220, 470_000);
        check(471, 720_000);
        check(980, 1_182_000);
        check(1_182, 1_203_000);
        check(1_202, 1_203_000);
        check(1_203, 1_203_300);
        check(1_206, 1_206_500);
        check(1_300, 1_305_000);
        let late_ns = next_look(100 * MS, 5_000 * MS, Nanos::from_s(1), 9_000 * MS);
        assert_eq!(late_ns, 1_020 * MS, "a long warm-up");
        let at_once = next_look(3, 0, Nanos::from_s(1), 10 * MS);
        assert_eq!(at_once, 11 * MS, "a trial shorter than that has one look");
    }
}
