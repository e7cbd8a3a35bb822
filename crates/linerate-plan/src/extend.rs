//! A plan that is made of the one before it: further trials of a search at one level.
//!
//! Which level follows from what was measured; that is decided where recordings are read. Here the trials follow from
//! the plan and the level alone.

use linerate_model::TrialId;
use linerate_model::experiment::{Cell, Experiment, Level, LevelError};
use linerate_model::plan::{Plan, Stage, Trial};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::order::{settled, shuffle};

/// Returns the stage that measures `experiment` of `plan` at `level` of its factor, with its trials: as many as the
/// design has replicates, each in a block of its own, with what its condition is relative to.
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
    let mut random = Pcg64::seed_from_u64(plan.seed ^ u64::from(last));
    let mut trials: Vec<Trial> = Vec::new();
    for replicate in (block + 1..).take(experiment.replicates as usize) {
        let mut cells: Vec<Cell> = std::iter::once(cell.clone())
            .chain(experiment.search_control())
            .collect();
        shuffle(&mut cells, &mut random);
        for cell in cells {
            let mut workload = first.workload.clone();
            for (factor, level) in &cell {
                factor.apply(level, &mut workload)?;
            }
            workload.check()?;
            trials.push(Trial {
                id: TrialId(last + 1 + trials.len() as u32),
                timing: settled(experiment.timing, &cell),
                cell,
                replicate,
                seed: random.next_u64(),
                workload,
                ..first.clone()
            });
        }
    }
    let stage = Stage {
        experiment: experiment.name.clone(),
        cell,
        trials: trials.iter().map(|trial| trial.id).collect(),
    };
    Ok(Some((stage, trials)))
}
