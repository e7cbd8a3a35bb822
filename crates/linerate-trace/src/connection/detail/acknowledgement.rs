//! What an end says of the other's data: acknowledgements, round trips, what was asked for, and the
//! delayed acknowledgements that Nagle's algorithm waits for.

use linerate_model::sample::End;

use super::{
    DELAYED_ACK_NS_MAX, DELAYED_ACK_NS_MIN, Detail, Held, LOADED_SEGMENTS, RELEASE_NS_MAX, Seen,
    window_bytes,
};
use crate::connection::Verdict;
use crate::connection::gaps::{Cause, GAP_NS_MIN};
use crate::connection::incident::{Example, IncidentKind};
use crate::connection::sequence::{after, distance};
use crate::connection::shares::State;
use crate::frame::Flags;

impl Detail {
    /// What the segment says of the other end's data.
    #[inline]
    pub(super) fn handle_acknowledgement(&mut self, seen: &Seen<'_>, verdict: Verdict) -> Verdict {
        let segment = seen.segment;
        let (from, to) = (seen.end, seen.end.other());
        let time_ns = seen.place.time_ns;
        if let Some(stamps) = segment.timestamps {
            self.handle_stamps(from, stamps.value, stamps.echo, time_ns);
        }
        if !segment.flags.any(Flags::ACK) || segment.flags.any(Flags::RST) {
            return Verdict::default();
        }
        let half = &seen.halves[from as usize];
        let acknowledgement = segment.acknowledgement;
        let advance = if half.has_acknowledged() {
            distance(half.acknowledged, acknowledgement)
        } else {
            1
        };
        if !segment.sack.as_slice().is_empty() {
            self.handle_sack(seen);
        }
        // What a capture cuts of an acknowledgement's options is its selective blocks.
        self.ends[from as usize].sack_is_cut =
            segment.options_cut && !segment.flags.any(Flags::SYN) && segment.payload_bytes == 0;
        if advance > 0 {
            return self.handle_advance(seen);
        }
        let is_plain = segment.payload_bytes == 0
            && advance == 0
            && !segment.flags.any(Flags::SYN | Flags::FIN)
            && segment.sequence == half.next;
        if !is_plain || verdict.any(Verdict::KEEPALIVE | Verdict::ZERO_WINDOW_PROBE) {
            return Verdict::default();
        }
        let asked = self.ends[to as usize].sent_keepalive;
        let own = &mut self.ends[from as usize];
        if asked {
            own.arrival_ns = time_ns;
            return Verdict::KEEPALIVE_ANSWER;
        }
        if segment.window == 0 {
            return Verdict::default();
        }
        if segment.window != half.window && !segment.options_cut {
            own.counts.window_updates += 1;
            return Verdict::WINDOW_UPDATE;
        }
        own.arrival_ns = time_ns;
        own.counts.duplicate_acks += 1;
        own.duplicate_run = own.duplicate_run.saturating_add(1);
        Verdict::DUPLICATE_ACK
    }

