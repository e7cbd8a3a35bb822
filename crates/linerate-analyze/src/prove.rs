//! What a run changes after its measurement to prove what limits it.
//!
//! Of each limiter that may hold the number it is written before a change is made what the change does then (`causes::toggle`). The
//! change is made that tells the limiters apart that are left; it is in the plan with its predictions. Blocks are added while it
//! is not decided and time is left. What the changes say is beside, in `proof`.

use std::collections::BTreeSet;

use linerate_model::Nanos;
use linerate_model::experiment::{Effect, Experiment, Factor, Prediction, Timing};
use linerate_model::limiter::Limiter;
use linerate_model::run::{Recording, TrialRecord};
use linerate_model::workload::Workload;

use crate::answer;
use crate::causes::toggle::{Change, Toggle, autotuned_exceeds};
use crate::causes::{CAUSES, Traffic};
use crate::dataset::Dataset;
use crate::diagnose;
use crate::groups::Reduced;
use crate::proof::{BLOCKS_MAX, BLOCKS_MIN, Observed, Proof, contradicts};
use crate::reduce::{ROUND_TRIPS_SETTLED, name};

/// Trials of a block.
const BLOCK_TRIALS: u64 = 4;
/// Shortest window: five samples of the usual interval.
const WINDOW_MIN: Nanos = Nanos::from_ms(500);
/// Quiet time before each window.
const SETTLE: Nanos = Nanos::from_ms(20);
/// What a trial takes beside its phases, before one has shown it: the usual time of a controller.
const OVERHEAD: Nanos = Nanos::from_ms(150);

/// What is to be proven, and what for.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspects {
    /// The cell whose number it is, as an experiment.
    own: Experiment,
    /// The limiters that may hold the number, the one that was named first.
    limiters: Vec<Limiter>,
    /// All others that may hold such traffic.
    others: Vec<Limiter>,
    /// Whether segments were retransmitted: flows that lose share a path in other ways when they are more.
    loses: bool,
    /// Whether it is known that autotuned buffers grow beyond what was set.
    autotunes: bool,
    /// The longest round trip.
    round_trip: Nanos,
}

/// Returns what may limit what was measured, of several cells what one connection carries; nothing where that has no valid trial.
pub fn suspects(reduced: &Reduced<'_>) -> Option<Suspects> {
    let dataset = Dataset::of(reduced.recording(), reduced.spread_outcomes().to_vec());
    let (cell, what) = if dataset.is_one_measurement() {
        (dataset.measured().next()?, "what was measured")
    } else {
        let cell = answer::of_one_connection(&dataset)?;
        (cell, "what one connection carries")
    };
    let named = diagnose::limits(&dataset, cell);
    let mut limiters: Vec<Limiter> = named.into_iter().collect();
    let is_in = |limiters: &[Limiter], one: Limiter| {
        let mut all = limiters.iter();
        all.any(|limiter| diagnose::is_same(*limiter, one))
    };
    for standing in diagnose::standing(&dataset, cell) {
        if !is_in(&limiters, standing) {
            limiters.push(standing);
        }
    }
    // One option sets both buffers: where none of them was named, a change of it is one of the other as well.
    let both = [Limiter::ReceiverWindow, Limiter::SendBuffer];
    if named.is_none() && both.iter().any(|buffer| limiters.contains(buffer)) {
        limiters.extend(
            both.iter()
                .filter(|buffer| !limiters.contains(buffer))
                .copied()
                .collect::<Vec<_>>(),
        );
    }
    let workload = &cell.workload;
    let asked = workload.manner.rate_bps.or(workload.options.pacing_bps);
    if limiters.is_empty() && asked.is_some() {
        limiters.push(Limiter::Pacing);
    }
    let traffic = Traffic::of(workload);
    let causes = CAUSES.iter().filter(|cause| cause.of.contains(&traffic));
    let others: BTreeSet<Limiter> = causes.filter_map(|cause| cause.limiter).collect();
    let most = |response: &str| {
        let values = cell.valid.iter().filter_map(|it| it.value(response));
        values.reduce(f64::max)
    };
    let trip_ns = most(name::TCP_RTT).or_else(|| most(name::RTT_MEAN));
    let own = Experiment {
        question: format!("What does this change do to {what}?"),
        method: "As it is, changed, changed, as it is; the next block the other way round."
            .to_owned(),
        link_bps: cell.experiment.link_bps,
        ..Experiment::plain(PROVE, cell.workload.clone(), cell.experiment.timing, 1)
    };
    Some(Suspects {
        own,
        others: others
            .into_iter()
            .filter(|limiter| !is_in(&limiters, *limiter))
            // There is a number.
            .filter(|limiter| *limiter != Limiter::NothingArrives)
            .collect(),
        limiters,
        loses: most(name::RETRANSMITTED_SHARE).is_some_and(|share| share > 0.0),
        autotunes: match cell.workload.options.socket_buffer {
            Some(own) => autotuned_exceeds(own, dataset.hosts()) == Some(true),
            None => true,
        },
        round_trip: Nanos(trip_ns.unwrap_or(0.0) as u64),
    })
}

