//! One direction of a connection between two captures: what was sent past the one, and what of it came
//! past the other.
//!
//! 1. An arrival belongs to the sending that has its IP identification, else its timestamp, else to the
//!    last one of its bytes before it: a lost first sending is followed by a second.
//! 2. Bytes, not segments, are looked for: offloads cut and join segments at either host.
//! 3. A sending of which no byte arrived was lost between the captures; unless the receiver acknowledged
//!    its bytes though none of their sendings arrived, then the second capture missed it.

use super::clock::Clock;
use super::{Sighting, WayReport};
use crate::connection::sequence_distance;
use crate::frame::Flags;

/// Sendings before its end that are looked at for one arrival; 64 KiB have 45 full segments.
const CANDIDATES_MAX: usize = 256;

/// A sending, and what came of it.
#[derive(Debug, Clone)]
pub(crate) struct Sending {
    pub sighting: Sighting,
    /// Where it begins, from the first number of the direction, and behind where it ends.
    pub from: i64,
    pub to: i64,
    /// By the clock of the capture at the sender's side.
    pub time_ns: i128,
    pub arrived_bytes: u64,
    /// How long the way of its first byte took.
    pub delay_ns: Option<i64>,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrived,
    Lost,
    /// The other capture did not see it, but the receiver did.
    Missed,
    /// It was sent when the other capture did not run.
    Unknown,
}

/// One direction.
#[derive(Debug, Default)]
pub(crate) struct Way {
    pub sendings: Vec<Sending>,
    /// What is counted of it.
    pub report: WayReport,
    /// Whether timestamps differ between sending and arrival.
    pub stamps_differ: bool,
    /// Sendings that arrived with their IP identification, and with another.
    pub identified: (u64, u64),
}

/// What is known of both captures.
pub(crate) struct Course<'a, S> {
    /// What the capture at the sender's side saw of the sender, in the order of time.
    pub sent: &'a [S],
    /// What the other saw of it, with numbers as the first has them.
    pub arrived: &'a [S],
    /// What the other saw of the receiver.
    pub answers: &'a [S],
    pub clock: Clock,
    /// Whether the first capture is at the sender's side.
    pub is_forward: bool,
    /// When the capture at the receiver's side ran, by its own clock.
    pub span_ns: (u64, u64),
    /// When the one at the sender's side ended, by its own clock.
    pub sent_end_ns: u64,
}

impl Way {
    pub(crate) fn of(course: &Course<'_, Sighting>) -> Self {
        let mut way = Self::default();
        let Some(base) = course.sent.iter().map(|one| one.sequence).next() else {
            return way;
        };
        let sent_ns = |sighting: &Sighting| course.sent_ns(sighting.time_ns);
        let mut at = (base, 0);
        let mut highest: Option<i64> = None;
        for sighting in course.sent.iter().filter(|one| one.length > 0) {
            let from = unwrapped(&mut at, sighting.sequence);
            way.report.sent_again += u64::from(highest.is_some_and(|highest| from < highest));
            highest = highest.max(Some(from + i64::from(sighting.length)));
            way.sendings.push(Sending {
                sighting: *sighting,
                from,
                to: from + i64::from(sighting.length),
                time_ns: sent_ns(sighting),
                arrived_bytes: 0,
                delay_ns: None,
                fate: Fate::Unknown,
            });
        }
        way.match_arrivals(course, base);
        let slack_ns = way.slack_ns(course.clock);
        way.match_acks(course, slack_ns);
        way.tell_fates(course, base, slack_ns);
        way
    }

    /// Returns how long before its end the capture at the receiver's side misses what is sent: the longest
    /// way that was seen, and what is not known of the clocks.
    pub(super) fn slack_ns(&self, clock: Clock) -> i128 {
        let uncertain_ns = i128::from(clock.uncertainty_ns.unwrap_or(0));
        let ways = self.sendings.iter().filter_map(|one| one.delay_ns);
        uncertain_ns + ways.max().map_or(uncertain_ns, i128::from).max(0)
    }

