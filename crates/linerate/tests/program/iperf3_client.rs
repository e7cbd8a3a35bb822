//! `linerate run --peer iperf3` against the real server, and `--format iperf3` beside the real
//! client's documents.

use std::collections::BTreeSet;
use std::process::Command;

use crate::common::iperf3::Iperf3;
use crate::common::{
    Call, Said, disturbance, file, folder, json, linerate, loading, skip, too_busy,
};
use linerate_compat::iperf3::json::Document;
use nix::sys::signal::Signal;
use serde_json::Value;

/// How often to measure where the machine leaves a server no time.
const TRIES: usize = 3;

/// Starts a server with more words; `None` where there is no iperf3.
fn start(words: &[&str]) -> Option<Iperf3> {
    let server = Iperf3::start("iperf3", words);
    if server.is_none() {
        skip("there is no iperf3; install it with `apt-get install iperf3`");
    }
    server
}

fn run(host: &str, words: &[&str]) -> Call {
    linerate(&[&["run", "--peer", "iperf3", host][..], words].concat())
}

/// Returns the bytes that each stream of a server's document sent or received, in their order.
fn of_server(server: &Value) -> Vec<u64> {
    let streams = server["end"]["streams"].as_array().expect("streams");
    let bytes = |stream: &Value| {
        let of = |side: &str| stream[side]["bytes"].as_u64().expect("a count");
        of("sender").max(of("receiver"))
    };
    streams.iter().map(bytes).collect()
}

/// Returns the bytes of one end of each flow in our document, in the order of iperf3's streams.
fn of_ours(ours: &Value, end: &str) -> Vec<u64> {
    let flows = ours["trials"][0]["flows"].as_array().expect("flows");
    let of_end = || flows.iter().filter(|flow| flow["end"] == end);
    let bytes = |flow: &Value| {
        let of = |key: &str| flow[key].as_u64().expect("a count");
        of("bytes_sent").max(of("bytes_received"))
    };
    let to_server = |flow: &&Value| (flow["part"] == "sender") == (end == "client");
    let first = of_end().filter(to_server).map(bytes);
    let then = of_end().filter(|flow| !to_server(flow)).map(bytes);
    first.chain(then).collect()
}

#[test]
fn both_ends_count_the_same_bytes_whatever_is_asked() {
    let _load = loading();
    // As fast as it goes, one after the other; what is asked at a rate, all at once.
    let fast: [&[&str]; 2] = [&["-P", "3"], &["-R", "-P", "2", "-l", "64K"]];
    let paced: [&[&str]; 7] = [
        // A server on one thread that sends without a limit is late to read.
        &["--bidir", "-b", "80M"],
        &["--bidir", "-P", "2", "-b", "40M"],
        &["-w", "128K", "-M", "1200", "-N", "-S", "16", "-b", "40M"],
        &["-C", "reno", "-R", "-b", "40M"],
        &["-b", "40M"],
        &["-b", "40M", "-R"],
        &["-Z", "-b", "40M"],
    ];
    let start = |row: &'static [&'static str]| {
        let server = start(&["-1", "-J"])?;
        let words = [row, &["-t", "0.5", "-i", "0", "-J"]].concat();
        let going = run(&server.host(), &words).start();
        Some((row, server, going))
    };
    for row in fast {
        // A server that is kept from its CPU for long does not answer in time.
        let tried = (0..TRIES).find_map(|_| {
            let (row, server, going) = start(row)?;
            let said = going.end();
            said.is_measured().then_some((row, server, said))
        });
        let Some((row, server, said)) = tried else {
            too_busy(&format!("{row:?}: the server gave up"));
            continue;
        };
        counted_the_same(row, &said, server);
    }
    let goings: Vec<_> = paced.into_iter().filter_map(start).collect();
    for (row, server, going) in goings {
        counted_the_same(row, &going.end(), server);
    }
}

