//! From facts to causes.
//!
//! Each fact is worth something for or against each cause: a number for where it holds, another for where it does not, and in
//! between by the degree to which it holds. Their sum over the facts that were read is a cause's score; the scores of trials
//! are averaged. What facts rule out that are known is no candidate. The best one is named where it leads all that are told as
//! another limiter by `LEAD_MIN`, and where one of the facts that show it is known to hold in most trials and none that rules
//! it out. One that a pattern shows, which has read all that it takes, is named unless another that is shown is likelier by as
//! much; where the two ways name two limiters, none is.
//!
//! Of the first way, what was not read counts as whatever is worst for the name: of two causes the lead is what is left of it if each unread
//! fact speaks for the other one. So less evidence can make a name unknown, and never another one: if the lead of A over B is
//! more than the least, that of B over A is below none, and no fact that is lost adds to it.

use std::sync::OnceLock;

use linerate_model::limiter::Limiter;

use crate::causes::{CAUSES, Cause, Traffic};
use crate::evidence::{self, FACTS, Reading, Source};

/// By how much the named cause leads the next that would be told in another way: with a third of it names of the held-out half
/// were wrong before patterns had a worth, and with more of it more is unknown and as little wrong (`bench corpus fit`).
pub const LEAD_MIN: f64 = 1.5;

/// By how much a cause may be behind the first and still be left standing: what is farther behind is one in twenty (e³).
const STANDING_BEHIND_MAX: f64 = 3.0;

/// What a limiter is told as where a fact holds: a path's rate that is the link's, and CPUs that are those of our own worker.
const TOLD_AS: &[(Limiter, &str, Limiter)] = &[
    (Limiter::PathRate, "fills-link", Limiter::LinkRate),
    (Limiter::Cpu, "worker-saturated", Limiter::Generator),
];

/// What a fact is worth for a cause: where it holds, and where it does not.
pub type Worth = [f64; 2];

/// What each fact is worth for each cause, in the order of [`CAUSES`] and [`FACTS`].
#[derive(Clone)]
pub struct Weights(pub Vec<Vec<Worth>>);

impl Weights {
    /// Returns weights that say nothing.
    pub fn none() -> Self {
        Self(vec![vec![[0.0; 2]; FACTS.len()]; CAUSES.len()])
    }

    /// Reads a table: a line of causes, then a line for each fact, of what it is worth for each cause in hundredths, as `120/-35`;
    /// nothing where it is worth nothing. What the catalogues do not have any more is left out.
    pub fn parse(text: &str) -> Self {
        let mut weights = Self::none();
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default().split('\t').skip(1);
        let causes: Vec<Option<usize>> = head.map(crate::causes::place).collect();
        for line in lines {
            let mut cells = line.split('\t');
            let Some(fact) = cells.next().and_then(evidence::place) else {
                continue;
            };
            for (cause, cell) in causes.iter().zip(cells) {
                let hundredths = |text: &str| text.parse::<f64>().ok().map(|worth| worth / 100.0);
                let worth = cell
                    .split_once('/')
                    .and_then(|(holds, fails)| Some([hundredths(holds)?, hundredths(fails)?]));
                if let Some((cause, worth)) = cause.zip(worth) {
                    weights.0[cause][fact] = worth;
                }
            }
        }
        weights
    }

    /// Returns the table that [`Self::parse`] reads.
    pub fn text(&self) -> String {
        let names = CAUSES.iter().map(|cause| cause.id);
        let mut text = format!("fact\t{}\n", names.collect::<Vec<_>>().join("\t"));
        for (place, fact) in FACTS.iter().enumerate() {
            let cells = self.0.iter().map(|of_cause| {
                let [holds, fails] = of_cause[place].map(|worth| (100.0 * worth).round() as i64);
                match (holds, fails) {
                    (0, 0) => String::new(),
                    (holds, fails) => format!("{holds}/{fails}"),
                }
            });
            text += &format!("{}\t{}\n", fact.id, cells.collect::<Vec<_>>().join("\t"));
        }
        text
    }

