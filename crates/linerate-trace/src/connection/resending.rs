//! Segments that come below the highest number of their direction: sent again, or out of order.
//!
//! 1. What fills a hole was never captured. It is *out of order* if it came before a round trip
//!    had passed (3 ms at the least) and nothing had asked for it; else it was lost before the
//!    capture and *sent again*.
//! 2. Everything else was captured before, so it was *sent again*.
//! 3. A retransmission is *spurious* if all of it had been acknowledged, or if the receiver says
//!    later that it had it already: by a duplicate selective acknowledgement (RFC 2883), or by
//!    echoing the timestamp of the first sending (Eifel, RFC 3522).
//! 4. It is a *timeout* if the sender had been silent for longer than any other reason explains;
//!    *fast* if two duplicate acknowledgements or a selective one beyond it came before; a *tail
//!    probe* if it is the last segment sent, sooner than timers fire. What is sent again in the same
//!    recovery has the same reason as its beginning (RFC 6582).

use linerate_model::sample::End;

use super::detail::{Detail, Seen};
use super::incident::{Example, IncidentKind};
use super::outstanding::Sent;
use super::sequence::{after, distance};
use super::{Place, Verdict};

/// The shortest retransmission timer that is told by its silence alone. Linux has 200 ms, other
/// systems 230 ms to 1 s, all plus the round trip.
pub(super) const TIMER_NS_MIN: u64 = 150_000_000;
/// Without anybody asking, a retransmission after less than this has no known reason. Timers of
/// Linux can be set as low as one tick, which is 4 ms where ticks are 250 a second.
const UNASKED_NS_MIN: u64 = 4_000_000;
/// A segment that fills a hole later than this is not only reordered; tshark's figure.
const REORDERED_NS_MAX: u64 = 3_000_000;
/// Neighbouring segments of one recovery from which it is called a burst. Losses at random, one of a
/// hundred, put two or three into a window of a hundred segments, but hardly side by side.
const BURST_MIN: u32 = 4;
/// Sendings again of a full segment from which it is called repeated.
const REPEATED_MIN: u32 = 3;
/// Retransmissions of one direction that can still be proven spurious.
const RESENT_MAX: usize = 4;

/// What began with a retransmission and ends when everything sent until then is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// The number whose acknowledgement ends it.
    point: u32,
    /// Why it began.
    reason: Verdict,
    /// The most segments side by side that were sent again in it.
    longest: Stretch,
    /// The segments side by side that were sent again last.
    run: Stretch,
}

/// Segments side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    segments: u32,
    /// The number behind the last of them.
    end: u32,
    began: Place,
    last: Place,
}

impl Stretch {
    /// Returns a run that begins with a segment, and has none yet.
    fn of(seen: &Seen<'_>) -> Self {
        Self {
            segments: 0,
            end: seen.segment.sequence,
            began: seen.place,
            last: seen.place,
        }
    }
}

/// Ranges that were sent again, the newest first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Resent([(u32, u32); RESENT_MAX]);

impl Resent {
    fn note(&mut self, sequence: u32, end: u32) {
        self.0.copy_within(..RESENT_MAX - 1, 1);
        self.0[0] = (sequence, end);
    }

    /// Forgets what lies in `sequence..end`.
    pub(crate) fn forget(&mut self, sequence: u32, end: u32) {
        for range in &mut self.0 {
            if distance(sequence, range.0) >= 0 && !after(range.1, end) {
                *range = (0, 0);
            }
        }
    }

    /// Forgets a range that covers `sequence`; returns whether there was one.
    pub(crate) fn take(&mut self, sequence: u32) -> bool {
        let found = self.0.iter_mut().find(|(start, end)| {
            start != end && distance(*start, sequence) >= 0 && after(*end, sequence)
        });
        found.is_some_and(|range| {
            *range = (0, 0);
            true
        })
    }
}

