//! How often an expensive reading is made, so that it takes its share of a CPU and no more.
//!
//! 1. A reading's cost is the CPU time of the thread that makes it: netlink does the kernel's work
//!    inside the system call.
//! 2. The next one is made once a hundred times the cost has passed since the last began. The cost
//!    is smoothed, so that a single slow reading does not silence the observer.
//! 3. The edges of a measured window are read whatever it costs: a window without them is lost.

/// The share of one CPU that the readings may take: one in this many.
const SHARE: u64 = 100;

/// When the next reading is due.
#[derive(Debug, Default)]
pub(crate) struct Spacing {
    cost_ns: u64,
    last_ns: Option<u64>,
    skipped: u64,
    made: u64,
}

impl Spacing {
    /// Tells whether a reading is due at `now_ns`, and counts it.
    pub(crate) fn is_due(&mut self, now_ns: u64) -> bool {
        let due_ns = self.last_ns.map(|last_ns| last_ns + self.cost_ns * SHARE);
        // A tenth early is on time: ticks come a little before and after their instants.
        let slack_ns = self.cost_ns * SHARE / 10;
        let due = due_ns.is_none_or(|due_ns| now_ns + slack_ns >= due_ns);
        self.skipped += u64::from(!due);
        due
    }

    /// Takes note of a reading that began at `begin_ns` and took `cost_ns` of CPU time.
    pub(crate) fn handle_reading(&mut self, begin_ns: u64, cost_ns: u64) {
        self.cost_ns = match self.made {
            // The first reading sizes buffers and warms caches, and later ones are cheaper.
            0 | 1 => cost_ns,
            _ => (self.cost_ns * 3 + cost_ns) / 4,
        };
        self.last_ns = Some(begin_ns);
        self.made += 1;
    }

    /// Says how often readings were left out, if any were.
    pub(crate) fn note(&self) -> Option<String> {
        (self.skipped > 0).then(|| {
            format!(
                "one reading takes {} µs of CPU time, so {} of {} were left out to stay below \
                 1 % of a CPU",
                self.cost_ns / 1000,
                self.skipped,
                self.skipped + self.made
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Asks 100 times, every 100 ms, when each reading takes `cost_ns`; counts the readings.
    fn check(cost_ns: u64, expect: u64) {
        let mut spacing = Spacing::default();
        for tick in 0..100 {
            let now_ns = tick * 100 * MS;
            if spacing.is_due(now_ns) {
                spacing.handle_reading(now_ns, cost_ns);
            }
        }
        assert_eq!(spacing.made, expect, "{cost_ns} ns");
        assert_eq!(spacing.note().is_some(), expect < 100);
    }

    #[test]
    fn readings_take_a_hundredth_of_a_cpu() {
        check(MS / 2, 100);
        check(MS, 100);
        check(2 * MS, 50);
        check(5 * MS, 20);
        check(0, 100);
    }
}
