//! A sender lets others have its CPU between calls.
//!
//! Where a receiver shares the CPU of its sender, as over loopback with whole flows on a CPU, payload
//! should be received while it is in the cache. A sender that goes on until its peer's buffer is full
//! has pushed out of the cache what it sent first: ten copying flows made 63 Gbit/s in a bare loop
//! without yielding, 102 with (medians of 7 interleaved runs, calls of 1 MiB; of 512 KiB the same, of
//! 256 KiB 84).
//!
//! Where no thread waits for the CPU, yielding is a system call of 0.2 µs for each 40 µs of copying. Where
//! another program computes, it would have the CPU for its whole slice each time; so a sender that
//! was away for long does not yield again until that has become a small share of the time.

use std::time::Duration;

use crate::sys::clock::now_ns;

/// Payload after which a worker yields: half of what the second-level cache of a server's core has.
const GIVE_BYTES: usize = 512 << 10;
/// How long receivers may need for what is under way: 1 MiB takes 0.1 ms, and schedulers' slices
/// begin at 0.7 ms.
const AWAY_MAX_NS: u64 = 500_000;
/// A yield that took so long gave the CPU to another thread: the system call alone takes 0.2 µs.
const GIVEN_NS: u64 = 3_000;
/// How long a worker rests after its first call: a hundred of others on its CPU make theirs.
const FIRST_REST_NS: u64 = 1_000_000;
/// How many times as long as it was away a sender then keeps its CPU: it loses 3 % at the most.
const KEEP_TIMES: u64 = 32;

/// When a worker yields.
#[derive(Debug)]
pub(crate) struct CpuYield {
    /// When counting begins.
    begin_ns: u64,
    sent_bytes: usize,
    /// The clock when it was last asked whether to yield.
    latest_ns: u64,
    /// Until when it does not.
    keeps_until_ns: u64,
    /// How often it did, and how often another thread had the CPU then.
    yields: u32,
    given: u32,
}

impl CpuYield {
    /// Returns one that rests after its first call, unless it would do so in the window that begins at `begin_ns`: of senders
    /// that are to begin at the same instant on one CPU each other begins a call later, not a slice of the scheduler, which
    /// is 3 ms.
    pub(crate) fn before(begin_ns: u64) -> Self {
        Self {
            begin_ns,
            sent_bytes: GIVE_BYTES,
            latest_ns: 0,
            keeps_until_ns: 0,
            yields: 0,
            given: 0,
        }
    }

    /// Lets other senders begin. A yield would let threads of the same scheduling group go by (sched(7), autogroup), and
    /// those of other agents not. It says nothing of receivers.
    fn rest(&mut self) {
        if self.latest_ns + FIRST_REST_NS < self.begin_ns {
            std::thread::sleep(Duration::from_nanos(FIRST_REST_NS));
        }
    }

    /// Notes that a call sent so many bytes, and yields if that makes enough.
    ///
    /// Cost: an addition and a compare; each 512 KiB two clock readings and the system call, 250 ns.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
        if self.sent_bytes >= GIVE_BYTES {
            self.sent_bytes = 0;
            if self.latest_ns == 0 {
                self.latest_ns = now_ns();
                self.rest();
            } else {
                self.give(now_ns, std::thread::yield_now);
            }
        }
    }

    fn give(&mut self, now_ns: impl Fn() -> u64, yield_cpu: impl FnOnce()) {
        let began_ns = now_ns();
        self.latest_ns = began_ns;
        if began_ns < self.keeps_until_ns {
            return;
        }
        yield_cpu();
        self.latest_ns = now_ns();
        let away_ns = self.latest_ns.saturating_sub(began_ns);
        self.yields = self.yields.saturating_add(1);
        self.given += u32::from(away_ns >= GIVEN_NS);
        if away_ns > AWAY_MAX_NS {
            self.keeps_until_ns = began_ns + away_ns * (KEEP_TIMES + 1);
        }
    }

    /// Returns the clock as of the last 512 KiB, 0 before: later than the last tick where much is sent.
    pub(super) fn latest_ns(&self) -> u64 {
        self.latest_ns
    }

    /// Returns whether most of its yields gave the CPU to another thread: receivers share it.
    pub(crate) fn is_shared(&self) -> bool {
        self.given > self.yields / 2
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_sender_that_was_away_for_long_keeps_its_cpu_for_a_while() {
        let (now_ns, gave) = (Cell::new(1_000_000_000), Cell::new(0));
        let mut way = CpuYield::before(0);
        // Yields where somebody takes the CPU for so long; returns how often it has yielded so far.
        let mut give = |at_ns: u64, takes_ns: u64| {
            now_ns.set(at_ns);
            way.give(
                || now_ns.get(),
                || {
                    gave.set(gave.get() + 1);
                    now_ns.set(now_ns.get() + takes_ns);
                },
            );
            gave.get()
        };
        assert_eq!(give(1_000_000_000, 100_000), 1, "receivers need their time");
        assert_eq!(give(1_000_200_000, 4_000_000), 2);
        assert_eq!(give(1_004_300_000, 0), 2, "somebody else computes here");
        assert_eq!(give(1_132_100_000, 0), 2);
        assert_eq!(give(1_132_200_000, 0), 3, "after 33 times 4 ms");
        assert_eq!(give(1_132_300_000, 0), 4);
        assert!(!way.is_shared(), "two of four gave it to somebody");
        assert_eq!(way.latest_ns(), 1_132_300_000);
        way.give(|| now_ns.get(), || now_ns.set(now_ns.get() + 100_000));
        assert!(way.is_shared());
    }

    #[test]
    fn small_calls_yield_as_rarely_as_large_ones() {
        let mut way = CpuYield::before(0);
        way.sent(1);
        assert!(way.latest_ns() > 0, "others begin, too");
        for _ in 1..GIVE_BYTES / 128 {
            way.sent(128);
        }
        assert_eq!(way.yields, 0);
        way.sent(128);
        assert_eq!(way.yields, 1);
    }
}
