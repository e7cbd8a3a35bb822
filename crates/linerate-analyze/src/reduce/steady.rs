//! From when on the rate of a window is that of a state: MSER-5 (White 1997).
//!
//! The window is cut into pieces of five readings. Of the first pieces as many are left out as make the
//! standard error of the mean of the rest smallest: `Σ (x − mean)² / n²` over the n that stay. What would
//! leave out more than half is no answer: nothing in the window is known to be steady.

use linerate_model::samples::Reading;

/// Readings of a piece: so many that what neighbours have in common averages out.
const PIECE_READINGS: usize = 5;
/// Fewest and most pieces of a window: fewer choose by chance, more see bursts.
const PIECES_MIN: usize = 10;
const PIECES_MAX: usize = 100;

/// Returns into how many pieces a window with so many readings is cut; none where they are too few.
pub(super) fn pieces(readings: usize) -> Option<usize> {
    let pieces = (readings / PIECE_READINGS).min(PIECES_MAX);
    (pieces >= PIECES_MIN).then_some(pieces)
}

/// Adds to `sums` what a counter grew in each piece of the window; between readings it grows evenly.
///
/// Nothing where the counter was started again.
pub(super) fn add_growth(series: &[Reading], window_ns: i64, sums: &mut [f64]) -> Option<()> {
    let pieces = sums.len() as i64;
    let at = |piece: i64| {
        let instant = i128::from(window_ns) * i128::from(piece) / i128::from(pieces);
        value_at(series, instant as i64)
    };
    let mut before = at(0)?;
    for (sum, piece) in sums.iter_mut().zip(1..) {
        let after = at(piece)?;
        if after < before {
            return None;
        }
        *sum += after - before;
        before = after;
    }
    Some(())
}

/// Returns a counter at an instant, from the readings beside it: the nearest where it lies beyond all.
fn value_at(series: &[Reading], at_ns: i64) -> Option<f64> {
    let next = series.partition_point(|reading| reading.0 < at_ns);
    let (before, after) = match (next.checked_sub(1), series.get(next)) {
        (Some(before), Some(after)) => (series[before], *after),
        (Some(only), None) => return Some(series[only].1 as f64),
        (None, first) => return first.map(|first| first.1 as f64),
    };
    let length = (after.0 as f64) - (before.0 as f64);
    let share = (at_ns as f64 - before.0 as f64) / length.max(1.0);
    Some(before.1 as f64 + share * (after.1 as f64 - before.1 as f64))
}

/// Returns the share of the window after which `growth`, piece by piece, is steady; absent where it is not
/// by the middle.
pub(super) fn steady_after(growth: &[f64]) -> Option<f64> {
    let of_rest = |left_out: usize| {
        let rest = &growth[left_out..];
        let n = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / n;
        rest.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (n * n)
    };
    // One further than may be: a least at the edge is none, it would go on to fall.
    let most = growth.len() / 2;
    let best = (0..=most + 1).min_by(|a, b| of_rest(*a).total_cmp(&of_rest(*b)))?;
    (best <= most).then_some(best as f64 / growth.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wave of one part in a hundred, as no rate is quite steady.
    fn wave(at: usize) -> f64 {
        1.0 + 0.01 * if at.is_multiple_of(2) { 1.0 } else { -1.0 }
    }

    #[test]
    fn the_begin_is_left_out_until_the_rest_agrees() {
        let rising = |pieces: usize, after: usize| -> Vec<f64> {
            let reached = |at: usize| ((at + 1) as f64 / (after + 1) as f64).min(1.0);
            (0..pieces).map(|at| reached(at) * wave(at)).collect()
        };
        let check = |growth: &[f64], expected: Option<f64>| {
            assert_eq!(steady_after(growth), expected, "{growth:?}");
        };
        check(&rising(20, 0), Some(0.0));
        check(&rising(20, 5), Some(0.25));
        check(&rising(20, 8), Some(0.4));
        check(&rising(20, 20), None);
        let falling: Vec<f64> = rising(20, 20).into_iter().rev().collect();
        check(&falling, None);
    }

    #[test]
    fn counters_are_cut_into_even_pieces_wherever_they_were_read() {
        // 100 a second, read every 0.3 s, from before the window to after it.
        let series: Vec<Reading> = (-1..=40).map(|at| (at * 300, at * 30)).collect();
        let mut sums = vec![0.0; 10];
        assert_eq!(add_growth(&series, 10_000, &mut sums), Some(()));
        assert!(
            sums.iter().all(|sum| (sum - 100.0).abs() < 1e-6),
            "{sums:?}"
        );
        let again = [(0, 5), (5000, 100), (6000, 0), (10_000, 20)];
        assert_eq!(add_growth(&again, 10_000, &mut sums), None);
        assert_eq!(pieces(49), None);
        assert_eq!(pieces(100), Some(20));
    }
}
