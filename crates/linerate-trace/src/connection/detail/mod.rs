//! Everything about a connection beyond its counts: round trips, retransmissions, windows, sizes,
//! gaps, and what happened.
//!
//! Each end has an [`EndDetail`], which holds what concerns the data that this end sends, and what
//! it says as a receiver of the other's.

/// What an end says of the other's data.
mod acknowledgement;
/// Counts of one end.
mod counts;
/// Frames that may be captured twice.
mod recent;
/// Windows and silences.
mod silence;

pub use counts::Counts;

use linerate_model::sample::End;

use super::gaps::{Cause, GAP_NS_MIN, GapList};
use super::holes::Holes;
use super::incident::{Example, IncidentKind, Incidents};
use super::life::{Life, Phase, Speech};
use super::outstanding::{Outstanding, Sent};
use super::picture::Picture;
use super::resending::{Recovery, Repeated, Resent, TIMER_NS_MIN};
use super::sacked::Sacked;
use super::sequence::{after, distance};
use super::shares::{Shares, State};
use super::sizes::Sizes;
use super::spread::{Durations, Spread};
use super::standing::Standing;
use super::timeline::Timeline;
use super::{FrameId, Half, Leg, Offer, Place, Verdict};
use crate::frame::{Complaint, Flags, Reason, Segment};
use recent::Recent;

/// What timestamps take of each segment.
const TIMESTAMP_BYTES: u32 = 12;
/// A full segment where no SYN was captured: what Ethernet carries with timestamps.
const SEGMENT_BYTES_DEFAULT: u32 = 1448;
/// The largest segment that a link carries: jumbo frames with headers taken off. Above it only
/// superframes and the loopback device lie.
const SEGMENT_BYTES_MAX: u32 = 9176;

/// An acknowledgement that came so much later than the path explains waited for its timer. The
/// shortest in use are 40 ms, less a tick; below lie the scheduling of busy hosts, and radio.
const DELAYED_ACK_NS_MIN: u64 = 25_000_000;
/// No stack delays longer than this; RFC 9293 allows 500 ms, and a tick of 100 ms beyond.
const DELAYED_ACK_NS_MAX: u64 = 600_000_000;

/// How much one timer may differ: ticks of 4 to 16 ms, and the scheduling of busy hosts.
const TIMER_SLACK_NS: u64 = 15_000_000;
/// Late acknowledgements from which it shows whether they waited alike.
const LATE_ACKS_MIN: u32 = 3;

/// How long after the acknowledgement a held segment follows, beside the path: the scheduling of
/// a host that is not overloaded.
const RELEASE_NS_MAX: u64 = 1_000_000;

/// Full segments on their way from which a round trip is one under load.
const LOADED_SEGMENTS: u32 = 4;
/// How long a queue may still be there that was there before.
const QUEUE_NS_MAX: u64 = 2_000_000_000;
/// Short segments held by Nagle's algorithm to each that it would not have let pass, at the least:
/// beyond, the algorithm is off, and something else held them.
const NAGLE_DEFIED_MAX: u32 = 8;

/// The part of the shortest round trip from which a wait is a program's: what else is sent on the way makes
/// round trips differ by some percent to a quarter.
const ANSWER_TRIP_PART: u64 = 3;

/// What one end repeats, and for how long, until the other is called silent.
const UNHEARD_MIN: u32 = 2;
const UNHEARD_NS_MIN: u64 = 1_000_000_000;

/// Routers that no path has: what might still have passed so many and ended on its way went in a circle.
const CIRCLING_HOPS_MIN: u8 = 40;

/// A silence from which a connection was idle, so that one end may have forgotten it: retransmission timers of what is
/// on its way begin below.
const IDLE_NS_MIN: u64 = 1_000_000_000;

/// How many times longer the way to one end is, if the capture was taken at the other.
const NEARER: u64 = 8;
/// How long it is at the least: below, hosts take as long to answer as the way does.
const FAR_NS_MIN: u64 = 100_000;

/// A frame that comes again later than this was sent again, whatever its identification: bridges
/// take microseconds, the shortest retransmission timers some milliseconds.
const CAPTURED_TWICE_NS_MAX: u64 = 3_000_000;

/// Segments beyond the window, of a hundred, from which the window's scale is doubted. A few come of
/// acknowledgements that the capture missed.
const BEYOND_WINDOW_PERCENT: u32 = 1;
const BEYOND_WINDOW_MIN: u32 = 3;

/// Short segments in a row from which they are called a train.
const TRAIN_MIN: u32 = 16;