impl Detail {
    /// Handles a segment with payload that begins below the highest number of its direction.
    #[cold]
    pub(super) fn handle_resent(&mut self, seen: &Seen<'_>) -> Verdict {
        let segment = seen.segment;
        let (from, to) = (seen.end, seen.end.other());
        let end = segment.sequence.wrapping_add(segment.payload_bytes);
        let time_ns = seen.place.time_ns;
        let opened_ns = self.ends[from as usize].holes.fill(segment.sequence, end);
        self.ends[from as usize].ambiguous_to = Some(seen.halves[from as usize].next);
        let asked = self.has_asked(seen);
        if let Some(opened_ns) = opened_ns {
            let waited_ns = time_ns.saturating_sub(opened_ns);
            let round_trip_ns = self.round_trip_ns().unwrap_or(0);
            let asked_in_time = asked && waited_ns >= round_trip_ns.max(1) * 3 / 4;
            if !asked_in_time && waited_ns < REORDERED_NS_MAX.max(round_trip_ns) {
                self.ends[from as usize].counts.out_of_order += 1;
                return Verdict::OUT_OF_ORDER;
            }
        }
        let own = &mut self.ends[from as usize];
        let again = Sent::of(segment, seen.place, (segment.sequence, end));
        let before = own.outstanding.note_sent_again(&again);
        // What a router sent back was not lost, and comes again in pieces as soon as its word does.
        let is_resized = self.ends[from as usize]
            .too_big
            .is_some_and(|(point, fits)| {
                after(point, segment.sequence) && segment.payload_bytes <= fits
            });
        let reason = if is_resized {
            Verdict::default()
        } else {
            self.reason(seen, before, asked)
        };
        let mut verdict = Verdict::RETRANSMISSION | reason;
        let own = &mut self.ends[from as usize];
        own.counts.retransmissions += 1;
        own.counts.retransmitted_bytes += u64::from(segment.payload_bytes);
        if opened_ns.is_some() {
            own.counts.first_not_captured += 1;
            own.filled_bytes += u64::from(segment.payload_bytes);
            verdict.add(Verdict::FILLS_HOLE);
        }
        own.counts.fast += u32::from(reason.any(Verdict::FAST));
        own.counts.timeout += u32::from(reason.any(Verdict::TIMEOUT));
        own.counts.tail_probe += u32::from(reason.any(Verdict::TAIL_PROBE));
        let acknowledged = seen.halves[to as usize].acknowledged;
        let is_acknowledged =
            seen.halves[to as usize].has_acknowledged() && !after(end, acknowledged);
        let was_there = self.ends[to as usize].sacked.covers(segment.sequence, end);
        let own = &mut self.ends[from as usize];
        if is_acknowledged {
            own.counts.spurious += 1;
            verdict.add(Verdict::SPURIOUS);
        } else if is_resized {
            own.counts.resized += 1;
        } else if was_there {
            self.ends[from as usize].counts.sacked += 1;
            self.note_taken_back(seen);
        } else {
            own.resent.note(segment.sequence, end);
            self.note_loss(seen, before);
        }
        self.note_repetition(seen, before);
        self.note_recovery(seen, reason);
        // What the receiver had was not lost.
        if !is_acknowledged && !is_resized && !was_there {
            self.note_run(seen);
        }
        verdict
    }

    /// Ends the recovery of `end`, and notes it if it was a burst.
    #[cold]
    pub(super) fn finish_recovery(&mut self, end: End) {
        let Some(recovery) = self.ends[end as usize].recovery.take() else {
            return;
        };
        // Without selective acknowledgements a timer sends everything again, whatever arrived.
        let run = recovery.longest;
        let is_blind = recovery.reason.any(Verdict::TIMEOUT)
            && self.ends[end.other() as usize].counts.sacks == 0;
        if run.segments < BURST_MIN || is_blind {
            return;
        }
        let example = Example::between(run.began, run.last, run.segments);
        self.incidents.note(IncidentKind::LossBurst, end, example);
    }

    /// Ends the recovery of `end` if `acknowledgement` reaches its point.
    #[inline]
    pub(super) fn check_recovery(&mut self, end: End, acknowledgement: u32) {
        if let Some(recovery) = &self.ends[end as usize].recovery
            && !after(recovery.point, acknowledgement)
        {
            self.finish_recovery(end);
        }
    }

    /// Returns whether the receiver has said that it misses this segment but has later ones.
    fn has_asked(&self, seen: &Seen<'_>) -> bool {
        let receiver = &self.ends[seen.end.other() as usize];
        let sacked = receiver
            .sacked_to
            .is_some_and(|edge| after(edge, seen.segment.sequence));
        receiver.duplicate_run >= 2 || sacked || receiver.sack_is_cut
    }

