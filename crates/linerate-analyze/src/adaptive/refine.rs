//! A scale refined where the response changes most: which level is measured next, and where the curve bends.
//!
//! 1. The levels of the file are measured. Of all pairs of neighbours the one whose responses differ most, as a ratio, gets the
//!    geometric middle of its two levels, until there are as many levels as asked, or no two neighbours are
//!    further apart than the resolution.
//! 2. A trial whose load did not come about, since the sender could not or a queue let it wait, says nothing of its level. A level that
//!    has such a trial did not come about, and nothing is measured above the least of those.
//! 3. The limit of a load lies between the last level that came about and the first that did not. Else the curve *bends* at
//!    a level where its slope, of logarithms, before and behind differ: their intervals, which hold for all slopes
//!    together with 95 %, have nothing in common. Of several it is the one where they differ most. Where there is none, no knee was found.
//!
//! The trials of one level follow those of another, so that a drift of the hosts is a slope of the curve; the levels are not compared in
//! blocks.

use linerate_model::TrialId;
use linerate_model::experiment::{Cell, Experiment, Factor, Level, Refinement};
use linerate_model::outcome::Outcome;
use linerate_model::response::describe;
use linerate_model::run::Recording;

use super::search::{is_reached, middle};
use super::told::{Line, Told};
use crate::compare::interval::{deviation, mean, student, student_t_interval};
use crate::compare::kin::{self, Variance};
use crate::groups::outcomes;
use crate::words;

/// The least variance of a logarithm: latencies are kept with three digits, and trials may agree in those.
const VARIANCE_MIN: f64 = 1e-6;
/// Error of all slopes of a curve together.
const SLOPES_ALPHA: f64 = 0.05;

/// A level that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The level, as a number.
    pub at: u64,
    /// The response in each trial that may be averaged and whose load came about.
    pub values: Vec<f64>,
    /// Trials, those included that may not be averaged.
    pub trials: u32,
    /// Those of them that may be averaged and whose load came about, whether or not the response was read.
    pub came_about: u32,
    /// Whether its load came about in all trials that may be averaged.
    pub is_reached: bool,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// The middle of a pair of neighbours is measured.
    Measure {
        /// The level.
        at: u64,
        /// The pair.
        between: (u64, u64),
    },
    /// The curve is as fine as asked.
    Over,
}

/// Where a curve has its knee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knee {
    /// The load of the one level came about, that of the next did not.
    Load(u64, u64),
    /// The slope changes at the level in the middle, between its neighbours.
    Bend([u64; 3]),
    /// Nowhere that was shown.
    None,
}

/// Returns what comes after `points`, whose levels differ.
pub fn next(terms: &Refinement, points: &[Point]) -> Next {
    if points.len() as u32 >= terms.levels {
        return Next::Over;
    }
    let all = points;
    let points = refined(all);
    let mut widest: Option<(f64, Next)> = None;
    for pair in points.windows(2) {
        let between = (pair[0].at, pair[1].at);
        let is_wide = between.1 as f64 / between.0 as f64 > 1.0 + terms.resolution;
        // A level that no trial tells of is not measured again, nor is what lies beside it.
        let is_tried = all.iter().any(|it| between.0 < it.at && it.at < between.1);
        let middle = middle(between.0, between.1).filter(|_| is_wide && !is_tried);
        let Some(at) = middle else {
            continue;
        };
        let Some(change) = change(pair[0], pair[1]) else {
            continue;
        };
        // Of those that are alike the first.
        if widest.is_none_or(|(most, _)| change > most) {
            widest = Some((change, Next::Measure { at, between }));
        }
    }
    widest.map_or(Next::Over, |(_, next)| next)
}

/// Returns where the curve through `points` has its knee.
pub fn knee(points: &[Point]) -> Knee {
    let points = refined(points);
    let (reached, beyond): (Vec<&Point>, Vec<&Point>) =
        points.into_iter().partition(|it| it.is_reached);
    if let (Some(last), Some(first)) = (reached.last(), beyond.first()) {
        return Knee::Load(last.at, first.at);
    }
    bend(&reached).unwrap_or(Knee::None)
}

/// Returns the points in the order of their levels, without those beyond the least whose load did not come about, and without
/// those that no trial tells of: neither the response nor the load.
fn refined(points: &[Point]) -> Vec<&Point> {
    let mut points: Vec<&Point> = points.iter().collect();
    points.sort_by_key(|point| point.at);
    let end = points.iter().position(|point| !point.is_reached);
    points.truncate(end.map_or(points.len(), |end| end + 1));
    points.retain(|point| !point.is_reached || point.came_about > 0);
    points
}

