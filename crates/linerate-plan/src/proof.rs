//! A plan that is made of the one before it: trials that show what a change does to a measurement.
//!
//! Which change follows from what was measured; that is decided where recordings are read. Here the trials follow from the
//! plan and the experiment.

use linerate_model::TrialId;
use linerate_model::experiment::{Cell, Experiment, LevelError};
use linerate_model::plan::{Plan, Trial};
use linerate_model::workload::Workload;

/// Trials of a block: the setting as it is, the changed one twice, as it is again, and the next block the other way round. What
/// drifts with time drifts as much for one as for the other.
const BLOCK: [bool; 4] = [false, true, true, false];

/// Returns the trials of `blocks` blocks of `experiment`, whose one factor has two levels: its workload as it is, and `changed`.
pub fn proof(
    plan: &Plan,
    experiment: &Experiment,
    changed: &Workload,
    blocks: u32,
) -> Result<Vec<Trial>, LevelError> {
    changed.check()?;
    let Some((factor, [own, other])) = experiment
        .factors
        .first()
        .and_then(|(factor, levels)| Some((*factor, <&[_; 2]>::try_from(levels.as_slice()).ok()?)))
    else {
        return Ok(Vec::new());
    };
    let all = plan.trials.iter().chain(&plan.optional);
    let last = all.map(|trial| trial.id.0).max().unwrap_or(0);
    let places = (1..=blocks).flat_map(|block| BLOCK.map(|is_changed| (block, is_changed)));
    let trial = |(id, (block, is_changed)): (u32, (u32, bool))| {
        let is_changed = is_changed == (block % 2 == 1);
        let (level, workload) = if is_changed {
            (other, changed)
        } else {
            (own, &experiment.workload)
        };
        Trial {
            id: TrialId(id),
            experiment: experiment.name.clone(),
            cell: Cell::from([(factor, level.clone())]),
            replicate: block,
            seed: plan.seed ^ u64::from(id),
            workload: workload.clone(),
            beside: Vec::new(),
            timing: experiment.timing,
            hosts: Vec::new(),
            step: 0,
        }
    };
    Ok((last + 1..).zip(places).map(trial).collect())
}

#[cfg(test)]
mod tests {
    use linerate_model::Nanos;
    use linerate_model::experiment::{Factor, Level, Timing};
    use linerate_model::workload::Direction;

    use super::*;
    use crate::{Single, single};

    #[test]
    fn blocks_mirror_each_other() {
        let workload = Workload::stream(Direction::ToServer);
        let plan = single(Single {
            workload: workload.clone(),
            factors: Vec::new(),
            timing: Timing {
                settle: Nanos(0),
                warm_up: Nanos(0),
                measure: Nanos::from_s(1),
                drain: Nanos(0),
            },
            replicates: 1..=1,
            seed: 7,
        })
        .expect("a plan");
        let levels = [1, 2].map(Level::Count);
        let experiment = Experiment {
            name: "prove-1".to_owned(),
            factors: vec![(Factor::Connections, levels.to_vec())],
            ..plan.experiments[0].clone()
        };
        let changed = Workload {
            connections: 2,
            ..workload
        };
        let trials = proof(&plan, &experiment, &changed, 2).expect("the workload is possible");
        let flows: Vec<u32> = trials.iter().map(|it| it.workload.connections).collect();
        assert_eq!(flows, [1, 2, 2, 1, 2, 1, 1, 2]);
        let blocks: Vec<u32> = trials.iter().map(|it| it.replicate).collect();
        assert_eq!(blocks, [1, 1, 1, 1, 2, 2, 2, 2]);
        assert!(trials.iter().all(|it| it.id > plan.trials[0].id));
        for trial in &trials {
            let level = Level::Count(u64::from(trial.workload.connections));
            assert_eq!(trial.cell, Cell::from([(Factor::Connections, level)]));
        }
    }
}