/// What is done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Another block of this experiment.
    Block(String),
    /// A change.
    Change(Box<Asked>),
    /// Nothing.
    Nothing(Why),
}

/// A change that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Its experiment.
    pub experiment: Experiment,
    /// The traffic after the change.
    pub changed: Workload,
    /// Blocks of it at the most.
    pub blocks: u32,
}

/// Why nothing more is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is decided.
    Decided,
    /// No limiter is known that may hold the number.
    NoSuspect,
    /// Nothing that can be changed here tells them apart, or no further.
    NoToggle,
    /// No time is left.
    NoTime,
}

/// Returns what proves more of what limits the measurement that `reduced` began with, within `budget` after it.
pub fn next(reduced: &Reduced<'_>, suspects: &Suspects, budget: Nanos) -> Next {
    let recording = reduced.recorded();
    let done = reduced.proofs();
    let own = &suspects.own;
    let timing = timing(own.timing, suspects.round_trip);
    let time = Time::of(recording, timing);
    if let Some(last) = done.all.last() {
        let blocks = blocks(recording, &last.experiment);
        let is_open = last.observed == Observed::Open && blocks < BLOCKS_MAX;
        // What a host refuses it refuses in every block.
        let is_measured = last.before.is_some() && last.after.is_some();
        if is_measured && (is_open || blocks < BLOCKS_MIN) && time.fits(budget) {
            return Next::Block(last.experiment.clone());
        }
    }
    let mut left = suspects.clone();
    for proof in &done.all {
        left.take(proof);
    }
    if done.deciding().is_some() || (left.limiters.is_empty() && !suspects.limiters.is_empty()) {
        return Next::Nothing(Why::Decided);
    }
    if left.limiters.is_empty() {
        return Next::Nothing(Why::NoSuspect);
    }
    let tried: Vec<Factor> = done.all.iter().map(|proof| proof.factor).collect();
    let Some((toggle, change)) = best(&left, &tried, &own.workload, recording) else {
        return Next::Nothing(Why::NoToggle);
    };
    if !time.fits(budget) {
        return Next::Nothing(Why::NoTime);
    }
    let number = 1 + done.all.len();
    let levels = change.levels.to_vec();
    let title = format!("{} {} → {}", change.factor.title(), levels[0], levels[1]);
    let predicted = left.limiters.iter().map(|limiter| Prediction {
        limiter: *limiter,
        effect: left.effect(toggle, *limiter),
    });
    let experiment = Experiment {
        name: format!("{PROVE}-{number}"),
        title,
        baseline: [(change.factor, levels[0].clone())].into(),
        factors: vec![(change.factor, levels)],
        predicted: predicted.collect(),
        timing,
        ..own.clone()
    };
    Next::Change(Box::new(Asked {
        experiment,
        changed: change.workload,
        blocks: BLOCKS_MAX,
    }))
}

/// What the names of the experiments begin with.
const PROVE: &str = "prove";

impl Suspects {
    /// Returns what a change does to the number if `limiter` holds it.
    fn effect(&self, toggle: Toggle, limiter: Limiter) -> Option<Effect> {
        let is_path = matches!(limiter, Limiter::PathRate | Limiter::LinkRate);
        let effect = toggle.effect(limiter);
        // More flows take more of a path from others on it, and fill one better that drops.
        match effect {
            Some(_) if is_path && self.loses && toggle == Toggle::Flows => None,
            Some(Effect::Grows) if toggle == Toggle::Buffers && !self.autotunes => {
                Some(Effect::MayGrow)
            }
            effect => effect,
        }
    }

