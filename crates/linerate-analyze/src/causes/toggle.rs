//! What can be changed in one run without a right on the hosts, and what that does to the number if a limiter holds it.
//!
//! The table is what a limiter is, said of the change before anybody makes it: twice as many flows have twice the windows, and
//! the same path. A dash is what nobody can say: more flows beside other programs have more of the CPUs, or not.

use linerate_model::limiter::Limiter;
use linerate_model::manner::{ReceiveBy, Transport};
use linerate_model::workload::{FLOWS_MAX, Workload};

/// A change of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toggle {
    /// Twice as many flows.
    Flows,
    /// Large socket buffers, or none set where they were.
    Buffers,
    /// Another congestion control.
    Congestion,
    /// Nagle's algorithm off.
    NoDelay,
    /// No rate of our own.
    Unpaced,
    /// The receiver's kernel throws payload away.
    Discard,
    /// Small segments.
    Segments,
}

/// What a change does to the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It grows, by as much as nothing else holds it.
    Grows,
    /// It stays.
    Stays,
}

use Effect::{Grows, Stays};
use Toggle::{Buffers, Congestion, Discard, Flows, NoDelay, Segments, Unpaced};

impl Toggle {
    /// All of them, those first that tell most apart and cost least.
    pub const ALL: [Self; 7] = [
        Flows, Buffers, Congestion, NoDelay, Unpaced, Discard, Segments,
    ];

    /// Returns what it does to a number that `limiter` holds, where that follows from what the limiter is.
    pub fn effect(self, limiter: Limiter) -> Option<Effect> {
        let row = match limiter {
            Limiter::LinkRate | Limiter::PathRate => [
                Some(Stays),
                Some(Stays),
                None,
                Some(Stays),
                Some(Stays),
                Some(Stays),
                None,
            ],
            Limiter::ReceiverWindow | Limiter::SendBuffer => [
                Some(Grows),
                Some(Grows),
                Some(Stays),
                Some(Stays),
                Some(Stays),
                Some(Stays),
                Some(Stays),
            ],
            Limiter::CongestionWindow => [
                Some(Grows),
                Some(Stays),
                Some(Grows),
                Some(Stays),
                Some(Stays),
                Some(Stays),
                None,
            ],
            Limiter::SlowReader => [
                None,
                Some(Stays),
                Some(Stays),
                Some(Stays),
                Some(Stays),
                None,
                Some(Stays),
            ],
            Limiter::Application => [
                None,
                Some(Stays),
                Some(Stays),
                Some(Stays),
                Some(Stays),
                Some(Stays),
                Some(Stays),
            ],
            Limiter::HostDrops => [None, None, None, Some(Stays), Some(Stays), None, None],
            Limiter::Pacing => [
                Some(Grows),
                Some(Stays),
                Some(Stays),
                Some(Stays),
                Some(Grows),
                Some(Stays),
                Some(Stays),
            ],
            Limiter::Generator => [
                Some(Grows),
                None,
                None,
                Some(Stays),
                Some(Stays),
                None,
                None,
            ],
            Limiter::Cpu => [
                None,
                None,
                None,
                Some(Stays),
                Some(Stays),
                Some(Grows),
                None,
            ],
            Limiter::OtherPrograms | Limiter::CpuQuota => {
                [None, None, None, Some(Stays), Some(Stays), None, None]
            }
            Limiter::RoundTrip => [
                Some(Grows),
                Some(Stays),
                Some(Stays),
                Some(Stays),
                Some(Stays),
                Some(Stays),
                Some(Stays),
            ],
            Limiter::NagleDelayedAck => [
                Some(Grows),
                Some(Stays),
                Some(Stays),
                Some(Grows),
                Some(Stays),
                Some(Stays),
                Some(Stays),
            ],
            Limiter::Timeouts => [
                Some(Grows),
                Some(Stays),
                None,
                None,
                Some(Stays),
                None,
                None,
            ],
            Limiter::NothingArrives => [None, None, None, None, None, None, Some(Grows)],
        };
        row[Self::ALL.iter().position(|one| *one == self)?]
    }

    /// Returns the flags that make the change of `workload`, where it can be made of it.
    pub fn flags(self, workload: &Workload) -> Option<String> {
        let is_tcp = workload.manner.transport == Transport::Tcp;
        let is_stream = workload.traffic.is_stream();
        let more = workload.connections.saturating_mul(2);
        match self {
            Flows => (more <= FLOWS_MAX).then(|| format!("-P {more}")),
            Buffers if !is_tcp => None,
            Buffers if workload.options.socket_buffer.is_some() => Some("no -w".to_owned()),
            Buffers => Some("-w 4M".to_owned()),
            Congestion if !is_tcp => None,
            Congestion if workload.options.congestion.as_deref() == Some("bbr") => {
                Some("-C cubic".to_owned())
            }
            Congestion => Some("-C bbr".to_owned()),
            NoDelay => (is_tcp && workload.options.nagle != Some(false)).then(|| "-N".to_owned()),
            Unpaced => {
                let is_paced =
                    workload.manner.rate_bps.is_some() || workload.options.pacing_bps.is_some();
                is_paced.then(|| "no rate".to_owned())
            }
            Discard => (is_tcp && is_stream && workload.manner.receive == ReceiveBy::Copy)
                .then(|| "--rx discard".to_owned()),
            Segments => is_tcp.then(|| "-M 1208".to_owned()),
        }
    }

    /// Returns the first that `workload` may be changed by and that does different things to a number held by `one` and by
    /// `other`, with its flags and what it does to each.
    pub fn separating(
        one: Limiter,
        other: Limiter,
        workload: &Workload,
    ) -> Option<(String, [Effect; 2])> {
        Self::ALL.into_iter().find_map(|toggle| {
            let effects = [toggle.effect(one)?, toggle.effect(other)?];
            (effects[0] != effects[1]).then_some(())?;
            Some((toggle.flags(workload)?, effects))
        })
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::workload::Direction;

    use super::*;

    #[test]
    fn a_window_and_a_path_differ_by_more_flows() {
        let workload = Workload::stream(Direction::ToServer);
        let separating = Toggle::separating(Limiter::ReceiverWindow, Limiter::PathRate, &workload);
        assert_eq!(separating, Some(("-P 2".to_owned(), [Grows, Stays])));
        // Each of them has twice as much with twice the flows: a larger buffer helps but one.
        let separating = Toggle::separating(
            Limiter::ReceiverWindow,
            Limiter::CongestionWindow,
            &workload,
        );
        assert_eq!(separating, Some(("-w 4M".to_owned(), [Grows, Stays])));
    }
}