/// Returns by how much the responses of two levels differ: the logarithm of their ratio; absent where one was not read. Nothing
/// is a multiple of none, and a load that did not come about is a change beyond any.
fn change(one: &Point, other: &Point) -> Option<f64> {
    if !(one.is_reached && other.is_reached) {
        return Some(f64::INFINITY);
    }
    if one.values.is_empty() || other.values.is_empty() {
        return None;
    }
    let (one, other) = (mean(&one.values), mean(&other.values));
    if one == other {
        return Some(0.0);
    }
    Some((other / one).ln().abs())
}

/// Returns the level at which the slope of the curve changes most, where that is shown.
fn bend(points: &[&Point]) -> Option<Knee> {
    let is_told =
        |point: &&Point| point.values.len() > 1 && point.values.iter().all(|it| *it > 0.0);
    let points: Vec<&Point> = points.iter().copied().filter(is_told).collect();
    let logs: Vec<Vec<f64>> = points
        .iter()
        .map(|point| point.values.iter().map(|value| value.ln()).collect())
        .collect();
    let own: Vec<Variance> = logs
        .iter()
        .map(|logs| Variance {
            square: deviation(logs).powi(2).max(VARIANCE_MIN),
            freedom: logs.len() as f64 - 1.0,
        })
        .collect();
    if points.len() < 3 {
        return None;
    }
    let variances = kin::pooled(&own);
    let tail = SLOPES_ALPHA / 2.0 / (points.len() - 1) as f64;
    // Slope, and the ends of its interval.
    let slopes: Vec<(f64, f64, f64)> = (1..points.len())
        .map(|at| {
            let run = (points[at].at as f64 / points[at - 1].at as f64).ln();
            let rise = mean(&logs[at]) - mean(&logs[at - 1]);
            let of_mean = |at: usize| variances[at].times(1.0 / logs[at].len() as f64);
            let variance = kin::sum(&[of_mean(at - 1), of_mean(at)]);
            let half = student(variance.freedom, 1.0 - tail) * variance.square.sqrt();
            (rise / run, (rise - half) / run, (rise + half) / run)
        })
        .collect();
    let mut bends = Vec::new();
    for (at, pair) in slopes.windows(2).enumerate() {
        let [before, behind] = [pair[0], pair[1]];
        if before.2 < behind.1 || behind.2 < before.1 {
            let level = |at: usize| points[at].at;
            let knee = Knee::Bend([level(at), level(at + 1), level(at + 2)]);
            bends.push(((behind.0 - before.0).abs(), knee));
        }
    }
    let most = bends
        .into_iter()
        .reduce(|one, other| if other.0 > one.0 { other } else { one });
    most.map(|(_, knee)| knee)
}

/// Returns the level at which `experiment` measures next, if it is a refinement and not over.
pub(super) fn next_level(
    recording: &Recording,
    all: &[Outcome],
    experiment: &Experiment,
) -> Option<u64> {
    let (terms, _) = terms(experiment)?;
    match next(terms, &points(recording, all, experiment, None)) {
        Next::Measure { at, .. } => Some(at),
        Next::Over => None,
    }
}

/// Returns what `experiment` is refined by, if it is.
fn terms(experiment: &Experiment) -> Option<(&Refinement, Factor)> {
    let terms = experiment.refinement.as_ref()?;
    Some((terms, experiment.factors.first()?.0))
}

/// Returns the levels of `all` outcomes that were known before the trial `before`; of none, all that were measured.
fn points(
    recording: &Recording,
    all: &[Outcome],
    experiment: &Experiment,
    before: Option<TrialId>,
) -> Vec<Point> {
    let Some((_, factor)) = terms(experiment) else {
        return Vec::new();
    };
    let mut points: Vec<Point> = Vec::new();
    let is_own = |it: &&Outcome| {
        it.experiment == experiment.name && before.is_none_or(|before| it.trial < before)
    };
    for outcome in all.iter().filter(is_own) {
        let Some(at) = outcome.cell.get(&factor).and_then(Level::whole) else {
            continue;
        };
        let known = points.iter().position(|point| point.at == at);
        let point = known.unwrap_or_else(|| {
            points.push(Point {
                at,
                values: Vec::new(),
                trials: 0,
                came_about: 0,
                is_reached: true,
            });
            points.len() - 1
        });
        let point = &mut points[point];
        point.trials += 1;
        if !outcome.is_valid() {
            continue;
        }
        if is_reached(&recording.document.plan, factor, outcome) {
            point.came_about += 1;
            point.values.extend(outcome.value(&experiment.response));
        } else {
            point.is_reached = false;
        }
    }
    points
}

