//! What each fact is worth for each cause: a multinomial logistic model, fitted to the fitting half of the corpus.
//!
//! A recording's causes are those that its traffic may have; the model gives each a probability that is proportional to the
//! exponential of its score, and weights are those under which the causes that are true are most probable, less a penalty on
//! large ones (a normal prior, L2). Recordings of a frequent cause count less, so that a cause is not named since the corpus has
//! many of it. The penalty is the one that does best in the fitting half itself, each of its parts judged by the others.

use std::fmt::Write as _;

use linerate_analyze::causes::{self, CAUSES};
use linerate_analyze::evidence::{FACTS, Source};
use linerate_analyze::evidence_of;
use linerate_analyze::infer::{Evidence, Inference, Weights, candidates, rivals};
use linerate_model::limiter::Limiter;
use linerate_truth::corpus::{Half, Recorded};
use linerate_truth::limiters;

/// Penalties that are tried.
const PENALTIES: &[f64] = &[0.03, 0.1, 0.3, 1.0, 3.0];
/// Leads that are tried.
const LEADS: &[f64] = &[0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0];
/// Parts that the fitting half is cut into.
const PARTS: usize = 5;
/// Steps of the search; later ones change nothing that is written.
const STEPS: usize = 600;
/// Length of a step, of Adam (Kingma and Ba 2015).
const STEP: f64 = 0.05;
const MOMENTUM: [f64; 2] = [0.9, 0.999];
/// No fact is worth more: twenty to one.
const WORTH_MAX: f64 = 3.0;

/// Recordings that are made up of each cause, and what draws them.
const MADE: usize = 6;
const MADE_SEED: u64 = 1;

/// A recording as it is fitted to.
pub struct Case {
    /// Its set-up.
    pub setup: String,
    half: Half,
    /// The place of what is true in [`CAUSES`]; absent where the catalogue lacks it.
    truth: Option<usize>,
    limiters: Vec<String>,
    healthy: bool,
    trials: Vec<Evidence>,
}

impl Case {
    /// Returns a recording as it is fitted to.
    pub fn of(recorded: &Recorded) -> Self {
        Self {
            setup: recorded.setup.clone(),
            half: Half::of(&recorded.setup),
            truth: causes::place(&recorded.truth.cause),
            limiters: recorded.truth.limiters.clone(),
            healthy: recorded.truth.healthy,
            trials: evidence_of(&recorded.recording)
                .into_iter()
                .next()
                .unwrap_or_default(),
        }
    }
}

/// Returns recordings that are made up of causes that the machine of the corpus cannot produce, or only in a few ways: they
/// are fitted to beside the fitting half, and judged by tests.
fn made() -> Vec<Case> {
    let of_cause = |cause: &limiters::Cause| {
        let truth = causes::place(cause.catalogued());
        let recordings = cause.recordings(MADE, MADE_SEED).into_iter();
        let cases = recordings.enumerate().map(move |(number, recording)| Case {
            setup: format!("made/{}-{number}", cause.title()),
            half: Half::Fitted,
            truth,
            limiters: Vec::new(),
            healthy: false,
            trials: evidence_of(&recording)
                .into_iter()
                .next()
                .unwrap_or_default(),
        });
        cases.collect::<Vec<_>>()
    };
    limiters::Cause::ALL.iter().flat_map(of_cause).collect()
}

/// Degrees of the facts of a case: what holds and what does not, none where it is not known.
type Degrees = Vec<[f64; 2]>;

struct Example {
    degrees: Degrees,
    candidates: Vec<usize>,
    /// What is true; where another limiter is as right, its causes, too.
    truths: Vec<usize>,
    weight: f64,
}

fn examples<'c>(cases: impl Iterator<Item = &'c Case> + Clone) -> Vec<Example> {
    let count = |truth: usize| {
        cases
            .clone()
            .filter(|case| case.truth == Some(truth))
            .count()
    };
    let example = |case: &Case, candidates: Vec<usize>| {
        let truth = case.truth?;
        let trial = case.trials.first()?;
        let degrees = trial.readings.iter().map(|reading| {
            reading
                .degree()
                .map_or([0.0; 2], |degree| [degree, 1.0 - degree])
        });
        let own = CAUSES[truth].limiter;
        let is_right = |cause: &usize| {
            let limiter = CAUSES[*cause].limiter;
            let named = limiter
                .filter(|_| limiter != own)
                .map(|limiter| limiter.id());
            *cause == truth || named.is_some_and(|id| case.limiters.iter().any(|one| one == id))
        };
        let truths = candidates.iter().copied().filter(is_right).collect();
        candidates.contains(&truth).then(|| Example {
            degrees: degrees.collect(),
            candidates,
            truths,
            weight: 1.0 / (count(truth) as f64).sqrt(),
        })
    };
    // Once with what the facts leave, and once with what they would leave had what shows a cause not been read.
    let both = |case: &Case| {
        [candidates(&case.trials), rivals(&case.trials)].map(|among| example(case, among))
    };
    cases.clone().flat_map(both).flatten().collect()
}

