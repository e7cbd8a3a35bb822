//! One connection as the document shows it.

use linerate_model::sample::End;
use serde::Serialize;

use crate::connection::{
    Cause, Connection, Counts, Detail, Durations, EndDetail, Endpoint, FrameId, Gaps, Half,
    Incident, Leg, Offer, Phase, Picture, Sizes, Spread, Timeline,
};

/// One connection.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ConnectionReport {
    /// Its number in the order of first packets, from 1.
    pub number: u32,
    /// The end that connected.
    pub client: Endpoint,
    /// The end that accepted.
    pub server: Endpoint,
    /// Its first frame.
    pub first_frame: Option<FrameId>,
    /// When its first packet was captured, in nanoseconds since 1970.
    pub start_ns: u64,
    /// From its first packet to its last.
    pub duration_ns: u64,
    /// Whether both SYNs were captured.
    pub handshake: bool,
    /// From SYN to SYN-ACK.
    pub syn_to_answer_ns: Option<u64>,
    /// From SYN-ACK to the client's next segment.
    pub answer_to_ack_ns: Option<u64>,
    /// How it ended.
    pub ending: Ending,
    /// Whether only one direction was captured.
    pub one_sided: bool,
    /// The end that the capture was taken at, if the round trips to both ends are known and differ
    /// by far: the other end's data shows when it arrived, not when it was sent.
    pub captured_at: Option<End>,
    /// Bytes of a full segment, where they are known and the same in both directions.
    pub segment_bytes: Option<u32>,
    /// The client's side.
    pub from_client: EndReport,
    /// The server's side.
    pub from_server: EndReport,
    /// What its life went into, in shares that add up to 1; unknown where only one direction was
    /// captured, and of what was only counted.
    pub time: Option<LifeReport>,
    /// Times without a packet by cause, the longest together first.
    pub gaps: Vec<Gaps>,
    /// What happened.
    #[serde(rename = "happenings")]
    pub(crate) incidents: Vec<Incident>,
    /// Over time, if it has packets enough.
    pub(crate) timeline: Option<TimelineReport>,
    /// Whether more than counts was kept.
    pub detailed: bool,
    /// As it is drawn.
    #[serde(skip)]
    pub(crate) picture: Option<Box<Picture>>,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Both ends ended their streams.
    Fin,
    /// One end reset it.
    Reset,
    /// The server answered the SYN with a reset.
    Refused,
    /// Nothing answered the SYN for a second at the least, or until it was sent again.
    Unanswered,
    /// The capture ended before.
    Open,
}

/// One end: what it sent, and what it said of the other's data.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct EndReport {
    /// What its SYN offered; nothing if it was not captured.
    pub offer: Option<Offer>,
    /// Bytes of a full segment of what it sends, as far as they are known.
    pub segment_bytes: Option<u32>,
    /// Segments.
    pub packets: u32,
    /// Segments with payload.
    pub data_packets: u32,
    /// Acknowledgements without payload.
    pub pure_acks: u32,
    /// Payload, that sent again included.
    pub payload_bytes: u64,
    /// Payload without what was sent again, over the time from its first data to its last.
    pub bits_per_second: Option<f64>,
    /// Segments with payload to each acknowledgement that advanced and answered them.
    pub data_per_ack: Option<f64>,
    /// The most of them.
    pub data_per_ack_max: Option<u64>,
    /// Counts of what happened.
    pub counts: Option<Counts>,
    /// From its data to the acknowledgement.
    pub round_trip: Option<DurationReport>,
    /// Whether only data acknowledged it, and no handshake was captured: what the other end's program took may be in
    /// all of these round trips.
    pub round_trip_is_bound: bool,
    /// The same by timestamps.
    pub round_trip_by_timestamps: Option<DurationReport>,
    /// Sizes of payloads.
    pub sizes: Option<SizeReport>,
    /// The smallest window that it offered.
    pub window_bytes_min: Option<u64>,
    /// The largest.
    pub window_bytes_max: Option<u64>,
    /// Whether the windows are in bytes: the scale is known.
    pub window_is_scaled: bool,
    /// The most that it had on its way at once.
    pub flight_bytes_max: Option<u32>,
    /// How often and how long its window was closed.
    pub zero_window: Option<DurationReport>,
    /// How long its delayed acknowledgements waited.
    pub ack_delay: Option<DurationReport>,
    /// How long it took from the last data of the other end to its own, without the way: a server's
    /// answers, a client's pauses.
    pub answers: Option<DurationReport>,
    /// Round trips of its data with four full segments on their way at the least.
    pub round_trip_loaded: Option<DurationReport>,
}

