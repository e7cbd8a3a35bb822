//! Segments that were sent and not acknowledged yet: round trips, and what was sent again.

use std::collections::VecDeque;

use super::FrameId;
use super::sequence::{after, distance};

/// Segments of one direction that are remembered; 32 KiB. Beyond it the oldest are forgotten:
/// they give no round trip, and a retransmission of one of them has no known first time.
const SEGMENTS_MAX: usize = 1024;

/// One segment on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub sequence: u32,
    /// The sequence number behind its last.
    pub end: u32,
    /// When it was sent last.
    pub time_ns: u64,
    /// The frame of its first sending.
    pub frame: Option<FrameId>,
    /// How often it was sent again.
    pub again: u16,
    /// The sender's timestamp of the last sending.
    pub stamp: u32,
}

/// What an acknowledgement said of the segments on their way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Acknowledged {
    /// The round trip of the segment that it acknowledged last, if it was sent once and ends
    /// where the acknowledgement does (Karn's rule, and no delay of a later segment's).
    pub round_trip_ns: Option<u64>,
    /// The first segment that it acknowledged, if that had been sent again.
    pub first_sent_again: Option<Sent>,
}

/// The segments of one direction that are on their way, in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outstanding {
    segments: VecDeque<Sent>,
}

impl Outstanding {
    /// Notes a segment that was sent for the first time.
    #[inline]
    pub(crate) fn note_sent(&mut self, segment: Sent) {
        if self.segments.len() == SEGMENTS_MAX {
            self.segments.pop_front();
        }
        self.segments.push_back(segment);
    }

    /// Notes that `sequence..end` was sent again at `time_ns` with `stamp`; returns what was
    /// known of its first segment before.
    pub(crate) fn note_sent_again(
        &mut self,
        sequence: u32,
        end: u32,
        time_ns: u64,
        stamp: u32,
    ) -> Option<Sent> {
        let mut first = None;
        for segment in &mut self.segments {
            if !after(segment.end, sequence) {
                continue;
            }
            if !after(end, segment.sequence) {
                break;
            }
            first = first.or(Some(*segment));
            segment.again = segment.again.saturating_add(1);
            segment.time_ns = time_ns;
            segment.stamp = stamp;
        }
        first
    }

    /// Takes away what `acknowledgement` acknowledges.
    #[inline]
    pub(crate) fn take_acknowledged(&mut self, acknowledgement: u32, time_ns: u64) -> Acknowledged {
        let mut said = Acknowledged::default();
        let mut is_first = true;
        while let Some(&segment) = self.segments.front() {
            if distance(segment.end, acknowledgement) < 0 {
                break;
            }
            self.segments.pop_front();
            if segment.again > 0 && is_first {
                said.first_sent_again = Some(segment);
            }
            is_first = false;
            said.round_trip_ns = (segment.end == acknowledgement && segment.again == 0)
                .then(|| time_ns.saturating_sub(segment.time_ns));
        }
        said
    }
}
