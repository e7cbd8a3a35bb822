//! The shortest round trip between each client and the server.
//!
//! Clients lie at different distances, so that a round trip is held against the shortest one of its own
//! client only. It is of all flows of that client: one that began behind a queue never saw the path
//! without. Links that lose frames on purpose are other links.

use std::collections::BTreeMap;

use linerate_model::TrialId;
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::plan::Trial;
use linerate_model::run::Recording;
use linerate_model::sample::End;
use linerate_model::workload::Workload;

use super::raw::Lane;
use super::window::Readings;

/// The shortest round trip between each client and the server, in nanoseconds, over all trials.
#[derive(Debug, Default)]
pub(crate) struct Floors {
    /// By loss of the link and client.
    by_link: BTreeMap<(Option<u32>, u32), f64>,
}

impl Floors {
    /// Looks through all trials over TCP of `recording`, whether they may be averaged or not.
    pub(crate) fn of(recording: &Recording) -> Self {
        let plan = recording.document.plan.trials.iter();
        let plan: BTreeMap<TrialId, &Trial> = plan.map(|trial| (trial.id, trial)).collect();
        let mut floors = Self::default();
        for record in &recording.trials {
            let Some(trial) = plan.get(&record.trial) else {
                continue;
            };
            let workload = &trial.workload;
            if workload.manner.transport != Transport::Tcp {
                continue;
            }
            let readings = Readings::of(recording, record);
            let plans = workload.flows();
            let lanes = plans.iter().map(|plan| Lane::of(plan, &readings));
            for (client, ns) in of_trial(lanes, |lane| vec![lane.sender]) {
                let key = (workload.link_loss_ppm, client);
                let least = floors.by_link.entry(key).or_insert(ns);
                *least = least.min(ns);
            }
        }
        floors
    }

    /// Returns that of the farthest client, of the links that lose nothing on purpose where there are any.
    pub(crate) fn farthest(&self) -> Option<f64> {
        let farthest = |of: fn(&Option<u32>) -> bool| {
            let links = self.by_link.iter().filter(|((loss, _), _)| of(loss));
            links.map(|(_, floor)| *floor).max_by(f64::total_cmp)
        };
        farthest(Option::is_none).or_else(|| farthest(Option::is_some))
    }

    /// Returns that of each flow of `workload` whose client is known.
    pub(crate) fn of_flows(&self, workload: &Workload) -> Vec<f64> {
        let flows = workload.flows().into_iter();
        let of_flow = flows.filter_map(|plan| {
            let key = (workload.link_loss_ppm, plan.from - 1);
            self.by_link.get(&key).copied()
        });
        of_flow.collect()
    }
}

/// Returns the shortest round trip of each client of `lanes` in one trial, as TCP saw it at the `ends` of its flows;
/// zero means that TCP has not measured it yet.
pub(super) fn of_trial<'a>(
    lanes: impl Iterator<Item = Lane<'a>>,
    ends: fn(&Lane<'_>) -> Vec<End>,
) -> BTreeMap<u32, f64> {
    let mut floors: BTreeMap<u32, f64> = BTreeMap::new();
    for lane in lanes {
        let ends = ends(&lane).into_iter();
        let trips = ends.filter_map(|end| lane.gauge(end, Metric::TcpMinRtt));
        for ns in trips.flatten().filter(|ns| *ns > 0.0) {
            let least = floors.entry(lane.client).or_insert(ns);
            *least = least.min(ns);
        }
    }
    floors
}
