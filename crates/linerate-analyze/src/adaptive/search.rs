//! A search between two levels of a scale: which level is measured next, and what the levels say in the end.
//!
//! The condition (`loss < 0.1%`) holds at one end and not at the other; where does it stop to hold? Bisection, with trials of
//! a fixed length, as RFC 2544 (section 26.1) finds the throughput: each trial keeps the condition or does not, so that it is
//! of no account how much a few trials lose. What a host's noise adds to that:
//!
//! 1. A level is measured in several trials. The condition *holds* there if all of them keep it, *fails* if none does, and is
//!    *not decided* otherwise.
//! 2. A level that is not decided, has too few valid trials, or whose load did not come about, is measured again, up to three times in all
//!    (`LOOKS_MAX`).
//! 3. A trial whose load did not come about (a sender that cannot, or a queue that lets it wait) has no value, and no level
//!    holds with one: a little beyond the limit some trials only seem to reach it. A level whose load came about in none of its trials is beyond the limit.
//! 4. The next level is the geometric middle of the wider gap beside what is not decided, until no gap is wider than the
//!    resolution.
//! 5. The last level where it holds and the first where it fails are then measured once more, and have to do so with all
//!    their trials.
//!
//! A condition may be relative to another level (`throughput > 95% of auto`). Each block then has a trial of that level too, and
//! what keeps the condition or does not is the ratio of both trials of a block: what the hosts did at that time is in both.
//!
//! The answer is what these trials did. A level that half of all trials would keep looks like one that holds, or fails, with
//! 2^−n for n trials: 1.6 % for twice three. Nothing is known between the levels: the answer is the pair of them.

use linerate_model::condition::Condition;
use linerate_model::experiment::{Cell, Experiment, Factor, Level, Search};
use linerate_model::finding::Estimate;
use linerate_model::number;
use linerate_model::outcome::Outcome;
use linerate_model::plan::Plan;
use linerate_model::response::describe;
use linerate_model::run::Recording;
use linerate_model::unit::Unit;

use super::told::{Line, Told};
use crate::compare::interval::student_t_interval;
use crate::diagnose::REQUESTS_SHARE_MIN;
use crate::groups::outcomes;
use crate::reduce::{WHOLE_SHARE_MIN, name};
use crate::verdicts::REPLICATES_MIN;
use crate::words;

/// What the trials at a level say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The condition holds.
    Holds,
    /// It does not.
    Fails,
    /// The load of the level did not come about.
    NotReached,
    /// Noise, or too few valid trials, leave it open.
    NotDecided,
}

/// A level that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// The level, as a number.
    pub at: u64,
    /// Trials, those included that may not be averaged.
    pub trials: u32,
    /// Those of them that tell of the level.
    pub telling: u32,
    /// Those of these that keep the condition.
    pub kept: u32,
    /// What they say.
    pub verdict: Verdict,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A level is measured.
    Measure(u64),
    /// The search is over.
    Over(Answer),
}

/// What a search ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The condition holds at the one level and fails at the other; whether all between them that was measured is decided.
    Between {
        /// The level at which it holds.
        holds: u64,
        /// The level at which it does not, or whose load did not come about.
        fails: u64,
        /// Whether no level between them was left open.
        is_decided: bool,
    },
    /// It holds at both ends.
    Everywhere,
    /// It holds at neither end.
    Nowhere,
    /// An end is not decided.
    NotDecided,
}

/// What a search is bound to.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// What is searched for.
    pub search: Search,
    /// Both ends of the scale.
    pub ends: [u64; 2],
    /// Trials of a look.
    pub replicates: u32,
}

/// One line of the path: a level as it was known when the next was chosen.
struct Step {
    tried: Tried,
    cell: Cell,
    value: Option<Estimate>,
}

impl Terms {
    /// Returns those of `experiment`, if it is a search.
    pub fn of(experiment: &Experiment) -> Option<(Self, Factor, Level)> {
        let (search, factor, _) = experiment.searched()?;
        let [low, high] = experiment.levels(factor) else {
            return None;
        };
        let terms = Self {
            search: search.clone(),
            ends: [low.whole()?, high.whole()?],
            replicates: experiment.replicates,
        };
        Some((terms, factor, low.clone()))
    }

