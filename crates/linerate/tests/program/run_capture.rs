//! `linerate run --capture`: what both hosts saw of the traffic, in the bundle and in its report.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::call::{Call, PROGRAM, Said};
use crate::common::{
    NamedLab, Server, copied, disturbance, file, folder, is_root, json, linerate, skip,
};
use linerate_model::metric::Metric;
use linerate_model::sample::{End, Subject};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Returns whether this process may capture.
fn may_capture() -> bool {
    if !is_root() {
        skip("capturing needs root");
    }
    is_root()
}

fn bundle(folder: &tempfile::TempDir) -> (PathBuf, String) {
    let path = folder.path().join("run.bundle");
    let text = path.display().to_string();
    (path, text)
}

/// Returns the captures that the result document names, by host.
fn capture<'d>(document: &'d Value, host: &str) -> &'d Value {
    let captures = document["trials"][0]["captures"].as_array();
    let captures = captures.unwrap_or_else(|| panic!("no captures in {document}"));
    let mut own = captures.iter().filter(|capture| capture["host"] == host);
    own.next()
        .unwrap_or_else(|| panic!("none of {host} in {captures:?}"))
}

fn taken<'d>(document: &'d Value, host: &str) -> &'d Value {
    let taken = &capture(document, host)["outcome"]["taken"];
    assert!(taken.is_object(), "{document}");
    taken
}

/// Returns what `linerate trace` says of a host's capture.
fn trace(bundle: &Path, document: &Value, host: &str) -> Value {
    let file = capture(document, host)["file"].as_str().expect("a file");
    let path = bundle.join(file).display().to_string();
    json(&linerate(&["trace", "-J", &path]).run().done().out)
}

/// Returns the document of a run. A machine that is too busy to be measured on captures as well.
fn measured(said: &Said) -> Value {
    assert!(said.is_measured(), "{said:?}");
    json(&said.out)
}

/// Measures over loopback with a capture and `flags`; returns the bundle, which is in `folder`, and
/// the result document.
fn captured(server: &Server, folder: &tempfile::TempDir, flags: &[&str]) -> (PathBuf, Value) {
    let (path, out) = bundle(folder);
    let host = server.host();
    let call = linerate(&["run", &host, "-J", "--capture", "-o", &out]);
    (path, measured(&call.words(flags).run()))
}

/// Returns the last value of a flow's metric at an end.
fn last(bundle: &Path, end: End, metric: Metric) -> u64 {
    let recording = linerate_store::read(bundle).expect("a bundle");
    let of_end = |subject: &Subject| matches!(subject, Subject::Flow(_, own) if *own == end);
    let values = recording
        .samples
        .iter()
        .filter(|sample| sample.metric == metric && of_end(&sample.subject));
    let last = values.max_by_key(|sample| sample.at_ns).expect("samples");
    last.value.unsigned_abs()
}

