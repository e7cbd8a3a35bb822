//! What recordings say of hosts, paths and programs, in one vocabulary: some hundred facts.
//!
//! A fact is one row of [`FACTS`]: its name, the words for it, the counter that it is read from, and how. It is read of a
//! [`View`]: what one group of flows did in one trial, beside what is known of its set-up. What was not read is unread, and
//! speaks neither for a cause nor against it. What follows from facts is not said here.

/// The rows.
mod facts;
/// What is read of a fact.
pub mod reading;
/// What all trials of a cell have in common.
pub(crate) mod setup;
/// What facts are read from.
mod view;

use std::collections::BTreeSet;

use linerate_model::TrialId;
use linerate_model::run::Recording;

pub use facts::FACTS;
pub use reading::Reading;
pub use view::View;

use crate::dataset::{CellOutcomes, Dataset};
use setup::Setup;

/// Where a fact is read. Facts of one counter say the same thing twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// What the traffic is.
    Traffic,
    /// Settings of sockets and hosts.
    Settings,
    /// TCP's round trips.
    RoundTrip,
    /// How the round trip goes with what is in flight.
    Elasticity,
    /// How steady the rate is.
    Variation,
    /// Rates against the link's.
    Link,
    /// What others send.
    Others,
    /// Segments that were sent again.
    Losses,
    /// When they were lost.
    LossTimes,
    /// Segments that had arrived, or came in another order.
    Reordering,
    /// Retransmission timers.
    Timers,
    /// Marks of congestion.
    Marks,
    /// Drops inside the hosts.
    Drops,
    /// The sending host's queueing disciplines.
    Qdisc,
    /// The receiver's window.
    Window,
    /// What lies unread.
    Unread,
    /// The send buffer.
    SendBuffer,
    /// The congestion window.
    CongestionWindow,
    /// Time with data outstanding.
    Busy,
    /// What is delivered, against what is sent.
    Delivery,
    /// The rate that was asked for.
    Asked,
    /// The rate that TCP paces at.
    Pacing,
    /// What workers ran.
    Workers,
    /// What workers waited for a CPU.
    Waiting,
    /// What other programs had.
    OtherPrograms,
    /// How busy the CPUs were.
    Cpus,
    /// What a quota throttled.
    Quota,
    /// What the hypervisor took.
    Steal,
    /// Interrupts.
    Interrupts,
    /// Where the time of an exchange goes.
    Split,
    /// Delayed acknowledgements.
    DelayedAcks,
    /// Latencies beside the median.
    Tail,
    /// ACKs that come back.
    Acks,
    /// What became of datagrams.
    Datagrams,
    /// Calls and their sizes.
    Calls,
    /// The two halves of the window.
    Halves,
}

/// The traffic that facts are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// Any.
    Any,
    /// Whatever goes over TCP.
    Tcp,
    /// Streams over TCP.
    Stream,
    /// Streams of either.
    Bulk,
    /// Exchanges over TCP.
    Exchange,
    /// Streams of datagrams.
    Datagrams,
}

impl Of {
    fn has(self, view: &View<'_>) -> bool {
        let is_tcp = view.workload.manner.transport.is_tcp();
        match self {
            Self::Any => true,
            Self::Tcp => is_tcp,
            Self::Stream => is_tcp && view.is_stream(),
            Self::Bulk => view.is_stream(),
            Self::Exchange => is_tcp && view.is_exchange(),
            Self::Datagrams => view.is_udp() && view.is_stream(),
        }
    }
}

/// Something that may be known of what was measured.
pub struct Fact {
    /// Its name.
    pub id: &'static str,
    /// What it says, as the end of a sentence that begins with "it is known that".
    pub words: &'static str,
    /// Where it is read.
    pub source: Source,
    of: Of,
    read: fn(&View<'_>) -> Reading,
}

impl Fact {
    /// Reads it.
    pub fn read(&self, view: &View<'_>) -> Reading {
        if self.of.has(view) {
            view.read(self.read)
        } else {
            Reading::Moot
        }
    }
}

impl Fact {
    /// Returns the responses that it is read from.
    pub(crate) fn responses(&self, view: &View<'_>) -> BTreeSet<String> {
        view.responses(self.read)
    }
}

/// Returns the place of a fact in [`FACTS`].
pub fn place(id: &str) -> Option<usize> {
    FACTS.iter().position(|fact| fact.id == id)
}

/// Returns the readings of all facts, in the order of [`FACTS`], of each trial of a recording.
pub fn readings(recording: &Recording) -> Vec<(TrialId, Vec<Reading>)> {
    let dataset = Dataset::new(recording);
    let mut all = Vec::new();
    for cell in &dataset.cells {
        let failed = cell.of_invalid();
        let cell = failed.as_ref().unwrap_or(cell);
        for_each_view(&dataset, cell, |view| {
            let readings = FACTS.iter().map(|fact| fact.read(view));
            all.push((view.outcome.trial, readings.collect()));
        });
    }
    all
}

/// Hands the view of each valid trial of `cell` to `act`.
pub(crate) fn for_each_view(
    dataset: &Dataset<'_>,
    cell: &CellOutcomes<'_>,
    mut act: impl FnMut(&View<'_>),
) {
    let setup = Setup::of(dataset, cell);
    for outcome in &cell.valid {
        act(&View::new(outcome, &setup, &cell.workload));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<&str> = FACTS.iter().map(|fact| fact.id).collect();
        assert_eq!(names.len(), FACTS.len());
    }
}