    fn reason(&self, seen: &Seen<'_>, before: Option<Sent>, asked: bool) -> Verdict {
        let own = &self.ends[seen.end as usize];
        let half = &seen.halves[seen.end as usize];
        let time_ns = seen.place.time_ns;
        let silent_ns = own.silent_ns(time_ns);
        let since_ns = match before {
            Some(sent) => time_ns.saturating_sub(sent.time_ns),
            None => silent_ns,
        };
        let round_trip_ns = self.round_trip_ns().unwrap_or(0);
        let timer_ns = TIMER_NS_MIN.max(round_trip_ns * 2);
        // How far the sender is does not show of a way that was captured in one direction; and where it does not
        // show otherwise, what somebody asked for may have come as soon as it could.
        let peer = &seen.halves[seen.end.other() as usize];
        let may_tell = peer.is_seen() && (!asked || self.leg_ns(seen.end).is_some());
        if silent_ns >= timer_ns && since_ns >= timer_ns && may_tell {
            return Verdict::TIMEOUT;
        }
        let end = seen
            .segment
            .sequence
            .wrapping_add(seen.segment.payload_bytes);
        match own.recovery {
            Some(recovery) if !after(seen.segment.sequence, recovery.point) && !asked => {
                recovery.reason
            }
            _ if asked => Verdict::FAST,
            // Probes leave after two round trips (RFC 8985, section 7.2), timers are longer, but where they are set.
            _ if end == half.next && peer.is_seen() && since_ns < TIMER_NS_MIN => {
                Verdict::TAIL_PROBE
            }
            // Whether anybody asked shows only where both directions do.
            _ if peer.is_seen() && since_ns >= UNASKED_NS_MIN.max(round_trip_ns) => {
                Verdict::TIMEOUT
            }
            _ => Verdict::default(),
        }
    }

    fn note_recovery(&mut self, seen: &Seen<'_>, reason: Verdict) {
        let from = seen.end;
        let half = &seen.halves[from as usize];
        let place = seen.place;
        let own = &self.ends[from as usize];
        let silent_ns = own.silent_ns(place.time_ns);
        // What is sent again behind something else did not wait for a timer; the wait for what was taken back
        // is told with that.
        let is_taken_back = self.ends[from.other() as usize]
            .sacked
            .is_taken_back(seen.segment.sequence);
        let is_timer = reason.any(Verdict::TIMEOUT)
            && !is_taken_back
            && silent_ns >= UNASKED_NS_MIN
            && (silent_ns >= TIMER_NS_MIN
                || own
                    .recovery
                    .is_none_or(|recovery| !recovery.reason.any(Verdict::TIMEOUT)));
        if is_timer {
            let example = Example::between(own.last_data, place, seen.segment.payload_bytes);
            self.incidents
                .note(IncidentKind::RetransmissionTimeout, from, example);
            let stalls = &mut self.ends[from as usize].unheard_stalls;
            *stalls = (stalls.0 + 1, stalls.1 + silent_ns);
            if let Some(repeated) = &mut self.ends[from as usize].repeated
                && repeated.sequence == seen.segment.sequence
            {
                repeated.stalls.0 += 1;
                repeated.stalls.1 += silent_ns;
            }
            if self.ends[from as usize].recovery.is_some() {
                self.finish_recovery(from);
            }
        }
        self.ends[from as usize].recovery.get_or_insert(Recovery {
            point: half.next,
            reason,
            longest: Stretch::of(seen),
            run: Stretch::of(seen),
        });
    }

    /// Adds a segment to those side by side that were sent again.
    fn note_run(&mut self, seen: &Seen<'_>) {
        let sequence = seen.segment.sequence;
        let fresh = Stretch::of(seen);
        let Some(recovery) = &mut self.ends[seen.end as usize].recovery else {
            return;
        };
        let run = &mut recovery.run;
        if run.end != sequence {
            *run = fresh;
        }
        run.segments = run.segments.saturating_add(1);
        run.end = sequence.wrapping_add(seen.segment.payload_bytes);
        run.last = seen.place;
        if run.segments > recovery.longest.segments {
            recovery.longest = *run;
        }
    }

    /// Keeps the frames of a loss: the first sending, if it was captured, and the second.
    fn note_loss(&mut self, seen: &Seen<'_>, before: Option<Sent>) {
        let unknown = Place {
            frame: None,
            ..seen.place
        };
        let sent = before.map_or(unknown, |sent| sent.place());
        let example = Example::between(sent, seen.place, seen.segment.payload_bytes);
        self.incidents.note(IncidentKind::Loss, seen.end, example);
    }

