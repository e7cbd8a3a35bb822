//! What several connections have in a queue at the same time.

/// Connections that are told apart; of more the slowest are left out.
const SHARES_MAX: usize = 64;

/// What one connection has in a queue while it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueShare {
    /// When its first data was sent.
    pub begin_ns: u64,
    /// When its last was.
    pub end_ns: u64,
    /// What waits.
    pub bytes: u64,
    /// What goes through.
    pub bits_per_second: u64,
}

/// Adds `others` to `shares`; of too many the fastest stay.
pub(super) fn join(shares: &mut Vec<QueueShare>, others: Vec<QueueShare>) {
    shares.extend(others);
    if shares.len() > SHARES_MAX {
        shares.sort_by_key(|share| std::cmp::Reverse(share.bits_per_second));
        shares.truncate(SHARES_MAX);
    }
}

/// Returns the bytes that wait and the bits per second that go through while most do: of the connections that
/// send at the same time, each has its part in the queue; one after the other they have it in turn.
pub(super) fn most_at_once(shares: &[QueueShare]) -> (u64, u64) {
    let at = |instant_ns: u64| {
        let sending = shares
            .iter()
            .filter(|share| (share.begin_ns..=share.end_ns).contains(&instant_ns));
        sending.fold((0, 0), |(bytes, rate): (u64, u64), share| {
            (
                bytes.saturating_add(share.bytes),
                rate.saturating_add(share.bits_per_second),
            )
        })
    };
    // More begin to send only where one begins.
    let sums = shares.iter().map(|share| at(share.begin_ns));
    sums.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(begin_ns: u64, end_ns: u64, bytes: u64) -> QueueShare {
        QueueShare {
            begin_ns,
            end_ns,
            bytes,
            bits_per_second: 8 * bytes,
        }
    }

    #[test]
    fn those_that_send_at_the_same_time_are_added() {
        let shares = [share(0, 10, 100), share(5, 20, 200), share(15, 30, 250)];
        assert_eq!(most_at_once(&shares), (450, 3600));
        assert_eq!(most_at_once(&shares[..2]), (300, 2400));
        assert_eq!(most_at_once(&[shares[0], shares[2]]), (250, 2000));
        assert_eq!(most_at_once(&[]), (0, 0));
    }

    #[test]
    fn of_too_many_the_fastest_stay() {
        let mut shares = Vec::new();
        for bytes in 1..=100 {
            join(&mut shares, vec![share(0, 1, bytes)]);
        }
        assert_eq!(shares.len(), SHARES_MAX);
        assert_eq!(most_at_once(&shares).0, (37..=100).sum::<u64>());
    }
}
