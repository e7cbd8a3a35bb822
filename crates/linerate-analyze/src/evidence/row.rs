//! A fact as a row: its words, where it is read, the traffic that it is about, and how.

use std::collections::BTreeSet;

use super::reading::Reading;
use super::view::View;

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
    /// Several counters that only together say something.
    Patterns,
}

/// The traffic that facts are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
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
pub struct FactRow {
    /// Its name.
    pub id: &'static str,
    /// What it says, as the end of a sentence that begins with "it is known that".
    pub words: &'static str,
    /// Where it is read.
    pub source: Source,
    pub(super) of: Of,
    pub(super) read: fn(&View<'_>) -> Reading,
}

impl FactRow {
    /// Reads it.
    pub fn read(&self, view: &View<'_>) -> Reading {
        if self.of.has(view) {
            view.read(self.read)
        } else {
            Reading::Moot
        }
    }
}

impl FactRow {
    /// Returns the responses that it is read from.
    pub(crate) fn responses(&self, view: &View<'_>) -> BTreeSet<String> {
        view.responses(self.read)
    }
}
