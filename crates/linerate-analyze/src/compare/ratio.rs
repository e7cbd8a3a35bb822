//! The ratio of two means with its interval.
//!
//! With means y (old) and y' (new) and half widths h and h' of their intervals (Fieller 1954, in
//! the form of Kalibera and Jones, "Quantifying performance changes with effect size confidence
//! intervals", 2012, section 6):
//!
//!   ( y·y' ± √( (y·y')² − (y² − h²)·(y'² − h'²) ) ) / (y² − h²),   valid for y² > h².

use linerate_model::finding::Estimate;
use linerate_model::unit::Unit;

/// Returns new / old; the interval is absent when one of them has none or old is not distinct
/// from zero.
pub(crate) fn ratio(old: &Estimate, new: &Estimate) -> Option<Estimate> {
    if old.value <= 0.0 {
        return None;
    }
    let interval = interval(old, new);
    Some(Estimate {
        value: new.value / old.value,
        low: interval.map(|(low, _)| low.max(0.0)),
        high: interval.map(|(_, high)| high),
        confidence: old.confidence,
        n: old.n.min(new.n),
        unit: Unit::Ratio,
    })
}

fn interval(old: &Estimate, new: &Estimate) -> Option<(f64, f64)> {
    let (y, z) = (old.value, new.value);
    // Upper half widths, since a lower end may have been cut at zero.
    let (h, k) = (old.high? - y, new.high? - z);
    let below = y * y - h * h;
    let inside = (y * z).powi(2) - below * (z * z - k * k);
    if below <= 0.0 || inside < 0.0 {
        return None;
    }
    Some((
        (y * z - inside.sqrt()) / below,
        (y * z + inside.sqrt()) / below,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, half: f64) -> Estimate {
        Estimate {
            value,
            low: Some(value - half),
            high: Some(value + half),
            confidence: 0.95,
            n: 3,
            unit: Unit::BitsPerSecond,
        }
    }

    #[test]
    fn interval_follows_the_formula() {
        // y = 100 ± 10, y' = 200 ± 20: (20 000 ± √(4e8 − 9 900 · 39 600)) / 9 900 = (20 000 ± 2 821.347) / 9 900.
        let found = ratio(&estimate(100.0, 10.0), &estimate(200.0, 20.0)).unwrap();
        assert_eq!(found.value, 2.0);
        assert!((found.low.unwrap() - 1.735_217_5).abs() < 1e-5, "{found:?}");
        assert!(
            (found.high.unwrap() - 2.305_186_6).abs() < 1e-5,
            "{found:?}"
        );
        // Exact numbers have an exact ratio.
        let exact = ratio(&estimate(100.0, 0.0), &estimate(50.0, 0.0)).unwrap();
        assert_eq!((exact.low, exact.high), (Some(0.5), Some(0.5)));
    }

    #[test]
    fn an_old_mean_near_zero_has_no_interval() {
        let found = ratio(&estimate(10.0, 20.0), &estimate(50.0, 1.0)).unwrap();
        assert_eq!((found.value, found.low), (5.0, None));
        assert_eq!(ratio(&estimate(0.0, 0.0), &estimate(50.0, 1.0)), None);
    }
}
