//! A plan that is made of the one before it: further trials of a search at one level.
//!
//! Which level follows from what was measured; that is decided where recordings are read. Here the trials follow from
//! the plan and the level alone.

use linerate_model::TrialId;
use linerate_model::experiment::{Experiment, Level, LevelError};
use linerate_model::plan::{Plan, Stage, Trial};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::order::settled;

/// Returns the stage that measures `experiment` of `plan` at `level` of its factor, with its trials: as many as the
/// design has replicates, each a block of its own.
pub fn extension(
    plan: &Plan,
    experiment: &Experiment,
    level: &Level,
) -> Result<Option<(Stage, Vec<Trial>)>, LevelError> {
    let own = || {
        plan.trials
            .iter()
            .filter(|it| it.experiment == experiment.name)
    };
    let (Some((factor, _)), Some(first)) = (experiment.factors.first(), own().next()) else {
        return Ok(None);
    };
    let all = plan.trials.iter().chain(&plan.optional);
    let last = all.map(|trial| trial.id.0).max().unwrap_or(0);
    let block = own().map(|trial| trial.replicate).max().unwrap_or(0);
    let mut cell = first.cell.clone();
    cell.insert(*factor, level.clone());
    let mut workload = first.workload.clone();
    factor.apply(level, &mut workload)?;
    workload.check()?;
    let mut random = Pcg64::seed_from_u64(plan.seed ^ u64::from(last));
    let trials: Vec<Trial> = (1..=experiment.replicates)
        .map(|at| Trial {
            id: TrialId(last + at),
            cell: cell.clone(),
            replicate: block + at,
            seed: random.next_u64(),
            workload: workload.clone(),
            timing: settled(experiment.timing, &cell),
            ..first.clone()
        })
        .collect();
    let stage = Stage {
        experiment: experiment.name.clone(),
        cell,
        trials: trials.iter().map(|trial| trial.id).collect(),
    };
    Ok(Some((stage, trials)))
}
