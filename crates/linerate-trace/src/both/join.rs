//! Which connections of two captures are the same, and the instants at which both saw a segment.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use linerate_model::sample::End;

use super::clock::Instants;
use super::{Seen, SeenConnection, Sighting};
use crate::connection::{Endpoint, sequence_distance};
use crate::frame::Flags;

/// Two connections that are one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joined {
    /// Their places among those of each capture.
    pub first: usize,
    pub second: usize,
    /// Whether the second capture takes the client for the server: it saw no SYN.
    pub is_turned: bool,
    /// What is added to the sequence numbers of client and server between the captures.
    pub shifts: [u32; 2],
    /// Whether the first capture is the nearer to the client.
    pub first_is_nearer: bool,
}

impl Joined {
    /// Returns the capture that is nearer to the client: 0 or 1.
    pub(crate) fn nearer_to_client(&self) -> usize {
        usize::from(!self.first_is_nearer)
    }

    /// Returns the capture at the side of `end`: 0 or 1.
    pub(crate) fn sent_at(&self, end: End) -> usize {
        match end {
            End::Client => self.nearer_to_client(),
            End::Server => 1 - self.nearer_to_client(),
        }
    }
}

type Ends = [Endpoint; 2];

/// Returns the connections that both captures saw.
pub(crate) fn join(first: &Seen, second: &Seen) -> Vec<Joined> {
    let mut by_ends: HashMap<Ends, Vec<usize>> = HashMap::new();
    let mut by_numbers: HashMap<[u32; 2], Vec<usize>> = HashMap::new();
    for (at, connection) in second.connections.iter().enumerate() {
        by_ends.entry(connection.ends).or_default().push(at);
        if let Some(numbers) = numbers(connection) {
            by_numbers.entry(numbers).or_default().push(at);
        }
    }
    let mut taken = vec![false; second.connections.len()];
    let mut joined = Vec::new();
    for (at, one) in first.connections.iter().enumerate() {
        let turned = [one.ends[1], one.ends[0]];
        // What NAT rewrote has its numbers still; what a firewall renumbered has its ports.
        let candidates = [
            (
                numbers(one).and_then(|numbers| by_numbers.get(&numbers)),
                false,
            ),
            (by_ends.get(&one.ends), false),
            (by_ends.get(&turned), true),
        ];
        let found = candidates.into_iter().find_map(|(places, is_turned)| {
            let free = places?.iter().filter(|&&place| !taken[place]);
            let near =
                |place: &&usize| begin_ns(&second.connections[**place]).abs_diff(begin_ns(one));
            Some((*free.min_by_key(near)?, is_turned))
        });
        let Some((place, is_turned)) = found else {
            continue;
        };
        let other = &second.connections[place];
        let shift = |end: End| {
            let theirs = other.offers[turn(end, is_turned) as usize];
            let pair = one.offers[end as usize].zip(theirs);
            pair.map_or(0, |((_, ours), (_, theirs))| theirs.wrapping_sub(ours))
        };
        let shifts = End::BOTH.map(shift);
        let Some(first_is_nearer) = first_is_nearer(one, other, is_turned) else {
            continue;
        };
        taken[place] = true;
        joined.push(Joined {
            first: at,
            second: place,
            is_turned,
            shifts,
            first_is_nearer,
        });
    }
    joined
}

/// Returns `end`, or the other where the ends are turned.
pub(crate) fn turn(end: End, is_turned: bool) -> End {
    if is_turned { end.other() } else { end }
}

/// Returns the first sequence numbers, if both SYNs were captured.
fn numbers(connection: &SeenConnection) -> Option<[u32; 2]> {
    let [client, server] = connection.offers;
    Some([client?.1, server?.1])
}

fn begin_ns(connection: &SeenConnection) -> u64 {
    connection
        .sightings
        .first()
        .map_or(0, |sighting| sighting.time_ns)
}

/// Returns whether the first capture is nearer to the client: from there the way to the server and
/// back takes longer.
fn first_is_nearer(one: &SeenConnection, other: &SeenConnection, is_turned: bool) -> Option<bool> {
    let by = |end: End| {
        let first = leg_ns(one, end)?;
        let second = leg_ns(other, turn(end, is_turned))?;
        Some(first as i64 - second as i64)
    };
    match (by(End::Server), by(End::Client)) {
        // What is farther from the server is nearer to the client, and both should say so.
        (Some(server), Some(client)) => Some(server - client > 0),
        (Some(server), None) => Some(server > 0),
        (None, Some(client)) => Some(client < 0),
        (None, None) => None,
    }
}