/// Returns what facts are worth before anything is counted: a pattern that shows a cause speaks for it, others say nothing.
fn prior() -> Weights {
    let mut weights = Weights::none();
    for (cause, of_cause) in CAUSES.iter().zip(&mut weights.0) {
        for (fact, worth) in FACTS.iter().zip(of_cause) {
            if fact.source == Source::Patterns && cause.shown_by.contains(&fact.id) {
                worth[0] = WORTH_MAX;
            }
        }
    }
    weights
}

/// Returns the weights under which the truth of `examples` is most probable, less the penalty.
fn fitted(examples: &[Example], penalty: f64) -> Weights {
    let (causes, facts) = (CAUSES.len(), FACTS.len());
    let prior = prior();
    let mut weights = prior.clone();
    let mut moments = vec![[0.0_f64; 2]; causes * facts * 2];
    let all: f64 = examples.iter().map(|one| one.weight).sum();
    for step in 1..=STEPS {
        let mut gradient = vec![0.0_f64; causes * facts * 2];
        for example in examples {
            let odds = odds(example, &weights);
            let sum: f64 = odds.iter().map(|(_, odds)| odds).sum();
            let is_true = |cause: &usize| example.truths.contains(cause);
            let pairs = || odds.iter().map(|(cause, odds)| (cause, odds));
            let of_truths: f64 = pairs()
                .filter(|(cause, _)| is_true(cause))
                .map(|(_, odds)| odds)
                .sum();
            for (cause, odds) in pairs() {
                let wanted = if is_true(cause) {
                    odds / of_truths.max(f64::MIN_POSITIVE)
                } else {
                    0.0
                };
                let error = example.weight * (odds / sum - wanted);
                let own = &mut gradient[cause * facts * 2..(cause + 1) * facts * 2];
                for (place, degree) in example.degrees.iter().enumerate() {
                    own[2 * place] += error * degree[0];
                    own[2 * place + 1] += error * degree[1];
                }
            }
        }
        let corrected = MOMENTUM.map(|momentum| 1.0 - momentum.powi(step as i32));
        for (place, gradient) in gradient.into_iter().enumerate() {
            let (cause, fact, side) = (place / 2 / facts, place / 2 % facts, place % 2);
            let worth = &mut weights.0[cause][fact][side];
            let gradient = gradient / all + penalty * (*worth - prior.0[cause][fact][side]) / 100.0;
            let moment = &mut moments[place];
            moment[0] = MOMENTUM[0] * moment[0] + (1.0 - MOMENTUM[0]) * gradient;
            moment[1] = MOMENTUM[1] * moment[1] + (1.0 - MOMENTUM[1]) * gradient * gradient;
            let length = moment[0] / corrected[0] / ((moment[1] / corrected[1]).sqrt() + 1e-8);
            *worth = (*worth - STEP * length).clamp(-WORTH_MAX, WORTH_MAX);
        }
    }
    weights
}

/// Returns the negative logarithm of the probability that `weights` give what is true of `examples`.
fn surprise(examples: &[Example], weights: &Weights) -> f64 {
    let of = |example: &Example| {
        let odds = odds(example, weights);
        let of_truths = odds
            .iter()
            .filter(|(cause, _)| example.truths.contains(cause));
        let of_truths: f64 = of_truths.map(|(_, odds)| odds).sum();
        let all: f64 = odds.iter().map(|(_, odds)| odds).sum();
        -example.weight * (of_truths / all).max(f64::MIN_POSITIVE).ln()
    };
    examples.iter().map(of).sum()
}

/// Returns the candidates of an example with their odds.
fn odds(example: &Example, weights: &Weights) -> Vec<(usize, f64)> {
    let score = |cause: &usize| {
        let worth = weights.0[*cause].iter().zip(&example.degrees);
        let sum = worth.map(|(worth, degree)| worth[0] * degree[0] + worth[1] * degree[1]);
        sum.sum::<f64>()
    };
    let scores: Vec<f64> = example.candidates.iter().map(score).collect();
    let most = scores.iter().copied().fold(f64::MIN, f64::max);
    let odds = scores.iter().map(|score| (score - most).exp());
    example.candidates.iter().copied().zip(odds).collect()
}