    fn match_arrivals(&mut self, course: &Course<'_, Sighting>, base: u32) {
        let mut order: Vec<usize> = (0..self.sendings.len()).collect();
        order.sort_by_key(|&at| (self.sendings[at].from, self.sendings[at].time_ns));
        let longest = self
            .sendings
            .iter()
            .map(|one| one.to - one.from)
            .max()
            .unwrap_or(0);
        let late_ns = i128::from(course.clock.uncertainty_ns.unwrap_or(0));
        let mut at = (base, 0);
        let mut last_sent_ns = i128::MIN;
        for arrival in course.arrived.iter().filter(|one| one.length > 0) {
            let from = unwrapped(&mut at, arrival.sequence);
            let to = from + i64::from(arrival.length);
            let time_ns = course.arrived_ns(arrival.time_ns);
            let begin = order.partition_point(|&at| self.sendings[at].from <= from - longest);
            let end = order.partition_point(|&at| self.sendings[at].from < to);
            let begin = begin.max(end.saturating_sub(CANDIDATES_MAX)).min(end);
            let mut candidates: Vec<usize> = order[begin..end]
                .iter()
                .copied()
                .filter(|&at| self.sendings[at].to > from)
                .filter(|&at| self.sendings[at].time_ns <= time_ns + late_ns)
                .collect();
            // Those that are surely it first, then the latest.
            candidates.sort_by_key(|&at| {
                let sending = &self.sendings[at];
                let own = &sending.sighting;
                let is_it = own.identification != 0 && own.identification == arrival.identification;
                let is_near = own.stamp.is_some() && own.stamp == arrival.stamp;
                (!is_it, !is_near, std::cmp::Reverse(sending.time_ns))
            });
            let has_candidates = !candidates.is_empty();
            let mut rest = vec![(from, to)];
            for at in candidates {
                let sending = &mut self.sendings[at];
                let room = (sending.to - sending.from) as u64 - sending.arrived_bytes;
                let taken = take(&mut rest, (sending.from, sending.to), room as i64);
                if taken == 0 {
                    continue;
                }
                sending.arrived_bytes += taken as u64;
                if sending.from == from {
                    let delay = time_ns - sending.time_ns;
                    sending.delay_ns = i64::try_from(delay).ok();
                    self.report.note_passing(&sending.sighting, arrival);
                    let (is_same, is_other) = identities(&sending.sighting, arrival);
                    self.identified.0 += u64::from(is_same);
                    self.identified.1 += u64::from(is_other);
                    self.stamps_differ |= sending.sighting.stamp != arrival.stamp
                        && sending.sighting.identification == arrival.identification
                        && arrival.identification != 0;
                    self.report.reordered += u64::from(sending.time_ns < last_sent_ns);
                    last_sent_ns = last_sent_ns.max(sending.time_ns);
                }
                if rest.is_empty() {
                    break;
                }
            }
            if rest == [(from, to)] {
                if has_candidates {
                    self.report.duplicated += 1;
                } else {
                    self.report.not_captured += 1;
                    self.report.unseen +=
                        u64::from(from >= 0 && time_ns <= course.sent_ns(course.sent_end_ns));
                }
            }
        }
    }