/// Returns the shortest time from a segment of the other end to the acknowledgement by `end` that ends
/// where the segment does. What was on its way when something was sent again tells nothing (Karn's rule).
fn leg_ns(connection: &SeenConnection, end: End) -> Option<u64> {
    let mut on_their_way: VecDeque<(u32, u64)> = VecDeque::new();
    let mut next: Option<u32> = None;
    let mut least: Option<u64> = None;
    for sighting in &connection.sightings {
        let behind = sighting.sequence.wrapping_add(sighting.length);
        if sighting.end != end && sighting.length > 0 {
            if next.is_none_or(|next| sequence_distance(next, sighting.sequence) >= 0) {
                on_their_way.push_back((behind, sighting.time_ns));
                next = Some(behind);
            } else {
                on_their_way.clear();
            }
        } else if sighting.end == end && sighting.flags.any(Flags::ACK) {
            while let Some(&(number, time_ns)) = on_their_way.front() {
                let beyond = sequence_distance(number, sighting.acknowledgement);
                if beyond < 0 {
                    break;
                }
                on_their_way.pop_front();
                if beyond == 0 {
                    let leg = sighting.time_ns.saturating_sub(time_ns);
                    least = Some(least.map_or(leg, |least| least.min(leg)));
                }
            }
        }
    }
    least
}

/// By what a segment is known in both captures, if it stands there once.
type Mark = (End, u32, u32, u8);

impl Joined {
    /// Returns when both captures saw those segments that stand in each of them once.
    pub(crate) fn instants(&self, first: &Seen, second: &Seen) -> Vec<Instants> {
        let one = &first.connections[self.first].sightings;
        let other = &second.connections[self.second].sightings;
        let ours = once(one, |sighting| (self.mark(sighting), sighting.time_ns));
        let theirs = once(other, |sighting| {
            (self.mark(&self.as_first(sighting)), sighting.time_ns)
        });
        let mut found: Vec<Instants> = ours
            .iter()
            .filter_map(|(mark, first_ns)| {
                let second_ns = *theirs.get(mark)?;
                Some(Instants {
                    first_ns: *first_ns,
                    second_ns,
                    is_forward: (mark.0 == End::Client) == self.first_is_nearer,
                })
            })
            .collect();
        found.sort_by_key(|instants| instants.first_ns);
        found
    }

    /// Returns a sighting of the second capture with ends and numbers as the first has them.
    pub(crate) fn as_first(&self, sighting: &Sighting) -> Sighting {
        let end = turn(sighting.end, self.is_turned);
        let [own, other] = [end, end.other()].map(|end| self.shifts[end as usize]);
        Sighting {
            end,
            sequence: sighting.sequence.wrapping_sub(own),
            acknowledgement: if sighting.flags.any(Flags::ACK) {
                sighting.acknowledgement.wrapping_sub(other)
            } else {
                0
            },
            ..*sighting
        }
    }

    /// Data is known by where it begins, so that what offloads cut elsewhere is known too; the rest by
    /// what it acknowledges.
    fn mark(&self, sighting: &Sighting) -> Mark {
        let controls = sighting.flags.0 & (Flags::SYN | Flags::FIN | Flags::RST);
        let is_data = sighting.payload_bytes > 0;
        let (acknowledgement, controls) = if is_data {
            (0, 0x80)
        } else {
            (sighting.acknowledgement, controls)
        };
        (sighting.end, sighting.sequence, acknowledgement, controls)
    }
}

/// Returns those whose mark is seen once, by it.
pub(super) fn once<S, M: Eq + Hash, V>(seen: &[S], marked: impl Fn(&S) -> (M, V)) -> HashMap<M, V> {
    let mut found: HashMap<M, Option<V>> = HashMap::with_capacity(seen.len());
    for (mark, value) in seen.iter().map(marked) {
        let entry = found.entry(mark);
        entry
            .and_modify(|known| *known = None)
            .or_insert(Some(value));
    }
    let once = found.into_iter();
    once.filter_map(|(mark, value)| Some((mark, value?)))
        .collect()
}
