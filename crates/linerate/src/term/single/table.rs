//! Tables of a measurement: a line for each interval and flow, or for each of several runs.

use linerate_analyze::live::Interval;
use linerate_analyze::single::{Single, SingleTrial};
use linerate_model::manner::Transport;
use linerate_model::number;
use linerate_model::response::{describe, name};
use linerate_model::unit::Unit;
use linerate_model::workload::{Direction, Workload};

use super::result::of;
use super::{RateUnit, rate_words};
use crate::term::{self, Look, line, styled};

/// A column: its head and width.
type Column = (&'static str, usize);

/// What the lines of a workload tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Bytes, and TCP's view at the sending end.
    Stream,
    /// Bytes, loss and jitter at the receiving end.
    Datagrams,
    /// Transactions and their latency.
    Transactions,
    /// Connections that rest.
    Rest,
}

/// Returns what the lines of `workload` tell.
pub(super) fn told(workload: &Workload) -> Told {
    match workload.manner.transport {
        _ if workload.traffic.is_transactional() => Told::Transactions,
        _ if !workload.traffic.is_stream() => Told::Rest,
        Transport::Udp => Told::Datagrams,
        _ => Told::Stream,
    }
}

impl Told {
    /// Columns of what was counted and of the rate: 99.9 Gbit/s, or 9 999 000/s; in a unit that was asked for it may
    /// be 99 900 000 kbit/s.
    fn amount_columns(self, rate_unit: Option<RateUnit>) -> (usize, usize) {
        match (self, rate_unit) {
            (Self::Transactions, _) => (12, 11),
            (_, None) => (12, 12),
            (_, Some(_)) => (8, 17),
        }
    }
}

/// Returns what stands between columns: behind the longest name of a group, 9 columns, 80 in all are left with one blank.
fn gap(lead: &str) -> &'static str {
    if lead.is_empty() { "  " } else { " " }
}

/// Returns the same before what was counted, which fills its column in the head alone, where the seconds leave room.
fn before_amounts(lead: &str) -> &'static str {
    if lead.is_empty() { "  " } else { "" }
}

/// Columns of interval lines behind flow, seconds, amount and rate: 80 in all at the most.
fn columns(told: Told) -> &'static [Column] {
    match told {
        Told::Stream => &[("retr", 6), ("cwnd", 9), ("RTT", 8)],
        Told::Datagrams => &[("lost", 7), ("of sent", 7), ("jitter", 8)],
        Told::Transactions => &[("p50", 7), ("p99", 7), ("max", 7), ("retr", 4)],
        Told::Rest => &[("retr", 6), ("RTT", 8)],
    }
}

/// Prints the head of the interval lines, and of how many flows they are the sum where it is told alone.
/// `lead` stands before each of its lines.
pub(super) fn interval_head(
    lead: &str,
    workload: &Workload,
    summed: bool,
    rate_unit: Option<RateUnit>,
) {
    let (flows, both) = (workload.connections, workload.goes_both_ways());
    let note = match (summed, both) {
        (true, true) => Some(format!(
            "the sums of {flows} flows, TX to the server and RX from it; --all-flows shows each"
        )),
        (true, false) => Some(format!("the sum of {flows} flows; --all-flows shows each")),
        (false, true) => Some("TX is to the server, RX from it".to_owned()),
        (false, false) => None,
    };
    if let Some(note) = note {
        line(&styled(&format!("{lead}{note}"), Look::Quiet));
    }
    let what = workload.traffic.kind().about().counted;
    let told = told(workload);
    let gap = gap(lead);
    let columns = columns(told).iter();
    let columns: String = columns
        .map(|(head, width)| format!("{gap}{head:>width$}"))
        .collect();
    let first = first_columns(lead, workload);
    let amounts = match told {
        Told::Rest => String::new(),
        _ => {
            let (amount, rate) = told.amount_columns(rate_unit);
            format!(
                "{}{what:>amount$}{gap}{:>rate$}",
                before_amounts(lead),
                "rate"
            )
        }
    };
    let head = format!(
        "{lead}{:>first$}{gap}{:^13}{amounts}{columns}",
        "flow", "seconds"
    );
    line(&styled(&head, Look::Quiet));
}

/// Columns of the name of a flow, with its way where there are two.
fn first_columns(lead: &str, workload: &Workload) -> usize {
    match (workload.goes_both_ways(), lead.is_empty()) {
        (true, _) => 6,
        (false, true) => 5,
        (false, false) => 4,
    }
}