/// One end of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndDetail {
    pub counts: Counts,
    /// From a segment to its acknowledgement, both as captured.
    pub round_trip: Durations,
    /// Whether an acknowledgement without data ended one of them: data may wait for the program that sends it.
    pub(super) has_bare_trip: bool,
    /// Of these, those with several full segments on their way.
    pub round_trip_loaded: Durations,
    /// The same by timestamps.
    pub round_trip_by_stamp: Durations,
    /// Segments with payload to each acknowledgement that the other end sent.
    pub data_per_ack: Spread,
    pub sizes: Sizes,
    /// What its time went into.
    pub shares: Shares,
    /// The windows that it offered, in bytes.
    pub window: Spread,
    /// The largest of them, that of its SYN included.
    pub(super) window_bytes_max: u64,
    /// How long its delayed acknowledgements waited.
    pub ack_delay: Durations,
    /// How long its window was closed.
    pub zero_window: Spread,
    /// The most bytes that were on their way at once.
    pub flight_bytes_max: u32,
    /// What was on its way in silences.
    pub standing: Standing,
    pub(super) outstanding: Outstanding,
    pub(super) holes: Holes,
    pub(super) recovery: Option<Recovery>,
    pub(super) resent: Resent,
    /// Acknowledgements up to here may be late for what was sent again, or came late: they give
    /// no round trip.
    pub(super) ambiguous_to: Option<u32>,
    /// The last round trip under load, and when it ended.
    loaded_trip: Option<(u64, u64)>,
    /// The most payload of one segment of this end that was acknowledged, not only selectively.
    pub(super) arrived_bytes_max: u32,
    /// Whether what it sent was acknowledged as soon as the way allows, and whether it still is.
    pub way: Way,
    /// From the other end's last data to its own, without the way.
    pub answers: Durations,
    /// When it acknowledged all that it had been sent, and said nothing with that.
    pub(super) acknowledged_all_ns: u64,
    /// What passed of its answers' time after that: surely its program's.
    pub answers_proven_ns: u64,
    /// The frame that it sent last.
    last_frame: Option<FrameId>,
    /// What it repeated since it heard of the other end, and the timers among it.
    pub(super) unheard: u32,
    pub(super) unheard_stalls: (u32, u64),
    /// The keepalives among it.
    unheard_keepalives: u32,
    /// Since when the first of it was without an answer, and its frame.
    unheard_since: Option<Place>,
    /// What it retransmitted whose first sending was not captured: of that the second is the first here.
    pub(crate) filled_bytes: u64,
    /// A large segment that is sent again and again.
    pub(super) repeated: Option<Repeated>,
    /// Up to where it had sent when a router said that what carries more than so many bytes does not get through.
    pub(super) too_big: Option<(u32, u32)>,
    /// Where it probed a closed window with a byte that is new.
    probed: Option<u32>,
    /// When it last sent what it sends only if something arrives: a selective or duplicate acknowledgement.
    pub(super) arrival_ns: u64,
    /// SYNs that it sent again and that nothing has answered yet.
    syns_again: u32,
    /// Whether it sent SYNs with different numbers: which is sent again is not known.
    has_other_syn: bool,
    /// Short segments that it sent while a short one was on its way.
    defies_nagle: u32,
    pub(super) last_data: Place,
    /// Whether that was sent again, or overtaken.
    last_data_is_late: bool,
    /// Whether it is the first piece of a fragmented packet: how much the others carry is not known.
    last_data_is_piece: bool,
    /// Whether it came while the other end's data was on its way: then it asks for nothing that the other waits for.
    last_data_crosses: bool,
    /// The highest edge of selective acknowledgements that it sent.
    pub(super) sacked_to: Option<u32>,
    /// What it acknowledged selectively.
    pub(super) sacked: Sacked,
    /// Duplicate acknowledgements in a row that it sent.
    pub(super) duplicate_run: u16,
    /// Whether the capture cut the selective blocks of its last acknowledgement.
    pub(super) sack_is_cut: bool,
    pub(super) last_data_bytes: u32,
    /// Whether more was queued behind the furthest that it sent: an end sets PSH where nothing is (RFC 9293,
    /// section 3.9.1.2).
    pub(super) has_more: bool,
    /// Whether it does so: something set PSH.
    pub(super) sets_push: bool,
    /// The last segment that more was queued behind: as long as it makes them, whatever both agreed on.
    unpushed_bytes: u32,
    first_data_ns: u64,
    /// A timestamp that was not echoed yet, and when it was sent.
    stamp: Option<(u32, u64)>,
    last_stamp: Option<u32>,
    unacknowledged_packets: u32,
    sent_keepalive: bool,
    zero_since: Option<Place>,
    held: Option<Held>,
    train: Train,
    /// The last frames, as they would be captured twice.
    recent: Recent,
    /// The identification of its last packet, and whether it ever changed from one to the next.
    identification: u16,
    numbers_packets: bool,
    pub last_frame_ns: u64,
    /// The furthest number that it offered room for.
    edge: Option<u32>,
    /// Segments that it sent beyond what the other end had offered room for.
    beyond_window: u32,
    /// From the capture to this end and back, in nanoseconds, as the handshake said.
    leg_ns: Option<u64>,
    /// Bytes of a full segment of what it sends.
    pub(super) segment_bytes: u32,
    /// Whether that follows from the handshake.
    segment_is_known: bool,
    /// What the other end takes at the most.
    segment_bytes_max: u32,
}

/// A short segment that was acknowledged late: what Nagle's algorithm may wait for.
#[derive(Debug, Clone, Copy)]
struct Held {
    data: Place,
    ack: Place,
    /// What the receiver's window had left before the acknowledgement.
    room_bytes: u64,
    gap: Option<(Cause, End)>,
    gap_ns: u64,
}

/// The way of what one end sends, and back: waits look alike whose way became longer for good.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Way {
    /// Whether something was acknowledged at once before the first wait.
    was_short: bool,
    has_waited: bool,
    /// How much longer than the way the shortest round trip took since then.
    beyond_ns: Option<u64>,
}

impl Way {
    /// Adds a round trip that took `beyond_ns` more than the way.
    #[inline]
    pub(super) fn add(&mut self, beyond_ns: u64) {
        if self.has_waited {
            self.beyond_ns = Some(
                self.beyond_ns
                    .map_or(beyond_ns, |least| least.min(beyond_ns)),
            );
        } else {
            self.was_short |= beyond_ns < DELAYED_ACK_NS_MIN / 2;
        }
    }

    /// Something was waited for.
    #[cold]
    pub(super) fn wait(&mut self) {
        self.has_waited = true;
    }

    /// Returns how much longer the way may have become, if it may.
    pub(crate) fn longer_ns(self) -> Option<u64> {
        (self.was_short && self.has_waited).then(|| self.beyond_ns.unwrap_or(u64::MAX))
    }
}

/// Short segments one behind the other.
#[derive(Debug, Clone, Copy, Default)]
struct Train {
    segments: u32,
    began: Option<Place>,
    last: Option<Place>,
}

impl EndDetail {
    /// Returns how long it sent no payload; where none was captured, that is not known, and none.
    pub(super) fn silent_ns(&self, now_ns: u64) -> u64 {
        let (_, last_ns) = self.data_times_ns().unwrap_or((0, now_ns));
        now_ns.saturating_sub(last_ns)
    }

    /// Returns when it sent its first payload and its last, if it sent any.
    pub(crate) fn data_times_ns(&self) -> Option<(u64, u64)> {
        (self.sizes.packets > 0).then_some((self.first_data_ns, self.last_data.time_ns))
    }

    /// Returns how long a round trip took in the queue that was there a moment ago, which is part of the way.
    fn queued_ns(&self, now_ns: u64) -> u64 {
        self.loaded_trip
            .filter(|(_, at_ns)| now_ns.saturating_sub(*at_ns) <= QUEUE_NS_MAX)
            .map_or(0, |(trip_ns, _)| trip_ns)
    }

    /// Returns whether a segment is shorter than this end makes them when it has more: than a full one, or less where
    /// the path takes less.
    #[inline]
    pub(super) fn is_short(&self, bytes: u32) -> bool {
        let has_own = self.sets_push && self.unpushed_bytes > self.segment_bytes / 2;
        !(bytes.is_multiple_of(self.segment_bytes) || has_own && bytes >= self.unpushed_bytes)
    }

    /// Returns the bytes of a full segment, if the handshake tells them.
    pub(crate) fn full_bytes(&self) -> Option<u32> {
        self.segment_is_known.then_some(self.segment_bytes)
    }

    /// A segment that is longer than what both ends offered, though the other end takes it. One as long as that takes
    /// is a full one, and several of that at once show it too; where the other's offer was not captured, whatever comes.
    #[cold]
    fn grow_segment(&mut self, bytes: u32) {
        let is_of_own = self.segment_is_known && bytes.is_multiple_of(self.segment_bytes);
        if !is_of_own && bytes.is_multiple_of(self.segment_bytes_max) {
            self.segment_bytes = self.segment_bytes_max;
        } else if !self.segment_is_known && bytes < self.segment_bytes_max {
            self.segment_bytes = bytes;
        }
    }

