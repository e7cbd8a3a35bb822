//! Conversations over UDP: how much, how regularly, and what their protocols tell: how long DNS and NTP took
//! to answer and what they did not, how QUIC's handshake went.
//!
//! Questions of one host to one server are one conversation, whatever port each comes from. UDP itself tells
//! nothing of loss.

use hashbrown::HashTable;
use linerate_model::sample::End;
use serde::Serialize;

use crate::connection::{AddressBook, Durations, Endpoint, Example, FrameId, Key, Place};
use crate::document::DurationReport;
use crate::frame::{Asked, Datagram, QuicKind, Says};

/// Conversations that are kept; 300 B to 2 KiB each.
const CONVERSATIONS_MAX: usize = 32_768;
/// Questions of one conversation that wait for their answer at once.
const PENDING_MAX: usize = 256;
/// An answer that is not there after so long will not come: resolvers ask again after 5 s at the most.
const ANSWER_NS_MAX: u64 = 5_000_000_000;
/// A further Initial later than this is sent again rather than the second part of a long one: probes begin
/// at 999 ms (RFC 9002), some stacks' at 200 ms.
const INITIAL_AGAIN_NS_MIN: u64 = 150_000_000;

/// What one end sent, and when.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    report: DatagramsReport,
    first_ns: u64,
    last_ns: u64,
}

/// A question that waits, by its own number and the port that it came from.
#[derive(Debug, Clone, Copy)]
struct Pending {
    id: (u64, u16),
    place: Place,
}

/// What questions came to.
#[derive(Debug, Default)]
struct Questions {
    answers: Durations,
    pending: Vec<Pending>,
    asked: u64,
    again: u64,
    failed: u64,
    unanswered: u64,
    /// Those that were given up since too many others were waited for.
    not_followed: u64,
    /// The one that was waited for longest, as in the report, and one that was not answered.
    slowest: Option<Example>,
    first_unanswered: Option<Place>,
}

/// QUIC's handshake, and when its packets came.
#[derive(Debug, Clone, Copy, Default)]
struct Quic {
    report: QuicReport,
    initial_ns: Option<u64>,
    answered_ns: Option<u64>,
    established_ns: Option<u64>,
}

#[derive(Debug)]
struct Conversation {
    key: Key,
    client_is_low: bool,
    number: u32,
    first: Place,
    last_ns: u64,
    ends: [Sent; 2],
    asks: Option<(Asked, Box<Questions>)>,
    quic: Option<Box<Quic>>,
}

/// All conversations of a capture.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    all: Vec<Conversation>,
    index: HashTable<u32>,
    /// Datagrams of conversations beyond the number that is kept.
    pub left_out: u64,
}

impl Conversations {
    /// Handles one datagram; returns the number of its conversation and which end sent it.
    pub(crate) fn handle(
        &mut self,
        book: &mut AddressBook,
        seed: u64,
        datagram: &Datagram,
        place: Place,
    ) -> Option<(u32, End)> {
        let is_answer = matches!(datagram.says, Says::Answer(..));
        let found = book.key(&datagram.addresses, datagram.ports(), seed);
        let Some((key, source_is_low)) = found else {
            self.left_out += 1;
            return None;
        };
        let all = &self.all;
        let is_it = |&at: &u32| all[at as usize].key == key;
        let found = self.index.find(key.hash(seed), is_it).copied();
        let at = match found {
            Some(at) => at as usize,
            None if self.all.len() == CONVERSATIONS_MAX => {
                self.left_out += 1;
                return None;
            }
            None => {
                let number = self.all.len() as u32;
                self.all.push(Conversation {
                    key,
                    client_is_low: source_is_low != is_answer,
                    number: number + 1,
                    first: place,
                    last_ns: place.time_ns,
                    ends: [Sent::default(); 2],
                    asks: None,
                    quic: None,
                });
                let all = &self.all;
                let hash_of = |&at: &u32| all[at as usize].key.hash(seed);
                self.index.insert_unique(key.hash(seed), number, hash_of);
                number as usize
            }
        };
        let conversation = &mut self.all[at];
        let end = if conversation.client_is_low == source_is_low {
            End::Client
        } else {
            End::Server
        };
        conversation.handle(end, datagram, place);
        Some((conversation.number, end))
    }

    /// Hands over the conversations, most payload first.
    pub(crate) fn finish(
        mut self,
        book: &AddressBook,
        most: usize,
        end_ns: u64,
    ) -> Vec<ConversationReport> {
        let bytes = |sent: &Sent| sent.report.payload_bytes;
        let payload = |one: &Conversation| one.ends.iter().map(bytes).sum::<u64>();
        self.all
            .sort_by_key(|one| (std::cmp::Reverse(payload(one)), one.number));
        let mut reports: Vec<ConversationReport> = Vec::new();
        for one in &mut self.all {
            if let Some((_, questions)) = &mut one.asks {
                questions.give_up(end_ns);
            }
            reports.push(ConversationReport::new(one, book));
        }
        // Those that were not answered are kept with the largest.
        let is_kept = |(at, one): (usize, ConversationReport)| {
            (at < most || one.unanswered.is_some_and(|count| count > 0)).then_some(one)
        };
        reports
            .into_iter()
            .enumerate()
            .filter_map(is_kept)
            .collect()
    }
}

