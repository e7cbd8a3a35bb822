//! Every host's assignment, from the plan alone.

use linerate_agent::api::{Assignment, FlowAssignment, GroupAssignment, SAMPLE_INTERVAL_MAX};
use linerate_model::Nanos;
use linerate_model::plan::Trial;
use linerate_model::probe::Probes;
use linerate_model::sample::{End, FLOWS_IN_FULL};
use linerate_model::workload::{FlowPlan, Part};

use super::placement::Pinned;
use super::warm_up::WarmUp;

/// Memory that the samples of one end may take. An agent keeps 64 MiB; here they take three times
/// as much, for every host.
const RECORD_BYTES: u64 = 32 << 20;
/// What a reading of one end of a flow takes of it: 40 samples of 40 bytes, rounded up.
const READING_BYTES: u64 = 2048;
/// What a reading takes of each further flow: four samples, rounded up.
const READING_BYTES_MORE: u64 = 256;
/// Length up to which a trial is sampled to its end; a longer one is rarely waited for.
const SAMPLED_LENGTH: Nanos = Nanos::from_s(3600);

/// What assignments need to know beyond the trial.
#[derive(Debug, Clone)]
pub(super) struct Terms<'a> {
    /// `ADDRESS:PORT` of the server's data connections.
    pub server_data: &'a str,
    /// Address that each client connects from, if it must be a certain one; as long as there are
    /// clients.
    pub binds: &'a [Option<String>],
    /// 32 hexadecimal digits.
    pub cookie: &'a str,
    /// Time between samples.
    pub sample_interval: Nanos,
    /// CPUs and worker threads of both ends.
    pub pinned: &'a Pinned,
    /// What is looked at beyond what every trial shows.
    pub probes: Probes,
    /// What the time before the window follows from.
    pub warm_up: WarmUp,
}

/// Returns the server's assignment and that of each client that takes part, by its index.
pub(super) fn assignments(
    trial: &Trial,
    terms: &Terms<'_>,
) -> (Assignment, Vec<(usize, Assignment)>) {
    let flows = trial.flows();
    let server = assignment(trial, terms, End::Server, &flows, |flow| {
        flow.client_part.opposite()
    });
    let clients = (0..terms.binds.len())
        .map(|client| {
            let own: Vec<FlowPlan> = flows
                .iter()
                .filter(|flow| flow.from as usize == client + 1)
                .copied()
                .collect();
            let mut assignment =
                assignment(trial, terms, End::Client, &own, |flow| flow.client_part);
            assignment.bind = terms.binds[client].clone();
            (client, assignment)
        })
        .filter(|(_, assignment)| assignment.all_flows().next().is_some())
        .collect();
    (server, clients)
}

/// Returns the time between samples: a multiple of the usual one by which the samples of all flows
/// fit into what agents keep. A rate that somebody asked for is kept instead; an agent whose room is
/// full drops what comes after and says so.
fn sample_interval(trial: &Trial, warm_up_more: Nanos, wanted: Nanos) -> Nanos {
    let longest_ns = trial.timing.total().0 + warm_up_more.0;
    let length_ns = longest_ns.min(SAMPLED_LENGTH.0);
    let flows = trial
        .workloads()
        .map(|it| u64::from(it.connections))
        .sum::<u64>();
    let in_full = flows.min(FLOWS_IN_FULL.into());
    let reading_bytes = in_full * READING_BYTES + (flows - in_full) * READING_BYTES_MORE;
    let bytes_wanted = length_ns / wanted.0.max(1) * reading_bytes;
    let interval_ns = wanted.0 * bytes_wanted.div_ceil(RECORD_BYTES).max(1);
    Nanos(interval_ns.min(SAMPLE_INTERVAL_MAX.0).max(wanted.0))
}

