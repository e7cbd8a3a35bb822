//! One TCP connection, packet by packet: a state machine that is handed segments in the order in
//! which they were captured, and keeps counts, not packets.
//!
//! What is kept:
//!
//! 1. Of every connection a `Connection` of 160 bytes: ends, times, what the handshake agreed,
//!    and for each end where its sequence numbers stand and how many packets, acknowledgements and
//!    bytes it sent. That is all there is of connections that only shook hands or were refused.
//! 2. From the first payload or the first irregular segment on a `Detail`: round trips, what was
//!    sent again and why, windows, sizes, gaps. About 2 KiB.
//! 3. Of those with 64 packets and more a `Timeline`, some KiB.
//! 4. Of what happened (stalls, bursts, closed windows) counts and a few examples each.
//!
//! The tracker says how many of each there may be at once ([`crate::Limits`]).

/// What happens to one connection beyond counting.
mod detail;
/// Times without a packet.
mod gaps;
/// Ranges that were not captured.
mod holes;
/// What findings are made of.
mod incident;
/// Which connection a segment belongs to.
mod key;
/// What the life of a connection went into.
mod life;
/// Segments on their way.
mod outstanding;
/// As it is drawn.
mod picture;
/// When and where a segment was captured.
mod place;
/// Retransmissions: what they are and why they came.
mod resending;
/// What was acknowledged selectively.
mod sacked;
/// Numbers that wrap.
mod sequence;
/// What time went into.
mod shares;
/// Sizes of payloads.
mod sizes;
/// Quantities and durations.
mod spread;
/// Silences with room in the window.
mod standing;
/// Over time.
mod timeline;
/// What a segment turned out to be.
mod verdict;

pub use detail::Counts;
pub use gaps::{Cause, Gaps};

pub(crate) use detail::{Detail, EndDetail};
pub(crate) use incident::{Example, Incident, IncidentKind};
pub(crate) use key::{AddressBook, Endpoint, Key};
pub(crate) use life::Phase;
pub(crate) use picture::{Column, Drawn, Picture};
pub(crate) use place::{FrameId, Place};
pub(crate) use shares::State;
pub(crate) use sizes::Sizes;
pub(crate) use spread::{Durations, Spread};
pub(crate) use timeline::Timeline;
pub(crate) use verdict::Verdict;

use std::num::{NonZeroU16, NonZeroU32};

use linerate_model::sample::End;
use serde::Serialize;

use crate::frame::{Flags, Segment};
pub(crate) use sequence::distance as sequence_distance;
use sequence::{after, furthest};

/// What is counted of one end, whatever else is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Half {
    /// Bytes of payload that it sent, those sent again included.
    pub payload_bytes: u64,
    pub packets: u32,
    /// Segments with payload that it sent.
    pub data_packets: u32,
    /// Acknowledgements without payload, SYN, FIN or RST that it sent.
    pub pure_acks: u32,
    /// Its first sequence number: that of the SYN, or the first that was captured.
    pub first: u32,
    /// The sequence number behind everything that it sent.
    pub next: u32,
    /// The highest number that it acknowledged.
    pub acknowledged: u32,
    /// The window that it offered last, as in the header.
    pub window: u16,
    /// What was seen of it.
    marks: u16,
    /// Routers that its last segment might still have passed.
    pub hop_limit: u8,
}

impl Half {
    /// SYN, FIN and RST as in the header.
    const SYN: u16 = Flags::SYN as u16;
    const FIN: u16 = Flags::FIN as u16;
    const RST: u16 = Flags::RST as u16;
    const SEEN: u16 = 1 << 8;
    const ACKED: u16 = 1 << 9;
    /// Of the client's: no detail is kept of the connection any more. A field of its own would take 8 bytes.
    const COUNTED: u16 = 1 << 10;

    /// Returns whether a segment of this end was captured.
    #[inline]
    pub(crate) fn is_seen(&self) -> bool {
        self.marks & Self::SEEN != 0
    }

    /// Returns whether it acknowledged anything.
    #[inline]
    pub(crate) fn has_acknowledged(&self) -> bool {
        self.marks & Self::ACKED != 0
    }

