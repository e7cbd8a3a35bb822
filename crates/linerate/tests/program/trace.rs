//! `linerate trace` as its users meet it: files, documents, exit codes; and a capture of a lab with
//! delay and loss, of which tshark and tcptrace must count the same.

/// Calls of the program.
use std::process::{Command, Stdio};

use crate::common::{NamedLab, disturbance, file, folder, json, linerate, skip, too_busy};
use nix::sys::signal::Signal;

/// A capture of three frames in pcap: a SYN, its answer, and a cut record.
fn capture() -> Vec<u8> {
    let frame = |up: bool, flags: u8| {
        let (from, to) = if up { (1, 2) } else { (2, 1) };
        let (from_port, to_port) = if up { (4000u16, 80u16) } else { (80, 4000) };
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 40];
        frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        frame.extend(from_port.to_be_bytes());
        frame.extend(to_port.to_be_bytes());
        frame.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 16, 0, 0, 0, 0, 0]);
        frame
    };
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    for frame in [frame(true, 2), frame(false, 18), frame(true, 16)] {
        bytes.extend([0, 0, 0, 101, 0, 0, 0, 0]);
        bytes.extend((frame.len() as u32).to_le_bytes());
        bytes.extend((frame.len() as u32).to_le_bytes());
        bytes.extend(frame);
    }
    bytes.truncate(bytes.len() - 4);
    bytes
}

#[test]
fn a_cut_capture_is_a_result_with_a_warning() {
    let folder = folder();
    let path = folder.path().join("cut.pcap");
    std::fs::write(&path, capture()).expect("the temporary directory can be written");
    let path = path.display().to_string();
    let said = linerate(&["trace", &path]).run().done();
    assert!(said.shows("2 frames"), "{said:?}");
    assert!(said.shows("warning:"), "{said:?}");
    let html = folder.path().join("page.html").display().to_string();
    let csv = folder.path().join("rows.csv").display().to_string();
    let parquet = folder.path().join("rows.parquet").display().to_string();
    let words = [
        "trace",
        &path,
        "-J",
        "--html",
        &html,
        "--csv",
        &csv,
        "--parquet",
        &parquet,
    ];
    let document = json(&linerate(&words).run().done().out);
    assert_eq!(document["schema"], "linerate.trace");
    assert_eq!(document["totals"]["connections"], 1);
    assert_eq!(document["connections"][0]["client"]["port"], 4000);
    let rows = std::fs::read_to_string(csv).expect("rows were written");
    assert_eq!(rows.lines().count(), 3, "{rows}");
    assert!(std::fs::read(parquet).expect("rows").starts_with(b"PAR1"));
    assert!(
        std::fs::read_to_string(html)
            .expect("a page")
            .contains("Trace of cut.pcap")
    );
}

/// A capture of this many connections, a SYN each.
fn connections(count: u16) -> Vec<u8> {
    let mut bytes = capture();
    let frame = bytes[40..94].to_vec();
    bytes.truncate(24);
    for port in 0..count {
        let mut frame = frame.clone();
        frame[34..36].copy_from_slice(&(5000 + port).to_be_bytes());
        bytes.extend([0, 0, 0, 101, 0, 0, 0, 0]);
        bytes.extend((frame.len() as u32).to_le_bytes());
        bytes.extend((frame.len() as u32).to_le_bytes());
        bytes.extend(frame);
    }
    bytes
}

#[test]
fn as_many_connections_are_shown_as_the_help_says() {
    let folder = folder();
    let path = folder.path().join("many.pcap");
    std::fs::write(&path, connections(1200)).expect("the temporary directory can be written");
    let path = path.display().to_string();
    let help = linerate(&["trace", "--help"]).run().done();
    assert!(help.shows("10, 1000 with --json"), "{help:?}");
    let shown = |words: &[&str]| {
        let text = linerate(&["trace", &path]).words(words).run().done().out;
        text.lines()
            .filter(|line| line.contains(" → 10.0.0.2:80"))
            .count()
    };
    assert_eq!((shown(&[]), shown(&["--top", "3"])), (10, 3));
    let kept = |words: &[&str]| {
        let said = linerate(&["trace", "-J", &path]).words(words).run().done();
        json(&said.out)["connections"].as_array().map(Vec::len)
    };
    assert_eq!((kept(&[]), kept(&["--top", "7"])), (Some(1000), Some(7)));
}

