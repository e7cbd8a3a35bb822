//! Intervals and totals with their sums.
//!
//! Rules of the sums:
//! 1. `sum` is the direction to the server, or the only direction there is; with both directions
//!    the one to the client has the suffix `_bidir_reverse`. This holds in documents of either end.
//! 2. Bytes, retransmissions, datagrams and losses are added; jitter is the mean over streams.
//! 3. A sum's instants are those of its first stream.
//! 4. A sum is `sender` if this end sends in its direction; but of datagrams what was sent always is, and
//!    what was received never.

use crate::iperf3::datagram::lost_percent;
use crate::iperf3::json::document::{
    CpuUtilization, EndSection, EndStream, IntervalEntry, IntervalRow, TotalRow,
};
use crate::iperf3::json::input::{Datagrams, Interval, Stream, TcpReading, Test, Total};
use crate::iperf3::parameters::{Direction, Protocol};

/// Returns the rate of `bytes` in `seconds`, in bits per second; 0 in no time.
pub(super) fn bits_per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        bytes as f64 * 8.0 / seconds
    } else {
        0.0
    }
}

/// Returns the streams of both ways: those to the server (or the only ones), and those to the
/// client if both directions are measured.
fn ways(test: &Test) -> (Vec<&Stream>, Option<Vec<&Stream>>) {
    if test.parameters.direction != Direction::Both {
        return (test.streams.iter().collect(), None);
    }
    let (to_server, to_client) = test.streams.iter().partition(|stream| stream.sender);
    (to_server, Some(to_client))
}

/// Returns the interval at place `at`, of which every stream has one.
pub fn interval(test: &Test, at: usize) -> IntervalEntry {
    let (forward, reverse) = ways(test);
    let rows = test.streams.iter().filter_map(|stream| {
        Some(IntervalRow {
            socket: Some(stream.socket),
            ..interval_row(stream.intervals.get(at)?, stream.sender)
        })
    });
    IntervalEntry {
        streams: rows.collect(),
        sum: interval_sum_row(&forward, at),
        sum_bidir_reverse: reverse.map(|streams| interval_sum_row(&streams, at)),
    }
}

fn interval_row(interval: &Interval, sender: bool) -> IntervalRow {
    let seconds = interval.end_s - interval.start_s;
    let tcp = |read: fn(&TcpReading) -> u64| interval.tcp.as_ref().map(read);
    let received = interval.datagrams.filter(|_| !sender);
    IntervalRow {
        socket: None,
        start: interval.start_s,
        end: interval.end_s,
        seconds,
        bytes: interval.bytes,
        bits_per_second: bits_per_second(interval.bytes, seconds),
        retransmits: tcp(|tcp| tcp.retransmits),
        snd_cwnd: tcp(|tcp| tcp.snd_cwnd_bytes),
        snd_wnd: tcp(|tcp| tcp.snd_wnd_bytes),
        rtt: tcp(|tcp| tcp.rtt_us),
        rttvar: tcp(|tcp| tcp.rttvar_us),
        pmtu: tcp(|tcp| tcp.pmtu_bytes),
        reorder: tcp(|tcp| tcp.reorder),
        jitter_ms: received.map(|datagrams| datagrams.jitter_s * 1e3),
        lost_packets: received.map(|datagrams| datagrams.lost),
        packets: interval.datagrams.map(|datagrams| datagrams.packets),
        lost_percent: received.map(|datagrams| lost_percent(datagrams.lost, datagrams.packets)),
        omitted: interval.omitted,
        sender,
    }
}

fn interval_sum_row(streams: &[&Stream], at: usize) -> IntervalRow {
    let Some((sum, retransmits)) = interval_sum(streams, at) else {
        return IntervalRow::default();
    };
    IntervalRow {
        retransmits,
        ..interval_row(&sum, sends(streams))
    }
}

/// Returns the sum of interval `at` over `streams`, and their retransmissions.
pub(super) fn interval_sum(streams: &[&Stream], at: usize) -> Option<(Interval, Option<u64>)> {
    let of = |stream: &&Stream| stream.intervals.get(at).copied();
    let intervals: Vec<Interval> = streams.iter().filter_map(of).collect();
    let retransmits = intervals
        .iter()
        .map(|interval| Some(interval.tcp?.retransmits));
    let sum = Interval {
        bytes: intervals.iter().map(|interval| interval.bytes).sum(),
        tcp: None,
        datagrams: added(intervals.iter().map(|interval| interval.datagrams)),
        ..*intervals.first()?
    };
    Some((sum, retransmits.sum()))
}

