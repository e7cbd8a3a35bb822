//! Putting it together: drafts, hosts and budget to a plan.

use std::ops::RangeInclusive;

use linerate_model::Nanos;
use linerate_model::experiment::{Experiment, Factor, Level, LevelError, Search, Timing};
use linerate_model::manner::Named;
use linerate_model::number::counted;
use linerate_model::plan::{LeftOut, Plan, Trial};
use linerate_model::response::name;
use linerate_model::workload::{Direction, Group, Workload, WorkloadError};

use crate::budget::{Extent, cost, fit, least, planned, trial_count, wanted, whole};
use crate::chapters::GIVE_WAY;
use crate::draft::{BudgetHints, Draft};
use crate::group::{cells, groups, set_groups};
use crate::hosts::{Hosts, runnable};
use crate::order::{blocks, rounds};

/// The most trials of a plan: at a second each half a day, and 51 MB of `run.json`, of which 64 MiB are read.
pub const TRIALS_MAX: u32 = 40_000;

/// What a trial takes beyond its phases: clocks, preparing, notice, results. Measured in the lab
/// on two CPUs; the progress bar learns the real one.
const OVERHEAD_PER_TRIAL: Nanos = Nanos::from_ms(100);
/// What each further flow adds: it is opened, read, drained and kept. Measured in the lab on two CPUs, with 4000 flows.
const OVERHEAD_PER_FLOW: Nanos = Nanos::from_ms(1);
/// Round trips that a trial takes beside that: of its handshakes, of requests to its hosts, and those
/// that traffic goes on for before it is counted. Studies over 10 and 20 ms took 15 to 32 a trial, their
/// chapters of one flow 24 and 30.
const ROUND_TRIPS_PER_TRIAL: u64 = 25;
/// Blocks of an experiment beyond those planned, where its verdicts are open and time is left. With
/// 9 instead of 3 the smallest effect that is found is little more than half as large.
const FURTHER_BLOCKS: u32 = 6;
/// What a plan is made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRequest {
    /// The time that the run may take; absent to take the files as they are.
    pub budget: Option<Nanos>,
    /// Where the order comes from.
    pub seed: u64,
    /// What the hosts can do.
    pub hosts: Hosts,
    /// Blocks of each experiment beyond those that are planned, for where a verdict is still open
    /// when time is left.
    pub further_blocks: u32,
    /// Time that a trial takes beside its phases.
    pub overhead_per_trial: Nanos,
    /// What each flow of a trial beyond the first adds to that.
    pub overhead_per_flow: Nanos,
    /// Time that a run takes beside its trials.
    pub overhead_once: Nanos,
}

impl PlanRequest {
    /// What a run takes beyond its trials: hosts, inventory, analysis, report.
    pub const OVERHEAD_ONCE: Nanos = Nanos::from_s(4);

    /// Returns that of a run on `hosts` within `budget`, or of one that takes the files as they are.
    pub fn within(budget: Option<Nanos>, seed: u64, hosts: Hosts) -> Self {
        let trips = hosts.round_trip.0.saturating_mul(ROUND_TRIPS_PER_TRIAL);
        Self {
            budget,
            seed,
            further_blocks: match budget {
                Some(_) => FURTHER_BLOCKS,
                None => 0,
            },
            overhead_per_trial: Nanos(OVERHEAD_PER_TRIAL.0.saturating_add(trips)),
            overhead_per_flow: OVERHEAD_PER_FLOW,
            overhead_once: Self::OVERHEAD_ONCE,
            hosts,
        }
    }
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There is no client host.
    #[error("cannot make a plan without a client: at least one host has to drive the server")]
    NoClients,
    /// Two experiments have the same name.
    #[error("cannot make a plan with two experiments called `{name}`")]
    SameName {
        /// The name.
        name: String,
    },
    /// Even the least does not fit.
    #[error("the plan needs at least {least}, more than its budget of {budget}")]
    Budget {
        /// The time there is.
        budget: Nanos,
        /// The time that the least plan takes.
        least: Nanos,
    },
    /// There are more trials than a plan may have.
    #[error(
        "cannot make a plan with {trials} trials: at most {TRIALS_MAX} are allowed; take fewer levels"
    )]
    TooManyTrials {
        /// How many there would be.
        trials: u128,
    },
    /// Nothing is left to measure.
    #[error("cannot make a plan: nothing can be measured on these hosts ({})", reasons(.left_out))]
    Nothing {
        /// What was left out, and why.
        left_out: Vec<LeftOut>,
    },
    /// A cell makes no workload.
    #[error("cannot make the workload of a cell of `{experiment}`")]
    Level {
        /// The experiment.
        experiment: String,
        /// What is wrong with the cell.
        #[source]
        cause: LevelError,
    },
    /// The workload of a single measurement is impossible.
    #[error("cannot plan the measurement")]
    Workload(#[from] WorkloadError),
}

