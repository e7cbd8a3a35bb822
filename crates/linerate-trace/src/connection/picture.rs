//! A connection as it is drawn: over time in columns that widen as it goes on, so that a second and a day
//! take the same memory, and each column keeps what a pixel of its picture shows.

use linerate_model::sample::End;

use super::sequence::distance;
use super::{Half, Place, Verdict};
use crate::frame::Segment;

/// Columns of one connection at the most; a picture is some hundred pixels wide.
const COLUMNS_MAX: usize = 256;
/// The width that columns begin with.
const WIDTH_NS_MIN: u64 = 1000;

/// What one end did in one column; numbers are bytes from the first of their direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ColumnEnd {
    /// What it sent first: the least number and the one behind the largest.
    pub sent: Option<(i64, i64)>,
    /// What it sent again.
    pub again: Option<(i64, i64)>,
    /// What it acknowledged last of the other's.
    pub acknowledged: Option<i64>,
    /// What it acknowledged selectively of the other's.
    pub selective: Option<(i64, i64)>,
    /// Up to where the other may send.
    pub edge: Option<i64>,
    /// The most that it had on its way.
    pub flight_bytes: Option<u32>,
    /// The shortest and the longest round trip of its data.
    pub trip_ns: Option<(u64, u64)>,
    /// Payload, that sent again included.
    pub payload_bytes: u64,
}

/// One column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    /// When its first packet was captured, since the connection's first.
    pub at_ns: u64,
    /// The client's, then the server's.
    pub ends: [ColumnEnd; 2],
}

/// The picture of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    start_ns: u64,
    /// How wide each column is, in nanoseconds.
    pub width_ns: u64,
    pub columns: Vec<Column>,
    /// The numbers behind wrapping: the last of each end, as it stands and from its first.
    last: [Option<(u32, i64)>; 2],
}

/// A packet, with what is known behind it.
pub(crate) struct Drawn<'a> {
    pub halves: &'a [Half; 2],
    pub end: End,
    pub segment: &'a Segment,
    pub place: Place,
    pub verdict: Verdict,
    pub window_bytes: Option<u64>,
    /// The round trip that it ended.
    pub trip_ns: Option<u64>,
}

impl Picture {
    pub(crate) fn new(start_ns: u64) -> Self {
        Self {
            start_ns,
            width_ns: WIDTH_NS_MIN,
            columns: Vec::new(),
            last: [None; 2],
        }
    }

    /// Adds one packet.
    pub(crate) fn add(&mut self, drawn: &Drawn<'_>) {
        let (end, other) = (drawn.end, drawn.end.other());
        let segment = drawn.segment;
        let (own, peer) = (&drawn.halves[end as usize], &drawn.halves[other as usize]);
        let elapsed_ns = drawn.place.time_ns.saturating_sub(self.start_ns);
        let sent = (segment.payload_bytes > 0).then(|| {
            let from = self.number(end, own.first, segment.sequence);
            (from, from + i64::from(segment.payload_bytes))
        });
        let is_known = own.has_acknowledged() && peer.is_seen();
        let acknowledged = is_known.then(|| self.number(other, peer.first, own.acknowledged));
        let selective = segment
            .sack
            .as_slice()
            .iter()
            .filter(|_| is_known)
            .map(|block| {
                let from = self.number(other, peer.first, block.0);
                (from, from + i64::from(distance(block.0, block.1).max(0)))
            })
            .reduce(joined);
        let flight = distance(peer.acknowledged, own.next);
        let column = &mut self.column(elapsed_ns).ends;
        let of_own = &mut column[end as usize];
        if drawn.verdict.any(Verdict::RETRANSMISSION) {
            of_own.again = join(of_own.again, sent);
        } else {
            of_own.sent = join(of_own.sent, sent);
        }
        of_own.payload_bytes += u64::from(segment.payload_bytes);
        of_own.acknowledged = of_own.acknowledged.max(acknowledged);
        of_own.selective = join(of_own.selective, selective);
        let edge = acknowledged.zip(drawn.window_bytes);
        of_own.edge = of_own
            .edge
            .max(edge.map(|(number, window)| number + window as i64));
        if peer.has_acknowledged() {
            of_own.flight_bytes = of_own.flight_bytes.max(Some(flight.max(0) as u32));
        }
        let of_other = &mut column[other as usize];
        if let Some(trip_ns) = drawn.trip_ns {
            let (least, most) = of_other.trip_ns.unwrap_or((trip_ns, trip_ns));
            of_other.trip_ns = Some((least.min(trip_ns), most.max(trip_ns)));
        }
    }

    /// Returns the number behind wrapping, near the last of its end.
    fn number(&mut self, end: End, first: u32, sequence: u32) -> i64 {
        let last = self.last[end as usize].get_or_insert((first, 0));
        let number = last.1 + i64::from(distance(last.0, sequence));
        if number > last.1 {
            *last = (sequence, number);
        }
        number
    }

    fn column(&mut self, elapsed_ns: u64) -> &mut Column {
        // Clocks that are set back stay in the last column.
        let elapsed_ns = elapsed_ns.max(self.columns.last().map_or(0, |last| last.at_ns));
        let is_new = |picture: &Self| {
            let width_ns = picture.width_ns;
            let last = picture.columns.last();
            last.is_none_or(|last| last.at_ns / width_ns != elapsed_ns / width_ns)
        };
        if is_new(self) && self.columns.len() == COLUMNS_MAX {
            self.widen();
        }
        if is_new(self) {
            self.columns.push(Column {
                at_ns: elapsed_ns,
                ends: [ColumnEnd::default(); 2],
            });
        }
        let last = self.columns.len() - 1;
        &mut self.columns[last]
    }

    /// Doubles the width until half of the columns are free.
    #[cold]
    fn widen(&mut self) {
        while self.columns.len() > COLUMNS_MAX / 2 {
            self.width_ns = self.width_ns.saturating_mul(2);
            let width_ns = self.width_ns;
            self.columns.dedup_by(|later, kept| {
                let is_same = later.at_ns / width_ns == kept.at_ns / width_ns;
                if is_same {
                    kept.ends[0].join(&later.ends[0]);
                    kept.ends[1].join(&later.ends[1]);
                }
                is_same
            });
        }
    }
}

impl ColumnEnd {
    fn join(&mut self, later: &Self) {
        self.sent = join(self.sent, later.sent);
        self.again = join(self.again, later.again);
        self.acknowledged = self.acknowledged.max(later.acknowledged);
        self.selective = join(self.selective, later.selective);
        self.edge = self.edge.max(later.edge);
        self.flight_bytes = self.flight_bytes.max(later.flight_bytes);
        self.trip_ns = match (self.trip_ns, later.trip_ns) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
        self.payload_bytes += later.payload_bytes;
    }
}

fn join(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(joined(one, other)),
        (one, other) => one.or(other),
    }
}

fn joined(one: (i64, i64), other: (i64, i64)) -> (i64, i64) {
    (one.0.min(other.0), one.1.max(other.1))
}