/// Adds datagrams over streams, jitter being the mean; absent if one stream's are.
fn added(all: impl Iterator<Item = Option<Datagrams>>) -> Option<Datagrams> {
    let all: Vec<Datagrams> = all.collect::<Option<_>>()?;
    let mut sum = Datagrams::default();
    for one in &all {
        sum.packets += one.packets;
        sum.lost = sum.lost.saturating_add(one.lost);
        sum.out_of_order += one.out_of_order;
        sum.jitter_s += one.jitter_s;
    }
    sum.jitter_s /= all.len().max(1) as f64;
    Some(sum)
}

/// Returns the totals.
pub fn end(test: &Test) -> EndSection {
    let (forward, reverse) = ways(test);
    let reverse = reverse.as_deref();
    let udp = test.parameters.protocol == Protocol::Udp;
    let sent = |streams: &[&Stream]| sum_row(&sum_sent(streams), udp || sends(streams));
    let received = |streams: &[&Stream]| row_received(streams, udp);
    let local = test.cpu;
    let remote = test.cpu_remote.unwrap_or_default();
    EndSection {
        streams: test
            .streams
            .iter()
            .map(|stream| end_stream(stream, udp))
            .collect(),
        sum: udp.then(|| sum_udp(&forward)),
        sum_sent: Some(sent(&forward)),
        sum_received: Some(received(&forward)),
        sum_bidir_reverse: reverse.filter(|_| udp).map(sum_udp),
        sum_sent_bidir_reverse: reverse.map(sent),
        sum_received_bidir_reverse: reverse.map(received),
        cpu_utilization_percent: CpuUtilization {
            host_total: local.total,
            host_user: local.user,
            host_system: local.system,
            remote_total: remote.total,
            remote_user: remote.user,
            remote_system: remote.system,
        },
        sender_tcp_congestion: test.sender_congestion.clone().filter(|_| !udp),
        receiver_tcp_congestion: test.receiver_congestion.clone().filter(|_| !udp),
    }
}

fn end_stream(stream: &Stream, udp: bool) -> EndStream {
    let sent = stream.sent.unwrap_or_default();
    let received = stream.received.unwrap_or_default();
    if udp {
        let total = stream.sent.or(stream.received).unwrap_or_default();
        let total = Total {
            retransmits: None,
            ..with_losses(total, received)
        };
        return EndStream::Udp {
            udp: Box::new(TotalRow {
                socket: Some(stream.socket),
                out_of_order: total.datagrams.map(|datagrams| datagrams.out_of_order),
                ..sum_row(&total, stream.sender)
            }),
        };
    }
    let sender = TotalRow {
        socket: Some(stream.socket),
        ..total_row(&sent, stream.sender)
    };
    let sender = match sent.retransmits {
        None => sender,
        Some(retransmits) => TotalRow {
            retransmits: Some(retransmits),
            ..with_extremes(sender, stream)
        },
    };
    EndStream::Tcp {
        sender: Box::new(sender),
        receiver: Box::new(TotalRow {
            socket: Some(stream.socket),
            ..total_row(&received, stream.sender)
        }),
    }
}

fn total_row(total: &Total, sender: bool) -> TotalRow {
    TotalRow {
        start: 0.0,
        end: total.seconds,
        seconds: total.seconds,
        bytes: total.bytes,
        bits_per_second: bits_per_second(total.bytes, total.seconds),
        sender,
        ..TotalRow::default()
    }
}

/// Adds the extremes of the kernel's readings of the counted intervals.
///
/// The client of a reverse test reads nothing itself; iperf3 then writes zeros.
fn with_extremes(row: TotalRow, stream: &Stream) -> TotalRow {
    let counted = stream.intervals.iter().filter(|interval| !interval.omitted);
    let readings: Vec<TcpReading> = counted.filter_map(|interval| interval.tcp).collect();
    let rtts = || readings.iter().map(|tcp| tcp.rtt_us).filter(|&rtt| rtt > 0);
    let count = rtts().count() as u64;
    let most = |read: fn(&TcpReading) -> u64| Some(readings.iter().map(read).max().unwrap_or(0));
    TotalRow {
        reorder: most(|tcp| tcp.reorder),
        max_snd_cwnd: most(|tcp| tcp.snd_cwnd_bytes),
        max_snd_wnd: most(|tcp| tcp.snd_wnd_bytes),
        max_rtt: Some(rtts().max().unwrap_or(0)),
        min_rtt: Some(rtts().min().unwrap_or(0)),
        mean_rtt: Some(rtts().sum::<u64>().checked_div(count).unwrap_or(0)),
        ..row
    }
}