    /// Returns whether a segment longer than a full one is several: longer than what the other end takes, or a multiple
    /// of what the sender's own link carries. Between them lies what a sender with an offer below its link makes.
    #[inline]
    fn is_superframe(&self, bytes: u32) -> bool {
        bytes > self.segment_bytes_max || bytes.is_multiple_of(self.segment_bytes)
    }
}

/// What a detail is shown of a segment: the connection as it was before it.
pub(crate) struct Seen<'a> {
    /// Both ends' counts.
    pub halves: &'a [Half; 2],
    /// How far windows are to be shifted, if that is known.
    pub shifts: Option<[u8; 2]>,
    pub segment: &'a Segment,
    pub end: End,
    pub place: Place,
    /// Since the last packet of the connection.
    pub elapsed_ns: u64,
}

/// Everything about a connection beyond its counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Detail {
    /// The client, then the server.
    pub ends: [EndDetail; 2],
    /// What its life went into.
    pub life: Life,
    /// Times without a packet.
    pub gaps: GapList,
    /// What happened.
    pub incidents: Incidents,
    /// The connection over time, if there was room for it.
    pub timeline: Option<Box<Timeline>>,
    /// As it is drawn, if that is wanted.
    pub picture: Option<Box<Picture>>,
    /// The round trip that the last segment ended.
    pub trip_ns: Option<u64>,
    /// Whether both ends permit selective acknowledgements.
    has_sack: bool,
    /// Whether more is on its way than the windows allow: then their scale is another.
    pub windows_are_doubtful: bool,
    /// Frames that were captured twice.
    pub duplicate_frames: u32,
    /// Ranges that were acknowledged, but not captured.
    pub holes_of_capture: u32,
    /// Who sent payload last.
    last_sender: Option<End>,
    /// The frame that ended its last time of being idle.
    idle_until: Option<FrameId>,
}

/// Returns whether `segment` is the SYN again that is all its end sent. No timer sends one after some
/// milliseconds.
fn is_first_syn(half: &Half, segment: &Segment) -> bool {
    let is_same = segment.flags.any(Flags::SYN) && segment.sequence == half.first;
    is_same && half.packets == 1 && half.has_syn()
}

/// Returns whether the reset of `end` says that what the other end acknowledged is of no connection that it knows: the
/// other answered its SYN with an acknowledgement of an earlier one (RFC 9293, section 3.5.1).
#[inline]
pub(crate) fn denies_connection(halves: &[Half; 2], end: End, segment: &Segment) -> bool {
    let (half, peer) = (&halves[end as usize], &halves[end.other() as usize]);
    segment.flags.any(Flags::RST)
        && !segment.flags.any(Flags::ACK)
        && half.has_syn()
        && !half.has_acknowledged()
        && !peer.has_syn()
        && peer.has_acknowledged()
        && peer.acknowledged == segment.sequence
        && peer.acknowledged != half.next
}

/// Returns the window of `end` in bytes: none if its scale is not known.
#[inline]
pub(crate) fn window_bytes(halves: &[Half; 2], shifts: Option<[u8; 2]>, end: End) -> Option<u64> {
    Some(u64::from(halves[end as usize].window) << shifts?[end as usize])
}

impl Detail {
    /// Sets the full segments' sizes by what the SYNs offered.
    ///
    /// A sender obeys the other end's MSS (RFC 9293, section 3.7.1), and its own link, which its own offer shows as a
    /// rule; where that was set or rewritten to less, its first segment of the other's size tells.
    pub(crate) fn set_full_segment(&mut self, offers: &[Offer; 2]) {
        let stamps = match offers.map(|offer| offer.timestamps) {
            [Some(client), Some(server)] => Some(client && server),
            [Some(false), None] | [None, Some(false)] => Some(false),
            _ => None,
        };
        self.has_sack = offers
            .iter()
            .all(|offer| offer.sack_permitted == Some(true));
        let options = if stamps == Some(false) {
            0
        } else {
            TIMESTAMP_BYTES
        };
        for end in End::BOTH {
            let [offered, taken] = [end, end.other()].map(|end| offers[end as usize].mss_bytes);
            let [offered, taken] = [offered, taken].map(|mss| mss.map(|mss| u32::from(mss.get())));
            let payload = |mss: u32| mss.saturating_sub(options).max(1);
            let own = &mut self.ends[end as usize];
            // Where the options were cut, the largest segment that comes tells.
            own.segment_is_known = taken.is_some() && stamps.is_some();
            own.segment_bytes_max = match taken {
                Some(taken) if own.segment_is_known => payload(taken),
                taken => taken.unwrap_or(SEGMENT_BYTES_MAX),
            };
            own.segment_bytes = match (offered, taken) {
                (Some(offered), Some(taken)) => payload(offered.min(taken)),
                (offered, taken) => offered.or(taken).map_or(SEGMENT_BYTES_DEFAULT, payload),
            };
        }
    }

    /// Sets the largest windows by what stood in the header of each end's last segment: a SYN's has no scale.
    pub(crate) fn set_windows(&mut self, halves: &[Half; 2], shifts: Option<[u8; 2]>) {
        for end in End::BOTH {
            let half = &halves[end as usize];
            let is_syn = half.has_syn() && half.packets == 1;
            let shift = shifts
                .filter(|_| !is_syn)
                .map_or(0, |shifts| shifts[end as usize]);
            self.ends[end as usize].window_bytes_max = u64::from(half.window) << shift;
        }
    }

    /// Sets the round trips to both ends by the times of the handshake.
    pub(crate) fn set_handshake(&mut self, handshake: [Option<Leg>; 2]) {
        // From the SYN to its answer is the way to the server; from there to the ACK is the
        // client's.
        let [server_ns, client_ns] = handshake.map(|leg| leg.map(Leg::ns));
        self.ends[End::Server as usize].leg_ns = server_ns;
        self.ends[End::Client as usize].leg_ns = client_ns;
    }

    /// Returns how long it takes from the capture to `end` and back, as far as it is known.
    pub(crate) fn leg_ns(&self, end: End) -> Option<u64> {
        // What one end sends comes back from the other.
        let measured = self.ends[end.other() as usize].round_trip.spread.least();
        let handshake = self.ends[end as usize].leg_ns;
        match (measured, handshake) {
            (Some(measured), Some(handshake)) => Some(measured.min(handshake)),
            (measured, handshake) => measured.or(handshake),
        }
    }

    /// Returns whether the way to `end` is known as a bound alone: only its data acknowledged, so that what its program
    /// took may be in it, and no handshake shows the way without.
    pub(crate) fn is_way_bound(&self, end: End) -> bool {
        let sender = &self.ends[end.other() as usize];
        let is_measured = sender.round_trip.spread.least().is_some();
        is_measured && !sender.has_bare_trip && self.ends[end as usize].leg_ns.is_none()
    }

