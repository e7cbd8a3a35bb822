//! A document as a report: the findings with their frames, and for the connections that matter the
//! pictures that an engineer draws of a capture. The report room sets it and draws it.
//!
//! 1. *Time and sequence*: each segment as an upright stroke from its first number to its last, the
//!    acknowledgements as a line below, the receiver's window as a line above, what was sent again
//!    in a colour of its own. Of connections with many packets, what was sent over time instead.
//! 2. *Data per acknowledgement* over time.
//! 3. *Throughput* over time.

use linerate_model::analysis::{
    ANALYSIS_FORMAT, Analysis, Axis, Chapter, Curve, Figure, Origin, Point, Position, Scale, Table,
    TableCell,
};
use linerate_model::finding::{
    Estimate, Evidence, EvidenceList, Finding, FindingKind, Limiter, Recommendation,
};
use linerate_model::sample::End;
use linerate_model::unit::Unit;

use crate::connection::{FrameId, PlottedPacket, Verdict};
use crate::document::{ConnectionReport, TimelineReport, Trace};
use crate::findings::{Proof, TcpFinding, TcpFindingKind};
use crate::number::{bytes, count, ns};

/// Connections that get pictures.
const CONNECTIONS_MAX: usize = 8;
/// PlottedPackets of a curve over time: neighbours are joined until there are no more.
const BINS_MAX: usize = 128;

/// How far above the highest number the receiver's window is drawn, as a multiple of it.
const WINDOW_ABOVE_MAX: f64 = 2.0;

/// Returns the document as a report, titled `title`.
pub fn page(trace: &Trace, title: &str) -> Analysis {
    Analysis {
        format: ANALYSIS_FORMAT,
        title: title.to_owned(),
        about: about(trace),
        partial: None,
        summary: summary(trace),
        // A capture shows what was on the wire; no number was measured that could be doubted.
        trust: None,
        cautions: Vec::new(),
        verdicts: Vec::new(),
        findings: findings_of(trace),
        recommendations: recommendations(trace),
        chapters: pictured(trace).map(chapter).collect(),
        hosts: Vec::new(),
        counters: Vec::new(),
        interrupts: Vec::new(),
        left_out: Vec::new(),
        damage: Vec::new(),
        flames: Vec::new(),
    }
}

/// Returns the connections that get pictures: those that prove findings, then the largest.
fn pictured(trace: &Trace) -> impl Iterator<Item = &ConnectionReport> {
    let proven: Vec<u32> = trace
        .findings
        .iter()
        .filter_map(|finding| finding.proofs.first())
        .map(|proof| proof.connection)
        .collect();
    let rank = move |connection: &&ConnectionReport| {
        let place = proven
            .iter()
            .position(|&number| number == connection.number);
        place.unwrap_or(usize::MAX)
    };
    let mut connections: Vec<&ConnectionReport> = trace
        .connections
        .iter()
        .filter(|connection| connection.detailed)
        .collect();
    // The sort is stable: behind those with findings the most payload comes first.
    connections.sort_by_key(rank);
    connections.into_iter().take(CONNECTIONS_MAX)
}

fn about(trace: &Trace) -> Vec<(String, String)> {
    let totals = &trace.totals;
    let names: Vec<&str> = trace.files.iter().map(|file| &*file.name).collect();
    let pair = |label: &str, text: String| (label.to_owned(), text);
    let mut about = vec![
        pair("Captures", names.join(", ")),
        pair("Frames", count(totals.frames)),
        pair("Time", ns(trace.duration_ns().unwrap_or(0))),
        pair("Connections", count(totals.connections)),
        pair("Payload", bytes(totals.payload_bytes)),
    ];
    about.extend(
        trace
            .warnings
            .iter()
            .map(|text| pair("Warning", text.clone())),
    );
    about
}