/// Asserts that the server's own document has the bytes of ours.
#[track_caller]
fn counted_the_same(row: &[&str], said: &Said, server: Iperf3) {
    assert!(said.is_measured(), "{row:?}: {said:?}");
    let ours = json(&said.out);
    let theirs = json(&server.end());
    assert_eq!(theirs["error"], Value::Null, "{row:?}");
    let theirs = of_server(&theirs);
    assert!(theirs.iter().all(|bytes| *bytes > 0), "{row:?}: {theirs:?}");
    assert_eq!(of_ours(&ours, "server"), theirs, "{row:?}");
    let client = of_ours(&ours, "client");
    // The server drops what it has not read when it hears of the end. It gets the time for it, but is
    // not obliged to be quick.
    for (sent, counted) in client.iter().zip(&theirs) {
        let lost = sent.saturating_sub(*counted);
        assert!(
            counted <= sent && lost * 50 <= *sent,
            "{row:?}: {client:?} {theirs:?}"
        );
    }
}

#[test]
fn datagrams_are_counted_by_their_receiver() {
    for (words, flows) in [
        (&["-P", "2"][..], 2),
        (&["-R"], 1),
        (&["--bidir", "-l", "200"], 2),
    ] {
        let words = [words, &["-u", "-b", "4M", "-t", "0.5", "-i", "0", "-J"]].concat();
        // Where the machine is busy the server sends on to a socket that is closed, and gives up.
        let tried = (0..TRIES).find_map(|_| {
            let server = start(&["-1", "-J"])?;
            let said = run(&server.host(), &words).run();
            assert!(said.is_measured(), "{words:?}: {said:?}");
            let theirs = json(&server.end());
            theirs["error"].is_null().then_some((said, theirs))
        });
        let Some((said, theirs)) = tried else {
            too_busy(&format!("{words:?}: the server gave up"));
            continue;
        };
        let ours = json(&said.out);
        let streams = theirs["end"]["streams"].as_array().expect("streams");
        assert_eq!(streams.len(), flows, "{words:?}");
        let (sent, received) = if words.contains(&"-R") {
            (of_ours(&ours, "server"), of_ours(&ours, "client"))
        } else {
            (of_ours(&ours, "client"), of_ours(&ours, "server"))
        };
        // A quarter of a megabyte: nothing is lost over loopback but what comes after the end.
        for (sent, received) in sent.iter().zip(&received) {
            let (low, high) = (sent.min(received), sent.max(received));
            assert!(
                *low * 10 > *high * 8,
                "{words:?}: {sent} sent, {received} received, {said:?}"
            );
        }
        let rate = ours["trials"][0]["responses"]["throughput_bps"].as_f64();
        let asked = 4e6 * flows as f64;
        let share = rate.expect("a rate") / asked;
        let is_kept = (0.6..1.2).contains(&share) || disturbance(&ours).is_some();
        assert!(is_kept, "{words:?}: {share} of {asked}");
    }
}

#[test]
fn a_volume_ends_the_test_in_either_direction() {
    const MIB: u64 = 1 << 20;
    for (words, expected) in [
        (&["-n", "20M"][..], 20 * MIB),
        (&["-n", "20M", "-R"], 20 * MIB),
        (&["-k", "80", "-P", "2"], 10 * MIB),
        (&["-n", "5M", "--bidir"], 5 * MIB),
    ] {
        let Some(server) = start(&["-1", "-J"]) else {
            return;
        };
        let words = [words, &["-i", "0", "-J"]].concat();
        let said = run(&server.host(), &words).run();
        let ours = json(&said.out);
        let theirs = json(&server.end());
        assert_eq!(theirs["error"], Value::Null, "{words:?}: {said:?}");
        for bytes in of_ours(&ours, "client") {
            // A sender stops on the byte; a server goes on until it hears of the end.
            assert!(bytes >= expected, "{words:?}: {bytes}");
            let exact = !words.contains(&"-R") && !words.contains(&"--bidir");
            assert!(!exact || bytes == expected, "{words:?}: {bytes}");
        }
        assert_eq!(of_ours(&ours, "server"), of_server(&theirs), "{words:?}");
    }
}

#[test]
fn what_is_omitted_is_omitted_at_both_ends() {
    let words = ["-O", "1", "-t", "1", "-b", "80M", "-i", "0", "-J"];
    let tried = (0..TRIES).find_map(|_| {
        let server = start(&["-1", "-J"])?;
        let said = run(&server.host(), &words).run();
        said.is_measured().then_some((server, said))
    });
    let Some((server, said)) = tried else {
        return too_busy("the server gave up");
    };
    let ours = json(&said.out);
    let (all, counted) = (of_ours(&ours, "client")[0], of_ours(&ours, "server")[0]);
    assert_eq!(of_server(&json(&server.end())), [counted]);
    // Of two equal seconds the first is left out.
    let share = counted as f64 / all as f64;
    assert!((0.35..0.65).contains(&share), "{counted} of {all}");
}