impl Conversation {
    fn handle(&mut self, end: End, datagram: &Datagram, place: Place) {
        self.last_ns = self.last_ns.max(place.time_ns);
        self.ends[end as usize].add(datagram, place);
        match datagram.says {
            // Clients count their questions port by port.
            Says::Question(asked, id) => {
                let id = (id, datagram.source_port);
                self.questions(asked).ask(id, place);
            }
            Says::Answer(asked, id, failed) => {
                let id = (id, datagram.target_port);
                self.questions(asked).answer(id, failed, place);
            }
            Says::Quic { version, kind } => {
                self.quic
                    .get_or_insert_default()
                    .handle(end, version, kind, place.time_ns);
            }
            Says::PerhapsQuic => {
                if let Some(quic) = &mut self.quic
                    && end == End::Server
                {
                    quic.established_ns = quic.established_ns.or(Some(place.time_ns));
                }
            }
            Says::Nothing => {}
        }
    }

    fn questions(&mut self, asked: Asked) -> &mut Questions {
        &mut self.asks.get_or_insert_with(|| (asked, Box::default())).1
    }
}

impl Sent {
    fn add(&mut self, datagram: &Datagram, place: Place) {
        let report = &mut self.report;
        if report.datagrams == 0 {
            self.first_ns = place.time_ns;
        } else {
            let gap_ns = place.time_ns.saturating_sub(self.last_ns);
            if gap_ns > report.gap_ns_max {
                (report.gap_ns_max, report.gap_frame) = (gap_ns, place.frame);
            }
        }
        report.datagrams += 1;
        report.payload_bytes += u64::from(datagram.payload_bytes);
        report.datagram_bytes_max = report.datagram_bytes_max.max(datagram.payload_bytes);
        self.last_ns = place.time_ns;
    }

    fn report(&self) -> DatagramsReport {
        let elapsed_ns = self.last_ns.saturating_sub(self.first_ns);
        // Over a handful of datagrams there is no rate.
        let has_rate = elapsed_ns > 0 && self.report.datagrams >= 8;
        let bits = self.report.payload_bytes as f64 * 8e9;
        DatagramsReport {
            bits_per_second: has_rate.then(|| bits / elapsed_ns as f64),
            ..self.report
        }
    }
}

impl Questions {
    fn ask(&mut self, id: (u64, u16), place: Place) {
        self.give_up(place.time_ns);
        self.asked += 1;
        if self.pending.iter().any(|pending| pending.id == id) {
            self.again += 1;
            return;
        }
        if self.pending.len() == PENDING_MAX {
            // What becomes of it is not known.
            self.pending.remove(0);
            self.not_followed += 1;
        }
        self.pending.push(Pending { id, place });
    }

    fn answer(&mut self, id: (u64, u16), failed: bool, place: Place) {
        self.give_up(place.time_ns);
        let found = self.pending.iter().position(|pending| pending.id == id);
        let Some(at) = found else { return };
        let asked = self.pending.remove(at).place;
        let wait = Example::between(asked, place, 0);
        self.answers.add(wait.length_ns);
        self.failed += u64::from(failed);
        let is_slower = |slowest: Example| wait.length_ns >= slowest.length_ns;
        if self.slowest.is_none_or(is_slower) {
            self.slowest = Some(wait);
        }
    }

    /// Gives up on questions that were asked too long before `now_ns`.
    fn give_up(&mut self, now_ns: u64) {
        while let Some(&oldest) = self.pending.first()
            && now_ns.saturating_sub(oldest.place.time_ns) > ANSWER_NS_MAX
        {
            self.pending.remove(0);
            self.lose(oldest);
        }
    }

    fn lose(&mut self, pending: Pending) {
        self.unanswered += 1;
        self.first_unanswered = self.first_unanswered.or(Some(pending.place));
    }
}

impl Quic {
    fn handle(&mut self, end: End, version: u32, kind: QuicKind, time_ns: u64) {
        if version != 0 {
            self.report.version = version;
        }
        self.report.retry |= kind == QuicKind::Retry;
        self.report.negotiation |= kind == QuicKind::Negotiation;
        match end {
            End::Client if kind == QuicKind::Initial => {
                let first_ns = *self.initial_ns.get_or_insert(time_ns);
                let is_late = time_ns.saturating_sub(first_ns) >= INITIAL_AGAIN_NS_MIN;
                self.report.initials_again += u32::from(self.answered_ns.is_none() && is_late);
            }
            End::Client => {}
            End::Server => self.answered_ns = self.answered_ns.or(Some(time_ns)),
        }
    }

