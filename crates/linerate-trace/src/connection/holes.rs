//! Ranges of sequence numbers that were not captured when later ones were.

use super::sequence::{after, distance};

/// Holes of one direction that are known at once; 96 bytes. The oldest is forgotten for a fifth.
const HOLES_MAX: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Hole {
    start: u32,
    end: u32,
    opened_ns: u64,
}

/// The holes of one direction, the oldest first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Holes {
    holes: [Hole; HOLES_MAX],
    count: u8,
}

impl Holes {
    /// Notes that `start..end` was jumped over.
    pub(crate) fn open(&mut self, start: u32, end: u32, opened_ns: u64) {
        if usize::from(self.count) == HOLES_MAX {
            self.remove(0);
        }
        self.holes[usize::from(self.count)] = Hole {
            start,
            end,
            opened_ns,
        };
        self.count += 1;
    }

    /// Fills `start..end`; returns when the hole that it lies in was opened, or nothing if all of
    /// it had been captured before.
    pub(crate) fn fill(&mut self, start: u32, end: u32) -> Option<u64> {
        let at = (0..usize::from(self.count)).find(|&at| {
            let hole = &self.holes[at];
            after(hole.end, start) && after(end, hole.start)
        })?;
        let hole = self.holes[at];
        let before = distance(hole.start, start) > 0;
        let behind = after(hole.end, end);
        match (before, behind) {
            (false, false) => self.remove(at),
            (false, true) => self.holes[at].start = end,
            (true, false) => self.holes[at].end = start,
            (true, true) => {
                self.holes[at].end = start;
                if usize::from(self.count) < HOLES_MAX {
                    self.open(end, hole.end, hole.opened_ns);
                }
            }
        }
        Some(hole.opened_ns)
    }

    fn remove(&mut self, at: usize) {
        self.holes.copy_within(at + 1.., at);
        self.count -= 1;
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
        assert_eq!(holes.count, 0);
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut holes = Holes::default();
        for at in 0..6u32 {
            holes.open(at * 100, at * 100 + 50, u64::from(at));
        }
        assert_eq!(holes.fill(100, 150), None);
        assert_eq!(holes.fill(500, 550), Some(5));
    }
}
