//! Segments that were sent and not acknowledged yet: round trips, and what was sent again.

use std::collections::VecDeque;

use super::sequence::{after, distance};
use super::{FrameId, Place};
use crate::frame::Segment;

/// Segments of one direction that are remembered; 40 KiB. Beyond it neighbours are joined by twos, and those
/// that follow are joined as far: what is joined gives a round trip where its last is acknowledged, and its
/// first frame as proof, so that all of a long flight is measured alike.
const SEGMENTS_MAX: usize = 1024;

/// Two to the power of this are joined at the most.
const JOINED_MAX: u8 = 12;

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
    /// Its payload, as it was sent last.
    pub bytes: u16,
    /// The sender's timestamp of the last sending.
    pub stamp: u32,
    /// The identification of its packet, as it was sent last.
    pub identification: u16,
}

impl Sent {
    /// Returns what `segment` sends from `sequence` on, up to `end`.
    #[inline]
    pub(crate) fn of(segment: &Segment, place: Place, (sequence, end): (u32, u32)) -> Self {
        Self {
            sequence,
            end,
            time_ns: place.time_ns,
            frame: place.frame,
            again: 0,
            bytes: u16::try_from(segment.payload_bytes).unwrap_or(u16::MAX),
            stamp: segment.timestamps.map_or(0, |stamps| stamps.value),
            identification: segment.identification,
        }
    }

    /// Returns when it was sent last, with the frame of its first sending.
    pub(crate) fn place(&self) -> Place {
        Place {
            time_ns: self.time_ns,
            frame: self.frame,
        }
    }

    fn is_followed_by(&self, other: &Self) -> bool {
        self.end == other.sequence && self.again == other.again
    }

    fn joined(&self, other: &Self) -> Self {
        Self {
            sequence: self.sequence,
            frame: self.frame,
            bytes: self.bytes.max(other.bytes),
            ..*other
        }
    }
}

/// What an acknowledgement said of the segments on their way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Acknowledged {
    /// The round trip of the segment that it acknowledged last, if it was sent once and ends
    /// where the acknowledgement does (Karn's rule, and no delay of a later segment's).
    pub round_trip_ns: Option<u64>,
    /// The first segment that it acknowledged, if that had been sent again.
    pub first_sent_again: Option<Sent>,
    /// The most payload of one segment that it acknowledged.
    pub bytes_max: u32,
    /// From where to where, and how many segments, that were sent again less than half the way ago.
    pub too_soon: Option<(u32, u32, u32)>,
}

/// The segments of one direction that are on their way, in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outstanding {
    segments: VecDeque<Sent>,
    /// Two to the power of this are joined.
    joined: u8,
    /// How many the last has.
    last: u16,
}

impl Outstanding {
    /// Notes a segment that was sent for the first time.
    ///
    /// It is made by `sent` behind the decision where it goes: made before, it would be stored, and loaded again
    /// wider than it was just stored.
    #[inline]
    pub(crate) fn note_sent(&mut self, sent: impl Fn() -> Sent) {
        if self.joined > 0 || self.segments.len() == SEGMENTS_MAX {
            self.note_sent_crowded(&sent());
        } else {
            self.segments.push_back(sent());
            self.last = 1;
        }
    }

    /// The same where segments are or will be joined.
    #[cold]
    fn note_sent_crowded(&mut self, segment: &Sent) {
        if self.joined > 0 && self.join_last(segment) {
            return;
        }
        if self.segments.len() == SEGMENTS_MAX {
            self.thin_out();
        }
        self.segments.push_back(*segment);
        self.last = 1;
    }

    /// Joins a segment with the last, if it belongs to it.
    fn join_last(&mut self, segment: &Sent) -> bool {
        if self.segments.len() < SEGMENTS_MAX / 4 {
            self.joined -= 1;
        }
        let is_full = self.last >= 1 << self.joined;
        let last = self.segments.back_mut();
        let last = last.filter(|last| !is_full && last.is_followed_by(segment));
        let Some(last) = last else { return false };
        *last = last.joined(segment);
        self.last += 1;
        true
    }

    /// Joins neighbours by twos.
    #[cold]
    fn thin_out(&mut self) {
        let mut kept = 0;
        let mut at = 0;
        while at < self.segments.len() {
            let one = self.segments[at];
            let other = self.segments.get(at + 1).copied();
            let other = other.filter(|other| one.is_followed_by(other));
            self.segments[kept] = other.map_or(one, |other| one.joined(&other));
            kept += 1;
            at += 1 + usize::from(other.is_some());
        }
        self.segments.truncate(kept);
        self.joined = (self.joined + 1).min(JOINED_MAX);
        self.last = 1 << self.joined;
        if kept == SEGMENTS_MAX {
            self.segments.pop_front();
        }
    }

    /// Returns the segment that begins at `sequence`, if it is on its way.
    pub(crate) fn at(&self, sequence: u32) -> Option<&Sent> {
        let at = self
            .segments
            .partition_point(|segment| after(sequence, segment.sequence));
        self.segments
            .get(at)
            .filter(|segment| segment.sequence == sequence)
    }

    /// Returns the most payload of one segment on its way that `is_it`.
    pub(crate) fn bytes_max(&self, is_it: impl Fn(&Sent) -> bool) -> u32 {
        let its = self.segments.iter().filter(|sent| is_it(sent));
        its.map(|sent| sent.bytes.into()).max().unwrap_or(0)
    }

    /// Notes that `again` was sent again; returns what was known of its first segment before.
    pub(crate) fn note_sent_again(&mut self, again: &Sent) -> Option<Sent> {
        let (sequence, end) = (again.sequence, again.end);
        let bytes = u16::try_from(distance(sequence, end)).unwrap_or(u16::MAX);
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
            segment.bytes = segment.bytes.min(bytes);
            segment.time_ns = again.time_ns;
            segment.stamp = again.stamp;
            segment.identification = again.identification;
        }
        first
    }

    /// Takes away what `acknowledgement` acknowledges.
    #[inline]
    pub(crate) fn take_acknowledged(
        &mut self,
        acknowledgement: u32,
        time_ns: u64,
        leg_ns: u64,
    ) -> Acknowledged {
        let mut said = Acknowledged::default();
        let mut is_first = true;
        while let Some(&segment) = self.segments.front() {
            if distance(segment.end, acknowledgement) < 0 {
                break;
            }
            self.segments.pop_front();
            said.bytes_max = said.bytes_max.max(u32::from(segment.bytes));
            if segment.again == 1 && time_ns.saturating_sub(segment.time_ns) < leg_ns / 2 {
                let (sequence, _, count) = said.too_soon.unwrap_or((segment.sequence, 0, 0));
                said.too_soon = Some((sequence, segment.end, count + 1));
            }
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