#[test]
fn an_experiment_has_the_phases_of_an_iperf3_server() {
    let Some(server) = start(&["-1"]) else {
        return;
    };
    let folder = folder();
    let experiment = r#"
format = 1
name = "datagrams"
title = "Datagrams"
question = "How many arrive?"
method = "One flow at a rate."
response = "throughput_bps"

[workload]
kind = "stream"
direction = "to-server"
transport = "udp"
rate = "20Mbit/s"

[factors]
message_bytes = [1000]

[design]
kind = "full"
replicates = 1

[timing]
settle = "200ms"
warm_up = "200ms"
measure = "500ms"
drain = "100ms"
"#;
    let file = file(&folder, "datagrams.toml", experiment);
    let bundle = folder.path().join("bundle").display().to_string();
    let said = run(&server.host(), &["--experiment", &file, "--out", &bundle]).run();
    assert!(said.is_measured(), "{said:?}");
    assert!(said.err.contains("the warm-up is 1 s"), "{said:?}");
    let shown = linerate(&["report", &bundle, "--format", "json"]).run();
    let document = json(&shown.done().out);
    let rate = document.pointer("/summary/rows/0/1/estimate/value");
    let rate = rate.and_then(Value::as_f64);
    let share = rate
        .unwrap_or_else(|| panic!("no rate: {said:?} {}", document["chapters"][0]["trials"]))
        / 20e6;
    // What comes in 0.8 s, divided by the 0.5 s that are measured, is 1.6 times the rate.
    assert!((0.7..1.3).contains(&share), "{share} of the rate");
}

#[test]
fn several_tests_follow_one_another_on_one_server() {
    let _load = loading();
    let Some(server) = start(&[]) else {
        return;
    };
    let words = ["-t", "0.2", "-i", "0", "--runs", "3", "-J"];
    let said = run(&server.host(), &words).run();
    assert!(said.is_measured(), "{said:?}");
    let ours = json(&said.out);
    let trials = ours["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 3);
    for trial in trials {
        let counted = trial["flows"].as_array().expect("flows").iter();
        let received = counted.map(|flow| flow["bytes_received"].as_u64().expect("a count"));
        assert!(received.sum::<u64>() > 0, "{trial}");
    }
}

#[test]
fn a_busy_server_is_named_as_busy_and_waited_for() {
    let Some(server) = start(&[]) else {
        return;
    };
    let port = server.port().to_string();
    let first = ["-c", "127.0.0.1", "-p", &port, "-t", "60", "-b", "1M"];
    let other = Call::of("iperf3").words(&first).start();
    server.wait_for_test();
    let words = ["-t", "0.2", "-i", "0"];
    let said = run(&server.host(), &words).run();
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("is busy with another test"), "{said:?}");
    let mut going = run(&server.host(), &[&words[..], &["--queue"]].concat()).start();
    going.wait_for("waiting, number 1 in its queue");
    other.signal(Signal::SIGINT);
    other.end();
    let said = going.end();
    assert!(said.is_measured(), "{said:?}");
}

#[test]
fn a_server_that_dies_or_is_stopped_leaves_what_was_measured() {
    for (signal, words) in [
        (Signal::SIGKILL, "closed the control connection"),
        (Signal::SIGINT, "was terminated"),
    ] {
        let Some(server) = start(&[]) else {
            return;
        };
        let mut going = run(&server.host(), &["-t", "30", "-i", "0.2", "-b", "50M"]).start();
        going.wait_for("0.4–0.6");
        server.signal(signal);
        let said = going.end();
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains(words), "{said:?}");
        assert!(said.out.contains("received "), "{said:?}");
        assert!(!said.out.contains("INVALID"), "{said:?}");
    }
}

#[test]
fn an_interrupt_is_told_to_the_server() {
    let Some(server) = start(&["-1", "-J"]) else {
        return;
    };
    let mut going = run(&server.host(), &["-t", "30", "-i", "0.2", "-b", "50M"]).start();
    going.wait_for("0.4–0.6");
    going.signal(Signal::SIGINT);
    let said = going.end();
    assert_eq!(said.code, 130, "{said:?}");
    let theirs = server.end();
    assert!(theirs.contains("the client has terminated"), "{theirs}");
}