/// Durations of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DurationReport {
    /// How many.
    pub count: u32,
    /// The shortest.
    pub min_ns: u64,
    /// The median, right within an eighth; absent where it is not kept.
    pub median_ns: Option<u64>,
    /// The mean.
    pub mean_ns: f64,
    /// The 99th percentile, right within an eighth; absent where it is not kept.
    pub p99_ns: Option<u64>,
    /// The longest.
    pub max_ns: u64,
    /// All together.
    pub sum_ns: u64,
}

/// Sizes of payloads.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SizeReport {
    /// The smallest.
    pub min_bytes: u32,
    /// The largest.
    pub max_bytes: u32,
    /// The most frequent with at least so many packets, most frequent first.
    pub frequent: Vec<(u32, u32)>,
    /// Packets by powers of two: from so many bytes up to twice as many.
    pub powers: Vec<(u32, u32)>,
    /// A sequence of sizes that repeats.
    pub repeating: Option<RepeatReport>,
}

/// A sequence of sizes that repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RepeatReport {
    /// The sizes.
    pub bytes: Vec<u32>,
    /// How many packets in a row followed it.
    pub packets: u32,
}

/// What the life of a connection went into; the shares add up to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LifeReport {
    /// From the SYN until both ends had acknowledged.
    pub handshake: f64,
    /// The client's program had nothing to send, or had not asked or answered yet.
    pub client: f64,
    /// The server's program had nothing to send, or had not answered yet.
    pub server: f64,
    /// What was sent was on its way, or its acknowledgement.
    pub round_trip: f64,
    /// The receiver's window had no room.
    pub window: f64,
    /// Congestion window, pacing, or sending.
    pub congestion: f64,
    /// Waiting for what was sent again, or for the timer that sends it.
    pub recovery: f64,
    /// Nagle's algorithm held a short segment.
    pub nagle: f64,
    /// The other end was not heard of again.
    pub silence: f64,
    /// Nothing was on its way, and nothing came any more.
    pub idle: f64,
    /// The far end went on later than it could have, or was sending; what limited it does not show where this was
    /// captured. Or it answered, and whether its program or the way took the time does not show.
    pub unseen: f64,
    /// Of this, what is no wait for an answer.
    #[serde(skip)]
    pub(crate) unseen_stream: f64,
}

/// A share of a life: its key in a comparison, its name, and where it stands.
type Share = (&'static str, &'static str, fn(&LifeReport) -> f64);

pub(crate) const SHARES: [Share; 11] = [
    ("handshake_percent", "handshake", |time| time.handshake),
    ("client_percent", "client's program", |time| time.client),
    ("server_percent", "server's program", |time| time.server),
    ("round_trip_percent", "round trips", |time| time.round_trip),
    ("window_percent", "receive window", |time| time.window),
    ("congestion_percent", "congestion window, pacing", |time| {
        time.congestion
    }),
    ("recovery_percent", "loss recovery", |time| time.recovery),
    ("nagle_percent", "Nagle's algorithm", |time| time.nagle),
    ("silence_percent", "silence of the peer", |time| {
        time.silence
    }),
    ("idle_percent", "idle", |time| time.idle),
    ("unseen_percent", "far end, not visible here", |time| {
        time.unseen
    }),
];

/// A connection over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(crate) struct TimelineReport {
    /// When the first bin begins, in nanoseconds since 1970.
    pub start_ns: u64,
    /// How wide each bin is.
    pub width_ns: u64,
    /// What the client sent, bin by bin.
    pub from_client: BinsReport,
    /// What the server sent.
    pub from_server: BinsReport,
}