/// Returns what refining `experiment` found; nothing where nothing is refined.
pub(super) fn told(recording: &Recording, experiment: &Experiment) -> Option<Told> {
    let (terms, factor) = terms(experiment)?;
    let kind = experiment.levels(factor).first()?.clone();
    let level = |at: u64| kind.with_whole(at).unwrap_or_else(|| kind.clone());
    let in_words = |at: u64| words::level(factor, &level(at));
    let unit = describe(&experiment.response).unit;
    let value = |point: &Point| student_t_interval(&point.values, unit);
    let all = outcomes(recording);
    let stages = recording.document.plan.stages.iter();
    let own = stages.filter(|stage| stage.experiment == experiment.name);
    let path = own.filter_map(|stage| {
        let known = points(recording, &all, experiment, stage.trials.first().copied());
        let added = words::whole_cell(&of_factor(&stage.cell, factor));
        let of_stage = stage.cell.get(&factor).and_then(Level::whole);
        // Trials that were repeated later may have been read otherwise when it was chosen.
        let between = match next(terms, &known) {
            Next::Measure { at, between } if Some(at) == of_stage => between,
            _ => return Some((added, "before trials were repeated".to_owned())),
        };
        let of = |at: u64| known.iter().find(|point| point.at == at);
        let (one, other) = (of(between.0)?, of(between.1)?);
        let change = if one.is_reached && other.is_reached {
            format!(
                "× {}",
                words::number(
                    linerate_model::unit::Unit::Ratio,
                    mean(&other.values) / mean(&one.values)
                )
            )
        } else {
            "the load came about at the first only".to_owned()
        };
        let levels = [between.0, between.1].map(in_words);
        Some((added, format!("between {}: {change}", levels.join(" and "))))
    });
    let path: Vec<(String, String)> = path.collect();
    let mut points = points(recording, &all, experiment, None);
    points.sort_by_key(|point| point.at);
    let title = describe(&experiment.response).title;
    let said = |at: u64| {
        let point = points.iter().find(|point| point.at == at);
        let value = point.and_then(value);
        value.map_or_else(|| "not read".to_owned(), |value| words::estimate(&value))
    };
    let is_open = matches!(next(terms, &points), Next::Measure { .. });
    let answer = match knee(&points) {
        Knee::Load(last, first) => format!(
            "The load of {} came about, with {title} {}; that of {} did not.",
            in_words(last),
            said(last),
            in_words(first)
        ),
        Knee::Bend([before, at, behind]) => format!(
            "The curve of {title} bends at {} ({}): from {} before ({}) to {} behind ({}) its slope changes beyond its intervals.",
            in_words(at),
            said(at),
            in_words(before),
            said(before),
            in_words(behind),
            said(behind)
        ),
        Knee::None => format!(
            "No knee was found: nowhere does the slope of {title} change beyond its intervals."
        ),
    };
    let answer = if is_open {
        format!("{answer} The refinement ended early.")
    } else {
        answer
    };
    let levels = points.iter().map(|point| Line {
        level: in_words(point.at),
        trials: point.trials,
        value: value(point),
        says: if point.is_reached {
            "load reached"
        } else {
            "load not reached"
        },
    });
    Some(Told {
        answer,
        title: "Curve, in the order of levels",
        levels: levels.collect(),
        response: title.to_owned(),
        says: "load",
        added: path,
    })
}

