//! NetPIPE's schedule of message sizes.
//!
//! From the first size on, steps that double with every second size: 1, 2, 3, 4, 6, 8, 12, 16, 24
//! and so on, the powers of two and the middles between them. Each size is taken with its neighbours
//! three bytes below and above once a step is larger than four, so that what happens at a power of
//! two is told from what happens at an odd size (Snell, Mikler and Gustafson, "NetPIPE: A Network
//! Protocol Independent Performance Evaluator", 1996; the increments are those of NetPIPE 3 and 5).

use linerate_model::Bytes;

/// How far the neighbours of a size are away.
const PERTURBATION_BYTES: u64 = 3;

/// Returns the sizes from `first` to about `last`, ascending; a neighbour may lie above `last`.
///
/// `first` is at least 1.
pub(super) fn sizes(first: Bytes, last: Bytes) -> Vec<Bytes> {
    let mut sizes = Vec::new();
    let mut step = if first.0 > 1 { first.0 / 2 } else { 1 };
    let mut size = first.0;
    let mut number = 0_u32;
    while size <= last.0 {
        if number > 2 && number % 2 == 1 {
            step *= 2;
        }
        number += 1;
        if step > PERTURBATION_BYTES + 1 {
            let around = [size - PERTURBATION_BYTES, size, size + PERTURBATION_BYTES];
            sizes.extend(around.map(Bytes));
        } else {
            sizes.push(Bytes(size));
        }
        size += step;
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_is_netpipes() {
        let got: Vec<u64> = sizes(Bytes(1), Bytes(8 << 20))
            .iter()
            .map(|size| size.0)
            .collect();
        let begin = [
            1, 2, 3, 4, 6, 8, 12, 13, 16, 19, 21, 24, 27, 29, 32, 35, 45, 48, 51, 61, 64, 67, 93,
            96, 99, 125, 128, 131, 189, 192, 195, 253, 256, 259,
        ];
        assert_eq!(got[..begin.len()], begin);
        assert_eq!(got[got.len() - 3..], [8_388_605, 8_388_608, 8_388_611]);
        assert_eq!(got.len(), 124);
    }

    #[test]
    fn a_short_range_is_itself() {
        assert_eq!(sizes(Bytes(1), Bytes(1)), [Bytes(1)]);
        assert_eq!(sizes(Bytes(2), Bytes(4)), [2, 3, 4].map(Bytes));
    }
}