/// What one end sent, bin by bin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(crate) struct BinsReport {
    /// Segments with payload.
    pub data_packets: Vec<u32>,
    /// Acknowledgements without payload.
    pub pure_acks: Vec<u32>,
    /// Payload.
    pub payload_bytes: Vec<u64>,
    /// Segments sent again.
    pub retransmissions: Vec<u32>,
}

impl ConnectionReport {
    /// Returns the report of `connection` with where client and server are.
    /// The capture went on until `end_ns`.
    pub(crate) fn new(
        connection: &Connection,
        [client_at, server_at]: [Endpoint; 2],
        end_ns: u64,
    ) -> Self {
        /// The first retransmission timer of a SYN (RFC 6298).
        const SYN_TIMER_NS: u64 = 1_000_000_000;
        let detail = connection.detail.as_deref();
        let [syn_to_answer_ns, answer_to_ack_ns] = connection.handshake.map(|leg| leg.map(Leg::ns));
        let [client, server] = &connection.halves;
        Self {
            number: connection.number,
            client: client_at,
            server: server_at,
            first_frame: connection.first_frame,
            start_ns: connection.first_ns,
            duration_ns: connection.last_ns.saturating_sub(connection.first_ns),
            handshake: client.has_syn() && server.has_syn(),
            syn_to_answer_ns,
            answer_to_ack_ns,
            ending: if !connection.is_accepted() && server.has_rst() {
                Ending::Refused
            } else if !connection.is_accepted()
                && (client.packets > 1 || end_ns.saturating_sub(connection.last_ns) >= SYN_TIMER_NS)
            {
                Ending::Unanswered
            } else if client.has_rst() || server.has_rst() {
                Ending::Reset
            } else if connection.is_closed() {
                Ending::Fin
            } else {
                Ending::Open
            },
            one_sided: client.is_seen() != server.is_seen() && client.packets + server.packets > 1,
            captured_at: detail.and_then(|detail| detail.captured_at()),
            segment_bytes: detail.and_then(|detail| {
                let [client, server] = detail.ends.each_ref().map(EndDetail::full_bytes);
                client.filter(|_| client == server)
            }),
            from_client: EndReport::new(connection, End::Client),
            from_server: EndReport::new(connection, End::Server),
            time: LifeReport::new(connection),
            gaps: detail.map_or_else(Vec::new, gaps_seen),
            incidents: detail.map_or_else(Vec::new, |detail| detail.incidents.as_slice().to_vec()),
            timeline: detail
                .and_then(|detail| detail.timeline.as_deref())
                .map(TimelineReport::new),
            detailed: detail.is_some(),
            picture: detail.and_then(|detail| detail.picture.clone()),
        }
    }

    /// Returns what `end` sent and said.
    pub(crate) fn end(&self, end: End) -> &EndReport {
        match end {
            End::Client => &self.from_client,
            End::Server => &self.from_server,
        }
    }

    /// Returns whether the far end sent for some of the time, which a capture here shows as it arrives.
    pub(crate) fn has_far_stream(&self) -> bool {
        /// What is shown of the shares.
        const SHARE_MIN: f64 = 0.01;
        self.time
            .is_some_and(|time| time.unseen_stream >= SHARE_MIN)
    }

    /// Returns where `end` is.
    pub(crate) fn endpoint(&self, end: End) -> Endpoint {
        match end {
            End::Client => self.client,
            End::Server => self.server,
        }
    }
}