    /// Returns whether its SYN was captured.
    pub(crate) fn has_syn(&self) -> bool {
        self.marks & Self::SYN != 0
    }

    /// Returns whether it ended its stream.
    pub(crate) fn has_fin(&self) -> bool {
        self.marks & Self::FIN != 0
    }

    /// Returns whether `segment` is a second SYN with another number: that of a second host behind the same address.
    #[inline]
    pub(crate) fn is_other_syn(&self, segment: &Segment) -> bool {
        segment.flags.any(Flags::SYN) && self.has_syn() && self.first != segment.sequence
    }

    /// Returns whether `syn` is the begin of what was captured of it: its own SYN, or what comes before that.
    fn began_with(&self, syn: &Segment) -> bool {
        let behind = u32::from(!self.has_syn());
        self.first == syn.sequence.wrapping_add(behind)
    }

    /// Returns whether it reset the connection.
    pub(crate) fn has_rst(&self) -> bool {
        self.marks & Self::RST != 0
    }
}

/// What an end's SYN offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Offer {
    /// Its maximum segment size.
    pub mss_bytes: Option<NonZeroU16>,
    /// Its window scale: the shift.
    pub window_scale: Option<u8>,
    /// Whether it permitted selective acknowledgements; unknown if the capture cut its options.
    pub sack_permitted: Option<bool>,
    /// Whether it sent timestamps; unknown if the capture cut its options.
    pub timestamps: Option<bool>,
    /// Whether the capture cut its options, so that none that is missing was surely not offered.
    pub options_cut: bool,
}

impl Offer {
    /// Returns what a SYN offers.
    pub(crate) fn of(segment: &Segment) -> Self {
        let known = |is_there: bool| (is_there || !segment.options_cut).then_some(is_there);
        Self {
            mss_bytes: segment.mss.and_then(NonZeroU16::new),
            window_scale: segment.window_scale,
            sack_permitted: known(segment.sack_permitted),
            timestamps: known(segment.timestamps.is_some()),
            options_cut: segment.options_cut,
        }
    }
}

/// How long one leg of a handshake took, in four bytes: nanoseconds up to 2 s, microseconds up to
/// 35 min.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leg(NonZeroU32);

impl Leg {
    const MICROSECONDS: u32 = 1 << 31;

    /// Returns the leg of `ns`; none if it is longer than any handshake.
    fn new(ns: u64) -> Option<Self> {
        let raw = if ns + 1 < u64::from(Self::MICROSECONDS) {
            ns as u32 + 1
        } else {
            let us = u32::try_from(ns / 1000).ok()?;
            (us < Self::MICROSECONDS).then_some(us | Self::MICROSECONDS)?
        };
        NonZeroU32::new(raw).map(Self)
    }