#[test]
fn formats_go_where_they_are_sent() {
    let folder = folder();
    let path = folder.path().join("cut.pcap");
    std::fs::write(&path, capture()).expect("the temporary directory can be written");
    let path = path.display().to_string();
    let page = linerate(&["trace", &path, "--format", "html"])
        .run()
        .done()
        .out;
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("Trace of cut.pcap"),
        "{page}"
    );
    let (_, told) = page.split_once("</style>").expect("a style");
    for word in ["trial", "Trial", "interval", "n = 1"] {
        assert!(!told.contains(word), "{word}");
    }
    let out = folder.path().join("trace.json").display().to_string();
    let words = ["trace", &path, "--format", "json", "--out", &out];
    assert_eq!(linerate(&words).run().done().out, "");
    let document = json(&std::fs::read_to_string(&out).expect("a document"));
    assert_eq!(document["schema"], "linerate.trace");
    let words = ["trace", "--compare", &path, &path];
    let said = linerate(&words).run().done();
    assert!(said.shows("none in either"), "{said:?}");
    let said = linerate(&words).words(&["--format", "html"]).run().done();
    assert!(said.shows("Before and after"), "{said:?}");
    let said = linerate(&words).words(&["-J"]).run().done();
    assert_eq!(json(&said.out)["schema"], "linerate.trace.comparison");
    linerate(&["trace", "--compare", &path])
        .run()
        .failed(2, &["two files", "BEFORE AFTER"]);
    // Twice the same is the same traffic.
    let said = linerate(&["trace", &path, &path]).run();
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_page_of_ten_thousand_connections_is_small() {
    let folder = folder();
    let path = folder.path().join("many.pcap");
    let mut bytes = connections(0);
    // A request, lost once, and its answer; each of its own connection.
    let syn = connections(1)[40..].to_vec();
    for port in 0..10_000u16 {
        let mut add = |ms: u32, up: bool, flags: u8, sequence: u32, payload: usize| {
            let mut frame = syn.clone();
            let (from, to) = if up { (34, 36) } else { (36, 34) };
            frame[from..from + 2].copy_from_slice(&(5000 + port).to_be_bytes());
            frame[to..to + 2].copy_from_slice(&80u16.to_be_bytes());
            if !up {
                frame[26..34].rotate_left(4);
            }
            frame[16..18].copy_from_slice(&(40 + payload as u16).to_be_bytes());
            frame[38..42].copy_from_slice(&sequence.to_be_bytes());
            frame[42..46].copy_from_slice(&2u32.to_be_bytes());
            frame[47] = flags;
            frame.resize(frame.len() + payload, 7);
            bytes.extend((100 + u32::from(port)).to_le_bytes());
            bytes.extend((ms * 1000).to_le_bytes());
            bytes.extend((frame.len() as u32).to_le_bytes());
            bytes.extend((frame.len() as u32).to_le_bytes());
            bytes.extend(frame);
        };
        add(0, true, 2, 1, 0);
        add(1, false, 18, 1, 0);
        add(2, true, 24, 2, 300);
        add(400, true, 24, 2, 300);
        add(402, false, 24, 2, 900);
    }
    std::fs::write(&path, bytes).expect("the temporary directory can be written");
    let path = path.display().to_string();
    let page = linerate(&["trace", &path, "--format", "html"])
        .run()
        .done()
        .out;
    assert!(page.len() < 400_000, "{} B", page.len());
    assert!(page.contains("Time and sequence") && page.contains("loss recovery"));
}

