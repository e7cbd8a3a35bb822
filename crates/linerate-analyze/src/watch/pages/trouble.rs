//! Lines that prove trouble: what the host dropped, refused or had to wait for.
//!
//! Only what moved is shown: a counter of these that rests is no news.

use linerate_model::analysis::Table;
use linerate_model::metric::Metric;
use linerate_model::sample::Subject;
use linerate_model::unit::Unit;

use super::super::{Span, Watched};
use super::{Page, TROUBLE, number, text, unit_of_counts};

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
    (Metric::SnmpUdpNoPorts, "UDP: no socket on the port"),
    (
        Metric::SnmpIpReasmFails,
        "IP: fragments dropped, or one did not come (net.ipv4.ipfrag_high_thresh, ipfrag_time)",
    ),
    (Metric::SnmpIpFragFails, "IP: too long, and must not be cut"),
    (Metric::SnmpIpInDiscards, "IP: dropped on their way in"),
    (Metric::SnmpIpOutDiscards, "IP: dropped on their way out"),
    (Metric::SnmpIpInHdrErrors, "IP: wrong headers"),
    (Metric::SnmpIpInAddrErrors, "IP: wrong addresses"),
    (Metric::SnmpIpOutNoRoutes, "IP: no route for what is sent"),
    (Metric::NetstatIpInNoRoutes, "IP: no route for what came"),
    (Metric::NetstatIpInTruncated, "IP: cut packets"),
    (
        Metric::SnmpIcmpInDestUnreachs,
        "ICMP: a destination is unreachable, or a packet too long",
    ),
    (
        Metric::SnmpIcmpOutDestUnreachs,
        "ICMP: sent the same to other hosts",
    ),
    (
        Metric::NetstatSyncookiesSent,
        "TCP: SYNs answered with a cookie",
    ),
    (
        Metric::NetstatSyncookiesFailed,
        "TCP: ACKs with a wrong cookie",
    ),
    (
        Metric::NetstatSackDiscard,
        "TCP: SACK blocks that make no sense",
    ),
    (
        Metric::NetstatListenOverflows,
        "connections dropped: a listener's accept queue is full",
    ),
    (
        Metric::NetstatReqQFullDrop,
        "connections dropped: the SYN queue is full",
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
    (Metric::QdiscDrops, "dropped by the qdisc"),
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

/// Counters that say that packets waited, with what it means: now and then they do on a busy host.
const WAITED: &[(Metric, &str)] = &[(
    Metric::SoftnetSqueezed,
    "NAPI ran out of budget (time_squeeze), packets waited (net.core.netdev_budget)",
)];

/// Share of the time in which some thread waited for a CPU from which on that is told.
const PRESSURE_MIN: f64 = 0.05;

pub(super) fn page(watched: &Watched, span: Span) -> Page {
    let mut lost = moved(watched, span, LOST);
    lost.extend(undelivered(watched, span));
    let verdict = verdict(watched, span, &lost);
    let unit = unit_of_counts(span);
    let waited = moved(watched, span, WAITED);
    let rows = lost
        .into_iter()
        .chain(waited)
        .map(|(place, change, meaning)| {
            vec![text(place), number(Some(change), unit), text(meaning)]
        });
    Page {
        name: TROUBLE,
        table: Table::new("Trouble", ["where", "count", "what"], rows),
        trend: 1,
        verdict,
        named_by: &[0, 2],
        is_prose: true,
    }
}

/// Returns the counters of `list` that moved: where, how much, and what that means.
fn moved(
    watched: &Watched,
    span: Span,
    list: &[(Metric, &'static str)],
) -> Vec<(String, f64, &'static str)> {
    let of = |(metric, meaning): &(Metric, &'static str)| {
        let moved = watched.subjects().filter_map(|subject| {
            let change = watched.change(subject, *metric, span)?;
            (change > 0.0).then(|| (place(subject), change, *meaning))
        });
        moved.collect::<Vec<_>>()
    };
    list.iter().flat_map(of).collect()
}

/// Packets from which on those that IP did not deliver were not on their way to it at a reading: NAPI takes 64 at a time
/// (NAPI_POLL_WEIGHT).
const UNDELIVERED_MIN: f64 = 64.0;

/// What came to IP and was neither delivered nor passed on nor kept for want of further fragments.
fn undelivered(watched: &Watched, span: Span) -> Option<(String, f64, &'static str)> {
    let change = |metric| watched.change(&Subject::Host, metric, span);
    let optional = |metric| change(metric).unwrap_or(0.0);
    let held = optional(Metric::SnmpIpReasmReqds) - optional(Metric::SnmpIpReasmOks);
    let passed_on = optional(Metric::SnmpIpForwarded);
    let delivered = change(Metric::SnmpIpInDelivers)?;
    let rest = change(Metric::SnmpIpInReceives)? - delivered - passed_on - held.max(0.0);
    (rest >= UNDELIVERED_MIN).then(|| {
        let what =
            "IP: came and was not delivered (packet filter, `nft list ruleset`, `iptables -nvL`)";
        (place(&Subject::Host), rest, what)
    })
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
        [(place, _, what)] => format!("{what} ({place})"),
        [(place, _, what), more @ ..] => {
            format!("{what} ({place}), and {} more", more.len())
        }
    };
    let waited = watched.change(&Subject::Host, Metric::PressureCpuSome, span);
    let share = waited.map(|ns| match span {
        Span::PerSecond => ns / 1e9,
        Span::SinceStart => ns / 1e9 / watched.seconds(),
    });
    if let Some(share) = share.filter(|share| *share >= PRESSURE_MIN) {
        said += &format!(
            "; some thread waited for a CPU {} of the time",
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
        let places: Vec<_> = page.table.rows.iter().map(|row| row[0].clone()).collect();
        assert_eq!(places, [text("host"), text("host"), text("qdisc:eth0:0:")]);
        let verdict = page.verdict.expect("two readings");
        assert!(
            verdict.contains("UDP: receive buffer full") && verdict.contains("40 % of the time"),
            "{verdict}"
        );
    }
}