    /// An acknowledgement that goes further than those before.
    #[inline]
    pub(super) fn handle_advance(&mut self, seen: &Seen<'_>) -> Verdict {
        let segment = seen.segment;
        let (from, to) = (seen.end, seen.end.other());
        let time_ns = seen.place.time_ns;
        let acknowledgement = segment.acknowledgement;
        let leg_ns = self.leg_ns(from);
        let sender = &mut self.ends[to as usize];
        let said =
            sender
                .outstanding
                .take_acknowledged(acknowledgement, time_ns, leg_ns.unwrap_or(0));
        // Sooner than the way allows, it is for what came before it was sent again.
        if let Some((sequence, end, segments)) = said.too_soon {
            sender.counts.spurious += segments;
            sender.resent.forget(sequence, end);
        }
        let is_clear = sender
            .ambiguous_to
            .is_none_or(|point| after(acknowledgement, point));
        sender.arrived_bytes_max = sender.arrived_bytes_max.max(said.bytes_max);
        if let Some(round_trip_ns) = said.round_trip_ns.filter(|_| is_clear) {
            sender.round_trip.add(round_trip_ns);
            sender.has_bare_trip |= segment.payload_bytes == 0;
            sender
                .way
                .add(round_trip_ns.saturating_sub(leg_ns.unwrap_or(round_trip_ns)));
            self.trip_ns = Some(round_trip_ns);
            let flight = distance(
                seen.halves[from as usize].acknowledged,
                seen.halves[to as usize].next,
            );
            // With so much on its way no acknowledgement waits for a timer: it is the path's.
            if flight >= sender.segment_bytes.saturating_mul(LOADED_SEGMENTS) as i32 {
                sender.round_trip_loaded.add(round_trip_ns);
                sender.loaded_trip = Some((round_trip_ns, time_ns));
            }
        }
        sender.too_big = sender
            .too_big
            .filter(|(point, _)| after(*point, acknowledgement));
        let was_recovering = sender.recovery.is_some();
        sender.ambiguous_to = sender
            .ambiguous_to
            .filter(|&point| after(point, acknowledgement));
        let packets = std::mem::take(&mut sender.unacknowledged_packets);
        if packets > 0 {
            sender.data_per_ack.add(u64::from(packets));
        }
        if let (Some(sent), Some(stamps)) = (said.first_sent_again, segment.timestamps) {
            let echoes_first = sent.stamp != 0 && after(sent.stamp, stamps.echo);
            if echoes_first && sender.resent.take(sent.sequence) {
                sender.counts.spurious += 1;
            }
        }
        let own = &mut self.ends[from as usize];
        own.duplicate_run = 0;
        own.sacked.handle_advance(acknowledgement, seen.place);
        let sacked_to = own.sacked_to;
        own.sacked_to = sacked_to.filter(|&edge| after(edge, acknowledgement));
        let closed = sacked_to.is_some() && own.sacked_to.is_none();
        let nothing_sent_again = is_clear && !was_recovering;
        own.counts.healed += u32::from(closed && nothing_sent_again);
        self.check_repetition(to, acknowledgement);
        self.check_recovery(to, acknowledgement);
        self.ends[to as usize].holes.retire(acknowledgement);
        let is_pure = segment.payload_bytes == 0 && !segment.flags.any(Flags::SYN | Flags::FIN);
        if is_pure && acknowledgement == seen.halves[to as usize].next {
            self.ends[from as usize].acknowledged_all_ns = time_ns;
        }
        // Two full segments are acknowledged at once (RFC 9293, section 3.8.6.3).
        let advance = distance(seen.halves[from as usize].acknowledged, acknowledgement);
        let may_wait =
            packets > 0 && advance < 2 * self.ends[to as usize].segment_bytes as i32 && is_clear;
        if is_pure && may_wait && seen.elapsed_ns >= GAP_NS_MIN {
            return self.handle_late_ack(seen, leg_ns);
        }
        Verdict::default()
    }

    /// An acknowledgement after a silence: the delayed-ACK timer, if the path does not explain it.
    #[cold]
    pub(super) fn handle_late_ack(&mut self, seen: &Seen<'_>, leg_ns: Option<u64>) -> Verdict {
        let (from, to) = (seen.end, seen.end.other());
        let Some(leg_ns) = leg_ns else {
            return Verdict::default();
        };
        let sender = &self.ends[to as usize];
        let time_ns = seen.place.time_ns;
        let delay_ns = time_ns.saturating_sub(sender.last_data.time_ns);
        let beyond_ns = delay_ns.saturating_sub(leg_ns.max(sender.queued_ns(time_ns)));
        let is_late = (DELAYED_ACK_NS_MIN..=DELAYED_ACK_NS_MAX).contains(&beyond_ns);
        // What acknowledges less did not wait since the last segment.
        let is_all = seen.segment.acknowledgement == seen.halves[to as usize].next;
        if !is_late || sender.recovery.is_some() || !is_all {
            return Verdict::default();
        }
        let is_short = sender.is_short(sender.last_data_bytes);
        let data = sender.last_data;
        if is_short {
            let receiver = &seen.halves[from as usize];
            let flight = distance(receiver.acknowledged, seen.halves[to as usize].next);
            // Without a scale the window is at least what stands in the header.
            let window =
                window_bytes(seen.halves, seen.shifts, from).unwrap_or(u64::from(receiver.window));
            self.ends[to as usize].held = Some(Held {
                data,
                ack: seen.place,
                room_bytes: window.saturating_sub(flight.max(0) as u64),
                gap: None,
                gap_ns: seen.elapsed_ns,
            });
        }
        self.ends[to as usize].way.wait();
        let own = &mut self.ends[from as usize];
        own.counts.delayed_acks += 1;
        own.ack_delay.add(beyond_ns);
        let example = Example {
            length_ns: beyond_ns,
            ..Example::between(data, seen.place, 0)
        };
        self.incidents.note(IncidentKind::DelayedAck, from, example);
        Verdict::DELAYED_ACK
    }

