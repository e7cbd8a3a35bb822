//! A document as lines for a terminal: what was found first, then the connections that matter.

use std::fmt::Write as _;

use linerate_model::unit::Unit;

use crate::connection::End;
use crate::document::{ConnectionReport, Trace};

/// Connections that are worded.
const CONNECTIONS_MAX: usize = 10;

/// Returns the document in words.
pub fn text(trace: &Trace) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", heading(trace));
    for warning in &trace.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    for connection in trace.connections.iter().take(CONNECTIONS_MAX) {
        let _ = writeln!(out);
        out.push_str(&connection_lines(connection));
    }
    out
}

fn heading(trace: &Trace) -> String {
    let totals = &trace.totals;
    let count = |number: u64| Unit::Count.display(number as f64);
    let duration = trace.duration_ns().unwrap_or(0) as f64;
    format!(
        "{} frames, {} connections, {} of payload, {}",
        count(totals.frames),
        count(totals.connections),
        Unit::Bytes.display(totals.payload_bytes as f64),
        Unit::Nanoseconds.display(duration),
    )
}

fn connection_lines(connection: &ConnectionReport) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "#{} {} → {}   {}",
        connection.number,
        connection.client,
        connection.server,
        Unit::Nanoseconds.display(connection.duration_ns as f64)
    );
    for end in End::BOTH {
        let report = connection.end(end);
        let _ = writeln!(
            out,
            "   {:<7} {} data packets, {} pure ACKs, {}, {} sent again",
            crate::document::end_name(end),
            report.data_packets,
            report.pure_acks,
            Unit::Bytes.display(report.payload_bytes as f64),
            report.counts.map_or(0, |counts| counts.retransmissions),
        );
    }
    out
}
