//! What one change after another says of what limits a measurement: the setting as it is against a change, in turns.
//!
//! 1. The number grew where the interval of the ratio is wholly above what is the same to a user ([`Margins`]), it stayed where
//!    the interval is wholly within that, and else it is not decided.
//! 2. Who predicted that it stays is refuted where it grew, and who predicted growth where it stayed.
//! 3. A limiter is proven where it alone is left and what it predicted happened: either growth, or that the number stays while
//!    all others that were left predicted growth; and where it alone predicted growth of a change that changes nothing but it. Where nothing else was left from the start, only growth proves it, of a change
//!    that changes nothing else; after another the limiter is not refuted. Growth that refutes all that were left proves the
//!    limiter that such a change takes away, if it is one alone.
//!
//! [`Margins`]: linerate_model::margin::Margins

use std::borrow::Cow;
use std::collections::BTreeSet;

use linerate_model::TrialId;
use linerate_model::experiment::{Effect, Experiment, Factor, Level, Prediction};
use linerate_model::finding::{CONFIDENCE, Estimate};
use linerate_model::limiter::Limiter;
use linerate_model::number;
use linerate_model::plan::Plan;
use linerate_model::response::describe;
use linerate_model::run::Recording;
use linerate_model::samples::Samples;
use linerate_model::unit::Unit;
use serde::Serialize;

use crate::causes::toggle::Toggle;
use crate::compare::interval::{deviation, mean, student};
use crate::reduce::Outcome;
use crate::words;

/// Blocks of one change: two trials of each setting tell little of how trials differ.
pub(crate) const BLOCKS_MIN: u32 = 2;
/// The most of them. Each from the least number on is a look at the same numbers, and the error of all looks together is that of
/// one interval.
pub(crate) const BLOCKS_MAX: u32 = 3;
/// Those looks.
const LOOKS_OF_CHANGE: u32 = BLOCKS_MAX - BLOCKS_MIN + 1;

/// What a change did to the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Observed {
    /// It grew.
    Grew,
    /// It stayed, within what is the same to a user.
    Stayed,
    /// It fell.
    Fell,
    /// The interval leaves it open.
    Open,
}

/// What follows from a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// What one limiter predicted happened, and no other that is left predicted it.
    Proven,
    /// No limiter is left.
    Refuted,
    /// What the limiter predicted happened, and may be what others would have predicted.
    NotRefuted,
    /// It leaves open what limits the number.
    NotDecided,
}

/// One change, and what it did.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Proof {
    /// The experiment.
    pub experiment: String,
    /// What was changed: `socket_buffer`.
    pub factor: Factor,
    /// What that is called.
    pub title: String,
    /// The setting as it is.
    pub from: String,
    /// The changed one.
    pub to: String,
    /// The response: `throughput_bps`.
    pub response: String,
    /// Its mean as it is; `null` where no trial was valid.
    pub before: Option<f64>,
    /// Its mean with the change.
    pub after: Option<f64>,
    /// The second over the first, with an interval that holds after every look.
    pub ratio: Option<Estimate>,
    /// What was predicted before.
    pub predicted: Vec<Prediction>,
    /// What happened.
    pub observed: Observed,
    /// The limiters that this refutes.
    pub refuted: Vec<Limiter>,
    /// What follows.
    pub verdict: Verdict,
    /// The limiter that is proven, refuted or not refuted.
    pub limiter: Option<Limiter>,
}

/// All changes of a run, in their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Proofs {
    /// Each.
    pub all: Vec<Proof>,
}

impl Verdict {
    /// Returns it in a word or two.
    pub fn word(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Refuted => "refuted",
            Self::NotRefuted => "not refuted",
            Self::NotDecided => "not decided",
        }
    }
}

impl Proofs {
    /// Returns the change that decided, if one did.
    pub fn deciding(&self) -> Option<&Proof> {
        let is_proven = |proof: &&Proof| proof.verdict == Verdict::Proven;
        self.all.iter().find(is_proven)
    }

    /// Returns whether `limiter` is refuted.
    pub fn refutes(&self, limiter: Limiter) -> bool {
        self.all
            .iter()
            .any(|proof| proof.refuted.contains(&limiter))
    }

    /// Returns the change that refuted `limiter`.
    pub fn against(&self, limiter: Limiter) -> Option<&Proof> {
        self.all
            .iter()
            .find(|proof| proof.refuted.contains(&limiter))
    }
}

impl Proof {
    /// Returns what was changed, without its effect: `socket buffer 64 KiB → auto`.
    pub fn change(&self) -> String {
        format!("{} {} → {}", self.title, self.from, self.to)
    }

