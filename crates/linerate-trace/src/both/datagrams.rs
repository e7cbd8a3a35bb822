//! Datagrams that two captures saw: which conversations are the same, and what became of each datagram.
//!
//! A datagram has no number that both captures could know it by. It is known by its IP identification, its
//! length and the first 32 bytes of its payload, which the capture must have kept. Those that are alike in all
//! of that are matched in their order. A conversation is known by its addresses and ports; where a box on the
//! way rewrote those, by its datagrams.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use linerate_model::sample::End;

use super::clock::Instants;
use super::join::{once, turn};
use super::way::{Course, Fate, Sending, Way};
use super::{Joined, SeenConversation, Sighted, Sighting};
use crate::connection::{Endpoint, FrameId};
use crate::frame::Flags;
use crate::tracker::Passed;

/// Datagrams of each conversation by which it is looked for where its addresses are others.
const LOOKED_AT_MAX: usize = 256;
/// Of these, those that must be in the other, and nowhere else.
const ALIKE_MIN: u32 = 8;
/// The most that a datagram may take on its way.
const WAY_NS_MAX: i128 = 5_000_000_000;

/// One datagram as a capture saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passing {
    sighting: Sighting,
    begin: [u64; 4],
}

/// What a datagram is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Mark {
    identification: u16,
    payload_bytes: u32,
    begin: [u64; 4],
}

impl Passing {
    pub(crate) fn new(passed: &Passed) -> Self {
        let datagram = &passed.datagram;
        Self {
            sighting: Sighting {
                time_ns: passed.place.time_ns,
                frame: passed.place.frame.map_or(0, FrameId::number),
                end: passed.end,
                sequence: 0,
                length: 1,
                payload_bytes: datagram.payload_bytes,
                acknowledgement: 0,
                stamp: None,
                identification: datagram.identification,
                window: 0,
                flags: Flags(0),
                hop_limit: datagram.hop_limit,
                congestion_marked: datagram.congestion_marked,
            },
            begin: datagram.begin,
        }
    }

    fn mark(&self) -> Mark {
        Mark {
            identification: self.sighting.identification,
            payload_bytes: self.sighting.payload_bytes,
            begin: self.begin,
        }
    }
}

impl Sighted for Passing {
    fn end(&self) -> End {
        self.sighting.end
    }

    fn as_first(&self, joined: &Joined) -> Self {
        Self {
            sighting: joined.as_first(&self.sighting),
            ..*self
        }
    }

    fn way(course: &Course<'_, Self>) -> Way {
        way(course)
    }
}

/// Returns the conversations that both captures saw.
pub(crate) fn join(
    first: &[SeenConversation],
    second: &[SeenConversation],
) -> Vec<(Joined, Vec<Instants>)> {
    let mut by_ends: HashMap<[Endpoint; 2], usize> = HashMap::new();
    for (at, conversation) in second.iter().enumerate() {
        by_ends.entry(conversation.ends).or_insert(at);
    }
    let same_ends = |one: &SeenConversation| {
        let turned = [one.ends[1], one.ends[0]];
        let found = [(one.ends, false), (turned, true)];
        found
            .iter()
            .find_map(|(ends, is_turned)| Some((*by_ends.get(ends)?, *is_turned)))
    };
    let places: Vec<Option<(usize, bool)>> = first.iter().map(same_ends).collect();
    let mut taken: HashSet<usize> = places.iter().flatten().map(|(place, _)| *place).collect();
    let others = if places.contains(&None) {
        by_content(second, &taken)
    } else {
        Only::new()
    };
    let mut joined = Vec::new();
    for (at, (one, place)) in first.iter().zip(places).enumerate() {
        let Some((place, is_turned)) = place.or_else(|| alike(one, &others, &taken)) else {
            continue;
        };
        taken.insert(place);
        let pairs = once_in_both(one, &second[place], is_turned);
        let Some(first_is_nearer) = first_is_nearer(&pairs) else {
            continue;
        };
        let instants = pairs
            .iter()
            .map(|(sent, arrived)| Instants {
                first_ns: sent.sighting.time_ns,
                second_ns: arrived.sighting.time_ns,
                is_forward: (sent.end() == End::Client) == first_is_nearer,
            })
            .collect();
        let joined_one = Joined {
            first: at,
            second: place,
            is_turned,
            shifts: [0; 2],
            first_is_nearer,
        };
        joined.push((joined_one, instants));
    }
    joined
}