#[test]
fn what_iperf3_cannot_do_is_refused_before_anyone_is_asked() {
    let check = |words: &[&str], expected: &str| {
        let said = run("127.0.0.1:1", words).run();
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(expected), "{said:?}");
    };
    check(&["--rr"], "knows only streams");
    check(&["--size-mix", "list:1K,2K"], "one size only");
    check(&["--client", "127.0.0.2"], "cannot be used with");
    check(&["--username", "u"], "--rsa-public-key-path");
    // It would count what is not whole seconds.
    check(&["-O", "0.6"], "use -O 0 or -O 1");
    check(
        &["--format", "iperf3", "--runs", "2"],
        "holds one measurement",
    );
    let said = run("127.0.0.1:1", &["-t", "1"]).run();
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("cannot be connected to"), "{said:?}");
    assert!(said.err.contains("start `iperf3 -s` there"), "{said:?}");
}

#[test]
fn only_who_knows_the_password_is_let_in() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (private, public) = (path("private.pem"), path("public.pem"));
    let openssl = |words: &[&str]| {
        let done = Command::new("openssl").args(words).output();
        done.is_ok_and(|output| output.status.success())
    };
    let made = openssl(&["genrsa", "-traditional", "-out", &private, "2048"])
        && openssl(&["rsa", "-in", &private, "-pubout", "-out", &public]);
    if !made {
        return skip("there is no openssl to make keys with");
    }
    let sum = Command::new("sh")
        .args(["-c", "printf '{lise}gluon' | sha256sum | cut -d' ' -f1"])
        .output()
        .expect("a shell");
    let digest = String::from_utf8(sum.stdout).expect("hex digits");
    let users = file(&folder, "users.csv", &format!("lise,{digest}"));
    let words = [
        "--rsa-private-key-path",
        &private,
        "--authorized-users-path",
        &users,
    ];
    let Some(server) = start(&words) else {
        return;
    };
    // Releases up to 3.16 know the old padding only.
    let is_old = Command::new("iperf3")
        .arg("--version")
        .output()
        .is_ok_and(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let minor = text.split(['.', ' ', '\n']).nth(2).map(str::to_owned);
            minor
                .and_then(|minor| minor.parse::<u32>().ok())
                .is_some_and(|minor| minor < 17)
        });
    let padding: &[&str] = if is_old {
        &["--use-pkcs1-padding"]
    } else {
        &[]
    };
    let words = ["--username", "lise", "--rsa-public-key-path", &public];
    let call = |password: &str| {
        let words = [&words[..], padding, &["-n", "1M", "-i", "0"]].concat();
        run(&server.host(), &words)
            .with("IPERF3_PASSWORD", password)
            .run()
    };
    let said = call("gluon");
    assert!(said.is_measured(), "{said:?}");
    let said = call("quark");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("authentication failed"), "{said:?}");
    let said = run(&server.host(), &words).run();
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("IPERF3_PASSWORD"), "{said:?}");
}

#[test]
fn the_servers_own_output_comes_along() {
    let Some(server) = start(&["-1"]) else {
        return;
    };
    let words = ["-t", "0.3", "-b", "20M", "-i", "0", "--get-server-output"];
    let said = run(&server.host(), &words).run();
    assert!(said.is_measured(), "{said:?}");
    assert!(said.out.contains("server output:"), "{said:?}");
    assert!(
        said.out.contains("Accepted connection from 127.0.0.1"),
        "{said:?}"
    );
    for (form, key) in [
        ("-J", "/server_output"),
        ("--json-stream", "/data/server_output"),
    ] {
        let Some(server) = start(&["-1"]) else {
            return;
        };
        let said = run(&server.host(), &[&words[..], &[form]].concat()).run();
        assert!(said.is_measured(), "{said:?}");
        let document = match form {
            "-J" => json(&said.out),
            _ => json(said.out.lines().last().expect("an event")),
        };
        let output = document.pointer(key).and_then(Value::as_str);
        let output = output.expect("a text");
        assert!(output.contains("Accepted connection"), "{output}");
        assert!(
            document
                .pointer(&key.replace("server_output", "trials"))
                .is_some()
        );
    }
}

