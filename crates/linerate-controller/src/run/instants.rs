//! The instants of a trial, on the controller's clock and on every host's.

use linerate_agent::api::StartRequest;
use linerate_model::experiment::Timing;
use linerate_model::run::ClockFit;

/// Notice between the start requests and the start, beyond round trips, for each host: a request,
/// its threads and their memory take 1 ms on an idle host, and hosts may be namespaces that share
/// CPUs. An agent that is late all the same starts at once; what that costs is told as start skew.
const NOTICE_NS_PER_HOST: u64 = 3_000_000;
/// The same where every host answers as fast as this machine's loopback, so that a request costs
/// its work alone; 5 ms less that a run of one second takes beyond it.
const NOTICE_NS_PER_NEAR_HOST: u64 = 500_000;
/// Uncertainty of the clock of a near host, at the most. A request over loopback takes 200 µs there
/// and back on an idle machine, over a switch and from a busy host more.
const NEAR_NS: u64 = 150_000;
/// Notice for each flow: workers make their sockets ready, which takes 2 µs a flow with two CPUs.
const NOTICE_NS_PER_FLOW: u64 = 10_000;
/// Longest notice; a host farther away than this is not worth starting in step.
const NOTICE_NS_MAX: u64 = 5_000_000_000;

/// The instants of a trial on the controller's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instants {
    /// Flows begin.
    pub start_ns: u64,
    /// Counting begins.
    pub begin_ns: u64,
    /// Counting ends.
    pub end_ns: u64,
    /// Senders stop.
    pub stop_ns: u64,
    /// How much two of the hosts' clocks may differ from these.
    pub skew_ns: u64,
}

/// Returns the instants of a trial whose start requests go out at `now_ns`.
///
/// Each start request costs a round trip to its host, at most twice its clock's uncertainty; four
/// of them leave room for a connection that must be opened anew.
/// `patience` multiplies what is not the clocks': hosts that were late are given more time.
pub(super) fn instants(
    now_ns: u64,
    timing: &Timing,
    clocks: &[ClockFit],
    flows: u32,
    patience: u64,
) -> Instants {
    let slowest = clocks
        .iter()
        .map(|clock| clock.uncertainty_ns)
        .max()
        .unwrap_or(0);
    let per_host = if slowest <= NEAR_NS {
        NOTICE_NS_PER_NEAR_HOST
    } else {
        NOTICE_NS_PER_HOST
    };
    let notice = slowest
        .saturating_mul(8)
        .saturating_add(patience * per_host * clocks.len() as u64)
        .saturating_add(patience * NOTICE_NS_PER_FLOW * u64::from(flows))
        .min(NOTICE_NS_MAX);
    let start_ns = now_ns + notice.max(timing.settle.0);
    let begin_ns = start_ns + timing.warm_up.0;
    let end_ns = begin_ns + timing.measure.0;
    Instants {
        start_ns,
        begin_ns,
        end_ns,
        stop_ns: end_ns + timing.drain.0,
        skew_ns: 2 * slowest.min(NOTICE_NS_MAX),
    }
}

impl Instants {
    /// Returns instants for two trials that go on at the same time, each of which has asked for some.
    pub(super) fn of_both(self, other: Self) -> Self {
        let (first, last) = if self.begin_ns <= other.begin_ns {
            (self, other)
        } else {
            (other, self)
        };
        Self {
            start_ns: first.start_ns.max(last.start_ns),
            skew_ns: first.skew_ns.max(last.skew_ns),
            ..last
        }
    }

    /// Returns the same instants on a host's clock.
    pub(super) fn on_host(&self, clock: &ClockFit) -> StartRequest {
        let shift = |at: u64| at.saturating_add_signed(clock.offset_ns);
        StartRequest {
            start_ns: shift(self.start_ns),
            measure_begin_ns: shift(self.begin_ns),
            measure_end_ns: shift(self.end_ns),
            stop_ns: shift(self.stop_ns),
            skew_ns: self.skew_ns,
            trigger: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::Nanos;

    use super::*;

    #[test]
    fn instants_follow_the_phases_on_every_clock() {
        let timing = Timing {
            settle: Nanos::from_ms(50),
            warm_up: Nanos::from_ms(200),
            measure: Nanos::from_ms(500),
            drain: Nanos::from_ms(10),
        };
        let near = ClockFit {
            offset_ns: 1_000,
            uncertainty_ns: 10_000,
            drift_ppb: None,
        };
        let far = ClockFit {
            offset_ns: -7,
            uncertainty_ns: 100_000_000,
            drift_ppb: None,
        };
        let at = instants(1_000_000, &timing, &[near], 100, 1);
        assert_eq!(at.start_ns, 51_000_000, "settle is the longer notice");
        assert_eq!(at.stop_ns - at.start_ns, 710_000_000);
        assert_eq!(at.on_host(&near).measure_begin_ns, at.begin_ns + 1_000);
        let at = instants(0, &timing, &[near, far], 1000, 1);
        assert_eq!(
            at.start_ns, 816_000_000,
            "eight times the uncertainty, twice 3 ms, a thousand times 10 µs"
        );
        assert_eq!(at.on_host(&far).start_ns, 815_999_993);
        let at = instants(0, &timing, &[near, far], 1000, 8);
        assert_eq!(at.start_ns, 928_000_000);
        let at = instants(
            0,
            &Timing {
                settle: Nanos(0),
                ..timing
            },
            &[near, near],
            1,
            1,
        );
        assert_eq!(
            at.start_ns, 1_090_000,
            "eight times the uncertainty, twice 0.5 ms, 10 µs"
        );
    }
}