    /// Returns the shortest round trip from end to end, as far as it is known.
    pub(crate) fn round_trip_ns(&self) -> Option<u64> {
        match End::BOTH.map(|end| self.leg_ns(end)) {
            [Some(client), Some(server)] => Some(client + server),
            [client, server] => client.or(server),
        }
    }

    /// Returns the end that the capture was taken at, if it is far nearer to one than to the other.
    pub(crate) fn captured_at(&self) -> Option<End> {
        // An end that sends no data shows how far it is by the timestamps that it echoes.
        let [client_ns, server_ns] = End::BOTH.map(|end| {
            let stamps = &self.ends[end.other() as usize].round_trip_by_stamp;
            self.leg_ns(end).or(stamps.spread.least())
        });
        let (client_ns, server_ns) = client_ns.zip(server_ns)?;
        if client_ns.max(server_ns) < FAR_NS_MIN {
            None
        } else if client_ns.saturating_mul(NEARER) < server_ns {
            Some(End::Client)
        } else if server_ns.saturating_mul(NEARER) < client_ns {
            Some(End::Server)
        } else {
            None
        }
    }

    /// Handles one segment.
    #[inline]
    pub(crate) fn handle_segment(&mut self, seen: &Seen<'_>) -> Verdict {
        let from = seen.end;
        for end in &mut self.ends {
            end.shares.add_elapsed(seen.elapsed_ns);
        }
        self.life.add_elapsed(seen.elapsed_ns);
        self.trip_ns = None;
        if self.is_duplicate_frame(seen) {
            self.handle_copy(seen);
            return Verdict::DUPLICATE_FRAME;
        }
        if seen.segment.flags.any(Flags::RST) {
            self.handle_reset(seen);
        }
        let mut verdict = self.handle_sequence(seen);
        verdict.add(self.handle_acknowledgement(seen, verdict));
        verdict.add(self.handle_window(seen));
        if seen.elapsed_ns >= GAP_NS_MIN {
            self.handle_gap(seen, verdict);
        }
        let segment = seen.segment;
        self.tell_life(seen, verdict);
        // The byte of a keepalive or probe says nothing.
        let has_data = segment.payload_bytes > 0
            && !verdict.any(Verdict::KEEPALIVE | Verdict::ZERO_WINDOW_PROBE);
        if has_data && self.last_sender == Some(from.other()) {
            self.handle_turn(seen, verdict);
        }
        self.ends[from.other() as usize].unheard = 0;
        self.ends[from.other() as usize].unheard_stalls = (0, 0);
        let own = &mut self.ends[from as usize];
        own.last_frame = seen.place.frame;
        own.sent_keepalive = verdict.any(Verdict::KEEPALIVE | Verdict::ZERO_WINDOW_PROBE);
        own.counts.congestion_marked += u32::from(segment.congestion_marked);
        own.counts.congestion_echoes +=
            u32::from(segment.flags.any(Flags::ECE) && !segment.flags.any(Flags::SYN));
        if has_data {
            if own.first_data_ns == 0 {
                own.first_data_ns = seen.place.time_ns;
            }
            own.last_data = seen.place;
            own.last_data_is_late = verdict.any(Verdict::RETRANSMISSION | Verdict::OUT_OF_ORDER);
            let other = &seen.halves[from.other() as usize];
            own.last_data_crosses = other.is_seen() && after(other.next, segment.acknowledgement);
            own.last_data_is_piece = segment.fragmented;
            // Of a packet in pieces the first is seen; the whole was as long as its sender could make it.
            own.last_data_bytes = if segment.fragmented {
                own.segment_bytes
            } else {
                segment.payload_bytes
            };
            self.last_sender = Some(from);
            // With data on its way back, the other end's next segment need not follow the ACK.
            self.ends[from.other() as usize].held = None;
        }
        if let Some(timeline) = &mut self.timeline {
            let bin = timeline.at(seen.place.time_ns, from);
            bin.data_packets += u32::from(segment.payload_bytes > 0);
            bin.pure_acks += u32::from(segment.is_pure_ack());
            bin.payload_bytes += u64::from(segment.payload_bytes);
            bin.retransmissions += u32::from(verdict.any(Verdict::RETRANSMISSION));
        }
        verdict
    }

    /// A frame that was captured before: at its other end, perhaps, where what it carries arrives now.
    #[cold]
    fn handle_copy(&mut self, seen: &Seen<'_>) {
        self.duplicate_frames = self.duplicate_frames.saturating_add(1);
        let segment = seen.segment;
        let end = segment.sequence.wrapping_add(segment.payload_bytes);
        if segment.payload_bytes > 0 && end == seen.halves[seen.end as usize].next {
            self.ends[seen.end as usize].last_data.time_ns = seen.place.time_ns;
            self.life.arrive();
        }
    }

    /// Finds out what holds from now on. `halves` are as they are behind the segment.
    #[inline]
    pub(crate) fn update_states(&mut self, halves: &[Half; 2], shifts: Option<[u8; 2]>) {
        for from in End::BOTH {
            let state = self.state(halves, shifts, from);
            let own = &mut self.ends[from as usize];
            own.shares.enter(state);
            let (half, peer) = (&halves[from as usize], &halves[from.other() as usize]);
            if peer.has_acknowledged() {
                let flight = distance(peer.acknowledged, half.next).max(0) as u32;
                own.flight_bytes_max = own.flight_bytes_max.max(flight);
            }
        }
        let states = End::BOTH.map(|end| self.ends[end as usize].shares.state());
        self.life.enter(halves, states);
    }

    /// Says what the time until this segment went into, as far as it tells.
    #[inline]
    fn tell_life(&mut self, seen: &Seen<'_>, verdict: Verdict) {
        let from = seen.end;
        if verdict.any(Verdict::REPEATS) {
            self.note_unheard(seen, verdict.any(Verdict::KEEPALIVE));
            if verdict.any(Verdict::TIMEOUT | Verdict::TAIL_PROBE) {
                self.life.recover(seen.elapsed_ns);
            }
        }
        if seen.segment.payload_bytes == 0 || verdict.any(Verdict::REPEATS) {
            return;
        }
        let queued_ns = self.ends[from.other() as usize].queued_ns(seen.place.time_ns);
        let leg_ns = self.leg_ns(from).unwrap_or(0);
        let trip_ns = if self.has_come_late(seen) {
            u64::MAX
        } else {
            leg_ns.max(queued_ns)
        };
        self.life.handle_data(&Speech {
            end: from,
            last: self.last_sender,
            leg_ns,
            trip_ns,
            is_nagle: verdict.any(Verdict::NAGLE_RELEASED),
        });
    }

    /// Notes a repetition of an end that may not hear of the other any more. What came before the first
    /// keepalive was nobody's silence; what came before any other was the wait for an answer.
    #[cold]
    fn note_unheard(&mut self, seen: &Seen<'_>, is_keepalive: bool) {
        let own = &mut self.ends[seen.end as usize];
        if own.unheard == 0 {
            let waited_ns = if is_keepalive { 0 } else { seen.elapsed_ns };
            own.unheard_keepalives = 0;
            own.unheard_since = Some(Place {
                time_ns: seen.place.time_ns.saturating_sub(waited_ns),
                ..seen.place
            });
            self.life.handle_repetition(seen.end, waited_ns);
        }
        own.unheard += 1;
        own.unheard_keepalives += u32::from(is_keepalive);
    }

