//! What a trial left: its evidence, and whether it may be averaged.

use std::collections::BTreeMap;
use std::mem::take;

use linerate_model::capture::TrialCapture;
use linerate_model::flag::{Note, TrialFlag};
use linerate_model::metric::Metric;
use linerate_model::profile::TrialProfile;
use linerate_model::reason::Reason;
use linerate_model::run::{
    ClockFit, FlowOutcome, FlowRecord, TrialEvidence, TrialRecord, Validity, share_a_kernel,
};
use linerate_model::sample::{End, Subject, TrialSample};
use linerate_model::samples::Samples;
use linerate_model::workload::Part;
use linerate_model::{Bytes, FlowId, HostName, Nanos};

use super::super::instants::Instants;
use super::super::validity::{self, Missing};
use super::participant::{Gathered, Participant, TrialAgent, since};
use super::{Attempt, Concluded, TrafficEnd};
use crate::fleet::ClockFilter;

impl Attempt<'_> {
    /// Puts together what the hosts handed in and decides whether it may be averaged.
    pub(super) fn conclude(self, ended: Result<TrafficEnd, Reason>) -> Concluded {
        let (trial, at) = (self.trial.id, self.at);
        let measure = self.trial.timing.measure;
        let window = match ended {
            Ok(TrafficEnd::Planned) | Err(_) => measure,
            Ok(TrafficEnd::Lost(_)) => kept_window(&self.participants, measure),
            Ok(_) => common_window(&self.participants).min(measure),
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
        let uncertainty_ns = Participant::skew_uncertainty(self.participants.iter());
        // A volume may take less time than a host needs to begin; rates use the true instants.
        let is_timed = matches!(&ended, Ok(end) if *end != TrafficEnd::AllSent);
        let is_whole = matches!(ended, Ok(TrafficEnd::Planned | TrafficEnd::AllSent));
        let asked_capture = self.probes.capture.is_some() && ended.is_ok();
        let volume = self.trial.workload.manner.bytes_max.filter(|_| is_whole);
        let mut programs = self.participants.iter().map(|one| one.agent.program());
        let count_alike = programs.all(|program| program.is_agent());
        let is_cut_short = matches!(ended, Ok(TrafficEnd::Forsaken(_) | TrafficEnd::Lost(_)));
        // What ended it comes before what else is wrong with what was kept.
        let ended_by = match &ended {
            Ok(TrafficEnd::Lost(why)) => Some(why.clone()),
            _ => None,
        };
        let (mut reasons, cut_short) = match ended {
            // Nothing of the window was read on any host.
            Ok(TrafficEnd::Lost(why)) if window == Nanos(0) => (vec![why], None),
            Ok(end) => (Vec::new(), cut(&end, window, measure)),
            Err(why) => (vec![why], None),
        };
        evidence.record.flags.extend(cut_short.clone());
        let mut clocks = Vec::with_capacity(self.participants.len());
        let records = (self.participants.iter()).map(|one| &one.agent.member.record);
        let is_one_clock = share_a_kernel(records);
        for mut participant in self.participants {
            evidence.record.flags.extend(flags_of(&participant, volume));
            let (agent, gathered) = (participant.agent, &mut participant.gathered);
            let took = Nanos(at.stop_ns.saturating_sub(at.start_ns));
            if let Some(by) = participant.clock.poll_set_in(took) {
                let host = agent.host().clone();
                reasons.insert(0, Reason::ClockSet { host, by });
            }
            clocks.push((agent.host().clone(), take(&mut participant.clock)));
            // What came together with the failure of another host.
            gathered.samples.append(take(&mut gathered.news));
            evidence.flows.reserve_exact(gathered.flows.len());
            for flow in take(&mut gathered.flows) {
                reasons.extend(validity::capped(agent.host(), &flow.settings));
                evidence.samples.extend(stall_sample(&agent, window, &flow));
                evidence.flows.push(flow_record(&agent, flow, &at));
            }
            let reaches_end = gathered.lost.is_none() || reads(agent.host(), gathered) >= window.0;
            if is_timed && agent.program().is_agent() && reaches_end {
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
        // Other programs leave what is under way at the end unread.
        if count_alike {
            let plans = self.trial.flows();
            for (number, workload) in (0..).zip(self.trial.workloads()) {
                let group = |flow: &FlowRecord| Some(plans.get(flow.flow.0 as usize)?.group);
                let own = evidence.flows.iter();
                let own = own.filter(|flow| group(flow) == Some(number));
                match validity::missing(workload, own) {
                    Missing::Nothing => {}
                    Missing::Underway(unread) => {
                        evidence.record.flags.push(TrialFlag::StillUnread(unread));
                    }
                    Missing::Lost(unread) => reasons.push(Reason::Unread(unread)),
                }
            }
        }
        place_on_one_clock(&mut evidence.flows, &clocks, is_one_clock);
        evidence.record.start_skew_ns = start_skew(&evidence.flows);
        evidence.record.start_skew_uncertainty_ns =
            evidence.record.start_skew_ns.map(|_| uncertainty_ns);
        let is_lasting = reasons.iter().any(Reason::is_lasting);
        let first = reasons
            .into_iter()
            .next()
            .map(|why| ended_by.unwrap_or(why));
        evidence.record.validity = first.map_or(Validity::Valid, Validity::Invalid);
        Concluded {
            evidence,
            warm_up: Nanos(at.begin_ns.saturating_sub(at.start_ns)),
            is_lasting,
            clocks,
            cut_short: cut_short
                .filter(|_| is_cut_short)
                .map(|flag| flag.to_string()),
        }
    }
}

impl Concluded {
    /// Says of the trials of a fleet that went on at the same time how far apart the first payloads of all of them were, which is
    /// known to `uncertainty_ns`, and refuses them where that is more than `most`.
    pub(super) fn in_step(concluded: &mut [Self], uncertainty_ns: u64, most: Nanos) {
        let valid = concluded
            .iter()
            .filter(|one| one.evidence.record.is_valid());
        let Some(skew_ns) = start_skew(valid.flat_map(|one| &one.evidence.flows)) else {
            return;
        };
        let least = Nanos(skew_ns.saturating_sub(uncertainty_ns));
        for one in concluded {
            let record = &mut one.evidence.record;
            record.start_skew_ns = Some(skew_ns);
            record.start_skew_uncertainty_ns = Some(uncertainty_ns);
            if record.is_valid() && least > most {
                record.validity = Validity::Invalid(Reason::Skewed { least, most });
            }
        }
    }
}

impl Participant<'_> {
    /// Returns how well that spread is known: each of two hosts' clocks may be off by its own uncertainty. Flows of one host
    /// share its clock, so theirs needs none.
    pub(super) fn skew_uncertainty<'p>(
        participants: impl Iterator<Item = &'p Participant<'p>>,
    ) -> u64 {
        let senders = participants.filter(|one| one.sends());
        let by_host = senders.map(|one| (one.agent.host(), one.agent.clock().uncertainty_ns));
        let by_host: BTreeMap<_, _> = by_host.collect();
        let mut uncertainties: Vec<u64> = by_host.into_values().collect();
        uncertainties.sort_unstable();
        match uncertainties.as_slice() {
            [.., one, other] => one.saturating_add(*other),
            [] | [_] => 0,
        }
    }
}