    pub(crate) fn ns(self) -> u64 {
        match self.0.get() {
            raw if raw & Self::MICROSECONDS != 0 => u64::from(raw & !Self::MICROSECONDS) * 1000,
            raw => u64::from(raw) - 1,
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub key: Key,
    /// Whether the client is the low end of the key.
    pub client_is_low: bool,
    /// Its number in the order of first packets, from 1.
    pub number: u32,
    /// When its first packet was captured, in nanoseconds since 1970.
    pub first_ns: u64,
    /// When its last packet was captured.
    pub last_ns: u64,
    /// The frame of its first packet.
    pub first_frame: Option<FrameId>,
    /// From SYN to SYN-ACK, and from there to the client's ACK.
    pub handshake: [Option<Leg>; 2],
    /// How far the windows in headers are to be shifted; none if that is not known.
    pub shifts: Option<[u8; 2]>,
    /// What the ends' SYNs offered.
    pub offers: [Offer; 2],
    /// What is counted of the ends.
    pub halves: [Half; 2],
    /// Everything else.
    pub detail: Option<Box<Detail>>,
}

impl Connection {
    /// Returns the connection that `segment` begins.
    pub(crate) fn new(key: Key, number: u32, client_is_low: bool, place: Place) -> Self {
        Self {
            key,
            client_is_low,
            number,
            first_ns: place.time_ns,
            last_ns: place.time_ns,
            first_frame: place.frame,
            handshake: [None; 2],
            shifts: None,
            offers: [Offer::default(); 2],
            halves: [Half::default(); 2],
            detail: None,
        }
    }

    /// Handles one segment that `end` sent, and says what it is.
    ///
    /// Cost: of a full-size frame of a bulk flow, 80 ns with decoding and finding the connection
    /// (docs/performance-notes.md). Nothing is allocated but where something happens for the first time.
    #[inline]
    pub(crate) fn handle_segment(&mut self, end: End, segment: &Segment, place: Place) -> Verdict {
        let elapsed_ns = place.time_ns.saturating_sub(self.last_ns);
        let is_syn = segment.flags.any(Flags::SYN);
        let mut verdict = Verdict::default();
        if segment.payload_bytes > 0 {
            verdict.add(Verdict::DATA);
        } else if segment.is_pure_ack() {
            verdict.add(Verdict::PURE_ACK);
        }
        if is_syn {
            self.handle_syn(end, segment, place);
        }
        if let Some(detail) = &mut self.detail {
            let seen = detail::Seen {
                halves: &self.halves,
                shifts: self.shifts,
                segment,
                end,
                place,
                elapsed_ns,
            };
            verdict.add(detail.handle_segment(&seen));
            if verdict.any(Verdict::DUPLICATE_FRAME) {
                self.last_ns = self.last_ns.max(place.time_ns);
                return verdict;
            }
        }
        self.count(end, segment);
        if is_syn {
            self.shifts = self.agreed_shifts();
        }
        let answers = Verdict::PURE_ACK | Verdict::DATA;
        if self.handshake[1].is_none() && end == End::Client && verdict.any(answers) {
            self.handle_handshake_ack(segment, place);
        }
        self.last_ns = self.last_ns.max(place.time_ns);
        if let Some(detail) = &mut self.detail {
            if detail.windows_are_doubtful {
                self.shifts = None;
            }
            detail.update_states(&self.halves, self.shifts);
        }
        verdict
    }

    /// Returns whether `segment` needs a [`Detail`]: it carries payload, or is not what a plain
    /// handshake and farewell look like.
    #[inline]
    pub(crate) fn needs_detail(&self, end: End, segment: &Segment) -> bool {
        let half = &self.halves[end as usize];
        // A SYN or FIN that is sent again, a keepalive.
        let repeats =
            half.is_seen() && !segment.flags.any(Flags::RST) && after(half.next, segment.sequence);
        let closes_window =
            segment.window == 0 && !segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST);
        segment.payload_bytes > 0
            || repeats
            || closes_window
            || detail::denies_connection(&self.halves, end, segment)
    }

    /// Returns whether a detail may begin: not where there was no place for one before, nor where it was handed
    /// back. It would take what is left of the connection for all of it.
    #[inline]
    pub(crate) fn may_have_detail(&self) -> bool {
        self.detail.is_none() && self.halves[0].marks & Half::COUNTED == 0
    }

    /// Keeps no detail from now on.
    pub(crate) fn only_count(&mut self) {
        self.halves[0].marks |= Half::COUNTED;
    }

    #[cold]
    pub(crate) fn make_detail(&mut self) -> &mut Detail {
        let mut detail = Box::<Detail>::default();
        // What passed before anything was kept but counts was the handshake.
        let elapsed_ns = self.last_ns.saturating_sub(self.first_ns);
        detail.life.add_elapsed(elapsed_ns);
        detail.set_full_segment(&self.offers);
        detail.set_handshake(self.handshake);
        detail.set_windows(&self.halves, self.shifts);
        detail.update_states(&self.halves, self.shifts);
        self.detail.insert(detail)
    }

    /// Returns whether both ends have ended their streams, or one has reset the connection.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        let [client, server] = &self.halves;
        (client.has_fin() && server.has_fin()) || client.has_rst() || server.has_rst()
    }

    /// Returns whether both ends acknowledged.
    pub(crate) fn is_set_up(&self) -> bool {
        self.halves.iter().all(Half::has_acknowledged)
    }

    /// Returns how long it took from the client's last segment to the last of all: what a refusal took.
    pub(crate) fn answered_last_ns(&self) -> u64 {
        let detail = self.detail.as_deref();
        let asked_ns = detail.map_or(0, |detail| detail.ends[0].last_frame_ns);
        self.last_ns.saturating_sub(asked_ns.max(self.first_ns))
    }