    /// Returns whether what an end answers now came late to it, or its acknowledgement was lost: no stack holds one
    /// back for so long.
    fn has_come_late(&self, seen: &Seen<'_>) -> bool {
        let (from, to) = (seen.end, seen.end.other());
        let (half, peer) = (&seen.halves[from as usize], &seen.halves[to as usize]);
        let asked_ns = self.ends[to as usize].last_data.time_ns;
        let waited_ns = seen.place.time_ns.saturating_sub(asked_ns);
        if self.last_sender != Some(to) || waited_ns < DELAYED_ACK_NS_MAX {
            return false;
        }
        // Where the capture leaves out what has no payload nothing shows, and where it was taken at that end
        // the host had it.
        let shows = half.pure_acks > 0 || peer.pure_acks > 0;
        shows
            && after(peer.next, half.acknowledged)
            && waited_ns > DELAYED_ACK_NS_MAX + self.leg_ns(from).unwrap_or(u64::MAX / 2)
            && self.captured_at() != Some(from)
    }

    /// The other end spoke last, and now this one answers.
    fn handle_turn(&mut self, seen: &Seen<'_>, verdict: Verdict) {
        let (from, to) = (seen.end, seen.end.other());
        let other = &self.ends[to as usize];
        // Where something was sent again, the network took its part of the time.
        if other.ambiguous_to.is_some() || other.recovery.is_some() || other.last_data_is_late {
            return;
        }
        // Nor does an end wait for the other alone whose own data was on its way.
        if other.last_data_crosses {
            return;
        }
        if self.has_come_late(seen) {
            return;
        }
        let asked = other.last_data;
        let leg_ns = self.leg_ns(from);
        let waited_ns = seen.place.time_ns.saturating_sub(asked.time_ns);
        let length_ns = waited_ns.saturating_sub(leg_ns.unwrap_or(0));
        self.ends[from as usize].answers.add(length_ns);
        let is_first = !verdict.any(Verdict::RETRANSMISSION | Verdict::OUT_OF_ORDER);
        let is_window = End::BOTH
            .iter()
            .any(|&end| self.ends[end as usize].shares.state().is_window());
        // Where no round trip was seen, nobody knows the network's part; and by some of it the way may
        // take longer than it did at its best.
        let Some(leg_ns) = leg_ns.filter(|_| is_first && !is_window) else {
            return;
        };
        if length_ns < GAP_NS_MIN.max(leg_ns / ANSWER_TRIP_PART) {
            return;
        }
        let example = Example {
            length_ns,
            ..Example::between(asked, seen.place, 0)
        };
        self.ends[to as usize].way.wait();
        if !after(
            seen.halves[to as usize].next,
            seen.halves[from as usize].acknowledged,
        ) {
            let own = &mut self.ends[from as usize];
            let since_ns = seen.place.time_ns.saturating_sub(own.acknowledged_all_ns);
            own.answers_proven_ns += since_ns.min(length_ns);
        }
        self.incidents.note(IncidentKind::Answer, from, example);
    }

    /// A reset: of what, and by whom.
    #[cold]
    fn handle_reset(&mut self, seen: &Seen<'_>) {
        let (from, to) = (seen.end, seen.end.other());
        let is_ended = seen
            .halves
            .iter()
            .any(|half| half.has_fin() || half.has_rst());
        let is_setup = !seen.halves.iter().all(|half| half.has_acknowledged());
        let is_of_earlier = denies_connection(seen.halves, from, seen.segment);
        if is_ended || is_setup && !is_of_earlier {
            return;
        }
        let other = &self.ends[to as usize];
        let (hops, hops_before) = (seen.segment.hop_limit, seen.halves[from as usize].hop_limit);
        let differs = hops_before != 0 && hops_before != hops;
        // A keepalive, of which nothing else was heard; a probe of a closed window is none.
        let is_keepalive =
            other.sent_keepalive && other.unheard > 0 && seen.halves[from as usize].window != 0;
        let forgot = match (is_of_earlier, is_keepalive) {
            (true, _) => Some(2),
            (_, true) => Some(0),
            _ => (self.is_of_no_connection(seen) && !differs).then_some(1),
        };
        let value = if differs {
            u32::from(hops) | u32::from(hops_before) << 8
        } else {
            0
        };
        let example = Example {
            at_ns: seen.place.time_ns,
            length_ns: 0,
            frames: [other.last_frame, seen.place.frame, None],
            value: forgot.unwrap_or(value),
        };
        let kind = match forgot {
            Some(_) => IncidentKind::HalfOpen,
            None => IncidentKind::Reset,
        };
        self.incidents.note(kind, from, example);
    }

    /// Returns whether a reset is that of a host without this connection (RFC 9293, section 3.10.7.1): without ACK, and
    /// with the number that the data before it acknowledges, which came after the connection had been idle. A program
    /// that closes resets with ACK, and with its own next number.
    fn is_of_no_connection(&self, seen: &Seen<'_>) -> bool {
        let [own, other] = [seen.end, seen.end.other()].map(|end| &self.ends[end as usize]);
        let peer = &seen.halves[seen.end.other() as usize];
        let is_answer = !seen.segment.flags.any(Flags::ACK)
            && seen.segment.sequence == peer.acknowledged
            && other.last_data.frame.is_some()
            && other.last_data.frame == other.last_frame;
        // Nothing of its own since then.
        is_answer && self.idle_until.is_some() && own.last_frame < self.idle_until
    }

    /// Notes what a router or host says of a segment of `end`.
    #[cold]
    pub(crate) fn handle_complaint(
        &mut self,
        halves: &[Half; 2],
        end: End,
        complaint: &Complaint,
        place: Place,
    ) {
        let (kind, value) = match complaint.reason {
            Reason::TooBig(mtu_bytes) => {
                let own = &mut self.ends[end as usize];
                let stamps_bytes = own.last_stamp.map_or(0, |_| TIMESTAMP_BYTES);
                let headers_bytes = complaint.addresses.headers_bytes() + stamps_bytes;
                // Old routers name no size.
                let fits_bytes = match mtu_bytes {
                    0 => own.segment_bytes.saturating_sub(1),
                    mtu_bytes => mtu_bytes.saturating_sub(headers_bytes),
                };
                own.too_big = Some((halves[end as usize].next, fits_bytes));
                (IncidentKind::TooBig, mtu_bytes)
            }
            // Who counts routers (traceroute) lets segments end at each of them.
            Reason::HopLimit if halves[end as usize].hop_limit < CIRCLING_HOPS_MIN => return,
            Reason::NoWay => (IncidentKind::Unreachable, 1),
            Reason::Prohibited => (IncidentKind::Unreachable, 2),
            Reason::Port => (IncidentKind::Unreachable, 3),
            Reason::NoHost => (IncidentKind::Unreachable, 4),
            Reason::Protocol => (IncidentKind::Unreachable, 5),
            Reason::HopLimit => (IncidentKind::Unreachable, 6),
        };
        let sent_frame = self.ends[end as usize].last_data.frame;
        let example = Example {
            at_ns: place.time_ns,
            length_ns: 0,
            frames: [sent_frame, place.frame, None],
            value,
        };
        self.incidents.note(kind, end, example);
        self.incidents.name(kind, end, complaint.sender);
    }

