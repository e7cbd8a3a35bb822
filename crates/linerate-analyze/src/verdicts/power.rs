//! What a plan can decide before it runs.
//!
//! The comparisons of a report follow from its plan. So runs of the plan are made whose trials differ by a noise that is
//! known and by nothing else, and the verdicts themselves say what is compared, by how many pairs, with which share of the
//! error, how well a difference is then known, and how often two are told to be the same: what changes in the verdicts
//! changes here.
//!
//! A difference θ is shown where its interval, whose half is t₁₋α/₂ s with the s of its mean, leaves zero outside. It is in a
//! share of 0.8 ([`FOUND_SHARE`]) of runs where θ = (t₁₋α/₂ + t₀.₈) s. The α is what Holm's procedure leaves the comparison
//! where nothing else is shown; s² is the mean of the made runs. What is less than the margin may be told to be the same, so
//! that no smaller difference is promised.

use linerate_model::finding::{Decidable, DecidableAt, FOUND_SHARE, NOISES, Verdict};
use linerate_model::outcome::{Outcome, Response};
use linerate_model::plan::Plan;
use linerate_model::run::{Recording, RunDocument, Validity};

use super::{OF_COMPARISONS, Verdicts, comparisons};
use crate::compare::draw::Draw;
use crate::compare::effect::PAIRS_MIN;
use crate::compare::interval::student;
use crate::compare::kin::Variance;
use crate::dataset::Dataset;
use crate::reduce::describe;

/// Runs that are made at each noise: a share of them is then known to 0.08 at the worst.
const MADE: u32 = 40;
/// Trials of all that are made at a noise, from which on there are fewer runs, but [`MADE_MIN`]: a large plan is looked at
/// for no longer than a small one, and has more pairs to tell its noise by.
const MADE_TRIALS: usize = 10_000;
const MADE_MIN: u32 = 10;
/// Trials of a plan beyond which that takes longer than a plan is looked at for: a second with 3000.
const TRIALS_MAX: usize = 3000;
/// What trials are about; of a latency 1 ms, of which a share is the larger margin.
const MADE_VALUE: f64 = 1e6;

/// Returns what each comparison of `plan` can decide, in the order of the plan; nothing of more than [`TRIALS_MAX`] trials.
pub fn power(plan: &Plan) -> Option<Vec<Decidable>> {
    if plan.trials.len() > TRIALS_MAX {
        return None;
    }
    let mut recording = Recording::empty(RunDocument::of_plan(plan.clone()));
    // Stages are what was decided of trials that are not there.
    recording.document.plan.stages.clear();
    let runs = (MADE_TRIALS / plan.trials.len().max(1)) as u32;
    let runs = runs.clamp(MADE_MIN, MADE);
    let mut found: Vec<Decidable> = Vec::new();
    for noise in NOISES {
        let mut draw = Draw::new(plan.seed);
        let mut sums: Vec<Sum> = Vec::new();
        for _ in 0..runs {
            let dataset = Dataset::of(&recording, made(plan, noise, &mut draw));
            let told = comparisons(&dataset);
            let known = known(dataset.verdicts());
            sums.resize(told.len(), Sum::default());
            for (sum, comparison) in sums.iter_mut().zip(&told) {
                let known = known.iter().find(|known| known.id == comparison.id);
                let Some(known) = known else { continue };
                sum.square += known.variance.square / f64::from(runs);
                sum.freedom += known.variance.freedom / f64::from(runs);
                sum.alpha = Some((known.alpha, known.each));
                let is_same = comparison.verdict == Verdict::Same;
                sum.same += f64::from(u8::from(is_same)) / f64::from(runs);
            }
            if found.is_empty() {
                found = told
                    .into_iter()
                    .map(|comparison| Decidable {
                        id: comparison.id,
                        experiment: comparison.experiment,
                        what: comparison.what,
                        pairs: comparison.effect.n,
                        pairs_needed: None,
                        p_needed: None,
                        margin: comparison.margin,
                        at: Vec::new(),
                    })
                    .collect();
            }
        }
        for (found, sum) in found.iter_mut().zip(&sums) {
            match sum.alpha {
                None => found.pairs_needed = Some(PAIRS_MIN as u32),
                Some((alpha, each)) => {
                    found.p_needed = Some(alpha);
                    found.at.push(sum.at(noise, each, found.margin));
                }
            }
        }
    }
    Some(found)
}

/// Made runs of a comparison, put together.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    square: f64,
    freedom: f64,
    /// Of the claim, and of its interval.
    alpha: Option<(f64, f64)>,
    /// The share that is told to be the same.
    same: f64,
}

impl Sum {
    fn at(&self, noise: f64, alpha: f64, margin: f64) -> DecidableAt {
        let t = student(self.freedom, 1.0 - alpha / 2.0) + student(self.freedom, FOUND_SHARE);
        DecidableAt {
            noise,
            smallest: (t * self.square.sqrt()).exp_m1().max(margin),
            same_share: self.same,
        }
    }
}

/// A comparison that can decide.
struct Known {
    id: String,
    /// Of the difference.
    variance: Variance,
    /// The error that a claim may have, and the two-sided one of its interval.
    alpha: f64,
    each: f64,
}

/// Returns those of `verdicts`, each with the error that it has while nothing is shown.
fn known(verdicts: &Verdicts) -> Vec<Known> {
    let weights = verdicts.effects.iter().map(|effect| effect.weight);
    let weights = weights.chain(verdicts.plateaus.iter().map(|it| it.weight));
    let all: f64 = weights.sum();
    let effects = verdicts.effects.iter().map(|effect| {
        let alpha = OF_COMPARISONS * effect.weight / all;
        let (variance, each) = effect.effect.of_mean(alpha);
        Known {
            id: effect.comparison_id(),
            variance,
            alpha,
            each,
        }
    });
    let plateaus = verdicts.plateaus.iter().filter_map(|curve| {
        let alpha = OF_COMPARISONS * curve.weight / all;
        let (variance, each) = curve.plateau.of_level(alpha)?;
        Some(Known {
            id: curve.comparison_id(),
            variance,
            alpha,
            each,
        })
    });
    effects.chain(plateaus).collect()
}

/// Returns outcomes of the trials of `plan` that differ by chance only.
fn made(plan: &Plan, noise: f64, draw: &mut Draw) -> Vec<Outcome> {
    let outcome = |(trial, place): (&linerate_model::plan::Trial, u32)| {
        let experiment = plan.experiment(&trial.experiment)?;
        let response = Response {
            value: MADE_VALUE * (noise * draw.normal()).exp(),
            unit: describe(&experiment.response).unit,
        };
        Some(Outcome {
            trial: trial.id,
            experiment: trial.experiment.clone(),
            cell: trial.cell.clone(),
            replicate: trial.replicate,
            place,
            is_repeat: false,
            validity: Validity::Valid,
            flags: Vec::new(),
            responses: [(experiment.response.clone(), response)].into(),
        })
    };
    plan.trials.iter().zip(0..).filter_map(outcome).collect()
}