    /// Returns whether the server answered, as far as the capture knows: no SYN stayed alone. A client that
    /// acknowledges had an answer, whether it passed here or not.
    #[inline]
    pub(crate) fn is_accepted(&self) -> bool {
        let [client, server] = &self.halves;
        let is_answered = server.has_syn() || client.has_acknowledged();
        !client.has_syn() || is_answered || (server.packets > 0 && !server.has_rst())
    }

    /// Returns who reset a connection that carried no data, where that is all that happened to it: what else did is in
    /// its detail.
    #[inline]
    pub(crate) fn reset_without_data(&self) -> Option<End> {
        let [client, server] = &self.halves;
        let is_empty = self.payload_bytes() == 0 && !client.has_fin() && !server.has_fin();
        if !(client.has_syn() && server.has_syn() && is_empty) {
            return None;
        }
        let is_told = self.detail.is_some() && client.has_acknowledged();
        match (client.has_rst(), server.has_rst()) {
            (true, _) => (!is_told).then_some(End::Client),
            (_, true) => self.detail.is_none().then_some(End::Server),
            _ => None,
        }
    }

    /// Returns how much later than the way explains the server accepted, where that is 50 ms and the way again: the
    /// way as its data was acknowledged later, if half of the answers came in a quarter of that time too. Where they did
    /// not, a proxy near the client may acknowledge for a server that is as far as the handshake says.
    pub(crate) fn accepted_late_ns(&self) -> Option<u64> {
        const LATE_NS_MIN: u64 = 50_000_000;
        let accepted_ns = self.handshake[0]?.ns();
        if accepted_ns < LATE_NS_MIN {
            return None;
        }
        let [client, server] = &self.detail.as_deref()?.ends;
        let trip_ns = client.round_trip.spread.least()?;
        // Data that crosses looks like an answer at once, so the shortest says nothing; further words of the client
        // shorten the others.
        let answered_ns = trip_ns + server.answers.quantile(0.5)?;
        let late_ns = accepted_ns.saturating_sub(trip_ns);
        let is_late = late_ns >= LATE_NS_MIN.max(trip_ns) && answered_ns <= accepted_ns / 4;
        is_late.then_some(late_ns)
    }

    /// Returns whether `segment`, a SYN, begins another connection of the same ends and ports.
    ///
    /// 1. A SYN does if its number is not that of this one, and something of this one was captured that cannot come
    ///    before its SYN. Its own acknowledgement can, where a capture has them in another order.
    /// 2. A SYN-ACK does only if its end was done, as far as the capture shows: in one of its direction alone. A
    ///    second host that answers the same SYN sends no data.
    #[inline]
    pub(crate) fn is_begun_anew(&self, end: End, segment: &Segment) -> bool {
        let (half, peer) = (
            &self.halves[end as usize],
            &self.halves[end.other() as usize],
        );
        let is_same = half.is_seen() && half.began_with(segment);
        if segment.flags.any(Flags::ACK) {
            let is_done = half.data_packets > 0 && (!peer.is_seen() || half.has_fin());
            return !is_same && is_done;
        }
        let has_data = self.halves.iter().any(|half| half.data_packets > 0);
        let is_under_way = half.is_seen() || peer.is_seen() && !peer.has_syn();
        !is_same && (self.is_closed() || has_data || is_under_way)
    }

    /// Returns how many segments both ends sent.
    #[inline]
    pub(crate) fn packets(&self) -> u32 {
        let [client, server] = &self.halves;
        client.packets.saturating_add(server.packets)
    }

    /// Returns the payload that both ends sent.
    pub(crate) fn payload_bytes(&self) -> u64 {
        let [client, server] = &self.halves;
        client.payload_bytes + server.payload_bytes
    }

    /// Returns the window of `end` in bytes, if its scale is known.
    pub(crate) fn window_bytes(&self, end: End) -> Option<u64> {
        detail::window_bytes(&self.halves, self.shifts, end)
    }

