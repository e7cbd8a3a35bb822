//! How often a network may try passwords: as many as clients of one host begin at once, then one per second.
//! Who gave the right one has tried nothing.

use std::collections::HashMap;

use crate::limits::Source;

/// Tries that are looked at without a pause: iperf3's clients come one for each test.
const AT_ONCE: u64 = 16;
/// Time that each takes beyond: a password of eight small letters then takes thousands of years.
const PAUSE_NS: u64 = 1_000_000_000;
/// Longest wait for a turn, within what a client waits for its parameters to be taken.
const WAIT_NS_MAX: u64 = 5_000_000_000;
/// Networks that are kept in mind.
const NETWORKS_MAX: usize = 1024;

/// The tries of each network: until when they take all of its time.
#[derive(Debug, Default)]
pub(super) struct Attempts(HashMap<Source, u64>);

impl Attempts {
    /// Takes up a try at `now_ns`; returns when it may be looked at, and nothing where too many wait.
    pub(super) fn handle_try(&mut self, now_ns: u64, network: Source) -> Option<u64> {
        self.0.retain(|_, busy_ns| *busy_ns > now_ns);
        if self.0.len() == NETWORKS_MAX && !self.0.contains_key(&network) {
            let oldest = self.0.iter().min_by_key(|(_, busy_ns)| **busy_ns);
            let oldest = oldest.map(|(network, _)| *network);
            oldest.and_then(|network| self.0.remove(&network));
        }
        let busy_ns = self.0.get(&network).map_or(now_ns, |busy_ns| *busy_ns);
        let turn_ns = busy_ns.saturating_sub(AT_ONCE * PAUSE_NS - PAUSE_NS);
        let at_ns = turn_ns.max(now_ns);
        if at_ns - now_ns > WAIT_NS_MAX {
            return None;
        }
        self.0.insert(network, busy_ns + PAUSE_NS);
        Some(at_ns)
    }

    /// Notes that a try was the right one.
    pub(super) fn handle_right(&mut self, network: Source) {
        if let Some(busy_ns) = self.0.get_mut(&network) {
            *busy_ns -= PAUSE_NS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn network(last: u8) -> Source {
        Source::of([192, 0, 2, last].into())
    }

    #[test]
    fn wrong_passwords_are_paced_and_right_ones_are_not() {
        let mut attempts = Attempts::default();
        let mut now = 100 * S;
        for _ in 0..1000 {
            assert_eq!(attempts.handle_try(now, network(1)), Some(now));
            attempts.handle_right(network(1));
        }
        // As fast as it can: those of an hour are as many as it has seconds.
        let mut looked_at = 0;
        while now < 3700 * S {
            if let Some(at) = attempts.handle_try(now, network(1)) {
                looked_at += u64::from(at < 3700 * S);
            }
            now += S / 100;
        }
        assert!((3590..3620).contains(&looked_at), "{looked_at}");
        // Another network does not wait for it.
        assert_eq!(attempts.handle_try(now, network(2)), Some(now));
        for number in 0..100_000_u32 {
            let other = Source::of(std::net::Ipv4Addr::from_bits(number).into());
            attempts.handle_try(now, other);
        }
        assert!(attempts.0.len() <= NETWORKS_MAX);
    }
}