/// Returns what to say of traffic that ended before its time.
fn cut(end: &TrafficEnd, after: Nanos, of: Nanos) -> Option<TrialFlag> {
    match end {
        TrafficEnd::Planned | TrafficEnd::AllSent => None,
        TrafficEnd::Interrupted => Some(TrialFlag::Interrupted(after)),
        TrafficEnd::Forsaken(why) => Some(TrialFlag::GivenUp {
            why: Box::new(why.clone()),
            after,
        }),
        TrafficEnd::Lost(why) => Some(TrialFlag::Partial {
            why: Box::new(why.clone()),
            kept: after,
            of,
        }),
    }
}

/// Returns what to know of a host's part although the trial may be valid.
fn flags_of(participant: &Participant<'_>, volume: Option<Bytes>) -> Vec<TrialFlag> {
    let (agent, gathered) = (&participant.agent, &participant.gathered);
    let host = agent.host();
    let admission = agent.member.record.admission;
    let shared = validity::shared(host, admission, agent.member.admitted.shared_with);
    let stepped = agent
        .member
        .clock_stepped
        .map(|step| format!("its clock was set by {step}, or ran away, since the trial before"))
        .map(Note::Words);
    let notes = gathered
        .notes
        .iter()
        .cloned()
        .chain(stepped)
        .map(|note| TrialFlag::Noted {
            host: host.clone(),
            note,
        });
    let fell_short = validity::fell_short(host, &gathered.flows, volume);
    shared.into_iter().chain(notes).chain(fell_short).collect()
}