#[test]
fn both_hosts_of_a_lab_saw_the_same_segments_as_their_kernels_count() {
    if !may_capture() {
        return;
    }
    let Some(lab) = NamedLab::up(&["--delay", "1ms"]) else {
        return;
    };
    let folder = folder();
    let token = file(&folder, "token", "1234567890abcdef\n");
    let mut agent = lab
        .exec("server", &["serve", "--token-file", &token])
        .start();
    agent.wait_for("serving on");
    let (path, out) = bundle(&folder);
    let server = lab.address("server");
    // Segments that fit the wire, a few at a time: nothing puts them together on the way.
    let flags = "-l 1000 -N -b 8M -n 300K --capture -J --out";
    let said = lab
        .exec("client1", &["run", &server, "--token-file", &token])
        .words(&flags.split(' ').collect::<Vec<_>>())
        .words(&[&out])
        .run();
    agent.signal(Signal::SIGTERM);
    agent.end();
    let document = measured(&said);
    let traces = ["client1", "server"].map(|host| trace(&path, &document, host));
    for (host, trace) in ["client1", "server"].into_iter().zip(&traces) {
        let taken = taken(&document, host);
        assert_eq!(taken["dropped"], 0, "{taken}");
        assert_eq!(taken["ended"], Value::Null, "{taken}");
        assert!(taken["cpu_ns"].as_u64() > Some(0), "{taken}");
        let file = path.join(capture(&document, host)["file"].as_str().expect("a file"));
        let bytes = fs::metadata(file).expect("it is there").len();
        assert_eq!(taken["bytes"], bytes);
        assert_eq!(trace["totals"]["frames"], taken["frames"]);
        // Nothing but the flow: the control connection uses the same port.
        assert_eq!(trace["totals"]["connections"], 1, "{trace}");
        assert_eq!(trace["connections"][0]["handshake"], true, "{trace}");
    }
    let [client, server] = traces.each_ref().map(|trace| &trace["totals"]);
    let count = |totals: &Value, name: &str| totals[name].as_u64().expect("a number");
    assert_eq!(
        count(client, "payload_bytes"),
        count(server, "payload_bytes")
    );
    // A sender that is late sends more at once, which is cut on the way.
    let packets = [client, server].map(|totals| count(totals, "data_packets"));
    let is_cut = packets[0] < packets[1] && disturbance(&document).is_some();
    assert!(packets[0] == packets[1] || is_cut, "{packets:?}");
    assert!(count(client, "payload_bytes") >= 300 << 10);
    // What TCP itself counted: the receiver's last reading is when it has all; what is sent again
    // may come after that. The sender's is when all is handed to the kernel, which still sends.
    let data = count(server, "data_packets");
    let once = data - count(server, "retransmissions");
    let received = last(&path, End::Server, Metric::TcpDataSegsIn);
    assert!(
        (once..=data).contains(&received),
        "{received} of {once} to {data}"
    );
    let sent = last(&path, End::Client, Metric::TcpDataSegsOut);
    assert!(sent > 0 && sent <= data, "{sent} of {data}");
    agrees_with_tshark(&path, &document);
    // The report says the same, from the bundle alone.
    let report = json(
        &linerate(&["report", &out, "--format", "json"])
            .run()
            .done()
            .out,
    );
    let chapters = report["chapters"].as_array().expect("chapters");
    let own = chapters.iter().find(|chapter| chapter["id"] == "captures");
    let own = own.expect("a chapter of captures").to_string();
    for words in [
        "captures/000001-client1.pcapng",
        "captures/000001-server.pcapng",
    ] {
        assert!(own.contains(words), "{own}");
    }
    let rendered = || {
        linerate(&["report", &out]).run().done();
        fs::read(path.join("report.html")).expect("a report")
    };
    assert!(
        rendered() == rendered(),
        "the same bundle gives the same page"
    );
    // The bundle as a whole is explained capture by capture.
    let all = linerate(&["trace", &out]).run().done();
    assert!(all.shows("trial #1 at server") && all.shows("trial #1 at client1"));
    // Both hosts' views are joined, and nothing is lost on the way over loopback.
    assert!(all.shows("The clock of 000001-"), "{all:?}");
    assert!(all.shows("none lost between the captures"), "{all:?}");
    let page = path.join("both.html");
    linerate(&["trace", &out, "--html", &page.display().to_string()])
        .run()
        .done();
    let page = fs::read_to_string(page).expect("a page");
    for end in ["000001-client1.pcapng", "000001-server.pcapng"] {
        assert!(page.contains(end), "{end}");
    }
    linerate(&["trace", &out, "--csv", "x.csv"])
        .run()
        .failed(2, &["2 captures", "name one of them"]);
}