    /// Returns those that the program has.
    pub fn fitted() -> &'static Self {
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
    /// Those of them that facts show which hold in most trials.
    pub shown: Vec<usize>,
    /// The facts that hold and speak most for the first cause against the next that would be told in another way, by their
    /// places in [`FACTS`], the most telling first.
    pub because: Vec<usize>,
}

impl Inference {
    /// Returns what follows from the facts of some trials of the same traffic.
    pub fn of(trials: &[Evidence], weights: &Weights) -> Self {
        Self::with_lead(trials, weights, LEAD_MIN)
    }

    /// Returns the same where a name takes another lead.
    pub fn with_lead(trials: &[Evidence], weights: &Weights, lead_min: f64) -> Self {
        Self::among(candidates(trials), trials, weights, lead_min)
    }

    /// Returns the same where it is known to be one of `candidates`.
    pub fn among(
        candidates: Vec<usize>,
        trials: &[Evidence],
        weights: &Weights,
        lead_min: f64,
    ) -> Self {
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
        let shows = |cause: &usize| {
            let shown = trials
                .iter()
                .filter(|trial| is_shown(trial, &CAUSES[*cause]));
            2 * shown.count() > trials.len()
        };
        let shown: Vec<usize> = candidates.iter().copied().filter(shows).collect();
        // What was not read is taken as if it spoke for the other one.
        let leads = |own: usize, other: usize| {
            let leads = trials
                .iter()
                .map(|trial| lead(trial, own, Some(other), weights));
            CAUSES[other].limiter == CAUSES[own].limiter
                || leads.sum::<f64>() / trials.len() as f64 >= lead_min
        };
        let is_whole = |limiter: Option<Limiter>| {
            let mut own = CAUSES.iter().filter(|own| own.limiter == limiter);
            own.any(|own| patterns_hold(trials, own))
        };
        let of_shown = || ranked.iter().filter(|(cause, _)| shown.contains(cause));
        // The first of all by its lead; and one that a pattern shows, unless another that is shown is likelier by as much.
        let by_lead = of_shown().next().filter(|own| {
            let mut others = ranked.iter().filter(|other| other.0 != own.0);
            others.all(|other| leads(own.0, other.0))
        });
        let mut whole = of_shown().filter(|own| is_whole(CAUSES[own.0].limiter));
        let by_pattern = whole.next().filter(|own| {
            of_shown().all(|other| {
                CAUSES[other.0].limiter == CAUSES[own.0].limiter || own.1 - other.1 < lead_min
            })
        });
        let told = [by_lead, by_pattern].map(|cause| cause.and_then(|it| CAUSES[it.0].limiter));
        let limiter = match told {
            [Some(one), Some(other)] if one != other => None,
            [one, other] => one.or(other).and_then(|it| told_as(trials, it)),
        };
        let because = because(trials, &ranked, weights);
        Self {
            ranked,
            limiter,
            shown,
            because,
        }
    }