impl EndReport {
    fn new(connection: &Connection, end: End) -> Self {
        let half = &connection.halves[end as usize];
        let detail = connection.detail.as_deref();
        let own = detail.map(|detail| &detail.ends[end as usize]);
        let scales_known = connection.window_bytes(end).is_some();
        let window = own.map(|own| own.window).filter(|window| window.count > 0);
        let per_ack = own.map(|own| own.data_per_ack);
        Self {
            offer: half.has_syn().then_some(connection.offers[end as usize]),
            segment_bytes: own.and_then(EndDetail::full_bytes),
            packets: half.packets,
            data_packets: half.data_packets,
            pure_acks: half.pure_acks,
            payload_bytes: half.payload_bytes,
            bits_per_second: own.and_then(|own| data_rate(connection, half, own)),
            data_per_ack: per_ack.and_then(|spread| spread.mean()),
            data_per_ack_max: per_ack
                .filter(|spread| spread.count > 0)
                .map(|spread| spread.max),
            counts: own.map(|own| own.counts),
            round_trip: own.and_then(|own| DurationReport::new(&own.round_trip)),
            round_trip_is_bound: detail.is_some_and(|detail| detail.is_way_bound(end.other())),
            round_trip_by_timestamps: own
                .and_then(|own| DurationReport::new(&own.round_trip_by_stamp)),
            sizes: own.and_then(|own| SizeReport::new(&own.sizes)),
            window_bytes_min: window.map(|window| window.min),
            window_bytes_max: window.map(|window| window.max),
            window_is_scaled: scales_known,
            flight_bytes_max: own.map(|own| own.flight_bytes_max),
            zero_window: own.and_then(|own| DurationReport::of_spread(&own.zero_window)),
            ack_delay: own.and_then(|own| DurationReport::new(&own.ack_delay)),
            answers: own.and_then(|own| DurationReport::new(&own.answers)),
            round_trip_loaded: own.and_then(|own| DurationReport::new(&own.round_trip_loaded)),
        }
    }
}

/// Returns what an end sent, without repetitions, over the time in which it sent.
fn data_rate(connection: &Connection, half: &Half, own: &EndDetail) -> Option<f64> {
    let (first, last) = own.data_times_ns()?;
    let elapsed_ns = last.saturating_sub(first);
    let repeated_bytes = own.counts.retransmitted_bytes - own.filled_bytes;
    let bytes = half.payload_bytes.saturating_sub(repeated_bytes);
    // Over a handful of packets there is no rate.
    (elapsed_ns > 0 && half.data_packets >= 8 && connection.last_ns > connection.first_ns)
        .then(|| bytes as f64 * 8e9 / elapsed_ns as f64)
}

impl DurationReport {
    pub(crate) fn new(durations: &Durations) -> Option<Self> {
        Some(Self {
            median_ns: durations.quantile(0.5),
            p99_ns: durations.quantile(0.99),
            ..Self::of_spread(&durations.spread)?
        })
    }

    fn of_spread(spread: &Spread) -> Option<Self> {
        Some(Self {
            count: spread.count,
            min_ns: spread.least()?,
            median_ns: None,
            mean_ns: spread.mean()?,
            p99_ns: None,
            max_ns: spread.max,
            sum_ns: spread.sum,
        })
    }
}

impl SizeReport {
    fn new(sizes: &Sizes) -> Option<Self> {
        let powers = sizes.powers.iter().enumerate();
        (sizes.packets > 0).then(|| Self {
            min_bytes: sizes.min,
            max_bytes: sizes.max,
            frequent: sizes.frequent(),
            powers: powers
                .filter(|(_, count)| **count > 0)
                .map(|(power, count)| (1 << power, *count))
                .collect(),
            repeating: sizes.repeat.map(|repeat| RepeatReport {
                bytes: repeat.sizes().to_vec(),
                packets: repeat.packets,
            }),
        })
    }
}

/// Returns the gaps; of the far end's pauses the reason does not show, nor whether a way that is known as a bound
/// alone took the time or the program.
fn gaps_seen(detail: &Detail) -> Vec<Gaps> {
    let far = detail.captured_at().map(End::other);
    let mut gaps = detail.gaps.clone();
    for end in End::BOTH {
        let is_bound = detail.is_way_bound(end);
        if is_bound || far == Some(end) {
            gaps.rename_all((Cause::Application, end), (Cause::Unseen, end));
        }
        if is_bound {
            gaps.rename_all((Cause::RoundTrip, end), (Cause::Unseen, end));
        }
    }
    gaps.sorted()
}

