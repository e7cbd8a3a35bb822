//! Lines through points of several dimensions, by least squares.

/// What is left of a column that the others make up but for rounding, as a share of it.
const ROUNDING: f64 = 1e-9;

/// Returns the slope along `column` of the least-squares plane through `values`, with a height and a slope for each of the
/// `others`; absent where those make up the column, or leave nothing over.
///
/// What of the column is orthogonal to the others has that slope alone (Frisch and Waugh, "Partial time regressions as
/// compared with individual trends", Econometrica 1, 1933).
pub(crate) fn slope(column: &[f64], others: &[Vec<f64>], values: &[f64]) -> Option<f64> {
    if values.len() < others.len() + 3 {
        return None;
    }
    let height = vec![1.0; values.len()];
    let basis = basis(std::iter::once(&height).chain(others));
    let own = rest(column, &basis)?;
    Some(dot(&own, values) / dot(&own, &own))
}

/// Returns the square of what is left of `column` when the others have made up of it what they can.
pub(crate) fn left_over(column: &[f64], others: &[Vec<f64>]) -> f64 {
    let basis = basis(others.iter());
    rest(column, &basis).map_or(0.0, |rest| dot(&rest, &rest))
}

/// Returns orthogonal columns that make up `columns`.
fn basis<'c>(columns: impl Iterator<Item = &'c Vec<f64>>) -> Vec<Vec<f64>> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for column in columns {
        basis.extend(rest(column, &basis));
    }
    basis
}

/// Returns what of `column` is orthogonal to `basis`; absent where that is rounding alone.
fn rest(column: &[f64], basis: &[Vec<f64>]) -> Option<Vec<f64>> {
    let mut rest = column.to_vec();
    for axis in basis {
        let share = dot(&rest, axis) / dot(axis, axis);
        rest.iter_mut()
            .zip(axis)
            .for_each(|(own, axis)| *own -= share * axis);
    }
    (dot(&rest, &rest) > ROUNDING * dot(column, column)).then_some(rest)
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn the_slopes_of_a_plane_are_found_whatever_the_other_is() {
        let one = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let other = vec![3.0, 0.0, 4.0, 1.0, 5.0, 2.0];
        let plane = one
            .iter()
            .zip(&other)
            .map(|(one, other)| 7.0 + 2.0 * one - 0.5 * other);
        let values: Vec<f64> = plane.collect();
        let along_one = slope(&one, std::slice::from_ref(&other), &values).expect("a slope");
        let along_other = slope(&other, &[one.to_vec()], &values).expect("a slope");
        assert!((along_one - 2.0).abs() < 1e-12 && (along_other + 0.5).abs() < 1e-12);
        assert_eq!(slope(&one, &[one.to_vec()], &values), None);
        assert_eq!(slope(&one[..3], &[other[..3].to_vec()], &values[..3]), None);
    }
}
