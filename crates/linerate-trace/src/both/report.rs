//! What two captures come to together: a document.

use linerate_model::sample::End;
use serde::Serialize;

use super::decided::decide;
use super::join::{self, Joined};
use super::way::{Course, Fate, Sending, Way};
use super::{Clock, Seen, SeenFlow, Sighted, Sighting};
use crate::connection::Endpoint;
use crate::document::Trace;
use crate::number::counted;

/// The number of the document's shape.
const BOTH_SCHEMA_VERSION: u32 = 1;
/// Connections that are handed over, those with the most segments.
const CONNECTIONS_MAX: usize = 1000;
/// Lost segments of one direction that are named.
const EXAMPLES_MAX: usize = 8;
/// Points of a delay over time that are kept.
const POINTS_MAX: usize = 512;

/// Two captures of the same traffic.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Both {
    /// What this document is: `linerate.trace.both`.
    pub schema: &'static str,
    /// The number of its shape.
    pub schema_version: u32,
    /// The two files.
    pub files: [String; 2],
    /// How far the second clock is from the first.
    pub clock: Clock,
    /// Connections that both saw, those with the most segments first.
    pub connections: Vec<JoinedReport>,
    /// Connections that only one of them saw.
    pub alone: [u64; 2],
    /// Conversations over UDP that both saw, those with the most datagrams first.
    pub conversations: Vec<JoinedReport>,
    /// What to know of the numbers.
    pub warnings: Vec<String>,
    /// What each comes to by itself.
    pub captures: [Trace; 2],
}

/// A connection, or a conversation over UDP, that both saw.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct JoinedReport {
    /// Its number in each capture.
    pub numbers: [u32; 2],
    /// The end that connected, as each capture saw it.
    pub client: [Endpoint; 2],
    /// The end that accepted.
    pub server: [Endpoint; 2],
    /// The capture that is nearer to the client: 0 or 1.
    pub nearer_to_client: usize,
    /// From the client to the server.
    pub from_client: WayReport,
    /// From the server to the client.
    pub from_server: WayReport,
    /// What was rewritten between the captures.
    pub rewritten: Vec<Rewritten>,
}

/// One direction between the captures.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct WayReport {
    /// The capture at the sender's side: 0 or 1.
    pub sent_at: usize,
    /// Segments with payload, SYN or FIN, or datagrams, that passed it.
    pub sent: u64,
    /// Of these, those that passed the other.
    pub arrived: u64,
    /// Of these, those that were lost between the captures.
    pub lost: u64,
    /// Bytes of those.
    pub lost_bytes: u64,
    /// Those that the other capture missed: their bytes were acknowledged.
    pub missed_by_capture: u64,
    /// Those that the other capture lacks, where nothing says whether they were lost or missed: it lacks
    /// others that it must have seen, or says that it lost some.
    pub undecided: u64,
    /// Those sent when the other capture did not run.
    pub outside: u64,
    /// Segments whose first byte had passed before.
    pub sent_again: u64,
    /// Segments that passed the other only.
    pub not_captured: u64,
    /// Segments that arrived more often than they were sent.
    pub duplicated: u64,
    /// Segments that arrived behind later ones.
    pub reordered: u64,
    /// Segments that were marked between the captures (ECN CE).
    pub marked: u64,
    /// Acknowledgements without payload.
    pub acks: u64,
    /// Of these, those that were lost between the captures.
    pub acks_lost: u64,
    /// Of these, those of which that is undecided.
    pub acks_undecided: u64,
    /// Segments that the first capture must have seen, had it missed nothing, and did not: of bytes behind the
    /// first that it saw, and while it ran.
    #[serde(skip)]
    pub(crate) unseen: u64,
    /// Routers between the captures, as hop limits tell.
    pub hops: Option<u8>,
    /// How long the way took.
    pub delay: Option<DelayReport>,
    /// The first of those that were lost.
    pub examples: Vec<LostReport>,
    /// Delay over time: instants by the first clock, and delays.
    #[serde(skip)]
    pub(crate) points: Vec<(u64, i64)>,
    /// When segments were lost, by the first clock.
    #[serde(skip)]
    pub(crate) losses_ns: Vec<u64>,
}

/// How long a way took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct DelayReport {
    /// Segments that tell so.
    pub count: u64,
    /// The shortest; as wrong as the clock may be.
    pub min_ns: i64,
    /// How much longer than the shortest the median was: exact, whatever the clock.
    pub above_min_median_ns: u64,
    /// The 99th percentile of that.
    pub above_min_p99_ns: u64,
    /// The most of that.
    pub above_min_max_ns: u64,
}