#[test]
fn a_capture_is_not_written_over() {
    let folder = folder();
    let path = folder.path().join("in.pcap");
    std::fs::write(&path, capture()).expect("a file is written");
    let link = folder.path().join("link.pcap");
    std::os::unix::fs::symlink(&path, &link).expect("a link is made");
    for flag in ["--csv", "--parquet", "--html", "-o"] {
        let said = linerate(&["trace"])
            .words(&[&path])
            .words(&[flag])
            .words(&[&link])
            .run();
        said.failed(2, &["is the capture to be read", "next:"]);
    }
    assert_eq!(std::fs::read(&path).expect("it is there"), capture());
}

#[test]
fn a_flow_that_is_not_there_is_said() {
    let folder = folder();
    let path = folder.path().join("cut.pcap");
    std::fs::write(&path, capture()).expect("the temporary directory can be written");
    let path = path.display().to_string();
    let said = linerate(&["trace", "--flow", "10.0.0.9", &path])
        .run()
        .done();
    let warning = "no connection is one that --flow wants: all 2 TCP segments";
    assert!(said.shows(warning), "{said:?}");
    assert!(said.shows("no TCP connection to explain"), "{said:?}");
    assert!(!said.shows("held TCP back"), "{said:?}");
    let said = linerate(&["trace", "--flow", "10.0.0.1", &path])
        .run()
        .done();
    assert!(!said.shows("--flow"), "{said:?}");
}

#[test]
fn what_cannot_be_read_is_an_error_with_a_next_step() {
    let folder = folder();
    let text = file(&folder, "notes.txt", "these are notes, not packets");
    let said = linerate(&["trace", &text]).run();
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.err.contains("neither pcap nor pcapng begins"),
        "{said:?}"
    );
    assert!(said.err.contains("next:"), "{said:?}");
    let said = linerate(&["trace", "/nowhere/at.all"]).run();
    assert_eq!(said.code, 1, "{said:?}");
    let said = linerate(&["trace", "--flow", "not an address", &text]).run();
    assert_eq!(said.code, 2, "{said:?}");
}

/// Returns how many frames of a capture hold a display filter of tshark.
fn by_tshark(path: &str, filter: &str) -> u64 {
    let output = Command::new("tshark")
        .args([
            "-r",
            path,
            "-Y",
            filter,
            "-T",
            "fields",
            "-e",
            "frame.number",
        ])
        .stderr(Stdio::null())
        .output()
        .expect("tshark runs");
    String::from_utf8_lossy(&output.stdout).lines().count() as u64
}

/// Returns the sum of both columns of the lines of `tcptrace -l` that begin with `name`.
fn by_tcptrace(text: &str, name: &str) -> u64 {
    let lines = text.lines().map(str::trim_start);
    let rows = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    rows.flat_map(str::split_whitespace)
        .filter_map(|word| word.parse::<u64>().ok())
        .sum()
}

