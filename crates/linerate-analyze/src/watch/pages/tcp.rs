//! The TCP connections: rates, round trips, and what limits each.

use linerate_model::analysis::Table;
use linerate_model::number;
use linerate_model::unit::Unit;

use super::super::sockets::WatchedFlow;
use super::super::{Span, Watched};
use super::{Page, number, tenths, text, unit_of_counts, volume};

/// Share of its busy time from which a connection counts as limited.
const LIMITED_FROM: f64 = 0.1;

/// What can limit a connection, as the column says it.
const RECEIVE_WINDOW: &str = "receive window";
const SEND_BUFFER: &str = "send buffer";

pub(super) fn page(watched: &Watched, span: Span) -> Page {
    let flows = watched.sockets.flows(span);
    let share = |of: Option<f64>| number(of.map(|of| tenths(100.0 * of)), Unit::Percent);
    let line = |flow: &WatchedFlow| {
        vec![
            text(format!("{} → {}", flow.local, flow.remote)),
            volume(flow.sent_bytes, span),
            volume(flow.received_bytes, span),
            number(flow.rtt_us.map(|us| 1000.0 * us), Unit::Nanoseconds),
            number(flow.retransmissions, unit_of_counts(span)),
            text(limited_by(flow).unwrap_or("–")),
            text(flow.owner.as_deref().unwrap_or("–")),
            number(flow.data_per_ack.map(tenths), Unit::Ratio),
            number(flow.cwnd_bytes, Unit::Bytes),
            text(flow.congestion.as_str()),
            share(flow.rwnd_limited),
            share(flow.sndbuf_limited),
            number(Some(f64::from(flow.receive_queue_bytes)), Unit::Bytes),
            number(Some(f64::from(flow.send_queue_bytes)), Unit::Bytes),
            text(flow.state),
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
                "retransmits",
                "limited by",
                "process",
                "data/ACK",
                "cwnd",
                "congestion",
                "rwnd-limited",
                "sndbuf-limited",
                "receive queue",
                "send queue",
                "state",
            ],
            rows,
        ),
        trend: 1,
        verdict: verdict(watched, &flows),
        named_by: &[0],
        is_prose: false,
    }
}

/// Returns what limits a sender most, by the kernel's own clocks.
fn limited_by(flow: &WatchedFlow) -> Option<&'static str> {
    let window = flow.rwnd_limited?;
    let buffer = flow.sndbuf_limited?;
    match window.max(buffer) {
        most if most < LIMITED_FROM => None,
        _ if window >= buffer => Some(RECEIVE_WINDOW),
        _ => Some(SEND_BUFFER),
    }
}

fn verdict(watched: &Watched, flows: &[WatchedFlow]) -> Option<String> {
    if let Some(why) = watched.sockets.missing() {
        return Some(format!("sockets cannot be read: {why}"));
    }
    let sum = |of: fn(&WatchedFlow) -> Option<f64>| flows.iter().filter_map(of).sum::<f64>();
    let count = number::counted(flows.len(), "connection");
    let beyond = match watched.sockets.beyond() {
        0 => String::new(),
        beyond => format!(" and {beyond} more that are not shown"),
    };
    let again = sum(|flow| flow.retransmissions);
    let sent = sum(|flow| flow.data_segments);
    // SYNs and FINs are retransmitted, too, and are no segments with payload.
    let loss = match 100.0 * again / sent {
        _ if flows.iter().all(|flow| flow.retransmissions.is_none()) => String::new(),
        _ if again > 0.0 && again >= sent => "; nothing but retransmissions is sent".to_owned(),
        share if share >= 0.01 => format!("; {share:.2} % of segments are retransmitted"),
        share if share > 0.0 => "; fewer than 0.01 % of segments are retransmitted".to_owned(),
        _ => "; no retransmissions".to_owned(),
    };
    let limited = flows.iter().filter_map(limited_by);
    let (by_window, by_buffer): (Vec<_>, Vec<_>) = limited.partition(|by| *by == RECEIVE_WINDOW);
    let limits = [(by_window, RECEIVE_WINDOW), (by_buffer, SEND_BUFFER)]
        .into_iter()
        .filter(|(flows, _)| !flows.is_empty());
    let limits: String = limits
        .map(|(flows, by)| format!("; {} limited by the {by}", flows.len()))
        .collect();
    Some(format!("{count}{beyond}{loss}{limits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(window: f64, buffer: f64) -> WatchedFlow {
        WatchedFlow {
            rwnd_limited: Some(window),
            sndbuf_limited: Some(buffer),
            ..WatchedFlow::default()
        }
    }

    #[test]
    fn the_larger_of_both_clocks_names_the_limit() {
        assert_eq!(limited_by(&flow(0.05, 0.0)), None);
        assert_eq!(limited_by(&flow(0.5, 0.2)), Some("receive window"));
        assert_eq!(limited_by(&flow(0.1, 0.2)), Some("send buffer"));
        assert_eq!(
            limited_by(&WatchedFlow::default()),
            None,
            "one reading says nothing"
        );
    }
}
