//! What may hold a number: a catalogue, one row a cause.
//!
//! A row says which traffic a cause can hold, which facts show it (without any of them it is not named) and which facts rule it
//! out. Both are physics: a window that is not waited for holds nothing, and where nothing arrives there is no rate. What each
//! other fact is worth for or against it is counted, not said here: `weights.tsv` is written by `bench fit` from the fitting
//! half of the corpus (docs/decisions/0021).

/// What can be changed, and what that does.
pub mod toggle;

use linerate_model::limiter::Limiter;
use linerate_model::workload::Workload;

/// The traffic that a cause may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// Streams over TCP.
    Stream,
    /// Exchanges.
    Exchange,
    /// Streams of datagrams.
    Datagrams,
}

impl Traffic {
    /// Returns what the traffic of `workload` is.
    pub fn of(workload: &Workload) -> Self {
        if workload.traffic.is_transactional() {
            Self::Exchange
        } else if workload.manner.transport.is_tcp() {
            Self::Stream
        } else {
            Self::Datagrams
        }
    }
}

/// What may hold a number.
pub struct Cause {
    /// Its name; what is before a dot it has in common with its kin.
    pub id: &'static str,
    /// The limiter that it is told as, if there is one.
    pub limiter: Option<Limiter>,
    /// What it may hold.
    pub of: &'static [Traffic],
    /// Facts of which one holds where it does.
    pub shown_by: &'static [&'static str],
    /// Facts of which none holds where it does.
    pub excluded_by: &'static [&'static str],
}

macro_rules! causes {
    ($($id:literal $limiter:expr, [$($of:ident)*] shown by [$($shown:literal)*] excluded by [$($excluded:literal)*];)*) => {
        /// All causes.
        pub const CAUSES: &[Cause] = &[$(Cause {
            id: $id,
            limiter: $limiter,
            of: &[$(Traffic::$of,)*],
            shown_by: &[$($shown,)*],
            excluded_by: &[$($excluded,)*],
        },)*];
    };
}