    fn report(&self) -> QuicReport {
        let since = |(ns, initial_ns): (u64, u64)| ns.saturating_sub(initial_ns);
        QuicReport {
            answer_ns: self.answered_ns.zip(self.initial_ns).map(since),
            handshake_ns: self.established_ns.zip(self.initial_ns).map(since),
            ..self.report
        }
    }
}

/// A conversation over UDP.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ConversationReport {
    /// Its number in the order of first datagrams, from 1.
    pub number: u32,
    /// Who sent first, or asked; without a port where questions come from many.
    pub client: Endpoint,
    /// The other end.
    pub server: Endpoint,
    /// What it speaks, where that shows: `dns`, `ntp`, `quic`.
    pub protocol: Option<&'static str>,
    /// Its first frame.
    pub first_frame: Option<FrameId>,
    /// When its first datagram was captured, in nanoseconds since 1970.
    pub start_ns: u64,
    /// From its first datagram to its last.
    pub duration_ns: u64,
    /// What the client sent.
    pub from_client: DatagramsReport,
    /// What the server sent.
    pub from_server: DatagramsReport,
    /// Questions, those asked again included.
    pub asked: Option<u64>,
    /// Of these, those asked again before they were answered.
    pub asked_again: Option<u64>,
    /// Questions without an answer for 5 s.
    pub unanswered: Option<u64>,
    /// Questions of which nothing is known, since too many others were waited for at once.
    pub not_followed: Option<u64>,
    /// Answers that say that the server failed or refused.
    pub failed: Option<u64>,
    /// From a question, asked first, to its answer.
    pub answers: Option<DurationReport>,
    /// QUIC's handshake.
    pub quic: Option<QuicReport>,
    /// The longest wait, and the first question that was not answered.
    #[serde(skip)]
    pub(crate) slowest: Option<Example>,
    #[serde(skip)]
    pub(crate) first_unanswered: Option<Place>,
}

/// What one end of a conversation sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DatagramsReport {
    /// Datagrams.
    pub datagrams: u64,
    /// Their payload.
    pub payload_bytes: u64,
    /// Payload over the time from the first to the last.
    pub bits_per_second: Option<f64>,
    /// The largest.
    pub datagram_bytes_max: u32,
    /// The longest time without one.
    pub gap_ns_max: u64,
    /// The frame that ended it.
    pub gap_frame: Option<FrameId>,
}

/// QUIC's handshake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct QuicReport {
    /// The version in the long headers.
    pub version: u32,
    /// From the client's first Initial to the server's first packet.
    pub answer_ns: Option<u64>,
    /// From the client's first Initial to the server's first packet with a short header.
    pub handshake_ns: Option<u64>,
    /// Initials sent again before the server answered.
    pub initials_again: u32,
    /// Whether the server asked to try again with a token.
    pub retry: bool,
    /// Whether versions were negotiated.
    pub negotiation: bool,
}

impl ConversationReport {
    /// Returns whether only one direction was captured of a protocol that answers: streams may go one way.
    pub(crate) fn is_one_sided(&self) -> bool {
        let [client, server] = [self.from_client, self.from_server].map(|sent| sent.datagrams);
        self.protocol.is_some() && (client == 0) != (server == 0) && client + server > 1
    }

    /// Returns the client; without a port where questions come from many.
    pub(crate) fn client_name(&self) -> String {
        match self.client.port {
            0 => self.client.address.to_string(),
            _ => self.client.to_string(),
        }
    }

    fn new(one: &Conversation, book: &AddressBook) -> Self {
        let [low, high] = book.endpoints(&one.key);
        let (client, server) = if one.client_is_low {
            (low, high)
        } else {
            (high, low)
        };
        let questions = one.asks.as_ref().map(|(_, questions)| questions);
        let of = |count: fn(&Questions) -> u64| questions.map(|questions| count(questions));
        let [from_client, from_server] = one.ends.map(|sent| sent.report());
        Self {
            number: one.number,
            client,
            server,
            protocol: match (&one.asks, &one.quic) {
                (Some((Asked::Dns, _)), _) => Some("dns"),
                (Some((Asked::Ntp, _)), _) => Some("ntp"),
                (None, Some(_)) => Some("quic"),
                (None, None) => None,
            },
            first_frame: one.first.frame,
            start_ns: one.first.time_ns,
            duration_ns: one.last_ns.saturating_sub(one.first.time_ns),
            from_client,
            from_server,
            asked: of(|questions| questions.asked),
            asked_again: of(|questions| questions.again),
            unanswered: of(|questions| questions.unanswered),
            not_followed: of(|questions| questions.not_followed),
            failed: of(|questions| questions.failed),
            answers: questions.and_then(|questions| DurationReport::new(&questions.answers)),
            quic: one.quic.as_deref().map(Quic::report),
            slowest: questions.and_then(|questions| questions.slowest),
            first_unanswered: questions.and_then(|questions| questions.first_unanswered),
        }
    }
}