#[test]
fn a_lossy_lab_is_counted_as_others_count() {
    let has = |program: &str| Command::new(program).arg("-v").output().is_ok();
    if !["dumpcap", "tshark", "tcptrace"].into_iter().all(has) {
        return skip("dumpcap, tshark or tcptrace is not installed");
    }
    let words = ["--rate", "100mbit", "--delay", "2ms", "--loss", "0.01"];
    let Some(lab) = NamedLab::up(&words) else {
        return;
    };
    let folder = folder();
    let path = folder.path().join("lab.pcapng").display().to_string();
    let address = lab.address("server");
    let mut server = lab.exec("server", &["serve", "--public"]).start();
    server.wait_for("serving on");
    // It ends by itself when it has seen enough, or after half a minute.
    let dumpcap = "dumpcap -q -i eth0 -s 128 -f tcp -a packets:3000 -a duration:30 -w";
    let capture = linerate(&["lab", "exec", &lab.name, "client1"])
        .words(&dumpcap.split(' ').collect::<Vec<_>>())
        .words(&[&path])
        .start();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let is_empty = || std::fs::metadata(&path).map_or(true, |file| file.len() == 0);
    while is_empty() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let measured = lab
        .exec("client1", &["run", &address, "-t", "2", "-P", "2", "-J"])
        .run();
    capture.signal(Signal::SIGINT);
    capture.end();
    server.signal(Signal::SIGTERM);
    server.end();
    let document = json(&linerate(&["trace", &path, "-J"]).run().done().out);
    let totals = &document["totals"];
    let count = |name: &str| totals[name].as_u64().expect("a count");
    assert!(count("data_packets") > 100, "{measured:?} {totals}");
    let below = count("retransmissions") + count("out_of_order");
    let data = by_tshark(&path, "tcp.len > 0");
    assert_eq!(count("data_packets"), data, "data packets, tshark");
    let theirs = by_tshark(
        &path,
        "tcp.len > 0 && (tcp.analysis.retransmission || tcp.analysis.out_of_order)",
    );
    assert_eq!(below, theirs, "sent again, tshark");
    let output = Command::new("tcptrace").args(["-l", &path]).output();
    let text = String::from_utf8_lossy(&output.expect("tcptrace runs").stdout).into_owned();
    assert_eq!(
        count("data_packets"),
        by_tcptrace(&text, "actual data pkts"),
        "tcptrace"
    );
    assert_eq!(
        count("pure_acks"),
        by_tcptrace(&text, "pure acks sent"),
        "tcptrace"
    );
    let theirs = by_tcptrace(&text, "rexmt data pkts") + by_tcptrace(&text, "outoforder pkts");
    // SYN and FIN are segments to tcptrace; and what was lost before the capture, where only
    // acknowledgements told of it, is new to tcptrace, and sent again or, if it comes soon enough,
    // out of order to us and to tshark.
    let controls = count("control_retransmissions");
    let ends = document["connections"].as_array().into_iter().flatten();
    let unseen: u64 = ends
        .flat_map(|connection| ["from_client", "from_server"].map(|end| &connection[end]))
        .filter_map(|end| end["counts"]["first_not_captured"].as_u64())
        .sum();
    let expected = below - unseen - count("out_of_order")..=below + controls;
    assert!(expected.contains(&theirs), "{expected:?} {theirs}");
    if let Err(differs) = round_trips_agree(&document, &path) {
        // Segments that wait for a CPU are sent again in vain, which every program tells in its way.
        let why = disturbance(&json(&measured.out)).unwrap_or_else(|| panic!("{differs}"));
        too_busy(&why);
    }
}

/// Round trips of one direction, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Trips {
    count: f64,
    min_ms: f64,
    mean_ms: f64,
    max_ms: f64,
}

/// Returns those of both directions of each connection by `tcptrace -lr`, whose times have a
/// resolution of 0.1 ms.
fn trips_by_tcptrace(path: &str) -> Vec<[Trips; 2]> {
    let output = Command::new("tcptrace").args(["-lrn", path]).output();
    let text = String::from_utf8_lossy(&output.expect("tcptrace runs").stdout).into_owned();
    let column = |name: &str| -> Vec<[f64; 2]> {
        let lines = text.lines().map(str::trim_start);
        let rows = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        rows.map(|row| {
            let words = row.split_whitespace();
            let numbers: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
            [numbers[0], numbers[1]]
        })
        .collect()
    };
    let names = ["RTT samples", "RTT min", "RTT avg", "RTT max"];
    let [count, min_ms, mean_ms, max_ms] = names.map(column);
    let trips = |at: usize, side: usize| Trips {
        count: count[at][side],
        min_ms: min_ms[at][side],
        mean_ms: mean_ms[at][side],
        max_ms: max_ms[at][side],
    };
    let connections = 0..count.len();
    connections.map(|at| [trips(at, 0), trips(at, 1)]).collect()
}