/// Returns the line of an interval, `lead` before it.
pub(super) fn interval(
    lead: &str,
    interval: &Interval,
    workload: &Workload,
    rate_unit: Option<RateUnit>,
) -> String {
    let told = told(workload);
    let name = interval
        .flow
        .map_or_else(|| "sum".to_owned(), |flow| flow.to_string());
    let name = match interval.direction.filter(|_| workload.goes_both_ways()) {
        None => name,
        Some(Direction::ToServer) => format!("TX {name}"),
        Some(_) => format!("RX {name}"),
    };
    let (volume, rate) = match (interval.transactions, interval.transactions_per_second) {
        (Some(count), Some(rate)) => (
            Unit::Count.display(count as f64),
            Unit::PerSecond.display(rate),
        ),
        _ => (
            Unit::Bytes.display(interval.bytes as f64),
            rate_words(interval.bits_per_second, rate_unit),
        ),
    };
    let count = |count: Option<u64>| count.map(|count| Unit::Count.display(count as f64));
    let micros = |us: Option<f64>| us.map(|us| Unit::Nanoseconds.display(us * 1e3));
    let cells = match told {
        Told::Stream => vec![
            count(interval.retransmits),
            interval
                .snd_cwnd_bytes
                .map(|bytes| Unit::Bytes.display(bytes as f64)),
            micros(interval.rtt_us),
        ],
        Told::Datagrams => vec![
            count(interval.lost),
            interval
                .datagrams
                .zip(interval.lost)
                .map(|(all, lost)| Unit::Percent.display(100.0 * lost as f64 / all.max(1) as f64)),
            micros(interval.jitter_us),
        ],
        Told::Transactions => {
            let latency = interval.latency.as_ref();
            vec![
                micros(latency.and_then(|latency| latency.p50_us)),
                micros(latency.and_then(|latency| latency.p99_us)),
                micros(latency.and_then(|latency| latency.max_us)),
                count(interval.retransmits_both.or(interval.retransmits)),
            ]
        }
        Told::Rest => vec![count(interval.retransmits), micros(interval.rtt_us)],
    };
    let cells = cells.into_iter().zip(columns(told));
    let gap = gap(lead);
    let cells: String = cells
        .map(|(cell, (_, width))| {
            format!("{gap}{:>width$}", cell.unwrap_or_else(|| "–".to_owned()))
        })
        .collect();
    let first = first_columns(lead, workload);
    // What rests has nothing that would be counted.
    let amounts = match told {
        Told::Rest => String::new(),
        _ => {
            let (amount, columns) = told.amount_columns(rate_unit);
            format!(
                "{}{volume:>amount$}{gap}{rate:>columns$}",
                before_amounts(lead)
            )
        }
    };
    format!(
        "{lead}{name:>first$}{gap}{:>6.1}–{:<6.1}{amounts}{cells}",
        interval.begin_s, interval.end_s,
    )
}

/// Columns of the lines of runs behind the number and the rate.
fn run_columns(workload: &Workload) -> &'static [(&'static str, usize, &'static str)] {
    match told(workload) {
        _ if workload.goes_both_ways() => &[
            ("TX", 12, name::THROUGHPUT_TO_SERVER),
            ("RX", 12, name::THROUGHPUT_FROM_SERVER),
        ],
        Told::Stream => &[("retr", 6, name::RETRANSMITTED)],
        Told::Datagrams => &[("lost", 7, name::LOSS_SHARE), ("jitter", 8, name::JITTER)],
        Told::Transactions | Told::Rest => &[("p50", 8, name::RTT_P50), ("p99", 8, name::RTT_P99)],
    }
}

/// Prints the head of the lines of several runs.
pub(super) fn run_head(lead: &str, workload: &Workload) {
    let columns = run_columns(workload).iter();
    let columns: String = columns
        .map(|(head, width, _)| format!("  {head:>width$}"))
        .collect();
    let rate = if workload.goes_both_ways() {
        "both ways"
    } else {
        "rate"
    };
    let head = format!("{lead}{:>5}  {rate:>12}{columns}  limited by", "run");
    line(&styled(&head, Look::Quiet));
}