    /// Ends what is open at the end of the capture.
    pub(crate) fn finish(&mut self, halves: &[Half; 2], last_ns: u64) {
        self.holes_of_capture = 0;
        for end in End::BOTH {
            let peer = &halves[end.other() as usize];
            if peer.has_acknowledged() {
                let holes = &self.ends[end as usize].holes;
                self.holes_of_capture += holes.acknowledged(peer.acknowledged);
            }
            self.finish_recovery(end);
            self.finish_repetition(end);
            self.finish_late_acks(end);
            self.finish_nagle(end);
            self.finish_train(end);
            // Whether it was still closed behind the last frame of its end does not show.
            let heard = Place {
                time_ns: self.ends[end as usize].last_frame_ns,
                frame: None,
            };
            self.finish_zero_window(end, heard);
        }
        for end in End::BOTH {
            self.finish_silence(halves, end, last_ns);
        }
        self.life.finish(self.round_trip_ns().unwrap_or(0));
    }

    /// Says that `end` was not heard of again, if the other repeated itself for a while: keepalives
    /// without an answer, or anything else.
    fn finish_silence(&mut self, halves: &[Half; 2], end: End, last_ns: u64) {
        let [own, other] = [end, end.other()].map(|end| &self.ends[end as usize]);
        let (unheard, stalls) = (other.unheard, other.unheard_stalls);
        let Some(since) = other.unheard_since else {
            return;
        };
        let length_ns = last_ns.saturating_sub(since.time_ns);
        // With its SYN or the answer to it repeated, an end was never there.
        let was_there =
            own.last_frame.is_some() || halves.iter().all(|half| half.has_acknowledged());
        if unheard < UNHEARD_MIN || length_ns < UNHEARD_NS_MIN || !was_there {
            return;
        }
        let is_idle = other.unheard_keepalives == unheard;
        let (kind, frames) = if is_idle {
            (
                IncidentKind::KeepaliveUnanswered,
                [own.last_frame, since.frame, other.last_frame],
            )
        } else {
            // Of an end that only shook hands no frame is kept: what was repeated first stands for it.
            (
                IncidentKind::PeerSilent,
                [own.last_frame.or(since.frame), other.last_frame, None],
            )
        };
        let heard_ns = own.last_frame_ns;
        let is_since = is_idle || own.last_frame.is_none();
        let example = Example {
            at_ns: if is_since { since.time_ns } else { heard_ns },
            length_ns,
            frames,
            value: unheard,
        };
        self.incidents.note(kind, end, example);
        let timer = (IncidentKind::RetransmissionTimeout, end.other());
        self.incidents.withdraw_since(timer, heard_ns, stalls);
        // Who gives up may say so with a reset.
        self.incidents
            .withdraw_from(IncidentKind::Reset, end.other(), heard_ns);
        self.ends[end.other() as usize].unheard = 0;
        self.life.fall_silent(end.other());
    }

    /// Takes back what was said of the timer of `end` where its late acknowledgements did not wait alike: radio
    /// that sleeps, and ways that jump, delay by anything up to their most.
    fn finish_late_acks(&mut self, end: End) {
        let delays = &self.ends[end as usize].ack_delay;
        let is_alike = |slack_ns| delays.are_alike(slack_ns, LATE_ACKS_MIN);
        let [is_alike, is_timer_of_nagle] = [TIMER_SLACK_NS, 2 * TIMER_SLACK_NS].map(is_alike);
        // Nor where all came late from some time on.
        let way = self.ends[end.other() as usize].way.longer_ns();
        let is_timer = is_alike && way.is_none_or(|longer_ns| longer_ns < DELAYED_ACK_NS_MIN);
        if !is_timer_of_nagle {
            let cause = (Cause::RoundTrip, end);
            self.forget_nagle(end.other(), Phase::RoundTrip, cause);
        }
        if !is_timer {
            self.incidents.withdraw(IncidentKind::DelayedAck, end);
            let own = &mut self.ends[end as usize];
            (own.counts.delayed_acks, own.ack_delay) = (0, Durations::default());
            let from = (Cause::DelayedAck, end);
            self.gaps.rename_all(from, (Cause::RoundTrip, end));
        }
    }

    /// Takes back what was said of Nagle's algorithm where the end does not use it.
    fn finish_nagle(&mut self, end: End) {
        let held = self.incidents.count(IncidentKind::NagleDelayedAck, end);
        let defied = self.ends[end as usize].defies_nagle;
        if held > 0 && defied.saturating_mul(NAGLE_DEFIED_MAX) >= held {
            let cause = (Cause::DelayedAck, end.other());
            self.forget_nagle(end, Phase::PAUSES[end as usize], cause);
        }
    }

    /// Takes back that Nagle's algorithm held segments of `end`: the time was of `phase`, the gaps were of `cause`.
    fn forget_nagle(&mut self, end: End, phase: Phase, cause: (Cause, End)) {
        self.incidents.withdraw(IncidentKind::NagleDelayedAck, end);
        let shares = &mut self.ends[end as usize].shares;
        shares.reassign(State::Nagle, State::Sender, u64::MAX);
        self.life.forget_nagle(phase);
        self.gaps.rename_all((Cause::NagleDelayedAck, end), cause);
    }

    /// Returns whether this frame was captured before, at another place: bridges, bonds and mirrored ports show
    /// each frame twice, and others may lie between. What is new to its connection cannot be one.
    #[inline]
    fn is_duplicate_frame(&mut self, seen: &Seen<'_>) -> bool {
        let segment = seen.segment;
        let half = &seen.halves[seen.end as usize];
        let own = &mut self.ends[seen.end as usize];
        let time_ns = seen.place.time_ns;
        own.last_frame_ns = time_ns;
        own.numbers_packets |= own.identification != 0
            && segment.identification != 0
            && own.identification != segment.identification;
        own.identification = segment.identification;
        let identity = recent::identity(segment);
        let bytes = segment.sequence_bytes();
        let is_new = bytes > 0 && after(segment.sequence.wrapping_add(bytes), half.next)
            || segment.flags.any(Flags::ACK) && after(segment.acknowledgement, half.acknowledged);
        if is_new || !half.is_seen() {
            own.recent.note(identity, time_ns);
            return false;
        }
        let since_ns = own.recent.since_ns(identity, time_ns);
        let is_same = since_ns.is_some_and(|since_ns| since_ns <= self.twice_ns(seen))
            || self.is_same_packet(seen)
            || is_first_syn(half, segment) && seen.elapsed_ns < TIMER_NS_MIN;
        self.ends[seen.end as usize].recent.note(identity, time_ns);
        is_same
    }