fn reasons(left_out: &[LeftOut]) -> String {
    let reasons: Vec<String> = left_out
        .iter()
        .map(|left| format!("{}: {}", left.what, left.why))
        .collect();
    reasons.join("; ")
}

/// Returns the plan that answers `drafts` under the terms of `request`.
pub fn plan(drafts: &[Draft], request: &PlanRequest) -> Result<Plan, PlanError> {
    check_request(drafts, request)?;
    let mut left_out = Vec::new();
    let here: Vec<Draft> = drafts
        .iter()
        .filter_map(|draft| {
            let experiment = runnable(&draft.experiment, &request.hosts, &mut left_out)?;
            let budget = draft.budget.clone();
            Some(Draft { experiment, budget })
        })
        .collect();
    if here.is_empty() {
        return Err(PlanError::Nothing { left_out });
    }
    let experiments = here.iter().map(|draft| &draft.experiment);
    let extents = match request.budget {
        None => experiments.clone().map(whole).collect(),
        Some(budget) => {
            let extents = fit(&here, budget, request);
            extents.map_err(|least| PlanError::Budget {
                budget,
                least: nanos(least),
            })?
        }
    };
    let estimate = nanos(cost(experiments.clone().zip(&extents), request));
    check_trials(experiments.clone().zip(&extents))?;
    let mut plan = Plan {
        experiments: Vec::new(),
        trials: Vec::new(),
        seed: request.seed,
        estimate,
        budget: request.budget,
        left_out,
        optional: Vec::new(),
        repeats: Vec::new(),
        stages: Vec::new(),
        margins: Default::default(),
    };
    let (mut due, mut further) = (Vec::new(), Vec::new());
    for (experiment, extent) in experiments.zip(&extents) {
        let mut own = append_experiment(&mut plan, experiment, extent, request)?;
        further.push(own.split_off(extent.replicates as usize));
        due.push(own);
    }
    plan.trials = rounds(&due, 1);
    let room = TRIALS_MAX as usize - plan.trials.len();
    plan.optional = rounds(&further, plan.trials.len() as u32 + 1);
    plan.optional.truncate(room);
    Ok(plan)
}

