//! The same captures read by tshark and tcptrace: what each counts must agree, or differ in the way
//! that docs/reference/trace.md says.

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use common::{From, Talk, pcap, skip, trace_bytes};
use linerate_trace::Trace;

use From::{Client, Server};

/// Returns what a program prints; nothing if there is no such program.
fn said(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What the programs count of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counted {
    data_packets: u64,
    pure_acks: u64,
    /// Sent again, or out of order: the programs draw that line differently.
    below: u64,
    round_trips: u64,
}

/// Reads `tcptrace -lr`: two columns, client first where the first packet is the client's.
fn by_tcptrace(path: &Path) -> Option<Vec<[Counted; 2]>> {
    let text = said("tcptrace", &["-lr", path.to_str()?])?;
    let mut connections: Vec<[Counted; 2]> = Vec::new();
    for line in text.lines() {
        if line.starts_with("TCP connection ") && line.ends_with(':') && !line.contains("info") {
            connections.push(Default::default());
        }
        let Some(last) = connections.last_mut() else {
            continue;
        };
        let Some((name, rest)) = line.trim_start().split_once(':') else {
            continue;
        };
        let numbers: Vec<u64> = rest
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [one, other] = numbers[..] else { continue };
        for (counted, number) in last.iter_mut().zip([one, other]) {
            match name {
                "actual data pkts" => counted.data_packets = number,
                "pure acks sent" => counted.pure_acks = number,
                "rexmt data pkts" | "outoforder pkts" => counted.below += number,
                "RTT samples" => counted.round_trips = number,
                _ => {}
            }
        }
    }
    Some(connections)
}

/// Returns how many frames hold a display filter of tshark.
fn by_tshark(path: &Path, filter: &str) -> Option<u64> {
    let text = said(
        "tshark",
        &[
            "-r",
            path.to_str()?,
            "-Y",
            filter,
            "-T",
            "fields",
            "-e",
            "frame.number",
        ],
    )?;
    Some(text.lines().count() as u64)
}

fn by_us(trace: &Trace) -> BTreeMap<u32, [Counted; 2]> {
    let one = |connection: &linerate_trace::ConnectionReport| {
        let ends = [&connection.from_client, &connection.from_server];
        let counted = ends.map(|end| Counted {
            data_packets: u64::from(end.data_packets),
            pure_acks: u64::from(end.pure_acks),
            below: end.counts.map_or(0, |counts| {
                u64::from(counts.retransmissions + counts.out_of_order)
            }),
            round_trips: end.round_trip.map_or(0, |trip| u64::from(trip.count)),
        });
        (connection.number, counted)
    };
    trace.connections.iter().map(one).collect()
}

/// Writes the frames, and compares what the three programs count.
fn check(name: &str, frames: &[(u64, Vec<u8>)]) {
    let bytes = pcap(frames, 1, false, true);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join(format!("{name}.pcap"));
    std::fs::write(&path, &bytes).expect("the temporary directory can be written");
    let trace = trace_bytes(&bytes);
    let (Some(theirs), Some(_)) = (by_tcptrace(&path), said("tshark", &["--version"])) else {
        return skip("tshark or tcptrace is not installed");
    };
    let ours = by_us(&trace);
    assert_eq!(theirs.len(), ours.len(), "{name}: connections");
    for (theirs, (number, ours)) in theirs.iter().zip(ours) {
        for (theirs, ours) in theirs.iter().zip(ours) {
            assert_eq!(
                theirs.data_packets, ours.data_packets,
                "{name} #{number}: data packets"
            );
            assert_eq!(
                theirs.pure_acks, ours.pure_acks,
                "{name} #{number}: pure ACKs"
            );
            assert_eq!(
                theirs.below, ours.below,
                "{name} #{number}: below the highest number"
            );
            // tcptrace takes SYN and FIN for segments, and counts their round trips.
            let controls = theirs.round_trips.checked_sub(ours.round_trips);
            assert!(
                controls.is_some_and(|controls| controls <= 2),
                "{name} #{number}: {theirs:?} {ours:?}"
            );
        }
    }
    let tshark = |filter| by_tshark(&path, filter).expect("tshark runs");
    let below = tshark("tcp.len > 0 && (tcp.analysis.retransmission || tcp.analysis.out_of_order)");
    let totals = &trace.totals;
    assert_eq!(
        below,
        totals.retransmissions + totals.out_of_order,
        "{name}: tshark"
    );
    let data = tshark("tcp.len > 0");
    assert_eq!(data, totals.data_packets, "{name}: tshark's data packets");
    assert_eq!(
        tshark("tcp.analysis.duplicate_ack"),
        totals.duplicate_acks,
        "{name}: duplicate ACKs"
    );
    assert_eq!(
        tshark("tcp.analysis.zero_window"),
        totals.zero_windows,
        "{name}: zero windows"
    );
}

#[test]
fn a_stream_with_everything_lost_in_turn() {
    let mut talk = Talk::new(u32::MAX - 30_000, 5000);
    talk.shake_hands(1460, Some(7));
    for at in 0..60u32 {
        for _ in 0..4 {
            talk.wait_us(20).data(Client, 1460);
        }
        match at % 4 {
            1 => {
                // The first of four was lost behind the capture.
                talk.wait_us(100).ack_but(Server, 4 * 1460);
                for have in 1..=3 {
                    talk.wait_us(20).sack(Server, 4 * 1460, have * 1460);
                }
                talk.wait_us(150).again(Client, 4 * 1460, 1460);
            }
            2 => {
                // The last was lost, and only the timer notices.
                talk.wait_us(100).ack_but(Server, 1460);
                talk.wait_us(210_000).again(Client, 1460, 1460);
            }
            _ => {}
        }
        talk.wait_us(150).ack(Server);
    }
    talk.finish();
    check("lost", &talk.frames);
}

#[test]
fn transactions_and_windows() {
    let mut frames = Vec::new();
    for port in 0..20u16 {
        let mut talk = Talk::new(77, 99)
            .client_port(5000 + port)
            .begin_at(u64::from(port) * 50);
        talk.shake_hands(1400, Some(5));
        for _ in 0..6 {
            talk.wait_us(300).data(Client, 90);
            talk.wait_us(300).data(Server, 900);
            talk.wait_us(100).ack(Client);
        }
        talk.wait_us(20).data(Client, 500);
        talk.wait_us(100).window(Server, 0).ack(Server);
        talk.wait_us(9000).window(Server, 900).ack(Server);
        talk.finish();
        frames.extend(talk.frames);
    }
    frames.sort_by_key(|(time_ns, _)| *time_ns);
    check("transactions", &frames);
}

#[test]
fn lost_before_the_capture() {
    let mut talk = Talk::new(1, 1);
    talk.shake_hands(1460, Some(7));
    for _ in 0..20 {
        talk.skip(Client, 1460);
        for behind in 1..=4 {
            talk.wait_us(20).data(Client, 1460);
            talk.wait_us(5)
                .sack(Server, (behind + 1) * 1460, behind * 1460);
        }
        talk.wait_us(400).again(Client, 5 * 1460, 1460);
        talk.wait_us(10).ack(Server);
    }
    talk.finish();
    check("before", &talk.frames);
}
