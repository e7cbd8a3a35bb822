//! What iperf3's server prints for people.
//!
//! A client that asks for its server's output gets this text unless it prints JSON itself. Lines
//! and columns are those of 3.12, so that whatever reads them today reads these too.

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::iperf3::datagram::lost_percent;
use crate::iperf3::json::host;
use crate::iperf3::json::input::{self, Datagrams, Interval, Stream, Total};
use crate::iperf3::json::sums::{bits_per_second, interval_sum, sum_received, sum_sent};
use crate::iperf3::parameters::{Direction, Parameters, Protocol};

const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// What the text is about.
struct Test<'a> {
    parameters: &'a Parameters,
    streams: &'a [Stream],
}

/// Returns the text of a server's test with the client at `peer`.
pub fn text(peer: SocketAddr, parameters: &Parameters, streams: &[Stream]) -> String {
    let test = Test {
        parameters,
        streams,
    };
    let mut out = String::new();
    let _ = writeln!(
        out,
        "Accepted connection from {}, port {}",
        host(&peer),
        peer.port()
    );
    for stream in streams {
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
    intervals(&test, &mut out);
    totals(&test, &mut out);
    out
}

impl Test<'_> {
    /// Returns the streams of each way that there is: those to the server, and those to the client.
    fn lists(&self) -> Vec<Vec<&Stream>> {
        let (to_client, to_server): (Vec<&Stream>, _) =
            self.streams.iter().partition(|stream| stream.sender);
        let mut lists = vec![to_server, to_client];
        lists.retain(|streams| !streams.is_empty());
        lists
    }

    fn is_udp(&self) -> bool {
        self.parameters.protocol == Protocol::Udp
    }

    fn is_both_ways(&self) -> bool {
        self.parameters.direction == Direction::Both
    }

    /// Returns the column that says who does what, which only both directions have.
    fn role(&self, stream: &Stream) -> &'static str {
        match (self.is_both_ways(), stream.sender) {
            (false, _) => "",
            (true, true) => "[TX-S]",
            (true, false) => "[RX-S]",
        }
    }
}

fn heading(test: &Test<'_>, columns: &str, out: &mut String) {
    let role = if test.is_both_ways() { "[Role]" } else { "" };
    let _ = writeln!(
        out,
        "[ ID]{role} Interval           Transfer     Bitrate{columns}"
    );
}

fn intervals(test: &Test<'_>, out: &mut String) {
    let both = test.is_both_ways();
    let sends = test.streams.first().is_some_and(|stream| stream.sender);
    let columns = match (test.is_udp(), sends || both) {
        (false, true) => "         Retr  Cwnd",
        (false, false) => "",
        (true, true) if !both => "         Total Datagrams",
        (true, _) => "         Jitter    Lost/Total Datagrams",
    };
    heading(test, columns, out);
    let several = test.parameters.parallel > 1;
    let count = input::intervals(test.streams);
    for at in 0..count {
        for streams in test.lists() {
            for stream in &streams {
                let interval = stream.intervals[at];
                let counted = interval.tcp.map(|tcp| {
                    let window = bytes(tcp.snd_cwnd_bytes);
                    format!("  {:3}   {window}       ", tcp.retransmits)
                });
                let label = format!("{:3}", stream.socket);
                interval_line(test, &label, stream, &interval, counted, out);
            }
            if several && let Some((sum, retransmits)) = interval_sum(&streams, at) {
                let counted = retransmits.map(|count| format!("  {count:3}             "));
                interval_line(test, "SUM", streams[0], &sum, counted, out);
            }
        }
        if several && at + 1 < count {
            out.push_str(RULE);
        }
    }
    out.push_str(RULE);
}

/// Writes an interval of `stream`, or of the streams of its way; `counted` is what stands behind the rate
/// where retransmissions are known.
fn interval_line(
    test: &Test<'_>,
    label: &str,
    stream: &Stream,
    interval: &Interval,
    counted: Option<String>,
    out: &mut String,
) {
    let times = (interval.start_s, interval.end_s);
    front(label, test.role(stream), times, interval.bytes, out);
    let counted = counted.unwrap_or_else(|| account_of(test, interval.datagrams, stream.sender));
    let omitted = if interval.omitted { "(omitted)" } else { "" };
    let _ = writeln!(out, "{counted}{omitted}");
}

/// Returns what an interval has behind its rate, if not retransmissions.
fn account_of(test: &Test<'_>, datagrams: Option<Datagrams>, sender: bool) -> String {
    let Some(datagrams) = datagrams else {
        return " ".repeat(18);
    };
    if !sender {
        return format!("  {}  ", account(&datagrams));
    }
    // What stands in the place of the jitter.
    let blank = if test.is_both_ways() {
        "          "
    } else {
        ""
    };
    format!(" {blank} {}  ", datagrams.packets)
}

fn totals(test: &Test<'_>, out: &mut String) {
    let knows_retransmits = test
        .streams
        .iter()
        .any(|stream| stream.sent.is_some_and(|sent| sent.retransmits.is_some()));
    let columns = match (test.is_udp(), knows_retransmits) {
        (true, _) => "         Jitter    Lost/Total Datagrams",
        (false, true) => "         Retr",
        (false, false) => "",
    };
    heading(test, columns, out);
    for streams in test.lists() {
        for stream in &streams {
            let label = format!("{:3}", stream.socket);
            let role = test.role(stream);
            total_lines(&label, role, stream.sent, stream.received, out);
        }
        if test.parameters.parallel > 1 {
            let sent = streams.iter().any(|stream| stream.sent.is_some());
            let received = streams.iter().any(|stream| stream.received.is_some());
            let sent = sent.then(|| sum_sent(&streams));
            let received = received.then(|| sum_received(&streams));
            total_lines("SUM", test.role(streams[0]), sent, received, out);
        }
    }
}

fn total_lines(
    label: &str,
    role: &str,
    sent: Option<Total>,
    received: Option<Total>,
    out: &mut String,
) {
    for (total, side) in [(sent, "sender"), (received, "receiver")] {
        let Some(total) = total else { continue };
        front(label, role, (0.0, total.seconds), total.bytes, out);
        let _ = match (total.retransmits, &total.datagrams) {
            (_, Some(datagrams)) => writeln!(out, "  {}  {side}", account(datagrams)),
            (Some(retransmits), None) => writeln!(out, "  {retransmits:3}             {side}"),
            (None, None) => writeln!(out, "{:18}{side}", ""),
        };
    }
}

/// Writes the columns that every line has.
fn front(label: &str, role: &str, (start_s, end_s): (f64, f64), moved: u64, out: &mut String) {
    let rate = bits_per_second(moved, end_s - start_s);
    let _ = write!(
        out,
        "[{label}]{role} {start_s:6.2}-{end_s:<6.2} sec  {}  {}/sec",
        bytes(moved),
        bits(rate)
    );
}

fn account(datagrams: &Datagrams) -> String {
    let percent = lost_percent(datagrams.lost, datagrams.packets);
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
