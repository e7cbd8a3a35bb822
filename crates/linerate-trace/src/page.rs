//! A document as a page: the findings with their frames, and for the connections that matter the pictures
//! that an engineer draws of a capture. The report room sets it and draws it.
//!
//! 1. *Time and sequence*: what was sent as upright strokes from its first number to its last, what was
//!    acknowledged as a line below, the receiver's window as a line above; what was retransmitted and what
//!    was acknowledged selectively in colours of their own, and marks where a finding has its proofs.
//! 2. *Round trips*, *bytes on their way* against the window, and *throughput* over time.
//!
//! Of many packets a picture shows what its pixels have room for: the least and the most of each.

use linerate_model::analysis::{
    Axis, Curve, Figure, Origin, Point, Position, Scale, Table, TableCell,
};
use linerate_model::sample::End;
use linerate_model::text::sentence;
use linerate_model::trace_page::{TracePage, TraceSection, TracedFinding};
use linerate_model::unit::Unit;

use crate::connection::Column;
use crate::datagrams::DatagramsReport;
use crate::document::{ConnectionReport, TimelineReport, Trace};
use crate::findings::{Proof, TcpFinding};
use crate::number::{bytes, count, counted, ns, ratio};
use crate::text::{self, looked_for};

/// Connections that get pictures.
const CONNECTIONS_MAX: usize = 5;
/// Findings that get a card.
const FINDINGS_MAX: usize = 24;
/// Rows of the table of connections.
const ROWS_MAX: usize = 40;
/// Bins of a curve over time: neighbours are joined until there are no more.
const BINS_MAX: usize = 128;
/// Payload of an end, as a share of the other's, from which its direction is drawn too.
const DRAWN_SHARE_MIN: u64 = 10;
/// How far above the highest number the receiver's window is drawn, as a multiple of it.
const WINDOW_ABOVE_MAX: f64 = 1.5;

/// Returns the document as a page, titled `title`.
pub fn page(trace: &Trace, title: &str) -> TracePage {
    let more = trace.findings.len().saturating_sub(FINDINGS_MAX);
    let note = match (trace.findings.len(), more) {
        (0, _) if trace.totals.connections == 0 => {
            Some("There is no TCP connection to explain.".to_owned())
        }
        (0, _) => Some(looked_for(trace)),
        (_, 0) => None,
        _ => Some(format!(
            "{more} more: linerate trace --json has all of them."
        )),
    };
    TracePage {
        title: title.to_owned(),
        about: about(trace),
        warnings: trace.warnings.clone(),
        findings: findings_of(trace),
        note,
        tables: summary(trace)
            .into_iter()
            .chain(conversations(trace))
            .collect(),
        sections: pictured(trace).map(|one| section(one, trace)).collect(),
        terms: match trace.totals.connections {
            0 => Vec::new(),
            _ => terms(),
        },
    }
}

/// Returns what was found, in the order of the document.
pub(crate) fn findings_of(trace: &Trace) -> Vec<TracedFinding> {
    let findings = trace.findings.iter().take(FINDINGS_MAX);
    findings
        .map(|finding| TracedFinding {
            claim: finding.claim.clone(),
            explanation: finding.explanation.clone(),
            also: finding.also.clone(),
            advice: finding.advice.as_deref().map(sentence),
            cost: (finding.total_ns > 0).then(|| ns(finding.total_ns)),
            proofs: finding
                .proofs
                .iter()
                .map(|proof| (proof_words(proof), proof.filter.clone()))
                .collect(),
            filter: finding.display_filter(),
        })
        .collect()
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
        .filter(|connection| connection.picture.is_some())
        .collect();
    // The sort is stable: behind those with findings the most payload comes first.
    connections.sort_by_key(rank);
    connections.into_iter().take(CONNECTIONS_MAX)
}

