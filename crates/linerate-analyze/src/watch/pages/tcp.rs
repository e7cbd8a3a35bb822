//! The TCP connections: rates, round trips, and what holds each back.

use linerate_model::analysis::Table;
use linerate_model::unit::Unit;

use super::super::sockets::Flow;
use super::super::{Span, Watched};
use super::{Page, number, text, unit_of_counts, volume};

/// Share of its busy time from which a connection counts as held back.
const HELD_FROM: f64 = 0.1;

pub(super) fn page(watched: &Watched, span: Span) -> Page {
    let flows = watched.sockets().flows(span);
    let line = |flow: &Flow| {
        vec![
            text(format!("{} → {}", flow.local, flow.remote)),
            volume(flow.sent_bytes, span),
            volume(flow.received_bytes, span),
            number(flow.rtt_us.map(|us| 1000.0 * us), Unit::Nanoseconds),
            number(flow.retransmissions, unit_of_counts(span)),
            text(held_by(flow).unwrap_or("–")),
            text(flow.owner.as_deref().unwrap_or("–")),
            number(flow.data_per_ack.map(super::tenths), Unit::Ratio),
            number(flow.cwnd_bytes, Unit::Bytes),
            text(flow.congestion.as_str()),
        ]
    };
    let rows = flows.iter().map(line);
    Page {
        name: "TCP",
        table: Table::new(
            "TCP connections",
            [
                "connection",
                "sends",
                "receives",
                "RTT",
                "resent",
                "held by",
                "process",
                "data/ACK",
                "cwnd",
                "congestion",
            ],
            rows,
        ),
        trend: 1,
        verdict: verdict(watched, &flows),
    }
}

/// Returns what holds a sender back most, by the kernel's own clocks.
fn held_by(flow: &Flow) -> Option<&'static str> {
    let window = flow.rwnd_limited?;
    let buffer = flow.sndbuf_limited?;
    match window.max(buffer) {
        most if most < HELD_FROM => None,
        _ if window >= buffer => Some("peer window"),
        _ => Some("send buffer"),
    }
}

fn verdict(watched: &Watched, flows: &[Flow]) -> Option<String> {
    if let Some(why) = watched.sockets().missing() {
        return Some(format!("sockets cannot be read: {why}"));
    }
    let sum = |of: fn(&Flow) -> Option<f64>| flows.iter().filter_map(of).sum::<f64>();
    let count = match flows.len() {
        1 => "1 connection".to_owned(),
        count => format!("{count} connections"),
    };
    let beyond = match watched.sockets().beyond() {
        0 => String::new(),
        beyond => format!(" and {beyond} more that are not shown"),
    };
    let resent = sum(|flow| flow.retransmissions);
    let sent = sum(|flow| flow.data_segments);
    let loss = match 100.0 * resent / sent {
        share if share >= 0.01 => format!("{share:.2} % of segments are sent again"),
        share if share > 0.0 => "fewer than 0.01 % of segments are sent again".to_owned(),
        _ => "nothing is sent again".to_owned(),
    };
    Some(format!("{count}{beyond}; {loss}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(window: f64, buffer: f64) -> Flow {
        Flow {
            rwnd_limited: Some(window),
            sndbuf_limited: Some(buffer),
            ..Flow::default()
        }
    }

    #[test]
    fn the_larger_of_both_clocks_names_what_holds() {
        assert_eq!(held_by(&flow(0.05, 0.0)), None);
        assert_eq!(held_by(&flow(0.5, 0.2)), Some("peer window"));
        assert_eq!(held_by(&flow(0.1, 0.2)), Some("send buffer"));
        assert_eq!(held_by(&Flow::default()), None, "one reading says nothing");
    }
}
