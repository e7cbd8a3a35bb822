//! Ranges of sequence numbers that were not captured when later ones were.

use super::sequence::{after, distance};

/// Holes of one direction that are known at once; 8 KiB at the most. Beyond them the two
/// oldest become one, with what lies between them.
const HOLES_MAX: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hole {
    start: u32,
    end: u32,
    opened_ns: u64,
}

/// How far behind what is acknowledged a hole is forgotten: long before its numbers come round.
const FAR: i32 = 1 << 30;

/// The holes of one direction; most have none, and take a word.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holes(Option<Box<Kept>>);

/// Holes, the oldest first.
#[derive(Debug, Clone, Default)]
struct Kept {
    open: Vec<Hole>,
    /// Those that were reached and are forgotten.
    reached: u32,
}

impl Holes {
    /// Notes that `start..end` was jumped over.
    #[cold]
    pub(crate) fn open(&mut self, start: u32, end: u32, opened_ns: u64) {
        let open = &mut self.0.get_or_insert_default().open;
        if open.len() >= HOLES_MAX {
            let oldest = open.remove(0);
            let next = &mut open[0];
            if after(next.start, oldest.start) {
                next.start = oldest.start;
            }
        }
        open.push(Hole {
            start,
            end,
            opened_ns,
        });
    }

    /// Fills `start..end`; returns when the oldest hole that it touches was opened, or nothing if
    /// all of it had been captured before.
    pub(crate) fn fill(&mut self, start: u32, end: u32) -> Option<u64> {
        let open = &mut self.0.as_mut()?.open;
        let mut opened_ns: Option<u64> = None;
        let mut at = 0;
        while let Some(&hole) = open.get(at) {
            if !after(hole.end, start) || !after(end, hole.start) {
                at += 1;
                continue;
            }
            opened_ns = Some(opened_ns.map_or(hole.opened_ns, |ns| ns.min(hole.opened_ns)));
            let before = distance(hole.start, start) > 0;
            let behind = after(hole.end, end);
            match (before, behind) {
                (false, false) => {
                    open.remove(at);
                    continue;
                }
                (false, true) => open[at].start = end,
                (true, false) => open[at].end = start,
                // There is no room for a hole more: what lies between stays one.
                (true, true) if open.len() >= HOLES_MAX => {}
                (true, true) => {
                    open[at].end = start;
                    open.insert(at + 1, Hole { start: end, ..hole });
                    at += 1;
                }
            }
            at += 1;
        }
        opened_ns
    }

    /// Counts and forgets the holes that lie far behind what is acknowledged.
    #[inline]
    pub(crate) fn retire(&mut self, acknowledged: u32) {
        let oldest = self.0.as_ref().and_then(|kept| kept.open.first());
        if oldest.is_some_and(|hole| distance(hole.end, acknowledged) > FAR) {
            self.retire_far(acknowledged);
        }
    }

    #[cold]
    fn retire_far(&mut self, acknowledged: u32) {
        let Some(kept) = &mut self.0 else { return };
        let reached = &mut kept.reached;
        kept.open.retain(|hole| {
            let is_far = distance(hole.end, acknowledged) > FAR;
            *reached += u32::from(is_far);
            !is_far
        });
    }

    /// Returns how many holes `acknowledged` has reached all the same: what they miss arrived, so the capture lost
    /// it.
    pub(crate) fn acknowledged(&self, acknowledged: u32) -> u32 {
        let Some(kept) = &self.0 else { return 0 };
        let is_reached = |hole: &&Hole| !after(hole.end, acknowledged);
        kept.reached + kept.open.iter().filter(is_reached).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_in_parts() {
        let mut holes = Holes::default();
        holes.open(u32::MAX - 99, 300, 7);
        assert_eq!(holes.fill(300, 400), None);
        assert_eq!(holes.fill(0, 100), Some(7));
        assert_eq!(holes.fill(0, 100), None);
        assert_eq!(holes.fill(u32::MAX - 99, 0), Some(7));
        assert_eq!(holes.fill(50, 300), Some(7));
        assert!(holes.0.as_ref().expect("holes").open.is_empty());
    }

    #[test]
    fn the_oldest_become_one() {
        let mut holes = Holes::default();
        for at in 0..=HOLES_MAX as u32 {
            holes.open(at * 100, at * 100 + 50, u64::from(at));
        }
        assert_eq!(holes.0.as_ref().expect("holes").open.len(), HOLES_MAX);
        assert_eq!(holes.fill(0, 50), Some(1));
        assert_eq!(holes.fill(100, 150), Some(1));
        assert_eq!(holes.fill(500, 550), Some(5));
        assert_eq!(holes.fill(500, 550), None);
    }

    #[test]
    fn they_stay_within_their_limit_when_they_are_split() {
        let mut holes = Holes::default();
        for at in 0..HOLES_MAX as u32 {
            holes.open(at * 100, at * 100 + 50, u64::from(at));
        }
        assert_eq!(holes.fill(25_010, 25_020), Some(250));
        for at in 1000..2000 {
            holes.open(at * 100, at * 100 + 50, u64::from(at));
        }
        assert_eq!(holes.0.as_ref().expect("holes").open.len(), HOLES_MAX);
    }

    #[test]
    fn those_far_behind_stay_counted() {
        let mut holes = Holes::default();
        holes.open(100, 200, 0);
        for step in 1..=8u32 {
            holes.retire(step.wrapping_mul(1 << 29));
        }
        assert_eq!(holes.fill(100, 200), None);
        assert_eq!(holes.acknowledged(50), 1);
    }

    #[test]
    fn what_was_acknowledged_was_not_lost() {
        let mut holes = Holes::default();
        holes.open(100, 200, 0);
        holes.open(300, 450, 0);
        assert_eq!(holes.acknowledged(200), 1);
        assert_eq!(holes.acknowledged(500), 2);
    }
}