    /// Returns what the SYNs agreed on: scales count if both offer one (RFC 7323, section 1.3).
    fn agreed_shifts(&self) -> Option<[u8; 2]> {
        if !self.halves.iter().all(Half::has_syn) {
            return None;
        }
        match self.offers.map(|offer| offer.window_scale) {
            [Some(client), Some(server)] => Some([client, server]),
            scales => {
                let is_refused =
                    |(scale, offer): (Option<u8>, &Offer)| scale.is_none() && !offer.options_cut;
                let mut ends = scales.into_iter().zip(&self.offers);
                ends.any(is_refused).then_some([0, 0])
            }
        }
    }

    /// Counts one segment and moves the numbers of its end.
    #[inline]
    fn count(&mut self, end: End, segment: &Segment) {
        let half = &mut self.halves[end as usize];
        half.packets = half.packets.saturating_add(1);
        half.hop_limit = segment.hop_limit;
        let flags = segment.flags;
        if segment.payload_bytes > 0 {
            half.data_packets = half.data_packets.saturating_add(1);
            half.payload_bytes += u64::from(segment.payload_bytes);
        } else if segment.is_pure_ack() {
            half.pure_acks = half.pure_acks.saturating_add(1);
        }
        let end_of_segment = segment.sequence.wrapping_add(segment.sequence_bytes());
        if half.is_seen() {
            // A second host moves nothing, nor does a reset: whoever forges one guesses its number.
            if !half.is_other_syn(segment) && !flags.any(Flags::RST) {
                half.next = furthest(half.next, end_of_segment);
            }
        } else if !flags.any(Flags::RST) || flags.any(Flags::ACK) || segment.sequence != 0 {
            half.marks |= Half::SEEN;
            half.first = segment.sequence;
            half.next = end_of_segment;
        }
        if flags.any(Flags::ACK) && !flags.any(Flags::RST) {
            let acknowledgement = segment.acknowledgement;
            half.acknowledged = if half.has_acknowledged() {
                furthest(half.acknowledged, acknowledgement)
            } else {
                acknowledgement
            };
            half.marks |= Half::ACKED;
        }
        if !flags.any(Flags::RST) {
            half.window = segment.window;
        }
        half.marks |= u16::from(flags.0) & (Half::SYN | Half::FIN | Half::RST);
    }

    #[cold]
    fn handle_syn(&mut self, end: End, segment: &Segment, place: Place) {
        let half = &mut self.halves[end as usize];
        if half.is_other_syn(segment) {
            return;
        }
        // What came of it before was of an earlier connection, as its acknowledgement of a SYN is (RFC 5961, section 4).
        if !half.began_with(segment) {
            half.marks &= !(Half::SEEN | Half::ACKED);
        }
        self.offers[end as usize] = Offer::of(segment);
        let is_answer = end == End::Server && segment.flags.any(Flags::ACK);
        let client = &self.halves[End::Client as usize];
        // A SYN that was sent twice has no round trip: the answer may be to either (Karn).
        if is_answer && client.packets == 1 && client.has_syn() && self.handshake[0].is_none() {
            self.handshake[0] = Leg::new(place.time_ns.saturating_sub(self.last_ns));
        }
        if let Some(detail) = &mut self.detail {
            detail.set_full_segment(&self.offers);
            detail.set_handshake(self.handshake);
        }
    }

    #[cold]
    fn handle_handshake_ack(&mut self, segment: &Segment, place: Place) {
        let server = &self.halves[End::Server as usize];
        let is_first = server.packets == 1 && server.has_syn();
        if is_first && segment.acknowledgement == server.next {
            self.handshake[1] = Leg::new(place.time_ns.saturating_sub(self.last_ns));
            if let Some(detail) = &mut self.detail {
                detail.set_handshake(self.handshake);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Connection, Leg};

    #[test]
    fn a_connection_takes_as_much_as_the_reference_says() {
        assert_eq!(size_of::<Connection>(), 160);
    }

    #[test]
    fn legs_of_a_handshake_are_kept() {
        for ns in [0, 1, 2_147_483_646, 10_000_000_000, 2_000_000_000_000] {
            assert_eq!(Leg::new(ns).map(Leg::ns), Some(ns));
        }
        assert_eq!(Leg::new(3_000_000_000_000), None);
    }
}
