//! Experiments whose levels follow from what was measured of others: which comes next, and what they found.

/// A scale refined where the response changes most.
pub mod refine;
/// Where a condition stops to hold.
pub mod search;
/// What they found, in words and lines.
mod told;

use linerate_model::TrialId;
use linerate_model::experiment::{Experiment, Level};
use linerate_model::number;
use linerate_model::run::Recording;

pub use told::{Line, Told};

use crate::groups::Reduced;

/// Returns the level at which each such experiment of `recording` measures next, and the names of those that are not over.
pub fn next_levels(reduced: &Reduced<'_>) -> (Vec<(String, Level)>, Vec<String>) {
    let recording = reduced.recorded();
    let (mut levels, mut names) = (Vec::new(), Vec::new());
    let mut all = None;
    let experiments = recording.document.plan.experiments.iter();
    for experiment in experiments.filter(|it| it.is_adaptive()) {
        let name = || experiment.name.clone();
        if has_open_trials(recording, experiment) {
            names.push(name());
            continue;
        }
        let all = all.get_or_insert_with(|| reduced.outcomes());
        let next = search::next_level(recording, all, experiment)
            .or_else(|| refine::next_level(recording, all, experiment));
        if let Some(at) = next {
            names.push(name());
            let kind = experiment
                .factors
                .first()
                .and_then(|(_, levels)| levels.first());
            let level = kind.and_then(|kind| kind.with_whole(at));
            levels.extend(level.map(|level| (name(), level)));
        }
    }
    (levels, names)
}

/// Returns whether trials of `experiment` are planned that are not over.
fn has_open_trials(recording: &Recording, experiment: &Experiment) -> bool {
    let is_over = |id: TrialId| recording.trials.iter().any(|trial| trial.trial == id);
    let all = recording.document.plan.trials.iter();
    let mut own = all.filter(|it| it.experiment == experiment.name);
    own.any(|trial| !is_over(trial.id))
}

/// Returns what `experiment` found; nothing where its levels do not follow from others.
pub fn told(recording: &Recording, experiment: &Experiment) -> Option<Told> {
    search::told(recording, experiment).or_else(|| refine::told(recording, experiment))
}

/// Returns how the experiments of `recording` came to their answers, each with a heading, as lines for a terminal.
pub fn paths(recording: &Recording) -> Vec<(String, Vec<String>)> {
    let experiments = recording.document.plan.experiments.iter();
    let told = experiments.filter_map(|experiment| told(recording, experiment));
    let path = |told: Told| {
        let added = told.added.into_iter();
        let added = added.map(|(level, why)| format!("added {level}, {why}"));
        let levels = told.levels.into_iter().map(|line| {
            let value = line.value.map(|value| number::estimate(&value).line());
            format!(
                "{}: {} by {}: {}",
                line.level,
                value.as_deref().unwrap_or("not read"),
                number::counted(line.trials, "trial"),
                line.says
            )
        });
        let heading = format!("{}: {}", told.title, told.response);
        (heading, added.chain(levels).collect())
    };
    told.map(path).collect()
}