    /// Returns the limiters that are left standing where none is named, at most two, the likelier first: those of the first
    /// causes, which facts that hold show, and none of which leads the other by as much as a name takes. None where the first
    /// cause is told as no limiter: what is behind it is less likely.
    pub fn standing(&self) -> Vec<Limiter> {
        let first = self.ranked.first();
        if first.is_none_or(|(cause, _)| CAUSES[*cause].limiter.is_none()) {
            return Vec::new();
        }
        let near = self
            .ranked
            .iter()
            .filter(|(cause, behind)| *behind < STANDING_BEHIND_MAX && self.shown.contains(cause));
        let mut limiters = Vec::new();
        for limiter in near.filter_map(|(cause, _)| CAUSES[*cause].limiter) {
            if !limiters.contains(&limiter) && limiters.len() < 2 {
                limiters.push(limiter);
            }
        }
        limiters
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
    let mut facts: Vec<usize> = (0..FACTS.len())
        .filter(|fact| holds(trials, *fact))
        .filter(|fact| worth(*fact) > 0.0)
        .collect();
    facts.sort_by(|a, b| worth(*b).total_cmp(&worth(*a)));
    facts
}

impl Evidence {
    /// Returns the facts of what was done in one trial.
    pub fn of(view: &evidence::View<'_>) -> Self {
        Self {
            traffic: Traffic::of(view.workload),
            readings: FACTS.iter().map(|fact| fact.read(view)).collect(),
        }
    }
}

/// Returns what a limiter is told as; nothing where that is not known.
fn told_as(trials: &[Evidence], limiter: Limiter) -> Option<Limiter> {
    for (_, id, told) in TOLD_AS.iter().filter(|(of, ..)| *of == limiter) {
        let fact = evidence::place(id)?;
        if holds(trials, fact) {
            return Some(*told);
        }
        if trials
            .iter()
            .any(|trial| trial.readings[fact] == Reading::Unread)
        {
            return None;
        }
    }
    Some(limiter)
}

/// Whether a fact is known to hold in most trials.
fn holds(trials: &[Evidence], fact: usize) -> bool {
    let held = trials.iter().filter(|trial| trial.readings[fact].holds());
    2 * held.count() > trials.len()
}

/// Returns the causes that may hold what was seen in some trials of the same traffic, by their places in [`CAUSES`]: those of
/// such traffic, but for what facts rule out that are known in most trials.
pub fn candidates(trials: &[Evidence]) -> Vec<usize> {
    let may_be = |cause: &usize| {
        let cause = &CAUSES[*cause];
        let is_of = |trial: &Evidence| cause.of.contains(&trial.traffic);
        let ruled_out = trials.iter().filter(|trial| is_ruled_out(trial, cause));
        trials.iter().all(is_of) && 2 * ruled_out.count() <= trials.len()
    };
    (0..CAUSES.len()).filter(may_be).collect()
}

/// Returns the causes that may hold such traffic, whatever shows them: what is left of those that nothing rules out where what
/// would show them was not read.
pub fn rivals(trials: &[Evidence]) -> Vec<usize> {
    let may_be = |cause: &usize| {
        let cause = &CAUSES[*cause];
        let excludes = |trial: &Evidence| read(trial, cause.excluded_by).any(Reading::holds);
        trials
            .iter()
            .all(|trial| cause.of.contains(&trial.traffic) && !excludes(trial))
    };
    (0..CAUSES.len()).filter(may_be).collect()
}

/// Whether a pattern that shows the cause is seen in most trials: it has read all that it takes.
fn patterns_hold(trials: &[Evidence], cause: &Cause) -> bool {
    let mut patterns = cause
        .shown_by
        .iter()
        .filter_map(|id| evidence::place(id))
        .filter(|fact| FACTS[*fact].source == Source::Patterns);
    patterns.any(|fact| holds(trials, fact))
}

/// Returns what was read of the facts with these names.
fn read<'t>(trial: &'t Evidence, ids: &'t [&str]) -> impl Iterator<Item = Reading> + 't {
    let places = ids.iter().filter_map(|id| evidence::place(id));
    places.map(|fact| trial.readings[fact])
}

/// Whether a fact is known to hold that rules the cause out, or each of those that would show it is known not to.
fn is_ruled_out(trial: &Evidence, cause: &Cause) -> bool {
    !patterns_hold(std::slice::from_ref(trial), cause)
        && (read(trial, cause.excluded_by).any(Reading::holds)
            || read(trial, cause.shown_by).all(Reading::fails))
}

/// Whether a fact is known to hold that shows the cause, and all that rule it out are known not to.
fn is_shown(trial: &Evidence, cause: &Cause) -> bool {
    let may_exclude = |reading: Reading| reading.holds() || reading == Reading::Unread;
    let is_whole = patterns_hold(std::slice::from_ref(trial), cause);
    is_whole
        || (read(trial, cause.shown_by).any(Reading::holds)
            && !read(trial, cause.excluded_by).any(may_exclude))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::draw::Draw;

    /// Weights of every fact for every cause, between −3 and 3.
    fn weights(draw: &mut Draw) -> Weights {
        let mut weights = Weights::none();
        for worth in weights.0.iter_mut().flatten() {
            *worth = [0, 1].map(|_| 6.0 * draw.unit() - 3.0);
        }
        weights
    }

    fn evidence(draw: &mut Draw) -> Evidence {
        let kinds = [Traffic::Stream, Traffic::Exchange, Traffic::Datagrams];
        let reading = |draw: &mut Draw| match draw.unit() {
            unread if unread < 0.02 => Reading::Unread,
            moot if moot < 0.2 => Reading::Moot,
            _ => Reading::Known(20.0 * draw.unit() - 10.0),
        };
        // A pattern that is seen was read whole.
        let readings = FACTS.iter().map(|fact| match fact.source {
            Source::Patterns => Reading::Moot,
            _ => reading(draw),
        });
        let readings = readings.collect();
        Evidence {
            traffic: kinds[(3.0 * draw.unit()) as usize],
            readings,
        }
    }

    #[test]
    fn less_evidence_makes_no_other_name() {
        let mut draw = Draw::new(1);
        let (mut named, mut kept) = (0, 0);
        for _ in 0..1000 {
            let weights = weights(&mut draw);
            let mut trials = [0; 2].map(|_| evidence(&mut draw));
            trials[1].traffic = trials[0].traffic;
            let whole = Inference::of(&trials, &weights).limiter;
            let lost = draw.unit() / 20.0;
            let readings = trials
                .iter_mut()
                .flat_map(|trial| trial.readings.iter_mut().zip(FACTS));
            for (reading, fact) in readings {
                if fact.source != Source::Patterns && draw.unit() < lost {
                    *reading = Reading::Unread;
                }
            }
            let less = Inference::of(&trials, &weights).limiter;
            named += usize::from(whole.is_some());
            kept += usize::from(less.is_some());
            assert!(less.is_none() || less == whole, "{less:?}, not {whole:?}");
        }
        // Else it would be said of nothing.
        assert!(named > 20 && kept > 5, "{named}, {kept}");
    }

    #[test]
    fn weights_are_read_as_they_are_written() {
        let weights = weights(&mut Draw::new(2));
        let read = Weights::parse(&weights.text());
        for (written, read) in weights.0.iter().flatten().zip(read.0.iter().flatten()) {
            assert!((0..2).all(|at| (written[at] - read[at]).abs() < 0.006));
        }
        assert!(
            Weights::fitted()
                .0
                .iter()
                .flatten()
                .any(|worth| worth[0] != 0.0)
        );
    }

    #[test]
    fn what_was_not_read_is_left_open() {
        let place = |id: &str| evidence::place(id).expect("a fact");
        let cause = |id: &str| crate::causes::place(id).expect("a cause");
        let (window, path) = (cause("receiver-window.cap"), cause("path-rate"));
        let mut weights = Weights::none();
        weights.0[window][place("waits-for-window")] = [3.0, -3.0];
        weights.0[path][place("queue")] = [1.5, -1.5];
        let trial = |waits: Reading, queue: Reading| {
            let mut readings = vec![Reading::Moot; FACTS.len()];
            readings[place("waits-for-window")] = waits;
            readings[place("queue")] = queue;
            readings[place("window-allows-more")] = Reading::Known(-10.0);
            readings[place("buffer-set")] = Reading::Known(-10.0);
            [Evidence {
                traffic: Traffic::Stream,
                readings,
            }]
        };
        let (yes, no) = (Reading::Known(10.0), Reading::Known(-10.0));
        let named = |waits, queue| Inference::of(&trial(waits, queue), &weights).limiter;
        assert_eq!(named(yes, no), Some(Limiter::ReceiverWindow));
        assert_eq!(named(yes, Reading::Moot), Some(Limiter::ReceiverWindow));
        assert_eq!(named(yes, Reading::Unread), None);
        assert_eq!(named(Reading::Unread, no), None);
    }
}