/// Returns the keys of a document, with their paths; of a list those of its first and last entry.
fn keys(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{path}.{key}");
                into.insert(path.clone());
                keys(value, &path, into);
            }
        }
        Value::Array(list) => {
            let ends = list.first().into_iter().chain(list.last());
            ends.for_each(|value| keys(value, path, into));
        }
        _ => {}
    }
}

/// All rows at once, ours and the real one, at a rate that leaves the others theirs: keys do not depend
/// on it.
#[test]
fn documents_have_every_key_of_the_real_clients() {
    let rows: [&[&str]; 7] = [
        &["-b", "20M"],
        &["-b", "20M", "-R"],
        &["-b", "20M", "--bidir"],
        &["-b", "20M", "-P", "2"],
        &["-u", "-b", "5M", "-l", "1400"],
        &["-u", "-b", "5M", "-l", "1400", "-R"],
        &["-u", "-b", "2M", "-l", "1400", "--bidir"],
    ];
    let mut goings = Vec::new();
    for row in rows {
        let (Some(for_us), Some(for_them)) = (start(&["-1"]), start(&["-1"])) else {
            return;
        };
        let words = [row, &["-t", "1"]].concat();
        let ours = [&words[..], &["--format", "iperf3"]].concat();
        let ours = run(&for_us.host(), &ours).start();
        let port = for_them.port().to_string();
        let theirs = Call::of("iperf3")
            .words(&["-c", "127.0.0.1", "-p", &port, "-J"])
            .words(&words);
        goings.push((row, ours, theirs.start(), [for_us, for_them]));
    }
    for (row, ours, theirs, _servers) in goings {
        let (ours, theirs) = (ours.end(), theirs.end());
        // One of fourteen at once; alone it is measured.
        let again = || {
            let server = start(&["-1"])?;
            let words = [row, &["-t", "1", "--format", "iperf3"]].concat();
            Some(run(&server.host(), &words).run())
        };
        let ours = if ours.is_measured() {
            ours
        } else {
            again().unwrap_or(ours)
        };
        assert!(ours.is_measured(), "{ours:?}");
        let late = ours.was_read_late();
        has_the_keys_of(row, &ours.out, late, &theirs.out);
    }
}

/// Returns of which sums a document says that they are of a sender, and of which that they are not.
fn senders(document: &str) -> Vec<(String, bool)> {
    let document = json(document);
    let end = document["end"].as_object().expect("an object");
    let sums = end.iter().filter(|(key, _)| key.starts_with("sum"));
    let mut all: Vec<_> = sums
        .map(|(key, sum)| (key.clone(), sum["sender"].as_bool().expect("it is said")))
        .collect();
    all.sort();
    all
}

/// Asserts that `ours` has every key of `theirs`, and that both are documents of iperf3 that moved
/// something; ours may say that it was read `late`.
#[track_caller]
fn has_the_keys_of(row: &[&str], ours: &str, late: bool, theirs: &str) {
    let shape = |text: &str| {
        let mut all = BTreeSet::new();
        keys(&json(text), "", &mut all);
        all
    };
    let (own, real) = (shape(ours), shape(theirs));
    let missing: Vec<&String> = real
        .difference(&own)
        // What the kernel estimates of reordering is not read.
        .filter(|key| !key.ends_with(".reorder"))
        // Nor what an end that was read late has retransmitted.
        .filter(|key| !(late && key.ends_with(".retransmits")))
        .collect();
    assert_eq!(missing, [""; 0], "{row:?}");
    assert_eq!(senders(ours), senders(theirs), "{row:?}");
    for (text, may_fail) in [(theirs, false), (ours, late)] {
        // By way of a value: the real one has a key twice.
        let document: Document = serde_json::from_value(json(text)).expect("a document");
        let sent = document.end.sum_sent.expect("a sum").bytes;
        let received = document.end.sum_received.expect("a sum").bytes;
        let have_moved = sent > 0 && received > 0 && received <= sent + (sent >> 3);
        assert!(have_moved || may_fail, "{text}");
        assert!(!document.intervals.is_empty());
        assert!(document.error.is_none() || may_fail, "{text}");
    }
}