/// Returns the lines of run `number`, of which `single` is the result.
pub(super) fn run(number: usize, single: &Single<'_>, rate_unit: Option<RateUnit>) -> Vec<String> {
    let Some(trial) = single.trials.first() else {
        return Vec::new();
    };
    let columns = run_columns(&single.workload).iter();
    let cells: String = columns
        .map(|(_, width, name)| format!("  {:>width$}", cell(trial, name, rate_unit)))
        .collect();
    let headline = single.workload.traffic.kind().about().headline;
    let rate = cell(trial, headline, rate_unit);
    let lead = format!("{number:>5}  {rate:>12}{cells}  ");
    let indent = lead.chars().count();
    let (words, look) = match &trial.invalid {
        Some(why) => (format!("INVALID: {why}"), Look::Bad),
        None => {
            let limiter = single.limiter();
            (
                limiter
                    .map_or("–", |(limiter, _)| limiter.title())
                    .to_owned(),
                Look::Plain,
            )
        }
    };
    let columns = term::width().saturating_sub(indent);
    let texts = term::wrap(&words, columns, 0).into_iter().enumerate();
    let text = |(at, text): (usize, String)| match at {
        0 => lead.clone() + &styled(&text, look),
        _ => " ".repeat(indent) + &styled(&text, look),
    };
    texts.map(text).collect()
}

/// Returns a response in words, with the unit of rates that was asked for.
fn cell(trial: &SingleTrial<'_>, response: &str, rate_unit: Option<RateUnit>) -> String {
    let Some(value) = of(trial, response) else {
        return "–".to_owned();
    };
    match describe(response).unit {
        Unit::BitsPerSecond => rate_words(value, rate_unit),
        Unit::Ratio => number::percent(value),
        unit => unit.display(value),
    }
}

#[cfg(test)]
mod tests {
    use linerate_analyze::Latency;
    use linerate_model::workload::Kind;

    use super::*;

    /// A line of long numbers, in the columns of `workload`.
    fn longest(workload: &Workload, flow: Option<u32>, direction: Option<Direction>) -> String {
        longest_in("", workload, flow, direction, None)
    }

    fn longest_in(
        lead: &str,
        workload: &Workload,
        flow: Option<u32>,
        direction: Option<Direction>,
        rate_unit: Option<RateUnit>,
    ) -> String {
        let time_us = Some(99_900.0);
        let latency = Latency {
            n: 99_900,
            mean_us: time_us,
            p50_us: time_us,
            p90_us: time_us,
            p99_us: time_us,
            p999_us: time_us,
            max_us: time_us,
        };
        let is_transactional = workload.traffic.is_transactional();
        let all = Interval {
            flow,
            direction,
            begin_s: 3599.0,
            end_s: 3600.0,
            bytes: 123_456_789_012,
            bits_per_second: 99.9e9,
            transactions: is_transactional.then_some(999_999),
            transactions_per_second: is_transactional.then_some(999_999.0),
            latency: Some(latency),
            retransmits: Some(if is_transactional { 999 } else { 99_900 }),
            retransmits_both: is_transactional.then_some(999),
            snd_cwnd_bytes: Some(1_047_552),
            rtt_us: time_us,
            datagrams: Some(999_000),
            lost: Some(99_900),
            jitter_us: time_us,
        };
        interval(lead, &all, workload, rate_unit)
    }

    #[test]
    fn lines_of_intervals_fit_eighty_columns() {
        let datagrams = {
            let mut workload = Workload::stream(Direction::Both);
            workload.manner.transport = Transport::Udp;
            workload
        };
        for workload in [
            Workload::stream(Direction::ToServer),
            Workload::stream(Direction::Both),
            datagrams,
            Workload::of(Kind::Rr),
            Workload::of(Kind::Crr),
            Workload::of(Kind::Idle),
        ] {
            for (flow, direction) in [
                (Some(103), Some(Direction::ToServer)),
                (None, Some(Direction::FromServer)),
                (None, None),
            ] {
                let kilobits = RateUnit {
                    name: "kbit/s",
                    bits_per_second: 1e3,
                };
                for (lead, unit) in [("", None), ("", Some(kilobits)), ("stream-2 ", None)] {
                    let longest = longest_in(lead, &workload, flow, direction, unit);
                    assert!(longest.chars().count() <= 80, "{workload:?}: {longest}");
                }
            }
        }
    }

    #[test]
    fn lines_of_transactions_tell_the_latency_of_the_interval() {
        let line = longest(&Workload::of(Kind::Rr), Some(0), None);
        let cells: Vec<&str> = line.split("  ").filter(|cell| !cell.is_empty()).collect();
        assert_eq!(cells[cells.len() - 2].trim(), "99.9 ms", "{line}");
        let both = Workload::stream(Direction::Both);
        let ways =
            [Direction::ToServer, Direction::FromServer].map(|way| longest(&both, None, Some(way)));
        assert!(ways[0].starts_with("TX sum") && ways[1].starts_with("RX sum"));
    }
}
