//! Packets of a connection as they stand in a time-sequence plot, as long as there are few.

use linerate_model::sample::End;

use super::{FrameId, Half, Place, Verdict};
use crate::frame::Segment;

/// Packets of one connection that are drawn one by one; beyond it the timeline is drawn.
const POINTS_MAX: usize = 2000;

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlottedPacket {
    /// When it was captured, in nanoseconds since 1970.
    pub time_ns: u64,
    pub frame: Option<FrameId>,
    pub end: End,
    /// Its first sequence number, from the first of its end.
    pub sequence: u32,
    pub payload_bytes: u32,
    /// What it acknowledges, from the first number of the other end.
    pub acknowledged: Option<u32>,
    /// Up to where the other end may send after it, from the other's first number.
    pub window_edge: Option<u32>,
    pub verdict: Verdict,
}

/// The packets of a connection, or nothing any more if there were too many.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlottedPackets {
    points: Vec<PlottedPacket>,
    overflown: bool,
}

impl PlottedPackets {
    /// Adds one packet. `halves` are as they are after it.
    pub(crate) fn add(
        &mut self,
        halves: &[Half; 2],
        end: End,
        segment: &Segment,
        place: Place,
        (verdict, window_bytes): (Verdict, Option<u64>),
    ) {
        if self.overflown {
            return;
        }
        if self.points.len() == POINTS_MAX {
            self.overflown = true;
            self.points = Vec::new();
            return;
        }
        let (own, other) = (&halves[end as usize], &halves[end.other() as usize]);
        let acknowledged = (own.has_acknowledged() && other.is_seen())
            .then(|| own.acknowledged.wrapping_sub(other.first));
        self.points.push(PlottedPacket {
            time_ns: place.time_ns,
            frame: place.frame,
            end,
            sequence: segment.sequence.wrapping_sub(own.first),
            payload_bytes: segment.payload_bytes,
            acknowledged,
            window_edge: acknowledged
                .zip(window_bytes)
                .map(|(number, window)| number.wrapping_add(window as u32)),
            verdict,
        });
    }

    /// Returns the packets, unless there were too many.
    pub(crate) fn as_slice(&self) -> Option<&[PlottedPacket]> {
        (!self.overflown).then_some(&self.points[..])
    }
}
