//! What iperf3 prints for people.
//!
//! A client that asks for its server's output gets this text unless it prints JSON itself. Lines
//! and columns are those of 3.12, so that whatever reads them today reads these too.

use std::fmt::Write as _;

use crate::iperf3::json::document::TotalRow;
use crate::iperf3::json::host;
use crate::iperf3::json::input::{Datagrams, Role, Stream, Test, Total};
use crate::iperf3::json::sums::{bits_per_second, interval_sum, sum_received, sum_sent, ways};
use crate::iperf3::parameters::{Direction, Protocol};

const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// Returns the text of one end's test.
pub fn text(test: &Test) -> String {
    let mut out = String::new();
    let peer = match test.role {
        Role::Server => "Accepted connection from",
        Role::Client => "Connecting to host",
    };
    let _ = writeln!(out, "{peer} {}, port {}", test.peer_host, test.peer_port);
    for stream in &test.streams {
        let _ = writeln!(
            out,
            "[{:3}] local {} port {} connected to {} port {}",
            stream.socket,
            host(&stream.local),
            stream.local.port(),
            host(&stream.remote),
            stream.remote.port()
        );
    }
    intervals(test, &mut out);
    totals(test, &mut out);
    out
}

/// Returns the two ways as lists of streams.
fn lists(test: &Test) -> Vec<Vec<&Stream>> {
    let (forward, reverse) = ways(test);
    let mut lists = vec![forward];
    lists.extend(reverse);
    lists.retain(|streams| !streams.is_empty());
    lists
}

fn is_udp(test: &Test) -> bool {
    test.parameters.protocol == Protocol::Udp
}

/// Returns the column that says who does what, which only both directions have.
fn role(test: &Test, stream: &Stream) -> &'static str {
    if test.parameters.direction != Direction::Both {
        return "";
    }
    match (test.role, stream.sender) {
        (Role::Client, true) => "[TX-C]",
        (Role::Client, false) => "[RX-C]",
        (Role::Server, true) => "[TX-S]",
        (Role::Server, false) => "[RX-S]",
    }
}

fn heading(test: &Test, columns: &str, out: &mut String) {
    let role = match test.parameters.direction {
        Direction::Both => "[Role]",
        _ => "",
    };
    let _ = writeln!(
        out,
        "[ ID]{role} Interval           Transfer     Bitrate{columns}"
    );
}

fn intervals(test: &Test, out: &mut String) {
    let both = test.parameters.direction == Direction::Both;
    let sends = test.streams.first().is_some_and(|stream| stream.sender);
    let columns = match (is_udp(test), sends || both) {
        (false, true) => "         Retr  Cwnd",
        (false, false) => "",
        (true, true) if !both => "         Total Datagrams",
        (true, _) => "         Jitter    Lost/Total Datagrams",
    };
    heading(test, columns, out);
    let several = test.parameters.parallel > 1;
    let count = test.intervals();
    for at in 0..count {
        for streams in lists(test) {
            for stream in &streams {
                interval_line(test, stream, at, out);
            }
            if several {
                sum_line(test, &streams, at, out);
            }
        }
        if several && at + 1 < count {
            out.push_str(RULE);
        }
    }
    out.push_str(RULE);
}

fn interval_line(test: &Test, stream: &Stream, at: usize, out: &mut String) {
    let interval = stream.intervals[at];
    let front = Front {
        label: &format!("{:3}", stream.socket),
        role: role(test, stream),
        start_s: interval.start_s,
        end_s: interval.end_s,
        bytes: interval.bytes,
        bits_per_second: bits_per_second(interval.bytes, interval.end_s - interval.start_s),
    };
    let omitted = if interval.omitted { "(omitted)" } else { "" };
    front.write(out);
    let counted = match interval.tcp {
        Some(tcp) => format!(
            "  {:3}   {}       ",
            tcp.retransmits,
            bytes(tcp.snd_cwnd_bytes)
        ),
        None => account_of(test, interval.datagrams, stream.sender),
    };
    let _ = writeln!(out, "{counted}{omitted}");
}

fn sum_line(test: &Test, streams: &[&Stream], at: usize, out: &mut String) {
    let sum = interval_sum(streams, at);
    let Some(first) = streams.first() else {
        return;
    };
    Front {
        label: "SUM",
        role: role(test, first),
        start_s: sum.start,
        end_s: sum.end,
        bytes: sum.bytes,
        bits_per_second: sum.bits_per_second,
    }
    .write(out);
    let omitted = if sum.omitted { "(omitted)" } else { "" };
    let counted = match sum.retransmits {
        Some(retransmits) => format!("  {retransmits:3}             "),
        None => {
            let datagrams = datagrams(sum.packets, sum.lost_packets, sum.jitter_ms);
            account_of(test, datagrams, sum.sender)
        }
    };
    let _ = writeln!(out, "{counted}{omitted}");
}

/// Returns what an interval has behind its rate, if not retransmissions.
fn account_of(test: &Test, datagrams: Option<Datagrams>, sender: bool) -> String {
    let Some(datagrams) = datagrams else {
        return " ".repeat(18);
    };
    if !sender {
        return format!("  {}  ", account(&datagrams));
    }
    // What stands in the place of the jitter.
    let blank = match test.parameters.direction {
        Direction::Both => "          ",
        _ => "",
    };
    format!(" {blank} {}  ", datagrams.packets)
}

