//! What a trial left: its evidence, and whether it may be averaged.

use std::mem::take;

use linerate_agent::api::Inventory;
use linerate_model::Nanos;
use linerate_model::capture::TrialCapture;
use linerate_model::flag::TrialFlag;
use linerate_model::metric::Metric;
use linerate_model::profile::TrialProfile;
use linerate_model::reason::Reason;
use linerate_model::run::{FlowOutcome, FlowRecord, TrialEvidence, TrialRecord, Validity};
use linerate_model::sample::{Subject, TrialSample};
use linerate_model::samples::Samples;
use linerate_model::workload::Part;

use super::super::instants::Instants;
use super::super::validity;
use super::participant::{Participant, TrialAgent};
use super::{Attempt, Concluded, TrafficEnd};

impl Attempt<'_> {
    /// Puts together what the hosts handed in and decides whether it may be averaged; returns what hosts
    /// have beside it.
    pub(super) fn conclude(
        self,
        ended: Result<TrafficEnd, Reason>,
    ) -> (Concluded, Vec<Option<Inventory>>) {
        let (trial, at) = (self.trial.id, self.at);
        let window = match ended {
            Ok(TrafficEnd::Planned) | Err(_) => self.trial.timing.measure,
            Ok(_) => common_window(&self.participants).min(self.trial.timing.measure),
        };
        let mut evidence = TrialEvidence {
            record: TrialRecord {
                trial,
                validity: Validity::Valid,
                flags: Vec::new(),
                offset_ns: at.begin_ns.saturating_sub(self.run.began_ns),
                window_ns: window.0,
                start_skew_ns: None,
                start_skew_uncertainty_ns: None,
            },
            flows: Vec::new(),
            samples: Samples::default(),
            profiles: Vec::new(),
            captures: Vec::new(),
        };
        let uncertainty_ns = skew_uncertainty(&self.participants);
        // A volume may take less time than a host needs to begin; rates use the true instants.
        let is_timed = matches!(&ended, Ok(end) if *end != TrafficEnd::AllSent);
        let is_whole = matches!(ended, Ok(TrafficEnd::Planned | TrafficEnd::AllSent));
        let asked_capture = self.probes.capture.is_some() && ended.is_ok();
        let is_forsaken = matches!(ended, Ok(TrafficEnd::Forsaken(_)));
        let (mut reasons, cut_short) = match ended {
            Ok(end) => (Vec::new(), cut(&end, window)),
            Err(why) => (vec![why], None),
        };
        evidence.record.flags.extend(cut_short.clone());
        for mut participant in self.participants {
            evidence.record.flags.extend(flags_of(&participant));
            let (agent, gathered) = (participant.agent, &mut participant.gathered);
            // What came together with the failure of another host.
            gathered.samples.append(take(&mut gathered.news));
            evidence.flows.reserve_exact(gathered.flows.len());
            for flow in take(&mut gathered.flows) {
                reasons.extend(validity::capped(agent.host(), &flow.settings));
                evidence.samples.extend(stall_sample(&agent, window, &flow));
                evidence.flows.push(flow_record(&agent, flow, &at));
            }
            if is_timed && !agent.is_foreign() {
                let samples = &gathered.samples;
                reasons.extend(validity::uncovered(agent.host(), window, samples));
            }
            evidence.samples.append(take(&mut gathered.samples));
            if !gathered.stacks.is_empty() {
                evidence.profiles.push(TrialProfile {
                    trial,
                    host: agent.host().clone(),
                    stacks: take(&mut gathered.stacks),
                });
            }
            if asked_capture {
                let capture = TrialCapture {
                    trial,
                    host: agent.host().clone(),
                    file: None,
                    outcome: participant.capture_outcome(),
                };
                let file = take(&mut participant.gathered.capture_file);
                evidence.captures.push((capture, file));
            }
        }
        if is_whole {
            reasons.extend(validity::ended_early(&evidence.flows));
        }
        evidence.record.start_skew_ns = start_skew(&evidence.flows);
        evidence.record.start_skew_uncertainty_ns =
            evidence.record.start_skew_ns.map(|_| uncertainty_ns);
        let is_lasting = reasons.iter().any(Reason::is_lasting);
        let first = reasons.into_iter().next();
        evidence.record.validity = first.map_or(Validity::Valid, Validity::Invalid);
        let concluded = Concluded {
            evidence,
            is_lasting,
            cut_short: cut_short
                .filter(|_| is_forsaken)
                .map(|flag| flag.to_string()),
        };
        (concluded, self.inventories)
    }
}