fn assignment(
    trial: &Trial,
    terms: &Terms<'_>,
    end: End,
    flows: &[FlowPlan],
    part: impl Fn(&FlowPlan) -> Part,
) -> Assignment {
    let pinned = terms.pinned;
    let of_group = |number: u32| {
        let own = flows.iter().filter(|flow| flow.group == number);
        let assigned = own.map(|flow| FlowAssignment {
            flow: flow.flow,
            part: part(flow),
        });
        assigned.collect::<Vec<_>>()
    };
    let beside = (1..)
        .zip(&trial.beside)
        .map(|(number, group)| GroupAssignment {
            traffic: group.workload.traffic.clone(),
            options: group.workload.options.clone(),
            manner: group.workload.manner.clone(),
            flows: of_group(number),
        });
    let (peer, cpus) = match end {
        End::Client => (Some(terms.server_data.to_owned()), &pinned.clients),
        End::Server => (None, &pinned.server),
    };
    Assignment {
        trial: trial.id,
        end,
        peer,
        bind: None,
        server: None,
        cookie: terms.cookie.to_owned(),
        traffic: trial.workload.traffic.clone(),
        options: trial.workload.options.clone(),
        manner: trial.workload.manner.clone(),
        flows: of_group(0),
        beside: beside.filter(|group| !group.flows.is_empty()).collect(),
        workers_max: pinned.workers_max,
        cpus: cpus.clone(),
        placement: pinned.placement.clone(),
        sample_interval: match terms.probes.sample_rate {
            Some(rate) => rate.interval(),
            None => {
                let more = terms.warm_up.more(trial.timing.warm_up);
                sample_interval(trial, more, terms.sample_interval)
            }
        },
        probes: terms.probes,
        capture_at: None,
        changes: None,
        length: trial.timing.total(),
        warm_up_more: terms.warm_up.more(trial.timing.warm_up),
        flow_rate_max: None,
    }
}

#[cfg(test)]
mod tests {
    use linerate_agent::api::Placement;
    use linerate_model::TrialId;
    use linerate_model::experiment::{Cell, Timing};
    use linerate_model::workload::{Direction, Workload};

    use super::*;

    #[test]
    fn many_flows_are_sampled_less_often() {
        let check = |connections, measure_s, interval_ms| {
            let mut trial = trial(connections, 1);
            trial.timing.measure = Nanos::from_s(measure_s);
            let got = sample_interval(&trial, Nanos(0), Nanos::from_ms(100));
            assert_eq!(
                got,
                Nanos::from_ms(interval_ms),
                "{connections} {measure_s}"
            );
        };
        check(1, 10, 100);
        check(100, 10, 100);
        check(5000, 2, 300);
        check(1, 86_000, 300);
    }

    #[test]
    fn a_rate_that_was_asked_for_is_kept() {
        let terms = Terms {
            server_data: "10.0.0.1:5201",
            binds: &[None],
            cookie: "00",
            sample_interval: Nanos::from_ms(100),
            pinned: &pinned(&[]),
            probes: Probes {
                sample_rate: 500.try_into().ok(),
                ..Probes::default()
            },
            warm_up: WarmUp::RoundTrips,
        };
        let (server, clients) = assignments(&trial(5000, 1), &terms);
        assert_eq!(server.sample_interval, Nanos::from_ms(2));
        assert_eq!(clients[0].1.sample_interval, Nanos::from_ms(2));
    }

    #[test]
    fn ten_flows_from_five_clients() {
        let trial = trial(10, 5);
        let binds = vec![None; 6];
        let terms = Terms {
            server_data: "10.0.0.1:5201",
            binds: &binds,
            cookie: "00",
            sample_interval: Nanos::from_ms(100),
            pinned: &pinned(&[1]),
            probes: Probes::default(),
            warm_up: WarmUp::RoundTrips,
        };
        let (server, clients) = assignments(&trial, &terms);
        assert_eq!(server.flows.len(), 10);
        // A second for each phase, and up to five of warm-up on a long path.
        let length = (server.length, server.warm_up_more);
        assert_eq!(length, (Nanos::from_s(4), Nanos::from_s(4)));
        assert!(server.flows.iter().all(|flow| flow.part == Part::Receiver));
        assert_eq!(
            clients.len(),
            5,
            "the sixth client has no flow and is not bothered"
        );
        for (_, client) in &clients {
            assert_eq!(client.flows.len(), 2);
            assert_eq!(client.peer.as_deref(), Some("10.0.0.1:5201"));
            assert_eq!(client.cpus, [1]);
        }
    }

    fn pinned(clients: &[u32]) -> Pinned {
        Pinned {
            server: Vec::new(),
            clients: clients.to_vec(),
            placement: Placement::AsAsked,
            workers_max: None,
        }
    }

    fn trial(connections: u32, clients: u32) -> Trial {
        let workload = Workload {
            connections,
            clients,
            ..Workload::stream(Direction::ToServer)
        };
        let second = Nanos::from_s(1);
        Trial {
            id: TrialId(1),
            experiment: "x".into(),
            cell: Cell::new(),
            replicate: 1,
            seed: 0,
            workload,
            beside: Vec::new(),
            hosts: Vec::new(),
            step: 0,
            timing: Timing {
                settle: second,
                warm_up: second,
                measure: second,
                drain: second,
            },
        }
    }
}