#[test]
fn lines_of_events_end_with_the_totals_and_failures_say_error() {
    let _load = loading();
    let Some(server) = start(&["-1"]) else {
        return;
    };
    let words = [
        "-t",
        "0.6",
        "-i",
        "0.2",
        "--format",
        "iperf3",
        "--json-stream",
    ];
    let said = run(&server.host(), &words).run();
    assert!(said.is_measured(), "{said:?}");
    let lines: Vec<Value> = said.out.lines().map(json).collect();
    let events: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["event"].as_str())
        .collect();
    let events: Vec<&str> = events
        .into_iter()
        .filter(|event| *event != "error")
        .collect();
    assert_eq!(events, ["start", "interval", "interval", "interval", "end"]);
    let sum = |line: &Value| line["data"]["sum"]["bytes"].as_u64().expect("a count");
    let intervals: u64 = lines[1..4].iter().map(sum).sum();
    let end = lines.last().expect("lines");
    let total = end["data"]["sum_sent"]["bytes"].as_u64().expect("a count");
    assert!(
        intervals <= total && intervals * 2 > total,
        "{intervals} of {total}"
    );
    let said = run("127.0.0.1:1", &["--format", "iperf3"]).run();
    assert_eq!(said.code, 1, "{said:?}");
    let error = json(&said.out)["error"]
        .as_str()
        .expect("a text")
        .to_owned();
    assert!(error.contains("cannot be connected to"), "{error}");
    let said = run("127.0.0.1:1", &["--format", "iperf3", "--json-stream"]).run();
    let lines: Vec<Value> = said.out.lines().map(json).collect();
    assert_eq!(lines.len(), 2, "{said:?}");
    assert_eq!(lines[0]["event"], "error", "{said:?}");
    assert_eq!(lines[1], serde_json::json!({"event": "end", "data": {}}));
}

#[test]
fn documents_tell_what_was_asked_for_or_are_refused() {
    let _load = loading();
    let server = crate::common::Server::start(&[]);
    let call = |words: &[&str]| {
        let common = ["run", &server.host(), "-i", "0", "--format", "iperf3"];
        linerate(&[&common[..], words].concat()).run()
    };
    let check = |words: &[&str], expected: Value| {
        let said = call(words);
        assert!(said.is_measured(), "{words:?}: {said:?}");
        let document = json(&said.out);
        let told = &document["start"]["test_start"];
        for (key, value) in expected.as_object().expect("an object") {
            assert_eq!(&told[key], value, "{words:?}: {key} of {told}");
        }
    };
    check(&["-t", "1"], serde_json::json!({"duration": 1, "omit": 0}));
    // More than an iperf3 server does.
    let many = serde_json::json!({"num_streams": 130, "reverse": 1, "target_bitrate": 100_000});
    check(&["-P", "130", "-R", "-t", "0.5", "-b", "100K"], many);
    let large = serde_json::json!({"bidir": 1, "blksize": 2 << 20});
    check(&["--bidir", "-l", "2M", "-t", "0.5"], large);
    let volume = serde_json::json!({"protocol": "UDP", "bytes": 102_400});
    check(&["-u", "-R", "-n", "100K"], volume);
    for (words, why) in [
        (&["-u", "--size-mix", "list:100,200"][..], "one size only"),
        (&["--unix"], "no Unix sockets"),
    ] {
        let said = call(words);
        assert_eq!(said.code, 2, "{said:?}");
        let document = json(&said.out);
        let error = document["error"].as_str().expect("a text");
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_run_with_our_own_server_has_the_same_documents() {
    let _load = loading();
    let server = crate::common::Server::start(&[]);
    let words = [
        "run",
        &server.host(),
        "-t",
        "1",
        "--bidir",
        "--format",
        "iperf3",
    ];
    let said = linerate(&words).run();
    assert!(said.is_measured(), "{said:?}");
    let document: Document = serde_json::from_str(&said.out).expect("a document of iperf3");
    assert_eq!(document.start.connected.len(), 2);
    assert!(
        document
            .start
            .connected
            .iter()
            .all(|one| one.local_port > 0)
    );
    assert!(
        document
            .end
            .sum_received_bidir_reverse
            .expect("a sum")
            .bytes
            > 0
    );
    assert!(document.end.cpu_utilization_percent.remote_total >= 0.0);
}