/// A segment that was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct LostReport {
    /// Its frame in the capture at the sender's side.
    pub frame: u64,
    /// When it passed there, by that capture's clock.
    pub at_ns: u64,
    /// The frame in which the same bytes passed there again, and arrived.
    pub again_frame: Option<u64>,
    /// Its payload.
    pub payload_bytes: u32,
}

/// What differs between the captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Rewritten {
    /// Whose segments.
    pub end: End,
    /// What: address, port, MSS, window scale, SACK permitted, timestamps, sequence numbers.
    pub what: &'static str,
    /// Before, at the sender's side.
    pub sent: String,
    /// Behind.
    pub arrived: String,
}

impl Both {
    pub(crate) fn new(
        mut first: Seen,
        mut second: Seen,
        [joined, spoken]: [&[Joined]; 2],
        clock: Clock,
    ) -> Self {
        let spans = [span(&first), span(&second)];
        let connection = |one: &Joined| {
            let pair = [
                &first.connections[one.first],
                &second.connections[one.second],
            ];
            let segments = pair.map(|connection| connection.sightings.len());
            let report = JoinedReport::new(one, pair, clock, spans);
            (segments[0].max(segments[1]), report)
        };
        let conversation = |one: &Joined| {
            let pair = [
                &first.conversations[one.first],
                &second.conversations[one.second],
            ];
            JoinedReport::new(one, pair, clock, spans)
        };
        let mut connections: Vec<(usize, JoinedReport)> = joined.iter().map(connection).collect();
        connections.sort_by_key(|(segments, one)| (std::cmp::Reverse(*segments), one.numbers));
        let mut conversations: Vec<JoinedReport> = spoken.iter().map(conversation).collect();
        let said = [&first, &second].map(|seen| {
            let mut files = seen.trace.files.iter();
            files.any(|file| file.lost.is_some_and(|lost| lost > 0))
        });
        doubt(&mut connections, &mut conversations, said);
        let all: Vec<&JoinedReport> = connections.iter().map(|(_, one)| one).collect();
        decide(&mut first.trace, 0, &all);
        decide(&mut second.trace, 1, &all);
        let sent = |one: &JoinedReport| one.from_client.sent + one.from_server.sent;
        connections.truncate(CONNECTIONS_MAX);
        conversations.sort_by_key(|one| (std::cmp::Reverse(sent(one)), one.numbers));
        conversations.truncate(CONNECTIONS_MAX);
        let alone = [&first, &second].map(|seen| (seen.connections.len() - joined.len()) as u64);
        let mut warnings = Vec::new();
        for seen in [&first, &second] {
            if seen.left_out > 0 {
                warnings.push(format!(
                    "{}: {} beyond those that are kept went uncompared",
                    seen.trace.name(),
                    counted(seen.left_out, "packet")
                ));
            }
        }
        if clock.uncertainty_ns.is_none() {
            warnings.push(
                "segments went one way only: how far the clocks are apart is not known, and the \
                 shortest way is taken for none"
                    .to_owned(),
            );
        }
        Self {
            schema: "linerate.trace.both",
            schema_version: BOTH_SCHEMA_VERSION,
            files: [first.trace.name(), second.trace.name()],
            clock,
            connections: connections.into_iter().map(|(_, one)| one).collect(),
            alone,
            conversations,
            warnings,
            captures: [first.trace, second.trace],
        }
    }

    /// Returns the document as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self)
            .expect("the document has no map with odd keys and no failing serializer")
    }
}

/// Returns when a capture ran; to the last that was kept of it, where that is not all.
fn span(seen: &Seen) -> (u64, u64) {
    let last = match seen.left_out {
        0 => seen.trace.end_ns(),
        _ => Some(seen.kept_until_ns),
    };
    (seen.trace.begin_ns().unwrap_or(0), last.unwrap_or(0))
}

impl JoinedReport {
    fn new<S: Sighted>(
        joined: &Joined,
        pair: [&SeenFlow<S>; 2],
        clock: Clock,
        spans: [(u64, u64); 2],
    ) -> Self {
        /// Fewer sendings with another identification may be mistaken for each other.
        const IDENTIFIED_MIN: u64 = 3;
        let [first, second] = pair;
        let normal = second.sightings.iter().map(|one| one.as_first(joined));
        let normal: Vec<S> = normal.collect();
        let captures = [&first.sightings[..], &normal[..]];
        let mut rewritten = Vec::new();
        let [from_client, from_server] = End::BOTH.map(|end| {
            let sent_at = joined.sent_at(end);
            let by = |capture: usize, end: End| -> Vec<S> {
                let all = captures[capture].iter();
                all.filter(|one| one.end() == end).copied().collect()
            };
            let way = S::way(&Course {
                sent: &by(sent_at, end),
                arrived: &by(1 - sent_at, end),
                answers: &by(1 - sent_at, end.other()),
                clock,
                is_forward: sent_at == 0,
                span_ns: spans[1 - sent_at],
                sent_end_ns: spans[sent_at].1,
            });
            rewritten.extend(rewritings(joined, pair, end, sent_at));
            let is_other = way.identified.0 == 0 && way.identified.1 >= IDENTIFIED_MIN;
            let others = [
                (way.stamps_differ, "timestamps"),
                (is_other, "IP identification"),
            ];
            for (_, what) in others.into_iter().filter(|(differs, _)| *differs) {
                rewritten.push(Rewritten {
                    end,
                    what,
                    sent: "as sent".to_owned(),
                    arrived: "others".to_owned(),
                });
            }
            WayReport::new(sent_at, way)
        });
        let turned = |end: End| join::turn(end, joined.is_turned) as usize;
        let of = |end: End| [first.ends[end as usize], second.ends[turned(end)]];
        Self {
            numbers: pair.map(|one| one.number),
            client: of(End::Client),
            server: of(End::Server),
            nearer_to_client: joined.nearer_to_client(),
            from_client,
            from_server,
            rewritten,
        }
    }