/// How often names are right.
#[derive(Default, Clone, Copy)]
struct Count {
    named: usize,
    wrong: usize,
    nameable: usize,
    unknown: usize,
    healthy_wrong: usize,
    /// Of the unknown ones that could be named, those of which a right limiter is left standing.
    standing: usize,
    /// Causes that are the first, whether named or not.
    first: usize,
    all: usize,
}

fn counted<'c>(cases: impl Iterator<Item = &'c Case>, weights: &Weights, lead_min: f64) -> Count {
    let mut count = Count::default();
    for case in cases {
        let inference = Inference::with_lead(&case.trials, weights, lead_min);
        let named = inference.limiter.map(|limiter| limiter.id().to_owned());
        let is_right = named.as_ref().is_some_and(|id| case.limiters.contains(id));
        count.all += 1;
        count.first += usize::from(inference.ranked.first().map(|one| one.0) == case.truth);
        count.named += usize::from(named.is_some());
        count.wrong += usize::from(named.is_some() && !is_right);
        count.healthy_wrong += usize::from(case.healthy && named.is_some() && !is_right);
        count.nameable += usize::from(!case.limiters.is_empty());
        if !case.limiters.is_empty() && named.is_none() {
            count.unknown += 1;
            let mut standing = inference.standing().into_iter();
            let is_right = |limiter: Limiter| case.limiters.iter().any(|id| id == limiter.id());
            count.standing += usize::from(standing.any(is_right));
        }
    }
    count
}

/// Fits weights to the fitting half of `cases`; returns them as text, and what they do to each half.
pub fn fit(cases: &[Case]) -> (String, String) {
    let of = |half| cases.iter().filter(move |case| case.half == half);
    let made = made();
    let fitted_to = || of(Half::Fitted).chain(&made);
    let mut told = String::new();
    let part = |case: &Case| case.setup.bytes().map(usize::from).sum::<usize>() % PARTS;
    let mut best: Option<(f64, f64)> = None;
    for &penalty in PENALTIES {
        let surprise: f64 = (0..PARTS)
            .map(|own| {
                let of_part =
                    |is_own: bool| fitted_to().filter(move |case| (part(case) == own) == is_own);
                surprise(
                    &examples(of_part(true)),
                    &fitted(&examples(of_part(false)), penalty),
                )
            })
            .sum();
        let _ = writeln!(told, "penalty {penalty}: surprise {surprise:.1}");
        if best.is_none_or(|(least, _)| surprise < least) {
            best = Some((surprise, penalty));
        }
    }
    let penalty = best.map_or(PENALTIES[0], |(_, penalty)| penalty);
    let weights = fitted(&examples(fitted_to()), penalty);
    let _ = writeln!(told, "penalty {penalty}");
    for (half, lead) in [Half::Fitted, Half::HeldOut]
        .into_iter()
        .flat_map(|half| LEADS.iter().map(move |lead| (half, *lead)))
    {
        let count = counted(of(half), &weights, lead);
        let _ = writeln!(
            told,
            "{}, lead {lead}: {} recordings, first right {}, named {}, wrong {}, of healthy ones {}, unknown {} of {}, {} of them standing",
            half.name(),
            count.all,
            count.first,
            count.named,
            count.wrong,
            count.healthy_wrong,
            count.unknown,
            count.nameable,
            count.standing
        );
    }
    (weights.text(), told)
}

/// Returns what is concluded of the cases with the weights of this build, where it is wrong or unknown.
pub fn concluded(cases: &[Case], weights: &Weights) -> String {
    let mut text = String::new();
    for case in cases {
        let inference = Inference::of(&case.trials, weights);
        let named = inference.limiter.map_or("unknown", |limiter| limiter.id());
        let is_right = case.limiters.iter().any(|id| id == named);
        let ranked = inference.ranked.iter().take(3);
        let ranked: Vec<String> = ranked
            .map(|(cause, behind)| format!("{} {behind:.1}", CAUSES[*cause].id))
            .collect();
        let standing = match (is_right, named) {
            (true, _) => "right",
            (false, "unknown") => "unknown",
            (false, _) => "WRONG",
        };
        let truth = case.truth.map_or("–", |cause| CAUSES[cause].id);
        let _ = writeln!(
            text,
            "{}\t{standing}\t{}\tis {truth}\tsays {named}\t{}",
            case.half.name(),
            case.setup,
            ranked.join(", ")
        );
    }
    text
}