/// Returns the plan of as many of `drafts` as the budget of `request` has time for, each with as many
/// blocks as say something at least: whoever has little time wants some answers, not none. The first has the first
/// claim, of the others those that take least time; what is not measured is said.
pub fn fitting(drafts: &[Draft], request: &PlanRequest) -> Result<Plan, PlanError> {
    let drafts = with_blocks(drafts);
    let cost_of = |draft: &Draft| {
        let own = (&draft.experiment, &least(draft));
        cost(std::iter::once(own), request)
    };
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    order.sort_by_key(|&at| (at > 0, cost_of(&drafts[at])));
    let mut kept: Vec<usize> = Vec::new();
    let mut impossible: Vec<LeftOut> = Vec::new();
    let mut found = plan(&[], request);
    for at in order {
        let mut wanted = kept.clone();
        wanted.push(at);
        wanted.sort_unstable();
        let some: Vec<Draft> = wanted.iter().map(|&at| drafts[at].clone()).collect();
        match plan(&some, request) {
            // What cannot be run here takes no time.
            Ok(plan) if plan.experiment(&drafts[at].experiment.name).is_none() => {
                let why = plan.left_out.into_iter();
                impossible.extend(why.filter(|left| left.what == drafts[at].experiment.name));
            }
            Err(PlanError::Nothing { left_out }) => impossible.extend(left_out),
            Ok(plan) => (found, kept) = (Ok(plan), wanted),
            Err(PlanError::Budget { .. }) if !kept.is_empty() => {}
            Err(error) if needs_less(&error, &found) => found = Err(error),
            Err(PlanError::Budget { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let mut plan = match found {
        Err(PlanError::Nothing { .. }) => {
            return Err(PlanError::Nothing {
                left_out: impossible,
            });
        }
        found => found?,
    };
    let left = (0..drafts.len()).filter(|at| !kept.contains(at));
    let left = left.map(|at| &drafts[at]);
    let is_told = |name: &str| impossible.iter().any(|left| left.what == name);
    let late = left.filter(|draft| !is_told(&draft.experiment.name));
    plan.left_out.extend(late.map(no_time));
    plan.left_out.extend(impossible);
    Ok(plan)
}

/// Returns the plan of a study of which each experiment has as many blocks as say something: where there is no time for all,
/// experiments give way in the order of [`GIVE_WAY`]. Where even the others have none, or leave none for what shows while
/// trials run, they have what their files ask for and time allows.
pub fn yielding(drafts: &[Draft], request: &PlanRequest) -> Result<Plan, PlanError> {
    let whole = with_blocks(drafts);
    let fewer = (0..=GIVE_WAY.len()).map(|count| (&*whole, &GIVE_WAY[..count]));
    let attempts = fewer.chain([(drafts, GIVE_WAY)]);
    let mut found = plan(&[], request);
    for (drafts, gone) in attempts {
        let gives_way = |draft: &&Draft| gone.contains(&&*draft.experiment.name);
        let (left, kept): (Vec<&Draft>, Vec<&Draft>) = drafts.iter().partition(gives_way);
        let kept: Vec<Draft> = kept.into_iter().cloned().collect();
        found = plan(&kept, request).map(|mut plan| {
            let left = left.into_iter().map(no_time);
            plan.left_out.extend(left);
            plan
        });
        let has_room = |plan: &Plan| {
            let planned = request.budget.map(|budget| planned(budget, request));
            planned.is_none_or(|planned| u128::from(plan.estimate.0) <= planned)
        };
        match &found {
            Err(PlanError::Budget { .. }) => {}
            Ok(plan) if !has_room(plan) => {}
            _ => break,
        }
    }
    found
}

fn with_blocks(drafts: &[Draft]) -> Vec<Draft> {
    let mut drafts = drafts.to_vec();
    for Draft { budget, experiment } in &mut drafts {
        let blocks = wanted(experiment);
        let (fewest, most) = &mut budget.replicates;
        *most = blocks.max(*most);
        *fewest = blocks.max(*fewest);
    }
    drafts
}

fn no_time(draft: &Draft) -> LeftOut {
    let blocks = wanted(&draft.experiment);
    LeftOut {
        chapter: draft.experiment.chapter,
        what: draft.experiment.name.clone(),
        why: format!("no time for {} of it", counted(blocks, "block")),
    }
}

/// Whether `error` is of a budget, and names less than `found` does.
fn needs_less(error: &PlanError, found: &Result<Plan, PlanError>) -> bool {
    let PlanError::Budget { least, .. } = error else {
        return false;
    };
    !matches!(found, Err(PlanError::Budget { least: before, .. }) if before <= least)
}

/// One workload as it is asked for on a command line.
#[derive(Debug, Clone)]
pub struct Single {
    /// What is measured.
    pub workload: Workload,
    /// What varies of it, if anything does.
    pub factors: Vec<(Factor, Vec<Level>)>,
    /// The phases of every trial.
    pub timing: Timing,
    /// How often each cell is measured: as many times as this begins with, and further times up to its end.
    pub replicates: RangeInclusive<u32>,
    /// Where the order comes from.
    pub seed: u64,
}

/// Returns the search for where a condition stops to hold between the two levels of what varies.
pub fn searched(asked: Single, search: Search) -> Draft {
    let experiment = Experiment {
        title: "Search".to_owned(),
        question: format!("Where does {} stop to hold?", search.condition),
        method: "Bisection between two levels; each level is measured several times.".to_owned(),
        factors: asked.factors,
        search: Some(search),
        ..Experiment::plain(
            "search",
            asked.workload,
            asked.timing,
            *asked.replicates.start(),
        )
    };
    Draft {
        budget: BudgetHints::fixed(&experiment),
        experiment,
    }
}

/// Name, title and question of the experiment that [`single`] makes.
const SINGLE: [&str; 3] = ["run", "Measurement", "How fast is it?"];

/// Whether `plan` is of one workload as it was asked for on a command line, with whatever varies of it.
pub fn is_single(plan: &Plan) -> bool {
    matches!(plan.experiments.as_slice(), [one] if [&*one.name, &*one.title, &*one.question] == SINGLE)
}

/// Returns the plan of one workload.
pub fn single(asked: Single) -> Result<Plan, PlanError> {
    let Single {
        workload,
        factors,
        timing,
        replicates,
        seed,
    } = asked;
    workload.check()?;
    let [name, title, question] = SINGLE;
    let experiment = Experiment {
        title: title.to_owned(),
        question: question.to_owned(),
        method: if factors.is_empty() {
            "One workload, measured as asked.".to_owned()
        } else {
            "One workload, its levels interleaved in blocks.".to_owned()
        },
        baseline: factors
            .iter()
            .filter_map(|(factor, levels)| Some((*factor, levels.first()?.clone())))
            .collect(),
        factors,
        ..Experiment::plain(name, workload, timing, *replicates.start())
    };
    let further = replicates.end().saturating_sub(*replicates.start());
    as_asked(vec![experiment], further, seed)
}

/// Returns the plan of `probe` alone, beside `bulk` to the server and beside it from the server.
pub fn loaded(
    probe: &Workload,
    bulk: &Workload,
    timing: Timing,
    replicates: u32,
    seed: u64,
) -> Result<Plan, PlanError> {
    let idle = Experiment {
        title: "Latency of the idle path".to_owned(),
        question: "How long does an exchange take alone?".to_owned(),
        method: "A probe alone.".to_owned(),
        response: name::RTT_P50.to_owned(),
        ..Experiment::plain("idle", probe.clone(), timing, replicates)
    };
    let beside = |direction: Direction| {
        let mut bulk = bulk.clone();
        if let Some((way, _)) = bulk.traffic.stream_mut() {
            *way = direction;
        }
        Experiment {
            name: direction.word().to_owned(),
            title: format!("Latency during bulk {}", direction.in_words()),
            question: "How much longer does an exchange take during bulk?".to_owned(),
            method: "The same probe; bulk starts at the same instant.".to_owned(),
            beside: vec![Group {
                name: "bulk".to_owned(),
                workload: bulk,
            }],
            ..idle.clone()
        }
    };
    let ways = [Direction::ToServer, Direction::FromServer].map(beside);
    let experiments = std::iter::once(idle).chain(ways).collect();
    as_asked(experiments, 0, seed)
}

/// Returns the plan of `experiments` on hosts that are not known yet, without a budget.
fn as_asked(
    experiments: Vec<Experiment>,
    further_blocks: u32,
    seed: u64,
) -> Result<Plan, PlanError> {
    let clients = experiments.iter().map(|one| one.workload.clients).max();
    let request = PlanRequest {
        budget: None,
        seed,
        hosts: Hosts {
            clients: clients.unwrap_or(1),
            ..Hosts::default()
        },
        further_blocks,
        overhead_per_trial: Nanos(0),
        overhead_per_flow: Nanos(0),
        overhead_once: Nanos(0),
    };
    let draft = |experiment: Experiment| Draft {
        budget: BudgetHints::fixed(&experiment),
        experiment,
    };
    let drafts: Vec<Draft> = experiments.into_iter().map(draft).collect();
    plan(&drafts, &request)
}

fn check_request(drafts: &[Draft], request: &PlanRequest) -> Result<(), PlanError> {
    if request.hosts.clients == 0 {
        return Err(PlanError::NoClients);
    }
    let names: Vec<&str> = drafts.iter().map(|d| d.experiment.name.as_str()).collect();
    let twice = (1..names.len()).find(|&at| names[..at].contains(&names[at]));
    twice.map_or(Ok(()), |at| {
        let name = names[at].to_owned();
        Err(PlanError::SameName { name })
    })
}

fn check_trials<'a>(
    extents: impl Iterator<Item = (&'a Experiment, &'a Extent)>,
) -> Result<(), PlanError> {
    let trials = extents
        .map(|(experiment, extent)| trial_count(experiment, extent))
        .fold(0, u128::saturating_add);
    if trials > TRIALS_MAX.into() {
        return Err(PlanError::TooManyTrials { trials });
    }
    Ok(())
}

/// Adds `experiment`, reduced to `extent`, to `plan`; returns its blocks, further ones included.
fn append_experiment(
    plan: &mut Plan,
    experiment: &Experiment,
    extent: &Extent,
    request: &PlanRequest,
) -> Result<Vec<Vec<Trial>>, PlanError> {
    let mut experiment = experiment.clone();
    let mut groups = groups(&experiment);
    for (group, is_in) in groups.iter_mut().zip(&extent.levels) {
        let thinned: Vec<usize> = (0..is_in.len()).filter(|&at| !is_in[at]).collect();
        if let (false, Some(budget)) = (thinned.is_empty(), plan.budget) {
            plan.left_out.push(LeftOut {
                chapter: experiment.chapter,
                what: format!("{}: {}", experiment.name, group.words_of(&thinned)),
                why: format!("the budget of {budget} is too short"),
            });
        }
        let mut is_in = is_in.iter();
        group.levels.retain(|_| is_in.next() == Some(&true));
    }
    set_groups(&mut experiment, &groups);
    experiment.replicates = extent.replicates;
    experiment.timing.measure = extent.measure;
    let mut cells = cells(experiment.design, &groups, &experiment.baseline);
    cells.extend(experiment.search_control());
    // Where levels follow from each other, further blocks are of those.
    let further = if experiment.is_adaptive() {
        0
    } else {
        request.further_blocks
    };
    let count = extent.replicates.saturating_add(further);
    let blocks = blocks(&experiment, &cells, plan.seed, &request.hosts, count);
    let blocks = blocks.map_err(|cause| PlanError::Level {
        experiment: experiment.name.clone(),
        cause,
    })?;
    let varies = |factor| !experiment.levels(factor).is_empty();
    let asked = [
        Factor::Transport,
        Factor::Congestion,
        Factor::CongestionDefault,
    ];
    if !asked.into_iter().any(varies) {
        request.hosts.settle_congestion(&mut experiment.workload);
    }
    plan.experiments.push(experiment);
    Ok(blocks)
}

fn nanos(value: u128) -> Nanos {
    Nanos(u64::try_from(value).unwrap_or(u64::MAX))
}
