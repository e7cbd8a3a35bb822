//! Every host's assignment, from the plan alone.

use linerate_agent::api::{Assignment, FlowAssignment};
use linerate_model::Nanos;
use linerate_model::plan::Trial;
use linerate_model::sample::End;
use linerate_model::workload::FlowPlan;

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
    /// CPUs to pin the server's workers to.
    pub server_cpus: &'a [u32],
    /// CPUs to pin the clients' workers to.
    pub client_cpus: &'a [u32],
}

/// Returns the server's assignment and that of each client that takes part, by its index.
pub(super) fn assignments(
    trial: &Trial,
    terms: &Terms<'_>,
) -> (Assignment, Vec<(usize, Assignment)>) {
    let flows = trial.workload.flows();
    let server = assignment(trial, terms, End::Server, &flows, |flow| {
        flow.client_part.opposite()
    });
    let clients = (0..terms.binds.len())
        .map(|client| {
            let own: Vec<FlowPlan> = flows
                .iter()
                .filter(|flow| flow.client as usize == client)
                .copied()
                .collect();
            let mut assignment =
                assignment(trial, terms, End::Client, &own, |flow| flow.client_part);
            assignment.bind = terms.binds[client].clone();
            (client, assignment)
        })
        .filter(|(_, assignment)| !assignment.flows.is_empty())
        .collect();
    (server, clients)
}

fn assignment(
    trial: &Trial,
    terms: &Terms<'_>,
    end: End,
    flows: &[FlowPlan],
    part: impl Fn(&FlowPlan) -> linerate_model::workload::Part,
) -> Assignment {
    let (peer, cpus) = match end {
        End::Client => (Some(terms.server_data.to_owned()), terms.client_cpus),
        End::Server => (None, terms.server_cpus),
    };
    Assignment {
        trial: trial.id,
        end,
        peer,
        bind: None,
        cookie: terms.cookie.to_owned(),
        traffic: trial.workload.traffic.clone(),
        options: trial.workload.options.clone(),
        flows: flows
            .iter()
            .map(|flow| FlowAssignment {
                flow: flow.flow,
                part: part(flow),
            })
            .collect(),
        workers_max: None,
        cpus: cpus.to_vec(),
        sample_interval: terms.sample_interval,
        length: trial.timing.total(),
        flow_rate_max: None,
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::TrialId;
    use linerate_model::experiment::{Cell, Timing};
    use linerate_model::workload::{Direction, Part, Workload};

    use super::*;

    #[test]
    fn ten_flows_from_five_clients() {
        let workload = Workload {
            connections: 10,
            clients: 5,
            ..Workload::stream(Direction::ToServer)
        };
        let second = Nanos::from_s(1);
        let trial = Trial {
            id: TrialId(1),
            experiment: "x".into(),
            cell: Cell::new(),
            replicate: 1,
            seed: 0,
            workload,
            timing: Timing {
                settle: second,
                warm_up: second,
                measure: second,
                drain: second,
            },
        };
        let binds = vec![None; 6];
        let terms = Terms {
            server_data: "10.0.0.1:5201",
            binds: &binds,
            cookie: "00",
            sample_interval: Nanos::from_ms(100),
            server_cpus: &[],
            client_cpus: &[1],
        };
        let (server, clients) = assignments(&trial, &terms);
        assert_eq!(server.flows.len(), 10);
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
}