fn about(trace: &Trace) -> Vec<(String, String)> {
    let totals = &trace.totals;
    let pair = |label: &str, text: String| (label.to_owned(), text);
    let mut about = vec![
        pair("Captures", trace.name()),
        pair("Frames", count(totals.frames)),
        pair("Time", ns(trace.duration_ns().unwrap_or(0))),
        pair("Connections", count(totals.connections)),
    ];
    if totals.connections > 0 {
        about.extend([
            pair("Payload", bytes(totals.payload_bytes)),
            pair("Data segments retransmitted", count(totals.retransmissions)),
        ]);
    }
    if totals.udp > 0 {
        about.push(pair("Datagrams of UDP", count(totals.udp)));
    }
    about
}

/// Returns terms with what they mean, and what Wireshark calls them.
fn terms() -> Vec<(String, String)> {
    [
        (
            "Round trip",
            "From a segment to the acknowledgement that ends where it does, as this capture saw both; none of \
             what was retransmitted (Wireshark: tcp.analysis.ack_rtt).",
        ),
        (
            "Retransmitted",
            "Payload below the highest number of its direction (tcp.analysis.retransmission): fast where \
             acknowledgements asked for it, by timer after a silence, spurious where the receiver had it \
             (tcp.analysis.spurious_retransmission).",
        ),
        (
            "Acknowledged selectively",
            "What the receiver has behind a gap (SACK blocks).",
        ),
        (
            "Receive window",
            "Up to where the sender may send: what is acknowledged and the window that was offered \
             (tcp.window_size).",
        ),
        (
            "Bytes on their way",
            "Sent and not acknowledged yet (tcp.analysis.bytes_in_flight).",
        ),
        (
            "Shares of time",
            "Every instant of a connection has one: a program had nothing to send, segments were on their way, \
             the receive window or the congestion window had no room, lost segments were retransmitted, the other \
             end was silent, or nothing came any more.",
        ),
    ]
    .map(|(term, meaning)| (term.to_owned(), meaning.to_owned()))
    .to_vec()
}

fn summary(trace: &Trace) -> Option<Table> {
    let columns = [
        "Connection",
        "Sent by",
        "To",
        "Time",
        "Payload",
        "Data segments",
        "Data per ACK",
        "Round trip",
        "Retransmitted",
    ];
    let absent = |why: &str| TableCell::Absent(why.to_owned());
    let number = |value: f64, unit| TableCell::Number(value, unit);
    let row = |connection: &ConnectionReport, end: End| {
        let (own, peer) = (connection.end(end), connection.end(end.other()));
        let per_ack = ratio(own.data_packets, peer.pure_acks);
        vec![
            TableCell::Text(format!("#{}", connection.number)),
            TableCell::Text(connection.endpoint(end).to_string()),
            TableCell::Text(connection.endpoint(end.other()).to_string()),
            number(connection.duration_ns as f64, Unit::Nanoseconds),
            number(own.payload_bytes as f64, Unit::Bytes),
            number(f64::from(own.data_packets), Unit::Count),
            TableCell::of(per_ack.map(|ratio| (ratio, Unit::Ratio)), "none"),
            match own.round_trip.and_then(|trip| trip.median_ns) {
                Some(ns) => number(ns as f64, Unit::Nanoseconds),
                None if !connection.detailed => absent("not kept"),
                None => absent("no ACK"),
            },
            TableCell::of(
                own.counts
                    .map(|counts| (f64::from(counts.retransmissions), Unit::Count)),
                "not kept",
            ),
        ]
    };
    let rows: Vec<Vec<TableCell>> = trace
        .connections
        .iter()
        .flat_map(|connection| End::BOTH.map(|end| (connection, end)))
        .filter(|(connection, end)| connection.end(*end).data_packets > 0)
        .take(ROWS_MAX)
        .map(|(connection, end)| row(connection, end))
        .collect();
    (!rows.is_empty()).then(|| Table::new("Connections, most payload first", columns, rows))
}