causes! {
    // Where a rate that was asked for is reached, nothing else holds the number.

    // The path.
    "path-rate" Some(Limiter::PathRate), [Stream Datagrams]
        shown by ["queue" "queued-always" "steady" "line-between-changes" "fills-link" "datagrams-lost" "path-is-full" "link-is-full" "datagrams-pass-a-rate"]
        excluded by ["sends-nothing" "reaches-asked"];
    "own-qdisc" Some(Limiter::PathRate), [Stream Datagrams]
        shown by ["qdisc-shapes" "waits-in-qdisc" "qdisc-drops" "lost-at-sender" "path-is-full" "datagrams-wait"] excluded by ["sends-nothing" "reaches-asked"];
    "own-qdisc.drops" Some(Limiter::HostDrops), [Stream]
        shown by ["qdisc-drops" "host-drops"] excluded by ["sends-nothing" "reaches-asked"];
    "policer" Some(Limiter::PathRate), [Stream Datagrams]
        shown by ["loses" "datagrams-lost" "datagrams-pass-a-rate"] excluded by ["sends-nothing" "reaches-asked"];
    "other-traffic" Some(Limiter::PathRate), [Stream]
        shown by ["others-send" "queue" "queued-always" "loses" "path-is-full"] excluded by ["sends-nothing" "reaches-asked"];
    "queue" Some(Limiter::RoundTrip), [Exchange]
        shown by ["queue" "queue-is-trip"] excluded by ["reaches-asked" "path-is-full-of-exchanges"];
    "queue.always" Some(Limiter::PathRate), [Exchange]
        shown by ["path-is-full-of-exchanges"] excluded by ["reaches-asked"];
    "host-drops" Some(Limiter::HostDrops), [Stream]
        shown by ["host-drops" "device-drops" "backlog-drops" "receiver-drops"] excluded by ["sends-nothing" "reaches-asked"];
    "ack-path" None, [Stream]
        shown by ["few-acks" "acks-lost" "data-arrived" "uneven"] excluded by ["sends-nothing" "reaches-asked" "steal-much"];
    "mtu-hole" Some(Limiter::NothingArrives), [Stream Exchange Datagrams]
        shown by ["sends-nothing" "nothing-comes"] excluded by ["window-closed"];

    // TCP at the ends.
    "receiver-window.buffer" Some(Limiter::ReceiverWindow), [Stream Exchange]
        shown by ["fills-window" "waits-for-window" "window-holds" "window-holds-messages"] excluded by ["window-allows-more" "reaches-asked"];
    "receiver-window.cap" Some(Limiter::ReceiverWindow), [Stream Exchange]
        shown by ["fills-window" "waits-for-window" "window-holds" "window-holds-messages"] excluded by ["window-allows-more" "buffer-set" "reaches-asked"];
    "receiver-window.route" Some(Limiter::ReceiverWindow), [Stream Exchange]
        shown by ["fills-window" "waits-for-window" "window-holds" "window-holds-messages"] excluded by ["window-allows-more" "buffer-set" "reaches-asked"];
    "receiver-window.unscaled" Some(Limiter::ReceiverWindow), [Stream Exchange]
        shown by ["unscaled" "window-holds"] excluded by ["window-allows-more" "reaches-asked"];
    "receiver-window.untuned" Some(Limiter::ReceiverWindow), [Stream Exchange]
        shown by ["untuned" "window-holds"] excluded by ["window-allows-more" "buffer-set" "reaches-asked"];
    "send-buffer.cap" Some(Limiter::SendBuffer), [Stream Exchange]
        shown by ["waits-for-buffer-some" "fills-buffer" "buffer-explains" "buffer-holds"] excluded by ["buffer-set" "reaches-asked"];
    "congestion-window.random-loss" Some(Limiter::CongestionWindow), [Stream]
        shown by ["loses" "losses-hold"] excluded by ["fills-link" "reaches-asked"];
    "congestion-window.queue-loss" Some(Limiter::CongestionWindow), [Stream]
        shown by ["loses" "losses-hold"] excluded by ["fills-link" "reaches-asked"];
    "lossy-lane" Some(Limiter::CongestionWindow), [Stream]
        shown by ["loses" "losses-hold"] excluded by ["fills-link" "reaches-asked"];
    "no-sack" Some(Limiter::CongestionWindow), [Stream]
        shown by ["no-sack" "losses-hold"] excluded by ["reaches-asked"];
    "reordering" Some(Limiter::CongestionWindow), [Stream]
        shown by ["reorders" "spurious" "losses-hold"] excluded by ["fills-link" "reaches-asked"];
    "ecn-marks" Some(Limiter::CongestionWindow), [Stream]
        shown by ["marks" "losses-hold"] excluded by ["reaches-asked"];
    "slow-start" Some(Limiter::CongestionWindow), [Exchange]
        shown by ["exceeds-initial-window"] excluded by ["reaches-asked"];
    "slow-start.after-idle" Some(Limiter::CongestionWindow), [Exchange]
        shown by ["exceeds-initial-window"] excluded by ["reaches-asked"];
    "timeouts" Some(Limiter::Timeouts), [Exchange]
        shown by ["timers-of-exchanges" "slow-is-trip" "loses-often" "loses-exchanges" "waits-for-timers"] excluded by ["reaches-asked"];
    "nagle-delayed-ack" Some(Limiter::NagleDelayedAck), [Exchange]
        shown by ["acks-wait" "nagle-waits"] excluded by ["reaches-asked"];
    "listen-backlog" Some(Limiter::Timeouts), [Exchange]
        shown by ["listener-drops"] excluded by ["reaches-asked"];

    // Programs.
    "slow-reader" Some(Limiter::SlowReader), [Stream]
        shown by ["unread-some" "window-closed" "reader-late" "reader-is-behind"] excluded by ["reaches-asked" "steal-much"];
    "pausing-writer" Some(Limiter::Application), [Stream]
        shown by ["idle" "pauses" "application-limited" "stalls" "writer-pauses"] excluded by ["reaches-asked" "steal-much"];
    "server-thinks" Some(Limiter::Application), [Exchange]
        shown by ["rest-is-trip" "rest-is-long" "has-tail" "mean-is-tail" "answers-late"] excluded by ["reaches-asked" "exceeds-initial-window"];
    "round-trip" Some(Limiter::RoundTrip), [Exchange]
        shown by ["path-is-trip" "work-is-trip" "queue-is-trip" "wait-is-trip" "trip-holds"] excluded by ["reaches-asked" "sends-nothing" "path-is-full-of-exchanges"];
    "pacing.asked" Some(Limiter::Pacing), [Stream Exchange Datagrams]
        shown by ["rate-is-kept" "pause-is-kept"] excluded by [];
    "pacing.socket" Some(Limiter::Pacing), [Stream Exchange]
        shown by ["rate-is-kept"] excluded by [];
    "pacing.own" Some(Limiter::Pacing), [Stream]
        shown by ["tcp-paces"] excluded by ["reaches-asked"];
    "random-loss" Some(Limiter::Pacing), [Datagrams]
        shown by ["rate-is-kept"] excluded by [];
    "fragments" Some(Limiter::Pacing), [Datagrams]
        shown by ["rate-is-kept"] excluded by [];
    "udp-buffer" Some(Limiter::Pacing), [Datagrams]
        shown by ["rate-is-kept"] excluded by [];

    // CPUs.
    "cpu" Some(Limiter::Cpu), [Stream Exchange Datagrams]
        shown by ["worker-runs" "worker-wants" "cpus-full" "worker-cpus-full" "worker-cpu-full" "interrupts-much" "cpus-are-full" "one-cpu-is-full" "worker-is-full" "exchanges-wait-for-cpu" "few-cpus-are-full"] excluded by ["reaches-asked"];
    "offloads" Some(Limiter::Cpu), [Stream Exchange Datagrams]
        shown by ["worker-runs" "worker-wants" "cpus-full" "worker-cpus-full" "worker-cpu-full" "interrupts-much"] excluded by ["reaches-asked"];
    "pinned" Some(Limiter::Cpu), [Stream Exchange Datagrams]
        shown by ["worker-waits" "worker-cpus-full" "cpus-are-full" "waits-next-to-idle" "few-cpus-are-full"] excluded by ["cpus-full" "reaches-asked"];
    "other-programs" Some(Limiter::OtherPrograms), [Stream Exchange Datagrams]
        shown by ["others-run" "others-are-in-the-way" "exchanges-wait-for-cpu" "others-fill-cpus"] excluded by ["reaches-asked"];
    "cpu-quota" Some(Limiter::CpuQuota), [Stream Exchange Datagrams]
        shown by ["throttled" "quota-throttles" "waits-next-to-idle" "exchanges-wait-for-cpu"] excluded by ["reaches-asked"];
}

/// Returns the place of a cause in [`CAUSES`].
pub fn place(id: &str) -> Option<usize> {
    CAUSES.iter().position(|cause| cause.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::evidence;

    #[test]
    fn names_are_unique_and_facts_are_known() {
        let names: BTreeSet<&str> = CAUSES.iter().map(|cause| cause.id).collect();
        assert_eq!(names.len(), CAUSES.len());
        for cause in CAUSES {
            for fact in cause.shown_by.iter().chain(cause.excluded_by) {
                assert!(evidence::place(fact).is_some(), "{}: {fact}", cause.id);
            }
        }
    }
}
