//! Lines through the cost of traffic: robust, with slopes that are not negative.
//!
//! The cost of a trial is a sum of work times price. Prices are those that make the relative errors smallest, each trial
//! counted by Huber's weights so that a few bad ones do not rule (Huber, "Robust estimation of a location parameter",
//! Annals of Mathematical Statistics 35, 1964), and none is below zero, since no work gives time back (Lawson and Hanson,
//! "Solving Least Squares Problems", 1974, chapter 23). Their intervals are those of cells drawn again with replacement
//! (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 9): trials of a cell are not independent.

use crate::compare::draw::Draw;

/// Huber's constant: 95 % as good as least squares where errors are normal.
const HUBER: f64 = 1.345;
/// What makes a median of absolute errors a standard deviation, where errors are normal.
const OF_MEDIAN: f64 = 1.4826;
/// Rounds of weights, and sweeps over the prices in each: most settle long before.
const ROUNDS: usize = 10;
const SWEEPS: usize = 400;
/// Share of itself by which a price that has settled still moves.
const SETTLED: f64 = 1e-6;
/// Draws of cells.
const CELL_DRAWS: usize = 200;
/// The least error that a trial counts with: a hundredth of the cost, below which nothing is known.
const ERROR_MIN: f64 = 0.01;

/// What a trial did and what it cost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The number of its cell.
    pub(crate) cell: usize,
    /// Work of each kind, per second.
    pub(crate) work: Vec<f64>,
    /// CPUs.
    pub(crate) cost: f64,
}

/// Prices of work.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fit {
    /// Of each kind.
    pub(crate) prices: Vec<f64>,
    /// The same of cells drawn again.
    drawn: Vec<Vec<f64>>,
    /// Relative errors of the trials that it was fitted to.
    errors: Vec<f64>,
}

impl Fit {
    /// Returns the prices that `rows` show; absent where there are fewer cells than kinds of work and two more.
    pub(crate) fn of(rows: &[Row], seed: u64) -> Option<Self> {
        let kinds = rows.first()?.work.len();
        let mut cells: Vec<usize> = rows.iter().map(|row| row.cell).collect();
        cells.sort_unstable();
        cells.dedup();
        if cells.len() < kinds + 2 {
            return None;
        }
        let all: Vec<&Row> = rows.iter().collect();
        let prices = prices(&all);
        let mut draw = Draw::new(seed);
        let again = |draw: &mut Draw| {
            let chosen = (0..cells.len()).map(|_| cells[draw.below(cells.len() as u32) as usize]);
            let rows: Vec<&Row> = chosen
                .flat_map(|cell| rows.iter().filter(move |row| row.cell == cell))
                .collect();
            self::prices(&rows)
        };
        let drawn = (0..CELL_DRAWS).map(|_| again(&mut draw)).collect();
        let errors = rows
            .iter()
            .map(|row| row.cost / cost(&prices, &row.work) - 1.0);
        // The prices follow what they were fitted to.
        let free = (cells.len() - kinds) as f64 / cells.len() as f64;
        let errors = errors.filter(|error| error.is_finite());
        Some(Self {
            errors: errors.map(|error| error / free.sqrt()).collect(),
            prices,
            drawn,
        })
    }

    /// Returns the prices alone, without intervals.
    pub(crate) fn prices_of(rows: &[Row]) -> Vec<f64> {
        prices(&rows.iter().collect::<Vec<_>>())
    }

    /// Returns what `work` costs.
    pub(crate) fn cost(&self, work: &[f64]) -> f64 {
        cost(&self.prices, work)
    }

    /// Returns the interval of the price of a kind of work, which holds it in 95 of 100 cases.
    pub(crate) fn price_interval(&self, kind: usize) -> (f64, f64) {
        ends(self.drawn.iter().map(|prices| prices[kind]).collect())
    }

    /// Returns the interval that holds the cost of a further trial with `work` in 95 of 100 cases: prices of cells drawn
    /// again, each with every error that a trial had.
    pub(crate) fn cost_interval(&self, work: &[f64]) -> (f64, f64) {
        let drawn = self.drawn.iter().map(|prices| cost(prices, work));
        let errors = &self.errors;
        ends(
            drawn
                .flat_map(|cost| errors.iter().map(move |error| cost * (1.0 + error)))
                .collect(),
        )
    }
}

fn cost(prices: &[f64], work: &[f64]) -> f64 {
    prices
        .iter()
        .zip(work)
        .map(|(price, work)| price * work)
        .sum()
}

/// Returns the values below and above which 2.5 % of `values` lie.
fn ends(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (share * values.len() as f64) as usize;
        values
            .get(place.min(values.len().saturating_sub(1)))
            .copied()
    };
    (at(0.025).unwrap_or(0.0), at(0.975).unwrap_or(f64::INFINITY))
}

