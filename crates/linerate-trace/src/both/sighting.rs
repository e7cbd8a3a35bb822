//! Segments as one capture saw them, by connection.

use std::collections::HashMap;

use linerate_model::sample::End;

use crate::capture::{CaptureError, Reader};
use crate::connection::{Endpoint, FrameId, Offer, Verdict};
use crate::frame::{Flags, Parts, Segment};
use crate::tracker::Handled;
use crate::{Trace, Tracker};

use super::way::{Course, Way};
use super::{Joined, Passing};

/// Segments of one capture that are kept to be joined; 56 bytes each.
const SIGHTINGS_MAX: usize = 2_000_000;

/// One segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sighting {
    pub time_ns: u64,
    pub frame: u64,
    pub end: End,
    pub sequence: u32,
    /// The sequence space that it takes.
    pub length: u32,
    pub payload_bytes: u32,
    pub acknowledgement: u32,
    pub stamp: Option<u32>,
    pub identification: u16,
    pub window: u16,
    pub flags: Flags,
    pub hop_limit: u8,
    pub congestion_marked: bool,
}

/// What is kept of a segment or a datagram.
pub(crate) trait Sighted: Copy {
    /// Returns who sent it.
    fn end(&self) -> End;

    /// Returns what the second capture saw with ends and numbers as the first has them.
    fn as_first(&self, joined: &Joined) -> Self;

    /// Returns what became of what one end sent.
    fn way(course: &Course<'_, Self>) -> Way;
}

impl Sighted for Sighting {
    fn end(&self) -> End {
        self.end
    }

    fn as_first(&self, joined: &Joined) -> Self {
        joined.as_first(self)
    }

    fn way(course: &Course<'_, Self>) -> Way {
        Way::of(course)
    }
}

/// One connection, or conversation over UDP, as a capture saw it.
#[derive(Debug)]
pub(crate) struct SeenFlow<S> {
    pub number: u32,
    /// Client and server.
    pub ends: [Endpoint; 2],
    /// What their SYNs offered, and their first sequence numbers.
    pub offers: [Option<(Offer, u32)>; 2],
    pub sightings: Vec<S>,
}

pub(crate) type SeenConnection = SeenFlow<Sighting>;
pub(crate) type SeenConversation = SeenFlow<Passing>;

/// All of one kind, by their numbers.
struct Kept<S> {
    flows: Vec<SeenFlow<S>>,
    places: HashMap<u32, usize>,
}

impl<S> Kept<S> {
    fn new() -> Self {
        Self {
            flows: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// Returns the one with `number`, of which `end` sent something from the first of `between` to the second.
    fn flow(
        &mut self,
        number: u32,
        end: End,
        between: impl FnOnce() -> [Endpoint; 2],
    ) -> &mut SeenFlow<S> {
        let at = *self.places.entry(number).or_insert_with(|| {
            let [source, target] = between();
            self.flows.push(SeenFlow {
                number,
                ends: match end {
                    End::Client => [source, target],
                    End::Server => [target, source],
                },
                offers: [None; 2],
                sightings: Vec::new(),
            });
            self.flows.len() - 1
        });
        &mut self.flows[at]
    }
}

/// A capture that is to be joined with another.
#[derive(Debug)]
pub struct Seen {
    /// What it comes to by itself.
    pub trace: Trace,
    pub(crate) connections: Vec<SeenConnection>,
    pub(crate) conversations: Vec<SeenConversation>,
    /// Segments and datagrams that were not kept.
    pub(crate) left_out: u64,
    /// When the last was captured that was kept.
    pub(crate) kept_until_ns: u64,
}

impl Seen {
    /// Reads a whole capture.
    ///
    /// # Errors
    ///
    /// As [`Tracker::read`].
    pub fn read(
        tracker: Tracker,
        reader: &mut Reader<'_>,
        name: &str,
    ) -> Result<Self, CaptureError> {
        Self::read_most(tracker, reader, name, SIGHTINGS_MAX)
    }

    /// Reads a whole capture, and keeps so many segments and datagrams of it.
    pub(crate) fn read_most(
        mut tracker: Tracker,
        reader: &mut Reader<'_>,
        name: &str,
        most: usize,
    ) -> Result<Self, CaptureError> {
        let mut connections = Kept::<Sighting>::new();
        let mut conversations = Kept::<Passing>::new();
        let (mut kept, mut left_out, mut kept_until_ns) = (0, 0, 0);
        tracker.begin_file(name);
        let mut parts = Parts::default();
        while let Some(frame) = reader.next_frame() {
            let handled = tracker
                .handle_frame(&frame, &mut parts)
                .filter(|one| !one.verdict.any(Verdict::DUPLICATE_FRAME));
            let passed = tracker.take_passed();
            let segments = handled.map(|one| one.place);
            let Some(place) = segments.or(passed.map(|one| one.place)) else {
                continue;
            };
            if kept == most {
                left_out += 1;
                continue;
            }
            kept += 1;
            kept_until_ns = kept_until_ns.max(place.time_ns);
            if let Some(handled) = handled {
                let segment = handled.segment;
                let ports = (segment.source_port, segment.target_port);
                let between = || Endpoint::pair(segment.addresses, ports);
                let number = tracker.connection(handled.at).number;
                let connection = connections.flow(number, handled.end, between);
                connection.add(&handled);
            }
            if let Some(passed) = passed {
                let datagram = &passed.datagram;
                let between = || Endpoint::pair(datagram.addresses, datagram.ports());
                let conversation = conversations.flow(passed.number, passed.end, between);
                conversation.sightings.push(Passing::new(&passed));
            }
        }
        tracker.end_file(reader)?;
        Ok(Self {
            trace: tracker.finish(),
            connections: connections.flows,
            conversations: conversations.flows,
            left_out,
            kept_until_ns,
        })
    }
}

impl SeenConnection {
    fn add(&mut self, handled: &Handled<'_>) {
        let segment = handled.segment;
        if segment.flags.any(Flags::SYN) && self.offers[handled.end as usize].is_none() {
            self.offers[handled.end as usize] = Some((Offer::of(segment), segment.sequence));
        }
        self.sightings.push(Sighting::new(handled, segment));
    }
}

impl Sighting {
    fn new(handled: &Handled<'_>, segment: &Segment) -> Self {
        Self {
            time_ns: handled.place.time_ns,
            frame: handled.place.frame.map_or(0, FrameId::number),
            end: handled.end,
            sequence: segment.sequence,
            length: segment.sequence_bytes(),
            payload_bytes: segment.payload_bytes,
            acknowledgement: segment.acknowledgement,
            stamp: segment.timestamps.map(|stamps| stamps.value),
            identification: segment.identification,
            window: segment.window,
            flags: segment.flags,
            hop_limit: segment.hop_limit,
            congestion_marked: segment.congestion_marked,
        }
    }
}