    /// Returns whether this is a packet on its way that was captured at its other end too, or that the way doubled:
    /// it has the number of that, it comes sooner than a timer, and nobody asked for it.
    #[cold]
    fn is_same_packet(&self, seen: &Seen<'_>) -> bool {
        let segment = seen.segment;
        let own = &self.ends[seen.end as usize];
        let end = segment.sequence.wrapping_add(segment.sequence_bytes());
        let is_it = |sent: &&Sent| {
            sent.identification == segment.identification
                && sent.end == end
                && seen.place.time_ns.saturating_sub(sent.time_ns) < TIMER_NS_MIN
        };
        own.numbers_packets
            && segment.identification != 0
            && own.outstanding.at(segment.sequence).filter(is_it).is_some()
            && !self.is_asked_for(seen)
    }

    /// Returns whether the receiver said that this segment is missing: more than once, or by what it has behind it.
    fn is_asked_for(&self, seen: &Seen<'_>) -> bool {
        let receiver = &self.ends[seen.end.other() as usize];
        let peer = &seen.halves[seen.end.other() as usize];
        let sequence = seen.segment.sequence;
        receiver.duplicate_run >= 2 && peer.acknowledged == sequence
            || receiver.sacked_to.is_some_and(|edge| after(edge, sequence))
                && !receiver.sacked.covers(sequence, sequence.wrapping_add(1))
    }

    /// Returns how much later a frame like one before is the same. Where packets have no number (IPv6, and IPv4
    /// of some), one with data may be sent again, though not before a round trip has passed; and
    /// acknowledgements that ask for a segment may be alike.
    #[cold]
    fn twice_ns(&self, seen: &Seen<'_>) -> u64 {
        let segment = seen.segment;
        // With nothing on its way that it could repeat itself for, and where it would say selectively what for,
        // an acknowledgement is not sent twice.
        let peer = &seen.halves[seen.end.other() as usize];
        let is_told = !after(peer.next, segment.acknowledgement) || self.has_sack;
        match (segment.identification, segment.sequence_bytes()) {
            (0, 0) if !is_told => 0,
            (0, _) => CAPTURED_TWICE_NS_MAX.min(self.round_trip_ns().unwrap_or(0) / 2),
            // That was captured at its other end too, or the way doubled it.
            _ if self.ends[seen.end as usize].numbers_packets && !self.is_asked_for(seen) => {
                TIMER_NS_MIN
            }
            _ => CAPTURED_TWICE_NS_MAX,
        }
    }