/// Returns every round trip that tshark tells, by connection from 0 and the port of the end that
/// acknowledged.
fn trips_by_tshark(path: &str) -> Vec<((usize, u64), f64)> {
    let fields = ["-T", "fields", "-e", "tcp.stream", "-e", "tcp.srcport"];
    let output = Command::new("tshark")
        .args(["-r", path, "-Y", "tcp.analysis.ack_rtt"])
        .args(fields)
        .args(["-e", "tcp.analysis.ack_rtt"])
        .stderr(Stdio::null())
        .output()
        .expect("tshark runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = |line: &str| {
        let mut words = line.split('\t');
        let from = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let seconds: f64 = words.next()?.parse().ok()?;
        Some((from, 1e3 * seconds))
    };
    text.lines().filter_map(row).collect()
}

/// Compares round trips with those of tcptrace, which has ours and one each of SYN and FIN, and
/// with those of tshark, which has ours, those of SYN and FIN, and those during recovery.
fn round_trips_agree(document: &serde_json::Value, path: &str) -> Result<(), String> {
    /// Half of the last digit that tcptrace prints, and as much for its arithmetic in microseconds.
    const PRINTED_MS: f64 = 0.06;
    /// The last digit that tshark prints of a capture in nanoseconds, and rounding.
    const EXACT_MS: f64 = 0.002;
    let of_tcptrace = trips_by_tcptrace(path);
    let of_tshark = trips_by_tshark(path);
    let mut compared = 0;
    for connection in document["connections"].as_array().into_iter().flatten() {
        let number = connection["number"].as_u64().expect("a number") as usize;
        for (side, (end, other)) in [("from_client", "server"), ("from_server", "client")]
            .into_iter()
            .enumerate()
        {
            let trips = &connection[end]["round_trip"];
            let Some(count) = trips["count"].as_f64() else {
                continue;
            };
            let ms = |name: &str| trips[name].as_f64().expect("a time") / 1e6;
            let ours = Trips {
                count,
                min_ms: ms("min_ns"),
                mean_ms: ms("mean_ns"),
                max_ms: ms("max_ns"),
            };
            let theirs = of_tcptrace[number - 1][side];
            let what = format!("#{number} {end}: {ours:?}, tcptrace {theirs:?}");
            let controls = theirs.count - ours.count;
            held((0.0..=2.0).contains(&controls), &what)?;
            held(theirs.min_ms <= ours.min_ms + PRINTED_MS, &what)?;
            held(theirs.max_ms >= ours.max_ms - PRINTED_MS, &what)?;
            // The sums differ by what SYN and FIN took, which is between their least and most.
            let more_ms = theirs.count * theirs.mean_ms - ours.count * ours.mean_ms;
            let printed_ms = PRINTED_MS * theirs.count;
            let least = controls * theirs.min_ms - printed_ms;
            let most = controls * theirs.max_ms + printed_ms;
            held(
                (least..=most).contains(&more_ms),
                &format!("{what}: {more_ms}"),
            )?;
            if controls == 0.0 {
                held((theirs.min_ms - ours.min_ms).abs() <= PRINTED_MS, &what)?;
                held((theirs.max_ms - ours.max_ms).abs() <= PRINTED_MS, &what)?;
            }
            let port = connection[other]["port"].as_u64().expect("a port");
            let theirs: Vec<f64> = of_tshark
                .iter()
                .filter(|(from, _)| *from == (number - 1, port))
                .map(|(_, ms)| *ms)
                .collect();
            let least = theirs.iter().copied().fold(f64::INFINITY, f64::min);
            let most = theirs.iter().copied().fold(0.0, f64::max);
            let what = format!("#{number} {end}: {ours:?}, tshark {}", theirs.len());
            held(theirs.len() as f64 >= ours.count, &what)?;
            held(least <= ours.min_ms + EXACT_MS, &format!("{what}: {least}"))?;
            held(most >= ours.max_ms - EXACT_MS, &format!("{what}: {most}"))?;
            compared += 1;
        }
    }
    assert!(compared >= 3, "only {compared} directions had round trips");
    Ok(())
}

fn held(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}
