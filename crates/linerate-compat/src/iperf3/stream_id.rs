//! Numbers of streams.

use serde::Serialize;

/// The number of a stream, by which both ends match their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct StreamId(pub u32);

impl StreamId {
    /// Returns the number of the stream that was opened at place `index`, from 0.
    ///
    /// 1, 3, 4, 5, …: there has never been a stream 2, and both ends count so.
    pub fn of(index: usize) -> Self {
        let index = u32::try_from(index).unwrap_or(u32::MAX - 2);
        StreamId(if index == 0 { 1 } else { index + 2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_is_left_out() {
        let ids: Vec<u32> = (0..5).map(|at| StreamId::of(at).0).collect();
        assert_eq!(ids, [1, 3, 4, 5, 6]);
    }
}