/// The conversations of datagrams that stand nowhere else, by what they are known by and who sent them.
type Only = HashMap<(Mark, End), Option<usize>>;

/// Returns the first datagrams of all conversations but those that are `taken`, by what they are known by.
fn by_content(conversations: &[SeenConversation], taken: &HashSet<usize>) -> Only {
    let mut only = Only::new();
    for (place, conversation) in conversations.iter().enumerate() {
        if taken.contains(&place) {
            continue;
        }
        for passing in conversation.sightings.iter().take(LOOKED_AT_MAX) {
            let entry = only.entry((passing.mark(), passing.end()));
            entry
                .and_modify(|known| *known = None)
                .or_insert(Some(place));
        }
    }
    only
}

/// Returns the conversation that has the datagrams of `one` and is not taken, and whether client and server are
/// turned there.
fn alike(one: &SeenConversation, others: &Only, taken: &HashSet<usize>) -> Option<(usize, bool)> {
    let mut counts: BTreeMap<(usize, bool), u32> = BTreeMap::new();
    for passing in one.sightings.iter().take(LOOKED_AT_MAX) {
        for is_turned in [false, true] {
            let key = (passing.mark(), turn(passing.end(), is_turned));
            if let Some(Some(place)) = others.get(&key)
                && !taken.contains(place)
            {
                *counts.entry((*place, is_turned)).or_default() += 1;
            }
        }
    }
    // Of as many, those that are not turned.
    let most = counts.into_iter().min_by_key(|(_, count)| Reverse(*count));
    most.filter(|(_, count)| *count >= ALIKE_MIN)
        .map(|(found, _)| found)
}

/// Returns the datagrams that stand once in each of two captures, in the order of the first.
fn once_in_both(
    one: &SeenConversation,
    other: &SeenConversation,
    is_turned: bool,
) -> Vec<(Passing, Passing)> {
    let theirs = once(&other.sightings, |passing| {
        ((turn(passing.end(), is_turned), passing.mark()), *passing)
    });
    let ours = once(&one.sightings, |passing| {
        ((passing.end(), passing.mark()), *passing)
    });
    let mut pairs: Vec<(Passing, Passing)> = ours
        .into_iter()
        .filter_map(|(key, passing)| Some((passing, *theirs.get(&key)?)))
        .collect();
    pairs.sort_by_key(|(passing, _)| (passing.sighting.time_ns, passing.sighting.frame));
    pairs
}

/// Returns whether the first capture is the nearer to the client; nothing if no datagram is in both.
///
/// With datagrams both ways the clocks do not matter: by how much the second capture saw the client's later
/// and the server's earlier is the way there and back. With one way only, hop limits tell; else the clocks
/// are believed.
fn first_is_nearer(pairs: &[(Passing, Passing)]) -> Option<bool> {
    let apart = |(first, second): &(Passing, Passing)| {
        i128::from(second.sighting.time_ns) - i128::from(first.sighting.time_ns)
    };
    let of = |end: End| pairs.iter().filter(move |(first, _)| first.end() == end);
    let client = of(End::Client).map(apart).min();
    let server = of(End::Server).map(apart).max();
    if let (Some(client), Some(server)) = (client, server) {
        return Some(client > server);
    }
    let (first, second) = pairs.first()?;
    let (first, second) = (&first.sighting, &second.sighting);
    let is_later = match first.hop_limit.cmp(&second.hop_limit) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => second.time_ns > first.time_ns,
    };
    Some(is_later == (first.end == End::Client))
}

