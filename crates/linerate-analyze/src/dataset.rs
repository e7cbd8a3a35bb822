//! Outcomes with their levels, as every later step reads them.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::TrialId;
use linerate_model::experiment::{Cell, Experiment, Factor, Level};
use linerate_model::finding::{Estimate, Evidence};
use linerate_model::histogram::Histogram;
use linerate_model::run::{HostPart, HostRecord, Recording, share_a_kernel};
use linerate_model::unit::Unit;
use linerate_model::workload::{Traffic, Workload};

use crate::compare::interval::{quantile_interval, student_t_interval};
use crate::compare::noise::Noise;
use crate::reduce::{Outcome, describe, name, outcomes};
use crate::wire_use::Path;
use crate::words;

/// A recording with everything that was reduced from it.
pub(crate) struct Dataset<'a> {
    /// The recording.
    pub(crate) recording: &'a Recording,
    /// All outcomes, in the order of execution.
    pub(crate) outcomes: Vec<Outcome>,
    /// The cells that were tried, by experiment in the plan's order, then by levels.
    pub(crate) cells: Vec<CellOutcomes<'a>>,
    /// The links.
    pub(crate) path: Path,
}

/// The outcomes of one cell.
pub(crate) struct CellOutcomes<'a> {
    /// Its experiment.
    pub(crate) experiment: &'a Experiment,
    /// Its levels.
    pub(crate) cell: Cell,
    /// Its traffic.
    pub(crate) workload: Workload,
    /// Outcomes that may be averaged, in the order of execution.
    pub(crate) valid: Vec<Outcome>,
    /// Outcomes that may not.
    pub(crate) invalid: Vec<Outcome>,
    /// Latency of the transactions of all valid outcomes together.
    latency: Histogram,
}

impl<'a> Dataset<'a> {
    /// Reduces `recording` and sorts the outcomes into cells.
    pub(crate) fn new(recording: &'a Recording) -> Self {
        let outcomes = outcomes(recording);
        let plan = &recording.document.plan;
        let mut cells = Vec::new();
        for experiment in &plan.experiments {
            let mut of_experiment: BTreeMap<&Cell, Vec<&Outcome>> = BTreeMap::new();
            for outcome in outcomes
                .iter()
                .filter(|outcome| outcome.experiment == experiment.name)
            {
                of_experiment
                    .entry(&outcome.cell)
                    .or_default()
                    .push(outcome);
            }
            for (cell, outcomes) in of_experiment {
                let first = outcomes[0].trial;
                let trial = plan.trials.iter().find(|trial| trial.id == first);
                let Some(workload) = trial.map(|trial| trial.workload.clone()) else {
                    continue;
                };
                let (valid, invalid): (Vec<Outcome>, Vec<Outcome>) =
                    outcomes.into_iter().cloned().partition(Outcome::is_valid);
                let latency = pooled_latency(recording, &valid);
                cells.push(CellOutcomes {
                    latency,
                    experiment,
                    cell: cell.clone(),
                    workload,
                    valid,
                    invalid,
                });
            }
        }
        Self {
            recording,
            outcomes,
            cells,
            path: Path::new(&recording.document.hosts),
        }
    }

    /// Returns the cells of the experiment called `name`.
    pub(crate) fn cells_of(&self, name: &str) -> Vec<&CellOutcomes<'a>> {
        self.cells
            .iter()
            .filter(|cell| cell.experiment.name == name)
            .collect()
    }

    /// Returns the experiments of a chapter of the study, in the plan's order.
    pub(crate) fn experiments_of(&self, chapter: u32) -> impl Iterator<Item = &'a Experiment> {
        let experiments = &self.recording.document.plan.experiments;
        experiments
            .iter()
            .filter(move |experiment| experiment.chapter == Some(chapter))
    }

    /// Returns the noise floor of a response over `cells`.
    pub(crate) fn noise(cells: &[&CellOutcomes<'a>], response: &str) -> Option<Noise> {
        let values: Vec<Vec<f64>> = cells.iter().map(|cell| cell.values(response)).collect();
        Noise::pooled(values.iter().map(Vec::as_slice))
    }

    /// Returns the clients of the run.
    pub(crate) fn clients(&self) -> impl Iterator<Item = &'a HostRecord> {
        let hosts = &self.recording.document.hosts;
        hosts.iter().filter(|host| host.part == HostPart::Client)
    }

    /// Returns whether the ends of a flow may share a CPU: in a lab, over loopback, and between other
    /// namespaces of one machine.
    pub(crate) fn is_one_machine(&self) -> bool {
        let address = self
            .recording
            .document
            .server()
            .map(|host| host.data_address.parse());
        let loopback = matches!(address, Some(Ok::<std::net::IpAddr, _>(ip)) if ip.is_loopback());
        self.is_lab() || loopback || share_a_kernel(&self.recording.document.hosts)
    }

    /// Returns whether all hosts are namespaces of one machine.
    pub(crate) fn is_lab(&self) -> bool {
        self.recording.document.hosts.iter().any(|host| host.lab)
    }
}

/// Responses that are quantiles of the latency.
const QUANTILES: &[(&str, f64)] = &[
    (name::RTT_P50, 0.5),
    (name::RTT_P99, 0.99),
    (name::RTT_P999, 0.999),
];

fn pooled_latency(recording: &Recording, valid: &[Outcome]) -> Histogram {
    let trials: BTreeSet<TrialId> = valid.iter().map(|outcome| outcome.trial).collect();
    let mut pooled = Histogram::default();
    for flow in recording
        .flows
        .iter()
        .filter(|flow| trials.contains(&flow.trial))
    {
        if let Some(latency) = &flow.latency {
            pooled.merge(latency);
        }
    }
    pooled
}

