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
/// Rounds of weights, those of cells drawn again, and sweeps over the prices in each: most settle long before.
const ROUNDS: usize = 10;
const DRAWN_ROUNDS: usize = 2;
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
        let kinds = (0..kinds).filter(|kind| rows.iter().any(|row| row.work[*kind] > 0.0));
        let kinds = kinds.count();
        let mut cells: Vec<usize> = rows.iter().map(|row| row.cell).collect();
        cells.sort_unstable();
        cells.dedup();
        if cells.len() < kinds + 2 {
            return None;
        }
        let shares = Shares::of(rows);
        let once = vec![1.0; rows.len()];
        let (prices, weights) = shares.prices(&once, once.clone(), ROUNDS);
        let mut draw = Draw::new(seed);
        let place = |row: &Row| cells.iter().position(|cell| *cell == row.cell);
        let places: Vec<Option<usize>> = rows.iter().map(place).collect();
        let again = |draw: &mut Draw| {
            let mut times = vec![0.0; cells.len()];
            for _ in 0..cells.len() {
                times[draw.below(cells.len() as u32) as usize] += 1.0;
            }
            let counts = places
                .iter()
                .map(|place| place.map_or(0.0, |place| times[place]));
            // The weights of all rows are near: it settles soon.
            shares
                .prices(&counts.collect::<Vec<f64>>(), weights.clone(), DRAWN_ROUNDS)
                .0
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
        let even = vec![1.0; rows.len()];
        Shares::of(rows).prices(&even, even.clone(), ROUNDS).0
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

/// Work relative to its cost: each row asks for a sum of 1.
struct Shares {
    kinds: usize,
    /// Of each row, one after the other.
    all: Vec<f64>,
}

impl Shares {
    fn of(rows: &[Row]) -> Self {
        let of_row =
            |row: &'_ Row| -> Vec<f64> { row.work.iter().map(|work| work / row.cost).collect() };
        Self {
            kinds: rows.first().map_or(0, |row| row.work.len()),
            all: rows.iter().flat_map(of_row).collect(),
        }
    }

    /// Returns the prices of least relative error, and Huber's weights of the rows, after `rounds` that begin with `weights`; each
    /// row counts so many times.
    fn prices(&self, counts: &[f64], mut weights: Vec<f64>, rounds: usize) -> (Vec<f64>, Vec<f64>) {
        let mut prices = Vec::new();
        for _ in 0..rounds {
            let counted = weights.iter().zip(counts);
            prices = self.weighted(
                &counted
                    .map(|(weight, count)| weight * count)
                    .collect::<Vec<_>>(),
            );
            let rows = self.all.chunks_exact(self.kinds.max(1));
            let errors: Vec<f64> = rows.map(|row| (cost(&prices, row) - 1.0).abs()).collect();
            let usual = (OF_MEDIAN * median(&errors, counts)).max(ERROR_MIN);
            let weight = |error: &f64| (HUBER * usual / error.max(f64::MIN_POSITIVE)).min(1.0);
            weights = errors.iter().map(weight).collect();
        }
        (prices, weights)
    }

    /// Returns prices from zero on that make the weighted squares of relative errors smallest, by descent along one after the other.
    fn weighted(&self, weights: &[f64]) -> Vec<f64> {
        let kinds = self.kinds;
        let mut squares = vec![0.0; kinds * kinds];
        let mut wanted = vec![0.0; kinds];
        for (row, weight) in self.all.chunks_exact(kinds.max(1)).zip(weights) {
            for one in 0..kinds {
                let weighted = weight * row[one];
                wanted[one] += weighted;
                for other in 0..=one {
                    squares[one * kinds + other] += weighted * row[other];
                }
            }
        }
        let square = |one: usize, other: usize| squares[one.max(other) * kinds + one.min(other)];
        let mut prices = vec![0.0; kinds];
        for _ in 0..SWEEPS {
            let mut moved = false;
            for kind in 0..kinds {
                let own = square(kind, kind);
                if own <= 0.0 {
                    continue;
                }
                let told: f64 = (0..kinds)
                    .map(|other| prices[other] * square(kind, other))
                    .sum();
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
}

/// Returns the middle of the `errors` that count.
fn median(errors: &[f64], counts: &[f64]) -> f64 {
    let all = errors.iter().zip(counts).filter(|(_, count)| **count > 0.0);
    let mut all: Vec<f64> = all.map(|(error, _)| *error).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
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
