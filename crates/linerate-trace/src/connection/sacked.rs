//! Ranges of the other end's data that an end acknowledged selectively (RFC 2018): what arrived there.
//!
//! It may drop them again from its memory (reneging, section 8 of the RFC). That shows where it acknowledges a
//! number inside of such a range: with the rest of it there it had acknowledged that as well.

use super::Place;
use super::sequence::{after, distance};

/// Ranges that are known at once; an acknowledgement tells four at the most.
const RANGES_MAX: usize = 16;

/// The ranges of one end, those told last behind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sacked {
    ranges: Vec<(u32, u32)>,
    /// The last acknowledgement that told of one.
    told: Option<Place>,
    /// What was taken back, until its sender knows it.
    taken_back: Option<Box<TakenBack>>,
    /// Up to where it was.
    taken_back_to: Option<u32>,
}

/// What an end took back.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakenBack {
    /// The acknowledgement that told that it was there.
    pub told: Place,
    /// The one that shows that it is not.
    pub acknowledged: Place,
    pub bytes: u32,
}

impl Sacked {
    /// Notes that `start..end` is there.
    #[cold]
    pub(super) fn note(&mut self, (start, end): (u32, u32), place: Place) {
        let mut all = (start, end);
        self.ranges.retain(|&(start, end)| {
            let touches = distance(start, all.1) >= 0 && distance(all.0, end) >= 0;
            if touches {
                all.0 = if after(all.0, start) { start } else { all.0 };
                all.1 = if after(end, all.1) { end } else { all.1 };
            }
            !touches
        });
        if self.ranges.len() == RANGES_MAX {
            self.ranges.remove(0);
        }
        self.ranges.push(all);
        self.told = Some(place);
    }

    /// Returns whether all of `start..end` was there.
    pub(super) fn covers(&self, start: u32, end: u32) -> bool {
        let covers = |range: &(u32, u32)| distance(range.0, start) >= 0 && !after(end, range.1);
        self.ranges.iter().any(covers)
    }

    /// Forgets what is below `acknowledgement`, and finds what that shows to have been taken back.
    #[inline]
    pub(super) fn handle_advance(&mut self, acknowledgement: u32, place: Place) {
        if !self.ranges.is_empty() {
            self.forget(acknowledgement, place);
        }
    }

    #[cold]
    fn forget(&mut self, acknowledgement: u32, place: Place) {
        self.ranges.retain(|range| after(range.1, acknowledgement));
        let known = self.taken_back_to;
        self.taken_back_to = known.filter(|&to| after(to, acknowledgement));
        let inside = |range: &&mut (u32, u32)| !after(range.0, acknowledgement);
        let Some(range) = self.ranges.iter_mut().find(inside) else {
            return;
        };
        range.0 = acknowledgement;
        if let (Some(told), None) = (self.told, self.taken_back_to) {
            self.taken_back_to = Some(range.1);
            self.taken_back = Some(Box::new(TakenBack {
                told,
                acknowledged: place,
                bytes: range.1.wrapping_sub(acknowledgement),
            }));
        }
    }

    /// Returns whether `sequence` lies in what was taken back.
    pub(super) fn is_taken_back(&self, sequence: u32) -> bool {
        self.taken_back_to.is_some_and(|to| after(to, sequence))
    }

    /// Hands over what was taken back, once.
    pub(super) fn take_taken_back(&mut self) -> Option<TakenBack> {
        self.taken_back.take().map(|taken| *taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ns: u64) -> Place {
        Place {
            time_ns,
            frame: None,
        }
    }

    #[test]
    fn ranges_grow_together() {
        let mut sacked = Sacked::default();
        sacked.note((u32::MAX - 9, 10), at(1));
        sacked.note((30, 40), at(2));
        assert!(sacked.covers(u32::MAX - 9, 10) && !sacked.covers(0, 31));
        sacked.note((10, 30), at(3));
        assert!(sacked.covers(u32::MAX, 40));
    }

    #[test]
    fn what_is_acknowledged_in_part_was_taken_back() {
        let mut sacked = Sacked::default();
        sacked.note((100, 200), at(1));
        sacked.handle_advance(50, at(2));
        assert!(sacked.take_taken_back().is_none());
        sacked.handle_advance(100, at(3));
        let taken = sacked.take_taken_back().expect("taken back");
        assert_eq!(
            (taken.told, taken.acknowledged, taken.bytes),
            (at(1), at(3), 100)
        );
        assert!(sacked.is_taken_back(150));
        sacked.handle_advance(150, at(4));
        assert!(sacked.take_taken_back().is_none());
        sacked.handle_advance(200, at(5));
        assert!(!sacked.is_taken_back(150) && !sacked.covers(150, 160));
    }
}
