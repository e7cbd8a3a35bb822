//! All connections of a capture, within limits of memory.
//!
//! 1. A segment finds its connection by the key of the segment before, else by one look into a
//!    hash table of 4-byte numbers.
//! 2. A connection gets its detail with its first payload. When all places for details are taken,
//!    the closed connection that waited longest hands its own back: its counts go into the totals,
//!    its findings into the list. Connections of a mebibyte and more keep theirs. Where no place
//!    is free, a connection is only counted from then on, and the document says of how many that is true.
//! 3. When all places for connections are taken, the longest closed one is counted into the totals
//!    and forgotten; if none is closed, of a few looked at the one that was silent longest.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hashbrown::HashTable;
use linerate_model::sample::End;

use crate::capture::{CaptureError, Frame, LinkType, Reader};
use crate::connection::{
    AddressBook, Connection, Drawn, Endpoint, FrameId, Key, Picture, Place, Timeline, Verdict,
};
use crate::datagrams::Conversations;
use crate::document::{ConnectionReport, FileReport, Totals, Trace};
use crate::filter::Filter;
use crate::findings::{Accepting, FindingBook};
use crate::frame::{
    self, Addresses, Complaint, Datagram, Decoded, Flags, NoSegment, Parts, Reason, Segment,
};

/// Connections that memory is taken for at once.
const CHUNK: usize = 4096;
/// Packets from which a connection keeps its timeline; below, it is not worth its memory.
const TIMELINE_PACKETS_MIN: u32 = 64;
/// Closed connections of less payload hand their details back first.
const LARGE_BYTES: u64 = 1 << 20;
/// Connections that are looked at to find one that was silent for long.
const CANDIDATES: usize = 64;
/// Link types without IP that are told apart.
const FOREIGN_MAX: usize = 16;

/// How much may be kept at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections, of 160 bytes each and 10 for finding them.
    pub connections: usize,
    /// Those of which everything is known, of 2 to 3 KiB each.
    pub details: usize,
    /// Those that are kept over time too, of up to 14 KiB each.
    pub timelines: usize,
    /// Those that are kept as they are drawn, of up to 68 KiB each.
    pub points: usize,
    /// Connections that are handed over at the end.
    pub reported: usize,
    /// A number that a capture's writer does not know.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_000_000,
            details: 4096,
            timelines: 512,
            points: 0,
            reported: 1000,
            seed: 0x243f_6a88_85a3_08d3,
        }
    }
}

/// A segment that was handled.
#[derive(Debug, Clone, Copy)]
pub struct Handled<'p> {
    /// Where its connection is, for [`Tracker::connection`].
    pub(crate) at: u32,
    pub(crate) end: End,
    pub(crate) verdict: Verdict,
    pub(crate) segment: &'p Segment,
    /// When and where it was captured.
    pub(crate) place: Place,
}

/// A datagram that was handled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed {
    /// Its conversation.
    pub number: u32,
    pub end: End,
    pub datagram: Datagram,
    pub place: Place,
}

/// All connections of one or several captures.
#[derive(Default)]
pub struct Tracker {
    limits: Limits,
    filters: Vec<Filter>,
    book: AddressBook,
    index: HashTable<u32>,
    chunks: Vec<Vec<Connection>>,
    count: usize,
    last: Option<(Key, u32)>,
    /// Closed connections whose details can be handed back, the longest closed first.
    closed: VecDeque<u32>,
    /// Closed connections that handed them back.
    stripped: VecDeque<u32>,
    next_candidate: usize,
    details: usize,
    timelines: usize,
    points: usize,
    files: Vec<FileReport>,
    foreign: Vec<(LinkType, u64)>,
    totals: Totals,
    findings: FindingBook,
    conversations: Conversations,
    passed: Option<Passed>,
}

impl Tracker {
    /// Returns a tracker without connections.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Keeps only connections that one of `filters` wants; all, if there is none.
    pub fn with_filters(mut self, filters: Vec<Filter>) -> Self {
        self.filters = filters;
        self
    }

    /// Reads a whole capture.
    ///
    /// # Errors
    ///
    /// If all of its frames are of link types from which no IP packet can be taken. Damage is not
    /// an error: the frames before it were read, and the document says so.
    pub fn read(&mut self, reader: &mut Reader<'_>, name: &str) -> Result<(), CaptureError> {
        self.begin_file(name);
        let mut parts = Parts::default();
        while let Some(frame) = reader.next_frame() {
            self.handle_frame(&frame, &mut parts);
        }
        self.end_file(reader)
    }

