//! A document as lines for a terminal: what was found first, then the connections that matter.

use std::fmt::Write as _;

use linerate_model::number::whole_percents;
use linerate_model::sample::End;
use linerate_model::text::wrap;
use linerate_model::unit::Unit;

use crate::connection::FrameId;
use crate::datagrams::{ConversationReport, DatagramsReport};
use crate::document::{ConnectionReport, DurationReport, EndReport, Ending, LifeReport, Trace};
use crate::findings::{Proof, TcpFinding, proofs_filter};
use crate::number::{self, bytes, count, counted, ns, ratio};

/// Findings that are shown; the document has all of them.
const FINDINGS_MAX: usize = 12;
/// Proofs of one finding that are shown.
const PROOFS_MAX: usize = 2;
/// Most characters of a line of prose where the terminal is wider.
const COLUMNS_MAX: usize = 110;
/// Where lines below a finding's claim begin.
const BELOW: &str = "     ";

/// How the lines should look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal.
    pub columns: usize,
    /// Whether colours are understood.
    pub color: bool,
    /// Connections that are shown.
    pub connections: usize,
}

impl Look {
    pub(crate) fn paint(self, code: &str, text: &str) -> String {
        if self.color {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Cuts prose into lines that leave `room` before them.
    fn wrap(self, text: &str, room: usize) -> Vec<String> {
        wrap(text, self.columns.min(COLUMNS_MAX).saturating_sub(room), 0)
    }

    /// Cuts prose into lines that fit behind a mark.
    pub(crate) fn wrap_prose(self, text: &str) -> Vec<String> {
        self.wrap(text, 9)
    }

    /// Cuts prose that stands back into lines that leave `room` before them.
    fn wrap_dim(self, text: &str, room: usize) -> Vec<String> {
        let lines = self.wrap(text, room).into_iter();
        lines.map(|line| self.dim(&line)).collect()
    }
}

/// Writes lines, the first of them behind `first`.
pub(crate) fn write_lines(lines: &[String], first: &str, further: &str, out: &mut String) {
    for (at, line) in lines.iter().enumerate() {
        let mark = if at == 0 { first } else { further };
        let _ = writeln!(out, "{mark}{line}");
    }
}

/// Returns the document as text.
pub fn text(trace: &Trace, look: Look) -> String {
    let mut out = String::new();
    write_heading(trace, look, &mut out);
    write_findings(trace, look, &mut out);
    write_connections(trace, look, &mut out);
    write_conversations(trace, look, &mut out);
    out
}

fn write_heading(trace: &Trace, look: Look, out: &mut String) {
    let totals = &trace.totals;
    let names: Vec<&str> = trace.files.iter().map(|file| &*file.name).collect();
    let name = match &names[..] {
        [first, .., last] => format!("{} files, {first} to {last}", names.len()),
        names => names.concat(),
    };
    let _ = writeln!(out, "{}", look.bold(&name));
    let rate = trace.payload_rate().map_or(String::new(), |rate| {
        format!(" ({} of payload)", Unit::BitsPerSecond.display(rate))
    });
    let rest = match (totals.connections, totals.udp) {
        (0, 0) => String::new(),
        (0, datagrams) => format!(", {} of UDP", counted(datagrams, "datagram")),
        _ => format!(", {} of payload{rate}", bytes(totals.payload_bytes)),
    };
    let summary = format!(
        "{} in {}, {}{rest}",
        counted(totals.frames, "frame"),
        ns(trace.duration_ns().unwrap_or(0)),
        counted(totals.connections, "connection"),
    );
    write_lines(&look.wrap(&summary, 0), "", "", out);
    let mut parts = vec![
        counted(totals.data_packets, "data segment"),
        counted(totals.pure_acks, "pure ACK"),
    ];
    let per_ack = ratio(totals.data_packets, totals.pure_acks);
    parts.extend(per_ack.map(|ratio| format!("{ratio:.1} data per ACK")));
    if totals.retransmissions > 0 {
        let share = totals.retransmissions as f64 / totals.data_packets as f64;
        let kinds = number::counts([
            (totals.fast_retransmissions, "fast"),
            (totals.timeout_retransmissions, "by timer"),
            (totals.tail_probes, "by tail probe"),
            (totals.spurious_retransmissions, "spurious"),
        ]);
        let kinds: Vec<String> = kinds.collect();
        parts.push(format!(
            "{} retransmitted ({}{}{})",
            count(totals.retransmissions),
            Unit::Percent.display((share * 1e4).round() / 100.0),
            if kinds.is_empty() { "" } else { "; " },
            kinds.join(", ")
        ));
    }
    if totals.control_retransmissions > 0 {
        let again = counted(totals.control_retransmissions, "retransmission");
        parts.push(format!("{again} of SYN or FIN"));
    }
    if totals.out_of_order > 0 {
        parts.push(format!("{} out of order", count(totals.out_of_order)));
    }
    if totals.data_packets + totals.pure_acks > 0 {
        write_lines(&look.wrap(&parts.join(", "), 0), "", "", out);
    }
    for warning in &trace.warnings {
        let mark = look.paint("33", "warning:") + " ";
        write_lines(&look.wrap_prose(warning), &mark, &" ".repeat(9), out);
    }
}

fn write_findings(trace: &Trace, look: Look, out: &mut String) {
    let _ = writeln!(out, "\n{}", look.bold("Findings"));
    if trace.findings.is_empty() {
        let none = match trace.totals.connections {
            0 => "  none: there is no TCP connection to explain",
            _ => "  none",
        };
        let _ = writeln!(out, "{}", look.dim(none));
        if trace.totals.connections > 0 {
            write_lines(&look.wrap_dim(&looked_for(trace), 5), BELOW, BELOW, out);
        }
    }
    for (at, finding) in trace.findings.iter().take(FINDINGS_MAX).enumerate() {
        write_finding(at + 1, finding, trace, look, out);
    }
    let more = trace.findings.len().saturating_sub(FINDINGS_MAX);
    if more > 0 {
        let _ = writeln!(
            out,
            "{}",
            look.dim(&format!("  {more} more: --json has all of them"))
        );
    }
    let blind = trace.coverage.blind_spots();
    if let Some(blind) = blind.filter(|_| !trace.findings.is_empty()) {
        write_lines(&look.wrap_dim(&blind, 5), BELOW, BELOW, out);
    }
}

/// Says what was looked for where nothing was found, and what this capture cannot show.
pub(crate) fn looked_for(trace: &Trace) -> String {
    let coverage = &trace.coverage;
    let mut text = format!(
        "Looked for, and not seen where it costs time: {}.",
        coverage.looked_for.join(", ")
    );
    if let Some(blind) = coverage.blind_spots() {
        text.push(' ');
        text.push_str(&blind);
    }
    text
}

fn write_finding(number: usize, finding: &TcpFinding, trace: &Trace, look: Look, out: &mut String) {
    let claim = look.wrap(&finding.claim, 5).into_iter();
    let claim: Vec<String> = claim.map(|line| look.bold(&line)).collect();
    let [first, further] = [format!("{number:>3}"), " ".repeat(3)];
    let [first, further] = [first, further].map(|mark| look.paint("36", &mark) + "  ");
    write_lines(&claim, &first, &further, out);
    let mut prose = |text: &str| write_lines(&look.wrap(text, 5), BELOW, BELOW, out);
    prose(&finding.explanation);
    for also in &finding.also {
        prose(&format!("The same frames: {also}"));
    }
    if let Some(advice) = &finding.advice {
        prose(&format!("→ {advice}"));
    }
    let proofs = finding
        .proofs
        .iter()
        .take(PROOFS_MAX)
        .map(|proof| proof_line(proof, trace));
    for line in proofs.chain(more_line(finding)) {
        let _ = writeln!(out, "{BELOW}{}", look.dim(&line));
    }
    for line in filter_lines(finding) {
        write_lines(&look.wrap_dim(&line, 5), BELOW, BELOW, out);
    }
}

fn proof_line(proof: &Proof, trace: &Trace) -> String {
    let after = proof.at_ns.saturating_sub(trace.begin_ns().unwrap_or(0));
    let length = match proof.length_ns {
        0 => String::new(),
        length => format!(", {}", ns(length)),
    };
    let words = proof_words(proof, |frame| frame_name(frame, trace));
    format!("at {:.6} s: {words}{length}", after as f64 / 1e9)
}

/// Returns which frames of which connection prove something.
pub(crate) fn proof_words(proof: &Proof, name: impl Fn(FrameId) -> String) -> String {
    let frames: Vec<String> = proof.frames.iter().copied().map(name).collect();
    // What is no connection has no number.
    let of = match proof.connection {
        0 => "UDP".to_owned(),
        number => format!("connection #{number}"),
    };
    match &frames[..] {
        [] => of,
        [one] => format!("{of}, frame {one}"),
        more => format!("{of}, frames {}", more.join(" → ")),
    }
}

/// Says how many there are beyond those that are shown, and which of them the filter shows.
fn more_line(finding: &TcpFinding) -> Option<String> {
    let shown = finding.proofs.len().min(PROOFS_MAX) as u64;
    // A filter for a connection shows the first proof's.
    let filtered = if finding.proofs.iter().all(Proof::is_of_frames) {
        finding.proofs.len() as u64
    } else {
        0
    };
    let kept = filtered.saturating_sub(shown);
    let more =
        (finding.proofs.len() as u64 - shown).max(finding.occurrences().saturating_sub(shown));
    match (more, kept) {
        _ if shown == 0 || more == 0 => None,
        (more, kept) if kept == 0 || kept == more => Some(format!("… and {} more", count(more))),
        (more, kept) => Some(format!(
            "… and {} more, {kept} of them in the filter",
            count(more)
        )),
    }
}

/// Returns what shows the proofs in Wireshark, and what Wireshark calls such frames.
fn filter_lines(finding: &TcpFinding) -> impl Iterator<Item = String> {
    let filter = proofs_filter(&finding.proofs);
    let name = finding.display_filter().filter(|_| filter.is_some());
    let of_proofs = filter.map(|filter| format!("Wireshark: {filter}"));
    let of_all = name.map(|name| format!("Wireshark, all: {name}"));
    of_proofs.into_iter().chain(of_all)
}

fn frame_name(frame: FrameId, trace: &Trace) -> String {
    match trace.files.len() {
        0 | 1 => frame.number().to_string(),
        _ => format!("{}:{}", frame.file() + 1, frame.number()),
    }
}

fn write_connections(trace: &Trace, look: Look, out: &mut String) {
    let shown = trace.connections.len().min(look.connections);
    if shown == 0 {
        return;
    }
    let of = match trace.totals.connections {
        all if all > shown as u64 => format!("{shown} of {}, most payload first", count(all)),
        _ => "most payload first".to_owned(),
    };
    let _ = writeln!(out, "\n{} {}", look.bold("Connections"), look.dim(&of));
    for connection in trace.connections.iter().take(shown) {
        write_connection(connection, look, out);
    }
}

fn write_connection(connection: &ConnectionReport, look: Look, out: &mut String) {
    let mut facts = vec![
        ns(connection.duration_ns),
        match connection.ending {
            Ending::Fin => "closed",
            Ending::Reset => "reset",
            Ending::Refused => "refused",
            Ending::Unanswered => "not answered",
            Ending::Open => "open",
        }
        .to_owned(),
    ];
    if let Some(trip) = connection.syn_to_answer_ns.zip(connection.answer_to_ack_ns) {
        facts.push(format!("handshake {}", ns(trip.0 + trip.1)));
    }
    match End::BOTH.map(|end| connection.end(end).segment_bytes) {
        [Some(one), Some(other)] if one != other => {
            facts.push(format!("segments of {one} B, back of {other} B"));
        }
        [one, other] => {
            facts.extend(one.or(other).map(|one| format!("segments of {one} B")));
        }
    }
    if let Some(end) = connection.captured_at {
        facts.push(format!("captured at the {end}"));
    }
    if !connection.handshake && connection.from_client.offer.is_none() {
        facts.push("begun before the capture".to_owned());
    }
    let number = format!("#{}", connection.number);
    let (client, server) = (connection.client.to_string(), connection.server.to_string());
    let facts = facts.join(", ");
    let _ = write!(
        out,
        "{}  {} → {}",
        look.paint("36", &format!("{number:>4}")),
        look.bold(&client),
        look.bold(&server),
    );
    let columns = [&client, &server, &facts].map(|text| text.chars().count());
    if columns.iter().sum::<usize>() + 11 <= look.columns.min(COLUMNS_MAX) {
        let _ = writeln!(out, "  {}", look.dim(&facts));
    } else {
        let _ = writeln!(out);
        write_dim(&facts, look, out);
    }
    for end in End::BOTH {
        let arrow = if end == End::Client { "→" } else { "←" };
        let (own, peer) = (connection.end(end), connection.end(end.other()));
        if own.data_packets > 0 {
            write_hanging(&format!("{arrow} "), &data_line(own, peer), look, out);
        } else if own.packets > 0 {
            let _ = writeln!(out, "      {arrow} {}", counted(own.pure_acks, "pure ACK"));
        }
    }
    if let Some(time) = &connection.time {
        write_dim(&time_line(time), look, out);
    }
    let gaps: Vec<String> = connection
        .gaps
        .iter()
        .take(3)
        .map(|gap| {
            format!(
                "{} {} of the {} ({})",
                gap.count,
                gap.cause.counted(gap.count),
                gap.end,
                ns(gap.total_ns)
            )
        })
        .collect();
    if !gaps.is_empty() {
        write_dim(&format!("silent: {}", gaps.join("; ")), look, out);
    }
}

fn write_conversations(trace: &Trace, look: Look, out: &mut String) {
    let shown = trace.conversations.len().min(look.connections);
    if shown == 0 {
        return;
    }
    let of = match trace.conversations.len() {
        all if all > shown => format!("{shown} of {all}, most payload first"),
        _ => "most payload first".to_owned(),
    };
    let _ = writeln!(
        out,
        "\n{} {}",
        look.bold("UDP conversations"),
        look.dim(&of)
    );
    for conversation in trace.conversations.iter().take(shown) {
        let mut facts = vec![ns(conversation.duration_ns)];
        facts.extend(conversation.protocol.map(str::to_uppercase));
        let _ = writeln!(
            out,
            "      {} → {}  {}",
            look.bold(&conversation.client_name()),
            look.bold(&conversation.server.to_string()),
            look.dim(&facts.join(", "))
        );
        let ends = [
            ("→", &conversation.from_client),
            ("←", &conversation.from_server),
        ];
        for (arrow, sent) in ends.into_iter().filter(|(_, sent)| sent.datagrams > 0) {
            write_hanging(&format!("{arrow} "), &datagrams_line(sent), look, out);
        }
        if let Some(line) = protocol_line(conversation) {
            write_hanging("  ", &line, look, out);
        }
    }
}

/// Writes `text` behind `mark`, below a connection; further lines begin where the first does.
fn write_hanging(mark: &str, text: &str, look: Look, out: &mut String) {
    let indent = 6 + mark.chars().count();
    let first = format!("      {mark}");
    write_lines(&look.wrap(text, indent), &first, &" ".repeat(indent), out);
}

/// Writes `text` below a connection, standing back.
fn write_dim(text: &str, look: Look, out: &mut String) {
    write_lines(&look.wrap_dim(text, 6), "      ", "      ", out);
}

fn datagrams_line(sent: &DatagramsReport) -> String {
    let mut parts = vec![format!(
        "{} in {} of {} B at the most",
        bytes(sent.payload_bytes),
        counted(sent.datagrams, "datagram"),
        sent.datagram_bytes_max
    )];
    parts.extend(
        sent.bits_per_second
            .map(|rate| Unit::BitsPerSecond.display(rate)),
    );
    if let Some(frame) = sent.gap_frame {
        parts.push(format!(
            "longest gap {} before frame {}",
            ns(sent.gap_ns_max),
            frame.number()
        ));
    }
    parts.join(", ")
}

/// Writes what the protocol tells.
fn protocol_line(conversation: &ConversationReport) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(asked) = conversation.asked {
        parts.push(counted(asked, "question"));
        let counts = [
            (conversation.asked_again, "asked again"),
            (conversation.unanswered, "not answered"),
            (conversation.not_followed, "not followed"),
            (conversation.failed, "failed"),
        ]
        .map(|(number, what)| (number.unwrap_or(0), what));
        parts.extend(number::counts(counts));
    }
    if let Some(answers) = &conversation.answers {
        parts.push(format!("answered after {}", durations(answers)));
    }
    if let Some(quic) = &conversation.quic {
        parts.push(format!("version {:#x}", quic.version));
        parts.push(match quic.answer_ns {
            Some(answer_ns) => format!("first Initial answered after {}", ns(answer_ns)),
            None => "no Initial answered".to_owned(),
        });
        parts.extend(
            quic.handshake_ns
                .map(|taken| format!("set up after {}", ns(taken))),
        );
        if quic.initials_again > 0 {
            let initials = counted(quic.initials_again, "Initial");
            parts.push(format!("{initials} retransmitted"));
        }
        let flags = [
            (quic.retry, "Retry"),
            (quic.negotiation, "version negotiation"),
        ];
        parts.extend(
            flags
                .iter()
                .filter(|flag| flag.0)
                .map(|flag| flag.1.to_owned()),
        );
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn data_line(own: &EndReport, peer: &EndReport) -> String {
    let mut parts = vec![format!(
        "{} in {}",
        bytes(own.payload_bytes),
        counted(own.data_packets, "segment")
    )];
    if let Some(rate) = own.bits_per_second {
        parts.push(Unit::BitsPerSecond.display(rate));
    }
    if let Some(ratio) = ratio(own.data_packets, peer.pure_acks) {
        parts.push(format!(
            "{ratio:.1} per ACK ({})",
            counted(peer.pure_acks, "ACK")
        ));
    }
    if let Some(trip) = &own.round_trip {
        let answer = if own.round_trip_is_bound {
            "answer and "
        } else {
            ""
        };
        parts.push(format!("{answer}round trip {}", durations(trip)));
    }
    if let Some(counts) = own.counts.filter(|counts| counts.retransmissions > 0) {
        parts.push(format!("{} retransmitted", count(counts.retransmissions)));
    }
    if let Some(repeat) = own
        .sizes
        .as_ref()
        .and_then(|sizes| sizes.repeating.as_ref())
    {
        let sizes: Vec<String> = repeat.bytes.iter().map(ToString::to_string).collect();
        parts.push(format!("sizes repeat {} …", sizes.join(", ")));
    }
    parts.join(", ")
}

/// Writes the median, and from where to where they lie.
fn durations(all: &DurationReport) -> String {
    format!(
        "{} ({} to {})",
        ns(all.median_ns.unwrap_or(all.mean_ns as u64)),
        ns(all.min_ns),
        ns(all.max_ns)
    )
}

/// Writes the shares of a life; what is no whole percent goes without saying.
fn time_line(time: &LifeReport) -> String {
    let (names, shares): (Vec<_>, Vec<f64>) = time.named().into_iter().unzip();
    let parts: Vec<String> = names
        .iter()
        .zip(whole_percents(&shares))
        .filter(|(_, percent)| *percent > 0)
        .map(|(name, percent)| format!("{name} {percent} %"))
        .collect();
    format!("time: {}", parts.join(", "))
}