fn summary(trace: &Trace) -> Table {
    let columns = [
        "Connection",
        "Time",
        "Sent by",
        "Payload",
        "Data segments",
        "Pure ACKs for it",
        "Data per ACK",
        "Round trip",
        "Sent again",
    ];
    let absent = |why: &str| TableCell::Absent(why.to_owned());
    let number = |value: f64, unit| TableCell::Number(value, unit);
    let row = |connection: &ConnectionReport, end: End| {
        let (own, peer) = (connection.end(end), connection.end(end.other()));
        let per_ack = f64::from(own.data_packets) / f64::from(peer.pure_acks);
        vec![
            TableCell::Text(format!("#{}", connection.number)),
            number(connection.duration_ns as f64, Unit::Nanoseconds),
            TableCell::Text(connection.endpoint(end).to_string()),
            number(own.payload_bytes as f64, Unit::Bytes),
            number(f64::from(own.data_packets), Unit::Count),
            number(f64::from(peer.pure_acks), Unit::Count),
            match peer.pure_acks {
                0 => absent("none"),
                _ => number(per_ack, Unit::Ratio),
            },
            match own.round_trip.and_then(|trip| trip.median_ns) {
                Some(ns) => number(ns as f64, Unit::Nanoseconds),
                None => absent("no ACK"),
            },
            number(
                own.counts
                    .map_or(0.0, |counts| f64::from(counts.retransmissions)),
                Unit::Count,
            ),
        ]
    };
    let rows = pictured(trace)
        .flat_map(|connection| End::BOTH.map(|end| (connection, end)))
        .filter(|(connection, end)| connection.end(*end).data_packets > 0)
        .map(|(connection, end)| row(connection, end))
        .collect();
    Table {
        title: String::new(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }
}

fn id_of(at: usize) -> String {
    format!("trace/{}", at + 1)
}

fn findings_of(trace: &Trace) -> Vec<Finding> {
    trace
        .findings
        .iter()
        .enumerate()
        .filter_map(|(at, finding)| {
            let mut evidence = finding.proofs.iter().map(|proof| evidence(proof, finding));
            let first = evidence.next()?;
            Some(Finding {
                id: id_of(at),
                chapter: None,
                kind: kind(finding.kind),
                claim: finding.claim.clone(),
                explanation: finding.explanation.clone(),
                effect: effect(finding),
                evidence: EvidenceList::new(first, evidence.collect()),
            })
        })
        .collect()
}

fn kind(kind: TcpFindingKind) -> FindingKind {
    match kind {
        TcpFindingKind::NagleDelayedAck => FindingKind::Limiter(Limiter::NagleDelayedAck),
        TcpFindingKind::WindowLimit
        | TcpFindingKind::ZeroWindow
        | TcpFindingKind::NoWindowScaling => FindingKind::Limiter(Limiter::ReceiverWindow),
        TcpFindingKind::Refused
        | TcpFindingKind::Unanswered
        | TcpFindingKind::SynAgain
        | TcpFindingKind::Unreachable
        | TcpFindingKind::Reset
        | TcpFindingKind::HalfOpen
        | TcpFindingKind::PeerSilent
        | TcpFindingKind::SlowAnswer
        | TcpFindingKind::Queue
        | TcpFindingKind::Loss
        | TcpFindingKind::LossBurst
        | TcpFindingKind::RetransmissionTimeout
        | TcpFindingKind::PathMtu => FindingKind::Effect,
        TcpFindingKind::Superframes => FindingKind::Caution,
        TcpFindingKind::ClientPause
        | TcpFindingKind::IdleSender
        | TcpFindingKind::CongestionMarks
        | TcpFindingKind::Spurious
        | TcpFindingKind::Reordering
        | TcpFindingKind::DelayedAck
        | TcpFindingKind::SmallSegments
        | TcpFindingKind::ClampedMss => FindingKind::Derived,
    }
}

fn effect(finding: &TcpFinding) -> Estimate {
    match finding.total_ns {
        0 => estimate(finding.count as f64, Unit::Count, finding.connections),
        ns => estimate(ns as f64, Unit::Nanoseconds, finding.connections),
    }
}

fn estimate(value: f64, unit: Unit, n: u32) -> Estimate {
    Estimate {
        n,
        ..Estimate::point(value, unit)
    }
}

/// Returns which frames of which connection prove something.
pub(crate) fn proof_words(proof: &Proof) -> String {
    let frames: Vec<String> = proof
        .frames
        .iter()
        .map(|frame| match frame.file() {
            0 => frame.number().to_string(),
            file => format!("{} of file {}", frame.number(), file + 1),
        })
        .collect();
    match &frames[..] {
        [] => format!("connection #{}", proof.connection),
        [one] => format!("connection #{}, frame {one}", proof.connection),
        more => format!(
            "connection #{}, frames {}",
            proof.connection,
            more.join(" → ")
        ),
    }
}

fn evidence(proof: &Proof, finding: &TcpFinding) -> Evidence {
    let what = proof_words(proof);
    let estimate = match proof.length_ns {
        0 => estimate(finding.count as f64, Unit::Count, 1),
        ns => estimate(ns as f64, Unit::Nanoseconds, 1),
    };
    Evidence {
        what,
        estimate,
        trials: Vec::new(),
    }
}

fn recommendations(trace: &Trace) -> Vec<Recommendation> {
    let files: Vec<&str> = trace.files.iter().map(|file| &*file.name).collect();
    trace
        .findings
        .iter()
        .enumerate()
        .filter_map(|(at, finding)| {
            let action = finding.advice.clone()?;
            let predicted = match finding.total_ns {
                0 => "the finding goes away".to_owned(),
                total_ns => format!(
                    "{} less of waiting in a capture like this one",
                    ns(total_ns)
                ),
            };
            Some(Recommendation {
                finding: id_of(at),
                action: capitalised(&action),
                predicted,
                cost: String::new(),
                undo: String::new(),
                confirm: format!(
                    "linerate trace --flow {},{} {}",
                    finding.who,
                    finding.toward,
                    files.join(" ")
                ),
            })
        })
        .collect()
}

/// Returns `text` as the begin of a sentence; behind the arrow of a terminal it goes on.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// Draws a connection.
pub(crate) fn connection_figures(connection: &ConnectionReport) -> Vec<Figure> {
    let mut figures = Vec::new();
    for end in End::BOTH {
        if connection.end(end).data_packets > 1 {
            figures.extend(sequence_figure(connection, end));
        }
    }
    if let Some(timeline) = &connection.timeline {
        figures.extend(ratio_figure(connection, timeline));
        figures.push(rate_figure(connection, timeline));
    }
    figures
}

fn chapter(connection: &ConnectionReport) -> Chapter {
    Chapter {
        number: None,
        id: format!("connection-{}", connection.number),
        title: format!(
            "#{} {} → {}",
            connection.number, connection.client, connection.server
        ),
        question: String::new(),
        answer: Some(answer(connection)),
        method: String::new(),
        figures: connection_figures(connection),
        tables: vec![gap_table(connection)],
        findings: Vec::new(),
        trials: Vec::new(),
    }
}

fn answer(connection: &ConnectionReport) -> String {
    let sent = |end: End| {
        let own = connection.end(end);
        format!(
            "the {} sent {} in {} segments and {} pure ACKs",
            end,
            bytes(own.payload_bytes),
            count(own.data_packets),
            count(own.pure_acks),
        )
    };
    let at = connection
        .captured_at
        .map_or(String::new(), |end| format!(", captured at the {end}"));
    format!(
        "In {}{at}: {}; {}.",
        ns(connection.duration_ns),
        sent(End::Client),
        sent(End::Server)
    )
}

fn gap_table(connection: &ConnectionReport) -> Table {
    let columns = [
        "Waited for",
        "At",
        "Times",
        "In all",
        "Longest",
        "Ended by frame",
    ];
    let rows = connection.gaps.iter().map(|gap| {
        vec![
            TableCell::Text(gap.cause.title().to_owned()),
            TableCell::Text(gap.end.to_string()),
            TableCell::Number(f64::from(gap.count), Unit::Count),
            TableCell::Number(gap.total_ns as f64, Unit::Nanoseconds),
            TableCell::Number(gap.longest_ns as f64, Unit::Nanoseconds),
            match gap.longest_frame {
                Some(frame) => TableCell::Text(frame.number().to_string()),
                None => TableCell::Absent("none".to_owned()),
            },
        ]
    });
    Table {
        title: "Silences of 5 ms and more".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

/// The axis of time since the connection's first packet.
fn time_axis() -> Axis {
    Axis {
        label: "Time since the first packet".to_owned(),
        unit: Unit::Nanoseconds,
        scale: Scale::Linear,
    }
}

fn point(ns: u64, y: f64, note: String) -> Point {
    Point {
        x: Position::Number(ns as f64),
        y,
        low: None,
        high: None,
        note,
    }
}

fn curve(name: &str, origin: Origin, points: Vec<Point>) -> Curve {
    Curve {
        name: name.to_owned(),
        origin,
        points,
    }
}

/// Draws what `end` sent, packet by packet if they were kept, else from the timeline.
fn sequence_figure(connection: &ConnectionReport, end: End) -> Option<Figure> {
    let points = connection
        .points
        .as_ref()
        .and_then(|points| points.as_slice());
    let curves = match points {
        Some(points) => packet_curves(connection, points, end),
        None => vec![sum_curve(connection.timeline.as_ref()?, end)],
    };
    let curves: Vec<Curve> = curves
        .into_iter()
        .filter(|curve| !curve.points.is_empty())
        .collect();
    Some(Figure {
        id: format!("sequence-{}-{}", connection.number, end),
        title: format!("Time and sequence, sent by the {}", end),
        caption: match points {
            Some(_) => "Each stroke is a segment from its first byte to its last. The line below \
                        says what was acknowledged, the one above up to where the receiver's \
                        window allowed to send."
                .to_owned(),
            None => "Payload sent until each instant, that sent again included. Connections of up \
                     to 2000 packets are drawn packet by packet."
                .to_owned(),
        },
        x: time_axis(),
        y: Axis {
            label: "Sequence number from the first".to_owned(),
            unit: Unit::Bytes,
            scale: Scale::Linear,
        },
        curves,
    })
}

fn packet_curves(connection: &ConnectionReport, points: &[PlottedPacket], end: End) -> Vec<Curve> {
    let (mut sent, mut again, mut acked, mut edge) = (vec![], vec![], vec![], vec![]);
    for packet in points {
        let ns = packet.time_ns.saturating_sub(connection.start_ns);
        let frame = packet.frame.map_or(0, FrameId::number);
        if packet.end == end {
            if packet.payload_bytes == 0 {
                continue;
            }
            let into = if packet.verdict.any(Verdict::RETRANSMISSION) {
                &mut again
            } else {
                &mut sent
            };
            let names: Vec<&str> = packet.verdict.names().collect();
            let note = format!("frame {frame}: {}", names.join(", ").replace('_', " "));
            let low = f64::from(packet.sequence);
            into.push(point(ns, low, note.clone()));
            into.push(point(ns, low + f64::from(packet.payload_bytes), note));
            // A break, so that strokes are not joined.
            into.push(point(ns, f64::NAN, String::new()));
            continue;
        }
        if let Some(number) = packet.acknowledged {
            step(&mut acked, ns, f64::from(number), frame);
        }
        if let Some(number) = packet.window_edge {
            step(&mut edge, ns, f64::from(number), frame);
        }
    }
    let highest = |points: &[Point]| points.iter().map(|point| point.y).fold(0.0, f64::max);
    // A window far above everything would leave a line at the bottom of the picture.
    let top = highest(&sent).max(highest(&acked));
    edge.retain(|point: &Point| point.y <= top * WINDOW_ABOVE_MAX);
    vec![
        curve("segments", Origin::Measured, sent),
        curve("sent again", Origin::Measured, again),
        curve("acknowledged", Origin::Measured, acked),
        curve("receiver's window", Origin::Computed, edge),
    ]
}

/// Adds a step of a line that stays level until it changes.
fn step(points: &mut Vec<Point>, ns: u64, y: f64, frame: u64) {
    if let Some(last) = points.last() {
        if last.y == y {
            return;
        }
        let level = point(ns, last.y, String::new());
        points.push(level);
    }
    points.push(point(ns, y, format!("frame {frame}")));
}

/// A stretch of a timeline, neighbours joined.
struct Stretch {
    /// Its middle, since the connection's first packet.
    ns: u64,
    seconds: f64,
    data_packets: u32,
    acks_of_other: u32,
    payload_bytes: u64,
}

fn stretches(timeline: &TimelineReport, end: End) -> Vec<Stretch> {
    let (own, other) = (timeline.end(end), timeline.end(end.other()));
    let count = own.payload_bytes.len();
    let joined = count.div_ceil(BINS_MAX).max(1);
    let sum = |values: &[u32], from: usize, to: usize| values[from..to].iter().sum::<u32>();
    (0..count)
        .step_by(joined)
        .map(|from| {
            let to = (from + joined).min(count);
            let width_ns = timeline.width_ns.saturating_mul((to - from) as u64);
            let before_ns = timeline.width_ns.saturating_mul(from as u64);
            Stretch {
                ns: before_ns.saturating_add(width_ns / 2),
                seconds: width_ns as f64 / 1e9,
                data_packets: sum(&own.data_packets, from, to),
                acks_of_other: sum(&other.pure_acks, from, to),
                payload_bytes: own.payload_bytes[from..to].iter().sum(),
            }
        })
        .collect()
}

fn sum_curve(timeline: &TimelineReport, end: End) -> Curve {
    let mut sum = 0;
    let points = stretches(timeline, end).into_iter().map(|stretch| {
        sum += stretch.payload_bytes;
        point(stretch.ns, sum as f64, String::new())
    });
    curve("payload sent", Origin::Measured, points.collect())
}

fn ratio_figure(connection: &ConnectionReport, timeline: &TimelineReport) -> Option<Figure> {
    let curves: Vec<Curve> = End::BOTH
        .into_iter()
        .filter(|&end| connection.end(end).data_packets >= 32)
        .map(|end| {
            let points = stretches(timeline, end)
                .into_iter()
                .filter(|stretch| stretch.acks_of_other > 0 && stretch.data_packets > 0)
                .map(|stretch| {
                    let ratio = f64::from(stretch.data_packets) / f64::from(stretch.acks_of_other);
                    let note = format!(
                        "{} data segments, {} pure ACKs",
                        stretch.data_packets, stretch.acks_of_other
                    );
                    point(stretch.ns, ratio, note)
                });
            let name = format!("data of the {}", end);
            curve(&name, Origin::Measured, points.collect())
        })
        .filter(|curve| curve.points.len() > 1)
        .collect();
    (!curves.is_empty()).then(|| Figure {
        id: format!("ratio-{}", connection.number),
        title: "Data segments per acknowledgement".to_owned(),
        caption: "Segments with payload over the pure acknowledgements that the other end sent in \
                  the same time."
            .to_owned(),
        x: time_axis(),
        y: Axis {
            label: "Data segments per ACK".to_owned(),
            unit: Unit::Ratio,
            scale: Scale::Linear,
        },
        curves,
    })
}

fn rate_figure(connection: &ConnectionReport, timeline: &TimelineReport) -> Figure {
    let curves = End::BOTH
        .into_iter()
        .filter(|&end| connection.end(end).payload_bytes > 0)
        .map(|end| {
            let points = stretches(timeline, end).into_iter().map(|stretch| {
                let rate = stretch.payload_bytes as f64 * 8.0 / stretch.seconds;
                point(stretch.ns, rate, String::new())
            });
            let name = format!("from the {}", end);
            curve(&name, Origin::Measured, points.collect())
        });
    Figure {
        id: format!("rate-{}", connection.number),
        title: "Throughput".to_owned(),
        caption: "Payload, that sent again included.".to_owned(),
        x: time_axis(),
        y: Axis {
            label: "Payload".to_owned(),
            unit: Unit::BitsPerSecond,
            scale: Scale::Linear,
        },
        curves: curves.collect(),
    }
}