fn datagrams(packets: Option<u64>, lost: Option<u64>, jitter_ms: Option<f64>) -> Option<Datagrams> {
    Some(Datagrams {
        packets: packets?,
        lost: lost.unwrap_or(0),
        out_of_order: 0,
        jitter_s: jitter_ms.unwrap_or(0.0) / 1e3,
    })
}

fn totals(test: &Test, out: &mut String) {
    let knows_retransmits = test
        .streams
        .iter()
        .any(|stream| stream.sent.is_some_and(|sent| sent.retransmits.is_some()));
    let columns = match (is_udp(test), knows_retransmits) {
        (true, _) => "         Jitter    Lost/Total Datagrams",
        (false, true) => "         Retr",
        (false, false) => "",
    };
    heading(test, columns, out);
    for streams in lists(test) {
        for stream in &streams {
            let label = format!("{:3}", stream.socket);
            let role = role(test, stream);
            if let Some(sent) = &stream.sent {
                total_line(&label, role, sent, "sender", out);
            }
            if let Some(received) = &stream.received {
                total_line(&label, role, received, "receiver", out);
            }
        }
        if test.parameters.parallel > 1 {
            let role = streams.first().map_or("", |stream| role(test, stream));
            if streams.iter().any(|stream| stream.sent.is_some()) {
                total_line("SUM", role, &total(&sum_sent(&streams)), "sender", out);
            }
            if streams.iter().any(|stream| stream.received.is_some()) {
                total_line(
                    "SUM",
                    role,
                    &total(&sum_received(&streams)),
                    "receiver",
                    out,
                );
            }
        }
    }
}

fn total(row: &TotalRow) -> Total {
    Total {
        seconds: row.seconds,
        bytes: row.bytes,
        retransmits: row.retransmits,
        datagrams: datagrams(row.packets, row.lost_packets, row.jitter_ms),
    }
}

fn total_line(label: &str, role: &str, total: &Total, side: &str, out: &mut String) {
    Front {
        label,
        role,
        start_s: 0.0,
        end_s: total.seconds,
        bytes: total.bytes,
        bits_per_second: bits_per_second(total.bytes, total.seconds),
    }
    .write(out);
    let _ = match (total.retransmits, &total.datagrams) {
        (_, Some(datagrams)) => writeln!(out, "  {}  {side}", account(datagrams)),
        (Some(retransmits), None) => writeln!(out, "  {retransmits:3}             {side}"),
        (None, None) => writeln!(out, "{:18}{side}", ""),
    };
}

/// The columns that every line has.
struct Front<'a> {
    label: &'a str,
    role: &'a str,
    start_s: f64,
    end_s: f64,
    bytes: u64,
    bits_per_second: f64,
}

impl Front<'_> {
    fn write(&self, out: &mut String) {
        let _ = write!(
            out,
            "[{}]{} {:6.2}-{:<6.2} sec  {}  {}/sec",
            self.label,
            self.role,
            self.start_s,
            self.end_s,
            bytes(self.bytes),
            bits(self.bits_per_second)
        );
    }
}

fn account(datagrams: &Datagrams) -> String {
    let percent = super::super::datagram::lost_percent(datagrams.lost, datagrams.packets);
    format!(
        "{:5.3} ms  {}/{} ({}%)",
        datagrams.jitter_s * 1e3,
        datagrams.lost,
        datagrams.packets,
        two_digits(percent)
    )
}

/// Returns a share with two digits that count. C's `%.2g` would write 100 as `1e+02`; this does not.
fn two_digits(percent: f64) -> String {
    if percent == 0.0 || percent >= 10.0 {
        return format!("{percent:.0}");
    }
    let places = (1.0 - percent.log10().floor()).clamp(1.0, 6.0) as usize;
    let text = format!("{percent:.places$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns a volume in four columns and its unit, by 1024.
fn bytes(bytes: u64) -> String {
    let units = ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes", "PBytes"];
    scaled(bytes as f64, 1024.0, &units)
}

/// Returns a rate in four columns and its unit, by 1000.
fn bits(bits: f64) -> String {
    let units = ["bits", "Kbits", "Mbits", "Gbits", "Tbits", "Pbits"];
    scaled(bits, 1000.0, &units)
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let unit = units[unit];
    match value {
        _ if value < 9.995 => format!("{value:4.2} {unit}"),
        _ if value < 99.95 => format!("{value:4.1} {unit}"),
        _ => format!("{value:4.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(bytes(131_072), " 128 KBytes");
        assert_eq!(bytes(0), "0.00 Bytes");
        assert_eq!(bytes(2_498_560), "2.38 MBytes");
        assert_eq!(bits(9_830_000.0), "9.83 Mbits");
        assert_eq!(bits(10_099_193_182.5), "10.1 Gbits");
        assert_eq!(bytes(668_467_200), " 638 MBytes");
        assert_eq!(bytes(1018 << 20), "1018 MBytes");
    }

    #[test]
    fn shares_have_two() {
        let check = |percent: f64, expected: &str| assert_eq!(two_digits(percent), expected);
        check(0.0, "0");
        check(100.0, "100");
        check(12.345, "12");
        check(1.54, "1.5");
        check(0.123, "0.12");
        check(0.5, "0.5");
        check(0.01234, "0.012");
    }
}
