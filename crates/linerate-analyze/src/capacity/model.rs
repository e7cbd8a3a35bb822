//! Prices of work, and how far they are off where they were not fitted.

use linerate_model::finding::Estimate;
use linerate_model::number::counted;
use linerate_model::unit::Unit;
use linerate_model::workload::Direction;
use serde::Serialize;

use super::fit::{Fit, Row};
use super::kind::{KINDS, Kind, Side};
use super::work::{self, Work};
use crate::compare::draw::Draw;
use crate::compare::line::left_over;
use crate::dataset::CellOutcomes;

/// One cell in so many is never fitted.
const HELD_OUT_EVERY: usize = 5;
/// Share of its variance that the other kinds of work explain, from which on a kind is not told apart from them: variance
/// inflation of ten, the usual bound (Marquardt, "Generalized inverses, ridge regression, biased linear estimation, and
/// nonlinear estimation", Technometrics 12, 1970).
const ALIKE_SHARE_MIN: f64 = 0.9;
/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// Seed of the cells that are drawn again: the same bundle gives the same numbers.
const FIT_SEED: u64 = 1;

/// What traffic costs a side.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Model {
    /// Whose cost it is.
    pub side: Side,
    /// Trials that it was fitted to.
    pub trials: usize,
    /// Their cells.
    pub cells: usize,
    /// What each kind of work costs.
    pub prices: Vec<Price>,
    /// How far it is off where it was not fitted.
    pub held_out: HeldOut,
    /// Kinds of work that this run does not tell apart.
    pub alike: Vec<Kind>,
    /// The highest payload that it was fitted to, bit/s.
    pub fitted_to_bps: f64,
    /// Prices in user mode, in the kernel and in interrupts, in the order of the kinds.
    #[serde(skip)]
    pub(super) modes: [Option<Vec<f64>>; 3],
    #[serde(skip)]
    fit: Fit,
    /// Its trials, those that it was not fitted to last.
    pub rows: Vec<Work>,
}

/// What one of a kind of work costs: CPU time in ns; of what is always there, CPUs.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Price {
    /// The kind.
    pub kind: Kind,
    /// All of it.
    pub all: Estimate,
    /// In user mode.
    pub user: Option<f64>,
    /// In the kernel, for our threads.
    pub system: Option<f64>,
    /// In interrupts.
    pub interrupts: Option<f64>,
}

/// Errors in cells that were not fitted.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HeldOut {
    /// How many there were.
    pub cells: usize,
    /// The median of the relative errors, without sign.
    pub median: Option<f64>,
    /// The largest.
    pub most: Option<f64>,
    /// The share of them whose interval holds what was measured.
    pub held: Option<f64>,
}

/// What the model says of something, and what was measured.
pub(super) struct Check {
    pub(super) told: Estimate,
    pub(super) truth: f64,
}

impl Check {
    pub(super) fn error(&self) -> f64 {
        (self.told.value / self.truth - 1.0).abs()
    }

    fn is_inside(&self) -> bool {
        let (low, high) = (self.told.low, self.told.high);
        low.is_some_and(|low| low <= self.truth) && high.is_some_and(|high| self.truth <= high)
    }
}

impl HeldOut {
    pub(super) fn of(checks: &[Check]) -> Self {
        let mut errors: Vec<f64> = checks.iter().map(Check::error).collect();
        errors.sort_by(f64::total_cmp);
        let inside = checks.iter().filter(|it| it.is_inside()).count() as f64;
        Self {
            cells: checks.len(),
            median: errors.get(errors.len() / 2).copied(),
            most: errors.last().copied(),
            held: (!checks.is_empty()).then(|| inside / checks.len() as f64),
        }
    }
}