    fn levels_max(&self) -> u32 {
        let [low, high] = self.ends.map(|end| end as f64);
        self.search.levels_max(low, high)
    }

    /// Returns what comes after `tried`, whose levels differ.
    pub fn next(&self, tried: &[Tried]) -> Next {
        let looks_max = self.replicates * Search::LOOKS_MAX;
        let of = |at: u64| tried.iter().find(|tried| tried.at == at);
        let is_open = |one: &&Tried| {
            let may_change = matches!(one.verdict, Verdict::NotDecided | Verdict::NotReached);
            may_change && one.trials < looks_max
        };
        if let Some(end) = self.ends.into_iter().find(|end| of(*end).is_none()) {
            return Next::Measure(end);
        }
        if let Some(open) = tried.iter().find(is_open) {
            return Next::Measure(open.at);
        }
        // From the end where it holds to the one where it does not.
        let mut way: Vec<&Tried> = tried.iter().collect();
        way.sort_by_key(|tried| tried.at);
        let verdict = |at: u64| of(at).map_or(Verdict::NotDecided, |tried| tried.verdict);
        match self.ends.map(verdict) {
            [Verdict::NotDecided, _] | [_, Verdict::NotDecided] => {
                return Next::Over(Answer::NotDecided);
            }
            [Verdict::Holds, Verdict::Holds] => return Next::Over(Answer::Everywhere),
            [Verdict::Holds, _] => {}
            [_, Verdict::Holds] => way.reverse(),
            [Verdict::Fails, Verdict::Fails] => return Next::Over(Answer::Nowhere),
            // What the condition is under a load that did not come about is not known.
            _ => return Next::Over(Answer::NotDecided),
        }
        let is_failed = |one: &&Tried| !matches!(one.verdict, Verdict::Holds | Verdict::NotDecided);
        let end = way.iter().position(is_failed).unwrap_or(way.len() - 1);
        let holds = |one: &&Tried| one.verdict == Verdict::Holds;
        let begin = way[..end].iter().rposition(holds).unwrap_or(0);
        let way = &way[begin..=end];
        let (last, first) = (way[0], way[way.len() - 1]);
        // Beside each other, or with what is not decided between them.
        let gaps = [(last.at, way[1].at), (way[way.len() - 2].at, first.at)];
        let width = |(one, other): (u64, u64)| one.max(other) as f64 / one.min(other) as f64;
        let wide = gaps.into_iter().filter_map(|gap| {
            let middle = middle(gap.0.min(gap.1), gap.0.max(gap.1))?;
            (width(gap) > 1.0 + self.search.resolution).then_some((width(gap), middle))
        });
        let widest = wide.reduce(|one, other| if other.0 > one.0 { other } else { one });
        if let Some((_, middle)) = widest.filter(|_| (tried.len() as u32) < self.levels_max()) {
            return Next::Measure(middle);
        }
        let is_new = |one: &&&Tried| one.trials < 2 * self.replicates;
        if let Some(again) = [last, first].iter().find(is_new) {
            return Next::Measure(again.at);
        }
        Next::Over(Answer::Between {
            holds: last.at,
            fails: first.at,
            is_decided: way.len() == 2,
        })
    }
}

/// Returns how many of these `values` keep the condition, and what they say of it.
fn verdict(condition: &Condition, values: &[f64]) -> (u32, Verdict) {
    let keeps = |value: &&f64| condition.is_so(**value, **value) == Some(true);
    let kept = values.iter().filter(keeps).count();
    let verdict = match kept {
        _ if values.len() < REPLICATES_MIN => Verdict::NotDecided,
        0 => Verdict::Fails,
        all if all == values.len() => Verdict::Holds,
        _ => Verdict::NotDecided,
    };
    (kept as u32, verdict)
}

/// Returns the geometric middle of two numbers, with four digits where that lies between them; absent where none does.
pub(crate) fn middle(low: u64, high: u64) -> Option<u64> {
    let middle = (low as f64 * high as f64).sqrt();
    let unit = 10f64.powf((middle.log10() - 3.0).floor().max(0.0));
    let is_between = |at: &u64| low < *at && *at < high;
    let rounded = (middle / unit).round() * unit;
    [rounded as u64, middle.round() as u64, low + 1]
        .into_iter()
        .find(is_between)
}