    /// Returns what the change did: `105 Mbit/s → 938 Mbit/s, ×8.9 (8.7–9.1)`.
    pub fn effect(&self) -> String {
        let unit = describe(&self.response).unit;
        let (Some(before), Some(after)) = (self.before, self.after) else {
            return "not measured: no trial of it is valid".to_owned();
        };
        let ratio = self.ratio.as_ref();
        let ratio = ratio.map_or_else(String::new, |ratio| {
            format!(", ×{}", number::estimate(ratio).line())
        });
        format!("{} → {}{ratio}", unit.display(before), unit.display(after))
    }

    /// Returns what follows, in words: `proven: the receive window`.
    pub fn outcome(&self) -> String {
        let word = self.verdict.word();
        match self.limiter {
            Some(limiter) => format!("{word}: {}", limiter.title()),
            None if self.refuted.is_empty() => word.to_owned(),
            None => {
                let titles = self.refuted.iter().map(|limiter| limiter.title());
                let titles: Vec<String> = titles.map(str::to_owned).collect();
                format!("{word}, but refuted: {}", words::list(&titles))
            }
        }
    }

    /// Returns all of it in one line.
    pub fn line(&self) -> String {
        format!("{}: {}: {}", self.change(), self.effect(), self.outcome())
    }
}

/// Returns whether a run proves something.
pub fn is_proving(plan: &Plan) -> bool {
    plan.experiments.iter().any(Experiment::is_proof)
}

/// Returns the recording of what was measured, without what proves what limits it.
pub fn measured(recording: &Recording) -> Cow<'_, Recording> {
    if is_proving(&recording.document.plan) {
        Cow::Owned(part(recording, |experiment| !experiment.is_proof()))
    } else {
        Cow::Borrowed(recording)
    }
}

/// Returns the recording of what proves.
pub(crate) fn proving(recording: &Recording) -> Recording {
    part(recording, Experiment::is_proof)
}

/// Returns the part of a recording that is of these experiments.
fn part(recording: &Recording, is_in: impl Fn(&Experiment) -> bool) -> Recording {
    let mut document = recording.document.clone();
    let plan = &mut document.plan;
    plan.experiments.retain(is_in);
    let names: BTreeSet<String> = plan.experiments.iter().map(|it| it.name.clone()).collect();
    plan.trials.retain(|it| names.contains(&it.experiment));
    plan.optional.retain(|it| names.contains(&it.experiment));
    let own: BTreeSet<TrialId> = plan.trials.iter().map(|trial| trial.id).collect();
    plan.repeats.retain(|repeat| own.contains(&repeat.trial));
    let is_own = |trial: TrialId| own.contains(&trial);
    let mut samples = Samples::default();
    for trial in &own {
        samples.append(recording.samples.copied(*trial));
    }
    let mut recording = Recording {
        document,
        trials: recording.trials.clone(),
        flows: recording.flows.clone(),
        samples,
        profiles: recording.profiles.clone(),
        captures: recording.captures.clone(),
        events: recording.events.clone(),
        damage: recording.damage.clone(),
    };
    recording.trials.retain(|it| is_own(it.trial));
    recording.flows.retain(|it| is_own(it.trial));
    recording.profiles.retain(|it| is_own(it.trial));
    recording.captures.retain(|it| is_own(it.trial));
    recording
}

/// Returns what the changes of a plan did, from the outcomes of its trials.
pub(crate) fn proofs_of(plan: &Plan, outcomes: &[Outcome]) -> Proofs {
    let mut all: Vec<Proof> = Vec::new();
    let experiments = plan.experiments.iter().filter(|it| it.is_proof());
    for experiment in experiments {
        let refuted: BTreeSet<Limiter> =
            all.iter().flat_map(|proof| proof.refuted.clone()).collect();
        all.extend(proof(experiment, outcomes, &refuted, plan.margins.rate));
    }
    Proofs { all }
}

fn proof(
    experiment: &Experiment,
    outcomes: &[Outcome],
    before: &BTreeSet<Limiter>,
    margin: f64,
) -> Option<Proof> {
    let (factor, levels) = experiment.factors.first()?;
    let [from, to] = levels.as_slice() else {
        return None;
    };
    let response = experiment.response.as_str();
    let values = |level: &Level| -> Vec<f64> {
        let own = outcomes.iter().filter(|outcome| {
            outcome.experiment == experiment.name
                && outcome.is_valid()
                && outcome.cell.get(factor) == Some(level)
        });
        own.filter_map(|outcome| outcome.value(response)).collect()
    };
    let sides = [from, to].map(values);
    let ratio = ratio(&sides[0], &sides[1]);
    let observed = ratio.map_or(Observed::Open, |ratio| observed(&ratio, margin));
    let left = experiment.predicted.iter();
    let left: Vec<Prediction> = left
        .filter(|it| !before.contains(&it.limiter))
        .copied()
        .collect();
    let toggle = Toggle::of(*factor)?;
    let refuted: Vec<Limiter> = left
        .iter()
        .filter(|it| contradicts(observed, it.effect))
        .map(|it| it.limiter)
        .collect();
    let (verdict, limiter) = verdict(&left, &refuted, observed, toggle);
    let mean_of = |values: &[f64]| (!values.is_empty()).then(|| mean(values));
    Some(Proof {
        experiment: experiment.name.clone(),
        factor: *factor,
        title: factor.title().into_owned(),
        from: from.to_string(),
        to: to.to_string(),
        response: response.to_owned(),
        before: mean_of(&sides[0]),
        after: mean_of(&sides[1]),
        ratio,
        predicted: experiment.predicted.clone(),
        observed,
        refuted,
        verdict,
        limiter,
    })
}