    /// Takes up what a change did: to those that are left, and to others.
    fn take(&mut self, proof: &Proof) {
        let Some(toggle) = Toggle::of(proof.factor) else {
            return;
        };
        self.limiters.retain(|it| !proof.refuted.contains(it));
        let with_effect = self.clone();
        self.others
            .retain(|other| !contradicts(proof.observed, with_effect.effect(toggle, *other)));
    }
}

/// Returns the change that tells most limiters apart from the first that is left: of those that are left, then of others that may
/// hold such traffic. Of as many the first.
fn best(
    left: &Suspects,
    tried: &[Factor],
    workload: &Workload,
    recording: &Recording,
) -> Option<(Toggle, Change)> {
    let first = *left.limiters.first()?;
    let differ = |toggle: Toggle, other: &Limiter| {
        let effects = left.effect(toggle, first).zip(left.effect(toggle, *other));
        let is_stay = |effect| effect == Effect::Stays;
        effects.is_some_and(|(own, other)| is_stay(own) != is_stay(other))
    };
    let worth = |toggle: Toggle| {
        let count = |limiters: &[Limiter]| {
            let apart = limiters.iter().filter(|other| differ(toggle, other));
            apart.count()
        };
        (count(&left.limiters), count(&left.others))
    };
    let hosts = &recording.document.hosts;
    let mut found: Option<((usize, usize), Toggle, Change)> = None;
    for toggle in Toggle::ALL {
        if tried.contains(&toggle.factor()) {
            continue;
        }
        let worth = worth(toggle);
        let is_less = found.as_ref().is_some_and(|(most, ..)| *most >= worth);
        if worth == (0, 0) || is_less {
            continue;
        }
        if let Some(change) = toggle.change(workload, hosts) {
            found = Some((worth, toggle, change));
        }
    }
    found.map(|(_, toggle, change)| (toggle, change))
}

/// Returns the phases of a trial: a window of as many round trips as windows take to settle.
fn timing(own: Timing, round_trip: Nanos) -> Timing {
    let settled = Nanos((ROUND_TRIPS_SETTLED * round_trip.0 as f64) as u64);
    Timing {
        settle: SETTLE,
        measure: settled.max(WINDOW_MIN),
        ..own
    }
}

/// What changes took so far.
struct Time {
    spent: Nanos,
    block: Nanos,
}

impl Time {
    fn of(recording: &Recording, timing: Timing) -> Self {
        let plan = &recording.document.plan;
        let is_proof = |trial: &TrialRecord| {
            let planned = plan.trial(trial.trial);
            let own = planned.and_then(|it| plan.experiment(&it.experiment));
            own.is_some_and(Experiment::is_proof)
        };
        let end_ns = |trial: &TrialRecord| trial.offset_ns + trial.window_ns;
        let (proving, measured): (Vec<_>, Vec<_>) =
            recording.trials.iter().partition(|it| is_proof(it));
        let began_ns = measured.iter().map(|it| end_ns(it)).max().unwrap_or(0);
        let ended_ns = proving
            .iter()
            .map(|it| end_ns(it))
            .max()
            .unwrap_or(began_ns);
        let spent = ended_ns.saturating_sub(began_ns);
        let blocks = proving.len() as u64 / BLOCK_TRIALS;
        let block = match blocks {
            0 => BLOCK_TRIALS * (timing.total().0 + OVERHEAD.0),
            some => spent / some,
        };
        Self {
            spent: Nanos(spent),
            block: Nanos(block),
        }
    }

    fn fits(&self, budget: Nanos) -> bool {
        self.spent.0 + self.block.0 <= budget.0
    }
}

/// Returns how many blocks of an experiment were done.
fn blocks(recording: &Recording, experiment: &str) -> u32 {
    let plan = &recording.document.plan;
    let done = recording
        .trials
        .iter()
        .filter_map(|it| plan.trial(it.trial));
    let own = done.filter(|trial| trial.experiment == experiment);
    own.map(|trial| trial.replicate).max().unwrap_or(0)
}