/// Returns the level at which `experiment` measures next, if it is a search and not over.
pub(super) fn next_level(
    recording: &Recording,
    all: &[Outcome],
    experiment: &Experiment,
) -> Option<u64> {
    let (terms, ..) = Terms::of(experiment)?;
    match terms.next(&tried(cells(recording, all, experiment, None))) {
        Next::Measure(at) => Some(at),
        Next::Over(_) => None,
    }
}

/// Returns the levels of `all` outcomes that the plan of `stage` followed from; of none, all that were measured.
fn cells(
    recording: &Recording,
    all: &[Outcome],
    experiment: &Experiment,
    stage: Option<usize>,
) -> Vec<Step> {
    let plan = &recording.document.plan;
    let before = stage.and_then(|at| plan.stages.get(at)?.trials.first().copied());
    let (Some((_, factor, _)), Some(condition)) = (Terms::of(experiment), condition(experiment))
    else {
        return Vec::new();
    };
    let own = all.iter().filter(|it| it.experiment == experiment.name);
    let own: Vec<&Outcome> = own
        .filter(|it| before.is_none_or(|before| it.trial < before))
        .collect();
    let mut found: Vec<&Cell> = Vec::new();
    for outcome in &own {
        if !found.contains(&&outcome.cell) {
            found.push(&outcome.cell);
        }
    }
    let control = experiment.search_control();
    let unit = match control {
        Some(_) => Unit::Ratio,
        None => describe(&condition.response).unit,
    };
    let value = |outcome: &Outcome| {
        let value = outcome.value(&condition.response)?;
        let Some(control) = &control else {
            return Some(value);
        };
        let is_beside =
            |it: &&&Outcome| it.cell == *control && it.is_valid() && it.block() == outcome.block();
        let against = own.iter().find(is_beside)?.value(&condition.response)?;
        (against > 0.0).then(|| value / against)
    };
    let step = |cell: &Cell| {
        let of_cell: Vec<&Outcome> = own.iter().filter(|it| it.cell == *cell).copied().collect();
        let valid: Vec<&Outcome> = of_cell.iter().filter(|it| it.is_valid()).copied().collect();
        let at = cell.get(&factor)?.whole()?;
        let reached: Vec<&Outcome> = valid
            .iter()
            .filter(|outcome| is_reached(plan, factor, outcome))
            .copied()
            .collect();
        let is_not_reached = reached.is_empty() && valid.len() >= REPLICATES_MIN;
        let told = if reached.is_empty() { &valid } else { &reached };
        let values: Vec<f64> = told.iter().filter_map(|it| value(it)).collect();
        let (kept, of_values) = self::verdict(&condition, &values);
        let verdict = match of_values {
            _ if is_not_reached => Verdict::NotReached,
            _ if reached.is_empty() => Verdict::NotDecided,
            Verdict::Holds if reached.len() < valid.len() => Verdict::NotDecided,
            told => told,
        };
        Some(Step {
            tried: Tried {
                at,
                trials: of_cell.len() as u32,
                telling: values.len() as u32,
                kept,
                verdict,
            },
            cell: cell.clone(),
            value: student_t_interval(&values, unit),
        })
    };
    found.into_iter().filter_map(step).collect()
}

/// Returns whether the load that `outcome` has for the level of `factor` came about.
pub(crate) fn is_reached(plan: &Plan, factor: Factor, outcome: &Outcome) -> bool {
    let falls_short = |came: Option<f64>, asked: Option<f64>, share: f64| {
        came.zip(asked)
            .is_some_and(|(came, asked)| came < share * asked)
    };
    let value = |name: &str| outcome.value(name);
    match factor {
        Factor::Rate => {
            let asked = value(name::THROUGHPUT_INTENDED);
            let kept = 1.0 - value(name::LOSS_SHARE).unwrap_or(0.0);
            // What neither arrived nor was lost waits in a queue.
            let through = kept * WHOLE_SHARE_MIN;
            !falls_short(value(name::THROUGHPUT_SENT), asked, WHOLE_SHARE_MIN)
                && !falls_short(value(name::THROUGHPUT), asked, through)
        }
        Factor::RequestsPerS => {
            let level = outcome.cell.get(&factor).and_then(Level::as_number);
            let planned = plan.trial(outcome.trial);
            let connections = planned.map_or(1, |trial| trial.workload.connections);
            let asked = level.map(|level| level * f64::from(connections));
            !falls_short(value(name::TRANSACTIONS), asked, REQUESTS_SHARE_MIN)
        }
        _ => true,
    }
}