/// Returns the level of `factor` in `cell` alone.
fn of_factor(cell: &Cell, factor: Factor) -> Cell {
    let level = cell.get(&factor).cloned();
    level.into_iter().map(|level| (factor, level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::draw::Draw;

    /// Refines a curve whose trials are `trial`; those that have no load did not come about.
    fn refined(
        terms: &Refinement,
        first: &[u64],
        mut trial: impl FnMut(f64) -> Option<f64>,
    ) -> Vec<Point> {
        let mut measured = |at: u64| {
            let values: Vec<Option<f64>> = (0..3).map(|_| trial(at as f64)).collect();
            Point {
                at,
                trials: 3,
                came_about: values.iter().flatten().count() as u32,
                is_reached: values.iter().all(Option::is_some),
                values: values.into_iter().flatten().collect(),
            }
        };
        let mut points: Vec<Point> = first.iter().map(|at| measured(*at)).collect();
        while let Next::Measure { at, between } = next(terms, &points) {
            assert!(between.0 < at && at < between.1);
            assert!(points.iter().all(|point| point.at != at));
            points.push(measured(at));
            assert!(points.len() < 100);
        }
        points
    }

    fn terms(levels: u32, resolution: f64) -> Refinement {
        Refinement { levels, resolution }
    }

    #[test]
    fn levels_come_where_the_response_changes_until_there_are_enough() {
        // Window over round trip up to the rate of the link.
        let curve = |bytes: f64| Some((bytes * 8.0 / 1e-3).min(1e9));
        let points = refined(&terms(12, 0.05), &[4096, 1 << 20], curve);
        assert_eq!(points.len(), 12);
        let above = points.iter().filter(|point| point.at > 250_000).count();
        assert!(
            above <= 2,
            "the flat part is measured at its ends: {points:?}"
        );
        // As near as asked, with levels left over.
        let points = refined(&terms(99, 0.5), &[4096, 1 << 20], curve);
        let mut levels: Vec<u64> = points.iter().map(|point| point.at).collect();
        levels.sort_unstable();
        assert!(
            levels
                .windows(2)
                .all(|two| two[1] as f64 / two[0] as f64 <= 1.5),
            "{levels:?}"
        );
    }

    #[test]
    fn a_knee_lies_beside_the_level_at_which_the_curve_bends() {
        for (seed, noise) in [(1, 0.0), (2, 0.01), (3, 0.02)] {
            let mut draw = Draw::new(seed);
            let curve = |bytes: f64| {
                let rate = (bytes * 8.0 / 1e-3).min(1e9);
                Some(rate * (1.0 + noise * draw.normal()))
            };
            let points = refined(&terms(12, 0.2), &[16_384, 65_536, 262_144, 1 << 20], curve);
            let Knee::Bend([before, _, behind]) = knee(&points) else {
                panic!("{points:?}");
            };
            assert!(before < 125_000 && 125_000 < behind, "{before} {behind}");
        }
    }

    #[test]
    fn a_load_that_did_not_come_about_is_the_end_of_the_curve() {
        let capacity = 23_456.0;
        let latency = |load: f64| (load < capacity).then(|| 1e5 / (1.0 - load / capacity));
        let points = refined(&terms(20, 0.05), &[1_000, 10_000, 50_000, 100_000], latency);
        let Knee::Load(last, first) = knee(&points) else {
            panic!("{points:?}");
        };
        assert!((last as f64) < capacity && capacity <= first as f64);
        assert!(first as f64 / last as f64 <= 1.05, "{last} {first}");
        let beyond: Vec<u64> = points
            .iter()
            .map(|it| it.at)
            .filter(|at| *at > 50_000)
            .collect();
        assert_eq!(
            beyond,
            [100_000],
            "nothing is added above the least that did not come about"
        );
        // Loads that came about are told of where the response was not read.
        let unread = |at: u64, is_reached: bool| Point {
            at,
            values: Vec::new(),
            trials: 3,
            came_about: if is_reached { 3 } else { 0 },
            is_reached,
        };
        let unread = [unread(100, true), unread(10_000, false)];
        let between = (100, 10_000);
        assert_eq!(knee(&unread), Knee::Load(100, 10_000));
        assert_eq!(
            next(&terms(9, 0.05), &unread),
            Next::Measure { at: 1000, between }
        );
        // In one of three trials is not in all: the level did not come about.
        let mut point = points[0].clone();
        point.is_reached = false;
        assert_eq!(knee(&[point]), Knee::None);
    }

    #[test]
    fn a_level_that_no_trial_tells_of_is_not_measured_again() {
        let point = |at: u64, values: &[f64]| Point {
            at,
            values: values.to_vec(),
            trials: 3,
            came_about: values.len() as u32,
            is_reached: true,
        };
        let mut points = vec![
            point(100, &[1.0, 1.1, 1.0]),
            point(10_000, &[9.0, 9.1, 9.0]),
        ];
        let terms = terms(9, 0.05);
        let first = next(&terms, &points);
        let between = (100, 10_000);
        assert_eq!(first, Next::Measure { at: 1000, between });
        points.push(point(1000, &[]));
        assert_eq!(next(&terms, &points), Next::Over);
    }

    #[test]
    fn a_curve_without_a_bend_has_no_knee() {
        const TIMES: u32 = 400;
        // The power of the level that it is, and the deviation of a trial.
        for (power, noise, seed) in [
            (0.0, 0.01, 1),
            (0.0, 0.1, 2),
            (1.0, 0.03, 3),
            (-0.5, 0.2, 4),
        ] {
            let mut draw = Draw::new(seed);
            let mut found = 0;
            for _ in 0..TIMES {
                let curve = |at: f64| Some(at.powf(power) * (noise * draw.normal()).exp());
                let points = refined(&terms(10, 0.05), &[1_000, 30_000, 1_000_000], curve);
                found += u32::from(knee(&points) != Knee::None);
            }
            assert!(found * 20 <= TIMES, "{power}, {noise}: {found} of {TIMES}");
        }
    }
}
