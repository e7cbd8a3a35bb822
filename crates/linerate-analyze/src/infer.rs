//! From facts to causes.
//!
//! Each fact is worth something for or against each cause: a number for where it holds, another for where it does not, and in
//! between by the degree to which it holds. Their sum over the facts that were read is a cause's score; the scores of trials
//! are averaged. The best one is named where it leads all that are told as another limiter by [`LEAD_MIN`], and where one of the
//! facts that show it is known to hold in most trials and none that rules it out.
//!
//! What was not read counts as whatever is worst for the name: of two causes the lead is what is left of it if each unread
//! fact speaks for the other one. So less evidence can make a name unknown, and never another one: if the lead of A over B is
//! more than the least, that of B over A is below none, and no fact that is lost adds to it.

use std::sync::OnceLock;

use linerate_model::limiter::Limiter;
use linerate_model::run::Recording;

use crate::causes::{CAUSES, Cause, Traffic};
use crate::dataset::{CellOutcomes, Dataset};
use crate::evidence::{self, FACTS, Reading};

/// By how much the named cause leads the next that would be told in another way: with less, more than one in fifty names of
/// the held-out half would be wrong (`bench fit`).
pub const LEAD_MIN: f64 = 1.0;

/// What a fact is worth for a cause: where it holds, and where it does not.
pub type Worth = [f64; 2];

/// What each fact is worth for each cause, in the order of [`CAUSES`] and [`FACTS`].
pub struct Weights(pub Vec<Vec<Worth>>);

impl Weights {
    /// Returns weights that say nothing.
    pub fn none() -> Self {
        Self(vec![vec![[0.0; 2]; FACTS.len()]; CAUSES.len()])
    }

    /// Reads lines of cause, fact, and what it is worth.
    pub fn parse(text: &str) -> Self {
        let mut weights = Self::none();
        for line in text.lines() {
            let parts: Vec<&str> = line.split('\t').collect();
            let &[cause, fact, holds, fails] = parts.as_slice() else {
                continue;
            };
            let place = crate::causes::place(cause).zip(evidence::place(fact));
            let worth = holds.parse().ok().zip(fails.parse().ok());
            if let Some(((cause, fact), (holds, fails))) = place.zip(worth) {
                weights.0[cause][fact] = [holds, fails];
            }
        }
        weights
    }

    fn fitted() -> &'static Self {
        static FITTED: OnceLock<Weights> = OnceLock::new();
        FITTED.get_or_init(|| Self::parse(include_str!("causes/weights.tsv")))
    }
}

/// What the facts of one trial are, and what they are about.
pub struct Evidence {
    /// What the trial's traffic is.
    pub traffic: Traffic,
    /// The readings, in the order of [`FACTS`].
    pub readings: Vec<Reading>,
}

/// What follows from the facts of the trials of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Inference {
    /// The causes that may be, by their places in [`CAUSES`], with what each is behind the best, the best first.
    pub ranked: Vec<(usize, f64)>,
    /// The limiter, if one is named.
    pub limiter: Option<Limiter>,
    /// The facts that hold and speak most for the first cause against the next that would be told in another way, by their
    /// places in [`FACTS`], the most telling first.
    pub because: Vec<usize>,
}

impl Inference {
    /// Returns what follows from the facts of some trials of the same traffic.
    pub fn of(trials: &[Evidence], weights: &Weights) -> Self {
        let candidates: Vec<usize> = (0..CAUSES.len())
            .filter(|&cause| {
                trials
                    .iter()
                    .all(|trial| CAUSES[cause].of.contains(&trial.traffic))
            })
            .collect();
        let score = |cause: usize| {
            let scores = trials.iter().map(|trial| lead(trial, cause, None, weights));
            scores.sum::<f64>() / trials.len().max(1) as f64
        };
        let mut ranked: Vec<(usize, f64)> = candidates
            .iter()
            .map(|&cause| (cause, score(cause)))
            .collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        let best = ranked.first().map_or(0.0, |first| first.1);
        ranked.iter_mut().for_each(|one| one.1 = best - one.1);
        let limiter = ranked.first().and_then(|&(first, _)| {
            let cause = &CAUSES[first];
            let leads = |&(other, _): &(usize, f64)| {
                let leads = trials
                    .iter()
                    .map(|trial| lead(trial, first, Some(other), weights));
                CAUSES[other].limiter == cause.limiter
                    || leads.sum::<f64>() / trials.len() as f64 >= LEAD_MIN
            };
            let shown = trials.iter().filter(|trial| is_shown(trial, cause)).count();
            let is_named = 2 * shown > trials.len() && ranked[1..].iter().all(leads);
            cause.limiter.filter(|_| is_named)
        });
        let because = because(trials, &ranked, weights);
        Self {
            ranked,
            limiter,
            because,
        }
    }