/// Returns the part of the window that every host has read to its end.
fn common_window(participants: &[Participant<'_>]) -> Nanos {
    Nanos(all_read(participants).min().unwrap_or(0))
}

/// Returns the part of the window that is known although not all came that hosts measured: to the last
/// reading that all have, leaving out hosts of which less than half as much came as of another.
fn kept_window(participants: &[Participant<'_>], measure: Nanos) -> Nanos {
    let read = all_read(participants).map(|until| until.min(measure.0));
    let read: Vec<u64> = read.collect();
    let most = read.iter().copied().max().unwrap_or(0);
    let kept = read.into_iter().filter(|until| until * 2 >= most);
    Nanos(kept.min().unwrap_or(0))
}

/// Returns how long after the begin of the window the last reading of each host lies that an agent reads.
fn all_read(participants: &[Participant<'_>]) -> impl Iterator<Item = u64> {
    let observed = participants
        .iter()
        .filter(|one| one.agent.program().is_agent());
    observed.map(|one| reads(one.agent.host(), &one.gathered))
}

/// Returns how long after the begin of the window a host's last reading lies.
fn reads(host: &HostName, gathered: &Gathered) -> u64 {
    gathered
        .read_until_ns(host)
        .unwrap_or(0)
        .max(0)
        .unsigned_abs()
}

/// Says of datagrams how long they were on their way: their receivers know the difference of two clocks.
fn place_on_one_clock(
    flows: &mut [FlowRecord],
    clocks: &[(HostName, ClockFilter)],
    is_one_clock: bool,
) {
    let has_transit = |flow: &FlowRecord| flow.datagrams.as_ref()?.transit;
    if !flows.iter().any(|flow| has_transit(flow).is_some()) {
        return;
    }
    let fits: BTreeMap<&HostName, ClockFit> = clocks
        .iter()
        .filter_map(|(host, clock)| Some((host, clock.fit_of_trial()?)))
        .collect();
    let ends = flows
        .iter()
        .map(|flow| ((flow.flow, flow.end), flow.host.clone()));
    let host_of: BTreeMap<(FlowId, End), HostName> = ends.collect();
    for flow in flows {
        let other = host_of.get(&(flow.flow, flow.end.other()));
        let Some(datagrams) = &mut flow.outcome.datagrams else {
            continue;
        };
        let known = other.and_then(|other| {
            let (own, other) = (fits.get(&flow.host)?, fits.get(other)?);
            // Namespaces of one kernel have its clock.
            let (ahead_ns, uncertainty_ns) = if is_one_clock {
                (0, 0)
            } else {
                let ahead_ns = own.offset_ns.saturating_sub(other.offset_ns);
                let uncertainty_ns = own.uncertainty_ns.saturating_add(other.uncertainty_ns);
                (ahead_ns, uncertainty_ns)
            };
            Some(datagrams.transit?.with_clocks(ahead_ns, uncertainty_ns))
        });
        datagrams.transit = known;
    }
}

/// Returns the spread of the instants at which sending ends moved their first payload.
fn start_skew<'f>(flows: impl IntoIterator<Item = &'f FlowRecord>) -> Option<u64> {
    let sending = flows
        .into_iter()
        .filter(|flow| matches!(flow.part, Part::Sender | Part::Requester));
    let first: Vec<i64> = sending.filter_map(|flow| flow.first_payload_ns).collect();
    Some(first.iter().max()?.abs_diff(*first.iter().min()?))
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
    let begin_ns = at.on_host(agent.clock()).measure_begin_ns;
    FlowRecord {
        trial: agent.trial,
        host: agent.host().clone(),
        outcome: FlowOutcome {
            first_payload_ns: flow.first_payload_ns.map(|first| since(first, begin_ns)),
            stall_max_ns: None,
            ..flow
        },
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::datagram::{Datagrams, Transit};
    use linerate_model::run::Incoming;
    use linerate_model::setting::Settings;

    use super::*;
    use crate::fleet::Exchange;

    /// One end of flow 0 on `host`; of a receiver with what its datagrams took on two clocks.
    fn record(host: &str, end: End, transit_ns: Option<i64>) -> FlowRecord {
        let transit = transit_ns.map(|ns| Transit {
            shortest_ns: ns,
            mean_ns: ns,
            longest_ns: ns,
            uncertainty_ns: None,
        });
        let datagrams = Datagrams {
            transit,
            ..Datagrams::default()
        };
        let part = match end {
            End::Client => Part::Sender,
            End::Server => Part::Receiver,
        };
        FlowRecord {
            trial: linerate_model::TrialId(1),
            host: host.into(),
            outcome: FlowOutcome {
                datagrams: Some(Box::new(datagrams)),
                flow: FlowId(0),
                end,
                part,
                local: String::new(),
                remote: String::new(),
                cpu: None,
                incoming: Incoming::default(),
                first_payload_ns: None,
                bytes_sent: 0,
                bytes_received: 0,
                counted_ns: None,
                stall_max_ns: None,
                settings: Settings::default(),
                latency: None,
                lateness: None,
                requests: None,
                connections: None,
                zero_copy: None,
                ended_early: None,
            },
        }
    }

    /// A clock that is `ahead_ns` ahead of ours, as an exchange of `round_trip_ns` has shown.
    fn clock(host: &str, ahead_ns: u64, round_trip_ns: u64) -> (HostName, ClockFilter) {
        let mut clock = ClockFilter::default();
        clock.handle_exchange(Exchange {
            asked_ns: 1_000,
            received_ns: 1_000 + ahead_ns + round_trip_ns / 2,
            sent_ns: 1_000 + ahead_ns + round_trip_ns / 2,
            answered_ns: 1_000 + round_trip_ns,
        });
        (host.into(), clock.of_trial())
    }

    #[test]
    fn what_datagrams_took_is_known_as_well_as_both_clocks() {
        // 3 ms on the way, and a server whose clock is 700 ms behind the client's.
        let on_two_clocks = 3_000_000 - 700_000_000;
        let told = |round_trip_ns, is_one_clock| {
            let mut flows = [
                record("client", End::Client, None),
                record("server", End::Server, Some(on_two_clocks)),
            ];
            let clocks = [
                clock("client", 900_000_000, round_trip_ns),
                clock("server", 200_000_000, round_trip_ns),
            ];
            place_on_one_clock(&mut flows, &clocks, is_one_clock);
            let [_, server] = flows;
            server.outcome.datagrams?.transit
        };
        let near = told(200_000, false).expect("both clocks are known");
        assert_eq!(
            (near.mean_ns, near.uncertainty_ns),
            (3_000_000, Some(200_000))
        );
        assert!(near.is_known());
        let far = told(20_000_000, false).expect("both clocks are known");
        assert!(!far.is_known(), "{far:?}");
        let same = told(200_000, true).expect("there is one clock");
        assert_eq!(
            (same.mean_ns, same.uncertainty_ns),
            (on_two_clocks, Some(0))
        );
        let mut alone = [record("server", End::Server, Some(5))];
        place_on_one_clock(&mut alone, &[clock("server", 1, 1)], false);
        assert_eq!(
            alone[0]
                .outcome
                .datagrams
                .as_ref()
                .and_then(|it| it.transit),
            None
        );
    }
}
