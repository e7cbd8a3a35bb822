//! Windows that close, and times without a packet.

use linerate_model::sample::End;

use super::{Detail, IDLE_NS_MIN, Seen};
use crate::connection::gaps::{Cause, GAP_NS_MIN};
use crate::connection::incident::{Example, IncidentKind};
use crate::connection::sequence::{distance, furthest};
use crate::connection::shares::State;
use crate::connection::{Place, Verdict};
use crate::frame::Flags;

impl Detail {
    /// The window that the segment offers.
    #[inline]
    pub(super) fn handle_window(&mut self, seen: &Seen<'_>) -> Verdict {
        let segment = seen.segment;
        let is_syn = segment.flags.any(Flags::SYN);
        let own = &mut self.ends[seen.end as usize];
        // The window of a SYN is not scaled (RFC 7323, section 2.2).
        let scale = seen.shifts.map_or(0, |shifts| shifts[seen.end as usize]);
        let window = u64::from(segment.window) << if is_syn { 0 } else { scale };
        if !segment.flags.any(Flags::RST) {
            own.window_bytes_max = own.window_bytes_max.max(window);
        }
        if segment.flags.any(Flags::ACK) && !segment.flags.any(Flags::RST) {
            let edge = segment.acknowledgement.wrapping_add(window as u32);
            own.edge = Some(own.edge.map_or(edge, |before| furthest(before, edge)));
        }
        if segment.flags.any(Flags::SYN | Flags::RST) {
            return Verdict::default();
        }
        own.window.add(window);
        if segment.window > 0 {
            if own.zero_since.is_some() {
                self.finish_zero_window(seen.end, seen.place);
            }
            return Verdict::default();
        }
        if segment.flags.any(Flags::FIN) {
            return Verdict::default();
        }
        own.counts.zero_windows += 1;
        own.zero_since = own.zero_since.or(Some(seen.place));
        Verdict::ZERO_WINDOW
    }

    #[cold]
    pub(super) fn finish_zero_window(&mut self, end: End, place: Place) {
        let own = &mut self.ends[end as usize];
        let Some(since) = own.zero_since.take() else {
            return;
        };
        let example = Example::between(since, place, 0);
        if example.length_ns == 0 {
            return;
        }
        own.zero_window.add(example.length_ns);
        self.incidents.note(IncidentKind::ZeroWindow, end, example);
    }

    /// Finds what a silence was for: by what ended it, and what held while it lasted.
    #[cold]
    pub(super) fn handle_gap(&mut self, seen: &Seen<'_>, verdict: Verdict) {
        let (from, to) = (seen.end, seen.end.other());
        let segment = seen.segment;
        if seen.elapsed_ns >= IDLE_NS_MIN {
            self.idle_until = seen.place.frame;
        }
        let flight = |end: End| {
            let (half, peer) = (
                &seen.halves[end as usize],
                &seen.halves[end.other() as usize],
            );
            peer.has_acknowledged() && distance(peer.acknowledged, half.next) > 0
        };
        let is_window = |end: End| self.ends[end as usize].shares.state().is_window();
        let leg_ns = self.leg_ns(from);
        // A silence no longer than the path takes was not anybody's delay.
        let is_late = seen.elapsed_ns.saturating_sub(leg_ns.unwrap_or(0)) >= GAP_NS_MIN;
        let (cause, end) = if is_window(to) {
            (Cause::Window, from)
        } else if is_window(from) {
            (Cause::Window, to)
        } else if segment.flags.any(Flags::FIN | Flags::RST) && segment.payload_bytes == 0 {
            (Cause::Close, from)
        } else if verdict.any(Verdict::RETRANSMISSION | Verdict::CONTROL_RETRANSMISSION) {
            if verdict.any(Verdict::FAST) {
                (Cause::RoundTrip, to)
            } else {
                (Cause::RetransmissionTimeout, from)
            }
        } else if verdict.any(Verdict::KEEPALIVE_ANSWER) {
            // The kernel answers, whatever its program does.
            (Cause::RoundTrip, from)
        } else if verdict.any(Verdict::KEEPALIVE) {
            (Cause::Application, from)
        } else if segment.payload_bytes > 0 {
            // The end that sends payload has kept the other waiting, if the other spoke last.
            let is_queued = self.ends[from as usize].shares.state() == State::Path;
            match self.last_sender {
                _ if is_queued && !flight(from) => (Cause::Pacing, from),
                _ if !is_late => (Cause::RoundTrip, from),
                Some(last) if last == to => (Cause::Answer, from),
                _ => (Cause::Application, from),
            }
        } else if verdict.any(Verdict::DELAYED_ACK) {
            (Cause::DelayedAck, from)
        } else if flight(to) {
            (Cause::RoundTrip, from)
        } else {
            (Cause::Application, from)
        };
        if cause == Cause::RoundTrip && self.ends[to as usize].shares.state() == State::Path {
            let (sender, receiver) = (&seen.halves[to as usize], &seen.halves[from as usize]);
            let flight_bytes = distance(receiver.acknowledged, sender.next).max(0) as u32;
            let sender = &mut self.ends[to as usize];
            sender
                .standing
                .note(flight_bytes, sender.segment_bytes, seen.elapsed_ns);
        }
        self.gaps
            .note(cause, end, seen.elapsed_ns, seen.place.frame);
        if let Some(held) = &mut self.ends[to as usize].held
            && held.ack == seen.place
        {
            held.gap = (cause == Cause::DelayedAck).then_some((cause, end));
        }
    }
}