    /// Notes that the receiver had taken back what is sent again now.
    fn note_taken_back(&mut self, seen: &Seen<'_>) {
        let to = seen.end.other();
        let Some(taken) = self.ends[to as usize].sacked.take_taken_back() else {
            return;
        };
        let example = Example {
            frames: [taken.told.frame, taken.acknowledged.frame, seen.place.frame],
            ..Example::between(taken.acknowledged, seen.place, taken.bytes)
        };
        self.incidents.note(IncidentKind::TakenBack, to, example);
    }

    /// Follows a large segment that is sent again and again.
    fn note_repetition(&mut self, seen: &Seen<'_>, before: Option<Sent>) {
        let Some(before) = before else { return };
        let (from, to) = (seen.end, seen.end.other());
        let bytes = seen.segment.payload_bytes;
        let full_bytes = self.ends[from as usize].segment_bytes;
        let is_large = bytes >= full_bytes / 10 * 9 && bytes >= REPEATED_BYTES_MIN;
        let sequence = seen.segment.sequence;
        let known = self.ends[from as usize].repeated;
        if !is_large || known.is_some_and(|known| after(sequence, known.sequence)) {
            return;
        }
        if known.is_some_and(|known| known.sequence != sequence) {
            self.finish_repetition(from);
        }
        let receiver = &self.ends[to as usize];
        let end = sequence.wrapping_add(bytes);
        let has_later = receiver.sacked_to.is_some_and(|edge| after(edge, end));
        // Something else arrived there after the second sending: the path was not cut. That its own data comes
        // does not say so.
        let is_heard = known.is_some_and(|known| receiver.arrival_ns > known.again_ns);
        let place = seen.place;
        let repeated = self.ends[from as usize].repeated.get_or_insert(Repeated {
            sequence,
            bytes,
            sendings: 1,
            began: before.place(),
            again_ns: place.time_ns,
            last: place,
            stalls: (0, 0),
            receiver_is_there: false,
        });
        repeated.sendings += 1;
        repeated.last = place;
        repeated.receiver_is_there |= has_later || is_heard;
    }

    /// Ends the repetition of `end` if `acknowledgement` goes beyond its segment's begin.
    #[inline]
    pub(super) fn check_repetition(&mut self, end: End, acknowledgement: u32) {
        if let Some(repeated) = &mut self.ends[end as usize].repeated
            && after(acknowledgement, repeated.sequence)
        {
            repeated.receiver_is_there = true;
            self.finish_repetition(end);
        }
    }

    /// Ends the repetition of `end`: a black hole, if no segment as large ever arrived while the
    /// receiver was there. A receiver that is not heard of again may be gone instead.
    #[cold]
    pub(super) fn finish_repetition(&mut self, end: End) {
        let at = self.captured_at();
        let Some(repeated) = self.ends[end as usize].repeated.take() else {
            return;
        };
        let example = Example::between(repeated.began, repeated.last, repeated.bytes);
        let is_hole = repeated.sendings > REPEATED_MIN
            && example.length_ns >= 2 * TIMER_NS_MIN
            && repeated.receiver_is_there
            && at != Some(end.other())
            && repeated.bytes > self.arrived_bytes_max(end);
        if !is_hole {
            return;
        }
        // The receiver is there: it is not silent.
        self.ends[end as usize].unheard = 0;
        let kind = IncidentKind::RepeatedSegment;
        self.incidents
            .note_times(kind, end, example, repeated.sendings);
        let timer = (IncidentKind::RetransmissionTimeout, end);
        self.incidents
            .withdraw_since(timer, repeated.began.time_ns, repeated.stalls);
    }

    /// Returns the most payload of one segment of `end` that surely arrived.
    fn arrived_bytes_max(&self, end: End) -> u32 {
        let (own, receiver) = (&self.ends[end as usize], &self.ends[end.other() as usize]);
        let is_there = |sent: &Sent| receiver.sacked.covers(sent.sequence, sent.end);
        own.arrived_bytes_max
            .max(own.outstanding.bytes_max(is_there))
    }
}

/// A large segment that is sent again and again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repeated {
    sequence: u32,
    bytes: u32,
    sendings: u32,
    /// When it was sent first.
    began: Place,
    /// When it was sent again first.
    again_ns: u64,
    last: Place,
    /// How often, and how long, its timer was all that happened.
    stalls: (u32, u64),
    /// Whether its receiver was heard of while it was sent again.
    receiver_is_there: bool,
}

/// Shorter segments fit every path: IPv4 hosts must take 576 bytes.
const REPEATED_BYTES_MIN: u32 = 600;
