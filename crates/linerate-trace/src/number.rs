//! Numbers as text, with their units.

use linerate_model::unit::Unit;

pub(crate) use linerate_model::number::counted;

pub(crate) fn count(number: impl Into<u64>) -> String {
    Unit::Count.display(number.into() as f64)
}

/// Writes each number that is not zero with what there are so many of.
pub(crate) fn counts<const N: usize>(all: [(u64, &str); N]) -> impl Iterator<Item = String> {
    let some = all.into_iter().filter(|(number, _)| *number > 0);
    some.map(|(number, what)| format!("{} {what}", count(number)))
}

/// Returns what one of `whole` has of `part`, if there is any.
pub(crate) fn ratio(part: impl Into<u64>, whole: impl Into<u64>) -> Option<f64> {
    let (part, whole) = (part.into() as f64, whole.into() as f64);
    (whole > 0.0).then(|| part / whole)
}

pub(crate) fn bytes(number: u64) -> String {
    Unit::Bytes.display(number as f64)
}

pub(crate) fn ns(number: u64) -> String {
    Unit::Nanoseconds.display(number as f64)
}