    /// Returns the direction from `end`.
    pub(crate) fn from(&self, end: End) -> &WayReport {
        match end {
            End::Client => &self.from_client,
            End::Server => &self.from_server,
        }
    }
}

/// Returns that `what` of `end` is another behind the way, if it is.
fn differing(end: End, what: &'static str, [sent, arrived]: [String; 2]) -> Option<Rewritten> {
    (sent != arrived).then_some(Rewritten {
        end,
        what,
        sent,
        arrived,
    })
}

/// Returns what of the SYN of `end`, its address and its numbers is another behind the way.
fn rewritings<S>(
    joined: &Joined,
    pair: [&SeenFlow<S>; 2],
    end: End,
    sent_at: usize,
) -> Vec<Rewritten> {
    let end_in = |capture: usize| match capture {
        0 => end,
        _ => join::turn(end, joined.is_turned),
    };
    let order = [sent_at, 1 - sent_at];
    let mut found = Vec::new();
    let mut compare = |what, values| found.extend(differing(end, what, values));
    let ends = order.map(|capture| pair[capture].ends[end_in(capture) as usize]);
    compare("address", ends.map(|one| one.address.to_string()));
    compare("port", ends.map(|one| one.port.to_string()));
    let offers = order.map(|capture| pair[capture].offers[end_in(capture) as usize]);
    if let [Some((one, first)), Some((other, second))] = offers {
        let written = |number: Option<String>| number.unwrap_or_else(|| "none".to_owned());
        let offers = [one, other];
        compare(
            "MSS",
            offers.map(|offer| written(offer.mss_bytes.map(|mss| format!("{mss} B")))),
        );
        if !offers.iter().any(|offer| offer.options_cut) {
            compare(
                "window scale",
                offers.map(|offer| written(offer.window_scale.map(|scale| scale.to_string()))),
            );
            let yes = |is_there: Option<bool>| match is_there {
                Some(true) => "offered".to_owned(),
                _ => "none".to_owned(),
            };
            compare("SACK", offers.map(|offer| yes(offer.sack_permitted)));
            compare(
                "timestamps option",
                offers.map(|offer| yes(offer.timestamps)),
            );
        }
        compare(
            "sequence numbers",
            [first, second].map(|number| format!("from {number}")),
        );
    }
    found
}

impl WayReport {
    fn new(sent_at: usize, way: Way) -> Self {
        let all = |fate: Fate| way.sendings.iter().filter(move |one| one.fate == fate);
        let mut delays: Vec<(u64, i64)> = way
            .sendings
            .iter()
            .filter_map(|one| Some((u64::try_from(one.time_ns).ok()?, one.delay_ns?)))
            .collect();
        delays.sort_unstable();
        let again = |lost: &Sending| {
            let mut later = way.sendings.iter().filter(|one| {
                one.from <= lost.from && one.to > lost.from && one.time_ns > lost.time_ns
            });
            later
                .find(|one| one.fate == Fate::Arrived)
                .map(|one| one.sighting.frame)
        };
        Self {
            sent_at,
            sent: way.sendings.len() as u64,
            arrived: all(Fate::Arrived).count() as u64,
            lost: all(Fate::Lost).count() as u64,
            lost_bytes: all(Fate::Lost)
                .map(|one| u64::from(one.sighting.payload_bytes))
                .sum(),
            missed_by_capture: all(Fate::Missed).count() as u64,
            outside: all(Fate::Unknown).count() as u64,
            delay: DelayReport::new(&delays),
            examples: all(Fate::Lost)
                .take(EXAMPLES_MAX)
                .map(|one| LostReport {
                    frame: one.sighting.frame,
                    at_ns: one.sighting.time_ns,
                    again_frame: again(one),
                    payload_bytes: one.sighting.payload_bytes,
                })
                .collect(),
            losses_ns: all(Fate::Lost)
                .filter_map(|one| u64::try_from(one.time_ns).ok())
                .collect(),
            points: thinned(&delays),
            ..way.report
        }
    }