    /// Begins a file.
    pub fn begin_file(&mut self, name: &str) {
        self.files.push(FileReport::new(name));
    }

    /// Ends a file.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn end_file(&mut self, reader: &Reader<'_>) -> Result<(), CaptureError> {
        if let Some(file) = self.files.last_mut() {
            file.finish(reader);
            let undecoded: u64 = self.foreign.iter().map(|(_, frames)| frames).sum();
            if let Some(&(link, _)) = self.foreign.first()
                && undecoded == self.totals.frames
            {
                return Err(CaptureError::Link(link));
            }
        }
        Ok(())
    }

    /// Handles one frame, decoded into `parts`; says what it was if it is a segment that is wanted.
    ///
    /// Cost of a full-size frame of a bulk flow: 80 to 100 ns beside reading it, nothing allocated.
    pub fn handle_frame<'p>(
        &mut self,
        frame: &Frame<'_>,
        parts: &'p mut Parts,
    ) -> Option<Handled<'p>> {
        self.totals.frames += 1;
        self.totals.wire_bytes += u64::from(frame.wire_bytes);
        if let Some(file) = self.files.last_mut() {
            file.note_frame(frame.time_ns);
        }
        let file = self.files.len().saturating_sub(1) as u32;
        let place = Place {
            time_ns: frame.time_ns,
            frame: FrameId::new(file, frame.number),
        };
        match frame::decode(frame.link, frame.bytes, frame.wire_bytes, parts) {
            Ok(Decoded::Tcp) => return self.handle_segment(&parts.segment, place),
            Ok(Decoded::Udp) => self.handle_datagram(&parts.datagram, place),
            Ok(Decoded::Complaint) => self.handle_complaint(&parts.complaint, place),
            Err(other) => self.handle_other(other, frame.link),
        }
        None
    }

    /// Hands the last frame over, if it was a datagram that is wanted.
    pub(crate) fn take_passed(&mut self) -> Option<Passed> {
        self.passed.take()
    }

    /// Returns the connection of a segment that was handled last.
    pub(crate) fn connection(&self, at: u32) -> &Connection {
        connection_at(&self.chunks, at)
    }

    /// Ends the capture and hands over what it came to.
    pub fn finish(mut self) -> Trace {
        let mut chunks = std::mem::take(&mut self.chunks);
        let lasts = self.files.iter().filter_map(|file| file.last_ns);
        let end_ns = lasts.max().unwrap_or(0);
        for connection in chunks.iter_mut().flatten() {
            if let Some(detail) = &mut connection.detail {
                detail.finish(&connection.halves, connection.last_ns);
            }
            self.totals.add(connection);
            let ends = || endpoints(&self.book, connection);
            if let Some(report) = self.findings.tell(connection, ends, end_ns) {
                self.findings.add_setup(&report, connection);
            }
        }
        let mut refusing = self.findings.refusing();
        if !refusing.is_empty() {
            for connection in chunks.iter().flatten() {
                let [_, server] = endpoints(&self.book, connection);
                if let Some(host) = refusing.get_mut(&server.address) {
                    Accepting::add(host, connection);
                }
            }
            self.findings.judge_refusals(&refusing);
        }
        // The largest only, the smallest of them on top: a list of all would take as much memory as
        // a twentieth of the connections themselves.
        let mut largest = BinaryHeap::new();
        for (at, connection) in (0..).zip(chunks.iter().flatten()) {
            let rank = (connection.payload_bytes(), Reverse(connection.number));
            largest.push(Reverse((rank, at)));
            if largest.len() > self.limits.reported {
                largest.pop();
            }
        }
        let reports: Vec<ConnectionReport> = largest
            .into_sorted_vec()
            .into_iter()
            .map(|Reverse((_, at))| {
                let connection = connection_at(&chunks, at);
                ConnectionReport::new(connection, endpoints(&self.book, connection), end_ns)
            })
            .collect();
        self.totals.udp_left_out = self.conversations.left_out;
        let reported = self.limits.reported;
        let conversations = self.conversations.finish(&self.book, reported, end_ns);
        for conversation in &conversations {
            self.findings.add_conversation(conversation);
        }
        self.totals.findings_left_out = self.findings.left_out;
        let mut conversations = conversations;
        conversations.truncate(reported);
        let findings = self.findings.finish();
        Trace::new(self.files, self.totals, findings, reports, conversations)
    }

    #[inline]
    fn handle_segment<'p>(&mut self, segment: &'p Segment, place: Place) -> Option<Handled<'p>> {
        self.totals.tcp_frames += 1;
        let ports = (segment.source_port, segment.target_port);
        if !self.wants(segment.addresses, ports) {
            self.totals.filtered += 1;
            return None;
        }
        self.totals.fragments += u64::from(segment.fragmented);
        self.totals.shortened += u64::from(segment.shortened);
        let seed = self.limits.seed;
        let Some((key, source_is_low)) = self.book.key(&segment.addresses, ports, seed) else {
            self.totals.untracked += 1;
            return None;
        };
        let mut at = match self.find(&key) {
            Some(at) => at,
            None => self.add(key, source_is_low, segment, place),
        };
        let mut end = self.end_of(at, source_is_low);
        let cuts_offer = segment.options_cut && segment.flags.any(Flags::SYN);
        self.totals.options_cut += u64::from(cuts_offer);
        if segment.flags.any(Flags::SYN) && self.connection(at).is_begun_anew(end, segment) {
            at = self.replace(at, source_is_low, segment, place);
            end = self.end_of(at, source_is_low);
        }
        let was_closed = self.connection(at).is_closed();
        let connection = self.connection(at);
        if connection.may_have_detail() && connection.needs_detail(end, segment) {
            self.give_detail(at);
        }
        let connection = self.connection_mut(at);
        let verdict = connection.handle_segment(end, segment, place);
        if connection.packets() == TIMELINE_PACKETS_MIN {
            self.give_timeline(at, place.time_ns);
        }
        self.keep_point(at, end, segment, place, verdict);
        if !was_closed
            && segment.flags.any(Flags::FIN | Flags::RST)
            && self.connection(at).is_closed()
        {
            self.closed.push_back(at);
            self.take_short_timeline_back(at);
        }
        Some(Handled {
            at,
            end,
            verdict,
            segment,
            place,
        })
    }

    #[inline]
    fn wants(&self, addresses: Addresses, ports: (u16, u16)) -> bool {
        let ends = || Endpoint::pair(addresses, ports);
        self.filters.is_empty() || self.filters.iter().any(|filter| filter.wants(ends()))
    }

    #[inline]
    fn connection_mut(&mut self, at: u32) -> &mut Connection {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    #[inline]
    fn end_of(&self, at: u32, source_is_low: bool) -> End {
        if self.connection(at).client_is_low == source_is_low {
            End::Client
        } else {
            End::Server
        }
    }

    #[inline]
    fn find(&mut self, key: &Key) -> Option<u32> {
        if let Some((last, at)) = &self.last
            && last == key
        {
            return Some(*at);
        }
        let chunks = &self.chunks;
        let is_it = |&at: &u32| connection_at(chunks, at).key == *key;
        let at = *self.index.find(key.hash(self.limits.seed), is_it)?;
        self.last = Some((*key, at));
        Some(at)
    }

    /// Adds a connection; who connected is told by its SYN, else by the lower port.
    fn add(&mut self, key: Key, source_is_low: bool, segment: &Segment, place: Place) -> u32 {
        self.totals.connections += 1;
        let is_syn = segment.flags.any(Flags::SYN);
        let source_is_client = match (is_syn, segment.flags.any(Flags::ACK)) {
            (true, answers) => !answers,
            (false, _) => segment.source_port >= segment.target_port,
        };
        let number = u32::try_from(self.totals.connections).unwrap_or(u32::MAX);
        let connection = Connection::new(key, number, source_is_client == source_is_low, place);
        let at = if self.count < self.limits.connections.max(1) {
            if self.count.is_multiple_of(CHUNK) {
                self.chunks.push(Vec::with_capacity(
                    CHUNK.min(self.limits.connections.max(1)),
                ));
            }
            if let Some(chunk) = self.chunks.last_mut() {
                chunk.push(connection);
            }
            self.count += 1;
            (self.count - 1) as u32
        } else {
            let at = self.forget_one();
            *self.connection_mut(at) = connection;
            at
        };
        let (chunks, seed) = (&self.chunks, self.limits.seed);
        let hash_of = |&at: &u32| connection_at(chunks, at).key.hash(seed);
        self.index.insert_unique(key.hash(seed), at, hash_of);
        self.last = Some((key, at));
        at
    }

    /// Adds a connection of the same ends and ports as the one at `at`.
    #[cold]
    fn replace(&mut self, at: u32, source_is_low: bool, segment: &Segment, place: Place) -> u32 {
        let old = self.connection(at);
        let (key, was_closed) = (old.key, old.is_closed());
        self.unlink(at);
        if !was_closed {
            self.closed.push_back(at);
        }
        self.totals.reused_ports += 1;
        self.add(key, source_is_low, segment, place)
    }

    /// Takes a connection out of the index; it stays where it is.
    fn unlink(&mut self, at: u32) {
        let hash = self.connection(at).key.hash(self.limits.seed);
        if let Ok(found) = self.index.find_entry(hash, |&other| other == at) {
            found.remove();
        }
        self.last = None;
    }

    /// Makes a place for a connection.
    #[cold]
    fn forget_one(&mut self) -> u32 {
        let at = match self
            .stripped
            .pop_front()
            .or_else(|| self.closed.pop_front())
        {
            Some(at) => at,
            None => self.most_silent(),
        };
        self.take_detail_back(at);
        let connection = self.connection(at);
        if !connection.is_accepted() {
            // Silent for longer than all others: it will not be answered.
            let ends = endpoints(&self.book, connection);
            let report = ConnectionReport::new(connection, ends, u64::MAX);
            self.findings
                .add_setup(&report, connection_at(&self.chunks, at));
        }
        self.unlink(at);
        self.totals.add(connection_at(&self.chunks, at));
        self.totals.forgotten += 1;
        at
    }

    fn most_silent(&mut self) -> u32 {
        let candidates =
            (0..CANDIDATES).map(|step| ((self.next_candidate + step) % self.count) as u32);
        let silent = candidates.min_by_key(|&at| self.connection(at).last_ns);
        self.next_candidate = (self.next_candidate + CANDIDATES) % self.count;
        silent.unwrap_or(0)
    }

    #[cold]
    fn give_detail(&mut self, at: u32) {
        while self.details >= self.limits.details {
            let closed = self.closed.pop_front();
            let Some(closed) = closed.filter(|&closed| closed != at) else {
                // One that is closed itself is among the first that are forgotten.
                self.stripped.extend(closed);
                self.totals.without_detail += 1;
                self.connection_mut(at).only_count();
                return;
            };
            if self.connection(closed).payload_bytes() < LARGE_BYTES {
                self.take_detail_back(closed);
                self.connection_mut(closed).only_count();
                self.stripped.push_back(closed);
            }
        }
        self.details += 1;
        let wants_points = self.points < self.limits.points;
        self.points += usize::from(wants_points);
        let connection = self.connection_mut(at);
        let first_ns = connection.first_ns;
        connection.make_detail().picture = wants_points.then(|| Box::new(Picture::new(first_ns)));
        // The first half of the timelines goes to connections as they begin, and short ones give
        // theirs back; the second half is kept for those that prove to be long.
        if self.timelines < self.limits.timelines / 2 {
            self.give_timeline(at, first_ns);
        }
    }

    /// Begins the timeline of a connection at `start_ns`, if there is room for one.
    #[cold]
    fn give_timeline(&mut self, at: u32, start_ns: u64) {
        if self.timelines >= self.limits.timelines {
            return;
        }
        let connection = self.connection_mut(at);
        if let Some(detail) = &mut connection.detail
            && detail.timeline.is_none()
        {
            detail.timeline = Some(Box::new(Timeline::new(start_ns)));
            self.timelines += 1;
        }
    }

    /// Takes the timeline of a connection that closed after a few packets.
    fn take_short_timeline_back(&mut self, at: u32) {
        let connection = self.connection_mut(at);
        if connection.packets() >= TIMELINE_PACKETS_MIN {
            return;
        }
        let detail = connection.detail.as_mut();
        if detail.and_then(|detail| detail.timeline.take()).is_some() {
            self.timelines -= 1;
        }
    }

    #[inline]
    fn keep_point(&mut self, at: u32, end: End, segment: &Segment, place: Place, verdict: Verdict) {
        if self.limits.points == 0 {
            return;
        }
        let connection = self.connection_mut(at);
        let window_bytes = connection.window_bytes(end);
        let halves = &connection.halves;
        if let Some(detail) = &mut connection.detail
            && !verdict.any(Verdict::DUPLICATE_FRAME)
        {
            let trip_ns = detail.trip_ns;
            let drawn = Drawn {
                halves,
                end,
                segment,
                place,
                verdict,
                window_bytes: window_bytes.filter(|_| !segment.flags.any(Flags::SYN)),
                trip_ns,
            };
            if let Some(picture) = &mut detail.picture {
                picture.add(&drawn);
            }
        }
    }

    /// Counts the detail of a connection into the totals and takes it away.
    fn take_detail_back(&mut self, at: u32) {
        let connection = self.connection_mut(at);
        let Some(detail) = &mut connection.detail else {
            return;
        };
        detail.finish(&connection.halves, connection.last_ns);
        let now_ns = self.files.last().and_then(|file| file.last_ns);
        let connection = connection_at(&self.chunks, at);
        let ends = || endpoints(&self.book, connection);
        self.findings.tell(connection, ends, now_ns.unwrap_or(0));
        let Some(detail) = self.connection_mut(at).detail.take() else {
            return;
        };
        self.details -= 1;
        self.timelines -= usize::from(detail.timeline.is_some());
        self.points -= usize::from(detail.picture.is_some());
        self.totals.folded += 1;
        self.totals.add_detail(&detail);
    }

    #[cold]
    fn handle_datagram(&mut self, datagram: &Datagram, place: Place) {
        self.totals.not_tcp += 1;
        self.totals.udp += 1;
        let ports = (datagram.source_port, datagram.target_port);
        if self.wants(datagram.addresses, ports) {
            let seed = self.limits.seed;
            let conversations = &mut self.conversations;
            let found = conversations.handle(&mut self.book, seed, datagram, place);
            self.passed = found.map(|(number, end)| Passed {
                number,
                end,
                datagram: *datagram,
                place,
            });
        }
    }

    #[cold]
    fn handle_complaint(&mut self, complaint: &Complaint, place: Place) {
        match complaint.reason {
            Reason::TooBig(_) => self.totals.too_big += 1,
            _ => self.totals.unreachable += 1,
        }
        let ports = (complaint.source_port, complaint.target_port);
        let seed = self.limits.seed;
        let Some((key, source_is_low)) = self.book.key(&complaint.addresses, ports, seed) else {
            return;
        };
        let Some(at) = self.find(&key) else { return };
        let end = self.end_of(at, source_is_low);
        if self.connection(at).may_have_detail() {
            self.give_detail(at);
        }
        let connection = self.connection_mut(at);
        if let Some(detail) = &mut connection.detail {
            detail.handle_complaint(&connection.halves, end, complaint, place);
        }
    }

    #[cold]
    fn handle_other(&mut self, other: NoSegment, link: LinkType) {
        let count = match other {
            NoSegment::Foreign => return self.handle_foreign(link),
            NoSegment::NotIp => &mut self.totals.not_ip,
            NoSegment::NotTcp => &mut self.totals.not_tcp,
            NoSegment::Undecoded(what) => self.totals.undecoded.entry(what).or_default(),
            NoSegment::Wireless => &mut self.totals.wireless,
            NoSegment::Encrypted => &mut self.totals.encrypted,
            NoSegment::Fragment => &mut self.totals.fragments,
            NoSegment::Cut => &mut self.totals.cut,
            NoSegment::Malformed => &mut self.totals.malformed,
        };
        *count += 1;
    }

    fn handle_foreign(&mut self, link: LinkType) {
        self.totals.foreign_links += 1;
        if let Some((_, frames)) = self.foreign.iter_mut().find(|(known, _)| *known == link) {
            *frames += 1;
        } else if self.foreign.len() < FOREIGN_MAX {
            self.foreign.push((link, 1));
        }
    }
}

/// Returns where a connection's client and server are.
fn endpoints(book: &AddressBook, connection: &Connection) -> [Endpoint; 2] {
    let [low, high] = book.endpoints(&connection.key);
    if connection.client_is_low {
        [low, high]
    } else {
        [high, low]
    }
}

#[inline]
fn connection_at(chunks: &[Vec<Connection>], at: u32) -> &Connection {
    &chunks[at as usize / CHUNK][at as usize % CHUNK]
}