fn tried(steps: Vec<Step>) -> Vec<Tried> {
    steps.into_iter().map(|step| step.tried).collect()
}

fn condition(experiment: &Experiment) -> Option<Condition> {
    Condition::parse(&experiment.search.as_ref()?.condition).ok()
}

impl Verdict {
    /// Returns it in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "does not hold",
            Self::NotReached => "load not reached",
            Self::NotDecided => "not decided",
        }
    }
}

/// Returns what the search of `experiment` found; nothing where nothing is searched for.
pub(super) fn told(recording: &Recording, experiment: &Experiment) -> Option<Told> {
    let condition = condition(experiment)?;
    let title = describe(&condition.response).title;
    let found = |answer: String, levels: Vec<Line>| Told {
        answer,
        title: "Search, in the order of its decisions",
        levels,
        response: match &condition.of {
            Some(level) => format!("{title} over that of {level}"),
            None => title.to_owned(),
        },
        says: "condition",
        added: Vec::new(),
    };
    let Some((terms, factor, kind)) = Terms::of(experiment) else {
        let answer = "Not searched: one of the two levels cannot be measured here.";
        return Some(found(answer.to_owned(), Vec::new()));
    };
    let stages = &recording.document.plan.stages;
    let own = |at: &usize| stages[*at].experiment == experiment.name;
    let of_stages: Vec<usize> = (0..stages.len()).filter(own).collect();
    let line = |step: Step| Line {
        level: words::whole_cell(&step.cell),
        trials: step.tried.trials,
        value: step.value,
        says: step.tried.verdict.words(),
    };
    // Each stage as the next one knew it.
    let all = outcomes(recording);
    let known = |stage: Option<usize>| cells(recording, &all, experiment, stage);
    let first = known(of_stages.first().copied());
    let mut path: Vec<Line> = first.into_iter().map(line).collect();
    for (place, at) in of_stages.iter().enumerate() {
        let mut known = known(of_stages.get(place + 1).copied()).into_iter();
        let of_stage = known.find(|step| step.cell == stages[*at].cell);
        path.extend(of_stage.map(line));
    }
    let tried = tried(known(None));
    let level = |at: u64| {
        let level = kind.with_whole(at).unwrap_or_else(|| kind.clone());
        words::level(factor, &level)
    };
    let answer = answer(
        &condition.text,
        terms.next(&tried),
        terms.ends,
        &tried,
        level,
    );
    Some(found(answer, path))
}

/// Returns the answer as a sentence: what comes `next` after what was `tried` between the `ends`.
fn answer(
    text: &str,
    next: Next,
    ends: [u64; 2],
    tried: &[Tried],
    level: impl Fn(u64) -> String,
) -> String {
    let [low, high] = ends.map(&level);
    let is_open = |one: &&Tried| matches!(one.verdict, Verdict::NotDecided | Verdict::NotReached);
    let why = |open: &Tried| why_open(open, &level(open.at));
    match next {
        Next::Measure(_) => format!("Not decided: the search for where {text} holds ended early."),
        Next::Over(Answer::Everywhere) => {
            format!("{text} holds at both levels, {low} and {high}: no limit lies between them.")
        }
        Next::Over(Answer::Nowhere) => format!(
            "{text} holds at neither level, {low} nor {high}: no limit was found between them."
        ),
        Next::Over(Answer::NotDecided) => {
            let open = tried
                .iter()
                .filter(|one| ends.contains(&one.at))
                .filter(is_open);
            let reasons: Vec<String> = open.map(why).collect();
            format!(
                "Not decided whether {text} holds at the two ends: {}.",
                reasons.join(", and ")
            )
        }
        Next::Over(Answer::Between { holds, fails, .. }) => {
            let of = |at: u64| tried.iter().find(|own| own.at == at);
            let is_load = of(fails).is_some_and(|one| one.verdict == Verdict::NotReached);
            let beyond = if is_load {
                format!("the load of {} did not come about", level(fails))
            } else {
                format!("in none at {}", level(fails))
            };
            let is_between = |one: &&Tried| holds.min(fails) < one.at && one.at < holds.max(fails);
            let open = tried.iter().find(is_between);
            let open = open.map(|open| format!("; between them it is not decided: {}", why(open)));
            let trials = number::counted(of(holds).map_or(0, |one| one.telling), "trial");
            format!(
                "{text} holds at {} in all of {trials}, and {beyond}{}.",
                level(holds),
                open.unwrap_or_default()
            )
        }
    }
}

