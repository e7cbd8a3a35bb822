//! The longest wait between two receive calls that moved payload, inside the measured window.

use crate::measure::Window;

/// Follows the arrivals of one flow.
///
/// Instants are moved into the window before they are compared, so that the wait from its begin
/// to the first arrival and from the last arrival to its end count, and nothing outside does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    window: Window,
    last_ns: u64,
    longest_ns: u64,
}

impl Gap {
    /// Returns a follower for `window`.
    pub(crate) fn new(window: Window) -> Self {
        Self {
            window,
            last_ns: window.begin_ns,
            longest_ns: 0,
        }
    }

    /// Takes note that payload arrived at `now_ns`; two compares and a subtraction, no branch.
    pub(crate) fn arrived(&mut self, now_ns: u64) {
        let at = now_ns.clamp(self.window.begin_ns, self.window.end_ns);
        self.longest_ns = self.longest_ns.max(at.saturating_sub(self.last_ns));
        self.last_ns = at;
    }

    /// Returns the longest wait, given that nothing more arrives up to `now_ns`.
    pub(crate) fn longest_ns(mut self, now_ns: u64) -> u64 {
        self.arrived(now_ns);
        self.longest_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arrivals: &[u64], end: u64, expect: u64) {
        let mut gap = Gap::new(Window {
            begin_ns: 100,
            end_ns: 200,
        });
        for &at in arrivals {
            gap.arrived(at);
        }
        assert_eq!(gap.longest_ns(end), expect, "{arrivals:?}, end {end}");
    }

    #[test]
    fn waits_inside_the_window_count() {
        check(&[110, 150, 190], 300, 40);
        check(&[50, 90, 110, 120, 190, 250], 300, 70);
    }

    #[test]
    fn the_edges_of_the_window_count_and_nothing_outside() {
        check(&[], 300, 100);
        check(&[10, 190], 300, 90);
        check(&[110, 120], 300, 80);
        check(&[0, 101, 150, 199, 5000], 6000, 49);
    }

    #[test]
    fn a_flow_that_is_stopped_inside_the_window_counts_up_to_then() {
        check(&[110, 120], 150, 30);
        check(&[], 50, 0);
    }
}