#[test]
fn the_page_of_flows_with_captures_and_a_profile_is_light() {
    if !may_capture() {
        return;
    }
    let folder = folder();
    let (path, out) = bundle(&folder);
    let server = Server::start(&[]);
    let flags = "-t 2 -P 4 --capture --profile --irq-time";
    let said = linerate(&["run", &server.host(), "-o", &out])
        .words(&flags.split(' ').collect::<Vec<_>>())
        .run();
    assert!(said.is_measured(), "{said:?}");
    let page = fs::read_to_string(path.join("report.html")).expect("a report");
    assert!(page.len() < 200_000, "{} bytes", page.len());
}

/// Compares with the counts of another program, where it is installed.
fn agrees_with_tshark(bundle: &Path, document: &Value) {
    for host in ["client1", "server"] {
        let file = bundle.join(capture(document, host)["file"].as_str().expect("a file"));
        let words = [
            "-r",
            &file.display().to_string(),
            "-Y",
            "tcp.len > 0",
            "-T",
            "fields",
        ];
        let call = std::process::Command::new("tshark")
            .args(words)
            .args(["-e", "frame.number"])
            .output();
        let Ok(output) = call else {
            return skip("tshark is not installed");
        };
        let lines = String::from_utf8_lossy(&output.stdout).lines().count() as u64;
        let ours = trace(bundle, document, host);
        assert_eq!(ours["totals"]["data_packets"], lines, "{output:?}");
    }
}

#[test]
fn connections_that_come_and_go_are_told_from_others_at_their_port() {
    if !may_capture() {
        return;
    }
    let server = Server::start(&[]);
    let folder = folder();
    let flags = ["--crr", "-P", "2", "-t", "0.3"];
    let (path, document) = captured(&server, &folder, &flags);
    let client = trace(&path, &document, "client1");
    assert!(
        client["totals"]["connections"].as_u64() > Some(2),
        "{client}"
    );
    // Whole from their handshakes on; the control connection, at the same port, was there before.
    for connection in client["connections"].as_array().expect("connections") {
        assert_eq!(connection["handshake"], true, "{connection}");
        assert_eq!(connection["server"]["port"], server.address.port());
    }
    let server = trace(&path, &document, "server");
    assert!(
        server["totals"]["connections"].as_u64() > Some(2),
        "{server}"
    );
}

#[test]
fn a_capture_without_names_names_nobody() {
    if !may_capture() {
        return;
    }
    let server = Server::start(&[]);
    let folder = folder();
    let flags = ["--rr", "-t", "0.2", "--anonymous"];
    let (path, document) = captured(&server, &folder, &flags);
    for host in ["client1", "server"] {
        assert_eq!(taken(&document, host)["anonymous"], true);
        let trace = trace(&path, &document, host);
        let ends: BTreeSet<&str> = trace["connections"]
            .as_array()
            .expect("connections")
            .iter()
            .flat_map(|one| [&one["client"], &one["server"]])
            .map(|end| end["address"].as_str().expect("an address"))
            .collect();
        assert_eq!(
            ends,
            BTreeSet::from(["10.0.0.1"]),
            "over loopback both ends are one"
        );
    }
}

#[test]
fn a_capture_ends_at_the_first_limit_and_the_run_goes_on() {
    if !may_capture() {
        return;
    }
    let server = Server::start(&[]);
    let host = server.host();
    let check = |limits: &str, words: &str| {
        let folder = folder();
        let (path, out) = bundle(&folder);
        let capture = format!("--capture={limits}");
        let call = linerate(&[
            "run", &host, "-l", "1000", "-N", "-b", "80M", "-n", "4M", "-J", &capture, "-o", &out,
        ]);
        let said = call.run();
        let document = measured(&said);
        let taken = taken(&document, "client1").clone();
        let ended = taken["ended"].as_str().unwrap_or_else(|| panic!("{taken}"));
        assert!(ended.contains(words), "{ended}");
        assert!(said.err.contains(words), "{said:?}");
        let is_valid = document["trials"][0]["valid"] == true;
        assert!(is_valid || said.was_read_late(), "{said:?}");
        // Whole up to there, with what was before the flows: their handshake.
        let trace = trace(&path, &document, "client1");
        assert_eq!(trace["connections"][0]["handshake"], true);
        assert_eq!(trace["files"][0]["damage"], Value::Null);
        taken
    };
    // A sender that is late sends segments of many messages: some 200 frames at least.
    let full = check("bytes=16K", "its file was full (16 KiB)");
    assert!(full["bytes"].as_u64() <= Some(16 << 10), "{full}");
    assert!(full["bytes"].as_u64() > Some(12 << 10), "{full}");
    assert_eq!(check("packets=50", "it had 50 packets")["frames"], 50);
    check("time=100ms", "100 ms");
}