impl LifeReport {
    fn new(connection: &Connection) -> Option<Self> {
        let all_ns = connection.last_ns.saturating_sub(connection.first_ns);
        if all_ns == 0 || !connection.halves.iter().all(Half::is_seen) && connection.is_accepted() {
            return None;
        }
        let share = |ns: u64| ns as f64 / all_ns as f64;
        let Some(detail) = connection.detail.as_deref() else {
            // Without data and without anything out of the ordinary.
            let legs_ns = connection
                .handshake
                .iter()
                .flatten()
                .map(|leg| leg.ns())
                .sum();
            let handshake = if connection.is_accepted() {
                share(all_ns.min(legs_ns))
            } else {
                1.0
            };
            let is_counted = connection.halves.iter().any(|half| half.data_packets > 0);
            return (!is_counted).then_some(Self {
                handshake,
                idle: 1.0 - handshake,
                ..Self::default()
            });
        };
        let time = |phase| share(detail.life.time_ns(phase));
        let far = detail.captured_at().map(End::other);
        // Where the far end's data is seen as it arrives, what it waits for does not show.
        let pauses = |end: End| [Phase::PAUSES, Phase::GOES_ON].map(|of| time(of[end as usize]));
        // Nor, of a way that is known as a bound alone, what of the time was the program's.
        let is_hidden = |end: End| far == Some(end) || detail.is_way_bound(end);
        let seen = |end: End| {
            if is_hidden(end) {
                [0.0; 2]
            } else {
                pauses(end)
            }
        };
        let [[client, to_client], [server, to_server]] = End::BOTH.map(seen);
        // Nor whether its window had room: what it has on its way does not show.
        let mut congestion = Phase::CONGESTION.map(time);
        let mut ways = Phase::WAY.map(time);
        let mut unseen = far.map_or(0.0, |end| std::mem::take(&mut congestion[end as usize]));
        let mut answers = 0.0;
        for end in End::BOTH.into_iter().filter(|&end| is_hidden(end)) {
            unseen += pauses(end).iter().sum::<f64>();
            if detail.is_way_bound(end) {
                answers += std::mem::take(&mut ways[end as usize]);
            }
        }
        Some(Self {
            handshake: time(Phase::Handshake),
            client: time(Phase::ClientAnswers) + client,
            server: time(Phase::ServerAnswers) + server,
            round_trip: time(Phase::RoundTrip) + ways.iter().sum::<f64>() + to_client + to_server,
            window: time(Phase::Window),
            congestion: congestion.iter().sum(),
            recovery: time(Phase::Recovery),
            nagle: time(Phase::Nagle),
            silence: time(Phase::Silence),
            idle: time(Phase::Idle),
            unseen: unseen + answers,
            unseen_stream: unseen,
        })
    }

    /// Returns each share with its name, the largest first, without those that are none.
    pub(crate) fn named(&self) -> Vec<(&'static str, f64)> {
        let mut shares = SHARES.map(|(_, name, share)| (name, share(self))).to_vec();
        shares.retain(|(_, share)| *share > 0.0);
        shares.sort_by(|one, other| other.1.total_cmp(&one.1));
        shares
    }
}

impl TimelineReport {
    fn new(timeline: &Timeline) -> Self {
        let bins = |end: End| {
            let ends = || timeline.bins.iter().map(move |bin| &bin[end as usize]);
            BinsReport {
                data_packets: ends().map(|bin| bin.data_packets).collect(),
                pure_acks: ends().map(|bin| bin.pure_acks).collect(),
                payload_bytes: ends().map(|bin| bin.payload_bytes).collect(),
                retransmissions: ends().map(|bin| bin.retransmissions).collect(),
            }
        };
        Self {
            start_ns: timeline.start_ns,
            width_ns: timeline.width_ns,
            from_client: bins(End::Client),
            from_server: bins(End::Server),
        }
    }

    /// Returns what `end` sent.
    pub(crate) fn end(&self, end: End) -> &BinsReport {
        match end {
            End::Client => &self.from_client,
            End::Server => &self.from_server,
        }
    }
}