    /// Tells which acknowledgements without payload arrived: by their IP identification, and what is left on
    /// both sides by their numbers, since boxes rewrite identifications, and some windows.
    fn match_acks(&mut self, course: &Course<'_, Sighting>, slack_ns: i128) {
        let is_ack = |one: &&Sighting| one.length == 0 && one.flags.any(Flags::ACK);
        let numbers = |one: &Sighting| (one.acknowledgement, one.sequence);
        let key = |one: &Sighting| (numbers(one), one.window, one.identification);
        let mut seen = std::collections::HashMap::new();
        let mut left = std::collections::HashMap::new();
        for one in course.arrived.iter().filter(is_ack) {
            *seen.entry(key(one)).or_insert(0u32) += 1;
            *left.entry(numbers(one)).or_insert(0u32) += 1;
        }
        let mut missing = Vec::new();
        for one in course.sent.iter().filter(is_ack) {
            let has_run = course.ran_for(course.sent_ns(one.time_ns), slack_ns);
            let found = seen.get_mut(&key(one)).filter(|count| **count > 0);
            self.report.acks += u64::from(has_run || found.is_some());
            match found {
                Some(count) => {
                    *count -= 1;
                    left.entry(numbers(one)).and_modify(|left| *left -= 1);
                }
                None if has_run => missing.push(numbers(one)),
                None => {}
            }
        }
        for numbers in missing {
            match left.get_mut(&numbers).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => self.report.acks_lost += 1,
            }
        }
    }

    fn tell_fates(&mut self, course: &Course<'_, Sighting>, base: u32, slack_ns: i128) {
        // How far the receiver has acknowledged, by what the capture at its side saw.
        let mut at = (base, 0);
        let acknowledged = course
            .answers
            .iter()
            .filter(|one| one.flags.any(Flags::ACK) && !one.flags.any(Flags::RST))
            .map(|one| unwrapped(&mut at, one.acknowledgement))
            .max();
        // Bytes that arrived by any of their sendings.
        let mut arrived: Vec<(i64, i64)> = self
            .sendings
            .iter()
            .filter(|one| one.arrived_bytes > 0)
            .map(|one| (one.from, one.to))
            .collect();
        arrived.sort_unstable();
        let mut joined: Vec<(i64, i64)> = Vec::new();
        for (from, to) in arrived {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        let has_arrived = |from: i64| {
            let before = joined.partition_point(|range| range.0 <= from);
            before > 0 && joined[before - 1].1 > from
        };
        for sending in &mut self.sendings {
            let was_acknowledged = acknowledged.is_some_and(|number| number >= sending.to);
            sending.fate = if sending.arrived_bytes > 0 {
                Fate::Arrived
            } else if !course.ran_for(sending.time_ns, slack_ns) {
                Fate::Unknown
            } else if was_acknowledged && !has_arrived(sending.from) {
                Fate::Missed
            } else {
                Fate::Lost
            };
        }
    }
}

/// Returns whether an arrival surely has the identification of its sending, and whether it surely has not.
fn identities(sent: &Sighting, arrived: &Sighting) -> (bool, bool) {
    let is_known = sent.identification != 0 && arrived.identification != 0;
    let is_same = sent.identification == arrived.identification;
    (is_known && is_same, is_known && !is_same)
}

impl<S> Course<'_, S> {
    pub(super) fn sent_ns(&self, time_ns: u64) -> i128 {
        if self.is_forward {
            i128::from(time_ns)
        } else {
            self.clock.to_first_ns(time_ns)
        }
    }

    pub(super) fn arrived_ns(&self, time_ns: u64) -> i128 {
        if self.is_forward {
            self.clock.to_first_ns(time_ns)
        } else {
            i128::from(time_ns)
        }
    }

    /// Returns whether the capture at the receiver's side ran when this was sent, and long enough after it.
    pub(super) fn ran_for(&self, time_ns: i128, slack_ns: i128) -> bool {
        let (begin, end) = (
            self.arrived_ns(self.span_ns.0),
            self.arrived_ns(self.span_ns.1),
        );
        (begin..=end - slack_ns).contains(&time_ns)
    }
}

/// Returns the number behind wrapping: how far `sequence` lies from the base, near the one before.
fn unwrapped(at: &mut (u32, i64), sequence: u32) -> i64 {
    let far = at.1 + i64::from(sequence_distance(at.0, sequence));
    *at = (sequence, far);
    far
}

/// Takes what lies within `range` out of `rest`, `most` at the most; returns how much that is.
fn take(rest: &mut Vec<(i64, i64)>, range: (i64, i64), most: i64) -> i64 {
    let mut taken = 0;
    let mut left = Vec::with_capacity(rest.len() + 1);
    for &(from, to) in rest.iter() {
        let begin = from.max(range.0);
        let end = to.min(range.1).min(begin.saturating_add(most - taken));
        if begin >= end {
            left.push((from, to));
            continue;
        }
        taken += end - begin;
        left.extend(
            [(from, begin), (end, to)]
                .into_iter()
                .filter(|part| part.0 < part.1),
        );
    }
    *rest = left;
    taken
}