#[test]
fn without_the_privilege_a_run_ends_well_and_says_why_nothing_was_captured() {
    if !is_root() {
        return skip("taking privileges away needs root");
    }
    let folder = folder();
    let program = folder.path().join("program");
    copied(PROGRAM, &program);
    // Another user is a stranger to root's agent, and shows a token.
    let token = file(&folder, "token", "made-for-this-test");
    for path in [folder.path(), Path::new(&token)] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("root may");
    }
    let server = Server::start(&["--token-file", &token]);
    let known = folder.path().join("known").display().to_string();
    let trust = ["--token-file", token.as_str(), "--known-agents", &known];
    let (path, out) = bundle(&folder);
    let (program, host) = (program.display().to_string(), server.host());
    let said = Call::of("chroot")
        .words(&["--userspec=65534:65534", "/", &program])
        .words(&["run", &host, "-t", "0.3", "-J", "--capture", "-o", &out])
        .words(&trust)
        .run();
    let document = measured(&said);
    let why = capture(&document, "client1")["outcome"]["missing"].as_str();
    let why = why.unwrap_or_else(|| panic!("{document}"));
    assert!(why.contains("CAP_NET_RAW"), "{why}");
    assert!(said.err.contains("nothing captured at client1"), "{said:?}");
    // The other host may, and did.
    assert!(taken(&document, "server")["frames"].as_u64() > Some(0));
    let page = fs::read_to_string(path.join("report.html")).expect("a report");
    assert!(page.contains("CAP_NET_RAW"));
}

#[test]
fn who_may_not_observe_a_host_captures_nothing_there() {
    if !may_capture() {
        return;
    }
    let Some(lab) = NamedLab::up(&[]) else { return };
    let folder = folder();
    let (_, out) = bundle(&folder);
    let mut agent = lab.exec("server", &["serve", "--public"]).start();
    agent.wait_for("serving on");
    let server = lab.address("server");
    let words = ["run", &server, "-t", "0.3", "-J", "--capture", "-o", &out];
    let said = lab.exec("client1", &words).run();
    agent.signal(Signal::SIGTERM);
    agent.end();
    let document = measured(&said);
    let why = capture(&document, "server")["outcome"]["missing"].as_str();
    assert!(why.is_some_and(|why| why.contains("token")), "{document}");
    assert!(taken(&document, "client1")["frames"].as_u64() > Some(0));
}

#[test]
fn what_cannot_be_captured_is_refused_with_a_way_out() {
    let run = |flags: &[&str]| linerate(&["run", "127.0.0.1:1"]).words(flags).run();
    run(&["--capture"]).failed(2, &["--capture keeps its files in a bundle", "--out DIR"]);
    run(&["--anonymous"]).failed(2, &["--capture"]);
    run(&["--capture=snap=7", "-o", "x"]).failed(2, &["snap is 7", "98 to 256"]);
    run(&["--capture=size=7", "-o", "x"]).failed(2, &["size=7", "snap=BYTES"]);
    let empty = folder();
    let directory = empty.path().display().to_string();
    linerate(&["trace", &directory])
        .run()
        .failed(1, &["run.json"]);
}
