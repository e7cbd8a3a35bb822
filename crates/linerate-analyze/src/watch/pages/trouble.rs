//! Lines that prove trouble: what the host dropped, refused or had to wait for.
//!
//! Only what moved is shown: a counter of these that rests is no news.

use linerate_model::analysis::Table;
use linerate_model::metric::Metric;
use linerate_model::sample::Subject;
use linerate_model::unit::Unit;

use super::super::{Span, Watched};
use super::{Page, number, text, unit_of_counts};

/// Counters that say that something was lost or refused, with what it means.
const LOST: &[(Metric, &str)] = &[
    (
        Metric::SnmpUdpRcvbufErrors,
        "UDP: receive buffer full, the program reads too slowly",
    ),
    (
        Metric::SnmpUdpSndbufErrors,
        "UDP: not sent, send buffer full",
    ),
    (Metric::SnmpUdpInCsumErrors, "UDP: wrong checksum"),
    (Metric::SnmpUdpNoPorts, "UDP: nobody listens on the port"),
    (
        Metric::NetstatListenOverflows,
        "connections refused: a listener's queue is full",
    ),
    (
        Metric::NetstatReqQFullDrop,
        "connections refused: too many are pending",
    ),
    (Metric::NetstatTcpTimeouts, "TCP: retransmission timeouts"),
    (Metric::NetstatTcpBacklogDrop, "TCP: socket backlog full"),
    (
        Metric::NetstatPruneCalled,
        "TCP: receive queue pruned for memory",
    ),
    (Metric::NetstatRcvQDrop, "TCP: receive queue full"),
    (
        Metric::NetstatZeroWindowDrop,
        "TCP: arrived at a closed window",
    ),
    (
        Metric::NetstatMemoryPressures,
        "TCP: out of memory (net.ipv4.tcp_mem)",
    ),
    (
        Metric::SoftnetDropped,
        "backlog full (net.core.netdev_max_backlog)",
    ),
    (Metric::SoftnetFlowLimit, "backlog full of one flow"),
    (Metric::QdiscDrops, "dropped by the queueing discipline"),
    (
        Metric::LinkRxDropped,
        "received packets dropped at the device",
    ),
    (Metric::LinkTxDropped, "packets dropped before sending"),
    (Metric::LinkRxErrors, "bad packets received"),
    (
        Metric::QueueRxDrops,
        "dropped by the receive queue of the device",
    ),
    (
        Metric::QueueTxDrops,
        "dropped by the transmit queue of the device",
    ),
    (Metric::ConntrackDrop, "dropped by connection tracking"),
    (
        Metric::ConntrackInsertFailed,
        "refused by connection tracking",
    ),
    (
        Metric::CgroupThrottled,
        "periods in which the CPU quota was used up",
    ),
];

/// Share of the time in which some thread waited for a CPU from which on that is told.
const PRESSURE_MIN: f64 = 0.05;

pub(super) fn page(watched: &Watched, span: Span) -> Page {
    let mut lines = Vec::new();
    for (metric, meaning) in LOST {
        let moved = watched.subjects().filter_map(|subject| {
            let change = watched.change(subject, *metric, span)?;
            (change > 0.0).then_some((subject, change))
        });
        lines.extend(moved.map(|(subject, change)| (place(subject), change, *meaning)));
    }
    let verdict = verdict(watched, span, &lines);
    let unit = unit_of_counts(span);
    let rows = lines.into_iter().map(|(place, change, meaning)| {
        vec![text(meaning), text(place), number(Some(change), unit)]
    });
    Page {
        name: "Trouble",
        table: Table::new("Trouble", ["what", "where", "count"], rows),
        trend: 2,
        verdict,
    }
}

/// Names a subject without its kind where the words before it say the kind.
fn place(subject: &Subject) -> String {
    match subject {
        Subject::Host => "host".to_owned(),
        Subject::Link(name) => name.to_string(),
        other => other.to_string(),
    }
}

fn verdict(watched: &Watched, span: Span, lines: &[(String, f64, &str)]) -> Option<String> {
    if watched.readings() < 2 {
        return None;
    }
    let mut said = match lines {
        [] => "nothing is dropped or refused".to_owned(),
        [(place, _, what), ..] => format!("trouble, first of all: {what} ({place})"),
    };
    let waited = watched.change(&Subject::Host, Metric::PressureCpuSome, span);
    let share = waited.map(|ns| match span {
        Span::PerSecond => ns / 1e9,
        Span::SinceStart => ns / 1e9 / watched.seconds(),
    });
    if let Some(share) = share.filter(|share| *share >= PRESSURE_MIN) {
        said += &format!(
            "; some thread waits for a CPU {} of the time",
            Unit::Percent.display((100.0 * share).round())
        );
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::sample;
    use super::*;

    fn seen(dropped: i64, overflows: i64, waited_ns: i64) -> Page {
        let mut watched = Watched::default();
        for (at_ns, turn) in [(0, 0), (1_000_000_000, 1)] {
            let samples = [
                sample("host", Metric::SnmpUdpRcvbufErrors, at_ns, turn * dropped),
                sample(
                    "host",
                    Metric::NetstatListenOverflows,
                    at_ns,
                    turn * overflows,
                ),
                sample("qdisc:eth0:0:", Metric::QdiscDrops, at_ns, turn * dropped),
                sample("host", Metric::PressureCpuSome, at_ns, turn * waited_ns),
            ];
            watched.take(at_ns, &samples);
        }
        page(&watched, Span::PerSecond)
    }

    #[test]
    fn only_what_moved_is_shown() {
        let rest = seen(0, 0, 1_000_000);
        assert!(rest.table.rows.is_empty());
        assert_eq!(
            rest.verdict.as_deref(),
            Some("nothing is dropped or refused")
        );
        let page = seen(7, 2, 400_000_000);
        let places: Vec<_> = page.table.rows.iter().map(|row| row[1].clone()).collect();
        assert_eq!(places, [text("host"), text("host"), text("qdisc:eth0:0:")]);
        let verdict = page.verdict.expect("two readings");
        assert!(
            verdict.contains("UDP: receive buffer full") && verdict.contains("40 % of the time"),
            "{verdict}"
        );
    }
}