impl CellOutcomes<'_> {
    /// Returns mean and interval of what `derive` computes of each valid outcome.
    pub(crate) fn derived(
        &self,
        unit: Unit,
        derive: impl Fn(&Outcome) -> Option<f64>,
    ) -> Option<Estimate> {
        let values: Vec<f64> = self.valid.iter().filter_map(derive).collect();
        student_t_interval(&values, unit)
    }

    /// Returns the valid values of a response.
    pub(crate) fn values(&self, response: &str) -> Vec<f64> {
        let values = self
            .valid
            .iter()
            .filter_map(|outcome| outcome.value(response));
        values.collect()
    }

    /// Returns mean and interval of a response over the valid outcomes.
    ///
    /// A quantile that some trials have too few transactions for is taken of the transactions of
    /// all trials together, with an order-statistics interval.
    pub(crate) fn estimate(&self, response: &str) -> Option<Estimate> {
        let share = QUANTILES.iter().find(|(name, _)| *name == response);
        if let Some((_, share)) = share
            && self.values(response).len() < self.valid.len()
        {
            return quantile_interval(&self.latency, *share);
        }
        student_t_interval(&self.values(response), describe(response).unit)
    }

    /// Returns the mean of a response over the valid outcomes.
    pub(crate) fn mean(&self, response: &str) -> Option<f64> {
        self.estimate(response).map(|estimate| estimate.value)
    }

    /// Returns mean and interval of the response that the experiment is about.
    pub(crate) fn main(&self) -> Option<Estimate> {
        self.estimate(&self.experiment.response)
    }

    /// Returns the trials that may be averaged.
    pub(crate) fn trials(&self) -> Vec<TrialId> {
        self.valid.iter().map(|outcome| outcome.trial).collect()
    }

    /// Returns a response as a piece of evidence, if it was read.
    pub(crate) fn evidence(&self, what: impl Into<String>, response: &str) -> Option<Evidence> {
        Some(Evidence {
            what: what.into(),
            estimate: self.estimate(response)?,
            trials: self.trials(),
        })
    }

    /// Returns the level of `factor`.
    pub(crate) fn level(&self, factor: Factor) -> Option<&Level> {
        self.cell.get(&factor)
    }

    /// Returns the level of `factor` as a number.
    pub(crate) fn number(&self, factor: Factor) -> Option<f64> {
        self.level(factor)?.as_number()
    }

    /// Returns the bytes of one send call of a stream.
    pub(crate) fn message_bytes(&self) -> Option<u64> {
        match self.workload.traffic {
            Traffic::Stream { message_bytes, .. } => Some(message_bytes.0),
            Traffic::Rr { .. } | Traffic::Crr { .. } | Traffic::Idle => None,
        }
    }

    /// Returns whether the traffic is request and response.
    pub(crate) fn is_rr(&self) -> bool {
        self.workload.traffic.is_transactional()
    }
}

/// Returns the factors that differ between `cells`, without `clients` where it follows from
/// `connections`.
pub(crate) fn varied(cells: &[&CellOutcomes<'_>]) -> Vec<Factor> {
    let levels = |factor: &Factor| -> BTreeSet<Option<&Level>> {
        cells.iter().map(|cell| cell.level(*factor)).collect()
    };
    let mut factors: Vec<Factor> = Factor::ALL
        .iter()
        .copied()
        .filter(|factor| levels(factor).len() > 1)
        .collect();
    if factors.contains(&Factor::Connections)
        && follows(cells, Factor::Connections, Factor::Clients)
    {
        factors.retain(|factor| *factor != Factor::Clients);
    }
    factors
}

/// Returns whether each level of `leader` always comes with the same level of `follower`.
fn follows(cells: &[&CellOutcomes<'_>], leader: Factor, follower: Factor) -> bool {
    let pairs: BTreeSet<_> = cells
        .iter()
        .map(|cell| (cell.level(leader), cell.level(follower)))
        .collect();
    let leaders: BTreeSet<_> = cells.iter().map(|cell| cell.level(leader)).collect();
    pairs.len() == leaders.len()
}

/// Cells that differ in one factor only (and in what follows from it).
pub(crate) struct Group<'d, 'a> {
    /// Those of the shared levels that differ between groups, in words; empty for a single group.
    pub(crate) words: String,
    /// The cells by level of the factor, ascending.
    pub(crate) cells: Vec<&'d CellOutcomes<'a>>,
}

/// Returns `cells` grouped so that only `x` differs inside a group, in order of the other levels.
pub(crate) fn groups<'d, 'a>(cells: &[&'d CellOutcomes<'a>], x: Factor) -> Vec<Group<'d, 'a>> {
    let names: Vec<Factor> = varied(cells)
        .into_iter()
        .filter(|factor| *factor != x)
        .collect();
    let tied = x == Factor::Connections && follows(cells, x, Factor::Clients);
    let mut groups: BTreeMap<Cell, Vec<&'d CellOutcomes<'a>>> = BTreeMap::new();
    for cell in cells {
        let mut others = cell.cell.clone();
        others.remove(&x);
        if tied {
            others.remove(&Factor::Clients);
        }
        groups.entry(others).or_default().push(cell);
    }
    let group = |(others, mut cells): (Cell, Vec<&'d CellOutcomes<'a>>)| {
        cells.sort_by_key(|cell| cell.level(x).cloned());
        let words = words::cell(&others, &names);
        Group { words, cells }
    };
    groups.into_iter().map(group).collect()
}
