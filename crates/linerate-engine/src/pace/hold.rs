//! Holds the exchanges of a trial to a rate: what its responders receive and send, all together.
//!
//! The kernel paces neither datagrams nor the first ten segments of a connection, and it paces each
//! direction for itself. So a responder waits before it answers, and its worker with it. Over connections
//! that holds its requester, which waits for the response. Requests by datagram would gather meanwhile and be
//! answered when nobody waits for that any more; so a requester that knows the rate keeps it as well.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::NS_PER_S;

/// Most bytes of one call over a connection that is held: so much goes ahead of its time.
pub(crate) const CALL_BYTES_MAX: usize = 64 << 10;
/// How far exchanges may be behind the rate and make up for it: that is as long as a busy host may keep a
/// thread waiting.
const LAG_NS: u64 = 20_000_000;
/// The rate of all workers, and how far it is used up; they write to it where there is one only.
#[derive(Debug)]
pub(crate) struct Hold {
    bits_per_s: u64,
    /// When the next call may be made.
    opens_ns: AtomicU64,
}

impl Hold {
    /// Returns what holds to a rate from `start_ns` on.
    pub(crate) fn new(bits_per_s: u64, start_ns: u64) -> Self {
        Self {
            bits_per_s: bits_per_s.max(1),
            opens_ns: AtomicU64::new(start_ns),
        }
    }

    /// Returns when the next call may be made.
    pub(crate) fn opens_ns(&self) -> u64 {
        self.opens_ns.load(Relaxed)
    }

    /// Notes at `now_ns` that so many `bytes` have moved; what was not used up long before is lost.
    pub(crate) fn take(&self, now_ns: u64, bytes: usize) {
        let bits = bytes as u128 * 8;
        let ns = (bits * u128::from(NS_PER_S)).div_ceil(u128::from(self.bits_per_s));
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        let least_ns = now_ns.saturating_sub(LAG_NS);
        // Cannot fail: there always is a next instant.
        let _ = self.opens_ns.fetch_update(Relaxed, Relaxed, |opens_ns| {
            Some(opens_ns.max(least_ns).saturating_add(ns))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn what_moves_is_the_rate_and_one_call_more_however_many_wait_for_it() {
        // 8 kbit/s are a byte each millisecond.
        let hold = Hold::new(8000, S);
        let (mut now_ns, mut moved) = (S, 0);
        while now_ns < 3 * S {
            for bytes in [100, 7] {
                now_ns = now_ns.max(hold.opens_ns());
                hold.take(now_ns, bytes);
                moved += bytes;
            }
        }
        assert!((2000..=2107).contains(&moved), "{moved}");
    }

    #[test]
    fn a_short_stall_is_made_up_for_and_a_long_one_is_not() {
        let opens_ns = |stall_ns| {
            let hold = Hold::new(8000, 0);
            hold.take(stall_ns, 10);
            hold.opens_ns()
        };
        assert_eq!(opens_ns(LAG_NS), 10_000_000);
        assert_eq!(opens_ns(S), S - LAG_NS + 10_000_000);
    }

    #[test]
    fn no_number_is_too_large() {
        let hold = Hold::new(0, 0);
        hold.take(0, usize::MAX);
        hold.take(u64::MAX, usize::MAX);
        assert_eq!(hold.opens_ns(), u64::MAX);
        let fast = Hold::new(u64::MAX, 0);
        fast.take(0, 1);
        assert_eq!(fast.opens_ns(), 1);
    }
}