impl Model {
    /// Returns the model of what `cells` cost `side`, but for every fifth of them, whose error it has; or why there is none.
    pub(super) fn of(cells: &[&CellOutcomes<'_>], side: Side) -> Result<Self, String> {
        let rows = work::rows(cells, side);
        let mut numbers = work::numbers(&rows);
        // By chance: in their order every fifth may have the same level.
        Draw::new(FIT_SEED).shuffle(&mut numbers);
        let out: Vec<usize> = numbers
            .iter()
            .copied()
            .skip(HELD_OUT_EVERY - 1)
            .step_by(HELD_OUT_EVERY)
            .collect();
        let (mut held_out, fitted): (Vec<Work>, _) =
            rows.into_iter().partition(|row| out.contains(&row.cell));
        let few = || {
            let there = counted(numbers.len() as u64, "cell");
            format!("{there} of plain streams and exchanges with their cost are too few")
        };
        let mut model = Self::fitted(side, fitted).ok_or_else(few)?;
        model.held_out = HeldOut::of(&model.checks(&held_out));
        held_out.iter_mut().for_each(|row| row.fitted = false);
        model.rows.append(&mut held_out);
        Ok(model)
    }

    /// Returns the model of `rows`; absent where they are too few.
    pub(super) fn fitted(side: Side, rows: Vec<Work>) -> Option<Self> {
        let of_mode =
            |mode: usize| -> Vec<Row> { rows.iter().filter_map(|row| row.row(mode)).collect() };
        let fit = Fit::of(&of_mode(0), FIT_SEED)?;
        let modes =
            [1, 2, 3].map(|mode| Some(Fit::prices_of(&of_mode(mode))).filter(|it| !it.is_empty()));
        let is_done = |kind: usize| rows.iter().any(|row| row.done[kind] > 0.0);
        let kinds = (0..KINDS.len()).filter(|at| is_done(*at));
        Some(Self {
            side,
            trials: rows.len(),
            cells: work::numbers(&rows).len(),
            prices: kinds
                .map(|at| price(&fit, &modes, at, rows.len()))
                .collect(),
            held_out: HeldOut::of(&[]),
            alike: alike(&rows),
            fitted_to_bps: rows.iter().map(|row| 8.0 * row.bytes()).fold(0.0, f64::max),
            modes,
            fit,
            rows,
        })
    }

    /// Returns what `work` costs, with the interval of a further trial.
    pub(super) fn cost(&self, work: &[f64]) -> Estimate {
        let (low, high) = self.fit.cost_interval(work);
        Estimate {
            value: self.fit.cost(work),
            low: Some(low),
            high: Some(high),
            confidence: CONFIDENCE,
            n: self.trials as u32,
            unit: Unit::Cpus,
        }
    }

    /// Returns what it says of the mean of each cell of `rows`, and what that cost.
    fn checks(&self, rows: &[Work]) -> Vec<Check> {
        let of_cell = |cell: usize| {
            let own = work::of_cell(rows, cell);
            let count = own.len() as f64;
            let mean = |kind: usize| own.iter().map(|row| row.done[kind]).sum::<f64>() / count;
            let done: Vec<f64> = (0..KINDS.len()).map(mean).collect();
            Some(Check {
                truth: work::mean_cost(&own)?,
                told: self.cost(&done),
            })
        };
        work::numbers(rows)
            .into_iter()
            .filter_map(of_cell)
            .collect()
    }

    /// Returns the sizes of messages that it was fitted to in `direction`, ascending: those of loads below saturation, where there
    /// are such.
    pub(crate) fn message_sizes(&self, direction: Direction) -> Vec<u64> {
        let sizes = |is_meant: fn(&Work) -> bool| {
            let own = self
                .rows
                .iter()
                .filter(|row| row.direction == Some(direction) && is_meant(row));
            let mut sizes: Vec<u64> = own.filter_map(|row| row.message_bytes).collect();
            sizes.sort_unstable();
            sizes.dedup();
            sizes
        };
        let paced = sizes(|row| row.is_paced);
        if paced.is_empty() {
            sizes(|_| true)
        } else {
            paced
        }
    }
}

/// Returns the price at `at` of the kinds, all of it and by mode.
fn price(fit: &Fit, modes: &[Option<Vec<f64>>; 3], at: usize, trials: usize) -> Price {
    // Times in ns; what is always there in CPUs.
    let (scale, unit) = match KINDS[at] {
        Kind::Always => (1.0, Unit::Cpus),
        _ => (1e9, Unit::Nanoseconds),
    };
    let (low, high) = fit.price_interval(at);
    let of = |mode: usize| modes[mode].as_ref().map(|prices| scale * prices[at]);
    Price {
        kind: KINDS[at],
        all: Estimate {
            value: scale * fit.prices[at],
            low: Some(scale * low),
            high: Some(scale * high),
            confidence: CONFIDENCE,
            n: trials as u32,
            unit,
        },
        user: of(0),
        system: of(1),
        interrupts: of(2),
    }
}

/// Returns the kinds of work whose amounts, relative to the cost, follow from those of the others.
fn alike(rows: &[Work]) -> Vec<Kind> {
    let share =
        |row: &Work, kind: usize| Some(row.done[kind] / row.cost[0].filter(|it| *it > 0.0)?);
    let column =
        |kind: usize| -> Vec<f64> { rows.iter().filter_map(|row| share(row, kind)).collect() };
    let is_alike = |kind: &usize| {
        let own = column(*kind);
        let others = (0..KINDS.len()).filter(|other| other != kind).map(column);
        let others: Vec<Vec<f64>> = others
            .filter(|column| column.iter().any(|it| *it > 0.0))
            .collect();
        let all: f64 = own.iter().map(|it| it * it).sum();
        all > 0.0 && left_over(&own, &others) < (1.0 - ALIKE_SHARE_MIN) * all
    };
    let kinds = (0..KINDS.len()).filter(is_alike);
    kinds.map(|kind| KINDS[kind]).collect()
}