/// Whether what happened cannot be where the number is held by who predicted `effect`: what makes a number fall may hide what
/// would have raised it.
pub(crate) fn contradicts(observed: Observed, effect: Option<Effect>) -> bool {
    matches!(
        (observed, effect),
        (Observed::Grew, Some(Effect::Stays)) | (Observed::Stayed, Some(Effect::Grows))
    )
}

fn verdict(
    left: &[Prediction],
    refuted: &[Limiter],
    observed: Observed,
    toggle: Toggle,
) -> (Verdict, Option<Limiter>) {
    let is_so = |it: &Prediction| match observed {
        Observed::Grew => matches!(it.effect, Some(Effect::Grows | Effect::MayGrow)),
        Observed::Stayed => it.effect == Some(Effect::Stays),
        Observed::Fell | Observed::Open => false,
    };
    if matches!(observed, Observed::Fell | Observed::Open) {
        return (Verdict::NotDecided, None);
    }
    let standing = left.iter().filter(|it| !refuted.contains(&it.limiter));
    let standing: Vec<&Prediction> = standing.collect();
    // Of those that predicted nothing a change does not say more than that it was not of them.
    let is_raised = observed == Observed::Grew && toggle.is_of_one();
    let mut others = standing.iter().filter(|it| is_so(it) || !is_raised);
    match (others.next(), others.next()) {
        // What nobody thought of, and what alone the change takes away.
        _ if standing.is_empty() && is_raised && toggle.raises().is_some() => {
            (Verdict::Proven, toggle.raises())
        }
        // The one that was named or that is likelier.
        _ if standing.is_empty() => (Verdict::Refuted, left.first().map(|it| it.limiter)),
        // What nobody else predicted otherwise proves nothing, but for a change of nothing else.
        (Some(own), None) if is_so(own) && (is_raised || !refuted.is_empty()) => {
            (Verdict::Proven, Some(own.limiter))
        }
        (Some(own), None) if is_so(own) => (Verdict::NotRefuted, Some(own.limiter)),
        _ => (Verdict::NotDecided, None),
    }
}

/// Returns the ratio of the means of `after` and `before` with its interval: of logarithms, whose variances may differ (Welch,
/// "The generalization of Student's problem when several different population variances are involved", Biometrika 34, 1947),
/// at an error that is shared by all looks.
fn ratio(before: &[f64], after: &[f64]) -> Option<Estimate> {
    if before.len() < 2 || after.len() < 2 || before.iter().chain(after).any(|it| *it <= 0.0) {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|it| it.ln()).collect::<Vec<f64>>();
    let (before, after) = (logs(before), logs(after));
    let square = |logs: &[f64]| deviation(logs).powi(2) / logs.len() as f64;
    let parts = [&before, &after].map(|logs| (square(logs), logs.len() as f64 - 1.0));
    let whole: f64 = parts.iter().map(|(square, _)| square).sum();
    let each: f64 = parts
        .iter()
        .map(|(square, free)| square * square / free)
        .sum();
    let freedom = if each > 0.0 {
        whole * whole / each
    } else {
        1.0
    };
    let share = 1.0 - (1.0 - CONFIDENCE) / f64::from(2 * LOOKS_OF_CHANGE);
    let half = student(freedom, share) * whole.sqrt();
    let log = mean(&after) - mean(&before);
    Some(Estimate {
        value: log.exp(),
        low: Some((log - half).exp()),
        high: Some((log + half).exp()),
        confidence: CONFIDENCE,
        n: before.len().min(after.len()) as u32,
        unit: Unit::Ratio,
    })
}

fn observed(ratio: &Estimate, margin: f64) -> Observed {
    let (low, high) = (
        ratio.low.unwrap_or(0.0),
        ratio.high.unwrap_or(f64::INFINITY),
    );
    let (less, more) = (1.0 / (1.0 + margin), 1.0 + margin);
    if low > more {
        Observed::Grew
    } else if high < less {
        Observed::Fell
    } else if low >= less && high <= more {
        Observed::Stayed
    } else {
        Observed::Open
    }
}