fn conversations(trace: &Trace) -> Option<Table> {
    let columns = [
        "Client",
        "Server",
        "Protocol",
        "Time",
        "Datagrams",
        "Payload",
        "Longest gap",
        "Answer",
        "Not answered",
    ];
    let number = |value: u64, unit| TableCell::Number(value as f64, unit);
    let shown = |value: Option<u64>, unit| {
        TableCell::of(value.map(|value| (value as f64, unit)), "not seen")
    };
    let rows = trace.conversations.iter().take(ROWS_MAX).map(|one| {
        let ends = [&one.from_client, &one.from_server];
        let sum = |of: fn(&DatagramsReport) -> u64| ends.iter().map(|sent| of(sent)).sum();
        vec![
            TableCell::Text(one.client_name()),
            TableCell::Text(one.server.to_string()),
            TableCell::Text(
                one.protocol
                    .map_or_else(|| "UDP".to_owned(), str::to_uppercase),
            ),
            number(one.duration_ns, Unit::Nanoseconds),
            number(sum(|sent| sent.datagrams), Unit::Count),
            number(sum(|sent| sent.payload_bytes), Unit::Bytes),
            number(
                ends.iter().map(|sent| sent.gap_ns_max).max().unwrap_or(0),
                Unit::Nanoseconds,
            ),
            shown(
                one.answers.and_then(|answers| answers.median_ns),
                Unit::Nanoseconds,
            ),
            shown(one.unanswered, Unit::Count),
        ]
    });
    let rows: Vec<Vec<TableCell>> = rows.collect();
    (!rows.is_empty()).then(|| Table::new("UDP conversations", columns, rows))
}

/// Returns which frames of which connection prove something.
pub(crate) fn proof_words(proof: &Proof) -> String {
    text::proof_words(proof, |frame| match frame.file() {
        0 => frame.number().to_string(),
        file => format!("{} of file {}", frame.number(), file + 1),
    })
}

/// Draws a connection for the report of a run.
pub(crate) fn connection_figures(connection: &ConnectionReport) -> Vec<Figure> {
    let mut figures = picture_figures(connection, &[]);
    if let Some(timeline) = &connection.timeline {
        figures.extend(ratio_figure(connection, timeline));
    }
    figures
}

fn section(connection: &ConnectionReport, trace: &Trace) -> TraceSection {
    let shares = connection.time.map_or_else(Vec::new, |time| time.named());
    TraceSection {
        id: format!("connection-{}", connection.number),
        title: format!(
            "#{} {} → {}",
            connection.number, connection.client, connection.server
        ),
        lines: vec![answer(connection)],
        shares: shares
            .into_iter()
            .map(|(name, share)| (name.to_owned(), share))
            .collect(),
        figures: picture_figures(connection, &trace.findings),
        tables: gap_table(connection).into_iter().collect(),
    }
}