    /// Round trips by timestamps: from the first sending of a value to its first echo.
    #[inline]
    pub(super) fn handle_stamps(&mut self, from: End, value: u32, echo: u32, time_ns: u64) {
        let other = &mut self.ends[from.other() as usize];
        if let Some((stamp, sent_ns)) = other.stamp
            && distance(stamp, echo) >= 0
        {
            other.stamp = None;
            if stamp == echo {
                other
                    .round_trip_by_stamp
                    .add(time_ns.saturating_sub(sent_ns));
            }
        }
        let own = &mut self.ends[from as usize];
        if own.stamp.is_none() && own.last_stamp.is_none_or(|last| after(value, last)) {
            own.stamp = Some((value, time_ns));
        }
        own.last_stamp = Some(value);
    }

    /// Selective acknowledgements: how far they reach, and what came twice (RFC 2883).
    #[cold]
    pub(super) fn handle_sack(&mut self, seen: &Seen<'_>) {
        let (from, to) = (seen.end, seen.end.other());
        let blocks = seen.segment.sack.as_slice();
        let acknowledgement = seen.segment.acknowledgement;
        let own = &mut self.ends[from as usize];
        own.counts.sacks += 1;
        own.arrival_ns = seen.place.time_ns;
        let Some(&first) = blocks.first() else { return };
        let inside_second = blocks.get(1).is_some_and(|second| {
            distance(second.0, first.0) >= 0 && distance(first.1, second.1) >= 0
        });
        let is_duplicate = !after(first.1, acknowledgement) || inside_second;
        let own = &mut self.ends[from as usize];
        for (at, block) in blocks.iter().enumerate() {
            let counts = at > 0 || !is_duplicate;
            if counts && own.sacked_to.is_none_or(|edge| after(block.1, edge)) {
                own.sacked_to = Some(block.1);
            }
            // Boxes that rewrite numbers may leave those of blocks alone.
            let is_possible =
                after(block.0, acknowledgement) && !after(block.1, seen.halves[to as usize].next);
            if counts && is_possible && after(block.1, block.0) {
                own.sacked.note(*block, seen.place);
            }
        }
        if is_duplicate {
            own.counts.duplicate_sacks += 1;
            let sender = &mut self.ends[to as usize];
            if sender.resent.take(first.0) {
                sender.counts.spurious += 1;
            }
        }
    }

    /// A segment that follows a late acknowledgement of a short one.
    #[cold]
    pub(super) fn handle_release(&mut self, seen: &Seen<'_>, held: Held) -> Verdict {
        let from = seen.end;
        let waited_ns = seen.place.time_ns.saturating_sub(held.ack.time_ns);
        let leg_ns = self.leg_ns(from);
        let path_ns = leg_ns.unwrap_or(RELEASE_NS_MAX);
        let payload_bytes = seen.segment.payload_bytes;
        let is_short = self.ends[from as usize].is_short(payload_bytes);
        // Sooner than the acknowledgement could reach its sender, or where the window had no room
        // for it, the segment was not held by the algorithm.
        let is_too_soon = leg_ns.is_some_and(|leg_ns| waited_ns < leg_ns / 5 * 4);
        let is_too_late = waited_ns > path_ns + path_ns / 2 + RELEASE_NS_MAX;
        let had_room = held.room_bytes >= u64::from(payload_bytes);
        if !is_short || is_too_soon || is_too_late || !had_room {
            return Verdict::default();
        }
        let example = Example {
            frames: [held.data.frame, held.ack.frame, seen.place.frame],
            ..Example::between(held.data, held.ack, payload_bytes)
        };
        self.incidents
            .note(IncidentKind::NagleDelayedAck, from, example);
        self.ends[from as usize]
            .shares
            .reassign(State::Sender, State::Nagle, held.gap_ns);
        if let Some(gap) = held.gap {
            let to = (Cause::NagleDelayedAck, from);
            self.gaps.rename(gap, to, held.gap_ns, held.ack.frame);
        }
        Verdict::NAGLE_RELEASED
    }
}