    /// Notes what the way did to a packet.
    pub(super) fn note_passing(&mut self, sent: &Sighting, arrived: &Sighting) {
        let marked = arrived.congestion_marked && !sent.congestion_marked;
        self.marked += u64::from(marked);
        self.hops = sent.hop_limit.checked_sub(arrived.hop_limit).or(self.hops);
    }
}

/// Takes back what only a whole capture can tell: that an acknowledgement or a datagram that is in the one
/// and not in the other was lost. `leaky` are the captures that say that they lost frames; others lack what
/// they must have seen. Lost segments are sent again, so of them it is known.
fn doubt(
    connections: &mut [(usize, JoinedReport)],
    conversations: &mut [JoinedReport],
    mut leaky: [bool; 2],
) {
    let ways = |one: &JoinedReport| End::BOTH.map(|end| one.from(end).leaks());
    for (at, leaks) in connections.iter().flat_map(|(_, one)| ways(one)).flatten() {
        leaky[at] |= leaks;
    }
    for one in connections.iter_mut().map(|(_, one)| one) {
        for way in [&mut one.from_client, &mut one.from_server] {
            if leaky[1 - way.sent_at] {
                way.acks_undecided = std::mem::take(&mut way.acks_lost);
            }
        }
    }
    for one in conversations {
        for way in [&mut one.from_client, &mut one.from_server] {
            if leaky[1 - way.sent_at] {
                way.undecided = std::mem::take(&mut way.lost);
                way.lost_bytes = 0;
                way.examples.clear();
                way.losses_ns.clear();
            }
        }
    }
}

impl WayReport {
    /// Returns which captures lack segments that they must have seen.
    fn leaks(&self) -> [(usize, bool); 2] {
        [
            (self.sent_at, self.unseen > 0),
            (1 - self.sent_at, self.missed_by_capture > 0),
        ]
    }
}

impl DelayReport {
    fn new(delays: &[(u64, i64)]) -> Option<Self> {
        let mut sorted: Vec<i64> = delays.iter().map(|(_, delay)| *delay).collect();
        sorted.sort_unstable();
        let min_ns = *sorted.first()?;
        let quantile = |share: f64| {
            let at = (sorted.len() as f64 * share).ceil() as usize;
            sorted[at.clamp(1, sorted.len()) - 1].abs_diff(min_ns)
        };
        Some(Self {
            count: sorted.len() as u64,
            min_ns,
            above_min_median_ns: quantile(0.5),
            above_min_p99_ns: quantile(0.99),
            above_min_max_ns: quantile(1.0),
        })
    }
}

/// Keeps of each stretch of the time its least and its most.
fn thinned(delays: &[(u64, i64)]) -> Vec<(u64, i64)> {
    if delays.len() <= POINTS_MAX {
        return delays.to_vec();
    }
    let width = delays.len().div_ceil(POINTS_MAX / 2);
    let mut kept = Vec::with_capacity(POINTS_MAX);
    for stretch in delays.chunks(width) {
        let least = stretch.iter().min_by_key(|point| point.1);
        let most = stretch.iter().max_by_key(|point| point.1);
        let mut both: Vec<_> = [least, most].into_iter().flatten().copied().collect();
        both.sort_unstable();
        both.dedup();
        kept.extend(both);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Reader;
    use crate::{Limits, Tracker};

    /// Returns a capture of 300 datagrams, one a millisecond, of which so many are kept.
    fn seen(late_us: u32, most: usize) -> Seen {
        let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([0, 0, 4, 0, 101, 0, 0, 0]);
        for at in 0..300u32 {
            let mut ip = vec![0x45, 0, 0, 36];
            ip.extend((at as u16).to_be_bytes());
            ip.extend([0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            ip.extend([0x13, 0x88, 0x17, 0x70, 0, 16, 0, 0]);
            ip.extend(u64::from(at).to_be_bytes());
            for word in [1000 + at / 1000, at % 1000 * 1000 + late_us, 36, 36] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(ip);
        }
        let mut reader = Reader::new(&bytes[..]).expect("a capture");
        let tracker = Tracker::new(Limits::default());
        Seen::read_most(tracker, &mut reader, "capture", most).expect("of IP")
    }

    #[test]
    fn what_lies_behind_those_that_are_kept_is_not_told_lost() {
        for (most, outside) in [(1000, 0), (100, 200)] {
            let both = super::super::join(seen(0, 1000), seen(100, most)).expect("the same");
            let way = &both.conversations[0].from_client;
            assert_eq!((way.lost, way.outside), (0, outside), "{way:?}");
        }
    }
}