/// Returns why a level is open, as a clause.
fn why_open(open: &Tried, level: &str) -> String {
    let Tried {
        trials,
        telling,
        kept,
        verdict,
        ..
    } = *open;
    let trials = number::counted(trials, "trial");
    match () {
        () if verdict == Verdict::NotReached => format!("the load of {level} did not come about"),
        () if (telling as usize) < REPLICATES_MIN => {
            format!("of {trials} at {level} {telling} can be used")
        }
        () if kept == telling => {
            format!("the load of {level} came about in {telling} of {trials}")
        }
        () => format!(
            "at {level} {kept} of {} {} it",
            number::counted(telling, "trial"),
            if kept == 1 { "keeps" } else { "keep" }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::draw::Draw;

    fn terms(replicates: u32) -> Terms {
        Terms {
            search: Search {
                condition: "loss < 0.1%".to_owned(),
                resolution: 0.01,
                control: None,
            },
            ends: [10_000_000, 10_000_000_000],
            replicates,
        }
    }

    /// Searches where the loss at a level comes from `loss`; returns the answer and the levels that were measured.
    fn searched(terms: &Terms, mut loss: impl FnMut(f64) -> f64) -> (Answer, usize) {
        let condition = Condition::parse(&terms.search.condition).expect("it is one");
        let mut values: Vec<(u64, Vec<f64>)> = Vec::new();
        loop {
            let tried: Vec<Tried> = values
                .iter()
                .map(|(at, values)| {
                    let (kept, verdict) = verdict(&condition, values);
                    Tried {
                        at: *at,
                        trials: values.len() as u32,
                        telling: values.len() as u32,
                        kept,
                        verdict,
                    }
                })
                .collect();
            match terms.next(&tried) {
                Next::Over(answer) => return (answer, values.len()),
                Next::Measure(at) => {
                    let more: Vec<f64> = (0..terms.replicates).map(|_| loss(at as f64)).collect();
                    match values.iter_mut().find(|(known, _)| *known == at) {
                        Some((_, known)) => known.extend(more),
                        None => values.push((at, more)),
                    }
                }
            }
            assert!(values.len() as u32 <= terms.levels_max());
        }
    }

    /// The share that a link of `capacity` loses.
    fn link(capacity: f64) -> impl Fn(f64) -> f64 {
        move |rate| (1.0 - capacity / rate).max(0.0)
    }

    #[test]
    fn a_clean_link_is_bracketed_within_the_resolution_on_either_side() {
        let terms = terms(3);
        for capacity in [11e6, 95.7e6, 937e6, 9.9e9] {
            let truth = capacity / 0.999;
            let (answer, levels) = searched(&terms, link(capacity));
            let Answer::Between {
                holds,
                fails,
                is_decided: true,
            } = answer
            else {
                panic!("{capacity}: {answer:?}");
            };
            assert!(
                (holds as f64) < truth && truth <= fails as f64,
                "{answer:?}"
            );
            assert!(fails as f64 / holds as f64 <= 1.01, "{answer:?}");
            let [low, high] = terms.ends.map(|end| end as f64);
            assert!(
                levels as u32 <= 2 + terms.search.steps(low, high) + 1,
                "{levels}"
            );
        }
    }

    #[test]
    fn ends_that_do_not_bracket_are_said_and_nothing_is_made_up() {
        let terms = terms(3);
        assert_eq!(searched(&terms, |_| 0.0).0, Answer::Everywhere);
        assert_eq!(searched(&terms, |_| 0.2).0, Answer::Nowhere);
        // Loss about the limit that no number of looks decides.
        let mut at = 0;
        let (answer, levels) = searched(&terms, |_| {
            at += 1;
            if at % 2 == 0 { 0.0 } else { 0.002 }
        });
        assert_eq!((answer, levels), (Answer::NotDecided, 2));
    }

    #[test]
    fn a_condition_that_holds_above_is_searched_from_there() {
        let terms = Terms {
            search: Search {
                condition: "throughput > 900M".to_owned(),
                resolution: 0.1,
                control: None,
            },
            ends: [4096, 1 << 20],
            replicates: 3,
        };
        // Window over round trip: 900 Mbit/s need 112 500 B at 1 ms.
        let (answer, _) = searched(&terms, |bytes| bytes * 8.0 / 1e-3);
        let Answer::Between { holds, fails, .. } = answer else {
            panic!("{answer:?}");
        };
        assert!(fails <= 112_500 && 112_500 < holds, "{answer:?}");
    }

    #[test]
    fn what_is_not_decided_says_which_level_left_it_open_and_how_its_trials_fell() {
        let one = |at: u64, [trials, telling, kept]: [u32; 3], verdict: Verdict| Tried {
            at,
            trials,
            telling,
            kept,
            verdict,
        };
        let ends = [10, 1000];
        let said = |next: Answer, tried: &[Tried]| {
            answer("loss < 1%", Next::Over(next), ends, tried, |at| {
                format!("level {at}")
            })
        };
        let high = one(1000, [3, 3, 0], Verdict::Fails);
        for (counts, words) in [
            ([9, 9, 4], ["4 of 9", "level 10"]),
            ([9, 1, 1], ["of 9 trials", "1 can"]),
            ([9, 5, 5], ["5 of 9", "load"]),
        ] {
            let low = one(10, counts, Verdict::NotDecided);
            let said = said(Answer::NotDecided, &[low, high.clone()]);
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
            assert!(!said.contains("level 1000"), "{said}");
        }
        let open = one(100, [9, 9, 8], Verdict::NotDecided);
        let low = one(10, [6, 6, 6], Verdict::Holds);
        let between = Answer::Between {
            holds: 10,
            fails: 1000,
            is_decided: false,
        };
        let said = said(between, &[low, open, high]);
        assert!(
            said.contains("level 100 ") && said.contains("8 of 9"),
            "{said}"
        );
    }

    #[test]
    fn a_load_that_did_not_come_about_is_no_level_at_which_it_holds() {
        let terms = terms(3);
        let tried = |at: u64, trials: u32, verdict: Verdict| Tried {
            at,
            trials,
            telling: trials,
            kept: trials,
            verdict,
        };
        let [low, high] = terms.ends;
        let known = [
            tried(low, 6, Verdict::Holds),
            tried(high, 9, Verdict::NotReached),
        ];
        assert!(matches!(terms.next(&known), Next::Measure(at) if low < at && at < high));
        let near = [
            tried(low, 6, Verdict::Holds),
            tried(low + 10_000, 9, Verdict::NotReached),
            tried(high, 9, Verdict::NotReached),
        ];
        let between = Answer::Between {
            holds: low,
            fails: low + 10_000,
            is_decided: true,
        };
        assert_eq!(terms.next(&near), Next::Over(between));
    }

    #[test]
    fn noise_excludes_the_truth_seldom() {
        const TIMES: u32 = 400;
        // The deviation of the rate that gets through from trial to trial, in proportion.
        for (share, seed) in [(0.0005, 1), (0.003, 2), (0.02, 3), (0.1, 4)] {
            let mut draw = Draw::new(seed);
            let (mut excluded, mut bracketed) = (0, 0);
            for _ in 0..TIMES {
                let capacity = 20e6 * 400f64.powf(draw.unit());
                let mut loss = |rate: f64| {
                    let noisy = capacity * (1.0 + share * draw.normal());
                    (1.0 - noisy / rate).max(0.0)
                };
                let (answer, _) = searched(&terms(3), &mut loss);
                if let Answer::Between { holds, fails, .. } = answer {
                    bracketed += 1;
                    // The level that half of all trials keep.
                    let truth = capacity / 0.999;
                    let is_in = (holds as f64) < truth && truth <= fails as f64;
                    excluded += u32::from(!is_in);
                }
            }
            println!("{share}: {excluded} excluded of {bracketed} brackets, seed {seed}");
            assert!(excluded * 20 <= TIMES, "{share}: {excluded} of {TIMES}");
            assert!(
                bracketed * 20 >= 19 * TIMES,
                "{share}: {bracketed} of {TIMES}"
            );
        }
    }
}