fn answer(connection: &ConnectionReport) -> String {
    let sent = |end: End| {
        let own = connection.end(end);
        format!(
            "the {} sent {} in {} and {}",
            end,
            bytes(own.payload_bytes),
            counted(own.data_packets, "segment"),
            counted(own.pure_acks, "pure ACK"),
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

fn gap_table(connection: &ConnectionReport) -> Option<Table> {
    let columns = [
        "Waited for",
        "At",
        "Times",
        "In all",
        "Longest",
        "Ended by frame",
    ];
    let rows: Vec<Vec<TableCell>> = connection
        .gaps
        .iter()
        .map(|gap| {
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
        })
        .collect();
    (!rows.is_empty()).then(|| Table::new("Silences of 5 ms and more", columns, rows))
}

pub(crate) fn axis(label: &str, unit: Unit) -> Axis {
    Axis::new(label, unit, Scale::Linear)
}

pub(crate) fn point(ns: u64, y: f64, note: String) -> Point {
    Point {
        x: Position::Number(ns as f64),
        y,
        low: None,
        high: None,
        range_of: None,
        note,
        limiter: None,
    }
}

pub(crate) fn curve(name: &str, origin: Origin, points: Vec<Point>) -> Curve {
    Curve {
        name: name.to_owned(),
        origin,
        points,
    }
}

/// Draws what was kept of a connection as it is drawn; `findings` have marks where it proves them.
fn picture_figures(connection: &ConnectionReport, findings: &[TcpFinding]) -> Vec<Figure> {
    let Some(picture) = &connection.picture else {
        return Vec::new();
    };
    let columns = &picture.columns;
    let payload = |end: End| connection.end(end).payload_bytes;
    let is_drawn =
        |end: End| payload(end) > 0 && payload(end) >= payload(end.other()) / DRAWN_SHARE_MIN;
    let drawn: Vec<End> = End::BOTH.into_iter().filter(|&end| is_drawn(end)).collect();
    let mut figures = Vec::new();
    for &end in &drawn {
        figures.push(sequence_figure(connection, columns, end, findings));
    }
    figures.extend(trip_figure(connection, columns));
    for &end in &drawn {
        figures.extend(flight_figure(connection, columns, end));
    }
    figures.push(rate_figure(connection, columns, picture.width_ns));
    figures
}

const SINCE: &str = "Time since the first packet";

fn sequence_figure(
    connection: &ConnectionReport,
    columns: &[Column],
    end: End,
    findings: &[TcpFinding],
) -> Figure {
    let (mut sent, mut again, mut selective) = (vec![], vec![], vec![]);
    let (mut acknowledged, mut edge) = (vec![], vec![]);
    let stroke = |into: &mut Vec<Point>, ns: u64, range: Option<(i64, i64)>| {
        let Some((from, to)) = range else { return };
        into.push(point(ns, from as f64, String::new()));
        into.push(point(ns, to as f64, String::new()));
        // A break, so that strokes are not joined.
        into.push(point(ns, f64::NAN, String::new()));
    };
    for column in columns {
        let (own, other) = (
            &column.ends[end as usize],
            &column.ends[end.other() as usize],
        );
        stroke(&mut sent, column.at_ns, own.sent);
        stroke(&mut again, column.at_ns, own.again);
        stroke(&mut selective, column.at_ns, other.selective);
        step(&mut acknowledged, column.at_ns, other.acknowledged);
        step(&mut edge, column.at_ns, other.edge);
    }
    let highest = |points: &[Point]| points.iter().map(|point| point.y).fold(0.0, f64::max);
    // A window far above everything would leave a line at the bottom of the picture.
    let top = highest(&sent).max(highest(&acknowledged));
    if highest(&edge) > top * WINDOW_ABOVE_MAX {
        edge.clear();
    }
    let marks = marks(connection, columns, end, findings);
    let curves = vec![
        curve("segments", Origin::Measured, sent),
        curve("retransmitted", Origin::Measured, again),
        curve("acknowledged", Origin::Measured, acknowledged),
        curve("acknowledged selectively", Origin::Measured, selective),
        curve("proofs of findings", Origin::Measured, marks),
        curve("receive window", Origin::Computed, edge),
    ];
    Figure {
        id: format!("sequence-{}-{end}", connection.number),
        title: format!("Time and sequence, sent by the {end}"),
        caption: "Strokes are segments from their first byte to their last. The line below says what was \
                  acknowledged, the dotted one above up to where the receive window allowed to send; where \
                  there is none, the window was far above."
            .to_owned(),
        x: axis(SINCE, Unit::Nanoseconds),
        y: axis("Bytes from the first", Unit::Bytes),
        curves: filled(curves),
    }
}

fn filled(curves: Vec<Curve>) -> Vec<Curve> {
    curves
        .into_iter()
        .filter(|curve| !curve.points.is_empty())
        .collect()
}

/// Returns where findings have their proofs: at what had been sent by then.
fn marks(
    connection: &ConnectionReport,
    columns: &[Column],
    end: End,
    findings: &[TcpFinding],
) -> Vec<Point> {
    /// More marks than this would be a line.
    const MARKS_MAX: usize = 24;
    let height = |ns: u64| {
        let before = columns.iter().take_while(|column| column.at_ns <= ns);
        let sent = before.filter_map(|column| column.ends[end as usize].sent);
        sent.map(|(_, to)| to).max().unwrap_or(0) as f64
    };
    let mut marks = Vec::new();
    for (at, finding) in findings.iter().enumerate() {
        let own = finding
            .proofs
            .iter()
            .filter(|proof| proof.connection == connection.number);
        for proof in own.filter(|proof| proof.frames.len() > 1) {
            let ns = proof.at_ns.saturating_sub(connection.start_ns);
            let note = format!("finding {}: {}", at + 1, proof_words(proof));
            marks.push(point(ns, height(ns), note.clone()));
            marks.push(point(ns, f64::NAN, String::new()));
        }
    }
    // Behind each is a break.
    marks.truncate(2 * MARKS_MAX);
    marks
}

/// Adds a step of a line that stays level until it changes.
fn step(points: &mut Vec<Point>, ns: u64, number: Option<i64>) {
    let Some(number) = number else { return };
    let y = number as f64;
    if let Some(last) = points.last() {
        if last.y >= y {
            return;
        }
        let level = point(ns, last.y, String::new());
        points.push(level);
    }
    points.push(point(ns, y, String::new()));
}

fn trip_figure(connection: &ConnectionReport, columns: &[Column]) -> Option<Figure> {
    let curves = End::BOTH.map(|end| {
        let mut points = Vec::new();
        for column in columns {
            let Some((least, most)) = column.ends[end as usize].trip_ns else {
                continue;
            };
            points.push(point(column.at_ns, least as f64, String::new()));
            if most > least {
                points.push(point(column.at_ns, most as f64, String::new()));
            }
        }
        curve(&format!("of the {end}'s data"), Origin::Measured, points)
    });
    let curves = filled(curves.into());
    (!curves.is_empty()).then(|| Figure {
        id: format!("trip-{}", connection.number),
        title: "Round trip".to_owned(),
        caption: "From a segment to its acknowledgement, as captured here; of many the shortest and the longest."
            .to_owned(),
        x: axis(SINCE, Unit::Nanoseconds),
        y: axis("Round trip", Unit::Nanoseconds),
        curves,
    })
}

fn flight_figure(connection: &ConnectionReport, columns: &[Column], end: End) -> Option<Figure> {
    let mut flight = Vec::new();
    let mut window = Vec::new();
    let mut acknowledged = 0;
    let mut edge = None;
    for column in columns {
        let (own, other) = (
            &column.ends[end as usize],
            &column.ends[end.other() as usize],
        );
        if let Some(bytes) = own.flight_bytes {
            flight.push(point(column.at_ns, f64::from(bytes), String::new()));
        }
        acknowledged = other
            .acknowledged
            .map_or(acknowledged, |number| number.max(acknowledged));
        edge = other.edge.or(edge);
        if let Some(edge) = edge.filter(|_| other.edge.is_some()) {
            let room = (edge - acknowledged).max(0);
            window.push(point(column.at_ns, room as f64, String::new()));
        }
    }
    let most = flight.iter().map(|point| point.y).fold(0.0, f64::max);
    // A window that is never near would press the rest to the ground.
    let is_near = window.iter().any(|point| point.y <= most * 4.0);
    let curves = filled(vec![
        curve("on their way", Origin::Measured, flight),
        curve(
            "receive window",
            Origin::Computed,
            if is_near { window } else { vec![] },
        ),
    ]);
    (!curves.is_empty() && most > 0.0).then(|| Figure {
        id: format!("flight-{}-{end}", connection.number),
        title: format!("Bytes on their way, sent by the {end}"),
        caption: if is_near {
            "The most of each moment, and the window that the receiver offered."
        } else {
            "The most of each moment; the receive window was four times as large and more."
        }
        .to_owned(),
        x: axis(SINCE, Unit::Nanoseconds),
        y: axis("Bytes", Unit::Bytes),
        curves,
    })
}

fn rate_figure(connection: &ConnectionReport, columns: &[Column], width_ns: u64) -> Figure {
    // Over single segments there is no rate: neighbours are joined.
    let last_ns = columns.last().map_or(0, |column| column.at_ns);
    let width_ns = (last_ns / BINS_MAX as u64 + 1).max(width_ns).max(1_000_000);
    let bins = (last_ns / width_ns + 1) as usize;
    let drawn = End::BOTH
        .into_iter()
        .filter(|&end| connection.end(end).payload_bytes > 0);
    let curves = drawn.map(|end| {
        let mut sums = vec![0u64; bins];
        for column in columns {
            sums[(column.at_ns / width_ns) as usize] += column.ends[end as usize].payload_bytes;
        }
        let points = sums.into_iter().enumerate().map(|(at, sum)| {
            let rate = sum as f64 * 8e9 / width_ns as f64;
            point(at as u64 * width_ns + width_ns / 2, rate, String::new())
        });
        curve(
            &format!("from the {end}"),
            Origin::Measured,
            points.collect(),
        )
    });
    Figure {
        id: format!("rate-{}", connection.number),
        title: "Throughput".to_owned(),
        caption: format!(
            "Payload, retransmitted included, over {} each.",
            ns(width_ns)
        ),
        x: axis(SINCE, Unit::Nanoseconds),
        y: axis("Payload", Unit::BitsPerSecond),
        curves: curves.collect(),
    }
}

/// Returns data segments per acknowledgement over time, neighbours joined.
fn ratio_points(timeline: &TimelineReport, end: End) -> Vec<Point> {
    let data = &timeline.end(end).data_packets;
    let acks = &timeline.end(end.other()).pure_acks;
    let joined = data.len().div_ceil(BINS_MAX).max(1);
    let stretches = data.chunks(joined).zip(acks.chunks(joined)).enumerate();
    let points = stretches.filter_map(|(at, (data, acks))| {
        let width_ns = timeline.width_ns.saturating_mul(data.len() as u64);
        let before_ns = timeline.width_ns.saturating_mul((at * joined) as u64);
        let [data, acks] = [data, acks].map(|counts| counts.iter().sum::<u32>());
        let note = format!(
            "{}, {}",
            counted(data, "data segment"),
            counted(acks, "pure ACK")
        );
        let ratio = f64::from(data) / f64::from(acks);
        let middle_ns = before_ns.saturating_add(width_ns / 2);
        (data > 0 && acks > 0).then(|| point(middle_ns, ratio, note))
    });
    points.collect()
}

fn ratio_figure(connection: &ConnectionReport, timeline: &TimelineReport) -> Option<Figure> {
    let curves: Vec<Curve> = End::BOTH
        .into_iter()
        .filter(|&end| connection.end(end).data_packets >= 32)
        .map(|end| {
            let name = format!("data of the {end}");
            curve(&name, Origin::Measured, ratio_points(timeline, end))
        })
        .filter(|curve| curve.points.len() > 1)
        .collect();
    (!curves.is_empty()).then(|| Figure {
        id: format!("ratio-{}", connection.number),
        title: "Data segments per acknowledgement".to_owned(),
        caption: "Segments with payload over the pure acknowledgements that the other end sent in \
                  the same time."
            .to_owned(),
        x: axis(SINCE, Unit::Nanoseconds),
        y: axis("Data segments per ACK", Unit::Ratio),
        curves,
    })
}