    /// Where the segment stands in the stream of its end.
    #[inline]
    fn handle_sequence(&mut self, seen: &Seen<'_>) -> Verdict {
        let segment = seen.segment;
        let (from, to) = (seen.end, seen.end.other());
        let (half, peer) = (&seen.halves[from as usize], &seen.halves[to as usize]);
        let is_control = segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST);
        let ahead = distance(half.next, segment.sequence);
        if half.is_other_syn(segment) {
            self.ends[from as usize].has_other_syn = true;
        }
        if half.is_seen() {
            // A last byte that is not acknowledged, and that there is room for, is sent again.
            let is_missing = segment.payload_bytes == 1
                && peer.window != 0
                && peer.has_acknowledged()
                && after(half.next, peer.acknowledged);
            if segment.payload_bytes <= 1 && ahead == -1 && !is_control && !is_missing {
                return self.handle_probe(seen);
            }
            let probes = segment.payload_bytes == 1 && peer.is_seen() && peer.window == 0;
            if probes && ahead == 0 {
                let own = &mut self.ends[from as usize];
                own.counts.zero_window_probes += 1;
                own.probed = Some(segment.sequence);
                return Verdict::ZERO_WINDOW_PROBE;
            }
        }
        let mut verdict = Verdict::default();
        // An acknowledgement too says how far its end has sent.
        if half.is_seen() && ahead > 0 && !segment.flags.any(Flags::RST | Flags::SYN) {
            let own = &mut self.ends[from as usize];
            // Behind the first piece of a packet come the others.
            if !own.last_data_is_piece {
                own.holes
                    .open(half.next, segment.sequence, seen.place.time_ns);
                own.counts.holes += 1;
                verdict.add(Verdict::AFTER_HOLE);
            }
        }
        if segment.sequence_bytes() == 0 {
            return verdict;
        }
        if half.is_seen() && ahead < 0 {
            // Ends whose SYNs crossed answer with the same number.
            let answers_first = segment.flags.any(Flags::SYN)
                && segment.flags.any(Flags::ACK)
                && !half.has_acknowledged();
            if segment.payload_bytes == 0 && answers_first {
                return verdict;
            }
            if segment.payload_bytes == 0 {
                self.handle_control_again(seen);
                return Verdict::CONTROL_RETRANSMISSION;
            }
            // The first payload is not sent again if all that it overlaps is the SYN.
            let has_sent = self.ends[from as usize].sizes.packets > 0;
            let overlaps = has_sent || !half.has_syn() || after(segment.sequence, half.first);
            if overlaps && !self.was_not_taken(seen) {
                verdict.add(self.handle_resent(seen));
            }
        }
        if segment.payload_bytes == 0 {
            return verdict;
        }
        verdict.add(self.handle_payload(seen));
        verdict
    }

    /// Returns whether all that the segment overlaps had come where it could not be taken: the byte that probed a
    /// closed window, or the data of a SYN that was answered without it (RFC 7413, section 3). It was not lost,
    /// and is no measure of the way.
    #[cold]
    fn was_not_taken(&mut self, seen: &Seen<'_>) -> bool {
        let segment = seen.segment;
        let (from, to) = (seen.end, seen.end.other());
        let (half, peer) = (&seen.halves[from as usize], &seen.halves[to as usize]);
        let own = &mut self.ends[from as usize];
        let is_probed = own.probed == Some(segment.sequence)
            && segment.payload_bytes > 1
            && half.next == segment.sequence.wrapping_add(1);
        let has_data_in_syn = half.data_packets == 1 && half.packets == 1 + half.pure_acks;
        let is_syns = has_data_in_syn
            && half.has_syn()
            && peer.has_acknowledged()
            && peer.acknowledged == segment.sequence
            && segment.sequence == half.first.wrapping_add(1);
        if is_probed || is_syns {
            own.probed = None;
            own.ambiguous_to = Some(half.next);
        }
        is_probed || is_syns
    }

    /// A SYN or FIN that is sent again.
    #[cold]
    fn handle_control_again(&mut self, seen: &Seen<'_>) {
        let leg_ns = self.leg_ns(seen.end).unwrap_or(0);
        let own = &mut self.ends[seen.end as usize];
        own.counts.control_retransmissions += 1;
        // Behind anything else it is no part of the setup.
        let half = &seen.halves[seen.end as usize];
        let is_setup = half.data_packets == 0 && half.pure_acks == 0;
        let is_syn = seen.segment.flags.any(Flags::SYN);
        if is_syn && seen.end == End::Client {
            own.syns_again += 1;
        }
        if !is_syn || !is_setup || own.has_other_syn {
            return;
        }
        let last_frame = own.last_frame;
        // Of a SYN-ACK: one that answers another SYN was not sent again by its timer, nor one that left before
        // what came here last can have arrived: the way doubled it.
        let peer = &seen.halves[seen.end.other() as usize];
        let is_acknowledged = seen.end == End::Server && peer.has_acknowledged();
        // An end that still has another connection of these ports answers a SYN with its acknowledgement, and
        // the reset of that lets the next SYN pass (RFC 5961, section 4).
        if seen.end == End::Client && peer.packets > 0 && !peer.has_syn() {
            return;
        }
        let syns_again = &mut self.ends[End::Client as usize].syns_again;
        let answers_again = seen.end == End::Server && *syns_again > 0;
        *syns_again -= u32::from(answers_again);
        let answers_another = answers_again || !is_acknowledged && peer.packets > half.packets;
        if seen.end == End::Server && (answers_another || seen.elapsed_ns < leg_ns) {
            return;
        }
        let example = Example {
            at_ns: seen.place.time_ns.saturating_sub(seen.elapsed_ns),
            length_ns: seen.elapsed_ns,
            frames: [last_frame, seen.place.frame, None],
            value: u32::from(is_acknowledged),
        };
        self.incidents
            .note(IncidentKind::SynAgain, seen.end, example);
    }

    /// A keepalive or a probe of a closed window: one byte, or none, below the next number.
    #[cold]
    fn handle_probe(&mut self, seen: &Seen<'_>) -> Verdict {
        let peer = &seen.halves[seen.end.other() as usize];
        let own = &mut self.ends[seen.end as usize];
        if peer.is_seen() && peer.window == 0 {
            own.counts.zero_window_probes += 1;
            return Verdict::ZERO_WINDOW_PROBE;
        }
        own.counts.keepalives += 1;
        Verdict::KEEPALIVE
    }

    /// Payload: its size, and the part of it that is new.
    #[inline]
    fn handle_payload(&mut self, seen: &Seen<'_>) -> Verdict {
        let segment = seen.segment;
        let (from, to) = (seen.end, seen.end.other());
        let half = &seen.halves[from as usize];
        let end = segment.sequence.wrapping_add(segment.payload_bytes);
        let mut verdict = self.handle_size(seen);
        let is_new = !half.is_seen() || after(end, half.next);
        let is_fin = segment.flags.any(Flags::FIN);
        let own = &mut self.ends[from as usize];
        own.unacknowledged_packets = own.unacknowledged_packets.saturating_add(1);
        let is_pushed = segment.flags.any(Flags::PSH);
        own.sets_push |= is_pushed;
        if is_new {
            own.has_more = !is_pushed && !is_fin && !segment.fragmented;
            // Nagle's algorithm lets no short segment go while a short one is on its way.
            let are_short =
                own.is_short(own.last_data_bytes) && own.is_short(segment.payload_bytes);
            if own.has_more {
                own.unpushed_bytes = segment.payload_bytes;
            }
            if are_short && !is_fin && after(half.next, seen.halves[to as usize].acknowledged) {
                own.defies_nagle = own.defies_nagle.saturating_add(1);
            }
            let ahead = half.is_seen() && distance(segment.sequence, half.next) > 0;
            own.outstanding.note_sent(|| {
                let sequence = if ahead { half.next } else { segment.sequence };
                let range = (sequence, end.wrapping_add(u32::from(is_fin)));
                Sent::of(segment, seen.place, range)
            });
        }
        let window = window_bytes(seen.halves, seen.shifts, to);
        if window.is_some() {
            self.check_edge(from, end);
        }
        let own = &mut self.ends[from as usize];
        let peer = &seen.halves[to as usize];
        if let Some(window) = window
            && peer.has_acknowledged()
            && end == peer.acknowledged.wrapping_add(window as u32)
        {
            own.counts.window_full += 1;
            verdict.add(Verdict::WINDOW_FULL);
        }
        if let Some(held) = own.held.take() {
            verdict.add(self.handle_release(seen, held));
        }
        verdict
    }

    /// Doubts the windows if `end` sends far beyond them, up to `sent`.
    #[inline]
    fn check_edge(&mut self, end: End, sent: u32) {
        let edge = self.ends[end.other() as usize].edge;
        if edge
            .is_none_or(|edge| distance(edge, sent) <= self.ends[end as usize].segment_bytes as i32)
        {
            return;
        }
        let own = &mut self.ends[end as usize];
        own.beyond_window += 1;
        let percent = u64::from(own.beyond_window) * 100;
        self.windows_are_doubtful |= own.beyond_window >= BEYOND_WINDOW_MIN
            && percent > u64::from(own.sizes.packets) * u64::from(BEYOND_WINDOW_PERCENT);
    }

    /// The size of a payload, and the train that it may belong to.
    #[inline]
    fn handle_size(&mut self, seen: &Seen<'_>) -> Verdict {
        let (from, bytes) = (seen.end, seen.segment.payload_bytes);
        let own = &mut self.ends[from as usize];
        if bytes > own.segment_bytes && own.segment_bytes < own.segment_bytes_max {
            own.grow_segment(bytes);
        }
        let segment_bytes = own.segment_bytes;
        own.sizes.add(bytes);
        let is_small = bytes <= segment_bytes / 2 && !seen.segment.fragmented;
        own.counts.small += u32::from(is_small);
        if is_small && self.last_sender != Some(from.other()) {
            let train = &mut own.train;
            train.segments = train.segments.saturating_add(1);
            train.began = train.began.or(Some(seen.place));
            train.last = Some(seen.place);
        } else if own.train.segments > 0 {
            self.finish_train(from);
        }
        let own = &self.ends[from as usize];
        if bytes <= segment_bytes || !own.is_superframe(bytes) {
            return Verdict::default();
        }
        self.ends[from as usize].counts.superframes += 1;
        Verdict::SUPERFRAME
    }

    #[cold]
    fn finish_train(&mut self, end: End) {
        let train = std::mem::take(&mut self.ends[end as usize].train);
        let (Some(began), Some(last)) = (train.began, train.last) else {
            return;
        };
        if train.segments < TRAIN_MIN {
            return;
        }
        let example = Example::between(began, last, train.segments);
        self.incidents
            .note(IncidentKind::SmallSegments, end, example);
    }
}