/// Returns what became of each datagram of a direction.
fn way(course: &Course<'_, Passing>) -> Way {
    let mut way = Way::default();
    let mut waiting: HashMap<Mark, VecDeque<usize>> = HashMap::new();
    for (at, passing) in (0..).zip(course.sent) {
        let time_ns = course.sent_ns(passing.sighting.time_ns);
        waiting
            .entry(passing.mark())
            .or_default()
            .push_back(way.sendings.len());
        way.sendings.push(Sending {
            sighting: passing.sighting,
            from: at,
            to: at + 1,
            time_ns,
            arrived_bytes: 0,
            delay_ns: None,
            fate: Fate::Unknown,
        });
    }
    let mut arrivals: HashMap<Mark, usize> = HashMap::new();
    for passing in course.arrived {
        *arrivals.entry(passing.mark()).or_default() += 1;
    }
    let usual_ns = usual_ns(course, &waiting, &arrivals, &way);
    let mut furthest = i64::MIN;
    for passing in course.arrived {
        let time_ns = course.arrived_ns(passing.sighting.time_ns);
        let all = arrivals.get(&passing.mark()).copied().unwrap_or(0);
        let Some(sendings) = waiting.get_mut(&passing.mark()) else {
            way.report.not_captured += 1;
            continue;
        };
        // As many sent as arrived are the same in their order; of more it is the one whose way is the most
        // like that of others.
        let way_ns = |at: usize| time_ns - way.sendings[at].time_ns;
        let place = if sendings.len() == all {
            (!sendings.is_empty()).then_some(0)
        } else {
            // They were sent one after another: it is one of the two about the usual time.
            let next = sendings.partition_point(|&at| way_ns(at) > usual_ns);
            (next.saturating_sub(1)..sendings.len().min(next + 1))
                .min_by_key(|&place| (way_ns(sendings[place]) - usual_ns).abs())
        };
        let place = place.filter(|&place| way_ns(sendings[place]).abs() < WAY_NS_MAX);
        *arrivals.entry(passing.mark()).or_insert(1) -= 1;
        let Some(place) = place else {
            way.report.duplicated += u64::from(sendings.is_empty());
            way.report.not_captured += u64::from(!sendings.is_empty());
            continue;
        };
        let Some(at) = sendings.remove(place) else {
            continue;
        };
        let sending = &mut way.sendings[at];
        sending.fate = Fate::Arrived;
        sending.delay_ns = i64::try_from(time_ns - sending.time_ns).ok();
        let own = &sending.sighting;
        way.report.note_passing(own, &passing.sighting);
        way.report.reordered += u64::from(sending.from < furthest);
        furthest = furthest.max(sending.from);
    }
    // What was sent so late that it may have come after the end of the other capture is not known.
    let slack_ns = way.slack_ns(course.clock);
    for sending in &mut way.sendings {
        let has_run = course.ran_for(sending.time_ns, slack_ns);
        if sending.fate == Fate::Unknown && has_run {
            sending.fate = Fate::Lost;
        }
    }
    way
}

/// Returns the median way of those that stand once in both captures.
fn usual_ns(
    course: &Course<'_, Passing>,
    waiting: &HashMap<Mark, VecDeque<usize>>,
    arrivals: &HashMap<Mark, usize>,
    way: &Way,
) -> i128 {
    let alone = course.arrived.iter().filter_map(|passing| {
        let sendings = waiting.get(&passing.mark())?;
        let is_alone = sendings.len() == 1 && arrivals.get(&passing.mark()) == Some(&1);
        let time_ns = course.arrived_ns(passing.sighting.time_ns);
        is_alone.then(|| time_ns - way.sendings[sendings[0]].time_ns)
    });
    let mut ways: Vec<i128> = alone.collect();
    ways.sort_unstable();
    ways.get(ways.len() / 2).copied().unwrap_or(0)
}