/// Returns the sum of what the senders counted, who know of no losses.
pub(super) fn sum_sent(streams: &[&Stream]) -> Total {
    let retransmits = streams
        .iter()
        .map(|stream| stream.sent.and_then(|sent| sent.retransmits));
    let sum = sum_of(streams, |stream| stream.sent);
    Total {
        retransmits: retransmits.sum(),
        datagrams: sum.datagrams.map(|datagrams| Datagrams {
            packets: datagrams.packets,
            ..Datagrams::default()
        }),
        ..sum
    }
}

/// Returns the sum of what the receivers counted.
pub(super) fn sum_received(streams: &[&Stream]) -> Total {
    sum_of(streams, |stream| stream.received)
}

fn sum_of(streams: &[&Stream], side: fn(&Stream) -> Option<Total>) -> Total {
    let totals: Vec<Total> = streams.iter().filter_map(|stream| side(stream)).collect();
    let datagrams = added(totals.iter().map(|total| total.datagrams));
    Total {
        seconds: totals.first().map_or(0.0, |total| total.seconds),
        bytes: totals.iter().map(|total| total.bytes).sum(),
        retransmits: None,
        datagrams: datagrams.filter(|_| !totals.is_empty()),
    }
}

fn sends(streams: &[&Stream]) -> bool {
    streams.first().is_some_and(|stream| stream.sender)
}

fn sum_row(sum: &Total, sender: bool) -> TotalRow {
    let datagrams = sum.datagrams;
    TotalRow {
        // Absent, not smaller, if one stream's are not known; iperf3 leaves the key out then.
        retransmits: sum.retransmits,
        jitter_ms: datagrams.map(|sum| sum.jitter_s * 1e3),
        lost_packets: datagrams.map(|sum| sum.lost),
        packets: datagrams.map(|sum| sum.packets),
        lost_percent: datagrams.map(|sum| lost_percent(sum.lost, sum.packets)),
        ..total_row(sum, sender)
    }
}

/// Returns the sum of what the receivers counted; the share that was lost is one of what was sent, where that
/// is known.
fn row_received(streams: &[&Stream], udp: bool) -> TotalRow {
    let row = sum_row(&sum_received(streams), !udp && sends(streams));
    TotalRow {
        lost_percent: row.lost_percent.and(sum_udp(streams).lost_percent),
        ..row
    }
}

/// Returns the sum that has the sender's bytes and the receiver's losses.
fn sum_udp(streams: &[&Stream]) -> TotalRow {
    let (sent, received) = (sum_sent(streams), sum_received(streams));
    let base = match sent.datagrams {
        Some(_) => sent,
        None => received,
    };
    sum_row(&with_losses(base, received), sends(streams))
}

/// Returns `base` with the losses of its datagrams that `received` counted.
fn with_losses(base: Total, received: Total) -> Total {
    Total {
        datagrams: Some(Datagrams {
            packets: base.datagrams.unwrap_or_default().packets,
            ..received.datagrams.unwrap_or_default()
        }),
        ..base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_was_lost_is_one_of_what_was_sent() {
        let total = |packets, lost| {
            Some(Total {
                seconds: 1.0,
                bytes: packets * 100,
                retransmits: None,
                datagrams: Some(Datagrams {
                    packets,
                    lost,
                    ..Datagrams::default()
                }),
            })
        };
        let here = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        // Of the second half nothing arrived, so that no number behind it says that it is missing.
        let stream = Stream {
            socket: 5,
            local: here,
            remote: here,
            sender: true,
            intervals: Vec::new(),
            sent: total(10_000, 0),
            received: total(5_000, 50),
        };
        let sum = sum_udp(&[&stream]);
        assert_eq!((sum.packets, sum.lost_percent), (Some(10_000), Some(0.5)));
        let received = row_received(&[&stream], true);
        assert_eq!(
            (received.packets, received.lost_percent),
            (Some(5_000), Some(0.5))
        );
    }
}
