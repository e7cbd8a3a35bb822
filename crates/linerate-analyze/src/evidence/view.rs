//! What facts are read from: what one group of flows did in one trial, beside its set-up.

use std::cell::RefCell;
use std::collections::BTreeSet;

use linerate_model::manner::Transport;
use linerate_model::workload::Workload;

use super::reading::Reading;
use super::setup::Setup;
use crate::reduce::{Outcome, SCHEDULER_NS_MAX, Values, Way, lacks, name};

/// Share of the time, or of what there is, from which on it is most of it.
pub(crate) const MOST: f64 = 0.5;
/// Of the formula of Mathis, Semke, Mahdavi and Ott (CCR 27(3), 1997).
pub(crate) const MATHIS_CONSTANT: f64 = 1.22;

/// What one group of flows did in one trial.
pub struct View<'v> {
    pub(crate) outcome: &'v Outcome,
    pub(crate) setup: &'v Setup,
    pub(crate) workload: &'v Workload,
    /// Patterns of facts by name, as they are read of it.
    patterns: Vec<(&'static str, Reading)>,
    /// The responses that were asked for and read.
    asked: RefCell<BTreeSet<String>>,
}

impl Values for View<'_> {
    fn value(&self, response: &str) -> Option<f64> {
        let value = Values::value(self.outcome, response);
        if value.is_some() {
            self.asked.borrow_mut().insert(response.to_owned());
        }
        value
    }
}

/// Returns the segments that were lost: sent again, less those that had arrived; where none was sent again, none had.
pub(crate) fn lost(values: &impl Values) -> Option<f64> {
    let again = values.value(name::RETRANSMITTED)?;
    let needless = if again > 0.0 {
        values.value(name::SPURIOUS)?
    } else {
        0.0
    };
    Some((again - needless).max(0.0))
}

impl<'v> View<'v> {
    pub(super) fn new(
        outcome: &'v Outcome,
        setup: &'v Setup,
        workload: &'v Workload,
        patterns: Vec<(&'static str, Reading)>,
    ) -> Self {
        Self {
            outcome,
            setup,
            workload,
            patterns,
            asked: RefCell::default(),
        }
    }

    /// Returns the responses that `fact` is read from.
    pub(super) fn responses(&self, fact: fn(&View<'_>) -> Reading) -> BTreeSet<String> {
        self.read(fact);
        self.asked.take()
    }

    /// Reads a fact: what has nothing to tell since something was not read is unread.
    pub(super) fn read(&self, fact: fn(&View<'_>) -> Reading) -> Reading {
        self.asked.borrow_mut().clear();
        match lacks(|| fact(self)) {
            (Reading::Moot, true) => Reading::Unread,
            (reading, _) => reading,
        }
    }
}

impl View<'_> {
    /// Returns what was read of a pattern.
    pub(super) fn pattern(&self, name: &str) -> Reading {
        let mut own = self.patterns.iter().filter(|(other, _)| *other == name);
        own.next().map_or(Reading::Moot, |(_, reading)| *reading)
    }

    pub(super) fn is_stream(&self) -> bool {
        self.workload.traffic.is_stream()
    }

    pub(super) fn is_exchange(&self) -> bool {
        self.workload.traffic.is_transactional()
    }

    pub(super) fn is_udp(&self) -> bool {
        self.workload.manner.transport == Transport::Udp
    }

    /// Returns one response over another.
    pub(super) fn over(&self, one: &str, other: &str) -> Option<f64> {
        let other = self.value(other).filter(|other| *other > 0.0)?;
        Some(self.value(one)? / other)
    }

    /// Returns the rate of a stream that carries something.
    pub(super) fn rate(&self) -> Option<f64> {
        self.value(name::THROUGHPUT).filter(|rate| *rate > 0.0)
    }

    /// Returns the smoothed round trip, and the shortest that any trial saw of these hosts.
    fn trips(&self) -> Option<(f64, f64)> {
        let loaded = [name::TCP_RTT, name::PATH_RTT_LOADED];
        let loaded = loaded.into_iter().find_map(|name| self.value(name))?;
        let shortest = self
            .setup
            .shortest_ns()
            .or_else(|| self.value(name::PATH_RTT))?;
        Some((loaded, shortest))
    }

    /// Returns the smoothed round trip over the shortest, to each of which what a scheduler may add is added.
    pub(super) fn trip_quotient(&self) -> Option<f64> {
        let (loaded, shortest) = self.trips()?;
        Some((loaded + SCHEDULER_NS_MAX) / (shortest + SCHEDULER_NS_MAX))
    }

    /// Returns what the smoothed round trip has above the shortest.
    pub(super) fn above_ns(&self) -> Option<f64> {
        let (loaded, shortest) = self.trips()?;
        Some((loaded - shortest).max(0.0))
    }

    /// Returns the rate that `bytes` of each flow in each of its shortest round trips make, over that which there is.
    pub(super) fn ceiling(&self, bytes: f64) -> Option<f64> {
        Some(bytes * 8.0 * self.setup.turns_per_s()? / self.rate()?)
    }

    /// Returns the share of the segments that was lost.
    pub(super) fn lost_share(&self) -> Option<f64> {
        let sent = self.value(name::SEGMENTS_SENT).filter(|sent| *sent > 0.0)?;
        Some(lost(self)? / sent)
    }

    /// Returns the rate that so much loss allows, over that which there is.
    pub(super) fn loss_ceiling(&self) -> Option<f64> {
        let share = self.lost_share().filter(|share| *share > 0.0)?;
        self.ceiling(MATHIS_CONSTANT / share.sqrt() * self.value(name::SEND_MSS)?)
    }

    /// Returns how much of its congestion window is in flight.
    pub(super) fn congestion_filled(&self) -> Option<f64> {
        let window = self.value(name::CWND)? * self.value(name::SEND_MSS)?;
        Some(self.value(name::IN_FLIGHT)? / window)
    }

    /// Returns a part of the mean round trip of exchanges, as a share of it.
    pub(super) fn part(&self, part: &str) -> Option<f64> {
        self.over(part, name::RTT_MEAN)
    }

    /// Returns the share of the mean round trip that the path takes, as often as an exchange passes it.
    pub(super) fn path_part(&self) -> Option<f64> {
        Some(Way::of(self.workload).trips() * self.part(name::PATH_RTT)?)
    }

    /// Returns the share of the mean round trip that a queue takes.
    pub(super) fn queue_part(&self) -> Option<f64> {
        let above = self.value(name::PATH_RTT_LOADED)? - self.value(name::PATH_RTT)?;
        let mean = self.value(name::RTT_MEAN).filter(|mean| *mean > 0.0)?;
        Some(Way::of(self.workload).trips() * above.max(0.0) / mean)
    }

    /// Returns the share of the mean round trip that nothing explains.
    pub(super) fn rest_part(&self) -> Option<f64> {
        let known = [
            self.path_part()?,
            self.part(name::RTT_CPU_WAIT)?,
            self.part(name::RTT_WORKERS)?,
            self.value(name::RTT_SLOW)
                .map_or(Some(0.0), |_| self.part(name::RTT_SLOW))?,
            self.queue_part()?,
        ];
        Some((1.0 - known.iter().sum::<f64>()).max(0.0))
    }

    /// Returns the share of the lost datagrams that `place` lost.
    pub(super) fn lost_at(&self, place: &str) -> Option<f64> {
        let sent = self.value(name::DATAGRAMS_SENT)?;
        let missing = sent - self.value(name::DATAGRAMS_RECEIVED)?;
        if missing < 1.0 {
            return Some(0.0);
        }
        Some(self.value(place)? / missing)
    }
}
