//! Segments as one capture saw them, by connection.

use std::collections::HashMap;

use linerate_model::sample::End;

use crate::capture::{CaptureError, Reader};
use crate::connection::{Endpoint, FrameId, Offer, Verdict};
use crate::frame::{Flags, Parts, Segment};
use crate::tracker::Handled;
use crate::{Trace, Tracker};

use super::SeenConversation;

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

/// One connection as a capture saw it.
#[derive(Debug)]
pub(crate) struct SeenConnection {
    pub number: u32,
    /// Client and server.
    pub ends: [Endpoint; 2],
    /// What their SYNs offered, and their first sequence numbers.
    pub offers: [Option<(Offer, u32)>; 2],
    pub sightings: Vec<Sighting>,
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
        let mut connections: Vec<SeenConnection> = Vec::new();
        let mut places: HashMap<u32, usize> = HashMap::new();
        let mut conversations: Vec<SeenConversation> = Vec::new();
        let mut spoken: HashMap<u32, usize> = HashMap::new();
        let (mut kept, mut left_out, mut kept_until_ns) = (0, 0, 0);
        tracker.begin_file(name);
        let mut parts = Parts::default();
        while let Some(frame) = reader.next_frame() {
            let Some(handled) = tracker.handle_frame(&frame, &mut parts) else {
                let Some(passed) = tracker.take_passed() else {
                    continue;
                };
                if kept == most {
                    left_out += 1;
                    continue;
                }
                kept += 1;
                kept_until_ns = kept_until_ns.max(passed.place.time_ns);
                let at = *spoken.entry(passed.number).or_insert_with(|| {
                    conversations.push(SeenConversation::new(&passed));
                    conversations.len() - 1
                });
                conversations[at].add(&passed);
                continue;
            };
            if handled.verdict.any(Verdict::DUPLICATE_FRAME) {
                continue;
            }
            if kept == most {
                left_out += 1;
                continue;
            }
            kept += 1;
            kept_until_ns = kept_until_ns.max(handled.place.time_ns);
            let number = tracker.connection(handled.at).number;
            let at = *places.entry(number).or_insert_with(|| {
                connections.push(SeenConnection::new(number, &handled));
                connections.len() - 1
            });
            connections[at].add(&handled);
        }
        tracker.end_file(reader)?;
        Ok(Self {
            trace: tracker.finish(),
            connections,
            conversations,
            left_out,
            kept_until_ns,
        })
    }
}

impl SeenConnection {
    fn new(number: u32, handled: &Handled<'_>) -> Self {
        let segment = handled.segment;
        let ports = (segment.source_port, segment.target_port);
        let [source, target] = Endpoint::pair(segment.addresses, ports);
        Self {
            number,
            ends: match handled.end {
                End::Client => [source, target],
                End::Server => [target, source],
            },
            offers: [None; 2],
            sightings: Vec::new(),
        }
    }

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