/// Returns what to say of traffic that ended before its time.
fn cut(end: &TrafficEnd, after: Nanos) -> Option<TrialFlag> {
    match end {
        TrafficEnd::Planned | TrafficEnd::AllSent => None,
        TrafficEnd::Interrupted => Some(TrialFlag::Interrupted(after)),
        TrafficEnd::Forsaken(words) => Some(TrialFlag::GivenUp {
            words: words.clone(),
            after,
        }),
    }
}

/// Returns what to know of a host's part although the trial may be valid.
fn flags_of(participant: &Participant<'_>) -> Vec<TrialFlag> {
    let (agent, gathered) = (&participant.agent, &participant.gathered);
    let host = agent.host();
    let admission = agent.member.record.admission;
    let shared = validity::shared(host, admission, agent.member.shared_with);
    let notes = gathered.notes.iter();
    let notes = notes.map(|words| TrialFlag::Noted {
        host: host.clone(),
        words: words.clone(),
    });
    let settings = gathered.flows.iter().map(|flow| &flow.settings);
    let fell_short = validity::fell_short(host, settings);
    shared.into_iter().chain(notes).chain(fell_short).collect()
}

/// Returns the part of the window that every host has read to its end.
fn common_window(participants: &[Participant<'_>]) -> Nanos {
    let observed = participants.iter().filter(|one| !one.agent.is_foreign());
    let last_ns = observed.map(|one| {
        let instants = one.gathered.samples.instants(one.agent.host());
        instants.max().unwrap_or(0)
    });
    Nanos(last_ns.min().unwrap_or(0).max(0).unsigned_abs())
}

/// Returns the spread of the instants at which sending ends moved their first payload.
fn start_skew(flows: &[FlowRecord]) -> Option<u64> {
    let sending = flows
        .iter()
        .filter(|flow| matches!(flow.part, Part::Sender | Part::Requester));
    let first: Vec<i64> = sending.filter_map(|flow| flow.first_payload_ns).collect();
    Some(first.iter().max()?.abs_diff(*first.iter().min()?))
}

/// Returns how well that spread is known. Flows of one host share its clock, so theirs needs none.
fn skew_uncertainty(participants: &[Participant<'_>]) -> u64 {
    let senders = participants.iter().filter(|one| one.sends());
    let uncertainties: Vec<u64> = senders
        .map(|one| one.agent.clock().uncertainty_ns)
        .collect();
    match uncertainties.as_slice() {
        [] | [_] => 0,
        several => several.iter().copied().max().unwrap_or(0),
    }
}

/// Returns the sample that carries a flow's longest stall, at the end of its window.
fn stall_sample(agent: &TrialAgent<'_>, window: Nanos, flow: &FlowOutcome) -> Option<TrialSample> {
    Some(TrialSample {
        trial: agent.trial,
        host: agent.host().clone(),
        subject: Subject::Flow(flow.flow, flow.end),
        metric: Metric::AppStallMax,
        at_ns: window.0 as i64,
        value: i64::try_from(flow.stall_max_ns?).unwrap_or(i64::MAX),
    })
}

fn flow_record(agent: &TrialAgent<'_>, flow: FlowOutcome, at: &Instants) -> FlowRecord {
    let begin_ns = at.on_host(agent.clock()).measure_begin_ns as i64;
    FlowRecord {
        trial: agent.trial,
        host: agent.host().clone(),
        outcome: FlowOutcome {
            first_payload_ns: flow.first_payload_ns.map(|first| first - begin_ns),
            stall_max_ns: None,
            ..flow
        },
    }
}