/// Returns the prices of least relative error.
fn prices(rows: &[&Row]) -> Vec<f64> {
    let mut weights = vec![1.0; rows.len()];
    let mut prices = Vec::new();
    for _ in 0..ROUNDS {
        prices = weighted(rows, &weights);
        let errors: Vec<f64> = rows
            .iter()
            .map(|row| (cost(&prices, &row.work) / row.cost - 1.0).abs())
            .collect();
        let mut sorted = errors.clone();
        sorted.sort_by(f64::total_cmp);
        let usual =
            (OF_MEDIAN * sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)).max(ERROR_MIN);
        for (weight, error) in weights.iter_mut().zip(&errors) {
            *weight = (HUBER * usual / error.max(f64::MIN_POSITIVE)).min(1.0);
        }
    }
    prices
}

/// Returns prices from zero on that make the weighted squares of relative errors smallest, by descent along one after the other.
fn weighted(rows: &[&Row], weights: &[f64]) -> Vec<f64> {
    let kinds = rows.first().map_or(0, |row| row.work.len());
    // Relative to the cost: each row asks for a sum of 1.
    let share = |row: &Row, kind: usize| row.work[kind] / row.cost;
    let sum = |of: &dyn Fn(&Row) -> f64| -> f64 {
        rows.iter()
            .zip(weights)
            .map(|(row, weight)| weight * of(row))
            .sum()
    };
    let squares: Vec<Vec<f64>> = (0..kinds)
        .map(|one| {
            (0..kinds)
                .map(|other| sum(&|row| share(row, one) * share(row, other)))
                .collect()
        })
        .collect();
    let wanted: Vec<f64> = (0..kinds)
        .map(|kind| sum(&|row| share(row, kind)))
        .collect();
    let mut prices = vec![0.0; kinds];
    for _ in 0..SWEEPS {
        let mut moved = false;
        for kind in 0..kinds {
            let own = squares[kind][kind];
            if own <= 0.0 {
                continue;
            }
            let told = cost(&prices, &squares[kind]);
            let next = f64::max(prices[kind] + (wanted[kind] - told) / own, 0.0);
            moved |= (next - prices[kind]).abs() > SETTLED * next;
            prices[kind] = next;
        }
        if !moved {
            break;
        }
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a cost of 3 µs a packet, 0.5 ns a byte, 10 µs a wake-up and 0.1 CPUs, with errors.
    fn rows(noise: f64, seed: u64) -> Vec<Row> {
        let mut draw = Draw::new(seed);
        let mut rows = Vec::new();
        for cell in 0..24 {
            let rate = 1e7 * f64::from(1 + cell % 6);
            let packets = rate / [1448.0, 536.0][cell as usize / 6 % 2];
            let wakes = rate / 8192.0 * [1.0, 0.2][cell as usize / 12];
            let work = vec![packets, rate, wakes, 1.0];
            let truth = cost(&[3e-6, 0.5e-9, 10e-6, 0.1], &work);
            for _ in 0..3 {
                rows.push(Row {
                    cell: cell as usize,
                    work: work.clone(),
                    cost: truth * (1.0 + noise * draw.normal()),
                });
            }
        }
        rows
    }

    #[test]
    fn prices_are_found_and_none_is_negative() {
        let exact = Fit::of(&rows(0.0, 1), 1).expect("a fit");
        for (found, truth) in exact.prices.iter().zip([3e-6, 0.5e-9, 10e-6, 0.1]) {
            assert!((found / truth - 1.0).abs() < 0.05, "{found} for {truth}");
        }
        // What costs nothing has no price below it.
        let mut rows = rows(0.05, 2);
        for row in &mut rows {
            row.work.push(row.work[0] * 0.5);
        }
        let fit = Fit::of(&rows, 2).expect("a fit");
        assert!(fit.prices.iter().all(|price| *price >= 0.0));
        assert_eq!(Fit::of(&rows[..9], 1), None);
    }

    #[test]
    fn intervals_hold_what_comes_next_in_most_cases() {
        let (mut held, mut all) = (0, 0);
        for seed in 0..100 {
            let fit = Fit::of(&rows(0.05, seed), seed).expect("a fit");
            let mut draw = Draw::new(1000 + seed);
            // Beyond what it was fitted to.
            let rate = 1e8;
            let work = [rate / 1448.0, rate, rate / 8192.0, 1.0];
            let truth = cost(&[3e-6, 0.5e-9, 10e-6, 0.1], &work);
            let next = truth * (1.0 + 0.05 * draw.normal());
            let (low, high) = fit.cost_interval(&work);
            held += u32::from((low..=high).contains(&next));
            all += 1;
        }
        assert!(held * 10 >= all * 9, "{held} of {all}");
    }

    #[test]
    fn a_few_bad_trials_do_not_rule() {
        let mut bad = rows(0.02, 3);
        for at in [5, 30, 60] {
            bad[at].cost *= 3.0;
        }
        let fit = Fit::of(&bad, 3).expect("a fit");
        let work = [1e7 / 1448.0, 1e7, 1e7 / 8192.0, 1.0];
        let truth = cost(&[3e-6, 0.5e-9, 10e-6, 0.1], &work);
        assert!((fit.cost(&work) / truth - 1.0).abs() < 0.05);
    }
}