    /// Returns the first cause that would be told in another way than the first of all.
    pub fn rival(&self) -> Option<&'static Cause> {
        let (first, _) = *self.ranked.first()?;
        rival(first, &self.ranked).map(|other| &CAUSES[other])
    }

    /// Returns what follows from the facts of a cell, as far as they are read of its trials that may be averaged.
    pub(crate) fn of_cell(dataset: &Dataset<'_>, cell: &CellOutcomes<'_>) -> Self {
        let mut trials = Vec::new();
        evidence::for_each_view(dataset, cell, |view| trials.push(Evidence::of(view)));
        Self::of(&trials, Weights::fitted())
    }
}

fn rival(first: usize, ranked: &[(usize, f64)]) -> Option<usize> {
    let mut others = ranked.iter().map(|&(other, _)| other);
    others.find(|other| CAUSES[*other].limiter != CAUSES[first].limiter)
}

fn because(trials: &[Evidence], ranked: &[(usize, f64)], weights: &Weights) -> Vec<usize> {
    let Some(&(first, _)) = ranked.first() else {
        return Vec::new();
    };
    let others = rival(first, ranked).map(|other| &weights.0[other]);
    let worth = |fact: usize| {
        let speaks = trials.iter().map(|trial| {
            let its = others.map_or(0.0, |other| other[fact][0]);
            let degree = trial.readings[fact].degree().unwrap_or(0.0);
            degree * (weights.0[first][fact][0] - its)
        });
        speaks.sum::<f64>() / trials.len().max(1) as f64
    };
    let holds = |fact: &usize| {
        let held = trials
            .iter()
            .filter(|trial| trial.readings[*fact].holds())
            .count();
        2 * held > trials.len()
    };
    let mut facts: Vec<usize> = (0..FACTS.len())
        .filter(holds)
        .filter(|fact| worth(*fact) > 0.0)
        .collect();
    facts.sort_by(|a, b| worth(*b).total_cmp(&worth(*a)));
    facts
}

impl Evidence {
    fn of(view: &evidence::View<'_>) -> Self {
        Self {
            traffic: traffic_of(view),
            readings: FACTS.iter().map(|fact| fact.read(view)).collect(),
        }
    }
}

/// Whether a fact is known to hold that shows the cause, and all that rule it out are known not to.
fn is_shown(trial: &Evidence, cause: &Cause) -> bool {
    let read = |id: &&str| evidence::place(id).map(|fact| trial.readings[fact]);
    let is_shown = cause
        .shown_by
        .iter()
        .filter_map(|id| read(&id))
        .any(Reading::holds);
    let mut excluded = cause.excluded_by.iter().filter_map(|id| read(&id));
    is_shown && !excluded.any(|reading| reading.holds() || reading == Reading::Unread)
}

/// Returns by how much the facts of a trial speak more for `cause` than for `other`, what was not read as if it spoke for that;
/// without another, how much they speak for it.
fn lead(trial: &Evidence, cause: usize, other: Option<usize>, weights: &Weights) -> f64 {
    let facts = trial.readings.iter().enumerate();
    facts
        .map(|(fact, reading)| {
            let own = weights.0[cause][fact];
            let its = other.map_or([0.0; 2], |other| weights.0[other][fact]);
            let [holds, fails] = [own[0] - its[0], own[1] - its[1]];
            match (reading.degree(), reading) {
                (Some(degree), _) => degree * holds + (1.0 - degree) * fails,
                (None, Reading::Unread) if other.is_some() => holds.min(fails),
                _ => 0.0,
            }
        })
        .sum()
}

/// Returns what follows from the facts of each cell of a recording.
pub fn of_recording(recording: &Recording, weights: Option<&Weights>) -> Vec<Inference> {
    let weights = weights.unwrap_or_else(|| Weights::fitted());
    evidence_of(recording)
        .iter()
        .map(|trials| Inference::of(trials, weights))
        .collect()
}

/// Returns the facts of the trials of each cell of a recording.
pub fn evidence_of(recording: &Recording) -> Vec<Vec<Evidence>> {
    let dataset = Dataset::new(recording);
    let cells = dataset.cells.iter().map(|cell| {
        let failed = cell.of_invalid();
        let cell = failed.as_ref().unwrap_or(cell);
        let mut trials = Vec::new();
        evidence::for_each_view(&dataset, cell, |view| {
            trials.push(Evidence::of(view));
        });
        trials
    });
    cells.collect()
}

fn traffic_of(view: &evidence::View<'_>) -> Traffic {
    if view.workload.traffic.is_transactional() {
        Traffic::Exchange
    } else if view.workload.manner.transport.is_tcp() {
        Traffic::Stream
    } else {
        Traffic::Datagrams
    }
}
